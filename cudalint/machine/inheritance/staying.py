"""What a worker changes stays in it: a loop would have changed the thing itself, a process changes a copy of its own.

A program that looks at such a thing afterwards sees nothing of the change, whichever way its workers are started.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from cudalint.ir import nodes as ir
from cudalint.machine.classes import lineage
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.calling_back import CallingBack
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.iteration import ITERATING
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.inheritance.outliving import is_sent, sender_of
from cudalint.machine.inheritance.reads import variable
from cudalint.machine.inheritance.stores import CHANGES
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import reachable
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Ref, Unknown, Value, constant

# Attributes of functions that tell how often they were asked.
_OF_CACHES = frozenset({"cache_info"})
# What these give, all processes have in common.
_OF_ALL = "multiprocessing."


class Staying(CallingBack):
    """A machine that notes what workers change of what they have from their parent, and who looks at that later."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What workers changed: the objects of their parent, each with the attributes, names or keys, None for any, and
        # which worker did so first.
        self._stayed: dict[Hashable, dict[Hashable, int]] = {}
        # By what stands for several objects that tasks are given, these.
        self._several: dict[Hashable, list[Hashable]] = {}
        # What several tasks are given, and what the task that runs is.
        self._given_again: set[Hashable] = set()
        self._own_given: set[Hashable] = set()
        # Of attributes of what tasks are sent, what they held first, and which of them the task that runs has read.
        self._held_first: dict[tuple[Hashable, str], Value | None] = {}
        self._read_in_task: set[tuple[Hashable, str]] = set()
        # Which attribute or key of an object is being set.
        self._part_set: Hashable = None
        # The variables, attributes and items that workers change by adding to what they hold, and whether one does so.
        self._added: set[Hashable] = set()
        self._augments = False
        # The test that is made, whose values are asked whether they hold something.
        self._tested: Site | None = None

    def stands_for(self, one: Ref, all_of: Iterable[Atom | None]) -> None:
        """One object stands for what the tasks of a launch are given, which differ."""
        super().stands_for(one, all_of)
        self._several[one.address] = [atom.address for atom in all_of if isinstance(atom, Ref)]

    def is_given_again(self, value: Value, state: State) -> None:
        """Several tasks of a launch are given the same."""
        super().is_given_again(value, state)
        self._given_again.update(ref.address for ref in reachable(value, state))

    # -- what workers change ------------------------------------------------------------------------------------------

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``; functions keep their attributes, too."""
        outer, self._part_set = self._part_set, attr
        for atom in owner:
            if isinstance(atom, Ref) and is_sent(atom.address) and self._is_started(state):
                self._sets_sent(atom, attr, value, state, site)
            if isinstance(atom, Ref) and isinstance(state.get(atom), Closure):
                self._leaves_changed(atom.address, attr, state)
            if isinstance(atom, Lib):
                self._stays(atom.path, attr, self._number(state))
        states = super().set_attribute(owner, attr, value, state, frame, site)
        self._part_set = outer
        return states

    def _sets_sent(self, ref: Ref, attr: str, value: Value, state: State, site: Site) -> None:
        """A task sets an attribute of what it was sent: what it found there, an earlier task may have set."""
        place, before = (ref.address, attr), _attributes(state.at(ref.address)).get(attr)
        first = self._held_first.setdefault(place, before)
        there = self._in_program(ref.address, state)
        is_same = value == before and all(isinstance(atom, Const) for atom in value)
        has_moved = before not in (None, first) and not is_same and place in self._read_in_task
        if has_moved and self._is_by_another(self._stayed.get(there, {}).get(attr, 0), state, there):
            self._sees_nothing(site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        outer, self._part_set = self._part_set, constant(key)
        for atom in owner:
            if isinstance(atom, Lib):
                self._stays(atom.path, self._part_set, self._number(state))
        states = super().set_item(owner, key, value, state, frame, site)
        self._part_set = outer
        return states

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        if self._augments and self._is_started(state):
            whole = isinstance(address, tuple) and len(address) == 2 and isinstance(address[1], str)
            self._added.add(address if whole else (self._in_program(address, state), self._part_set))
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
            if is_sent(address):
                sender = sender_of(address)
                for each in (sender, *self._several.get(sender, ())):
                    self._stays(each, part, watch.begun)
            elif any(fresh.at(address) is not None for fresh in watch.snapshots):
                self._stays(in_parent(address, watch), part, watch.number)

    def _writes_array(self, state: State, of: Iterable[Atom] = ()) -> None:
        """A process changes an array in place, which it may have from its parent."""
        of = tuple(of)
        for atom in of:
            if _as_array(atom) is not None and not self._is_own(atom, state):
                self._stays(_as_array(atom), None, self._number(state))
        super()._writes_array(state, of)

    def _stays(self, address: Hashable, part: Hashable, number: int | None) -> None:
        if number is not None:
            self._stayed.setdefault(address, {}).setdefault(part, number)

    # -- who looks at that --------------------------------------------------------------------------------------------

    def _may_meet(self, state: State) -> bool:
        return bool(self._stayed) or any(one.is_set for one in state.process.handed)

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, from the inside out; a worker may have set it in its own module, or in its own function."""
        if self._may_meet(state):
            home = self._home_of(name, state, scope)
            if home is not None:
                self._looks_up(home.address, name, state)
        return super().lookup(name, state, scope)

    def _looks_up(self, home: Hashable, name: str, state: State) -> None:
        self._meets_pending((home, name), Site("", 0), state, name)
        first = self._stayed.get(home, {}).get(name)
        if first is None or not self._is_by_another(first, state) or self._augments:
            return
        if not self._is_started(state) or not self._has_set_anew(home, name, state):
            self._sees_nothing(Site("", 0), name)

    def _is_by_another(self, first: int, state: State, sent: Hashable = None) -> bool:
        """Whether what a worker was the first to change was changed before this process, or by others like it.

        ``sent``: what it was sent, of which each task has a copy of its own.
        """
        watch = self._last_worker(state)
        if watch is None:
            return True
        if sent is None and watch.launch.later is not None:
            # Those that take its place begin with what their parent has.
            return True
        number = watch.number if sent is None else watch.begun
        if first != number:
            return first < number
        if sent is not None and watch.many:
            return sent in self._given_again or sent not in self._own_given
        return state.process.siblings != 1 and self._shared_out(state) is None

    def begins_task(self, state: State, is_first: bool, given: Iterable[Value] = ()) -> None:
        """A worker begins a task; the second one stands for all that follow."""
        given = tuple(given)
        super().begins_task(state, is_first, given)
        self._read_in_task = set()
        for watch in self._reading(state):
            watch.many, watch.has_begun = watch.has_begun, True
            of_task = (ref for value in given for ref in reachable(value, state))
            self._own_given = {in_program(ref.address, watch) for ref in of_task}

    def _aug_assign(self, node: ir.AugAssign, state: State, frame: Frame) -> list[State]:
        outer, self._augments = self._augments, True
        states = super()._aug_assign(node, state, frame)
        self._augments = outer
        return states

    def _has_set_anew(self, home: Hashable, name: str, state: State) -> bool:
        """Whether a worker has set a variable itself, to what does not depend on what it was."""
        if (home, name) in self._added:
            return False
        match home:
            case ("module", str(module)):
                return all(self._is_own_now(watch, module, name, state) for watch in self._reading(state))
        return False

    def _is_own_now(self, watch: Watch, module: str, name: str, state: State) -> bool:
        begun = watch.loaded.get(module) or watch.snapshots
        is_new = bool(variable(state, module, name)) and not any(variable(fresh, module, name) for fresh in begun)
        return is_new or self._sets_anew(watch, module, name, state)

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
        if self._may_meet(state) and not isinstance(state.get(ref), Sequence | Dict):
            self._meets_pending((ref.address, name), site, state)
            self._meets_pending(ref.address, site, state)
            if any(self._has_changed(address, name, state) for address in _holders(ref, state)):
                self._sees_nothing(site)
        if is_sent(ref.address):
            self._read_in_task.add((ref.address, name))
        if name in _OF_CACHES and self._is_remembered_elsewhere(state.get(ref), state):
            self._sees_nothing(site)
        return super()._object_attribute(ref, name, state, frame, site)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""
        for atom in value if self._may_meet(state) else ():
            held = atom.address if isinstance(atom, Ref) else atom.path if isinstance(atom, Lib) else None
            self._meets_pending(held, site, state)
            if self._has_changed(held, constant(key), state):
                self._sees_nothing(site)
        return super().item(value, key, state, frame, site)

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """Go through the elements of a value."""
        self._meet_stale((value,), site, state, deep=False)
        return super().iterate(value, state, frame, site, most)

    def spreads(self, value: Value, site: Site, state: State) -> None:
        """The elements of a value are taken."""
        self._meet_stale((value,), site, state, deep=False)
        super().spreads(value, site, state)

    def shows(self, values: Iterable[Value], site: Site, state: State) -> None:
        """Values are made into text."""
        values = tuple(values)
        self._meet_stale(values, site, state)
        self._meet_whole(values, site, state)
        super().shows(values, site, state)

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared, or one is looked for in another."""
        if op not in ("is", "is not"):
            self._meet_stale(values, site, state)
            self._meet_whole(values, site, state)
        super().compares(op, values, site, state)

    def branch(self, test: ir.Expr, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        """The states in which a test holds, and those in which it does not."""
        outer, self._tested = self._tested, Site(frame.module, test.ordinal)
        ways = super().branch(test, state, frame)
        self._tested = outer
        return ways

    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true, as a container is that holds something."""
        if self._tested is not None:
            self._meet_stale((value,), self._tested, state, deep=False)
        return super().truth(value, state)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which looks at the containers that it is given."""
        receiver = () if call.receiver is None else ((call.receiver,),)
        does = call.text("does")
        deep = does not in ITERATING and does != "len"
        only_adds = call.statement and call.path.rpartition(".")[2] in CHANGES and self._is_started(call.state)
        looked_at = (*call.args, *call.kwargs.values())
        self._meet_stale(looked_at if only_adds else (*receiver, *looked_at), call.site, call.state, deep)
        if self._stayed and call.args:
            self._asks_for_part(does, call)
        traits, path = self.library.traits, self.library.canonical(call.path)
        if does == "vars" or (traits.has(path, "reads-content") and not traits.has(path, "leaves-content")):
            self._meet_whole(call.args, call.site, call.state)
        held = call.receiver.address if isinstance(call.receiver, Ref) else None
        before = call.state.at(held) if held is not None and self._may_meet_object(held, call) else None
        results = super().library_call(call)
        for after, _ in results if isinstance(before, LibraryObject) else ():
            if after.at(held) is not before:
                self._leaves_changed(held, None, after)
        return results

    def _may_meet_object(self, address: Hashable, call: Call) -> bool:
        """Whether a worker uses an object of a library, which it may change; its parent meets one that was changed."""
        if self._is_started(call.state):
            return True
        found = call.state.at(address)
        if isinstance(found, LibraryObject) and address in self._stayed:
            self._sees_nothing(call.site)
        return False

    def _asks_for_part(self, does: str, call: Call) -> None:
        """An attribute or an item is asked for by a call."""
        if does == "getattr" and len(call.args) > 1:
            holders = [held for atom in call.args[0] if isinstance(atom, Ref) for held in _holders(atom, call.state)]
            if any(self._has_changed(held, constant(call.args[1]), call.state) for held in holders):
                self._sees_nothing(call.site)
        owner, _, method = self.library.canonical(call.path).rpartition(".")
        of_library = method == "get" and not self._is_started(call.state)
        if of_library and self._has_changed(owner, constant(call.args[0]), call.state):
            self._sees_nothing(call.site)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._meet_stale((*given.args, *given.kwargs.values()), given.site, given.state)
        return super()._foreign(path, atom, given)

    def _meet_stale(self, values: Iterable[Value], site: Site, state: State, deep: bool = True) -> None:
        if not self._may_meet(state):
            return
        for ref in _containers(values, state, deep):
            self._meets_pending(ref.address, site, state)
            there = self._in_program(ref.address, state)
            changed = self._stayed.get(there)
            sent = there if is_sent(ref.address) and self._is_started(state) else None
            if changed and self._is_by_another(min(changed.values()), state, sent):
                self._sees_nothing(site)
        for array in filter(None, (_as_array(atom) for value in values for atom in value)):
            if self._has_changed(array, None, state):
                self._sees_nothing(site)

    def _meet_whole(self, values: Iterable[Value], site: Site, state: State) -> None:
        """All that objects hold is looked at, as far as Python does so by itself."""
        if not self._stayed or self._is_started(state):
            return
        for atom in (atom for value in values for atom in value):
            if isinstance(atom, Ref) and isinstance(state.get(atom), Instance) and self._stayed.get(atom.address):
                self._sees_nothing(site)

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str())) if self._stayed:
                array = _as_array(Unknown(base))
                if array is not None and self._has_changed(array, None, given.state):
                    self._sees_nothing(given.site)
        return super()._call_atom(atom, given)

    def _has_changed(self, address: Hashable, part: Hashable, state: State) -> bool:
        """Whether a worker before this process changed a part of something."""
        there = self._in_program(address, state)
        parts = self._stayed.get(there, {})
        sent = there if is_sent(address) and self._is_started(state) else None
        if not any(self._is_by_another(parts[one], state, sent) for one in (part, None) if one in parts):
            return False
        if not self._is_started(state) or (there, part) in self._added:
            return not self._is_started(state) or not self._augments
        # What it is given it may have set itself.
        return not is_sent(address) and not self._has_set_part(address, part, state)

    def _has_set_part(self, address: Hashable, part: Hashable, state: State) -> bool:
        """Whether a worker has set an attribute to something else than what it began with."""
        name = str(part)
        here = _attributes(state.at(address)).get(name)
        snapshots = (fresh for watch in self._reading(state) for fresh in watch.snapshots)
        begun = [_attributes(fresh.at(address)).get(name) for fresh in snapshots]
        return here is not None and all(there is None or set(there).isdisjoint(here) for there in begun)

    def _in_program(self, address: Hashable, state: State) -> Hashable:
        """What an object is in the program that started this process."""
        for watch in self._reading(state):
            return in_program(address, watch)
        return address

    def _sees_nothing(self, site: Site, name: str = "") -> None:
        self._asked.setdefault(Doubt(Why.STAYS, name, site))


def _as_array(atom: Atom) -> Hashable:
    """By what an array is known that a library gave."""
    match atom:
        case Unknown(sym=("call", Site(), *_)):
            return ("array", atom)
    return None


def _attributes(found: object) -> Mapping[str, Value]:
    match found:
        case Instance(attributes=attributes):
            return attributes
        case Scope(variables=variables):
            return variables
    return {}


def in_parent(address: Hashable, watch: Watch) -> Hashable:
    """Where the parent of a process has what that has made by its imports."""
    match address:
        case (place, count, tuple(identity)) if identity == watch.launch.identity:
            return place, count, watch.launch.parent.process.identity
    return address


def in_program(address: Hashable, watch: Watch) -> Hashable:
    """What an object of a worker is in the program that started it."""
    return in_parent(sender_of(address), watch)


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
