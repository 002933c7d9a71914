"""Memory that several processes see as it is: bytes that one of them sets while another looks at them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.inheritance.beside import Besides
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Act, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Unknown, Value

_MEMORY = "multiprocessing.shared_memory.SharedMemory"
# What workers set there, and what the process that started them does. Workers have parts of their own.
_BY_WORKERS = ("memory", "workers")
_BY_PARENT = ("memory", "parent")


class Memories(Besides):
    """A machine that notes who sets shared memory, and who looks at it meanwhile."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The calls that gave such memory, or made something of it.
        self._in_memory: set[Site] = set()

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str())) if self._in_memory:
                self._uses_memory((base, *given.args, *given.kwargs.values()), given.site, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may give such memory, make something of it, or read it."""
        if self.library.canonical(call.path) == _MEMORY:
            self._in_memory.add(call.site)
        self._uses_memory((*call.args, *call.kwargs.values()), call.site, call.state)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        if path == _MEMORY:
            self._in_memory.add(given.site)
        self._uses_memory((*given.args, *given.kwargs.values()), given.site, given.state)
        return super()._foreign(path, atom, given)

    def _uses_memory(self, parts: Iterable[Hashable], site: Site, state: State) -> None:
        if self._in_memory and any(map(self._is_memory, parts)):
            self._in_memory.add(site)
            self._reads_memory(site, state)

    def _reads_memory(self, site: Site, state: State) -> None:
        self._does(Act.READS, _BY_PARENT if self._is_worker(state) else _BY_WORKERS, site, state)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        if self._in_memory and self._is_memory(owner):
            self._does(Act.ADDS, _BY_WORKERS if self._is_worker(state) else _BY_PARENT, site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""
        if self._in_memory and self._is_memory(value):
            self._reads_memory(site, state)
        return super().item(value, key, state, frame, site)

    def _is_memory(self, part: Hashable) -> bool:
        """Whether something is such memory, or was made of it."""
        match part:
            case Site():
                return part in self._in_memory
            case Unknown(sym=(_, ".", "name" | "size")):
                return False
            case Unknown(sym=sym):
                return self._is_memory(sym)
            case tuple():
                return any(map(self._is_memory, part))
        return False
