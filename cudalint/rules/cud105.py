"""# start-method-too-late (CUD105)

`set_start_method` is called when the start method is already fixed, or for a library that does not listen to it.

## What it does
Reports two calls of `set_start_method`:

- one that comes after a context, pool, queue, lock or process of the default context was made, without
  `force=True`;
- one meant for a launcher that has a default of its own, which then still forks and fails on CUDA.

## Why it is bad
The default context of `multiprocessing` is chosen once, by whoever needs it first; a `Queue()` or a `Lock()` is
enough. After that the call raises:

    RuntimeError: context has already been set

The usual reaction is `try: ... except RuntimeError: pass`, which hides the message and keeps fork. The program then
fails later with `Cannot re-initialize CUDA in forked subprocess`, far from the cause.

The second form raises nothing where it stands: the call succeeds, the library ignores it, and its workers are
forked.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| program | outcome |
| --- | --- |
| `set_start_method("spawn")` after a `Queue`, `Pool` or `Lock` was made | `context has already been set` |
| the same with `force=True` | works |
| first statement of the main guard | works |

`multiprocessing` and `torch.multiprocessing` share one start method. Setting it reaches `Process`, `Pool`,
`ProcessPoolExecutor` and `DataLoader`. It does not reach joblib's loky (which needs no help), `multiprocess`
(datasets, pathos), billiard (celery), gunicorn or uwsgi.

## Example
```python
import multiprocessing

import torch


def work(results):
    results.put(torch.ones(3, device="cuda").sum().item())


def main():
    results = multiprocessing.Queue()
    multiprocessing.set_start_method("spawn")
    worker = multiprocessing.Process(target=work, args=(results,))
    worker.start()
    print(results.get())
    worker.join()


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch


def work(results):
    results.put(torch.ones(3, device="cuda").sum().item())


def main():
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=work, args=(results,))
    worker.start()
    print(results.get())
    worker.join()


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**, the first of these that holds when the changed program is analysed:

- The call, with a `try` around nothing else, moves to the top of the main guard, or above what settles the method in
  its own function. Its argument has to be a constant, and no condition may decide on it.
- The earlier of two choices goes.
- What settles the method too early (a lock at the top of a module) is made by `get_context("spawn")`.
- A choice that does not reach the launcher is made for the library that launches:
  `multiprocess.set_start_method("spawn")`.
- Where a library chooses a method as it is imported (torchrl), and no object is older than that, the call gets
  `force=True`.

All that is made after the call then belongs to the new method. **Display** elsewhere. Otherwise `force=True` is not
offered: it silences the error, and a queue made before still belongs to the old context and fails when a spawned
process receives it (CUD108).

## When it stays silent
- The call comes first, or passes `force=True` before anything that matters is made.
- All objects come from `get_context(...)`: they never touch the default.
- The method is set again to what it is, with `force=True`.
- The launcher that ignores the call does not use CUDA in its workers.

## References
- [Python:
  set_start_method](https://docs.python.org/3/library/multiprocessing.html#multiprocessing.set_start_method)
- CUD106 for a call that a spawned child repeats.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD105",
    name="start-method-too-late",
    severity=Severity.ERROR,
    summary="set_start_method is called after the start method is fixed, or for a library that does not listen to it",
    outcomes={
        Kind.METHOD_ALREADY_SET: "the start method is set too late: the context has already been set",
        Kind.METHOD_WITHOUT_EFFECT: "this start method does not reach {launcher}: it belongs to {detail}, which still forks",
    },
    repair=RepairLevel.ALWAYS,
)
