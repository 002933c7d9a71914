"""Programs whose workers could start afresh: whether what Python does by itself makes that unsafe.

Each is repaired and proven, which takes long: a sample of them, all by command.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cudalint.config import Config, parse_versions
from cudalint.finding import Applicability
from cudalint.session import Session

_SECTION = re.compile(r"^##### (.*)\n", re.MULTILINE)
_PART = re.compile(r"^@(imports|top|work|before|launch|after)\b ?", re.MULTILINE)
_FILE = re.compile(r"^--- (.*)\n", re.MULTILINE)
_, *_SECTIONS = _SECTION.split((Path(__file__).parent / "spawn_programs.txt").read_text(encoding="utf-8"))
CASES = dict(zip(_SECTIONS[::2], _SECTIONS[1::2], strict=True))
PARTS = {
    "imports": "",
    "top": "",
    "work": "return torch.ones(n, device='cuda').sum().item()",
    "before": "pass",
    "launch": "with mp.Pool(1) as pool:\n    print(pool.map(work, [1, 2]))",
    "after": "pass",
}
PROGRAM = """\
{future}import multiprocessing as mp
import torch
{imports}

{top}


def work(n):
{work}


def main():
    torch.zeros(1, device="cuda")
{before}
{launch}
{after}


if __name__ == "__main__":
    main()
"""


def program(text: str) -> str:
    """The program of a section: its parts in the template, or itself where it has none."""
    first, *found = _PART.split(text)
    if not found:
        return first
    given = {name: part.rstrip("\n") for name, part in zip(found[::2], found[1::2], strict=True)}
    parts = PARTS | given
    inner = {name: re.sub(r"(?m)^(?=.)", "    ", parts[name]) for name in ("work", "before", "launch", "after")}
    return PROGRAM.format(future=first, imports=parts["imports"], top=parts["top"], **inner)


@pytest.mark.parametrize("name", CASES)
def test_what_python_does_by_itself(tmp_path: Path, name: str) -> None:
    text, *files = _FILE.split(CASES[name])
    (tmp_path / "program.py").write_text(program(text))
    for filename, content in zip(files[::2], files[1::2], strict=True):
        (tmp_path / filename).parent.mkdir(exist_ok=True)
        (tmp_path / filename).write_text(content)
    _, _, said = name.partition(": ")
    config = Config(target_versions=parse_versions("3.14")) if name.startswith("from 3.14") else Config()
    findings = Session(config).check([str(tmp_path / "program.py")]).findings
    (fix,) = [f.fix for f in findings if f.code in ("CUD101", "CUD401")]
    assert fix is not None
    assert (fix.applicability is Applicability.SAFE) == (said == "safe"), fix.reason or fix.message
    assert said == "safe" or said in f"{fix.message} {fix.reason}"
