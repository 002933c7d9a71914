"""Bytes to text as Python itself reads a source file: byte order mark, PEP 263 cookie, UTF-8."""

from __future__ import annotations

import codecs
import re

from cudalint.structs import Frozen
from cudalint.text.source import SourceFile

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")


class Refusal(Frozen):
    """Why a file is not analysed, in words that complete ``cannot analyse this file: ...``."""

    reason: str


def encode(text: str, before: bytes) -> bytes:
    """A changed text in the encoding and with the byte order mark of the file; raises ``UnicodeEncodeError``."""
    if before.startswith(codecs.BOM_UTF8):
        return text.encode("utf-8-sig")
    return text.encode(_cookie(before) or "utf-8")


def decode(path: str, data: bytes) -> SourceFile | Refusal:
    """Read ``data`` as a Python source file."""
    if b"\0" in data:
        return Refusal("it holds null bytes, so it is not Python source in an encoding that Python accepts")
    marked = data.startswith(codecs.BOM_UTF8)
    cookie = _cookie(data)
    if marked and cookie is not None and not _is_utf8(cookie):
        return Refusal(f"it starts with a UTF-8 byte order mark but declares the encoding {cookie!r}")
    encoding = "utf-8-sig" if marked else cookie or "utf-8"
    try:
        text = data.decode(encoding)
        if cookie is not None:
            text.encode()  # some codecs make halves of characters, which Python refuses
        return SourceFile(path, text, searched(data))
    except LookupError:
        return Refusal(f"it declares the unknown encoding {encoding!r}")
    except UnicodeEncodeError as error:
        return Refusal(f"character {error.start + 1} is half a character")
    except UnicodeDecodeError as error:
        return Refusal(f"byte {error.start + 1} is not valid {error.encoding}")
    except ValueError:  # codecs such as idna and undefined raise the plain kind
        return Refusal(f"it cannot be decoded as {encoding!r}")


def searched(data: bytes) -> bytes:
    """Bytes as they are searched: the first row begins where its text does, and each row ends as most do.

    A form feed is a row's end here, because what stands behind one may be the first of its row.
    """
    found = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in found:
        found = found.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return found.replace(b"\f", b"\n") if b"\f" in found else found


def _cookie(data: bytes) -> str | None:
    """The encoding declared in the first two lines; the second counts only below a blank or a comment."""
    first, second, *_ = (*data[:1024].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", 2), b"", b"")
    match = _COOKIE.match(first.removeprefix(codecs.BOM_UTF8))
    if match is None and _BLANK.match(first):
        match = _COOKIE.match(second)
    return None if match is None else match.group(1).decode("ascii", "replace")


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}
    except LookupError:
        return False
