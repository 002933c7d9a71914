"""Options as a program declares them, and what argparse itself makes of a command line that is written down."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from cudalint.machine.values import NONE, Bound, Const, Lib, Partial, Ref, Value, const, constant, only

# What a parser keeps of each of its options, and that it has one of which argparse could not be told.
DECLARED, UNDECLARED = "<declared> ", "<undeclared>"
_ACTIONS = frozenset({"append", "count", "store", "store_const", "store_false", "store_true"})
_TYPES: dict[str, type] = {"builtins.float": float, "builtins.int": int, "builtins.str": str}
_SAYS_NOTHING = frozenset({"choices", "default", "help", "metavar"})
_OPTIONAL = "argparse.BooleanOptionalAction"


class _Refused(Exception):
    """The words are none that the options allow."""


class _Parser(argparse.ArgumentParser):
    """Refuses without a word."""

    def error(self, message: str) -> NoReturn:
        raise _Refused(message)


def declaration(names: Iterable[str], given: Mapping[str, Value]) -> Value | None:
    """An option in constants; None where something else decides what it becomes."""
    found: list[tuple[str, object]] = []
    action = constant(given.get("action", const("store")))
    collects = action in ("append", "count") and given.get("default", NONE) not in (NONE, const(0))
    if collects or (action not in _ACTIONS and only(given["action"]) != Lib(_OPTIONAL)):
        return None
    is_made = is_converter(given.get("type", NONE))
    if is_made and "nargs" in given:
        return None
    for name, value in given.items():
        atom = only(value)
        if name in _SAYS_NOTHING or (name == "type" and is_made):
            # What the program makes of a word is made of it afterwards.
            continue
        if isinstance(atom, Lib) and (atom.path in _TYPES if name == "type" else atom.path == _OPTIONAL):
            found.append((name, atom.path))
        elif isinstance(atom, Const) and name in ("action", "const", "dest", "nargs", "required"):
            found.append((name, atom.value))
        elif value != NONE:
            return None
    return (Const((tuple(names), tuple(found))),)


def is_converter(kind: Value) -> bool:
    """Whether an option's type is a function that is called with the word: of the program, or of a library."""
    match only(kind):
        case Ref() | Partial() | Bound(function=Ref()):
            return True
        case Lib(path=path):
            return path not in _TYPES
    return False


# What a parser makes of words that its options do not allow.
REFUSED: dict[str, object] = {"<refused>": True}


def parsed(fields: Mapping[str, Value], words: list[str]) -> dict[str, object] | None:
    """What the options are that are given among these words; ``REFUSED`` of wrong words, None if nobody knows."""
    declared = [constant(value) for name, value in fields.items() if name.startswith(DECLARED)]
    if UNDECLARED in fields or not all(isinstance(each, tuple) for each in declared):
        return None
    parser = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    try:
        for each in declared:
            assert isinstance(each, tuple)
            names, given = each
            told: dict[str, Any] = {name: _as_told(name, value) for name, value in given}
            parser.add_argument(*names, **told, default=argparse.SUPPRESS)
        found, _ = parser.parse_known_args(words)
    except _Refused:
        return REFUSED
    except (argparse.ArgumentError, TypeError, ValueError):
        return None
    return vars(found)


def _as_told(name: str, value: object) -> object:
    if name == "type":
        return _TYPES[str(value)]
    return argparse.BooleanOptionalAction if value == _OPTIONAL else value
