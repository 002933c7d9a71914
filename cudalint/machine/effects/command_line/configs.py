"""Configurations that a program makes of dicts and classes: omegaconf, EasyDict, yacs and their like."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from cudalint.ir import nodes as ir
from cudalint.machine import operators
from cudalint.machine.effects.command_line import commands
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib import flags, settings
from cudalint.machine.effects.stdlib.flags import as_option
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import GROWS, Class, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.paths import Located
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    TRUE,
    Const,
    Lib,
    Partial,
    Ref,
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
from cudalint.text import settings as texts

_CONFIG = "omegaconf.DictConfig"
# A file that comes with a library, which leaves what models know of alone.
_SHIPPED = "cudalint.shipped-config"
_DEEPEST = 6
# Another key of the same configuration.
_NAMED = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
# What a file says of a value that the command line has to give.
_ASKED = "???"
# Where a file's own values come among those of its defaults.
_SELF = "_self_"
# What says of a file in a group that its names are not put below those of the group.
_GLOBAL = "@package _global_"


def create(machine: Machine, call: Call) -> Results:
    """``OmegaConf.create({...})``, ``EasyDict(a=1)``: what a dict holds, by attribute and by item, at each level."""
    state = call.state
    if call.text("key"):
        return [(state, _preset(call.text("key").split("."), call.text("value"), state, call.site))]
    given = call.get("obj")
    if given is None and call.text("kind") == "mapping":
        items: dict[Hashable, Value] = dict(call.kwargs.items())
        given = (state.new(("config", call.site), Dict(items)),)
    if isinstance(only(given or ()), Const | Unknown) and call.text("kind") != "mapping":
        # A text is YAML.
        given = settings.told(machine, "yaml", given or (), call) or unknown("config", call.site)
    marks = {GROWS: TRUE} if call.flag("grows") else {}
    return [(state, _config(given or (), state, call.site, 0, marks) or unknown("config", call.site))]


def of_arguments(machine: Machine, call: Call) -> Results:
    """``self.save_hyperparameters()``: what the method around it was given, or what it names, by attribute and item.

    Of a dict, a namespace or an object that it is given instead: what that holds.
    """
    state, name = call.state, call.text("key")
    found = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(call.receiver, Ref) or not isinstance(found, Instance):
        return [(state, NONE)]
    whole = only(call.args[0]) if len(call.args) == 1 else None
    if isinstance(whole, Ref):
        kept = _config((whole,), state, call.site, 0)
    else:
        known = state.get(atom) if isinstance(atom := only(found.attributes.get(name, ())), Ref) else None
        fields = {**(known.fields if isinstance(known, LibraryObject) else {}), **_arguments(machine, call)}
        kept = (state.new(("config", call.site), LibraryObject(_CONFIG, fields, call.site)),)
    state.store(call.receiver, replace(found, attributes={**found.attributes, name: kept}))
    return [(state, NONE)]


def _arguments(machine: Machine, call: Call) -> dict[str, Value]:
    """What the function that makes this call was given, by name: those that the call names, or all but the ignored."""
    state, function = call.state, call.frame.function
    scope = state.get(call.frame.scope)
    if function is None or not isinstance(scope, Scope):
        return {}
    names = {name for value in call.args for name in strings(value)}
    ignored = {*strings(call.kwargs.get("ignore", ()))}
    ignored |= {name for value in machine.elements(call.kwargs.get("ignore", ()), state) for name in strings(value)}
    plain = [one.name for one in function.params[1:] if one.kind in (ir.ParamKind.POSITIONAL, ir.ParamKind.KEYWORD)]
    given = {name: scope.variables[name] for name in plain if name in scope.variables}
    for rest in (one.name for one in function.params if one.kind is ir.ParamKind.VAR_KEYWORD):
        more = state.get(atom) if isinstance(atom := only(scope.variables.get(rest, ())), Ref) else None
        given |= {str(key): value for key, value in more.items.items()} if isinstance(more, Dict) else {}
    return {name: value for name, value in given.items() if name not in ignored and (not names or name in names)}


def _preset(names: list[str], value: str, state: State, site: Site) -> Value:
    """A configuration of a library that has this default under this key."""
    made = const(value)
    for name in reversed(names):
        made = (state.new(("preset", site, name), LibraryObject(_CONFIG, {name: made}, site)),)
    return made


def load(machine: Machine, call: Call) -> Results:
    """``OmegaConf.load("config.yaml")``: what a file of the project says."""
    state, path = call.state, call.get("file") or ()
    return [(state, _from_file(machine, path, call) or unknown("config", call.site))]


def _from_file(machine: Machine, path: Value, call: Call) -> Value | None:
    said = settings.loaded(machine, "yaml", path, call)
    return None if said is None else _config(said, call.state, call.site, 0)


def overlay(machine: Machine, call: Call) -> Results:
    """``cfg.merge_from_file(path)``: what a file says is laid over what is there; what may say anything, if unseen."""
    if not isinstance(call.receiver, Ref) and call.args:
        # ``OmegaConf.update(cfg, key, value)``
        call = replace(call, receiver=only(call.args[0]))
    found = library_object(call)
    said = _from_file(machine, call.args[0], call) if call.path.endswith("merge_from_file") and call.args else None
    if said is not None and isinstance(call.receiver, Ref):
        atom = only(_merged((call.receiver,), said, call.state, call.site, 0))
        merged = call.state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(merged, LibraryObject):
            call.state.store(call.receiver, merged)
            return [(call.state, NONE)]
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
            return {name: held for name, held in fields.items() if name != GROWS}
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


def composed(machine: Machine, call: Call) -> Results:
    """``@hydra.main(config_path="conf", config_name="config")``: the function is given what these files say."""
    folder, name = call.get("config_path"), constant(call.get("config_name") or ())
    place = Located(call.frame.module, ()).joined(text) if isinstance(text := constant(folder or ()), str) else None
    line = flags.own_line(machine, call.state)
    given = _overrides(() if line is None else line.words)
    said = _composed(machine, place, name, 0, given) if place is not None and isinstance(name, str) else None
    if said is None:
        return [(call.state, (Lib("cudalint.command"),))]
    whole = said
    for key, text in given.items():
        whole = _over(whole, _told(key, text) or {})
    said = {name: _filled_in(value, whole, 0) for name, value in said.items()}
    config = _as_options(settings.as_value(said, call.state, call.site), call.state, call.site, 0)
    for key, text in given.items():
        # What is left names no group.
        config = _with(config, key, text, call)
    return [(call.state, (Partial((Lib("cudalint.configured"),), (config,), ()),))]


def _overrides(words: Iterable[str]) -> dict[str, str]:
    """What ``model.device=cuda``, ``+trainer=ddp`` say."""
    parts = (word.lstrip("+").partition("=") for word in words if not word.startswith(("-", "~", "hydra")))
    return {key: text for key, is_set, text in parts if is_set}


def _with(config: Value, key: str, text: str, call: Call) -> Value:
    """A configuration with what a word sets."""
    said = _told(key, text)
    if said is None:
        return config
    above = _config(settings.as_value(said, call.state, call.site), call.state, call.site, 0)
    return _merged(config, above, call.state, call.site, 0)


def _told(key: str, text: str) -> dict[str, Any] | None:
    """What ``model.device=cuda`` says."""
    try:
        said: Any = texts.read("yaml", text)
    except texts.NoSettings:
        return None
    for part in reversed(key.split(".")):
        said = {part: said}
    return dict(said)


def _filled_in(value: Any, whole: dict[str, Any], depth: int) -> Any:
    """What a file says where it names another key of the configuration: ``${device}``."""
    if isinstance(value, dict):
        return {name: _filled_in(inner, whole, depth) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled_in(inner, whole, depth) for inner in value]
    named = _NAMED.fullmatch(value) if isinstance(value, str) and depth < _DEEPEST else None
    found: Any = whole
    for part in named[1].split(".") if named else ():
        if not isinstance(found, dict) or part not in found:
            return value
        found = found[part]
    return value if named is None or found == _ASKED else _filled_in(found, whole, depth + 1)


def configured(machine: Machine, call: Call) -> Results:
    """The function that such a decorator decorates, with its configuration: it is a program."""
    if len(call.args) < 2:
        return [(call.state, unknown("command", call.site))]
    config, function = call.args[0], call.args[1]
    commands.register(machine, function, call.state)
    return [(call.state, (Partial(function, (config,), ()),))]


def _composed(
    machine: Machine, folder: Located, name: str, depth: int, given: dict[str, str] | None = None
) -> dict[str, Any] | None:
    """What a file says, over what the files say that it names as its defaults; those in groups below their names.

    ``given``: words that may choose in these groups; those that do are taken out.
    """
    place = folder.joined(f"{name.removesuffix('.yaml')}.yaml")
    text = settings.text_at(machine, place) if place is not None and depth < _DEEPEST else None
    try:
        own = None if text is None else texts.read("yaml", text)
    except texts.NoSettings:
        return None
    if not isinstance(own, dict) or text is None:
        return None
    below: dict[str, Any] = {}
    defaults = own.pop("defaults", [])
    entries = defaults if isinstance(defaults, list) else []
    for entry in entries if _SELF in entries else [*entries, _SELF]:
        if entry == _SELF:
            below = _over(below, own)
        elif isinstance(entry, str):
            below = _over(below, _composed(machine, folder, entry, depth + 1) or {})
        for group, option in entry.items() if isinstance(entry, dict) else ():
            if not isinstance(group, str) or " " in group or "@" in group:
                # It replaces what another file chose, or is there for some.
                return None
            if given is not None and group in given:
                option = given.pop(group)
            chosen = _grouped(machine, folder, group, option, depth) if isinstance(option, str) else {}
            if chosen is None:
                return None
            below = _over(below, chosen)
    return below


def _grouped(machine: Machine, folder: Located, group: str, option: str, depth: int) -> dict[str, Any] | None:
    within = folder.joined(group)
    found = None if within is None else _composed(machine, within, option, depth + 1)
    place = None if within is None else within.joined(f"{option.removesuffix('.yaml')}.yaml")
    if found is None or place is None:
        return None
    if _GLOBAL in (settings.text_at(machine, place) or ""):
        return found
    for part in reversed(group.strip("/").split("/")):
        found = {part: found}
    return found


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """One configuration laid over another."""
    joint = {name: _over(below[name], value) for name, value in above.items() if _are_dicts(below.get(name), value)}
    return {**below, **above, **joint}


def _are_dicts(one: object, other: object) -> bool:
    return isinstance(one, dict) and isinstance(other, dict)


def _as_options(value: Value, state: State, site: Site, depth: int) -> Value:
    """Values that a command line may set otherwise, as those of its options."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST else None
    if isinstance(found, Dict):
        fields = {
            name: as_option(_as_options(inner, state, site, depth + 1), unknown("option", site, depth, name))
            for name, inner in found.items.items()
            if isinstance(name, str)
        }
        return (state.new(("config", site, depth), LibraryObject(_CONFIG, fields, site)),)
    return _config(value, state, site, depth)


def item(machine: Machine, call: Call) -> Results:
    """``config["train"]``, ``config.get("train", default)``."""
    found = library_object(call)
    names = strings(call.args[0]) if call.args else []
    if found is None or len(names) != 1:
        return [(call.state, unknown("config item", call.site))]
    if len(call.args) == 1 and GROWS in found.fields and call.path.endswith("__getitem__"):
        return [(call.state, machine.grown(call.receiver, names[0], call.state, call.site))]
    default = call.args[1] if len(call.args) > 1 else unknown("config item", call.site)
    return [(call.state, found.fields.get(names[0], default))]


def set_item(machine: Machine, call: Call) -> Results:
    """``config["device"] = "cuda"``."""
    found = library_object(call)
    names = strings(call.args[0]) if call.args else []
    if found is not None and isinstance(call.receiver, Ref) and len(names) == 1 and len(call.args) > 1:
        call.state.store(call.receiver, replace(found, fields={**found.fields, names[0]: call.args[1]}))
    return [(call.state, NONE)]


def dotlist(machine: Machine, call: Call) -> Results:
    """``OmegaConf.from_dotlist(["model.device=cuda"])``."""
    state = call.state
    rows = machine.exact_items(call.get("items") or (), state)
    texts_given = None if rows is None else [constant(row) for row in rows]
    made: dict[str, Any] = {}
    for row in texts_given or ():
        if not isinstance(row, str) or "=" not in row:
            return [(state, unknown("config", call.site))]
        key, _, text = row.partition("=")
        try:
            said: Any = texts.read("yaml", text)
        except texts.NoSettings:
            return [(state, unknown("config", call.site))]
        for part in reversed(key.split(".")):
            said = {part: said}
        made = _over(made, said)
    if texts_given is None:
        return [(state, unknown("config", call.site))]
    return [(state, _config(settings.as_value(made, state, call.site), state, call.site, 0))]


def plain(machine: Machine, call: Call) -> Results:
    """``OmegaConf.to_container(cfg)``: dicts and lists again."""
    return [(call.state, _as_plain(call.get("obj") or unknown("config", call.site), call.state, call.site, 0))]


def _as_plain(value: Value, state: State, site: Site, depth: int) -> Value:
    fields = None if depth > _DEEPEST else _fields(value, state)
    if fields is not None:
        items: dict[Hashable, Value] = {n: _as_plain(v, state, site, depth + 1) for n, v in fields.items()}
        return (state.new(("plain", site, depth, only(value)), Dict(items)),)
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    if isinstance(found, Sequence) and found.items is not None and depth <= _DEEPEST:
        parts = tuple(_as_plain(part, state, site, depth + 1) for part in found.items)
        return (state.new(("plain", site, depth, atom), replace(found, items=parts)),)
    return value


def select(machine: Machine, call: Call) -> Results:
    """``OmegaConf.select(cfg, "model.device", default=None)``."""
    state, names = call.state, strings(call.get("key") or ())
    value = call.get("config") or ()
    for part in names[0].split(".") if len(names) == 1 else ("",):
        fields = _fields(value, state)
        if fields is None or not part:
            return [(state, unknown("config item", call.site))]
        value = fields.get(part, call.get("default") or NONE)
        if part not in fields:
            break
    return [(state, value)]


def _config(value: Value, state: State, site: Site, depth: int, marks: Mapping[str, Value] | None = None) -> Value:
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST else None
    match found:
        case Dict(items=items):
            fields = {k: _config(v, state, site, depth + 1, marks) for k, v in items.items() if isinstance(k, str)}
            return (state.new(("config", site, depth), LibraryObject(_CONFIG, {**(marks or {}), **fields}, site)),)
        case Sequence(items=tuple(parts)):
            inner = tuple(_config(part, state, site, depth + 1, marks) for part in parts)
            return (state.new(("config list", site, depth), Sequence("list", inner)),)
    match atom:
        case Const(value=str(text)) if "${" in text or text == _ASKED:
            # What another key says, or who starts the program.
            return unknown("config", site, text)
    return value
