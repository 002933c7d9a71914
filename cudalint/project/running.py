"""Runs the entries of a program: first what is started, then what has no visible caller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Set

from cudalint.ir import nodes as ir
from cudalint.project.assumed.calls import Assumed
from cudalint.project.callers import Place
from cudalint.project.entries import is_program
from cudalint.project.entry_result import EntryResult
from cudalint.project.entry_store import EntryStore
from cudalint.project.groups import Group, GroupResult, Others
from cudalint.project.machines import Entry, Inquiry, Machines, Ran
from cudalint.project.near import distances, naming
from cudalint.project.patience import LEFT_OUT, MOST_DETOURS, Detours
from cudalint.project.process_map import Begins
from cudalint.project.program import MOST_BYTES, FileProgram
from cudalint.project.pytest_files import is_test_module
from cudalint.project.pythons import Hosts
from cudalint.project.reached import Reached
from cudalint.project.started import Started
from cudalint.project.tested import Tests

# Starting a process costs as much as that many steps and nodes: a run that needs fewer is not shared with others.
MOST_ALONE = 15_000


class Runner:
    """Runs entries.

    ``reached`` is what any of them reached. Of tests only ``chosen`` ones are run, where these are given, and of what
    has no visible caller none that are ``skipped``. ``kept`` holds what entries gave in runs before; ``others`` run
    entries besides this process.
    """

    def __init__(
        self,
        files: FileProgram,
        hosts: Hosts,
        alone: bool = False,
        reached: Reached | None = None,
        inquiry: Inquiry | None = None,
        chosen: frozenset[Entry] | None = None,
        skipped: frozenset[Entry] = frozenset(),
        kept: EntryStore | None = None,
        others: Others | None = None,
        about: frozenset[str] | None = None,
    ) -> None:
        self.files = files
        self.hosts = hosts
        self.alone = alone
        self.reached = Reached() if reached is None else reached
        self.inquiry = Inquiry() if inquiry is None else inquiry
        self.chosen = chosen
        self.skipped = skipped
        self.kept = kept
        self.others = others
        # The modules that the run is about; None where it is about all. Where no entry reaches them, the launchers of
        # these are looked at, and of those that name something of theirs.
        self.about = about
        self._steps = 0
        self._shared: frozenset[Group] | None = None
        # What is spent on entries that may lead to what the run is about, while these run.
        self._detours: Detours | None = None
        self._machines = Machines(self.files, self.hosts, self.inquiry)
        self._tests = Tests(self.files, self._machines, self.chosen)
        self._started = Started(self.files, self._machines, self._tests, self.reached, self.alone)
        self._assumed = Assumed(self.files, self._machines, self.reached, self.skipped)

    def run(self, names: Iterable[str]) -> Iterator[Ran]:
        """All entries of these modules: what is assumed runs last, when it is known what is reached without."""
        for groups in self._stages(names):
            for group in groups:
                for ran in self._entries(group):
                    self.reached.note(ran.machine)
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
                    self.reached.places |= result.entered
                    if self._detours is not None:
                        self._detours.note(result.entered, result.steps)
                    yield result

    def alone_with(self, group: Group, reached: Set[Place]) -> GroupResult:
        """What a group gives where other entries reached some functions."""
        files = self.files
        self.reached.begin(reached)
        broken, once, (parsed, size, nodes) = len(files.broken), files.noted_once, files.effort
        results: list[EntryResult] = []
        for ran in self._entries(group):
            results.append(ran.result())
            self.reached.places |= results[-1].entered
        named = ((files.names[found.source.path], found) for found in files.broken[broken:])
        return GroupResult(
            tuple(results),
            files.reads,
            frozenset(self.reached.missed),
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
        self.reached.before = frozenset(self.reached.places)
        yield [Group(name, is_assumed=True) for name in given if name in shown]

    def _entries(self, group: Group) -> Iterator[Ran]:
        seconds = self.hosts.common.limits.seconds
        self._machines.until = None if seconds is None else time.process_time() + seconds
        return self._assumed.of(group.name) if group.is_assumed else self._started.of(group.name)

    def _share(self, groups: Sequence[Group]) -> None:
        """Let other processes run what follows, as far as it is not kept."""
        if self.others is None or self._work < MOST_ALONE:
            return
        if self._shared is None:
            kept = self.kept
            self._shared = frozenset(g for g in groups if kept is None or not kept.has(self._key(g)))
        self.others.offer([g for g in groups if g in self._shared], self.reached.places, self.reached.before)

    @property
    def _work(self) -> int:
        """What was done here so far: steps that were made, and nodes that were lowered."""
        return self._steps + self._machines.steps + self._assumed.steps + self.files.nodes

    def _fresh(self, group: Group) -> Iterator[EntryResult]:
        """What a group gives when it is run, here or in another process."""
        found = None if self.others is None else self.others.result(group, self.reached.places)
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
        return self._assumed_key(group.name) if group.is_assumed else self._started_key(group.name)

    def _started_key(self, name: str) -> str:
        reached = _outermost(self.reached.places, {name})
        chosen = None if self.chosen is None else sorted(label for owner, label in self.chosen if owner == name)
        leading = self._tests.starting_elsewhere(name) if is_test_module(self.files.sources[name].path) else None
        far = None if leading is None else sorted(leading)
        return repr(
            ("starts", name, is_program(self.files, name), sorted(self.files.scripts(name)), reached, chosen, far)
        )

    def _assumed_key(self, name: str) -> str:
        """Of launchers that no entry reached: who may call them lies in the modules that lead there."""
        near = {name, *self.files.graph.above(name)}
        places = [_outermost(places, near) for places in (self.reached.places, self.reached.before)]
        skipped = sorted(label for owner, label in self.skipped if owner == name)
        return repr(("assumed", name, is_program(self.files, name), places, skipped))

    def begins(self, ran: Ran) -> Begins:
        """What begins the first process of an entry."""
        options = ran.machine.options
        if options.in_test:
            return Begins.TEST
        if options.assumed:
            return Begins.CALLER
        if ran.label != ran.owner:
            return Begins.COMMAND
        return Begins.PROGRAM if is_program(self.files, ran.owner) else Begins.SERVER


def _outermost(places: Iterable[Place], among: Set[str]) -> list[Place]:
    """The functions of some modules that are in no other function: those that an entry may be asked for."""
    return sorted(place for place in places if place[0] in among and ir.number_of(place[1]) is None)
