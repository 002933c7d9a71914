# expect: CUD101 reached
import multiprocessing

import torch


def work(n):
    return torch.ones(3 // n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.cuda.init()
    print(multiprocessing.get_context("fork").Pool(1).map(work, [0]))
