"""By what findings are known again when the program around them changes."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

from cudalint.config import Config
from cudalint.found import Report
from cudalint.policy.identity import Identity, fingerprints, identities
from cudalint.session import Session

TWICE = """\
import multiprocessing
import sys

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    torch.zeros(1, device='cuda')
    pool = multiprocessing.get_context("fork").Pool(1)
    if len(sys.argv) > 1:
        print(pool.map(work, [1, 2]))
    else:
        pool.map(work, [3])


if __name__ == "__main__":
    main()
"""


def checked(text: str, name: str = "/nowhere/train.py") -> Report:
    return Session(Config()).check_alone(name, text, repair=False)


def known(text: str, name: str = "/nowhere/train.py") -> tuple[Identity, ...]:
    report = checked(text, name)
    return identities(report.findings, report.texts, "/nowhere")


def test_what_a_finding_is_known_by() -> None:
    first, second = known(TWICE)
    assert (first.path, first.code, first.function) == ("train.py", "CUD101", "main")
    assert first.statement != second.statement


CHANGES: dict[str, Callable[[str], str]] = {
    "lines above": lambda text: text.replace("import torch\n", "import torch\n\nMORE = 1\n\n"),
    "a comment": lambda text: text.replace("[1, 2]))", "[1, 2]))  # twice").replace("[3])", "[3])  # type: ignore"),
    "quotes": lambda text: text.replace('"fork"', "'fork'").replace("'cuda'", '"cuda"'),
    "rows": lambda text: text.replace("pool.map(work, [1, 2])", "\n        pool.map(\n  work,\n[1,2,],\n)"),
    "parentheses": lambda text: text.replace("pool.map(work, [3])", "(\n            pool.map(work, [3])\n        )"),
    "a continued row": lambda text: text.replace("pool.map(work, [3])", "pool.map \\\n(work, [3])"),
    "blanks": lambda text: text.replace("(work, [", "( work,[ "),
    "tabs": lambda text: re.sub("(?m)^    ", "\t", text),
    "ends of rows": lambda text: text.replace("\n", "\r\n"),
    "another statement on the row": lambda text: text.replace("pool.map(work, [3])", "x = 1; pool.map(work, [3])"),
    "a deeper block": lambda text: text.replace(
        "        pool.map(work, [3])", "        if True:\n            pool.map(work, [3])"
    ),
    "a class of a string": lambda text: text.replace(
        "        pool.map(work, [3])", "        text = '''\nclass A:\n'''\n        pool.map(work, [3])"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_nothing_of_the_statement_changes_nothing_of_the_identity(change: str) -> None:
    changed = CHANGES[change](TWICE)
    assert changed != TWICE
    assert known(changed) == known(TWICE)


def test_a_renamed_file_and_a_renamed_function_leave_the_rest() -> None:
    (before, _), (renamed, _), (moved, _) = (
        known(TWICE),
        known(TWICE, "/nowhere/other.py"),
        known(TWICE.replace("main()", "start()")),
    )
    assert (renamed.path, moved.function) == ("other.py", "start")
    assert before.elsewhere == renamed.elsewhere
    assert before.elsewhere != moved.elsewhere
    assert before.renamed == moved.renamed
    one, other = checked(TWICE), checked(TWICE, "/nowhere/other.py")
    assert fingerprints(one.findings, one.texts, "/") == fingerprints(other.findings, other.texts, "/")


@pytest.mark.parametrize(("old", "new"), [("[3])", "[4])"), ("pool.map(work, [3])", "pool.imap(work, [3])")])
def test_another_statement_is_another_finding(old: str, new: str) -> None:
    before, after = known(TWICE), known(TWICE.replace(old, new))
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_equal_statements_have_fingerprints_of_their_own() -> None:
    report = checked(TWICE.replace("print(pool.map(work, [1, 2]))", "pool.map(work, [3])"))
    first, second = identities(report.findings, report.texts, "/")
    assert first == second
    assert len(set(fingerprints(report.findings, report.texts, "/"))) == 2


def test_methods_stand_in_their_class() -> None:
    method = TWICE.replace("def main():", "class Runner:\n  @staticmethod\n  def main():")
    method = method.replace("    main()", "    Runner.main()")
    assert {one.function for one in known(method)} == {"Runner.main"}


@pytest.mark.parametrize("options", ["line-length=50", "indent-width=2", 'format.indent-style="tab"'])
def test_a_formatter_changes_nothing(options: str) -> None:
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--config", options, "-"]
    formatted = subprocess.run(ruff, input=TWICE.replace('"', "'"), capture_output=True, text=True, check=True).stdout
    assert formatted != TWICE
    assert known(formatted) == known(TWICE)


def test_a_file_as_a_whole_is_known_by_its_file() -> None:
    broken = "import torch\n\ndef f(:\n"
    (one,), (other,) = known(broken), known(broken, "/nowhere/other.py")
    assert one.code == "CUD901"
    assert one != other
    for text in ("", "(", ")", "'''", "x = (1,\n\n# end", textwrap.dedent(TWICE).replace("\n", "\r")):
        report = checked(text)
        assert len(set(fingerprints(report.findings, report.texts, "/"))) == len(report.findings)
