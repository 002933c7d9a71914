"""Calls from outside of a program: a module is imported, and a function called whose arguments nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from cudalint.ir import nodes as ir
from cudalint.ir.walk import constructor, is_of_class
from cudalint.machine import heap, questions
from cudalint.machine.effects.frameworks.remote_tasks import itself
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, only
from cudalint.project.fixtures import Given, set_up
from cudalint.project.switches import left_out, switches


def top_of(name: str) -> Frame:
    """The frame of a module's top level."""
    return Frame(Ref(("module", name)), name)


def packages(machine: Machine, module: ir.Module, state: State) -> list[State]:
    """The states after the packages of a module were imported."""
    frame = top_of(module.name)
    states = [state]
    for package in machine.program.parents(module.name):
        states = [s for c in states for s in machine.act(package, c, frame, 0)]
    return states


def imported(machine: Machine, module: ir.Module, assumed: bool, state: State | None = None) -> State:
    """The state after importing a module."""
    return ways(machine, module, assumed, state)[0]


def ways(machine: Machine, module: ir.Module, assumed: bool, state: State | None = None) -> tuple[State, ...]:
    """The states after importing a module: of all that differ in nothing that harms a fork, the plainest."""
    state = state or State(Process(unseen=assumed), {})
    state = plainest(packages(machine, module, state), state)
    if (found := _with_package(machine, module, state)) is not None:
        return telling(found, state)
    if not assumed:
        return telling(machine.run_module(module, module.name, state), state)
    loaded = machine.load_one(module.name, state, top_of(module.name), Site(module.name, 0))
    return telling([after for after, _ in loaded], state)


def _with_package(machine: Machine, module: ir.Module, state: State) -> list[State] | None:
    """The states in which the import of its package leaves a module that the package imports, where that was prepared.

    All modules of such a package begin with that one import, whichever of them is asked for.
    """
    package = machine.program.importing_package(module.name)
    if package is None:
        return None
    frame, ref = top_of(module.name), Ref(("module", module.name))
    states = machine.import_prepared(package, state.clone(), frame, Site(module.name, 0))
    return states if states and all(after.get(ref) is not None for after in states) else None


def telling(ways: Sequence[State], before: State) -> tuple[State, ...]:
    """The plainest way through an import, and where CUDA was used on others alone, the plainest of these."""
    first = plainest(ways, before)
    using = [way for way in ways if way.process.driver is not None]
    return (first,) if first.process.driver is not None or not using else (first, plainest(using, before))


def plainest(ways: Sequence[State], before: State) -> State:
    """The way through an import on which least is assumed, and most of that to hold.

    Which branch of the import comes first in the text must not decide what is found. What is asked for at the top of a
    module is more often there than not, but for variables of the environment.
    """
    return min(ways, key=lambda way: (len(way.facts), sum(map(_is_unusual, way.facts))), default=before)


def _is_unusual(fact: questions.Fact) -> bool:
    sym, holds = fact
    return holds is questions.asks_for_a_setting(sym)


def call(
    machine: Machine,
    module: ir.Module,
    function: ir.Function,
    state: State,
    given: Given | None = None,
    takes_options: bool = False,
    is_used: bool = False,
    launchers: Set[str] = frozenset(),
) -> None:
    """Call a function with unknown arguments, but for those that are ``given``.

    What it gives is called as well, where that is a function of its own which names one of the ``launchers``.
    """
    frame = top_of(module.name)
    found = _find(machine, module, function, state, takes_options)
    end(machine, frame, applied(machine, module, function, found, given or {}, frame, is_used, launchers))


def called(
    machine: Machine, module: ir.Module, function: ir.Function, state: State, given: Given, frame: Frame
) -> list[State]:
    """The paths after a call of a function with unknown arguments, but for those that are ``given``."""
    found = _find(machine, module, function, state)
    return applied(machine, module, function, found, given, frame)


def applied(
    machine: Machine,
    module: ir.Module,
    function: ir.Function,
    found: tuple[Value | None, State],
    given: Given,
    frame: Frame,
    is_used: bool = False,
    launchers: Set[str] = frozenset(),
) -> list[State]:
    """The paths after a call of what was found to stand for a function, whose result is used; as they are otherwise."""
    target, state = found
    if target is None:
        return [state]
    site = Site(module.name, function.ordinal)
    asked = left_out(module, function)
    begun, outcomes = state.clone() if asked else state, len(machine.record.outcomes)
    results = machine.call_value(target, [], dict(given), state, frame, site)
    if not results and asked and len(machine.record.outcomes) == outcomes:
        # It refuses to be called without what its signature says may be left out.
        results = machine.call_value(target, [], {**asked, **given}, begun, frame, site)
    for _ in range(_MOST_GIVEN if launchers else 0):
        results = _called_on(machine, launchers, results, frame, site)
    return [s for s, _ in (machine.used if is_used else machine.drained)(results, frame)]


# A decorator with arguments gives a function that gives another one.
_MOST_GIVEN = 2


def _called_on(
    machine: Machine, launchers: Set[str], results: Sequence[tuple[State, Value]], frame: Frame, site: Site
) -> list[tuple[State, Value]]:
    """The results, after whoever asked for a function that starts something has called it: what a decorator gives."""
    done: list[tuple[State, Value]] = []
    for state, value in results:
        found = state.get(atom) if isinstance(atom := only(value), Ref) else None
        is_own = isinstance(found, heap.Closure) and found.scope != frame.scope and found.function.mentions(launchers)
        done.extend(machine.call_value(value, [], {}, state, frame, site) if is_own else [(state, value)])
    return done


def _find(
    machine: Machine, module: ir.Module, function: ir.Function, state: State, takes_options: bool = False
) -> tuple[Value | None, State]:
    frame = top_of(module.name)
    site = Site(module.name, function.ordinal)
    parts = function.qualname.split(".")
    if len(parts) == 1:
        found = machine.lookup(parts[0], state, frame.scope)
        return found and itself(found, state), state
    if len(parts) != 2:
        return None, state
    cls = _own_class(itself(machine.lookup(parts[0], state, frame.scope) or (), state), parts[0], state)
    if cls is None:
        return None, state
    if parts[1] == "__init__":
        return cls, state
    if is_of_class(module, function):
        for last, method in machine.attribute(cls, parts[1], state, frame, site):
            return method, last
        return None, state
    options = switches(module, maker_of(module, function)) if takes_options else {}
    for made, instance in machine.call_value(cls, [], options, state, frame, _making(module, parts[0], site)):
        if not machine.options.in_test:
            return method_of(machine, module, function, instance, made)
        ready = set_up(machine, instance, made, frame, site)
        for last, method in machine.attribute(instance, parts[1], ready, frame, site):
            return method, last
    return None, state


def _own_class(value: Value, name: str, state: State) -> Value | None:
    """What stands for a class of the program: where a decorator may give another one in its place, the class itself."""
    if len(value) == 1:
        return value if isinstance(value[0], Ref) else None
    own = [atom for atom in value if isinstance(atom, Ref) and _is_called(state.get(atom), name)]
    return (own[0],) if len(own) == 1 else None


def _is_called(found: heap.Object | None, name: str) -> bool:
    return isinstance(found, heap.Class) and found.qualname == name


def maker_of(module: ir.Module, function: ir.Function) -> ir.Function | None:
    """The constructor of the object that a method is called on."""
    cls, _, _ = function.qualname.rpartition(".")
    return constructor(module, cls) if cls and not is_of_class(module, function) else None


def method_of(
    machine: Machine, module: ir.Module, function: ir.Function, instance: Value, state: State
) -> tuple[Value | None, State]:
    """A method of an instance, when whatever comes first has been called."""
    frame = top_of(module.name)
    ready = machine.effects.before_method(machine, instance, function.name, state, frame)
    site = Site(module.name, function.ordinal)
    for last, method in machine.attribute(instance, function.name, ready[0], frame, site) if ready else ():
        return method, last
    return None, state


def _making(module: ir.Module, cls: str, site: Site) -> Site:
    """Where an instance is made: apart from its method where that takes no argument, and so happens in any case."""
    init = constructor(module, cls)
    return site if init is None or len(init.params) != 1 else Site(module.name, init.ordinal)


def end(machine: Machine, frame: Frame, states: list[State]) -> None:
    """What a call raised is over, and so is its process."""
    tell(machine, frame.raises)
    machine.end(states)


def tell(machine: Machine, ended: Iterable[tuple[State, Raised]]) -> None:
    """Note what goes wrong on paths that nobody catches."""
    for _, raised in ended:
        if raised.outcome is not None:
            machine.emit(raised.outcome)
