"""Which files a run reads: named ones always, directories minus what is excluded or ignored by git."""

from __future__ import annotations

import errno
import os
import re
import stat
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from cudalint import disk
from cudalint.ignore_files import IgnoreFile, read_ignore_file, says_ignored
from cudalint.policy.globs import Globs
from cudalint.structs import Frozen

# Python's own for programs, and for programs without a console; and notebooks.
SUFFIXES = (".py", ".pyw", ".ipynb")
# What the first row of a script names when Python is to run it: a path, or env with whatever stands before the name.
_SHEBANG = re.compile(rb"#![^\r\n]*\bpython")
_ROW_LENGTH = 256
_PACKAGE = "__init__.py"
# The file of a project that may hold settings.
PROJECT_FILE = "pyproject.toml"
# What Emacs leaves beside a file while it is edited: a link to nowhere, by design.
_LOCK = ".#"
# Where only some files of a folder are wanted, so many folders are looked into for each of them.
_FOLDERS_FOR_A_FILE = 4


class NotFound(Exception):
    """A path that was named does not exist; the text is the path."""


class Exclusion(Frozen):
    """What is not read when a directory is walked: patterns, which count from ``root``.

    Those in ``lenient`` are names that packages have too: a package of that name within a package is read.
    ``is_forced`` says that they count for named files and directories as well.
    """

    patterns: tuple[str, ...] = ()
    lenient: tuple[str, ...] = ()
    is_forced: bool = False


# What is not read in a folder where other settings count than those of the run, and where its patterns count from.
Elsewhere: TypeAlias = Callable[[str], tuple[Exclusion, str] | None]


def discover(
    paths: Iterable[str],
    exclude: Exclusion,
    root: str | None,
    unsaved: Iterable[str] = (),
    elsewhere: Elsewhere = lambda _: None,
) -> tuple[str, ...]:
    """The absolute paths of the files to read, each once, sorted.

    What is above or at a named path excludes nothing, unless the exclusion is forced. A directory that cannot be
    listed stands for what is in it, and a link that leads nowhere for its target: whoever reads them is told why not.
    ``unsaved`` are the paths of files that an editor has, whether or not they are on the disk.
    """
    found: set[str] = set()
    excluded = _Exclusions(_Excluded(exclude, root or os.getcwd()), elsewhere)
    new = [path for path in unsaved if path.endswith(SUFFIXES) and not exists(path)]
    for path in paths:
        absolute = os.path.abspath(path)
        found.update(one for one in new if _lies_below(one, absolute) and not excluded.covers(one))
        if absolute in new:
            found.add(absolute)
            continue
        if not exists(absolute):
            raise NotFound(path)
        if exclude.is_forced and excluded.covers(absolute):
            continue
        if os.path.isdir(absolute):
            found.update(_walk([(absolute, _ignore_files_above(absolute, root))], excluded))
        else:
            found.add(absolute)
    return tuple(sorted(found))


class Listed(Frozen):
    """The files below some folders, those in few folders first; ``is_all`` unless there are more."""

    paths: tuple[str, ...]
    is_all: bool


def list_some(
    folders: Iterable[str],
    most: int,
    exclude: Exclusion,
    root: str | None,
    unsaved: Iterable[str] = (),
    elsewhere: Elsewhere = lambda _: None,
) -> Listed:
    """As many files below some folders as wanted, without looking into many more folders than that."""
    tops = tuple(folders)
    excluded = _Exclusions(_Excluded(exclude, root or os.getcwd()), elsewhere)
    new = [path for path in unsaved if path.endswith(SUFFIXES) and not exists(path)]
    found = {one: None for one in new if any(_lies_below(one, top) for top in tops) and not excluded.covers(one)}
    walk = _walk([(top, _ignore_files_above(top, root)) for top in tops], excluded, most * _FOLDERS_FOR_A_FILE)
    try:
        for path in walk:
            found[path] = None
            if len(found) > most:
                return Listed(tuple(found)[:most], is_all=False)
    except _TooManyFolders:
        return Listed(tuple(found), is_all=False)
    return Listed(tuple(found), is_all=True)


def without_python(
    paths: Iterable[str],
    files: Sequence[str],
    exclude: Exclusion,
    root: str | None,
    elsewhere: Elsewhere = lambda _: None,
) -> tuple[str, ...]:
    """The named paths under which none of the ``files`` lies that were found, though nothing leaves them out."""
    excluded = _Exclusions(_Excluded(exclude, root or os.getcwd()), elsewhere)
    return tuple(
        path
        for path in paths
        if not _holds_one(os.path.abspath(path), files)
        and not (exclude.is_forced and excluded.covers(os.path.abspath(path)))
    )


def _holds_one(path: str, files: Sequence[str]) -> bool:
    """Whether one of some sorted files is this one or lies below it."""
    below = path.rstrip(os.sep) + os.sep
    own, first = bisect_left(files, path), bisect_left(files, below)
    return path in files[own : own + 1] or any(file.startswith(below) for file in files[first : first + 1])


def _lies_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def leaves_out(exclude: Exclusion, path: str, root: str | None) -> bool:
    """Whether a file is not to be read although it is named."""
    return exclude.is_forced and _Excluded(exclude, root or os.getcwd()).covers(os.path.abspath(path))


def exists(path: str) -> bool:
    """Whether something is there, be it out of reach; a link that leads nowhere is nothing."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


class _Exclusions:
    """What is left out where: by the settings that count in a folder, and for named paths by those of the run too."""

    __slots__ = ("_elsewhere", "base")

    def __init__(self, base: _Excluded, elsewhere: Elsewhere) -> None:
        self.base = base
        self._elsewhere = elsewhere

    def within(self, folder: str) -> _Excluded:
        """What leaves out the entries of a folder."""
        found = self._elsewhere(folder)
        return self.base if found is None else _Excluded(*found)

    def covers(self, path: str) -> bool:
        """Whether a path, or a directory above it, is left out."""
        return self.base.covers(path) or self.within(os.path.dirname(path)).covers(path)


class _Excluded:
    """An exclusion made ready to be asked."""

    __slots__ = ("_lenient", "_root", "_strict")

    def __init__(self, exclude: Exclusion, root: str) -> None:
        self._root = root
        self._lenient = Globs((name for name in exclude.patterns if name in exclude.lenient), root)
        self._strict = Globs((name for name in exclude.patterns if name not in exclude.lenient), root)

    def matches(self, path: str) -> bool:
        """Whether this very file or directory is left out."""
        return self._strict.matches(path) or (self._lenient.matches(path) and not _is_inner_package(path))

    def covers(self, path: str) -> bool:
        """Whether it, or a directory between the root and it, is left out."""
        top = self._root.rstrip(os.sep) + os.sep
        if not path.startswith(top):
            return path != self._root and self.matches(path)
        while path.startswith(top):
            if self.matches(path):
                return True
            path = os.path.dirname(path)
        return False


def _is_inner_package(folder: str) -> bool:
    return all(os.path.isfile(os.path.join(place, _PACKAGE)) for place in (folder, os.path.dirname(folder)))


class _TooManyFolders(Exception):
    """There is more to walk through than was wanted."""


def _walk(
    tops: Iterable[tuple[str, tuple[IgnoreFile, ...]]], exclusions: _Exclusions, most: int | None = None
) -> Iterator[str]:
    """What lies below some folders, each with the .gitignore files above it: the levels near the top first."""
    pending = deque((top, above, exclusions.within(top)) for top, above in tops)
    walked = 0
    while pending:
        walked += 1
        if most is not None and walked > most:
            raise _TooManyFolders
        directory, inherited, excluded = pending.popleft()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            yield directory
            continue
        ignore_files = (*inherited, *_ignore_file(directory, entries))
        if any(entry.name == PROJECT_FILE for entry in entries):
            excluded = exclusions.within(directory)
        for entry in entries:
            is_directory = _is_directory(entry)
            if not is_directory and not _is_program(entry):
                continue
            if excluded.matches(entry.path) or says_ignored(ignore_files, entry.path, is_directory):
                continue
            if is_directory:
                pending.append((entry.path, ignore_files, excluded))
            else:
                yield entry.path


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def is_program(name: str, is_executable: bool) -> bool:
    """Whether a file of this name may hold a program of Python: by its suffix, or as a script without one."""
    return name.endswith(SUFFIXES) or (is_executable and "." not in name)


def _is_program(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is, or stands where there should be, a file of Python or a notebook.

    Links to directories are not followed.
    """
    if not entry.name.endswith(SUFFIXES):
        return is_program(entry.name, is_executable=True) and _is_script(entry)
    try:
        return entry.is_file() or not (entry.is_dir() or (entry.name.startswith(_LOCK) and entry.is_symlink()))
    except OSError:
        return True


def _is_script(entry: os.DirEntry[str]) -> bool:
    """Whether a file without a suffix may be executed, and is for Python; what cannot be looked into is none."""
    try:
        if not entry.is_file() or not entry.stat().st_mode & stat.S_IXUSR:
            return False
        return _SHEBANG.match(disk.head(entry.path, _ROW_LENGTH)) is not None
    except (OSError, disk.Unreadable):
        return False


def _ignore_file(directory: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[IgnoreFile]:
    if any(entry.name == ".gitignore" for entry in entries):
        yield from read_ignore_file(directory)


def _ignore_files_above(top: str, root: str | None) -> tuple[IgnoreFile, ...]:
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
    ignore_files: tuple[IgnoreFile, ...] = ()
    for directory in reversed(directories):
        for ignore_file in read_ignore_file(directory):
            if not ignore_file.leaves_out(top):
                ignore_files = (*ignore_files, ignore_file)
    return ignore_files
