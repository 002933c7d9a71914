"""What a program does to CUDA and processes, noted as it happens, for ``cudalint --verify train.py``.

Loaded by ``sitecustomize`` beside it in every Python process of the program. Functions of the frameworks are wrapped
when their module has been imported: each wrapper calls what it wraps and notes who called. It makes no CUDA call, and
raises nothing of its own. A note is a line ``event TUPLE`` of the journal; its stack is (file, line, function), the
innermost frame first.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

Frame = "tuple[str, int, str]"
_HERE = os.path.dirname(os.path.abspath(__file__))
_DEEPEST = 60
# Notes of one kind by one process: who fails in a loop fails the same way.
_MOST = 20
# Debuggers, coverage and profilers have their own.
_TOOL = 4

# What is wrapped in which module, and what a call of it means.
_TARGETS: "dict[str, list[tuple[str, str]]]" = {
    "torch": [("_C._cuda_init", "use"), ("_C._cuda_getDeviceCount", "query")],
    "torch.cuda": [("_lazy_init", "use"), ("set_device", "select")],
    "torch.storage": [("UntypedStorage._share_cuda_", "send")],
    "torch.multiprocessing.reductions": [
        ("rebuild_cuda_tensor", "receive"),
        ("rebuild_cuda", "receive"),  # on paper, as the next
        ("_note", "send"),
    ],
    "torch.distributed.distributed_c10d": [("init_process_group", "group")],
    "numba.cuda.cudadrv.driver": [("Driver.ensure_initialized", "use")],
    "jax._src.xla_bridge": [("_init_backend", "backend")],
    "tensorflow.python.eager.context": [("Context.ensure_initialized", "use")],
    "multiprocessing.process": [("BaseProcess.start", "start")],
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
        self.noted: dict[str, int] = {}


_here = _Process()
_note: "Callable[..., None]" = print


def _event(kind: str, *values: object) -> None:
    count = _here.noted.get(kind, 0)
    _here.noted[kind] = count + 1
    if count < _MOST:
        _note("event", repr((kind, os.getpid(), *values)))


def _stack() -> "list[tuple[str, int, str]]":
    frames: list[tuple[str, int, str]] = []
    frame = sys._getframe(1)
    while frame is not None and len(frames) < _DEEPEST:
        code = frame.f_code
        if not code.co_filename.startswith((_HERE, "<frozen")):
            frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return frames


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
        _event("select", name, str(args[0]) if args else repr(kwargs), _stack())
        return original(*args, **kwargs)

    return select


def _send(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def send(*args: object, **kwargs: object) -> object:
        _event("send", name, _stack())
        return original(*args, **kwargs)

    return send


def _receive(original: "Callable[..., Any]", name: str) -> "Callable[..., Any]":
    def receive(*args: object, **kwargs: object) -> object:
        _event("receive", name, _stack())
        if _here.forked:
            return _attempt("receive", name, original, args, kwargs)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            _event("lost", name, f"{type(error).__name__}: {error}"[:300], _stack())
            raise

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
        result = original(self)
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
    "send": _send,
    "receive": _receive,
    "group": _group,
    "backend": _backend,
    "start": _start,
    "driver": _driver,
}


def _of(owner: Any, name: str) -> Any:
    """A name of a module, without asking the module's own ``__getattr__``; of a class also what it inherits."""
    return getattr(owner, name, None) if isinstance(owner, type) else vars(owner).get(name) if owner else None


def _wrap(module: Any) -> None:
    """Put the wrappers into a module that has just been imported. What is not there is left alone."""
    for path, kind in _TARGETS[module.__name__]:
        owner: Any = module
        *outer, name = path.split(".")
        for part in outer:
            owner = _of(owner, part)
        original = _of(owner, name)
        if not callable(original):
            continue
        wrapper = _WRAP[kind](original, f"{module.__name__}.{path}")
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            try:
                setattr(wrapper, attribute, getattr(original, attribute))
            except (AttributeError, TypeError):
                continue
        wrapper.__wrapped__ = original  # type: ignore[attr-defined]
        setattr(owner, name, wrapper)


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
    _here.ready = False
    _here.noted = {}
    _here.forked = number if _here.guilty else ""
    _event("born", number)


def _watch_environment() -> None:
    kind = type(os.environ)
    store = kind.__setitem__

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        if key == "CUDA_VISIBLE_DEVICES" and _here.guilty:
            _event("visible", str(value), _stack())
        store(self, key, value)

    kind.__setitem__ = __setitem__  # type: ignore[method-assign]


def _watch_places(text: str) -> None:
    """Note which of the places (lines ``ROW:FILE``) are reached, on a Python that can tell at no cost."""
    monitoring: Any = getattr(sys, "monitoring", None)
    places: dict[str, set[int]] = {}
    for line in filter(None, text.split("\n")):
        row, _, name = line.partition(":")
        places.setdefault(name, set()).add(int(row))
    if monitoring is None or not places or monitoring.get_tool(_TOOL) is not None:
        return
    bases = {os.path.basename(name) for name in places}
    start = os.getcwd()

    def rows(code: Any) -> "tuple[str, set[int]]":
        if os.path.basename(code.co_filename) not in bases:
            return "", set()
        name = os.path.realpath(os.path.join(start, code.co_filename))
        return name, places.get(name, set())

    def started(code: Any, _offset: int) -> Any:
        if rows(code)[1]:
            monitoring.set_local_events(_TOOL, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def reached(code: Any, row: int) -> Any:
        name, wanted = rows(code)
        if row in wanted:
            _event(f"reached {row}", name)
        return monitoring.DISABLE

    monitoring.use_tool_id(_TOOL, "cudalint")
    monitoring.register_callback(_TOOL, monitoring.events.PY_START, started)
    monitoring.register_callback(_TOOL, monitoring.events.LINE, reached)
    monitoring.set_events(_TOOL, monitoring.events.PY_START)
    _event("looks")


def watch(note: "Callable[..., None]") -> None:
    """Begin."""
    global _note
    _note = note
    sys.meta_path.insert(0, _Finder)
    for name in _TARGETS:
        if name in sys.modules:
            _wrap(sys.modules[name])
    parent = [os.getpid()]
    os.register_at_fork(before=_before_fork, after_in_child=lambda: _after_fork(parent))
    _watch_environment()
    _watch_places(os.environ.get("CUDALINT_PLACES", ""))
