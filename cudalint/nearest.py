"""Which settings count for a file, those of the nearest pyproject.toml above it that has any, and for its findings."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cudalint import config
from cudalint.config import Config, Pythons, Versions
from cudalint.discovery import PROJECT_FILE, Exclusion
from cudalint.finding import Applicability, Finding
from cudalint.policy.globs import Globs
from cudalint.policy.selection import matches, most_specific
from cudalint.structs import replace


class Nearest:
    """The configurations of a run, by folder.

    ``base`` is the configuration of the run: it counts where no other table is nearer, and for all that concerns
    programs as a whole, whose files may lie under several (models, what fails a run). On which Pythons a program
    runs is said above the file that is started.

    Raises:
        ConfigError: when a configuration is asked for that says what cannot be followed.
    """

    def __init__(self, base: Config) -> None:
        self._base = base
        self._known: dict[str, Config] = {}
        # The Pythons below each folder, and the innermost folder around it that says so; none where the run's hold.
        self._pythons: dict[str, tuple[str, Pythons] | None] = {}

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

    def pythons(self, paths: Iterable[str]) -> tuple[tuple[str, Versions], ...]:
        """The folders that say on which Pythons programs among these files run, the innermost first."""
        if not self._base.pythons_by_folder:
            return ()
        said = dict(filter(None, map(self._pythons_of, {os.path.dirname(path) for path in paths})))
        inwards = sorted(said, key=lambda folder: (-len(folder), folder))
        return tuple((folder, said[folder].versions) for folder in inwards)

    def _pythons_of(self, folder: str) -> tuple[str, Pythons] | None:
        if folder not in self._pythons:
            self._pythons[folder] = self._pythons_said(folder) if self._lies_in_project(folder) else None
        return self._pythons[folder]

    def _pythons_said(self, folder: str) -> tuple[str, Pythons] | None:
        above = os.path.dirname(folder)
        around = None if above == folder else self._pythons_of(above)
        path = os.path.join(folder, PROJECT_FILE)
        if not os.path.lexists(path):
            return around
        return folder, config.pythons_in(path, Pythons() if around is None else around[1])

    def shows(self, finding: Finding) -> bool:
        """Whether the settings of its file show a finding."""
        filename = finding.span.filename
        found = self.of(filename)
        if not found.selection.shows(finding.code):
            return False
        root = found.root or os.getcwd()
        return not any(
            matches(ignored, finding.code) and Globs((pattern,), root).covers(filename, root)
            for pattern, ignored in found.per_file_ignores
        )

    def rated(self, finding: Finding) -> Finding:
        """A finding as severe as the settings of its file want it."""
        wanted = dict(self.of(finding.span.filename).severity)
        selector = most_specific(wanted, finding.code) if wanted else None
        return finding if selector is None else replace(finding, severity=wanted[selector])

    def graded(self, finding: Finding) -> Finding:
        """A finding with its fix graded as the settings of its file want it; what is only displayed stays so."""
        fix = finding.fix
        if fix is None or fix.applicability is Applicability.DISPLAY:
            return finding
        found = self.of(finding.span.filename)
        if matches(found.extend_unsafe_fixes, finding.code):
            reason = fix.reason or "the configuration says so"
            return replace(finding, fix=replace(fix, applicability=Applicability.UNSAFE, reason=reason))
        if matches(found.extend_safe_fixes, finding.code):
            return replace(finding, fix=replace(fix, applicability=Applicability.SAFE))
        return finding

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
