"""Where the modules of a project lie: names of files, and which file an import means.

Imports are resolved on paths, as Python does it: relative ones from the folder of the importer, absolute ones from the
folders that ``sys.path`` may hold. Those are the folder above the importer's package, the folders above that one with
their ``src``, the importer's own folder and those above it that hold a script, and any other root in which the name is
found only once.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable

from cudalint.models.releases import Admitted
from cudalint.project.pytest_files import lies_with_tests
from cudalint.project.scripts import UNSAID
from cudalint.structs import Mutable, field

_INIT = "__init__"


class Layout(Mutable):
    """Files by path, with the names that the machine knows them by. A folder without files is named by its path."""

    names: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    tops: dict[str, set[str]] = field(default_factory=dict)
    top: str = ""
    # The folders without ``__init__.py`` outside of packages, by name: the folders that hold them.
    namespaces: dict[str, set[str]] = field(default_factory=dict)
    # The folders that hold packages.
    holders: frozenset[str] = frozenset()
    # What the project is called where it is installed.
    distributions: frozenset[str] = frozenset()
    # The releases of packages that it is used with, as far as its files name them.
    admitted: frozenset[Admitted] = frozenset()
    # The packages of the project that are libraries which models know, and more code than tests are followed through.
    large: frozenset[str] = frozenset()
    # What files and folders are called: what is not among these, no import finds in the project.
    called: frozenset[str] = frozenset()
    # What such a folder is one part of, as far as it was asked for.
    _portions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Its parts in other roots, of one that was found from its importer.
    _others: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Packages above a folder without ``__init__.py``, by the modules that are imported through both.
    outer: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _found: dict[tuple[str, str, bool], str | None] = field(default_factory=dict)
    _relatives: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _own: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def relative(self, importer: str, name: str, level: int) -> str | None:
        """What ``from ..name import`` means in a module."""
        path = self.paths.get(importer)
        if path is None:
            return None
        folder = os.path.dirname(path)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        key = (folder, name)
        if key not in self._relatives:
            self._relatives[key] = self._at(folder, name.split(".") if name else [])
        return self._relatives[key]

    def absolute(
        self, importer: str, name: str, *, holds_script: Callable[[str], bool], is_library: bool
    ) -> str | None:
        """What ``import name`` means in a module; ``is_library`` where an installed package has the name too.

        The folder of the script that was started is on the path of all modules it imports. A file that imports its own
        name means the installed package that is called as it is.
        """
        path = self.paths.get(importer)
        if path is None or name.partition(".")[0] not in self.called:
            return None
        folder = os.path.dirname(path)
        for_tests = is_library and lies_with_tests(path[len(self.top) :])
        key = (folder, name, for_tests)
        if key not in self._found:
            self._found[key] = self._absolute(folder, name.split("."), holds_script, is_library, for_tests)
        found = self._found[key]
        return None if is_library and found == importer and os.path.basename(path) == f"{name}.py" else found

    def _absolute(
        self, folder: str, parts: list[str], holds_script: Callable[[str], bool], is_library: bool, for_tests: bool
    ) -> str | None:
        own = self.outside_packages(folder)
        comes_with_python = parts[0] in sys.stdlib_module_names
        if is_library or comes_with_python:
            found = self._before_library(own, parts, not comes_with_python) or self._of_own_package(folder, parts)
            # Of a large library, tests see what models say: they come to nothing where they are led through its source.
            if found is not None or comes_with_python or (for_tests and parts[0] in self.large):
                return found
            return self._called_so(own, parts)
        for root in self._roots_above(own):
            if (found := self._at(root, parts)) is not None:
                self._remember_others(found, parts)
                return self._of_project(found, parts) or found
        while folder != own:
            if (found := self._at(folder, parts)) is not None and holds_script(folder):
                return found
            folder = os.path.dirname(folder)
        homes = self.tops.get(parts[0], set())
        found = self._at(next(iter(homes)), parts) if len(homes) == 1 else None
        return self._in_namespace(parts) if found is None else found

    def is_installed_as(self, package: str) -> bool:
        """Whether the project may be what others import by this name: ``TTS`` of coqui-tts.

        Its own name, or a word of that, is the package's; or its metadata does not say what it is called.
        """
        own = package.lower()
        return any(name == UNSAID or own in (name, *name.split("_")) for name in self.distributions)

    def _called_so(self, root: str, parts: list[str]) -> str | None:
        """A module of a package of the project, above the one that imports it, that is or is called as a library is."""
        homes = (above for above in self._roots_above(root) if os.path.join(above, parts[0]) in self.packages)
        return next((found for above in homes if (found := self._at(above, parts)) is not None), None)

    def _of_own_package(self, folder: str, parts: list[str]) -> str | None:
        """A module of the package in which a folder lies that has no ``__init__.py``: that package is no other one.

        The package itself may have none either, where the project says that it is installed by this very name.
        """
        is_said = parts[0].lower() in self.distributions
        while len(folder) > len(self.top):
            above = os.path.dirname(folder)
            if os.path.basename(folder) == parts[0] and (is_said or folder in self.packages):
                found = self._at(above, parts)
                return None if found is None or (self.is_bare(found) and folder not in self.packages) else found
            folder = above
        return None

    def lies_below_package(self, module: str) -> bool:
        """Whether a file without a package around it lies somewhere in the folder of one."""
        folder = os.path.dirname(self.paths[module])
        while len(folder) > len(self.top) and folder not in self.packages:
            folder = os.path.dirname(folder)
        return folder in self.packages

    def _before_library(self, root: str, parts: list[str], may_lack: bool) -> str | None:
        """What a name means that a library has, too: an installed package goes before a folder that only could be one.

        A module in such a folder is found by its name only where no package is installed that is called so.
        """
        found = self._at(root, parts)
        if found is None or not self._is_bare_folder(os.path.join(root, parts[0])):
            return found
        return found if may_lack and not self.is_bare(found) else None

    def _of_project(self, found: str, parts: list[str]) -> str | None:
        """The package in a folder that is called so as it holds that package's project, which Python takes none for."""
        if len(parts) > 1 or not self.is_bare(found):
            return None
        inner = (self._at(os.path.join(found, place).rstrip(os.sep), parts) for place in ("", "src"))
        return next((name for name in inner if name is not None and not self.is_bare(name)), None)

    def _remember_others(self, found: str, parts: list[str]) -> None:
        """The parts in other roots of a folder without ``__init__.py``, which have what it does not."""
        if self.is_bare(found) and len(parts) > 1 and found not in self._others:
            homes = sorted(self.namespaces.get(parts[0], ()))
            named = (self._at(home, parts) for home in homes)
            self._others[found] = tuple(n.rstrip(os.sep) for n in named if n not in (None, found) and self.is_bare(n))

    def _in_namespace(self, parts: list[str]) -> str | None:
        """A module below folders without ``__init__.py`` that have one name in several roots: one package to Python.

        By itself the name stands for them where it has packages: others are folders that happen to be called so.
        """
        homes = sorted(self.namespaces.get(parts[0], ()))
        if len(parts) == 1:
            homes = [home for home in homes if os.path.join(home, parts[0]) in self.holders]
        found = list(dict.fromkeys(name for home in homes if (name := self._at(home, parts)) is not None))
        if not found or (len(found) > 1 and not all(map(self.is_bare, found))):
            return None
        if self.is_bare(found[0]):
            self._portions[found[0]] = tuple(name.rstrip(os.sep) for name in found)
        return found[0]

    def anywhere(self, name: str) -> str | None:
        """The module of this dotted name in the first root that has it."""
        roots = sorted({self.top, *(os.path.join(self.top, "src"),), *self.tops.get(name.partition(".")[0], set())})
        return next((found for root in roots if (found := self._at(root, name.split("."))) is not None), None)

    def _is_bare_folder(self, folder: str) -> bool:
        return folder in self.folders and folder not in self.packages and f"{folder}.py" not in self.names

    def _roots_above(self, root: str) -> Iterable[str]:
        yield root
        yield os.path.join(root, "src")
        while len(root) > len(self.top):
            root = os.path.dirname(root)
            yield root
            yield os.path.join(root, "src")

    def outside_packages(self, folder: str) -> str:
        """The nearest folder, itself or above, that is no package."""
        while folder in self.packages:
            folder = os.path.dirname(folder)
        return folder

    def _at(self, folder: str, parts: list[str]) -> str | None:
        passed: list[str] = []
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            inner = os.path.join(folder, part)
            if last and inner not in self.packages and (name := self.names.get(f"{inner}.py")) is not None:
                self._above(name, passed)
                return name
            if inner not in self.folders:
                return None
            folder = inner
            passed.append(folder)
        found = self._folder_name(folder)
        if found is not None:
            self._above(found, passed[:-1])
        return found

    def _above(self, name: str, passed: list[str]) -> None:
        """Remember the packages above a folder without ``__init__.py`` through which a module is imported."""
        packages = tuple(self.names[os.path.join(f, f"{_INIT}.py")] for f in passed if f in self.packages)
        own = self._own_parents(name)
        if len(packages) > len(own):
            self.outer[name] = packages[: len(packages) - len(own)]

    def _folder_name(self, folder: str) -> str | None:
        if folder in self.packages:
            return self.names[os.path.join(folder, f"{_INIT}.py")]
        return f"{folder}{os.sep}" if folder in self.folders else None

    def is_bare(self, name: str) -> bool:
        """Whether a name stands for a folder without ``__init__.py``."""
        return name.endswith(os.sep)

    def child(self, package: str, name: str) -> str | None:
        """The module ``name`` in a package."""
        folder = self._folder_of(package)
        if folder is None:
            return None
        for portions in (self._portions.get(package, (folder,)), self._others.get(package, ())):
            found = {inner for one in portions if (inner := self._at(one, [name])) is not None}
            if found:
                return found.pop() if len(found) == 1 else None
        return None

    def _folder_of(self, package: str) -> str | None:
        if self.is_bare(package):
            return package.rstrip(os.sep)
        path = self.paths.get(package)
        if path is None or os.path.basename(path) != f"{_INIT}.py":
            return None
        return os.path.dirname(path)

    def parents(self, name: str) -> tuple[str, ...]:
        """The packages that are imported before a module, the outermost first."""
        return (*self.outer.get(name, ()), *self._own_parents(name))

    def _own_parents(self, name: str) -> tuple[str, ...]:
        if name not in self._own:
            self._own[name] = self._parents_of(name)
        return self._own[name]

    def _parents_of(self, name: str) -> tuple[str, ...]:
        path = self.paths.get(name)
        if path is None:
            return ()
        folder = os.path.dirname(path)
        if os.path.basename(path) == f"{_INIT}.py":
            folder = os.path.dirname(folder)
        found: list[str] = []
        while folder in self.packages:
            found.insert(0, self.names[os.path.join(folder, f"{_INIT}.py")])
            folder = os.path.dirname(folder)
        return tuple(found)

    def package(self, name: str) -> str | None:
        """What ``__package__`` names: the package that a module lies in, or is."""
        path = self.paths.get(name)
        return None if path is None else self._folder_name(os.path.dirname(path))


def layout(paths: Iterable[str], root: str | None) -> Layout:
    """Name all files: by their packages, and by their folder too where two would have one name."""
    ordered = sorted(paths)
    result = Layout(packages={os.path.dirname(p) for p in ordered if os.path.basename(p) == f"{_INIT}.py"})
    homes: dict[str, set[str]] = defaultdict(set)
    for path in ordered:
        folder = os.path.dirname(path)
        first, name = _dotted(path, result.packages)
        if name in result.paths:
            name = f"{folder}:{name}"
        result.names[path] = name
        result.paths[name] = path
        homes[first[1]].add(first[0])
        while folder and folder not in result.folders:
            result.folders.add(folder)
            folder = os.path.dirname(folder) if os.path.dirname(folder) != folder else ""
    result.tops = dict(homes)
    bases = map(os.path.basename, (*result.folders, *ordered))
    result.called = frozenset(base.removesuffix(".py") for base in bases)
    spaces: dict[str, set[str]] = defaultdict(set)
    for folder in result.folders - result.packages:
        above, name = os.path.split(folder)
        if above not in result.packages:
            spaces[name].add(above)
    result.namespaces = dict(spaces)
    result.holders = frozenset(map(os.path.dirname, result.packages))
    # From there what lies in a package is imported, and mostly started: beside it are its settings.
    result.top = root or result.outside_packages(_common(os.path.dirname(p) for p in ordered))
    return result


def _common(folders: Iterable[str]) -> str:
    try:
        return os.path.commonpath(list(folders))
    except ValueError:  # no file, several drives, or absolute paths among relative ones
        return ""


def _dotted(path: str, packages: set[str]) -> tuple[tuple[str, str], str]:
    """The root of a file with its first name there, and its dotted name."""
    folder, base = os.path.split(path)
    stem = base.removesuffix(".py").removesuffix(".pyw")
    parts = [] if stem == _INIT else [stem]
    while folder in packages:
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return (folder, parts[0] if parts else stem), ".".join(parts) or stem
