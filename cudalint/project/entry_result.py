"""What an entry gave, also as the plain data that ``marshal`` takes: for the store, and for the way between processes.

There a field is written as it is unless ``_OF_OUTCOMES`` or ``_OF_LAUNCHES`` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from cudalint.machine.assumptions import Assumption
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.machine.questions import Either
from cudalint.machine.trace import Site, TraceStep
from cudalint.project.callers import Place
from cudalint.structs import Frozen


class EntryResult(Frozen):
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


class _Form(Frozen):
    """How a field is written as plain data, and how it is read again."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def as_row(result: EntryResult) -> list[Any]:
    """What an entry gave, as ``marshal`` takes it."""
    return [
        result.owner,
        result.label,
        result.main,
        [_written(outcome, _OF_OUTCOMES) for outcome in result.outcomes],
        sorted(result.entered),
        [[*_site_row(site), method, _written(it, _OF_LAUNCHES)] for (site, method), it in result.launches.items()],
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
        tuple(Outcome(*_read(Outcome, found, _OF_OUTCOMES)) for found in outcomes),
        frozenset((module, ordinal) for module, ordinal in entered),
        {
            (Site(module, ordinal), method): Launched(*_read(Launched, found, _OF_LAUNCHES))
            for module, ordinal, method, found in launches
        },
        steps,
        cut,
    )


def _written(it: Outcome | Launched, forms: Mapping[str, _Form]) -> list[Any]:
    values = ((name, getattr(it, name)) for name in type(it).__struct_fields__)
    return [forms[name].write(value) if name in forms else value for name, value in values]


def _read(cls: type[Outcome | Launched], row: list[Any], forms: Mapping[str, _Form]) -> Iterable[Any]:
    """The values of the fields, in their order."""
    values = zip(cls.__struct_fields__, row, strict=True)
    return (forms[name].read(value) if name in forms else value for name, value in values)


def _site_row(site: Site) -> list[Any]:
    return [site.module, site.ordinal]


def _site(row: list[Any]) -> Site:
    return Site(row[0], row[1])


def _site_rows(sites: tuple[Site, ...]) -> list[list[Any]]:
    return [_site_row(site) for site in sites]


def _sites(rows: list[list[Any]]) -> tuple[Site, ...]:
    return tuple(_site(row) for row in rows)


def _trace_rows(steps: tuple[TraceStep, ...]) -> list[list[Any]]:
    return [[step.site.module, step.site.ordinal, step.message, step.process] for step in steps]


def _trace_steps(rows: list[list[Any]]) -> tuple[TraceStep, ...]:
    return tuple(TraceStep(Site(module, ordinal), message, process) for module, ordinal, message, process in rows)


def _kept(count: int) -> tuple[tuple[Hashable, bool], ...]:
    """So many facts: what was assumed has been weighed against other paths already; that something was is asked."""
    return tuple((("kept", i), True) for i in range(count))


def _kept_choices(count: int) -> tuple[Either, ...]:
    return tuple(Either((("kept", i), True), (("kept", i), False)) for i in range(count))


def _assumption_row(found: Assumption) -> list[Any]:
    subject = found.subject if isinstance(found.subject, str) else _site_row(found.subject)
    return [subject, found.holds, *([] if found.instead is None else [_assumption_row(found.instead)])]


def _assumption(row: list[Any]) -> Assumption:
    subject, holds, *instead = row
    return Assumption(
        subject if isinstance(subject, str) else _site(subject), holds, _assumption(instead[0]) if instead else None
    )


def _assumption_rows(found: tuple[Assumption, ...]) -> list[list[Any]]:
    return [_assumption_row(assumption) for assumption in found]


def _assumptions(rows: list[list[Any]]) -> tuple[Assumption, ...]:
    return tuple(_assumption(row) for row in rows)


def _name(it: Kind | Doubt) -> str:
    return it.name


def _optional(form: _Form) -> _Form:
    """The same where the field may be None."""
    return _Form(
        lambda value: None if value is None else form.write(value),
        lambda written: None if written is None else form.read(written),
    )


_SITE = _Form(_site_row, _site)
_SITES = _Form(_site_rows, _sites)
_TRACE = _Form(_trace_rows, _trace_steps)
_FACTS = _Form(len, _kept)
_OF_OUTCOMES = {
    "kind": _Form(_name, {kind.name: kind for kind in Kind}.__getitem__),
    "anchor": _SITE,
    "cause": _TRACE,
    "launch": _TRACE,
    "effect": _TRACE,
    "doubt": _optional(_Form(_name, {doubt.name: doubt for doubt in Doubt}.__getitem__)),
    "within": _optional(_SITE),
    "facts": _FACTS,
    "outside": _optional(_FACTS),
    "choices": _Form(len, _kept_choices),
    "assumptions": _Form(_assumption_rows, _assumptions),
}
_OF_LAUNCHES = {
    "made": _SITE,
    "settled": _optional(_SITE),
    "targets": _SITES,
    "prepared": _SITES,
}
