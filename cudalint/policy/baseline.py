"""Findings that are known and accepted: kept in a file, or found at another state of the program.

An entry is spent on one finding, so a second one of the same kind in the same statement is new. A finding takes the
entry of its own identity first; then one of the other grade of its rule; then one whose function has another name now;
then one of a file that is gone, or that the run looked at and where it is not found any more, for files that were
renamed (first within their folder, then with their name) and functions that moved.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping

from cudalint import disk
from cudalint.finding import Finding
from cudalint.policy.identity import Identity, identities
from cudalint.structs import Frozen, Ordered

# What a file says of itself. A change that older readers would misread takes the next number.
VERSION = 1
_KIND = "cudalint-baseline"
# The run itself failed there: nobody can accept what is not known.
_NEVER = frozenset({"CUD900"})


class BaselineError(Exception):
    """A file that is no baseline, or cannot be read or written; the text is one line."""


class Entry(Ordered):
    """One accepted finding; the message is for whoever reads the file."""

    identity: Identity
    message: str = ""


class Split(Frozen):
    """Findings as a baseline divides them; ``vanished`` are the entries that nothing was found for."""

    new: tuple[Finding, ...]
    known: tuple[Finding, ...]
    vanished: tuple[Entry, ...] = ()


class Baseline(Frozen):
    """Accepted findings, with paths from ``folder``.

    ``changed`` are files that are known to be not as they were: what was in them may lie elsewhere now.
    """

    folder: str
    entries: tuple[Entry, ...] = ()
    changed: frozenset[str] = frozenset()

    def path(self, entry: Entry) -> str:
        """The absolute path of the file that an entry is about."""
        return os.path.normpath(os.path.join(self.folder, entry.identity.path))

    def split(self, findings: Iterable[Finding], texts: Mapping[str, str], is_judged: Callable[[Entry], bool]) -> Split:
        """What of the findings is new; ``is_judged`` says of an entry whether the run would have found it."""
        listed = tuple(findings)
        found = identities(listed, texts, self.folder)
        open_ = {index for index, finding in enumerate(listed) if finding.code not in _NEVER}
        known: set[int] = set()
        left = dict(enumerate(self.entries))
        for key, of_all in _STAGES:
            stock = _Stock(key, left if of_all else {n: entry for n, entry in left.items() if is_judged(entry)})
            for index in sorted(open_ - known):
                if (spent := stock.take(found[index])) is not None:
                    known.add(index)
                    del left[spent]
        return Split(
            tuple(finding for index, finding in enumerate(listed) if index not in known),
            tuple(listed[index] for index in sorted(known)),
            tuple(entry for entry in left.values() if is_judged(entry)),
        )

    def without(self, gone: Iterable[Entry]) -> Baseline:
        """The baseline less some of its entries, each as often as it is given."""
        less = Counter(gone)
        kept = []
        for entry in self.entries:
            less[entry] -= 1
            if less[entry] < 0:
                kept.append(entry)
        return Baseline(self.folder, tuple(kept))


def of(findings: Iterable[Finding], texts: Mapping[str, str], folder: str) -> Baseline:
    """The baseline that accepts these findings."""
    listed = [finding for finding in findings if finding.code not in _NEVER]
    known = identities(listed, texts, folder)
    made = (Entry(identity, finding.message) for identity, finding in zip(known, listed, strict=True))
    return Baseline(folder, tuple(sorted(made)))


def load(path: str) -> Baseline:
    """Read a file; raises ``BaselineError``."""
    try:
        # Windows' own tools begin a file that they write with a byte order mark.
        document = json.loads(disk.read(path).decode("utf-8-sig"))
    except disk.Unreadable as reason:
        raise BaselineError(f"{path}: {reason}; --write-baseline makes one") from None
    except (ValueError, RecursionError):
        raise BaselineError(f"{path}: not a baseline: it is no JSON") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise BaselineError(f'{path}: not a baseline: it lacks "kind": "{_KIND}"')
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BaselineError(f"{path}: not a baseline: its version is no number")
    if version > VERSION:
        raise BaselineError(f"{path}: a newer cudalint wrote it (version {version}; this one reads {VERSION})")
    listed = document.get("findings")
    if not isinstance(listed, list):
        raise BaselineError(f'{path}: not a baseline: "findings" is no list')
    folder = os.path.dirname(os.path.realpath(path))
    return Baseline(folder, tuple(_entry(path, number, found) for number, found in enumerate(listed, 1)))


def save(path: str, baseline: Baseline) -> None:
    """Write a file in one step; raises ``BaselineError``, also for one that is there and is no baseline."""
    target = os.path.realpath(path)
    if os.path.lexists(target):
        load(target)
    document = {"kind": _KIND, "version": VERSION, "findings": [_written(entry) for entry in sorted(baseline.entries)]}
    text = json.dumps(document, indent=1) + "\n"
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        with open(beside, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.replace(beside, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise BaselineError(f"{path} cannot be written: {disk.words(error)}") from None


_FIELDS = ("path", "code", "function", "statement")
_STAGES: tuple[tuple[Callable[[Identity], Hashable | None], bool], ...] = (
    (lambda identity: identity, True),
    (lambda identity: identity.of_any_grade, True),
    (lambda identity: identity.renamed if identity.statement else None, True),
    (lambda identity: identity.in_folder if identity.statement else None, False),
    (lambda identity: identity.in_namesake if identity.statement else None, False),
    (lambda identity: identity.elsewhere if identity.statement else None, False),
)


class _Stock:
    """Entries by a part of their identity, to be spent."""

    def __init__(self, key: Callable[[Identity], Hashable | None], entries: Mapping[int, Entry]) -> None:
        self._key = key
        self._left: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number, entry in entries.items():
            self._left[key(entry.identity)].append(number)

    def take(self, identity: Identity) -> int | None:
        """The number of an entry that this identity matches, if any is left."""
        key = self._key(identity)
        return self._left[key].pop(0) if key is not None and self._left.get(key) else None


def _written(entry: Entry) -> dict[str, str]:
    fields = {name: getattr(entry.identity, name) for name in _FIELDS}
    return {**fields, "message": entry.message}


def _entry(path: str, number: int, found: object) -> Entry:
    fields = [found.get(name) if isinstance(found, dict) else None for name in _FIELDS]
    values = [value for value in fields if isinstance(value, str)]
    if len(values) < len(_FIELDS):
        raise BaselineError(f"{path}: not a baseline: finding {number} lacks one of {', '.join(_FIELDS)}")
    message = found.get("message") if isinstance(found, dict) else None
    return Entry(Identity(*values), message if isinstance(message, str) else "")
