"""Questions about files: they are answered alike for as long as nothing may have changed files in between."""

from __future__ import annotations

from cudalint.machine import paths
from cudalint.machine.heap import FILES, Scope
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Const, Unknown, Value, constant, only, unknown
from cudalint.models.library import Library

_CHANGES = "changes"
_WRITING = frozenset("wxa+")
_WAITS = ("pauses", "waits", "awaits")


def asked(path: str, receiver: Atom | None, args: list[Value], library: Library, state: State) -> Value | None:
    """What is asked of a file by this function or method; None for all others."""
    if not library.traits.has(path, "asks-of-file"):
        return None
    given = [*(((receiver,),) if receiver is not None else ()), *args]
    atom = only(given[0]) if len(given) == 1 else None
    if not isinstance(atom, Const | Unknown):
        return None
    return unknown("asks", path.rpartition(".")[2], paths.located((atom,)) or atom, _epoch(state))


def _epoch(state: State) -> int:
    """How often files may have changed since this was first asked for."""
    found = state.get(FILES)
    if not isinstance(found, Scope):
        _store(0, state)
        return 0
    return max(map(_number, found.variables[_CHANGES]), default=0)


def _number(atom: Atom) -> int:
    match atom:
        case Unknown(sym=(_, int(number))):
            return number
    return 0


def _store(number: int, state: State) -> None:
    # No number as a constant: it is nothing that keeps paths apart.
    state.store(FILES, Scope({_CHANGES: unknown("changes", number)}, None, "", "library"))


def may_change(path: str, args: list[Value], library: Library, state: State) -> None:
    """A call of a function or method may have changed files, unless it is known to leave them."""
    if state.get(FILES) is None or _leaves(path, args, library):
        return
    _store(_epoch(state) + 1, state)


def has_waited(state: State) -> None:
    """Another round of a loop may find other files: it may be there to wait for them."""
    if state.get(FILES) is not None:
        _store(_epoch(state) + 1, state)


def _leaves(path: str, args: list[Value], library: Library) -> bool:
    """Whether a function or method changes no file, and does not wait for others to do so."""
    if library.traits.has(path, "asks-of-file"):
        return True
    if library.traits.has(path, "opens-file"):
        mode = constant(args[1]) if len(args) > 1 else "r"
        return isinstance(mode, str) and _WRITING.isdisjoint(mode)
    if library.traits.has(path, "changes-file") or path.removeprefix("?.") in paths.WRITE:
        return False
    follows = library.process_effect(path)
    if follows is not None and follows.gives == "value":
        return True
    if any(library.traits.has(path, trait) for trait in _WAITS):
        return False
    spec = library.function(path)
    if spec is not None and ("gpu" in spec or spec.get("does") == "show"):
        return True
    effect = library.process_effect(path) if spec is None else library.process_effects.get(path)
    return effect is not None and effect.state == "none" and not effect.shows
