"""# inherited-cuda-object (CUD103)

A forked child touches the data of a CUDA tensor, model or array that it inherited from its parent.

## What it does
A fork copies the parent's memory, so a child can name everything the parent had: a global, a variable of a closure,
an attribute of `self`, an argument of `Process(args=...)` or `Pool(initargs=...)`. The rule reports the launch when
such an object lives on the GPU and the child reads or writes its data.

## Why it is bad
The Python object is copied; the GPU memory it points to is not reachable through the child's broken driver:

    torch.AcceleratorError: CUDA error: initialization error

or, when the access goes through torch's own check, `Cannot re-initialize CUDA in forked subprocess`. From a
`Process` nothing is raised at all: the child dies with exit code 1 and the parent ends with exit code 0.

It is easy to overlook, because half of the object works: `.shape` prints, and the next line fails.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method fork, parent initialised by making the tensor.

| what the child does with the inherited object | outcome |
| --- | --- |
| `.shape`, `.device`, `.dtype`, `.is_cuda`, `.numel()` | works |
| `.cpu()`, `.sum()`, indexing, `str()` in a `Pool` worker | `CUDA error: initialization error` |
| data of a CUDA tensor or model from `Process(args=...)` | the child dies, the parent exits with 0 |
| the same after `model.share_memory()` | the child dies, the parent exits with 0 |

`share_memory()` is about host memory; it does nothing for a model on the GPU.

An array of JAX 0.11.2 (H100, driver 580): arithmetic with it waits for ever in the child, whether or not the result is
waited for; a jitted function that was compiled before the fork ends the child by SIGABRT. Neither raises an exception.

## Example
```python
import multiprocessing

import torch

TABLE = torch.rand(4, 8).cuda()


def total(row):
    return TABLE[row].sum().item()


def main():
    with multiprocessing.Pool(2) as pool:
        print(pool.map(total, range(4)))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch

TABLE = torch.rand(4, 8)


def total(row):
    return TABLE[row].sum().item()


def main():
    with multiprocessing.Pool(2) as pool:
        totals = pool.map(total, range(4))
    print(torch.tensor(totals, device="cuda").mean().item())


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**, whichever of these holds when the changed program is analysed: the launch gets a spawn context, or, for
arguments of a `Process` and `initargs`, a copy is sent: `.cpu()` for tensors, `copy.deepcopy(model).cpu()` for models,
which move in place. A global of the module is built again in each spawned child, with one context each; spawn is not
offered where the child would find that global empty. A copy is not offered for a worker that changes it in place.

**Display** for `os.fork()`, closures and globals that only the main program sets: whether the child wants the data on
the CPU, a copy of its own on the GPU, or no part in it at all is a decision about the program.

## When it stays silent
- The child only asks for shape, type or device, or never touches the object.
- The object is on the CPU when the worker is forked, also if it moves to the GPU in the parent later.
- The worker is started by spawn: the module builds its own object (several workers: CUD201).
- The work runs in threads.

## References
- [PyTorch: CUDA in
  multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
- CUD301 for values that are pickled to the worker, CUD402 for datasets.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD103",
    name="inherited-cuda-object",
    severity=Severity.ERROR,
    summary="a forked child touches the data of a CUDA object that it inherited from its parent",
    outcomes={
        Kind.INHERITED_CUDA: "a forked {launcher} worker uses GPU memory that it inherited: {subject} fails there",
    },
    repair=RepairLevel.SOMETIMES,
)
