"""Trees of growing size, made of whole packages: what cost does as a project grows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import Member, mark
from bench.runs import Kind, Project, Sample, Tools, rounds

# Neighbouring points are at least so many times apart.
_APART = 1.5
_KINDS = (Kind.READ, Kind.RUFF, Kind.COLD, Kind.WARM)


@dataclass(frozen=True, slots=True)
class Subset:
    """Packages that stand side by side in one tree, as in a repository of several projects."""

    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """Bytes of source."""
        return sum(member.size for member in self.members)


def subsets(members: Sequence[Member], most: int) -> tuple[Subset, ...]:
    """Each holds the one before it: the smallest package, and so on until the next would exceed ``most`` bytes."""
    ordered = sorted(members, key=lambda member: member.size)
    nested = [Subset(tuple(ordered[:count])) for count in range(1, len(ordered) + 1)]
    fitting = [subset for subset in nested if subset.size <= most]
    found: list[Subset] = []
    for subset in fitting:
        if not found or subset.size >= _APART * found[-1].size or subset is fitting[-1]:
            found.append(subset)
    return tuple(found)


def grown(
    tools: Tools,
    chosen: Sequence[Subset],
    wanted: Sequence[Kind],
    folders: Mapping[str, Path],
    scratch: Path,
    limit: float,
) -> Iterator[tuple[Subset, Sample]]:
    """Each subset measured once, the smallest first; a kind that took too long is not tried on what is larger."""
    top = scratch / "side by side"
    top.mkdir()
    mark(top)
    kinds, there = tuple(kind for kind in _KINDS if kind in wanted), set[str]()
    for subset in chosen:
        for member in subset.members:
            if member.name not in there:
                shutil.copytree(folders[member.name], top / member.package.folder)
                there.add(member.name)
        first = subset.members[0]
        file = f"{first.package.folder}/{first.file}"
        project = Project(f"{subset.size / 1e6:.1f} MB", top, file, scratch / "cache of sizes")
        for sample in rounds(tools, (project,), kinds, 1, limit):
            yield subset, sample
            if sample.failure:
                kinds = tuple(kind for kind in kinds if kind in (Kind.READ, Kind.RUFF))
