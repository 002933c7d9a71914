"""The machine: the rooms of the interpreter put together, each statement and expression by its kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.interpreter.abandoning import Abandoning
from cudalint.machine.interpreter.assignment import Assignment
from cudalint.machine.interpreter.attributes import Attributes
from cudalint.machine.interpreter.bodies import Bodies
from cudalint.machine.interpreter.callbacks import Callbacks
from cudalint.machine.interpreter.calls import Calls
from cudalint.machine.interpreter.classes import Classes
from cudalint.machine.interpreter.comprehensions import Comprehensions
from cudalint.machine.interpreter.conditions import Conditions
from cudalint.machine.interpreter.coroutines import Coroutines
from cudalint.machine.interpreter.entry import EntryOptions
from cudalint.machine.interpreter.expressions import Expressions
from cudalint.machine.interpreter.functions import Functions
from cudalint.machine.interpreter.generators import Generators
from cudalint.machine.interpreter.imports import Imports
from cudalint.machine.interpreter.items import Items
from cudalint.machine.interpreter.iteration import Iteration
from cudalint.machine.interpreter.lateness import Lateness
from cudalint.machine.interpreter.lineages import Importer
from cudalint.machine.interpreter.loops import Loops
from cudalint.machine.interpreter.operations import Operations
from cudalint.machine.interpreter.program import Host, Program
from cudalint.machine.interpreter.statements import Statements
from cudalint.machine.interpreter.stepping import Stepping
from cudalint.machine.interpreter.unwinding import Unwinding
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Tensor, Unknown, Value
from cudalint.models.library import Library
from cudalint.structs import Frozen


class Machine(
    Statements,
    Assignment,
    Conditions,
    Unwinding,
    Loops,
    Comprehensions,
    Generators,
    Iteration,
    Stepping,
    Lateness,
    Expressions,
    Operations,
    Functions,
    Calls,
    Callbacks,
    Coroutines,
    Classes,
    Attributes,
    Items,
    Bodies,
    Imports,
    Abandoning,
):
    """Runs one entry.

    ``effects`` do what the models say of libraries; rooms reach them through the methods at the end of ``Core``.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting.program, setting.library, setting.main, setting.host, setting.options)
        self.importer = setting.importer
        self.effects = setting.effects

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement."""
        if self._steps >= self._patience and self._leaving is None:
            self.look_for_idle_call(state)
        self._ran.add((frame.module, node.ordinal))
        if not self._take_step():
            left = self._out_of_steps(state)
            if isinstance(node, ir.ImportFrom) and left:
                self.bind_later(node, state, frame)
            return left
        if self.options.watched:
            self._watch_process(Site(frame.module, node.ordinal), state)
        states: list[State]
        self._nested += 1
        match node:
            case ir.Assign():
                states = self._assign(node, state, frame)
            case ir.ExprStmt():
                states = self._expr_stmt(node, state, frame)
            case ir.If():
                states = self._if(node, state, frame)
            case ir.Return():
                states = self._return(node, state, frame)
            case ir.FunctionDef():
                states = self._function_def(node, state, frame)
            case ir.ImportFrom():
                states = self._import_from(node, state, frame)
            case ir.Import():
                states = self._import(node, state, frame)
            case ir.For():
                states = self._for(node, state, frame)
            case ir.Assert():
                states = self._assert(node, state, frame)
            case ir.With():
                states = self._with(node, state, frame)
            case ir.ClassDef():
                states = self._class_def(node, state, frame)
            case ir.Continue():
                states = self._continue(node, state, frame)
            case ir.AugAssign():
                states = self._aug_assign(node, state, frame)
            case ir.Raise():
                states = self._raise(node, state, frame)
            case ir.Try():
                states = self._try(node, state, frame)
            case ir.While():
                states = self._while(node, state, frame)
            case ir.Scoping():
                states = self._scoping(node, state, frame)
            case ir.Declare():
                states = [state]
            case ir.Annotation():
                states = self._annotation(node, state, frame)
            case ir.Break():
                states = self._break(node, state, frame)
            case ir.Delete():
                states = self._delete(node, state, frame)
            case ir.Match():
                states = self._match(node, state, frame)
            case _:
                raise TypeError(f"not a statement: {node!r}")
        self._nested -= 1
        return states

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression, with the states in which it has them."""
        results: Results
        self._nested += 1
        match node:
            case ir.Name():
                results = self._name(node, state, frame)
            case ir.Call() | ir.Attr() | ir.Sub():
                results = self._spine(node, state, frame)
            case ir.Const():
                results = self._const(node, state, frame)
            case ir.Display():
                results = self._display(node, state, frame)
            case ir.Compare():
                results = self._compare(node, state, frame)
            case ir.Bin():
                results = self._bin(node, state, frame)
            case ir.Opaque():
                results = self._opaque(node, state, frame)
            case ir.Slice():
                results = self._slice(node, state, frame)
            case ir.Joined():
                results = self._joined(node, state, frame)
            case ir.Bool():
                results = self._bool(node, state, frame)
            case ir.Not():
                results = self._not(node, state, frame)
            case ir.Unary():
                results = self._unary(node, state, frame)
            case ir.IfExp():
                results = self._if_exp(node, state, frame)
            case ir.DictDisplay():
                results = self._dict_display(node, state, frame)
            case ir.Comprehension():
                results = self._comprehension_of(node, state, frame)
            case ir.Lambda():
                results = self._lambda(node, state, frame)
            case ir.Yield():
                results = self._yield(node, state, frame)
            case ir.Await():
                awaited = self.eval(node.value, state, frame)
                results = [result for after, value in awaited for result in self.awaited(value, after, frame)]
            case ir.Star():
                results = self.eval(node.value, state, frame)
            case ir.Walrus():
                results = self._walrus(node, state, frame)
            case ir.Subject():
                results = [(state, self._subjects[-1])]
            case _:
                raise TypeError(f"not an expression: {node!r}")
        self._nested -= 1
        return results

    def end(self, states: list[State]) -> None:
        """The entry's process ends in these states."""
        for state in states:
            self.effects.process_ends(self, state)
            self.completes(state)

    # -- libraries -------------------------------------------------------------------------------

    def library_call(self, call: Call) -> Results:
        """Do what the model of a function says."""
        self.consultations += self.effects.may_consult(call)
        return self.effects.perform(self, call)

    def _given_away(self, values: Iterable[Value], state: State) -> None:
        self.effects.given_away(self, values, state)

    def _unmodelled(self, call: Call) -> Results:
        return self.effects.unmodelled(self, call)

    def _tensor_attribute(self, tensor: Tensor, name: str, state: State, frame: Frame, site: Site) -> Results:
        return self.effects.tensor_attribute(self, tensor, name, state, frame, site)

    def _tensor_data(self, tensor: Tensor, what: str, state: State, frame: Frame, site: Site) -> Results:
        return self.effects.tensor_data(self, tensor, what, state, frame, site)

    def _unknown_called(self, function: Unknown, state: State, site: Site) -> None:
        match function.sym:
            case (_, ".", str(name)):
                self.effects.unknown_called(self, name, state, site)

    def _unknown_method(self, call: Call) -> Value | None:
        return self.effects.unknown_method(self, call)

    def _after_telling(self, call: Call) -> list[State]:
        return self.effects.after_telling(self, call)

    def _missing_name(self, name: str, state: State, frame: Frame, site: Site) -> Results:
        return self.effects.missing_name(self, name, state, frame, site)

    def _missing_part(self, owner: Ref, key: Hashable, state: State, frame: Frame, site: Site) -> Results | None:
        # What a module reads when it is imported, it read in the parent too: before anything put it there.
        if not self.parents or self._importing:
            return None
        return self.effects.missing_part(self, owner, key, state, frame, site)


class Effects(Protocol):
    """What the machine asks of the effects of libraries."""

    def may_consult(self, call: Call) -> bool:
        """Whether what a model says may look at the process or change it."""

    def perform(self, machine: Machine, call: Call) -> Results:
        """Do what a model says."""

    def unmodelled(self, machine: Machine, call: Call) -> Results:
        """A library function, or a method of a library value, that no model names."""

    def tensor_attribute(
        self, machine: Machine, tensor: Tensor, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """``tensor.name``."""

    def tensor_data(
        self, machine: Machine, tensor: Tensor, what: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """An operation that reads the data of a tensor."""

    def unknown_called(self, machine: Machine, name: str, state: State, site: Site) -> None:
        """A method of this name of something unknown."""

    def unknown_method(self, machine: Machine, call: Call) -> Value | None:
        """What a method of something unknown gives, where more is known of it."""

    def after_telling(self, machine: Machine, call: Call) -> list[State]:
        """The states after a method of something unknown was told of a GPU."""

    def missing_name(self, machine: Machine, name: str, state: State, frame: Frame, site: Site) -> Results:
        """A name that no scope binds."""

    def missing_part(
        self, machine: Machine, owner: Ref, key: Hashable, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """An object lacks an item or attribute, or holds None there; None where that is as it should be."""

    def given_away(self, machine: Machine, values: Iterable[Value], state: State) -> None:
        """What nobody knows has these values from here on."""

    def served(self, machine: Machine, state: State, module: str) -> None:
        """A server that is started from outside has imported a module."""

    def before_answer(
        self, machine: Machine, state: State, frame: Frame, function: ir.Function
    ) -> list[tuple[State, dict[str, Value]]]:
        """What a web application runs before its first request, and what that request gives a function."""

    def before_method(self, machine: Machine, instance: Value, method: str, state: State, frame: Frame) -> list[State]:
        """What a server calls of an instance that it made before it calls this method."""

    def unpickled(self, machine: Machine, state: State, frame: Frame, site: Site, original: Tensor) -> None:
        """A process has unpickled a copy of what lies on a GPU."""

    def process_ends(self, machine: Machine, state: State) -> None:
        """A process ends in this state."""


class Setting(Frozen):
    """What a machine runs an entry in; ``main`` is the module that is its main program.

    Without an ``importer`` it runs all imports itself.
    """

    program: Program
    library: Library
    effects: Effects
    main: str
    host: Host
    options: EntryOptions
    importer: Importer | None = None
