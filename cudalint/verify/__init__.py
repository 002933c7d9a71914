"""``cudalint --verify``: predictions against what hardware does."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from cudalint.policy.selection import matches
from cudalint.report.plain import plain
from cudalint.verify import (
    evidence,
    facts,
    gpus,
    headers,
    own_campaign,
    own_repairs,
    paper,
    program_report,
    repairs_report,
    report,
)
from cudalint.verify import program as programs
from cudalint.verify.campaign import Campaign
from cudalint.verify.evidence import EvidenceError
from cudalint.verify.facts import recorded
from cudalint.verify.facts import report as facts_report
from cudalint.verify.headers import HeaderError
from cudalint.verify.program import Program, Target, module, script
from cudalint.verify.progress import progress
from cudalint.verify.report import Format
from cudalint.verify.runner import Limits, Runner
from cudalint.verify.sampling import Hardware
from cudalint.verify.surroundings import HARDWARE, Surroundings
from cudalint.verify.verdict import Status, Verdict

__all__ = [
    "EvidenceError",
    "Format",
    "HeaderError",
    "Program",
    "Target",
    "framework_names",
    "has_header",
    "module",
    "script",
    "unknown_expression",
    "verify",
    "verify_models",
    "verify_program",
    "verify_repairs",
]

CONFIRMED, REFUTED, NOTHING_RAN = 0, 1, 2
# Memory that a driver may keep after the programs have ended.
_FORGOTTEN_MIB = 256
# Some expressions name the second GPU.
_PAPER_GPUS = 2
# Why nothing is known of a program whose supervisor did not tell.
_LOST = "its supervisor was killed or told to end, or its folder was removed or has no room"


def verify(
    paths: Sequence[str] = (),
    *,
    output_format: Format = Format.TABLE,
    evidence_folder: str | None = None,
    gpu_count: int | None = None,
    limit_scale: float = 1.0,
    select: Sequence[str] = (),
    gpus_available: Sequence[gpus.Gpu] | None = None,
    limits: Limits | None = None,
    on_paper: bool = False,
    repairs: bool = True,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Run fixtures (default: those that come with cudalint) and print what hardware says about each.

    Gives 0 when everything that could run was confirmed, 1 after a refutation, 2 when nothing could run
    or somebody interrupted. ``gpus_available`` takes the place of the GPUs of the machine. ``on_paper`` runs
    them without hardware, as measurements say they would end; that is no evidence. Broken ones run once more as
    repaired, unless ``repairs`` is off. Raises
    ``FileNotFoundError`` and ``HeaderError`` for paths that hold no fixtures, and ``EvidenceError`` where no evidence
    can be kept.
    """
    out, err = out or sys.stdout, err or sys.stderr
    fixtures = _chosen(paths, select)
    most = max((fixture.header.gpus for fixture in fixtures), default=0)
    found = paper.machine(gpu_count or most) if on_paper else _hardware(gpu_count, gpus_available)
    reason = _obstacle(found, on_paper)
    if reason is not None:
        return _nothing(err, f"{reason}: nothing was verified")
    if not fixtures:
        return _nothing(err, "no fixtures were found: nothing was verified")
    began, before = time.monotonic(), gpus.used_mib(found.devices)
    shelf = None if evidence_folder is None or on_paper else Path(evidence_folder)
    if shelf is not None:
        evidence.prepare(shelf, evidence.this_place(found))
    with _surroundings(len(found.devices), on_paper) as surroundings, progress(err, len(fixtures)) as shown:
        campaign = Campaign(fixtures, found, limits or Limits(), limit_scale, surroundings, repairs)
        result = campaign.run(lambda one: shown.step(report.line(one), one.status is Status.REFUTED))
    place = evidence.this_place(found, surroundings)
    out.write(report.render(result.verdicts, place, output_format, time.monotonic() - began))
    out.flush()
    _say_left_behind(err, before, gpus.used_mib(found.devices))
    if shelf is not None:
        _say(err, f"evidence: {evidence.save(shelf, place, result.verdicts)}")
    return _exit_code(result.verdicts, result.interrupted, err)


def verify_program(
    program: Program,
    *,
    output_format: Format = Format.TABLE,
    seconds: float | None = None,
    gpu_count: int | None = None,
    gpus_available: Sequence[gpus.Gpu] | None = None,
    on_paper: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Run a user's own program under the probe and say of each finding whether it came true.

    Its output goes to standard error as it comes. Gives 0 when nothing was refuted and nothing seen that was not
    predicted, 1 otherwise, 2 without a GPU, after an interruption, or when the program failed for other reasons.
    """
    out, err = out or sys.stdout, err or sys.stderr
    found = paper.machine(gpu_count or 1) if on_paper else _hardware(None, gpus_available)
    reason = _obstacle(found, on_paper)
    if reason is not None:
        return _nothing(err, f"{reason}: nothing was verified")
    with _surroundings(len(found.devices), on_paper) as surroundings:
        trial = programs.try_out(program, Runner(surroundings), seconds, found.devices)
    out.write(program_report.render(trial, evidence.this_place(found, surroundings), output_format))
    out.flush()
    if trial.unpredicted or trial.is_refuted:
        return REFUTED
    why = _why_undecided(trial)
    return CONFIRMED if why is None else _nothing(err, why)


def _why_undecided(trial: programs.Trial) -> str | None:
    """Why a run says nothing of what was predicted; None where it does."""
    if trial.seen.end == "cancelled":
        return "interrupted: what had been seen is shown"
    if trial.seen.end == "lost":
        return f"nothing is known of the program: {_LOST}"
    if trial.seen.end in ("time", "busy") and trial.showed_nothing:
        return f"the program was ended after {trial.seen.seconds:.0f} s: what had been seen is shown"
    if trial.seen.end == "stopped" and trial.showed_nothing:
        why = f"a signal has stopped the program, and nobody let it go on for {programs.LONGEST_STOP:.0f} s"
        return f"{why}: what had been seen is shown"
    if trial.went_on_unseen:
        return "the program went on in the background and was ended: what had been seen is shown"
    if trial.was_replaced:
        return f"the program became {plain(trial.became)}, into which nothing looks: nothing was verified"
    if trial.seen.spoiled:
        return f"{trial.seen.spoiled[0]}: nothing was verified"
    if trial.showed_nothing and trial.suspects:
        named = ", ".join(dict.fromkeys(program_report.named(trial, one) for one in trial.suspects))
        return f"the program failed, and whether that is what {named} predicts was not seen: nothing was verified"
    return "the program failed for reasons of its own: nothing was verified" if trial.showed_nothing else None


def verify_repairs(
    programs_: Sequence[Program],
    *,
    output_format: Format = Format.TABLE,
    seconds: float | None = None,
    gpu_count: int | None = None,
    gpus_available: Sequence[gpus.Gpu] | None = None,
    on_paper: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Run programs of a user as they are and as each of their repairs leaves them, and show both side by side.

    Gives 0 when every repair holds, 1 when one leaves its program broken or a safe one changes what is printed, 2
    without a GPU or a repair, or after an interruption.
    """
    out, err = out or sys.stdout, err or sys.stderr
    found = paper.machine(gpu_count or 1) if on_paper else _hardware(None, gpus_available)
    reason = _obstacle(found, on_paper)
    if reason is not None:
        return _nothing(err, f"{reason}: nothing was verified")
    several = progress(err, len(programs_)) if len(programs_) > 1 else contextlib.nullcontext()
    with _surroundings(len(found.devices), on_paper) as surroundings, several as shown:
        comparer = own_repairs.Comparer(Runner(surroundings), seconds, found.devices)

        def tell(one: own_repairs.Comparison) -> None:
            if shown is not None:
                shown.step(repairs_report.told(one), bool(one.wrong))

        done = own_campaign.compare_all(programs_, comparer, tell)
    compared = done.comparisons
    out.write(repairs_report.render(compared, evidence.this_place(found, surroundings), output_format))
    out.flush()
    attempts = [attempt for one in compared for attempt in one.attempts]
    if any(one.wrong for one in compared):
        return REFUTED
    if any(one.was_lost for one in compared):
        return _nothing(err, f"nothing is known of a program: {_LOST}")
    if done.interrupted:
        return _nothing(err, "interrupted: what had been seen is shown")
    if any(one.needs_more_gpus for one in compared):
        return _nothing(err, "a program asks for a GPU that is not there: a machine with more of them can tell")
    if any(one.failed_by_itself for one in compared):
        return _nothing(err, "a program fails for reasons of its own, with and without its repairs")
    return CONFIRMED if attempts else _nothing(err, "there are no repairs: nothing was run")


def has_header(path: str) -> bool:
    """Whether a file says how it ends, and so is a fixture."""
    return headers.load(Path(path)) is not None


def unknown_expression(words: Sequence[str]) -> str | None:
    """The first word for ``verify_models`` that names no framework and stands in no expression."""
    return recorded.unknown(words)


def framework_names() -> tuple[str, ...]:
    """Whose expressions ``verify_models`` can measure."""
    return tuple(framework.name for framework in recorded.frameworks())


def verify_models(
    words: Sequence[str] = (),
    *,
    output_format: Format = Format.TABLE,
    gpu_count: int | None = None,
    gpus_available: Sequence[gpus.Gpu] | None = None,
    on_paper: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Measure again what the models rest on and print what differs; ``words`` name frameworks or stand in expressions.

    Gives 0 when everything that could be measured is as recorded, 1 when something differs, 2 when nothing
    could be measured or somebody interrupted.
    """
    out, err = out or sys.stdout, err or sys.stderr
    found = paper.machine(gpu_count or _PAPER_GPUS) if on_paper else _hardware(gpu_count, gpus_available)
    reason = _obstacle(found, on_paper)
    if reason is not None:
        return _nothing(err, f"{reason}: nothing was measured")
    surroundings = paper.Paper(len(found.devices)) if on_paper else HARDWARE
    frameworks = recorded.chosen(words)
    began, total = time.monotonic(), sum(len(one.expressions) for one in frameworks)
    with progress(err, total, terse=True) as shown:
        measurement = facts.measure(
            found,
            frameworks,
            surroundings=surroundings,
            environment=found.environment,
            progress=lambda one: shown.step(*_told(one)),
            say=shown.say,
        )
    measured = measurement.expressions
    nothing = not measurement.interrupted and all(one.why_not for one in measured)
    if not nothing or output_format is not Format.TABLE:
        place = evidence.this_place(found, surroundings)
        out.write(facts_report.render(measured, place, output_format, time.monotonic() - began))
        out.flush()
    if nothing:
        reasons = dict.fromkeys(one.why_not for one in measured)
        return _nothing(err, f"nothing could be measured here: {'; '.join(reasons)}")
    if any(one.differences for one in measured):
        return REFUTED
    return _nothing(err, "interrupted: what had been measured is shown") if measurement.interrupted else CONFIRMED


def _hardware(count: int | None, available: Sequence[gpus.Gpu] | None) -> gpus.Gpus:
    found = gpus.discover() if available is None else gpus.Gpus(tuple(available))
    return found.first(count)


def _chosen(paths: Sequence[str], select: Sequence[str]) -> list[headers.Fixture]:
    named = [Path(path) for path in paths] or [headers.default_folder()]
    for path in named:
        if not path.exists():
            raise FileNotFoundError(str(path))
    fixtures = headers.find(named)
    if not select:
        return fixtures
    return [fixture for fixture in fixtures if any(matches(select, code) for code in fixture.codes)]


def _obstacle(found: gpus.Gpus, on_paper: bool) -> str | None:
    if on_paper:
        return paper.obstacle()
    return None if found.devices else "no GPU was found (--paper needs none)"


def _surroundings(gpu_count: int, on_paper: bool) -> contextlib.AbstractContextManager[Surroundings]:
    return contextlib.nullcontext(paper.Paper(gpu_count)) if on_paper else Hardware()


def _told(one: facts.Measured) -> tuple[str, bool]:
    told = (*one.differences, *one.contradictions)
    return "; ".join((f"{one.framework}: {one.expression.text}", *told)), bool(told)


def _say_left_behind(err: TextIO, before: dict[int, int], after: dict[int, int]) -> None:
    for index, used in after.items():
        grown = used - before.get(index, used)
        if grown > _FORGOTTEN_MIB:
            _say(err, f"warning: GPU {index} holds {grown} MiB more than before")


def _exit_code(verdicts: Sequence[Verdict], interrupted: bool, err: TextIO) -> int:
    statuses = {verdict.status for verdict in verdicts}
    if Status.REFUTED in statuses:
        return REFUTED
    if interrupted:
        return _nothing(err, "interrupted: what had run is shown")
    return _nothing(err, "nothing could run here") if statuses == {Status.NOT_RUN} else CONFIRMED


def _nothing(err: TextIO, why: str) -> int:
    _say(err, f"error: {why}")
    return NOTHING_RAN


def _say(err: TextIO, text: str) -> None:
    print(f"cudalint: {text}", file=err, flush=True)
