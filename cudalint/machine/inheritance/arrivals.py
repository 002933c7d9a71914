"""What comes in the order in which workers are ready, and where the program shows that order.

As long as it only gathers what comes, by keys or in a list that it sorts later, no order shows. What is printed, summed
or kept as the last one does, and so does a list that was filled so, or a dict, to whoever goes through it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Closure, Dict, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.beside import origin
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.memory import Memories
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import visited
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    Atom,
    Bound,
    Const,
    Lib,
    Ref,
    Tensor,
    Unknown,
    Value,
    constant,
    only,
    rest_of,
    unknown,
)
from cudalint.models.library import ProcessEffect

_PARTS = (".keys", ".values", ".items", ".copy")
_SORTS = "builtins.list.sort"
# Methods that tell which element stands where, and comparisons of what has an order.
_TELLS_PLACE = frozenset({"index", "popitem"})
# Methods that take the next element, of what is no dict.
_TAKES = frozenset({"get", "get_nowait", "popleft", "getvalue"})
_IN_ORDER = frozenset({"==", "!=", "<", "<=", ">", ">="})
_BY_KEY = frozenset({"builtins.sorted", "builtins.max", "builtins.min"})
_ITER = "builtins.iter"
_SUM = "builtins.sum"
# What whole numbers come to by these does not depend on their order.
_OF_WHOLE_NUMBERS = frozenset({"+", "-", "*"})
# It gives two sets, each with an order of its own.
_WAIT = ".wait"
# By which arguments functions are called when a task is done.
_CALLBACKS = ("callback", "error_callback")
_LATER = "add_done_callback"
_QUEUE = "multiprocessing.Queue"


class Arrivals(Memories):
    """A machine that notes where it shows in which order workers were ready."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What has its elements in the order in which they came: objects by their addresses, and unknowns.
        self._unordered: set[Hashable] = set()
        # What was told to give results so.
        self._told: set[Hashable] = set()
        # What keeps only the last of what it is given.
        self._bounded: set[Hashable] = set()
        # The parts of these unknowns are such.
        self._in_parts: set[Hashable] = set()
        # Where the loop that runs took something that came so, the body that it stands in, and how many loops run.
        self._arrived: Site | None = None
        self._within: Frame | None = None
        self._loops = 0
        # In how many statements that catch exceptions that loop stands.
        self._caught_outside = 0
        # Where a generator gave something that came so.
        self._yielded: Site | None = None
        # Whether only the elements of something are taken.
        self._spreading = False
        # Whether what is gone through is that of a loop, in whose body it shows.
        self._in_rounds = False
        # The variables that hold what came last.
        self._last: set[tuple[Hashable, str]] = set()

    # -- what comes so ------------------------------------------------------------------------------------------------

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may give what comes when it is ready, or show in which order it came."""
        path = self.library.canonical(call.path)
        has = self.library.traits.has
        receiver = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
        if has(path, "takes-shared") and self._is_filled_by_several(call.receiver):
            self._arrives(call.site)
        is_told = receiver is not None and _name_of(call.receiver) in self._told
        gives = (has(path, "as-they-come") or is_told) and not self._come_in_order(call, receiver)
        tells = self._is_told_by(path, call.kwargs, "as-they-come")
        given = any(self._is_unordered(atom, call.state) for value in call.args for atom in value)
        carries = given and has(path, "keeps-order")
        of_owner = path.endswith(_PARTS) and self._is_unordered(call.receiver, call.state)
        self._shows_in_loop(path, call.args, call.site, (call.receiver, *only_atoms(call.kwargs.values())))
        keeps_some = self._keeps_some(call)
        if (keeps_some and given) or (self._arrived is not None and _name_of(call.receiver) in self._bounded):
            self._shows_arrival(call.site)
        if path == _SORTS and call.receiver is not None and self._sorts_apart(call, (call.receiver,)):
            self._unordered.discard(_name_of(call.receiver))
        elif self._arrived is not None and isinstance(receiver, Sequence | Dict):
            self._unordered.add(_name_of(call.receiver))
        by_key = given and path in _BY_KEY and "key" in call.kwargs and self._sorts_apart(call, call.args[0])
        self._asks_for_place(path, call)
        by_key = by_key or self._is_told_by(path, call.kwargs, "without-order") or self._sums_whole(path, call)
        ordered, self._orders = self._orders, self._orders or carries or by_key
        before = self._is_called_when_ready(call, path, receiver)
        results = super().library_call(call)
        self._orders, self._arrived = ordered, before
        for _, value in results if tells else ():
            self._told.update(map(_name_of, value))
        for _, value in results if keeps_some else ():
            self._bounded.update(map(_name_of, value))
        if path == _ITER and len(call.args) > 1 and self._takes_of_several(call.args[0]):
            # It takes as many as come before some last one.
            gives = True
        in_parts = gives and path.endswith(_WAIT)
        for _, value in results if (gives and not in_parts) or carries or of_owner else ():
            self._unordered.update(map(_name_of, value))
        if in_parts:
            self._in_parts.update(atom.sym for _, value in results for atom in value if isinstance(atom, Unknown))
        return results

    def _sums_whole(self, path: str, call: Call) -> bool:
        """Whether whole numbers are added up, which come to the same in whatever order."""
        if path != _SUM or not call.args:
            return False
        elements = self.element_of(only(call.args[0]) or Unknown(_SUM), call.state, ("element", call.site))
        return bool(elements) and all(map(_is_whole, (*elements, *(atom for start in call.args[1:] for atom in start))))

    def _is_told_by(self, path: str, kwargs: dict[str, Value], kind: str) -> bool:
        """Whether a function has a trait by a value that it is given by name."""
        return any(self.library.traits.has(f"{path}.{name}.{constant(value)}", kind) for name, value in kwargs.items())

    def _asks_for_place(self, path: str, call: Call) -> None:
        """A method of what came tells which element stands where, or takes the next one."""
        name = path.rpartition(".")[2]
        found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
        takes = name == "next" or (name in _TAKES and isinstance(found, LibraryObject))
        if not (takes or name in _TELLS_PLACE) or not self._is_unordered(call.receiver, call.state):
            return
        if takes:
            self._arrives(call.site)
        elif not self._orders:
            self._shows_arrival(call.site)

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared: two lists are so in their order."""
        super().compares(op, values, site, state)
        for atom in (atom for value in values for atom in value) if op in _IN_ORDER and not self._orders else ():
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, Sequence) and found.kind != "set" and self._is_unordered(atom, state):
                self._shows_arrival(site)

    def _sorts_apart(self, call: Call, value: Value) -> bool:
        """Whether elements are put in an order in which none of them is like another."""
        return "key" not in call.kwargs

    def _keeps_some(self, call: Call) -> bool:
        """Whether what is made keeps so many elements, and lets go of those that came first."""
        trait = self.library.traits.of(call.path, "keeps-some")
        if trait is None:
            return False
        most = call.args[trait.place] if trait.place is not None and len(call.args) > trait.place else NONE
        return call.kwargs.get("maxlen", most) != NONE

    def _is_called_when_ready(self, call: Call, path: str, receiver: object) -> Site | None:
        """A function is called when a task is done, and shows when that is; where this call came from before."""
        before = self._arrived
        if not self.library.traits.has(path, "calls-when-ready") or self._come_in_order(call, receiver):
            return before
        self._arrived = call.site
        called = [value for name, value in call.kwargs.items() if name in _CALLBACKS]
        for atom in (atom for value in called for atom in value):
            self._calls_when_ready(atom, call)
        if path.rpartition(".")[2] != _LATER:
            # Of the others it is the workers that run what they are given.
            self._arrived = before
        return before

    def _calls_when_ready(self, atom: Atom, call: Call) -> None:
        """A function is called with what a task has given."""
        if isinstance(atom, Lib):
            self._shows_in_loop(atom.path, [unknown("result", call.site)], call.site)
        else:
            self._speculate(atom, call.state, call.frame, call.site)

    def _come_in_order(self, call: Call, receiver: object) -> bool:
        """Whether there is one worker only, or one task: a set of tasks has an order of its own."""
        if isinstance(receiver, LibraryObject) and receiver.site in self._alone:
            return True
        if not self.library.traits.has(call.path, "as-they-come"):
            return False
        tasks = self.exact_items(call.args[0], call.state) if call.args else None
        return tasks is not None and len(tasks) < 2

    def _takes_of_several(self, value: Value) -> bool:
        """Whether a function takes what several processes put somewhere."""
        return any(isinstance(atom, Bound) and self._is_filled_by_several(atom.receiver) for atom in value)

    def _is_filled_by_several(self, atom: Atom | None) -> bool:
        """Whether several processes put something there at the same time, or into the other end of it."""
        return isinstance(atom, Ref) and not self._filled.isdisjoint(_ends_of(origin(atom)))

    def _is_unordered(self, atom: Atom | None, state: State) -> bool:
        if atom is None:
            return False
        found = state.get(atom) if isinstance(atom, Ref) else None
        if self._is_filled_by_several(atom) and isinstance(found, LibraryObject) and found.type != _QUEUE:
            return True
        if isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and atom.sym and atom.sym[0] in self._in_parts:
            return True
        return _name_of(atom) in self._unordered or (isinstance(found, LibraryObject) and _name_of(atom) in self._told)

    def _arrives(self, site: Site) -> None:
        """Something is taken that came when it was ready."""
        if self._orders:
            return
        if self._loops:
            self._arrived = self._arrived or site
        else:
            self._shows_arrival(site)

    def _shows_arrival(self, site: Site) -> None:
        self._asked.setdefault(Doubt(Why.ARRIVES, "", site))

    # -- what is gone through -----------------------------------------------------------------------------------------

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop: what has an order of its own shows it in the body."""
        if not self._orders and any(self._is_unordered(atom, state) for atom in value):
            self._arrives(site)
        outer, self._in_rounds = self._in_rounds, True
        rounds = super().iterate(value, state, frame, site, most)
        self._in_rounds = outer
        if self._arrived is not None:
            # Where they come in an order of their own, there are several.
            rounds = [(after, each * 2 if len(each) == 1 else each) for after, each in rounds]
        if self._yielded is not None and not self._orders:
            self._arrives(self._yielded)
        self._yielded = None
        return rounds

    def _iterates(self, atom: Atom, site: Site, state: State) -> None:
        super()._iterates(atom, site, state)
        if not self._in_rounds and not self._orders and self._is_unordered(atom, state):
            self._shows_arrival(site)

    def _is_given_sets(
        self, path: str, receiver: Atom | None, given: Iterable[Value], site: Site, state: State
    ) -> None:
        """What a library is given may have an order that shows; not so what it is only told to add to."""
        if self.library.traits.has(path, "calls-when-ready"):
            is_sent = path.rpartition(".")[2] != _LATER
            given = [
                value
                for place, value in enumerate(given)
                if not _adds_to_container(value, state) and ((is_sent and place == 0) or not _is_method(value, state))
            ]
        super()._is_given_sets(path, receiver, given, site, state)

    def spreads(self, value: Value, site: Site, state: State) -> None:
        """``*value``: its elements are taken in their order, and not what these hold."""
        outer, self._spreading = self._spreading, True
        super().spreads(value, site, state)
        self._spreading = outer

    def _takes_order(self, value: Value, site: Site, state: State) -> None:
        """All elements of a value are taken, with what they hold."""
        super()._takes_order(value, site, state)
        if self._unordered and not self._orders:
            for inner in value if self._spreading else visited(value, state):
                if _name_of(inner) in self._unordered:
                    self._shows_arrival(site)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``; which element that is depends on what came first."""
        for atom in value if not isinstance(constant(key), str) else ():
            found = state.get(atom) if isinstance(atom, Ref) else None
            listed = isinstance(found, LibraryObject) and found.fields.get("<kind>") == (Const("list"),)
            if (listed or isinstance(found, Sequence)) and self._is_unordered(atom, state):
                self._shows_arrival(site)
        return super().item(value, key, state, frame, site)

    def _for(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        arrived, within = self._enters_loop(frame)
        states = super()._for(node, state, frame)
        self._leaves_loop(arrived, within)
        return states

    def _while(self, node: ir.While, state: State, frame: Frame) -> list[State]:
        arrived, within = self._enters_loop(frame)
        states = super()._while(node, state, frame)
        self._leaves_loop(arrived, within)
        return states

    def _enters_loop(self, frame: Frame) -> tuple[Site | None, Frame | None]:
        before = self._arrived, self._within
        if self._arrived is None:
            self._within, self._caught_outside = frame, frame.tries
        self._loops += 1
        return before

    def _leaves_loop(self, arrived: Site | None, within: Frame | None) -> None:
        self._loops -= 1
        self._arrived, self._within = arrived, within

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression; what a comprehension makes of what comes has the order of that."""
        if isinstance(node, ir.Yield) and self._arrived is not None:
            self._yielded = self._arrived
        if not isinstance(node, ir.Comprehension):
            return super().eval(node, state, frame)
        arrived, within = self._enters_loop(frame)
        results = super().eval(node, state, frame)
        came = self._arrived is not None
        self._leaves_loop(arrived, within)
        if came:
            self._unordered.update(_name_of(atom) for _, value in results for atom in value)
        return results

    # -- what shows in a loop over what comes -------------------------------------------------------------------------

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        receiver = atom.receiver if isinstance(atom, Bound) else None
        self._shows_in_loop(path, given.args, given.site, (receiver, *only_atoms(given.kwargs.values())))
        ordered, self._orders = self._orders, self._orders or self._is_told_by(path, given.kwargs, "without-order")
        results = super()._foreign(path, atom, given)
        self._orders = ordered
        if self.library.traits.has(path, "as-they-come"):
            self._unordered.update(_name_of(made) for _, value in results for made in value)
        return results

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))):
                self._shows_in_loop(f"?.{name}", given.args, given.site, (Unknown(base),))
            case Unknown():
                self._shows_in_loop("?", given.args, given.site)
        for value in given.args if isinstance(atom, Unknown) else ():
            self._takes_order(value, given.site, given.state)
        return super()._call_atom(atom, given)

    def _shows_in_loop(self, path: str, args: Iterable[Value], site: Site, others: Iterable[Atom | None] = ()) -> None:
        """Something is shown, or given to a function of which nothing is known, in the order in which it came.

        ``others``: what the function is of, and what it is given by name.
        """
        if self._arrived is None or all(isinstance(atom, Const) for value in args for atom in value):
            return
        if any(map(self._is_of_one, (*others, *only_atoms(args)))):
            return
        effect: ProcessEffect | None = self.library.process_effect(path)
        if effect is None or effect.shows:
            self._shows_arrival(site)

    def _is_of_one(self, atom: Atom | None) -> bool:
        """Whether something is a file that nothing else that comes is written to."""
        return False

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement; what leaves a loop over what comes does so at whatever came."""
        if self._arrived is not None and self._is_left_by(node, frame):
            self._shows_arrival(self._arrived)
        return super().statement(node, state, frame)

    def _is_left_by(self, node: ir.Stmt, frame: Frame) -> bool:
        """Whether a statement leaves the loop; an exception does where the loop is not within what catches it."""
        match node:
            case ir.Break() | ir.Return():
                return frame is self._within
            case ir.Raise():
                return frame.tries <= self._caught_outside
        return False

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``, which may be what came last, where what has it is not what came itself."""
        is_settled = self._adds or all(map(_came, owner)) or all(isinstance(atom, Const) for atom in value)
        if self._arrived is not None and not is_settled:
            self._shows_arrival(site)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``: what it is found by does not depend on when it came, unless that is counted."""
        if self._arrived is not None:
            counted = isinstance(only(key), Const) or any(map(_is_counted, key))
            for atom in owner:
                if counted or not self._has_places(atom, state):
                    self._unordered.add(_name_of(atom))
            if isinstance(only(key), Const):
                self._shows_arrival(site)
        return super().set_item(owner, key, value, state, frame, site)

    def _has_places(self, atom: Atom, state: State) -> bool:
        """Whether something has its items where their keys say, and not in the order in which they came."""
        if isinstance(atom, Unknown):
            path = atom.sym[-1] if isinstance(atom.sym, tuple) and atom.sym[:1] == ("call",) else None
            return isinstance(path, str) and self.library.traits.has(path, "gives-host-data")
        return isinstance(atom, Tensor) or (isinstance(atom, Ref) and isinstance(state.get(atom), Sequence))

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        atom = only(left)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if self._arrived is not None and isinstance(found, Sequence):
            self._unordered.add(_name_of(atom))
        elif self._arrived is not None and not _comes_to_the_same(node.op, left, right):
            # A sum of numbers that are rounded depends on their order.
            self._shows_arrival(self._arrived)
        return super()._augmented(node, left, right, state)

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name; after a loop over what comes it holds what came last."""
        home = (self._home(name, state, frame.scope).address, name)
        if self._arrived is not None and not self._adds and not all(isinstance(atom, Const) for atom in value):
            self._last.add(home)
        elif self._arrived is None:
            self._last.discard(home)
        super().bind(name, value, state, frame)

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable; one that a loop over what comes has set is what came last."""
        if self._last and self._arrived is None and any(known == name for _, known in self._last):
            inner = scope
            while inner is not None and isinstance(found := state.get(inner), Scope):
                if name in found.variables:
                    if (inner.address, name) in self._last:
                        self._asked.setdefault(Doubt(Why.ARRIVES, name, Site("", 0)))
                    break
                inner = found.parent
        return super().lookup(name, state, scope)


def _adds_to_container(value: Value, state: State) -> bool:
    """Whether a value is a method of a container, as ``results.append`` is."""
    match only(value):
        case Bound(function=Lib(), receiver=Ref() as held):
            return isinstance(state.get(held), Sequence | Dict)
    return False


def _is_method(value: Value, state: State) -> bool:
    """Whether a value is a method of the program's: what is only called shows what its code shows."""
    match only(value):
        case Bound(function=Ref() as function):
            return isinstance(state.get(function), Closure)
    return False


def only_atoms(values: Iterable[Value]) -> Iterator[Atom]:
    """What values are, each of which is one thing."""
    return (atom for value in values if (atom := only(value)) is not None)


def _came(part: Hashable) -> bool:
    """Whether something is, or is part of, what a worker gave."""
    match part:
        case Unknown(sym=sym):
            return _came(sym)
        case ("result" | "received", *_):
            return True
        case (tuple(base), "[]" | ".", _):
            return _came(base)
    return False


def _ends_of(place: Hashable) -> set[Hashable]:
    """Where something is put that is taken at a place: there, or at the other end of a pipe."""
    match place:
        case (("pipe", site, int(end)), count, of):
            return {place, (("pipe", site, 1 - end), count, of)}
    return {place}


def _comes_to_the_same(op: str, left: Value, right: Value) -> bool:
    """Whether an operator gives the same in whatever order the rounds use it: with a constant, or of whole numbers."""
    is_constant = all(isinstance(atom, Const) for atom in right)
    return is_constant or (op in _OF_WHOLE_NUMBERS and all(map(_is_whole, (*left, *right))))


def _is_whole(atom: Hashable) -> bool:
    """Whether a number is seen to be whole, and so is not rounded."""
    match atom:
        case Const(value=int()) | Unknown(sym=("int" | "len", *_)):
            return True
        case Unknown(sym=(("aug" | "bin" | "round", *_), *_)):
            values = [value for value in rest_of(atom.sym, 1) if not isinstance(value, str)]
            return all(isinstance(value, tuple) and all(map(_is_whole, value)) for value in values)
    return False


def _is_counted(atom: Atom) -> bool:
    """Whether a key is a number that the program counts up, and not one that tells what something is about."""
    match atom:
        case Unknown(sym=(("aug" | "bin" | "round", *_), *_)):
            return True
    return False


def _name_of(atom: Atom | None) -> Hashable:
    return atom.address if isinstance(atom, Ref) else atom
