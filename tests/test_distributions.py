"""Wheel and source distribution: that they hold what they need, can be built again, and install without an index."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from release.build import ELSEWHERE, ROOT, built, digest, settings, unpacked
from release.versions import supported

from cudalint import __version__

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both, by the end of their names."""
    wheel, source = sorted(
        built(ROOT, tmp_path_factory.mktemp("dist"), EPOCH), key=lambda path: path.suffix, reverse=True
    )
    return {"wheel": wheel, "source": source}


@pytest.fixture(scope="module")
def tree(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    return unpacked(files["source"], tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def installed(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in a folder, installed with no index; what it depends on is in the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet"]
    command = [*pip, "--no-index", "--no-deps", "--no-compile", "--target", str(folder), str(files["wheel"])]
    subprocess.run(command, check=True)
    return folder


def below(folder: Path, *names: str) -> set[str]:
    """The files of a checkout below some of its folders, and these files themselves, without what is made there."""
    made = {"__pycache__", ".cudalint_cache", "node_modules", "dist", ".hypothesis"}
    paths = [
        path
        for name in names
        for path in ([folder / name] if (folder / name).is_file() else (folder / name).rglob("*"))
    ]
    kept = [path for path in paths if path.is_file() and not made & set(path.relative_to(folder).parts)]
    return {path.relative_to(folder).as_posix() for path in kept if path.suffix not in (".pyc", ".so", ".vsix")}


def test_the_wheel_holds_the_package_its_fixtures_and_its_evidence(files: dict[str, Path]) -> None:
    with zipfile.ZipFile(files["wheel"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    moved = {"fixtures": "cudalint/_fixtures", "docs/evidence": "cudalint/_evidence"}
    wanted = below(ROOT, "cudalint")
    wanted |= {name.replace(old, new, 1) for old, new in moved.items() for name in below(ROOT, old)}
    assert names == wanted | {f"cudalint-{__version__}.data/data/share/man/man1/cudalint.1"}
    models = {"cudalint/models/torch.toml", "cudalint/models/words.txt"}
    assert {"cudalint/cudalint.schema.json", "cudalint/py.typed", *models} <= names


def test_the_source_distribution_holds_the_rest(tree: Path) -> None:
    top = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "pyproject.toml")
    wanted = below(ROOT, "cudalint", "fixtures", "tests", "docs", ".pre-commit-hooks.yaml", *top)
    wanted -= {"docs/editors/vscode/LICENSE"}  # copied there when the extension is built
    assert below(tree, ".") - {"PKG-INFO", ".gitignore"} == wanted


def test_the_metadata_is_that_of_the_project(files: dict[str, Path]) -> None:
    with zipfile.ZipFile(files["wheel"]) as wheel:
        info = f"cudalint-{__version__}.dist-info"
        metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        points = wheel.read(f"{info}/entry_points.txt").decode()
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("cudalint", __version__, "MIT")
    project = settings()["project"]
    assert metadata["Requires-Python"] == project["requires-python"] == f">={next(supported())}"
    required = [line.partition(";")[0].strip() for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert required == [line.partition(";")[0].strip() for line in project["dependencies"]]
    assert set(metadata.get_all("Provides-Extra")) == set(project["optional-dependencies"])
    assert str(metadata.get_payload()).startswith("# cudalint\n")
    assert "cudalint = cudalint.__main__:main" in points
    assert "CUD = cudalint.hosts.flake8_plugin:Plugin" in points


def test_every_dependency_has_a_lowest_version() -> None:
    project = settings()["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    named = [one for one in (*project["dependencies"], *extras) if not one.startswith("cudalint[")]
    assert [one for one in named if ">=" not in one] == []


def test_built_again_elsewhere_they_are_the_same(files: dict[str, Path], tree: Path, tmp_path: Path) -> None:
    again = built(tree, tmp_path, {**EPOCH, **ELSEWHERE}, umask=0o077)
    assert {path.name: digest(path) for path in again} == {path.name: digest(path) for path in files.values()}


def test_the_wheel_works_where_nothing_else_of_the_checkout_is(installed: Path, tmp_path: Path, forked: str) -> None:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**plain, "PYTHONPATH": str(installed), "NO_COLOR": "1"}

    def said(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "cudalint", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, "")
        return done.stdout

    assert said("--version").strip() == f"cudalint {__version__}"
    assert "= on hardware: the program crashes" in said("check", "train.py", code=1)  # quoted from the evidence in it
    place = "import cudalint.verify.headers as h; print(h.__file__, len(list(h.default_folder().glob('CUD*'))))"
    command = [sys.executable, "-c", place]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    file, count = done.stdout.split()
    assert Path(file).is_relative_to(installed)
    assert int(count) == len(list((ROOT / "fixtures").glob("CUD*")))
