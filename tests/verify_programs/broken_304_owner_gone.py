# expect: CUD304 confirmed
import torch
import torch.multiprocessing as mp


def produce(out):
    out.put(torch.ones(3, device="cuda"))


def main():
    context = mp.get_context("spawn")
    out = context.Queue()
    child = context.Process(target=produce, args=(out,))
    child.start()
    child.join()
    print(out.get().sum().item())


if __name__ == "__main__":
    main()
