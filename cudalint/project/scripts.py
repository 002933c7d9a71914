"""What the metadata of a project says: the commands that it installs, and what it is called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

import tomli

from cudalint import disk

# The files of a project that may name its commands.
METADATA = ("pyproject.toml", "setup.cfg", "setup.py")

_TARGET = re.compile(r"^\s*([\w.]+)\s*:\s*([\w.]+)")
_LINE = re.compile(r"^\s*[\"']?[\w.-]+\s*=\s*([\w.]+)\s*:\s*([\w.]+)", re.MULTILINE)
_IN_SETUP = re.compile(r"[\"'][\w.-]+\s*=\s*([\w.]+)\s*:\s*([\w.]+)\s*(?:\[[^\]]*\])?\s*[\"']")
_SETUP = "setup("
UNSAID = "*"
_NAME_IN_CFG = re.compile(r"^name\s*=\s*([\w.-]+)", re.MULTILINE)
_NAME_IN_SETUP = re.compile(r"\bname\s*=\s*[\"']([\w.-]+)[\"']", re.IGNORECASE)
_TABLES = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))


def console_scripts(root: str) -> list[tuple[str, str]]:
    """Module and function of each command that ``pyproject.toml``, ``setup.cfg`` or ``setup.py`` declare."""
    found = {
        *_from_toml(read(root, METADATA[0])),
        *_LINE.findall(_section(read(root, METADATA[1]))),
        *_IN_SETUP.findall(read(root, METADATA[2])),
    }
    return sorted(found)


def distributions(root: str) -> frozenset[str]:
    """What the project is called when it is installed, as its metadata says, in the form of names of packages.

    ``UNSAID``: it is installed by a program that does not write out how.
    """
    by_program = read(root, METADATA[2])
    named = {
        *_names_in_toml(read(root, METADATA[0])),
        *_NAME_IN_CFG.findall(read(root, METADATA[1])),
        *_NAME_IN_SETUP.findall(by_program),
    }
    if not named and _SETUP in by_program:
        return frozenset({UNSAID})
    return frozenset(re.sub(r"[-.]+", "_", name).lower() for name in named)


def read(root: str, name: str) -> str:
    """The text of a file in a project's top folder; empty where there is none that can be read."""
    try:
        return disk.read(os.path.join(root, name), disk.MOST_SETTINGS_BYTES).decode()
    except (disk.Unreadable, UnicodeDecodeError):
        return ""


def _names_in_toml(text: str) -> Iterable[str]:
    document = _document(text)
    for path in (("project",), ("tool", "poetry")):
        name = _table(document, path).get("name")
        if isinstance(name, str):
            yield name


def _from_toml(text: str) -> Iterable[tuple[str, str]]:
    document = _document(text)
    for path in _TABLES:
        for target in _table(document, path).values():
            match = _TARGET.match(target) if isinstance(target, str) else None
            if match is not None:
                yield match[1], match[2]


def _document(text: str) -> Mapping[str, object]:
    """What a TOML file holds; nothing where it is none."""
    try:
        return tomli.loads(text)
    except (tomli.TOMLDecodeError, RecursionError):
        return {}


def _table(document: Mapping[str, object], path: Iterable[str]) -> Mapping[str, object]:
    """A table of a TOML file; an empty one where it has none."""
    table: object = document
    for key in path:
        table = table.get(key) if isinstance(table, Mapping) else None
    return table if isinstance(table, Mapping) else {}


def _section(text: str) -> str:
    """The entry points of a ``setup.cfg``."""
    _, _, after = text.partition("[options.entry_points]")
    return after.partition("\n[")[0]
