"""Names of libraries in a file: those that it has, and imports for those that it lacks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping

import libcst as cst

from cudalint.fixes.edits import Change
from cudalint.fixes.names import bindings, hidden, unsteady
from cudalint.fixes.statements import begins_with_import, is_docstring
from cudalint.fixes.view import Binding, View, dotted, imported
from cudalint.structs import Frozen

_ALIASES = {"torch.multiprocessing": "mp", "torch.distributed": "dist"}


class Spelling(Frozen):
    """How a library's name is written at a place, and the changes that make it so."""

    text: str
    changes: tuple[Change, ...] = ()


def module(view: View, name: str, at: cst.CSTNode | None = None) -> Spelling:
    """A module by the name it has at a place, or at the top; imported there where it has none."""
    at = at or view.tree
    known = visible(view, at)
    for bound, binding in known.items():
        if binding.name is None and binding.module == name and "." not in name:
            return Spelling(bound)
        if binding.name is None and binding.module == name and bound != name.partition(".")[0]:
            return Spelling(bound)
        if binding.name is not None and f"{binding.module}.{binding.name}" == name:
            return Spelling(bound)
    root, _, rest = name.partition(".")
    modules = [b.module for n, b in known.items() if n == root and b.name is None]
    if any(m == name or m.startswith(f"{name}.") for m in modules):
        return Spelling(name)
    alias = _ALIASES.get(name, "") if rest or _is_taken(view, root, at) else ""
    if alias and alias not in view.names():
        return Spelling(alias, (_new_line(view, f"import {name} as {alias}"),))
    return Spelling(name, (_new_line(view, f"import {name}"),))


def member(view: View, name: str, attribute: str, at: cst.CSTNode | None = None) -> Spelling:
    """A name of a module at a place: as the file imports it, joined to an import of its siblings, or by its module."""
    at = at or view.tree
    for bound, binding in visible(view, at).items():
        if binding.module == name and binding.name == attribute:
            return Spelling(bound)
    known = module(view, name, at)
    if not known.changes:
        return Spelling(f"{known.text}.{attribute}")
    if attribute not in view.names():
        for statement in _imports_from(view, name):
            return Spelling(attribute, (_joined(view, statement, attribute),))
        if _is_taken(view, known.text.partition(".")[0], at):
            return Spelling(attribute, (_new_line(view, f"from {name} import {attribute}"),))
    return Spelling(f"{known.text}.{attribute}", known.changes)


def visible(view: View, at: cst.CSTNode) -> Mapping[str, Binding]:
    """What imports bind names to that code at a place sees: its module's, and those above it in its own functions."""
    local = hidden(view, at)
    shown = {n: b for n, b in view.module_bindings().items() if n not in local and n not in unsteady(view)}
    functions = [node for node in view.around(at) if isinstance(node, cst.FunctionDef)]
    for function in reversed(functions):
        for node in view.each(function.body, cst.Import, cst.ImportFrom):
            if view.start(node) < view.start(at) and view.function(node) is function:
                shown.update((n, b) for n, b in imported(node) if local.get(n) is function)
    return shown


def _is_taken(view: View, name: str, at: cst.CSTNode) -> bool:
    """Whether a name stands for something else than the module that an import at the top would bind it to."""
    binding = visible(view, at).get(name)
    if binding is not None and binding.name is None and binding.module.partition(".")[0] == name:
        return False
    return name in hidden(view, at) or any(bound == name for bound, _ in bindings(view, view.tree))


def torch_cuda(view: View, attribute: str, at: cst.CSTNode | None = None) -> Spelling:
    """A name of ``torch.cuda`` at a place, which ``import torch`` loads as well."""
    known = member(view, "torch.cuda", attribute, at)
    if not known.changes or known.text == attribute:
        return known
    torch = module(view, "torch", at)
    return Spelling(f"{torch.text}.cuda.{attribute}", torch.changes)


def _imports_from(view: View, name: str) -> Iterator[cst.ImportFrom]:
    for statement in view.tree.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar) or small.relative:
                continue
            if small.module is not None and dotted(small.module) == name:
                yield small


def _joined(view: View, statement: cst.ImportFrom, name: str) -> Change:
    assert not isinstance(statement.names, cst.ImportStar)
    last = statement.names[-1]
    end = view.end(last)
    if last.asname is not None:
        end = view.end(last.asname.name)
    if isinstance(last.comma, cst.Comma):
        comma = view.text.index(",", view.end(last.name)) + 1
        indent = view.text[view.row_start(view.row(last)) : view.start(last)]
        if not indent.strip():
            # Each name has a row of its own, perhaps with a comment behind it.
            at = view.row_start(view.last_row(last) + 1)
            return Change(at, at, f"{indent}{name},{view.newline}")
        return Change(comma, comma, f" {name},")
    return Change(end, end, f", {name}")


def _new_line(view: View, line: str) -> Change:
    """An import statement among those at the top, in order; below the docstring and future imports."""
    plain = [s for s in view.tree.body if begins_with_import(s)]
    future = [s for s in plain if _is_future(s)]
    first_code = next((s for s in view.tree.body if not is_docstring(s) and s not in future), None)
    groups = _leading_groups(view, [s for s in plain if s not in future], first_code)
    block = _group_of(view, groups, line)
    for statement in block:
        if _sort_key(view.source(statement)) > _sort_key(line):
            at = view.row_start(view.row(statement))
            return Change(at, at, line + view.newline)
    if block:
        return view.lines_after(block[-1], [line])
    if groups and _is_of_python(line):
        at = view.row_start(view.row(groups[0][0]))
        return Change(at, at, line + view.newline * 2)
    if groups:
        after = view.lines_after(groups[-1][-1], [line])
        return Change(after.start, after.end, view.newline + after.content)
    if future:
        after = view.lines_after(future[-1], [line])
        return Change(after.start, after.end, view.newline + after.content)
    if first_code is not None:
        at = view.row_start(view.row(first_code))
        return Change(at, at, line + view.newline * (1 if begins_with_import(first_code) else 3))
    end = len(view.text)
    lead = "" if not view.text or view.text[-1] in "\r\n" else view.newline
    return Change(end, end, f"{lead}{line}{view.newline}")


_Group = list[cst.BaseStatement | cst.SimpleStatementLine]


def _leading_groups(view: View, plain: _Group, first: cst.CSTNode | None) -> list[_Group]:
    """The groups of plain imports that the file begins with, told apart by blank lines; else its first import."""
    if not plain or plain[0] is not first:
        return [[plain[0]]] if plain else []
    groups: list[_Group] = []
    for statement in view.tree.body[view.tree.body.index(plain[0]) :]:
        if statement not in plain:
            break
        if groups and view.row(statement) == view.last_row(groups[-1][-1]) + 1:
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def _group_of(view: View, groups: list[_Group], line: str) -> _Group:
    """The group that has imports of the same kind: of Python's own library, or of others."""
    for group in groups:
        if any(_is_of_python(line) in _kinds(view.source(statement)) for statement in group):
            return group
    return []


def _is_of_python(line: str) -> bool:
    """Whether an import is of a module of Python's own library."""
    return True in _kinds(line)


def _kinds(line: str) -> set[bool]:
    """For each module that a line imports, whether it is of Python's own library."""
    word, _, rest = line.partition(" ")
    modules = [rest.split(None, 1)[0]] if word == "from" else [part.strip() for part in rest.split(",")]
    return {re.split(r"\W", module)[0] in sys.stdlib_module_names for module in modules}


def _is_future(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(small, cst.ImportFrom) and small.module is not None and dotted(small.module) == "__future__"
        for small in statement.body
    )


def _sort_key(line: str) -> tuple[bool, str]:
    """Plain imports before from-imports, each by module."""
    return line.startswith("from"), line.partition(" ")[2].lower()
