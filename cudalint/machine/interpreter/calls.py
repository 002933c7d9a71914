"""Calls: of functions of the program in full, of libraries by their models."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial

from cudalint.ir import nodes as ir
from cudalint.machine import collecting, file_questions, gpu_memory, mappings, questions, unknowns
from cudalint.machine.frame import NO_HASH, Arguments, Around, Call, Frame, Given, Raised, Results, Steps
from cudalint.machine.heap import (
    BEGAN,
    HOOKS,
    REPLACED,
    Cache,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Scope,
    Sequence,
)
from cudalint.machine.interpreter.core import MOST_NESTED, Core
from cudalint.machine.joining import MOST_NESTING
from cudalint.machine.operators import unless_given
from cudalint.machine.paths import OF_FILES
from cudalint.machine.state import State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    ARRAY,
    COMES_FROM,
    NONE,
    VIEWS,
    WRAPS,
    Atom,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Snapshot,
    Tensor,
    Unknown,
    Value,
    constant,
    is_array,
    member_of,
    only,
    origin,
    union,
    unknown,
    wrapped,
)
from cudalint.structs import replace

RECURSION = 3
_NOT_TAKEN = Raised(None, ("TypeError",))
# The same of calls that each go one step down into data that is known, as ``wrap(value)`` for each value of a dict, or
# that are each given another name, or another function.
DESCENT = 8
# What computes with an object that was moved to a GPU, whatever it is: calling it, and methods that a model names so.
_MODULE = "torch.nn.Module"
_MODULE_CALL = f"{_MODULE}.__call__"


class Calls(Core):
    """Calls values."""

    def _call(self, node: ir.Call, state: State, frame: Frame, statement: bool) -> Results:
        return [r for s, f in self.eval(node.func, state, frame) for r in self._apply(node, f, s, frame, statement)]

    def _apply(self, node: ir.Call, function: Value, state: State, frame: Frame, statement: bool) -> Results:
        result: Results = []
        site = Site(frame.module, node.ordinal)
        if any(isinstance(a.value, ir.Comprehension) and a.value.kind == "generator" for a in node.args):
            self._begin_lazy(function, state)
        before, self._makes_later = self._makes_later, self.gives_to_process(function, state)
        before_call, self._unbegun = self._unbegun, self.unbegun_arguments(node, function, state)
        given = self.eval_all([a.value for a in node.args], state, frame)
        self._unbegun = before_call
        self._makes_later = before
        for current, values in given:
            spread = [value for arg, value in zip(node.args, values, strict=True) if arg.star]
            for after in self.exhausted(spread, current, frame):
                for value in spread:
                    self.spreads(value, site, after)
                args, kwargs, is_open = self._arguments(node, values, function, after)
                self._makes_later = before or (self._kept is node and self.runs_nothing_else(function, after))
                if frame.tries and not is_open and self.refuses_call(function, Given(args, kwargs, after, frame, site)):
                    result.extend(self.fail(after, frame, _NOT_TAKEN))
                elif self.stays_unbegun(node) and not is_open and self.goes_late(function):
                    result.extend(self._called_late(node, function, Given(args, kwargs, after, frame, site)))
                else:
                    result.extend(self.call_value(function, args, kwargs, after, frame, site, is_open, statement))
                self._makes_later = before
        return result

    def _called_late(self, node: ir.Call, function: Value, given: Given) -> Results:
        """A call that gives an iterator, which is kept or given on."""

        def now(state: State) -> Results:
            return self.call_value(function, given.args, given.kwargs, state, given.frame, given.site)

        return self.late_call(node, function, given, now)

    def _begin_lazy(self, function: Value, state: State) -> None:
        """A call that consumes a generator expression itself began before the elements are made: keep how it was."""
        for atom in function:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if not isinstance(atom, Ref) or not isinstance(found, LibraryObject) or BEGAN in found.fields:
                continue
            spec = self.library.function(f"{found.type}.__call__")
            if spec is not None and spec.get("lazy") is True:
                began: Value = (Snapshot(state.clone()),)
                state.store(atom, replace(found, fields={**found.fields, BEGAN: began}))

    def _arguments(
        self, node: ir.Call, values: list[Value], function: Value, state: State
    ) -> tuple[list[Value], dict[str, Value], bool]:
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        is_open = False
        unnamed: Value = ()
        for arg, value in zip(node.args, values, strict=True):
            if arg.star == "*":
                exact = self.exact_items(value, state)
                is_open = is_open or exact is None
                args.extend(self._some_of(value, function, state) if exact is None else exact)
            elif arg.star == "**":
                found = self._named_by(value, state)
                known = self._configured(only(value), state)
                if isinstance(found, Dict):
                    kwargs.update((k, v) for k, v in found.items.items() if isinstance(k, str))
                    is_open = is_open or not found.exact
                    unnamed = unnamed if found.exact else found.element
                elif known is not None:
                    kwargs.update(known)
                else:
                    is_open = True
                    unnamed = value
            elif arg.keyword is not None:
                kwargs[arg.keyword] = value
            else:
                args.append(value)
        if unnamed and all(isinstance(atom, Tensor) for atom in unnamed):
            # Whatever their names are: what has to be given is among them.
            kwargs.update(dict.fromkeys(self.lacks(function, len(args), kwargs, state), unnamed))
        return args, kwargs, is_open

    def _named_by(self, value: Value, state: State) -> Dict | None:
        """What ``**value`` names: where it is one of several dicts that have the same keys, what any of them says."""
        refs = [mappings.dict_of(atom, state) for atom in value]
        found = [None if ref is None else state.get(ref) for ref in refs]
        dicts = [one for one in found if isinstance(one, Dict)]
        if not dicts or len(dicts) < len(value):
            return None
        first = dicts[0]
        if any(not one.exact or one.element or one.items.keys() != first.items.keys() for one in dicts[1:]):
            return None
        return replace(first, items={key: union([one.items[key] for one in dicts]) for key in first.items})

    def _configured(self, atom: Atom | None, state: State) -> dict[str, Value] | None:
        """What a library's configuration says, which is a mapping as well; None of anything else."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, LibraryObject) or not self.library.is_a(found.type, "omegaconf.DictConfig"):
            return None
        return {name: value for name, value in found.fields.items() if not name.startswith("<")}

    def _some_of(self, value: Value, function: Value, state: State) -> list[Value]:
        """What stands for objects of which nobody knows how many there are, where a library takes them in a row."""
        if not any(isinstance(atom, Lib) for atom in function):
            return []
        element = union(self.elements(value, state))
        return [element] if any(isinstance(atom, Ref | Tensor) for atom in element) else []

    def call_value(
        self,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
        statement: bool = False,
    ) -> Results:
        """Call each alternative of a value."""
        if len(function) > 1 and self._moves(function):
            return self._move_each(function, Given(args, kwargs, state, frame, site, is_open, statement))
        result: Results = []
        for i, atom in enumerate(function):
            current = state if i == len(function) - 1 else state.clone()
            given = Given(list(args), dict(kwargs), current, frame, site, is_open, statement)
            result.extend(self._call_atom(atom, given))
        for after, value in result:
            gpu_memory.made_anew(value, site, after)
        return result

    def _moves(self, methods: Value) -> bool:
        """Whether methods, as far as they are known, move what they are called on to a device."""
        known = [method for method in methods if not isinstance(method, Unknown)]
        paths = [m.function.path for m in known if isinstance(m, Bound) and isinstance(m.function, Lib)]
        specs = [self.library.function(path) for path in paths]
        return 0 < len(known) == len(paths) and all(s is not None and s.get("does") == "move" for s in specs)

    def _move_each(self, methods: Value, given: Given) -> Results:
        """``x.to(device)``, whichever of several x is: afterwards all of them are there, since only one is meant."""
        moved: list[tuple[State, list[Value]]] = [(given.state, [])]
        for method in methods:
            moved = [
                (after, [*values, value])
                for state, values in moved
                for after, value in self._call_atom(
                    method, replace(given, state=state, args=list(given.args), kwargs=dict(given.kwargs))
                )
            ]
        return [(state, union(values)) for state, values in moved]

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        state, frame, site = given.state, given.frame, given.site
        match atom:
            case Lib(path=path):
                return self._call_library(path, None, given)
            case Bound(function=Lib(path=path), receiver=receiver):
                return self._call_library(path, receiver, given)
            case Bound(function=function, receiver=receiver):
                return self._call_atom(function, given.led_by((receiver,)))
            case Partial(function=function, args=first, kwargs=named):
                merged = {**dict(named), **given.kwargs}
                args = [*first, *given.args]
                return self.call_value(function, args, merged, state, frame, site, given.is_open, given.statement)
            case Ref():
                return self._call_ref(atom, given.taken())
            case Const() if (of_member := self._called_member(atom, given)) is not None:
                return of_member
            case Const(value=held, member=None) if frame.tries and isinstance(held, str | int | float | None):
                return self.fail(state, frame, _NOT_TAKEN)
            case Tensor(device=device) if device.is_gpu:
                read = self._tensor_data(atom, "calling the model", state, frame, site)
                return [(after, unknown("call", site, after.process.identity)) for after, _ in read]
        own = wrapped(atom)
        if own is not None:
            return self._call_atom(own, given)
        ready = self.with_awaited(given)
        if ready is not None:
            return [result for one in ready for result in self._call_atom(atom, one)]
        comes_from = origin(atom.sym) if isinstance(atom, Unknown) else None
        called = None if comes_from is None else self.calls_now(f"{comes_from}.{_unknown_name(atom)}", given)
        if called is None:
            return self._call_unknown(atom, given, comes_from)
        return [result for after in called for result in self._call_unknown(atom, given.on(after), comes_from)]

    def _called_member(self, atom: Const, given: Given) -> Results | None:
        """What a member of an Enum does when it is called; None where its class does not say."""
        member = member_of(atom)
        method = only(self._class_attribute(member.cls, "__call__", given.state) or ()) if member is not None else None
        return self._call_ref(method, given.led_by((atom,))) if isinstance(method, Ref) else None

    def _call_unknown(self, atom: Atom, given: Given, comes_from: str | None) -> Results:
        """Call what nobody knows; ``comes_from``: the package that it comes from."""
        state, frame, site = given.state, given.frame, given.site
        handed = (*given.args, *given.kwargs.values())
        self.hands_over(handed, state, frame, site, _unknown_name(atom))
        match atom:
            case Unknown(sym=("attribute", _, str(inherited))):
                self.keeps_events(handed, f"?.{inherited}", state)
        method = (_unknown_name(atom) or "").removeprefix("?.") or None
        self._comes_to_hooks(_owner(atom), method, given)
        for one in _owner(atom):
            unknowns.may_change(one, state, method)
        moved = self._moved_object(atom, state)
        path = self._as_of_module(atom)
        call = None if moved is None else self._library_call(path, state, frame, site, given.args, given.kwargs)
        if call is not None:
            call.receiver = moved
            return self.library_call(call)
        held = self._held_memory(atom, state)
        if held is not None:
            return self._compute_with_held(*held, given)
        if state.process.current and isinstance(atom, Unknown):
            self._unknown_called(atom, state, site)
        told = self._told_by_method(atom, given)
        if told is not None:
            return [(state, told)]
        return [
            result
            for after in self._told_gpu(atom, given)
            for result in self._made_by_unknown(atom, given.on(after), comes_from)
        ]

    def _told_gpu(self, function: Atom, given: Given) -> list[State]:
        """The states after a method of something unknown was called, which may compute on a GPU that it is told of."""
        match function:
            case Unknown(sym=(base, ".", str(name))) if given.kwargs and self.library.may_compute(name):
                path = f"?.{name}"
                call = Call(given.state, given.frame, given.site, path, {}, given.args, given.kwargs, Unknown(base))
                return self._after_telling(call)
        return [given.state]

    def _made_by_unknown(self, atom: Atom, given: Given, comes_from: str | None) -> Results:
        """What a call of something unknown gives."""
        state, site = given.state, given.site
        file_questions.may_change(_unknown_name(atom) or "", given.args, self.library, state)
        asked = None if given.kwargs else questions.asks_of_text(atom, given.args)
        plain = self._plain_method(atom, given)
        kind = ARRAY if not plain and _is_method_of_array(atom) else "call"
        function = self.called_one(given.args, state)
        viewed = self._viewed(atom)
        made: tuple[Hashable, ...] = plain if viewed is None or plain else ((VIEWS, viewed),)
        made = made if comes_from is None or plain else ((COMES_FROM, comes_from),)
        made = made if function is None else ((WRAPS, function),)
        return [(state, asked or unknown(kind, site, state.process.identity, len(state.facts), *made))]

    def _comes_to_hooks(self, called: Iterable[Atom], method: str | None, given: Given) -> None:
        """What nobody knows may call a module that it is given, or that it is a method of, and so run its hooks."""
        if given.state.get(HOOKS) is None:
            return
        atoms = [atom for value in (*given.args, *given.kwargs.values()) for atom in value]
        self.may_run_hooks(atoms, given.state, given.frame, given.site)
        self.may_run_hooks(called, given.state, given.frame, given.site, method=method)

    def _told_by_method(self, function: Atom, given: Given) -> Value | None:
        """What a method of a path, or of an open file, gives."""
        match function:
            case Unknown(sym=(base, ".", str(name))):
                state, site, path = given.state, given.site, f"?.{name}"
                call = Call(state, given.frame, site, path, {}, given.args, given.kwargs, Unknown(base), given.is_open)
                told = self._unknown_method(call) if name in OF_FILES else None
                return told or self._asked_of_file(path, Unknown(base), given)
        return None

    def _viewed(self, function: Atom) -> Hashable | None:
        """What a method of something unknown gives a view of, if that is a tensor."""
        match function:
            case Unknown(sym=(base, ".", str(name))) if self.library.views(name):
                return base
        return None

    def _plain_method(self, function: Atom, given: Given) -> tuple[Hashable, ...]:
        """The name of a method of something unknown by which it gives texts, numbers or paths; empty for others.

        What lists the files of a folder is known by that, and by what it was asked for.
        """
        name = _unknown_name(function)
        has = self.library.traits.has
        if name is None or not (has(name, "gives-texts") or has(name, "gives-rows")):
            return ()
        asked = [only(value) for value in given.args]
        if not has(name, "lists-files") or not all(isinstance(one, Const | Unknown) for one in asked):
            return (name,)
        match function:
            case Unknown(sym=(folder, ".", str())):
                return (name, Unknown(folder), *asked)
        return (name,)

    def _as_of_module(self, function: Atom) -> str:
        """The method of a module as which something is called that nobody knows."""
        path = f"{_MODULE}.{_unknown_name(function)}"
        return path if path in self.library.functions else _MODULE_CALL

    def _moved_object(self, function: Atom, state: State) -> Unknown | None:
        """The unknown object on a GPU with which a call of an unknown function computes."""
        match function:
            case Unknown(sym=sym) if sym in state.placed:
                return function
            case Unknown(sym=(base, ".", str(name))) if base in state.placed and self.library.computes(name):
                return Unknown(base)
        return None

    def _held_memory(self, function: Atom, state: State) -> tuple[Tensor, str] | None:
        """GPU memory of another process that an unknown object may hold, where a call of it may compute with that."""
        if not state.process.forked or state.process.dead:
            return None
        match function:
            case Unknown(sym=("holds", Tensor() as memory, str(path), *_)):
                return memory, path
            case Unknown(sym=(("holds", Tensor() as memory, str(path), *_), ".", str(name))):
                return (memory, path) if self.library.may_compute(name) else None
        return None

    def _compute_with_held(self, memory: Tensor, path: str, given: Given) -> Results:
        """A call that may compute with what an object was made of: what an unknown class does with it is a guess."""
        state, question = given.state, (questions.USES, path)
        result = unknown("call", given.site, state.process.identity, len(state.facts))
        known = state.fact(question)
        if known is False:
            return [(state, result)]
        unused: Results = [] if known else [(state.split(question), result)]
        read = self._tensor_data(memory, path.rpartition(".")[2], state, given.frame, given.site)
        return [*unused, *((after, result) for after, _ in read)]

    def _asked_of_file(self, path: str, receiver: Atom | None, given: Given) -> Value | None:
        """What is asked of a file; None where it is not known that nothing changes what is asked."""
        if given.kwargs or given.is_open:
            return None
        return file_questions.asked(path, receiver, given.args, self.library, given.state)

    def _call_library(self, path: str, receiver: Atom | None, given: Given) -> Results:
        """Call a function of a library, or a method of one of its values."""
        ready = self.awaits_for(path, given)
        if ready is not None:
            return [result for one in ready for result in self._call_library(path, receiver, one)]
        if receiver is None and (of := self._instance_of(path, given)) is not None:
            receiver, given = of, replace(given, args=given.args[1:])
            path = self._inherited(path)
        comes_from = origin(receiver.sym) if isinstance(receiver, Unknown) else None
        called = self.calls_now(path if comes_from is None else f"{comes_from}.{path}", given)
        if called is None:
            return self._done_by_library(path, receiver, given)
        return [result for after in called for result in self._done_by_library(path, receiver, given.on(after))]

    def _done_by_library(self, path: str, receiver: Atom | None, given: Given) -> Results:
        """What a function of a library does, or what the program set in its place."""
        state, frame, site, args, kwargs = given.state, given.frame, given.site, given.args, given.kwargs
        replaced = state.get(REPLACED)
        if isinstance(replaced, Scope) and path in replaced.variables and path not in self._replacing:
            its_own = given if receiver is None else given.led_by((receiver,))
            return self._call_replacement(path, replaced.variables[path], its_own)
        file_questions.may_change(self.library.canonical(path), args, self.library, state)
        call = self._library_call(path, state, frame, site, args, kwargs, given.is_open, given.statement)
        if call is None:
            self.hands_over((*args, *kwargs.values()), state, frame, site, self.library.canonical(path))
            own = () if receiver is None else (receiver,)
            self._comes_to_hooks(own, path.rpartition(".")[2], given)
            return self._unmodelled(Call(state, frame, site, path, {}, args, kwargs, receiver))
        call.receiver = receiver
        return self.library_call(call)

    def _instance_of(self, path: str, given: Given) -> Ref | Tensor | Unknown | None:
        """The object on which a method is called by its class: ``Process.start(p)``, ``torch.Tensor.cuda(x)``."""
        first = only(given.args[0]) if given.args else None
        owner, _, name = path.rpartition(".")
        if isinstance(first, Tensor):
            return first if self.library.is_a(first.type, owner) else None
        if isinstance(first, Unknown):
            # All attributes of a class are known where these are: what it has of this name is a method.
            return first if name in self.library.attributes.get(owner, ()) else None
        if not isinstance(first, Ref):
            return None
        cls: str | None
        match found := given.state.get(first):
            case LibraryObject(type=kind):
                cls = kind
            case Instance():
                cls = self.library_base(found.cls, given.state)
            case _:
                return None
        if cls is None or cls == owner:
            return None if cls is None else first
        known = self.library.declared(self.library.made(cls) or cls, name) is not None
        return first if known and (self.library.is_a(cls, owner) or self.library.is_a(owner, cls)) else None

    def _inherited(self, path: str) -> str:
        """The name under which a method is described that is called by a class below the one that has it."""
        owner, _, name = path.rpartition(".")
        made = self.library.made(owner)
        known = path if made is None or self.library.function(path) is not None else self.library.declared(made, name)
        return known or path

    def _call_replacement(self, path: str, value: Value, given: Given) -> Results:
        """Call what the program set in the place of a library's function."""
        self._replacing.append(path)
        taken = given.is_open, given.statement
        results = self.call_value(value, given.args, given.kwargs, given.state, given.frame, given.site, *taken)
        self._replacing.pop()
        return results

    def _call_ref(self, ref: Ref, given: Given) -> Results:
        state = given.state
        found = state.get(ref)
        match found:
            case Closure():
                return self.call_closure(ref, found, given)
            case Class():
                return self._in_turn(ref, given, partial(self.instantiate, ref, found, given))
            case Instance():
                method = self.user_method(found, "__call__", state)
                if method is not None:
                    return self._in_turn(ref, given, partial(self._call_atom, method, given.led_by((ref,))))
                base = self.library_base(found.cls, state)
                path = None if base is None else f"{base}.__call__"
            case LibraryObject(type=kind):
                path = f"{kind}.__call__"
            case Generator():
                path = "contextlib.ContextDecorator.__call__"
            case _:
                path = None
        frame, site, args, kwargs = given.frame, given.site, given.args, given.kwargs
        call = None if path is None else self._library_call(path, state, frame, site, args, kwargs, given.is_open)
        if call is None and path is not None and isinstance(found, LibraryObject):
            return self._unmodelled(Call(state, frame, site, path, {}, args, kwargs, ref))
        if call is None:
            return [(state, unknown("call", site, state.process.identity))]
        call.receiver = ref
        return self._in_turn(ref, given, partial(self.library_call, call))

    def _in_turn(self, ref: Ref, given: Given, call: Callable[[], Results]) -> Results:
        """Call a class or an instance, where that does not lead there again and again without any function that runs.

        What a class has for ``__call__`` may be an instance of the same class, and the class itself its ``__init__``.
        """
        again = (ref, len(self._active))
        if again in self._called or len(self._called) >= self._most_depth:
            self.passes_over(given.site, given.state)
            return [(given.state, unknown("recursion", given.site))]
        self._called.append(again)
        results = call()
        self._called.pop()
        return results

    def _library_call(
        self,
        path: str,
        state: State,
        frame: Frame,
        site: Site,
        args: list[Value],
        kwargs: dict[str, Value] | None = None,
        is_open: bool = False,
        statement: bool = False,
    ) -> Call | None:
        spec = self.library.function(path)
        if spec is None:
            return None
        return Call(state, frame, site, path, spec, args, kwargs or {}, None, is_open, statement)

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function."""
        # What is around a function may call it again before its own body begins.
        if self._depth >= self._most_depth or self._nested > MOST_NESTED:
            self.record.cut = self.record.cut or "calls nested too deeply"
            return [(given.state, unknown("depth", given.site))]
        if closure.compiled:
            return self._call_compiled(ref, closure, given)
        if closure.cache is not None:
            return self._call_cached(ref, closure, given)
        if closure.managed:
            return self._call_managed(ref, closure, given)
        function, state, site = closure.function, given.state, given.site
        entered = Site(closure.module, function.ordinal)
        self.record.entered.add(entered)
        active = self._active.count((closure.module, function.ordinal))
        if active >= RECURSION and (active >= DESCENT or not self._descends(entered, closure, given)):
            self.passes_over(site, state)
            return [(state, unknown("recursion", site))]
        variables = self.bind_arguments(closure, given)
        if self.is_left(entered, state, variables):
            self.passes_over(site, state)
            return [(state, unknown("abandoned", site))]
        within = (entered, state.process.identity, closure.scope)
        if any(within == at and _covers(outer, variables, state) for at, outer in self._given):
            # It calls itself with another thing of which no more is known: what that does, this call does too. What a
            # process does that it has started is another thing.
            self.passes_over(site, state)
            return [(state, unknown("recursion", site))]
        arguments = dict(variables)
        scope = state.new(
            ("frame", closure.module, function.ordinal), Scope(variables, closure.scope, closure.module, "function")
        )
        if function.is_generator or self.waits(closure):
            made = Generator(ref, scope, site)
            return [(state, (state.new(("generator", site), made),))]
        label = function.name if not function.is_lambda else "a lambda"
        self._given.append((within, arguments))
        results = self._run_body(closure, scope, given.args, state, given.frame, site, f"calls {label}()")
        self._given.pop()
        return results

    def _descends(self, entered: Site, closure: Closure, given: Given) -> bool:
        """Whether a function calls itself with a part of what it was given, where all parts of that are known.

        Or with a name or a function of the program that it was not given so far, as what resolves one thing by others
        does. Or it is not itself that it calls: functions that one decorator made share nothing but their code.
        """
        outer = [arguments for (at, _, _), arguments in self._given if at == entered]
        if not outer:
            # The body of a generator, which is no longer within the call that made it.
            return False
        scopes = {scope for (at, _, scope), _ in self._given if at == entered}
        if closure.scope not in scopes and self._is_made_before(closure):
            return True
        parts = {part for value in outer[-1].values() for part in _known_parts(value, given.state)}
        before = {value for arguments in outer for value in arguments.values()}
        values = (*given.args, *given.kwargs.values())
        if any(v in parts or (isinstance(constant(v), str) and v not in before) for v in values):
            return True
        functions = {found for v in before if (found := _function_in(v, given.state)) is not None}
        return any((found := _function_in(v, given.state)) is not None and found not in functions for v in values)

    def _is_made_before(self, closure: Closure) -> bool:
        """Whether a function was made by a call that is over, unlike one of a function that calls itself."""
        match closure.scope:
            case Ref(address=(("frame", str(module), int(ordinal)), _, _)):
                return (module, ordinal) not in self._active
        return False

    def _call_cached(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a function that remembers: what it gave for the same arguments in this process, it gives again."""
        if given.frame.tries and any(self.refuses_hash(value, given.state) for value in given.args):
            return self.fail(given.state, given.frame, NO_HASH)
        memory = closure.cache
        held = given.state.get(memory) if memory is not None else None
        key = (tuple(given.args), tuple(sorted(given.kwargs.items(), key=lambda kv: kv[0])))
        if isinstance(held, Cache) and key in held.results:
            return [(given.state, held.results[key])]
        results = self.call_closure(ref, replace(closure, cache=None), given)
        for after, value in results:
            now = after.get(memory) if memory is not None else None
            if memory is not None and isinstance(now, Cache):
                after.store(memory, Cache({**now.results, key: value}))
        return results

    def _call_managed(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a function that a manager decorates: within it."""
        *inner, manager = closure.managed
        plain = replace(closure, managed=tuple(inner))
        found = given.state.get(manager)
        if isinstance(found, Generator):
            return self._call_around(ref, plain, found, given)
        results: Results = []
        for entered, _ in self.enter((manager,), given.state, given.frame, given.site):
            for after, value in self.call_closure(ref, plain, given.on(entered)):
                results.extend((left, value) for left in self.leave((manager,), after, given.frame, given.site))
        return results

    def _call_around(self, ref: Ref, plain: Closure, manager: Generator, given: Given) -> Results:
        """Call a function where a generator yields, which begins anew for each call."""
        state = given.state
        values: list[Value] = []
        manager = self.afresh(manager, state)

        def body(inside: State, _: Value) -> list[State]:
            done = self.call_closure(ref, plain, given.on(inside))
            values.extend(value for _, value in done)
            return [after for after, _ in done]

        fresh = state.new(("manager", given.site), manager)
        left = self.consume(fresh, manager, state, given.frame, body)
        return [(after, union(values)) for after, _ in left]

    def _call_compiled(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call what a framework made of a user function: it runs something of its own, and the function to trace it.

        A model may say that it does so ``once`` for all calls with arguments on the same kind of device.
        """
        path, *seen = closure.compiled.split()
        call = self._library_call(path, given.state, given.frame, given.site, given.args, given.kwargs)
        kind = "gpu" if any(map(_is_on_gpu, (*given.args, *given.kwargs.values()))) else "cpu"
        plain = replace(closure, compiled="")
        again = call is None or kind in seen
        states = [given.state] if call is None or again else [after for after, _ in self.library_call(call)]
        if call is not None and call.text("kind") == "once" and not again:
            for after in states:
                after.store(ref, replace(closure, compiled=f"{closure.compiled} {kind}"))
        return [r for after in states for r in self.call_closure(ref, plain, given.on(after))]

    def _run_body(
        self,
        closure: Closure,
        scope: Ref,
        args: list[Value],
        state: State,
        frame: Frame,
        site: Site,
        message: str,
        around: Around | None = None,
        sent: Value | None = None,
        steps: Steps | None = None,
        stepped: tuple[Ref, Generator] | None = None,
    ) -> Results:
        function = closure.function
        before = state.stack
        state.stack = self.chain(state, site, message)
        receiver = args[0][0] if args and args[0] and closure.owner is not None else None
        inner = Frame(scope, closure.module, function, closure.owner, receiver, raises=frame.raises, tries=frame.tries)
        inner.waits_for_key = frame.waits_for_key
        inner.around = around
        inner.sent = sent
        inner.steps = steps
        inner.outside = before
        raised = len(frame.raises)
        journal = collecting.begin(state, scope)
        self._active.append((closure.module, function.ordinal))
        gives, self._makes_later = self._makes_later, False
        self.begin_call(closure, state, is_callers=around is not None)
        states = self.block(function.body, [state], inner)
        self._makes_later = gives
        self._active.pop()
        results: Results = [*inner.returns, *((s, NONE) for s in states)]
        for after, _ in results:
            after.stack = before
        if steps is not None and stepped is not None:
            results = _stopped(*stepped, steps, results, before)
        elif inner.yields or function.is_generator:
            element = union(inner.yields)
            self.given_back = union(value for _, value in results)
            results = [(s, element) for s, _ in results]
        results = self.end_call(results, site)
        self.yielded, self.undecided = tuple(inner.yields), frozenset(inner.undecided)
        # What runs where a context manager yields belongs to its caller, and so do the values it is about to return.
        whole = around is None and steps is None
        collecting.end(results, frame.raises[raised:], journal, self.puts, whole=whole)
        return results if function.is_generator or inner.yields else self.joined_results(results)

    def bind_arguments(self, closure: Closure, given: Given) -> dict[str, Value]:
        """Parameters to values; what nothing is given for is its default, else unknown."""
        state, site = given.state, given.site
        variables: dict[str, Value] = {}
        defaults = dict(closure.defaults)
        rest = list(given.args)
        named = dict(given.kwargs)
        for param in closure.function.params:
            if param.kind is ir.ParamKind.VAR_POSITIONAL:
                items = tuple(rest) if not given.is_open else None
                made = Sequence("tuple", items, union(rest))
                variables[param.name] = (state.new(("args", site, param.name), made),)
                rest = []
            elif param.kind is ir.ParamKind.VAR_KEYWORD:
                left: dict[Hashable, Value] = {}
                left.update(named)
                made_map = Dict(left, exact=not given.is_open)
                variables[param.name] = (state.new(("kwargs", site, param.name), made_map),)
            elif param.kind is ir.ParamKind.POSITIONAL and rest:
                variables[param.name] = rest.pop(0)
                if not param.unnamed:
                    named.pop(param.name, None)
            elif param.name in named and not param.unnamed:
                variables[param.name] = named.pop(param.name)
            elif param.name in defaults:
                default = defaults[param.name]
                variables[param.name] = unless_given(param.name, default, site) if given.is_open else default
            else:
                variables[param.name] = unknown("param", closure.module, closure.function.ordinal, param.name)
        return variables


def _stopped(ref: Ref, generator: Generator, steps: Steps, ended: Results, stack: Chain | None) -> Results:
    """What a generator gives at its next ``yield``, where it stands then, and the paths on which it is over."""
    for state, _ in ended:
        state.store(ref, Sequence("iterator", (), ()))
    for state, _, at in steps.left:
        state.stack = stack
        state.store(ref, replace(generator, waits=at))
    return [*((state, value) for state, value, _ in steps.left), *ended]


def _is_on_gpu(value: Value) -> bool:
    return any(isinstance(atom, Tensor) and atom.device.is_gpu for atom in value)


def _covers(outer: Arguments, inner: Arguments, state: State) -> bool:
    """Whether a call does all that another one does, of whose arguments something is unknown, and no more known."""
    held = {name: _held(value, state) for name, value in inner.items()}
    if not any(_is_unknown(atom) for value in held.values() for atom in value):
        return False
    return all(
        _is_covered(value, _held(outer[name], state)) and not _lies_deeper(inner[name], outer[name])
        for name, value in held.items()
    )


def _lies_deeper(inner: Value, outer: Value) -> bool:
    """Whether an argument is unknown that was held by a container: what asks which of both it is asks another thing."""
    return any(map(_is_unknown, inner)) and not any(map(_is_unknown, outer))


def _held(value: Value, state: State, depth: int = 0) -> Value:
    """What an argument stands for: of a container what it holds, and of those in it."""
    parts: list[Value] = []
    for atom in value:
        match state.get(atom) if isinstance(atom, Ref) and depth < MOST_NESTING else None:
            case Sequence(items=items, element=element):
                parts.extend(_held(each, state, depth + 1) for each in (*(items or ()), element))
            case Dict(items=named, element=element):
                parts.extend(_held(each, state, depth + 1) for each in (*named.values(), element))
            case _:
                parts.append((atom,))
    return tuple(dict.fromkeys(atom for part in parts for atom in part))


def _is_covered(inner: Value, outer: Value) -> bool:
    """Whether an argument is among what another one may be; a number is among what is unknown."""
    some = any(map(_is_unknown, outer))
    return all(atom in outer or (some and _is_indistinct(atom)) for atom in inner)


def _is_indistinct(atom: Atom) -> bool:
    return _is_unknown(atom) or (isinstance(atom, Const) and not isinstance(atom.value, str))


def _is_unknown(atom: Atom) -> bool:
    """Whether nothing is known of a value, or of what it is an attribute of."""
    return isinstance(atom, Unknown) or (isinstance(atom, Bound) and isinstance(atom.receiver, Unknown))


def _function_in(value: Value, state: State) -> Hashable:
    """Where a function is defined that a value is; None of all else."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return found.address if isinstance(found, Closure) else None


def _known_parts(value: Value, state: State) -> tuple[Value, ...]:
    """The items of lists and dicts that are known, whatever else these may hold."""
    parts: list[Value] = []
    for atom in value:
        match state.get(atom) if isinstance(atom, Ref) else None:
            case Dict(items=named):
                parts.extend(named.values())
            case Sequence(items=tuple(items)):
                parts.extend(items)
    return tuple(parts)


def _is_method_of_array(function: Atom) -> bool:
    """Whether a function is a method of what was computed of arrays: it gives what is computed in turn."""
    match function:
        case Unknown(sym=(base, ".", str())):
            return is_array(base)
    return False


def _unknown_name(function: Atom) -> str | None:
    """What models call the method of something unknown."""
    match function:
        case Unknown(sym=(_, ".", str(name))):
            return f"?.{name}"
    return None


def _owner(called: Atom | None) -> list[Atom]:
    """What is called, or the object that it is a method of."""
    match called:
        case Unknown(sym=(base, ".", str())):
            return [called, Unknown(base)]
        case None:
            return []
    return [called]
