# expect: CUD302 refuted
# The device is told by a name that the analysis reads as it stands, and that the program changes under way.
import multiprocessing

import torch


def work(x):
    print(x.sum().item())


def main():
    x = torch.ones(3, device="cuda")
    vars().update()
    x.data = x.data.to("".join(["c", "p", "u"]))
    child = multiprocessing.get_context("spawn").Process(target=work, args=(x,))
    child.start()
    child.join()


if __name__ == "__main__":
    main()
