"""Libraries that start a number of workers at once: environments of reinforcement learning, servers, clusters."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.concurrency.pools import handed_to_pool
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.gpu.arrays import like
from cudalint.machine.effects.gpu.queries import gpu_call
from cudalint.machine.effects.receivers import context_of, library_of, method_of
from cudalint.machine.effects.servers import gunicorn, web
from cudalint.machine.effects.servers.components import methods_called
from cudalint.machine.effects.servers.handlers import keep_handler, registered
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import arguments, count_of, failures, named_arguments, number_of, task
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Start
from cudalint.machine.state import State
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Task,
    Value,
    const,
    constant,
    only,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace

_IMPORT: Value = (Lib("importlib.import_module"),)
# What a worker does with the environment that it made, over and over.
_STEPS = (("reset", 0), ("step", 1))
# What a wrapper's own reset() and step() call, by the name of the library's class below.
_WRAPPERS = {"ObservationWrapper": "observation", "RewardWrapper": "reward", "ActionWrapper": "action"}


def environments(machine: Machine, call: Call) -> Results:
    """``SubprocVecEnv([make, ...])``: a worker for each environment, which makes it and steps it.

    By ``args`` a list names what one function is given for each.
    """
    made = call.get(call.text("function")) or ()
    makers = machine.elements(made, call.state) if not call.text("args") else _made_of(machine, call, made)
    results: Results = []
    for state in _tried_here(machine, call, makers[:1]):
        current = replace(call, state=state)
        if _is_refused(machine, current):
            machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
            continue
        stepped = task((Lib("cudalint.environment"),), [union(makers) or unknown("maker", call.site)])
        if _starts(machine, current, (stepped,), made, len(makers) or None):
            results.append((state, (state.new(("environments", call.site), LibraryObject(call.path, {}, call.site)),)))
    return results


def _made_of(machine: Machine, call: Call, function: Value) -> list[Value]:
    """``VectorEnv(make, [(1,), (2,)])``: one function, with the arguments of each environment."""
    rows = machine.elements(call.get(call.text("args")) or (), call.state)
    return [(Partial(function, tuple(arguments(machine, call.state, row)), ()),) for row in rows]


def copied_environments(machine: Machine, call: Call) -> Results:
    """``concat_vec_envs_v1(env, 4, num_cpus=2)``: workers that step copies of one environment; none for 0 or 1."""
    state = call.state
    count = call.get(call.text("workers"))
    if count in (None, const(0)) or not count_of(count, default_many=False) or not choices.is_asked(call):
        return [(state, unknown("environments", call.site))]
    if _is_refused(machine, call):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    made = call.get(call.text("function")) or NONE
    stepped = task((Lib("cudalint.environment"),), [(Partial((Lib("cudalint.identity"),), (made,), ()),)])
    if not _starts(machine, call, (stepped,), made, number_of(count)):
        return []
    return [(state, (state.new(("environments", call.site), LibraryObject(call.path, {}, call.site)),))]


def _tried_here(machine: Machine, call: Call, makers: list[Value]) -> list[State]:
    """The states after the first environment was made in this process, to ask for its spaces."""
    if call.text("kind") != "tried-here" or not makers:
        return [call.state]
    made = machine.call_value(makers[0], [], {}, call.state, call.frame, call.site)
    return [state for state, _ in made]


def environment(machine: Machine, call: Call) -> Results:
    """A worker's environment: it is made, reset and stepped."""
    results: Results = []
    for made, value in machine.call_value(call.args[0], [], {}, call.state, call.frame, call.site):
        states = [made]
        atom = only(value)
        found = made.get(atom) if isinstance(atom, Ref) else None
        for name, count in _steps(machine, found, made) if isinstance(found, Instance) else ():
            method = machine.user_method(found, name, made) if isinstance(found, Instance) else None
            if method is None or not isinstance(atom, Ref):
                continue
            args = [unknown("action", call.site)] * count
            done = (machine.call_value((Bound(method, atom),), args, {}, s, call.frame, call.site) for s in states)
            states = [after for each in done for after, _ in each]
        results.extend((state, NONE) for state in states)
    return results


def _steps(machine: Machine, found: Instance, state: State) -> tuple[tuple[str, int], ...]:
    """The methods of an environment that a worker calls, with how many arguments, itself or by way of a wrapper."""
    base = machine.library_base(found.cls, state) or ""
    hook = _WRAPPERS.get(base.rpartition(".")[2])
    return _STEPS if hook is None else (*_STEPS, (hook, 1))


def components(machine: Machine, call: Call) -> Results:
    """``Flow(Step(Handler()))``, ``flow.add(uses=Handler)``: workers for each component: a class, object, function.

    ``kind = "several"``: they are run here, one after the other, where not several workers are asked for;
    ``kind = "kept"``: they are all that were made, wherever.
    """
    state = call.state
    given = [choices.argument(call, call.text("function")) or ()] if call.text("function") else call.args
    given = [item for value in given for item in _parts(machine, state, value)]
    if call.text("kind") == "kept":
        given = [made for _, made in registered(state, "component")]
    if call.text("requires"):
        state, given = _with_required(machine, call, given)
        call = replace(call, state=state)
    count = choices.argument(call, call.text("workers")) if call.text("workers") else None
    if count is not None and _is_pool(count, state):
        return handed_to_pool(machine, replace(call, spec={**call.spec, "key": call.text("workers")}))
    is_alone = not count_of(count and questions.if_not_given(count), default_many=False) or choices.idle(machine, call)
    if call.text("kind") == "several" and is_alone:
        return _run_here(machine, call, given)
    if _is_refused(machine, call):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    options = named_arguments(state, call.get(call.text("kwargs"))) if call.text("kwargs") else {}
    for value in given:
        work = task((Lib("cudalint.component"),), [value, *methods_called(call)], options)
        number = 1 if count is None else number_of(count)
        if not _starts(machine, call, (work,), value, number, Pickler.NAMES):
            return []
    if call.receiver is not None:
        return [(state, (call.receiver,))]
    return [(state, (state.new(("components", call.site), LibraryObject(call.path, {}, call.site)),))]


def _with_required(machine: Machine, call: Call, given: list[Value]) -> tuple[State, list[Value]]:
    """The components, behind those that each names by its method, and these by theirs: one of each class of them."""
    state, method = call.state, call.text("requires")
    found, known = list(given), _classes(given, call.state)
    waiting = list(given)
    while waiting:
        value = waiting.pop(0)
        atom = only(value)
        instance = state.get(atom) if isinstance(atom, Ref) else None
        own = machine.user_method(instance, method, state) if isinstance(instance, Instance) else None
        if own is None or atom is None:
            continue
        called = machine.call_value((Bound(own, atom),), [], {}, state, call.frame, call.site)
        results = [(after, named) for s, named in called for after in machine.exhausted([named], s, call.frame)]
        if len(results) != 1:
            continue
        state, named = results[0]
        for part in _parts(machine, state, named):
            if not (cls := _classes([part], state)) <= known:
                known |= cls
                waiting.append(part)
                found.insert(0, part)
    return state, found


def _classes(values: list[Value], state: State) -> set[Ref]:
    """The classes of the program that these are instances of."""
    objects = (state.get(atom) for value in values if isinstance(atom := only(value), Ref))
    return {found.cls for found in objects if isinstance(found, Instance)}


def keep_component(machine: Machine, call: Call) -> Results:
    """``Step(...)`` within ``with Pipeline()``: an object of the program's class is made, which the pipeline finds."""
    if call.receiver is not None:
        keep_handler(call.state, "component", call.site, (call.receiver,))
    return [(call.state, NONE)]


def _is_pool(value: Value, state: State) -> bool:
    """Whether it is a pool, or another object with workers, and not their number."""
    atom = only(value)
    return isinstance(state.get(atom) if isinstance(atom, Ref) else None, LibraryObject | Instance)


def _parts(machine: Machine, state: State, value: Value) -> list[Value]:
    """The components that an argument is: those of a list, what a dict holds under its names, or it itself."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return list(found.items.values()) if isinstance(found, Dict) else machine.elements(value, state) or [value]


def _run_here(machine: Machine, call: Call, given: list[Value]) -> Results:
    states = [call.state]
    for value in given:
        args = [value, *methods_called(call)]
        ran = (component(machine, replace(call, args=args, kwargs={}, state=s)) for s in states)
        states = [after for results in ran for after, _ in results]
    return [(state, unknown("built", call.site)) for state in states]


def component(machine: Machine, call: Call) -> Results:
    """A worker's component: it is made, if it is a class, and each of its methods is called that the library calls."""
    given, handed, *names = call.args
    results: Results = []
    for state, value in _made(machine, call, given):
        states = [state]
        texts = [text for each in names for text in strings(each)]
        for name in named_methods(machine, state, value, texts):
            first = handed if name == texts[0] else NONE
            states = [after for current in states for after in _called(machine, call, current, value, name, first)]
        results.extend((after, NONE) for after in states)
    return results


def call_methods(machine: Machine, call: Call, value: Value) -> None:
    """All that a class of the program lets others call of an instance, each by itself."""
    atom = only(value)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    for name in _defined(machine, call.state, found.cls) if isinstance(found, Instance) else ():
        if not name.startswith("_"):
            _called(machine, call, call.state.clone(), value, name, NONE)


def named_methods(machine: Machine, state: State, value: Value, names: list[str]) -> list[str]:
    """The methods that a library calls; by ``exposed_*`` all that a class of the program calls so."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    begun = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    own = _defined(machine, state, found.cls) if isinstance(found, Instance) and begun else []
    return [*(name for name in names if not name.endswith("*")), *(name for name in own if name.startswith(begun))]


def _defined(machine: Machine, state: State, cls: Ref) -> list[str]:
    """The names that a class and the classes of the program below it define."""
    scopes = [state.get(entry.scope) for entry in machine.mro(cls, state) if isinstance(entry, Class)]
    return sorted({name for scope in scopes if isinstance(scope, Scope) for name in scope.variables})


def _made(machine: Machine, call: Call, given: Value) -> Results:
    atom = only(given)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Closure):
        args = [unknown("item", call.site, number) for number in range(len(found.function.params))]
        return machine.call_value(given, args, {}, call.state, call.frame, call.site)
    if isinstance(found, Class):
        return machine.call_value(given, [], call.kwargs, call.state, call.frame, call.site)
    return [(call.state, given)]


def _called(machine: Machine, call: Call, state: State, value: Value, name: str, first: Value) -> list[State]:
    """The states after a method of a component was called, if it has that, with as much as it takes."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    method = machine.user_method(found, name, state) if isinstance(found, Instance) else None
    closure = state.get(method) if isinstance(method, Ref) else None
    if method is None or atom is None or not isinstance(closure, Closure):
        return [state]
    args = [unknown("item", call.site, number) for number in range(len(closure.function.params) - 1)]
    if first == NONE or not args:
        done = machine.call_value((Bound(method, atom),), args, {}, state, call.frame, call.site)
        return [s for after, made in done for s in machine.exhausted([made], after, call.frame)]
    # What is handed its device makes ready what all that follows uses.
    launch = state.process.launch
    if launch is not None:
        state.process = replace(state.process, launch=replace(launch, stage="initializer"))
    done = machine.call_value((Bound(method, atom),), [first, *args[1:]], {}, state, call.frame, call.site)
    for after, _ in done:
        after.process = replace(after.process, launch=launch)
    return [after for after, _ in done]


def environments_of(machine: Machine, call: Call) -> Results:
    """``make_vec_env(make, n_envs, vec_env_cls=)``: several of one environment, here or in what that class starts.

    ``key`` is the parameter that names the class, ``workers`` the one that says how many.
    """
    state = call.state
    made = named_arguments(state, call.get("env_kwargs"))
    maker: Value = (Partial(call.get(call.text("function")) or NONE, (), tuple(sorted(made.items()))),)
    cls = call.get(call.text("key", "vec_env_cls")) or NONE
    if cls == NONE:
        return environment(machine, replace(call, args=[maker]))
    several = count_of(call.get(call.text("workers", "n_envs")), default_many=False)
    listed: Value = (state.new(("makers", call.site), Sequence("list", (maker,) * (2 if several else 1))),)
    options = named_arguments(state, call.get("vec_env_kwargs"))
    return machine.call_value(cls, [listed], options, state, call.frame, call.site)


def starts_workers(machine: Machine, call: Call) -> Results:
    """``uvicorn.run("main:app", workers=4)``: so many workers, which run what is not seen here.

    What its model says of other arguments by ``when`` starts one, or with ``kind = "only-when"`` has to hold;
    ``kind = "named"``: they only run what has a name; ``kind = "always"``: there are some unless none is asked for, or
    ``when`` and ``idle`` say so; ``kind = "listed"``: one for each of a list of several. By ``gpu`` this process, too,
    computes.
    """
    state = call.state
    count = _listed(machine, call) if call.text("kind") == "listed" else _asked_for(call)
    several = count_of(count, default_many=False)
    target = _target(call) if call.text("kind") == "named" else ""
    named = target is not None
    if not named:
        web.serve(machine, call, call.get(call.params[0]) or ())
    chosen = choices.depends(call) and choices.chosen(call) is not None
    match call.text("kind"):
        case "only-when":
            starts = several and chosen
        case "always":
            starts = count != const(0) and choices.is_asked(call) and not choices.idle(machine, call)
        case _:
            starts = several or chosen
    if target and not starts:
        _serve_named(machine, call, target)
    if not named or not starts:
        return _served(machine, call)
    if _is_refused(machine, call):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    work = _serves(machine, call, target) if target else ()
    if call.text("runs"):
        work = (*work, task((Lib(call.text("runs")),), []))
    if not _starts(machine, call, work, (), number_of(count) if several else 1):
        return []
    return _served(machine, call)


def spread(machine: Machine, call: Call) -> Results:
    """``model.encode(texts, device=["cuda:0", "cuda:1"])``: a worker for each device of a list.

    Else this process computes: on the device that is named, or where the object lies.
    """
    given = call.get(call.text("workers")) or NONE
    atom = only(given)
    if given == NONE:
        return like(machine, call)
    plain = {key: value for key, value in call.spec.items() if key != "when"}
    if isinstance(call.state.get(atom) if isinstance(atom, Ref) else None, Sequence):
        return starts_workers(machine, replace(call, spec={**plain, "kind": "always"}))
    told = {**plain, "gpu": "init", "context": True, "device": call.text("workers")}
    return gpu_call(machine, replace(call, spec=told))


def _served(machine: Machine, call: Call) -> Results:
    """What goes on in this process beside the workers."""
    if call.text("gpu"):
        return gpu_call(machine, call)
    return [(call.state, unknown("served", call.site))]


def _listed(machine: Machine, call: Call) -> Value:
    """How many things a list names; one where it is none, ``device_id=0`` or ``device_id=[0, 1]``."""
    given = call.get(call.text("workers")) or NONE
    atom = only(given)
    if not isinstance(call.state.get(atom) if isinstance(atom, Ref) else None, Sequence):
        return const(1)
    items = machine.exact_items(given, call.state)
    return const(len(items)) if items is not None else unknown("listed", call.site)


def _target(call: Call) -> str | None:
    """The text that names the application, ``"module:app"``; None where the application itself is given."""
    texts = strings(call.get(call.params[0]) or ()) if call.params else []
    return texts[0] if texts else None


def _serves(machine: Machine, call: Call, target: str) -> tuple[Task, ...]:
    """What a worker does that is told an application by its name: it imports its module, and answers requests."""
    module, _, name = target.partition(":")
    home = machine.program.resolve(call.frame.module, module, 0)
    if home is None or not name:
        return (task(_IMPORT, [const(module)]),)
    is_factory = constant(call.kwargs.get("factory", NONE)) is True
    return (gunicorn.serving_task(home, name, call.site, is_factory=is_factory),)


def _serve_named(machine: Machine, call: Call, target: str) -> None:
    """The application of a module that is imported here answers requests."""
    module, _, name = target.partition(":")
    frame, site = call.frame, call.site
    for state, found in machine.call_value(_IMPORT, [const(module)], {}, call.state.clone(), frame, site):
        for after, app in machine.attribute(found, name, state, frame, site) if name else ():
            web.serve(machine, replace(call, state=after), app)


def _asked_for(call: Call) -> Value | None:
    """How many workers a call asks for, by an argument or by an option of the configuration that it is given."""
    holder = call.text("args")
    if not holder:
        return call.get(call.text("workers"))
    atom = only(call.get(holder) or ())
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    return found.fields.get(call.text("key")) if isinstance(found, LibraryObject) else None


def cluster(machine: Machine, call: Call) -> Results:
    """``Client(n_workers=4)``, ``LocalCluster()``: workers of their own, unless they are threads or elsewhere."""
    state = call.state
    given = call.args[0] if call.args else call.get("address") or call.get("scheduler_file") or NONE
    atom = only(given)
    held = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(held, LibraryObject) and held.type == "distributed.Client":
        return [(state, given)]
    if isinstance(held, LibraryObject) and held.type == _THREADS:
        return [(state, given)]
    is_elsewhere = given != NONE and not (isinstance(atom, Const) and isinstance(atom.value, int))
    if is_elsewhere or (given == NONE and call.open):
        return [(state, unknown("cluster", call.site))]
    if call.get("processes") == FALSE:
        made = LibraryObject(_THREADS, {"<library>": const("threading"), "<context>": NONE}, call.site)
        return [(state, (state.new(("cluster", call.site), made),))]
    if _is_refused(machine, call):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    count = call.get("n_workers")
    if not _starts(machine, call, (), (), number_of(count)):
        return []
    fields: dict[str, Value] = {
        "<library>": const(library_of(call)),
        "<context>": const(_told(call, "method-env") or "spawn"),
        "<daemon>": const(_is_daemon(call)),
        "<many>": const(count_of(count)),
        "<count>": count or NONE,
        "<reused>": TRUE,
    }
    return [(state, (state.new(("cluster", call.site), LibraryObject("distributed.Client", fields, call.site)),))]


_THREADS = "concurrent.futures.ThreadPoolExecutor"


def told(call: Call, name: str) -> str:
    """What a variable of the environment says; nothing where it, or its name, is empty."""
    return next(iter(strings(call.state.process.environ(name) or ())), "") if name else ""


def _told(call: Call, key: str) -> str:
    """What the variable says that an entry names for one of its settings."""
    return told(call, call.text(key))


def _is_daemon(call: Call) -> bool:
    """Whether workers are daemons: by the model, unless the variable that it names says otherwise."""
    name = call.text("daemon-env")
    chosen = call.state.process.environ(name) if name else None
    return call.flag("daemon") and chosen != FALSE and _told(call, "daemon-env").lower() not in ("false", "0")


def _is_refused(machine: Machine, call: Call) -> bool:
    what = call.label
    return bootstrapping(machine, call, what) or daemon_child(machine, call, what)


def _starts(
    machine: Machine,
    call: Call,
    work: tuple[Task, ...],
    sent: Value,
    count: int | None,
    pickler: Pickler = Pickler.GLOBALS,
) -> bool:
    """Start the workers; whether the caller goes on."""
    state = call.state
    context = context_of(call)
    if context is None or context == NONE:
        method = _told(call, "method-env")
        context = const(method) if method else (method_of(call) or NONE)
    library = library_of(call)
    if context == NONE:
        launching.fix_default(machine, state, library, call.site, call.label)
    start = Start(
        launcher=call.label.rpartition(".")[2].removesuffix("()"),
        family="executor",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{call.label} starts workers"),
        many=count != 1,
        reused=False,
        daemon=_is_daemon(call),
        failures={"body": "crash", "unpickle": "crash", **failures(call)},
        library=library,
        tasks=work,
        inherited=(sent,),
        pickler=pickler,
        label="worker",
        count=count,
        context=context,
    )
    ended = [
        workers.start(machine, state, call.frame, start, way)
        for way in launching.ways(machine, state, library, context if context != NONE else None)
    ]
    return not workers.raise_in_parent(machine, state, call.frame, ended)
