"""Whether values are proven to survive pickling to a fresh process, as a change to spawn needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from cudalint.machine.classes import defines, lineage
from cudalint.machine.heap import (
    MADE_OPTION,
    NAMESPACE,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import PICKLED, captured, reached, visited, what_runs
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Dev, Lib, Partial, Rank, Ref, Task, Tensor, Unknown, Value
from cudalint.models.library import Library

_HOOKS = frozenset(
    {"__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"}
)
_NAMES = frozenset({"__module__", "__qualname__"})
# Methods that run while an object is made again of which only the class is there yet.
_ON_EMPTY = frozenset({"__new__", "__getattr__", "__getattribute__"})
# The same of an object that is filled as a container, and of an exception, which is made of its ``args``.
_FILLING = frozenset({"__init__", "__setitem__", "append", "extend", "add", "update"})
_OF_EXCEPTIONS = ("Exception", "Error")
_CONTAINERS = ("builtins.dict", "builtins.list", "builtins.set", "builtins.frozenset", "collections.")
# Objects of these libraries pickle, as a trainer does (`ddp_spawn` sends it to its ranks), unless their model says
# otherwise; primitives of multiprocessing do while a process starts, and what is wrong with their context is an outcome
# of its own.
_PICKLING = ("torch.", "numpy.", "multiprocessing.", "lightning.Trainer")
# What stands for threads and workers of its process: no pickler takes it.
_TIED = (
    "multiprocessing.Pool", "multiprocessing.pool.ThreadPool", "concurrent.futures.", "threading.Thread",
    "multiprocessing.Manager", "multiprocessing.managers.BaseManager", "multiprocessing.current_process",
)  # fmt: skip
# Their state is a tensor that nothing holds any more when a fresh process asks for it.
_LET_GO = ("torch.Generator",)
# Objects of a process that stand under a name of a library, where others have functions and classes.
_OF_PROCESS = frozenset(
    {"sys.stdin", "sys.stdout", "sys.stderr", "sys.__stdin__", "sys.__stdout__", "sys.__stderr__", "os.environ"}
)
STARTED = "<process started>"
_NOT_SHOWN = "a value that the code does not show"


def unproven(value: Value, state: State, pickles: Callable[[Unknown], bool] = lambda _: False) -> str | None:
    """What, in words, may not pickle in a value; None where all of it is proven to.

    ``pickles`` says of an unknown whether it is a number or a text, whichever of them it is.
    """
    seen: set[Hashable] = set()
    stack: list[Atom] = list(value)
    while stack:
        atom = stack.pop()
        if isinstance(atom, Ref):
            if atom.address in seen:
                continue
            seen.add(atom.address)
        if isinstance(atom, Unknown) and pickles(atom):
            continue
        inside = _inside(atom, state)
        if isinstance(inside, str):
            return inside
        stack.extend(a for v in inside for a in v)
    return None


def unreturned(value: Value, state: State) -> str | None:
    """What, in words, is seen not to pickle as it is on its way back to the parent; None where nothing is."""
    for atom in visited(value, state):
        found = state.get(atom) if isinstance(atom, Ref) else None
        match atom, found:
            case Unknown(), _:
                continue
            case _, Instance(cls=cls):
                reason = _own_hook(cls, state) or _reason(cls, state)
            case _, LibraryObject(type=kind) if kind.endswith(_OF_EXCEPTIONS):
                continue
            case _, Generator():
                reason = what_runs(found, state)
            case _:
                reason = _reason(atom, state)
        if reason is not None:
            return reason
    return None


def _reason(atom: Atom, state: State) -> str | None:
    inside = _inside(atom, state)
    return inside if isinstance(inside, str) and inside != _NOT_SHOWN else None


def runs_code(value: Value, state: State) -> str | None:
    """What, in words, runs code of its own when it arrives; None where nothing is seen to."""
    return _code_of(visited(value, state), state)


def runs_code_by_value(sent: Iterable[Value], state: State, main: str) -> str | None:
    """The same where the functions of main travel with the globals that they name, or a method that is not found."""
    atoms = list(reached((a for v in sent for a in v), lambda atom: _by_value(atom, state, main)))
    methods = [(a.function, a.receiver) for a in atoms if isinstance(a, Bound) and isinstance(a.function, Ref)]
    unfound = (_unfound_method(f, r, state) for f, r in methods if isinstance(f, Ref))
    return next((reason for reason in unfound if reason is not None), None) or _code_of(atoms, state)


def _code_of(atoms: Iterable[Atom], state: State) -> str | None:
    made = (state.get(atom) for atom in atoms if isinstance(atom, Ref))
    hooks = (_hook(found.cls, state) for found in made if isinstance(found, Instance))
    return next((hook for hook in hooks if hook is not None), None)


def is_plain(atom: Unknown, library: Library) -> bool:
    """Whether an unknown is surely a number, a text or a path, or holds nothing else: it pickles, whatever it is."""
    match atom.sym:
        case ("int" | "bool" | "str" | "float", _) | (("joined", *_), *_):
            return True
        case ("follows", str(path), *_):
            return library.traits.has(path, "gives-texts")
        case (inner, "each" | "[]", _) if isinstance(inner, tuple):
            path = inner[4] if len(inner) >= 5 and inner[0] == "call" else ""
            return library.traits.has(str(path), "gives-texts") or library.traits.has(str(path), "gives-rows")
        case ("call", _, _, _, str(path), *_):
            return library.traits.has(path, "gives-texts")
        case (("call", _, _, _, str(path), *_), ".", str(name)):
            return library.traits.has(f"{path}.{name}", "gives-texts")
        case (("bin", *_), str(), tuple(left), tuple(right)):
            return all(
                isinstance(a, Const) or (isinstance(a, Unknown) and is_plain(a, library)) for a in (*left, *right)
            )
    return False


def _inside(atom: Atom, state: State) -> list[Value] | str:
    """The values that are pickled along with an atom, or why it may not pickle."""
    match atom:
        case Const() | Dev() | Rank() | Tensor():
            return []
        case Lib(path=path) if "." not in path:
            return f"the module {path}"
        case Lib(path=path):
            return f"{path}, which belongs to its process" if path in _OF_PROCESS else []
        case Bound(function=Ref() as function, receiver=receiver):
            return _unfound_method(function, receiver, state) or [(function,), (receiver,)]
        case Bound(function=function, receiver=receiver):
            return [(function,), (receiver,)]
        case Partial(function=function, args=args, kwargs=kwargs):
            return [function, *args, *(v for _, v in kwargs)]
        case Task(function=function, args=args, kwargs=kwargs):
            return [function, *args, *(v for _, v in kwargs)]
        case Ref():
            return _inside_object(atom, state)
    return _NOT_SHOWN


def _unfound_method(function: Ref, receiver: Atom, state: State) -> str | None:
    """Why a method is not found again by its name in its object; None where it is."""
    found = state.get(function)
    if not isinstance(found, Closure):
        return None
    name = found.function.name
    if _is_private(name):
        return f"{name}, whose name is another one in its class"
    owner = state.get(receiver) if isinstance(receiver, Ref) else None
    cls = owner.cls if isinstance(owner, Instance) else receiver
    if not isinstance(cls, Ref) or not isinstance(state.get(cls), Class):
        return None
    scopes = (state.get(c.scope) for c in lineage(cls, state))
    first = next((s.variables[name] for s in scopes if isinstance(s, Scope) and name in s.variables), None)
    return None if first == (function,) else f"{name}, which its object has another method by the name of"


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _inside_object(ref: Ref, state: State) -> list[Value] | str:
    found = state.get(ref)
    match found:
        case Closure(kind="property" | "cached", function=function):
            return f"the property {function.name}"
        case Closure(function=function):
            return _unfound(ref, function.name, *found.address, state) or []
        case Class(module=module, qualname=qualname, name=name):
            return _unfound(ref, name, module, qualname, state) or []
        case Instance(attributes=attributes) if STARTED in attributes:
            return "a process that was started"
        case Instance(cls=cls, attributes=attributes):
            hook = _hook(cls, state)
            return hook if hook is not None else [(cls,), *(v for k, v in attributes.items() if not k.startswith("<"))]
        case Sequence(kind="iterator"):
            return "a generator"
        case Sequence(items=items, element=element):
            return [*(items or ()), element]
        case Dict(items=entries, element=element):
            return [*entries.values(), element]
        case LibraryObject(type=kind, fields=fields) if kind == NAMESPACE:
            return _inside_namespace(fields)
        case LibraryObject(fields=fields) if PICKLED in fields:
            return []
        case LibraryObject(type="cudalint.compose", fields=fields):
            return [fields["<steps>"]]
        case LibraryObject(type=kind, fields=fields):
            never = kind in _LET_GO or fields.get("<pickle>") == (Const("never"),)
            if never or _is_tied(found) or not kind.startswith(_PICKLING):
                return _tied(found)
            if found.is_of_processes:
                # What was received through it stays where it is.
                return []
            return [v for k, v in fields.items() if not k.startswith("<")]
    return _NOT_SHOWN


def _inside_namespace(fields: Mapping[str, Value]) -> list[Value] | str:
    """The attributes of a namespace; what the user may set as an option is text, or a number."""
    for atom in fields.get(MADE_OPTION, ()):
        return f"the option {atom.value}, which a type or an action makes" if isinstance(atom, Const) else "an option"
    return [tuple(a for a in value if not _is_option(a)) for value in fields.values()]


def _is_option(atom: Atom) -> bool:
    return isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and atom.sym[:1] == ("option",)


def _unfound(ref: Ref, name: str, module: str, qualname: str, state: State) -> str | None:
    """Why a function or class is not found again by its name in its module; None where it is."""
    if "<" in qualname:
        return f"{name}, which is not at the top of a module"
    if _is_private(name) and "." in qualname:
        return f"{name}, whose name is another one in its class"
    if _is_renamed(state.get(ref), state):
        return f"{name}, which gives itself another name"
    value: Value | None = None
    scope = state.get(Ref(("module", module)))
    for part in qualname.split("."):
        value = scope.variables.get(part) if isinstance(scope, Scope) else None
        inner = [state.get(a) for a in value or () if isinstance(a, Ref)]
        scope = state.get(inner[0].scope) if len(inner) == 1 and isinstance(inner[0], Class) else None
    if value is not None and ref in value:
        return None
    hides = value is not None and all(isinstance(a, Ref) for a in value)
    return f"{name}, whose name stands for something else" if hides else None


def _is_renamed(found: Object | None, state: State) -> bool:
    """Whether the body of a class says how the class is called, by which it is looked for."""
    return isinstance(found, Class) and defines(found, _NAMES, state)


def _is_tied(found: LibraryObject) -> bool:
    return STARTED in found.fields or found.type.startswith(_TIED)


def _tied(found: LibraryObject) -> str:
    if STARTED in found.fields:
        return "a process that was started"
    # The machine's own name for a thing is nobody else's.
    return "an object of a library" if found.type.startswith("cudalint.") else f"an object of type {found.type}"


def _hook(cls: Ref, state: State) -> str | None:
    """A class of which an object does not arrive as it was; its bases count."""
    classes = lineage(cls, state)
    if (found := _own_hook(cls, state)) is not None:
        return found
    if any(base.endswith(_OF_EXCEPTIONS) for base in _library_bases(classes)):
        return f"{classes[0].name}, an exception, which leaves its traceback and its cause behind"
    return None


def _own_hook(cls: Ref, state: State) -> str | None:
    """A class that says itself how it pickles, or whose methods run while it does."""
    classes = lineage(cls, state)
    found = next((c for c in classes if defines(c, _HOOKS, state)), None)
    if found is not None:
        return f"{found.name}, which pickles itself"
    filled = any(base.startswith(_CONTAINERS) or base.endswith(_OF_EXCEPTIONS) for base in _library_bases(classes))
    hooks = _ON_EMPTY | _FILLING if filled else _ON_EMPTY
    found = next((c for c in classes if defines(c, hooks, state)), None)
    if found is not None:
        return f"{found.name}, whose methods run before all of it has arrived"
    return None


def _library_bases(classes: Iterable[Class]) -> list[str]:
    return [base.path for cls in classes for value in cls.bases for base in value if isinstance(base, Lib)]


def refused(sent: Iterable[Value], state: State, machine: Machine, *, by_value: bool) -> str | None:
    """What is sure not to arrive; ``by_value``: the functions of main travel with the globals that they name.

    No pickler takes what holds a resource of its process. What travels by value does not take along functions that
    ``functools`` made either: these go by their name in main, which is another module in the worker.
    """

    def inside(atom: Atom) -> Iterable[Value]:
        return _by_value(atom, state, machine.main) if by_value else _shown(atom, state)

    found = (_refused(atom, state, machine, by_value) for atom in reached((a for v in sent for a in v), inside))
    return next((reason for reason in found if reason is not None), None)


def _refused(atom: Atom, state: State, machine: Machine, by_value: bool) -> str | None:
    found = state.get(atom) if isinstance(atom, Ref) else None
    match atom, found:
        case Unknown(sym=("call", _, _, _, str(path), *_)), _:
            effect = machine.library.process_effect(path)
            return None if effect is None or effect.pickles else f"an object of {path}"
        case Lib(path=path), _ if not by_value and "." not in path:
            return f"the module {path}"
        case _, LibraryObject() if _is_tied(found):
            return _tied(found)
        case _, LibraryObject(type=kind, fields=fields) if by_value and "<lock>" in fields and _is_inherited(kind):
            return f"an object of {kind}"
        case _, LibraryObject(type=kind) if by_value and machine.library.traits.has(kind, "pickles-by-name"):
            return f"an object of {kind}"
        case _, LibraryObject(type=kind):
            effect = machine.library.process_effect(kind)
            return None if effect is None or effect.pickles else f"an object of {kind}"
        case _, Instance(attributes=attributes) if STARTED in attributes:
            return "a process that was started"
        case _, Closure(cache=Ref(), module=module, function=function) if by_value and module == machine.main:
            return f"{function.name}, which keeps a cache"
        case _, Closure(kind="cached", module=module, function=function) if by_value and module == machine.main:
            # Before Python 3.12 it has a lock.
            return f"the property {function.name}, which keeps a lock" if machine.host.lowest < (3, 12) else None
        case _, Generator() | Sequence(kind="iterator"):
            return what_runs(found, state)
        case (Bound(function=Ref() as method), _) | (Ref() as method, Closure()) if not by_value:
            return _private_method(state.get(method))
    return None


def _is_inherited(kind: str) -> bool:
    """Whether processes have a lock or a queue from the one that starts them, and of a manager's each has a proxy."""
    return kind.startswith("multiprocessing.") and not kind.startswith("multiprocessing.Manager")


def _private_method(found: Object | None) -> str | None:
    if not isinstance(found, Closure) or not _is_private(found.function.name) or "." not in found.address[1]:
        return None
    return f"the method {found.function.name}, whose name is another one outside of its class"


def _by_value(atom: Atom, state: State, main: str) -> list[Value]:
    """The values inside an atom, with the globals of the functions of main and what its classes define."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    match atom, found:
        case _, Closure(module=module) if module == main:
            return captured(found, state)
        case _, Class(module=module, scope=scope, bases=bases) if module == main:
            inner = state.get(scope)
            return [*bases, *(inner.variables.values() if isinstance(inner, Scope) else ())]
        case _, Instance(cls=cls, attributes=attributes):
            return [(cls,), *attributes.values()]
    return _shown(atom, state)


def _shown(atom: Atom, state: State) -> list[Value]:
    """The values that are seen to be pickled along with an atom."""
    inside = _inside(atom, state)
    return [] if isinstance(inside, str) else inside


def function_sites(value: Value, state: State) -> list[Site]:
    """Where the user functions stand that calling a value runs first."""
    result: list[Site] = []
    for atom in value:
        match atom:
            case Bound(function=function):
                result.extend(function_sites((function,), state))
            case Partial(function=inner) | Task(function=inner):
                result.extend(function_sites(inner, state))
            case Ref():
                found = state.get(atom)
                if isinstance(found, Closure):
                    result.append(Site(found.module, found.function.ordinal))
                elif isinstance(found, Instance):
                    cls = state.get(found.cls)
                    if isinstance(cls, Class):
                        result.append(cls.site)
    return result
