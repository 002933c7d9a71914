"""The analysis of a set of files: entries run on the machine, outcomes turned into findings."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Literal

from cudalint import disk
from cudalint.finding import Finding, Position, Severity, Span, Step, StepKind, at
from cudalint.ir.positions import all_spans
from cudalint.ir.stored import placed
from cudalint.limits import DEFAULT, Limits
from cudalint.machine.assumptions import Assumption, of_test
from cudalint.machine.inheritance.doubts import Inheritance
from cudalint.machine.inheritance.prover import combined
from cudalint.machine.interpreter import Host
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.machine.shapes import Shape, Watcher, noted
from cudalint.machine.started import ProcessRecord
from cudalint.machine.state import Process
from cudalint.machine.trace import Site, TraceStep
from cudalint.models.library import load
from cudalint.project.callers import Place
from cudalint.project.changes import renumbered, touched
from cudalint.project.cores import by_default
from cudalint.project.entries import candidates
from cudalint.project.entry_results import EntryResult, EntryResults, identity
from cudalint.project.file_facts import KnownFacts
from cudalint.project.near import near
from cudalint.project.process_map import Mapped, Tree, sites, trees
from cudalint.project.program import FileProgram, program
from cudalint.project.running import Entry, Others, Ran, Runner, at_work
from cudalint.project.seen import Seen
from cudalint.project.summary import summaries
from cudalint.project.worker import Brief
from cudalint.project.workers import Workers
from cudalint.rules import registry
from cudalint.rules.base import Rule
from cudalint.store import Store
from cudalint.text.lines import changed_rows, split_rows
from cudalint.text.source import SourceFile


@dataclass(frozen=True, slots=True)
class Options:
    """What decides the meaning of a program: Python versions in range, platform, extra models; how far it is looked."""

    target_versions: tuple[tuple[int, int], tuple[int, int]] = ((3, 10), (3, 13))
    platform: Literal["linux", "darwin", "win32"] = "linux"
    models: tuple[str, ...] = ()
    limits: Limits = DEFAULT


@dataclass(frozen=True, slots=True)
class Work:
    """What an analysis read and lowered, and what the machine did.

    ``functions`` are those that the entries entered, once for each entry; ``cut`` are the entries that a bound ended;
    ``steps`` were made in all of them. What ``kept`` entries gave is known from runs before.
    """

    files_read: int
    bytes_read: int
    files_parsed: int
    bytes_parsed: int
    nodes_lowered: int
    entries: int = 0
    steps: int = 0
    functions: int = 0
    cut: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Analysis:
    """Findings, sorted; what they cost; what a bound cut off; and what repairs need to know of them."""

    findings: tuple[Finding, ...]
    work: Work
    notes: tuple[str, ...]
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Basis:
    """What the machine saw behind the findings, from which a changed program is analysed again.

    ``entered`` holds the functions that each entry ran; ``entries`` are those that show a finding; ``cut`` those that
    a bound cut. ``untried`` are those that reach a change and were not run again, for they are many.
    """

    files: FileProgram
    options: Options
    alone: bool
    outcomes: Mapping[Finding, Outcome]
    entries: Mapping[Finding, frozenset[Entry]]
    entered: Mapping[Entry, frozenset[Place]]
    launches: Mapping[tuple[Site, str], Launched]
    cut: frozenset[Entry] = frozenset()
    untried: frozenset[Entry] = frozenset()


# A repair is tried out by the entries that show what it is to repair, and by so many others that reach it: one in what
# half of a project runs would else be paid for with half of a run.
MOST_OTHERS = 8
# Of one launch only the root cause is reported: the earlier kind wins.
_ROOTS: tuple[frozenset[Kind], ...] = (
    frozenset({Kind.METHOD_WITHOUT_EFFECT, Kind.METHOD_ALREADY_SET}),
    frozenset({Kind.CUDA_TO_FORK, Kind.UNPICKLABLE_CUDA, Kind.UNPICKLABLE_TARGET, Kind.FOREIGN_LOCK}),
    frozenset({Kind.IMPORTED_AGAIN}),
    frozenset({Kind.MISSING_GLOBAL}),
    frozenset({Kind.INHERITED_CUDA, Kind.INHERITED_IN_LOADER}),
    frozenset({Kind.DEFAULT_DEVICE_LOADER}),
    frozenset({Kind.CUDA_IN_FORK, Kind.CUDA_IN_LOADER_FORK, Kind.FORK_LAUNCHER, Kind.DAEMON_CHILD}),
    frozenset({Kind.RANK_WITHOUT_DEVICE, Kind.COLLECTIVE_BEFORE_DEVICE}),
    frozenset({Kind.VISIBLE_PER_TASK}),
    frozenset({Kind.CUDA_ACROSS, Kind.CUDA_THROUGH_JOBLIB}),
    frozenset({Kind.ALLOCATION_BEFORE_DEVICE}),
    frozenset({Kind.MEMORY_NOT_SHARED}),
    frozenset({Kind.SHARED_GPU}),
)
_ROOT_RANK = {kind: i for i, kinds in enumerate(_ROOTS) for kind in kinds}


@at_work
def analyse(
    sources: Sequence[SourceFile],
    options: Options,
    *,
    alone: bool = False,
    root: str | None = None,
    store: Store | None = None,
    about: frozenset[str] | None = None,
    jobs: int | None = 1,
    known: KnownFacts | None = None,
) -> Analysis:
    """Check files; ``alone`` for one file without its project: nothing is assumed of unseen callers.

    ``store`` keeps lowered files, and what entries gave, between runs. ``about`` are the paths of the files that a run
    is about, where these are not all: the others are context. ``jobs`` is how many processes may run entries, None for
    as many as there are cores; the result does not depend on it. ``known`` is what sorting the files found out.
    """
    files = program(sources, load(options.models), root, store, known)
    kept = _kept(files, options, alone)
    names = None if about is None else frozenset(files.names[path] for path in about if path in files.names)
    found = _candidates(files, about)
    with Workers(Brief.of(files, options.models, _host(options)), _besides(jobs, alone)) as workers:
        analysis = _run(files, options, alone, found, kept=kept, about=names, others=workers)
        for news in workers.news():
            files.learn(news)
    files.keep()
    return analysis if not workers.lost else replace(analysis, notes=(*analysis.notes, _LOST))


_LOST = "a process that ran entries ended before its time; they ran in another one"


def _besides(jobs: int | None, alone: bool) -> int:
    """How many processes may run entries besides this one."""
    return 0 if alone else (by_default() if jobs is None else jobs) - 1


def _candidates(files: FileProgram, about: frozenset[str] | None) -> list[str]:
    """The modules whose entries are run: of context, those that have to do with what the run is about."""
    if about is None or about >= files.names.keys():
        return candidates(files)
    return candidates(files, near(files, about))


def _kept(files: FileProgram, options: Options, alone: bool, purpose: Iterable[str] = ()) -> EntryResults | None:
    """What entries gave in runs before; None where nothing is kept: what a clock ended another run may not end.

    ``purpose`` tells runs apart in which other entries run; it is asked for only where something is kept.
    """
    if files.store is None or options.limits.seconds is not None:
        return None
    return EntryResults(files, files.store, identity(files, *_decisive(options, alone), *purpose))


def _edits(files: FileProgram, changes: Mapping[str, str]) -> Iterator[str]:
    """What a change does to files, wherever in them it stands."""
    for path, text in sorted(changes.items()):
        before, after = files.sources[files.names[path]].text.splitlines(), text.splitlines()
        yield path
        for rows, new in changed_rows(before, after):
            yield repr((before[rows.start : rows.stop], list(new)))


def _decisive(options: Options, alone: bool) -> Iterator[str]:
    """What of the options decides what entries give."""
    yield repr((options.target_versions, options.platform, options.limits, alone))
    for path in options.models:
        yield disk.read(path, disk.MOST_SETTINGS_BYTES).decode()


@at_work
def analyse_again(basis: Basis, changes: Mapping[str, str], about: Finding) -> Analysis:
    """Check a changed program: only the entries that show ``about`` or reach a change are run, and not too many.

    ``changes`` are the new texts of files by path.
    """
    changed = {basis.files.names[path] for path in changes}
    places = _touched(basis.files, changes)
    files = basis.files.changed(changes)
    again = {entry for entry, known in basis.entered.items() if _reaches(known, changed, places)}
    again |= basis.entries.get(about, frozenset())
    # What runs when tests are collected, all of them begin with.
    again |= {entry for entry in basis.entered if (entry[0], entry[0]) in again}
    again -= (left_out := _left_out(basis, again, changed, about))
    owners = {owner for owner, _ in again}
    # What had entries may have them still; only of a module that had none the whole program is asked.
    fresh = changed - {owner for owner, _ in basis.entered}
    names = sorted(owners | changed - fresh | fresh.intersection(candidates(files) if fresh else ()))
    chosen = None if places is None else frozenset(again)
    left = _left(basis, names, chosen)
    kept = _kept(files, basis.options, basis.alone, chain(("again", about.code), _edits(basis.files, changes)))
    analysis = _run(files, basis.options, basis.alone, names, left, chosen, kept)
    files.keep_forms()
    untried = basis.untried | {entry for entry in left_out if chosen is not None or entry[0] not in names}
    completed = _completed(analysis.basis, basis, changed, about)
    return replace(analysis, basis=completed and replace(completed, untried=untried))


def _left_out(basis: Basis, again: set[Entry], changed: set[str], about: Finding) -> set[Entry]:
    """The entries of other modules that reach a change beyond the most that are run again, those with findings last."""
    showing = basis.entries.get(about, frozenset())
    near = changed | {owner for owner, _ in showing}
    telling = frozenset(chain.from_iterable(basis.entries.values()))
    others = (entry for entry in again if entry[0] not in near)
    return set(sorted(others, key=lambda entry: (entry not in telling, entry))[MOST_OTHERS:])


def _completed(new: Basis | None, old: Basis, changed: set[str], about: Finding) -> Basis | None:
    """The basis of a changed program, with what is known of the entries that were not run again."""
    if new is None:
        return None
    ordinals = {name: renumbered(old.files.module(name), new.files.module(name)) for name in changed}
    entered = {
        entry: frozenset(
            (module, ordinal if module not in changed else ordinals[module][ordinal])
            for module, ordinal in places
            if module not in changed or ordinal in ordinals[module]
        )
        for entry, places in old.entered.items()
    }
    entries = {**new.entries, about: old.entries.get(about, frozenset())}
    cut = new.cut | (old.cut - new.entered.keys())
    return replace(new, entered={**entered, **new.entered}, entries=entries, cut=cut)


def _touched(files: FileProgram, changes: Mapping[str, str]) -> frozenset[Place] | None:
    """The functions that the changes lie in; None where they may mean more."""
    found: set[Place] = set()
    for path, text in changes.items():
        module = files.module(files.names[path])
        places = None if module is None else touched(files.sources[module.name].text, text, module)
        if places is None:
            return None
        found |= places
    return frozenset(found)


def _reaches(places: frozenset[Place], changed: set[str], touched: frozenset[Place] | None) -> bool:
    if touched is not None:
        return not touched.isdisjoint(places)
    return any(module in changed for module, _ in places)


def _left(basis: Basis, names: Iterable[str], chosen: frozenset[Entry] | None) -> set[Place]:
    """What the entries reach that are not run again: it is still reached."""
    again = frozenset(names)
    return {
        place
        for entry, places in basis.entered.items()
        if entry[0] not in again or (chosen is not None and entry not in chosen)
        for place in places
    }


@at_work
def shapes(basis: Basis, about: Finding, places: frozenset[Site]) -> Mapping[Site, Shape]:
    """What expressions hold on the GPU, as the entries that show a finding evaluate them."""
    entries = basis.entries.get(about, frozenset())
    names = sorted({owner for owner, _ in entries})
    left = _left(basis, names, entries)
    runner = Runner(basis.files, _host(basis.options), basis.alone, left, shaped=places, chosen=entries)
    return noted(ran.machine for ran in runner.run(names) if isinstance(ran.machine, Watcher))


@at_work
def inherited(before: Basis, after: Basis, changes: Mapping[str, str], about: Finding) -> tuple[Inheritance, ...]:
    """The doubts about fresh processes in a changed program, as all entries run it that the changes can matter to.

    ``changes`` are the new texts of files by path, ``before`` the program without them.
    """
    changed = {before.files.names[path] for path in changes}
    places = _touched(before.files, changes)
    entries = {entry for entry, known in before.entered.items() if _reaches(known, changed, places)}
    entries |= before.entries.get(about, frozenset())
    owners = {owner for owner, _ in entries}
    names = [name for name in candidates(after.files) if name in owners]
    chosen = frozenset(entries)
    left = _left(after, names, chosen)
    runner = Runner(after.files, _host(after.options), after.alone, left, chosen=chosen, proves=True)
    return combined(ran.machine for ran in runner.run(names))


def _run(
    files: FileProgram,
    options: Options,
    alone: bool,
    names: Iterable[str],
    entered: Iterable[Place] = (),
    chosen: frozenset[Entry] | None = None,
    kept: EntryResults | None = None,
    about: frozenset[str] | None = None,
    others: Others | None = None,
) -> Analysis:
    runner = Runner(files, _host(options), alone, set(entered), chosen=chosen, kept=kept, about=about, others=others)
    analysis = _gathered(files, options, alone, runner.results(names))
    return analysis if kept is None else replace(analysis, work=replace(analysis.work, kept=kept.taken))


def _gathered(files: FileProgram, options: Options, alone: bool, results: Iterable[EntryResult]) -> Analysis:
    """What entries show together."""
    found: list[Outcome] = []
    notes: set[str] = set()
    shown_by: dict[tuple[Kind, Site], set[Entry]] = {}
    places: dict[Entry, set[Place]] = {}
    launches: dict[tuple[Site, str], Launched] = {}
    cut: set[Entry] = set()
    entries = steps = functions = 0
    for result in results:
        entry = (result.owner, result.label)
        entries += 1
        steps += result.steps
        functions += len(result.entered)
        found.extend(result.outcomes)
        for outcome in result.outcomes:
            shown_by.setdefault((outcome.kind, outcome.anchor), set()).add(entry)
        places.setdefault(entry, set()).update(result.entered)
        launches.update(result.launches)
        if result.cut is not None:
            cut.add(entry)
            notes.add(f"{files.sources[result.main].path}: cut off: {result.cut}")
    # Of several entries one may go on.
    outlived = {o.within for o in found if o.outlived}
    found = [replace(o, outlived=o.within in outlived) for o in found]
    shown = _findings(files, found)
    findings = [*shown, *_syntax_errors(files)]
    work = Work(
        len(files.sources),
        sum(len(s.data) for s in files.sources.values()),
        files.files_parsed,
        files.bytes_parsed,
        files.nodes,
        entries,
        steps,
        functions,
        len(cut),
    )
    basis = Basis(
        files,
        options,
        alone,
        shown,
        {finding: frozenset(shown_by[outcome.kind, outcome.anchor]) for finding, outcome in shown.items()},
        {entry: frozenset(known) for entry, known in places.items()},
        launches,
        frozenset(cut),
    )
    return Analysis(tuple(sorted(findings, key=lambda f: f.sort_key)), work, tuple(sorted(notes | files.notes)), basis)


def _host(options: Options) -> Host:
    lowest, highest = options.target_versions
    return Host(lowest, highest, options.platform, options.limits)


# -- findings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judged:
    rule: Rule
    severity: Severity
    outcome: Outcome

    def resting_on(self, assumed: Iterable[Assumption]) -> _Judged:
        """The same, with what all paths assume that show it."""
        return replace(self, outcome=replace(self.outcome, assumptions=tuple(assumed)))


# A condition with more parts is not read.
MOST_ASSUMPTIONS = 2
LONGEST_EXPRESSION = 60


def _findings(files: FileProgram, outcomes: Iterable[Outcome]) -> dict[Finding, Outcome]:
    rules = registry()
    best: dict[tuple[str, Site], _Judged] = {}
    assumed: dict[tuple[Kind, Site], list[Assumption]] = {}
    for outcome in _root_causes(outcomes):
        # It rests on what is assumed wherever it shows.
        common = assumed.setdefault((outcome.kind, outcome.anchor), list(outcome.assumptions))
        common[:] = [assumption for assumption in common if assumption in outcome.assumptions]
        for rule in rules.values():
            if outcome.kind not in rule.outcomes:
                continue
            severity = rule.grade(outcome)
            if severity is None:
                continue
            judged = _Judged(rule, severity, outcome)
            key = (rule.code, outcome.anchor)
            known = best.get(key)
            if known is None or _better(judged, known):
                best[key] = judged
    kept = _quiet_siblings(best)
    kept = [j.resting_on(assumed[j.outcome.kind, j.outcome.anchor][:MOST_ASSUMPTIONS]) for j in kept]
    places = _places(files, [j.outcome for j in kept])
    return {_finding(files, j, places): j.outcome for j in kept if j.outcome.anchor in places}


def _condition(files: FileProgram, outcome: Outcome, places: Mapping[Site, Span]) -> str | None:
    """When it is true: by the versions of Python that decide on it, and by what its paths assume."""
    said = [_assumption(files, outcome, found, places) for found in outcome.assumptions]
    assumed = " and ".join(dict.fromkeys(words for words in said if words is not None))
    parts = (outcome.condition, f"if {assumed}" if assumed else None)
    return ", ".join(part for part in parts if part is not None) or None


def _assumption(files: FileProgram, outcome: Outcome, found: Assumption, places: Mapping[Site, Span]) -> str | None:
    if isinstance(found.subject, str):
        return f"{found.subject} {found.holds}"
    span = places.get(found.subject)
    if span is None:
        return None
    text = _written(files, found.subject, span)
    if text is None:
        near = found.subject.module == outcome.anchor.module
        where = "" if near else f" of {os.path.basename(span.filename)}"
        return f"what is asked in line {span.start.row}{where} {found.holds}"
    return of_test(text, found.holds)


def _written(files: FileProgram, site: Site, span: Span) -> str | None:
    """An expression as it is written; None where that would be long."""
    if span.start.row != span.end.row:
        return None
    row = split_rows(files.sources[site.module].text)[span.start.row - 1]
    text = row[span.start.column - 1 : span.end.column - 1]
    return text if len(text) <= LONGEST_EXPRESSION and text.isprintable() and "`" not in text else None


def _better(new: _Judged, old: _Judged) -> bool:
    if new.severity is not old.severity:
        return new.severity.rank > old.severity.rank
    return new.outcome.length < old.outcome.length


def _quiet_siblings(best: dict[tuple[str, Site], _Judged]) -> list[_Judged]:
    """CUD102 is dropped where CUD101 is reported, CUD501 where a collective in between is."""
    result: list[_Judged] = []
    for (code, anchor), judged in best.items():
        if code == "CUD102" and ("CUD101", anchor) in best:
            continue
        result.append(judged)
    return result


def _root_causes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Of one launch only the root cause is reported, for each start method that the Python versions give it."""
    given = list(outcomes)
    first: dict[tuple[Site, str | None, bool], int] = {}
    for outcome in given:
        rank = _ROOT_RANK.get(outcome.kind)
        if rank is not None and outcome.within is not None:
            key = (outcome.within, outcome.condition, outcome.doubt is Doubt.MISSING)
            first[key] = min(first.get(key, rank), rank)
    groups = {o.within for o in given if o.kind in _AFTER_GROUP}
    given = _first_again(_first_guesses(given))
    result: list[Outcome] = []
    for outcome in given:
        rank = _ROOT_RANK.get(outcome.kind)
        if rank is not None and outcome.within is not None:
            whens = product((outcome.condition, None), (outcome.doubt is Doubt.MISSING, False))
            if rank > min(first.get((outcome.within, *when), rank) for when in whens):
                continue
        if outcome.kind is Kind.INIT_BEFORE_DEVICE and outcome.within in groups:
            continue
        result.append(outcome)
    return result


def _first_guesses(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of the barriers of one process group that guess their GPU only one: after the first it is settled."""
    first: dict[Site, Outcome] = {}
    for outcome in outcomes:
        if outcome.kind in _GUESSES:
            made = outcome.cause[-1].site
            first[made] = min(first.get(made, outcome), outcome, key=_guess_order)
    anchors = {outcome.anchor for outcome in first.values()}
    return [o for o in outcomes if o.kind not in _GUESSES or o.anchor in anchors]


def _first_again(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of what the children of one launch run again while they import main only one: it ends them."""
    first: dict[tuple[Site, str | None], Outcome] = {}
    for outcome in outcomes:
        if outcome.kind is Kind.IMPORTED_AGAIN and outcome.launch:
            launch = outcome.launch[-1].site, outcome.condition
            first[launch] = min(first.get(launch, outcome), outcome, key=_again_order)
    kept = {outcome.anchor for outcome in first.values()}
    return [o for o in outcomes if o.kind is not Kind.IMPORTED_AGAIN or not o.launch or o.anchor in kept]


def _again_order(outcome: Outcome) -> tuple[bool, int, str, int]:
    return not outcome.certain, len(outcome.effect), outcome.anchor.module, outcome.anchor.ordinal


def _guess_order(outcome: Outcome) -> tuple[bool, int, str, int]:
    return outcome.benign, outcome.length, outcome.anchor.module, outcome.anchor.ordinal


_GUESSES = frozenset({Kind.BARRIER_BEFORE_DEVICE, Kind.BARRIER_GUESSES})
_AFTER_GROUP = frozenset({Kind.COLLECTIVE_BEFORE_DEVICE, Kind.RANK_WITHOUT_DEVICE, Kind.BARRIER_BEFORE_DEVICE})


def _places(files: FileProgram, outcomes: Iterable[Outcome]) -> dict[Site, Span]:
    return _spans(files, (site for outcome in outcomes for site in _sites(outcome)))


def _sites(outcome: Outcome) -> Iterator[Site]:
    yield outcome.anchor
    for segment in (outcome.cause, outcome.launch, outcome.effect):
        yield from (step.site for step in _shown(segment))
    yield from (found.subject for found in outcome.assumptions if isinstance(found.subject, Site))


def _spans(files: FileProgram, sites: Iterable[Site]) -> dict[Site, Span]:
    """Where nodes stand; of those in no file, or with no place of their own, nothing."""
    wanted: dict[str, set[int]] = {}
    for site in sites:
        wanted.setdefault(site.module, set()).add(site.ordinal)
    result: dict[Site, Span] = {}
    for name, ordinals in wanted.items():
        source = files.sources.get(name)
        if source is None:
            continue
        known = files.places.setdefault(name, {})
        missing = ordinals - known.keys()
        if missing:
            try:
                found = placed(source.text, source.path, name, missing, files.store)
            except RecursionError:  # of Python 3.12, which bounds calls from C, without a way to ask for more
                files.too_deep(source)
                found = {}
            known.update({ordinal: found.get(ordinal) for ordinal in missing})
        result.update((Site(name, o), span) for o in ordinals if (span := known[o]) is not None)
    return result


def _finding(files: FileProgram, judged: _Judged, places: dict[Site, Span]) -> Finding:
    outcome = judged.outcome
    span = places[outcome.anchor]
    trace = (
        *_steps(outcome.cause, StepKind.CAUSE, places),
        *_steps(outcome.launch, StepKind.LAUNCH, places),
        *_steps(outcome.effect, StepKind.EFFECT, places),
    )
    return Finding(
        code=judged.rule.code,
        name=judged.rule.name,
        severity=judged.severity,
        message=judged.rule.message(outcome),
        span=span,
        trace=trace,
        outcome=outcome.how,
        condition=_condition(files, outcome, places),
        noqa_rows=(span.start.row, span.end.row),
    )


def _steps(steps: Sequence[TraceStep], kind: StepKind, places: dict[Site, Span]) -> Iterable[Step]:
    """The last step of a segment is what happens; those before lead to it."""
    shown = _shown(steps)
    for i, step in enumerate(shown):
        span = places.get(step.site)
        if span is None:
            continue
        step_kind = kind if i == len(shown) - 1 else StepKind.STEP
        yield Step(_first_line(span), step.message, step_kind, step.process)


# A reader needs no more of one segment, and each file that a trace touches is parsed again for its places.
MOST_TRACE_STEPS = 16


def _shown(steps: Sequence[TraceStep]) -> Sequence[TraceStep]:
    """A segment as it is shown: of a very long one the first steps, the last ones, and how many were between."""
    if len(steps) <= MOST_TRACE_STEPS:
        return steps
    half = MOST_TRACE_STEPS // 2
    after = steps[-half]
    left_out = len(steps) - MOST_TRACE_STEPS
    return (*steps[:half], replace(after, message=f"{left_out} calls later: {after.message}"), *steps[-half + 1 :])


def _first_line(span: Span) -> Span:
    if span.start.row == span.end.row:
        return span
    return replace(span, end=Position(span.start.row, span.start.column + 1))


def _syntax_errors(files: FileProgram) -> Iterable[Finding]:
    rule = registry()["CUD901"]
    for broken in files.broken:
        verb = "parse" if broken.row else "analyse"
        place = at(broken.source.path, broken.row, broken.column)
        yield Finding(rule.code, rule.name, rule.severity, f"cannot {verb} this file: {broken.reason}", place)


# -- explain -------------------------------------------------------------------------------------------------


def explain(
    sources: Sequence[SourceFile], options: Options, filename: str, row: int, store: Store | None = None
) -> list[str]:
    """The process states that the machine saw at a line, one line of text each."""
    files = program(sources, load(options.models), store=store)
    spans = _spans_of(files, filename)
    watched = frozenset(site for site, span in spans.items() if span.start.row == row)
    seen: list[Process] = []
    for ran in _watching(files, options, filename, watched):
        for states in ran.machine.record.processes.values():
            seen.extend(p for p in states if p not in seen)
    return [line for process in seen for line in _described(process)]


@at_work
def seen(sources: Sequence[SourceFile], options: Options, filename: str, store: Store | None = None) -> Seen:
    """The same of all lines of a file, and its launches."""
    files = program(sources, load(options.models), store=store)
    spans = _spans_of(files, filename)
    at: dict[Site, list[Process]] = {}
    methods: dict[Site, dict[str, set[str]]] = {}
    for ran in _watching(files, options, filename, frozenset(spans), maps=True):
        for site, states in ran.machine.record.processes.items():
            known = at.setdefault(site, [])
            known.extend(p for p in states if p not in known)
        for site, method in ran.machine.record.launches:
            if site in spans:
                methods.setdefault(site, {}).setdefault(method, set()).update(_workers(ran, site, method))
    rows: dict[int, list[Process]] = {}
    for site, states in at.items():
        known = rows.setdefault(spans[site].start.row, [])
        known.extend(p for p in states if p not in known)
    return Seen(
        {row: tuple(chain.from_iterable(_alike(states))) for row, states in rows.items() if states},
        tuple(
            (spans[site], _launch(files, found, _at(at, spans, site), filename))
            for site, found in sorted(methods.items())
        ),
    )


def _workers(ran: Ran, site: Site, method: str) -> Iterator[str]:
    """How many processes a launch starts."""
    record = ran.machine.record.processes_noted
    for started in () if record is None else record.launches.values():
        if started.method == method and (site == started.at or site in started.anchors):
            yield started.workers


def _alike(processes: Iterable[Process]) -> Iterable[tuple[str, ...]]:
    """What is said of processes, once where it is the same."""
    return dict.fromkeys(tuple(_described(process)) for process in processes)


def _spans_of(files: FileProgram, filename: str) -> Mapping[Site, Span]:
    """Where the nodes of a file stand; nothing for one that is none of the program, cannot be parsed or is too deep."""
    name = files.names.get(filename)
    if name is None or files.module(name) is None:
        return {}
    source = files.sources[name]
    try:
        found = all_spans(source.text, source.path, name)
    except RecursionError:
        found = {}
    return {Site(name, ordinal): span for ordinal, span in found.items()}


def _watching(
    files: FileProgram, options: Options, filename: str, watched: frozenset[Site], *, maps: bool = False
) -> Iterator[Ran]:
    """The entries that have to do with a file, run with an eye on some of its places; ``maps``: processes are noted."""
    if filename in files.names:
        names = _candidates(files, frozenset({filename})) or [files.names[filename]]
        yield from Runner(files, _host(options), watched=watched, maps=maps).run(names)


def _at(at: Mapping[Site, Sequence[Process]], spans: Mapping[Site, Span], site: Site) -> Sequence[Process]:
    """The processes that come to the innermost statement around a call."""
    place = spans[site]
    around = [one for one, states in at.items() if states and _holds(spans[one], place)]
    return at[max(around, key=lambda one: (spans[one].start, one.ordinal))] if around else ()


def _holds(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _launch(
    files: FileProgram, methods: Mapping[str, Collection[str]], processes: Sequence[Process], filename: str
) -> str:
    """How many processes are started and how, and whether the one that starts them has used CUDA."""
    counts = sorted({count for some in methods.values() for count in some})
    how = " or ".join(sorted(methods))
    if counts:
        how = f"{' or '.join(counts)} by {how}"
    used = {_place(files, p.driver.step.site, filename) for p in processes if p.driver is not None}
    if not used:
        return f"{how}; CUDA untouched before" if processes else how
    sometimes = " on some paths" if any(p.driver is None for p in processes) else ""
    return f"{how}; CUDA used before{sometimes}: {', '.join(sorted(used))}"


def _place(files: FileProgram, site: Site, filename: str) -> str:
    """A row in words: of a file, or of another one."""
    source = files.sources[site.module]
    span = placed(source.text, source.path, site.module, {site.ordinal}, files.store).get(site.ordinal)
    row = 1 if span is None else span.start.row
    cell, line = (None, row) if source.cells is None else source.cells.place(row)
    words = f"line {row}" if cell is None else f"cell {cell}:{line}"
    return words if source.path == filename else f"{os.path.basename(source.path)} {words}"


@at_work
def functions(
    sources: Sequence[SourceFile],
    options: Options,
    root: str | None = None,
    store: Store | None = None,
    about: frozenset[str] | None = None,
) -> list[str]:
    """What the machine saw each function do, in which process: whom it calls, what it does to CUDA and processes."""
    files = program(sources, load(options.models), root, store)
    ran = Runner(files, _host(options), listens=True).run(_candidates(files, about))
    return summaries(files, [step for one in ran for step in one.machine.record.trace_steps])


# -- maps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Processes:
    """What a run for a map gave: what goes wrong, as in any run, and what the machine noted of each entry."""

    analysis: Analysis
    mapped: tuple[Mapped, ...]

    def trees(self, shown: Mapping[Finding, Finding], known: Collection[Finding] = ()) -> tuple[Tree, ...]:
        """The trees of processes, with these findings, each as it is to be shown; some are ``known`` to a baseline."""
        basis = self.analysis.basis
        assert basis is not None
        findings = {shown[finding]: outcome for finding, outcome in basis.outcomes.items() if finding in shown}
        entries = {shown[finding]: by for finding, by in basis.entries.items() if finding in shown}
        spans = _spans(basis.files, sites(one.record for one in self.mapped))
        paths = {span.filename for span in spans.values()}
        paths.update(span.filename for finding in findings for span in (finding.span, *_steps_of(finding)))
        texts = {s.path: (split_rows(s.shown), s.cells) for s in basis.files.sources.values() if s.path in paths}
        return trees(self.mapped, findings, entries, spans, texts, frozenset(shown[one] for one in known))


def _steps_of(finding: Finding) -> Iterator[Span]:
    return (step.span for step in finding.trace)


@at_work
def processes(
    sources: Sequence[SourceFile],
    options: Options,
    root: str | None = None,
    store: Store | None = None,
    about: frozenset[str] | None = None,
) -> Processes:
    """Run the entries that have to do with some files, and note what their processes do."""
    files = program(sources, load(options.models), root, store)
    names = None if about is None else frozenset(files.names[path] for path in about if path in files.names)
    runner = Runner(files, _host(options), maps=True, about=names)
    mapped: list[Mapped] = []

    def results() -> Iterator[EntryResult]:
        for ran in runner.run(_candidates(files, about)):
            record = ran.machine.record.processes_noted
            if record is not None and (names is None or _concerns(ran, record, names)):
                main = ran.machine.main
                path = files.sources[main].path
                mapped.append(Mapped(ran.owner, ran.label, main, runner.begins(ran), path, record))
            yield ran.result()

    analysis = _gathered(files, options, alone=False, results=results())
    return Processes(analysis, tuple(mapped))


def _concerns(ran: Ran, record: ProcessRecord, names: frozenset[str]) -> bool:
    """Whether an entry belongs to some modules, or one of its processes does something in them."""
    if ran.owner in names or ran.machine.main in names:
        return True
    return not names.isdisjoint(site.module for site in sites((record,)))


def _described(process: Process) -> Iterable[str]:
    launch = process.launch
    how = "" if launch is None else f", started by {launch.launcher} ({launch.method})"
    yield f"{process.label}{how}{', called by nobody in sight' if process.unseen else ''}"
    if process.poison is not None:
        yield f"  the parent used CUDA before the fork: {process.poison.step.message}"
    if process.driver is None:
        yield "  CUDA: untouched in this process"
    else:
        names = ", ".join(n for n, _ in process.initialised)
        state = f"initialised by {names}" if names else "queried"
        yield f"  CUDA: {state}: {process.driver.step.message}"
    selected = process.device()
    if selected is not None:
        yield f"  device: {selected.index if isinstance(selected.index, int) else 'one per rank'} selected"
    for library, method in process.methods:
        if method.names is not None:
            yield f"  start method of {library}: {' or '.join(method.names)}"
        elif method.fixed is not None:
            yield f"  start method of {library}: settled as the default"
    if process.group is not None:
        yield f"  process group: {process.group.backend}"
    for name, _ in process.environment:
        yield f"  {name} is set by the program"
