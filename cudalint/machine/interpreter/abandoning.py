"""Calls that take long and do nothing: they are left, what they would give is unknown, and the program goes on.

Reading a file format, building a network, a solver: paths through such code multiply until no step is left for the
program that follows. Nearly always one call holds all of it, and nothing that a rule could look at happens in it.
"""

from __future__ import annotations

from functools import reduce

from cudalint.machine.frame import Results
from cudalint.machine.heap import Closure
from cudalint.machine.interpreter.core import NEW_PART, Begun, Core
from cudalint.machine.joining import join
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import unknown


class Abandoning(Core):
    """Looks for such a call now and then, and leaves the innermost that there is.

    What is left must not be what would have averted what goes wrong later: a call is followed to its end where one of
    the functions that run in it names anything of the kind.
    """

    def look_for_idle_call(self, state: State) -> None:
        """Leave the innermost running call that took a good part of the steps, and in which nothing could happen."""
        self._patience = self._steps + self._look_after
        steps, ran = self._looked
        self._looked = self._steps, len(self._ran)
        if not self.leaves_calls or (len(self._ran) - ran) * NEW_PART >= self._steps - steps:
            return
        for index in range(len(self._begun) - 1, -1, -1):
            call = self._begun[index]
            if self.program.settles(call.place.module, call.function):
                return
            if call.is_idle(self._steps - self._most_idle, self.record.events, state.process):
                self._leaving = index
                self.abandoned.add(call.place)
                took = f"{call.function.name}() of {call.place.module} did nothing in {self._steps - call.steps} steps"
                self.program.note(f"{took}: not followed to its end")
                return

    def begin_call(self, closure: Closure, state: State, is_callers: bool) -> None:
        """A function begins to run; ``is_callers`` where code of its caller runs within it."""
        place = Site(closure.module, closure.function.ordinal)
        events = -1 if is_callers else self.record.events
        self._begun.append(Begun(place, closure.function, self._steps, state.process, events))

    def end_call(self, results: Results, site: Site) -> Results:
        """The function that began last has ended: what it gives, which is unknown where it was left."""
        self._begun.pop()
        if self._leaving is None or self._leaving < len(self._begun):
            return results
        self._leaving = None
        ways: dict[tuple[tuple[str, ...], bool], list[State]] = {}
        for state, _ in results:
            ways.setdefault((state.process.identity, state.process.driver is None), []).append(state)
        return [(reduce(join, states), unknown("abandoned", site)) for states in ways.values()]
