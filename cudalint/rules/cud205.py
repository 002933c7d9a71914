"""# thread-without-device (CUD205)

A thread uses the current CUDA device that another thread chose.

## What it does
Reports the start of a thread (`Thread(...)`, `.submit(...)` or `.map(...)` of a thread pool) when the starting
thread has selected a device other than 0 and the new thread uses `"cuda"`, `.cuda()` or another form of "the
current device" without selecting one.

## Why it is bad
The current device belongs to the thread, not to the process. A new thread starts on device 0, whatever the others
chose.

Nothing fails at once. Tensors appear on GPU 0, a second context takes its memory there, and the thread's results
meet the others later:

    RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!

Forms without any message were reported: a `torch.cuda.synchronize()` that waits for the wrong GPU, a stream that
orders nothing.

## What hardware showed
Two H200, driver 580, torch 2.11, Python 3.12. The main thread calls `torch.cuda.set_device(1)` first.

| where | current device |
| --- | --- |
| the main thread | 1 |
| a new `threading.Thread` | 0 |
| a worker of a `ThreadPoolExecutor` or of joblib's threading backend | 0 |

Threads are otherwise the safe way to run CUDA in parallel: they share one context, and no fork is involved. The
finding is a warning, because a thread on device 0 may be intended.

## Example
```python
import threading

import torch


def work():
    x = torch.ones(3, device="cuda")
    print(x.device)


def main():
    torch.cuda.set_device(1)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
```

## Use instead
```python
import threading

import torch


def work(device):
    x = torch.ones(3, device=device)
    print(x.device)


def main():
    thread = threading.Thread(target=work, args=("cuda:1",))
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
```

## Fix
**Unsafe**: a pool of threads gets `initializer=torch.cuda.set_device, initargs=(gpu,)` where the device is known where
the pool is made. Else the function that the thread runs selects the device first: by the name that the program has for
it (a global, a variable around a local function, `self.gpu`), or by a parameter that it is handed where the thread is
made, `functools.partial(work, gpu=args.gpu)`. A subclass of `Thread` keeps `torch.cuda.current_device()` when it is
made. The number that the device was seen to be comes last, and the reason says where it may be another. It changes where
the work runs, which is its purpose. **Display** elsewhere, for a lambda say: hand the device to the thread.

## When it stays silent
- The thread selects its device itself, or names it in full (`cuda:1`).
- The pool has an initializer that selects the device.
- No thread selected a device, or only device 0: all agree.
- The thread works with tensors that it is given, and makes none on the current device.
- Autograd's own threads: torch takes the device along.

## References
- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
- [NVIDIA: device selection](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#device-selection)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule, warned

RULE = Rule(
    code="CUD205",
    name="thread-without-device",
    severity=Severity.WARNING,
    summary="a thread uses the current CUDA device that another thread chose",
    outcomes={
        Kind.THREAD_DEVICE: "this thread uses the current device, but another thread selected it: a new thread starts on GPU 0",
    },
    grade=warned,
    repair=RepairLevel.ALWAYS,
)
