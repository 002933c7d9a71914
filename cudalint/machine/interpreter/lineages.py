"""Imports that many entries begin with: run once, for all processes that did nothing but import the same before.

A process of which that is true differs from another such process by what its main module made, and no import sees
that. So what an import did to one of them can be laid under what the main module of another one made.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

from cudalint.machine.assumptions import Asking, Facts
from cudalint.machine.heap import Object
from cudalint.machine.offers import Offer
from cudalint.machine.state import Layer, Lineage, Process, State
from cudalint.machine.trace import Site, TraceStep
from cudalint.machine.values import Unknown
from cudalint.structs import Frozen

# A main module that made more than this before its next import is taken as it comes.
MOST_OWN = 400
# Entries begin alike and go on differently: what comes later is run by each, within its own steps. The packages of a
# module are imported before anything of it runs: all modules in them have these in common.
MOST_NAMES, MOST_PACKAGES = 2, 8


class Imported(Frozen):
    """What an import did to a process that had only imported before.

    ``ways`` holds what it made and changed, once for each path that came out of it; ``entered`` are the functions that
    it ran, ``commands`` those that it registered for a library to call; ``cut`` is the bound that it met, ``asked`` are
    the questions on which its paths split, ``meeting`` the variables about the ranks' meeting that it saw or set,
    ``called_back`` the callbacks that were looked at, ``refused`` what the paths assumed that it ended. All chains of
    what it did begin with ``root``, in whose place an entry has the steps that led it to the import. ``neutral``: it
    asked its process for nothing and changed nothing in it, so that it does the same whatever became of the process
    otherwise.
    """

    root: TraceStep
    ways: tuple[Layer, ...]
    entered: frozenset[Site]
    commands: tuple[Site, ...]
    cut: str | None
    neutral: bool
    asked: Mapping[Hashable, Asking]
    reads_words: bool
    offers: Mapping[str, Offer]
    meeting: frozenset[str]
    called_back: frozenset[Site] = frozenset()
    refused: tuple[Facts, ...] = ()


class Importer(Protocol):
    """Runs imports aside, with steps that are charged to no entry."""

    def imported(self, name: str, base: Lineage, below: Layer | None) -> Imported | None:
        """What importing a module does after the imports of a lineage; None where more comes of it than objects."""


class Begun(Frozen):
    """How a path began: with these imports, ``base``, up to the layer ``below``; ``own`` is what was made since."""

    base: Lineage
    below: Layer | None
    own: dict[Hashable, Object]
    counts: dict[Hashable, int]


def begun(state: State) -> Begun | None:
    """How a path began.

    None in another process, and where too many modules were imported, or too much was made since, for other entries to
    have done the same.
    """
    layer = state.layer
    while layer is not None and layer.lineage is None:
        layer = layer.before
    if layer is not None:
        assert layer.lineage is not None
        base = layer.lineage
    else:
        base = Lineage((), Process(unseen=state.process.unseen), (), {}, {}, {})
    if len(base.names) >= MOST_PACKAGES or state.process.identity != base.process.identity:
        return None
    own, counts = state.since(layer)
    if own and len(base.names) >= MOST_NAMES:
        return None
    return Begun(base, layer, own, counts) if len(own) <= MOST_OWN else None


def grafted(state: State, begun: Begun, done: Imported) -> list[State]:
    """The paths after an import, with what it did laid under what the main module made.

    None where the two may have to do with each other; the path is as it was then.
    """
    if not (done.neutral or _is_as_left(state, begun.base)):
        return []
    for way in done.ways:
        if any(address in begun.base.objects or address in way.objects for address in begun.own):
            return []
        if not begun.counts.keys().isdisjoint(way.counts):
            return []
    paths = [state, *(state.clone() for _ in done.ways[1:])]
    for path, way in zip(paths, done.ways, strict=True):
        _lay_under(path, begun, way, keeps_process=done.neutral)
    return paths


def _is_as_left(state: State, base: Lineage) -> bool:
    """Whether the process is as its imports left it, and nothing was learnt of the machine that they did not know."""
    if state.process != base.process or any(fact not in state.facts for fact in base.facts):
        return False
    return all(fact in base.facts or _is_local(fact[0]) for fact in state.facts)


def _lay_under(
    state: State,
    begun: Begun,
    way: Layer,
    keeps_process: bool,
) -> None:
    new = way.lineage
    assert new is not None
    state.heap, state.counts = dict(begun.own), dict(begun.counts)
    state.frozen, state.frozen_counts, state.layer = new.objects, new.counts, way
    if not keeps_process:
        state.process = new.process
    state.facts = (
        *state.facts,
        *(fact for fact in new.facts if fact not in begun.base.facts and fact not in state.facts),
    )
    state.placed = {**new.placed, **state.placed}
    state.owned = set()


def sealed(state: State, base: Lineage, below: Layer | None, name: str) -> Layer:
    """All that an import changed as one layer, which begins a new lineage."""
    objects, counts = state.since(below)
    whole = Lineage(
        (*base.names, name),
        state.process,
        state.facts,
        dict(state.placed),
        {**base.objects, **objects},
        {**base.counts, **counts},
    )
    return Layer(below, dict(objects), dict(counts), 1 if below is None else below.depth + 1, whole)


def _is_local(question: Hashable) -> bool:
    """Whether an answer is about something that was made at some place, and not about all the machine."""
    match question:
        case Site():
            return True
        case Unknown(sym=sym):
            return _is_local(sym)
        case tuple():
            return any(_is_local(part) for part in question)
    return False
