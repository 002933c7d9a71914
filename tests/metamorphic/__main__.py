"""python -m metamorphic --transform X [--seed N --count M] [--jobs J] [--show] [--save DIR].

Over all fixtures, and over M generated programs from seed N.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from metamorphic.judge import Verdict, judged
from metamorphic.program import Program, fixtures, generated
from metamorphic.registry import ALL
from metamorphic.transformation import Transformation


def main() -> int:
    """Change every program and say where cudalint does not follow."""
    args = _arguments()
    programs = [p for p in _programs(args) if args.only in p.name]
    wrong = 0
    for name in args.transform or ALL:
        wrong += _run(ALL[name], programs, args)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="metamorphic", description=__doc__)
    parser.add_argument("--transform", action="append", choices=sorted(ALL), help="all of them without this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="how many generated programs")
    parser.add_argument("--no-fixtures", action="store_true")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--paper", action="store_true", help="run also what keeps its meaning")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the changed program of every disagreement")
    parser.add_argument("--save", type=Path, help="write the changed program of every disagreement there")
    return parser.parse_args()


def _programs(args: argparse.Namespace) -> Iterator[Program]:
    if not args.no_fixtures:
        yield from fixtures()
    yield from generated(args.seed, args.count)


def _run(transformation: Transformation, programs: list[Program], args: argparse.Namespace) -> int:
    began, complaints, counts = time.monotonic(), Counter[str](), Counter[str]()
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for verdict in pool.map(lambda program: judged(program, transformation, on_paper=args.paper), programs):
            counts[_kind(verdict)] += 1
            if verdict is not None and _kind(verdict) == "wrong":
                complaints[str(verdict.complaint)] += 1
                _report(verdict, args)
    changed = len(programs) - counts["unchanged"]
    print(
        f"{transformation.name}: {changed} of {len(programs)} programs changed: {counts['agree']} agree,"
        f" {counts['inherited']} are as without the change, {counts['spoilt']} fail for another reason,"
        f" {counts['wrong']} disagree ({time.monotonic() - began:.0f} s)",
        flush=True,
    )
    for complaint, count in complaints.most_common():
        print(f"{count:5} {complaint}", flush=True)
    return counts["wrong"]


def _kind(verdict: Verdict | None) -> str:
    if verdict is None:
        return "unchanged"
    if verdict.complaint is None:
        return "agree"
    if verdict.spoilt:
        return "spoilt"
    return "inherited" if verdict.inherited else "wrong"


def _report(verdict: Verdict, args: argparse.Namespace) -> None:
    print(f"{verdict.transformation.name}: {verdict.program.name}: {verdict.complaint} | {verdict.seen}", flush=True)
    if args.show:
        for name, text in verdict.files.items():
            print(f"# ---- {name}.py\n{text}", flush=True)
    if args.save is not None:
        folder = args.save / verdict.transformation.name / verdict.program.name.replace("/", "_").removesuffix(".py")
        for name, text in verdict.files.items():
            path = folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
