# expect: CUD302 refuted
# What is sent has been moved to the host in a way that the analysis does not follow.
import multiprocessing

import torch


def work(x):
    print(x.sum().item())


def main():
    x = torch.ones(3, device="cuda")
    x.data = x.data.to("".join(["c", "p", "u"]))
    child = multiprocessing.get_context("spawn").Process(target=work, args=(x,))
    child.start()
    child.join()


if __name__ == "__main__":
    main()
