"""Definitions of functions, and what decorators make of them."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Class, Closure, Generator, Instance, LibraryObject, Scope
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Partial, Ref, Unknown, Value, only, origin
from cudalint.structs import replace

_METHOD_KINDS = {
    "builtins.property": "property",
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "functools.cached_property": "cached",
}
_LEFT_OPEN = Lib("abc.abstractmethod")
_ACCESSORS = frozenset({"setter", "deleter", "getter"})


class Functions(Core):
    """Defines functions."""

    def _function_def(self, node: ir.FunctionDef, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, closure in self._closure(node.function, state, frame, bare=not node.decorators):
            values: Results = [(current, (closure,))]
            for decorator in reversed(node.decorators):
                values = [r for s, v in values for r in self._decorate(decorator, v, s, frame)]
            for after, value in values:
                self.bind(node.bound, value, after, frame)
                result.append(after)
        return result

    def _closure(
        self, function: ir.Function, state: State, frame: Frame, *, bare: bool = False
    ) -> list[tuple[State, Ref]]:
        defaults: list[tuple[str, Value]] = []
        current = state
        for param in function.params:
            if param.default is not None:
                found = self.eval(param.default, current, frame)
                if found:
                    current, value = found[0]
                    defaults.append((param.name, value))
        owner = frame.scope if self._is_class_scope(frame.scope, current) else None
        scope = frame.scope
        made = Closure(function, scope, frame.module, tuple(defaults), owner=owner, bare=bare)
        return [(current, current.new(("def", frame.module, function.ordinal), made))]

    def _is_class_scope(self, scope: Ref, state: State) -> bool:
        found = state.get(scope)
        return isinstance(found, Scope) and found.kind == "class"

    def _decorate(self, decorator: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        if isinstance(decorator, ir.Attr) and decorator.attr in _ACCESSORS:
            changed = self._accessor(decorator, value, state, frame)
            if changed is not None:
                return [(state, changed)]
        result: Results = []
        for current, function in self.eval(decorator, state, frame):
            atom = only(function)
            kind = _METHOD_KINDS.get(self.library.canonical(atom.path)) if isinstance(atom, Lib) else None
            closure = only(value)
            if kind is not None and isinstance(closure, Ref) and isinstance(found := current.get(closure), Closure):
                current.store(closure, replace(found, kind=kind))
                result.append((current, value))
            elif atom == _LEFT_OPEN and isinstance(closure, Ref) and isinstance(found := current.get(closure), Closure):
                current.store(closure, replace(found, left_open=True))
                result.append((current, value))
            elif self._runs_own_code(atom, current):
                site = Site(frame.module, decorator.ordinal)
                made = self.call_value(function, [value], {}, current, frame, site)
                result.extend((s, v if not all(isinstance(a, Unknown) for a in v) else value) for s, v in made)
            elif isinstance(atom, Partial) or self._decorates(atom, current):
                site = Site(frame.module, decorator.ordinal)
                result.extend(self.call_value(function, [value], {}, current, frame, site))
            else:
                self.decorates(function, current, frame, Site(frame.module, decorator.ordinal))
                if isinstance(atom, Unknown) and (package := origin(atom.sym)) is not None:
                    self.keeps_events([value], f"{package}.decorated", current)
                result.append((current, value))
        return result

    def _accessor(self, decorator: ir.Attr, value: Value, state: State, frame: Frame) -> Value | None:
        """``@name.setter``: the property that also sets; None where the name is no property."""
        found = self.eval(decorator.value, state, frame)
        base, function = only(found[0][1]) if len(found) == 1 else None, only(value)
        prop = state.get(base) if isinstance(base, Ref) else None
        if not isinstance(prop, Closure) or prop.kind != "property" or not isinstance(function, Ref):
            return None
        if decorator.attr != "setter":
            return (base,) if base is not None else None
        site = ("setter", frame.module, decorator.ordinal)
        return (state.new(site, replace(prop, setter=function)),)

    def _runs_own_code(self, atom: Atom | None, state: State) -> bool:
        """Whether a decorator is code of the program: a function, a class, an instance, or a method of one.

        A generator that decorates is a manager that ``contextmanager`` made of it.
        """
        function = atom.function if isinstance(atom, Bound) else atom
        return isinstance(function, Ref) and isinstance(state.get(function), Closure | Class | Instance | Generator)

    def _decorates(self, atom: Atom | None, state: State) -> bool:
        """Whether a function or an object of a library means something as a decorator."""
        match atom:
            case Lib(path=path) | Bound(function=Lib(path=path)):
                return self.library.decorates(path)
            case Ref():
                found = state.get(atom)
                return isinstance(found, LibraryObject) and self.library.decorates(f"{found.type}.__call__")
        return False
