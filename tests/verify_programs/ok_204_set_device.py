# expect: nothing
# gpus: 2
import torch

if __name__ == "__main__":
    torch.cuda.set_device(1)
    print(torch.ones(3, device="cuda").device)
