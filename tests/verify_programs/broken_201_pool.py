# expect: CUD201 confirmed
import multiprocessing
import time

import torch


def work(n):
    value = torch.ones(n, device="cuda").sum().item()
    time.sleep(1)
    return value


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3, 4], chunksize=1))
