"""Start methods: chosen once, for a library or for a context."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.receivers import library_object, library_of
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching
from cudalint.machine.launch.arguments import constant_bool
from cudalint.machine.launch.forbidden import by_spawn, imported_again
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Method, State
from cudalint.machine.trace import Chain
from cudalint.machine.values import NONE, TRUE, Const, Value, const, strings, unknown
from cudalint.structs import replace


def set_start_method(machine: Machine, call: Call) -> Results:
    """``set_start_method(method, force=False)``: once, and before anything used the default.

    By ``kind`` a library does so by force (``"forced"``), or only where nothing is settled yet (``"first"``), or makes
    something that settles the default (``"default"``).
    """
    state = call.state
    library = library_of(call)
    if call.text("kind") == "default":
        launching.fix_default(machine, state, library, call.site, call.label)
        return [(state, NONE)]
    if call.text("kind") == "first" and state.process.method(library).fixed is not None:
        return [(state, NONE)]
    fixed = call.text("method")
    value = const(fixed) if fixed else questions.if_unset(call.get("method") or unknown("method", call.site))
    forced = call.get("force")
    force = constant_bool(forced, False) if call.text("kind") != "forced" else True
    method = state.process.method(library)
    if machine.is_import_of_main(state) and force is not True and by_spawn(state) and not call.text("kind"):
        if call.frame.tries == 0:
            imported_again(machine, call, state, "set_start_method()", "crash")
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    if method.fixed is not None and force is not True:
        outcome = _method_outcome(machine, call, state, method.fixed, Kind.METHOD_ALREADY_SET)
        if method.names is not None and tuple(strings(value)) == method.names:
            return machine.fail(state, call.frame, Raised(outcome, ("RuntimeError",), harmless=True))
        late = machine.chain(state, call.site, "sets the start method too late")
        if set(strings(value)) & launching.FRESH:
            state.process = state.process.with_method(library, replace(method, late=late))
        return machine.fail(state, call.frame, Raised(outcome, ("RuntimeError",)))
    where = machine.chain(state, call.site, "sets the start method")
    if value == NONE:
        made = Method(None, None, where)
    else:
        names = tuple(strings(value))
        made = Method(names if len(names) == len(value) else (*names, "?"), where, where)
    state.process = state.process.with_method(library, made)
    return [(state, NONE)]


def _method_outcome(machine: Machine, call: Call, state: State, cause: Chain, kind: Kind) -> Outcome:
    return outcome_of(
        machine,
        state,
        kind,
        call.site,
        "crash",
        cause=cause,
        effect=machine.chain(state, call.site, "the context has already been set"),
    )


def get_context(machine: Machine, call: Call) -> Results:
    """``get_context("spawn")``: a context object; without an argument the default, settled."""
    state = call.state
    value = const(call.text("value")) if call.text("value") else call.get("method")
    if value is not None and not call.text("value") and questions.is_option(value) and not strings(value):
        truth, sym = machine.truth(value, state)
        if truth is None and sym is not None:
            # An option without a default: not given it is None.
            others = get_context(machine, replace(call, state=state.split(sym), args=[NONE], kwargs={}))
            return [*others, *_context(machine, call, state, value)]
    return _context(machine, call, state, value)


def _context(machine: Machine, call: Call, state: State, value: Value | None) -> Results:
    library = library_of(call)
    # What users may give for an option, or set, says nothing about the program as it is.
    value = NONE if value is None else questions.if_unset(questions.if_not_given(value))
    if Const(None) in value:
        default = _of_default(machine, state, library)
        value = tuple(dict.fromkeys(a for atom in value for a in (default if atom == Const(None) else (atom,))))
        launching.fix_default(machine, state, library, call.site, "get_context()")
    fields: dict[str, Value] = {"<method>": value, "<library>": const(library)}
    made = LibraryObject(f"{library}.context", fields, call.site)
    return [(state, (state.new(("context", call.site), made),))]


def _of_default(machine: Machine, state: State, library: str) -> Value:
    """The start method of the default context: where nothing was set, each Python has one of its own."""
    by_python = state.process.method(library).names is None and len(machine.host.defaults()) > 1
    return const(launching.BY_PYTHON) if by_python else _default_names(machine, state, library)


def _default_names(machine: Machine, state: State, library: str) -> Value:
    found = launching.ways(machine, state, library, None)
    return tuple(Const(w.method) for w in found) or const("default")


def get_start_method(machine: Machine, call: Call) -> Results:
    """``get_start_method()``: settles the default; of a context, its own."""
    state = call.state
    context = library_object(call)
    if context is not None and "<method>" in context.fields:
        of_context = context.fields["<method>"]
        by_python = of_context == const(launching.BY_PYTHON)
        return [(state, tuple(Const(n) for n, _ in machine.host.defaults()) if by_python else of_context)]
    library = library_of(call)
    method = state.process.method(library)
    if call.get("allow_none") == TRUE and method.names is None and method.fixed is None:
        return [(state, NONE)]
    value = _default_names(machine, state, library)
    if call.get("allow_none") != TRUE:
        launching.fix_default(machine, state, library, call.site, "get_start_method()")
    return [(state, value)]


def all_start_methods(machine: Machine, call: Call) -> Results:
    """``get_all_start_methods()``: what there is on the platform, the default first where that is certain."""
    state, (first, condition) = call.state, machine.host.defaults()[0]
    names = list(_METHODS) if machine.host.platform in _FORKING else [first]
    ordered = sorted(names, key=lambda name: name != first) if condition is None else names
    items = tuple(const(name) for name in ordered)
    return [(state, (state.new(("methods", call.site), Sequence("list", items)),))]


# Those of Unix, as Linux orders them before Python 3.14.
_METHODS = ("fork", "spawn", "forkserver")
_FORKING = frozenset({"linux", "darwin"})


def forkserver_preload(machine: Machine, call: Call) -> Results:
    """``set_forkserver_preload([...])``: all children of the server inherit what it imports."""
    names = call.args[0] if call.args else ()
    for value in machine.elements(names, call.state):
        machine.preloads.extend((name, call.site) for name in strings(value))
    return [(call.state, NONE)]
