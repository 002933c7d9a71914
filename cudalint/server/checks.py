"""The runs over the folders and files of one editor: which are under way, and what the last of each found."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from cudalint.finding import Finding
from cudalint.project.analysis import Seen
from cudalint.server.actions import text_edit
from cudalint.server.analyst import Analyst
from cudalint.server.diagnostics import Found, Opened, diagnostics
from cudalint.server.documents import Documents, path_of
from cudalint.server.jobs import Check, Checked, Look, Refused, Repair, Repaired

# Who types does not want to hear of each letter.
PAUSE_SECONDS = 0.25
_LONG_SECONDS = 1.0


class Checks:
    """What is checked as a whole is a workspace folder, or an open file that lies in none.

    A newer text supersedes the run over an older one. What a run finds is shown twice where it found something: as soon
    as it is known, and with its repairs when these have been tried out.
    """

    def __init__(self, server: LanguageServer, analyst: Analyst, documents: Documents) -> None:
        self._server = server
        self._analyst = analyst
        self._documents = documents
        self._found: dict[str, Found] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._looks: dict[str, asyncio.Task[Seen | None]] = {}
        self._shown: dict[str, list[types.Diagnostic]] = {}
        self._said: str | None = None

    # -- what is to be checked --------------------------------------------------------------------------

    def everything(self) -> None:
        """Check all there is, and forget what is no longer there."""
        scopes = self._scopes()
        for gone in (self._found.keys() | self._running.keys()) - scopes:
            self._forget(gone)
        for scope in scopes:
            self._start(scope, 0.0)

    def changed(self, path: str, pause: float = PAUSE_SECONDS) -> None:
        """Check again what a file bears on."""
        for look in self._looks.values():
            look.cancel()
        self._looks.clear()
        for scope in self._scopes():
            root = self._found[scope].root if scope in self._found else None
            if _lies_in(path, scope) or (root is not None and _lies_in(path, root)):
                self._start(scope, pause)

    def closed(self, path: str) -> None:
        """Check again without the text of a document, or no more where that was all there was."""
        if path not in self._scopes():
            self._forget(path)
        self.changed(path, 0.0)

    def _scopes(self) -> frozenset[str]:
        folders = self._folders()
        alone = (path for path in self._documents if not any(_lies_in(path, folder) for folder in folders))
        return frozenset((*folders, *alone))

    def _folders(self) -> tuple[str, ...]:
        workspace = self._server.workspace
        # Some editors name a root and no folders.
        named = tuple(workspace.folders) or tuple(filter(None, (workspace.root_uri,)))
        paths = map(path_of, named)
        return tuple(path for path in paths if path is not None and os.path.isdir(path))

    # -- runs -------------------------------------------------------------------------------------------

    def _start(self, scope: str, pause: float) -> None:
        self._stop(scope)
        task = asyncio.ensure_future(self._run(scope, pause))
        self._running[scope] = task
        task.add_done_callback(lambda done: self._ended(scope, done))

    def _stop(self, scope: str) -> None:
        before = self._running.pop(scope, None)
        if before is not None:
            before.cancel()

    def _ended(self, scope: str, task: asyncio.Task[None]) -> None:
        if self._running.get(scope) is task:
            del self._running[scope]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"internal error: {type(error).__name__}: {error}")

    async def _run(self, scope: str, pause: float) -> None:
        await asyncio.sleep(pause)
        opened = self._documents.snapshot()
        async with self._progress(f"cudalint: {os.path.basename(scope)}"):
            if await self._check(scope, opened, repair=False):
                await self._check(scope, opened, repair=True)

    async def _check(self, scope: str, opened: Mapping[str, Opened], *, repair: bool) -> bool:
        """Whether a run found something that may be repaired."""
        answer = await self._analyst.ask(Check((scope,), _texts(opened), repair))
        if isinstance(answer, Refused):
            self._say(answer.message)
        if not isinstance(answer, Checked):
            return False
        self._said = None
        for warning in (*answer.report.warnings, *answer.report.failures):
            self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, warning))
        self._put(scope, Found(answer.report, opened, answer.root, self.encoding()))
        return bool(answer.report.findings)

    def encoding(self) -> types.PositionEncodingKind:
        """In what the editor counts columns."""
        return types.PositionEncodingKind(self._server.workspace.position_encoding)

    @contextlib.asynccontextmanager
    async def _progress(self, title: str) -> AsyncIterator[None]:
        """Show that something is going on, if it takes long."""
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress:
            yield
            return
        shown = asyncio.ensure_future(self._show_progress(title))
        try:
            yield
        finally:
            shown.cancel()

    async def _show_progress(self, title: str) -> None:
        await asyncio.sleep(_LONG_SECONDS)
        token, progress = str(uuid.uuid4()), self._server.work_done_progress
        # The editor answers whether or not it is still waited for.
        await asyncio.shield(progress.create_async(token))
        progress.begin(token, types.WorkDoneProgressBegin(title=title))
        try:
            await asyncio.Event().wait()
        finally:
            progress.end(token, types.WorkDoneProgressEnd())

    def _say(self, message: str) -> None:
        """Tell the user, once for as long as it stays the same."""
        if message != self._said:
            self._said = message
            self._server.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"cudalint: {message}"))

    # -- what was found ---------------------------------------------------------------------------------

    def _put(self, scope: str, found: Found) -> None:
        before = self._found.get(scope, Found())
        self._found[scope] = found
        open_ones = (part.uri for path, one in found.opened.items() if _lies_in(path, scope) for part in one.parts)
        self._publish({*before.by_uri(), *found.by_uri(), *open_ones})

    def _forget(self, scope: str) -> None:
        self._stop(scope)
        self._publish(self._found.pop(scope, Found()).by_uri())

    def _publish(self, documents: Iterable[str]) -> None:
        for uri in sorted(documents):
            shown = [one for found, own in self.found(uri) for one in diagnostics(found, own)]
            is_open = self._documents.version(uri) is not None
            if not is_open and self._shown.get(uri, []) == shown:
                continue
            self._shown[uri] = shown
            versions = (found.version(uri) for found in reversed(self._found.values()))
            version = next((one for one in versions if one is not None), None) if is_open else None
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, version))

    def found(self, uri: str) -> Iterator[tuple[Found, tuple[Finding, ...]]]:
        """What the last runs found in a document, each finding once."""
        known: set[tuple[str, object]] = set()
        for found in self._found.values():
            own = tuple(one for one in found.by_uri().get(uri, ()) if (one.code, one.span) not in known)
            known.update((finding.code, finding.span) for finding in own)
            if own:
                yield found, own

    # -- questions --------------------------------------------------------------------------------------

    async def seen(self, path: str) -> Seen | None:
        """What is believed about the lines of an open file; None where a newer text has come."""
        if path not in self._looks:
            self._looks[path] = asyncio.ensure_future(self._look(path))
        look = self._looks[path]
        try:
            return await asyncio.shield(look)
        except asyncio.CancelledError:
            if look.cancelled():
                return None
            raise

    async def _look(self, path: str) -> Seen | None:
        answer = await self._analyst.ask(Look(path, _texts(self._documents.snapshot())))
        return answer if isinstance(answer, Seen) else None

    async def repaired(self, path: str) -> tuple[Found, Mapping[str, list[types.TextEdit]]] | None:
        """The edits of an open file that make all safe repairs, by document."""
        opened = self._documents.snapshot()
        if path not in opened:
            return None
        answer = await self._analyst.ask(Repair(path, _texts(opened)))
        if not isinstance(answer, Repaired) or not answer.texts:
            return None
        edits = {
            opened[path].parts[i].uri: [text_edit(before, after, self.encoding())]
            for i, (before, after) in answer.texts.items()
        }
        return Found(opened=opened, encoding=self.encoding()), edits

    async def close(self) -> None:
        """End all that is under way."""
        for task in (*self._running.values(), *self._looks.values()):
            task.cancel()
        await self._analyst.close()


def _texts(opened: Mapping[str, Opened]) -> dict[str, bytes]:
    return {path: document.data for path, document in opened.items()}


def _lies_in(path: str, scope: str) -> bool:
    return path == scope or path.startswith(scope.rstrip(os.sep) + os.sep)
