"""The commands that a project installs: which functions its metadata names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping

from cudalint import disk

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# The files of a project that may name its commands.
METADATA = ("pyproject.toml", "setup.cfg", "setup.py")

_TARGET = re.compile(r"^\s*([\w.]+)\s*:\s*([\w.]+)")
_LINE = re.compile(r"^\s*[\"']?[\w.-]+\s*=\s*([\w.]+)\s*:\s*([\w.]+)", re.MULTILINE)
_IN_SETUP = re.compile(r"[\"'][\w.-]+\s*=\s*([\w.]+)\s*:\s*([\w.]+)\s*(?:\[[^\]]*\])?\s*[\"']")
_TABLES = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))


def console_scripts(root: str) -> list[tuple[str, str]]:
    """Module and function of each command that ``pyproject.toml``, ``setup.cfg`` or ``setup.py`` declare."""
    found = {
        *_from_toml(_read(root, METADATA[0])),
        *_LINE.findall(_section(_read(root, METADATA[1]))),
        *_IN_SETUP.findall(_read(root, METADATA[2])),
    }
    return sorted(found)


def _read(root: str, name: str) -> str:
    try:
        return disk.read(os.path.join(root, name), disk.MOST_SETTINGS_BYTES).decode()
    except (disk.Unreadable, UnicodeDecodeError):
        return ""


def _from_toml(text: str) -> Iterable[tuple[str, str]]:
    try:
        document: object = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    for path in _TABLES:
        table = document
        for key in path:
            table = table.get(key) if isinstance(table, Mapping) else None
        for target in table.values() if isinstance(table, Mapping) else ():
            match = _TARGET.match(target) if isinstance(target, str) else None
            if match is not None:
                yield match[1], match[2]


def _section(text: str) -> str:
    """The entry points of a ``setup.cfg``."""
    _, _, after = text.partition("[options.entry_points]")
    return after.partition("\n[")[0]
