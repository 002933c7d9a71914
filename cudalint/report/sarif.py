"""SARIF 2.1.0, which code scanning services read.

The trace becomes a code flow and, for services that show no flows, related locations; a repair becomes replacements,
with how far it can be trusted in its properties.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from urllib.parse import quote

from cudalint import __version__, rules
from cudalint.finding import Edit, Finding, Fix, Severity, Span, Step
from cudalint.policy.identity import fingerprints
from cudalint.report import links
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.plain import conditional
from cudalint.session import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# Another name when what fingerprints rest on changes (policy/identity.py): those of different names are not compared.
_FINGERPRINT = "cudalint/v1"


def render(report: Report, directory: str) -> str:
    """One run with the rules that were met and one result per finding."""
    codes = sorted({finding.code for finding in report.findings})
    driver = {
        "name": "cudalint",
        "version": __version__,
        "informationUri": links.HOME,
        "rules": [_rule(code) for code in codes],
    }
    compared = {"baselineState": "new"} if report.is_compared else {}
    known = fingerprints(report.findings, report.texts, directory)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [
            {**_result(finding, codes, directory), "partialFingerprints": {_FINGERPRINT: fingerprint}, **compared}
            for finding, fingerprint in zip(report.findings, known, strict=True)
        ],
    }
    return as_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str) -> dict[str, object]:
    rule = rules.rule(code)
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "helpUri": links.rule(code),
        "help": {"text": rules.page(code), "markdown": rules.page(code)},
        "defaultConfiguration": {"level": _level(rule.severity)},
    }


def _result(finding: Finding, codes: list[str], directory: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _level(finding.severity),
        "message": {"text": conditional(finding)},
        "locations": [_location(finding.span, directory)],
    }
    if finding.trace:
        steps = [_step(step, directory) for step in finding.trace]
        result["codeFlows"] = [{"threadFlows": [{"locations": [{"location": step} for step in steps]}]}]
        result["relatedLocations"] = [{"id": number, **step} for number, step in enumerate(steps)]
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix, directory)]
    return result


def _fix(fix: Fix, directory: str) -> dict[str, object]:
    files: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        files.setdefault(edit.span.filename, []).append(edit)
    reason = {} if fix.reason is None else {"reason": fix.reason}
    return {
        "description": {"text": fix.message},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(path, directory),
                "replacements": [
                    {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}} for edit in edits
                ],
            }
            for path, edits in files.items()
        ],
        "properties": {"applicability": fix.applicability.value, **reason},
    }


def _step(step: Step, directory: str) -> dict[str, object]:
    return {**_location(step.span, directory), "message": {"text": f"{step.process}: {step.message}"}}


def _location(span: Span, directory: str) -> dict[str, object]:
    return {
        "physicalLocation": {"artifactLocation": _artifact(span.filename, directory), "region": _region(span)},
    }


def _artifact(path: str, directory: str) -> dict[str, object]:
    path = relative(path, directory)
    uri = PurePath(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path.replace(os.sep, "/")))
    return {"uri": uri}


def _region(span: Span) -> dict[str, object]:
    return {
        "startLine": span.start.row,
        "startColumn": span.start.column,
        "endLine": span.end.row,
        "endColumn": span.end.column,
    }


def _level(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.NOTE:
            return "note"
