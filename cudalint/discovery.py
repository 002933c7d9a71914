"""Which files a run reads: named ones always, directories minus what is excluded or ignored by git."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudalint.policy.globs import Globs

if TYPE_CHECKING:
    import pathspec

SUFFIX = ".py"


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The patterns of one .gitignore, which count from its own directory."""

    directory: str
    spec: pathspec.GitIgnoreSpec

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Whether it ignores the path, takes it back, or says nothing."""
        relative = os.path.relpath(path, self.directory).replace(os.sep, "/")
        return self.spec.check_file(relative + "/" if is_directory else relative).include


class NotFound(Exception):
    """A path that was named does not exist; the text is the path."""


def discover(paths: Iterable[str], exclude: Iterable[str], root: str | None) -> tuple[str, ...]:
    """The absolute paths of the files to read, each once, sorted.

    A pattern of ``exclude`` counts from ``root``. What is above or at a named path excludes nothing.
    """
    found: set[str] = set()
    globs = Globs(exclude, root or os.getcwd())
    for path in paths:
        absolute = os.path.abspath(path)
        if os.path.isdir(absolute):
            found.update(_walk(absolute, globs, _ignore_files_above(absolute, root)))
        elif os.path.exists(absolute):
            found.add(absolute)
        else:
            raise NotFound(path)
    return tuple(sorted(found))


def _walk(top: str, globs: Globs, above: tuple[_IgnoreFile, ...]) -> Iterator[str]:
    pending = [(top, above)]
    while pending:
        directory, inherited = pending.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            # A directory that cannot be listed holds nothing that was named.
            continue
        ignore_files = (*inherited, *_ignore_file(directory, entries))
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not (entry.name.endswith(SUFFIX) and entry.is_file()):
                continue
            if globs.matches(entry.path) or _is_ignored(ignore_files, entry.path, is_directory):
                continue
            if is_directory:
                pending.append((entry.path, ignore_files))
            else:
                yield entry.path


def _is_ignored(ignore_files: tuple[_IgnoreFile, ...], path: str, is_directory: bool) -> bool:
    """The closest .gitignore that says something about the path decides."""
    for ignore_file in reversed(ignore_files):
        verdict = ignore_file.verdict(path, is_directory)
        if verdict is not None:
            return verdict
    return False


def _ignore_file(directory: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[_IgnoreFile]:
    if any(entry.name == ".gitignore" for entry in entries):
        yield from _read_ignore_file(directory)


def _read_ignore_file(directory: str) -> Iterator[_IgnoreFile]:
    import pathspec  # most directories have no .gitignore

    try:
        with open(os.path.join(directory, ".gitignore"), encoding="utf-8", errors="replace") as stream:
            yield _IgnoreFile(directory, pathspec.GitIgnoreSpec.from_lines(stream))
    except (OSError, ValueError):
        return


def _ignore_files_above(top: str, root: str | None) -> tuple[_IgnoreFile, ...]:
    """The .gitignore files from the project's root down to the parent of ``top``.

    They count for what lies below a named directory, unless they ignore the directory itself: who names
    it wants it read.
    """
    if root is None or top == root or not top.startswith(root.rstrip(os.sep) + os.sep):
        return ()
    directories: list[str] = []
    directory = os.path.dirname(top)
    while True:
        directories.append(directory)
        if directory == root:
            break
        directory = os.path.dirname(directory)
    ignore_files: tuple[_IgnoreFile, ...] = ()
    for directory in reversed(directories):
        for ignore_file in _read_ignore_file(directory):
            if not ignore_file.verdict(top, True):
                ignore_files = (*ignore_files, ignore_file)
    return ignore_files
