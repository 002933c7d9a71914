"""Builtins and itertools that iterate: range, zip, map, sum, next and their like."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from itertools import product as combinations

from cudalint.machine import counting, operators, sets
from cudalint.machine.effects.gpu import arrays
from cudalint.machine.effects.stdlib import containers
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import ITER, NOTHING_LEFT, TAKEN_OF, Dict, Generator, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import beyond_default, default_of, is_length
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, TRUE, Bound, Const, Ref, Unknown, Value, const, integer, only, union, unknown
from cudalint.structs import Frozen, replace

MOST_COMBINED = 8
# What goes round and round in what is known of it.
_CYCLE = "cycle"
# How far it is counted where no end is set, and how many of it are taken one by one.
_MOST_COUNTED, _MOST_SLICED = 2**31, 64


def range_(machine: Machine, call: Call) -> Results:
    """``range``: its first two numbers, exact where it is that short."""
    return [result for state, args in _counted(machine, call) for result in _range(state, args, call.site)]


def _counted(machine: Machine, call: Call) -> list[tuple[State, list[Value]]]:
    """``range(args.epochs)``: more rounds than the default of an option has are the user's to ask for."""
    if not call.args:
        return [(call.state, [])]
    end = min(len(call.args), 2) - 1
    numbers = beyond_default(machine, call.args[end], call.state, call.site)
    return [(state, [*call.args[:end], number, *call.args[end + 1 :]]) for state, number in numbers]


def _range(state: State, args: list[Value], site: Site) -> Results:
    numbers = [integer(v) for v in args]
    start, stop_, step = 0, None, 1
    match numbers:
        case [one]:
            stop_ = one
        case [one, two]:
            start, stop_ = one or 0, two
        case [one, two, three]:
            start, stop_, step = one or 0, two, three or 1
    items: tuple[Value, ...] = (const(start), const(start + step))
    is_open = True
    if stop_ is not None:
        first = range(start, stop_, step)[:3]
        items = tuple(const(n) for n in first[:2])
        is_open = len(first) > 2
    whole = None if stop_ is None or None in numbers else range(start, stop_, step)
    # Of longer ones Python cannot say how many numbers they have.
    is_countable = whole is not None and not whole[sys.maxsize :]
    made = Sequence("list", items, (), is_open, numbers=whole if is_countable else None)
    return [(state, (state.new(("range", site), made),))]


def enumerate_(machine: Machine, call: Call) -> Results:
    """``enumerate``: pairs of a number and an element."""
    if not call.args:
        return [(call.state, unknown("enumerate", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        pairs: list[Value] = []
        for i, value in enumerate(rounds):
            pair = Sequence("tuple", (const(i), value))
            pairs.append((state.new(("pair", call.site, i), pair),))
        is_open = machine.goes_on(call.args[0], rounds, state)
        results.append((state, (state.new(("enumerate", call.site), Sequence("list", tuple(pairs), (), is_open)),)))
    return results


class _Column(Frozen):
    """What going through one of several values gives; ``exact`` are all its items, where these are known."""

    rounds: list[Value]
    exact: list[Value] | None


def _gone_through(
    machine: Machine, call: Call, values: Iterable[Value], state: State
) -> tuple[State, list[_Column]] | None:
    """What going through values gives, one after the other; None where asking for the elements ends every path."""
    columns: list[_Column] = []
    for value in values:
        found = machine.iterate(value, state, call.frame, call.site)
        if not found:
            return None
        state, rounds = found[0]
        alike = _alike(machine, value, state)
        columns.append(_Column(rounds, machine.exact_items(value, state)) if alike is None else _Column(alike, alike))
    return state, columns


def _alike(machine: Machine, value: Value, state: State) -> list[Value] | None:
    """The items of one of several sequences that are known exactly and equally long, as pairs are; else None."""
    rows = [machine.exact_items((atom,), state) for atom in value]
    known = [row for row in rows if row is not None]
    if len(value) < 2 or len(known) < len(rows) or len({len(row) for row in known}) != 1:
        return None
    return [union(column) for column in zip(*known, strict=True)]


def zip_(machine: Machine, call: Call) -> Results:
    """``zip``: tuples of elements, as many rounds as the shortest.

    Of ``zip(*pairs)``, however many there are, the rows are as many as a pair has, each with one of them or more.
    """
    gone = _gone_through(machine, call, call.args, call.state)
    if gone is None:
        return []
    state, columns = gone
    is_open = any(column.exact is None for column in columns)
    rows: list[Value] = []
    for i, row in enumerate(zip(*(column.rounds for column in columns), strict=False)):
        # One that stands for several is followed by another of its kind.
        items = (*row, *row) if call.open and len(row) == 1 else tuple(row)
        rows.append((state.new(("row", call.site, i), Sequence("tuple", items, (), call.open)),))
    return [(state, (state.new(("zip", call.site), Sequence("list", tuple(rows), (), is_open)),))]


def repeat(machine: Machine, call: Call) -> Results:
    """``itertools.repeat(x)``: one value again and again."""
    value = call.get("object") or unknown("repeat", call.site)
    made = Sequence("repeat", None, value)
    return [(call.state, (call.state.new(("repeat", call.site), made),))]


def cycle(machine: Machine, call: Call) -> Results:
    """``itertools.cycle(xs)``: its elements, and then these again."""
    if not call.args:
        return [(call.state, unknown("cycle", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        exact = machine.exact_items(call.args[0], state)
        items = tuple(rounds if exact is None else exact)
        made = Sequence(_CYCLE if exact else ITER, items, (), True) if items else Sequence(ITER, ())
        results.append((state, (state.new(("cycle", call.site), made),)))
    return results


def count(machine: Machine, call: Call) -> Results:
    """``itertools.count(start, step)``: numbers without an end."""
    start, step = (integer(call.get(name) or const(default)) for name, default in (("start", 0), ("step", 1)))
    if start is None or not step:
        return [(call.state, unknown("count", call.site))]
    numbers = range(start, start + step * _MOST_COUNTED, step)
    items = tuple(const(number) for number in numbers[:2])
    made = Sequence(ITER, items, (), True, numbers=numbers)
    return [(call.state, (call.state.new(("count", call.site), made),))]


def islice_(machine: Machine, call: Call) -> Results:
    """``itertools.islice(xs, stop)``, of what goes round and round or counts without an end; else of any iterator."""
    atom, state = only(call.args[0]) if call.args else None, call.state
    found = state.get(atom) if isinstance(atom, Ref) else None
    bounds = [None if value == NONE else integer(value) for value in call.args[1:]]
    is_known = None not in bounds[-2:][:1] and len(bounds) in (1, 2)
    if not isinstance(atom, Ref) or not isinstance(found, Sequence) or not is_known or machine.grows_on(atom):
        return containers.container(machine, call)
    taken = slice(*bounds)
    if taken.stop is None or not 0 <= (taken.start or 0) <= taken.stop <= _MOST_SLICED:
        return containers.container(machine, call)
    if found.kind == _CYCLE and found.items:
        row = [*found.items] * (taken.stop // len(found.items) + 1)
        at = taken.stop % len(found.items)
        state.store(atom, replace(found, items=(*found.items[at:], *found.items[:at])))
    elif found.kind == ITER and found.numbers is not None:
        row = [const(number) for number in found.numbers[: taken.stop]]
        state.store(atom, _counted_on(found, taken.stop))
    else:
        return containers.container(machine, call)
    return [(state, (state.new(("islice", call.site), Sequence(ITER, tuple(row[taken]))),))]


def _counted_on(found: Sequence, taken: int) -> Sequence:
    """What counts without an end, after some numbers were taken."""
    numbers = (found.numbers or range(0))[taken:]
    return replace(found, items=tuple(const(number) for number in numbers[:2]), numbers=numbers)


def chain(machine: Machine, call: Call) -> Results:
    """``itertools.chain(xs, ys)``: the elements of each, one after the other; ``heapq.merge`` in another order."""
    nested = call.path.endswith("from_iterable")
    outer = _gone_through(machine, call, call.args[:1] if nested else (), call.state)
    if outer is None:
        return []
    state, around = outer
    inner = _gone_through(machine, call, around[0].rounds if around else call.args, state)
    if inner is None:
        return []
    state, columns = inner
    is_open = call.text("kind") == "merged" or any(column.exact is None for column in (*around, *columns))
    items = tuple(item for column in columns for item in (column.rounds if column.exact is None else column.exact))
    made = Sequence("list", items, (), is_open)
    return [(state, (state.new(("chain", call.site), made),))]


def tee(machine: Machine, call: Call) -> Results:
    """``itertools.tee(xs)``: several iterators over all its elements; a generator runs for the first that asks."""
    given, number = call.get("iterable") or (), integer(call.get("n") or const(2))
    if number is None or not 0 < number <= _MOST_SLICED:
        return [(call.state, unknown("tee", call.site))]
    state, atom = call.state, only(given)
    found = state.get(atom) if isinstance(atom, Ref) else None
    each = [given] * number
    if isinstance(found, Sequence) and found.kind != ITER:
        each = [(state.new(("tee", call.site, i), replace(found, kind=ITER)),) for i in range(number)]
    return [(state, (state.new(("tees", call.site), Sequence("tuple", tuple(each))),))]


def groups(machine: Machine, call: Call) -> Results:
    """``itertools.groupby(xs, key)``: what they have in common, and some of them."""
    results: Results = []
    for state, rounds in machine.iterate(call.get("iterable") or (), call.state, call.frame, call.site):
        key = call.get("key") or NONE
        named: Results = [(state, union(rounds))]
        if key != NONE and rounds:
            named = machine.call_value(key, [rounds[0]], {}, state, call.frame, call.site)
        for after, name in named:
            each = Sequence("list", None, union(rounds))
            group: Value = (after.new(("group", call.site), each),)
            pair = Sequence("tuple", (name if len(rounds) == 1 else unknown("key", call.site), group))
            row: Value = (after.new(("groups", call.site, "row"), pair),)
            results.append((after, (after.new(("groups", call.site), Sequence("list", None, row)),)))
    return results


def product(machine: Machine, call: Call) -> Results:
    """``itertools.product``: each element of one with each of the others; of many combinations the first ones."""
    gone = _gone_through(machine, call, call.args, call.state)
    if gone is None:
        return []
    state, columns = gone
    is_open = "repeat" in call.kwargs or any(len(column.exact or ()) != len(column.rounds) for column in columns)
    combined = list(islice(combinations(*(column.rounds for column in columns)), MOST_COMBINED + 1))
    rows: list[Value] = []
    for i, row in enumerate(combined[:MOST_COMBINED]):
        rows.append((state.new(("row", call.site, i), Sequence("tuple", row)),))
    is_open = is_open or len(combined) > MOST_COMBINED
    return [(state, (state.new(("product", call.site), Sequence("list", tuple(rows), (), is_open)),))]


def map_(machine: Machine, call: Call) -> Results:
    """``map(f, xs)``: f runs in this process, once per round."""
    if len(call.args) < 2:
        return [(call.state, unknown("map", call.site))]
    if len(call.args) > 2:
        zipped = zip_(machine, replace(call, args=list(call.args[1:])))
        return [r for s, rows in zipped for r in starmap(machine, replace(call, state=s, args=[call.args[0], rows]))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[1], call.state, call.frame, call.site):
        produced: list[Value] = []
        states = [state]
        for value in rounds:
            following: list[State] = []
            for current in states:
                for after, made in machine.call_value(call.args[0], [value], {}, current, call.frame, call.site):
                    produced.append(made)
                    following.append(after)
            states = following or states
        exact = len(states) == 1 and len(machine.exact_items(call.args[1], states[0]) or ()) == len(produced)
        for after in states:
            made_list = Sequence("list", tuple(produced if exact else produced[:2]), (), not exact)
            results.append((after, (after.new(("map", call.site), made_list),)))
    return results


def starmap(machine: Machine, call: Call) -> Results:
    """``itertools.starmap(f, rows)``: f runs in this process, with the items of each row."""
    if len(call.args) < 2:
        return [(call.state, unknown("starmap", call.site))]
    function, rows = call.args[:2]
    results: Results = []
    for state, rounds in machine.iterate(rows, call.state, call.frame, call.site):
        whole = machine.exact_items(rows, state)
        is_whole = whole is not None and len(whole) == len(rounds)
        made: list[tuple[State, list[Value]]] = [(state, [])]
        for row in rounds:
            items = machine.exact_items(row, state) or []
            made = [
                (after, [*before, value])
                for current, before in made
                for after, value in machine.call_value(function, items, {}, current, call.frame, call.site)
            ]
        for after, values in made:
            listed = Sequence("list", tuple(values)) if is_whole else Sequence("list", None, union(values))
            results.append((after, (after.new(("starmap", call.site), listed),)))
    return results


def filter_(machine: Machine, call: Call) -> Results:
    """``filter(f, xs)``: f runs in this process; what is left are those elements of which it is not known to say no."""
    if len(call.args) < 2:
        return [(call.state, unknown("filter", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[1], call.state, call.frame, call.site, MOST_COMBINED):
        whole = machine.exact_items(call.args[1], state)
        rows = [_Kept(state, (), whole is None or len(whole) != len(rounds))]
        for i, value in enumerate(rounds):
            rows = [after for row in rows for after in _filtered(machine, call, value, row)]
            if len(rows) > MOST_COMBINED:
                rows = [_Kept(s, tuple(rounds[: i + 1]), True) for s in machine.joined([row.state for row in rows])]
        for row in rows:
            known = bool(row.items) or not row.is_open
            made = Sequence("list", row.items, (), row.is_open) if known else Sequence("list", None)
            is_sifted = bool(rounds) and not row.items and not row.is_open
            name = NOTHING_LEFT if is_sifted else "filter"
            results.append((row.state, (row.state.new((name, call.site), made),)))
    return machine.joined_results(results)


class _Kept(Frozen):
    """A path with the elements that are kept on it; ``is_open``: perhaps others, too; ``is_over``: none is asked."""

    state: State
    items: tuple[Value, ...]
    is_open: bool
    is_over: bool = False


def _filtered(machine: Machine, call: Call, value: Value, before: _Kept) -> Iterator[_Kept]:
    """The paths on which one more element was asked."""
    name = call.path.rpartition(".")[2]
    if before.is_over:
        yield before if name == _WHILE else replace(before, items=(*before.items, value))
        return
    asked: Results = [(before.state, value)]
    if call.args[0] != NONE:
        asked = machine.call_value(call.args[0], [value], {}, before.state, call.frame, call.site)
    for after, answer in machine.judged(asked, call.frame, call.site):
        truth, _ = machine.truth(answer, after)
        is_over = name in _UNTIL and truth is False
        if truth is None:
            yield _Kept(after, (*before.items, value), True)
        elif truth is _SIEVES[name]:
            yield replace(before, state=after, items=(*before.items, value), is_over=is_over)
        else:
            yield replace(before, state=after, is_over=is_over)


# What is kept by functions that ask the elements: those that are true, or those that are not.
_WHILE = "takewhile"
_SIEVES = {"filter": True, "filterfalse": False, _WHILE: True, "dropwhile": False}
# Those that ask until one is not true: all after that are kept, or none is.
_UNTIL = frozenset({_WHILE, "dropwhile"})


def reduce(machine: Machine, call: Call) -> Results:
    """``functools.reduce(f, xs, first)``: f runs in this process."""
    if len(call.args) < 2:
        return [(call.state, unknown("reduce", call.site))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[1], call.state, call.frame, call.site):
        items = [*call.args[2:3], *rounds]
        made: Results = [(state, items[0] if items else unknown("reduce", call.site))]
        for item in items[1:]:
            made = [
                r
                for current, before in made
                for r in machine.call_value(call.args[0], [before, item], {}, current, call.frame, call.site)
            ]
        results.extend(made)
    return results


def consume(machine: Machine, call: Call) -> Results:
    """``sum``, ``max``, ``any`` and their like: what is iterated runs, and arrays in it are read."""
    if not call.args:
        return [(call.state, unknown("consume", call.site))]
    if len(call.args) > 1 and call.path in _CHOICES:
        return [result for one in _by_option(machine, call) for result in _choice(machine, one)]
    left = _left_early(machine, call) if call.path in _VERDICTS else None
    if left is not None:
        return left
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        chosen = _chosen(machine, call, state)
        chosen = _summed(machine, call, rounds, state) if chosen is None else chosen
        if chosen is not None:
            results.extend(chosen)
            continue
        inner = replace(call, state=state, args=[*rounds, *call.args[1:]], kwargs={})
        key = call.kwargs.get("key", NONE)
        asks = bool(rounds) and key != NONE
        after = [s for s, _ in machine.call_value(key, rounds[:1], {}, state, call.frame, call.site)] if asks else []
        inner.state = after[0] if after else state
        answer = union(rounds) if asks and call.path in _CHOICES else _answer(machine, call, rounds, state)
        results.extend((s, answer or value) for s, value in arrays.like(machine, inner))
    return results


def _by_option(machine: Machine, call: Call) -> list[Call]:
    """``min(args.jobs, os.cpu_count())``: more than one is the user's to ask for where one is the default."""
    defaults = [default_of(value) for value in call.args]
    place = next((i for i, default in enumerate(defaults) if default is not None and default <= 1), None)
    if place is None:
        return [call]
    numbers = beyond_default(machine, call.args[place], call.state, call.site)
    before, after = call.args[:place], call.args[place + 1 :]
    return [replace(call, state=state, args=[*before, number, *after]) for state, number in numbers]


def _choice(machine: Machine, call: Call) -> Results:
    """``max`` and ``min`` of several values, as far as these are numbers, or their bounds are known."""
    numbers = [integer(value) for value in call.args]
    known = [number for number in numbers if number is not None]
    if None not in numbers or (known and _CHOICES[call.path] is min and _stays_least(min(known), call.args)):
        return [(call.state, const(_CHOICES[call.path](known)))]
    least, most = _least(call), _most(call)
    if least is not None and least == most:
        return [(call.state, const(least))]
    if least is not None and least > 0:
        return [(call.state, counting.some_number(least, call.path, call.site))]
    if most is not None and all(_is_some_number(value) for value in call.args):
        return [(call.state, counting.no_more_than(most, call.path, call.site))]
    return arrays.like(machine, call)


def _is_some_number(value: Value) -> bool:
    """Whether a value is a number, or nothing of it is known that says otherwise."""
    return all(isinstance(atom, Unknown) or integer((atom,)) is not None for atom in value)


def _left_early(machine: Machine, call: Call) -> Results | None:
    """``any`` and ``all`` of a generator, which go no further than to what decides; None where nothing is seen to."""
    atom = only(call.args[0])
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Generator) or not machine.can_step(found, call.state):
        return None
    decisive = call.path == _ANY
    results: Results = []
    waiting = [call.state.clone()]
    for _ in range(_MOST_ASKED):
        asked, waiting = waiting, []
        for state in asked:
            given, ended = _next(machine, call, atom, state)
            results.extend((after, const(not decisive)) for after in ended)
            for after, value in given:
                truth = machine.truth(value, after)[0]
                if truth is None:
                    return None
                if truth is decisive:
                    results.append((after, const(decisive)))
                else:
                    waiting.append(after)
    return None if waiting else results


def _next(machine: Machine, call: Call, ref: Ref, state: State) -> tuple[Results, list[State]]:
    """What a generator gives next, and the paths on which it has ended."""
    found = state.get(ref)
    return machine.advance(ref, found, state, call.frame) if isinstance(found, Generator) else ([], [state])


def _chosen(machine: Machine, call: Call, state: State) -> Results | None:
    """The first of the items whose key is the greatest or the least, where all keys are known; None otherwise."""
    key, items = call.kwargs.get("key", NONE), machine.exact_items(call.args[0], state)
    atom = only(call.args[0])
    found = state.get(atom) if isinstance(atom, Ref) else None
    items = sets.values_of(found) if isinstance(found, Dict) else items
    grows = isinstance(atom, Ref) and machine.grows_on(atom)
    if key == NONE or call.path not in _CHOICES or not items or len(items) > MOST_COMBINED or grows:
        return None
    asked = replace(call, kwargs={"reverse": const(_CHOICES[call.path] is max)})
    ordered = containers.by_keys(machine, asked, key, items, state)
    return [(after, union(items) if rows is None else rows[0]) for after, rows in ordered]


def _summed(machine: Machine, call: Call, rounds: list[Value], state: State) -> Results | None:
    """What ``sum`` makes of objects whose classes say what ``+`` is, one after another; None of anything else."""
    first = call.args[1] if len(call.args) > 1 else call.kwargs.get("start", const(0))
    items = machine.exact_items(call.args[0], state) or rounds
    if call.path != _SUM or not items or len(items) > MOST_COMBINED:
        return None
    made = machine.operate("+", first, items[0], state, call.frame, call.site)
    for item in items[1:] if made else ():
        made = [result for after, before in made or () for result in _added(machine, call, before, item, after)]
    return made


def _added(machine: Machine, call: Call, before: Value, item: Value, state: State) -> Results:
    made = machine.operate("+", before, item, state, call.frame, call.site)
    return [(state, unknown("sum", call.site))] if made is None else made


def _answer(machine: Machine, call: Call, rounds: list[Value], state: State) -> Value | None:
    """What ``any`` and ``all`` say of things that are all true or all false, or all of one unknown truth."""
    if call.path not in _VERDICTS:
        return None
    things = machine.exact_items(call.args[0], state) or rounds
    if not things:
        return None
    truths = {machine.truth(value, state)[0] for value in things}
    if len(truths) > 1:
        return const(call.path == _ANY) if _decides(call.path, truths) else None
    truth = truths.pop()
    is_more = not machine.exact_items(call.args[0], state) and all(isinstance(only(value), Const) for value in things)
    if truth is not None and is_more and truth is not (call.path == _ANY):
        # What is not gone through may be otherwise.
        return None
    if truth is not None:
        return const(truth)
    return things[0] if all(value == things[0] for value in things) and only(things[0]) is not None else None


def _decides(path: str, truths: set[bool | None]) -> bool:
    """Whether one thing that is true is enough for ``any``, or one that is false for ``all``."""
    return (path == _ANY) in truths


_ANY = "builtins.any"
_SUM = "builtins.sum"
# How many elements of a generator are asked for one by one.
_MOST_ASKED = 8
_VERDICTS = frozenset({_ANY, "builtins.all"})
_CHOICES: dict[str, Callable[[list[int]], int]] = {"builtins.max": max, "builtins.min": min}


def _least(call: Call) -> int | None:
    """The number that the greatest or the least of several is at the least: ``min(8, os.cpu_count())`` is 1 or more."""
    return _bound(call, [counting.at_least(value) for value in call.args], max)


def _most(call: Call) -> int | None:
    """The number that it is at the most: ``max(1, min(1, n))`` is 1 or less."""
    return _bound(call, [counting.at_most(value) for value in call.args], min)


def _bound(call: Call, bounds: list[int | None], alone: Callable[[list[int]], int]) -> int | None:
    """What bounds of the values say of the chosen one: some of them are enough where it is chosen by ``alone``."""
    known = [bound for bound in bounds if bound is not None]
    choice = _CHOICES[call.path]
    if call.kwargs or not known or (choice is not alone and len(known) < len(bounds)):
        return None
    return choice(known)


def _stays_least(number: int, values: Iterable[Value]) -> bool:
    """Whether a number is at most what these values are, of which the unknown ones count things."""
    return number <= 0 and all(integer(value) is not None or _counts(value) for value in values)


def _counts(value: Value) -> bool:
    return is_length(value) or (counting.at_least(value) or 0) > 0


def next_(machine: Machine, call: Call) -> Results:
    """``next(iter(x))`` and ``iter(x)``."""
    if not call.args:
        return [(call.state, unknown("next", call.site))]
    atom = only(call.args[0])
    if isinstance(atom, Ref) and isinstance(found := call.state.get(atom), Instance):
        method = machine.user_method(found, "__next__", call.state)
        if method is not None:
            bound: Value = (Bound(method, atom),)
            return machine.call_value(bound, [], {}, call.state, call.frame, call.site)
    results: Results = []
    if (
        isinstance(atom, Ref)
        and isinstance(found := call.state.get(atom), Generator)
        and machine.can_step(found, call.state)
    ):
        return _stepped(machine, atom, found, call)
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        if not rounds and machine.exact_items(call.args[0], state) == []:
            results.extend([(state, call.args[1])] if len(call.args) > 1 else _ended(machine, call, state))
            continue
        results.append((state, rounds[0] if rounds else unknown("next", call.site)))
        if isinstance(atom, Ref):
            _advance(machine, atom, state)
    return results


def _ended(machine: Machine, call: Call, state: State) -> Results:
    """There is nothing next."""
    return machine.fail(state, call.frame, Raised(None, ("StopIteration",)))


def _stepped(machine: Machine, ref: Ref, generator: Generator, call: Call) -> Results:
    """``next(generator)``, or with a default for when it has ended."""
    if len(call.args) < 2:
        return machine.next_of(ref, generator, call.state, call.frame)
    given, ended = machine.advance(ref, generator, call.state, call.frame)
    return [*given, *((state, call.args[1]) for state in ended)]


def _advance(machine: Machine, ref: Ref, state: State) -> None:
    """What was taken of an iterator is gone; what it gives after all that is known of it is any of its kind."""
    found = state.get(ref)
    if not isinstance(found, Sequence) or found.kind not in {*TAKEN_OF, _CYCLE} or not found.items:
        return
    if found.numbers is not None and not machine.grows_on(ref):
        state.store(ref, _counted_on(found, 1))
        return
    first, *more = found.items
    rest = tuple(more)
    if found.kind == _CYCLE and not machine.grows_on(ref):
        state.store(ref, replace(found, items=(*rest, first)))
        return
    if not found.open and not machine.grows_on(ref):
        state.store(ref, replace(found, items=rest))
        return
    if found.kind == _CYCLE:
        state.store(ref, Sequence(ITER, None, union(found.items)))
        return
    state.store(ref, replace(found, items=rest or None, element=union([*found.items, found.element])))


def drawn(machine: Machine, call: Call) -> Results:
    """``random.choice(items)``: any element; ``random.sample(items, k)``: a list of such."""
    results: Results = []
    items = call.get("items")
    for state, rounds in machine.iterate(items or unknown("items"), call.state, call.frame, call.site):
        element = union(rounds) or unknown("drawn", call.site)
        several = call.path.rpartition(".")[2] != "choice"
        made = (state.new(("drawn", call.site), Sequence("list", None, element)),) if several else element
        results.append((state, made))
    return results


# Of these ``iter`` makes something that remembers what was taken of it.
_WITHOUT_PLACE = frozenset({"list", "tuple", "set"})


def iter_(machine: Machine, call: Call) -> Results:
    """``iter(x)``: consumed by ``next``; a loader starts its workers here."""
    if not call.args:
        return [(call.state, unknown("iter", call.site))]
    if len(call.args) == 2:
        return _called_until(machine, call, call.args[0], call.args[1])
    atom = only(call.args[0])
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Sequence) and found.kind in _WITHOUT_PLACE and found.items is not None and not found.open:
        return [(call.state, (call.state.new(("iter", call.site), Sequence(ITER, found.items)),))]
    if not isinstance(found, LibraryObject):
        return [(call.state, call.args[0])]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        made = Sequence("list", tuple(rounds), (), True)
        results.append((state, (state.new(("iter", call.site), made),)))
    return results


def _called_until(machine: Machine, call: Call, function: Value, last: Value) -> Results:
    """``iter(f, last)``: called again and again until it gives the last value; what comes of two calls is seen."""
    results: Results = []
    for state, first in machine.call_value(function, [], {}, call.state, call.frame, call.site):
        if _is_last(first, last):
            results.append((state, _listed(state, call, Sequence("list", ()))))
        elif any(isinstance(atom, Unknown) for atom in first):
            results.append((state, _listed(state, call, Sequence("list", None, first))))
        else:
            for after, second in machine.call_value(function, [], {}, state, call.frame, call.site):
                ends = _is_last(second, last)
                items = Sequence("list", (first,) if ends else (first, second), (), not ends)
                results.append((after, _listed(after, call, items)))
    return results


def _is_last(value: Value, last: Value) -> bool:
    return operators.compare("==", value, last, ("last",)) == TRUE


def _listed(state: State, call: Call, items: Sequence) -> Value:
    return (state.new(("iter", call.site), items),)


def generator_enter(machine: Machine, call: Call) -> Results:
    """``manager.__enter__()``: a generator up to where it yields."""
    manager = () if call.receiver is None else (call.receiver,)
    return machine.enter(manager, call.state, call.frame, call.site)


def generator_method(machine: Machine, call: Call) -> Results:
    """``generator.send``, ``__next__``, ``throw`` and ``close``."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, Generator) and machine.can_step(found, call.state):
        if call.path.endswith(".close"):
            given, ended = machine.advance(call.receiver, found, call.state, call.frame, closes=True)
            return [(after, NONE) for after in (*(s for s, _ in given), *ended)]
        if call.path.endswith(".throw"):
            exception = call.args[0] if call.args else ()
            return machine.throw(call.receiver, found, call.state, call.frame, exception)
        sent = call.args[0] if call.path.endswith(".send") and call.args else NONE
        return machine.next_of(call.receiver, found, call.state, call.frame, sent)
    if isinstance(call.receiver, Ref) and isinstance(found, Generator) and call.path.endswith(".close"):
        call.state.store(call.receiver, Sequence("iterator", ()))
        return [(call.state, NONE)]
    if isinstance(call.receiver, Ref) and isinstance(found, Generator):
        return machine.consume(call.receiver, found, call.state, call.frame)
    if isinstance(call.receiver, Ref) and call.path.endswith(".send") and call.args:
        return machine.send(call.receiver, call.args[0], call.state, call.frame)
    return [(call.state, unknown("generator", call.site))]
