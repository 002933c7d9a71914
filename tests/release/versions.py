"""python -m release.versions [PYTHON ...] [--lowest | --newest] [--tests FILE ...].

From `tests/`, in an environment with `.[release]`. Builds a wheel and, for each Python and each end of what
`pyproject.toml` allows of dependencies, installs it in a fresh environment, checks the seeds and runs tests on it. A
Python is a version or a path; default: all that `pyproject.toml` names, as far as uv finds them (nothing is downloaded
but packages). Ends with 1 where anything fails, and with 2 where a Python that was named is not there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from release.build import ROOT, built, settings

EXTRAS = ("test", "dev", "flake8", "server", "verify")
SHOWN = ("libcst", "click", "rich", "flake8", "pygls", "pytest")
# The analysis and the repairs; then what meets the dependencies: command line, formats, plugins.
TESTS = (
    *("test_fixtures.py", "test_folder_fixtures.py", "test_projects.py", "test_entries.py", "test_cuts.py"),
    *("test_classes.py", "test_spawn_safety.py", "test_layers.py", "test_newer_syntax.py", "test_robustness.py"),
    *("test_cli.py", "test_cli_options.py", "test_config.py", "test_api.py", "test_report.py", "test_sarif.py"),
    *("test_formats.py", "test_flake8.py", "test_server.py", "test_verify_pytest.py"),
)
_RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests on every version, and print a row for each."""
    parser = argparse.ArgumentParser(prog="release.versions", description=__doc__)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="versions or paths (default: all that can be had)")
    ends = parser.add_mutually_exclusive_group()
    for end in _RESOLUTIONS:
        ends.add_argument(f"--{end}", action="store_const", dest="end", const=end, help=f"the {end} dependencies only")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="FILE", help="these tests, with options of pytest")
    options = parser.parse_args(arguments)
    chosen = [options.end] if options.end else list(_RESOLUTIONS)
    named = options.pythons or list(supported())
    found = {name: python for name in named if (python := _python(name)) is not None}
    for name in named:
        if name not in found:
            print(f"Python {name}: not found", flush=True)
    failed = False
    with tempfile.TemporaryDirectory(prefix="cudalint-versions-") as scratch:
        wheel = next(path for path in built(ROOT, Path(scratch, "dist"), {}) if path.suffix == ".whl")
        for name, python in found.items():
            for end in chosen:
                folder = Path(tempfile.mkdtemp(dir=scratch))
                failed |= not _passes(name, python, end, wheel, folder, options.tests)
    if failed:
        return 1
    return 2 if options.pythons and len(found) < len(named) else 0


def supported() -> Iterator[str]:
    """The versions of Python that the package is said to run on."""
    for classifier in settings()["project"]["classifiers"]:
        if match := _CLASSIFIER.fullmatch(classifier):
            yield match[1]


def _python(name: str) -> str | None:
    """The path of a Python; ``None`` where there is none."""
    done = _uv("python", "find", "--no-project", "--no-python-downloads", name, check=False)
    if done.returncode == 0:
        return done.stdout.strip()
    # Those of pyenv are seen by uv only where pyenv has them switched on.
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    return next((str(path) for path in sorted(root.glob(f"{name}.*/bin/python"))), None)


def _passes(name: str, python: str, end: str, wheel: Path, folder: Path, tests: Sequence[str]) -> bool:
    began = time.monotonic()
    try:
        program = _installed(python, end, wheel, folder)
    except subprocess.CalledProcessError as error:
        print(f"Python {name}, {end}: cannot be installed\n{error.stderr}", flush=True)
        return False
    listed = dict(line.split("==") for line in _uv("pip", "freeze", "--python", program).stdout.split() if "==" in line)
    print(f"Python {name}, {end}: {', '.join(f'{one} {listed[one]}' for one in SHOWN)}", flush=True)
    seeds = _run([program, "-m", "cudalint", "check", "--isolated", "--no-cache", str(ROOT / "fixtures" / "seeds")])
    if seeds.returncode != 1:
        print(f"  the seeds: {seeds.returncode}, not 1\n{seeds.stdout}{seeds.stderr}")
    tested = _run([program, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests])
    last = (tested.stdout.strip().splitlines() or ["nothing"])[-1]
    print(f"  {last}, {time.monotonic() - began:.0f} s in all", flush=True)
    if tested.returncode:
        print(tested.stdout + tested.stderr, flush=True)
    return seeds.returncode == 1 and tested.returncode == 0


def _installed(python: str, end: str, wheel: Path, folder: Path) -> str:
    """Install a wheel in a fresh environment, with one end of its dependencies; the Python of that environment."""
    _uv("venv", "--quiet", "--clear", "--python", python, str(folder))
    program = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    wanted = [f"--extra={extra}" for extra in EXTRAS]
    how = (f"--resolution={_RESOLUTIONS[end]}", "--python", program, "--only-binary=:all:")
    requirements = folder / "requirements.txt"
    _uv("pip", "compile", *how, *wanted, "--output-file", str(requirements), str(ROOT / "pyproject.toml"))
    given = [line for line in requirements.read_text(encoding="utf-8").splitlines() if not line.startswith("cudalint")]
    requirements.write_text("\n".join(given), encoding="utf-8")
    _uv("pip", "install", "--quiet", "--python", program, "--only-binary=:all:", "--requirements", str(requirements))
    _uv("pip", "install", "--quiet", "--python", program, "--no-deps", str(wheel))
    return program


def _uv(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "uv", *arguments], capture_output=True, text=True, check=check)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run in `tests/`, without what leads to another cudalint."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**plain, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT / "tests", env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
