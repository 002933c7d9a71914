"""# visible-devices-too-late (CUD202)

`CUDA_VISIBLE_DEVICES` is set, or TensorFlow's visible devices are chosen, after CUDA was initialised or queried.

## What it does
Reports the assignment when the same process has touched CUDA before it: in the lines above, in an imported module,
or, in a spawned child, in the top level of the main module, which the child runs before the worker's first line.

## Why it is bad
The driver reads the variable once, at the first question it is asked. Later changes are ignored without a word. All
processes that were to use different GPUs meet on GPU 0: slow, then out of memory, and with NCCL `Duplicate GPU
detected`.

There is no message to search for. `torch.cuda.device_count()` may even change its answer, so that a check seems to
confirm the setting, while `cuda:1` stays usable.

TensorFlow does raise, with a `RuntimeError`, when `set_visible_devices` comes after its first operation.

## What hardware showed
Two H200, driver 580, torch 2.11, Python 3.12.

| when `CUDA_VISIBLE_DEVICES` is set | outcome |
| --- | --- |
| before `import torch` | honoured |
| after `import torch`, before the first CUDA call | honoured |
| after `torch.cuda.is_available()` | silently ignored |
| after any initialising call | silently ignored |
| in a spawned worker, when the module's top level calls `torch.cuda.is_available()` | silent: every worker on GPU 0 |
| TensorFlow 2.21: `set_visible_devices` after the first operation | `RuntimeError` |

That the variable must be set before `import torch` is a widespread belief; it is not so for this version.

## Example
```python
import os

import torch


def main():
    if not torch.cuda.is_available():
        raise SystemExit("this program needs a GPU")
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    print(torch.ones(3, device="cuda").sum().item())


if __name__ == "__main__":
    main()
```

## Use instead
```python
import os

import torch


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    if not torch.cuda.is_available():
        raise SystemExit("this program needs a GPU")
    print(torch.ones(3, device="cuda").sum().item())


if __name__ == "__main__":
    main()
```

Naming the device (`device="cuda:1"`, or `torch.cuda.set_device(1)`) does not depend on the order at all.

## Fix
**Unsafe**, in the form that suits the program; where it then runs is another GPU than today.

- The assignment, with the condition that guards it, moves above the first call that touches CUDA, where its value is
  known by then.
- Where CUDA was only asked: the GPU is selected by its index instead, `torch.cuda.set_device(args.gpu)`, or the
  question becomes `torch.cuda.device_count() > 0`, which leaves the driver alone. A selected GPU keeps its number, and
  the others stay visible: a program that names `cuda:0` is repaired the second way.
- Where the import of another module asked, and only the function that chooses uses that module, the import moves into
  the function, below the choice.

**Display** elsewhere, with the line that touched CUDA first: the variable then belongs into the command line or the
parent's environment. By index is not offered once data is on a GPU, since that data would stay there; where the program
names GPU 0, or the variable may name several GPUs; and where a library is used that does not look at the choice
(onnxruntime, TensorFlow, JAX).

## When it stays silent
- Nothing has touched CUDA before, or only questions that leave the driver alone (`torch.cuda.device_count()`).
- The parent sets the variable for children that it spawns afterwards, even if it has used CUDA itself.
- The value goes into the `env=` of a `subprocess`.
- It hides all GPUs (`""`, `"-1"`), and the process uses none afterwards.
- The assignment restores the value that was read before.
- The process has selected a GPU itself before (`torch.cuda.set_device`), or selects the same one afterwards: the variable
  is meant for others, or for libraries that are not asked yet.

## References
- [NVIDIA: CUDA environment
  variables](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables)
- [TensorFlow: use a GPU](https://www.tensorflow.org/guide/gpu)
- CUD203 for workers that serve several tasks.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD202",
    name="visible-devices-too-late",
    severity=Severity.ERROR,
    summary="CUDA_VISIBLE_DEVICES or TensorFlow's visible devices are set after CUDA was initialised or queried",
    outcomes={
        Kind.VISIBLE_TOO_LATE: "CUDA_VISIBLE_DEVICES or the visible devices are chosen after CUDA was used in this process: this has no effect",
    },
    repair=RepairLevel.ALWAYS,
)
