"""What a loop over what comes gathers, and what its later rounds find of that: it depends on what came before.

A round that only adds to what others gathered (a list, a sum, an item under a key of its own) leaves the same in
whatever order the rounds come. One that looks at it does not: how many there are is the number of an arrival, and which
item is the first or the last of a group is whichever came so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Raised, Results
from cudalint.machine.heap import Dict, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.apart import Apart
from cudalint.machine.inheritance.arrivals import Arrivals
from cudalint.machine.inheritance.iteration import ITERATING
from cudalint.machine.interpreter import Setting
from cudalint.machine.keys import of_key
from cudalint.machine.launch.crossing import reachable
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Bound, Const, Lib, Ref, Unknown, Value

# Methods that add to a container, whatever it holds; of a dict, those that may replace what is there.
_ADDS = frozenset({"append", "appendleft", "add", "extend", "extendleft", "insert", "update", "subtract"})
_LAYS_OVER = frozenset({"update", "__or__"})
_FIRST_OR_ONE = "setdefault"
# Methods that give up what is there, one after the other.
_GIVES_UP = frozenset({"pop", "popleft", "popitem"})
# What gives the parent what one task gave.
_ASKS = frozenset({"result", "get"})
# Functions that add to a container that they are given.
_PUTS_IN = frozenset({"heap.push"})
_NEXT = "builtins.next"
_DICT = "builtins.dict"
# Operators that may take turns.
_SUMS = "+-"
_DRAWS, _LOADED = "draws", "loaded"


class Gathering(Arrivals):
    """A machine that notes where a loop over what comes finds what its earlier rounds have left."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # How many loops were run where something came that a loop took, and what there was when this round began.
        self._loop = 0
        self._there: State | None = None
        # What earlier rounds have set, this round has set, and what grows by each round: objects by their addresses,
        # variables and attributes by these and their names.
        self._earlier: set[Hashable] = set()
        self._now: set[Hashable] = set()
        self._grown: set[Hashable] = set()
        # By which operators that grows, and the one that is used now.
        self._ways: dict[Hashable, str] = {}
        self._operator = ""
        # What workers have given back, or put where their parent takes it.
        self._given_back: list[tuple[State, Value]] = []
        # The calls that give their parent what a task has given.
        self._results: set[Site] = set()
        # Where this round opened files that no other round opens.
        self._own_files: set[Site] = set()

    # -- rounds -------------------------------------------------------------------------------------------------------

    def _arrives(self, site: Site) -> None:
        before = self._arrived
        super()._arrives(site)
        if before is None and self._arrived is not None:
            self._loop = self._loops

    def begins_round(self, state: State) -> None:
        """A round of a loop begins."""
        super().begins_round(state)
        if self._arrived is not None and self._loops == self._loop:
            self._goes_round(state)

    def _goes_round(self, state: State) -> None:
        self._earlier |= self._now
        self._now, self._own_files = set(), set()
        self._has_learner = False
        self._there = state.clone()

    def _leaves_loop(self, arrived: Site | None, within: Frame | None) -> None:
        super()._leaves_loop(arrived, within)
        if self._arrived is None:
            self._forgets_rounds()

    def _forgets_rounds(self) -> None:
        self._earlier, self._now, self._grown, self._ways, self._there = set(), set(), set(), {}, None

    def _calls_when_ready(self, atom: Atom, call: Call) -> None:
        """A function that is called for each task that is done: each call is a round."""
        self._loop = -1
        before = set(self._speculated)
        for _ in range(2):
            self._goes_round(call.state)
            self._speculated = set(before)
            super()._calls_when_ready(atom, call)
        self._forgets_rounds()

    def _learns(self, address: Hashable, site: Site, state: State) -> None:
        super()._learns(address, site, state)
        if self._arrived is not None and self._is_older(address):
            self._shows_arrival(site)

    def _is_limited(self, state: State) -> bool:
        return self._arrived is not None or super()._is_limited(state)

    def _changes_weights(self, site: Site, state: State) -> None:
        super()._changes_weights(site, state)
        if self._arrived is not None:
            self._shows_arrival(site)

    def _is_older(self, address: Hashable) -> bool:
        """Whether an object was there before this round began."""
        return self._there is not None and self._there.at(address) is not None

    # -- what is left -------------------------------------------------------------------------------------------------

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name."""
        if self._arrived is not None:
            self._sets_place((self._home(name, state, frame.scope).address, name))
        super().bind(name, value, state, frame)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        for atom in owner if self._arrived is not None else ():
            if isinstance(atom, Ref):
                self._sets_place((atom.address, attr))
        return super().set_attribute(owner, attr, value, state, frame, site)

    def _sets_place(self, place: tuple[Hashable, str]) -> None:
        if not self._is_older(place[0]):
            return
        if self._adds:
            self._grown.add(place)
            way = _SUMS if self._operator in _SUMS else self._operator
            if self._ways.setdefault(place, way) != way and self._arrived is not None:
                # Sums and products of rounds, in turns.
                self._shows_arrival(self._arrived)
        else:
            self._now.add(place)

    def _aug_assign(self, node: ir.AugAssign, state: State, frame: Frame) -> list[State]:
        outer, self._operator = self._operator, node.op
        states = super()._aug_assign(node, state, frame)
        self._operator = outer
        return states

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        is_container = isinstance(state.at(address), Sequence | Dict)
        if self._arrived is not None and is_container and self._is_older(address):
            self._grown.add(address)
        super()._stores_into(address, site, state, lossy)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``: an item under a key that others have too is the first or the last one's."""
        is_same = self._adds or all(isinstance(atom, Const) for atom in value)
        if self._arrived is not None and not is_same and self._may_be_older(owner) and not self._tells_apart(key):
            self._shows_arrival(site)
        return super().set_item(owner, key, value, state, frame, site)

    def _may_be_older(self, owner: Value) -> bool:
        return any(not isinstance(atom, Ref) or self._is_older(atom.address) for atom in owner)

    def _changes_file(
        self, path: str, receiver: Atom | None, args: list[Value], kwargs: dict[str, Value], site: Site, state: State
    ) -> None:
        """A round writes a file: of those that write the same, one comes last."""
        super()._changes_file(path, receiver, args, kwargs, site, state)
        traits = self.library.traits
        changes = traits.of(path, "changes-file") if self._arrived is not None else None
        if changes is None and not (self._arrived is not None and traits.has(path, "opens-file")):
            return
        place = 0 if changes is None else changes.place or 0
        named = (receiver,) if receiver is not None else args[place] if place < len(args) else ()
        if self._tells_apart(named):
            self._own_files.add(site)
        elif changes is not None:
            self._shows_arrival(site)

    def _is_of_one(self, atom: Atom | None) -> bool:
        match atom:
            case Unknown(sym=("call", Site() as site, *_)):
                return site in self._own_files
        return super()._is_of_one(atom)

    def delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``del owner[key]``: which item that is depends on what there is."""
        if self._arrived is not None and self._may_be_older(owner) and not self._tells_apart(key):
            self._shows_arrival(site)
        return super().delete_item(owner, key, state, frame, site)

    # -- what is found ------------------------------------------------------------------------------------------------

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, of which a round may find what an earlier one has left."""
        if self._arrived is not None and not self._adds and self._is_left(name):
            inner = scope
            while inner is not None and isinstance(found := state.get(inner), Scope):
                if name in found.variables:
                    self._finds((inner.address, name), self._arrived)
                    break
                inner = found.parent
        return super().lookup(name, state, scope)

    def _is_left(self, name: str) -> bool:
        return any(isinstance(place, tuple) and place[1:] == (name,) for place in (*self._grown, *self._earlier))

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        if self._arrived is not None and not self._adds:
            self._finds((ref.address, name), site)
        return super()._object_attribute(ref, name, state, frame, site)

    def _finds(self, place: Hashable, site: Site) -> None:
        if place in self._grown or (place in self._earlier and place not in self._now):
            self._shows_arrival(site)

    def _looks_into(self, values: Iterable[Value], site: Site, state: State) -> None:
        """The content of something is looked at, also of what it holds."""
        for value in values if self._grown and self._arrived is not None else ():
            for atom in value:
                if isinstance(atom, Ref) and any(ref.address in self._grown for ref in reachable((atom,), state)):
                    self._shows_arrival(site)

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared, or one is looked for in another."""
        super().compares(op, values, site, state)
        if op not in ("is", "is not"):
            self._looks_into(values, site, state)

    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true, as a container is that holds something."""
        if self._arrived is not None:
            self._looks_into([value], self._arrived, state)
        return super().truth(value, state)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``: what is only added to gives nothing away."""
        results = super().item(value, key, state, frame, site)
        if self._arrived is not None and not self._adds:
            for atom in value:
                if isinstance(atom, Ref) and atom.address in self._grown and not _are_containers(results):
                    self._shows_arrival(site)
        return results

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop; one within another may go through what that has gathered."""
        self._looks_into([value], site, state)
        return super().iterate(value, state, frame, site, most)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may look at what was gathered, or add to it."""
        path = self.library.canonical(call.path)
        if self._arrived is not None:
            self._looks(path, call)
        if path == _DICT and any(self._is_unordered(atom, call.state) for value in call.args for atom in value):
            self._makes_dict(call)
        if self.library.traits.has(path, "fills-shared") and call.args and self._is_worker(call.state):
            self._given_back.append((call.state.clone(), call.args[0]))
        return super().library_call(call)

    def _looks(self, path: str, call: Call) -> None:
        name, site, state = path.rpartition(".")[2], call.site, call.state
        receiver = () if call.receiver is None else (call.receiver,)
        found = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
        is_container = isinstance(found, Sequence | Dict | LibraryObject) and self._may_be_older(receiver)
        given = (*call.args, *call.kwargs.values())
        if isinstance(found, LibraryObject) and is_container and not all(map(_is_settled, given)):
            # It may keep what it is given, in the order in which it is.
            self._unordered.update(_address(receiver))
        if isinstance(found, Dict) and is_container and name in _LAYS_OVER:
            if not all(self._has_own_keys(value, state) for value in given):
                self._shows_arrival(site)
        elif isinstance(found, Dict) and is_container and name == _FIRST_OR_ONE:
            if not self._is_fresh(given[1:]):
                self._shows_arrival(site)
        elif self._takes_next(call) if path == _NEXT else is_container and name in _GIVES_UP:
            self._shows_arrival(site)
        elif name not in _ADDS:
            self._looks_into([receiver], site, state)
        if call.text("does") in _PUTS_IN:
            self._may_add_to(call.args, state)
        elif call.text("does") not in ITERATING:
            self._looks_into(given, site, state)
        self._goes_on_with(path, given, site)

    def _takes_next(self, call: Call) -> bool:
        """Whether something is taken from what was there before this round, so that the next round takes another."""
        return any(map(self._may_be_older, call.args[:1]))

    def _goes_on_with(self, path: str, given: Iterable[Value], site: Site) -> None:
        """The numbers that are drawn next go with whatever came, and what is loaded or written in place comes last."""
        effect = self.library.process_effect(path)
        state = "" if effect is None else effect.state
        name = path.rpartition(".")[2]
        writes = state == _LOADED or (name.endswith("_") and not name.startswith("_"))
        if state == _DRAWS or (writes and not all(map(_is_settled, given))):
            self._shows_arrival(site)

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))) if name in _ASKS:
                self._results.add(given.site)
            case Unknown(sym=(_, ".", str(name))) if self._arrived is not None:
                self._goes_on_with(f"?.{name}", given.args, given.site)
        return super()._call_atom(atom, given)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        if self._arrived is not None:
            self._looks_into((*given.args, *given.kwargs.values()), given.site, given.state)
            self._goes_on_with(path, given.args, given.site)
            self._may_add_to(given.args, given.state)
        return super()._foreign(path, atom, given)

    def _may_add_to(self, given: Iterable[Value], state: State) -> None:
        """A function may put what came into a container that it is given."""
        for atom in (atom for value in given for atom in value):
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(found, Sequence | Dict) and self._is_older(atom.address):
                self._grown.add(atom.address)
                self._unordered.add(atom.address)

    def _is_fresh(self, given: Iterable[Value]) -> bool:
        """Whether this round made what it gives, so that it is there for others to add to."""
        atoms = [atom for value in given for atom in value]
        return bool(atoms) and all(isinstance(atom, Ref) and not self._is_older(atom.address) for atom in atoms)

    def _has_own_keys(self, value: Value, state: State) -> bool:
        """Whether what is laid over a dict has only keys that nothing else that comes has."""
        found = [state.get(atom) if isinstance(atom, Ref) else None for atom in value]
        keys = [key for each in found if isinstance(each, Dict) and each.exact for key in each.items]
        is_seen = all(isinstance(each, Dict) and each.exact for each in found)
        return bool(keys) and is_seen and all(self._tells_apart(of_key(key)) for key in keys)

    # -- which keys are of one round only -----------------------------------------------------------------------------

    def _clauses(
        self,
        node: ir.Comprehension,
        depth: int,
        state: State,
        frame: Frame,
        produced: list[Value],
        keys: list[Value],
    ) -> tuple[list[State], bool]:
        """The rounds of a comprehension; one of a dict keeps the last item under a key."""
        before = len(keys)
        states, exact = super()._clauses(node, depth, state, frame, produced, keys)
        if self._arrived is not None and not all(map(self._tells_apart, keys[before:])):
            self._shows_arrival(Site(frame.module, node.ordinal))
        return states, exact

    def _sorts_apart(self, call: Call, value: Value) -> bool:
        """Whether the key by which elements are sorted tells each from all others."""
        key = call.kwargs.get("key")
        if key is None:
            return True
        around = Frame(call.frame.scope, call.frame.module, tries=1)
        found: list[Value] = []

        def run(state: State) -> None:
            for atom in value:
                element = self.element_of(atom, state, ("sorted", call.site))
                found.extend(made for _, made in self.call_value(key, [element], {}, state, around, call.site))

        self._some_day(call.state, run)
        return bool(found) and all(map(self._tells_apart, found))

    def _makes_dict(self, call: Call) -> None:
        """Pairs become a dict: of those with one key, the last one counts."""
        apart = Apart(self._given_back, self._results)
        elements = [self.element_of(atom, call.state, ("pair", call.site)) for value in call.args for atom in value]
        if not all(apart.first_parts_tell_apart(element, call.state) for element in elements):
            self._shows_arrival(call.site)

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended, and what they return goes to their parent."""
        children = list(children)
        super().gives_back(children, raised)
        self._given_back.extend((state, value) for state, value in children if value != NONE)

    def _tells_apart(self, key: Value) -> bool:
        """Whether a key is another one for each thing that comes."""
        return Apart(self._given_back, self._results).tells_apart(key)


def _is_settled(value: Value) -> bool:
    return all(isinstance(atom, Const) for atom in value)


def _address(receiver: Value) -> Iterator[Hashable]:
    return (atom.address for atom in receiver if isinstance(atom, Ref))


def _are_containers(results: Results) -> bool:
    """Whether an item is something that is only added to: what it holds is looked at by itself."""
    atoms = [(atom, state.get(atom) if isinstance(atom, Ref) else None) for state, value in results for atom in value]
    return bool(atoms) and all(isinstance(found, Sequence | Dict) for _, found in atoms)
