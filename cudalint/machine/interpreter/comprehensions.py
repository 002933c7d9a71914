"""Comprehensions, clause by clause."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.ir.walk import called_in
from cudalint.machine import counting, questions, sets
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import NOTHING_LEFT, Dict, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.keys import as_key
from cudalint.machine.rounds import MOST_ITEMS, MOST_STEPS, few_rounds, is_long, is_plain, numbers_of, told_apart
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import MOST_ALTERNATIVES, Unknown, Value, constant, union, unknown
from cudalint.structs import replace

# How many items of a dict are copied one by one.
_MOST_COPIED = 64
# Stands behind a key that may not be there.
_PERHAPS: Value = (Unknown("perhaps"),)


class Comprehensions(Core):
    """Makes what comprehensions make."""

    def _comprehension_of(self, node: ir.Comprehension, state: State, frame: Frame) -> Results:
        if node.kind != "generator" or not self.stays_unbegun(node):
            return self._comprehension(node, state, frame)
        return self.late_comprehension(node, state, frame, lambda now: self._comprehension(node, now, frame))

    def _comprehension(self, node: ir.Comprehension, state: State, frame: Frame) -> Results:
        # A step, as a loop is one: rounds of comprehensions within one another multiply.
        if not self._take_step():
            return [(s, unknown("comprehension", frame.module, node.ordinal)) for s in self._out_of_steps(state)]
        scope = state.new(
            ("comprehension", frame.module, node.ordinal), Scope({}, frame.scope, frame.module, "function")
        )
        inner = Frame(
            scope, frame.module, frame.function, frame.owner, frame.receiver, raises=frame.raises, tries=frame.tries
        )
        # What is made on one path is in no list of another.
        return [
            result
            for current, iterable in self.eval(node.generators[0].iter, state, _around(inner, state))
            for result in self._gone_through(node, iterable, current, inner)
        ]

    def _gone_through(self, node: ir.Comprehension, iterable: Value, state: State, frame: Frame) -> Results:
        """What a comprehension gives that goes through this."""
        produced: list[Value] = []
        keys: list[Value] = []
        states, exact = self._clause(node, 0, iterable, state, frame, produced, keys)
        results: Results = []
        for after in self.joined(states):
            if node.kind == "dict":
                is_one_loop = len(node.generators) == 1
                made_map = _mapping([as_key(key, after) for key in keys], produced, exact, is_one_loop)
                results.append((after, (after.new(("comp", frame.module, node.ordinal), made_map),)))
                continue
            kind = "iterator" if node.kind == "generator" else node.kind
            listed = exact or (len(node.generators) == 1 and 0 < len(produced) <= MOST_ALTERNATIVES)
            items = sets.distinct(produced, after) if kind == "set" else tuple(produced)
            made = Sequence(kind, items if listed else None, union(produced), open=not exact)
            name = NOTHING_LEFT if made.items == () and self._went_round else "comp"
            results.append((after, (after.new((name, frame.module, node.ordinal), made),)))
        return results

    def _clauses(
        self, node: ir.Comprehension, depth: int, state: State, frame: Frame, produced: list[Value], keys: list[Value]
    ) -> tuple[list[State], bool]:
        if depth == len(node.generators):
            parts = (node.element,) if node.key is None else (node.key, node.element)
            ways = self.eval_all(parts, state, frame)
            if node.key is None:
                # A round makes one element, whichever way it went.
                produced.extend([union(values[-1] for _, values in ways)] if ways else [])
                return [after for after, _ in ways], len(ways) == 1
            for _, values in ways:
                keys.append(values[0])
                produced.append(values[-1])
            return [after for after, _ in ways], len(ways) == 1
        if not self._take_step():
            return self._out_of_steps(state), False
        done: list[State] = []
        exact = True
        for current, iterable in self.eval(node.generators[depth].iter, state, frame):
            ended, sure = self._clause(node, depth, iterable, current, frame, produced, keys)
            exact = exact and sure
            done.extend(ended)
        return self.joined(done), exact

    def _clause(
        self,
        node: ir.Comprehension,
        depth: int,
        iterable: Value,
        state: State,
        frame: Frame,
        produced: list[Value],
        keys: list[Value],
    ) -> tuple[list[State], bool]:
        """One ``for`` that goes through this, and whether it is known which elements there are."""
        known = self.exact_items(iterable, state)
        known = self._exact_keys(iterable, state) if known is None else known
        site = Site(frame.module, node.generators[depth].iter.ordinal)
        most, numbers = _most_rounds(node), numbers_of(iterable, state)
        if numbers is None:
            most = max(most, MOST_STEPS)
        elif most <= MOST_ITEMS:
            numbers = None
        known = known if numbers is None else numbers
        each = self.iterate(iterable, state, frame, site, most) if numbers is None else [(state, numbers)]
        done: list[State] = []
        exact = True
        for after, rounds in each:
            is_whole = known is not None and len(known) == len(rounds)
            ended, sure = self._clause_rounds(node, depth, rounds, after, frame, produced, keys, not is_whole)
            self._went_round = bool(rounds)
            exact = exact and is_whole and sure
            done.extend(ended)
        return self.joined(done), exact

    def _clause_rounds(
        self,
        node: ir.Comprehension,
        depth: int,
        rounds: list[Value],
        state: State,
        frame: Frame,
        produced: list[Value],
        keys: list[Value],
        is_more: bool,
    ) -> tuple[list[State], bool]:
        """The rounds of one ``for``, and whether it is known which elements its tests let through.

        ``is_more``: there are others than these.
        """
        clause = node.generators[depth]
        apart = told_apart(rounds) if clause.tests else rounds
        states, sure = [state], len(apart) == len(rounds)
        few = few_rounds(rounds)
        rounds, was_second = apart, state.second_round
        self.open_loops += is_more
        waiting, begun, i = list(rounds), self.steps, 0
        while waiting:
            costs = len(states) > 1 or is_long(self.steps - begun, i)
            if i and costs and len(few) < len(rounds) and len(waiting) > 1:
                others = [union(waiting)]
                waiting = told_apart(others) if clause.tests else others
                few, rounds, sure = rounds, [*rounds[:i], *others], False
                self.open_loops += not is_more
                is_more = True
            value = waiting.pop(0)
            following: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                self.begins_round(current)
                known, made = len(self.record.asked), len(keys)
                ready = self.assign(clause.target, value, current, frame, node.ordinal)
                passing, stopped, is_let_through = self._through_tests(clause.tests, ready, frame)
                if not is_let_through:
                    # Some items are let through, and others are not: no reader has to be told of this one.
                    self._require_of_item(clause.tests, value, current, frame, tuple(self.record.asked)[known:])
                sure = sure and is_let_through
                following.extend(stopped if sure else ())
                for one in passing:
                    ended, is_whole = self._clauses(node, depth + 1, one, frame, produced, keys)
                    following.extend(ended)
                    sure = sure and is_whole
                if not is_let_through:
                    keys[made:] = [() if is_more else (*key, *_PERHAPS) for key in keys[made:]]
            states = self.joined(following) or states
            i += 1
        self.open_loops -= is_more
        for current in states:
            current.second_round = was_second
        if is_more and len(rounds) > 1 and isinstance(clause.target, ir.Name):
            # What is made in the comprehension, and called later, finds the last one.
            site, name = Site(frame.module, node.ordinal), clause.target.id
            last = counting.after_more(rounds[-2], rounds[-1], name, site)
            for current in states if last != rounds[-1] else ():
                current.set_variable(frame.scope, name, last)
        return states, sure

    def _through_tests(
        self, tests: tuple[ir.Expr, ...], ready: list[State], frame: Frame
    ) -> tuple[list[State], list[State], bool]:
        """The paths that all tests let through, those that one stops, and whether no path goes both ways."""
        stopped: list[State] = []
        is_known = True
        for test in tests:
            sides = [self.branch(test, state, frame) for state in ready]
            is_known = is_known and not any(yes and no for yes, no in sides)
            ready = [state for yes, _ in sides for state in yes]
            stopped.extend(state for _, no in sides for state in no)
        return ready, stopped, is_known

    def _require_of_item(
        self, tests: tuple[ir.Expr, ...], item: Value, state: State, frame: Frame, asked: Iterable[Hashable]
    ) -> None:
        """Of what was asked, take as required what is about an item that is tested."""
        parts = [item, *(self.exact_items(item, state) or ())]
        calls = frozenset(Site(frame.module, at) for test in tests for at in called_in(test))
        for question in asked:
            if any(questions.mentions(question, part) for part in parts) or questions.rests_on(question, calls):
                self.record.asked[question] = replace(self.record.asked[question], required=True)


def _most_rounds(node: ir.Comprehension) -> int:
    """A dict that is copied, or some of its items, is gone through item by item, and what is chosen by plain tests."""
    if node.kind == "dict" and isinstance(node.key, ir.Name) and isinstance(node.element, ir.Name):
        return _MOST_COPIED
    tests = [test for clause in node.generators for test in clause.tests]
    is_short = bool(tests) and len(node.generators) == 1 and all(map(is_plain, (*tests, node.element)))
    return MOST_STEPS if is_short else MOST_ITEMS


def _mapping(keys: list[Value], values: list[Value], exact: bool, is_one_loop: bool) -> Dict:
    """What a comprehension of a dict gives: where it may hold more, what is known of single keys stays."""
    items: dict[Hashable, Value] = {}
    rest: set[Hashable] = set()
    for key, value in zip(keys, values, strict=False):
        found = constant(key)
        if found is ...:
            exact = False
            rest.add(constant(key[:1]) if key[1:] == _PERHAPS else ...)
        else:
            items[found] = value if exact else union([items.get(found, ()), value])
    if exact:
        return Dict(items)
    among = frozenset(rest) if rest and ... not in rest and is_one_loop else None
    return Dict(items if is_one_loop else {}, union(values), exact=False, among=among)


def _around(frame: Frame, state: State) -> Frame:
    """Where what a comprehension goes through first is looked up: in a class body, which sees its own names there."""
    found = state.get(frame.scope)
    parent = found.parent if isinstance(found, Scope) else None
    outer = None if parent is None else state.get(parent)
    is_class = isinstance(outer, Scope) and outer.kind == "class"
    return replace(frame, scope=parent) if is_class and parent is not None else frame
