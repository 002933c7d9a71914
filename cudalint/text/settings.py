"""Settings that a repository keeps in files: JSON, TOML, YAML and INI as plain data.

Such files are data of whoever is checked. What is large, deep or broken is no settings file, nothing in it is run, and
aliases of YAML, which can stand for more than any memory holds, are counted as what they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

# What is larger is data, which would be followed item by item.
MOST_BYTES = 64_000
_MOST_PARTS, _DEEPEST = 1_000, 12
# Files that are read for settings, by the ends of their names; a dot file of variables may have something behind it.
_ENDS = (".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".conf", ".env", ".properties")
_VARIABLES = ".env"


class NoSettings(Exception):
    """A text is not what it should be, or too much of it."""


def is_settings(name: str) -> bool:
    """Whether a file, by its name, holds settings."""
    return name.endswith(_ENDS) or name.startswith(_VARIABLES)


def read(kind: str, text: str) -> Any:
    """What a text of a kind says, of dicts, lists and constants; raises ``NoSettings``."""
    if len(text) > MOST_BYTES:
        raise NoSettings
    try:
        found = _READERS[kind](text)
    except (ValueError, RecursionError, ArithmeticError, TypeError, LookupError):
        raise NoSettings from None
    _measure(found, 0, 0)
    return found


def _measure(found: object, parts: int, depth: int) -> int:
    """How many parts there are, counted as far as they may be."""
    inner: tuple[object, ...] = ()
    match found:
        case dict():
            inner = tuple(found.values())
        case list() | tuple():
            inner = tuple(found)
    parts += 1
    if parts > _MOST_PARTS or depth > _DEEPEST:
        raise NoSettings
    for part in inner:
        parts = _measure(part, parts, depth + 1)
    return parts


def _toml(text: str) -> object:
    import tomli

    return tomli.loads(text)


def _yaml(text: str) -> object:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        raise NoSettings from None


def _ini(text: str, as_written: bool = False) -> dict[str, dict[str, str | None]]:
    """Sections and what they set; what stands for all of them is in each."""
    import configparser

    parser = configparser.RawConfigParser(allow_no_value=True)
    if as_written:
        parser.optionxform = str  # type: ignore[method-assign, assignment]
    try:
        parser.read_string(text)
    except configparser.Error:
        raise NoSettings from None
    return {name: dict(parser[name].items()) for name in (parser.default_section, *parser.sections())}


def _variables(text: str) -> dict[str, str]:
    """``NAME=value``, row by row; what names another variable is left out."""
    found: dict[str, str] = {}
    for row in text.splitlines():
        name, is_set, value = row.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not is_set or not name.isidentifier() or "$" in value:
            continue
        quote = value[:1]
        is_quoted = quote in ("'", '"') and quote in value[1:]
        found[name] = value[1:].partition(quote)[0] if is_quoted else value.partition(" #")[0].rstrip()
    return found


_READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": _toml,
    "yaml": _yaml,
    "ini": _ini,
    "ini as written": partial(_ini, as_written=True),
    "env": _variables,
}
