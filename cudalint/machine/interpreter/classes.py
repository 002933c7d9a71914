"""Classes: their definition, their instances, and what they define for these."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.machine import enums, exceptions, mappings, operators, sets, signatures
from cudalint.machine.classes import RUNTIME, Order, behind, defines, is_abstract, is_class, is_protocol
from cudalint.machine.frame import Frame, Given, Raised, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Object, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.interpreter.spelling import spelled
from cudalint.machine.keys import MOST_NESTED, is_display
from cudalint.machine.questions import VISIBLE
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.validators import Validator, note_validators, validators_of
from cudalint.machine.values import (
    NONE,
    TRUTHS,
    Atom,
    Bound,
    Lib,
    Partial,
    Ref,
    Task,
    Value,
    const,
    constant,
    only,
    unknown,
)
from cudalint.structs import replace

# A value that no member of an Enum has.
_NO_MEMBER = Raised(None, ("ValueError",))
# A record whose fields are variables of the environment.
_SETTINGS = "pydantic_settings.BaseSettings"
# A record that makes of texts what its fields are.
_CONVERTING = ("pydantic.BaseModel", _SETTINGS)
# What runs behind an ``__init__`` that was made of the fields, and what it is given besides.
_BEHIND = (("__post_init__", 0), ("model_post_init", 1), ("__attrs_post_init__", 0))
_METACLASS = "metaclass"
# Bases that leave all methods to the classes below them.
_PLAIN_BASES = frozenset({"abc.ABC", "typing.Generic", "typing.Protocol", "builtins.object"})
# Classes that say something to type checkers alone: what they make is a dict.
_TYPED_DICTS = frozenset({"typing.TypedDict", "typing_extensions.TypedDict"})
# Classes whose annotated names are options.
_OPTIONS = "cudalint.options"
# That it was ``dataclasses.dataclass`` that made a class, and that its fields are given by their names.
_STANDARD, _RECORD, _BY_NAME = Lib("dataclasses.dataclass"), "dataclass", "kw_only"
_OF_FIELDS, _APART = "field", "apart "
_DATACLASS = frozenset({"dataclass", "define", "frozen", "mutable"})


class Classes(Core):
    """Defines classes, and makes instances of them."""

    def _class_def(self, node: ir.ClassDef, state: State, frame: Frame) -> list[State]:
        site = Site(frame.module, node.ordinal)
        bases: list[Value] = []
        states = [state]
        for arg in node.bases:
            if arg.keyword is not None or arg.star:
                continue
            found = self.eval(arg.value, states[0], frame)
            if found:
                states = [found[0][0]]
                bases.append(found[0][1])
        current = states[0]
        scope = current.new(("class", frame.module, node.ordinal), Scope({}, frame.scope, frame.module, "class"))
        inner = Frame(scope, frame.module, raises=frame.raises, tries=frame.tries)
        after = self._class_body(node, current, inner)
        result: list[State] = []
        is_dataclass = any(self._makes_fields(d, current, frame) for d in node.decorators)
        is_dataclass = is_dataclass or self._derives_from_record(bases, current)
        for last in after:
            meta = self._metaclass(node, last, frame)
            made = Class(node.name, node.qualname, frame.module, tuple(bases), scope, site, (), is_dataclass, meta=meta)
            told = self._told_dataclass(node, last, frame)
            told |= {word for word in map(spelled, node.decorators) if word == RUNTIME}
            made = replace(made, asks_first=_asks_first(made, last), told=told, generic=_generic(node))
            if is_dataclass or is_protocol(made):
                made = replace(made, fields=tuple(self._fields(node.body, scope, last, is_dataclass)))
            if is_dataclass or is_protocol(made) or self._derives_from_record(bases, current, _OPTIONS):
                made = replace(made, types=tuple(_types(node.body)))
            ref = last.new(("classobj", frame.module, node.ordinal), made)
            self.own_methods(scope, ref, last)
            note_validators(node.body, scope, last)
            named = self._name_descriptors(ref, scope, last, frame, site)
            announced = [s for c in named for s in self._announce(node, ref, c, frame, site)]
            formed = [s for c in announced for s in self._form(ref, c, frame, site)]
            libraries = [entry for entry in self.mro(ref, last) if isinstance(entry, str)]
            enums.give_members(ref, _assigned(node.body), libraries, self.library, last)
            values: Results = [(s, (ref,)) for s in formed]
            for decorator in reversed(node.decorators):
                if spelled(decorator) not in _DATACLASS:
                    values = [r for s, v in values for r in self._decorate(decorator, v, s, frame)]
            for final, value in values:
                self.bind(node.name, value, final, frame)
                result.append(final)
        return result

    def _makes_fields(self, decorator: ir.Expr, state: State, frame: Frame) -> bool:
        """Whether a decorator is dataclasses.dataclass or one like it; an unknown one is recognised by its name."""
        callee = decorator.func if isinstance(decorator, ir.Call) else decorator
        if isinstance(callee, ir.Name | ir.Attr):
            for _, value in self.eval(callee, state, frame):
                atom = only(value)
                if isinstance(atom, Lib):
                    return atom.path.rpartition(".")[2] in _DATACLASS
        return spelled(callee) in _DATACLASS

    def _told_dataclass(self, node: ir.ClassDef, state: State, frame: Frame) -> frozenset[str]:
        """What ``dataclasses.dataclass`` was told, where it, and nothing else, decorates a class."""
        if len(node.decorators) != 1:
            return frozenset()
        decorator = node.decorators[0]
        callee = decorator.func if isinstance(decorator, ir.Call) else decorator
        if not isinstance(callee, ir.Name | ir.Attr) or not self._makes_fields(decorator, state, frame):
            return frozenset()
        found = [only(value) for _, value in self.eval(callee, state, frame)]
        if found != [_STANDARD]:
            return frozenset()
        given = decorator.args if isinstance(decorator, ir.Call) else ()
        told = {arg.keyword for arg in given if isinstance(arg.value, ir.Const) and arg.value.value is True}
        told |= {f"not {arg.keyword}" for arg in given if arg.keyword not in told}
        words = {_RECORD, *(word for word in told if word is not None)}
        return frozenset(words | {word for statement in node.body for word in _left_out(statement)})

    def are_equal_records(self, left: Value, right: Value, state: State) -> bool | None:
        """Whether two objects of a dataclass are equal, by their fields; None where that is not known."""
        rows = self._rows_compared(left, right, "not eq", state)
        return None if rows is None else operators.hold_the_same(*(Dict(dict(enumerate(row))) for row in rows))

    def are_in_order(self, op: str, left: Value, right: Value, state: State) -> bool | None:
        """``left op right`` of two objects of a dataclass that has an order; None where that is not known."""
        rows = self._rows_compared(left, right, "", state)
        found = state.get(atom) if rows is not None and isinstance(atom := only(left), Ref) else None
        cls = state.get(found.cls) if isinstance(found, Instance) else None
        if rows is None or not isinstance(cls, Class) or "order" not in cls.told:
            return None
        return sets.in_order(op, rows[0], rows[1], state)

    def _rows_compared(self, left: Value, right: Value, unless: str, state: State) -> list[list[Value]] | None:
        """The fields by which two objects of one dataclass are compared; None of all else, and where one says so."""
        pair = [state.get(atom) if isinstance(atom := only(value), Ref) else None for value in (left, right)]
        rows: list[list[Value]] = []
        for found in pair:
            if not isinstance(found, Instance) or not isinstance(pair[0], Instance) or found.cls != pair[0].cls:
                return None
            entries = self.mro(found.cls, state)
            told = [entry.told if isinstance(entry, Class) else frozenset() for entry in entries]
            if not all(_RECORD in words and words.isdisjoint({unless, _OF_FIELDS}) for words in told):
                return None
            apart = {word for words in told for word in words}
            names = [name for name, _ in self.record_fields(found.cls, state) if f"{_APART}{name}" not in apart]
            rows.append([found.attributes.get(name, ()) for name in names])
        return rows

    def refuses_call(self, function: Value, given: Given) -> bool:
        """Whether a function or class of the program is known not to take what it is called with."""
        state, atom = given.state, only(function)
        number, named = len(given.args), given.kwargs.keys()
        if isinstance(atom, Bound):
            atom, number = atom.function, number + 1
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Closure) and found.bare and found.kind == "function":
            return signatures.refuses(found.function.params, number, named)
        if not isinstance(found, Class) or not isinstance(atom, Ref) or found.members or self._kind_of(atom, state):
            return False
        entries = self.mro(atom, state)
        if self._class_attribute(atom, "__new__", state):
            return False
        if self._is_left_open(entries, state):
            return True
        if not all(isinstance(entry, Class) for entry in entries):
            return False
        made = only(self._class_attribute(atom, "__init__", state) or ())
        init = state.get(made) if isinstance(made, Ref) else None
        if isinstance(init, Closure) and init.bare:
            return signatures.refuses(init.function.params, number + 1, named)
        if made is not None or not all(isinstance(entry, Class) and _RECORD in entry.told for entry in entries):
            return False
        fields = [(name, default is not None) for name, default in self.record_fields(atom, state)]
        return signatures.refused_by_record(fields, _BY_NAME in found.told, number, named)

    def lacks(self, function: Value, given: int, named: Collection[str], state: State) -> list[str]:
        """The parameters of a function or class of the program that a call has yet to name."""
        atom = only(function)
        if isinstance(atom, Bound):
            atom, given = atom.function, given + 1
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Class) and isinstance(atom, Ref):
            made = only(self._class_attribute(atom, "__init__", state) or ())
            if made is None:
                fields = self.record_fields(atom, state)[given:]
                return [name for name, default in fields if default is None and name not in named]
            found, given = state.get(made) if isinstance(made, Ref) else None, given + 1
        return signatures.lacking(found.function.params, given, named) if isinstance(found, Closure) else []

    def _is_left_open(self, order: Order, state: State) -> bool:
        """Whether a class has a method that classes below it have to define, so that it makes no objects."""
        if not is_abstract(order, self.mro, state) or any(isinstance(e, str) and e not in _PLAIN_BASES for e in order):
            return False
        names: dict[str, Value] = {}
        for entry in order:
            scope = state.get(entry.scope) if isinstance(entry, Class) else None
            names = {**(scope.variables if isinstance(scope, Scope) else {}), **names}
        held = (state.get(atom) for value in names.values() if isinstance(atom := only(value), Ref))
        return any(isinstance(found, Closure) and found.left_open for found in held)

    def refuses_hash(self, value: Value, state: State, depth: int = 0) -> bool:
        """Whether something is known to be kept in no set, and under nothing in a dict: it has no hash."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        match found:
            case Dict():
                return True
            case Sequence(kind="tuple", items=tuple(items)) if depth < MOST_NESTED:
                return any(self.refuses_hash(item, state, depth + 1) for item in items)
            case Sequence(kind="list" | "set") if isinstance(atom, Ref):
                return is_display(atom)
            case Instance():
                return self._has_no_hash(self.mro(found.cls, state), state)
        return False

    def _has_no_hash(self, order: Order, state: State) -> bool:
        """Whether the first class that says when its objects are equal says nothing of their hash."""
        for entry in order:
            if not isinstance(entry, Class):
                return entry in mappings.DICTS | mappings.LISTS
            if defines(entry, ("__hash__",), state):
                return False
            if _RECORD in entry.told:
                return entry.told.isdisjoint({"frozen", "unsafe_hash", "not eq"})
            if entry.is_dataclass or entry.meta:
                return False
            if defines(entry, ("__eq__",), state):
                return True
        return False

    def refuses_attribute(self, instance: Instance, name: str, state: State) -> str | None:
        """The exception by which the class of an object refuses to set an attribute; None where it does not."""
        entries = self.mro(instance.cls, state)
        if any(isinstance(entry, Class) and "frozen" in entry.told for entry in entries):
            return "FrozenInstanceError"
        is_row = any(isinstance(entry, str) and self.library.is_a(entry, "typing.NamedTuple") for entry in entries)
        if is_row and any(name == field for field, _ in self.record_fields(instance.cls, state)):
            return "AttributeError"
        kept = self._class_attribute(instance.cls, name, state)
        held = state.get(atom) if kept is not None and isinstance(atom := only(kept), Ref) else None
        if isinstance(held, Closure) and held.kind == "property" and held.setter is None:
            return "AttributeError"
        names: set[str] = set()
        for entry in entries:
            slots = self._slots(entry, state)
            if slots is None:
                return None
            names |= slots
        return "AttributeError" if kept is None and name not in names else None

    def _slots(self, entry: Class | str, state: State) -> set[str] | None:
        """The attributes for which the objects of a class have room; None where they have room for any."""
        if not isinstance(entry, Class):
            return None
        if {_RECORD, "slots"} <= entry.told:
            return {name for name, _ in entry.fields}
        scope = state.get(entry.scope)
        given = scope.variables.get("__slots__") if isinstance(scope, Scope) else None
        if given is None:
            return None
        one = constant(given)
        items = [one] if isinstance(one, str) else [constant(item) for item in self.exact_items(given, state) or [()]]
        is_known = all(isinstance(item, str) for item in items) and "__dict__" not in items
        return {str(item) for item in items} if is_known else None

    def _derives_from_record(self, bases: Iterable[Value], state: State, kind: str = "cudalint.record") -> bool:
        """Whether a class gets its ``__init__`` from its annotations because of a base (NamedTuple, BaseModel); of
        another kind, whether a base is of that."""
        for atom in (a for base in bases for a in base):
            entries = self.mro(atom, state) if isinstance(atom, Ref) else (atom.path,) if isinstance(atom, Lib) else ()
            if any(isinstance(e, str) and self.library.is_a(e, kind) for e in entries):
                return True
        return False

    def _name_descriptors(self, cls: Ref, scope: Ref, state: State, frame: Frame, site: Site) -> list[State]:
        """Tell what a class body holds under which name it does (``__set_name__``)."""
        found = state.get(scope)
        states = [state]
        for name, value in dict(found.variables).items() if isinstance(found, Scope) else ():
            following: list[State] = []
            for current in states:
                told = self.special(value, ("__set_name__",), [(cls,), const(name)], current, frame, site)
                following.extend([current] if told is None else [s for s, _ in told])
            states = following
        return states

    def _announce(self, node: ir.ClassDef, cls: Ref, state: State, frame: Frame, site: Site) -> list[State]:
        """Call the ``__init_subclass__`` that a new class inherits."""
        hook = self._class_attribute(cls, "__init_subclass__", state, after=cls)
        if hook is None:
            return [state]
        named = [a for a in node.bases if a.keyword is not None and a.keyword != _METACLASS]
        result: list[State] = []
        for current, values in self.eval_all([a.value for a in named], state, frame):
            kwargs = {a.keyword: v for a, v in zip(named, values, strict=True) if a.keyword is not None}
            result.extend(s for s, _ in self.call_value(hook, [(cls,)], kwargs, current, frame, site))
        return result

    def _metaclass(self, node: ir.ClassDef, state: State, frame: Frame) -> Value:
        given = next((a.value for a in node.bases if a.keyword == _METACLASS), None)
        found = [] if given is None else self.eval(given, state, frame)
        return found[0][1] if found else ()

    def _kind_of(self, cls: Ref, state: State) -> Ref | None:
        """The metaclass of a class, where a user wrote one."""
        metas = [entry.meta for entry in self.mro(cls, state) if isinstance(entry, Class) and entry.meta]
        atom = only(metas[0]) if metas else None
        return atom if isinstance(atom, Ref) and isinstance(state.get(atom), Class) else None

    def metaclass_method(self, cls: Ref, name: str, state: State) -> Atom | None:
        """A method of the metaclass of a class, where a user wrote it."""
        meta = self._kind_of(cls, state)
        found = None if meta is None else self._class_attribute(meta, name, state)
        return None if found is None else only(found)

    def _form(self, cls: Ref, state: State, frame: Frame, site: Site) -> list[State]:
        """A new class goes through the ``__new__`` and ``__init__`` of its metaclass."""
        meta, found = self._kind_of(cls, state), state.get(cls)
        if meta is None or not isinstance(found, Class):
            return [state]
        scope = state.get(found.scope)
        names: dict[Hashable, Value] = dict(scope.variables.items()) if isinstance(scope, Scope) else {}
        bases: Value = (state.new(("bases", site), Sequence("tuple", found.bases)),)
        body: Value = (state.new(("namespace", site), Dict(names)),)
        states = [state]
        self._making.append(cls)
        for hook, first in (("__new__", meta), ("__init__", cls)):
            function = self._class_attribute(meta, hook, state)
            if function is not None:
                args: list[Value] = [(first,), const(found.name), bases, body]
                states = [s for c in states for s, _ in self.call_value(function, args, {}, c, frame, site)]
        self._making.pop()
        return states

    def _fields(
        self, body: tuple[ir.Stmt, ...], scope: Ref, state: State, is_record: bool
    ) -> Iterable[tuple[str, Value | None]]:
        """What a class body says of attributes; of a record's only what is annotated, or made by a call, is a field."""
        found = state.get(scope)
        variables = found.variables if isinstance(found, Scope) else {}
        for statement in body:
            match statement:
                case ir.Declare(target=ir.Name(id=name)):
                    yield name, None
                case ir.Assign(targets=(ir.Name(id=name),), value=value, annotated=annotated):
                    if annotated or not is_record or isinstance(value, ir.Call):
                        yield name, variables.get(name)

    def own_methods(self, scope: Ref, owner: Ref, state: State) -> None:
        """Tell the functions of a class that they are its methods."""
        found = state.get(scope)
        if not isinstance(found, Scope):
            return
        for value in found.variables.values():
            for atom in value:
                if isinstance(atom, Ref) and isinstance(method := state.get(atom), Closure):
                    state.store(atom, replace(method, owner=owner))
                    setter = None if method.setter is None else state.get(method.setter)
                    if method.setter is not None and isinstance(setter, Closure):
                        state.store(method.setter, replace(setter, owner=owner))

    def instantiate(self, ref: Ref, cls: Class, given: Given) -> Results:
        """Call a user class, by way of its metaclass."""
        state, args, site = given.state, given.args, given.site
        if cls.members:
            return self._member_of(ref, cls, given)
        if not _TYPED_DICTS.isdisjoint(entry for entry in self.mro(ref, state) if isinstance(entry, str)):
            held: dict[Hashable, Value] = dict(given.kwargs.items())
            return [(state, (state.new(("dict", site), Dict(held, exact=not given.is_open and not args)),))]
        meta = self._kind_of(ref, state)
        caller = None if meta is None else self._class_attribute(meta, "__call__", state)
        if caller is not None:
            return self.call_value(caller, [(ref,), *args], given.kwargs, state, given.frame, site, given.is_open)
        return self.construct(ref, cls, given)

    def _member_of(self, ref: Ref, cls: Class, given: Given) -> Results:
        """``Enum(value)``: a member; else what the class says (``_missing_``), or an exception."""
        wanted = given.args[0] if given.args else ()
        results: Results = []
        for after, value in enums.by_value(cls, wanted, given.state):
            if value or not wanted:
                results.append((after, value or unknown("member", given.site)))
                continue
            hook = self._class_attribute(ref, "_missing_", after)
            if hook is not None:
                bound = self._bind_class_method(hook, ref, after)
                said = self.call_value(bound, [wanted], {}, after, given.frame, given.site)
                results.extend(r for s, made in said for r in self._missing_member(made, s, given))
            elif enums.lacks_value(cls, self.mro(ref, after), wanted, self.library, after):
                self.fail(after, given.frame, _NO_MEMBER)
            else:
                results.append((after, unknown("member", given.site)))
        return results

    def _missing_member(self, made: Value, state: State, given: Given) -> Results:
        if made == NONE:
            return self.fail(state, given.frame, _NO_MEMBER)
        return [(state, made)]

    def construct(self, ref: Ref, cls: Class, given: Given) -> Results:
        """``type.__call__``: a new instance, and its ``__init__``."""
        state, frame, site = given.state, given.frame, given.site
        if cls.given_gpus:
            state.process = state.process.with_environ(VISIBLE, unknown("environ", VISIBLE))
        maker = self._class_attribute(ref, "__new__", state)
        if maker is not None and self._depth < self._most_depth:
            return self._make_and_init(ref, maker, given)
        attributes: dict[str, Value] = {}
        fields = self.record_fields(ref, state)
        if fields:
            attributes = _record_attributes(fields, given)
            attributes.update(self._from_environment(ref, fields, given, state))
            libraries = [entry for entry in self.mro(ref, state) if isinstance(entry, str)]
            if any(self.library.is_a(entry, kind) for entry in libraries for kind in _CONVERTING):
                attributes.update(_converted(fields, attributes))
        origin = self.chain(state, site, f"makes a {cls.name}")
        order = self.mro(ref, state)
        if exceptions.is_below(order) and not given.is_open and exceptions.ARGS not in attributes:
            attributes[exceptions.ARGS] = exceptions.row(given.args, site, state)
            attributes[exceptions.CAUSE] = NONE
        instance = state.new(("new", site, cls.qualname), Instance(ref, attributes, site, origin))
        made = state.get(instance)
        assert isinstance(made, Instance)
        content = mappings.empty(order)
        if content is not None:
            held = state.new(("content", site, cls.qualname), content)
            mappings.hold(instance, (held,), state, mappings.is_wrapper(order))
        state = self._run_factories(instance, state, frame, site)
        if not fields or self.user_method(made, "__init__", state) is not None:
            return self._initialised(instance, ref, given, state)
        checked = self._validated(instance, ref, given, state)
        return [r for after in checked for r in self._initialised(instance, ref, given, after)]

    def _initialised(self, instance: Ref, ref: Ref, given: Given, state: State) -> Results:
        """What the ``__init__`` of a class makes of a new instance, or what runs behind one that a library wrote."""
        frame, site, made = given.frame, given.site, state.get(instance)
        assert isinstance(made, Instance)
        fields = self.record_fields(ref, state)
        init = self.user_method(made, "__init__", state)
        if init is not None:
            results = self._call_atom(init, replace(given, state=state).led_by((instance,)))
            return [(s, (instance,)) for s, _ in results]
        for name, more in _BEHIND if fields else ():
            after = self.user_method(made, name, state)
            if after is not None:
                rest = [unknown("context", site)] * more
                named = _initial(state.get(after) if isinstance(after, Ref) else None, made)
                results = self.call_value((after,), [(instance,), *rest], named, state, frame, site)
                return [(s, (instance,)) for s, _ in results]
        args, kwargs = given.args, given.kwargs
        for base in (entry for entry in self.mro(ref, state) if isinstance(entry, str)):
            call = self._library_call(f"{base}.__init__", state, frame, site, args, kwargs, given.is_open)
            if call is not None:
                call.receiver = instance
                return [(s, (instance,)) for s, _ in self.library_call(call)]
        return [(state, (instance,))]

    def _from_environment(
        self, cls: Ref, fields: list[tuple[str, Value | None]], given: Given, state: State
    ) -> dict[str, Value]:
        """The fields of settings that a variable of the environment sets, where the program set that."""
        if not any(isinstance(e, str) and self.library.is_a(e, _SETTINGS) for e in self.mro(cls, state)):
            return {}
        prefix = self._config_says(cls, "env_prefix", state)
        names = [name for name, _ in fields[len(given.args) :] if name not in given.kwargs]
        start = prefix if isinstance(prefix, str) else ""
        told = {name: state.process.environ(f"{start}{name}".upper()) for name in names}
        return {name: value for name, value in told.items() if value is not None}

    def _config_says(self, cls: Ref, name: str, state: State) -> Hashable:
        """What the configuration of a record's class says certainly of something; ``...`` where that is not seen."""
        config = self._class_attribute(cls, "model_config", state) or ()
        held = state.get(ref) if isinstance(ref := only(config), Ref) else None
        return constant(held.items.get(name, ())) if isinstance(held, Dict) else ...

    def _validates_defaults(self, cls: Ref, state: State) -> bool:
        """Whether the validators of a record check its defaults, too: settings say so unless they are told."""
        told = self._config_says(cls, "validate_default", state)
        if told is not ...:
            return told is True
        return any(isinstance(entry, str) and self.library.is_a(entry, _SETTINGS) for entry in self.mro(cls, state))

    def _validated(self, instance: Ref, cls: Ref, given: Given, state: State) -> list[State]:
        """The paths on which the validators of a record let it be made, and what they make of its fields."""
        states = [state]
        for entry in reversed(self.mro(cls, state)):
            for validator in validators_of(entry, state) if isinstance(entry, Class) else ():
                states = [s for c in states for s in self._validate_by(validator, instance, cls, given, c)]
        return states

    def _validate_by(self, validator: Validator, instance: Ref, cls: Ref, given: Given, state: State) -> list[State]:
        found = state.get(instance)
        if not isinstance(found, Instance):
            return [state]
        frame, site, function = given.frame, given.site, validator.function
        if validator.whole and validator.mode == "after":
            return [s for s, _ in self.call_value((Bound(function, instance),), [], {}, state, frame, site)]
        first: list[Value] = [(cls,)]
        if validator.whole:
            items: dict[Hashable, Value] = dict(given.kwargs.items())
            data = state.new(("data", site), Dict(items, exact=not given.is_open))
            states: list[State] = []
            for after, value in self.call_value((function,), [*first, (data,)], {}, state, frame, site):
                made = after.get(ref) if isinstance(ref := only(value), Ref) else None
                for name, item in made.items.items() if isinstance(made, Dict) else ():
                    self._set_on_object(instance, str(name), item, after, weak=False)
                states.append(after)
            return states
        states = [state]
        for name in validator.names.intersection(found.attributes):
            if name not in given.kwargs and validator.mode != "always" and not self._validates_defaults(cls, state):
                # A default is taken as it is.
                continue
            states = [s for c in states for s in self._validate_field(name, function, first, instance, given, c)]
        return states

    def _validate_field(
        self, name: str, function: Ref, first: list[Value], instance: Ref, given: Given, state: State
    ) -> list[State]:
        found = state.get(instance)
        value = found.attributes.get(name, ()) if isinstance(found, Instance) else ()
        results = self.call_value((function,), [*first, value], {}, state, given.frame, given.site)
        for after, made in results:
            self._set_on_object(instance, name, made, after, weak=False)
        return [after for after, _ in results]

    def _make_and_init(self, ref: Ref, maker: Value, given: Given) -> Results:
        """A class with a ``__new__`` of its own: what that gives is the instance, a new one or one that was there."""
        results: Results = []
        args = [(ref,), *given.args]
        made_by = self.call_value(maker, args, given.kwargs, given.state, given.frame, given.site, given.is_open)
        for after, made in made_by:
            atom = only(made)
            found = after.get(atom) if isinstance(atom, Ref) else None
            init = self.user_method(found, "__init__", after) if isinstance(found, Instance) else None
            if atom is None or init is None or not isinstance(found, Instance) or not self._derives(found, ref, after):
                results.append((after, made))
                continue
            results.extend((s, made) for s, _ in self._call_atom(init, given.on(after).led_by(made)))
        return results

    def _derives(self, instance: Instance, cls: Ref, state: State) -> bool:
        """Whether an instance is one of a class, or of one below it."""
        return any(is_class(entry, cls, state) for entry in self.mro(instance.cls, state))

    def blank(self, cls: Ref, state: State, site: Site) -> Value:
        """``object.__new__(cls)``; of a metaclass, the class that is being made."""
        if self._making and cls == self._kind_of(self._making[-1], state):
            return (self._making[-1],)
        found = state.get(cls)
        if not isinstance(found, Class):
            return unknown("new", site)
        origin = self.chain(state, site, f"makes a {found.name}")
        return (state.new(("new", site, found.qualname), Instance(cls, {}, site, origin)),)

    def _run_factories(self, instance: Ref, state: State, frame: Frame, site: Site) -> State:
        """``field(default_factory=f)``: f runs for each instance."""
        found = state.get(instance)
        for name, value in found.attributes.items() if isinstance(found, Instance) else ():
            atom = only(value)
            if not isinstance(atom, Task) or atom.args:
                continue
            for after, made in self.call_value(atom.function, [], {}, state, frame, site)[:1]:
                state = after
                self._set_on_object(instance, name, made, state, weak=False)
        return state

    def record_fields(self, cls: Ref, state: State) -> list[tuple[str, Value | None]]:
        """The fields that the ``__init__`` of a dataclass takes, those of its bases first; empty where it has none."""
        fields: dict[str, Value | None] = {}
        by_name: dict[str, Value | None] = {}
        for entry in reversed(self.mro(cls, state)):
            if isinstance(entry, Class) and entry.is_dataclass:
                into, other = (by_name, fields) if _BY_NAME in entry.told else (fields, by_name)
                into.update(entry.fields)
                for name, _ in entry.fields:
                    other.pop(name, None)
        # Those that are given by name come last.
        return [*fields.items(), *by_name.items()]

    def field_types(self, cls: Ref, state: State) -> dict[str, Value]:
        """What the fields of a dataclass are said to be, where that is a name, or a text."""
        found: dict[str, Value] = {}
        for entry in reversed(self.mro(cls, state)):
            if isinstance(entry, Class):
                for name, node in entry.types:
                    found[name] = self.named_type(entry, node, state)
        return found

    def named_type(self, cls: Class, node: ir.Expr, state: State) -> Value:
        """What a name means in the body of a class."""
        return self._meant(node, cls.scope, cls.module, state) or ()

    def _meant(self, node: ir.Expr, scope: Ref, module: str, state: State) -> Value | None:
        """What an annotation means in a scope; None where it may be one of several things."""
        values = [value for _, value in self.eval(node, state.clone(), Frame(scope, module))]
        return values[0] if len(values) == 1 else None

    def written_bases(self, cls: Ref, state: State, site: Site) -> Value:
        """``cls.__orig_bases__``: bases with the types that they are given, of the nearest class that gives some."""
        entries = (entry for entry in self.mro(cls, state) if isinstance(entry, Class) and entry.generic)
        home = next(entries, None)
        if home is None:
            return ()
        bases = tuple(self._written_base(home, node, state, site) for node in home.generic)
        return (state.new(("bases", site), Sequence("tuple", bases)),)

    def _written_base(self, home: Class, node: ir.Expr, state: State, site: Site) -> Value:
        if not isinstance(node, ir.Sub):
            return self.named_type(home, node, state)
        nodes = node.index.items if isinstance(node.index, ir.Display) else (node.index,)
        given = tuple(self.named_type(home, one, state) or unknown("type", site, i) for i, one in enumerate(nodes))
        args: Value = (state.new(("types", site, node.ordinal), Sequence("tuple", given)),)
        fields = {"__origin__": self.named_type(home, node.value, state), "__args__": args}
        return (state.new(("base", site, node.ordinal), LibraryObject("types.GenericAlias", fields, site)),)

    def annotations_of(self, function: Closure, state: State) -> dict[Hashable, Value]:
        """What the parameters of a function are said to be, as far as that is a name."""
        found: dict[Hashable, Value] = {}
        for param in function.function.params if function.alias is None else ():
            named = ir.Name(function.function.ordinal, param.type)
            if param.type:
                meant = self._meant(named, function.scope, function.module, state)
                found[param.name] = unknown("annotation", param.name) if meant is None else meant
        return found

    def mro(self, cls: Ref, state: State) -> Order:
        """A class and its bases, in the order in which Python looks at them; library bases by their dotted name."""
        return self.orders.of(cls, state)

    def library_base(self, cls: Ref, state: State) -> str | None:
        """The first library class that a user class derives from."""
        for entry in self.mro(cls, state):
            if isinstance(entry, str):
                return entry
        return None

    def user_method(self, instance: Instance, name: str, state: State) -> Atom | None:
        """A function that a user class in the order of resolution defines."""
        found = self._class_attribute(instance.cls, name, state)
        atom = None if found is None else only(found)
        return atom if isinstance(atom, Ref | Lib | Partial | Bound) else None

    def _class_attribute(self, cls: Ref, name: str, state: State, after: Ref | None = None) -> Value | None:
        order = self.mro(cls, state)
        for entry in order if after is None else behind(order, after, state):
            scope = state.get(entry.scope) if isinstance(entry, Class) else None
            if isinstance(scope, Scope) and name in scope.variables:
                return scope.variables[name]
        return None

    def _row_of(self, instance: Instance, state: State) -> tuple[Value, ...] | None:
        """The fields of a record that is a tuple as well."""
        bases = [entry for entry in self.mro(instance.cls, state) if isinstance(entry, str)]
        if not any(self.library.is_a(base, "builtins.tuple") for base in bases):
            return None
        names = [name for name, _ in self.record_fields(instance.cls, state)]
        return tuple(instance.attributes.get(name, unknown("field", name)) for name in names)


def _left_out(statement: ir.Stmt) -> Iterable[str]:
    """What the field that a statement makes says of comparisons: that it is left out, or something that is not seen."""
    match statement:
        case ir.Assign(targets=(ir.Name(id=name),), value=ir.Call(args=args)):
            for arg in args:
                told = arg.value.value if isinstance(arg.value, ir.Const) else None
                if arg.keyword == "compare" and told is not True:
                    yield f"{_APART}{name}" if told is False else _OF_FIELDS
                elif arg.keyword is None:
                    yield _OF_FIELDS


def _generic(node: ir.ClassDef) -> tuple[ir.Expr, ...]:
    """The bases of a class as they are written, where one of them is given types."""
    bases = tuple(arg.value for arg in node.bases if arg.keyword is None and not arg.star)
    return bases if any(isinstance(base, ir.Sub) for base in bases) else ()


def _asks_first(made: Class, state: State) -> bool:
    """Whether a class, or one that it derives from, has a ``__getattribute__``."""
    scope = state.get(made.scope)
    bases = [state.get(atom) if isinstance(atom := only(base), Ref) else None for base in made.bases]
    own = isinstance(scope, Scope) and "__getattribute__" in scope.variables
    return own or any(isinstance(base, Class) and base.asks_first for base in bases)


def _initial(hook: Object | None, made: Instance) -> dict[str, Value]:
    """What ``__post_init__`` is given: fields that the class has for it alone (``InitVar``)."""
    params = hook.function.params[1:] if isinstance(hook, Closure) else ()
    return {param.name: made.attributes[param.name] for param in params if param.name in made.attributes}


def _record_attributes(fields: list[tuple[str, Value | None]], given: Given) -> dict[str, Value]:
    result: dict[str, Value] = {}
    for i, (name, default) in enumerate(fields):
        value = given.args[i] if i < len(given.args) else given.kwargs.get(name)
        if value is None and default and given.is_open:
            value = operators.unless_given(name, default, given.site)
        result[name] = value or default or unknown("field", given.site, name)
    return result


def _converted(fields: list[tuple[str, Value | None]], given: dict[str, Value]) -> dict[str, Value]:
    """What a record makes of texts that it is given for fields that are truths or numbers, as their defaults are."""
    made: dict[str, Value] = {}
    for name, default in fields:
        kind, text = type(constant(default or ())), constant(given.get(name, ()))
        if not isinstance(text, str):
            continue
        if kind is bool and text.lower() in TRUTHS:
            made[name] = const(TRUTHS[text.lower()])
        elif kind is int and text.lstrip("-").isdecimal():
            made[name] = const(int(text))
    return made


def _types(body: tuple[ir.Stmt, ...]) -> Iterable[tuple[str, ir.Expr]]:
    """The variables of a class body whose annotation is a name, or a text, with that."""
    for statement in body:
        match statement:
            case ir.Declare(target=ir.Name(id=name), type=type_) if type_ is not None:
                yield name, type_
            case ir.Assign(targets=(ir.Name(id=name),), type=type_) if type_ is not None:
                yield name, type_


def _assigned(body: tuple[ir.Stmt, ...]) -> list[str]:
    """The names that a class body assigns one by one."""
    targets = [t for s in body if isinstance(s, ir.Assign) for t in s.targets]
    return [t.id for t in targets if isinstance(t, ir.Name)]
