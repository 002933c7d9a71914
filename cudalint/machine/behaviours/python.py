"""What the machine knows of Python itself: builtins, containers, partial, decorators."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

from cudalint.machine import operators, questions
from cudalint.machine.behaviours import gpu
from cudalint.machine.behaviours.kinds import is_of_any
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.heap import Closure, Generator, Instance, Mapping_, Sequence, Thing
from cudalint.machine.interpreter import Machine
from cudalint.machine.keys import as_key, of_key
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Partial,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    integer,
    only,
    union,
    unknown,
)


def nothing(machine: Machine, call: Call) -> Results:
    """A function without effect; what it returns the model may say."""
    if call.spec.get("returns") is None:
        return [(call.state, unknown("call", call.site, call.state.process.identity))]
    return [(call.state, gpu.returned(machine, call, call.state))]


def stop(machine: Machine, call: Call) -> Results:
    """``sys.exit()`` and its like: this path ends."""
    return machine.fail(call.state, call.frame, Raised(None, ("SystemExit",)))


def partial(machine: Machine, call: Call) -> Results:
    """``functools.partial``."""
    if not call.args:
        return [(call.state, unknown("partial", call.site))]
    made = Partial(call.args[0], tuple(call.args[1:]), tuple(sorted(call.kwargs.items())))
    return [(call.state, (made,))]


def through(machine: Machine, call: Call) -> Results:
    """A function that gives its first argument back (decorators, identity wrappers)."""
    return [(call.state, call.args[0] if call.args else unknown("through", call.site))]


def compiled(machine: Machine, call: Call) -> Results:
    """``jax.jit(f)``: f, at each call of which the framework runs something."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Closure):
        return through(machine, call)
    made = replace(found, compiled=f"{call.path}(f)")
    return [(call.state, (call.state.new(("compiled", call.site, atom), made),))]


def decorator_factory(machine: Machine, call: Call) -> Results:
    """``@decorator(option)``: what it returns gives its argument back."""
    if call.args and any(isinstance(a, Ref) for a in call.args[0]):
        return through(machine, call)
    return [(call.state, (Lib("cudalint.identity"),))]


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
        call.state.put(outer, replace(wrapper, alias=named.address))
    return [(call.state, call.args[1])]


def import_module(machine: Machine, call: Call) -> Results:
    """``importlib.import_module`` and ``__import__`` of a name that the code shows."""
    name = constant(call.get("name") or ())
    if not isinstance(name, str) or not name.strip("."):
        return [(call.state, unknown("import", call.site))]
    bare = name.lstrip(".")
    package = constant(call.get("package") or ())
    importer = call.frame.module
    top_only = call.path.endswith("__import__")
    wanted = bare.partition(".")[0] if top_only else bare
    home = _named_module(machine, importer, wanted, len(name) - len(bare), package)
    if home is not None:
        return machine.load(home, call.state, call.frame, call.site)
    if name != bare:
        return [(call.state, unknown("import", call.site))]
    states = machine.imported(bare, call.state, call.frame, call.site)
    return [(state, (Lib(machine.library.canonical(wanted)),)) for state in states]


def _named_module(machine: Machine, importer: str, name: str, level: int, package: Hashable) -> str | None:
    program = machine.program
    if level == 0 or package is ... or package == program.package(importer):
        return program.resolve(importer, name, level)
    home = program.resolve(importer, package, 0) if isinstance(package, str) else None
    above = [*program.parents(home), home] if home is not None else []
    return program.child(str(above[-level]), name) if 0 < level <= len(above) else None


def call_argument(machine: Machine, call: Call) -> Results:
    """A function that calls the function it is given, in this process."""
    function = call.get(call.text("function", "function")) or (call.args[0] if call.args else None)
    if function is None:
        return [(call.state, unknown("call", call.site))]
    args = machine.exact_items(call.get("args") or (), call.state) or list(call.args[1:])
    return machine.call_value(function, args, {}, call.state, call.frame, call.site)


def cast(machine: Machine, call: Call) -> Results:
    """``int``, ``str``, ``float``, ``bool``: constants and ranks keep what they mean."""
    kind = call.path.rpartition(".")[2]
    value = call.args[0] if call.args else const(_EMPTY[kind])
    state = call.state
    for atom in gpu.gpu_atoms(value, state):
        after = gpu.read(machine, atom, state, call.frame, call.site, f"{kind}()")
        if after is None:
            return []
        state = after
    return [(state, tuple(dict.fromkeys(_cast_atom(kind, a, call) for a in value)))]


_EMPTY: dict[str, Hashable] = {"int": 0, "str": "", "float": 0.0, "bool": False}


def _cast_atom(kind: str, atom: object, call: Call) -> Const | Rank | Dev | Unknown:
    match atom:
        case Rank():
            return atom
        case Dev():
            return atom if kind == "str" else Unknown(("cast", call.site))
        case Const(value=value):
            try:
                return Const(_CASTS[kind](value))
            except (TypeError, ValueError, OverflowError):
                return Unknown(("cast", call.site))
        case Unknown(sym=sym):
            return Unknown((kind, sym))
    return Unknown((kind, call.site))


def _to_int(value: object) -> Hashable:
    return int(value) if isinstance(value, str | int | float) else 0


def _to_float(value: object) -> Hashable:
    return float(value) if isinstance(value, str | int | float) else 0.0


_CASTS: dict[str, Callable[[object], Hashable]] = {"int": _to_int, "str": str, "float": _to_float, "bool": bool}


def container(machine: Machine, call: Call) -> Results:
    """``list``, ``tuple``, ``set``, ``sorted``, ``reversed``: a new container of the same elements."""
    kind = call.path.rpartition(".")[2]
    kind = kind if kind in ("list", "tuple", "set") else "list"
    if not call.args:
        return [(call.state, (call.state.new(("container", call.site), Sequence(kind, ())),))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        exact = machine.exact_items(call.args[0], state)
        items = tuple(exact) if exact is not None else tuple(rounds)
        made = Sequence(kind, items, (), exact is None)
        results.append((state, (state.new(("container", call.site), made),)))
    return results


def mapping(machine: Machine, call: Call) -> Results:
    """``dict(a=1)``."""
    items: dict[Hashable, Value] = {}
    items.update(call.kwargs)
    exact = not call.open
    for value in call.args:
        atom = only(value)
        found = call.state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Mapping_):
            items = {**found.items, **items}
            exact = exact and found.exact
        else:
            exact = False
    return [(call.state, (call.state.new(("mapping", call.site), Mapping_(items, (), exact)),))]


def default_mapping(machine: Machine, call: Call) -> Results:
    """``defaultdict(factory)``."""
    factory, *rest = call.args or [NONE]
    call.args = rest
    state, made = mapping(machine, call)[0]
    atom = only(made)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Mapping_) and factory != NONE:
        state.put(atom, replace(found, factory=factory))
    return [(state, made)]


def range_(machine: Machine, call: Call) -> Results:
    """``range``: its first two numbers, exact where it is that short."""
    numbers = [integer(v) for v in call.args]
    start, stop_, step = 0, None, 1
    match numbers:
        case [one]:
            stop_ = one
        case [one, two]:
            start, stop_ = one or 0, two
        case [one, two, three]:
            start, stop_, step = one or 0, two, three or 1
    items: tuple[Value, ...] = (const(start), const(start + step))
    is_open = True
    if stop_ is not None:
        first = range(start, stop_, step)[:3]
        items = tuple(const(n) for n in first[:2])
        is_open = len(first) > 2
    return [(call.state, (call.state.new(("range", call.site), Sequence("list", items, (), is_open)),))]


def enumerate_(machine: Machine, call: Call) -> Results:
    """``enumerate``: pairs of a number and an element."""
    if not call.args:
        return [(call.state, unknown("enumerate", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        pairs: list[Value] = []
        for i, value in enumerate(rounds):
            pair = Sequence("tuple", (const(i), value))
            pairs.append((state.new(("pair", call.site, i), pair),))
        is_open = machine.exact_items(call.args[0], state) is None
        results.append((state, (state.new(("enumerate", call.site), Sequence("list", tuple(pairs), (), is_open)),)))
    return results


def zip_(machine: Machine, call: Call) -> Results:
    """``zip``: tuples of elements, as many rounds as the shortest."""
    state = call.state
    columns: list[list[Value]] = []
    is_open = False
    for value in call.args:
        found = machine.iterate(value, state, call.frame, call.site)
        if not found:
            return []  # asking for the elements ended every path
        state, column = found[0]
        columns.append(column)
        is_open = is_open or machine.exact_items(value, state) is None
    rows: list[Value] = []
    for i, row in enumerate(zip(*columns, strict=False)):
        rows.append((state.new(("row", call.site, i), Sequence("tuple", tuple(row))),))
    return [(state, (state.new(("zip", call.site), Sequence("list", tuple(rows), (), is_open)),))]


def map_(machine: Machine, call: Call) -> Results:
    """``map(f, xs)``: f runs in this process, once per round."""
    if len(call.args) < 2:
        return [(call.state, unknown("map", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[1], call.state, call.frame, call.site):
        produced: list[Value] = []
        states = [state]
        for value in rounds:
            following: list[State] = []
            for current in states:
                for after, made in machine.call_value(call.args[0], [value], {}, current, call.frame, call.site):
                    produced.append(made)
                    following.append(after)
            states = following or states
        exact = len(states) == 1 and len(machine.exact_items(call.args[1], states[0]) or ()) == len(produced)
        for after in states:
            made_list = Sequence("list", tuple(produced if exact else produced[:2]), (), not exact)
            results.append((after, (after.new(("map", call.site), made_list),)))
    return results


def starmap(machine: Machine, call: Call) -> Results:
    """``itertools.starmap(f, rows)``: f runs in this process, with the items of each row."""
    if len(call.args) < 2:
        return [(call.state, unknown("starmap", call.site))]
    function, rows = call.args[:2]
    results: Results = []
    for state, rounds in machine.iterate(rows, call.state, call.frame, call.site):
        made: Results = [(state, ())]
        for row in rounds:
            items = machine.exact_items(row, state) or []
            made = [
                (after, union([before, value]))
                for current, before in made
                for after, value in machine.call_value(function, items, {}, current, call.frame, call.site)
            ]
        results.extend((s, (s.new(("starmap", call.site), Sequence("list", None, value)),)) for s, value in made)
    return results


def filter_(machine: Machine, call: Call) -> Results:
    """``filter(f, xs)``: f runs in this process; what is left are some of the elements."""
    if len(call.args) < 2:
        return [(call.state, unknown("filter", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[1], call.state, call.frame, call.site):
        states = [state]
        for value in rounds if call.args[0] != NONE else ():
            states = [
                after
                for current in states
                for after, _ in machine.call_value(call.args[0], [value], {}, current, call.frame, call.site)
            ]
        kept = Sequence("list", tuple(rounds), (), True)
        results.extend((after, (after.new(("filter", call.site), kept),)) for after in states)
    return results


def reduce(machine: Machine, call: Call) -> Results:
    """``functools.reduce(f, xs, first)``: f runs in this process."""
    if len(call.args) < 2:
        return [(call.state, unknown("reduce", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[1], call.state, call.frame, call.site):
        items = [*call.args[2:3], *rounds]
        made: Results = [(state, items[0] if items else unknown("reduce", call.site))]
        for item in items[1:]:
            made = [
                r
                for current, before in made
                for r in machine.call_value(call.args[0], [before, item], {}, current, call.frame, call.site)
            ]
        results.extend(made)
    return results


def consume(machine: Machine, call: Call) -> Results:
    """``sum``, ``max``, ``any`` and their like: what is iterated runs, and arrays in it are read."""
    if not call.args:
        return [(call.state, unknown("consume", call.site))]
    if len(call.args) > 1 and call.path in _CHOICES:
        numbers = [integer(value) for value in call.args]
        known = [number for number in numbers if number is not None]
        return [(call.state, const(_CHOICES[call.path](known)))] if None not in numbers else gpu.like(machine, call)
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        inner = replace(call, state=state, args=[*rounds, *call.args[1:]], kwargs={})
        key = call.kwargs.get("key", NONE)
        after = [s for s, _ in machine.call_value(key, rounds[:1], {}, state, call.frame, call.site)] if rounds else []
        inner.state = after[0] if key != NONE and after else state
        results.extend(gpu.like(machine, inner))
    return results


_CHOICES: dict[str, Callable[[list[int]], int]] = {"builtins.max": max, "builtins.min": min}


def next_(machine: Machine, call: Call) -> Results:
    """``next(iter(x))`` and ``iter(x)``."""
    if not call.args:
        return [(call.state, unknown("next", call.site))]
    atom = only(call.args[0])
    if isinstance(atom, Ref) and isinstance(found := call.state.get(atom), Instance):
        method = machine.user_method(found, "__next__", call.state)
        if method is not None:
            bound: Value = (Bound(method, atom),)
            return machine.call_value(bound, [], {}, call.state, call.frame, call.site)
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        results.append((state, rounds[0] if rounds else unknown("next", call.site)))
    return results


def iter_(machine: Machine, call: Call) -> Results:
    """``iter(x)``: consumed by ``next``; a loader starts its workers here."""
    if not call.args:
        return [(call.state, unknown("iter", call.site))]
    atom = only(call.args[0])
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Thing):
        return [(call.state, call.args[0])]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        made = Sequence("list", tuple(rounds), (), True)
        results.append((state, (state.new(("iter", call.site), made),)))
    return results


def len_(machine: Machine, call: Call) -> Results:
    """``len`` of what is known exactly."""
    if not call.args:
        return [(call.state, unknown("len", call.site))]
    exact = machine.exact_items(call.args[0], call.state)
    if exact is not None:
        return [(call.state, const(len(exact)))]
    atom = only(call.args[0])
    return [(call.state, unknown("len", atom if isinstance(atom, Unknown) else call.site))]


def isinstance_(machine: Machine, call: Call) -> Results:
    """``isinstance`` where the class of the value is known."""
    if len(call.args) != 2:
        return [(call.state, unknown("isinstance", call.site))]
    verdicts = {is_of_any(machine, atom, call.args[1], call.state) for atom in call.args[0]}
    verdict = verdicts.pop() if len(verdicts) == 1 else None
    if verdict is not None:
        return [(call.state, const(verdict))]
    return [(call.state, unknown("isinstance", call.args[0], call.args[1]))]


def show(machine: Machine, call: Call) -> Results:
    """``print`` and ``repr``: a GPU tensor is read to be shown, also one that a container holds."""
    state = call.state
    for value in (*call.args, *call.kwargs.values()):
        for atom in _shown(machine, value, state):
            if not isinstance(atom, Tensor):
                continue
            after = gpu.read(machine, atom, state, call.frame, call.site, gpu.label(call))
            if after is None:
                return []
            state = after
    return [(state, NONE)]


def _shown(machine: Machine, value: Value, state: State) -> Iterator[Atom]:
    yield from gpu.gpu_atoms(value, state)
    for atom in value:
        found = state.get(atom) if isinstance(atom, Ref) else None
        held: list[Value] = []
        if isinstance(found, Mapping_):
            held = [*found.items.values(), found.element]
        elif isinstance(found, Sequence) and found.kind != "iterator":
            held = machine.elements((atom,), state)
        for inner in held:
            yield from gpu.gpu_atoms(inner, state)


def list_method(machine: Machine, call: Call) -> Results:
    """``append``, ``extend`` and the other methods of lists and sets."""
    name = call.path.rpartition(".")[2]
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Sequence):
        return [(call.state, unknown("list", call.site))]
    match name:
        case "append" | "add" | "appendleft":
            call.state.put(ref, operators.append(found, call.args[0] if call.args else NONE))
            return [(call.state, NONE)]
        case "extend" | "update":
            if not call.args:
                return [(call.state, NONE)]
            results: Results = []
            for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
                exact = machine.exact_items(call.args[0], state)
                grown = operators.extend(found, exact if exact is not None else rounds)
                state.put(ref, grown if exact is not None else replace(grown, open=True))
                results.append((state, NONE))
            return results
        case "pop" | "popleft":
            element = union([*(found.items or ()), found.element])
            return [(call.state, element or unknown("pop", call.site))]
        case "copy":
            return [(call.state, (call.state.new(("copy", call.site), found),))]
        case "clear":
            call.state.put(ref, Sequence(found.kind, ()))
    return [(call.state, unknown("list", name, call.site))]


def dict_method(machine: Machine, call: Call) -> Results:
    """``get``, ``items`` and the other methods of dicts."""
    name = call.path.rpartition(".")[2]
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Mapping_):
        return [(call.state, unknown("dict", call.site))]
    state = call.state
    match name:
        case "get" | "setdefault" | "pop":
            key = as_key(call.args[0], state) if call.args else NONE
            if name == "pop":
                machine.put_mapping(ref, operators.without_key(found, key), state)
            default = call.args[1] if len(call.args) > 1 else NONE
            value = operators.item(found, key)
            if not value or (not found.exact and constant(key) not in found.items):
                value = union([v for v in (value, default) if v])
            if name == "setdefault" and constant(key) not in found.items:
                machine.put_mapping(ref, operators.with_key(found, key, default), state)
            return [(state, value)]
        case "values":
            values = tuple(found.items.values())
            made = Sequence("list", values if found.exact else None, union([*values, found.element]))
            return [(state, (state.new(("values", call.site), made),))]
        case "keys":
            keys = tuple(of_key(k) for k in found.items)
            return [(state, (state.new(("keys", call.site), Sequence("list", keys, (), not found.exact)),))]
        case "items":
            pairs: list[Value] = []
            for i, (key_, value_) in enumerate(found.items.items()):
                pairs.append((state.new(("item", call.site, i), Sequence("tuple", (of_key(key_), value_))),))
            if found.element:
                pair = Sequence("tuple", (unknown("key", call.site), found.element))
                pairs.append((state.new(("item", call.site, "rest"), pair),))
            made = Sequence("list", tuple(pairs), (), not found.exact)
            return [(state, (state.new(("items", call.site), made),))]
        case "update":
            items = dict(found.items) | dict(call.kwargs)
            exact = found.exact
            for value in call.args:
                other = call.state.get(atom) if isinstance(atom := only(value), Ref) else None
                if isinstance(other, Mapping_):
                    items.update(other.items)
                    exact = exact and other.exact
                else:
                    exact = False
            machine.put_mapping(ref, replace(found, items=items, exact=exact), state)
            return [(state, NONE)]
        case "copy":
            return [(state, (state.new(("copy", call.site), replace(found, view=None)),))]
        case "clear":
            machine.put_mapping(ref, replace(found, items={}, element=(), exact=True), state)
            return [(state, NONE)]
    return [(state, unknown("dict", name, call.site))]


def str_method(machine: Machine, call: Call) -> Results:
    """Methods of strings that are known, and of the text of a device."""
    state = call.state
    name = call.path.rpartition(".")[2]
    if isinstance(call.receiver, Dev):
        return [(state, _device_text_method(name, call.receiver, call))]
    text = call.receiver.value if isinstance(call.receiver, Const) else None
    if not isinstance(text, str):
        return [(state, unknown("str", call.site))]
    if name == "format" and text.startswith("cuda:") and call.args:
        return [(state, operators.joined([const("cuda:"), call.args[0]], ("format", call.site)))]
    if name in ("format", "join") and call.args and text in ("{}", "{0}"):
        return [(state, call.args[0])]
    known = [constant(v) for v in call.args]
    named = {k: constant(v) for k, v in call.kwargs.items()}
    if name not in _TEXT_METHODS or call.open or any(v is ... for v in (*known, *named.values())):
        return [(state, unknown("str", name, call.receiver, call.site))]
    try:
        found = getattr(text, name)(*known, **named)
    except (TypeError, ValueError):
        return [(state, unknown("str", name, call.receiver, call.site))]
    if isinstance(found, str) and len(found) > operators.LONGEST:
        return [(state, unknown("str", name, call.receiver, call.site))]
    if isinstance(found, list | tuple):
        made = Sequence("list" if isinstance(found, list) else "tuple", tuple(const(part) for part in found))
        return [(state, (state.new(("str", call.site), made),))]
    return [(state, const(found))]


_TEXT_METHODS = frozenset(
    {"startswith", "endswith", "lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "partition"}
    | {"rpartition", "replace", "removeprefix", "removesuffix", "isdigit", "title", "capitalize", "format"}
)


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
    return unknown("str", name, device, call.site)


def generator_method(machine: Machine, call: Call) -> Results:
    """``generator.send`` and ``__next__``."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, Generator):
        return machine.consume(call.receiver, found, call.state, call.frame)
    return [(call.state, unknown("generator", call.site))]


def builtin_name(machine: Machine, call: Call) -> Results:
    """``"__IPYTHON__" in builtins.__dict__``: a program that is started is no notebook."""
    name = constant(call.args[0]) if call.args else ...
    known = isinstance(name, str)
    return [(call.state, const(hasattr(builtins, str(name))) if known else unknown("builtins", call.site))]


def unmodelled(
    machine: Machine, path: str, args: list[Value], kwargs: dict[str, Value], state: State, frame: Frame, site: Site
) -> Results:
    """A library function that no model names: on arrays it works where they are, else nothing is known."""
    framework = machine.library.framework_of(path)
    if framework is not None:
        call = Call(state, frame, site, path, {"framework": framework, "does": "like"}, args, kwargs)
        results = gpu.like(machine, call)
        return [(s, tuple(_object_of(path, a) for a in value)) for s, value in results]
    machine.evaluated[site] += 1
    asked = questions.asks(path, args)
    if asked is not None and not kwargs:
        return [(state, asked)]
    return [(state, unknown("call", site, state.process.identity, len(state.facts), path))]


def _object_of(path: str, atom: Atom) -> Atom:
    """What a class makes of GPU data is an object of its own that keeps it there, such as an optimizer."""
    name = path.rpartition(".")[2]
    if not isinstance(atom, Tensor) or not name[:1].isupper() or name.endswith(("Tensor", "Variable", "Parameter")):
        return atom
    return replace(atom, type=path)


def identity(machine: Machine, call: Call) -> Results:
    """``f(x)`` that is ``x``."""
    return [(call.state, call.args[0] if call.args else NONE)]
