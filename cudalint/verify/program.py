"""Runs a user's own program under the probe, and says of each finding whether it came true."""

from __future__ import annotations

import ast
import importlib.util
import os
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path

from cudalint import config
from cudalint.finding import Finding, Severity, Span, StepKind
from cudalint.policy.suppression import UNUSED
from cudalint.session import Session
from cudalint.verify import journal as notes
from cudalint.verify.extent import extent, is_library
from cudalint.verify.headers import Outcome
from cudalint.verify.journal import Journal, Stack
from cudalint.verify.observe import Observation, observe
from cudalint.verify.predict import UNREADABLE
from cudalint.verify.runner import Limits, Run, Runner
from cudalint.verify.violations import Kind, Violation, violations

# About files and comments.
_OF_NO_RUN = UNREADABLE | {UNUSED}
_SPEAKS_OF_GPUS = re.compile(r"cuda|gpu|nccl|pinned?\b", re.IGNORECASE)


class Target(Exception):
    """A program that cannot be found; the text is one clear line."""


class Status(Enum):
    """What a run says about one finding."""

    CONFIRMED = "confirmed"
    REACHED = "reached"
    NOT_REACHED = "not reached"
    REFUTED = "refuted"


class _Reach(Enum):
    """Whether a run passed a place: before Python 3.12 only its function may be known to."""

    YES = "yes"
    NEAR = "near"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: the words after ``python``, and the file in which it begins."""

    words: tuple[str, ...]
    path: Path

    @property
    def name(self) -> str:
        """As it was named on the command line."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Judged:
    """One finding and what came of it; ``by`` is what was seen, ``silenced`` whether a user has asked not to see it."""

    finding: Finding
    status: Status
    why: str
    by: Violation | None = None
    silenced: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """All that came of one run."""

    program: Program
    seen: Observation
    findings: tuple[Judged, ...]
    unpredicted: tuple[Violation, ...]
    processes: int
    not_entered: tuple[str, ...]

    @property
    def is_refuted(self) -> bool:
        """Whether a prediction did not come true that a user gets to see."""
        return any(one.status is Status.REFUTED and not one.silenced for one in self.findings)

    @property
    def failed_by_itself(self) -> bool:
        """Whether it ended badly in a way that is none of cudalint's business, so that nothing was shown."""
        shown = self.unpredicted or any(one.status is Status.CONFIRMED for one in self.findings)
        return self.seen.outcome.fails and not shown


def script(path: str, arguments: Sequence[str]) -> Program:
    """``python train.py ARGS``."""
    return Program((path, *arguments), Path(path).absolute())


def module(name: str, arguments: Sequence[str]) -> Program:
    """``python -m package.module ARGS``, found from the current directory as Python finds it."""
    sys.path.insert(0, os.getcwd())
    try:
        spec = _located(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = _located(f"{name}.__main__")
    finally:
        sys.path.pop(0)
    if spec is None or spec.origin is None or not spec.has_location:
        raise Target(f"no module named {name!r} that Python could run")
    return Program(("-m", name, *arguments), Path(spec.origin))


def _located(name: str) -> ModuleSpec | None:
    """Where a module lies. Its packages are not imported: what they do belongs to the run."""
    first, *rest = name.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        return None
    path = first
    for word in rest:
        path = f"{path}.{word}"
        spec = _inside(path, (spec.submodule_search_locations if spec is not None else None) or ())
    return spec


def _inside(name: str, folders: Iterable[str]) -> ModuleSpec | None:
    """A module from the folders of its package; those of a namespace package are put together."""
    portions: list[str] = []
    for folder in folders:
        finder = pkgutil.get_importer(folder)
        spec = None if finder is None else finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        portions += (spec.submodule_search_locations if spec is not None else None) or ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def try_out(program: Program, runner: Runner, seconds: float | None = None) -> Trial:
    """Predict, run, compare."""
    findings, silenced = _findings(program)
    places = sorted({place for finding in findings for span in _places(finding) for place in _lines(span)})
    run = runner.watch(program.words, Limits(seconds=seconds, echo=True, input=True, census=True), places)
    journal = notes.read(run.journal)
    seen = observe(run)
    found = violations(run, journal)
    pairs = _pairs(findings, found)
    judged = tuple(
        replace(
            _judge(finding, [one for one in found if finding in pairs[one]], _reach(finding, found, journal), seen),
            silenced=finding in silenced,
        )
        for finding in findings
    )
    return Trial(
        program=program,
        seen=seen,
        findings=judged,
        unpredicted=tuple(one for one in found if one.is_wrong and not pairs[one]),
        processes=len(journal.entered),
        not_entered=tuple(_not_entered(run, journal)),
    )


def _findings(program: Program) -> tuple[tuple[Finding, ...], frozenset[Finding]]:
    """What cudalint says of the files of the program, as if the project had no other; and what of it is silenced."""
    is_module = program.words[0] == "-m"
    scripts = [Path(word) for word in program.words[1:] if word.endswith(".py") and os.path.isfile(word)]
    search = [Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    files = extent([program.path, *scripts], [Path.cwd(), *search] if is_module else search)
    if not files:
        return (), frozenset()
    found = config.load((str(files[0]),))
    report = Session(found).check([str(file) for file in files], repair=False, whole=True)
    every = sorted((*report.findings, *report.silenced), key=lambda finding: finding.sort_key)
    return tuple(finding for finding in every if finding.code not in _OF_NO_RUN), frozenset(report.silenced)


def _judge(finding: Finding, matches: Sequence[Violation], reach: _Reach, seen: Observation) -> Judged:
    if matches:
        return Judged(finding, Status.CONFIRMED, matches[0].text, matches[0])
    if reach is _Reach.NO:
        return Judged(finding, Status.NOT_REACHED, "it was not seen to be reached")
    if finding.outcome == Outcome.HANG.value and seen.outcome is Outcome.HANG:
        return Judged(finding, Status.CONFIRMED, seen.summary)
    if reach is _Reach.NEAR:
        return Judged(finding, Status.REACHED, "its function was reached; before Python 3.12 its line cannot be seen")
    if seen.outcome.fails:
        return Judged(finding, Status.REACHED, f"it was reached; whether the {seen.summary} comes of it was not seen")
    if finding.severity is Severity.WARNING or seen.end != "ended":
        return Judged(finding, Status.REACHED, "it was reached; nothing was seen to go wrong until the end")
    return Judged(finding, Status.REFUTED, "it was reached, and nothing went wrong")


def _pairs(findings: Sequence[Finding], found: Sequence[Violation]) -> dict[Violation, list[Finding]]:
    """Which findings each violation shows: those of its very launch, else of its function, else of the code it ran."""
    pairs: dict[Violation, list[Finding]] = {}
    for one in found:
        able = [finding for finding in findings if one.shows(finding) and _ran(finding, one)]
        if one.kind is Kind.LOST:  # seen where it is received; the finding is where it was sent
            pairs[one] = [finding for finding in findings if one.shows(finding)]
            continue
        stack = (*one.use, *one.launch)
        exact = [finding for finding in able if _stands(_places(finding), stack)]
        near = exact or [finding for finding in able if _surrounds(_places(finding), own(one.launch)[:1])]
        nowhere = not own(one.use) and not one.launch  # in a thread of a library
        told_by_code = able if nowhere else [finding for finding in able if _effects(finding)]
        elsewhere = nowhere and _SPEAKS_OF_GPUS.search(one.text) is None  # a launcher says that its child failed
        unclear = one.kind is Kind.EXCEPTION and (elsewhere or len(told_by_code) > 1)
        pairs[one] = near or ([] if unclear else told_by_code)
    return pairs


def _ran(finding: Finding, violation: Violation) -> bool:
    """Whether what was seen happened in the code that the finding says its worker runs."""
    effects = _effects(finding)
    if not effects or not own(violation.use):
        return True
    return _stands([*effects, *_places(finding)], violation.use)


def _effects(finding: Finding) -> list[Span]:
    return [step.span for step in finding.trace if step.kind is StepKind.EFFECT]


def _places(finding: Finding) -> list[Span]:
    return [finding.span, *(step.span for step in finding.trace if step.kind is StepKind.LAUNCH)]


def _reach(finding: Finding, found: Sequence[Violation], journal: Journal) -> _Reach:
    spans = _places(finding)
    stacks = [event.stack for event in journal.events] + [violation.use for violation in found]
    reached = {(event.values[0], int(event.kind.split()[1])) for event in journal.events if " " in event.kind}
    passed = any(place in reached for span in spans for place in _lines(span))
    if passed or any(_stands(spans, stack) for stack in stacks):
        return _Reach.YES
    if any(event.kind == "looks" for event in journal.events):
        return _Reach.NO
    return _Reach.NEAR if any(_surrounds(spans, stack) for stack in stacks) else _Reach.NO


def _stands(spans: Sequence[Span], stack: Stack) -> bool:
    """Whether a frame of the stack is in one of the spans."""
    places = {place for span in spans for place in _lines(span)}
    return any((os.path.realpath(name), row) in places for name, row, _ in stack)


def _surrounds(spans: Sequence[Span], stack: Stack) -> bool:
    """Whether a frame of the stack is in the function of one of the spans."""
    functions = {(os.path.realpath(span.filename), _function(span)) for span in spans}
    return any((os.path.realpath(name), function) in functions for name, _, function in stack)


def _function(span: Span) -> str:
    """The name of the innermost function around a span, as frames spell it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(_tree(os.path.realpath(span.filename))) if isinstance(node, kinds)]
    around = [node.name for node in functions if node.lineno <= span.start.row <= (node.end_lineno or 0)]
    return around[-1] if around else "<module>"  # outer functions come before inner ones


@cache
def _tree(name: str) -> ast.Module:
    try:
        return ast.parse(Path(name).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _lines(span: Span) -> Iterator[tuple[str, int]]:
    name = os.path.realpath(span.filename)
    return ((name, row) for row in range(span.start.row, span.end.row + 1))


def own(stack: Stack) -> Stack:
    """The frames of the program itself, without those of Python and of what is installed."""
    return tuple(frame for frame in stack if not is_library(frame[0]))


def _not_entered(run: Run, journal: Journal) -> Iterator[str]:
    """Python processes that left no note: the probe comes by the environment, and -I, -S and -E leave it out."""
    for pid, words in run.seen.items():
        program = os.path.basename(words.split(" ")[0])
        if pid not in journal.entered and program.startswith("python"):
            yield words
