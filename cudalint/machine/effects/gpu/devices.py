"""The device that code chooses: for a thread, for a block, as the default, or by what a process may see."""

from __future__ import annotations

from cudalint.machine import operators, questions
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.gpu import current as contexts
from cudalint.machine.effects.gpu.arrays import EVERY
from cudalint.machine.effects.gpu.cuda import THREAD_DEFAULT, current_index, index_value, note_rank, one_of_all, touch
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import NUMBERED, Doubt, Kind
from cudalint.machine.questions import IN_ENVIRONMENT
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Selected, State
from cudalint.machine.trace import Chain
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Atom,
    Const,
    Dev,
    Index,
    Rank,
    Ref,
    Unknown,
    Value,
    const,
    only,
    unknown,
)
from cudalint.structs import replace


def default_device(machine: Machine, call: Call) -> Results:
    """``torch.set_default_device`` and ``set_default_tensor_type``; libraries that set it to the GPU by themselves."""
    state: State | None = call.state
    given = call.get("device") or ()
    if call.flag("default-gpu"):
        if choices.idle(machine, call) or not choices.is_asked(call):
            return [(call.state, NONE)]
        effect, opens, given = call.text("gpu", "none"), call.flag("context"), const("cuda")
        state = touch(machine, call.state, call.frame, call.site, "torch", effect, call.label, context=opens)
    if state is None:
        return []
    devices = operators.device_of(given)
    if devices:
        where = machine.chain(state, call.site, f"{call.label} makes {devices[0].kind} the default")
        state.process = replace(state.process, default_device=devices[0], default_where=where)
    return [(state, NONE)]


def set_device(machine: Machine, call: Call) -> Results:
    """``torch.cuda.set_device(i)`` or ``cupy.cuda.Device(i).use()``: selects for this thread, and initialises."""
    value = call.get("device") or (call.args[0] if call.args else _named_by(call))
    found = [d for d in operators.device_of(value) if d.is_gpu]
    index = _index_of(found)
    framework, wanted, device = call.text("framework", "torch"), call.text("gpu", "init"), Dev("cuda", index)
    opens = call.flag("context")
    state = touch(machine, call.state, call.frame, call.site, framework, wanted, call.label, device, opens)
    if state is None:
        return []
    if index == THREAD_DEFAULT:
        # What is selected is what was current: as if nothing had been selected.
        return [(state, NONE)]
    process = state.process
    early = process.allocated
    first = process.device() is None and not process.in_thread
    # An option --local_rank is a rank's own, whoever launched it.
    is_rank = process.rank is not None or index == Rank("local")
    # An unseen caller that joined the group may have selected the device as well: this one selects it again.
    is_told = process.unseen and process.launch is None and process.group is None
    if is_rank and not is_told and early is not None and first and index != 0:
        early_allocation(machine, call, state, early)
    where = machine.chain(state, call.site, f"{call.label} selects the device")
    if found and not opens:
        note_rank(machine, state, call.site, call.label, index, where)
    state.process = replace(process, allocated=None).with_device(Selected(index, False, where, is_alone(state)))
    return [(state, NONE)]


def is_alone(state: State) -> bool:
    """Whether no launcher said which rank of its machine a program is, or it sees one GPU alone.

    Launchers from outside may show each rank another GPU.
    """
    return state.fact((IN_ENVIRONMENT, "LOCAL_RANK")) is False or questions.sees_one_gpu(state.facts)


def _named_by(call: Call) -> Value:
    """What the object of a device names whose method is called."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return found.fields.get("<device>", ()) if isinstance(found, LibraryObject) else ()


def _index_of(devices: list[Dev]) -> Index:
    """The number of the GPU that one of these is; where it can be several, one for each rank."""
    indices = {device.index for device in devices}
    return indices.pop() if len(indices) == 1 else Rank("each", derived=bool(indices))


def early_allocation(machine: Machine, call: Call, state: State, early: Chain) -> None:
    """A rank used GPU 0 before it selected its own."""
    _early(machine, call, state, early, Kind.ALLOCATION_BEFORE_DEVICE, call.label)


def allocation_before_ranks(machine: Machine, call: Call, early: Chain) -> None:
    """A launcher starts the program once more for each other rank, which uses GPU 0 as this one did."""
    does = f"{call.label} starts other ranks, which run all before it, too"
    _early(machine, call, call.state, early, Kind.ALLOCATION_BEFORE_RANKS, does)


def _early(machine: Machine, call: Call, state: State, early: Chain, kind: Kind, does: str) -> None:
    chain = machine.chain(state, call.site, does)
    outcome = outcome_of(
        machine, state, kind, early.step.site, "cost", effect=chain, launch=state.process.launch, detail=call.label
    )
    starts = outcome.effect[-1:] if kind is Kind.ALLOCATION_BEFORE_RANKS else ()
    machine.emit(replace(outcome, effect=(*early.steps(), *starts), subject=early.step.message))


def device_object(machine: Machine, call: Call) -> Results:
    """``torch.cuda.device(i)``: selects only inside a ``with`` block; ``cuda.core.Device(i)`` opens the driver, too."""
    state = call.state
    if call.text("gpu"):
        framework = call.text("framework", "torch")
        opened = touch(machine, state, call.frame, call.site, framework, call.text("gpu"), call.label)
        return [] if opened is None else [_device_named(call, opened)]
    if call.statement and not _is_current(call):
        chain = machine.chain(state, call.site, f"{call.label} as a statement selects nothing")
        machine.emit(
            outcome_of(
                machine,
                state,
                Kind.DEVICE_STATEMENT,
                call.site,
                "wrong-device",
                effect=chain,
                subject=NUMBERED if _has_number(call.args[0] if call.args else ()) else "",
            )
        )
    return [_device_named(call, state)]


def _device_named(call: Call, state: State) -> tuple[State, Value]:
    # An object that opens the driver by itself stands for the first GPU unless it is told another.
    other: Value = const(0) if call.text("gpu") else unknown("device", call.site)
    fields: dict[str, Value] = {"<device>": call.args[0] if call.args else other}
    return state, (state.new(("device", call.site), LibraryObject(call.path, fields, call.site)),)


def _has_number(value: Value) -> bool:
    """Whether what names a GPU has a number: ``set_device`` refuses ``cuda``, which an object of a device may be."""
    options = [atom for atom in value if isinstance(atom, Unknown) and _is_option(atom)]
    numbered = [atom for atom in value if _is_number(atom)]
    return bool(numbered) and set(numbered) | set(options) == set(value)


def _is_option(atom: Unknown) -> bool:
    match atom.sym:
        case ("option", *_):
            return True
    return False


def _is_number(atom: Atom) -> bool:
    match atom:
        case (
            Rank()
            | Const(value=int())
            | Unknown(sym=("int" | "devices" | "len", *_) | ("option", _, _, "number" | "needed number"))
        ):
            return True
        case Unknown(sym=(("bin", *_), str(), tuple(left), tuple(right))):
            return _has_number(left) or _has_number(right)
    return any(device.index is not None for device in operators.device_of((atom,)))


def _is_current(call: Call) -> bool:
    """Whether the GPU that a call names is the one that its process has selected, as one without a number is."""
    named = [d for d in operators.device_of(call.args[0] if call.args else ()) if d.is_gpu]
    current = call.state.process.device()
    if named and all(device.index is None for device in named):
        return True
    return current is not None and not current.maybe and current.index == _index_of(named)


def device_enter(machine: Machine, call: Call) -> Results:
    """Entering ``with torch.cuda.device(i)``."""
    state = call.state
    found = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    devices = [d for d in operators.device_of(_named_by(call)) if d.is_gpu]
    index = _index_of(devices)
    framework = call.text("framework", "torch")
    preset = call.text("gpu", "init")
    opens, device = call.flag("context"), Dev("cuda", index)
    after = touch(machine, state, call.frame, call.site, framework, preset, call.label, device, context=opens)
    if after is None:
        return []
    if isinstance(found, LibraryObject) and isinstance(call.receiver, Ref):
        before = after.process.device()
        memo: Value = NONE if before is None else index_value(before.index)
        after.store(call.receiver, replace(found, fields={**found.fields, "<before>": memo}))
    # What was current in this thread stays so: as if nothing had been selected.
    if index != THREAD_DEFAULT:
        where = machine.chain(after, call.site, f"{call.label} selects the device")
        after.process = after.process.with_device(Selected(index, False, where, is_alone(after)))
    contexts.follow(machine, call, after)
    return [(after, (call.receiver,) if call.receiver is not None else NONE)]


def device_exit(machine: Machine, call: Call) -> Results:
    """Leaving ``with torch.cuda.device(i)`` restores what was selected."""
    state = call.state
    found = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    before = found.fields.get("<before>", NONE) if isinstance(found, LibraryObject) else NONE
    atom = only(before)
    where = machine.chain(state, call.site, "the device is restored")
    selected: Selected | None = None
    if isinstance(atom, Rank):
        selected = Selected(atom, False, where)
    elif isinstance(atom, Const) and isinstance(atom.value, int):
        selected = Selected(atom.value, False, where, is_alone(state))
    state.process = state.process.with_device(selected)
    return [(state, NONE)]


def stream(machine: Machine, call: Call) -> Results:
    """Streams, events, graphs: objects of one process that cannot be pickled, but for events made for several."""
    preset = call.text("gpu", "none")
    framework = call.text("framework", "torch")
    named = _gpu_of(call.get("device") or NONE)
    opens = call.flag("context")
    state = touch(machine, call.state, call.frame, call.site, framework, preset, call.label, named, opens)
    if state is None:
        return []
    contexts.follow(machine, call, state)
    kind = call.text("type") or call.path
    # Events for several processes are sent as handles.
    is_shared = (call.get("interprocess") or FALSE) != FALSE
    fields: dict[str, Value] = {} if is_shared else {"<pickle>": const("never")}
    fields["<device>"] = index_value(current_index(state.process, named))
    if named is None and state.process.device() is None:
        fields["<unselected>"] = TRUE
    origin = machine.chain(state, call.site, f"{call.label} makes it")
    return [(state, (state.new(("stream", call.site), LibraryObject(kind, fields, call.site, origin)),))]


def _gpu_of(value: Value) -> Dev | None:
    """The GPU that a value names: where the code does not show which, it may be another one in each process."""
    shown = [device for device in operators.device_of(value) if device.is_gpu]
    if shown or not all(isinstance(atom, Unknown) for atom in value):
        return next(iter(shown), None)
    return Dev("cuda", Rank("each", derived=True))


def stream_scope(machine: Machine, call: Call) -> Results:
    """``with torch.cuda.stream(s)``: the GPU of the stream is the current one inside."""
    state = touch(machine, call.state, call.frame, call.site, "torch", call.text("gpu", "init"), call.label, None)
    if state is None:
        return []
    given = only(call.args[0]) if call.args else None
    found = state.get(given) if isinstance(given, Ref) else None
    place = found.fields.get("<device>", ()) if isinstance(found, LibraryObject) else ()
    if not place or place == index_value(current_index(state.process, None)):
        return [(state, unknown("stream", call.site))]
    made = LibraryObject("torch.cuda.device", {"<device>": place}, call.site)
    return [(state, (state.new(("stream scope", call.site), made),))]


def record(machine: Machine, call: Call) -> Results:
    """``event.record(stream)``: on the GPU of that stream; without one on the current GPU."""
    given = only(call.get("stream") or NONE)
    found = call.state.get(given) if isinstance(given, Ref) else None
    fields = found.fields if isinstance(found, LibraryObject) else {}
    place = None if fields.get("<unselected>") == TRUE else only(fields.get("<device>") or ())
    number = place.value if isinstance(place, Const) else place
    named = Dev("cuda", number) if isinstance(number, int | Rank) else None
    opens = call.flag("context") and (given == Const(None) or bool(fields))
    wanted, label = call.text("gpu", "init"), call.label
    state = touch(machine, call.state, call.frame, call.site, "torch", wanted, label, named, opens)
    return [] if state is None else [(state, NONE)]


def default_enter(machine: Machine, call: Call) -> Results:
    """``with torch.device("cuda")``: the default device inside."""
    state = call.state
    if isinstance(call.receiver, Dev):
        where = machine.chain(state, call.site, f"makes {call.receiver.kind} the default")
        outer = (*state.process.outer_defaults, (state.process.default_device, state.process.default_where))
        state.process = replace(state.process, default_device=call.receiver, default_where=where, outer_defaults=outer)
    return [(state, (call.receiver,) if call.receiver is not None else NONE)]


def default_exit(machine: Machine, call: Call) -> Results:
    """Leaving it: the default is again what it was around it."""
    process = call.state.process
    *outer, (device, where) = process.outer_defaults or ((None, None),)
    call.state.process = replace(process, default_device=device, default_where=where, outer_defaults=tuple(outer))
    return [(call.state, NONE)]


def growth(machine: Machine, call: Call) -> Results:
    """``tf.config.experimental.set_memory_growth``: in time, or an error."""
    state = call.state
    process = state.process
    started = dict(process.initialised).get("tensorflow")
    enable = call.args[1] if len(call.args) > 1 else call.kwargs.get("enable")
    if process.growth_asked and enable == TRUE:
        # It returns early where nothing changes.
        return [(state, NONE)]
    if started is not None and not process.dead:
        outcome = outcome_of(
            machine,
            state,
            Kind.GROWTH_TOO_LATE,
            call.site,
            "crash",
            cause=started,
            effect=machine.chain(state, call.site, f"{call.label} after TensorFlow started the GPU"),
            subject=call.label,
        )
        # Many print the error and go on, without growth: then it harms nobody.
        return machine.fail(state, call.frame, Raised(outcome, ("RuntimeError",), harmless=True))
    if enable != FALSE:
        where = machine.chain(state, call.site, call.label)
        state.process = replace(process, growth=where, growth_asked=enable == TRUE)
    return [(state, NONE)]


def growth_configured(machine: Machine, call: Call) -> Results:
    """``tf.config.get_logical_device_configuration``: what was set for a GPU, or None; growth is none of it."""
    state = call.state
    if state.process.growth is None or state.process.growth_asked:
        return [(state, NONE)]
    made = Sequence("list", None, unknown("configuration", call.site))
    return [(state, (state.new(("configured", call.site), made),))]


def visible(machine: Machine, call: Call) -> Results:
    """``tf.config.set_visible_devices``: after the first operation it is too late."""
    state = call.state
    process = state.process
    started = dict(process.initialised).get("tensorflow")
    choice = call.args[0] if call.args else call.kwargs.get("devices", NONE)
    chosen = process.visible_choice
    launch = process.launch
    reused = launch is not None and launch.reused and state.second_round
    changes = chosen != choice and not (chosen == () and _is_every(choice))
    if started is not None and not process.dead and (changes or (reused and _is_of_task(choice, state))):
        found = outcome_of(
            machine,
            state,
            Kind.VISIBLE_PER_TASK if reused else Kind.VISIBLE_TOO_LATE,
            call.site,
            "crash",
            cause=started,
            effect=machine.chain(state, call.site, f"{call.label} after TensorFlow started the GPU"),
            subject=call.label,
            launch=launch,
        )
        if reused and launch is not None and launch.each:
            found = replace(found, certain=False, doubt=found.doubt or Doubt.TASKS)
        machine.emit(found)
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    after = touch(machine, state, call.frame, call.site, "tensorflow", "touch", call.label, None)
    if after is None:
        return []
    hidden = after.process.hidden
    if machine.exact_items(choice, after) == []:
        hidden = hidden | {"tensorflow"}
    after.process = replace(after.process, visible_choice=choice, hidden=hidden)
    return [(after, NONE)]


def _is_of_task(choice: Value, state: State) -> bool:
    """Whether each task has another GPU: ``gpus[n]`` of a number by which tasks are told apart."""
    match one_of_all(choice, state):
        case Rank(kind="each"):
            return True
    return False


def _is_every(choice: Value) -> bool:
    """Whether the visible devices are the list of all devices, as they are by default."""
    atom = only(choice)
    return isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and atom.sym[:1] == (EVERY,)
