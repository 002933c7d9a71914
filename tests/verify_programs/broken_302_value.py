# expect: CUD302 confirmed
import multiprocessing

import torch


def work(x):
    print(x.sum().item())


def main():
    x = torch.ones(3, device="cuda")
    child = multiprocessing.get_context("spawn").Process(target=work, args=(x,))
    child.start()
    child.join()


if __name__ == "__main__":
    main()
