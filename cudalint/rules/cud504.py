"""# cuda-before-set-device (CUD504)

A rank allocates CUDA memory before it selects its GPU.

## What it does
Reports the call that allocates on the default device (`.cuda()`, `device="cuda"`, a library object that lands on
the GPU) in a rank that calls `torch.cuda.set_device(...)` only afterwards. And `torch.load(path)` in ranks that each use a
GPU of their own, where the program itself saves CUDA tensors to that path, or saves them in a dict that has all the keys
(two at least) which it asks of what it loaded: without `map_location` they go back to the GPU from which they were saved,
which is one for all ranks.

## Why it is bad
All ranks begin on GPU 0. What they allocate there stays there, along with a context of each: GPU 0 carries hundreds
of MiB for each rank of the machine, and it is the first to run out of memory. The message then names GPU 0 in a
rank that "uses GPU 3".

`torch.load` does the same later on: a checkpoint of rank 0 holds tensors "on cuda:0", and each rank that loads it opens
GPU 0 for them, whatever `set_device` chose.

The tensor itself also stays on GPU 0. Where it meets the rank's other tensors, the program stops with

    RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!

and if it is only moved later, the first copy is a copy between GPUs.

## What hardware showed
Two H200, driver 580, torch 2.11, NCCL 2.28, Python 3.12, two ranks.

| program | outcome |
| --- | --- |
| `.cuda()`, then `set_device(rank)` | works; each rank holds a context and memory on GPU 0 |
| `set_device(rank)`, then `.cuda()` | works, nothing of rank 1 on GPU 0 |
| a tensor on `"cuda"`, then `Trainer(devices=2).fit()` or `Fabric(devices=2).launch()` of Lightning 2.6 | works; rank 1 runs the program from its start and holds that tensor on GPU 0, too |

A context alone takes about 600 MiB on this GPU (CUD201).

## Example
```python
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    scale = torch.rand(1024, 1024).cuda().mean().item()
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    x = torch.full((1,), scale, device="cuda")
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
    scale = torch.rand(1024, 1024).cuda().mean().item()
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    x = torch.full((1,), scale, device="cuda")
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
**Unsafe**: `set_device` moves above the allocation, or above the call that leads to it, with the assignments that its
argument needs; else it is added first in the rank's function, as for CUD501. The allocation then happens on another
GPU, which is the purpose, and which a program could notice. Lightning's Trainer and Fabric give each rank its GPU themselves:
there the advice is to leave the tensor on the CPU until they have, as a buffer or by `self.device`, or to make it after
`fabric.launch()`. A checkpoint gets `map_location="cuda"`, the GPU that the
rank selected, or `"cpu"` where it selected none. **Display** elsewhere.

## When it stays silent
- The device is selected first, or the early tensor names one of the rank's own.
- What comes before only asks: `torch.cuda.is_available()`, `torch.cuda.device_count()`.
- The allocation is in the parent, which is no rank.
- The program has one rank on each machine.
- A checkpoint is loaded with `map_location`, by one rank only, from a file for each rank, or from one of which the program
  does not show that CUDA tensors are saved there.

## References
- [PyTorch: torch.cuda.set_device](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_device.html)
- CUD503 for ranks that never select a device.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule, warned

RULE = Rule(
    code="CUD504",
    name="cuda-before-set-device",
    severity=Severity.WARNING,
    summary="a rank allocates CUDA memory before it selects its device, so that every rank holds a context on GPU 0",
    outcomes={
        Kind.LOADED_ONTO_ONE: "every rank loads this onto GPU 0, beside its own: {detail}",
        Kind.ALLOCATION_BEFORE_DEVICE: "CUDA memory is used before set_device: every rank opens a context on GPU 0",
        Kind.ALLOCATION_BEFORE_RANKS: (
            "CUDA memory is used before {detail} gives each rank its GPU: every rank opens a context on GPU 0"
        ),
    },
    grade=warned,
    repair=RepairLevel.ALWAYS,
)
