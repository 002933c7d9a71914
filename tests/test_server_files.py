"""``cudalint server`` while files move, vanish and are closed, and while questions are taken back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from editor import LIBRARY, Editor, edit_session
from lsprotocol import types
from pygls.exceptions import JsonRpcException

MAIN = """\
import multiprocessing

import torch
from library import work

if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print(multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""
REQUEST_CANCELLED = -32800
# An editor that tells of what it does with files itself, and watches nothing.
TELLS = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        file_operations=types.FileOperationClientCapabilities(did_create=True, did_rename=True, did_delete=True)
    )
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A finding that lies in one file and leads through another."""
    folder = tmp_path / "project"
    (folder / "deep").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.cudalint]\n")
    (folder / "library.py").write_text(LIBRARY)
    (folder / "main.py").write_text(MAIN)
    return folder


def renamed(editor: Editor, old: str, new: str) -> None:
    """Rename a file or a folder as editors do: on the disk, and then they tell."""
    (editor.root / old).rename(editor.root / new)
    moved = [types.FileRename(editor.uri(old), editor.uri(new))]
    editor.client.workspace_did_rename_files(types.RenameFilesParams(moved))


def test_a_file_that_is_renamed_takes_its_findings_with_it(project: Path) -> None:
    async def play(editor: Editor) -> None:
        await editor.until(lambda: editor.codes("main.py"))
        renamed(editor, "main.py", "train.py")
        await editor.until(lambda: editor.codes("train.py"))
        assert editor.codes("main.py") == []
        # What a finding leads through.
        renamed(editor, "library.py", "other.py")
        await editor.until(lambda: not editor.codes("train.py"))
        renamed(editor, "other.py", "library.py")
        await editor.until(lambda: editor.codes("train.py"))
        (project / "train.py").unlink()
        gone = types.DeleteFilesParams([types.FileDelete(editor.uri("train.py"))])
        editor.client.workspace_did_delete_files(gone)
        await editor.until(lambda: not editor.codes("train.py"))
        (project / "again.py").write_text(MAIN)
        editor.client.workspace_did_create_files(types.CreateFilesParams([types.FileCreate(editor.uri("again.py"))]))
        await editor.until(lambda: editor.codes("again.py"))
        assert [editor.uri(name) for name in ("main.py", "train.py") if editor.codes(name)] == []

    edit_session(project, play, support=TELLS)


def test_a_folder_that_is_renamed_takes_all_in_it(project: Path, forked: str) -> None:
    (project / "deep" / "train.py").write_text(forked)

    async def play(editor: Editor) -> None:
        await editor.until(lambda: editor.codes("deep/train.py"))
        renamed(editor, "deep", "deeper")
        await editor.until(lambda: editor.codes("deeper/train.py"))
        assert editor.codes("deep/train.py") == []

    edit_session(project, play, support=TELLS)


def test_an_open_file_that_is_renamed_is_closed_and_opened_with_what_was_not_saved(project: Path) -> None:
    """The editor tells of the documents alone: it has the text, and the new name."""
    unsaved = "# not saved\n" + MAIN

    async def play(editor: Editor) -> None:
        editor.open("main.py", unsaved)
        await editor.until(lambda: editor.codes("main.py"))
        (project / "main.py").rename(project / "train.py")
        editor.close("main.py")
        editor.open("train.py", unsaved)
        # Between the two the new name is a file like others, with what was saved.
        await editor.until(lambda: [one.range.start.line for one in editor.diagnostics("train.py")] == [8])
        await editor.until(lambda: not editor.codes("main.py"))

    edit_session(project, play, support=types.ClientCapabilities())


def test_a_draft_that_is_saved_is_a_file(project: Path) -> None:
    (project / "main.py").unlink()

    async def play(editor: Editor) -> None:
        draft = "untitled:Untitled-1"
        editor.open(draft, MAIN)
        await editor.until(lambda: editor.codes(draft))
        (project / "train.py").write_text(MAIN)
        editor.close(draft)
        editor.open("train.py")
        await editor.until(lambda: editor.codes("train.py") and not editor.codes(draft))

    edit_session(project, play)


def test_what_is_closed_is_shown_only_where_a_folder_has_it(project: Path, tmp_path: Path, forked: str) -> None:
    (tmp_path / "loose.py").write_text(forked)
    loose = (tmp_path / "loose.py").as_uri()

    async def play(editor: Editor) -> None:
        editor.open(loose, forked)
        editor.open("new.py", forked)  # not on the disk
        editor.open("main.py")
        await editor.until(lambda: all(map(editor.codes, (loose, "new.py", "main.py"))))
        for name in (loose, "new.py", "main.py"):
            editor.close(name)
        await editor.until(lambda: not editor.codes(loose) and not editor.codes("new.py"))
        (project / "library.py").unlink()
        editor.open("library.py", LIBRARY)  # as after a deletion elsewhere: the editor has it still
        await editor.until(lambda: editor.codes("main.py"))
        editor.close("library.py")
        await editor.until(lambda: not editor.codes("main.py"))

    edit_session(project, play)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_question_that_is_taken_back_is_answered_at_once_and_hinders_no_other(project: Path) -> None:
    async def play(editor: Editor) -> None:
        editor.open("main.py")
        await editor.with_repairs("main.py")
        (every,) = await editor.actions("main.py", ["source.fixAll"])
        (analyst,) = children(editor.server)
        place = types.HoverParams(types.TextDocumentIdentifier(editor.uri("main.py")), types.Position(6, 0))
        os.kill(analyst, signal.SIGSTOP)  # for as long as it takes
        asked = {
            "a hover": editor.request(types.TEXT_DOCUMENT_HOVER, place, "a hover"),
            "an edit": editor.request(types.CODE_ACTION_RESOLVE, every, "an edit"),
        }
        for name, answer in asked.items():
            editor.client.cancel_request(types.CancelParams(name))
            with pytest.raises(JsonRpcException) as told:
                await answer
            assert told.value.code == REQUEST_CANCELLED
        os.kill(analyst, signal.SIGCONT)
        assert "CUDA: untouched in this process" in await editor.hover("main.py", 7)
        editor.client.cancel_request(types.CancelParams("a hover"))  # once more, and too late
        every = await editor.client.code_action_resolve_async(every)
        assert every.edit is not None
        assert editor.messages == []

    edit_session(project, play, apart=True)
