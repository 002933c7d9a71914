"""Lets tests that run programs on paper pass by the record (`record.py`), and writes it when asked to."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from functools import cache

import pytest
from fixture_markers import header

from cudalint.verify.needs import default_start_method
from paper.ingredients import VARIABLE, Inputs, Tree
from paper.record import Need, Record, read, write

_PROPERTY = "paper"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the record."""
    group = parser.getgroup("paper CUDA")
    group.addoption("--all-paper", action="store_true", help="run every program, whatever was recorded")
    group.addoption(
        "--record-paper", choices=("add", "replace"), help="write what passes to the record (`python -m paper.record`)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect what passed, once for all workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector(config))


class Unchanged:
    """Asked by a test before it runs its programs: whether the same passed before."""

    def __init__(self, node: pytest.Function, tree: Tree, record: Record, environment: pytest.MonkeyPatch) -> None:
        self._node, self._tree, self._record, self._environment = node, tree, record, environment

    def __call__(self, texts: Mapping[str, str], code: tuple[str, ...], rest: object = None) -> bool:
        """Whether all that decides is as it was, and today is not the day to run it all the same.

        ``texts`` are run, by the modules of ``code``; ``rest`` is what else decides. The test itself counts too. A test
        is skipped whose program relies on a default start method that this Python does not have.
        """
        for method in filter(None, (header(text).get("start-method") for text in texts.values())):
            if method != default_start_method():
                pytest.skip(f"relies on the default start method {method}")
        node = self._node
        inputs = Inputs({**texts, "the test": _source(node.function)}, code, rest)
        self._environment.setenv(VARIABLE, " ".join(sorted(self._tree.stubs(texts.values()))))
        digest = self._tree.digest(inputs)
        need = self._record.need(node.nodeid, digest, datetime.now(timezone.utc).date())
        if node.config.option.all_paper:
            need = Need.ASKED
        node.user_properties.append((_PROPERTY, f"{digest} {need.name}"))
        return need is Need.NONE


@cache
def _source(function: Callable[..., object]) -> str:
    """The text of a test, which all of its parameters share."""
    return inspect.getsource(function)


@pytest.fixture(scope="session")
def paper_tree() -> Tree:
    """The files of this repository."""
    return Tree()


@pytest.fixture(scope="session")
def paper_record() -> Record:
    """What passed before."""
    return read()


@pytest.fixture
def unchanged(
    request: pytest.FixtureRequest, paper_tree: Tree, paper_record: Record, monkeypatch: pytest.MonkeyPatch
) -> Unchanged:
    """Ask whether what a test runs on paper is as it was when it passed."""
    return Unchanged(request.node, paper_tree, paper_record, monkeypatch)


class _Collector:
    """Takes what passed from the reports of all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._how: str | None = config.option.record_paper
        self._passed: dict[str, frozenset[str]] = {}
        self._needs: Counter[Need] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that asked the record."""
        for key, value in report.user_properties if report.when == "call" else ():
            if key == _PROPERTY:
                digest, _, need = str(value).partition(" ")
                self._needs[Need[need]] += 1
                if report.passed:
                    self._passed[report.nodeid] = frozenset([digest])

    def pytest_sessionfinish(self) -> None:
        """Write the record when asked to."""
        if self._how is not None:
            write({**(read().passed if self._how == "add" else {}), **self._passed})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many tests passed by the record."""
        if self._needs:
            told = ", ".join(f"{count} {need.value}" for need in Need if (count := self._needs[need]))
            terminalreporter.write_line(f"paper CUDA: {told}")
        if self._needs[Need.CHANGED] and self._how is None:
            terminalreporter.write_line("  record what passed: cd tests && python -m paper.record")
