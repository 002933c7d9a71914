"""Where the source of a package lies, found without importing it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator
from importlib import metadata

import tomli

from cudalint import disk
from cudalint.limits import DEFAULT
from cudalint.structs import Frozen
from cudalint.text.decode import decode
from cudalint.text.guard import refuse, too_large
from cudalint.text.source import SourceFile

_COMPILED = (".so", ".pyd", ".dylib", ".pyc")
# Folders beside or in a package that nobody imports it for.
_ASIDE = frozenset({"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "build"})


class NoPackage(Exception):
    """Why there is no source to read, in one line."""


class Package(Frozen):
    """A package by the name that programs import.

    ``root`` is the folder that ``sys.path`` would hold, ``place`` the folder of the package or its only file.
    ``version`` is empty where nothing names one.
    """

    name: str
    version: str
    root: str
    place: str

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version or '(version unknown)'}"


class PackageSource(Frozen):
    """The files of a package: what can be read, what is compiled, and what is passed over and why."""

    package: Package
    sources: tuple[SourceFile, ...]
    compiled: tuple[str, ...]
    passed_over: tuple[str, ...]


def find(wanted: str) -> Package:
    """The package at a path, of a name that programs import, or of an installed distribution; or ``NoPackage``."""
    if os.path.exists(wanted):
        return _at(os.path.abspath(wanted))
    if os.sep in wanted or wanted.endswith(".py"):
        raise NoPackage(f"{wanted}: no such file or directory")
    return _imported(wanted) or _distributed(wanted)


def read(package: Package) -> PackageSource:
    """Read the files of a package."""
    sources: list[SourceFile] = []
    compiled: list[str] = []
    passed_over: list[str] = []
    for path in _files(package.place):
        shown = os.path.relpath(path, package.root)
        if path.endswith(_COMPILED):
            compiled.append(shown)
        elif path.endswith(".py"):
            found = _source(path)
            if isinstance(found, SourceFile):
                sources.append(found)
            else:
                passed_over.append(f"{shown}: {found}")
    return PackageSource(package, tuple(sources), tuple(compiled), tuple(passed_over))


def _source(path: str) -> SourceFile | str:
    try:
        found = decode(path, disk.read(path))
    except disk.Unreadable as error:
        return str(error)
    if not isinstance(found, SourceFile):
        return found.reason
    refused = too_large(len(found.data), DEFAULT.file_size) or refuse(found.text)
    return found if refused is None else refused.reason


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):
        yield place
        return
    for folder, inner, files in os.walk(place):
        inner[:] = sorted(name for name in inner if name not in _ASIDE and name != "__pycache__")
        yield from (os.path.join(folder, name) for name in sorted(files))


def _imported(name: str) -> Package | None:
    if not name.isidentifier():
        return None
    try:
        # Of a name without dots this looks for files, and imports nothing.
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        place = os.path.abspath(next(iter(spec.submodule_search_locations)))
    elif spec.origin is not None and spec.origin.endswith(".py"):
        place = os.path.abspath(spec.origin)
    else:
        raise NoPackage(f"{name} has no source that could be read: it is compiled into {spec.origin or 'Python'}")
    return Package(name, _version_of(name), os.path.dirname(place), place)


def _version_of(name: str) -> str:
    owners = metadata.packages_distributions().get(name, [])
    return metadata.version(owners[0]) if owners else ""


def _distributed(name: str) -> Package:
    """The one package of a distribution that is called otherwise, as PyYAML is."""
    try:
        metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise NoPackage(f"{name} is not installed here, and no folder of that name exists") from None
    wanted = _plain(name)
    holds = (top for top, owners in metadata.packages_distributions().items() if wanted in map(_plain, owners))
    names = sorted(top for top in holds if top.isidentifier() and not top.startswith("_") and top not in _ASIDE)
    if len(names) != 1:
        raise NoPackage(f"{name} holds {_several(names)}")
    found = _imported(names[0])
    if found is None:
        raise NoPackage(f"{name} is installed without its package {names[0]}")
    return found


def _plain(distribution: str) -> str:
    return distribution.lower().replace("_", "-").replace(".", "-")


def _several(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"several packages; name one of them: {listed}" if listed else "no Python package"


def _at(path: str) -> Package:
    """The package that a path is, or holds, as the folder of an unpacked release does."""
    if os.path.isfile(path):
        if not path.endswith(".py"):
            raise NoPackage(f"{path}: not a Python file")
        return _named(path)
    if os.path.isfile(os.path.join(path, "__init__.py")):
        return _named(path)
    inside = [place for folder in (path, os.path.join(path, "src")) for place in _packages_in(folder)]
    if len(inside) == 1:
        return _named(inside[0])
    if inside:
        raise NoPackage(f"{path} holds {_several(os.path.basename(p) for p in inside)}")
    raise NoPackage(f"{path} holds no package: no folder with an __init__.py")


def _packages_in(folder: str) -> Iterator[str]:
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        place = os.path.join(folder, name)
        if name.isidentifier() and name not in _ASIDE and os.path.isfile(os.path.join(place, "__init__.py")):
            yield place


def _named(place: str) -> Package:
    root = os.path.dirname(place)
    name = os.path.basename(place).removesuffix(".py")
    return Package(name, _told_version(root) or _told_version(os.path.dirname(root)), root, place)


def _told_version(folder: str) -> str:
    """What the metadata of a release or a project beside the package says."""
    infos = sorted(n for n in (os.listdir(folder) if os.path.isdir(folder) else ()) if n.endswith(".dist-info"))
    for path in (*(os.path.join(folder, n, "METADATA") for n in infos[:1] if len(infos) == 1), f"{folder}/PKG-INFO"):
        for line in _text(path).splitlines():
            if line.startswith("Version:"):
                return line.partition(":")[2].strip()
    try:
        project = tomli.loads(_text(os.path.join(folder, "pyproject.toml"))).get("project")
    except (tomli.TOMLDecodeError, RecursionError):
        return ""
    version = project.get("version") if isinstance(project, dict) else None
    return version if isinstance(version, str) else ""


def _text(path: str) -> str:
    try:
        return disk.read(path, disk.MOST_SETTINGS_BYTES).decode()
    except (disk.Unreadable, UnicodeDecodeError):
        return ""
