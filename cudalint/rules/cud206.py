"""# gpu-memory-not-shared (CUD206)

Several processes use one GPU with a framework that takes most of its memory for each of them.

## What it does
TensorFlow and JAX reserve most of the GPU's memory when they start, unless told otherwise. The rule reports

- TensorFlow's memory growth set after TensorFlow has started to use the GPU;
- a TensorFlow parent without growth that used the GPU and then starts children that use it too;
- four or more forked or eight or more fresh TensorFlow workers without growth on one GPU, or a number that cannot be
  seen;
- six or more JAX workers with preallocation.

Fewer TensorFlow workers are a warning.

## Why it is bad
The first process takes what there is, and the others find nothing. How that looks is a matter of chance: an
out-of-memory error, `RESOURCE_EXHAUSTED` from JAX, a worker that aborts and a pool that waits for it for ever.

Growth set too late has a message of its own: a `RuntimeError` that says that it cannot be set after GPUs have been
initialized.

## What hardware showed
One H200 (141 GB), driver 580, TensorFlow 2.21, JAX 0.11, Python 3.12; workers started at once.

| workers | outcome |
| --- | --- |
| 2 TensorFlow, no growth, parent untouched | works, forked and spawned |
| 4 TensorFlow, no growth | spawn works; fork fails or hangs (both were seen) |
| 8 TensorFlow, no growth | out of memory |
| joblib `n_jobs=-1` on 32 cores, TensorFlow, no growth | out of memory |
| parent used the GPU without growth, then TensorFlow children | out of memory |
| 2, 4, 8 TensorFlow with `set_memory_growth` | works |
| 2 JAX with preallocation, spawned | works, also beside a parent that uses the GPU |
| 3, 4 JAX with preallocation, spawned, all at once | works |
| 6, 8 JAX with preallocation | `RESOURCE_EXHAUSTED` |
| 8 JAX with `XLA_PYTHON_CLIENT_PREALLOCATE=false` | works |

On a smaller GPU the numbers are smaller.

## Example
```python
import multiprocessing

import tensorflow as tf


def work(n):
    return float(tf.reduce_sum(tf.ones([n])))


def main():
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        print(pool.map(work, range(1, 9)))


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import tensorflow as tf


def share_the_gpu():
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)


def work(n):
    return float(tf.reduce_sum(tf.ones([n])))


def main():
    with multiprocessing.get_context("spawn").Pool(8, initializer=share_the_gpu) as pool:
        print(pool.map(work, range(1, 9)))


if __name__ == "__main__":
    main()
```

It works, and eight contexts still have their price: CUD201 mentions it.

## Fix
**Unsafe**: `os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"` is put before the launch, or below the imports where the
parent uses the GPU before it; all workers inherit it. For JAX it is `XLA_PYTHON_CLIENT_PREALLOCATE` and `"false"`.
Memory that is taken as needed is slower to get and may fragment. Growth that is set too late moves above TensorFlow's
first operation. **Display** where no place is early enough.

## When it stays silent
- Each process sets growth first, or the environment says so.
- Growth is set again to what it is, or JAX is kept on the CPU (`JAX_PLATFORMS=cpu`).
- One process uses the GPU, or each has a GPU of its own.
- The workers use numpy only, or hide the GPU from TensorFlow (`set_visible_devices([], "GPU")`).
- torch, CuPy and numba: they take what they need (CUD201).

## References
- [TensorFlow: limiting GPU memory growth](https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth)
- [JAX: GPU memory allocation](https://docs.jax.dev/en/latest/gpu_memory_allocation.html)
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Kind
from cudalint.rules.base import RepairLevel, Rule

RULE = Rule(
    code="CUD206",
    name="gpu-memory-not-shared",
    severity=Severity.ERROR,
    summary="several processes use one GPU with TensorFlow or JAX, and each takes most of its memory",
    outcomes={
        Kind.MEMORY_NOT_SHARED: "{launcher} workers that each reserve most of one GPU's memory ({subject})",
        Kind.GROWTH_TOO_LATE: "memory growth is set after TensorFlow started the GPU",
    },
    repair=RepairLevel.ALWAYS,
)
