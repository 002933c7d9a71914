"""Which functions a change of a file lies in, for only what runs these can end otherwise; and where they are then."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions
from cudalint.project.callers import Place
from cudalint.text.lines import changed_rows


def touched(before: str, after: str, module: ir.Module) -> frozenset[Place] | None:
    """The outermost functions of a module that its change lies in; None where the change may mean more."""
    bodies = _bodies_of(before)
    if bodies is None:
        return None
    names: set[str] = set()
    for rows, new in changed_rows(before.splitlines(), after.splitlines()):
        home = next((name for name, body in bodies if rows.start >= body.start and rows.stop <= body.stop), None)
        if home is not None:
            names.add(home)
        elif len(rows) > 0 or not all(_is_import(line) for line in new):
            return None
    return frozenset((module.name, f.ordinal) for f in functions(module.body) if f.qualname in names)


def renumbered(before: ir.Module | None, after: ir.Module | None) -> dict[int, int]:
    """The ordinals of a module's outermost functions after a change, by those before."""
    if before is None or after is None:
        return {}
    now = {function.qualname: function.ordinal for function in functions(after.body)}
    return {f.ordinal: now[f.qualname] for f in functions(before.body) if f.qualname in now}


# Many repairs are tried out on the same text.
@lru_cache(8)
def _bodies_of(text: str) -> tuple[tuple[str, range], ...] | None:
    """The bodies of a text; None where it is not Python as the running one reads it."""
    try:
        return tuple(_bodies(ast.parse(text).body))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _bodies(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, range]]:
    """The qualified names of outermost functions and methods, and the rows of their bodies, counted from 0.

    A range is that of a change between two texts: what is put after the last row is still inside.
    """
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name, body=inner) | ast.AsyncFunctionDef(name=name, body=inner):
                if inner[0].lineno > statement.lineno:
                    yield prefix + name, range(inner[0].lineno - 1, (statement.end_lineno or 0))
            case ast.ClassDef(name=name, body=inner):
                yield from _bodies(inner, f"{prefix}{name}.")


def _is_import(line: str) -> bool:
    """Whether a new row at the top only binds the name of a module."""
    return not line.strip() or line.startswith(("import ", "from "))
