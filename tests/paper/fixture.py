"""Runs a program with a header under paper CUDA, and judges whether it keeps what the header promises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fixture_markers import header

from cudalint.verify.measure import unmet
from paper.run import Observed, run
from paper.watch import watched

# Only a program that hangs takes this long, also on a busy machine.
LIMIT = 60.0
# Nothing moves for so long only where nothing ever will: fixtures that hang sleep for less than a second.
QUIET = 2.0


def run_fixture(
    program: Path,
    *,
    gpus: int | None = None,
    limit: float = LIMIT,
    args: Sequence[str] = (),
    trigger: bool = False,
) -> Observed:
    """Run a fixture as its header asks; `trigger` adds the environment of its failing variant."""
    table = header(program.read_text(encoding="utf-8"))
    variables = table.get("trigger", {}) if trigger else {}
    assert isinstance(variables, Mapping)
    env = {str(key): str(value) for key, value in variables.items()}
    places = gpus if gpus is not None else int(str(table.get("gpus", 1)))

    def execute(path: Path) -> Observed:
        return run(path, gpus=places, limit=limit, env=env, args=args)

    return watched(program, QUIET, execute) if table.get("outcome") == "hang" else execute(program)


def judge(table: Mapping[str, Any], observed: Observed, triggered: Observed | None = None) -> list[str]:
    """What is wrong between a fixture's header and its run; `triggered` is the run of a latent one's variant."""
    complaints = [f"paper CUDA does not know {name}" for name in observed.gaps]
    outcome = table.get("outcome", "ok")
    wanted = "ok" if outcome in ("wrong-device", "cost", "latent", "ok") else outcome
    if observed.outcome != wanted:
        tail = observed.stderr.strip().splitlines()[-1:] or [""]
        complaints.append(f"wanted {outcome}, observed {observed.outcome} (code {observed.code}): {tail[0]}")
    texts = [observed.text] + ([triggered.text] if triggered is not None else [])
    if "message" in table and not any(re.search(table["message"], text) for text in texts):
        complaints.append(f"no message {table['message']!r} in the output")
    if "measure" in table:
        complaint = unmet(table["measure"], observed.measured)
        complaints += [complaint] if complaint else []
    if outcome == "latent":
        complaints += _judge_trigger(triggered)
    return complaints


def _judge_trigger(triggered: Observed | None) -> list[str]:
    if triggered is None:
        return ["latent: the variant in trigger was not run"]
    complaints = [f"paper CUDA does not know {name}" for name in triggered.gaps]
    if triggered.outcome == "ok":
        complaints.append("latent: the variant in trigger did not fail")
    return complaints


def check(program: Path) -> list[str]:
    """Run a fixture, and its trigger if it is latent, and judge both."""
    table = header(program.read_text(encoding="utf-8"))
    observed = run_fixture(program)
    latent = table.get("outcome") == "latent"
    return judge(table, observed, run_fixture(program, trigger=True) if latent else None)


def check_repaired(program: Path) -> list[str]:
    """Run a repaired fixture, with its trigger too if it is latent: it ends well, and uses more than one GPU."""
    table = header(program.read_text(encoding="utf-8"))
    observed = run_fixture(program)
    complaints = judge({}, observed)
    if table.get("outcome") == "latent":
        complaints += judge({}, run_fixture(program, trigger=True))
    several = table.get("outcome") == "wrong-device" and table.get("gpus") != 1
    if several and all(gpu == 0 for _, gpu in observed.contexts):
        complaints.append("all work still runs on the first GPU")
    return complaints
