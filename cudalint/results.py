"""What a whole run found, kept between runs: a check whose inputs are unchanged answers from here.

A ``Question`` grows by all that decides the answer: the code of cudalint, the configuration, what was asked, and the
files as they were read, by path and content. Results are JSON, so that reading one needs neither the parser nor the
machine.
"""

from __future__ import annotations

import json
from typing import Any

from cudalint import fingerprint
from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span, Step, StepKind
from cudalint.policy.baseline import Entry
from cudalint.policy.identity import Identity
from cudalint.settings_files import NONE_READ, SettingsRead
from cudalint.store import Store
from cudalint.structs import Frozen, replace

_KIND = "results"


class Result(Frozen):
    """What was found. ``texts`` are the paths of the files whose text the report needs.

    ``is_partial`` says that what was asked does not decide it: the rest of the project has to be read too.
    """

    findings: tuple[Finding, ...] = ()
    silenced: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    vanished: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    files_read: int = 0
    bytes_read: int = 0
    is_partial: bool = False
    settings: SettingsRead = NONE_READ


class Question(Frozen):
    """What is asked, as far as it is said; without a store nothing is known of it, and nothing kept."""

    store: Store | None
    key: str = ""

    def about(self, *parts: str | bytes) -> Question:
        """The question with more that decides its answer."""
        if self.store is None:
            return self
        return replace(self, key=fingerprint.digest(self.key or fingerprint.analysis(), *parts))

    def answer(self) -> Result | None:
        """The result, if it was kept, and the files of settings say what they said."""
        data = None if self.store is None else self.store.get(_KIND, self.key)
        found = None if data is None else _decoded(data)
        return found if found is not None and found.settings.holds() else None

    def keep(self, result: Result) -> None:
        """Keep the result."""
        if self.store is not None:
            self.store.put(_KIND, self.key, _encoded(result))


def _encoded(result: Result) -> bytes:
    document = {
        "findings": [_from_finding(finding) for finding in result.findings],
        "silenced": [_from_finding(finding) for finding in result.silenced],
        "known": [_from_finding(finding) for finding in result.known],
        "vanished": [_from_entry(entry) for entry in result.vanished],
        "warnings": result.warnings,
        "notes": result.notes,
        "texts": result.texts,
        "read": [result.files_read, result.bytes_read],
        "partial": result.is_partial,
        "settings": [result.settings.top, result.settings.files],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _decoded(data: bytes) -> Result:
    document = json.loads(data)
    files_read, bytes_read = document["read"]
    top, files = document["settings"]
    return Result(
        findings=tuple(_to_finding(finding) for finding in document["findings"]),
        silenced=tuple(_to_finding(finding) for finding in document["silenced"]),
        known=tuple(_to_finding(finding) for finding in document["known"]),
        vanished=tuple(_to_entry(entry) for entry in document["vanished"]),
        warnings=tuple(document["warnings"]),
        notes=tuple(document["notes"]),
        texts=tuple(document["texts"]),
        files_read=files_read,
        bytes_read=bytes_read,
        is_partial=document["partial"],
        settings=SettingsRead(top, tuple((path, digest) for path, digest in files)),
    )


def _from_finding(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "span": _from_span(finding.span),
        "trace": [[_from_span(step.span), step.message, step.kind.value, step.process] for step in finding.trace],
        "outcome": finding.outcome,
        "condition": finding.condition,
        "fix": None if finding.fix is None else _from_fix(finding.fix),
        "rows": finding.noqa_rows,
        "caught": finding.caught,
        "told": finding.told,
    }


def _to_finding(found: dict[str, Any]) -> Finding:
    return Finding(
        code=found["code"],
        name=found["name"],
        severity=Severity(found["severity"]),
        message=found["message"],
        span=_to_span(found["span"]),
        trace=tuple(Step(_to_span(span), said, StepKind(kind), who) for span, said, kind, who in found["trace"]),
        outcome=found["outcome"],
        condition=found["condition"],
        fix=None if found["fix"] is None else _to_fix(found["fix"]),
        noqa_rows=None if found["rows"] is None else (found["rows"][0], found["rows"][1]),
        caught=found["caught"],
        told=found["told"],
    )


def _from_fix(fix: Fix) -> list[object]:
    edits = [[_from_span(edit.span), edit.content] for edit in fix.edits]
    return [fix.applicability.value, fix.message, edits, fix.reason]


def _to_fix(found: list[Any]) -> Fix:
    applicability, message, edits, reason = found
    made = tuple(Edit(_to_span(span), content) for span, content in edits)
    return Fix(Applicability(applicability), message, made, reason)


def _from_entry(entry: Entry) -> list[str]:
    known = entry.identity
    return [known.path, known.code, known.function, known.statement, entry.message]


def _to_entry(found: list[str]) -> Entry:
    *identity, message = found
    return Entry(Identity(*identity), message)


def _from_span(span: Span) -> list[object]:
    return [span.filename, span.start.row, span.start.column, span.end.row, span.end.column]


def _to_span(found: list[Any]) -> Span:
    filename, row, column, last_row, last_column = found
    return Span(filename, Position(row, column), Position(last_row, last_column))
