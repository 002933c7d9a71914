"""Writing a repaired file so that a reader, or a crash, finds either the old one or the new one, never a part.

The new bytes go to a temporary file beside the old one, which then takes its name. Where the system has files without
a name, it has none until it is whole, so that hardly any end of the process leaves it there. The writer holds a lock on
it; one that is not locked was left behind, and the next run that repairs something there removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from cudalint import disk
from cudalint.fixing.rounds import Changed

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_SPECIAL = stat.S_ISUID | stat.S_ISGID
# Where a process finds what it has opened, by its number.
_DESCRIPTORS = "/proc/self/fd"
_PREFIX, _SUFFIX = ".cudalint-", ".tmp"
_TEMPORARY = re.compile(rf"{re.escape(_PREFIX)}\w{{8}}{re.escape(_SUFFIX)}")


class Refused(Exception):
    """Why a file is left as it is, in words that follow ``is not repaired:``."""


def write(change: Changed) -> None:
    """Put the repaired bytes in the place of those that were read; a link keeps pointing to the file.

    Raises ``Refused`` for a file that is read-only, that has other names, that changed since it was read, or that
    cannot be replaced.
    """
    target, status = _admitted(change)
    _replace(target, change.after, status)


def write_together(changes: Sequence[Changed], homes: Iterable[frozenset[str]] = ()) -> dict[str, Refused]:
    """Put repaired files in place; those that one repair is about all together, or none of them.

    ``homes`` are the files of each repair. Gives, by file, why it is left as it is.
    """
    refused: dict[str, Refused] = {}
    for group in _groups(changes, homes):
        failed = _unwritable(group) or _written(group)
        if failed is None:
            continue
        path, reason = failed
        other = Refused(f"{os.path.basename(path)} is not, and a repair needs both")
        refused.update({change.path: reason if change.path == path else other for change in group})
    return refused


def _groups(changes: Sequence[Changed], homes: Iterable[frozenset[str]]) -> list[list[Changed]]:
    """The changes that hang together by repairs, in the order of their files."""
    groups = [{change.path} for change in changes]
    for files in homes:
        meeting = [group for group in groups if group & files]
        groups = [group for group in groups if not group & files]
        groups.append(set().union(*meeting))
    made = [[change for change in changes if change.path in group] for group in groups]
    return sorted((group for group in made if group), key=lambda group: group[0].path)


def _unwritable(group: Iterable[Changed]) -> tuple[str, Refused] | None:
    """The first file of some that may not be written, and why."""
    for change in group:
        try:
            _admitted(change)
        except Refused as refusal:
            return change.path, refusal
    return None


def _written(group: Iterable[Changed]) -> tuple[str, Refused] | None:
    """Write some files, or take back what was written and say which of them could not be."""
    done: list[Changed] = []
    for change in group:
        try:
            write(change)
        except Refused as refusal:
            for earlier in done:
                with contextlib.suppress(Refused):
                    write(Changed(earlier.path, earlier.after, earlier.before))
            return change.path, refusal
        done.append(change)
    return None


def _admitted(change: Changed) -> tuple[str, os.stat_result]:
    """The file that a path leads to, and how it is; raises ``Refused`` where it is to be left as it is."""
    target = os.path.realpath(change.path)
    try:
        status = os.stat(target)
        present = disk.read(target)
    except (OSError, disk.Unreadable) as error:
        raise Refused(f"it cannot be read any more: {_words(error)}") from None
    if present != change.before:
        raise Refused("it changed while it was checked; run again")
    if not status.st_mode & _WRITABLE or not os.access(target, os.W_OK):
        raise Refused("it is read-only")
    if status.st_nlink > 1:
        # To replace it would part it from its other names, to write into it would change files that nobody named.
        raise Refused(f"it has {status.st_nlink} names (hard links), which may lie anywhere")
    return target, status


def clear_leftovers(folders: Iterable[str]) -> None:
    """Remove the temporary files of processes that ended before they could."""
    for folder in set(folders):
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(folder)):
                if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    _clear(entry.path)


def _clear(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            _lock(descriptor)
            os.unlink(path)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Take a file for this process; raises ``OSError`` where another has it. Where there are no locks, that is all."""
    if sys.platform != "win32":  # there, files that are open cannot be removed at all
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _replace(target: str, data: bytes, status: os.stat_result) -> None:
    try:
        with _temporary(os.path.dirname(target)) as (descriptor, temporary):
            with open(descriptor, "wb", closefd=False) as stream:
                stream.write(data)
            _keep_owner_and_mode(descriptor, target, temporary, status)
            os.fsync(descriptor)
            if os.fstat(descriptor).st_nlink == 0:
                _name(descriptor, temporary)
            if sys.platform == "win32":
                os.close(descriptor)
            os.replace(temporary, target)
    except OSError as error:
        raise Refused(f"it cannot be written: {_words(error)}") from None


@contextlib.contextmanager
def _temporary(folder: str) -> Iterator[tuple[int, str]]:
    """A new file that is locked, and gone in the end unless it was given another name; it may have none yet."""
    try:
        descriptor, path = _nameless(folder) or tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=folder)
    except OSError as error:
        raise Refused(f"no file can be made beside it: {_words(error)}") from None
    try:
        with contextlib.suppress(OSError):  # a file system without locks: then two runs may get in each other's way
            _lock(descriptor)
        yield descriptor, path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _nameless(folder: str) -> tuple[int, str] | None:
    """A new file without a name, and one that it can be given; None where the system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_DESCRIPTORS):
        return None
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, stat.S_IRUSR | stat.S_IWUSR)
        return descriptor, os.path.join(folder, f"{_PREFIX}{secrets.token_hex(4)}{_SUFFIX}")
    return None


def _name(descriptor: int, path: str) -> None:
    """Give a file that has none a name. Only where a folder is named by its descriptor does Python follow the link."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.link(f"{_DESCRIPTORS}/{descriptor}", os.path.basename(path), dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _keep_owner_and_mode(descriptor: int, target: str, temporary: str, status: os.stat_result) -> None:
    """Give the new file the owner, the attributes and the mode of the old one, in this order: each undoes the next."""
    kept = _keep_owner(descriptor, status)
    if not kept and status.st_mode & _SPECIAL:
        raise Refused("it runs with the rights of its owner, who would become another")
    _keep_attributes(target, descriptor)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    else:
        os.chmod(temporary, stat.S_IMODE(status.st_mode))


def _keep_owner(descriptor: int, status: os.stat_result) -> bool:
    """Whether the new file belongs to the owner and the group of the old one, which is not always ours to decide."""
    if not hasattr(os, "fchown"):
        return True
    for owner, group in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, owner, group)
            break
    now = os.fstat(descriptor)
    return (now.st_uid, now.st_gid) == (status.st_uid, status.st_gid)


def _keep_attributes(target: str, descriptor: int) -> None:
    """What lists of access rights and the like are kept in, as far as the file system lets us."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(target):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(target, name))


def _words(error: Exception) -> str:
    return disk.words(error) if isinstance(error, OSError) else str(error)
