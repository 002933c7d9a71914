"""# cuda-in-fork-started-worker (CUD102)

A worker that may be started by fork uses CUDA, and cudalint cannot see whether its parent has touched CUDA by then.

## What it does
This is the careful sister of CUD101. It reports a launch whose worker reaches CUDA when one half of the proof is
missing:

- no entry of the project reaches the launch, so what the parent did before, or which start method it has set, is
  unknown: typically a function of a library that others call;
- the parent has touched CUDA, but the start method is fork on some paths only;
- that happens only where an option is given another of its words than the default (`--start-method fork`): the condition
  names it.

## Why it is bad
The code works as long as nobody touches CUDA first, which is a promise that the code itself cannot keep. One caller
that asks `torch.cuda.is_available()` at import, and the workers fail with

    RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the
    'spawn' start method

or, with a bare `Process`, die while the parent ends with exit code 0. The one who sees the message is not the one
who wrote the launch.

Some imports touch CUDA on their own: of the libraries measured, `torch_geometric` 2.8 and
`torch.utils.cpp_extension` do.

## What hardware showed
H200, driver 580, torch 2.11, Python 3.12, start method fork.

| the parent | the worker uses CUDA |
| --- | --- |
| untouched | works |
| asked `torch.cuda.is_available()` | fails |
| initialised CUDA in any way | fails |
| made a `Pool` first, then initialised CUDA | works, until a worker is replaced (`maxtasksperchild=1`) |

A warning, not an error, because the first row exists.

Where JAX started all its platforms in the parent and a forked worker computes on the CPU (`jax.default_device`), a
product of 4 by 4 numbers is computed there, one of 200 by 200 waits for ever for threads that the fork left behind
(measured with JAX 0.11.2 on an H200).

## Example
```python
from concurrent.futures import ProcessPoolExecutor

import torch


def embed(text):
    return torch.tensor([float(len(text))], device="cuda").exp().item()


def embed_all(texts):
    with ProcessPoolExecutor(max_workers=2) as pool:
        return list(pool.map(embed, texts))
```

## Use instead
```python
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import torch


def embed(text):
    return torch.tensor([float(len(text))], device="cuda").exp().item()


def embed_all(texts):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return list(pool.map(embed, texts))
```

One worker, because each has a context of its own on the GPU (CUD201).

## Fix
The same edit as for CUD101: the launch gets a spawn context. It is always **unsafe** here. Spawn asks things of
callers that cudalint does not see (a main guard, arguments that pickle), and the program may work today. In a
notebook it is not offered for functions of cells.

## When it stays silent
- Every entry that reaches the launch is seen, and none of them touches CUDA before it.
- The start method comes from a place that cannot be read: a parameter, a configuration file.
- The worker uses CPU tensors only, or CUDA behind `torch.cuda.is_initialized()`.
- One file is checked on its own (flake8, standard input): what callers did would be a guess.
- CUD101 speaks about the same launch. A `noqa` for either code silences both.

## References
- [PyTorch: CUDA in
  multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
- [PyTorch: multiprocessing best practices](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html)
- CUD101, the certain case.
"""

from cudalint.finding import Severity
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.rules.base import RepairLevel, Rule


def _unseen(outcome: Outcome) -> Severity | None:
    """Where all is seen, CUD101 speaks; tests decide nothing about their callers, but guesses at packages hold there."""
    unseen = outcome.assumed or outcome.detail == "unseen" or (not outcome.certain and not outcome.caught)
    decides = not outcome.in_test or outcome.reason is Doubt.USES
    return Severity.WARNING if unseen and decides else None


RULE = Rule(
    code="CUD102",
    name="cuda-in-fork-started-worker",
    severity=Severity.WARNING,
    summary="a worker that may be started by fork uses CUDA, and its parent's state or start method is not certain",
    outcomes={
        Kind.CUDA_IN_FORK: "{subject} in a worker that {launcher} may fork after CUDA was used: {doubt}",
    },
    grade=_unseen,
    repair=RepairLevel.SOMETIMES,
)
