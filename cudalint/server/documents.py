"""The documents that an editor has open, as it last told of them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping

from pygls import uris

from cudalint.server.diagnostics import Opened
from cudalint.text.decode import encode

SUFFIX = ".py"


class Documents:
    """Open files by path. What is not a file yet, or no Python, is none of them."""

    def __init__(self) -> None:
        self._opened: dict[str, Opened] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened)

    def put(self, uri: str, version: int | None, text: str) -> str | None:
        """Take a text; gives its path if it is one of ours."""
        path = path_of(uri)
        if path is None or not path.endswith(SUFFIX):
            return None
        self._opened[path] = Opened(uri, version, text, _bytes(text))
        return path

    def drop(self, uri: str) -> str | None:
        """Forget a document that was closed; gives its path if it was one of ours."""
        path = path_of(uri)
        return path if path is not None and self._opened.pop(path, None) is not None else None

    def snapshot(self) -> Mapping[str, Opened]:
        """All of them as they are now."""
        return dict(self._opened)

    def text(self, path: str) -> str | None:
        """The text of a document as it is now; None where it is not open."""
        opened = self._opened.get(path)
        return None if opened is None else opened.text

    def version(self, path: str) -> int | None:
        """The version of a document as it is now; None where it is not open."""
        opened = self._opened.get(path)
        return None if opened is None else opened.version


def path_of(uri: str) -> str | None:
    """The path of a file; None for what is none."""
    return uris.to_fs_path(uri) if uri.startswith("file:") else None


def _bytes(text: str) -> bytes:
    """A text as it would be saved: in the encoding that it declares, as far as that has its characters."""
    plain = text.encode("utf-8", "surrogatepass")
    if plain.startswith(codecs.BOM_UTF8):
        return plain
    try:
        return encode(text, plain)
    except (LookupError, ValueError):
        return plain
