# expect: nothing
# gpus: 2
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world):
    torch.cuda.set_device(rank)
    scale = torch.rand(64, 64).cuda().mean().item()
    dist.init_process_group("nccl", rank=rank, world_size=world)
    x = torch.full((1,), scale, device="cuda")
    dist.all_reduce(x)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29520"
    mp.spawn(run, args=(2,), nprocs=2)
