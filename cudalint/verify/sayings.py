"""What the exceptions of programs say, by the rules whose findings say the same."""

from __future__ import annotations

import re

# Rules about CUDA in a forked child whose parent had asked for CUDA.
OF_FORKS = frozenset({"CUD101", "CUD102", "CUD103", "CUD104", "CUD105", "CUD301", "CUD401", "CUD402", "CUD404"})
# Rules about the GPU that a rank takes.
OF_RANKS = frozenset({"CUD501", "CUD502", "CUD503"})
# Rules about CUDA values whose owner is another process.
OF_OWNERS = frozenset({"CUD302", "CUD304"})

_INITIALISATION = re.compile(
    r"Cannot re-initialize CUDA|initialization error|cudaErrorInitializationError|driver initialization failed|"
    r"CUDA_ERROR_NOT_INITIALIZED|CUDA initialized before forking"
)
# A GPU that others may have filled.
_FULL = re.compile(r"(?i:out.of.memory)|RESOURCE_EXHAUSTED|\bOOM\b|Failed copying input")
_SAME_GPU = re.compile(
    r"^.*(?:Duplicate GPU detected|tensor not on device passed to init_process_group).*$", re.MULTILINE
)
# Exceptions of GPU libraries, by the name of their class.
_OF_GPUS = re.compile(
    r"^(?:(?:torch|cupy|cupy_backends|numba|jax|jaxlib|tensorflow|cuda)\.[\w.]+|\w*(?:Cuda|CUDA)\w*): "
)
# Exceptions that programs raise themselves: no library says by them that CUDA or a process has failed.
_OF_PROGRAMS = re.compile(
    r"^(?:ZeroDivisionError|KeyError|IndexError|FileNotFoundError|ModuleNotFoundError|ImportError|SyntaxError|"
    r"IndentationError|RecursionError|Unicode\w+Error|PermissionError|FileExistsError|StopIteration|\w*JSONDecodeError)\b"
)
# What launchers say of a child that died: how it did is not known.
_DIED = re.compile(
    r"terminated abruptly|unexpectedly (?:terminated|exited)|(?:exited|died) (?:unexpectedly|prematurely)|"
    r"terminated with (?:signal|exit code)|was unexpectedly terminated|ChildFailedError"
)
_SAYINGS: tuple[tuple[str, frozenset[str]], ...] = (
    (_INITIALISATION.pattern, OF_FORKS),
    # Launchers that refuse to fork.
    (r"only be initialized inside your training function|new processes if CUDA is already initialized", OF_FORKS),
    (r"avoid running any instruction using `?torch\.cuda", OF_FORKS),
    (r"context has already been set", frozenset({"CUD105", "CUD106"})),
    (r"finished its bootstrapping phase", frozenset({"CUD106"})),
    (r"daemonic processes are not allowed to have children", frozenset({"CUD107"})),
    # Python 3.14 words what unpickling does not find as any other attribute.
    (r"NameError: |Can't get attribute|module '__m\w+' has no attribute", frozenset({"CUD108"})),
    (r"SemLock created in a fork context|shared between processes through inheritance", frozenset({"CUD108"})),
    (r"Can't get local object", frozenset({"CUD108", "CUD305"})),
    (r"[Cc]an(?:'|no)t pickle|PicklingError|no default __reduce__", frozenset({"CUD108", "CUD305"})),
    (r"devices cannot be modified after being initialized", frozenset({"CUD202", "CUD203", "CUD206"})),
    (_FULL.pattern, frozenset({"CUD201", "CUD206", "CUD504"})),
    (r"invalid device ordinal", frozenset({"CUD202", "CUD203", "CUD207", "CUD506"})),
    (r"at least two devices, cuda:\d+ and cuda:\d+", frozenset({"CUD202", "CUD203", "CUD204", "CUD205", "CUD506"})),
    (r"invalid resource handle|cudaErrorInvalidResourceHandle|CUDA_ERROR_INVALID_HANDLE", OF_OWNERS),
    (r"invalid device context", frozenset({"CUD205", "CUD305"})),
    (r"cannot pin", frozenset({"CUD403"})),
    (r"device type for generator", frozenset({"CUD404"})),
    (_SAME_GPU.pattern, OF_RANKS),
    (r"MASTER_ADDR|MASTER_PORT", frozenset({"CUD505"})),
)
# Rules of which a finding can be that a process dies for a reason that only the system knows.
OF_DEATHS = OF_FORKS | {"CUD106", "CUD107", "CUD108", "CUD206"}


def shown_by(text: str) -> frozenset[str]:
    """The rules whose findings can come true as an exception that says this; none where it speaks of other things."""
    if _DIED.search(text) is not None:
        return OF_DEATHS
    return frozenset(code for pattern, codes in _SAYINGS if re.search(pattern, text) is not None for code in codes)


def speaks_of_initialisation(text: str) -> bool:
    """Whether CUDA could not be initialised, as in a forked child of a parent that had asked for it."""
    return _INITIALISATION.search(text) is not None


def speaks_of_memory(text: str) -> bool:
    """Whether a GPU had no room left, wherever a program came to ask for some."""
    return _FULL.search(text) is not None


def is_of_gpus(text: str) -> bool:
    """Whether an exception is of a class that a GPU library raises."""
    return _OF_GPUS.match(text) is not None


def is_of_programs(text: str) -> bool:
    """Whether an exception is of a class that has nothing to do with GPUs or processes."""
    return _OF_PROGRAMS.match(text) is not None


def of_same_gpu(text: str) -> str | None:
    """The line in which NCCL says that two ranks are on one GPU."""
    line = _SAME_GPU.search(text)
    return None if line is None else line[0].strip()
