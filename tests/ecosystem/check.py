"""Check real packages and compare the findings with a reviewed list.

    python tests/ecosystem/check.py [--keep DIR] [--only NAME]... [--tiny] [--limit SECONDS]

Fetches the releases of packages.toml through pip (no code of theirs is run), checks them one after the
other with the cudalint of this checkout, prints what it cost, and compares with reviewed.toml. What was
found is kept in DIR until cudalint or the package changes, so a run that was stopped goes on where it was.
A package that takes longer than the limit is named, and nothing is concluded from it. Exits with 1 if a
finding is unreviewed or has vanished, if cudalint failed on a package, or if the verdicts are worse than
what is promised: no wrong error, and at most one warning in five that is wrong or useless.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
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

ROOT = Path(__file__).parents[2]
# The share of the findings of a severity that may be wrong or arguable.
PROMISED = {"error": 0.0, "warning": 0.2}
NICE = ["nice"] if shutil.which("nice") else []
HEADER = (
    f"{'package':<32} {'files':>6} {'MB':>7} {'seconds':>8} {'peak MB':>8} {'errors':>7} {'warnings':>9} {'notes':>6}"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One package, checked."""

    package: packages.Package
    outcome: kept.Outcome
    findings: list[Finding]

    @property
    def failure(self) -> str:
        """What went wrong with cudalint itself; empty where nothing did."""
        if self.outcome.code not in (0, 1):
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


def check(package: packages.Package, folder: Path, results: Path, limit: float) -> Run:
    """Check one unpacked package in a process of its own, unless what that gives is known."""
    file, key = results / f"{package.folder}.json", kept.key(folder)
    outcome = kept.read(file, key, limit)
    if outcome is None:
        outcome = _outcome(folder, limit)
        kept.write(file, key, outcome)
    finished = not outcome.over and outcome.code in (0, 1)
    findings = reviewed.of_json(package.name, package.version, outcome.report, folder) if finished else []
    return Run(package, outcome, findings)


def _outcome(folder: Path, limit: float) -> kept.Outcome:
    command = [*NICE, sys.executable, "-m", "cudalint", "check", "--no-cache", "--output-format", "json", "."]
    sources = [path.stat().st_size for path in folder.rglob("*.py")]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        used = usage.used(command, cwd=folder, environment=environment, output=out, errors=err, limit=limit)
        report, errors = _text(out), _text(err)
    return kept.Outcome(used.code, report, errors, len(sources), sum(sources), used.wall, used.peak, used.over, limit)


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
    options.keep.mkdir(parents=True, exist_ok=True)
    runs, failures = [], []
    print(HEADER)
    for package in chosen:
        try:
            folder = packages.unpacked(package, options.keep).resolve()
        except packages.Unavailable as error:
            failures.append(f"{package.folder}: not fetched: {error}")
            continue
        run = check(package, folder, options.keep / "results", options.limit)
        print(run.row(), flush=True)
        runs.append(run)
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


def _print_difference(difference: reviewed.Difference) -> None:
    if difference.unreviewed:
        print("\n# Unreviewed: read the source, then add with verdict and reason to reviewed.toml\n")
        print("\n".join(finding.as_stub() for finding in difference.unreviewed))
    if difference.vanished:
        print("\n# Vanished: say why (a miss, or a false alarm that is mended) where the entry is removed\n")
        print("\n".join(finding.as_stub() for finding in difference.vanished))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, default=Path.home() / ".cache" / "cudalint-ecosystem", metavar="DIR")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this package")
    parser.add_argument("--tiny", action="store_true", help="only the few packages that the default tests check")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for one package")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
