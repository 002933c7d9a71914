"""python -m mutation [--kind K,...] [--only TEXT] [--seed N --count M] [--jobs N] [--repairs | --recorded] [TEST ...].

Changes rules, models and code, one small change at a time, and says which of them no test notices.
`--kind "model entry" --record` writes `noticed.txt`, which must know each entry of the models.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mutation import record
from mutation.campaign import Campaign, Verdict
from mutation.code import code_mutants
from mutation.models import model_mutants
from mutation.mutant import Mutant

TESTS = Path(__file__).resolve().parent.parent
# What judges by default: tests of what is found, and how it is said and repaired, which run in this process.
JUDGES = (
    "fixtures", "folder_fixtures", "projects", "library_calls", "process_effects", "servers", "classes", "conditions",
    "decisions", "notes", "doubts", "rules", "said", "models", "questions", "relevance", "report", "blocks", "changes",
    "consistency", "cuts", "rule_pages", "settings_files",
)  # fmt: skip
# What judges the way from a command to its report, and which entries there are, instead or as well.
HOSTS = (
    "cli", "cli_options", "workflow", "add_noqa", "baseline", "explain", "map", "since", "shell", "streams", "watch",
    "flake8", "config", "formats", "patches", "fixing", "robustness",
)  # fmt: skip
ENTRIES = (
    "near", "entries", "distance", "patience", "prepared", "instances", "command_lines", "relevance", "questions",
    "servers", "classes", "settings_files", "cuts", "notes", "doubts", "conditions", "projects", "session", "cache",
    "uncalled", "search", "notebooks", "limits", "map", "changes", "blocks",
)  # fmt: skip
REPAIRS = ("spawn_safety", "fixing", "fixes", "fixes_values", "fixes_places", "fixes_lifting", "fixes_harm")
KINDS = {
    "rule": ("cudalint.rules", "cudalint.machine.reporting"),
    "condition": ("cudalint.machine.assumptions",),
    "repair": ("cudalint.fixes",),
    "effect": ("cudalint.machine.effects", "cudalint.machine.launch"),
    "project": ("cudalint.project",),
    "host": ("cudalint.hosts",),
}
JUDGES_OF = {"project": ENTRIES, "host": HOSTS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants that were asked for; 1 where one survives."""
    args = _arguments(arguments)
    began = time.monotonic()
    known = {name: test for name, test in record.read().items() if test is not None} if args.recorded else {}
    mutants = list(_mutants(args, known))
    campaign = Campaign(mutants, args.jobs, known, verbose=args.verbose)
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--no-summary", *_tests(args, campaign)], [campaign])
    if campaign.broken:
        print("these fail without any mutant:", *campaign.broken, sep="\n  ")
        return 2
    _show(campaign.verdicts)
    print(f"{time.monotonic() - began:.0f} s")
    if args.record:
        record.write({**record.read(), **{v.mutant.name: v.killer for v in campaign.verdicts}})
    return 1 if len(campaign.verdicts) < len(mutants) or any(v.killer is None for v in campaign.verdicts) else 0


def _tests(args: argparse.Namespace, campaign: Campaign) -> list[str]:
    """What pytest is to collect."""
    if args.recorded:
        return sorted({str(TESTS.parent / campaign.known[mutant.name]) for mutant in campaign.mutants})
    judges = dict.fromkeys(judge for kind in args.kind.split(",") for judge in JUDGES_OF.get(kind, JUDGES))
    judges.update(dict.fromkeys(REPAIRS if args.repairs else ()))
    return [str(TESTS / name) for name in args.tests or [f"test_{name}.py" for name in judges]]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    plain = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__, formatter_class=plain)
    parser.add_argument("--kind", default="model", help=f"model, {', '.join(KINDS)}, or the beginning of a kind")
    parser.add_argument("--only", default="", help="mutants whose name matches this expression")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="so many of them, chosen by the seed")
    parser.add_argument("--verbose", action="store_true", help="name the test that notices a mutant, too")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once")
    parser.add_argument("--record", action="store_true", help="write which test noticed which mutant")
    parser.add_argument("--recorded", action="store_true", help="ask of each mutant only the test that is recorded")
    parser.add_argument("--unnoticed", action="store_true", help="only what no test noticed by the record")
    parser.add_argument("--repairs", action="store_true", help="tests of repairs judge too, which take longer")
    parser.add_argument("tests", nargs="*", help="files of tests, or single tests, that judge instead")
    return parser.parse_args(arguments)


def _mutants(args: argparse.Namespace, known: Mapping[str, str]) -> Iterator[Mutant]:
    found = [m for kind in args.kind.split(",") for m in _of(kind) if re.search(args.only, m.name)]
    found = [m for m in found if m.name in known] if args.recorded else found
    if args.unnoticed:
        noticed = record.read()
        found = [m for m in found if noticed.get(m.name) is None]
    if args.count is None or args.count >= len(found):
        return iter(found)
    chosen = sorted(random.Random(args.seed).sample(range(len(found)), args.count))
    return (found[index] for index in chosen)


def _of(kind: str) -> Iterator[Mutant]:
    if kind.startswith(("model", "effect name", "effect key")):
        yield from (m for m in model_mutants() if m.kind.startswith(kind) or kind == "model")
        return
    for root in KINDS[kind]:
        for module in _modules(root):
            yield from code_mutants(kind, module)


def _modules(root: str) -> Iterator[str]:
    package = importlib.import_module(root)
    yield root
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), f"{root}."):
        yield found.name


def _show(verdicts: Sequence[Verdict]) -> None:
    counted = Counter((v.mutant.kind, v.mutant.file, v.killer is not None) for v in verdicts)
    for kind, file in sorted({(v.mutant.kind, v.mutant.file) for v in verdicts}):
        killed, left = counted[kind, file, True], counted[kind, file, False]
        print(f"{kind:16} {file:32} {killed:5} killed {left:5} survived")
    kinds = Counter((v.mutant.kind, v.killer is not None) for v in verdicts)
    for kind in sorted({kind for kind, _ in kinds}):
        print(f"{kind}: {kinds[kind, True]} killed, {kinds[kind, False]} survived")


if __name__ == "__main__":
    sys.exit(main())
