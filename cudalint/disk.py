"""Reads files, and nothing that only looks like one.

Whatever lies under a name, reading ends, takes bounded memory, and changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

# More than any program has; what is larger is data, or has no end.
MOST_BYTES = 256_000_000
# Settings, models and patterns are written by hand.
MOST_SETTINGS_BYTES = 16_000_000
_PART = 1_000_000

# No pipe is waited for, and no terminal taken, should a file have become one since it was looked at.
_CAREFULLY = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a named pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)


class Unreadable(Exception):
    """Why there are no bytes, in words that follow ``path:``."""


class Nothing(Unreadable):
    """A link that leads to no file: nothing is there that could be read."""


def read(path: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file, through links; raises ``Unreadable``, also for one of more than ``most`` bytes."""
    try:
        # A device may act when it is merely opened, so it is looked at first.
        _require_regular(os.stat(path), most)
        with open(os.open(path, _CAREFULLY), "rb") as stream:
            status = os.fstat(stream.fileno())
            _require_regular(status, most)
            data = bounded(stream, most, status.st_size)
    except FileNotFoundError as error:
        if os.path.islink(path):
            raise Nothing("it is a link that leads nowhere") from None
        raise Unreadable(f"it cannot be read: {words(error)}") from None
    except OSError as error:
        raise Unreadable(f"it cannot be read: {words(error)}") from None
    except ValueError:
        raise Unreadable("it cannot be read: its name holds a null character") from None
    if len(data) > most:
        raise Unreadable(_too_large(most))
    return data


def head(path: str, most: int) -> bytes:
    """The first bytes of a regular file; raises ``Unreadable`` or ``OSError``."""
    with open(os.open(path, _CAREFULLY), "rb") as stream:
        _require_regular(os.fstat(stream.fileno()), MOST_BYTES)
        return stream.read(most)


def bounded(stream: BinaryIO, most: int, expected: int = 0) -> bytes:
    """All of a stream, or a little more than ``most`` bytes of it; memory is taken as they come."""
    wanted = expected + 1
    parts = [stream.read(wanted)]
    while len(parts[-1]) == wanted and sum(map(len, parts)) <= most:
        wanted = _PART
        parts.append(stream.read(wanted))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def words(error: OSError) -> str:
    """What the system says of an error, on one line and without the path."""
    if error.errno == errno.ELOOP:
        return "a link leads back to itself"
    return error.strerror or type(error).__name__


def _require_regular(status: os.stat_result, most: int) -> None:
    for is_kind, told in _KINDS:
        if is_kind(status.st_mode):
            raise Unreadable(told)
    if status.st_size > most:
        raise Unreadable(_too_large(most))


def _too_large(most: int) -> str:
    return f"it has more than {most // 1_000_000} MB"
