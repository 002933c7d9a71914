"""A content-addressed store of bytes in a folder. It knows nobody, and nothing ever depends on it.

``get(kind, key)`` gives what ``put(kind, key, data)`` kept, or None. Kinds are folders; a key is any text, and has to
say everything that decides the data (``fingerprint.digest`` makes one of many parts). The data is the caller's to
encode: ``marshal`` and ``json`` for plain data, ``ir/stored.py`` shows pickle for an allow-list of classes.

**Why entries are signed.** A cache lies in the project, so a repository may bring one along, and a cache folder may be
shared. Whoever can write there must not decide what a run reports, and must not choose bytes that a decoder sees. So
each entry begins with a keyed hash (BLAKE2b) of its kind, its key and its data, under a secret of the user
(``secret.py``). What does not carry it is absent: that is decided before a byte is decoded. The names of entries are
keyed too, so that nobody else can foresee which path will be opened, and users of one folder do not get in each
other's way. Folders that are symbolic links are not followed, and only what is named like an entry is ever removed.

**Why nothing can fail.** Entries are written to a temporary file and moved into place, so that runs at the same time
see whole entries or none; what a crash tears has no valid hash. The first error of the file system is kept as
``problem``, writing ends for this run, and reading finds nothing.

**Bounds.** ``tidy`` removes what was not used for ``most_days``, and the least recently used beyond ``most_bytes``.
It looks at the folder at most once a day, or after a run that wrote much, never at each ``put``.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import os
import re
import stat
import time
from collections.abc import Iterator
from hashlib import blake2b

from cudalint.structs import Frozen, Mutable, field

DEFAULT_FOLDER = ".cudalint_cache"
MOST_BYTES = 512_000_000
MOST_DAYS = 30.0

_MAC_BYTES = 32
_NAME_BYTES = 20
_KIND = re.compile(r"[a-z]+")
_SHARD = re.compile(r"[0-9a-f]{2}")
_ENTRY = re.compile(rf"[0-9a-f]{{{2 * _NAME_BYTES - 2}}}")
_TEMPORARY = re.compile(rf"{_ENTRY.pattern}\.\d+-\d+\.tmp")
_DAY = 86_400.0
_HOUR = 3_600.0
# What is left after the least recently used was removed, so that the next run does not have to remove again.
_KEPT = 0.8
# A run that wrote such a part of the bound looks at the folder even if that was done today.
_MUCH = 8
# No pipe is waited for, and no link is followed, whoever put it there.
_CAREFULLY = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_ANEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY"))

_TAG = "CACHEDIR.TAG"
_IGNORE = ".gitignore"
_TIDIED = ".tidied"
_FILES = {
    _TAG: "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of cudalint.\n",
    _IGNORE: "# Made by cudalint.\n*\n",
}
_COUNTER = itertools.count()


class _Entry(Frozen):
    """A file of the store as it lies on the disk."""

    path: str
    size: int
    used: float
    is_temporary: bool


class Store(Mutable):
    """The entries of one folder that one secret signs. ``problem`` is the first thing that went wrong, in words."""

    folder: str
    secret: bytes
    most_bytes: int = MOST_BYTES
    most_days: float = MOST_DAYS
    problem: str | None = None
    _written: int = 0
    _is_closed: bool = False
    _folders: set[str] = field(default_factory=set)

    def get(self, kind: str, key: str) -> bytes | None:
        """What was kept under a key, if it is there and signed."""
        path = self._path(kind, key)
        try:
            content = _read(path)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._note(error)
            return None
        data = content[_MAC_BYTES:]
        return data if hmac.compare_digest(content[:_MAC_BYTES], self._mac(kind, key, data)) else None

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Keep data under a key."""
        if self._is_closed:
            return
        path = self._path(kind, key)
        try:
            self._make_room(kind, path)
            _write(path, self._mac(kind, key, data) + data)
        except OSError as error:
            self._note(error)
            self._is_closed = True
            return
        self._written += _MAC_BYTES + len(data)

    def tidy(self) -> None:
        """Keep the folder within its bounds; to be called once, at the end of a run."""
        if not self._written:
            return
        stamp = os.path.join(self.folder, _TIDIED)
        is_recent = time.time() - _modified(stamp) < _DAY
        if is_recent and self._written < self.most_bytes / _MUCH:
            return
        with contextlib.suppress(OSError):
            _replace(stamp, b"")
        self._evict(time.time())

    def _path(self, kind: str, key: str) -> str:
        name = self._keyed(b"cudalint name", _NAME_BYTES, kind, key).hex()
        return os.path.join(self.folder, kind, name[:2], name[2:])

    def _mac(self, kind: str, key: str, data: bytes) -> bytes:
        return self._keyed(b"cudalint entry", _MAC_BYTES, kind, key, data)

    def _keyed(self, purpose: bytes, size: int, kind: str, key: str, data: bytes = b"") -> bytes:
        said = f"{kind}\0{key}\0".encode()
        hasher = blake2b(len(said).to_bytes(8, "little"), digest_size=size, key=self.secret, person=purpose)
        hasher.update(said)
        hasher.update(data)
        return hasher.digest()

    def _make_room(self, kind: str, path: str) -> None:
        """The folders of an entry, none of them a link to somewhere else."""
        if not self._folders:
            self._begin()
        for folder in (os.path.join(self.folder, kind), os.path.dirname(path)):
            if folder in self._folders:
                continue
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
            _demand_folder(folder)
            self._folders.add(folder)

    def _begin(self) -> None:
        os.makedirs(self.folder, exist_ok=True)
        _demand_folder(self.folder)
        if not os.listdir(self.folder):  # a folder that was there for something else is not git's to ignore
            for name, text in _FILES.items():
                _replace(os.path.join(self.folder, name), text.encode())
        self._folders.add(self.folder)

    def _note(self, error: OSError) -> None:
        self.problem = self.problem or f"the cache {self.folder} cannot be used: {error.strerror or error}"

    def _evict(self, now: float) -> None:
        kept: list[_Entry] = []
        for entry in _entries(self.folder):
            if now - entry.used > (_HOUR if entry.is_temporary else self.most_days * _DAY):
                _removed(entry.path)
            else:
                kept.append(entry)
        size = sum(entry.size for entry in kept)
        if size <= self.most_bytes:
            return
        for entry in sorted(kept, key=lambda entry: entry.used):
            if size <= self.most_bytes * _KEPT:
                return
            size -= entry.size if _removed(entry.path) else 0


def clear(folder: str) -> int:
    """Remove all entries of any secret, and the folder itself if nothing else lies in it; how many there were."""
    count = sum(_removed(entry.path) for entry in list(_entries(folder)))
    for inner in sorted(_folders(folder), key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(inner)
    if not os.path.islink(folder) and os.path.isfile(os.path.join(folder, _TAG)):
        for name in (*_FILES, _TIDIED):
            _removed(os.path.join(folder, name))
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return count


def _read(path: str) -> bytes:
    descriptor = os.open(path, _CAREFULLY)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        content = stream.read()
    if time.time() - status.st_mtime > _DAY:
        # What is in use is not the oldest; a day is near enough and costs nothing.
        with contextlib.suppress(OSError):
            os.utime(path)
    return content


def _write(path: str, content: bytes) -> None:
    temporary = f"{path}.{os.getpid()}-{next(_COUNTER)}.tmp"
    try:
        with open(os.open(temporary, _ANEW, 0o600), "wb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except OSError:
        _removed(temporary)
        raise


def _replace(path: str, content: bytes) -> None:
    """Write a file that is no entry; its name is known, so what lies there is replaced and never written through."""
    temporary = f"{path}.{os.getpid()}-{next(_COUNTER)}.tmp"
    with open(os.open(temporary, _ANEW, 0o644), "wb") as stream:
        stream.write(content)
    os.replace(temporary, path)


def _demand_folder(path: str) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(0, f"{path} is not a folder")


def _modified(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _folders(top: str) -> Iterator[str]:
    """The folders of kinds and shards."""
    for kind in _listed(top, _KIND):
        yield from _listed(kind, _SHARD)
        yield kind


def _listed(folder: str, name: re.Pattern[str]) -> list[str]:
    """The folders in a folder that are named so; links are none."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        with os.scandir(folder) as found:
            return [entry.path for entry in found if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _entries(top: str) -> Iterator[_Entry]:
    for kind in _listed(top, _KIND):
        for shard in _listed(kind, _SHARD):
            yield from _in_shard(shard)


def _in_shard(shard: str) -> Iterator[_Entry]:
    try:
        found = list(os.scandir(shard))
    except OSError:
        return
    for entry in found:
        is_temporary = _TEMPORARY.fullmatch(entry.name) is not None
        if not is_temporary and not _ENTRY.fullmatch(entry.name):
            continue
        with contextlib.suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            yield _Entry(entry.path, status.st_size, status.st_mtime, is_temporary)
