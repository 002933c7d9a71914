"""Terminals as reports write to them."""

from __future__ import annotations

import io

from rich.console import Console


def console(*, colour: bool) -> Console:
    """One that writes into memory what is given to it, neither wrapped nor interpreted."""
    # Rows are never cut, so no width is asked of a terminal: with none at all (COLUMNS=0) nothing would be written.
    return Console(
        file=io.StringIO(),
        width=80,
        height=25,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        soft_wrap=True,
        highlight=False,
        markup=False,
        emoji=False,
    )
