"""What can be iterated: which elements it has, and the rounds of a loop over it."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import zip_longest

from cudalint.machine import enums, mappings
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Class, Closure, Dict, Generator, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.keys import of_key
from cudalint.machine.rounds import MOST_ITEMS, few_rounds, rows_of
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import EACH, Atom, Rank, Ref, Tensor, Unknown, Value, only, union, unknown

# How deep an unknown caller looks into the objects, rows and mappings that it is given.
_MOST_HELD = 3


class Iteration(Core):
    """Goes through what can be iterated."""

    def goes_on(self, iterable: Value, rounds: list[Value], state: State) -> bool:
        """Whether a loop may make other rounds than these."""
        exact = self.exact_items(iterable, state)
        return exact is None or len(exact) != len(rounds)

    def used(self, results: Results, frame: Frame) -> Results:
        """Results of a function whose caller nobody sees: whatever they hold that starts when it is iterated has."""
        done: Results = []
        for state, value in self.drained(results, frame):
            states = [state]
            for atom in (only(part) for part in self._results_in(value, state)):
                states = [after for current in states for after in self._used(atom, current, frame)]
            done.extend((after, value) for after in states)
        return done

    def _results_in(self, value: Value, state: State, depth: int = 0) -> list[Value]:
        """A result by itself, or what a row, a mapping or an object of several holds."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        match found:
            case Instance() if isinstance(atom, Ref) and not self._goes_by_library(atom, found, state):
                held = [part for name, part in found.attributes.items() if self._is_for_others(found, name, state)]
            case Dict():
                held = [part for part in (*found.items.values(), found.element) if part]
            case Sequence():
                held = self.exact_items(value, state) or []
            case _:
                held = []
        if not held or depth == _MOST_HELD:
            return [value]
        return [inner for part in held for one in part for inner in self._results_in((one,), state, depth + 1)]

    def _is_for_others(self, instance: Instance, name: str, state: State) -> bool:
        """Whether an object keeps something for whoever has it: no method but the one that made it names that."""
        if name.startswith(("_", "<")):
            return False
        scopes = [state.get(cls.scope) for cls in self.mro(instance.cls, state) if isinstance(cls, Class)]
        methods = [atom for s in scopes if isinstance(s, Scope) for value in s.variables.values() for atom in value]
        return not any(_names(atom, name, state) for atom in methods)

    def _goes_by_library(self, ref: Ref, instance: Instance, state: State) -> bool:
        """Whether an object is iterated as the class of a library says that its class derives from."""
        path = self._method_path(ref, "__iter__", state)
        is_modelled = path is not None and self.library.function(path) is not None
        return is_modelled and self.user_method(instance, "__iter__", state) is None

    def _used(self, atom: Atom | None, state: State, frame: Frame) -> list[State]:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(found, Instance | LibraryObject):
            return [state]
        if isinstance(found, Instance) and not self._goes_by_library(atom, found, state):
            return [state]
        rounds = self._iterate_library(atom, state, frame, found.site)
        return [state] if rounds is None else [after for after, _ in rounds]

    def exact_items(self, value: Value, state: State) -> list[Value] | None:
        """The items of a sequence whose content is known exactly."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None and not found.open:
            return list(found.items)
        if isinstance(found, Class) and found.members:
            return enums.members(found, state)
        held = mappings.list_of(atom, state)
        if held is not None:
            return self.exact_items((held,), state)
        row = self._row_of(found, state) if isinstance(found, Instance) else None
        return None if row is None else list(row)

    def _exact_keys(self, value: Value, state: State) -> list[Value] | None:
        """The keys of a dict that is known whole."""
        found = state.get(atom) if isinstance(atom := only(value), Ref) else None
        is_known = isinstance(found, Dict) and found.exact and not found.element
        return [of_key(key) for key in found.items] if is_known and isinstance(found, Dict) else None

    def elements(self, value: Value, state: State) -> list[Value]:
        """What iterating a value may give; empty where nothing is known."""
        result: list[Value] = []
        for atom in value:
            held = mappings.list_of(atom, state) or atom
            found = state.get(held) if isinstance(held, Ref) else None
            if isinstance(found, Sequence):
                result.extend(found.items if found.items is not None else [found.element] if found.element else [])
            elif isinstance(found, Dict):
                result.extend(of_key(k) for k in found.items)
        return result

    def element_of(self, atom: Atom, state: State, sym: Hashable) -> Value:
        """One element of a value, for unpacking."""
        match atom:
            case Ref():
                found = state.get(atom)
                if isinstance(found, Sequence):
                    inner = union(found.items or ()) or found.element
                    return inner or unknown(sym)
                if isinstance(found, LibraryObject) and "element" in found.fields:
                    return found.fields["element"]
            case Unknown(sym=base):
                return unknown(base, "[]", sym)
            case Tensor() | Rank():
                return (atom,)
        return unknown(sym)

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop over a value, each with its variable's value: two, or one for each of ``most`` items."""
        atom = only(value)
        if atom is None:
            # Each round has what is next in one of the alternatives: a list of all GPUs, or of the CPU alone.
            each = [rs for a in value for _, rs in self.iterate((a,), state.clone(), frame, site, most)]
            rounds = [union(found) for found in zip_longest(*each, fillvalue=())]
            return [(state, rounds or [unknown("each", site)] * 2)]
        if isinstance(atom, Ref):
            found = state.get(atom)
            if isinstance(found, Sequence):
                if found.items is not None:
                    return [(state, few_rounds(list(found.items), most))]
                element = found.element or unknown("each", site)
                return [(state, [element, element])]
            if isinstance(found, Dict):
                keys: list[Value] = [of_key(k) for k in found.items]
                return [(state, few_rounds(keys, most) if found.exact else [*keys[:1], unknown("key", site)])]
            if isinstance(found, Generator):
                return [
                    (s, rows_of(s.get(atom), v or unknown("each", site)))
                    for s, v in self.consume(atom, found, state, frame)
                ]
            if isinstance(found, Instance):
                return self._iterate_instance(atom, found, state, frame, site)
            if isinstance(found, Class) and found.members:
                return [(state, few_rounds(enums.members(found, state)))]
        given = self._iterate_library(atom, state, frame, site)
        if given is not None:
            return given
        if isinstance(atom, Tensor):
            row: Value = (atom.viewed,)
            return [(s, [row, row]) for s, _ in self._tensor_data(atom, "iteration", state, frame, site)]
        if isinstance(atom, Unknown):
            rows = self._unknown_method(Call(state, frame, site, "?.readlines", {}, [], {}, atom))
            if rows is not None:
                return self.iterate(rows, state, frame, site, most)
            return [(state, [unknown(atom.sym, "each", 0), unknown(atom.sym, "each", 1)])]
        return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]

    def _iterate_library(
        self, atom: Atom, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]] | None:
        """The rounds over what a library's ``__iter__`` gives; None where it has none."""
        path = self._method_path(atom, "__iter__", state)
        call = None if path is None else self._library_call(path, state, frame, site, [])
        if call is None:
            return None
        call.receiver = atom
        found = state.get(atom) if isinstance(atom, Ref) else None
        # What goes through one may make another at the same place, and go through that.
        again = (Ref(("through", found.site if isinstance(found, LibraryObject) else site)), len(self._active))
        if again in self._called:
            return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]
        self._called.append(again)
        results = self.library_call(call)
        self._called.pop()
        return [(s, self._rounds_of(v, s, site)) for s, v in results]

    def _rounds_of(self, value: Value, state: State, site: Site) -> list[Value]:
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None:
            return few_rounds(list(found.items))
        element = union(self.elements(value, state)) or unknown("each", site)
        return [element, element]

    def _iterate_instance(
        self, ref: Ref, instance: Instance, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        method = self.user_method(instance, "__iter__", state)
        if method is not None:
            result: list[tuple[State, list[Value]]] = []
            for after, value in self.call_value((method,), [(ref,)], {}, state, frame, site):
                if ref in value:
                    result.extend(self._next_rounds(ref, instance, after, frame, site))
                else:
                    result.extend(self._rounds_of_other(ref, value, after, frame, site))
            return result
        held = mappings.content_of(ref, state)
        if held is not None:
            return self.iterate((held,), state, frame, site)
        row = self._row_of(instance, state)
        if row is not None:
            return [(state, few_rounds(list(row)))]
        rounds = self._iterate_library(ref, state, frame, site)
        if rounds is not None:
            return rounds
        getter = self.user_method(instance, "__getitem__", state)
        if getter is not None:
            return self._until("IndexError", getter, [(ref,), EACH], state, frame, site)
        return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]

    def _rounds_of_other(
        self, ref: Ref, value: Value, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        """The rounds over what an instance's ``__iter__`` gave, which may come back to that instance."""
        again = (ref, len(self._active))
        if again in self._called:
            return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]
        self._called.append(again)
        rounds = self.iterate(value, state, frame, site)
        self._called.pop()
        return rounds

    def _next_rounds(
        self, ref: Ref, instance: Instance, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        method = self.user_method(instance, "__next__", state)
        if method is None:
            return [(state, [unknown("each", site, 0)] * 2)]
        return self._until("StopIteration", method, [(ref,)], state, frame, site)

    def _until(
        self, end: str, method: Atom, args: list[Value], state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        """The rounds over what a method gives, until it raises what says that there is no more."""
        outer, frame.raises = frame.raises, []
        frame.tries += 1
        results = self.call_value((method,), args, {}, state, frame, site)
        frame.tries -= 1
        raised, frame.raises = frame.raises, outer
        outer.extend((current, exception) for current, exception in raised if end not in exception.names)
        ended: list[tuple[State, list[Value]]] = [(s, []) for s, exception in raised if end in exception.names]
        return [(s, [v, v]) for s, v in results] or ended[:1]


def _names(atom: Atom, attribute: str, state: State) -> bool:
    """Whether a method other than the one that makes an object speaks of an attribute of it."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Closure) or found.function.name == "__init__":
        return False
    return found.function.mentions({attribute})
