"""Check, apply what may be applied, and check again until nothing changes. Nothing is written here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from cudalint import disk
from cudalint.finding import Applicability, Edit, Finding, Fix
from cudalint.fixes.edits import apply, as_changes
from cudalint.fixing.reach import files_of, home, reach
from cudalint.found import Report
from cudalint.policy.suppression import UNUSED
from cudalint.session import Session
from cudalint.structs import Frozen, replace
from cudalint.text.decode import Refusal, decode, encode
from cudalint.text.source import Cells

_NOTEBOOK = ".ipynb"

# Every round repairs something, and checks all again: n repairs of n lines cost n times n. So many rounds are made,
# and no more than lower so many nodes, or so many times what the first check did; the rest is kept for the next run.
# A check that makes more steps than the first one, since repairs give workers more to do, counts for these as well.
MOST_ROUNDS = 100
MOST_LOWERED = 20_000
MOST_TIMES = 10


class Changed(Frozen):
    """One file before and after."""

    path: str
    before: bytes
    after: bytes


class Fixed(Frozen):
    """What was repaired: the files, how many findings, what is left, and what a user should know.

    ``stdin`` is the repaired standard input, where that was checked; ``homes`` are the files of each repair.
    """

    changes: tuple[Changed, ...]
    count: int
    report: Report
    notes: tuple[str, ...] = ()
    stdin: bytes = b""
    homes: tuple[frozenset[str], ...] = ()

    def made_without(self, refused: frozenset[str]) -> int:
        """How many repairs are there where some files could not be written."""
        return sum(refused.isdisjoint(files) for files in self.homes)


def fix(session: Session, paths: Iterable[str], *, unsafe: bool = False) -> Fixed:
    """Repair what lies under the paths; raises ``NotFound`` for a path that does not exist."""
    named = tuple(paths)
    before = dict(session.unsaved)
    may_write = reach(session.selected(named), named, session.root)

    def check(now: Mapping[str, bytes]) -> Report:
        through_links = {link: now[path] for link, path in may_write.aliases if path in now}
        return session.check(named, instead={**now, **through_links}, admits=rule.admits)

    rule = _Admission(unsafe, may_write.files)
    done = _rounds(check, before, rule)
    left = tuple(
        f"{path} is not repaired: it is a link to a file outside of the project"
        for path in may_write.beyond
        if any(f.fix is not None and f.span.filename == path for f in done.report.findings)
    )
    return replace(done, notes=(*done.notes, *left))


def fix_text(session: Session, filename: str, data: bytes, *, unsafe: bool = False) -> Fixed:
    """Repair one file that is checked without its project."""
    path = os.path.abspath(filename)
    rule = _Admission(unsafe, frozenset({path}))
    done = _rounds(
        lambda now: session.check_alone(filename, now.get(path, data), admits=rule.admits), {path: data}, rule
    )
    after = next((change.after for change in done.changes if change.path == path), data)
    return replace(done, stdin=after)


def alone(repair: Fix) -> tuple[Changed, ...]:
    """The files as one repair by itself leaves them; none where it cannot be applied."""
    before: dict[str, bytes] = {}
    texts = {path: _edited(path, edits, {}, before) for path, edits in _by_file(repair.edits, {}).items()}
    made = tuple(Changed(path, before[path], data) for path, data in sorted(texts.items()) if data is not None)
    return made if len(made) == len(texts) else ()


class _Admission(Frozen):
    """Which repairs a run makes: of which levels, and in which files. What was not named is never written."""

    unsafe: bool
    files: frozenset[str]

    def admits(self, fix: Fix, cells: Mapping[str, Cells]) -> bool:
        if not fix.edits or not files_of(fix, cells) <= self.files:
            return False
        level = fix.applicability
        return level is Applicability.SAFE or (self.unsafe and level is Applicability.UNSAFE)


def _rounds(check: Callable[[Mapping[str, bytes]], Report], before: dict[str, bytes], rule: _Admission) -> Fixed:
    now: dict[str, bytes] = {}
    homes: list[frozenset[str]] = []
    notes: tuple[str, ...] = ()
    report = check(now)
    first = report.effort
    work, most = 0, max(MOST_LOWERED, MOST_TIMES * first.nodes_lowered)
    for number in range(MOST_ROUNDS + 1):
        if number and (number == MOST_ROUNDS or work >= most) and _is_left(report, rule):
            notes = (f"stopped after {number} rounds of repairs; run again for the rest",)
            break
        made = _applied(report, now, before, rule)
        if not made:
            break
        homes += made
        report = check(now)
        work += report.effort.nodes_lowered + max(0, report.effort.steps - first.steps)
    changes = tuple(Changed(path, before[path], data) for path, data in sorted(now.items()) if data != before[path])
    return Fixed(changes, len(homes), report, notes, homes=tuple(homes))


def _is_left(report: Report, rule: _Admission) -> bool:
    return any(finding.fix is not None and rule.admits(finding.fix, report.cells) for finding in report.findings)


def _applied(report: Report, now: dict[str, bytes], before: dict[str, bytes], rule: _Admission) -> list[frozenset[str]]:
    """Apply repairs that share no file with one another, because one may change what the next one rests on.

    Gives the files of each.
    """
    touched: set[str] = set()
    made: list[frozenset[str]] = []
    for fixes in _at_once(f for f in report.findings if f.fix is not None and rule.admits(f.fix, report.cells)):
        by_file = _by_file((edit for fix_ in fixes for edit in fix_.edits), report.cells)
        if not touched.isdisjoint(by_file):
            continue
        texts = {path: _edited(path, edits, now, before) for path, edits in by_file.items()}
        touched.update(by_file)
        changed = {path: data for path, data in texts.items() if data is not None}
        if len(changed) < len(by_file):
            continue
        now.update(changed)
        made.extend(files_of(fix_, report.cells) for fix_ in fixes)
    return made


def _at_once(findings: Iterable[Finding]) -> Iterator[tuple[Fix, ...]]:
    """Repairs that may be made together: each by itself, but all comments of a file, on which nothing rests."""
    comments: dict[str, list[Fix]] = {}
    others: list[Fix] = []
    for finding in findings:
        if finding.fix is not None:
            (comments.setdefault(finding.span.filename, []) if finding.code == UNUSED else others).append(finding.fix)
    yield from map(tuple, comments.values())
    for fix_ in others:
        yield (fix_,)


def _by_file(edits: Iterable[Edit], cells: Mapping[str, Cells]) -> dict[str, list[Edit]]:
    result: dict[str, list[Edit]] = {}
    for edit in edits:
        result.setdefault(home(edit, cells), []).append(edit)
    return result


def _edited(path: str, edits: list[Edit], now: Mapping[str, bytes], before: dict[str, bytes]) -> bytes | None:
    """The bytes of a file with edits in it; None where it cannot be read any more, or not be written so."""
    data = now.get(path)
    if data is None:
        data = before.get(path)
    if data is None:
        try:
            data = disk.read(path)
        except disk.Unreadable:
            return None
        before[path] = data
    if path.endswith(_NOTEBOOK):
        return _edited_notebook(path, edits, data)
    source = decode(path, data)
    if isinstance(source, Refusal):
        return None
    try:
        return encode(apply(source.text, as_changes(source.text, edits)), before[path])
    except (ValueError, IndexError):
        return None


def _edited_notebook(path: str, edits: Iterable[Edit], data: bytes) -> bytes | None:
    from cudalint.text import notebook  # most projects have none

    by_program: dict[str, list[Edit]] = {}
    for edit in edits:
        by_program.setdefault(edit.span.filename, []).append(edit)
    for program, own in by_program.items():
        found = notebook.read(path, data)
        source = None if isinstance(found, Refusal) else found.source(program)
        if isinstance(found, Refusal) or source is None:
            return None
        try:
            data = found.changed(source, own).encode()
        except (ValueError, IndexError):
            return None
    return data
