"""``cudalint --verify --models``: what the models rest on is measured again, on this machine and these versions."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cudalint.structs import Frozen
from cudalint.verify.facts.claims import claim
from cudalint.verify.facts.compare import Measured
from cudalint.verify.facts.recorded import Expression, Framework
from cudalint.verify.gpus import Gpus
from cudalint.verify.runner import Limits, Run, Runner
from cudalint.verify.surroundings import HARDWARE, Surroundings

__all__ = ["Measured", "Measurement", "measure"]

_METHOD = Path(__file__).resolve().parent / "double_fork.py"
# What hangs would hang for ever; what does not may have to import a large package from a cold disk.
_HANG_SECONDS, _PATIENCE_SECONDS = 10.0, 45.0
_PAPER_HANG_SECONDS, _PAPER_PATIENCE_SECONDS = 1.5, 40.0
# Two processes of an expression may hold a context on one GPU at a time.
_MIB = 1600
# No share of the GPU is taken by who does not need it, as many measure at once.
_ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
_TICK = 0.05
_NEEDS_MORE = "needs more GPUs"

Say = Callable[[str], None]
Progress = Callable[[Measured], None]


class Measurement(Frozen):
    """All expressions, in the order in which they are recorded, and whether somebody interrupted."""

    expressions: tuple[Measured, ...]
    interrupted: bool = False


def measure(
    gpus: Gpus,
    frameworks: Sequence[Framework],
    *,
    surroundings: Surroundings = HARDWARE,
    progress: Progress = lambda measured: None,
    say: Say = lambda text: None,
    environment: Mapping[str, str] | None = None,
) -> Measurement:
    """Measure the expressions of these frameworks, all at once, and tell of each when it is known.

    Ctrl-C ends it and gives what is known by then.
    """
    runner = Runner(surroundings)
    extra = {**_ENVIRONMENT, **(environment or {})}
    with _folder() as folder:
        jobs = [_Job(framework, len(gpus.devices), folder, surroundings) for framework in frameworks]
        tokens = _tokens(folder, _places(gpus), jobs)
        interrupted = False
        try:
            _run(jobs, runner, extra, progress, say)
        except KeyboardInterrupt:
            interrupted = True
            runner.stop()
            for job in jobs:
                job.read(lambda measured: None, say)
        finally:
            runner.clear()
            os.close(tokens)
    return Measurement(tuple(one for job in jobs for one in job.all()), interrupted)


def _run(jobs: Sequence[_Job], runner: Runner, environment: Mapping[str, str], progress: Progress, say: Say) -> None:
    for job in jobs:
        job.start(runner, environment)
    while True:
        running = [job for job in jobs if job.is_running]
        for job in jobs:
            job.read(progress, say)
        if not running:
            break
        time.sleep(_TICK)
    for job in jobs:
        job.end(progress)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cudalint-facts-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _places(gpus: Gpus) -> int:
    """How many expressions may be measured at once: as cores, and the memory of the GPU that all use, allow."""
    memory = min((gpu.memory_mib for gpu in gpus.devices), default=_MIB)
    return max(2, min(len(os.sched_getaffinity(0)), memory // _MIB))


def _tokens(folder: Path, places: int, jobs: Sequence[_Job]) -> int:
    """The pipe from which measuring processes take a byte for each lane but their first."""
    os.mkfifo(folder / "tokens")
    descriptor = os.open(folder / "tokens", os.O_RDWR | os.O_NONBLOCK)
    os.write(descriptor, b"+" * max(0, places - len(jobs)))
    return descriptor


class _Job:
    """One framework: its process, and what came of its expressions."""

    def __init__(self, framework: Framework, gpus: int, folder: Path, surroundings: Surroundings) -> None:
        self._framework = framework
        self._answers = folder / f"{framework.name}.answers"
        self._answers.touch()
        self._path = folder / f"{framework.name}.json"
        self._hang = _limit(framework, surroundings)
        self._position = 0
        self._seen: dict[str, dict[str, Any]] = {}
        self._missing: dict[str, set[str]] = {}
        self._found: dict[str, Measured] = {}
        self._run: Run | None = None
        self._why_not = ""
        self._thread = threading.Thread(name=f"cudalint-{framework.name}", daemon=True)
        questions = []
        for expression in framework.expressions:
            if expression.gpus > gpus:
                continue
            asked = list(_questions(framework, expression))
            self._missing[expression.text] = {question["side"] for question in asked}
            questions += asked
        self._path.write_text(json.dumps(self._document(questions, folder, surroundings)))

    def _document(self, questions: Sequence[Mapping[str, Any]], folder: Path, where: Surroundings) -> dict[str, Any]:
        framework = self._framework
        return {
            "setup": framework.setup,
            "prepare": framework.prepare,
            "use": framework.use,
            "check": framework.check,
            "inherit": framework.inherit,
            "hang": self._hang,
            "stretch": where.is_hardware,
            "places": len(questions),
            "tokens": str(folder / "tokens"),
            "answers": str(self._answers),
            "questions": questions,
        }

    @property
    def is_running(self) -> bool:
        """Whether its process may still have something to say."""
        return self._thread.is_alive()

    def start(self, runner: Runner, environment: Mapping[str, str]) -> None:
        """Begin."""
        seconds = 120 + 4 * self._hang * len(self._framework.expressions)

        def work() -> None:
            self._run = runner.run(_METHOD, Limits(seconds=seconds), environment, [str(self._path)])

        self._thread = threading.Thread(target=work, name=self._thread.name, daemon=True)
        self._thread.start()

    def read(self, progress: Progress, say: Say) -> None:
        """Take what has been answered since."""
        with self._answers.open("rb") as stream:
            stream.seek(self._position)
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line), progress, say)

    def _take(self, told: dict[str, Any], progress: Progress, say: Say) -> None:
        name = self._framework.name
        if "unusable" in told:
            self._why_not = f"no GPU can be used here: {told['unusable']}"
            return
        if "ready" in told:
            say(
                f"{name}: imported in {told['ready']} s, uses the GPU in {told['use']} s; "
                f"{len(self._missing)} expressions, each a hang after {told['hang']:g} s"
            )
            return
        text = told.pop("expression")
        self._missing[text].discard(told.pop("side"))
        self._seen.setdefault(text, {}).update(told)
        if not self._missing[text]:
            expression = next(one for one in self._framework.expressions if one.text == text)
            self._found[text] = self._measured(expression, self._seen[text])
            progress(self._found[text])

    def _measured(self, expression: Expression, seen: dict[str, Any]) -> Measured:
        reason = _why_not(expression, seen)
        if reason:
            return Measured(self._framework.name, expression, seen, why_not=reason)
        return Measured(self._framework.name, expression, seen, claim(self._framework, expression))

    def _leave_out(self, expression: Expression, reason: str) -> None:
        self._found[expression.text] = Measured(self._framework.name, expression, {}, why_not=reason)

    def end(self, progress: Progress) -> None:
        """Its process is over: what was not answered will not be."""
        for expression in self._framework.expressions:
            if expression.text not in self._found:
                asked = expression.text in self._missing
                self._leave_out(expression, self._why_not or (_broke_off(self._run) if asked else _NEEDS_MORE))
                progress(self._found[expression.text])

    def all(self) -> Iterator[Measured]:
        """All expressions, in the order in which they are recorded."""
        for expression in self._framework.expressions:
            known = self._found.get(expression.text)
            yield known or Measured(self._framework.name, expression, {}, why_not="interrupted")


def _limit(framework: Framework, surroundings: Surroundings) -> float:
    if surroundings.is_hardware:
        return _HANG_SECONDS if framework.hangs else _PATIENCE_SECONDS
    # Only some frameworks hang when they fail; elsewhere a slow machine must not look like a hang.
    return _PAPER_HANG_SECONDS if framework.hangs else _PAPER_PATIENCE_SECONDS


def _questions(framework: Framework, expression: Expression) -> Iterator[dict[str, Any]]:
    sides: tuple[tuple[str, object, object], ...] = (
        ("later", expression.poisons, expression.symptom),
        ("inside", expression.in_child, expression.in_child),
    )
    for side, expects, symptom in sides:
        if side == "later" and expects is None and not expression.is_new:  # about what only who used CUDA has
            continue
        yield {"expression": expression.text, "side": side, "expects": expects, "slow": symptom == "hang"}


def _why_not(expression: Expression, seen: Mapping[str, Any]) -> str:
    if "missing" in seen:
        return f"{seen['missing']} is not installed"
    if not expression.raises and str(seen.get("raised", "")).startswith("AttributeError"):
        return f"not in this version: {seen['raised']}"
    return f"could not be measured: {seen['lost']}" if "lost" in seen else ""


def _broke_off(run: Run | None) -> str:
    if run is None:
        return "the measurement broke off"
    missing = [line.removeprefix("missing: ") for line in run.stdout.splitlines() if line.startswith("missing: ")]
    if missing:
        return f"{missing[0]} is not installed"
    last = run.stderr.strip().splitlines()[-1:] or [f"{run.end}, exit code {run.code}"]
    return f"the measurement broke off: {last[0]}"
