"""Whatever is checked: no internal error, no broken file that Python accepts, places that exist, readable reports."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from cudalint import config
from cudalint.finding import Span
from cudalint.found import Report
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Session
from fuzz.case import Case, laid_out
from fuzz.properties.formats import unreadable

# What is refused although it is Python: docs/limits.md.
LIMITS = ("nested more than", "chains more than", "more than 2,000 elif", "bytes, more than")


def complaints(case: Case) -> Iterator[str]:
    """What is wrong with a report about a case."""
    with laid_out(case) as top:
        report = Session(config.load([str(top)])).check([str(top)])
        yield from internal(report)
        yield from _refused(report)
        for finding in report.findings:
            for span in (finding.span, *(step.span for step in finding.trace)):
                if not exists(span, report):
                    yield f"a place that is not there: {finding.code} {span}"
        for output_format in OutputFormat:
            told = render(report, output_format, Style(colour=False, directory=str(top)))
            reason = unreadable(told, output_format, report)
            if reason is not None:
                yield f"{output_format.value} is not readable: {reason}"


def internal(report: Report) -> Iterator[str]:
    """Failures of cudalint, by the last line of their tracebacks and where they were raised."""
    for failure in report.failures:
        rows = failure.strip().splitlines()
        places = [row.strip() for row in rows if row.lstrip().startswith("File ")]
        yield f"internal error: {rows[-1][:150]} at {places[-1] if places else '?'}"
    if not report.failures and any(finding.code == "CUD900" for finding in report.findings):
        yield "internal error: CUD900 without a traceback"


def _refused(report: Report) -> Iterator[str]:
    for finding in report.findings:
        if finding.code != "CUD901" or any(words in finding.message for words in LIMITS):
            continue
        text = report.texts.get(finding.span.filename)
        if text is not None and _is_python(text):
            yield f"Python accepts a file that is refused: {finding.message}"


def _is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def exists(span: Span, report: Report) -> bool:
    """Whether a span lies in the text of its file."""
    if span.start > span.end:
        return False
    text = report.texts.get(span.filename)
    if text is None:
        return span.start.row == span.start.column == 1
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends = (span.start, span.end)
    return all(1 <= at.row <= len(rows) and 1 <= at.column <= len(rows[at.row - 1]) + 2 for at in ends)
