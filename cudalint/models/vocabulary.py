"""The words by which a file shows that it can matter, taken from what models say.

A file is worth a look where it names a GPU framework or something that starts processes; a program is run where it
may start something that a rule judges. Both are told from the words of the file, so a library that is described in
TOML is seen without a line of Python: by the names of what it starts, or by the ``marks`` that its entry gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cudalint.structs import Mutable, field

# What a model may say that a function does, where that starts processes or workers, forms a process group, or settles
# the start method or the devices of a process: what rules judge.
STARTS = frozenset(
    {
        "celery.app", "celery.settings", "celery.task", "cluster", "components", "dali.define",
        "default-device", "django.manage", "engine",
        "environments", "environments.copies", "environments.of", "executor", "fork", "fork-launcher", "group",
        "group.engine", "group.select", "growth", "gunicorn.run", "isolated", "isolated.now", "keras.fit", "loader",
        "loader.eager", "loader.items",
        "loader.cut", "loader.mapping", "loader.sampling", "manager", "manager.base", "method.set", "parallel",
        "pipeline.run", "pool",
        "pool.decorator", "pool.once", "process", "queue.work", "queue.worker", "remote", "remote.gpus", "remote.map",
        "remote.run", "search",
        "search.validate", "server.fork", "spawn", "spawn.elastic", "text-pipe", "thread.trials",
        "trainer.strategy", "unknown-map", "visible", "workers",
    }
)  # fmt: skip
# What starts threads, which matters where a device is selected for one of them.
_THREADS = frozenset({"thread", "thread.call", "executor.loop"})
_OF_THREADS = "threading"
_SELECTS = frozenset({"set-device"})
_APPLICATION = "server.application"
_USES = "gpu"
# A name of these is no word of prose, nor one that all kinds of code use.
_DISTINCT = re.compile(r".*(?:[a-z][A-Z]|[A-Z]{2,}[a-z]|[^_]_[^_])")
_NO_NAME = re.compile(r"__\w+__|\*")


class Marks(Mutable):
    """Words of which one shows that something may be in a file.

    ``anywhere``: wherever they stand. ``used``: where they are called, imported or an attribute, as prose and other
    code use them as well. ``together``: where all words of one group stand in the file.
    """

    anywhere: set[bytes] = field(default_factory=set)
    used: set[bytes] = field(default_factory=set)
    together: set[frozenset[bytes]] = field(default_factory=set)

    def add(self, mark: str) -> None:
        """Take in a mark that an entry gives: a word, or several that are joined by dots."""
        parts = frozenset(mark.encode().split(b"."))
        if len(parts) > 1:
            self.together.add(parts)
        else:
            self.anywhere |= parts

    def name(self, name: str) -> None:
        """Take in the name of a function."""
        (self.anywhere if _DISTINCT.match(name) else self.used).add(name.encode())

    def words(self) -> set[bytes]:
        """All words that are looked for."""
        return self.anywhere.union(self.used, *self.together)


class Vocabulary(Mutable):
    """The words of all models. ``launchers`` are names in functions that may start something without a known caller."""

    starts: Marks = field(default_factory=Marks)
    threads: Marks = field(default_factory=Marks)
    selects: Marks = field(default_factory=Marks)
    # What has a package use a GPU that else does not.
    asks: Marks = field(default_factory=Marks)
    launchers: set[str] = field(default_factory=set)
    # What names a GPU wherever it stands, packages that may use one where they are imported, and what is only worth a
    # look, as it has to do with processes.
    gpu: set[bytes] = field(default_factory=set)
    packages: set[bytes] = field(default_factory=set)
    processes: set[bytes] = field(default_factory=set)
    # The classes of web applications, which a server may import without being told so in any file.
    applications: set[bytes] = field(default_factory=set)
    # The words of the user's own models: a file that holds one is worth every look.
    own: set[bytes] = field(default_factory=set)

    def learn(self, entry: Mapping[str, object]) -> None:
        """Take in a function of a model."""
        does, marks = entry.get("does"), _texts(entry.get("marks"))
        names = [_last(name) for name in _texts(entry.get("names"))]
        if does in _SELECTS or entry.get("current") == "makes":
            for name in names:
                self.selects.name(name)
        if does == _APPLICATION and "type" not in entry:
            self.applications.update(name.encode() for name in names)
        is_thread = does in _THREADS or (does in STARTS and entry.get("library") == _OF_THREADS)
        # What says that its ``run()`` may be told to start no threads starts some, or that some requests have one.
        is_thread = is_thread or (does == _APPLICATION and not {"key", "value"}.isdisjoint(entry))
        kind = self.asks if does == _USES else self.threads if is_thread else self.starts
        for mark in marks:
            kind.add(mark)
        if not marks and (is_thread or does in STARTS):
            for name in names:
                kind.name(name)
        if does in STARTS and not is_thread:
            distinct = [name for name in names if not marks or _DISTINCT.match(name)]
            self.launchers.update(distinct or (mark for mark in marks if "." not in mark))

    def know(self, words: Mapping[str, object]) -> None:
        """Take in the words that a model file lists by themselves."""
        self.gpu.update(word.encode() for word in _texts(words.get("gpu")))
        self.processes.update(word.encode() for word in _texts(words.get("processes")))
        for word in _texts(words.get("starts")):
            self.starts.add(word)
            self.launchers.add(word)

    def also_called(self, alias: str) -> None:
        """Take in another name of something that starts processes and is recognised by its names."""
        self.starts.name(_last(alias))
        self.launchers.add(_last(alias))

    def words(self) -> frozenset[bytes]:
        """All words that are looked for in files."""
        marked = self.starts.words() | self.threads.words() | self.selects.words() | self.asks.words()
        return frozenset(marked.union(self.gpu, self.packages, self.processes, self.own))


def is_recognised_by_name(entry: Mapping[str, object]) -> bool:
    """Whether the names of a function show that something starts, as no marks of it do."""
    return entry.get("does") in STARTS and entry.get("library") != _OF_THREADS and not entry.get("marks")


def _last(path: str) -> str:
    """The name that stands in a file: of the class, where a method has a name that no file writes."""
    parts = [part for part in path.removeprefix("import ").split(".") if not _NO_NAME.fullmatch(part)]
    return parts[-1]


def _texts(value: object) -> list[str]:
    return [str(v) for v in value] if isinstance(value, list) else []
