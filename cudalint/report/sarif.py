"""SARIF 2.1.0, which code scanning services read; the trace becomes a code flow."""

from __future__ import annotations

import os
from pathlib import PurePath
from urllib.parse import quote

from cudalint import __version__, rules
from cudalint.finding import Finding, Severity, Span
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.plain import conditional
from cudalint.session import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report, directory: str) -> str:
    """One run with the rules that were met and one result per finding."""
    codes = sorted({finding.code for finding in report.findings})
    driver = {"name": "cudalint", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes, directory) for finding in report.findings],
    }
    return as_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str) -> dict[str, object]:
    rule = rules.rule(code)
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
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
        steps = [
            {"location": {**_location(step.span, directory), "message": {"text": f"{step.process}: {step.message}"}}}
            for step in finding.trace
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _location(span: Span, directory: str) -> dict[str, object]:
    path = relative(span.filename, directory)
    uri = PurePath(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path.replace(os.sep, "/")))
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {
                "startLine": span.start.row,
                "startColumn": span.start.column,
                "endLine": span.end.row,
                "endColumn": span.end.column,
            },
        }
    }


def _level(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.NOTE:
            return "note"
