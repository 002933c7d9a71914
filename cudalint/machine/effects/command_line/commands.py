"""Command lines made of functions: click, typer and their like."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import questions
from cudalint.machine.effects.stdlib.environment import note_machines
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Closure, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, TRUE, Bound, Lib, Partial, Rank, Ref, Value, constant, only, strings, unknown

# What a function of a command line is given, of which only the class is known.
_CONTEXT = unknown(questions.OF_CLASS, "click.Context")


def register(machine: Machine, function: Value, state: State) -> None:
    """Record a function that is started as a program of its own."""
    for atom in function:
        target = atom
        while isinstance(target, Partial):
            target = only(target.function) or NONE[0]
        found = state.get(target) if isinstance(target, Ref) else None
        if isinstance(found, Closure):
            machine.record.commands.append(Site(found.module, found.function.ordinal))


def plain(machine: Machine, call: Call) -> Results:
    """``@click.command()``, ``@hydra.main()``: the function is the program."""
    function = call.args[0] if call.args else ()
    if not function or not _callable(function, call.state):
        return [(call.state, (Lib("cudalint.command"),))]
    register(machine, function, call.state)
    return [(call.state, function)]


def option(machine: Machine, call: Call) -> Results:
    """``@click.option("--workers", default=4)``: the function is called with the default."""
    # ``--gpu/--no-gpu`` is named after the first of both.
    names = [n.partition("/")[0] for v in call.args for n in strings(v)]
    name = _parameter(names)
    if name is None:
        return [(call.state, unknown("option", call.site))]
    default = call.kwargs.get("default", NONE)
    value = unknown("option", call.site, *_spelled(call, names)) if default == NONE else default
    note_machines(call.state, name)
    if name == "local_rank":
        value = (Rank("local"),)
        call.state.process = replace(call.state.process, local_rank_at_hand=True)
    return [(call.state, (Partial((Lib("cudalint.option"),), (value,), (("name", (_text(name),)),)),))]


def _spelled(call: Call, names: list[str]) -> tuple[str, str]:
    """How a user writes an option, and how it is to be understood that it has a value."""
    flag = max((n for n in names if n.startswith("-")), key=len, default=names[0])
    two = any("/" in text for value in call.args for text in strings(value))
    return flag, "flag" if two or call.kwargs.get("is_flag") == TRUE else "value"


def _text(name: str) -> Lib:
    return Lib(f"cudalint.name.{name}")


def _parameter(names: list[str]) -> str | None:
    """The parameter an option becomes: a name without dashes if there is one, else the longest option."""
    plain = [n for n in names if not n.startswith("-")]
    if plain:
        return plain[0]
    return max((n.lstrip("-") for n in names), key=len, default="").replace("-", "_") or None


def with_option(machine: Machine, call: Call) -> Results:
    """The function that an option decorates, with its value."""
    if len(call.args) < 2:
        return [(call.state, unknown("command", call.site))]
    value, function = call.args[0], call.args[1]
    name = only(call.kwargs.get("name", ()))
    if not isinstance(name, Lib):
        return [(call.state, function)]
    return [(call.state, (Partial(function, (), ((name.path.rpartition(".")[2], value),)),))]


def with_context(machine: Machine, call: Call) -> Results:
    """``click.pass_context``, ``click.pass_obj``: all functions of a command line are given the same context."""
    function = call.args[0] if call.args else ()
    if not function or not _callable(function, call.state):
        return [(call.state, function or unknown("command", call.site))]
    if not call.path.endswith("pass_obj"):
        return [(call.state, (Partial(function, (_CONTEXT,), ()),))]
    found = machine.attribute(_CONTEXT, "obj", call.state, call.frame, call.site)
    return [(state, (Partial(function, (thing,), ()),)) for state, thing in found]


def current_context(machine: Machine, call: Call) -> Results:
    """``click.get_current_context()``: what functions of a command line are given."""
    return [(call.state, _CONTEXT)]


def group(machine: Machine, call: Call) -> Results:
    """``click.group()``, ``typer.Typer()``: gathers commands; as a decorator it is handed the function of its own."""
    function = call.args[0] if call.args and call.flag("decorator") else ()
    made = LibraryObject("click.Group", {"<function>": function or NONE, "<commands>": NONE}, call.site)
    ref = call.state.new(("group", call.site), made)
    if call.flag("decorator") and not function:
        return [(call.state, (Bound(Lib("click.Group.callback.apply"), ref),))]
    return [(call.state, (ref,))]


def group_function(machine: Machine, call: Call) -> Results:
    """The group's own function, which runs before each command; the name stands for the group from now on."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, LibraryObject) and call.args:
        call.state.store(call.receiver, replace(found, fields={**found.fields, "<function>": call.args[0]}))
        return [(call.state, (call.receiver,))]
    if not call.args and call.receiver is not None:
        return [(call.state, (Bound(Lib("click.Group.callback.apply"), call.receiver),))]
    return [(call.state, call.args[0] if call.args else unknown("group", call.site))]


def command(machine: Machine, call: Call) -> Results:
    """``@group.command()``: one more command of the group."""
    function = call.args[0] if call.args else ()
    if not function or not _callable(function, call.state):
        return [(call.state, (Bound(Lib("click.Group.command.apply"), call.receiver or Lib("cudalint.identity")),))]
    return add_command(machine, call)


def _callable(function: Value, state: State) -> bool:
    atom = only(function)
    return isinstance(atom, Partial) or (isinstance(atom, Ref) and isinstance(state.get(atom), Closure))


def add_command(machine: Machine, call: Call) -> Results:
    """``group.add_command(function)``."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    function = call.args[0] if call.args else unknown("command", call.site)
    register(machine, function, call.state)
    if isinstance(call.receiver, Ref) and isinstance(found, LibraryObject):
        known = found.fields.get("<commands>", NONE)
        rows = () if known == NONE else tuple(machine.elements(known, call.state))
        listed = call.state.new(("commands", found.site), Sequence("list", (*rows, function)))
        call.state.store(call.receiver, replace(found, fields={**found.fields, "<commands>": (listed,)}))
    return [(call.state, function)]


def run_group(machine: Machine, call: Call) -> Results:
    """``group()``: its function, then one of its commands: each is a program of its own."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(found, LibraryObject):
        return [(call.state, unknown("group", call.site))]
    states = [call.state]
    own = found.fields.get("<function>", NONE)
    if constant(own) is ...:
        states = [s for s, _ in machine.call_value(own, [], {}, call.state, call.frame, call.site)]
    commands = machine.elements(found.fields.get("<commands>", NONE), call.state)
    for function in commands:
        for state in states:
            ended = machine.call_value(function, [], {}, state.clone(), call.frame, call.site)
            machine.end([s for s, _ in ended])
    # click ends the process after the command.
    return [] if commands else [(s, NONE) for s in states]
