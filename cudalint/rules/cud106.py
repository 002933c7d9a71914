"""# start-method-at-import (CUD106)

A spawned child imports the main module and, doing so, runs `set_start_method` or starts processes again.

## What it does
A child started by spawn is a fresh interpreter. Before it can call your function it imports your main module, under
the name `__mp_main__`, and runs everything at its top level. The rule reports statements there that must not run
twice: `set_start_method(...)`, and the start of a spawned `Process` or `Pool`.

## Why it is bad
In the child the start method is already set, so the call raises:

    RuntimeError: context has already been set

A start at top level is refused, because the child is not ready to be a parent:

    RuntimeError: An attempt has been made to start a new process before the current process has finished its
    bootstrapping phase.

With a `Pool` the program does not even end. The pool replaces each worker that dies, the next one dies in the same
way, and `map` waits for ever while the terminal fills with tracebacks.

It worked with fork, which imports nothing. So it appears on the day somebody follows the advice "use spawn for
CUDA".

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| at module level, without a main guard | outcome |
| --- | --- |
| `set_start_method("spawn")`, then a `Pool` | "context has already been set" in the children, hang |
| a spawn `Pool` | bootstrapping error in the children, hang |

Both belong to Python, not to the GPU: they happen on any machine.

## Example
```python
import multiprocessing

import torch

multiprocessing.set_start_method("spawn")


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    with multiprocessing.Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))
```

## Use instead
```python
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    with multiprocessing.Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))
```

## Fix
**Unsafe**: a `set_start_method` or launch at the top of the module moves to the top of the main guard that follows it.
Where there is none, one is made: it takes the statement and all that do something after it, while definitions and
imports stay at the top of the module, where the child finds them. Code under the guard does not run any more where
the module is imported.

## When it stays silent
- The call stands under `if __name__ == "__main__":`, or in a function that only the guard reaches.
- The module is never the main module of a program that spawns from it.
- `set_start_method(..., force=True)` at module level: it runs again and sets what is set. The children survive it.
- The processes are forked: a forked child imports nothing.

## References
- [Python: the spawn and forkserver start
  methods](https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-forkserver-start-methods)
- CUD105 for a call that comes too late in the parent.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD106",
    name="start-method-at-import",
    severity=Severity.ERROR,
    summary="set_start_method or the start of a spawned process runs again when a child imports the main module",
    outcomes={
        Kind.IMPORTED_AGAIN: "{subject} runs again in every spawned child: it belongs under the main guard",
    },
    repair=RepairLevel.ALWAYS,
)
