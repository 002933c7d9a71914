"""``cudalint --verify --models``: what was recorded of expressions against what a machine shows."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from marked_processes import alive, started

from cudalint.hosts.cli import main
from cudalint.verify import Format, facts, verify_models
from cudalint.verify.evidence import this_place
from cudalint.verify.facts.claims import Claim, claim
from cudalint.verify.facts.compare import Measured
from cudalint.verify.facts.recorded import Expression, Framework, chosen
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


def test_what_was_never_measured_is_told_and_is_no_difference() -> None:
    one = Measured("torch", Expression("torch.fresh()"), {**SEEN, "in_child_symptom": "x"}, AGREED)
    assert one.differences == ()
    place = this_place(Gpus((Gpu(0, "NVIDIA H200", 1),), "580"))
    told = render([one], place, Format.TABLE, 1.0)
    assert told.startswith(
        "Nothing was recorded of:\n  torch: torch.fresh(): a child that uses CUDA afterwards fails ("
    )
    assert "initialises CUDA: no; in a child of a CUDA parent: ok (x)" in told
    assert "1 expressions: 0 as recorded, 0 differ, 1 new, 0 not run" in told


def test_models_are_asked_about_the_very_expression() -> None:
    (torch,) = chosen(["torch"])
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
    found = facts.measure(Gpus((Gpu(0, "none", 80000),)), chosen(["numba"])).expressions
    selected = next(one for one in found if one.expression.text == "cuda.select_device(0)")
    assert "a child that uses CUDA afterwards works (ok), recorded: fails" in selected.differences


ONE_GPU = Gpus((Gpu(0, "none", 80000),))
# "C" is made by who used CUDA before the fork.
OWN = Framework(
    name="own",
    setup="import os, subprocess, time",
    use="assert 'C' not in globals()",
    inherit="C = 1",
    hangs=True,
    expressions=(
        Expression("'C' in globals() and (subprocess.Popen(['sleep', '99']), time.sleep(99))", False, in_child="hang"),
        Expression("'C' in globals() and os.abort()", poisons=False, in_child="fails"),
        Expression("globals().update(C=1)", poisons=True, in_child="ok", symptom="AssertionError"),
        Expression("print('y' * 100000)", poisons=False, in_child="ok"),
        Expression("os.abort()", poisons=False),
        Expression("2", poisons=False, in_child="hang"),
        Expression("3", gpus=2, poisons=False),
    ),
)


def test_expressions_that_crash_or_hang_leave_nobody_and_stop_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(facts, "_HANG_SECONDS", 3.0)  # a busy machine may take a second for what takes no time
    lines: list[str] = []
    found = facts.measure(ONE_GPU, [OWN], say=lines.append, environment={"MARK": str(tmp_path)}).expressions
    assert alive(f"MARK={tmp_path}") == []
    hangs, aborts, poisons, prints, dies, differs, needs = found
    assert [one.differences for one in (hangs, aborts, poisons, prints)] == [(), (), (), ()]
    assert [one.why_not for one in (hangs, aborts, poisons, prints)] == ["", "", "", ""]
    assert dies.why_not == "could not be measured: aborted"
    assert differs.differences == ("in a child of a CUDA parent: ok (ok), recorded: hang",)
    assert needs.why_not == "needs more GPUs"
    (told,) = lines
    assert told.startswith("own: imported in ")
    assert "6 expressions, each a hang after" in told


def test_a_framework_that_cannot_use_a_gpu_says_why() -> None:
    """As torch for the CPU, and as JAX, which would take the CPU silently."""
    raises = Framework(
        "raises", "", "raise AssertionError('not compiled with CUDA')", (Expression("1", poisons=False),)
    )
    falls_back = Framework("falls_back", "", "pass", (Expression("1", poisons=False),), check="1 > 2")
    found = facts.measure(ONE_GPU, [raises, falls_back]).expressions
    assert [one.why_not for one in found] == [
        "no GPU can be used here: AssertionError: not compiled with CUDA",
        "no GPU can be used here: it finds no GPU",
    ]


def test_words_choose_frameworks_and_expressions() -> None:
    def texts(*words: str) -> list[str]:
        return [expression.text for framework in chosen(words) for expression in framework.expressions]

    assert texts("torch.cuda.init", "GradScaler") == [
        "torch.cuda.init()",
        "torch.cuda.amp.GradScaler()",
        'torch.amp.GradScaler("cuda")',
    ]
    (numba,) = chosen(["numba"])
    assert len(numba.expressions) == len(next(one for one in chosen([]) if one.name == "numba").expressions)


def test_an_unknown_word_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--verify", "--models", "trch"]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "'trch' is no framework (torch, cupy, " in err
    assert err.endswith("(did you mean 'torch'?)\n")


def test_an_interruption_ends_all_and_shows_what_was_measured(tmp_path: Path) -> None:
    # Slow, so that not all is measured where this process has to wait for its turn.
    environment = {**os.environ, "MARK": str(tmp_path), "PAPER_SLOWNESS": "0.3"}
    command = [sys.executable, "-m", "cudalint", "--verify", "--paper", "--models", "torch.cuda"]
    with started(command, env=environment) as process:
        assert process.stderr is not None
        while "/" not in process.stderr.readline():  # the first that says how far it is
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert alive(f"MARK={tmp_path}") == []
    assert (process.returncode, err.splitlines()[-1]) == (
        2,
        "cudalint: error: interrupted: what had been measured is shown",
    )
    assert "(interrupted)" in out
    assert ": 0 as recorded" not in out


def test_no_gpu_is_one_line() -> None:
    out, err = io.StringIO(), io.StringIO()
    assert verify_models(gpus_available=(), out=out, err=err) == 2
    said = "cudalint: error: no GPU was found (--paper needs none): nothing was measured\n"
    assert (out.getvalue(), err.getvalue()) == ("", said)


@pytest.mark.parametrize("framework", chosen([]), ids=lambda framework: framework.name)
def test_the_models_say_what_was_measured(framework: Framework) -> None:
    """On both sides of the fork; what always raises says nothing about them."""
    asked = [one for one in framework.expressions if not one.raises and not one.is_new]
    seen = {
        one.text: {"poisons": one.poisons, "in_child": one.in_child, "symptom": "", "in_child_symptom": ""}
        for one in asked
    }
    said = [Measured(framework.name, one, seen[one.text], claim(framework, one)) for one in asked]
    assert [(one.expression.text, *one.contradictions) for one in said if one.contradictions] == []
