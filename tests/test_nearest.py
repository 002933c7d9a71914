"""Several pyproject.toml in one run: for each file the nearest one with settings counts, in ruff's manner."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A finding of CUD204, and one of CUD902.
PROGRAM = "import torch\n\ntorch.cuda.device(1)\nprint()  # noqa: CUD305\n"


def write(folder: Path, settings: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")


@pytest.fixture
def services(tmp_path: Path) -> Path:
    """A repository of two services, one of them with settings of its own."""
    write(tmp_path, "[tool.cudalint]\nignore = ['CUD902']\n")
    for name in ("api/app.py", "api/tests/test_app.py", "api/gen/made.py", "jobs/app.py", "jobs/gen/made.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROGRAM, encoding="utf-8")
    api = "[tool.cudalint]\nextend-exclude = ['gen']\n[tool.cudalint.per-file-ignores]\n'tests/*' = ['CUD204']\n"
    write(tmp_path / "api", api)
    write(tmp_path / "jobs", "[project]\nname = 'jobs'\nversion = '1'\n")
    return tmp_path


def found(run: Run, root: Path, *arguments: str) -> set[tuple[str, str]]:
    done = run("check", "--output-format", "json", *arguments)
    assert done.stderr == ""
    return {(str(Path(e["filename"]).relative_to(root)), e["code"]) for e in json.loads(done.stdout)}


API = {("api/app.py", "CUD204"), ("api/app.py", "CUD902"), ("api/tests/test_app.py", "CUD902")}
JOBS = {("jobs/app.py", "CUD204"), ("jobs/gen/made.py", "CUD204")}


def test_the_nearest_settings_count_for_each_file(run: Run, services: Path) -> None:
    assert found(run, services) == API | JOBS
    # However the files are named, and whichever of them.
    assert found(run, services, "api", "jobs/app.py") == API | {("jobs/app.py", "CUD204")}
    assert found(run, services, "api") == API
    assert found(run, services, "jobs") == JOBS
    # What is named is read.
    assert ("api/gen/made.py", "CUD902") in found(run, services, "api/gen/made.py", "jobs")
    assert found(run, services, "--force-exclude", "api/gen/made.py", "jobs") == JOBS


def test_options_go_before_all_settings(run: Run, services: Path) -> None:
    tested = "api/tests/test_app.py"
    judged = {one for one in API if one[1] == "CUD902"}  # in jobs it is ignored, which --select leaves
    assert found(run, services, "--select", "CUD902,CUD305") == judged
    assert found(run, services, "--ignore", "CUD204") == judged
    only_tests = {(tested, "CUD204"), (tested, "CUD902"), ("jobs/gen/made.py", "CUD204")}
    assert found(run, services, "--per-file-ignores", "app.py:ALL") == only_tests
    assert found(run, services, "--extend-exclude", "tests") == {one for one in API | JOBS if one[0] != tested}
    every = {str(path.relative_to(services)) for path in services.rglob("*.py")}
    assert found(run, services, "--config", "pyproject.toml") == {(path, "CUD204") for path in every}
    assert found(run, services, "--isolated") == {(path, code) for path in every for code in ("CUD204", "CUD902")}


def test_severities_are_those_of_the_nearest_settings(run: Run, services: Path) -> None:
    write(services / "jobs", "[tool.cudalint.severity]\nCUD204 = 'note'\n")
    found_ = json.loads(run("check", "--output-format", "json", "--select", "CUD204").stdout)
    given = {(Path(e["filename"]).relative_to(services).parts[0], e["severity"]) for e in found_}
    assert given == {("api", "error"), ("jobs", "note")}


def test_what_concerns_programs_as_a_whole_is_said_by_the_run(run: Run, services: Path) -> None:
    write(
        services / "jobs",
        "[tool.cudalint]\nfail-on = 'note'\nbaseline = 'missing.json'\nselect = ['CUD902', 'CUD305']\n",
    )
    assert found(run, services) == API | {(path, "CUD902") for path, _ in JOBS}
    done = run("check", "jobs")
    assert (done.returncode, "missing.json" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "text", ["[tool.cudalint]\nselect = ['CUD999']\n", "[tool.cudalint\n", "[tool.cudalint]\nx = 1\n"]
)
def test_settings_that_cannot_be_followed_end_the_run(run: Run, services: Path, text: str) -> None:
    write(services / "jobs", text)
    for command in ("check", "map"):
        done = run(command, ".")
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert str(services / "jobs" / "pyproject.toml") in line
    # Who does not read files there is not concerned, nor who names other settings.
    assert run("check", "api").returncode == 1
    assert run("check", "--isolated", ".").returncode == 1


def test_a_cached_result_rests_on_the_settings_of_all_its_files(run: Run, services: Path) -> None:
    assert found(run, services, "--cache-dir", "kept") == API | JOBS
    assert found(run, services, "--cache-dir", "kept") == API | JOBS
    write(services / "api", "[tool.cudalint]\nselect = ['CUD902', 'CUD305']\nextend-exclude = ['gen']\n")
    assert found(run, services, "--cache-dir", "kept") == {one for one in API if one[1] == "CUD902"} | JOBS


def test_folders_outside_of_the_project_have_no_say(run: Run, services: Path) -> None:
    write(services / "api", "[tool.cudalint]\nextra-paths = ['../jobs']\n")
    write(services / "jobs", "[tool.cudalint]\nunknown = 1\n")
    assert run("check", "--select", "CUD204", "api").returncode == 1


# A worker that is forked uses CUDA after its parent: wrong until Python 3.13, since 3.14 a fork server starts it.
FORKED = """import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.cuda.init()
    with multiprocessing.Pool(2) as pool:
        print(pool.map(work, [1, 2]))
"""


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """A repository whose projects run on different Pythons."""
    for name in ("old", "new", "new/tools", "any"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.py").write_text(FORKED, encoding="utf-8")
    write(tmp_path, "[project]\nrequires-python = '>=3.10,<3.14'\n")
    write(tmp_path / "new", "[project]\nrequires-python = '>=3.14'\n")
    write(tmp_path / "any", "[project]\nrequires-python = '>=3.12'\n")
    return tmp_path


def forked(run: Run, root: Path, *arguments: str) -> dict[str, str | None]:
    """The conditions under which programs fork, by their folder."""
    done = run("check", "--output-format", "json", "--select", "CUD101", *arguments)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    return {str(Path(e["filename"]).parent.relative_to(root)): e["condition"] for e in found}


BEFORE = "before Python 3.14"


def test_each_project_says_on_which_pythons_its_programs_run(run: Run, projects: Path) -> None:
    assert forked(run, projects) == {"old": None, "any": BEFORE}
    assert forked(run, projects, "new") == {}
    assert forked(run, projects, "new/tools/run.py", "old") == {"old": None}
    assert forked(run, projects, "any/run.py") == {"any": BEFORE}
    # What names one for all counts before.
    every = dict.fromkeys(("old", "new", "new/tools", "any"))
    assert forked(run, projects, "--target-version", "3.12") == every
    assert forked(run, projects, "--target-version", "3.14") == {}
    assert forked(run, projects, "--config", "any/pyproject.toml") == dict.fromkeys(every, BEFORE)


def test_a_target_version_is_narrowed_by_what_a_project_requires(run: Run, projects: Path) -> None:
    write(projects, "[tool.cudalint]\ntarget-version = '3.12'\n")
    # None of those that were chosen can run a project that requires others.
    assert forked(run, projects) == {"old": None, "any": None}
    assert forked(run, projects, "any") == {"any": None}
    assert forked(run, projects, "new") == {}
    write(projects / "new/tools", "[tool.cudalint]\ntarget-version = '3.13'\n")
    assert forked(run, projects) == {"old": None, "any": None, "new/tools": None}


def test_a_project_that_says_nothing_sensible_of_its_python_says_nothing(run: Run, projects: Path) -> None:
    write(projects / "new", "[project]\nrequires-python = 'three'\n")
    assert forked(run, projects) == {"old": None, "new": None, "new/tools": None, "any": BEFORE}


def test_a_cached_result_rests_on_the_pythons_of_all_projects(run: Run, projects: Path) -> None:
    for _ in range(2):
        assert forked(run, projects, "--cache-dir", "kept") == {"old": None, "any": BEFORE}
    write(projects / "any", "[project]\nrequires-python = '>=3.14'\n")
    assert forked(run, projects, "--cache-dir", "kept") == {"old": None}


def test_what_projects_share_is_run_on_the_pythons_of_each(run: Run, projects: Path) -> None:
    shared = "import sys\n\nMETHOD = 'fork' if sys.version_info < (3, 14) else 'spawn'\n"
    (projects / "ways.py").write_text(shared, encoding="utf-8")
    text = FORKED.replace("import torch\n", "import torch\n\nimport ways\n").replace(
        "multiprocessing.Pool", "multiprocessing.get_context(ways.METHOD).Pool"
    )
    for name in ("old", "new"):
        (projects / name / "run.py").write_text(text, encoding="utf-8")
    assert forked(run, projects, "old", "new/run.py") == {"old": None}
