"""Ranks that ``torch.multiprocessing`` starts."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import lending, workers
from cudalint.machine.launch.arguments import arguments, count_of, number_of, task
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Start, Way
from cudalint.machine.values import NONE, TRUE, Rank, Value, constant, strings, unknown

# What a launch gives that does not wait for its ranks.
CONTEXT = "cudalint.ranks"


def count_at_start(call: Call) -> int | None:
    """How many ranks are started: one by default."""
    given = call.get("nprocs")
    return 1 if given is None else number_of(given)


def spawn(machine: Machine, call: Call) -> Results:
    """``torch.multiprocessing.spawn`` and ``start_processes``: ranks, by spawn unless the call names another method."""
    state = call.state
    name = call.path.rpartition(".")[2]
    if bootstrapping(machine, call, f"{name}()") or daemon_child(machine, call, f"{name}()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    given = call.get("start_method") if name == "start_processes" else None
    methods = ["spawn"] if given is None else strings(given)
    function = call.get("fn") or ()
    many = count_of(call.get("nprocs"), default_many=False)
    args: list[Value] = [(Rank("local"),), *arguments(machine, state, call.get("args"))]
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


def ranks_join(machine: Machine, call: Call) -> Results:
    """``context.join()``: true when all ranks have ended, which a loop waits for."""
    found = library_object(call)
    if found is not None:
        lending.awaited(machine, call.state, found.site)
    return [(call.state, unknown("joined ranks", call.site))]
