"""# cuda-value-outlives-producer (CUD304)

A process puts a CUDA tensor on a queue and ends.

## What it does
Reports `q.put(...)` of a CUDA value in a worker whose function can return after it without waiting for the
receiver.

## Why it is bad
What travels is a handle to memory that the producer owns. When the producer ends, the driver frees the memory, and
the consumer holds a handle to nothing:

    torch.AcceleratorError: CUDA error: invalid resource handle

Whether it happens is a race. A consumer that reads at once may get the right values, so the program passes its
tests and fails under load, or on another machine. From users there are reports of zeros in place of the data,
without any message.

`worker.join()` before `queue.get()`, which looks tidy, makes the failure certain.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method spawn.

| program | outcome |
| --- | --- |
| the producer puts a CUDA tensor and ends | `invalid resource handle` as a rule; right values now and then |
| it puts a CPU tensor (`.cpu()`) and ends | `EOFError` or `ConnectionRefusedError`: 9 of 9 runs, forked too |
| it puts an array, list or number (`.cpu().numpy()`, `.tolist()`, `.item()`) and ends | works |
| it puts a tensor and waits until the consumer is done | works |

The second row surprises. torch shares CPU tensors through shared memory, and the consumer fetches the handle from
the producer when it unpickles. Importing torch is enough: a queue of plain `multiprocessing` behaves in the same
way. A CPU tensor is not this rule's subject, but `.cpu()` is not its repair.

## Example
```python
import torch
import torch.multiprocessing as mp


def produce(queue):
    queue.put(torch.ones(8, device="cuda"))


def main():
    context = mp.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=produce, args=(queue,))
    worker.start()
    print(queue.get().sum().item())
    worker.join()


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch
import torch.multiprocessing as mp


def produce(queue):
    queue.put(torch.ones(8, device="cuda").cpu().numpy())


def main():
    context = mp.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=produce, args=(queue,))
    worker.start()
    print(queue.get().sum().item())
    worker.join()


if __name__ == "__main__":
    main()
```

Where the copy is too dear, give the producer an `Event` to wait for, and set it when the consumer has let go of the
tensor.

## Fix
**Unsafe** where the value is seen in the call: `.detach().cpu().numpy()` behind each tensor. The receiver gets an
array in place of a tensor; NumPy has no bfloat16. Loops over `iter(q.get, None)` become
`while (x := q.get()) is not None`, because `iter` compares with `==` and an array that is compared has no truth.

**Display** elsewhere, and where the copy is too dear: an `Event` that the receiver sets. `.cpu()` alone, the obvious
edit, fails as well.

## When it stays silent
- The producer waits for the receiver after the put: an event, a queue in the other direction, a barrier. What
  remains is CUD302, unless the receiver is seen to wait for its end before it receives anything.
- The value is not on the GPU.
- The producer is a thread, or the main process that joins its consumers.
- The producer loops until it is told to stop.

## References
- [PyTorch: sharing CUDA tensors](https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-cuda-tensors)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD304",
    name="cuda-value-outlives-producer",
    severity=Severity.ERROR,
    summary="a process puts a CUDA tensor on a queue and ends while the receiver still needs it",
    outcomes={
        Kind.PRODUCER_ENDS: "the process that puts this CUDA tensor ends, and its memory with it",
    },
    repair=RepairLevel.ALWAYS,
)
