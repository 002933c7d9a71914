"""Functions made of functions: partial, wraps, compiled ones."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.effects.plain import through
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Closure
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import Lib, Partial, Ref, only, unknown


def partial(machine: Machine, call: Call) -> Results:
    """``functools.partial``."""
    if not call.args:
        return [(call.state, unknown("partial", call.site))]
    made = Partial(call.args[0], tuple(call.args[1:]), tuple(sorted(call.kwargs.items())))
    return [(call.state, (made,))]


def compiled(machine: Machine, call: Call) -> Results:
    """``jax.jit(f)``: f, at each call of which the framework runs something."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Closure):
        return through(machine, call)
    made = replace(found, compiled=f"{call.path}(f)")
    return [(call.state, (call.state.new(("compiled", call.site, atom), made),))]


def wraps(machine: Machine, call: Call) -> Results:
    """``functools.wraps(f)``: what it decorates goes by the name of f."""
    if not call.args:
        return [(call.state, unknown("wraps", call.site))]
    return [(call.state, (Partial((Lib("cudalint.wrapped"),), (call.args[0],), ()),))]


def wrapped(machine: Machine, call: Call) -> Results:
    """The wrapper takes the name of what it wraps."""
    if len(call.args) < 2:
        return [(call.state, unknown("wrapped", call.site))]
    inner, outer = only(call.args[0]), only(call.args[1])
    named = call.state.get(inner) if isinstance(inner, Ref) else None
    wrapper = call.state.get(outer) if isinstance(outer, Ref) else None
    if isinstance(named, Closure) and isinstance(wrapper, Closure) and isinstance(outer, Ref):
        call.state.store(outer, replace(wrapper, alias=named.address))
    return [(call.state, call.args[1])]
