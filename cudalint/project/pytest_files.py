"""What pytest collects, and whether a project has it fork for each test (pytest-forked, pytest-isolate)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from cudalint import disk

# Folders of tests, and of what these use.
_FOLDERS = frozenset({"test", "tests"})
# Where pytest finds its settings: the first of these that has any.
_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_MOST_BYTES = 200_000
# The options in one row, in rows that are indented below it, or as a list.
_OPTIONS = re.compile(r"^[ \t]*addopts[ \t]*=[ \t]*(\[[^\]]*\]|.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_FORKED = re.compile(r"--(?:forked|boxed|isolate)(?![\w-])")


def is_test_module(path: str) -> bool:
    """Whether pytest would collect a file."""
    base = path.replace("\\", "/").rsplit("/", 1)[-1]
    return base.startswith("test_") or base.endswith("_test.py") or base == "conftest.py"


def conftests_above(paths: Iterable[str], root: str) -> list[str]:
    """The files that pytest imports before the test modules among some, in their folders and those up to the root."""
    folders: dict[str, None] = {}
    for path in filter(is_test_module, paths):
        folder = os.path.dirname(path)
        while folder.startswith(root) and folder not in folders:
            folders[folder] = None
            folder = os.path.dirname(folder)
    found = (os.path.join(folder, "conftest.py") for folder in folders)
    return [path for path in found if os.path.isfile(path)]


def lies_with_tests(path: str) -> bool:
    """Whether a file, by its path within its project, is one that pytest collects or lies in a folder of tests."""
    return is_test_module(path) or not _FOLDERS.isdisjoint(path.replace("\\", "/").split("/")[:-1])


def forked(root: str, folders: Iterable[str]) -> frozenset[str]:
    """The folders of tests of which settings say that each test is run in a process of its own, which is forked.

    Told the folder of tests, pytest takes the settings that lie nearest above it; of many folders, each is looked
    into once.
    """
    known: dict[str, bool] = {}
    return frozenset(folder for folder in folders if _forks(root, folder, known))


def _forks(root: str, folder: str, known: dict[str, bool]) -> bool:
    if folder not in known:
        options, above = _options(folder), os.path.dirname(folder)
        if options is not None:
            known[folder] = _FORKED.search(options) is not None
        else:
            known[folder] = folder != root and above.startswith(root) and _forks(root, above, known)
    return known[folder]


def _options(folder: str) -> str | None:
    """The options that the settings in a folder say; None where none lie there."""
    found = (_OPTIONS.search(_read(os.path.join(folder, name))) for name in _SETTINGS)
    return next((options[1] for options in found if options is not None), None)


def _read(path: str) -> str:
    try:
        return disk.read(path, _MOST_BYTES).decode(errors="replace")
    except disk.Unreadable:
        return ""
