"""The JSON schema of ``[tool.cudalint]``, for editors and for SchemaStore.

``cudalint.schema.json`` beside this module is what ``schema`` gives; a test compares them, and both with what the
configuration takes. A range of versions in the wrong order, and a pattern, model file or folder that cannot be used,
only cudalint itself refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from cudalint import config, rules
from cudalint.limits import DEFAULT
from cudalint.policy.selection import ALL

_Part: TypeAlias = "dict[str, Any]"

_MINORS = range(config.LAST_VERSION[1] + 1)
# One digit or two, as ``config.parse_versions`` reads them.
_MINOR = "|".join((*(f"{minor:02}" for minor in _MINORS), *(str(minor) for minor in _MINORS if minor < 10)))
_VERSION = rf"(?:py3|3\.)(?:{_MINOR})"
_SELECTORS: _Part = {"type": "array", "items": {"$ref": "#/definitions/selector"}}
_PATTERNS: _Part = {"type": "array", "items": {"$ref": "#/definitions/pattern"}}
_SEVERITY: _Part = {"enum": list(config.FAIL_ON)}


def schema() -> _Part:
    """The schema, in JSON's types."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://json.schemastore.org/cudalint.json",
        "title": "cudalint",
        "description": "The table [tool.cudalint] of a pyproject.toml, or a file for `cudalint check --config`.",
        "type": "object",
        "additionalProperties": False,
        "properties": dict(_PROPERTIES),
        "definitions": {
            "selector": {
                "description": "A code, a prefix of codes, or ALL.",
                "enum": _selectors(),
            },
            "pattern": {
                "description": "A name that is meant anywhere, or a path from the root of the project; * ? [ab] **/.",
                "type": "string",
                "pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
            },
        },
    }


def _selectors() -> list[str]:
    codes = rules.codes()
    prefixes = {code[:length] for code in codes for length in range(1, len(code) + 1)}
    return [ALL, *sorted(prefixes)]


def _told(part: Mapping[str, Any], description: str, **more: Any) -> _Part:
    return {"description": description, **part, **more}


def _number(description: str, key: str, default: int | None = None) -> _Part:
    found: _Part = {"description": description, "type": "integer", "minimum": 1, "maximum": config.LIMITS[key]}
    return found if default is None else {**found, "default": default}


_PROPERTIES: dict[str, _Part] = {
    "select": _told(_SELECTORS, "The rules that are shown.", default=[ALL]),
    "extend-select": _told(_SELECTORS, "Rules that are shown besides."),
    "ignore": _told(_SELECTORS, "Rules that are hidden."),
    "per-file-ignores": {
        "description": "Patterns for files, each with the rules that are hidden in them.",
        "type": "object",
        "propertyNames": {"$ref": "#/definitions/pattern"},
        "additionalProperties": _SELECTORS,
    },
    "exclude": _told(_PATTERNS, "What is not read when a directory is walked.", default=list(config.DEFAULT_EXCLUDE)),
    "extend-exclude": _told(_PATTERNS, "The same, in addition to the defaults."),
    "force-exclude": {
        "description": "Whether files and directories that are named are left out too, if they are excluded.",
        "type": "boolean",
        "default": False,
    },
    "target-version": {
        "description": "The Python versions that the program runs on: py312, 3.12, or a range such as 3.10-3.13.",
        "type": "string",
        "pattern": rf"^\s*{_VERSION}\s*(?:-\s*{_VERSION}\s*)?$",
        "examples": ["py312", "3.10-3.13"],
    },
    "platform": {
        "description": "Where the program runs: what the default start method is.",
        "enum": list(config.PLATFORMS),
        "default": "linux",
    },
    "fail-on": _told(_SEVERITY, "The least severity that makes the exit code 1.", default="warning"),
    "severity": {
        "description": "Rules, each with the severity that its findings have here; the longest selector counts.",
        "type": "object",
        "propertyNames": {"$ref": "#/definitions/selector"},
        "additionalProperties": _SEVERITY,
    },
    "limits": {
        "description": "How large files may be that are looked at, and how far and how long they are.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "file-size": _number("Bytes of a file that mentions CUDA or processes.", "file-size", DEFAULT.file_size),
            "depth": _number("Calls within one another.", "depth", DEFAULT.depth),
            "steps": _number("Statements of an entry; other bounds of steps change with it.", "steps", DEFAULT.steps),
            "seconds": _number("Processor time for what a file starts, and for what has no visible caller.", "seconds"),
            "context-files": _number(
                "Files that are read around those that are checked.", "context-files", DEFAULT.context_files
            ),
            "context-size": _number("Bytes of these files.", "context-size", DEFAULT.context_size),
        },
    },
    "models": {
        "description": "Files with models of your own libraries, relative to this file.",
        "type": "array",
        "items": {"type": "string"},
    },
    "extra-paths": {
        "description": "Folders outside of the project whose modules its programs import, relative to this file.",
        "type": "array",
        "items": {"type": "string"},
    },
    "extend-safe-fixes": _told(_SELECTORS, "Rules whose unsafe repairs --fix makes as well."),
    "extend-unsafe-fixes": _told(_SELECTORS, "Rules whose safe repairs need --unsafe-fixes."),
    "cache-dir": {
        "description": "Where runs keep what the next one need not do again, relative to this file.",
        "type": "string",
    },
    "baseline": {
        "description": "A file of known findings, which are not shown, relative to this file.",
        "type": "string",
    },
}
