# expect: CUD108 confirmed
import multiprocessing

import torch


def work():
    print(torch.ones(size, device="cuda").sum().item())


if __name__ == "__main__":
    size = 3
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    print("the parent went on", child.exitcode)
