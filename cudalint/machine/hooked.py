"""Hooks of modules and tensors that a process has: which they are, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.machine.heap import HOOKS, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import JOINED, Atom, Bound, Partial, Ref, Unknown, Value, const, strings
from cudalint.structs import Frozen

HANDLE = "torch.utils.hooks.RemovableHandle"
FORWARD, BEFORE, BACKWARD = "forward", "before", "backward"
# Those that one method alone runs, by their kind.
_METHODS = {"stepped": "step", "saved": "state_dict", "loaded": "load_state_dict"}
_OF, _RUNS, _KIND, _NAMED = "<of>", "<runs>", "<kind>", "<named>"
# More items of a list a loop does not go through one by one.
_MANY = 12
# How many objects within one another are looked through for one that has a hook.
_DEEPEST = 4


class Hook(Frozen):
    """A hook: ``of`` is what it was given to, nothing if that is every module; ``named``: it is given keywords."""

    of: Value
    runs: Value
    kind: str
    named: bool
    site: Site


def keep(hook: Hook, state: State) -> Ref:
    """The handle of a hook that is there from now on."""
    fields: dict[str, Value] = {
        _OF: hook.of,
        _RUNS: hook.runs,
        _KIND: const(hook.kind),
        _NAMED: const(hook.named),
    }
    handle = state.new(("hook", hook.site), LibraryObject(HANDLE, fields, hook.site))
    found = state.get(HOOKS)
    kept = found.items if isinstance(found, Dict) else {}
    element = found.element if isinstance(found, Dict) else ()
    state.store(HOOKS, Dict({**kept, handle.address: (handle,)}, element, not element))
    return handle


def forget(handle: Ref, state: State) -> list[Hook]:
    """Take away what a handle removes, and the other hooks of its place: what a loop adds, another one removes, one by
    one. A handle stands for all where there are too many to tell them apart."""
    found = state.get(handle)
    site = found.site if isinstance(found, LibraryObject) else None
    hooks = list(_kept(state))
    gone = [hook for _, hook in hooks if hook.site == site]
    # All lists are looked through for it, so only where that makes a difference.
    if len(gone) < len(hooks) and _is_one_of_many(handle, state):
        gone = [hook for _, hook in hooks]
    state.store(HOOKS, Dict({ref.address: (ref,) for ref, hook in hooks if hook not in gone}))
    return gone


def _is_one_of_many(handle: Ref, state: State) -> bool:
    """Whether a list, or a dict, holds a handle beside more things than a loop goes through one by one."""
    for address, found in state.objects_at().items():
        is_list = isinstance(found, Sequence | Dict) and address != HOOKS.address
        values = tuple(_parts(handle, found)) if is_list else ()
        if any(handle in value for value in values) and (len(values) > _MANY or any(JOINED in v for v in values)):
            return True
    return False


def pending(state: State) -> list[Hook]:
    """The hooks that were not removed."""
    return [hook for _, hook in _kept(state)]


def _kept(state: State) -> Iterator[tuple[Ref, Hook]]:
    found = state.get(HOOKS)
    if not isinstance(found, Dict):
        return
    for ref in dict.fromkeys(atom for value in (*found.items.values(), found.element) for atom in value):
        handle = state.get(ref) if isinstance(ref, Ref) else None
        if isinstance(ref, Ref) and isinstance(handle, LibraryObject):
            fields = handle.fields
            yield (
                ref,
                Hook(fields[_OF], fields[_RUNS], strings(fields[_KIND])[0], fields[_NAMED] == const(True), handle.site),
            )


def is_run_by(hook: Hook, method: str) -> bool:
    """Whether a method of what has the hook may run it."""
    return _METHODS.get(hook.kind, method) == method


def has_method(hook: Hook) -> bool:
    """Whether one method alone runs it."""
    return hook.kind in _METHODS


def runs_in(hook: Hook, atom: Atom, state: State) -> bool:
    """Whether what is called has a hook, or holds what has it."""
    return not hook.of or any(_holds(atom, of, state) for of in hook.of)


def _holds(atom: Atom, wanted: Atom, state: State) -> bool:
    level, seen = [atom], {atom}
    for _ in range(_DEEPEST + 1):
        if any(one == wanted or _is_part(wanted, one) for one in level):
            return True
        found = [(one, state.get(one) if isinstance(one, Ref) else None) for one in level]
        inner = [part for one, held in found for value in _parts(one, held) for part in value]
        level = [part for part in dict.fromkeys(inner) if part not in seen]
        seen.update(level)
    return False


def _is_part(wanted: Atom, atom: Atom) -> bool:
    """Whether something unknown is an attribute, or an item, of what is called, at any depth."""
    match wanted:
        case Unknown(sym=tuple(sym)):
            return any(part == atom or (isinstance(atom, Unknown) and part == atom.sym) for part in _flat(sym, 0))
    return False


def _flat(sym: tuple[object, ...], depth: int) -> Iterator[object]:
    for part in sym:
        yield part
        if isinstance(part, tuple) and depth < _DEEPEST:
            yield from _flat(part, depth + 1)


def _parts(atom: Atom, found: object) -> Iterable[Value]:
    match atom, found:
        case Bound(receiver=receiver), _:
            return ((receiver,),)
        case Partial(function=function, args=args), _:
            return (function, *args)
        case _, LibraryObject(fields=fields):
            return fields.values()
        case _, Instance(attributes=attributes):
            return attributes.values()
        case _, Sequence(items=tuple(items)):
            return items
        case _, Sequence(element=element):
            return (element,)
        case _, Dict(items=named, element=element):
            return (*named.values(), element)
    return ()
