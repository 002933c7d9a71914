"""Memory that several processes see as it is: bytes that one of them sets while another looks at them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.inheritance.handing import Handing
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Act, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Unknown, Value

_MEMORY = "multiprocessing.shared_memory.SharedMemory"
# What workers set there, and what the process that started them does. Workers have parts of their own.
_BY_WORKERS = ("memory", "workers")
_BY_PARENT = ("memory", "parent")
# What makes arrays of their own kind of memory.
_VIEWING = ("numpy.", "torch.", "builtins.memoryview", "ctypes.")


class Memories(Handing):
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
        self._views_array(call.path, call.receiver, call.args, call.site, call.state)
        self._uses_memory((*call.args, *call.kwargs.values()), call.site, call.state)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        if path == _MEMORY:
            self._in_memory.add(given.site)
        receiver = atom.receiver if isinstance(atom, Bound) else None
        self._views_array(path, receiver, given.args, given.site, given.state)
        self._uses_memory((*given.args, *given.kwargs.values()), given.site, given.state)
        return super()._foreign(path, atom, given)

    def _views_array(self, path: str, receiver: Atom | None, args: list[Value], site: Site, state: State) -> None:
        """A library makes something of the memory of an array that processes share."""
        of_array = receiver is not None and path.endswith(".get_obj") and _is_array(receiver, state)
        if of_array or (path.startswith(_VIEWING) and any(_is_array(a, state) for value in args for a in value)):
            self._in_memory.add(site)

    def _uses_memory(self, parts: Iterable[Hashable], site: Site, state: State) -> None:
        if self._in_memory and any(map(self._is_memory, parts)):
            self._in_memory.add(site)
            self._reads_memory(site, state)

    def _reads_memory(self, site: Site, state: State) -> None:
        self._does(Act.READS, _BY_PARENT if self._is_worker(state) else _BY_WORKERS, site, state)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        if self._in_memory and (self._is_memory(owner) or any(_is_array(atom, state) for atom in owner)):
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


def _is_array(atom: Atom, state: State) -> bool:
    found = state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(found, LibraryObject) and found.type == "multiprocessing.Array"
