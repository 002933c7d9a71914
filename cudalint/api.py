"""cudalint for programs: what is named in ``__all__`` stays as it is within a major version; all else may change.

    from cudalint import api

    report = api.check(["src"], select=["CUD1"])
    for finding in report.findings:
        print(finding.span.filename, finding.span.start.row, finding.code, finding.message)

Importing this module costs next to nothing: what a check needs is imported by the first one, and the parser only by one
that has something to parse. Nothing of a checked program is run. docs/api.md describes all of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span, Step, StepKind

if TYPE_CHECKING:
    from cudalint.config import Config
    from cudalint.fixing.rounds import Changed, Fixed
    from cudalint.session import Report, Session

__all__ = [
    "Applicability",
    "Changed",
    "Edit",
    "Error",
    "Finding",
    "Fix",
    "Fixed",
    "Position",
    "Report",
    "Severity",
    "Span",
    "Step",
    "StepKind",
    "check",
    "check_text",
    "fingerprints",
    "fix",
    "formats",
    "render",
    "write",
]

_HOMES = {"Changed": "cudalint.fixing.rounds", "Fixed": "cudalint.fixing.rounds", "Report": "cudalint.session"}


class Error(Exception):
    """cudalint could not do its work: a path that does not exist, bad settings, a bad baseline; one clear line."""


def check(
    paths: Iterable[str | os.PathLike[str]] = (".",),
    *,
    config: str | os.PathLike[str] | None = None,
    isolated: bool = False,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    baseline: str | os.PathLike[str] | None = None,
    since: str | None = None,
    repair: bool = True,
    jobs: int | None = None,
) -> Report:
    """Check files and folders, as ``cudalint check`` does.

    Args:
        paths: what is checked; the rest of the project is read for context.
        config: a TOML file whose settings hold instead of those of the nearest ``pyproject.toml``.
        isolated: read no settings at all.
        select: codes or prefixes of the rules that are shown, instead of what the settings say.
        ignore: codes or prefixes of rules that are hidden, besides.
        baseline: a file of known findings, instead of what the settings say.
        since: a git revision; what it had is left out.
        repair: look for repairs, which costs a further analysis or more for each finding.
        jobs: how many processes a long run may use; None for as many as there are cores, up to 8. They are fresh
            interpreters that import cudalint and nothing of yours, so a script needs no main guard for them.

    Raises:
        Error: for paths, settings, a baseline or a revision that cannot be used. What is wrong within a checked file
            is a finding, never an exception.
    """
    named = tuple(os.fspath(path) for path in paths)
    with _errors():
        return _session(named, config, isolated, select, ignore, baseline, since, jobs).check(named, repair=repair)


def check_text(
    text: str | bytes,
    filename: str | os.PathLike[str] = "-",
    *,
    config: str | os.PathLike[str] | None = None,
    isolated: bool = False,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    repair: bool = True,
) -> Report:
    """Check one text as if there were no other file; bytes are decoded as Python does.

    Args:
        text: the program.
        filename: the name under which findings report it, and whose settings hold; no file need be there.
        config, isolated, select, ignore, repair: as for ``check``.

    Raises:
        Error: for settings that cannot be used.
    """
    name = os.fspath(filename)
    with _errors():
        return _session((name,), config, isolated, select, ignore).check_alone(name, text, repair=repair)


def fix(
    paths: Iterable[str | os.PathLike[str]] = (".",),
    *,
    unsafe: bool = False,
    config: str | os.PathLike[str] | None = None,
    isolated: bool = False,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    baseline: str | os.PathLike[str] | None = None,
    since: str | None = None,
    jobs: int | None = None,
) -> Fixed:
    """Repair files in memory, as ``cudalint check --fix`` does; ``write`` puts a change in place.

    Args:
        paths: what is repaired; nothing else ever is.
        unsafe: make repairs too that are not proven safe.
        config, isolated, select, ignore, baseline, since, jobs: as for ``check``.

    Raises:
        Error: as ``check`` does.
    """
    named = tuple(os.fspath(path) for path in paths)
    with _errors():
        from cudalint.fixing.rounds import fix as repaired

        return repaired(_session(named, config, isolated, select, ignore, baseline, since, jobs), named, unsafe=unsafe)


def write(change: Changed) -> None:
    """Put a changed file in place, in one step, with its mode and owner.

    Raises:
        Error: for a file that is read-only, has other names, or changed since it was read; it is left as it is.
    """
    from cudalint.fixing.write import Refused
    from cudalint.fixing.write import write as put

    try:
        put(change)
    except Refused as refusal:
        raise Error(f"{change.path} is not repaired: {refusal}") from None


def fingerprints(report: Report, directory: str | os.PathLike[str] = ".") -> tuple[str, ...]:
    """A name for each finding of a report, in order, that stays when lines move and files are renamed.

    Args:
        report: the findings.
        directory: where paths count from, for findings about whole files.
    """
    from cudalint.policy.identity import fingerprints as known

    return known(report.findings, report.texts, os.path.abspath(directory))


def render(report: Report, output_format: str = "concise", directory: str | os.PathLike[str] = ".") -> str:
    """A report as text, in one of the ``formats``, without colour.

    Args:
        report: the findings.
        output_format: its name.
        directory: where paths are shown from.

    Raises:
        Error: for a format that is not known.
    """
    from cudalint.report.render import OutputFormat, Style
    from cudalint.report.render import render as rendered

    if output_format not in formats():
        raise Error(f"unknown output format {output_format!r}: expected one of {', '.join(formats())}")
    return rendered(report, OutputFormat(output_format), Style(False, os.path.abspath(directory)))


def formats() -> tuple[str, ...]:
    """The names of the output formats."""
    from cudalint.report.render import OutputFormat

    return tuple(one.value for one in OutputFormat)


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    from cudalint.config import ConfigError
    from cudalint.discovery import NotFound

    try:
        yield
    except ConfigError as error:
        raise Error(str(error)) from None
    except NotFound as error:
        raise Error(f"no such file or directory: {error}") from None


def _session(
    named: tuple[str, ...],
    file: str | os.PathLike[str] | None,
    isolated: bool,
    select: Sequence[str] | None,
    ignore: Sequence[str],
    baseline: str | os.PathLike[str] | None = None,
    since: str | None = None,
    jobs: int | None = None,
) -> Session:
    from dataclasses import replace

    from cudalint.session import Session

    config = replace(_config(named, file, isolated, select, ignore, baseline), jobs=jobs)
    if since is None:
        return Session(config)
    from cudalint.history.since import before

    return Session(config, before=before(config, None, since, named).known)


def _config(
    named: tuple[str, ...],
    file: str | os.PathLike[str] | None,
    isolated: bool,
    select: Sequence[str] | None,
    ignore: Sequence[str],
    baseline: str | os.PathLike[str] | None,
) -> Config:
    from dataclasses import replace

    from cudalint import config
    from cudalint.policy.selection import Layer

    if isolated and file is not None:
        raise Error("config names settings and isolated forbids them")
    found = config.load(named, None if file is None else os.fspath(file), isolated=isolated)
    layer = Layer(
        select=None if select is None else config.parse_selectors("select", select),
        ignore=config.parse_selectors("ignore", ignore),
    )
    return replace(
        config.on_top(found, config.Given(layer)),
        baseline=found.baseline if baseline is None else os.path.abspath(baseline),
    )


if not TYPE_CHECKING:  # a checker reads the imports above, and tells names that are not there

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return sorted(__all__)
