"""What loops go through: sets, whose order differs, and iterators, which are used up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Around, Call, Frame, Results, Steps
from cudalint.machine.heap import Dict, Generator, Instance, LibraryObject, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.stores import Stores
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import reachable
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Const, Ref, Value, constant, integer, only, union, unknown
from cudalint.structs import replace

# What makes an iterator, which is used up by what takes elements from it.
ITERATING = frozenset(
    {
        "iter", "zip", "map", "starmap", "filter", "enumerate", "chain", "groups", "repeat", "product", "islice",
        "cycle",
    }
)  # fmt: skip
# Functions that give the same whatever the order of what they iterate.
WITHOUT_ORDER = frozenset(
    {
        "builtins.sorted", "builtins.len", "builtins.max", "builtins.min", "builtins.any", "builtins.all",
        "builtins.set", "builtins.frozenset", "builtins.set.update", "builtins.set.add", "builtins.list.update",
        "math.fsum",
    }
)  # fmt: skip
# Functions that look at no element of what they are given.
_WITHOUT_ELEMENTS = frozenset(
    {
        "builtins.isinstance", "builtins.type", "builtins.bool", "builtins.id", "builtins.callable", "builtins.getattr",
        "builtins.setattr", "builtins.hasattr", "copy.copy", "copy.deepcopy", "builtins.issubclass",
    }
)  # fmt: skip
# Operators of sets, which views of dicts have too.
_OF_SETS = frozenset({"|", "&", "-", "^"})
_COROUTINE = "cudalint.coroutine"
# Libraries whose functions run the coroutines that they are given.
_WAIT_FOR_COROUTINES = frozenset({"asyncio", "anyio", "trio", "uvloop"})


class Iteration(Stores):
    """A machine that knows what is iterated in an order of its process, at another time, or once only."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The addresses of iterators, and those of views of dicts, which no pickler takes.
        self._iterators: set[Hashable] = set()
        self._views: set[Hashable] = set()
        # By iterator or view, what it goes through: what is in that later is in it, too.
        self._sources: dict[Hashable, tuple[Ref, ...]] = {}
        # The addresses of mappings of which only a view was asked for: those of classes, and of what wraps a dict.
        self._proxies: set[Hashable] = set()
        # How many loops are run that may make more rounds than these.
        self._open_loops = 0
        # Whether what runs does not look at the order of what it iterates.
        self._orders = False
        # Where the program itself calls a coroutine, and whether its code is what runs, not that of a library.
        self._coroutines: set[Site] = set()
        self._runs_code = True

    def _passes(self, value: Value, state: State) -> bool:
        """Whether something holds an iterator or a view, which are seen as lists and dicts here."""
        passing = self._iterators | self._views | self._proxies
        return any(ref.address in passing for ref in reachable(value, state))

    def library_call(self, call: Call) -> Results:
        """A call of a library; a range that begins somewhere gives numbers of which none is known."""
        results = super().library_call(call)
        begins = call.args[0] if len(call.args) > 1 and self.library.canonical(call.path) == "builtins.range" else None
        if begins is None or integer(begins) is not None:
            return results
        for state, value in results:
            made = only(value)
            found = state.get(made) if isinstance(made, Ref) else None
            if isinstance(made, Ref) and isinstance(found, Sequence):
                each = unknown("each", call.site, begins)
                state.store(made, replace(found, items=(each, each), open=True))
        return results

    def consume(
        self,
        ref: Ref,
        generator: Generator,
        state: State,
        frame: Frame,
        around: Around | None = None,
        sent: Value | None = None,
    ) -> Results:
        """Run a generator at its first consumer; what it changes between two elements is unknown."""
        self._late += around is None
        results = super().consume(ref, generator, state, frame, around, sent)
        self._late -= around is None
        return results

    def step_of(self, ref: Ref, generator: Generator, state: State, frame: Frame, sent: Value, steps: Steps) -> Results:
        """Run a generator up to its next ``yield``; what it changes by then is unknown."""
        self._late += 1
        results = super().step_of(ref, generator, state, frame, sent, steps)
        self._late -= 1
        return results

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression; the elements of a generator are made later."""
        late = isinstance(node, ir.Comprehension) and node.kind == "generator"
        self._late += late
        results = super().eval(node, state, frame)
        self._late -= late
        match node:
            case ir.Await():
                return [(after, _given_by(value, after)) for after, value in results]
            case ir.Call() if (site := Site(frame.module, node.ordinal)) in self._coroutines:
                return [(after, self._coroutine(value, after, site)) for after, value in results]
        return results

    def _coroutine(self, value: Value, state: State, site: Site) -> Value:
        """What the call of a coroutine gives until it is awaited: no pickler takes it."""
        made = state.new((_COROUTINE, site), LibraryObject(_COROUTINE, {"value": value}, site))
        self._views.add(made.address)
        return (made,)

    def _awaiting(self, call: Call) -> Call:
        """A call with what the coroutines give that it is given, where that waits for them."""
        if call.path.partition(".")[0] not in _WAIT_FOR_COROUTINES:
            return call
        return replace(call, args=[_given_by(value, call.state) for value in call.args])

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop; those over a set come in an order of their own in each fresh process.

        Where there are more than are run, the numbers and texts of the later ones are any. Few are run in any case.
        """
        if not self._orders:
            for atom in value:
                self._iterates(atom, site, state)
        exact = self.exact_items(value, state)
        made = []
        for after, rounds in super().iterate(value, state, frame, site):
            if len(rounds) > 1 and (exact is None or len(exact) != len(rounds)):
                later = [_of_any_round(each, after, site) for each in rounds[1:]]
                rounds = [rounds[0], *later, later[-1]]
            made.append((after, rounds))
        return made

    def _rounds(
        self,
        node: ir.For,
        rounds: list[Value],
        few: list[Value],
        state: State,
        iterable: Value,
        frame: Frame,
        is_whole: bool = False,
    ) -> list[State]:
        goes_on = not is_whole and self.goes_on(iterable, few, state)
        self._open_loops += goes_on
        states = super()._rounds(node, rounds, few, state, iterable, frame, is_whole)
        self._open_loops -= goes_on
        return states

    def _while(self, node: ir.While, state: State, frame: Frame) -> list[State]:
        self._open_loops += 1
        states = super()._while(node, state, frame)
        self._open_loops -= 1
        return states

    def grows_on(self, ref: Ref) -> bool:
        """Whether a container that is made larger here is so in more rounds of a loop than are run."""
        return self._open_loops > 0 or super().grows_on(ref)

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name; what differs from round to round of a loop is any."""
        if self._open_loops and state.second_round:
            before = self.lookup(name, state, frame.scope)
            if before is not None:
                value = _of_later_round(before, value, state, ("round", frame.module, name))
        super().bind(name, value, state, frame)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``; what differs from round to round of a loop is any."""
        if self._open_loops and state.second_round:
            for atom in owner:
                found = state.get(atom) if isinstance(atom, Ref) else None
                before = found.attributes.get(attr) if isinstance(found, Instance) else None
                if before is not None:
                    value = _of_later_round(before, value, state, ("round", site, attr))
        return super().set_attribute(owner, attr, value, state, frame, site)

    def spreads(self, value: Value, site: Site, state: State) -> None:
        """``*value``: a set gives its elements in an order of its own in each fresh process."""
        self._takes_order(value, site, state)

    def _takes_order(self, value: Value, site: Site, state: State) -> None:
        for atom in value:
            self._iterates(atom, site, state)

    def _unpack(
        self, items: tuple[ir.Expr, ...], value: Value, state: State, frame: Frame, ordinal: int
    ) -> list[State]:
        self.spreads(value, Site(frame.module, ordinal), state)
        return super()._unpack(items, value, state, frame, ordinal)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``, which may be ``owner[:] = value``."""
        atom = only(owner)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and not isinstance(constant(key), int):
            self.spreads(value, site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def _is_given_sets(
        self, path: str, receiver: Atom | None, given: Iterable[Value], site: Site, state: State
    ) -> None:
        """A function of a library that is given a set may go through it; what a set gives up is any element."""
        if path.endswith(".pop") and receiver is not None:
            self._iterates(receiver, site, state)
        if path in _WITHOUT_ELEMENTS or path.startswith(("builtins.set.", "builtins.frozenset.", "builtins.list.")):
            return
        for value in given if not self._orders else ():
            self._takes_order(value, site, state)

    def _iterates(self, atom: Atom, site: Site, state: State) -> None:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Sequence) or found.kind != "set":
            return
        items = (*(found.items or ()), found.element)
        if all(isinstance(a, Const) and isinstance(a.value, int | float) for value in items for a in value):
            return
        for watch in self._watches:
            if state.process.identity[: len(watch.launch.identity)] == watch.launch.identity:
                watch.doubts.setdefault(Doubt(Why.ORDER, "", site))

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        """``x += y``, which puts the elements of a set into a list."""
        found = [state.get(atom) for atom in left if isinstance(atom, Ref)]
        if any(isinstance(obj, Sequence) and obj.kind != "set" for obj in found):
            self.spreads(right, Site("", node.ordinal), state)
        made = super()._augmented(node, left, right, state)
        grown = only(made)
        longer = state.get(grown) if isinstance(grown, Ref) and self._open_loops else None
        if isinstance(grown, Ref) and isinstance(longer, Sequence):
            state.store(grown, replace(longer, open=True))
        return _of_some_round(made, state, ("aug", node.ordinal), node.op, left, right)

    def _is_set(self, atom: Atom, state: State) -> bool:
        """Whether something is a set, or a view of a dict, of which operators make sets."""
        if not isinstance(atom, Ref):
            return False
        found = state.get(atom)
        return isinstance(found, Sequence) and (found.kind == "set" or atom.address in self._views)

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        if op in _OF_SETS and any(self._is_set(atom, state) for atom in (*left, *right)):
            parts = [*self.elements(left, state), *self.elements(right, state)]
            made = Sequence("set", None, union(parts) or unknown("element", Site(frame.module, ordinal)))
            return (state.new(("set", frame.module, ordinal), made),)
        made_of = super()._combine(op, left, right, state, frame, ordinal)
        return _of_some_round(made_of, state, ("bin", frame.module, ordinal), op, left, right)


def _of_some_round(made: Value, state: State, site: Hashable, op: str, left: Value, right: Value) -> Value:
    """What a loop computes: a number of its second round stands for those of all that follow."""
    if state.second_round and isinstance(constant(made), int | float) and constant(made) is not ...:
        return unknown(site, op, left, right)
    return made


def _of_any_round(value: Value, state: State, site: Site) -> Value:
    """What a loop goes through in a later round: numbers and texts, also in a pair, are those of many rounds."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Sequence) and found.kind == "tuple" and found.items is not None:
        items = tuple(_of_any_round(item, state, site) for item in found.items)
        return (state.new(("round", site), replace(found, items=items)),)
    return unknown("each", site, value) if value and all(isinstance(a, Const) for a in value) else value


def _of_later_round(before: Value, value: Value, state: State, site: Hashable) -> Value:
    """What a round of a loop makes of something that an earlier round has made."""
    if before == value:
        return value
    if all(isinstance(a, Const) for a in (*before, *value)):
        return unknown(site, before, value)
    old, new = only(before), only(value)
    one, two = (state.get(atom) if isinstance(atom, Ref) else None for atom in (old, new))
    match old, new, one, two:
        case Ref(), Ref(), Sequence(items=earlier), Sequence(items=tuple(later)):
            state.store(new, replace(two, open=two.open or earlier is None or len(earlier) != len(later)))
        case Ref(), Ref(), Dict(items=earlier), Dict(items=later):
            state.store(new, replace(two, exact=two.exact and earlier.keys() == later.keys()))
    return value


def as_set(value: Value, state: State) -> None:
    """A frozenset is one, although what iterates it otherwise need not know."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Sequence):
        state.store(atom, replace(found, kind="set"))


def _given_by(value: Value, state: State) -> Value:
    """What is awaited, where that is the call of a coroutine; all else as it is."""
    found: dict[Atom, None] = {}
    for atom in value:
        made = state.get(atom) if isinstance(atom, Ref) else None
        given = made.fields["value"] if isinstance(made, LibraryObject) and made.type == _COROUTINE else (atom,)
        found.update(dict.fromkeys(given))
    return tuple(found)
