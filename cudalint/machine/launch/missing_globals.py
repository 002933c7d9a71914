"""Globals that only the main program sets, and parts of them: a spawned child, which runs no main guard, lacks them."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.ir import walk
from cudalint.machine.frame import Frame, Raised, Results
from cudalint.machine.heap import NAMESPACE, STAR, Class, Dict, Instance, LibraryObject, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.questions import DEFINES
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Launch, State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Lib, Ref, Value, only, unknown
from cudalint.structs import replace

# What can give a module names that its text does not bind.
MAKING_NAMES = frozenset({"globals", "exec", "eval", "vars", "setattr", "builtins", "__builtins__", "__dict__"})


def missing_name(machine: Machine, name: str, state: State, frame: Frame, site: Site) -> Results:
    """A name that no scope binds, or that stands for None: in a spawned child perhaps one that only main sets."""
    found = machine.lookup(name, state, frame.scope)
    value = found or unknown("name", frame.module, name)
    launch = _fresh_launch(machine, state)
    if found is None and frame.tries and _is_bound_nowhere(machine, name, state, frame):
        return machine.fail(state, frame, Raised(None, ("NameError",)))
    if launch is None:
        return [(state, value)]
    is_lacking = _was_set_by_parent(machine, name, state, frame, is_bound=found is not None)
    if machine.record.cut is not None or not is_lacking:
        return [(state, value)]
    for atom in machine.lookup(STAR, state, frame.scope) or ():
        if isinstance(atom, Lib):
            state.assume((DEFINES, atom.path, name), False)
    outcome = _outcome(machine, launch, name, "not defined" if found is None else "None", state, site)
    names = ("NameError",) if found is None else _OF_NONE
    return _fails(machine, outcome, names, state, frame, unknown("name", frame.module, name))


def _is_bound_nowhere(machine: Machine, name: str, state: State, frame: Frame) -> bool:
    """Whether nothing gives a name to the module that asks for it: neither it, nor what runs notebooks."""
    module = machine.program.module(frame.module)
    if module is None or machine.program.is_notebook(machine.main) or name.startswith("__"):
        return False
    if machine.lookup(STAR, state, frame.scope) is not None or walk.imports_all(module.body):
        return False
    if walk.mentions(module, MAKING_NAMES) or walk.binds(module.body, name):
        return False
    # A function may bind it for the module, and this one may bind it on another way through it.
    others = [f for f in walk.functions(module.body) if f is not frame.function and f.mentions({name})]
    return not others and (frame.function is None or name not in frame.function.local_names)


def missing_part(machine: Machine, owner: Ref, key: Hashable, state: State, frame: Frame, site: Site) -> Results | None:
    """What an object lacks, or holds None for, that its parent had put there before; None where that is otherwise.

    ``key`` is of a dict, or the name of an attribute of a class or an object.
    """
    launch = _fresh_launch(machine, state)
    parent = machine.parents.get(state.process.identity)
    if launch is None or parent is None or machine.record.cut is not None or machine.abandoned:
        return None
    home = _home(owner, state)
    there = None if home is None else _held(parent, _kept(parent, *home), key)
    if home is None or there is None or NONE[0] in there:
        return None
    is_dict, lacks = isinstance(state.get(owner), Dict), _held(state, owner, key) is None
    kept = ".".join(home[1:])
    name = f"{kept}[{key!r}]" if is_dict else f"{kept}.{key}"
    outcome = _outcome(machine, launch, name, "missing" if lacks else "None", state, site)
    names = _OF_NONE if not lacks else ("KeyError", "LookupError") if is_dict else ("AttributeError",)
    return _fails(machine, outcome, names, state, frame, unknown("part", site, name))


_OF_NONE = ("AttributeError", "TypeError")


def _fresh_launch(machine: Machine, state: State) -> Launch | None:
    """How this process was started, where that was by spawn and what it lacks is told."""
    launch = state.process.launch
    fresh = launch is not None and launch.method in ("spawn", "forkserver")
    return launch if fresh and machine.options.uses_gpu and not state.process.dead else None


def _was_set_by_parent(machine: Machine, name: str, state: State, frame: Frame, *, is_bound: bool) -> bool:
    """Whether main or functions of the parent had set a global, which an import binds as well or does not."""
    parent = machine.parents.get(state.process.identity)
    scope = None if parent is None else parent.get(Ref(("module", frame.module)))
    if not isinstance(scope, Scope) or name not in scope.variables:
        return False
    if machine.program.set_by_main(frame.module, machine.main).get(name) is not is_bound:
        return False
    return not (is_bound and NONE[0] in scope.variables[name])


def _held(state: State, owner: Ref | None, key: Hashable) -> Value | None:
    match None if owner is None else state.get(owner):
        case Dict(items=items):
            return items.get(key)
        case Instance(attributes=attributes) if isinstance(key, str):
            return attributes.get(key)
        case LibraryObject(type=kind, fields=fields) if kind == NAMESPACE and isinstance(key, str):
            return fields.get(key)
        case Class(scope=scope) if isinstance(key, str):
            found = state.get(scope)
            return found.variables.get(key) if isinstance(found, Scope) else None
    return None


def _home(owner: Ref, state: State) -> tuple[str, ...] | None:
    """The module, and the name in it, under which an object is kept, or what has it as an attribute, and that."""
    within: tuple[str, ...] | None = None
    for scope in state.objects():
        if not isinstance(scope, Scope) or scope.kind != "module":
            continue
        for name, value in scope.variables.items():
            kept = only(value)
            if kept == owner:
                return scope.module, name
            part = None if within is not None else _attribute_of(kept, owner, state)
            if part is not None:
                within = (scope.module, name, part)
    return within


def _attribute_of(holder: Atom | None, owner: Ref, state: State) -> str | None:
    """The attribute of a class or an object of the program that is this object."""
    found = state.get(holder) if isinstance(holder, Ref) else None
    scope = state.get(found.scope) if isinstance(found, Class) else None
    attributes = found.attributes if isinstance(found, Instance) else {}
    attributes = scope.variables if isinstance(scope, Scope) else attributes
    return next((name for name, value in attributes.items() if only(value) == owner), None)


def _kept(state: State, module: str, name: str, *parts: str) -> Ref | None:
    scope = state.get(Ref(("module", module)))
    value: Value | None = scope.variables.get(name) if isinstance(scope, Scope) else None
    for part in parts:
        value = _held(state, _one(value), part)
    return _one(value)


def _one(value: Value | None) -> Ref | None:
    atom = only(value or ())
    return atom if isinstance(atom, Ref) else None


def _outcome(machine: Machine, launch: Launch, name: str, how: str, state: State, site: Site) -> Outcome:
    return outcome_of(
        machine,
        state,
        Kind.MISSING_GLOBAL,
        launch.anchor,
        launch.failure,
        certain=launch.certain,
        effect=machine.chain(state, site, f"{name} is {how} in the child"),
        subject=name,
        condition=launch.condition,
        launch=launch,
    )


def _fails(
    machine: Machine, outcome: Outcome, names: tuple[str, ...], state: State, frame: Frame, value: Value
) -> Results:
    if frame.tries > 0:
        # Who expects that of what is there goes on without it.
        return machine.fail(state, frame, Raised(outcome, names, harmless=names != ("NameError",)))
    machine.emit(outcome)
    state.process = replace(state.process, dead=True)
    return [(state, value)]
