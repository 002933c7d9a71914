"""Library functions that fork inside: notebook launchers and maps over datasets."""

from __future__ import annotations

from cudalint.machine import counting
from cudalint.machine.effects.gpu import arrays, choices
from cudalint.machine.effects.receivers import method_of
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import arguments, count_of, failures, named_arguments, task
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.launch.forbidden import bootstrapping
from cudalint.machine.launch.launching import Start
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.values import EACH, NONE, Const, Lib, Partial, Rank, Ref, Value, const, constant, only, unknown
from cudalint.structs import replace


def _told(call: Call) -> tuple[tuple[str, Value], ...]:
    """The variables of the environment that a launcher sets for its workers: a star is another value for each."""
    said = call.spec.get("sets")
    given = said.items() if isinstance(said, dict) else ()
    return tuple((str(name), (Rank("local"),) if value == "*" else const(str(value))) for name, value in given)


def _passed(call: Call) -> dict[str, Value]:
    """What a launcher itself gives the function that it runs, by name: texts, or what nobody can see."""
    said = call.spec.get("passes")
    given = said.items() if isinstance(said, dict) else ()
    return {str(name): const(str(value)) if value else unknown("passed", call.site, str(name)) for name, value in given}


def _how_many(call: Call) -> Value | None:
    """How many workers a call asks for, or one for each row of what it is given for them."""
    given = choices.argument(call, call.text("workers")) if call.text("workers") else None
    held = call.state.get(atom) if isinstance(atom := only(given or ()), Ref) else None
    return const(len(held.items)) if isinstance(held, Dict) and held.exact else given


def fork_launcher(machine: Machine, call: Call) -> Results:
    """A library function that forks: accelerate.notebook_launcher, datasets.map(num_proc=)."""
    state = call.state
    workers_ = _how_many(call)
    function = choices.argument(call, call.text("function", "function")) or _own(call)
    alone = _without_workers(machine, call, function, workers_)
    if alone is not None:
        return alone
    is_map = call.text("kind") == "map"
    if is_map:
        args, named = _rows(machine, call, EACH)
    else:
        args = _handed(call) or arguments(machine, state, call.get("args"))
        named = {**named_arguments(state, call.get(call.text("kwargs"))), **_passed(call)}
    ways = launching.ways(machine, state, call.text("library", "multiprocessing"), method_of(call))
    if all(way.method == "spawn" for way in ways) and bootstrapping(machine, call, call.label):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    certain_count = workers_ is None or isinstance(only(workers_), Const) or _is_enough(workers_, is_map)
    forks = all(way.method == "fork" for way in ways)
    start = replace(
        _start(machine, call, count_of(workers_), forks),
        tasks=tuple(task(one, args, named) for one in machine.elements(function, state) or [function]),
        inherited=(function, *named.values()),
    )
    ended = [
        workers.start(machine, state, call.frame, start, replace(w, certain=w.certain and certain_count)) for w in ways
    ]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    refusal = _refusal(machine, call)
    if refusal is not None:
        return machine.fail(state, call.frame, Raised(refusal, ("ValueError", "RuntimeError")))
    return [(state, _mapped(call, state))]


def _without_workers(machine: Machine, call: Call, function: Value, workers_: Value | None) -> Results | None:
    """What a call gives that starts no process; None where it starts some."""
    state, is_map = call.state, call.text("kind") == "map"
    needs_number = bool(call.text("workers")) and not call.flag("unasked")
    alone = needs_number and (workers_ is None or workers_ in (NONE, const(0)) or not function)
    is_one = workers_ is not None and not count_of(workers_) and not call.flag("unasked")
    if alone or not choices.is_asked(call) or choices.idle(machine, call):
        if is_map and function:
            args, named = _rows(machine, call, NONE)
            results = machine.call_value(function, args, named, state, call.frame, call.site)
            return [(s, _mapped(call, s)) for s in merge([s for s, _ in results])]
        if choices.idle(machine, call):
            return [(state, _mapped(call, state))]
        is_one = is_one or workers_ in (NONE, const(0), const(1))
    if is_map or not is_one:
        return None
    return machine.call_value(function, arguments(machine, state, call.get("args")), {}, state, call.frame, call.site)


def _start(machine: Machine, call: Call, many: bool, forks: bool) -> Start:
    """What its model says of the workers that a launcher starts, whatever these run."""
    state, is_map = call.state, call.text("kind") == "map"
    return Start(
        launcher=call.label,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{call.label} {'forks' if forks else 'starts'} workers"),
        many=many,
        reused=is_map,
        daemon=call.flag("daemon", is_map),
        failures={"body": "crash", "unpickle": "crash", **failures(call)},
        library=call.text("library", "multiprocessing"),
        pickled=tuple(_handed(call)),
        pickler=Pickler.GLOBALS if call.text("pickle") == "value" else Pickler.NAMES,
        rank="local" if call.text("kind") == "ranks" else None,
        label="forked worker" if forks else "worker",
        looks=bool(call.text("refuses")),
        environment=_told(call),
    )


def _handed(call: Call) -> list[Value]:
    """What a launcher pickles for its workers by itself, whatever starts them: the parameter ``args`` of its model."""
    given = call.get(call.text("args")) if call.text("args") else None
    return [] if given is None else [given]


def _is_enough(count: Value, is_map: bool) -> bool:
    """Whether a number of which only the least is known starts workers in any case, as of processors; one is enough
    for a map."""
    return (counting.at_least(count) or 0) >= (1 if is_map else 2)


def _rows(machine: Machine, call: Call, rank: Value) -> tuple[list[Value], dict[str, Value]]:
    """What a map calls its function with: rows, and if it is asked for these, where they are and who goes over them."""
    columns = machine.exact_items(call.get("input_columns") or NONE, call.state)
    given = [unknown("example", call.site, i) for i in range(len(columns or (0,)))]
    if constant(call.get("with_indices") or NONE) is True:
        given.append(unknown("indices", call.site))
    if constant(call.get("with_rank") or NONE) is True:
        given.append(rank)
    return given, named_arguments(call.state, call.get(call.text("kwargs")))


def _refusal(machine: Machine, call: Call) -> Outcome | None:
    """What a launcher raises since a framework was initialised before, whatever its workers do."""
    process = call.state.process
    cause = dict(process.initialised).get(call.text("refuses")) if call.text("refuses") else None
    if cause is None or process.dead:
        return None
    return outcome_of(
        machine,
        call.state,
        Kind.FORK_LAUNCHER,
        call.site,
        "crash",
        cause=cause,
        launcher=call.label,
        subject="training",
        started=machine.chain(call.state, call.site, f"{call.label} forks workers"),
    )


def _own(call: Call) -> Value:
    """The function of the library itself that workers run, where the model names one."""
    return (Lib(call.text("runs")),) if call.text("runs") else ()


def _mapped(call: Call, state: State) -> Value:
    if call.text("kind") == "map" and call.receiver is not None:
        return (call.receiver,)
    return unknown("launched", call.site)


def from_generator(machine: Machine, call: Call) -> Results:
    """``Dataset.from_generator(f, gen_kwargs={"shards": [...]}, num_proc=4)``: here, or shard by shard in workers.

    There are as many workers as shards at most: the rows of the lists that the generator is given.
    """
    function = call.get("generator")
    if function is None:
        return [(call.state, arrays.returned(machine, call, call.state))]
    given = named_arguments(call.state, call.get("gen_kwargs"))
    run: Value = (Partial((Lib("cudalint.generate"),), (function,), tuple(sorted(given.items()))),)
    count = call.get("num_proc") if any(_is_sharded(machine, value, call.state) for value in given.values()) else None
    forks = replace(call, args=[], kwargs={"generator": run, "num_proc": count or NONE})
    return [(state, arrays.returned(machine, call, state)) for state, _ in fork_launcher(machine, forks)]


def _is_sharded(machine: Machine, value: Value, state: State) -> bool:
    """Whether an argument is a list of several rows, or of some number of them."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    if not isinstance(found, Sequence) or found.kind != "list":
        return False
    items = machine.exact_items(value, state)
    return items is None or len(items) > 1


def generate(machine: Machine, call: Call) -> Results:
    """A generator is called, and goes through all that it yields."""
    function, *args = call.args
    made = machine.call_value(function, args, call.kwargs, call.state, call.frame, call.site)
    return [(after, NONE) for state, value in made for after in machine.exhausted([value], state, call.frame)]


def unknown_map(machine: Machine, call: Call) -> Results:
    """``x.map(f, num_proc=4)`` of an unknown object: only the argument ``num_proc`` shows that it is a dataset."""
    if "num_proc" not in call.kwargs:
        return [(call.state, unknown("map", call.site, call.state.process.identity))]
    return fork_launcher(machine, call)
