"""The flake8 plugin: each file alone, next to nothing for files that cannot matter, and never an exception."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cudalint import __version__
from cudalint.models import shipped_words
from cudalint.project.markers import worth_a_look

_Result: TypeAlias = "tuple[int, int, str, type[Plugin]]"


class Plugin:
    """What flake8 makes for every file. It applies ``noqa``, ``select`` and ``ignore`` itself afterwards."""

    name = "cudalint"
    version = __version__

    def __init__(self, tree: ast.AST, lines: Sequence[str], filename: str = "stdin") -> None:
        self._lines = lines
        self._filename = filename

    def run(self) -> Iterator[_Result]:
        """Row, 0-based column, text and the plugin, for each finding."""
        text = "".join(self._lines)
        if not worth_a_look(text.encode("utf-8", "surrogatepass"), shipped_words.vocabulary()):
            return
        try:
            results = _check(self._filename, text)
        except Exception as error:  # an exception here would end the whole flake8 run
            from cudalint.report.plain import plain

            words = plain(" ".join(f"{type(error).__name__}: {error}".split()))
            results = [(1, 0, f"CUD900 cudalint failed on this file: {words}")]
        for row, column, text in results:
            yield row, column, text, type(self)


def _check(filename: str, text: str) -> list[tuple[int, int, str]]:
    # Only here, so that a run over files that cannot matter imports neither the parser nor the rules.
    from cudalint import api
    from cudalint.report.plain import statement

    # What is shown is flake8's to decide; versions, platform and models are about the program. All that flake8 shows
    # fails its run, so notes are shown only where they are meant to.
    asked = api.Options(hide_nothing=True, cache=True)
    report = api.check_text(text, filename, asked, honour_noqa=False, repair=False)
    return [
        (finding.span.start.row, finding.span.start.column - 1, f"{finding.code} {statement(finding)}")
        for finding in report.findings
        if finding.severity is not api.Severity.NOTE or report.fail_on is api.Severity.NOTE
    ]
