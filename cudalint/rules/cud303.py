"""# cuda-value-through-joblib (CUD303)

A CUDA value goes to a joblib (loky) worker or comes back from one, and is copied through host memory on the way.

## What it does
Reports the outer `Parallel(...)(...)` call when an argument, a value captured by the function, or a result lives on
the GPU and the backend is loky, joblib's default.

## Why it is bad
Nothing fails. loky pickles with cloudpickle, which knows nothing of CUDA IPC: the tensor is copied to the host,
written as bytes, sent through a pipe, and copied to the GPU again in each worker, for each task. The program looks
as if the workers shared a tensor; in truth each of them owns a full copy, on top of its own CUDA context.

The memory mapping with which joblib makes large numpy arrays cheap does not apply to CUDA tensors.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, CuPy 14.2.

| value | outcome |
| --- | --- |
| CUDA tensor as argument, captured by a lambda, or returned | works, through the host |
| 1 GiB to two workers | 12 s |
| CuPy array as argument | works, through the host |
| `torch.cuda.Stream` or `Event` as argument | `PicklingError`: CUD305 |
| CUDA tensor with `backend="multiprocessing"`, parent initialised | hang: CUD301 |

## Example
```python
import torch
from joblib import Parallel, delayed


def total(table, row):
    return table[row].sum().item()


def main():
    table = torch.rand(4, 8, device="cuda")
    print(Parallel(n_jobs=2)(delayed(total)(table, row) for row in range(4)))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch
from joblib import Parallel, delayed


def total(table, row):
    return table[row].sum().item()


def main():
    table = torch.rand(4, 8, device="cuda")
    print(Parallel(n_jobs=2, prefer="threads")(delayed(total)(table, row) for row in range(4)))


if __name__ == "__main__":
    main()
```

Threads share the tensor and the context. For work on the CPU, `table.cpu().numpy()` lets joblib map the memory
instead of copying it.

## Fix
**Unsafe** where both ends are seen: the copies that joblib makes become visible ones, `.cpu()` where the value leaves
and `.to(...)` in the worker, or around the call that gives the results.

**Display** where the value hides in an object or a closure, and for a worker that writes in place, whose changes are
lost either way: `prefer="threads"` shares the value without a copy. Threads are the wrong change where the function
is bound by Python code or not safe for threads.

## When it stays silent
- The arguments are on the CPU, and the worker moves them itself (several workers: CUD201).
- `prefer="threads"`, `require="sharedmem"`, or the threading backend.
- `n_jobs=1`: nothing is sent.
- The result is a number: `.item()`, `.cpu()`, `.tolist()` in the worker.

## References
- [joblib: embarrassingly parallel loops](https://joblib.readthedocs.io/en/stable/parallel.html)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule, warned

RULE = Rule(
    code="CUD303",
    name="cuda-value-through-joblib",
    severity=Severity.WARNING,
    summary="an argument, capture or result of a joblib worker is on the GPU and is copied through the host",
    outcomes={
        Kind.CUDA_THROUGH_JOBLIB: "a CUDA value crosses through joblib: it is copied to the host and back",
    },
    grade=warned,
    repair=RepairLevel.SOMETIMES,
)
