"""Datasets of libraries: made of tensors, of others, of transforms."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.machine import gpu_memory
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.receivers import initialised, library_object
from cudalint.machine.effects.torch import augmenting, samplers
from cudalint.machine.effects.torch.fetching import GIVE_ONE, INDICES, TARGET, TOGETHER, fetch_held, transformed
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Closure, Dict, Generator, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    Bound,
    Lib,
    Partial,
    Ref,
    Unknown,
    Value,
    constant,
    only,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace

# What a datapipe has whose later stages run in the main process.
FETCHED = "<fetched>"


def dataset_item(machine: Machine, call: Call) -> Results:
    """``super().__getitem__(i)`` in a class of the program, ``dataset[i]``: an item of what it was made of, or all.

    With ``kind = "split"`` a name, or what has no transform, gives the dataset itself, of which it may be a part.
    """
    if call.text("kind") == "split" and call.receiver is not None and _is_whole(call):
        return [(call.state, (call.receiver,))]
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    fields: Mapping[str, Value] = {}
    match found:
        case Instance(attributes=attributes):
            fields = attributes
        case LibraryObject(fields=held):
            fields = held
    items = fetch_held(machine, fields, call.state, call.frame, call.site, GIVE_ONE, 0)
    if not call.path.endswith("__iter__"):
        return items
    return [(s, (s.new(("items", call.site), Sequence("iterator", None, value)),)) for s, value in items]


def _is_whole(call: Call) -> bool:
    found = library_object(call)
    named = isinstance(constant(call.args[0]), str) if call.args else True
    return named or found is None or "<transform>" not in found.fields


def tensor_dataset(machine: Machine, call: Call) -> Results:
    """``TensorDataset(x, y)``."""
    state = call.state
    listed: Value = (state.new(("columns", call.site), Sequence("tuple", tuple(call.args))),)
    if initialised(call, {"<tensors>": listed, "tensors": listed}):
        return [(state, NONE)]
    made = LibraryObject("torch.utils.data.TensorDataset", {"<tensors>": listed}, call.site)
    return [(state, (state.new(("dataset", call.site), made),))]


def stacked_dataset(machine: Machine, call: Call) -> Results:
    """``StackDataset(x, y)``, ``StackDataset(image=x, label=y)``: an item of each."""
    state = call.state
    parts = Dict(dict(call.kwargs.items())) if call.kwargs else Sequence("tuple", tuple(call.args))
    held: Value = (state.new(("stacked", call.site), parts),)
    fields = {"<stacked>": held, "<given>": held}
    if initialised(call, {**fields, "datasets": held}):
        return [(state, NONE)]
    return [(state, (state.new(("dataset", call.site), LibraryObject(call.text("type"), fields, call.site)),))]


def wrapped_dataset(machine: Machine, call: Call) -> Results:
    """``Subset``, ``ConcatDataset``, ``random_split``: items of the dataset inside; ``train + extra``: of both."""
    if call.path.endswith("random_split") and _draws_on_the_host(call):
        samplers.refused(machine, call, call.state, Kind.DEFAULT_DEVICE_SPLIT, call.site, "splitting")
        return machine.fail(call.state, call.frame, Raised(None, ("RuntimeError",)))
    given = call.args[0] if call.args else call.kwargs.get("dataset", call.kwargs.get("datasets", NONE))
    if call.text("kind") == "both" and call.receiver is not None:
        both = Sequence("list", ((call.receiver,), given))
        given = (call.state.new(("datasets", call.site), both),)
        call = replace(call, receiver=None)
    return [r for state, inner in _run_to_its_end(machine, call, given) for r in _wrapping(machine, call, inner, state)]


def _draws_on_the_host(call: Call) -> bool:
    """Whether a split draws its order on the default device, with a generator on the CPU."""
    default = call.state.process.default_device
    if default is None or not default.is_gpu or call.open:
        return False
    return samplers.is_on_host(call.state, call.get("generator") or NONE)


def _run_to_its_end(machine: Machine, call: Call, given: Value) -> Results:
    """What datasets are taken from: a generator makes them now."""
    atom = only(given)
    if not isinstance(atom, Ref) or not isinstance(call.state.get(atom), Generator):
        return [(call.state, given)]
    results: Results = []
    for state, rounds in machine.iterate(given, call.state, call.frame, call.site):
        made = Sequence("list", tuple(rounds), (), open=True)
        results.append((state, (state.new(("datasets", call.site), made),)))
    return results


def _wrapping(machine: Machine, call: Call, inner: Value, state: State) -> Results:
    inside = union(machine.elements(inner, state)) or inner
    if call.path.endswith("random_split"):
        inside = inner
    indices = call.get("indices")
    fields = {"<wrapped>": inside, "<given>": inner, **({} if indices is None else {INDICES: indices})}
    if initialised(replace(call, state=state), {**fields, call.text("key", "dataset"): inner}):
        return [(state, NONE)]
    ref = state.new(("wrapped", call.site), LibraryObject(call.text("type"), fields, call.site))
    if call.path.endswith("random_split"):
        return [(state, (state.new(("split", call.site), Sequence("list", ((ref,), (ref,)), (), True)),))]
    return [(state, (ref,))]


def dataset_part(machine: Machine, call: Call) -> Results:
    """``dataset.tensors``, ``subset.dataset``: what it was made of, in the field that its model names."""
    found = library_object(call)
    held = None if found is None else found.fields.get(call.text("key"))
    return [(call.state, held or unknown("part", call.site))]


def transform_dataset(machine: Machine, call: Call) -> Results:
    """A library dataset that runs ``transform`` on each item, or what the model calls so."""
    transform = call.get(call.text("function", "transform")) or NONE
    if transform != NONE and call.text("kind") == "cached" and not choices.spared(call):
        return _cached(machine, call, transform)
    fields = {} if transform == NONE else {"<transform>": transform}
    if call.text("kind") == "vision":
        fields = _of_vision(call, transform)
        if call.path.endswith(".__init__") and initialised(call, {**fields, **_kept_functions(call)}):
            return [(call.state, NONE)]
    return [_transforming(call, call.state, fields)]


def _of_vision(call: Call, transform: Value) -> dict[str, Value]:
    """What a dataset of torchvision makes an item by: it reads, transforms what it read and the target, then both."""
    steps = [step for step in (call.get("loader") or NONE, transform) if step != NONE]
    fields: dict[str, Value] = {}
    if steps:
        fields["<transform>"] = steps[0] if len(steps) == 1 else in_turn(steps, call.state, call.site)
    for name, place in (("target_transform", TARGET), ("transforms", TOGETHER)):
        if (given := call.get(name) or NONE) != NONE:
            fields[place] = given
    return fields


def _kept_functions(call: Call) -> dict[str, Value]:
    """The attributes of an object of the program's own class that its base keeps these functions in."""
    kept = {name: given for name in ("loader", "transforms") if (given := call.get(name)) is not None}
    if not call.open:
        kept |= {name: call.get(name) or NONE for name in ("transform", "target_transform")}
    return kept


def _transforming(call: Call, state: State, fields: dict[str, Value]) -> tuple[State, Value]:
    return state, (state.new(("dataset", call.site), LibraryObject(call.path, fields, call.site)),)


def _cached(machine: Machine, call: Call, transform: Value) -> Results:
    """A dataset that runs its transforms at once and keeps what they give, up to those that never give the same."""
    steps = _steps(machine, transform, call.state) or [transform]
    last = next((i for i, step in enumerate(steps) if not _is_kept(machine, step, call)), None)
    kept = steps[:last]
    made: Results = []
    for state, value in transformed(machine, in_turn(kept, call.state, call.site), call.state, call.frame, call.site):
        if gpu_memory.tensors_in([value], state):
            rows: Value = (state.new(("rows", call.site), Sequence("list", None, value)),)
            made.append(_transforming(call, state, {"<wrapped>": rows}))
            continue
        rest = steps[len(kept) :]
        later = {"<transform>": in_turn(rest, state, call.site)} if rest else {}
        made.append(_transforming(call, state, later))
    return made


def _steps(machine: Machine, transform: Value, state: State) -> list[Value]:
    """What a composed transform, or a list, is made of."""
    found = state.get(atom) if isinstance(atom := only(transform), Ref) else None
    inside = found.fields.get("<steps>", ()) if isinstance(found, LibraryObject) else transform
    return machine.elements(inside, state)


def _is_kept(machine: Machine, step: Value, call: Call) -> bool:
    """Whether a step is of the library's own classes, and of none whose results are never the same."""
    path = ""
    match only(step):
        case Unknown(sym=("call", *_, str(made))):
            path = made
        case Ref() as ref:
            found = call.state.get(ref)
            if isinstance(found, LibraryObject):
                path = found.type
            elif isinstance(found, Instance):
                path = machine.library_base(found.cls, call.state) or ""
    package = call.path.partition(".")[0]
    return path.startswith(f"{package}.") and not path.rpartition(".")[2].startswith(call.text("until"))


def with_transform(machine: Machine, call: Call) -> Results:
    """``dataset.with_transform(f)``: a dataset that runs f on what is read; ``set_transform`` changes this one."""
    return _formatted(call, call.get("transform") or NONE)


def with_format(machine: Machine, call: Call) -> Results:
    """``dataset.with_format("torch", device=)``: a dataset that makes tensors, there, of what is read of it."""
    device = call.kwargs.get("device", NONE)
    if device == NONE or "torch" not in strings(call.get("type") or ()):
        return _formatted(call, NONE)
    return _formatted(call, moving(device, "datasets.formatting.TorchFormatter"))


def moving(device: Value, by: str) -> Value:
    """What moves each item to a device, by a function of this name."""
    return (Partial((Lib(by),), (), (("device", device),)),)


def mapped_dataset(machine: Machine, call: Call) -> Results:
    """``dataset.map(f)``, one after the other: a dataset that runs each f on what is read of it."""
    found = library_object(call)
    before = NONE if found is None else found.fields.get("<transform>", NONE)
    if found is not None and FETCHED in found.fields and call.receiver is not None:
        return [(call.state, (call.receiver,))]
    given = [value for value in (*call.args, *call.kwargs.values()) if _is_called(value, call.state)]
    steps = [*([] if before == NONE else [before]), *given]
    return _formatted(call, in_turn(steps, call.state, call.site) if steps else NONE)


def _is_called(value: Value, state: State) -> bool:
    return any(isinstance(a, Partial | Bound) or (isinstance(a, Ref) and _has_code(a, state)) for a in value)


def _has_code(ref: Ref, state: State) -> bool:
    return isinstance(state.get(ref), Closure | Instance)


def staged_dataset(machine: Machine, call: Call) -> Results:
    """``DataPipeline(shards, map(f), batched(16))``: a dataset of stages, or one stage, which runs what it is given."""
    steps = [step for value in (*call.args, *call.kwargs.values()) for step in _run_by(machine, value, call.state)]
    transform = {"<transform>": in_turn(steps, call.state, call.site)} if steps else {}
    made = LibraryObject(call.text("type"), transform, call.site)
    return [(call.state, (call.state.new(("stages", call.site), made),))]


def _run_by(machine: Machine, value: Value, state: State) -> list[Value]:
    """What a stage runs on each item: a function, what a stage that was made before runs, or a list of such."""
    if _is_called(value, state):
        return [value]
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    match found:
        case LibraryObject(fields=fields) if "<transform>" in fields:
            return [fields["<transform>"]]
        case Sequence(kind="list"):
            return [step for one in machine.elements(value, state) for step in _run_by(machine, one, state)]
    return []


def in_turn(steps: list[Value], state: State, site: Site) -> Value:
    """What calls several things, each on what the one before gave."""
    listed: Value = (state.new(("steps", site), Sequence("list", tuple(steps))),)
    made = LibraryObject("cudalint.compose", {"<steps>": listed}, site)
    return (state.new(("compose", site), made),)


def _formatted(call: Call, transform: Value) -> Results:
    state, receiver = call.state, call.receiver
    found = state.get(receiver) if isinstance(receiver, Ref) else None
    if not isinstance(receiver, Ref) or not isinstance(found, LibraryObject):
        return [(state, unknown("dataset", call.site))]
    fields = {name: value for name, value in found.fields.items() if name != "<transform>"}
    if transform != NONE:
        fields["<transform>"] = transform
    changed = replace(found, fields=fields)
    if call.text("kind") == "in-place":
        state.store(receiver, changed)
        return [(state, NONE)]
    return [(state, (state.new(("formatted", call.site), changed),))]


def compose(machine: Machine, call: Call) -> Results:
    """``Compose([a, b])``: calls each in turn."""
    state = call.state
    steps = call.args[0] if call.args else call.kwargs.get("transforms", NONE)
    fields: dict[str, Value] = {"<steps>": steps}
    return [(state, (state.new(("compose", call.site), LibraryObject("cudalint.compose", fields, call.site)),))]


def compose_call(machine: Machine, call: Call) -> Results:
    """One sample through all steps."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    steps = machine.elements(found.fields.get("<steps>", ()), call.state) if isinstance(found, LibraryObject) else []
    if call.kwargs and not call.args:
        return augmenting.in_turn(machine, call, steps)
    results: Results = [(call.state, call.args[0] if call.args else unknown("sample", call.site))]
    for step in steps:
        following: Results = []
        for state, value in results:
            following.extend(machine.call_value(step, [value], {}, state, call.frame, call.site))
        results = following
    return results


def apply_transform(machine: Machine, call: Call) -> Results:
    """``transforms.Lambda(f)``: f itself."""
    return [(call.state, call.args[0] if call.args else unknown("transform", call.site))]
