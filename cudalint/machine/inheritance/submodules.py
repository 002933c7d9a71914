"""Modules of packages that only the parent imported: a fresh process does not find them in their packages."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Scope
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.handling import Handling
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Ref, Value, constant


class Submodules(Handling):
    """A machine that notes which submodules a worker finds only because its parent imported them."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Which processes imported a module of a library, or one below it, by its full name.
        self._importers: dict[str, set[tuple[str, ...]]] = {}

    def _library_import(self, dotted: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        for name in _leading(dotted):
            self._importers.setdefault(name, set()).add(state.process.identity)
        return super()._library_import(dotted, state, frame, ordinal)

    def _library_attribute(self, path: str, name: str, state: State, frame: Frame, site: Site) -> Results:
        self._finds_submodule((Lib(path),), name, site, state)
        return super()._library_attribute(path, name, state, frame, site)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        self._finds_submodule((ref,), name, site, state)
        return super()._object_attribute(ref, name, state, frame, site)

    def _names(self, call: Call, does: str) -> None:
        name = constant(call.args[1]) if does in ("getattr", "hasattr") and len(call.args) > 1 else None
        if isinstance(name, str):
            self._finds_submodule(call.args[0], name, call.site, call.state)
        super()._names(call, does)

    def _finds_submodule(self, owner: Value, name: str, site: Site, state: State) -> None:
        """An attribute of a module is asked for, which may be a module of a package."""
        for watch in self._reading(state):
            for atom in owner:
                found = self._inherited_module(atom, name, state, watch) if isinstance(atom, Lib | Ref) else None
                if found is not None:
                    watch.doubts.setdefault(Doubt(Why.DIFFERS, found, site))

    def _inherited_module(self, atom: Lib | Ref, name: str, state: State, watch: Watch) -> str | None:
        if isinstance(atom, Lib):
            return self._inherited_of_library(f"{atom.path}.{name}", state.process.identity, watch.launch.identity)
        found = state.get(atom)
        if not isinstance(found, Scope) or found.kind != "module" or name in found.variables:
            return None
        child = self.program.child(found.module, name)
        if child is None or state.get(Ref(("module", child))) is not None:
            return None
        return child if watch.launch.parent.get(Ref(("module", child))) is not None else None

    def _inherited_of_library(self, dotted: str, mine: tuple[str, ...], fresh: tuple[str, ...]) -> str | None:
        if self.library.traits.has(dotted, "comes-with-package"):
            return None
        importers = self._importers.get(dotted, ())
        if not importers:
            return None
        here = any(mine[:length] in importers for length in range(len(fresh), len(mine) + 1))
        before = any(fresh[:length] in importers for length in range(len(fresh)))
        return dotted if before and not here else None


def _leading(dotted: str) -> Iterator[str]:
    """A module and the packages around it: ``a.b.c``, ``a.b``, ``a``."""
    while dotted:
        yield dotted
        dotted = dotted.rpartition(".")[0]
