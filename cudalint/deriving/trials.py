"""Calls of a package's functions on the machine, one at a time, in a process made for it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions
from cudalint.machine.effects.registry import LibraryEffects
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Class, Closure, Scope
from cudalint.machine.interpreter import EntryOptions, EntryRecord, Host, Machine, Setting
from cudalint.machine.interpreter.entry import Purpose
from cudalint.machine.state import Launch, Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Ref, Value, only
from cudalint.models.library import Library
from cudalint.project.program import MOST_BYTES, FileProgram
from cudalint.structs import Frozen, Mutable, field, replace

# What stands for an argument that the function may call: a function that uses CUDA, so that it is seen where.
PROBE = "cudalint.probe"
_PROBE = {"does": "gpu", "gpu": "use", "framework": "torch", "returns": "none"}


class Where(Enum):
    """The process that a call is made in: nothing happened to CUDA; it was used; a child forked after that."""

    FRESH = "fresh"
    USED = "used"
    FORKED = "forked"


class End(Frozen):
    """One way in which a call comes back: the state then, and what it gave."""

    state: State
    value: Value

    @property
    def process(self) -> Process:
        """The process then."""
        return self.state.process


class Trial(Frozen):
    """What a call did: the ways in which it came back, what the machine noted, and what a bound cut off."""

    ends: tuple[End, ...]
    record: EntryRecord
    machine: Machine
    # Whether the instance whose method was called could not be made to its end.
    unmade: bool = False

    @property
    def cut(self) -> bool:
        """Whether a bound of the analysis ended it."""
        return self.unmade or self.record.cut is not None

    @property
    def partial(self) -> bool:
        """Whether it may do more than was seen: a bound ended it, or a call in it was left that came to no end."""
        return self.cut or bool(self.machine.abandoned)


class OutOfSteps(Exception):
    """What is looked at takes more steps than it is given."""


class Trials(Mutable):
    """Runs functions of a package under one Python; each module is imported once. ``made`` counts the calls."""

    files: FileProgram
    library: Library
    host: Host
    made: int = 0
    _imported: dict[str, tuple[State, ...]] = field(default_factory=dict)
    _made: dict[Hashable, Results | None] = field(default_factory=dict)
    # How many steps may be run before it gives up; those of imports count by themselves.
    most: int | None = None
    import_steps: int = 0
    _steps: int = 0
    _last: Machine | None = None

    @property
    def steps(self) -> int:
        """How many statements were run for all of them."""
        return self._steps + (0 if self._last is None else self._last.steps)

    def imported(self, module: str) -> tuple[State, ...]:
        """The states after importing a module, in a process in which nothing happened before; none where it is cut."""
        if module not in self._imported:
            parents = self.files.parents(module)
            # Its packages are imported first, and once for all that lies in them.
            before = self.imported(parents[-1]) if parents else (State(Process(), {}),)
            self._imported[module] = self._after_import(module, before)
        return self._imported[module]

    def _after_import(self, module: str, before: Iterable[State]) -> tuple[State, ...]:
        self.files.begin(MOST_BYTES)
        machine, frame = self._made_for(module, Purpose.PREPARATION), _top(module)
        loaded = tuple(s for c in before for s, _ in machine.load(module, c.clone(), frame, Site(module, 0)))
        self.import_steps += machine.steps
        return loaded

    def call(
        self, module: str, name: str, given: Mapping[str, Value], where: Where = Where.FRESH, makes: bool = False
    ) -> Trial | None:
        """Call a function, or a class (``makes``), of a module; None where it is not there after the import."""
        begun = self._begin(module, name, where, Purpose.MAKING if makes else Purpose.ENTRY)
        if begun is None:
            return None
        machine, state, function, frame = begun
        results = machine.call_value(function, [], dict(given), state, frame, Site(module, 0))
        ends = tuple(End(s, v) for s, v in machine.drained(results, frame))
        return Trial(ends, machine.record, machine)

    def method(
        self,
        module: str,
        cls: str,
        name: str,
        given: Mapping[str, Value],
        where: Where = Where.FRESH,
        made_with: Mapping[str, Value] | None = None,
        reads: bool = False,
    ) -> Trial | None:
        """Make an instance of a class, by default with unknown arguments, and call a method, or read a property."""
        made = self._instances(module, cls, made_with or {})
        machine, frame, site = self._machine(module), _top(module), Site(module, 0)
        if made is None:
            return Trial((), machine.record, machine, unmade=True)
        self.files.begin(MOST_BYTES)
        ends: list[End] = []
        for before, instance in made:
            current = before.clone()
            current.process = placed_in(machine, current, _unused(current.process), where, site)
            for after, found in machine.attribute(instance, name, current, frame, site):
                got: Results = [(after, found)]
                results = got if reads else machine.call_value(found, [], dict(given), after, frame, site)
                ends.extend(End(s, v) for s, v in machine.drained(results, frame))
        return Trial(tuple(ends), machine.record, machine)

    def _instances(self, module: str, cls: str, made_with: Mapping[str, Value]) -> Results | None:
        """The states after making an instance, with the instance, made once for all methods; None where it is cut."""
        key = (module, cls, tuple(sorted(made_with.items())))
        if key not in self._made:
            self._made[key] = self._instance(module, cls, made_with)
        return self._made[key]

    def _instance(self, module: str, cls: str, made_with: Mapping[str, Value]) -> Results | None:
        begun = self._begin(module, cls, Where.FRESH, Purpose.MAKING)
        if begun is None:
            return None
        machine, state, function, frame = begun
        results = machine.call_value(function, [], dict(made_with), state, frame, Site(module, 0))
        return results if machine.record.cut is None else None

    def look(self, module: str, name: str) -> tuple[Machine, State, Value]:
        """What a name of a module is after its import."""
        machine, frame, state = self._machine(module), _top(module), self.imported(module)[0].clone()
        value = machine.lookup(name, state, frame.scope)
        found = [] if value is None else machine.resolve_deferred(value, state, frame)
        return (machine, *found[0]) if found else (machine, state, ())

    def methods(self, machine: Machine, state: State, cls: Ref) -> Iterator[tuple[str, ir.Function, bool]]:
        """The functions that a class and its bases in the package define, the nearest first; which are properties."""
        for entry in machine.mro(cls, state):
            scope = state.get(entry.scope) if isinstance(entry, Class) else None
            for name, value in scope.variables.items() if isinstance(scope, Scope) else ():
                closure = state.get(atom) if isinstance(atom := only(value), Ref) else None
                if isinstance(closure, Closure):
                    yield name, self._wrapped(closure), closure.kind in ("property", "cached")

    def _wrapped(self, closure: Closure) -> ir.Function:
        """The function that shows what a caller may give: the one that a decorator's function says that it wraps."""
        if closure.alias is None:
            return closure.function
        module, qualname = closure.alias
        lowered = self.files.module(module) if module in self.files.sources else None
        inner = () if lowered is None else functions(lowered.body)
        return next((function for function in inner if function.qualname == qualname), closure.function)

    def _begin(
        self, module: str, name: str, where: Where, purpose: Purpose
    ) -> tuple[Machine, State, Value, Frame] | None:
        states = self.imported(module)
        if not states:
            return None
        self.files.begin(MOST_BYTES)
        machine, frame, state = self._machine(module, purpose), _top(module), states[0].clone()
        value = machine.lookup(name, state, frame.scope)
        found = [] if value is None else machine.resolve_deferred(value, state, frame)
        if len(found) != 1 or only(found[0][1]) is None:
            return None
        state, function = found[0]
        state.process = placed_in(machine, state, _unused(state.process), where, Site(module, 0))
        return machine, state, function, frame

    def _machine(self, module: str, purpose: Purpose = Purpose.ENTRY) -> Machine:
        self.made += 1
        self._steps = self.steps
        if self.most is not None and self._steps > self.most:
            raise OutOfSteps
        self._last = self._made_for(module, purpose)
        return self._last

    def _made_for(self, module: str, purpose: Purpose) -> Machine:
        options = EntryOptions(listens=True, assumed=True, purpose=purpose)
        return Machine(Setting(self.files, self.library, LibraryEffects(), module, self.host, options))


def probing(library: Library, package: str) -> Library:
    """The models for a look at a package: without what is said of it, and with the probes."""
    own = f"{package}."
    functions = {n: s for n, s in library.functions.items() if not n.removeprefix("import ").startswith(own)}
    functions.pop(f"import {package}", None)
    return replace(
        library,
        functions=functions,
        patterns=[(PROBE + ".*", _PROBE), *((n, s) for n, s in library.patterns if not n.startswith(own))],
        aliases={a: t for a, t in library.aliases.items() if not a.startswith(own)},
        owned=library.owned - {package},
        roots=library.roots - {package},
        _canonical={},
        _found={},
    )


def probe(parameter: str) -> Value:
    """A function that shows where it is called."""
    return (Lib(f"{PROBE}.{parameter}"),)


def probed_in(trial: Trial, parameter: str) -> set[str]:
    """The processes, by what they are called, in which the probe of a parameter ran."""
    said = f"{PROBE}.{parameter}()"
    return {step.process for step in trial.record.trace_steps if step.message.startswith(said)}


def placed_in(machine: Machine, state: State, process: Process, where: Where, site: Site) -> Process:
    """The process in which a call is made."""
    if where is Where.FRESH:
        return process
    used = machine.chain(state, site, "CUDA was used before")
    if where is Where.USED:
        return replace(process, driver=used, initialised=(("torch", used),), asked_by=frozenset({"torch"}))
    launch = Launch("fork", "process", "fork", False, False, "body", "crash", True, site, used)
    identity = (*process.identity, "child")
    return replace(
        process, identity=identity, is_main=False, forked=True, launch=launch, poison=used, poisoned_by=frozenset()
    )


def _unused(process: Process) -> Process:
    """The process without what its imports, or making an instance, did to CUDA and chose."""
    fresh = replace(process, driver=None, initialised=(), asked_by=frozenset(), contexts=frozenset(), allocated=None)
    return replace(fresh, selected=(), group=None)


def parameters(function: ir.Function, *, bound: bool) -> list[ir.Param]:
    """The parameters that a caller gives by name or position; of a bound function without its first."""
    named = [p for p in function.params if p.kind in (ir.ParamKind.POSITIONAL, ir.ParamKind.KEYWORD)]
    return named[1:] if bound else named


def positions(params: Iterable[ir.Param]) -> list[str]:
    """The names of those that may be given by position."""
    return [p.name for p in params if p.kind is ir.ParamKind.POSITIONAL]


def _top(module: str) -> Frame:
    return Frame(Ref(("module", module)), module)
