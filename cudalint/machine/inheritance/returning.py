"""What comes back from workers: a loop would have had the thing itself, and from a process only a copy arrives."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.frame import Raised
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.producers import Producers
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.pickling import unreturned
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Value

# Launchers that send to the parent what a task raises; of the others its text arrives, or how the process ended.
_SEND_EXCEPTIONS = frozenset({"pool", "executor", "joblib"})
_TRACED = "an exception, to which the traceback of the worker is added"
_PASSES = "an iterator, a coroutine, or a view of a dict"


class Returning(Producers):
    """A machine that notes what is seen not to arrive of what tasks return or raise."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Whether what a task raised has come to the program.
        self._has_raised = False

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended: what they return goes to their parent, or what their tasks ``raised``."""
        children, raised = list(children), list(raised)
        self._has_raised = self._has_raised or any(self._arrive_raised(child) for child, _ in raised)
        super().gives_back(children, raised)
        for child, value in (*children, *((child, one.value) for child, one in raised if self._arrive_raised(child))):
            reason = _PASSES if self._passes(value, child) else unreturned(value, child)
            launch = child.process.launch
            if reason is not None and launch is not None:
                self._asked.setdefault(Doubt(Why.RETURNED, reason, launch.anchor))

    def _shows_error(self, name: str, site: Site, state: State) -> None:
        super()._shows_error(name, site, state)
        if self._has_raised and not self._is_started(state):
            self._asked.setdefault(Doubt(Why.RETURNED, _TRACED, site))

    def _arrive_raised(self, child: State) -> bool:
        launch = child.process.launch
        found = None if launch is None else self.record.launches.get((launch.anchor, launch.method))
        return found is not None and found.family in _SEND_EXCEPTIONS
