"""Judges a range of broken programs and tells what became of them, kind of state by kind of state."""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from math import inf
from pathlib import Path

from stoppable import INTERRUPTED, stoppable

from oracle.fix_runner import Judged, judge_repairs
from oracle.fix_shrink import shrink_repair
from oracle.fixes import Grade
from oracle.states import STATES


def report_repairs(args: Namespace) -> int:
    """Print complaints as they come, then the counts, also of a run that ends early; 1 where there is a complaint."""
    began = time.monotonic()
    cases: list[Judged] = []
    with stoppable():
        print(f"from seed {args.seed}", flush=True)
        interrupted = _judge_into(cases, args)
        print(*table(cases), sep="\n")
        if len(cases) < args.count:
            print(f"ended before all was judged: the first without an answer is seed {args.seed + len(cases)}")
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    if interrupted:
        return INTERRUPTED
    return 1 if any(case.complaint is not None for case in cases) else 0


def _judge_into(cases: list[Judged], args: Namespace) -> bool:
    """Judge seeds in their order; whether that was ended by a signal."""
    seeds = range(args.seed, args.seed + args.count)
    try:
        with closing(judge_repairs(seeds, args.jobs or 2, args.budget or inf)) as answers:
            for case in answers:
                cases.append(case)
                if case.complaint is not None:
                    _report(shrink_repair(case) if args.shrink else case, args)
    except KeyboardInterrupt:
        return True
    return False


def told(case: Judged) -> str:
    """A case in one line."""
    reasons = "; ".join(case.repair.reasons) or "no reason"
    return f"seed {case.seed}: {case.complaint} | {case.repair.grade.value}: {reasons}"


def text(case: Judged) -> str:
    """A case in full: the program, what was made of it, and what each run printed."""
    runs = case.runs
    repaired = {name: after for name, after in case.repair.files.items() if after != case.files[name]}
    parts = [f"# {told(case)}", f"# {case.choice}"]
    parts += [f"# -- {name}\n{content}" for name, content in case.files.items()]
    parts += [f"# -- {name}, repaired\n{content}" for name, content in repaired.items()]
    for name, run in (("as it is", runs.as_it_is), ("meant", runs.reference), ("repaired", runs.repaired)):
        if run is not None:
            last = [line for line in run.stderr.splitlines() if line.strip()][-1:]
            parts += [f"# -- {name}: {run.outcome}", *(f"# {line}" for line in (*run.stdout.splitlines(), *last))]
    return "\n".join(parts) + "\n"


def _report(case: Judged, args: Namespace) -> None:
    print(told(case), flush=True)
    if args.show_disagreements:
        print(text(case), flush=True)
    if args.save is not None:
        args.save.mkdir(parents=True, exist_ok=True)
        (Path(args.save) / f"fix_{case.seed}.py").write_text(text(case))


def table(cases: Sequence[Judged]) -> list[str]:
    """Counts of all programs, of complaints, and of each kind of state, as lines of text."""
    grades = Counter(case.repair.grade for case in cases)
    wrong = Counter(case.complaint.what for case in cases if case.complaint is not None)
    lines = [f"{'state':32}{'none':>6}{'safe':>6}{'unsafe':>8}{'wrong':>7}  seeds of complaints"]
    lines += [_row(kind, cases) for kind in STATES if any(kind in case.choice.states for case in cases)]
    which = f" (seeds {cases[0].seed} to {cases[-1].seed})" if cases else ""
    counts = ", ".join(f"{grades[grade]} {grade.value}" for grade in Grade)
    lines += [f"{len(cases)} programs repaired{which}: {counts}"]
    return [*lines, *(f"{count:5} {what}" for what, count in wrong.most_common())]


def _row(kind: str, cases: Sequence[Judged]) -> str:
    own = [case for case in cases if kind in case.choice.states]
    grades = Counter(case.repair.grade for case in own)
    wrong = [case.seed for case in own if case.complaint is not None and kind in case.complaint.kinds]
    counts = f"{grades[Grade.NONE]:6}{grades[Grade.SAFE]:6}{grades[Grade.UNSAFE]:8}{len(wrong):7}"
    return f"{kind:32}{counts}  {' '.join(map(str, wrong))}".rstrip()
