"""Terminals as reports write to them."""

from __future__ import annotations

import io

from rich.console import Console


def console(*, colour: bool) -> Console:
    """One that writes into memory what is given to it, neither wrapped nor interpreted."""
    return Console(
        file=io.StringIO(),
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        soft_wrap=True,
        highlight=False,
        markup=False,
        emoji=False,
    )
