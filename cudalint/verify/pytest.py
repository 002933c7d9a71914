"""The fixtures as pytest items: ``pytest -p cudalint.verify.pytest --cudalint``, or with paths of fixtures.

With pytest-xdist they spread over workers and hosts; workers of one host share its GPUs by locks. Nothing of this is
loaded unless it is asked for by ``-p``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cudalint.verify import gpus, headers, paper
from cudalint.verify.examine import Examiner
from cudalint.verify.gpus import Gpu, Lease, Need, Pool
from cudalint.verify.headers import Fixture
from cudalint.verify.needs import need, obstacle
from cudalint.verify.runner import Limits, Runner
from cudalint.verify.surroundings import HARDWARE, Surroundings
from cudalint.verify.verdict import Status, Verdict

_PAPER_GPUS = 2


class Refuted(Exception):
    """A fixture did not end as its header and cudalint say."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__("; ".join(verdict.reasons))
        self.verdict = verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("cudalint")
    group.addoption("--cudalint", action="store_true", help="run the fixtures that come with cudalint")
    group.addoption("--cudalint-paper", action="store_true", help="run fixtures on paper CUDA: no GPU, no evidence")
    group.addoption("--cudalint-no-fixed", action="store_true", help="do not run what the repairs make of fixtures")


def pytest_configure(config: pytest.Config) -> None:
    """Without a path of its own, ``--cudalint`` means the fixtures that come with cudalint."""
    if config.getoption("cudalint") and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = [str(headers.default_folder())]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A file with a header is a fixture."""
    if file_path.suffix != ".py" or not _is_fixture(file_path):
        return None
    collector: pytest.Collector = FixtureFile.from_parent(parent, path=file_path)
    return collector


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """A fixture is never imported as a test module, however it is called."""
    if not _is_fixture(module_path):
        return None
    module: pytest.Module = _NoModule.from_parent(parent, path=module_path)
    return module


class _NoModule(pytest.Module):
    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        return ()


class FixtureFile(pytest.File):
    """The file of one fixture."""

    def collect(self) -> Iterator[pytest.Item]:
        """The one item in it."""
        fixture = headers.load(self.path)
        if fixture is not None:
            yield FixtureItem.from_parent(self, name=fixture.header.outcome.value, fixture=fixture)


class FixtureItem(pytest.Item):
    """One fixture: it passes when it is confirmed, with its repair."""

    def __init__(self, *, fixture: Fixture, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self.fixture = fixture

    def runtest(self) -> None:
        """Run it on GPUs that nobody else needs for themselves."""
        on_paper = bool(self.config.getoption("cudalint_paper"))
        found = paper.machine(_PAPER_GPUS) if on_paper else gpus.discover()
        devices = found.devices
        surroundings = paper.Paper(len(devices)) if on_paper else HARDWARE
        if not devices:
            pytest.fail("no GPU was found: nothing was verified", pytrace=False)
        reason = obstacle(self.fixture, len(devices), surroundings)
        if reason is not None:
            pytest.skip(reason)
        with _lease(need(self.fixture, surroundings), devices, surroundings) as lease:
            environment = Pool(devices, 1, found.hidden).environment(lease)
            repairs = not self.config.getoption("cudalint_no_fixed")
            verdict = Examiner(Runner(surroundings), surroundings, Limits(), repairs=repairs).examine(
                self.fixture, environment
            )
        if verdict is None:
            pytest.fail("its supervisor was killed", pytrace=False)
        if verdict.status is Status.REFUTED:
            raise Refuted(verdict)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Say what refuted it, and what the program printed."""
        error = excinfo.value
        if not isinstance(error, Refuted):
            return str(super().repr_failure(excinfo))
        printed = error.verdict.run.text if error.verdict.run is not None else ""
        return "\n".join([f"{self.fixture.name}: refuted", *error.verdict.reasons, "", printed])

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is, and its name."""
        return self.path, None, self.fixture.name


def _is_fixture(path: Path) -> bool:
    try:
        return headers.load(path) is not None
    except headers.HeaderError as error:
        raise pytest.Collector.CollectError(str(error)) from None


@contextlib.contextmanager
def _lease(wanted: Need, devices: tuple[Gpu, ...], surroundings: Surroundings) -> Iterator[Lease]:
    """GPUs for one fixture: the workers begin at different ones, and who must be alone waits until it is."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    first = int(worker) if worker.isdecimal() else 0
    chosen = sorted(devices[(first + step) % len(devices)].index for step in range(wanted.gpus))
    with contextlib.ExitStack() as locks:
        for index in chosen if surroundings.is_hardware else ():
            locks.enter_context(_lock(index, alone=wanted.alone))
        yield Lease(tuple(chosen), wanted.alone)


@contextlib.contextmanager
def _lock(index: int, *, alone: bool) -> Iterator[None]:
    folder = Path(tempfile.gettempdir()) / f"cudalint-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with open(folder / str(index), "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
