"""# cuda-context-per-worker (CUD201)

More than one worker process opens a CUDA context on the same GPU.

## What it does
Counts the processes that reach CUDA on one device, whatever started them: a spawn pool, joblib, an executor, ranks
of a process group (gloo too). It reports the launch when there is more than one.

## Why it is bad
Nothing fails, so nobody looks. Each process that uses CUDA holds a context of its own on the GPU: hundreds of MiB
before the first byte of data, and as much start-up time again. The contexts share the GPU by taking turns; without
MPS, kernels of two processes do not run at the same moment. Eight workers on one GPU can be slower than one.

The cost grows with the machine rather than with the work: `n_jobs=-1` starts a worker per CPU core. On a large host
a tiny model can run out of GPU memory:

    torch.OutOfMemoryError: CUDA out of memory.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, joblib with loky; GPU memory by the worker, for a model of ten weights.

| workers | memory on GPU 0 |
| --- | --- |
| 1 | 618 MiB (837 MiB once cuBLAS is loaded) |
| 8 | 4944 MiB |
| `n_jobs=-1` on 32 cores | 26 GB |

The parent may have initialised CUDA or not: loky's workers are fresh interpreters and work either way. Gloo ranks
that never select a device all open their context on GPU 0.

It is a warning, because two workers may be what you want: when each leaves the GPU idle for most of its time, say.
Where an initializer opens the context, once for each of a number of workers that the code names, the code shows that
it is meant: that is a note. A number that the machine decides (`Pool()`, `n_jobs=-1`) may be more than its GPU holds,
and stays a warning.

## Example
```python
import torch
from joblib import Parallel, delayed


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    print(Parallel(n_jobs=4)(delayed(work)(n) for n in range(1, 9)))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import torch
from joblib import Parallel, delayed


def prepare(n):
    return [float(n)] * 8


def main():
    rows = Parallel(n_jobs=4)(delayed(prepare)(n) for n in range(1, 9))
    batch = torch.tensor(rows, device="cuda")
    print(batch.sum(dim=1).tolist())


if __name__ == "__main__":
    main()
```

The workers prepare on the CPU, and one process owns the GPU and works in batches. Where several GPUs are at hand,
one process for each, with an explicit `f"cuda:{i}"`, is as good.

## Fix
**Display** only. Fewer workers, batches in one process, threads, or one worker per GPU: which of them fits depends
on the work, and cudalint does not see how long the GPU is busy.

## When it stays silent
- One worker uses CUDA, or several that each name a device of their own.
- The workers use the CPU only.
- Threads: they share the context of their process.
- `n_jobs=1`, `max_workers=1` and a `DataLoader` whose workers prepare on the CPU.
- An error about the same launch is reported: a worker that fails needs no advice about memory.

## References
- [NVIDIA: Multi-Process Service](https://docs.nvidia.com/deploy/mps/index.html)
- [joblib: n_jobs](https://joblib.readthedocs.io/en/stable/generated/joblib.Parallel.html)
- CUD206 for TensorFlow and JAX, whose workers take most of the memory each.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import Rule, warned

RULE = Rule(
    code="CUD201",
    name="cuda-context-per-worker",
    severity=Severity.WARNING,
    summary="more than one worker process opens a CUDA context on the same GPU",
    outcomes={
        Kind.SHARED_GPU: "several {launcher} workers each open a context on the same GPU",
    },
    grade=warned,
)
