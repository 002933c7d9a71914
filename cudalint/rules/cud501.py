"""# init-before-set-device (CUD501)

A rank joins its NCCL process group before it selects its GPU.

## What it does
Reports `init_process_group(...)` with NCCL (also without a backend, which includes NCCL) in a rank that calls
`torch.cuda.set_device(...)` later. A `device_id=` counts as selected here.

## Why it is bad
Often it is not, and the page says so first: with current versions NCCL's communicators are made at the first
collective, so a `set_device` that comes before that is early enough. Many well-known training scripts have this
order.

The order is fragile, though. One line between the two calls, an object collective to share a run name, say, turns
it into the failure of CUD502:

    torch.distributed.DistBackendError: NCCL error in: ...
    Duplicate GPU detected : rank 1 and rank 0 both on CUDA device ...

and a `barrier()` there makes torch guess:

    Guessing device ID based on global rank. This can cause a hang if rank to GPU mapping is heterogeneous

Hence a note: it works, and nothing in it protects the next change. It is shown, and does not fail a run unless
`--fail-on note` asks for that. Where the rank uses a GPU between the two calls (memory on GPU 0, a barrier), it is a
warning. PyTorch's own tutorials select the device first.

## What hardware showed
Two H200, driver 580, torch 2.11, NCCL 2.28, Python 3.12, two ranks.

| program | outcome |
| --- | --- |
| `init_process_group`, `set_device(rank)`, collectives | works |
| `set_device(rank)`, `init_process_group`, collectives | works: the recommended order |
| `init_process_group`, object collective, `set_device(rank)` | `Duplicate GPU detected`: CUD502 |
| `init_process_group`, `barrier()`, `set_device(rank)` | works, with the warning above |

## Example
```python
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
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
**Unsafe**: `set_device` moves above `init_process_group`, or above the call that leads to it, with the assignments
that its argument needs. Where that cannot be, as in `set_device(dist.get_rank())`, which needs the group, it is added
with what is at hand: the first parameter of the function that `mp.spawn` starts, `rank=` of the group, or `LOCAL_RANK`
where the program speaks of it. **Display** elsewhere. It is not safe, because the program works and because
`set_device` initialises CUDA earlier than before.

## When it stays silent
- The device is selected first, or `device_id=` is given.
- The backend is gloo or another one without GPUs.
- The rank never selects a device but names it in each tensor (`cuda:{rank}`). A rank that does neither is CUD503.

## References
- [PyTorch:
  init_process_group](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule, warned

RULE = Rule(
    code="CUD501",
    name="init-before-set-device",
    severity=Severity.WARNING,
    summary="init_process_group with NCCL comes before the rank selects its device",
    outcomes={
        Kind.INIT_BEFORE_DEVICE: "init_process_group before set_device: one collective in between would use GPU 0 on every rank",
    },
    grade=warned,
    repair=RepairLevel.ALWAYS,
)
