# expect: CUD201 refuted
# gpus: 2
import multiprocessing
import os
import time

import torch


def work(n):
    exec(os.environ.get("NO_SUCH", "torch.cuda.set_device(multiprocessing.current_process()._identity[0] % 2)"))
    value = torch.ones(n, device="cuda").sum().item()
    time.sleep(1)
    return value


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3, 4], chunksize=1))
