# expect: CUD202 confirmed
# gpus: 2
import os

import torch


def main():
    if not torch.cuda.is_available():
        raise SystemExit("this program needs a GPU")
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    print(torch.ones(3, device="cuda").sum().item())


if __name__ == "__main__":
    main()
