"""# cuda-in-dataloader-worker (CUD401)

A `DataLoader` worker uses CUDA, and it is forked after CUDA was initialised or queried.

## What it does
Follows what a loader's workers run: `__getitem__`, `__iter__`, the transforms, `collate_fn` and `worker_init_fn`.
It reports the `DataLoader(...)` when that code reaches CUDA and the workers fork from a parent that has touched
CUDA. There are three ways to get there:

- the parent used CUDA before, for instance to build the model;
- `pin_memory=True`: starting the iterator asks for CUDA before it forks;
- the first epoch: the batches arrive on the GPU, that initialises CUDA in the parent, and the second epoch forks
  again.

Where the parent's state cannot be seen, the finding is a warning.

## Why it is bad
    RuntimeError: Caught RuntimeError in DataLoader worker process 0.
    ...
    RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the
    'spawn' start method

The third way passes every short test, and fails after the first epoch. And the calls hide well: a GPU decoder, a
`torch.load` of a checkpoint that was saved on the GPU, `.pin_memory()` in `__getitem__`, a `device` kept on the
dataset.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method fork, `num_workers` above 0.

| loader | outcome |
| --- | --- |
| CUDA in `__getitem__`, `collate_fn` or `worker_init_fn`, parent initialised or `pin_memory=True` | `RuntimeError` |
| the same, parent untouched, one epoch | works |
| the same, second epoch | `RuntimeError` |
| the same with `persistent_workers=True` | works: the workers fork once |
| `.pin_memory()` in `__getitem__`, parent initialised | `CUDA error: initialization error` |
| any of these with `multiprocessing_context="spawn"` | works |
| CPU dataset, `pin_memory=True`, `.cuda()` in the loop | works: the standard pattern |

## Example
```python
import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), float(index)).cuda()


def main():
    model = torch.nn.Linear(8, 1).cuda()
    loader = DataLoader(Samples(), batch_size=16, num_workers=2)
    for batch in loader:
        print(model(batch).mean().item())


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), float(index))


def main():
    model = torch.nn.Linear(8, 1).cuda()
    loader = DataLoader(Samples(), batch_size=16, num_workers=2, pin_memory=True)
    for batch in loader:
        print(model(batch.cuda(non_blocking=True)).mean().item())


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**, and preferred: where `__getitem__`, `__iter__` or the collate function moves what it returns to the GPU, and
the loop over the loader is seen, the workers stay on the CPU; the loop moves each batch with `non_blocking=True`, and
the loader pins. The workers then cost no context (CUD201). A batch may be a tensor, a tuple, a dictionary or a list of
which each part was moved. Other code that takes samples from the same dataset gets them on the CPU, too, and that is why
it is not safe; where another loader or call in sight does, it is not offered.

Elsewhere `multiprocessing_context="spawn"` is added to the loader. **Safe** only where the program fails on every path
and spawn is proven to work: a dataset that pickles, a launch under a main guard, workers that surely exist (with
`num_workers=0` the argument raises `ValueError`). Otherwise **unsafe**. **Display** where a library makes the loader.

## When it stays silent
- The workers stay on the CPU, whatever the loop does with the batches.
- `num_workers=0`, the default: the code runs in the main process.
- `torch.cuda.manual_seed_all` in `worker_init_fn`: it is only queued.
- Spawned workers; persistent workers whose parent was untouched when they were forked.

## References
- [PyTorch: multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
- [pytorch#17359](https://github.com/pytorch/pytorch/issues/17359), the second epoch
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD401",
    name="cuda-in-dataloader-worker",
    severity=Severity.ERROR,
    summary="the code of a forked DataLoader worker reaches CUDA after the parent initialised or queried it",
    outcomes={
        Kind.CUDA_IN_LOADER_FORK: "a forked DataLoader worker uses CUDA ({subject}) after the main process did",
    },
    repair=RepairLevel.SOMETIMES,
)
