"""Text that a program evaluates: ``eval(args.mode)``, ``eval("models." + name)``, ``eval(f"{name}(args)")``."""

from __future__ import annotations

import re
from collections.abc import Hashable

from cudalint.machine.effects import plain
from cudalint.machine.effects.stdlib import settings
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Dict, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Lib, Ref, Value, const, holds_deferred, only, strings, union
from cudalint.structs import replace

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
# A name, and what it is called with: names, whole numbers and plain texts.
_TEXT = re.compile(rf"\s*(?P<name>{_NAME})\s*(?P<called>\((?P<given>[^()]*)\))?\s*")
_GIVEN = re.compile(
    rf"\s*(?:(?P<keyword>[A-Za-z_]\w*)\s*=\s*)?"
    rf"(?:(?P<name>{_NAME})|(?P<number>\d+)|([\"'])(?P<text>[^\"'\\]*)\4)\s*"
)
_CONSTANTS: dict[str, Value] = {"None": const(None), "True": const(True), "False": const(False)}
MOST_TEXTS = 4


def evaluated(machine: Machine, call: Call) -> Results:
    """``eval(text)`` in the names of the function: each text that it may be, if it names something or calls that."""
    given = call.get(call.params[0]) if call.params else None
    texts = strings(given) if given is not None else []
    found = [_TEXT.fullmatch(text) for text in texts[: MOST_TEXTS + 1]]
    if given is None or not found or len(found) > MOST_TEXTS or len(found) < len(given):
        return plain.unmodelled(machine, call)
    results = _evaluated(machine, call, found)
    return [(state, NONE) for state, _ in results] if call.text("returns") == "none" else results


def executed(machine: Machine, call: Call) -> Results:
    """``exec(open("config.py").read())``: a file of the project runs here, and its names are those of this module."""
    home = settings.module_of_text(machine, call.get(call.params[0]) or ())
    module = None if home is None or home in machine.executing else machine.program.module(home)
    if module is None:
        return plain.unmodelled(machine, call)
    around, names = _names_given(call)
    inner = Frame(around, module.name, raises=call.frame.raises, tries=call.frame.tries)
    machine.executing.append(module.name)
    states = machine.block(module.body, [call.state], inner)
    machine.executing.pop()
    for state in states:
        _keep_names(names, around, state)
    return [(state, NONE) for state in states]


def _names_given(call: Call) -> tuple[Ref, Ref | None]:
    """The scope that a text runs in, and the dict that its names go to where that is one of the program's own."""
    atom = only(call.get("globals") or ())
    held = call.state.get(atom) if isinstance(atom, Ref) else None
    module = Ref(("module", call.frame.module))
    if isinstance(held, Dict) and isinstance(held.view, Ref):
        return held.view, None
    if isinstance(atom, Ref) and isinstance(held, Dict):
        variables = {str(name): value for name, value in held.items.items() if isinstance(name, str)}
        return call.state.new(("executed", call.site), Scope(variables, None, call.frame.module, "module")), atom
    if call.frame.scope == module and call.get("locals") is None:
        return module, None
    # What is set in a function are no variables of it.
    return call.state.new(("executed", call.site), Scope({}, call.frame.scope, call.frame.module, "function")), None


def _keep_names(names: Ref | None, around: Ref, state: State) -> None:
    ran, held = state.get(around), None if names is None else state.get(names)
    if names is not None and isinstance(held, Dict) and isinstance(ran, Scope):
        items: dict[Hashable, Value] = {**held.items}
        items.update(ran.variables)
        state.store(names, replace(held, items=items))


def timed(machine: Machine, call: Call) -> Results:
    """``timeit.timeit(stmt)``: a function that is called, or a text."""
    given = call.get(call.params[0])
    return plain.call_argument(machine, call) if given is None or not strings(given) else evaluated(machine, call)


def _evaluated(machine: Machine, call: Call, found: list[re.Match[str] | None]) -> Results:
    if len(found) == 1 and found[0] is not None:
        return _one(machine, call, found[0])
    results: Results = [(call.state, ())]
    for one in found:
        if one is None or one["called"]:
            return plain.unmodelled(machine, call)
        results = [
            (after, union([before, value]))
            for state, before in results
            for after, value in _one(machine, replace(call, state=state), one)
        ]
    return results


def _one(machine: Machine, call: Call, text: re.Match[str]) -> Results:
    results = _named(machine, call, text["name"], call.state)
    if not text["called"]:
        return results
    given = _given(machine, call, text["given"])
    if given is None:
        return plain.unmodelled(machine, call)
    args, kwargs = given
    return [
        one
        for state, function in results
        for one in machine.call_value(function, list(args), dict(kwargs), state, call.frame, call.site)
    ]


def _given(machine: Machine, call: Call, text: str) -> tuple[list[Value], dict[str, Value]] | None:
    """What a call in a text is given; None where that is more than names and constants."""
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    for part in text.split(",") if text.strip() else ():
        found = _GIVEN.fullmatch(part)
        if found is None:
            return None
        if found["name"]:
            values = _named(machine, call, found["name"], call.state)
            if len(values) != 1:
                return None
            value = values[0][1]
        else:
            value = const(int(found["number"])) if found["number"] else const(found["text"])
        if found["keyword"]:
            kwargs[found["keyword"]] = value
        else:
            args.append(value)
    return args, kwargs


def _named(machine: Machine, call: Call, dotted: str, state: State) -> Results:
    first, *rest = dotted.split(".")
    value = _CONSTANTS.get(first) or machine.lookup(first, state, call.frame.scope)
    if value is None and machine.library.is_builtin(first):
        value = (Lib(f"builtins.{first}"),)
    if value is None:
        return plain.unmodelled(machine, replace(call, state=state))
    results = machine.resolve_deferred(value, state, call.frame) if holds_deferred(value) else [(state, value)]
    for name in rest:
        results = [r for after, held in results for r in machine.attribute(held, name, after, call.frame, call.site)]
    return results
