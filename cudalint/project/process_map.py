"""The processes of a program as a tree: who starts whom, what crosses, who touches CUDA first, where it breaks."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import reduce
from typing import TypeAlias

from cudalint.finding import Finding, Span, StepKind
from cudalint.machine.outcome import Outcome
from cudalint.machine.started import Crossing, Deed, Done, ProcessKey, ProcessRecord, Started, workers
from cudalint.machine.trace import Site
from cudalint.structs import Frozen, Mutable, Partly, field, replace
from cudalint.text.source import Cells

# The rows of files as their authors see them, by path, and where those of notebooks are.
Texts: TypeAlias = Mapping[str, tuple[Sequence[str], Cells | None]]

# Of a call that stands in many rows, a reader needs no more.
MOST_ROWS = 6


class Begins(Enum):
    """What begins the first process of a tree."""

    PROGRAM = "program"
    COMMAND = "command"
    SERVER = "server"
    TEST = "test"
    CALLER = "caller"


class Place(Partly):
    """A place in a file or a cell, and the rows that it takes there; none where the text does not show it."""

    filename: str
    row: int
    column: int
    rows: tuple[str, ...] = ()
    cell: int | None = None

    def compared(self) -> Hashable:
        """Where it is, and not what the text says there."""
        return self.filename, self.row, self.column, self.cell


class Event(Frozen):
    """Something that a process does to CUDA or to processes, and where."""

    deed: Deed
    message: str
    detail: str
    place: Place | None
    in_thread: bool = False


class Function(Frozen):
    """What a worker runs: a call of a function, or an object; ``prepares``: it runs before the work."""

    name: str
    prepares: bool
    place: Place | None


class Carried(Frozen):
    """What reaches a worker under one name: its alternatives; ``device`` is empty unless they lie on a GPU."""

    name: str
    what: tuple[str, ...]
    device: str
    pickled: bool
    origin: Place | None


class Variable(Frozen):
    """A variable of the environment that the program or a launcher set; ``value`` is None where it is not known."""

    name: str
    value: str | None


class Launch(Frozen):
    """How a process is started: an edge of the tree.

    ``method`` is the start method, ``condition`` says when it is used, ``explicit`` that the program names it.
    ``count`` is the number of workers where the code shows it; else ``many`` says whether there may be several, and
    ``again`` whether it is made again with other values.
    ``at`` are the places that start workers or hand work to them, ``made`` is where their launcher was made,
    ``settled`` where the start method was chosen. ``before`` is the use of CUDA in the parent that the launch comes
    after.
    """

    launcher: str
    library: str
    method: str
    certain: bool
    explicit: bool
    condition: str | None
    count: int | None
    many: bool
    adds_up: bool
    again: bool
    reused: bool
    daemon: bool
    at: tuple[Place, ...]
    made: Place | None
    settled: Place | None
    runs: tuple[Function, ...]
    carries: tuple[Carried, ...]
    environment: tuple[Variable, ...]
    before: Event | None

    @property
    def forks(self) -> bool:
        """Whether the child is a copy of its parent."""
        return self.method == "fork"

    @property
    def workers(self) -> str:
        """How many processes it starts, in words."""
        return workers(self.count, self.many or self.adds_up, self.again)


class Harm(Frozen):
    """A finding, with its place and those of its causes and effects; ``known``: a baseline holds it."""

    finding: Finding
    place: Place
    causes: tuple[tuple[str, Place], ...] = ()
    effects: tuple[tuple[str, Place], ...] = ()
    known: bool = False


class ProcessNode(Frozen):
    """A process, or several that do the same; ``launch`` is None of the first one of a program.

    ``harmed`` is what goes wrong in it, or in starting it.
    """

    label: str
    launch: Launch | None
    events: tuple[Event, ...]
    harmed: tuple[Harm, ...]
    children: tuple[ProcessNode, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether it starts no other and nothing goes wrong in it."""
        return not self.children and not self.harmed

    def all(self) -> Iterator[ProcessNode]:
        """The process and all that come from it, parents first."""
        yield self
        for child in self.children:
            yield from child.all()


class Tree(Frozen):
    """The processes that begin with one entry of the program.

    ``names`` are those of all entries that look the same; an empty one stands for the import of a module.
    """

    begins: Begins
    names: tuple[str, ...]
    filename: str
    process: ProcessNode


class Lack(Frozen):
    """Something that the map may lack: because of a file that could not be read, or a bound that cut an entry in it."""

    filename: str | None
    message: str


class ProcessMap(Frozen):
    """All trees, and what they may lack."""

    trees: tuple[Tree, ...]
    lacks: tuple[Lack, ...] = ()


class Mapped(Frozen):
    """What the machine noted of one entry; ``owner``, ``label`` and ``main`` name it as the analysis does."""

    owner: str
    label: str
    main: str
    begins: Begins
    filename: str
    record: ProcessRecord


def sites(records: Iterable[ProcessRecord]) -> Iterator[Site]:
    """The places that a map names."""
    for record in records:
        for started in record.launches.values():
            yield from _sites_of(started)
        for deeds in record.deeds.values():
            yield from (done.step.site for done in deeds)


def _sites_of(started: Started) -> Iterator[Site]:
    yield from (started.at, started.made)
    steps = (started.before, *(crossing.origin for crossing in started.crossings))
    optional = (started.settled, *(work.site for work in started.runs), *(s.site for s in steps if s is not None))
    yield from (site for site in optional if site is not None)


def trees(
    mapped: Iterable[Mapped],
    findings: Mapping[Finding, Outcome],
    shown_by: Mapping[Finding, Collection[tuple[str, str]]],
    spans: Mapping[Site, Span],
    texts: Texts,
    known: Collection[Finding] = (),
) -> tuple[Tree, ...]:
    """The trees of entries in which anything happens, where some of the findings are ``known`` to a baseline."""
    found: dict[tuple[Begins, str, ProcessNode], list[str]] = {}
    for one in mapped:
        entry = (one.owner, one.label)
        harms = {finding: outcome for finding, outcome in findings.items() if entry in shown_by[finding]}
        process = _Builder(one.record, harms, _Places(spans, texts), known).first()
        if process.children or process.events or process.harmed:
            names = found.setdefault((one.begins, one.filename, process), [])
            name = "" if one.label in (one.owner, one.main) else one.label
            if name not in names:
                names.append(name)
    return tuple(Tree(begins, tuple(names), path, process) for (begins, path, process), names in found.items())


class _Places(Frozen):
    spans: Mapping[Site, Span]
    texts: Texts

    def at(self, site: Site | None) -> Place | None:
        span = None if site is None else self.spans.get(site)
        return None if span is None else self.of(span)

    def of(self, span: Span) -> Place:
        rows, cells = self.texts.get(span.filename, ((), None))
        first, last = span.start.row, min(span.end.row, span.start.row + MOST_ROWS - 1)
        shown = tuple(rows[first - 1 : last])
        if cells is None:
            return Place(span.filename, first, span.start.column, shown)
        cell, row = cells.place(first)
        column = 1 if first in cells.replaced else span.start.column
        return Place(cells.notebook, row, column, shown, cell)

    def definition(self, site: Site | None) -> Place | None:
        """The place of a function: of its text the first row is enough."""
        place = self.at(site)
        return None if place is None else replace(place, rows=place.rows[:1])


class _Builder(Mutable):
    record: ProcessRecord
    findings: Mapping[Finding, Outcome]
    places: _Places
    known: Collection[Finding] = ()
    _placed: set[Finding] = field(default_factory=set)

    def first(self) -> ProcessNode:
        """The process that the entry begins in, with all findings that no other process takes."""
        key = ProcessKey(("main",), "")
        children = tuple(self._children(frozenset({key})))
        rest = tuple(finding for finding in self.findings if finding not in self._placed)
        label = "main process"
        return ProcessNode(label, None, self._events((key,)), self._in_order(rest), children)

    def _children(self, parents: frozenset[ProcessKey]) -> Iterator[ProcessNode]:
        """The processes that some start, who are one in the map: workers of one launcher are the same ones."""
        groups: dict[tuple[Site, str, str | None], list[Started]] = {}
        for started in self.record.launches.values():
            if started.parent in parents:
                groups.setdefault((started.made, started.method, started.condition), []).append(started)
        for group in groups.values():
            keys = tuple(dict.fromkeys(started.child for started in group))
            yield ProcessNode(
                label=group[0].label,
                launch=self._launch(group),
                events=self._events(keys),
                harmed=self._harms(group),
                children=tuple(self._children(frozenset(keys))),
            )

    def _launch(self, group: list[Started]) -> Launch:
        one = reduce(Started.joined, group)
        at = self.places.at
        return Launch(
            launcher=_launcher(group),
            library=one.library,
            method=one.method,
            certain=one.certain,
            explicit=one.explicit,
            condition=one.condition,
            count=one.count,
            many=one.many,
            adds_up=one.adds_up,
            again=any(started.again for started in group),
            reused=one.reused,
            daemon=one.daemon,
            at=tuple(p for site in dict.fromkeys(s.at for s in group) if (p := at(site)) is not None),
            made=at(one.made),
            settled=at(one.settled),
            runs=tuple(Function(w.name, w.prepares, self.places.definition(w.site)) for w in one.runs),
            carries=tuple(self._carried(one.crossings)),
            environment=tuple(Variable(name, value) for name, value in one.environment),
            before=None if one.before is None else self._event(Done(Deed.DRIVER, one.before)),
        )

    def _carried(self, crossings: Iterable[Crossing]) -> Iterator[Carried]:
        alike: dict[tuple[str, str, bool], list[Crossing]] = {}
        for crossing in crossings:
            alike.setdefault((crossing.name, crossing.device, crossing.pickled), []).append(crossing)
        for (name, device, pickled), group in alike.items():
            origin = next((c.origin.site for c in group if c.origin is not None), None)
            what = tuple(dict.fromkeys(c.what for c in group))
            yield Carried(name, what, device, pickled, self.places.at(origin))

    def _events(self, keys: Iterable[ProcessKey]) -> tuple[Event, ...]:
        deeds = [done for key in keys for done in self.record.deeds.get(key, {})]
        return tuple(dict.fromkeys(self._event(done) for done in _first_of_each(deeds)))

    def _event(self, done: Done) -> Event:
        return Event(done.deed, done.step.message, done.detail, self.places.at(done.step.site), done.in_thread)

    def _harms(self, group: list[Started]) -> tuple[Harm, ...]:
        """The findings about these launches; where one holds under a condition, only of those that share it."""
        anchors = frozenset(anchor for started in group for anchor in started.anchors)
        condition = group[0].condition
        found = []
        for finding, outcome in self.findings.items():
            if outcome.within not in anchors:
                continue
            self._placed.add(finding)
            if outcome.condition is None or condition is None or outcome.condition == condition:
                found.append(finding)
        return self._in_order(found)

    def _in_order(self, findings: Iterable[Finding]) -> tuple[Harm, ...]:
        return tuple(self._harm(finding) for finding in sorted(findings, key=lambda finding: finding.sort_key))

    def _harm(self, finding: Finding) -> Harm:
        return Harm(
            finding,
            self.places.of(finding.span),
            tuple(self._ends(finding, StepKind.CAUSE)),
            tuple(self._ends(finding, StepKind.EFFECT)),
            finding in self.known,
        )

    def _ends(self, finding: Finding, kind: StepKind) -> Iterator[tuple[str, Place]]:
        for step in finding.trace:
            if step.kind is kind and step.span != finding.span:
                yield step.message, self.places.of(step.span)


def _launcher(group: Iterable[Started]) -> str:
    """What gives the workers work; what only makes them, where nothing does."""
    names = tuple(dict.fromkeys(started.launcher for started in group))
    giving = tuple(name for name in names if not name.endswith(")"))
    return ", ".join(giving or names)


def _first_of_each(deeds: Iterable[Done]) -> Iterator[Done]:
    """Each deed of a place once: what a second round does again is not another."""
    seen: set[tuple[Deed, Site]] = set()
    for done in deeds:
        if (done.deed, done.step.site) not in seen:
            seen.add((done.deed, done.step.site))
            yield done
