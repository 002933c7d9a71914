"""What entries gave, kept between runs: after an edit, only those run again that could see it.

The entries of one module are kept together. What they gave rests on the files that they asked for, on all that these
import, and on which files there are; it is taken from the store only where all of that says what it said
(``unchanged.py``), so that a run gives what a run without a store would give.
"""

from __future__ import annotations

import marshal
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cudalint import fingerprint
from cudalint.machine.assumptions import Assumption
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.machine.questions import Either
from cudalint.machine.trace import Site, TraceStep
from cudalint.project.callers import Callers, Place
from cudalint.project.derived import derived
from cudalint.project.program import MOST_BYTES, FileProgram
from cudalint.project.unchanged import Rests
from cudalint.store import Store

_KIND = "entries"


@dataclass(frozen=True, slots=True)
class EntryResult:
    """What one entry gave.

    ``owner`` is the module for whose sake it ran, ``label`` how its trace names it, ``main`` the module that its
    process began with. ``entered`` are the functions that it reached, ``cut`` the bound that ended it.
    """

    owner: str
    label: str
    main: str
    outcomes: tuple[Outcome, ...]
    entered: frozenset[Place]
    launches: Mapping[tuple[Site, str], Launched]
    steps: int
    cut: str | None


def identity(files: FileProgram, *decisive: str) -> str:
    """What distinguishes a program from all others for any of its entries, beside the contents of modules."""
    scripts = (name for name in files.sources if files.facts(name).guards_main)
    layout = (part for path in sorted(files.names) for part in (path, files.names[path]))
    commands = (part for command in sorted(files.commands) for part in command)
    starting = ("classes", *sorted(derived(files)), "imported", *sorted(files.importers))
    starting = (*starting, "given GPUs", *sorted(files.given_gpus))
    preloaded = (part for application in sorted(files.preloaded) for part in application)
    starting = (*starting, "preloaded", *preloaded)
    parts = ("layout", files.layout.top, *layout, "scripts", *sorted(scripts), "commands", *commands, *starting)
    return fingerprint.digest(fingerprint.analysis(), *decisive, *parts)


@dataclass(slots=True)
class EntryResults:
    """The kept results of one program under one configuration; ``about`` distinguishes it from all others.

    Results that rest on edited files are compared by what the run that kept them found out about these files.
    """

    files: FileProgram
    store: Store
    about: str
    # How many entries were not run again.
    taken: int = 0
    _rests: Rests = field(init=False)
    _found: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rests = Rests(self.files, self.store, Callers(self.files))

    def of(self, group: str, run: Iterator[EntryResult]) -> Iterator[EntryResult]:
        """What the entries of a group gave: kept from before, or as they give it now."""
        document = self._valid(group)
        if document is not None:
            self._remind(document)
            self.taken += len(document["results"])
            yield from map(from_row, document["results"])
            return
        made: list[EntryResult] = []
        for result in run:
            made.append(result)
            yield result
        reads = self.files.reads
        self._put(
            group,
            {
                "notes": sorted(reads.noted),
                "broken": sorted(name for name in reads.asked if self.files.is_broken(name)),
                "results": list(map(as_row, made)),
                "rest": self._rests.of(reads),
            },
        )

    def has(self, group: str) -> bool:
        """Whether what the entries of a group gave is kept from before."""
        return self._valid(group) is not None

    def _valid(self, group: str) -> dict[str, Any] | None:
        """What was kept of a group, where it would give the same again."""
        if group not in self._found:
            self._found[group] = self._kept(group)
        return self._found[group]

    def _kept(self, group: str) -> dict[str, Any] | None:
        kept = self.store.get(_KIND, self._key(group))
        document: dict[str, Any] | None = None if kept is None else marshal.loads(kept)
        if document is None:
            return None
        rest = document["rest"]
        if not self._rests.hold(rest, is_whole=self.files.known.are_whole(document["stamp"])):
            return None
        now = self._rests.renewed(rest)
        if now != rest:
            self._put(group, {**document, "rest": now})
        return document

    def _put(self, group: str, document: Mapping[str, Any]) -> None:
        self.store.put(_KIND, self._key(group), marshal.dumps({**document, "stamp": self.files.known.stamp()}))

    def _key(self, group: str) -> str:
        return fingerprint.digest(self.about, group)

    def _remind(self, document: Mapping[str, Any]) -> None:
        """What running the entries would have left with the program: notes, and files that cannot be parsed."""
        self.files.note(*document["notes"])
        for name in document["broken"]:
            self.files.begin(MOST_BYTES)
            self.files.module(name)


# -- as plain data ---------------------------------------------------------------------------------------------

_KINDS = {kind.name: kind for kind in Kind}
_DOUBTS = {doubt.name: doubt for doubt in Doubt}


def as_row(result: EntryResult) -> list[Any]:
    """What an entry gave, as ``marshal`` takes it."""
    return [
        result.owner,
        result.label,
        result.main,
        [_outcome_row(outcome) for outcome in result.outcomes],
        sorted(result.entered),
        [[_site_row(site), method, _launch_row(found)] for (site, method), found in result.launches.items()],
        result.steps,
        result.cut,
    ]


def from_row(row: list[Any]) -> EntryResult:
    """What an entry gave, from such a row."""
    owner, label, main, outcomes, entered, launches, steps, cut = row
    return EntryResult(
        owner,
        label,
        main,
        tuple(_outcome(found) for found in outcomes),
        frozenset((module, ordinal) for module, ordinal in entered),
        {(_site(site), method): _launch(found) for site, method, found in launches},
        steps,
        cut,
    )


def _site_row(site: Site | None) -> list[Any] | None:
    return None if site is None else [site.module, site.ordinal]


def _site(row: list[Any]) -> Site:
    return Site(row[0], row[1])


def _trace_rows(steps: Iterable[TraceStep]) -> list[list[Any]]:
    return [[step.site.module, step.site.ordinal, step.message, step.process] for step in steps]


def _trace_steps(rows: Iterable[list[Any]]) -> tuple[TraceStep, ...]:
    return tuple(TraceStep(Site(module, ordinal), message, process) for module, ordinal, message, process in rows)


def _outcome_row(outcome: Outcome) -> list[Any]:
    return [
        outcome.kind.name,
        _site_row(outcome.anchor),
        outcome.how,
        outcome.certain,
        outcome.assumed,
        _trace_rows(outcome.cause),
        _trace_rows(outcome.launch),
        _trace_rows(outcome.effect),
        outcome.caught,
        outcome.launcher,
        outcome.subject,
        outcome.detail,
        outcome.condition,
        None if outcome.doubt is None else outcome.doubt.name,
        outcome.in_test,
        _site_row(outcome.within),
        len(outcome.facts),
        len(outcome.choices),
        None if outcome.outside is None else len(outcome.outside),
        outcome.unsaid,
        outcome.outlived,
        outcome.chosen,
        outcome.benign,
        outcome.on_some_paths,
        outcome.number,
        [_assumption_row(found) for found in outcome.assumptions],
    ]


def _outcome(row: list[Any]) -> Outcome:
    kind, anchor, how, certain, assumed, cause, launch, effect, caught, launcher, subject, detail = row[:12]
    condition, doubt, in_test, within, facts, choices, outside, *flags = row[12:-1]
    unsaid, outlived, chosen, benign, on_some_paths, number = flags
    return Outcome(
        kind=_KINDS[kind],
        anchor=_site(anchor),
        how=how,
        certain=certain,
        assumed=assumed,
        cause=_trace_steps(cause),
        launch=_trace_steps(launch),
        effect=_trace_steps(effect),
        caught=caught,
        launcher=launcher,
        subject=subject,
        detail=detail,
        condition=condition,
        doubt=None if doubt is None else _DOUBTS[doubt],
        in_test=in_test,
        within=None if within is None else _site(within),
        # What was assumed has been weighed against other paths already; that something was is still asked.
        facts=_kept(facts),
        outside=None if outside is None else _kept(outside),
        choices=tuple(Either((("kept", i), True), (("kept", i), False)) for i in range(choices)),
        unsaid=unsaid,
        outlived=outlived,
        chosen=chosen,
        benign=benign,
        on_some_paths=on_some_paths,
        number=number,
        assumptions=tuple(map(_assumption, row[-1])),
    )


def _kept(count: int) -> tuple[tuple[Hashable, bool], ...]:
    """So many facts, of which nothing else is asked any more."""
    return tuple((("kept", i), True) for i in range(count))


def _assumption_row(found: Assumption) -> list[Any]:
    return [
        _subject_row(found.subject),
        found.holds,
        *([] if found.instead is None else [_assumption_row(found.instead)]),
    ]


def _assumption(row: list[Any]) -> Assumption:
    subject, holds = row[:2]
    return Assumption(_subject(subject), holds, _assumption(row[2]) if row[2:] else None)


def _subject_row(subject: str | Site) -> str | list[Any] | None:
    return subject if isinstance(subject, str) else _site_row(subject)


def _subject(row: str | list[Any]) -> str | Site:
    return row if isinstance(row, str) else _site(row)


def _launch_row(found: Launched) -> list[Any]:
    return [
        found.family,
        found.library,
        found.method,
        _site_row(found.made),
        _site_row(found.settled),
        found.unproven,
        [_site_row(site) for site in found.targets],
        found.keyword,
        found.place,
        [_site_row(site) for site in found.prepared],
        found.refused,
        found.held,
        found.ends,
    ]


def _launch(row: list[Any]) -> Launched:
    family, library, method, made, settled, unproven, targets, keyword, place, *rest = row
    prepared, refused, held, ends = rest
    return Launched(
        family,
        library,
        method,
        _site(made),
        None if settled is None else _site(settled),
        unproven,
        tuple(_site(site) for site in targets),
        keyword,
        place,
        tuple(_site(site) for site in prepared),
        refused,
        held,
        ends,
    )
