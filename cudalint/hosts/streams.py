"""Standard input and output, whatever became of them: a reader that has gone, a closed terminal, a full disk."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import TextIO

from cudalint.config import ConfigError
from cudalint.disk import MOST_BYTES, bounded, words
from cudalint.report.plain import plain

# A pipe without a reader, a terminal without a window.
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.ENXIO, errno.ESHUTDOWN})
# No room on a disk, or none that this user may have.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Of what a line quotes, nobody reads more: the word of a settings file may have megabytes.
_MOST_SAID = 8_000


def is_full(error: OSError) -> bool:
    """Whether a stream that was open already takes no more."""
    return error.errno in _FULL and error.filename is None


def put(text: str) -> None:
    """Write to standard output. That nobody reads on is the reader's right, and changes nothing else."""
    _write(sys.stdout, text)


def save(path: str, text: str) -> None:
    """Write to a file that the user named; raises ``ConfigError``."""
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
            stream.write(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {words(error)}") from None


def say(text: str) -> None:
    """Write one line for the user to standard error, harmless whatever names it holds."""
    shown = text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}..."
    try:
        _write(sys.stderr, f"{plain(shown)}\n")
    except ConfigError:
        return  # there is no place left to complain


def read_input() -> bytes:
    """All of standard input; raises ``ConfigError`` where there is none."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed")
    try:
        data = bounded(sys.stdin.buffer, MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"standard input cannot be read: {words(error)}") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"standard input has more than {MOST_BYTES // 1_000_000} MB")
    return data


def takes_colour() -> bool:
    """Whether standard output is to show colours: as the environment says, or because it is a terminal that can."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def let_go(stream: TextIO) -> None:
    """Keep the interpreter from flushing into nothing when it ends."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def put_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    _guarded(sys.stdout, lambda: sys.stdout.buffer.write(data))


def _write(stream: TextIO, text: str) -> None:
    _guarded(stream, lambda: stream.write(text))


def _guarded(stream: TextIO, write: Callable[[], object]) -> None:
    try:
        write()
        stream.flush()
    except OSError as error:
        let_go(stream)
        if error.errno not in _GONE:
            raise ConfigError(f"the output cannot be written: {words(error)}") from None
