"""Whether two forms say the same, wherever in a file they stand."""

from __future__ import annotations

from cudalint.ir.bodies import Postponed
from cudalint.structs import Struct


def alike(left: object, right: object) -> bool:
    """Whether two forms are made of the same nodes with the same numbers; of bodies that wait, only which they are."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Postponed) and isinstance(right, Postponed):
        return left.outer == right.outer
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, Struct):
        return all(alike(getattr(left, name), getattr(right, name)) for name in left.__struct_fields__)
    # Zeros of either sign are equal, and what is no number is not.
    return repr(left) == repr(right) if isinstance(left, float | complex) else left == right
