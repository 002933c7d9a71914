"""Whether cudalint follows a change: by comparing findings, or by running the changed program under paper CUDA."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst
from oracle.runner import LIMIT, QUICK, QUIET, QUIET_LOADER
from oracle.verdict import Said, disagreement, outcome_of
from paper.fixture import judge
from paper.run import Observed
from paper.run import run as paper
from paper.watch import watched

from cudalint.finding import Finding, Severity
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile
from metamorphic.program import MAIN, Files, Program
from metamorphic.tags import tagged, tags
from metamorphic.transformation import Transformation

FOLDER = "/metamorphic"
# How a change spoils a program for reasons of its own, with any number of processes: nothing for cudalint to foretell.
_SPOILT = re.compile(
    r"Expected all tensors to be on the same device|^AssertionError|No backend type associated with device type cpu|"
    r"Expected a cuda device, but got: cpu|invalid device ordinal|No CUDA GPUs are available",
    re.MULTILINE,
)
# Of two things that cannot be pickled the first is met, and a wrapper may change which one that is.
_PICKLED = {"CUD108": "CUD108 or CUD305", "CUD305": "CUD108 or CUD305"}
PATIENCE = 7.0  # a fixture may sleep or wait for seconds; generated programs never do

Told = frozenset[tuple[str, str, int | str]]  # code, severity, and the tag of the anchor or its place


@dataclass(frozen=True)
class Verdict:
    """What came of one changed program. `complaint` is None where cudalint agreed.

    `inherited`: the unchanged program has the same complaint, which says nothing about the change. A warning is what
    cudalint gives where the code does not show what decides. `spoilt`: the change made it fail whatever processes do.
    """

    program: Program
    transformation: Transformation
    files: Mapping[str, str]
    complaint: str | None
    seen: str = ""
    inherited: bool = False
    spoilt: bool = False
    lost_in: frozenset[str] = frozenset()


def judged(program: Program, transformation: Transformation, *, on_paper: bool = False) -> Verdict | None:
    """The verdict on one program; None where the transformation has nothing to change in it.

    Findings decide about a change that preserves the meaning, `on_paper` also runs the program.
    """
    module = cst.parse_module(program.text)
    before = analysed({MAIN: program.text})
    module = tagged(module, sorted({_span(f) for f in before}))
    files = transformation.apply(module)
    if files is None:
        return None
    texts = {name: made.code for name, made in files.items()}
    for name, text in texts.items():
        compile(text, f"{name}.py", "exec")
    after = analysed(texts)
    if transformation.preserving:
        told, now = _told({MAIN: module}, before), _told(files, after)
        complaint = _difference(told, now)
        if complaint or not on_paper:
            return Verdict(program, transformation, texts, complaint, lost_in=_homes(files, told - now))
    complaint, output = run(program, texts, after)
    verdict = Verdict(program, transformation, texts, complaint, _last_line(output))
    if complaint is None or transformation.preserving:
        return verdict
    if complaint.startswith("missed") and (
        _SPOILT.search(output) or (transformation.moves and "wrong-device" in complaint)
    ):
        return replace(verdict, spoilt=True)
    return replace(verdict, inherited=program.fixture and run(program, {MAIN: program.text}, before)[0] == complaint)


def analysed(texts: Mapping[str, str]) -> tuple[Finding, ...]:
    """What cudalint says about the files of a program."""
    sources = [SourceFile(_path(name), text, text.encode()) for name, text in texts.items()]
    return analyse(sources, Options()).findings


def _path(name: str) -> str:
    return f"{FOLDER}/{name}.py"


def _span(finding: Finding) -> tuple[tuple[int, int], tuple[int, int]]:
    start, end = finding.span.start, finding.span.end
    return (start.row, start.column), (end.row, end.column)


# -- preserving ----------------------------------------------------------------------------------------------


def _told(files: Files, findings: tuple[Finding, ...]) -> Told:
    places = {finding.span.filename for finding in findings}
    known = {path: tags(module) for name, module in files.items() if (path := _path(name)) in places}
    told: set[tuple[str, str, int | str]] = set()
    for finding in findings:
        start, _ = _span(finding)
        where = known[finding.span.filename].get(start, f"{finding.span.filename}:{start[0]}:{start[1]}")
        told.add((_PICKLED.get(finding.code, finding.code), finding.severity.value, where))
    return frozenset(told)


def _homes(files: Files, told: Told) -> frozenset[str]:
    """The files in which the anchors of findings stand."""
    wanted = {where for _, _, where in told}
    return frozenset(name for name, module in files.items() if wanted and not wanted.isdisjoint(tags(module).values()))


def _difference(before: Told, after: Told) -> str | None:
    lost, new = before - after, after - before
    parts = [f"lost {_names(lost)}"] if lost else []
    parts += [f"new {_names(new)}"] if new else []
    return ", ".join(parts) or None


def _names(told: Told) -> str:
    return ", ".join(sorted(f"{code} ({severity})" for code, severity, _ in told))


# -- on paper ------------------------------------------------------------------------------------------------


def run(program: Program, texts: Mapping[str, str], findings: tuple[Finding, ...]) -> tuple[str | None, str]:
    """What does not fit between a run and the findings, and how the run ended."""
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as folder:
        for name, text in texts.items():
            path = Path(folder) / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        complaint, output = _compared(program, Path(folder) / f"{MAIN}.py", findings)
        if complaint is not None:  # what does not come out the same twice is a race
            complaint, output = _compared(program, Path(folder) / f"{MAIN}.py", findings)
    return complaint, output


def _compared(program: Program, path: Path, findings: tuple[Finding, ...]) -> tuple[str | None, str]:
    observed = _observed(program, path, {})
    if observed.gaps:
        return f"paper CUDA does not know {', '.join(observed.gaps)}", ""
    outcome, output = _outcome(program, observed), observed.text
    trigger = program.header.get("trigger", {})
    if trigger and outcome == "ok":
        observed = _observed(program, path, {key: str(value) for key, value in trigger.items()})
        outcome, output = _outcome(program, observed), observed.text
    # A program that does not print which device it used cannot show that it was the wrong one.
    shown = [f for f in findings if outcome != "ok" or f.outcome != "wrong-device"]
    said = [Said(f.code, f.severity is Severity.ERROR, f.span.start.row) for f in shown]
    return disagreement(outcome, output, said), f"{outcome}\n{output}"


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return ": ".join(dict.fromkeys((lines[0], lines[-1]))) if lines else ""


def _observed(program: Program, path: Path, env: Mapping[str, str]) -> Observed:
    gpus = int(program.header.get("gpus", 1))
    quick = {} if program.fixture else QUICK

    def execute(path: Path) -> Observed:
        return paper(path, gpus=gpus, limit=LIMIT, env={**quick, **env})

    quiet = QUIET_LOADER if program.loader else QUIET
    return watched(path, PATIENCE if program.fixture else quiet, execute)


def _outcome(program: Program, observed: Observed) -> str:
    """How a run counts; a measure in the header tells of the wrong device."""
    if observed.outcome == "ok" and program.header.get("outcome") == "wrong-device":
        harmed = not judge({**program.header, "message": ""}, observed)
        return "wrong-device" if harmed else "ok"
    return outcome_of(observed.outcome, observed.stdout)
