"""Threads that each start workers and show something: in the order in which the workers of each have ended."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from cudalint.machine.frame import Call, Results
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.failures import Failures
from cudalint.machine.interpreter import Beginning, Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.models.library import ProcessEffect


class Threads(Failures):
    """A machine that notes what several threads show that wait for workers of their own."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Where threads are started one by one; whether some start makes several, and whether some start workers.
        self._thread_starts: set[Site] = set()
        self._are_several = False
        self._start_workers = False
        self._shown_by_threads: dict[Site, None] = {}

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may start threads."""
        if call.text("does") == "thread.start":
            self._thread_starts.add(call.site)
            self._are_several = self._are_several or call.state.second_round
        elif call.text("family") == "thread":
            self._are_several = True
        return super().library_call(call)

    def begins_process(self, launch: Beginning) -> None:
        """A process is about to start, perhaps from a thread."""
        self._start_workers = self._start_workers or launch.parent.process.in_thread
        super().begins_process(launch)

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        super()._leaves(effect, path, site, state)
        if state.process.in_thread and self._is_told(effect, path):
            self._shown_by_threads.setdefault(site)

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        super()._stores_into(address, site, state, lossy)
        thread = self.threads[-1] if self.threads and state.process.in_thread else None
        # What was there before this thread, others fill as well.
        if thread is not None and self._end_in_any_order() and thread.before.at(address) is not None:
            self._unordered.add(address)

    def _end_in_any_order(self) -> bool:
        return self._start_workers and (self._are_several or len(self._thread_starts) > 1)

    def _told_by_threads(self) -> Iterator[Doubt]:
        """What several threads show, each when its worker has ended."""
        for site in self._shown_by_threads if self._end_in_any_order() else ():
            yield Doubt(Why.MIXED, "", site)
