"""Blocks, and statements that only choose what runs next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.ir.yields import from_yield
from cudalint.machine import operators, passed_over
from cudalint.machine.assumptions import Asking
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.heap import Closure, Instance, Scope
from cudalint.machine.interpreter.core import Core
from cudalint.machine.interpreter.spelling import spelled
from cudalint.machine.joining import MOST_STATES
from cudalint.machine.questions import DEVICES, answered, is_option, plain
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Ref, Unknown, Value, only, unknown
from cudalint.structs import replace

# What ``assert`` raises.
_REFUSED = Raised(None, ("AssertionError",))
LAZY_ANNOTATIONS = (3, 14)


class Statements(Core):
    """Runs blocks of statements."""

    def block(self, body: Iterable[ir.Stmt], states: list[State], frame: Frame) -> list[State]:
        """Run statements on every state; what leaves early is gathered in the frame."""
        steps = frame.steps
        for statement in body if steps is None or steps.at is None else from_yield(body, steps.at):
            following: list[State] = []
            for state in states:
                if steps is not None and steps.at is not None:
                    following.extend(self.resumed(statement, state, frame, steps.at))
                else:
                    following.extend(self.statement(statement, state, frame))
            states = self.joined(following)
            if not states:
                break
        return states

    def _expr_stmt(self, node: ir.ExprStmt, state: State, frame: Frame) -> list[State]:
        if isinstance(node.value, ir.Call):
            return [s for s, _ in self._call(node.value, state, frame, statement=True)]
        return [s for s, _ in self.eval(node.value, state, frame)]

    def _annotation(self, node: ir.Annotation, state: State, frame: Frame) -> list[State]:
        """What an annotation does; from Python 3.14 nothing, until something asks for it."""
        if self.host.lowest >= LAZY_ANNOTATIONS:
            return [state]
        return [s for s, _ in self.eval(node.value, state, frame)]

    def _return(self, node: ir.Return, state: State, frame: Frame) -> list[State]:
        if node.value is None:
            frame.returns.append((state, NONE))
            return []
        given = self.kept_value(node.value, state, frame)
        if self.parents:
            is_global = isinstance(node.value, ir.Name) and self._place(node.value, state, frame) is None
            is_none = is_global and any(value == NONE for _, value in given)
            self._gave_none = (node.value, frame.module) if is_none and isinstance(node.value, ir.Name) else None
        frame.returns.extend(given)
        return []

    def _if(self, node: ir.If, state: State, frame: Frame) -> list[State]:
        asked, telling, left = state.facts, state.telling, _number_left(frame)
        known_questions = len(self.record.asked)
        capped = _capped(node)
        option = () if capped is None else self._option(capped, state, frame)
        yes, no = self.branch(node.test, state, frame)
        if no and not frame.tries and node.body and isinstance(node.body[-1], ir.Raise):
            self._note_needs(known_questions, no)
        if yes and no:
            known = set(map(id, asked))
            for current in (*yes, *no):
                current.tells(fact[0] for fact in current.facts if id(fact) not in known)
        if self.record.branches.take(Site(frame.module, node.ordinal), holds=bool(yes), fails=bool(no)):
            self._leave_out(node, (yes or no)[0], frame, takes_body=bool(yes))
        if yes and no and frame.function is not None and frame.function.is_generator:
            frame.undecided.add(node.ordinal)
        if self.parents and node.body and isinstance(node.body[-1], ir.Raise):
            yes = self._refused(node.test, yes, frame, as_none=True)
        taken = self.block(node.body, self.joined(yes), frame)
        if capped is not None and option:
            taken = self._as_option(capped, option, taken, frame)
        after = [*taken, *self.block(node.orelse, self.joined(no), frame)]
        if _number_left(frame) == left:
            # Those that stay apart are told so when they meet.
            for current in after:
                current.telling = telling
        return after

    def _option(self, node: ir.Expr, state: State, frame: Frame) -> Value:
        """What users may give for an option that has a default, where an expression is that."""
        found = self.eval(node, state.clone(), frame)
        value = found[0][1] if len(found) == 1 else ()
        return value if len(value) > 1 and is_option(value) else ()

    def _as_option(self, capped: ir.Expr, option: Value, states: list[State], frame: Frame) -> list[State]:
        """``if args.jobs > most: args.jobs = most``: a number that users may give is that number, or less."""
        result: list[State] = []
        for state in states:
            for after, now in self.eval(capped, state, frame):
                is_unknown = any(isinstance(atom, Unknown) for atom in now) and DEVICES[0] not in now
                result.extend(self.assign(capped, option, after, frame, capped.ordinal) if is_unknown else [after])
        return result

    def _note_needs(self, known: int, left: list[State]) -> None:
        """Of what a test asked first, remember the answers with which alone the program goes on."""
        asked = self.record.asked
        for question in tuple(asked)[known:]:
            answers = {answered(state.facts, question) for state in left}
            if len(answers) == 1:
                asked[question] = replace(asked[question], needs=answers.pop())

    def _leave_out(self, node: ir.If, state: State, frame: Frame, *, takes_body: bool) -> None:
        """Note which functions are called in the branch that is not taken."""
        asked = passed_over.asks_caller(node.test, frame.function)
        beside = () if asked else passed_over.callees(node.orelse if takes_body else node.body)
        called = (found for callee in beside if (found := self._named_function(callee, state, frame)) is not None)
        self.record.branches.leave(Site(frame.module, node.ordinal), called)

    def _named_function(self, callee: ir.Expr, state: State, frame: Frame) -> Site | None:
        """The function of the program that a name stands for, by itself, of a module or of an object."""
        match callee:
            case ir.Name(id=name):
                found = only(self.lookup(name, state, frame.scope) or ())
            case ir.Attr(value=ir.Name(id=owner), attr=name):
                found = self._named_in(only(self.lookup(owner, state, frame.scope) or ()), name, state)
            case _:
                return None
        closure = state.get(found) if isinstance(found, Ref) else None
        return Site(closure.module, closure.function.ordinal) if isinstance(closure, Closure) else None

    def _named_in(self, owner: Atom | None, name: str, state: State) -> Atom | None:
        found = state.get(owner) if isinstance(owner, Ref) else None
        match found:
            case Scope(variables=variables):
                return only(variables.get(name, ()))
            case Instance():
                return self.user_method(found, name, state)
        return None

    def _refused(self, test: ir.Expr, states: list[State], frame: Frame, *, as_none: bool) -> list[State]:
        """Paths that end in a refusal: perhaps as a fresh process finds None where its parent put something."""
        asked = _asked_for_none(test, as_none=as_none)
        if asked is None or frame.tries:
            return states
        given = [result for state in states for result in self.eval(asked, state, frame)]
        if isinstance(asked, ir.Name):
            return [s for state, value in given for s, _ in self._of_main(asked, value, state, frame)]
        return [s for state, value in given for s, _ in self._of_parent(asked, value, state, frame)]

    def _bound(self, name: str, value: Value, state: State, frame: Frame) -> State:
        self.bind(name, value, state, frame)
        return state

    def _break(self, node: ir.Break, state: State, frame: Frame) -> list[State]:
        frame.breaks.append(state)
        return []

    def _continue(self, node: ir.Continue, state: State, frame: Frame) -> list[State]:
        frame.continues.append(state)
        return []

    def _scoping(self, node: ir.Scoping, state: State, frame: Frame) -> list[State]:
        found = state.get(frame.scope)
        if isinstance(found, Scope) and found.kind != "module":
            outside = {**found.outside, **dict.fromkeys(node.names, node.kind)}
            state.store(frame.scope, replace(found, outside=outside, variables=dict(found.variables)))
        return [state]

    def _assert(self, node: ir.Assert, state: State, frame: Frame) -> list[State]:
        asked = self.record.asked
        known = len(asked)
        yes, no = self.branch(node.test, state, frame)
        if self.parents:
            no = self._refused(node.test, no, frame, as_none=False)
        if frame.tries:
            frame.raises.extend((failed, _REFUSED) for failed in no)
        if not frame.tries:
            self.record.refused.extend(failed.facts for failed in no)
            asked.update({question: replace(asked[question], required=True) for question in tuple(asked)[known:]})
        return yes

    def _match(self, node: ir.Match, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, subject in self.eval(node.subject, state, frame):
            result.extend(self._cases(node, subject, current, frame))
        return result

    def _cases(self, node: ir.Match, subject: Value, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        remaining: list[State] = [state]
        here = Site(frame.module, node.subject.ordinal)
        for number, case in enumerate(node.cases):
            following: list[State] = []
            for current in remaining:
                fitting, others = self._fitting(case, subject, current, frame, here)
                following.extend(others)
                for one in fitting:
                    yes, no = self._guarded(case, subject, (here, number), one, frame)
                    following.extend(no)
                    result.extend(self.block(case.body, self.joined(yes), frame))
            if len(result) > MOST_STATES:
                # Else what hundreds of cases leave would be compared each with each at the end.
                result = self.joined(result)
            remaining = self.joined(following)
        return self.joined([*result, *remaining])

    def _fitting(
        self, case: ir.Case, subject: Value, state: State, frame: Frame, here: Site
    ) -> tuple[list[State], list[State]]:
        """The paths on which a pattern may fit, and those on which it may not."""
        if case.irrefutable:
            return [state], []
        if case.test is not None:
            asked = self.record.asked
            known = len(asked)
            self._subjects.append(subject)
            yes, no = self.branch(case.test, state, frame)
            self._subjects.pop()
            whole = Site(frame.module, case.test.ordinal)
            asked.update({one: replace(asked[one], whole=whole, fits=True) for one in tuple(asked)[known:]})
            return yes, no
        verdicts = [self._equals(value, subject, state, frame) for value in case.values]
        if any(verdict for verdict, _ in verdicts):
            return [state], []
        if verdicts and all(verdict is False for verdict, _ in verdicts):
            return [], [state]
        fits = state.clone()
        pairs = zip(case.values, verdicts, strict=True)
        questions = [(value, question) for value, (verdict, question) in pairs if verdict is None]
        for value, question in questions:
            if question is None:
                continue
            if isinstance(value, ir.Const):
                self.record.asked.setdefault(plain(question, True)[0], Asking(here, here, True))
            if len(questions) == 1:
                fits.assume(question, True)
            state.assume(question, False)
        return [fits], [state]

    def _equals(
        self, value: ir.Expr, subject: Value, state: State, frame: Frame
    ) -> tuple[bool | None, Hashable | None]:
        """Whether the subject of a match is a value, or the question that is open."""
        found = self.eval(value, state, frame)
        if not found:
            return None, None
        if self.record.offers.made:
            self.record.offers.compare(subject, found[0][1], found[0][0])
        return self.truth(operators.compare("==", subject, found[0][1], ("case", frame.module, value.ordinal)), state)

    def _guarded(
        self, case: ir.Case, subject: Value, place: tuple[Site, int], state: State, frame: Frame
    ) -> tuple[list[State], list[State]]:
        """The paths on which a pattern that fits is taken, and those on which its guard refuses."""
        if case.whole is not None:
            self.bind(case.whole, subject, state, frame)
        for name in case.parts:
            self.bind(name, unknown("captured", *place, name), state, frame)
        states = [state]
        self._subjects.append(subject)
        for name, part in case.bindings:
            states = [self._bound(name, found, s, frame) for c in states for s, found in self.eval(part, c, frame)]
        self._subjects.pop()
        if case.guard is None:
            return states, []
        branches = [self.branch(case.guard, current, frame) for current in states]
        return [s for yes, _ in branches for s in yes], [s for _, no in branches for s in no]


def _capped(node: ir.If) -> ir.Expr | None:
    """What a statement makes smaller where it is larger than something: ``if n > most: n = most``."""
    match node:
        case ir.If(test=ir.Compare(left=number, op=">" | ">="), body=body, orelse=()):
            pass
        case ir.If(test=ir.Compare(op="<" | "<=", right=number), body=body, orelse=()):
            pass
        case _:
            return None
    match body[-1] if body else None:
        case ir.Assign(targets=(target,)) if isinstance(number, ir.Name | ir.Attr) and spelled(target) == spelled(
            number
        ):
            return number
    return None


def _number_left(frame: Frame) -> int:
    """How many paths have left a block of a call by now, and go on elsewhere."""
    return len(frame.returns) + len(frame.breaks) + len(frame.continues)


def _asked_for_none(test: ir.Expr, *, as_none: bool) -> ir.Name | ir.Attr | None:
    """The name, or the attribute of one, that a test asks for nothing but None, or for anything else."""
    match test:
        case ir.Compare(left=ir.Name() | ir.Attr() as asked, op=op, right=ir.Const(value=None)):
            return asked if op in (("is", "==") if as_none else ("is not", "!=")) else None
        case ir.Not(value=ir.Name() | ir.Attr() as asked) if as_none:
            return asked
        case ir.Name() | ir.Attr() if not as_none:
            return test
    return None
