"""# spawn-unsafe-worker (CUD108)

A spawned worker needs something that a fresh interpreter does not have.

## What it does
In programs that use a GPU framework it reports the start of a spawned (or fork-server) worker that

- is a lambda or a function defined inside another function;
- is a function or needs a class that a cell of a notebook defines: the main module of a kernel has no file, and the
  worker's is another one, in which nothing is defined;
- is given a generator or a coroutine, which is a function that goes on where it stands and cannot be pickled (tasks of
  pools and executors are pickled under any start method), or an object that holds a lock of `threading`, an open file or
  another resource of its process (the attribute that keeps it is named);
- is a function of a file that was imported by its path (`spec_from_file_location`), under a name that a fresh process
  does not know; unless `sys.modules` has the module, tasks of pools cannot be pickled under any start method;
- is a function whose name in its module is bound to something else, as by a decorator that starts it itself;
- reads a global that only the main program sets, or finds None where main or its functions made something else of it;
- reads an item of a dict, or an attribute of a class or of an object of a module, that only the main program put there,
  or finds None there;
- is given a lock or a queue that another context made, for instance the default fork context;
- gets a lock or a queue with a task of a pool or an executor, whatever context made it: only a process that is being
  started can be given one (`initargs`, `args` of a `Process`).

## Why it is bad
Spawn is the right answer to CUDA in workers, and it asks for more than fork did. A forked child inherits
everything; a spawned child gets what can be pickled and what it finds by importing modules. What it lacks shows as:

    AttributeError: Can't pickle local object 'main.<locals>.work'

    PicklingError: Can't pickle <function work at 0x7f...>: it's not the same object as __main__.work

    TypeError: cannot pickle 'generator' object

    NameError: name 'SETTINGS' is not defined

    AttributeError: Can't get attribute 'work' on <module '__main__' (built-in)>

    RuntimeError: Queue objects should only be shared between processes through inheritance

    RuntimeError: A SemLock created in a fork context is being shared with a process in a spawn context. This is not
    supported.

The `NameError` and the last `AttributeError` happen in the child, all others in the parent. With a `Process` the parent
then goes on all the same, and after the latter a `Pool` waits for ever, while its workers die and are replaced. Python
before 3.11.5 lets the lock pass: the worker dies when it looks for it, and who waits for its answer waits for ever.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| spawned worker | outcome |
| --- | --- |
| lambda or local function | `PicklingError` or `AttributeError` |
| a function whose name is bound to another object | `PicklingError: ... not the same object` |
| reads a global that only the main guard assigns | `NameError` in the child; `Process`: the parent exits with 0 |
| reads a global that the module leaves None and `main()` fills | `AttributeError` in the child; `Process`: the parent exits with 0 |
| reads an item that only `main()` put into a dict of the module | `KeyError` in the worker, raised again by `Pool.map` |
| reads an attribute of a class that is None until `main()` sets it | `AttributeError` in the child; `Process`: the parent exits with 0 |
| gets a queue or lock of the default context | `RuntimeError: A SemLock created in a fork context ...` |
| reads `model = Net().cuda()` of the module's top level | works; each child builds its own |

## Example
```python
import multiprocessing

import torch


def main():
    context = multiprocessing.get_context("spawn")
    results = context.Queue()

    def work(n):
        results.put(torch.ones(n, device="cuda").sum().item())

    worker = context.Process(target=work, args=(3,))
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


def work(results, n):
    results.put(torch.ones(n, device="cuda").sum().item())


def main():
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=work, args=(results, 3))
    worker.start()
    print(results.get())
    worker.join()


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**, each where it is seen to be enough:

- A queue or lock moves to the worker's context (`multiprocessing.Queue()` becomes
  `multiprocessing.get_context("spawn").Queue()`): other processes that share it may belong to the old one.
- A constant that only the main guard sets moves above it.
- `target=lambda: f(x)` becomes `target=f, args=(x,)`, and `lambda x: f(x, y)` becomes `functools.partial(f, y=y)`.
- `f = lambda x: ...` at the top of the module becomes a `def`.
- A local function or lambda moves to the top of the module. What it closes over becomes a parameter that is given by
  name, and is sent along: `functools.partial(work, scale=scale)`. The variable of a loop is then read when it is sent,
  not when the worker runs.

**Display** for functions of cells, which belong into a module beside the notebook (`%%writefile workers.py`); for
functions that cannot stand elsewhere: with a decorator, under a condition, with `nonlocal`, calling
themselves, closing over what is bound again later; and for other globals that only the main program sets.

## When it stays silent
- The worker is forked, and so inherits what it needs. `Process(args=(generator,))` works then.
- What a generator gives is sent: `list(rows)`, and `pool.map(work, rows)`, which goes through it in the parent.
- joblib with loky, and `multiprocess`: their pickling takes lambdas and local functions along by value, and
  functions of cells too.
- The global is set at the top level of the module, so that the child's import sets it too.
- An initializer, or the worker itself, sets it in the child, or the program asks whether it is there (`.get()`, `in`).
- A `Manager().Queue()` or a lock of a manager: these travel between contexts, and with tasks.
- Programs without a GPU framework. Spawn is their choice, and other tools speak about it.

## References
- [Python: programming guidelines for
  spawn](https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-forkserver-start-methods)
- CUD106 for the main module without a guard.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD108",
    name="spawn-unsafe-worker",
    severity=Severity.ERROR,
    summary="a spawned worker is a local function, reads a global that only main sets, or gets a foreign queue or lock",
    outcomes={
        Kind.UNPICKLABLE_TARGET: "{launcher} cannot pickle {subject}{detail} for another process",
        Kind.MISSING_GLOBAL: "the {launcher} worker starts afresh and reads {subject}, which only the main program sets",
        Kind.FOREIGN_LOCK: "a {detail} of the fork context is given to a spawned process",
    },
    repair=RepairLevel.SOMETIMES,
)
