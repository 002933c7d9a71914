"""What is read later than it is handed over: by the thread of a queue, a pool or an executor, beside the program.

A queue pickles what it was given when its thread comes to it, and ``imap()`` draws what it goes through, while the
program goes on. What that changes by then travels or not, as it happens; fresh processes take longer to begin.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Dict, Generator, Instance, LibraryObject, Object, Scope, Sequence
from cudalint.machine.inheritance.closing import Closing
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.iteration import ITERATING
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import reachable, visited
from cudalint.machine.state import Act, Handed, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Tensor, Unknown, Value
from cudalint.models.library import ProcessEffect
from cudalint.structs import Mutable, replace

# Whose functions give arrays.
_OF_ARRAYS = ("numpy.", "torch.")


class Drawing(Mutable):
    """Elements that are made for somebody: in which state that began, what they are made of, and whether that shows."""

    before: State
    of: frozenset[Hashable]
    shows: bool = False


class Handing(Closing):
    """A machine that notes what a program changes that it has handed over, and what shows of elements made later."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._drawings: list[Drawing] = []
        # The iterators of which the elements are made by something that shows; those that a pool goes through itself.
        self._showing: set[Hashable] = set()
        self._drawn: dict[Hashable, Site] = {}

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may hand something over, or wait until that was taken."""
        path, traits = self.library.canonical(call.path), self.library.traits
        draws = traits.has(path, "draws-later")
        if not draws and not traits.has(path, "reads-later"):
            if traits.has(path, "awaits"):
                self._taken(call.state)
            results = self._made_by(call) if call.text("does") in ITERATING else super().library_call(call)
            self._renews(results)
            return results
        given = (*call.args, *call.kwargs.values())
        held = dict(self._held_by(given, call.state))
        arrays = [atom for value in given for atom in visited(value, call.state) if self._gives_array(atom)]
        with self._drawing(call.state, held) as drawing:
            results = super().library_call(call)
        if draws and (drawing.shows or not self._showing.isdisjoint(held)):
            self._asked.setdefault(Doubt(Why.LATER, "", call.site))
        for address in held if draws else ():
            self._drawn[address] = call.site
        for after, value in results:
            until = frozenset(atom.address for atom in value if isinstance(atom, Ref))
            there = ((address, after.at(address)) for address in held)
            given_now = {Handed(address, call.site, until, thing) for address, thing in there if thing is not None}
            given_now |= {Handed(atom, call.site, until, None) for atom in arrays}
            kept = {handed for handed in after.process.handed if handed.address not in held}
            after.process = replace(after.process, handed=frozenset(kept | given_now))
        return results

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        results = super()._foreign(path, atom, given)
        self._renews(results)
        return results

    def _renews(self, results: Results) -> None:
        """What a call gives is another array than one that was handed over, which it looks like."""
        for after, value in results:
            if any(handed.address in value for handed in after.process.handed):
                kept = frozenset(handed for handed in after.process.handed if handed.address not in value)
                after.process = replace(after.process, handed=kept)

    def _held_by(self, given: Iterable[Value], state: State) -> Iterator[tuple[Hashable, Object]]:
        """All that what is handed over leads to and that may change; a generator holds its variables."""
        for ref in (ref for value in given for ref in reachable(value, state)):
            found = state.get(ref)
            if isinstance(found, Generator):
                yield ref.address, found
                scope = state.get(found.scope)
                inside = scope.variables.values() if isinstance(scope, Scope) else ()
                yield from self._held_by(inside, state)
            elif isinstance(found, Instance | Dict) or (isinstance(found, Sequence) and found.kind != "tuple"):
                yield ref.address, found

    def _gives_array(self, atom: Atom) -> bool:
        match atom:
            case Unknown(sym=("call", _, _, _, str(path), *_)):
                return path.startswith(_OF_ARRAYS)
        return isinstance(atom, Tensor)

    # -- what is changed later ----------------------------------------------------------------------------------------

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        for handed in state.process.handed:
            if handed.address == address and state.at(address) is handed.thing:
                self._asked.setdefault(Doubt(Why.LATER, "", handed.site))
        for drawing in self._drawings:
            owner = address[0] if isinstance(address, tuple) and len(address) == 2 else address
            was_there = drawing.before.at(address) is not None or drawing.before.at(owner) is not None
            self._shows_when_drawn(drawing, was_there and address not in drawing.of, state)
        super()._stores_into(address, site, state, lossy)

    def _writes_array(self, state: State, of: Iterable[Atom] = ()) -> None:
        super()._writes_array(state, of)
        written: set[Hashable] = set(of)
        for handed in state.process.handed:
            if handed.thing is None and handed.address in written:
                self._asked.setdefault(Doubt(Why.LATER, "", handed.site))

    def _taken(self, state: State) -> None:
        """The program waited for a worker, which has got what it was handed."""
        if state.process.handed:
            state.process = replace(state.process, handed=frozenset())

    def _let_go(self, keys: Iterable[Hashable], state: State) -> None:
        over = frozenset(keys)
        if state.process.handed and over:
            kept = frozenset(handed for handed in state.process.handed if not handed.until & over)
            state.process = replace(state.process, handed=kept)
        super()._let_go(over, state)

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__()``: of a pool nothing goes on after that."""
        if any(isinstance(atom, Ref) and isinstance(state.get(atom), LibraryObject) for atom in manager):
            self._taken(state)
        return super().leave(manager, state, frame, site)

    # -- what is made later -------------------------------------------------------------------------------------------

    @contextmanager
    def _drawing(self, state: State, of: Iterable[Hashable]) -> Iterator[Drawing]:
        self._drawings.append(Drawing(state.clone(), frozenset(of)))
        yield self._drawings[-1]
        self._drawings.pop()

    def _shows_when_drawn(self, drawing: Drawing, shows: bool, state: State) -> None:
        drawing.shows |= shows and drawing.before.process.identity == state.process.identity

    def _made_by(self, call: Call) -> Results:
        """``map()`` and its like, which call functions when their elements are drawn."""
        with self._drawing(call.state, ()) as drawing:
            results = super().library_call(call)
        self._marks_made(drawing, results)
        return results

    def _marks_made(self, drawing: Drawing, results: Results) -> None:
        if drawing.shows:
            self._showing.update(atom.address for _, value in results for atom in value if isinstance(atom, Ref))

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression; the elements of a generator are made when they are drawn."""
        if not isinstance(node, ir.Comprehension) or node.kind != "generator":
            return super().eval(node, state, frame)
        with self._drawing(state, ()) as drawing:
            results = super().eval(node, state, frame)
        self._marks_made(drawing, results)
        return results

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        super()._leaves(effect, path, site, state)
        for drawing in self._drawings if self._is_told(effect, path) else ():
            self._shows_when_drawn(drawing, True, state)

    def _changes_file(
        self, path: str, receiver: Atom | None, args: list[Value], kwargs: dict[str, Value], site: Site, state: State
    ) -> None:
        super()._changes_file(path, receiver, args, kwargs, site, state)
        if self._drawings and self._act_on_file(path, args, kwargs) is Act.SETS:
            for drawing in self._drawings:
                self._shows_when_drawn(drawing, True, state)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        drawn = self._drawn.get(ref.address) if not self._drawings and isinstance(state.get(ref), Instance) else None
        if drawn is not None and not self._is_worker(state):
            # How far the pool has gone through it.
            self._asked.setdefault(Doubt(Why.LATER, "", drawn))
        return super()._object_attribute(ref, name, state, frame, site)
