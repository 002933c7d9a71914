"""Projects that lie beside others: what a finding leads through is found from wherever the run is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from editor import Editor, edit_session

from cudalint import siblings

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MODELS = """\
import torch


class Embedder:
    def __init__(self):
        self.net = torch.nn.Linear(4, 4).cuda()

    def embed(self, n):
        return self.net(torch.ones(n, 4, device="cuda")).sum().item()


def warm():
    return torch.cuda.is_available()
"""
WORKERS = """\
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def spread(fn, items, method="fork"):
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        return list(pool.map(fn, items))
"""
# It names neither CUDA nor processes: both lie with what it imports.
PROGRAM = """\
from {models} import Embedder, warm
from {workers} import spread


def work(n):
    return Embedder().embed(n)


if __name__ == "__main__":
    print(warm())
    print(spread(work, [1, 2, 3]{method}))
"""


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def named(name: str, rest: str = "") -> str:
    return f'[project]\nname = "{name}"\nversion = "1"\n{rest}'


def requires(*names: str) -> str:
    return f"dependencies = {json.dumps(names)}\n"


def member(folder: str, package: str, text: str, project: str | None = None) -> dict[str, str]:
    """A project of one package, with its source below ``src``."""
    settings = named(package.replace("_", "-")) if project is None else project
    return {f"{folder}/pyproject.toml": settings, f"{folder}/src/{package}/__init__.py": text}


BOTH = {**member("libs/models", "acme_models", MODELS), **member("libs/workers", "acme_workers", WORKERS)}
BY_PATH = (
    '[tool.poetry]\nname = "app"\nversion = "1"\n[tool.poetry.dependencies]\n'
    'acme-models = {path = "../libs/models", develop = true}\n'
    '[tool.poetry.group.jobs.dependencies]\nacme-workers = {path = "../libs/workers"}\n'
)
# What the application's pyproject.toml and that of the repository say.
WAYS = {
    "by name": (named("app", requires("acme-models>=1", "acme_workers[fast]; python_version > '3'")), named("all")),
    "in a workspace of uv": (
        named("app", requires("acme-models", "acme-workers")) + "[tool.uv.sources]\nacme-models = {workspace = true}\n",
        named("all") + '[tool.uv.workspace]\nmembers = ["libs/*", "app"]\n',
    ),
    "by paths of poetry": (BY_PATH, None),
    "by paths of uv": (
        named("app", requires("x", "y")) + "[tool.uv.sources]\n"
        'x = {path = "../libs/models", editable = true}\ny = {path = "../libs/workers"}\n',
        None,
    ),
    "by paths of hatch and pdm": (
        named("app", requires("x @ {root:uri}/../libs/models", "y @ file:///${PROJECT_ROOT}/../libs/workers")),
        None,
    ),
    "for development": (
        named("app") + '[project.optional-dependencies]\ngpu = ["acme-models"]\n'
        '[dependency-groups]\ndev = ["acme-workers", {include-group = "x"}]\n',
        named("all"),
    ),
    "by another": (
        named("app", requires("acme-workers")),
        named("all"),
    ),
}


def repository(folder: Path, way: str, method: str) -> Path:
    """An application and two libraries; the application's program."""
    app, above = WAYS[way]
    texts = dict(BOTH) | {"app/pyproject.toml": app}
    if above is not None:
        texts["pyproject.toml"] = above
    if way == "by another":
        texts["libs/workers/pyproject.toml"] = named("acme-workers", requires("acme-models"))
    texts["app/app/run.py"] = PROGRAM.format(models="acme_models", workers="acme_workers", method=method)
    write(folder, texts)
    return folder / "app/app/run.py"


def found(run: Run, cwd: Path, *arguments: str) -> list[tuple[str, str]]:
    done = run("check", "--no-cache", "--output-format", "json", *arguments, cwd=cwd)
    assert done.stderr == ""
    return [(entry["code"], entry["severity"]) for entry in json.loads(done.stdout)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["", ', "spawn"'])
def test_a_finding_through_projects_of_one_repository(run: Run, tmp_path: Path, way: str, method: str) -> None:
    program = repository(tmp_path, way, method)
    expected = [("CUD201", "warning")] if method else [("CUD101", "error")]
    app = tmp_path / "app"
    assert found(run, app, ".") == expected
    assert found(run, app, "app/run.py") == expected
    assert found(run, program.parent, "run.py") == expected
    assert found(run, tmp_path, "app/app/run.py") == expected


def test_what_is_not_required_is_not_read(run: Run, tmp_path: Path) -> None:
    repository(tmp_path, "by name", "")
    write(tmp_path, {"app/pyproject.toml": named("app", requires("acme-models"))})
    assert found(run, tmp_path / "app", ".") == []


def test_the_folders_are_shown_with_the_configuration(run: Run, tmp_path: Path) -> None:
    repository(tmp_path, "by name", "")
    told = run("config", cwd=tmp_path / "app").stdout
    assert f'extra-paths = ["{tmp_path}/libs/models/src", "{tmp_path}/libs/workers/src"]' in told


PLACES = {
    '[tool.setuptools.packages.find]\nwhere = ["lib"]\n': "lib",
    '[tool.setuptools]\npackage-dir = {"" = "lib"}\n': "lib",
    '[tool.poetry]\npackages = [{include = "acme", from = "lib"}]\n': "lib",
    '[tool.hatch.build.targets.wheel]\npackages = ["lib/acme"]\n': "lib",
    '[tool.setuptools.packages.find]\nwhere = ["none"]\n': "",
}


@pytest.mark.parametrize("settings", PLACES)
def test_where_a_project_keeps_its_source(tmp_path: Path, settings: str) -> None:
    write(tmp_path, {"pyproject.toml": named("all"), "app/pyproject.toml": named("app", requires("acme"))})
    write(tmp_path, {"acme/pyproject.toml": named("acme") + settings, "acme/lib/acme/__init__.py": ""})
    assert siblings.source_roots(str(tmp_path / "app")) == (str(tmp_path / "acme" / PLACES[settings]),)


def test_a_repository_ends_where_git_says_so(tmp_path: Path) -> None:
    write(tmp_path, member("acme", "acme", ""))
    write(tmp_path, {"pyproject.toml": named("all"), "own/app/pyproject.toml": named("app", requires("acme"))})
    assert siblings.source_roots(str(tmp_path / "own/app")) != ()
    (tmp_path / "own/.git").mkdir()
    assert siblings.source_roots(str(tmp_path / "own/app")) == ()


SITE = "app/.venv/lib/python3.12/site-packages"
# What installers write for an editable project: its source root, or a finder that maps packages to their places.
EDITABLE = {
    "a .pth": {
        f"{SITE}/__editable__.acme-1.pth": "# made\nimport sys\n{place}/libs/models/src\n{place}/libs/workers/src\n"
    },
    "setuptools": {
        f"{SITE}/__editable___acme_1_finder.py": "import sys\n"
        "MAPPING: dict[str, str] = {{'acme_models': '{place}/libs/models/src/acme_models', "
        "'acme_workers': '{place}/libs/workers/src/acme_workers'}}\nNAMESPACES: dict[str, list[str]] = {{}}\n"
    },
    "hatch": {
        f"{SITE}/_editable_impl_acme.py": "from editables.redirector import RedirectingFinder as F\nF.install()\n"
        "F.map_module('acme_models', '{place}/libs/models/src/acme_models/__init__.py')\n"
        "F.map_module('acme_workers', '{place}/libs/workers/src/acme_workers/__init__.py')\n"
    },
}


@pytest.mark.parametrize("way", ["poetry", "environment"])
def test_a_folder_that_is_no_project_is_not_read_for_one(tmp_path: Path, way: str) -> None:
    app = tmp_path / "work" / "app"
    packages = app / ".venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    if way == "poetry":
        (app / "pyproject.toml").write_text('[tool.poetry.dependencies]\nall = { path = "../.." }\n', encoding="utf-8")
    else:
        (packages / "all.pth").write_text(f"{tmp_path}\n{os.sep}\n", encoding="utf-8")
    assert siblings.source_roots(str(app)) == ()
    (tmp_path / "setup.py").write_text("", encoding="utf-8")
    assert siblings.source_roots(str(app)) == (str(tmp_path),)


@pytest.mark.parametrize("how", EDITABLE)
def test_what_is_installed_as_editable(run: Run, tmp_path: Path, how: str) -> None:
    texts = {**BOTH, "app/pyproject.toml": named("app")}
    texts["app/run.py"] = PROGRAM.format(models="acme_models", workers="acme_workers", method="")
    write(tmp_path, texts)
    assert found(run, tmp_path / "app", ".") == []
    write(tmp_path, {name: text.format(place=tmp_path) for name, text in EDITABLE[how].items()})
    assert found(run, tmp_path / "app", ".") == found(run, tmp_path / "app", "run.py") == [("CUD101", "error")]


def test_what_installers_wrote_is_read_and_never_run(tmp_path: Path) -> None:
    write(tmp_path, {"app/pyproject.toml": "[project\n", f"{SITE}/a.pth": "import os; os.mkdir('made')\nno/such\n.\n"})
    write(tmp_path, {f"{SITE}/__editable___a_finder.py": "MAPPING = {f(): 1}\nMAPPING = {'a': 1, 2: 'b', 'c': 'd'}\n"})
    write(tmp_path, {f"{SITE}/__editable___b_finder.py": "MAPPING = {'a': }\n", f"{SITE}/b.pth": "\x00\n"})
    assert siblings.source_roots(str(tmp_path / "app")) == ()
    assert not (tmp_path / "made").exists()


LAYOUTS = {
    "a src layout, a script beside": (
        "src/lib/models.py",
        "src/lib/workers.py",
        "scripts/run.py",
        "lib.models",
        "lib.workers",
    ),
    "hatch, a folder that is no package": (
        "backend/core/models.py",
        "backend/core/workers.py",
        "jobs/run.py",
        "core.models",
        "core.workers",
    ),
    "a namespace over two roots": (
        "a/src/corp/models/__init__.py",
        "b/src/corp/workers.py",
        "tools/run.py",
        "corp.models",
        "corp.workers",
    ),
    "a program in a third part of it": (
        "a/corp/ml/models.py",
        "b/corp/ml/workers.py",
        "c/corp/ml/app/run.py",
        "corp.ml.models",
        "corp.ml.workers",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", ["", ', "spawn"'])
def test_all_and_one_file_agree(run: Run, tmp_path: Path, layout: str, method: str) -> None:
    models, workers, program, first, second = LAYOUTS[layout]
    write(tmp_path, {"pyproject.toml": named("all"), models: MODELS, workers: WORKERS})
    for path in (models, workers):
        if path.count("/") < 3:
            write(tmp_path, {f"{Path(path).parent}/__init__.py": ""} if "corp" not in path else {})
    write(tmp_path, {program: PROGRAM.format(models=first, workers=second, method=method)})
    expected = [("CUD201", "warning")] if method else [("CUD101", "error")]
    for cwd, given in ((tmp_path, "."), (tmp_path, program), ((tmp_path / program).parent, "run.py")):
        assert found(run, cwd, given) == expected


def test_a_namespace_named_by_its_parts(run: Run, tmp_path: Path) -> None:
    """``from corp.ml import workers`` in one part finds what another has; its own goes first."""
    text = PROGRAM.format(models="corp.ml.models", workers="x", method="").replace("from x import spread", "{}")
    own = "from corp.ml import workers\nspread = workers.spread"
    write(tmp_path, {"pyproject.toml": named("all"), "a/corp/ml/models.py": MODELS, "b/corp/ml/workers.py": WORKERS})
    write(tmp_path, {"c/corp/ml/run.py": text.replace("{}", own)})
    assert found(run, tmp_path, ".") == [("CUD101", "error")]
    write(tmp_path, {"c/corp/ml/workers.py": "def spread(fn, items):\n    return [fn(item) for item in items]\n"})
    assert found(run, tmp_path, ".") == []


SPREADS = """\
from multiprocessing import get_context

from acme_models import Embedder, warm


def work(n):
    return Embedder().embed(n)


if __name__ == "__main__":
    print(warm())
    with get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
"""


def test_an_editor_shows_what_leads_through_a_project_beside(run: Run, tmp_path: Path) -> None:
    repository(tmp_path, "by name", "")
    write(tmp_path, {"app/app/run.py": SPREADS})
    assert found(run, tmp_path / "app", ".") == [("CUD101", "error")]

    async def play(editor: Editor) -> None:
        await editor.until(lambda: editor.codes("app/run.py"))
        assert editor.codes("app/run.py") == ["CUD101"]

    edit_session(tmp_path / "app", play)


def test_flake8_looks_at_one_file_alone(tmp_path: Path) -> None:
    repository(tmp_path, "by name", "")
    alone = SPREADS.replace("from acme_models import Embedder, warm\n", MODELS)
    write(tmp_path, {"app/app/run.py": SPREADS, "app/app/alone.py": alone})
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--isolated", "--select", "CUD1", "app"],
        cwd=tmp_path / "app",
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["CUD101"]
    assert done.stdout.startswith("app/alone.py:")
