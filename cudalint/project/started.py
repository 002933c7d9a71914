"""What is started: programs, commands, what servers and pytest import."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from textwrap import shorten

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions
from cudalint.machine import heap
from cudalint.machine.effects.gpu.cuda import VISIBLE
from cudalint.machine.frame import Frame
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Ref, const, unknown
from cudalint.project import calling
from cudalint.project.chosen import FEWEST_STEPS, MOST_CHOICES, MOST_RUNS, MOST_STEPS, Choice
from cudalint.project.command_lines import UNKNOWN
from cudalint.project.entries import conftests, is_program, may_serve
from cudalint.project.machines import Machines, Ran
from cudalint.project.program import MOST_BYTES, FileProgram
from cudalint.project.pytest_files import is_test_module
from cudalint.project.reached import Reached
from cudalint.project.tested import Tests
from cudalint.structs import Frozen

# So many characters of a command line are shown.
_MOST_SAID = 100


class Started(Frozen):
    """Runs what is started of modules; ``alone``: a file is one that may be started, whatever it says."""

    files: FileProgram
    machines: Machines
    tests: Tests
    reached: Reached
    alone: bool = False

    def of(self, name: str) -> Iterator[Ran]:
        """All that is started of a module."""
        self.files.begin(MOST_BYTES)
        module = self.files.module(name)
        if module is None:
            return
        in_test = is_test_module(self.files.sources[name].path)
        if in_test:
            # Fixtures are looked for there by name.
            self.files.reads.asked.update(conftests(self.files, name))
        commands: list[Site] = []
        main: Machine | None = None
        if is_program(self.files, name) or (self.alone and not in_test):
            main = self.machines.run_with_messages(
                partial(self.machines.of, name), partial(self._run_main, module=module)
            )
            commands = main.record.commands
            usual = Ran(name, name, main)
            yield usual
            if not in_test and not main.record.cut:
                told = self._told(module, main.record.reads_words)
                yield from self._chosen(module, usual, told, partial(self._run_main, module=module))
            if main.record.testing is not None and not in_test:
                yield from self.tests.run_by_program(module, main.record.testing, main.record.by_pytest)
        elif self.files.facts(name).may_register:
            registered = self.machines.of(name, in_test)
            calling.imported(registered, module, assumed=False)
            commands = registered.record.commands
        yield from self._commands(module, commands)
        facts = self.files.facts(name)
        if (may_serve(self.files, name) or facts.starts_application) and not (main is not None and main.record.serves):
            yield self._served(module, in_test)
        if in_test:
            yield from self.tests.of(module)

    def _told(self, module: ir.Module, reads_words: bool) -> Iterator[Ran]:
        """A program as files of its repository start it, where it reads its words or another module runs it."""
        for line in self.files.command_lines(module.name):
            if not reads_words and not line.through:
                continue
            machine = self.machines.of(module.name)
            told = ("-m", line.through, *line.words) if line.through else line.words
            said = shorten(shlex.join("..." if word == UNKNOWN else word for word in told), _MOST_SAID)
            start = _first_row(module)
            fresh = self._begun(machine, module, f"is started by {line.said_in} with {said}")
            words = (unknown("word", start, i) if word == UNKNOWN else const(word) for i, word in enumerate(line.words))
            fresh.store(heap.ARGV, heap.Sequence("list", tuple(words), open=True))
            if line.through:
                frame = Frame(Ref(("module", module.name)), module.name)
                prepared = machine.call_value((Lib(f"{line.through}.install"),), [], {}, fresh, frame, start)
                fresh = next((state for state, _ in prepared), fresh)
            self._run_main(machine, fresh, module=module)
            yield Ran(module.name, module.name, machine)

    def _chosen(
        self, module: ir.Module, first: Ran, told: Iterable[Ran], run: Callable[[Machine, State], None]
    ) -> Iterator[Ran]:
        """A program as users start it: by command lines that are ``told``, and by another word for one of its options.

        ``first`` is what it does by default.
        """
        choices = self._choices(first)
        limits = self.machines.hosts.common.limits
        left = limits.scaled(min(MOST_STEPS, max(FEWEST_STEPS, MOST_RUNS * first.machine.steps)))
        usual = [first.result()] if choices else []
        for ran in told:
            yield ran
            usual.extend([ran.result()] if choices else ())
        known = tuple(usual)

        def begin(machine: Machine, choice: Choice) -> None:
            fresh = self._begun(machine, module, f"is started with {choice.said}")
            choice.give(fresh)
            run(machine, fresh)

        for choice in choices:
            make = partial(self.machines.of, first.owner, at_most=left)
            machine = self.machines.run_with_messages(make, partial(begin, choice=choice))
            left -= machine.steps
            if not machine.record.spent:
                yield Ran(first.owner, first.label, machine, chosen=(choice, known))
            if left < first.machine.steps:
                return

    def _choices(self, first: Ran) -> list[Choice]:
        """The words that options of a program take besides their defaults, as far as they decide something."""
        inquiry = self.machines.inquiry
        # Repairs are proven, and processes drawn, for what runs by default.
        if inquiry.proves or inquiry.maps or first.machine.record.cut:
            return []
        return [Choice(flag, word) for flag, word in islice(first.machine.record.offers.deciding(), MOST_CHOICES)]

    def _begun(self, machine: Machine, module: ir.Module, how: str) -> State:
        """The state in which a program begins that is started in a way that a trace tells."""
        fresh = State(self._process(module.name), {})
        fresh.stack = machine.chain(fresh, _first_row(module), how)
        return fresh

    def _served(self, module: ir.Module, in_test: bool) -> Ran:
        """A module that a server imports before it forks."""
        machine = self.machines.of(module.name, in_test)
        begun = self.tests.collected(machine, module) if in_test else calling.imported(machine, module, assumed=False)
        machine.effects.served(machine, begun, module.name)
        return Ran(module.name, module.name, machine)

    def _commands(self, module: ir.Module, registered: Iterable[Site]) -> Iterator[Ran]:
        """Functions that a library calls when the program is started, and console scripts."""
        ordinals = {site.ordinal for site in registered if site.module == module.name}
        scripts = self.files.scripts(module.name)
        for function in functions(module.body):
            place = (module.name, function.ordinal)
            if (function.ordinal in ordinals or function.qualname in scripts) and not self.reached.has(place):
                run = partial(self._run_command, module=module, function=function)
                machine = self.machines.of(module.name, in_test=False)
                run(machine)
                ran = Ran(module.name, function.qualname, machine)
                yield ran
                yield from self._chosen(module, ran, (), run)

    def _run_command(
        self, machine: Machine, begun: State | None = None, *, module: ir.Module, function: ir.Function
    ) -> None:
        for state in calling.ways(machine, module, assumed=False, state=begun):
            calling.call(machine, module, function, state)

    def _run_main(self, machine: Machine, begun: State | None = None, *, module: ir.Module) -> None:
        states: list[State] = []
        fresh = begun or State(self._process(module.name), {})
        for state in calling.packages(machine, module, fresh) if self.files.runs_in_package(module.name) else [fresh]:
            states.extend(machine.run_module(module, "__main__", state))
            calling.tell(machine, machine.uncaught)
        machine.end(states)

    def _process(self, name: str) -> Process:
        """The process of a program: one that another file starts sees the GPUs that this one tells it."""
        if name not in self.files.given_gpus:
            return Process()
        return Process().with_environ(VISIBLE, unknown("environ", VISIBLE))


def _first_row(module: ir.Module) -> Site:
    """Where a program begins."""
    return Site(module.name, module.body[0].ordinal if module.body else 0)
