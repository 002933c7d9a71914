"""Which modules files of settings name: a program that imports by name what it is told may run these.

``class_path: lab.monitors.Memory`` stands in no Python file. Which files a module reads is found in its bytes: by names
that end as those of settings do, in folders that are named beside them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_FILE = re.compile(rb"[\"'](?:\./)?((?:[\w-]+/)*[\w.-]+\.(?:ya?ml|json|toml))[\"']")
_ENDINGS = (b".yaml", b".yml", b".json", b".toml")
_FOLDER = re.compile(rb"[\"']([\w-]+)[\"'][ \t]*(?:/|,[ \t]*[\"'])")
# Hydra's configuration is named in two parts, and names others below its folder: ``- model: small``.
_CONFIG_NAME = re.compile(rb"config_name\s*=\s*[\"']([\w.-]+)[\"']")
_CONFIG_PATH = re.compile(rb"config_path\s*=\s*[\"']([\w./-]+)[\"']")
_OF_GROUP = re.compile(r"^\s*-\s*(?:override\s+)?/?([\w/]+)(?:@[\w.]+)?\s*:\s*[\"']?([\w-]+)", re.MULTILINE)
_IMPORTS_BY_NAME = (b"import_module", b"__import__", b"import_string", b"resolve_name", b"locate", b"instantiate")
# What may be a module, or something in one.
_DOTTED = re.compile(r"(?<![\w./-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/(-])")
_MOST_FILES, _MOST_FOLDERS, _MOST_NAMES = 8, 4, 60


def imports_by_name(data: bytes) -> bool:
    """Whether a file may import what something else names."""
    return any(word in data for word in _IMPORTS_BY_NAME)


def places(data: bytes) -> list[str]:
    """Where files of settings may lie that a file reads, from the folder of that or from the top of the project."""
    may_name = any(ending in data for ending in _ENDINGS)
    shown = _FILE.findall(data) if may_name else ()
    files = list(dict.fromkeys(found.decode("ascii", "replace") for found in shown))[:_MOST_FILES]
    folders = list(dict.fromkeys(found.decode("ascii", "replace") for found in _FOLDER.findall(data))) if files else []
    found = [os.path.join(folder, name) for name in files for folder in ("", *folders[:_MOST_FOLDERS])]
    homes = _CONFIG_PATH.findall(data) if b"config_path" in data else ()
    named = _CONFIG_NAME.findall(data) if homes else ()
    return found + [_in_folder(name, folder) for name in named for folder in homes]


def _in_folder(name: bytes, folder: bytes) -> str:
    base = name.decode("ascii", "replace").removesuffix(".yaml")
    return os.path.join(folder.decode("ascii", "replace"), f"{base}.yaml")


def further(place: str, text: str) -> Iterator[str]:
    """The files that the configuration of Hydra at a place is made of besides."""
    if place.endswith(".yaml") and "defaults:" in text:
        for group, name in _OF_GROUP.findall(text)[:_MOST_FILES]:
            yield os.path.join(os.path.dirname(place), group, f"{name}.yaml")


def names(text: str) -> Iterator[str]:
    """The texts with dots that a file of settings has."""
    yield from list(dict.fromkeys(_DOTTED.findall(text)))[:_MOST_NAMES]
