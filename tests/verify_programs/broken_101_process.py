# expect: CUD101 confirmed
import multiprocessing

import torch


def work():
    torch.ones(3, device="cuda")


if __name__ == "__main__":
    torch.cuda.init()
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    print("the parent went on", child.exitcode)
