"""The packages that are measured, and copies of them that a measurement may change."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ecosystem import packages

PINNED = Path(__file__).with_name("corpus.toml")
CACHE = Path.home() / ".cache" / "cudalint-bench"
_MARKER = "pyproject.toml"


class BadCorpus(Exception):
    """A package cannot be measured; the text says why."""


@dataclass(frozen=True, slots=True)
class Member:
    """A package of the corpus: its release, how much text it holds, and the file that stands for one that is edited."""

    package: packages.Package
    files: int
    size: int
    file: str

    @property
    def name(self) -> str:
        """The package's name."""
        return self.package.name


def members(path: Path = PINNED) -> tuple[Member, ...]:
    """All packages of a list, as they stand in it."""
    return tuple(
        Member(package, entry["files"], entry["bytes"], entry["file"]) for package, entry in packages.entries(path)
    )


def chosen(known: Iterable[Member], only: Iterable[str]) -> tuple[Member, ...]:
    """The members with these names, or all; raises ``BadCorpus`` for a name that is not there."""
    by_name = {member.name: member for member in known}
    unknown = [name for name in only if name not in by_name]
    if unknown:
        raise BadCorpus(f"no package {unknown[0]!r} in corpus.toml: it has {', '.join(by_name)}")
    return tuple(by_name[name] for name in only) or tuple(by_name.values())


def fetched(member: Member, corpus: Path) -> Path:
    """The folder of a member's sources, which holds what the list says; raises ``BadCorpus``."""
    try:
        folder = packages.unpacked(member.package, corpus)
    except packages.Unavailable as error:
        raise BadCorpus(f"{member.package.folder}: not fetched: {error}") from None
    sizes = [path.stat().st_size for path in folder.rglob("*.py")]
    if (len(sizes), sum(sizes)) != (member.files, member.size):
        found = f"{len(sizes):,} files of {sum(sizes):,} bytes"
        raise BadCorpus(f"{folder} holds {found}, corpus.toml says {member.files:,} of {member.size:,}")
    if not (folder / member.file).is_file():
        raise BadCorpus(f"{folder} has no {member.file}, which corpus.toml names")
    return folder


def copied(folder: Path, target: Path) -> Path:
    """A copy of a package as a project of its own; nothing that a measurement does reaches the corpus."""
    shutil.copytree(folder, target)
    mark(target)
    return target


def mark(folder: Path) -> None:
    """Make a folder the root of a project."""
    (folder / _MARKER).touch()
