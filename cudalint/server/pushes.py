"""For editors that are told of findings."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from cudalint.server.checks import Checks
from cudalint.server.documents import Documents


class Pushes:
    """What was last told of each document; of one that is not open, nothing is said twice."""

    def __init__(self, server: LanguageServer, documents: Documents, checks: Checks) -> None:
        self._server = server
        self._documents = documents
        self._checks = checks
        self._shown: dict[str, list[types.Diagnostic]] = {}

    def news(self, documents: Iterable[str]) -> None:
        """Tell what is found now in documents of which a run said something."""
        for uri in sorted(documents):
            shown = self._checks.diagnostics(uri)
            is_open = self._documents.version(uri) is not None
            if not is_open and self._shown.get(uri, []) == shown:
                continue
            self._shown[uri] = shown
            params = types.PublishDiagnosticsParams(uri, shown, self._checks.version(uri))
            self._server.text_document_publish_diagnostics(params)
