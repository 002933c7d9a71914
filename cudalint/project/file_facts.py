"""What searching the bytes of each file shows, asked once per content and kept between runs.

Most of what a run does to a file that does not matter is to search its bytes. The answers depend on nothing but these
bytes and cudalint's own code, so a later run takes them from the store, all of a project's at once.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from cudalint import fingerprint
from cudalint.project.imports import Imported, imported
from cudalint.project.markers import (
    Lexicon,
    Text,
    TopCalls,
    acts_at_top,
    calls_at_top,
    device_statement,
    may_answer,
    may_launch,
    may_matter,
    may_route,
    may_serve,
    mentions_gpu,
    places_on_gpu,
    selects_device,
    starts_threads,
)
from cudalint.store import Store
from cudalint.text.words import words

_KIND = "facts"
# More than this is what other branches and other folders of the project have left behind.
MOST_KEPT = 40_000
_RELATIVE = re.compile(rb"^[ \t]*from[ \t]+\.", re.MULTILINE)
_STARTS_APPLICATION = re.compile(rb"\b(?:lifespan|on_startup|on_event|before_(?:serving|server_start|startup))\b")
_REGISTERS = re.compile(rb"@[\w.]*(?:command|group|callback|main)\b")


@dataclass(slots=True)
class FileFacts:
    """The answers about one content, each worked out when it is first asked for.

    ``known`` is plain data; ``digest`` identifies the content: where nothing is kept between runs, it is the content.
    """

    data: bytes
    lexicon: Lexicon
    known: dict[str, Any] = field(default_factory=dict)
    is_fresh: bool = False
    digest: bytes = b""

    def _asked(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self.known:
            self.known[name] = compute()
            self.is_fresh = True
        return self.known[name]

    @property
    def _text(self) -> Text:
        found = self._asked("words", lambda: sorted(words(self.data) & self.lexicon.words))
        return Text(self.data, frozenset(found), self.lexicon.vocabulary)

    @property
    def mentions_own(self) -> bool:
        """Whether the file names something of the user's own models."""
        own = self.lexicon.vocabulary.own
        return bool(own) and not own.isdisjoint(self._text.words)

    @property
    def may_matter(self) -> bool:
        """Whether the file mentions CUDA or processes."""
        return bool(self._asked("matters", lambda: may_matter(self._text)))

    @property
    def may_launch(self) -> bool:
        """Whether something that a rule judges may start in the file."""
        return bool(self._asked("launches", lambda: may_launch(self._text)))

    @property
    def starts_threads(self) -> bool:
        """Whether the file starts threads, or has a class of them."""
        return bool(self._asked("threads", lambda: starts_threads(self._text)))

    @property
    def selects_device(self) -> bool:
        """Whether the file selects the GPU of a thread."""
        return bool(self._asked("selects", lambda: selects_device(self._text)))

    @property
    def may_register(self) -> bool:
        """Whether the file may hand functions to a library as the commands of a program."""
        return bool(self._asked("registers", lambda: _registers(self.data)))

    @property
    def may_serve(self) -> bool:
        """Whether a server that is started from outside may import the file before it forks."""
        return bool(self._asked("serves", lambda: may_serve(self._text)))

    @property
    def may_answer(self) -> bool:
        """Whether functions of the file may answer requests of a server."""
        return bool(self._asked("answers", lambda: may_answer(self._text)))

    @property
    def starts_application(self) -> bool:
        """Whether functions of the file may run when a web application starts, before its first request."""
        return self.may_answer and _STARTS_APPLICATION.search(self.data) is not None

    @property
    def may_route(self) -> bool:
        """Whether the file may gather handlers for an application that another file makes."""
        return bool(self._asked("routes", lambda: may_route(self._text)))

    @property
    def states_a_device(self) -> bool:
        """Whether a line may be a device object as a statement."""
        return bool(self._asked("states", lambda: device_statement(self._text)))

    @property
    def places_on_gpu(self) -> bool:
        """Whether the file puts something on a GPU or chooses one."""
        return bool(self._asked("places", lambda: places_on_gpu(self.data)))

    @property
    def mentions_gpu(self) -> bool:
        """Whether the file mentions a GPU framework."""
        return bool(self._asked("gpu", lambda: mentions_gpu(self._text)))

    @property
    def acts_at_top(self) -> bool:
        """Whether a line that runs at the import of the file may do something to the process."""
        return bool(self._asked("acts", lambda: acts_at_top(self._text)))

    @property
    def imports_relatively(self) -> bool:
        """Whether the file imports from the package it lies in, by dots."""
        return bool(self._asked("relative", lambda: _RELATIVE.search(self.data) is not None))

    @property
    def guards_main(self) -> bool:
        """Whether the file says what it does as a program."""
        return b"__main__" in self.data

    @property
    def imports(self) -> tuple[Imported, ...]:
        """The import statements of the file and its ``import_module`` calls."""
        rows = self._asked("imports", lambda: [(i.module, i.level, i.names, i.at_once) for i in imported(self.data)])
        return tuple(Imported(module, level, tuple(names), at_once) for module, level, names, at_once in rows)

    @property
    def calls_at_top(self) -> TopCalls:
        """What the file calls when it is imported."""
        called, decorating = self._asked("calls", lambda: _top_calls(self.data))
        return TopCalls(frozenset(called), frozenset(decorating))


def _registers(data: bytes) -> bool:
    """Whether a row begins with the decorator of a command."""
    return any(
        not data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()].strip(b" \t")
        for found in _REGISTERS.finditer(data)
    )


def _top_calls(data: bytes) -> tuple[list[bytes], list[bytes]]:
    found = calls_at_top(data)
    return sorted(found.called), sorted(found.decorating)


@dataclass(slots=True)
class KnownFacts:
    """The facts of all files of a run, by content."""

    lexicon: Lexicon
    store: Store | None = None
    folder: str = ""
    _kept: Mapping[bytes, dict[str, Any]] | None = None
    _files: dict[bytes, FileFacts] = field(default_factory=dict)

    def of(self, data: bytes) -> FileFacts:
        """The facts of a file with this content."""
        key = data if self.store is None else blake2b(data, digest_size=16).digest()
        known = self._files.get(key)
        if known is None:
            known = self._files[key] = FileFacts(data, self.lexicon, dict(self._before().get(key, {})), digest=key)
        return known

    def may_matter(self, data: bytes) -> bool:
        """Whether a file with this content mentions CUDA or processes."""
        return self.of(data).may_matter

    def keep(self) -> None:
        """Keep what this run found out, beside what others did."""
        if self.store is None or not any(facts.is_fresh for facts in self._files.values()):
            return
        kept = {**self._before(), **{key: facts.known for key, facts in self._files.items() if facts.known}}
        if len(kept) > MOST_KEPT:
            kept = {key: facts.known for key, facts in self._files.items() if facts.known}
        self.store.put(_KIND, self._key(), marshal.dumps(kept))

    def _before(self) -> Mapping[bytes, dict[str, Any]]:
        if self._kept is None:
            data = None if self.store is None else self.store.get(_KIND, self._key())
            self._kept = {} if data is None else marshal.loads(data)
        return self._kept

    def _key(self) -> str:
        own = sorted(self.lexicon.vocabulary.own)
        return fingerprint.digest(fingerprint.analysis(), self.folder, *own)
