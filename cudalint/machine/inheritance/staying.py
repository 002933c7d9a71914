"""What a worker changes stays in it: a loop would have changed the thing itself, a process changes a copy of its own.

A program that looks at such a thing afterwards sees nothing of the change, whichever way its workers are started.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.classes import lineage
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.iteration import ITERATING
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.inheritance.returning import Returning
from cudalint.machine.interpreter import Setting
from cudalint.machine.interpreter.iteration import MOST_ITEMS
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Value, constant

# How pickling names what it makes of an object in another process.
_SENT = "sent"
# What these give, all processes have in common.
_OF_ALL = "multiprocessing."


class Staying(Returning):
    """A machine that notes what workers change of what they have from their parent, and who looks at that later."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What workers changed: the objects of their parent, each with the attributes, names or keys; None for any.
        self._stayed: dict[Hashable, set[Hashable]] = {}
        # By what stands for several objects that tasks are given, these.
        self._several: dict[Hashable, list[Hashable]] = {}
        # Which attribute or key of an object is being set.
        self._part_set: Hashable = None

    def stands_for(self, one: Ref, all_of: Iterable[Atom | None]) -> None:
        """One object stands for what the tasks of a launch are given, which differ."""
        super().stands_for(one, all_of)
        self._several[one.address] = [atom.address for atom in all_of if isinstance(atom, Ref)]

    # -- what workers change ------------------------------------------------------------------------------------------

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``; functions keep their attributes, too."""
        outer, self._part_set = self._part_set, attr
        for atom in owner:
            if isinstance(atom, Ref) and isinstance(state.get(atom), Closure):
                self._leaves_changed(atom.address, attr, state)
            if isinstance(atom, Lib) and self._is_started(state):
                self._stayed.setdefault(atom.path, set()).add(attr)
        states = super().set_attribute(owner, attr, value, state, frame, site)
        self._part_set = outer
        return states

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        outer, self._part_set = self._part_set, constant(key)
        for atom in owner:
            if isinstance(atom, Lib) and self._is_started(state):
                self._stayed.setdefault(atom.path, set()).add(self._part_set)
        states = super().set_item(owner, key, value, state, frame, site)
        self._part_set = outer
        return states

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        match address:
            case (("module", str(module)), str(name)):
                if not self._sets_as_parent(module, name):
                    self._leaves_changed(("module", module), name, state)
            case (tuple(scope), str(name)):
                self._leaves_changed(scope, name, state)
            case _:
                self._leaves_changed(address, self._part_set, state)
        super()._stores_into(address, site, state, lossy)

    def _sets_as_parent(self, module: str, name: str) -> bool:
        """Whether a variable is set to what it holds in the parent, as it is not set yet in a fresh process."""
        return False

    def _leaves_changed(self, address: Hashable, part: Hashable, state: State) -> None:
        found = state.at(address)
        if isinstance(found, LibraryObject) and found.type.startswith(_OF_ALL):
            return
        for watch in self._reading(state):
            if _is_sent(address):
                sender = _sender(address)
                for each in (sender, *self._several.get(sender, ())):
                    self._stayed.setdefault(each, set()).add(part)
            elif any(fresh.at(address) is not None for fresh in watch.snapshots):
                self._stayed.setdefault(_in_parent(address, watch), set()).add(part)

    # -- who looks at that --------------------------------------------------------------------------------------------

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, from the inside out; a worker may have set it in its own module, or in its own function."""
        if self._stayed and not self._is_started(state):
            home = self._home_of(name, state, scope)
            if home is not None and name in self._stayed.get(home.address, ()):
                self._sees_nothing(Site("", 0), name)
        return super().lookup(name, state, scope)

    def _home_of(self, name: str, state: State, scope: Ref | None) -> Ref | None:
        """Where a name is found."""
        while scope is not None:
            found = state.get(scope)
            if not isinstance(found, Scope):
                return None
            if found.kind == "module" or (name in found.variables and found.kind != "class"):
                return scope
            scope = found.parent
        return None

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        changed = isinstance(atom, Lib) and name in self._stayed.get(atom.path, ())
        if changed and not self._is_started(state):
            self._sees_nothing(site)
        return super()._attribute_of(atom, name, state, frame, site)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        looks = bool(self._stayed) and not self._is_started(state)
        if looks and any(self._has_changed(address, name) for address in _holders(ref, state)):
            self._sees_nothing(site)
        return super()._object_attribute(ref, name, state, frame, site)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""
        for atom in value if self._stayed and not self._is_started(state) else ():
            held = atom.address if isinstance(atom, Ref) else atom.path if isinstance(atom, Lib) else None
            if self._has_changed(held, constant(key)):
                self._sees_nothing(site)
        return super().item(value, key, state, frame, site)

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """Go through the elements of a value."""
        self._meet_stale((value,), site, state, deep=False)
        return super().iterate(value, state, frame, site, most)

    def shows(self, values: Iterable[Value], site: Site, state: State) -> None:
        """Values are made into text."""
        values = tuple(values)
        self._meet_stale(values, site, state)
        super().shows(values, site, state)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which looks at the containers that it is given."""
        receiver = () if call.receiver is None else ((call.receiver,),)
        does = call.text("does")
        deep = does not in ITERATING and does != "len"
        self._meet_stale((*receiver, *call.args, *call.kwargs.values()), call.site, call.state, deep)
        if self._stayed and call.args and not self._is_started(call.state):
            self._asks_for_part(does, call)
        return super().library_call(call)

    def _asks_for_part(self, does: str, call: Call) -> None:
        """An attribute or an item is asked for by a call."""
        if does == "getattr" and len(call.args) > 1:
            holders = [held for atom in call.args[0] if isinstance(atom, Ref) for held in _holders(atom, call.state)]
            if any(self._has_changed(held, constant(call.args[1])) for held in holders):
                self._sees_nothing(call.site)
        owner, _, method = self.library.canonical(call.path).rpartition(".")
        if method == "get" and self._has_changed(owner, constant(call.args[0])):
            self._sees_nothing(call.site)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._meet_stale((*given.args, *given.kwargs.values()), given.site, given.state)
        return super()._foreign(path, atom, given)

    def _meet_stale(self, values: Iterable[Value], site: Site, state: State, deep: bool = True) -> None:
        if not self._stayed or self._is_started(state):
            return
        if any(ref.address in self._stayed for ref in _containers(values, state, deep)):
            self._sees_nothing(site)

    def _has_changed(self, address: Hashable, part: Hashable) -> bool:
        parts = self._stayed.get(address, ())
        return part in parts or None in parts

    def _sees_nothing(self, site: Site, name: str = "") -> None:
        self._asked.setdefault(Doubt(Why.STAYS, name, site))


def _is_sent(address: Hashable) -> bool:
    match address:
        case (str(kind), _, _):
            return kind == _SENT
    return False


def _sender(address: Hashable) -> Hashable:
    """The object of which pickling made another one."""
    match address:
        case (str(kind), inner, _) if kind == _SENT:
            return _sender(inner)
    return address


def _in_parent(address: Hashable, watch: Watch) -> Hashable:
    """Where the parent of a process has what that has made by its imports."""
    match address:
        case (place, count, tuple(identity)) if identity == watch.launch.identity:
            return place, count, watch.launch.parent.process.identity
    return address


def _holders(ref: Ref, state: State) -> Iterator[Hashable]:
    """Whatever may have an attribute of an object: itself, and the classes of it."""
    found = state.get(ref)
    yield ref.address
    cls = found.cls if isinstance(found, Instance) else ref
    if isinstance(state.get(cls), Class):
        yield from (each.scope.address for each in lineage(cls, state))


def _containers(values: Iterable[Value], state: State, deep: bool) -> Iterator[Ref]:
    """The lists, sets and dicts among values, and, where that is ``deep``, those within them."""
    stack: list[Atom] = [atom for value in values for atom in value]
    seen: set[Atom] = set()
    while stack:
        atom = stack.pop()
        found = state.get(atom) if isinstance(atom, Ref) and atom not in seen else None
        seen.add(atom)
        match atom, found:
            case Ref(), Sequence(items=items, element=element):
                yield atom
                stack.extend(a for value in (*(items or ()), element) for a in value if deep)
            case Ref(), Dict(items=entries, element=element):
                yield atom
                stack.extend(a for value in (*entries.values(), element) for a in value if deep)
