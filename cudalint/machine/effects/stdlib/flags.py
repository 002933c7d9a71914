"""What a user of a command line may say instead of a default: flags are given or not, and either may be meant."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.heap import Class, Closure
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import FALSE, TRUE, Bound, Ref, Value, const, only, unknown


def may_be_given(default: Value, names: Iterable[str], site: Site) -> Value:
    """A flag with a default, by how it is spelled and how it is switched off: what it is if a user says so."""
    on, off = names
    if default == TRUE:
        return unknown("option", site, off, "off")
    return unknown("option", site, on, "flag") if default == FALSE else default


def of_function(machine: Machine, function: Value, state: State, said: list[str] | None = None) -> dict[str, Value]:
    """The flags of a function, or of a record, that a command line is made of; by its words where they are ``said``."""
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
        if default not in (TRUE, FALSE):
            continue
        on, off = _spelled(name)
        if said is None:
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
