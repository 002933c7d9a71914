"""Lowered files and places kept between runs, because parsing costs more than all else that is done to a file.

They are kept by the text alone, not by where the file lies: the outline of a file, and the bodies that were asked for.
Syntax errors are kept as well.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any, TypeAlias

import libcst

from cudalint import fingerprint
from cudalint.finding import Position, Span
from cudalint.ir import nodes as ir
from cudalint.ir.bodies import Bodies, Postponed
from cudalint.ir.lower import Lowering, lower
from cudalint.ir.outline import Outline, Piece, outline, rows_of
from cudalint.ir.parsing import parse
from cudalint.ir.pickled import decoded, encoded
from cudalint.ir.positions import spans
from cudalint.ir.trouble import trouble
from cudalint.ir.units import Outer
from cudalint.store import Store
from cudalint.structs import Frozen, astuple, replace
from cudalint.text.guard import refuse

_MODULES, _PLACES = "modules", "places"


class Unparsable(Frozen):
    """Why the parser refuses a text, and where: row and column, both 1-based; 0 where it is not given to the parser."""

    reason: str
    row: int
    column: int


class Form(Frozen):
    """A module, or why there is none; whether the parser was asked for it.

    ``bodies`` are those that wait in it; None where it was lowered whole.
    """

    module: ir.Module | Unparsable
    is_fresh: bool
    bodies: Bodies | None = None


def lowered(text: str, filename: str, name: str, store: Store | None = None) -> Form:
    """The lowered form of a file; raises ``RecursionError`` for code that is nested too deeply."""
    kept = None if store is None else store.get(_MODULES, form_key(text))
    found = None if kept is None else _read(kept, text, filename, name)
    return _made(text, filename, name) if found is None else found


def kept_form(key: str, filename: str, name: str, store: Store) -> Form | None:
    """What is kept of a text that is no more, by the key of its form; its bodies are only those that were lowered."""
    kept = store.get(_MODULES, key)
    return None if kept is None else _read(kept, "", filename, name)


def keep(form: Form, text: str, store: Store) -> None:
    """Keep a form as far as it is lowered, where it is more than is kept already."""
    if not form.is_fresh and (form.bodies is None or not form.bodies.fresh):
        return
    data = _written(form)
    if data is not None:
        store.put(_MODULES, form_key(text), data)


def _made(text: str, filename: str, name: str) -> Form:
    refusal = refuse(text)
    if refusal is not None:
        return Form(Unparsable(refusal.reason, 0, 0), is_fresh=True)
    return _outlined(text, filename, name) or Form(whole(text, filename, name), is_fresh=True)


def whole(text: str, filename: str, name: str) -> ir.Module | Unparsable:
    """A file with all its bodies, or why there is none; raises ``RecursionError``."""
    try:
        return lower(text, filename, name)
    except libcst.ParserSyntaxError as error:
        found = trouble(text, error.message, error.raw_line, error.raw_column + 1)
        return Unparsable(found.reason, found.row, found.column)


def _outlined(text: str, filename: str, name: str) -> Form | None:
    """A file without the bodies of its functions; None where the two parsers disagree about where these are."""
    found = outline(text)
    if found is None:
        return None
    bodies = Bodies(filename, name, found)
    lowering = Lowering(filename, name, postponed=bodies.postponed)
    try:
        module = lowering.module(parse(found.text))
    except libcst.ParserSyntaxError:
        return None
    return Form(module, is_fresh=True, bodies=bodies) if lowering.outermost == len(found.pieces) else None


def _written(form: Form) -> bytes | None:
    """A form as bytes; None where it is nested more deeply than pickle follows."""
    if isinstance(form.module, Unparsable):
        return marshal.dumps(("unparsable", *astuple(form.module)))
    data = encoded(form.module, {Postponed: _as_outer})
    if data is None:
        return None
    if form.bodies is None:
        return marshal.dumps(("whole", data))
    pieces = [astuple(piece) for piece in form.bodies.outline.pieces]
    return marshal.dumps(("outline", data, pieces, form.bodies.encoded()))


def _as_outer(body: Postponed) -> tuple[type[Postponed], tuple[int, str, tuple[str, ...]]]:
    return Postponed, (body.outer.number, body.outer.qualname, body.outer.params)


def _read(data: bytes, text: str, filename: str, name: str) -> Form | None:
    """A form from bytes; None where they are none."""
    try:
        found: tuple[Any, ...] = marshal.loads(data)
    except (EOFError, ValueError, TypeError):
        return None
    match found:
        case ("unparsable", str(reason), int(row), int(column)):
            return Form(Unparsable(reason, row, column), is_fresh=False)
        case ("whole", bytes(module)):
            return _named(decoded(module), filename, name, None)
        case ("outline", bytes(module), list(pieces), dict(bodies)):
            shape = Outline(rows_of(text), tuple(Piece(*piece) for piece in pieces))
            waiting = Bodies(filename, name, shape, bodies)
            makers = {(Postponed.__module__, Postponed.__qualname__): lambda *args: waiting.postponed(Outer(*args))}
            return _named(decoded(module, makers), filename, name, waiting)
    return None


def _named(found: object, filename: str, name: str, bodies: Bodies | None) -> Form | None:
    if not isinstance(found, ir.Module):
        return None
    return Form(replace(found, filename=filename, name=name), is_fresh=False, bodies=bodies)


def placed(text: str, filename: str, name: str, ordinals: Iterable[int], store: Store | None = None) -> dict[int, Span]:
    """The span of each ordinal asked for; those asked for before are remembered."""
    wanted = set(ordinals)
    if store is None:
        return spans(text, filename, name, wanted)
    key = form_key(text)
    known = _places(store.get(_PLACES, key))
    if not wanted <= known.keys():
        found = spans(text, filename, name, wanted)
        known = {**known, **{ordinal: _numbers(found.get(ordinal)) for ordinal in wanted}}
        store.put(_PLACES, key, marshal.dumps(known))
    return {ordinal: _span(filename, known[ordinal]) for ordinal in wanted if known[ordinal]}


def form_key(text: str) -> str:
    """What the form and the places of a text are kept by."""
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
