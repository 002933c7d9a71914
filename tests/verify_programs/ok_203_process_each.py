# expect: nothing
# gpus: 2
import multiprocessing
import os

import torch


def work(gpu):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    print(gpu, torch.ones(4, device="cuda").sum().item())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work, args=(gpu,)) for gpu in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
