"""Functions that no model describes and that are told in how many processes to run a function of the program.

So are classes that are called as processes are, or pools of them. Whether they fork is a guess: what follows from it is
never certain. It is made only where a fork would fail. So it is that they map the function over a pool that they are
given.
"""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine import questions
from cudalint.machine.effects.concurrency.pools import mapped_over
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Closure, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import count_of, needed, task
from cudalint.machine.launch.launching import Start
from cudalint.machine.state import Process, State
from cudalint.machine.values import NONE, TRUE, Atom, Bound, Lib, Partial, Ref, Value, only, strings, unknown
from cudalint.models.unfamiliar import Unfamiliar

_LIBRARY = "multiprocessing"


def after_starting(machine: Machine, call: Call) -> list[State]:
    """The states after an unknown function was called: two where it may have forked workers for a function."""
    state = call.state
    if not _fails_forked(state.process):
        return [state]
    pool = _pool(call)
    if pool is None and not _asks(call, machine.library.unfamiliar):
        return [state]
    question = (questions.STARTS, call.path)
    known = state.fact(question)
    if known is False:
        return [state]
    functions = list(dict.fromkeys(_functions(call)))
    ways = launching.ways(machine, state, _LIBRARY, None)
    if not functions or (pool is None and not all(way.method == "fork" for way in ways)):
        return [state]
    other = [] if known else [state.split(question)]
    if pool is not None:
        states = [state]
        for one in functions:
            states = [after for s in states for after in mapped_over(machine, call, s, (pool,), (one,))]
        return [*states, *other]
    start = _start(machine, call, functions)
    for way in ways:
        workers.start(machine, state, call.frame, start, way)
    return [state, *other]


def as_known(machine: Machine, call: Call, result: Value) -> Results | None:
    """What an unknown class makes whose name is that of processes, or of pools of them; None where it is not."""
    path = _LIKE.get(next((end for end in _LIKE if call.path.endswith(end)), ""), "")
    question = (questions.STARTS, call.path)
    known = call.state.fact(question)
    is_one = path != _PROCESS or any(True for _ in _in(call.kwargs.get("target", NONE), call.state))
    if not path or known is False or not is_one:
        return None
    other = [] if known else [(call.state.split(question), result)]
    made = machine.call_value((Lib(path),), call.args, call.kwargs, call.state, call.frame, call.site)
    return [*made, *other]


_PROCESS = "multiprocessing.Process"
# What classes of these names are like, the longest first.
_LIKE = {
    "ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor",
    "ProcessPool": "multiprocessing.Pool",
    "Process": _PROCESS,
}


def _pool(call: Call) -> Ref | None:
    """The pool, or executor, among what a call is given by name."""
    for value in call.kwargs.values():
        atom = only(value)
        found = call.state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, LibraryObject) and found.fields.keys() >= _POOLED:
            return atom
    return None


# What pools and executors of processes keep, and nothing else.
_POOLED = frozenset({"<library>", "<context>", "<initializer>"})


def _start(machine: Machine, call: Call, functions: list[Atom]) -> Start:
    return Start(
        launcher=call.label.rpartition(".")[2].removesuffix("()"),
        family="executor",
        anchor=call.site,
        chain=machine.chain(call.state, call.site, f"{call.label} may fork workers"),
        many=True,
        reused=True,
        daemon=False,
        failures={"body": "crash", "unpickle": "crash"},
        library=_LIBRARY,
        tasks=tuple(task((one,), _items(call, one)) for one in functions),
        label="forked worker",
    )


def _items(call: Call, function: Atom) -> list[Value]:
    return [unknown("item", call.site, number) for number in range(needed((function,), call.state))]


def _fails_forked(process: Process) -> bool:
    """Whether CUDA could not be used in a process that this one forks."""
    return process.driver is not None and not process.forked and not process.dead


def _asks(call: Call, say: Unfamiliar) -> bool:
    """Whether an argument, or its name, says that there are to be several processes, or that they fork."""
    several = any(_is_several(call.kwargs[name]) for name in say.processes if name in call.kwargs)
    switched = any(call.kwargs.get(name) == TRUE for name in say.parallel)
    named = say.starts_processes(call.path)
    return several or switched or named or "fork" in strings(call.kwargs.get("start_method") or NONE)


def _is_several(value: Value) -> bool:
    """Whether it is a number of more than one; what is a pool itself is none."""
    return not any(isinstance(atom, Ref) for atom in value) and count_of(value, default_many=False)


def _functions(call: Call) -> Iterator[Atom]:
    """The functions of the program among what a call is given, or lists of that."""
    for value in (*call.args, *call.kwargs.values()):
        yield from _in(value, call.state)


def _in(value: Value, state: State, depth: int = 0) -> Iterator[Atom]:
    for atom in value:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Bound | Partial) or isinstance(found, Closure):
            yield atom
        elif isinstance(found, Sequence) and not depth:
            for one in (*(found.items or ()), found.element):
                yield from _in(one, state, 1)
