"""Queues, pipes and locks: what passes between processes while they run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.machine import operators, questions
from cudalint.machine.effects.concurrency import managers, own_memory, parts
from cudalint.machine.effects.concurrency.receiving import received
from cudalint.machine.effects.receivers import context_of, ended_processes, library_object, library_of
from cudalint.machine.effects.stdlib import line_ups
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Closure, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.interpreter.core import Part
from cudalint.machine.interpreter.entry import LIVES_ON
from cudalint.machine.launch import launching, lending, workers
from cudalint.machine.launch.crossing import SENT_ON, Pickler, Transfer, carried, reachable, visited
from cudalint.machine.launch.launching import Ended, Start, Way
from cudalint.machine.messages import Channel
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Pending, Sent, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    NONE,
    TRUE,
    Atom,
    Const,
    Dev,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace

_QUEUE, _VALUE = "multiprocessing.Queue", "multiprocessing.Value"
# The field of one end of a pipe that says which of the two it is.
_END = "<channel>"
# The field of a connection that says at which address its processes met.
_MET = "<address>"


def lock(machine: Machine, call: Call) -> Results:
    """``Queue()``, ``Lock()``, ``Event()``, ``Value()``: they belong to the context that makes them."""
    state = call.state
    library = library_of(call)
    context = context_of(call)
    found = launching.ways(machine, state, library, context)
    if context is None:
        launching.fix_default(machine, state, library, call.site, call.label)
    names: Value = tuple(dict.fromkeys(Const(w.method) for w in found)) or const("?")
    kind = call.text("type") or f"multiprocessing.{call.path.rpartition('.')[2]}"
    default = not any(w.explicit for w in found)
    fields: dict[str, Value] = {
        "<lock>": names,
        "<default>": const(default),
        "<context>": context or NONE,
        "element": unknown(questions.RECEIVED, call.site),
    }
    machine.messages.any_made |= kind in (_QUEUE, _VALUE)
    origin = machine.chain(state, call.site, f"{call.label} belongs to the {'/'.join(strings(names))} context")
    made = LibraryObject(kind, fields, call.site, origin)
    if kind == _VALUE:
        machine.says(_shared(made), call.args[1] if len(call.args) > 1 else const(0), state, call.site)
    return [(state, (state.new(("lock", call.site), made),))]


def _shared(obj: LibraryObject) -> Channel:
    """What processes set a shared value to, whichever of them reads it."""
    return (obj.site, "value")


def set_value(machine: Machine, call: Call) -> Results:
    """``v.value = x``."""
    obj = library_object(call)
    name, given = (constant(call.args[0]), call.args[1]) if len(call.args) > 1 else (None, ())
    if obj is not None and isinstance(call.receiver, Ref) and isinstance(name, str):
        if name == "value":
            machine.says(_shared(obj), given, call.state, call.site)
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, name: given}))
    return [(call.state, NONE)]


def get_value(machine: Machine, call: Call) -> Results:
    """``v.value``, where this process has not set it: what it began with, or another process set it to."""
    obj = library_object(call)
    sym = ("attribute", call.site, call.receiver, "value")
    taken = [] if obj is None else received(machine, call, _shared(obj), sym)
    return taken or [(call.state, unknown(*sym))]


def pipe(machine: Machine, call: Call) -> Results:
    """``Pipe()``: two ends."""
    state = call.state
    machine.messages.any_made = True
    ends: list[Value] = []
    for i in range(2):
        fields: dict[str, Value] = {_END: const(i)}
        made = LibraryObject("multiprocessing.Connection", fields, call.site)
        ends.append((state.new(("pipe", call.site, i), made),))
    return [(state, (state.new(("pipe", call.site), Sequence("tuple", tuple(ends))),))]


def connection(machine: Machine, call: Call) -> Results:
    """``Client(address)``, ``listener.accept()``: a connection with whoever was started and is at that address."""
    state, kept = call.state, library_object(call)
    address = _address(machine, call.get("address") or (() if kept is None else kept.fields.get("address", ())), state)
    if address is None:
        return [(state, unknown("connection", call.site))]
    process = state.process
    if process.launch is not None:
        machine.peers.setdefault(address, set()).add("clean" if process.poison is None else "poisoned")
    met = () if process.launch is not None else tuple(map(Const, sorted(machine.peers.get(address, ()))))
    fields: dict[str, Value] = {_END: const(0), _MET: const(address), "<users>": met}
    made = LibraryObject("multiprocessing.Connection", fields, call.site)
    return [(state, (state.new(("connection", call.site), made),))]


def _address(machine: Machine, value: Value, state: State) -> Hashable | None:
    """Where processes find one another, if the program says so: a name, or a host with a port.

    A name that is not known, such as one in a temporary folder, is the same for all that are given it.
    """
    parts = machine.exact_items(value, state)
    found = tuple(map(_part_of_address, [value] if parts is None else parts))
    return found if found and None not in found else None


def _part_of_address(value: Value) -> Hashable:
    known = constant(value)
    if isinstance(known, str | int):
        return known
    atom = only(value)
    return atom.sym if isinstance(atom, Unknown) else None


def put(machine: Machine, call: Call) -> Results:
    """``q.put(x)`` and ``conn.send(x)``: x is pickled for the process that reads."""
    state = call.state
    value = call.get("obj") or NONE
    ref = call.receiver
    obj = library_object(call)
    if not isinstance(ref, Ref) or obj is None:
        return [(state, NONE)]
    machine.says(_channel(obj, from_outside=False), value, state, call.site)
    crossing = list(carried(value, state, Pickler.NAMES))
    found = [c for c in crossing if c.is_picklable and c.what != "lock"]
    if (into := ref if _END not in obj.fields else _other_end(ref)) is not None:
        own_memory.put(machine, call, into, found)
    if found or any(map(parts.taken, visited(value, state))):
        # What becomes of GPU memory is told by where it comes from.
        machine.messages.vague.add(_channel(obj, from_outside=False))
    bad = [c for c in crossing if not c.is_picklable]
    for one in bad:
        # A pipe pickles in the caller, a queue in its feeder thread.
        how = "crash" if call.path.endswith(".send") else "child-death"
        machine.emit(replace(_put_outcome(machine, call, state, Kind.UNPICKLABLE_CUDA, one.origin), how=how))
    if not found:
        _tell(machine, call, ref, value)
        _send_on(machine, call, value)
        return [(state, NONE)]
    process = state.process
    if process.dead:
        return [(state, NONE)]
    sent_before = next((c for c in found if c.is_received), None)
    if sent_before is not None:
        machine.emit(_sent_on(machine, call, sent_before.origin))
        return [(state, NONE)]
    shared = [c for c in found if c.is_shared]
    if shared:
        _meet_forwarders(machine, obj.site, process.identity, set(parts.on_gpu(machine, value, state)) or {()})
    if process.launch is not None:
        if not shared or _MET in obj.fields:
            return [(state, NONE)]
        chain = machine.chain(state, call.site, f"{call.label} shares GPU memory of this process")
        state.process = replace(process, pending=(*process.pending, Pending(call.site, chain, call.label, obj.site)))
        machine.sent.setdefault(obj.site, []).append(Sent(process.launch, call.site, chain))
        return [(state, NONE)]
    if shared or "poisoned" in strings(obj.fields.get("<users>", ())):
        _put_in_parent(machine, call, state, ref, obj, found[0].origin)
    return [(state, NONE)]


def _channel(obj: LibraryObject, *, from_outside: bool) -> Channel:
    """The queue, or the end of a pipe, that something comes out of which is taken from this one, or put into it."""
    end = constant(obj.fields.get(_END, NONE))
    return (obj.site, end if from_outside or not isinstance(end, int) else 1 - end)


# By methods of these names something is put into a channel.
_SENDING = frozenset({"put", "put_nowait", "send", "value"})


def given_away(machine: Machine, values: Iterable[Value], state: State) -> None:
    """What nobody knows has these values: it may put anything into their queues and pipes."""
    for ref in (ref for value in values for ref in reachable(value, state)):
        found = state.get(ref)
        machine.messages.any_may_say |= isinstance(found, Closure) and found.function.mentions(_SENDING)
        if not isinstance(found, LibraryObject):
            continue
        if line_ups.is_queue(found):
            machine.messages.vague.add(line_ups.channel(found))
        elif found.type == managers.PROXY:
            machine.messages.vague.add(managers.channel(found))
        elif "<lock>" in found.fields or _END in found.fields:
            ends = {_channel(found, from_outside=outside) for outside in (True, False)}
            machine.messages.vague |= {*ends, _shared(found)}
            state.store(ref, own_memory.lose_count(found))


# -- what is received, and sent on -----------------------------------------------------------------------------------

# The field of a channel that holds what was sent through it and names a GPU.
_TOLD = "<told>"


def _tell(machine: Machine, call: Call, ref: Ref, value: Value) -> None:
    """Keep what names a GPU for whoever reads it; processes that were started before, and read it, run once more."""
    state = call.state
    if state.process.dead or not any(_names_gpu(atom) for atom in visited(value, state)):
        return
    end = _other_end(ref) or ref
    found = state.get(end)
    if not isinstance(found, LibraryObject):
        return
    told = union([found.fields.get(_TOLD, ()), value])
    state.store(end, replace(found, fields={**found.fields, _TOLD: told}))
    for again in machine.listeners.get(end.address, []):
        again(state, call.frame, end, told)


def _names_gpu(atom: Atom) -> bool:
    device = atom if isinstance(atom, Dev) else None
    if isinstance(atom, Const) and isinstance(atom.value, str):
        device = operators.parse_device(atom.value)
    return device is not None and device.is_gpu


def _listens(machine: Machine, state: State, start: Start, ways: list[Way], channel: Ref) -> None:
    """A process was forked that reads a channel: what is told there later, it is told too."""
    forks = [way for way in ways if way.method == "fork"]
    if not forks or state.process.launch is not None:
        return
    before, once = state.clone(), replace(start, shares=False)
    done: set[Value] = set()

    def again(now: State, frame: Frame, end: Ref, told: Value) -> None:
        if now.process.identity != before.process.identity or told in done:
            return
        done.add(told)
        then = before.clone()
        found = then.get(end)
        transfer = Transfer(machine, now, then, Pickler.NAMES, before.process.identity)
        if isinstance(found, LibraryObject):
            then.store(end, replace(found, fields={**found.fields, _TOLD: transfer.value(told)}))
            for way in forks:
                workers.start(machine, then, frame, once, way)

    machine.listeners.setdefault(channel.address, []).append(again)


def _send_on(machine: Machine, call: Call, value: Value) -> None:
    """Something received is sent on: what that is shows where others send it."""
    if call.state.process.poison is not None:
        # It fails where it receives GPU memory, and that is told of who sends it.
        return
    own = call.state.process.identity
    for receiver, channel, way in filter(None, map(parts.taken, visited(value, call.state))):
        if receiver != own:
            continue
        outcome = _sent_on(machine, call, None)
        machine.forwarded.setdefault(channel, []).append((own, way, outcome))
        if any(sender != own and parts.leads(way, sent) for sender, sent in machine.sharers.get(channel, ())):
            machine.emit(outcome)


def _meet_forwarders(machine: Machine, channel: Site, sender: tuple[str, ...], sent: set[Part]) -> None:
    """GPU memory is sent through a channel: whoever was seen to send on what comes out of it cannot."""
    machine.sharers.setdefault(channel, set()).update((sender, part) for part in sent)
    kept = []
    for receiver, way, outcome in machine.forwarded.pop(channel, []):
        if receiver != sender and any(parts.leads(way, part) for part in sent):
            machine.emit(outcome)
        else:
            kept.append((receiver, way, outcome))
    machine.forwarded[channel] = kept


def _sent_on(machine: Machine, call: Call, origin: Chain | None) -> Outcome:
    """GPU memory of another process is sent on; a pipe pickles in the caller, a queue in its feeder thread."""
    launch = call.state.process.launch
    made = _put_outcome(machine, call, call.state, Kind.UNPICKLABLE_CUDA, origin)
    how = "crash" if call.path.endswith(".send") else "child-death"
    return replace(made, how=how, detail=SENT_ON, within=None if launch is None else launch.anchor)


def _put_in_parent(
    machine: Machine, call: Call, state: State, ref: Ref, obj: LibraryObject, origin: Chain | None
) -> None:
    users = strings(obj.fields.get("<users>", ()))
    chain = machine.chain(state, call.site, f"{call.label} shares GPU memory")
    machine.puts.setdefault(ref.address, []).append((call.site, chain, origin))
    if "poisoned" in users:
        machine.emit(replace(_put_outcome(machine, call, state, Kind.CUDA_TO_FORK, origin), how="child-death"))
    elif users:
        machine.emit(_put_outcome(machine, call, state, Kind.CUDA_ACROSS, origin))
        for holder in _holders(obj):
            lending.lend(state, call.site, holder)


def _holders(channel: LibraryObject) -> list[Site]:
    """Where the processes were started that hold a queue or one end of a pipe."""
    atoms = channel.fields.get("<holders>", ())
    return [atom.value for atom in atoms if isinstance(atom, Const) and isinstance(atom.value, Site)]


def _put_outcome(machine: Machine, call: Call, state: State, kind: Kind, origin: Chain | None) -> Outcome:
    return outcome_of(
        machine,
        state,
        kind,
        call.site,
        "cost",
        cause=origin,
        launcher=call.label,
        subject="CUDA tensor",
        started=machine.chain(state, call.site, f"{call.label} sends it"),
    )


def queue_users(machine: Machine, state: State, start: Start, inherited: list[Value], ended: list[Ended]) -> None:
    """A started process that holds a queue: what its parent puts there, this process unpickles."""
    process = state.process
    ways = launching.ways(machine, state, start.library, start.context)
    if not ways:
        return
    is_poison = process.driver is not None or process.poison is not None
    poisoned = is_poison and any(e.began and way.method == "fork" for e, way in zip(ended, ways, strict=False))
    mark = "poisoned" if poisoned else "clean"
    for value in inherited:
        for ref in _channels(value, state):
            obj = state.get(ref)
            if not isinstance(obj, LibraryObject):
                continue
            users = union([obj.fields.get("<users>", ()), const(mark)])
            holders = union([obj.fields.get("<holders>", ()), const(start.anchor)])
            _listens(machine, state, start, ways, ref)
            state.store(ref, replace(obj, fields={**obj.fields, "<users>": users, "<holders>": holders}))
            for site, chain, origin in machine.puts.get(ref.address, []):
                kind = Kind.CUDA_TO_FORK if poisoned else Kind.CUDA_ACROSS
                machine.emit(
                    outcome_of(
                        machine,
                        state,
                        kind,
                        site,
                        "child-death" if poisoned else "cost",
                        cause=origin,
                        launcher="Queue.put",
                        subject="CUDA tensor",
                        started=chain,
                    )
                )
                lending.lend(state, site, start.anchor)


def _channels(value: Value, state: State) -> list[Ref]:
    """The queues and pipes in a value; for one end of a pipe, the other."""
    result: list[Ref] = []
    for ref in reachable(value, state):
        found = state.get(ref)
        if isinstance(found, LibraryObject) and ("<lock>" in found.fields or _END in found.fields):
            result.append(ref)
            other = _other_end(ref)
            if other is not None:
                result.append(other)
    return result


def _other_end(ref: Ref) -> Ref | None:
    """What is sent into one end of a pipe comes out of the other."""
    match ref.address:
        case (("pipe", site, int(i)), count, identity):
            return Ref((("pipe", site, 1 - i), count, identity))
    return None


def _receive(machine: Machine, call: Call, channel: LibraryObject) -> None:
    """Take what other processes sent; where one has been joined before anything was taken, its memory is gone."""
    state, ref = call.state, call.receiver
    if not isinstance(ref, Ref) or _RECEIVED in channel.fields or state.process.dead:
        return
    state.store(ref, replace(channel, fields={**channel.fields, _RECEIVED: TRUE}))
    ended = ended_processes(state)
    for sent in machine.sent[channel.site]:
        if sent.launch.anchor in ended:
            machine.emit(
                outcome_of(
                    machine,
                    state,
                    Kind.PRODUCER_ENDS,
                    sent.site,
                    "crash",
                    cause=machine.chain(state, call.site, f"{call.label} receives it when that process has ended"),
                    effect=sent.where,
                    launcher=sent.launch.launcher,
                    subject="CUDA tensor",
                    launch=sent.launch,
                    within=sent.launch.anchor,
                )
            )


# The field of a channel from which this process has taken something.
_RECEIVED = "<received>"
# By these a process waits for what another says or does; for a lock it waits until nobody holds that.
_ANSWERS = frozenset({"get", "join", "recv", "wait"})
# What these wait for was not there before; what is taken from a channel may have been.
_LATER_ANSWERS = (".join", ".wait")
# What these give was put into the channel.
_TAKING = (".get", ".recv")


def wait(machine: Machine, call: Call) -> Results:
    """``q.get()``, ``event.wait()``, ``conn.recv()``: this process stays alive until another answers."""
    state = call.state
    pending = state.process.pending
    channel = library_object(call) if call.path.rpartition(".")[2] in _ANSWERS else None
    if channel is not None and channel.site in machine.sent:
        _receive(machine, call, channel)
    for holder in () if channel is None else _holders(channel):
        lending.awaited(machine, state, holder)
    if pending:
        launch = state.process.launch
        for sent in (one for one in pending if one.on_gpu):
            machine.emit(
                outcome_of(
                    machine,
                    state,
                    Kind.CUDA_ACROSS,
                    sent.site,
                    "cost",
                    effect=sent.where,
                    launcher=sent.sent_by,
                    subject="CUDA tensor",
                    launch=launch,
                    benign=channel is not None,
                    detail="" if channel is None else LIVES_ON,
                )
            )
        answered = call.path.endswith(_LATER_ANSWERS)
        state.process = replace(state.process, pending=tuple(p for p in pending if not (p.on_gpu or answered)))
    source = library_object(call)
    told = (questions.RECEIVED, call.site, state.process.identity, None if source is None else source.site)
    # What was said before tells nothing of what is said now.
    state.facts = questions.without(state.facts, told)
    if source is not None and call.path.endswith(_TAKING):
        if (failed := own_memory.take(machine, call, source)) is not None:
            return failed
        taken = received(machine, call, _channel(source, from_outside=True), told)
        if taken:
            return taken
    known = () if source is None else source.fields.get(_TOLD, ())
    return [(state, union([known, unknown(*told)]))]
