"""What functools, operator and compilers make of functions: partial, wraps, caches, getters, dispatch by type."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.gpu import choices, cuda
from cudalint.machine.effects.gpu.queries import gpu_call
from cudalint.machine.effects.plain import through
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib.types import is_called, is_instance
from cudalint.machine.frame import Call, Results
from cudalint.machine.function_attributes import give_attribute
from cudalint.machine.heap import Cache, Class, Closure, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import DISPATCHES
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Atom, Const, Lib, Partial, Ref, Value, const, constant, only, unknown
from cudalint.structs import replace


def partial(machine: Machine, call: Call) -> Results:
    """``functools.partial``; of a function that makes one, what it does (``runs``) is called with what it is given."""
    if call.text("runs"):
        named = {name: value for name in call.params if (value := call.get(name)) is not None}
        runs = Partial((Lib(call.text("runs")),), (), tuple(sorted({**named, **call.kwargs}.items())))
        return [(call.state, (runs,))]
    if not call.args:
        return [(call.state, unknown("partial", call.site))]
    made = Partial(call.args[0], tuple(call.args[1:]), tuple(sorted(call.kwargs.items())))
    return [(call.state, (made,))]


def finalizer(machine: Machine, call: Call) -> Results:
    """``weakref.finalize(object, f, 2)``: what is called makes that call, which may come by itself later."""
    if len(call.args) < 2:
        return [(call.state, unknown("finalizer", call.site))]
    made: Value = (Partial(call.args[1], tuple(call.args[2:]), tuple(sorted(call.kwargs.items()))),)
    machine.hands_over((made,), call.state, call.frame, call.site)
    return [(call.state, made)]


def kept_partial(machine: Machine, call: Call) -> Results:
    """``toolbox.register("evaluate", f, 2)``: from then on a function of the object."""
    name, owner = constant(call.args[0]) if call.args else None, call.receiver
    found = call.state.get(owner) if isinstance(owner, Ref) else None
    if isinstance(name, str) and isinstance(owner, Ref) and isinstance(found, LibraryObject) and len(call.args) > 1:
        made = Partial(call.args[1], tuple(call.args[2:]), tuple(sorted(call.kwargs.items())))
        call.state.store(owner, replace(found, fields={**found.fields, name: (made,)}))
    return [(call.state, NONE)]


def made_of(machine: Machine, call: Call) -> Results:
    """An object of a library that remembers what it was made of, by the names of its parameters."""
    state: State | None = call.state
    if call.text("gpu") and not choices.idle(machine, call):
        framework = call.text("framework", "torch")
        state = cuda.touch(machine, call.state, call.frame, call.site, framework, call.text("gpu"), call.label)
    if state is None:
        return []
    fields = {name: value for name in call.params if (value := call.get(name)) is not None}
    made = LibraryObject(call.path, {**call.kwargs, **fields}, call.site)
    return [(state, (state.new(("made", call.site), made),))]


def partial_method(machine: Machine, call: Call) -> Results:
    """``functools.partialmethod``: the object that it is asked of comes before what it is given here."""
    made = Partial((Lib(f"{call.path}.__call__"),), tuple(call.args), tuple(sorted(call.kwargs.items())))
    return [(call.state, (made,))]


def property_(machine: Machine, call: Call) -> Results:
    """``property(get, set)``."""
    atom = only(call.get("fget") or ())
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not call.args and not call.kwargs:
        empty = LibraryObject(call.path, {}, call.site)
        return [(call.state, (call.state.new(("property", call.site), empty),))]
    if not isinstance(found, Closure):
        return [(call.state, unknown("property", call.site))]
    setter = only(call.get("fset") or ())
    made = replace(found, kind="property", setter=setter if isinstance(setter, Ref) else None)
    return [(call.state, (call.state.new(("property", call.site), made),))]


def method_kind(machine: Machine, call: Call) -> Results:
    """``staticmethod(f)`` and its like, called: a function of another kind (``value``); what is none stays as it is."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Closure):
        return through(machine, call) if _in_class(call) or not isinstance(atom, Lib) else _around(call)
    made = replace(found, kind=call.text("value"))
    return [(call.state, (call.state.new(("method-kind", call.site, atom), made),))]


def _in_class(call: Call) -> bool:
    """Whether something stands in the body of a class, which makes methods of what it is given."""
    scope = call.state.get(call.frame.scope)
    return isinstance(scope, Scope) and scope.kind == "class"


def _around(call: Call) -> Results:
    """An object around a function of a library, which it calls; no pickler finds it under that one's name."""
    made = LibraryObject(f"{call.path}.made", {"<thing>": call.args[0]}, call.site)
    return [(call.state, (call.state.new(("around", call.site), made),))]


def called_through(machine: Machine, call: Call) -> Results:
    """What an object stands for is called."""
    obj = library_object(call)
    if obj is None:
        return [(call.state, unknown("held", call.site))]
    return machine.call_value(obj.fields["<thing>"], call.args, call.kwargs, call.state, call.frame, call.site)


def weak(machine: Machine, call: Call) -> Results:
    """``weakref.ref(x)``: called, it gives x as long as that lives."""
    made = LibraryObject(call.path, {"<thing>": call.args[0] if call.args else NONE}, call.site)
    return [(call.state, (call.state.new(("weak", call.site), made),))]


def held(machine: Machine, call: Call) -> Results:
    """What an object stands for: a weak reference that is called, ``closing(x)`` that is entered."""
    obj = library_object(call)
    return [(call.state, unknown("held", call.site) if obj is None else obj.fields["<thing>"])]


def compiled(machine: Machine, call: Call) -> Results:
    """``jax.jit(f)``: f, at each call of which the framework runs something."""
    atom = only(call.args[0]) if call.args else None
    if atom is None and not call.args:
        # ``@torch.compile(backend="eager")``: what it is told counts when it is given the function.
        return [(call.state, (Partial((Lib(call.path),), (), tuple(call.kwargs.items())),))]
    results: Results = []
    for state, _ in gpu_call(machine, call) if call.text("gpu") else [(call.state, NONE)]:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Closure):
            results.append((state, call.args[0]))
            continue
        made = replace(found, compiled=f"{call.path}(f)")
        results.append((state, (state.new(("compiled", call.site, atom), made),)))
    return results


def wraps(machine: Machine, call: Call) -> Results:
    """``functools.wraps(f)``: what it decorates goes by the name of f."""
    if not call.args:
        return [(call.state, unknown("wraps", call.site))]
    return [(call.state, (Partial((Lib("cudalint.wrapped"),), (call.args[0],), ()),))]


def wrapped(machine: Machine, call: Call) -> Results:
    """The wrapper takes the name of what it wraps: a function, or an object that is called in its place."""
    inside, outside = call.get("wrapped"), call.get("wrapper")
    if inside is None or outside is None:
        return [(call.state, unknown("wrapped", call.site))]
    inner, outer = only(inside), only(outside)
    named = call.state.get(inner) if isinstance(inner, Ref) else None
    wrapper = call.state.get(outer) if isinstance(outer, Ref) else None
    if isinstance(named, Closure) and isinstance(wrapper, Closure) and isinstance(outer, Ref):
        made = replace(wrapper, alias=named.address)
        give_attribute(outer, made, "__wrapped__", inside, call.state)
    elif isinstance(named, Closure) and isinstance(wrapper, Instance) and isinstance(outer, Ref):
        taken = {"__wrapped__": inside}
        for name in _TAKEN_BY_WRAPPERS:
            for _, value in machine.attribute(inside, name, call.state, call.frame, call.site)[:1]:
                taken[name] = value
        call.state.store(outer, replace(wrapper, attributes={**wrapper.attributes, **taken}))
    return [(call.state, outside)]


# What an object has of the function that it wraps, as ``functools.WRAPPER_ASSIGNMENTS`` says.
_TAKEN_BY_WRAPPERS = ("__module__", "__name__", "__qualname__")


_REGISTERED = "<implementation>"


def cached(machine: Machine, call: Call) -> Results:
    """``lru_cache(f)``, ``lru_cache(maxsize=None)(f)``: f remembers what it gave."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Lib):
        return _around(call)
    if not isinstance(atom, Ref) or not isinstance(found, Closure):
        return [(call.state, call.args[0] if isinstance(atom, Ref) else (Lib("functools.cache"),))]
    memory = call.state.new(("cache", call.site, atom.address), Cache({}))
    made = call.state.new(("cached", call.site, atom.address), replace(found, cache=memory))
    return [(call.state, (made,))]


def forgotten(machine: Machine, call: Call) -> Results:
    """``f.cache_clear()``: f remembers nothing of what it gave."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(found, Closure) and found.cache is not None:
        call.state.store(found.cache, Cache({}))
    return [(call.state, NONE)]


def managed(machine: Machine, call: Call) -> Results:
    """``@manager()``: what a manager makes of a function that it decorates."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Closure) or not isinstance(call.receiver, Ref):
        return through(machine, call)
    made = replace(found, managed=(*found.managed, call.receiver))
    return [(call.state, (call.state.new(("managed", call.site, call.receiver), made),))]


def reader(machine: Machine, call: Call) -> Results:
    """``methodcaller("name", *args)``, ``attrgetter("name")`` and ``itemgetter(key)``."""
    if not call.args:
        return [(call.state, unknown("reader", call.site))]
    function: Value = (Lib(f"{call.path}.__call__"),)
    return [(call.state, (Partial(function, tuple(call.args), tuple(sorted(call.kwargs.items()))),))]


def read(machine: Machine, call: Call) -> Results:
    """What they give of an object, which comes last."""
    if len(call.args) < 2:
        return [(call.state, unknown("read", call.site))]
    name, *rest = call.args
    owner, given, kind = rest[-1], rest[:-1], call.path.split(".")[-2]
    if kind == "itemgetter" and not given:
        return machine.item(owner, name, call.state, call.frame, call.site)
    if kind == "itemgetter":
        row: list[Value] = []
        state = call.state
        for key in (name, *given):
            found = machine.item(owner, key, state, call.frame, call.site)
            if not found:
                return []
            state = found[0][0]
            row.append(found[0][1])
        return [(state, (state.new(("items", call.site), Sequence("tuple", tuple(row))),))]
    text = constant(name)
    if not isinstance(text, str) or (kind == "attrgetter" and given):
        return [(call.state, unknown("read", call.site))]
    results: Results = [(call.state, owner)]
    for part in text.split("."):
        results = [r for s, v in results for r in machine.attribute(v, part, s, call.frame, call.site)]
    if kind == "attrgetter":
        return results
    return [
        r
        for state, method in results
        for r in machine.call_value(method, list(given), dict(call.kwargs), state, call.frame, call.site)
    ]


def dispatching(machine: Machine, call: Call) -> Results:
    """``singledispatch(f)``: f, and what is registered for the types of its first argument."""
    if not call.args:
        return [(call.state, unknown("dispatch", call.site))]
    made = LibraryObject(call.path, {DISPATCHES: call.args[0]}, call.site)
    return [(call.state, (call.state.new(("dispatch", call.site), made),))]


def register(machine: Machine, call: Call) -> Results:
    """``f.register(kind)``, ``f.register(kind, g)``, and ``f.register`` as a decorator of what annotations say."""
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, LibraryObject) or not call.args:
        return [(call.state, unknown("register", call.site))]
    first = only(call.args[0])
    is_function = isinstance(first, Ref) and isinstance(call.state.get(first), Closure)
    if len(call.args) == 1 and not is_function:
        function: Value = (Lib(f"{call.path}.__call__"),)
        return [(call.state, (Partial(function, ((ref,), call.args[0]), ()),))]
    kind = _annotated(machine, first, call.state, _place(call)) if is_function else call.args[0]
    return [(_registered(ref, found, kind, call.args[-1], call.state), call.args[-1])]


def _place(call: Call) -> int:
    """Which argument decides: of a method the one behind its object."""
    return 1 if call.text("kind") == "method" else 0


def _annotated(machine: Machine, function: Atom | None, state: State, place: int) -> Value:
    """The type that the parameter is annotated with that decides: a class of its module, or the name of another.

    Empty where that is no name.
    """
    found = state.get(function) if isinstance(function, Ref) else None
    params = found.function.params[place:] if isinstance(found, Closure) else ()
    if not isinstance(found, Closure) or not params or not params[0].type:
        return ()
    named = machine.lookup(params[0].type, state, Ref(("module", found.module)))
    cls = only(named or ())
    return (cls,) if isinstance(cls, Ref) and isinstance(state.get(cls), Class) else const(params[0].type)


def registered(machine: Machine, call: Call) -> Results:
    """``f.register(kind)`` as a decorator."""
    ref = only(call.args[0]) if len(call.args) == 3 else None
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, LibraryObject):
        return [(call.state, unknown("register", call.site))]
    return [(_registered(ref, found, call.args[1], call.args[2], call.state), call.args[2])]


def _registered(ref: Ref, found: LibraryObject, kind: Value, function: Value, state: State) -> State:
    name = f"{_REGISTERED} {len(found.fields)}"
    pair = state.new(("registered", ref.address, name), Sequence("tuple", (kind, function)))
    state.store(ref, replace(found, fields={**found.fields, name: (pair,)}))
    return state


def dispatch(machine: Machine, call: Call) -> Results:
    """A call: the function of the type, or, where that is not known, each that it could be."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    place = _place(call)
    if not isinstance(found, LibraryObject) or len(call.args) <= place:
        return [(call.state, unknown("dispatch", call.site))]
    results: Results = []
    for atom in call.args[place]:
        args = [*call.args[:place], (atom,), *call.args[place + 1 :]]
        for kind, function in _possible(machine, atom, found, call.state):
            state = call.state.clone()
            if kind is not None and not _is_taken(state, _name_of(found, state), kind, atom):
                continue
            results.extend(machine.call_value(function, args, dict(call.kwargs), state, call.frame, call.site))
    return results


def _is_taken(state: State, name: str, kind: str, atom: Atom) -> bool:
    """Whether a path may go on as if something unknown were of a type, which it assumes from then on."""
    question = (questions.TAKES, name, kind, atom)
    if state.fact(question) is False:
        return False
    state.assume(question, True)
    return True


def _name_of(found: LibraryObject, state: State) -> str:
    atom = only(found.fields[DISPATCHES])
    closure = state.get(atom) if isinstance(atom, Ref) else None
    return closure.function.name if isinstance(closure, Closure) else "function"


def _possible(machine: Machine, atom: Atom, found: LibraryObject, state: State) -> list[tuple[str | None, Value]]:
    """The functions that may be called, each with the type that this takes where it is not known to be of that."""
    possible: list[tuple[str | None, Value]] = []
    for name in reversed(found.fields):
        pair = machine.exact_items(found.fields[name], state) if name.startswith(_REGISTERED) else None
        if pair is None:
            continue
        kind = only(pair[0]) if pair[0] else None
        if isinstance(kind, Const) and isinstance(kind.value, str):
            verdict = is_called(machine, atom, kind.value, state)
        else:
            verdict = is_instance(machine, atom, kind, state)
        if verdict is True:
            return [*possible, (None, pair[1])]
        if verdict is None:
            possible.append((_spelled(kind, state), pair[1]))
    return [*possible, (None, found.fields[DISPATCHES])]


def _spelled(kind: Atom | None, state: State) -> str:
    """The name of a type."""
    cls = state.get(kind) if isinstance(kind, Ref) else None
    match kind, cls:
        case Const(value=str(text)), _:
            return text
        case Lib(path=path), _:
            return path.rpartition(".")[2]
        case _, Class(name=name):
            return name
    return "type"
