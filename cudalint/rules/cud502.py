"""# collective-before-set-device (CUD502)

A collective runs after `init_process_group` and before the rank has selected its GPU.

## What it does
Reports an object collective (`all_gather_object`, `broadcast_object_list` ...), or a collective on a tensor of the
default device, that stands between `init_process_group` with NCCL and `torch.cuda.set_device(...)`.

A bare `barrier()` is another matter. Where nothing named a GPU to the group before, it guesses one from the global rank,
before `set_device` and after it. That is a warning where the rank has not chosen its GPU yet, or chose one of another
number; one for each process group, since the first barrier settles the GPU for those that follow.

## Why it is bad
The first collective builds NCCL's communicator on the device that is current at that moment, and that is GPU 0 in
all ranks:

    torch.distributed.DistBackendError: NCCL error in: ..., invalid usage (run with NCCL_DEBUG=WARN for details)
    ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
    Last error:
    Duplicate GPU detected : rank 1 and rank 0 both on CUDA device ...

Object collectives surprise most: they take Python objects, no tensor is in sight, yet they pickle them into a
tensor on the current GPU.

`barrier()` has no tensor either. torch guesses a device for it, says "Guessing device ID based on global rank. This
can cause a hang if rank to GPU mapping is heterogeneous", and goes on. It does so after `set_device`, too. Where the
guess is wrong, the rank opens a context on a GPU that belongs to another one, and the group may hang.

## What hardware showed
Two H200, driver 580, torch 2.11, NCCL 2.28, Python 3.12, two ranks.

| between `init_process_group` and `set_device` | outcome |
| --- | --- |
| `all_gather_object`, `broadcast_object_list` | `Duplicate GPU detected` |
| a collective on a `device="cuda"` tensor | `Duplicate GPU detected` |
| `barrier()` | works, with the warning |
| a collective on a `device=f"cuda:{rank}"` tensor | works |
| nothing | works: CUD501 |

Two H100, the same versions; ranks mapped crosswise, so that rank and GPU differ.

| `barrier()` | the GPU that it uses |
| --- | --- |
| bare, before or after `set_device(other)` | that of the global rank; the process then has a context on both |
| `barrier(device_ids=[other])`, or `device_id=` of the group | `other` |
| after a collective or DDP on an explicit GPU | that GPU |
| with gloo | none |

One H200, the same versions, two ranks on it, nothing selected.

| `init_process_group(...)` | `barrier()`, `all_gather_object` |
| --- | --- |
| `"nccl"`, or no backend | the barrier guesses GPUs, `Duplicate GPU detected` on one |
| `"cpu:gloo,cuda:nccl"` | over gloo: no rank initialises CUDA |

## Example
```python
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    names = [None] * world_size
    dist.all_gather_object(names, f"worker {rank}")
    torch.cuda.set_device(rank)
    print(names)
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
    names = [None] * world_size
    dist.all_gather_object(names, f"worker {rank}")
    print(names)
    dist.destroy_process_group()


def main():
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    mp.spawn(run, args=(2,), nprocs=2)


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**: `set_device` moves above `init_process_group`, or is added there, as for CUD501. **Display** elsewhere. The
program fails with two ranks and more, but it works with one, so that the repair is not offered as safe.

A barrier is given `device_ids=` with the rank's GPU, where the file joins groups of NCCL and no others: gloo refuses the
argument. **Display** elsewhere.

## When it stays silent
- The device is selected before the first collective that is no barrier.
- The tensors name their device (`cuda:{rank}`); for barriers `device_ids=` or the group's `device_id=` does the same.
- The group has met on a GPU before the barrier: in a collective on a tensor, or in DDP.
- Ranks and GPUs are numbered alike, so that the guess is right: by a launcher in the program (`mp.spawn`, a loop of
  processes), or where the rank has chosen the GPU of the local rank that a launcher such as `torchrun` told it. On
  several machines that holds where each has as many ranks as GPUs.
- The group's backend is gloo, or the collective runs on a gloo group.
- The world size is known to be 1.

## References
- [PyTorch: collective functions](https://docs.pytorch.org/docs/stable/distributed.html#collective-functions)
- CUD503 for ranks that never select a device.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD502",
    name="collective-before-set-device",
    severity=Severity.ERROR,
    summary="a collective runs before the rank selects its device, or a barrier guesses the device",
    outcomes={
        Kind.COLLECTIVE_BEFORE_DEVICE: "{subject} before set_device: every rank uses GPU 0",
        Kind.BARRIER_BEFORE_DEVICE: "barrier() guesses its GPU from the global rank: device_id= or device_ids= would name it",
        Kind.BARRIER_GUESSES: "barrier() guesses its GPU from the global rank, whatever set_device chose: "
        "device_id= or device_ids= would name it",
    },
    repair=RepairLevel.ALWAYS,
)
