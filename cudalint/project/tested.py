"""Tests as pytest and unittest run them, inside their fixtures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame
from cudalint.machine.interpreter import Machine, Purpose
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.project import calling
from cudalint.project.derived import launchers
from cudalint.project.distance import lies_far, starting
from cudalint.project.entries import FAR_TESTS, conftests, launching, launching_modules, tests
from cudalint.project.fixtures import HOOKS_BEFORE, HOOKS_BEHIND, Fixtures, Given, hook_of, skips_all
from cudalint.project.machines import Entry, Machines, Ran
from cudalint.project.patience import GIVEN_UP, Patience
from cudalint.project.program import FileProgram
from cudalint.structs import Mutable, field


class Tests(Mutable):
    """Runs the tests of modules; only ``chosen`` ones, where these are given."""

    files: FileProgram
    machines: Machines
    chosen: frozenset[Entry] | None = None
    _launching: frozenset[str] | None = None
    # What far modules of tests name that starts something: asked for their keys, and when they run.
    _elsewhere: dict[str, frozenset[str] | None] = field(default_factory=dict)

    def of(self, module: ir.Module) -> Iterator[Ran]:
        """The tests of a module, each in a process of its own, after what pytest does first."""
        given = [f for f in tests(module) if self.chosen is None or (module.name, f.qualname) in self.chosen]
        if not given and self.chosen is not None and (module.name, module.name) not in self.chosen:
            return
        collector = self.machines.of(module.name, in_test=True, purpose=Purpose.COLLECTION)
        fresh = self.collected(collector, module)
        calling.tell(collector, collector.uncaught)
        yield Ran(module.name, module.name, collector)
        if skips_all(collector, fresh, calling.top_of(module.name)):
            return
        patience = self._patience(module)
        for function in given:
            machine = self.machines.of(module.name, in_test=True)
            machine.record.cut = collector.record.cut
            # Those that are chosen were all run before.
            if self.chosen is not None or patience.lasts_for(function):
                self._test(machine, module, function, fresh.clone())
                patience.note(machine.record)
            elif patience.is_far:
                self.files.note(f"{self.files.sources[module.name].path}: tests {FAR_TESTS}")
                continue
            else:
                machine.record.cut = GIVEN_UP
            yield Ran(module.name, function.qualname, machine)

    def _patience(self, module: ir.Module) -> Patience:
        facts = self.files.facts(module.name)
        elsewhere = self.starting_elsewhere(module.name)
        named = elsewhere or frozenset()
        return Patience(module, lambda: launching(module, facts, launchers(self.files) | named), elsewhere is not None)

    def starting_elsewhere(self, name: str) -> frozenset[str] | None:
        """What a module of tests names that starts something elsewhere; None where its tests are all followed."""
        if name not in self._elsewhere:
            self._elsewhere[name] = self._sought_elsewhere(name) if lies_far(self.files, name) else None
        return self._elsewhere[name]

    def _sought_elsewhere(self, name: str) -> frozenset[str]:
        if self._launching is None:
            self._launching = launching_modules(self.files)
        homes = (name, *conftests(self.files, name))
        return frozenset[str]().union(*(starting(self.files, home, self._launching) for home in homes))

    def run_by_program(self, module: ir.Module, state: State, by_pytest: bool) -> Iterator[Ran]:
        """The tests of a program that runs them itself, one after the other in its process: each finds what those
        before it did to CUDA.

        unittest runs methods of classes, by their names; pytest runs tests as they stand in the file.
        """
        given = [function for function in tests(module) if by_pytest or "." in function.qualname]
        states: tuple[State, ...] = (state,)
        for function in given if by_pytest else sorted(given, key=lambda f: f.qualname):
            machine = self.machines.of(module.name, in_test=True)
            frame = calling.top_of(module.name)
            ended = [s for each in states for s in self._around(machine, module, function, each.clone(), frame)]
            ways = [*ended, *(after for after, _ in frame.raises)]
            states = calling.telling([way.clone() for way in ways], state) if ways else states
            calling.end(machine, frame, ended)
            yield Ran(module.name, function.qualname, machine)

    def collected(self, machine: Machine, module: ir.Module) -> State:
        """The state in which pytest runs the tests of a module: its conftests are imported first, then itself."""
        state = self._above_imported(machine, module)
        state = self._hooked(machine, module, HOOKS_BEFORE, state)
        state = calling.imported(machine, module, assumed=False, state=state)
        return self._hooked(machine, module, HOOKS_BEHIND, state)

    def _above_imported(self, machine: Machine, module: ir.Module) -> State:
        """The state in which pytest imports a module of tests: after the conftests above it."""
        frame = calling.top_of(module.name)
        state = State(Process(), {})
        for name in reversed(conftests(self.files, module.name)):
            loaded = machine.load(name, state, frame, Site(module.name, 0))
            state = calling.plainest([after for after, _ in loaded], state)
        return state

    def _hooked(self, machine: Machine, module: ir.Module, hooks: Iterable[str], state: State) -> State:
        """What the conftests of a module of tests have pytest call before it runs any of them."""
        homes = [self.files.module(name) for name in reversed(conftests(self.files, module.name))]
        for hook in hooks:
            for home in (home for home in homes if home is not None):
                frame = calling.top_of(home.name)
                for function in hook_of(self.files, home, hook):
                    state = calling.plainest(calling.called(machine, home, function, state.clone(), {}, frame), state)
                calling.tell(machine, frame.raises)
        return state

    def _test(self, machine: Machine, module: ir.Module, function: ir.Function, state: State) -> None:
        """Run a test inside its fixtures."""
        frame = calling.top_of(module.name)
        calling.end(machine, frame, self._around(machine, module, function, state, frame))

    def _around(
        self, machine: Machine, module: ir.Module, function: ir.Function, state: State, frame: Frame
    ) -> list[State]:
        def run(ready: State, given: Given) -> list[State]:
            return calling.called(machine, module, function, ready, given, frame)

        return Fixtures(self.files, machine, module.name, frame).around(function, state, run)
