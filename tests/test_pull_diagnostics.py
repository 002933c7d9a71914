"""Findings on request: an editor that asks is answered, and told of nothing without being asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeGuard

import pytest
from editor import LIBRARY, ON_CPU, Answer, Editor, Item, edit_session
from lsprotocol import types

MAIN = """\
import multiprocessing

import torch
from library import work

if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print(multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""
PULLS = types.DiagnosticClientCapabilities()
TAKES_OTHERS = types.DiagnosticClientCapabilities(related_document_support=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A finding that lies in one file and leads through another, in a folder whose name editors quote in their way."""
    folder = tmp_path / "a (project)"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.cudalint]\n")
    (folder / "library.py").write_text(LIBRARY)
    (folder / "main.py").write_text(MAIN)
    return folder


def is_full(
    answer: Answer | Item,
) -> TypeGuard[types.RelatedFullDocumentDiagnosticReport | types.WorkspaceFullDocumentDiagnosticReport]:
    return answer.kind == "full"


def codes(answer: Answer | Item) -> list[str]:
    assert is_full(answer)
    return [str(one.code) for one in answer.items]


def others(editor: Editor, answer: Answer) -> dict[str, list[str]]:
    """What an answer says of other documents, by their names."""
    found = {}
    for uri, report in (answer.related_documents or {}).items():
        assert isinstance(report, types.FullDocumentDiagnosticReport)
        found[uri.removeprefix(editor.root.as_uri() + "/")] = [str(one.code) for one in report.items]
    return found


def test_an_answer_is_about_the_texts_as_they_are_and_nothing_is_told_besides(project: Path) -> None:
    async def play(editor: Editor) -> None:
        assert editor.offered.diagnostic_provider is not None
        assert editor.offered.diagnostic_provider.inter_file_dependencies
        editor.open("main.py")
        first = await editor.ask("main.py")
        assert codes(first) == ["CUD101"]
        known = first.result_id
        same = await editor.ask("main.py", known)
        assert (same.kind, same.result_id, same.related_documents) == ("unchanged", known, None)
        # A newer text of its own, and of another document, is waited for.
        editor.edit("main.py", "x = 1\n")
        assert codes(await editor.ask("main.py", known)) == []
        editor.edit("main.py", MAIN)
        editor.open("library.py")
        assert codes(await editor.ask("main.py")) == ["CUD101"]
        editor.edit("library.py", ON_CPU)
        assert codes(await editor.ask("main.py")) == []
        # What was asked earlier holds no longer when another document changes.
        bidden = editor.refreshes
        editor.edit("library.py", LIBRARY)
        await editor.until(lambda: editor.refreshes > bidden)
        assert codes(await editor.ask("main.py")) == ["CUD101"]
        assert "# cuda-in-forked-worker" in await editor.hover("main.py", 8)
        assert editor.all == []
        assert editor.messages == []

    edit_session(project, play, pulls=PULLS, apart=True)


def test_who_asks_about_all_is_answered_when_there_is_something_new(project: Path) -> None:
    main, script = project / "main.py", project / "script.py"

    async def play(editor: Editor) -> None:
        answer = await editor.ask_for_all({})
        assert {uri: codes(item) for uri, item in answer.items()} == {main.as_uri(): ["CUD101"]}
        # Editors quote what they like.
        known = {main.as_uri().replace("(", "%28").replace(")", "%29"): str(answer[main.as_uri()].result_id)}
        waiting = asyncio.ensure_future(editor.ask_for_all(known))
        script.write_text(LIBRARY + MAIN.replace("from library import work\n", ""))
        editor.touched("script.py")
        answer = await waiting
        assert answer[main.as_uri()].kind == "unchanged"
        assert codes(answer[script.as_uri()]) == ["CUD101"]
        main.write_text("x = 1\n")
        editor.touched("main.py")
        known = {uri: str(item.result_id) for uri, item in answer.items()}
        answer = await editor.ask_for_all(known)
        assert (codes(answer[main.as_uri()]), answer[script.as_uri()].kind) == ([], "unchanged")
        # One that is held back when the editor ends keeps nobody from ending.
        known = {uri: str(item.result_id) for uri, item in answer.items()}
        held = asyncio.ensure_future(editor.ask_for_all(known))
        held.add_done_callback(lambda done: done.cancelled() or done.exception())
        assert editor.all == []

    edit_session(project, play, pulls=PULLS)


async def ask_until(editor: Editor, holds: Callable[[Answer], bool]) -> Answer:
    """Ask about the library, and again whenever the server bids."""
    while True:
        bidden = editor.refreshes
        answer = await editor.ask("library.py")
        if holds(answer):
            return answer
        await editor.until(partial(lambda before: editor.refreshes > before, bidden))


def test_what_is_found_in_closed_documents_comes_with_answers_about_open_ones(project: Path) -> None:
    async def play(editor: Editor) -> None:
        editor.open("library.py")
        answer = await ask_until(editor, lambda answer: bool(answer.related_documents))
        assert others(editor, answer) == {"main.py": ["CUD101"]}
        editor.edit("library.py", ON_CPU)
        answer = await ask_until(editor, lambda answer: bool(answer.related_documents))
        assert others(editor, answer) == {"main.py": []}
        assert editor.all == []

    edit_session(project, play, pulls=TAKES_OTHERS)


def test_a_document_that_was_closed_with_changes_is_as_on_the_disk_again(project: Path) -> None:
    main = (project / "main.py").as_uri()

    async def play(editor: Editor) -> None:
        editor.open("main.py")
        assert codes(await editor.ask("main.py")) == ["CUD101"]
        editor.edit("main.py", "x = 1\n")
        assert codes(await editor.ask("main.py")) == []
        assert await editor.ask_for_all({}) == {}
        editor.close("main.py")
        answer = await editor.ask_for_all({})
        assert codes(answer[main]) == ["CUD101"]
        (project / "main.py").write_text("x = 1\n")
        editor.open("main.py", MAIN)
        assert codes(await editor.ask("main.py")) == ["CUD101"]
        editor.close("main.py")
        # The editor says no more of what it has of the document, and shows it still.
        answer = await editor.ask_for_all({})
        assert codes(answer[main]) == []

    edit_session(project, play, pulls=PULLS)


def test_cells_are_asked_for_by_their_names(project: Path) -> None:
    cells = ["import multiprocessing, torch\nfrom library import work", "torch.cuda.init()", MAIN.partition(":\n")[2]]

    async def play(editor: Editor) -> None:
        (project / "a.ipynb").write_text('{"cells": [], "nbformat": 4}')
        first, second, third = editor.open_notebook("a.ipynb", [cells[0], cells[1], cells[2].replace("    ", "")])
        assert codes(await editor.ask(third)) == ["CUD101"]
        assert codes(await editor.ask(first)) == codes(await editor.ask(second)) == []

    edit_session(project, play, pulls=PULLS)


def test_who_cannot_be_bidden_to_ask_again_is_told(project: Path) -> None:
    async def play(editor: Editor) -> None:
        # An editor that asks wherever a server answers would show everything twice.
        assert editor.offered.diagnostic_provider is None
        await editor.until(lambda: editor.codes("main.py"))
        assert editor.refreshes == 0

    edit_session(project, play, pulls=PULLS, refreshes=False)
