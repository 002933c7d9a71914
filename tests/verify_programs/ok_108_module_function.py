# expect: nothing
import multiprocessing

import torch


def work(size):
    print(torch.ones(size, device="cuda").sum().item())


if __name__ == "__main__":
    print(torch.ones(1, device="cuda").sum().item())
    child = multiprocessing.get_context("spawn").Process(target=work, args=(3,))
    child.start()
    child.join()
