"""What a process takes from a queue or a pipe, as far as the program shows it."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.messages import Channel
from cudalint.machine.state import State
from cudalint.machine.values import Ref


def received(machine: Machine, call: Call, channel: Channel, sym: tuple[Hashable, ...]) -> Results:
    """What comes out of a channel, each message on a path of its own; empty where that is not known."""
    for module in machine.messages.homes(channel):
        _import(machine, call, module, call.state)
    return machine.messages.take(channel, call.state, sym, call.site)


def _import(machine: Machine, call: Call, module: str, state: State) -> None:
    """What is unpickled by its name is imported, where the process has not done so before."""
    if state.get(Ref(("module", module))) is not None or machine.program.module(module) is None:
        return
    loaded = machine.load(module, state, call.frame, call.site)
    if loaded:
        state.become(loaded[0][0])
