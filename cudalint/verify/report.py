"""Reports of a verification: a table for people, json, junit, markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from cudalint.report import junit
from cudalint.structs import Frozen
from cudalint.verify.evidence import Place, by_gpu, document
from cudalint.verify.headers import Outcome
from cudalint.verify.observe import Observation
from cudalint.verify.verdict import INTERRUPTED, Status, Verdict


class Format(Enum):
    """The names of the formats on the command line."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"


class Summary(Frozen):
    """How many fixtures met which end."""

    fixtures: int
    broken: int
    ok: int
    refuted: int
    not_run: int
    repaired: int

    def __str__(self) -> str:
        repaired = f" ({self.repaired} of them repaired)" if self.repaired else ""
        fixtures = "1 fixture" if self.fixtures == 1 else f"{self.fixtures} fixtures"
        return (
            f"{fixtures}: {self.broken} confirmed broken{repaired}, {self.ok} confirmed ok, "
            f"{self.refuted} refuted, {self.not_run} not run"
        )


def summarise(verdicts: Iterable[Verdict]) -> Summary:
    """Count."""
    listed = list(verdicts)
    counted = Counter((verdict.status, verdict.is_broken) for verdict in listed)
    confirmed = [one for one in listed if one.status in (Status.CONFIRMED, Status.LATENT)]
    repaired = sum(one.is_broken and one.fixed is not None for one in confirmed)

    def count(*statuses: Status, broken: tuple[bool, ...] = (True, False)) -> int:
        return sum(counted[status, kind] for status in statuses for kind in broken)

    return Summary(
        fixtures=sum(counted.values()),
        broken=count(Status.CONFIRMED, Status.LATENT, broken=(True,)),
        ok=count(Status.CONFIRMED, broken=(False,)),
        refuted=count(Status.REFUTED),
        not_run=count(Status.NOT_RUN),
        repaired=repaired,
    )


def render(verdicts: Sequence[Verdict], place: Place, output_format: Format, seconds: float) -> str:
    """The whole report, ending with a newline."""
    match output_format:
        case Format.TABLE:
            lines = _table(verdicts, place, seconds)
        case Format.MARKDOWN:
            lines = _markdown(verdicts, place, seconds)
        case Format.JSON:
            return json.dumps(document(place, verdicts), indent=1, ensure_ascii=False) + "\n"
        case Format.JUNIT:
            return junit.render(f"cudalint --verify, {where(place)}", map(_case, verdicts))
    return "\n".join(lines) + "\n"


def line(verdict: Verdict) -> str:
    """One fixture on one line."""
    shown = f"{verdict.fixture.name}: {verdict.status.value}"
    if verdict.status is Status.NOT_RUN:
        return f"{shown} ({verdict.reasons[0]})"
    assert verdict.run is not None
    shown += f" ({verdict.run.summary}, {verdict.run.seconds:.1f} s)"
    return f"{shown}: {verdict.reasons[0]}" if verdict.reasons else shown


def _case(verdict: Verdict) -> junit.Case:
    reasons = "\n".join(verdict.reasons)
    return junit.Case(
        name=verdict.fixture.name,
        group=verdict.fixture.group,
        seconds=0.0 if verdict.run is None else verdict.run.seconds,
        failure=reasons if verdict.status is Status.REFUTED else None,
        skipped=reasons if verdict.status is Status.NOT_RUN else None,
        output="" if verdict.run is None or verdict.status is not Status.REFUTED else verdict.run.text,
    )


def _table(verdicts: Sequence[Verdict], place: Place, seconds: float) -> Iterator[str]:
    cells = [_row(name, chosen) for name, chosen in _by_folder(verdicts)]
    header = ("", "fixtures", "broken", "repaired", "ok", "refuted", "not run")
    widths = [max(len(row[column]) for row in (header, *cells)) for column in range(len(header))]
    for row in (header, *cells):
        yield "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
    costs = [text for verdict in verdicts for text in _before_and_after(verdict)]
    if costs:
        yield "\nBefore and after:"
        yield from (f"  {text}" for text in costs)
    for title, status in (("Refuted", Status.REFUTED), ("Not run", Status.NOT_RUN)):
        lines = _named(verdicts, status)
        if lines:
            yield f"\n{title}:"
            yield from (f"  {text}" for text in lines)
    yield ""
    yield where(place)
    yield f"{summarise(verdicts)} ({seconds:.0f} s)"


def _markdown(verdicts: Sequence[Verdict], place: Place, seconds: float) -> Iterator[str]:
    yield f"{summarise(verdicts)} ({seconds:.0f} s). {where(place)}"
    yield "\n| rule | fixtures | broken | repaired | ok | refuted | not run |"
    yield "| --- | --: | --: | --: | --: | --: | --: |"
    for name, chosen in _by_folder(verdicts):
        yield f"| {' | '.join(_row(name, chosen))} |"
    sections = (
        ("Refuted", _named(verdicts, Status.REFUTED)),
        ("Not run", _named(verdicts, Status.NOT_RUN)),
        ("Before and after", [text for verdict in verdicts for text in _before_and_after(verdict)]),
    )
    for title, lines in sections:
        if lines:
            yield f"\n## {title}\n"
            yield from (f"- {quoted(text)}" for text in lines)
    rows = list(_processes(verdicts))
    if rows:
        yield "\n## Processes on GPUs\n"
        yield "| fixture | GPU | processes | MiB, the most of each |\n| --- | --: | --: | --- |"
        yield from rows


def _before_and_after(verdict: Verdict) -> Iterator[str]:
    """What a warning costs: the numbers of the program and of the repaired one."""
    run, fixed = verdict.run, verdict.fixed
    if run is None or fixed is None or verdict.fixture.header.outcome is not Outcome.COST:
        return
    names = [name for name in run.measured if name in fixed.measured]
    numbers = [f"{name} {run.measured[name]} -> {fixed.measured[name]}" for name in names]
    seconds = f"{run.seconds:.1f} -> {fixed.seconds:.1f} s"
    held, held_then = _held(run), _held(fixed)
    memory = [f"{held} -> {held_then}"] if held and held_then else []
    yield f"{verdict.fixture.name}: {', '.join([*numbers, seconds, *memory])}"


def _held(run: Observation) -> str:
    """The most that each process was seen to hold, per physical GPU; empty where nobody looked."""
    gpus = [(gpu, [one for one in held if one is not None]) for gpu, held in by_gpu(run)]
    return "; ".join(f"GPU {gpu}: {' + '.join(map(str, held))} MiB" for gpu, held in gpus if held)


def _processes(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Rows of a table: who used which GPU. On paper it is only known that a process did."""
    for verdict in verdicts:
        for gpu, held in () if verdict.run is None else by_gpu(verdict.run):
            known = " + ".join(str(one) for one in held if one is not None)
            yield f"| {verdict.fixture.name} | {gpu} | {len(held)} | {known} |"


def _row(name: str, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    counted = summarise(verdicts)
    numbers = (counted.fixtures, counted.broken, counted.repaired, counted.ok, counted.refuted, counted.not_run)
    return (name, *(str(number) if number else "" for number in numbers))


def _by_folder(verdicts: Iterable[Verdict]) -> list[tuple[str, list[Verdict]]]:
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.fixture.name.partition("/")[0], []).append(verdict)
    return sorted(grouped.items())


def _named(verdicts: Iterable[Verdict], status: Status) -> list[str]:
    chosen = [verdict for verdict in verdicts if verdict.status is status]
    broken_off = [verdict for verdict in chosen if verdict.reasons == (INTERRUPTED,)]
    named = [verdict for verdict in chosen if verdict not in broken_off]
    lines = [f"{verdict.fixture.name}: {'; '.join(verdict.reasons)}" for verdict in named]
    return [*lines, f"{len(broken_off)} more: {INTERRUPTED}"] if broken_off else lines


def quoted(text: str) -> str:
    """What a program said, so that markdown shows it as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def where(place: Place) -> str:
    """The machine and the versions, on one line."""
    if not place.is_hardware:
        return f"on paper: stub frameworks ended as measured elsewhere; no GPU took part. Python {place.python}"
    counted = Counter(place.gpus)
    gpus = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counted.items())
    versions = ", ".join(f"{name} {version}" for name, version in sorted(place.versions.items()))
    return f"{gpus}, driver {place.driver}, Python {place.python}" + (f", {versions}" if versions else "")
