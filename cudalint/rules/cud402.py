"""# cuda-resident-dataset (CUD402)

A dataset holds CUDA tensors or a CUDA model, and a `DataLoader` forks workers that read it.

## What it does
Reports the `DataLoader(...)` when something reachable from its dataset (a tensor of a `TensorDataset`, an attribute
set in `__init__`, a model used to encode samples) is on the GPU and the workers are forked.

## Why it is bad
Each worker inherits the dataset and reads it through a driver that does not survive the fork:

    RuntimeError: Caught AcceleratorError in DataLoader worker process 0.
    ...
    CUDA error: initialization error

or `Cannot re-initialize CUDA in forked subprocess`. The thought behind it is sound: the data fits on the GPU, so
keep it there. But then workers have nothing to do, and the loader should not have any.

A graph or an encoder that the dataset shares with the training model is the hidden form: `model.cuda()` moves both.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| dataset on the GPU | outcome |
| --- | --- |
| forked workers, CUDA tensors or a CUDA model | `CUDA error: initialization error` or `Cannot re-initialize` |
| `multiprocessing_context="spawn"` | works, two epochs too, with the warning of CUDA IPC (CUD302) |
| `num_workers=0` | works |
| `num_workers=0, pin_memory=True` | `RuntimeError: cannot pin`: CUD403 |

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    dataset = TensorDataset(torch.rand(64, 8).cuda())
    model = torch.nn.Linear(8, 1).cuda()
    for (batch,) in DataLoader(dataset, batch_size=16, num_workers=2):
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

Where the samples need work on the CPU first, keep the dataset on the CPU, keep the workers, and move each batch in
the loop.

## Fix
**Unsafe**: `num_workers`, and what is of use only with workers, is left out: the main process reads its own GPU
memory. If the dataset does heavy work on the CPU for a sample, that is slower, and keeping the data on the CPU is the
better repair, one for a person. Where the number of workers is not written in the call, spawn is offered: it works, and
each worker pays a context to read memory that the parent already has.

## When it stays silent
- `num_workers=0`, the default.
- The workers are spawned: CUD302 speaks about the sharing.
- The dataset keeps a device (`torch.device("cuda")`, a string) and no tensor.
- The CUDA attribute is made lazily and only in the main process.

## References
- [PyTorch: multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
- CUD103 for the same with other launchers.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD402",
    name="cuda-resident-dataset",
    severity=Severity.ERROR,
    summary="a dataset holds CUDA tensors or a CUDA model, and forked DataLoader workers read it",
    outcomes={
        Kind.INHERITED_IN_LOADER: "forked DataLoader workers cannot read the CUDA data that they inherit ({subject})",
    },
    repair=RepairLevel.ALWAYS,
)
