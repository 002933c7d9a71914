"""A process that runs groups of entries for another one: it is given a program once, and then one group at a time.

It is a fresh process, never a fork of the one that asks: that may have threads, and a fork of those is what cudalint
warns of. Nothing is imported that the other process would not import, and nothing of the program is run.

The program comes pickled, from the process that started this one. All messages after it begin with their length: groups
and what they gave, as plain data (``marshal``).
"""

from __future__ import annotations

import marshal
import os
import pickle
import queue
import sys
import threading
from collections.abc import Iterator
from typing import BinaryIO

from cudalint.models.library import load
from cudalint.project.at_work import at_work
from cudalint.project.callers import Place
from cudalint.project.command_lines import CommandLine
from cudalint.project.entry_result import as_row, from_row
from cudalint.project.groups import Group, GroupResult
from cudalint.project.layout import Layout
from cudalint.project.program import FileProgram
from cudalint.project.pythons import Hosts
from cudalint.project.reads import Broken, News, Reads
from cudalint.project.running import Runner
from cudalint.store import Store
from cudalint.structs import Frozen
from cudalint.text.source import SourceFile

HEADER_BYTES = 8
# Ends the work of a process, which then keeps what it lowered.
END = b""


class Brief(Frozen):
    """A program and what decides how its entries run, for a process that knows nothing of it."""

    sources: dict[str, SourceFile]
    layout: Layout
    commands: frozenset[tuple[str, str]]
    preloaded: frozenset[tuple[str, str, str]]
    told: frozenset[tuple[str, CommandLine]]
    news: News
    models: tuple[str, ...]
    hosts: Hosts
    store: Store | None

    @classmethod
    def of(cls, files: FileProgram, models: tuple[str, ...], hosts: Hosts) -> Brief:
        """What is to be known of a program."""
        told = files.sources, files.layout, files.commands, files.preloaded, files.told
        return cls(*told, files.news(), models, hosts, files.store)

    def runner(self) -> Runner:
        """What runs the entries of the program."""
        told = self.sources, self.layout.names, self.layout, self.commands, self.preloaded, self.told
        files = FileProgram(load(self.models), *told, store=self.store)
        files.learn(self.news)
        # Of these the other process is told nothing.
        files.news()
        return Runner(files, self.hosts)


class Job(Frozen):
    """A group to run, and the functions that were reached since the last one: in ``before`` by what is started."""

    group: Group
    before: tuple[Place, ...]
    since: tuple[Place, ...]

    def packed(self) -> bytes:
        """The job as bytes."""
        return marshal.dumps((self.group.name, self.group.is_assumed, self.before, self.since))


def send(stream: BinaryIO, data: bytes) -> None:
    """Write a message."""
    stream.write(len(data).to_bytes(HEADER_BYTES, "big") + data)
    stream.flush()


def receive(stream: BinaryIO) -> bytes:
    """Read a message; raises ``EOFError`` where there is none any more."""
    header = stream.read(HEADER_BYTES)
    size = int.from_bytes(header, "big")
    data = stream.read(size) if len(header) == HEADER_BYTES else b""
    if len(header) < HEADER_BYTES or len(data) < size:
        raise EOFError
    return data


def packed(result: GroupResult) -> bytes:
    """What a group gave, as bytes."""
    broken = [(name, found.reason, found.row, found.column, is_whole) for name, found, is_whole in result.broken]
    rows = list(map(as_row, result.results))
    reads, news = result.reads, result.news
    read = (reads.asked, reads.looked, reads.imported, reads.searched, reads.sought, reads.settings, reads.noted)
    learned = (dict(news.facts), dict(news.judged))
    return marshal.dumps((rows, read, result.unreached, broken, result.says_once, result.effort, learned))


def unpacked(data: bytes, sources: dict[str, SourceFile]) -> GroupResult:
    """What a group gave, from such bytes."""
    rows, read, unreached, broken, once, effort, learned = marshal.loads(data)
    files = tuple((name, Broken(sources[name], reason, *place), whole) for name, reason, *place, whole in broken)
    results = tuple(map(from_row, rows))
    return GroupResult(results, Reads(*read), unreached, files, once, effort, News(*learned))


def serve() -> None:
    """Run groups until there are no more. An exception ends the process: what it was given runs elsewhere."""
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever is printed by mistake must not get among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    runner = pickle.load(jobs).runner()
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs, waiting), daemon=True).start()
    _answer(runner, waiting, answers)
    runner.files.keep()
    # What is left to do is to give memory back, which costs time.
    os._exit(0)


@at_work
def _answer(runner: Runner, waiting: queue.SimpleQueue[bytes], answers: BinaryIO) -> None:
    for result in _results(runner, waiting):
        send(answers, packed(result))


def _results(runner: Runner, waiting: queue.SimpleQueue[bytes]) -> Iterator[GroupResult]:
    reached: set[Place] = set()
    stage = False
    while (data := waiting.get()) != END:
        name, is_assumed, before, since = marshal.loads(data)
        reached.update(before)
        if is_assumed and not stage:
            stage, runner.reached.before = True, frozenset(reached)
        reached.update(since)
        yield runner.alone_with(Group(name, is_assumed), reached)


def _listen(jobs: BinaryIO, waiting: queue.SimpleQueue[bytes]) -> None:
    """Hand jobs on; when the process that asks is gone, nobody wants what this one is at."""
    data = b" "
    while data != END:
        try:
            data = receive(jobs)
        except (EOFError, OSError):
            os._exit(1)
        waiting.put(data)
