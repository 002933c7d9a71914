"""Names of libraries in a file: those that it has, and imports for those that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from cudalint.fixes.edits import Change
from cudalint.fixes.statements import begins_with_import, is_docstring
from cudalint.fixes.view import View, dotted

_ALIASES = {"torch.multiprocessing": "mp", "torch.distributed": "dist"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a library's name is written at a place, and the changes that make it so."""

    text: str
    changes: tuple[Change, ...] = ()


def module(view: View, name: str) -> Spelling:
    """A module by the name it has in the file; imported where it has none."""
    for bound, binding in view.bindings().items():
        if binding.name is None and binding.module == name and "." not in name:
            return Spelling(bound)
        if binding.name is None and binding.module == name and bound != name.partition(".")[0]:
            return Spelling(bound)
        if binding.name is not None and f"{binding.module}.{binding.name}" == name:
            return Spelling(bound)
    root, _, rest = name.partition(".")
    imported = [b.module for n, b in view.bindings().items() if n == root and b.name is None]
    if any(m == name or m.startswith(f"{name}.") for m in imported):
        return Spelling(name)
    if not rest:
        return Spelling(name, (_new_line(view, f"import {name}"),))
    if name in _ALIASES and _ALIASES[name] not in view.names():
        return Spelling(_ALIASES[name], (_new_line(view, f"import {name} as {_ALIASES[name]}"),))
    return Spelling(name, (_new_line(view, f"import {name}"),))


def member(view: View, name: str, attribute: str) -> Spelling:
    """A name of a module: as the file imports it, joined to an import of its siblings, or by its module."""
    for bound, binding in view.bindings().items():
        if binding.module == name and binding.name == attribute:
            return Spelling(bound)
    known = module(view, name)
    if not known.changes:
        return Spelling(f"{known.text}.{attribute}")
    if attribute not in view.names():
        for statement in _imports_from(view, name):
            return Spelling(attribute, (_joined(view, statement, attribute),))
    return Spelling(f"{known.text}.{attribute}", known.changes)


def torch_cuda(view: View, attribute: str) -> Spelling:
    """A name of ``torch.cuda``, which ``import torch`` loads as well."""
    known = member(view, "torch.cuda", attribute)
    if not known.changes or known.text == attribute:
        return known
    torch = module(view, "torch")
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
        return Change(comma, comma, f" {name},")
    return Change(end, end, f", {name}")


def _new_line(view: View, line: str) -> Change:
    """An import statement among those at the top, in order; below the docstring and future imports."""
    plain = [s for s in view.tree.body if begins_with_import(s)]
    future = [s for s in plain if _is_future(s)]
    first_code = next((s for s in view.tree.body if not is_docstring(s) and s not in future), None)
    block = _leading_block(view, [s for s in plain if s not in future], first_code)
    for statement in block:
        if _sort_key(view.source(statement)) > _sort_key(line):
            at = view.row_start(view.row(statement))
            return Change(at, at, line + view.newline)
    if block:
        return view.lines_after(block[-1], [line])
    if future:
        after = view.lines_after(future[-1], [line])
        return Change(after.start, after.end, view.newline + after.content)
    if first_code is not None:
        at = view.row_start(view.row(first_code))
        return Change(at, at, line + view.newline * (1 if begins_with_import(first_code) else 3))
    end = len(view.text)
    lead = "" if not view.text or view.text[-1] in "\r\n" else view.newline
    return Change(end, end, f"{lead}{line}{view.newline}")


def _leading_block(
    view: View, plain: list[cst.BaseStatement | cst.SimpleStatementLine], first: cst.CSTNode | None
) -> list[cst.BaseStatement | cst.SimpleStatementLine]:
    """The group of plain imports that the file begins with; groups are told apart by blank lines."""
    result: list[cst.BaseStatement | cst.SimpleStatementLine] = []
    if not plain or plain[0] is not first:
        return [plain[0]] if plain else []
    for statement in plain:
        if result and view.row(statement) != view.last_row(result[-1]) + 1:
            break
        result.append(statement)
    return result


def _is_future(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(small, cst.ImportFrom) and small.module is not None and dotted(small.module) == "__future__"
        for small in statement.body
    )


def _sort_key(line: str) -> tuple[bool, str]:
    """Plain imports before from-imports, each by module."""
    return line.startswith("from"), line.partition(" ")[2].lower()
