"""Notebooks as programs: the code cells of an .ipynb file in their order, and the way back into its JSON.

The text of the file is never written anew. It is walked once with the standard library's decoder, which says where each
value ends, so that an edit changes the strings of the rows that it is about and nothing else.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from cudalint.finding import Edit
from cudalint.structs import Frozen, replace
from cudalint.text.decode import Refusal, searched
from cudalint.text.lines import ROW_END, Rows
from cudalint.text.magics import Shape, program_of, shape
from cudalint.text.source import Cells, SourceFile

SUFFIX = ".ipynb"
_BLANKS = re.compile(r"[ \t\n\r]*")
# Half of a character beyond the first plane, which JSON can hold and no file of Python can.
_HALF = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()
# One character of a string as it stands in JSON.
_CHARACTER = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}|\\.|[^\\]", re.DOTALL)
_OLDEST_FORMAT = 4
_CELL_MAGIC = re.compile(r"\s*%%[^\r\n]*(?:\r\n|\r|\n)")


class Piece(Frozen):
    """A string of the JSON: what it says, where it stands, quotes included, and on which row."""

    value: str
    start: int
    end: int
    row: int


class Cell(Frozen):
    """A cell of code. ``number`` counts all cells from 1; ``start`` and ``end`` bound its source in the JSON.

    ``count`` says as which one of its kernel it was last run; None where it was not.
    """

    number: int
    pieces: tuple[Piece, ...]
    start: int
    end: int
    is_list: bool
    count: int | None = None

    @property
    def text(self) -> str:
        """The source of the cell."""
        return "".join(piece.value for piece in self.pieces)


class Notebook(Frozen):
    """A notebook: its JSON, its cells of code, and their language in small letters."""

    path: str
    json: str
    cells: tuple[Cell, ...]
    language: str = "python"

    def sources(self) -> tuple[SourceFile, ...]:
        """The program, and the modules that its cells write beside it."""
        shapes = [(cell, shape(cell.text)) for cell in self.cells]
        own = [(cell, found) for cell, found in shapes if found.writes is None and not found.is_skipped]
        return (self._source(self.path, own), *self._modules(shapes))

    def source(self, path: str) -> SourceFile | None:
        """The program of this path."""
        return next((source for source in self.sources() if source.path == path), None)

    def _modules(self, shapes: Iterable[tuple[Cell, Shape]]) -> Iterator[SourceFile]:
        written: dict[str, list[tuple[Cell, Shape]]] = {}
        for cell, found in shapes:
            if found.writes is None:
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(self.path), found.writes))
            written[path] = [*(written.get(path, ()) if found.appends else ()), (cell, found)]
        for path, parts in written.items():
            yield self._source(path, parts)

    def _source(self, path: str, parts: Sequence[tuple[Cell, Shape]]) -> SourceFile:
        program: list[str] = []
        shown: list[str] = []
        rows: list[tuple[int, int]] = []
        replaced: set[int] = set()
        in_json: list[int] = []
        for cell, found in parts:
            text = _ended(cell.text)
            originals = with_ends(text)[found.first :]
            lowered = originals if found.writes is not None else with_ends(program_of(text))[found.first :]
            replaced.update(
                len(rows) + i + 1 for i, pair in enumerate(zip(originals, lowered, strict=True)) if pair[0] != pair[1]
            )
            rows.extend((cell.number, found.first + i + 1) for i in range(len(originals)))
            in_json.extend(_json_rows(cell)[found.first : found.first + len(originals)])
            program.extend(lowered)
            shown.extend(originals)
        text = "".join(program)
        late = _late([cell for cell, found in parts if found.writes is None])
        cells = Cells(self.path, tuple(rows), "".join(shown), frozenset(replaced), tuple(in_json), late)
        return SourceFile(path, text, searched(text.encode("utf-8", "surrogatepass")), cells)

    def changed(self, source: SourceFile, edits: Iterable[Edit]) -> str:
        """The JSON with edits of one of its programs in it; raises ``ValueError`` for edits that no cell can take."""
        cells = source.cells
        assert cells is not None
        by_number = {cell.number: cell for cell in self.cells}
        wanted: dict[int, list[tuple[int, int, str]]] = {}
        for edit in edits:
            number, start, end = _within(cells, by_number, edit)
            wanted.setdefault(number, []).append((start, end, edit.content))
        text = self.json
        for number in sorted(wanted, reverse=True):
            cell = by_number[number]
            text = (
                text[: cell.start] + _rewritten(self.json, cell, _applied(cell.text, wanted[number])) + text[cell.end :]
            )
        return text


def _late(cells: Sequence[Cell]) -> tuple[int, ...]:
    """The numbers of cells that were last run after one below them, the one that was run last at the end."""
    late: list[tuple[int, int]] = []
    first_below: int | None = None
    for cell in reversed(cells):
        if cell.count is None:
            continue
        if first_below is not None and first_below < cell.count:
            late.append((cell.count, cell.number))
        first_below = cell.count if first_below is None else min(first_below, cell.count)
    return tuple(number for _, number in sorted(late))


def read(path: str, data: bytes) -> Notebook | Refusal:
    """A notebook from its bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Refusal(f"byte {error.start + 1} is not valid utf-8")
    try:
        document = json.loads(text.removeprefix("\ufeff"))
        cells = _Walk(text).notebook()
    except json.JSONDecodeError as error:
        return Refusal(f"it is no notebook: not valid JSON: {error.msg} at line {error.lineno} column {error.colno}")
    except (ValueError, RecursionError):  # numbers without end, lists without bottom
        return Refusal("it is no notebook: its JSON is nested too deeply or holds a number that is too long")
    if isinstance(cells, Refusal):
        return cells
    if not isinstance(document, dict) or not isinstance(document.get("cells", []), list):
        return Refusal("it is no notebook: it holds no cells")
    version = document.get("nbformat")
    if "cells" not in document or (isinstance(version, int) and version < _OLDEST_FORMAT):
        newer = "jupyter nbconvert --to notebook makes a newer one"
        return Refusal(f"notebooks before format {_OLDEST_FORMAT} are not read: {newer}")
    return Notebook(path, text, cells, _language(document.get("metadata")))


def _language(metadata: object) -> str:
    """The language of the cells, in small letters; python where nothing is said."""
    for key, inner in (("kernelspec", "language"), ("language_info", "name")):
        table = metadata.get(key) if isinstance(metadata, dict) else None
        name = table.get(inner) if isinstance(table, dict) else None
        if isinstance(name, str):
            return name.lower()
    return "python"


def _is_of_another_language(metadata: object) -> bool:
    """Whether an editor was told that a cell is not in the language of the kernel, which then does not run it."""
    told = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = told.get("languageId") if isinstance(told, dict) else None
    return isinstance(language, str) and language.lower() != "python"


# -- the JSON ----------------------------------------------------------------------------------------------


class _Walk:
    """A walk through a text that is valid JSON, which remembers where values stand. Each is decoded once."""

    __slots__ = ("_at", "_counted", "_row", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0
        # The row of the character up to which rows were counted.
        self._counted, self._row = 0, 1
        self._pass_blanks()

    def notebook(self) -> tuple[Cell, ...] | Refusal:
        """The cells of code; of two lists of cells the last counts, as JSON has it."""
        found: list[Cell | Refusal | None] = []
        for name in self._members():
            if name == "cells":
                found = [self._cell(number) for number, _ in enumerate(self._items(), 1)]
        refused = next((cell for cell in found if isinstance(cell, Refusal)), None)
        return refused or tuple(cell for cell in found if isinstance(cell, Cell))

    def _cell(self, number: int) -> Cell | Refusal | None:
        kind: object = None
        count: object = None
        metadata: object = None
        source: Cell | Refusal | None = None
        for name in self._members():
            if name == "cell_type":
                kind = self._value()
            elif name == "execution_count":
                count = self._value()
            elif name == "metadata":
                metadata = self._value()
            elif name == "source":
                source = self._source(number)
        if kind != "code" or source is None or _is_of_another_language(metadata):
            return None
        return replace(source, count=count) if isinstance(source, Cell) and isinstance(count, int) else source

    def _source(self, number: int) -> Cell | Refusal:
        """The source of a cell, or why no program can be made of it."""
        start, is_list = self._at, self._text[self._at] == "["
        pieces = [self._piece() for _ in self._items()] if is_list else [self._piece()]
        half = next((found for piece in pieces if piece and (found := _HALF.search(piece.value))), None)
        if half is not None:
            return Refusal(
                f"cell {number} holds half of a character (\\u{ord(half[0]):04x}), which Python refuses to run"
            )
        whole = tuple(piece for piece in pieces if piece is not None)
        if len(whole) < len(pieces):
            return Refusal(f"it is no notebook: the source of cell {number} is no text")
        return Cell(number, whole, start, self._at, is_list)

    def _piece(self) -> Piece | None:
        start = self._at
        value = self._value()
        if not isinstance(value, str):
            return None
        self._row += self._text.count("\n", self._counted, start)
        self._counted = start
        return Piece(value, start, self._at, self._row)

    def _members(self) -> Iterator[str]:
        """The names of an object, each with the walk at its value; nothing of what is no object."""
        if self._text[self._at] != "{":
            return
        self._step()
        while self._text[self._at] != "}":
            name = self._value()
            self._pass_blanks()
            self._step()  # the colon
            start = self._at
            yield str(name)
            self._leave(start)
        self._at += 1

    def _items(self) -> Iterator[None]:
        """The items of a list, each with the walk at it; nothing of what is no list."""
        if self._text[self._at] != "[":
            return
        self._step()
        while self._text[self._at] != "]":
            start = self._at
            yield
            self._leave(start)
        self._at += 1

    def _leave(self, start: int) -> None:
        """Go on behind a value that began at ``start``, whether or not it was walked through."""
        if self._at == start:
            self._value()
        self._pass_blanks()
        if self._text[self._at] == ",":
            self._step()

    def _value(self) -> object:
        value: object
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value

    def _step(self) -> None:
        self._at += 1
        self._pass_blanks()

    def _pass_blanks(self) -> None:
        found = _BLANKS.match(self._text, self._at)
        self._at = self._at if found is None else found.end()


# -- rows --------------------------------------------------------------------------------------------------


def _ended(text: str) -> str:
    """A cell ends with its last row, also where no character says so."""
    return text if not text or text.endswith(("\n", "\r")) else f"{text}\n"


def with_ends(text: str) -> list[str]:
    """The rows of a text whose last one is ended, with their ends."""
    ends = [match.end() for match in ROW_END.finditer(text)]
    starts = [0, *ends]
    return [text[start:end] for start, end in zip(starts, ends, strict=False)]


def _json_rows(cell: Cell) -> list[int]:
    """The row of the JSON on which each row of a cell begins."""
    begins = list(accumulate((len(piece.value) for piece in cell.pieces), initial=0))
    rows = (0, *(match.end() for match in ROW_END.finditer(cell.text)))
    at = (min(bisect_right(begins, row) - 1, len(cell.pieces) - 1) for row in rows)
    return [cell.pieces[piece].row for piece in at] if cell.pieces else []


# -- edits -------------------------------------------------------------------------------------------------


def _within(cells: Cells, by_number: Mapping[int, Cell], edit: Edit) -> tuple[int, int, int]:
    """The cell of an edit, and the characters of the cell that it replaces."""
    first, last = edit.span.start, edit.span.end
    if not cells.rows:
        raise ValueError("there is no cell")
    number, row = cells.place(first.row)
    touched = range(first.row, last.row + (last.column > 1 or last.row == first.row))
    if not cells.replaced.isdisjoint(touched) and (first, last.column) != (last, 1):
        raise ValueError("the edit is about what is no Python")
    text = _ended(by_number[number].text)
    rows = Rows(text)
    if last.row > len(cells.rows):
        end_number, end_row = cells.rows[-1][0], cells.rows[-1][1] + 1
    else:
        end_number, end_row = cells.place(last.row)
    start = rows.offset(row, first.column)
    magic = _CELL_MAGIC.match(text)
    if magic is not None and first == last and start < magic.end():
        # What says how a cell runs stays its first line.
        return number, magic.end(), magic.end()
    if end_number == number:
        return number, start, rows.offset(end_row, last.column)
    if last.column == 1 and cells.place(last.row - 1)[0] == number:
        return number, start, len(text)
    raise ValueError("the edit is about several cells")


def _applied(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    ended = _ended(text)
    parts: list[str] = []
    at = 0
    for start, end, content in sorted(edits, key=lambda edit: edit[:2]):
        if start < at:
            raise ValueError("two edits overlap")
        parts += (ended[at:start], content)
        at = end
    made = "".join([*parts, ended[at:]])
    if len(ended) > len(text) and made.endswith("\n"):
        made = made[:-1]
    return made


def _rewritten(text: str, cell: Cell, after: str) -> str:
    """The source of a cell in JSON with another text: strings that stay keep every character around them too."""
    spelled = text.removeprefix("\ufeff")
    plain = not spelled.isascii() or "\\u" not in spelled
    if not cell.is_list:
        return _respelled(text[cell.start : cell.end], after, plain)
    pieces = cell.pieces
    values = [piece.value for piece in pieces]
    head = _shared(values, after)
    while head and not values[head - 1].endswith("\n") and len("".join(values[:head])) < len(after):
        head -= 1  # a row that goes on is one string
    rest = after[sum(map(len, values[:head])) :]
    tail = _shared([value[::-1] for value in reversed(values[head:])], rest[::-1])
    middle = pieces[head : len(pieces) - tail]
    changed = _keeping_ends(rest[: len(rest) - sum(len(piece.value) for piece in pieces[len(pieces) - tail :])])
    items = _spelled(text, middle, changed, plain)
    if not pieces:
        return f"[{', '.join(items)}]"
    begin, end = text[cell.start + 1 : pieces[0].start], text[pieces[-1].end : cell.end - 1]
    between = [text[one.end : next_.start] for one, next_ in pairwise(pieces)]
    usual = between[0] if between else f",{begin or ' '}"
    between.append(usual)
    parts: list[str] = []
    for i in range(head):
        parts += (_raw(text, pieces[i]), between[i])
    for i, item in enumerate(items, head):
        parts += (item, between[i] if len(items) == len(middle) else usual)
    for i in range(len(pieces) - tail, len(pieces)):
        parts += (_raw(text, pieces[i]), between[i])
    return f"[{begin}{''.join(parts[:-1])}{end}]"


def _raw(text: str, piece: Piece) -> str:
    return text[piece.start : piece.end]


def _spelled(text: str, before: Sequence[Piece], after: Sequence[str], plain: bool) -> list[str]:
    """Strings in JSON: one that stands for another is spelled as that was, as far as they agree."""
    if len(before) == len(after):
        return [_respelled(_raw(text, one), new, plain) for one, new in zip(before, after, strict=True)]
    known = {piece.value: _raw(text, piece) for piece in before}
    return [known.get(value) or json.dumps(value, ensure_ascii=not plain) for value in after]


def _shared(values: Sequence[str], after: str) -> int:
    """How many strings a text begins with."""
    at = 0
    for count, value in enumerate(values):
        if not after.startswith(value, at):
            return count
        at += len(value)
    return len(values)


def _keeping_ends(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _respelled(spelled: str, after: str, plain: bool) -> str:
    """A string in JSON that says something else, spelled as it was wherever it says the same."""
    tokens = _CHARACTER.findall(spelled[1:-1])
    values = [json.loads(f'"{token}"') if token.startswith("\\") else token for token in tokens]
    shared = min(len(values), len(after))
    head = next((i for i in range(shared) if values[i] != after[i]), shared)
    tail = next((i for i in range(shared - head) if values[-1 - i] != after[-1 - i]), shared - head)
    middle = json.dumps(after[head : len(after) - tail], ensure_ascii=not plain)[1:-1]
    return f'"{"".join(tokens[:head])}{middle}{"".join(tokens[len(tokens) - tail :])}"'
