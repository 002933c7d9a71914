"""``--fix --unsafe-fixes`` leaves a program: it parses, has no new error, keeps comments, line ends and modes."""

from __future__ import annotations

import ast
import contextlib
import io
import stat
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from cudalint import config
from cudalint.finding import Applicability, Severity
from cudalint.found import Report
from cudalint.hosts.cli import main
from cudalint.session import Session
from fuzz.case import Case, laid_out

_MODE = 0o741


def complaints(case: Case) -> Iterator[str]:
    """What is wrong with the files after their repair."""
    with laid_out(case) as top:
        before = _report(top)
        levels = {finding.fix.applicability for finding in before.findings if finding.fix is not None}
        if not levels - {Applicability.DISPLAY}:
            return
        for name in case.files:
            (top / name).chmod(_MODE)
        told = _fixed(top)
        is_cut = told.startswith("cudalint: warning: stopped after")
        if told and not is_cut:
            yield f"the repair said: {told.splitlines()[0][:200]}"
        after = {name: (top / name).read_bytes() for name in case.files}
        for name, data in after.items():
            yield from (f"{what} of {name}" for what in _spoilt(case.files[name], data))
            if stat.S_IMODE((top / name).stat().st_mode) != _MODE:
                yield f"another mode of {name}"
        yield from _new_errors(before, _report(top))
        if is_cut:
            return  # the rest is for the next run
        _fixed(top)
        again = {name: (top / name).read_bytes() for name in case.files}
        if again != after:
            yield f"a second repair changes more: {sorted(name for name in after if after[name] != again[name])}"
        yield from _others(top, case.files)


def _report(top: Path) -> Report:
    return Session(config.load([str(top)])).check([str(top)])


def _fixed(top: Path) -> str:
    """What was said on standard error."""
    told, errors = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors):
        main(["check", "--fix", "--unsafe-fixes", "--no-cache", str(top)])
    return errors.getvalue()


def _spoilt(before: bytes, after: bytes) -> Iterator[str]:
    """What a repair must leave, and did not."""
    if before == after:
        return
    try:
        ast.parse(after)
    except (SyntaxError, ValueError) as error:
        yield f"no Python ({error})"
        return
    lost = _comments(before) - _comments(after)
    if lost:
        yield f"a lost comment ({next(iter(lost))!r})"
    if not _ends(after) <= _ends(before):
        yield f"other line ends ({sorted(_ends(after))} for {sorted(_ends(before))})"
    if before.startswith(b"\xef\xbb\xbf") != after.startswith(b"\xef\xbb\xbf"):
        yield "another mark at the beginning"


def _comments(data: bytes) -> Counter[str]:
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        tokens = tokenize.tokenize(io.BytesIO(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).readline)
        return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)
    return Counter()


def _ends(data: bytes) -> set[bytes]:
    rest = data.replace(b"\r\n", b"")
    return {end for end, held in ((b"\r\n", rest != data), (b"\r", b"\r" in rest), (b"\n", b"\n" in rest)) if held}


def _new_errors(before: Report, after: Report) -> Iterator[str]:
    """Errors that there are more of than before."""
    known, now = (
        Counter(f.code for f in report.findings if f.severity is Severity.ERROR) for report in (before, after)
    )
    added = now - known
    if added and sum(now.values()) >= sum(known.values()):
        yield f"a repair brought {', '.join(sorted(added))}"


def _others(top: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """Files that were not there."""
    held = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
    left = held - set(files) - {"pyproject.toml"}
    if left:
        yield f"files left behind: {sorted(left)}"
