"""Where programs start: main modules, tests, and launchers that nobody here is seen to call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from cudalint.ir import nodes as ir
from cudalint.project.markers import may_launch
from cudalint.project.program import FileProgram, functions

_LAUNCHERS = frozenset(
    {
        "Pool", "Process", "ProcessPoolExecutor", "Parallel", "DataLoader", "spawn", "start_processes", "fork",
        "set_start_method", "init_process_group", "num_proc", "notebook_launcher", "map", "submit", "start",
        "CUDA_VISIBLE_DEVICES", "set_memory_growth", "set_visible_devices", "set_default_device", "starmap",
        "apply_async", "imap", "imap_unordered", "fit", "device", "set_device", "Thread", "put", "send", "barrier",
        "all_reduce", "broadcast", "all_gather_object", "broadcast_object_list", "DistributedDataParallel",
    }
)  # fmt: skip


class EntryKind(Enum):
    """How an entry is run."""

    MAIN = "main"
    TEST = "test"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Entry:
    """One start: a module as ``__main__``, and for tests and assumed starts the function called after it."""

    kind: EntryKind
    module: str
    function: ir.Function | None = None


def candidates(program: FileProgram) -> list[str]:
    """The modules in which something that a rule speaks about may start, or that lead to one."""
    launching = {n for n, s in program.sources.items() if may_launch(s.data)}
    result: list[str] = []
    for name in sorted(program.sources):
        if name in launching or (_is_main(program, name) and program.reach(name) & launching):
            if program.reaches_gpu(name):
                result.append(name)
    return result


def _is_main(program: FileProgram, name: str) -> bool:
    return b"__main__" in program.sources[name].data


def tests(module: ir.Module) -> Iterable[ir.Function]:
    """The test functions of a module."""
    for function in functions(module.body):
        if function.name.startswith("test"):
            yield function


def unreached(module: ir.Module) -> Iterable[ir.Function]:
    """The functions that hold a launcher of their own."""
    for function in functions(module.body):
        if not function.name.startswith("test") and function.words & _LAUNCHERS:
            yield function


def is_test_module(path: str) -> bool:
    """Whether pytest would collect a file."""
    base = path.replace("\\", "/").rsplit("/", 1)[-1]
    return base.startswith("test_") or base.endswith("_test.py") or base == "conftest.py"
