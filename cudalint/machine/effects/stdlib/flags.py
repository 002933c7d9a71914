"""What a user of a command line may say instead of a default: flags are given or not, and either may be meant."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.heap import Class, Closure
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import FALSE, TRUE, Bound, Ref, Value, const, constant, only, unknown

# Texts by which an option says no: whoever has a GPU may say something else.
_WITHOUT = frozenset({"no", "n", "false", "f", "off", "none", "cpu"})


def may_be_given(default: Value, names: Iterable[str], site: Site) -> Value:
    """A flag with a default, by how it is spelled and how it is switched off: what it is if a user says so."""
    on, off = names
    if default == TRUE:
        return unknown("option", site, off, "off")
    return unknown("option", site, on, "flag") if default == FALSE else default


def as_option(default: Value, given: Value) -> Value:
    """An option that the user may set: a flag may be true or false, a default of nothing may become something.

    One of something may become several; a weight of 1.0 counts nothing.
    """
    found = constant(default)
    if isinstance(found, bool):
        return given
    if isinstance(found, float) and found == 1:
        return default
    if found in (-1, 0, 1, "", "0", "-1") or (isinstance(found, str) and found.lower() in _WITHOUT):
        return (*default, *given)
    return default


def of_function(machine: Machine, function: Value, state: State, said: list[str] | None = None) -> dict[str, Value]:
    """What a command line sets of a function, or of a record, that it is made of; flags by its words if ``said``."""
    atom = only(function)
    atom = atom.function if isinstance(atom, Bound) else atom
    found = state.get(atom) if isinstance(atom, Ref) else None
    match found:
        case Closure(defaults=defaults, module=module, function=code):
            given, site = dict(defaults), Site(module, code.ordinal)
        case Class(site=site) if isinstance(atom, Ref):
            given = {name: default for name, default in machine.record_fields(atom, state) if default is not None}
        case _:
            return {}
    flags: dict[str, Value] = {}
    for name, default in given.items():
        on, off = _spelled(name)
        if default not in (TRUE, FALSE):
            option = as_option(default, unknown("option", site, on, "choice"))
            # How many there are of something is what the function says, as long as nobody says otherwise.
            if said is None and option != default and default not in (const(0), const(1)):
                flags[name] = option
        elif said is None:
            flags[name] = may_be_given(default, (on, off), site)
        elif not said:
            flags[name] = default
        elif said.count(on) != said.count(off):
            flags[name] = const(on in said)
    return flags


def _spelled(name: str) -> tuple[str, str]:
    """How a flag is given, and how it is switched off."""
    text = name.replace("_", "-")
    return f"--{text}", f"--no-{text}"
