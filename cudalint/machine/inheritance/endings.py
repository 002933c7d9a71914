"""What a process still holds when it ends: a fresh one finalises it, and a forked one leaves it as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine.frame import Given, Results
from cudalint.machine.heap import Class, Closure, Instance
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.identity import Identity
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.launch.crossing import visited
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Ref


class Endings(Identity):
    """A machine that notes which objects and generators of a fresh process run code when they are let go."""

    def construct(self, ref: Ref, cls: Class, given: Given) -> Results:
        """A new instance, whose ``__del__`` runs at the end of its process where something holds it until then."""
        results = super().construct(ref, cls, given)
        if not self._watches or self._class_attribute(ref, "__del__", given.state) is None:
            return results
        watch = self._watch(given.state)
        if watch is not None and self._at_import(watch):
            watch.doubts.setdefault(Doubt(Why.LEFT_OPEN, f"{cls.name}()", given.site))
        for after, made in results:
            self._ends_with_its_process(made, f"{cls.name}()", after)
        return results

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function: a generator that was begun goes on where it cleans up."""
        results = super().call_closure(ref, closure, given)
        if closure.function.is_generator and self._watches and _cleans_up(closure.function.body):
            for after, made in results:
                self._ends_with_its_process(made, f"{closure.function.name}()", after)
        return results

    def _ends_with_its_process(self, made: Iterable[Atom], name: str, state: State) -> None:
        if self._is_started(state):
            self._ending.update(dict.fromkeys(made, name))

    def _finalises(self, watch: Watch) -> Iterator[Doubt]:
        """What a fresh process is given, and holds until it ends."""
        launch = watch.launch
        for atom in (a for value in launch.given for a in visited(value, launch.parent)):
            found = launch.parent.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, Instance) and self.user_method(found, "__del__", launch.parent) is not None:
                cls = launch.parent.get(found.cls)
                yield Doubt(Why.LEFT_OPEN, f"{cls.name}()" if isinstance(cls, Class) else "", launch.anchor)


def _cleans_up(body: Iterable[ir.Stmt]) -> bool:
    """Whether code has something to do when it is left."""
    return any(
        isinstance(statement, ir.With)
        or (isinstance(statement, ir.Try) and bool(statement.final))
        or _cleans_up(inner_statements(statement))
        for statement in body
    )
