# expect: CUD204 refuted
# gpus: 2
import os

import torch

making = torch.cuda.device.__init__


def selecting(self, device):
    making(self, device)
    torch.cuda.set_device(device)


if __name__ == "__main__":
    exec(os.environ.get("NO_SUCH", "torch.cuda.device.__init__ = selecting"))
    torch.cuda.device(1)
    print(torch.ones(3, device="cuda").device)
