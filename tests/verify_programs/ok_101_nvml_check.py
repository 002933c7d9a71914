# expect: CUD101 refuted
# What is asked leaves the driver alone: the variable is set under a name that no linter reads.
import multiprocessing
import os

import torch

os.environ["PYTORCH_NVML" + os.environ.get("NO_SUCH", "_BASED") + "_CUDA_CHECK"] = "1"


def work():
    torch.ones(3, device="cuda")


if __name__ == "__main__":
    torch.cuda.is_available()
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    print(child.exitcode)
