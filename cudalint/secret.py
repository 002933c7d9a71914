"""The secret under which a user's cache is signed; ``store.py`` says what for.

It is 32 random bytes in the user's own cache folder, which nobody else may read or write. Runners of a CI that are to
share a cache are given one in ``CUDALINT_CACHE_KEY``. Where neither can be had safely there is no cache.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

VARIABLE = "CUDALINT_CACHE_KEY"
_BYTES = 32
# BLAKE2b takes no longer keys; shorter ones could be guessed.
_LEAST, _MOST = 16, 64
_SHARED = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Malformed(Exception):
    """The variable holds no key; the text says what is expected."""


class Unsafe(Exception):
    """No secret can be kept here; the text says why."""


def secret() -> bytes:
    """The secret of this user, made if there is none; raises ``Malformed`` and ``Unsafe``."""
    given = os.environ.get(VARIABLE)
    if given:
        return _decoded(given)
    try:
        return _kept(os.path.join(_cache_home(), "cudalint"))
    except OSError as error:
        raise Unsafe(f"no key can be kept: {error.strerror or error}") from None


def _decoded(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if not _LEAST <= len(found) <= _MOST:
        raise Malformed(f"{VARIABLE} must be {2 * _LEAST} to {2 * _MOST} hexadecimal digits")
    return found


def _cache_home() -> str:
    """Where the platform keeps caches of a user."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return named
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise Unsafe("no key can be kept: there is no home directory")
    return os.path.join(home, "Library", "Caches") if sys.platform == "darwin" else os.path.join(home, ".cache")


def _kept(folder: str) -> bytes:
    """The key in a folder of the user's own; made, with the folder, where it is missing."""
    path = os.path.join(folder, "key")
    if not os.path.lexists(folder):
        _demand_owner(_existing(os.path.dirname(folder)))
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    _demand_owner(folder)
    if sys.platform != "win32" and os.stat(folder).st_mode & _WRITABLE:
        raise Unsafe(f"no key can be kept: others may write to {folder}")
    if not os.path.lexists(path):
        _make(path)
    return _read(path)


def _existing(folder: str) -> str:
    """The nearest folder at or above a path that is there."""
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _demand_owner(folder: str) -> None:
    """Root leaves no keys in the homes of others, and a folder that another user put in place is not believed."""
    if sys.platform == "win32":
        return  # the profile of a user is its own by its access list
    if os.stat(folder).st_uid != os.geteuid():
        raise Unsafe(f"no key can be kept: {folder} belongs to another user")


def _make(path: str) -> None:
    """Put a new key in place whole; of two runs at the same time, one key stays."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(os.urandom(_BYTES))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        except OSError:  # a file system without links: the later one stays
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _read(path: str) -> bytes:
    with open(os.open(path, _READ), "rb") as stream:
        status = os.fstat(stream.fileno())
        if sys.platform != "win32":
            if status.st_uid != os.geteuid():
                raise Unsafe(f"{path} belongs to another user")
            if status.st_mode & _SHARED:
                raise Unsafe(f"others may use {path}: it must be readable by its owner alone (chmod 600)")
        found = stream.read(_BYTES + 1) if stat.S_ISREG(status.st_mode) else b""
    if len(found) != _BYTES:
        raise Unsafe(f"{path} holds no key of cudalint; remove it and a new one is made")
    return found
