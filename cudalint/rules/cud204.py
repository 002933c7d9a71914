"""# device-object-without-effect (CUD204)

`torch.cuda.device(i)` is written as a statement, where it does nothing.

## What it does
Reports a call of `torch.cuda.device(...)` whose result is dropped: not the subject of a `with`, not assigned, not
passed on.

## Why it is bad
`torch.cuda.device` is a context manager. Calling it makes an object that remembers a number; only `with` selects
the device. As a statement it reads like `torch.cuda.set_device(i)`, raises nothing, and the program goes on with
GPU 0.

In a program of one process this costs speed or memory on the wrong GPU. In a rank it means that all ranks share GPU
0, and the first collective fails:

    torch.distributed.DistBackendError: NCCL error in: ...
    Duplicate GPU detected : rank 1 and rank 0 both on CUDA device ...

## What hardware showed
Two H200, driver 580, torch 2.11, Python 3.12.

| program | device of a new `device="cuda"` tensor |
| --- | --- |
| `torch.cuda.device(1)` as a statement | `cuda:0` |
| inside `with torch.cuda.device(1):` | `cuda:1` |
| after `torch.cuda.set_device(1)` | `cuda:1` |

The statement does not even initialise CUDA.

## Example
```python
import torch


def main():
    torch.cuda.device(1)
    x = torch.ones(3, device="cuda")
    print(x.device)


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch


def main():
    with torch.cuda.device(1):
        x = torch.ones(3, device="cuda")
    print(x.device)


if __name__ == "__main__":
    main()
```

For a whole process, such as a rank, `torch.cuda.set_device(1)` selects the device once.

## Fix
**Unsafe**: the statement becomes `torch.cuda.set_device(i)`; CuPy's `Device(i)` gets `.use()`. This is nearly always
what was meant, and it changes which GPU the program uses, on a machine where that GPU may be busy or missing.
**Display** where the device may have no number: `set_device` refuses `torch.device("cuda")`.

## When it stays silent
- `with torch.cuda.device(i):`, also through `contextlib.ExitStack.enter_context`.
- The object is kept and entered later.
- `torch.device("cuda:1")`, a value with another purpose.
- The device has no number (`torch.cuda.device("cuda")`), or it is the one that is selected: nothing else was meant.
- A function of the same name that is not torch's.

## References
- [PyTorch: torch.cuda.device](https://docs.pytorch.org/docs/stable/generated/torch.cuda.device.html)
- [PyTorch: torch.cuda.set_device](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_device.html)
- [pytorch#1608](https://github.com/pytorch/pytorch/issues/1608), the same surprise
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD204",
    name="device-object-without-effect",
    severity=Severity.ERROR,
    summary="torch.cuda.device(i) is written as a statement, which selects nothing",
    outcomes={
        Kind.DEVICE_STATEMENT: "a device object as a statement selects nothing: GPU 0 stays the current device",
    },
    repair=RepairLevel.ALWAYS,
)
