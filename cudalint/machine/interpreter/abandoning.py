"""Calls that take long and do nothing: they are left, what they would give is unknown, and the program goes on.

Reading a file format, building a network, a solver: paths through such code multiply until no step is left for the
program that follows. Nearly always one call holds all of it, and nothing that a rule could look at happens in it.
"""

from __future__ import annotations

from functools import reduce

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Results
from cudalint.machine.heap import Closure
from cudalint.machine.interpreter.core import NEW_PART, Begun, Core, IdleCalls
from cudalint.machine.joining import join
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import unknown


class Abandoning(Core):
    """Looks for such a call now and then, and leaves the innermost that there is.

    Where none took so much by itself, the calls of one function may have: none of them is followed from then on.

    What is left must not be what would have averted what goes wrong later: a call is followed to its end where one of
    the functions that run in it names anything of the kind, and all calls of a function where one such ever ran in any.
    """

    def look_for_idle_call(self, state: State) -> None:
        """Leave the innermost running call that took a good part of the steps, and in which nothing could happen."""
        self._patience = self._steps + self._look_after
        steps, ran = self._looked
        self._looked = self._steps, len(self._ran)
        if not self.leaves_calls or (len(self._ran) - ran) * NEW_PART >= self._steps - steps:
            return
        if not self._left_running_call(state) and self._steps >= self._half:
            self._look_for_idle_calls()

    def _left_running_call(self, state: State) -> bool:
        for index in range(len(self._begun) - 1, -1, -1):
            call = self._begun[index]
            if self.program.settles(call.place.module, call.function):
                return False
            if call.is_idle(self._steps - self._most_idle, self.record.events, state.process):
                self._leaving = index
                self._abandon(call.place, call.function, f"{self._steps - call.steps} steps", state.process.identity)
                return True
        return False

    def _look_for_idle_calls(self) -> None:
        """Leave, whenever it is called again, the function whose many short calls took most, and did nothing."""
        followed = self._busy | self._deciding
        idle = (place for place, calls in self._idle.items() if place not in followed and calls.take_steps)
        place = max(idle, key=lambda place: self._idle[place].steps, default=None)
        if place is not None and self._idle[place].steps >= self._most_often:
            calls = self._idle.pop(place)
            often = f" of {calls.count} calls" if calls.count > 1 else ""
            self._abandon(place, calls.function, f"{calls.steps} steps{often}")

    def _abandon(self, place: Site, function: ir.Function, where: str, identity: tuple[str, ...] | None = None) -> None:
        self.abandoned.add((place, identity))
        self.program.note(f"{function.name}() of {place.module} did nothing in {where}: not followed to its end")

    def is_left(self, place: Site, state: State) -> bool:
        """Whether calls of a function are not followed any more in this process."""
        return (place, None) in self.abandoned or (place, state.process.identity) in self.abandoned

    def begin_call(self, closure: Closure, state: State, is_callers: bool) -> None:
        """A function begins to run; ``is_callers`` where code of its caller runs within it."""
        place = Site(closure.module, closure.function.ordinal)
        events = -1 if is_callers else self.record.events
        self._begun.append(Begun(place, closure.function, self._steps, state.process, events, self.consultations))

    def end_call(self, results: Results, site: Site) -> Results:
        """The function that began last has ended: what it gives, which is unknown where it was left."""
        call = self._begun.pop()
        if not any(running.place == call.place for running in self._begun):
            self._note_call(call, results)
        if self._leaving is None or self._leaving < len(self._begun):
            return results
        self._leaving = None
        ways: dict[tuple[tuple[str, ...], bool], list[State]] = {}
        for state, _ in results:
            ways.setdefault((state.process.identity, state.process.driver is None), []).append(state)
        return [(reduce(join, states), unknown("abandoned", site)) for states in ways.values()]

    def _note_call(self, call: Begun, results: Results) -> None:
        """Add up what the calls of a function take, until one of them does anything."""
        if call.place in self._deciding or self.program.settles(call.place.module, call.function):
            self._deciding.update(each.place for each in (call, *self._begun))
        elif call.place in self._busy:
            return
        elif self._did_nothing(call, results):
            calls = self._idle.setdefault(call.place, IdleCalls(call.function))
            calls.count += 1
            calls.steps += self._steps - call.steps
        else:
            self._busy.add(call.place)

    def _did_nothing(self, call: Begun, results: Results) -> bool:
        """Whether a call that ended did nothing, and asked for nothing that may do something in another process."""
        same = (call.events, call.consultations) == (self.record.events, self.consultations)
        return same and all(state.process == call.process for state, _ in results)
