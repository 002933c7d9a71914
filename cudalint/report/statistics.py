"""How often each rule was found."""

from __future__ import annotations

import json
from collections import Counter

from cudalint.session import Report


def as_text(report: Report) -> str:
    """A line per rule, the most frequent first."""
    rows = _rows(report)
    width = max((len(str(count)) for _, _, count in rows), default=0)
    return "".join(f"{count:>{width}}\t{code}\t{name}\n" for code, name, count in rows)


def as_json(report: Report) -> str:
    """The same as a list of objects."""
    rows = [{"code": code, "name": name, "count": count} for code, name, count in _rows(report)]
    return json.dumps(rows, indent=2) + "\n"


def _rows(report: Report) -> list[tuple[str, str, int]]:
    counts = Counter((finding.code, finding.name) for finding in report.findings)
    return sorted(((code, name, count) for (code, name), count in counts.items()), key=lambda row: (-row[2], row[0]))
