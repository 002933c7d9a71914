"""The paper GPU driver: what one process knows of CUDA, and what all processes of a run share.

Per process it keeps whether the driver was initialised, whether a fork made it unusable and which GPUs were
visible when it froze. Shared by all processes of a run (the directory PAPER_STATE): the memory that each
process holds on each GPU, and a journal of forks, deaths and gaps that the runner reads afterwards.

It must stay cheap to import: every interpreter of every run pays for it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import signal
import sys
import threading
import time
import types
from typing import Any, Callable, NoReturn

MIB = 1 << 20
TOTAL = 143771 * MIB  # one GPU of 141 GB
CONTEXT = 618 * MIB  # what a process costs on a GPU before it does anything
BLAS = 219 * MIB  # a context with cuBLAS handles costs 837 MiB
SEGMENT = 2 * MIB
HERE = os.path.dirname(os.path.abspath(__file__))

ROOTS = frozenset(
    name.removesuffix(".py") for name in os.listdir(HERE) if not name.startswith(("_", "paper", "sitecustom"))
)


class PaperError(AttributeError):
    """A program asked for something that paper CUDA does not model."""


# ---------------------------------------------------------------- shared state


def _state_directory() -> str:
    found = os.environ.get("PAPER_STATE")
    if found and os.path.isdir(found):
        return found
    import shutil
    import tempfile

    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    made = tempfile.mkdtemp(prefix="paper-cuda-", dir=base)
    os.environ["PAPER_STATE"] = made
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(made, ignore_errors=True))
    return made


STATE = _state_directory()


def journal(*words: object) -> None:
    """Append one line for the runner; O_APPEND keeps short lines of several processes whole."""
    try:
        handle = os.open(os.path.join(STATE, "journal"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, (" ".join(str(word) for word in words).replace("\n", " ")[:2000] + "\n").encode())
        os.close(handle)
    except OSError:  # the run is over and its directory is gone
        pass


def _asked_by_library(depth: int) -> bool:
    """Pickle, inspect and friends probe modules for names; only a program's own question is a gap."""
    frame = sys._getframe(depth + 1)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back  # type: ignore[assignment]
    name = frame.f_code.co_filename if frame is not None else ""
    return name.startswith((sys.prefix + "/lib", sys.base_prefix + "/lib")) or name.startswith("<frozen")


def unknown(name: str, depth: int = 2) -> NoReturn:
    """Refuse what paper CUDA does not know, so that gaps are found and never pass for success."""
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)
    if not _asked_by_library(depth):
        journal("gap", name)
    raise PaperError(f"paper CUDA does not know {name}")


def lazy(package: str, submodules: str = "", values: dict[str, Any] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a stub package: named submodules are imported on use, all else is refused."""
    names = frozenset(submodules.split())

    def __getattr__(name: str) -> Any:
        if name in names:
            import importlib

            return importlib.import_module(f"{package}.{name}")
        if values and name in values:
            return values[name]()
        unknown(f"{package}.{name}")

    return __getattr__


class Space(types.ModuleType):
    """A small stub module made in place: known by its name, so that pickle and import find it again."""

    def __init__(self, paper_name: str, **values: Any) -> None:
        super().__init__(paper_name)
        self.__dict__.update(values)
        sys.modules[paper_name] = self

    def __getattr__(self, name: str) -> Any:
        unknown(f"{self.__dict__['__name__']}.{name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _space, (self.__name__,)


def _space(name: str) -> Any:
    """A small stub module in another process, by import."""
    import importlib

    return importlib.import_module(name)


def by_name(module: str, functions: dict[str, Any]) -> None:
    """Give functions made in a loop the names by which pickle finds them."""
    for name, function in functions.items():
        if getattr(function, "__module__", "") != module and callable(function):
            function.__name__ = function.__qualname__ = name
            function.__module__ = module


class _Gaps:
    """Last on the import path: an unknown submodule of a stub is a gap as well."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if path is not None and name.partition(".")[0] in ROOTS and not _asked_by_library(2):
            journal("gap", name)
        return None


sys.meta_path.append(_Gaps)  # type: ignore[arg-type]


class _Unnamed:
    """First on the import path of a run that names its stubs: what is known of the run rests on no other."""

    named = frozenset(os.environ.get("PAPER_STUBS", "").split())

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> None:
        if path is None and name in ROOTS and name not in cls.named:
            journal("gap", f"{name},-which-PAPER_STUBS-does-not-name")
        return None


if "PAPER_STUBS" in os.environ:
    sys.meta_path.insert(0, _Unnamed)  # type: ignore[arg-type]


# ---------------------------------------------------------------- deaths, for the runner

_waitpid, _kill = os.waitpid, os.kill


def waitpid(pid: int, options: int) -> tuple[int, int]:
    """os.waitpid that also tells the runner how the child ended."""
    found, status = _waitpid(pid, options)
    if found and status:
        journal("reaped", found, os.waitstatus_to_exitcode(status))
    return found, status


def wait() -> tuple[int, int]:
    """os.wait, the same."""
    return waitpid(-1, 0)


def kill(pid: int, sig: int) -> None:
    """os.kill that tells the runner that this death was wanted."""
    if sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        journal("killed", pid, int(sig))
    _kill(pid, sig)


os.waitpid, os.wait, os.kill = waitpid, wait, kill


# The machine of the measurements had more cores than a CI runner: n_jobs=-1 must mean many workers.
_cores = int(os.environ.get("PAPER_CPUS", "16"))
os.cpu_count = lambda: _cores
os.sched_getaffinity = lambda pid=0: set(range(_cores))


# ---------------------------------------------------------------- one process


class Process:
    """What the CUDA driver knows inside one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.initialised = False  # cuInit has run here
        self.source = ""  # who ran it first: torch, torch-raw, cupy, numba, jax, tensorflow, cuda-python
        self.poisoned = False  # cuInit ran in an ancestor before the fork
        self.poison_source = ""
        self.forked = False
        self.visible: tuple[int, ...] | None = None  # frozen at cuInit: logical index -> physical GPU
        self.held: dict[int, int] = {}  # physical GPU -> bytes, context included
        self.ancestors_used: frozenset[tuple[str, int]] = frozenset()  # what the parents did before


here = Process()
thread = threading.local()  # the current device, one per thread as in the CUDA runtime
_after_fork: list[Callable[[], None]] = []


def after_fork(function: Callable[[], None]) -> Callable[[], None]:
    """Let a stub settle its own state in a forked child; runs after the driver's own handler."""
    _after_fork.append(function)
    return function


def _child() -> None:
    here.pid = os.getpid()
    here.forked = True
    if here.initialised:
        here.poisoned, here.poison_source = True, here.source
    here.initialised = False
    here.held = {}
    journal("forked", here.pid, os.getppid())
    if here.poisoned:
        pause(0.15)  # a worker that dies at once would be gone before its pool is given anything to do
    for function in _after_fork:
        function()


os.register_at_fork(after_in_child=_child)

if any("spawn_main" in word or "loky" in word for word in sys.orig_argv):
    journal("forked", here.pid, os.getppid())


def gpus() -> int:
    """How many GPUs the paper machine has."""
    return int(os.environ.get("PAPER_GPUS", "1"))


def uuid(physical: int) -> str:
    """The name of a physical GPU, the same in every process whatever CUDA_VISIBLE_DEVICES says."""
    return f"9a9e2000-0000-4000-8000-{physical:012x}"


def visible_now() -> tuple[int, ...]:
    """CUDA_VISIBLE_DEVICES as it stands: a list that ends at the first entry that names no GPU."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return tuple(range(gpus()))
    found: list[int] = []
    for word in text.split(","):
        word = word.strip()
        if word.startswith("GPU-"):
            matches = [i for i in range(gpus()) if ("GPU-" + uuid(i)).startswith(word)]
        else:
            matches = [int(word)] if word.isdigit() and int(word) < gpus() else []
        if not matches or matches[0] in found:
            break
        found.append(matches[0])
    return tuple(found)


def cu_init(source: str) -> bool:
    """Initialise the driver once per process; False when a fork has made that impossible."""
    if here.poisoned:
        return False
    if not here.initialised:
        here.initialised, here.source = True, source
        here.visible = visible_now()
    return True


def visible() -> tuple[int, ...]:
    """The GPUs of this process, logical to physical: frozen once the driver runs (also in forked children)."""
    if here.visible is not None and (here.initialised or here.poisoned):
        return here.visible
    return visible_now()


def current_device() -> int:
    """The logical device of this thread: 0 until the thread chooses."""
    return getattr(thread, "device", 0)


# ---------------------------------------------------------------- memory


class OutOfMemory(Exception):
    """No room on the GPU; every framework dresses it in its own error."""


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            return handle.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _holders(physical: int) -> dict[int, int]:
    """Bytes per living process on one GPU."""
    found: dict[int, int] = {}
    prefix = f"gpu{physical}."
    for name in os.listdir(STATE):
        if name.startswith(prefix):
            pid = int(name[len(prefix) :])
            if not _alive(pid):
                continue
            try:
                with open(os.path.join(STATE, name)) as handle:
                    found[pid] = int(handle.read() or 0)
            except (OSError, ValueError):
                continue
    return found


class _Lock:
    """One lock per GPU across all processes of the run."""

    def __init__(self, physical: int) -> None:
        self.path = os.path.join(STATE, f"lock{physical}")

    def __enter__(self) -> None:
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.handle, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)


def hold(physical: int, change: int) -> None:
    """Take (or give back) memory of a physical GPU for this process."""
    with _Lock(physical):
        mine = here.held.get(physical, 0)
        if change > 0:
            others = sum(size for pid, size in _holders(physical).items() if pid != here.pid)
            if others + mine + change > TOTAL:
                raise OutOfMemory(physical)
        here.held[physical] = mine + change
        with open(os.path.join(STATE, f"gpu{physical}.{here.pid}"), "w") as handle:
            handle.write(str(mine + change))


def open_context(physical: int) -> None:
    """The first use of a GPU by a process opens its context."""
    if physical in here.held:
        return
    hold(physical, CONTEXT)
    journal("context", here.pid, physical)
    pause(0.02)
    if _in_loky() and _SLOWNESS:
        _until_siblings_rest()


def _in_loky() -> bool:
    """Whether this is a worker of joblib's own executor: a short task must not end before the next worker has started."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.current_process().name.startswith("LokyProcess")


def _until_siblings_rest() -> None:
    """Wait while other children of the parent work: in the end each waits for a task or in one."""
    time.sleep(0.25)
    last = None
    for _ in range(80):
        now = _siblings()
        if now == last:
            return
        last = now
        time.sleep(0.25)


def _siblings() -> dict[str, int]:
    """The other children of the parent, with the time they have used; it differs each time for one that runs now."""
    found: dict[str, int] = {}
    tasks = f"/proc/{os.getppid()}/task"
    try:
        threads = os.listdir(tasks)
    except OSError:
        return found
    for pid in {pid for thread in threads for pid in _text_of(f"{tasks}/{thread}/children").split()} - {str(here.pid)}:
        fields = _text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if fields:
            used = (int(fields[11]) + int(fields[12])) // 3
            found[pid] = time.monotonic_ns() if fields[0] in "RD" else used
    return found


def _text_of(path: str) -> str:
    try:
        with open(path) as handle:
            return handle.read()
    except OSError:
        return ""


_SLOWNESS = float(os.environ.get("PAPER_SLOWNESS", "1"))


def pause(seconds: float) -> None:
    """Take the time that hardware takes (much less of it), so that every worker of a pool gets a task."""
    if _SLOWNESS:
        time.sleep(seconds * _SLOWNESS)


def used(physical: int) -> int:
    """Bytes taken on a GPU by all processes together."""
    with _Lock(physical):
        return sum(_holders(physical).values())


def holders(physical: int) -> dict[int, int]:
    """Bytes per process on a GPU, as nvidia-smi lists them."""
    with _Lock(physical):
        return _holders(physical)


def mark(name: str) -> None:
    """Note that this process did something that other processes of the run can count."""
    with open(os.path.join(STATE, f"mark.{name}.{here.pid}"), "w"):
        pass


def marked(name: str) -> list[int]:
    """The living processes that carry a mark."""
    prefix = f"mark.{name}."
    pids = [int(n[len(prefix) :]) for n in os.listdir(STATE) if n.startswith(prefix)]
    return [pid for pid in pids if _alive(pid)]


alive = _alive


def settle(name: str, quiet: float) -> list[int]:
    """Carry a mark, and answer who carries it once nobody new has come for a while."""
    mark(name)
    seen = marked(name)
    for _ in range(20):
        pause(quiet)
        now = marked(name)
        if len(now) <= len(seen):
            break
        seen = now
    return sorted(marked(name))


def sleep_for_ever() -> NoReturn:
    """A deadlock on hardware."""
    while True:
        time.sleep(3600)
