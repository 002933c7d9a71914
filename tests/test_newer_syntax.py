"""A program is read whatever Python it is written for, and whatever Python runs cudalint."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cudalint import api

# A statement of a version of Python, which does nothing that matters.
STATEMENTS = {
    "3.10 match": "match 1:\n    case {'a': [int(), *_]} | str():\n        pass",
    "3.10 with in parentheses": "with (\n    open('a') as a,\n    open('b') as b,\n):\n    pass",
    "3.11 except*": "try:\n    pass\nexcept* (ValueError, TypeError):\n    pass",
    "3.11 unpacking in an index": "def star(*args: *tuple[int]):\n    return args[*args, 1]",
    "3.12 type": "type Pair[T] = tuple[T, T]",
    "3.12 parameters of types": "class Box[T: int]:\n    def get[*Ts, **P](self):\n        pass",
    "3.12 quotes in an f-string": 'print(f"{\'a\' + "b"} {\'\\n\'.join(["c"])} {\n    1  # a comment\n}")',
    "3.13 defaults of types": "class Box[T = int]:\n    pass",
    "3.14 except without parentheses": "try:\n    pass\nexcept ValueError, TypeError:\n    pass",
    "3.14 t-string": 'print(t"{1 + 1!r:>{4}} {\'a\' + "b"}")',
}
PROGRAM = """\
import multiprocessing

import torch
{top}


def work(n):
{body}
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print(multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""
STATEMENT = "    x = 1"


def program(top: str = "", body: str = STATEMENT) -> str:
    return PROGRAM.replace("{top}", top).replace("{body}", body)


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


@pytest.mark.parametrize("where", ["top", "body"])
@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_newer_syntax_hides_nothing(statement: str, where: str) -> None:
    text = program(top=statement) if where == "top" else program(body=indented(statement))
    (found,) = api.check_text(text, "train.py", api.Options(isolated=True)).findings
    assert (found.code, found.span.start.row) == ("CUD101", len(text.splitlines()))
    effect = next(step for step in found.trace if step.kind is api.StepKind.EFFECT)
    assert text.splitlines()[effect.span.start.row - 1].strip() == 'return torch.ones(n, device="cuda").sum().item()'


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_a_repair_leaves_newer_syntax_alone(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(program(body=indented(statement)), encoding="utf-8")
    fixed = api.fix([str(path)], api.Options(isolated=True))
    (change,) = fixed.changes
    assert indented(statement) in change.after.decode()
    assert "CUD101" not in {finding.code for finding in fixed.report.findings}


@pytest.mark.parametrize("where", ["top", "body"])
def test_what_no_python_reads_is_said_where_it_stands(where: str) -> None:
    statement = "x = 1 whenever ready else 2"
    text = program(top=statement) if where == "top" else program(body=indented(statement))
    with pytest.raises(SyntaxError) as error:
        ast.parse(text)
    (found,) = api.check_text(text, "train.py", api.Options(isolated=True)).findings
    assert (found.code, found.span.start.row) == ("CUD901", error.value.lineno)
    assert found.message.startswith("cannot parse this file: ")


def test_a_chain_that_this_python_cannot_follow_is_no_internal_error() -> None:
    """Python 3.12 bounds how deep C calls nest: about 750 operators in one expression."""
    text = program(top=f"y = {'-' * 1_100}1")
    found = api.check_text(text, "train.py", api.Options(isolated=True)).findings
    said = [(one.code, one.message) for one in found if one.code != "CUD101"]
    assert said in ([], [("CUD901", "cannot analyse this file: the code is nested too deeply")])
    assert found
