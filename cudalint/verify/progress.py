"""How far a verification has come: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, TextIO

# Where lines are only for what stands out, so many more say how far it is.
_MILESTONES = 10


class Shown(Protocol):
    """What is shown while programs run."""

    def step(self, text: str, stands_out: bool) -> None:
        """One more is done, and what is told of it."""

    def say(self, text: str) -> None:
        """A line by itself."""


@contextlib.contextmanager
def progress(err: TextIO, total: int, *, terse: bool = False) -> Iterator[Shown]:
    """Tell how far it is each time that something is done; ``terse`` lines are only for what stands out."""
    if not err.isatty():
        yield _Lines(err, total, terse)
        return
    with _bar(err, total) as shown:
        yield shown


@contextlib.contextmanager
def _bar(err: TextIO, total: int) -> Iterator[Shown]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(file=err), transient=True) as shown:
        task = shown.add_task("", total=total)

        class Bar:
            def step(self, text: str, stands_out: bool) -> None:
                if stands_out:
                    self.say(text)
                shown.update(task, advance=1, description=text.partition(":")[0])

            def say(self, text: str) -> None:
                shown.console.print(f"cudalint: {text}", markup=False, highlight=False, soft_wrap=True)

        yield Bar()


class _Lines:
    def __init__(self, err: TextIO, total: int, terse: bool) -> None:
        self._err, self._total, self._terse = err, total, terse
        self._done = 0

    def step(self, text: str, stands_out: bool) -> None:
        """One more is done."""
        before, self._done = self._done, self._done + 1
        if stands_out or not self._terse:
            self.say(f"[{self._done}/{self._total}] {text}")
        elif self._done * _MILESTONES // self._total > before * _MILESTONES // self._total:
            self.say(f"[{self._done}/{self._total}]")

    def say(self, text: str) -> None:
        """A line by itself."""
        print(f"cudalint: {text}", file=self._err, flush=True)
