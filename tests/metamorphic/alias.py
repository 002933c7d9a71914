"""The same library objects by other ways: aliases of imports, from-imports, assigned names, re-exports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import libcst as cst
from libcst.metadata import ExpressionContext, ExpressionContextProvider, MetadataWrapper

from metamorphic.program import MAIN, Files
from metamorphic.transformation import (
    Imported,
    Renamed,
    Transformation,
    alone,
    dotted,
    imported,
    is_future,
    is_import,
    statements,
)


def _imports(module: cst.Module) -> list[Imported]:
    return [found for s in module.body if not is_future(s) for found in imported(s)]


class _Bindings(cst.CSTVisitor):
    """How often each name is bound, imports included."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def visit_Param(self, node: cst.Param) -> None:
        self.count[node.name.value] += 1

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        if node.asname is None:  # another name is stored as others are
            self.count.update([(dotted(node.name) or "").partition(".")[0]])

    def visit_Global(self, node: cst.Global) -> None:
        self.count.update(item.name.value for item in node.names)


def _bound_once(module: cst.Module) -> set[str]:
    """Names that have one meaning in the whole file."""
    found = _Bindings()
    module.visit(found)
    contexts = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ExpressionContextProvider)
    for node, context in contexts.items():
        if isinstance(node, cst.Name) and context is ExpressionContext.STORE:
            found.count[node.value] += 1
    return {name for name, count in found.count.items() if count == 1}


# -- import x as y -------------------------------------------------------------------------------------------


def _alias(module: cst.Module) -> Files | None:
    once = _imported_once(module)
    names = {i.name: f"{i.name}_by_another_name" for i in _imports(module) if i.name in once}
    names = {name: new for name, new in names.items() if name in once}
    changed = module.visit(Renamed(names))
    body = [_renamed(s, names) if is_import(s) else s for s in changed.body]
    return alone(changed.with_changes(body=body), module)


def _imported_once(module: cst.Module) -> set[str]:
    """Names of the top level's imports that mean one thing, `import a.b` apart: it binds `a` as well."""
    dotted_roots = {i.name for i in _imports(module) if i.member is None and not i.renamed and "." in i.module}
    counts = Counter(i.name for i in _imports(module))
    once = _bound_once(module)
    return {name for name in counts if counts[name] == 1 and name not in dotted_roots and name in once}


def _renamed(statement: cst.BaseStatement, names: dict[str, str]) -> cst.BaseStatement:
    class Change(cst.CSTTransformer):
        def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
            old = updated_node.asname.name if updated_node.asname else updated_node.name
            if not isinstance(old, cst.Name) or old.value not in names:
                return updated_node
            return updated_node.with_changes(asname=cst.AsName(cst.Name(names[old.value])))

    changed = statement.visit(Change())
    assert isinstance(changed, cst.BaseStatement)
    return changed


# -- from x import a, and a = x.a ----------------------------------------------------------------------------


class _Plucked(cst.CSTTransformer):
    """`library.attribute` becomes a name of its own."""

    def __init__(self, libraries: set[str], stored: set[cst.CSTNode]) -> None:
        self.libraries, self.stored = libraries, stored
        self.taken: dict[tuple[str, str], str] = {}

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        value = original_node.value
        if not isinstance(value, cst.Name) or value.value not in self.libraries or original_node in self.stored:
            return updated_node
        attribute = original_node.attr.value
        name = self.taken.setdefault((value.value, attribute), f"{attribute}_of_{value.value}")
        return cst.Name(name, lpar=updated_node.lpar, rpar=updated_node.rpar)


def _pluck(module: cst.Module, line: Callable[[Imported, str, str], str]) -> Files | None:
    once = _imported_once(module)
    libraries = {i.name: i for i in _imports(module) if i.member is None and i.name in once}
    contexts = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ExpressionContextProvider)
    stored = {node for node, context in contexts.items() if context is not ExpressionContext.LOAD}
    plucked = _Plucked(set(libraries), stored)
    changed = module.visit(plucked)
    body: list[cst.BaseStatement] = []
    for statement in changed.body:
        body.append(statement)
        for found in imported(statement) if is_import(statement) else ():
            for (library, attribute), name in plucked.taken.items():
                if library == found.name:
                    body += statements(line(found, attribute, name))
    return alone(changed.with_changes(body=body), module)


def _from_import(module: cst.Module) -> Files | None:
    return _pluck(module, lambda found, attribute, name: f"from {found.module} import {attribute} as {name}\n")


def _assigned(module: cst.Module) -> Files | None:
    return _pluck(module, lambda found, attribute, name: f"{name} = {found.name}.{attribute}\n")


# -- import x, and x.a -------------------------------------------------------------------------------------------

# What is a module of its own is an attribute of its package only once it has been imported.
_APART = frozenset({"concurrent", "importlib", "xml"})
_MODULES = frozenset({"pool", "shared_memory", "managers", "connection", "queues", "synchronize", "dummy", "context"})


class _Whole(Renamed):
    """Names become attributes of the modules that they come from."""

    def replaced(self, node: cst.Name) -> cst.BaseExpression:
        module, member = self.names[node.value].split()
        return cst.Attribute(cst.Name(module), cst.Name(member), lpar=node.lpar, rpar=node.rpar)


def _whole(module: cst.Module) -> Files | None:
    once, body, names = _imported_once(module), list(module.body), dict[str, str]()
    for number, (i, statement, bound) in enumerate(_shared(module)):
        found = list(imported(statement))
        if not set(bound) <= once or any(_is_apart(one) for one in found):
            continue
        (body[i],) = statements(f"import {found[0].module} as whole_{number}\n")
        names.update({one.name: f"whole_{number} {one.member}" for one in found})
    return alone(module.with_changes(body=body).visit(_Whole(names)), module)


def _is_apart(one: Imported) -> bool:
    return one.member is None or one.module in _APART or one.member in _MODULES


# -- re-exports ----------------------------------------------------------------------------------------------


def _shared(module: cst.Module) -> Iterator[tuple[int, cst.BaseStatement, list[str]]]:
    """The import statements of the top level with the names that they bind."""
    for i, statement in enumerate(module.body):
        names = [found.name for found in imported(statement)]
        if is_import(statement) and not is_future(statement) and names:
            yield i, statement, names


def _reexport(module: cst.Module) -> Files | None:
    body, files = list(module.body), Files()
    for number, (i, statement, names) in enumerate(_shared(module)):
        files[f"shared_{number}"] = cst.Module([statement.deep_clone()])
        (body[i],) = statements(f"from shared_{number} import {', '.join(sorted(set(names)))}\n")
    return {MAIN: module.with_changes(body=body), **files} if files else None


def _stars(module: cst.Module) -> Files | None:
    """A package per import statement: main takes a star from it, and it one from its own module."""
    body, files = list(module.body), Files()
    for number, (i, statement, names) in enumerate(_shared(module)):
        if any(name.startswith("_") for name in names):
            continue
        package = f"kit_{number}"
        files[f"{package}/__init__"] = cst.parse_module("from .libraries import *\n")
        files[f"{package}/libraries"] = cst.Module([statement.deep_clone()])
        (body[i],) = statements(f"from {package} import *\n")
    return {MAIN: module.with_changes(body=body), **files} if files else None


ALIAS = Transformation("alias", preserving=True, apply=_alias)
FROM_IMPORT = Transformation("from-import", preserving=True, apply=_from_import)
ASSIGNED = Transformation("assigned-name", preserving=True, apply=_assigned)
REEXPORT = Transformation("re-export", preserving=True, apply=_reexport)
STARS = Transformation("star-re-export", preserving=True, apply=_stars)
WHOLE = Transformation("whole-import", preserving=True, apply=_whole)
