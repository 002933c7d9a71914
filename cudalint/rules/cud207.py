"""# hidden-gpu (CUD207)

A GPU is named by a number that none of the visible ones has.

## What it does
Reports the use of a GPU by its number, in torch or CuPy,

- where the program has set `CUDA_VISIBLE_DEVICES` before, in time, and leaves fewer;
- where ranks that see one GPU each, by their number, name it by that number, too;
- as a warning, where the number is one that the variable lists: `int(os.environ["CUDA_VISIBLE_DEVICES"].split(",")[0])`,
  or that `ray.get_gpu_ids()` gives;
- as a warning, any GPU in a task or an actor that asks ray for none (`num_gpus`): before 2.56, ray sets the variable to
  `""` there.

## Why it is bad
The variable renumbers: the GPUs that it names are 0, 1, 2 for the process, in that order, whatever the system and
`nvidia-smi` call them. With `CUDA_VISIBLE_DEVICES=2,3` there is no `cuda:2`; what was meant is `cuda:0`.

    RuntimeError: CUDA error: invalid device ordinal

On a machine with fewer GPUs than it was written for, the same program fails for want of a GPU, so that the message is
taken for that.

## What hardware showed
Two GPUs, torch 2.11, Python 3.12.

| program | outcome |
| --- | --- |
| `CUDA_VISIBLE_DEVICES="1"`, then `device="cuda:1"` | `RuntimeError` |
| the same with `"cuda:0"` | works, on the second GPU |
| the variable set after the driver was asked | ignored: the number means what it did before (CUD202) |

## Example
```python
import os

import torch

GPU = 1


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = str(GPU)
    print(torch.ones(3, device=f"cuda:{GPU}").sum().item())


if __name__ == "__main__":
    main()
```

## Use instead
```python
import os

import torch

GPU = 1


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = str(GPU)
    print(torch.ones(3, device="cuda:0").sum().item())


if __name__ == "__main__":
    main()
```

Or leave the variable alone, and name the GPU by its number: `device=f"cuda:{GPU}"`.

## Fix
Unsafe: name the GPU by its place among those that the process sees, where the variable lists it by the number that the
program uses, so that both mean one GPU. Otherwise advice: whether the variable or the number is meant, only its author knows.

## When it stays silent
- The variable names as many GPUs as the number needs (`"0,1"` and `cuda:1`), or what it names is not known.
- The failure is handled: `try` asks in this way which GPUs there are.
- `os.environ.setdefault`: whoever starts the program may have named others.
- The variable was set too late, which has no effect (CUD202).
- It is set for processes that are started afterwards, and this one does not use a GPU that it leaves out.
- A task of ray asks first whether there is a GPU, or the program sets `RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES`.
- TensorFlow and JAX, which count their devices themselves.

## References
- [NVIDIA: CUDA environment
  variables](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables)
- [ray#62492](https://github.com/ray-project/ray/pull/62492)
- [pytorch#5872](https://github.com/pytorch/pytorch/issues/5872)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD207",
    name="hidden-gpu",
    severity=Severity.ERROR,
    summary="a GPU is named by a number that none of the visible ones has",
    outcomes={Kind.HIDDEN_GPU: "{subject} names {detail}"},
    repair=RepairLevel.SOMETIMES,
)
