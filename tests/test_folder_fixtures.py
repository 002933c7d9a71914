"""Fixtures of several files: their findings, the way of each trace, what functions were seen to do, and how they end.

`python test_folder_fixtures.py` writes the snapshots anew; read the difference before it is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fixture_markers import ROOT, Expected, expected, folder_of, folders, header
from paper.fixture import check
from paper.plugin import Unchanged

from cudalint.finding import Finding
from cudalint.project.analysis import Options, analyse
from cudalint.project.beliefs import functions
from cudalint.text.source import SourceFile

TRACE, FUNCTIONS = "trace.txt", "functions.txt"


def sources(folder: Path) -> list[SourceFile]:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    return [SourceFile(str(path), text, text.encode()) for path, text in texts.items()]


def name(main: Path) -> str:
    return str(folder_of(main).relative_to(ROOT))


def place(path: str, row: int, folder: Path) -> str:
    return f"{Path(path).relative_to(folder).as_posix()}:{row}"


def trace(findings: tuple[Finding, ...], folder: Path) -> str:
    """Each finding with the steps that lead there: segment, place, process and what happens."""
    lines: list[str] = []
    for one in findings:
        lines.append(f"{one.code} {one.severity.value} {place(one.span.filename, one.span.start.row, folder)}")
        for step in one.trace:
            at = place(step.span.filename, step.span.start.row, folder)
            lines.append(f"  {step.kind.value:<6} {at} [{step.process}] {step.message}")
    return "\n".join(lines) + "\n"


def seen(folder: Path) -> str:
    return "\n".join(functions(sources(folder), Options(), str(folder))) + "\n"


@pytest.mark.parametrize("main", folders(), ids=name)
def test_findings_match_the_markers_and_traces_go_the_known_way(main: Path) -> None:
    folder = folder_of(main)
    found = analyse(sources(folder), Options(), root=str(folder)).findings
    got = {(f.span.filename, Expected(f.code, f.span.start.row, f.span.start.column)) for f in found}
    assert got == {(s.path, e) for s in sources(folder) for e in expected(s.text)}
    broken = folder.name.startswith("broken_")
    assert (folder / TRACE).is_file() == broken
    if broken:
        assert folder.parent.name in {f.code for f in found}
        assert trace(found, folder) == (folder / TRACE).read_text(encoding="utf-8")


@pytest.mark.parametrize("main", folders(), ids=name)
def test_the_program_ends_as_its_header_says(main: Path, unchanged: Unchanged) -> None:
    assert isinstance(header(main.read_text(encoding="utf-8")).get("gpus"), int)
    if not unchanged(contents(main), code=("paper.fixture",)):
        assert check(main) == []


def contents(main: Path) -> dict[str, str]:
    """All files of a fixture, but for what cudalint says of them."""
    folder = folder_of(main)
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if path.name not in (TRACE, FUNCTIONS)
    }


@pytest.mark.parametrize("snapshot", sorted(ROOT.glob(f"*/*/{FUNCTIONS}")), ids=lambda p: p.parent.name)
def test_functions_are_seen_to_do_what_they_did(snapshot: Path) -> None:
    assert seen(snapshot.parent) == snapshot.read_text(encoding="utf-8")


def test_every_folder_has_one_main_program() -> None:
    tops = {p for p in ROOT.glob("*/*") if p.is_dir() and p.name.startswith(("broken_", "ok_"))}
    assert sorted(tops) == [folder_of(main) for main in folders()]


def written() -> Iterator[Path]:
    """The snapshots, written anew; those of functions only where there is one."""
    for main in folders():
        folder = folder_of(main)
        if folder.name.startswith("broken_"):
            found = analyse(sources(folder), Options(), root=str(folder)).findings
            (folder / TRACE).write_text(trace(found, folder), encoding="utf-8")
            yield folder / TRACE
        if (folder / FUNCTIONS).exists():
            (folder / FUNCTIONS).write_text(seen(folder), encoding="utf-8")
            yield folder / FUNCTIONS


if __name__ == "__main__":
    print("\n".join(str(path) for path in written()))
