"""# default-device-with-dataloader (CUD404)

The default device or the default tensor type is CUDA, and a `DataLoader` shuffles, its workers make tensors, or
`random_split()` draws.

## What it does
Reports a `DataLoader(...)` iterated after `torch.set_default_device("cuda")` or
`torch.set_default_tensor_type(torch.cuda.FloatTensor)`, when it has `shuffle=True` without a generator on the GPU,
or forked workers that make a tensor. Reports `random_split(...)` there too, unless its generator is on the GPU.

## Why it is bad
The setting reaches code that never asked for it. The sampler draws its permutation with a CPU generator, but the
permutation is now made on the GPU:

    RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'

In forked workers each new tensor is a CUDA tensor, and the failure of CUD401 follows, although nothing in the
dataset mentions CUDA: `Cannot re-initialize CUDA in forked subprocess`. The dataset need not even make the tensor:
when samples are Python numbers, labels for instance, `default_collate` makes one of them, in the worker.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12.

| after `torch.set_default_device("cuda")` | outcome |
| --- | --- |
| `shuffle=True`, any number of workers | `Expected a 'cuda' device type for generator but found 'cpu'` |
| `shuffle=True, generator=torch.Generator(device="cuda")` | works |
| the same, `generator=torch.Generator()` | the same error |
| `random_split(...)`, also with `generator=torch.Generator().manual_seed(1)` | the same error |
| `random_split(..., generator=torch.Generator(device="cuda"))` | works |
| forked workers, `__getitem__` makes a tensor | `Cannot re-initialize CUDA in forked subprocess` |
| forked workers, samples are Python numbers | `Cannot re-initialize CUDA in forked subprocess` |
| forked workers that only index CPU tensors, no shuffle | works |
| the same, spawned | works |

Setting the default device initialises nothing by itself. Iterating a loader then does, before the workers fork.

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    dataset = TensorDataset(torch.rand(64, 8))
    torch.set_default_device("cuda")
    model = torch.nn.Linear(8, 1)
    for (batch,) in DataLoader(dataset, batch_size=16, shuffle=True):
        print(model(batch.cuda()).mean().item())


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    dataset = TensorDataset(torch.rand(64, 8))
    model = torch.nn.Linear(8, 1, device="cuda")
    for (batch,) in DataLoader(dataset, batch_size=16, shuffle=True):
        print(model(batch.cuda()).mean().item())


if __name__ == "__main__":
    main()
```

`with torch.device("cuda"):` around the construction of the model is the short form for a large one; it ends before
the loader starts.

## Fix
For a loader that shuffles, `generator=torch.Generator(device="cuda")` is added, on the default device as the program
writes it. **Unsafe**: torch's own generator begins with a random seed in each process and obeys `torch.manual_seed()`,
whereas each new one begins with the same seed, so that the order is the same in every run until the generator is
seeded. For a loader whose workers make tensors `num_workers` is left out, which is
**unsafe**: samples are then made in the main process. The better repair is one for a person: no default device, and a
device where it is wanted.

## When it stays silent
- The loader neither shuffles nor has workers.
- It shuffles with a generator on the GPU.
- Its workers only index tensors that exist already, a `TensorDataset` on the CPU for instance.
- The default device is set back to the CPU before the loader is iterated, or was a `with` block that has ended.
- The default device is not known to be CUDA.

## References
- [PyTorch: set_default_device](https://docs.pytorch.org/docs/stable/generated/torch.set_default_device.html)
- [pytorch#21092](https://github.com/pytorch/pytorch/issues/21092)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD404",
    name="default-device-with-dataloader",
    severity=Severity.ERROR,
    summary="the default device or tensor type is CUDA, and a DataLoader shuffles or its workers make tensors",
    outcomes={
        Kind.DEFAULT_DEVICE_LOADER: "the default device is CUDA: this DataLoader cannot {detail}",
        Kind.DEFAULT_DEVICE_SPLIT: "the default device is CUDA: random_split() draws with a generator on the CPU",
    },
    repair=RepairLevel.ALWAYS,
)
