"""What stored results rest on besides the files of a run: cudalint's own code, the parser, the Python that runs it.

The code itself is hashed, not only the version, so that a checkout under development never reads what another state
of it has stored.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b

from cudalint import __version__

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_CODE = (".py", ".toml")
# Neither takes part in a check, and both are large.
_APART = frozenset({"__pycache__", "verify", "_fixtures", "_evidence"})


def digest(*parts: str | bytes) -> str:
    """One name for several things, in their order."""
    hasher = blake2b(digest_size=32)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


@cache
def analysis() -> str:
    """What the results of a check rest on."""
    return digest(__version__, _hashed(_PACKAGE), _parser(), sys.version)


@cache
def lowering() -> str:
    """What the lowered form of a file rests on, besides its text."""
    return digest(__version__, _hashed(os.path.join(_PACKAGE, "ir")), _parser(), sys.version)


def _hashed(folder: str) -> str:
    parts = [part for path in _files(folder) for part in (os.path.relpath(path, folder).encode(), _content(path))]
    # Code that cannot be read could be any: then nothing is ever found again.
    return digest(*parts or (os.urandom(32),))


def _files(folder: str) -> Iterator[str]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _APART)
        yield from (os.path.join(directory, name) for name in sorted(names) if name.endswith(_CODE))


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return os.urandom(32)


def _parser() -> str:
    """The version of libcst, told without importing it."""
    spec = importlib.util.find_spec("libcst")
    places: Iterable[str] = () if spec is None else spec.submodule_search_locations or ()
    for place in places:
        version = os.path.join(place, "_version.py")
        if os.path.isfile(version):
            return digest(_content(version))
    from importlib.metadata import version as installed

    return installed("libcst")
