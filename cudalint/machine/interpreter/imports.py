"""Imports: modules of the program, once per process and when they are needed, and libraries."""

from __future__ import annotations

from collections.abc import Set

from cudalint.ir import nodes as ir
from cudalint.ir import promised, walk
from cudalint.machine import collecting, first_values
from cudalint.machine.frame import Frame, Raised, Results
from cudalint.machine.heap import ARGV, STAR, Scope
from cudalint.machine.interpreter import lineages
from cudalint.machine.interpreter.core import MOST_IMPORTS, MOST_NESTED, Core
from cudalint.machine.listings import is_listed
from cudalint.machine.questions import DEFINES, INSTALLED
from cudalint.machine.state import State
from cudalint.machine.trace import Site, TraceStep
from cudalint.machine.values import Atom, Deferred, Lib, Ref, Value, const, constant, holds_deferred, only, unknown

REEXPORTS = 10
# A name that a module does not give.
_NO_IMPORT = Raised(None, ("ImportError",))
# What can give a module names that its text does not hold.
_MAKING_NAMES = ("__getattr__", "globals", "locals", "vars", "setattr", "exec", "modules", "__dict__")
_OF_EVERY_MODULE = ("__file__", "__path__", "__package__", "__doc__", "__spec__", "__loader__", "__builtins__")


class Imports(Core):
    """Imports modules."""

    def _import(self, node: ir.Import, state: State, frame: Frame) -> list[State]:
        states = [state]
        for dotted, alias in node.names:
            following: list[State] = []
            for current in states:
                following.extend(self._import_one(dotted, alias, current, frame, node.ordinal))
            states = following
        return states

    def _import_one(self, dotted: str, alias: str | None, state: State, frame: Frame, ordinal: int) -> list[State]:
        home = self.program.resolve(frame.module, dotted, 0)
        if home is None:
            if self._misses_package(dotted, state, frame):
                return []
            self._may_be_missing(dotted, state, frame, ordinal)
            states = self._library_import(dotted, state, frame, ordinal)
            value: Value = (Lib(self.library.canonical(dotted)),) if alias else (Lib(dotted.split(".")[0]),)
            for current in states:
                self.bind(alias or dotted.split(".")[0], value, current, frame)
            return states
        if alias is not None or "." not in dotted:
            states = self.act(home, state, frame, ordinal)
            for current in states:
                self.bind(alias or dotted, (Deferred(home, None, Site(frame.module, ordinal)),), current, frame)
            return states
        site = Site(frame.module, ordinal)
        result: list[State] = []
        for current, module in self.load(home, state, frame, site):
            if alias is None and "." in dotted:
                root = self.program.resolve(frame.module, dotted.split(".")[0], 0)
                for after, top in self.load(root, current, frame, site) if root else [(current, module)]:
                    self.bind(dotted.split(".")[0], top, after, frame)
                    result.append(after)
                continue
            self.bind(alias or dotted, module, current, frame)
            result.append(current)
        return result

    def _misses_package(self, dotted: str, state: State, frame: Frame) -> bool:
        """Whether a guarded import fails: of a package that nobody has on a machine with CUDA."""
        if not frame.guards_import or not self.library.is_of_other_hardware(dotted):
            return False
        frame.raises.append((state, Raised(None, ("ImportError", "ModuleNotFoundError"))))
        return True

    def _may_be_missing(self, dotted: str, state: State, frame: Frame, ordinal: int) -> None:
        """A path on which a guarded import fails: it is not known whether that package is installed."""
        first = dotted.partition(".")[0]
        if not frame.guards_import or not self.is_unseen(first):
            return
        self.consultations += 1
        lacked = dotted if first and self.program.resolve(frame.module, first, 0) is not None else first
        sym = (INSTALLED, lacked or frame.module)
        if state.fact(sym) is not None:
            return
        without = state.split(sym)
        missing = TraceStep(Site(frame.module, ordinal), f"{lacked} is not installed", state.process.label, lacked)
        frame.raises.append((without, Raised(None, ("ImportError", "ModuleNotFoundError"), missing=missing)))

    def imported(self, dotted: str, state: State, frame: Frame, site: Site) -> list[State]:
        """What importing a library does."""
        return self._library_import(dotted, state, frame, site.ordinal)

    def _library_import(self, dotted: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Importing some libraries does something; each prefix of the name is imported."""
        parts = dotted.split(".")
        states = [state]
        for i in range(1, len(parts) + 1):
            path = f"import {'.'.join(parts[:i])}"
            site = Site(frame.module, ordinal)
            following: list[State] = []
            for current in states:
                call = self._library_call(path, current, frame, site, [])
                following.extend([current] if call is None else [s for s, _ in self.library_call(call)])
            states = following
        return states

    def _import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        home = self.program.resolve(frame.module, node.module, node.level)
        if home is None:
            if self._misses_package(node.module, state, frame):
                return []
            self._may_be_missing(node.module, state, frame, node.ordinal)
            return self._library_import_from(node, state, frame)
        if node.names is not None:
            return self._defer(node, node.names, home, state, frame)
        result: list[State] = []
        for current, module in self.load(home, state, frame, Site(frame.module, node.ordinal)):
            result.extend(self._star(home, module, current, frame, node.ordinal))
        return result

    def _defer(
        self,
        node: ir.ImportFrom,
        names: tuple[tuple[str, str | None], ...],
        home: str,
        state: State,
        frame: Frame,
    ) -> list[State]:
        """Names of a module whose import does nothing by itself: it runs when one of them is used."""
        states = self.act(home, state, frame, node.ordinal)
        if frame.guards_import and any(self.has_no_name(home, name) for name, _ in names):
            frame.raises.extend((current, _NO_IMPORT) for current in states)
            return []
        if frame.guards_import and self._makes_names(home):
            site = Site(frame.module, node.ordinal)
            for name, _ in names:
                states = [s for c in states for s in self._that_gives(home, name, c, frame, site)]
        for name, _ in names:
            child = self.program.child(home, name)
            if child is not None:
                states = [s for c in states for s in self.act(child, c, frame, node.ordinal)]
        for current in states:
            self._bind_names(node, home, current, frame)
        return states

    def _makes_names(self, home: str) -> bool:
        """Whether a module of the program says by a function of its own which names it has."""
        module = self.program.module(home)
        return module is not None and walk.mentions(module, {"__getattr__"})

    def _that_gives(self, home: str, name: str, state: State, frame: Frame, site: Site) -> list[State]:
        """The paths on which a module gives a name that it may make; on others the import fails."""
        loaded = self.load(home, state, frame, site)
        if self.program.child(home, name) is not None:
            return [after for after, _ in loaded]
        given, lacking = self.attempt(
            "AttributeError",
            lambda: [r for s, module in loaded for r in self._given_by(module, name, s, site, frame)],
            frame,
        )
        frame.raises.extend((after, _NO_IMPORT) for after in lacking)
        return [after for after, _ in given]

    def _given_by(self, module: Value, name: str, state: State, site: Site, frame: Frame) -> Results:
        """What a module has under a name, or makes for it."""
        if (found := self._member(module, name, state)) is not None:
            return [(state, found)]
        given = self._from_getattr(module, name, state, site, frame)
        return [(state, unknown("import", name))] if given is None else given

    def has_no_name(self, home: str, name: str) -> bool:
        """Whether a module of the program certainly has no such name: nothing in it mentions that, or makes names.

        In a package, the name may be that of a compiled module.
        """
        module = self.program.module(home)
        if module is None or name.startswith("__") or self.program.package(home) == home:
            return False
        return not walk.mentions(module, {name, *_MAKING_NAMES}) and not walk.imports_all(module.body)

    def bind_later(self, node: ir.ImportFrom, state: State, frame: Frame) -> None:
        """Bind what an import would bind for which no step is left: its module runs where a name is used, if it can."""
        home = self.program.resolve(frame.module, node.module, node.level)
        if home is not None:
            self._bind_names(node, home, state, frame)

    def _bind_names(self, node: ir.ImportFrom, home: str, state: State, frame: Frame) -> None:
        for name, alias in node.names or ():
            value: Value = (Deferred(home, name, Site(frame.module, node.ordinal)),)
            self.bind(alias or name, self._held_now(home, name, state) or value, state, frame)

    def _held_now(self, home: str, name: str, state: State) -> Value:
        """What a module that was imported before has under a name by now, if a function changed that."""
        ref = Ref(("module", home))
        found = state.get(ref)
        if not isinstance(found, Scope) or found.variables.get(name) == first_values.of(found, name, state):
            return ()
        return self._member((ref,), name, state) or ()

    def act(self, home: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Run the modules that an import reaches and whose top level matters; the others wait."""
        states, site = [state], Site(frame.module, ordinal)
        for name in self.program.effectful_imports(home):
            states = [s for c in states for s, _ in self.load_one(name, c, frame, site, through=home)]
        return states

    def _measured(self, module: str, name: str) -> Lib | None:
        """The library function that a model describes, also where the library is itself the project that is read.

        What a project calls as a library is called is its own.
        """
        path = self.library.canonical(f"{module}.{name}")
        if self.library.function(path) is None or not self.program.is_library(module):
            return None
        return Lib(path)

    def resolve_deferred(self, value: Value, state: State, frame: Frame, depth: int = 0) -> Results:
        """What a deferred import stands for: its module runs now, in this process."""
        if len(value) > 1 and holds_deferred(value):
            value = _possible(value, state)
            parts = [(state if i == 0 else state.clone(), (a,)) for i, a in enumerate(value)]
            return [r for current, part in parts for r in self.resolve_deferred(part, current, frame, depth)]
        atom = only(value)
        if not isinstance(atom, Deferred):
            return [(state, value)]
        if atom.covered is not None:
            state.assume((INSTALLED, atom.lacked) if atom.lacked else (DEFINES, atom.module, atom.name), False)
            return self.resolve_deferred((atom.covered,), state, frame, depth)
        measured = None if atom.name is None else self._measured(atom.module, atom.name)
        if measured is not None:
            return [(state, (measured,))]
        if depth > REEXPORTS:
            return [(state, unknown("import", atom.module, atom.name))]
        child = None if atom.name is None else self.program.child(atom.module, atom.name)
        if atom.name is not None and child is not None:
            loaded = self.load_one(atom.module, state, frame, atom.site)
            result: Results = []
            for current, module in loaded:
                found = self._first_member(module, atom.name, current)
                # A package may import its own submodules by its own name: that is what they are.
                if found is not None and atom not in found:
                    result.extend(self.resolve_deferred(found, current, frame, depth + 1))
                else:
                    result.extend(self.load(child, current, frame, atom.site))
            return result
        result = []
        for current, module in self.load(atom.module, state, frame, atom.site):
            if atom.name is None:
                result.append((current, module))
                continue
            found = self._first_member(module, atom.name, current)
            if found is not None:
                result.extend(self.resolve_deferred(found, current, frame, depth + 1))
                continue
            given = self._from_getattr(module, atom.name, current, atom.site, frame, depth)
            result.extend([(current, unknown("import", atom.module, atom.name))] if given is None else given)
        return result

    def _member(self, module: Value, name: str, state: State) -> Value | None:
        atom = only(module)
        found = state.get(atom) if isinstance(atom, Ref) else None
        return found.variables.get(name) if isinstance(found, Scope) else None

    def _first_member(self, module: Value, name: str, state: State) -> Value | None:
        now = self._member(module, name, state)
        found = state.get(atom) if isinstance(atom := only(module), Ref) else None
        return now if now is None or not isinstance(found, Scope) else first_values.of(found, name, state)

    def _from_getattr(
        self, module: Value, name: str, state: State, site: Site, frame: Frame, depth: int = 0
    ) -> Results | None:
        """What a module's own ``__getattr__`` gives for a name; None where it has none.

        What the module imports for type checkers under that name is what it is, in whatever way it is provided.
        """
        atom = only(module)
        found = state.get(atom) if isinstance(atom, Ref) else None
        lazy = self._promised(found.module, name, site) if isinstance(found, Scope) else None
        if lazy is not None:
            inner = Frame(Ref(("module", lazy.module)), lazy.module)
            return self.resolve_deferred((lazy,), state, inner, depth + 1)
        getter = found.variables.get("__getattr__") if isinstance(found, Scope) else None
        if getter is None or not isinstance(atom, Ref) or not isinstance(found, Scope):
            return None
        inside = Frame(atom, found.module, raises=frame.raises, tries=frame.tries)
        return self.call_value(getter, [const(name)], {}, state, inside, site)

    def _promised(self, module: str, name: str, site: Site) -> Deferred | None:
        """The name of another module of the program that a module imports for type checkers only."""
        lowered = self.program.module(module)
        found = None if lowered is None else promised.imported(lowered, name)
        if found is None:
            return None
        node, given = found
        home = self.program.resolve(module, node.module, node.level)
        return None if home is None or home == module else Deferred(home, given, site)

    def _library_import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        if node.level:
            for name, alias in node.names or ():
                self.bind(alias or name, unknown("import", node.module, name), state, frame)
            return [state]
        states = self._library_import(node.module, state, frame, node.ordinal)
        for name, alias in node.names or ():
            path = f"{node.module}.{name}"
            own = self.program.below_library(frame.module, node.module, name)
            if own is not None:
                states = [s for c in states for s in self.act(own, c, frame, node.ordinal)]
                for current in states:
                    self.bind(alias or name, (Deferred(own, None, Site(frame.module, node.ordinal)),), current, frame)
                continue
            if self.library.is_imported_module(path):
                states = [s for c in states for s in self._library_import(path, c, frame, node.ordinal)]
            full = self.library.canonical(path)
            constants = self.library.constants
            for current in states:
                self.bind(alias or name, const(constants[full]) if full in constants else (Lib(full),), current, frame)
        if node.names is None:
            for current in states:
                for name in self.library.exports(node.module):
                    self.bind(name, (Lib(self.library.canonical(f"{node.module}.{name}")),), current, frame)
                if self.is_unseen(node.module.partition(".")[0]):
                    self._cover(node, current, frame)
        return states

    def _cover(self, node: ir.ImportFrom, state: State, frame: Frame) -> None:
        """``from package import *`` of a package that is not seen: it may define what was imported before, or more."""
        found = state.get(frame.scope)
        for name, value in tuple(found.variables.items()) if isinstance(found, Scope) else ():
            atom = only(value)
            if isinstance(atom, Lib) and self.library.function(atom.path) is not None:
                site = Site(frame.module, node.ordinal)
                self.bind(name, (Deferred(node.module, name, site, atom),), state, frame)
        self.bind(STAR, (Lib(node.module),), state, frame)

    def _star(self, home: str, module: Value, state: State, frame: Frame, ordinal: int) -> list[State]:
        """``from module import *``: what ``__all__`` names where it is known, else all public names."""
        found = state.get(atom) if isinstance(atom := only(module), Ref) else None
        if not isinstance(found, Scope):
            return [state]
        forced = self.resolve_deferred(found.variables.get("__all__", ()), state, frame)
        listed = self.exact_items(forced[0][1], state) if len(forced) == 1 else None
        given = None if listed is None else {constant(item) for item in listed}
        for name, value in found.variables.items():
            if name in given if given is not None else not name.startswith("_"):
                self.bind(name, value, state, frame)
        if "__all__" not in found.variables or self.program.package(home) != home:
            return [state]
        named = [name for _, value in forced for name in self.elements(value, state)]
        return self._star_modules(home, named, found.variables.keys(), state, frame, ordinal)

    def _star_modules(
        self, home: str, named: list[Value], bound: Set[str], state: State, frame: Frame, ordinal: int
    ) -> list[State]:
        """The modules that ``__all__`` of a package names: they are imported then, if nothing did before."""
        within = self.program.submodules(home)
        if not any(is_listed(self.library, name) for name in named):
            known = {constant(name) for name in named} - bound
            within = tuple(one for one in within if one.rpartition(".")[2] in known)
        states = [state]
        for one in within:
            states = [s for current in states for s in self.act(one, current, frame, ordinal)]
            for current in states:
                value: Value = (Deferred(one, None, Site(frame.module, ordinal)),)
                self.bind(one.rpartition(".")[2], value, current, frame)
        return states

    def load(self, name: str, state: State, frame: Frame, site: Site) -> Results:
        """Import a module of the project: its packages first, its top level once per process."""
        states = [state]
        for package in self.program.parents(name):
            if self.program.module(package) is not None:
                states = [s for c in states for s, _ in self.load_one(package, c, frame, site)]
        return [r for c in states for r in self.load_one(name, c, frame, site)]

    def load_one(self, name: str, state: State, frame: Frame, site: Site, through: str = "") -> Results:
        """Import a module whose packages were imported."""
        ref = Ref(("module", name))
        if state.get(ref) is not None:
            return [(state, (ref,))]
        prepared = self.import_prepared(name, state, frame, site)
        if prepared:
            return [(after, (ref,)) for after in prepared]
        module = self.program.module(name, within=self._importing > 0)
        if module is None:
            return [(state, unknown("module", name))]
        before = state.stack
        direct = not through or f"{through}.".startswith(f"{name}.")
        state.stack = self.chain(state, site, f"imports {name}" if direct else f"imports {through}, and that {name}")
        self._importing += 1
        states = self.run_module(module, name, state, frame)
        self._importing -= 1
        for after in states:
            after.stack = before
        return [(after, (ref,)) for after in states]

    def import_prepared(self, name: str, state: State, frame: Frame, site: Site) -> list[State]:
        """The paths after an import that was run for other entries; none where this one has to run it."""
        if self.importer is None or self._importing or frame.tries or frame.guards_import or frame.around is not None:
            return []
        begun = lineages.begun(state)
        done = None if begun is None else self.importer.imported(name, begun.base, begun.below)
        if begun is None or done is None or (done.reads_words and state.get(ARGV) is not None):
            return []
        paths = lineages.grafted(state, begun, done)
        if not paths:
            return []
        self.prepared[done.root] = self.chain(state, site, done.root.message).steps()
        self.record.entered |= done.entered
        self.record.commands.extend(done.commands)
        self.record.reads_words |= done.reads_words
        self.record.offers.made.update(done.offers)
        self.meeting_seen |= done.meeting
        self.called_back |= done.called_back
        self.record.asked = {**done.asked, **self.record.asked}
        self.record.refused.extend(done.refused)
        self.record.cut = self.record.cut or done.cut
        return paths

    def run_module(self, module: ir.Module, dunder_name: str, state: State, frame: Frame | None = None) -> list[State]:
        """Run the top level of a module in this process."""
        ref = Ref(("module", module.name))
        variables: dict[str, Value] = {name: unknown(name, module.name) for name in _OF_EVERY_MODULE}
        variables["__name__"] = const(dunder_name)
        variables["__package__"] = const(self.program.package(module.name) or "")
        state.store(ref, Scope(variables, None, module.name, "module"))
        inner = Frame(ref, module.name)
        if frame is not None:
            inner.raises = frame.raises
            inner.tries = frame.tries
        if self._importing > MOST_IMPORTS or self._depth > self._most_depth or self._nested > MOST_NESTED:
            self.record.cut = self.record.cut or "imports nested too deeply"
            return [state]
        journal = collecting.begin(state)
        self._active.append(("", -1))
        states = self._top_level(module, state, inner)
        self._active.pop()
        collecting.end_import(states, journal, self.puts)
        for after in states:
            first_values.forget(module.name, after)
        if len(states) == 1:
            states[0].freeze()
        if frame is None:
            self.uncaught = inner.raises
        return states


def _possible(value: Value, state: State) -> Value:
    """The alternatives of a variable that this path can have, by what it assumes to be installed."""
    for atom in value:
        if isinstance(atom, Deferred) and atom.lacked:
            is_there = state.fact((INSTALLED, atom.lacked))
            if is_there is not None:
                return tuple(a for a in value if (a != atom if is_there else _lacks(a, atom.lacked))) or value
    return value


def _lacks(atom: Atom, package: str) -> bool:
    return isinstance(atom, Deferred) and atom.lacked == package
