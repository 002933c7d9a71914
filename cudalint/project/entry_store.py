"""What entries gave, kept between runs: after an edit, only those run again that could see it.

The entries of one module are kept together. What they gave rests on the files that they asked for, on all that these
import, and on which files there are; it is taken from the store only where all of that says what it said
(``unchanged.py``), so that a run gives what a run without a store would give.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from typing import Any

from cudalint import fingerprint
from cudalint.project.callers import Callers
from cudalint.project.derived import derived
from cudalint.project.entry_result import EntryResult, as_row, from_row
from cudalint.project.program import MOST_BYTES, FileProgram
from cudalint.project.unchanged import Rests
from cudalint.store import Store

_KIND = "entries"


def identity(files: FileProgram, *decisive: str) -> str:
    """What distinguishes a program from all others for any of its entries, beside the contents of modules."""
    scripts = (name for name in files.sources if files.facts(name).guards_main)
    layout = (part for path in sorted(files.names) for part in (path, files.names[path]))
    commands = (part for command in sorted(files.commands) for part in command)
    starting = ("classes", *sorted(derived(files)), "imported", *sorted(files.graph.importers))
    starting = (*starting, "given GPUs", *sorted(files.given_gpus), "called", *sorted(files.layout.distributions))
    starting = (*starting, "large", *sorted(files.layout.large))
    starting = (*starting, "admitted", *sorted(map(repr, files.layout.admitted)))
    preloaded = (part for application in sorted(files.preloaded) for part in application)
    starting = (*starting, "preloaded", *preloaded, "told", *sorted(map(repr, files.told)))
    parts = ("layout", files.layout.top, *layout, "scripts", *sorted(scripts), "commands", *commands, *starting)
    return fingerprint.digest(fingerprint.analysis(), *decisive, *parts)


class EntryStore:
    """The kept results of one program under one configuration; ``about`` distinguishes it from all others.

    Results that rest on edited files are compared by what the run that kept them found out about these files.
    """

    def __init__(self, files: FileProgram, store: Store, about: str) -> None:
        self.files = files
        self.store = store
        self.about = about
        # How many entries were not run again.
        self.taken = 0
        self._found: dict[str, dict[str, Any] | None] = {}
        self._rests = Rests(self.files, self.store, Callers(self.files))

    def of(self, group: str, run: Iterator[EntryResult]) -> Iterator[EntryResult]:
        """What the entries of a group gave: kept from before, or as they give it now."""
        document = self._valid(group)
        if document is not None:
            self._remind(document)
            self.taken += len(document["results"])
            yield from map(from_row, document["results"])
            return
        made: list[EntryResult] = []
        for result in run:
            made.append(result)
            yield result
        reads = self.files.reads
        self._put(
            group,
            {
                "notes": sorted(reads.noted),
                "broken": sorted(name for name in reads.asked if self.files.is_broken(name)),
                "results": list(map(as_row, made)),
                "rest": self._rests.of(reads),
            },
        )

    def has(self, group: str) -> bool:
        """Whether what the entries of a group gave is kept from before."""
        return self._valid(group) is not None

    def _valid(self, group: str) -> dict[str, Any] | None:
        """What was kept of a group, where it would give the same again."""
        if group not in self._found:
            self._found[group] = self._kept(group)
        return self._found[group]

    def _kept(self, group: str) -> dict[str, Any] | None:
        kept = self.store.get(_KIND, self._key(group))
        document: dict[str, Any] | None = None if kept is None else marshal.loads(kept)
        if document is None:
            return None
        rest = document["rest"]
        if not self._rests.hold(rest, is_whole=self.files.known.are_whole(document["stamp"])):
            return None
        now = self._rests.renewed(rest)
        if now != rest:
            self._put(group, {**document, "rest": now})
        return document

    def _put(self, group: str, document: Mapping[str, Any]) -> None:
        self.store.put(_KIND, self._key(group), marshal.dumps({**document, "stamp": self.files.known.stamp()}))

    def _key(self, group: str) -> str:
        return fingerprint.digest(self.about, group)

    def _remind(self, document: Mapping[str, Any]) -> None:
        """What running the entries would have left with the program: notes, and files that cannot be parsed."""
        self.files.note(*document["notes"])
        for name in document["broken"]:
            self.files.begin(MOST_BYTES)
            self.files.module(name)
