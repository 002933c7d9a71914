# expect: CUD203 confirmed
# gpus: 2
import multiprocessing
import os

import torch


def work(gpu):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return torch.ones(4, device="cuda").sum().item()


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [0, 1, 0, 1], chunksize=1))
