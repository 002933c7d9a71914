"""What the command line prints of a run, and where."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cudalint.caching import Cache
from cudalint.found import Report
from cudalint.hosts import streams
from cudalint.hosts.colours import Color, wants_colour
from cudalint.report.render import OutputFormat, Style, render
from cudalint.structs import Frozen


class Printing(Frozen):
    """How a run is told: the options of output as they were given."""

    output_format: OutputFormat = OutputFormat.FULL
    output_file: str | None = None
    color: Color = Color.AUTO
    statistics: bool = False
    quiet: bool = False
    verbose: bool = False
    unsafe_fixes: bool = False

    @property
    def needs_repairs(self) -> bool:
        """Whether the report shows what could be repaired."""
        return not self.statistics and self.output_format.shows_repairs

    @property
    def colour(self) -> bool:
        """Whether it is written in colour."""
        return wants_colour(self.color, self.output_file)

    def report(self, report: Report, cache: Cache, fixed: int = 0, within: frozenset[str] | None = None) -> None:
        """Print what was found, and what has to be said besides.

        ``fixed`` repairs were made before; more are possible in the files ``within`` reach.
        """
        style = Style(self.colour, os.getcwd(), self.unsafe_fixes, fixed, self.quiet, within)
        if self.statistics:
            from cudalint.report import statistics

            wants_json = self.output_format is OutputFormat.JSON
            self.put(statistics.as_json(report) if wants_json else statistics.as_text(report))
        else:
            self.put(render(report, self.output_format, style))
        if self.verbose:
            _say_effort(report, cache)
        else:
            self.warn(report.warnings)

    def put(self, text: str) -> None:
        """Write the result where it is wanted."""
        if self.output_file is None:
            streams.put(text)
        else:
            streams.save(self.output_file, text)

    def warn(self, notes: Iterable[str]) -> None:
        """Say what should be known, unless nobody wants to."""
        for note in notes:
            self.tell(f"cudalint: warning: {note}")

    def tell(self, text: str) -> None:
        """Say a line for the user, unless that is not wanted."""
        if not self.quiet:
            streams.say(text)


def _say_effort(report: Report, cache: Cache) -> None:
    for note in (*report.warnings, *report.notes):
        streams.say(f"cudalint: {note}")
    for failure in report.failures:
        for row in f"cudalint: {failure}".splitlines():
            streams.say(row)
    if cache.problem is not None:
        streams.say(f"cudalint: {cache.problem}")
    effort = report.effort
    streams.say(
        f"cudalint: read {effort.files_read:,} files ({effort.bytes_read:,} bytes), "
        f"parsed {effort.files_parsed:,} ({effort.bytes_parsed:,} bytes), "
        f"lowered {effort.nodes_lowered:,} nodes, "
        f"entered {effort.functions:,} functions, ran {effort.entries - effort.kept:,} entries, {effort.cut:,} cut"
        + (f", and knew what {effort.kept:,} give" if effort.kept else "")
    )
