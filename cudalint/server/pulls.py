"""For editors that ask for findings: answers, and when to ask again."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from cudalint.server.checks import Checks
from cudalint.server.documents import Documents, path_of
from cudalint.structs import Frozen

_Answer: TypeAlias = types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport
_Item: TypeAlias = types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport
_Others: TypeAlias = dict[str, types.FullDocumentDiagnosticReport | types.UnchangedDocumentDiagnosticReport]

# What no diagnostics have for an identity.
_FORGOTTEN = ""


def asks(editor: types.ClientCapabilities) -> bool:
    """Whether an editor asks for findings and can be bidden to ask again: findings change with other files."""
    document, workspace = editor.text_document, editor.workspace
    refreshed = None if workspace is None else workspace.diagnostics
    is_able = document is not None and document.diagnostic is not None
    return is_able and refreshed is not None and bool(refreshed.refresh_support)


def takes_others(editor: types.ClientCapabilities) -> bool:
    """Whether an editor that asks about one document takes what is said of others."""
    diagnostic = None if editor.text_document is None else editor.text_document.diagnostic
    return diagnostic is not None and bool(diagnostic.related_document_support)


class _Said(Frozen):
    """What there is to say of a document, and its identity: the same for the same diagnostics."""

    items: tuple[types.Diagnostic, ...]
    identity: str


class Pulls:
    """What an editor was answered.

    A question about a document is answered as soon as a run has told something of the texts as they are. Of what
    becomes known later (changes of other files) the editor is bidden to ask again. Of documents that are
    closed it learns by asking for all, which waits until there is something that it does not have, or with its
    questions about others.
    """

    def __init__(self, server: LanguageServer, documents: Documents, checks: Checks, takes_others: bool) -> None:
        self._server = server
        self._documents = documents
        self._checks = checks
        self._takes_others = takes_others
        # What was answered about open documents, and what the editor has of all with findings, by identities.
        self._answered: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._asked: Counter[str] = Counter()
        self._is_first = True
        # What there is to say, until a run says something else.
        self._said: dict[str, _Said] = {}
        self._turned = asyncio.Event()

    # -- when ----------------------------------------------------------------------------------------------

    def news(self, _documents: Iterable[str]) -> None:
        """Answer who waits, and have the editor ask again where its answers hold no longer."""
        self._said.clear()
        for uri in [uri for uri in self._answered if not self._is_open(uri)]:
            # What an editor shows of a document that it closes is its own affair.
            del self._answered[uri]
            self._told[uri] = _FORGOTTEN
        self._turned.set()
        self._turned = asyncio.Event()
        stale = [uri for uri in self._answered if self._is_stale(uri)]
        for uri in stale:
            del self._answered[uri]
        if stale or (self._answered and self._takes_others and not self._asked.total() and self._unknown()):
            self._server.workspace_diagnostic_refresh(None)

    def _is_stale(self, uri: str) -> bool:
        return not self._asked[uri] and self._answered[uri] != self._say(uri).identity

    def _say(self, uri: str) -> _Said:
        """What is found in a document, without repairs: these are asked for by themselves, and become known later."""
        if uri not in self._said:
            found = self._checks.diagnostics(uri)
            for one in found:
                one.data = None
            self._said[uri] = _Said(tuple(found), _identity(found))
        return self._said[uri]

    def _is_open(self, uri: str) -> bool:
        return self._documents.version(uri) is not None

    # -- one document --------------------------------------------------------------------------------------

    async def document(self, uri: str, known: str | None) -> _Answer:
        """What is found in a document; ``known`` is the identity of what the editor has of it."""
        path = self._documents.home(uri)
        self._asked[uri] += 1
        try:
            while path is not None and self._checks.awaits(path):
                await self._turned.wait()
        finally:
            self._asked[uri] -= 1
        said = self._say(self._named(uri))
        if self._is_open(uri):
            self._answered[uri] = said.identity
        self._tell(self._named(uri))
        others = self._others() if self._takes_others else None
        if known == said.identity:
            return types.RelatedUnchangedDocumentDiagnosticReport(said.identity, others or None)
        return types.RelatedFullDocumentDiagnosticReport(said.items, others or None, result_id=said.identity)

    def _others(self) -> _Others:
        reports: _Others = {}
        for uri in self._unknown():
            self._tell(uri)
            said = self._say(uri)
            reports[uri] = types.FullDocumentDiagnosticReport(said.items, result_id=said.identity)
        return reports

    def _unknown(self) -> list[str]:
        """The closed documents of which the editor has something else; it asks for open ones by themselves."""
        nothing = _identity(())
        closed = (uri for uri in sorted({*self._checks.documents(), *self._told}) if not self._is_open(uri))
        return [uri for uri in closed if self._told.get(uri, nothing) != self._say(uri).identity]

    # -- all -----------------------------------------------------------------------------------------------

    async def workspace(self, known: Iterable[types.PreviousResultId]) -> types.WorkspaceDiagnosticReport:
        """What is found in all documents; ``known`` is what the editor has."""
        identities = {self._named(one.uri): one.value for one in known}
        while self._checks.awaits() or not (self._is_first or self._has_news(identities)):
            await self._turned.wait()
        self._is_first = False
        items = [*self._items(identities)]
        for item in items:
            if isinstance(item, types.WorkspaceFullDocumentDiagnosticReport):
                self._tell(item.uri)
        return types.WorkspaceDiagnosticReport(items)

    def _has_news(self, known: Mapping[str, str]) -> bool:
        return any(isinstance(one, types.WorkspaceFullDocumentDiagnosticReport) for one in self._items(known))

    def _items(self, known: Mapping[str, str]) -> Iterator[_Item]:
        for uri in sorted({*self._checks.documents(), *self._told, *known}):
            said, version = self._say(uri), self._checks.version(uri)
            if known.get(uri) == said.identity:
                yield types.WorkspaceUnchangedDocumentDiagnosticReport(uri, said.identity, version)
            else:
                yield types.WorkspaceFullDocumentDiagnosticReport(uri, said.items, version, result_id=said.identity)

    def _tell(self, uri: str) -> None:
        said = self._say(uri)
        if said.items:
            self._told[uri] = said.identity
        else:
            self._told.pop(uri, None)

    def _named(self, uri: str) -> str:
        """A document as findings name it: editors quote other characters in the names of closed files."""
        path = None if self._is_open(uri) else path_of(uri)
        return uri if path is None or not os.path.isabs(path) else Path(path).as_uri()


def _identity(items: Sequence[types.Diagnostic]) -> str:
    said = "\n".join(map(repr, items)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=12).hexdigest()
