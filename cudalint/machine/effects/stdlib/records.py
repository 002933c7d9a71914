"""Records: classes defined by their fields, and objects as dicts of their attributes."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.ir import nodes as ir
from cudalint.machine.effects.receivers import initialised
from cudalint.machine.effects.stdlib import lookups, settings
from cudalint.machine.frame import Call, Given, Results
from cudalint.machine.heap import NAMESPACE, WHOLE, Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Const,
    Lib,
    Ref,
    Task,
    Value,
    const,
    constant,
    only,
    unknown,
)
from cudalint.structs import replace

# What else a field tells of itself.
_OF_FIELDS = ("type", "default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")
_MISSING: Value = (Lib("dataclasses.MISSING"),)
# So deep records are looked into.
_DEEPEST = 4


def field(machine: Machine, call: Call) -> Results:
    """``field(default=, default_factory=)`` of a dataclass: a default, or a call for each instance."""
    default = call.get("default")
    if default is not None:
        return [(call.state, default)]
    factory = call.get("default_factory") or call.get("factory")
    if factory is not None:
        return [(call.state, (Task(factory, (), ()),))]
    return [(call.state, unknown("field", call.site))]


def fields(machine: Machine, call: Call) -> Results:
    """``fields(record)`` of a dataclass or an object of one: each with its name, and what it is by default."""
    state, atom = call.state, only(call.args[0]) if call.args else None
    found = state.get(atom) if isinstance(atom, Ref) else None
    cls = found.cls if isinstance(found, Instance) else atom
    known = machine.record_fields(cls, state) if isinstance(cls, Ref) else []
    if not known:
        return [(state, unknown("fields", call.site))]
    items: list[Value] = []
    types = machine.field_types(cls, state) if isinstance(cls, Ref) else {}
    for name, default in known:
        parts = {part: unknown("field", call.site, name, part) for part in _OF_FIELDS}
        if types.get(name):
            parts["type"] = types[name]
        made = LibraryObject(NAMESPACE, {**parts, **_defaults(default), "name": const(name)}, call.site)
        items.append((state.new(("field", call.site, name), made),))
    return [(state, (state.new(("fields", call.site), Sequence("tuple", tuple(items))),))]


def type_hints(machine: Machine, call: Call) -> Results:
    """``get_type_hints(cls)``, or of a function: what its annotations say; a text is looked up as a name."""
    state, cls = call.state, only(call.args[0]) if call.args else None
    cls = cls.function if isinstance(cls, Bound) else cls
    found = state.get(cls) if isinstance(cls, Ref) else None
    if isinstance(found, Closure):
        of_function = Dict(machine.annotations_of(found, state), exact=False)
        return [(state, (state.new(("hints", call.site), of_function),))]
    if not isinstance(cls, Ref) or not isinstance(found, Class):
        return [(state, unknown("hints", call.site))]
    types = {name: _looked_up(machine, value, found, state) for name, value in machine.field_types(cls, state).items()}
    hints: dict[Hashable, Value] = {
        name: types.get(name) or unknown("hint", call.site, name) for name, _ in machine.record_fields(cls, state)
    }
    return [(state, (state.new(("hints", call.site), Dict(hints, exact=bool(hints))),))]


def written_bases(machine: Machine, call: Call) -> Results:
    """``get_original_bases(cls)``: its bases with the types that they are given."""
    cls = only(call.args[0]) if call.args else None
    written = machine.written_bases(cls, call.state, call.site) if isinstance(cls, Ref) else ()
    return [(call.state, written or unknown("bases", call.site))]


def type_arguments(machine: Machine, call: Call) -> Results:
    """``get_args(base)``, ``get_origin(base)``: what a base is given, and what is given it."""
    given = call.args[0] if call.args else ()
    return machine.attribute(given, call.text("value"), call.state, call.frame, call.site)


def _looked_up(machine: Machine, value: Value, cls: Class, state: State) -> Value:
    text = constant(value)
    if not isinstance(text, str):
        return value
    first, *others = text.split(".")
    if not all(part.isidentifier() for part in (first, *others)):
        return ()
    node: ir.Expr = ir.Name(cls.site.ordinal, first)
    for part in others:
        node = ir.Attr(cls.site.ordinal, node, part)
    return machine.named_type(cls, node, state)


def is_record(machine: Machine, call: Call) -> Results:
    """``is_dataclass(x)``: of a class of the program, of its instances, and of what is certainly none of these."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    is_builtin = isinstance(atom, Lib) and atom.path.startswith("builtins.")
    if isinstance(atom, Const) or isinstance(found, Sequence | Dict) or is_builtin:
        return [(call.state, FALSE)]
    cls = found.cls if isinstance(found, Instance) else atom
    order = machine.mro(cls, call.state) if isinstance(cls, Ref) else ()
    if any(isinstance(entry, Class) and entry.is_dataclass for entry in order):
        return [(call.state, TRUE)]
    is_known = bool(order) and all(isinstance(entry, Class) for entry in order)
    return [(call.state, FALSE if is_known else unknown("is_dataclass", *call.args))]


def _defaults(given: Value | None) -> dict[str, Value]:
    """What a field is by default, and what makes that: one of the two is missing, or both."""
    made = only(given or ())
    if given is None:
        return {"default": _MISSING, "default_factory": _MISSING}
    if isinstance(made, Task) and not made.args:
        return {"default": _MISSING, "default_factory": made.function}
    return {"default": given, "default_factory": _MISSING}


def _record(call: Call) -> Instance | None:
    """The record that a method is called on, or that a function is given first."""
    atom = call.receiver if call.receiver is not None else only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    return found if isinstance(found, Instance) else None


def changed(machine: Machine, call: Call) -> Results:
    """``replace(record, field=value)`` and ``record._replace(field=value)``: made again with some fields changed."""
    found = _record(call)
    if found is None:
        return [(call.state, unknown("replace", call.site))]
    given_names = _updated(machine, call)
    # Of which fields the code does not show, each may be another one.
    is_open = call.open or given_names is None
    kept = {name: unknown("replaced", call.site, name) for name in found.attributes} if is_open else found.attributes
    made = replace(found, attributes={**kept, **(given_names or {})})
    ref = call.state.new(("replace", call.site), made)
    after = machine.user_method(made, "__post_init__", call.state)
    if after is None or call.text("key"):
        return [(call.state, (ref,))]
    results = machine.call_value((after,), [(ref,)], {}, call.state, call.frame, call.site)
    return [(state, (ref,)) for state, _ in results]


def _updated(machine: Machine, call: Call) -> dict[str, Value] | None:
    """The fields that are changed, by keywords or in one dict; None where that dict is not known."""
    keyword = call.text("key")
    if not keyword or keyword not in call.kwargs:
        return {} if keyword else dict(call.kwargs)
    found = call.state.get(atom) if isinstance(atom := only(call.kwargs[keyword]), Ref) else None
    if not isinstance(found, Dict) or not found.exact:
        return None
    return {name: value for name, value in found.items.items() if isinstance(name, str)}


def validated(machine: Machine, call: Call) -> Results:
    """``Model.model_validate(data)``: an instance of what a dict holds, or a text of one."""
    state, cls = call.state, call.receiver
    found = state.get(cls) if isinstance(cls, Ref) else None
    given = call.get("obj") or ()
    if call.text("key") == "json":
        given = settings.told(machine, "json", given, call) or given
    data = state.get(atom) if isinstance(atom := only(given), Ref) else None
    if isinstance(data, Instance):
        return [(state, given)]
    if not isinstance(cls, Ref) or not isinstance(found, Class):
        return [(state, unknown("validated", call.site))]
    items = data.items if isinstance(data, Dict) else {}
    kwargs = {name: value for name, value in items.items() if isinstance(name, str)}
    is_open = not isinstance(data, Dict) or not data.exact
    return machine.call_value((cls,), [], kwargs, state, call.frame, call.site, is_open)


def named_tuple(machine: Machine, call: Call) -> Results:
    """``namedtuple("Point", "x y")``: a class of records."""
    names = _field_names(machine, call)
    title = constant(call.args[0]) if call.args else ...
    if names is None or not isinstance(title, str):
        return [(call.state, unknown("namedtuple", call.site))]
    scope = call.state.new(("class", call.site), Scope({}, None, call.frame.module, "class"))
    base: Value = (Lib("typing.NamedTuple"),)
    given = machine.exact_items(call.kwargs.get("defaults", ()), call.state) or []
    defaults: list[Value | None] = [None] * (len(names) - len(given))
    fields = tuple(zip(names, [*defaults, *given][-len(names) :], strict=False)) if names else ()
    made = Class(title, title, call.frame.module, (base,), scope, call.site, fields, True)
    return [(call.state, (call.state.new(("classobj", call.site), made),))]


def _field_names(machine: Machine, call: Call) -> list[str] | None:
    if len(call.args) < 2:
        return None
    text = constant(call.args[1])
    if isinstance(text, str):
        return text.replace(",", " ").split()
    items = machine.exact_items(call.args[1], call.state)
    known = None if items is None else [constant(item) for item in items]
    return None if known is None or not all(isinstance(n, str) for n in known) else [str(n) for n in known]


def as_dict(machine: Machine, call: Call) -> Results:
    """``asdict(record)`` and ``record._asdict()``: a dict of its own."""
    found = _record(call)
    if found is None:
        return [(call.state, unknown("asdict", call.site))]
    is_flat = call.path.endswith("._asdict") or constant(call.kwargs.get("recurse", ())) is False
    return [(call.state, _held_by(machine, found, call.state, call.site, _DEEPEST if is_flat else 0))]


def _held_by(machine: Machine, record: Instance, state: State, site: Site, depth: int) -> Value:
    """The fields of a record by their names, those of records in it as well."""
    names = [name for name, _ in machine.record_fields(record.cls, state)] or list(record.attributes)
    items: dict[Hashable, Value] = {
        name: _plain(machine, record.attributes[name], state, site, depth + 1)
        for name in names
        if name in record.attributes and not name.startswith("<")
    }
    return (state.new(("asdict", site, depth, record.site), Dict(items)),)


def _plain(machine: Machine, value: Value, state: State, site: Site, depth: int) -> Value:
    """What a record holds as a dict of it has it."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) and depth <= _DEEPEST else None
    match found:
        case Instance(cls=cls) if machine.record_fields(cls, state):
            return _held_by(machine, found, state, site, depth)
        case Dict(items=items):
            made = {key: _plain(machine, item, state, site, depth + 1) for key, item in items.items()}
            return (state.new(("asdict of", site, depth, atom), replace(found, items=made, view=None)),)
        case Sequence(kind="list" | "tuple", items=tuple(parts)):
            held = tuple(_plain(machine, part, state, site, depth + 1) for part in parts)
            return (state.new(("asdict of", site, depth, atom), replace(found, items=held)),)
    return value


def variables(machine: Machine, call: Call) -> Results:
    """``vars(x)``: the attributes of an object or the options of a command line, not a copy of them."""
    atom = only(call.args[0]) if len(call.args) == 1 else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Scope | Class):
        return [(call.state, lookups.names_of(machine, atom, call.state, call.site))]
    if isinstance(atom, Lib):
        return [(call.state, (Lib(f"{atom.path}.__dict__"),))]
    if not isinstance(atom, Ref) or not (isinstance(found, Instance) or _is_namespace(found)):
        return [(call.state, unknown("vars", call.site))]
    return [(call.state, machine.attributes_of(atom, call.state, call.site))]


def _is_namespace(found: object) -> bool:
    return isinstance(found, LibraryObject) and found.type == NAMESPACE


def blank(machine: Machine, call: Call) -> Results:
    """``object.__new__(cls)``: an instance on which nothing is set."""
    atom = only(call.args[0]) if call.args else None
    made = machine.blank(atom, call.state, call.site) if isinstance(atom, Ref) else unknown("new", call.site)
    return [(call.state, made)]


def construct(machine: Machine, call: Call) -> Results:
    """``type.__call__(cls, ...)``: the instance that a class makes unless its metaclass overrides that."""
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Class):
        return [(call.state, unknown("new", call.site))]
    return machine.construct(ref, found, Given(call.args, call.kwargs, call.state, call.frame, call.site, call.open))


def subclasses(machine: Machine, call: Call) -> Results:
    """``Base.__subclasses__()``: the classes of the program that name it as a base, as far as they are defined."""
    state, base = call.state, call.receiver
    below: list[Value] = []
    for address, found in state.objects_at().items():
        if isinstance(found, Class) and any(base in value for value in found.bases):
            below.append((Ref(address),))
    made = Sequence("list", tuple(dict.fromkeys(below)))
    return [(state, (state.new(("subclasses", call.site), made),))]


def namespace(machine: Machine, call: Call) -> Results:
    """``SimpleNamespace(name=value)``."""
    named = dict(zip(call.params, call.args, strict=False))
    if initialised(call, {**named, **call.kwargs}):
        return [(call.state, NONE)]
    whole = {} if call.open or len(call.args) > len(call.params) else {WHOLE: TRUE}
    made = LibraryObject(NAMESPACE, {**named, **call.kwargs, **whole}, call.site)
    return [(call.state, (call.state.new(("namespace", call.site), made),))]
