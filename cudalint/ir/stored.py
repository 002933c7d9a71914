"""Lowered files and places kept between runs, because parsing costs more than all else that is done to a file.

They are kept by the text alone, not by where the file lies. Modules are pickled, with a table of how each node is
made; reading admits the nodes, and the two constants that pickle writes as names, and nothing else. That is a second
lock: the store has already refused what this user's cudalint did not write. Syntax errors are kept as well.
"""

from __future__ import annotations

import builtins
import dataclasses
import io
import marshal
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

import libcst

from cudalint import fingerprint
from cudalint.finding import Position, Span
from cudalint.ir import nodes as ir
from cudalint.ir.lower import lower
from cudalint.ir.positions import spans
from cudalint.store import Store

_MODULES, _PLACES = "modules", "places"
_PROTOCOL = 5


@dataclass(frozen=True, slots=True)
class Unparsable:
    """Why the parser refuses a text, and where: row and column, both 1-based."""

    reason: str
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Form:
    """A module, or why there is none; whether the parser was asked."""

    module: ir.Module | Unparsable
    is_fresh: bool


def lowered(text: str, filename: str, name: str, store: Store | None = None) -> Form:
    """The lowered form of a file; raises ``RecursionError`` for code that is nested too deeply."""
    key = "" if store is None else _key(text)
    kept = None if store is None else store.get(_MODULES, key)
    found = None if kept is None else decoded(kept)
    if isinstance(found, ir.Module):
        return Form(dataclasses.replace(found, filename=filename, name=name), is_fresh=False)
    if found is not None:
        return Form(found, is_fresh=False)
    made = _made(text, filename, name)
    data = None if store is None else encoded(made)
    if store is not None and data is not None:
        store.put(_MODULES, key, data)
    return Form(made, is_fresh=True)


def placed(text: str, filename: str, name: str, ordinals: Iterable[int], store: Store | None = None) -> dict[int, Span]:
    """The span of each ordinal asked for; those asked for before are remembered."""
    wanted = set(ordinals)
    if store is None:
        return spans(text, filename, name, wanted)
    key = _key(text)
    known = _places(store.get(_PLACES, key))
    if not wanted <= known.keys():
        found = spans(text, filename, name, wanted)
        known = {**known, **{ordinal: _numbers(found.get(ordinal)) for ordinal in wanted}}
        store.put(_PLACES, key, marshal.dumps(known))
    return {ordinal: _span(filename, known[ordinal]) for ordinal in wanted if known[ordinal]}


def encoded(found: ir.Module | Unparsable) -> bytes | None:
    """A form as bytes; None where it is nested more deeply than pickle follows."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, _PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    try:
        pickler.dump(found)
    except RecursionError:
        return None
    return stream.getvalue()


def decoded(data: bytes) -> ir.Module | Unparsable | None:
    """A form from bytes that are known to be ours; None where they hold anything else."""
    try:
        found: object = _Unpickler(io.BytesIO(data)).load()
    except Exception:  # pickle promises no closed set of what bytes can raise
        return None
    return found if isinstance(found, ir.Module | Unparsable) else None


def _made(text: str, filename: str, name: str) -> ir.Module | Unparsable:
    try:
        return lower(text, filename, name)
    except libcst.ParserSyntaxError as error:
        return Unparsable(error.message, error.raw_line, error.raw_column + 1)


def _key(text: str) -> str:
    return fingerprint.digest(fingerprint.lowering(), text)


_Place: TypeAlias = tuple[int, int, int, int]


def _places(data: bytes | None) -> dict[int, _Place | None]:
    return {} if data is None else dict(marshal.loads(data))


def _numbers(span: Span | None) -> _Place | None:
    return None if span is None else (span.start.row, span.start.column, span.end.row, span.end.column)


def _span(filename: str, place: _Place | None) -> Span:
    assert place is not None
    row, column, last_row, last_column = place
    return Span(filename, Position(row, column), Position(last_row, last_column))


_Reducer: TypeAlias = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


def _reducer(kind: type) -> _Reducer:
    """How pickle writes a node: the class and its fields, which is a third of what the default costs to read."""
    names = [part.name for part in dataclasses.fields(kind)]
    if len(names) == 1:
        return lambda node: (kind, (getattr(node, names[0]),))
    fields = attrgetter(*names)
    return lambda node: (kind, fields(node))


_CLASSES: tuple[type, ...] = (
    Unparsable,
    *(kind for kind in vars(ir).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)),
)
_REDUCERS: Mapping[type, _Reducer] = {kind: _reducer(kind) for kind in _CLASSES}
_ADMITTED: Mapping[tuple[str, str], object] = {
    **{(kind.__module__, kind.__qualname__): kind for kind in (*_CLASSES, ir.ParamKind)},
    ("builtins", "complex"): builtins.complex,
    ("builtins", "Ellipsis"): builtins.Ellipsis,
}


class _Unpickler(pickle.Unpickler):
    """Makes nodes and nothing else."""

    def find_class(self, module: str, name: str, /) -> Any:
        found = _ADMITTED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no node")
        return found
