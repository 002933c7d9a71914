"""SARIF 2.1.0, which code scanning services read.

The trace becomes a code flow and, for services that show no flows, related locations; a repair becomes replacements,
with how far it can be trusted in its properties.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from cudalint import __version__, rules
from cudalint.finding import Edit, Finding, Fix, Severity, Step
from cudalint.found import Report
from cudalint.policy.identity import fingerprints
from cudalint.report import links
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.places import Place, located
from cudalint.report.plain import conditional

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
            {
                **_result(report, finding, codes, directory),
                "partialFingerprints": {_FINGERPRINT: fingerprint},
                **compared,
            }
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


def _result(report: Report, finding: Finding, codes: list[str], directory: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _level(finding.severity),
        "message": {"text": conditional(finding)},
        "locations": [_location(located(report, finding.span), directory)],
    }
    if finding.trace:
        steps = [_step(report, step, directory) for step in finding.trace]
        result["codeFlows"] = [{"threadFlows": [{"locations": [{"location": step} for step in steps]}]}]
        result["relatedLocations"] = [{"id": number, **step} for number, step in enumerate(steps)]
    # Replacements name stretches of a file, which cells of a notebook are not.
    fix = finding.fix
    if fix is not None and fix.edits and not any(edit.span.filename in report.cells for edit in fix.edits):
        result["fixes"] = [_fix(report, fix, directory)]
    return result


def _fix(report: Report, fix: Fix, directory: str) -> dict[str, object]:
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
                    {"deletedRegion": _region(located(report, edit.span)), "insertedContent": {"text": edit.content}}
                    for edit in edits
                ],
            }
            for path, edits in files.items()
        ],
        "properties": {"applicability": fix.applicability.value, **reason},
    }


def _step(report: Report, step: Step, directory: str) -> dict[str, object]:
    location = _location(located(report, step.span), directory)
    return {**location, "message": {"text": f"{step.process}: {step.message}"}}


def _artifact(path: str, directory: str) -> dict[str, object]:
    path = relative(path, directory)
    uri = Path(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path.replace(os.sep, "/")))
    return {"uri": uri}


def _location(place: Place, directory: str) -> dict[str, object]:
    location: dict[str, object] = {
        "physicalLocation": {"artifactLocation": _artifact(place.path, directory), "region": _region(place)},
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
