"""Memory that is let go: what a finished call allocated and nothing refers to any more leaves its path's heap.

Only objects that were allocated since the call began are looked at, from what could have come to refer to them since:
the call's result, older objects it wrote, and the process. So collecting costs what the call allocated and wrote. The
heap of a path stays as small as what the program could still use, two paths do not stay apart for the sake of variables
of calls that are over, and an address means the same however often the code ran before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.frame import Raised, Results
from cudalint.machine.heap import (
    Cache,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.questions import Either
from cudalint.machine.state import FrozenHeap, Journal, State
from cudalint.machine.values import (
    Atom,
    Bound,
    Const,
    Deferred,
    Member,
    Other,
    Partial,
    Ref,
    Super,
    Task,
    Unknown,
    Value,
    wrapped,
)


def begin(state: State, frame: Ref | None = None) -> Journal:
    """What a path allocates and writes from here on is noted by itself; the result notes it.

    The variables of the call, in ``frame``, are the call's own although its arguments were bound before it began.
    """
    state.freeze()
    outer = state.journal
    state.journal = Journal(outer, FrozenHeap(state.frozen, state.frozen_counts, state.layer))
    if frame is not None and frame.address in outer.fresh and isinstance(frame.address, tuple):
        outer.fresh.discard(frame.address)
        state.journal.fresh.add(frame.address)
        state.journal.floors[frame.address[0]] = frame.address[1]
    return state.journal


def end(
    results: Results,
    raised: Iterable[tuple[State, Raised]],
    inner: Journal,
    reserved: Iterable[Hashable],
    whole: bool = True,
) -> None:
    """A call is over that ``inner`` noted: what only it could use is dropped from the paths that leave it.

    The addresses in ``reserved`` are not given to other objects. A call that ran code of its caller within it
    (``whole`` is False) may have been given objects that its caller holds: these are left for the caller's end.
    """
    outer = inner.outer
    assert outer is not None
    leaving: dict[int, tuple[State, list[Value]]] = {}
    for state, value in (*results, *((state, exception.value) for state, exception in raised)):
        leaving.setdefault(id(state), (state, []))[1].append(value)
    for state, _ in leaving.values():
        if state.journal is not inner and state.journal.lies_in(inner):
            inner.absorb(state.journal)
    kept: set[Hashable] = set()
    for state, values in leaving.values():
        if not whole or not state.journal.lies_in(inner):
            kept |= inner.fresh
        elif inner.fresh:
            kept |= _collect(state, values, inner, reserved)
        state.journal = outer
    outer.fresh |= kept
    outer.written |= inner.written
    for site, count in inner.floors.items():
        outer.floors.setdefault(site, count)


def end_import(states: Iterable[State], inner: Journal, reserved: Iterable[Hashable]) -> None:
    """A module has run: what it left is there for good, and no end of a call has to look at it."""
    outer = inner.outer
    assert outer is not None
    for state in states:
        if state.journal.lies_in(inner):
            inner.absorb(state.journal)
            _collect(state, [], inner, reserved)
        state.journal = outer
    outer.written |= inner.written


def _collect(state: State, values: list[Value], journal: Journal, reserved: Iterable[Hashable]) -> set[Hashable]:
    """Drop what cannot be reached any more; the result is what can."""
    if len(journal.fresh) == 1 and _is_left_frame(state, journal):
        state.drop(journal.fresh, journal.frozen)
        _free(state, journal.fresh, journal, set(reserved))
        return set()
    mark = _Mark(state, journal, set(reserved))
    mark.run(values)
    dead = [address for address in journal.fresh if address not in mark.live]
    state.drop(dead, journal.frozen)
    _free(state, dead, journal, mark.reserved)
    return mark.live


def _is_left_frame(state: State, journal: Journal) -> bool:
    """Whether all that a call made is its own variables, and nothing that it changed could see these."""
    (address,) = journal.fresh
    if not isinstance(address, tuple) or not isinstance(address[0], tuple) or address[0][0] != "frame":
        return False
    return not any(isinstance(state.at(changed), _SEEING) for changed in journal.written if changed != address)


# What sees the variables of a call that it was made in. Bodies of modules and classes that changed do not.
_SEEING = Closure | Class | Generator


def _free(state: State, dead: Iterable[Hashable], journal: Journal, reserved: set[Hashable]) -> None:
    """Addresses that nothing knows any more may be given to other objects."""
    free = set(dead)
    identity = state.process.identity
    for site in {address[0] for address in free if isinstance(address, tuple)}:
        floor = journal.floors.get(site, 0)
        count = before = state.counts.get(site, state.frozen_counts.get(site, 0))
        while count > floor:
            address = (site, count - 1, identity)
            if address in reserved or (address not in free and state.at(address) is not None):
                break
            count -= 1
        if count != before:
            state.counts[site] = count


def is_held(state: State, ref: Ref) -> bool:
    """Whether anything on the heap of a path, or its process, still leads to an object."""
    mark = _Mark(state, Journal(fresh={ref.address}), set())
    for found in state.objects():
        mark.look_into(found)
    for value in _held(state):
        mark.follow(value)
    return ref.address in mark.live


class _Mark:
    """Finds the objects that a call allocated and that can still be reached, and the addresses that unknowns name."""

    __slots__ = ("fresh", "journal", "live", "pending", "reserved", "state", "walked")

    def __init__(self, state: State, journal: Journal, reserved: set[Hashable]) -> None:
        self.state = state
        self.journal = journal
        self.fresh = journal.fresh
        self.live: set[Hashable] = set()
        self.reserved = reserved
        self.pending: list[Object] = []
        self.walked: set[int] = set()

    def run(self, values: list[Value]) -> None:
        """Start from these values and from all that older objects, the process and assumptions may hold."""
        state = self.state
        for address in self.journal.written:
            if address not in self.fresh and (found := state.at(address)) is not None:
                self.pending.append(found)
        for value in values:
            self._value(value)
        for value in _held(state):
            self._value(value)
        self.reserved.update(*_named_by_facts(state))
        for sym in state.placed:
            self._sym(sym)
        while self.pending:
            self._object(self.pending.pop())

    def look_into(self, found: Object) -> None:
        """Note what one object leads to."""
        self._object(found)

    def follow(self, value: Value) -> None:
        """Note what a value leads to."""
        self._value(value)

    def _object(self, found: Object) -> None:
        match found:
            case Scope(variables=names, parent=parent):
                self._values(names.values())
                self._ref(parent)
            case Instance(cls=cls, attributes=names):
                self._values(names.values())
                self._ref(cls)
            case LibraryObject(fields=names):
                self._values(names.values())
            case Sequence(items=items, element=element):
                self._values(items or ())
                self._value(element)
            case Dict(items=items, element=element, factory=factory, view=view):
                for key, value in items.items():
                    self._key(key)
                    self._value(value)
                self._value(element)
                self._value(factory)
                self._ref(view)
            case Closure(scope=scope, defaults=defaults, owner=owner, cache=cache, setter=setter):
                self._values(value for _, value in defaults)
                for ref in (scope, owner, cache, setter, found.own, *found.managed):
                    self._ref(ref)
            case Class(bases=bases, scope=scope, fields=fields, meta=meta):
                self._values(bases)
                self._values(value for _, value in fields if value is not None)
                self._value(meta)
                self._ref(scope)
            case Generator(closure=closure, scope=scope):
                self._ref(closure)
                self._ref(scope)
            case Cache(results=results):
                for key, value in results.items():
                    self._key(key)
                    self._value(value)

    def _values(self, values: Iterable[Value]) -> None:
        for value in values:
            for atom in value:
                self._atom(atom)

    def _value(self, value: Value) -> None:
        for atom in value:
            self._atom(atom)

    def _ref(self, ref: Ref | None) -> None:
        if ref is None or ref.address not in self.fresh or ref.address in self.live:
            return
        self.live.add(ref.address)
        found = self.state.at(ref.address)
        if found is not None:
            self.pending.append(found)

    def _atom(self, atom: Atom) -> None:
        match atom:
            case Ref():
                self._ref(atom)
            case Const(value=value, member=member):
                self._key(value)
                self._ref(member.cls if member is not None else None)
            case Other(than=value):
                self._key(value)
            case Unknown():
                self._sym(atom)
                inner = wrapped(atom)
                if inner is not None:
                    self._atom(inner)
            case Bound(function=function, receiver=receiver):
                self._atom(function)
                self._atom(receiver)
            case (
                Partial(function=function, args=args, kwargs=kwargs) | Task(function=function, args=args, kwargs=kwargs)
            ):
                self._value(function)
                self._values(args)
                self._values(value for _, value in kwargs)
            case Super(cls=cls, receiver=receiver):
                self._atom(cls)
                self._atom(receiver)
            case Deferred(covered=Ref() as covered):
                self._ref(covered)

    def _key(self, key: Hashable) -> None:
        """What a constant or the key of a dict is made of."""
        match key:
            case str() | int() | float() | None:
                return
            case Ref():
                self._ref(key)
            case Member(value=value, cls=cls):
                self._value(value)
                self._ref(cls)
            case Const() | Unknown() | Bound() | Partial() | Task() | Super() | Other():
                self._atom(key)
            case tuple():
                for part in key:
                    self._key(part)

    def _sym(self, sym: Hashable) -> None:
        """What an unknown is known by: an object that is named there may be gone, but no other may take its place."""
        _note_named(sym, self.reserved, self.walked)


def _named_by_facts(state: State) -> Iterator[frozenset[Hashable]]:
    """The addresses that are named in what a path assumes, each question of which is looked through once."""
    known = state.named
    for sym, _ in state.facts:
        found = known.get(id(sym))
        if found is None:
            named: set[Hashable] = set()
            _note_named(sym, named, set())
            found = known[id(sym)] = (sym, frozenset(named))
        yield found[1]


def _note_named(sym: Hashable, named: set[Hashable], walked: set[int]) -> None:
    """Note the addresses that the identity of an unknown names, or what may be one; ``walked`` was looked through."""
    stack = [sym]
    while stack:
        part = stack.pop()
        if isinstance(part, Unknown) and part.parts:
            named |= part.named
            continue
        # What unknowns are made of they share: a sum of sums is small, written out it has no end.
        if id(part) in walked:
            continue
        walked.add(id(part))
        if isinstance(part, tuple):
            if len(part) == 3 and isinstance(part[1], int):
                named.add(part)
            stack.extend(p for p in part if type(p) in _NAMING)
            continue
        match part:
            case Ref(address=address) | Bound(receiver=Ref(address=address)):
                named.add(address)
            case Unknown(sym=inner) | Const(value=inner):
                stack.append(inner)
            case Either(one=one, other=other):
                stack.extend((one[0], other[0]))


# What the identity of an unknown may name objects with; a ``Site`` names none.
_NAMING = frozenset({tuple, Ref, Unknown, Const, Bound})


def _held(state: State) -> Iterator[Value]:
    """The values that a process keeps."""
    process = state.process
    for _, value in process.environment:
        yield value
    for context in process.contexts:
        yield context.visible
    yield process.joblib_backend
    yield process.visible_choice
    yield process.seen
    yield process.joblib_jobs
