"""``cudalint server``, seen from an editor: a client that speaks the protocol over the standard streams."""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import environment
from editor import LIBRARY, ON_CPU, Editor, applied, edit_session
from lsprotocol import types
from notebook_files import notebook

from cudalint.finding import Position
from cudalint.opening import Options
from cudalint.project.seen import Seen
from cudalint.server.actions import text_edit
from cudalint.server.analyst import Analyst
from cudalint.server.documents import Documents
from cudalint.server.jobs import HEADER_BYTES, Answer, Check, Checked, Job, Look, Refused, Repair, Repaired, packed
from cudalint.server.positions import Places, changed
from cudalint.server.streams import MOST_OF_A_ROW, FromEditor
from cudalint.server.worker import _check

MAIN = """\
import multiprocessing

import torch
from library import work

if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print("\N{SNAKE}", multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two files with a finding that lies in one and leads through the other, in a folder whose name is no URI."""
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.cudalint]\n")
    (folder / "library.py").write_text(LIBRARY)
    (folder / "main.py").write_text(MAIN, encoding="utf-8")
    return folder


def test_findings_and_beliefs_follow_what_is_typed_in_any_file(project: Path) -> None:
    async def play(editor: Editor) -> None:
        editor.open("library.py")
        (found,) = await editor.until(lambda: editor.diagnostics("main.py"))
        assert found.code == "CUD101"
        assert found.severity is types.DiagnosticSeverity.Error
        assert found.code_description is not None
        assert "# cuda-in-forked-worker" in Path(found.code_description.href.removeprefix("file://")).read_text()
        # The snake before it is one character and two units.
        assert found.range.start == types.Position(7, 16)
        units = MAIN.splitlines()[found.range.end.line].encode("utf-16-le")
        anchor = units[2 * found.range.start.character : 2 * found.range.end.character].decode("utf-16-le")
        assert anchor == 'multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3])'
        steps = {(one.location.uri, one.location.range.start.line, one.message) for one in found.related_information}
        assert (editor.uri("library.py"), 4, "pool worker: torch.ones() needs CUDA here") in steps
        assert any(uri == editor.uri("main.py") and line == 6 for uri, line, _ in steps)
        editor.open("main.py")
        assert "# cuda-in-forked-worker (CUD101)" in await editor.hover("main.py", 8)
        assert "CUDA: untouched in this process" in await editor.hover("main.py", 7)
        assert "the parent used CUDA before the fork" in await editor.hover("library.py", 5)
        assert await editor.hover("library.py", 2) == ""
        assert await editor.hints("main.py") == [(8, "1 process by fork; CUDA used before: line 7")]
        # This editor says nothing of hints, so it is offered lenses as well.
        assert await editor.lenses("main.py") == [(8, "1 process by fork; CUDA used before: line 7")]
        # Unsaved, and in another file than the finding.
        editor.edit("library.py", ON_CPU)
        await editor.until(lambda: not editor.codes("main.py"))
        editor.edit("library.py", "\n" + LIBRARY)
        await editor.until(lambda: editor.codes("main.py"))
        lines = [one.location.range.start.line for one in editor.diagnostics("main.py")[0].related_information]
        assert 5 in lines
        # Closed without saving: the disk counts again.
        editor.edit("library.py", ON_CPU)
        await editor.until(lambda: not editor.codes("main.py"))
        editor.close("library.py")
        await editor.until(lambda: editor.codes("main.py"))
        (project / "library.py").write_text(ON_CPU)
        editor.touched("library.py")
        await editor.until(lambda: not editor.codes("main.py"))
        assert editor.messages == []

    edit_session(project, play, apart=True)


def test_open_files_come_first(project: Path, forked: str) -> None:
    """What is open is shown before the rest of the project, and stays when that is known."""
    for i in range(3):
        (project / f"another{i}.py").write_text(forked, encoding="utf-8")

    async def play(editor: Editor) -> None:
        editor.open("main.py")
        await editor.until(lambda: editor.codes("another2.py"))
        assert editor.order[0] == editor.uri("main.py")
        assert editor.order.index(editor.uri("another0.py")) > 0
        assert editor.codes("main.py") == ["CUD101"]
        await editor.with_repairs("main.py")
        await editor.clean("main.py", editor.edit("main.py", "x = 1\n"))
        assert editor.codes("another2.py") == ["CUD101"]
        (project / "another2.py").write_text("x = 1\n")
        editor.touched("another2.py")
        await editor.until(lambda: not editor.codes("another2.py"))

    edit_session(project, play)


def test_what_is_open_is_asked_for_before_all_else(project: Path, tmp_path: Path) -> None:
    """The same, seen from the process that analyses: what it is asked, in order."""
    (project / "other.py").write_text("x = 1\n")
    options = Options()
    texts = {str(project / "main.py"): MAIN.encode()}
    first = _check(Check((str(project),), texts, repair=False, first=True), options)
    whole = _check(Check((str(project),), texts, repair=False), options)
    assert (first.about, whole.about) == (frozenset(texts), None)
    assert first.report.findings == whole.report.findings != ()
    loose = tmp_path / "loose"
    loose.mkdir()
    texts = {str(loose / "main.py"): b"x = 1\n"}
    assert _check(Check((str(loose),), texts, repair=False, first=True), options).about is None


def test_scripts_are_open_whatever_their_names_and_what_is_left_out_stays_so(project: Path, forked: str) -> None:
    (project / "pyproject.toml").write_text('[tool.cudalint]\nextend-exclude = ["generated.py"]\n')
    for name in ("run", "window.pyw", "generated.py", "stub.pyi"):
        (project / name).write_text("#!/usr/bin/env python3\n" + forked, encoding="utf-8")
        (project / name).chmod(0o755)

    async def play(editor: Editor) -> None:
        for name in ("run", "window.pyw", "generated.py", "stub.pyi"):
            editor.open(name)
        await editor.with_repairs("run")
        assert editor.codes("window.pyw") == ["CUD101"]
        await editor.clean("run", editor.edit("run", "#!/usr/bin/env python3\nx = 1\n"))
        await editor.until(lambda: editor.codes("main.py"))
        assert not editor.codes("generated.py")
        assert not editor.codes("stub.pyi")
        assert not any(uri.endswith(("generated.py", "stub.pyi")) and shown.diagnostics for uri, shown in editor.all)
        assert editor.messages == []

    edit_session(project, play)


def test_what_was_never_saved_is_checked_in_the_first_folder(project: Path) -> None:
    async def play(editor: Editor) -> None:
        draft = "untitled:Untitled-1"
        editor.open(draft, MAIN)
        (found,) = await editor.with_repairs(draft)
        assert (found.code, found.range.start.line) == ("CUD101", 7)
        assert editor.uri("library.py") in {one.location.uri for one in found.related_information}
        repair, _ = await editor.actions(draft, ["quickfix"])
        assert 'get_context("spawn")' in applied(MAIN, repair.edit, draft)
        assert "# cuda-in-forked-worker (CUD101)" in await editor.hover(draft, 8)
        await editor.clean(draft, editor.edit(draft, "x = 1\n"))
        editor.edit(draft, MAIN)
        await editor.until(lambda: editor.codes(draft))
        editor.close(draft)
        await editor.until(lambda: not editor.codes(draft))
        assert sorted(path.name for path in project.iterdir() if path.suffix) == [
            "library.py", "main.py", "pyproject.toml",
        ]  # fmt: skip

    edit_session(project, play)


def test_repairs_are_offered_by_how_far_they_can_be_trusted(project: Path) -> None:
    unsafe = MAIN.replace("torch.zeros(1", "import vendor\n    vendor.prepare()\n    torch.zeros(1")

    async def play(editor: Editor) -> None:
        editor.open("main.py")
        (found,) = await editor.with_repairs("main.py")
        assert found.data["fix"]["applicability"] == "safe"
        safe, silence = await editor.actions("main.py", ["quickfix"])
        assert safe.is_preferred
        repaired = applied(MAIN, safe.edit, editor.uri("main.py"))
        assert 'get_context("spawn")' in repaired
        ignored = applied(MAIN, silence.edit, editor.uri("main.py"))
        assert ignored == MAIN.replace("[1, 2, 3]))", "[1, 2, 3]))  # noqa: CUD101")
        (every,) = await editor.actions("main.py", ["source.fixAll"])
        assert (every.kind, every.edit) == ("source.fixAll.cudalint", None)
        every = await editor.client.code_action_resolve_async(every)
        assert applied(MAIN, every.edit, editor.uri("main.py")) == repaired
        await editor.clean("main.py", editor.edit("main.py", ignored))
        # What was found of another text offers nothing.
        assert await editor.actions("main.py") == []
        editor.edit("main.py", unsafe)
        await editor.with_repairs("main.py")
        (maybe, _) = await editor.actions("main.py", ["quickfix"])
        assert not maybe.is_preferred
        assert "(not safe: " in maybe.title

    edit_session(project, play)


def test_an_editor_that_knows_little_gets_all_it_can_use(project: Path) -> None:
    """No folders, no versions of documents, no progress, no actions that are completed later, nobody who watches."""
    settings = project / "pyproject.toml"

    async def play(editor: Editor) -> None:
        editor.open("main.py")
        await editor.with_repairs("main.py")
        safe, silence = await editor.actions("main.py", ["quickfix"])
        for action in (safe, silence):
            assert action.edit is not None
            assert action.edit.document_changes is None
        repaired = applied(MAIN, safe.edit, editor.uri("main.py"))
        assert 'get_context("spawn")' in repaired
        assert applied(MAIN, silence.edit, editor.uri("main.py")).endswith("# noqa: CUD101\n")
        # It could not complete the action, so it is given all of it where it asks for that.
        (every,) = await editor.actions("main.py", ["source.fixAll"])
        assert applied(MAIN, every.edit, editor.uri("main.py")) == repaired
        assert [one.kind for one in await editor.actions("main.py")] == ["quickfix", "quickfix"]
        settings.write_text('[tool.cudalint]\nignore = ["CUD101"]\n')
        editor.save("pyproject.toml")
        await editor.until(lambda: not editor.codes("main.py"))
        settings.write_text("[tool.cudalint]\n")
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
        await editor.until(lambda: editor.codes("main.py"))
        assert (editor.messages, editor.progress, editor.watched) == ([], [], [])
        assert await editor.lenses("library.py") == []  # it is not open

    edit_session(project, play, support=types.ClientCapabilities())


def test_folders_come_and_go_and_files_may_lie_in_none(project: Path, tmp_path: Path, forked: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").mkdir()
    (other / "train.py").write_text(forked)
    single = tmp_path / "single.py"
    single.write_text(forked)

    def folders(editor: Editor, added: list[Path], removed: list[Path]) -> None:
        event = types.WorkspaceFoldersChangeEvent(
            [types.WorkspaceFolder(one.as_uri(), one.name) for one in added],
            [types.WorkspaceFolder(one.as_uri(), one.name) for one in removed],
        )
        editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))

    async def play(editor: Editor) -> None:
        await editor.until(lambda: editor.codes("main.py"))
        assert not editor.codes("../other/train.py")
        folders(editor, [other], [])
        await editor.until(lambda: (other / "train.py").as_uri() in editor.shown)
        folders(editor, [], [other])
        await editor.until(lambda: not editor.shown[(other / "train.py").as_uri()].diagnostics)
        editor.root = tmp_path
        editor.open("single.py")
        await editor.until(lambda: editor.codes("single.py"))
        editor.close("single.py")
        await editor.until(lambda: not editor.codes("single.py"))
        # New, and not on the disk yet.
        editor.open("new.py", forked)
        await editor.until(lambda: editor.codes("new.py"))

    edit_session(project, play)


def test_cells_of_a_notebook_are_documents_of_their_own(project: Path) -> None:
    cells = [
        "import multiprocessing, torch\nfrom library import work",
        "torch.cuda.init()",
        "%time x = '\N{SNAKE}'\nprint(multiprocessing.get_context('fork').Pool(1).map(work, [1]))",
    ]

    async def play(editor: Editor) -> None:
        (project / "main.py").write_text("import library\n")
        (project / "a.ipynb").write_text(notebook(*cells))
        editor.touched("a.ipynb")
        (found,) = await editor.until(lambda: editor.diagnostics("a.ipynb"))
        rows = (project / "a.ipynb").read_text().split("\n")
        assert "Pool(1)" in rows[found.range.start.line]  # it is not open: the row of the file
        first, second, third = names = editor.open_notebook("a.ipynb", cells)
        (found,) = await editor.with_repairs(third)
        await editor.until(lambda: not editor.diagnostics("a.ipynb"))
        assert (found.range.start, found.range.end) == (types.Position(1, 6), types.Position(1, 64))
        assert second in {one.location.uri for one in found.related_information}
        repair, silence = await editor.actions(third, ["quickfix"])
        assert "get_context('spawn')" in applied(cells[2], repair.edit, third)
        assert applied(cells[2], silence.edit, third).endswith("[1]))  # noqa: CUD101")
        (every,) = await editor.actions(third, ["source.fixAll"])
        every = await editor.client.code_action_resolve_async(every)
        assert applied(cells[2], every.edit, third) == applied(cells[2], repair.edit, third)
        assert "# cuda-in-forked-worker" in await editor.hover(third, 2)
        assert "initialised by torch" in await editor.hover(third, 1)
        assert await editor.hints(third) == [(2, "1 process by fork; CUDA used before: cell 2:1")]
        assert await editor.hints(second) == []
        # In units: after the snake, which is two of them.
        end = types.Position(0, len("%time x = '") + 3)
        editor.edit_cell("a.ipynb", third, 2, types.Range(types.Position(0, 0), end), "import")
        await editor.until(lambda: editor.codes(third) == ["CUD901"])
        editor.edit_cell("a.ipynb", third, 3, types.Range(types.Position(0, 0), types.Position(0, 6)), "")
        await editor.until(lambda: editor.codes(third) == ["CUD101"])
        editor.remove_cell("a.ipynb", 1, second)
        await editor.until(lambda: not editor.codes(third))
        editor.close_notebook("a.ipynb", [first, third])
        await editor.until(lambda: editor.codes("a.ipynb"))
        assert not any(editor.codes(name) for name in names)

    edit_session(project, play)


def test_a_notebook_may_be_open_as_one_text(project: Path) -> None:
    """As in JupyterLab, which has such texts in a folder of its own."""
    name = ".virtual_documents/a.ipynb"
    text = (
        "import multiprocessing, torch\nfrom library import work\n\n\ntorch.cuda.init()\n"
        "print(multiprocessing.get_context('fork').Pool(1).map(work, [1]))\n"
    )

    async def play(editor: Editor) -> None:
        (project / "main.py").write_text("import library\n")
        (project / "a.ipynb").write_text(notebook("x = 1", *text.split("\n\n\n")))
        await editor.until(lambda: editor.codes("a.ipynb"))
        editor.open(name, text)
        (found,) = await editor.with_repairs(name)
        assert (found.code, found.range.start) == ("CUD101", types.Position(5, 6))
        repair, _ = await editor.actions(name, ["quickfix"])
        assert "get_context('spawn')" in applied(text, repair.edit, editor.uri(name))
        assert "CUDA: untouched in this process" in await editor.hover(name, 5)
        await editor.clean(name, editor.edit(name, "x = 1\n"))

    edit_session(project, play)


def test_a_cell_that_is_run_again_is_judged_as_it_was_run(project: Path) -> None:
    cells = [
        "import multiprocessing, torch\nfrom library import work",
        "print(multiprocessing.get_context('fork').Pool(1).map(work, [1]))",
        "torch.cuda.init()",
    ]

    async def play(editor: Editor) -> None:
        (project / "main.py").write_text("import library\n")
        (project / "a.ipynb").write_text(notebook(*cells))
        names = editor.open_notebook("a.ipynb", cells)
        for count, cell in enumerate(names, 1):
            editor.run_cell("a.ipynb", cell, count)
        await editor.until(lambda: names[1] in editor.shown)
        assert editor.codes(names[1]) == []
        editor.run_cell("a.ipynb", names[1], 4)
        (found,) = await editor.until(lambda: editor.diagnostics(names[1]))
        assert (found.code, found.severity) == ("CUD101", types.DiagnosticSeverity.Information)
        assert names[2] in {one.location.uri for one in found.related_information}

    edit_session(project, play)


SLOW = "import argparse, multiprocessing, torch\n\ndef work(n):\n    return torch.ones(n, device='cuda')\n\n" + "".join(
    f"def f{i}(args):\n"
    + "".join(f"    if args.a{j}:\n        torch.zeros({j}, device='cuda:{j}')\n" for j in range(40))
    + (f"    f{i + 1}(args)\n    for x in args.xs:\n        f{i + 1}(x)\n" if i < 59 else "")
    + "    multiprocessing.Pool(2).map(work, [1])\n"
    for i in range(60)
)


def test_settings_and_texts_that_change_supersede_what_is_under_way(project: Path) -> None:
    settings = project / "pyproject.toml"

    async def play(editor: Editor) -> None:
        await editor.until(lambda: editor.codes("main.py"))
        await editor.until(lambda: editor.watched)
        settings.write_text('[tool.cudalint]\nignore = ["CUD101"]\n')
        editor.touched("pyproject.toml")
        await editor.until(lambda: not editor.codes("main.py"))
        settings.write_text("[tool.cudalint]\nignoer = []\n")
        editor.touched("pyproject.toml")
        await editor.until(lambda: editor.messages)
        assert "unknown key 'ignoer'" in editor.messages[0]
        settings.write_text("[tool.cudalint]\n")
        editor.touched("pyproject.toml")
        await editor.until(lambda: editor.codes("main.py"))
        assert len(editor.messages) == 1
        before = editor.progress.count("begin")
        editor.open("main.py", SLOW + "\nf0(argparse.ArgumentParser().parse_args())\n")
        await editor.until(lambda: editor.progress.count("begin") > before)
        await editor.clean("main.py", editor.edit("main.py", "x = 1\n"))
        assert (editor.uri("main.py"), 1) not in editor.history
        await editor.until(lambda: editor.progress.count("end") == editor.progress.count("begin"))

    edit_session(project, play)


def test_what_is_not_python_is_shown_where_it_ends_and_nothing_of_the_folder_is_run(project: Path) -> None:
    for name in ("json", "asyncio", "pickle", "pygls", "libcst", "signal"):
        (project / f"{name}.py").write_text("open('ran', 'w')\n")

    async def play(editor: Editor) -> None:
        editor.open("library.py", "import torch\n\n\ndef work(n:\n    pass\n")
        await editor.until(lambda: editor.codes("library.py"))
        assert editor.codes("library.py") == ["CUD901"]
        assert editor.diagnostics("library.py")[0].range.start.line == 3

    edit_session(project, play, apart=True)
    assert not (project / "ran").exists()


def test_an_analysis_that_dies_is_said_and_started_again() -> None:
    dies = "import sys; sys.stdin.buffer.read(9); sys.exit(3)"

    async def ask() -> None:
        analyst = Analyst((sys.executable, "-c", dies))
        for _ in range(2):
            assert await analyst.ask(Look("/a.py", {})) == Refused("the analysis ended unexpectedly (exit code 3)")
        await analyst.close()

    asyncio.run(ask())


def test_an_analysis_that_answers_nothing_more_is_ended() -> None:
    """It closed its pipe, and would never end."""
    stays = "import os, sys, time; sys.stdin.buffer.read(9); os.close(1); time.sleep(600)"

    async def ask() -> None:
        analyst = Analyst((sys.executable, "-c", stays))
        answer = await analyst.ask(Look("/a.py", {}))
        assert answer == Refused(f"the analysis ended unexpectedly (exit code {-signal.SIGKILL})")
        await analyst.close()

    asyncio.run(ask())


SERVE = "import sys; from cudalint.opening import Options; from cudalint.server.worker import serve; serve({options})"


def answers(jobs: list[Job], options: str = "Options()") -> list[Answer]:
    """What a process answers to jobs, after which it ends by itself."""
    command = [sys.executable, "-c", SERVE.format(options=options)]
    given = b"".join(map(packed, jobs))
    done = subprocess.run(command, input=given, capture_output=True, env=environment(), check=True, timeout=60)
    stream, told = io.BytesIO(done.stdout), []
    while header := stream.read(HEADER_BYTES):
        told.append(pickle.loads(stream.read(int.from_bytes(header, "big"))))
    return told


def test_the_process_that_analyses_answers_one_job_after_the_other(project: Path) -> None:
    path, book = str(project / "main.py"), str(project / "book.ipynb")
    cells = ("import multiprocessing, torch\nfrom library import work", MAIN.partition("work\n\n")[2], "x = 1")
    (project / "book.ipynb").write_text(notebook(*cells), "utf-8")
    gone = str(project / "gone.py")
    checked, found, repaired, unrepaired, seen, lost = answers(
        [
            Check((str(project),), {path: MAIN.encode()}, repair=False),
            Check((str(project.parent),), {}, repair=True),
            Repair(path, {}),
            Repair(str(project / "library.py"), {}),
            Look(path, {}),
            Look(gone, {}),
        ]
    )
    assert isinstance(checked, Checked)
    assert [one.code for one in checked.report.findings][:1] == ["CUD101"]
    assert isinstance(found, Checked)
    assert found.report.findings == ()
    assert isinstance(repaired, Repaired)
    before, after = repaired.texts[0]
    assert (before, 'get_context("spawn")' in after) == (MAIN, True)
    assert unrepaired == Repaired({})
    assert isinstance(seen, Seen)
    assert lost == Refused(f"no such file or directory: {gone}")
    (in_cells,) = answers([Repair(book, {})])
    assert isinstance(in_cells, Repaired)
    ((old, new),) = in_cells.texts.values()
    assert new == old.replace('"fork"', '"spawn"') != old


def test_what_the_process_that_analyses_cannot_do_is_said_and_ends_nothing(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.cudalint]\nselekt = []\n")
    refused, again = answers([Check((str(project),), {}, repair=False), Look(str(project / "main.py"), {})])
    assert isinstance(refused, Refused)
    assert "selekt" in refused.message
    assert again == refused


def test_who_is_no_longer_waited_for_gives_no_answer_to_the_next_question() -> None:
    # It answers the first job after a minute, and any other at once.
    slow = (
        "import sys, time; from cudalint.server.jobs import *; from cudalint.server.worker import _next\n"
        "while (job := _next(sys.stdin.buffer)) is not None:\n"
        "    time.sleep(60 if job.path == 'slow' else 0)\n"
        "    sys.stdout.buffer.write(packed(Refused(job.path)))\n"
        "    sys.stdout.buffer.flush()\n"
    )

    async def ask() -> None:
        analyst = Analyst((sys.executable, "-c", slow))
        first = asyncio.ensure_future(analyst.ask(Look("slow", {})))
        await asyncio.sleep(0.1)
        for _ in range(2):  # impatient editors cancel more than once
            first.cancel()
            await asyncio.sleep(0)
        assert await analyst.ask(Look("next", {})) == Refused("next")
        assert first.cancelled()
        await analyst.close()

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("encoding", "column"),
    [
        (types.PositionEncodingKind.Utf8, 7),
        (types.PositionEncodingKind.Utf16, 4),
        (types.PositionEncodingKind.Utf32, 3),
    ],
)
def test_columns_are_counted_as_the_editor_does(encoding: types.PositionEncodingKind, column: int) -> None:
    text = "x\r\n\N{SNAKE}\u00e9\fz"  # a form feed ends no row
    places = Places(text, encoding)
    place = places.position(Position(2, 4))
    assert (place.line, place.character) == (1, column)
    assert text[places.offset(place)] == "z"
    assert places.offset(types.Position(9, 9)) == len(text)
    edit = types.TextDocumentContentChangePartial(types.Range(types.Position(0, 1), place), "")
    assert changed(text, [edit], encoding) == "xz"
    assert changed(text, [types.TextDocumentContentChangeWholeDocument("y")], encoding) == "y"


def test_places_that_an_older_text_had_are_at_its_end() -> None:
    places = Places("a\nbc", types.PositionEncodingKind.Utf16)
    assert places.position(Position(9, 1)) == types.Position(1, 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\r\nb\r\n", "a\r\nx\r\nb\r\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\nb", "a\r\nb"),
        ("", "x"),
        ("\r", "\r\n"),
        ("aa", "a"),
    ],
)
def test_an_edit_parts_no_end_of_a_row(before: str, after: str) -> None:
    edit = text_edit(before, after, types.PositionEncodingKind.Utf16)
    change = types.TextDocumentContentChangePartial(edit.range, edit.new_text)
    assert changed(before, [change], types.PositionEncodingKind.Utf16) == after


def opened_document(documents: Documents, uri: str, text: str = "x = 1\n", language: str = "python") -> str | None:
    return documents.open(types.TextDocumentItem(uri, language, 1, text))


def test_only_python_that_is_or_could_be_a_file_is_ours(tmp_path: Path) -> None:
    documents = Documents(lambda: str(tmp_path))
    assert opened_document(documents, (tmp_path / "a.md").as_uri(), language="markdown") is None
    assert opened_document(documents, (tmp_path / "gone").as_uri()) is None  # no suffix says that it is a program
    assert opened_document(documents, "git:/a.py?HEAD") is None
    assert list(documents) == []
    for nothing in (
        documents.put("git:/a.py?HEAD", 2, ""),
        documents.drop("git:/a.py?HEAD"),
        documents.part("git:/a.py"),
    ):
        assert nothing is None
    assert documents.put_notebook((tmp_path / "a.py").as_uri(), []) is None
    identifier = types.VersionedTextDocumentIdentifier(2, "cell:1")
    documents.change_cell(
        identifier, [types.TextDocumentContentChangeWholeDocument("y")], types.PositionEncodingKind.Utf16
    )
    assert documents.put_notebook(
        (tmp_path / "a.ipynb").as_uri(), [types.NotebookCell(types.NotebookCellKind.Code, "cell:1")]
    )
    assert documents.part("cell:1") is None


def test_drafts_take_the_place_of_no_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    documents = Documents(lambda: str(tmp_path))
    paths = [opened_document(documents, uri) for uri in ("untitled:train.py", "untitled:train", "untitled:train%20it")]
    assert paths == [str(tmp_path / name) for name in ("train_.py", "train__.py", "train it.py")]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("# coding: latin-1\nx = '\u00e9'\n", b"# coding: latin-1\nx = '\xe9'\n"),
        ("# coding: latin-1\nx = '\u4e00'\n", b"# coding: latin-1\nx = '\xe4\xb8\x80'\n"),
        ("# coding: nonsense\nx = 1\n", b"# coding: nonsense\nx = 1\n"),
        ("\ufeffx = 1\n", b"\xef\xbb\xbfx = 1\n"),
    ],
)
def test_a_document_is_read_as_it_would_be_saved(tmp_path: Path, text: str, data: bytes) -> None:
    documents = Documents(lambda: str(tmp_path))
    path = opened_document(documents, (tmp_path / "a.py").as_uri(), text)
    assert path is not None
    assert documents.snapshot()[path].data == data


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None; from cudalint.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "server"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "cudalint: error: the language server needs pygls: pip install 'cudalint[server]'\n"


def _said(told: object) -> bytes:
    data = json.dumps(told).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


def served(folder: Path, given: bytes) -> subprocess.CompletedProcess[bytes]:
    """A server that is told this at once, and what it answers until it ends."""
    return subprocess.run(
        [sys.executable, "-m", "cudalint", "server"],
        cwd=folder,
        env=environment(),
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )


BEGIN = _said(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"processId": None, "rootUri": None, "capabilities": {}},
    }
) + _said({"jsonrpc": "2.0", "method": "initialized", "params": {}})
SHUT_DOWN, EXIT = _said({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}), _said({"jsonrpc": "2.0", "method": "exit"})
HOVERS = {"textDocument": {"uri": "file:///main.py"}, "position": {"line": 3, "character": 3}}


@pytest.mark.parametrize(
    ("last", "code"),
    [
        pytest.param(SHUT_DOWN + EXIT, 0, id="before the answer to shutdown"),
        pytest.param(EXIT, 1, id="without shutdown"),
        pytest.param(
            _said({"jsonrpc": "2.0", "id": 3, "method": "textDocument/hover", "params": HOVERS}) + EXIT,
            1,
            id="before the answer to a question",
        ),
        pytest.param(b"", None, id="by its own death"),
        pytest.param(b"Content-Length: 30\r\n\r\n{", None, id="by its own death in a message"),
    ],
)
def test_an_editor_that_ends_it_without_waiting_is_told_of_no_trouble(
    project: Path, last: bytes, code: int | None
) -> None:
    document = {"uri": (project / "main.py").as_uri(), "languageId": "python", "version": 1, "text": MAIN}
    opened = _said({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
    with subprocess.Popen(
        [sys.executable, "-m", "cudalint", "server"],
        cwd=project,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.write(BEGIN + opened + last)
        server.stdin.flush()
        if code is None:
            server.stdin.close()
        # Else an editor keeps its end open until the server has gone.
        said = server.stderr.read().decode()
    assert (server.returncode, said) == (code or 0, "")


def test_a_row_of_a_header_without_an_end_fills_no_memory() -> None:
    asked = FromEditor(io.BytesIO(b"X" * 100_000 + b"\r\nContent-Length: 2\r\n"))
    rows = list(iter(asked.readline, b""))
    assert max(map(len, rows)) <= MOST_OF_A_ROW
    assert rows[-1] == b"Content-Length: 2\r\n"


def test_a_change_that_changes_nothing_is_no_trouble(project: Path) -> None:
    async def play(editor: Editor) -> None:
        editor.open("main.py")
        await editor.until(lambda: editor.diagnostics("main.py"))
        document = types.VersionedTextDocumentIdentifier(2, editor.uri("main.py"))
        editor.client.text_document_did_change(types.DidChangeTextDocumentParams(document, []))
        assert await editor.hover("main.py", 1) is not None
        assert editor.messages == []

    edit_session(project, play)


@pytest.mark.parametrize(
    "later",
    [
        {"textDocument": {"documentSymbol": {"symbolKind": {"valueSet": [1, 99]}}}},
        {"textDocument": {"publishDiagnostics": {"tagSupport": {"valueSet": [1, 7]}}}, "window": {"later": 3}},
        {"workspace": {"workspaceEdit": {"documentChanges": True, "failureHandling": "later"}}, "later": [1]},
    ],
)
def test_an_editor_that_can_do_what_nobody_knows_yet_is_served(project: Path, later: dict[str, object]) -> None:
    known = {"general": {"positionEncodings": ["utf-32"]}}
    params = {"processId": None, "rootUri": project.as_uri(), "capabilities": {**known, **later}}
    begin = _said({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    done = served(project, begin + SHUT_DOWN + EXIT)
    assert (done.returncode, done.stderr) == (0, b"")
    # What it can do besides counts.
    assert b'"positionEncoding": "utf-32"' in done.stdout


def test_a_question_that_cannot_be_understood_is_answered(project: Path) -> None:
    asked: list[dict[str, object]] = [
        {"id": 5, "method": "textDocument/hover", "params": [1, 2]},
        {"id": 6, "method": "textDocument/hover", "params": {"textDocument": 3}},
        {"id": 7, "method": "no/such", "params": {}},
        {"id": 8, "method": "no/such"},
    ]
    done = served(project, BEGIN + b"".join(_said({"jsonrpc": "2.0", **one}) for one in asked) + SHUT_DOWN + EXIT)
    assert done.returncode == 0
    answers = (json.loads(part[part.index(b"{") :]) for part in done.stdout.split(b"Content-Length: ")[1:])
    codes = {one["id"]: one["error"]["code"] for one in answers if "error" in one}
    assert codes == {5: -32602, 6: -32602, 7: -32601, 8: -32601}


def test_what_is_told_in_a_way_that_nobody_knows_is_passed_over(project: Path) -> None:
    told = [{"method": "no/such"}, {"method": "$/no/such"}, {"method": "no/such", "params": [1]}]
    done = served(project, BEGIN + b"".join(_said({"jsonrpc": "2.0", **one}) for one in told) + SHUT_DOWN + EXIT)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"window/showMessage" not in done.stdout


@pytest.mark.parametrize("length", [10**14, 10**26])
def test_a_message_that_is_longer_than_any_ends_it(tmp_path: Path, length: int) -> None:
    done = served(tmp_path, BEGIN + b"Content-Length: %d\r\n\r\n{}" % length)
    assert (done.returncode, done.stderr) == (0, b"")
