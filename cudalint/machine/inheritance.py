"""What a forked worker inherits from its parent, and a fresh process lacks: the proof that there is nothing.

A ``Prover`` runs a program whose workers start afresh. It keeps, for each process, a ledger of what may have changed it
in a way that the heap does not show; it notes which variables of modules a worker reads; and it compares these with
what a fork would have inherited. Whatever it cannot decide is a doubt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine.behaviours.callees import library_self
from cudalint.machine.behaviours.crossing import reachable, visited
from cudalint.machine.classes import lineage
from cudalint.machine.frame import Around, Call, Frame, Results
from cudalint.machine.heap import Class, Closure, Generator, Instance, Mapping_, Scope, Sequence, Thing
from cudalint.machine.interpret import Behaviours, Fresh, Host, Machine, Program
from cudalint.machine.joining import merge, merge_imported
from cudalint.machine.sameness import Comparison, follows, is_bare, known
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    Atom,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Task,
    Tensor,
    Unknown,
    Value,
    constant,
    only,
    strings,
    union,
    unknown,
)
from cudalint.models.library import Effect, Library


class Why(Enum):
    """Why a fresh process may not be what a forked one was."""

    SETS = "the parent sets something that a fresh process does not have"
    SEEDS = "the parent sets the course of random numbers"
    CALLS = "the parent calls something of which nothing is known"
    STORES = "the parent changes something that the code does not show whole"
    IMPORTS = "the parent imports something that a fresh process does not"
    REPEATS = "the import of a module does something that a fresh process repeats"
    DIFFERS = "the worker reads a variable that holds something else in a fresh process"
    HIDDEN = "the worker reads a variable whose content is not shown"
    UNSHOWN = "what the worker reads is not shown"
    SHARES = "one object is two in a fresh process"
    ORDER = "a set is iterated, whose order is another one in each fresh process"
    NAME = "the worker reads the name of the main module"
    CUT = "the code was not followed to its end"
    TESTED = "the program is a test, beside others"
    ASSUMED = "what comes before the launch is not seen"
    LENDS = "what the worker gives back lies in GPU memory that ends with it"
    IN_SHARED_MEMORY = "what is handed over is copied by a fork, and shared with a fresh process"
    STOPPED = "the worker was not seen to run"


class Handed(Enum):
    """What multiprocessing and the system give to a process that is spawned: its parent's, as it is at that time."""

    FOLDER = "the working folder"
    PATH = "where modules are looked for, after all that was there before"
    KEPT = "what the system keeps when another program is run"
    ENVIRONMENT = "variables of the environment that no library reads at its import"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One thing that may differ. ``name`` is empty where only its place says what it is."""

    why: Why
    name: str
    site: Site
    module: str = ""


@dataclass(frozen=True, slots=True)
class Inheritance:
    """A launch of fresh processes, and all that speaks against their being what forked ones were."""

    anchor: Site
    method: str
    doubts: tuple[Doubt, ...]


@dataclass(slots=True)
class _Entry:
    """Something that a process did at a place, reached by some calls, and from when to when that stands.

    ``handed``: what of it a process that is spawned gets when it starts.
    """

    key: Hashable
    doubt: Doubt
    begin: int
    end: int | None = None
    ends: bool = False
    handed: Handed | None = None

    def stands(self, at: int) -> bool:
        """Whether it is in force at a moment."""
        return self.begin <= at and (self.end is None or self.end > at)


@dataclass(slots=True)
class _Watch:
    """A fresh process while it is run: what it repeats of its parent, and what it reads.

    ``moments`` are those at which a fork would have inherited: the first, and that of the processes that replace it.
    """

    launch: Fresh
    moments: tuple[int, ...]
    booting: bool = True
    writes: bool = False
    booted: set[Hashable] = field(default_factory=set)
    snapshots: list[State] = field(default_factory=list)
    loaded: dict[str, list[State]] = field(default_factory=dict)
    reads: dict[tuple[str, str], Site] = field(default_factory=dict)
    doubts: dict[Doubt, None] = field(default_factory=dict)
    # What of that which it was handed its imports look at: there its parent found something else.
    notices: set[Handed] = field(default_factory=set)


# Builtins that tell a program about itself, or run text: what they read is not in the code. Texts hash differently in
# each fresh process.
_REFLECTING = frozenset(
    {
        "builtins.globals", "builtins.locals", "builtins.vars", "builtins.dir", "builtins.eval", "builtins.exec",
        "builtins.compile", "builtins.__import__", "builtins.hash", "builtins.id", "importlib.import_module",
        "importlib.reload", "inspect.getmembers", "inspect.currentframe", "inspect.stack", "gc.get_objects",
        "sys._getframe", "runpy.run_path", "runpy.run_module", "pickle.loads", "pickle.load", "os.getppid",
        "multiprocessing.get_start_method", "multiprocessing.parent_process", "multiprocessing.active_children",
        "threading.enumerate", "threading.active_count",
    }
)  # fmt: skip
# Changes of containers that the heap does not follow.
_LOSSY = frozenset(
    {
        "pop", "popleft", "insert", "remove", "discard", "sort", "reverse", "rotate", "extendleft", "popitem",
        "difference_update", "intersection_update", "symmetric_difference_update", "move_to_end", "__setitem__",
        "__delitem__", "__iadd__", "subtract",
    }
)  # fmt: skip
# Variables of the environment that are read when they are wanted, not when a library is imported.
_READ_LATE = frozenset({"MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE"})
_SETS_VARIABLES = frozenset({"environ.set", "environ.update"})
# Functions of these look at files, whose paths may be relative; these of them do not.
_OF_FILES = frozenset(
    {"os", "pathlib", "glob", "io", "tempfile", "shutil", "zipfile", "tarfile", "sqlite3", "importlib", "?"}
)
_OF_NO_FILES = frozenset(
    {
        "os.path.join", "os.path.dirname", "os.path.basename", "os.path.split", "os.path.splitext", "os.path.isabs",
        "os.path.normpath", "os.path.normcase", "os.path.commonpath", "os.path.expanduser", "os.fspath", "os.fsencode",
        "os.fsdecode", "os.getpid", "os.getppid", "os.cpu_count", "os.uname", "os.getuid", "os.sched_getaffinity",
        "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib.Path.home",
        "?.split", "?.strip", "?.lower", "?.upper", "?.replace", "?.format", "?.startswith", "?.endswith",
        "?.joinpath", "?.with_suffix", "?.with_name", "?.items", "?.keys", "?.values", "?.get",
    }
)  # fmt: skip
_READS_FILES = re.compile(r"open|load|read|from_|file|dir|path", re.IGNORECASE)
# Methods that the machine runs where Python runs them by itself.
_RUN = frozenset(
    {
        "__init__", "__new__", "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__",
        "__getitem__", "__getattr__", "__post_init__", "__init_subclass__", "__getstate__", "__setstate__",
        "__getitems__", "__setitem__",
    }
)  # fmt: skip
# What runs the function it is given at another time, or beside what follows.
_LATE = frozenset({"map", "filter", "starmap", "thread.start", "thread.call", "executor.loop"})
# What gives an iterator, which is not what it was once something was taken from it.
_ITERATING = frozenset({"iter", "zip", "map", "starmap", "filter", "enumerate"})
_MAKES_POOL = frozenset({"pool", "pool.subclass", "executor"})
_CONTAINER_METHODS = frozenset({"list.method", "dict.method"})


class Prover(Machine):
    """A machine that proves, for each launch of fresh processes, that these are what forked ones would have been.

    It follows what other runs leave out because no rule could care: idle functions, handlers of exceptions that nobody
    is seen to raise, callbacks of libraries, and the imports of all modules when they are imported.
    """

    def __init__(self, program: Program, library: Library, behaviours: Behaviours, main: str, host: Host) -> None:
        super().__init__(program, library, behaviours, main, host)
        self.inherited: list[Inheritance] = []
        self._moment = 0
        self._ledger: dict[tuple[str, ...], list[_Entry]] = {}
        # When pools and executors were made, by process and place.
        self._made: dict[tuple[tuple[str, ...], Site], int] = {}
        self._watches: list[_Watch] = []
        # The top-level packages that were imported, whatever imported them.
        self._imported: set[str] = {"python"}
        # The modules and calls that lead to what runs now, from the import of the last module on.
        self._where: list[Hashable] = []
        # By what objects and variables were changed in a way that their content does not show.
        self._unsteady: dict[Hashable, set[Hashable]] = {}
        # The addresses of iterators.
        self._iterators: set[Hashable] = set()
        # Calls that gave a new object in a function, which nothing else holds.
        self._own: set[tuple[Site, tuple[str, ...]]] = set()
        self._managers: list[Site] = []
        self._decorating: Site | None = None
        self._scopes: dict[Site, str] = {}
        self._functions: set[str] = set()
        self._speculated: set[Hashable] = set()
        self._outside: State | None = None
        # How deep in code that runs at another time than where it is evaluated here, or only in part.
        self._late = 0
        # Whether what runs does not look at the order of what it iterates.
        self._orders = False

    # -- the ledger -------------------------------------------------------------------------------------------

    def _key(self, site: Site, why: Why) -> Hashable:
        """A thing that is done, by the calls that lead to it from the top of its module.

        Of what a library may call nobody knows when it does, so that it is never the same thing in another process.
        """
        modules = [i for i, step in enumerate(self._where) if isinstance(step, str)]
        when = None if self._outside is None else "some day"
        return (*self._where[modules[-1] if modules else 0 :], site, why, when)

    def _note(
        self, why: Why, name: str, site: Site, state: State, ends: bool = False, handed: Handed | None = None
    ) -> None:
        """Something was done to this process that a fresh one may lack; ``ends``: it is taken back some day."""
        identity = state.process.identity
        key = self._key(site, why)
        if self._outside is None:
            self._boots(key, state)
        entries = self._ledger.setdefault(identity, [])
        if any(e.key == key and e.end is None and e.handed is handed for e in entries):
            return
        self._moment += 1
        entries.append(_Entry(key, Doubt(why, name, site), self._moment, ends=ends, handed=handed))

    def _boots(self, key: Hashable, state: State) -> None:
        """What the import of modules does is done again by a fresh process, in which it is the same."""
        watch = self._watch(state)
        if watch is not None and self._at_import(watch):
            watch.booted.add(key)

    def _close(self, site: Site, state: State) -> None:
        """What was in force while a ``with`` statement or a function lasted is over."""
        self._moment += 1
        for entry in self._ledger.get(state.process.identity, ()):
            if entry.ends and entry.doubt.site == site and entry.end is None:
                entry.end = self._moment

    def _watch(self, state: State) -> _Watch | None:
        """The fresh process that a state is of."""
        identity = state.process.identity
        return next((w for w in reversed(self._watches) if w.launch.identity == identity), None)

    def _at_import(self, watch: _Watch) -> bool:
        return watch.booting or self._importing > 0

    def _repeats(self, name: str, site: Site, state: State) -> None:
        """What a fresh process does that its parent did when it began."""
        watch = self._watch(state)
        if watch is None or not self._at_import(watch):
            return
        modules = [step for step in self._where if isinstance(step, str)]
        home = modules[-1] if modules else self.main
        if watch.launch.parent.get(Ref(("module", home))) is not None:
            watch.doubts.setdefault(Doubt(Why.REPEATS, name, site, "" if home == self.main else home))

    # -- launches ---------------------------------------------------------------------------------------------

    def begins_fresh(self, launch: Fresh, state: State) -> None:
        """A process that begins with a fresh import is about to start in this state of its parent."""
        made = (state.process.identity, launch.made)
        if launch.held:
            moment = self._made.get(made, self._moment)
        else:
            moment = self._made[made] = self._moment
        later = () if launch.later is None else (self._moment,)
        self._watches.append(_Watch(launch, (moment, *later)))

    def has_booted(self, children: list[State]) -> None:
        """The process that began last has imported what it begins with."""
        watch = self._watches[-1]
        watch.snapshots = [child.clone() for child in children]
        watch.booting = False
        for child in children:
            # Each of them takes the memory that its parent took, of one GPU.
            for context in child.process.contexts:
                watch.doubts.setdefault(Doubt(Why.REPEATS, "", context.where.hop.site))

    def ends_fresh(self, ran: bool, lends: bool) -> None:
        """The process that began last has ended; ``ran`` is false where it never came to its work."""
        watch = self._watches.pop()
        launch = watch.launch
        doubts = dict.fromkeys(self._lacks(watch))
        doubts.update(watch.doubts)
        doubts.update(dict.fromkeys(self._read(watch)))
        for why, holds in (
            (Why.STOPPED, not ran),
            (Why.LENDS, lends),
            (Why.IN_SHARED_MEMORY, self._shares_memory(watch)),
            (Why.CUT, self.cut is not None),
            (Why.TESTED, self.in_test),
            (Why.ASSUMED, self.assumed),
        ):
            if holds:
                doubts.setdefault(Doubt(why, "", launch.anchor))
        self.inherited.append(Inheritance(launch.anchor, launch.method, tuple(doubts)))

    def _shares_memory(self, watch: _Watch) -> bool:
        """Whether the worker may write where its parent reads: torch pickles what is on the CPU into shared memory."""
        parent = watch.launch.parent
        for atom in (a for value in watch.launch.given for a in visited(value, parent)):
            found = parent.get(atom) if isinstance(atom, Ref) else None
            match atom, found:
                case Tensor(framework="torch"), _ if watch.writes:
                    return True
                case Ref(), Thing(type=kind) if self.library.is_a(kind, "torch.nn.Module"):
                    return True
                case Ref(), Instance(cls=cls):
                    base = self.library_base(cls, parent)
                    if base is not None and self.library.is_a(base, "torch.nn.Module"):
                        return True
        return False

    def _lacks(self, watch: _Watch) -> Iterator[Doubt]:
        """What the parent, and those before it, did and the fresh process did not do again."""
        before = watch.launch.identity[:-1]
        done = [e for identity, all_of in self._ledger.items() if before[: len(identity)] == identity for e in all_of]
        handed = {e.handed for e in done if e.handed is not None} if watch.launch.method == "spawn" else set()
        if Handed.PATH in handed:
            # A folder of modules may be relative to the working folder.
            handed.discard(Handed.FOLDER)
        handed -= watch.notices
        for entry in done:
            if entry.handed in handed:
                # An executor may start more of its workers when more work comes, and then hands them this.
                if entry.begin > watch.moments[0] and watch.launch.held:
                    yield entry.doubt
                continue
            repeated = entry.key in watch.booted and entry.doubt.why is not Why.SEEDS
            if any(map(entry.stands, watch.moments)) and not repeated:
                yield entry.doubt

    def _read(self, watch: _Watch) -> Iterator[Doubt]:
        """The variables that the worker reads and that are not seen to be what a fork would have inherited."""
        yield from self._read_of(watch, watch.launch.parent)
        if watch.launch.later is not None:
            yield from self._read_of(watch, watch.launch.later)

    def _read_of(self, watch: _Watch, parent: State) -> Iterator[Doubt]:
        """The same of one state of the parent."""
        given = {r.address for value in watch.launch.given for r in reachable(value, parent) if _is_mutable(r, parent)}
        compared: dict[int, Comparison] = {}
        for (module, name), site in watch.reads.items():
            scope = parent.get(Ref(("module", module)))
            if not isinstance(scope, Scope):
                continue
            if name == "__name__" and module == self.main:
                yield Doubt(Why.NAME, name, site)
                continue
            shown = name if module == self.main else f"{module}.{name}"
            for state in watch.loaded.get(module) or watch.snapshots:
                comparison = compared.setdefault(id(state), self._comparison(watch, parent, state))
                yield from self._compared(watch, comparison, scope, module, name, Doubt(Why.DIFFERS, shown, site))
            value = scope.variables.get(name, ())
            if any(r.address in given for r in reachable(value, parent)):
                yield Doubt(Why.SHARES, shown, site)

    def _comparison(self, watch: _Watch, parent: State, state: State) -> Comparison:
        def unsteady(address: Hashable) -> bool:
            return address in self._iterators or not self._unsteady.get(address, set()) <= watch.booted

        def is_value(kind: str) -> bool:
            effect = self.library.effect(kind)
            return kind == "argparse.Namespace" or (effect is not None and effect.gives == "value")

        return Comparison(parent, state, unsteady, is_value)

    def _compared(
        self, watch: _Watch, comparison: Comparison, scope: Scope, module: str, name: str, doubt: Doubt
    ) -> Iterator[Doubt]:
        there = comparison.right.get(Ref(("module", module)))
        if not isinstance(there, Scope):
            if name in scope.variables:
                yield replace(doubt, why=Why.HIDDEN)
            return
        if name not in scope.variables and name not in there.variables:
            return
        changed = not self._unsteady.get((("module", module), name), set()) <= watch.booted
        if changed or name not in scope.variables or name not in there.variables:
            yield doubt
            return
        for found in comparison.variables(scope.variables[name], there.variables[name], doubt.name):
            yield replace(doubt, why=Why.HIDDEN if found.hidden else Why.DIFFERS, name=found.path)

    # -- what a worker reads ------------------------------------------------------------------------------------

    def _reading(self, state: State) -> Iterator[_Watch]:
        """The fresh processes that this one is, or comes from, while they do their work."""
        identity = state.process.identity
        for watch in self._watches:
            own = watch.launch.identity
            if identity[: len(own)] == own and not watch.booting:
                yield watch

    def _reads(self, module: str, name: str, state: State, site: Site | None = None) -> None:
        for watch in self._reading(state):
            if self._importing and module in self._where[-1:]:
                continue
            watch.reads.setdefault((module, name), site or watch.launch.anchor)

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
        if name == "__dict__" and isinstance(state.get(ref), Scope | Class):
            self._is_unshown("__dict__", site, state)
        return super()._object_attribute(ref, name, state, frame, site)

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call_atom(
        self,
        atom: Atom,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
        statement: bool,
    ) -> Results:
        match atom:
            case Lib(path=path) | Bound(function=Lib(path=path)) if self.library.function(path) is None:
                receiver = atom.receiver if isinstance(atom, Bound) else None
                return self._foreign(path, receiver, atom, args, kwargs, state, frame, site, is_open, statement)
            case Unknown(sym=sym):
                effect = self._calls_stranger(sym, site, state)
                is_value = effect is not None and effect.gives == "value"
                if is_value and follows(sym) and _all_known(args, kwargs):
                    return [(state, unknown("follows", sym, *args))]
                self._hands(args, kwargs, state, frame, site)
            case Lib() | Bound() | Partial() | Ref():
                pass
            case _:
                self._note(Why.CALLS, "", site, state)
        return super()._call_atom(atom, args, kwargs, state, frame, site, is_open, statement)

    def _foreign(
        self,
        path: str,
        receiver: Atom | None,
        atom: Atom,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
        statement: bool,
    ) -> Results:
        """A library function that no model describes."""
        if isinstance(receiver, Tensor) and path.endswith("_") and not path.endswith("__"):
            self._writes_array(state)
        self._looks_at_files(path, state)
        effect = self._effect_of(path, receiver)
        if effect is None:
            self._calls_unknown(_shown(path), site, state)
        else:
            self._leaves(effect, path, site, state)
        self._reflects(path, site, state)
        self._hands(args, kwargs, state, frame, site)
        results = super()._call_atom(atom, args, kwargs, state, frame, site, is_open, statement)
        if effect is None or not effect.gives:
            return results
        if effect.gives == "value" and receiver is None and _all_known(args, kwargs):
            return [(s, unknown("follows", path, *args)) for s, _ in results]
        if frame.function is not None:
            self._own.add((site, state.process.identity))
        return results

    def _effect_of(self, path: str, receiver: Atom | None) -> Effect | None:
        """What a call does to its process; what is done to an array stays in it."""
        owner, _, name = path.rpartition(".")
        if isinstance(receiver, Tensor) or path.startswith("cudalint."):
            return Effect()
        if name == "__init__":
            return Effect() if is_bare(owner) else self.library.effect(path) or self.library.effect(owner)
        return self.library.effect(path)

    def _calls_unknown(self, name: str, site: Site, state: State) -> None:
        self._note(Why.CALLS, name, site, state)
        self._repeats(name, site, state)

    def _calls_stranger(self, sym: Hashable, site: Site, state: State) -> Effect | None:
        """A call of a value that the code does not show; what it leaves behind, where it is a method of such a name."""
        match sym:
            case (_, ".", str(name)) if name not in self._functions:
                effect = self.library.effect(f"?.{name}")
                self._looks_at_files(f"?.{name}", state)
                if effect is not None:
                    self._leaves(effect, f"?.{name}", site, state)
                    return effect
                self._calls_unknown("", site, state)
            case _:
                self._calls_unknown("", site, state)
                self._is_unshown("", site, state)
        return None

    def _leaves(self, effect: Effect, path: str, site: Site, state: State) -> None:
        """What a library function is known to do to its process."""
        name = _shown(path)
        if effect.shows:
            self._repeats(name, site, state)
        match effect.state:
            case "process":
                self._note(Why.SETS, name, site, state)
            case "folder":
                self._note(Why.SETS, name, site, state, handed=Handed.FOLDER)
            case "path":
                self._note(Why.SETS, name, site, state, handed=Handed.PATH)
            case "kept":
                self._note(Why.SETS, name, site, state, handed=Handed.KEPT)
            case "seed":
                self._note(Why.SEEDS, name, site, state)
            case "scope" if site == self._decorating:
                self._scopes[site] = name
            case "scope":
                self._note(Why.SETS, name, site, state, ends=site in self._managers)

    def _reflects(self, path: str, site: Site, state: State) -> None:
        if path in _REFLECTING:
            self._is_unshown(_shown(path), site, state)

    def _hands(self, args: list[Value], kwargs: dict[str, Value], state: State, frame: Frame, site: Site) -> None:
        """What a library is given it may call."""
        for value in (*args, *kwargs.values()):
            for atom in value:
                self._speculate(atom, state, frame, site)

    def _speculate(self, atom: Atom, state: State, frame: Frame, site: Site) -> None:
        """Run what a library may call, on a copy: for what it reads and does."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        match atom, found:
            case ((Partial(function=function) | Task(function=function)), _):
                for inner in function:
                    self._speculate(inner, state, frame, site)
                return
            case Bound(function=Ref() as ref), _:
                found = state.get(ref)
            case Ref(), Instance(cls=cls):
                for _, method in _methods(cls, state):
                    self._speculate(Bound(method, atom), state, frame, site)
                return
            case Ref() as cls, Class():
                for _, method in _methods(cls, state):
                    self._speculate(method, state, frame, site)
                return
        if not isinstance(found, Closure):
            return
        place = (found.module, found.function.ordinal, state.process.identity, bool(self._watches))
        if place in self._speculated:
            return
        self._speculated.add(place)
        outside, self._outside = self._outside, self._outside or state
        copy = state.clone()
        inner_frame = Frame(frame.scope, frame.module, tries=1)
        for after, value in self.call_value((atom,), [], {}, copy, inner_frame, site):
            self.drained([(after, value)], inner_frame)
        self._outside = outside

    def _call_ref(
        self,
        ref: Ref,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
    ) -> Results:
        found = state.get(ref)
        match found:
            case Closure() | Class():
                pass
            case Instance() if self.user_method(found, "__call__", state) is not None:
                pass
            case Instance(cls=cls):
                base = self.library_base(cls, state)
                self._calls_object(f"{base or 'an object'}.__call__", site, state)
            case Thing(type=kind):
                self._calls_object(f"{kind}.__call__", site, state)
            case _:
                self._calls_unknown("", site, state)
        return super()._call_ref(ref, args, kwargs, state, frame, site, is_open)

    def _calls_object(self, path: str, site: Site, state: State) -> None:
        if self.library.function(path) is not None:
            return
        effect = self._effect_of(path, None)
        if effect is None:
            self._calls_unknown("", site, state)
        else:
            self._leaves(effect, path, site, state)

    def library_call(self, call: Call) -> Results:
        """Do what the model of a function says, and note what that leaves behind."""
        path, site, state = self.library.canonical(call.path), call.site, call.state
        does = call.text("does")
        self._looks_at_files(path, state)
        if does in _MAKES_POOL:
            self._made[state.process.identity, site] = self._moment
        if does in _CONTAINER_METHODS:
            self._changes_container(call)
        elif does.startswith("environ."):
            self._sets_environment(call, does)
        elif path.startswith("?.") and path[2:] in self._functions:
            self._calls_unknown("", site, state)
        else:
            effect = self.library.effect(path)
            if effect is not None:
                self._leaves(effect, path, site, state)
        self._names(call, does)
        by_name = does == "import-module" and isinstance(constant(call.get("name") or ()), str)
        if does == "import-module" and not by_name:
            self._calls_unknown("", site, state)
        if not by_name:
            self._reflects(path, site, state)
        key = call.kwargs.get("key")
        if key is not None:
            self._hands([key], {}, state, call.frame, site)
        late = does in _LATE or call.text("family") == "thread"
        if does == "stack.enter":
            self._enters(call)
        ordered, self._orders = self._orders, self._orders or path in _WITHOUT_ORDER
        self._late += late
        results = super().library_call(call)
        self._late -= late
        self._orders = ordered
        if does in _ITERATING:
            self._iterators.update(a.address for _, value in results for a in value if isinstance(a, Ref))
        if path == "builtins.frozenset":
            for after, value in results:
                _as_set(value, after)
        return results

    def _enters(self, call: Call) -> None:
        """A manager made of a generator stays entered until its stack is left."""
        for atom in (a for value in call.args for a in value):
            if isinstance(atom, Ref) and isinstance(call.state.get(atom), Generator):
                self._calls_unknown("", call.site, call.state)

    def consume(
        self, ref: Ref, generator: Generator, state: State, frame: Frame, around: Around | None = None
    ) -> Results:
        """Run a generator at its first consumer; what it changes between two elements nobody knows."""
        self._late += around is None
        results = super().consume(ref, generator, state, frame, around)
        self._late -= around is None
        return results

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression; the elements of a generator are made later."""
        late = isinstance(node, ir.Comprehension) and node.kind == "generator"
        self._late += late
        results = super().eval(node, state, frame)
        self._late -= late
        return results

    def iterate(self, value: Value, state: State, frame: Frame, site: Site) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop; those over a set come in an order of their own in each fresh process."""
        if not self._orders:
            for atom in value:
                self._iterates(atom, site, state)
        return super().iterate(value, state, frame, site)

    def _iterates(self, atom: Atom, site: Site, state: State) -> None:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Sequence) or found.kind != "set":
            return
        items = (*(found.items or ()), found.element)
        if all(isinstance(a, Const) and isinstance(a.value, int | float) for value in items for a in value):
            return
        for watch in self._watches:
            if state.process.identity[: len(watch.launch.identity)] == watch.launch.identity:
                watch.doubts.setdefault(Doubt(Why.ORDER, "", site))

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        atom = only(left)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.kind == "set" and op in ("|", "&", "-", "^"):
            parts = [*self.elements(left, state), *self.elements(right, state)]
            made = Sequence("set", None, union(parts) or unknown("element", Site(frame.module, ordinal)))
            return (state.new(("set", frame.module, ordinal), made),)
        return super()._combine(op, left, right, state, frame, ordinal)

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        """``x op= y``, which changes lists, sets and objects in place."""
        made = super()._augmented(node, left, right, state)
        if any(isinstance(atom, Tensor) for atom in left):
            self._writes_array(state)
        for atom in left:
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence | Mapping_ | Instance):
                constant_kind = isinstance(found, Sequence) and found.kind == "tuple"
                if not constant_kind:
                    self._stores_into(atom.address, Site("", node.ordinal), state, lossy=made != left)
        return made

    def _changes_container(self, call: Call) -> None:
        """A method of a list, set or dict: those that change it in a way the heap does not follow."""
        name = call.path.rpartition(".")[2]
        receiver = library_self(call)
        found = call.state.get(receiver) if isinstance(receiver, Ref) else None
        if name not in _LOSSY and name not in _CHANGES:
            return
        if not isinstance(receiver, Ref) or not isinstance(found, Sequence | Mapping_):
            self._calls_unknown("", call.site, call.state)
            return
        self._stores_into(receiver.address, call.site, call.state, lossy=name in _LOSSY)

    def _sets_environment(self, call: Call, does: str) -> None:
        """A library that reads a variable when it is imported finds another value in a fresh process."""
        if does in ("environ.get", "environ.contains", "environ.preset"):
            return
        if does == "environ.update":
            names = {str(n) for n in call.kwargs}
            dicts = [call.state.get(a) for v in call.args for a in v if isinstance(a, Ref)]
            names |= {str(k) for d in dicts if isinstance(d, Mapping_) and d.exact for k in d.items}
            whole = all(isinstance(d, Mapping_) and d.exact for d in dicts) and len(dicts) == len(call.args)
        else:
            names = set(strings(call.args[0])) if call.args else set()
            whole = bool(names)
        if whole and names <= _READ_LATE:
            return
        shown = f"os.environ[{sorted(names - _READ_LATE)[0]!r}]" if names - _READ_LATE else "os.environ"
        read = any(self.library.reads_at_import(root, name) for root in self._imported for name in names - _READ_LATE)
        handed = Handed.ENVIRONMENT if whole and not read and does in _SETS_VARIABLES else None
        self._note(Why.STORES, shown, call.site, call.state, handed=handed)

    def _names(self, call: Call, does: str) -> None:
        """Attributes by name: of a module they are read, and one whose name is not shown may be any."""
        if does not in ("getattr", "hasattr", "setattr", "vars") or not call.args:
            return
        name = constant(call.args[1]) if len(call.args) > 1 else ...
        if isinstance(name, str):
            self._reads_of(call.args[0], name, call.state)
        elif does == "setattr":
            self._note(Why.STORES, "", call.site, call.state)
        elif any(not isinstance(a, Const | Tensor) for a in call.args[0]):
            self._is_unshown(does, call.site, call.state)

    def call_closure(
        self,
        ref: Ref,
        closure: Closure,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
    ) -> Results:
        """Call a user function."""
        place = Site(closure.module, closure.function.ordinal)
        scoped = self._scopes.get(place)
        if scoped is not None:
            self._note(Why.SETS, scoped, place, state, ends=True)
        self._where.append(site)
        self._late += closure.function.is_async
        results = super().call_closure(ref, closure, args, kwargs, state, frame, site, is_open)
        self._late -= closure.function.is_async
        self._where.pop()
        if scoped is not None:
            self._close(place, state)
        return results

    def construct(
        self,
        ref: Ref,
        cls: Class,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
    ) -> Results:
        """``type.__call__``: a new instance, and its ``__init__``; what Python calls of it by itself may run."""
        base = self.library_base(ref, state)
        if base is not None and self._class_attribute(ref, "__init__", state) is None:
            effect = self._effect_of(f"{base}.__init__", None)
            if self.library.function(f"{base}.__init__") is None and effect is None:
                self._calls_unknown(_shown(base), site, state)
        results = super().construct(ref, cls, args, kwargs, state, frame, site, is_open)
        for after, made in results:
            atom = only(made)
            for name, method in _methods(ref, after):
                if isinstance(atom, Ref) and name.startswith("__") and name not in _RUN:
                    self._speculate(Bound(method, atom), after, frame, site)
        return results

    def passes_over(self, site: Site, state: State) -> None:
        """A call of a user function is not followed any further: a bound is met."""
        self._note(Why.CUT, "", site, state)
        for watch in self._reading(state):
            watch.doubts.setdefault(Doubt(Why.CUT, "", site))

    def _is_idle(self, closure: Closure, args: list[Value], kwargs: dict[str, Value], state: State) -> bool:
        return False

    # -- stores ------------------------------------------------------------------------------------------------------

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        """An object or a variable of the heap is changed: in a later round of a loop, its content is one of many."""
        if lossy or state.second_round or self._late:
            key = self._key(site, Why.STORES)
            self._unsteady.setdefault(address, set()).add(key)
            if self._outside is None:
                self._boots(key, state)
        if self._outside is not None:
            owner = address[0] if isinstance(address, tuple) and len(address) == 2 else address
            if self._outside.at(address) is not None or self._outside.at(owner) is not None:
                self._note(Why.STORES, "", site, state)

    def _is_own(self, atom: Atom, state: State) -> bool:
        """Whether an unknown is, or is part of, an object that a function of this process made for itself."""
        sym = atom.sym if isinstance(atom, Unknown) else None
        while isinstance(sym, tuple) and sym and isinstance(sym[0], tuple):
            sym = sym[0]
        return (
            isinstance(sym, tuple)
            and len(sym) > 2
            and sym[0] == "call"
            and isinstance(sym[1], Site)
            and (sym[1], state.process.identity) in self._own
        )

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name where ``global`` and ``nonlocal`` say."""
        home = self._home(name, state, frame.scope)
        found = state.get(home)
        if home != frame.scope or (isinstance(found, Scope) and found.kind == "module"):
            site = Site(frame.module, frame.function.ordinal if frame.function is not None else 0)
            self._stores_into((home.address, name), site, state)
        super().bind(name, value, state, frame)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        for atom in owner:
            found = state.get(atom) if isinstance(atom, Ref) else None
            match atom, found:
                case Ref(), Instance(cls=cls) if self._class_attribute(cls, "__setattr__", state) is not None:
                    self._note(Why.STORES, "", site, state)
                case Ref() as cls, Class(scope=scope):
                    self._stores_into(scope.address, site, state)
                    meta = self._kind_of(cls, state)
                    if meta is not None and self._class_attribute(meta, "__setattr__", state) is not None:
                        self._note(Why.STORES, "", site, state)
                case Ref(address=address), Scope():
                    self._stores_into((address, attr), site, state)
                case Ref(address=address), Instance() | Thing():
                    self._stores_into(address, site, state)
                case Ref(), Closure(function=function):
                    self._note(Why.STORES, f"{function.name}.{attr}", site, state)
                case Lib(path=path), _:
                    if self.library.function(f"{path}.{attr}.__set__") is None:
                        self._note(Why.STORES, f"{path}.{attr}", site, state)
                case Tensor(), _:
                    pass
                case _ if not self._is_own(atom, state):
                    self._note(Why.STORES, "", site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        atom = only(owner)
        found = state.get(atom) if isinstance(atom, Ref) else None
        setter = self.user_method(found, "__setitem__", state) if isinstance(found, Instance) else None
        if setter is not None:
            return [s for s, _ in self._call_atom(setter, [owner, key, value], {}, state, frame, site, False, False)]
        for each in owner:
            self._changes_item(each, "__setitem__", site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def _writes_array(self, state: State) -> None:
        """A worker changes an array in place."""
        for watch in self._reading(state):
            watch.writes = True

    def _changes_item(self, atom: Atom, method: str, site: Site, state: State) -> None:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Tensor):
            self._writes_array(state)
        match atom, found:
            case Ref(address=address), Sequence() | Mapping_():
                lossy = isinstance(found, Sequence) and method == "__delitem__"
                self._stores_into(address, site, state, lossy=lossy)
            case (Tensor(), _) | (Ref(), Thing()):
                pass
            case Lib(path=path), _:
                if self.library.function(f"{path}.{method}") is None:
                    self._note(Why.STORES, path, site, state)
            case _ if not self._is_own(atom, state):
                self._note(Why.STORES, "", site, state)

    def put_mapping(self, ref: Ref, made: Mapping_, state: State) -> None:
        """A dict after a change; that of an object's attributes changes the object."""
        if made.view is not None and not isinstance(state.get(made.view), Instance):
            self._unsteady.setdefault(made.view.address, set()).add(("view", made.view.address))
        super().put_mapping(ref, made, state)

    def _deletes_attributes(self, node: ir.Delete, state: State, frame: Frame) -> None:
        site = Site(frame.module, node.ordinal)
        for target in node.targets:
            if isinstance(target, ir.Attr):
                for current, owner in self.eval(target.value, state.clone(), frame):
                    self._deletes(owner, target.attr, site, current)

    def _deletes(self, owner: Value, attr: str, site: Site, state: State) -> None:
        for atom in owner:
            found = state.get(atom) if isinstance(atom, Ref) else None
            match atom, found:
                case Ref(), Class(scope=scope):
                    self._stores_into(scope.address, site, state, lossy=True)
                case Ref(address=address), Scope():
                    self._stores_into((address, attr), site, state, lossy=True)
                case Ref(address=address), Instance() | Thing():
                    self._stores_into(address, site, state, lossy=True)
                case _:
                    self._note(Why.STORES, "", site, state)

    def _delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        for atom in owner:
            self._changes_item(atom, "__delitem__", site, state)
        return super()._delete_item(owner, key, state, frame, site)

    # -- statements that are followed further ------------------------------------------------------------------------

    def run_module(self, module: ir.Module, dunder_name: str, state: State, frame: Frame | None = None) -> list[State]:
        """Run the top level of a module in this process."""
        self._functions.update(_function_names(module.body))
        watch = self._watch(state)
        self._where.append(module.name)
        states = super().run_module(module, dunder_name, state, frame)
        self._where.pop()
        if watch is not None and not watch.booting:
            watch.loaded[module.name] = [after.clone() for after in states[:2]]
        return states

    def _top_level(self, module: ir.Module, state: State, frame: Frame) -> list[State]:
        states = [state]
        for statement in module.body:
            states = self.block((statement,), states, frame)
            if self._importing and len(states) > 1:
                states = merge_imported(states)
        return states

    def act(self, home: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Run all modules that an import reaches: each of them may do something."""
        return [after for after, _ in self.load(home, state, frame, Site(frame.module, ordinal))]

    def _library_import(self, dotted: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        root = dotted.partition(".")[0]
        self._imported.add(root)
        if frame.guards_import:
            self._notices(Handed.PATH, state)
        if frame.function is not None and root not in sys.stdlib_module_names and not self.library.knows(root):
            self._note(Why.IMPORTS, dotted, Site(frame.module, ordinal), state)
        return super()._library_import(dotted, state, frame, ordinal)

    def _library_import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        if node.level:
            self._imported.add("")
        return super()._library_import_from(node, state, frame)

    def _notices(self, what: Handed, state: State) -> None:
        """The imports of a fresh process look at what it was handed."""
        watch = self._watch(state)
        if watch is not None and self._at_import(watch):
            watch.notices.add(what)

    def _looks_at_files(self, path: str, state: State) -> None:
        root, _, name = path.removeprefix("builtins.").partition(".")
        if path in _OF_NO_FILES or path.startswith("os.environ"):
            return
        if root in _OF_FILES or path.startswith("sys.path.") or _READS_FILES.search(name or root):
            self._notices(Handed.FOLDER, state)

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement."""
        match node:
            case ir.Delete():
                self._deletes_attributes(node, state, frame)
            case ir.Try(handlers=(_, *_)):
                return self._tries(node, state, frame)
        return super().statement(node, state, frame)

    def _tries(self, node: ir.Try, state: State, frame: Frame) -> list[State]:
        """A ``try`` statement; whatever is caught may have been raised by something that the code does not show."""
        caught = [state.clone() for _ in node.handlers]
        after = super().statement(node, state, frame)
        for handler, current in zip(node.handlers, caught, strict=True):
            if handler.name is not None:
                self.bind(handler.name, unknown("exception", frame.module), current, frame)
            handled = self.block(handler.body, [current], frame)
            after.extend(self.block(node.final, handled, frame) if node.final else handled)
        return merge(after)

    def _with_items(self, node: ir.With, position: int, state: State, frame: Frame) -> list[State]:
        if position == len(node.items):
            return super()._with_items(node, position, state, frame)
        site = Site(frame.module, node.items[position][0].ordinal)
        if not isinstance(node.items[position][0], ir.Call):
            self._manages(node.items[position][0], site, state, frame)
        self._managers.append(site)
        after = super()._with_items(node, position, state, frame)
        self._managers.pop()
        self._close(site, state)
        return after

    def _manages(self, manager: ir.Expr, site: Site, state: State, frame: Frame) -> None:
        """A manager that was made elsewhere: entering it may do what nobody sees."""
        for current, value in self.eval(manager, state.clone(), frame):
            for atom in value:
                if isinstance(atom, Unknown) and not self._is_own(atom, current):
                    self._calls_unknown("", site, current)

    def _decorate(self, decorator: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        before, self._decorating = self._decorating, Site(frame.module, decorator.ordinal)
        if isinstance(decorator, ir.Name | ir.Attr):
            for current, given in self.eval(decorator, state.clone(), frame):
                self._decorated_by(given, current)
        results = super()._decorate(decorator, value, state, frame)
        scoped = self._scopes.pop(self._decorating, None)
        self._decorating = before
        for after, made in results if scoped is not None else ():
            for atom in made:
                found = after.get(atom) if isinstance(atom, Ref) else None
                if isinstance(found, Closure) and scoped is not None:
                    self._scopes[Site(found.module, found.function.ordinal)] = scoped
        return results

    def _decorated_by(self, decorator: Value, state: State) -> None:
        """A decorator without arguments that no model describes may do anything with what it is given."""
        site = self._decorating
        atom = only(decorator)
        if site is None or not isinstance(atom, Lib | Unknown):
            return
        if isinstance(atom, Unknown):
            self._calls_unknown("", site, state)
            return
        effect = self._effect_of(atom.path, None)
        if effect is None:
            self._calls_unknown(_shown(atom.path), site, state)
        elif effect.state == "scope":
            self._scopes[site] = _shown(atom.path)

    def _truth_of(self, atom: Atom, state: State) -> bool | None:
        match atom:
            case Lib(path=path) if self.library.function(path) is None:
                return None
            case Ref():
                found = state.get(atom)
                if isinstance(found, Thing):
                    return None
                if isinstance(found, Instance) and self.user_method(found, "__bool__", state) is not None:
                    return None
        return super()._truth_of(atom, state)


# Functions that give the same whatever the order of what they iterate.
_WITHOUT_ORDER = frozenset(
    {
        "builtins.sorted", "builtins.len", "builtins.max", "builtins.min", "builtins.any", "builtins.all",
        "builtins.set", "builtins.frozenset", "builtins.set.update", "builtins.set.add", "builtins.list.update",
    }
)  # fmt: skip
_CHANGES = frozenset({"append", "appendleft", "add", "extend", "update", "clear", "setdefault"})


def _shown(path: str) -> str:
    """A name as a program writes it."""
    return path.removeprefix("builtins.").removeprefix("?.")


def _all_known(args: Iterable[Value], kwargs: dict[str, Value]) -> bool:
    return not kwargs and all(known(value) for value in args)


def _methods(cls: Ref, state: State) -> list[tuple[str, Ref]]:
    """The functions that the bodies of a class and its user bases define."""
    result: list[tuple[str, Ref]] = []
    for each in lineage(cls, state):
        scope = state.get(each.scope)
        for name, value in scope.variables.items() if isinstance(scope, Scope) else ():
            atom = only(value)
            if isinstance(atom, Ref) and isinstance(state.get(atom), Closure):
                result.append((name, atom))
    return result


def _is_mutable(ref: Ref, state: State) -> bool:
    """Whether a change of an object is seen by all who hold it."""
    found = state.get(ref)
    return isinstance(found, Instance | Mapping_ | Thing) or (isinstance(found, Sequence) and found.kind != "tuple")


def _as_set(value: Value, state: State) -> None:
    """A frozenset is one, although what iterates it otherwise need not know."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Sequence):
        state.put(atom, replace(found, kind="set"))


def _function_names(body: Iterable[ir.Stmt]) -> Iterator[str]:
    """The names of the functions and classes that code defines, whatever they are nested in."""
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function.name
                yield from _function_names(function.body)
            case ir.ClassDef(name=name, body=inner):
                yield name
                yield from _function_names(inner)
            case _:
                yield from _function_names(inner_statements(statement))


def combined(machines: Iterable[Machine]) -> tuple[Inheritance, ...]:
    """What provers have seen of all launches."""
    return tuple(found for machine in machines if isinstance(machine, Prover) for found in machine.inherited)
