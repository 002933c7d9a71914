"""Only what a git revision did not have, by a real git."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.history.git import Repository

Run = Callable[..., "subprocess.CompletedProcess[str]"]

_WHO = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str, text: str | None = None) -> str:
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env=os.environ | _WHO | nothing,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder: Path, message: str = "more") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


@pytest.fixture
def project(tmp_path: Path, forked: str) -> Path:
    """A repository with a project in a folder of it, which has two findings; one program is excluded."""
    folder = tmp_path / "app"
    for name in ("train.py", "src/serve.py", "old/first.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(forked, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.cudalint]\nextend-exclude = ["./old/*"]\n', encoding="utf-8")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "first")
    return folder


def found(run: Run, cwd: Path, *arguments: str) -> list[str]:
    done = run("check", "--output-format", "json", "-q", *arguments, cwd=cwd)
    assert done.stderr == ""
    return [str(Path(entry["filename"]).relative_to(cwd)) for entry in json.loads(done.stdout)]


def test_what_a_revision_had_is_not_reported(run: Run, project: Path, forked: str) -> None:
    assert found(run, project) == ["src/serve.py", "train.py"]
    assert found(run, project, "--since", "HEAD") == []
    assert found(run, project, "--since", "HEAD", "old/first.py") == []
    (project / "new.py").write_text(forked, encoding="utf-8")
    (project / "src/serve.py").rename(project / "src/a_server.py")
    (project / "train.py").rename(project / "a_train.py")
    changed = "# more\n" + forked.replace("map(work,", "map(\n work,")
    (project / "a_train.py").write_text(changed, encoding="utf-8")
    assert found(run, project, "--since", "HEAD") == ["new.py"]
    commit(project)
    assert found(run, project, "--since", "HEAD") == []
    assert found(run, project, "--since", "HEAD~1") == ["new.py"]
    assert found(run, project, "--since", "HEAD~1", "src") == []
    done = run("check", "--since", "HEAD~1", "--output-format=sarif", cwd=project)
    assert [one["baselineState"] for one in json.loads(done.stdout)["runs"][0]["results"]] == ["new"]


def test_a_function_that_moves_to_another_file_is_not_new(run: Run, project: Path, forked: str) -> None:
    work, main = forked.split("\n\nif __name__")
    program = f"{work}\n\ndef main():\n    {main.partition(':' + chr(10))[2].strip()}\n\n\nmain()\n"
    (project / "train.py").write_text(program, encoding="utf-8")
    commit(project)
    (project / "moved.py").write_text(program, encoding="utf-8")
    (project / "train.py").write_text("import moved\n", encoding="utf-8")
    assert found(run, project, "--since", "HEAD", "moved.py") == []


def test_a_change_elsewhere_makes_it_new_where_it_shows(run: Run, project: Path, forked: str) -> None:
    """Both sides are whole projects: what makes the finding lies in a file that is not named."""
    (project / "lib.py").write_text("def prepare():\n    return 1\n", encoding="utf-8")
    imported = forked.replace("import torch\n", "import lib\nimport torch\n")
    program = imported.replace('torch.zeros(1, device="cuda")', "lib.prepare()")
    (project / "train.py").write_text(program, encoding="utf-8")
    commit(project)
    assert found(run, project, "--since", "HEAD", "train.py") == []
    text = 'import torch\n\n\ndef prepare():\n    torch.zeros(1, device="cuda")\n'
    (project / "lib.py").write_text(text, encoding="utf-8")
    assert found(run, project, "--since", "HEAD", "train.py") == ["train.py"]


def state(folder: Path) -> tuple[str, bytes, dict[str, int]]:
    times = {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if ".git" not in path.parts}
    return git(folder, "status", "--porcelain"), (folder / ".git/index").read_bytes(), times


def test_neither_the_index_nor_the_work_tree_is_touched(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path.parent / f"{tmp_path.name}-temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    (project / "train.py").write_text("x = 1\n", encoding="utf-8")
    git(project, "add", "train.py")
    (project / "untracked.py").touch()
    before = state(tmp_path)
    # As in a hook of another repository.
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert found(run, project, "--since", "HEAD") == []
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert state(tmp_path) == before
    assert list(temporary.iterdir()) == []


def test_only_what_is_new_is_repaired_or_silenced(run: Run, project: Path, forked: str) -> None:
    (project / "new.py").write_text(forked, encoding="utf-8")
    assert run("check", "--since", "HEAD", "--add-noqa", cwd=project).stderr == "Silenced 1 finding.\n"
    assert (project / "train.py").read_text(encoding="utf-8") == forked
    assert "# noqa: CUD101" in (project / "new.py").read_text(encoding="utf-8")


def test_odd_names_links_and_programs(run: Run, project: Path, forked: str) -> None:
    for name in ("a\nb.py", "é f.py", "bin/train"):
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/usr/bin/env python3\n{forked}", encoding="utf-8")
        path.chmod(0o755)
    (project / "link.py").symlink_to("train.py")
    (project / "nowhere.py").symlink_to("/nowhere/x.py")
    commit(project)
    assert found(run, project, "--since", "HEAD") == []
    assert len(found(run, project, "--since", "HEAD~1")) == 4


@pytest.mark.parametrize("revision", ["nothing", "", "--all", "HEAD~9", "HEAD:app", "HEAD..HEAD", "-"])
def test_unknown_revisions(run: Run, project: Path, revision: str) -> None:
    done = run("check", f"--since={revision}", cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    said = f"--since {revision}: git knows no revision {revision!r}"
    assert done.stderr == f"cudalint: error: {' '.join(said.split())}\n"


def test_outside_of_git(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "a.py").touch()
    done = run("check", "--since", "HEAD")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--since HEAD: not a git repository" in done.stderr
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("check", "--since", "HEAD").stderr == "cudalint: error: --since HEAD: git is not installed\n"


def test_a_shallow_clone_says_so(run: Run, project: Path, tmp_path: Path) -> None:
    (project / "b.py").touch()
    commit(project)
    clone = tmp_path.parent / f"{tmp_path.name}-clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}", str(clone))
    assert found(run, clone / "app", "--since", "HEAD") == []
    done = run("check", "--since", "HEAD~1", cwd=clone)
    assert done.returncode == 2
    assert "git knows no revision 'HEAD~1'; this is a shallow clone: fetch more" in done.stderr


def test_a_repository_among_the_files_is_not_asked(run: Run, tmp_path: Path) -> None:
    """A folder that only looks like a repository may come with a configuration that names commands."""
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    done = run("check", "--since", "HEAD")
    assert done.returncode == 2
    assert "--since HEAD: cannot use bare repository" in done.stderr


def test_what_a_partial_clone_lacks_is_not_fetched(run: Run, project: Path, tmp_path: Path, forked: str) -> None:
    for version in ("one", "two"):
        (project / "train.py").write_text(f"{forked}# {version}\n", encoding="utf-8")
        commit(project)
    git(tmp_path, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path.parent / f"{tmp_path.name}-partial"
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{tmp_path}", str(clone))
    assert found(run, clone / "app", "--since", "HEAD") == []
    done = run("check", "--since", "HEAD~1", cwd=clone)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cudalint: error: --since HEAD~1: git has no content of app/train.py")
    # Had it been fetched, it would be there now.
    assert run("check", "--since", "HEAD~1", cwd=clone).returncode == 2


def test_a_project_that_is_named_by_a_link(run: Run, project: Path, tmp_path: Path, forked: str) -> None:
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(tmp_path)
    assert run("check", "--since", "HEAD", str(link / "app")).returncode == 0
    (project / "new.py").write_text(forked, encoding="utf-8")
    done = run("check", "--since", "HEAD", "--output-format=json", str(link / "app"))
    assert [entry["filename"] for entry in json.loads(done.stdout)] == [str(link / "app" / "new.py")]


def test_a_baseline_and_a_revision_together(run: Run, project: Path, forked: str) -> None:
    (project / "new.py").write_text(forked, encoding="utf-8")
    run("check", "--write-baseline", "known.json", cwd=project)
    (project / "newer.py").write_text(forked, encoding="utf-8")
    assert found(run, project, "--baseline", "known.json") == ["newer.py"]
    assert found(run, project, "--since", "HEAD", "--baseline", "known.json") == ["newer.py"]
    assert run("check", "--since", "HEAD", "--write-baseline", "x.json", cwd=project).returncode == 2
    assert run("check", "--since", "HEAD", "-", cwd=project, stdin="").returncode == 2


def test_folders_beside_the_project_are_those_of_the_revision(run: Run, project: Path, tmp_path: Path) -> None:
    library = tmp_path / "lib" / "devices.py"
    program = (
        "from multiprocessing import Pool\nimport devices\n\n\ndef work(n):\n    return devices.put(n)\n\n\n"
        'if __name__ == "__main__":\n    devices.put(0)\n    with Pool(2) as pool:\n        pool.map(work, [1])\n'
    )
    (project / "beside.py").write_text(program, encoding="utf-8")
    commit(tmp_path)
    library.parent.mkdir()
    (project / "pyproject.toml").write_text('[tool.cudalint]\nextra-paths = ["../lib"]\n', encoding="utf-8")
    # The folder is not there at all at the revision, and then as it was.
    library.write_text("def put(n):\n    return n\n", encoding="utf-8")
    assert found(run, project, "--since", "HEAD", "beside.py") == []
    commit(tmp_path)
    library.write_text("import torch\n\n\ndef put(n):\n    return torch.ones(n).cuda()\n", encoding="utf-8")
    assert found(run, project, "--since", "HEAD", "beside.py") == ["beside.py"]
    commit(tmp_path)
    assert found(run, project, "--since", "HEAD", "beside.py") == []


def test_what_nearer_settings_show_is_known_of_the_revision(run: Run, tmp_path: Path) -> None:
    nearer = {".": "ignore = ['CUD902']", "api": "extend-select = ['CUD902']"}
    for folder, settings in nearer.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "pyproject.toml").write_text(f"[tool.cudalint]\n{settings}\n", encoding="utf-8")
    path = tmp_path / "api" / "app.py"
    path.write_text("import torch\n\nprint()  # noqa: CUD305\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "first")
    assert run("check", "--since", "HEAD", ".").returncode == 0
    path.write_text(path.read_text() + "print(torch)  # noqa: CUD206\n", encoding="utf-8")
    done = run("check", "--since", "HEAD", "--output-format", "json", ".")
    (finding,) = json.loads(done.stdout)
    assert (finding["code"], "CUD206" in finding["message"]) == ("CUD902", True)


def test_submodules_are_as_the_revision_had_them(run: Run, project: Path, tmp_path: Path, forked: str) -> None:
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init", "-q")
    (part / "inner.py").write_text(forked, encoding="utf-8")
    commit(part)
    git(project, "submodule", "add", "-q", str(part), "lib/part")
    commit(project)
    assert run("check", "--since", "HEAD", cwd=project).returncode == 0
    (project / "lib" / "part" / "newer.py").write_text(forked, encoding="utf-8")
    commit(project / "lib" / "part")
    done = run("check", "--since", "HEAD", "--output-format", "concise", cwd=project)
    assert done.returncode == 1
    assert "newer.py:" in done.stdout.replace("\\", "/")
    assert "inner.py:" not in done.stdout
    # What was not fetched counts as new.
    git(project, "submodule", "deinit", "-q", "-f", "lib/part")
    (project / "lib" / "part").mkdir(exist_ok=True)
    (project / "lib" / "part" / "inner.py").write_text(forked, encoding="utf-8")
    assert run("check", "--since", "HEAD", cwd=project).returncode == 1


def test_a_submodule_among_other_files_is_left(tmp_path: Path, forked: str) -> None:
    """A link of one could lead the files of the other out of the folder where names differ in case only."""
    top, part = tmp_path / "top", tmp_path / "top" / "lib"
    part.mkdir(parents=True)
    for folder in (part, top):
        git(folder, "init", "-q")
    (part / "inner.py").write_text(forked, encoding="utf-8")
    commit(part)
    (top / "a.py").write_text(forked, encoding="utf-8")
    git(top, "add", "a.py")
    files, module = git(top, "write-tree").strip(), git(part, "rev-parse", "HEAD").strip()
    for other, shown in (("Lib", []), ("library", ["inner.py"])):
        rows = f"040000 tree {files}\t{other}\n160000 commit {module}\tlib\n"
        tree = git(top, "mktree", "--missing", text=rows).strip()
        made = tmp_path / other
        Repository(str(top)).write(
            git(top, "commit-tree", "-m", "x", tree).strip(), str(made), lambda path, program: True
        )
        assert sorted(path.name for path in made.rglob("*.py")) == ["a.py", *shown]


def test_a_repository_without_commits(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    done = run("check", "--since", "HEAD", ".")
    assert done.returncode == 2
    assert "git knows no revision 'HEAD'; nothing was committed here yet" in done.stderr
