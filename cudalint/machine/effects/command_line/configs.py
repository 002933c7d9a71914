"""Configurations that a program makes of dicts and classes: omegaconf."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Dict, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, only, strings, unknown

_CONFIG = "omegaconf.DictConfig"
_DEEPEST = 6


def create(machine: Machine, call: Call) -> Results:
    """``OmegaConf.create({...})``: what a dict holds, by attribute and by item, at each level."""
    return [(call.state, _config(call.get("obj") or (), call.state, call.site, 0) or unknown("config", call.site))]


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
