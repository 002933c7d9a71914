"""Numbers of open files: a fresh process has none of its parent's, and starting it opens others than a fork does."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.names import OWN_TEXTS
from cudalint.machine.inheritance.progress import Progress
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import visited
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Ref, Unknown, Value, unknown

# The files that every process has: their numbers are the same in all.
_OF_ALL = ("sys.stdin.", "sys.stdout.", "sys.stderr.")


class Descriptors(Progress):
    """A machine that notes where the number of an open file shows, or is handed to a worker."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The calls that gave such numbers, with which part of what they gave is one; and attributes that are some.
        self._opened: dict[Hashable, int | None] = {}

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))):
                self._gives_number(f"?.{name}", given.site)
        return super()._call_atom(atom, given)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._gives_number(path, given.site)
        return super()._foreign(path, atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may open a file, or hand something to workers."""
        path = self.library.canonical(call.path)
        self._gives_number(path, call.site)
        has = self.library.traits.has
        if self._opened and has(path, "of-workers") and not has(path, "as-they-come"):
            given = (*call.args, *call.kwargs.values())
            self._tells_opened(atom for value in given for atom in visited(value, call.state))
        return super().library_call(call)

    def _gives_number(self, path: str, site: Site) -> None:
        trait = self.library.traits.of(path, "gives-descriptor")
        if trait is not None and not path.startswith(_OF_ALL):
            self._opened[site] = trait.place

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        results = super()._object_attribute(ref, name, state, frame, site)
        found = state.get(ref)
        if isinstance(found, LibraryObject) and self.library.traits.has(f"{found.type}.{name}", "gives-descriptor"):
            self._opened[site] = None
            return [(after, unknown("call", site, ref.address)) for after, _ in results]
        return results

    def gives_back(self, children: Iterable[tuple[State, Value]]) -> None:
        """Workers have ended: what they return may be such a number."""
        children = list(children)
        super().gives_back(children)
        for state, value in children if self._opened else ():
            self._tells_opened(visited(value, state))

    def _tells_opened(self, atoms: Iterable[Atom]) -> None:
        for atom in atoms:
            opened = self._opened_by(atom)
            if opened is not None:
                self._asked.setdefault(Doubt(Why.DESCRIPTOR, "", opened))

    def _shows_objects(
        self, values: Iterable[Value], site: Site, state: State, own: tuple[str, ...] = OWN_TEXTS
    ) -> None:
        values = list(values)
        super()._shows_objects(values, site, state, own)
        # Before anything was started, both have opened the same.
        if self._opened and self.record.launches:
            self._tells_opened(atom for value in values for atom in value)

    def _opened_by(self, part: Hashable) -> Site | None:
        """The call that opened the file of which a value is the number, or is made of it."""
        match part:
            case Site():
                return part if part in self._opened else None
            case Unknown(sym=(("call", Site() as site, *_), "[]", ("part", _, _, position) | (Const(value=position),))):
                place = self._opened.get(site, -1)
                return site if place is None or place == position else None
            case Unknown(sym=sym):
                return self._opened_by(sym)
            case tuple():
                return next((found for inner in part if (found := self._opened_by(inner)) is not None), None)
        return None
