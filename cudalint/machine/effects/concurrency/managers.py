"""Managers: a server process of their own, the objects that it makes, and what is stored in these."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.concurrency.receiving import received
from cudalint.machine.effects.receivers import (
    Starter,
    context_of,
    initialised,
    library_object,
    library_of,
    starter,
)
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Dict, Instance, LibraryObject, Object, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import kept_state
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import arguments, task
from cudalint.machine.launch.crossing import ELSEWHERE, Carried, Pickler, carried
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import FRESH, Ended, Start
from cudalint.machine.messages import Channel
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Sent, State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    TRUE,
    Lib,
    Ref,
    Snapshot,
    Task,
    Tensor,
    Value,
    const,
    constant,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

# What the managers of the standard library make for everybody, as dicts and queues that several processes use.
_PROXIES = frozenset({"dict", "list", "Namespace", "Queue", "JoinableQueue"})
# The types that a program registers for the managers that it defines, by name.
_REGISTERED = Ref(("types of managers",))
PROXY = "multiprocessing.managers.Proxy"
# A proxy of an object of the program: where it lies, and what its manager's process was asked to do for it, in order.
_REFERENT = "multiprocessing.managers.Referent"
_SERVER, _ASKED = "<server>", "<asked "
_MOST_ASKED = 4
_SYNC = "multiprocessing.Manager"
_NAMESPACE = "multiprocessing.managers.NamespaceProxy"


def manager(machine: Machine, call: Call) -> Results:
    """``Manager()``: a server process, from now on."""
    if bootstrapping(machine, call, "Manager()") or daemon_child(machine, call, "Manager()"):
        return machine.fail(call.state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    context = context_of(call) or call.kwargs.get("ctx")
    if context is None:
        launching.fix_default(machine, call.state, library_of(call), call.site, "Manager()")
    launching.fix_by_fresh(machine, call.state, library_of(call), context or NONE, call.site)
    fields: dict[str, Value] = {
        "<context>": context or NONE,
        "<poisoned>": const(_forks_poisoned(machine, call, context)),
    }
    made = LibraryObject(_SYNC, fields, call.site)
    return [(call.state, (call.state.new(("manager", call.site), made),))]


def _forks_poisoned(machine: Machine, call: Call, context: Value | None) -> bool:
    """Whether the server forks now, from a process that used CUDA: it can make nothing of GPU memory."""
    found = launching.ways(machine, call.state, library_of(call), context)
    return call.state.process.driver is not None and bool(found) and all(w.method not in FRESH for w in found)


# -- managers that a program defines -------------------------------------------------------------------------------


def base(machine: Machine, call: Call) -> Results:
    """``BaseManager(address, authkey, ctx=)``: starts nothing yet."""
    fields: dict[str, Value] = {"<context>": call.kwargs.get("ctx", NONE)}
    if initialised(call, fields):
        return [(call.state, NONE)]
    made = LibraryObject("multiprocessing.managers.BaseManager", fields, call.site)
    return [(call.state, (call.state.new(("manager", call.site), made),))]


def register(machine: Machine, call: Call) -> Results:
    """``Models.register("Model", Model)``: what a manager makes in its server under this name."""
    state = call.state
    name, function = constant(call.get("typeid") or ()), call.get("callable")
    if isinstance(name, str) and function is not None:
        known = state.get(_REGISTERED)
        fields = known.fields if isinstance(known, LibraryObject) else {}
        state.store(_REGISTERED, LibraryObject("cudalint.registered", {**fields, name: function}, call.site))
    return [(state, NONE)]


def begin(machine: Machine, call: Call) -> Results:
    """``manager.start(initializer)``, or entering it: its server starts from this process as it is now."""
    state, held = call.state, starter(call.receiver, call.state)
    if bootstrapping(machine, call, "manager.start()") or daemon_child(machine, call, "manager.start()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    if held is None:
        return [(state, NONE)]
    context = held.fields.get("<context>", NONE)
    forks = const(_forks_poisoned(machine, call, context))
    now = {**held.fields, "<snapshot>": (Snapshot(state.clone()),), "<poisoned>": forks}
    state.store(held.ref, _with(state.get(held.ref), now))
    initializer = call.get("initializer") or NONE
    if initializer != NONE:
        first = task(initializer, arguments(machine, state, call.get("initargs")))
        ended = _in_server(machine, call, state.clone(), context, first, "start()", "runs its initializer")
        if workers.raise_in_parent(machine, state, call.frame, ended):
            return []
    return [(state, (held.ref,) if call.path.endswith("__enter__") else NONE)]


def _with(found: Object | None, fields: dict[str, Value]) -> Object:
    """A manager with what it keeps."""
    if isinstance(found, Instance):
        return replace(found, attributes=fields)
    assert isinstance(found, LibraryObject)
    return replace(found, fields=fields)


def make(machine: Machine, call: Call) -> Results:
    """``manager.Model(...)``: its server makes one, and gives a proxy for it; ``manager.dict()`` is there always."""
    state, name = call.state, call.path.rpartition(".")[2]
    held = starter(call.receiver, state)
    if held is not None and name in _PROXIES and "<poisoned>" in held.fields and _has_proxies(machine, held, state):
        return [(state, _proxy(machine, call, name, held.fields["<poisoned>"]))]
    types = state.get(_REGISTERED)
    function = types.fields.get(name) if isinstance(types, LibraryObject) else None
    server = None if held is None else kept_state(held.fields.get("<snapshot>", NONE))
    if function is None or held is None or server is None:
        return [(state, unknown("proxy", call.site, state.process.identity))]
    context = held.fields.get("<context>", NONE)
    making = task(function, list(call.args), call.kwargs)
    ended = _in_server(machine, call, server, context, making, name, f"makes {name}()")
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    if not all(_is_object(value, child) for one in ended for child, value in one.children):
        return [(state, unknown("proxy", call.site, state.process.identity))]
    fields: dict[str, Value] = {
        _SERVER: held.fields["<snapshot>"],
        "<context>": context,
        "<kind>": const(name),
        f"{_ASKED}0": (making,),
        ELSEWHERE: TRUE,
    }
    proxy = LibraryObject(_REFERENT, fields, call.site)
    return [(state, (state.new(("proxy", call.site), proxy),))]


def _has_proxies(machine: Machine, held: Starter, state: State) -> bool:
    """Whether a manager is one that makes dicts and queues without being told how (SyncManager)."""
    if held.cls is not None:
        return _SYNC in machine.mro(held.cls, state)
    found = state.get(held.ref)
    return isinstance(found, LibraryObject) and found.type == _SYNC


def _is_object(value: Value, state: State) -> bool:
    """Whether something is an object of a class of the program."""
    atom = only(value)
    return isinstance(atom, Ref) and isinstance(state.get(atom), Instance)


def _in_server(
    machine: Machine, call: Call, server: State, context: Value, asked: Task, kind: str, does: str, again: bool = False
) -> list[Ended]:
    """What a manager's process is told to do, as that started: from the state of this process at that time.

    ``again``: it is the same process that made the object.
    """
    values = (*asked.args, *(value for _, value in asked.kwargs))
    start = Start(
        launcher=f"manager.{kind}",
        family="process",
        anchor=call.site,
        chain=machine.chain(call.state, call.site, f"the manager's process {does}"),
        many=False,
        reused=False,
        daemon=False,
        failures={"body": "crash"},
        tasks=(asked,),
        pickled=(*call.args, *call.kwargs.values()),
        inherited=(asked.function, *values),
        label="manager's process",
        context=context,
        shares=not again,
    )
    found_ways = launching.ways(machine, server, "multiprocessing", context)
    return [workers.start(machine, call.state, call.frame, start, way, server) for way in found_ways]


def ask(machine: Machine, call: Call) -> Results:
    """``proxy.method(...)``: the manager's process calls it, on the object as what was asked before has left it."""
    state, proxy, name = call.state, library_object(call), call.path.rpartition(".")[2]
    server = None if proxy is None else kept_state(proxy.fields[_SERVER])
    answer = unknown("asked", call.site, state.process.identity, len(state.facts))
    if proxy is None or server is None or not isinstance(call.receiver, Ref) or state.process.dead:
        return [(state, answer)]
    before = [value for field, value in proxy.fields.items() if field.startswith(_ASKED)]
    asked = (task(const(name), list(call.args), call.kwargs),)
    whole = task((Lib(f"{_REFERENT}.<serve>"),), [*before, asked])
    context = proxy.fields["<context>"]
    kind = str(constant(proxy.fields["<kind>"]))
    ended = _in_server(machine, call, server, context, whole, kind, f"calls {name}()", again=True)
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    if len(before) < _MOST_ASKED and asked not in before:
        fields = {**proxy.fields, f"{_ASKED}{len(before)}": asked}
        state.store(call.receiver, replace(proxy, fields=fields))
    return [(state, answer)]


def serve(machine: Machine, call: Call) -> Results:
    """In the manager's process: the object is made, and its methods are called one after the other."""
    making, *asked = [atom for value in call.args for atom in value if isinstance(atom, Task)]
    paths = _done(machine, call, making, making.function, call.state)
    for one in asked:
        name = str(constant(one.function))
        paths = [
            (later, made)
            for state, made in paths
            for after, method in machine.attribute(made, name, state, call.frame, call.site)
            for later, _ in _done(machine, call, one, method, after)
        ]
    return paths


def _done(machine: Machine, call: Call, what: Task, function: Value, state: State) -> Results:
    return machine.call_value(function, list(what.args), dict(what.kwargs), state, call.frame, call.site)


def _proxy(machine: Machine, call: Call, kind: str, poisoned: Value) -> Value:
    """A proxy for a new dict, list, namespace or queue, with what that begins with."""
    state = call.state
    fields = {"<poisoned>": poisoned, "<kind>": const(kind), ELSEWHERE: TRUE}
    given = call.args[0] if call.args else NONE
    atom = only(given)
    held = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(held, Dict):
        fields.update({_item(const(key)): value for key, value in held.items.items()})
    elif kind == "list":
        fields[_EACH] = union(machine.elements(given, state))
    if kind in ("Namespace", "dict"):
        fields.update({_item(const(name)): value for name, value in call.kwargs.items()})
    machine.messages.any_made |= kind.endswith("Queue")
    made = LibraryObject(_NAMESPACE if kind == "Namespace" else PROXY, fields, call.site)
    return (state.new(("proxy", call.site), made),)


# -- what is stored ------------------------------------------------------------------------------------------------


def store(machine: Machine, call: Call) -> Results:
    """``proxy[key] = x``, ``queue.put(x)``: x is pickled to the server, and again to whoever reads it."""
    state, proxy = call.state, library_object(call)
    if proxy is None or state.process.dead:
        return [(state, NONE)]
    values = (*call.args, *call.kwargs.values())
    for value in values:
        machine.tells(value, state)
    if _is_queue(proxy):
        machine.says(channel(proxy), call.args[0] if call.args else NONE, state, call.site)
    found = [c for v in values for c in carried(v, state, Pickler.NAMES) if c.what not in ("lock", "unpicklable")]
    if not found:
        _keep(call, proxy)
        return [(state, NONE)]
    kind = constant(proxy.fields.get("<kind>", NONE))
    poisoned = proxy.fields.get("<poisoned>") == TRUE
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.CUDA_TO_FORK if poisoned else Kind.CUDA_ACROSS,
            call.site,
            "crash" if poisoned else "cost",
            cause=found[0].origin,
            launcher=f"Manager().{kind}()",
            subject="CUDA tensor",
            started=machine.chain(state, call.site, "the manager's process is sent it"),
            launch=state.process.launch,
        )
    )
    if not poisoned:
        _keep(call, proxy)
        _note_sender(machine, call, proxy, found)
    return [(state, NONE)]


def _note_sender(machine: Machine, call: Call, proxy: LibraryObject, found: list[Carried]) -> None:
    """Remember for other processes what a worker handed to a manager's."""
    launch = call.state.process.launch
    if launch is not None and any(map(_is_handle, found)):
        chain = machine.chain(call.state, call.site, "the manager's process is sent it")
        sent = Sent(launch, call.site, chain)
        machine.sent.setdefault(proxy.site, []).append(sent)
        for reader in machine.readers.get(proxy.site, []):
            if reader.state.process.identity != call.state.process.identity:
                machine.emit(_refused_later(machine, reader, proxy, sent))


def _keep(call: Call, proxy: LibraryObject) -> None:
    """Remember what was stored, under its key or name, or as one of the elements, and where that was."""
    if not isinstance(call.receiver, Ref) or not call.args:
        return
    name = call.path.rpartition(".")[2]
    fields = {**proxy.fields, _WHERE: const(call.site)}
    if name in ("__setitem__", "__setattr__") and isinstance(constant(call.args[0]), str | int):
        fields[_item(call.args[0])] = call.args[-1]
    else:
        fields[_EACH] = union([fields.get(_EACH, ()), call.args[-1]])
    call.state.store(call.receiver, replace(proxy, fields=fields))


def item(machine: Machine, call: Call) -> Results:
    """``proxy[key]``, ``proxy.get(key)``, ``queue.get()``: what this process stored, or another one since."""
    proxy = library_object(call)
    return [(call.state, _changed(call))] if proxy is None else _taken(machine, call, proxy)


def _taken(machine: Machine, call: Call, proxy: LibraryObject) -> Results:
    stored = proxy.fields.get(_item(call.args[0]) if call.args else _EACH) or proxy.fields.get(_EACH, ())
    sent = [c for c in carried(stored, call.state, Pickler.NAMES) if _is_handle(c)]
    if sent and not call.state.process.dead:
        return _refused(machine, call, proxy, sent[0])
    if not stored and not call.state.process.dead and (by_others := machine.sent.get(proxy.site)):
        return _refused_of_other(machine, call, proxy, by_others[0])
    if _is_queue(proxy) and call.path.endswith(".get") and not call.state.process.dead:
        told = (questions.RECEIVED, call.site, call.state.process.identity, proxy.site)
        call.state.facts = questions.without(call.state.facts, told)
        if taken := received(machine, call, channel(proxy), told):
            return taken
    if _is_queue(proxy) and not stored and not call.state.process.dead:
        # It waits for what another process stores, which is refused as well.
        waiting = machine.readers.setdefault(proxy.site, [])
        if all(reader.site != call.site for reader in waiting):
            waiting.append(replace(call, state=call.state.clone()))
    return [(call.state, union([stored, _changed(call)]))]


def _is_queue(proxy: LibraryObject) -> bool:
    return str(constant(proxy.fields.get("<kind>", NONE))).endswith("Queue")


def channel(proxy: LibraryObject) -> Channel:
    """What a proxy of a queue stands for, in whichever process."""
    return (proxy.site, PROXY)


def each(machine: Machine, call: Call) -> Results:
    """``for x in proxy``, ``proxy.values()``: the manager's process sends all that it holds, one by one or at once."""
    proxy = library_object(call)
    keys = call.path.endswith("__iter__") and proxy is not None and proxy.fields.get("<kind>") != const("list")
    if proxy is None or keys:
        return [(call.state, unknown("keys", call.site))]
    held = [value for name, value in proxy.fields.items() if name == _EACH or name.startswith(_ITEM)]
    whole = replace(proxy, fields={**proxy.fields, _EACH: union(held)})
    results: Results = []
    for state, value in _taken(machine, replace(call, args=[]), whole):
        results.append((state, (state.new(("each", call.site), Sequence("list", None, value)),)))
    return results


def _is_handle(sent: Carried) -> bool:
    """Whether something travels as a handle of the memory that it lies in."""
    return sent.what == "model" or (isinstance(sent.atom, Tensor) and sent.atom.is_shared)


def _refused(machine: Machine, call: Call, proxy: LibraryObject, sent: Carried) -> Results:
    """The manager's process received GPU memory, which it cannot send on to whoever reads it."""
    where = constant(proxy.fields.get(_WHERE, NONE))
    site = where if isinstance(where, Site) else call.site
    refused = replace(_refusal(machine, call, proxy, site), certain=sent.certain)
    if sent.origin is not None:
        refused = replace(refused, cause=sent.origin.steps())
    return machine.fail(call.state, call.frame, Raised(refused, ("RemoteError",)))


def _refused_of_other(machine: Machine, call: Call, proxy: LibraryObject, sent: Sent) -> Results:
    """The same of what another process stored, which that process was started for."""
    refused = _refused_later(machine, call, proxy, sent)
    return machine.fail(call.state, call.frame, Raised(refused, ("RemoteError",)))


def _refused_later(machine: Machine, call: Call, proxy: LibraryObject, sent: Sent) -> Outcome:
    return replace(_refusal(machine, call, proxy, sent.site), cause=sent.where.steps(), within=sent.launch.anchor)


def _refusal(machine: Machine, call: Call, proxy: LibraryObject, site: Site) -> Outcome:
    return outcome_of(
        machine,
        call.state,
        Kind.UNPICKLABLE_CUDA,
        site,
        "crash",
        launcher=f"Manager().{constant(proxy.fields.get('<kind>', NONE))}()",
        subject="CUDA tensor",
        effect=machine.chain(call.state, call.site, "the manager's process cannot send on what it received"),
        launch=call.state.process.launch,
        detail=": its manager receives it, but cannot send it on to who reads it",
        within=site,
    )


_EACH = "<element>"
_ITEM = "<item "
# The place of the last store.
_WHERE = "<where>"


def _item(key: Value) -> str:
    return f"{_ITEM}{constant(key)!r}>"


def _changed(call: Call) -> Value:
    """What another process may have stored there."""
    return unknown("stored", call.site, call.state.process.identity)
