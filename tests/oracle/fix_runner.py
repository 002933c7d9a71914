"""Repairs broken programs and runs each as it is, as its repair leaves it, and as its author meant it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from paper.run import Observed

from cudalint.config import Config
from cudalint.finding import Applicability, Finding
from cudalint.fixing.rounds import Changed, fix
from cudalint.found import Report
from cudalint.session import Admits, Session
from oracle.fix_grammar import Broken, draw_broken
from oracle.fix_render import PROGRAM, Files, Variant, render_broken
from oracle.fixes import Complaint, Grade, Repair, Runs, complaint
from oracle.runner import QUIET, QUIET_LOADER, each, observe


@dataclass(frozen=True)
class Judged:
    """One program with all that is known of it."""

    seed: int
    choice: Broken
    files: Files
    repair: Repair
    runs: Runs
    complaint: Complaint | None


def judge_repair(seed: int) -> Judged:
    """Generate, repair and run the program of a seed; an end that does not come the same twice is a race."""
    case = judge_broken(draw_broken(seed), seed)
    if case.complaint is None or not case.complaint.of_an_end:
        return case
    return judge_broken(case.choice, seed)


def judge_repairs(seeds: Iterable[int], jobs: int, budget: float = inf) -> Iterator[Judged]:
    """Programs in the order of their seeds; after so many seconds no further one is begun."""
    return each(judge_repair, seeds, jobs, budget)


def prepared(seed: int) -> tuple[dict[str, Files], Repair]:
    """What is run for a seed, by what it is, and the repair: nothing else of cudalint decides the verdict."""
    choice = draw_broken(seed)
    files = render_broken(choice, seed)
    found = repair(files)
    loop = render_broken(choice, seed, Variant(launched=False))
    return {"as it is": files, "with a loop": loop, "repaired": found.files}, found


def judge_broken(choice: Broken, seed: int, repairing: Callable[[Files], Repair] | None = None) -> Judged:
    """Repair one program, by cudalint unless said otherwise, and run it."""
    files = render_broken(choice, seed)
    found = (repairing or repair)(files)
    quiet = QUIET_LOADER if choice.launcher == "loader" else QUIET
    runs = Runs(
        as_it_is=run_files(files, quiet),
        reference=run_files(render_broken(choice, seed, Variant(launched=False)), quiet),
        repaired=None if found.grade is Grade.NONE else run_files(found.files, quiet),
    )
    return Judged(seed, choice, files, found, runs, complaint(choice, found, runs))


def run_files(files: Files, quiet: float = QUIET) -> Observed:
    """Run a program of one or several files on paper, where workers are forked unless the program says otherwise."""
    with _folder(files) as folder:
        return observe(Path(folder) / PROGRAM, quiet, "fork")


def _folder(files: Files) -> tempfile.TemporaryDirectory[str]:
    made = tempfile.TemporaryDirectory(prefix="oracle-")
    for name, text in files.items():
        (Path(made.name) / name).write_text(text)
    return made


# -- repairs -------------------------------------------------------------------------------------------------


class _Remembering(Session):
    """Asks each question once, and keeps the answers: what was offered before it was made."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.reports: dict[tuple[tuple[str, bytes], ...], Report] = {}

    def check(
        self,
        paths: Iterable[str],
        *,
        repair: bool = True,
        instead: Mapping[str, bytes] | None = None,
        whole: bool = False,
        admits: Admits | None = None,
    ) -> Report:
        """Check files as they are now, or as they were already checked; all repairs are looked for, whoever asks."""
        key = tuple(sorted((instead or {}).items()))
        if key not in self.reports:
            self.reports[key] = super().check(paths, repair=repair, instead=instead, whole=whole)
        return self.reports[key]


def repair(files: Files) -> Repair:
    """What --fix makes of a program, or --unsafe-fixes where that leaves something to repair."""
    with _folder(files) as folder:
        paths = [str(Path(folder) / name) for name in files]
        session = _Remembering(Config())
        fixed = fix(session, paths)
        if fixed.changes and not any(map(_repairable, fixed.report.findings)):
            return Repair(Grade.SAFE, _after(files, fixed.changes))
        fixed = fix(session, paths, unsafe=True)
        if not fixed.changes:
            return Repair(Grade.NONE, files)
        offered = [f for report in session.reports.values() for f in report.findings if _repairable(f)]
        reasons = {f.fix.reason for f in offered if f.fix is not None and f.fix.reason is not None}
        return Repair(Grade.UNSAFE, _after(files, fixed.changes), tuple(sorted(reasons)))


def _repairable(finding: Finding) -> bool:
    """Whether there is a repair that has to be asked for."""
    return finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE and bool(finding.fix.edits)


def _after(files: Files, changes: Iterable[Changed]) -> Files:
    changed = {Path(change.path).name: change.after.decode() for change in changes}
    return {**files, **changed}
