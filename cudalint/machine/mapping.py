"""A machine that notes what processes do, for a map of them; all else it does as any other."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame
from cudalint.machine.interpreter import Machine, Setting
from cudalint.machine.launch.noting import note_process
from cudalint.machine.started import ProcessRecord
from cudalint.machine.state import Process, State


class Mapper(Machine):
    """Notes each process whenever it differs from what it was at the statement before."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.noted = ProcessRecord({}, {})
        self.record.processes_noted = self.noted
        # Kept, so that none of them can have the identity of another.
        self._seen: dict[int, Process] = {}

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement."""
        self._note(state)
        after = super().statement(node, state, frame)
        for current in after:
            self._note(current)
        return after

    def end(self, states: list[State]) -> None:
        """The entry's process ends in these states."""
        for state in states:
            self._note(state)
        super().end(states)

    def _note(self, state: State) -> None:
        process = state.process
        if id(process) not in self._seen:
            self._seen[id(process)] = process
            note_process(self.noted, process)
