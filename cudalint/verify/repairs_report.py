"""Reports of programs that ran as they are and repaired: both side by side, json, junit, markdown."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import Any

from cudalint.finding import Finding
from cudalint.report import junit
from cudalint.report.plain import plain
from cudalint.verify.evidence import Place, head
from cudalint.verify.own_repairs import Attempt, Comparison, Status
from cudalint.verify.program import Trial
from cudalint.verify.report import Format, quoted, where

# Of each output: so many of its last lines, so wide.
_LINES, _WIDTH = 12, 56


def render(compared: Sequence[Comparison], place: Place, output_format: Format) -> str:
    """The whole report, ending with a newline."""
    match output_format:
        case Format.JSON:
            return json.dumps(_document(compared, place), indent=1, ensure_ascii=False) + "\n"
        case Format.JUNIT:
            cases = (_case(one, attempt) for one in compared for attempt in one.attempts)
            return junit.render(f"cudalint --verify --fixes, {where(place)}", cases)
        case Format.TABLE:
            lines = [plain(line) for one in compared for line in _lines(one)]
        case Format.MARKDOWN:
            lines = [line for one in compared for line in _marked(one)]
    return "\n".join([*lines, where(place), summary(compared)]) + "\n"


def told(one: Comparison) -> str:
    """What came of one program, while others still run."""
    counted = Counter(attempt.status for attempt in one.attempts)
    parts = [f"{counted[status]} {status.value}" for status in Status if counted[status]]
    return plain(f"{one.program.name}: {', '.join(parts) or 'no repairs'}")


def summary(compared: Sequence[Comparison]) -> str:
    """Everything counted, on one line."""
    counted = Counter(attempt.status for one in compared for attempt in one.attempts)
    parts = [f"{counted[status]} {status.value}" for status in Status if counted[status]]
    return f"{_count(len(compared), 'program')}, {_count(sum(counted.values()), 'repair')}" + (
        f": {', '.join(parts)}" if parts else ""
    )


def _lines(one: Comparison) -> Iterator[str]:
    if one.before is None:
        yield f"{one.program.name}: no repairs"
        return
    yield f"{one.program.name}: as it is: {_end(one.before)}"
    for attempt in one.attempts:
        yield f"  {attempt.repair.message} ({attempt.repair.level.value}), for {_findings(attempt)}"
        yield f"    {attempt.status.value}: {_end(attempt.trial)}"
        if attempt.repair.reason is not None:
            yield f"    not safe: {attempt.repair.reason}"
        yield from (f"    {line}" for line in attempt.difference)
        yield from (f"    {line}".rstrip() for line in _beside(one.before, attempt.trial))


def _beside(left: Trial, right: Trial) -> Iterator[str]:
    """Both outputs in two columns: what the one printed on the left, the other on the right."""
    yield f"{'as it is':{_WIDTH}} | repaired"
    for one, other in _rows(left.printed, right.printed):
        yield f"{_cut(one):{_WIDTH}} | {_cut(other)}"


def _rows(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The last lines of two outputs, those in one row that both begin with."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    room = max(0, _LINES - max(len(left), len(right)) + same)
    begin = max(0, same - room)
    yield from zip(left[begin:same], right[begin:same], strict=True)
    yield from zip_longest(left[same:][-_LINES:], right[same:][-_LINES:], fillvalue="")


def _marked(one: Comparison) -> Iterator[str]:
    yield f"## {quoted(one.program.name)}\n"
    if one.before is None:
        yield "No repairs.\n"
        return
    yield "| run | status | end | not safe because |\n| --- | --- | --- | --- |"
    yield f"| as it is | | {_cell(_end(one.before))} | |"
    for attempt in one.attempts:
        name = f"{attempt.repair.message} ({attempt.repair.level.value}), for {_findings(attempt)}"
        end, reason = _cell(_end(attempt.trial)), _cell(attempt.repair.reason or "")
        yield f"| {_cell(name)} | {attempt.status.value} | {end} | {reason} |"
    yield from _block("As it is", "text", _last(one.before))
    for attempt in one.attempts:
        yield from _block(f"{attempt.repair.message}: output", "text", _last(attempt.trial))
        if attempt.difference:
            yield from _block(f"{attempt.repair.message}: difference", "diff", attempt.difference)
    yield ""


def _block(title: str, kind: str, lines: Sequence[str]) -> Iterator[str]:
    longest = max((len(line) for line in lines if set(line) == {"`"}), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"\n### {quoted(title)}\n\n{fence}{kind}"
    yield from lines
    yield fence


def _cell(text: str) -> str:
    return quoted(text).replace("|", "\\|")


def _end(trial: Trial) -> str:
    said = f": {trial.seen.said}" if trial.seen.outcome.fails and trial.seen.said else ""
    gpus = sorted({one.gpu for one in trial.seen.footprints})
    used = f", on GPU {' and '.join(map(str, gpus))}" if gpus else ""
    spoiled = "".join(f"; {why}" for why in trial.seen.spoiled)
    return f"{trial.seen.summary} after {trial.seen.seconds:.1f} s{used}{said}{spoiled}"


def _findings(attempt: Attempt) -> str:
    return ", ".join(_place(attempt.trial, finding) for finding in attempt.repair.findings)


def _place(trial: Trial, finding: Finding) -> str:
    row = finding.span.start.row
    cells = trial.cells.get(os.path.realpath(finding.span.filename))
    if cells is None:
        return f"{finding.code} in row {row}"
    cell, within = cells.place(row)
    return f"{finding.code} in cell {cell}:{within}"


def _last(trial: Trial) -> Sequence[str]:
    return trial.printed[-_LINES:]


def _cut(line: str) -> str:
    line = line.expandtabs()
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _case(one: Comparison, attempt: Attempt) -> junit.Case:
    end = f"{attempt.status.value}: {_end(attempt.trial)}"
    return junit.Case(
        f"{one.program.name}: {attempt.repair.message}",
        seconds=attempt.trial.seen.seconds,
        failure="\n".join([end, *attempt.difference]) if attempt in one.wrong else None,
        skipped=end if attempt.status in (Status.BROKEN_OFF, Status.FAILS_BY_ITSELF) else None,
    )


def _document(compared: Sequence[Comparison], place: Place) -> dict[str, Any]:
    programs = [
        {
            "program": list(one.program.words),
            "as it is": None if one.before is None else _run(one.before),
            "repairs": [_attempt(attempt) for attempt in one.attempts],
        }
        for one in compared
    ]
    return {**head(place), "programs": programs}


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "message": attempt.repair.message,
        "applicability": attempt.repair.level.value,
        "reason": attempt.repair.reason,
        "findings": [
            {
                "code": one.code,
                "filename": one.span.filename,
                "location": {"row": one.span.start.row, "column": one.span.start.column},
            }
            for one in attempt.repair.findings
        ],
        "status": attempt.status.value,
        "difference": list(attempt.difference),
        **_run(attempt.trial),
    }


def _run(trial: Trial) -> dict[str, Any]:
    return {
        "end": trial.seen.summary,
        "said": trial.seen.said if trial.seen.outcome.fails else "",
        "seconds": round(trial.seen.seconds, 1),
        "gpus": sorted({one.gpu for one in trial.seen.footprints}),
        "output": list(trial.printed),
    }
