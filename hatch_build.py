"""The build of a compiled wheel: mypyc makes a library of the modules that ``pyproject.toml`` names.

It is switched on by ``HATCH_BUILD_HOOK_ENABLE_CUSTOM=1``; without it a wheel is pure Python. All happens in a copy, so
that a checkout goes on running from its source. The source is in the wheel as well: Python takes the library where both
are there, and tracebacks show the source.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Run in the copy; mypy reads no configuration there, and takes the running Python as the one to check for. The library
# lies in the package, so that it is found wherever the package is.
_COMPILE = """\
import os, sys
from setuptools import setup
from mypyc.build import mypycify

extensions = mypycify(
    ["--config-file=", *sys.argv[1:]],
    opt_level=os.environ.get("MYPYC_OPT_LEVEL", "2"),
    debug_level="0",
    group_name="cudalint._compiled",
)
setup(name="cudalint", packages=[], ext_modules=extensions, script_args=["--quiet", "build_ext", "--inplace"])
"""


class CompiledWheel(BuildHookInterface[Any]):
    """Adds the library to a wheel, which is then for one version of Python on one platform."""

    _copy: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an editable install runs the source as it is edited."""
        if version == "editable":
            return
        self._copy = tempfile.TemporaryDirectory(prefix="cudalint-")
        copy = Path(self._copy.name)
        ignored = shutil.ignore_patterns("__pycache__", *(f"*{suffix}" for suffix in EXTENSION_SUFFIXES))
        shutil.copytree(Path(self.root, "cudalint"), copy / "cudalint", ignore=ignored)
        modules = modules_to_compile(copy, self.config)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.run([sys.executable, "-c", _COMPILE, *modules], cwd=copy, env=environment, check=True)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for library in sorted((copy / "cudalint").rglob("*")):
            if library.name.endswith(tuple(EXTENSION_SUFFIXES)):
                build_data["force_include"][str(library)] = library.relative_to(copy).as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        if self._copy is not None:
            self._copy.cleanup()


def modules_to_compile(root: Path, config: dict[str, Any]) -> list[str]:
    """The files that ``modules`` names, without those of ``interpreted``; ``ValueError`` where a name has none."""
    named = {path for pattern in config["modules"] for path in _named(root, pattern)}
    return sorted(named - {path for pattern in config["interpreted"] for path in _named(root, pattern)})


def _named(root: Path, pattern: str) -> set[str]:
    found = {path.relative_to(root).as_posix() for path in root.glob(pattern)}
    if not found:
        raise ValueError(f"no file is named {pattern}")
    return found
