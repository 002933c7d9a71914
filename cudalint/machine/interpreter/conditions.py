"""Whether a test holds on a path, and how a path splits where that is not known."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.ir import nodes as ir
from cudalint.machine import counting, enums, mappings, questions
from cudalint.machine.assumptions import asking
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.presence import is_filled
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Member, Rank, Ref, Tensor, Unknown, Value, const, constant


class Conditions(Core):
    """Decides whether values are true, or splits paths."""

    def branch(self, test: ir.Expr, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        """The states in which a test holds, and those in which it does not."""
        if isinstance(test, ir.Not):
            is_turned = False
            while isinstance(test, ir.Not):
                test, is_turned = test.value, not is_turned
            yes, no = self.branch(test, state, frame)
            return (no, yes) if is_turned else (yes, no)
        match test:
            case ir.Bool(op="and", values=values):
                return self._branch_all(values, state, frame)
            case ir.Bool(values=values):
                return self._branch_any(values, state, frame)
        yes, no = [], []
        for current, outcome in self.judged(self.eval(test, state, frame), frame, Site(frame.module, test.ordinal)):
            truth, sym = self.truth(outcome, current)
            if truth is None and sym is None and _is_open(outcome, current):
                sym = ("either", Site(frame.module, test.ordinal))
            if truth is None:
                if sym is not None:
                    self._note_asking(test, sym, frame)
                other = current.clone() if sym is None else current.split(sym)
                self._tell_apart(test, False, other, frame)
                self._tell_apart(test, True, current, frame)
                no.append(other)
                yes.append(current)
            else:
                if sym is not None:
                    self._tell_apart(test, truth, current, frame)
                (yes if truth else no).append(current)
        return yes, no

    def _tell_apart(self, test: ir.Expr, holds: bool, state: State, frame: Frame) -> None:
        """Of several known things that a variable may be it is one for which a test of it is answered so.

        After ``if job is None: return``, a job that is an object or None is the object.
        """
        asked, for_none = _asks_of(test)
        if isinstance(asked, ir.Walrus):
            asked = ir.Name(asked.ordinal, asked.target)
        place = self._place(asked, state, frame) if isinstance(asked, ir.Name | ir.Attr) else None
        value = () if place is None else self.kept_at(place, state)
        if place is None or len(value) < 2 or any(isinstance(atom, Unknown) for atom in value):
            return
        wanted = holds if for_none is None else holds is for_none
        kept = tuple(
            atom
            for atom in value
            if (self._known_truth(atom, state) if for_none is None else atom == Const(None)) is not (not wanted)
        )
        if kept and kept != value:
            self.keep_at(place, kept, state)

    def _known_truth(self, atom: Atom, state: State) -> bool | None:
        return self._truth_of(atom, state) if isinstance(atom, Const | Ref) else None

    def _note_asking(self, test: ir.Expr, sym: Hashable, frame: Frame) -> None:
        """Remember where a question was first asked that a path splits on."""
        question, found = asking(test, frame.module, sym)
        self.record.asked.setdefault(question, found)

    def _branch_all(self, values: tuple[ir.Expr, ...], state: State, frame: Frame) -> tuple[list[State], list[State]]:
        self._nested += 1
        yes, no = [state], []
        for value in values:
            following: list[State] = []
            for current in yes:
                good, bad = self.branch(value, current, frame)
                following.extend(good)
                no.extend(bad)
            yes, no = self.joined(following), self.joined(no)
        self._nested -= 1
        return yes, no

    def _branch_any(self, values: tuple[ir.Expr, ...], state: State, frame: Frame) -> tuple[list[State], list[State]]:
        self._nested += 1
        yes, no = [], [state]
        for value in values:
            following: list[State] = []
            for current in no:
                good, bad = self.branch(value, current, frame)
                yes.extend(good)
                following.extend(bad)
            yes, no = self.joined(yes), self.joined(following)
        self._nested -= 1
        return yes, no

    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true on this path; else the identity to assume something about."""
        verdicts: set[bool | None] = set()
        sym: Hashable | None = None
        for atom in value:
            if isinstance(atom, Unknown | Rank):
                sym = questions.truth_of(atom) if isinstance(atom, Unknown) else questions.truth_of_rank(atom)
                known = _told_truth(atom.sym) if isinstance(atom, Unknown) else None
                known = self._told_package(sym) if known is None else known
                verdicts.add(state.fact(sym) if known is None else known)
            elif isinstance(atom, Bound) and atom.may_be_data:
                # An attribute of a library's object, such as what a shared value holds.
                sym = ("value", atom)
                verdicts.add(state.fact(sym))
            elif isinstance(atom, Lib) and self._may_be_false(atom, state):
                sym = ("value", atom.path)
                verdicts.add(state.fact(sym))
            else:
                known = self._truth_of(atom, state)
                if known is None and (sym := _filling(atom, state)) is not None:
                    known = state.fact(sym)
                verdicts.add(known)
        if len(value) == 1:
            return verdicts.pop(), sym
        if len(verdicts) == 1 and None not in verdicts:
            return verdicts.pop(), None
        if questions.identity(value) is None:
            return None, None
        return state.fact(("any", value)), ("any", value)

    def _told_package(self, sym: Hashable) -> bool | None:
        """Whether a package is installed that ``find_spec`` looks for, where that goes without saying."""
        match sym:
            case (questions.INSTALLED, str(package)) if self.library.is_of_other_hardware(package):
                return False
            case ("not", (questions.INSTALLED, str(package))) if self.library.is_of_other_hardware(package):
                return True
        return None

    def _may_be_false(self, found: Lib, state: State) -> bool:
        """Whether a name of a package that nothing is known of may stand for anything, not for what is always true.

        What a program can do without stands for a function or a class where its import was not refused.
        """
        package, _, rest = found.path.partition(".")
        if not rest or not self.is_unseen(package):
            return False
        return state.fact((questions.INSTALLED, package)) is not True

    def _truth_of(self, atom: Atom, state: State) -> bool | None:
        match atom:
            case Const(value=Member(value=number, cls=cls)):
                return bool(constant(number)) if enums.is_flag(self.mro(cls, state), self.library) else True
            case Const(value=value):
                return bool(value)
            case Ref():
                found = state.get(atom)
                if isinstance(found, Sequence):
                    return None if found.items is None or found.open else bool(found.items)
                if isinstance(found, Dict):
                    return bool(found.items) if found.exact else None
                if isinstance(found, Instance) and self.user_method(found, "__len__", state):
                    return None
                held = mappings.content_of(atom, state)
                return True if held is None else self._truth_of(held, state)
            case Tensor():
                return None
        return True

    def _bool(self, node: ir.Bool, state: State, frame: Frame) -> Results:
        done: Results = []
        going: Results = [(state, ())]
        for i, part in enumerate(node.values):
            last = i == len(node.values) - 1
            following: Results = []
            for current, _ in going:
                for after, value in self.eval(part, current, frame):
                    if last:
                        done.append((after, value))
                        continue
                    truth, sym = self.truth(value, after)
                    stops = node.op == "or"
                    if truth is None:
                        if sym is not None:
                            self._note_asking(part, sym, frame)
                        other = after.clone() if sym is None else after.split(sym, not stops)
                        is_answer = sym is not None and questions.is_answer(value)
                        done.append((other, const(stops) if is_answer else value))
                        following.append((after, value))
                    elif truth is stops:
                        done.append((after, value))
                    else:
                        following.append((after, value))
            going = self.joined_results(following)
        return self.joined_results(done)

    def _not(self, node: ir.Not, state: State, frame: Frame) -> Results:
        yes, no = self.branch(node.value, state, frame)
        return [*((s, const(False)) for s in yes), *((s, const(True)) for s in no)]

    def _if_exp(self, node: ir.IfExp, state: State, frame: Frame) -> Results:
        yes, no = self.branch(node.test, state, frame)
        results: Results = []
        for current in yes:
            results.extend(self.eval(node.body, current, frame))
        for current in no:
            results.extend(self.eval(node.orelse, current, frame))
        return self.joined_results(results)


def _is_open(value: Value, state: State) -> bool:
    """Whether something is one of several things, of which nobody knows which.

    In later rounds of a loop it may stand for all of them, one after the other; and data differ from time to time.
    """
    return len(value) > 1 and not state.second_round and not any(isinstance(atom, Tensor) for atom in value)


def _filling(atom: Atom, state: State) -> Hashable | None:
    """The question whether a container has anything in it, as long as nothing more is put there."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    match found:
        case Sequence(items=items) if isinstance(atom, Ref):
            return ("filled", atom.address, None if items is None else len(items))
        case Dict(items=items) if isinstance(atom, Ref):
            return ("filled", atom.address, len(items))
    return None


def _told_truth(sym: Hashable) -> bool | None:
    """The truth of something unknown that what it is made of tells."""
    known = counting.truth(sym)
    return True if known is None and is_filled(sym) else known


def _asks_of(test: ir.Expr) -> tuple[ir.Expr, bool | None]:
    """What a test is about, and whether it asks if that is None, or if it is not; None where it asks for its truth."""
    match test:
        case ir.Compare(left=left, op="is" | "==" | "is not" | "!=" as op, right=ir.Const(value=None)):
            return left, op in ("is", "==")
    return test, None
