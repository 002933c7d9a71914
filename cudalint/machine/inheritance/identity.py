"""What a thing is beside what it holds: whether it is the same one, and under which name it is found again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.inheritance.descriptors import Descriptors
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import visited
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Ref, Tensor, Unknown, Value

# Integers that Python keeps one of each: the largest of them.
_LARGEST_KEPT = 256
# Where a container looks for something, or compares what it holds: it takes what is one for equal.
_OF_CONTAINERS = frozenset({"in", "not in", "==", "!="})
# What an error has of a worker: its traceback, as text.
_OF_ERRORS = frozenset({"__cause__", "__context__"})
# Libraries whose arrays and tables may hold any object.
_OF_ARRAYS = ("numpy.", "pandas.")
# An object of no class in particular.
_PLAIN = "builtins.object"
# What results are called, and what came through queues and pipes.
_COME = frozenset({"result", "received", "future"})
# Methods by which containers look for something.
_LOOKS_FOR = frozenset({"get", "index", "count", "remove", "discard", "pop", "__contains__", "__getitem__"})
# Files in which the system tells about processes.
_OF_PROCESSES = ("/proc", "/dev/fd")


class Identity(Descriptors):
    """A machine that notes where it matters which object something is, or what its module is called."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Where the program looks for a function of its own: loky sends them by value, and each is a new one.
        self._functions_compared: dict[Doubt, None] = {}
        # Whether some array was made of objects of the main module, which it does not show.
        self._packed = False

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared: what is sent to a fresh process is a copy there, however little it can change."""
        super().compares(op, values, site, state)
        if not self._is_started(state):
            self._meets_copy(op, values, site, state)
        atoms = [a for value in values for a in value]
        unseen = all(isinstance(a, Unknown) for a in atoms)
        asks_which = op in ("is", "is not") and not any(map(_is_only_one, values))
        if asks_which and (unseen or any(_is_copied(a, state) for a in atoms)):
            for watch in self._reading(state):
                watch.doubts.setdefault(Doubt(Why.IDENTITY, "", site))
        if op in _OF_CONTAINERS and any(self._is_nan(a) for value in values for a in visited(value, state)):
            for watch in self._reading(state):
                watch.doubts.setdefault(Doubt(Why.IDENTITY, "", site))
        if any(found.family == "joblib" for found in self.record.launches.values()):
            for atom in (a for value in values for a in visited(value, state)):
                if isinstance(atom, Ref) and isinstance(state.get(atom), Closure):
                    self._functions_compared.setdefault(Doubt(Why.IDENTITY, "", site))

    def _meets_copy(self, op: str, values: tuple[Value, ...], site: Site, state: State) -> None:
        """What came back from a worker is compared with what the program has kept: it is a copy of that, at best."""
        came = any(_has_come(atom.sym) for value in values for atom in value if isinstance(atom, Unknown))
        if not came:
            return
        atoms = (atom for value in values for atom in (visited(value, state) if op in _OF_CONTAINERS else value))
        is_one = _is_thing if op in ("is", "is not") else self._equals_itself
        if any(is_one(atom, state) for atom in atoms):
            self._asked.setdefault(Doubt(Why.IDENTITY, "", site))

    def _equals_itself(self, atom: Atom, state: State) -> bool:
        """Whether something equals nothing but itself."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, LibraryObject):
            return found.type == _PLAIN
        if not isinstance(found, Instance) or self.user_method(found, "__eq__", state) is not None:
            return False
        made = state.get(found.cls)
        is_dataclass = isinstance(made, Class) and made.is_dataclass
        return not is_dataclass and self.library_base(found.cls, state) in (None, _PLAIN)

    def _looks_for_copy(self, path: str, receiver: Atom | None, args: list[Value], site: Site, state: State) -> None:
        """A container is asked for what came back from a worker."""
        if receiver is None or not args or self._is_started(state) or path.rpartition(".")[2] not in _LOOKS_FOR:
            return
        keys = self._keyed.get(receiver.address, ()) if isinstance(receiver, Ref) else ()
        held = tuple(Ref(key) for key in keys)
        self._meets_copy("in", (args[0], (receiver,), held), site, state)

    def _is_nan(self, atom: Atom) -> bool:
        """Whether a number equals nothing, so that where it is found tells which one it is."""
        match atom:
            case Const(value=float(number)):
                return number != number
            case Lib(path=path):
                return self.library.traits.has(path, "equals-only-itself")
        return False

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))):
                values = ((Unknown(base),), *given.args, *given.kwargs.values())
                self._tells_names(f"?.{name}", values, given.site, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may write down how modules are called, or look at processes."""
        path = self.library.canonical(call.path)
        self._tells_names(path, (*call.args, *call.kwargs.values()), call.site, call.state)
        self._looks_for_copy(path, call.receiver, call.args, call.site, call.state)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._tells_names(path, (*given.args, *given.kwargs.values()), given.site, given.state)
        return super()._foreign(path, atom, given)

    def _tells_names(self, path: str, values: Iterable[Value], site: Site, state: State) -> None:
        values = tuple(values)
        if path.startswith(_OF_ARRAYS) and not self._packed:
            given = (atom for value in values for atom in visited(value, state))
            self._packed = any(isinstance(atom, Ref) and self._is_of_main(atom, state) for atom in given)
        if any(_looks_at_processes(atom) for value in values for atom in value):
            self._asked.setdefault(Doubt(Why.NAME, "", site))
        writes = self.library.traits.of(path, "writes-names")
        if writes is None or not self._is_started(state):
            return
        if path == "shelve.open" and self._own_classes(state):
            self._is_called(shown(path), site, state, by_value=True)
        # What is written comes first, where to comes after it; or the other way round, and several things.
        written = values[:1] if writes.place is None else values[writes.place :]
        if any(self._is_of_main(atom, state) for value in written for atom in visited(value, state)):
            self._is_called(shown(path), site, state, by_value=True)

    def _is_of_main(self, atom: Atom, state: State) -> bool:
        """Whether the main module defines something, or its class; of what is not shown that may be."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        match atom, found:
            case Tensor(framework="numpy"), _:
                return self._packed
            case Unknown(sym=("call", _, _, _, str(path), *_)), _ if path.startswith(_OF_ARRAYS):
                return self._packed
            case Unknown(), _:
                return bool(self._own_classes(state))
            case _, Instance(cls=cls):
                of = state.get(cls)
                return isinstance(of, Class) and of.module == self.main
            case _, Class(module=module) | Closure(module=module):
                return module == self.main
        return False

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        if name == "__module__" and not isinstance(atom, Ref):
            self._is_called("__module__", site, state, by_value=True)
        if name in _OF_ERRORS:
            self._shows_error(name, site, state)
        return super()._attribute_of(atom, name, state, frame, site)


def _has_come(part: Hashable) -> bool:
    """Whether an unknown is, or is a part of, what a worker has sent."""
    match part:
        case (str(kind), *_) if kind in _COME:
            return True
        case tuple():
            return any(map(_has_come, part))
        case Unknown(sym=sym):
            return _has_come(sym)
    return False


def _is_thing(atom: Atom, state: State) -> bool:
    """Whether something is one of several that look alike: no function, class or other thing that has a name."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(found, Instance | Sequence | Dict | LibraryObject) or _is_copied(atom, state)


def _is_only_one(value: Value) -> bool:
    """Whether something is ``None`` or a truth value, of which each process has one."""
    return bool(value) and all(isinstance(a, Const) and (a.value is None or isinstance(a.value, bool)) for a in value)


def _is_copied(atom: Atom, state: State) -> bool:
    """Whether a value that cannot change is another one when it has travelled."""
    match atom:
        case Const(value=bool() | None):
            return False
        case Const(value=int(number)):
            return number > _LARGEST_KEPT
        case Const(value=str() | bytes() | float() | complex()):
            return True
        case Ref():
            found = state.get(atom)
            return isinstance(found, Sequence) and found.kind in ("tuple", "frozenset")
    return False


def _looks_at_processes(part: Hashable) -> bool:
    match part:
        case Const(value=str(text)):
            return any(text == folder or text.startswith(f"{folder}/") for folder in _OF_PROCESSES)
        case Unknown(sym=sym):
            return _looks_at_processes(sym)
        case tuple():
            return any(map(_looks_at_processes, part))
    return False
