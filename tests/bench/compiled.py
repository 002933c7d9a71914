"""python -m bench.compiled [--corpus DIR] [--rounds N] [--only NAME ...] [--wheels PURE COMPILED] [--tests].

From `tests/`. Builds a pure and a compiled wheel of this checkout, installs each in an environment of its own, and
compares them: the same findings, cuts and counts, byte for byte, and what a run costs. `--tests` first runs the tests
of fixtures and small projects on the compiled one. Ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ecosystem.usage import used

from bench import corpus
from bench.runs import ROOT

PACKAGES = ("rich", "mmengine", "lightning", "accelerate")
TESTS = ("tests/test_fixtures.py", "tests/test_folder_fixtures.py", "tests/test_projects.py")
# A program of which nothing matters: what it costs to check it is the start of a run.
NOTHING = "nothing to do"
_SWITCH = "HATCH_BUILD_HOOK_ENABLE_CUSTOM"
_LIMIT = 600.0


@dataclass(frozen=True, slots=True)
class Installed:
    """A wheel in an environment of its own."""

    wheel: Path
    folder: Path

    def program(self, name: str) -> str:
        """A program of the environment."""
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / name)

    @property
    def library(self) -> int:
        """The bytes of what was compiled."""
        with zipfile.ZipFile(self.wheel) as wheel:
            return sum(part.file_size for part in wheel.infolist() if part.filename.endswith((".so", ".pyd")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, compare and print; 1 where the two differ."""
    parser = argparse.ArgumentParser(prog="bench.compiled", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=corpus.CACHE, metavar="DIR", help=f"default: {corpus.CACHE}")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often all is run (default: 3)")
    parser.add_argument("--only", nargs="+", default=PACKAGES, metavar="NAME", help="these packages of corpus.toml")
    parser.add_argument("--wheels", nargs=2, type=Path, metavar=("PURE", "COMPILED"), help="wheels built before")
    parser.add_argument("--tests", action="store_true", help="run tests on the compiled wheel first")
    options = parser.parse_args(arguments)
    members = corpus.chosen(corpus.members(corpus.PINNED), options.only)
    with tempfile.TemporaryDirectory(prefix="cudalint-compiled-") as name:
        scratch = Path(name)
        wheels = options.wheels or [_built(scratch / "pure-wheel", "0"), _built(scratch / "compiled-wheel", "1")]
        pure, compiled = (_installed(wheel.resolve(), scratch / wheel.stem, options.tests) for wheel in wheels)
        for found in (pure, compiled):
            version = _output(found, "--version").decode().strip()
            print(f"{version}: wheel {found.wheel.stat().st_size / 1e6:.1f} MB, libraries {found.library / 1e6:.1f} MB")
        if options.tests and _tested(compiled) != 0:
            return 1
        empty = scratch / "empty"
        empty.mkdir()
        (empty / "nothing.py").write_text("print()\n", encoding="utf-8")
        folders = {NOTHING: empty} | {member.name: corpus.fetched(member, options.corpus) for member in members}
        differing = _compare(pure, compiled, folders, options.rounds)
    print("they differ on: " + (", ".join(differing) or "none"))
    return 1 if differing else 0


def _built(folder: Path, switch: str) -> Path:
    """Build a wheel of this checkout."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, env={**os.environ, _SWITCH: switch}, check=True)
    (wheel,) = folder.glob("*.whl")
    print(f"{wheel.name} was built in {time.monotonic() - began:.0f} s", flush=True)
    return wheel


def _installed(wheel: Path, folder: Path, with_tests: bool) -> Installed:
    """Install a wheel in an environment of its own; its bytecode is written before anything is measured."""
    venv.create(folder, with_pip=True)
    found = Installed(wheel, folder)
    wanted = f"cudalint[test] @ {wheel.as_uri()}" if with_tests else str(wheel)
    subprocess.run([found.program("pip"), "install", "--quiet", "--compile", wanted], check=True)
    return found


def _tested(found: Installed) -> int:
    # The script, not the module: that one would put the checkout first on the path.
    command = [found.program("pytest"), "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(command, cwd=ROOT, env=_plain(), check=False).returncode


def _plain() -> dict[str, str]:
    """The environment without what leads to another cudalint or keeps bytecode from being used."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _output(found: Installed, *arguments: str) -> bytes:
    done = subprocess.run([found.program("cudalint"), *arguments], env=_plain(), stdout=subprocess.PIPE, check=True)
    return done.stdout


def _checked(found: Installed, folder: Path) -> tuple[bytes, float]:
    """What a run says, and the seconds of processor time that it took; raises ``RuntimeError``.

    Besides the findings it says what was cut, and counts what it did.
    """
    options = ("--no-cache", "--isolated", "--jobs", "1", "--output-format", "json", "--verbose")
    command = [found.program("cudalint"), "check", *options, str(folder)]
    with tempfile.TemporaryFile() as output:
        usage = used(command, cwd=folder, environment=_plain(), output=output, errors=output, limit=_LIMIT)
        if usage.code not in (0, 1):
            raise RuntimeError(f"{found.wheel.name} ended with {usage.code} on {folder}")
        output.seek(0)
        return output.read(), usage.cpu


def _compare(pure: Installed, compiled: Installed, folders: dict[str, Path], rounds: int) -> list[str]:
    """Run both in turn and print medians, a ratio being taken within a round; the packages on which they differ."""
    differing: dict[str, None] = {}
    print("\n| package | pure | compiled | ratio |\n| --- | ---: | ---: | ---: |", flush=True)
    for name, folder in folders.items():
        pairs: list[tuple[float, float]] = []
        for _ in range(rounds):
            (known, slow), (given, fast) = _checked(pure, folder), _checked(compiled, folder)
            pairs.append((slow, fast))
            if known != given:
                differing[name] = None
        one, other = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(slow / fast for slow, fast in pairs)
        print(f"| {name} | {one:.2f} | {other:.2f} | {ratio:.2f} |", flush=True)
    print()
    return list(differing)


if __name__ == "__main__":
    sys.exit(main())
