"""Entries in several processes: the results of one, and nobody left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cudalint.config import load
from cudalint.found import Report
from cudalint.machine.assumptions import Assumption
from cudalint.machine.interpreter import Host
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.machine.questions import Either
from cudalint.machine.trace import Site, TraceStep
from cudalint.project import cores, running, workers
from cudalint.project.entry_result import EntryResult, as_row, from_row
from cudalint.project.groups import Group, GroupResult
from cudalint.project.layout import Layout
from cudalint.project.reads import News, Reads
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Session
from cudalint.store import Store
from cudalint.structs import replace

MODULES = 14
# Each launcher calls that of the next module, so that whoever runs first decides which others are run at all.
MODULE = """\
import multiprocessing

import torch

from lib import m{following}


def work(n):
    return torch.ones(n, device="cuda")


def launch_{number}(n):
    torch.cuda.is_available()
    with multiprocessing.Pool(2) as pool:
        pool.map(work, [n])
    if n > {number}:
        m{following}.launch_{following}(n)


if __name__ == "__main__":
    launch_{number}({number})
"""
BROKEN = "import torch\nimport multiprocessing\n\n\ndef launch(:\n    multiprocessing.Pool()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Modules that lead to each other in a circle, half of them with a main guard, and one that is not Python."""
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.cudalint]\n", encoding="utf-8")
    (folder / "lib" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "lib" / "broken.py").write_text(BROKEN, encoding="utf-8")
    for number in range(MODULES):
        text = MODULE.format(number=number, following=(number + 1) % MODULES)
        text = text if number % 2 else text.partition("\n\nif __name__")[0] + "\n"
        (folder / "lib" / f"m{number}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[Group]:
    """Processes are started for any amount of work; gives the groups whose results came from one."""
    taken: list[Group] = []
    original = workers.Workers.result

    def result(self: workers.Workers, group: Group, reached: set[tuple[str, int]]) -> GroupResult | None:
        found = original(self, group, reached)
        if found is not None:
            taken.append(group)
        return found

    monkeypatch.setattr(running, "MOST_ALONE", 0)
    monkeypatch.setattr(workers, "LEAST_GROUPS", 2)
    monkeypatch.setattr(workers.Workers, "result", result)
    return taken


def check(folder: Path, jobs: int, store: Store | None = None) -> Report:
    config = replace(load((str(folder),)), jobs=jobs)
    return Session(config, store).check((str(folder),), repair=False)


def shown(report: Report, folder: Path) -> str:
    return render(report, OutputFormat.JSON, Style(False, str(folder)))


def children(of: int | str = "self") -> set[str]:
    found: set[str] = set()
    for task in Path(f"/proc/{of}/task").iterdir():
        with contextlib.suppress(OSError):  # threads come and go
            found.update((task / "children").read_text().split())
    return found


def slow_head(monkeypatch: pytest.MonkeyPatch, taken: list[Group]) -> None:
    """Give the others time: this process begins its first group only when one of theirs is done."""
    original = workers.Workers.offer

    def offer(self: workers.Workers, *given: object) -> None:
        original(self, *given)  # type: ignore[arg-type]
        if not taken:
            assert eventually(lambda: self._done or self.lost or not self._threads)

    monkeypatch.setattr(workers.Workers, "offer", offer)


def test_results_do_not_depend_on_the_number_of_processes(
    project: Path, at_once: list[Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = check(project, 1)
    assert not at_once
    assert {finding.code for finding in alone.findings} >= {"CUD101", "CUD901"}
    before = children()
    slow_head(monkeypatch, at_once)
    for jobs in (2, 3):
        at_once.clear()
        shared = check(project, jobs)
        assert at_once, "other processes took part"
        assert shown(shared, project) == shown(alone, project)
        assert shared.notes == alone.notes
        assert (shared.effort.entries, shared.effort.functions) == (alone.effort.entries, alone.effort.functions)
    assert children() == before, "none is left, dead or alive"


def test_what_others_found_is_kept_as_if_it_were_found_here(
    project: Path, at_once: list[Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_head(monkeypatch, at_once)
    store = Store(str(tmp_path / "cache"), b"secret" * 6)
    first = check(project, 2, store)
    assert at_once
    at_once.clear()
    text = (project / "lib" / "m3.py").read_text(encoding="utf-8")
    (project / "lib" / "other.py").write_text("x = 1\n", encoding="utf-8")
    (project / "lib" / "m3.py").write_text(text + "\n# a comment\n", encoding="utf-8")
    again = check(project, 1, store)
    assert shown(again, project) == shown(first, project) == shown(check(project, 1), project)


def test_what_a_process_that_dies_was_at_runs_elsewhere(
    project: Path, at_once: list[Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = check(project, 1)
    slow_head(monkeypatch, at_once)
    asked: list[int] = []
    original = workers._Worker.ask

    def ask(self: workers._Worker, job: workers.Job) -> bytes:
        asked.append(self.process.pid)
        if len(asked) == 2:
            os.kill(self.process.pid, signal.SIGKILL)
        return original(self, job)

    monkeypatch.setattr(workers._Worker, "ask", ask)
    shared = check(project, 2)
    assert len(asked) == 2
    assert shown(shared, project) == shown(alone, project)
    assert "ended before its time" in " ".join(set(shared.notes) - set(alone.notes))


def test_without_an_interpreter_everything_runs_here(
    project: Path, at_once: list[Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = check(project, 1)
    monkeypatch.setattr(sys, "executable", str(project / "missing"))
    assert shown(check(project, 3), project) == shown(alone, project)
    assert not at_once


SCRIPT = """\
import sys, time
from cudalint import api
from cudalint.project import running, workers
running.MOST_ALONE, workers.LEAST_GROUPS = 0, 2
print("begins", flush=True)
print(len(api.check([sys.argv[1]], api.Options(jobs=3), repair=False).findings))
"""


def test_a_script_needs_no_main_guard(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(SCRIPT, encoding="utf-8")
    # Neither the folder that is checked nor the current one gives a worker its modules.
    for name in ("marshal", "pickle", "queue", "libcst"):
        (project / f"{name}.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(project)], capture_output=True, text=True, cwd=project, check=True
    )
    assert done.stdout.split()[0] == "begins"
    assert done.stdout.count("begins") == 1
    assert int(done.stdout.split()[1]) == len(check(project, 1).findings)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_who_interrupts_a_run_leaves_nobody_behind(project: Path, tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "unguarded.py"
    # It would take minutes. What interrupts Python's own start, or an import of its, may get lost; and what comes while
    # a thread waits for its turn (for the GIL) is noticed after the call that it makes next, so that calls are short.
    waits = tmp_path / "waits"
    wait = f"lambda *a: (open({str(waits)!r}, 'w').close(), [time.sleep(0.05) for _ in range(12_000)])"
    script.write_text(SCRIPT.replace("print(len", f"running.Runner._entries = _ = {wait}\nprint(len"))
    run = subprocess.Popen(
        [sys.executable, str(script), str(project)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert eventually(lambda: waits.exists() and bool(children(run.pid)))
        if number is signal.SIGINT:
            os.killpg(run.pid, number)
        else:
            run.send_signal(number)
        run.wait(timeout=60)
        assert eventually(lambda: not alive(run.pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(holds: object) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if callable(holds) and holds():
            return True
        time.sleep(0.02)
    return False


def test_what_an_entry_gave_crosses_whole() -> None:
    site, steps = Site("a", 3), (TraceStep(Site("b", 4), "calls", "main process"),)
    outcome = Outcome(
        Kind.CUDA_IN_FORK,
        site,
        "crash",
        certain=True,
        assumed=True,
        cause=steps,
        launch=steps,
        effect=steps,
        caught=True,
        launcher="Pool",
        subject="x",
        detail="y",
        condition="before",
        doubt=Doubt.METHOD,
        assumptions=(Assumption("`--gpu`", "is given"), Assumption(site, "is true")),
        in_test=True,
        within=site,
        facts=((("kept", 0), True),),
        choices=(Either((("kept", 0), True), (("kept", 0), False)),),
        outside=((("kept", 0), True), (("kept", 1), True)),
        unsaid=True,
        outlived=True,
        told=True,
        chosen=True,
        benign=True,
        on_some_paths=True,
        number=3,
    )
    launched = Launched(
        "pool", "multiprocessing", "fork", site, site, "why", (site,), "context", 1, (site,), "no", "held", True
    )
    for value in (outcome, launched):
        names, defaults = value.__struct_fields__, value.__struct_defaults__
        by_default = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        left_out = [name for name, default in by_default.items() if getattr(value, name) == default]
        assert not left_out, "what has its default would cross by being left out"
    result = EntryResult("a", "b", "c", (outcome,), frozenset({("a", 1)}), {(site, "fork"): launched}, 7, "cut")
    assert from_row(as_row(result)) == result


def test_a_refused_result_that_says_something_once_takes_those_of_its_process_with_it() -> None:
    groups = [Group(name) for name in "abcd"]
    brief = workers.Brief({}, Layout(), frozenset(), frozenset(), frozenset(), News({}, {}), (), Host(), None)
    others = workers.Workers(brief, 0)
    others.offer(groups, set(), set())
    process = workers._started()
    worker = workers._Worker(process)
    try:
        for group in groups[1:]:
            others._waiting.remove(group)
            asked = frozenset({(group.name, 1)})
            others._done[group] = (
                worker,
                GroupResult((), Reads(), asked, (), group.name == "b", (0, 0, 0), News({}, {})),
            )
        others.offer(groups[1:], {("b", 1), ("c", 1)}, set())
        assert worker.is_tainted
        assert others._waiting == groups[1:]
        assert others.result(groups[3], set()) is None
    finally:
        worker.kill()


def test_a_process_that_was_lost_is_told_nothing(tmp_path: Path) -> None:
    store = Store(str(tmp_path), b"s" * 32)
    brief = workers.Brief({}, Layout(), frozenset(), frozenset(), frozenset(), News({}, {}), (), Host(), store)
    others = workers.Workers(brief, 0)
    worker = workers._Worker(workers._started())
    others._lose(worker, Group("a"))
    others._leave(worker)
    assert worker.process.wait(60) != 0
    assert others.lost == 1


def test_no_more_processes_than_cores() -> None:
    assert 1 <= cores.usable() <= min(cores.MOST, os.cpu_count() or 1)
