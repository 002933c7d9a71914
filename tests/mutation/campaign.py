"""The tests as judges: run once to see by what each comes, then for each mutant those that could notice it.

A mutant lives in a process that is forked from the one that collected the tests, and ends at the first that fails.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from cudalint import rules
from cudalint.config import Config
from cudalint.rules.base import Rule
from cudalint.session import Session
from mutation.mutant import Mutant
from mutation.watching import RULES_READ, Watch, watched

_PROGRAM = Path(__file__).resolve().parents[2] / "fixtures" / "CUD101" / "broken_billiard_pool.py"
# Processor time of one mutant; a mutant that does not end is noticed.
SECONDS = 60
# So many tests are asked of one mutant at first, those that are quick and that noticed others; half of them are taken
# from each file in turn, as the few tests of a small file are about what thousands of others only pass by. More are
# asked as long as all of them take so many seconds at most; and all that are left of one that survived so far.
MOST_ASKED = 100
ASKED_SECONDS = 2.0
# Tests of these start processes, which the mutants are not in, or run programs that no mutant changes.
_ELSEWHERE = frozenset({"process", "child", "unchanged"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: the test that failed, or None; how many were asked."""

    mutant: Mutant
    killer: str | None
    asked: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """The tests that a mutant is asked of now, those that are left, and how many were asked before."""

    mutant: Mutant
    tests: Sequence[str]
    rest: Sequence[str]
    before: int = 0
    # Where the answer comes from.
    answer: int = -1


class Campaign:
    """A plugin that takes over the run of the tests."""

    def __init__(self, mutants: Sequence[Mutant], jobs: int, known: Mapping[str, str], *, verbose: bool) -> None:
        """``known``: the test to ask of each mutant, by its name; empty to find out."""
        self.mutants, self.jobs, self.known, self.verbose = mutants, jobs, known, verbose
        self.watch = Watch()
        self.verdicts: list[Verdict] = []
        self.broken: list[str] = []
        self._took: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what runs elsewhere."""
        items[:] = [i for i in items if _ELSEWHERE.isdisjoint(getattr(i, "fixturenames", ()))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Watch all tests, then judge all mutants."""
        items = {item.nodeid: item for item in session.items}
        for mutant in self.mutants:
            mutant.watch(self.watch)
        # What is imported on the way is imported here, once.
        Session(Config()).check([str(_PROGRAM)])
        if not self.known:
            began = time.monotonic()
            self._observe(session.items)
            print(f"\n{len(items)} tests watched in {time.monotonic() - began:.0f} s", flush=True)
        if not self.broken:
            self._judge(items)
        return True

    def _observe(self, items: Sequence[pytest.Item]) -> None:
        """Run all tests in another process, so that no mutant is judged by what they leave behind."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            watched(self.watch)
            with _noting_rules(self.watch), os.fdopen(writing, "wb") as pipe:
                took, broken = {}, []
                for item in items:
                    began = time.monotonic()
                    self.watch.begin(item.nodeid)
                    reports = runtestprotocol(item, log=False, nextitem=None)
                    self.watch.end()
                    took[item.nodeid] = time.monotonic() - began
                    if any(report.failed for report in reports):
                        broken.append(item.nodeid)
                pickle.dump((dict(self.watch.used), self.watch.tests, took, broken), pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            used, self.watch.tests, self._took, self.broken = pickle.load(pipe)
        self.watch.used.update(used)
        os.waitpid(child, 0)

    def _judge(self, items: dict[str, pytest.Item]) -> None:
        waiting: dict[int, _Asked] = {}
        killers: dict[str, int] = {}
        for count, mutant in enumerate(self.mutants, 1):
            ordered, most = self._ordered(mutant, killers)
            if not ordered:
                self._say(Verdict(mutant, None, 0))
                continue
            while len(waiting) >= self.jobs:
                self._collect(waiting, killers, items)
            self._ask(_Asked(mutant, ordered[:most], ordered[most:]), waiting, items)
            if count % 500 == 0:
                print(f"{count} of {len(self.mutants)}", flush=True)
        while waiting:
            self._collect(waiting, killers, items)

    def _ask(self, asked: _Asked, waiting: dict[int, _Asked], items: Mapping[str, pytest.Item]) -> None:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._be(asked, [items[test] for test in asked.tests], writing)
        os.close(writing)
        waiting[child] = replace(asked, answer=reading)

    def _ordered(self, mutant: Mutant, killers: Mapping[str, int]) -> tuple[list[str], int]:
        """All tests that could notice a mutant, and how many of them are asked first."""
        if self.known:
            return [self.known[mutant.name]], 1
        found = mutant.noticed_by(self.watch)
        ordered = sorted(found, key=lambda t: (self._took[t] / (1 + killers.get(t, 0)), t))
        ordered = [*ordered[: MOST_ASKED // 2], *_in_turn(ordered[MOST_ASKED // 2 :])]
        quick = sum(took < ASKED_SECONDS for took in accumulate(self._took[test] for test in ordered))
        return ordered, max(MOST_ASKED, quick)

    def _collect(self, waiting: dict[int, _Asked], killers: dict[str, int], items: Mapping[str, pytest.Item]) -> None:
        child, status = os.wait()
        asked = waiting.pop(child)
        with os.fdopen(asked.answer, "rb") as pipe:
            text = pipe.read().decode()
        killer: str | None = text or None
        if killer is None and status != 0:
            killer = "it does not end, or ends the process"
        if killer is None and asked.rest:
            # Hardly any come so far: of these all tests are asked.
            self._ask(replace(asked, tests=asked.rest, rest=(), before=len(asked.tests)), waiting, items)
            return
        if killer is not None:
            killers[killer] = killers.get(killer, 0) + 1
        self._say(Verdict(asked.mutant, killer, asked.before + len(asked.tests)))

    def _say(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        if verdict.killer is None:
            print(f"survived: {verdict.mutant.name} ({verdict.asked} tests came by it)", flush=True)
        elif self.verbose:
            print(f"noticed: {verdict.mutant.name}\t{verdict.killer}", flush=True)

    def _be(self, asked: _Asked, items: list[pytest.Item], pipe: int) -> None:
        """In the child: the tests, up to the first that fails."""
        status = 1
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            # For all of many tests as long as they took, and as long again.
            most = SECONDS + int(2 * sum(self._took.get(item.nodeid, 0.0) for item in items))
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            self.watch.test = None
            sys.settrace(None)
            asked.mutant.apply()
            for item in items:
                reports = runtestprotocol(item, log=False, nextitem=None)
                if any(report.failed for report in reports):
                    os.write(pipe, item.nodeid.encode())
                    break
            status = 0
        except BaseException as error:
            os.write(pipe, f"{type(error).__name__}: {error}"[:300].encode())
        finally:
            os._exit(status)


def _in_turn(tests: Iterable[str]) -> Iterator[str]:
    """The first test of each file, then the second of each."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    yield from (test for turn in zip_longest(*files.values()) for test in turn if test is not None)


@contextmanager
def _noting_rules(watch: Watch) -> Iterator[None]:
    """Note of which rules a test saw findings, and whether it reads rules itself."""
    message: Any = Rule.message
    rule, registry = rules.rule, rules.registry

    def noting_message(self: Rule, outcome: Any) -> str:
        watch.note(("rule", f"cudalint.rules.{self.code.lower()}"))
        text: str = message(self, outcome)
        return text

    def noting_rule(code: str) -> Rule:
        _by_test(watch, sys._getframe(1))
        return rule(code)

    def noting_registry() -> Mapping[str, Rule]:
        _by_test(watch, sys._getframe(1))
        return registry()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rule, "message", noting_message)
        patch.setattr(rules, "rule", noting_rule)
        patch.setattr(rules, "registry", noting_registry)
        yield


def _by_test(watch: Watch, caller: FrameType) -> None:
    if Path(caller.f_code.co_filename).name.startswith("test_"):
        watch.note(RULES_READ)
