"""# thread-without-device (CUD205)

A thread uses the current CUDA device that another thread chose, or a library whose context is current elsewhere.

## What it does
Reports the start of a thread (`Thread(...)`, `.submit(...)` or `.map(...)` of a thread pool) when the starting
thread has selected a device other than 0 and the new thread uses `"cuda"`, `.cuda()` or another form of "the
current device" without selecting one: also where it waits for that (`torch.cuda.synchronize()`), or asks how much of
its memory is in use. And the start of a thread that uses PyCUDA without a context of its own, where another thread made
one.

## Why it is bad
The current device belongs to the thread, not to the process. A new thread starts on device 0, whatever the others
chose.

Nothing fails at once. Tensors appear on GPU 0, a second context takes its memory there, and the thread's results
meet the others later:

    RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!

With PyCUDA it fails at once, and where nobody asks the thread for its result, only the thread ends:

    pycuda._driver.LogicError: cuMemAlloc failed: invalid device context

Forms without any message were reported: a `torch.cuda.synchronize()` that waits for the wrong GPU, a stream that
orders nothing.

## What hardware showed
Two H200, driver 580, torch 2.11, Python 3.12. The main thread calls `torch.cuda.set_device(1)` first.

| where | current device |
| --- | --- |
| the main thread | 1 |
| a new `threading.Thread` | 0 |
| a worker of a `ThreadPoolExecutor` or of joblib's threading backend | 0 |

In such a thread `torch.cuda.synchronize()` waited for GPU 0 alone and opened a context there; so did
`torch.cuda.Event().record()`, `torch.cuda.Stream()` and waiting on the current stream. `event.synchronize()` of an event that
the main thread recorded waited for that, and opened none.

PyCUDA 2026.1 on two H100, driver 580, Python 3.12: the main thread imported `pycuda.autoinit`.

| in another thread | |
| --- | --- |
| `mem_alloc`, `memcpy_htod`, `to_gpu`, `.get()`, a kernel, `SourceModule`, `Stream()` | LogicError: invalid device context |
| the same after importing `pycuda.autoinit` there as well | LogicError |
| the same between `pycuda.autoinit.context.push()` and `.pop()`, or after `make_context()` there | works |
| `memcpy_htod_async(..., stream)` on a stream of the main thread | works |

Threads are otherwise the safe way to run CUDA in parallel: they share one context, and no fork is involved. The
finding is a warning, because a thread on device 0 may be intended; a thread without a context is an error.

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
the work runs, which is its purpose. **Display** elsewhere, for a lambda say: hand the device to the thread; for PyCUDA:
push the context there.

## When it stays silent
- The thread selects its device itself, or names it in full (`cuda:1`).
- The pool has an initializer that selects the device.
- A thread makes or pushes the context that it uses, or calls something unknown that may do so.
- No thread selected a device, or only device 0: all agree.
- The thread works with tensors that it is given, and makes none on the current device.
- Autograd's own threads: torch takes the device along.

## References
- [PyTorch: CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
- [NVIDIA: device selection](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#device-selection)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind, Outcome
from cudalint.rules.base import RepairLevel, Rule, measured, warned


def _graded(outcome: Outcome) -> Severity | None:
    """A thread on GPU 0 may be intended; one without a context fails."""
    return measured(outcome) if outcome.kind is Kind.CONTEXT_OF_THREAD else warned(outcome)


RULE = Rule(
    code="CUD205",
    name="thread-without-device",
    severity=Severity.ERROR,
    summary="a thread uses the current CUDA device, or the context, of another thread",
    outcomes={
        Kind.CONTEXT_OF_THREAD: "{subject} in a thread without a current context: another thread made it, and it is current there alone",
        Kind.THREAD_DEVICE: "this thread uses the current device, but another thread selected it: a new thread starts on GPU 0",
    },
    grade=_graded,
    repair=RepairLevel.SOMETIMES,
)
