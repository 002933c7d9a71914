"""Whether the command line writes in colour."""

from __future__ import annotations

from enum import Enum

from cudalint.hosts import streams


class Color(Enum):
    """When a report is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def wants_colour(color: Color, output_file: str | None) -> bool:
    """Whether to write in colour: as the option says, then by where the output goes and the environment."""
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    return output_file is None and streams.takes_colour()
