"""Reports of earlier runs over the same: kept, and given again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cudalint.found import Effort, Report
from cudalint.intake import Read, take_bytes, take_text
from cudalint.results import Question, Result
from cudalint.text.source import SourceFile


def recalled(
    asked: Question,
    files: tuple[Read, ...],
    rest: Callable[[], tuple[Read, ...]],
    states_of: Callable[[tuple[Read, ...]], Iterable[str | bytes]],
) -> Report | None:
    """The report of an earlier run over the same; the rest of the project is read where that one needed it."""
    known = asked.answer()
    if known is not None and known.is_partial:
        known = asked.about(*states_of(rest())).answer()
        files += rest()
    return None if known is None else replayed(known, _decoded(file for file in files if file.path in known.texts))


def replayed(known: Result, sources: Mapping[str, SourceFile]) -> Report:
    """A result as a report about these files, by path."""
    named = [sources[path] for path in known.texts]
    return Report(
        findings=known.findings,
        texts={source.path: source.shown for source in named},
        cells={source.path: source.cells for source in named if source.cells is not None},
        effort=Effort(known.files_read, known.bytes_read),
        warnings=known.warnings,
        notes=known.notes,
        silenced=known.silenced,
        known=known.known,
        vanished=known.vanished,
    )


def _decoded(files: Iterable[Read]) -> dict[str, SourceFile]:
    found = (file.decoded() for file in files)
    return {source.path: source for source in found if isinstance(source, SourceFile)}


def alone(path: str, content: bytes | str) -> tuple[SourceFile, ...]:
    """One file as it was given, which may be several programs."""
    taken = take_text(path, content, bool) if isinstance(content, str) else take_bytes(path, content, bool)
    return taken.sources


def keep(asked: Question, report: Report) -> None:
    """Keep a report; one of a run that failed may depend on what was left of memory, and is not kept."""
    if report.failures:
        return
    effort = report.effort
    asked.keep(
        Result(
            findings=report.findings,
            silenced=report.silenced,
            known=report.known,
            vanished=report.vanished,
            warnings=report.warnings,
            notes=report.notes,
            texts=tuple(report.texts),
            files_read=effort.files_read,
            bytes_read=effort.bytes_read,
            settings=report.settings,
        )
    )
