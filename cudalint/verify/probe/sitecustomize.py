"""Loaded by every Python process of a verified program: notes births and deaths, and changes nothing else.

It imports nothing that a program could notice, makes no CUDA call, and runs the ``sitecustomize`` that it
stands in front of. Each note is one line of the journal: ``python PID``, ``forked PID``, ``ended PID CODE``,
``told PID SIGNAL``.
With ``CUDALINT_WATCH`` it also notes what the program does to CUDA.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Kept, as programs may empty their environment.
_JOURNAL = os.environ.get("CUDALINT_JOURNAL", "")
# What is done before a process leaves without running what it has registered for its end.
_last_looks = []


def _note(*words: object) -> None:
    try:
        journal = os.open(_JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return
    try:
        os.write(journal, (" ".join(map(str, words)) + "\n").encode())
    except OSError:  # no room, or files may not grow: that is no business of the program
        return
    finally:
        os.close(journal)


def _watch_exit() -> None:
    leave = os._exit

    def _exit(status: int) -> None:
        for look in _last_looks:
            look()
        code = status & 0xFF if isinstance(status, int) else 0
        if code:
            _note("ended", os.getpid(), code)
        leave(status)

    os._exit = _exit  # type: ignore[assignment]


def _watch_waits() -> None:
    wait = os.waitpid

    def waitpid(pid: int, options: int, /) -> "tuple[int, int]":
        ended, status = wait(pid, options)
        if ended and status and not os.WIFSTOPPED(status) and not os.WIFCONTINUED(status):
            _note("ended", ended, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        return ended, status

    def wait_any() -> "tuple[int, int]":
        return waitpid(-1, 0)

    os.waitpid, os.wait = waitpid, wait_any


def _note_told(pid: object, signal: object) -> None:
    """Who signals itself dies by itself; what cannot be sent is refused by what is wrapped."""
    if isinstance(pid, int) and isinstance(signal, int) and signal and pid != os.getpid():
        _note("told", int(pid), int(signal))


def _watch_signals() -> None:
    send, send_group = os.kill, os.killpg

    def kill(pid: int, signal: int, /) -> None:
        _note_told(pid, signal)
        send(pid, signal)

    def killpg(group: int, signal: int, /) -> None:
        _note_told(group, signal)
        send_group(group, signal)

    os.kill, os.killpg = kill, killpg


def _watch_replacement() -> None:
    """What ``os.exec`` puts in the place of this process: the other functions of its kind call these two."""

    def watched(replace: "Callable[..., None]") -> "Callable[..., None]":
        def execute(path: object, *words: object) -> None:
            _note("replaced", os.getpid(), os.fsdecode(path))  # type: ignore[arg-type]
            try:
                replace(path, *words)
            finally:  # only where it could not
                _note("stayed", os.getpid())

        return execute

    os.execv, os.execve = watched(os.execv), watched(os.execve)  # type: ignore[assignment]


def _chain() -> None:
    """Run the module of this name that would have been loaded without the probe."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if _JOURNAL:
    _note("python", os.getpid())
    os.register_at_fork(after_in_child=lambda: _note("forked", os.getpid()))
    _watch_exit()
    _watch_waits()
    _watch_signals()
    _watch_replacement()
    if "CUDALINT_WATCH" in os.environ:
        _watch = __import__("_cudalint_watch")
        _watch.watch(_note)
        _last_looks.append(_watch.leave)
_chain()
