"""python -m fuzz [--source S] [--seed N] [--count N] [--properties P,...] [--jobs N] [--keep DIR] [FILE ...].

Programs of a source, or the files of a folder, are checked and judged in processes of their own. What fails is told
with its seeds, and the first case of each kind is made small. Ended by Ctrl-C (or SIGTERM), it tells what it has.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path

from stoppable import INTERRUPTED, stoppable

from fuzz.case import Case
from fuzz.inputs import BATCHES, SOURCES, Drawn, grammar, real
from fuzz.inputs.joined import TOGETHER
from fuzz.judge import Judge
from fuzz.judges import Asked, judged
from fuzz.properties import PROPERTIES
from fuzz.shrink import shrunk
from fuzz.tally import Tally, kind
from fuzz.worker import SECONDS

PROGRESS = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all cases that were asked for; 1 where one failed."""
    args = _arguments(arguments)
    began, tally = time.monotonic(), Tally(args.properties)
    with stoppable():
        interrupted = _judge(args, tally)
        print(tally.told(), flush=True)
        print(f"{time.monotonic() - began:.0f} s", flush=True)
        if not interrupted:
            interrupted = _show_all(args, tally)
    return INTERRUPTED if interrupted else int(tally.has_failures)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", choices=sorted(SOURCES), default="mutants")
    parser.add_argument("--seed", type=int, default=1, help="the number of the first case")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--properties", type=_names, default=("survives", "repairs"), help=", ".join(PROPERTIES))
    parser.add_argument("--jobs", type=_jobs, default=1, help="so many cases at once")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="processor time of one property of a case")
    parser.add_argument("--keep", type=Path, help="write failing cases there")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="name each case when it has been judged")
    parser.add_argument("paths", nargs="*", type=Path, help="files, and folders of files, instead of a source")
    return parser.parse_args(arguments)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in PROPERTIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(PROPERTIES)}")
    return names


def _jobs(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("a number from 1 on")
    return int(text)


def _judge(args: argparse.Namespace, tally: Tally) -> bool:
    """Fill a tally; whether that was ended before all was judged."""
    try:
        with closing(judged(_batches(args), args.properties, args.jobs, args.seconds)) as answers:
            for case, complaints in answers:
                tally.add(case, complaints)
                _report_progress(case, complaints, tally, args.verbose)
    except KeyboardInterrupt:
        left = next((case.name for batch in _batches(args) for case in batch if not tally.has(case)), "none")
        print(f"ended before all was judged: the first without an answer is {left}")
        return True
    except grammar.Missing as missing:
        print(f"skipped: {missing}")
    return False


def _batches(args: argparse.Namespace) -> Iterator[Sequence[Asked]]:
    if args.paths:
        yield from ([case] for case in real.files(args.paths, args.seed, args.count))
        return
    if args.source == "grammar":
        grammar.demand()
    step, end = TOGETHER if args.properties == ("same",) else 1, args.seed + args.count
    cases = (Drawn(args.source, number, min(step, end - number)) for number in range(args.seed, end, step))
    size = BATCHES.get(args.source, 1)
    yield from (list(batch) for _, batch in groupby(cases, lambda case: case.number // size))


def _report_progress(case: Asked, complaints: object, tally: Tally, verbose: bool) -> None:
    if complaints or verbose:
        print(f"{case.name}: {complaints or 'nothing to complain of'}", file=sys.stderr, flush=True)
    if tally.cases % PROGRESS == 0:
        print(f"{tally.cases:,} judged so far, the last one {case.name}", file=sys.stderr, flush=True)


def _show_all(args: argparse.Namespace, tally: Tally) -> bool:
    """The first case of each kind, made small; whether that was ended before."""
    try:
        with Judge(args.seconds) as judge:
            for failure in tally.first_failures():
                case = failure.case.case() if isinstance(failure.case, Drawn) else failure.case
                print(f"{case.name}: {failure.name}: {failure.complaint}", flush=True)
                _show(case if args.no_shrink else _small(case, failure.name, failure.kind, judge), args.keep)
    except KeyboardInterrupt:
        return True
    return False


def _small(case: Case, name: str, wanted: str, judge: Judge) -> Case:
    def still_fails(smaller: Case) -> bool:
        found = judge.complaints(smaller, (name,)).get(name, [])
        return any(kind(complaint) == wanted for complaint in found)

    return shrunk(case, still_fails)


def _show(case: Case, keep: Path | None) -> None:
    for name, data in case.files.items():
        text = data.decode("utf-8", "backslashreplace")
        print(f"=== {name}\n{text[:3000]}", flush=True)
        if keep is not None:
            path = keep / re.sub(r"\W+", "_", case.name)[:80] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    raise SystemExit(main())
