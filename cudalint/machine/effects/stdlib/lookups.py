"""What programs find by names that they make, in modules, objects and the project; classes without a statement."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.effects.stdlib import flags
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import NAMESPACE, Class, Closure, Dict, Instance, LibraryObject, Object, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.picking import is_choice
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    Atom,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

# How many functions or modules a name may stand for that is known in part, and how deep configurations are followed.
MOST_NAMED, _DEEPEST = 4, 4
# The default of a parameter that has none.
_NOT_GIVEN: Value = (Lib("inspect.Parameter.empty"),)
_PREDICATES = {"inspect.isfunction": Closure, "inspect.isclass": Class, "inspect.ismethod": Closure}


def names_of_frame(machine: Machine, call: Call) -> Results:
    """``globals()`` and ``locals()``: what the names there stand for by now; what is written there, a module has."""
    # A text that is run has the names of what runs it.
    is_text = call.frame.module in machine.executing and call.frame.function is None
    module = call.frame.scope if is_text else Ref(("module", call.frame.module))
    home = module if call.text("kind") == "module" else call.frame.scope
    view = home if home == module else None
    return [(call.state, machine.names_of(home, view, call.state, call.site))]


def names_of(machine: Machine, ref: Ref, state: State, site: Site) -> Value:
    """``vars(module)`` and ``vars(cls)``: what the names of a module or class stand for."""
    found = state.get(ref)
    return machine.names_of(found.scope if isinstance(found, Class) else ref, ref, state, site)


# -- names that are known in part ------------------------------------------------------------------------------------


def spelled_in_part(name: Value) -> tuple[str, str] | None:
    """How a text begins and ends that holds something unknown; None where nothing of it is known."""
    match only(name):
        case Unknown(sym=(_, tuple(parts))) if len(parts) > 1:
            first, last = _leading(parts), _leading(parts[::-1])
            return ("".join(first), "".join(last[::-1])) if first or last else None
    return None


def _leading(parts: tuple[Hashable, ...]) -> list[str]:
    """The known texts before the first part that is unknown."""
    texts = [constant(part) if isinstance(part, tuple) else ... for part in parts]
    known = itertools.takewhile(lambda text: isinstance(text, str), texts)
    return [str(text) for text in known]


def methods_in_part(machine: Machine, owner: Value, name: Value, state: State) -> list[str]:
    """The functions of an object or module whose names a text known in part may spell; none where they are many."""
    spelled = spelled_in_part(name)
    if spelled is None:
        return []
    first, last = spelled
    known = dict.fromkeys(n for n in functions_of(machine, owner, state) if n.startswith(first) and n.endswith(last))
    found = [n for n in known if len(n) > len(first) + len(last)]
    return found if len(found) <= MOST_NAMED else []


def functions_of(machine: Machine, owner: Value, state: State) -> Iterator[str]:
    """The names of the functions that an object of the program, its class or a module has."""
    atom = only(owner)
    found = state.get(atom) if isinstance(atom, Ref) else None
    cls = atom if isinstance(found, Class) else found.cls if isinstance(found, Instance) else None
    entries = machine.mro(cls, state) if isinstance(cls, Ref) else ()
    scopes = [found] if isinstance(found, Scope) else [state.get(e.scope) for e in entries if isinstance(e, Class)]
    for scope in scopes:
        for name, value in scope.variables.items() if isinstance(scope, Scope) else ():
            if isinstance(state.get(held), Closure) if isinstance(held := only(value), Ref) else False:
                yield name


def members(machine: Machine, call: Call) -> Results:
    """``inspect.getmembers(module, inspect.isfunction)``: names and values, by name; of an object also its methods."""
    state = call.state
    ref = only(call.args[0]) if call.args else None
    names = sorted(_member_names(machine, ref, state)) if isinstance(ref, Ref) else []
    if not names or not isinstance(ref, Ref):
        return [(state, unknown("members", call.site))]
    return [
        (after, _rows(machine, ref, names, replace(call, state=after)))
        for after in _computed(machine, ref, names, call)
    ]


def member_names(machine: Machine, call: Call) -> Results:
    """``dir(module)``, ``dir(x)``: the names that are there, in their order."""
    state, ref = call.state, only(call.args[0]) if call.args else None
    names = _member_names(machine, ref, state) if isinstance(ref, Ref) else set()
    if isinstance(ref, Ref) and isinstance(found := state.get(ref), Instance):
        names = names | {name for name in found.attributes if not name.startswith("<")}
    if not names:
        return [(state, unknown("call", call.site, state.process.identity))]
    items = tuple(const(name) for name in sorted(names))
    return [(state, (state.new(("names", call.site), Sequence("list", items)),))]


def _computed(machine: Machine, ref: Ref, names: list[str], call: Call) -> list[State]:
    """The paths after all that an object computes was asked for: its properties run."""
    states = [call.state]
    for name in names:
        if not computes(machine, ref, name, call.state):
            continue
        states = [s for each in states for s, _ in machine.attribute((ref,), name, each, call.frame, call.site)]
        states = merge(states)
    return states


def _rows(machine: Machine, ref: Ref, names: list[str], call: Call) -> Value:
    state = call.state
    rows: list[Value] = []
    for name in names:
        value = _member(machine, ref, name, call)
        if len(value) == 1 and _passes(machine, value, call):
            rows.append((state.new(("member", call.site, name), Sequence("tuple", (const(name), value))),))
    return (state.new(("members", call.site), Sequence("list", tuple(rows))),)


def computes(machine: Machine, owner: Atom | None, name: str, state: State) -> bool:
    """Whether code of the program runs where an attribute is asked for."""
    found = state.get(owner) if isinstance(owner, Ref) else None
    match found:
        case Scope(kind="module", variables=variables):
            return name not in variables and "__getattr__" in variables
        case Instance(attributes=attributes) if name not in attributes:
            held = _of_class(machine, found, name, state)
            if held is None:
                return machine.user_method(found, "__getattr__", state) is not None
            atom = only(held)
            kept = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(kept, Instance):
                return machine.user_method(kept, "__get__", state) is not None
            return isinstance(kept, Closure) and kept.kind in ("property", "cached")
    return False


def _of_class(machine: Machine, instance: Instance, name: str, state: State) -> Value | None:
    """What the classes of an object have under a name."""
    for entry in machine.mro(instance.cls, state):
        scope = state.get(entry.scope) if isinstance(entry, Class) else None
        if isinstance(scope, Scope) and name in scope.variables:
            return scope.variables[name]
    return None


def _member_names(machine: Machine, ref: Ref, state: State) -> set[str]:
    """The names that a module binds, or a class and those above it, or the class of an object."""
    match state.get(ref):
        case Scope(kind="module", variables=variables):
            return set(variables)
        case Class():
            order = machine.mro(ref, state)
        case Instance(cls=cls):
            order = machine.mro(cls, state)
        case _:
            return set()
    scopes = [state.get(entry.scope) for entry in order if isinstance(entry, Class)]
    return {name for scope in scopes if isinstance(scope, Scope) for name in scope.variables}


def _member(machine: Machine, ref: Ref, name: str, call: Call) -> Value:
    """What an object has under a name; what a property gives is not asked for."""
    found = call.state.get(ref)
    if isinstance(found, Scope):
        return found.variables[name]
    for entry in machine.mro(found.cls if isinstance(found, Instance) else ref, call.state):
        scope = call.state.get(entry.scope) if isinstance(entry, Class) else None
        if isinstance(scope, Scope) and name in scope.variables:
            held = call.state.get(atom) if isinstance(atom := only(scope.variables[name]), Ref) else None
            if isinstance(held, Closure) and held.kind in ("property", "cached"):
                return ()
            break
    results = machine.attribute((ref,), name, call.state, call.frame, call.site)
    return results[0][1] if len(results) == 1 else ()


def _passes(machine: Machine, value: Value, call: Call) -> bool:
    """Whether a member is one of those that are asked for; what a function of the program leaves open passes."""
    predicate = call.get("predicate") or NONE
    wanted, atom = only(predicate), value[0]
    if predicate == NONE:
        return True
    if isinstance(wanted, Lib) and wanted.path in _PREDICATES:
        function = atom.function if isinstance(atom, Bound) else atom
        held = call.state.get(function) if isinstance(function, Ref) else None
        is_bound = isinstance(atom, Bound) and wanted.path != "inspect.ismethod"
        return isinstance(held, _PREDICATES[wanted.path]) and not is_bound
    results = machine.call_value(predicate, [value], {}, call.state.clone(), call.frame, call.site)
    return any(machine.truth(given, after)[0] is not False for after, given in results)


def signature(machine: Machine, call: Call) -> Results:
    """``inspect.signature(function)``: its parameters, or those of a class when it is called, by their names."""
    state = call.state
    held = _parameters(machine, call, only(call.args[0]) if call.args else None)
    if held is None:
        return [(state, unknown("signature", call.site))]
    parameters = state.new(("parameters", call.site), Dict(held))
    made = LibraryObject("inspect.Signature", {"parameters": (parameters,)}, call.site)
    return [(state, (state.new(("signature", call.site), made),))]


def _parameters(machine: Machine, call: Call, atom: Atom | None) -> dict[Hashable, Value] | None:
    """The parameters of a function, or of a class when it is called; None where they are not known."""
    state = call.state
    function, given = (atom.function, 1) if isinstance(atom, Bound) else (atom, 0)
    found = state.get(function) if isinstance(function, Ref) else None
    if isinstance(found, Class) and isinstance(function, Ref):
        scopes = [state.get(e.scope) if isinstance(e, Class) else None for e in machine.mro(function, state)]
        inits = [s.variables["__init__"] for s in scopes if isinstance(s, Scope) and "__init__" in s.variables]
        if not inits:
            fields = machine.record_fields(function, state)
            return {name: unknown("parameter", call.site, name) for name, _ in fields} or None
        function, given = only(inits[0]), 1
        found = state.get(function) if isinstance(function, Ref) else None
    if not isinstance(found, Closure) or found.alias is not None:
        return None
    return {param.name: _parameter(machine, call, found, param) for param in found.function.params[given:]}


def _parameter(machine: Machine, call: Call, closure: Closure, param: ir.Param) -> Value:
    """What a parameter is by default, and is said to be, where that is a name: of one that may be None it is not."""
    default = dict(closure.defaults).get(param.name)
    fields: dict[str, Value] = {"name": const(param.name), "default": _NOT_GIVEN if default is None else default}
    fields["kind"] = unknown("parameter", call.site, param.name, "kind")
    fields["annotation"] = unknown("parameter", call.site, param.name, "annotation")
    if param.type and default != NONE and closure.scope is not None:
        named = ir.Name(closure.function.ordinal, param.type)
        values = machine.eval(named, call.state.clone(), Frame(closure.scope, closure.module))
        fields["annotation"] = values[0][1] if len(values) == 1 else fields["annotation"]
    made = LibraryObject(NAMESPACE, fields, call.site)
    return (call.state.new(("parameter", call.site, param.name), made),)


# -- dotted names ----------------------------------------------------------------------------------------------------


def by_dotted_name(machine: Machine, call: Call) -> Results:
    """``pydoc.locate("scoring.embed")``: what a module of the project or a library has under a name."""
    name = constant(call.get(call.params[0]) or ())
    if not isinstance(name, str):
        return [(call.state, unknown("located", call.site))]
    return named(machine, call, name, call.state)


def named(machine: Machine, call: Call, name: str, state: State) -> Results:
    """What a dotted name stands for, whose modules are imported for that."""
    parts = name.replace(":", ".").split(".")
    for count in range(len(parts), 0, -1):
        home = machine.program.resolve(call.frame.module, ".".join(parts[:count]), 0)
        if home is None:
            continue
        results = machine.load(home, state, call.frame, call.site)
        for part in parts[count:]:
            results = [
                one for after, value in results for one in machine.attribute(value, part, after, call.frame, call.site)
            ]
        return results
    states = machine.imported(parts[0], state, call.frame, call.site)
    return [(after, (Lib(machine.library.canonical(".".join(parts))),)) for after in states]


def instantiate(machine: Machine, call: Call) -> Results:
    """``hydra.utils.instantiate(cfg)``: calls what ``_target_`` names with all else that the configuration holds."""
    return _instantiated(machine, call, call.args[0] if call.args else (), dict(call.kwargs), call.state, 0)


def _instantiated(
    machine: Machine, call: Call, config: Value, more: dict[str, Value], state: State, depth: int
) -> Results:
    fields = _held(config, state)
    target = constant(fields.get("_target_", ())) if fields is not None else ...
    if fields is None or not isinstance(target, str) or depth > _DEEPEST:
        held = _parts_of(machine, config, state) if depth <= _DEEPEST else {}
        if any(_has_target(machine, value, state, depth) for value in held.values()):
            return _instantiated_parts(machine, call, config, held, state, depth)
        return [(state, config if depth else unknown("instantiated", call.site))]
    is_recursive = constant({**fields, **more}.get("_recursive_", ())) is not False
    named_parts = {name: value for name, value in {**fields, **more}.items() if not name.startswith(("_", "<"))}
    given = _made_of(machine, call, named_parts, state, depth) if is_recursive else [(state, named_parts)]
    is_partial = constant(fields.get("_partial_", ())) is True
    results: Results = []
    for current, kwargs in given:
        for after, function in named(machine, call, target, current):
            if is_partial:
                results.append((after, (Partial(function, (), tuple(kwargs.items())),)))
                continue
            results.extend(machine.call_value(function, [], kwargs, after, call.frame, call.site))
    return results


def _made_of(
    machine: Machine, call: Call, parts: dict[str, Value], state: State, depth: int
) -> list[tuple[State, dict[str, Value]]]:
    """What the parts of a configuration become, one after the other."""
    given: list[tuple[State, dict[str, Value]]] = [(state, {})]
    for name, value in parts.items():
        given = [
            (after, {**made, name: one})
            for current, made in given
            for after, one in _instantiated(machine, call, value, {}, current, depth + 1)
        ]
    return given


def _instantiated_parts(
    machine: Machine, call: Call, config: Value, held: dict[str, Value], state: State, depth: int
) -> Results:
    """A list or a mapping of a configuration that names no target itself, with what its parts become."""
    results: Results = []
    for after, made in _made_of(machine, call, held, state, depth):
        found = after.get(atom) if isinstance(atom := only(config), Ref) else None
        kept: Object = (
            Sequence("list", tuple(made.values()))
            if isinstance(found, Sequence)
            else replace(found, fields=made)
            if isinstance(found, LibraryObject)
            else Dict(dict(made.items()))
        )
        results.append((after, (after.new(("instantiated", call.site, depth, atom), kept),)))
    return results


def _parts_of(machine: Machine, config: Value, state: State) -> dict[str, Value]:
    """The items of a list or a mapping of a configuration, by their names or numbers."""
    held = _held(config, state)
    items = machine.exact_items(config, state) if held is None else None
    return {str(i): item for i, item in enumerate(items or ())} if held is None else held


def _has_target(machine: Machine, config: Value, state: State, depth: int) -> bool:
    """Whether a part of a configuration names what is to be called, or one of its parts does."""
    if depth > _DEEPEST:
        return False
    parts = _parts_of(machine, config, state)
    return "_target_" in parts or any(_has_target(machine, part, state, depth + 1) for part in parts.values())


def _held(config: Value, state: State) -> dict[str, Value] | None:
    found = state.get(atom) if isinstance(atom := only(config), Ref) else None
    match found:
        case LibraryObject(type="omegaconf.DictConfig", fields=fields):
            return fields
        case Dict(items=items):
            return {str(name): value for name, value in items.items()}
    return None


# -- classes ---------------------------------------------------------------------------------------------------------


def class_of_dict(machine: Machine, call: Call) -> Results:
    """``type("Job", (Base,), {"run": f})``: a class without a statement."""
    state = call.state
    title, bases, body = call.args
    found = state.get(atom) if isinstance(atom := only(body), Ref) else None
    name, known = constant(title), machine.exact_items(bases, state)
    if not isinstance(found, Dict) or not isinstance(name, str) or known is None:
        return [(state, unknown("type", call.site))]
    variables = {str(key): value for key, value in found.items.items()}
    scope = state.new(("class", call.site), Scope(variables, None, call.frame.module, "class"))
    made = Class(name, name, call.frame.module, tuple(known), scope, call.site)
    ref = state.new(("classobj", call.site), made)
    machine.own_methods(scope, ref, state)
    return [(state, (ref,))]


# -- command lines ---------------------------------------------------------------------------------------------------


def command_object(machine: Machine, call: Call) -> Results:
    """``fire.Fire(App)``: a function is called; of a class, an object or a dict one of what can be called is."""
    component = call.args[0] if call.args else call.get("component") or NONE
    atom = only(component)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Instance | Dict):
        return one_of(machine, call, component, call.state)
    asked = flags.of_function(machine, component, call.state, flags.own_line(machine, call.state))
    # Its user may give it flags that only its ``**kwargs`` take.
    made = machine.call_value(component, [], asked, call.state, call.frame, call.site, is_open=True)
    if not isinstance(found, Class):
        return made
    return [done for state, value in made for done in one_of(machine, call, value, state)]


def one_of(machine: Machine, call: Call, component: Value, state: State) -> Results:
    """What each public method of an object does, or each function of a dict; none of them knows of the others."""
    found = state.get(atom) if isinstance(atom := only(component), Ref) else None
    if isinstance(found, Dict):
        functions = list(found.items.values())
    else:
        names = [name for name in functions_of(machine, component, state) if not name.startswith("_")]
        got = [machine.attribute(component, name, state, call.frame, call.site) for name in dict.fromkeys(names)]
        functions = [one[0][1] for one in got if len(one) == 1]
    results: Results = [(state.clone(), NONE)]
    for function in functions:
        if any(isinstance(a, Const | Unknown) for a in function):
            continue
        asked = flags.of_function(machine, function, state, flags.own_line(machine, state))
        results.extend(machine.call_value(function, [], asked, state.clone(), call.frame, call.site, is_open=True))
    return [(after, NONE) for after, _ in results]


def command_loop(machine: Machine, call: Call) -> Results:
    """``cmd.Cmd.cmdloop()``: a user asks for the methods ``do_*`` in any order: each may come after any other."""
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Instance):
        return [(call.state, NONE)]
    names = [name for name in dict.fromkeys(functions_of(machine, (ref,), call.state)) if name.startswith("do_")]
    states = [call.state]
    for _ in range(_ROUNDS):
        after = [one for state in states for name in names for one in _asked(machine, call, ref, name, state)]
        states = merge([*states, *after])
    return [(state, NONE) for state in states]


# A second command finds what the first one did.
_ROUNDS = 2


def _asked(machine: Machine, call: Call, ref: Ref, name: str, state: State) -> list[State]:
    line = unknown("line", call.site, name)
    return [
        after
        for found, method in machine.attribute((ref,), name, state.clone(), call.frame, call.site)
        for after, _ in machine.call_value(method, [line], {}, found, call.frame, call.site)
    ]


def any_of(machine: Machine, owner: Value, names: list[str], call: Call) -> Results:
    """The functions under any of several names of an object, of which one is meant: a path for each that differs."""
    found = {name: machine.attribute(owner, name, call.state, call.frame, call.site) for name in names}
    table = Dict({name: one[0][1] for name, one in found.items() if len(one) == 1})
    if is_choice(table, call.args[1]):
        return machine.picked(table, call.args[1], call.state, call.site, call.args[2] if len(call.args) > 2 else None)
    return [(call.state, union(list(table.items.values())))]
