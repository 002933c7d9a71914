"""What an editor may ask, and what it is answered."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from cudalint import __version__, proof, rules
from cudalint.finding import Applicability, Finding
from cudalint.server import actions
from cudalint.server.analyst import Analyst
from cudalint.server.beliefs import hints, lenses, lines_at
from cudalint.server.checks import PAUSE_SECONDS, Checks
from cudalint.server.diagnostics import SOURCE
from cudalint.server.documents import Documents, path_of
from cudalint.server.positions import Places
from cudalint.server.protocol import Tolerant
from cudalint.server.pulls import Pulls, asks, takes_others
from cudalint.server.pushes import Pushes
from cudalint.server.streams import FromEditor

_SETTINGS = frozenset({"pyproject.toml", ".gitignore"})
_PROGRAMS = (".py", ".pyw", ".ipynb")
_WATCHED = ("**/*.{py,pyw,ipynb,toml}", "**/.gitignore")
# Who moves a folder tells of that, and not of what lies in it.
_MOVED = types.FileOperationRegistrationOptions(
    [
        *(types.FileOperationFilter(types.FileOperationPattern(pattern), "file") for pattern in _WATCHED),
        types.FileOperationFilter(
            types.FileOperationPattern("**", matches=types.FileOperationPatternKind.Folder), "file"
        ),
    ]
)


def serve(worker: Sequence[str], stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
    """Serve one editor, by default on standard input and output, until it ends.

    ``worker`` is the command of the other process.
    """
    # Editors show as trouble what is none: a question that is taken back after its answer, and changes of cells by
    # ranges, whose texts are kept here (documents.py) and not by pygls.
    logging.getLogger("pygls").setLevel(logging.ERROR)
    logging.getLogger("pygls.workspace").setLevel(logging.CRITICAL)
    # What it writes to is closed when the editor ends it, and the process has yet to end by itself.
    told = stdout or os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # pygls does nothing but read, as this can.
    asked = FromEditor(stdin or sys.stdin.buffer)
    _server(worker, asked, is_alone=stdin is None).start_io(cast(BinaryIO, asked), told)


def _server(worker: Sequence[str], asked: FromEditor, *, is_alone: bool) -> LanguageServer:
    # Whole texts: increments are counted in rows that only some texts have (a form feed would end one).
    cells = types.NotebookDocumentFilterWithCells([types.NotebookCellLanguage("python")])
    server = LanguageServer(
        "cudalint",
        __version__,
        protocol_cls=Tolerant,
        text_document_sync_kind=types.TextDocumentSyncKind.Full,
        notebook_document_sync=types.NotebookDocumentSyncOptions([cells]),
    )
    documents = Documents(lambda: _first_folder(server))
    checks = Checks(server, Analyst(worker), documents)
    end = _end_at_once(server, checks, is_alone=is_alone)
    _tell(server, documents, checks, lambda: asked.when_ended(end))
    _follow_documents(server, documents, checks)
    _follow_notebooks(server, documents, checks)
    _follow_workspace(server, documents, checks)
    _offer_actions(server, documents, checks)
    _offer_words(server, documents, checks)
    return server


def _first_folder(server: LanguageServer) -> str:
    """Where a document that was never saved could be."""
    named = (*server.workspace.folders, *filter(None, (server.workspace.root_uri,)))
    return next(filter(None, map(path_of, named)), os.getcwd())


def _follow_documents(server: LanguageServer, documents: Documents, checks: Checks) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        path = documents.open(params.text_document)
        if path is not None:
            checks.changed(path, 0.0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        if not params.content_changes:
            return
        document = params.text_document
        path = documents.put(document.uri, document.version, params.content_changes[-1].text)
        if path is not None:
            checks.changed(path)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None and os.path.basename(path) in _SETTINGS:
            checks.everything()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        path = documents.drop(params.text_document.uri)
        if path is not None:
            checks.closed(path)


def _follow_notebooks(server: LanguageServer, documents: Documents, checks: Checks) -> None:
    def again(uri: str, pause: float) -> None:
        notebook = server.workspace.get_notebook_document(notebook_uri=uri)
        path = None if notebook is None else documents.put_notebook(uri, notebook.cells)
        if path is not None:
            checks.changed(path, pause)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        documents.put_cells(params.cell_text_documents)
        again(params.notebook_document.uri, 0.0)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            documents.put_cells(cells.structure.did_open or ())
        for text in cells.text_content or ():
            documents.change_cell(text.document, text.changes, checks.encoding())
        again(params.notebook_document.uri, PAUSE_SECONDS)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseNotebookDocumentParams) -> None:
        path = documents.drop(params.notebook_document.uri)
        if path is not None:
            checks.closed(path)


def _follow_workspace(server: LanguageServer, documents: Documents, checks: Checks) -> None:
    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        checks.everything()
        workspace = server.client_capabilities.workspace
        watching = None if workspace is None else workspace.did_change_watched_files
        if watching is not None and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            asked = types.Registration("cudalint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            await server.client_register_capability_async(types.RegistrationParams([asked]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [path for change in params.changes if (path := path_of(change.uri)) is not None]
        if any(not path.endswith(_PROGRAMS) for path in paths):
            checks.everything()
            return
        # Of what is open, the editor's text counts.
        for path in set(paths).difference(documents):
            checks.changed(path)

    # Not every editor watches files; what is open under another name it closes and opens again.
    @server.feature(types.WORKSPACE_DID_CREATE_FILES, _MOVED)
    @server.feature(types.WORKSPACE_DID_RENAME_FILES, _MOVED)
    @server.feature(types.WORKSPACE_DID_DELETE_FILES, _MOVED)
    async def files_moved(
        _params: types.CreateFilesParams | types.RenameFilesParams | types.DeleteFilesParams,
    ) -> None:
        checks.everything(PAUSE_SECONDS)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders_changed(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        checks.everything()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration_changed(_params: types.DidChangeConfigurationParams) -> None:
        checks.everything()


def _end_at_once(server: LanguageServer, checks: Checks, *, is_alone: bool) -> Callable[[], None]:
    """An editor that ends the server, or is gone, waits for nothing that is under way. Gives what ends the server."""
    was_told = False

    @server.feature(types.SHUTDOWN)
    async def shut_down(_params: None) -> None:
        nonlocal was_told
        was_told = True
        await checks.close()

    @server.feature(types.EXIT)
    def exit_now(_params: None) -> None:
        # As the protocol has it.
        end(0 if was_told else 1)

    def end(code: int = 0) -> None:
        checks.abandon()
        if is_alone:
            # To cancel the start of a process may wait for its pipes for ever (CPython 3.11).
            os._exit(code)

    return end


def _tell(server: LanguageServer, documents: Documents, checks: Checks, begun: Callable[[], None]) -> None:
    """Have the editor told of findings, or answered: some ask because a server says that it answers."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        begun()
        if asks(params.capabilities):
            pulls = Pulls(server, documents, checks, takes_others(params.capabilities))
            checks.follow(pulls.news)
            _answer(server, pulls)
        else:
            checks.follow(Pushes(server, documents, checks).news)


def _answer(server: LanguageServer, pulls: Pulls) -> None:
    options = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier=SOURCE)

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def of_document(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        return await pulls.document(params.text_document.uri, params.previous_result_id)

    @server.feature(types.WORKSPACE_DIAGNOSTIC)
    async def of_workspace(params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        return await pulls.workspace(params.previous_result_ids)


def _offer_actions(server: LanguageServer, documents: Documents, checks: Checks) -> None:
    offered = types.CodeActionOptions([types.CodeActionKind.QuickFix, actions.FIX_ALL], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, offered)
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        found: list[types.CodeAction] = []
        if actions.wanted(types.CodeActionKind.QuickFix.value, only):
            for run, findings in checks.found(uri):
                here = [one for one in findings if _meets(run.location(one.span).range, params.range)]
                found.extend(actions.quick_fixes(run, here, documents.version))
        if actions.wanted(actions.FIX_ALL, only) and any(_is_safe(one) for _, own in checks.found(uri) for one in own):
            bare = actions.fix_all(uri)
            if _resolves(server):
                found.append(bare)
            elif only is not None:
                found.append(await _resolved(bare))
        return [_for_client(server, action) for action in found]

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return _for_client(server, await _resolved(action))

    async def _resolved(action: types.CodeAction) -> types.CodeAction:
        data = action.data if isinstance(action.data, dict) else {}
        path = documents.home(str(data.get("uri", "")))
        answer = None if path is None else await checks.repaired(path)
        if answer is not None:
            action.edit = actions.workspace_edit(*answer, documents.version)
        return action


def _offer_words(server: LanguageServer, documents: Documents, checks: Checks) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri, line = params.text_document.uri, types.Range(params.position, params.position)
        findings = [f for run, own in checks.found(uri) for f in own if _meets(run.location(f.span).range, line)]
        if findings:
            return _markdown("\n\n---\n\n".join(dict.fromkeys(map(_page, findings))))
        lines = await believed(uri, line.start.line + 1)
        return _markdown("```text\n" + "\n".join(lines) + "\n```") if lines else None

    async def believed(uri: str, row: int) -> Sequence[str]:
        part = documents.part(uri)
        seen = None if part is None else await checks.seen(part[0])
        return () if part is None or seen is None else lines_at(seen, part[1], row)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        part = documents.part(params.text_document.uri)
        seen = None if part is None else await checks.seen(part[0])
        if part is None or seen is None:
            return []
        _, number, document = part
        return hints(seen, number, Places(document.text, checks.encoding()), params.range)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        text = server.client_capabilities.text_document
        part = documents.part(params.text_document.uri)
        # An editor that shows hints shows the same there.
        if part is None or (text is not None and text.inlay_hint is not None):
            return []
        seen = await checks.seen(part[0])
        return [] if seen is None else lenses(seen, part[1])


def _markdown(text: str) -> types.Hover:
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))


def _page(finding: Finding) -> str:
    """The page of the rule, what hardware showed, and advice that is no edit."""
    advice = finding.fix
    told = (
        f"**Advice:** {advice.message}" if advice is not None and advice.applicability is Applicability.DISPLAY else ""
    )
    return "\n\n".join(filter(None, (rules.page(finding.code), proof.section(finding.code), told)))


def _meets(place: types.Range, asked: types.Range) -> bool:
    """Whether a place has to do with the lines that an editor asks about."""
    return place.start.line <= asked.end.line and asked.start.line <= place.end.line


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def _resolves(server: LanguageServer) -> bool:
    """Whether the editor asks for the edit of an action only when it is chosen."""
    document = server.client_capabilities.text_document
    action = None if document is None else document.code_action
    support = None if action is None else action.resolve_support
    return support is not None and "edit" in support.properties


def _for_client(server: LanguageServer, action: types.CodeAction) -> types.CodeAction:
    """The action with edits in the form that the editor knows."""
    workspace = server.client_capabilities.workspace
    edits = None if workspace is None else workspace.workspace_edit
    if action.edit is not None and not (edits is not None and edits.document_changes):
        action.edit = actions.without_versions(action.edit)
    return action
