"""The analysis of a set of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import libcst

from cudalint.finding import Finding, Position, Severity, Span
from cudalint.text.source import SourceFile


@dataclass(frozen=True, slots=True)
class Options:
    target_versions: tuple[tuple[int, int], tuple[int, int]] = ((3, 10), (3, 13))
    platform: Literal["linux", "darwin", "win32"] = "linux"
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    files_read: int
    bytes_read: int
    files_parsed: int
    bytes_parsed: int
    nodes_lowered: int


@dataclass(frozen=True, slots=True)
class Analysis:
    findings: tuple[Finding, ...]
    work: Work
    notes: tuple[str, ...]


def analyse(
    sources: Sequence[SourceFile], options: Options, *, alone: bool = False, root: str | None = None
) -> Analysis:
    findings = []
    for source in sources:
        try:
            libcst.parse_module(source.data)
        except libcst.ParserSyntaxError as error:
            start = Position(1, 1)
            message = f"cannot parse this file: {error.raw_line}:{error.raw_column}"
            findings.append(
                Finding("CUD901", "syntax-error", Severity.ERROR, message, Span(source.path, start, start))
            )
    size = sum(len(source.data) for source in sources)
    return Analysis(tuple(findings), Work(len(sources), size, len(sources), size, 0), ())


def explain(sources: Sequence[SourceFile], options: Options, filename: str, row: int) -> list[str]:
    return []
