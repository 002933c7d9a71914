"""After an edit, a run with what was kept before it says what one says that kept nothing."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cudalint import config
from cudalint.found import Report
from cudalint.session import Session
from cudalint.store import Store
from cudalint.structs import replace
from fuzz.case import Case, laid_out

EDITS = 3
_INSERTED = ("pass", "edited = 3", "print('edited')", "import torch; torch.cuda.init()", "lambda: 0", "global edited")
_EXCHANGED = (("fork", "spawn"), ("spawn", "fork"), ("cuda", "cpu"), ("Process", "Thread"), ("work", "task"))
# An edit of rows; what it makes may be no Python.
Edit = Callable[[list[str], Sequence[ast.stmt], random.Random], str]


def complaints(case: Case) -> Iterator[str]:
    """The edits after which another report is given, one after the other on the same files."""
    chance = random.Random(sum(map(sum, case.files.values())))
    with laid_out(case) as top:
        # A folder that is no part of the project.
        store = Store(str(top / ".kept"), b"s" * 32)
        _check(top, store)
        for _ in range(EDITS):
            made = _edited(top, chance)
            if made is not None and _check(top, store) != _check(top, None):
                yield f"another report after {made}"


def _check(top: Path, store: Store | None) -> Report:
    found = Session(config.load([str(top)]), store).check([str(top)])
    return replace(found, effort=Report().effort)


def _edited(top: Path, chance: random.Random) -> str | None:
    """Edit one function's body, or the rows of one file; what was done, or None where nothing was."""
    path = chance.choice(sorted(top.rglob("*.py")) or [top])
    edit = chance.choice(_EDITS)
    try:
        text = path.read_text(encoding="utf-8")
        made = edit(text.splitlines(keepends=True), _inner(ast.parse(text)), chance)
        ast.parse(made)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    if made == text:
        return None
    path.write_text(made, encoding="utf-8", newline="")
    return edit.__name__


def _inner(tree: ast.Module) -> list[ast.stmt]:
    """The statements of bodies that stand on rows of their own."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [statement for f in functions if f.body[0].lineno > f.lineno for statement in f.body]


def _before(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random, new: str) -> str:
    """The rows with one more, before a statement of a body, or anywhere where there is none."""
    at = chance.choice(inner).lineno - 1 if inner else chance.randrange(len(rows) + 1)
    indent = rows[at][: len(rows[at]) - len(rows[at].lstrip())] if at < len(rows) else ""
    return "".join([*rows[:at], f"{indent}{new}\n", *rows[at:]])


def a_remark(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random) -> str:
    return _before(rows, inner, chance, "# edited")


def a_remark_at_the_top(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random) -> str:
    return _before(rows, (), chance, "# edited")


def a_statement(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random) -> str:
    return _before(rows, inner, chance, chance.choice(_INSERTED))


def a_statement_less(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random) -> str:
    if not inner:
        return "".join(rows)
    gone = chance.choice(inner)
    indent = " " * gone.col_offset
    return "".join([*rows[: gone.lineno - 1], f"{indent}pass\n", *rows[gone.end_lineno :]])


def a_statement_twice(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random) -> str:
    if not inner:
        return "".join(rows)
    twice = chance.choice(inner)
    return "".join([*rows[: twice.end_lineno], *rows[twice.lineno - 1 :]])


def another_word(rows: list[str], inner: Sequence[ast.stmt], chance: random.Random) -> str:
    old, new = chance.choice(_EXCHANGED)
    return "".join(rows).replace(old, new, 1)


_EDITS: tuple[Edit, ...] = (
    a_remark, a_remark_at_the_top, a_statement, a_statement_less, a_statement_twice, another_word,
)  # fmt: skip
