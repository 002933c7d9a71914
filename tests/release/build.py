"""python -m release.build [--out DIR] [--offline].

From `tests/`, in an environment with `.[release]`. Builds the wheel and the source distribution of the last commit, as
of its date (`SOURCE_DATE_EPOCH`), three times: twice in different places and surroundings, and from the source
distribution. All are the same, byte for byte, or it ends with 1. `--offline` then fills a wheel house, and installs and
tries the wheel from there alone.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli

ROOT = Path(__file__).resolve().parents[2]
# What may differ between two machines that build the same.
ELSEWHERE = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "7", "HOME": "/nonexistent"}
EXTRAS = "flake8,server"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, compare, and print what the files hash to."""
    parser = argparse.ArgumentParser(prog="release.build", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="default: dist")
    parser.add_argument("--offline", action="store_true", help="install from a wheel house, without an index")
    options = parser.parse_args(arguments)
    epoch = {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct").strip()}
    if _git("status", "--porcelain"):
        print("what is not committed is left out")
    with tempfile.TemporaryDirectory(prefix="cudalint-build-") as name:
        scratch = Path(name)
        here, there = _exported(scratch / "here"), _exported(scratch / "there" / "deeper")
        files = built(here, options.out.absolute(), epoch)
        others = [*built(there, scratch / "second", {**epoch, **ELSEWHERE}, umask=0o077)]
        source = unpacked(next(path for path in files if path.name.endswith(".tar.gz")), scratch / "unpacked")
        others += built(source, scratch / "third", epoch)
        for path in files:
            print(f"{digest(path)}  {path.name}", flush=True)
        differing = [path for path in others if digest(path) != digest(options.out / path.name)]
        for path in differing:
            print(f"differs: {path.parent.name}/{path.name}")
        if differing:
            return 1
        if options.offline:
            _try_offline(next(path for path in files if path.suffix == ".whl"), scratch)
    return 0


def settings() -> dict[str, Any]:
    """What `pyproject.toml` says."""
    return tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def built(tree: Path, folder: Path, environment: Mapping[str, str], umask: int = -1) -> list[Path]:
    """Build the wheel and the source distribution of a tree; raises ``CalledProcessError``."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    # hatchling's own switch would compile.
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("HATCH_", "SOURCE_DATE_EPOCH"))}
    subprocess.run(command, cwd=tree, env={**plain, **environment}, umask=umask, capture_output=True, check=True)
    return sorted(path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))


def unpacked(source: Path, folder: Path) -> Path:
    """The tree of a source distribution."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
    (tree,) = folder.iterdir()
    return tree


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _exported(folder: Path) -> Path:
    """The last commit as files."""
    folder.mkdir(parents=True)
    archive = folder.with_suffix(".tar")
    _git("archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
    return folder


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _try_offline(wheel: Path, scratch: Path) -> None:
    """Install from a wheel house with no index, and try what is there; raises ``RuntimeError``."""
    house, folder = scratch / "house", scratch / "environment"
    wanted = f"cudalint[{EXTRAS}] @ {wheel.as_uri()}"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(house), wanted], check=True)
    venv.create(folder, with_pip=True)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    alone = {**plain, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(house)}

    def tried(name: str, *arguments: str, code: int = 0) -> str:
        command = [str(folder / ("Scripts" if os.name == "nt" else "bin") / name), *arguments]
        done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise RuntimeError(f"{name} {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    tried("pip", "install", "--quiet", f"cudalint[{EXTRAS}]")
    print(f"from {len(list(house.iterdir()))} wheels alone: {tried('cudalint', '--version').strip()}")
    check = ("check", "--isolated", "--no-cache", "--statistics", "--output-format", "concise")
    tried("cudalint", *check, str(ROOT / "fixtures" / "seeds"), code=1)
    for arguments in (["rule", "--all"], ["config"], ["config", "--schema"]):
        tried("cudalint", *arguments)
    tried("pip", "check")
    if "cudalint" not in tried("flake8", "--version"):
        raise RuntimeError("flake8 does not find cudalint")


if __name__ == "__main__":
    sys.exit(main())
