"""# child-of-daemonic-worker (CUD107)

A worker that is a daemonic process starts a process or a pool of its own.

## What it does
Workers of `multiprocessing.Pool` and of `DataLoader` are daemonic, and so is a `Process(daemon=True)`. The rule
reports the start of a process or a pool in code that such a worker runs. The finding stands at the inner start.

It is a rule of this tool because it is what people try next: give every pool worker a process of its own for the
GPU.

## Why it is bad
Python refuses:

    AssertionError: daemonic processes are not allowed to have children

The reason is sound: a daemonic process is killed when its parent ends, and could not clean up its own children.
From a `Pool` or a `DataLoader` the error reaches the parent. In a daemonic `Process` it ends the child and nobody
hears of it.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| worker | starts a process | outcome |
| --- | --- | --- |
| of a `multiprocessing.Pool` | `Process`, `Pool` | `AssertionError` |
| of a `DataLoader` | `Process`, `Pool` | `AssertionError` |
| of a `ProcessPoolExecutor` | `Process`, `Pool` | works: these workers are not daemonic |

The start method makes no difference.

## Example
```python
import multiprocessing

import torch


def describe(n):
    print(n, torch.linspace(0.0, 1.0, n).std().item())


def work(n):
    child = multiprocessing.Process(target=describe, args=(n,))
    child.start()
    child.join()


def main():
    with multiprocessing.Pool(2) as pool:
        pool.map(work, [2, 3, 4])


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import torch


def describe(n):
    print(n, torch.linspace(0.0, 1.0, n).std().item())


def work(n):
    child = multiprocessing.Process(target=describe, args=(n,))
    child.start()
    child.join()


def main():
    with ProcessPoolExecutor(max_workers=2) as pool:
        list(pool.map(work, [2, 3, 4]))


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**:

- A `ProcessPoolExecutor` takes the place of the outer `Pool` where each use of the pool has an equivalent: `map`,
  `imap`, `imap_unordered`, `apply`, `close`, `join`, `terminate`. The two differ when a worker dies, and an executor
  waits for its tasks at the end.
- An outer `Process` loses its `daemon=True`, and so do ranks of `torch.multiprocessing.spawn`; the parent then waits for
  them.
- Where the outer workers have to stay (a `DataLoader`, a pool used by `starmap`, `apply_async` or with
  `maxtasksperchild`), the inner level gives way: a loader in a worker loads without workers of its own, a pool becomes
  one of threads, and so does a `Process` of which the program wants nothing that a thread does not have. Threads share
  the variables of their worker, and of their Python code one runs at a time.

**Display** elsewhere: for a child whose exit code is asked for, or that is sent its work through a queue. Often it
should not exist: a worker is already a process, and one level of them is enough.

## When it stays silent
- The worker belongs to a `ProcessPoolExecutor`, to `torch.multiprocessing.spawn`, or is a `Process` that is not
  daemonic.
- The worker starts threads, or other programs through `subprocess`.
- A `DataLoader` inside the worker has `num_workers=0`.
- joblib inside a daemonic worker: it notices and runs serially.

## References
- [Python: Process.daemon](https://docs.python.org/3/library/multiprocessing.html#multiprocessing.Process.daemon)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD107",
    name="child-of-daemonic-worker",
    severity=Severity.ERROR,
    summary="a pool or DataLoader worker, or a daemonic process, starts a process of its own",
    outcomes={
        Kind.DAEMON_CHILD: "{subject} in a daemonic worker: daemonic processes are not allowed to have children",
    },
    repair=RepairLevel.SOMETIMES,
)
