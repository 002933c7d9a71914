"""With which values pytest runs a test or a fixture, as its decorators say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import cycle, islice, product

from cudalint.machine.effects.stdlib.mocks import SKIPPED
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import NAMESPACE, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, constant, only, unknown
from cudalint.structs import Frozen, field

_MARK, _ROW, _FIXTURE = "pytest.mark.parametrize", "pytest.param", "pytest.fixture"
# A test is run with so many values of one mark, and in so many ways. Where its marks have more together, each value
# of each of them is part of one.
_MOST_ROWS, _MOST_CASES = 6, 6


class Case(Frozen):
    """What a test is called with: values of its parameters, and what fixtures of these names are told."""

    given: Mapping[str, Value] = field(default_factory=dict)
    told: Mapping[str, Value] = field(default_factory=dict)

    def joined(self, other: Case) -> Case:
        """The values of both."""
        return Case({**self.given, **other.given}, {**self.told, **other.told})


def parametrize(machine: Machine, call: Call) -> Results:
    """``pytest.mark.parametrize("name, other", rows, indirect=["name"])``."""
    return _kept(_MARK, call, ("argnames", "argvalues", "indirect"))


def fixture(machine: Machine, call: Call) -> Results:
    """``pytest.fixture(params=values)``."""
    if call.get("params") is None:
        return [(call.state, unknown("fixture", call.site))]
    return _kept(_FIXTURE, call, ("params",))


def row(machine: Machine, call: Call) -> Results:
    """``pytest.param(value, other, marks=mark)``."""
    if call.open:
        return [(call.state, unknown("row", call.site))]
    fields = {str(i): value for i, value in enumerate(call.args)}
    made = LibraryObject(_ROW, {**fields, "marks": call.kwargs.get("marks", ())}, call.site)
    return [(call.state, (call.state.new(("row", call.site, tuple(call.args)), made),))]


def cases(machine: Machine, marks: Iterable[Value], state: State) -> list[Case]:
    """The ways in which a test with these decorators is run, as far as they are known."""
    found = [_cases_of(machine, made, state) for mark in marks if (made := _made(mark, state, _MARK)) is not None]
    known = [rows for rows in found if rows]
    ways = list(islice(product(*known), _MOST_CASES + 1))
    if len(ways) > _MOST_CASES:
        ways = list(islice(zip(*map(cycle, known), strict=False), max(map(len, known))))
    return [reduce(Case.joined, way, Case()) for way in ways]


def params(machine: Machine, marks: Iterable[Value], state: State) -> list[Value]:
    """What a fixture with these decorators is told, one value after the other; none where that is not known."""
    for mark in marks:
        made = _made(mark, state, _FIXTURE)
        if made is not None:
            rows = _rows(machine, made.fields["params"], state)
            return [row[0] for row in rows if len(row) == 1]
    return []


def request(param: Value, state: State, site: Site) -> Value:
    """What a fixture is given that asks what it is told."""
    return (state.new(("request", site), LibraryObject(NAMESPACE, {"param": param}, site)),)


def _kept(kind: str, call: Call, names: Iterable[str]) -> Results:
    fields = {name: value for name in names if (value := call.get(name)) is not None}
    return [(call.state, (call.state.new((kind, call.site), LibraryObject(kind, fields, call.site)),))]


def _made(value: Value, state: State, kind: str) -> LibraryObject | None:
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return found if isinstance(found, LibraryObject) and found.type == kind else None


def _cases_of(machine: Machine, mark: LibraryObject, state: State) -> list[Case]:
    """The ways that one mark names; none where they are not known, many, or of numbers that decide nothing."""
    names = _names(machine, mark.fields.get("argnames", ()), state)
    rows = [r for r in _rows(machine, mark.fields.get("argvalues", ()), state, len(names)) if len(r) == len(names)]
    if not names or all(isinstance(value, float) for row in rows for value in map(constant, row)):
        return []
    indirect = mark.fields.get("indirect", ())
    told = names if constant(indirect) is True else _names(machine, indirect, state)
    made = []
    for values in rows:
        by_name = dict(zip(names, values, strict=True))
        given = {name: value for name, value in by_name.items() if name not in told}
        made.append(Case(given, {name: value for name, value in by_name.items() if name in told}))
    return made


def _names(machine: Machine, value: Value, state: State) -> list[str]:
    text = constant(value)
    if isinstance(text, str):
        return [name.strip() for name in text.split(",") if name.strip()]
    listed = [constant(item) for item in machine.exact_items(value, state) or ()]
    return [name for name in listed if isinstance(name, str)]


def _rows(machine: Machine, value: Value, state: State, width: int = 1) -> list[list[Value]]:
    items = machine.exact_items(value, state) or []
    return [row for item in items for row in _row(machine, item, state, width)] if len(items) <= _MOST_ROWS else []


def _row(machine: Machine, item: Value, state: State, width: int) -> Iterator[list[Value]]:
    """The values of a row; none where it is marked as skipped."""
    made = _made(item, state, _ROW)
    if made is None:
        yield [item] if width == 1 else machine.exact_items(item, state) or []
        return
    marks = made.fields["marks"]
    if SKIPPED not in {only(mark) for mark in (marks, *(machine.exact_items(marks, state) or ()))}:
        yield [value for name, value in made.fields.items() if name != "marks"]
