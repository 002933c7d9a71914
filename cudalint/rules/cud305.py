"""# unpicklable-cuda-object (CUD305)

A CUDA object that cannot be pickled is passed to another process.

## What it does
Reports a stream, event, CUDA graph or numba device array in an argument that has to be pickled: for a pool, an
executor, a spawned `Process`, joblib, a queue or a pipe; a numba device array also where a worker returns it. And a CUDA tensor or a model that is stored in a dict, a list or
a queue of a `Manager()` and read from it: the manager's process would have to send on what it received. The same of any
process that sends on a tensor or a model that it received, through a queue, a pipe, or as an argument. And a process,
or a thread of it, that takes from a queue or a pipe the CUDA tensor that it put there itself.

## Why it is bad
These objects name something inside one process and one context; they have no meaning elsewhere, so their libraries
refuse to pickle them. pickle says `TypeError: cannot pickle 'Stream' object`, joblib makes a `PicklingError` of it,
and a numba array ends in

    TypeError: no default __reduce__ due to non-trivial __cinit__

The error names the object, but rarely the argument or attribute it sits in; that is what the finding adds. A stream
kept as `self.stream` travels with each bound method of `self`.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| object | sent to | outcome |
| --- | --- | --- |
| `torch.cuda.Stream`, `torch.cuda.Event` | joblib with loky | `PicklingError` |
| the same, and `torch.cuda.CUDAGraph` | `pickle` | `TypeError: cannot pickle 'Stream' object` |
| numba device array | spawn `Pool` | `TypeError: no default __reduce__ ...` |
| the same | a queue of a spawned `Process` (2 x H200) | the same `TypeError` in the feeder thread; nothing arrives |
| CuPy array | joblib with loky | works, through a host copy |
| CUDA tensor | `Manager().dict()`, `.list()`, `.Queue()`, and read again (1 x H100) | `RemoteError: ... Attempted to send CUDA tensor received from another process` |
| CUDA tensor that was received | a third process (1 x H100) | `RuntimeError: Attempted to send CUDA tensor received from another process` |
| CUDA tensor, parameter, model | a queue or pipe of multiprocessing, and taken out by the process that put it there (1 x H200, torch 2.11) | `AcceleratorError: CUDA error: invalid device context`, whatever the start method |
| CUDA tensor | spawn `Pool` | works, through CUDA IPC: CUD302 |

## Example
```python
import multiprocessing

import numpy as np
from numba import cuda


def total(values):
    return float(values.copy_to_host().sum())


def main():
    on_gpu = cuda.to_device(np.arange(8.0))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(total, [on_gpu]))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import numpy as np
from numba import cuda


def total(values):
    on_gpu = cuda.to_device(values)
    return float(on_gpu.copy_to_host().sum())


def main():
    values = np.arange(8.0)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(total, [values]))


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe** for numba device arrays where both ends are seen: `.copy_to_host()` where they leave, `cuda.to_device(...)`
at the top of the worker.

**Display** for streams, events and graphs: they are made where they are used, in the worker. An object that must keep
such an attribute can leave it out of its pickle with `__getstate__`. **Display**, too, for what a manager holds: store a
copy on the host (`x.cpu()`), and move it where it is read. What was received is sent on as a copy: `x.clone()`. Threads of one process share a `queue.Queue`.

## When it stays silent
- The object is made in the worker.
- It goes to a thread, or is inherited by a forked `Process` that never touches it.
- The class that holds it leaves it out in `__getstate__` or `__reduce__`.
- CUDA tensors and models that go to a process directly, and CuPy arrays, which do pickle.
- What is computed from a received tensor, and a copy of it (`clone()`).
- A `queue.Queue`, which hands over the tensor itself, also between threads.

## References
- [numba: memory management](https://nvidia.github.io/numba-cuda/user/memory.html)
- [PyTorch: torch.cuda.Stream](https://docs.pytorch.org/docs/stable/generated/torch.cuda.Stream.html)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD305",
    name="unpicklable-cuda-object",
    severity=Severity.ERROR,
    summary="a stream, event, graph, numba device array, or a tensor that was received, is sent to a process and cannot be pickled",
    outcomes={
        Kind.UNPICKLABLE_CUDA: "a CUDA object that cannot be pickled is sent to another process{detail}",
        Kind.OWN_MEMORY: "a process takes back the CUDA tensor that it sent itself, and cannot open its own memory",
    },
    repair=RepairLevel.SOMETIMES,
)
