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
    TopCalls,
    acts_at_top,
    calls_at_top,
    device_statement,
    may_launch,
    may_matter,
    mentions_gpu,
    places_on_gpu,
)
from cudalint.store import Store
from cudalint.text.words import Words

_KIND = "facts"
# More than this is what other branches and other folders of the project have left behind.
MOST_KEPT = 40_000
_RELATIVE = re.compile(rb"^[ \t]*from[ \t]+\.", re.MULTILINE)
_REGISTERS = re.compile(rb"@[\w.]*(?:command|group|callback|main)\b")
_ANSWERS = Words(
    (
        b"FastAPI", b"APIRouter", b"Flask", b"Blueprint", b"Starlette", b"Quart", b"Sanic", b"aiohttp", b"django",
        b"Litestar", b"litestar", b"grpc", b"gradio", b"dash", b"nicegui", b"streamlit", b"bentoml", b"MethodView",
        b"kserve", b"litserve", b"triton_python_backend_utils", b"torch_handler",
    )
)  # fmt: skip
_ROUTES = Words((b"APIRouter", b"Blueprint", b"RouteTableDef", b"Router"))
_SERVES = Words((b"celery", b"wsgi_app", b"uwsgidecorators"))


@dataclass(slots=True)
class FileFacts:
    """The answers about one content, each worked out when it is first asked for.

    ``known`` is plain data; ``digest`` identifies the content where facts are kept.
    """

    data: bytes
    known: dict[str, Any] = field(default_factory=dict)
    is_fresh: bool = False
    digest: bytes = b""

    def _asked(self, name: str, compute: Callable[[bytes], Any]) -> Any:
        if name not in self.known:
            self.known[name] = compute(self.data)
            self.is_fresh = True
        return self.known[name]

    @property
    def may_matter(self) -> bool:
        """Whether the file mentions CUDA or processes."""
        return bool(self._asked("matters", may_matter))

    @property
    def may_launch(self) -> bool:
        """Whether something that a rule judges may start in the file."""
        return bool(self._asked("launches", may_launch))

    @property
    def may_register(self) -> bool:
        """Whether the file may hand functions to a library as the commands of a program."""
        return bool(self._asked("registers", _registers))

    @property
    def may_serve(self) -> bool:
        """Whether a server that is started from outside may import the file before it forks."""
        return bool(self._asked("serves", _SERVES.stand_in))

    @property
    def may_answer(self) -> bool:
        """Whether functions of the file may answer requests of a server."""
        return bool(self._asked("answers", _ANSWERS.stand_in))

    @property
    def may_route(self) -> bool:
        """Whether the file may gather handlers for an application that another file makes."""
        return bool(self._asked("routes", _ROUTES.stand_in))

    @property
    def states_a_device(self) -> bool:
        """Whether a line may be a device object as a statement."""
        return bool(self._asked("states", device_statement))

    @property
    def places_on_gpu(self) -> bool:
        """Whether the file puts something on a GPU or chooses one."""
        return bool(self._asked("places", places_on_gpu))

    @property
    def mentions_gpu(self) -> bool:
        """Whether the file mentions a GPU framework."""
        return bool(self._asked("gpu", mentions_gpu))

    @property
    def acts_at_top(self) -> bool:
        """Whether a line that runs at the import of the file may do something to the process."""
        return bool(self._asked("acts", acts_at_top))

    @property
    def imports_relatively(self) -> bool:
        """Whether the file imports from the package it lies in, by dots."""
        return bool(self._asked("relative", lambda data: _RELATIVE.search(data) is not None))

    @property
    def guards_main(self) -> bool:
        """Whether the file says what it does as a program."""
        return b"__main__" in self.data

    @property
    def imports(self) -> tuple[Imported, ...]:
        """The import statements of the file and its ``import_module`` calls."""
        rows = self._asked("imports", lambda data: [(i.module, i.level, i.names, i.at_once) for i in imported(data)])
        return tuple(Imported(module, level, tuple(names), at_once) for module, level, names, at_once in rows)

    @property
    def calls_at_top(self) -> TopCalls:
        """What the file calls when it is imported."""
        called, decorating = self._asked("calls", _top_calls)
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

    store: Store | None = None
    folder: str = ""
    _kept: Mapping[bytes, dict[str, Any]] | None = None
    _files: dict[bytes, FileFacts] = field(default_factory=dict)

    def of(self, data: bytes) -> FileFacts:
        """The facts of a file with this content."""
        if self.store is None:
            return FileFacts(data)
        key = blake2b(data, digest_size=16).digest()
        known = self._files.get(key)
        if known is None:
            known = self._files[key] = FileFacts(data, dict(self._before().get(key, {})), digest=key)
        return known

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
        return fingerprint.digest(fingerprint.analysis(), self.folder)
