"""The state of one process on one path, and how states fork, compare and join."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from cudalint.machine.heap import Class, Closure, Instance, Mapping_, Object, Scope, Sequence, Thing
from cudalint.machine.trace import Chain, Site, shorter
from cudalint.machine.values import (
    Bound,
    Const,
    Dev,
    Index,
    Lib,
    Partial,
    Rank,
    Ref,
    Task,
    Tensor,
    Unknown,
    Value,
    union,
)

MOST_STATES = 8
MOST_FACTS = 3
LARGE_LAYER = 150
LARGE_SPLIT = 40


@dataclass(frozen=True, slots=True)
class Launch:
    """How a process was started: what its outcomes need to know.

    ``family`` is ``pool``, ``executor``, ``process``, ``loader`` ... as the models name it; ``stage`` says
    what runs: unpickle, initializer or body.
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


@dataclass(frozen=True, slots=True)
class Group:
    """The process group of a process; ``rank`` is the number it joined with, where the code shows it."""

    backend: str
    device_id: Dev | None
    made: Chain
    alone: bool = False
    rank: Rank | Const | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """A CUDA context of a process: the devices visible when it was opened, and which of them it is on."""

    visible: Value
    index: Index
    where: Chain


@dataclass(frozen=True, slots=True)
class Selected:
    """The device that a thread chose; ``maybe`` where only some paths chose it."""

    index: Index
    maybe: bool
    where: Chain


@dataclass(frozen=True, slots=True)
class Method:
    """A default start method: its alternatives, None while the platform's default stands."""

    names: tuple[str, ...] | None = None
    fixed: Chain | None = None
    where: Chain | None = None
    late: Chain | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """What the machine knows of one process.

    ``driver`` is the witness of the first query or initialisation in this process: it poisons forks and
    freezes the visible devices. ``poison`` is the parent's witness in a child that forked after it.
    """

    identity: tuple[str, ...] = ("main",)
    label: str = "main process"
    is_main: bool = True
    unseen: bool = False
    forked_unseen: bool = False
    launch: Launch | None = None
    forked: bool = False
    daemon: bool = False
    driver: Chain | None = None
    poison: Chain | None = None
    poisoned_by: frozenset[str] = frozenset()
    initialised: tuple[tuple[str, Chain], ...] = ()
    environment: tuple[tuple[str, Value], ...] = ()
    default_device: Dev | None = None
    default_where: Chain | None = None
    methods: tuple[tuple[str, Method], ...] = ()
    thread: str = "main"
    selected: tuple[tuple[str, Selected], ...] = ()
    group: Group | None = None
    contexts: frozenset[Context] = frozenset()
    crowd: tuple[tuple[Hashable, int], ...] = ()
    growth: Chain | None = None
    doomed: bool = False
    misread: bool = False
    in_thread: bool = False
    rank: str | None = None
    allocated: Chain | None = None
    local_rank_at_hand: bool = False
    thread_start: tuple[Site, Chain] | None = None
    joblib_backend: Value = ()
    pending: tuple[tuple[Site, Chain, str], ...] = ()
    hidden: frozenset[str] = frozenset()
    visible_choice: Value = ()
    late_visible: tuple[Site, ...] = ()
    joblib_jobs: Value = ()
    siblings: int | None = 1

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
            return replace(self, environment=kept)
        return replace(self, environment=tuple(sorted((*kept, (name, value)), key=lambda kv: kv[0])))

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


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """What a path changed between two settlings, and what it had settled before."""

    before: Layer | None
    objects: dict[Hashable, Object]
    counts: dict[Hashable, int]
    depth: int


@dataclass(slots=True)
class State:
    """One path: a process, a heap, what was assumed to get here, and the calls that led here.

    ``heap`` holds the path's own objects, ``base`` all that lay on it when it last settled; ``base`` never
    changes and is shared by the paths that split afterwards. ``layer`` remembers what ``base`` was made of: two
    paths differ in nothing that stands below the last layer they share, so that copying, comparing and joining
    paths costs what they differ in.
    """

    process: Process
    heap: dict[Hashable, Object]
    base: dict[Hashable, Object] = field(default_factory=dict)
    base_counts: dict[Hashable, int] = field(default_factory=dict)
    layer: Layer | None = None
    facts: tuple[tuple[Hashable, bool], ...] = ()
    placed: dict[Hashable, Tensor] = field(default_factory=dict)
    counts: dict[Hashable, int] = field(default_factory=dict)
    stack: Chain | None = None
    second_round: bool = False
    caught: bool = False
    owned: set[Hashable] = field(default_factory=set)
    apart: Hashable = None

    def clone(self) -> State:
        """An independent copy; shared scopes are copied when they are next written."""
        self.settle(LARGE_SPLIT)
        self.owned = set()
        return State(
            self.process,
            dict(self.heap),
            self.base,
            self.base_counts,
            self.layer,
            self.facts,
            dict(self.placed),
            dict(self.counts),
            self.stack,
            self.second_round,
            self.caught,
            apart=self.apart,
        )

    def become(self, other: State) -> None:
        """Take over another path of the same process, where only one goes on."""
        if other is self:
            return
        self.process = other.process
        self.heap, self.base, self.base_counts = other.heap, other.base, other.base_counts
        self.layer = other.layer
        self.facts, self.placed, self.counts = other.facts, other.placed, other.counts
        self.owned = set()

    def get(self, ref: Ref) -> Object | None:
        """The object a reference leads to."""
        return self.at(ref.address)

    def at(self, address: Hashable) -> Object | None:
        """The object at an address."""
        found = self.heap.get(address)
        return self.base.get(address) if found is None else found

    def settle(self, most: int = LARGE_LAYER) -> None:
        """Make what is on the heap now, if it is more than this, part of what all paths to come share."""
        if len(self.heap) <= most:
            return
        self.layer = Layer(self.layer, self.heap, self.counts, 1 if self.layer is None else self.layer.depth + 1)
        self.base = {**self.base, **self.heap}
        self.base_counts = {**self.base_counts, **self.counts}
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

    def put(self, ref: Ref, value: Object) -> None:
        """Change the object at a reference."""
        self.heap[ref.address] = value

    def new(self, site: Hashable, value: Object) -> Ref:
        """A fresh address for an object allocated at a site; after eight, the last is used again."""
        count = min(self.counts.get(site, self.base_counts.get(site, 0)), 7)
        self.counts[site] = count + 1
        ref = Ref((site, count, self.process.identity))
        self.heap[ref.address] = value
        self.owned.discard(ref.address)
        return ref

    def fact(self, sym: Hashable) -> bool | None:
        """What this path assumed of an unknown."""
        for key, value in self.facts:
            if key == sym:
                return value
        return None

    def assume(self, sym: Hashable, value: bool) -> None:
        """Add an assumption."""
        if self.fact(sym) is None:
            self.facts = (*self.facts, (sym, value))

    def set_variable(self, scope: Ref, name: str, value: Value) -> None:
        """Bind a name in a scope."""
        found = self.get(scope)
        if not isinstance(found, Scope):
            return
        if scope.address not in self.owned:
            found = replace(found, variables=dict(found.variables))
            self.heap[scope.address] = found
            self.owned.add(scope.address)
        found.variables[name] = value


def join_process(a: Process, b: Process) -> Process:
    """Guilt of either; protection in doubt unless both have it."""
    if a == b:
        return a
    methods = dict(a.methods)
    for name in {n for n, _ in a.methods} | {n for n, _ in b.methods}:
        methods[name] = _join_method(a.method(name), b.method(name))
    selected: dict[str, Selected] = {}
    for process, other in ((a, b), (b, a)):
        theirs = dict(other.selected)
        for thread, value in process.selected:
            same = theirs.get(thread)
            doubtful = same is None or same.index != value.index
            selected.setdefault(thread, replace(value, maybe=value.maybe or doubtful))
    environment: dict[str, Value] = {}
    for name in {n for n, _ in a.environment} | {n for n, _ in b.environment}:
        left, right = a.environ(name), b.environ(name)
        missing: Value = (Unknown(("environment", name)),)
        environment[name] = union([missing if left is None else left, missing if right is None else right])
    initialised = dict(b.initialised) | dict(a.initialised)
    return replace(
        a,
        driver=shorter(a.driver, b.driver),
        poison=shorter(a.poison, b.poison),
        poisoned_by=a.poisoned_by | b.poisoned_by,
        initialised=tuple(sorted(initialised.items(), key=lambda kv: kv[0])),
        environment=tuple(sorted(environment.items())),
        methods=tuple(sorted(methods.items(), key=lambda kv: kv[0])),
        selected=tuple(sorted(selected.items(), key=lambda kv: kv[0])),
        default_device=a.default_device or b.default_device,
        default_where=a.default_where or b.default_where,
        contexts=a.contexts | b.contexts,
        crowd=max(a.crowd, b.crowd, key=len),
        growth=a.growth if b.growth is not None else None,
        group=a.group or b.group,
        allocated=shorter(a.allocated, b.allocated),
        doomed=a.doomed and b.doomed,
        misread=a.misread and b.misread,
        unseen=a.unseen or b.unseen,
    )


def _join_method(a: Method, b: Method) -> Method:
    if a == b:
        return a
    names: tuple[str, ...] | None = None
    if a.names is not None or b.names is not None:
        names = tuple(dict.fromkeys([*(a.names or ("default",)), *(b.names or ("default",))]))
    fixed = a.fixed if b.fixed is not None else None
    return Method(names, fixed, a.where or b.where, a.late or b.late)


def _join_objects(a: Object, b: Object) -> Object:
    if a is b or a == b:
        return a
    match a, b:
        case Scope(), Scope():
            return replace(a, variables=_join_names(a.variables, b.variables))
        case Instance(), Instance():
            return replace(a, attributes=_join_names(a.attributes, b.attributes))
        case Thing(), Thing() if a.type == b.type:
            return replace(a, fields=_join_names(a.fields, b.fields))
        case Sequence(), Sequence():
            return _join_sequences(a, b)
        case Mapping_(), Mapping_():
            items = {k: union([v for v in (a.items.get(k), b.items.get(k)) if v]) for k in {**a.items, **b.items}}
            return Mapping_(items, union([a.element, b.element]), a.exact and b.exact)
    return a


def _join_sequences(a: Sequence, b: Sequence) -> Sequence:
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        pairs = zip(a.items, b.items, strict=True)
        return Sequence(a.kind, tuple(union(pair) for pair in pairs))
    return Sequence(a.kind, None, union([*(a.items or ()), a.element, *(b.items or ()), b.element]))


def _join_names(a: dict[str, Value], b: dict[str, Value]) -> dict[str, Value]:
    result = dict(a)
    for name, value in b.items():
        mine = result.get(name)
        if mine is None:
            result[name] = value
        elif mine is not value and mine != value:
            result[name] = union([mine, value])
    return result


def join(a: State, b: State) -> State:
    """One state that stands for both."""
    shared = _shared_layer(a, b)
    mine_all, _ = a.since(shared)
    theirs_all, their_counts = b.since(shared)
    heap = dict(a.heap)
    for address, theirs in theirs_all.items():
        mine = a.at(address)
        if mine is None:
            heap[address] = theirs
        elif mine is not theirs:
            heap[address] = _join_objects(mine, theirs)
    for address, mine in mine_all.items():
        if address not in theirs_all and (before := b.base.get(address)) is not None and before is not mine:
            heap[address] = _join_objects(mine, before)
    counts = dict(a.counts)
    for site, count in their_counts.items():
        if count > counts.get(site, a.base_counts.get(site, 0)):
            counts[site] = count
    facts = tuple(f for f in a.facts if f in b.facts)
    stack = a.stack if a.stack is not None else b.stack
    placed = {**b.placed, **a.placed}
    return State(
        join_process(a.process, b.process),
        heap,
        a.base,
        a.base_counts,
        a.layer,
        facts,
        placed,
        counts,
        stack,
        a.second_round,
        a.caught and b.caught,
    )


def _shared_layer(a: State, b: State) -> Layer | None:
    """The last layer of both paths."""
    mine, theirs = a.layer, b.layer
    while mine is not theirs:
        if theirs is None or (mine is not None and mine.depth >= theirs.depth):
            assert mine is not None
            mine = mine.before
        else:
            theirs = theirs.before
    return mine


def alike(a: State, b: State) -> bool:
    """Whether two paths differ in nothing that a rule could look at.

    Paths that differed in an object mostly go on to differ in it, so that one is looked at first.
    """
    if (a.process is not b.process and a.process != b.process) or a.placed.keys() != b.placed.keys():
        return False
    if _differ(a.apart, a, b) or (b.apart is not a.apart and _differ(b.apart, a, b)):
        return False
    shared = _shared_layer(a, b)
    mine_all, _ = a.since(shared)
    theirs_all, _ = b.since(shared)
    for address in (*mine_all, *(k for k in theirs_all if k not in mine_all)):
        if _differ(address, a, b):
            a.apart = b.apart = address
            return False
    return True


def _differ(address: Hashable, a: State, b: State) -> bool:
    """Whether an object tells two paths apart; one that only one path has does not."""
    if address is None:
        return False
    mine, theirs = a.at(address), b.at(address)
    if mine is theirs or mine is None or theirs is None:
        return False
    return mine != theirs and _tell_apart(mine, theirs)


def _tell_apart(a: Object, b: Object) -> bool:
    match a, b:
        case Scope(), Scope():
            return _names_tell_apart(a.variables, b.variables)
        case Instance(), Instance():
            return _names_tell_apart(a.attributes, b.attributes)
        case (Closure(), Closure()) | (Class(), Class()):
            return False
    return True


def _names_tell_apart(a: dict[str, Value], b: dict[str, Value]) -> bool:
    for name in a.keys() | b.keys():
        mine, theirs = a.get(name), b.get(name)
        if mine is theirs or mine == theirs:
            continue
        if mine is None or theirs is None:
            # A name that only one path binds is read only where that path is taken again.
            if any(_matters(atom) for atom in (mine or theirs or ())):
                return True
            continue
        if any(_matters(atom) for atom in (*mine, *theirs)):
            return True
    return False


def _matters(atom: object) -> bool:
    match atom:
        case Dev() | Tensor() | Lib() | Bound() | Partial() | Ref() | Task() | Rank():
            return True
        case Const(value=value):
            return isinstance(value, bool | int) or value is None or (isinstance(value, str) and value in _TELLING)
    return False


_TELLING = frozenset({"cuda", "gpu", "cpu", "fork", "spawn", "forkserver", "loky", "threading", "multiprocessing", ""})


def merge(states: Iterable[State]) -> list[State]:
    """Join what need not stay apart: at most eight states of a process, each with at most three assumptions.

    Parent and child of a fork run the same code: they are never joined.
    """
    result: list[State] = []
    for state in states:
        _merge_into(result, state)
    while len(result) > MOST_STATES or any(len(s.facts) > MOST_FACTS for s in result):
        longest = max(len(s.facts) for s in result)
        if longest == 0:
            break
        for state in result:
            if len(state.facts) == longest:
                state.facts = state.facts[1:]
        again: list[State] = []
        for state in result:
            _merge_into(again, state)
        result = again
    return result


def _same_facts(a: tuple[tuple[Hashable, bool], ...], b: tuple[tuple[Hashable, bool], ...]) -> bool:
    """Whether two paths assume the same, in any order; comparing is cheaper than hashing what nests deep."""
    return a == b or (len(a) == len(b) and all(fact in b for fact in a))


def _merge_into(result: list[State], state: State) -> None:
    for i, other in enumerate(result):
        if other.process.identity != state.process.identity:
            continue
        if _same_facts(other.facts, state.facts) or alike(other, state):
            result[i] = join(other, state)
            return
    result.append(state)
