"""SARIF 2.1.0, which code scanning services read; the trace becomes a code flow."""

from __future__ import annotations

import os
from pathlib import PurePath
from urllib.parse import quote

from cudalint import __version__, rules
from cudalint.finding import Finding, Severity, Step
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.places import Place, located
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
        "results": [_result(report, finding, codes, directory) for finding in report.findings],
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


def _result(report: Report, finding: Finding, codes: list[str], directory: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _level(finding.severity),
        "message": {"text": conditional(finding)},
        "locations": [_location(located(report, finding.span), directory)],
    }
    if finding.trace:
        result["codeFlows"] = [{"threadFlows": [{"locations": [_step(report, s, directory) for s in finding.trace]}]}]
    return result


def _step(report: Report, step: Step, directory: str) -> dict[str, object]:
    location = _location(located(report, step.span), directory)
    return {"location": {**location, "message": {"text": f"{step.process}: {step.message}"}}}


def _location(place: Place, directory: str) -> dict[str, object]:
    path = relative(place.path, directory)
    uri = PurePath(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path.replace(os.sep, "/")))
    location: dict[str, object] = {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": _region(place)},
    }
    if place.cell is not None:
        location["logicalLocations"] = [{"name": f"cell {place.cell}", "fullyQualifiedName": place.words}]
    return location


def _region(place: Place) -> dict[str, int]:
    """Rows and columns of the file; in a notebook rows only, of its JSON."""
    first, last = place.file_rows
    if place.cell is not None:
        return {"startLine": first, "endLine": last}
    return {"startLine": first, "startColumn": place.start.column, "endLine": last, "endColumn": place.end.column}


def _level(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.NOTE:
            return "note"
