"""What decides how a run on paper ends, as one hash: the program, the stubs it can import, who runs it and who judges.

A program is taken to import the stubs that its text names in any way, and those that these import. Nothing rests on
that guess: in a run whose stubs are known (``VARIABLE``) the paper driver notes an import of any other as a gap, and no
test passes with a gap.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "PAPER_STUBS"  # the stubs that a run may import, separated by blanks
STUBS = Path("cudalint/verify/paper/stubs")
# What runs and judges may import from cudalint, itself part of the hash. What else of cudalint takes part in a test
# (the analysis) is no part of how a program ends: a test that compares with it gives what it said.
_RUNNING = "cudalint.verify"
# Packages that are no stubs and take part in runs. Their bug fixes are left to the runs of each day.
_LIBRARIES = ("billiard", "celery", "cloudpickle", "gunicorn", "joblib", "multiprocess", "numpy")
# What installed packages look for, where a program uses them.
_LOOKS_FOR = {"joblib": frozenset(["distributed"])}
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a test gives to its runs: texts by name, the modules that run and judge them, and all else that decides.

    ``rest`` is plain data, as JSON knows it.
    """

    texts: Mapping[str, str]
    code: tuple[str, ...]
    rest: object = None


@dataclass(frozen=True, slots=True)
class Said:
    """What the text of a module tells: what it imports, what it hands to calls, and names of files."""

    imported: tuple[str, ...]
    handed: tuple[str, ...]
    file_names: tuple[str, ...]


class Tree:
    """The files of a repository, each read once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._hashes: dict[Path, tuple[str, str]] = {}
        self._imports: dict[Path, tuple[Path, ...]] = {}
        self._packages: dict[str, frozenset[str]] = {}
        self._code: dict[tuple[str, ...], frozenset[Path]] = {}
        self._listed: dict[str, list[Path]] = {}
        self._libraries = {name: _version(name) for name in _LIBRARIES}
        self._shared = list((root / STUBS).glob("*.py"))
        self._names = frozenset(
            path.stem for path in (root / STUBS).iterdir() if path.is_dir() and path.name != "__pycache__"
        )

    def digest(self, inputs: Inputs) -> str:
        """One hash of everything that decides."""
        ingredients = {
            "python": [sys.platform, *sys.version_info[:2]],
            "libraries": self._libraries,
            "texts": dict(inputs.texts),
            "rest": inputs.rest,
            "files": dict(map(self._hash, self.files(inputs))),
        }
        return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:20]

    def files(self, inputs: Inputs) -> list[Path]:
        """The files of the repository that take part: stubs, and the code that runs and judges."""
        stubs = {path for name in self.stubs(inputs.texts.values()) for path in self._stub(name)}
        return sorted({*self._shared, *stubs, *self.code(inputs.code)})

    def stubs(self, texts: Iterable[str]) -> frozenset[str]:
        """The stub packages that texts name, and those that these name in turn."""
        words = {word for text in texts for word in _WORD.findall(text)}
        return _closure(words & (self._names | _LOOKS_FOR.keys()), self._named_by) & self._names

    def code(self, modules: Iterable[str]) -> frozenset[Path]:
        """The files of modules and of all that they import or start, those of the tests and those that run programs."""
        key = tuple(modules)
        if key not in self._code:
            self._code[key] = _closure([path for name in key for path in self._found(name)], self._imported_by)
        return self._code[key]

    def _hash(self, path: Path) -> tuple[str, str]:
        """The name of a file in the repository, and what is in it."""
        if path not in self._hashes:
            name = str(path.relative_to(self.root))
            self._hashes[path] = name, hashlib.sha256(path.read_bytes()).hexdigest()
        return self._hashes[path]

    def _stub(self, name: str) -> list[Path]:
        if name not in self._listed:
            self._listed[name] = _files(self.root / STUBS / name)
        return self._listed[name]

    def _named_by(self, package: str) -> frozenset[str]:
        """What a stub imports, told from its imports and from what calls are given."""
        if package in _LOOKS_FOR:
            return _LOOKS_FOR[package]
        if package not in self._packages:
            found: set[str] = set()
            for path in self._stub(package):
                said = _said(path.read_bytes())
                found |= {word.partition(".")[0] for word in (*said.imported, *said.handed)}
            self._packages[package] = frozenset(found & (self._names | _LOOKS_FOR.keys()))
        return self._packages[package]

    def _imported_by(self, path: Path) -> tuple[Path, ...]:
        if path.suffix != ".py":
            return ()
        if path not in self._imports:
            said = _said(path.read_bytes())
            modules = [file for name in said.imported for file in self._found(name)]
            started = [path.parent / text for text in said.file_names]
            self._imports[path] = (*modules, *(file for file in started if file.is_file()))
        return self._imports[path]

    def _found(self, module: str) -> Iterator[Path]:
        """The file of a module of the tests, or of a module of cudalint that has to do with running."""
        base = self.root if module.startswith(f"{_RUNNING}.") else self.root / "tests"
        place = base.joinpath(*module.split("."))
        yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


def of_program(program: Path, name: str) -> dict[str, str]:
    """The texts of a program in one file, by name: its own, and those of what it imports from beside it."""
    texts: dict[str, str] = {}
    waiting = [program]
    while waiting:
        path = waiting.pop()
        text = path.read_text(encoding="utf-8")
        texts[name if path == program else f"{name}/{path.name}"] = text
        roots = {root.partition(".")[0] for root in _said(text.encode()).imported}
        beside = [file for root in roots for file in _files(program.parent / root)]
        assert all(file.parent == program.parent for file in beside), f"{name} imports a folder beside it"
        waiting += [file for file in beside if f"{name}/{file.name}" not in texts and file != program]
    return texts


def _files(package: Path) -> list[Path]:
    """All files of a package, or of a module in one file."""
    alone = package.with_suffix(".py")
    if alone.is_file():
        return [alone]
    return sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


@cache
def _said(text: bytes) -> Said:
    """The same for the same text, wherever it lies: trees that differ in one file are looked at often."""
    nodes = list(ast.walk(ast.parse(text)))
    named = (string for string in _strings(nodes) if re.fullmatch(r"\w+\.\w+", string))
    return Said(tuple(_imported(nodes)), tuple(_handed(nodes)), tuple(named))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every module that may be imported: a name taken from a package may be one too."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _handed(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Texts that calls are given: ``import_module("torch")``."""
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _strings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _closure(first: Iterable[T], following: Callable[[T], Collection[T]]) -> frozenset[T]:
    known: set[T] = set()
    waiting = list(first)
    while waiting:
        one = waiting.pop()
        if one not in known:
            known.add(one)
            waiting += following(one)
    return frozenset(known)


def _version(distribution: str) -> str:
    return ".".join(metadata.version(distribution).split(".")[:2])
