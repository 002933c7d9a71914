"""Numbers of open files: a fresh process has none of its parent's, and starting it opens others than a fork does."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Raised, Results
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
        # The dicts that have such numbers as keys, with the calls that gave them.
        self._keyed_by_opened: dict[Hashable, Site] = {}

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

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        self._counts_with((*left, *right), state)
        return super()._combine(op, left, right, state, frame, ordinal)

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        self._counts_with((*left, *right), state)
        return super()._augmented(node, left, right, state)

    def _counts_with(self, atoms: Iterable[Atom], state: State) -> None:
        """What is computed of such a number tells it, whatever is seen of that."""
        if self._opened and (self.record.launches or self._watches):
            self._tells_opened(atoms)

    def _dict_display(self, node: ir.DictDisplay, state: State, frame: Frame) -> Results:
        """``{key: value}``, of which the text has the keys."""
        found = [
            value for key, _ in node.items if isinstance(key, ir.Call) for value in self._peeked(key, state, frame)
        ]
        results = super()._dict_display(node, state, frame)
        for _, made in results:
            self._is_found_by(made, found)
        return results

    def _peeked(self, key: ir.Expr, state: State, frame: Frame) -> list[Value]:
        """What a key is, evaluated aside."""
        return [value for _, value in self.eval(key, state.clone(), frame)]

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        self._is_found_by(owner, [key])
        return super().set_item(owner, key, value, state, frame, site)

    def _is_found_by(self, owner: Value, keys: Iterable[Value]) -> None:
        opened = [site for key in keys for atom in key if (site := self._opened_by(atom)) is not None]
        for atom in owner if opened else ():
            if isinstance(atom, Ref):
                self._keyed_by_opened[atom.address] = opened[0]

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended: what they return may be such a number."""
        children = list(children)
        super().gives_back(children, raised)
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
            for atom in (inner for value in values for inner in visited(value, state)):
                found = self._keyed_by_opened.get(atom.address) if isinstance(atom, Ref) else None
                if found is not None:
                    self._asked.setdefault(Doubt(Why.DESCRIPTOR, "", found))

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
