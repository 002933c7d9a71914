# expect: CUD204 confirmed
# gpus: 2
import torch

if __name__ == "__main__":
    placed = []
    for gpu in range(2):
        torch.cuda.device(gpu)
        placed.append(torch.ones(1000).cuda())
    print({one.get_device() for one in placed})
