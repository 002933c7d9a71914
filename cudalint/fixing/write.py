"""Writing a repaired file so that a reader, or a crash, finds either the old one or the new one, never a part."""

from __future__ import annotations

import os
import stat
import tempfile

from cudalint.fixing.rounds import Changed

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Refused(Exception):
    """Why a file is left as it is, in words that follow ``is not repaired:``."""


def write(change: Changed) -> None:
    """Put the repaired bytes in the place of those that were read; a link keeps pointing to the file.

    Raises ``Refused`` for a file that is read-only, that changed since it was read, or that cannot be replaced.
    """
    target = os.path.realpath(change.path)
    try:
        status = os.stat(target)
        with open(target, "rb") as stream:
            present = stream.read()
    except OSError as error:
        raise Refused(f"it cannot be read any more: {_words(error)}") from None
    if present != change.before:
        raise Refused("it changed while it was checked; run again")
    if not status.st_mode & _WRITABLE or not os.access(target, os.W_OK):
        raise Refused("it is read-only")
    _replace(target, change.after, status)


def _replace(target: str, data: bytes, status: os.stat_result) -> None:
    folder, name = os.path.split(target)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".cudalint", dir=folder)
    except OSError as error:
        raise Refused(f"no file can be made beside it: {_words(error)}") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        _keep_owner(temporary, status)
        os.replace(temporary, target)
    except OSError as error:
        _discard(temporary)
        raise Refused(f"it cannot be written: {_words(error)}") from None
    except BaseException:
        _discard(temporary)
        raise


def _keep_owner(path: str, status: os.stat_result) -> None:
    """Give the new file to the owner of the old one where that is ours to do."""
    if not hasattr(os, "chown"):
        return
    try:
        os.chown(path, status.st_uid, status.st_gid)
    except PermissionError:
        return


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _words(error: OSError) -> str:
    return error.strerror or type(error).__name__
