"""What is meant for tests: what stands for something else while one runs, and what is not to run."""

from __future__ import annotations

from cudalint.machine.effects.stdlib import containers
from cudalint.machine.effects.stdlib.environment import BEFORE, set_variable
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Lib, Ref, Value, const, constant, only, unknown
from cudalint.structs import replace

_PATCHER = "unittest.mock.patcher"
_MOCK = "unittest.mock.Mock"
_VARIABLES = "unittest.mock.variables"
_ENVIRONMENT = "os.environ"
# Of ``patch.dict()``, beside the values that are given by name.
_OF_DICTS = ("in_dict", "values", "clear")
_ABOUT_ITSELF = frozenset({"spec", "spec_set", "name", "wraps", "unsafe", "side_effect"})


SKIPPED = Lib("pytest.mark.skip")
_SKIPS = Lib("pytest.skip")


def skip(machine: Machine, call: Call) -> Results:
    """``@skip``, ``@skip(reason)`` and ``@skipif(condition)``: a test that skips itself when it is called."""
    if call.text("kind") == "if":
        known = constant(call.get("condition") or ()) is True
        return [(call.state, (SKIPPED,) if known else unknown("mark", call.site))]
    decorated = bool(call.args) and isinstance(only(call.args[0]), Ref)
    return [(call.state, (_SKIPS if decorated else SKIPPED,))]


def mock(machine: Machine, call: Call) -> Results:
    """``MagicMock(name=value)``: its attributes are what they are set to, and others nobody knows."""
    fields = {name: value for name, value in call.kwargs.items() if name not in _ABOUT_ITSELF}
    return [(call.state, (call.state.new(("mock", call.site), LibraryObject(_MOCK, fields, call.site)),))]


def called(machine: Machine, call: Call) -> Results:
    """A call of a mock: what it is told to return."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    given = found.fields.get("return_value") if isinstance(found, LibraryObject) else None
    return [(call.state, given or unknown("mocked", call.site))]


def patch(machine: Machine, call: Call) -> Results:
    """``patch("package.name", new)`` and ``patch.object(owner, "name", new)``: a manager, and a decorator."""
    target = call.get("target") or unknown("target", call.site)
    path = constant(target)
    name = call.get("attribute")
    if name is None:
        owner, _, last = path.rpartition(".") if isinstance(path, str) else ("", "", "")
        target, name = const(owner), const(last)
    new = call.get("new") or (call.state.new(("mock", call.site), LibraryObject(_MOCK, {}, call.site)),)
    made = LibraryObject(_PATCHER, {"target": target, "attribute": name, "new": new}, call.site)
    return [(call.state, (call.state.new(("patcher", call.site), made),))]


def patch_variables(machine: Machine, call: Call) -> Results:
    """``patch.dict("os.environ", values, NAME=value)``: a manager and a decorator. Other mappings are not looked at."""
    target = call.get("in_dict") or ()
    if constant(target) != _ENVIRONMENT and only(target) != Lib(_ENVIRONMENT):
        return [(call.state, unknown("patcher", call.site))]
    given = [value for value in (call.get("values"),) if value is not None]
    named = {name: value for name, value in call.kwargs.items() if name not in _OF_DICTS}
    results: Results = []
    for state, value in containers.dict_(machine, replace(call, args=given, kwargs=named)):
        found = state.get(atom) if isinstance(atom := only(value), Ref) else None
        items = found.items.items() if isinstance(found, Dict) else ()
        made = LibraryObject(_VARIABLES, {name: one for name, one in items if isinstance(name, str)}, call.site)
        results.append((state, (state.new(("variables", call.site), made),)))
    return results


def enter_variables(machine: Machine, call: Call) -> Results:
    """The environment has these values until the manager is left; tests say them, also where CUDA was used before."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, LibraryObject):
        names = [name for name in found.fields if not name.startswith(BEFORE)]
        before = {f"{BEFORE}{name}": call.state.process.environ(name) or () for name in names}
        for name in names:
            set_variable(machine, call.state, call.frame, call.site, name, found.fields[name], is_judged=False)
        call.state.store(call.receiver, replace(found, fields={**found.fields, **before}))
    return [(call.state, (Lib(_ENVIRONMENT),))]


def leave_variables(machine: Machine, call: Call) -> Results:
    """The environment is again what it was."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    for name, before in found.fields.items() if isinstance(found, LibraryObject) else ():
        if name.startswith(BEFORE):
            own, process = name.removeprefix(BEFORE), call.state.process
            call.state.process = process.with_environ(own, before) if before else process.without_word_of(own)
    return [(call.state, NONE)]


def enter(machine: Machine, call: Call) -> Results:
    """From here on the name stands for what it was replaced with."""
    results: Results = []
    for state, owner, patcher in _replacing(machine, call):
        name = str(constant(patcher.fields["attribute"]))
        before = [value for _, value in machine.attribute(owner, name, state.clone(), call.frame, call.site)]
        if isinstance(call.receiver, Ref):
            kept = {**patcher.fields, BEFORE: before[0] if before else NONE}
            state.store(call.receiver, replace(patcher, fields=kept))
        new = patcher.fields["new"]
        results.extend((s, new) for s in machine.set_attribute(owner, name, new, state, call.frame, call.site))
    return results or [(call.state, unknown("mock", call.site))]


def leave(machine: Machine, call: Call) -> Results:
    """The name is again what it was."""
    states: list[State] = []
    for state, owner, patcher in _replacing(machine, call):
        name, before = str(constant(patcher.fields["attribute"])), patcher.fields.get(BEFORE)
        if before is not None:
            states.extend(machine.set_attribute(owner, name, before, state, call.frame, call.site))
    return [(state, NONE) for state in states or [call.state]]


def _replacing(machine: Machine, call: Call) -> list[tuple[State, Value, LibraryObject]]:
    """What holds the name that a patcher replaces; nothing where the code does not show it."""
    patcher = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(patcher, LibraryObject) or not constant(patcher.fields["attribute"]):
        return []
    if not isinstance(constant(patcher.fields["attribute"]), str):
        return []
    target = patcher.fields["target"]
    path = constant(target)
    found = _named(machine, call, path) if isinstance(path, str) else [(call.state, target)]
    return [(state, owner, patcher) for state, owner in found]


def _named(machine: Machine, call: Call, path: str) -> Results:
    """What a dotted path names: a module of the program, something in one, or a library's."""
    outer, _, last = path.rpartition(".")
    home = machine.program.resolve(call.frame.module, path, 0)
    if home is not None:
        return machine.load(home, call.state, call.frame, call.site)
    above = machine.program.resolve(call.frame.module, outer, 0) if outer else None
    if above is None:
        return [(call.state, (Lib(machine.library.canonical(path)),))]
    return [
        found
        for state, module in machine.load(above, call.state, call.frame, call.site)
        for found in machine.attribute(module, last, state, call.frame, call.site)
    ]
