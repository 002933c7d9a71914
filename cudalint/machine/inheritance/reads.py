"""The variables of modules that a worker reads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator

from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Class, Scope
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.ledger import Ledger, Watch
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import JOINED, Ref, Value

# Attributes by which a function shows what it is made of, and what it sees around itself.
_OF_FUNCTIONS = frozenset({"__globals__", "__closure__", "__code__"})


class Reads(Ledger):
    """A machine that notes what fresh processes read while they do their work, and what of that is not shown."""

    def _reading(self, state: State) -> Iterator[Watch]:
        """The fresh processes that this one is, or comes from, while they do their work."""
        identity = state.process.identity
        for watch in self._watches:
            own = watch.launch.identity
            if identity[: len(own)] == own and not watch.booting:
                yield watch

    def _last_worker(self, state: State) -> Watch | None:
        """The last of the workers that a process is, or comes from; None where it is none."""
        found = None
        for watch in self._reading(state):
            found = watch
        return found

    def _is_started(self, state: State) -> bool:
        """Whether a process is one that another has started afresh, or comes from one, at its work."""
        return any(self._reading(state))

    def _reads(self, module: str, name: str, state: State, site: Site | None = None) -> None:
        for watch in self._reading(state):
            if (self._importing and module in self._where[-1:]) or (module, name) in watch.reads:
                continue
            if self._sets_anew(watch, module, name, state):
                continue
            watch.reads[module, name] = site or watch.launch.anchor
            scope = state.get(Ref(("module", module)))
            if isinstance(scope, Scope):
                self.finds(scope.variables.get(name, ()), state, watch.reads[module, name])

    def _sets_anew(self, watch: Watch, module: str, name: str, state: State) -> bool:
        """Whether a worker has set a variable on this path, so that it does not matter what that held."""
        here = variable(state, module, name)
        if not here or JOINED in here or self._is_changed((("module", module), name)):
            return False
        begun = watch.loaded.get(module) or watch.snapshots
        held = [atom for fresh in begun for atom in variable(fresh, module, name)]
        return bool(held) and set(held).isdisjoint(here)

    @abstractmethod
    def _is_changed(self, address: Hashable) -> bool:
        """Whether something was changed at a time that the code does not show, by whatever process."""

    def finds(self, value: Value, state: State, site: Site) -> None:
        """A worker finds objects that it did not make."""

    def _is_unshown(self, name: str, site: Site, state: State) -> None:
        for watch in self._reading(state):
            watch.doubts.setdefault(Doubt(Why.UNSHOWN, name, site))

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, from the inside out; one of a module is read."""
        if self._watches:
            self._look_up(name, state, scope)
        return super().lookup(name, state, scope)

    def _look_up(self, name: str, state: State, scope: Ref | None) -> None:
        first = True
        while scope is not None:
            found = state.get(scope)
            if not isinstance(found, Scope):
                return
            if found.kind == "module":
                if scope.address == ("module", found.module):
                    self._reads(found.module, name, state)
                return
            if name in found.variables and (first or found.kind != "class"):
                return
            first = False
            scope = found.parent

    def finds_by_name(self, module: str, name: str, state: State) -> None:
        """Unpickling looks up a name of a module in this process."""
        self._reads(module, name, state)

    def _member(self, module: Value, name: str, state: State) -> Value | None:
        self._reads_of(module, name, state)
        return super()._member(module, name, state)

    def _reads_of(self, owner: Value, name: str, state: State) -> None:
        for atom in owner:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, Scope) and found.kind == "module":
                self._reads(found.module, name, state)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        self._reads_of((ref,), name, state)
        if (name == "__dict__" and isinstance(state.get(ref), Scope | Class)) or name in _OF_FUNCTIONS:
            self._is_unshown(name, site, state)
        return super()._object_attribute(ref, name, state, frame, site)


def variable(state: State, module: str, name: str) -> Value:
    """What a variable of a module holds; nothing where there is none."""
    scope = state.get(Ref(("module", module)))
    return scope.variables.get(name, ()) if isinstance(scope, Scope) else ()
