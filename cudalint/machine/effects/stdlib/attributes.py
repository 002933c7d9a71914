"""Attributes and keys by name, whether an object has one at all, and the class of an object."""

from __future__ import annotations

import argparse
import builtins
import collections
import sys
from itertools import islice
from types import FunctionType

from cudalint.machine import absent, exceptions, operators, unknowns
from cudalint.machine.effects.stdlib import lookups
from cudalint.machine.frame import Call, Results
from cudalint.machine.function_attributes import attributes_of_function
from cudalint.machine.heap import (
    ANY_NAME,
    NAMESPACE,
    WHOLE,
    Class,
    Closure,
    Dict,
    Instance,
    LibraryObject,
    Scope,
    Sequence,
    item_field,
)
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import (
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Ref,
    Super,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace

_CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple, "set": set}
# What no class has.
_NO_NAME = "no such name"


def hasattr_(machine: Machine, call: Call) -> Results:
    """``hasattr(x, "name")``: true for an attribute that is set, false where no code of a known class could set it.

    ``"name" in args`` asks a namespace the same.
    """
    if isinstance(call.receiver, Ref):
        call = replace(call, args=[(call.receiver,), *call.args])
    name = constant(call.args[1]) if len(call.args) == 2 else ...
    if not isinstance(name, str):
        return [(call.state, unknown("hasattr", call.site))]
    if lookups.computes(machine, only(call.args[0]), name, call.state):
        found, lacking = _attempted(machine, name, call)
        return [*((s, const(True)) for s, _ in found), *((s, const(False)) for s in lacking)]
    verdicts = {has(machine, atom, name, call.state) for atom in call.args[0]}
    verdict = verdicts.pop() if len(verdicts) == 1 else None
    return [(call.state, unknown("hasattr", call.args[0], name) if verdict is None else const(verdict))]


def getattr_(machine: Machine, call: Call) -> Results:
    """``getattr(x, "name", default)`` with a constant name."""
    if len(call.args) < 2:
        return [(call.state, unknown("getattr", call.site))]
    name = constant(call.args[1])
    if not isinstance(name, str):
        named = _each_named(call) or lookups.methods_in_part(machine, call.args[0], call.args[1], call.state)
        if named:
            return lookups.any_of(machine, call.args[0], named, call)
        home = only(call.args[0])
        if isinstance(home, Lib):
            return machine.named_in_library(home.path, call.args[1], call.state, call.frame, call.site)
        return [(call.state, unknown("getattr", call.args[0], call.args[1]))]
    if len(call.args) == 2:
        return machine.attribute(call.args[0], name, call.state, call.frame, call.site)
    if lookups.computes(machine, only(call.args[0]), name, call.state):
        found, lacking = _attempted(machine, name, call)
        return [*found, *((state, call.args[2]) for state in lacking)]
    if (asked := _asked_of_python(machine, name, call)) is not None:
        return asked
    verdicts = [has(machine, atom, name, call.state) for atom in call.args[0]]
    owners: Value = tuple(a for a, verdict in zip(call.args[0], verdicts, strict=True) if verdict is not False)
    if not owners:
        return [(call.state, call.args[2])]
    results = machine.attribute(owners, name, call.state, call.frame, call.site)
    if all(verdicts) or (False not in verdicts and not _says_something(call.args[2])):
        return results
    return [(state, union([value, call.args[2]])) for state, value in results]


def _asked_of_python(machine: Machine, name: str, call: Call) -> Results | None:
    """``getattr(sys, "frozen", False)``: what some programs, systems or versions have, and this module here has not."""
    atom, state = only(call.args[0]), call.state
    if not isinstance(atom, Lib) or atom.path not in sys.stdlib_module_names:
        return None
    if hasattr(sys.modules.get(atom.path, sys), name) or has(machine, atom, name, state):
        return None
    return [(state, unknown("getattr", call.args[0], name))]


def _attempted(machine: Machine, name: str, call: Call) -> tuple[Results, list[State]]:
    """What an attribute is when it is asked for, and the paths on which it turns out not to be there."""
    value, state, frame, site = call.args[0], call.state, call.frame, call.site
    return machine.attempt("AttributeError", lambda: machine.attribute(value, name, state, frame, site), frame)


def delattr_(machine: Machine, call: Call) -> Results:
    """``delattr(x, "name")``."""
    name = constant(call.args[1]) if len(call.args) == 2 else ...
    if isinstance(name, str):
        machine.delete_attribute(call.args[0], name, call.state)
    return [(call.state, NONE)]


def _each_named(call: Call) -> list[str]:
    """The names that an attribute may be asked for by, where all of them are known."""
    names = strings(call.args[1])
    return names if len(call.args) == 2 and len(names) == len(call.args[1]) else []


def lookup(machine: Machine, call: Call) -> Results:
    """``config.get("key", default)`` of an unknown mapping: the default is one of the possible values."""
    field = item_field(call.args[0]) if call.args else None
    if isinstance(call.receiver, Unknown) and (put := unknowns.put_there(call.receiver, field, call.state)):
        return [(call.state, put)]
    found = unknown("lookup", call.receiver, *call.args[:1])
    if len(call.args) == 2 and isinstance(constant(call.args[0]), str) and _says_something(call.args[1]):
        return [(call.state, union([call.args[1], found]))]
    return [(call.state, found)]


def type_(machine: Machine, call: Call) -> Results:
    """``type(x)`` of an instance of a known class, and of what Python itself has; ``type(name, bases, dict)``."""
    if len(call.args) == 3:
        return lookups.class_of_dict(machine, call)
    atom = only(call.args[0]) if len(call.args) == 1 else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    match atom, found:
        case _, Instance(cls=cls):
            return [(call.state, (cls,))]
        case Const(value=bool() | int() | float() | str() | None as value), _:
            return [(call.state, (Lib(f"builtins.{type(value).__name__}"),))]
        case _, Sequence(kind="list" | "tuple" | "set" as kind):
            return [(call.state, (Lib(f"builtins.{kind}"),))]
        case _, LibraryObject(type=kind) if kind == NAMESPACE:
            return [(call.state, (Lib(kind),))]
        case _, LibraryObject(type=kind) if exceptions.kind(kind) is not None:
            return [(call.state, (Lib(kind),))]
        case _, LibraryObject(fields={"<method>": method}):
            return [(call.state, _class_of_context(machine, method) or unknown("type", *call.args))]
    return [(call.state, unknown("type", *call.args))]


def _class_of_context(machine: Machine, method: Value) -> Value:
    """The library's class of the contexts that start processes by one method."""
    made = {"does": "method.context", "value": constant(method)}
    named = (path for path, spec in machine.library.functions.items() if made.items() <= spec.items())
    return tuple(Lib(path) for path in islice(named, 1))


def super_(machine: Machine, call: Call) -> Results:
    """``super()`` in a method, and ``super(Class, self)`` of any class and object."""
    frame = call.frame
    if not call.args and frame.owner is not None and frame.receiver is not None:
        return [(call.state, (Super(frame.owner, frame.receiver),))]
    if len(call.args) != 2 or call.open:
        return [(call.state, unknown("super", call.site))]
    after = [cls for cls in call.args[0] if isinstance(cls, Ref | Lib)]
    found = union([(Super(cls, receiver),) for cls in after for receiver in call.args[1]])
    return [(call.state, found or unknown("super", call.site))]


def _says_something(default: Value) -> bool:
    """Whether a default tells more than an unknown value would: it names a device, a method or a strategy."""
    return all(isinstance(a, Dev) or (isinstance(a, Const) and isinstance(a.value, str)) for a in default)


def setattr_(machine: Machine, call: Call) -> Results:
    """``setattr(x, name, value)``; under a name that is not known, that may be any setting of the object.

    pytest's ``monkeypatch.setattr`` may be given a path instead: ``("torch.cuda.is_available", f)``.
    """
    is_plain = call.path == "builtins.object.__setattr__"
    if is_plain and isinstance(call.receiver, Ref):
        call.args = [(call.receiver,), *call.args]
    if len(call.args) == 2 and (paths := strings(call.args[0])):
        owner, _, attribute = paths[0].rpartition(".")
        call.args = [(Lib(machine.library.canonical(owner)),), const(attribute), call.args[1]]
    if len(call.args) != 3:
        return [(call.state, NONE)]
    name = constant(call.args[1])
    if isinstance(name, str):
        machine.plainly = is_plain
        states = machine.set_attribute(call.args[0], name, call.args[2], call.state, call.frame, call.site)
        return [(s, NONE) for s in states]
    for atom in call.args[0]:
        if isinstance(atom, Ref):
            _set_some(machine, atom, call.args[1], call.state)
    return [(call.state, NONE)]


def _set_some(machine: Machine, ref: Ref, name: Value, state: State) -> None:
    """Set an attribute under a name that is not known: any setting may be another one since."""
    match state.get(ref):
        case Instance(attributes=attributes, cls=cls) as found:
            made = operators.maybe_set(_given_by_classes(machine, cls, state) | attributes, name)
            state.store(ref, replace(found, attributes={**made, ANY_NAME: TRUE}))
        case LibraryObject(type=kind, fields=fields) as found if kind == NAMESPACE:
            state.store(ref, replace(found, fields={**fields, ANY_NAME: TRUE}))
        case Class(scope=scope, told=told) as found:
            state.store(ref, replace(found, told=told | {ANY_NAME}))
            _set_some(machine, scope, name, state)
        case Scope(variables=variables) as found:
            state.store(ref, replace(found, variables=operators.maybe_set(variables, name)))


def _given_by_classes(machine: Machine, cls: Ref, state: State) -> dict[str, Value]:
    """The settings that an object has of its classes as long as it has none of its own."""
    given: dict[str, Value] = {}
    for entry in reversed(machine.mro(cls, state)):
        scope = state.get(entry.scope) if isinstance(entry, Class) else None
        if isinstance(scope, Scope):
            given |= {name: value for name, value in scope.variables.items() if operators.is_setting(name, value)}
    return given


def plain_attribute(machine: Machine, call: Call) -> Results:
    """``super().__getattribute__(name)``: an attribute, whatever the class says that is asked first."""
    args = [(call.receiver,), *call.args] if isinstance(call.receiver, Ref) else call.args
    name = constant(args[1]) if len(args) == 2 else ...
    if not isinstance(name, str):
        return [(call.state, unknown("getattr", call.site))]
    machine.plainly = True
    results = machine.attribute(args[0], name, call.state, call.frame, call.site)
    machine.plainly = False
    return results


def has(machine: Machine, atom: Atom, name: str, state: State) -> bool | None:
    """Whether an object has an attribute; None where that is not known."""
    match atom:
        case Const(value=value) if isinstance(value, bool | int | float | str | None):
            return hasattr(value, name)
        case Lib(path=path):
            if machine.library.is_of_other_hardware(f"{path}.{name}"):
                return False
            if (own := _own_class(path)) is not None:
                return hasattr(own, name)
            known = machine.library.function(f"{path}.{name}") or machine.library.function(f"{path}.{name}.__get__")
            return True if known is not None else None
        case Tensor(type=kind):
            # The public names of arrays are known: an array has what its type does not lack.
            has_names = machine.library.lacks(kind, _NO_NAME) and not name.startswith("_")
            return not machine.library.lacks(kind, name) if has_names else None
        case Ref() | Bound(function=Ref()):
            function = atom.function if isinstance(atom, Bound) else atom
            return _object_has(machine, function, name, state) if isinstance(function, Ref) else None
    return None


def _own_class(path: str) -> type | None:
    """A class of Python's own that has the same attributes in all its releases."""
    module, _, name = path.rpartition(".")
    found = getattr(_HOMES[module], name, None) if module in _HOMES else None
    return found if isinstance(found, type) else None


_HOMES: dict[str, object] = {"builtins": builtins, "collections": collections}


def _class_has(machine: Machine, ref: Ref, cls: Class, name: str, state: State) -> bool | None:
    """Whether a class has an attribute: what set one on it has run, unless nobody saw under which name."""
    if hasattr(type, name):
        return True
    order = machine.mro(ref, state)
    own = [entry for entry in order if isinstance(entry, Class)]
    if any(ANY_NAME in entry.told for entry in own):
        return None
    given = absent.class_gives(order, name, machine.library, state, deleted=True)
    return None if given is False and (cls.members or any(entry.meta for entry in own)) else given


def _object_has(machine: Machine, ref: Ref, name: str, state: State) -> bool | None:
    found = state.get(ref)
    match found:
        case Sequence(kind=kind) if kind in _CONTAINERS and not name.startswith("__"):
            return hasattr(_CONTAINERS[kind], name)
        case Dict():
            return hasattr(dict, name)
        case Scope(variables=variables, module=module):
            if name in variables or machine.program.child(module, name) is not None:
                return True
            return False if found.kind == "module" and machine.has_no_name(module, name) else None
        case Closure(bare=bare):
            if name in attributes_of_function(found, state) or hasattr(FunctionType, name):
                return True
            return False if bare else None
        case LibraryObject(fields=fields) if WHOLE in fields and ANY_NAME not in fields:
            return name in fields or hasattr(argparse.Namespace, name)
        case LibraryObject(fields=fields, type=kind):
            return True if name in fields or machine.library.function(f"{kind}.{name}") is not None else None
        case Class():
            return _class_has(machine, ref, found, name, state)
        case Instance(attributes=attributes, cls=cls):
            deleted = absent.is_deleted(attributes, name)
            given = absent.class_gives(machine.mro(cls, state), name, machine.library, state, deleted)
            return True if name in attributes else given
    return None
