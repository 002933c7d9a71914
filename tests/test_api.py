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
        fields = getattr(api, value).__dataclass_fields__
        row = next(row for row in page.splitlines() if row.startswith(f"| `{value}` |"))
        stated = set(re.findall(r"`(\w+)`", row.partition("|")[2].partition("|")[2]))
        assert stated & set(fields), value


def test_importing_it_is_light() -> None:
    program = "import sys; from cudalint import api; print(sorted(n for n in sys.modules if n.startswith('cudalint.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['cudalint.api', 'cudalint.finding']\n"
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


def test_settings_as_arguments(project: Path) -> None:
    assert names(api.check([project], isolated=True)) == ["serve.py", "train.py"]
    assert names(api.check(["serve.py"])) == ["serve.py"]
    assert names(api.check(select=["CUD2"])) == []
    assert names(api.check(ignore=["CUD101"])) == []
    (project / "other.toml").write_text('exclude = ["train.py"]\n', encoding="utf-8")
    assert names(api.check(config=project / "other.toml")) == ["serve.py"]
    assert [one.fix for one in api.check(repair=False).findings] == [None]


def test_known_findings(run: Run, project: Path) -> None:
    run("check", "--write-baseline", "known.json")
    report = api.check(baseline="known.json")
    assert (names(report), len(report.known)) == ([], 1)
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    assert names(api.check(since="HEAD")) == []


def test_a_text(project: Path, forked: str) -> None:
    for text in (forked, forked.encode()):
        assert names(api.check_text(text, project / "new.py")) == ["new.py"]
    assert names(api.check_text(forked.replace("3]))", "3]))  # noqa: CUD101"))) == []
    assert [one.code for one in api.check_text("def f(:").findings] == ["CUD901"]


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
        ({"select": ["CUD9999"]}, "unknown rule 'CUD9999' in select"),
        ({"config": "nothing.toml"}, "nothing.toml: it cannot be read"),
        ({"config": "x", "isolated": True}, "config names settings and isolated forbids them"),
        ({"baseline": "pyproject.toml"}, "not a baseline"),
        ({"since": "nothing"}, "--since nothing: "),
    ],
)
def test_errors_are_of_one_kind(project: Path, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(api.Error, match=re.escape(words)) as caught:
        api.check(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_an_unknown_format(project: Path) -> None:
    with pytest.raises(api.Error, match="unknown output format 'xml'"):
        api.render(api.check(repair=False), "xml")


USE = """\
from cudalint import api

report: api.Report = api.check(["."])
row: int = report.findings[0].span.start.row
api.chek()
api.check(selct=[])
code: int = report.findings[0].code
"""


def test_a_type_checker_knows_it(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path), "use.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = [row.split(": ")[0] for row in done.stdout.splitlines() if ": error: " in row]
    assert wrong == ["use.py:5", "use.py:6", "use.py:7"]
