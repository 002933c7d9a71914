"""What becomes of programs in the shapes that people write: ``repaired_shapes.txt`` has them as diffs.

A heading names the code of the first finding and how far its repair can be trusted; ``display`` is advice, which may
have an edit as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cudalint.config import Config
from cudalint.finding import Finding
from cudalint.fixes.edits import apply, as_changes
from cudalint.fixes.engine import repaired
from cudalint.fixing.rounds import alone
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.session import Session
from cudalint.text.source import SourceFile

_TEXT = (Path(__file__).parent / "repaired_shapes.txt").read_text(encoding="utf-8")
_, *_PARTS = re.split(r"^##### (CUD\d{3}) (\w+): (.*)\n", _TEXT, flags=re.MULTILINE)
SHAPES = dict(zip(_PARTS[2::4], zip(_PARTS[::4], _PARTS[1::4], _PARTS[3::4], strict=True), strict=True))


def files(diff: str) -> dict[str, str]:
    """The rows of each file, with their marks."""
    _, *parts = re.split(r"^=== (.*)\n", diff, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True)) if parts else {"program.py": diff}


def side(diff: str, marks: str) -> str:
    """The text before, or after."""
    return "".join(f"{row[2:]}\n" for row in diff.splitlines() if not row or row[0] in marks)


def analysed(texts: Mapping[str, str]) -> Analysis:
    return analyse([SourceFile(name, text, text.encode()) for name, text in texts.items()], Options())


def first(analysis: Analysis) -> Finding:
    return min(analysis.findings, key=lambda finding: finding.span.start)


@pytest.mark.parametrize("name", SHAPES)
def test_what_becomes_of_a_program(name: str) -> None:
    code, level, diff = SHAPES[name]
    before = {file: side(rows, " -") for file, rows in files(diff).items()}
    analysis = analysed(before)
    finding = first(analysis)
    fix = repaired(analysis, [finding])[finding]
    edits = {file: [edit for edit in fix.edits if edit.span.filename == file] for file in before}
    after = {file: apply(text, as_changes(text, edits[file])) for file, text in before.items()}
    assert (finding.code, fix.applicability.value) == (code, level)
    assert after == {file: side(rows, " +") for file, rows in files(diff).items()}
    if level != "display":
        left = [one for one in analysed(after).findings if (one.code, one.message) == (finding.code, finding.message)]
        assert left == []


def indented_by_tabs(text: str) -> str:
    """Four blanks at the beginning of a row as a tab."""
    return re.sub(r"(?m)^(?:    )+", lambda blanks: "\t" * (len(blanks[0]) // 4), text)


# How a file may be written down besides; each shape is tried in one of these.
WRITTEN: Mapping[str, Callable[[str], bytes]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "a mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "latin-1": lambda text: f"# coding: latin-1\n# caf\xe9\n{text}".encode("latin-1"),
    "tabs": lambda text: indented_by_tabs(text).encode(),
    "an open end": lambda text: text.removesuffix("\n").encode(),
}


@pytest.mark.parametrize(("name", "way"), list(zip(SHAPES, [*WRITTEN] * len(SHAPES), strict=False)))
def test_what_becomes_of_a_program_however_it_is_written_down(tmp_path: Path, name: str, way: str) -> None:
    code, _, diff = SHAPES[name]
    write = WRITTEN[way]
    for file, rows in files(diff).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(write(side(rows, " -")))
    found = [one for one in Session(Config()).check([str(tmp_path)]).findings if one.code == code]
    fix = min(found, key=lambda one: one.span.start).fix
    assert fix is not None
    for change in alone(fix):
        Path(change.path).write_bytes(change.after)
    assert {file: (tmp_path / file).read_bytes() for file in files(diff)} == {
        file: write(side(rows, " +")) for file, rows in files(diff).items()
    }


OF_A_RANK = """\
import os

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = {}
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    print(local_rank)


if __name__ == "__main__":
    main()
"""
OF_A_WORKER = """\
import multiprocessing as mp

import cupy
import torch


def work(n, side):
    print(cupy.ones(n).sum(), torch.ones(n), side)


if __name__ == "__main__":
    made = {}
    p = mp.get_context("spawn").Process(target=work, args=(2, made))
    p.start()
    p.join()
"""


@pytest.mark.parametrize(
    ("program", "value", "goes"),
    [
        (OF_A_RANK, 'int(os.environ["RANK"])', True),
        (OF_A_RANK, 'int(os.environ.get("RANK"))', True),
        (OF_A_RANK, 'int(os.getenv("RANK"))', True),
        (OF_A_RANK, 'int(str(os.environ["RANK"]))', True),
        (OF_A_RANK, "dist.get_rank()", True),
        (OF_A_RANK, "dist.get_rank() - dist.get_world_size()", True),
        (OF_A_RANK, "dist.get_rank(dist.group.WORLD)", False),
        (OF_A_RANK, 'os.environ.setdefault("RANK", "0") and dist.get_rank()', False),
        (OF_A_WORKER, "cupy.cuda.Stream()", True),
        (OF_A_WORKER, "cupy.cuda.Event()", True),
        (OF_A_WORKER, "torch.cuda.Stream()", True),
        (OF_A_WORKER, "torch.cuda.Event()", True),
        (OF_A_WORKER, "torch.cuda.Stream(priority=print(1))", False),
    ],
)
def test_a_variable_goes_with_its_last_use_where_its_value_does_nothing(program: str, value: str, goes: bool) -> None:
    text = program.format(value)
    analysis = analysed({"program.py": text})
    (finding,) = [one for one in analysis.findings if one.code in ("CUD305", "CUD506")]
    after = apply(text, as_changes(text, repaired(analysis, [finding])[finding].edits))
    assert after != text
    name = "rank" if program is OF_A_RANK else "made"
    assert (f"{name} = {value}\n" not in after) is goes
