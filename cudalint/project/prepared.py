"""Imports that several entries begin with, run once: the processes of all entries begin by importing much the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from cudalint.machine.frame import Frame
from cudalint.machine.interpreter import Machine
from cudalint.machine.interpreter.lineages import Imported, sealed
from cudalint.machine.state import Layer, Lineage, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref
from cudalint.project.program import FileProgram
from cudalint.project.reads import Reads
from cudalint.structs import Frozen, Mutable, field, replace

# Each holds all that its process imported: what is asked for again soon is kept.
MOST_KEPT = 48
# Between the name of a module and the number of the way through it.
_WAY = "/"


class _Known(Frozen):
    """What is known of an import: what it did, unless more came of it than objects, and what was read for it.

    ``is_of_any``: it does the same where an unknown caller's process imports it, and where a program's does.
    """

    done: Imported | None
    read: Reads
    is_of_any: bool = False

    def elsewhere(self, below: Layer | None, unseen: bool) -> _Known:
        """The same in the other kind of process, upon the layer ``below`` there."""
        assert self.done is not None
        ways = tuple(_moved(way, below, unseen) for way in self.done.ways)
        return replace(self, done=replace(self.done, ways=ways))


class PreparedImports(Mutable):
    """Runs imports aside, each on a machine of its own that ``machine`` gives for a module's name.

    Imports that reach a module which is ``looked_at`` are left to the entries.
    """

    files: FileProgram
    machine: Callable[[str], Machine]
    looked_at: frozenset[str] = frozenset()
    # What running them took.
    steps: int = 0
    _known: OrderedDict[tuple[tuple[str, ...], str, bool], _Known] = field(default_factory=OrderedDict)

    def imported(self, name: str, base: Lineage, below: Layer | None) -> Imported | None:
        """What importing a module does after the imports of a lineage; None where more comes of it than objects.

        What it reads counts as read by the entry that has begun.
        """
        key = (base.names, name, base.process.unseen)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._from_other(name, base, below) or self._run(name, base, below)
            if len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        self.files.rest_on(known.read)
        if known.done is not None:
            self.files.charge(known.read.asked)
        return known.done

    def _from_other(self, name: str, base: Lineage, below: Layer | None) -> _Known | None:
        """What is known of the same import in the other kind of process, where all that led to it is the same there."""
        unseen = base.process.unseen
        led = [self._known.get((base.names[:i], _module(way), not unseen)) for i, way in enumerate(base.names)]
        other = self._known.get((base.names, name, not unseen))
        if other is None or not all(known is not None and known.is_of_any for known in (*led, other)):
            return None
        return other.elsewhere(below, unseen)

    def _run(self, name: str, base: Lineage, below: Layer | None) -> _Known:
        machine = self.machine(name)
        frame = Frame(Ref(("module", "")), "")
        state = State(base.process, {}, base.objects, base.counts, below, base.facts, dict(base.placed))
        root = machine.chain(state, Site(name, 0), f"imports {name}").step
        with self.files.aside() as read:
            loaded = machine.load_one(name, state, frame, Site(name, 0))
        self.steps += machine.steps
        reported = any(raised.outcome is not None for _, raised in frame.raises)
        if not loaded or reported or not read.asked.isdisjoint(self.looked_at):
            return _Known(None, read)
        if not _is_contained(machine):
            return _Known(None, read)
        record = machine.record
        ways = tuple(sealed(after, base, below, f"{name}{_WAY}{i}") for i, (after, _) in enumerate(loaded))
        neutral = not machine.consultations and all(after.process == base.process for after, _ in loaded)
        done = Imported(
            root,
            ways,
            frozenset(record.entered),
            tuple(record.commands),
            record.cut,
            neutral,
            record.asked,
            record.reads_words,
            record.offers.made,
            frozenset(machine.meeting_seen),
            frozenset(machine.called_back),
            tuple(dict.fromkeys(record.refused)),
        )
        return _Known(done, read, is_of_any=not machine.asked_for_callers)


def _module(way: str) -> str:
    """The module whose import a lineage names."""
    return way.rpartition(_WAY)[0]


def _moved(way: Layer, below: Layer | None, unseen: bool) -> Layer:
    assert way.lineage is not None
    lineage = replace(way.lineage, process=replace(way.lineage.process, unseen=unseen))
    return replace(way, before=below, lineage=lineage)


def _is_contained(machine: Machine) -> bool:
    """Whether an import changed its process and objects and nothing else, which would belong to the entry."""
    record = machine.record
    if record.outcomes or record.launches or record.serves or record.protected or record.spent:
        return False
    if record.local_choices or record.device_first or record.outlived or record.expected:
        return False
    if machine.puts or machine.sent or machine.saved:
        return False
    return not (machine.preloads or machine.rank_gpus)
