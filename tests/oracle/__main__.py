"""python -m oracle --seed N --count M [--jobs 2] [--show-disagreements] [--save DIR].

With --hardware [--out FILE] the programs run on real GPUs as well. With --fixes the programs are broken ones that read
what their parent set: they are repaired, and run as they are, as they were meant, and repaired. Ended by Ctrl-C, by
SIGTERM or by --budget, such a run tells its counts so far, and of which seeds they are.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from math import inf
from pathlib import Path

from oracle.grammar import draw
from oracle.render import render
from oracle.runner import Case, judge_all
from oracle.shrink import shrink


def main() -> int:
    """Run a range of seeds and say how far paper and machine agree."""
    args = _arguments()
    if args.fixes:
        from oracle.fix_report import report_repairs

        return report_repairs(args)
    if args.print:
        print(draw(args.seed), render(draw(args.seed), args.seed), sep="\n")
        return 0
    if args.hardware:
        from oracle.hardware import BUDGET, measure_all

        return measure_all(args.seed, args.count, args.jobs, args.budget or BUDGET, args.out)
    began = time.monotonic()
    cases: Counter[str] = Counter()
    complaints: Counter[str] = Counter()
    for case in judge_all(range(args.seed, args.seed + args.count), args.jobs or 2, args.budget or inf):
        cases[case.outcome] += 1
        if case.complaint is not None:
            complaints[case.complaint] += 1
            _report(shrink(case) if args.shrink else case, args)
    total, wrong = sum(cases.values()), sum(complaints.values())
    seconds, share = time.monotonic() - began, 1 - wrong / (total or 1)
    print(f"{total} programs in {seconds:.0f} s: {total - wrong} agree ({share:.1%})")
    print("observed:", ", ".join(f"{outcome} {count}" for outcome, count in cases.most_common()))
    for complaint, count in complaints.most_common():
        print(f"{count:5} {complaint}")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="oracle")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, help="programs at once (default: 2; on hardware by the cores)")
    parser.add_argument("--fixes", action="store_true", help="judge repairs of broken programs")
    parser.add_argument("--hardware", action="store_true", help="run them on this machine's GPUs as well, and compare")
    parser.add_argument(
        "--budget", type=float, help="seconds after which none is started (on hardware: 420); no bound otherwise"
    )
    parser.add_argument("--out", type=Path, help="with --hardware: write the summary there, as JSON")
    parser.add_argument("--show-disagreements", action="store_true")
    parser.add_argument("--save", type=Path, help="write every disagreement there")
    parser.add_argument("--shrink", action="store_true", help="make every disagreement as small as it gets")
    parser.add_argument("--print", action="store_true", help="only show the program of the seed")
    return parser.parse_args()


def _report(case: Case, args: argparse.Namespace) -> None:
    said = "; ".join(map(str, case.said)) or "nothing"
    last = [line for line in case.output.strip().splitlines() if line.strip()][-1:]
    summary = [f"seed {case.seed}: {case.complaint}", f"observed {case.outcome}: {''.join(last)}", f"said: {said}"]
    print(" | ".join(summary), flush=True)
    if args.show_disagreements:
        print(case.text, flush=True)
    if args.save is not None:
        args.save.mkdir(parents=True, exist_ok=True)
        notes = [*summary, str(case.choice), *case.output.strip().splitlines()[-25:]]
        comment = "\n".join(f"# {line}" for line in notes)
        (args.save / f"seed_{case.seed}.py").write_text(f"{case.text}\n{comment}\n")


if __name__ == "__main__":
    raise SystemExit(main())
