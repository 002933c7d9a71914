"""Which code can matter: what names a modelled function, or leads to code of the project that does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.models.library import Library

MOST_NAMES = 5_000
_NOTHING: frozenset[str] = frozenset()

Module = Callable[[str], ir.Module | None]
Resolve = Callable[[str, str, int], str | None]
Child = Callable[[str, str], str | None]


@dataclass(slots=True)
class _Table:
    """What the names of a module stand for, as far as names tell.

    ``words`` are those of the functions, methods and classes of a name and of what is assigned to it at the top;
    ``modules`` and ``members`` are what imports bind, wherever they stand; ``libraries`` are names of libraries under
    another name.
    """

    words: dict[str, frozenset[str]] = field(default_factory=dict)
    modules: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, tuple[str, str]] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    def add(self, name: str, words: frozenset[str]) -> None:
        """One more thing of this name."""
        self.words[name] = self.words.get(name, _NOTHING) | words


@dataclass(slots=True)
class Relevance:
    """Follows names through the project, module by module, as far as it has to."""

    library: Library
    module: Module
    resolve: Resolve
    child: Child
    _tables: dict[str, _Table] = field(default_factory=dict)
    _idle: set[tuple[str, str]] = field(default_factory=set)

    def begin(self) -> None:
        """Another entry, which may read other modules than those before."""
        self._idle = set()

    def relevant(self, name: str, words: frozenset[str]) -> bool:
        """Whether code of a module, with these words in it, can matter to any rule."""
        seen: set[tuple[str, str]] = set()
        stack = [(name, words)]
        while stack:
            home, current = stack.pop()
            if not current.isdisjoint(self.library.words) or len(seen) > MOST_NAMES:
                return True
            fresh = {w for w in current if (home, w) not in seen and (home, w) not in self._idle}
            seen.update((home, w) for w in fresh)
            table = self._table(home)
            if any(table.libraries.get(w) in self.library.words for w in fresh):
                return True
            stack.extend(_followed(home, table, fresh, current))
        self._idle |= seen
        return False

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            module = self.module(name)
            if module is None:
                return _Table()
            self._tables[name] = self._made(name, module)
        return self._tables[name]

    def _made(self, name: str, module: ir.Module) -> _Table:
        table = _Table()
        for statement, top in _statements(module.body, top=True):
            match statement:
                case ir.FunctionDef(function=function):
                    table.add(function.name, function.words)
                case ir.ClassDef(name=own, words=words):
                    table.add(own, words)
                case ir.Assign(targets=targets, value=value) if top:
                    for target in targets:
                        if isinstance(target, ir.Name):
                            table.add(target.id, frozenset(_words(value)))
                case ir.Import(names=names):
                    self._import(table, name, names)
                case ir.ImportFrom():
                    self._import_from(table, name, statement)
        return table

    def _import(self, table: _Table, importer: str, names: Iterable[tuple[str, str | None]]) -> None:
        for dotted, alias in names:
            home = self.resolve(importer, dotted, 0)
            if home is not None:
                table.modules.setdefault(alias or dotted.split(".")[0], []).append(home)
            elif alias is not None:
                table.libraries[alias] = dotted.rpartition(".")[2]

    def _import_from(self, table: _Table, importer: str, node: ir.ImportFrom) -> None:
        home = self.resolve(importer, node.module, node.level)
        if home is None:
            table.libraries.update((alias, name) for name, alias in node.names or () if alias is not None)
        elif node.names is None:
            table.stars.append(home)
        else:
            for name, alias in node.names:
                child = self.child(home, name)
                if child is not None:
                    table.modules.setdefault(alias or name, []).append(child)
                table.members[alias or name] = (home, name)


def _followed(home: str, table: _Table, fresh: set[str], words: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The code that names lead to; of a module, any of its names that stands beside it may be meant.

    In an order that is the same in every run, because it decides which modules are read until something matters.
    """
    for word in sorted(w for w in fresh if w in table.words or w in table.modules or w in table.members):
        if word in table.words:
            yield home, table.words[word]
        for module in table.modules.get(word, ()):
            yield module, words
        if word in table.members:
            member = table.members[word]
            yield member[0], frozenset({member[1]})
    for star in table.stars:
        yield star, frozenset(fresh)


def _statements(body: Iterable[ir.Stmt], *, top: bool) -> Iterator[tuple[ir.Stmt, bool]]:
    """All statements of a module, those of functions and classes included, and whether they run at its import."""
    for statement in body:
        yield statement, top
        match statement:
            case ir.FunctionDef(function=function):
                yield from _statements(function.body, top=False)
            case ir.ClassDef(body=inner):
                yield from _statements(inner, top=False)
            case _:
                yield from _statements(inner_statements(statement), top=top)


def _words(value: object) -> Iterator[str]:
    """The identifiers of an expression."""
    match value:
        case ir.Name(id=name):
            yield name
        case ir.Function(words=words):
            yield from words
        case ir.Attr(attr=attr, value=inner):
            yield attr
            yield from _words(inner)
        case tuple():
            for item in value:
                yield from _words(item)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            for part in dataclasses.fields(value):
                yield from _words(getattr(value, part.name))
