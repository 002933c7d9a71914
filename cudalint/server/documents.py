"""The documents that an editor has open, as it last told of them."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from lsprotocol import types
from pygls import uris

from cudalint.server.diagnostics import Opened, Part
from cudalint.server.positions import changed
from cudalint.text.decode import encode

_SUFFIXES, _NOTEBOOK = (".py", ".pyw"), ".ipynb"
_LANGUAGE = "python"
# What editors call documents that were never saved.
_DRAFTS = "untitled"


class Documents:
    """Open files by path: what the editor says is Python, whatever its name.

    A notebook is one of them, and its cells are parts of it that have names of their own. What was never saved has a
    name that only the editor knows, and a path in ``base``, where it could be saved.
    """

    def __init__(self, base: Callable[[], str] = os.getcwd) -> None:
        self._base = base
        self._opened: dict[str, Opened] = {}
        self._homes: dict[str, str] = {}
        self._cells: dict[str, types.TextDocumentItem] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened)

    def open(self, document: types.TextDocumentItem) -> str | None:
        """Take a document that was opened; gives its path if it is one of ours."""
        path = path_of(document.uri) or self._draft(document.uri)
        if path is None or document.language_id != _LANGUAGE or path.endswith(_NOTEBOOK):
            return None
        if not path.endswith(_SUFFIXES) and not os.path.exists(path):
            return None
        self._homes[document.uri] = path
        return self.put(document.uri, document.version, document.text)

    def put(self, uri: str, version: int | None, text: str) -> str | None:
        """Take another text of a document; gives its path if it is one of ours."""
        path = self._homes.get(uri)
        if path is not None:
            self._opened[path] = Opened((Part(uri, version, text),), _bytes(text))
        return path

    def drop(self, uri: str) -> str | None:
        """Forget a document or a notebook that was closed; gives its path if it was one of ours."""
        path = self.home(uri)
        opened = None if path is None else self._opened.pop(path, None)
        if opened is None:
            return None
        for part in opened.parts:
            self._homes.pop(part.uri, None)
            self._cells.pop(part.uri, None)
        return path

    def put_cells(self, items: Iterable[types.TextDocumentItem]) -> None:
        """Take the texts of cells, whose notebook is named afterwards."""
        self._cells.update((item.uri, item) for item in items)

    def change_cell(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Iterable[types.TextDocumentContentChangeEvent],
        encoding: types.PositionEncodingKind,
    ) -> None:
        """Take changes of the text of a cell."""
        item = self._cells.get(document.uri)
        if item is not None:
            text = changed(item.text, changes, encoding)
            self._cells[item.uri] = types.TextDocumentItem(item.uri, item.language_id, document.version, text)

    def put_notebook(self, uri: str, cells: Sequence[types.NotebookCell]) -> str | None:
        """Take the order of a notebook's cells; gives its path if it is one of ours."""
        path = path_of(uri)
        if path is None or not path.endswith(_NOTEBOOK):
            return None
        items = [(cell, self._cells[cell.document]) for cell in cells if cell.document in self._cells]
        self._opened[path] = Opened(tuple(Part(i.uri, i.version, i.text) for _, i in items), _json(items))
        self._homes = {cell: home for cell, home in self._homes.items() if home != path}
        self._homes.update((item.uri, path) for _, item in items)
        return path

    def snapshot(self) -> Mapping[str, Opened]:
        """All of them as they are now."""
        return dict(self._opened)

    def home(self, uri: str) -> str | None:
        """The file that a document is, or is a cell of."""
        return self._homes.get(uri) or path_of(uri)

    def part(self, uri: str) -> tuple[str, int, Part] | None:
        """The file of a document that is open, its number among the cells of that, and what it is now."""
        path = self._homes.get(uri)
        parts = () if path is None else self._opened[path].parts
        return next(((path, i, part) for i, part in enumerate(parts, 1) if path and part.uri == uri), None)

    def _draft(self, uri: str) -> str | None:
        """A path for a document that was never saved."""
        scheme, _, name = uri.partition(":")
        if scheme != _DRAFTS:
            return None
        # Some have a path already, under which they will be saved.
        path = f"{os.path.join(self._base(), unquote(name) or _DRAFTS).removesuffix('.py')}.py"
        while path in self._opened or os.path.lexists(path):
            path = f"{path.removesuffix('.py')}_.py"
        return path

    def version(self, uri: str) -> int | None:
        """The version of a document or a cell as it is now; None where it is not open."""
        opened = self._opened.get(self._homes.get(uri, ""))
        return None if opened is None else opened.version(uri)


def path_of(uri: str) -> str | None:
    """The path of a file; None for what is none."""
    return uris.to_fs_path(uri) if uri.startswith("file:") else None


def _bytes(text: str) -> bytes:
    """A text as it would be saved: in the encoding that it declares, as far as that has its characters."""
    plain = text.encode("utf-8", "surrogatepass")
    if plain.startswith(codecs.BOM_UTF8):
        return plain
    try:
        return encode(text, plain)
    except (LookupError, ValueError):
        return plain


def _json(items: Iterable[tuple[types.NotebookCell, types.TextDocumentItem]]) -> bytes:
    """A notebook as it would be saved, without what its cells put out."""
    cells = [
        {
            "cell_type": "code" if _is_program(*one) else "markdown",
            "source": one[1].text,
            "execution_count": _count(one[0]),
        }
        for one in items
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def _count(cell: types.NotebookCell) -> int | None:
    return None if cell.execution_summary is None else cell.execution_summary.execution_order


def _is_program(cell: types.NotebookCell, item: types.TextDocumentItem) -> bool:
    return cell.kind is types.NotebookCellKind.Code and item.language_id == _LANGUAGE
