"""An editor for tests: a client of the Language Server Protocol on the standard streams of ``cudalint server``."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from conftest import environment
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from cudalint.hosts.commands.server import WORKER
from cudalint.module_path import without_the_current_folder
from cudalint.opening import Options
from cudalint.server.language_server import serve

T = TypeVar("T")
Answer: TypeAlias = types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport
Item: TypeAlias = types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport

# What workers run, and the same where it works.
LIBRARY = """\
import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()
"""
ON_CPU = LIBRARY.replace(', device="cuda"', "")

_SECONDS = 180.0  # no test waits so long, unless the machine is very busy
_ALL = types.Range(types.Position(0, 0), types.Position(10_000, 0))


def _modern(pulls: types.DiagnosticClientCapabilities | None, refreshes: bool) -> types.ClientCapabilities:
    """What an editor of today supports."""
    return types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(
            code_action=types.CodeActionClientCapabilities(
                resolve_support=types.ClientCodeActionResolveOptions(["edit"])
            ),
            diagnostic=pulls,
        ),
        window=types.WindowClientCapabilities(work_done_progress=True),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refreshes),
        ),
    )


class _Client(LanguageClient):
    """A client that remembers how its server ended, and what it complained of."""

    ended: tuple[int | None, str] | None = None

    async def server_exit(self, server: asyncio.subprocess.Process) -> None:
        assert server.stderr is not None
        self.ended = (server.returncode, (await server.stderr.read()).decode())


class Editor:
    """What a user would see: the last diagnostics of each file, messages, and progress."""

    def __init__(self, client: LanguageClient, root: Path) -> None:
        self.client = client
        self.root = root
        self.shown: dict[str, types.PublishDiagnosticsParams] = {}
        # Every version of every file that something was said of.
        self.history: set[tuple[str, int | None]] = set()
        self.order: list[str] = []
        self.all: list[tuple[str, types.PublishDiagnosticsParams]] = []
        self.messages: list[str] = []
        self.progress: list[str] = []
        self.watched: list[types.Registration] = []
        self.offered = types.ServerCapabilities()
        # How often it was bidden to ask again.
        self.refreshes = 0
        self._news = asyncio.Event()
        self._versions: dict[str, int] = {}
        self._listen()

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.shown[params.uri] = params
            self.history.add((params.uri, params.version))
            self.order.append(params.uri)
            self.all.append((params.uri, params))
            self._news.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def message(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self._news.set()

        @self.client.feature(types.PROGRESS)
        def progress(params: types.ProgressParams) -> None:
            assert isinstance(params.value, dict)
            self.progress.append(params.value["kind"])
            self._news.set()

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.watched.extend(params.registrations)
            self._news.set()

        @self.client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        def refresh(_params: None) -> None:
            self.refreshes += 1
            self._news.set()

        @self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create(_params: types.WorkDoneProgressCreateParams) -> None:
            pass

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def log(_params: types.LogMessageParams) -> None:
            pass

    def uri(self, name: str) -> str:
        return name if ":" in name else (self.root / name).as_uri()

    def open(self, name: str, text: str | None = None, language: str = "python") -> None:
        """Open a file, with its text on the disk or another one."""
        text = (self.root / name).read_bytes().decode() if text is None else text
        self._versions[name] = 1
        item = types.TextDocumentItem(self.uri(name), language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def edit(self, name: str, text: str) -> int:
        """Change a text without saving it."""
        self._versions[name] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return self._versions[name]

    def save(self, name: str) -> None:
        """Say that a file was saved; what is on the disk is for others to write."""
        document = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(document))

    def close(self, name: str) -> None:
        document = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    def open_notebook(self, name: str, cells: list[str]) -> list[str]:
        """Open a notebook of code cells; gives the names of its cells, which only the editor knows."""
        names = [f"vscode-notebook-cell:{(self.root / name).as_posix()}#{i}" for i in range(len(cells))]
        order = [types.NotebookCell(types.NotebookCellKind.Code, one) for one in names]
        items = [types.TextDocumentItem(one, "python", 1, text) for one, text in zip(names, cells, strict=True)]
        notebook = types.NotebookDocument(self.uri(name), "jupyter-notebook", 1, order)
        self.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))
        return names

    def edit_cell(self, name: str, cell: str, version: int, place: types.Range, text: str) -> None:
        """Replace a part of a cell."""
        changes = [types.TextDocumentContentChangePartial(place, text)]
        document = types.VersionedTextDocumentIdentifier(version, cell)
        content = types.NotebookDocumentCellContentChanges(document, changes)
        event = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[content]))
        notebook = types.VersionedNotebookDocumentIdentifier(version, self.uri(name))
        self.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(notebook, event))

    def run_cell(self, name: str, cell: str, count: int) -> None:
        """Say that a cell was run as the kernel's so many-th."""
        ran = types.NotebookCell(
            types.NotebookCellKind.Code, cell, execution_summary=types.ExecutionSummary(count, True)
        )
        event = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(data=[ran]))
        notebook = types.VersionedNotebookDocumentIdentifier(count, self.uri(name))
        self.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(notebook, event))

    def remove_cell(self, name: str, index: int, cell: str) -> None:
        array = types.NotebookCellArrayChange(index, 1)
        structure = types.NotebookDocumentCellChangeStructure(array, did_close=[types.TextDocumentIdentifier(cell)])
        event = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure))
        notebook = types.VersionedNotebookDocumentIdentifier(9, self.uri(name))
        self.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(notebook, event))

    def close_notebook(self, name: str, cells: list[str]) -> None:
        params = types.DidCloseNotebookDocumentParams(
            types.NotebookDocumentIdentifier(self.uri(name)), [types.TextDocumentIdentifier(one) for one in cells]
        )
        self.client.notebook_document_did_close(params)

    def touched(self, name: str) -> None:
        """Say that a file changed on the disk."""
        event = types.FileEvent(self.uri(name), types.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    async def until(self, holds: Callable[[], T]) -> T:
        """Wait for what the server sends to make something true."""

        async def wait() -> T:
            while not (found := holds()):
                self._news.clear()
                await self._news.wait()
            return found

        return await asyncio.wait_for(wait(), _SECONDS)

    def codes(self, name: str) -> list[str]:
        """The codes that are shown for a file; empty also where nothing was said of it."""
        params = self.shown.get(self.uri(name))
        return [] if params is None else [str(one.code) for one in params.diagnostics]

    def diagnostics(self, name: str) -> list[types.Diagnostic]:
        return list(self.shown[self.uri(name)].diagnostics) if self.uri(name) in self.shown else []

    async def with_repairs(self, name: str) -> list[types.Diagnostic]:
        """The diagnostics of a file once its repairs are known."""
        await self.until(lambda: any(one.data and one.data["fix"] for one in self.diagnostics(name)))
        return self.diagnostics(name)

    async def clean(self, name: str, version: int) -> None:
        """Wait until a version of a document is known to have no findings."""
        await self.until(lambda: self.at(name, version) and not self.diagnostics(name))

    def at(self, name: str, version: int) -> bool:
        """Whether what is shown is about a version of a document."""
        return self.uri(name) in self.shown and self.shown[self.uri(name)].version == version

    async def actions(self, name: str, only: list[str] | None = None) -> list[types.CodeAction]:
        context = types.CodeActionContext(self.diagnostics(name), only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.uri(name)), _ALL, context)
        found = await self.client.text_document_code_action_async(params)
        return [one for one in found or () if isinstance(one, types.CodeAction)]

    async def ask(self, name: str, known: str | None = None) -> Answer:
        """What is found in a document, where ``known`` is the result that the editor has of it."""
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(self.uri(name)), previous_result_id=known)
        return await self.client.text_document_diagnostic_async(params)

    async def ask_for_all(self, known: dict[str, str]) -> dict[str, Item]:
        """What is found anywhere, by document."""
        previous = [types.PreviousResultId(uri, value) for uri, value in known.items()]
        report = await self.client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(previous))
        return {item.uri: item for item in report.items}

    @property
    def server(self) -> int:
        """The process that speaks the protocol."""
        assert self.client._server is not None
        return self.client._server.pid

    def request(self, method: str, params: object, number: str) -> Awaitable[Any]:
        """Ask something by a number, by which the question can be taken back."""
        return asyncio.ensure_future(self.client.protocol.send_request_async(method, params, msg_id=number))

    async def hover(self, name: str, line: int) -> str:
        """What is shown over a line, which counts from 1."""
        position = types.Position(line - 1, 0)
        params = types.HoverParams(types.TextDocumentIdentifier(self.uri(name)), position)
        found = await self.client.text_document_hover_async(params)
        return "" if found is None or not isinstance(found.contents, types.MarkupContent) else found.contents.value

    async def lenses(self, name: str) -> list[tuple[int, str]]:
        """The words above lines, which count from 1."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(self.uri(name)))
        found = await self.client.text_document_code_lens_async(params)
        return [(one.range.start.line + 1, one.command.title) for one in found or () if one.command is not None]

    async def hints(self, name: str) -> list[tuple[int, str]]:
        """The words behind lines, which count from 1."""
        params = types.InlayHintParams(types.TextDocumentIdentifier(self.uri(name)), _ALL)
        found = await self.client.text_document_inlay_hint_async(params)
        return [(one.position.line + 1, str(one.label)) for one in found or ()]


def applied(text: str, edit: types.WorkspaceEdit | None, uri: str) -> str:
    """A text with the edits of an action, made as an editor that counts UTF-16 units makes them."""
    assert edit is not None
    edits: list[Any] = [
        one
        for change in edit.document_changes or ()
        if isinstance(change, types.TextDocumentEdit) and change.text_document.uri == uri
        for one in change.edits
    ]
    edits.extend((edit.changes or {}).get(uri, ()))
    rows = text.split("\n")

    def offset(place: types.Position) -> int:
        before = rows[place.line].encode("utf-16-le")[: 2 * place.character].decode("utf-16-le")
        return sum(len(row) + 1 for row in rows[: place.line]) + len(before)

    for one in sorted(edits, key=lambda one: offset(one.range.start), reverse=True):
        text = text[: offset(one.range.start)] + one.new_text + text[offset(one.range.end) :]
    return text


def edit_session(
    root: Path,
    play: Callable[[Editor], Awaitable[None]],
    folders: list[Path] | None = None,
    support: types.ClientCapabilities | None = None,
    pulls: types.DiagnosticClientCapabilities | None = None,
    refreshes: bool = True,
    apart: bool = False,
) -> None:
    """Start the server, do something in the editor, and end both as editors do.

    An editor that says what it supports knows a root, and no folders. One that ``pulls`` asks for
    findings, and asks again when it is bidden to if it ``refreshes``. ``apart``: the server is a process, in the
    folder, as it is for users; else a thread of this one, which needs no second to begin. What analyses is always a
    process of its own.
    """

    async def session() -> None:
        client = _Client("an-editor", "1")
        editor = Editor(client, root)
        thread = None
        if apart:
            await client.start_io(sys.executable, "-m", "cudalint", "server", cwd=root, env=environment())
        else:
            thread = await _start_in_thread(client)
        opened = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders or [root]]
        params = (
            types.InitializeParams(_modern(pulls, refreshes), process_id=None, workspace_folders=opened)
            if support is None
            else types.InitializeParams(support, process_id=None, root_uri=root.as_uri())
        )
        try:
            editor.offered = (await client.initialize_async(params)).capabilities
            client.initialized(types.InitializedParams())
            await asyncio.wait_for(play(editor), 2 * _SECONDS)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()
        if thread is None:
            assert client.ended == (0, ""), client.ended
            return
        thread.join(_SECONDS)
        assert not thread.is_alive()

    asyncio.run(session())


async def _start_in_thread(client: LanguageClient) -> threading.Thread:
    """Serve a client as the command does, from a thread."""
    path = without_the_current_folder(sys.path)
    worker = (sys.executable, "-c", WORKER.format(path=path, options=Options(cache=False)))

    def start(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with listening, connection, connection.makefile("rb") as stdin, connection.makefile("wb") as stdout:
            serve(worker, stdin, stdout)

    listening = socket.create_server(("127.0.0.1", 0))
    host, port = listening.getsockname()
    thread = threading.Thread(target=start, args=(listening,), daemon=True)
    thread.start()
    await client.start_tcp(host, port)
    return thread
