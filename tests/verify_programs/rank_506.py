import os

import torch
import torch.distributed as dist


def main():
    rank = int(os.environ["RANK"])
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    x = torch.ones(1, device="cuda")
    dist.all_reduce(x)
    if local_rank == 0:
        print(rank, x.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
