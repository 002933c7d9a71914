"""Whether what was read for something still says the same, although files were edited.

An edit of one function changes nothing for those who did not look at it. So what rests on a file rests on what
searching its bytes shows, on its outline, and on the bodies that were looked at: numbers of nodes in one body do not
depend on the others, and none depends on comments or on where code stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from cudalint import fingerprint
from cudalint.ir.alike import alike
from cudalint.ir.bodies import Bodies
from cudalint.ir.stored import kept_form
from cudalint.project.callers import Callers
from cudalint.project.file_facts import Shape
from cudalint.project.program import FileProgram
from cudalint.project.reads import Reads
from cudalint.store import Store
from cudalint.structs import Mutable, field

_DIGEST_BYTES = 16
_NONE = bytes(_DIGEST_BYTES)


class Rests(Mutable):
    """What reads rest on, as plain data, and whether that is still so in a program."""

    files: FileProgram
    store: Store
    callers: Callers
    _below: dict[frozenset[str], tuple[str, ...]] = field(default_factory=dict)
    _digests: dict[tuple[str, ...], bytes] = field(default_factory=dict)
    _agreeing: dict[tuple[str, bytes], bool] = field(default_factory=dict)
    _changed: dict[tuple[str, bytes], frozenset[int] | None] = field(default_factory=dict)

    def of(self, reads: Reads) -> dict[str, Any]:
        """What reads rest on."""
        names = self._names(reads.asked | reads.imported | reads.searched)
        looked: dict[str, list[int]] = {}
        for name, number in sorted(reads.looked):
            looked.setdefault(name, []).append(number)
        below = frozenset(names)
        return {
            "asked": sorted(reads.asked),
            "imported": sorted(reads.imported),
            "searched": sorted(reads.searched),
            "looked": looked,
            "settings": sorted(reads.settings.items()),
            "sought": [(*place, homes) for place, homes in sorted(reads.sought.items())],
            "judged": {name: does for name, does in self.files.effects.judged.items() if name in below},
            "names": fingerprint.digest(*names),
            "files": self._contents(names),
        }

    def hold(self, rest: Mapping[str, Any], *, is_whole: bool) -> bool:
        """Whether that is still so; ``is_whole``: all that was found out about files then is known."""
        names = self._names(_begun(rest))
        if fingerprint.digest(*names) != rest["names"] or not self._sought(rest["sought"]):
            return False
        if not self.files.settings_files.hold(rest["settings"]):
            return False
        contents = self._contents(names)
        if contents == rest["files"]:
            return True
        if not is_whole:
            return False
        edited = {name: before for name, now, before in _apart(names, contents, rest["files"]) if now != before}
        asked, searched = frozenset(rest["asked"]), frozenset(rest["searched"])
        looked: Mapping[str, Sequence[int]] = rest["looked"]
        return (
            searched.isdisjoint(edited)
            and all(self._agree(name, before) for name, before in edited.items())
            and all(
                self._looks_alike(name, before, looked.get(name, ()))
                for name, before in edited.items()
                if name in asked
            )
            and self._judged(rest["judged"], edited)
        )

    def renewed(self, rest: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same of the files as they are now, where it still holds."""
        return {**rest, "files": self._contents(self._names(_begun(rest)))}

    def _names(self, read: Set[str]) -> tuple[str, ...]:
        """The files that something rests on: those that it read, and all that they import."""
        start = frozenset(read)
        if start not in self._below:
            self._below[start] = tuple(sorted(self.files.graph.below(start)))
        return self._below[start]

    def _contents(self, names: tuple[str, ...]) -> bytes:
        if names not in self._digests:
            self._digests[names] = b"".join(map(self._digest, names))
        return self._digests[names]

    def _digest(self, name: str) -> bytes:
        return self.files.facts(name).digest if name in self.files.sources else _NONE

    def _sought(self, sought: Iterable[tuple[str, str, tuple[str, ...]]]) -> bool:
        """Whether the same files hold the words that were sought."""
        return all(
            module in self.files.sources and self.callers.homes(module, word) == tuple(homes)
            for module, word, homes in sought
        )

    def _agree(self, name: str, before: bytes) -> bool:
        """Whether searching the bytes of an edited file shows what it showed before."""
        key = name, before
        if key not in self._agreeing:
            known = self.files.known.before(before)
            self._agreeing[key] = (
                known is not None
                and name in self.files.sources
                and not self.files.is_notebook(name)
                and self.files.facts(name).agree_with(known)
            )
        return self._agreeing[key]

    def _looks_alike(self, name: str, before: bytes, looked: Iterable[int]) -> bool:
        """Whether the outline of an edited file is as it was, and so are the bodies that were looked at."""
        key = name, before
        if key not in self._changed:
            self._changed[key] = self._changed_bodies(name, before)
        changed = self._changed[key]
        return changed is not None and changed.isdisjoint(looked)

    def _changed_bodies(self, name: str, before: bytes) -> frozenset[int] | None:
        """The numbers of the bodies that an edit changed; None where it changed more."""
        known = self.files.known.before(before)
        old = None if known is None else Shape.of(known)
        with self.files.aside():
            module = self.files.module(name)
        new = self.files.facts(name).shape
        if old is None or new is None or module is None or len(old.bodies) != len(new.bodies):
            return None
        now, then = self.files.form(name), kept_form(old.text, module.filename, name, self.store)
        waiting = None if then is None else then.bodies
        if old.outline != new.outline and (then is None or not alike(module, then.module)):
            return None
        apart = (i for i, (one, other) in enumerate(zip(old.bodies, new.bodies, strict=True)) if one != other)
        with self.files.aside():
            changed = frozenset(number for number in apart if not _is_same(number, now.bodies, waiting))
        return changed if changed.isdisjoint((*old.globals, *new.globals)) else None

    def _judged(self, judged: Mapping[str, bool], edited: Mapping[str, bytes]) -> bool:
        """Whether imports that call what lies in an edited file still do something, or nothing."""
        importers = self.files.graph.importers
        near = set(edited)
        # Decorators are sought in what a file imports, and in what that imports.
        for _ in range(2):
            near = near.union(*(importers.get(name, ()) for name in near))
        return all(self.files.effects.acts_by_calls(name) == judged[name] for name in judged.keys() & near)


def _begun(rest: Mapping[str, Any]) -> frozenset[str]:
    """The files that something read."""
    return frozenset((*rest["asked"], *rest["imported"], *rest["searched"]))


def _is_same(number: int, now: Bodies | None, then: Bodies | None) -> bool:
    """Whether a body says what it said before, in other words for people alone."""
    before = None if then is None else then.known(number)
    after = None if now is None or before is None else now.found(number)
    return before is not None and alike(before, after)


def _apart(names: Sequence[str], now: bytes, before: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    for i, name in enumerate(names):
        place = slice(i * _DIGEST_BYTES, (i + 1) * _DIGEST_BYTES)
        yield name, now[place], before[place]
