"""What a program does to CUDA and processes, noted as it happens, for ``cudalint --verify train.py``.

Loaded by ``sitecustomize`` beside it in every Python process of the program. Functions of the frameworks are wrapped
when their module has been imported: each wrapper calls what it wraps and notes who called. It initialises nothing: what
it asks torch (allocations so far per device, the device of this thread, which GPUs these are) it asks where the
program has initialised CUDA, and torch answers from what it keeps. It raises nothing of its own. A note is a line
``event TUPLE`` of the journal; its stack is (file, line, function), the innermost frame first.
"""

import atexit
import os
import sys
from _thread import get_ident
from collections.abc import Callable
from typing import Any

Frame = "tuple[str, int, str]"
_HERE = os.path.dirname(os.path.abspath(__file__))
_DEEPEST = 60
# Notes of one kind by one process: who fails in a loop fails the same way.
_MOST = 20
# Frames between a statement and what is wrapped.
_NEAR = 4
# Debuggers, coverage and profilers have their own.
_TOOL = 4

# What is wrapped in which module, and what a call of it means.
_TARGETS: "dict[str, list[tuple[str, str]]]" = {
    "torch": [("_C._cuda_init", "use"), ("_C._cuda_getDeviceCount", "query")],
    "torch.cuda": [("_lazy_init", "use"), ("set_device", "select"), ("device.__init__", "device")],
    "torch.storage": [
        ("UntypedStorage._share_cuda_", "send"),
        ("UntypedStorage._share_fd_cpu_", "send host"),
        ("UntypedStorage._share_filename_cpu_", "send host"),
    ],
    "torch.multiprocessing.reductions": [
        ("rebuild_cuda_tensor", "receive"),
        ("rebuild_cuda", "receive"),  # on paper, as the next
        ("_note", "send"),
        ("_note_host", "send host"),
    ],
    "torch.distributed.distributed_c10d": [("init_process_group", "group")],
    "torch.distributed": [("init_process_group", "group")],  # on paper; else it is the one above
    "numba.cuda.cudadrv.driver": [("Driver.ensure_initialized", "use")],
    "jax._src.xla_bridge": [("_init_backend", "backend")],
    "tensorflow.python.eager.context": [("Context.ensure_initialized", "use")],
    "multiprocessing.process": [("BaseProcess.start", "start")],
    "multiprocessing.reduction": [("ForkingPickler.dumps", "pickle"), ("dump", "pickle")],
    "joblib.externals.loky.backend.reduction": [("dumps", "pickle")],
    "threading": [("Thread.start", "thread"), ("Thread._bootstrap_inner", "body")],
    # Paper CUDA.
    "torch._gpu": [("lazy_init", "use"), ("query_count", "query"), ("raw_use", "use")],
    "paper_driver": [("cu_init", "driver")],
}


class _Process:
    """What this process knows of itself; a forked child starts with what its parent knew."""

    def __init__(self) -> None:
        self.guilty = False  # this process, or one it was forked from, has asked for CUDA
        self.ready = False  # the first use of this process was noted
        self.forked = ""  # the number of the fork that made it, if its parent was guilty then
        self.forks = 0
        self.left = False  # that this process ends was noted
        self.noted: dict[str, int] = {}
        self.gpus: list[str] = []  # the UUIDs of the devices that this process sees, once it has initialised CUDA
        self.starts: dict[int, list[tuple[str, int, str]]] = {}  # where threads that have not begun were started


_here = _Process()
_note: "Callable[..., None]" = print


def _event(kind: str, *values: object) -> None:
    count = _here.noted.get(kind, 0)
    _here.noted[kind] = count + 1
    if count < _MOST:
        _note("event", repr((kind, os.getpid(), *values)))


def _is_full(kind: str) -> bool:
    """Whether no more notes of a kind are taken, so that nothing needs to be read for one."""
    return _here.noted.get(kind, 0) >= _MOST


def _stack() -> "list[tuple[str, int, str]]":
    frames: list[tuple[str, int, str]] = []
    frame = sys._getframe(1)
    while frame is not None and len(frames) < _DEEPEST:
        code = frame.f_code
        if not code.co_filename.startswith((_HERE, "<frozen")):
            frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return frames


# ---------------------------------------------------------------- what torch knows already


def _original(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)


def _usage() -> "tuple[int, dict[int, int], list[str]] | None":
    """The current device of this thread, how many allocations each device has had, and the UUID of each.

    ``None`` where this process has not initialised CUDA by torch. Neither opens a context, and no answer is one that
    torch would keep for the program's own questions (as that of ``torch.cuda.device_count()``).
    """
    torch, cuda = sys.modules.get("torch"), sys.modules.get("torch.cuda")
    try:
        if torch is None or cuda is None or not cuda.is_initialized():
            return None
        core: Any = torch._C
        if core._cuda_getAllocatorBackend() != "native":  # others ask the driver
            return None
        count = _original(core._cuda_getDeviceCount)()
        made = {i: int(core._cuda_memoryStats(i)["allocation"]["all"]["allocated"]) for i in range(count)}
        if not _here.gpus:
            _here.gpus = [str(getattr(cuda._get_device_properties(i), "uuid", "")) for i in range(count)]
        return int(core._cuda_getDevice()), made, _here.gpus
    except Exception:  # another torch, one that is half imported, or a GPU that has failed
        return None


def leave() -> None:
    """This process ends: what it used."""
    if not _here.left:
        _here.left = True
        _event("left", get_ident(), _usage())


# ---------------------------------------------------------------- what a call means


def _use(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def use(*args: object, **kwargs: object) -> object:
        if _here.ready:
            return original(*args, **kwargs)
        return _attempt("use", name, original, args, kwargs)

    return use


def _attempt(
    kind: str, name: str, original: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]"
) -> Any:
    """Call, and say how it went; in a child of a guilty parent say before that it is tried, as it may never return."""
    doubtful = bool(_here.forked)
    if doubtful:
        _event("try", name, _here.forked, _stack())
    try:
        result = original(*args, **kwargs)
    except BaseException as error:
        if doubtful:
            _event("failed", name, _here.forked, f"{type(error).__name__}: {error}"[:300], _stack())
        raise
    if kind == "use" and not _here.ready:  # else a wrapped function that it called has said so
        _here.ready = _here.guilty = True
        _event("worked" if doubtful else "init", name, _stack())
    return result


def _query(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def query(*args: object, **kwargs: object) -> object:
        if not _here.guilty:
            _here.guilty = True
            _event("query", name, _stack())
        return original(*args, **kwargs)

    return query


def _select(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def select(*args: object, **kwargs: object) -> object:
        if _is_full("select"):
            return original(*args, **kwargs)
        ranks = (os.environ.get("RANK"), os.environ.get("LOCAL_RANK"))
        value = str(args[0] if args else next(iter(kwargs.values()), ""))
        _event("select", value, get_ident(), _usage(), ranks, _stack())
        return original(*args, **kwargs)

    return select


def _device(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    """A device object is made: noted only where a finding is about that, as a ``with`` makes one as well."""

    def __init__(self: Any, *args: object, **kwargs: object) -> None:
        stack = [] if _is_full("asked") else _stack()[:_NEAR]
        if any(_is_place(filename, row) for filename, row, _ in stack):
            value = str(args[0] if args else next(iter(kwargs.values()), ""))
            _event("asked", value, get_ident(), _usage(), stack)
        original(self, *args, **kwargs)

    return __init__


def _pickle(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    """What is pickled goes to another process; that is also when a worker has done a task."""

    def pickle(*args: object, **kwargs: object) -> object:
        try:
            result = original(*args, **kwargs)
        except Exception as error:
            _event("unpickled", f"{type(error).__name__}: {error}"[:300], _stack())
            raise
        if not _is_full("usage") and "torch.cuda" in sys.modules:
            usage = _usage()
            if usage is not None:
                _event("usage", get_ident(), usage)
        return result

    return pickle


def _begin(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def start(self: Any) -> None:
        if _here.guilty and not _is_full("thread"):
            _here.starts[id(self)] = _stack()
        original(self)

    return start


def _body(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def _bootstrap_inner(self: Any) -> None:
        stack = _here.starts.pop(id(self), None)
        if stack is None:
            return original(self)  # type: ignore[no-any-return]
        before = _usage()
        try:
            original(self)
        finally:
            _event("thread", get_ident(), before, _usage(), stack)

    return _bootstrap_inner


def _send(original: "Callable[..., Any]", name: str, kind: str = "send") -> "Callable[..., Any]":
    def send(*args: object, **kwargs: object) -> object:
        _event(kind, name, _stack())
        return original(*args, **kwargs)

    return send


def _send_host(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    return _send(original, name, "host")


def _receive(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def receive(*args: object, **kwargs: object) -> object:
        _event("receive", name, _stack())
        if _here.forked:
            return _attempt("receive", name, original, args, kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            _event("lost", name, f"{type(error).__name__}: {error}"[:300], _stack())
            raise
        _event("received", name, _stack())
        return result

    return receive


def _group(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def group(*args: object, **kwargs: object) -> object:
        selected = bool(_here.noted.get("select"))
        _event("group", name, str(kwargs.get("backend", args[0] if args else None)), selected, _stack())
        return original(*args, **kwargs)

    return group


def _backend(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def backend(*args: object, **kwargs: object) -> object:
        if not args or args[0] not in ("cuda", "gpu") or _here.ready:
            return original(*args, **kwargs)
        return _attempt("use", name, original, args, kwargs)

    return backend


def _start(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def start(self: Any) -> object:
        stack = _stack()
        try:
            result = original(self)
        except AssertionError as error:  # a daemon, which may have no children
            _event("refused", f"AssertionError: {error}"[:300], stack)
            raise
        method = getattr(getattr(self, "_popen", None), "method", None)
        _event("start", self.pid, method, bool(self.daemon), stack)
        return result

    return start


def _driver(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def driver(source: str) -> object:
        able = original(source)
        if not able and not source.startswith("torch"):
            _event("failed", source, _here.forked, "the driver was initialised before the fork", _stack())
        elif able and not _here.guilty:
            _here.guilty = True
            _event("query" if source == "torch" else "init", source, _stack())
        return able

    return driver


_WRAP: "dict[str, Callable[[Callable[..., Any], str], Callable[..., Any]]]" = {
    "use": _use,
    "query": _query,
    "select": _select,
    "device": _device,
    "pickle": _pickle,
    "thread": _begin,
    "body": _body,
    "send": _send,
    "send host": _send_host,
    "receive": _receive,
    "group": _group,
    "backend": _backend,
    "start": _start,
    "driver": _driver,
}


def _of(owner: Any, name: str) -> Any:
    """A name of a module, without asking the module's own ``__getattr__``; of a class also what it inherits."""
    return getattr(owner, name, None) if isinstance(owner, type) else vars(owner).get(name) if owner else None


def _is_ours(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and str(code.co_filename).startswith(_HERE)


def _wrap(module: Any) -> None:
    """Put the wrappers into a module that has just been imported. What is not there is left alone."""
    for path, kind in _TARGETS[module.__name__]:
        owner: Any = module
        *outer, name = path.split(".")
        for part in outer:
            owner = _of(owner, part)
        original = _of(owner, name)
        if not callable(original) or _is_ours(original):
            continue
        shared = isinstance(owner, type) and isinstance(vars(owner).get(name), classmethod)
        original = original.__func__ if shared else original  # subclasses call it as their own
        wrapper = _WRAP[kind](original, f"{module.__name__}.{path}")
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            try:
                setattr(wrapper, attribute, getattr(original, attribute))
            except (AttributeError, TypeError):
                continue
        wrapper.__wrapped__ = original  # type: ignore[attr-defined]
        setattr(owner, name, classmethod(wrapper) if shared else wrapper)


# ---------------------------------------------------------------- imports, forks, environment


class _Finder:
    """First on the import path: lets the others find a target, and wraps it once it has been loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """Find as if this finder were not there."""
        if name not in _TARGETS:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is _Finder or find is None else find(name, path, target)
            if spec is not None:
                _hook(spec.loader)
                return spec
        return None


def _hook(loader: Any) -> None:
    original = getattr(loader, "exec_module", None)
    if original is None:
        return

    def exec_module(module: Any) -> None:
        del loader.exec_module
        original(module)
        _wrap(module)

    try:
        loader.exec_module = exec_module
    except (AttributeError, TypeError):
        return


def _driver_is_open() -> bool:
    """Whether this process holds the device that only the CUDA driver opens; also where no wrapper saw it."""
    try:
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{name}") == "/dev/nvidia-uvm":
                    return True
            except OSError:
                continue
    except OSError:
        pass
    return False


def _before_fork() -> None:
    if not _here.guilty and _driver_is_open():
        _here.guilty = True
        _event("init", "an unknown library", [])
    _here.forks += 1
    _event("fork", f"{os.getpid()}.{_here.forks}", _here.guilty, _stack())


def _after_fork(parent: "list[int]") -> None:
    number = f"{parent[0]}.{_here.forks}"
    parent[0] = os.getpid()
    _here.ready = _here.left = False
    _here.noted, _here.gpus, _here.starts = {}, [], {}
    _here.forked = number if _here.guilty else ""
    _event("born", number)
    if _places and monitoring is not None:
        monitoring.restart_events()  # what the parent has passed, the child passes as well


def _watch_environment() -> None:
    kind = type(os.environ)
    store = kind.__setitem__

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        if key == "CUDA_VISIBLE_DEVICES":
            _event("visible", str(value), self.get(key), _here.guilty, _stack())
        store(self, key, value)

    kind.__setitem__ = __setitem__  # type: ignore[method-assign]


monitoring: Any = getattr(sys, "monitoring", None)
# The rows of interest by file, and of each row the first and last one of the statement's part that is meant.
_places: "dict[str, dict[int, tuple[int, int]]]" = {}
_bases: "set[str]" = set()
_home = ""  # where the program was started


def _read_places(text: str) -> None:
    """From lines ``FIRST-LAST:FILE``."""
    global _home
    try:
        _home = os.getcwd()
    except OSError:  # the folder is gone
        return
    for line in filter(None, text.split("\n")):
        rows, _, name = line.partition(":")
        first, _, last = rows.partition("-")
        for row in range(int(first), int(last) + 1):
            _places.setdefault(name, {})[row] = (int(first), int(last))
    _bases.update(os.path.basename(name) for name in _places)


def _rows(filename: str) -> "tuple[str, dict[int, tuple[int, int]]]":
    if os.path.basename(filename) not in _bases:
        return "", {}
    name = os.path.realpath(os.path.join(_home, filename))
    return name, _places.get(name, {})


def _is_place(filename: str, row: int) -> bool:
    return row in _rows(filename)[1]


class _Passing:
    """Which rows of interest are reached, and which of them are left without an exception."""

    def __init__(self) -> None:
        self.within: dict[int, tuple[Any, tuple[int, int], int]] = {}  # by thread: the code, the rows, the one reached
        self.times: dict[tuple[str, int], int] = {}

    def started(self, code: Any, _offset: int) -> Any:
        """A function begins."""
        if _rows(code.co_filename)[1]:
            monitoring.set_local_events(_TOOL, code, monitoring.events.LINE | monitoring.events.PY_RETURN)
        return monitoring.DISABLE

    def line(self, code: Any, row: int) -> Any:
        """A row begins; what is of no interest any more is not asked for again."""
        name, wanted = _rows(code.co_filename)
        thread = get_ident()
        inside = self.within.get(thread)
        if inside is not None and inside[0] is code:
            first, last = inside[1]
            if first <= row <= last and (first < last or row != inside[2]):
                return None
            self.passed(name, inside[2])
            del self.within[thread]
        if row not in wanted:
            return monitoring.DISABLE
        times = self.times[name, row] = self.times.get((name, row), 0) + 1
        if times == 1 or not _here.noted.get(f"reached {row}"):
            _event(f"reached {row}", name)
        if times > _MOST or _here.noted.get(f"passed {row}"):
            return monitoring.DISABLE
        self.within[thread] = (code, wanted[row], row)
        monitoring.restart_events()  # the row that comes next may be one that was of no interest before
        return None

    def returned(self, code: Any, _offset: int, _value: object) -> Any:
        """A function ends as it should."""
        inside = self.within.get(get_ident())
        if inside is None or inside[0] is not code:
            return monitoring.DISABLE
        self.passed(_rows(code.co_filename)[0], inside[2])
        del self.within[get_ident()]
        return None

    def failed(self, code: Any, _offset: int, _error: object) -> Any:
        """An exception leaves a function, or is handled in it."""
        inside = self.within.get(get_ident())
        if inside is not None and inside[0] is code:
            del self.within[get_ident()]

    @staticmethod
    def passed(name: str, row: int) -> None:
        """Note it once."""
        if not _here.noted.get(f"passed {row}"):
            _event(f"passed {row}", name)


def _watch_places() -> None:
    """Note which of the places are reached and passed, on a Python that can tell at no cost."""
    if monitoring is None or not _places or monitoring.get_tool(_TOOL) is not None:
        return
    passing, events = _Passing(), monitoring.events
    monitoring.use_tool_id(_TOOL, "cudalint")
    for event, told in (
        (events.PY_START, passing.started),
        (events.LINE, passing.line),
        (events.PY_RETURN, passing.returned),
        (events.PY_UNWIND, passing.failed),
        (events.EXCEPTION_HANDLED, passing.failed),
    ):
        monitoring.register_callback(_TOOL, event, told)
    monitoring.set_events(_TOOL, events.PY_START | events.PY_UNWIND | events.EXCEPTION_HANDLED)
    _event("looks")


def watch(note: "Callable[..., None]") -> None:
    """Begin."""
    global _note
    _note = note
    _read_places(os.environ.get("CUDALINT_PLACES", ""))
    atexit.register(leave)
    sys.meta_path.insert(0, _Finder)
    for name in _TARGETS:
        if name in sys.modules:
            _wrap(sys.modules[name])
    parent = [os.getpid()]
    os.register_at_fork(before=_before_fork, after_in_child=lambda: _after_fork(parent))
    _watch_environment()
    _watch_places()
