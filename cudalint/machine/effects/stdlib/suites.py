"""Suites of tests that a program puts together itself, and runs: one after the other, in its process."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.classes import lineage
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Value, const, constant, only, unknown
from cudalint.structs import replace

_TEST, _TESTS, _SUITE = "<test>", "<tests>", "unittest.TestSuite"
# How many tests are run, and how deep suites lie in suites.
_MOST, _DEEPEST = 64, 4


def case(machine: Machine, call: Call) -> Results:
    """``Case("test_name")``: an object for one test."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, Instance):
        name = call.args[0] if call.args else const("runTest")
        call.state.store(call.receiver, replace(found, attributes={**found.attributes, _TEST: name}))
    return [(call.state, NONE)]


def suite(machine: Machine, call: Call) -> Results:
    """``TestSuite(tests)``."""
    given = call.get("tests") or NONE
    return [(call.state, _made(call, call.state, [] if given == NONE else machine.exact_items(given, call.state)))]


def add(machine: Machine, call: Call) -> Results:
    """``suite.addTest(test)``, ``suite.addTests(tests)``."""
    obj, ref = library_object(call), call.receiver
    if obj is None or not isinstance(ref, Ref) or not call.args:
        return [(call.state, NONE)]
    before = machine.exact_items(obj.fields[_TESTS], call.state)
    several = call.path.endswith("addTests")
    more = _tests_of(machine, call.args[0], call.state) if several else [call.args[0]]
    known = None if before is None or more is None else [*before, *more]
    call.state.store(ref, replace(obj, fields={_TESTS: _listed(call, call.state, known)}))
    return [(call.state, NONE)]


def load(machine: Machine, call: Call) -> Results:
    """``loader.loadTestsFromTestCase(Case)``: its tests, by their names."""
    state = call.state
    cls = only(call.args[0]) if call.args else None
    if not isinstance(cls, Ref) or not isinstance(state.get(cls), Class):
        return [(state, _made(call, state, None))]
    tests: list[Value] = []
    for name in sorted(_names(cls, state)):
        made = machine.call_value((cls,), [const(name)], {}, state, call.frame, call.site)
        if len(made) != 1:
            return [(state, _made(call, state, None))]
        state, instance = made[0]
        tests.append(instance)
    return [(state, _made(call, state, tests))]


def run(machine: Machine, call: Call) -> Results:
    """``runner.run(suite)``, ``suite.run(result)``, ``case()``: a test that fails ends itself alone."""
    own = call.receiver if call.text("key") == "self" else None
    among: Value = call.get("test") or () if own is None else (own,)
    states, ready = [call.state], set[Ref]()
    for atom in list(_flat(machine, among, call.state, 0))[:_MOST]:
        states = [after for state in states for after in _one(machine, call, atom, state, ready)]
        found = call.state.get(atom)
        if isinstance(found, Instance):
            ready.add(found.cls)
    return [(state, unknown("tests", call.site)) for state in merge(states)]


def _one(machine: Machine, call: Call, test: Ref, state: State, ready: set[Ref]) -> list[State]:
    """Run one test between what its class does around it."""
    found = state.get(test)
    name = constant(found.attributes.get(_TEST, ())) if isinstance(found, Instance) else ...
    if not isinstance(found, Instance) or not isinstance(name, str):
        return [state]
    before = ("setUp", "asyncSetUp") if found.cls in ready else ("setUpClass", "setUp", "asyncSetUp")
    states = [state]
    for step in (*before, name, "asyncTearDown", "tearDown"):
        states = [after for current in states for after in _step(machine, call, test, found, step, current)]
    return states


def _step(machine: Machine, call: Call, test: Ref, instance: Instance, name: str, state: State) -> list[State]:
    if machine.user_method(instance, name, state) is None:
        return [state]
    frame, raised = call.frame, len(call.frame.raises)
    # Whatever a test raises, the next one runs.
    frame.tries += 1
    results = [
        result
        for after, method in machine.attribute((test,), name, state, frame, call.site)
        for result in machine.drained(machine.call_value(method, [], {}, after, frame, call.site), frame)
    ]
    frame.tries -= 1
    ended = frame.raises[raised:]
    del frame.raises[raised:]
    for _, error in ended:
        if error.outcome is not None:
            machine.emit(error.outcome)
    return merge([*(after for after, _ in results), *(after for after, _ in ended)])


def _flat(machine: Machine, value: Value, state: State, depth: int) -> Iterator[Ref]:
    """The tests of a suite, and of suites in it."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Instance):
        yield atom
    elif isinstance(found, LibraryObject) and _TESTS in found.fields and depth < _DEEPEST:
        for one in machine.exact_items(found.fields[_TESTS], state) or ():
            yield from _flat(machine, one, state, depth + 1)


def _tests_of(machine: Machine, value: Value, state: State) -> list[Value] | None:
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    held = found.fields.get(_TESTS, value) if isinstance(found, LibraryObject) else value
    return machine.exact_items(held, state)


def _made(call: Call, state: State, tests: list[Value] | None) -> Value:
    fields = {_TESTS: _listed(call, state, tests)}
    return (state.new(("suite", call.site), LibraryObject(_SUITE, fields, call.site)),)


def _listed(call: Call, state: State, tests: list[Value] | None) -> Value:
    made = Sequence("list", None) if tests is None else Sequence("list", tuple(tests))
    return (state.new(("tests", call.site), made),)


def _names(cls: Ref, state: State) -> set[str]:
    """The names of the tests of a class."""
    scopes = (state.get(one.scope) for one in lineage(cls, state))
    return {name for scope in scopes if isinstance(scope, Scope) for name in scope.variables if name.startswith("test")}
