"""Which settings count for a file: those of the nearest pyproject.toml above it that has any."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from cudalint import config
from cudalint.config import Config
from cudalint.discovery import PROJECT_FILE, Exclusion


class Nearest:
    """The configurations of a run, by folder.

    ``base`` is the configuration of the run: it counts where no other table is nearer, and for all that concerns
    programs as a whole, whose files may lie under several (Python versions, models, what fails a run).

    Raises:
        ConfigError: when a configuration is asked for that says what cannot be followed.
    """

    def __init__(self, base: Config) -> None:
        self._base = base
        self._known: dict[str, Config] = {}

    def of(self, path: str) -> Config:
        """What counts for a file."""
        return self._of_folder(os.path.dirname(path))

    def exclusion(self, folder: str) -> tuple[Exclusion, str] | None:
        """What is not read in a folder, and where patterns count from; None where the run's configuration says it."""
        found = self._of_folder(folder)
        if found is self._base or found.root is None:
            return None
        return replace(found.exclusion, is_forced=self._base.force_exclude), found.root

    def others(self, paths: Iterable[str]) -> tuple[Config, ...]:
        """The configurations besides the run's that count for some files, by where they were read."""
        found = {one.source: one for one in map(self.of, paths) if one is not self._base}
        return tuple(found[source] for source in sorted(found, key=str))

    def _of_folder(self, folder: str) -> Config:
        known = self._known.get(folder)
        if known is None:
            known = self._known[folder] = self._found(folder)
        return known

    def _found(self, folder: str) -> Config:
        if not self._base.by_folder or not self._lies_in_project(folder):
            return self._base
        path = os.path.join(folder, PROJECT_FILE)
        if path == self._base.source:
            return self._base
        own = config.in_folder(path) if os.path.lexists(path) else None
        if own is not None:
            return config.on_top(own, self._base.given)
        above = os.path.dirname(folder)
        return self._base if above == folder else self._of_folder(above)

    def _lies_in_project(self, folder: str) -> bool:
        """Whether a folder is the project's, or nothing says where the project begins."""
        root = self._base.root
        return root is None or folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)
