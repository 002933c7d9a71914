"""What calls of launchers say: how many workers, what these run, with which arguments."""

from __future__ import annotations

from cudalint.ir.nodes import ParamKind
from cudalint.machine import counting, operators, questions
from cudalint.machine.frame import Call
from cudalint.machine.heap import Closure, Dict
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Ref, Task, Unknown, Value, const, constant, integer, only, union, unknown
from cudalint.structs import replace


def count_of(value: Value | None, default_many: bool = True) -> bool:
    """Whether a number of workers is, or may be, more than one."""
    if value is None or value == (Const(None),):
        return default_many
    numbers = [a.value for a in value if isinstance(a, Const) and isinstance(a.value, int)]
    if len(numbers) == len(value):
        return any(n != 1 for n in numbers)
    most = counting.at_most(value)
    return most is None or most > 1


def default_of(value: Value) -> int | None:
    """The number that an option has by default, where users may give it another one; None of anything else."""
    default = next((number for atom in value if (number := integer((atom,))) is not None), None)
    return default if len(value) > 1 and questions.is_option(value) else None


def beyond_default(machine: Machine, value: Value, state: State, site: Site) -> list[tuple[State, Value]]:
    """``args.epochs``: more than the default of an option is the user's to ask for; the default stands for the rest."""
    default = default_of(value)
    if default is None:
        return [(state, value)]
    more = operators.compare(">", value, const(default), ("range", site))
    answer, sym = machine.truth(more, state)
    if answer is not None or sym is None:
        return [(state, const(default) if answer is False else value)]
    other = state.split(sym)
    return [(state, value), (other, const(default))]


def by_number(machine: Machine, call: Call, name: str) -> list[Call]:
    """``Pool(args.jobs)``: where one worker is the default of an option, several are the user's to ask for."""
    value = call.get(name)
    default = None if value is None else default_of(value)
    if value is None or default != 1:
        return [call]
    numbers = beyond_default(machine, value, call.state, call.site)
    return [replace(call, state=state, kwargs={**call.kwargs, name: number}) for state, number in numbers]


def number_of(value: Value | None) -> int | None:
    """A number of workers, where it is certain."""
    return None if value is None else integer(value)


def is_length(value: Value | None) -> bool:
    """Whether a number of workers is how many things there are of some kind."""
    atom = only(value or ())
    return isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and atom.sym[0] == "len"


def task(function: Value, args: list[Value], kwargs: dict[str, Value] | None = None) -> Task:
    """A call to be made in a worker."""
    return Task(function, tuple(args), tuple(sorted((kwargs or {}).items())))


def arguments(machine: Machine, state: State, value: Value | None) -> list[Value]:
    """The values of an ``args=(...)`` tuple; one unknown where its content is not known."""
    if value is None or value == (Const(None),):
        return []
    rows = [machine.exact_items((atom,), state) for atom in value]
    known = [row for row in rows if row is not None]
    if rows and len(known) == len(rows) and len({len(row) for row in known}) == 1:
        return [union(column) for column in zip(*known, strict=True)]
    return [unknown("argument", value, i) for i in range(6)]


def named_arguments(state: State, value: Value | None) -> dict[str, Value]:
    """The values of a ``kwargs={...}`` dict."""
    for atom in value or ():
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Dict):
            return {str(k): v for k, v in found.items.items()}
    return {}


def needed(function: Value, state: State) -> int:
    """How many arguments a function has to be given by what calls it with items; one where its code is not seen."""
    found = state.get(atom) if isinstance(atom := only(function), Ref) else None
    if not isinstance(found, Closure):
        return 1
    params = [p for p in found.function.params if p.default is None and p.kind is ParamKind.POSITIONAL]
    return min(len(params), _MOST_GIVEN)


# More than these no function is given by a library that goes through items.
_MOST_GIVEN = 4


def failures(call: Call) -> dict[str, str]:
    """How a launcher's workers fail, by stage, as its model says."""
    found = call.spec.get("failure", {})
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def constant_bool(value: Value | None, default: bool) -> bool | None:
    """A truth argument; None where the code does not show it."""
    if value is None:
        return default
    found = constant(value)
    return bool(found) if found is not ... else None
