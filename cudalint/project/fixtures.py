"""What pytest runs around a test: the fixtures it requests, from its own module or a ``conftest.py`` above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements, last_name
from cudalint.machine.effects.stdlib import parametrized
from cudalint.machine.effects.stdlib.mocks import SKIPPED
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Closure, Generator, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, only
from cudalint.project.entries import conftests
from cudalint.project.program import FileProgram
from cudalint.structs import Frozen, field, replace

Given = Mapping[str, Value]
Test = Callable[[State, Given], list[State]]

_DECORATORS = frozenset({"fixture", "yield_fixture"})
_SET_UP = ("setUpClass", "setup_class", "setUp", "asyncSetUp", "setup_method")
_MOST_NESTED = 12
# What pytest calls once, in this order: before it imports the modules of tests, and when it has them all.
HOOKS_BEFORE = ("pytest_configure", "pytest_sessionstart", "pytest_report_header")
HOOKS_BEHIND = ("pytest_collection_modifyitems", "pytest_collection_finish")


class _Fixture(Frozen):
    """A fixture that was found, as it lies in the state."""

    ref: Ref
    closure: Closure

    @property
    def wanted(self) -> tuple[str, ...]:
        """The fixtures that it asks for itself; one that overrides another of its name is given that one."""
        return tuple(p.name for p in self.closure.function.params if p.name != self.closure.function.name)


class Fixtures(Frozen):
    """Runs the fixtures of a test module's tests; ``frame`` gathers what they raise.

    ``told`` has what a mark of the test tells fixtures by their names.
    """

    files: FileProgram
    machine: Machine
    module: str
    frame: Frame
    told: Given = field(default_factory=dict)

    def around(self, function: ir.Function, state: State, test: Test) -> list[State]:
        """Run a test inside the fixtures that it, or everything in its module, is given, once in each of its ways."""
        own = (p.name for p in function.params if p.name not in ("self", "cls"))
        asked = tuple(dict.fromkeys((*self._for_all(), *self._used(function), *own)))
        ended: list[State] = []
        for case in self._cases(function, state):
            ended.extend(replace(self, told=case.told)._give(asked, case.given, state.clone(), test, ()))
        return ended

    def _used(self, function: ir.Function) -> Iterator[str]:
        """The fixtures that marks of a test, of its class or of its module have it use."""
        module = self.files.module(self.module)
        if module is None or b"usefixtures" not in self.files.sources[self.module].data:
            return
        for mark in (*_marks(module.body), *_decorators(module.body, function)):
            if isinstance(mark, ir.Call) and last_name(mark.func) == "usefixtures":
                yield from (str(a.value.value) for a in mark.args if isinstance(a.value, ir.Const))

    def _cases(self, function: ir.Function, state: State) -> list[parametrized.Case]:
        """The ways in which marks have a test run."""
        module = self.files.module(self.module)
        if module is None or b"parametrize" not in self.files.sources[self.module].data:
            return [parametrized.Case()]
        marks = self._evaluated(_decorators(module.body, function), self.frame, state)
        return parametrized.cases(self.machine, marks, state) or [parametrized.Case()]

    def _evaluated(self, decorators: Iterable[ir.Expr], frame: Frame, state: State) -> list[Value]:
        made = (self.machine.eval(decorator, state, frame)[:1] for decorator in decorators)
        return [value for found in made for _, value in found]

    def _give(
        self, wanted: tuple[str, ...], given: Given, state: State, test: Test, open_: tuple[str, ...]
    ) -> list[State]:
        """Run the fixtures that are left, the first around the others, and the test inside them all."""
        if not wanted:
            return test(state, given)
        name, rest = wanted[0], wanted[1:]
        if name in given or name in open_ or len(open_) > _MOST_NESTED:
            return self._give(rest, given, state, test, open_)
        current, found = self._find(name, state)
        if found is None:
            return self._give(rest, given, current, test, open_)

        def when_ready(ready: State, with_own: Given) -> list[State]:
            def inside(after: State, value: Value) -> list[State]:
                return self._give(rest, {**with_own, name: value}, after, test, open_)

            kwargs = {n: with_own[n] for n in found.wanted if n in with_own}
            return self._run(found, kwargs, ready, inside)

        return self._give(found.wanted, given, current, when_ready, (*open_, name))

    def _run(
        self, found: _Fixture, kwargs: dict[str, Value], state: State, inside: Callable[[State, Value], list[State]]
    ) -> list[State]:
        site = Site(found.closure.module, found.closure.function.ordinal)
        result: list[State] = []
        for after, value in self._called(found, kwargs, state, site):
            atom = only(value)
            made = after.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(made, Generator):
                result.extend(s for s, _ in self.machine.consume(atom, made, after, self.frame, inside))
            else:
                result.extend(inside(after, value))
        return result

    def _called(self, found: _Fixture, kwargs: dict[str, Value], state: State, site: Site) -> Results:
        """What a fixture gives, once for each value that it is told."""
        told = self._told(found, state)
        if not told:
            return self.machine.call_value((found.ref,), [], kwargs, state, self.frame, site)
        results: Results = []
        for param in told:
            current = state.clone()
            given = {**kwargs, "request": parametrized.request(param, current, site)}
            asked = {name: value for name, value in given.items() if name in found.wanted}
            results.extend(self.machine.call_value((found.ref,), [], asked, current, self.frame, site))
        return results

    def _told(self, found: _Fixture, state: State) -> list[Value]:
        """What a fixture is told, by the test or by its own ``params``; nothing where it asks for nothing."""
        if "request" not in found.wanted:
            return []
        closure = found.closure
        if closure.function.name in self.told:
            return [self.told[closure.function.name]]
        decorators = [made for function, made in self._defined(closure.module) if function is closure.function]
        frame = Frame(Ref(("module", closure.module)), closure.module)
        return parametrized.params(self.machine, self._evaluated(decorators, frame, state), state)

    def _find(self, name: str, state: State) -> tuple[State, _Fixture | None]:
        """The nearest fixture of a name: the test's own module first, then one conftest after the other."""
        current = state
        for home in (self.module, *conftests(self.files, self.module)):
            self.files.reads.searched.add(home)
            if name.encode() not in self.files.sources[home].data:
                continue
            for after, module in self.machine.load(home, current, self.frame, Site(self.module, 0))[:1]:
                current = after
                found = self._member(module, name, after)
                if found is not None:
                    return found
        return current, None

    def _member(self, module: Value, name: str, state: State) -> tuple[State, _Fixture] | None:
        atom = only(module)
        scope = state.get(atom) if isinstance(atom, Ref) else None
        value = scope.variables.get(name) if isinstance(scope, Scope) else None
        for current, forced in self.machine.resolve_deferred(value, state, self.frame)[:1] if value is not None else ():
            ref = only(forced)
            closure = current.get(ref) if isinstance(ref, Ref) else None
            if isinstance(ref, Ref) and isinstance(closure, Closure) and self._is_fixture(closure):
                return current, _Fixture(ref, closure)
        return None

    def _is_fixture(self, closure: Closure) -> bool:
        return any(function is closure.function for function, _ in self._defined(closure.module))

    def _for_all(self) -> Iterator[str]:
        """The names of the fixtures that every test is run in, the outermost first."""
        for home in reversed((self.module, *conftests(self.files, self.module))):
            self.files.reads.searched.add(home)
            if b"autouse" in self.files.sources[home].data:
                yield from (function.name for function, decorator in self._defined(home) if _is_for_all(decorator))

    def _defined(self, home: str) -> Iterator[tuple[ir.Function, ir.Expr]]:
        module = self.files.module(home)
        for statement in _flat(module.body if module is not None else ()):
            for decorator in statement.decorators:
                callee = decorator.func if isinstance(decorator, ir.Call) else decorator
                if last_name(callee) in _DECORATORS:
                    yield statement.function, decorator


def hook_of(files: FileProgram, home: ir.Module, name: str) -> Iterator[ir.Function]:
    """The function of a conftest that pytest calls by its name."""
    files.reads.searched.add(home.name)
    if name.encode() in files.sources[home.name].data:
        yield from (s.function for s in _flat(home.body) if s.function.name == name)


def skips_all(machine: Machine, state: State, frame: Frame) -> bool:
    """Whether a module marks all of its tests as skipped."""
    marks = machine.lookup("pytestmark", state, frame.scope)
    if marks is None:
        return False
    listed = machine.exact_items(marks, state)
    return (SKIPPED,) in [marks, *(listed or ())]


def set_up(machine: Machine, instance: Value, state: State, frame: Frame, site: Site) -> State:
    """What a class of tests does before each of them."""
    for name in _SET_UP:
        for after, method in machine.attribute(instance, name, state, frame, site)[:1]:
            state = after
            results = machine.drained(machine.call_value(method, [], {}, state, frame, site), frame)
            state = results[0][0] if results else state
    return state


def _flat(body: Iterable[ir.Stmt]) -> Iterator[ir.FunctionDef]:
    """The functions that a module defines at its top, under conditions too."""
    for statement in body:
        match statement:
            case ir.FunctionDef():
                yield statement
            case ir.ClassDef():
                continue
            case _:
                yield from _flat(inner_statements(statement))


def _decorators(body: Iterable[ir.Stmt], function: ir.Function) -> Iterator[ir.Expr]:
    """The decorators of a test, and of the classes that it is defined in."""
    for statement in body:
        match statement:
            case ir.FunctionDef() if statement.function.ordinal == function.ordinal:
                yield from statement.decorators
            case ir.ClassDef() if function.qualname.startswith(f"{statement.name}."):
                yield from statement.decorators
                yield from _decorators(statement.body, function)
            case ir.FunctionDef() | ir.ClassDef():
                continue
            case _:
                yield from _decorators(inner_statements(statement), function)


def _marks(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    """The marks that a module gives all of its tests: ``pytestmark``."""
    for statement in body:
        if isinstance(statement, ir.Assign) and any(
            isinstance(target, ir.Name) and target.id == "pytestmark" for target in statement.targets
        ):
            value = statement.value
            yield from value.items if isinstance(value, ir.Display) else (value,)


def _is_for_all(decorator: ir.Expr) -> bool:
    if not isinstance(decorator, ir.Call):
        return False
    return any(
        a.keyword == "autouse" and isinstance(a.value, ir.Const) and a.value.value is True for a in decorator.args
    )
