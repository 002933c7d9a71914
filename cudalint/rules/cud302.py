"""# cuda-value-across-processes (CUD302)

A CUDA value is sent to a process that shares the sender's GPU memory through CUDA IPC, and so depends on the
sender.

## What it does
Reports a CUDA tensor or model that is pickled to a spawned worker, or to one that was forked before CUDA was
touched: as an argument, through a queue or a pipe, in an object.

## Why it is bad
It works, under rules that the code does not show. torch sends a handle, not data. The receiver looks into the
sender's memory, so the sender has to stay alive and keep the tensor until the last receiver is done. When the
sender goes first:

    [W CudaIPCTypes.cpp] Producer process has been terminated before all shared CUDA tensors released. See Note [Sharing
    CUDA tensors]

That is the good case. In the reports of users, receivers read zeros without any message, a received tensor that is
sent on raises "Attempted to send CUDA tensor received from another process", and with the allocator's expandable
segments the transfer can fail with `pidfd_getfd: Operation not permitted`. And a write on one side is seen by the
other.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method spawn.

| channel | outcome |
| --- | --- |
| `Pool.map` argument, bound method, partial | works, with the warning above |
| `ProcessPoolExecutor` argument | works |
| `Process(args=...)`, `Queue.put`, `Pipe.send` | works, with the warning |
| `model.share_memory()`, then a spawned `Process` | works |
| a worker returns a CUDA tensor | works while the worker lives |
| the producer exits before the consumer reads | fails: CUD304 |

A worker that ends after some tasks (`max_tasks_per_child`) ends before what it gave: right values were seen to arrive,
with that warning. A copy on the CPU is none that travels by itself: torch sends a descriptor of the memory in which it
lies, which the worker has to hand over, and the pool broke where it had ended. A NumPy array travels whole.

## Example
```python
import multiprocessing

import torch


def work(x):
    print(x.sum().item())


def main():
    x = torch.ones(8, device="cuda")
    multiprocessing.get_context("spawn").Process(target=work, args=(x,)).start()


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch


def work(x):
    print(x.to("cuda").sum().item())


def main():
    x = torch.ones(8)
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(x,))
    worker.start()
    worker.join()


if __name__ == "__main__":
    main()
```

The data travels through host memory, and the worker owns its copy on the GPU. In the other direction, from a worker
that ends, a CPU tensor is not enough: see CUD304.

## Fix
**Unsafe** where both ends are seen: `.cpu()` where the value leaves, and `.to(...)` with the device that it had at the
top of the worker, or around the call that gives the result. It costs a copy, and it ends the sharing.

**Display** where the other end is not seen (queues and pipes), where the value hides in an object, and for a worker
that writes in place: there the sharing may be the point.

It is a note where the owner waits on every path until the receivers are done: it joins their processes (without a
timeout) or the context of `mp.spawn(..., join=False)`, waits for an event, a barrier or an answer through a queue or a
pipe that they hold, or has the result of what it gave a pool or an executor (`map`, `result()`, `get()`, `wait()`,
`pool.join()`, the end of `with executor`). `mp.spawn(..., join=True)` does that by itself. So it is where the analysis
was cut before it could see that. A GPU tensor that a worker returns stays a warning: the worker owns it.

## When it stays silent
- The value is on the CPU when it is sent.
- The receiver is a thread, or joblib's loky, which copies through the host (CUD303).
- Numbers, lists and numpy arrays made from the tensor.
- An error about the same launch is reported.

## References
- [PyTorch: sharing CUDA tensors](https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-cuda-tensors)
- [PyTorch: reuse buffers passed through a queue](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule, warned

RULE = Rule(
    code="CUD302",
    name="cuda-value-across-processes",
    severity=Severity.WARNING,
    summary="a CUDA value is shared with another process through CUDA IPC, and its owner must outlive it",
    outcomes={
        Kind.CUDA_ACROSS: "a CUDA value crosses to another process through {launcher}: it is shared memory whose owner must live on{detail}",
    },
    grade=warned,
    repair=RepairLevel.SOMETIMES,
)
