"""python -m fuzz [--source S] [--seed N] [--count N] [--properties P,...] [--seconds S] [--keep DIR] [FILE ...].

Programs of a source, or the files of a folder, are checked and judged in a process of its own. What fails is made small
and printed with its seed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.case import Case
from fuzz.inputs import SOURCES, real
from fuzz.inputs.grammar import Missing
from fuzz.inputs.joined import joined
from fuzz.judge import Judge
from fuzz.properties import PROPERTIES
from fuzz.shrink import shrunk
from fuzz.worker import SECONDS

PROGRESS = 1_000


@dataclass
class Tally:
    """What was judged, and what was complained of."""

    judged: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all cases that were asked for; 1 where one failed."""
    args = _arguments(arguments)
    began, tally = time.monotonic(), Tally()
    with Judge(args.seconds) as judge:
        try:
            for case in _cases(args):
                _judge(case, args, judge, tally)
        except Missing as missing:
            print(f"skipped: {missing}")
    for name in args.properties:
        print(f"{name}: {tally.judged[name]} judged, {tally.failed[name]} failed")
    for kind, count in tally.kinds.most_common():
        print(f"{count:5} {kind}")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if tally.kinds else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", choices=sorted(SOURCES), default="mutants")
    parser.add_argument("--seed", type=int, default=1, help="the number of the first case")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--properties", type=_names, default=("survives", "repairs"), help=", ".join(PROPERTIES))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="processor time of one property of a case")
    parser.add_argument("--keep", type=Path, help="write failing cases there")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="name each case before it is judged")
    parser.add_argument("paths", nargs="*", type=Path, help="files, and folders of files, instead of a source")
    return parser.parse_args(arguments)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in PROPERTIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(PROPERTIES)}")
    return names


def _cases(args: argparse.Namespace) -> Iterator[Case]:
    if args.paths:
        yield from real.files(args.paths, args.seed, args.count)
        return
    made = (SOURCES[args.source](number) for number in range(args.seed, args.seed + args.count))
    yield from joined(made) if args.properties == ("same",) else made


def _judge(case: Case, args: argparse.Namespace, judge: Judge, tally: Tally) -> None:
    if args.verbose:
        print(case.name, flush=True)
    complaints = judge.complaints(case, args.properties)
    tally.judged.update(args.properties)
    if sum(tally.judged.values()) % PROGRESS == 0:
        print(f"{case.name}: {tally.judged.total():,} judged so far", file=sys.stderr, flush=True)
    for name, found in complaints.items():
        tally.failed[name] += 1
        new = [complaint for complaint in found if not tally.kinds[f"{name}: {kind(complaint)}"]]
        tally.kinds.update(f"{name}: {kind(complaint)}" for complaint in found)
        for complaint in new[:1]:
            print(f"{case.name}: {name}: {complaint}", flush=True)
            _show(case if args.no_shrink else _small(case, name, kind(complaint), judge), args)


def kind(complaint: str) -> str:
    """What is the same for two complaints of one fault: its words without what is in them of a program."""
    return re.sub(r"'[^']*'|\d+", "_", complaint)


def _small(case: Case, name: str, wanted: str, judge: Judge) -> Case:
    def still_fails(smaller: Case) -> bool:
        found = judge.complaints(smaller, (name,)).get(name, [])
        return any(kind(complaint) == wanted for complaint in found)

    return shrunk(case, still_fails)


def _show(case: Case, args: argparse.Namespace) -> None:
    for name, data in case.files.items():
        text = data.decode("utf-8", "backslashreplace")
        print(f"=== {name}\n{text[:3000]}", flush=True)
        if args.keep is not None:
            path = args.keep / re.sub(r"\W+", "_", case.name)[:80] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    raise SystemExit(main())
