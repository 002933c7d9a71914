"""Loops, in two rounds at most where no more are asked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine import counting, file_questions, questions, turns
from cudalint.machine.assumptions import Facts
from cudalint.machine.counting import Held
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.heap import TAKEN_OF, Dict, Instance, LibraryObject, Object, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.rounds import (
    MOST_STEPS,
    MOST_TURNS,
    ROUNDS,
    few_rounds,
    is_long,
    is_plain,
    numbers_of,
    stand_for_more,
)
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Rank, Ref, Value, const, constant, integer, only, union, unknown
from cudalint.structs import Mutable, field, replace


class _Going(Mutable):
    """How a ``while`` loop goes so far.

    ``decided``: its test had one answer each time. ``finished`` are the paths on which it came to its end, ``supposed``
    what holds on those that went in at first and may not hold afterwards.
    """

    was_second: bool
    decided: bool
    finished: list[State] = field(default_factory=list)
    supposed: set[questions.Fact] = field(default_factory=set)


class Loops(Core):
    """Runs ``for`` and ``while``."""

    def _for(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        done: list[State] = []
        for current, iterable in self.eval(node.iter, state, frame):
            site = Site(frame.module, node.iter.ordinal)
            whole = self._whole_rounds(node, iterable, current)
            if whole is not None:
                done.extend(self._rounds(node, whole, whole, current, iterable, frame, is_whole=True))
                continue
            for after, rounds in self.iterate(iterable, current, frame, site, MOST_STEPS):
                few = self._with_later(node, few_rounds(rounds), after, iterable, frame)
                done.extend(self._rounds(node, max(rounds, few, key=len), few, after, iterable, frame))
        return self.joined(done)

    def _whole_rounds(self, node: ir.For, iterable: Value, state: State) -> list[Value] | None:
        """All rounds of a loop over few numbers that only computes; None of others."""
        numbers = numbers_of(iterable, state)
        is_short = numbers is not None and isinstance(node.target, ir.Name) and all(map(_computes, node.body))
        return numbers if is_short else None

    def _with_later(
        self, node: ir.For, rounds: list[Value], state: State, iterable: Value, frame: Frame
    ) -> list[Value]:
        """The rounds of a loop that stand for more, with the later ones that its body asks for by their number."""
        if not stand_for_more(iterable, state):
            return rounds
        site = Site(frame.module, node.ordinal)
        if isinstance(node.target, ir.Attr):
            # ``for self.step in range(n)``: others ask for it, anywhere, and what they ask holds in some later turn.
            return [*rounds, unknown("turn", site)]
        counted = _counted(node, rounds, state)
        if counted is None:
            return rounds
        name, seen = counted
        tests = self._asked_turns.get(site)
        if tests is None:
            tests = self._asked_turns[site] = turns.tests_of(node.body, name)
        if not tests:
            return rounds

        def numbers(other: str) -> int | None:
            return integer(self.lookup(other, state, frame.scope) or ())

        found = turns.later(tests, name, seen, _end(node.iter, numbers), numbers)
        return [*rounds, *(_at_turn(turn, rounds, state, site) for turn in found)]

    def _rounds(
        self,
        node: ir.For,
        rounds: list[Value],
        few: list[Value],
        state: State,
        iterable: Value,
        frame: Frame,
        is_whole: bool = False,
    ) -> list[State]:
        """A loop with all of its ``rounds`` as long as they are short, and no more than ``few`` of them otherwise.

        ``is_whole``: these are all that there are.
        """
        outer_breaks, outer_continues = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        left: list[State] = []
        states = [state]
        was_second = state.second_round
        told = state.facts
        some = not is_whole and stand_for_more(iterable, state)
        goes_on = not is_whole and self.goes_on(iterable, few, state)
        self.before_loops.append(_lists_of(frame, state) if goes_on else set())
        exact = rounds if is_whole else self.exact_items(iterable, state)
        is_more = exact is None or len(exact) > len(few)
        is_open = exact is None or len(exact) > len(rounds)
        self.open_loops += is_open
        begun, waiting, i, returned = self.steps, list(rounds), 0, len(frame.returns)
        before: Held = {}
        held: Held = {}
        while waiting:
            if i and len(rounds) > len(few) and (len(states) > 1 or is_long(self.steps - begun, i)):
                waiting = [union(waiting)]
            value = waiting.pop(0)
            if frame.steps is not None:
                self.keep_rest(node, waiting, value, some or goes_on, states, frame)
            ready: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                self.begins_round(current)
                ready.extend(self.assign(node.target, value, current, frame, node.ordinal))
            i += 1
            states = self._go_round(node.body, ready, left, frame)
            if not states:
                break
            if not waiting and i < MOST_TURNS and some and self._tries_on(node, states, left, returned, frame):
                waiting = [_one_more(value, i, few)]
            if is_more:
                before, held = held, counting.held(frame.scope, states)
        if i > 1 and (exact is None or len(exact) > i):
            counting.count_on(states, before, held, Site(frame.module, node.ordinal), True)
        self.before_loops.pop()
        self.open_loops -= is_open
        frame.breaks, frame.continues = outer_breaks, outer_continues
        if some:
            states = [s for s in states if not _missed_own_round(few, told, s)] or states
        states = self.block(node.orelse, states, frame)
        for current in (*states, *left):
            current.second_round = was_second
        return self.joined([*states, *left])

    def _go_round(
        self, body: tuple[ir.Stmt, ...], entering: list[State], left: list[State], frame: Frame
    ) -> list[State]:
        """The paths that come to the end of a round; those that break out of it are added to ``left``."""
        states = self.block(body, self.joined(entering), frame)
        states = self.joined([*states, *frame.continues])
        left.extend(frame.breaks)
        frame.breaks, frame.continues = [], []
        return states

    def _tries_on(
        self, node: ir.For | ir.While, states: list[State], left: list[State], returned: int, frame: Frame
    ) -> bool:
        """Whether a loop is written to be left from within, and goes round and round in one way until it is.

        Of one over items that is so only where it tries something: else its rounds are alike.
        """
        if len(states) != 1 or left or len(frame.returns) > returned:
            return False
        in_steps = isinstance(node, ir.While) or _has_try(node.body)
        return in_steps and (_breaks(node.body) or _returns(node.body))

    def _runs_beside(self, states: list[State]) -> None:
        """A loop without an end, in a thread: the one that started it goes on beside it."""
        for thread in self.threads[-1:]:
            for current in states:
                thread.leave(current)

    def _while(self, node: ir.While, state: State, frame: Frame) -> list[State]:
        outer_breaks, outer_continues = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        left: list[State] = []
        states = [state]
        endless = isinstance(node.test, ir.Const) and bool(node.test.value)
        going = _Going(state.second_round, not isinstance(node.test, ir.Const))
        returned = len(frame.returns)
        lists = _lists_of(frame, state)
        # What only computes is looked at when it has come to its end: then all is known that it put somewhere.
        is_short = not endless and is_plain(node.test) and all(map(_computes, node.body))
        is_whole = is_short or self._is_drained(node.test, state, frame)
        held_before = {address: state.at(address) for address in lists} if is_whole else {}
        self.before_loops.append(set() if is_whole else lists)
        self.open_loops += 1
        before: Held = {}
        held: Held = {}
        for i in range(MOST_TURNS):
            goes_round = endless and i >= ROUNDS and self._tries_on(node, states, left, returned, frame)
            if i >= ROUNDS and not going.decided and not goes_round:
                break
            entering = self._entering(node.test, states, i, going, frame)
            if not going.decided and not is_short:
                self.before_loops[-1] = lists
            states = self._go_round(node.body, entering, left, frame)
            before, held = held, counting.held(frame.scope, states)
        counting.count_on(states, before, held, Site(frame.module, node.ordinal), not going.decided)
        self.before_loops.pop()
        if is_whole and (states or not going.decided):
            for current in (*states, *going.finished, *left):
                _open_up(held_before, current)
        self.open_loops -= 1
        frame.breaks, frame.continues = outer_breaks, outer_continues
        if endless:
            after = self._after_endless(node, states, going.finished, left, len(frame.returns) > returned, frame)
        else:
            left_last = [s for current in states for s in self._left_by(node.test, current, frame)]
            after = self.block(node.orelse, self.joined([*left_last, *going.finished]), frame)
        for current in (*after, *left):
            current.second_round = going.was_second
            # A loop that may be entered is: what follows rests on nothing that was true when it was.
            current.facts = tuple(fact for fact in current.facts if fact not in going.supposed)
        return self.joined([*after, *left])

    def _entering(self, test: ir.Expr, states: list[State], turn: int, going: _Going, frame: Frame) -> list[State]:
        """The paths that go into a loop for a turn; what others show is taken down in ``going``."""
        entering: list[State] = []
        for current in states:
            current.second_round = going.was_second or turn > 0
            self.begins_round(current)
            if turn > 0:
                file_questions.has_waited(current)
            known = current.facts
            yes, no = self.branch(test, current, frame)
            going.decided = going.decided and not (yes and no)
            entering.extend(yes)
            if turn > 0 or not yes:
                going.finished.extend(no)
            elif no:
                going.supposed.update(fact for entered in yes for fact in entered.facts if fact not in known)
        return entering

    def _after_endless(
        self,
        node: ir.While,
        states: list[State],
        finished: list[State],
        left: list[State],
        has_returned: bool,
        frame: Frame,
    ) -> list[State]:
        """What follows a loop without an end that some paths ``left``, and others are in after their turns.

        A path that goes round once more leaves later, as others do; where none leaves, this one does not either.
        One within a generator waits where it yields, for as long as nobody asks for more.
        What it breaks or returns upon may come in a round that is not run.
        """
        if left or frame.yields or _breaks(node.body):
            return [*finished, *(_leaving(current, left) for current in states)]
        if not has_returned and _returns(node.body):
            frame.returns.extend((current, unknown("returned", frame.module, node.ordinal)) for current in states)
        elif frame.tries:
            # It is written to end by an exception.
            frame.raises.extend((current, Raised(None, (), hidden=True)) for current in states)
        else:
            self._runs_beside(states)
        return finished

    def _is_drained(self, test: ir.Expr, state: State, frame: Frame) -> bool:
        """Whether a loop ends when a list or a queue is empty that is known whole, and short: all rounds are run."""
        asked = _asked_for_more(test)
        results = [] if asked is None else self.eval(asked, state, frame)
        if len(results) != 1 or results[0][0] is not state:
            return False
        atom = only(results[0][1])
        rows = _rows_in(state.get(atom) if isinstance(atom, Ref) else None, state)
        is_short = bool(rows) and all(row.items is not None and len(row.items) <= MOST_TURNS for row in rows)
        return is_short and not any(row.open for row in rows)

    def _empty(self, test: ir.Expr, state: State, frame: Frame) -> None:
        """A list is empty where a loop ends that goes on as long as there is something in it."""
        for after, value in self.eval(test, state, frame):
            atom = only(value)
            found = after.get(atom) if isinstance(atom, Ref) else None
            if after is state and isinstance(atom, Ref) and isinstance(found, Sequence) and found.kind not in TAKEN_OF:
                state.store(atom, Sequence(found.kind, ()))

    def _left_by(self, test: ir.Expr, state: State, frame: Frame) -> list[State]:
        """How a path leaves a loop after its rounds: where it matters why, by its test."""
        if isinstance(test, ir.Name | ir.Attr):
            self._empty(test, state, frame)
        if not state.process.pending:
            return [state]
        yes, no = self.branch(test, state, frame)
        return no or yes


def _computes(statement: ir.Stmt) -> bool:
    """Whether a statement takes no longer than it is long: it calls nothing but methods that keep something."""
    match statement:
        case ir.Break() | ir.Continue():
            return True
        case ir.Assign(targets=targets, value=value):
            return all(map(_is_quick, (*targets, value)))
        case ir.AugAssign(target=target, value=value):
            return _is_quick(target) and _is_quick(value)
        case ir.ExprStmt(value=value):
            return _is_quick(value)
        case ir.If(test=test, body=body, orelse=orelse):
            return _is_quick(test) and all(map(_computes, (*body, *orelse)))
        case ir.Try(body=body, handlers=handlers, orelse=orelse, final=final):
            handled = [inner for handler in handlers for inner in handler.body]
            return all(map(_computes, (*body, *handled, *orelse, *final)))
    return False


# Methods of what keeps something.
_KEEPING = frozenset(
    {"add", "append", "appendleft", "discard", "extend", "get", "insert", "pop", "popleft", "put", "remove", "update"}
)


def _is_quick(node: ir.Expr) -> bool:
    match node:
        case ir.Call(func=ir.Attr(value=value, attr=attr), args=args):
            return attr in _KEEPING and _is_quick(value) and all(_is_quick(arg.value) for arg in args)
        case ir.Call():
            return False
    return is_plain(node)


def _open_up(before: dict[Hashable, Object | None], state: State) -> None:
    """Lists that a loop changed, in fewer rounds than it may make, may hold others."""
    for address, was in before.items():
        found = state.at(address)
        if isinstance(found, Sequence) and found is not was and found.items is not None and not found.open:
            state.store(Ref(address), replace(found, open=True))


def _leaving(state: State, left: list[State]) -> State:
    """A path that leaves an endless loop later, as others do: where these waited for an answer first, so does it."""
    if state.process.pending and not any(other.process.pending for other in left):
        state.process = replace(state.process, pending=())
    return state


def _missed_own_round(rounds: list[Value], told: Facts, state: State) -> bool:
    """Whether a rank asked in each round of a loop over numbers if this one is its own, and none was.

    The rounds stand for all numbers, and so for all ranks: there is no rank of which none is the own.
    """
    asked: dict[Hashable, set[Hashable]] = {}
    for question, holds in state.facts:
        subject, (op, number) = questions.read(question)
        if isinstance(subject, Rank) and op == "==" and not holds and (question, holds) not in told:
            asked.setdefault(subject, set()).add(number)
    numbers = {constant(value) for value in rounds}
    return any(numbers <= others for others in asked.values())


def _breaks(body: Iterable[ir.Stmt]) -> bool:
    """Whether the body of a loop leaves that loop somewhere."""
    return any(
        isinstance(statement, ir.Break)
        or (not isinstance(statement, ir.For | ir.While) and _breaks(inner_statements(statement)))
        for statement in body
    )


def _has_try(body: Iterable[ir.Stmt]) -> bool:
    return any(isinstance(s, ir.Try) or _has_try(inner_statements(s)) for s in body)


def _one_more(value: Value, turn: int, few: list[Value]) -> Value:
    """What one more round of a loop has: the next number, where it counts, and else what stands for more."""
    numbers = [integer(each) for each in few]
    return const(turn) if numbers == list(range(len(few))) else value


def _returns(body: Iterable[ir.Stmt]) -> bool:
    """Whether the body of a loop leaves its function somewhere."""
    return any(isinstance(s, ir.Return) or _returns(inner_statements(s)) for s in body)


def _asked_for_more(test: ir.Expr) -> ir.Expr | None:
    """What is not empty where a test holds: ``row``, ``len(row)``, ``len(row) > 0``, ``not row.empty()``."""
    match test:
        case ir.Name() | ir.Attr(value=ir.Name()):
            return test
        case ir.Call(func=ir.Name(id="len"), args=args) if len(args) == 1:
            return _asked_for_more(args[0].value)
        case ir.Compare(left=ir.Call() as left, op=">", right=ir.Const(value=0)):
            return _asked_for_more(left)
        case ir.Not(value=ir.Call(func=ir.Attr(value=value, attr="empty"), args=())):
            return _asked_for_more(value)
    return None


def _rows_in(found: object, state: State) -> list[Sequence]:
    """A list, or those by which an object of a library keeps what was put into it."""
    if isinstance(found, Sequence):
        return [found]
    fields = found.fields.values() if isinstance(found, LibraryObject) else ()
    held = (state.get(atom) for value in fields if isinstance(atom := only(value), Ref))
    return [row for row in held if isinstance(row, Sequence)]


def _lists_of(frame: Frame, state: State) -> set[Hashable]:
    """The lists that variables of a function stand for, and those that its objects and dicts have."""
    scope = state.get(frame.scope)
    held = scope.variables.values() if isinstance(scope, Scope) else ()
    found: set[Hashable] = set()
    for atom in (a for value in held for a in value if isinstance(a, Ref)):
        thing = state.get(atom)
        parts: Iterable[Value] = thing.attributes.values() if isinstance(thing, Instance) else ((atom,),)
        if isinstance(thing, Dict):
            parts = (*parts, *thing.items.values())
        found |= {a.address for value in parts for a in value if isinstance(a, Ref)}
    return found


def _counted(node: ir.For, rounds: list[Value], state: State) -> tuple[str, list[int]] | None:
    """The name of a loop's number and the first ones: its variable, or of ``enumerate`` the first of two."""
    target = node.target
    numbers = rounds
    if isinstance(target, ir.Display) and len(target.items) == 2:
        target = target.items[0]
        pairs = [state.get(atom) if isinstance(atom := only(value), Ref) else None for value in rounds]
        numbers = [pair.items[0] if isinstance(pair, Sequence) and pair.items else () for pair in pairs]
    found = [number for value in numbers if (number := integer(value)) is not None]
    return (target.id, found) if isinstance(target, ir.Name) and 0 < len(found) == len(rounds) else None


def _end(iterated: ir.Expr, numbers: turns.Numbers) -> int | None:
    """The number at which ``range`` ends, where that is seen."""
    match iterated:
        case ir.Call(func=ir.Name(id="range"), args=args) if len(args) < 3:
            return turns.number(args[-1].value, {}, numbers) if args else None
    return None


def _at_turn(turn: int, rounds: list[Value], state: State, site: Site) -> Value:
    """The loop's variable at a later turn: its number, or that with what the last round has."""
    atom = only(rounds[-1])
    pair = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(pair, Sequence) or not pair.items:
        return const(turn)
    return (state.new(("turn", site, turn), Sequence(pair.kind, (const(turn), *pair.items[1:]))),)
