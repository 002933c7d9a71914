"""Baselines: what is known is not shown, what is new is, and what has gone is said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.session import Session

Run = Callable[..., "subprocess.CompletedProcess[str]"]

KNOWN = "known.json"


@pytest.fixture
def project(tmp_path: Path, forked: str) -> Path:
    """Two programs with a finding each, both accepted."""
    for name in ("train.py", "src/serve.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(forked, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(f'[tool.cudalint]\nbaseline = "{KNOWN}"\n', encoding="utf-8")
    (tmp_path / KNOWN).write_text('{"kind": "cudalint-baseline", "version": 1, "findings": []}', encoding="utf-8")
    return tmp_path


@pytest.fixture
def accepted(run: Run, project: Path) -> Path:
    done = run("check", "--write-baseline", KNOWN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"Wrote 2 findings to {KNOWN}.\n")
    return project


def found(run: Run, *arguments: str, cwd: Path | None = None) -> list[str]:
    done = run("check", "--output-format", "json", *arguments, cwd=cwd)
    return [Path(entry["filename"]).name for entry in json.loads(done.stdout)]


def test_what_is_known_is_not_shown(run: Run, accepted: Path) -> None:
    done = run("check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "All checks passed! (2 known findings not shown)\n"
    assert found(run, "src", cwd=accepted) == []
    assert found(run, "--baseline", "") == ["serve.py", "train.py"]
    assert found(run, "--isolated", "--baseline", KNOWN) == []
    assert found(run, "--isolated") == ["serve.py", "train.py"]
    # Paths of a baseline count from where it lies, wherever a run begins.
    assert found(run, "--baseline", f"../{KNOWN}", ".", "..", cwd=accepted / "src") == []


def test_it_lasts_through_edits_renames_and_formatting(run: Run, accepted: Path, forked: str) -> None:
    (accepted / "src/serve.py").rename(accepted / "src/server.py")
    changed = forked.replace("import torch\n", "import torch\n\n# more\nX = 1\n").replace("map(work,", "map(\n  work,")
    (accepted / "train.py").write_text(changed, encoding="utf-8")
    done = run("check")
    assert (done.returncode, done.stderr) == (0, "")
    (accepted / "train.py").write_text(changed.replace("__main__", "__main__").replace("[1, 2, 3]", "[4]"))
    assert found(run) == ["train.py"]


def test_a_suspicion_that_is_certain_now_is_not_new(run: Run, accepted: Path) -> None:
    text = (accepted / KNOWN).read_text(encoding="utf-8")
    (accepted / KNOWN).write_text(text.replace("CUD101", "CUD102"), encoding="utf-8")
    done = run("check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_second_one_of_the_same_kind_is_new(run: Run, accepted: Path, forked: str) -> None:
    (accepted / "copy.py").write_text(forked, encoding="utf-8")
    done = run("check", "--output-format=concise")
    assert done.returncode == 1
    rows = done.stdout.splitlines()
    assert (rows[0].split(":")[0], rows[1]) == ("copy.py", "Found 1 error in 1 file (2 known findings not shown).")
    assert found(run, "copy.py") == ["copy.py"]


def test_what_has_gone_is_said_and_taken_out(run: Run, accepted: Path) -> None:
    (accepted / "train.py").write_text("x = 1\n", encoding="utf-8")
    (accepted / "src/serve.py").unlink()
    before = (accepted / KNOWN).read_bytes()
    done = run("check", "train.py")
    assert done.returncode == 0
    where = "CUD101 in src/serve.py, CUD101 in train.py"
    assert f"{KNOWN}: 2 findings are not there any more ({where}); --prune-baseline" in done.stderr
    assert run("check", "-q").stderr == ""
    # A run that would not have found them says nothing of them.
    assert run("check", "--select", "CUD2").stderr == ""
    assert (accepted / KNOWN).read_bytes() == before
    done = run("check", "--prune-baseline")
    assert (done.returncode, done.stderr) == (0, f"Took 2 findings out of {KNOWN}.\n")
    assert json.loads((accepted / KNOWN).read_text())["findings"] == []
    assert run("check").stderr == ""


def test_a_run_over_a_part_keeps_the_rest(run: Run, accepted: Path) -> None:
    (accepted / "train.py").write_text("x = 1\n", encoding="utf-8")
    assert run("check", "src").stderr == ""
    done = run("check", "--write-baseline", KNOWN, "train.py")
    assert done.stderr == f"Wrote 0 findings to {KNOWN} and left 1 finding of what was not checked.\n"
    assert found(run) == []
    assert [entry["path"] for entry in json.loads((accepted / KNOWN).read_text())["findings"]] == ["src/serve.py"]


def test_a_file_that_cannot_be_parsed_takes_nothing_out(run: Run, accepted: Path) -> None:
    (accepted / "train.py").write_text("import torch\ndef f(:\n", encoding="utf-8")
    done = run("check", "--prune-baseline", "--output-format=concise")
    assert "CUD901" in done.stdout
    assert done.stderr == ""
    assert len(json.loads((accepted / KNOWN).read_text())["findings"]) == 2


def test_an_internal_error_is_never_accepted(run: Run, accepted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudalint.project import analysis

    def fail(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(analysis, "analyse_begun", fail)
    monkeypatch.setattr(analysis, "analyse", fail)
    before = (accepted / KNOWN).read_bytes()
    done = run("check", "--write-baseline", KNOWN)
    assert (done.returncode, (accepted / KNOWN).read_bytes()) == (2, before)
    done = run("check", "--prune-baseline")
    assert (done.returncode, done.stderr, (accepted / KNOWN).read_bytes()) == (2, "", before)
    assert "CUD900" in done.stdout


def test_known_findings_are_not_repaired(run: Run, accepted: Path, forked: str) -> None:
    done = run("check", "--fix", "--unsafe-fixes")
    assert done.returncode == 0
    assert (accepted / "train.py").read_text(encoding="utf-8") == forked


def test_standard_input_and_sarif(run: Run, accepted: Path, forked: str) -> None:
    assert run("check", "-", "--stdin-filename", "train.py", stdin=forked).returncode == 0
    (accepted / "copy.py").write_text(forked, encoding="utf-8")
    (result,) = json.loads(run("check", "--output-format=sarif").stdout)["runs"][0]["results"]
    assert result["baselineState"] == "new"


def test_flake8_leaves_out_what_is_known(accepted: Path, forked: str) -> None:
    from cudalint.hosts.flake8_plugin import Plugin

    def found(name: str) -> list[str]:
        lines = forked.splitlines(keepends=True)
        return [text.split()[0] for *_, text, _ in Plugin(None, lines, str(accepted / name)).run()]  # type: ignore[arg-type]

    assert found("train.py") == []
    (accepted / KNOWN).write_text('{"kind": "cudalint-baseline", "version": 1, "findings": []}', encoding="utf-8")
    assert found("train.py") == ["CUD101"]


def test_the_cache_tells_baselines_apart(
    run: Run, accepted: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.delenv("CUDALINT_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("key")))
    (accepted / "train.py").write_text("x = 1\n", encoding="utf-8")
    shown = [run("check", "src").stderr for _ in range(2)]
    (accepted / "train.py").unlink()
    gone = [run("check", "src").stderr for _ in range(2)]
    assert shown == ["", ""]
    assert gone[0] == gone[1] != ""
    assert found(run, "--baseline", "", "src") == ["serve.py"]
    assert found(run, "src") == []


def test_what_was_silenced_is_told_from_what_is_known(accepted: Path) -> None:
    from cudalint import config

    report = Session(config.load([str(accepted)])).check([str(accepted)])
    assert (report.findings, len(report.known), report.silenced) == ((), 2, ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory; --write-baseline makes one"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("\xff", 'lacks "kind"'),
        ("[]", 'it lacks "kind": "cudalint-baseline"'),
        ('{"kind": "other"}', "lacks"),
        ('{"kind": "cudalint-baseline", "version": true}', "its version is no number"),
        ('{"kind": "cudalint-baseline", "version": 2, "findings": 1}', "a newer cudalint wrote it (version 2;"),
        ('{"kind": "cudalint-baseline", "version": 1}', '"findings" is no list'),
        ('{"kind": "cudalint-baseline", "version": 1, "findings": [{"path": 1}]}', "finding 1 lacks one of path"),
        ('{"kind": "cudalint-baseline", "version": 1, "findings": [3]}', "finding 1 lacks one of path"),
    ],
)
def test_a_bad_file_is_one_clear_error(run: Run, project: Path, content: str | None, words: str) -> None:
    path = project / KNOWN
    path.unlink()
    if content is not None:
        path.write_text("[1]" if content == "\xff" else content, encoding="utf-8")
    for command in (["check"], ["check", "-", "--stdin-filename", "train.py"]):
        done = run(*command, stdin="x = 1\n")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert words in done.stderr
    if content is not None:
        before = path.read_bytes()
        assert run("check", "--write-baseline", KNOWN).returncode == 2
        assert path.read_bytes() == before


def test_a_byte_order_mark_before_it_is_no_part_of_it(run: Run, accepted: Path) -> None:
    """Windows' own tools write one."""
    path = accepted / KNOWN
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert run("check").returncode == 0


def test_what_is_no_baseline_is_never_overwritten(run: Run, project: Path, forked: str) -> None:
    done = run("check", "--write-baseline", "train.py")
    assert (done.returncode, done.stderr) == (2, "cudalint: error: train.py: not a baseline: it is no JSON\n")
    assert (project / "train.py").read_text(encoding="utf-8") == forked
    assert run("check", "--write-baseline", "missing/known.json").returncode == 2
    assert "needs a baseline" in run("check", "--isolated", "--prune-baseline").stderr
    assert run("check", "-", "--write-baseline", "x.json", stdin="").returncode == 2
    assert sorted(path.name for path in project.iterdir()) == [KNOWN, "pyproject.toml", "src", "train.py"]
