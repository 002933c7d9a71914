"""Which modules of a project can have to do with some of them: those that import them, and what these import.

A path of a finding runs along imports, so an entry that never imports a file has no step in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from cudalint.project.entries import is_test_module
from cudalint.project.program import FileProgram


def near(files: FileProgram, paths: Iterable[str]) -> frozenset[str]:
    """The modules whose entries may have a step in one of these files."""
    selected = {files.names[path] for path in paths if path in files.names}
    users = set(selected).union(*(files.above(name) for name in selected))
    users.update(_under_conftests(files, users))
    # A server's configuration names its application without importing it.
    users.update(name for name in files.sources if files.facts(name).may_serve)
    return frozenset(files.below(users))


def _under_conftests(files: FileProgram, users: Iterable[str]) -> Iterator[str]:
    """The test modules that fixtures of a conftest among ``users`` may run around, without an import."""
    homes = {os.path.dirname(path) for name in users if (path := files.sources[name].path).endswith("conftest.py")}
    for path, name in files.names.items() if homes else ():
        if is_test_module(path) and any(path.startswith(home + os.sep) for home in homes):
            yield name
