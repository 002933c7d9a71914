"""What a run may do at most, counted in what does not depend on the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tomli

from cudalint.found import Effort
from cudalint.project.analysis import Work

LIST = Path(__file__).with_name("bounds.toml")


def bounds(path: Path = LIST) -> dict[str, dict[str, int]]:
    """The most of each count, by what is checked."""
    return tomli.loads(path.read_text(encoding="utf-8"))


def exceeded(most: Mapping[str, int], done: Effort | Work) -> list[str]:
    """The bounds that a run went beyond, each in words."""
    counts = {name: getattr(done, name) for name in most}
    return [f"{name}: {counts[name]:,}, at most {most[name]:,}" for name in most if counts[name] > most[name]]
