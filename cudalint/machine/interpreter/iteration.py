"""Loops, comprehensions and generators, in two rounds at most."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import replace
from itertools import zip_longest

from cudalint.ir import nodes as ir
from cudalint.ir.walk import called_in, inner_statements
from cudalint.machine import counting, enums, file_questions, mappings, questions, sets, turns
from cudalint.machine.assumptions import Facts
from cudalint.machine.counting import Held
from cudalint.machine.frame import Around, Call, Frame, Raised, Results, Steps
from cudalint.machine.heap import (
    NOTHING_LEFT,
    TAKEN_OF,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.interpreter.core import Core
from cudalint.machine.interpreter.room import room
from cudalint.machine.keys import as_key, of_key
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    EACH,
    MOST_ALTERNATIVES,
    NONE,
    Atom,
    Bound,
    Partial,
    Rank,
    Ref,
    Task,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    integer,
    only,
    union,
    unknown,
)

ROUNDS = 2
MOST_TURNS = 6
# Other items: of four questions, such as which variable a launcher has set, a path would forget the first.
MOST_ITEMS = 3
# Functions and objects that a loop goes through one by one, and what it goes through in short rounds that ask nothing.
MOST_STEPS = 12
# The steps of a short round, and those that a loop may take in all before what is left of it is one round.
MOST_OF_ROUND = 3
MOST_OF_LOOP = 48
# How many items of a dict are copied one by one.
_MOST_COPIED = 64
# How deep an unknown caller looks into the objects, rows and mappings that it is given.
_MOST_HELD = 3
# Stands behind a key that may not be there.
_PERHAPS: Value = (Unknown("perhaps"),)


@room
class Iteration(Core):
    """Goes through what can be iterated."""

    def _for(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        done: list[State] = []
        for current, iterable in self.eval(node.iter, state, frame):
            site = Site(frame.module, node.iter.ordinal)
            whole = self._whole_rounds(node, iterable, current)
            if whole is not None:
                done.extend(self._rounds(node, whole, whole, current, iterable, frame, is_whole=True))
                continue
            for after, rounds in self.iterate(iterable, current, frame, site, MOST_STEPS):
                few = self._with_later(node, _few_rounds(rounds), after, iterable, frame)
                done.extend(self._rounds(node, max(rounds, few, key=len), few, after, iterable, frame))
        return self.joined(done)

    def _whole_rounds(self, node: ir.For, iterable: Value, state: State) -> list[Value] | None:
        """All rounds of a loop over few numbers that only computes; None of others."""
        numbers = _numbers_of(iterable, state)
        is_short = numbers is not None and isinstance(node.target, ir.Name) and all(map(_computes, node.body))
        return numbers if is_short else None

    def _with_later(
        self, node: ir.For, rounds: list[Value], state: State, iterable: Value, frame: Frame
    ) -> list[Value]:
        """The rounds of a loop that stand for more, with the later ones that its body asks for by their number."""
        if not self._stand_for_more(iterable, state):
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
        some = not is_whole and self._stand_for_more(iterable, state)
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
            if i and len(rounds) > len(few) and (len(states) > 1 or self._is_long(begun, i)):
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
            states = self.block(node.body, self.joined(ready), frame)
            states = self.joined([*states, *frame.continues])
            frame.continues = []
            left.extend(frame.breaks)
            frame.breaks = []
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

    def _is_long(self, begun: int, rounds: int) -> bool:
        """Whether so many rounds of a loop took so many steps that no more are run one by one."""
        return self.steps - begun > max(rounds * MOST_OF_ROUND, MOST_OF_LOOP)

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

    def goes_on(self, iterable: Value, rounds: list[Value], state: State) -> bool:
        """Whether a loop may make other rounds than these."""
        exact = self.exact_items(iterable, state)
        return exact is None or len(exact) != len(rounds)

    def _stand_for_more(self, iterable: Value, state: State) -> bool:
        """Whether the rounds of a loop stand for more of their kind."""
        atom = only(iterable)
        found = state.get(atom) if isinstance(atom, Ref) else None
        return isinstance(found, Sequence) and found.open

    def _while(self, node: ir.While, state: State, frame: Frame) -> list[State]:
        outer_breaks, outer_continues = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        left: list[State] = []
        finished: list[State] = []
        was_second = state.second_round
        states = [state]
        decided = not isinstance(node.test, ir.Const)
        endless = isinstance(node.test, ir.Const) and bool(node.test.value)
        returned = len(frame.returns)
        lists = _lists_of(frame, state)
        # What only computes is looked at when it has come to its end: then all is known that it put somewhere.
        is_short = not endless and _is_plain(node.test) and all(map(_computes, node.body))
        is_whole = is_short or self._is_drained(node.test, state, frame)
        held_before = {address: state.at(address) for address in lists} if is_whole else {}
        self.before_loops.append(set() if is_whole else lists)
        self.open_loops += 1
        before: Held = {}
        held: Held = {}
        supposed: set[questions.Fact] = set()
        for i in range(MOST_TURNS):
            if i >= ROUNDS and not decided and not (endless and self._tries_on(node, states, left, returned, frame)):
                break
            entering: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                self.begins_round(current)
                if i > 0:
                    file_questions.has_waited(current)
                known = current.facts
                yes, no = self.branch(node.test, current, frame)
                decided = decided and not (yes and no)
                entering.extend(yes)
                if i > 0 or not yes:
                    finished.extend(no)
                elif no:
                    supposed.update(fact for entered in yes for fact in entered.facts if fact not in known)
            if not decided and not is_short:
                self.before_loops[-1] = lists
            states = self.block(node.body, self.joined(entering), frame)
            states = self.joined([*states, *frame.continues])
            frame.continues = []
            left.extend(frame.breaks)
            frame.breaks = []
            before, held = held, counting.held(frame.scope, states)
        counting.count_on(states, before, held, Site(frame.module, node.ordinal), not decided)
        self.before_loops.pop()
        if is_whole and (states or not decided):
            for current in (*states, *finished, *left):
                _open_up(held_before, current)
        self.open_loops -= 1
        frame.breaks, frame.continues = outer_breaks, outer_continues
        if endless:
            # A path that goes round once more leaves later, as others do; where none leaves, this one does not either.
            # One within a generator waits where it yields, for as long as nobody asks for more.
            # What it breaks or returns upon may come in a round that is not run.
            goes_on = left or frame.yields or _breaks(node.body)
            if not goes_on and len(frame.returns) == returned and _returns(node.body):
                frame.returns.extend((current, unknown("returned", frame.module, node.ordinal)) for current in states)
                goes_on = True
                states = []
            after = [*finished, *(_leaving(current, left) for current in states)] if goes_on else finished
            if frame.tries and not goes_on:
                # It is written to end by an exception.
                frame.raises.extend((current, Raised(None, (), hidden=True)) for current in states)
            elif not goes_on:
                self._runs_beside(states)
        else:
            left_last = [s for current in states for s in self._left_by(node.test, current, frame)]
            after = self.block(node.orelse, self.joined([*left_last, *finished]), frame)
        for current in (*after, *left):
            current.second_round = was_second
            # A loop that may be entered is: what follows rests on nothing that was true when it was.
            current.facts = tuple(fact for fact in current.facts if fact not in supposed)
        return self.joined([*after, *left])

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

    def drained(self, results: Results, frame: Frame) -> Results:
        """Results whose generators have run: the unknown caller of an entry iterates what it returns."""
        done: Results = []
        for state, value in results:
            atom = only(value)
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(found, Generator):
                done.extend(self.consume(atom, found, state, frame))
            else:
                done.append((state, value))
        return done

    def used(self, results: Results, frame: Frame) -> Results:
        """Results of a function whose caller nobody sees: whatever they hold that starts when it is iterated has."""
        done: Results = []
        for state, value in self.drained(results, frame):
            states = [state]
            for atom in (only(part) for part in self._results_in(value, state)):
                states = [after for current in states for after in self._used(atom, current, frame)]
            done.extend((after, value) for after in states)
        return done

    def _results_in(self, value: Value, state: State, depth: int = 0) -> list[Value]:
        """A result by itself, or what a row, a mapping or an object of several holds."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        match found:
            case Instance() if isinstance(atom, Ref) and not self._goes_by_library(atom, found, state):
                held = [part for name, part in found.attributes.items() if self._is_for_others(found, name, state)]
            case Dict():
                held = [part for part in (*found.items.values(), found.element) if part]
            case Sequence():
                held = self.exact_items(value, state) or []
            case _:
                held = []
        if not held or depth == _MOST_HELD:
            return [value]
        return [inner for part in held for one in part for inner in self._results_in((one,), state, depth + 1)]

    def _is_for_others(self, instance: Instance, name: str, state: State) -> bool:
        """Whether an object keeps something for whoever has it: no method but the one that made it names that."""
        if name.startswith(("_", "<")):
            return False
        scopes = [state.get(cls.scope) for cls in self.mro(instance.cls, state) if isinstance(cls, Class)]
        methods = [atom for s in scopes if isinstance(s, Scope) for value in s.variables.values() for atom in value]
        return not any(_names(atom, name, state) for atom in methods)

    def _goes_by_library(self, ref: Ref, instance: Instance, state: State) -> bool:
        """Whether an object is iterated as the class of a library says that its class derives from."""
        path = self._method_path(ref, "__iter__", state)
        is_modelled = path is not None and self.library.function(path) is not None
        return is_modelled and self.user_method(instance, "__iter__", state) is None

    def _used(self, atom: Atom | None, state: State, frame: Frame) -> list[State]:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(found, Instance | LibraryObject):
            return [state]
        if isinstance(found, Instance) and not self._goes_by_library(atom, found, state):
            return [state]
        rounds = self._iterate_library(atom, state, frame, found.site)
        return [state] if rounds is None else [after for after, _ in rounds]

    def consume(
        self,
        ref: Ref,
        generator: Generator,
        state: State,
        frame: Frame,
        around: Around | None = None,
        sent: Value | None = None,
    ) -> Results:
        """Run a generator at its first consumer; the value is what it yields.

        A context manager runs ``around`` where it yields: the body of the ``with`` statement. ``sent`` is what it is
        sent there.
        """
        closure = state.get(generator.closure)
        if not isinstance(closure, Closure):
            return [(state, unknown("generator", generator.site))]
        begun = None if generator.waits is None else Steps(generator.waits, stops=False)
        if sent is None and around is None and begun is None and _receives(closure.function.body):
            # It waits for what it is sent, and begins anew with that.
            state.store(_waiting(ref), self.afresh(generator, state))
        state.store(ref, Sequence("iterator", None, ()))
        found = state.get(generator.scope)
        args: list[Value] = []
        if isinstance(found, Scope) and closure.owner is not None and closure.function.params:
            args = [found.variables.get(closure.function.params[0].name, ())]
        name = closure.function.name
        message = f"runs the generator {name}()" if around is None else f"enters {name}()"
        message = f"awaits {name}()" if closure.function.is_async and not closure.function.is_generator else message
        results = self._run_body(
            closure, generator.scope, args, state, frame, generator.site, message, around, sent, begun
        )
        is_ordered = around is None and len(results) == 1 and _yields_in_order(closure.function.body, self.undecided)
        rows = self.yielded if is_ordered else ()
        for after, element in results:
            # More alternatives than a value keeps are gone with the call.
            is_row = len(rows) > 1 and all(set(row) <= set(element) for row in rows)
            after.store(ref, Sequence("iterator", rows if is_row else None, element, is_row))
        return results

    def step_of(self, ref: Ref, generator: Generator, state: State, frame: Frame, sent: Value, steps: Steps) -> Results:
        """Run a generator up to its next ``yield``."""
        closure, found = state.get(generator.closure), state.get(generator.scope)
        if not isinstance(closure, Closure):
            return [(state, unknown("generator", generator.site))]
        args: list[Value] = []
        if isinstance(found, Scope) and closure.owner is not None and closure.function.params:
            args = [found.variables.get(closure.function.params[0].name, ())]
        message = f"runs the generator {closure.function.name}()"
        site, scope = generator.site, generator.scope
        stepped = ref, generator
        return self._run_body(closure, scope, args, state, frame, site, message, None, sent, steps, stepped)

    def exhausted(self, values: Iterable[Value], state: State, frame: Frame) -> list[State]:
        """The paths on which the generators among some values have run to their end."""
        states = [state]
        for atom in map(only, values):
            following: list[State] = []
            for current in states:
                found = current.get(atom) if isinstance(atom, Ref) else None
                if isinstance(atom, Ref) and isinstance(found, Generator):
                    following.extend(after for after, _ in self.consume(atom, found, current, frame))
                else:
                    following.append(current)
            states = following
        return states

    def afresh(self, generator: Generator, state: State) -> Generator:
        """A generator that has not begun, with variables of its own."""
        found = state.get(generator.scope)
        if not isinstance(found, Scope):
            return generator
        return replace(generator, scope=state.new(("afresh", generator.site), found))

    def send(self, ref: Ref, value: Value, state: State, frame: Frame) -> Results:
        """``generator.send(value)`` of one that has begun: what it does with that value."""
        waiting = state.get(_waiting(ref))
        if not isinstance(waiting, Generator):
            return [(state, unknown("sent", ref.address))]
        running = (_waiting(ref), 0)
        if running in self._called:
            # It runs already: Python raises ValueError.
            frame.raises.append((state, Raised(None, ("ValueError",))))
            return []
        self._called.append(running)
        results = self.consume(ref, self.afresh(waiting, state), state, frame, None, value)
        self._called.pop()
        return results

    def exact_items(self, value: Value, state: State) -> list[Value] | None:
        """The items of a sequence whose content is known exactly."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None and not found.open:
            return list(found.items)
        if isinstance(found, Class) and found.members:
            return enums.members(found, state)
        held = mappings.list_of(atom, state)
        if held is not None:
            return self.exact_items((held,), state)
        row = self._row_of(found, state) if isinstance(found, Instance) else None
        return None if row is None else list(row)

    def _exact_keys(self, value: Value, state: State) -> list[Value] | None:
        """The keys of a dict that is known whole."""
        found = state.get(atom) if isinstance(atom := only(value), Ref) else None
        is_known = isinstance(found, Dict) and found.exact and not found.element
        return [of_key(key) for key in found.items] if is_known and isinstance(found, Dict) else None

    def elements(self, value: Value, state: State) -> list[Value]:
        """What iterating a value may give; empty where nothing is known."""
        result: list[Value] = []
        for atom in value:
            held = mappings.list_of(atom, state) or atom
            found = state.get(held) if isinstance(held, Ref) else None
            if isinstance(found, Sequence):
                result.extend(found.items if found.items is not None else [found.element] if found.element else [])
            elif isinstance(found, Dict):
                result.extend(of_key(k) for k in found.items)
        return result

    def element_of(self, atom: Atom, state: State, sym: Hashable) -> Value:
        """One element of a value, for unpacking."""
        match atom:
            case Ref():
                found = state.get(atom)
                if isinstance(found, Sequence):
                    inner = union(found.items or ()) or found.element
                    return inner or unknown(sym)
                if isinstance(found, LibraryObject) and "element" in found.fields:
                    return found.fields["element"]
            case Unknown(sym=base):
                return unknown(base, "[]", sym)
            case Tensor() | Rank():
                return (atom,)
        return unknown(sym)

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop over a value, each with its variable's value: two, or one for each of ``most`` items."""
        atom = only(value)
        if atom is None:
            # Each round has what is next in one of the alternatives: a list of all GPUs, or of the CPU alone.
            each = [rs for a in value for _, rs in self.iterate((a,), state.clone(), frame, site, most)]
            rounds = [union(found) for found in zip_longest(*each, fillvalue=())]
            return [(state, rounds or [unknown("each", site)] * 2)]
        if isinstance(atom, Ref):
            found = state.get(atom)
            if isinstance(found, Sequence):
                if found.items is not None:
                    return [(state, _few_rounds(list(found.items), most))]
                element = found.element or unknown("each", site)
                return [(state, [element, element])]
            if isinstance(found, Dict):
                keys: list[Value] = [of_key(k) for k in found.items]
                return [(state, _few_rounds(keys, most) if found.exact else [*keys[:1], unknown("key", site)])]
            if isinstance(found, Generator):
                return [
                    (s, _rows_of(s.get(atom), v or unknown("each", site)))
                    for s, v in self.consume(atom, found, state, frame)
                ]
            if isinstance(found, Instance):
                return self._iterate_instance(atom, found, state, frame, site)
            if isinstance(found, Class) and found.members:
                return [(state, _few_rounds(enums.members(found, state)))]
        given = self._iterate_library(atom, state, frame, site)
        if given is not None:
            return given
        if isinstance(atom, Tensor):
            return [(s, [v, v]) for s, v in self._tensor_data(atom, "iteration", state, frame, site)]
        if isinstance(atom, Unknown):
            rows = self._unknown_method(Call(state, frame, site, "?.readlines", {}, [], {}, atom))
            if rows is not None:
                return self.iterate(rows, state, frame, site, most)
            return [(state, [unknown(atom.sym, "each", 0), unknown(atom.sym, "each", 1)])]
        return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]

    def _iterate_library(
        self, atom: Atom, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]] | None:
        """The rounds over what a library's ``__iter__`` gives; None where it has none."""
        path = self._method_path(atom, "__iter__", state)
        call = None if path is None else self._library_call(path, state, frame, site, [])
        if call is None:
            return None
        call.receiver = atom
        found = state.get(atom) if isinstance(atom, Ref) else None
        # What goes through one may make another at the same place, and go through that.
        again = (Ref(("through", found.site if isinstance(found, LibraryObject) else site)), len(self._active))
        if again in self._called:
            return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]
        self._called.append(again)
        results = self.library_call(call)
        self._called.pop()
        return [(s, self._rounds_of(v, s, site)) for s, v in results]

    def _rounds_of(self, value: Value, state: State, site: Site) -> list[Value]:
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None:
            return _few_rounds(list(found.items))
        element = union(self.elements(value, state)) or unknown("each", site)
        return [element, element]

    def _iterate_instance(
        self, ref: Ref, instance: Instance, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        method = self.user_method(instance, "__iter__", state)
        if method is not None:
            result: list[tuple[State, list[Value]]] = []
            for after, value in self.call_value((method,), [(ref,)], {}, state, frame, site):
                if ref in value:
                    result.extend(self._next_rounds(ref, instance, after, frame, site))
                else:
                    result.extend(self._rounds_of_other(ref, value, after, frame, site))
            return result
        held = mappings.content_of(ref, state)
        if held is not None:
            return self.iterate((held,), state, frame, site)
        row = self._row_of(instance, state)
        if row is not None:
            return [(state, _few_rounds(list(row)))]
        rounds = self._iterate_library(ref, state, frame, site)
        if rounds is not None:
            return rounds
        getter = self.user_method(instance, "__getitem__", state)
        if getter is not None:
            return self._until("IndexError", getter, [(ref,), EACH], state, frame, site)
        return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]

    def _rounds_of_other(
        self, ref: Ref, value: Value, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        """The rounds over what an instance's ``__iter__`` gave, which may come back to that instance."""
        again = (ref, len(self._active))
        if again in self._called:
            return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]
        self._called.append(again)
        rounds = self.iterate(value, state, frame, site)
        self._called.pop()
        return rounds

    def _next_rounds(
        self, ref: Ref, instance: Instance, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        method = self.user_method(instance, "__next__", state)
        if method is None:
            return [(state, [unknown("each", site, 0)] * 2)]
        return self._until("StopIteration", method, [(ref,)], state, frame, site)

    def _until(
        self, end: str, method: Atom, args: list[Value], state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        """The rounds over what a method gives, until it raises what says that there is no more."""
        outer, frame.raises = frame.raises, []
        frame.tries += 1
        results = self.call_value((method,), args, {}, state, frame, site)
        frame.tries -= 1
        raised, frame.raises = frame.raises, outer
        outer.extend((current, exception) for current, exception in raised if end not in exception.names)
        ended: list[tuple[State, list[Value]]] = [(s, []) for s, exception in raised if end in exception.names]
        return [(s, [v, v]) for s, v in results] or ended[:1]

    def _comprehension_of(self, node: ir.Comprehension, state: State, frame: Frame) -> Results:
        if node.kind != "generator" or self._kept is not node:
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
        self,
        node: ir.Comprehension,
        depth: int,
        state: State,
        frame: Frame,
        produced: list[Value],
        keys: list[Value],
    ) -> tuple[list[State], bool]:
        if depth == len(node.generators):
            parts = (node.element,) if node.key is None else (node.key, node.element)
            states = []
            for after, values in self.eval_all(parts, state, frame):
                if node.key is not None:
                    keys.append(values[0])
                produced.append(values[-1])
                states.append(after)
            return states, len(states) == 1
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
        known = self.exact_items(iterable, state) or self._exact_keys(iterable, state)
        site = Site(frame.module, node.generators[depth].iter.ordinal)
        most, numbers = _most_rounds(node), _numbers_of(iterable, state)
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
        told_apart = _told_apart(rounds) if clause.tests else rounds
        states, sure = [state], len(told_apart) == len(rounds)
        few = _few_rounds(rounds)
        rounds, was_second = told_apart, state.second_round
        self.open_loops += is_more
        waiting, begun, i = list(rounds), self.steps, 0
        while waiting:
            if i and len(few) < len(rounds) and len(waiting) > 1 and (len(states) > 1 or self._is_long(begun, i)):
                others = [union(waiting)]
                waiting = _told_apart(others) if clause.tests else others
                few, rounds, sure = rounds, [*rounds[:i], *others], False
                self.open_loops += not is_more
                is_more = True
            value = waiting.pop(0)
            following: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                self.begins_round(current)
                known = len(self.record.asked)
                ready = self.assign(clause.target, value, current, frame, node.ordinal)
                kept: list[State] = []
                made, is_let_through = len(keys), True
                for test in clause.tests:
                    sides = [self.branch(test, r, frame) for r in ready]
                    is_let_through = is_let_through and not any(yes and no for yes, no in sides)
                    ready = [s for yes, _ in sides for s in yes]
                    kept.extend(s for _, no in sides for s in no)
                if not is_let_through:
                    # Some items are let through, and others are not: no reader has to be told of this one.
                    asked = self.record.asked
                    parts = [value, *(self.exact_items(value, current) or ())]
                    calls = frozenset(Site(frame.module, at) for test in clause.tests for at in called_in(test))
                    of_item = [
                        q
                        for q in tuple(asked)[known:]
                        if any(questions.mentions(q, part) for part in parts) or questions.rests_on(q, calls)
                    ]
                    asked.update({q: replace(asked[q], required=True) for q in of_item})
                sure = sure and is_let_through
                following.extend(kept if sure else ())
                for one in ready:
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

    def _yield(self, node: ir.Yield, state: State, frame: Frame) -> Results:
        if node.value is None and frame.around is not None:
            return self._around(node, frame.around, NONE, state, frame)
        if frame.steps is not None and frame.steps.at == node.ordinal:
            return self._goes_on_at(frame.steps, node, state, frame)
        if frame.steps is not None and frame.steps.stops:
            given = [(state, NONE)] if node.value is None else self.eval(node.value, state, frame)
            frame.steps.left.extend((after, value, node.ordinal) for after, value in given)
            return []
        received = frame.sent or unknown("sent", frame.module, node.ordinal)
        if node.value is None:
            frame.yields.append(NONE)
            return [(state, received)]
        results = self.eval(node.value, state, frame)
        if frame.around is not None:
            return [r for after, value in results for r in self._around(node, frame.around, value, after, frame)]
        for after, value in results:
            if node.each:
                is_generator = isinstance(atom := only(value), Ref) and isinstance(after.get(atom), Generator)
                for _, rounds in self.iterate(value, after, frame, Site(frame.module, node.ordinal)):
                    frame.yields.extend(rounds)
                received = (self.given_back or received) if is_generator else received
            else:
                frame.yields.append(value)
        return [(s, received) for s, _ in results]

    def _goes_on_at(self, steps: Steps, node: ir.Yield, state: State, frame: Frame) -> Results:
        """A generator goes on, or ends, at the ``yield`` where it stands."""
        steps.at = None
        if steps.closes:
            frame.returns.append((state, NONE))
            return []
        if steps.thrown is not None:
            return self.fail(state, frame, steps.thrown)
        return [(state, frame.sent or unknown("sent", frame.module, node.ordinal))]

    def _around(self, node: ir.Yield, body: Around, value: Value, state: State, frame: Frame) -> Results:
        """The place where a context manager lets the body of its ``with`` statement run; a second round does not."""
        if state.second_round and node.ordinal in frame.entered:
            return [(state, NONE)]
        frame.entered.add(node.ordinal)
        before = state.stack
        state.stack = frame.outside
        self.yielding.append(frame)
        after = body(state, value)
        self.yielding.pop()
        for current in after:
            current.stack = before
        return [(current, NONE) for current in after]


def _most_rounds(node: ir.Comprehension) -> int:
    """A dict that is copied, or some of its items, is gone through item by item, and what is chosen by plain tests."""
    if node.kind == "dict" and isinstance(node.key, ir.Name) and isinstance(node.element, ir.Name):
        return _MOST_COPIED
    tests = [test for clause in node.generators for test in clause.tests]
    is_short = bool(tests) and len(node.generators) == 1 and all(map(_is_plain, (*tests, node.element)))
    return MOST_STEPS if is_short else MOST_ITEMS


def _is_plain(node: ir.Expr) -> bool:
    """Whether an expression takes no longer than it is long, unlike a call of a function by its name."""
    match node:
        case ir.Const() | ir.Name():
            return True
        case ir.Attr(value=value) | ir.Not(value=value) | ir.Unary(value=value):
            return _is_plain(value)
        case ir.Call(func=ir.Attr(value=value), args=args):
            return _is_plain(value) and all(_is_plain(arg.value) for arg in args)
        case ir.Sub(value=value, index=index):
            return _is_plain(value) and _is_plain(index)
        case ir.Compare(left=left, right=right):
            return _is_plain(left) and _is_plain(right)
        case ir.Bool(values=parts) | ir.Display(items=parts):
            return all(map(_is_plain, parts))
        case ir.Bin(first=first, rest=rest):
            return _is_plain(first) and all(_is_plain(part) for _, part in rest)
        case ir.IfExp(test=test, body=body, orelse=orelse):
            return all(map(_is_plain, (test, body, orelse)))
        case ir.DictDisplay(items=entries):
            return all(_is_plain(part) for pair in entries for part in pair if part is not None)
    return False


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


def _open_up(before: dict[Hashable, Object | None], state: State) -> None:
    """Lists that a loop changed, in fewer rounds than it may make, may hold others."""
    for address, was in before.items():
        found = state.at(address)
        if isinstance(found, Sequence) and found is not was and found.items is not None and not found.open:
            state.store(Ref(address), replace(found, open=True))


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
    return _is_plain(node)


def _numbers_of(iterable: Value, state: State) -> list[Value] | None:
    """All numbers of a range, where these are few."""
    atom = only(iterable)
    found = state.get(atom) if isinstance(atom, Ref) else None
    numbers = found.numbers if isinstance(found, Sequence) else None
    return None if numbers is None or len(numbers) > MOST_STEPS else [const(number) for number in numbers]


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


def _rows_of(iterator: Object | None, element: Value) -> list[Value]:
    """The rounds over what a generator gave: one after the other where their order is known."""
    if isinstance(iterator, Sequence) and iterator.items:
        return list(iterator.items)
    return [element, element]


def _yields_in_order(body: tuple[ir.Stmt, ...], undecided: Collection[int]) -> bool:
    """Whether nothing decides in which order a generator yields but its loops, and tests that each went one way."""
    for statement in body:
        inner = tuple(inner_statements(statement))
        is_decided = isinstance(statement, ir.If) and statement.ordinal not in undecided
        if is_decided or isinstance(statement, ir.For | ir.While | ir.With):
            if not _yields_in_order(inner, undecided):
                return False
        elif _yields(inner) or _receives((statement,)):
            return False
    return True


def _yields(body: tuple[ir.Stmt, ...]) -> bool:
    return any(
        (isinstance(statement, ir.ExprStmt | ir.Assign) and isinstance(statement.value, ir.Yield))
        or _yields(tuple(inner_statements(statement)))
        for statement in body
    )


def _waiting(ref: Ref) -> Ref:
    """Where a generator that waits for what it is sent is kept as it was before it began."""
    return Ref(("waiting", ref.address))


def _receives(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a generator binds what it is sent."""
    return any(
        (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Yield) and not statement.value.each)
        or _receives(tuple(inner_statements(statement)))
        for statement in body
    )


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


def _few_rounds(items: list[Value], most: int = MOST_ITEMS) -> list[Value]:
    """The first item, then all the others at once; few, and steps of a program, come one after the other."""
    most = max(most, MOST_STEPS) if all(_is_step(item) for item in items) else most
    return items if len(items) <= most else [items[0], union(items[1:])]


def _told_apart(rounds: list[Value]) -> list[Value]:
    """Rounds for a test: one for each object that an item may be, since the test is true of some and not of others."""
    parts: list[Value] = []
    for value in rounds:
        objects = [atom for atom in value if isinstance(atom, Ref)]
        others = tuple(atom for atom in value if not isinstance(atom, Ref))
        parts.extend((atom,) for atom in objects)
        parts.extend([others] if others or not objects else [])
    return parts


def _is_step(value: Value) -> bool:
    """Whether an item of a loop does something of its own: a function, a method, an object."""
    return isinstance(only(value), Ref | Bound | Partial | Task)


def _around(frame: Frame, state: State) -> Frame:
    """Where what a comprehension goes through first is looked up: in a class body, which sees its own names there."""
    found = state.get(frame.scope)
    parent = found.parent if isinstance(found, Scope) else None
    outer = None if parent is None else state.get(parent)
    is_class = isinstance(outer, Scope) and outer.kind == "class"
    return replace(frame, scope=parent) if is_class and parent is not None else frame


def _names(atom: Atom, attribute: str, state: State) -> bool:
    """Whether a method other than the one that makes an object speaks of an attribute of it."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Closure) or found.function.name == "__init__":
        return False
    return found.function.mentions({attribute})
