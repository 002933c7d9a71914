"""Runs the entries of a program on the machine: first what is started, then what has no visible caller."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import shorten
from typing import Protocol, TypeAlias

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions, is_of_class
from cudalint.machine import heap, questions
from cudalint.machine.effects.frameworks.remote_tasks import itself
from cudalint.machine.effects.gpu.cuda import VISIBLE
from cudalint.machine.effects.registry import LibraryEffects
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.inheritance.prover import Prover
from cudalint.machine.interpreter import EntryOptions, Host, Machine, Purpose, Setting
from cudalint.machine.mapping import Mapper
from cudalint.machine.messages import Foretold
from cudalint.machine.outcome import OF_INHERITING, Doubt, Outcome
from cudalint.machine.shapes import Watcher
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Ref, Value, const, unknown
from cudalint.project.applications import factory_of, made_above
from cudalint.project.callers import Caller, Callers, Place
from cudalint.project.command_lines import UNKNOWN
from cudalint.project.derived import launchers
from cudalint.project.distance import lies_far, starting
from cudalint.project.entries import (
    FAR_TESTS,
    conftests,
    launching,
    launching_modules,
    may_serve,
    tests,
    unreached,
)
from cudalint.project.entry_result import EntryResult
from cudalint.project.entry_store import EntryStore
from cudalint.project.fixtures import HOOKS_BEFORE, HOOKS_BEHIND, Fixtures, Given, hook_of, set_up, skips_all
from cudalint.project.heirs import heirs
from cudalint.project.instances import Instances, Made, constructor
from cudalint.project.near import distances, naming
from cudalint.project.patience import GIVEN_UP, LEFT_OUT, MOST_DETOURS, Detours, Patience
from cudalint.project.prepared import PreparedImports
from cudalint.project.process_map import Begins
from cudalint.project.program import MOST_ASSUMED_BYTES, MOST_BYTES, Broken, FileProgram, News, Reads
from cudalint.project.pytest_files import is_test_module
from cudalint.project.pythons import Hosts
from cudalint.project.switches import left_out, switches

# An entry by the module for whose sake it runs and the name that a trace gives it.
Entry: TypeAlias = tuple[str, str]


# Starting a process costs as much as that many steps and nodes: a run that needs fewer is not shared with others.
MOST_ALONE = 15_000
# How often a program is run with what an earlier run showed of its channels.
_MOST_FORETOLD = 2
# So many characters of a command line are shown.
_MOST_SAID = 100


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of a module that run one after the other: what is started of it, or what has no visible caller."""

    name: str
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What a group of entries gave, where it ran with what other entries were known to have reached.

    It is what the group gives wherever none of ``unreached`` is reached: functions of which it was asked. ``reads`` is
    what it rests on. ``broken`` files, by module and whether nothing of it can be parsed, are those that the
    process had not come upon before; ``says_once`` that it will not come upon them, or upon what it noted, again.
    ``effort`` are the files, bytes and nodes that it parsed and lowered. ``news`` is what the process found out about
    files since the group before.
    """

    results: tuple[EntryResult, ...]
    reads: Reads
    unreached: frozenset[Place]
    broken: tuple[tuple[str, Broken, bool], ...]
    says_once: bool
    effort: tuple[int, int, int]
    news: News


class Others(Protocol):
    """Other processes that run groups of entries."""

    def offer(self, groups: Sequence[Group], reached: Set[Place], before: Set[Place]) -> None:
        """Let them run groups that follow; ``before`` was reached before anything was assumed."""

    def result(self, group: Group, reached: Set[Place]) -> GroupResult | None:
        """What a group gave there; None where it has to run here."""

    def news(self) -> Sequence[News]:
        """What they found out about files since this was asked last, also for groups whose results are not taken."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One entry that ran: the module it belongs to, how its trace would name it, and the machine afterwards.

    ``owner`` is the module for whose sake it ran: the launcher's, where a caller of it was run. ``places`` count as
    reached whether or not they were.
    """

    owner: str
    label: str
    machine: Machine
    places: frozenset[Place] = frozenset()

    def result(self) -> EntryResult:
        """What it gave, without the machine."""
        machine, record = self.machine, self.machine.record
        return EntryResult(
            self.owner,
            self.label,
            machine.main,
            tuple(record.final_outcomes(machine.library.roots)),
            frozenset((site.module, site.ordinal) for site in record.reached) | self.places,
            dict(record.launches),
            machine.steps,
            record.cut,
        )


@dataclass(slots=True)
class Runner:
    """Runs entries.

    ``entered`` are the functions that any of them reached; ``watched`` the statements looked at; ``shaped`` the
    expressions whose values are. Of tests only ``chosen`` ones are run, where these are given, and of what has no
    visible caller none that are ``skipped``. ``proves``: it is asked what workers inherit, ``without_gpus`` on a
    machine that has none. ``maps``: processes are noted. ``kept`` holds what entries gave in runs before;
    ``others`` run entries besides this process.
    """

    files: FileProgram
    hosts: Hosts
    alone: bool = False
    entered: set[Place] = field(default_factory=set)
    watched: frozenset[Site] = frozenset()
    listens: bool = False
    shaped: frozenset[Site] = frozenset()
    chosen: frozenset[Entry] | None = None
    skipped: frozenset[Entry] = frozenset()
    proves: bool = False
    without_gpus: bool = False
    at_most: int | None = None
    maps: bool = False
    kept: EntryStore | None = None
    others: Others | None = None
    # The modules that the run is about; None where it is about all. Where no entry reaches them, the launchers of these
    # are looked at, and of those that name something of theirs.
    about: frozenset[str] | None = None
    # What was reached before anything was assumed.
    seen: frozenset[Place] = frozenset()
    _unreached: set[Place] = field(default_factory=set)
    _steps: int = 0
    # The processor time of this process at which the entries of a group end.
    _until: float | None = None
    _shared: frozenset[Group] | None = None
    _launching: frozenset[str] | None = None
    # What far modules of tests name that starts something: asked for their keys, and when they run.
    _elsewhere: dict[str, frozenset[str] | None] = field(default_factory=dict)
    # What is spent on entries that may lead to what the run is about, while these run.
    _detours: Detours | None = None
    _callers: Callers | None = None
    _importers: dict[Host, PreparedImports] = field(default_factory=dict)
    _instances: Instances | None = None

    def run(self, names: Iterable[str]) -> Iterator[Ran]:
        """All entries of these modules: what is assumed runs last, when it is known what is reached without."""
        for groups in self._stages(names):
            for group in groups:
                for ran in self._entries(group):
                    self._note(ran.machine)
                    yield ran

    def results(self, names: Iterable[str]) -> Iterator[EntryResult]:
        """What all entries of these modules give; those that nothing has changed for are not run again."""
        for groups in self._stages(names):
            self._shared = None
            for i, group in enumerate(groups):
                if self._detours is not None and self._detours.are_used_up:
                    self.files.note(f"{self.files.sources[group.name].path}: {LEFT_OUT}")
                    continue
                self._share(groups[i + 1 :])
                fresh = self._fresh(group)
                for result in fresh if self.kept is None else self.kept.of(self._key(group), fresh):
                    self.entered |= result.entered
                    if self._detours is not None:
                        self._detours.note(result.entered, result.steps)
                    yield result

    def alone_with(self, group: Group, reached: Set[Place]) -> GroupResult:
        """What a group gives where other entries reached some functions."""
        files = self.files
        self.entered = set(reached)
        self._unreached = set()
        broken, once, (parsed, size, nodes) = len(files.broken), files.noted_once, files.effort
        results: list[EntryResult] = []
        for ran in self._entries(group):
            results.append(ran.result())
            self.entered |= results[-1].entered
        named = ((files.names[found.source.path], found) for found in files.broken[broken:])
        return GroupResult(
            tuple(results),
            files.reads,
            frozenset(self._unreached),
            tuple((name, found, files.is_broken(name)) for name, found in named),
            len(files.broken) > broken or files.noted_once > once,
            (files.files_parsed - parsed, files.bytes_parsed - size, files.nodes - nodes),
            files.news(),
        )

    def _stages(self, names: Iterable[str]) -> Iterator[list[Group]]:
        """The groups of entries in their order; those of a stage rest on what all of the one before reached."""
        given = tuple(names)
        if self.alone or self.about is None:
            yield [Group(name) for name in given]
            shown: Set[str] = frozenset(() if self.alone else given)
        else:
            shown = naming(self.files, self.about, given)
            far = distances(self.files, self.about)
            detours = Detours(self.about, shown, far, self.hosts.common.limits.scaled(MOST_DETOURS))
            yield [Group(name) for name in given if detours.is_direct(name)]
            self._detours = detours
            yield [Group(name) for name in detours.nearest_first(given)]
            self._detours = None
        self.seen = frozenset(self.entered)
        yield [Group(name, is_assumed=True) for name in given if name in shown]

    def _entries(self, group: Group) -> Iterator[Ran]:
        seconds = self.hosts.common.limits.seconds
        self._until = None if seconds is None else time.process_time() + seconds
        return self._assumed(group.name) if group.is_assumed else self._real(group.name)

    def _share(self, groups: Sequence[Group]) -> None:
        """Let other processes run what follows, as far as it is not kept."""
        if self.others is None or self._work < MOST_ALONE:
            return
        if self._shared is None:
            kept = self.kept
            self._shared = frozenset(g for g in groups if kept is None or not kept.has(self._key(g)))
        self.others.offer([g for g in groups if g in self._shared], self.entered, self.seen)

    @property
    def _work(self) -> int:
        """What was done here so far: steps that were made, and nodes that were lowered."""
        prepared = sum(importer.steps for importer in self._importers.values())
        made = 0 if self._instances is None else self._instances.steps
        return self._steps + prepared + made + self.files.nodes

    def _fresh(self, group: Group) -> Iterator[EntryResult]:
        """What a group gives when it is run, here or in another process."""
        found = None if self.others is None else self.others.result(group, self.entered)
        if found is None:
            for ran in self._entries(group):
                self._steps += ran.machine.steps
                yield ran.result()
            return
        self.files.begin(MOST_BYTES)
        self.files.rest_on(found.reads)
        for news in self.others.news() if self.others is not None else ():
            self.files.learn(news)
        self.files.add_effort(found.effort)
        for name, broken, is_whole in found.broken:
            self.files.take_broken(name, broken, is_whole=is_whole)
        yield from found.results

    def _key(self, group: Group) -> str:
        """What decides what a group gives, beside the files that it asks for."""
        return self._assumed_key(group.name) if group.is_assumed else self._real_key(group.name)

    def _real_key(self, name: str) -> str:
        reached = _outermost(self.entered, {name})
        chosen = None if self.chosen is None else sorted(label for owner, label in self.chosen if owner == name)
        leading = self._starting_elsewhere(name) if is_test_module(self.files.sources[name].path) else None
        far = None if leading is None else sorted(leading)
        return repr(("starts", name, self.starts(name), sorted(self.files.scripts(name)), reached, chosen, far))

    def _assumed_key(self, name: str) -> str:
        """Of launchers that no entry reached: who may call them lies in the modules that lead there."""
        near = {name, *self.files.above(name)}
        places = [_outermost(places, near) for places in (self.entered, self.seen)]
        skipped = sorted(label for owner, label in self.skipped if owner == name)
        return repr(("assumed", name, self.starts(name), places, skipped))

    def _is_reached(self, place: Place) -> bool:
        if place in self.entered:
            return True
        self._unreached.add(place)
        return False

    def _note(self, machine: Machine) -> None:
        self.entered.update((site.module, site.ordinal) for site in machine.record.reached)

    def begins(self, ran: Ran) -> Begins:
        """What begins the first process of an entry."""
        options = ran.machine.options
        if options.in_test:
            return Begins.TEST
        if options.assumed:
            return Begins.CALLER
        if ran.label != ran.owner:
            return Begins.COMMAND
        return Begins.PROGRAM if self.starts(ran.owner) else Begins.SERVER

    @property
    def callers(self) -> Callers:
        """Who calls whom; read only when it is asked for."""
        if self._callers is None:
            self._callers = Callers(self.files)
        return self._callers

    def starts(self, name: str) -> bool:
        """Whether a module may be started as a program; one that pytest collects only where it says so itself.

        What only defines something, in a folder without ``__init__.py`` of a package, is a part of that package.
        """
        if self.files.guards_main(name):
            return True
        if is_test_module(self.files.sources[name].path):
            return False
        if not self.files.lies_outside_packages(name) or name in self.files.importers:
            return False
        return not self.files.lies_below_package(name) or self.files.acts(name)

    # -- what is started ----------------------------------------------------------------------

    def _real(self, name: str) -> Iterator[Ran]:
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
        if self.starts(name) or (self.alone and not in_test):
            main = self._run_with_messages(partial(self._machine, name), partial(self._run_main, module=module))
            commands = main.record.commands
            yield Ran(name, name, main)
            if not main.record.cut and not in_test:
                yield from self._told(module, main.record.reads_words)
            if main.record.testing is not None and not in_test:
                yield from self._own_tests(module, main.record.testing, main.record.by_pytest)
        elif self.files.facts(name).may_register:
            registered = self._machine(name, in_test)
            self._imported(registered, module, assumed=False)
            commands = registered.record.commands
        yield from self._commands(module, commands)
        facts = self.files.facts(name)
        if (may_serve(self.files, name) or facts.starts_application) and not (main is not None and main.record.serves):
            yield self._served(module, in_test)
        if in_test:
            yield from self._tests(module)

    def _told(self, module: ir.Module, reads_words: bool) -> Iterator[Ran]:
        """A program as files of its repository start it, where it reads its words or another module runs it."""
        for line in self.files.command_lines(module.name):
            if not reads_words and not line.through:
                continue
            machine = self._machine(module.name)
            fresh = State(self._started(module.name), {})
            told = ("-m", line.through, *line.words) if line.through else line.words
            said = shorten(shlex.join("..." if word == UNKNOWN else word for word in told), _MOST_SAID)
            start = Site(module.name, module.body[0].ordinal if module.body else 0)
            fresh.stack = machine.chain(fresh, start, f"is started by {line.said_in} with {said}")
            words = (unknown("word", start, i) if word == UNKNOWN else const(word) for i, word in enumerate(line.words))
            fresh.store(heap.ARGV, heap.Sequence("list", tuple(words), open=True))
            if line.through:
                frame = Frame(Ref(("module", module.name)), module.name)
                prepared = machine.call_value((Lib(f"{line.through}.install"),), [], {}, fresh, frame, start)
                fresh = next((state for state, _ in prepared), fresh)
            self._run_main(machine, module, fresh)
            yield Ran(module.name, module.name, machine)

    def _served(self, module: ir.Module, in_test: bool) -> Ran:
        """A module that a server imports before it forks."""
        machine = self._machine(module.name, in_test)
        before = self._conftests_imported(machine, module) if in_test else None
        machine.effects.served(machine, self._imported(machine, module, assumed=False, state=before), module.name)
        return Ran(module.name, module.name, machine)

    def _tests(self, module: ir.Module) -> Iterator[Ran]:
        given = [f for f in tests(module) if self.chosen is None or (module.name, f.qualname) in self.chosen]
        if not given and self.chosen is not None and (module.name, module.name) not in self.chosen:
            return
        collector = self._machine(module.name, in_test=True, purpose=Purpose.COLLECTION)
        fresh = self._collected(collector, module)
        _tell(collector, collector.uncaught)
        yield Ran(module.name, module.name, collector)
        if skips_all(collector, fresh, _top_of(module.name)):
            return
        patience = self._patience(module)
        for function in given:
            machine = self._machine(module.name, in_test=True)
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
        elsewhere = self._starting_elsewhere(module.name)
        named = elsewhere or frozenset()
        return Patience(module, lambda: launching(module, facts, launchers(self.files) | named), elsewhere is not None)

    def _starting_elsewhere(self, name: str) -> frozenset[str] | None:
        """What a module of tests names that starts something elsewhere; None where its tests are all followed."""
        if name not in self._elsewhere:
            self._elsewhere[name] = self._sought_elsewhere(name) if lies_far(self.files, name) else None
        return self._elsewhere[name]

    def _sought_elsewhere(self, name: str) -> frozenset[str]:
        if self._launching is None:
            self._launching = launching_modules(self.files)
        homes = (name, *conftests(self.files, name))
        return frozenset[str]().union(*(starting(self.files, home, self._launching) for home in homes))

    def _own_tests(self, module: ir.Module, state: State, by_pytest: bool) -> Iterator[Ran]:
        """The tests of a program that runs them itself, one after the other in its process: each finds what those
        before it did to CUDA.

        unittest runs methods of classes, by their names; pytest runs tests as they stand in the file.
        """
        given = [function for function in tests(module) if by_pytest or "." in function.qualname]
        states: tuple[State, ...] = (state,)
        for function in given if by_pytest else sorted(given, key=lambda f: f.qualname):
            machine = self._machine(module.name, in_test=True)
            frame = _top_of(module.name)
            ended = [s for each in states for s in self._around(machine, module, function, each.clone(), frame)]
            ways = [*ended, *(after for after, _ in frame.raises)]
            states = _telling([way.clone() for way in ways], state) if ways else states
            _end(machine, frame, ended)
            yield Ran(module.name, function.qualname, machine)

    def _collected(self, machine: Machine, module: ir.Module) -> State:
        """The state in which pytest runs the tests of a module: its conftests are imported first, then itself."""
        state = self._conftests_imported(machine, module)
        state = self._hooked(machine, module, HOOKS_BEFORE, state)
        state = self._imported(machine, module, assumed=False, state=state)
        return self._hooked(machine, module, HOOKS_BEHIND, state)

    def _conftests_imported(self, machine: Machine, module: ir.Module) -> State:
        frame = _top_of(module.name)
        state = State(Process(), {})
        for name in reversed(conftests(self.files, module.name)):
            loaded = machine.load(name, state, frame, Site(module.name, 0))
            state = _plainest([after for after, _ in loaded], state)
        return state

    def _hooked(self, machine: Machine, module: ir.Module, hooks: Iterable[str], state: State) -> State:
        """What the conftests of a module of tests have pytest call before it runs any of them."""
        homes = [self.files.module(name) for name in reversed(conftests(self.files, module.name))]
        for hook in hooks:
            for home in (home for home in homes if home is not None):
                frame = _top_of(home.name)
                for function in hook_of(self.files, home, hook):
                    state = _plainest(self._called(machine, home, function, state.clone(), {}, frame), state)
                _tell(machine, frame.raises)
        return state

    def _test(self, machine: Machine, module: ir.Module, function: ir.Function, state: State) -> None:
        """Run a test inside its fixtures."""
        frame = _top_of(module.name)
        _end(machine, frame, self._around(machine, module, function, state, frame))

    def _around(
        self, machine: Machine, module: ir.Module, function: ir.Function, state: State, frame: Frame
    ) -> list[State]:
        def run(ready: State, given: Given) -> list[State]:
            return self._called(machine, module, function, ready, given, frame)

        return Fixtures(self.files, machine, module.name, frame).around(function, state, run)

    def _commands(self, module: ir.Module, registered: Iterable[Site]) -> Iterator[Ran]:
        """Functions that a library calls when the program is started, and console scripts."""
        ordinals = {site.ordinal for site in registered if site.module == module.name}
        scripts = self.files.scripts(module.name)
        for function in functions(module.body):
            place = (module.name, function.ordinal)
            if (function.ordinal in ordinals or function.qualname in scripts) and not self._is_reached(place):
                machine = self._machine(module.name, in_test=False)
                for state in self._ways(machine, module, assumed=False):
                    self._call(machine, module, function, state)
                yield Ran(module.name, function.qualname, machine)

    # -- what has no visible caller --------------------------------------------------------------

    def _assumed(self, name: str) -> Iterator[Ran]:
        self.files.begin(MOST_BYTES if self.starts(name) else MOST_ASSUMED_BYTES)
        module = self.files.module(name)
        if module is None:
            return
        for function in unreached(module, self.files.facts(name), launchers(self.files)):
            launcher = Caller(name, function)
            if self._is_reached(launcher.place):
                continue
            in_test = is_test_module(self.files.sources[name].path)
            for root in () if in_test else self.callers.roots(launcher, self.seen):
                if not self._is_reached(root.place):
                    yield from self._assume(name, root)
            if not self._is_reached(launcher.place):
                yield from self._assume_for(name, launcher, in_test)

    def _assume_for(self, name: str, launcher: Caller, in_test: bool) -> Iterator[Ran]:
        """Run a launcher that no root led to: by the methods of its own class that call it, else by itself."""
        never_leads = False
        for caller in () if in_test else self.callers.in_its_class(launcher):
            for ran in self._assume(name, caller):
                # One with an option may lead there when it is given.
                is_whole = ran.machine.record.cut is None and not any(p.default for p in caller.function.params)
                never_leads = never_leads or is_whole
                yield ran
        if never_leads or self._is_reached(launcher.place):
            return
        yield from self._assume(name, launcher)
        yield from self._assume_of_heirs(name, launcher)

    def _assume(self, owner: str, entry: Caller) -> Iterator[Ran]:
        """Run a function that has no visible caller, and with its options where it starts nothing without them.

        Who calls what can start processes gives it the numbers and switches for which it does.
        """
        module = self.files.module(entry.module)
        if module is None or (owner, entry.function.qualname) in self.skipped:
            return
        in_test = is_test_module(self.files.sources[entry.module].path)
        plain = self._assumed_call(entry, module, in_test, takes_options=False)
        yield self._ran_assumed(owner, entry, plain)
        record = plain.record
        if in_test or record.launches or record.outcomes or record.cut is not None or not _has_options(module, entry):
            return
        given = self._assumed_call(entry, module, in_test, takes_options=True)
        yield self._ran_assumed(owner, entry, given, takes_options=True)

    def _assumed_call(self, entry: Caller, module: ir.Module, in_test: bool, takes_options: bool) -> Machine:
        """Call a function with unknown arguments: those that it asks for, or all numbers and switches as well."""
        machine = self._machine(entry.module, in_test, assumed=True)
        made = None if in_test else self._instance(entry, module, takes_options)
        # Who asks for workers that nobody else asks for may as well do without what is made for them.
        is_used = not takes_options and not self._is_in_use(entry, module)
        options = switches(module, entry.function) if takes_options else {}
        if made is not None:
            self._call_made(machine, module, entry.function, made, options, is_used)
            return machine
        frame = _top_of(module.name)
        # Where an application takes the handlers of another file, importing it comes first.
        for begun in self._served_by(machine, module, entry):
            for ready, given in machine.effects.before_answer(machine, begun, frame, entry.function):
                self._call(machine, module, entry.function, ready, {**options, **given}, takes_options, is_used)
        return machine

    def _is_in_use(self, entry: Caller, module: ir.Module) -> bool:
        """Whether the program uses the class of a method, and does so without it: of its results it needs none."""
        cls = entry.function.qualname.rpartition(".")[0]
        methods = (f for f in functions(module.body) if cls and f.qualname.rpartition(".")[0] == cls)
        return any((module.name, method.ordinal) in self.seen for method in methods)

    def _assume_of_heirs(self, owner: str, entry: Caller) -> Iterator[Ran]:
        """The same for objects of classes that define what the class of a method leaves open."""
        module = self.files.module(entry.module)
        if module is None or is_test_module(self.files.sources[entry.module].path):
            return
        if (owner, entry.function.qualname) in self.skipped:
            return
        for heir in heirs(self.files, self.callers, module, entry.function):
            machine = self._machine(heir.module.name, assumed=True)
            state = self._imported(machine, heir.module, assumed=True)
            frame = _top_of(heir.module.name)
            site = Site(entry.module, entry.function.ordinal)
            cls = machine.lookup(heir.name, state, frame.scope)
            made = machine.call_value(cls, [], {}, state, frame, site) if cls is not None else []
            for begun, instance in made[:1]:
                found = _method(machine, module, entry.function, instance, begun)
                _end(machine, frame, _applied(machine, module, entry.function, found, {}, frame))
            yield self._ran_assumed(owner, entry, machine)

    def _ran_assumed(self, owner: str, entry: Caller, machine: Machine, takes_options: bool = False) -> Ran:
        """An entry that an unknown caller is assumed to have called."""
        self.entered.add(entry.place)
        self._note(machine)
        seen = [_as_seen(o) for o in machine.record.outcomes]
        machine.record.outcomes = [_as_given(o) for o in seen] if takes_options else seen
        return Ran(owner, entry.function.qualname, machine, frozenset({entry.place}))

    def _instance(self, entry: Caller, module: ir.Module, takes_options: bool) -> Made | None:
        """What a method begins with as others of its class do; None where it begins with what is its own."""
        facts = self.files.facts(module.name)
        if facts.may_route or facts.may_answer or self._kind is not Machine or self.listens:
            return None
        if is_of_class(module, entry.function):
            return None
        if self._instances is None:
            imported = partial(self._imported, assumed=True)
            self._instances = Instances(self.files, self._maker, imported)
        return self._instances.of(module, entry.function, takes_options)

    def _maker(self, name: str, few: bool) -> Machine:
        return self._machine(name, assumed=True, purpose=Purpose.MAKING, follows_few=few)

    def _application_over(self, module: ir.Module, entry: Caller) -> ir.Module:
        """The one module that makes an application of a file of handlers, or the file itself."""
        above = made_above(self.files, module.name, entry.function.name)
        found = None if above is None else self.files.module(above)
        return module if found is None else found

    def _served_by(self, machine: Machine, module: ir.Module, entry: Caller) -> Iterator[State]:
        """The states in which a server has made the application that a function of a module may answer requests of."""
        first = self._application_over(module, entry)
        factory = None if self.files.facts(first.name).application else factory_of(self.files, module, entry.function)
        if factory is not None:
            first = self.files.module(factory.module) or module
        # A server imports the module of an application, and does nothing else before.
        imported = State(Process(unseen=not self.files.facts(first.name).may_answer), {})
        for state in self._ways(machine, first, assumed=True, state=imported):
            made = (
                [state]
                if factory is None
                else self._called(machine, first, factory.function, state, {}, _top_of(first.name))
            )
            for begun in made:
                yield from self._imported_by(machine, first, module, begun)

    def _imported_by(self, machine: Machine, first: ir.Module, module: ir.Module, state: State) -> list[State]:
        """The states in which a module is imported that another one has imported, or that is this one."""
        if first is module:
            return [state]
        loaded = machine.load(module.name, state, _top_of(module.name), Site(module.name, 0))
        return [loaded[-1][0]] if loaded else [state]

    # -- the machine -----------------------------------------------------------------------------

    def _machine(
        self,
        name: str,
        in_test: bool = False,
        assumed: bool = False,
        purpose: Purpose = Purpose.ENTRY,
        follows_few: bool = False,
        foretold: Foretold | None = None,
        host: Host | None = None,
    ) -> Machine:
        options = EntryOptions(
            in_test=in_test,
            purpose=purpose,
            follows_few=follows_few,
            assumed=assumed,
            uses_gpu=purpose.prepares or self.files.reaches_gpu(name) or self.files.facts(name).names_modules,
            # Repairs ask for the shapes of what is sent and does not pickle.
            ignores_pickling_errors=bool(self.shaped),
            listens=self.listens,
            until=self._until,
            watched=self.watched,
            shaped=self.shaped,
            at_most=self.at_most,
            foretold=foretold or {},
            without_gpus=self.without_gpus,
        )
        host = self.hosts.of(self.files.sources[name].path) if host is None else host
        prepares = not (purpose.prepares or self.listens or self.proves or self.maps)
        importer = self._prepared_imports(host) if prepares else None
        setting = Setting(self.files, self.files.library, LibraryEffects(), name, host, options, importer)
        return self._kind(setting)

    @property
    def _kind(self) -> type[Machine]:
        if self.shaped:
            return Watcher
        if self.proves:
            return Prover
        return Mapper if self.maps else Machine

    def _prepared_imports(self, host: Host) -> PreparedImports:
        """What programs import that run on the same Pythons."""
        if host not in self._importers:
            looked_at = frozenset(site.module for site in self.watched | self.shaped)
            self._importers[host] = PreparedImports(self.files, partial(self._preparing, host), looked_at)
        return self._importers[host]

    def _preparing(self, host: Host, name: str) -> Machine:
        """A machine for an import that entries begin with: those of many modules, or only of its own."""
        is_shared = name in self.files.importers
        return self._machine(name, purpose=Purpose.PREPARATION if is_shared else Purpose.OWN_PREPARATION, host=host)

    def _run_with_messages(self, make: Callable[..., Machine], run: Callable[[Machine], None]) -> Machine:
        """Run a program; where it shows all that goes through its channels, once more, with that.

        What processes answer may depend on what they take: then it is run again with what they answered.
        """
        first = make()
        run(first)
        # A proof follows where a value was received, and need not know which it is.
        record = first.record
        # Servers and command lines call what is not called here, which may send more.
        is_open = record.cut or record.serves or record.commands
        foretold = {} if is_open or self.proves else first.messages.settled
        for _ in range(_MOST_FORETOLD):
            if not foretold:
                return first
            later = make(foretold=foretold)
            run(later)
            if later.record.cut:
                return first
            if later.messages.agrees(foretold):
                # What only a message leads to that nobody sends has a caller all the same.
                later.record.entered |= record.entered
                return later
            foretold = later.messages.settled
        return first

    def _run_main(self, machine: Machine, module: ir.Module, begun: State | None = None) -> None:
        states: list[State] = []
        fresh = begun or State(self._started(module.name), {})
        for state in self._packages(machine, module, fresh) if self.files.runs_in_package(module.name) else [fresh]:
            states.extend(machine.run_module(module, "__main__", state))
            _tell(machine, machine.uncaught)
        machine.end(states)

    def _started(self, name: str) -> Process:
        """The process of a program: one that another file starts sees the GPUs that this one tells it."""
        if name not in self.files.given_gpus:
            return Process()
        return Process().with_environ(VISIBLE, unknown("environ", VISIBLE))

    def _packages(self, machine: Machine, module: ir.Module, state: State) -> list[State]:
        """The states after the packages of a module were imported."""
        frame = _top_of(module.name)
        states = [state]
        for package in self.files.parents(module.name):
            states = [s for c in states for s in machine.act(package, c, frame, 0)]
        return states

    def _imported(self, machine: Machine, module: ir.Module, assumed: bool, state: State | None = None) -> State:
        """The state after importing a module."""
        return self._ways(machine, module, assumed, state)[0]

    def _ways(
        self, machine: Machine, module: ir.Module, assumed: bool, state: State | None = None
    ) -> tuple[State, ...]:
        """The states after importing a module: of all that differ in nothing that harms a fork, the plainest."""
        state = state or State(Process(unseen=assumed), {})
        state = _plainest(self._packages(machine, module, state), state)
        if not assumed:
            return _telling(machine.run_module(module, module.name, state), state)
        loaded = machine.load_one(module.name, state, _top_of(module.name), Site(module.name, 0))
        return _telling([after for after, _ in loaded], state)

    def _call(
        self,
        machine: Machine,
        module: ir.Module,
        function: ir.Function,
        state: State,
        given: Given | None = None,
        takes_options: bool = False,
        is_used: bool = False,
    ) -> None:
        """Call a function with unknown arguments, but for those that are ``given``."""
        frame = _top_of(module.name)
        found = _find(machine, module, function, state, takes_options)
        _end(machine, frame, _applied(machine, module, function, found, given or {}, frame, is_used))

    def _call_made(
        self, machine: Machine, module: ir.Module, function: ir.Function, made: Made, given: Given, is_used: bool
    ) -> None:
        """Call a method of an instance with unknown arguments, but for those that are ``given``."""
        begun = made.begun(machine, Site(module.name, function.ordinal))
        if begun is None:
            return
        state, instance = begun
        frame = _top_of(module.name)
        found = _method(machine, module, function, instance, state)
        _end(machine, frame, _applied(machine, module, function, found, given, frame, is_used))

    def _called(
        self, machine: Machine, module: ir.Module, function: ir.Function, state: State, given: Given, frame: Frame
    ) -> list[State]:
        found = _find(machine, module, function, state)
        return _applied(machine, module, function, found, given, frame)


def _outermost(places: Iterable[Place], among: Set[str]) -> list[Place]:
    """The functions of some modules that are in no other function: those that an entry may be asked for."""
    return sorted(place for place in places if place[0] in among and ir.number_of(place[1]) is None)


def _telling(ways: Sequence[State], before: State) -> tuple[State, ...]:
    """The plainest way through an import, and where CUDA was used on others alone, the plainest of these."""
    first = _plainest(ways, before)
    using = [way for way in ways if way.process.driver is not None]
    return (first,) if first.process.driver is not None or not using else (first, _plainest(using, before))


def _plainest(ways: Sequence[State], before: State) -> State:
    """The way through an import on which least is assumed, and most of that to hold.

    Which branch of the import comes first in the text must not decide what is found. What is asked for at the top of a
    module is more often there than not, but for variables of the environment.
    """
    return min(ways, key=lambda way: (len(way.facts), sum(map(_is_unusual, way.facts))), default=before)


def _is_unusual(fact: questions.Fact) -> bool:
    sym, holds = fact
    return holds is questions.asks_for_a_setting(sym)


def _top_of(name: str) -> Frame:
    """The frame of a module's top level."""
    return Frame(Ref(("module", name)), name)


def _end(machine: Machine, frame: Frame, states: list[State]) -> None:
    """What a call raised is over, and so is its process."""
    _tell(machine, frame.raises)
    machine.end(states)


def _tell(machine: Machine, ended: Iterable[tuple[State, Raised]]) -> None:
    """Note what goes wrong on paths that nobody catches."""
    for _, raised in ended:
        if raised.outcome is not None:
            machine.emit(raised.outcome)


def _as_seen(outcome: Outcome) -> Outcome:
    """A launch after a use of CUDA that was seen is as certain as if a call were seen.

    What the launching function used itself counts where it also chooses the start method: else its callers may.
    """
    if outcome.kind not in OF_INHERITING or not outcome.certain or not outcome.cause or len(outcome.launch) < 2:
        return outcome
    launching = outcome.launch[-2].site
    is_own = any(step.site == launching for step in outcome.cause)
    return replace(outcome, doubt=Doubt.METHOD) if is_own and not outcome.chosen else replace(outcome, assumed=False)


def _has_options(module: ir.Module, entry: Caller) -> bool:
    """Whether a function, or what makes the object of a method, takes numbers or switches that nobody has to give."""
    return bool(switches(module, entry.function) or switches(module, _maker_of(module, entry.function)))


def _maker_of(module: ir.Module, function: ir.Function) -> ir.Function | None:
    cls, _, _ = function.qualname.rpartition(".")
    return constructor(module, cls) if cls and not is_of_class(module, function) else None


def _as_given(outcome: Outcome) -> Outcome:
    """What goes wrong where a caller gives options: one that gives none does not meet it."""
    return outcome if outcome.reason is not None else replace(outcome, doubt=Doubt.GIVEN)


def _own_class(value: Value, name: str, state: State) -> Value | None:
    """What stands for a class of the program: where a decorator may give another one in its place, the class itself."""
    if len(value) == 1:
        return value if isinstance(value[0], Ref) else None
    own = [atom for atom in value if isinstance(atom, Ref) and _is_called(state.get(atom), name)]
    return (own[0],) if len(own) == 1 else None


def _is_called(found: heap.Object | None, name: str) -> bool:
    return isinstance(found, heap.Class) and found.qualname == name


def _find(
    machine: Machine, module: ir.Module, function: ir.Function, state: State, takes_options: bool = False
) -> tuple[Value | None, State]:
    frame = _top_of(module.name)
    site = Site(module.name, function.ordinal)
    parts = function.qualname.split(".")
    if len(parts) == 1:
        found = machine.lookup(parts[0], state, frame.scope)
        return found and itself(found, state), state
    if len(parts) != 2:
        return None, state
    cls = _own_class(itself(machine.lookup(parts[0], state, frame.scope) or (), state), parts[0], state)
    if cls is None:
        return None, state
    if parts[1] == "__init__":
        return cls, state
    if is_of_class(module, function):
        for last, method in machine.attribute(cls, parts[1], state, frame, site):
            return method, last
        return None, state
    options = switches(module, _maker_of(module, function)) if takes_options else {}
    for made, instance in machine.call_value(cls, [], options, state, frame, _making(module, parts[0], site)):
        if not machine.options.in_test:
            return _method(machine, module, function, instance, made)
        ready = set_up(machine, instance, made, frame, site)
        for last, method in machine.attribute(instance, parts[1], ready, frame, site):
            return method, last
    return None, state


def _applied(
    machine: Machine,
    module: ir.Module,
    function: ir.Function,
    found: tuple[Value | None, State],
    given: Given,
    frame: Frame,
    is_used: bool = False,
) -> list[State]:
    """The paths after a call of what was found to stand for a function, whose result is used; as they are otherwise."""
    target, state = found
    if target is None:
        return [state]
    site = Site(module.name, function.ordinal)
    asked = left_out(module, function)
    begun, outcomes = state.clone() if asked else state, len(machine.record.outcomes)
    results = machine.call_value(target, [], dict(given), state, frame, site)
    if not results and asked and len(machine.record.outcomes) == outcomes:
        # It refuses to be called without what its signature says may be left out.
        results = machine.call_value(target, [], {**asked, **given}, begun, frame, site)
    return [s for s, _ in (machine.used if is_used else machine.drained)(results, frame)]


def _method(
    machine: Machine, module: ir.Module, function: ir.Function, instance: Value, state: State
) -> tuple[Value | None, State]:
    """A method of an instance, when whatever comes first has been called."""
    frame = _top_of(module.name)
    ready = machine.effects.before_method(machine, instance, function.name, state, frame)
    site = Site(module.name, function.ordinal)
    for last, method in machine.attribute(instance, function.name, ready[0], frame, site) if ready else ():
        return method, last
    return None, state


def _making(module: ir.Module, cls: str, site: Site) -> Site:
    """Where an instance is made: apart from its method where that takes no argument, and so happens in any case."""
    init = constructor(module, cls)
    return site if init is None or len(init.params) != 1 else Site(module.name, init.ordinal)
