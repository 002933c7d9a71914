# expect: CUD202 refuted
# gpus: 2
# What is asked leaves the driver alone: the variable is set under a name that no linter reads.
import os

import torch

os.environ["PYTORCH_NVML" + os.environ.get("NO_SUCH", "_BASED") + "_CUDA_CHECK"] = "1"


def main():
    if not torch.cuda.is_available():
        raise SystemExit("this program needs a GPU")
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    print(torch.ones(3, device="cuda").sum().item())


if __name__ == "__main__":
    main()
