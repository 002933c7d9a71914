"""Hooks of modules and tensors: kept until their handle removes them, and run by what calls the module."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.ir.nodes import ParamKind
from cudalint.machine import hooked
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import HOOKS, Closure, Dict, Sequence
from cudalint.machine.hooked import Hook
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Unknown, Value, const, only, unknown
from cudalint.structs import replace


def register(machine: Machine, call: Call) -> Results:
    """``module.register_forward_hook(f)``: f runs whenever the module does, until ``remove()`` of what this gives."""
    function = call.get("hook")
    if not function:
        return [(call.state, unknown("handle", call.site))]
    of: Value = () if call.receiver is None else (call.receiver,)
    of = call.get("tensors") or of
    named = call.kwargs.get("with_kwargs") == const(True)
    return [(call.state, (hooked.keep(Hook(of, function, call.text("kind"), named, call.site), call.state),))]


def remove(machine: Machine, call: Call) -> Results:
    """``handle.remove()``, and the end of a ``with`` statement whose manager is a handle."""
    handle = call.receiver
    for hook in hooked.forget(handle, call.state) if isinstance(handle, Ref) else ():
        machine.is_dropped(hook.runs, call.state)
    return [(call.state, NONE)]


def before(machine: Machine, call: Call) -> list[Call]:
    """A call of a module after what runs before it: what such a hook returns takes the place of the arguments."""
    calls = [call]
    for hook in _of_module(call, hooked.BEFORE):
        calls = [
            replace(one, state=after, args=_as_arguments(machine, given, after) or one.args)
            for one in calls
            for after, given in _called(machine, hook, one, [])
        ]
    return calls


def after(machine: Machine, call: Call, results: Results) -> Results:
    """What a call of a module gives after what runs behind it: what such a hook returns takes the place of it."""
    for hook in _of_module(call, hooked.FORWARD):
        results = [
            (left, made if given in ((), NONE) else given)
            for state, made in results
            for left, given in _called(machine, hook, replace(call, state=state), [made])
        ]
    return results


def around(machine: Machine, call: Call, results: Results) -> Results:
    """What a method gives that runs some hooks besides: ``state_dict()``, ``load_state_dict()``."""
    if call.state.get(HOOKS) is None:
        return results
    for hook in _of_module(call, call.text("hooks")):
        more = _taken(hook, call.state) - 1
        given = [unknown("given", call.site, number) for number in range(more)]
        of = hook.of or (() if call.receiver is None else (call.receiver,))
        results = [
            (after, made)
            for state, made in results
            for after, _ in machine.call_value(hook.runs, [of, *given], {}, state, call.frame, call.site)
        ]
    return results


def _taken(hook: Hook, state: State) -> int:
    """How many arguments a hook takes by their places."""
    found = state.get(atom) if isinstance(atom := only(hook.runs), Ref) else None
    params = found.function.params if isinstance(found, Closure) else ()
    return sum(param.kind is ParamKind.POSITIONAL for param in params) or 1


def _of_module(call: Call, kind: str) -> list[Hook]:
    receiver = call.receiver
    if receiver is None:
        return []
    return [one for one in hooked.pending(call.state) if one.kind == kind and _is_run(one, call)]


def _is_run(hook: Hook, call: Call) -> bool:
    """Whether the call is one of the module itself, or of one of a library that holds it and whose code is not seen."""
    own = call.receiver
    if own is None or not hook.of or own in hook.of:
        return own is not None
    return library_object(call) is not None and hooked.runs_in(hook, own, call.state)


def _called(machine: Machine, hook: Hook, call: Call, results: list[Value]) -> Results:
    """Call a hook with the module, the tuple of its arguments, those by name if it asks for them, and its result."""
    state = call.state
    of: Value = hook.of or (() if call.receiver is None else (call.receiver,))
    args: list[Value] = [of, (state.new(("arguments", call.site), Sequence("tuple", tuple(call.args))),)]
    if hook.named:
        named: dict[Hashable, Value] = dict(call.kwargs.items())
        args.append((state.new(("named arguments", call.site), Dict(named)),))
    return machine.call_value(hook.runs, [*args, *results], {}, state, call.frame, call.site)


def _as_arguments(machine: Machine, given: Value, state: State) -> list[Value]:
    """The arguments that a hook returned: a tuple of them, or one; none where it returned nothing."""
    if given in ((), NONE) or (len(given) > 1 and NONE[0] in given):
        return []
    found = machine.exact_items(given, state) if only(given) is not None else None
    return list(found) if found is not None else [given]


def ends(machine: Machine, state: State) -> None:
    """A process, or a call without a visible caller, is over: whoever gave it a module may call that later."""
    frame = Frame(Ref(("module", machine.main)), machine.main)
    for hook in hooked.pending(state):
        if hooked.has_method(hook):
            continue
        given = [atom for atom in hook.of if isinstance(atom, Unknown)]
        machine.may_run_hooks(given, state, frame, hook.site)
