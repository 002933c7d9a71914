"""Runs a user's own program under the probe, and says of each finding whether it came true."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import Lock

from cudalint import config
from cudalint.finding import Finding, Severity
from cudalint.policy.suppression import UNUSED
from cudalint.session import Session
from cudalint.structs import Frozen, field, replace
from cudalint.text.source import Cells
from cudalint.verify import journal as notes
from cudalint.verify import notebooks
from cudalint.verify.extent import extent
from cudalint.verify.gpus import Gpu
from cudalint.verify.headers import Outcome
from cudalint.verify.journal import Journal
from cudalint.verify.observe import Observation, observe
from cudalint.verify.places import effects, lines, own, places, rows, stands, surrounds
from cudalint.verify.predict import UNREADABLE
from cudalint.verify.readings import Reading, Readings
from cudalint.verify.runner import Limits, Run, Runner
from cudalint.verify.sayings import is_of_programs
from cudalint.verify.violations import Kind, Violation, violations

# About files and comments.
_OF_NO_RUN = UNREADABLE | {UNUSED}
# What is seen of a launch may be meant otherwise: a reading of the devices themselves counts more.
_SUPPOSED = frozenset({Kind.VISIBLE_DEVICES, Kind.GROUP, Kind.VALUE, Kind.CONTEXTS})
# What a fresh process says of a function that its main module does not have.
# So many seconds may pass until somebody lets a program go on that a signal has stopped.
LONGEST_STOP = 60.0
_MISSING = re.compile(r"Can't get attribute '(\w+)' on <module '__m|module '__m\w+' has no attribute '(\w+)'")
_SPEAKS_OF_GPUS = re.compile(r"cuda|gpu|nccl|pinned?\b", re.IGNORECASE)


class Target(Exception):
    """A program that cannot be found; the text is one clear line."""


class Status(Enum):
    """What a run says about one finding."""

    CONFIRMED = "confirmed"
    REACHED = "reached"
    NOT_REACHED = "not reached"
    REFUTED = "refuted"


# What a condition says of an option that a user has to give.
_GIVEN = re.compile("`(-[^`]+)` is given")


class _Reach(Enum):
    """Whether a run passed a place: before Python 3.12 only its function may be known to."""

    YES = "yes"
    NEAR = "near"
    NO = "no"


class Program(Frozen):
    """What to run: the words after ``python``, and the file in which it begins."""

    words: tuple[str, ...]
    path: Path

    @property
    def name(self) -> str:
        """As it was named on the command line."""
        return " ".join(self.words)


class Judged(Frozen):
    """One finding and what came of it; ``by`` is what was seen, ``silenced`` whether a user has asked not to see it."""

    finding: Finding
    status: Status
    why: str
    by: Violation | None = None
    silenced: bool = False


class Trial(Frozen):
    """All that came of one run; ``printed`` are the lines of its standard output.

    ``became``: the program that took its place, into which the probe does not look. Of a notebook, ``cells`` says by
    path where the rows of its programs are, and ``left_out`` what of it did not run.
    """

    program: Program
    seen: Observation
    findings: tuple[Judged, ...]
    unpredicted: tuple[Violation, ...]
    processes: int
    not_entered: tuple[str, ...]
    printed: tuple[str, ...] = ()
    cells: Mapping[str, Cells] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    became: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether a prediction did not come true that a user gets to see."""
        return any(one.status is Status.REFUTED and not one.silenced for one in self.findings)

    @property
    def showed_nothing(self) -> bool:
        """Whether it ended badly, and not as a finding was seen to predict; notes predict no end."""
        confirmed = (one.finding for one in self.findings if one.status is Status.CONFIRMED)
        shown = self.unpredicted or any(finding.severity is not Severity.NOTE for finding in confirmed)
        return self.seen.outcome.fails and not shown

    @property
    def went_on_unseen(self) -> bool:
        """Whether processes outlived it, as those of a daemon do, so that what was not reached may have come yet."""
        return bool(self.seen.left_behind) and self._is_open

    @property
    def was_replaced(self) -> bool:
        """Whether another program took its place before anything was seen."""
        return bool(self.became) and self._is_open

    @property
    def _is_open(self) -> bool:
        statuses = {one.status for one in self.findings}
        return bool(statuses & {Status.NOT_REACHED, Status.REACHED}) and Status.CONFIRMED not in statuses

    @property
    def suspects(self) -> tuple[Judged, ...]:
        """The findings that were reached and predict that it ends badly; none where its exception is of its own."""
        if is_of_programs(self.seen.said):
            return ()
        failing = {outcome.value for outcome in Outcome if outcome.fails}
        reached = (one for one in self.findings if one.status is Status.REACHED)
        return tuple(one for one in reached if one.finding.outcome in failing)


def script(path: str, arguments: Sequence[str]) -> Program:
    """``python train.py ARGS``, or the cells of a notebook.

    Raises:
        Target: for a notebook that cannot be run.
    """
    program = Program((path, *arguments), Path(path).absolute())
    if notebooks.is_notebook(program.path):
        if arguments:
            raise Target(f"{path} is a notebook, which takes no arguments")
        _planned(program.path)
    return program


def _planned(path: Path, *, replaces_links: bool = False) -> notebooks.Plan:
    try:
        return notebooks.plan(path, replaces_links=replaces_links)
    except notebooks.NotRunnable as error:
        raise Target(str(error)) from None


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


class Footing(Frozen):
    """Where a program runs: its current directory, and the folders in which it looks for modules."""

    cwd: Path
    search: tuple[Path, ...]

    @staticmethod
    def here() -> Footing:
        """As from the command line of this process."""
        entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        return Footing(Path.cwd(), tuple(Path(entry) for entry in entries if entry))

    @property
    def environment(self) -> dict[str, str]:
        """The variable that says so."""
        return {"PYTHONPATH": os.pathsep.join(map(str, self.search))} if self.search else {}


class Manner(Frozen):
    """How a program is run: ``quiet`` beside others, so that it shows no output and gets no input.

    ``rest``: it hangs once none of its processes has used a processor for so many seconds. ``turn`` is held while code
    is analysed, which several threads may not do at once.
    """

    quiet: bool = False
    rest: float | None = None
    turn: Lock = field(default_factory=Lock)


def try_out(
    program: Program,
    runner: Runner,
    seconds: float | None = None,
    machine: Sequence[Gpu] = (),
    footing: Footing | None = None,
    manner: Manner | None = None,
) -> Trial:
    """Predict, run, compare; ``machine`` are the GPUs that the program may see."""
    where, how = footing or Footing.here(), manner or Manner()
    with how.turn:
        findings, silenced = _findings(program, where)
    wanted = {rows(span) for finding in findings for span in (*places(finding), *effects(finding))}
    shown = not how.quiet
    limits = Limits(seconds, echo=shown, input=shown, census=True, rest=how.rest, stopped=LONGEST_STOP)
    plan: notebooks.Plan | None = None
    if notebooks.is_notebook(program.path):
        plan = _planned(program.path, replaces_links=footing is not None)
        run = _run_cells(program, plan, runner, limits, sorted(wanted), where)
    else:
        run = runner.watch(program.words, limits, sorted(wanted), where.environment, where.cwd)
    journal = notes.read(run.journal)
    seen = observe(run)
    found = violations(run, journal)
    pairs = _pairs(findings, found)
    readings = Readings(run, journal, machine)
    raised = [one.text for one in found if one.kind is Kind.EXCEPTION]
    reached = {finding: _reach(finding, found, journal) for finding in findings}
    judged = tuple(
        replace(
            _judge(
                program,
                finding,
                [one for one in found if finding in pairs[one] and _is_near(one, reached[finding])],
                reached[finding],
                seen,
                readings.of(finding),
                readings.waits(finding, raised),
            ),
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
        became=journal.became,
        printed=tuple(run.stdout.splitlines()),
        cells={} if plan is None else plan.cells,
        left_out=() if plan is None else plan.left_out,
    )


def _run_cells(
    program: Program,
    plan: notebooks.Plan,
    runner: Runner,
    limits: Limits,
    places: Sequence[tuple[str, int, int]],
    footing: Footing,
) -> Run:
    """A run of a notebook, which begins in its folder as kernels do."""
    with runner.folder() as folder:
        given = folder / "plan.json"
        given.write_text(plan.text, encoding="utf-8")
        told = {**footing.environment, "IPYTHONDIR": str(folder / "ipython")}
        words = (str(notebooks.KERNEL), str(given))
        return runner.watch(words, limits, places, told, program.path.parent)


def files(program: Program, footing: Footing) -> tuple[Path, ...]:
    """Which files it consists of, the one in which it begins first."""
    scripts = [Path(word) for word in program.words[1:] if word.endswith(".py") and os.path.isfile(word)]
    roots = [footing.cwd, *footing.search] if program.words[0] == "-m" else footing.search
    return extent([program.path, *scripts], roots)


def _findings(program: Program, footing: Footing) -> tuple[tuple[Finding, ...], frozenset[Finding]]:
    """What cudalint says of the files of the program, as if the project had no other; and what of it is silenced."""
    named = files(program, footing)
    if not named:
        return (), frozenset()
    found = config.load((str(named[0]),)).as_measured()
    report = Session(found).check([str(file) for file in named], repair=False, whole=True, once=True)
    every = sorted((*report.findings, *report.silenced), key=lambda finding: finding.sort_key)
    return tuple(finding for finding in every if finding.code not in _OF_NO_RUN), frozenset(report.silenced)


def _left_out(program: Program, finding: Finding) -> str | None:
    """The option with which a finding comes about, as a user gives it, where the program was not given any such."""
    named = _GIVEN.findall(finding.condition or "")
    given = " ".join(word.replace("=", " ", 1) if word.startswith("-") else word for word in program.words)
    return None if not named or any(f" {option} " in f" {given} " for option in named) else named[0]


def _judge(
    program: Program,
    finding: Finding,
    matches: Sequence[Violation],
    reach: _Reach,
    seen: Observation,
    read: Reading | None,
    waits: str | None,
) -> Judged:
    by = matches[0] if matches else None
    if read is not None and read.agrees:
        return Judged(finding, Status.CONFIRMED, read.text, by)
    contradicted = read is not None and read.agrees is False
    if by is not None and not (contradicted and all(one.kind in _SUPPOSED for one in matches)):
        return Judged(finding, Status.CONFIRMED, by.text, by)
    if read is not None and contradicted:
        option = _left_out(program, finding)
        if option is not None:
            return Judged(finding, Status.NOT_REACHED, f"the program was run without {option}")
        return Judged(finding, Status.REFUTED, read.text)
    if waits is not None:
        return Judged(finding, Status.CONFIRMED, waits)
    if reach is _Reach.NO:
        return Judged(finding, Status.NOT_REACHED, "it was not seen to be reached")
    if finding.outcome == Outcome.HANG.value and seen.outcome is Outcome.HANG:
        return Judged(finding, Status.CONFIRMED, seen.summary)
    if reach is _Reach.NEAR:
        return Judged(finding, Status.REACHED, "its function was reached; before Python 3.12 its line cannot be seen")
    if read is not None:
        return Judged(finding, Status.REACHED, f"it was reached; {read.text}")
    if seen.outcome.fails:
        return Judged(finding, Status.REACHED, f"it was reached; whether the {seen.summary} comes of it was not seen")
    if seen.left_behind:
        what = "what went on in the background was ended before anything showed it or contradicted it"
        return Judged(finding, Status.REACHED, f"it was reached; {what}")
    return Judged(finding, Status.REACHED, "it was reached; nothing was seen that shows it or contradicts it")


def _pairs(findings: Sequence[Finding], found: Sequence[Violation]) -> dict[Violation, list[Finding]]:
    """Which findings each violation shows: those of its very launch, else of its function, else of the code it ran."""
    pairs: dict[Violation, list[Finding]] = {}
    for one in found:
        able = [finding for finding in findings if one.shows(finding) and _ran(finding, one)]
        if one.kind is Kind.LOST:  # seen where it is received; the finding is where it was sent
            pairs[one] = [finding for finding in findings if one.shows(finding)]
            continue
        stack = (*one.use, *one.launch)
        exact = [finding for finding in able if stands(places(finding), stack)]
        near = exact or [finding for finding in able if surrounds(places(finding), own(one.launch)[:1])]
        nowhere = not own(one.use) and not one.launch  # in a thread of a library
        if one.kind is Kind.PICKLING:  # elsewhere, or in the thread that feeds a queue
            pairs[one] = near or (able if nowhere else [])
            continue
        if one.kind is Kind.GPU_ERROR:  # what it says is not known: only its place tells
            pairs[one] = [finding for finding in able if stands(effects(finding), one.use)]
            continue
        if nowhere and (named := [finding for finding in able if _names_what_is_missing(finding, one.text)]):
            pairs[one] = named
            continue
        told_by_code = able if nowhere else [finding for finding in able if effects(finding)]
        elsewhere = nowhere and _SPEAKS_OF_GPUS.search(one.text) is None  # a launcher says that its child failed
        unclear = one.kind is Kind.EXCEPTION and (elsewhere or len(told_by_code) > 1)
        pairs[one] = near or ([] if unclear else told_by_code)
    return pairs


def _names_what_is_missing(finding: Finding, text: str) -> bool:
    """Whether a finding is about the very function that a fresh process did not find."""
    missing = _MISSING.search(text)
    return missing is not None and re.search(rf"\b{missing[1] or missing[2]}\b", finding.message) is not None


def _is_near(violation: Violation, reach: _Reach) -> bool:
    """What the thread that feeds a queue could not pickle may be of any place, but of none that was not reached."""
    return violation.kind is not Kind.PICKLING or bool(own(violation.use)) or reach is not _Reach.NO


def _ran(finding: Finding, violation: Violation) -> bool:
    """Whether what was seen happened in the code that the finding says its worker runs."""
    if not effects(finding) or not own(violation.use):
        return True
    return stands([*effects(finding), *places(finding)], violation.use)


def _reach(finding: Finding, found: Sequence[Violation], journal: Journal) -> _Reach:
    spans = places(finding)
    stacks = [event.stack for event in journal.events] + [violation.use for violation in found]
    reached = {(event.values[0], int(event.kind.split()[1])) for event in journal.events if " " in event.kind}
    passed = any(place in reached for span in spans for place in lines(span))
    if passed or any(stands(spans, stack) for stack in stacks):
        return _Reach.YES
    if any(event.kind == "looks" for event in journal.events):
        return _Reach.NO
    return _Reach.NEAR if any(surrounds(spans, stack) for stack in stacks) else _Reach.NO


def _not_entered(run: Run, journal: Journal) -> Iterator[str]:
    """Python processes that left no note: the probe comes by the environment, and -I, -S and -E leave it out."""
    for pid, words in run.seen.items():
        program = os.path.basename(words.split(" ")[0])
        if pid not in journal.entered and program.startswith("python"):
            yield words
