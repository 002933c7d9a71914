"""What marks a class as a room of the interpreter: a mixin that is a part of one ``Machine``.

A class that mypyc compiles derives from one class, and from traits besides. It knows a trait by this decorator, which
does nothing when Python runs it, so that an installed cudalint does not need the package that it comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import trait as room
else:
    _Class = TypeVar("_Class", bound=type)

    def room(cls: _Class) -> _Class:
        """Mark a class as a room."""
        return cls


__all__ = ["room"]
