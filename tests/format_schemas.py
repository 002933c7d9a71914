"""What programs that read cudalint's formats demand of them, as JSON schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jsonschema

_SARIF = Path(__file__).parent / "schemas" / "sarif-2.1.0.json"


@cache
def sarif() -> jsonschema.protocols.Validator:
    """The official schema of SARIF."""
    schema = json.loads(_SARIF.read_text(encoding="utf-8"))
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


# What GitLab says that an issue needs: https://docs.gitlab.com/ci/testing/code_quality/
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "location", "severity"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/.]"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}

_POSITION = {
    "type": "object",
    "required": ["line"],
    "additionalProperties": False,
    "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
}
_RANGE = {
    "type": "object",
    "required": ["start"],
    "additionalProperties": False,
    "properties": {"start": _POSITION, "end": _POSITION},
}
_LOCATION = {
    "type": "object",
    "required": ["path"],
    "additionalProperties": False,
    "properties": {"path": {"type": "string", "minLength": 1}, "range": _RANGE},
}
_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
# The messages of reviewdog's Diagnostic Format, which refuses fields that it does not know.
RDJSON = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "source": {**_STRINGS, "required": ["name"]},
        "severity": {"type": "string"},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "location"],
                "additionalProperties": False,
                "properties": {
                    "message": {"type": "string"},
                    "location": _LOCATION,
                    "severity": {"enum": ["ERROR", "WARNING", "INFO"]},
                    "source": _STRINGS,
                    "code": {**_STRINGS, "required": ["value"]},
                    "suggestions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["range", "text"],
                            "additionalProperties": False,
                            "properties": {"range": _RANGE, "text": {"type": "string"}},
                        },
                    },
                    "relatedLocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"message": {"type": "string"}, "location": _LOCATION},
                        },
                    },
                },
            },
        },
    },
}
