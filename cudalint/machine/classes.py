"""User classes and those they derive from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cudalint.machine.heap import Class, Scope
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Ref


def lineage(cls: Ref, state: State) -> Iterator[Class]:
    """A class and the user classes that it derives from, depth first."""
    seen: set[Ref] = set()
    stack: list[Atom] = [cls]
    while stack:
        atom = stack.pop(0)
        if not isinstance(atom, Ref) or atom in seen:
            continue
        seen.add(atom)
        found = state.get(atom)
        if isinstance(found, Class):
            yield found
            stack = [a for base in found.bases for a in base] + stack


def defines(cls: Class, names: Collection[str], state: State) -> bool:
    """Whether the body of a class binds one of these names."""
    scope = state.get(cls.scope)
    return isinstance(scope, Scope) and any(name in scope.variables for name in names)
