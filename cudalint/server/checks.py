"""The runs over the folders and files of one editor: which are under way, and what the last of each found."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TypeAlias

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from cudalint.finding import Finding
from cudalint.project.seen import Seen
from cudalint.server.actions import text_edit
from cudalint.server.analyst import Analyst
from cudalint.server.diagnostics import Found, Opened, diagnostics
from cudalint.server.documents import Documents, path_of
from cudalint.server.jobs import Check, Checked, Look, Refused, Repair, Repaired

# Who types does not want to hear of each letter.
PAUSE_SECONDS = 0.25
_LONG_SECONDS = 1.0

News: TypeAlias = Callable[[frozenset[str]], None]


class Checks:
    """What is checked as a whole is a workspace folder, or an open file that lies in none.

    A newer text supersedes the run over an older one. What is found in open files is shown first; what a run over all
    finds is shown twice where it found something: as soon as it is known, and with its repairs when these have been
    tried out.
    """

    def __init__(self, server: LanguageServer, analyst: Analyst, documents: Documents) -> None:
        self._server = server
        self._analyst = analyst
        self._documents = documents
        self._found: dict[str, Found] = {}
        # What a run over the open files found, until the one over all has ended.
        self._first: dict[str, Found] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        # The folders and files whose run has not told anything yet.
        self._awaited: set[str] = set()
        self._looks: dict[str, asyncio.Task[Seen | None]] = {}
        self._said: str | None = None
        self._news: News = _nobody

    def follow(self, news: News) -> None:
        """Tell of the documents of which a run said something, and of none where one ended without a word."""
        self._news = news

    # -- what is to be checked --------------------------------------------------------------------------

    def everything(self, pause: float = 0.0) -> None:
        """Check all there is, and forget what is no longer there."""
        scopes = self._scopes()
        for gone in (self._found.keys() | self._running.keys()) - scopes:
            self._forget(gone)
        for scope in scopes:
            self._start(scope, pause)

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
        self._awaited.add(scope)
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
            self._tell(scope, frozenset())
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"internal error: {type(error).__name__}: {error}")

    async def _run(self, scope: str, pause: float) -> None:
        await asyncio.sleep(pause)
        opened = self._documents.snapshot()
        texts = _texts(opened)
        async with self._progress(f"cudalint: {os.path.basename(scope)}"):
            answer: Checked | None = None
            if any(_lies_in(path, scope) for path in opened):
                answer = await self._check(scope, opened, Check((scope,), texts, repair=False, first=True))
                if answer is None:
                    return
            if answer is None or answer.about is not None:
                answer = await self._check(scope, opened, Check((scope,), texts, repair=False))
            if answer is not None and answer.report.findings:
                await self._check(scope, opened, Check((scope,), texts, repair=True))

    async def _check(self, scope: str, opened: Mapping[str, Opened], check: Check) -> Checked | None:
        """What a run found; it is shown."""
        answer = await self._analyst.ask(check)
        if isinstance(answer, Refused):
            self._say(answer.message)
        if not isinstance(answer, Checked):
            return None
        self._said = None
        found = Found(answer.report, opened, answer.root, self.encoding())
        if answer.about is not None:
            self._put_first(scope, found)
            return answer
        for warning in (*answer.report.warnings, *answer.report.failures):
            self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, warning))
        self._put(scope, found)
        return answer

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

    def _put_first(self, scope: str, found: Found) -> None:
        """Show what was found in open files; of all others the last run over all still holds."""
        before = self._first.get(scope, Found())
        self._first[scope] = found
        self._tell(scope, frozenset((*before.by_uri, *_open_in(scope, found))))

    def _put(self, scope: str, found: Found) -> None:
        # What was open may be closed by now, and have been in no run over all.
        before, first = self._found.get(scope, Found()), self._first.pop(scope, Found())
        self._found[scope] = found
        self._tell(scope, frozenset((*before.by_uri, *first.by_uri, *found.by_uri, *_open_in(scope, found))))

    def _forget(self, scope: str) -> None:
        self._stop(scope)
        first, found = self._first.pop(scope, Found()), self._found.pop(scope, Found())
        self._tell(scope, frozenset((*first.by_uri, *found.by_uri)))

    def _tell(self, scope: str, documents: frozenset[str]) -> None:
        self._awaited.discard(scope)
        self._news(documents)

    def awaits(self, path: str | None = None) -> bool:
        """Whether a run over a file, or over any, has yet to tell something of the texts as they are."""
        return any(path is None or _lies_in(path, scope) for scope in self._awaited)

    def documents(self) -> frozenset[str]:
        """All with findings, by the last runs that were about them."""
        uris = {uri for found in (*self._found.values(), *self._first.values()) for uri in found.by_uri}
        return frozenset(uri for uri in uris if any(True for _ in self.found(uri)))

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """What the last runs found in a document, in the editor's words."""
        return [one for found, own in self.found(uri) for one in diagnostics(found, own)]

    def version(self, uri: str) -> int | None:
        """The version of an open document that the last run read; None for one that is closed."""
        if self._documents.version(uri) is None:
            return None
        versions = (found.version(uri) for found in reversed([*self._rests_on(uri)]))
        return next((one for one in versions if one is not None), None)

    def found(self, uri: str) -> Iterator[tuple[Found, tuple[Finding, ...]]]:
        """What the last runs found in a document, each finding once."""
        known: set[tuple[str, object]] = set()
        for found in self._rests_on(uri):
            own = tuple(one for one in found.by_uri.get(uri, ()) if (one.code, one.span) not in known)
            known.update((finding.code, finding.span) for finding in own)
            if own:
                yield found, own

    def _rests_on(self, uri: str) -> Iterator[Found]:
        """The runs that say what is found in a document: the last ones that were about it."""
        for scope in dict.fromkeys((*self._found, *self._first)):
            first = self._first.get(scope)
            if first is not None and uri in _open_in(scope, first):
                yield first
            elif scope in self._found:
                yield self._found[scope]

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
        """End all that is under way, so that nothing is told after it."""
        tasks = (*self._running.values(), *self._looks.values())
        for task in tasks:
            task.cancel()
        await self._analyst.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    def abandon(self) -> None:
        """End what is under way without waiting for it: nobody is told of anything any more."""
        self._analyst.abandon()


def _nobody(_documents: frozenset[str]) -> None:
    """Who follows runs before anyone does."""


def _open_in(scope: str, found: Found) -> frozenset[str]:
    """The documents of a run that were open."""
    open_ones = (one.parts for path, one in found.opened.items() if _lies_in(path, scope))
    return frozenset(part.uri for parts in open_ones for part in parts)


def _texts(opened: Mapping[str, Opened]) -> dict[str, bytes]:
    return {path: document.data for path, document in opened.items()}


def _lies_in(path: str, scope: str) -> bool:
    return path == scope or path.startswith(scope.rstrip(os.sep) + os.sep)
