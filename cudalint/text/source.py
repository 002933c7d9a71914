"""One file as the analysis receives it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A readable file: its absolute path, its text with line ends kept, and the bytes it came from."""

    path: str
    text: str
    data: bytes
