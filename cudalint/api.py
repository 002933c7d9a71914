"""cudalint for programs: what is named in ``__all__`` stays as it is within a major version; all else may change.

    from cudalint import api

    report = api.check(["src"], api.Options(select=["CUD1"]))
    for finding in report.findings:
        print(finding.span.filename, finding.span.start.row, finding.code, finding.message)

Importing this module costs next to nothing: what a check needs is imported by the first one, and the parser only by one
that has something to parse. Nothing of a checked program is run. docs/api.md describes all of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span, Step, StepKind

if TYPE_CHECKING:
    from cudalint.fixing.rounds import Changed, Fixed
    from cudalint.found import Report
    from cudalint.machine.started import Deed
    from cudalint.opening import Options
    from cudalint.project.process_map import (
        Begins,
        Carried,
        Event,
        Function,
        Harm,
        Lack,
        Launch,
        Place,
        ProcessMap,
        ProcessNode,
        Tree,
        Variable,
    )
    from cudalint.session import Session

__all__ = [
    "Applicability",
    "Begins",
    "Carried",
    "Changed",
    "Deed",
    "Edit",
    "Error",
    "Event",
    "Finding",
    "Fix",
    "Fixed",
    "Function",
    "Harm",
    "Lack",
    "Launch",
    "Options",
    "Place",
    "Position",
    "ProcessMap",
    "ProcessNode",
    "Report",
    "Severity",
    "Span",
    "Step",
    "StepKind",
    "Tree",
    "Variable",
    "check",
    "check_text",
    "fingerprints",
    "fix",
    "formats",
    "map",
    "map_formats",
    "render",
    "render_map",
    "write",
]

_PROCESSES = "cudalint.project.process_map"
_HOMES = {
    "Begins": _PROCESSES,
    "Carried": _PROCESSES,
    "Changed": "cudalint.fixing.rounds",
    "Deed": "cudalint.machine.started",
    "Event": _PROCESSES,
    "Fixed": "cudalint.fixing.rounds",
    "Function": _PROCESSES,
    "Harm": _PROCESSES,
    "Lack": _PROCESSES,
    "Launch": _PROCESSES,
    "Options": "cudalint.opening",
    "Place": _PROCESSES,
    "ProcessMap": _PROCESSES,
    "ProcessNode": _PROCESSES,
    "Report": "cudalint.found",
    "Tree": _PROCESSES,
    "Variable": _PROCESSES,
}


class Error(Exception):
    """cudalint could not do its work: a path that does not exist, bad settings, a bad baseline; one clear line."""


def check(
    paths: Iterable[str | os.PathLike[str]] = (".",), options: Options | None = None, *, repair: bool = True
) -> Report:
    """Check files and folders, as ``cudalint check`` does.

    Args:
        paths: what is checked; the rest of the project is read for context.
        options: settings on top of the project's.
        repair: look for repairs, which costs a further analysis or more for each finding.

    Raises:
        Error: for paths, settings, a baseline or a revision that cannot be used. What is wrong within a checked file
            is a finding, never an exception.
    """
    named = tuple(os.fspath(path) for path in paths)
    with _session(named, options) as session:
        return session.check(named, repair=repair)


def check_text(
    text: str | bytes,
    filename: str | os.PathLike[str] = "-",
    options: Options | None = None,
    *,
    repair: bool = True,
    honour_noqa: bool = True,
) -> Report:
    """Check one text as if there were no other file; bytes are decoded as Python does.

    Args:
        text: the program.
        filename: the name under which findings report it, and whose settings hold; no file need be there.
        options: settings on top of the project's.
        repair: as for ``check``.
        honour_noqa: leave out what a comment silences; not for hosts that read such comments themselves.

    Raises:
        Error: for settings that cannot be used.
    """
    name = os.fspath(filename)
    with _session((name,), options) as session:
        return session.check_alone(name, text, honour_noqa=honour_noqa, repair=repair)


def fix(
    paths: Iterable[str | os.PathLike[str]] = (".",), options: Options | None = None, *, unsafe: bool = False
) -> Fixed:
    """Repair files in memory, as ``cudalint check --fix`` does; ``write`` puts a change in place.

    Args:
        paths: what is repaired; nothing else ever is.
        options: settings on top of the project's.
        unsafe: make repairs too that are not proven safe.

    Raises:
        Error: as ``check`` does.
    """
    named = tuple(os.fspath(path) for path in paths)
    with _session(named, options) as session:
        from cudalint.fixing.rounds import fix as repaired

        return repaired(session, named, unsafe=unsafe)


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

    _require(output_format, formats())
    return rendered(report, OutputFormat(output_format), Style(False, os.path.abspath(directory)))


def formats() -> tuple[str, ...]:
    """The names of the output formats."""
    from cudalint.report.render import OutputFormat

    return tuple(one.value for one in OutputFormat)


def map(paths: Iterable[str | os.PathLike[str]] = (".",), options: Options | None = None) -> ProcessMap:
    """The processes of the programs behind files and folders, as ``cudalint map`` shows them.

    Args:
        paths: whose processes; the rest of the project is read for context.
        options: settings on top of the project's.

    Raises:
        Error: as ``check`` does.
    """
    named = tuple(os.fspath(path) for path in paths)
    with _session(named, options) as session:
        return session.map(named)


def render_map(found: ProcessMap, output_format: str = "text", directory: str | os.PathLike[str] = ".") -> str:
    """A map as text, in one of the ``map_formats``, without colour.

    Args:
        found: the processes.
        output_format: its name.
        directory: where paths are shown from.

    Raises:
        Error: for a format that is not known.
    """
    from cudalint.report.maps.formats import MapFormat
    from cudalint.report.maps.formats import render as rendered

    _require(output_format, map_formats())
    return rendered(found, MapFormat(output_format), os.path.abspath(directory))


def map_formats() -> tuple[str, ...]:
    """The names of the formats of maps."""
    from cudalint.report.maps.formats import MapFormat

    return tuple(one.value for one in MapFormat)


def _require(output_format: str, known: tuple[str, ...]) -> None:
    if output_format not in known:
        raise Error(f"unknown output format {output_format!r}: expected one of {', '.join(known)}")


@contextlib.contextmanager
def _session(named: tuple[str, ...], options: Options | None) -> Iterator[Session]:
    """A session as it is asked for; what cannot be used becomes an ``Error``."""
    from cudalint.config import ConfigError
    from cudalint.discovery import NotFound
    from cudalint.opening import Options, opened

    try:
        ready = opened(named, options or Options())
        yield ready.session
        ready.cache.close()
    except ConfigError as error:
        raise Error(str(error)) from None
    except NotFound as error:
        raise Error(f"no such file or directory: {error}") from None


if not TYPE_CHECKING:  # a checker reads the imports above, and tells names that are not there

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return sorted(__all__)
