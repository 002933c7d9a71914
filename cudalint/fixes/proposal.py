"""What a repair knows of a finding, and what it proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

import libcst as cst

from cudalint.finding import Finding
from cudalint.fixes.edits import Change
from cudalint.fixes.view import View, Views
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Outcome
from cudalint.machine.shapes import Shape
from cudalint.machine.trace import Site
from cudalint.project.analysis import Basis, shapes
from cudalint.structs import Frozen, Mutable, field


class Proof(Enum):
    """What has to be proven before a repair is safe, beside that the program fails without it."""

    NOTHING = "nothing"
    SPAWN = "that the worker lives under spawn"
    NEVER = "it cannot be"
    NEVER_BY_SPAWN = "it cannot be, and all is named that a worker under spawn may lack"

    @property
    def starts_afresh(self) -> bool:
        """Whether workers become fresh processes, or are sent other things as such."""
        return self in (Proof.SPAWN, Proof.NEVER_BY_SPAWN)


class Proposal(Frozen):
    """A change that may repair a finding, in one file or several.

    ``message`` is an imperative sentence without a full stop. ``doubt`` completes "not safe, because ...", for what
    is never safe. ``shown`` only: the edits are an illustration, or there are none. ``final``: it holds by itself or
    not at all; nothing else is changed on top of it. ``last_resort``: it counts only where no other holds.
    ``beside``: the changes that would start fresh processes, of which what they lack is what threads may lack.
    """

    message: str
    changes: Mapping[str, tuple[Change, ...]]
    proof: Proof = Proof.NEVER
    doubt: str = "it changes how the program runs"
    shown: bool = False
    final: bool = False
    last_resort: bool = False
    beside: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)


class Case(Mutable):
    """A finding with what the machine saw behind it, and the files as they are now."""

    finding: Finding
    outcome: Outcome
    basis: Basis
    views: Views = field(default_factory=Views)

    def view(self, module: str) -> View | None:
        """A file of the project to look at."""
        source = self.basis.files.sources.get(module)
        return None if source is None else self.views.of(source, module)

    def at(self, site: Site) -> tuple[View, cst.CSTNode] | None:
        """The node at a site of the machine."""
        view = self.view(site.module)
        node = None if view is None else view.node(site.ordinal)
        return None if view is None or node is None else (view, node)

    def call_at(self, site: Site) -> tuple[View, cst.Call] | None:
        """The call at a site of the machine."""
        found = self.at(site)
        return (found[0], found[1]) if found is not None and isinstance(found[1], cst.Call) else None

    def cause_call(self) -> tuple[View, cst.Call] | None:
        """The call that the cause of the finding ends in."""
        return self.call_at(self.outcome.cause[-1].site) if self.outcome.cause else None

    def shapes(self, view: View, nodes: Iterable[cst.CSTNode]) -> Mapping[cst.CSTNode, Shape]:
        """What expressions of a file hold on the GPU; those that are not seen to be evaluated are left out."""
        places = {Site(view.name, o): n for n in nodes if (o := view.ordinal(n)) is not None}
        seen = shapes(self.basis, self.finding, frozenset(places))
        return {places[site]: shape for site, shape in seen.items()}

    @property
    def is_in_notebook(self) -> bool:
        """Whether the finding stands in a cell."""
        source = self.basis.files.sources.get(self.outcome.anchor.module)
        return source is not None and source.cells is not None

    @property
    def place_of_launch(self) -> Site | None:
        """The launch that the finding belongs to, or that it stands within."""
        launched = {site for site, _ in self.basis.launches}
        return next((s for s in (self.outcome.within, self.outcome.anchor) if s in launched), None)

    @property
    def launch(self) -> Launched | None:
        """What was seen of it: of the one that forks, or else of any."""
        place = self.place_of_launch
        if place is None:
            return None
        launches = self.basis.launches
        methods = ("fork", "forkserver", "spawn", "loky")
        return next((launches[place, method] for method in methods if (place, method) in launches), None)


Repair = Callable[[Case], Iterable[Proposal]]


def in_files(changes: Iterable[tuple[View, Change]]) -> dict[str, tuple[Change, ...]]:
    """Changes of several files, as proposals carry them."""
    result: dict[str, tuple[Change, ...]] = {}
    for view, change in changes:
        result[view.path] = (*result.get(view.path, ()), change)
    return result


def in_file(view: View, changes: Iterable[Change]) -> dict[str, tuple[Change, ...]]:
    """Changes of one file, as proposals carry them."""
    return {view.path: tuple(changes)}
