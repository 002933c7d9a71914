# expect: CUD203 confirmed
# gpus: 2
# needs: joblib
import os

import torch
from joblib import Parallel, delayed


def work(gpu):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return torch.ones(4, device="cuda").sum().item()


if __name__ == "__main__":
    print(Parallel(n_jobs=2)(delayed(work)(n % 2) for n in range(8)))
