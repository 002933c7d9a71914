"""What is called: functions of the program in full, and what libraries may call of it some day."""

from __future__ import annotations

import re
import string
from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.classes import lineage
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import ITER, Class, Closure, Dict, Generator, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.iteration import ITERATING, WITHOUT_ORDER, Iteration, as_set
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.sameness import follows, known
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import visited
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    Atom,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Task,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    unknown,
)
from cudalint.models.library import ProcessEffect

# Methods that the machine runs where Python runs them by itself.
_RUN = frozenset(
    {
        "__init__", "__new__", "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__",
        "__getitem__", "__getattr__", "__init_subclass__", "__getstate__", "__setstate__",
        "__getitems__", "__setitem__",
    }
)  # fmt: skip
# Methods of a metaclass that run where classes and their instances are made.
_MAKING = frozenset({"__new__", "__init__", "__call__"})
# What runs the function it is given at another time, or beside what follows.
_LATE = frozenset({"map", "filter", "starmap", "thread.start", "thread.call", "executor.loop"})
# Methods by which an object gives its elements, and builtins that take them without going through them one by one.
_GIVES_ELEMENTS = ("__iter__", "__next__", "__getitem__", "keys")
_TAKES_ELEMENTS = frozenset(
    {"builtins.str.join", "builtins.bytes.join", "builtins.dict", "builtins.dict.update", "builtins.bytes"}
)
_GIVES_VIEWS = (".keys", ".values", ".items")
# What looks at a mapping through another object, as a class does at its variables.
_WRAPS = frozenset({"types.MappingProxyType"})
# What a class is told of, or asked, without being called by its name.
_OF_CLASS = frozenset({"__class_getitem__", "__subclasshook__", "_missing_"})
# What may call, in this process, the functions that it is given, although other runs need not know.
_MAY_CALL = frozenset({"gpu", "like", "nothing", "placed", "tensor", "unknown-map"})
# What keeps objects, and calls their methods when it is called, gone through or asked for an item.
_KEEPS_OBJECTS = frozenset({"compose", "dataset.mapped", "dataset.transform", "dataset.wrapped", "module"})
_NUMBER_OR_TEXT = (int, float, str, bytes)
_MAKES_POOL = frozenset({"pool", "pool.subclass", "executor"})
# Functions that change an array that they are given, or are told of so that it is changed later.
_IN_PLACE = (
    "operator.i", "torch.optim.", "torch.distributed.", "random.shuffle", "numpy.copyto", "numpy.random.shuffle",
)  # fmt: skip
_WRITING = re.compile(r"\.(?:\w*[^_]_|__i\w+__|__setitem__)$")
_CONTAINERS = frozenset({"builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "builtins.sorted"})
_CONTAINER_METHODS = frozenset({"list.method", "dict.method"})


# What gives a generator whose numbers follow from what it is given.
SEEDED = "seeded-by"


class Calls(Iteration):
    """A machine that follows the calls that other runs leave out because no rule depends on them."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._speculated: set[Hashable] = set()
        # Whether something gave a generator of random numbers that follow from a seed.
        self._has_generators = False

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        site, state = given.site, given.state
        match atom:
            case Lib(path=path) | Bound(function=Lib(path=path)) if self.library.function(path) is None:
                return self._foreign(path, atom, given)
            case Unknown(sym=sym):
                effect = self._calls_unshown(sym, site, state)
                if isinstance(sym, tuple) and len(sym) == 3 and sym[1] == ".":
                    self._reflects(f"?.{sym[2]}", site, state)
                    if _WRITING.search(f".{sym[2]}") is not None:
                        self._writes_array(state, (Unknown(sym[0]),))
                is_value = effect is not None and effect.gives == "value"
                if is_value and follows(sym) and _all_known(given):
                    return [(state, unknown("follows", sym, *given.args))]
                self._hands(given.args, given.kwargs, state, given.frame, site)
            case Lib() | Bound() | Partial() | Ref():
                pass
            case _:
                self._note(Why.CALLS, "", site, state)
        return super()._call_atom(atom, given)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        """A library function that no model describes."""
        site, state = given.site, given.state
        receiver = atom.receiver if isinstance(atom, Bound) else None
        self._may_write(path, (receiver, *_atoms(given.args, given.kwargs)), state, given.kwargs, site)
        self._looks_at_files(path, state)
        effect = self._effect_of(path, receiver)
        self._calls_by_name(path, state)
        if effect is None:
            self._calls_unknown(shown(path), site, state)
        elif is_in_force(effect, given.kwargs, given.is_open):
            self._leaves(effect, path, site, state)
        self._reflects(path, site, state)
        self._makes_class(path, given.args, given.kwargs, site, state)
        if path not in WITHOUT_ORDER or "key" in given.kwargs:
            self._is_given_sets(path, receiver, (*given.args, *given.kwargs.values()), site, state)
        self._hands(given.args, given.kwargs, state, given.frame, site)
        results = super()._call_atom(atom, given)
        self._wraps(given, results)
        if effect is None:
            return results
        if effect.ends:
            self._opens(path, given, results)
        if not effect.gives:
            return results
        if self.library.traits.has(path, SEEDED) and given.args and _all_known(given):
            self._has_generators = True
            return [(s, unknown("follows", path, *given.args)) for s, _ in results]
        if effect.gives == "value" and receiver is None and _all_known(given):
            return [(s, unknown("follows", path, *given.args)) for s, _ in results]
        if given.frame.function is not None:
            self._own.add((site, state.process.identity))
        return results

    def _may_write(
        self, path: str, atoms: Iterable[Atom | None], state: State, kwargs: dict[str, Value], site: Site
    ) -> None:
        """A function that changes an array, or a list, in place; one of which nothing is known may."""
        in_place = "out" in kwargs or path.startswith(_IN_PLACE) or _WRITING.search(path) is not None
        known = (self.library.function, self.library.process_effect)
        if not in_place and any(said(path) is not None for said in known):
            return
        given = tuple(atom for atom in atoms if atom is not None)
        if any(isinstance(atom, Tensor) for atom in visited(given, state)):
            self._writes_array(state, given)
        for atom in given if path.startswith(_IN_PLACE) else ():
            if isinstance(atom, Ref) and isinstance(state.get(atom), Sequence):
                self._stores_into(atom.address, site, state, lossy=True)

    def _wraps(self, given: Given, results: Results) -> None:
        """What a library makes of something that ends with its process ends with it, too."""
        held = [a for value in (*given.args, *given.kwargs.values()) for a in value] if self._ending else []
        name = next((found for atom in held if (found := self._ends_as(atom)) is not None), None)
        if name is not None:
            made = (atom for _, value in results for atom in value if isinstance(atom, Unknown | Ref))
            self._ending.update(dict.fromkeys(made, name))

    def _opens(self, path: str, given: Given, results: Results) -> None:
        """What is opened to be written is written out at the end of its process, where something still holds it."""
        mode = given.kwargs.get("mode", given.args[1] if len(given.args) > 1 else const("r"))
        text = constant(mode) if path.endswith("open") else "w"
        if isinstance(text, str) and not set(text) & set("wxa+"):
            return
        if not isinstance(text, str) or set(text) & set("wx"):
            self._repeats(shown(path), given.site, given.state)
        for state, value in results:
            if self._is_started(state):
                self._ending.update(dict.fromkeys(value, f"{shown(path)}()"))

    def _hands(self, args: list[Value], kwargs: dict[str, Value], state: State, frame: Frame, site: Site) -> None:
        """What a library is given it may call."""
        for value in (*args, *kwargs.values()):
            for atom in value:
                self._speculate(atom, state, frame, site)

    def hands_over(
        self,
        values: Iterable[Value],
        state: State,
        frame: Frame,
        site: Site,
        function: str | None = None,
        is_called: bool = False,
    ) -> None:
        """What unknown functions are given is run by ``_hands``, for all that it does."""

    def _speculate(self, atom: Atom, state: State, frame: Frame, site: Site) -> None:
        """Run what a library may call, on a copy: for what it reads and does."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        match atom, found:
            case ((Partial(function=function) | Task(function=function)), _):
                for inner in function:
                    self._speculate(inner, state, frame, site)
                return
            case Bound(function=Ref() as ref), _:
                found = state.get(ref)
            case Bound(function=Lib() as changing, receiver=Ref() as held), _:
                # A method of a container, which changes that.
                if isinstance(state.get(held), Sequence | Dict):
                    self._runs_some_day(atom, (changing, held), [unknown("given", site)], state, frame, site)
                return
            case Ref(), Instance(cls=cls):
                for _, method in _methods(cls, state):
                    self._speculate(Bound(method, atom), state, frame, site)
                return
            case Ref() as cls, Class():
                for _, method in _methods(cls, state):
                    self._speculate(method, state, frame, site)
                return
            case Ref() as made, Generator() as generator:
                within = Frame(frame.scope, frame.module, tries=1)
                self._some_day(state, lambda copy: self.consume(made, generator, copy, within))
                return
        if not isinstance(found, Closure):
            return
        self._runs_some_day(atom, (found.module, found.function.ordinal), [], state, frame, site)

    def _runs_some_day(
        self, atom: Atom, place: Hashable, args: list[Value], state: State, frame: Frame, site: Site
    ) -> None:
        """Call something on a copy, unless that was done."""
        key = (place, state.process.identity, self._is_started(state))
        if key in self._speculated:
            return
        self._speculated.add(key)
        around = Frame(frame.scope, frame.module, tries=1)
        self._some_day(state, lambda copy: self.drained(self.call_value((atom,), args, {}, copy, around, site), around))

    def _call_ref(self, ref: Ref, given: Given) -> Results:
        site, state = given.site, given.state
        found = state.get(ref)
        match found:
            case Closure() | Class():
                pass
            case Instance() if self.user_method(found, "__call__", state) is not None:
                pass
            case Instance(cls=cls):
                base = self.library_base(cls, state)
                self._calls_object(f"{base or 'an object'}.__call__", site, state)
            case LibraryObject(type=kind):
                self._calls_object(f"{kind}.__call__", site, state)
            case _:
                self._calls_unknown("", site, state)
        return super()._call_ref(ref, given)

    def _is_of_file(self, receiver: Atom | None) -> bool:
        return isinstance(receiver, Unknown) and self._is_file(receiver.sym)

    def library_call(self, call: Call) -> Results:
        """Do what the model of a function says, and note what that leaves behind."""
        path, does = self.library.canonical(call.path), call.text("does")
        self._calls_by_name(path, call.state)
        self._looks_at_files(path, call.state)
        self._may_write(path, (call.receiver, *_atoms(call.args, call.kwargs)), call.state, call.kwargs, call.site)
        if does in _MAKES_POOL:
            self._makes_pool(call, does)
        self._leaves_behind(call, path, does)
        self._names(call, does)
        self._asks_the_program(call, path, does)
        self._may_run(call, path, does)
        if does == "stack.enter":
            self._enters(call)
        results = self._results_of(call, path, does)
        self._note_made(call, path, does, results)
        return self._as_this_process_has(call, does, results)

    def _makes_pool(self, call: Call, does: str) -> None:
        """Workers may be started here, one or several."""
        here = call.state.process.identity, call.site
        self._is_made(call.site, call.state)
        self._pools[here] = self._pools.get(here, 0) + 1
        if call.get("max_workers" if does == "executor" else "processes") == const(1):
            self._alone.add(call.site)

    def _leaves_behind(self, call: Call, path: str, does: str) -> None:
        """What a function changes, of what a fresh process would not see."""
        if does in _CONTAINER_METHODS:
            self._changes_container(call)
        elif does.startswith("environ."):
            self._sets_environment(call, does)
        elif path.startswith("?.") and path[2:] in self._functions and not self._is_of_file(call.receiver):
            self._calls_unknown("", call.site, call.state)
        else:
            effect = self.library.process_effect(path)
            if effect is not None and is_in_force(effect, call.kwargs, call.open):
                self._leaves(effect, path, call.site, call.state)

    def _asks_the_program(self, call: Call, path: str, does: str) -> None:
        """What looks at the program itself, or imports what it is told."""
        imports = does == "import-module"
        if imports and isinstance(constant(call.get("name") or ()), str):
            return
        if imports:
            self._calls_unknown("", call.site, call.state)
        self._reflects(path, call.site, call.state)

    def _may_run(self, call: Call, path: str, does: str) -> None:
        """What is given to a function that may call it, keep it, or go through it."""
        named = self.library.called_arguments
        called = [value for name, value in call.kwargs.items() if name in named or call.flag("calls")]
        if does == "weak":
            # What is called when the object has gone.
            called.extend(call.args[1:])
        self._hands([*called, *(call.args if call.flag("calls") else ())], {}, call.state, call.frame, call.site)
        self._lends(call, does)
        self._makes_class(path, call.args, call.kwargs, call.site, call.state)
        if path == "builtins.iter" and len(call.args) > 1:
            self._hands(call.args[:1], {}, call.state, call.frame, call.site)
        self._takes_of_objects(call, path)
        for value in call.args if path in _TAKES_ELEMENTS else ():
            self.spreads(value, call.site, call.state)

    def _results_of(self, call: Call, path: str, does: str) -> Results:
        """What a function gives: what it runs meanwhile may run late, in any order, or here."""
        late = does in _LATE or call.text("family") == "thread"
        ordered, self._orders = self._orders, self._orders or (path in WITHOUT_ORDER and "key" not in call.kwargs)
        given = (*call.args, *call.kwargs.values())
        self._is_given_sets(path, call.receiver, given, call.site, call.state)
        self._late += late
        runs_code, self._runs_code = self._runs_code, False
        results = super().library_call(self._awaiting(call))
        self._runs_code = runs_code
        self._late -= late
        self._orders = ordered
        self._may_go_through(given, results, call.frame, call.site)
        return results

    def _note_made(self, call: Call, path: str, does: str, results: Results) -> None:
        """What was made goes through something else, or shows it."""
        made = {a.address for _, value in results for a in value if isinstance(a, Ref)}
        if does in ITERATING or (does == "container" and path not in _CONTAINERS):
            self._iterators |= made
        if does == "dict.method" and path.endswith(_GIVES_VIEWS):
            self._views |= made
        through = tuple(a for v in ((call.receiver,), *call.args) for a in v if isinstance(a, Ref))
        self._sources.update(dict.fromkeys(made & (self._iterators | self._views), through))
        if path in _WRAPS or (does == "vars" and any(_is_class(a, call.state) for v in call.args for a in v)):
            self._proxies |= made
        if path == "builtins.frozenset":
            for after, value in results:
                as_set(value, after)

    def _as_this_process_has(self, call: Call, does: str, results: Results) -> Results:
        """Results as this process has them, where another one would have others."""
        site = call.site
        match does:
            case "next":
                # Which element that is depends on how many were taken before.
                return [
                    (s, unknown("next", site) if isinstance(constant(v), _NUMBER_OR_TEXT) else v) for s, v in results
                ]
            case "iter":
                # What goes through a text is no text: it remembers how far it is.
                return [(s, v if any(isinstance(a, Ref) for a in v) else unknown(ITER, site)) for s, v in results]
            case "sentinel" if call.frame.function is not None:
                self._own.add((site, call.state.process.identity))
            case "environ.get":
                return [(after, _by_environment(value)) for after, value in results]
            case "drawn":
                # Another process draws others.
                return [(s, unknown("call", site, s.process.identity)) for s, _ in results]
        return results

    def _makes_class(self, path: str, args: list[Value], kwargs: dict[str, Value], site: Site, state: State) -> None:
        """A call that makes a class: its bases and its metaclass are told of it."""
        made = self.library.traits.of(path, "makes-class")
        if made is not None and ("bases" in kwargs or (made.place is not None and len(args) > made.place)):
            self._calls_unknown(shown(path.removesuffix(".__call__")), site, state)

    def _lends(self, call: Call, does: str) -> None:
        """What a function of a library is given it may call, or keep and call in this worker."""
        given = (*call.args, *call.kwargs.values())
        if does in _MAY_CALL:
            functions: list[Value] = [
                tuple(atom for atom in value if self._is_function(atom, call.state)) for value in given
            ]
            self._hands(functions, {}, call.state, call.frame, call.site)
            for value in given:
                self.spreads(value, call.site, call.state)
        elif does in _KEEPS_OBJECTS and any(self._reading(call.state)):
            kept: list[Value] = [(atom,) for value in given for atom in visited(value, call.state)]
            self._hands(kept, {}, call.state, call.frame, call.site)

    def _takes_of_objects(self, call: Call, path: str) -> None:
        """A worker's function of a library may take the elements of an object, and a text its attributes."""
        if any(self._reading(call.state)):
            for value in (*call.args, *call.kwargs.values()):
                self.spreads(tuple(a for a in value if _is_instance(a, call.state)), call.site, call.state)
        if path == "builtins.str.format_map" or (
            path == "builtins.str.format" and not _has_plain_fields(call.receiver)
        ):
            self._hands([*call.args, *call.kwargs.values()], {}, call.state, call.frame, call.site)

    def _is_function(self, atom: Atom, state: State) -> bool:
        return isinstance(atom, Bound | Partial) or (isinstance(atom, Ref) and isinstance(state.get(atom), Closure))

    def _may_go_through(self, given: Iterable[Value], results: Results, frame: Frame, site: Site) -> None:
        """Generators that a function of a library was given, and that it may go through without that being seen."""
        made = [atom for value in given for atom in value if isinstance(atom, Ref)]
        for atom in made:
            for after, _ in results:
                if isinstance(after.get(atom), Generator):
                    self._speculate(atom, after, frame, site)

    def decorates(self, decorator: Value, state: State, frame: Frame, site: Site) -> None:
        """A manager that is made of a generator is entered by each call of what it decorates."""
        for atom in decorator:
            if isinstance(atom, Ref) and isinstance(state.get(atom), Generator):
                self._speculate(atom, state, frame, site)

    def _enters(self, call: Call) -> None:
        """A manager made of a generator stays entered until its stack is left."""
        for atom in (a for value in call.args for a in value):
            if isinstance(atom, Ref) and isinstance(call.state.get(atom), Generator):
                self._calls_unknown("", call.site, call.state)

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function."""
        state = given.state
        place = Site(closure.module, closure.function.ordinal)
        scoped = self._scopes.get(place)
        if scoped is not None:
            self._note(Why.SETS, scoped[0], place, state, ends=True, felt_by=scoped[1])
        if self._is_started(state):
            for value in (*given.args, *given.kwargs.values()):
                self.finds(value, state, given.site)
        self._where.append(given.site)
        if closure.function.is_async and not closure.function.is_generator and self._runs_code:
            self._coroutines.add(given.site)
        self._late += closure.function.is_async
        runs_code, self._runs_code = self._runs_code, True
        results = super().call_closure(ref, closure, given)
        self._runs_code = runs_code
        self._late -= closure.function.is_async
        self._where.pop()
        if scoped is not None:
            self._close(place, state)
        for after, value in results if closure.cache is not None or closure.kind == "cached" else ():
            self._keeps(value, given.site, after)
        return results

    def _form(self, cls: Ref, state: State, frame: Frame, site: Site) -> list[State]:
        """The methods that a class has from its metaclass, and Python may call by itself, may run some day."""
        states = super()._form(cls, state, frame, site)
        for after in states:
            made = after.get(cls)
            for atom in made.meta if isinstance(made, Class) else ():
                if not isinstance(atom, Ref) or not isinstance(after.get(atom), Class):
                    self._speculate(atom, after, frame, site)
            for method in self._asked_of_class(cls, after):
                self._speculate(method, after, frame, site)
        return states

    def _asked_of_class(self, cls: Ref, state: State) -> list[Bound]:
        """The methods of a class, and of its metaclass, that Python calls by itself."""
        meta = self._kind_of(cls, state)
        of_meta = [] if meta is None else [Bound(m, cls) for n, m in _methods(meta, state) if n not in _MAKING]
        of_class = [self._class_attribute(cls, name, state) or () for name in sorted(_OF_CLASS)]
        return [*of_meta, *(Bound(a, cls) for found in of_class for a in found)]

    def construct(self, ref: Ref, cls: Class, given: Given) -> Results:
        """``type.__call__``: a new instance, and its ``__init__``; what Python calls of it by itself may run."""
        frame, site, state = given.frame, given.site, given.state
        base = self.library_base(ref, state)
        if base is not None:
            self._makes_class(f"{base}.__call__", given.args, given.kwargs, site, state)
        if base is not None and self._class_attribute(ref, "__init__", state) is None:
            effect = self._effect_of(f"{base}.__init__", None)
            self._calls_by_name(f"{base}.__init__", state)
            if self.library.function(f"{base}.__init__") is None and effect is None:
                self._calls_unknown(shown(base), site, state)
        results = super().construct(ref, cls, given)
        for after, made in results:
            atom = only(made)
            for name, method in _methods(ref, after):
                if isinstance(atom, Ref) and _is_implicit(name):
                    self._speculate(Bound(method, atom), after, frame, site)
        return results

    def finds(self, value: Value, state: State, site: Site) -> None:
        """A worker finds objects that it did not make: what Python calls of them by itself may run there."""
        frame = Frame(Ref(("module", self.main)), self.main)
        for atom in visited(value, state):
            found = state.get(atom) if isinstance(atom, Ref) else None
            for name, method in _methods(found.cls, state) if isinstance(found, Instance) else ():
                if isinstance(atom, Ref) and _is_implicit(name):
                    self._speculate(Bound(method, atom), state, frame, site)
            if isinstance(atom, Ref) and isinstance(found, Class):
                for asked in self._asked_of_class(atom, state):
                    self._speculate(asked, state, frame, site)

    def spreads(self, value: Value, site: Site, state: State) -> None:
        """The elements of a value are taken: an object of the program gives them by its methods."""
        super().spreads(value, site, state)
        frame = Frame(Ref(("module", self.main)), self.main)
        for atom in value:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, Generator):
                self._speculate(atom, state, frame, site)
            for method in _GIVES_ELEMENTS if isinstance(found, Instance) else ():
                function = self.user_method(found, method, state) if isinstance(found, Instance) else None
                if function is not None and isinstance(atom, Ref):
                    self._speculate(Bound(function, atom), state, frame, site)

    def passes_over(self, site: Site, state: State) -> None:
        """A call of a user function is not followed any further: a bound is met."""
        self._note(Why.CUT, "", site, state)
        for watch in self._reading(state):
            watch.doubts.setdefault(Doubt(Why.CUT, "", site))


def is_in_force(effect: ProcessEffect, kwargs: dict[str, Value], is_open: bool) -> bool:
    """Whether a call with these arguments leaves something behind."""
    if any(_is_given(kwargs[name]) for name in effect.unless if name in kwargs):
        return False
    given = (constant(kwargs[name]) for name in effect.when if name in kwargs)
    return not effect.when or is_open or any(value is not None and value is not False for value in given)


def _is_given(value: Value) -> bool:
    """Whether an argument is something, and nowhere seen to be nothing."""
    return not any(isinstance(atom, Const) and atom.value in (None, False) for atom in value)


def _atoms(args: Iterable[Value], kwargs: dict[str, Value]) -> Iterator[Atom]:
    return (atom for value in (*args, *kwargs.values()) for atom in value)


def _is_instance(atom: Atom, state: State) -> bool:
    return isinstance(atom, Ref) and isinstance(state.get(atom), Instance)


def _has_plain_fields(text: Atom | None) -> bool:
    """Whether the fields of a text name what fills them, and nothing of that."""
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return False
    try:
        fields = list(string.Formatter().parse(text.value))
    except ValueError:
        return False
    return not any(set(".[") & set(name or "") or "{" in (spec or "") for _, name, spec, _ in fields)


def _is_implicit(name: str) -> bool:
    """Whether Python calls a method of this name by itself, where the machine does not follow."""
    return name.startswith("__") and name not in _RUN


def _by_environment(value: Value) -> Value:
    """A variable of the environment with a default: whichever of the two it is follows from the environment."""
    match value:
        case (Const() as default, Unknown(sym=("environ", str(name)))):
            return unknown("follows", "os.environ.get", const(name), (default,))
    return value


def _all_known(given: Given) -> bool:
    return not given.kwargs and all(known(value) for value in given.args)


def _methods(cls: Ref, state: State) -> list[tuple[str, Ref]]:
    """The functions that the bodies of a class and its user bases define."""
    result: list[tuple[str, Ref]] = []
    for each in lineage(cls, state):
        scope = state.get(each.scope)
        for name, value in scope.variables.items() if isinstance(scope, Scope) else ():
            atom = only(value)
            if isinstance(atom, Ref) and isinstance(state.get(atom), Closure):
                result.append((name, atom))
    return result


def _is_class(atom: Atom, state: State) -> bool:
    return isinstance(atom, Ref) and isinstance(state.get(atom), Class)
