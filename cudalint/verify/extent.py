"""Which files a program consists of: where it begins, what it imports from there, and the scripts that it names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cudalint.verify.notebooks import python_of

_PACKAGE = "__init__.py"
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def extent(starts: Iterable[Path], roots: Iterable[Path]) -> tuple[Path, ...]:
    """The files from which a program starts and all that they lead to; what is installed is no part of it.

    Imports are looked up beside the files from which it starts and in ``roots``. A string that names an existing script
    counts, as it does for a launcher that starts others.
    """
    pending = [start.resolve() for start in starts]
    folders = tuple(dict.fromkeys([*(start.parent for start in pending), *(root.resolve() for root in roots)]))
    found: dict[Path, None] = {}
    while pending:
        path = pending.pop()
        if path in found or is_library(str(path)):
            continue
        found[path] = None
        pending += _led_to(path, folders)
    return tuple(found)


def is_library(name: str) -> bool:
    """Whether a file belongs to Python or to what is installed."""
    if name.startswith(("<", os.path.dirname(os.__file__))):
        return True
    return not _INSTALLED.isdisjoint(Path(name).parts) or f"verify{os.sep}paper{os.sep}stubs" in name


def _led_to(path: Path, roots: Sequence[Path]) -> list[Path]:
    try:
        tree = ast.parse(python_of(path))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return [found for node in ast.walk(tree) for found in _of(node, path, roots)]


def _of(node: ast.AST, path: Path, roots: Sequence[Path]) -> Iterator[Path]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield from _module(alias.name.split("."), roots)
        case ast.ImportFrom(module=module, names=names, level=level):
            words = module.split(".") if module else []
            where = [path.parents[level - 1]] if 0 < level <= len(path.parents) else roots
            for alias in names:
                yield from _module([*words, alias.name], where)
        case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[first, *_]):
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield from _module(first.value.split("."), roots)
        case ast.Constant(value=str(text)) if text.endswith(".py") and "\n" not in text:
            yield from _scripts(text, (Path.cwd(), path.parent, *roots))


def _module(words: Sequence[str], roots: Iterable[Path]) -> Iterator[Path]:
    """The files that importing a dotted name runs, from the first root that has its first part."""
    for root in roots:
        last = root
        found: list[Path] = [root / _PACKAGE] if (root / _PACKAGE).is_file() else []
        own = False
        for word in words:
            file, folder = last / f"{word}.py", last / word
            if file.is_file():
                found.append(file)
                own = True
            elif folder.is_dir():
                found += [folder / _PACKAGE] if (folder / _PACKAGE).is_file() else []
                own = True
            else:
                break
            last = folder
        if own or not words:
            yield from found
            return


def _scripts(text: str, roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        try:
            if (root / text).is_file():
                yield root / text
                return
        except OSError:  # a name too long for a file
            return
