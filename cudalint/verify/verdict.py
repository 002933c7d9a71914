"""A fixture's run against its header and against what cudalint predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from cudalint.finding import Severity
from cudalint.structs import Frozen, replace
from cudalint.verify.headers import Fixture, Header, Outcome
from cudalint.verify.measure import unmet
from cudalint.verify.observe import Observation
from cudalint.verify.predict import UNREADABLE, Prediction

# Why a fixture did not run when somebody ended it all.
INTERRUPTED = "interrupted"


class Status(Enum):
    """What hardware says about a fixture and its findings."""

    CONFIRMED = "confirmed"
    LATENT = "latent"
    REFUTED = "refuted"
    NOT_RUN = "not run"


class Verdict(Frozen):
    """The status of one fixture.

    ``reasons`` say why it was refuted or not run; ``notes`` say what differs and refutes nothing. ``fixed`` is the
    run of the repaired program, where there is a repair.
    """

    fixture: Fixture
    status: Status
    observed: Outcome | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    run: Observation | None = None
    triggered: Observation | None = None
    fixed: Observation | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the fixture is there to show something that goes wrong."""
        return self.fixture.header.outcome is not Outcome.OK


def not_run(fixture: Fixture, reason: str) -> Verdict:
    """The verdict on a fixture that could not run here."""
    return Verdict(fixture, Status.NOT_RUN, reasons=(reason,))


def judge(
    fixture: Fixture,
    predictions: Sequence[Prediction],
    run: Observation,
    triggered: Observation | None = None,
    fixed: Observation | None = None,
) -> Verdict:
    """What runs say; ``triggered`` is that of a latent fixture's failing variant, ``fixed`` of the repaired one."""
    header = fixture.header
    observed = _named(header, run, triggered)
    reasons = [
        *_against_header(header, run, triggered),
        *_against_predictions(fixture, predictions, run, observed),
        *(_against_repair(header, fixed) if fixed is not None else ()),
    ]
    verdict = Verdict(
        fixture=fixture,
        status=Status.LATENT if header.outcome is Outcome.LATENT else Status.CONFIRMED,
        observed=observed,
        notes=tuple(_notes(fixture, predictions, run, observed)),
        predictions=tuple(predictions),
        run=run,
        triggered=triggered,
        fixed=fixed,
    )
    return replace(verdict, status=Status.REFUTED, reasons=tuple(reasons)) if reasons else verdict


def _named(header: Header, run: Observation, triggered: Observation | None) -> Outcome:
    """The observed outcome, in words that a single run cannot say: those that a measure or a trigger shows."""
    if run.outcome is not Outcome.OK:
        return run.outcome
    if header.outcome in (Outcome.WRONG_DEVICE, Outcome.COST):
        return header.outcome if header.measure and not unmet(header.measure, run.measured) else Outcome.OK
    if header.outcome is Outcome.LATENT and triggered is not None and triggered.outcome.fails:
        return Outcome.LATENT
    return Outcome.OK


def _against_header(header: Header, run: Observation, triggered: Observation | None) -> Iterator[str]:
    wanted = header.outcome if header.outcome.fails else Outcome.OK
    if run.outcome is not wanted and (header.also is None or run.outcome is not header.also):
        yield f"the header says {header.outcome.value}, observed {run.summary}: {run.said}".rstrip(": ")
    if header.message is not None:
        runs = [one for one in (run, triggered) if one is not None]
        if all(one.quote(header.message) is None for one in runs):
            yield f"no {header.message!r} in the output; it said {run.said!r}"
    if header.measure is not None and run.outcome is Outcome.OK:
        complaint = unmet(header.measure, run.measured)
        if complaint:
            yield complaint
    if header.outcome is Outcome.LATENT and (triggered is None or not triggered.outcome.fails):
        yield "the variant in trigger did not fail"
    for observation in (run, triggered):
        if observation is not None and observation.survivors:
            yield f"processes that cannot be killed: {', '.join(map(str, observation.survivors))}"
        yield from observation.spoiled if observation is not None else ()


def _against_predictions(
    fixture: Fixture, predictions: Sequence[Prediction], run: Observation, observed: Outcome
) -> Iterator[str]:
    harmful = observed.fails or observed is Outcome.WRONG_DEVICE
    if any(prediction.code in UNREADABLE for prediction in predictions):
        yield "cudalint could not analyse it"
        return
    errors = [prediction for prediction in predictions if prediction.severity is Severity.ERROR]
    if errors and not harmful and observed is not Outcome.LATENT:
        named = ", ".join(map(str, errors))
        yield f"an error was predicted ({named}), and the program ends well"
    if harmful and not fixture.known_misses and all(one.severity is Severity.NOTE for one in predictions):
        said = "only a note says something of it" if predictions else "nothing was predicted"
        yield f"{said}, and the program ends with {run.summary}"


def _against_repair(header: Header, fixed: Observation) -> Iterator[str]:
    """A repaired program must end well, with its trigger too, and on the right device."""
    if fixed.outcome is not Outcome.OK:
        yield f"repaired, it ends with {fixed.summary}: {fixed.said}".rstrip(": ")
    elif header.outcome is Outcome.WRONG_DEVICE and header.measure and not unmet(header.measure, fixed.measured):
        yield f"repaired, it still shows {header.measure}"
    yield from fixed.spoiled


def _notes(fixture: Fixture, predictions: Sequence[Prediction], run: Observation, observed: Outcome) -> Iterator[str]:
    if fixture.known_misses and not predictions:
        yield f"a known miss: {', '.join(sorted(fixture.known_misses))}"
    said = {prediction.outcome for prediction in predictions if prediction.severity is Severity.ERROR}
    if said and (observed.fails or observed is Outcome.WRONG_DEVICE) and observed.value not in said:
        yield f"predicted {', '.join(sorted(str(outcome) for outcome in said))}, observed {observed.value}"
    if run.left_behind:
        yield f"left {run.left_behind} processes behind"
