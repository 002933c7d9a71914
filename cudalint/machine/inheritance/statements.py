"""Statements that are followed further than other runs do: imports, handlers, managers, decorators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine.effects.plain import IDENTITY
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Closure, Instance, LibraryObject, Scope
from cudalint.machine.inheritance.calls import Calls
from cudalint.machine.inheritance.doubts import Why
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.interpreter.statements import LAZY_ANNOTATIONS
from cudalint.machine.joining import merge, merge_imported
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Lib, Ref, Unknown, Value, only, unknown


class Statements(Calls):
    """A machine that runs the imports of all modules when they are imported, and handlers of whatever may be raised."""

    def run_module(self, module: ir.Module, dunder_name: str, state: State, frame: Frame | None = None) -> list[State]:
        """Run the top level of a module in this process."""
        self._functions.update(_function_names(module.body))
        watch = self._watch(state)
        self._where.append(module.name)
        states = super().run_module(module, dunder_name, state, frame)
        for after in states:
            self._gives_names(module, after)
        self._where.pop()
        if watch is not None and not watch.booting:
            watch.loaded[module.name] = [after.clone() for after in states[:2]]
        return states

    def _gives_names(self, module: ir.Module, state: State) -> None:
        """A module's own ``__getattr__`` may be asked for a name when another module imports it."""
        home = Ref(("module", module.name))
        found = state.get(home)
        for atom in found.variables.get("__getattr__", ()) if isinstance(found, Scope) else ():
            self._speculate(atom, state, Frame(home, module.name), Site(module.name, 0))

    def _class_body(self, node: ir.ClassDef, state: State, frame: Frame) -> list[State]:
        return self.block(node.body, [state], frame)

    def _top_level(self, module: ir.Module, state: State, frame: Frame) -> list[State]:
        states = [state]
        for statement in module.body:
            states = self.block((statement,), states, frame)
            if self._importing and len(states) > 1:
                states = merge_imported(states)
        return states

    def act(self, home: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Run all modules that an import reaches: each of them may do something."""
        return [after for after, _ in self.load(home, state, frame, Site(frame.module, ordinal))]

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement."""
        match node:
            case ir.Annotation(value=value) if self.host.lowest >= LAZY_ANNOTATIONS:
                self._some_day(state, lambda copy: self.eval(value, copy, Frame(frame.scope, frame.module, tries=1)))
            case ir.Delete():
                self._deletes_attributes(node, state, frame)
            case ir.Try(handlers=(_, *_)):
                return self._tries(node, state, frame)
            case ir.Match(subject=value):
                self._may_run_of(value, node, state, frame)
            case ir.Raise(exc=(ir.Name() | ir.Attr()) as value):
                self._may_run_of(value, node, state, frame)
            case ir.Assert(message=ir.Expr() as message):
                self._some_day(state, lambda copy: self.eval(message, copy, Frame(frame.scope, frame.module, tries=1)))
            case ir.Raise(exc=ir.Call(args=args)):
                self._some_day(state, lambda copy: self._makes(args, copy, frame))
        return super().statement(node, state, frame)

    def _may_run_of(self, value: ir.Expr, node: ir.Stmt, state: State, frame: Frame) -> None:
        """A class that is raised makes an instance, and a pattern asks its subject for attributes."""
        for current, found in self.eval(value, state.clone(), frame):
            for atom in found:
                self._speculate(atom, current, frame, Site(frame.module, node.ordinal))

    def _makes(self, args: tuple[ir.Arg, ...], state: State, frame: Frame) -> None:
        """The arguments of an exception, of which other runs only want the class, and what calls do."""
        around = Frame(frame.scope, frame.module, tries=1)
        for arg in args:
            if isinstance(arg.value, ir.Call) and not arg.star:
                continue
            for current, value in self.eval(arg.value, state.clone(), around):
                if arg.star:
                    self.spreads(value, Site(frame.module, arg.value.ordinal), current)

    def _tries(self, node: ir.Try, state: State, frame: Frame) -> list[State]:
        """A ``try`` statement; whatever is caught may have been raised by something that the code does not show."""
        caught = [state.clone() for _ in node.handlers]
        after = super().statement(node, state, frame)
        for handler, current in zip(node.handlers, caught, strict=True):
            if handler.name is not None:
                self.bind(handler.name, unknown("exception", frame.module), current, frame)
            handled = self._may_handle(handler, current, frame)
            after.extend(self.block(node.final, handled, frame) if node.final else handled)
        return merge(after)

    def _may_handle(self, handler: ir.Handler, state: State, frame: Frame) -> list[State]:
        """The body of a handler, for something that nothing is seen to raise."""
        return self.block(handler.body, [state], frame)

    def _with_items(self, node: ir.With, position: int, state: State, frame: Frame) -> list[State]:
        if position == len(node.items):
            return super()._with_items(node, position, state, frame)
        site = Site(frame.module, node.items[position][0].ordinal)
        if not isinstance(node.items[position][0], ir.Call):
            self._manages(node.items[position][0], site, state, frame)
        self._managers.append(site)
        after = super()._with_items(node, position, state, frame)
        self._managers.pop()
        self._close(site, state)
        return after

    def _manages(self, manager: ir.Expr, site: Site, state: State, frame: Frame) -> None:
        """A manager that was made elsewhere: what entering it does is unknown."""
        for current, value in self.eval(manager, state.clone(), frame):
            for atom in value:
                if isinstance(atom, Unknown) and not self._is_own(atom, current):
                    self._calls_unknown("", site, current)
                elif atom in IDENTITY:
                    self._note(Why.CALLS, "", site, current, ends=True)

    def _decorate(self, decorator: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        before, self._decorating = self._decorating, Site(frame.module, decorator.ordinal)
        if isinstance(decorator, ir.Name | ir.Attr) and not self._is_accessor(decorator, value, state, frame):
            for current, given in self.eval(decorator, state.clone(), frame):
                self._decorated_by(given, current)
        results = super()._decorate(decorator, value, state, frame)
        scoped = self._scopes.pop(self._decorating, None)
        self._decorating = before
        for after, made in results if scoped is not None else ():
            for atom in made:
                found = after.get(atom) if isinstance(atom, Ref) else None
                if isinstance(found, Closure) and scoped is not None:
                    self._scopes[Site(found.module, found.function.ordinal)] = scoped
        return results

    def _is_accessor(self, decorator: ir.Expr, value: Value, state: State, frame: Frame) -> bool:
        """Whether a decorator only makes a property set, or delete, as well."""
        return isinstance(decorator, ir.Attr) and self._accessor(decorator, value, state.clone(), frame) is not None

    def _decorated_by(self, decorator: Value, state: State) -> None:
        """A decorator without arguments that no model describes may do anything with what it is given."""
        site = self._decorating
        atom = only(decorator)
        if site is None or not isinstance(atom, Lib | Unknown):
            return
        if isinstance(atom, Unknown):
            self._calls_unknown("", site, state)
            return
        effect = self._effect_of(atom.path, None)
        if effect is None:
            self._calls_unknown(shown(atom.path), site, state)
        elif effect.state == "scope":
            self._scopes[site] = (shown(atom.path), effect.felt_by)

    def _truth_of(self, atom: Atom, state: State) -> bool | None:
        match atom:
            case Lib(path=path) if self.library.function(path) is None:
                return None
            case Ref():
                found = state.get(atom)
                if isinstance(found, LibraryObject):
                    return None
                if isinstance(found, Instance) and self.user_method(found, "__bool__", state) is not None:
                    return None
        return super()._truth_of(atom, state)


def _function_names(body: Iterable[ir.Stmt]) -> Iterator[str]:
    """The names of the functions and classes that code defines, whatever they are nested in."""
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function.name
                yield from _function_names(function.body)
            case ir.ClassDef(name=name, body=inner):
                yield name
                yield from _function_names(inner)
            case _:
                yield from _function_names(inner_statements(statement))
