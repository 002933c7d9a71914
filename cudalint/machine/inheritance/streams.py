"""What a loop is given by workers as it goes: what it changes meanwhile, a loop in one process would have shown them.

Workers have what there was when they began, or when they were handed it; which of their tasks that was before the
change, differs from run to run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Class, Closure, Generator, Instance, Scope
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.inheritance.reads import variable
from cudalint.machine.inheritance.recomputing import Recomputing
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import Pickler, captured, inside_of, reached
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, Value
from cudalint.structs import Frozen, replace


class Stream(Frozen):
    """Workers that give as they are asked, and what they read: variables of modules, and objects."""

    anchor: Site
    reads: frozenset[Hashable]


class Streams(Recomputing):
    """A machine that notes what loops over what workers give change of what these read."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Those that began, those that the loops go through that run, and how many began before what the innermost goes
        # through was asked for.
        self._begun_streams: list[Stream] = []
        self._flowing: list[Stream] = []
        self._begun_before = 0
        # Those of what is gone through more than once, or taken from one by one; those of which something was changed.
        self._streams_of: dict[Hashable, list[Stream]] = {}
        self._taken_from: list[Stream] = []
        self._disturbed: set[Stream] = set()

    def _streams_from(self, watch: Watch) -> None:
        """The worker that has ended gives what it has when it is asked for that."""
        if not watch.launch.waits:
            self._begun_streams.append(Stream(watch.launch.anchor, frozenset(_read_by(watch))))

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may begin workers, or take what they give."""
        before, does = len(self._begun_streams), call.text("does")
        draws = self.library.traits.has(self.library.canonical(call.path), "draws-later")
        drawn = frozenset(_drawn_from(call.args, call.state) if draws else ())
        results = super().library_call(call)
        begun = self._begun_streams[before:]
        if drawn:
            self._begun_streams[before:] = [replace(stream, reads=stream.reads | drawn) for stream in begun]
        if does == "iter":
            self._taken_from.extend(begun)
        elif does == "next" and not self._is_started(call.state):
            self._finds_disturbed(self._taken_from)
        return results

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop: workers that are kept have what there was when they began."""
        before = len(self._begun_streams)
        rounds = super().iterate(value, state, frame, site, most)
        begun = self._begun_streams[before:]
        for address in (atom.address for atom in value if isinstance(atom, Ref)):
            if begun:
                self._streams_of[address] = begun
            elif not self._is_started(state):
                self._finds_disturbed(self._streams_of.get(address, ()))
        return rounds

    def _finds_disturbed(self, streams: Iterable[Stream]) -> None:
        for stream in self._disturbed.intersection(streams):
            self._asked.setdefault(Doubt(Why.LATER, "", stream.anchor))

    def _for(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        outer, self._begun_before = self._begun_before, len(self._begun_streams)
        states = super()._for(node, state, frame)
        self._begun_before = outer
        return states

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
        flowing, self._flowing = self._flowing, [*self._flowing, *self._begun_streams[self._begun_before :]]
        states = super()._rounds(node, rounds, few, state, iterable, frame, is_whole)
        self._flowing = flowing
        return states

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        if self._begun_streams and not self._is_started(state):
            self._disturbed.update(stream for stream in self._begun_streams if address in stream.reads)
            self._finds_disturbed(stream for stream in self._flowing if address in stream.reads)
        super()._stores_into(address, site, state, lossy)


def held(value: Value, state: State) -> Iterator[Atom]:
    """All that a variable leads to: functions keep defaults and what they close over, classes their attributes."""

    def inside(atom: Atom) -> Iterable[Value]:
        match state.get(atom) if isinstance(atom, Ref) else None:
            case Closure() as function:
                return captured(function, state, Pickler.LOCALS)
            case Class(scope=scope, bases=bases):
                body = state.get(scope)
                return [*bases, *(body.variables.values() if isinstance(body, Scope) else ())]
            case Instance(cls=cls):
                return [(cls,), *inside_of(atom, state)]
        return inside_of(atom, state)

    return reached(value, inside)


def _drawn_from(given: Iterable[Value], state: State) -> Iterator[Hashable]:
    """What a generator that is gone through beside the program reads of what there was before it."""
    for atom in (atom for value in given for atom in value):
        found = state.get(atom) if isinstance(atom, Ref) else None
        made = state.get(found.closure) if isinstance(found, Generator) else None
        for value in captured(made, state) if isinstance(made, Closure) else ():
            yield from (inner.address for inner in held(value, state) if isinstance(inner, Ref))


def _read_by(watch: Watch) -> Iterator[Hashable]:
    parent = watch.launch.parent
    found = list(watch.launch.given)
    for module, name in watch.reads:
        yield ("module", module), name
        found.append(variable(parent, module, name))
    for atom in (atom for value in found for atom in held(value, parent)):
        if isinstance(atom, Ref):
            yield atom.address
            made = parent.get(atom)
            if isinstance(made, Class):
                yield made.scope.address
