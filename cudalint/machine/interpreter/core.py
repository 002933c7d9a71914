"""What all rooms of the interpreter share: the entry, its budgets and record, and what rooms ask of each other."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeAlias

from cudalint.ir import nodes as ir
from cudalint.machine import exceptions, questions
from cudalint.machine.caches import Made, made
from cudalint.machine.classes import Order, Orders
from cudalint.machine.frame import Arguments, Around, Call, Frame, Given, Raised, Results, Steps
from cudalint.machine.heap import Class, Closure, Generator, Instance
from cudalint.machine.interpreter.entry import MOST_STEPS, EntryOptions, EntryRecord, Purpose
from cudalint.machine.interpreter.hooks import Hooks
from cudalint.machine.interpreter.lineages import Importer
from cudalint.machine.interpreter.program import Host, Program
from cudalint.machine.interpreter.results import merge_results, placed_alike
from cudalint.machine.joining import MOST_STATES, merge, merge_imported
from cudalint.machine.messages import Channel, Messages
from cudalint.machine.outcome import Outcome
from cudalint.machine.paths import Located
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import Process, Running, Sent, State
from cudalint.machine.trace import Chain, Site, TraceStep
from cudalint.machine.values import Atom, Dev, Lib, Ref, Tensor, Unknown, Value
from cudalint.models.library import Library
from cudalint.structs import Frozen, Mutable, replace

# Modules that import one another; an import takes a tenth of the room of a call.
MOST_IMPORTS = 100
# Statements and expressions within one another, those of all running calls together.
MOST_NESTED = 1_000
# The package under which models name what no library calls by a name.
_OWN = "cudalint"
# The way from a message to a part of it: numbers, keys and names.
Part: TypeAlias = tuple[Hashable, ...]
# An entry is long once it has used this part of its steps.
LONG_PART = 4
# Imports are left out once so many quarters of what they may use of the steps are used, by whatever.
LATE = 5
# Of the steps of an entry, the part that a call takes at least which is left because it does nothing, one that can
# only compute, and the part that the calls of one function take together which is then left whenever it is called,
# unless each takes few steps; the least of all three; the part after which such calls are looked for, again and again.
# None is where one step in ten runs what has not run before.
IDLE_PART = 12
COMPUTING_PART = 48
OFTEN_PART = 6
SHORT = 10
LEAST_IDLE = 100
LOOK_PART = 48
NEW_PART = 10
# Of so many paths it is remembered that they ask None for something.
MOST_BROKEN = 32


class Begun(Frozen):
    """A call that is running: its function, how much there was before it, in which process, and what it was told of."""

    place: Site
    function: ir.Function
    steps: int
    process: Process
    events: int
    consultations: int
    devices: frozenset[Dev]

    def is_idle(self, before: int, events: int, process: Process) -> bool:
        """Whether it began ``before`` some step, and nothing that is recorded has happened since."""
        return self.steps <= before and self.events == events and self.process == process


class IdleCalls(Mutable):
    """The calls of a function that have ended, none of which did anything, and the steps that they took together."""

    first: Begun
    count: int = 0
    steps: int = 0

    @property
    def take_steps(self) -> bool:
        """Whether they are more than a look at something, of which others ask again what it gives."""
        return self.steps >= SHORT * self.count


class Core(Hooks, ABC):
    """The run of one entry: ``options`` say how it runs, ``record`` gathers what it finds.

    All other fields are working memory of the run.
    """

    importer: Importer | None

    def __init__(self, program: Program, library: Library, main: str, host: Host, options: EntryOptions) -> None:
        self.program = program
        self.library = library
        self.main = main
        self.host = host
        self.options = options
        # How often anything ran whose effect may depend on the process.
        self.consultations = 0
        # Whether anything ran that asks whether an unknown caller may have done something before.
        self.asked_for_callers = False
        # The steps that led here to the imports that were prepared, by the steps that stand for it.
        self.prepared: dict[TraceStep, tuple[TraceStep, ...]] = {}
        # Where that happens here which another run said of another place.
        self._moved: dict[Site, Site] = {}
        self.record = EntryRecord(processes={site: [] for site in options.watched})
        self.orders = Orders(library.canonical)
        self.running: list[Site] = []
        self.booting: list[tuple[str, ...]] = []
        # By process that began with a fresh import: its parent when it was started.
        self.parents: dict[tuple[str, ...], State] = {}
        self.preloads: list[tuple[str, Site]] = []
        self.puts: dict[Hashable, list[tuple[Site, Chain, Chain | None]]] = {}
        # By where a channel was made: the GPU memory that other processes sent through it, which processes sent any,
        # and what goes wrong if any comes out where a process sends on what it receives.
        self.sent: dict[Site, list[Sent]] = {}
        # By what a manager keeps: where processes read it that found nothing there yet.
        self.readers: dict[Site, list[Call]] = {}
        self.sharers: dict[Site, set[tuple[tuple[str, ...], Part]]] = {}
        # By the address where processes find one another: what becomes of GPU memory in those that were started.
        self.peers: dict[Hashable, set[str]] = {}
        self.forwarded: dict[Site, list[tuple[tuple[str, ...], Part, Outcome]]] = {}
        # By channel: what runs a process once more that reads it, with what it is told there later.
        self.listeners: dict[Hashable, list[Callable[[State, Frame, Ref, Value], None]]] = {}
        self.messages = Messages(options.foretold)
        # The modules whose texts a program runs by exec() right now.
        self.executing: list[str] = []
        # The failures that handlers are run for, by what each of them has, and those of which one told another process.
        self.caught_as: dict[Hashable, Outcome] = {}
        self.handled: list[Outcome] = []
        self.told: list[Outcome] = []
        # The threads that are running, each started by the one before it.
        self.threads: list[Running] = []
        self.meeting_seen: set[str] = set()
        # Per collective, the GPUs that ranks started one by one use there, by their start.
        self.rank_gpus: dict[Site, dict[tuple[Site, str], set[str]]] = {}
        # The exceptions that left the top level of the module that ran last as a program.
        self.uncaught: list[tuple[State, Raised]] = []
        # What was so on paths on which None was asked for an attribute that it has not.
        self._broken: list[tuple[questions.Fact, ...]] = []
        self.saved: dict[Atom, bool] = {}
        # The files that the program writes, as far as it shows which.
        self.written: set[Located] = set()
        # The folder that it went to, where that lies beside a module.
        self.folder: Located | None = None
        # Where it asked for files that were not there, and that it made then; and the processes that did so.
        self.made_files: set[Made] = set()
        # What the generator yielded that ran last, in the order in which it did.
        self.yielded: tuple[Value, ...] = ()
        # Its tests that went either way.
        self.undecided: frozenset[int] = frozenset()
        # What the generator returned that ran last as a whole.
        self.given_back: Value = ()
        # What goes wrong where a file is loaded, should the program save values on the GPU to it later on.
        self.loaded: dict[Atom, list[Outcome]] = {}
        # The same for files of which nobody knows who saved them, with the keys that are asked of each.
        self.loads: dict[Hashable, tuple[Outcome, set[str]]] = {}
        self.evaluated: Counter[Site] = Counter()
        # The functions that unknown ones were given and that were tried out, and the work of that.
        self.called_back: set[Site] = set()
        self.steps_aside = 0
        self._steps = 0
        self._import_steps = 0
        self._most_steps = host.limits.scaled(options.most_steps)
        # The calls that are running, of which one is left that did nothing; the functions of which one was left.
        self._begun: list[Begun] = []
        self._leaving: int | None = None
        # The functions of which calls are left, in which process, None being any, if they are told of which devices.
        self.abandoned: set[tuple[Site, tuple[str, ...] | None, frozenset[Dev]]] = set()
        # The functions of which a call did nothing, those of which one did something, and those that lead to what may
        # decide how something is started.
        self._idle: dict[tuple[Site, frozenset[Dev]], IdleCalls] = {}
        self._busy: set[Site] = set()
        self._deciding: set[Site] = set()
        # What is imported for many may take more steps than a program, and has no more patience.
        patience = min(self._most_steps, host.limits.scaled(MOST_STEPS))
        self._most_idle = max(LEAST_IDLE, patience // IDLE_PART)
        self._most_computing = max(LEAST_IDLE, patience // COMPUTING_PART)
        self._most_often = max(LEAST_IDLE, patience // OFTEN_PART)
        # Calls that take little by themselves are followed as long as the entry may well do without leaving any.
        self._half = patience // 2
        # After how many steps such a call is looked for next.
        self._patience = self._look_after = max(1, patience // LOOK_PART)
        # The statements that have run, and how many steps and such statements there were when it was looked last.
        self._ran: set[tuple[str, int]] = set()
        self._looked: tuple[int, int] = (0, 0)
        self._most_depth = host.limits.depth
        self._is_making = options.purpose is Purpose.MAKING
        self._is_preparing = options.purpose.prepares
        # How deep in imports it is: what modules do at their import leaves half of the steps to the program itself.
        self._importing = 0
        self._active: list[tuple[str, int]] = []
        # How many statements and expressions are running, each within the one before it.
        self._nested = 0
        # The bodies of context managers that have yielded.
        self.yielding: list[Frame] = []
        # Whether an attribute is asked for, or set, as ``object`` does it, whatever its class says.
        self.plainly = False
        # The classes that are being made by their metaclass.
        self._making: list[Ref] = []
        # The calls that are running, with their arguments.
        self._given: list[tuple[tuple[Site, tuple[str, ...], Ref | None], Arguments]] = []
        # The classes and instances that are being called, each with how many functions run: calls may go around without
        # one.
        self._called: list[tuple[Ref, int]] = []
        # The attributes that ``__getattr__`` is being asked for, each with how many functions run.
        self._asked_getters: list[tuple[Ref, str, int]] = []
        # Of each loop that runs and whose rounds stand for more: the lists that were there before it.
        self.before_loops: list[set[Hashable]] = []
        # How many loops it is in whose rounds stand for more.
        self.open_loops = 0
        # What loops over numbers ask of these.
        self._asked_turns: dict[Site, tuple[ir.Expr, ...]] = {}
        # Whether coroutines that are made now run later: what is evaluated is given to a process that is being made, or
        # the call that runs is all that an assignment keeps.
        self._makes_later = False
        # The global that a function gave back last, by its module, where that was None.
        self._gave_none: tuple[ir.Name, str] | None = None
        self._kept: ir.Expr | None = None
        # The expressions whose iterators are not gone through where they are made: a variable or a display keeps them,
        # a function gives them back or is given them.
        self._unbegun: tuple[ir.Expr, ...] = ()
        # Whether the comprehension that was last gone through had any round.
        self._went_round = False
        # What the match statements look at whose patterns are tried, each within the one before it.
        self._subjects: list[Value] = []
        # The functions of libraries whose replacements are running: what these call is the one that was there before.
        self._replacing: list[str] = []

    @property
    def _depth(self) -> int:
        """How many calls of functions are running."""
        return len(self._active) - self._importing

    # -- budgets ---------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The work done so far."""
        return self._steps + self.steps_aside

    def _take_step(self) -> bool:
        """Count a statement that is about to run; False where no step is left for it, or the call that it is in is."""
        if self._leaving is not None:
            return False
        self._steps += 1
        if self._is_late:
            return False
        if self._importing:
            self._import_steps += 1
            if self._import_steps > self._most_import_steps:
                return False
            # What is imported late must leave some steps to what comes after it.
            return self._steps <= min(self._most_steps, self._most_import_steps * LATE // 4)
        return self._steps <= self._most_steps

    @property
    def _is_late(self) -> bool:
        """Whether the processor time of its file is used up."""
        until = self.options.until
        return until is not None and time.process_time() > until

    @property
    def _most_import_steps(self) -> int:
        """How many steps imports leave to the program; one that does nothing but import may use all."""
        if self._is_making:
            return self._most_steps - self._most_steps // LONG_PART
        return self._most_steps if self._is_preparing else self._most_steps // 2

    @property
    def _joins_readily(self) -> bool:
        """Whether paths stay apart for devices and processes alone: before an entry itself, and where it is long."""
        return self._importing > 0 or self._is_making or self._steps > self._most_steps // LONG_PART

    def joined(self, states: list[State]) -> list[State]:
        """Paths that come to the same place, those joined that need not stay apart."""
        if len(states) < 2:
            return states
        left = merge(merge_imported(states) if self._joins_readily else states)
        if self.options.follows_few:
            left = self._first_of_each_kind(left)
        return left if len(left) <= MOST_STATES else self._fewer_processes(left)

    def _first_of_each_kind(self, states: list[State]) -> list[State]:
        """Two paths of each process, of which one used a GPU and one did not, where there are such."""
        kept: dict[tuple[tuple[str, ...], bool], State] = {}
        for state in states:
            kept.setdefault((state.process.identity, state.process.driver is None), state)
        if len(kept) < len(states):
            self.record.cut = self.record.cut or f"a constructor of more than {self._most_steps} steps"
        return list(kept.values())

    def _fewer_processes(self, states: list[State]) -> list[State]:
        """The paths of few enough processes: each ``os.fork()`` that children come to as well doubles them."""
        processes = sorted(dict.fromkeys(state.process.identity for state in states), key=len)
        if len(processes) <= MOST_STATES:
            return states
        self.record.cut = self.record.cut or f"more than {MOST_STATES} processes at one place"
        return [state for state in states if state.process.identity in processes[:MOST_STATES]]

    def joined_results(self, results: Results) -> Results:
        """Values with the paths that have them, those joined that need not stay apart."""
        if len(results) < 2:
            return results
        return merge_results(placed_alike(results) if self._joins_readily else results)

    def _out_of_steps(self, state: State) -> list[State]:
        """What follows a statement for which no step is left: of an import or a call, the rest of the program."""
        if self._leaving is not None:
            return [state]
        if self._is_late:
            self.record.cut = self.record.cut or f"more than {self.host.limits.seconds} s of processor time"
            self.record.spent = True
            return []
        most = self._most_steps
        limit = f"{self._most_import_steps}" if self._is_making else "half"
        # An import that begins late has met its own limit when it has hardly begun.
        part = f", of which imports get {limit}" if self._importing and self._steps <= most else ""
        part = " in an import" if self._is_preparing else part
        self.record.cut = self.record.cut or f"more than {most} steps{part}"
        if self._importing and (self._steps <= most or self._is_preparing):
            # What modules do after that is left out, so that the program itself is still seen.
            return [state]
        self.record.spent = True
        return []

    # -- what is recorded ------------------------------------------------------------------------

    def emit(self, outcome: Outcome) -> None:
        """Report an outcome; in a worker it belongs to the launch of that worker."""
        if outcome.within is None:
            outcome = replace(outcome, within=self.running[-1] if self.running else outcome.anchor)
        self.record.outcomes.append(self._as_here(outcome))

    def follow(self, before: Core, at: Site, site: Site) -> None:
        """Go on where another run of the program ended: what that said of the place ``at`` happens at ``site`` here."""
        self._moved = {} if at == site else {at: site}
        self.prepared |= before.prepared
        self.record = before.record.copy()
        self.record.outcomes = [self._as_here(outcome) for outcome in before.record.outcomes]
        self.consultations = before.consultations
        self.asked_for_callers = before.asked_for_callers
        self.preloads = [*before.preloads]
        self.puts = {channel: [*put] for channel, put in before.puts.items()}
        self.sent = {channel: [*sent] for channel, sent in before.sent.items()}
        self.readers = {kept: [*found] for kept, found in before.readers.items()}
        self.sharers = {channel: {*senders} for channel, senders in before.sharers.items()}
        self.peers = {address: {*found} for address, found in before.peers.items()}
        self.forwarded = {channel: [*found] for channel, found in before.forwarded.items()}
        self.messages = before.messages.for_run(self.messages.foretold)
        self.meeting_seen = {*before.meeting_seen}
        self.rank_gpus = {s: {k: {*gpus} for k, gpus in found.items()} for s, found in before.rank_gpus.items()}
        self.saved = {**before.saved}
        self.made_files = {*before.made_files}
        self.loaded = {place: [*found] for place, found in before.loaded.items()}
        self.loads = {sym: (outcome, {*asked}) for sym, (outcome, asked) in before.loads.items()}
        self.loads = {sym: (found, {*asked}) for sym, (found, asked) in before.loads.items()}
        self.evaluated = before.evaluated.copy()
        self.called_back = {*before.called_back}

    def _as_here(self, outcome: Outcome) -> Outcome:
        """An outcome with what led this entry to what others prepared for it."""
        if not self.prepared and not self._moved:
            return outcome
        return replace(
            outcome,
            cause=self._led_here(outcome.cause),
            launch=self._led_here(outcome.launch),
            effect=self._led_here(outcome.effect),
        )

    def _led_here(self, steps: tuple[TraceStep, ...]) -> tuple[TraceStep, ...]:
        """Steps with what led this entry to an import in the place of that import, where it was prepared."""
        led = (part for step in steps for part in self.prepared.get(step, (step,)))
        return tuple(replace(step, site=self._moved[step.site]) if step.site in self._moved else step for step in led)

    def says(self, channel: Channel, value: Value, state: State, site: Site) -> None:
        """Something is put into a queue or a pipe at ``site``."""
        if not state.process.dead:
            self.messages.say(channel, value, state, site if self.open_loops else None)
        self.tells(value, state)

    def tells(self, value: Value, state: State) -> None:
        """Another process is given a value: it may be told by that of a failure which a handler got over."""
        for spoken_of in exceptions.spoken_of(value, state) if self.caught_as or self.handled else ():
            failed = self.caught_as.get(spoken_of)
            for outcome in self.handled if failed is None else [failed]:
                self.told.append(outcome)
                self.record.tell(outcome)

    def grows_on(self, ref: Ref) -> bool:
        """Whether a list that is made longer here is so in more rounds of a loop than are run."""
        return any(ref.address in before for before in self.before_loops)

    def protect(self, anchor: Site, state: State) -> None:
        """On this path a launch does no harm; that a user writes words which change settings averts nothing."""
        facts = questions.settled(state.facts)
        if facts and not any(map(questions.lays_over, facts)):
            self.record.protected.append((anchor, facts))

    def chain(self, state: State, site: Site, message: str) -> Chain:
        """The calls that led here, and this."""
        if state.second_round:
            message += " (second time round)"
        step = TraceStep(site, message, state.process.label)
        if self.options.listens:
            self.record.trace_steps.append(step)
        return Chain(step, state.stack)

    def makes_file(self, state: State) -> None:
        """A path writes a file, maybe one that it asked for before, and that was not there."""
        if state.facts:
            self.made_files |= made(state.facts, state.process.identity)

    def fail(self, state: State, frame: Frame, raised: Raised) -> Results:
        """End this path with an exception."""
        frame.raises.append((state, raised))
        if not frame.tries:
            self.record.refused.append(state.facts)
        return []

    def asks_none(self, state: State) -> None:
        """On this path None is asked for something: as far as can be seen, the program ends with that."""
        if state.facts and state.facts not in self._broken and len(self._broken) < MOST_BROKEN:
            self._broken.append(state.facts)
            self.record.refused.append(state.facts)

    def completes(self, state: State) -> None:
        """On this path the entry's process comes to its end, and not by a failure."""
        if self._comes_to_its_end(state):
            self.record.completed.append(state.facts)

    def _comes_to_its_end(self, state: State) -> bool:
        return not any(all(fact in state.facts for fact in facts) for facts in self._broken)

    def _watch_process(self, site: Site, state: State) -> None:
        """Record the process that comes to a statement, if that is watched."""
        watched = self.record.processes.get(site)
        if watched is not None and state.process not in watched:
            watched.append(state.process)

    def is_unseen(self, package: str) -> bool:
        """Whether nothing is known of a library: no model describes it, and it does not come with Python."""
        return package not in sys.stdlib_module_names and package != _OWN and not self.library.knows(package)

    def is_import_of_main(self, state: State) -> bool:
        """Whether this process is a spawned child that is importing main."""
        return bool(self.booting) and self.booting[-1] == state.process.identity

    # -- statements ------------------------------------------------------------------------------

    @abstractmethod
    def block(self, body: Iterable[ir.Stmt], states: list[State], frame: Frame) -> list[State]:
        """Run statements on every state; what leaves early is gathered in the frame."""

    @abstractmethod
    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement."""

    @abstractmethod
    def assign(self, target: ir.Expr, value: Value, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Bind a value to a target."""

    @abstractmethod
    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name where ``global`` and ``nonlocal`` say."""

    @abstractmethod
    def branch(self, test: ir.Expr, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        """The states in which a test holds, and those in which it does not."""

    @abstractmethod
    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true on this path; else the identity to assume something about."""

    @abstractmethod
    def _set_on_object(self, ref: Ref, attr: str, value: Value, state: State, weak: bool) -> None:
        """Set an attribute of an object; ``weak``: it may be another object that is changed."""

    # -- expressions -----------------------------------------------------------------------------

    @abstractmethod
    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression, with the states in which it has them."""

    @abstractmethod
    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, from the inside out."""

    @abstractmethod
    def eval_all(self, nodes: Iterable[ir.Expr], state: State, frame: Frame) -> list[tuple[State, list[Value]]]:
        """Several expressions, left to right."""

    @abstractmethod
    def attribute(self, value: Value, name: str, state: State, frame: Frame, site: Site) -> Results:
        """``value.name``."""

    @abstractmethod
    def _exact_keys(self, value: Value, state: State) -> list[Value] | None:
        """The keys of a dict that is known whole."""

    @abstractmethod
    def least_version(self, found: Lib) -> str | None:
        """The least release of the package whose version something is; None of anything else."""

    @abstractmethod
    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""

    @abstractmethod
    def named_in_library(self, path: str, names: Value, state: State, frame: Frame, site: Site) -> Results:
        """``getattr(lib, name)``, ``lib.__dict__[name]``."""

    @abstractmethod
    def _method_path(self, atom: Atom, method: str, state: State) -> str | None:
        """The model's name of a special method of a library value."""

    # -- iteration -------------------------------------------------------------------------------

    @abstractmethod
    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop over a value: at most two, each with the loop variable's value."""

    @abstractmethod
    def consume(
        self,
        ref: Ref,
        generator: Generator,
        state: State,
        frame: Frame,
        around: Around | None = None,
        sent: Value | None = None,
    ) -> Results:
        """Run a generator at its first consumer; the value is what it yields.

        A context manager runs ``around`` where it yields: the body of the ``with`` statement. ``sent`` is what it is
        sent there.
        """

    @abstractmethod
    def step_of(self, ref: Ref, generator: Generator, state: State, frame: Frame, sent: Value, steps: Steps) -> Results:
        """Run a generator up to its next ``yield``."""

    @abstractmethod
    def resumed(self, node: ir.Stmt, state: State, frame: Frame, at: int) -> list[State]:
        """Run a statement from a ``yield`` within it."""

    @abstractmethod
    def keep_rest(
        self, node: ir.For, waiting: list[Value], last: Value, more: bool, states: list[State], frame: Frame
    ) -> None:
        """Remember which rounds of a loop are still to come, where a generator may stand within one."""

    @abstractmethod
    def keep_manager(self, node: ir.With, position: int, manager: Value, state: State, frame: Frame) -> None:
        """Remember what a ``with`` statement entered, where a generator may stand within it."""

    @abstractmethod
    def _rounds(
        self, node: ir.For, rounds: list[Value], few: list[Value], state: State, iterable: Value, frame: Frame
    ) -> list[State]:
        """A loop with all of its ``rounds`` as long as they are short, and no more than ``few`` of them otherwise."""

    @abstractmethod
    def exhausted(self, values: Iterable[Value], state: State, frame: Frame) -> list[State]:
        """The paths on which the generators among some values have run to their end."""

    @abstractmethod
    def goes_late(self, function: Value) -> bool:
        """Whether a function of a library gives an iterator that has not begun."""

    @abstractmethod
    def kept_value(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The value of an expression that is kept or given on: iterators in it have not begun."""

    @abstractmethod
    def stays_unbegun(self, node: ir.Expr) -> bool:
        """Whether an iterator that an expression makes is not gone through there."""

    @abstractmethod
    def unbegun_arguments(self, node: ir.Call, function: Value, state: State) -> tuple[ir.Expr, ...]:
        """The arguments of a call that are handed on as they are: iterators among them have not begun."""

    @abstractmethod
    def late_comprehension(
        self, node: ir.Comprehension, state: State, frame: Frame, now: Callable[[State], Results]
    ) -> Results:
        """A generator expression that a variable keeps; ``now`` goes through it at once."""

    @abstractmethod
    def late_call(self, node: ir.Call, function: Value, given: Given, now: Callable[[State], Results]) -> Results:
        """A call that gives an iterator, which a variable keeps; ``now`` goes through it at once."""

    @abstractmethod
    def goes_on(self, iterable: Value, rounds: list[Value], state: State) -> bool:
        """Whether a loop may make other rounds than these."""

    @abstractmethod
    def gives_to_process(self, function: Value, state: State) -> bool:
        """Whether a call makes a process, which gets what the call is given."""

    @abstractmethod
    def runs_nothing_else(self, function: Value, state: State) -> bool:
        """Whether a call of a value is that of a function of the program, and not of what calls one."""

    @abstractmethod
    def waits(self, closure: Closure) -> bool:
        """Whether a call of a function makes a coroutine that runs later."""

    @abstractmethod
    def awaited(self, value: Value, state: State, frame: Frame) -> Results:
        """What awaiting a value gives."""

    @abstractmethod
    def awaits_for(self, path: str, given: Given) -> list[Given] | None:
        """A call of a library with what its coroutines give; None where it is given none, or does not wait."""

    @abstractmethod
    def with_awaited(self, given: Given) -> list[Given] | None:
        """A call with what its coroutines give; None where it is given none."""

    @abstractmethod
    def afresh(self, generator: Generator, state: State) -> Generator:
        """A generator that has not begun, with variables of its own."""

    @abstractmethod
    def exact_items(self, value: Value, state: State) -> list[Value] | None:
        """The items of a sequence whose content is known exactly."""

    @abstractmethod
    def elements(self, value: Value, state: State) -> list[Value]:
        """What iterating a value may give; empty where nothing is known."""

    @abstractmethod
    def element_of(self, atom: Atom, state: State, sym: Hashable) -> Value:
        """One element of a value, for unpacking."""

    # -- bodies ----------------------------------------------------------------------------------

    @abstractmethod
    def _top_level(self, module: ir.Module, state: State, frame: Frame) -> list[State]:
        """Run the statements of a module."""

    @abstractmethod
    def _class_body(self, node: ir.ClassDef, state: State, frame: Frame) -> list[State]:
        """Run the statements of a class."""

    # -- functions and calls ---------------------------------------------------------------------

    @abstractmethod
    def _closure(self, function: ir.Function, state: State, frame: Frame) -> list[tuple[State, Ref]]:
        """The object that the definition of a function makes."""

    @abstractmethod
    def _decorate(self, decorator: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        """What a decorator makes of a function or class."""

    @abstractmethod
    def call_value(
        self,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
        statement: bool = False,
    ) -> Results:
        """Call each alternative of a value; ``Given`` says what the arguments mean."""

    @abstractmethod
    def delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``del owner[key]``."""

    @abstractmethod
    def delete_attribute(self, owner: Value, attr: str, state: State) -> None:
        """``del owner.attr``."""

    @abstractmethod
    def special(
        self, value: Value, names: tuple[str, ...], args: list[Value], state: State, frame: Frame, site: Site
    ) -> Results | None:
        """What the first of these methods gives that the class of an instance defines; None where it has none."""

    @abstractmethod
    def operate(self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site) -> Results | None:
        """``left op right`` where a class of the program says what that is."""

    @abstractmethod
    def operate_in_place(
        self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """``left op= right`` where a class of the program says what that is."""

    @abstractmethod
    def compare_by_class(
        self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """A comparison where a class of the program says what that is."""

    @abstractmethod
    def judged(self, results: Results, frame: Frame, site: Site) -> Results:
        """Values of a test: an instance is what its class says of its truth."""

    @abstractmethod
    def shown(self, values: list[Value], names: tuple[str, ...], state: State, frame: Frame, site: Site) -> list[State]:
        """The paths on which instances have said what they look like as texts."""

    @abstractmethod
    def as_text(self, value: Value, conversion: str, spec: Value, state: State, frame: Frame, site: Site) -> Results:
        """What a value looks like in a text, by a conversion and a format."""

    @abstractmethod
    def earlier(
        self, function: Value, given: Arguments, state: State, frame: Frame, site: Site, says: str
    ) -> list[State] | None:
        """The paths on which a function ran before; None where it came to no end."""

    @abstractmethod
    def drained(self, results: Results, frame: Frame) -> Results:
        """Results whose generators have run."""

    @abstractmethod
    def hands_over(
        self,
        values: Iterable[Value],
        state: State,
        frame: Frame,
        site: Site,
        function: str | None = None,
        is_called: bool = False,
    ) -> None:
        """An unknown function, or an object that nobody knows, is given these values."""

    @abstractmethod
    def may_run_hooks(
        self,
        called: Iterable[Atom],
        state: State,
        frame: Frame,
        site: Site,
        kind: str | None = None,
        method: str | None = None,
    ) -> None:
        """What is called, or given to a call, may be a module with hooks, or hold one."""

    @abstractmethod
    def is_dropped(self, function: Value, state: State) -> None:
        """Whatever may have called a function that was handed over lets go of it."""

    @abstractmethod
    def calls_now(self, path: str, given: Given) -> list[State] | None:
        """The paths after a function of a library has called what it is given; None where it calls nothing so soon."""

    @abstractmethod
    def called_one(self, args: list[Value], state: State) -> Atom | None:
        """The function of the program that is all that something is given."""

    @abstractmethod
    def at_any_time(self, state: State, run: Callable[[], Results]) -> Results:
        """Run what may be called again by then, when the process did something else."""

    @abstractmethod
    def keeps_events(self, values: Iterable[Value], name: str, state: State) -> None:
        """What is called ``name`` is given functions of the program, which it may keep for a main loop."""

    @abstractmethod
    def runs_events(self, state: State, run: Callable[[Iterable[Value]], list[State]]) -> list[State]:
        """The paths after the main loop of an application, which calls what was handed to it."""

    @abstractmethod
    def _call_atom(self, atom: Atom, given: Given) -> Results:
        """Call one alternative of a value."""

    @abstractmethod
    def _call(self, node: ir.Call, state: State, frame: Frame, statement: bool) -> Results:
        """The value of a call, whose function is evaluated first."""

    @abstractmethod
    def _apply(self, node: ir.Call, function: Value, state: State, frame: Frame, statement: bool) -> Results:
        """Call a function that was evaluated with the arguments that a call names."""

    @abstractmethod
    def _run_body(
        self,
        closure: Closure,
        scope: Ref,
        args: list[Value],
        state: State,
        frame: Frame,
        site: Site,
        message: str,
        around: Around | None = None,
        sent: Value | None = None,
        steps: Steps | None = None,
        stepped: tuple[Ref, Generator] | None = None,
    ) -> Results:
        """Run the body of a function whose parameters are bound in ``scope``."""

    @abstractmethod
    def is_left(self, place: Site, state: State, arguments: Arguments) -> bool:
        """Whether calls of a function are not followed any more in this process, if they are told of these devices."""

    @abstractmethod
    def begin_call(self, closure: Closure, state: State, is_callers: bool) -> None:
        """A function begins to run; ``is_callers`` where code of its caller runs within it."""

    @abstractmethod
    def end_call(self, results: Results, site: Site) -> Results:
        """The function that began last has ended: what it gives, which is unknown where it was left."""

    # -- classes ---------------------------------------------------------------------------------

    @abstractmethod
    def instantiate(self, ref: Ref, cls: Class, given: Given) -> Results:
        """Call a user class, by way of its metaclass."""

    @abstractmethod
    def mro(self, cls: Ref, state: State) -> Order:
        """A class and its bases, in the order in which Python looks at them; library bases by their dotted name."""

    @abstractmethod
    def library_base(self, cls: Ref, state: State) -> str | None:
        """The first library class that a user class derives from."""

    @abstractmethod
    def user_method(self, instance: Instance, name: str, state: State) -> Atom | None:
        """A function that a user class in the order of resolution defines."""

    @abstractmethod
    def _class_attribute(self, cls: Ref, name: str, state: State, after: Ref | None = None) -> Value | None:
        """What the user classes in the order of a class give a name; those behind ``after``, where that is given."""

    @abstractmethod
    def _kind_of(self, cls: Ref, state: State) -> Ref | None:
        """The metaclass of a class, where a user wrote one."""

    @abstractmethod
    def metaclass_method(self, cls: Ref, name: str, state: State) -> Atom | None:
        """A method of the metaclass of a class, where a user wrote it."""

    @abstractmethod
    def _row_of(self, instance: Instance, state: State) -> tuple[Value, ...] | None:
        """The fields of a record that is a tuple as well."""

    # -- imports ---------------------------------------------------------------------------------

    @abstractmethod
    def load(self, name: str, state: State, frame: Frame, site: Site) -> Results:
        """Import a module of the project: its packages first, its top level once per process."""

    @abstractmethod
    def attempt(self, name: str, run: Callable[[], Results], frame: Frame) -> tuple[Results, list[State]]:
        """What something gives, and the paths on which it raises an exception of this name, for which Python waits."""

    @abstractmethod
    def enter(self, manager: Value, state: State, frame: Frame, site: Site) -> Results:
        """``manager.__enter__()``; an unknown manager enters as itself."""

    @abstractmethod
    def as_raised(self, exception: Value, state: State) -> Raised:
        """An exception, or a class of them, on its way."""

    @abstractmethod
    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__(None, None, None)``."""

    @abstractmethod
    def are_equal_records(self, left: Value, right: Value, state: State) -> bool | None:
        """Whether two objects of a dataclass are equal, by their fields; None where that is not known."""

    @abstractmethod
    def are_in_order(self, op: str, left: Value, right: Value, state: State) -> bool | None:
        """``left op right`` of two objects of a dataclass that has an order; None where that is not known."""

    @abstractmethod
    def refuses_call(self, function: Value, given: Given) -> bool:
        """Whether a function or class of the program is known not to take what it is called with."""

    @abstractmethod
    def lacks(self, function: Value, given: int, named: Collection[str], state: State) -> list[str]:
        """The parameters of a function or class of the program that a call has yet to name."""

    @abstractmethod
    def refuses_hash(self, value: Value, state: State, depth: int = 0) -> bool:
        """Whether something is known to be kept in no set, and under nothing in a dict: it has no hash."""

    @abstractmethod
    def refuses_attribute(self, instance: Instance, name: str, state: State) -> str | None:
        """The exception by which the class of an object refuses to set an attribute; None where it does not."""

    @abstractmethod
    def written_bases(self, cls: Ref, state: State, site: Site) -> Value:
        """The bases of a class with the types that they are given; empty where none of them is given any."""

    @abstractmethod
    def annotations_of(self, function: Closure, state: State) -> dict[Hashable, Value]:
        """What the parameters of a function are said to be, as far as that is a name."""

    @abstractmethod
    def record_fields(self, cls: Ref, state: State) -> list[tuple[str, Value | None]]:
        """The fields that the ``__init__`` of a dataclass takes, those of its bases first; empty where it has none."""

    @abstractmethod
    def resolve_deferred(self, value: Value, state: State, frame: Frame, depth: int = 0) -> Results:
        """What a deferred import stands for: its module runs now, in this process."""

    @abstractmethod
    def _measured(self, module: str, name: str) -> Lib | None:
        """The library function that a model describes, also where the library is itself the project that is read."""

    @abstractmethod
    def _from_getattr(
        self, module: Value, name: str, state: State, site: Site, frame: Frame, depth: int = 0
    ) -> Results | None:
        """What a module's own ``__getattr__`` gives for a name; None where it has none."""

    @abstractmethod
    def has_no_name(self, home: str, name: str) -> bool:
        """Whether a module of the program certainly has no such name."""

    @abstractmethod
    def _bind_class_method(self, value: Value, cls: Ref, state: State) -> Value:
        """What an attribute of a class is for the class itself."""

    # -- libraries -------------------------------------------------------------------------------

    @abstractmethod
    def library_call(self, call: Call) -> Results:
        """Do what the model of a function says."""

    @abstractmethod
    def _library_call(
        self,
        path: str,
        state: State,
        frame: Frame,
        site: Site,
        args: list[Value],
        kwargs: dict[str, Value] | None = None,
        is_open: bool = False,
        statement: bool = False,
    ) -> Call | None:
        """The call of a function that a model describes; None of any other."""

    @abstractmethod
    def _with_library(
        self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """What an operator makes of what a library holds, where a model says so."""

    @abstractmethod
    def _unmodelled(self, call: Call) -> Results:
        """Call a library function, or a method of a library value, that no model names."""

    @abstractmethod
    def _tensor_attribute(self, tensor: Tensor, name: str, state: State, frame: Frame, site: Site) -> Results:
        """``tensor.name``."""

    @abstractmethod
    def _tensor_data(self, tensor: Tensor, what: str, state: State, frame: Frame, site: Site) -> Results:
        """Read the data of a tensor."""

    @abstractmethod
    def _unknown_called(self, function: Unknown, state: State, site: Site) -> None:
        """Something unknown is called where it matters what its name says."""

    @abstractmethod
    def _unknown_method(self, call: Call) -> Value | None:
        """What a method of something unknown gives, where more is known of it; None for all others."""

    @abstractmethod
    def _after_telling(self, call: Call) -> list[State]:
        """The states after a method of something unknown was told of a GPU, by which it may compute there."""

    @abstractmethod
    def _given_away(self, values: Iterable[Value], state: State) -> None:
        """What nobody knows has these values from here on."""

    @abstractmethod
    def _of_main(self, node: ir.Name, value: Value, state: State, frame: Frame) -> Results:
        """What a name stands for that None is not enough for."""

    @abstractmethod
    def _of_parent(self, node: ir.Attr, value: Value, state: State, frame: Frame) -> Results:
        """The same for an attribute of what a name stands for."""

    @abstractmethod
    def _place(self, node: ir.Expr, state: State, frame: Frame) -> tuple[Ref, str] | None:
        """Where a variable of this function or module is kept."""

    @abstractmethod
    def kept_at(self, place: tuple[Ref, str], state: State) -> Value:
        """What is kept at a place."""

    @abstractmethod
    def keep_at(self, place: tuple[Ref, str], value: Value, state: State) -> None:
        """Narrow down what is kept at a place."""

    @abstractmethod
    def _missing_name(self, name: str, state: State, frame: Frame, site: Site) -> Results:
        """A name that no scope binds."""

    @abstractmethod
    def _missing_part(self, owner: Ref, key: Hashable, state: State, frame: Frame, site: Site) -> Results | None:
        """An object lacks an item or attribute, or holds None there; None where that is as it should be."""
