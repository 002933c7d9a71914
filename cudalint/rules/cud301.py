"""# cuda-value-to-forked-worker (CUD301)

A CUDA value is pickled to a worker that was forked after CUDA had been initialised.

## What it does
Reports the call that hands the value over: `.map`, `.submit`, `.apply_async`, `Parallel(...)(...)`, `q.put`,
`conn.send`. The value may be an argument or an item of the iterable, and it may hide: in a `functools.partial`,
behind a bound method of an object that holds a model, inside a list, tuple, dict or attribute.

## Why it is bad
torch does not pickle the data of a CUDA tensor. It sends a handle to the GPU memory, and the receiver opens it
through the driver, which in such a worker does not work. The failure happens while the worker unpickles its task,
outside of any `try` of yours, and a `Pool` has no way to report that: the task is lost, and `map` waits for ever.

With an executor the message arrives: `Cannot re-initialize CUDA in forked subprocess`. With a `Process` that reads
from a queue the child dies, and the parent ends with exit code 0.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method fork, the value made in the parent.

| channel | outcome |
| --- | --- |
| `Pool.map` argument; bound method of an object with a CUDA model; `functools.partial` over one | hang |
| joblib `backend="multiprocessing"`, argument | hang |
| `ProcessPoolExecutor` argument | `RuntimeError` in the parent |
| `Queue.put`, `Pipe.send` to a child forked after CUDA | the child dies, the parent exits with 0 |
| the same to a child forked before CUDA | works |
| a worker returns a CUDA tensor, only the worker used CUDA | works |

## Example
```python
import multiprocessing

import torch


def total(row):
    return row.sum().item()


def main():
    table = torch.rand(4, 8, device="cuda")
    with multiprocessing.Pool(2) as pool:
        print(pool.map(total, [table[0], table[1]]))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch


def total(row):
    return row.sum().item()


def main():
    table = torch.rand(4, 8, device="cuda").cpu()
    with multiprocessing.Pool(2) as pool:
        print(pool.map(total, [table[0], table[1]]))


if __name__ == "__main__":
    main()
```

Workers that need the GPU for it have to be spawned, and the value still travels better as a CPU tensor (CUD302).

## Fix
**Unsafe** where the value is seen in the call, also inside lists, tuples, dicts, generators, `partial` and `delayed`:
`.cpu()` is put behind each tensor (`.get()` for CuPy, `jax.device_get` for JAX, `copy.deepcopy(model).cpu()` for a
model, which would move in place). The worker then computes on the CPU, with values of its own.

Where the value hides in an object, or where the worker uses CUDA itself, the launch gets a spawn context instead, also
**unsafe**. **Display** where neither holds.

## When it stays silent
- The value is on the CPU when it is sent (`.cpu()`, `.numpy()`, `.tolist()`, `.item()`).
- The worker was forked before CUDA was touched, or spawned: see CUD302.
- Thread pools, which pickle nothing.
- Arguments of a forked `Process`: they are inherited, not pickled (CUD103).

## References
- [PyTorch: sharing CUDA tensors](https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-cuda-tensors)
- CUD304 for a producer that ends too early.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD301",
    name="cuda-value-to-forked-worker",
    severity=Severity.ERROR,
    summary="a CUDA value is pickled to a worker that forked after CUDA was initialised",
    outcomes={
        Kind.CUDA_TO_FORK: "a CUDA value is pickled to a {launcher} worker that forked after CUDA was used",
    },
    repair=RepairLevel.ALWAYS,
)
