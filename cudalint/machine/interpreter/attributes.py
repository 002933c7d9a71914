"""Attributes: where Python looks for them, and what it makes of what it finds."""

from __future__ import annotations

import abc
import builtins
import typing
from collections.abc import Hashable
from functools import cache

from cudalint.machine import absent, enums, mappings, operators, paths, questions, unknowns
from cudalint.machine.classes import ABSTRACT, ABSTRACT_META, behind, defines, is_abstract, is_class, order_of
from cudalint.machine.frame import Frame, Raised, Results
from cudalint.machine.function_attributes import attributes_of_function
from cudalint.machine.heap import (
    ANY_NAME,
    GROWS,
    NAMESPACE,
    REPLACED,
    WEIGHTS,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Scope,
    Sequence,
)
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    IN_PLACE,
    ISOLATED,
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Member,
    Partial,
    Rank,
    Ref,
    Super,
    Tensor,
    Unknown,
    Value,
    const,
    member_of,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

# Methods of texts that a device is asked for.
_OF_TEXTS = frozenset({"casefold", "lower", "lstrip", "replace", "rstrip", "split", "startswith", "strip"})
# Constants whose attributes Python knows.
_OF_PYTHON = (bytes, int, float, *operators.COMPUTED)
_NAMES_OF_MEMBERS = frozenset({"name", "_name_"})
_OF_MEMBERS = _NAMES_OF_MEMBERS | {"value", "_value_"}
# An attribute that is not there.
_LACKING = Raised(None, ("AttributeError",))
# Something that has no items is asked for one.
_NO_ITEMS = Raised(None, ("TypeError",))
# What functools.partialmethod makes, until it is asked of an object.
_OWN_NAMES = frozenset({"__name__", "__qualname__"})
_METHOD_BY_TYPE = "functools.singledispatchmethod"
_PARTIAL_METHOD = Lib("functools.partialmethod.__call__")
# What models say of methods that are called on a class of the program below the library's.
_CLASS_METHODS = frozenset({"class.method", "own-instance"})
# Methods that are class methods without saying so.
_OF_CLASSES = frozenset({"__init_subclass__", "__class_getitem__"})


class Attributes(Core):
    """Finds attributes."""

    def attribute(self, value: Value, name: str, state: State, frame: Frame, site: Site) -> Results:
        """``value.name``."""
        if len(value) == 1:
            return self._attribute_of(value[0], name, state, frame, site)
        if (method := questions.text_method(value, name)) is not None:
            return [(state, method)]
        if all(isinstance(a, Unknown) for a in value) or (name in IN_PLACE and _are_objects(value)):
            # One attribute of whatever it is: a call of it is one call, and a test of it asks one question.
            found = [v for a in value for _, v in self._attribute_of(a, name, state, frame, site)]
            return [(state, union(found))] if found else []
        results: Results = []
        for i, atom in enumerate(value):
            current = state if i == len(value) - 1 else state.clone()
            results.extend(self._attribute_of(atom, name, current, frame, site))
        return self.joined_results(results)

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        match atom:
            case Lib(path=path):
                return self._library_attribute(path, name, state, frame, site)
            case Ref():
                return self._object_attribute(atom, name, state, frame, site)
            case Unknown(sym=sym):
                if given := unknowns.put_there(atom, name, state):
                    return [(state, given)]
                kind = questions.class_of(sym, self.library.bases)
                if kind != questions.NO_CLASS and (method := self.library.declared(kind, name)) is not None:
                    return [(state, (Bound(Lib(method), atom),))]
                if (of_path := paths.said(sym, name)) is not None:
                    return [(state, _of_texts(of_path, state, site))]
                if self.library.function(f"?.{name}") is not None:
                    return [(state, (Bound(Lib(f"?.{name}"), atom),))]
                return [(state, self._main_loop_of(sym, name, atom) or unknown(sym, ".", name))]
            case Dev():
                return [(state, self._device_attribute(atom, name))]
            case Tensor():
                return self._tensor_attribute(atom, name, state, frame, site)
            case Super():
                return self._super_attribute(atom, name, state, frame, site)
            case Const(value=Member() as member):
                return self._member_attribute(atom, member, name, state, frame, site)
            case Const(member=Member() as member) if self._is_of_member(member, name, state):
                return self._member_attribute(atom, member, name, state, frame, site)
            case Const(value=None) if frame.tries and not hasattr(None, name):
                return self.fail(state, frame, _LACKING)
            case Const() if name == "value":  # of an enum's member, which is its constant here
                return [(state, (atom,))]
            case Const(value=str()):
                return [(state, (Bound(Lib(f"builtins.str.{name}"), atom),))]
            case Const(value=held) if isinstance(held, _OF_PYTHON) and hasattr(held, name) and name[:2] != "__":
                own = getattr(held, name)
                called: Value = (Bound(Lib(f"builtins.{type(held).__name__}.{name}"), atom),)
                return [(state, called if callable(own) else const(own))]
            case Bound(function=Lib(path=path), receiver=receiver):
                return [(state, (self._bound_of_library(f"{path}.{name}", receiver),))]
            case Bound(receiver=receiver) if name == "__self__":
                return [(state, (receiver,))]
            case Bound(function=Ref() as function) if isinstance(state.get(function), Closure):
                if name == "__func__":
                    return [(state, (function,))]
                return self._object_attribute(function, name, state, frame, site)
        return [(state, unknown("attribute", atom, name))]

    def _device_attribute(self, device: Dev, name: str) -> Value:
        if name in _OF_TEXTS:
            # f"cuda:{rank}" is a device and still a string.
            return (Bound(Lib(f"builtins.str.{name}"), device),)
        if name == "type":
            return const(device.kind)
        if name == "index":
            if isinstance(device.index, Rank):
                return (device.index,)
            return const(device.index)
        return unknown("device", name)

    def _super_attribute(self, atom: Super, name: str, state: State, frame: Frame, site: Site) -> Results:
        """What the classes after one give an object, or a class whose method runs."""
        receiver = atom.receiver
        kind, is_class = self._kind_behind(atom, state)
        libraries: list[str] = []
        for entry in () if kind is None else behind(self.mro(kind, state), atom.cls, state):
            if isinstance(entry, Class):
                scope = state.get(entry.scope)
                if isinstance(scope, Scope) and name in scope.variables:
                    return self._bind_super(scope.variables[name], name, receiver, kind, is_class, state, frame, site)
                continue
            libraries.append(f"{entry}.{name}")
            content = mappings.content_of(receiver, state) if entry in mappings.DICTS | mappings.LISTS else None
            method = None if content is None else mappings.method(content, name, state)
            if content is not None and method is not None:
                return [(state, (Bound(Lib(method), content),))]
            call = self._library_call(f"{entry}.{name}.__get__", state, frame, site, [])
            if call is not None:
                call.receiver = receiver
                return self.library_call(call)
            if self.library.function(libraries[-1]) is not None and name != "__new__":
                return [(state, (Bound(Lib(libraries[-1]), receiver),))]
        if name == "__new__":
            return [(state, (Lib("builtins.object.__new__"),))]
        if name == "__init_subclass__" and not libraries:
            return [(state, (Lib("builtins.object.__init_subclass__"),))]
        if name in ("__getattribute__", "__setattr__") and not libraries:
            return [(state, (Bound(Lib(f"builtins.object.{name}"), receiver),))]
        if name == "__call__" and not is_class and isinstance(receiver, Ref) and isinstance(state.get(receiver), Class):
            return [(state, (Bound(Lib("builtins.type.__call__"), receiver),))]
        return [(state, (Bound(Lib(libraries[0]), receiver),) if libraries else unknown("super", name))]

    def _kind_behind(self, atom: Super, state: State) -> tuple[Ref | None, bool]:
        """The class in whose order ``super`` looks, and whether the receiver itself is that class."""
        receiver = atom.receiver
        if (member := member_of(receiver)) is not None:
            return member.cls, False
        found = state.get(receiver) if isinstance(receiver, Ref) else None
        if isinstance(found, Instance):
            return found.cls, False
        if not isinstance(receiver, Ref) or not isinstance(found, Class):
            return None, False
        if any(is_class(entry, atom.cls, state) for entry in self.mro(receiver, state)):
            return receiver, True
        return self._kind_of(receiver, state), False

    def _bind_super(
        self,
        value: Value,
        name: str,
        receiver: Atom,
        kind: Ref | None,
        is_class: bool,
        state: State,
        frame: Frame,
        site: Site,
    ) -> Results:
        if name == "__new__":
            return [(state, value)]
        if name in _OF_CLASSES and (atom := only(value)) is not None:
            return [(state, (Bound(atom, receiver),))]
        if is_class and isinstance(receiver, Ref):
            return [(state, self._bind_class_method(value, receiver, state))]
        return [(state, value)] if kind is None else self._bind_method(value, name, receiver, kind, state, frame, site)

    def _library_attribute(self, path: str, name: str, state: State, frame: Frame, site: Site) -> Results:
        home, _, own = path.rpartition(".")
        if name in _OWN_NAMES and home == "builtins" and isinstance(getattr(builtins, own, None), type):
            return [(state, const(own))]
        if own == _VERSION and hasattr(str, name) and self.least_version(Lib(path)) is not None:
            return [(state, (Bound(Lib(f"builtins.str.{name}"), Lib(path)),))]
        full = self.library.canonical(f"{path}.{name}")
        replaced = state.get(REPLACED)
        if isinstance(replaced, Scope) and full in replaced.variables and self.library.function(full) is None:
            return [(state, replaced.variables[full])]
        call = self._library_call(f"{full}.__get__", state, frame, site, [])
        if call is not None:
            return self.library_call(call)
        if full in self.library.constants:
            return [(state, const(self.library.constants[full]))]
        if name == "__dict__" and (names := _names_of_own(path)):
            return [(state, (state.new(("namespace", site), Dict({each: unknown(full, each) for each in names})),))]
        method = f"{ABSTRACT_META}.{name}"
        if path.rpartition(".")[0] in ABSTRACT and self.library.function(method) is not None:
            return [(state, (Bound(Lib(method), Lib(path)),))]
        return [(state, (Lib(full),))]

    def least_version(self, found: Lib) -> str | None:
        """The least release of the package whose version something is; None of anything else."""
        package, _, name = found.path.rpartition(".")
        return self.library.least.get(package) if name == _VERSION else None

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        found = state.get(ref)
        match found:
            case Instance():
                return self._instance_attribute(ref, found, name, state, frame, site)
            case Class():
                return self._attribute_of_class(ref, found, name, state, frame, site)
            case LibraryObject():
                return self._library_object_attribute(ref, found, name, state, frame, site)
            case Scope():
                return self._attribute_of_module(ref, found, name, state, frame, site)
            case Sequence(kind=kind):
                return [(state, (Bound(Lib(f"builtins.{kind}.{name}"), ref),))]
            case Dict():
                return [(state, (Bound(Lib(f"builtins.dict.{name}"), ref),))]
            case Generator():
                return [(state, (Bound(Lib(f"builtins.generator.{name}"), ref),))]
            case Closure() if name == "__annotations__" and name not in attributes_of_function(found, state):
                types = Dict(self.annotations_of(found, state), exact=False)
                return [(state, (state.new(("annotations", site), types),))]
            case Closure():
                return [(state, _attribute_of_function(ref, found, name, state))]
        return [(state, unknown("object", ref.address, name))]

    def _attribute_of_class(self, ref: Ref, found: Class, name: str, state: State, frame: Frame, site: Site) -> Results:
        value = self._class_attribute(ref, name, state)
        if value is not None:
            # A descriptor is asked of a class as of an object, without one.
            asked = self.special(value, ("__get__",), [NONE, (ref,)], state, frame, site)
            return [(state, self._bind_class_method(value, ref, state))] if asked is None else asked
        meta = self._kind_of(ref, state)
        kept = None if meta is None else self._class_attribute(meta, name, state)
        if kept is not None:
            return self._bind_method(kept, name, ref, ref, state, frame, site)
        if (method := self._method_of_abstract(ref, name, state)) is not None:
            return [(state, (Bound(Lib(method), ref),))]
        if (held := self._own_of_class(ref, found, name, state, site)) is not None:
            return [(state, held)]
        if name == "__subclasses__":
            return [(state, (Bound(Lib("builtins.type.__subclasses__"), ref),))]
        if (method := self._class_method_of_library(ref, name, state)) is not None:
            return [(state, (Bound(Lib(method), ref),))]
        if name in ("__name__", "__qualname__"):
            return [(state, const(found.name if name == "__name__" else found.qualname))]
        if name == "__module__" and (home := _name_of_module(found.module, state)):
            return [(state, home)]
        if name == "__match_args__" and (fields := self.record_fields(ref, state)):
            names = tuple(const(field) for field, _ in fields)
            return [(state, (state.new(("fields", site), Sequence("tuple", names)),))]
        base = self.library_base(ref, state)
        if base is None and not name.startswith("__"):
            asked = self.special((ref,), ("__getattr__",), [const(name)], state, frame, site)
            if asked is not None:
                return asked
        return [(state, unknown("class", found.qualname, name) if base is None else (Lib(f"{base}.{name}"),))]

    def _attribute_of_module(
        self, ref: Ref, found: Scope, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        measured = self._measured(found.module, name) if found.kind == "module" else None
        if measured is not None:
            return [(state, (measured,))]
        if name in found.variables:
            return self.resolve_deferred(found.variables[name], state, frame)
        if name == "__dict__":
            return [(state, self.names_of(ref, ref, state, site))]
        child = self.program.child(found.module, name)
        if child is not None:
            return self.load(child, state, frame, site)
        given = self._from_getattr((ref,), name, state, site, frame)
        return [(state, unknown("module", found.module, name))] if given is None else given

    def _own_of_class(self, ref: Ref, found: Class, name: str, state: State, site: Site) -> Value | None:
        """What every class has: its order, the names that its body binds; an Enum's members, a dataclass's fields."""
        if name == "__members__" and found.members:
            members: dict[Hashable, Value] = dict(enums.named(found, state).items())
            return (state.new(("members", site), Dict(members)),)
        if name == "__orig_bases__" and (written := self.written_bases(ref, state, site)):
            return written
        if name == "__mro__":
            return (state.new(("order", site), Sequence("tuple", order_of(ref, self.mro(ref, state), state))),)
        if found.is_dataclass and (named := self._named_fields(ref, found, name, state)):
            described: dict[Hashable, Value] = {field: unknown(name, site, field) for field in named}
            return (state.new((name, site), Dict(described)),)
        scope = state.get(found.scope)
        if name != "__dict__" or not isinstance(scope, Scope):
            return None
        items: dict[Hashable, Value] = {each: unknown("class", found.qualname, each) for each in vars(_Plain)}
        items.update((k, v) for k, v in scope.variables.items() if not k.startswith("<"))
        return (state.new(("namespace", site), Dict(items, exact=not found.is_dataclass and not found.meta)),)

    def _named_fields(self, ref: Ref, found: Class, name: str, state: State) -> dict[str, object]:
        """The names that a dataclass has annotations of in its own body, or all of whose fields it knows."""
        if name == "__dataclass_fields__":
            return dict(self.record_fields(ref, state))
        return {**dict(found.fields), **dict(found.types)} if name == "__annotations__" else {}

    def _method_of_abstract(self, cls: Ref, name: str, state: State) -> str | None:
        """What a class has that is abstract: it can be told which others count as one below it."""
        path = f"{ABSTRACT_META}.{name}"
        if self.library.function(path) is None or not is_abstract(self.mro(cls, state), self.mro, state):
            return None
        return path

    def _class_method_of_library(self, cls: Ref, name: str, state: State) -> str | None:
        """The method of a class of a library above a class, where a model says that the class itself matters to it."""
        for entry in self.mro(cls, state):
            spec = self.library.function(f"{entry}.{name}") if isinstance(entry, str) else None
            if spec is not None:
                is_told = not _CLASS_METHODS.isdisjoint((spec.get("does"), spec.get("kind")))
                return f"{entry}.{name}" if is_told or spec.get("function") == "self" else None
        return None

    def _bind_class_method(self, value: Value, cls: Ref, state: State) -> Value:
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Closure) and found.kind == "classmethod":
            return (Bound(atom, cls),)
        return value

    def _mixin(self, instance: Instance, name: str, state: State) -> str | None:
        """The method of a wrapper's abstract class, where that goes by a method which the program wrote."""
        written = mappings.WRITTEN_BY.get(name)
        if written is None or not mappings.is_wrapper(self.mro(instance.cls, state)):
            return None
        path = f"collections.abc.MutableMapping.{name}"
        is_own = self.user_method(instance, written, state) is not None
        return path if is_own and self.library.function(path) is not None else None

    def _instance_attribute(
        self, ref: Ref, instance: Instance, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        plainly, self.plainly = self.plainly, False
        cls = state.get(instance.cls)
        if isinstance(cls, Class) and cls.asks_first and not plainly:
            asked = self.user_method(instance, "__getattribute__", state)
            if asked is not None:
                return self.call_value((Bound(asked, ref),), [const(name)], {}, state, frame, site)
        shared = mappings.attributes_of(instance, state)
        given = state.get(shared) if shared is not None else None
        if isinstance(given, Dict) and name in given.items:
            return [(state, given.items[name])]
        if name in instance.attributes:
            return [(state, instance.attributes[name])]
        value = self._class_attribute(instance.cls, name, state)
        if value is not None:
            self._assume_undefined_before(instance.cls, name, state)
            return self._bind_method(value, name, ref, instance.cls, state, frame, site)
        if (made := self._made_by_classes(ref, instance, name, state, frame, site)) is not None:
            return made
        getter = self.user_method(instance, "__getattr__", state)
        if getter is not None and (not isinstance(given, Dict) or given.exact):
            return self._asked_getter(ref, getter, name, state, frame, site)
        if given is None and self._is_missing(instance, name, state, frame):
            return self.fail(state, frame, _LACKING)
        return self._filled_in(ref, instance, name, state, frame, site)

    def _made_by_classes(
        self, ref: Ref, instance: Instance, name: str, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """What Python, the dict or list that an instance is, or a library's class makes of a name; None of others."""
        if name == "__class__":
            return [(state, (instance.cls,))]
        if name == "__orig_bases__" and (written := self.written_bases(instance.cls, state, site)):
            return [(state, written)]
        if name == "__dict__":
            return [(state, self.attributes_of(ref, state, site))]
        if name == "__annotations__" and (fields := self.record_fields(instance.cls, state)):
            types: dict[Hashable, Value] = {field: unknown("annotation", site, field) for field, _ in fields}
            return [(state, (state.new(("annotations", site), Dict(types)),))]
        content = mappings.content_of(ref, state)
        method = None if content is None else mappings.method(content, name, state)
        if content is not None and method is not None:
            mixin = self._mixin(instance, name, state)
            return [(state, (Bound(Lib(method), content) if mixin is None else Bound(Lib(mixin), ref),))]
        for entry in self.mro(instance.cls, state):
            if isinstance(entry, str) and (content is None or entry not in mappings.DICTS | mappings.LISTS):
                path = f"{entry}.{name}"
                call = self._library_call(f"{path}.__get__", state, frame, site, [])
                if call is not None:
                    call.receiver = ref
                    return self.library_call(call)
                if self.library.function(path) is not None:
                    return [(state, (Bound(Lib(path), ref),))]
        return None

    def _is_missing(self, instance: Instance, name: str, state: State, frame: Frame) -> bool:
        """Whether an attribute is certainly not there; where it may not be, a path goes to the handler that waits."""
        if absent.is_deleted(instance.attributes, name):
            return True
        order = self.mro(instance.cls, state) if frame.tries else ()
        if not order or not all(isinstance(each, Class) for each in order):
            return False
        if absent.class_gives(order, name, self.library, state) is False:
            return True
        # What nobody saw may have set it all the same.
        self.fail(state.clone(), frame, _LACKING)
        return False

    def _filled_in(self, ref: Ref, instance: Instance, name: str, state: State, frame: Frame, site: Site) -> Results:
        """An attribute that no code of the program is seen to set."""
        base = self.library_base(instance.cls, state) if WEIGHTS in instance.attributes else None
        if base is not None and not self.library.is_aside(name):
            # A part that the library made of what was saved.
            return [(state, (self._bound_of_library(f"{base}.{name}", ref),))]
        filled = instance.attributes.get(ANY_NAME, ())
        if any(isinstance(atom, Tensor) for atom in filled):
            # ``self.__dict__.update(torch.load(path))``: what the file holds under this name.
            return self.item(filled, const(name), state, frame, site)
        # Of the application that its class is below.
        loop = self._main_loop(f"?.{name}", ref)
        return [(state, loop or unknown("attribute", ref.address, name))]

    def _main_loop_of(self, sym: Hashable, name: str, application: Atom) -> Value:
        """The same of what a function or class of a library gave."""
        match sym:
            case ("call", _, _, _, str(made_by), *_):
                return self._main_loop(f"{self.library.canonical(made_by)}.{name}", application)
        return ()

    def _main_loop(self, path: str, application: Atom) -> Value:
        """The method that runs what an application was given to call, where a name stands for one."""
        entry = self.library.function(path)
        return (Bound(Lib(path), application),) if entry is not None and entry.get("does") == "events.loop" else ()

    def _assume_undefined_before(self, cls: Ref, name: str, state: State) -> None:
        """Go on as if no class that is not seen, and that Python asks first, had an attribute that a user class has."""
        for entry in self.mro(cls, state):
            if isinstance(entry, Class):
                if defines(entry, (name,), state):
                    return
            elif self.is_unseen(entry.partition(".")[0]):
                state.assume((questions.DEFINES, entry, name), False)

    def _bind_method(
        self, value: Value, name: str, receiver: Atom, cls: Ref, state: State, frame: Frame, site: Site
    ) -> Results:
        """What an attribute of a class is for one of its instances."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Instance):
            asked = self.special(value, ("__get__",), [(receiver,), (cls,)], state, frame, site)
            return [(state, value)] if asked is None else asked
        if isinstance(atom, Partial) and atom.function == (_PARTIAL_METHOD,):
            function, *args = atom.args
            return [(state, (Partial(function, ((receiver,), *args), atom.kwargs),))]
        if isinstance(atom, Partial) and atom.function == (ISOLATED,):
            return [(state, (replace(atom, args=(*atom.args, (receiver,))),))]
        if isinstance(atom, Ref) and isinstance(found, LibraryObject) and found.type == _METHOD_BY_TYPE:
            return [(state, (Partial((atom,), ((receiver,),), ()),))]
        if not isinstance(atom, Ref) or not isinstance(found, Closure) or found.kind == "staticmethod":
            return [(state, value)]
        if found.kind == "classmethod":
            return [(state, (Bound(atom, cls),))]
        if found.kind not in ("property", "cached"):
            return [(state, (Bound(atom, receiver),))]
        results = self.call_value((atom,), [(receiver,)], {}, state, frame, site)
        if found.kind == "cached" and isinstance(receiver, Ref):
            for after, got in results:
                self._set_on_object(receiver, name, got, after, weak=False)
        return results

    def _is_of_member(self, member: Member, name: str, state: State) -> bool:
        """Whether a member that is a text or a number has an attribute that these have not."""
        return name in _OF_MEMBERS or self._class_attribute(member.cls, name, state) is not None

    def _asked_getter(self, ref: Ref, getter: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        """What ``__getattr__`` gives, where it does not ask for the same again without a function that runs."""
        asked = (ref, name, len(self._active))
        if asked in self._asked_getters:
            self.passes_over(site, state)
            return [(state, unknown("recursion", site))]
        self._asked_getters.append(asked)
        results = self.call_value((getter,), [(ref,), const(name)], {}, state, frame, site)
        self._asked_getters.pop()
        return results

    def _member_attribute(
        self, atom: Const, member: Member, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """``Enum.MEMBER.name``, and what the class defines for its members."""
        if name in _NAMES_OF_MEMBERS:
            return [(state, const(member.name))]
        if name in _OF_MEMBERS:
            return [(state, member.value)]
        value = self._class_attribute(member.cls, name, state)
        if value is None:
            return [(state, unknown("attribute", atom, name))]
        return self._bind_method(value, name, atom, member.cls, state, frame, site)

    def attributes_of(self, ref: Ref, state: State, site: Site) -> Value:
        """``x.__dict__``: what is written there is written to the object."""
        found = state.get(ref)
        if self.parents and isinstance(found, LibraryObject) and found.type == NAMESPACE:
            # What is written there is not followed to such an object.
            state.store(ref, replace(found, fields={**found.fields, ANY_NAME: TRUE}))
        given = (
            found.attributes
            if isinstance(found, Instance)
            else found.fields
            if isinstance(found, LibraryObject)
            else {}
        )
        items: dict[Hashable, Value] = {name: value for name, value in given.items() if not name.startswith("<")}
        return (state.new(("attributes", site), Dict(items, view=ref)),)

    def names_of(self, scope: Ref, view: Ref | None, state: State, site: Site) -> Value:
        """What the names of a module, a class or a function stand for; what is written there, ``view`` has."""
        found = state.get(scope)
        if not isinstance(found, Scope):
            return unknown("names", site)
        items: dict[Hashable, Value] = dict(found.variables.items())
        return (state.new(("names", site), Dict(items, exact=False, view=view)),)

    def named_in_library(self, path: str, names: Value, state: State, frame: Frame, site: Site) -> Results:
        """``getattr(lib, name)``, ``lib.__dict__[name]``: a name that nobody knows may be any that the library has."""
        results: Results = []
        for name in names:
            current = state.clone()
            if isinstance(name, Const) and isinstance(name.value, str):
                results.extend(self.attribute((Lib(path),), name.value, current, frame, site))
                continue
            described = f"{path}.{ANY_NAME}"
            is_any = self.library.function(described) is not None
            results.append((current, (Lib(described),) if is_any else unknown("getattr", (Lib(path),), names)))
        return self.joined_results(results)

    def _library_object_attribute(
        self, ref: Ref, obj: LibraryObject, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        if name in obj.fields:
            return [(state, obj.fields[name])]
        path = f"{obj.type}.{name}"
        call = self._library_call(f"{path}.__get__", state, frame, site, [])
        if call is not None:
            call.receiver = ref
            return self.library_call(call)
        call = self._library_call(f"{obj.type}.__getattr__", state, frame, site, [const(name)])
        if call is not None and not name.startswith("__"):
            call.receiver = ref
            return self.library_call(call)
        if GROWS in obj.fields and not name.startswith("__") and self.library.function(path) is None:
            return [(state, self.grown(ref, name, state, site))]
        if obj.type == NAMESPACE and name == "__dict__":
            return [(state, self.attributes_of(ref, state, site))]
        if obj.type == NAMESPACE:
            return [(state, (Bound(Lib(path), _alike(ref), may_be_data=True),))]
        if self.library.is_aside(name) and self.library.function(path) is None:
            # It is no method of the object, nor lies where that does.
            return [(state, unknown("attribute", ref.address, name))]
        return [(state, (self._bound_of_library(path, ref),))]

    def grown(self, atom: Atom | None, name: str, state: State, site: Site) -> Value:
        """What a configuration has under a name; what it lacks is another one, from now on."""
        obj = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(obj, LibraryObject):
            return unknown("config item", site)
        if name not in obj.fields:
            made = state.new(("grown", atom.address, name), LibraryObject(obj.type, {GROWS: TRUE}, site))
            state.store(atom, replace(obj, fields={**obj.fields, name: (made,)}))
            return (made,)
        return obj.fields[name]

    def _bound_of_library(self, path: str, receiver: Atom) -> Bound:
        """A method of a library's object, or what no model says to be one."""
        known = self.library.function(path) is not None or self.library.computes(path.rpartition(".")[2])
        return Bound(Lib(path), receiver, may_be_data=not known)


def _of_texts(found: str | tuple[str, ...], state: State, site: Site) -> Value:
    """A text, or a row of texts."""
    if isinstance(found, str):
        return const(found)
    return (state.new(("texts", site), Sequence("tuple", tuple(map(const, found)))),)


def _are_objects(value: Value) -> bool:
    return all(isinstance(atom, Unknown | Ref) for atom in value)


def _attribute_of_function(ref: Ref, found: Closure, name: str, state: State) -> Value:
    if name == "cache_clear" and isinstance(found.cache, Ref):
        return (Bound(Lib("functools.cache.cache_clear"), ref),)
    if name in (own := attributes_of_function(found, state)):
        return own[name]
    module, qualname = found.address
    if name == "__qualname__":
        return const(qualname)
    if name == "__name__":
        return const(qualname.rpartition(".")[2])
    if name == "__module__" and (home := _name_of_module(module, state)):
        return home
    return unknown("object", ref.address, name)


def _name_of_module(module: str, state: State) -> Value:
    """What a module is called in this process: main has another name in a fresh one."""
    found = state.get(Ref(("module", module)))
    return found.variables.get("__name__", ()) if isinstance(found, Scope) else ()


_VERSION = "__version__"


class _Plain:
    """A class of which nothing is said: it has what every class has."""


@cache
def _names_of_own(path: str) -> frozenset[str]:
    """The names that a class of Python's own defines, one from which programs derive."""
    module, _, name = path.rpartition(".")
    home = {"abc": abc, "builtins": builtins, "typing": typing}.get(module)
    found = getattr(home, name, None)
    return frozenset(vars(found)) if isinstance(found, type) else frozenset()


def _alike(ref: Ref) -> Ref:
    """One namespace for all that a call makes: what the code does not put there is asked of one command line.

    Of configurations that are read one after the other nothing says that they differ either.
    """
    match ref.address:
        case (site, int(), identity):
            return Ref((site, 0, identity))
    return ref
