"""What binding, assigning and deleting change: variables, attributes, items."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.machine import (
    absent,
    collecting,
    first_values,
    gpu_memory,
    mappings,
    operators,
    questions,
    sets,
    unknowns,
)
from cudalint.machine.frame import NO_HASH, Call, Frame, Raised, Results
from cudalint.machine.function_attributes import give_attribute
from cudalint.machine.heap import (
    ANY_NAME,
    NAMESPACE,
    REPLACED,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
    item_field,
)
from cudalint.machine.interpreter.core import Core
from cudalint.machine.keys import as_key
from cudalint.machine.slices import replaced, without
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    DELETED,
    JOINED,
    TRUE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Rank,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    is_device,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

# What models call the operators that change in place what a library holds.
_IN_PLACE = {"+": "__iadd__", "|": "__ior__"}


class Assignment(Core):
    """Changes variables and objects."""

    def _assign(self, node: ir.Assign, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        before, self._kept = self._kept, node.value
        made = self.kept_value(node.value, state, frame)
        self._kept = before
        for current, value in made:
            states = [current]
            for target in node.targets:
                states = [s for c in states for s in self.assign(target, value, c, frame, node.ordinal)]
            result.extend(states)
        return result

    def _aug_assign(self, node: ir.AugAssign, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, left in self.eval(node.target, state, frame):
            for after, right in self.eval(node.value, current, frame):
                site = Site(frame.module, node.ordinal)
                own = self._added_to_library(node, left, right, after, frame, site)
                if own is not None:
                    result.extend(own)
                    continue
                made = self.operate_in_place(node.op, left, right, after, frame, site)
                if made is None:
                    made = self._with_library(node.op, left, right, after, frame, site)
                if made is None:
                    made = [(after, self._augmented(node, left, right, after))]
                result.extend(r for s, v in made for r in self.assign(node.target, v, s, frame, node.ordinal))
        return result

    def _added_to_library(
        self, node: ir.AugAssign, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> list[State] | None:
        """``sys.argv += words``, ``os.environ |= {...}``: where a model says what that does to what a library holds."""
        atom = only(left)
        method = _IN_PLACE.get(node.op)
        if not isinstance(atom, Lib) or method is None:
            return None
        call = self._library_call(f"{atom.path}.{method}", state, frame, site, [right])
        return None if call is None else [after for after, _ in self.library_call(call)]

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        atom = only(left)
        if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence) and node.op == "+":
            if found.kind == "tuple":
                # Others that have the tuple keep it as it is.
                longer = operators.extend(found, self.elements(right, state))
                return (state.new(("aug", node.ordinal), longer),)
            state.store(atom, operators.extend(found, self.elements(right, state)))
            return left
        if isinstance(atom, Ref) and isinstance(found, Sequence) and found.kind == "set" and node.op in sets.OPERATORS:
            two = only(right)
            given = sets.values_of(state.get(two)) if isinstance(two, Ref) else None
            made = sets.combined(node.op, found, [given], state)
            state.store(atom, replace(made, open=made.open or self.grows_on(atom)))
            return left
        own, other = mappings.dict_of(atom, state), mappings.dict_of(only(right), state)
        held = None if own is None else state.get(own)
        if node.op == "|" and own is not None and isinstance(held, Dict):
            laid = None if other is None else state.get(other)
            if isinstance(laid, Dict):
                self.store_dict(own, operators.merged(held, laid), state)
            else:
                self.store_dict(own, operators.overlaid(held, right, ("aug", node.ordinal)), state)
            return left
        return operators.binary(node.op, left, right, ("aug", node.ordinal))

    def assign(self, target: ir.Expr, value: Value, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Bind a value to a target."""
        match target:
            case ir.Name(id=name):
                self.bind(name, value, state, frame)
                return [state]
            case ir.Star(value=inner):
                ref = state.new(("star", frame.module, ordinal), Sequence("list", None, value))
                return self.assign(inner, (ref,), state, frame, ordinal)
            case ir.Display(items=items):
                given = self._run_through(value, state, frame, Site(frame.module, ordinal))
                return [r for s, v in given for r in self._unpack(items, v, s, frame, ordinal)]
            case ir.Attr(value=base, attr=attr):
                return [
                    after
                    for after, owner in self.eval(base, state, frame)
                    for after in self.set_attribute(owner, attr, value, after, frame, Site(frame.module, ordinal))
                ]
            case ir.Sub(value=base, index=index):
                result: list[State] = []
                site = Site(frame.module, ordinal)
                for after, held in self.eval(base, state, frame):
                    owner = self._as_one_thing(base, held, after, frame, site)
                    for last, key in self.eval(index, after, frame):
                        result.extend(self.set_item(owner, key, value, last, frame, site))
                return result
        return [state]

    def _as_one_thing(self, base: ir.Expr, held: Value, state: State, frame: Frame, site: Site) -> Value:
        """What something is put into: where it may be one of very many things, its variable stands for one of them.

        So what is put there is found there, and in nothing else that may be one of many.
        """
        place = self._place(base, state, frame) if JOINED in held else None
        if place is None:
            return held
        one = unknown("call", site, state.process.identity, "one of many")
        value = union([one if atom == JOINED else (atom,) for atom in held])
        self.keep_at(place, value, state)
        return value

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name where ``global`` and ``nonlocal`` say."""
        home = self._home(name, state, frame.scope)
        if home != frame.scope:
            first_values.keep(home, name, state)
        state.set_variable(home, name, value)

    def _home(self, name: str, state: State, scope: Ref) -> Ref:
        found = state.get(scope)
        if not isinstance(found, Scope) or name not in found.outside:
            return scope
        parent = found.parent
        if found.outside[name] == "global":
            while parent is not None and isinstance(up := state.get(parent), Scope) and up.kind != "module":
                parent = up.parent
            return parent or scope
        while parent is not None and isinstance(up := state.get(parent), Scope):
            if name in up.variables:
                return parent
            parent = up.parent
        return scope

    def _unpack(
        self, items: tuple[ir.Expr, ...], value: Value, state: State, frame: Frame, ordinal: int
    ) -> list[State]:
        rows = [self.exact_items((atom,), state) or self._exact_keys((atom,), state) for atom in value]
        if len(rows) == 1 and rows[0] is not None:
            items, rows[0] = self._gather_rest(items, rows[0], state, ("star", frame.module, ordinal))
        if frame.tries and len(rows) == 1 and rows[0] is not None and len(rows[0]) != len(items):
            self.fail(state, frame, Raised(None, ("ValueError",)))
            return []
        if frame.tries and isinstance(constant(value), int | float | None):
            self.fail(state, frame, Raised(None, ("TypeError",)))
            return []
        states = [state]
        for i, item in enumerate(items):
            if rows and all(row is not None and len(row) == len(items) for row in rows):
                part = union([row[i] for row in rows if row is not None])
            else:
                part = self._part(value, i, state, frame, ordinal)
            states = [s for c in states for s in self.assign(item, part, c, frame, ordinal)]
        return states

    def _run_through(self, value: Value, state: State, frame: Frame, site: Site) -> Results:
        """What is unpacked: a generator, or an instance that says how to iterate it, runs first."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Generator) and not (
            isinstance(found, Instance) and self.user_method(found, "__iter__", state) is not None
        ):
            return [(state, value)]
        results: Results = []
        for after, rounds in self.iterate(value, state, frame, site):
            results.append((after, (after.new(("unpacked", site), Sequence("list", None, union(rounds))),)))
        return results

    def _gather_rest(
        self, items: tuple[ir.Expr, ...], row: list[Value], state: State, site: Hashable
    ) -> tuple[tuple[ir.Expr, ...], list[Value]]:
        """``first, *rest = row``: what the starred target takes becomes one list."""
        starred = next((i for i, item in enumerate(items) if isinstance(item, ir.Star)), None)
        if starred is None or len(row) < len(items) - 1:
            return items, row
        end = len(row) - len(items) + starred + 1
        rest: Value = (state.new(site, Sequence("list", tuple(row[starred:end]))),)
        plain = tuple(item.value if isinstance(item, ir.Star) else item for item in items)
        return plain, [*row[:starred], rest, *row[end:]]

    def _part(self, value: Value, position: int, state: State, frame: Frame, ordinal: int) -> Value:
        found = union([self.element_of(atom, state, ("part", frame.module, ordinal, position)) for atom in value])
        return found or unknown("part", frame.module, ordinal, position)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        plainly, self.plainly = self.plainly, False
        for atom in owner:
            setter = self._setter_of(atom, attr, state)
            if setter is not None and len(owner) == 1:
                return [s for s, _ in self.call_value(setter, [owner, value], {}, state, frame, site)]
            kept = self._keeps_attributes(atom, state) if len(owner) == 1 and not plainly else None
            if kept is not None:
                args = [owner, const(attr), value]
                return [s for s, _ in self.call_value((kept,), args, {}, state, frame, site)]
            refused = self._attribute_refused(owner, attr, plainly, state, frame)
            if refused is not None:
                return [s for s, _ in self.fail(state, frame, refused)]
            if isinstance(atom, Ref):
                call = self._library_setter(atom, attr, value, state, frame, site)
                if call is not None:
                    return [s for s, _ in self.library_call(call)]
                self._set_on_object(atom, attr, value, state, weak=len(owner) > 1)
            elif isinstance(atom, Unknown):
                self.hands_over([value], state, frame, site)
                self.keeps_events([value], f"?.{attr}", state)
                call = self._setter_of_class(atom, attr, value, state, frame, site)
                if call is not None:
                    return [s for s, _ in self.library_call(call)]
                if len(owner) == 1:
                    _set_on_unknown(atom, attr, value, state)
            elif isinstance(atom, Lib):
                call = self._library_call(f"{atom.path}.{attr}.__set__", state, frame, site, [value])
                if call is not None:
                    return [s for s, _ in self.library_call(call)]
                self._replace_function(f"{atom.path}.{attr}", value, state)
        return [state]

    def _attribute_refused(self, owner: Value, attr: str, plainly: bool, state: State, frame: Frame) -> Raised | None:
        """How an object refuses an attribute, where something waits for that; ``plainly`` it is set past its class."""
        atom = only(owner) if frame.tries and not plainly else None
        found = state.get(atom) if isinstance(atom, Ref) else None
        name = self.refuses_attribute(found, attr, state) if isinstance(found, Instance) else None
        return None if name is None else Raised(None, tuple(dict.fromkeys((name, "AttributeError"))))

    def _replace_function(self, path: str, value: Value, state: State) -> None:
        """``torch.cuda.is_available = f`` or ``torch.distributed = mock``: from now on this process has that there."""
        path = self.library.canonical(path)
        is_setting = path in self.library.constants
        if not is_setting and self.library.function(path) is None and not self.library.holds_functions(path):
            return
        if not is_setting and any(isinstance(atom, Const | Unknown) for atom in value):
            return
        found = state.get(REPLACED)
        before = found.variables if isinstance(found, Scope) else {}
        state.store(REPLACED, Scope({**before, path: value}, None, "", "library"))

    def _keeps_attributes(self, atom: Atom, state: State) -> Atom | None:
        """What a class does with attributes that are set, if it says so; with a base of a library that may do more."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Instance):
            return None
        method = self.user_method(found, "__setattr__", state)
        if method is None or mappings.dict_of(atom, state) is not None:
            return method
        return method if all(isinstance(entry, Class) for entry in self.mro(found.cls, state)) else None

    def _library_setter(self, ref: Ref, attr: str, value: Value, state: State, frame: Frame, site: Site) -> Call | None:
        """What the model of a type says that setting any attribute of a library's object does."""
        found = state.get(ref)
        if not isinstance(found, LibraryObject):
            return None
        call = self._library_call(f"{found.type}.__setattr__", state, frame, site, [const(attr), value])
        if call is not None:
            call.receiver = ref
        return call

    def _setter_of_class(
        self, atom: Unknown, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> Call | None:
        """What setting an attribute does of something of which only the class is known."""
        kind = questions.class_of(atom.sym, self.library.bases)
        if kind == questions.NO_CLASS:
            return None
        call = self._library_call(f"{kind}.{attr}.__set__", state, frame, site, [value])
        if call is not None:
            call.receiver = atom
        return call

    def _setter_of(self, atom: Atom, attr: str, state: State) -> Value | None:
        found = state.get(atom) if isinstance(atom, Ref) else None
        given = self._class_attribute(found.cls, attr, state) if isinstance(found, Instance) else None
        prop = state.get(ref) if given and isinstance(ref := only(given), Ref) else None
        if isinstance(prop, Instance) and isinstance(ref, Ref):
            own = self.user_method(prop, "__set__", state)
            return None if own is None else (Bound(own, ref),)
        return (prop.setter,) if isinstance(prop, Closure) and prop.setter is not None else None

    def _set_on_object(self, ref: Ref, attr: str, value: Value, state: State, weak: bool) -> None:
        found = state.get(ref)
        match found:
            case Instance():
                old = found.attributes.get(attr)
                new = union([old, value]) if weak and old is not None else value
                state.store(ref, replace(found, attributes=absent.with_(found.attributes, attr, new)))
                shared = mappings.attributes_of(found, state)
                if shared is not None and isinstance(held := state.get(shared), Dict):
                    self.store_dict(shared, operators.with_key(held, const(attr), new), state)
            case LibraryObject():
                state.store(ref, replace(found, fields={**found.fields, attr: value}))
            case Class(scope=scope):
                state.set_variable(scope, attr, value)
            case Closure():
                give_attribute(ref, found, attr, value, state, weak)
            case Scope():
                first_values.keep(ref, attr, state)
                state.set_variable(ref, attr, value)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        states = [state]
        for atom in owner:
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence):
                given = state.get(one) if isinstance(one := only(value), Ref) else None
                whole = replaced(found, key, given)
                state.store(atom, whole or operators.with_item(found, key, value))
                continue
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Instance):
                own = self.user_method(found, "__setitem__", state)
                if own is not None and len(owner) == 1:
                    return [s for s, _ in self.call_value((own,), [owner, key, value], {}, state, frame, site)]
            # A library's mapping has a way of its own to change.
            is_library = isinstance(atom, Ref) and isinstance(state.get(atom), LibraryObject)
            held = None if is_library else mappings.dict_of(atom, state)
            if held is not None and isinstance(found := state.get(held), Dict):
                if frame.tries and self.refuses_hash(key, state):
                    return [s for s, _ in self.fail(state, frame, NO_HASH)]
                self.store_dict(held, operators.with_key(found, as_key(key, state), value), state)
                continue
            row = mappings.list_of(atom, state)
            if row is not None and isinstance(found := state.get(row), Sequence):
                state.store(row, operators.with_item(found, key, value))
                continue
            if isinstance(atom, Unknown) and (field := item_field(key)) is not None:
                _set_on_unknown(atom, field, value, state)
                continue
            path = self._method_path(atom, "__setitem__", state)
            call = None if path is None else self._library_call(path, state, frame, site, [key, value])
            if call is not None:
                call.receiver = atom
                states = [s for s, _ in self.library_call(call)]
        return states

    def _unbind(self, name: str, state: State, frame: Frame, site: Site) -> list[State]:
        """``del x``: what nothing else holds goes away, and its class may have something done then."""
        atom = only(self.lookup(name, state, frame.scope) or ())
        self.bind(name, unknown(DELETED, site.module, site.ordinal), state, frame)
        found = state.get(atom) if isinstance(atom, Ref) else None
        last = self.user_method(found, "__del__", state) if isinstance(found, Instance) else None
        if not isinstance(atom, Ref) or last is None or collecting.is_held(state, atom):
            return [state]
        return [after for after, _ in self.call_value((Bound(last, atom),), [], {}, state, frame, site)]

    def _delete(self, node: ir.Delete, state: State, frame: Frame) -> list[State]:
        states = [state]
        for target in node.targets:
            match target:
                case ir.Name(id=name):
                    site = Site(frame.module, node.ordinal)
                    states = [s for c in states for s in self._unbind(name, c, frame, site)]
                case ir.Sub(value=base, index=index):
                    site = Site(frame.module, node.ordinal)
                    states = [
                        s
                        for c in states
                        for after, owner in self.eval(base, c, frame)
                        for last, key in self.eval(index, after, frame)
                        for s in self.delete_item(owner, key, last, frame, site)
                    ]
                case ir.Attr(value=base, attr=attr):
                    held = [found for c in states for found in self.eval(base, c, frame)]
                    for after, owner in held:
                        self.delete_attribute(owner, attr, after)
                    states = [after for after, _ in held]
        return states

    def delete_attribute(self, owner: Value, attr: str, state: State) -> None:
        """``del x.attr``, of one object: where it may be one of several, each may have it still."""
        atom = only(owner)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Instance):
            state.store(atom, replace(found, attributes=absent.without(found.attributes, attr)))

    def delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``del owner[key]``."""
        own = self.special(owner, ("__delitem__",), [key], state, frame, site)
        if own is not None:
            return [after for after, _ in own]
        for atom in owner:
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Dict):
                self.store_dict(atom, operators.without_key(found, as_key(key, state)), state)
                continue
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence) and len(owner) == 1:
                state.store(atom, without(found, key))
                continue
            path = self._method_path(atom, "__delitem__", state)
            call = None if path is None else self._library_call(path, state, frame, site, [key])
            if call is not None:
                return [s for s, _ in self.library_call(call)]
        return [state]

    def store_dict(self, ref: Ref, made: Dict, state: State) -> None:
        """A dict after a change; that of the names of an object, a class, a module or another mapping changes these."""
        before = state.get(ref)
        state.store(ref, made)
        owner = state.get(made.view) if made.view is not None else None
        if made.view is not None and isinstance(owner, Scope | Class):
            home = owner.scope if isinstance(owner, Class) else made.view
            for name, value in named_anew(before, made).items():
                state.set_variable(home, name, value)
        if made.view is not None and isinstance(owner, LibraryObject) and owner.type == NAMESPACE:
            kept = {k: v for k, v in owner.fields.items() if k.startswith("<")}
            named = {k: v for k, v in made.items.items() if isinstance(k, str)}
            state.store(made.view, replace(owner, fields={**kept, **named}))
        if made.view is not None and isinstance(owner, Dict):
            self.store_dict(made.view, _changed_alike(owner, before, made), state)
        if made.view is None or not isinstance(owner, Instance):
            return
        kept = {k: v for k, v in owner.attributes.items() if k.startswith("<")}
        named = {k: v for k, v in made.items.items() if isinstance(k, str)}
        if not made.exact and ANY_NAME not in kept:
            named[ANY_NAME] = TRUE
        state.store(made.view, replace(owner, attributes={**kept, **named}))


def _changed_alike(owner: Dict, before: Object | None, made: Dict) -> Dict:
    """The mapping that a chain of them puts into, after a change of the chain."""
    known = before.items if isinstance(before, Dict) else {}
    anew = {key: value for key, value in made.items.items() if known.get(key) != value}
    kept = {key: value for key, value in owner.items.items() if key in made.items or key not in known}
    return replace(owner, items={**kept, **anew}, exact=owner.exact and made.exact, among=made.among)


def named_anew(before: Object | None, made: Dict) -> dict[str, Value]:
    """What a change of a dict gave to names."""
    known = before.items if isinstance(before, Dict) else {}
    return {k: v for k, v in made.items.items() if isinstance(k, str) and known.get(k) != v}


def _set_on_unknown(atom: Unknown, field: str, value: Value, state: State) -> None:
    """Remember what something is given that nobody knows, where that decides on a device or a way, or is on a GPU."""
    is_known = bool(unknowns.put_there(atom, field, state))
    decides = is_known or any(_decides(given) or _holds_choice(given, state) for given in value)
    if decides or (gpu_memory.gpu_atoms(value, state) and not _is_of_round(atom.sym)):
        unknowns.put(atom, field, value, state)


def _is_of_round(sym: Hashable) -> bool:
    """Whether something comes from what a loop goes through: a later round, or a second run of it, has others."""
    return isinstance(sym, tuple) and any(part == "each" or _is_of_round(part) for part in sym)


def _holds_choice(given: Atom, state: State) -> bool:
    """Whether a dict, or an object of the program, holds something that decides on a device."""
    found = state.get(given) if isinstance(given, Ref) else None
    held: Iterable[Value] = ()
    if isinstance(found, Dict):
        held = found.items.values()
    elif isinstance(found, Instance):
        held = found.attributes.values()
    return any(_decides(atom) for value in held for atom in value)


def _decides(given: Atom) -> bool:
    """Whether something decides on a device, or was told of one; or is a switch."""
    match given:
        case Dev() | Rank() | Unknown(sym=("tells", *_)):
            return True
        case Const(value=str() as text):
            return operators.parse_device(text) is not None
    return is_device(given) or unknowns.is_switch(given)
