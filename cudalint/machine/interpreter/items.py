"""Items: what ``value[key]`` gives, by what is asked."""

from __future__ import annotations

import builtins
import collections
import sys
from functools import cache

from cudalint.machine import enums, mappings, operators, questions, unknowns
from cudalint.machine.assumptions import Asking
from cudalint.machine.frame import NO_HASH, NO_KEY, Frame, Raised, Results
from cudalint.machine.heap import ZERO, Class, Closure, Dict, Instance, LibraryObject, Sequence, item_field
from cudalint.machine.interpreter.core import Core
from cudalint.machine.keys import as_key
from cudalint.machine.picking import is_choice, picked, questions_of
from cudalint.machine.slices import is_slice, part, part_of_text
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    PYTHON_MINOR,
    PYTHON_VERSION,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    unknown,
)

_NO_PLACE = Raised(None, ("IndexError", "LookupError"))
# Something that has no items is asked for one.
_NO_ITEMS = Raised(None, ("TypeError",))


class Items(Core):
    """Finds items."""

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""
        results: Results = []
        for i, atom in enumerate(value):
            current = state if i == len(value) - 1 else state.clone()
            results.extend(self._item_of(atom, key, current, frame, site))
        return self.joined_results(results)

    def _item_of(self, atom: Atom, key: Value, state: State, frame: Frame, site: Site) -> Results:
        if isinstance(atom, Ref):
            made = self._item_of_object(atom, key, state, frame, site)
            if made is not None:
                return made
        if frame.tries and isinstance(atom, Const) and isinstance(atom.value, int | float | None):
            return self.fail(state, frame, _NO_ITEMS)
        text = part_of_text(atom, key) if isinstance(atom, Const) else None
        if text is not None:
            return [(state, text)]
        if isinstance(atom, Lib) and _takes_types(atom.path):
            return [(state, unknown(atom, "[]", key))]
        if isinstance(atom, Lib) and atom.path.endswith(".__dict__"):
            return self.named_in_library(atom.path.removesuffix(".__dict__"), key, state, frame, site)
        path = self._method_path(atom, "__getitem__", state)
        call = None if path is None else self._library_call(path, state, frame, site, [key])
        if call is not None:
            call.receiver = atom
            return self.library_call(call)
        if isinstance(atom, Tensor):
            rows = self._tensor_data(atom, "[...]", state, frame, site)
            is_view = isinstance(constant(key), int) or is_slice(key)
            return [(after, (atom.viewed,)) for after, _ in rows] if is_view else rows
        if isinstance(atom, Unknown):
            return self._item_of_unknown(atom, key, state, frame, site)
        if atom == PYTHON_VERSION and (number := _part_of_version(key)):
            return [(state, number)]
        if isinstance(atom, Lib):
            # What a library holds, such as sys.argv, is the same wherever it is looked up.
            return [(state, unknown(atom, "[]", key))]
        return [(state, unknown("item", site, atom))]

    def _item_of_object(self, ref: Ref, key: Value, state: State, frame: Frame, site: Site) -> Results | None:
        """An item of what the program made; None of what only a library knows to have any."""
        found = state.get(ref)
        match found:
            case Instance():
                return self._item_of_instance(ref, found, key, state, frame, site)
            case Dict():
                return self._item_of_dict(ref, found, key, state, frame, site)
            case Sequence():
                return self._item_of_sequence(ref, found, key, state, frame, site)
            case Class() if found.members:
                member = enums.by_name(found, key, state)
                if not member and isinstance(constant(key), str) and enums.is_whole(found, state):
                    return self.fail(state, frame, NO_KEY)
                return [(state, member or unknown("member", site))]
            case Class():
                made = self._item_of_class(ref, key, state, frame, site)
                return [(state, (ref,))] if made is None else made
            case Closure():
                return [(state, (ref,))]
        return None

    def _item_of_instance(
        self, ref: Ref, found: Instance, key: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        method = self.user_method(found, "__getitem__", state)
        if method is not None:
            return self.call_value((method,), [(ref,), key], {}, state, frame, site)
        content = mappings.content_of(ref, state)
        if content is not None:
            made = self._given_by_missing(ref, content, key, state, frame, site)
            return self._item_of(content, key, state, frame, site) if made is None else made
        row = self._row_of(found, state)
        if row is None:
            return None
        return [(state, operators.item(Sequence("tuple", row), key) or unknown("item", site, ref.address))]

    def _item_of_dict(self, ref: Ref, found: Dict, key: Value, state: State, frame: Frame, site: Site) -> Results:
        if frame.tries and self.refuses_hash(key, state):
            return self.fail(state, frame, NO_HASH)
        key = as_key(key, state)
        if found.factory:
            return self._item_or_new(ref, found, key, state, frame, site)
        if operators.lacks(found, key):
            if frame.tries:
                return self.fail(state, frame, NO_KEY)
            failed = self._missing_part(ref, constant(key), state, frame, site)
            if failed is not None:
                return failed
        nothing = unknown("item", site, ref.address)
        return [(after, value or nothing) for after, value in self.picked(found, key, state, site)]

    def _item_of_sequence(
        self, ref: Ref, found: Sequence, key: Value, state: State, frame: Frame, site: Site
    ) -> Results:
        nothing = unknown("item", site, ref.address)
        place = only(key)
        if isinstance(place, Tensor) and place.device.is_gpu:
            # An array that stands for a number is read.
            read = self._tensor_data(place, "the index of a list", state, frame, site)
            return [(after, operators.item(found, nothing) or nothing) for after, _ in read]
        if frame.tries and _is_beyond(found, key):
            return self.fail(state, frame, _NO_PLACE)
        taken = part(found, key)
        if taken is not None:
            return [(state, (state.new(("slice", site), taken),))]
        return [(state, operators.item(found, key) or nothing)]

    def _item_of_class(self, cls: Ref, key: Value, state: State, frame: Frame, site: Site) -> Results | None:
        """``Class[key]`` as its metaclass says, or the class itself; None where neither does."""
        method = self.metaclass_method(cls, "__getitem__", state)
        if method is None:
            method = only(self._class_attribute(cls, "__class_getitem__", state) or ())
        if method is None:
            return None
        bound: Value = (Bound(method.function if isinstance(method, Bound) else method, cls),)
        return self.call_value(bound, [key], {}, state, frame, site)

    def _item_of_unknown(self, atom: Unknown, key: Value, state: State, frame: Frame, site: Site) -> Results:
        if before := self._put_before(atom, state):
            return self.item(before, key, state, frame, site)
        put = unknowns.put_there(atom, item_field(key), state)
        if atom.sym in self.loads and isinstance(name := constant(key), str):
            self.loads[atom.sym][1].add(name)
        if frame.waits_for_key and not put and self._lacks_key(atom, key, state, frame, site):
            return []
        return [(state, put or unknown(atom.sym, "[]", key))]

    def _put_before(self, atom: Unknown, state: State) -> Value:
        """What stands where an unknown attribute was asked for, since something was put there; empty for nothing."""
        match atom.sym:
            case (base, ".", str(name)):
                held = unknowns.put_there(Unknown(base), name, state)
                return () if atom in held else held
        return ()

    def _lacks_key(self, atom: Unknown, key: Value, state: State, frame: Frame, site: Site) -> bool:
        """Whether something unknown lacks a key; where it may, a path on which it does goes to the handler."""
        wanted = only(key)
        if not isinstance(wanted, Const | Unknown):
            return False
        asked = only(questions.comparison("in", wanted, atom))
        if not isinstance(asked, Unknown):
            return False
        has = state.fact(asked.sym)
        if has is False:
            self.fail(state, frame, NO_KEY)
        elif has is None:
            self.record.asked.setdefault(asked.sym, Asking(site, None, positive=True, gets=True))
            self.fail(state.split(asked.sym), frame, NO_KEY)
        return has is False

    def _method_path(self, atom: Atom, method: str, state: State) -> str | None:
        """The model's name of a special method of a library value."""
        match atom:
            case Lib(path=path):
                return f"{path}.{method}"
            case Tensor(type=kind):
                return f"{kind}.{method}"
            case Dev():
                return f"torch.device.{method}"
            case Ref():
                found = state.get(atom)
                if isinstance(found, LibraryObject):
                    return f"{found.type}.{method}"
                if isinstance(found, Instance):
                    base = self.library_base(found.cls, state)
                    return None if base is None else f"{base}.{method}"
        return None

    def picked(self, found: Dict, key: Value, state: State, site: Site, default: Value | None = None) -> Results:
        """The items that a key may lead to; where that is not known, a finding says which one it is about."""
        if self.record.offers.made:
            self.record.offers.look_up(key, found)
        if is_choice(found, key):
            for question in questions_of(found, key):
                self.record.asked.setdefault(question, Asking(site, None, positive=True, picks=True))
        return picked(found, key, state, default)

    def _given_by_missing(
        self, ref: Ref, content: Ref, key: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """An item of an instance of a class below dict that its ``__missing__`` may give; None where that does not."""
        held = state.get(content)
        if not isinstance(held, Dict):
            return None
        key = as_key(key, state)
        lacks = operators.lacks(held, key)
        if not lacks and constant(key) is not ...:
            return None
        may_have = not lacks
        made = self.special((ref,), ("__missing__",), [key], state.clone() if may_have else state, frame, site)
        if made is None or not may_have:
            return made
        return self.joined_results([*self._item_of(content, key, state, frame, site), *made])

    def _item_or_new(self, ref: Ref, found: Dict, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """An item of a ``defaultdict``, which is made where it is missing."""
        there = operators.item(found, key)
        if there:
            return [(state, there)]
        if found.factory == ZERO:
            return [(state, const(0) if found.exact else unknown("count", site))]
        results: Results = []
        for after, made in self.call_value(found.factory, [], {}, state, frame, site):
            current = after.get(ref)
            if isinstance(current, Dict):
                after.store(ref, operators.with_key(current, key, made))
            results.append((after, made))
        return results


def _part_of_version(key: Value) -> Value:
    """What ``sys.version_info`` has there; empty where that is not told."""
    if constant(key) == 0:
        return const(sys.version_info.major)
    if constant(key) == 1:
        return (PYTHON_MINOR,)
    # Its first parts compare with a tuple as it does itself.
    return () if isinstance(only(key), Const) else (PYTHON_VERSION,)


def _is_beyond(found: Sequence, key: Value) -> bool:
    """Whether a list that is known whole has nothing at a place."""
    place = constant(key)
    if found.items is None or found.open or found.kind not in ("list", "tuple") or not isinstance(place, int):
        return False
    return not -len(found.items) <= place < len(found.items)


@cache
def _takes_types(path: str) -> bool:
    """Whether a name is a class of Python's own containers that is asked for the types in it: ``dict[str, int]``."""
    module, _, name = path.rpartition(".")
    home = {"builtins": builtins, "collections": collections}.get(module)
    return hasattr(getattr(home, name, None), "__class_getitem__")
