"""Outcomes of the machine become findings: one for each root cause, with its condition and the steps of its trace."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, product

from cudalint.finding import Finding, Position, Severity, Span, Step, StepKind, at
from cudalint.ir.stored import placed
from cudalint.machine.assumptions import Assumption, deny, of_test
from cudalint.machine.interpreter.program import BY_FORK, BY_SERVER
from cudalint.machine.outcome import OF_INHERITING, Doubt, Kind, Outcome
from cudalint.machine.trace import Site, TraceStep
from cudalint.project.program import FileProgram
from cudalint.rules import registry
from cudalint.rules.base import Rule
from cudalint.structs import Frozen, replace
from cudalint.text.lines import split_rows

# Of one launch only the root cause is reported: the earlier kind wins.
_ROOTS: tuple[frozenset[Kind], ...] = (
    frozenset({Kind.METHOD_WITHOUT_EFFECT, Kind.METHOD_ALREADY_SET}),
    frozenset({Kind.CUDA_TO_FORK, Kind.UNPICKLABLE_CUDA, Kind.UNPICKLABLE_TARGET, Kind.FOREIGN_LOCK}),
    frozenset({Kind.IMPORTED_AGAIN}),
    frozenset({Kind.MISSING_GLOBAL}),
    frozenset({Kind.INHERITED_CUDA, Kind.INHERITED_IN_LOADER}),
    frozenset({Kind.DEFAULT_DEVICE_LOADER, Kind.DEFAULT_DEVICE_SPLIT}),
    frozenset({Kind.CUDA_IN_FORK, Kind.CUDA_IN_LOADER_FORK, Kind.FORK_LAUNCHER, Kind.DAEMON_CHILD}),
    frozenset({Kind.RANK_WITHOUT_DEVICE, Kind.COLLECTIVE_BEFORE_DEVICE}),
    frozenset({Kind.VISIBLE_PER_TASK}),
    frozenset({Kind.CUDA_ACROSS, Kind.CUDA_THROUGH_JOBLIB}),
    frozenset({Kind.ALLOCATION_BEFORE_DEVICE, Kind.ALLOCATION_BEFORE_RANKS, Kind.LOADED_ONTO_ONE}),
    frozenset({Kind.MEMORY_NOT_SHARED}),
    frozenset({Kind.SHARED_GPU}),
)
# What only workers meet that start afresh: where others of the same launch fork, it is no cause of what these meet.
_OF_FRESH = frozenset({Kind.IMPORTED_AGAIN, Kind.MISSING_GLOBAL})
_ROOT_RANK = {kind: i for i, kinds in enumerate(_ROOTS) for kind in kinds}


Way = tuple[Assumption, ...]


class _Judged(Frozen):
    """What a rule says of an outcome. It comes about in each of ``ways``: where all that one of them assumes is so."""

    rule: Rule
    severity: Severity
    outcome: Outcome
    ways: tuple[Way, ...] = ()


# A condition with more parts is not read, and of more that lead to the same the others are only mentioned.
MOST_ASSUMPTIONS = 2
MOST_WAYS = 2
MOST_ALTERNATIVES = 3
MOST_COMPARED = 32
LONGEST_EXPRESSION = 60


def findings_of(files: FileProgram, outcomes: Iterable[Outcome]) -> dict[Finding, Outcome]:
    """The findings that outcomes come to, each with the one that it stands for."""
    rules = registry()
    best: dict[tuple[str, Site], _Judged] = {}
    whens: dict[tuple[tuple[str, Site], Severity], set[str | None]] = {}
    ways: dict[tuple[tuple[str, Site], Severity], set[Way]] = {}
    builds: dict[tuple[Kind, Site], set[Way]] = {}
    for outcome in _root_causes(outcomes):
        if outcome.doubt is Doubt.BUILT:
            builds.setdefault((outcome.kind, outcome.anchor), set()).add(outcome.assumptions)
        for rule in rules.values():
            if outcome.kind not in rule.outcomes:
                continue
            severity = rule.grade(outcome)
            if severity is None:
                continue
            judged = _Judged(rule, severity, outcome)
            key = (rule.code, outcome.anchor)
            whens.setdefault((key, severity), set()).add(outcome.condition)
            ways.setdefault((key, severity), set()).add(outcome.assumptions)
            known = best.get(key)
            if known is None or _better(judged, known):
                best[key] = judged
    for key, one in best.items():
        same = key, one.severity
        weakest = _weakest(one.outcome.assumptions, ways[same])
        # How a package was built is in doubt no more where it comes about either way.
        others = ways[same] | builds.get((one.outcome.kind, one.outcome.anchor), set())
        best[key] = replace(_whenever(one, whens[same]), ways=either_way(weakest, others))
    kept = _quiet_siblings(best)
    places = _spans_of(files, kept)
    return {_finding(files, j, places): j.outcome for j in kept if j.outcome.anchor in places}


def _weakest(shown: Way, ways: Iterable[Way]) -> tuple[Way, ...]:
    """The ways in which something comes about, without those that assume more than another: the one shown first."""
    given = sorted(ways, key=lambda way: (way != shown, len(way), [repr(assumption) for assumption in way]))
    kept: dict[frozenset[Assumption], Way] = {}
    for way in given:
        kept.setdefault(frozenset(way), way)
    return tuple(way for held, way in kept.items() if not any(other < held for other in kept))


def either_way(shown: tuple[Way, ...], ways: Collection[Way]) -> tuple[Way, ...]:
    """Ways without what need not be so: where another differs in nothing but that this is not so there."""
    others = sorted(ways, key=lambda way: (len(way), [repr(assumption) for assumption in way]))[:MOST_COMPARED]
    result: list[Way] = []
    for way in shown:
        for other in others:
            way = way if (rest := _rest(way, other)) is None else rest
        result.append(way)
    left = _weakest(result[0], result)
    # What is left of some denies what is left of others.
    return left if left == shown else either_way(left, {*ways, *left})


def _rest(one: Way, other: Way) -> Way | None:
    """A way without what another denies that assumes nothing else beyond it: it comes about either way; else None."""
    theirs = [assumption for assumption in other if assumption not in one]
    if len(theirs) != 1 or not any(deny(assumption, theirs[0]) for assumption in one):
        return None
    return tuple(assumption for assumption in one if not deny(assumption, theirs[0]))


def _condition(files: FileProgram, judged: _Judged, places: Mapping[Site, Span]) -> str | None:
    """When it is true: by the versions of Python that decide on it, and by what its paths assume."""
    said = [_way(files, judged.outcome, way, places) for way in judged.ways[:MOST_WAYS]]
    ways = (
        [] if None in said or leave_nothing_open(judged.ways) else list(dict.fromkeys(f"if {words}" for words in said))
    )
    others = "among other cases" if ways and len(judged.ways) > MOST_WAYS else None
    parts = (judged.outcome.condition, ", or ".join(ways), others)
    return ", ".join(part for part in parts if part) or None


def leave_nothing_open(ways: Collection[Way]) -> bool:
    """Whether one of these ways is taken in any case: something is so on one, and not so on another."""
    single = [way[0] for way in ways if len(way) == 1]
    return any(deny(one, other) for i, one in enumerate(single) for other in single[i + 1 :])


def _way(files: FileProgram, outcome: Outcome, way: Way, places: Mapping[Site, Span]) -> str | None:
    """What a way assumes, in words; None where that is nothing, or cannot be said."""
    given = [(found, _assumption(files, outcome, found, places)) for found in way[:MOST_ASSUMPTIONS]]
    said = {words: found.instead is not None for found, words in given if words is not None}
    if len(said) == 1:
        return next(iter(said))
    return " and ".join(f"either {words}" if is_choice else words for words, is_choice in said.items()) or None


def _assumption(files: FileProgram, outcome: Outcome, found: Assumption, places: Mapping[Site, Span]) -> str | None:
    if found.instead is not None:
        return _choice([_assumption(files, outcome, replace(one, instead=None), places) for one in found.each])
    if isinstance(found.subject, str):
        return f"{found.subject} {found.holds}"
    span = places.get(found.subject)
    if span is None:
        return None
    text = _written(files, found.subject, span)
    if text is None:
        near = found.subject.module == outcome.anchor.module
        where = "" if near else f" of {os.path.basename(span.filename)}"
        return f"what is asked in line {span.start.row}{where} {found.holds}"
    return of_test(text, found.holds)


def _choice(said: Sequence[str | None]) -> str | None:
    """Things of which one is so, in words; None where one of them cannot be said."""
    words = [one for one in said if one is not None]
    if len(words) < len(said):
        return None
    left = len(words) - MOST_ALTERNATIVES
    return " or ".join(words if left < 2 else (*words[:MOST_ALTERNATIVES], f"one of {left} other things is so"))


def _written(files: FileProgram, site: Site, span: Span) -> str | None:
    """An expression as it is written; None where that would be long."""
    if span.start.row != span.end.row:
        return None
    row = split_rows(files.sources[site.module].text)[span.start.row - 1]
    text = row[span.start.column - 1 : span.end.column - 1]
    return text if len(text) <= LONGEST_EXPRESSION and text.isprintable() and "`" not in text else None


def _better(new: _Judged, old: _Judged) -> bool:
    if new.severity is not old.severity:
        return new.severity.rank > old.severity.rank
    return _order(new.outcome) < _order(old.outcome)


def _order(outcome: Outcome) -> tuple[bool, int]:
    """Of what is as grave, what needs no option to be given comes first, and then what takes the fewest steps."""
    return outcome.doubt is Doubt.CHOSEN, outcome.length


def _whenever(judged: _Judged, whens: Set[str | None]) -> _Judged:
    """The same, without a condition where it comes true in any case, if by another path."""
    if None not in whens and not whens >= {BY_FORK, BY_SERVER}:
        return judged
    return replace(judged, outcome=replace(judged.outcome, condition=None))


def _quiet_siblings(best: dict[tuple[str, Site], _Judged]) -> list[_Judged]:
    """CUD102 is dropped where CUD101 is reported, CUD501 where a collective in between is."""
    result: list[_Judged] = []
    for (code, anchor), judged in best.items():
        if code == "CUD102" and ("CUD101", anchor) in best:
            continue
        result.append(judged)
    return result


def _root_causes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Of one launch only the root cause is reported, for each start method that the Python versions give it."""
    given = list(outcomes)
    first: dict[tuple[Site, str | None, Doubt | None], int] = {}
    first_of_forks: dict[tuple[Site, str | None, Doubt | None], int] = {}
    for outcome in given:
        rank = _ROOT_RANK.get(outcome.kind)
        if rank is not None and outcome.within is not None:
            key = (outcome.within, outcome.condition, _apart(outcome))
            for known in (first,) if outcome.kind in _OF_FRESH else (first, first_of_forks):
                known[key] = min(known.get(key, rank), rank)
    groups = {o.within for o in given if o.kind in _AFTER_GROUP}
    astray = {o.effect[-1].site for o in given if o.kind is Kind.THREAD_DEVICE and o.effect}
    given = _first_again(_first_guesses(given))
    result: list[Outcome] = []
    for outcome in given:
        rank = _ROOT_RANK.get(outcome.kind)
        if rank is not None and outcome.within is not None:
            whens = product((outcome.condition, None), (_apart(outcome), None))
            roots = first_of_forks if outcome.kind in OF_INHERITING else first
            if rank > min(roots.get((outcome.within, *when), rank) for when in whens):
                continue
        if outcome.kind is Kind.INIT_BEFORE_DEVICE and outcome.within in groups:
            continue
        if outcome.kind is Kind.SHARED_GPU and outcome.effect and outcome.effect[-1].site in astray:
            # Threads that were to use another GPU each share this one.
            continue
        result.append(outcome)
    return result


def _apart(outcome: Outcome) -> Doubt | None:
    """Why an outcome comes about only in runs which others do not look at: none of these has it for its root."""
    return outcome.doubt if outcome.doubt in (Doubt.MISSING, Doubt.CHOSEN) else None


def _first_guesses(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of the barriers of one process group that guess their GPU only one: after the first it is settled."""
    first: dict[Site, Outcome] = {}
    for outcome in outcomes:
        if outcome.kind in _GUESSES:
            made = outcome.cause[-1].site
            first[made] = min(first.get(made, outcome), outcome, key=_guess_order)
    anchors = {outcome.anchor for outcome in first.values()}
    return [o for o in outcomes if o.kind not in _GUESSES or o.anchor in anchors]


def _first_again(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of what the children of one launch run again while they import main only one: it ends them."""
    first: dict[tuple[Site, str | None], Outcome] = {}
    for outcome in outcomes:
        if outcome.kind is Kind.IMPORTED_AGAIN and outcome.launch:
            launch = outcome.launch[-1].site, outcome.condition
            first[launch] = min(first.get(launch, outcome), outcome, key=_again_order)
    kept = {outcome.anchor for outcome in first.values()}
    return [o for o in outcomes if o.kind is not Kind.IMPORTED_AGAIN or not o.launch or o.anchor in kept]


def _again_order(outcome: Outcome) -> tuple[bool, int, str, int]:
    return not outcome.certain, len(outcome.effect), outcome.anchor.module, outcome.anchor.ordinal


def _guess_order(outcome: Outcome) -> tuple[bool, int, str, int]:
    return outcome.benign, outcome.length, outcome.anchor.module, outcome.anchor.ordinal


_GUESSES = frozenset({Kind.BARRIER_BEFORE_DEVICE, Kind.BARRIER_GUESSES})
_AFTER_GROUP = frozenset({Kind.COLLECTIVE_BEFORE_DEVICE, Kind.RANK_WITHOUT_DEVICE, Kind.BARRIER_BEFORE_DEVICE})


def _spans_of(files: FileProgram, judged: Iterable[_Judged]) -> dict[Site, Span]:
    return places_of(files, (site for one in judged for site in _sites(one)))


def _sites(judged: _Judged) -> Iterator[Site]:
    outcome = judged.outcome
    yield outcome.anchor
    for segment in (outcome.cause, outcome.launch, outcome.effect):
        yield from (step.site for step in _shown(segment))
    assumed = chain.from_iterable(way[:MOST_ASSUMPTIONS] for way in judged.ways[:MOST_WAYS])
    for found in assumed:
        yield from (one.subject for one in found.each if isinstance(one.subject, Site))


def places_of(files: FileProgram, sites: Iterable[Site]) -> dict[Site, Span]:
    """Where nodes stand; of those in no file, or with no place of their own, nothing."""
    wanted: dict[str, set[int]] = {}
    for site in sites:
        wanted.setdefault(site.module, set()).add(site.ordinal)
    result: dict[Site, Span] = {}
    for name, ordinals in wanted.items():
        source = files.sources.get(name)
        if source is None:
            continue
        known = files.places.setdefault(name, {})
        missing = ordinals - known.keys()
        if missing:
            try:
                found = placed(source.text, source.path, name, missing, files.store)
            except RecursionError:  # of Python 3.12, which bounds calls from C, without a way to ask for more
                files.too_deep(source)
                found = {}
            known.update({ordinal: found.get(ordinal) for ordinal in missing})
        result.update((Site(name, o), span) for o in ordinals if (span := known[o]) is not None)
    return result


def _finding(files: FileProgram, judged: _Judged, places: dict[Site, Span]) -> Finding:
    outcome = judged.outcome
    span = places[outcome.anchor]
    trace = (
        *_steps(outcome.cause, StepKind.CAUSE, places),
        *_steps(outcome.launch, StepKind.LAUNCH, places),
        *_steps(outcome.effect, StepKind.EFFECT, places),
    )
    return Finding(
        code=judged.rule.code,
        name=judged.rule.name,
        severity=judged.severity,
        message=judged.rule.message(outcome),
        span=span,
        trace=trace,
        outcome=outcome.how,
        condition=_condition(files, judged, places),
        noqa_rows=(span.start.row, span.end.row),
        caught=outcome.caught,
        told=outcome.told,
    )


def _steps(steps: Sequence[TraceStep], kind: StepKind, places: dict[Site, Span]) -> Iterable[Step]:
    """The last step of a segment is what happens; those before lead to it."""
    shown = _shown(steps)
    for i, step in enumerate(shown):
        span = places.get(step.site)
        if span is None:
            continue
        step_kind = kind if i == len(shown) - 1 else StepKind.STEP
        yield Step(_first_line(span), step.message, step_kind, step.process)


# A reader needs no more of one segment, and each file that a trace touches is parsed again for its places.
MOST_TRACE_STEPS = 16


def _shown(steps: Sequence[TraceStep]) -> Sequence[TraceStep]:
    """A segment as it is shown: of a very long one the first steps, the last ones, and how many were between."""
    if len(steps) <= MOST_TRACE_STEPS:
        return steps
    half = MOST_TRACE_STEPS // 2
    after = steps[-half]
    left_out = len(steps) - MOST_TRACE_STEPS
    return (*steps[:half], replace(after, message=f"{left_out} calls later: {after.message}"), *steps[-half + 1 :])


def _first_line(span: Span) -> Span:
    if span.start.row == span.end.row:
        return span
    return replace(span, end=Position(span.start.row, span.start.column + 1))


def syntax_errors(files: FileProgram) -> Iterable[Finding]:
    """A finding for each file that is no Python, or cannot be analysed."""
    rule = registry()["CUD901"]
    for broken in files.broken:
        verb = "parse" if broken.row else "analyse"
        place = at(broken.source.path, broken.row, broken.column)
        yield Finding(rule.code, rule.name, rule.severity, f"cannot {verb} this file: {broken.reason}", place)
