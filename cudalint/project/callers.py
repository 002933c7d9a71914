"""Who calls a function that no entry reached: the places from which it takes its state.

Callers are found by name: a module that imports the function's module, however far, with a function that mentions its
name. A wrong guess costs work and nothing else, because whether a caller reaches the function is seen when it runs.
"""

from __future__ import annotations

from collections.abc import Collection

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions
from cudalint.project.program import FileProgram
from cudalint.project.reads import Reads
from cudalint.structs import Frozen, Mutable, field

MOST_MODULES = 6
MOST_CALLERS = 6
MOST_LEVELS = 5
MOST_USERS = 100
# Of functions that call another one, and that no root of theirs led to, so many are looked at.
_MOST_BESIDE = 3

Place = tuple[str, int]


class Caller(Frozen):
    """A function of a module."""

    module: str
    function: ir.Function

    @property
    def place(self) -> Place:
        """Its module and ordinal, for looking it up."""
        return self.module, self.function.ordinal


class Callers(Mutable):
    """Looks callers up."""

    files: FileProgram
    _above: dict[str, list[str]] = field(default_factory=dict)
    _known: dict[Place, tuple[list[Caller], Reads]] = field(default_factory=dict)

    def roots(self, of: Caller, seen: Collection[Place]) -> list[Caller]:
        """The functions from which a function is reached and that have no known caller, ``seen`` ones left out."""
        found: dict[Place, Caller] = {}
        known: set[Place] = {of.place}
        level = [of]
        for _ in range(MOST_LEVELS):
            following: list[Caller] = []
            for callee in level:
                callers = [c for c in self._of(callee) if c.place not in seen]
                if not callers and callee is not of:
                    found[callee.place] = callee
                following.extend(c for c in callers if c.place not in known)
                known.update(c.place for c in callers)
            level = following[:MOST_CALLERS]
            if not level:
                break
        return [found[place] for place in sorted(found)]

    def in_its_class(self, of: Caller) -> list[Caller]:
        """The methods of its class by which a method is called, where nothing else mentions it."""
        owner = _class_of(of)
        callers = self._of(of) if owner is not None else []
        return callers if all(_class_of(caller) == owner for caller in callers) else []

    def beside(self, of: Caller, seen: Collection[Place]) -> list[Caller]:
        """The functions that call a function, and make its object where it is a method, ``seen`` ones left out."""
        owner = _class_of(of)
        words = {owner[1].rpartition(".")[2]} if owner is not None else None
        callers = [c for c in self._of(of) if c.place not in seen and _class_of(c) != owner]
        return [c for c in callers if words is None or c.function.mentions(words)][:_MOST_BESIDE]

    def _of(self, callee: Caller) -> list[Caller]:
        if callee.place not in self._known:
            # What is found must not depend on what the entry that asks first may still read.
            with self.files.aside() as read:
                found = self._search(callee)
            self._known[callee.place] = found, read
        callers, read = self._known[callee.place]
        self.files.rest_on(read)
        return callers

    def _search(self, callee: Caller) -> list[Caller]:
        wanted = _mentioned_as(callee.function)
        homes = self.homes(callee.module, wanted[-1])
        self.files.reads.sought[callee.module, wanted[-1]] = homes
        result: list[Caller] = []
        for home in homes[:MOST_MODULES]:
            module = self.files.module(home)
            for function in functions(module.body) if module is not None else ():
                same = home == callee.module and function.ordinal == callee.function.ordinal
                if not same and function.mentions({wanted[-1]}) and not function.name.startswith("test"):
                    result.append(Caller(home, function))
        if len(homes) > MOST_MODULES:
            self.files.note(f"{wanted[-1]}() of {callee.module} has more callers than are followed")
        return result

    def homes(self, module: str, word: str) -> tuple[str, ...]:
        """A module and those that import it, as far as they hold a word, the nearest first."""
        sought = word.encode()
        return tuple(name for name in self._users(module) if sought in self.files.sources[name].data)

    def _users(self, name: str) -> list[str]:
        """A module and those that import it, the nearest first."""
        if name not in self._above:
            importers = self.files.graph.importers
            order = {name: None}
            level = [name]
            while level and len(order) < MOST_USERS:
                level = sorted({i for n in level for i in importers.get(n, ())} - order.keys())
                order.update(dict.fromkeys(level))
            self._above[name] = list(order)
        return self._above[name]


def _class_of(method: Caller) -> tuple[str, str] | None:
    owner = method.function.qualname.rpartition(".")[0]
    return None if not owner or owner.endswith("<locals>") else (method.module, owner)


def _mentioned_as(function: ir.Function) -> tuple[str, ...]:
    """The name by which a caller mentions a function: a special method by its class."""
    parts = tuple(p for p in function.qualname.split(".") if p != "<locals>")
    special = function.name.startswith("__") or function.name in ("run", "forward")
    return parts[:-1] if special and len(parts) > 1 else parts
