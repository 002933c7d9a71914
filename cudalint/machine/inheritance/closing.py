"""What a program closes or removes while its workers go on, which may not have begun to use it yet.

A file that is written surely holds all of it when it is closed, and a temporary folder is gone when it is left.
"""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Closure, LibraryObject
from cudalint.machine.inheritance.beside import Besides
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.sameness import known
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Act, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Unknown, Value

_LEAVES = "__exit__"
# What puts something into a file for others to see, or may.
_WRITES = frozenset({"close", _LEAVES, "flush", "write", "writelines", "truncate"})
_PRINTS = "builtins.print"


class Closing(Besides):
    """A machine that notes what ends beside workers that may use it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The files that the program opened to write them, by the calls that did.
        self._written: dict[Site, Value] = {}
        # What the function that runs has made, and nothing else holds: it is removed when that returns.
        self._held_alone: set[Site] = set()

    def _changes_file(
        self, path: str, receiver: Atom | None, args: list[Value], kwargs: dict[str, Value], site: Site, state: State
    ) -> None:
        super()._changes_file(path, receiver, args, kwargs, site, state)
        if self.library.traits.has(path, "removes-files") and state.process.identity in self._beside:
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        if self.library.traits.has(path, "opens-file") and self._act_on_file(path, args, kwargs) is Act.SETS:
            named = (receiver,) if receiver is not None else args[0] if args else ()
            self._written[site] = named if known(named) else ()

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))):
                self._closes(base, name, given.site, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may close what it is called of."""
        if call.receiver is not None:
            self._closes(call.receiver, call.path.rpartition(".")[2], call.site, call.state)
        for atom in call.kwargs.get("file", ()) if call.path == _PRINTS else ():
            self._closes(atom, "write", call.site, call.state)
        self._makes_temporary(call.path, call.site)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        if isinstance(atom, Bound):
            self._closes(atom.receiver, path.rpartition(".")[2], given.site, given.state)
        self._makes_temporary(path, given.site)
        return super()._foreign(path, atom, given)

    def _makes_temporary(self, path: str, site: Site) -> None:
        if self.library.traits.has(path, "ends-when-let-go"):
            self._held_alone.add(site)

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function, which lets go at its end of what it has made and nothing else holds."""
        outer, self._held_alone = self._held_alone, set()
        results = super().call_closure(ref, closure, given)
        alone, self._held_alone = self._held_alone, outer
        for after, value in results if alone else ():
            returned = alone & {_origin_of(atom, after)[1] for atom in self._holds(value, after)}
            outer |= returned
            for site in alone - returned if after.process.identity in self._beside else ():
                self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        return results

    def _keeps(self, value: Value, site: Site, state: State) -> None:
        super()._keeps(value, site, state)
        if self._held_alone:
            self._held_alone -= {_origin_of(atom, state)[1] for atom in self._holds(value, state)}

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__()``: a file is closed, and what is temporary is removed."""
        for atom in manager:
            self._closes(atom, _LEAVES, site, state)
            self._held_alone.discard(_origin_of(atom, state)[1])
        return super().leave(manager, state, frame, site)

    def _closes(self, thing: Hashable, method: str, site: Site, state: State) -> None:
        path, made = _origin_of(thing, state)
        if self.library.traits.has(f"{path}.{method}", "ends-for-others"):
            if state.process.identity in self._beside:
                self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        elif made in self._written and method in _WRITES and self._written[made]:
            self._does(Act.SETS, self._written[made], made, state)


def _origin_of(thing: Hashable, state: State) -> tuple[str, Site]:
    """By which function of a library something was made, and where; also what was entered as a manager."""
    nowhere = "", Site("", 0)
    match thing:
        case Ref():
            found = state.get(thing)
            return (found.type, found.site) if isinstance(found, LibraryObject) else nowhere
        case Unknown(sym=sym):
            return _origin_of(sym, state)
        case ("call", Site() as site, _, _, str(path), *_):
            return path, site
        case ("entered", inner, *_):
            return _origin_of(inner, state)
    return nowhere
