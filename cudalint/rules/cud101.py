"""# cuda-in-forked-worker (CUD101)

A worker that was started by fork uses CUDA, although its parent had already initialised or queried CUDA.

## What it does
Follows the program from its entry to the place where a worker is forked, and on into the worker's code. It reports
the launch when the parent had touched CUDA by then (or the fork server had, through its preloads, or from Python 3.14
through importing main) and the worker reaches CUDA.

"Touched" is wider than "used". A question such as `torch.cuda.is_available()` is enough, and so is another
framework in the same process: the CUDA driver is initialised once per process, whoever asked for it.

## Why it is bad
CUDA does not survive a fork. The child inherits a driver that takes itself for initialised and is not. With torch:

    RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the
    'spawn' start method

Other messages of the same failure: `CUDA error: initialization error` (torch, where its own check is passed by),
`cudaErrorInitializationError: initialization error` (CuPy), `CudaDriverError: CUDA initialized before forking`
(numba), `CUDA_ERROR_NOT_INITIALIZED` (TensorFlow), `CUDA driver initialization failed` (torch, after another
framework).

The silent forms are worse. A `Process` dies with exit code 1 while the parent ends with exit code 0. A worker that
catches the error and falls back carries on with the CPU, and JAX falls back without being asked.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method fork; the worker uses CUDA.

| the parent did | and started the worker by | outcome |
| --- | --- | --- |
| any initialising call, or only `torch.cuda.is_available()` | `Pool.map`, `ProcessPoolExecutor` | `RuntimeError` |
| the same | joblib with `backend="multiprocessing"` | `RuntimeError` |
| the same | `Process`, `os.fork` | the child dies, the parent exits with 0 |
| the same | `Pool(initializer=...)` that uses CUDA | hang: workers die and are replaced for ever |
| a call of torch, CuPy 14.2, numba or JAX 0.11 | `Pool`, worker uses another of them | fails; JAX falls back |
| a JAX operation | `Pool`, worker uses JAX | hang |
| a TensorFlow 2.21 operation | `Pool`, worker uses TensorFlow | the worker aborts (-6), the pool hangs |
| `torch.cuda.device_count()`, `torch.device("cuda")`, `manual_seed`, `memory_allocated()` | any | works |
| nothing | any | works |

`if torch.cuda.is_available():` in the worker is no guard: it still answers True there, and the next line fails.

## Example
```python
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    if torch.cuda.is_available():
        print("running on a GPU")
    with multiprocessing.Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    if torch.cuda.is_available():
        print("running on a GPU")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))


if __name__ == "__main__":
    main()
```

One worker, because each has a context of its own on the GPU (CUD201). More are right where each has a GPU of its own.

## Fix
The launch gets a spawn context: `multiprocessing.get_context("spawn").Pool(...)`, `mp_context=` for an executor.
The fix is **safe** only where the program fails on every path and spawn is proven to work: the worker can be
imported, reads no global that only the main program sets, the launch stands under a guard, its arguments pickle, and
its queues and locks come from the same context. Otherwise it is **unsafe**, with the reason shown. A method of an object
travels with the object: where that holds what no pickler takes (a process that was started, a pool, a thread, a lock, a
file, a module), spawn is not offered. Forked workers of joblib become threads, **unsafe**, where loky cannot carry what
they read: a function with a cache, a context variable, a lock. A worker that loads a file of tensors which the program saved from
the GPU loads it onto the host (`map_location="cpu"`), **unsafe**, where that is all that needs CUDA. In a notebook
spawn is offered only where the worker's code lies in a module: a fresh interpreter cannot import cells.

## When it stays silent
- The worker is started by spawn, or by a fork server whose preloads leave CUDA alone.
- The parent never touched CUDA, or asked only questions that the driver does not notice
  (`torch.cuda.device_count()`).
- The parent asked `is_available()` with `PYTORCH_NVML_BASED_CUDA_CHECK=1` set before. Importing Lightning 2.6 sets
  it.
- The worker uses CPU tensors only, or asks `torch.cuda.is_initialized()` first, which is a real guard.
- The pool was made before the parent touched CUDA and never replaces a worker (`maxtasksperchild` does).
- Threads, `subprocess`, and joblib's loky backend, whose workers are fresh interpreters.

## References
- [PyTorch: CUDA in
  multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
- [Python: contexts and start
  methods](https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods)
- CUD102 where the parent cannot be seen; CUD103 and CUD301 where a CUDA value travels; CUD401 for `DataLoader`.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind, Outcome
from cudalint.rules.base import RepairLevel, Rule, measured


def _seen(outcome: Outcome) -> Severity | None:
    """Where the caller is unseen, CUD102 speaks."""
    if outcome.assumed or outcome.detail == "unseen" or (not outcome.certain and not outcome.caught):
        return None
    return measured(outcome)


RULE = Rule(
    code="CUD101",
    name="cuda-in-forked-worker",
    severity=Severity.ERROR,
    summary="a worker started by fork uses CUDA after its parent initialised or queried CUDA",
    outcomes={
        Kind.CUDA_IN_FORK: "{subject} in a worker that {launcher} forked after CUDA was used: CUDA cannot be re-initialised there",
    },
    grade=_seen,
    repair=RepairLevel.SOMETIMES,
)
