"""# pin-memory-of-cuda-tensor (CUD403)

A `DataLoader` is told to pin batches that are already on the GPU.

## What it does
Reports a `DataLoader(..., pin_memory=True)` whose dataset or `collate_fn` yields CUDA tensors, in lists, tuples and dicts, or
in an object whose own `pin_memory()`, which the loader calls, pins one.

## Why it is bad
Pinned memory is host memory that the GPU can read directly; it speeds up the copy from host to GPU. A tensor on the
GPU has nothing to pin, and the first batch fails:

    RuntimeError: cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned

The number of workers has no part in it. `num_workers=0`, often recommended for datasets on the GPU, fails like this
when `pin_memory=True` is left over from the version before.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| loader | outcome |
| --- | --- |
| CUDA dataset, `num_workers=0`, `pin_memory=True` | `RuntimeError: cannot pin ...` |
| CUDA dataset, a batch class whose `pin_memory()` pins its tensors | `RuntimeError: cannot pin ...` |
| CUDA dataset, `num_workers=0` | works |
| CPU dataset, `pin_memory=True`, `.cuda()` in the loop | works: the standard pattern |

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    dataset = TensorDataset(torch.rand(64, 8).cuda())
    model = torch.nn.Linear(8, 1).cuda()
    for (batch,) in DataLoader(dataset, batch_size=16, pin_memory=True):
        print(model(batch).mean().item())


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    dataset = TensorDataset(torch.rand(64, 8).cuda())
    model = torch.nn.Linear(8, 1).cuda()
    for (batch,) in DataLoader(dataset, batch_size=16):
        print(model(batch).mean().item())


if __name__ == "__main__":
    main()
```

## Fix
`pin_memory=True` is removed. **Safe** where every batch is on the GPU on every path: such a program cannot be one
that works today. **Unsafe** where the device depends on something, a command line option for instance: there the
argument is right for one of the cases, and `pin_memory=not on_gpu` may be what you want. Unsafe, too, where the
argument is kept in a dictionary, from which other loaders may take it.

## When it stays silent
- The batches are on the CPU.
- `pin_memory` is absent, False, or a value that cannot be seen.
- The dataset keeps CUDA tensors for itself and yields CPU tensors.
- The workers fork, and so fail before any batch exists: CUD401 or CUD402 says so.

## References
- [PyTorch: memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD403",
    name="pin-memory-of-cuda-tensor",
    severity=Severity.ERROR,
    summary="pin_memory=True is given to a DataLoader whose batches are already on the GPU",
    outcomes={
        Kind.PIN_OF_CUDA: "pin_memory=True, but the batch is on the GPU: only dense CPU tensors can be pinned",
    },
    repair=RepairLevel.ALWAYS,
)
