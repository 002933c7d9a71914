"""How far a verification has come: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TextIO

# What is told of one that is done, and whether it stands out.
Step = Callable[[str, bool], None]


@contextlib.contextmanager
def progress(err: TextIO, total: int, *, terse: bool = False) -> Iterator[Step]:
    """Tell how far it is each time that something is done; ``terse`` lines are only for what stands out."""
    with _bar(err, total) if err.isatty() else _lines(err, total, terse) as step:
        yield step


@contextlib.contextmanager
def _bar(err: TextIO, total: int) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(file=err), transient=True) as shown:
        task = shown.add_task("", total=total)

        def step(text: str, stands_out: bool) -> None:
            if stands_out:
                shown.console.print(f"cudalint: {text}", markup=False, highlight=False, soft_wrap=True)
            shown.update(task, advance=1, description=text.partition(":")[0])

        yield step


@contextlib.contextmanager
def _lines(err: TextIO, total: int, terse: bool) -> Iterator[Step]:
    done = 0

    def step(text: str, stands_out: bool) -> None:
        nonlocal done
        done += 1
        if stands_out or not terse:
            print(f"cudalint: [{done}/{total}] {text}", file=err, flush=True)

    yield step
