"""How often each rule was found, and how bad it was."""

from __future__ import annotations

import json
from collections import Counter

from cudalint.finding import Severity
from cudalint.found import Report


def as_text(report: Report) -> str:
    """A line per rule, the most frequent first; what only notes it says so."""
    rows = _rows(report)
    notes = _notes(report)
    width = max((len(str(count)) for _, _, count in rows), default=0)
    return "".join(f"{count:>{width}}\t{code}\t{name}{_told(count, notes[code])}\n" for code, name, count in rows)


def as_json(report: Report) -> str:
    """The same as a list of objects."""
    notes = _notes(report)
    rows = [{"code": code, "name": name, "count": count, "notes": notes[code]} for code, name, count in _rows(report)]
    return json.dumps(rows, indent=2) + "\n"


def _notes(report: Report) -> Counter[str]:
    """How many findings of each rule fail nothing."""
    return Counter(finding.code for finding in report.findings if finding.severity is Severity.NOTE)


def _told(count: int, notes: int) -> str:
    if not notes:
        return ""
    return "\tnotes" if notes == count else f"\t{notes} of them notes"


def _rows(report: Report) -> list[tuple[str, str, int]]:
    counts = Counter((finding.code, finding.name) for finding in report.findings)
    return sorted(((code, name, count) for (code, name), count in counts.items()), key=lambda row: (-row[2], row[0]))
