"""Configurations that a program makes of dicts and classes: omegaconf, EasyDict, yacs and their like."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from cudalint.machine import operators
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Const, Ref, Value, const, only, strings, union, unknown

_CONFIG = "omegaconf.DictConfig"
# A file that comes with a library, which leaves what models know of alone.
_SHIPPED = "cudalint.shipped-config"
_DEEPEST = 6


def create(machine: Machine, call: Call) -> Results:
    """``OmegaConf.create({...})``, ``EasyDict(a=1)``: what a dict holds, by attribute and by item, at each level."""
    state = call.state
    if call.text("key"):
        return [(state, _preset(call.text("key").split("."), call.text("value"), state, call.site))]
    given = call.get("obj")
    if given is None and call.text("kind") == "mapping":
        items: dict[Hashable, Value] = dict(call.kwargs.items())
        given = (state.new(("config", call.site), Dict(items)),)
    return [(state, _config(given or (), state, call.site, 0) or unknown("config", call.site))]


def _preset(names: list[str], value: str, state: State, site: Site) -> Value:
    """A configuration of a library that has this default under this key."""
    made = const(value)
    for name in reversed(names):
        made = (state.new(("preset", site, name), LibraryObject(_CONFIG, {name: made}, site)),)
    return made


def overlay(machine: Machine, call: Call) -> Results:
    """``cfg.merge_from_file(path)``: what a file may say, which nobody sees, is laid over what is there."""
    found = library_object(call)
    file = call.state.get(atom) if call.args and isinstance(atom := only(call.args[0]), Ref) else None
    is_shipped = isinstance(file, LibraryObject) and file.type == _SHIPPED
    if found is not None and isinstance(call.receiver, Ref) and not is_shipped:
        _lay_over(call.receiver, found, call.state, call.site, 0)
    return [(call.state, NONE)]


def merge(machine: Machine, call: Call) -> Results:
    """``OmegaConf.merge(a, b)``: what b says is laid over a; of what is not known, each value may be said otherwise."""
    state = call.state
    made: Value = ()
    for value in call.args:
        made = _merged(made, _config(value, state, call.site, 0), state, call.site, 0)
    return [(state, made or unknown("config", call.site))]


def _merged(below: Value, above: Value, state: State, site: Site, depth: int) -> Value:
    """Two configurations in one; of other values the second."""
    one, two = _fields(below, state), _fields(above, state)
    if one is None or depth > _DEEPEST:
        return above
    if two is None:
        if isinstance(only(above), Const):
            return above
        fields = {name: union([value, unknown(operators.LAID_OVER, site, name)]) for name, value in one.items()}
    else:
        joint = {n: _merged(one[n], v, state, site, depth + 1) for n, v in two.items() if n in one}
        fields = {**one, **two, **joint}
    return (state.new(("merged config", site, depth), LibraryObject(_CONFIG, fields, site)),)


def _fields(value: Value, state: State) -> dict[str, Value] | None:
    """What a configuration holds, also one that an instance of a class is."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    match found:
        case LibraryObject(type=kind, fields=fields) if kind == _CONFIG:
            return fields
        case Instance(attributes=attributes):
            return attributes
    return None


def _lay_over(ref: Ref, config: LibraryObject, state: State, site: Site, depth: int) -> None:
    fields: dict[str, Value] = {}
    for name, value in config.fields.items():
        inner = state.get(atom) if isinstance(atom := only(value), Ref) else None
        if isinstance(atom, Ref) and isinstance(inner, LibraryObject) and inner.type == _CONFIG:
            if depth < _DEEPEST:
                _lay_over(atom, inner, state, site, depth + 1)
            fields[name] = value
        else:
            fields[name] = union([value, unknown(operators.LAID_OVER, site, name)])
    state.store(ref, replace(config, fields=fields))


def structured(machine: Machine, call: Call) -> Results:
    """``OmegaConf.structured(Config)``: the fields of a class, or of an instance."""
    given = call.get("obj") or ()
    atom = only(given)
    if isinstance(atom, Ref) and isinstance(call.state.get(atom), Class):
        return machine.call_value(given, [], {}, call.state, call.frame, call.site)
    return [(call.state, given or unknown("config", call.site))]


def item(machine: Machine, call: Call) -> Results:
    """``config["train"]``, ``config.get("train", default)``."""
    found = library_object(call)
    names = strings(call.args[0]) if call.args else []
    if found is None or len(names) != 1:
        return [(call.state, unknown("config item", call.site))]
    default = call.args[1] if len(call.args) > 1 else unknown("config item", call.site)
    return [(call.state, found.fields.get(names[0], default))]


def _config(value: Value, state: State, site: Site, depth: int) -> Value:
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST else None
    match found:
        case Dict(items=items):
            fields = {k: _config(v, state, site, depth + 1) for k, v in items.items() if isinstance(k, str)}
            return (state.new(("config", site, depth), LibraryObject(_CONFIG, fields, site)),)
        case Sequence(items=tuple(parts)):
            inner = tuple(_config(part, state, site, depth + 1) for part in parts)
            return (state.new(("config list", site, depth), Sequence("list", inner)),)
    return value
