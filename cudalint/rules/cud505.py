"""# rendezvous-not-set (CUD505)

Ranks started by the program itself meet through `env://`, and nothing sets `MASTER_ADDR` and `MASTER_PORT`.

## What it does
Reports `init_process_group(...)` in a function that `mp.spawn` or `start_processes` runs, when it has no
`init_method` other than `env://` and no store, and when the two variables are neither read nor written anywhere
that the program reaches, or one is written and the other is named nowhere. Likewise where the rank is not told which one it is, or of how many: there is no `rank=` and
no `RANK`, or no `world_size=` and no `WORLD_SIZE`.

## Why it is bad
`env://` is the default, also when it is not written. It takes the address of rank 0 from the environment. torchrun
and the cluster launchers set it; `mp.spawn` does not:

    ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR expected,
    but not set

The same way it takes `RANK` and `WORLD_SIZE` from there, where the arguments are missing.

The error hides behind another: `mp.spawn` reports a `ProcessRaisedException`, with the real one inside. It is
raised before any collective, so it masks whatever else is wrong with the order of the calls that follow.

The variables could be exported by hand before the program starts, which cudalint cannot see. The rule is an error
all the same, because a program that starts its own ranks and relies on that nearly always lacks the two lines. If
you do export them, a `noqa` is the way to say so.

## What hardware showed
Two H200, driver 580, torch 2.11, Python 3.12.

| `mp.spawn` of two ranks | outcome |
| --- | --- |
| neither variable set | `ValueError: ... MASTER_ADDR expected, but not set` |
| both set in the parent before `mp.spawn` | works: the children inherit the environment |

## Example
```python
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
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    mp.spawn(run, args=(2,), nprocs=2)


if __name__ == "__main__":
    main()
```

`setdefault` keeps what a user exports by hand.

## Fix
**Unsafe**: the two `setdefault` lines are put before the launch, with `import os` where it is missing. The fixed
port is the reason: two such programs on one machine would meet at it. **Display** where a rank is not told its number:
the function that `mp.spawn` starts is called with it first.

## When it stays silent
- One of the two variables is read anywhere in reach, or both are written, also through `os.environ.update(...)` or a
  helper; or one is written, and the other is named somewhere in the project. Of `RANK` and `WORLD_SIZE` the one that is
  needed is read or written.
- `init_method="tcp://..."` or `"file://..."`, or a `store=`.
- The ranks come from torchrun, a cluster or a library: no `mp.spawn` in sight.

## References
- [PyTorch: environment variable
  initialization](https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD505",
    name="rendezvous-not-set",
    severity=Severity.ERROR,
    summary="ranks started by mp.spawn use env:// and nothing sets MASTER_ADDR and MASTER_PORT",
    outcomes={
        Kind.RENDEZVOUS_NOT_SET: "env:// rendezvous, but nothing sets {detail}",
        Kind.RANK_NOT_SAID: "env:// rendezvous, but nothing says which rank of how many this is: "
        "rank= and world_size=, or RANK and WORLD_SIZE",
    },
    repair=RepairLevel.ALWAYS,
)
