"""What the machine believes of a program, for people: processes at a line, what functions do, trees of processes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from cudalint.finding import Finding, Span
from cudalint.ir.positions import all_spans
from cudalint.ir.stored import placed
from cudalint.machine.started import ProcessRecord
from cudalint.machine.state import Process
from cudalint.machine.trace import Site
from cudalint.models.library import load
from cudalint.project.analysis import Analysis, Options, gathered, hosts
from cudalint.project.assembling import program
from cudalint.project.at_work import at_work
from cudalint.project.entering import entered_modules
from cudalint.project.entry_result import EntryResult
from cudalint.project.judging import places_of
from cudalint.project.machines import Inquiry, Ran
from cudalint.project.process_map import Mapped, Tree, sites, trees
from cudalint.project.program import FileProgram
from cudalint.project.running import Runner
from cudalint.project.seen import Seen
from cudalint.project.summary import summaries
from cudalint.store import Store
from cudalint.structs import Frozen
from cudalint.text.lines import split_rows
from cudalint.text.source import SourceFile


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
    files.keep()
    return [line for described in _alike(seen) for line in described]


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
    files.keep()
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
        names = entered_modules(files, frozenset({filename})) or [files.names[filename]]
        yield from Runner(files, hosts(options), inquiry=Inquiry(watched=watched, maps=maps)).run(names)


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
    ran = Runner(files, hosts(options), inquiry=Inquiry(listens=True)).run(entered_modules(files, about))
    found = summaries(files, [step for one in ran for step in one.machine.record.trace_steps])
    files.keep()
    return found


class Processes(Frozen):
    """What a run for a map gave: what goes wrong, as in any run, and what the machine noted of each entry."""

    analysis: Analysis
    mapped: tuple[Mapped, ...]

    def trees(self, shown: Mapping[Finding, Finding], known: Collection[Finding] = ()) -> tuple[Tree, ...]:
        """The trees of processes, with these findings, each as it is to be shown; some are ``known`` to a baseline."""
        basis = self.analysis.basis
        assert basis is not None
        findings = {shown[finding]: outcome for finding, outcome in basis.outcomes.items() if finding in shown}
        entries = {shown[finding]: by for finding, by in basis.entries.items() if finding in shown}
        spans = places_of(basis.files, sites(one.record for one in self.mapped))
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
    runner = Runner(files, hosts(options), inquiry=Inquiry(maps=True), about=names)
    mapped: list[Mapped] = []

    def results() -> Iterator[EntryResult]:
        for ran in runner.run(entered_modules(files, about)):
            record = ran.machine.record.processes_noted
            if record is not None and (names is None or _concerns(ran, record, names)):
                main = ran.machine.main
                path = files.sources[main].path
                mapped.append(Mapped(ran.owner, ran.label, main, runner.begins(ran), path, record))
            yield ran.result()

    analysis = gathered(files, options, alone=False, results=results())
    files.keep()
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
    for framework, first in process.initialised:
        yield f"  CUDA: initialised by {framework}: {first.step.message}"
    # Chains are equal to each other, wherever they come from.
    if process.driver is not None and all(process.driver is not first for _, first in process.initialised):
        yield f"  CUDA: queried: {process.driver.step.message}"
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
