"""Machines for entries, each of which runs in a process of its own and begins with what is prepared for all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from cudalint.machine.effects.registry import LibraryEffects
from cudalint.machine.interpreter import EntryOptions, Host, Machine, Purpose, Setting
from cudalint.machine.mapping import Mapper
from cudalint.machine.messages import Foretold
from cudalint.machine.shapes import Watcher
from cudalint.machine.trace import Site
from cudalint.project.callers import Place
from cudalint.project.chosen import Choice
from cudalint.project.entry_result import EntryResult
from cudalint.project.prepared import PreparedImports
from cudalint.project.program import FileProgram
from cudalint.project.pythons import Hosts
from cudalint.structs import Frozen, Mutable, field

# An entry by the module for whose sake it runs and the name that a trace gives it.
Entry: TypeAlias = tuple[str, str]
# How often a program is run with what an earlier run showed of its channels.
_MOST_FORETOLD = 2


class Inquiry(Frozen):
    """What entries are asked beside what goes wrong.

    ``watched`` are the statements looked at, ``shaped`` the expressions whose values are. ``listens``: it is noted what
    functions do. ``proves``: it is asked what workers inherit. ``maps``: processes are noted. ``without_gpus``: all
    runs as on a machine that has none. No entry makes more steps than ``at_most``.
    """

    watched: frozenset[Site] = frozenset()
    shaped: frozenset[Site] = frozenset()
    listens: bool = False
    proves: bool = False
    maps: bool = False
    without_gpus: bool = False
    at_most: int | None = None


class Ran(Frozen):
    """One entry that ran: the module it belongs to, how its trace would name it, and the machine afterwards.

    ``owner`` is the module for whose sake it ran: the launcher's, where a caller of it was run. ``places`` count as
    reached whether or not they were. ``chosen`` is the option that it was given beyond the defaults, and what it gave
    without that.
    """

    owner: str
    label: str
    machine: Machine
    places: frozenset[Place] = frozenset()
    chosen: tuple[Choice, tuple[EntryResult, ...]] | None = None

    def result(self) -> EntryResult:
        """What it gave, without the machine."""
        machine, record = self.machine, self.machine.record
        found = EntryResult(
            self.owner,
            self.label,
            machine.main,
            tuple(record.final_outcomes(machine.library.roots)),
            frozenset((site.module, site.ordinal) for site in record.reached) | self.places,
            dict(record.launches),
            machine.steps,
            record.cut,
        )
        if self.chosen is None:
            return found
        choice, usual = self.chosen
        return choice.alone(found, usual)


class Machines(Mutable):
    """Makes the machines.

    ``until``: the processor time of this process at which the entries that run now end.
    """

    files: FileProgram
    hosts: Hosts
    inquiry: Inquiry
    until: float | None = None
    _importers: dict[Host, PreparedImports] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """What preparing imports took."""
        return sum(importer.steps for importer in self._importers.values())

    def of(
        self,
        name: str,
        in_test: bool = False,
        assumed: bool = False,
        purpose: Purpose = Purpose.ENTRY,
        follows_few: bool = False,
        foretold: Foretold | None = None,
        host: Host | None = None,
        at_most: int | None = None,
    ) -> Machine:
        """A machine for an entry that begins with a module, and makes no more steps than ``at_most``."""
        options = EntryOptions(
            in_test=in_test,
            purpose=purpose,
            follows_few=follows_few,
            assumed=assumed,
            uses_gpu=purpose.prepares or self.files.effects.reaches_gpu(name) or self.files.facts(name).names_modules,
            # Repairs ask for the shapes of what is sent and does not pickle.
            ignores_pickling_errors=bool(self.inquiry.shaped),
            listens=self.inquiry.listens,
            until=self.until,
            watched=self.inquiry.watched,
            shaped=self.inquiry.shaped,
            at_most=self.inquiry.at_most if at_most is None else at_most,
            foretold=foretold or {},
            without_gpus=self.inquiry.without_gpus,
        )
        host = self.hosts.of(self.files.sources[name].path) if host is None else host
        inquiry = self.inquiry
        prepares = not (purpose.prepares or inquiry.listens or inquiry.proves or inquiry.maps)
        importer = self._prepared_imports(host) if prepares else None
        setting = Setting(self.files, self.files.library, LibraryEffects(), name, host, options, importer)
        return self.kind(setting)

    def run_with_messages(self, make: Callable[..., Machine], run: Callable[[Machine], None]) -> Machine:
        """Run a program; where it shows all that goes through its channels, once more, with that.

        What processes answer may depend on what they take: then it is run again with what they answered.
        """
        first = make()
        run(first)
        # A proof follows where a value was received, and need not know which it is.
        record = first.record
        # Servers and command lines call what is not called here, which may send more.
        is_open = record.cut or record.serves or record.commands
        foretold = {} if is_open or self.inquiry.proves else first.messages.settled
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

    @property
    def kind(self) -> type[Machine]:
        """The kind of machine that answers what is asked."""
        if self.inquiry.shaped:
            return Watcher
        if self.inquiry.proves:
            from cudalint.machine.inheritance.prover import Prover  # most runs prove nothing

            return Prover
        return Mapper if self.inquiry.maps else Machine

    def _prepared_imports(self, host: Host) -> PreparedImports:
        """What programs import that run on the same Pythons."""
        if host not in self._importers:
            looked_at = frozenset(site.module for site in self.inquiry.watched | self.inquiry.shaped)
            self._importers[host] = PreparedImports(self.files, partial(self._preparing, host), looked_at)
        return self._importers[host]

    def _preparing(self, host: Host, name: str) -> Machine:
        """A machine for an import that entries begin with: those of many modules, or only of its own."""
        is_shared = name in self.files.graph.importers
        return self.of(name, purpose=Purpose.PREPARATION if is_shared else Purpose.OWN_PREPARATION, host=host)
