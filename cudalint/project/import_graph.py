"""Which modules of a program import which, told from their bytes and from the files of settings that they read."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cudalint.models.library import Library
from cudalint.project import settings_named
from cudalint.project.file_facts import FileFacts
from cudalint.project.imports import ONE_OF_ALL
from cudalint.project.layout import Layout
from cudalint.structs import Frozen, Mutable, field
from cudalint.text.source import SourceFile

MOST_REACHED = 400
# A text that ends in something unknown may name any module of a package that has so few.
MOST_WITHIN = 4
# How many modules a package imports at most that lists its folder.
MOST_BESIDE = 60
# A module, a class, a method: what a dotted text may name.
_MOST_NAMED_WITHIN = 3


class _Import(Frozen):
    """A module of the project that a file imports."""

    home: str
    at_once: bool


class ImportGraph(Mutable):
    """The imports of a program; ``settings`` gives the text of a file of settings."""

    library: Library
    sources: dict[str, SourceFile]
    layout: Layout
    facts: Callable[[str], FileFacts]
    settings: Callable[[str], str | None]
    _resolved: dict[tuple[str, str, int], str | None] = field(default_factory=dict)
    _children: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _reach: dict[str, frozenset[str]] = field(default_factory=dict)
    _imported: dict[str, tuple[_Import, ...]] = field(default_factory=dict)
    _importers: dict[str, set[str]] | None = None
    # The modules that lie directly in each package.
    _within: dict[str, tuple[str, ...]] | None = None
    _scripts: dict[str, bool] = field(default_factory=dict)
    # Whether some file may import what something else names.
    _by_name: bool | None = None

    def take(self, other: ImportGraph) -> None:
        """Have the imports of a program whose files import the same."""
        self._imported, self._importers = dict(other._imported), other._importers

    def _imports(self, name: str) -> tuple[_Import, ...]:
        if name not in self._imported:
            self._imported[name] = tuple(dict.fromkeys(self._read_imports(name)))
        return self._imported[name]

    def _home_of_text(self, name: str, text: str, level: int) -> str | None:
        """The module that a dotted text names, or that defines what it names: a function, or a method of a class."""
        for _ in range(_MOST_NAMED_WITHIN):
            home = self.resolve(name, text, level)
            if home is not None:
                return home
            text = text.rpartition(".")[0]
        return None

    def _read_imports(self, name: str) -> Iterable[_Import]:
        for found in self.facts(name).imports:
            named = self._home_of_text if found.is_text else self.resolve
            home = named(name, found.module, found.level)
            if home is None and not found.level and not found.is_text:
                below = (self.below_library(name, found.module, n) for n in found.names)
                yield from (_Import(h, found.at_once) for h in below if h in self.sources)
            if home is None or (found.is_text and home == name and ONE_OF_ALL not in found.names):
                continue
            homes = [*self.layout.parents(home), home]
            homes.extend(child for n in found.names if (child := self.child(home, n)) is not None)
            if ONE_OF_ALL in found.names and len(within := self.submodules(home)) <= MOST_WITHIN:
                homes.extend(within)
            yield from (_Import(h, found.at_once) for h in homes if h in self.sources)
        if self._some_import_by_name:
            yield from self._read_settings(name)
        if self.layout.package(name) == name:
            yield from self._read_beside(name)

    @property
    def _some_import_by_name(self) -> bool:
        if self._by_name is None:
            self._by_name = any(self.facts(name).imports_by_name for name in self.sources)
        return self._by_name

    def _read_settings(self, name: str) -> Iterable[_Import]:
        """The modules that files of settings name which a module reads: what these are handed to may import them."""
        own = os.path.dirname(self.sources[name].path)
        folders = dict.fromkeys((own, self.layout.top))
        places = [os.path.normpath(os.path.join(f, p)) for p in self.facts(name).settings_places for f in folders]
        texts = {place: self.settings(place) or "" for place in places}
        others = [other for place, text in texts.items() for other in settings_named.further(place, text)]
        for text in dict.fromkeys((*texts.values(), *(self.settings(other) or "" for other in others))):
            for dotted in settings_named.names(text):
                home = self._home_of_text(name, dotted, 0)
                homes = () if home is None or home == name else (*self.layout.parents(home), home)
                yield from (_Import(h, at_once=False) for h in homes if h in self.sources)

    def _read_beside(self, package: str) -> Iterable[_Import]:
        """The modules in a package that it imports where it lists its folder, or that a star import of it imports."""
        within = self.submodules(package)[:MOST_BESIDE]
        if within and self.facts(package).may_import_all_beside:
            yield from (_Import(home, at_once=True) for home in within)
        named = self.facts(package).named_for_stars if within else frozenset()
        yield from (_Import(home, at_once=False) for home in within if home.rpartition(".")[2].encode() in named)

    def reach(self, name: str) -> frozenset[str]:
        """The modules that running a file may import, by its bytes."""
        if name not in self._reach:
            reached = self.reached([name], at_once=False)
            if any(self.facts(one).imports_what_it_is_told for one in reached):
                named = [home for one in reached for home in self._named_in_texts(one)]
                reached = self.reached([*self._handed(name), *named, *reached], at_once=False)
            self._reach[name] = frozenset(reached)
        return self._reach[name]

    def _named_in_texts(self, name: str) -> Iterator[str]:
        """The modules that texts of a file name: what it hands these to may import them."""
        homes = (self._home_of_text(name, text, 0) for text in self.facts(name).dotted)
        yield from (home for home in homes if home is not None and home != name and home in self.sources)

    def _handed(self, name: str) -> Iterator[str]:
        """The modules of the packages that a file names: what it hands these to may import all that they have."""
        facts = self.facts(name)
        whole = [found for found in facts.imports if not found.is_text]
        homes = [self.resolve(name, found.module, found.level) for found in whole if not found.names]
        homes.extend(self.resolve(name, word, 0) for word in facts.quoted if word.isidentifier())
        for found in whole:
            home = self.resolve(name, found.module, found.level) if found.names else None
            homes.extend(self.child(home, part) for part in found.names if home is not None)
        for home in dict.fromkeys(homes):
            if home is not None and home in self.sources and self.layout.package(home) == home:
                is_walked = facts.may_import_all_beside
                yield from self._within_all(home) if is_walked else self.submodules(home)[:MOST_BESIDE]

    def _within_all(self, package: str) -> list[str]:
        """The modules of a package and of those in it, as many as what walks through it is taken to import."""
        found = list(self.submodules(package))
        for one in found:
            if len(found) >= MOST_BESIDE:
                break
            found.extend(self.submodules(one) if self.layout.package(one) == one else ())
        return found[:MOST_BESIDE]

    def reached(self, names: Sequence[str], *, at_once: bool) -> list[str]:
        """What some modules lead to; ``at_once``: as they are imported."""
        seen: dict[str, None] = {}
        stack = [*names]
        while stack and len(seen) < MOST_REACHED:
            current = stack.pop()
            if current in seen or current not in self.sources:
                continue
            seen[current] = None
            # Most of what a module imports was seen before it.
            imports = self._imports(current)
            stack.extend([i.home for i in imports if (i.at_once or not at_once) and i.home not in seen])
        return list(seen)

    def imports(self, name: str) -> tuple[str, ...]:
        """The modules of the project that a file imports somewhere."""
        return tuple(i.home for i in self._imports(name))

    @property
    def importers(self) -> Mapping[str, set[str]]:
        """Which modules import a module by a statement of theirs."""
        if self._importers is None:
            found: dict[str, set[str]] = defaultdict(set)
            for name in self.sources:
                for home in self.imports(name):
                    found[home].add(name)
            self._importers = dict(found)
        return self._importers

    def above(self, name: str) -> tuple[str, ...]:
        """All modules that import a module, however far."""
        found = _closure((name,), lambda n: self.importers.get(n, ()))
        return tuple(sorted(found - {name}))

    def below(self, names: Iterable[str]) -> set[str]:
        """Some modules and all that they import somewhere, however far."""
        return _closure(names, lambda n: self.imports(n) if n in self.sources else ())

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The project's module that an import in ``importer`` means."""
        key = (importer, name, level)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(importer, name, level)
        return self._resolved[key]

    def _resolve(self, importer: str, name: str, level: int) -> str | None:
        if level:
            return self.layout.relative(importer, name, level)
        first = name.partition(".")[0]
        if self.library.owns(first):
            return None
        is_library = self.library.knows(first)
        return self.layout.absolute(importer, name, holds_script=self._holds_script, is_library=is_library)

    def _holds_script(self, folder: str) -> bool:
        """Whether a file of a folder says what it does as a program."""
        if folder not in self._scripts:
            inside = (n for path, n in self.layout.names.items() if os.path.dirname(path) == folder)
            self._scripts[folder] = any(b"__main__" in self.sources[n].data for n in inside if n in self.sources)
        return self._scripts[folder]

    def below_library(self, importer: str, library: str, name: str) -> str | None:
        """The project's module that ``from library import name`` means, in a folder called as the library is."""
        path = f"{library}.{name}"
        home = self.resolve(importer, path, 0)
        return None if home is None or self.library.function(path) is not None else home

    def child(self, package: str, name: str) -> str | None:
        """The module ``name`` of a package of the project."""
        key = (package, name)
        if key not in self._children:
            self._children[key] = self.layout.child(package, name)
        return self._children[key]

    def submodules(self, package: str) -> tuple[str, ...]:
        """The modules that lie directly in a package of the project, or in a folder without ``__init__.py``."""
        if self._within is None:
            homes: dict[str, list[str]] = defaultdict(list)
            for one in sorted(self.sources):
                home = one.rpartition(".")[0]
                homes[home or os.path.join(os.path.dirname(self.layout.paths.get(one, "")), "")].append(one)
            self._within = {home: tuple(names) for home, names in homes.items()}
        return self._within.get(package, ())


def _closure(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """Some names and whatever they lead to."""
    seen: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack.extend(following(name))
    return seen
