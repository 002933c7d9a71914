"""What a loader reads: an item of a dataset, and a batch of items."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from cudalint.machine import gpu_memory, mappings, questions
from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.effects.torch.collating import collated
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Class, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import needed
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    EACH,
    HOLDS,
    NONE,
    Atom,
    Bound,
    Lib,
    Ref,
    Tensor,
    Unknown,
    Value,
    only,
    union,
    unknown,
)

# What datasets of a library are made of.
_HELD = frozenset({"<tensors>", "<transform>", "<target>", "<together>", "<wrapped>", "<stacked>"})
# What makes the target of an item, and what is called with both.
TARGET, TOGETHER = "<target>", "<together>"
# The field of a subset that says which samples of a dataset are its own.
INDICES = "<indices>"
# The methods by which a dataset gives samples, in the order in which a loader looks for them: all of a batch at once go
# first, unless the loader makes no batches.
_GIVE_SAMPLES = ("__iter__", "__getitems__", "__getitem__")
GIVE_ONE = ("__iter__", "__getitem__")
# Bases that make no iterable dataset of a class.
_BY_NUMBER = frozenset({"torch.utils.data.Dataset", "builtins.object"})


def batches(machine: Machine, state: State, frame: Frame, site: Site, fields: dict[str, Value]) -> Results:
    """One batch: an item (or an iterable's element) through collate_fn."""
    results: Results = []
    methods = GIVE_ONE if fields.get("<batch_size>") == NONE else _GIVE_SAMPLES
    for current, sample in fetch(machine, fields.get("dataset", NONE), state, frame, site, methods):
        collate = fields.get("<collate_fn>", NONE)
        if collate == NONE:
            results.extend(collated(machine, current, frame, site, sample))
            continue
        listed: Value = (current.new(("samples", site), Sequence("list", (sample, sample), (), True)),)
        results.extend(machine.call_value(collate, [listed], {}, current, frame, site))
    return results


def fetch(
    machine: Machine, dataset: Value, state: State, frame: Frame, site: Site, methods: tuple[str, ...], depth: int = 0
) -> Results:
    """An item of a dataset: one of a user's methods, tensors, wrapped datasets, transforms."""
    results: Results = []
    for i, atom in enumerate(dataset):
        current = state if i == len(dataset) - 1 else state.clone()
        results.extend(_fetch_from(machine, atom, current, frame, site, methods, depth))
    return results


def _fetch_from(
    machine: Machine, atom: Atom, state: State, frame: Frame, site: Site, methods: tuple[str, ...], depth: int
) -> Results:
    nothing: Results = [(state, unknown("sample", site, state.process.identity))]
    if depth > 6:
        return nothing
    if isinstance(atom, Tensor):
        return arrays.tensor_data(machine, atom, "indexing the dataset", state, frame, site)
    match atom:
        case Unknown(sym=(str(kind), *_)) if kind == HOLDS:
            return machine.call_value((atom,), [EACH], {}, state, frame, site)
    if not isinstance(atom, Ref):
        return nothing
    found = state.get(atom)
    match found:
        case Instance():
            for method in _looked_for(machine, found, state, methods):
                function = machine.user_method(found, method, state)
                if function is None:
                    continue
                args = [] if method == "__iter__" else [_asked_for(method, state, site)]
                made = machine.call_value((Bound(function, atom),), args, {}, state, frame, site)
                if method == "__getitem__":
                    return made
                return [
                    (s, union(rounds) or unknown("sample", site))
                    for after, value in made
                    for s, rounds in machine.iterate(value, after, frame, site)
                ]
            own = _library_item(machine, atom, found, state)
            if own is not None:
                return machine.call_value((own,), [EACH], {}, state, frame, site)
            if (listed := mappings.list_of(atom, state)) is not None:
                return _fetch_from(machine, listed, state, frame, site, methods, depth + 1)
            fields = found.attributes
            inner = fields.get("dataset")
            if inner is not None and not _HELD & fields.keys():
                return fetch(machine, inner, state, frame, site, methods, depth + 1)
            if not _HELD & fields.keys():
                return _from_hooks(machine, atom, found, state, frame, site)
            return fetch_held(machine, fields, state, frame, site, methods, depth)
        case Sequence(items=items, element=element):
            return [(state, union(items or ()) or element or nothing[0][1])]
        case LibraryObject(fields=fields):
            return fetch_held(machine, fields, state, frame, site, methods, depth)
    return nothing


def _from_hooks(machine: Machine, atom: Ref, found: Instance, state: State, frame: Frame, site: Site) -> Results:
    """An item of a dataset whose class derives from one that nobody knows, which may ask it by other methods."""
    base = machine.library_base(found.cls, state)
    nothing: Results = [(state, unknown("sample", site, state.process.identity))]
    if base is None or base in _BY_NUMBER or machine.library.function(base) is not None:
        return nothing
    question = (questions.STARTS, base)
    known = state.fact(question)
    hooks = [] if known is False else list(_hooks(machine, found, state))
    if not hooks:
        return nothing
    other = [] if known else [(state.split(question), nothing[0][1])]
    results: Results = nothing
    for hook, number in hooks:
        args: list[Value] = [EACH, *(unknown("asked", site, i) for i in range(number - 1))][:number]
        results = [
            result for s, _ in results for result in machine.call_value((Bound(hook, atom),), args, {}, s, frame, site)
        ]
    return [*results, *other]


def _hooks(machine: Machine, found: Instance, state: State) -> Iterator[tuple[Atom, int]]:
    """The methods of the program by which a class may give an item, and how many arguments they take."""
    for entry in machine.mro(found.cls, state):
        scope = state.get(entry.scope) if isinstance(entry, Class) else None
        for name, value in scope.variables.items() if isinstance(scope, Scope) else ():
            method = only(value)
            takes = needed(value, state) - 1
            if takes > 0 and isinstance(method, Ref) and machine.library.unfamiliar.gives_item(name):
                yield method, takes


def _looked_for(machine: Machine, found: Instance, state: State, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some methods that a loader asks a dataset for: one that is no iterable dataset is asked by numbers."""
    bases = [machine.library.canonical(entry) for entry in machine.mro(found.cls, state) if isinstance(entry, str)]
    numbered = all(base in _BY_NUMBER or base.startswith("typing.") for base in bases)
    numbers = methods[1:]
    return numbers if numbered and any(machine.user_method(found, name, state) for name in numbers) else methods


def _asked_for(method: str, state: State, site: Site) -> Value:
    """Which sample a dataset is asked for, or which of them."""
    if method == "__getitem__":
        return EACH
    return (state.new(("numbers", site), Sequence("list", (EACH, EACH))),)


def fetch_held(
    machine: Machine,
    fields: Mapping[str, Value],
    state: State,
    frame: Frame,
    site: Site,
    methods: tuple[str, ...],
    depth: int,
) -> Results:
    """An item of what a dataset of a library was made of, if that is known."""
    if "<tensors>" in fields:
        return _from_tensors(machine, fields["<tensors>"], state, frame, site)
    if TARGET in fields or TOGETHER in fields:
        return _with_target(machine, fields, state, frame, site)
    if "<transform>" in fields:
        return transformed(machine, fields["<transform>"], state, frame, site)
    if "<wrapped>" in fields:
        chosen = _chosen(machine, fields, state, frame, site)
        return [] if chosen is None else fetch(machine, fields["<wrapped>"], chosen, frame, site, methods, depth + 1)
    if "<stacked>" in fields:
        return _from_each(machine, fields["<stacked>"], state, frame, site, methods, depth)
    return [(state, unknown("sample", site, state.process.identity))]


def _with_target(machine: Machine, fields: Mapping[str, Value], state: State, frame: Frame, site: Site) -> Results:
    """An item and its target, each as its own function gives it, or both as one does."""
    paths: list[tuple[State, list[Value]]] = [(state, [])]
    for name in ("<transform>", TARGET):
        function = fields.get(name, NONE)
        paths = [
            (after, [*made, value])
            for current, made in paths
            for after, value in (
                [(current, unknown("sample", site, name, state.process.identity))]
                if function == NONE
                else transformed(machine, function, current, frame, site)
            )
        ]
    if TOGETHER in fields:
        return [
            result
            for current, made in paths
            for result in machine.call_value(fields[TOGETHER], made, {}, current, frame, site)
        ]
    return [(after, (after.new(("sample", site), Sequence("tuple", tuple(made))),)) for after, made in paths]


def _from_each(
    machine: Machine, stacked: Value, state: State, frame: Frame, site: Site, methods: tuple[str, ...], depth: int
) -> Results:
    """An item of each of several datasets, as they were given: in a tuple, or by name."""
    found = state.get(atom) if isinstance(atom := only(stacked), Ref) else None
    parts: dict[Hashable, Value] = {}
    if isinstance(found, Dict):
        parts = found.items
    elif isinstance(found, Sequence):
        parts = dict(enumerate(found.items or ()))
    paths: list[tuple[State, dict[Hashable, Value]]] = [(state, {})]
    for name, part in parts.items():
        paths = [
            (after, {**sample, name: item})
            for current, sample in paths
            for after, item in fetch(machine, part, current, frame, site, methods, depth + 1)
        ]
    if isinstance(found, Dict):
        return [(after, (after.new(("sample", site), Dict(sample)),)) for after, sample in paths]
    return [(s, (s.new(("sample", site), Sequence("tuple", tuple(sample.values()))),)) for s, sample in paths]


def _chosen(machine: Machine, fields: Mapping[str, Value], state: State, frame: Frame, site: Site) -> State | None:
    """After looking up which item of a dataset is meant; None where that ends the path."""
    after: State | None = state
    for atom in gpu_memory.gpu_atoms(fields.get(INDICES, ()), state):
        after = None if after is None else cuda.read(machine, atom, after, frame, site, "Subset's choice of a sample")
    return after


def _library_item(machine: Machine, atom: Ref, found: Instance, state: State) -> Atom | None:
    """The ``__getitem__`` of the library's class that a class of the program derives from, where it is modelled."""
    base = machine.library_base(found.cls, state)
    path = f"{base}.__getitem__"
    return Bound(Lib(path), atom) if base is not None and machine.library.function(path) is not None else None


def _from_tensors(machine: Machine, tensors: Value, state: State, frame: Frame, site: Site) -> Results:
    values = machine.elements(tensors, state)
    current: State | None = state
    for value in values:
        for atom in gpu_memory.gpu_atoms(value, state):
            if current is not None:
                current = cuda.read(machine, atom, current, frame, site, "indexing a TensorDataset")
    if current is None:
        return []
    made = Sequence("tuple", tuple(v or unknown("column", site) for v in values))
    return [(current, (current.new(("sample", site), made),))]


def transformed(machine: Machine, transform: Value, state: State, frame: Frame, site: Site) -> Results:
    """An item that nobody knows, as a transform gives it: a generator gives parts of it, one after the other."""
    sample = unknown("sample", site, state.process.identity)
    return [
        (after, value)
        for made, value in machine.call_value(transform, [sample], {}, state, frame, site)
        for after in machine.exhausted([value], made, frame)
    ]
