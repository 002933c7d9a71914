"""Shapes in three sizes, each twice as large as the one before, in folders of their own."""

from __future__ import annotations

from fuzz.case import Case
from fuzz.inputs.hostile import GROWING, Shape

SIZES = (12, 30, 8, 75)
SHAPES = len(GROWING)


def draw(seed: int) -> Case:
    """A shape from some size on: with each round of all shapes another one."""
    return of(GROWING[seed % SHAPES], SIZES[seed // SHAPES % len(SIZES)])


def of(shape: Shape, size: int) -> Case:
    """A shape in a size, twice and four times that."""
    files = {f"{times}/{name}": text for times in (1, 2, 4) for name, text in shape(size * times).items()}
    return Case(f"{shape.__name__}({size})", {name: text.encode() for name, text in files.items()})
