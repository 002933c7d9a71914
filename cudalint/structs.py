"""The classes that everything immutable, and every piece of state, is made of.

They are structs of msgspec: one is made, compared and hashed in C, and the class itself costs a fiftieth of what a
dataclass costs to build, which each start of the program pays four hundred times.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, StructMeta

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import replace

    from typing_extensions import dataclass_transform

    def field(*, default_factory: Callable[[], Any]) -> Any:
        """What a field is where none is given, made anew for each instance."""

    def asdict(it: object) -> dict[str, Any]:
        """The fields by their names."""

    def astuple(it: object) -> tuple[Any, ...]:
        """The fields in their order."""

    def force_setattr(it: object, name: str, value: object) -> None:
        """Set a field of what is immutable to all others."""

    @dataclass_transform(field_specifiers=(field,), frozen_default=True)
    class _Frozen(StructMeta): ...

    @dataclass_transform(field_specifiers=(field,), frozen_default=True, order_default=True)
    class _Ordered(StructMeta): ...

    @dataclass_transform(field_specifiers=(field,))
    class _Mutable(StructMeta): ...

    class Frozen(metaclass=_Frozen):
        """A value: immutable, equal to what has the same fields."""

    class Partly(metaclass=_Frozen):
        """A value of which not all fields count when it is compared: what ``compared`` gives does."""

        def compared(self) -> Hashable:
            """What tells it from others of its class."""

    class Ordered(metaclass=_Ordered):
        """A value that sorts by its fields, from the first one on."""

    class Unique(metaclass=_Frozen):
        """Immutable, and equal to itself alone."""

    class Mutable(metaclass=_Mutable):
        """State: it changes, and equals what has the same fields."""

    class MutableUnique(metaclass=_Mutable):
        """State that equals itself alone."""

else:
    from msgspec import field
    from msgspec.structs import asdict, astuple, force_setattr, replace

    class Frozen(Struct, frozen=True):
        """A value: immutable, equal to what has the same fields."""

    class Partly(Struct, frozen=True, eq=False):
        """A value of which not all fields count when it is compared: what ``compared`` gives does."""

        def compared(self):
            """What tells it from others of its class."""
            raise NotImplementedError

        def __eq__(self, other):
            return self is other or (type(other) is type(self) and self.compared() == other.compared())

        def __ne__(self, other):
            return not self == other

        def __hash__(self):
            return hash(self.compared())

    class Ordered(Struct, frozen=True, order=True):
        """A value that sorts by its fields, from the first one on."""

    class Unique(Struct, frozen=True, eq=False):
        """Immutable, and equal to itself alone."""

    class Mutable(Struct):
        """State: it changes, and equals what has the same fields."""

    class MutableUnique(Struct, eq=False):
        """State that equals itself alone."""


__all__ = [
    "Frozen",
    "Mutable",
    "MutableUnique",
    "Ordered",
    "Partly",
    "Struct",
    "StructMeta",
    "Unique",
    "asdict",
    "astuple",
    "field",
    "force_setattr",
    "replace",
]
