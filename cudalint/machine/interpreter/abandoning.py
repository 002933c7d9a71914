"""Calls that take long and do nothing: they are left, what they would give is unknown, and the program goes on.

Reading a file format, building a network, a solver: paths through such code multiply until no step is left for the
program that follows. Nearly always one call holds all of it, and nothing that a rule could look at happens in it.
"""

from __future__ import annotations

from functools import reduce

from cudalint.machine.frame import Arguments, Results
from cudalint.machine.heap import Closure
from cudalint.machine.interpreter.core import NEW_PART, Begun, Core, IdleCalls
from cudalint.machine.joining import join
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Dev, unknown

# What functions say that may be the first to use a GPU.
_OF_DEVICES = frozenset({"to", "cuda", "device", "devices", "gpu", "gpus"})


class Abandoning(Core):
    """Looks for such a call now and then, and leaves the innermost that there is.

    Where none took so much by itself, the calls of one function may have: none of them is followed from then on.

    What is left must not be what would have averted what goes wrong later: a call is followed to its end where one of
    the functions that run in it names anything of the kind, and all calls of a function where one such ever ran in any.

    A call that is told of another device is another call: on the CPU nothing happens in what moves a model to a GPU.
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
        only_computes = True
        for index in range(len(self._begun) - 1, -1, -1):
            call = self._begun[index]
            if self.program.settles(call.place.module, call.function):
                return False
            only_computes = only_computes and _only_computes(call, state)
            most = self._most_computing if only_computes else self._most_idle
            if call.is_idle(self._steps - most, self.record.events, state.process):
                self._leaving = index
                self._abandon(call, f"{self._steps - call.steps} steps", state.process.identity)
                return True
        return False

    def _look_for_idle_calls(self) -> None:
        """Leave, whenever it is called again, the function whose many short calls took most, and did nothing."""
        followed = self._busy | self._deciding
        idle = (key for key, calls in self._idle.items() if key[0] not in followed and calls.take_steps)
        key = max(idle, key=lambda key: self._idle[key].steps, default=None)
        if key is not None and self._idle[key].steps >= self._most_often:
            calls = self._idle.pop(key)
            often = f" of {calls.count} calls" if calls.count > 1 else ""
            self._abandon(calls.first, f"{calls.steps} steps{often}")

    def _abandon(self, call: Begun, where: str, identity: tuple[str, ...] | None = None) -> None:
        self.abandoned.add((call.place, identity, call.devices))
        name, module = call.function.name, call.place.module
        self.program.note(f"{name}() of {module} did nothing in {where}: not followed to its end")

    def is_left(self, place: Site, state: State, arguments: Arguments) -> bool:
        """Whether calls of a function are not followed any more in this process, if they are told of these devices."""
        if not self.abandoned:
            return False
        devices = _devices(arguments)
        return any((place, where, devices) in self.abandoned for where in (None, state.process.identity))

    def begin_call(self, closure: Closure, state: State, is_callers: bool) -> None:
        """A function begins to run; ``is_callers`` where code of its caller runs within it."""
        place = Site(closure.module, closure.function.ordinal)
        events = -1 if is_callers else self.record.events
        at, arguments = self._given[-1] if self._given else (None, {})
        devices = _devices(arguments) if at is not None and at[0] == place else frozenset[Dev]()
        self._begun.append(
            Begun(place, closure.function, self._steps, state.process, events, self.consultations, devices)
        )

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
            calls = self._idle.setdefault((call.place, call.devices), IdleCalls(call))
            calls.count += 1
            calls.steps += self._steps - call.steps
        else:
            self._busy.add(call.place)

    def _did_nothing(self, call: Begun, results: Results) -> bool:
        """Whether a call that ended did nothing, and asked for nothing that may do something in another process."""
        same = (call.events, call.consultations) == (self.record.events, self.consultations)
        return same and all(state.process == call.process for state, _ in results)


def _only_computes(call: Begun, state: State) -> bool:
    """Whether nothing can come of a call but a value: it names no device, or its process has used one before."""
    return bool(state.process.initialised) or not call.function.mentions(_OF_DEVICES)


def _devices(arguments: Arguments) -> frozenset[Dev]:
    """The devices that a function is told of."""
    return frozenset(atom for value in arguments.values() for atom in value if isinstance(atom, Dev))
