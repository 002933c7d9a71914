"""What came back from the analyses of a run, also after an internal error: then each file is checked by itself."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cudalint.finding import Finding
from cudalint.found import Effort
from cudalint.intake import INTERNAL_ERROR, Intake, about_file
from cudalint.structs import Frozen, field, replace
from cudalint.text.source import SourceFile

if TYPE_CHECKING:
    from cudalint.project.analysis import Analysis


class Outcome(Frozen):
    """What came back from the analysis, or from what was left of it after an internal error."""

    findings: tuple[Finding, ...] = ()
    effort: Effort = field(default_factory=Effort)
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    analyses: tuple[Analysis, ...] = ()


def of_analyses(intake: Intake, analyses: Sequence[Analysis]) -> Outcome:
    """What several analyses of one intake gave."""
    effort = Effort(
        files_read=intake.files,
        bytes_read=intake.size,
        files_parsed=sum(analysis.work.files_parsed for analysis in analyses),
        bytes_parsed=sum(analysis.work.bytes_parsed for analysis in analyses),
        nodes_lowered=sum(analysis.work.nodes_lowered for analysis in analyses),
        functions=sum(analysis.work.functions for analysis in analyses),
        entries=sum(analysis.work.entries for analysis in analyses),
        cut=sum(analysis.work.cut for analysis in analyses),
        steps=sum(analysis.work.steps for analysis in analyses),
        kept=sum(analysis.work.kept for analysis in analyses),
    )
    findings = tuple(finding for analysis in analyses for finding in analysis.findings)
    notes = tuple(note for analysis in analyses for note in analysis.notes)
    return Outcome(findings, effort, notes, analyses=tuple(analyses))


def salvage(intake: Intake, analyse: Callable[[SourceFile], Analysis], failure: str) -> Outcome:
    """After an internal error: check each file by itself, so that one file costs only its own findings."""
    analyses: list[Analysis] = []
    broken: list[Finding] = []
    failures = [failure]
    for source in intake.sources:
        if source.path not in intake.mattering:
            continue
        try:
            analyses.append(analyse(source))
        except Exception as error:
            failures.append(traceback.format_exc())
            broken.append(about_file(INTERNAL_ERROR, source.path, f"cudalint failed on this file: {_words(error)}"))
    if not broken:
        message = "cudalint failed on the project; every file was checked by itself"
        broken = [about_file(INTERNAL_ERROR, min(intake.mattering), message)]
    made = of_analyses(intake, analyses)
    return replace(made, findings=(*made.findings, *broken), failures=tuple(failures))


def without_repairs(broken: Iterable[tuple[Finding, Exception]]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """What is said of the files in which looking for a repair failed, and the tracebacks."""
    known: dict[str, Exception] = {}
    for finding, error in broken:
        known.setdefault(finding.span.filename, error)
    said = (
        about_file(INTERNAL_ERROR, path, f"cudalint failed to look for repairs in this file: {_words(error)}")
        for path, error in sorted(known.items(), key=lambda pair: pair[0])
    )
    return tuple(said), tuple("".join(traceback.format_exception(error)) for error in known.values())


def _words(error: Exception) -> str:
    """The error on one line."""
    try:
        said = str(error)
    except Exception:  # it may hold what has no words, a tree without end for one
        said = ""
    return " ".join(f"{type(error).__name__}: {said}".split())[:200].rstrip(": ")
