"""Whether a report is what the documentation says of its format, as a program that reads it would find."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree

import jsonschema
from format_schemas import GITLAB, RDJSON, sarif

from cudalint.found import Report
from cudalint.report.render import OutputFormat

_CONCISE = re.compile(r".+:\d+:\d+: (?P<code>CUD\d{3}) \S")
_GROUPED = re.compile(r"  (?:cell \d+:)?\d+:\d+: (?P<code>CUD\d{3}) \S")
_FULL = re.compile(r"(?:error|warning|note)\[(?P<code>CUD\d{3})\]: \S")
_GITHUB = re.compile(r"::(?:error|warning|notice) title=cudalint \((?P<code>CUD\d{3})\),file=[^,:]+,line=\d+,[^:]*::\S")
# Of the rest of a text for people, the lines below the findings.
_SUMMARY = re.compile(r"Found \d|You can have |All checks passed!|Nothing was checked|\d+ repair|$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def unreadable(told: str, output_format: OutputFormat, report: Report) -> str | None:
    """Why a reader of the format would stumble over a report, or miss a finding; None where it would not."""
    try:
        codes = _READERS[output_format](told)
    except (ValueError, KeyError, TypeError, jsonschema.ValidationError, ElementTree.ParseError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    wanted = sorted(finding.code for finding in report.findings)
    return None if sorted(codes) == wanted else f"it tells {sorted(codes)}, not {wanted}"


def _of_rows(pattern: re.Pattern[str], other: re.Pattern[str] | None) -> Callable[[str], list[str]]:
    """A reader of findings that have a row each; ``other`` is what further rows look like, None for anything."""

    def codes(told: str) -> list[str]:
        found = []
        for row in told.split("\n"):
            if _CONTROL.search(row):
                raise ValueError(f"a control character: {row!r}")
            match = pattern.match(row)
            if match is not None:
                found.append(match["code"])
            elif other is not None and not other.match(row):
                raise ValueError(f"an unknown row: {row!r}")
        return found

    return codes


@cache
def _validator(name: str) -> jsonschema.protocols.Validator:
    return jsonschema.Draft202012Validator({"gitlab": GITLAB, "rdjson": RDJSON}[name])


def _json(told: str) -> list[str]:
    return [_entry(entry) for entry in json.loads(told)]


def _json_lines(told: str) -> list[str]:
    return [_entry(json.loads(row)) for row in told.splitlines()]


def _entry(entry: Mapping[str, Any]) -> str:
    if not (entry["filename"] and entry["message"] and entry["location"]["row"] > 0):
        raise ValueError(f"an incomplete entry: {entry}")
    return str(entry["code"])


def _sarif(told: str) -> list[str]:
    document = json.loads(told)
    sarif().validate(document)
    return [result["ruleId"] for run in document["runs"] for result in run["results"]]


def _gitlab(told: str) -> list[str]:
    issues = json.loads(told)
    _validator("gitlab").validate(issues)
    if len({issue["fingerprint"] for issue in issues}) != len(issues):
        raise ValueError("two issues have one fingerprint")
    return [issue["check_name"].partition(" ")[0] for issue in issues]


def _rdjson(told: str) -> list[str]:
    document = json.loads(told)
    _validator("rdjson").validate(document)
    return [diagnostic["code"]["value"] for diagnostic in document["diagnostics"]]


def _junit(told: str) -> list[str]:
    cases = list(ElementTree.fromstring(told).iter("testcase"))
    return [case.get("name", "").partition(" ")[0] for case in cases if len(case)]


_READERS: Mapping[OutputFormat, Callable[[str], list[str]]] = {
    OutputFormat.FULL: _of_rows(_FULL, None),
    OutputFormat.CONCISE: _of_rows(_CONCISE, _SUMMARY),
    OutputFormat.GROUPED: _of_rows(_GROUPED, re.compile(rf"\S.*:$|{_SUMMARY.pattern}")),
    OutputFormat.GITHUB: _of_rows(_GITHUB, re.compile("$")),
    OutputFormat.JSON: _json,
    OutputFormat.JSON_LINES: _json_lines,
    OutputFormat.SARIF: _sarif,
    OutputFormat.GITLAB: _gitlab,
    OutputFormat.RDJSON: _rdjson,
    OutputFormat.JUNIT: _junit,
}
