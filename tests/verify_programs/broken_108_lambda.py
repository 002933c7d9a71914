# expect: CUD108 confirmed
import multiprocessing


def main():
    import torch

    print(torch.ones(1, device="cuda").sum().item())
    child = multiprocessing.get_context("spawn").Process(target=lambda: print("child"))
    child.start()
    child.join()


if __name__ == "__main__":
    main()
