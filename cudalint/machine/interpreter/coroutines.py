"""Coroutines that are given to a process, or kept in a variable: what runs when they are awaited.

Elsewhere a coroutine runs where it is made, which is soon before it is awaited.
"""

from __future__ import annotations

from cudalint.machine.frame import Frame, Given, Results
from cudalint.machine.heap import Class, Closure, Generator
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Bound, Lib, Ref, Value, only
from cudalint.structs import replace

# What makes a process, or hands something to one.
_GIVING = frozenset({"process", "pool.apply", "spawn"})
# Packages whose functions wait for the coroutines that they are given.
_WAITING = frozenset({"anyio", "asyncio", "nest_asyncio", "trio", "uvloop"})


class Coroutines(Core):
    """Makes coroutines that wait, and runs them."""

    def gives_to_process(self, function: Value, state: State) -> bool:
        """Whether a call makes a process or hands something to one, which gets what the call is given."""
        atom = only(function)
        named = atom.function if isinstance(atom, Bound) else atom
        path = named.path if isinstance(named, Lib) else None
        if isinstance(atom, Ref) and isinstance(state.get(atom), Class):
            path = self.library_base(atom, state)
        spec = None if path is None else self.library.function(path)
        return spec is not None and spec.get("does") in _GIVING

    def waits(self, closure: Closure) -> bool:
        """Whether a call of a function makes a coroutine that runs later."""
        return self._makes_later and closure.function.is_async and not closure.function.is_generator

    def runs_nothing_else(self, function: Value, state: State) -> bool:
        """Whether a call of a value is that of a function of the program, and not of what calls one."""
        called = [atom.function if isinstance(atom, Bound) else atom for atom in function]
        return all(isinstance(atom, Ref) and isinstance(state.get(atom), Closure) for atom in called)

    def awaited(self, value: Value, state: State, frame: Frame) -> Results:
        """What awaiting a value gives."""
        waiting = [atom for atom in value if self._pending_coroutine(atom, state) is not None]
        if not waiting:
            return [(state, value)]
        results: Results = []
        for i, atom in enumerate(value):
            current = state if i == len(value) - 1 else state.clone()
            coroutine = self._pending_coroutine(atom, current)
            if coroutine is None or not isinstance(atom, Ref):
                results.append((current, (atom,)))
            else:
                results.extend(self.consume(atom, coroutine, current, frame))
        return results

    def _pending_coroutine(self, atom: Atom | None, state: State) -> Generator | None:
        """A coroutine that nothing has awaited."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Generator):
            return None
        closure = state.get(found.closure)
        return found if isinstance(closure, Closure) and closure.function.is_async else None

    def awaits_for(self, path: str, given: Given) -> list[Given] | None:
        """A call of a library with what its coroutines give; None where it is given none, or does not wait."""
        return self.with_awaited(given) if path.partition(".")[0] in _WAITING else None

    def with_awaited(self, given: Given) -> list[Given] | None:
        """A call with what its coroutines give; None where it is given none."""
        if all(self._pending_coroutine(atom, given.state) is None for value in given.args for atom in value):
            return None
        ready = [replace(given, args=[])]
        for value in given.args:
            ready = [
                replace(one, args=[*one.args, result], state=after)
                for one in ready
                for after, result in self.awaited(value, one.state, given.frame)
            ]
        return ready
