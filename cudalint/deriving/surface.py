"""The names of a package: what its modules bind, and under which names programs may import it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import Enum

from cudalint.ir import nodes as ir
from cudalint.ir.walk import bound_names, inner_statements, names_bound_by
from cudalint.project.program import FileProgram
from cudalint.structs import Frozen, Mutable, field

_MOST_HOPS = 8
_HOUSEKEEPING = frozenset({"tests", "test", "testing", "conftest", "setup", "__main__"})


class Definition(Frozen):
    """A function or class at the top level of a module of the package."""

    module: str
    node: ir.Function | ir.ClassDef

    @property
    def name(self) -> str:
        """Its name in its module."""
        return self.node.name

    @property
    def dotted(self) -> str:
        """Where it is defined."""
        return f"{self.module}.{self.name}"


class Unclear(Enum):
    """Why a name has no definition that could be looked at."""

    MISSING = "no such name"
    OPAQUE = "it comes from elsewhere, or is made when the package runs"


class Surface(Mutable):
    """The modules of a package and what they bind."""

    files: FileProgram
    package: str
    _bound: dict[str, dict[str, ir.Stmt]] = field(default_factory=dict)
    _stars: dict[str, tuple[ir.ImportFrom, ...]] = field(default_factory=dict)

    def modules(self) -> list[str]:
        """All modules that are made to be imported, by name; those below a folder without ``__init__.py`` have none."""
        names = (n for n in self.files.sources if not any(map(_is_aside, n.split("."))))
        return sorted(n for n in names if n.partition(".")[0] == self.package)

    def public(self) -> dict[str, list[str]]:
        """The public names of each public definition, by where it is defined; the one to call it by goes first.

        That is the shortest: a package names in its ``__init__`` what it means to be imported from there.
        """
        found: dict[str, set[str]] = {}
        for module in self.modules():
            if not _is_public(module):
                continue
            for home, name in self._offered(module):
                for definition in self._definitions(home, name):
                    found.setdefault(definition.dotted, set()).add(f"{module}.{name}")
        return {place: sorted(names, key=lambda n: (n.count("."), len(n), n)) for place, names in sorted(found.items())}

    def imported_as(self, module: str, name: str) -> str:
        """Where programs find a name of a module, which goes by another here below a folder without ``__init__.py``."""
        home = self.files.sources.get(self.package)
        if home is None or module.partition(".")[0] == self.package or module not in self.files.sources:
            return f"{module}.{name}"
        above = os.path.dirname(os.path.dirname(home.path))
        path = os.path.relpath(self.files.sources[module].path, above).removesuffix(".py")
        return f"{path.replace(os.sep, '.')}.{name}"

    def definition(self, dotted: str) -> Definition | None:
        """What is defined at this place."""
        module, _, name = dotted.rpartition(".")
        return next(iter(self._definitions(module, name)), None)

    def _definitions(self, module: str, name: str) -> Iterator[Definition]:
        found = self.lookup(module, name)
        if isinstance(found, Definition):
            yield found

    def _offered(self, module: str) -> Iterable[tuple[str, str]]:
        """What a module defines, and what the file of a package imports for others to import from there.

        Each name with the module that has it: this one, or one that gives it to all.
        """
        is_package = self.files.sources[module].path.endswith("__init__.py")
        bound = self._bindings(module)
        own = (n for n, s in bound.items() if is_package or isinstance(s, ir.FunctionDef | ir.ClassDef))
        yield from ((module, name) for name in own if not name.startswith("_"))
        makes_names = not is_package or "__getattr__" in bound
        for statement in () if makes_names else self._star_imports(module):
            home = self.files.resolve(module, statement.module, statement.level)
            if home is not None and home in self.files.sources:
                given = (name for name in self._bindings(home) if not name.startswith("_"))
                shown = (name for name in given if self.files.child(module, name) is None)
                yield from ((home, name) for name in shown if self._gives(home, name))

    def lookup(self, module: str, name: str, hops: int = 0) -> Definition | Unclear:
        """What a name of a module is, through the imports of the package."""
        if hops > _MOST_HOPS or module not in self.files.sources:
            return Unclear.OPAQUE
        statement = self._bindings(module).get(name)
        match statement:
            case ir.FunctionDef(function=function):
                return Definition(module, function)
            case ir.ClassDef():
                return Definition(module, statement)
            case ir.ImportFrom(names=tuple(names)):
                home = self.files.resolve(module, statement.module, statement.level)
                given = next(n for n, alias in names if (alias or n) == name)
                return Unclear.OPAQUE if home is None else self.lookup(home, given, hops + 1)
            case None:
                return self._through_stars(module, name, hops)
        return Unclear.OPAQUE

    def _through_stars(self, module: str, name: str, hops: int) -> Definition | Unclear:
        if self.files.child(module, name) is not None or "__getattr__" in self._bindings(module):
            return Unclear.OPAQUE
        lowered = self.files.module(module)
        # What calls globals() may bind any name.
        if lowered is None or "globals" in lowered.words:
            return Unclear.OPAQUE
        missing: Definition | Unclear = Unclear.MISSING
        for statement in self._star_imports(module):
            home = self.files.resolve(module, statement.module, statement.level)
            found = Unclear.OPAQUE if home is None else self.lookup(home, name, hops + 1)
            if found is not Unclear.MISSING:
                missing = found
        return missing

    def _gives(self, module: str, name: str) -> bool:
        """Whether a module gives a name to those who take all: with ``__all__``, where a display shows that it does."""
        match self._bindings(module).get("__all__"):
            case None:
                return True
            case ir.Assign(value=ir.Display(items=items)):
                return any(isinstance(item, ir.Const) and item.value == name for item in items)
        return False

    def _bindings(self, module: str) -> dict[str, ir.Stmt]:
        if module not in self._bound:
            self.files.begin(self.files.facts(module).weight + 1)
            lowered = self.files.module(module)
            body = () if lowered is None else tuple(_statements(lowered.body))
            self._bound[module] = {name: statement for statement in body for name in _names(statement)}
            stars = (s for s in body if isinstance(s, ir.ImportFrom) and s.names is None)
            self._stars[module] = tuple(s for s in stars if isinstance(s, ir.ImportFrom))
        return self._bound[module]

    def _star_imports(self, module: str) -> tuple[ir.ImportFrom, ...]:
        self._bindings(module)
        return self._stars[module]


def _is_aside(part: str) -> bool:
    return part in _HOUSEKEEPING or part.startswith("test_") or part.endswith("_test")


def _is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))


def _statements(body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    for statement in body:
        yield statement
        yield from _statements(inner_statements(statement))


def _names(statement: ir.Stmt) -> Iterable[str]:
    return bound_names(statement.target) if isinstance(statement, ir.Declare) else names_bound_by(statement)
