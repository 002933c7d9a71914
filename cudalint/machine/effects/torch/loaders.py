"""torch's DataLoader: what its workers run, what pinning does, when they start."""

from __future__ import annotations

from cudalint.machine import counting, gpu_memory, questions
from cudalint.machine.effects.concurrency import process_identity
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.gpu.choices import chosen
from cudalint.machine.effects.receivers import initialised, starter
from cudalint.machine.effects.torch import ranks, samplers
from cudalint.machine.effects.torch.datasets import in_turn
from cudalint.machine.effects.torch.fetching import batches
from cudalint.machine.effects.torch.pinning import fails_to_pin, parts, pinned, pins_gpu
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import crossing, launching, workers
from cudalint.machine.launch.arguments import constant_bool, count_of, number_of
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Ended, Start
from cudalint.machine.outcome import Kind
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    EACH,
    FALSE,
    NONE,
    TRUE,
    Atom,
    Const,
    Dev,
    Lib,
    Ref,
    Task,
    Tensor,
    Value,
    const,
    constant,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace

# As many workers as a loader has that takes all processors.
SEVERAL = 2
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

    Its model may name other parameters by ``iterable``, ``workers`` and ``function``, by which it makes a batch of
    samples; ``kind = "always"``: without a number, too;
    ``resets`` is a framework that computes on the CPU in its workers, whatever it was told before.
    """
    state = call.state
    fields: dict[str, Value] = {"dataset": call.get(call.text("iterable", "dataset")) or NONE}
    for name in _KEPT:
        value = call.get(name)
        if value is not None:
            fields[f"<{name}>"] = value
    collates = call.get(call.text("function")) if call.text("function") else None
    if collates is not None:
        fields["<collate_fn>"] = collates
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


def beside_engine(machine: Machine, call: Call) -> Results:
    """``deepspeed.initialize(model=m, training_data=data)``: an engine on the rank's GPU, and a loader third.

    The loader has workers and pins what they give.
    """
    results: Results = []
    for state, engine in ranks.select(machine, call):
        if (call.get(call.text("iterable")) or NONE) == NONE:
            results.append((state, engine))
            continue
        given = {**call.kwargs, "num_workers": const(SEVERAL), "pin_memory": TRUE}
        for after, made in loader(machine, replace(call, state=state, kwargs=given)):
            others = [unknown(f"{call.label} {part}", call.site) for part in ("engine", "optimizer", "scheduler")]
            items = (others[0], others[1], made, others[2])
            results.append((after, (after.new(("engine", call.site), Sequence("tuple", items)),)))
    return results


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
        after = _initialise(machine, call, state, "the loader's seed on the default device", Dev("cuda"))
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
        ready = _pinning(machine, call, state, "driver" if number is None or in_process else "init")
        if ready is None:
            return []
        state = ready
    if in_process:
        return _in_process(machine, call, state, fields, found.site, pin)
    results = _with_workers(machine, call, state, found.ref, found.site, fields, number, pin)
    if not pins_later:
        return results
    pinned_results = ((_pinning(machine, call, after, "init"), value) for after, value in results)
    return [(after, value) for after, value in pinned_results if after is not None]


def _initialise(machine: Machine, call: Call, state: State, what: str, device: Dev) -> State | None:
    return cuda.touch(machine, state, call.frame, call.site, "torch", "init", what, device, True)


def _pinning(machine: Machine, call: Call, state: State, effect: str) -> State | None:
    """With workers a thread pins, which selects a device first; without, the process itself allocates."""
    what = "iterating a DataLoader with pin_memory=True"
    return cuda.touch(machine, state, call.frame, call.site, "torch", effect, what)


def _default_device(machine: Machine, call: Call, state: State, fields: dict[str, Value], anchor: Site) -> bool:
    """Shuffling needs a generator of the default device."""
    if not samplers.draws_on_the_host(state, fields):
        return False
    samplers.refused(machine, call, state, Kind.DEFAULT_DEVICE_LOADER, anchor, "shuffling", "shuffle")
    return True


def _in_process(
    machine: Machine, call: Call, state: State, fields: dict[str, Value], anchor: Site, pin: bool | None
) -> Results:
    machine.protect(anchor, state)
    results: Results = []
    sampled = samplers.runs(machine, call, state, fields)
    for after, batch in (one for s in sampled for one in batches(machine, s, call.frame, call.site, fields)):
        given = pinned(machine, call, after, batch, anchor) if pin is True else [(after, batch)]
        results.extend((s, _batches(s, call.site, value)) for s, value in given)
    return results


def _batches(state: State, site: Site, batch: Value) -> Value:
    return (state.new(("batches", site), Sequence("list", None, batch)),)


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
    if not sure:
        state.assume((questions.WORKERS, anchor), True)
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
    refused = pins_gpu(machine, call, state, batch, anchor) if on_gpu else None
    if refused is not None:
        return fails_to_pin(machine, call, state, refused)
    if persistent is True:
        machine._set_on_object(ref, "<started>", batch, state, weak=False)
    return [(state, _batches(state, call.site, batch))]


def _arrived(machine: Machine, call: Call, state: State, ended: list[Ended]) -> Value:
    """A batch from a worker: GPU memory in whatever it is initialises CUDA in the parent when it arrives."""
    atoms: list[Value] = []
    for end in ended:
        for child, value in end.children:
            for found in crossing.carried(value, child, crossing.Pickler.NAMES):
                if found.memory is not None:
                    _initialise(machine, call, state, "receiving a batch on the GPU", found.memory.device)
            tensors = gpu_memory.tensors_in(parts(machine, value, child), child)
            atoms.extend((replace(a, owner=state.process.identity),) for a in tensors if isinstance(a, Tensor))
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
