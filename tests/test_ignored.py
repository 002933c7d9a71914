"""What a .gitignore leaves out, held against git itself, and rows that are made to cost."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.ignored import Ignored

Run = Callable[..., "subprocess.CompletedProcess[str]"]

PATHS = (
    *("a", "b", "ab.py", "aab/a.py", "aab/b-/a.py", "x y/a b", "]/!a", "#a/A/z", "é/é.py", "build/lib/a.py"),
    *("deep/er/build/b.py", "a-b/c/a-b", "0/1/2/3/4", "new\nline/a.py", "Z/[x].py", "*/b", "e\\f/g"),
)
ROWS = (
    *("a", "/a", "a/", "!a", "*.py\n!a.py", "build/", "/build", "build/**", "**/build", "**/build/**", "deep/**/b.py"),
    *(
        "deep/**",
        "**",
        "**/",
        "*/",
        "*",
        "/*\n!/build",
        "build/*\n!build/lib",
        "build\n!build/lib",
        "x y ",
        "x y/",
        "a b\\ ",
    ),
    *("\\!a", "\\#a", "#a", "!", "/", "//", "", " ", "[!a]", "[^a]", "[a-c]*", "[z-a]", "[]]", "[!]]", "[a", "[", "[]"),
    *(
        "[[:alpha:]]",
        "[[:digit:]]/1",
        "[[:nothing:]]",
        "a\\",
        "\\*",
        "\\*/b",
        "[\\]]",
        "e\\\\f",
        "?",
        "é",
        "é/?.py",
        "??.py",
    ),
    *(
        "a**",
        "**b",
        "*a*b*",
        "a-?/c",
        "0/**/4",
        "0/**/**/4",
        "0/*/*/3",
        "0/*/4",
        "**/2/**",
        "\xef\xbb\xbfa",
        "[[]x].py",
    ),
)
PIECES = (
    "a",
    "b",
    "*",
    "?",
    "**",
    "[ab]",
    "[!a]",
    "[a-z]",
    "[]]",
    "[!]]",
    "[[:alpha:]]",
    ".py",
    "-",
    " ",
    "#",
    "é",
    "\\*",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "-q", top], check=True)
    for path in PATHS:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).touch()
    return top


def of_git(folder: Path, paths: list[str]) -> dict[str, bool]:
    asked = "".join(f"{path}\0" for path in paths)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"]
    done = subprocess.run(
        command, cwd=folder, input=asked.encode(), capture_output=True, env=environment, check=False
    ).stdout.decode()
    fields = done.split("\0")
    return {
        path: bool(source) and not pattern.startswith("!")
        for source, pattern, path in zip(fields[::4], fields[2::4], fields[3::4], strict=False)
    }


def held_against_git(folder: Path, text: str) -> None:
    (folder / ".gitignore").write_text(text, encoding="utf-8")
    there = sorted(path for path in folder.rglob("*") if path.parts[len(folder.parts)] not in (".git", ".gitignore"))
    names = {path.relative_to(folder).as_posix(): path.is_dir() for path in there}
    found = Ignored((folder / ".gitignore").read_bytes())
    # A walk does not go into a folder that is left out.
    beyond = {name: "/" in name and found.leaves_out(os.path.dirname(name)) for name in names}
    ours = {name: beyond[name] or bool(found.verdict(name, is_folder)) for name, is_folder in names.items()}
    assert ours == of_git(folder, list(names)), text


@pytest.mark.parametrize("text", ROWS)
def test_a_row_means_what_it_means_to_git(folder: Path, text: str) -> None:
    held_against_git(folder, text + "\n")


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_nobody_writes_mean_what_they_mean_to_git(folder: Path, seed: int) -> None:
    drawn = random.Random(seed)

    def name() -> str:
        return "**" if drawn.random() < 0.2 else "".join(drawn.choices(PIECES, k=drawn.choice((1, 1, 2, 3))))

    for _ in range(25):
        rows = ["/".join(name() for _ in range(drawn.choice((1, 1, 2, 3)))) for _ in range(drawn.choice((1, 2, 3)))]
        rows = [f"{drawn.choice(('', '', '!', '/'))}{row}{drawn.choice(('', '', '/'))}" for row in rows]
        # Git itself does not agree with what it says of these.
        held_against_git(folder, "\n".join(row for row in rows if "***" not in row) + "\n")


@pytest.mark.parametrize(
    "row",
    [
        "*a" * 60 + "b",
        "**/a/" * 300 + "b",
        "[a-z]*" * 100 + "b",
        "?*" * 100 + "b",
        "a" * 5_000_000,
        "*" * 5_000_000 + "b",
        "x\n" * 20_000 + "y",
    ],
    ids=["stars", "folders", "sets", "one and any", "long", "many stars", "many rows"],
)
def test_a_row_of_a_stranger_costs_a_look(run: Run, tmp_path: Path, row: str) -> None:
    deep = tmp_path.joinpath(*["a"] * 100)
    deep.mkdir(parents=True)
    (deep / ("a" * 240 + ".py")).write_text("import torch\ntorch.cuda.device(0)\n")
    (tmp_path / ".gitignore").write_text(f"{row}\n")
    began = time.process_time()
    assert run("check", str(tmp_path)).returncode == 1
    assert time.process_time() - began < 10


def test_a_row_that_is_no_pattern_is_passed_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.device(0)\n")
    (tmp_path / "b.py").write_text("import torch\ntorch.cuda.device(0)\n")
    (tmp_path / ".gitignore").write_bytes(b"[z-a]\n[\n[!\n\\\n[[:x:]]\n\0\n\xff\nb.py\n")
    done = run("check", "--output-format", "concise", str(tmp_path))
    assert [row.partition(":")[0] for row in done.stdout.splitlines() if "CUD" in row] == ["a.py"]
