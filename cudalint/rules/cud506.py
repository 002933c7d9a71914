"""# global-rank-as-device (CUD506)

A rank selects its GPU by its global rank.

## What it does
Reports `torch.cuda.set_device(...)` with a global rank (`RANK`, `dist.get_rank()`, `accelerator.process_index`), and
what is first put on the GPU of that number (`f"cuda:{rank}"`, `.to(rank)`) where no selection said so before: as a
warning in a program that also knows its local rank (`LOCAL_RANK`, a parameter or an option of that name, an
`Accelerator`), or that reads or takes what only runs on several machines have (`GROUP_RANK`, `NODE_RANK`,
`SLURM_NNODES`, `--nnodes`); elsewhere as a note.

## Why it is bad
GPUs are numbered from 0 on each machine; global ranks go on counting. On one machine the two numbers are equal and
the program works. On the second machine of two with eight GPUs each, the first rank is number 8, and there is no
GPU 8:

    torch.AcceleratorError: CUDA error: invalid device ordinal

A modulo by a constant, `rank % 8`, hides it as long as all machines have the same number of GPUs and the launcher
numbers the ranks machine by machine.

It is a warning, because it does work where most programs run, and a note where nothing shows that the program may run
on several machines.

## What hardware showed
Two H200 in one machine, driver 580, torch 2.11, NCCL 2.28, Python 3.12, two ranks.

| program | outcome |
| --- | --- |
| `set_device` with the global rank, one machine | works: both numbers are equal |
| `set_device(2)`, as the third rank would on a second machine | `CUDA error: invalid device ordinal` |

Several machines were not measured.

## Example
```python
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
```

## Use instead
```python
import os

import torch
import torch.distributed as dist


def main():
    rank = int(os.environ["RANK"])
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    x = torch.ones(1, device="cuda")
    dist.all_reduce(x)
    if local_rank == 0:
        print(rank, x.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
```

Both are started with `torchrun --nproc-per-node=2 train.py`.

## Fix
**Unsafe**: the number in `set_device` or in what takes the device, also inside the `torch.device` that it is given, becomes the local rank: a
name that holds it, the attribute `local_rank` beside `rank`, or `LOCAL_RANK` itself. Other places of the program may
use the global rank as a device too (`device_ids=[rank]`, `f"cuda:{rank}"`), and they have to agree.

## When it stays silent
- The argument is the local rank, or the rank modulo `torch.cuda.device_count()`.
- The ranks come from `mp.spawn` on one machine: its number is a local rank.
- The program has its ranks meet on their own machine (`MASTER_ADDR` is `localhost` or `127.0.0.1`): there is no second one.
- The rank is used for anything but a device.

## References
- [PyTorch: torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule, warned

RULE = Rule(
    code="CUD506",
    name="global-rank-as-device",
    severity=Severity.WARNING,
    summary="a rank takes the GPU of its global rank, which counts on from machine to machine",
    outcomes={
        Kind.GLOBAL_RANK_DEVICE: "the global rank names a GPU: on the second machine there is none of that number{detail}",
    },
    grade=warned,
    repair=RepairLevel.ALWAYS,
)
