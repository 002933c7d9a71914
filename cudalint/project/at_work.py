"""What all that runs entries, or finds out which, is run with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from cudalint.garbage import collected_rarely
from cudalint.ir.depth import MACHINE, in_one_piece, room
from cudalint.text.quiet import quietly

_Given = ParamSpec("_Given")
_T = TypeVar("_T")


def at_work(function: Callable[_Given, _T]) -> Callable[_Given, _T]:
    """A function that runs entries: with room to recurse, garbage collected rarely, and no warnings about texts."""

    @wraps(function)
    def ready(*args: _Given.args, **kwargs: _Given.kwargs) -> _T:
        with collected_rarely(), room(MACHINE), quietly():
            return in_one_piece(partial(function, *args, **kwargs))

    return ready
