"""How bodies are left: exceptions and their handlers, context managers and their exits."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine import exceptions
from cudalint.machine.frame import Frame, Raised, Results
from cudalint.machine.heap import (
    EXPECTED,
    SUPPRESSED,
    Class,
    Closure,
    Generator,
    Instance,
    LibraryObject,
    Object,
    Scope,
)
from cudalint.machine.interpreter.core import Core
from cudalint.machine.interpreter.spelling import spelled
from cudalint.machine.state import State
from cudalint.machine.trace import Chain, Site, TraceStep
from cudalint.machine.values import (
    DELETED,
    NONE,
    Atom,
    Bound,
    Const,
    Deferred,
    Lib,
    Ref,
    Unknown,
    Value,
    constant,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

_ALL_ERRORS = frozenset({"Exception", "BaseException"})
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_KEY_ERRORS = frozenset({"KeyError", "LookupError"})
# So many exceptions of one kind are told apart by what they say.
MOST_TOLD_APART = 2
_EXITS = ("__exit__", "__aexit__")
# Several exceptions as one: handlers take their part of them.
_GROUPS = frozenset({"ExceptionGroup", "BaseExceptionGroup"})


class Unwinding(Core):
    """Unwinds ``try`` and ``with``."""

    def _try(self, node: ir.Try, state: State, frame: Frame) -> list[State]:
        outer, returned = frame.raises, len(frame.returns)
        left = len(outer), len(frame.breaks), len(frame.continues)
        frame.raises = []
        guarded = frame.guards_import
        frame.guards_import = guarded or any(_guards_import(node, handler.type) for handler in node.handlers)
        waited = frame.waits_for_key
        frame.waits_for_key = waited or any(_is_for(_KEY_ERRORS, handler.type) for handler in node.handlers)
        waits = 1 if node.handlers or any(map(_leaves, node.final)) else 0
        frame.tries += waits
        after = self.block(node.body, [state], frame)
        frame.tries -= waits
        frame.guards_import = guarded
        frame.waits_for_key = waited
        raised, frame.raises = frame.raises, outer
        after = self.block(node.orelse, after, frame)
        finished: list[State] = []
        for current, exception in self._joined_raises(raised):
            parts = self._parts_of(exception, current) if node.star else None
            if parts is not None:
                after.extend(self._handle_parts(node.handlers, current, exception, parts, frame))
                continue
            # Whoever ends the process as a failure there did not get over what was caught.
            final = node.final if exception.outcome is not None and not exception.harmless else ()
            into = finished if final else after
            into.extend(self._handle(node.handlers, final, current, exception, frame))
        after = self.joined(after)
        if not node.final:
            return after
        self._finally_beside(node.final, left, frame)
        return self.joined([*self._finally(node.final, after, returned, frame), *finished])

    def _finally_beside(self, final: tuple[ir.Stmt, ...], left: tuple[int, int, int], frame: Frame) -> None:
        """What runs where a statement is left by an exception that the program raises, by ``break`` or ``continue``."""
        raises, breaks, continues = left
        leaving, frame.raises[raises:] = frame.raises[raises:], []
        leaves = any(map(_leaves, final))
        for state, exception in self._joined_raises(leaving):
            # A failure of a worker, or of this process with CUDA, was told where it came.
            is_plain = exception.outcome is None and exception.launch is None and exception.missing is None
            after = self.block(final, [state], frame) if is_plain or leaves else [state]
            if not is_plain and not after:
                self._swallow(exception)
            frame.raises.extend((s, exception) for s in after)
        for ways, begin in ((frame.breaks, breaks), (frame.continues, continues)):
            others, ways[begin:] = ways[begin:], []
            ways.extend(self.block(final, others, frame) if others else [])

    def _handle(
        self,
        handlers: tuple[ir.Handler, ...],
        final: tuple[ir.Stmt, ...],
        state: State,
        raised: Raised,
        frame: Frame,
    ) -> list[State]:
        catching = [handler for handler in handlers if self._catches(handler, raised, state, frame)]
        if not catching:
            frame.raises.append((state, raised))
            if not frame.tries and raised.outcome is None and raised.launch is None:
                self.record.refused.append(state.facts)
            return []
        if not raised.hidden:
            return self._handled(catching[0], final, state, raised, frame)
        return [after for handler in catching for after in self._handled(handler, final, state.clone(), raised, frame)]

    def _parts_of(self, raised: Raised, state: State) -> list[Value] | None:
        """The exceptions that ``except*`` hands out; None where one is not known, or is a failure that is reported."""
        if raised.outcome is not None or raised.launch is not None or raised.missing is not None or not raised.value:
            return None
        held = state.get(atom) if isinstance(atom := only(raised.value), Ref) else None
        parts: list[Value] | None = [raised.value]
        if isinstance(held, LibraryObject) and exceptions.is_group(held.type):
            parts = self.exact_items(held.fields[exceptions.PARTS], state)
        return parts if parts is not None and all(exceptions.is_one(part, state) for part in parts) else None

    def _handle_parts(
        self, handlers: tuple[ir.Handler, ...], state: State, raised: Raised, parts: list[Value], frame: Frame
    ) -> list[State]:
        """``except*``: each handler takes what it is for, as one group; what none took goes on."""
        states = [state]
        for handler in handlers:
            taken = [part for part in parts if self._catches(handler, self.as_raised(part, state), state, frame)]
            if not taken or not handler.body:
                continue
            parts = [part for part in parts if part not in taken]
            site = Site(frame.module, handler.body[0].ordinal)
            following: list[State] = []
            for current in states:
                group = replace(raised, hidden=False, value=exceptions.group_of(taken, site, current))
                following.extend(self._handled(handler, (), current, group, frame))
            states = following
        if not parts:
            return states
        for current in states:
            rest = parts[0] if len(parts) == 1 else exceptions.group_of(parts, Site(frame.module, 0), current)
            frame.raises.append((current, replace(self.as_raised(rest, current), harmless=raised.harmless)))
        return []

    def as_raised(self, exception: Value, state: State) -> Raised:
        """An exception, or a class of them, on its way."""
        names = [name for order in self._with_bases(exception, state) for name in order if name != "object"]
        return Raised(None, tuple(dict.fromkeys(names)), value=exception)

    def _handled(
        self, handler: ir.Handler, final: tuple[ir.Stmt, ...], state: State, raised: Raised, frame: Frame
    ) -> list[State]:
        """Run a handler, and what is run at the end of its statement where that is given."""
        if handler.name is not None:
            value = self._caught(raised, handler, state, frame)
            self.bind(handler.name, value, state, frame)
            if raised.outcome is not None and isinstance(atom := only(value), Unknown):
                self.caught_as[atom.sym] = raised.outcome
        frame.handling.append(raised)
        failed = [raised.outcome] if raised.outcome is not None and not raised.harmless else []
        self.handled.extend(failed)
        before, left = len(frame.raises), _exits(frame)
        outside, returned = state.stack, len(frame.returns)
        if raised.missing is not None:
            state.stack = Chain(raised.missing, outside)
        bound = _variables(state, frame) if raised.missing is not None and self._importing else None
        after = self.block(final, self.block(handler.body, [state], frame), frame)
        if raised.missing is not None and bound is not None:
            for current in after:
                _mark(current, frame, bound, raised.missing)
        for leaving in (*after, *(s for s, _ in frame.returns[returned:]), *frame.breaks, *frame.continues):
            leaving.stack = outside
        frame.handling.pop()
        del self.handled[len(self.handled) - len(failed) :]
        if handler.name is not None:
            for current in after:
                # Python deletes it at the end of the handler.
                self.bind(handler.name, unknown(DELETED, frame.module, handler.name), current, frame)
        again = any(r.outcome is raised.outcome and r.launch == raised.launch for _, r in frame.raises[before:])
        if not again:
            self._swallow(raised)
        elif after or _exits(frame) > left:
            self._outlives(raised)
        return after

    def _caught(self, raised: Raised, handler: ir.Handler, state: State, frame: Frame) -> Value:
        """The exception that a handler is for, as far as it is known; nobody knows what failures with CUDA say."""
        is_plain = raised.outcome is None and raised.launch is None and not raised.hidden and raised.names
        if raised.value or not is_plain or not handler.body:
            return raised.value or exceptions.caught(frame.module, handler.body[0].ordinal if handler.body else 0)
        site = Site(frame.module, handler.body[0].ordinal)
        made = exceptions.made(f"builtins.{raised.names[0]}", None, site, state)
        return exceptions.caught(frame.module, handler.body[0].ordinal) if made is None else made

    def attempt(self, name: str, run: Callable[[], Results], frame: Frame) -> tuple[Results, list[State]]:
        """What something gives, and the paths on which it raises an exception of this name, for which Python waits."""
        outer, frame.raises = frame.raises, []
        frame.tries += 1
        given = run()
        frame.tries -= 1
        raised, frame.raises = frame.raises, outer
        caught: list[State] = []
        for state, exception in self._joined_raises(raised):
            if name not in exception.names or exception.hidden:
                frame.raises.append((state, exception))
            else:
                self._swallow(exception)
                caught.append(state)
        return given, caught

    def _joined_raises(self, raised: list[tuple[State, Raised]]) -> list[tuple[State, Raised]]:
        """Paths that bring the same exception to a handler, joined as paths that bring nothing are."""
        if len(raised) < 2:
            return raised
        alike: dict[Hashable, list[tuple[State, Raised]]] = {}
        for state, exception in raised:
            kind = (id(exception.outcome), exception.names, exception.launch, exception.missing, exception.hidden)
            alike.setdefault(kind, []).append((state, exception))
        return [pair for pairs in alike.values() for pair in self._joined_kind(pairs)]

    def _joined_kind(self, raised: list[tuple[State, Raised]]) -> list[tuple[State, Raised]]:
        """The same of exceptions of one kind: a few that say something else are told apart, and of many none."""
        said: dict[Value, list[State]] = {}
        for state, exception in raised:
            said.setdefault(exception.value, []).append(state)
        first = raised[0][1]
        if len(said) > MOST_TOLD_APART:
            said = {(): [state for state, _ in raised]}
        return [(state, replace(first, value=value)) for value, states in said.items() for state in self.joined(states)]

    def _catches(self, handler: ir.Handler, raised: Raised, state: State, frame: Frame) -> bool:
        if handler.type is None or raised.hidden:
            return True
        names = {"BaseException", *raised.names}
        names |= set() if exceptions.ends_process(raised.names) else {"Exception"}
        kinds = handler.type.items if isinstance(handler.type, ir.Display) else (handler.type,)
        if any(spelled(kind) in names for kind in kinds):
            return True
        return any(not names.isdisjoint(self._kinds_in(kind, state, frame)) for kind in kinds)

    def _kinds_in(self, node: ir.Expr, state: State, frame: Frame) -> set[str]:
        """The names of the exceptions that a variable stands for, or those of the tuple that it holds."""
        value = self.lookup(node.id, state, frame.scope) if isinstance(node, ir.Name) else None
        items = [] if value is None else (self.elements(value, state) or [value])
        found = (self._with_bases(item, state) for item in items)
        return {order[0] for orders in found for order in orders if order}

    def _with_bases(self, value: Value, state: State) -> Iterator[list[str]]:
        """The names of classes, each with those that it derives from behind it."""
        for atom in value:
            match atom:
                case Lib(path=path):
                    yield _order_of(path)
                case Ref():
                    found = state.get(atom)
                    if isinstance(found, LibraryObject) and (own := exceptions.names(atom, state)):
                        yield own
                    cls = found.cls if isinstance(found, Instance) else atom
                    if isinstance(state.get(cls), Class):
                        yield [name for entry in self.mro(cls, state) for name in _order_of(entry)]

    def _finally(self, final: tuple[ir.Stmt, ...], states: list[State], returned: int, frame: Frame) -> list[State]:
        """What runs however the statement is left; the paths that ``returned`` before it do not come here."""
        leaving, frame.returns[returned:] = frame.returns[returned:], []
        for current, value in leaving:
            for after in self.block(final, [current], frame):
                frame.returns.append((after, value))
        return self.block(final, states, frame)

    def _with(self, node: ir.With, state: State, frame: Frame) -> list[State]:
        return self._with_items(node, 0, state, frame)

    def _with_items(self, node: ir.With, position: int, state: State, frame: Frame) -> list[State]:
        """The managers from ``position`` on, with the body inside."""
        if position == len(node.items):
            return self.block(node.body, [state], frame)
        expr = node.items[position][0]
        result: list[State] = []
        for current, manager in self.eval(expr, state, frame):
            site = Site(frame.module, expr.ordinal)
            atom = only(manager)
            found = current.get(atom) if isinstance(atom, Ref) else None
            if frame.steps is not None:
                self.keep_manager(node, position, manager, current, frame)
            if isinstance(atom, Ref) and isinstance(found, Generator) and frame.steps is None:
                result.extend(self._around_body(node, position, atom, found, current, frame))
                continue
            if isinstance(found, LibraryObject) and (SUPPRESSED in found.fields or EXPECTED in found.fields):
                result.extend(self._suppressing(node, position, found, current, frame))
                continue
            returned = len(frame.returns)
            swallows = self._may_swallow(found, current)
            outer, frame.raises = frame.raises, [] if swallows else frame.raises
            frame.tries += swallows
            inner = [
                s
                for after, value in self.enter(manager, current, frame, site)
                for s in self._with_body(node, position, after, value, frame)
            ]
            frame.tries -= swallows
            raised, frame.raises = frame.raises, outer
            for leaving, exception in self._joined_raises(raised) if swallows else ():
                result.extend(self._left_by_exception(exception, manager, leaving, frame, site))
            result.extend(s for c in self.joined(inner) for s in self.leave(manager, c, frame, site))
            for i in range(returned, len(frame.returns)):
                after, value = frame.returns[i]
                left = self.leave(manager, after, frame, site)
                if left:
                    frame.returns[i] = (left[0], value)
        return self.joined(result)

    def _left_by_exception(self, raised: Raised, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """The paths that go on behind a ``with`` statement whose body raised, as its manager says."""
        self._outlives(raised)
        found = state.get(atom) if isinstance(atom := only(manager), Ref) else None
        exits = [self.user_method(found, name, state) for name in _EXITS] if isinstance(found, Instance) else []
        methods = [method for method in exits if method is not None]
        fails_here = raised.outcome is not None and raised.launch is None and bool(methods)
        known = raised.outcome is None and raised.launch is None and raised.missing is None
        if raised.hidden or not (known or fails_here):
            frame.raises.append((state, raised))
            return []
        if not methods:
            return [state]
        args = self._told_of(raised, state, site)
        swallowed: list[State] = []
        called = self.call_value((methods[0],), [manager, *args], {}, state, frame, site)
        for after, answer in [r for s, made in called for r in self.awaited(made, s, frame)]:
            verdict, _ = self.truth(answer, after)
            swallowed += [] if verdict is False else [after.clone() if verdict is None else after]
            if verdict is not False:
                self._swallow(raised)
            if verdict is not True and (frame.tries or raised.outcome is not None):
                frame.raises.append((after, raised))
            elif verdict is not True:
                self.record.refused.append(after.facts)
        return swallowed

    def _told_of(self, raised: Raised, state: State, site: Site) -> list[Value]:
        """What ``__exit__`` is told of an exception: its class, the exception itself and where it comes from."""
        named = f"builtins.{raised.names[0]}" if raised.names else ""
        value = raised.value or exceptions.made(named, None, site, state)
        atom = only(value) if value else None
        match state.get(atom) if isinstance(atom, Ref) else None:
            case LibraryObject(type=path):
                kind: Value = (Lib(path),)
            case Instance(cls=cls):
                kind = (cls,)
            case _:
                kind = unknown("exception class", site)
        return [kind, value or unknown("exception", site), unknown("traceback", site)]

    def _around_body(
        self, node: ir.With, position: int, manager: Ref, found: Generator, state: State, frame: Frame
    ) -> list[State]:
        """The body where a generator yields; the rest of that runs also where the body ends by ``return``."""
        given: list[Value] = []
        goes_on = False

        def body(inside: State, value: Value) -> list[State]:
            nonlocal goes_on
            returned = len(frame.returns)
            # What handlers of the generator wait for where it yields.
            waits = self.yielding[-1].tries > frame.tries if self.yielding else False
            outer, frame.raises = frame.raises, [] if waits else frame.raises
            frame.tries += waits
            states = self._with_body(node, position, inside, value, frame)
            frame.tries -= waits
            raised, frame.raises = frame.raises, outer
            if waits:
                self.yielding[-1].raises.extend(raised)
            goes_on = goes_on or bool(states)
            if states:
                return states
            leaving, frame.returns[returned:] = frame.returns[returned:], []
            given.extend(value for _, value in leaving)
            return [state for state, _ in leaving]

        states = [after for after, _ in self.consume(manager, found, state, frame, body)]
        if not given:
            return states
        frame.returns.extend((after.clone() if goes_on else after, union(given)) for after in states)
        return states if goes_on else []

    def _suppressing(
        self, node: ir.With, position: int, manager: LibraryObject, state: State, frame: Frame
    ) -> list[State]:
        """The body of a ``with`` statement that suppresses some exceptions, or expects them."""
        expected = manager.fields.get(EXPECTED)
        kinds = {constant(kind) for kind in self.exact_items(expected or manager.fields[SUPPRESSED], state) or ()}
        outer, guarded = frame.raises, frame.guards_import
        frame.raises = []
        frame.guards_import = guarded or not _IMPORT_ERRORS.isdisjoint(str(kind) for kind in kinds)
        frame.tries += 1
        after = self._with_body(node, position, state, NONE, frame)
        frame.tries -= 1
        frame.guards_import = guarded
        raised, frame.raises = frame.raises, outer
        for current, exception in self._joined_raises(raised):
            if kinds.isdisjoint({"Exception", "BaseException", *exception.names}):
                frame.raises.append((current, exception))
                continue
            if expected is None:
                self._swallow(exception)
            else:
                self._expect(exception)
            after.append(current)
        return after

    def _expect(self, raised: Raised) -> None:
        """A test is about this failure: that of a worker was reported where it failed."""
        self._swallow(replace(raised, harmless=True))
        if raised.launch is not None:
            self.record.expected.add(raised.launch)

    def _swallow(self, raised: Raised) -> None:
        self._outlives(raised)
        if raised.outcome is not None and not raised.harmless:
            told = bool(raised.outcome.launch) and any(raised.outcome is known for known in self.told)
            self.emit(replace(raised.outcome, caught=True, told=told))

    def _may_swallow(self, manager: Object | None, state: State) -> bool:
        """Whether a manager that the program defines may suppress exceptions."""
        methods = [self.user_method(manager, name, state) for name in _EXITS] if isinstance(manager, Instance) else ()
        found = [state.get(leave) for leave in methods if isinstance(leave, Ref)]
        return any(isinstance(each, Closure) and any(map(_gives, each.function.body)) for each in found)

    def _outlives(self, raised: Raised) -> None:
        """A failure of a worker goes no further than here."""
        if raised.launch is not None:
            self.record.outlived.add(raised.launch)

    def _with_body(self, node: ir.With, position: int, state: State, value: Value, frame: Frame) -> list[State]:
        """What runs between a manager's entry and its exit."""
        target = node.items[position][1]
        ready = [state] if target is None else self.assign(target, value, state, frame, node.ordinal)
        return [s for current in self.joined(ready) for s in self._with_items(node, position + 1, current, frame)]

    def enter(self, manager: Value, state: State, frame: Frame, site: Site) -> Results:
        """``manager.__enter__()``; an unknown manager enters as itself, but for one that gives a text."""
        return self._manage(manager, "__enter__", state, frame, site, manager)

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__(None, None, None)``."""
        return [s for s, _ in self._manage(manager, "__exit__", state, frame, site, NONE)]

    def _manage(self, manager: Value, method: str, state: State, frame: Frame, site: Site, default: Value) -> Results:
        result: Results = []
        for i, atom in enumerate(manager):
            current = state if i == len(manager) - 1 else state.clone()
            if isinstance(atom, Ref) and isinstance(found := current.get(atom), Instance):
                function = self.user_method(found, method, current)
                function = function or self.user_method(found, method.replace("__", "__a", 1), current)
                if function is not None:
                    args = [] if method == "__enter__" else [NONE, NONE, NONE]
                    result.extend(self.call_value((Bound(function, atom),), args, {}, current, frame, site))
                    continue
            if isinstance(atom, Ref) and isinstance(made := current.get(atom), Generator) and method == "__enter__":
                result.extend(self._entered(atom, made, current, frame))
                continue
            path = self._method_path(atom, method, current)
            call = None if path is None else self._library_call(path, current, frame, site, [])
            if call is None:
                result.append((current, default if default is not manager else (self._entered_as(atom),)))
                continue
            call.receiver = atom
            result.extend(self.library_call(call))
        return result or [(state, default)]

    def _entered_as(self, manager: Atom) -> Atom:
        match manager:
            case Unknown(sym=("call", *_, str(path))) if self.library.traits.has(f"{path}.__enter__", "gives-texts"):
                return Unknown((manager.sym, ".", "__enter__"))
        return manager

    def _entered(self, manager: Ref, found: Generator, state: State, frame: Frame) -> Results:
        """A generator up to where it yields, as ``ExitStack.enter_context`` leaves it; its rest is not followed."""
        entered: Results = []

        def body(inside: State, value: Value) -> list[State]:
            entered.append((inside, value))
            return []

        self.consume(manager, found, state, frame, body)
        return entered

    def _raised_names(self, made: ir.Expr, kind: Value, state: State, frame: Frame) -> tuple[str, ...]:
        """What handlers may know an exception by: its own name, and those of the classes that it derives from."""
        if not frame.tries or not kind:
            return (spelled(made) or "Exception",)
        names = [name for order in self._with_bases(kind, state) for name in order if name != "object"]
        return tuple(dict.fromkeys((spelled(_called(made)), *names)))

    def _raise(self, node: ir.Raise, state: State, frame: Frame) -> list[State]:
        if node.exc is None and frame.handling:
            frame.raises.append((state, frame.handling[-1]))
            return []
        for current, kind in self._kind_raised(node.exc, state, frame):
            if frame.tries and node.exc is not None and self._is_known_exception(node.exc, kind, current):
                for after, value in self._made_exceptions(node, node.exc, current, frame):
                    self._raises(node, kind, after, frame, value)
                continue
            for after in self._with_arguments(node.exc, current, frame):
                if frame.ends_program(after) and _ends_with_result(node.exc):
                    self.completes(after)
                self._raises(node, kind, after, frame)
        return []

    def _kind_raised(self, made: ir.Expr | None, state: State, frame: Frame) -> Results:
        """What a name stands for that is raised, or makes what is; that of a module is looked for there."""
        called = None if made is None or not frame.tries else _called(made)
        match called:
            case ir.Name(id=name):
                value = self.lookup(name, state, frame.scope)
                if value is None or not any(isinstance(atom, Deferred) for atom in value):
                    return [(state, value or (Lib(f"builtins.{name}"),))]
                return self.eval(called, state, frame)
            case ir.Attr(value=ir.Name(id=owner)) if self._is_module(self.lookup(owner, state, frame.scope), state):
                return self.eval(called, state, frame)
        return [(state, ())]

    def _is_module(self, value: Value | None, state: State) -> bool:
        atom = None if value is None else only(value)
        if isinstance(atom, Ref):
            return isinstance(found := state.get(atom), Scope) and found.kind == "module"
        return isinstance(atom, Deferred) and atom.name is None

    def _is_known_exception(self, made: ir.Expr, kind: Value, state: State) -> bool:
        """Whether what is raised is, or is made by, a class that is known, or something that a variable stands for."""
        atom = only(kind)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Class) and isinstance(atom, Ref):
            return exceptions.is_below(self.mro(atom, state))
        own = isinstance(atom, Lib) and exceptions.kind(atom.path) is not None
        return own or (isinstance(made, ir.Name) and exceptions.is_one(kind, state))

    def _made_exceptions(self, node: ir.Raise, exc: ir.Expr, state: State, frame: Frame) -> Results:
        """The exceptions that are raised, each with its cause."""
        site = Site(frame.module, node.ordinal)
        results: Results = []
        for after, value in self.eval(exc, state, frame):
            atom = only(value)
            is_class = isinstance(atom, Lib) or (isinstance(atom, Ref) and isinstance(after.get(atom), Class))
            results.extend(self.call_value(value, [], {}, after, frame, site) if is_class else [(after, value)])
        for after, value in results if node.cause is not None else ():
            cause = self.lookup(node.cause.id, after, frame.scope) if isinstance(node.cause, ir.Name) else None
            exceptions.with_cause(value, cause or (NONE if _is_none(node.cause) else unknown("cause", site)), after)
        return results

    def _with_arguments(self, made: ir.Expr | None, state: State, frame: Frame) -> list[State]:
        """The paths on which an exception can be made: ``raise SystemExit(main())`` runs the program."""
        states = [state]
        for arg in made.args if isinstance(made, ir.Call) else ():
            if isinstance(arg.value, ir.Call):
                states = [after for current in states for after, _ in self.eval(arg.value, current, frame)]
        return states

    def _raises(self, node: ir.Raise, kind: Value, state: State, frame: Frame, value: Value = ()) -> None:
        names = ("Exception",) if node.exc is None else self._raised_names(node.exc, kind, state, frame)
        outcome, launch = None, None
        if frame.handling and node.exc is not None:
            outcome, launch = frame.handling[-1].outcome, frame.handling[-1].launch
        if outcome is not None or launch is not None or frame.tries:
            hidden = node.exc is not None and not frame.handling and self._hides_kind(node.exc, state, frame)
            frame.raises.append((state, Raised(outcome, names, launch=launch, hidden=hidden, value=value)))
        if not frame.tries:
            self.record.refused.append(state.facts)

    def _hides_kind(self, node: ir.Expr, state: State, frame: Frame) -> bool:
        """Whether something is raised of which its class is not shown, or that stands for several at once."""
        if spelled(_called(node)) in _GROUPS:
            return True
        value = self.lookup(node.id, state, frame.scope) if isinstance(node, ir.Name) else None
        return value is not None and not any(True for _ in self._with_bases(value, state))


def _ends_with_result(node: ir.Expr | None) -> bool:
    """``raise SystemExit(main())``: the program ends with what it was run for."""
    if not isinstance(node, ir.Call) or spelled(node.func) != "SystemExit":
        return False
    return any(isinstance(arg.value, ir.Call | ir.Await) for arg in node.args)


def _is_none(node: ir.Expr | None) -> bool:
    return isinstance(node, ir.Const) and node.value is None


def _called(node: ir.Expr) -> ir.Expr:
    return _called(node.func) if isinstance(node, ir.Call) else node


def _guards_import(node: ir.Try, caught: ir.Expr | None) -> bool:
    """Whether a handler waits for an import to fail: of what catches everything that is seen by how its body begins."""
    if _is_for(_IMPORT_ERRORS, caught):
        return True
    begins = bool(node.body) and isinstance(node.body[0], ir.Import | ir.ImportFrom)
    return begins and (caught is None or _is_for(_ALL_ERRORS, caught))


def _is_for(names: frozenset[str], node: ir.Expr | None) -> bool:
    """Whether a handler is written for one of these exceptions."""
    kinds = node.items if isinstance(node, ir.Display) else (node,)
    return any(k is not None and spelled(k) in names for k in kinds)


def _order_of(entry: Class | str) -> list[str]:
    """The name of a class; of an exception of Python, with what it derives from."""
    path = entry.name if isinstance(entry, Class) else entry
    name = path.rpartition(".")[2]
    known = getattr(builtins, name, None) if path == f"builtins.{name}" else None
    return [each.__name__ for each in known.__mro__] if isinstance(known, type) else [name]


def _gives(statement: ir.Stmt) -> bool:
    """Whether a statement returns something, or may do so, that could be true."""
    if isinstance(statement, ir.Return):
        given = statement.value
        return given is not None and not (isinstance(given, ir.Const) and not given.value)
    return any(map(_gives, inner_statements(statement)))


def _leaves(statement: ir.Stmt) -> bool:
    """Whether a statement may leave what it stands in: a ``finally`` with one ends an exception."""
    if isinstance(statement, ir.Return | ir.Break | ir.Continue):
        return True
    return any(map(_leaves, inner_statements(statement)))


def _exits(frame: Frame) -> int:
    """In how many ways a body has left so far without an exception."""
    return len(frame.returns) + len(frame.breaks) + len(frame.continues)


def _variables(state: State, frame: Frame) -> dict[str, Value] | None:
    """What the variables of a module hold now; None in functions and classes."""
    found = state.get(frame.scope)
    return dict(found.variables) if isinstance(found, Scope) and found.kind == "module" else None


def _mark(state: State, frame: Frame, before: dict[str, Value], missing: TraceStep) -> None:
    """Have what a handler bound say that it stands there for lack of a package.

    The ways through an imported module are joined, and what each of them assumed is forgotten.
    """
    for name, value in (_variables(state, frame) or {}).items():
        if value != before.get(name):
            lacking = tuple(_lacking(atom, name, frame.module, missing) for atom in value)
            state.set_variable(frame.scope, name, lacking)


def _lacking(atom: Atom, name: str, module: str, missing: TraceStep) -> Atom:
    if not isinstance(atom, Const | Lib | Ref):
        return atom
    return Deferred(module, name, missing.site, atom, missing.missing)
