"""python -m bench [--corpus DIR] [--rounds N] [--only NAME ...] [--runs KIND ...] [--json FILE] [--svg DIR].

From `tests/`. Fetches the packages of corpus.toml (no code of theirs is run), and on each runs in turn: reading the
bytes, ruff, cudalint cold, warm, after an edit of one file, and on one file alone. Prints medians and ratios to ruff.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import cudalint
from bench import chart, corpus, report, sizes
from bench.corpus import BadCorpus, Member
from bench.runs import ROOT, Kind, Project, Sample, Tools, Unusable, rounds

# The picture ends here: what a large repository holds.
MOST_BYTES = 105_000_000
BEGIN, END = "<!-- measured: written by python -m bench -->", "<!-- end of what was measured -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where something could not be measured, 2 where nothing could."""
    options = _options(arguments)
    kinds = tuple(kind for kind in Kind if kind.value in options.runs)
    try:
        tools = Tools.here()
        members = corpus.chosen(corpus.members(options.list), options.only)
        options.corpus.mkdir(parents=True, exist_ok=True)
        folders = {member.name: corpus.fetched(member, options.corpus) for member in members}
    except (BadCorpus, Unusable) as error:
        print(f"bench: error: {error}", file=sys.stderr)
        return 2
    # Before anything runs: a commit made meanwhile is not what is measured.
    about = _about(tools, members, options.rounds)
    with tempfile.TemporaryDirectory(prefix="cudalint-bench-") as name:
        scratch = Path(name)
        projects = tuple(_project(member, folders[member.name], scratch) for member in members)
        samples: list[Sample] = []
        points: list[tuple[int, Sample]] = []
        try:
            for sample in rounds(tools, projects, kinds, options.rounds, options.limit):
                _say(sample)
                samples.append(sample)
            trees = sizes.subsets(members, MOST_BYTES) if options.svg is not None else ()
            for subset, sample in sizes.grown(tools, trees, kinds, folders, scratch, options.limit):
                _say(sample)
                points.append((subset.size, sample))
        except KeyboardInterrupt:
            print("bench: interrupted: what was measured by now follows", file=sys.stderr)
    measured = report.Samples(tuple(samples))
    text = report.tables(measured)
    print(f"\n{_in_words(about)}\n\n{text}")
    if options.json is not None:
        options.json.write_text(_as_json(about, samples, points), encoding="utf-8")
    if options.svg is not None:
        _document(options.svg, f"{_in_words(about)}\n\n{text}", points)
    return 1 if measured.failures() else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=corpus.CACHE, metavar="DIR", help=f"default: {corpus.CACHE}")
    parser.add_argument("--list", type=Path, default=corpus.PINNED, metavar="FILE", help="the packages; corpus.toml")
    parser.add_argument("--rounds", type=_positive, default=3, metavar="N", help="how often all is run (default: 3)")
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME", help="only these packages")
    names = [kind.value for kind in Kind]
    parser.add_argument("--runs", nargs="+", choices=names, default=names, metavar="KIND", help=", ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument(
        "--svg",
        type=Path,
        metavar="DIR",
        help="measure trees of 1 to 100 MB, write benchmark.svg there,\nand the tables into its benchmark.md",
    )
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for one run (default: 600)")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _project(member: Member, folder: Path, scratch: Path) -> Project:
    copy = corpus.copied(folder, scratch / member.package.folder)
    return Project(member.name, copy, member.file, scratch / f"{member.package.folder} cache")


def _say(sample: Sample) -> None:
    what = sample.failure or f"{sample.cpu:.2f} s of processor, {sample.wall:.2f} s, {sample.peak / 1e6:.0f} MB"
    print(f"round {sample.round}, {sample.project}, {sample.kind.value}: {what}", file=sys.stderr, flush=True)


def _about(tools: Tools, members: Sequence[Member], count: int) -> dict[str, object]:
    """What was measured, where and when."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cudalint": cudalint.__version__,
        "commit": _said("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
        "ruff": _said(tools.ruff, "--version").removeprefix("ruff "),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "caches": tools.caches,
        "rounds": count,
        "packages": [
            {"name": member.name, "version": member.package.version, "files": member.files, "bytes": member.size}
            for member in members
        ],
    }


def _in_words(about: dict[str, object]) -> str:
    cache = "" if about["caches"] else " This cudalint keeps no cache: warm and touched are further cold runs."
    count = about["rounds"]
    rounds_in_words = "one round" if count == 1 else f"medians of {count} rounds"
    return (
        f"cudalint {about['cudalint']} ({about['commit']}) and ruff {about['ruff']} on {about['date']}, Python "
        f"{about['python']}, {about['system']}, {about['cores']} cores ({about['processor']}); "
        f"{rounds_in_words}.{cache}"
    )


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def _as_json(about: dict[str, object], samples: Sequence[Sample], points: Sequence[tuple[int, Sample]]) -> str:
    document = {
        **about,
        "samples": [_plain(sample) for sample in samples],
        "sizes": [{"bytes": size, **_plain(sample)} for size, sample in points],
    }
    return json.dumps(document, indent=1) + "\n"


def _plain(sample: Sample) -> dict[str, object]:
    return {**asdict(sample), "kind": sample.kind.value}


def _document(folder: Path, text: str, points: Sequence[tuple[int, Sample]]) -> None:
    """The picture beside the page, and the tables in it."""
    folder.mkdir(parents=True, exist_ok=True)
    series = {
        _LINES[kind]: [(size / 1e6, s.cpu) for size, s in points if s.kind is kind and not s.failure] for kind in _LINES
    }
    if any(series.values()):
        title = "One run over packages side by side"
        picture = chart.drawn(series, title=title, across="MB of Python source", up="seconds of processor time")
        (folder / "benchmark.svg").write_text(picture, encoding="utf-8")
    page = folder / "benchmark.md"
    before = page.read_text(encoding="utf-8") if page.exists() else f"# What a run costs\n\n{BEGIN}\n{END}\n"
    head, _, rest = before.partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


_LINES = {
    Kind.READ: "reading",
    Kind.RUFF: "ruff",
    Kind.COLD: "cudalint, cold",
    Kind.WARM: "cudalint, warm",
}


if __name__ == "__main__":
    sys.exit(main())
