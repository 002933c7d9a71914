"""What each test comes by: what it asks of the models, and which lines of some functions it runs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from cudalint.models import library

# That a test reads rules itself.
RULES_READ = ("rules are read",)
# What of the models is looked up by a name: the tables of a library.
TABLES = ("functions", "aliases", "bases", "constants", "arrays", "metadata", "attributes", "picklers", "environment")


class Watch:
    """By what tests came: ``used`` maps a thing to the tests that asked for it."""

    def __init__(self) -> None:
        self.used: defaultdict[Hashable, set[str]] = defaultdict(set)
        self.test: str | None = None
        self.tests: set[str] = set()
        self.codes: set[tuple[str, str, int]] = set()
        self._files: frozenset[str] = frozenset()
        self._by_code: dict[CodeType, tuple[str, str, int] | None] = {}

    def note(self, thing: Hashable) -> None:
        """The test that runs now came by this."""
        if self.test is not None:
            self.used[thing].add(self.test)

    def of(self, things: Iterable[Hashable]) -> set[str]:
        """The tests that came by one of these."""
        return set().union(*(self.used.get(thing, set()) for thing in things))

    def begin(self, test: str) -> None:
        """From here on it is this test."""
        self.test = test
        self.tests.add(test)
        for one in _MADE:
            one.forget()
        if self.codes:
            self._files = frozenset(file for file, _, _ in self.codes)
            sys.settrace(self._called)

    def end(self) -> None:
        """No test runs."""
        sys.settrace(None)
        self.test = None

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code.co_filename not in self._files:
            return None
        known = self._by_code.get(code)
        if known is None:
            known = self._by_code[code] = (code.co_filename, code.co_name, code.co_firstlineno)
        if known not in self.codes:
            return None
        self.note((code.co_filename, code.co_firstlineno))
        return self._traced

    def _traced(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.note((frame.f_code.co_filename, frame.f_lineno))
        return self._traced


class _Table(dict[str, Any]):
    """A table of models that notes what of it is asked for."""

    def __init__(self, name: str, watch: Watch) -> None:
        super().__init__()
        self._name, self._watch = name, watch

    def get(self, key: str, default: Any = None) -> Any:
        if key in self:
            return super().get(key)
        return default

    def __getitem__(self, key: str) -> Any:
        self._watch.note((self._name, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        there = super().__contains__(key)
        if there:
            self._watch.note((self._name, key))
        return there


class Entry(dict[str, Any]):
    """An entry of a model that notes which of its keys are read."""

    def __init__(self, made_of: dict[str, Any], watch: Watch) -> None:
        super().__init__(made_of)
        self._watch, self._first = watch, made_of["names"][0]

    def get(self, key: str, default: Any = None) -> Any:
        self._watch.note(("key", self._first, key))
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._watch.note(("key", self._first, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._watch.note(("key", self._first, key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self._watch.note(("key", self._first, key))
            yield key


_MADE: list[Any] = []


def watched(watch: Watch) -> None:
    """Make the models of this process note what is asked of them."""

    class Watching(library.Library):
        def __post_init__(self) -> None:
            for name in TABLES:
                setattr(self, name, _Table(name, watch))
            _MADE.append(self)

        def forget(self) -> None:
            self._found.clear()
            self._canonical.clear()
            for name, spec in list(dict.items(self.functions)):
                if not isinstance(spec, Entry):
                    dict.__setitem__(self.functions, name, Entry(dict(spec), watch))
            self.patterns[:] = [
                (pattern, spec if isinstance(spec, Entry) else Entry(dict(spec), watch))
                for pattern, spec in self.patterns
            ]

        def function(self, path: str) -> library.Spec | None:
            watch.note(("asked", path))
            watch.note(("asked", self.canonical(path)))
            return super().function(path)

        def process_effect(self, path: str) -> library.ProcessEffect | None:
            watch.note(("effect", path))
            watch.note(("effect", self.canonical(path)))
            return super().process_effect(path)

        def _declared_effect(self, path: str, depth: int) -> library.ProcessEffect | None:
            watch.note(("effect", path))
            return super()._declared_effect(path, depth)

        def reads_at_import(self, root: str, variable: str) -> bool:
            watch.note(("environment", "python" if root in sys.stdlib_module_names else root))
            return super().reads_at_import(root, variable)

    library.Library = Watching  # type: ignore[misc]
    library._load.cache_clear()


_PLAIN = library.Library


def unwatched() -> None:
    """Read the models anew, and note nothing more."""
    library.Library = _PLAIN  # type: ignore[misc]
    library._load.cache_clear()
