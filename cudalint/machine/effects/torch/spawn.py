"""Ranks that ``torch.multiprocessing`` starts."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib.environment import RENDEZVOUS
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import lending, workers
from cudalint.machine.launch.arguments import arguments, by_number, count_of, number_of, task
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Start, Way
from cudalint.machine.values import (
    NONE,
    TRUE,
    Bound,
    Lib,
    Partial,
    Rank,
    Ref,
    Value,
    constant,
    only,
    strings,
    unknown,
)

# What a launch gives that does not wait for its ranks.
CONTEXT = "cudalint.ranks"


def count_at_start(call: Call) -> int | None:
    """How many ranks are started: one by default."""
    given = call.get("nprocs")
    return 1 if given is None else number_of(given)


def spawn(machine: Machine, call: Call) -> Results:
    """``torch.multiprocessing.spawn`` and ``start_processes``: ranks, by spawn unless the call names another method."""
    name = call.path.rpartition(".")[2]
    if bootstrapping(machine, call, f"{name}()") or daemon_child(machine, call, f"{name}()"):
        return machine.fail(call.state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    return [result for one in by_number(machine, call, "nprocs") for result in _spawn(machine, one, name)]


def _spawn(machine: Machine, call: Call, name: str) -> Results:
    state = call.state
    given = None if name == "spawn" else call.get("start_method")
    methods = ["spawn"] if given is None else strings(given)
    function = call.get("fn") or ()
    many = count_of(call.get("nprocs"), default_many=False)
    rank = Rank("local", among=count_at_start(call))
    args: list[Value] = [(rank,), *arguments(machine, state, call.get("args"))]
    daemon = constant(call.get("daemon") or NONE) is True
    waits = constant(call.get("join") or TRUE) is True
    start = Start(
        launcher=f"mp.{name}",
        family="spawn",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{name}() starts the ranks"),
        many=many,
        reused=False,
        daemon=daemon,
        failures={"body": "crash" if waits else "child-death", "unpickle": "crash"},
        tasks=(task(function, args),),
        inherited=(function, *args),
        rank="local",
        label="rank",
        count=count_at_start(call),
        waits=waits,
    )
    before = len(machine.record.outcomes)
    ended = [
        workers.start(machine, state, call.frame, start, Way(m, len(methods) == 1, explicit=True)) for m in methods
    ]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    if waits:
        return [(state, NONE)]
    lending.lent_since(machine, state, before, call.site)
    return [(state, (state.new(("ranks", call.site), LibraryObject(CONTEXT, {}, call.site)),))]


def elastic(machine: Machine, call: Call) -> Results:
    """``elastic_launch(config, function)``: starts the ranks when it is called."""
    given = call.get(call.text("args")) or NONE, call.get(call.text("function")) or NONE
    return [(call.state, (Partial((Lib("cudalint.elastic"),), given, ()),))]


def agent(machine: Machine, call: Call) -> Results:
    """``elastic_launch(config, function)(*args)``: the agent starts the ranks, and tells them where they meet."""
    state = call.state
    config, function, *args = call.args
    if not any(isinstance(atom, Ref | Bound | Partial) for atom in function):
        # A program, by its name.
        return [(state, unknown("results", call.site))]
    found = state.get(atom) if isinstance(atom := only(config), Ref) else None
    fields = found.fields if isinstance(found, LibraryObject) else {}
    methods = strings(fields.get("start_method", ())) or ["spawn"]
    if "spawn" in methods and bootstrapping(machine, call, "elastic_launch()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    ranks = fields.get("nproc_per_node")
    start = Start(
        launcher="elastic_launch",
        family="agent",
        anchor=call.site,
        chain=machine.chain(state, call.site, "the elastic agent starts the ranks"),
        many=count_of(ranks),
        reused=False,
        daemon=False,
        failures={"body": "crash", "unpickle": "crash"},
        tasks=(task(function, args),),
        inherited=(function, *args),
        rank="local",
        label="rank",
        count=number_of(ranks),
        environment=tuple((name, unknown(name, call.site)) for name in RENDEZVOUS),
        waits=True,
    )
    ways = [Way(method, len(methods) == 1, explicit=True) for method in methods]
    ended = [workers.start(machine, state, call.frame, start, way) for way in ways]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    return [(state, unknown("results", call.site))]


def ranks_join(machine: Machine, call: Call) -> Results:
    """``context.join()``: true when all ranks have ended, which a loop waits for."""
    found = library_object(call)
    if found is not None:
        lending.awaited(machine, call.state, found.site)
    return [(call.state, unknown("joined ranks", call.site))]
