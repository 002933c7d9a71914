"""``cudalint --verify --models``: what was recorded of expressions against what a machine shows."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from cudalint.verify import Format, facts, verify_models
from cudalint.verify.evidence import this_place
from cudalint.verify.facts.claims import Claim, claim
from cudalint.verify.facts.compare import Measured
from cudalint.verify.facts.recorded import Expression, frameworks
from cudalint.verify.facts.report import render
from cudalint.verify.gpus import Gpu, Gpus

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")

ASKS = Expression("torch.cuda.is_available()", poisons=True, initialises=False, in_child="ok", symptom="Cannot")
AGREED = Claim(poisons=True, in_child=False)
SEEN = {"poisons": True, "symptom": "RuntimeError: Cannot re-initialize", "initialises": False, "in_child": "ok"}


def measured(claimed: Claim = AGREED, why_not: str = "", **seen: object) -> Measured:
    return Measured("torch", ASKS, {**SEEN, "in_child_symptom": "x", **seen}, claimed, why_not)


@pytest.mark.parametrize(
    ("one", "differs", "contradicted"),
    [
        (measured(), "", ""),
        (
            measured(poisons=False, symptom="ok"),
            "afterwards works (ok), recorded: fails",
            "works, the models say it fails",
        ),
        (measured(symptom="something else"), "says 'something else', recorded: 'Cannot'", ""),
        (measured(initialises=True), "initialises CUDA: yes, recorded: no", ""),
        (
            measured(in_child="hang"),
            "in a child of a CUDA parent: hang (x), recorded: ok",
            "fails, the models say it works",
        ),
        (measured(raised="ValueError: no"), "raised ValueError: no", ""),
        (measured(Claim(poisons=False, in_child=False)), "", "fails, the models say it works"),
        (measured(why_not="torch is not installed", poisons=False), "", ""),
    ],
)
def test_what_differs_is_told(one: Measured, differs: str, contradicted: str) -> None:
    assert differs in "".join(one.differences)
    assert bool(differs) == bool(one.differences)
    assert contradicted in "".join(one.contradictions)
    assert bool(contradicted) == bool(one.contradictions)


def test_the_report_names_what_differs_and_counts() -> None:
    place = this_place(Gpus((Gpu(0, "NVIDIA H200", 1),), "580"))
    told = render([measured(), measured(poisons=False), measured(why_not="gone")], place, Format.TABLE, 1.0)
    assert told.splitlines()[0] == "Differs from what is recorded:"
    assert "  torch: torch.cuda.is_available(): a child that uses CUDA afterwards works" in told
    assert "not run: 1 (gone)" in told
    assert "3 expressions: 1 as recorded, 1 differ, 1 not run; the models agree with this machine on 1 of 2" in told


def test_models_are_asked_about_the_very_expression() -> None:
    (torch,) = frameworks(["torch"])
    known = {expression.text: expression for expression in torch.expressions}
    assert claim(torch, known["torch.cuda.is_available()"]) == AGREED
    assert claim(torch, known["torch.cuda.device_count()"]) == Claim(poisons=False, in_child=False)
    assert claim(torch, known["torch.cuda.init()"]) == Claim(poisons=True, in_child=True)


def test_what_is_not_installed_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ModuleNotFoundError('x', name='numba')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out, err = io.StringIO(), io.StringIO()
    gpus = [Gpu(0, "none", 80000)]
    assert verify_models(["numba"], gpus_available=gpus, output_format=Format.JSON, out=out, err=err) == 2
    assert {one["not run"] for one in json.loads(out.getvalue())["expressions"]} == {"numba is not installed"}
    assert "nothing could be measured here" in err.getvalue()


def test_a_framework_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A numba that never minds a fork: everything recorded as poisoning differs."""
    harmless = (
        "class cuda:\n    def __getattr__(self, name): return lambda *given: self\n    __call__ = __len__ = None\n"
    )
    (tmp_path / "numba.py").write_text(f"{harmless}cuda = cuda()\n")
    (tmp_path / "numpy.py").write_text("def ones(n): return n\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = facts.measure(Gpus((Gpu(0, "none", 80000),)), ["numba"]).expressions
    selected = next(one for one in found if one.expression.text == "cuda.select_device(0)")
    assert "a child that uses CUDA afterwards works (ok), recorded: fails" in selected.differences
