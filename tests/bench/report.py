"""Samples as tables: medians over rounds, beside ruff and beside reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from bench.runs import Counts, Kind, Sample

Measure = Callable[[Sample], float]
_MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Samples:
    """All samples of a run, by project, kind and round."""

    every: tuple[Sample, ...]

    @property
    def projects(self) -> tuple[str, ...]:
        """The names of what was measured, in the order of the first round."""
        return tuple(dict.fromkeys(sample.project for sample in self.every))

    def failures(self) -> tuple[Sample, ...]:
        """The runs that did not end as they should."""
        return tuple(sample for sample in self.every if sample.failure)

    def complete(self) -> tuple[str, ...]:
        """The projects of which every run ended well: only these count in a total."""
        failed = {sample.project for sample in self.failures()}
        return tuple(project for project in self.projects if project not in failed)

    def of(self, project: str, kind: Kind) -> tuple[Sample, ...]:
        """The good runs of one kind on one project, by round."""
        return tuple(s for s in self.every if (s.project, s.kind) == (project, kind) and not s.failure)

    def by_round(self, projects: Iterable[str], kind: Kind, measure: Measure) -> dict[int, float]:
        """What a kind of run took on some projects together, by round."""
        found: dict[int, float] = {}
        for project in projects:
            for sample in self.of(project, kind):
                found[sample.round] = found.get(sample.round, 0.0) + measure(sample)
        return found

    def typical(self, projects: Iterable[str], kind: Kind, measure: Measure) -> float | None:
        """The median over rounds; None where nothing was measured."""
        values = self.by_round(projects, kind, measure).values()
        return median(values) if values else None

    def ratio(self, projects: Sequence[str], kind: Kind, base: Kind, measure: Measure) -> float | None:
        """How many times the base a kind takes: the median of the rounds' ratios, as one round has one weather."""
        these, those = (self.by_round(projects, which, measure) for which in (kind, base))
        values = [these[number] / those[number] for number in these if those.get(number)]
        return median(values) if values else None

    def counts(self, project: str) -> Counts | None:
        """What the first cold run of a project did: it is the same in each."""
        found = [sample.counts for sample in self.of(project, Kind.COLD) if sample.counts is not None]
        return found[0] if found else None

    def peak(self, projects: Iterable[str]) -> float | None:
        """The most memory that a cold run held at once, in bytes: the median of a project, the most of several."""
        found = [self.typical((project,), Kind.COLD, lambda sample: sample.peak) for project in projects]
        return max((peak for peak in found if peak is not None), default=None)


def cpu(sample: Sample) -> float:
    """Seconds of the processor."""
    return sample.cpu


def wall(sample: Sample) -> float:
    """Seconds of the clock."""
    return sample.wall


def tables(samples: Samples) -> str:
    """The three tables as Markdown: processor, clock, and work."""
    parts = [
        _seconds("Seconds of processor time", samples, cpu),
        _seconds("Seconds of the clock", samples, wall),
        _work(samples),
    ]
    failed = [f"- {s.project}, {s.kind.value}: {s.failure}" for s in samples.failures()]
    if failed:
        parts.append("\n".join(["Not measured, and not in the totals:", "", *failed]))
    return "\n\n".join(parts) + "\n"


def _seconds(title: str, samples: Samples, measure: Measure) -> str:
    kinds = [kind for kind in Kind if any(sample.kind is kind for sample in samples.every)]
    header = ["package", *(kind.value for kind in kinds)]
    rows = [[name, *_times(samples, (name,), kinds, measure)] for name in samples.projects]
    rows.append(["total", *_times(samples, samples.complete(), kinds, measure)])
    return f"{title}; in parentheses, how many times ruff's:\n\n{_markdown(header, rows)}"


def _times(samples: Samples, projects: Sequence[str], kinds: Iterable[Kind], measure: Measure) -> Iterable[str]:
    for kind in kinds:
        seconds = samples.typical(projects, kind, measure)
        ratio = None if kind is Kind.RUFF else samples.ratio(projects, kind, Kind.RUFF, measure)
        beside = "" if ratio is None else f" ({ratio:.1f})"
        yield "-" if seconds is None else f"{seconds:.2f}{beside}"


_WORK_HEADER = (
    "package", "files", "parsed", "MB", "MB parsed", "share", "nodes", "functions", "entries", "cut", "peak MB",
    "peak per MB parsed",
)  # fmt: skip


def _work(samples: Samples) -> str:
    known = {name: samples.counts(name) for name in samples.projects}
    rows = [_worked(name, counts, samples.peak((name,))) for name, counts in known.items() if counts is not None]
    complete = [counts for name in samples.complete() if (counts := known[name]) is not None]
    if complete:
        sums = Counts(*(sum(values) for values in zip(*(asdict(counts).values() for counts in complete), strict=True)))
        # The peak of the largest over the text of all would say nothing.
        rows.append([*_worked("total", sums, samples.peak(samples.complete()))[:-1], "-"])
    title = "What cold runs did; memory is the most that they held at once:"
    return f"{title}\n\n{_markdown(_WORK_HEADER, rows)}"


def _worked(name: str, counts: Counts, peak: float | None) -> list[str]:
    share = counts.bytes_parsed / counts.bytes_read if counts.bytes_read else 0.0
    memory = 0.0 if peak is None else peak
    return [
        name,
        f"{counts.files_read:,}",
        f"{counts.files_parsed:,}",
        f"{counts.bytes_read / _MEGA:.1f}",
        f"{counts.bytes_parsed / _MEGA:.2f}",
        f"{share:.0%}",
        f"{counts.nodes:,}",
        f"{counts.functions:,}",
        f"{counts.entries:,}",
        f"{counts.cut:,}",
        f"{memory / _MEGA:.0f}",
        f"{memory / counts.bytes_parsed:.0f}" if counts.bytes_parsed else "-",
    ]


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its columns in line, so that it also reads well on a terminal."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(f"| {' | '.join(_aligned(line, widths))} |" for line in [lines[0], rule, *lines[1:]])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
