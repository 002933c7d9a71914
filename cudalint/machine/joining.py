"""Paths that differ in nothing a rule could look at are joined into one."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import zip_longest
from operator import attrgetter
from typing import TypeAlias, TypeVar

from cudalint.machine import unknowns
from cudalint.machine.heap import (
    OF_UNKNOWN,
    Cache,
    Class,
    Closure,
    Dict,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.questions import Fact, alike, both, is_assumed, makes_uncertain, one_of, read, remembered, settled
from cudalint.machine.state import BLOT, Current, Layer, Method, Process, Selected, State
from cudalint.machine.trace import shorter
from cudalint.machine.values import (
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Member,
    Partial,
    Rank,
    Ref,
    Snapshot,
    Task,
    Tensor,
    Unknown,
    Value,
    holds_deferred,
    only,
    union,
)
from cudalint.structs import replace

MOST_STATES = 8
# Assumptions by which paths stay apart, and those that a path remembers in all.
MOST_FACTS = 3
MOST_REMEMBERED = 16
# Longer texts are messages and names of files.
LONGEST_WORD = 15
# How deep containers in containers are looked into.
MOST_NESTING = 2
# Variables of the environment whose values decide what a GPU library does, and those that only have to be there.
_TELLING_VARIABLE = re.compile("CUDA|NVIDIA|GPU|HIP|ROCR|JAX|XLA|TF_(?!CPP_|ENABLE_ONEDNN_)|PYTORCH_NVML|JOBLIB|LOKY")
_NEEDED_VARIABLE = re.compile("MASTER_|SLURM|.*RANK|.*WORLD_SIZE")
_OF_ENVIRONMENT = ("environment", "removed")
_BESIDE_ENVIRONMENT = attrgetter(*(name for name in Process.__struct_fields__ if name not in _OF_ENVIRONMENT))
# Values that are on a device, name one or are numbers of one.
_ON_DEVICES = frozenset({Dev, Tensor, Task, Rank})
# Any other key of a dict.
_ANY = object()
_Name = TypeVar("_Name", bound=Hashable)
TELLING = frozenset(
    {
        "cuda", "gpu", "cpu", "nccl", "gloo", "fork", "spawn", "forkserver", "loky", "threading", "multiprocessing", "",
        "CUDAExecutionProvider", "TensorrtExecutionProvider", "CPUExecutionProvider",
    }
)  # fmt: skip


def join_process(a: Process, b: Process) -> Process:
    """What harms counts if either has it; what protects is in doubt unless both have it."""
    # Mostly it is one process, which is told sooner than that all its parts are alike.
    if a is b or a == b:
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
            alone = value.alone and (same is None or same.alone)
            selected.setdefault(thread, replace(value, maybe=value.maybe or doubtful, alone=alone))
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
        asked_by=a.asked_by | b.asked_by,
        initialised=tuple(sorted(initialised.items(), key=lambda kv: kv[0])),
        environment=tuple(sorted(environment.items())),
        removed=a.removed & b.removed,
        methods=tuple(sorted(methods.items(), key=lambda kv: kv[0])),
        selected=tuple(sorted(selected.items(), key=lambda kv: kv[0])),
        default_device=a.default_device or b.default_device,
        default_where=a.default_where or b.default_where,
        outer_defaults=a.outer_defaults or b.outer_defaults,
        on_cpu=a.on_cpu | b.on_cpu,
        contexts=a.contexts | b.contexts,
        current=_join_current(a, b),
        loans=a.loans | b.loans,
        gpu_sharers=max(a.gpu_sharers, b.gpu_sharers, key=len),
        growth=a.growth if b.growth is not None else None,
        growth_asked=a.growth_asked or b.growth_asked,
        group=a.group or b.group,
        allocated=shorter(a.allocated, b.allocated),
        dead=a.dead and b.dead,
        misread=a.misread and b.misread,
        narrowed=shorter(a.narrowed, b.narrowed),
        seen=a.seen if a.seen == b.seen else (),
        unseen=a.unseen or b.unseen,
        hidden_late=a.hidden_late or b.hidden_late,
        unread=a.unread | b.unread,
        seeded=a.seeded & b.seeded,
        unseeded=a.unseeded | b.unseeded,
    )


def _join_current(a: Process, b: Process) -> tuple[Current, ...]:
    if a.current == b.current:
        return a.current
    return tuple(sorted({c.place: c for c in (*b.current, *a.current)}.values(), key=attrgetter("place")))


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
        case LibraryObject(), LibraryObject() if a.type == b.type:
            return replace(a, fields=_join_names(a.fields, b.fields))
        case Sequence(), Sequence():
            return _join_sequences(a, b)
        case Cache(), Cache():
            known = a.results.keys() & b.results.keys()
            return Cache({k: union([a.results[k], b.results[k]]) for k in a.results if k in known})
        case Dict(), Dict():
            items = _join_names(a.items, b.items)
            element, among = union([a.element, b.element]), a.among if a.among == b.among else None
            return replace(a, items=items, element=element, exact=a.exact and b.exact, among=among)
    return a


def _join_sequences(a: Sequence, b: Sequence) -> Sequence:
    """What is at the same place is joined; of a list that may be longer, items beyond are its own."""
    if a.items is not None and b.items is not None and (len(a.items) == len(b.items) or a.open or b.open):
        pairs = zip_longest(a.items, b.items, fillvalue=())
        return Sequence(a.kind, tuple(union(pair) for pair in pairs), (), a.open or b.open)
    return Sequence(a.kind, None, union([*(a.items or ()), a.element, *(b.items or ()), b.element]))


_Objects: TypeAlias = Mapping[Hashable, Object]


def _join_names(a: dict[_Name, Value], b: dict[_Name, Value]) -> dict[_Name, Value]:
    result = dict(a)
    for name, value in b.items():
        mine = result.get(name)
        if mine is None:
            result[name] = value
        elif mine is not value and mine != value:
            result[name] = mine if _are_copies(mine, value) else union([mine, value])
    return result


def join(a: State, b: State) -> State:
    """One state that stands for both."""
    shared = _shared_layer(a.layer, b.layer)
    mine_all, _ = a.since(shared)
    theirs_all, their_counts = b.since(shared)
    heap = dict(a.heap)
    heap.update((at, theirs) for at, theirs in theirs_all.items() if at not in mine_all and at not in a.frozen)
    heap.update((at, _join_objects(mine, theirs)) for at, mine, theirs in _different(a, b, mine_all, theirs_all))
    mine, theirs = a.get(OF_UNKNOWN), b.get(OF_UNKNOWN)
    if mine != theirs:
        heap[OF_UNKNOWN.address] = unknowns.joined(mine, theirs)
    counts = dict(a.counts)
    for site, count in their_counts.items():
        known = counts.get(site)
        if known is None:
            known = a.frozen_counts.get(site, 0)
        if count > known:
            counts[site] = count
    facts = _shared_facts(a.facts, b.facts)
    # Of what is not assumed any more nothing can be forgotten.
    telling = set(map(id, (*a.telling, *b.telling)))
    stack = a.stack if a.stack is not None else b.stack
    placed = {**b.placed, **a.placed}
    return State(
        join_process(a.process, b.process),
        heap,
        a.frozen,
        a.frozen_counts,
        a.layer,
        facts,
        placed,
        counts,
        stack,
        a.second_round,
        a.caught and b.caught,
        journal=a.journal,
        named=a.named,
        telling=tuple([sym for sym, _ in facts if id(sym) in telling]),
    )


def kept_state(value: Value) -> State | None:
    """The state that an object keeps of when it was made, one for all paths that made it; None where it keeps none."""
    kept = [atom.state for atom in value if isinstance(atom, Snapshot) and isinstance(atom.state, State)]
    if not kept:
        return None
    first, *others = (state.clone() for state in kept)
    for other in others:
        first = join(first, other)
    return first


def _shared_facts(mine: tuple[Fact, ...], theirs: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """What both paths assume; where each rests on a guess, also where they are not the same, so does what stands for
    both."""
    if mine == theirs:
        return mine
    shared = alike(mine, theirs)
    facts = (*mine[:shared], *(fact for fact in mine[shared:] if is_assumed(fact, theirs)))
    facts = (*facts, *(fact for fact in theirs[shared:] if fact not in mine and is_assumed(fact, mine)))
    for fact in (*one_of(mine, theirs, shared), *both(mine, theirs, shared)):
        if fact not in facts:
            facts = (*facts, fact)
    if any(map(makes_uncertain, facts)) or not any(map(makes_uncertain, theirs)):
        return facts
    return facts + tuple(fact for fact in mine if makes_uncertain(fact))


def _shared_layer(mine: Layer | None, theirs: Layer | None) -> Layer | None:
    """The last layer that both rest on."""
    while mine is not theirs:
        if theirs is None or (mine is not None and mine.depth >= theirs.depth):
            assert mine is not None
            mine = mine.before
        else:
            theirs = theirs.before
    return mine


def equivalent(a: State, b: State) -> bool:
    """Whether two paths differ in nothing that a rule could look at.

    Paths that differed in an object mostly go on to differ in it, so that one is looked at first.
    """
    if not _equivalent_processes(a.process, b.process) or a.placed.keys() != b.placed.keys():
        return False
    if _differ(a.distinguishing_address, a, b) or (
        b.distinguishing_address is not a.distinguishing_address and _differ(b.distinguishing_address, a, b)
    ):
        return False
    if _only_one_filled_unknowns(a, b):
        return False
    for address, mine, theirs in _different(a, b, *_changes(a, b)):
        if _tell_apart(mine, theirs, a, b):
            a.distinguishing_address = b.distinguishing_address = address
            return False
    return True


def _only_one_filled_unknowns(a: State, b: State) -> bool:
    """Whether one of two paths is the first that put something into a thing that nobody knows, which tells them apart.

    The other reads it as well: there it is what nobody knows.
    """
    mine, theirs = a.get(OF_UNKNOWN), b.get(OF_UNKNOWN)
    if (mine is None) is (theirs is None):
        return False
    return _tell_apart(mine or Dict({}), theirs or Dict({}), a, b)


def _changes(a: State, b: State) -> tuple[_Objects, _Objects]:
    """What each of two paths changed after the layer that they share."""
    shared = _shared_layer(a.layer, b.layer)
    return a.since(shared)[0], b.since(shared)[0]


def _different(
    a: State, b: State, mine_all: _Objects, theirs_all: _Objects
) -> Iterator[tuple[Hashable, Object, Object]]:
    """The objects that both paths have, of these that one of them changed."""
    mine_before, theirs_before = a.frozen, b.frozen
    for address, mine in mine_all.items():
        theirs = theirs_all.get(address)
        if theirs is None:
            theirs = theirs_before.get(address)
        if theirs is not None and theirs is not mine:
            yield address, mine, theirs
    for address, theirs in theirs_all.items():
        if address not in mine_all:
            before = mine_before.get(address)
            if before is not None and before is not theirs:
                yield address, before, theirs


def _equivalent_processes(a: Process, b: Process) -> bool:
    """Whether two processes differ at most in variables of the environment that no rule and no library looks at."""
    if a is b:
        return True
    if _BESIDE_ENVIRONMENT(a) != _BESIDE_ENVIRONMENT(b):
        return False
    if a.environment == b.environment:
        return True
    mine, theirs = dict(a.environment), dict(b.environment)
    return not any(
        _variable_distinguishes(name, mine.get(name), theirs.get(name)) for name in mine.keys() | theirs.keys()
    )


def _variable_distinguishes(name: str, mine: Value | None, theirs: Value | None) -> bool:
    if mine == theirs:
        return False
    if _TELLING_VARIABLE.match(name):
        return True
    if _NEEDED_VARIABLE.match(name):
        return mine is None or theirs is None
    # Of others code of the project may ask, which compares texts.
    return any(_matters(atom, None) for atom in (*(mine or ()), *(theirs or ())))


def _differ(address: Hashable, a: State, b: State) -> bool:
    """Whether an object distinguishes two paths; one that only one path has does not."""
    if address is None:
        return False
    mine, theirs = a.at(address), b.at(address)
    return mine is not None and theirs is not None and _tell_apart(mine, theirs, a, b)


def _tell_apart(mine: Object, theirs: Object, a: State, b: State) -> bool:
    if mine is theirs or mine is BLOT or theirs is BLOT:
        return False
    return mine != theirs and _distinguishes(mine, theirs, a, b)


def _distinguishes(mine: Object, theirs: Object, a: State, b: State) -> bool:
    match mine, theirs:
        case Scope(), Scope():
            # A variable that only one path binds is read only where that path is taken again.
            return _values_distinguish(mine.variables, theirs.variables, a, b)
        case Instance(), Instance():
            return _names_distinguish(mine.attributes, theirs.attributes, a, b)
        case Dict(), Dict():
            return _names_distinguish({**mine.items, _ANY: mine.element}, {**theirs.items, _ANY: theirs.element}, a, b)
        case Sequence(), Sequence():
            return _names_distinguish(_by_place(mine), _by_place(theirs), a, b)
        case (Closure(), Closure()) | (Class(), Class()) | (Cache(), Cache()):
            # What a function remembers it gave before: that was looked at where it was given.
            return False
    return True


def _by_place(found: Sequence) -> dict[Hashable, Value]:
    return {_ANY: found.element, **dict(enumerate(found.items or ()))}


def _names_distinguish(mine: Mapping[_Name, Value], theirs: Mapping[_Name, Value], a: State, b: State) -> bool:
    return (
        _values_distinguish(mine, theirs, a, b)
        or any(name not in theirs and any(_matters(atom, a) for atom in left) for name, left in mine.items())
        or any(name not in mine and any(_matters(atom, b) for atom in right) for name, right in theirs.items())
    )


def _values_distinguish(mine: Mapping[_Name, Value], theirs: Mapping[_Name, Value], a: State, b: State) -> bool:
    """Whether two paths are told apart by what has a name on both."""
    for name, left in mine.items():
        right = theirs.get(name)
        if right is None or left is right or left == right or _hold_the_same_memory(left, right):
            continue
        if any(_matters(atom, a) for atom in left) or any(_matters(atom, b) for atom in right):
            return True
        # What different modules give under one name is as different as functions are.
        if holds_deferred(left) and holds_deferred(right):
            return True
    return False


def _hold_the_same_memory(mine: Value, theirs: Value) -> bool:
    """Whether values are arrays, or nothing that is known, and only where these were made tells their memory apart."""
    left = _memory_of(mine)
    return left is not None and left == _memory_of(theirs)


def _memory_of(value: Value) -> set[Tensor] | None:
    found: set[Tensor] = set()
    for atom in value:
        if isinstance(atom, Tensor):
            if atom.device.is_gpu:
                found.add(replace(atom, origin=None, type=""))
        elif not isinstance(atom, Unknown):
            return None
    return found


def _are_copies(mine: Value, theirs: Value) -> bool:
    """Whether both are an array of one kind on one device: one stands for the other."""
    left, right = only(mine), only(theirs)
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return False
    return replace(left, origin=None) == replace(right, origin=None)


def _matters(atom: object, state: State | None, depth: int = 0) -> bool:
    """Whether a rule could look at a value; at a container, for what it holds."""
    if isinstance(atom, Ref):
        return state is None or depth > MOST_NESTING or _object_matters(state.get(atom), state, depth + 1)
    if not isinstance(atom, Const):
        return type(atom) in _ON_DEVICES or isinstance(atom, Lib | Bound | Partial)
    value = atom.value
    if isinstance(value, str):
        return _is_choice(value)
    return value is None or isinstance(value, bool | int | Member)


def _is_choice(text: str) -> bool:
    """Whether a text names a device, a method or a backend, or is a word that a later test may ask for."""
    return text in TELLING or (len(text) <= LONGEST_WORD and text.isidentifier())


def _object_matters(found: Object | None, state: State, depth: int) -> bool:
    match found:
        case Sequence(items=items, element=element):
            values = (*(items or ()), element)
        case Dict(items=items, element=element):
            values = (*items.values(), element)
        case _:
            return True
    return any(_matters(atom, state, depth) for value in values for atom in value)


def merge(states: Iterable[State]) -> list[State]:
    """Join what need not stay apart: at most eight states of a process, told apart by at most three assumptions each.

    Parent and child of a fork run the same code: they are never joined. Where too many paths are left, the question
    that tells the least is given up first: one whose answers lead to the same processes, then one whose answers lead
    to the same devices.
    """
    result: list[State] = []
    for state in states:
        _merge_into(result, state)
    while len(result) > 1 and (given_up := _given_up(result)) is not None:
        for state in result:
            state.facts = tuple(fact for fact in state.facts if fact[0] != given_up)
        again: list[State] = []
        for state in result:
            _merge_into(again, state)
        result = again
    _note_telling(result)
    for state in result:
        state.facts = remembered(state.facts, MOST_REMEMBERED, state.telling)
    return result


def _note_telling(states: list[State]) -> None:
    """Paths that stay apart note by which answers: within a call, where each is alone, nothing else shows that."""
    if len(states) < 2:
        return
    assumed = [settled(state.facts) for state in states]
    shared = [sym for sym, _ in _in_all(assumed)]
    for state, facts in zip(states, assumed, strict=True):
        state.telling = tuple([sym for sym, _ in facts if sym not in shared or sym in state.telling])


def _in_all(assumed: list[tuple[Fact, ...]]) -> list[Fact]:
    """What all of some paths assume."""
    first, *others = assumed
    return [fact for fact in first if all(fact in other for other in others)]


def _given_up(states: list[State]) -> Hashable | None:
    """The question that paths no longer stay apart for; None where they are few enough."""
    assumed = [settled(state.facts) for state in states]
    if len(states) <= MOST_STATES and max(map(len, assumed)) < MOST_FACTS:
        return None
    shared = _in_all(assumed)
    asked = max(_number_asked(facts, shared) for facts in assumed)
    if len(states) <= MOST_STATES and asked < MOST_FACTS:
        return None
    questions: list[Hashable] = []
    for facts in assumed:
        questions.extend(fact[0] for fact in facts if fact not in shared and fact[0] not in questions)
    idle = _idle(questions, states)
    if idle is None and len(states) <= MOST_STATES and asked == MOST_FACTS:
        return None
    return next(iter(questions), None) if idle is None else idle


def _number_asked(facts: tuple[Fact, ...], shared: list[Fact]) -> int:
    """How many things these facts are about, beside what is shared: which constants one of them is not is one."""
    return len({read(fact[0])[0] for fact in facts if fact not in shared})


def _idle(questions: list[Hashable], states: list[State]) -> Hashable | None:
    """The question that tells the least: of those with the same processes whatever the answer, one that tells nothing
    of devices before one that does, and last one that has only been answered in the negative."""
    kinds = _kinds([state.process for state in states])
    quiet = [question for question in questions if not _tells(question, states, kinds)]
    # Giving these up is what joins paths.
    idle = [question for question in quiet if any((question, True) in state.facts for state in states)] or quiet
    if len(idle) < 2:
        return next(iter(idle), None)
    placed = _placed_kinds(states)
    return next((question for question in idle if not _tells(question, states, placed)), idle[0])


def _tells(question: Hashable, states: list[State], kinds: list[int]) -> bool:
    """Whether paths that answer a question in one way are of other kinds than those that answer it in the other.

    Those that were not asked may belong to either.
    """
    known = list(zip(states, kinds, strict=True))
    yes = {kind for state, kind in known if not is_assumed((question, False), state.facts)}
    no = {kind for state, kind in known if (question, True) not in state.facts}
    return yes != no


def _kinds(processes: list[Process]) -> list[int]:
    """A number for each process; those that differ in nothing a rule could look at have the same."""
    found: list[Process] = []
    result: list[int] = []
    for process in processes:
        alike = (i for i, other in enumerate(found) if _equivalent_processes(process, other))
        kind = next(alike, len(found))
        if kind == len(found):
            found.append(process)
        result.append(kind)
    return result


def _placed_kinds(states: list[State]) -> list[int]:
    """A number for each path; those whose names stand for the same devices have the same."""
    shared = states[0].layer
    for state in states[1:]:
        shared = _shared_layer(shared, state.layer)
    changes = [state.since(shared)[0] for state in states]
    placed: list[list[Hashable]] = [[] for _ in states]
    for address in {address: None for changed in changes for address in changed}:
        things = [changed.get(address) for changed in changes]
        # Most objects are the same on all paths, and tell nothing; of others many paths have the same.
        different = {id(thing): thing for thing in things}
        if len(different) > 1:
            # Paths that changed nothing there have what lies below.
            unchanged = (state for state, thing in zip(states, things, strict=True) if thing is None)
            below = next((state.at(address) for state in unchanged), None)
            held = {key: _placed_in(address, below if thing is None else thing) for key, thing in different.items()}
            for found, thing in zip(placed, things, strict=True):
                found.extend(held[id(thing)])
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(frozenset(found), len(numbers)) for found in placed]


def _placed_in(address: Hashable, thing: Object | None) -> list[Hashable]:
    """The devices that names stand for in an object of a path."""
    if thing is None or thing is BLOT:
        return []
    return [(address, name, atom) for name, value in _parts(thing).items() for atom in value if is_placed(atom)]


def merge_imported(states: Iterable[State]) -> list[State]:
    """Join the ways through the top level of an imported module, unless a device or a method distinguishes them.

    What was found installed there, and which version, is hardly ever asked again; each way that stays is one
    more on which everything after the import runs.
    """
    result: list[State] = []
    for state in states:
        for i, other in enumerate(result):
            if _equivalent_processes(other.process, state.process) and _equivalent_at_import(other, state):
                result[i] = join(other, state)
                break
        else:
            result.append(state)
    return result


def _equivalent_at_import(a: State, b: State) -> bool:
    if a.placed.keys() != b.placed.keys():
        return False
    return not any(_differ_in_devices(mine, theirs, a, b) for _, mine, theirs in _different(a, b, *_changes(a, b)))


def _differ_in_devices(mine: Object, theirs: Object, a: State, b: State) -> bool:
    """Whether an object holds another device, method or library on each path, or on one what processes share."""
    left, right = _parts(mine), _parts(theirs)
    in_function = isinstance(mine, Scope) and mine.kind == "function"
    for name, given in left.items():
        other = right.get(name, ())
        if given is other or given == other:
            continue
        if _differ_in_device(given, other) or (in_function and holds_deferred(given) and holds_deferred(other)):
            return True
        if given and other and _is_shared(given, a) is not _is_shared(other, b):
            return True
    return any(name not in left and _differ_in_device((), other) for name, other in right.items())


def _parts(obj: Object) -> Mapping[Hashable, Value]:
    """What an object holds, by name."""
    match obj:
        case Scope(variables=names) | Instance(attributes=names) | LibraryObject(fields=names):
            return names  # type: ignore[return-value]
        case Sequence(items=items, element=element):
            return {None: tuple(atom for value in (*(items or ()), element) for atom in value)}
        case Dict(items=named, element=element):
            return {**named, None: element}
    return {}


def _is_shared(value: Value, state: State) -> bool:
    """Whether a value may be what processes share, as their events are; those of threads are not."""
    found = (state.get(atom) for atom in value if isinstance(atom, Ref))
    return any(isinstance(one, LibraryObject) and one.is_of_processes for one in found)


def _differ_in_device(mine: Value, theirs: Value) -> bool:
    """Whether a name stands for another device, method or library on each way."""
    left, right = set(mine) - set(theirs), set(theirs) - set(mine)
    if any(is_placed(atom) for atom in left | right):
        return True
    ours, others = _libraries(left), _libraries(right)
    return bool(ours) and bool(others) and ours != others


def _libraries(atoms: Iterable[Atom]) -> set[str]:
    """The libraries that provide some values: what one of them calls otherwise in another version is much the same."""
    return {atom.path.partition(".")[0] for atom in atoms if isinstance(atom, Lib)}


def stands_for_something(atom: Atom) -> bool:
    """Whether a value is a function, an object, or something that is on a device or names one."""
    return isinstance(atom, Lib | Ref | Bound | Partial) or is_placed(atom)


def is_placed(atom: Atom) -> bool:
    """Whether a value is on a device, or names one, a start method or a backend."""
    if not isinstance(atom, Const):
        return type(atom) in _ON_DEVICES
    value = atom.value
    if isinstance(value, str):
        return value in TELLING
    return isinstance(value, Member) and any(map(is_placed, value.value))


def _same_facts(a: tuple[tuple[Hashable, bool], ...], b: tuple[tuple[Hashable, bool], ...]) -> bool:
    """Whether two paths assume the same, in any order; comparing is cheaper than hashing what nests deep."""
    return a == b or (len(a) == len(b) and all(fact in b for fact in a))


def _merge_into(result: list[State], state: State) -> None:
    facts = settled(state.facts)
    for i, other in enumerate(result):
        if other.process.identity != state.process.identity:
            continue
        if _same_facts(settled(other.facts), facts) or equivalent(other, state):
            result[i] = join(other, state)
            return
    result.append(state)
