"""Check real packages and compare the findings with a reviewed list.

    python tests/ecosystem/check.py [--keep DIR] [--only NAME]... [--tiny] [--limit SECONDS]

Fetches the releases of packages.toml through pip (no code of theirs is run), checks each with the
cudalint of this checkout, prints what it cost, and compares with reviewed.toml. Exits with 1 if a
finding is unreviewed or has vanished, if cudalint failed on a package, or if too many of the
error-level findings are wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import packages
import reviewed
import usage
from reviewed import Finding, Verdict

ROOT = Path(__file__).parents[2]
HEADER = f"{'package':<32} {'files':>6} {'MB':>7} {'seconds':>8} {'peak MB':>8} {'errors':>7} {'warnings':>9}"


@dataclass(frozen=True, slots=True)
class Run:
    """One package, checked."""

    package: packages.Package
    findings: list[Finding]
    files: int
    size: int
    seconds: float
    peak: int
    failure: str

    def row(self) -> str:
        errors = sum(finding.severity == "error" for finding in self.findings)
        return (
            f"{self.package.folder:<32} {self.files:>6} {self.size / 1e6:>7.2f} {self.seconds:>8.1f} "
            f"{self.peak / 1e6:>8.0f} {errors:>7} {len(self.findings) - errors:>9}"
        )


def check(package: packages.Package, folder: Path, limit: float) -> Run:
    """Check one unpacked package in a process of its own."""
    sources = list(folder.rglob("*.py"))
    output, errors, used = _cudalint(folder, limit)
    code = used.code
    findings = reviewed.of_json(package.name, package.version, output, folder) if code in (0, 1) else []
    failure = "" if code in (0, 1) else f"cudalint ended with {code}: {errors.strip()[-300:]}"
    if any(finding.code == reviewed.INTERNAL_ERROR for finding in findings):
        failure = "cudalint failed on a file (CUD900)"
    size = sum(path.stat().st_size for path in sources)
    return Run(package, findings, len(sources), size, used.wall, used.peak, failure)


def _cudalint(folder: Path, limit: float) -> tuple[str, str, usage.Usage]:
    """Its output, its messages, and what it took."""
    command = [sys.executable, "-m", "cudalint", "check", "--no-cache", "--output-format", "json", "."]
    output, errors = folder.with_suffix(".json"), folder.with_suffix(".err")
    with output.open("wb") as out, errors.open("wb") as err:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        used = usage.used(command, cwd=folder, environment=environment, output=out, errors=err, limit=limit)
    texts = output.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")
    output.unlink()
    errors.unlink()
    return *texts, used


def precision(findings: Counter[Finding], known: reviewed.Reviewed) -> tuple[str, bool]:
    """What share of the error-level findings is right, and whether that is enough; arguable counts as wrong."""
    judged = [finding for finding in findings.elements() if reviewed.is_prediction(finding)]
    judged = [finding for finding in judged if finding in known.verdicts]
    right = sum(known.verdicts[finding] is Verdict.RIGHT for finding in judged)
    wrong, allowed = len(judged) - right, max(2.0, 0.1 * len(judged))
    low, high = reviewed.wilson(right, len(judged))
    text = (
        f"error-level findings: {len(judged)}, right: {right}, wrong or arguable: {wrong} "
        f"(at most {allowed:.0f}); precision {right / max(1, len(judged)):.1%}, 95 % interval {low:.1%} to {high:.1%}"
    )
    return text, wrong <= allowed


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    known = reviewed.read()
    chosen = [p for p in packages.pinned() if (p.name in options.only or not options.only) and p.tiny >= options.tiny]
    options.keep.mkdir(parents=True, exist_ok=True)
    runs, failures = [], []
    print(HEADER)
    for package in chosen:
        try:
            run = check(package, packages.unpacked(package, options.keep).resolve(), options.limit)
        except packages.Unavailable as error:
            failures.append(f"{package.folder}: not fetched: {error}")
            continue
        runs.append(run)
        print(run.row(), flush=True)
        if run.failure:
            failures.append(f"{package.folder}: {run.failure}")
    found = Counter(finding for run in runs for finding in run.findings)
    # What failed to run says nothing about what has vanished.
    difference = reviewed.compare(found, known, (run.package.folder for run in runs if not run.failure))
    _print_difference(difference)
    text, enough = precision(found, known)
    print(f"\n{len(runs)} packages, {sum(r.files for r in runs)} files, {sum(r.size for r in runs) / 1e6:.0f} MB")
    print(text)
    for failure in failures:
        print(f"failed: {failure}")
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
    parser.add_argument("--limit", type=float, default=1200.0, metavar="SECONDS", help="for one package")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
