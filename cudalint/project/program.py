"""The files of a run as modules: names, imports, lowering on demand, and what was read for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst

from cudalint.ir import nodes as ir
from cudalint.ir.lower import lower
from cudalint.models.library import Library
from cudalint.project.markers import acts_at_top, may_matter, mentions_gpu
from cudalint.text.source import SourceFile

MOST_BYTES = 2_000_000
MOST_ASSUMED_BYTES = 400_000
MOST_ACTING = 8
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that the parser refuses."""

    source: SourceFile
    reason: str
    row: int
    column: int


@dataclass(slots=True)
class FileProgram:
    """Modules by name. A file outside packages is named after itself; two of one name are kept apart by folder."""

    library: Library
    sources: dict[str, SourceFile] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    parsed: dict[str, ir.Module | None] = field(default_factory=dict)
    bytes_parsed: int = 0
    nodes: int = 0
    budget: int = MOST_BYTES
    notes: set[str] = field(default_factory=set)
    _tops: dict[str, frozenset[str]] = field(default_factory=dict)
    _reach: dict[str, frozenset[str]] = field(default_factory=dict)
    _tops_act: dict[str, bool] = field(default_factory=dict)
    _imported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _acting: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def changed(self, texts: Mapping[str, str]) -> FileProgram:
        """The same program with other texts for some files, by path; the other modules are not lowered again."""
        result = FileProgram(self.library, dict(self.sources), dict(self.names))
        result.parsed = dict(self.parsed)
        for path, text in texts.items():
            name = self.names[path]
            result.sources[name] = replace(self.sources[name], text=text, data=text.encode("utf-8", "surrogatepass"))
            result.parsed.pop(name, None)
        return result

    def module(self, name: str) -> ir.Module | None:
        """A lowered module; None where there is none, or none that can be parsed."""
        if name not in self.parsed:
            self.parsed[name] = self._lower(name)
        return self.parsed[name]

    def _lower(self, name: str) -> ir.Module | None:
        source = self.sources.get(name)
        if source is None or not may_matter(source.data):
            return None
        if self.budget < len(source.data):
            self.notes.add("an entry reaches more code than is read for it; the rest is taken as unknown")
            return None
        self.budget -= len(source.data)
        self.bytes_parsed += len(source.data)
        try:
            module = lower(source.text, source.path, name)
        except libcst.ParserSyntaxError as error:
            self.broken.append(Broken(source, error.message, error.raw_line, error.raw_column + 1))
            return None
        except RecursionError:
            self.broken.append(Broken(source, "the code is nested too deeply", 1, 1))
            return None
        self.nodes += module.size
        return module

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The project's module that an import in ``importer`` means."""
        if level:
            return self._relative(importer, name, level)
        if self.library.owns(name.partition(".")[0]):
            return None
        folder = importer.rpartition(":")[0]
        for candidate in (f"{folder}:{name}" if folder else name, name):
            if candidate in self.sources:
                return candidate
        return None

    def _relative(self, importer: str, name: str, level: int) -> str | None:
        parts = importer.split(".")
        source = self.sources.get(importer)
        is_package = source is not None and os.path.basename(source.path) == "__init__.py"
        kept = len(parts) - level + (1 if is_package else 0)
        if kept <= 0:
            return None
        full = ".".join([*parts[:kept], *([name] if name else [])])
        return full if full in self.sources else None

    def has_child(self, package: str, name: str) -> bool:
        """Whether ``package.name`` is a module of the project."""
        return f"{package}.{name}" in self.sources

    def relevant(self, words: frozenset[str]) -> bool:
        """Whether code with these words can matter to any rule."""
        return not words.isdisjoint(self.library.words)

    def bound_at_top(self, module: str) -> frozenset[str]:
        """Names that the top level of a module binds, main guard included, and ``global`` names of functions."""
        if module not in self._tops:
            lowered = self.module(module)
            self._tops[module] = frozenset() if lowered is None else frozenset(_bound(lowered.body))
        return self._tops[module]

    def acting(self, name: str) -> tuple[str, ...]:
        """The modules whose top level may do something to the process when ``name`` is imported."""
        if name not in self._acting:
            parts = name.split(".")
            packages = [".".join(parts[:i]) for i in range(1, len(parts))]
            reached = [n for p in (*packages, name) for n in sorted(self.reach(p))]
            acting = [n for n in dict.fromkeys(reached) if self._acts(n)]
            if len(acting) > MOST_ACTING:
                self.notes.add(f"importing {name} runs more modules than are followed")
            self._acting[name] = tuple(acting[:MOST_ACTING])
        return self._acting[name]

    def _acts(self, name: str) -> bool:
        if name not in self._tops_act:
            self._tops_act[name] = acts_at_top(self.sources[name].data)
        return self._tops_act[name]

    def reaches_gpu(self, name: str) -> bool:
        """Whether a file, or what it imports of the project, mentions a GPU framework."""
        return mentions_gpu(self.sources[name].data) or any(
            mentions_gpu(self.sources[n].data) for n in self.reach(name)
        )

    def reach(self, name: str) -> frozenset[str]:
        """The modules that importing a file reads, told from its bytes."""
        if name in self._reach:
            return self._reach[name]
        seen: set[str] = set()
        stack = [name]
        while stack and len(seen) < 400:
            current = stack.pop()
            if current in seen or current not in self.sources:
                continue
            seen.add(current)
            stack.extend(self._imports(current))
        self._reach[name] = frozenset(seen)
        return self._reach[name]

    def _imports(self, name: str) -> tuple[str, ...]:
        if name not in self._imported:
            self._imported[name] = tuple(dict.fromkeys(self._read_imports(name)))
        return self._imported[name]

    def _read_imports(self, name: str) -> Iterable[str]:
        for found in _IMPORT.finditer(self.sources[name].data):
            if found.group(1):
                text = found.group(1).decode("ascii", "replace")
                level = len(text) - len(text.lstrip("."))
                home = self.resolve(name, text.lstrip("."), level)
                if home is not None:
                    yield home
                continue
            for part in found.group(2).decode("ascii", "replace").split(","):
                home = self.resolve(name, part.split(" as ")[0].strip(), 0)
                if home is not None:
                    yield home


def program(sources: Sequence[SourceFile], library: Library) -> FileProgram:
    """Name all files of a run."""
    packages = {os.path.dirname(s.path) for s in sources if os.path.basename(s.path) == "__init__.py"}
    result = FileProgram(library)
    for source in sorted(sources, key=lambda s: s.path):
        name = _module_name(source.path, packages)
        if name in result.sources:
            name = f"{os.path.dirname(source.path)}:{name}"
        result.sources[name] = source
        result.names[source.path] = name
    return result


def _module_name(path: str, packages: set[str]) -> str:
    folder, base = os.path.split(path)
    stem = base[:-3] if base.endswith(".py") else base
    parts = [] if stem == "__init__" else [stem]
    while folder in packages:
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return ".".join(parts) or stem


def _bound(body: Iterable[ir.Stmt]) -> set[str]:
    names: set[str] = set()
    stack: list[tuple[ir.Stmt, bool]] = [(s, True) for s in body]
    while stack:
        statement, top = stack.pop()
        match statement:
            case ir.Scoping(kind="global", names=given):
                names.update(given)
            case ir.FunctionDef(function=function):
                if top:
                    names.add(function.name)
                stack.extend((s, False) for s in function.body)
                continue
            case ir.ClassDef(name=name):
                if top:
                    names.add(name)
                continue
        if top:
            names.update(_targets(statement))
        stack.extend((s, top) for s in _children(statement))
    return names


def _targets(statement: ir.Stmt) -> Iterable[str]:
    match statement:
        case ir.Assign(targets=targets):
            for target in targets:
                yield from _names(target)
        case ir.For(target=target):
            yield from _names(target)
        case ir.With(items=items):
            for _, bound in items:
                if bound is not None:
                    yield from _names(bound)
        case ir.Import(names=names):
            for dotted, alias in names:
                yield alias or dotted.split(".")[0]
        case ir.ImportFrom(names=tuple(names)):
            for name, alias in names:
                yield alias or name


def _names(target: ir.Expr) -> Iterable[str]:
    match target:
        case ir.Name(id=name):
            yield name
        case ir.Display(items=items):
            for item in items:
                yield from _names(item)
        case ir.Star(value=value):
            yield from _names(value)


def _children(statement: ir.Stmt) -> Iterable[ir.Stmt]:
    match statement:
        case ir.If(body=body, orelse=orelse) | ir.For(body=body, orelse=orelse) | ir.While(body=body, orelse=orelse):
            yield from (*body, *orelse)
        case ir.With(body=body):
            yield from body
        case ir.Try(body=body, handlers=handlers, orelse=orelse, final=final):
            yield from (*body, *orelse, *final)
            for handler in handlers:
                yield from handler.body
        case ir.Match(cases=cases):
            for case in cases:
                yield from case.body


def functions(body: Iterable[ir.Stmt]) -> Iterable[ir.Function]:
    """The functions of a module and the methods of its classes, outermost only, in order."""
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function
            case ir.ClassDef(body=inner):
                yield from functions(inner)
            case _:
                yield from functions(_children(statement))
