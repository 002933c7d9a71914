"""Tensors on the CPU that a worker gives away: torch sends a number by which who takes them asks the worker for them.

So they arrive only while the worker lives: not from one that has nothing left to do, and is not seen to wait for
another, nor from a pool that replaces its workers after some tasks. Files by which torch may share outlive it.
"""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.frame import Call, Given, Raised, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.inheritance.coroutines import Coroutines
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.launch.crossing import visited
from cudalint.machine.state import Pending, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Tensor, Value, constant
from cudalint.structs import replace

# Other libraries' picklers know nothing of how torch shares, and send all that a tensor holds.
_SHARING = ("multiprocessing", "torch.multiprocessing")
_BY_NAME = "file_system"


class Producers(Coroutines):
    """A machine that notes which workers end, and leave tensors that nobody may have taken yet."""

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        if given.args and self.library.traits.has(path, "chooses-sharing"):
            by_name = constant(given.args[0]) == _BY_NAME
            given.state.process = replace(given.state.process, shares_by_name=by_name)
        return super()._foreign(path, atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may send tensors to another process."""
        if call.text("does") == "put" and call.state.process.launch is not None:
            self._puts_tensors(call)
        results = super().library_call(call)
        if not self.library.traits.has(self.library.canonical(call.path), "gives-host-data"):
            return results
        return [(after, tuple(map(_as_data, value))) for after, value in results]

    def _puts_tensors(self, call: Call) -> None:
        """What is put on a channel has yet to be asked for."""
        state, channel = call.state, call.receiver
        found = state.get(channel) if isinstance(channel, Ref) else None
        is_sharing = isinstance(found, LibraryObject) and found.type.startswith(tuple(f"{name}." for name in _SHARING))
        if not isinstance(found, LibraryObject) or not is_sharing or not self._is_asked_for(call.args, state):
            return
        chain = self.chain(state, call.site, f"{call.label} shares memory of this process")
        sent = Pending(call.site, chain, call.label, found.site, on_gpu=False)
        state.process = replace(state.process, pending=(*state.process.pending, sent))

    def leaves_unsent(self, site: Site, state: State) -> None:
        """A process ends that has put tensors on a channel, perhaps before they were asked for."""
        self._loses(site, state)
        super().leaves_unsent(site, state)

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended, and what they return goes to their parent."""
        children = list(children)
        for child, value in children:
            launch = child.process.launch
            started = None if launch is None else self.record.launches.get((launch.anchor, launch.method))
            if started is None or not started.ends or started.library not in _SHARING:
                continue
            if self._is_asked_for((value,), child):
                self._loses(started.made, child)
        super().gives_back(children, raised)

    def _loses(self, site: Site, state: State) -> None:
        watch = self._watch(state)
        if watch is not None:
            watch.doubts.setdefault(Doubt(Why.ASKED_FOR, "", site))

    def _is_asked_for(self, values: Iterable[Value], state: State) -> bool:
        """Whether something travels of which only a number is sent."""
        if state.process.shares_by_name:
            return False
        return any(self._is_on_cpu(atom, state) for value in values for atom in visited(value, state))

    def _is_on_cpu(self, atom: Atom, state: State) -> bool:
        found = state.get(atom) if isinstance(atom, Ref) else None
        match atom, found:
            case Tensor(framework="torch", device=device), _:
                return not device.is_gpu
            case Ref(), LibraryObject(type=kind):
                return self.library.is_a(kind, "torch.nn.Module")
            case Ref(), Instance(cls=cls):
                base = self.library_base(cls, state)
                return base is not None and self.library.is_a(base, "torch.nn.Module")
        return False


def _as_data(atom: Atom) -> Atom:
    """What is no tensor any more, and travels with all that it holds."""
    return replace(atom, framework="numpy") if isinstance(atom, Tensor) and not atom.device.is_gpu else atom
