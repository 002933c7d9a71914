"""What is certainly there, though the code does not show it: no None, and of some texts that they are not empty."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.values import Const, Unknown, rest_of
from cudalint.models.library import Library

# What gives a path or a name that is never empty.
_NAMES = frozenset(
    {"pathlib.Path", "pathlib.PurePath", "pathlib.Path.cwd", "pathlib.Path.home", "os.getcwd", "tempfile.mkdtemp",
     "tempfile.mktemp", "tempfile.gettempdir", "os.path.abspath", "uuid.UUID", "uuid.uuid4"}
)  # fmt: skip
_JOINS = "os.path.join"
# How an option is meant that a user has to give: a text, which nobody gives empty, or a number.
NEEDED = "needed"
NEEDED_NUMBER = "needed number"


def is_present(sym: Hashable, library: Library) -> bool:
    """Whether something is certainly not None: a text that is put together, a number, what such a function gives."""
    match sym:
        case ("int" | "bool" | "str" | "float", _) | ("is" | "not", *_):
            return True
        case ("option", _, str(), str(style)):
            return style in (NEEDED, NEEDED_NUMBER)
        case ("call", _, _, _, str(path), *_) | ("follows", str(path), *_):
            return library.traits.has(path, "gives-texts") and not library.traits.has(path, "may-give-none")
        case (("bin" | "joined", *_), *_):
            return True
    return False


def is_filled(sym: Hashable) -> bool:
    """Whether something is certainly true: a path, or a text of which some part is not empty."""
    match sym:
        case ("option", _, str(), str(style)):
            return style == NEEDED
        case ("call", _, _, _, str(path), *_) | ("follows", str(path), *_):
            return path in _NAMES or (path == _JOINS and any(map(_has_text, map(_alternatives, rest_of(sym, 2)))))
        case (("joined", *_), tuple(parts)):
            return any(map(_has_text, parts))
    return False


def _alternatives(part: Hashable) -> tuple[Hashable, ...]:
    return part if isinstance(part, tuple) else (part,)


def _has_text(part: tuple[Hashable, ...]) -> bool:
    """Whether a part of a text is itself not empty, whichever of its alternatives it is."""
    return bool(part) and all(_is_text(atom) for atom in part)


def _is_text(atom: Hashable) -> bool:
    match atom:
        case Const(value=str(text)):
            return text != ""
        case Unknown(sym=sym):
            return is_filled(sym)
    return False
