"""``cudalint --verify --models``: what the models rest on is measured again, on this machine and these versions."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudalint.verify.campaign import places
from cudalint.verify.facts import recorded
from cudalint.verify.facts.claims import claim
from cudalint.verify.facts.compare import Measured
from cudalint.verify.facts.recorded import Expression, Framework
from cudalint.verify.gpus import Gpus
from cudalint.verify.runner import Limits, Run, Runner
from cudalint.verify.surroundings import HARDWARE, Surroundings

__all__ = ["Measured", "Measurement", "measure"]

_METHOD = Path(__file__).resolve().parent / "double_fork.py"
# Expressions per process: importing a framework costs as much as measuring a few of them.
_SHARD = 20
# A context on a busy GPU takes seconds; what hangs would hang for ever.
_HANG_SECONDS = 30.0
_PAPER_HANG_SECONDS, _PAPER_PATIENCE_SECONDS = 1.5, 40.0
# No share of the GPU is taken by who does not need it, as many measure at once.
_ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """All expressions, in the order in which they are recorded, and whether somebody interrupted."""

    expressions: tuple[Measured, ...]
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class _Shard:
    framework: Framework
    expressions: tuple[Expression, ...]


def measure(
    gpus: Gpus,
    names: Iterable[str] = (),
    *,
    surroundings: Surroundings = HARDWARE,
    progress: Callable[[Measured], None] = lambda measured: None,
    environment: dict[str, str] | None = None,
) -> Measurement:
    """Measure the expressions of all frameworks, or of the named ones."""
    shards = [shard for framework in recorded.frameworks(names) for shard in _shards(framework)]
    runner, stopped = Runner(surroundings), threading.Event()
    found: dict[tuple[str, str], Measured] = {}

    def work(shard: _Shard) -> list[Measured]:
        if stopped.is_set():
            return []
        return list(_measure(shard, runner, surroundings, environment or {}))

    with ThreadPoolExecutor(max_workers=places(len(gpus.devices))) as threads:
        try:
            for done in as_completed([threads.submit(work, shard) for shard in shards]):
                for one in done.result():
                    found[one.framework, one.expression.text] = one
                    progress(one)
        except KeyboardInterrupt:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            runner.stop()
    return Measurement(tuple(_all(shards, found)), stopped.is_set())


def _shards(framework: Framework) -> Iterator[_Shard]:
    count = -(-len(framework.expressions) // _SHARD)
    for first in range(count):
        yield _Shard(framework, framework.expressions[first::count])


def _measure(shard: _Shard, runner: Runner, surroundings: Surroundings, extra: dict[str, str]) -> Iterator[Measured]:
    hang = _HANG_SECONDS
    if not surroundings.is_hardware:
        # Only some frameworks hang when they fail; elsewhere a slow machine must not look like a hang.
        hang = _PAPER_HANG_SECONDS if shard.framework.hangs else _PAPER_PATIENCE_SECONDS
    descriptor, job = tempfile.mkstemp(prefix="cudalint-facts-", suffix=".json")
    try:
        with os.fdopen(descriptor, "w") as stream:
            json.dump(_job(shard, hang), stream)
        seconds = 60 + 2 * hang * len(shard.expressions)
        run = runner.run(_METHOD, Limits(seconds=seconds), {**_ENVIRONMENT, **extra}, [job])
    finally:
        os.unlink(job)
    lines = dict(_read(run.stdout))
    for expression in shard.expressions:
        yield _measured(shard.framework, expression, lines.get(expression.text), run)


def _job(shard: _Shard, hang: float) -> dict[str, Any]:
    framework = shard.framework
    return {
        "setup": framework.setup,
        "prepare": framework.prepare,
        "use": framework.use,
        "inherit": framework.inherit,
        "hang": hang,
        "expressions": [expression.text for expression in shard.expressions],
    }


def _read(output: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in output.splitlines():
        if line.startswith("fact: "):
            seen = json.loads(line.removeprefix("fact: "))
            yield seen["expression"], seen


def _measured(framework: Framework, expression: Expression, seen: dict[str, Any] | None, run: Run) -> Measured:
    reason = _why_not(seen, run)
    if seen is None or reason:
        return Measured(framework.name, expression, seen or {}, why_not=reason)
    return Measured(framework.name, expression, seen, claim(framework, expression))


def _why_not(seen: dict[str, Any] | None, run: Run) -> str:
    missing = [line.removeprefix("missing: ") for line in run.stdout.splitlines() if line.startswith("missing: ")]
    if seen is None and missing:
        return f"{missing[0]} is not installed"
    if seen is None:
        last = run.stderr.strip().splitlines()[-1:] or [run.end]
        return f"the measurement broke off: {last[0]}"
    if "missing" in seen:
        return f"{seen['missing']} is not installed"
    if str(seen.get("raised", "")).startswith("AttributeError"):
        return f"not in this version: {seen['raised']}"
    return f"could not be measured: {seen['lost']}" if "lost" in seen else ""


def _all(shards: Sequence[_Shard], found: dict[tuple[str, str], Measured]) -> Iterator[Measured]:
    frameworks = {shard.framework.name: shard.framework for shard in shards}
    for framework in frameworks.values():
        for expression in framework.expressions:
            one = found.get((framework.name, expression.text))
            yield one or Measured(framework.name, expression, {}, why_not="interrupted")
