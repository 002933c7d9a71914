"""Callbacks: functions of the program that are given to what nobody knows, which may call them some day."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from cudalint.ir import nodes as ir
from cudalint.ir import own_attributes
from cudalint.ir.walk import inner_statements
from cudalint.machine import hooked, unknowns
from cudalint.machine.classes import Order
from cudalint.machine.frame import Arguments, Frame, Given, Results
from cudalint.machine.heap import EVENTS, HANDED, Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.outcome import OF_INHERITING, OF_LOADERS, Doubt, Kind
from cudalint.machine.questions import NO_GPU
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Partial, Ref, Value, only, unknown, wrapped
from cudalint.structs import replace

# How many callbacks an entry looks at, and how many statements of each.
MOST_CALLBACKS = 8
MOST_CALLBACK_STEPS = 300
# How many functions an application calls when its user does something.
MOST_EVENTS = 16
# How many statements these run in all, beside those of the entry.
MOST_EVENT_STEPS = 1_200
# Whose functions print, compare and keep what they are given: Python's own, and methods that are told by their names.
_OF_PYTHON = frozenset({*sys.stdlib_module_names, "builtins", "?", "rich"})
# On the path that has a GPU, which is the one on which CUDA is used.
_HAS_GPU = (NO_GPU, False)
# What keeps a loader for somebody, by the names that such functions have.
_KEEPING = frozenset({"register", "add", "append", "store", "put", "log", "set", "insert", "save"})
# What goes wrong in what a callback forks, by what its worker inherits, or is sent.
_OF_FORKS = OF_INHERITING | {Kind.CUDA_TO_FORK}
# How deep lists and dicts are looked into for loaders.
_DEEPEST = 2
# How many statements are looked at of a function that may have run before.
MOST_EARLIER_STEPS = 700


class Callbacks(Core):
    """Runs each of them once, on a copy, on steps of its own, as if it were called at once.

    That is done where this process, or the one that it was forked from, used CUDA on all ways: whether a callback is
    called is open, and one open thing is enough. What it does to this process is forgotten, and so is that it ran where
    nothing goes wrong, unless the start method is settled: it is then a function without a known caller, like others.
    """

    def hands_over(
        self,
        values: Iterable[Value],
        state: State,
        frame: Frame,
        site: Site,
        function: str | None = None,
        is_called: bool = False,
    ) -> None:
        """An unknown function, or an object that nobody knows, is given these values; ``function`` is its name.

        ``is_called``: what is given is known to be called, so that it is looked at wherever it leads.
        """
        if not self.options.uses_gpu:
            return
        values = tuple(values)
        if function is not None:
            self.keeps_events(values, function, state)
        only_looks = function is not None and self._only_looks(function)
        if self.messages.any_made and not only_looks:
            self._given_away(values, state)
        for value in values:
            for given in value if not only_looks else ():
                self._goes_through(given, state, frame, site)
                unknowns.may_change(given, state)
                if function is not None:
                    _fill(given, state)
                    self._changes(given, state)
            for atom in (one for given in value for one in self._callables(given, state)):
                found = self._callback(atom, state)
                if found is None or (found.function.is_generator and self.options.in_test):
                    # pytest goes through a generator that is a fixture, and otherwise only its test does.
                    continue
                if not is_called and not self._may_matter(found):
                    continue
                # What comes of it depends on what the process did before.
                self.consultations += 1
                if not _is_marked(state.process):
                    _keep(atom, state, function)
                elif not state.facts and self._is_new(found):
                    self._calls_back(atom, found, state, frame, site, "hands over {}, which may be called later")
        if function is not None and not only_looks and state.process.driver is not None and not state.process.forked:
            self._comes_back_to(state, frame, site)

    def may_run_hooks(
        self,
        called: Iterable[Atom],
        state: State,
        frame: Frame,
        site: Site,
        kind: str | None = None,
        method: str | None = None,
    ) -> None:
        """What is called, or given to a call, may be a module with hooks, or hold one; ``kind``: which ones run.

        ``method``: what is called is this method of it.
        """
        if not self.options.uses_gpu or state.facts or not _is_marked(state.process):
            return
        for hook in hooked.pending(state):
            if method is not None and not hooked.is_run_by(hook, method):
                continue
            if kind not in (None, hook.kind) or not any(hooked.runs_in(hook, atom, state) for atom in called):
                continue
            self.consultations += 1
            for atom in hook.runs:
                found = self._callback(atom, state)
                if found is not None and self._is_new(found):
                    self._calls_back(atom, found, state, frame, site, "may run the hook {}")

    def is_dropped(self, function: Value, state: State) -> None:
        """Whatever may have called a function that was handed over lets go of it: it is none without a known caller."""
        for closure in (found for atom in function if (found := self._callback(atom, state)) is not None):
            self.record.entered.add(Site(closure.module, closure.function.ordinal))

    def calls_now(self, path: str, given: Given) -> list[State] | None:
        """The paths after a function of a library has called what it is given; None where it calls nothing so soon."""
        values = (*given.args, *given.kwargs.values())
        functions = [value for value in values if any(self._runs_own(atom, given.state) for atom in value)]
        if not functions or not self.library.traits.has(self.library.canonical(path), "calls-at-once"):
            return None
        states = [given.state]
        for function in functions:
            states = [
                after
                for state in states
                for after, _ in self.drained(
                    self.call_value(function, [], {}, state, given.frame, given.site, is_open=True), given.frame
                )
            ]
        return states

    def called_one(self, args: list[Value], state: State) -> Atom | None:
        """The function of the program that is all that something is given."""
        function = only(args[0]) if len(args) == 1 else None
        return function if function is not None and self._runs_own(function, state) else None

    def _runs_own(self, atom: Atom, state: State) -> bool:
        return self._callback(wrapped(atom) or atom, state) is not None

    def _may_matter(self, closure: Closure) -> bool:
        """Whether something that a rule judges may start in a function, or in one of another module that it names.

        A test has few steps, which what it imports for the sake of its callbacks would take, and an import that hands
        over one that matters is not shared.
        """
        module = closure.module
        if self.program.may_launch(module):
            return True
        looks_on = not self.options.in_test and not self._importing
        return looks_on and self.program.settles(module, closure.function)

    def _comes_back_to(self, state: State, frame: Frame, site: Site) -> None:
        """What was handed over before CUDA was used may be called by whatever nobody knows that is called after it.

        It may also have been called before, and never again.
        """
        kept = state.get(HANDED)
        if not isinstance(kept, Sequence) or not all(fact == _HAS_GPU for fact in state.facts):
            return
        for atom in (one for value in kept.items or () for one in value):
            found = self._callback(atom, state)
            if found is not None and self._is_new(found):
                before = len(self.record.outcomes)
                self._calls_back(atom, found, state, frame, site, "may call {}, which was handed over before")
                self.record.outcomes[before:] = [
                    replace(one, certain=False, doubt=Doubt.CALLER) for one in self.record.outcomes[before:]
                ]

    def at_any_time(self, state: State, run: Callable[[], Results]) -> Results:
        """Run what may be called again by then, when the process did something else.

        Where nothing goes wrong, it stays a function without a known caller, like others; it is left at that where the
        path assumes something, since when it is called is open already.
        """
        if state.facts:
            return [(state, unknown("later"))]
        entered, before = set(self.record.entered), len(self.record.outcomes)
        results = run()
        if len(self.record.outcomes) == before and not _is_settled(state.process):
            self.record.entered = entered
        return results

    def keeps_events(self, values: Iterable[Value], name: str, state: State) -> None:
        """What is called ``name`` is given functions of the program, which it may keep for a main loop."""
        if not self.options.uses_gpu or not self.library.traits.has(name, "kept-for-events"):
            return
        for atom in (one for value in values for given in value for one in self._callables(given, state)):
            if self._callback(atom, state) is not None:
                _keep_event(atom, state)

    def runs_events(self, state: State, run: Callable[[Iterable[Value]], list[State]]) -> list[State]:
        """The paths after the main loop of an application, which calls what was handed to it.

        Kept is what depends on what was called before; where nothing is, what it calls stays without a known caller.
        Where that takes more steps than it may, the program goes on as if nothing had been called.
        """
        kept = state.get(EVENTS)
        left = MOST_EVENT_STEPS - self.steps_aside
        if not isinstance(kept, Sequence) or not kept.items or left <= 0:
            return [state]
        functions, idle, entered = kept.items, state.clone(), set(self.record.entered)
        results, found = self._keeping(_OF_FORKS, left, lambda: [(one, ()) for one in run(functions)])
        if not found and not _is_settled(state.process):
            self.record.entered = entered
        return [idle] if results is None else [one for one, _ in results]

    def _only_looks(self, function: str) -> bool:
        """Whether a function is known, and none of those that train: of the standard library, or by what it leaves."""
        home, _, name = function.rpartition(".")
        is_of_python = home.partition(".")[0] in _OF_PYTHON
        return name in _KEEPING or (is_of_python and self.library.process_effect(function) is not None)

    def _changes(self, given: Atom, state: State) -> None:
        """A library that nobody knows calls the methods of an object whose class it is the base of: what they set and
        fill may be so from here on."""
        found = state.get(given) if isinstance(given, Ref) else None
        if not isinstance(given, Ref) or not isinstance(found, Instance):
            return
        order = self.mro(found.cls, state)
        if not any(isinstance(entry, str) and self._is_unseen(entry) for entry in order):
            return
        changed = _written(order, state)
        attributes = dict(found.attributes)
        for name, value in found.attributes.items():
            for atom in value:
                _fill(atom, state)
            if name in changed:
                attributes[name] = (*value[:3], *unknown("changed", given, name))
        state.store(given, replace(found, attributes=attributes))

    def _is_unseen(self, base: str) -> bool:
        package = base.partition(".")[0]
        return package not in _OF_PYTHON and not self.library.describes(package)

    def _goes_through(self, atom: Atom, state: State, frame: Frame, site: Site, depth: int = 0) -> None:
        """A loader is made to be gone through: whoever is given one does so, also by way of a list or a dict."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        match found:
            case Sequence(items=tuple(items)) if depth < _DEEPEST:
                inside: Iterable[Value] = items
            case Dict(items=named) if depth < _DEEPEST:
                inside = named.values()
            case LibraryObject(type=kind):
                inside = ()
                rounds = f"{kind}.__iter__"
                spec = self.library.function(rounds)
                if spec is not None and spec["does"] == "loader.iter":
                    self._is_gone_through(atom, rounds, found.site, state, frame, site)
            case _:
                inside = ()
        for one in (given for value in inside for given in value):
            self._goes_through(one, state, frame, site, depth + 1)

    def _is_gone_through(self, loader: Atom, rounds: str, made: Site, state: State, frame: Frame, site: Site) -> None:
        self.consultations += 1
        default = state.process.default_device
        matters = _is_marked(state.process) or (default is not None and default.is_gpu)
        if state.facts or not matters or made in self.called_back or self.options.purpose.prepares:
            return
        self.called_back.add(made)
        copy = state.clone()
        copy.stack = self.chain(copy, site, "hands over the loader, to be gone through")
        self._keeps_of(OF_LOADERS, (Bound(Lib(rounds), loader),), copy, frame, site)

    def _callables(self, atom: Atom, state: State) -> Iterable[Atom]:
        """What may be called of a value: itself, the methods of an object whose class a library knows, or of a list."""
        found = state.get(atom) if isinstance(atom, Ref) else None
        match found:
            case Sequence(items=tuple(items)):
                given = (part for item in items for part in item)
                return [one for part in given if not self._is_row(part, state) for one in self._callables(part, state)]
            case Instance():
                return () if self.library_base(found.cls, state) is None else self._hooks(atom, found, state)
        return (atom,)

    def _is_row(self, atom: Atom, state: State) -> bool:
        return isinstance(atom, Ref) and isinstance(state.get(atom), Sequence)

    def _hooks(self, atom: Atom, instance: Instance, state: State) -> Iterable[Atom]:
        """The methods that a library may call: public ones, and private ones that the program itself never does."""
        scopes = (state.get(cls.scope) for cls in self.mro(instance.cls, state) if isinstance(cls, Class))
        own = [item for scope in scopes if isinstance(scope, Scope) for item in scope.variables.items()]
        methods = [(name, ref) for name, value in own if isinstance(ref := only(value), Ref)]
        closures = [found for _, ref in methods if isinstance(found := state.get(ref), Closure)]
        for name, ref in methods:
            if name.startswith("__"):
                continue
            if not name.startswith("_") or not _is_called(name, closures):
                yield Bound(ref, atom)

    def _callback(self, atom: Atom, state: State) -> Closure | None:
        """The function of the program that a callable runs."""
        match atom:
            case Partial(function=(inner,)):
                return self._callback(inner, state)
            case Bound(function=Ref() as ref) | (Ref() as ref):
                found = state.get(ref)
                return found if isinstance(found, Closure) and found.kind == "function" else None
        return None

    def _is_new(self, closure: Closure) -> bool:
        """Whether a function was not run by this entry."""
        place = Site(closure.module, closure.function.ordinal)
        if place in self.called_back or place in self.record.entered or len(self.called_back) >= MOST_CALLBACKS:
            return False
        self.called_back.add(place)
        return True

    def _forget_counts(self, atom: Atom, closure: Closure, state: State) -> None:
        """What a method counts on its object is any number by the time that it is called."""
        receiver = atom.receiver if isinstance(atom, Bound) else None
        found = state.get(receiver) if isinstance(receiver, Ref) else None
        if not isinstance(receiver, Ref) or not isinstance(found, Instance):
            return
        counted = _counted(closure.function.body).intersection(found.attributes)
        if counted:
            unknowns = {name: unknown("count", receiver.address, name) for name in counted}
            state.store(receiver, replace(found, attributes={**found.attributes, **unknowns}))

    def earlier(
        self, function: Value, given: Arguments, state: State, frame: Frame, site: Site, says: str
    ) -> list[State] | None:
        """The paths on which a function ran before, on steps of its own; None where it came to no end within these.

        What goes wrong in it is noted where it is run for its own sake.
        """
        record, self.record = self.record, self.record.copy()
        copy = state.clone()
        copy.stack = self.chain(copy, site, says)
        inner = Frame(frame.scope, frame.module)
        results = self._aside(
            MOST_EARLIER_STEPS, lambda: self.drained(self.call_value(function, [], given, copy, inner, site), inner)
        )
        is_whole = not self.record.spent
        self.record = record
        for after, _ in results:
            after.stack = state.stack
        return [after for after, _ in results] if is_whole else None

    def _aside(self, most: int, call: Callable[[], Results]) -> Results:
        """Call on so many steps beside those of the entry, and as if nothing else were running."""
        steps, most_steps, begun = self._steps, self._most_steps, self._begun
        self._most_steps, self._begun = steps + most, []
        results = call()
        self.steps_aside += self._steps - steps
        self._steps, self._most_steps, self._begun = steps, most_steps, begun
        return results

    def _calls_back(self, atom: Atom, closure: Closure, state: State, frame: Frame, site: Site, says: str) -> None:
        entered = set(self.record.entered)
        copy = state.clone()
        self._forget_counts(atom, closure, copy)
        label = "a lambda" if closure.function.is_lambda else f"{closure.function.name}()"
        copy.stack = self.chain(copy, site, says.format(label))
        found = self._keeps_of(_OF_FORKS, (atom,), copy, frame, site)
        if not found and not _is_settled(state.process):
            self.record.entered = entered

    def _keeps_of(self, kinds: frozenset[Kind], function: Value, copy: State, frame: Frame, site: Site) -> bool:
        """Call a function on a copy, and keep what goes wrong in it, of these kinds; whether something does."""
        inner = Frame(frame.scope, frame.module)
        # Who calls back a generator goes through what it gives.
        _, found = self._keeping(
            kinds,
            MOST_CALLBACK_STEPS,
            lambda: self.drained(self.call_value(function, [], {}, copy, inner, site), inner),
        )
        return found

    def _keeping(self, kinds: frozenset[Kind], most: int, call: Callable[[], Results]) -> tuple[Results | None, bool]:
        """Call aside, and of what goes wrong keep these kinds: the results, and whether something does.

        None where there were more steps than ``most``: the entry goes on as if it had not been cut.
        """
        record = self.record
        cut, spent, before = record.cut, record.spent, len(record.outcomes)
        results = self._aside(most, call)
        is_whole = not record.spent
        record.cut, record.spent = cut, spent
        found = [o for o in record.outcomes[before:] if o.kind in kinds and not o.unsaid]
        record.outcomes[before:] = found
        return (results if is_whole else None), bool(found)


def _is_called(method: str, closures: Iterable[Closure]) -> bool:
    """Whether one of a class's other methods calls this one."""
    return any(closure.function.mentions({method}) for closure in closures if closure.function.name != method)


def _keep(atom: Atom, state: State, function: str | None) -> None:
    """Remember a callback that is handed over while CUDA has not been used; where a model takes it, that says when."""
    if function is None:
        return
    found = state.get(HANDED)
    kept = found.items or () if isinstance(found, Sequence) else ()
    if (atom,) not in kept and len(kept) < MOST_CALLBACKS:
        state.store(HANDED, Sequence("list", (*kept, (atom,))))


def _keep_event(atom: Atom, state: State) -> None:
    """Remember a function that an application calls when its user does something."""
    found = state.get(EVENTS)
    kept = found.items or () if isinstance(found, Sequence) else ()
    if (atom,) not in kept and len(kept) < MOST_EVENTS:
        state.store(EVENTS, Sequence("list", (*kept, (atom,))))


def _is_settled(process: Process) -> bool:
    """Whether the program has set its start method, which is then the same whenever a callback runs."""
    return any(method.where is not None for _, method in process.methods)


def _is_marked(process: Process) -> bool:
    """Whether CUDA's use decides what comes of a callback: by this process, or by the one that it was forked from."""
    return process.driver is not None or (process.forked and process.poison is not None)


def _counted(body: Iterable[ir.Stmt]) -> frozenset[str]:
    """The attributes that statements add to."""
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ir.AugAssign) and isinstance(statement.target, ir.Attr):
            names.add(statement.target.attr)
        names |= _counted(inner_statements(statement))
    return frozenset(names)


def _written(order: Order, state: State) -> frozenset[str]:
    """The attributes that methods of a class and of those above it set once an object is made."""
    scopes = [state.get(entry.scope) for entry in order if isinstance(entry, Class)]
    named = [value for scope in scopes if isinstance(scope, Scope) for value in scope.variables.values()]
    found = [state.get(atom) for value in named for atom in value if isinstance(atom, Ref)]
    methods = [one.function for one in found if isinstance(one, Closure) and one.function.name != "__init__"]
    return frozenset[str]().union(*map(own_attributes.written, methods))


def _fill(given: Atom, state: State) -> None:
    """An empty container that nobody knows what is given to is mostly given there to be filled."""
    found = state.get(given) if isinstance(given, Ref) else None
    match found:
        case Sequence(kind="list" | "set", items=(), open=False) if isinstance(given, Ref):
            state.store(given, replace(found, items=None, element=unknown("filled", given)))
        case Dict(items=items, exact=True, view=None) if isinstance(given, Ref) and not items:
            state.store(given, replace(found, exact=False))
