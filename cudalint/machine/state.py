"""The state of one process on one path, and how it splits."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from enum import Enum

from cudalint.machine import questions
from cudalint.machine.heap import Object, Scope
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    Const,
    Dev,
    Index,
    Rank,
    Ref,
    Task,
    Tensor,
    Value,
)
from cudalint.structs import Frozen, Mutable, MutableUnique, Partly, Unique, field, replace

LARGE_LAYER = 150
LARGE_SPLIT = 40
# Objects of one path that were made at one place. Decorators make as many as there are functions that they decorate.
MOST_AT_A_SITE = 1_000
# Assumptions of a path within one statement; joining leaves fewer.
MOST_ASSUMED = 16
# Stands where an object lay that nothing refers to any more.
BLOT = Scope({}, None, "", "gone")


class Launch(Frozen):
    """How a process was started: what its outcomes need to know.

    ``family`` is ``pool``, ``executor``, ``process``, ``loader`` ... as the models name it; ``stage`` says
    what runs: unpickle, initializer or body. ``each``: there is a worker for each of some things, so that it may be
    given one task only. ``chosen``: the program says by which method, so that no caller decides it.
    """

    launcher: str
    family: str
    method: str
    many: bool
    reused: bool
    stage: str
    failure: str
    certain: bool
    anchor: Site
    chain: Chain
    condition: str | None = None
    shares: bool = True
    each: bool = False
    chosen: bool = False


class Group(Frozen):
    """The process group of a process; ``rank`` is the number it joined with, where the code shows it.

    ``early``: GPU 0 was in use before the group was joined. ``bound``: the group has met on a GPU, which it keeps;
    ``named``: the program said on which one.
    ``guess``: the barrier that had to guess the GPU, where the guess holds unless another GPU is chosen later.
    ``by_hand``: users number the ranks when they start them, one by one, on one machine or on several.
    ``built``: the library whose own group it is, which communicates by NCCL where it was built so.
    """

    backend: str
    device_id: Dev | None
    made: Chain
    alone: bool = False
    rank: Rank | Const | None = None
    early: bool = False
    bound: bool = False
    named: bool = False
    guess: Chain | None = None
    by_hand: bool = False
    built: str = ""


class Context(Partly):
    """A CUDA context of a process: the devices visible when it was opened, and which of them it is on.

    ``prepared``: an initializer opened it, for all tasks to come. ``rank`` is the one that opens it, where the program
    lets only one.
    """

    visible: Value
    index: Index
    where: Chain
    prepared: bool = False
    rank: int | None = None

    def compared(self) -> Hashable:
        """The device, and not who opened it."""
        return self.visible, self.index, self.where, self.rank


class Selected(Frozen):
    """The device that a thread chose; ``maybe`` where only some paths chose it.

    ``alone``: there was reason to, as the program saw no other, or was told by no launcher that there are other ranks.
    """

    index: Index
    maybe: bool
    where: Chain
    alone: bool = False


class Current(Frozen):
    """A thread in which a context of a framework is current; of those that other threads have, it can use none."""

    framework: str
    thread: str
    where: Chain

    @property
    def place(self) -> tuple[str, str]:
        """Its framework and thread, of which there is one."""
        return self.framework, self.thread


class Method(Frozen):
    """A default start method: its alternatives, None while the platform's default stands."""

    names: tuple[str, ...] | None = None
    fixed: Chain | None = None
    where: Chain | None = None
    late: Chain | None = None


class Loan(Frozen):
    """GPU memory that was sent to another process at ``anchor``.

    It is no longer needed there when this process has waited for what was made at one of the places ``waits_for``.
    """

    anchor: Site
    waits_for: frozenset[Site]


class Pending(Frozen):
    """Memory that this process put on a channel, made at ``channel``, since it last waited for another.

    It lies on a GPU; what lies elsewhere is noted for proofs alone.
    """

    site: Site
    where: Chain
    sent_by: str
    channel: Site
    on_gpu: bool = True


class Sent(Frozen):
    """GPU memory that a process sent at ``site``; ``launch`` is how that process was started."""

    launch: Launch
    site: Site
    where: Chain


class Act(Enum):
    """What a process does that others see, by whether the order matters in which several do so."""

    SETS = "it shows something, or sets what others see"
    ADDS = "it adds to a number that others see"
    READS = "it reads what others set"
    FILLS = "it puts something where others take it"
    TAKES = "it takes something that others would take otherwise"


class Public(Frozen):
    """What a process does that others see, and where; ``by_one``: only one of several like it does so."""

    act: Act
    where: Hashable
    by_one: bool


class Setting(Frozen):
    """What a task has set in its process, for proofs; ``felt_by`` are the only functions that find it, if that is said.

    ``adds``: each task that does so changes what it finds there, by adding to it; ``is_variable``: it has that name.
    ``aspect``: what is set of the objects, or variables, that are known by ``of``.
    """

    name: str
    felt_by: tuple[str, ...]
    is_folder: bool
    adds: bool
    is_variable: bool
    site: Site
    aspect: str = ""
    of: frozenset[Hashable] = frozenset()


class Anew(Frozen):
    """What a process has set by a name, or of some things, for proofs.

    ``begun``: how many workers had begun by then.
    """

    name: str
    of: frozenset[Hashable]
    begun: int


class Beside(Frozen):
    """Workers that go on beside the process that started them, for proofs: what they do that others see.

    ``keys`` are the objects by which they are waited for, ``made`` the call that made their launcher. ``later`` is what
    they do after they have sent something; ``heard``: their parent has received that.
    """

    keys: frozenset[Hashable]
    made: Site
    public: tuple[tuple[Public, Site], ...]
    later: tuple[tuple[Public, Site], ...]
    heard: bool = False


class Handed(Partly):
    """An object, or an array, that a thread of its process reads later, as it was when it was handed over.

    ``address`` is the array itself, which no heap holds. ``until`` are the addresses of what tells that it was taken.
    ``is_set``: such a thread does not read it but changes it.
    """

    address: Hashable
    site: Site
    until: frozenset[Hashable]
    thing: Object | None
    is_set: bool = False

    def compared(self) -> Hashable:
        """What was handed over, and not as which object."""
        return self.address, self.site, self.until, self.is_set


class Process(Frozen):
    """What the machine knows of one process.

    ``driver`` is the witness of the first query or initialisation in this process: it poisons forks and
    freezes the visible devices. ``poison`` is the parent's witness in a child that forked after it.
    ``dead``: it failed, and that was reported; what it would do afterwards is not judged. ``answering``: what it does
    is one of many requests, of which several come at once.
    """

    identity: tuple[str, ...] = ("main",)
    label: str = "main process"
    is_main: bool = True
    unseen: bool = False
    forked_unseen: bool = False
    launch: Launch | None = None
    # Where it was started as a program of its own, by another one.
    program: Chain | None = None
    forked: bool = False
    daemon: bool = False
    driver: Chain | None = None
    poison: Chain | None = None
    poisoned_by: frozenset[str] = frozenset()
    asked_by: frozenset[str] = frozenset()
    initialised: tuple[tuple[str, Chain], ...] = ()
    # The frameworks that were told to use the GPU once they have something to do.
    told: frozenset[str] = frozenset()
    environment: tuple[tuple[str, Value], ...] = ()
    # The variables that the program took out of it.
    removed: frozenset[str] = frozenset()
    default_device: Dev | None = None
    default_where: Chain | None = None
    # What was the default around each block that has one of its own.
    outer_defaults: tuple[tuple[Dev | None, Chain | None], ...] = ()
    methods: tuple[tuple[str, Method], ...] = ()
    thread: str = "main"
    selected: tuple[tuple[str, Selected], ...] = ()
    # Of frameworks that leave it to the program in which threads its context is current.
    current: tuple[Current, ...] = ()
    group: Group | None = None
    contexts: frozenset[Context] = frozenset()
    gpu_sharers: tuple[tuple[Hashable, int], ...] = ()
    growth: Chain | None = None
    # Whether the program asked for it by a call, as the environment may instead.
    growth_asked: bool = False
    dead: bool = False
    misread: bool = False
    in_thread: bool = False
    # What follows happens when another thread lets this one go on.
    held_up: bool = False
    rank: str | None = None
    allocated: Chain | None = None
    # Whether the program knows its local rank, or reckons with several machines.
    local_rank_at_hand: bool = False
    # Slurm numbers it: whoever wrote the job may have each task see another GPU.
    of_slurm: bool = False
    thread_start: tuple[Site, Chain] | None = None
    joblib_backend: Value = ()
    pending: tuple[Pending, ...] = ()
    loans: frozenset[Loan] = frozenset()
    hidden: frozenset[str] = frozenset()
    # The frameworks that compute on the CPU where nothing names a device.
    on_cpu: frozenset[str] = frozenset()
    visible_choice: Value = ()
    late_visible: tuple[Site, ...] = ()
    # Where CUDA_VISIBLE_DEVICES was set last, and what the driver found there when it looked.
    narrowed: Chain | None = None
    seen: Value = ()
    # Where it hides all GPUs from a driver that knows them already: that fails to hide them once it uses one.
    hidden_late: Site | None = None
    # The variables that were set after the library was imported that reads them only then.
    unread: frozenset[str] = frozenset()
    # Whether it was reported that GPUs are named here by what the variable calls them.
    misnumbered: bool = False
    # Where a scheduler started it without a GPU, and which releases of that hide them all from it; none once it asked.
    withheld: tuple[Chain, str] | None = None
    joblib_jobs: Value = ()
    siblings: int | None = 1
    answering: bool = False
    # The libraries whose random numbers it began anew by itself, and what it filled with those of others: for proofs.
    seeded: frozenset[str] = frozenset()
    unseeded: frozenset[str] = frozenset()
    # The workers that go on beside it, and whether it has sent something to another process: for proofs, too.
    beside: frozenset[Beside] = frozenset()
    has_sent: bool = False
    # What it has handed over and its own threads have yet to read: for proofs, too.
    handed: frozenset[Handed] = frozenset()
    # Whether torch was told here to share memory by names of files: for proofs, too.
    shares_by_name: bool = False
    # What earlier tasks of this worker have set in it, and this one: for proofs, too.
    left: frozenset[Setting] = frozenset()
    set_now: frozenset[Setting] = frozenset()
    # What was set in it since workers left something of the kind: for proofs, too.
    anew: frozenset[Anew] = frozenset()

    def environ(self, name: str) -> Value | None:
        """The value of an environment variable that the program set or that a launcher sets."""
        for key, value in self.environment:
            if key == name:
                return value
        return None

    def with_environ(self, name: str, value: Value | None) -> Process:
        """The same process with a variable set or removed."""
        kept = tuple((k, v) for k, v in self.environment if k != name)
        if value is None:
            return replace(self, environment=kept, removed=self.removed | {name})
        environment = tuple(sorted((*kept, (name, value)), key=lambda kv: kv[0]))
        return replace(self, environment=environment, removed=self.removed - {name})

    def without_word_of(self, name: str) -> Process:
        """The same process, of which nothing is known of a variable: whoever starts it may have set it or not."""
        return replace(self, environment=tuple((k, v) for k, v in self.environment if k != name))

    def method(self, library: str) -> Method:
        """The default start method of a library."""
        for key, value in self.methods:
            if key == library:
                return value
        return Method()

    def with_method(self, library: str, method: Method) -> Process:
        """The same process with another default start method."""
        kept = tuple((k, v) for k, v in self.methods if k != library)
        return replace(self, methods=tuple(sorted((*kept, (library, method)), key=lambda kv: kv[0])))

    def device(self) -> Selected | None:
        """What the current thread selected."""
        for key, value in self.selected:
            if key == self.thread:
                return value
        return None

    def with_device(self, selected: Selected | None) -> Process:
        """The same process with another device selected by the current thread."""
        kept = tuple((k, v) for k, v in self.selected if k != self.thread)
        if selected is None:
            return replace(self, selected=kept)
        return replace(self, selected=tuple(sorted((*kept, (self.thread, selected)), key=lambda kv: kv[0])))

    def is_initialised(self, framework: str) -> bool:
        """Whether this process initialised the framework's CUDA."""
        return any(name == framework for name, _ in self.initialised)


class Lineage(Unique):
    """All of a process that has done nothing but import, and what it imported, one after another.

    ``names`` tell the ways apart that an import may take; ``facts`` are what they assumed.
    """

    names: tuple[str, ...]
    process: Process
    facts: tuple[tuple[Hashable, bool], ...]
    placed: dict[Hashable, Tensor]
    objects: dict[Hashable, Object]
    counts: dict[Hashable, int]


class Layer(Unique):
    """What a path changed between two freezes of its heap, and what was frozen before.

    ``lineage`` is given where everything up to here comes of imports.
    """

    before: Layer | None
    objects: dict[Hashable, Object]
    counts: dict[Hashable, int]
    depth: int
    lineage: Lineage | None = None


class FrozenHeap(Unique):
    """The frozen part of a path's heap when a call began."""

    objects: dict[Hashable, Object]
    counts: dict[Hashable, int]
    layer: Layer | None


class Journal(MutableUnique):
    """What the paths of a running call allocated and wrote since it began, for the collection at its end.

    ``fresh`` are the addresses of new objects, ``written`` those of changed ones; ``floors`` are the counts of sites
    before the call. Paths that split share it: what one of them did counts for all, which keeps too much at most.
    """

    outer: Journal | None = None
    frozen: FrozenHeap | None = None
    fresh: set[Hashable] = field(default_factory=set)
    written: set[Hashable] = field(default_factory=set)
    floors: dict[Hashable, int] = field(default_factory=dict)

    def lies_in(self, other: Journal) -> bool:
        """Whether the call is another one, or was made in it."""
        current: Journal | None = self
        while current is not None and current is not other:
            current = current.outer
        return current is other

    def absorb(self, other: Journal) -> None:
        """Take over what a call noted that was made in this one and has no end of its own."""
        if other is self:
            return
        self.fresh |= other.fresh
        self.written |= other.written
        for site, count in other.floors.items():
            self.floors.setdefault(site, count)


class State(Mutable):
    """One path: a process, a heap, what was assumed to get here, and the calls that led here.

    ``heap`` holds the path's own objects, ``frozen`` those that lay on it when it was last frozen; these never
    change and are shared by the paths that split afterwards. ``layer`` remembers what they were frozen from: two
    paths differ in nothing that stands below the last layer they share, so that copying, comparing and joining
    paths costs what they differ in.
    """

    process: Process
    heap: dict[Hashable, Object]
    frozen: dict[Hashable, Object] = field(default_factory=dict)
    frozen_counts: dict[Hashable, int] = field(default_factory=dict)
    layer: Layer | None = None
    facts: tuple[tuple[Hashable, bool], ...] = ()
    placed: dict[Hashable, Tensor] = field(default_factory=dict)
    counts: dict[Hashable, int] = field(default_factory=dict)
    stack: Chain | None = None
    second_round: bool = False
    caught: bool = False
    owned: set[Hashable] = field(default_factory=set)
    distinguishing_address: Hashable = None
    journal: Journal = field(default_factory=Journal)
    # The addresses that questions of its facts name, by the id of each question, which lies beside them and so keeps
    # it; all paths of a run share it.
    named: dict[int, tuple[Hashable, frozenset[Hashable]]] = field(default_factory=dict)
    # The questions by whose answers it was last kept apart from other paths.
    telling: tuple[Hashable, ...] = ()

    def clone(self) -> State:
        """An independent copy; shared scopes are copied when they are next written."""
        self.freeze(LARGE_SPLIT)
        self.owned = set()
        return State(
            self.process,
            dict(self.heap),
            self.frozen,
            self.frozen_counts,
            self.layer,
            self.facts,
            dict(self.placed),
            dict(self.counts),
            self.stack,
            self.second_round,
            self.caught,
            distinguishing_address=self.distinguishing_address,
            journal=self.journal,
            named=self.named,
            telling=self.telling,
        )

    def become(self, other: State) -> None:
        """Take over another path of the same process, where only one goes on."""
        if other is self:
            return
        self.process = other.process
        self.heap, self.frozen, self.frozen_counts = other.heap, other.frozen, other.frozen_counts
        self.layer = other.layer
        self.facts, self.placed, self.counts = other.facts, other.placed, other.counts
        self.telling = other.telling
        self.journal = other.journal
        self.owned = set()

    def get(self, ref: Ref) -> Object | None:
        """The object a reference leads to."""
        return self.at(ref.address)

    def at(self, address: Hashable) -> Object | None:
        """The object at an address."""
        found = self.heap.get(address)
        return self.frozen.get(address) if found is None else found

    def objects_at(self) -> dict[Hashable, Object]:
        """Whatever lies on the heap of this path, by its address."""
        return {**self.frozen, **self.heap}

    def objects(self) -> Iterable[Object]:
        """Whatever lies on the heap of this path."""
        return self.objects_at().values()

    def freeze(self, most: int = LARGE_LAYER) -> None:
        """Make the path's own objects, if there are more than this, part of what all paths that split from it share."""
        if len(self.heap) <= most:
            return
        self.layer = Layer(self.layer, self.heap, self.counts, 1 if self.layer is None else self.layer.depth + 1)
        self.frozen = self.objects_at()
        self.frozen_counts = {**self.frozen_counts, **self.counts}
        self.heap = {}
        self.counts = {}
        self.owned = set()

    def since(self, layer: Layer | None) -> tuple[dict[Hashable, Object], dict[Hashable, int]]:
        """The objects and counts that changed after a layer of this path."""
        if self.layer is layer:
            return self.heap, self.counts
        later: list[Layer] = []
        current = self.layer
        while current is not None and current is not layer:
            later.append(current)
            current = current.before
        objects: dict[Hashable, Object] = {}
        counts: dict[Hashable, int] = {}
        for found in reversed(later):
            objects.update(found.objects)
            counts.update(found.counts)
        objects.update(self.heap)
        counts.update(self.counts)
        return objects, counts

    def store(self, ref: Ref, value: Object) -> None:
        """Change the object at a reference."""
        self.heap[ref.address] = value
        self.journal.written.add(ref.address)

    def drop(self, addresses: Collection[Hashable], frozen: FrozenHeap | None) -> None:
        """Let go of objects that nothing refers to and that were made after this much was ``frozen``.

        Few of them that were frozen since are blotted out where they lie, so that no path differs in them; where they
        are many, what is left of the layers is the path's own again.
        """
        gone = [address for address in addresses if address in self.frozen]
        if frozen is not None and self.layer is not frozen.layer and len(gone) > LARGE_SPLIT:
            objects, counts = self.since(frozen.layer)
            self.heap, self.counts = dict(objects), dict(counts)
            self.frozen, self.frozen_counts, self.layer = frozen.objects, frozen.counts, frozen.layer
            self.owned = set()
        for address in addresses:
            self.heap.pop(address, None)
        self.heap.update({address: BLOT for address in gone if address in self.frozen})

    def new(self, site: Hashable, value: Object) -> Ref:
        """A fresh address for an object allocated at a site; after very many, the last is used again."""
        known = self.counts.get(site, self.frozen_counts.get(site, 0))
        count = min(known, MOST_AT_A_SITE - 1)
        self.counts[site] = count + 1
        ref = Ref((site, count, self.process.identity))
        self.heap[ref.address] = value
        self.owned.discard(ref.address)
        if known > count:
            self.journal.written.add(ref.address)
        else:
            self.journal.fresh.add(ref.address)
            self.journal.floors.setdefault(site, count)
        return ref

    def next_address(self, site: Hashable) -> Hashable:
        """Where the next object lies that is made at a site."""
        count = min(self.counts.get(site, self.frozen_counts.get(site, 0)), MOST_AT_A_SITE - 1)
        return site, count, self.process.identity

    def fact(self, sym: Hashable) -> bool | None:
        """What this path assumed of an unknown."""
        return questions.answered(self.facts, sym)

    def assume(self, sym: Hashable, value: bool) -> None:
        """Add an assumption, where nothing is known that says more."""
        if self.fact(sym) is None:
            self.learn(sym, value)

    def tells(self, asked: Iterable[Hashable]) -> None:
        """Take down that the answers to these questions keep this path apart from others."""
        self.telling = (*self.telling, *(sym for sym in asked if sym not in self.telling))

    def learn(self, sym: Hashable, value: bool) -> None:
        """Add what this path was asked and had no answer to."""
        self.facts = questions.remembered(questions.learned(self.facts, sym, value), MOST_ASSUMED, self.telling)

    def split(self, sym: Hashable, here: bool = True) -> State:
        """Go on with one answer to what was asked and is not known; the result is the path with the other answer."""
        other = self.clone()
        self.learn(sym, here)
        other.learn(sym, not here)
        return other

    def set_variable(self, scope: Ref, name: str, value: Value) -> None:
        """Bind a name in a scope."""
        found = self.get(scope)
        if not isinstance(found, Scope):
            return
        if scope.address not in self.owned:
            found = Scope(dict(found.variables), found.parent, found.module, found.kind, found.outside)
            self.heap[scope.address] = found
            self.owned.add(scope.address)
        self.journal.written.add(scope.address)
        found.variables[name] = value


class Running(Unique):
    """A thread that runs: how all was before it, what it does, and how all is while it waits, or does not end."""

    before: State
    work: Task
    left: list[State] = field(default_factory=list)

    def leave(self, state: State) -> None:
        """Others go on beside the thread, which is here and does not return; where it waits, they did so before."""
        one, other = state.process, self.before.process
        if not one.held_up and (one.identity, one.thread) == (other.identity, other.thread):
            beside = state.clone()
            beside.stack, beside.second_round = self.before.stack, self.before.second_round
            self.left.append(beside)
