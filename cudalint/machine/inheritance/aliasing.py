"""What a worker gives back of what it was given: where a loop takes its place, both are one thing, which may change."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.machine.frame import Call, Frame, Given, Raised, Results
from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.outliving import is_sent
from cudalint.machine.inheritance.staying import Staying, in_program
from cudalint.machine.inheritance.stores import CHANGES
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import reachable
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, Unknown, Value

_COPY = "a copy of what the worker was given, and the program changes one of the two"


class Aliases(Staying):
    """A machine that notes which things workers give back that their parent has already, and whether one is changed."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What the parent has of that which came back.
        self._came_back: set[Hashable] = set()

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended, and what they return goes to their parent."""
        children = list(children)
        super().gives_back(children, raised)
        for state, value in children:
            for watch in self._reading(state):
                for ref in (r for r in reachable(value, state) if _may_change(r, state)):
                    was_there = is_sent(ref.address) or any(fresh.at(ref.address) for fresh in watch.snapshots)
                    if was_there:
                        self._came_back.add(in_program(ref.address, watch))

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        if address in self._came_back and not self._is_started(state):
            self._changes_one(site)
        super()._stores_into(address, site, state, lossy)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``, where the owner may have come from a worker."""
        self._may_change_copy(owner, site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``, where the owner may have come from a worker."""
        self._may_change_copy(owner, site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def _changes_container(self, call: Call) -> None:
        super()._changes_container(call)
        if call.path.rpartition(".")[2] in CHANGES and call.receiver is not None:
            self._may_change_copy((call.receiver,), call.site, call.state)

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))) if name in CHANGES:
                self._may_change_copy((Unknown(base),), given.site, given.state)
        return super()._call_atom(atom, given)

    def _may_change_copy(self, owner: Value, site: Site, state: State) -> None:
        """Something is changed that the code does not show whole, as what workers give back."""
        if not self._came_back or self._is_started(state):
            return
        if any((not isinstance(atom, Ref) and not self._is_own(atom, state)) or _is_copy(atom) for atom in owner):
            self._changes_one(site)

    def _changes_one(self, site: Site) -> None:
        self._asked.setdefault(Doubt(Why.RETURNED, _COPY, site))


def _may_change(ref: Ref, state: State) -> bool:
    found = state.get(ref)
    return isinstance(found, Instance | Dict) or (isinstance(found, Sequence) and found.kind != "tuple")


def _is_copy(atom: Atom) -> bool:
    return isinstance(atom, Ref) and is_sent(atom.address)
