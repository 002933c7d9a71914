"""`python -m paper PROGRAM [--gpus N] [--limit S] [ARGS...]`: run a program and print what happened."""

from __future__ import annotations

import argparse
from pathlib import Path

from fixture_markers import header

from paper.fixture import judge, run_fixture


def main() -> int:
    """Print the outcome; 1 if the program has a header and does not keep it."""
    parser = argparse.ArgumentParser(prog="paper", description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--limit", type=float, default=15.0)
    parser.add_argument("args", nargs="*")
    asked = parser.parse_args()
    table = header(asked.program.read_text(encoding="utf-8"))
    seen = run_fixture(asked.program, gpus=asked.gpus, limit=asked.limit, args=asked.args)
    print(seen.stdout, end="")
    print(seen.stderr, end="")
    print(f"-- {seen.outcome}, exit code {seen.code}, {seen.seconds:.2f} s")
    print(f"-- dead children: {seen.dead}; contexts (process, GPU): {list(seen.contexts)}; measured: {seen.measured}")
    for gap in seen.gaps:
        print(f"-- gap: paper CUDA does not know {gap}")
    if not table:
        return 0
    latent = table.get("outcome") == "latent"
    complaints = judge(table, seen, run_fixture(asked.program, trigger=True) if latent else None)
    for complaint in complaints:
        print(f"-- complaint: {complaint}")
    return 1 if complaints else 0


if __name__ == "__main__":
    raise SystemExit(main())
