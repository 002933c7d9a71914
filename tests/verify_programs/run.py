"""Runs the programs beside it under ``cudalint --verify`` and compares each finding with what its header expects.

``python tests/verify_programs/run.py [--paper] [NAME...]``: on the GPUs of this machine, or on paper. A header is the
comment ``# expect: CUD204 confirmed`` (``# expect: nothing`` where there is no finding), ``# gpus: 2`` and
``# needs: numba``; ``# reached before 3.12`` allows that status where Python cannot tell which lines were passed. Ends
with 1 when a status differs.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cudalint.verify import Format, script, verify_program
from cudalint.verify.gpus import discover

HERE = Path(__file__).resolve().parent
_EXPECT = re.compile(r"^# expect: (?:nothing|(?P<code>CUD\d{3}) (?P<status>[a-z ]+))$", re.MULTILINE)
_GPUS = re.compile(r"^# gpus: (\d+)$", re.MULTILINE)
_NEEDS = re.compile(r"^# needs: (.+)$", re.MULTILINE)
_LIMIT = re.compile(r"^# limit: (\d+)$", re.MULTILINE)
_HARDWARE = re.compile(r"^# on hardware only$", re.MULTILINE)
_LINES = re.compile(r"^# reached before 3.12$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A program and the statuses that its header expects, sorted."""

    path: Path
    expected: tuple[tuple[str, str], ...]
    gpus: int
    needs: tuple[str, ...]
    limit: float
    only_on_hardware: bool

    @property
    def name(self) -> str:
        return self.path.stem


def samples() -> Iterator[Sample]:
    """All programs of the folder."""
    for path in sorted(HERE.glob("[bo]*_*.py")):
        text = path.read_text(encoding="utf-8")
        blind = sys.version_info < (3, 12) and _LINES.search(text) is not None
        found = [(one["code"], "reached" if blind else one["status"]) for one in _EXPECT.finditer(text) if one["code"]]
        gpus, needs, limit = _GPUS.search(text), _NEEDS.search(text), _LIMIT.search(text)
        yield Sample(
            path=path,
            expected=tuple(sorted(found)),
            gpus=int(gpus[1]) if gpus else 1,
            needs=tuple(needs[1].split(", ")) if needs else (),
            limit=float(limit[1]) if limit else 120.0,
            only_on_hardware=_HARDWARE.search(text) is not None,
        )


def statuses(sample: Sample, on_paper: bool) -> tuple[tuple[tuple[str, str], ...], str]:
    """What the run says of each finding, and why."""
    out, err = io.StringIO(), io.StringIO()
    os.chdir(sample.path.parent)
    verify_program(
        script(sample.path.name, []),
        output_format=Format.JSON,
        seconds=sample.limit,
        gpu_count=sample.gpus if on_paper else None,
        on_paper=on_paper,
        out=out,
        err=err,
    )
    told = json.loads(out.getvalue())
    found = sorted((one["code"], one["status"]) for one in told["findings"])
    why = [f"{one['code']}: {one['why']}" for one in told["findings"]]
    why += [f"not predicted: {one['kind']}: {one['said']}" for one in told["unpredicted"]]
    return tuple(found), "; ".join([*why, told["end"]])


def _obstacle(sample: Sample, on_paper: bool, gpus: int) -> str | None:
    if on_paper:
        return "on hardware only" if sample.only_on_hardware else None
    if sample.gpus > gpus:
        return f"needs {sample.gpus} GPUs"
    missing = [name for name in sample.needs if importlib.util.find_spec(name.partition(".")[0]) is None]
    return f"{' and '.join(missing)} not installed" if missing else None


def main(words: list[str]) -> int:
    """Run the named programs, or all, and print a table."""
    on_paper, names = "--paper" in words, {word for word in words if word != "--paper"}
    gpus = len(discover().devices)
    wrong = 0
    print("| program | expected | seen | why |\n| --- | --- | --- | --- |")
    for sample in samples():
        if names and sample.name not in names:
            continue
        obstacle = _obstacle(sample, on_paper, gpus)
        if obstacle is not None:
            print(f"| {sample.name} | {_named(sample.expected)} | not run | {obstacle} |", flush=True)
            continue
        found, why = statuses(sample, on_paper)
        agrees = found == sample.expected
        wrong += not agrees
        seen = "as expected" if agrees else f"**{_named(found)}**"
        why = why.replace("|", "\\|").replace("\n", " ")
        print(f"| {sample.name} | {_named(sample.expected)} | {seen} | {why} |", flush=True)
    print(f"\n{wrong} differ")
    return 1 if wrong else 0


def _named(found: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{code} {status}" for code, status in found) or "nothing"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
