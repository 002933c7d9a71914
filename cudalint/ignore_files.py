"""The ``.gitignore`` files of a project, each of which counts from its own folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

from cudalint import disk
from cudalint.ignored import Ignored
from cudalint.structs import Frozen


class IgnoreFile(Frozen):
    """The patterns of one .gitignore, which count from its own directory."""

    directory: str
    patterns: Ignored

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Whether it ignores the path, takes it back, or says nothing."""
        return self.patterns.verdict(self._relative(path), is_directory)

    def leaves_out(self, folder: str) -> bool:
        """Whether it ignores a folder, or one between its own and that."""
        return self.patterns.leaves_out(self._relative(folder))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.directory).replace(os.sep, "/")


def says_ignored(ignore_files: tuple[IgnoreFile, ...], path: str, is_directory: bool) -> bool:
    """The closest .gitignore that says something about the path decides."""
    for ignore_file in reversed(ignore_files):
        verdict = ignore_file.verdict(path, is_directory)
        if verdict is not None:
            return verdict
    return False


def is_ignored(path: str, root: str) -> bool:
    """Whether git ignores a file of a project, or a folder that it lies in."""
    ignore_files: tuple[IgnoreFile, ...] = ()
    place, parts = root, os.path.relpath(path, root).split(os.sep)
    for depth, part in enumerate(parts):
        ignore_files = (*ignore_files, *read_ignore_file(place))
        place = os.path.join(place, part)
        if says_ignored(ignore_files, place, depth + 1 < len(parts)):
            return True
    return False


def read_ignore_file(directory: str) -> Iterator[IgnoreFile]:
    """That of a folder, where it has one."""
    try:
        data = disk.read(os.path.join(directory, ".gitignore"), disk.MOST_SETTINGS_BYTES)
    except disk.Unreadable:
        return
    yield IgnoreFile(directory, Ignored(data))
