"""# visible-devices-in-reused-worker (CUD203)

A task sets `CUDA_VISIBLE_DEVICES` in a worker that serves several tasks.

## What it does
Reports the assignment when it stands in a function that a pool runs task by task (joblib, `Pool`,
`ProcessPoolExecutor`), when its value differs between the tasks, and when the task uses CUDA. Likewise in a loop of a
process that serves one message after another, and `tf.config.set_visible_devices(gpus[n], "GPU")` with the number of
the task: TensorFlow refuses the second one (`Visible devices cannot be modified after being initialized`).

## Why it is bad
The first task of each worker gets the GPU it asked for. The driver then stays with that choice for the life of the
process, and each later task in the same worker is given a new value that nobody reads. No message appears; the work
is done, on another GPU than the one written in the log.

How tasks fall to workers depends on timing, so the distribution over the GPUs changes from run to run. Tests with
as many tasks as workers never show it.

## What hardware showed
Two H200, driver 580, torch 2.11, Python 3.12.

| the task sets the variable, then uses CUDA | outcome |
| --- | --- |
| joblib with loky, first task of a worker | honoured |
| joblib with loky, every later task of that worker | silently keeps the first GPU |
| fork `Pool`, parent untouched by CUDA | the same |

## Example
```python
import os

import torch
from joblib import Parallel, delayed


def work(gpu, n):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return torch.ones(n, device="cuda").sum().item()


def main():
    print(Parallel(n_jobs=2)(delayed(work)(n % 2, n) for n in range(1, 9)))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch


def serve(gpu, tasks):
    for n in tasks:
        print(gpu, torch.ones(n, device=f"cuda:{gpu}").sum().item())


def main():
    context = multiprocessing.get_context("spawn")
    tasks = list(range(1, 9))
    workers = [context.Process(target=serve, args=(gpu, tasks[gpu::2])) for gpu in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
```

One process for each GPU, the device named in full. The shortest repair keeps the pool and replaces the variable by
`device=f"cuda:{gpu}"`; each worker may then open a context on each GPU, at the price that CUD201 describes.

## Fix
**Unsafe**: the task selects its GPU by index: `torch.cuda.set_device(gpu)` in the place of the assignment,
`cupy.cuda.Device(gpu).use()` or `numba.cuda.select_device(gpu)`. GPUs then keep the numbers of the machine, and each
worker may open a context on each GPU (CUD201).

**Display** for JAX and TensorFlow, where a library that does not look at the choice is used beside it, where the program
names GPU 0, and where the value may be a list of GPUs: one process per GPU, as above.

## When it stays silent
- The worker serves one task: a `Process` of its own, or `maxtasksperchild=1` with `chunksize=1`.
- An initializer sets the variable, once in the life of the worker and before CUDA.
- Every task sets the same constant.
- The task uses no CUDA, or hands the variable to a `subprocess`.
- The worker's imports touched CUDA already: then even the first task is too late (CUD202).

## References
- [NVIDIA: CUDA environment
  variables](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables)
- [joblib: reusing workers](https://joblib.readthedocs.io/en/stable/parallel.html#reusing-a-pool-of-workers)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD203",
    name="visible-devices-in-reused-worker",
    severity=Severity.ERROR,
    summary="CUDA_VISIBLE_DEVICES is set per task in a worker that serves several tasks",
    outcomes={
        Kind.VISIBLE_PER_TASK: "the visible devices are chosen per task in a worker that serves several: only the first choice counts",
    },
    repair=RepairLevel.ALWAYS,
)
