"""What a run does not show because it is known: from a baseline, and from an earlier state of the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from cudalint.finding import Finding
from cudalint.policy.baseline import Baseline, Entry, Split
from cudalint.structs import Frozen


class Accepted(Frozen):
    """What is known to a run over some files.

    ``before`` was found at another state of the program: what of it has gone is no news.
    """

    kept: Baseline | None
    before: Baseline | None
    files: frozenset[str]

    def states(self) -> Iterator[str]:
        """What tells this from all others: the entries, and which of their files are there."""
        for one in (self.kept, self.before):
            if one is not None:
                there = sorted({path for path in map(one.path, one.entries) if os.path.lexists(path)})
                yield repr((one.folder, one.entries, sorted(one.changed), there))

    def split(
        self,
        findings: tuple[Finding, ...],
        texts: Mapping[str, str],
        unread: frozenset[str],
        is_shown: Callable[[str], bool],
    ) -> Split:
        """What of the findings is new, and what of the baseline has gone.

        Nothing can be said of entries in ``unread`` files, nor of those whose code the run does not show.
        """
        known: set[Finding] = set()
        vanished: tuple[Entry, ...] = ()
        for one in (self.kept, self.before):
            if one is None:
                continue

            def is_judged(entry: Entry, one: Baseline = one) -> bool:
                path = one.path(entry)
                is_read = path in self.files or path in one.changed or not os.path.lexists(path)
                return is_read and path not in unread and is_shown(entry.identity.code)

            split = one.split(findings, texts, is_judged)
            known.update(split.known)
            vanished = split.vanished if one is self.kept else vanished
        new = tuple(finding for finding in findings if finding not in known)
        return Split(new, tuple(finding for finding in findings if finding in known), vanished)
