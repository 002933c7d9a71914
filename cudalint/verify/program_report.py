"""Reports of a program that was tried out: a table for people, json, junit, markdown."""

from __future__ import annotations

import json
import linecache
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from cudalint.finding import Severity
from cudalint.report import junit
from cudalint.report.plain import plain
from cudalint.text.lines import split_rows
from cudalint.verify.evidence import Place, head
from cudalint.verify.journal import Stack
from cudalint.verify.places import own
from cudalint.verify.program import Judged, Status, Trial
from cudalint.verify.report import Format, quoted, where
from cudalint.verify.violations import Violation

# Frames that are shown of a stack, the innermost first.
_SHOWN = 8


def render(trial: Trial, place: Place, output_format: Format) -> str:
    """The whole report, ending with a newline."""
    match output_format:
        case Format.JSON:
            return json.dumps(_document(trial, place), indent=1, ensure_ascii=False) + "\n"
        case Format.JUNIT:
            return junit.render(f"cudalint --verify {trial.program.name}, {where(place)}", _cases(trial))
        case Format.TABLE:
            return "\n".join(map(plain, _lines(trial, place))) + "\n"
        case Format.MARKDOWN:
            return "\n".join(_marked(trial, place)) + "\n"


def _lines(trial: Trial, place: Place) -> Iterator[str]:
    told: dict[Violation, Judged] = {}
    for judged in trial.findings:
        yield f"{_where(trial, judged)}: {_code(judged)} {_status(judged)}: {judged.finding.message}"
        yield f"  {judged.why}"
        if judged.by is None:
            continue
        first = told.setdefault(judged.by, judged)
        if first is judged:
            yield from _stacks(trial, judged.by)
        else:
            yield f"  seen above, of {first.finding.code} at {_where(trial, first)}"
    for violation in trial.unpredicted:
        yield f"not predicted: {violation.kind.value}: {violation.text}"
        yield from _stacks(trial, violation)
    yield from _ending(trial)
    yield where(place)
    yield summary(trial)


def _marked(trial: Trial, place: Place) -> Iterator[str]:
    yield f"{summary(trial)}. {where(place)}\n"
    if trial.findings:
        yield "| finding | place | status | why |\n| --- | --- | --- | --- |"
    for judged in trial.findings:
        why = quoted(judged.why).replace("|", "\\|")
        yield f"| {_code(judged)} | {_where(trial, judged)} | {_status(judged)} | {why} |"
    for violation in dict.fromkeys(judged.by for judged in trial.findings if judged.by is not None):
        shown = (f"{one.finding.code} at {_where(trial, one)}" for one in trial.findings if one.by == violation)
        yield from _section(trial, "Seen", violation, f"{violation.text}\n\nShows {', '.join(shown)}.")
    for violation in trial.unpredicted:
        yield from _section(trial, "Not predicted", violation, violation.text)
    yield ""
    yield from (f"- {quoted(line)}" for line in _ending(trial))


def _section(trial: Trial, title: str, violation: Violation, text: str) -> Iterator[str]:
    yield f"\n## {title}: {violation.kind.value}\n\n{quoted(text)}\n\n```text"
    yield from _stacks(trial, violation)
    yield "```"


def _ending(trial: Trial) -> Iterator[str]:
    seen = trial.seen
    yield f"the program: {seen.summary} after {seen.seconds:.1f} s, {_count(trial.processes, 'Python process')}" + (
        f": {seen.said}" if seen.outcome.fails and seen.said else ""
    )
    for one in seen.footprints:
        yield f"process {one.pid}: GPU {one.gpu}" + (f", {one.mib} MiB" if one.mib is not None else "")
    if seen.left_behind:
        yield f"{_count(seen.left_behind, 'process')} went on after the program had ended, and had to be ended"
    if trial.became:
        yield f"the program became {trial.became}, into which the probe does not look"
    for line in trial.left_out:
        yield f"left out, as it needs IPython: {line}"
    for words in trial.not_entered:
        yield f"the probe could not enter: {words}"
    yield from seen.spoiled


def summary(trial: Trial) -> str:
    """Everything counted, on one line."""
    told = _counted("finding", [judged.status for judged in trial.findings if not judged.silenced])
    silenced = [judged.status for judged in trial.findings if judged.silenced]
    if silenced:
        told += "; " + _counted("silenced finding", silenced)
    return f"{told}; {_count(len(trial.unpredicted), 'violation')} not predicted"


def _counted(what: str, statuses: Sequence[Status]) -> str:
    counted = Counter(statuses)
    parts = [f"{counted[status]} {status.value}" for status in Status if counted[status]]
    return _count(len(statuses), what) + (f": {', '.join(parts)}" if parts else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}{'es' if what.endswith('s') else 's'}"


def _stacks(trial: Trial, violation: Violation) -> Iterator[str]:
    """The parent's guilt, the fork, and the child's use."""
    if violation.guilt is not None:
        asked = "initialised" if violation.guilt.kind == "init" else "asked for"
        yield f"  process {violation.guilt.pid} {asked} CUDA ({violation.guilt.values[0]}):"
        yield from _frames(trial, violation.guilt.stack)
    if violation.launch:
        yield "  it forked:" if violation.pid else "  who waited for it:"
        yield from _frames(trial, violation.launch)
    yield f"  process {violation.pid}:" if violation.pid else "  a process:"
    yield from _frames(trial, violation.use)


def _frames(trial: Trial, stack: Stack) -> Iterator[str]:
    for name, row, function in (own(stack) or stack)[:_SHOWN]:
        source = _line(trial, name, row)
        yield f"    {_at(trial, name, row)} in {function}" + (f": {source}" if source else "")


def named(trial: Trial, judged: Judged) -> str:
    """A finding by its code and place."""
    return f"{judged.finding.code} at {_where(trial, judged)}"


def _code(judged: Judged) -> str:
    return judged.finding.code + (" (note)" if judged.finding.severity is Severity.NOTE else "")


def _status(judged: Judged) -> str:
    return judged.status.value + (" (silenced)" if judged.silenced else "")


def _where(trial: Trial, judged: Judged) -> str:
    span = judged.finding.span
    return f"{_at(trial, span.filename, span.start.row)}:{span.start.column}"


def _at(trial: Trial, name: str, row: int) -> str:
    """A row of a file, or of a cell."""
    cells = trial.cells.get(os.path.realpath(name))
    if cells is None:
        return f"{_short(name)}:{row}"
    cell, within = cells.place(row)
    return f"{_short(cells.notebook)}:cell {cell}:{within}"


def _line(trial: Trial, name: str, row: int) -> str:
    """What stands there."""
    cells = trial.cells.get(os.path.realpath(name))
    if cells is None:
        return linecache.getline(name, row).strip()
    rows = split_rows(cells.shown)
    return rows[row - 1].strip() if row <= len(rows) else ""


def _short(name: str) -> str:
    try:
        relative = os.path.relpath(name)
    except (ValueError, OSError):  # on another drive; where the program has removed the folder that it began in
        return name
    return name if relative.startswith("..") else relative


def _cases(trial: Trial) -> Iterator[junit.Case]:
    yield junit.Case(
        trial.program.name,
        seconds=trial.seen.seconds,
        failure=f"{trial.seen.summary}: {trial.seen.said}".rstrip(": ") if trial.showed_nothing else None,
        output=trial.seen.text if trial.showed_nothing else "",
    )
    for judged in trial.findings:
        name = f"{_where(trial, judged)} {judged.finding.code}"
        failed = judged.status is Status.REFUTED and not judged.silenced
        skipped = judged.status is Status.NOT_REACHED
        yield junit.Case(name, failure=judged.why if failed else None, skipped=judged.why if skipped else None)
    for violation in trial.unpredicted:
        yield junit.Case(f"not predicted: {violation.kind.value}", failure="\n".join(_stacks(trial, violation)))


def _document(trial: Trial, place: Place) -> dict[str, Any]:
    return {
        **head(place),
        "program": list(trial.program.words),
        "end": trial.seen.summary,
        "said": trial.seen.said if trial.seen.outcome.fails else "",
        "seconds": round(trial.seen.seconds, 1),
        "processes": trial.processes,
        "gpus": [{"process": one.pid, "gpu": one.gpu, "mib": one.mib} for one in trial.seen.footprints],
        "not entered": list(trial.not_entered),
        "left out": list(trial.left_out),
        "became": trial.became,
        "left behind": trial.seen.left_behind,
        "interrupted": trial.seen.end == "cancelled",
        "findings": [_finding(trial, judged) for judged in trial.findings],
        "unpredicted": [_violation(trial, violation) for violation in trial.unpredicted],
    }


def _finding(trial: Trial, judged: Judged) -> dict[str, Any]:
    start = judged.finding.span.start
    return {
        "code": judged.finding.code,
        "severity": judged.finding.severity.value,
        **_located(trial, judged.finding.span.filename, start.row, start.column),
        "status": judged.status.value,
        "silenced": judged.silenced,
        "why": judged.why,
        "seen": None if judged.by is None else _violation(trial, judged.by),
    }


def _violation(trial: Trial, violation: Violation) -> dict[str, Any]:
    return {
        "kind": violation.kind.name.lower().replace("_", "-"),
        "process": violation.pid,
        "said": violation.text,
        "parent": None if violation.guilt is None else _stack(trial, violation.guilt.stack),
        "fork" if violation.pid else "waits": _stack(trial, violation.launch),
        "child": _stack(trial, violation.use),
    }


def _stack(trial: Trial, stack: Stack) -> list[dict[str, Any]]:
    return [{**_row(trial, name, row), "function": function} for name, row, function in stack]


def _located(trial: Trial, name: str, row: int, column: int) -> dict[str, Any]:
    place = _row(trial, name, row)
    within = place.pop("row")
    return {**place, "location": {"row": within, "column": column}}


def _row(trial: Trial, name: str, row: int) -> dict[str, Any]:
    cells = trial.cells.get(os.path.realpath(name))
    if cells is None:
        return {"filename": name, "row": row}
    cell, within = cells.place(row)
    return {"filename": cells.notebook, "cell": cell, "row": within}
