"""What comes back from workers: a loop would have had the thing itself, and from a process only a copy arrives."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.ir import nodes as ir
from cudalint.machine import exceptions
from cudalint.machine.frame import Frame, Raised
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
# A worker of a pool sends on what is an Exception, and ends by anything else: nobody gives that task back.
_ENDS = "an exception that ends the worker of a pool, for whose task the program then waits for ever"


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
        for child, one in raised:
            self._may_end_worker(one.names, child)

    def _raises(self, node: ir.Raise, kind: Value, state: State, frame: Frame, value: Value = ()) -> None:
        super()._raises(node, kind, state, frame, value)
        if node.exc is not None and not frame.tries:
            self._may_end_worker(self._raised_names(node.exc, kind, state, frame), state)

    def _may_end_worker(self, names: tuple[str, ...], child: State) -> None:
        launch = child.process.launch
        if launch is not None and exceptions.ends_process(names) and self._family(child) == "pool":
            self._asked.setdefault(Doubt(Why.RETURNED, _ENDS, launch.anchor))

    def _shows_error(self, name: str, site: Site, state: State) -> None:
        super()._shows_error(name, site, state)
        if self._has_raised and not self._is_started(state):
            self._asked.setdefault(Doubt(Why.RETURNED, _TRACED, site))

    def _arrive_raised(self, child: State) -> bool:
        return self._family(child) in _SEND_EXCEPTIONS

    def _family(self, child: State) -> str | None:
        """Of what kind the launcher of a worker is."""
        launch = child.process.launch
        found = None if launch is None else self.record.launches.get((launch.anchor, launch.method))
        return None if found is None else found.family
