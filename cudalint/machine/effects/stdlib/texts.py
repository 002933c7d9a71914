"""Methods of strings, and of the text of a device."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import formats, mappings, operators, versions
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import FALSE, Const, Dev, Lib, Rank, Ref, Value, const, constant, only, unknown

_ENVIRONMENT = Lib("os.environ")


def str_method(machine: Machine, call: Call) -> Results:
    """Methods of strings, what they give of constants aside: what is filled in, and the text of a device."""
    state = call.state
    name = call.path.rpartition(".")[2]
    if isinstance(call.receiver, Dev):
        return [(state, _device_text_method(name, call.receiver, call))]
    if isinstance(call.receiver, Lib) and (of_version := _of_version(machine, name, call.receiver, call)):
        return [(state, of_version)]
    text = call.receiver.value if isinstance(call.receiver, Const) else None
    if not isinstance(text, str):
        return [(state, unknown("str", call.site))]
    sym = ("str", name, call.receiver, call.site)
    if name == "format" and not call.open:
        args = [_shown(machine, value, text, call) for value in call.args]
        named = {key: _shown(machine, value, text, call) for key, value in call.kwargs.items()}
        return [(state, formats.by_format(text, args, named.get, _parts(machine, call), sym))]
    if name == "format_map" and len(call.args) == 1:
        held = mappings.dict_of(only(call.args[0]), state)
        found = None if held is None else state.get(held)
        known = found.items if isinstance(found, Dict) and found.exact else {}
        return [(state, formats.by_format(text, (), known.get, _parts(machine, call), sym))]
    if name == "join" and len(call.args) == 1:
        return [(state, _joined(machine, text, call))]
    return [(state, unknown(*sym))]


def template(machine: Machine, call: Call) -> Results:
    """``Template(text).substitute({...}, name=value)``, ``safe_substitute``; ``os.path.expandvars(text)``."""
    made, state = library_object(call), call.state
    is_expanded = call.text("kind") == "environment"
    if is_expanded:
        text = constant(call.args[0] if call.args else ())
    else:
        text = constant(made.fields.get("template", ()) if made is not None else ())
    if isinstance(text, str) and "$" not in text:
        return [(state, const(text))]
    named = _by_environment(state) if is_expanded else _by_mapping(call)
    if not isinstance(text, str) or named is None:
        return [(state, unknown("template", call.site))]
    sym = ("template", call.receiver, call.site)
    return [(state, formats.by_template(text, named, sym, keeps=call.path.endswith("safe_substitute")))]


def _by_mapping(call: Call) -> formats.Named | None:
    """What names in a template stand for; None where that is not known."""
    if call.args and only(call.args[0]) == _ENVIRONMENT:
        return _by_environment(call.state)
    held = mappings.dict_of(only(call.args[0]), call.state) if call.args else None
    found = None if held is None else call.state.get(held)
    if call.open or (call.args and not (isinstance(found, Dict) and found.exact)):
        return None
    given = found.items if isinstance(found, Dict) else {}
    return {**{key: value for key, value in given.items() if isinstance(key, str)}, **call.kwargs}.get


def _by_environment(state: State) -> formats.Named:
    """What variables of the environment stand for: what the program set them to, or whoever starts it."""
    return lambda name: state.process.environ(name) or unknown("environ", name)


def _shown(machine: Machine, value: Value, text: str, call: Call) -> Value:
    """An object of the program as the text that it says it is, where nothing else is asked of it."""
    found = call.state.get(atom) if isinstance(atom := only(value), Ref) else None
    formats_itself = isinstance(found, Instance) and machine.user_method(found, "__format__", call.state) is not None
    if formats_itself or "!" in text or "[" in text or "." in text:
        return value
    said = machine.special(value, ("__str__", "__repr__"), [], call.state.clone(), call.frame, call.site)
    return value if said is None or len(said) != 1 else said[0][1]


def _parts(machine: Machine, call: Call) -> formats.Part:
    """Finds ``{config.name}`` and ``{table[key]}``, where asking for it does nothing else."""

    def part(value: Value, name: str, is_attribute: bool) -> Value | None:
        state, key = call.state.clone(), const(int(name) if name.isdigit() else name)
        if is_attribute:
            found = machine.attribute(value, name, state, call.frame, call.site)
        else:
            found = machine.item(value, key, state, call.frame, call.site)
        return found[0][1] if len(found) == 1 else None

    return part


def _joined(machine: Machine, between: str, call: Call) -> Value:
    """``":".join(["cuda", index])``, of parts that are known one by one."""
    sym = ("str", "join", call.receiver, call.site)
    items = machine.exact_items(call.args[0], call.state)
    if items is None:
        return unknown(*sym)
    parts: list[Value] = []
    for item in items:
        parts += [item] if not parts else [const(between), item]
    return operators.joined(parts, sym)


def _device_text_method(name: str, device: Dev, call: Call) -> Value:
    """``f"cuda:{rank}".startswith("cuda")``: the kind is known where the index is not."""
    known = [constant(v) for v in call.args]
    if name == "startswith" and len(known) == 1 and isinstance(known[0], str):
        shown = operators.device_text(device) if not isinstance(device.index, Rank) else f"{device.kind}:"
        return const(shown.startswith(known[0]))
    if name == "split" and known[:1] == [":"]:
        parts: tuple[Value, ...] = (const(device.kind),)
        if device.index is not None:
            parts = (*parts, (device.index,) if isinstance(device.index, Rank) else const(str(device.index)))
        return (call.state.new(("str", call.site), Sequence("list", parts)),)
    if name in _KEEP_DEVICES and not known:
        return (device,)
    if name == "replace" and all(isinstance(part, str) for part in known):
        return _replaced(device, known, call)
    return unknown("str", name, device, call.site)


# The text of a device has small letters and no spaces.
_KEEP_DEVICES = frozenset({"casefold", "lower", "lstrip", "rstrip", "strip"})


def _replaced(device: Dev, parts: list[Hashable], call: Call) -> Value:
    """``str(device).replace("cuda:", "")`` is the number of the GPU."""
    if isinstance(device.index, Rank):
        shown = f"{device.kind}:"
        if parts == [shown, ""]:
            return (device.index,)
        return (device,) if parts and str(parts[0]) not in shown else unknown("str", "replace", device, call.site)
    match parts:
        case [str(old), str(new)]:
            return const(operators.device_text(device).replace(old, new))
    return unknown("str", "replace", device, call.site)


def _of_version(machine: Machine, name: str, of: Lib, call: Call) -> Value:
    """What a method of the text of a package's version gives, where its least release tells; else nothing."""
    least, given = machine.least_version(of), constant(call.args[0]) if call.args else None
    if least is None:
        return ()
    if name == "split" and given == ".":
        return (call.state.new(("version", call.site), Sequence("list", tuple(versions.parts(least)))),)
    if name == "split":
        # What may stand behind the numbers: a build, a release that comes before.
        return (call.state.new(("version", call.site), Sequence("list", ((of,),), (), open=True)),)
    if name == "startswith" and isinstance(given, str) and versions.is_older(given, least):
        return FALSE
    return (of,) if name in _KEEP_DEVICES or name == "replace" else ()


def version(machine: Machine, call: Call) -> Results:
    """``Version(text)``: a version that a program writes down, or that of a package."""
    atom = only(call.args[0]) if call.args else None
    match atom:
        case Const(value=str(text)):
            return [(call.state, versions.version(text))]
        case Lib() if (least := machine.least_version(atom)) is not None:
            return [(call.state, versions.installed(least))]
    return [(call.state, unknown("version", call.site, tuple(call.args)))]
