"""The oracle: what cudalint says about generated programs is what paper CUDA shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from oracle import hardware, homes, launch, loader, methods, parent, values, work
from oracle.grammar import draw
from oracle.render import render
from oracle.runner import LIMIT, QUIET, Case, foretold, judge_all, on_paper
from oracle.verdict import Said, disagreement, outcome_of
from paper.plugin import Unchanged
from paper.run import STUBS
from paper.watch import watched

from cudalint.verify.gpus import Gpus

FIRST, CHUNKS, CHUNK = 20_000, 20, 10
JOBS = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2


def _told(case: Case) -> str:
    said = "; ".join(map(str, case.said)) or "nothing"
    return (
        f"seed {case.seed}: {case.complaint}; observed {case.outcome}, said {said}\n{case.text}\n{case.output[-2000:]}"
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_do_what_cudalint_says(chunk: int, unchanged: Unchanged) -> None:
    """A program misbehaves where there is an error-level finding whose code fits, and nowhere else."""
    first = FIRST + chunk * CHUNK
    known = {str(seed): foretold(seed) for seed in range(first, first + CHUNK)}
    texts = {seed: text for seed, (text, _) in known.items()}
    if unchanged(texts, ("oracle.runner",), {seed: list(map(str, said)) for seed, (_, said) in known.items()}):
        return
    wrong = [case for case in judge_all(range(first, first + CHUNK), JOBS) if case.complaint is not None]
    assert not wrong, "\n\n".join(map(_told, wrong))


def test_programs_are_python() -> None:
    """Every program compiles, and a seed always gives the same one."""
    for seed in range(200):
        text = render(draw(seed), seed)
        compile(text, f"program_{seed}.py", "exec")
        assert text == render(draw(seed), seed)


def test_every_choice_occurs() -> None:
    """No law of the grammar shuts a choice out."""
    drawn = [draw(seed) for seed in range(3000)]
    axes = {
        "touch": parent.TOUCHES,
        "place": parent.PLACES,
        "launcher": launch.LAUNCHERS,
        "library": methods.LIBRARIES,
        "chosen": methods.CHOSEN,
        "home": (*homes.HOMES, *loader.HOMES),
        "work": work.WORKS,
        "channel": values.CHANNELS,
        "form": values.FORMS,
        "handling": values.HANDLINGS,
    }
    for axis, choices in axes.items():
        assert {getattr(choice, axis) for choice in drawn} == set(choices), axis


def test_a_hang_is_noticed(tmp_path: Path) -> None:
    """A program in which nothing moves any more is ended long before its limit."""
    program = tmp_path / "program.py"
    program.write_text("import threading\n\nthreading.Event().wait()\n")
    seen = watched(program, 0.4, on_paper)
    assert seen.outcome == "hang"
    assert seen.seconds < LIMIT / 2


@pytest.mark.parametrize(
    ("outcome", "output", "said", "complaint"),
    [
        ("ok", "", [], None),
        ("ok", "", [Said("CUD201", False, 1)], None),
        ("ok", "", [Said("CUD101", True, 1)], "false alarm: CUD101"),
        ("crash", "Cannot re-initialize CUDA in forked subprocess", [Said("CUD101", True, 1)], None),
        ("crash", "Cannot re-initialize CUDA in forked subprocess", [], "missed: crash"),
        ("crash", "Cannot re-initialize CUDA in forked subprocess", [Said("CUD305", True, 1)], "wrong code: crash"),
        ("hang", "", [Said("CUD301", False, 1)], "missed: hang (only warned: CUD301)"),
        ("hang", "", [Said("CUD301", True, 1)], None),
        ("wrong-device", "worker device: cpu", [Said("CUD101", False, 1)], None),
        ("wrong-device", "worker device: cpu", [Said("CUD201", False, 1)], "wrong code: wrong-device"),
    ],
)
def test_verdict(outcome: str, output: str, said: list[Said], complaint: str | None) -> None:
    """Misbehaviour asks for an error that fits, a caught failure for any finding that does."""
    found = disagreement(outcome, output, said)
    assert found == complaint or (complaint is not None and found is not None and found.startswith(complaint))


def test_wrong_device() -> None:
    """A worker that meant the GPU and was on the CPU."""
    assert outcome_of("ok", "worker device: cuda\nworker device: cpu\n") == "wrong-device"
    assert outcome_of("ok", "worker device: cuda\n") == "ok"
    assert outcome_of("crash", "worker device: cpu\n") == "crash"


def test_a_sample_on_hardware_is_compared_with_paper_and_linter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample runs wherever the frameworks are; here the stubs take their place, and so paper must agree."""
    monkeypatch.syspath_prepend(str(STUBS))
    monkeypatch.setenv("PYTHONPATH", str(STUBS))
    monkeypatch.setenv("PAPER_SLOWNESS", "0.1")
    monkeypatch.setattr(hardware, "QUIET", QUIET)
    measured = list(hardware.sample(range(FIRST, FIRST + 2), Gpus(), jobs=1))
    told = hardware.summary(measured, FIRST, Gpus(), 1.0)
    assert (told["count"], told["ran"], told["linter agrees"], told["paper agrees"]) == (2, 2, 2, 2)
    late = list(hardware.sample([FIRST], Gpus(), jobs=1, budget=-1.0))
    assert [one.why_not for one in late] == ["the budget was spent"]
