"""# rank-without-device (CUD503)

Ranks of an NCCL group use the default device and never select one, or all of them select the same.

## What it does
Reports the collective, or the `DistributedDataParallel(...)`, in which a rank puts a tensor or a parameter of the
default device (`"cuda"`, `.cuda()`), when no `torch.cuda.set_device` precedes it, or when each rank selects the
same constant.

`device_id=` of `init_process_group` does not select the device, and so does not help here.

## Why it is bad
Without a choice, `"cuda"` means GPU 0 in each rank, and NCCL wants a GPU of its own for each:

    torch.distributed.DistBackendError: NCCL error in: ..., invalid usage (run with NCCL_DEBUG=WARN for details)
    ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
    Last error:
    Duplicate GPU detected : rank 1 and rank 0 both on CUDA device ...

The script works on a machine with one GPU and one rank, which is where it was written. torchrun selects nothing: it
sets `LOCAL_RANK`, and the program has to use it.

## What hardware showed
Two H200, driver 580, torch 2.11, NCCL 2.28, Python 3.12, two ranks.

| the rank | outcome |
| --- | --- |
| tensors on `"cuda"`, no `set_device` | `Duplicate GPU detected` |
| DDP of a `.cuda()` model, no `set_device` | `Duplicate GPU detected` |
| torchrun, `LOCAL_RANK` not used | `Duplicate GPU detected` |
| all ranks call `set_device(0)` | `Duplicate GPU detected` |
| `device_id=` given, then a tensor on `"cuda"` | rank 1: "Attempt to perform collective on tensor not on device ..." |
| tensors on `f"cuda:{rank}"`, or `DDP(device_ids=[rank])` | works without `set_device` |
| `init_device_mesh("cuda", ...)`, `accelerate.Accelerator()` | works: they select the device |
| gloo group, no `set_device` | works; all contexts on GPU 0: CUD201 |

## Example
```python
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    x = torch.ones(1, device="cuda")
    dist.all_reduce(x)
    print(rank, x.item())
    dist.destroy_process_group()


def main():
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    mp.spawn(run, args=(2,), nprocs=2)


if __name__ == "__main__":
    main()
```

## Use instead
```python
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    x = torch.ones(1, device="cuda")
    dist.all_reduce(x)
    print(rank, x.item())
    dist.destroy_process_group()


def main():
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    mp.spawn(run, args=(2,), nprocs=2)


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe** where the rank's number is at hand: as the first parameter of the function that `mp.spawn` starts, as a local
rank that the program has read, as `rank=` of the group, or as `LOCAL_RANK` where the program speaks of it.
`torch.cuda.set_device(...)` is put first in the rank's function or before `init_process_group`; where all ranks select
the same GPU, or take the same item of a row of devices, the number takes the place of theirs. The launcher may already give each rank a GPU of its own through
`CUDA_VISIBLE_DEVICES`, and then `set_device(rank)` would fail. **Display** elsewhere.

A rank that Slurm numbers (`SLURM_PROCID`, `SLURM_LOCALID`) is a warning: a job may have each task see another GPU
(`--gpus-per-task=1`), which is then GPU 0 for it.

## When it stays silent
- Tensors, models and `device_ids` name a device that depends on the rank.
- A library selects it: `Accelerator()`, `init_device_mesh`, `deepspeed.init_distributed`, a Trainer.
- `CUDA_VISIBLE_DEVICES` is set per rank, before CUDA.
- The group is gloo, or the tensors are on the CPU.

## References
- [PyTorch: torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html)
- [PyTorch:
  DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD503",
    name="rank-without-device",
    severity=Severity.ERROR,
    summary="ranks use the default device in NCCL collectives or DDP and select none, or all select the same",
    outcomes={
        Kind.RANK_WITHOUT_DEVICE: "{subject} on the same GPU in every rank: the rank never selects a device of its own",
    },
    repair=RepairLevel.ALWAYS,
)
