"""Where paths lead that a program makes of constants, of its own files and of the folder that it runs in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import PurePosixPath

from cudalint.machine.values import Const, Unknown, Value, constant, only, rest_of
from cudalint.structs import Frozen, replace

# What joins parts of a path, or takes one as it is.
JOINS = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath"})
# What gives the file that it is given, by another path.
_KEEPS = frozenset({"os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath"})
_FOLDER_OF, _HERE = "os.path.dirname", frozenset({"os.getcwd", "pathlib.Path.cwd"})
_OF_PACKAGES = frozenset({"importlib.resources.files", "importlib_resources.files"})
# The methods by which a path gives another one.
METHODS = frozenset({"resolve", "absolute", "expanduser", "as_posix", "joinpath", "with_name"})
RENAMES = frozenset({"with_stem", "with_suffix"})
# The methods of paths, and of what they open, of which more is known.
WRITE = frozenset({"write_text", "write_bytes", "rename", "replace", "unlink", "symlink_to", "hardlink_to", "touch"})
OF_FILES = METHODS | WRITE | {"open", "read", "readlines", "read_text", "read_bytes", "exists", "is_file"}
# What stands for the file of a module, whatever its name is.
_ITSELF = "\0"


class Located(Frozen):
    """A path from the folder of a module's file, or from where the program runs."""

    module: str | None
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.parts[-1] if self.parts else ""

    @property
    def folder(self) -> Located:
        """The folder that it lies in."""
        if not self.parts or self.parts[-1] == "..":
            return replace(self, parts=(*self.parts, ".."))
        return replace(self, parts=self.parts[:-1])

    def joined(self, text: str) -> Located | None:
        """What lies there under another path; None where that is no part of a project."""
        if text.startswith(("/", "~")) or "\0" in text or "\\" in text or len(text) > 1_000:
            return None
        found = self
        for part in text.split("/"):
            if part == "..":
                found = found.folder
            elif part not in ("", "."):
                found = replace(found, parts=(*found.parts, part))
        return found


def is_file_of(value: Value, module: str) -> bool:
    """Whether a path leads to the file of a module, as ``__file__`` does there."""
    return located(value) == Located(module, (_ITSELF,))


def located(value: Value) -> Located | None:
    """Where a path leads, as far as the program shows it."""
    return _of_atom(shown(value))


def shown(value: Value) -> Const | Unknown | None:
    """What a path is: of a setting that a user may set otherwise, what it is if nobody does."""
    constants = [atom for atom in value if isinstance(atom, Const)]
    if len(constants) == 1 and all(isinstance(atom, Const | Unknown) for atom in value):
        return constants[0]
    atom = only(value)
    return atom if isinstance(atom, Unknown) else None


def of_symbol(sym: Hashable) -> Located | None:
    """Where a path leads that is no constant, by what it is made of."""
    match sym:
        case ("__file__", str(module)):
            return Located(module, (_ITSELF,))
        case ("str", base):
            return of_symbol(base)
        case (base, ".", "parent"):
            found = of_symbol(base)
            return None if found is None else found.folder
        case ((base, ".", "parents"), "[]", (Const(value=int(number)),)) if 0 <= number < 20:
            found = of_symbol(base)
            for _ in range(number + 1):
                found = None if found is None else found.folder
            return found
        case (_, "/", tuple(left), tuple(right)):
            return _joined(_values((left, right)))
        case (_, "+", tuple(left), tuple(right)):
            return _spelled(_values((left, right)))
        case (("joined", *_), tuple(parts)):
            return _spelled(_values(parts))
        case ("call", _, _, _, str(path), *_):
            return _made(path, _values(rest_of(sym, 5)))
        case ("follows", str(path), *_):
            return _made(path, _values(rest_of(sym, 2)))
        case ("follows", (base, ".", str(name)), *_):
            return _given(of_symbol(base), name, _values(rest_of(sym, 2)))
    return None


_PATHS = frozenset(f"pathlib.{name}" for name in ("Path", "PurePath", "PosixPath", "PurePosixPath"))
# What a path says of itself, and the methods by which it gives another one, which look at no file.
_SAID = frozenset({"name", "stem", "suffix", "suffixes", "parts"})
_CHANGED = RENAMES | {"joinpath", "with_name"}


def said(sym: Hashable, name: str) -> str | tuple[str, ...] | None:
    """``Path("a/b.yaml").suffix``: what a path made of constants says of itself; None of anything else."""
    if name not in _SAID:
        return None
    found = written(sym) or (None if name == "parts" else _last_of(sym))
    if found is None:
        return None
    parts = getattr(found, name)
    return parts if isinstance(parts, str) else tuple(parts)


def _last_of(sym: Hashable) -> PurePosixPath | None:
    """The end of a path that begins somewhere."""
    match sym:
        case (_, "/", _, (Const(value=str(text)),)) if text.strip("./"):
            return PurePosixPath(text)
    return None


def written(sym: Hashable) -> PurePosixPath | None:
    """The path that something is which a program makes of constants."""
    match sym:
        case ("call", _, _, _, str(path), *_):
            return _of_parts(path in _PATHS, rest_of(sym, 5))
        case ("follows", str(path), *_):
            return _of_parts(path in _PATHS, rest_of(sym, 2))
        case (_, "/", tuple(left), tuple(right)):
            return _of_parts(True, (left, right))
        case (base, ".", "parent"):
            found = written(base)
            return None if found is None else found.parent
        case ("follows", (base, ".", str(name)), *_) if name in _CHANGED:
            return _changed(written(base), name, rest_of(sym, 2))
    return None


def _of_parts(is_path: bool, parts: Iterable[object]) -> PurePosixPath | None:
    known = [_written_part(part) for part in parts] if is_path else []
    found = [part for part in known if part is not None]
    return PurePosixPath(*found) if found and len(found) == len(known) else None


def _written_part(part: object) -> str | PurePosixPath | None:
    match part[0] if isinstance(part, tuple) and len(part) == 1 else part:
        case Const(value=str(text)):
            return text
        case Unknown(sym=sym):
            return written(sym)
    return None


def _changed(found: PurePosixPath | None, name: str, given: Iterable[object]) -> PurePosixPath | None:
    known = [_written_part(part) for part in given]
    if found is None or not all(isinstance(part, str) for part in known):
        return None
    try:
        made = getattr(found, name)(*known)
    except (TypeError, ValueError):
        return None
    return made if isinstance(made, PurePosixPath) else None


def _values(given: Iterable[object]) -> tuple[Value, ...]:
    """What a call was given, as far as it may be part of a path."""
    atoms = (part[0] if isinstance(part, tuple) and len(part) == 1 else part for part in given)
    return tuple((atom,) if isinstance(atom, Const | Unknown) else () for atom in atoms)


def _of_atom(atom: object) -> Located | None:
    match atom:
        case Const(value=str(text)):
            return Located(None, ()).joined(text) if text else None
        case Unknown(sym=sym):
            return of_symbol(sym)
    return None


def _made(path: str, values: tuple[Value, ...]) -> Located | None:
    """What a function makes of paths."""
    if path in JOINS:
        return _joined(values)
    if path in _HERE:
        return Located(None, ())
    if path in _OF_PACKAGES:
        name = constant(values[0]) if values else ...
        return Located(name, ()) if isinstance(name, str) else None
    found = located(values[0]) if len(values) == 1 else None
    if found is None or path == _FOLDER_OF:
        return None if found is None else found.folder
    return found if path in _KEEPS else None


def _joined(values: tuple[Value, ...]) -> Located | None:
    found = located(values[0]) if values else None
    for value in values[1:]:
        match only(value):
            case Const(value=str(text)) if found is not None:
                found = found.joined(text)
            case _:
                return None
    return found


def _spelled(values: tuple[Value, ...]) -> Located | None:
    """What texts make that follow each other: a path, and what lies below it."""
    found, texts = located(values[0]), [only(value) for value in values[1:]]
    text = "".join(atom.value for atom in texts if isinstance(atom, Const) and isinstance(atom.value, str))
    is_shown = all(isinstance(atom, Const) and isinstance(atom.value, str) for atom in texts)
    return found.joined(text.lstrip("/")) if found is not None and is_shown and text.startswith("/") else None


def _given(found: Located | None, name: str, values: tuple[Value, ...]) -> Located | None:
    """What a method of a path gives."""
    if name in RENAMES:
        return None
    if name == "with_name" and found is not None:
        found, name = found.folder, "joinpath"
    for value in values if name == "joinpath" else ():
        match only(value):
            case Const(value=str(text)) if found is not None:
                found = found.joined(text)
            case _:
                return None
    return found
