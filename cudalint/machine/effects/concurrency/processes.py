"""Single processes: ``Process``, its subclasses, ``os.fork`` and fresh programs."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.ir.walk import mentions
from cudalint.machine import exceptions
from cudalint.machine.assumptions import Asking
from cudalint.machine.classes import lineage
from cudalint.machine.effects.concurrency import programs
from cudalint.machine.effects.concurrency.channels import queue_users
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.receivers import (
    JOINED,
    Starter,
    context_of,
    initialised,
    library_of,
    own_run,
    pickler_of,
    starter,
)
from cudalint.machine.effects.stdlib import settings
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import children, fork_hooks, launching, lending, noting, workers
from cudalint.machine.launch.arguments import arguments, named_arguments, task
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Ended, Start, Way
from cudalint.machine.launch.pickling import STARTED
from cudalint.machine.state import State
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Lib,
    Partial,
    Ref,
    Task,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace

# The fields of a process that say that it was waited for, and whether it was told to run in the one that starts it.
_ENDED, _HERE = "<process ended>", "<here>"
# The field that says by which number it ends, where that is known.
_CODE = "<code>"
# What may end a process by any number, wherever it is.
_ENDS_ELSEWHERE = frozenset({"_exit", "abort", "kill", "terminate"})
# What it has before it is started.
_UNSTARTED = ("exitcode", "pid")


def process(machine: Machine, call: Call) -> Results:
    """``Process(target=, args=)``."""
    state = call.state
    method = call.text("method")
    fields: dict[str, Value] = {
        "<library>": const(library_of(call)),
        "<context>": context_of(call) or (const(method) if method else NONE),
        "_target": call.get(call.text("function", "target")) or NONE,
        "_args": call.get("args") or NONE,
        "_kwargs": call.get("kwargs") or NONE,
        "daemon": call.get("daemon") or NONE,
        _HERE: const(choices.spared(call)),
        **dict.fromkeys(_UNSTARTED, NONE),
    }
    if initialised(call, fields):
        return [(state, NONE)]
    origin = machine.chain(state, call.site, "makes the process")
    ref = state.new(
        ("process", call.site), LibraryObject(call.text("type", "multiprocessing.Process"), fields, call.site, origin)
    )
    return [(state, (ref,))]


def process_start(machine: Machine, call: Call) -> Results:
    """``p.start()``: forks or spawns here."""
    state = call.state
    found = starter(call.receiver, state)
    if found is None:
        return [(state, NONE)]
    fields = found.fields
    if fields.get(_HERE) == TRUE:
        return run_target(machine, call)
    if bootstrapping(machine, call, "Process.start()", found.site) or daemon_child(machine, call, "Process.start()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    _unmark(found, state)
    library = (strings(fields.get("<library>", ())) or ["multiprocessing"])[0]
    context = fields.get("<context>", NONE)
    if context == NONE and found.cls is not None:
        context = _class_context(machine, found.cls, state)
    if context == NONE:
        launching.fix_default(machine, state, library, call.site, "Process.start()")
    launching.fix_by_fresh(machine, state, library, context, call.site)
    work, inherited = _process_work(machine, state, found)
    chain = machine.chain(state, call.site, ".start() starts the process")
    start = Start(
        launcher="Process",
        family="process",
        anchor=found.site,
        chain=chain,
        many=False,
        reused=False,
        daemon=constant(fields.get("daemon", NONE)) is True,
        failures={"body": "child-death", "unpickle": "child-death", "parent": "crash"},
        library=library,
        tasks=() if work is None else (work,),
        inherited=tuple(inherited),
        pickler=pickler_of(machine, library),
        label=_process_label(state, fields),
        context=context,
        listens=_asks_for_code(machine, call),
    )
    before = len(machine.record.outcomes)
    ended = [
        workers.start(machine, state, call.frame, start, way)
        for way in launching.ways(machine, state, library, context)
    ]
    lending.lent_since(machine, state, before, found.site)
    queue_users(machine, state, start, inherited, ended)
    _mark(found, STARTED, state, _code_of(ended) if start.listens else ())
    if any(e.failed is not None and e.failed.how == "crash" and e.failed.certain for e in ended):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "PicklingError")))
    return [(state, NONE)]


def _asks_for_code(machine: Machine, call: Call) -> bool:
    """Whether a module asks by which numbers its processes ended, and nothing in it ends them in another way."""
    module = machine.program.module(call.frame.module)
    return module is not None and mentions(module, {"exitcode"}) and not mentions(module, _ENDS_ELSEWHERE)


def _code_of(ended: list[Ended]) -> Value:
    """The number by which a process ends, whichever way it takes; empty where that is not known."""
    codes = {0 for each in ended if each.children}
    for each in ended:
        if each.failed is not None:
            return ()
        for state, raised in each.raised:
            code = constant(exceptions.exit_code(raised.value, state)) if "SystemExit" in raised.names else 1
            if code is not None and not isinstance(code, int):
                return ()
            codes.add(code or 0)
    return const(codes.pop()) if len(codes) == 1 else ()


def _mark(found: Starter, mark: str, state: State, code: Value = ()) -> None:
    """Remember that a process was started, and tied to the one that started it, or that it was waited for."""
    match state.get(found.ref):
        case LibraryObject(fields=fields) as obj:
            state.store(found.ref, replace(obj, fields=_marked(fields, mark, code)))
        case Instance(attributes=attributes) as instance:
            state.store(found.ref, replace(instance, attributes=_marked(attributes, mark, code)))


def _unmark(found: Starter, state: State) -> None:
    """A process starts once: one that was started stands for another one here, as in the second round of a loop."""
    instance = state.get(found.ref)
    if isinstance(instance, Instance) and STARTED in instance.attributes:
        left = {name: value for name, value in instance.attributes.items() if name != STARTED}
        state.store(found.ref, replace(instance, attributes=left))


def _marked(fields: Mapping[str, Value], mark: str, code: Value) -> dict[str, Value]:
    made = {name: value for name, value in fields.items() if name not in _UNSTARTED}
    made[mark] = TRUE
    if code:
        made[_CODE] = code
    if mark == _ENDED and _CODE in made:
        made[_UNSTARTED[0]] = made[_CODE]
    return made


def _class_context(machine: Machine, cls: Ref, state: State) -> Value:
    """The context that a class took its ``Process`` base from: ``class W(ctx.Process)``, ``class W(SpawnProcess)``."""
    for atom in (atom for found in lineage(cls, state) for base in found.bases for atom in base):
        match atom:
            case Bound(receiver=context):
                return (context,)
            case Lib(path=path) if (spec := machine.library.function(path)) is not None and "method" in spec:
                return const(spec["method"])
    return NONE


def _process_label(state: State, fields: dict[str, Value]) -> str:
    atom = only(fields.get("_target", NONE))
    found = state.get(atom) if isinstance(atom, Ref) else None
    name = getattr(getattr(found, "function", None), "name", None)
    return f"child process {name}" if isinstance(name, str) else "child process"


def _process_work(machine: Machine, state: State, found: Starter) -> tuple[Task | None, list[Value]]:
    run = own_run(machine, found, state)
    if run is not None:
        return task(run, []), [(found.ref,), run]
    fields = found.fields
    target = fields.get("_target", NONE)
    if target == NONE:
        return None, []
    args = arguments(machine, state, fields.get("_args"))
    kwargs = named_arguments(state, fields.get("_kwargs"))
    return task(target, args, kwargs), [target, *args, *kwargs.values()]


def run_target(machine: Machine, call: Call) -> Results:
    """``run()`` of a process or a thread, as their classes have it: calls the target here."""
    found = starter(call.receiver, call.state)
    target = NONE if found is None else found.fields.get("_target", NONE)
    if found is None or target == NONE:
        return [(call.state, NONE)]
    args = arguments(machine, call.state, found.fields.get("_args"))
    named = named_arguments(call.state, found.fields.get("_kwargs"))
    results = machine.call_value(target, args, named, call.state, call.frame, call.site)
    return [(after, NONE) for after, _ in results]


def process_join(machine: Machine, call: Call) -> Results:
    """``p.join()``: the child has ended; the GPU has room again."""
    state = call.state
    if state.process.gpu_sharers:
        state.process = replace(state.process, gpu_sharers=())
    found = starter(call.receiver, state)
    if found is not None and call.path.endswith(".join") and call.get("timeout") in (None, NONE):
        lending.awaited(machine, state, found.site)
        _mark(found, _ENDED, state)
        if machine.sent:
            _mark(found, JOINED, state)
    return [(state, NONE)]


def process_alive(machine: Machine, call: Call) -> Results:
    """``p.is_alive()``: where it says no, the child has ended, and the GPU has room again."""
    state, answer = call.state, Unknown(("method", call.site, call.state.process.identity))
    found = starter(call.receiver, state)
    if found is not None and (STARTED not in found.fields or _ENDED in found.fields):
        return [(state, FALSE)]
    if not state.process.gpu_sharers or (known := state.fact(answer.sym)) is True:
        return [(state, (answer,))]
    if known is False:
        state.process = replace(state.process, gpu_sharers=())
        return [(state, (answer,))]
    machine.record.asked.setdefault(answer.sym, Asking(call.site, None, True))
    ended = state.split(answer.sym)
    ended.process = replace(ended.process, gpu_sharers=())
    return [(state, (answer,)), (ended, (answer,))]


def fork(machine: Machine, call: Call) -> Results:
    """``os.fork()``: both processes go on from here; or the children alone, while who forked waits for them."""
    state = call.state
    chain = machine.chain(state, call.site, "os.fork() makes a child")
    start = Start(
        launcher="os.fork",
        family="fork",
        anchor=call.site,
        chain=chain,
        many=False,
        reused=False,
        daemon=False,
        failures={"body": "child-death"},
        label="forked child",
    )
    way = Way("fork", True, explicit=True)
    noting.note_launch(machine, state, start, way, None, None)
    launch = launching.launch_of(start, way, "body", call.site)
    child = children.fork(machine, state, start, launch)
    if call.text("kind") == "children":
        return [(child, unknown("child", call.site))]
    if call.path == "pty.fork":
        pairs = []
        for current, pid in ((child, 0), (state, 4242)):
            pair = Sequence("tuple", (const(pid), unknown("fd", call.site)))
            pairs.append((current, (current.new(("pty", call.site), pair),)))
        return list(pairs)
    return [(child, const(0)), (state, const(4242))]


def after_fork(machine: Machine, call: Call) -> Results:
    """``multiprocessing.util.register_after_fork(object, f)``: ``f(object)`` runs in each child that forks."""
    if len(call.args) == 2:
        fork_hooks.keep(call.state, {fork_hooks.IN_CHILD: (Partial(call.args[1], (call.args[0],), ()),)})
    return [(call.state, NONE)]


def at_fork(machine: Machine, call: Call) -> Results:
    """``os.register_at_fork(before=f)``: in a child it is too late for anything that fails there to be noticed."""
    moments = (fork_hooks.BEFORE, fork_hooks.AFTER, fork_hooks.IN_CHILD)
    fork_hooks.keep(call.state, {name: call.kwargs.get(name, ()) for name in moments})
    return [(call.state, NONE)]


def fresh_process(machine: Machine, call: Call) -> Results:
    """``subprocess.run`` and its like: a fresh program, which reads the environment as it is now.

    What ``preexec_fn`` names runs in the forked child, before that becomes the program.
    """
    state = call.state
    settings.may_write_by(machine, call)
    if not _runs_without_gpu(machine, call):
        workers.forget_late_variable(machine, state)
    noting.note_program(machine, state, call.path, call.site)
    programs.run(machine, call)
    first = call.kwargs.get("preexec_fn", NONE)
    if any(isinstance(atom, Ref | Bound | Partial) for atom in first):
        start = Start(
            launcher=f"{call.path.rpartition('.')[2]}(preexec_fn=...)",
            family="process",
            anchor=call.site,
            chain=machine.chain(state, call.site, "forks, and calls preexec_fn before it runs the program"),
            many=False,
            reused=False,
            daemon=False,
            failures={"body": "crash"},
            tasks=(task(first, []),),
            inherited=(first,),
            label="child before its program",
            shares=False,
        )
        ended = workers.start(machine, state, call.frame, start, Way("fork", True, explicit=True))
        if workers.raise_in_parent(machine, state, call.frame, [ended]):
            return []
    return [(state, unknown("subprocess", call.site))]


def _runs_without_gpu(machine: Machine, call: Call) -> bool:
    """Whether the program that is run is known to look at no GPU's number: ``["git", "rev-parse", "HEAD"]``."""
    given = call.args[0] if call.args else call.kwargs.get("args", ())
    words = machine.exact_items(given, call.state)
    named = constant(given if words is None else words[0] if words else ())
    program = named.split()[:1] if isinstance(named, str) else []
    return any(machine.library.traits.has(word.rpartition("/")[2], "program-without-gpu") for word in program)


def become_program(machine: Machine, call: Call) -> Results:
    """``os.execv()`` and its like: this process becomes a fresh program, and nothing after it runs."""
    fresh_process(machine, call)
    return machine.fail(call.state, call.frame, Raised(None, ()))
