"""What is checked: some files by their paths, and where they come from."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """Files by path within a project; ``name`` says how to make it again."""

    name: str
    files: Mapping[str, bytes]

    def with_files(self, files: Mapping[str, bytes]) -> Case:
        """The same with other files."""
        return Case(self.name, dict(files))


@contextlib.contextmanager
def laid_out(case: Case) -> Iterator[Path]:
    """The files of a case in a folder of their own, which is a project."""
    with tempfile.TemporaryDirectory(prefix="cudalint-fuzz-") as folder:
        top = Path(folder).resolve()
        (top / "pyproject.toml").write_text("[tool.cudalint]\n", encoding="utf-8")
        for name, data in case.files.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield top
