"""torch's DataLoader: what its workers run, what pinning does, when they start."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace

from cudalint.machine import counting, gpu_memory, mappings, questions
from cudalint.machine.effects.concurrency import process_identity
from cudalint.machine.effects.gpu import arrays, choices, cuda, queries
from cudalint.machine.effects.gpu.choices import chosen
from cudalint.machine.effects.receivers import initialised, library_object, starter
from cudalint.machine.effects.torch import samplers
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.heap import Class, Closure, Dict, Generator, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import constant_bool, count_of, needed, number_of
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Ended, Start
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    EACH,
    FALSE,
    HOLDS,
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Partial,
    Ref,
    Task,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    union,
    unknown,
)

# As many workers as a loader has that takes all processors.
SEVERAL = 2
# What datasets of a library are made of.
_HELD = frozenset({"<tensors>", "<transform>", "<wrapped>", "<stacked>"})
# What a datapipe has whose later stages run in the main process.
FETCHED = "<fetched>"
_KEPT = (
    "num_workers",
    "collate_fn",
    "worker_init_fn",
    "pin_memory",
    "persistent_workers",
    "multiprocessing_context",
    "shuffle",
    "generator",
    "sampler",
    "batch_sampler",
    "batch_size",
)


def loader(machine: Machine, call: Call) -> Results:
    """``DataLoader(dataset, ...)``: starts nothing yet.

    Its model may name other parameters by ``iterable`` and ``workers``; ``kind = "always"``: without a number, too;
    ``resets`` is a framework that computes on the CPU in its workers, whatever it was told before.
    """
    state = call.state
    fields: dict[str, Value] = {"dataset": call.get(call.text("iterable", "dataset")) or NONE}
    for name in _KEPT:
        value = call.get(name)
        if value is not None:
            fields[f"<{name}>"] = value
    workers = call.get(call.text("workers")) if call.text("workers") else None
    if workers is not None or call.text("kind") == "always":
        fields["<num_workers>"] = const(SEVERAL) if workers in (None, NONE) else workers
    if call.open:
        fields["<open>"] = TRUE
    if call.text("resets"):
        fields["<resets>"] = const(call.text("resets"))
    if initialised(call, fields):
        return [(state, NONE)]
    made = LibraryObject("torch.utils.data.DataLoader", fields, call.site)
    return [(state, (state.new(("loader", call.site), made),))]


def set_on_loader(machine: Machine, call: Call) -> Results:
    """``loader.collate_fn = f``: what its workers do from the next start on."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, LibraryObject) and len(call.args) > 1:
        name, value = constant(call.args[0]), call.args[1]
        said = {str(name): value, **({f"<{name}>": value} if name in _KEPT else {})}
        call.state.store(call.receiver, replace(found, fields={**found.fields, **said}))
    return [(call.state, NONE)]


def served_loader(machine: Machine, call: Call) -> Results:
    """``DataLoader2(pipe, reading_service=service)``: the service says how many workers read, and how they start."""
    given = call.get("reading_service") or NONE
    service = call.state.get(atom) if isinstance(atom := given[0], Ref) else None
    found = service.fields if isinstance(service, LibraryObject) else {}
    kept = {name: found[f"<{name}>"] for name in _KEPT if f"<{name}>" in found}
    return loader(machine, replace(call, kwargs={**call.kwargs, **kept}))


def reading_service(machine: Machine, call: Call) -> Results:
    """``MultiProcessingReadingService(num_workers=2)``."""
    fields = {f"<{name}>": value for name in _KEPT if (value := call.get(name)) is not None}
    made = LibraryObject("torchdata.dataloader2.ReadingService", fields, call.site)
    return [(call.state, (call.state.new(("service", call.site), made),))]


def eager_loader(machine: Machine, call: Call) -> Results:
    """A loader whose workers start when it is made, and stay."""
    results: Results = []
    threads = constant_bool(call.get("thread_pool"), False) is not False
    given = {"persistent_workers": TRUE, **({"num_workers": const(0)} if threads else {})}
    for state, made in loader(machine, replace(call, kwargs={**call.kwargs, **given})):
        ref = made[0]
        found = state.get(ref) if isinstance(ref, Ref) else None
        if not isinstance(found, LibraryObject) or found.fields.get("<num_workers>", const(0)) == const(0):
            results.append((state, made))
            continue
        started = loader_iter(machine, replace(call, state=state, receiver=ref))
        results.extend((after, made) for after, _ in started)
    return results


def sampling_loader(machine: Machine, call: Call) -> Results:
    """``NeighborLoader(data, ..., transform=)``: what workers sample is transformed there, if the data is on the CPU.

    Of data on the GPU the workers choose the nodes alone; the main process gathers what belongs to them.
    """
    state = call.state
    data, transform = call.get("data") or NONE, call.get("transform") or NONE
    here = call.get("filter_per_worker") == FALSE or bool(gpu_memory.tensors_in([data], state))
    fields: dict[str, Value] = {} if here or transform == NONE else {"<transform>": transform}
    sampled = state.new(("sampled", call.site), LibraryObject(call.path, fields, call.site))
    return loader(machine, replace(call, kwargs={**call.kwargs, "dataset": (sampled,)}))


def loader_iter(machine: Machine, call: Call) -> Results:
    """``iter(loader)``: pins, starts workers (once if persistent), and gives batches."""
    state = call.state
    found = starter(call.receiver, state)
    if found is None:
        return [(state, unknown("loader", call.site))]
    fields = found.fields
    if state.process.default_device is not None and state.process.default_device.is_gpu:
        if _default_device(machine, call, state, fields, found.site):
            return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
        after = cuda.touch(
            machine,
            state,
            call.frame,
            call.site,
            "torch",
            "init",
            "the loader's seed on the default device",
            Dev("cuda"),
            True,
        )
        if after is None:
            return []
        state = after
    pin = constant_bool(fields.get("<pin_memory>"), False)
    number = fields.get("<num_workers>")
    if number is None and "<open>" not in fields:
        number = const(0)
    number = None if number is None else questions.if_not_given(questions.if_unset(number))
    in_process = number is not None and Const(0) in number
    # Whether there is a GPU is asked before workers start; where NVML answers, CUDA is first touched by pinning.
    pins_later = pin is True and number is not None and not in_process and cuda.asks_nvml(state)
    if pin is True and not pins_later:
        pinned = _pinning(machine, call, state, "driver" if number is None or in_process else "init")
        if pinned is None:
            return []
        state = pinned
    if in_process:
        return _in_process(machine, call, state, fields, found.site, pin)
    results = _with_workers(machine, call, state, found.ref, found.site, fields, number, pin)
    if not pins_later:
        return results
    pinned_results = ((_pinning(machine, call, after, "init"), value) for after, value in results)
    return [(after, value) for after, value in pinned_results if after is not None]


def _pinning(machine: Machine, call: Call, state: State, effect: str) -> State | None:
    """With workers a thread pins, which selects a device first; without, the process itself allocates."""
    what = "iterating a DataLoader with pin_memory=True"
    return cuda.touch(machine, state, call.frame, call.site, "torch", effect, what)


def _default_device(machine: Machine, call: Call, state: State, fields: dict[str, Value], anchor: Site) -> bool:
    """Shuffling needs a generator of the default device."""
    if not samplers.draws_on_the_host(state, fields):
        return False
    where = state.process.default_where
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.DEFAULT_DEVICE_LOADER,
            anchor,
            "crash",
            cause=where,
            effect=machine.chain(state, call.site, "shuffling wants a generator of the default device"),
            detail="shuffle",
        )
    )
    return True


def _in_process(
    machine: Machine, call: Call, state: State, fields: dict[str, Value], anchor: Site, pin: bool | None
) -> Results:
    machine.protect(anchor, state)
    results: Results = []
    sampled = samplers.runs(machine, call, state, fields)
    for after, batch in (one for s in sampled for one in batches(machine, s, call.frame, call.site, fields)):
        pinned = _pinned(machine, call, after, batch, anchor) if pin is True else [(after, batch)]
        results.extend((s, _batches(s, call.site, value)) for s, value in pinned)
    return results


def _batches(state: State, site: Site, batch: Value) -> Value:
    return (state.new(("batches", site), Sequence("list", None, batch)),)


def _pins_gpu(machine: Machine, call: Call, state: State, batch: Value, anchor: Site) -> Outcome | None:
    """Pinning a batch that is on the GPU raises."""
    found = gpu_memory.tensors_in(_parts(machine, batch, state), state)
    tensors = [a for a in found if isinstance(a, Tensor)]
    if not tensors:
        return None
    origin = tensors[0].origin
    return outcome_of(
        machine,
        state,
        Kind.PIN_OF_CUDA,
        anchor,
        "crash",
        cause=origin,
        effect=machine.chain(state, call.site, "the loader pins a batch that is on the GPU"),
    )


def _pinned(machine: Machine, call: Call, state: State, batch: Value, anchor: Site) -> Results:
    """A batch after pinning: tensors are pinned, and an object of the program is asked to do it, if it can."""
    outcome = _pins_gpu(machine, call, state, batch, anchor)
    if outcome is not None:
        return _fails_to_pin(machine, call, state, outcome)
    results: Results = []
    for i, atom in enumerate(batch):
        current = state if i == len(batch) - 1 else state.clone()
        results.extend(_asked_to_pin(machine, call, atom, current, anchor))
    return results


def _parts(machine: Machine, value: Value, state: State, depth: int = 0) -> Iterator[Value]:
    """A batch and what lies in it, where a loader goes through it: lists, tuples, also with names, and dicts."""
    yield value
    if depth == _DEEPEST:
        return
    for atom in value:
        inside: Iterable[Value] = ()
        held = mappings.content_of(atom, state) or atom
        match state.get(held) if isinstance(held, Ref) else None:
            case Sequence(items=items, element=element):
                inside = items or (element,)
            case Dict(items=entries, element=element):
                inside = (*entries.values(), element)
            case Instance() as found:
                inside = machine._row_of(found, state) or ()
        for one in inside:
            yield from _parts(machine, one, state, depth + 1)


def _asked_to_pin(machine: Machine, call: Call, atom: Atom, state: State, anchor: Site, depth: int = 0) -> Results:
    found = state.get(atom) if isinstance(atom, Ref) else None
    method = machine.user_method(found, "pin_memory", state) if isinstance(found, Instance) else None
    if method is None:
        held = {a: None for value in _parts(machine, (atom,), state) for a in value} if not depth else {}
        states = [state]
        for one in held:
            states = [after for s in states for after, _ in _asked_to_pin(machine, call, one, s, anchor, depth + 1)]
        return [(after, (atom,)) for after in states]
    frame = Frame(call.frame.scope, call.frame.module, call.frame.function, tries=call.frame.tries)
    results = machine.call_value((Bound(method, atom),), [], {}, state, frame, call.site)
    for after, raised in frame.raises:
        outcome = raised.outcome
        if outcome is not None and outcome.kind is Kind.PIN_OF_CUDA:
            results.extend(_fails_to_pin(machine, call, after, replace(outcome, anchor=anchor)))
        else:
            call.frame.raises.append((after, raised))
    return results


def pin(machine: Machine, call: Call) -> Results:
    """``x.pin_memory()``: of a tensor on the GPU it raises, which is told where a loader asked for it."""
    held = call.receiver
    if not isinstance(held, Tensor) or held.framework != "torch" or not held.device.is_gpu:
        return queries.gpu_call(machine, call)
    outcome = outcome_of(
        machine,
        call.state,
        Kind.PIN_OF_CUDA,
        call.site,
        "crash",
        cause=held.origin,
        effect=machine.chain(call.state, call.site, "the batch pins a tensor that is on the GPU"),
    )
    return machine.fail(call.state, call.frame, Raised(outcome, ("RuntimeError",), harmless=True))


def _fails_to_pin(machine: Machine, call: Call, state: State, outcome: Outcome) -> Results:
    if call.frame.tries == 0:
        machine.emit(outcome)
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    # Whoever catches it may go on.
    return machine.fail(state, call.frame, Raised(outcome, ("RuntimeError",)))


def _is_number_of_workers(atom: Atom) -> bool:
    """Whether something is a number, or some number of which it is known that it is not 0."""
    least = counting.at_least((atom,))
    return (isinstance(atom, Const) and isinstance(atom.value, int)) or (least is not None and least > 0)


def _with_workers(
    machine: Machine,
    call: Call,
    state: State,
    ref: Ref,
    anchor: Site,
    fields: dict[str, Value],
    number: Value | None,
    pin: bool | None,
) -> Results:
    iterated, what = replace(call, state=state), "a DataLoader with workers"
    if bootstrapping(machine, iterated, what, anchor) or daemon_child(machine, iterated, what, anchor):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    persistent = constant_bool(fields.get("<persistent_workers>"), False)
    if persistent is True and "<started>" in fields:
        return [(state, _batches(state, call.site, fields["<started>"]))]
    context = fields.get("<multiprocessing_context>", NONE)
    if context == NONE:
        launching.fix_default(machine, state, "multiprocessing", call.site, "iterating a DataLoader with workers")
    sure = number is not None and all(map(_is_number_of_workers, number))
    start = Start(
        launcher="DataLoader",
        family="loader",
        anchor=anchor,
        chain=machine.chain(state, call.site, "iterating the loader starts its workers"),
        many=count_of(number),
        reused=False,
        daemon=True,
        failures={"body": "crash", "unpickle": "crash", "parent": "crash"},
        tasks=(Task((Lib("cudalint.loader_worker"),), ((ref,),), ()),),
        pickled=samplers.told(machine, iterated, fields),
        inherited=(fields.get("dataset", NONE), fields.get("<collate_fn>", NONE), fields.get("<worker_init_fn>", NONE)),
        label="loader worker",
        count=number_of(number),
        context=context,
    )
    ended: list[Ended] = []
    for way in launching.ways(machine, state, "multiprocessing", context):
        ended.append(workers.start(machine, state, call.frame, start, replace(way, certain=way.certain and sure)))
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    results: Results = []
    for after in samplers.runs(machine, call, state, fields):
        results.extend(_received(machine, replace(call, state=after), ref, anchor, ended, pin, persistent))
    return results


def _received(
    machine: Machine, call: Call, ref: Ref, anchor: Site, ended: list[Ended], pin: bool | None, persistent: bool | None
) -> Results:
    """The batches that workers give."""
    state = call.state
    batch = _arrived(machine, call, state, ended)
    on_gpu = pin is True and bool(gpu_memory.tensors_in([batch], state))
    pinned = _pins_gpu(machine, call, state, batch, anchor) if on_gpu else None
    if pinned is not None:
        return _fails_to_pin(machine, call, state, pinned)
    if persistent is True:
        machine._set_on_object(ref, "<started>", batch, state, weak=False)
    return [(state, _batches(state, call.site, batch))]


def _arrived(machine: Machine, call: Call, state: State, ended: list[Ended]) -> Value:
    """A batch from a worker: GPU tensors initialise CUDA in the parent when they arrive."""
    atoms: list[Value] = []
    for end in ended:
        for child, value in end.children:
            tensors = [a for a in gpu_memory.tensors_in([value], child) if isinstance(a, Tensor)]
            for tensor in tensors:
                cuda.touch(
                    machine,
                    state,
                    call.frame,
                    call.site,
                    "torch",
                    "init",
                    "receiving a batch on the GPU",
                    tensor.device,
                    True,
                )
                atoms.append((replace(tensor, owner=state.process.identity),))
    return union(atoms) or unknown("batch", call.site, state.process.identity)


def loader_worker(machine: Machine, call: Call) -> Results:
    """What a loader's worker does: worker_init_fn, items of the dataset, collate_fn."""
    state = call.state
    found = starter(call.args[0][0], state)
    if found is None:
        return [(state, NONE)]
    fields = found.fields
    shared = {"dataset": "dataset", "<num_workers>": "num_workers"}
    known = {name: fields[kept] for kept, name in shared.items() if kept in fields}
    state.store(process_identity.LOADER, LibraryObject("cudalint.loader", known, found.site))
    anew = set(strings(fields.get("<resets>", ())))
    process = state.process
    state.process = replace(
        process, told=process.told - anew, poisoned_by=process.poisoned_by - anew, on_cpu=process.on_cpu | anew
    )
    made: Results = []
    for current in _prepared(machine, call, fields.get("<worker_init_fn>", NONE)):
        made.extend(batches(machine, current, call.frame, call.site, fields))
    return made


def _prepared(machine: Machine, call: Call, init: Value) -> list[State]:
    """The states of a worker that ``worker_init_fn`` has prepared."""
    state = call.state
    launch = state.process.launch
    if init == NONE or launch is None:
        return [state]
    state.process = replace(state.process, launch=replace(launch, stage="initializer"))
    results = machine.call_value(init, [EACH], {}, state, call.frame, call.site)
    for after, _ in results:
        after.process = replace(after.process, launch=launch)
    return [after for after, _ in results]


def batches(machine: Machine, state: State, frame: Frame, site: Site, fields: dict[str, Value]) -> Results:
    """One batch: an item (or an iterable's element) through collate_fn."""
    results: Results = []
    methods = _GIVE_ONE if fields.get("<batch_size>") == NONE else _GIVE_SAMPLES
    for current, sample in fetch(machine, fields.get("dataset", NONE), state, frame, site, methods):
        collate = fields.get("<collate_fn>", NONE)
        if collate == NONE:
            results.extend(_default_collate(machine, current, frame, site, sample))
            continue
        listed: Value = (current.new(("samples", site), Sequence("list", (sample, sample), (), True)),)
        results.extend(machine.call_value(collate, [listed], {}, current, frame, site))
    return results


def _default_collate(machine: Machine, state: State, frame: Frame, site: Site, sample: Value) -> Results:
    after: State | None = state
    for atom in dict.fromkeys(gpu_memory.tensors_in(_parts(machine, sample, state), state)):
        if after is not None:
            after = cuda.read(machine, atom, after, frame, site, "default_collate")
    if after is None:
        return []
    default = after.process.default_device
    if default is not None and default.is_gpu and _has_number(machine, sample, after):
        after = cuda.touch(
            machine, after, frame, site, "torch", "init", "default_collate on the default device", default, True, True
        )
        if after is None:
            return []
        device = Dev("cuda", cuda.current_index(after.process, default))
        origin = machine.chain(after, site, "default_collate makes a batch on the default device")
        return [(after, (Tensor("torch", device, after.process.identity, origin),))]
    return [(after, sample)]


def _has_number(machine: Machine, sample: Value, state: State) -> bool:
    values = [sample, *machine.elements(sample, state)]
    return any(_is_number(atom) for v in values for atom in v)


def _is_number(atom: Atom) -> bool:
    match atom:
        case Const(value=value):
            return isinstance(value, int | float)
        case Unknown(sym=("int" | "float" | "len", *_)):
            return True
    return False


def fetch(
    machine: Machine,
    dataset: Value,
    state: State,
    frame: Frame,
    site: Site,
    methods: tuple[str, ...],
    depth: int = 0,
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
            fields = found.attributes
            inner = fields.get("dataset")
            if inner is not None and not _HELD & fields.keys():
                return fetch(machine, inner, state, frame, site, methods, depth + 1)
            if not _HELD & fields.keys():
                return _from_hooks(machine, atom, found, state, frame, site)
            return _fetch_held(machine, fields, state, frame, site, methods, depth)
        case Sequence(items=items, element=element):
            return [(state, union(items or ()) or element or nothing[0][1])]
        case LibraryObject(fields=fields):
            return _fetch_held(machine, fields, state, frame, site, methods, depth)
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


# How deep a batch lies in the containers that a loader pins.
_DEEPEST = 3
# The methods by which a dataset gives samples, in the order in which a loader looks for them: all of a batch at once go
# first, unless the loader makes no batches.
_GIVE_SAMPLES = ("__iter__", "__getitems__", "__getitem__")
_GIVE_ONE = ("__iter__", "__getitem__")


def _looked_for(machine: Machine, found: Instance, state: State, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some methods that a loader asks a dataset for: one that is no iterable dataset is asked by numbers."""
    bases = [machine.library.canonical(entry) for entry in machine.mro(found.cls, state) if isinstance(entry, str)]
    numbered = all(base in _BY_NUMBER or base.startswith("typing.") for base in bases)
    numbers = methods[1:]
    return numbers if numbered and any(machine.user_method(found, name, state) for name in numbers) else methods


# Bases that make no iterable dataset of a class.
_BY_NUMBER = frozenset({"torch.utils.data.Dataset", "builtins.object"})


def _asked_for(method: str, state: State, site: Site) -> Value:
    """Which sample a dataset is asked for, or which of them."""
    if method == "__getitem__":
        return EACH
    return (state.new(("numbers", site), Sequence("list", (EACH, EACH))),)


def _fetch_held(
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
    if "<transform>" in fields:
        return _transformed(machine, fields["<transform>"], state, frame, site)
    if "<wrapped>" in fields:
        chosen = _chosen(machine, fields, state, frame, site)
        return [] if chosen is None else fetch(machine, fields["<wrapped>"], chosen, frame, site, methods, depth + 1)
    if "<stacked>" in fields:
        return _from_each(machine, fields["<stacked>"], state, frame, site, methods, depth)
    return [(state, unknown("sample", site, state.process.identity))]


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
    items = _fetch_held(machine, fields, call.state, call.frame, call.site, _GIVE_ONE, 0)
    if not call.path.endswith("__iter__"):
        return items
    return [(s, (s.new(("items", call.site), Sequence("iterator", None, value)),)) for s, value in items]


def _is_whole(call: Call) -> bool:
    found = library_object(call)
    named = isinstance(constant(call.args[0]), str) if call.args else True
    return named or found is None or "<transform>" not in found.fields


def _chosen(machine: Machine, fields: Mapping[str, Value], state: State, frame: Frame, site: Site) -> State | None:
    """After looking up which item of a dataset is meant; None where that ends the path."""
    after: State | None = state
    for atom in gpu_memory.gpu_atoms(fields.get(_INDICES, ()), state):
        after = None if after is None else cuda.read(machine, atom, after, frame, site, "Subset's choice of a sample")
    return after


# The field of a subset that says which samples of a dataset are its own.
_INDICES = "<indices>"


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


def _transformed(machine: Machine, transform: Value, state: State, frame: Frame, site: Site) -> Results:
    sample = unknown("sample", site, state.process.identity)
    return machine.call_value(transform, [sample], {}, state, frame, site)


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
    given = call.args[0] if call.args else call.kwargs.get("dataset", call.kwargs.get("datasets", NONE))
    if call.text("kind") == "both" and call.receiver is not None:
        both = Sequence("list", ((call.receiver,), given))
        given = (call.state.new(("datasets", call.site), both),)
        call = replace(call, receiver=None)
    return [r for state, inner in _run_to_its_end(machine, call, given) for r in _wrapping(machine, call, inner, state)]


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
    fields = {"<wrapped>": inside, "<given>": inner, **({} if indices is None else {_INDICES: indices})}
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
    """A library dataset that runs ``transform`` on each item."""
    transform = call.get("transform") or NONE
    if transform != NONE and call.text("kind") == "cached" and not choices.spared(call):
        return _cached(machine, call, transform)
    return [_transforming(call, call.state, {} if transform == NONE else {"<transform>": transform})]


def _transforming(call: Call, state: State, fields: dict[str, Value]) -> tuple[State, Value]:
    return state, (state.new(("dataset", call.site), LibraryObject(call.path, fields, call.site)),)


def _cached(machine: Machine, call: Call, transform: Value) -> Results:
    """A dataset that runs its transforms at once and keeps what they give, up to those that never give the same."""
    steps = _steps(machine, transform, call.state) or [transform]
    last = next((i for i, step in enumerate(steps) if not _is_kept(machine, step, call)), None)
    kept = steps[:last]
    made: Results = []
    for state, value in _transformed(machine, in_turn(kept, call.state, call.site), call.state, call.frame, call.site):
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


def items_loader(machine: Machine, call: Call) -> Results:
    """``ImageDataLoaders.from_folder(path, item_tfms=)``: a loader whose workers run these on each item.

    It takes the GPU for its batches first, unless it is told another device.
    """
    device = chosen(call)
    state: State | None = call.state
    if device is not None and device.is_gpu:
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, device, True)
    if state is None:
        return []
    given = call.get(call.text("function")) or NONE
    steps = machine.elements(given, state) or ([] if given == NONE else [given])
    dataset = LibraryObject(call.path, {"<transform>": in_turn(steps, state, call.site)} if steps else {}, call.site)
    fields: dict[str, Value] = {"dataset": (state.new(("dataset", call.site), dataset),)}
    fields["<num_workers>"] = call.get("num_workers") or unknown("workers", call.site)
    return [(state, (state.new(("loader", call.site), LibraryObject(call.text("type"), fields, call.site)),))]


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
    fields: dict[str, Value] = {"<steps>": call.args[0] if call.args else NONE}
    return [(state, (state.new(("compose", call.site), LibraryObject("cudalint.compose", fields, call.site)),))]


def compose_call(machine: Machine, call: Call) -> Results:
    """One sample through all steps."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    steps = machine.elements(found.fields.get("<steps>", ()), call.state) if isinstance(found, LibraryObject) else []
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
