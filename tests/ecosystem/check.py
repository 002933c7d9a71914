"""Check real packages and compare the findings with a reviewed list.

    python tests/ecosystem/check.py [--keep DIR] [--sources DIR] [--only NAME]... [--tiny] [--limit SECONDS] [--jobs N]
    python tests/ecosystem/check.py --results DIR

Fetches the releases of packages.toml through pip (no code of theirs is run), checks each with the cudalint of this
checkout, prints what it cost, and compares with reviewed.toml. What was found is kept in DIR/results until cudalint or
the package changes, so a run that was stopped goes on where it was. A package that takes longer than the limit is
named, and nothing is concluded from it. Exits with 1 if a finding is unreviewed or has vanished, if cudalint failed on
a package, or if the verdicts are worse than what is promised: no wrong error, and at most one warning in five that is
wrong or useless.

With ``--jobs``, so many processes run at once: for several packages, the largest first, and several for a large one.
With ``--sources`` nothing is fetched: the unpacked packages lie there, as ``--keep`` has them, and those that do not
are left out. With ``--results`` nothing is run either: what another machine kept is compared with the list.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import kept
import packages
import reviewed
import usage
from reviewed import Finding, Verdict

from cudalint.project import cores

ROOT = Path(__file__).parents[2]
# The share of the findings of a severity that may be wrong or arguable.
PROMISED = {"error": 0.0, "warning": 0.2}
# So many bytes of a package are worth a process of their own.
SIZE_OF_ONE = 4_000_000
NICE = ["nice"] if shutil.which("nice") else []
HEADER = (
    f"{'package':<32} {'files':>6} {'MB':>7} {'seconds':>8} {'peak MB':>8} {'errors':>7} {'warnings':>9} {'notes':>6}"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One package, checked."""

    package: packages.Package
    outcome: kept.Outcome

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.outcome.findings or ()

    @property
    def failure(self) -> str:
        """What went wrong with cudalint itself; empty where nothing did."""
        if self.outcome.over:
            return ""
        if self.outcome.findings is None:
            return f"cudalint ended with {self.outcome.code}: {self.outcome.errors.strip()[-300:]}"
        if any(finding.code == reviewed.INTERNAL_ERROR for finding in self.findings):
            return "cudalint failed on a file (CUD900)"
        return ""

    def row(self) -> str:
        cost = (
            f"{self.package.folder:<32} {self.outcome.files:>6} {self.outcome.size / 1e6:>7.2f} "
            f"{self.outcome.wall:>8.1f} {self.outcome.peak / 1e6:>8.0f}"
        )
        if self.outcome.over:
            return f"{cost}   not finished"
        counts = Counter(finding.severity for finding in self.findings)
        return f"{cost} {counts['error']:>7} {counts['warning']:>9} {counts['note']:>6}"


@dataclass(frozen=True, slots=True)
class Means:
    """What the check of one package may take, in seconds and processes; it is ended when ``stopped`` says so."""

    limit: float
    jobs: int = 1
    stopped: Callable[[], bool] = lambda: False


def check(package: packages.Package, folder: Path, results: Path, means: Means) -> Run:
    """Check one unpacked package in a process of its own, unless what that gives is known."""
    file, key = results / f"{package.folder}.json", kept.key(folder, packages.files(folder))
    known = kept.read(file)
    if known is None or not kept.still_holds(known, key, means.limit):
        known = kept.Kept(key, _outcome(package, folder, means))
        kept.write(file, known)
    return Run(package, known.outcome)


def _paths_given() -> list[str]:
    """Where the caller's Python finds more modules: libcst may lie there."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _outcome(package: packages.Package, folder: Path, means: Means) -> kept.Outcome:
    command = [*NICE, sys.executable, "-m", "cudalint", "check", "--no-cache", "--verbose", "--output-format", "json"]
    sources = [path.stat().st_size for path in folder.rglob("*.py")]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        used = usage.used(
            [*command, "--jobs", str(means.jobs), "."],
            cwd=folder,
            environment={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_paths_given()])},
            output=out,
            errors=err,
            limit=means.limit,
            stopped=means.stopped,
        )
        report, errors = _text(out), _text(err)
    return kept.Outcome(
        code=used.code,
        findings=reviewed.of_json(package.name, package.version, report, folder) if _ended(used) else None,
        errors=errors,
        files=len(sources),
        size=sum(sources),
        wall=used.wall,
        peak=used.peak,
        over=used.over,
        limit=means.limit,
    )


def _ended(used: usage.Usage) -> bool:
    """Whether cudalint came to its end: it ends with 1 where there are findings."""
    return not used.over and used.code in (0, 1)


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")


def share(findings: Counter[Finding], known: reviewed.Reviewed, severity: str, bad: float) -> tuple[str, bool]:
    """How many of the findings of a severity are right, and whether no more than this share is not.

    Arguable counts as wrong.
    """
    judged = [f for f in findings.elements() if reviewed.is_prediction(f, severity) and f in known.verdicts]
    right = sum(known.verdicts[finding] is Verdict.RIGHT for finding in judged)
    wrong = len(judged) - right
    low, high = reviewed.wilson(right, len(judged))
    text = (
        f"{severity}s: {len(judged)}, right: {right}, wrong or arguable: {wrong} "
        f"(at most {bad:.0%}); precision {right / max(1, len(judged)):.1%}, 95 % interval {low:.1%} to {high:.1%}"
    )
    return text, wrong <= bad * len(judged)


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    known = reviewed.read()
    chosen = [p for p in packages.pinned() if (p.name in options.only or not options.only) and p.tiny >= options.tiny]
    runs: list[Run] = []
    failures: list[str] = []
    print(HEADER)
    for package, run in _runs(chosen, options):
        if isinstance(run, Run):
            print(run.row(), flush=True)
            runs.append(run)
        else:
            failures.append(f"{package.folder}: {run}")
    finished = [run for run in runs if not run.outcome.over]
    failures += [f"{run.package.folder}: {run.failure}" for run in finished if run.failure]
    found = Counter(finding for run in finished for finding in run.findings)
    # What failed to run says nothing about what has vanished.
    difference = reviewed.compare(found, known, (run.package.folder for run in finished if not run.failure))
    _print_difference(difference)
    files, size = sum(run.outcome.files for run in finished), sum(run.outcome.size for run in finished)
    print(f"\n{len(finished)} packages, {files} files, {size / 1e6:.0f} MB")
    shares = [share(found, known, severity, bad) for severity, bad in PROMISED.items()]
    print("\n".join(text for text, _ in shares))
    for run in runs:
        if run.outcome.over:
            print(f"not finished in {run.outcome.limit:.0f} s: {run.package.folder}")
    for failure in failures:
        print(f"failed: {failure}")
    enough = all(kept_promise for _, kept_promise in shares)
    return 1 if failures or difference.unreviewed or difference.vanished or not enough else 0


def _runs(chosen: list[packages.Package], options: argparse.Namespace) -> Iterator[tuple[packages.Package, Run | str]]:
    """The packages in their order, each with what was found, or why nothing could be."""
    if options.results is not None:
        return _kept_elsewhere(chosen, options.results)
    if options.sources is None:
        return _checked(chosen, options.keep, options)
    absent = [package for package in chosen if not (options.sources / package.folder).is_dir()]
    if absent:
        print(f"not in {options.sources}: {', '.join(package.folder for package in absent)}")
    return _checked([package for package in chosen if package not in absent], options.sources, options)


def _kept_elsewhere(chosen: list[packages.Package], results: Path) -> Iterator[tuple[packages.Package, Run | str]]:
    """What one state of cudalint, whichever it was, said of the packages on one machine."""
    first = ""
    for package in chosen:
        known = kept.read(results / f"{package.folder}.json")
        if known is None:
            yield package, "no result"
            continue
        first = first or known.key.cudalint
        same = known.key.cudalint == first
        yield package, Run(package, known.outcome) if same else "a result of another state of cudalint than the first"


def _checked(
    chosen: list[packages.Package], folders: Path, options: argparse.Namespace
) -> Iterator[tuple[packages.Package, Run | str]]:
    """Check packages, as many at once as there are processes for; each is told as soon as those before it are."""
    places = {package: _place(package, folders) for package in chosen}
    sizes = {package: _size(place) for package, place in places.items() if isinstance(place, Path)}
    shared = Shared(options.jobs)
    # What a thread does is to wait for a process, which is a fresh program: nothing is forked that goes on as it is.
    with ThreadPoolExecutor(options.jobs) as pool:

        def run(package: packages.Package) -> Run:
            place = places[package]
            assert isinstance(place, Path)
            with shared.processes(sizes[package] // SIZE_OF_ONE) as jobs:
                means = Means(options.limit, jobs, shared.stopped.is_set)
                return check(package, place, options.keep / "results", means)

        largest_first = sorted(sizes, key=sizes.__getitem__, reverse=True)
        begun = {package: pool.submit(run, package) for package in largest_first}
        try:
            for package, place in places.items():
                yield package, begun[package].result() if isinstance(place, Path) else place
        except BaseException:
            shared.stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


def _place(package: packages.Package, folders: Path) -> Path | str:
    """Where the sources of a package are, fetched if need be, or why they could not be."""
    try:
        return packages.unpacked(package, folders).resolve()
    except packages.Unavailable as error:
        return f"not fetched: {error}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in packages.files(folder))


class Shared:
    """The processes that may run at once, handed out to checks; all are ended once it is ``stopped``."""

    def __init__(self, processes: int) -> None:
        self.stopped = threading.Event()
        self._all = processes
        self._free = threading.Semaphore(processes)
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def processes(self, wanted: int) -> Iterator[int]:
        """Some of the processes: as many as are wanted, at least one and not more than are useful or there are."""
        number = max(1, min(wanted, self._all, cores.MOST))
        # Only one check takes some at a time: two that each wait for the rest of what they want would wait for ever.
        with self._turn:
            for _ in range(number):
                self._free.acquire()
        try:
            yield number
        finally:
            for _ in range(number):
                self._free.release()


def _print_difference(difference: reviewed.Difference) -> None:
    if difference.unreviewed:
        print("\n# Unreviewed: read the source, then add with verdict and reason to reviewed.toml\n")
        print("\n".join(finding.as_stub() for finding in difference.unreviewed))
    if difference.vanished:
        print("\n# Vanished: say why (a miss, or a false alarm that is mended) where the entry is removed\n")
        print("\n".join(finding.as_stub() for finding in difference.vanished))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, default=Path.home() / ".cache" / "cudalint-ecosystem", metavar="DIR")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this package")
    parser.add_argument("--tiny", action="store_true", help="only the few packages that the default tests check")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for one package")
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="processes at once")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="unpacked packages; nothing is fetched")
    parser.add_argument("--results", type=Path, metavar="DIR", help="compare what is kept there; nothing is run")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
