"""What was found at a git revision, so that a run reports what that one did not have."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable

from cudalint import disk
from cudalint.config import Config, ConfigError
from cudalint.discovery import is_program
from cudalint.history.git import GitError, repository
from cudalint.policy import baseline
from cudalint.policy.baseline import Baseline
from cudalint.policy.selection import Selection
from cudalint.project.deployments import is_deployment
from cudalint.project.requirements import FILES
from cudalint.session import Session
from cudalint.store import Store
from cudalint.structs import Frozen, replace

# Besides programs, and files that start servers: what says which files are read, which commands a project installs, and
# which releases of packages it is used with.
_SETTINGS = frozenset({".gitignore", *FILES})


class Before(Frozen):
    """The findings of a revision, and what a user should know of how they came about."""

    known: Baseline
    warnings: tuple[str, ...] = ()


def before(config: Config, store: Store | None, revision: str, paths: Iterable[str]) -> Before:
    """What a run over the whole project found at a revision, by the configuration of now.

    Raises:
        ConfigError: outside of git, and for a revision that is not known or not there.
    """
    root = config.root or os.getcwd()
    try:
        repo = repository(root)
        commit = repo.commit(revision)
        with tempfile.TemporaryDirectory(prefix="cudalint-since-") as made:
            folder = os.path.realpath(made)
            repo.write(commit, folder, _is_wanted)
            return _found(config, store, revision, _Move(_top(root, repo.top), folder), tuple(paths))
    except GitError as error:
        raise ConfigError(f"--since {revision}: {error}") from None


class _Move(Frozen):
    """From the work tree to the folder where the revision lies."""

    top: str
    folder: str

    def path(self, path: str) -> str:
        """Where a path of the work tree lies; another one stays."""
        if path != self.top and not path.startswith(self.top.rstrip(os.sep) + os.sep):
            return path
        return os.path.normpath(os.path.join(self.folder, os.path.relpath(path, self.top)))


def _found(config: Config, store: Store | None, revision: str, move: _Move, paths: tuple[str, ...]) -> Before:
    there = move.path(config.root or move.top)
    root = there if os.path.isdir(there) else move.folder
    # What is named is read also where it is excluded; the rest of the project is where a finding may have come from.
    named = [path for path in (move.path(os.path.abspath(path)) for path in paths) if os.path.lexists(path)]
    moved = replace(
        config,
        root=root,
        # What was there is known whatever shows it now: which settings count for a file may have changed.
        by_folder=False,
        selection=Selection(),
        per_file_ignores=(),
        exclude=tuple(map(move.path, config.exclude)),
        lenient=tuple(map(move.path, config.lenient)),
        extra_paths=tuple(path for path in map(move.path, config.extra_paths) if os.path.isdir(path)),
        baseline=None,
    )
    report = Session(moved, store).check((root, *named), repair=False)
    known = baseline.of(report.findings, report.texts, move.folder)
    failed = (f"cudalint failed on files of {revision}: what they had may be reported as new",)
    known = replace(known, folder=move.top)
    changed = frozenset(path for path in map(known.path, known.entries) if _bytes(path) != _bytes(move.path(path)))
    return Before(replace(known, changed=changed), failed if report.failures else ())


def _bytes(path: str) -> bytes | None:
    try:
        return disk.read(path)
    except disk.Unreadable:
        return None


def _top(root: str, top: str) -> str:
    """The top of the work tree by the name under which the project is known, be it by way of links."""
    return os.path.normpath(os.path.join(root, os.path.relpath(top, os.path.realpath(root))))


def _is_wanted(path: str, is_executable: bool) -> bool:
    name = path.rpartition("/")[2]
    return name in _SETTINGS or is_deployment(name) or is_program(name, is_executable)
