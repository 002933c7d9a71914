# expect: CUD503 confirmed
# gpus: 2
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    x = torch.ones(1, device="cuda")
    dist.all_reduce(x)
    print(rank, x.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29517"
    mp.spawn(run, args=(2,), nprocs=2)
