"""What texts say that are computed of a program's own file: a path to that file or to one beside it, or a command.

The folder of the file is not known, so it is a sign that no path has; so is whatever else the code does not show.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Hashable, Iterator
from pathlib import PurePosixPath

from cudalint.machine.values import Const, Lib, Unknown, rest_of

_FOLDER = "\x00"
_HIDDEN = "\x01"
Said = str | PurePosixPath | tuple[str, ...] | None

_OF_PATHS: dict[str, Callable[..., Said]] = {
    "os.path.dirname": posixpath.dirname,
    "os.path.basename": posixpath.basename,
    "os.path.splitext": posixpath.splitext,
    "os.path.split": posixpath.split,
    "os.path.join": posixpath.join,
    "os.path.normpath": str,
    "os.path.abspath": str,
    "os.path.realpath": str,
    "os.path.relpath": lambda path, start="": str(path),
    "os.path.expanduser": str,
    "os.fspath": str,
    "os.fsencode": str,
    "builtins.str": str,
    "builtins.repr": str,
    "pathlib.Path": PurePosixPath,
    "pathlib.PurePath": PurePosixPath,
    "pathlib.PosixPath": PurePosixPath,
    "pathlib.PurePosixPath": PurePosixPath,
}
_SAME = frozenset({"resolve", "absolute", "expanduser", "readlink"})
_OF_PATH = frozenset({"with_suffix", "with_name", "with_stem", "joinpath", "as_posix"})
_OF_TEXT = frozenset(
    {"replace", "removesuffix", "removeprefix", "strip", "rstrip", "lstrip", "rpartition", "partition"}
)
_PARTS = frozenset({"parent", "name", "stem", "suffix"})


def said(part: Hashable, file: str) -> str | None:
    """A text, or a path as one, where ``file`` is the name of the program's own; None for what says nothing."""
    found = _said(part, file)
    return None if found is None or isinstance(found, tuple) else str(found)


def leads_to(text: str, file: str) -> bool:
    """Whether a path is that of the file, as far as its last name says."""
    return posixpath.basename(text) == file


def _said(part: Hashable, file: str) -> Said:
    match part:
        case Const(value=str(text)):
            return text
        case Const(value=bytes(data)):
            return data.decode("utf-8", "replace")
        case Unknown(sym=("__file__", _) | (_, ".", "co_filename") | (Lib(path="sys.argv"), "[]", (Const(value=0),))):
            return f"{_FOLDER}/{file}"
        case Unknown(sym=("call", *_, "inspect.getfile" | "inspect.getsourcefile" | "inspect.getabsfile")):
            return f"{_FOLDER}/{file}"
        case Unknown(sym=("follows", str(path), *_)):
            return _made(_OF_PATHS.get(path), rest_of(part.sym, 2), file)
        case Unknown(sym=("follows", (owner, ".", str(name)), *_)):
            return _by_method(_said(Unknown(owner), file), name, rest_of(part.sym, 2), file)
        case Unknown(sym=("str", inner)):
            return _text_of(_said(Unknown(inner), file))
        case Unknown(sym=(owner, ".", str(name))) if name in _PARTS:
            found = _said(Unknown(owner), file)
            return getattr(found, name) if isinstance(found, PurePosixPath) else None
        case Unknown(sym=(owner, "[]", (key,))):
            return _part(_said(Unknown(owner), file), key)
        case Unknown(sym=(("bin", *_), str(op), left, right)):
            return _combined(_one(left, file), _one(right, file), op)
        case Unknown(sym=(("joined" | "bin", *_), tuple(parts))):
            return "".join(str(_one(one, file) or _HIDDEN) for one in parts)
    return None


def _one(value: Hashable, file: str) -> Said:
    """What a value says that has no alternatives."""
    return _said(value[0], file) if isinstance(value, tuple) and len(value) == 1 else None


def _text_of(found: Said) -> Said:
    return None if found is None else str(found)


def _combined(left: Said, right: Said, op: str) -> Said:
    if op == "/" and isinstance(left, PurePosixPath):
        return left / (_HIDDEN if right is None else str(right))
    if left is None and right is None:
        return None
    return f"{_HIDDEN if left is None else left}{_HIDDEN if right is None else right}"


def _made(make: Callable[..., Said] | None, values: tuple[Hashable, ...], file: str) -> Said:
    given = list(_given(values, file))
    if make is None or not given:
        return None
    try:
        return make(*given)
    except (TypeError, ValueError):
        return None


def _by_method(owner: Said, name: str, values: tuple[Hashable, ...], file: str) -> Said:
    if isinstance(owner, PurePosixPath) and name in _SAME:
        return owner
    known = _OF_PATH if isinstance(owner, PurePosixPath) else _OF_TEXT if isinstance(owner, str) else ()
    if name not in known:
        return None
    try:
        made: Said = getattr(owner, name)(*_given(values, file))
    except (TypeError, ValueError):
        return None
    return made


def _given(values: tuple[Hashable, ...], file: str) -> Iterator[str | PurePosixPath]:
    """Arguments, each as far as it is known."""
    for value in values:
        found = _one(value, file)
        yield _HIDDEN if found is None or isinstance(found, tuple) else found


def _part(found: Said, key: Hashable) -> Said:
    """``found[key]``."""
    if not isinstance(found, str | tuple):
        return None
    try:
        match key:
            case Const(value=int(number)):
                return found[number]
            case Unknown(sym=("slice", *_)):
                return found[slice(*map(_bound, rest_of(key.sym, 1)))]
    except (IndexError, TypeError, ValueError):
        return None
    return None


def _bound(value: Hashable) -> int | None:
    match value:
        case (Const(value=int(number)),):
            return number
        case ():
            return None
    raise ValueError("a bound that the code does not show")
