"""The pinned packages, and how their .py files come to this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

HERE = Path(__file__).parent

# pip asks a package's build for its metadata by this script; nothing of a package is to run.
NO_BUILDS = """
import os
import sys

if any(argument.endswith("_in_process.py") for argument in sys.orig_argv):
    os._exit(1)
"""


class Unavailable(Exception):
    """A package could not be fetched; the text says why."""


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned release."""

    name: str
    version: str
    sdist: bool
    tiny: bool
    python: str

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"


def pinned(path: Path = HERE / "packages.toml") -> list[Package]:
    return [package for package, _ in entries(path)]


def entries(path: Path) -> list[tuple[Package, dict[str, Any]]]:
    """The releases of a list, each with all that the list says of it."""
    return [
        (
            Package(
                name=entry["name"],
                version=entry["version"],
                sdist=entry["kind"] == "sdist",
                tiny=entry.get("tiny", False),
                python=entry.get("python", "3.11"),
            ),
            entry,
        )
        for entry in tomli.loads(path.read_text(encoding="utf-8"))["package"]
    ]


def unpacked(package: Package, keep: Path) -> Path:
    """The folder with the package's .py files and project files; fetched if it is not there yet."""
    folder = keep / package.folder
    if folder.is_dir():
        return folder
    scratch = keep / f".{package.folder}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        fetch = _fetch_sdist if package.sdist else _fetch_wheel
        fetch(package, scratch, scratch / "source")
        (scratch / "source").rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _fetch_wheel(package: Package, scratch: Path, source: Path) -> None:
    tags = ["--only-binary", ":all:", "--python-version", package.python]
    _pip([], scratch, [*tags, f"{package.name}=={package.version}"])
    for archive in scratch.glob("*.whl"):
        _unpack_zip(archive, source)
        return
    raise Unavailable("pip left no wheel")


def _fetch_sdist(package: Package, scratch: Path, source: Path) -> None:
    """Let pip fetch and unpack, and stop where it would run the package's build.

    The environment ends every build before it begins, so that pip fails right after unpacking and no
    code of the package ever runs; ``--no-clean`` leaves what was unpacked.
    """
    empty = _without_builds(scratch.parent / ".no-builds")
    temporary = scratch / "tmp"
    temporary.mkdir()
    arguments = ["--no-binary", ":all:", "--no-clean", "--no-build-isolation", "--use-pep517"]
    reason = "pip left no source"
    try:
        _pip(empty, scratch, [*arguments, f"{package.name}=={package.version}"], temporary)
    except Unavailable as error:
        reason = str(error)
    for top in temporary.glob("pip-*/*/"):
        if any(top.rglob("*.py")):
            _copy_python(top, source)
            return
    for archive in scratch.glob("*.tar.gz"):
        _unpack_tar(archive, source)
        return
    raise Unavailable(reason)


def _without_builds(folder: Path) -> list[str]:
    """The options that make pip work for an environment in which nothing is installed, nor ever built."""
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=False)
        for site_packages in folder.rglob("site-packages"):
            (site_packages / "sitecustomize.py").write_text(NO_BUILDS, encoding="utf-8")
    return ["--python", str(python)]


def _pip(options: list[str], scratch: Path, arguments: list[str], temporary: Path | None = None) -> None:
    environment = dict(os.environ)
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    command = [sys.executable, "-m", "pip", *options, "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--ignore-requires-python", "--dest", str(scratch)]
    result = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise Unavailable(next((line for line in lines if line.startswith("ERROR")), lines[-1]))


def files(folder: Path) -> list[Path]:
    """What of an unpacked package is kept, whatever else lies in its folder."""
    return sorted(path for path in folder.rglob("*") if _wanted(path.name) and path.is_file())


def _wanted(name: str) -> bool:
    """Python files, and what tells cudalint about the project."""
    return name.endswith((".py", "pyproject.toml", "setup.cfg"))


def _unpack_zip(archive: Path, source: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(source, [name for name in opened.namelist() if _wanted(name)])


def _unpack_tar(archive: Path, source: Path) -> None:
    with tarfile.open(archive) as opened:
        for member in opened:
            _, _, name = member.name.partition("/")
            stream = opened.extractfile(member) if member.isfile() and _wanted(name) else None
            if stream is None or ".." in name.split("/"):
                continue
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(stream.read())


def _copy_python(top: Path, source: Path) -> None:
    for path in top.rglob("*"):
        if path.is_symlink() or not path.is_file() or not _wanted(path.name):
            continue
        target = source / path.relative_to(top)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
