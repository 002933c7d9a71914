"""Coroutines that go on beside others: each goes on when its worker has done its task, in whatever order.

One that is awaited where it is called goes on alone, and so does the outermost, which an event loop is given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Closure
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.threads import Threads
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref
from cudalint.models.library import ProcessEffect

# What hands work to a worker, and is awaited.
_HANDS_OVER = "executor.loop"


class Coroutines(Threads):
    """A machine that notes what coroutines show, or add to, that wait for workers beside others."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The calls that are awaited where they stand.
        self._awaited_calls: set[Site] = set()
        # How deep in coroutines, and what there was when each began that goes on beside others.
        self._coroutines_deep = 0
        self._before_coroutines: list[State] = []
        self._wait_for_workers = False
        self._shown_by_coroutines: dict[Site, None] = {}

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression."""
        if isinstance(node, ir.Await) and isinstance(node.value, ir.Call):
            self._awaited_calls.add(Site(frame.module, node.value.ordinal))
        return super().eval(node, state, frame)

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function, which may be a coroutine."""
        if not closure.function.is_async:
            return super().call_closure(ref, closure, given)
        is_beside = self._coroutines_deep > 0 and given.site not in self._awaited_calls
        if is_beside:
            self._before_coroutines.append(given.state.clone())
        self._coroutines_deep += 1
        results = super().call_closure(ref, closure, given)
        self._coroutines_deep -= 1
        if is_beside:
            self._before_coroutines.pop()
        return results

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may hand work to a worker."""
        if self._before_coroutines and call.text("does") == _HANDS_OVER:
            self._wait_for_workers = True
        return super().library_call(call)

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        super()._leaves(effect, path, site, state)
        if self._before_coroutines and self._is_told(effect, path) and not self._is_started(state):
            self._shown_by_coroutines.setdefault(site)

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        super()._stores_into(address, site, state, lossy)
        before = self._before_coroutines[-1] if self._before_coroutines and self._wait_for_workers else None
        # What was there before a coroutine, others add to as well.
        if before is not None and before.at(address) is not None:
            self._unordered.add(address)

    def _told_beside(self) -> Iterator[Doubt]:
        """What coroutines show, each when its worker has done its task."""
        for site in self._shown_by_coroutines if self._wait_for_workers else ():
            yield Doubt(Why.MIXED, "", site)
