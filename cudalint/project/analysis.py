"""The analysis of a set of files: entries run on the machine, outcomes turned into findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from cudalint import disk
from cudalint.finding import Finding, Severity
from cudalint.ir.walk import functions
from cudalint.limits import DEFAULT, Limits
from cudalint.machine.inheritance.doubts import Inheritance
from cudalint.machine.interpreter import Host, Machine
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.shapes import Shape, Watcher, noted
from cudalint.machine.trace import Site
from cudalint.project.at_work import at_work
from cudalint.project.callers import Place
from cudalint.project.changes import renumbered, touched
from cudalint.project.cores import by_default
from cudalint.project.entering import Entering, entering
from cudalint.project.entries import candidates
from cudalint.project.entry_result import EntryResult
from cudalint.project.entry_store import EntryStore, identity
from cudalint.project.file_facts import KnownFacts
from cudalint.project.groups import Others
from cudalint.project.judging import findings_of, syntax_errors
from cudalint.project.machines import Entry, Inquiry
from cudalint.project.program import FileProgram
from cudalint.project.pythons import Hosts
from cudalint.project.reached import Reached
from cudalint.project.running import Runner
from cudalint.project.worker import Brief
from cudalint.project.workers import Workers
from cudalint.settings_files import SettingsFiles
from cudalint.store import Store
from cudalint.structs import Frozen, replace
from cudalint.text.lines import changed_rows
from cudalint.text.source import SourceFile


class Options(Frozen):
    """What decides the meaning of a program: Python versions in range, platform, extra models; how far it is looked.

    ``nearer`` are the versions of programs that begin below some folders, the innermost of these first.
    """

    target_versions: tuple[tuple[int, int], tuple[int, int]] = ((3, 10), (3, 13))
    platform: Literal["linux", "darwin", "win32"] = "linux"
    models: tuple[str, ...] = ()
    limits: Limits = DEFAULT
    nearer: tuple[tuple[str, tuple[tuple[int, int], tuple[int, int]]], ...] = ()


class Work(Frozen):
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


class Analysis(Frozen):
    """Findings, sorted; what they cost; what a bound cut off; and what repairs need to know of them.

    ``settings`` are the files of settings that programs read.
    """

    findings: tuple[Finding, ...]
    work: Work
    notes: tuple[str, ...]
    basis: Basis | None = None
    settings: SettingsFiles | None = None


class Basis(Frozen):
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

    def modules(self, finding: Finding) -> frozenset[str]:
        """The modules that the entries of a finding went through."""
        return frozenset(module for entry in self.entries[finding] for module, _ in self.entered.get(entry, ()))


# A repair is tried out by the entries that show what it is to repair, and by so many others that reach it: one in what
# half of a project runs would else be paid for with half of a run.
MOST_OTHERS = 8


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
    begun = entering(sources, options.models, root, store, known, about)
    return analyse_begun(begun, options, alone=alone, about=about, jobs=jobs)


@at_work
def analyse_begun(
    begun: Entering,
    options: Options,
    *,
    alone: bool = False,
    about: frozenset[str] | None = None,
    jobs: int | None = 1,
) -> Analysis:
    """``analyse`` of files of which it is known already what is entered."""
    files = begun.files
    kept = _kept(files, options, alone)
    names = None if about is None else frozenset(files.names[path] for path in about if path in files.names)
    with Workers(Brief.of(files, options.models, hosts(options)), _besides(jobs, alone)) as workers:
        analysis = _run(files, options, alone, begun.modules, kept=kept, about=names, others=workers)
        for news in workers.news():
            files.learn(news)
    files.keep()
    return analysis if not workers.lost else replace(analysis, notes=(*analysis.notes, _LOST))


_LOST = "a process that ran entries ended before its time; they ran in another one"


def _besides(jobs: int | None, alone: bool) -> int:
    """How many processes may run entries besides this one."""
    return 0 if alone else (by_default() if jobs is None else jobs) - 1


def _kept(files: FileProgram, options: Options, alone: bool, purpose: Iterable[str] = ()) -> EntryStore | None:
    """What entries gave in runs before; None where nothing is kept: what a clock ended another run may not end.

    ``purpose`` tells runs apart in which other entries run; it is asked for only where something is kept.
    """
    if files.store is None or options.limits.seconds is not None:
        return None
    return EntryStore(files, files.store, identity(files, *_decisive(options, alone), *purpose))


def _edits(files: FileProgram, changes: Mapping[str, str]) -> Iterator[str]:
    """What a change does to files, wherever in them it stands."""
    for path, text in sorted(changes.items()):
        before, after = files.sources[files.names[path]].text.splitlines(), text.splitlines()
        yield path
        for rows, new in changed_rows(before, after):
            yield repr((before[rows.start : rows.stop], list(new)))


def _decisive(options: Options, alone: bool) -> Iterator[str]:
    """What of the options decides what entries give."""
    yield repr((options.target_versions, options.platform, options.limits, options.nearer, alone))
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
    again |= _importing(basis, changed) if places is None and about.severity is not Severity.NOTE else set()
    owners = {owner for owner, _ in again}
    # What had entries may have them still; only of a module that had none the whole program is asked.
    fresh = changed - {owner for owner, _ in basis.entered}
    names = sorted(owners | changed - fresh | fresh.intersection(candidates(files) if fresh else ()))
    chosen = None if places is None else frozenset(again)
    skipped = _skipped(basis, names, chosen)
    left = _left(basis, names, skipped)
    kept = _kept(files, basis.options, basis.alone, chain(("again", about.code), _edits(basis.files, changes)))
    analysis = _run(files, basis.options, basis.alone, names, left, chosen, kept, skipped=skipped)
    files.keep_forms()
    untried = basis.untried | {entry for entry in left_out if chosen is not None or entry[0] not in names}
    completed = _completed(analysis.basis, basis, changed, about)
    return replace(analysis, basis=completed and replace(completed, untried=untried))


def _left_out(basis: Basis, again: set[Entry], changed: set[str], about: Finding) -> set[Entry]:
    """The entries of other modules that reach a change beyond the most that are run again, those with findings last.

    A note works as it stands, and what is offered for it is never safe: the cheapest entry that shows it will do.
    """
    showing = basis.entries.get(about, frozenset())
    if about.severity is Severity.NOTE:
        return again - set(sorted(showing, key=lambda entry: (len(basis.entered[entry]), entry))[:1])
    near = changed | {owner for owner, _ in showing}
    telling = frozenset(chain.from_iterable(basis.entries.values()))
    others = (entry for entry in again - showing if entry[0] not in near)
    return set(sorted(others, key=lambda entry: (entry not in telling, entry))[MOST_OTHERS:])


def _importing(basis: Basis, changed: set[str]) -> set[Entry]:
    """The first entries of modules that import changed ones: they may find there now what they lacked."""
    importers = {owner for name in changed for owner in basis.files.graph.importers.get(name, ())}
    return set(sorted(entry for entry in basis.entered if entry[0] in importers - changed)[:MOST_OTHERS])


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


def _skipped(basis: Basis, names: Iterable[str], chosen: frozenset[Entry] | None) -> frozenset[Entry]:
    """The entries that are not run again."""
    again = frozenset(names)
    return frozenset(e for e in basis.entered if e[0] not in again or (chosen is not None and e not in chosen))


def _left(basis: Basis, names: Iterable[str], skipped: frozenset[Entry]) -> set[Place]:
    """What the entries reach that are not run again: it is still reached.

    A function that ran with an unknown caller did so because none of its callers reached it: those that are run again
    may.
    """
    reached = {place for entry in skipped for place in basis.entered[entry]}
    again = frozenset(names)
    return reached.difference(_places(basis, (entry for entry in skipped if entry[0] in again)))


def _places(basis: Basis, entries: Iterable[Entry]) -> Iterator[Place]:
    """The functions that are entries."""
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for owner, label in entries:
        labels[owner].add(label)
    for owner, those in labels.items():
        module = basis.files.module(owner)
        for function in functions(module.body) if module is not None else ():
            if function.qualname in those:
                yield owner, function.ordinal


@at_work
def shapes(basis: Basis, about: Finding, places: frozenset[Site]) -> Mapping[Site, Shape]:
    """What expressions hold on the GPU, as the entries that show a finding evaluate them."""
    entries = basis.entries.get(about, frozenset())
    names = sorted({owner for owner, _ in entries})
    skipped = _skipped(basis, names, entries)
    left = _left(basis, names, skipped)
    runner = Runner(
        basis.files,
        hosts(basis.options),
        basis.alone,
        Reached(left),
        Inquiry(shaped=places),
        chosen=entries,
        skipped=skipped,
    )
    return noted(ran.machine for ran in runner.run(names) if isinstance(ran.machine, Watcher))


@at_work
def inherited(
    before: Basis,
    after: Basis,
    changes: Mapping[str, str],
    about: Finding,
    charge: Callable[[int], None],
    at_most: int | None = None,
    without_gpus: bool = False,
) -> tuple[Inheritance, ...]:
    """The doubts about fresh processes in a changed program, as all entries run it that the changes can matter to.

    ``changes`` are the new texts of files by path, ``before`` the program without them; ``charge`` is told the steps
    that were made, of which no entry makes more than ``at_most``. ``without_gpus``: as a machine runs it that has none.
    """
    changed = {before.files.names[path] for path in changes}
    places = _touched(before.files, changes)
    entries = {entry for entry, known in before.entered.items() if _reaches(known, changed, places)}
    entries |= before.entries.get(about, frozenset())
    owners = {owner for owner, _ in entries}
    names = [name for name in candidates(after.files) if name in owners]
    chosen = frozenset(entries)
    skipped = _skipped(after, names, chosen)
    left = _left(after, names, skipped)
    runner = Runner(
        after.files,
        hosts(after.options),
        after.alone,
        Reached(left),
        Inquiry(proves=True, without_gpus=without_gpus, at_most=at_most),
        chosen=chosen,
        skipped=skipped,
    )

    def machines() -> Iterator[Machine]:
        for ran in runner.run(names):
            yield ran.machine
            charge(ran.machine.steps)

    from cudalint.machine.inheritance.prover import combined  # most runs prove nothing

    return combined(machines())


def _run(
    files: FileProgram,
    options: Options,
    alone: bool,
    names: Iterable[str],
    entered: Iterable[Place] = (),
    chosen: frozenset[Entry] | None = None,
    kept: EntryStore | None = None,
    about: frozenset[str] | None = None,
    others: Others | None = None,
    skipped: frozenset[Entry] = frozenset(),
) -> Analysis:
    runner = Runner(
        files,
        hosts(options),
        alone,
        Reached(set(entered)),
        chosen=chosen,
        skipped=skipped,
        kept=kept,
        about=about,
        others=others,
    )
    analysis = gathered(files, options, alone, runner.results(names))
    return analysis if kept is None else replace(analysis, work=replace(analysis.work, kept=kept.taken))


def gathered(files: FileProgram, options: Options, alone: bool, results: Iterable[EntryResult]) -> Analysis:
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
    shown = findings_of(files, found)
    findings = [*shown, *syntax_errors(files)]
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
    ordered = tuple(sorted(findings, key=lambda f: f.sort_key))
    return Analysis(ordered, work, tuple(sorted(notes | files.notes)), basis, files.settings_files)


def hosts(options: Options) -> Hosts:
    """The Pythons and the platform that programs are taken to run on."""

    def host(lowest: tuple[int, int], highest: tuple[int, int]) -> Host:
        return Host(lowest, highest, options.platform, options.limits)

    nearer = tuple((folder, host(*versions)) for folder, versions in options.nearer)
    return Hosts(host(*options.target_versions), nearer)
