"""Nodes as bytes and back. Reading admits nodes, and the two constants that pickle writes as names, and nothing else.

That is a second lock: the store has already refused what this user's cudalint did not write.
"""

from __future__ import annotations

import builtins
import io
import pickle
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from cudalint.ir import nodes as ir
from cudalint.structs import StructMeta

_PROTOCOL = 5
_Reducer: TypeAlias = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


def _reducer(kind: StructMeta) -> _Reducer:
    """How pickle writes a node: the class and its fields, which is a third of what the default costs to read."""
    names = kind.__struct_fields__
    if len(names) == 1:
        return lambda node: (kind, (getattr(node, names[0]),))
    fields = attrgetter(*names)
    return lambda node: (kind, fields(node))


_CLASSES: tuple[StructMeta, ...] = tuple(
    kind for kind in vars(ir).values() if isinstance(kind, StructMeta) and kind.__module__ == ir.__name__
)
_REDUCERS: Mapping[type, _Reducer] = {kind: _reducer(kind) for kind in _CLASSES}
_ADMITTED: Mapping[tuple[str, str], object] = {
    **{(kind.__module__, kind.__qualname__): kind for kind in (*_CLASSES, ir.ParamKind)},
    ("builtins", "complex"): builtins.complex,
    ("builtins", "Ellipsis"): builtins.Ellipsis,
}


def encoded(found: ir.Module | ir.Code, reducers: Mapping[type, _Reducer] | None = None) -> bytes | None:
    """A form as bytes; None where it is nested more deeply than pickle follows.

    ``reducers`` say how to write what is no node.
    """
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, _PROTOCOL)
    pickler.dispatch_table = {**_REDUCERS, **(reducers or {})}
    try:
        pickler.dump(found)
    except RecursionError:
        return None
    return stream.getvalue()


def decoded(data: bytes, makers: Mapping[tuple[str, str], object] | None = None) -> ir.Module | ir.Code | None:
    """A form from bytes that are known to be ours; None where they hold anything else.

    ``makers`` are called for what is no node, by the module and the name of its class.
    """
    try:
        found: object = _Unpickler(io.BytesIO(data), makers or {}).load()
    except Exception:  # pickle promises no closed set of what bytes can raise
        return None
    return found if isinstance(found, ir.Module | ir.Code) else None


class _Unpickler(pickle.Unpickler):
    """Makes nodes and nothing else."""

    def __init__(self, stream: io.BytesIO, makers: Mapping[tuple[str, str], object]) -> None:
        super().__init__(stream)
        self._makers = makers

    def find_class(self, module: str, name: str, /) -> Any:
        found = _ADMITTED.get((module, name), self._makers.get((module, name)))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no node")
        return found
