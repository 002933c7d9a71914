"""The oracle for repairs: after a safe one a program prints what its author meant; any other says what differs."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from oracle import fix_grammar, inherited, methods
from oracle.fix_grammar import Broken, draw_broken, legal
from oracle.fix_render import PROGRAM, Files, Variant, render_broken
from oracle.fix_report import table, text
from oracle.fix_runner import Judged, judge_broken, judge_repairs, prepared, repair, run_files
from oracle.fix_shrink import PLAIN, shrink_repair
from oracle.fixes import (
    BROKEN,
    CARRIED,
    CAUTIOUS,
    CHANGED,
    UNNAMED,
    WORKED,
    Complaint,
    Grade,
    Repair,
    Runs,
    complaint,
    differing,
)
from oracle.states import STATES
from paper.plugin import Unchanged
from paper.run import Observed

FIRST, CHUNKS, CHUNK = 70_000, 4, 8
JOBS = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2

SIMPLE = Broken(
    states=("class_attribute",),
    placed="inline",
    state_first=True,
    touch="init",
    touched_at="inline",
    launcher="pool_map",
    library="mp",
    chosen="default",
    home="function",
    channel="return",
    crossing="none",
    argument="number",
    result="pairs",
    framed=True,
    size=1,
    with_block=True,
    single=True,
)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_repairs_keep_what_programs_print_or_say_what_differs(chunk: int, unchanged: Unchanged) -> None:
    first = FIRST + chunk * CHUNK
    known = {seed: prepared(seed) for seed in range(first, first + CHUNK)}
    texts = {
        f"{seed} {what} {name}": text
        for seed, (variants, _) in known.items()
        for what, files in variants.items()
        for name, text in files.items()
    }
    said = {str(seed): [made.grade.value, *made.reasons] for seed, (_, made) in known.items()}
    if unchanged(texts, ("oracle.fix_runner",), said):
        return
    wrong = [case for case in judge_repairs(range(first, first + CHUNK), JOBS) if case.complaint is not None]
    assert not wrong, "\n\n".join(map(text, wrong))


# -- programs ------------------------------------------------------------------------------------------------


def test_programs_are_python() -> None:
    """Every file compiles, and a seed always gives the same ones."""
    for seed in range(300):
        for variant in (Variant(), Variant(launched=False), Variant(touched=False)):
            files = render_broken(draw_broken(seed), seed, variant)
            for name, content in files.items():
                compile(content, f"{seed}_{name}", "exec")
            assert files == render_broken(draw_broken(seed), seed, variant)


def test_no_exception_leaves_a_pool_open() -> None:
    """Python says of such a pool that it can hang its program as that ends: no repair is to blame."""
    choice = replace(SIMPLE, with_block=False, crossing="value")
    assert legal(choice)
    text = render_broken(choice, 1)[PROGRAM]
    assert re.search(r"finally:\n +pool\.close\(\)\n +pool\.join\(\)", text)
    assert "finally" not in render_broken(replace(choice, crossing="none"), 1)[PROGRAM]


def test_every_choice_occurs() -> None:
    """No law of the grammar shuts a choice out, and every kind of state is met alone."""
    axes = {
        "placed": inherited.PLACES,
        "touch": fix_grammar.TOUCHES,
        "touched_at": fix_grammar.TOUCHED_AT,
        "launcher": fix_grammar.LAUNCHERS,
        "library": methods.LIBRARIES,
        "chosen": fix_grammar.CHOSEN,
        "home": fix_grammar.HOMES,
        "channel": fix_grammar.CHANNELS,
        "crossing": fix_grammar.CROSSINGS,
        "argument": fix_grammar.ARGUMENTS,
        "result": fix_grammar.RESULTS,
        "made_in": fix_grammar.MADE_IN,
    }
    wanted = {(axis, choice) for axis, choices in axes.items() for choice in choices}
    wanted |= {("states", (name,)) for name in STATES} | {("states", "two of them")}
    # As many seeds as it takes, of so many: each costs a millisecond.
    for choice in map(draw_broken, range(4000)):
        found = {(axis, getattr(choice, axis)) for axis in axes}
        assert all(chosen in axes[axis] for axis, chosen in found)
        wanted -= found | {("states", choice.states if len(choice.states) == 1 else "two of them")}
        if not wanted:
            break
    assert wanted == set()


def test_kinds_of_state_share_no_name() -> None:
    """Two of them may stand in one program."""
    names: Counter[str] = Counter()
    for kind in STATES.values():
        for place, lines in (("program", kind.top), ("settings", kind.settings)):
            names.update({f"{place}.{name}" for name in _bound(ast.parse("\n".join(lines)))})
    assert [name for name, count in names.items() if count > 1] == []


def _bound(module: ast.Module) -> set[str]:
    found = {node.name for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assigned = [target for node in module.body if isinstance(node, ast.Assign) for target in node.targets]
    return found | {target.id for target in assigned if isinstance(target, ast.Name)}


# -- kinds of state ------------------------------------------------------------------------------------------

BATCHES = 12  # neighbours, which may be about the same setting, lie in different programs
FRAIL = "global_only_in_main"  # without it a worker fails, and nothing can be read of the others


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_forked_worker_has_what_its_parent_set_and_a_fresh_one_has_not(batch: int, unchanged: Unchanged) -> None:
    """Without CUDA in the parent fork prints what the loop prints, and spawn differs in what is inherited."""
    names = tuple(name for name in STATES if name != FRAIL and not STATES[name].stays)[batch::BATCHES]
    choice = replace(SIMPLE, states=names)
    looped = render_broken(choice, batch, Variant(launched=False, touched=False))
    files = render_broken(choice, batch, Variant(touched=False))
    variants = {"loop": looped, "fork": files, "spawn": _by_spawn(files)}
    texts = {f"{what} {name}": text for what, made in variants.items() for name, text in made.items()}
    if unchanged(texts, ("oracle.fix_runner",), {name: STATES[name].inherited for name in names}):
        return
    loop, forked, fresh = map(run_files, variants.values())
    assert [(run.outcome, run.gaps) for run in (loop, forked, fresh)] == [("ok", ())] * 3
    assert forked.stdout == loop.stdout
    assert set(differing(choice, loop.stdout, fresh.stdout)) == {name for name in names if STATES[name].inherited}


@pytest.mark.parametrize("name", [name for name in STATES if STATES[name].stays])
def test_what_a_worker_leaves_a_loop_would_find(name: str, unchanged: Unchanged) -> None:
    """Its worker's process is gone, however it was started."""
    choice = replace(SIMPLE, states=(name,))
    looped = render_broken(choice, 0, Variant(launched=False, touched=False))
    files = render_broken(choice, 0, Variant(touched=False))
    variants = {"loop": looped, "fork": files, "spawn": _by_spawn(files)}
    if unchanged(
        {f"{what} {f}": t for what, made in variants.items() for f, t in made.items()}, ("oracle.fix_runner",)
    ):
        return
    loop, forked, fresh = map(run_files, variants.values())
    assert [(run.outcome, run.gaps) for run in (loop, forked, fresh)] == [("ok", ())] * 3
    assert differing(choice, loop.stdout, forked.stdout) == (name,)
    assert differing(choice, loop.stdout, fresh.stdout) == (name,)


def _by_spawn(files: Files) -> Files:
    changed = files[PROGRAM].replace("mp.Pool(", 'mp.get_context("spawn").Pool(')
    assert changed != files[PROGRAM]
    return {**files, PROGRAM: changed}


def _ended_early(*arguments: str, by: signal.Signals | None = None) -> tuple[int, str]:
    """The end of a run over more seeds than it comes to: by a signal a while after it began, or by itself."""
    command = [sys.executable, "-m", "oracle", "--fixes", "--seed", str(FIRST), "--jobs", "1", *arguments]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as run:
        if by is not None:
            assert run.stdout is not None
            assert run.stdout.readline() == f"from seed {FIRST}\n"
            time.sleep(2)
            run.send_signal(by)
        output, _ = run.communicate(timeout=120)
    return run.returncode, output


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, None], ids=str)
def test_a_run_that_is_ended_early_tells_of_which_seeds_its_counts_are(by: signal.Signals) -> None:
    bound = ["--budget", "3"] if by is None else []
    status, output = _ended_early("--count", "2000", *bound, by=by)
    told = re.search(r"^(\d+) programs repaired(?: \(seeds (\d+) to (\d+)\))?: ", output, re.MULTILINE)
    assert told is not None, output
    judged = int(told[1])
    assert (told[2] is None) == (judged == 0)
    if judged:
        assert (int(told[2]), int(told[3])) == (FIRST, FIRST + judged - 1)
    assert f"the first without an answer is seed {FIRST + judged}\n" in output
    assert status == 130 if by is not None else status in (0, 1)


# -- judgement -----------------------------------------------------------------------------------------------


def test_a_planted_repair_is_judged_by_what_its_program_prints() -> None:
    wrong = judge_broken(SIMPLE, 1, lambda files: Repair(Grade.SAFE, _by_spawn(files)))
    assert wrong.complaint is not None
    assert (wrong.complaint.what, wrong.complaint.kinds) == (CHANGED, ("class_attribute",))
    assert wrong.runs.as_it_is.outcome == "crash"
    assert "class_attribute" in "\n".join(table([wrong]))
    assert "# a 3" in text(wrong)
    silent = Repair(Grade.UNSAFE, wrong.repair.files, ("a fresh process starts slower",))
    assert str(complaint(SIMPLE, silent, wrong.runs)) == f"{UNNAMED}: class_attribute"
    told = replace(silent, reasons=("the worker reads `Cfg.scale`, which the program changes",))
    assert complaint(SIMPLE, told, wrong.runs) is None
    useless = replace(wrong.runs, repaired=wrong.runs.as_it_is)
    assert BROKEN in str(complaint(SIMPLE, wrong.repair, useless))
    assert BROKEN in str(complaint(SIMPLE, told, useless))


def test_a_planted_repair_that_changes_nothing_is_right() -> None:
    choice = replace(SIMPLE, states=("constant",))
    right = judge_broken(choice, 2, lambda files: Repair(Grade.SAFE, _by_spawn(files)))
    assert right.complaint is None
    assert str(complaint(choice, replace(right.repair, grade=Grade.UNSAFE), right.runs)) == f"{CAUTIOUS}: constant"
    caught = replace(choice, crossing="any")
    works = replace(right.runs, as_it_is=right.runs.reference)
    assert str(complaint(caught, right.repair, works)) == WORKED
    assert complaint(caught, Repair(Grade.NONE, right.files), works) is None
    assert "not broken" in str(complaint(choice, right.repair, works))


def test_a_safe_repair_of_what_tasks_leave_to_each_other_is_wrong_whatever_is_printed() -> None:
    ended = Observed("ok", 0, "a 1\n", "", 0.0)
    runs = Runs(replace(ended, outcome="crash"), ended, ended)
    shared = replace(SIMPLE, states=("left_mode",), size=2, single=False)
    assert legal(shared)
    assert not legal(replace(shared, single=True))
    assert str(complaint(shared, Repair(Grade.SAFE, {}), runs)) == f"{CARRIED}: left_mode"
    assert complaint(shared, Repair(Grade.UNSAFE, {}, ("set by `eval`",)), runs) is None


def test_repairs_come_from_cudalint() -> None:
    """Safe as --fix leaves the program, otherwise as --unsafe-fixes does, with all that is said against it."""
    safe = repair(render_broken(replace(SIMPLE, states=("constant",)), 3))
    assert (safe.grade, safe.reasons) == (Grade.SAFE, ())
    assert 'get_context("spawn")' in safe.files[PROGRAM]
    unsafe = repair(render_broken(replace(SIMPLE, states=("list_filled",)), 3))
    assert unsafe.grade is Grade.UNSAFE
    assert "NAMES" in " ".join(unsafe.reasons)
    assert 'get_context("spawn")' in unsafe.files[PROGRAM]
    none = repair({PROGRAM: "print(1)\n"})
    assert (none.grade, dict(none.files)) == (Grade.NONE, {PROGRAM: "print(1)\n"})


def test_a_complaint_shrinks_to_the_state_it_is_about() -> None:
    """Every axis goes to its plainest choice as long as the same is wrong."""
    ended = Observed("ok", 0, "", "", 0.0)

    def judge(choice: Broken, seed: int) -> Judged:
        files = render_broken(choice, seed)
        wrong = Complaint(CHANGED if "class Tables:" in files[PROGRAM] else UNNAMED, ())
        return Judged(seed, choice, files, Repair(Grade.SAFE, files), Runs(ended, ended, ended), wrong)

    large = next(c for c in map(draw_broken, range(9000)) if "class_table" in c.states and len(c.states) == 2)
    small = shrink_repair(judge(large, 0), judge).choice
    assert small.states == ("class_table",)
    assert legal(small)
    assert {axis: getattr(small, axis) for axis in PLAIN} == {axis: values[0] for axis, values in PLAIN.items()}


def test_an_exception_tells_of_each_state_by_itself() -> None:
    choice = replace(SIMPLE, states=("torch_draw", "dict_filled"), size=2, crossing="own")
    assert differing(choice, "caught total 4.0 a 0.6 b 3\n", "caught total 4.0 a 0.3 b 3\n") == ("torch_draw",)
