"""GPUs and their memory: which values lie there, and in which process they were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cudalint.machine import unknowns
from cudalint.machine.heap import Class, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.state import State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import Atom, Const, Lib, Ref, Tensor, Unknown, Value, is_array
from cudalint.structs import replace

# Batches are nested two or three deep.
_DEEPEST = 4
# Where classes come from below which nothing is a module.
_PLAIN = frozenset({"abc", "builtins", "collections", "enum", "typing"})
# How deep parts of modules are looked for.
_MODULES = 6


def owner_of(atom: Atom, state: State) -> tuple[tuple[str, ...] | None, Chain | None]:
    """The process in which GPU memory was made, and how; None and None of what lies on no GPU."""
    match atom:
        case Tensor(device=device, owner=owner, origin=origin):
            return (owner, origin) if device.is_gpu else (None, None)
        case Ref():
            found = placed_tensor(atom, state)
            return (None, None) if found is None else (found.owner, found.origin)
        case Unknown(sym=sym):
            placed = state.placed.get(sym)
            return (None, None) if placed is None else (placed.owner, placed.origin)
    return None, None


def memory_of(atom: Atom, state: State) -> Tensor | None:
    """The GPU memory that a value is, or that an object holds by having been moved."""
    match atom:
        case Tensor(device=device):
            return atom if device.is_gpu else None
        case Ref():
            return placed_tensor(atom, state)
        case Unknown(sym=sym):
            return state.placed.get(sym)
    return None


def placed_tensor(ref: Ref, state: State) -> Tensor | None:
    """The GPU memory that a module, or an instance of a module class, holds by having been moved."""
    found = state.get(ref)
    value: Value = ()
    if isinstance(found, LibraryObject):
        value = found.fields.get("<memory>", ())
    elif isinstance(found, Instance):
        value = found.attributes.get("<memory>", ())
    for atom in value:
        if isinstance(atom, Tensor) and atom.device.is_gpu:
            return atom
    return None


def place(ref: Ref, memory: Tensor, state: State) -> None:
    """A module moves: it and the modules it holds are now on the device, with their parameters and buffers."""
    for atom in _parts(ref, state):
        match state.get(atom):
            case LibraryObject(fields=fields) as found:
                state.store(atom, replace(found, fields={**fields, "<memory>": (memory,)}))
            case Instance(attributes=attributes) as found if atom == ref or has_parameters(atom, state):
                moved = {name: _moved(name, value, memory, attributes) for name, value in attributes.items()}
                state.store(atom, replace(found, attributes={**moved, "<memory>": (memory,)}))


def made_anew(value: Value, site: Site, state: State) -> None:
    """A call gave something unknown by the name of what it gave before: what that was given on a GPU is another's."""
    made = [atom for atom in value if isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and site in atom.sym]
    if made:
        unknowns.forget(state, lambda thing, held: thing in made and bool(gpu_atoms(held, state)))


def part_mark(name: str) -> str:
    """Where an instance keeps that a name of it is registered: what is assigned there later moves as well."""
    return f"<part {name}>"


def _is_part(atom: Atom, name: str, attributes: Mapping[str, Value]) -> bool:
    match atom:
        case Tensor(part=part):
            return part or part_mark(name) in attributes
        case Unknown():
            return part_mark(name) in attributes
    return False


def _moved(name: str, value: Value, memory: Tensor, attributes: Mapping[str, Value]) -> Value:
    """What an attribute of a module holds when that has moved: a tensor that is not registered stays where it is."""
    return tuple(
        replace(atom, device=memory.device, owner=memory.owner, origin=memory.origin)
        if isinstance(atom, Tensor) and _is_part(atom, name, attributes)
        else atom
        for atom in value
    )


def has_parameters(ref: Ref, state: State, depth: int = 0) -> bool:
    """Whether moving an object moves any data: moving a module without parameters does not initialise CUDA."""
    match state.get(ref):
        case LibraryObject(fields=fields):
            if fields.get("<parameters>") != (Const(False),):
                return True
            children = (a for name, value in fields.items() if name.startswith("<child") for a in value)
            return depth < _MODULES and any(has_parameters(a, state, depth + 1) for a in children if isinstance(a, Ref))
        case Instance(attributes=attributes):
            return any(
                _is_part(atom, name, attributes) or _may_hold_parameters(atom, state, depth)
                for name, value in attributes.items()
                for atom in value
            )
    return True


def _may_hold_parameters(atom: Atom, state: State, depth: int) -> bool:
    match atom:
        case Ref():
            is_module = isinstance(state.get(atom), LibraryObject) or _is_module(atom, state)
            return is_module and depth < _MODULES and has_parameters(atom, state, depth + 1)
        case Unknown(sym=sym):
            return sym in state.placed or not is_array(sym)
    return False


def whole_or_parts(ref: Ref, state: State) -> Tensor | None:
    """The GPU memory of a module, or of those of its parts that were moved, where these lie on one GPU."""
    own = placed_tensor(ref, state)
    if own is not None:
        return own
    found = [memory for part in _parts(ref, state) if (memory := placed_tensor(part, state)) is not None]
    return found[0] if len({memory.device for memory in found}) == 1 else None


def _parts(ref: Ref, state: State) -> Iterator[Ref]:
    """A module and the modules that it holds, also in lists and dicts."""
    stack: list[Atom] = [ref]
    seen: set[Atom] = set()
    while stack:
        atom = stack.pop()
        if atom in seen or not isinstance(atom, Ref):
            continue
        seen.add(atom)
        match state.get(atom):
            case LibraryObject(fields=fields):
                stack.extend(a for v in fields.values() for a in v)
            case Instance(attributes=attributes):
                stack.extend(a for v in attributes.values() for a in v if isinstance(a, Ref) and _is_module(a, state))
            case Sequence(items=items, element=element):
                stack.extend(a for v in (*(items or ()), element) for a in v)
            case Dict(items=entries, element=element):
                stack.extend(a for v in (*entries.values(), element) for a in v)
        yield atom


def _is_module(ref: Ref, state: State) -> bool:
    """Whether what an attribute holds moves with its owner: a module does, no list or object that holds some."""
    found = state.get(ref)
    if isinstance(found, LibraryObject):
        return "<parameters>" in found.fields
    return isinstance(found, Instance) and _may_be_module(found.cls, state)


def _may_be_module(cls: Ref, state: State) -> bool:
    """Whether a class derives from anything but classes of the program and those of Python that hold nothing."""
    found = state.get(cls)
    bases = [base for value in found.bases for base in value] if isinstance(found, Class) else [cls]
    return any(
        _may_be_module(base, state)
        if isinstance(base, Ref) and base != cls
        else not (isinstance(base, Lib) and base.path.partition(".")[0] in _PLAIN)
        for base in bases
    )


def gpu_atoms(value: Value, state: State) -> list[Atom]:
    """The alternatives of a value that live on a GPU."""
    result: list[Atom] = []
    for atom in value:
        owner, _ = owner_of(atom, state)
        if owner is not None:
            result.append(atom)
    return result


def tensors_in(values: Iterable[Value], state: State, depth: int = 0) -> list[Atom]:
    """GPU values among some, and in the lists, tuples and dicts that these are."""
    result: list[Atom] = []
    for value in values:
        result.extend(gpu_atoms(value, state))
        if depth < _DEEPEST:
            result.extend(tensors_in(_inside(value, state), state, depth + 1))
    return result


def host_arrays_in(values: Iterable[Value], state: State, framework: str, depth: int = 0) -> Iterator[Tensor]:
    """Arrays of a framework that lie on the CPU, among some values and in the containers that these are."""
    for value in values:
        for atom in value:
            if isinstance(atom, Tensor) and atom.framework == framework and not atom.device.is_gpu:
                yield atom
        if depth < _DEEPEST:
            yield from host_arrays_in(_inside(value, state), state, framework, depth + 1)


def _inside(value: Value, state: State) -> Iterator[Value]:
    for atom in value:
        match state.get(atom) if isinstance(atom, Ref) else None:
            case Sequence(items=items, element=element):
                yield from (element,) if items is None else items
            case Dict(items=entries, element=element):
                yield from (*entries.values(), element)
