"""Which files are not Python, also among those in which nothing else is looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from cudalint.finding import Finding
from cudalint.intake import INTERNAL_ERROR, SYNTAX_ERROR, about_file
from cudalint.text.decode import Refusal
from cudalint.text.source import SourceFile

# Parsing costs ten times as much as all else that is done to a file which does not matter. A tree of up to this
# many bytes is read in full all the same, so that a broken file in it is never passed over.
SMALL_TREE = 2_000_000


def worth_reading(sources: Iterable[SourceFile], selected: Iterable[str], paths: Iterable[str]) -> Iterator[SourceFile]:
    """The files whose syntax is checked although nothing in them may matter: named ones, and all of a small tree."""
    files = frozenset(selected)
    chosen = [source for source in sources if source.path in files]
    if sum(len(source.data) for source in chosen) <= SMALL_TREE:
        yield from chosen
        return
    named = {os.path.abspath(path) for path in paths}
    yield from (source for source in chosen if source.path in named)


def syntax_errors(sources: Iterable[SourceFile], known: Iterable[Finding]) -> Iterator[Finding]:
    """Findings about files that are not Python, beside those already known."""
    reported = {finding.span.filename for finding in known if finding.code in {INTERNAL_ERROR, SYNTAX_ERROR}}
    for source in sources:
        if source.path in reported:
            continue
        from cudalint.project.syntax import broken

        found = broken(source.text)
        if isinstance(found, Refusal):
            yield about_file(SYNTAX_ERROR, source.path, f"cannot analyse this file: {found.reason}")
        elif found is not None:
            message = f"cannot parse this file: {found.reason}"
            yield about_file(SYNTAX_ERROR, source.path, message, found.row, found.column)
