"""What other programs import: that it is whole, typed, documented and light, and does what the command line does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint import api

Run = Callable[..., "subprocess.CompletedProcess[str]"]

DOCS = Path(__file__).parents[1] / "docs" / "api.md"


@pytest.fixture
def project(tmp_path: Path, forked: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("train.py", "serve.py"):
        (tmp_path / name).write_text(forked, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nextend-exclude = ["serve.py"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(report: api.Report) -> list[str]:
    return [Path(finding.span.filename).name for finding in report.findings]


def test_every_public_name_is_there_and_on_its_page() -> None:
    assert sorted(api.__all__) == dir(api)
    page = DOCS.read_text(encoding="utf-8")
    for name in api.__all__:
        assert getattr(api, name).__doc__
        assert re.search(rf"`{name}[`(]", page), name
    assert not hasattr(api, "anything")
    for value in re.findall(r"^\| `(\w+)` \| `", page, re.MULTILINE):
        fields = getattr(api, value).__struct_fields__
        row = next(row for row in page.splitlines() if row.startswith(f"| `{value}` |"))
        stated = set(re.findall(r"`(\w+)`", row.partition("|")[2].partition("|")[2]))
        assert stated & set(fields), value


def test_importing_it_is_light() -> None:
    program = "import sys; from cudalint import api; print(sorted(n for n in sys.modules if n.startswith('cudalint.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['cudalint.api', 'cudalint.finding', 'cudalint.structs']\n"
    program = "import sys; from cudalint import api; api.check_text('x = 1'); print('libcst' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_check_says_what_the_command_line_says(run: Run, project: Path) -> None:
    report = api.check()
    assert names(report) == ["train.py"]
    for output_format in api.formats():
        done = run("check", "--output-format", output_format)
        assert api.render(report, output_format) == done.stdout
    (entry,) = json.loads(api.render(report, "json"))
    assert api.fingerprints(report) == (entry["fingerprint"],)
    (finding,) = report.findings
    assert finding.severity is api.Severity.ERROR
    assert finding.trace[0].kind is api.StepKind.CAUSE
    assert finding.fix is not None
    assert isinstance(report, api.Report)


def test_a_map_says_what_the_command_line_says(run: Run, project: Path) -> None:
    found = api.map()
    for output_format in api.map_formats():
        done = run("map", "--output-format", output_format)
        assert api.render_map(found, output_format) == done.stdout
    (tree,) = found.trees
    assert (tree.begins, tree.names, tree.filename) == (api.Begins.PROGRAM, ("",), str(project / "train.py"))
    assert api.Deed.CONTEXT in [event.deed for event in tree.process.events]
    (worker,) = tree.process.children
    assert worker.launch is not None
    assert (worker.launch.method, worker.launch.forks, worker.launch.workers) == ("fork", True, "1 process")
    (harm,) = worker.harmed
    assert (harm.finding,) == api.check(repair=False).findings
    assert isinstance(found, api.ProcessMap)
    assert api.map(["train.py"], api.Options(ignore=["CUD101"])).trees[0].process.children[0].harmed == ()
    with pytest.raises(api.Error, match="no such file or directory: nothing"):
        api.map(["nothing.py"])
    with pytest.raises(api.Error, match="unknown output format 'xml'"):
        api.render_map(found, "xml")


def test_a_report_knows_what_fails_the_run(project: Path) -> None:
    assert api.check().fail_on is api.Severity.WARNING
    assert api.check_text("x = 1", options=api.Options(fail_on="note")).fail_on is api.Severity.NOTE


def test_settings_as_arguments(project: Path) -> None:
    def checked(**options: object) -> list[str]:
        return names(api.check(options=api.Options(**options)))  # type: ignore[arg-type]

    assert names(api.check([project], api.Options(isolated=True))) == ["serve.py", "train.py"]
    assert names(api.check(["serve.py"])) == ["serve.py"]
    assert names(api.check(["serve.py"], api.Options(force_exclude=True))) == []
    assert checked(select=["CUD2"]) == checked(ignore=["CUD101"]) == checked(per_file_ignores=["train.py:CUD1"]) == []
    assert checked(select=["CUD2"], hide_nothing=True) == ["train.py"]
    assert checked(exclude=["train.py"]) == []
    (project / "other.toml").write_text('exclude = ["train.py"]\n', encoding="utf-8")
    assert checked(config=project / "other.toml") == ["serve.py"]
    assert [one.code for one in api.check(options=api.Options(target_version="py314", platform="win32")).findings] == [
        "CUD101"
    ]
    assert [one.fix for one in api.check(repair=False).findings] == [None]


def test_known_findings(run: Run, project: Path) -> None:
    run("check", "--write-baseline", "known.json")
    report = api.check(options=api.Options(baseline="known.json"))
    assert (names(report), len(report.known)) == ([], 1)
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    assert names(api.check(options=api.Options(since="HEAD"))) == []


def test_a_text(project: Path, forked: str) -> None:
    for text in (forked, forked.encode()):
        assert names(api.check_text(text, project / "new.py")) == ["new.py"]
    assert names(api.check_text(forked.replace("3]))", "3]))  # noqa: CUD101"))) == []
    silenced = forked.replace("3]))", "3]))  # noqa: CUD101")
    assert names(api.check_text(silenced, honour_noqa=False)) == ["-"]
    assert [one.code for one in api.check_text("def f(:").findings] == ["CUD901"]


def test_what_a_run_learns_is_kept_where_that_is_asked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDALINT_NO_CACHE", "0")
    monkeypatch.setenv("HOME", str(project))
    api.check()
    assert not (project / ".cudalint_cache").exists()
    fresh = api.check(options=api.Options(cache=True))
    assert (project / ".cudalint_cache").is_dir()
    again = api.check(options=api.Options(cache=True))
    assert (fresh.effort.files_parsed > 0, again.effort.files_parsed) == (True, 0)
    assert again.findings == fresh.findings


def test_repairs_are_made_in_memory_and_written(run: Run, project: Path, forked: str) -> None:
    done = api.fix(["train.py"], unsafe=True)
    assert (done.count, len(done.changes), names(done.report)) == (1, 1, [])
    assert (project / "train.py").read_text(encoding="utf-8") == forked
    api.write(done.changes[0])
    assert (project / "train.py").read_bytes() == done.changes[0].after
    with pytest.raises(api.Error, match="it changed while it was checked"):
        api.write(done.changes[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"paths": ["nothing.py"]}, "no such file or directory: nothing.py"),
        ({"select": []}, "select names no rule"),
        ({"select": ["CUD9999"]}, "unknown rule 'CUD9999' in select"),
        ({"config": "nothing.toml"}, "nothing.toml: it cannot be read"),
        ({"config": "x", "isolated": True}, "config names settings and isolated forbids them"),
        ({"baseline": "pyproject.toml"}, "not a baseline"),
        ({"since": "nothing"}, "--since nothing: "),
    ],
)
def test_errors_are_of_one_kind(project: Path, arguments: dict[str, object], words: str) -> None:
    paths = arguments.pop("paths", ["."])
    with pytest.raises(api.Error, match=re.escape(words)) as caught:
        api.check(paths, api.Options(**arguments))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_an_unknown_format(project: Path) -> None:
    with pytest.raises(api.Error, match="unknown output format 'xml'"):
        api.render(api.check(repair=False), "xml")


USE = """\
from cudalint import api

report: api.Report = api.check(["."])
row: int = report.findings[0].span.start.row
api.chek()
api.check(["."], api.Options(selct=[]))
code: int = report.findings[0].code
"""


def test_a_type_checker_knows_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    # What it knows of unchanged files it need not find out in each run of the tests.
    cache = getattr(request.config, "cache", None)
    kept = str(tmp_path if cache is None else cache.mkdir("mypy"))
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", kept, "use.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = [row.split(": ")[0] for row in done.stdout.splitlines() if ": error: " in row]
    assert wrong == ["use.py:5", "use.py:6", "use.py:7"]
