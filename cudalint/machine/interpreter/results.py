"""Values of an expression with the paths on which it has them: joined, so that they stay few."""

from __future__ import annotations

from cudalint.machine.frame import Results
from cudalint.machine.joining import merge, merge_imported, stands_for_something
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Value, union

MOST_RESULTS = 8


def merge_rows(rows: list[tuple[State, list[Value]]]) -> list[tuple[State, list[Value]]]:
    """Join the states of equal rows of values; of too many that differ, all in one."""
    by_values: dict[tuple[Value, ...], list[State]] = {}
    for state, values in rows:
        by_values.setdefault(tuple(values), []).append(state)
    kept = [(state, list(values)) for values, states in by_values.items() for state in merge(states)]
    if len(kept) <= MOST_RESULTS:
        return kept
    joined = [union(column) for column in zip(*(values for _, values in kept), strict=True)]
    return [(state, list(joined)) for state in merge([state for state, _ in kept])]


def merge_results(results: Results) -> Results:
    """Join result states with equal values that differ in nothing a rule could look at."""
    if len(results) < 2:
        return results
    kept: Results = []
    by_value: dict[Value, list[State]] = {}
    for state, value in results:
        by_value.setdefault(value, []).append(state)
    for value, states in by_value.items():
        kept.extend((s, value) for s in merge(states))
    if len(kept) <= MOST_RESULTS:
        return kept
    states = merge([s for s, _ in kept])
    joined = union([v for _, v in kept])
    return [(s, joined) for s in states]


def placed_alike(results: Results) -> Results:
    """The results with those joined that are on the same devices and stand for the same objects and functions."""
    by_kind: dict[tuple[Atom, ...], Results] = {}
    for state, value in results:
        by_kind.setdefault(tuple(atom for atom in value if stands_for_something(atom)), []).append((state, value))
    kept: Results = []
    for alike in by_kind.values():
        value = union([v for _, v in alike])
        kept.extend((state, value) for state in merge_imported([s for s, _ in alike]))
    return kept
