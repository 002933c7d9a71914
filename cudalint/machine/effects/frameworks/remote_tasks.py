"""Functions and classes that a scheduler runs elsewhere, with the GPUs that each says it needs: ray."""

from __future__ import annotations

from cudalint.machine.effects.concurrency.environments import call_methods
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.gpu.cuda import VISIBLE, is_known_set, is_set
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.servers.handlers import is_function
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import WORK, Class, Dict, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import NONE, Partial, Rank, Ref, Value, const, constant, only, unknown
from cudalint.machine.values import Lib as LibraryName
from cudalint.models.library import Spec
from cudalint.structs import replace

_PATH = "<path>"


def remote(machine: Machine, call: Call) -> Results:
    """``ray.remote(f)``, ``@ray.remote(num_gpus=1)``: what runs elsewhere, now or as a decorator."""
    work = call.args[0] if call.args else None
    needs = _needs_gpus(call)
    if needs and not _is_given(call):
        return [(call.state, (LibraryName("cudalint.identity"),) if work is None else work)]
    if work is None:
        return [(call.state, (Partial((LibraryName("cudalint.remote"),), (const(call.path), const(needs)), ()),))]
    return [(call.state, _remote(call, work, call.path, needs=needs))]


def decorated(machine: Machine, call: Call) -> Results:
    """The decorator that was made gets its function or class."""
    if len(call.args) < 3:
        return [(call.state, unknown("decorated", call.site))]
    path, needs, work = call.args[:3]
    return [(call.state, _remote(call, work, str(constant(path)), needs=constant(needs) is True))]


def given(machine: Machine, call: Call) -> Results:
    """A function that a scheduler runs in a process of its own, which sees the GPUs that it was given."""
    work, *args = call.args
    state = call.state
    state.process = state.process.with_environ(VISIBLE, unknown("environ", VISIBLE))
    return machine.call_value(work, args, call.kwargs, state, call.frame, call.site)


def _remote(call: Call, work: Value, path: str, *, needs: bool) -> Value:
    """What runs elsewhere: with GPUs of its own it is what it was, and sees these alone."""
    if not needs:
        return _without_gpus(call, call.state, work, path)
    atom = only(work)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Class):
        call.state.store(atom, replace(found, given_gpus=True))
    if is_function(work, call.state):
        return (Partial((LibraryName("cudalint.remote.given"),), (work,), ()),)
    return work


def _without_gpus(call: Call, state: State, work: Value, path: str) -> Value:
    if not _is_class(work, state) and not is_function(work, state):
        return work
    fields: dict[str, Value] = {WORK: work, _PATH: const(path)}
    made = LibraryObject("cudalint.remote", fields, call.site)
    return (state.new(("remote", call.site), made),)


def itself(value: Value, state: State) -> Value:
    """The function or class that a scheduler runs elsewhere; of anything else, that."""
    held = state.get(atom) if isinstance(atom := only(value), Ref) else None
    return held.fields.get(WORK, value) if isinstance(held, LibraryObject) else value


def _is_class(work: Value, state: State) -> bool:
    return isinstance(atom := only(work), Ref) and isinstance(state.get(atom), Class)


def _needs_gpus(call: Call) -> bool:
    """Whether it says that it needs GPUs, or may say so where the code does not show it.

    An environment of its own may tell the scheduler to leave the visible GPUs alone.
    """
    key = call.text("key", "num_gpus")
    if not _is_given(call) or not _is_shown(call, call.get(key.partition(".")[0])):
        return True
    asked = choices.argument(call, key)
    return asked is not None and constant(asked) not in (0, None)


def _is_shown(call: Call, holder: Value | None) -> bool:
    """Whether a dict of needs is there to be read, or none is given; a number is itself."""
    if "." not in call.text("key") or holder in (None, NONE):
        return True
    held = call.state.get(atom) if isinstance(atom := only(holder or ()), Ref) else None
    return isinstance(held, Dict) and held.exact and "runtime_env" not in held.items


def _is_given(call: Call) -> bool:
    """Whether the scheduler certainly leaves it the GPUs alone that it asks for."""
    return not call.open and call.get("runtime_env") is None


def given_gpus(machine: Machine, call: Call) -> Results:
    """``ray.get_gpu_ids()``: what the system calls the GPUs of this process, which counts those it sees from 0."""
    spared = call.text("unless-env")
    if spared and is_known_set(call.state, spared):
        return [(call.state, unknown("gpus", call.site))]
    numbers = Sequence("list", None, element=(Rank("system"),))
    return [(call.state, (call.state.new(("gpus", call.site), numbers),))]


def options(machine: Machine, call: Call) -> Results:
    """``f.options(num_gpus=1)``: the same with other needs, which are said as they are where it is made."""
    held = library_object(call)
    if held is None or call.receiver is None:
        return [(call.state, unknown("remote", call.site))]
    model = machine.library.function(str(constant(held.fields[_PATH]))) or {}
    told = replace(call, spec={**call.spec, "key": model.get("key", "num_gpus")})
    if not _needs_gpus(told):
        return [(call.state, (call.receiver,))]
    work = held.fields[WORK]
    return [(call.state, _remote(call, work, "", needs=True) if _is_given(call) else work)]


def start(machine: Machine, call: Call) -> Results:
    """``f.remote(x)``: a process that imports nothing of this one runs it; of a class it makes an instance.

    What that does to its own process is looked at, and nothing else of it: what it gives is not known here.
    """
    held = library_object(call)
    if held is not None:
        model = machine.library.function(str(constant(held.fields[_PATH]))) or {}
        _run_without_gpus(machine, call, held.fields[WORK], model)
    return [(call.state, unknown("remote", call.site))]


def run(machine: Machine, call: Call) -> Results:
    """``start_simulation(client_fn=f, client_resources={"num_gpus": 1})``: it has the function run elsewhere, which
    makes an object whose methods are called there.
    """
    work = choices.argument(call, call.text("function")) or ()
    is_shown = _is_shown(call, call.get(call.text("key").partition(".")[0]))
    asked = constant(choices.argument(call, call.text("key")) or NONE)
    if is_shown and not call.open and is_function(work, call.state) and asked in (0, None):
        given = [unknown("given", call.site)]
        _run_without_gpus(machine, replace(call, args=given, kwargs={}), work, call.spec)
    return [(call.state, unknown("remote", call.site))]


def map_rows(machine: Machine, call: Call) -> Results:
    """``dataset.map_batches(Embed, num_gpus=1)``: other processes call the function, or an object of the class, with
    rows.
    """
    work = choices.argument(call, call.text("function")) or ()
    needs = _needs_gpus(call)
    ready = elsewhere(machine, call, call.spec, needs=needs)
    if needs:
        ready.process = ready.process.with_environ(VISIBLE, unknown("environ", VISIBLE))
    inner, rows = Frame(call.frame.scope, call.frame.module), [unknown("rows", call.site)]
    entered = set(machine.record.entered)
    if _is_class(work, ready):
        given = machine.exact_items(call.kwargs.get("fn_constructor_args", NONE), ready) or []
        for after, made in machine.call_value(work, given, {}, ready, inner, call.site):
            machine.call_value(made, rows, {}, after, inner, call.site)
    elif is_function(work, ready):
        machine.call_value(work, rows, {}, ready, inner, call.site)
    machine.record.entered &= entered
    mapped = LibraryObject(call.text("type"), {}, call.site)
    return [(call.state, (call.state.new(("dataset", call.site), mapped),))]


def elsewhere(machine: Machine, call: Call, model: Spec, *, needs: bool) -> State:
    """A process of the scheduler, which imports nothing of this one."""
    ready = call.state.clone()
    chain = machine.chain(ready, call.site, f"another process runs it{'' if needs else ', and it asks for no GPU'}")
    before = ready.process
    spared = str(model.get("unless-env", ""))
    sees_gpus = needs or (bool(spared) and is_set(before, spared))
    ready.process = Process(
        identity=(*before.identity, f"remote {call.site.module} {call.site.ordinal}"),
        label="remote worker",
        is_main=False,
        environment=before.environment,
        withheld=None if sees_gpus else (chain, str(model.get("value", ""))),
    )
    return ready


def _run_without_gpus(machine: Machine, call: Call, work: Value, model: Spec) -> None:
    ready = elsewhere(machine, call, model, needs=False)
    inner = Frame(call.frame.scope, call.frame.module)
    # Others may have it run elsewhere, too: what lies in it is still looked at as what nobody calls.
    entered = set(machine.record.entered)
    for after, made in machine.call_value(work, call.args, call.kwargs, ready, inner, call.site):
        if _is_class(work, after) or "function" in model:
            call_methods(machine, replace(call, state=after, frame=inner), made)
    machine.record.entered &= entered
