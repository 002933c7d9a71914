"""Tables of constants cost what their bytes cost, and what stands around them is where it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint import config
from cudalint.found import Report
from cudalint.session import Session

Run = Callable[..., "subprocess.CompletedProcess[str]"]
NUMBERS = [str(number) for number in range(2_400)]
PROGRAM = """\
import multiprocessing
import torch
TABLE = {table}{after}
def work(n):
    return torch.ones(n, device="cuda").sum().item()
def launch(n{default}):
    torch.cuda.init()
    return multiprocessing.Pool(4).map(work, [1, 2, n])
if __name__ == "__main__":
    print({argument}); launch(len(TABLE)); print("done")
"""
TABLES = {
    "in one row": "[" + ", ".join(NUMBERS) + "]",
    "a row for each": "[\n" + "".join(f"    {one},\n" for one in NUMBERS) + "]",
    "a row for each, not indented": "[\n" + ",\n".join(NUMBERS) + "\n]",
    "rows of digits": "(\n" + ",\n".join(one[-1] for one in NUMBERS) + ",\n)",
    "rows of many": "(\n" + "".join(f"  {', '.join(NUMBERS[n : n + 9])}, # {n}\n" for n in range(0, 2_400, 9)) + ")",
    "signs and units": "{" + ", ".join(f"-{one}.5e3, +{one}j" for one in NUMBERS) + "}",
    "texts": "[" + ", ".join(f"'it''s {one}', b\"\\x00\", 'ü\\n{one}'" for one in NUMBERS) + "]",
    "texts of several rows": "[" + ", ".join(f"'''{one}\n''', \"\"\"# ]\"\"\"" for one in NUMBERS) + "]",
    "pairs": "[" + ",\n ".join(f"({one}, [{one}, None])" for one in NUMBERS) + "]",
    "long rows": "[" + ",\n".join(f"[{', '.join(NUMBERS[:1_500])}]" for _ in range(3)) + "]",
    "longer rows": "[" + ",\n".join(f"[{', '.join(NUMBERS)}]" for _ in range(2)) + "]",
    "a dict": "{" + ",\n".join(f"{one}: '{one}'" for one in NUMBERS) + "}",
    "a dict of tables": "{" + ",\n".join(f"'k{n}': ({', '.join(NUMBERS)})" for n in range(2)) + "}",
    "no brackets": ", ".join(NUMBERS),
    "brackets around each": "[" + ", ".join(f"({one})" for one in NUMBERS) + "]",
    "a short last one": f"[[{', '.join(NUMBERS[:1_900])}], {', '.join(NUMBERS[:100])}, [], 1]",
    "a very short last one": f"[[{', '.join(NUMBERS[:2_000])}], 1]",
    "a long last one": f"[{', '.join(NUMBERS[:400])}, [{', '.join(NUMBERS[:1_900])}]]",
}
PARSED_WHOLE = {"brackets around each"}


def checked(path: Path, text: str) -> Report:
    path.write_bytes(text.encode())
    return Session(config.load([str(path)])).check([str(path)])


def places(report: Report) -> list[tuple[str, int, int, int]]:
    return [
        (finding.code, span.start.row, span.start.column, span.end.column)
        for finding in report.findings
        for span in (finding.span, *(step.span for step in finding.trace))
    ]


@pytest.mark.parametrize(
    ("form", "end"), [*((form, "\n") for form in TABLES), ("a row for each", "\r\n"), ("rows of many", "\r\n")]
)
def test_most_of_a_table_is_not_lowered_and_what_stands_around_it_keeps_its_place(
    tmp_path: Path, form: str, end: str
) -> None:
    table = TABLES[form]
    program = PROGRAM.format(table=table, after="", default="", argument="TABLE[-1]").replace("\n", end)
    small = PROGRAM.format(table="[1]", after="", default="", argument="TABLE[-1]").replace("\n", end)
    down = table.count("\n")
    expected = [
        (code, row + (down if row > 3 else 0), *columns)
        for code, row, *columns in places(checked(tmp_path / "s.py", small))
    ]
    assert any(code == "CUD101" for code, *_ in expected)
    report = checked(tmp_path / "large.py", program)
    assert places(report) == expected
    if form not in PARSED_WHOLE:
        assert report.effort.nodes_lowered < 2_600


@pytest.mark.parametrize("form", ["in one row", "rows of many", "texts", "a dict"])
def test_what_stands_behind_a_table_in_its_row_keeps_its_place(tmp_path: Path, form: str) -> None:
    """The table is in a call, an argument's default, and in front of a statement of the same row."""
    table = TABLES[form]
    program = PROGRAM.format(
        table="[2]", after=f"; B = {table}; torch.cuda.init()", default=f", t={table}", argument=table
    )
    found = places(checked(tmp_path / "large.py", program))
    rows = program.split("\n")
    launch = next(n for n, row in enumerate(rows, 1) if "launch(len" in row)
    assert (launch, rows[launch - 1].index("launch(len") + 1) in [(row, column) for _, row, column, _ in found]
    first = next(n for n, row in enumerate(rows, 1) if "torch.cuda.init()" in row)
    assert (first, rows[first - 1].index("torch.cuda.init()") + 1) in [(row, column) for _, row, column, _ in found]


def test_a_table_is_repaired_around(run: Run, tmp_path: Path) -> None:
    text = PROGRAM.format(table=TABLES["rows of many"], after="", default="", argument="1")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    run("check", "--fix", "--unsafe-fixes", ".")
    repaired = (tmp_path / "train.py").read_text(encoding="utf-8")
    assert repaired != text
    assert TABLES["rows of many"] in repaired
    assert "\ue000" not in repaired


@pytest.mark.parametrize(("size", "code"), [(1_000, None), (1_000, "CUD101")])
def test_what_a_small_table_says_is_known(tmp_path: Path, size: int, code: str | None) -> None:
    """Beyond its bound nobody knows how long a table is: what depends on that may happen either way."""
    table = "(" + ", ".join(NUMBERS[:size]) + ")"
    test = f"len(TABLE) == {size if code else size + 1}"
    text = PROGRAM.format(table=table, after="", default="", argument="1")
    text = text.replace("    torch.cuda.init()", f"    if {test}:\n        torch.cuda.init()")
    assert (code is not None) == any(found[0] == "CUD101" for found in places(checked(tmp_path / "small.py", text)))


@pytest.mark.parametrize("test", ["len(TABLE) == 2400", "TABLE[2200] == 2200", "2399 in TABLE", "TABLE[0] == 0"])
def test_what_a_large_table_says_is_not_denied(tmp_path: Path, test: str) -> None:
    text = PROGRAM.format(table=f"({', '.join(NUMBERS)})", after="", default="", argument="1")
    text = text.replace("    torch.cuda.init()", f"    if {test}:\n        torch.cuda.init()")
    assert any(found[0] in ("CUD101", "CUD102") for found in places(checked(tmp_path / "large.py", text)))


def test_names_are_found_in_a_large_dict(tmp_path: Path) -> None:
    table = "{" + ", ".join(f"'k{one}': {one}" for one in NUMBERS) + "}"
    text = PROGRAM.format(table=table, after="", default="", argument="1")
    text = text.replace("    torch.cuda.init()", "    if TABLE['k2399'] == 2399:\n        torch.cuda.init()")
    assert any(found[0] in ("CUD101", "CUD102") for found in places(checked(tmp_path / "large.py", text)))
