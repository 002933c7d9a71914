"""One file as the analysis receives it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell of a notebook: its 1-based number and the first row of the program it fills."""

    number: int
    first_row: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A readable file: its absolute path, its text with line ends kept, and the bytes it came from."""

    path: str
    text: str
    data: bytes
    cells: tuple[Cell, ...] = ()
