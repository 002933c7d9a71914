"""Runs launchers that no entry reached, or their callers, from a state that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions, is_of_class
from cudalint.machine.interpreter import Machine, Purpose
from cudalint.machine.trace import Site
from cudalint.project import calling
from cudalint.project.assumed.certainty import as_given, as_seen
from cudalint.project.assumed.heirs import heirs
from cudalint.project.assumed.instances import Instances, Made
from cudalint.project.assumed.requests import served
from cudalint.project.callers import Caller, Callers, Place
from cudalint.project.derived import launchers
from cudalint.project.entries import is_program, launching, unreached
from cudalint.project.fixtures import Given
from cudalint.project.machines import Entry, Machines, Ran
from cudalint.project.program import MOST_ASSUMED_BYTES, MOST_BYTES, FileProgram
from cudalint.project.pytest_files import is_test_module
from cudalint.project.reached import Reached
from cudalint.project.switches import switches


class Assumed:
    """Runs what has no visible caller, but for what is ``skipped``."""

    def __init__(
        self, files: FileProgram, machines: Machines, reached: Reached, skipped: frozenset[Entry] = frozenset()
    ) -> None:
        self.files = files
        self.machines = machines
        self.reached = reached
        self.skipped = skipped
        self._callers: Callers | None = None
        self._instances = Instances(self.files, self._maker, partial(calling.imported, assumed=True))

    @property
    def steps(self) -> int:
        """What making instances took."""
        return self._instances.steps

    def of(self, name: str) -> Iterator[Ran]:
        """The functions of a module that start something and that no entry reached, or their callers."""
        self.files.begin(MOST_BYTES if is_program(self.files, name) else MOST_ASSUMED_BYTES)
        module = self.files.module(name)
        if module is None:
            return
        # Of the callers that were run: whether that was to the end, and with all that they may be given.
        ran: dict[Place, bool] = {}
        for function in unreached(module, self.files.facts(name), launchers(self.files)):
            launcher = Caller(name, function)
            if self.reached.has(launcher.place):
                if self._gives_unreached(module, function):
                    # A decorator that was used, of what nobody called.
                    yield from self._assume(name, launcher)
                continue
            in_test = is_test_module(self.files.sources[name].path)
            for root in () if in_test else self._who_calls.roots(launcher, self.reached.before):
                if not self.reached.has(root.place):
                    yield from self._assume_caller(name, root, ran)
            if not self.reached.has(launcher.place):
                yield from self._assume_for(name, launcher, in_test, ran)

    def _gives_unreached(self, module: ir.Module, function: ir.Function) -> bool:
        """Whether a function gives one of its own that starts something, which no entry called."""
        inner = _given_by(function)
        if inner is None:
            return False
        if self._gives_unreached(module, inner):
            return True
        return inner.mentions(self._starting_in(module)) and not self.reached.has((module.name, inner.ordinal))

    def _starting_in(self, module: ir.Module) -> frozenset[str]:
        """The words by which functions of a module name what starts something."""
        return launching(module, self.files.facts(module.name), launchers(self.files))

    def _assume_for(self, name: str, launcher: Caller, in_test: bool, ran: dict[Place, bool]) -> Iterator[Ran]:
        """Run a launcher that no root led to: by what makes its object and calls it, by the methods of its own class
        that call it, else by itself.

        ``ran``: those that were run for another launcher of the module, to which they are added.
        """
        for caller in () if in_test else self._who_calls.beside(launcher, self.reached.before):
            if not self.reached.has(caller.place) and not self.reached.has(launcher.place):
                yield from self._assume_caller(name, caller, ran)
        if self.reached.has(launcher.place):
            return
        callers = () if in_test else tuple(self._who_calls.in_its_class(launcher))
        for caller in callers:
            if caller.place not in ran:
                yield from self._assume_caller(name, caller, ran)
        if any(ran[caller.place] for caller in callers) or self.reached.has(launcher.place):
            return
        yield from self._assume(name, launcher)
        yield from self._assume_of_heirs(name, launcher)

    def _assume_caller(self, name: str, caller: Caller, ran: dict[Place, bool]) -> Iterator[Ran]:
        # One with an option may lead there when it is given.
        has_option, is_whole = any(p.default for p in caller.function.params), False
        for each in self._assume(name, caller):
            is_whole = is_whole or (each.machine.record.cut is None and not has_option)
            yield each
        ran[caller.place] = is_whole

    def _assume(self, owner: str, entry: Caller) -> Iterator[Ran]:
        """Run a function that has no visible caller, and with its options where it starts nothing without them.

        Who calls what can start processes gives it the numbers and switches for which it does.
        """
        module = self.files.module(entry.module)
        if module is None or (owner, entry.function.qualname) in self.skipped:
            return
        in_test = is_test_module(self.files.sources[entry.module].path)
        plain = self._call(entry, module, in_test, takes_options=False)
        yield self._ran(owner, entry, plain)
        record = plain.record
        if in_test or record.launches or record.outcomes or record.cut is not None or not _has_options(module, entry):
            return
        given = self._call(entry, module, in_test, takes_options=True)
        yield self._ran(owner, entry, given, takes_options=True)

    def _call(self, entry: Caller, module: ir.Module, in_test: bool, takes_options: bool) -> Machine:
        """Call a function with unknown arguments: those that it asks for, or all numbers and switches as well."""
        machine = self.machines.of(entry.module, in_test, assumed=True)
        made = None if in_test else self._instance(entry, module, takes_options)
        # Who asks for workers that nobody else asks for may as well do without what is made for them.
        is_used = not takes_options and not self._is_in_use(entry, module)
        options = switches(module, entry.function) if takes_options else {}
        if made is not None:
            self._call_made(machine, module, entry.function, made, options, is_used)
            return machine
        frame, words = calling.top_of(module.name), self._starting_in(module)
        # Where an application takes the handlers of another file, importing it comes first.
        for begun in served(self.files, machine, module, entry.function):
            for ready, given in machine.effects.before_answer(machine, begun, frame, entry.function):
                kept = {**options, **given}
                calling.call(machine, module, entry.function, ready, kept, takes_options, is_used, words)
        return machine

    def _is_in_use(self, entry: Caller, module: ir.Module) -> bool:
        """Whether the program uses the class of a method, and does so without it: of its results it needs none."""
        cls = entry.function.qualname.rpartition(".")[0]
        methods = (f for f in functions(module.body) if cls and f.qualname.rpartition(".")[0] == cls)
        return any((module.name, method.ordinal) in self.reached.before for method in methods)

    def _assume_of_heirs(self, owner: str, entry: Caller) -> Iterator[Ran]:
        """The same for objects of classes that define what the class of a method leaves open."""
        module = self.files.module(entry.module)
        if module is None or is_test_module(self.files.sources[entry.module].path):
            return
        if (owner, entry.function.qualname) in self.skipped:
            return
        for heir in heirs(self.files, self._who_calls, module, entry.function):
            machine = self.machines.of(heir.module.name, assumed=True)
            state = calling.imported(machine, heir.module, assumed=True)
            frame = calling.top_of(heir.module.name)
            site = Site(entry.module, entry.function.ordinal)
            cls = machine.lookup(heir.name, state, frame.scope)
            made = machine.call_value(cls, [], {}, state, frame, site) if cls is not None else []
            for begun, instance in made[:1]:
                found = calling.method_of(machine, module, entry.function, instance, begun)
                calling.end(machine, frame, calling.applied(machine, module, entry.function, found, {}, frame))
            yield self._ran(owner, entry, machine)

    def _ran(self, owner: str, entry: Caller, machine: Machine, takes_options: bool = False) -> Ran:
        """An entry that an unknown caller is assumed to have called."""
        self.reached.places.add(entry.place)
        self.reached.note(machine)
        seen = [as_seen(o) for o in machine.record.outcomes]
        machine.record.outcomes = [as_given(o) for o in seen] if takes_options else seen
        return Ran(owner, entry.function.qualname, machine, frozenset({entry.place}))

    def _instance(self, entry: Caller, module: ir.Module, takes_options: bool) -> Made | None:
        """What a method begins with as others of its class do; None where it begins with what is its own."""
        facts = self.files.facts(module.name)
        if facts.may_route or facts.may_answer or self.machines.kind is not Machine or self.machines.inquiry.listens:
            return None
        if is_of_class(module, entry.function):
            return None
        return self._instances.of(module, entry.function, takes_options)

    def _maker(self, name: str, few: bool) -> Machine:
        return self.machines.of(name, assumed=True, purpose=Purpose.MAKING, follows_few=few)

    @property
    def _who_calls(self) -> Callers:
        """Who calls whom; read only when it is asked for."""
        if self._callers is None:
            self._callers = Callers(self.files)
        return self._callers

    def _call_made(
        self, machine: Machine, module: ir.Module, function: ir.Function, made: Made, given: Given, is_used: bool
    ) -> None:
        """Call a method of an instance with unknown arguments, but for those that are ``given``."""
        begun = made.begun(machine, Site(module.name, function.ordinal))
        if begun is None:
            return
        state, instance = begun
        frame = calling.top_of(module.name)
        found = calling.method_of(machine, module, function, instance, state)
        calling.end(machine, frame, calling.applied(machine, module, function, found, given, frame, is_used))


def _given_by(function: ir.Function) -> ir.Function | None:
    """The function that a function defines and gives at its end."""
    match function.body[-1] if function.body else None:
        case ir.Return(value=ir.Name(id=name)):
            own = (inner.function for inner in function.body if isinstance(inner, ir.FunctionDef))
            return next((inner for inner in own if inner.name == name), None)
    return None


def _has_options(module: ir.Module, entry: Caller) -> bool:
    """Whether a function, or what makes the object of a method, takes numbers or switches that nobody has to give."""
    return bool(switches(module, entry.function) or switches(module, calling.maker_of(module, entry.function)))
