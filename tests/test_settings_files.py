"""Files of settings that programs read: what they say decides, and nothing else of them does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_projects import Place, cases, files, marked

from cudalint import api, config
from cudalint.found import Report
from cudalint.project import running, workers
from cudalint.session import Session
from cudalint.settings_files import SettingsFiles
from cudalint.store import Store
from cudalint.text import settings
from cudalint.text.settings import NoSettings

PROGRAMS = cases("../settings_programs.txt")


def written(folder: Path, given: dict[str, str]) -> Path:
    """A project of these files."""
    for path, text in {"pyproject.toml": "[tool.cudalint]\n", **given}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def found(folder: Path, jobs: int = 1) -> set[Place]:
    """What a check of a project finds."""
    report = api.check([str(folder)], api.Options(jobs=jobs), repair=False)
    assert not report.failures
    return {Place(str(Path(f.span.filename).relative_to(folder)), f.span.start.row, f.code) for f in report.findings}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_file_says_decides(tmp_path: Path, name: str) -> None:
    given = files(PROGRAMS[name])
    assert found(written(tmp_path, given)) == marked(given)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_settings_lie_beside_a_package_also_where_nothing_marks_a_project(tmp_path: Path, method: str) -> None:
    name = f"settings beside a package in a folder of the project, where `python -m` starts it: {method}"
    given = {path.removeprefix("apps/scorer/"): text for path, text in files(PROGRAMS[name]).items()}
    folder = written(tmp_path, given)
    (folder / "pyproject.toml").unlink()
    assert found(folder) == marked(given)


SECTIONS = "[pool]\nmethod = fork\nworkers = 2\nshare = 0.5\nparallel = on\n"
ASKED = """\
import configparser
import multiprocessing as mp
import torch
from work import work
CFG = configparser.ConfigParser()
CFG.read("app.ini")
{first}
def main():
    torch.zeros(1).cuda()
    with mp.get_context({method}).Pool(2) as pool:
        pool.map(work, range(4))
if __name__ == "__main__":
    main()
"""


def of_sections(folder: Path, first: str, method: str) -> Path:
    """A program that reads a file with sections, does something first, and starts workers by a method."""
    work = files(PROGRAMS["INI: fork"])["work.py"]
    return written(folder, {"app.ini": SECTIONS, "work.py": work, "main.py": ASKED.format(first=first, method=method)})


@pytest.mark.parametrize(
    ("first", "method"),
    [
        ("", "CFG['pool'].get('method')"),
        ("", "CFG['pool'].get('start', 'fork')"),
        ("", "CFG.get('pool', 'start', fallback='fork')"),
        ("", "'fork' if CFG['pool'].getint('workers') == 2 else 'spawn'"),
        ("", "'fork' if CFG['pool'].getfloat('share') == 0.5 else 'spawn'"),
        ("", "'fork' if CFG.getfloat('pool', 'share') < 1 else 'spawn'"),
        ("", "'fork' if CFG['pool'].getboolean('parallel') else 'spawn'"),
        ("", "'fork' if CFG.has_option('pool', 'method') else 'spawn'"),
        ("", "'fork' if CFG.has_section('pool') else 'spawn'"),
        ("", "'spawn' if CFG.has_section('server') else 'fork'"),
        ("CFG = configparser.RawConfigParser()\nCFG.read('app.ini')", "CFG['pool']['method']"),
        ("CFG = configparser.ConfigParser()\nCFG.read_file(open('app.ini'))", "CFG['pool']['method']"),
        ("CFG = configparser.ConfigParser()\nCFG.read_string('[pool]\\nmethod = fork')", "CFG['pool']['method']"),
    ],
)
def test_sections_are_asked_in_many_ways(tmp_path: Path, first: str, method: str) -> None:
    assert codes(of_sections(tmp_path, first, method)) == {"CUD101"}


@pytest.mark.parametrize(
    "first",
    [
        "CFG.set('pool', 'method', input())",
        "CFG.read_dict({'pool': {'method': input()}})",
        "CFG['pool'] = {'method': input()}",
        "CFG['pool']['method'] = input()",
        "CFG['pool'].update(method=input())",
        "CFG.update(pool={'method': input()})",
        "CFG.remove_option('pool', 'method')",
        "CFG.remove_section('pool')",
        "CFG.read('another.ini')",
    ],
)
def test_what_a_program_changes_in_sections_is_not_known(tmp_path: Path, first: str) -> None:
    asked = "CFG['pool']['method']"
    assert codes(of_sections(tmp_path / "as it is", "", asked)) == {"CUD101"}
    changed = api.check([str(of_sections(tmp_path / "changed", first, asked))], repair=False)
    assert all(finding.condition for finding in changed.findings)


@pytest.mark.parametrize(
    "first",
    [
        "CFG.set('pool', 'method', input())",
        "CFG.read_dict({'pool': {'method': input()}})",
        "CFG['pool']['method'] = input()",
        "CFG['pool'].update({'method': input()})",
        "CFG.add_section('server')",
        "CFG['server'] = {'workers': '4'}",
    ],
)
def test_what_a_program_leaves_alone_in_sections_is_still_known(tmp_path: Path, first: str) -> None:
    asked = "'fork' if CFG.getint('pool', 'workers') == 2 else 'spawn'"
    assert codes(of_sections(tmp_path, first, asked)) == {"CUD101"}


@pytest.mark.parametrize(
    "change",
    [
        "CFG.merge_with({'start': input()})",
        "CFG.merge_with_dotlist(sys.argv[1:])",
        "CFG.merge_with_cli()",
        "OmegaConf.update(CFG, 'start', input())",
    ],
)
def test_what_is_laid_over_a_configuration_may_say_otherwise(tmp_path: Path, change: str) -> None:
    given = files(PROGRAMS["YAML by omegaconf: fork"])
    assert codes(written(tmp_path / "as it is", given)) == {"CUD101"}
    given["main.py"] = given["main.py"].replace("def main():", f"import sys\n{change}\ndef main():")
    assert codes(written(tmp_path / "changed", given)) <= {"CUD102"}


@pytest.mark.parametrize(
    "change",
    [
        "import os\nos.chdir('run')",
        "import shutil\nshutil.copy('other.json', 'settings.json')",
        "import os\nos.replace('other.json', 'settings.json')",
        "from pathlib import Path\nPath('other.json').rename(Path('settings.json'))",
    ],
)
def test_a_file_that_may_be_another_one_by_then_says_nothing(project: Path, change: str) -> None:
    assert codes(project) == {"CUD101"}
    main = project / "main.py"
    main.write_text(f"{change}\n{main.read_text()}")
    assert not codes(project)


def test_a_path_that_is_made_of_a_text_is_not_written_by_that(project: Path) -> None:
    main = project / "main.py"
    read = "from pathlib import Path\nimport os.path\nPLACE = Path(os.path.normpath('settings.json'))\n"
    before = main.read_text()
    head, _, rest = before.partition("with open")
    main.write_text(f"{head}{read}CFG = json.loads(PLACE.read_text())\n{rest.partition('json.load(file)')[2]}")
    assert codes(project) == {"CUD101"}


def test_what_hydra_puts_together_in_another_way_is_not_known(tmp_path: Path) -> None:
    given = files(PROGRAMS["hydra: fork"])
    given["conf/config.yaml"] = given["conf/config.yaml"].replace("  - how\n", "  - override hydra/launcher: joblib\n")
    assert not codes(written(tmp_path / "overridden", given))
    given = files(PROGRAMS["hydra: fork"])
    given["conf/how.yaml"] = "start: spawn\n"
    given["conf/config.yaml"] = "defaults:\n  - _self_\n  - model: small\n  - how\nworkers: 4\nstart: fork\n"
    assert codes(written(tmp_path / "in order", given)) == {"CUD201"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program whose settings have its workers fork."""
    return written(tmp_path / "project", files(PROGRAMS["JSON beside the program: fork"]))


def codes(folder: Path) -> set[str]:
    """The codes that a check finds."""
    return {place.code for place in found(folder)}


SPAWNS = '{"pool": {"method": "spawn"}}'


@pytest.fixture
def kept(project: Path, tmp_path: Path) -> Callable[[], Report]:
    """Checks the project, and keeps what it finds."""
    store = Store(str(tmp_path / "cache"), b"k" * 32)
    return lambda: Session(config.load([str(project)]), store).check([str(project)])


def test_a_kept_result_holds_while_settings_say_the_same(project: Path, kept: Callable[[], Report]) -> None:
    forks = (project / "settings.json").read_text()
    for text, code, parsed in [(forks, "CUD101", 2), (forks, "CUD101", 0), (SPAWNS, "CUD201", 0), (forks, "CUD101", 0)]:
        (project / "settings.json").write_text(text)
        report = kept()
        assert [finding.code for finding in report.findings] == [code]
        assert report.effort.files_parsed == parsed
    (project / "settings.json").unlink()
    assert not kept().findings


@pytest.mark.parametrize(("edited", "runs"), [(False, 0), (True, 1)])
def test_after_an_edit_elsewhere_a_program_runs_again_where_its_settings_differ(
    project: Path, kept: Callable[[], Report], edited: bool, runs: int
) -> None:
    (project / "extra.py").write_text("import torch\nVALUE = 1\n")
    assert kept().effort.entries == 1
    (project / "extra.py").write_text("import torch\nVALUE = 2\n")
    if edited:
        (project / "settings.json").write_text(SPAWNS)
    after = kept().effort
    assert (after.entries, after.entries - after.kept) == (1, runs)


def test_every_process_of_a_run_sees_them(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_ALONE", 0)
    monkeypatch.setattr(workers, "LEAST_GROUPS", 1)
    text = (project / "main.py").read_text()
    for number in range(8):
        (project / f"main{number}.py").write_text(text)
    shared = found(project, jobs=3)
    assert shared == found(project)
    assert {place.code for place in shared} == {"CUD101"}
    assert len(shared) == 9


def test_what_git_ignores_is_not_read(project: Path) -> None:
    assert codes(project) == {"CUD101"}
    (project / ".gitignore").write_text("*.json\n")
    assert not codes(project)
    (project / ".gitignore").write_text("*.json\n!settings.json\n")
    assert codes(project) == {"CUD101"}


def test_nothing_is_read_outside_of_the_project(project: Path) -> None:
    text = (project / "settings.json").read_text()
    (project / "settings.json").unlink()
    (project.parent / "settings.json").write_text(text)
    (project / "settings.json").symlink_to(project.parent / "settings.json")
    assert not codes(project)
    main = project / "main.py"
    main.write_text(main.read_text().replace("'settings.json'", "'../settings.json'"))
    assert not codes(project)


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"pool": {"method": "fork"}, "data": [' + b"1, " * 2_000 + b"1]}",
        b'{"pool": {"method": "fork"}, "text": "' + b"x" * settings.MOST_BYTES + b'"}',
    ],
)
def test_what_is_no_settings_says_nothing(project: Path, content: bytes) -> None:
    (project / "settings.json").write_bytes(content)
    assert not codes(project)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    given = files(PROGRAMS["YAML as attributes: fork"])
    ran = tmp_path / "ran"
    given["app.yaml"] += (
        f'other: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ["{ran}"]]\n'
    )
    given["main.py"] = given["main.py"].replace("safe_load(file)", "unsafe_load(file)")
    assert not codes(written(tmp_path / "project", given))
    assert not ran.exists()


def test_aliases_count_as_what_they_stand_for() -> None:
    rows = ["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for name, before in zip("bcdefgh", "abcdefg", strict=True):
        rows.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    with pytest.raises(NoSettings):
        settings.read("yaml", "\n".join(rows))
    assert settings.read("yaml", "\n".join(rows[:2]))["b"][8] == list(range(1, 10))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", "{,}"),
        ("toml", "a = "),
        ("yaml", "a: [1"),
        ("yaml", "a: !!python/name:os.system"),
        ("ini", "no = section"),
    ],
)
def test_broken_texts_are_none(kind: str, text: str) -> None:
    with pytest.raises(NoSettings):
        settings.read(kind, text)


def test_rows_of_variables() -> None:
    text = "A=1\nexport B = 'two # words'\n# C=3\nD=four # words\nE=$A\nnot a row\nF=\n"
    assert settings.read("env", text) == {"A": "1", "B": "two # words", "D": "four", "F": ""}


def test_files_are_told_by_their_names() -> None:
    names = ("a.json", "b.yml", ".env", ".env.local", "prod.env", "c.csv", "data.txt", "json")
    assert [name for name in names if settings.is_settings(name)] == [
        "a.json",
        "b.yml",
        ".env",
        ".env.local",
        "prod.env",
    ]


def test_a_folder_of_that_name_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    read = SettingsFiles(str(tmp_path))
    assert read.text(str(tmp_path / "a.json")) is None
    assert read.read().holds()
    (tmp_path / "a.json").rmdir()
    (tmp_path / "a.json").write_text("{}")
    assert not read.read().holds()


@pytest.mark.parametrize("name", [name for name in cases("imported.txt") if "uses the GPU" in name and "path" in name])
def test_workers_of_a_file_that_is_imported_by_its_path_do_not_start_afresh_unasked(tmp_path: Path, name: str) -> None:
    """A fresh process looks for the module under the name that it was given, and finds none."""
    report = api.check([str(written(tmp_path, files(cases("imported.txt")[name])))])
    (found,) = report.findings
    assert found.fix is None or found.fix.applicability is not api.Applicability.SAFE
