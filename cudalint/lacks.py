"""What a map of processes does not show, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from cudalint.finding import Finding
from cudalint.intake import SYNTAX_ERROR
from cudalint.project.process_map import Lack


def unread(findings: Iterable[Finding]) -> Iterator[Lack]:
    """The files that could not be read, and why."""
    broken = {finding for finding in findings if finding.code == SYNTAX_ERROR}
    yield from (Lack(f.span.filename, f.message) for f in sorted(broken, key=lambda found: found.sort_key))


def cuts(notes: Iterable[str], about: Set[str]) -> Iterator[Lack]:
    """What an analysis noted of entries in these files that were not followed to their end; how much else it noted."""
    others = 0
    for note in notes:
        filename, cut, bound = note.partition(": cut off: ")
        if cut and filename in about:
            yield Lack(filename, f"cut off: {bound}")
        else:
            others += 1
    if others:
        yield Lack(None, f"bounds met elsewhere, which cudalint check --verbose names: {others}")
