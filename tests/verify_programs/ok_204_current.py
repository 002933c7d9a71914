# expect: CUD204 reached
import torch

if __name__ == "__main__":
    torch.cuda.device(0)
    print(torch.ones(3, device="cuda").device)
