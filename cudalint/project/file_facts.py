"""What searching the bytes of each file shows, asked once per content and kept between runs.

Most of what a run does to a file that does not matter is to search its bytes. The answers depend on nothing but these
bytes and cudalint's own code, so a later run takes them from the store, all of a project's at once.
"""

from __future__ import annotations

import marshal
import re
import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from cudalint import fingerprint
from cudalint.project import settings_named
from cudalint.project.imports import (
    Imported,
    dotted,
    imported,
    imports_what_it_is_told,
    may_import_all_beside,
    named_for_stars,
    quoted,
)
from cudalint.project.markers import (
    Lexicon,
    Text,
    TopCalls,
    acts_at_top,
    calls_at_top,
    device_statement,
    leading_names,
    may_answer,
    may_launch,
    may_matter,
    may_route,
    may_serve,
    mentions_gpu,
    names_modules,
    places_on_gpu,
    selecting_names,
    selects_device,
    starts_threads,
)
from cudalint.store import Store
from cudalint.structs import Frozen, Mutable, astuple, field
from cudalint.text.words import words

_KIND, _RUNS = "facts", "runs"
# Files are weighed in units of so many bytes.
WEIGHED_BYTES = 2_000
_SHAPE = "shape"
# More than this is what other branches and other folders of the project have left behind.
MOST_KEPT = 40_000
_RELATIVE = re.compile(rb"^[ \t]*from[ \t]+\.", re.MULTILINE)
# What is chosen for one thread matters as well, for those that answer are others.
_STARTS_APPLICATION = re.compile(
    rb"\b(?:lifespan|on_startup|on_event|before_(?:serving|server_start|startup)|set_device(?:_index)?|select_device)\b"
)
_BINDING = rb"(?:[ \t]*:[^=\n]*)?[ \t]*=[ \t]*(?:\w+\.)*"
# Whatever makes it, by the names that servers look for.
_USUAL_APPLICATION = re.compile(rb"^(app|application)%s\w+\(" % _BINDING, re.MULTILINE)
# A base may be asked for: ``class Job(get_context("fork").Process)``.
_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.MULTILINE)
_TASK = re.compile(rb"^[ \t]*@\w+\.task\b", re.MULTILINE)
_STARTS_PROGRAMS = re.compile(rb"\bsubprocess\b|\bPopen\b|\bos\.(?:system|exec|spawn|posix_spawn)")
_PROGRAM = re.compile(rb"([\w.-]+)\.py\b")
# Python is started with the file itself, or with the arguments that it was given.
_ITSELF = re.compile(rb"(?:\bexecutable\b|[\"']python3?[\"'])[^)]{0,120}?(?:\b__file__\b|\bargv\b)")
# Stands for the file itself among the programs that it names.
ITSELF = b""
_REGISTERS = re.compile(rb"@[\w.]*(?:command|group|callback|main)\b")


class Shape(Frozen):
    """What a file is lowered from.

    ``text`` names what its form is kept by; ``outline`` and ``bodies`` are digests of the rows outside of its outermost
    functions' bodies, and of each body. ``globals`` are the numbers of those that may have ``global`` statements.
    """

    text: str
    outline: bytes
    bodies: tuple[bytes, ...]
    globals: tuple[int, ...]

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Shape | None:
        """What is known of it."""
        kept = known.get(_SHAPE)
        return None if kept is None else cls(*kept)


class FileFacts(Mutable):
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
        return bool(own) and bool(self._asked("own", lambda: not own.isdisjoint(self._text.words)))

    @property
    def may_matter(self) -> bool:
        """Whether the file mentions CUDA or processes."""
        return bool(self._asked("matters", lambda: may_matter(self._text)))

    @property
    def may_launch(self) -> bool:
        """Whether something that a rule judges may start in the file."""
        return bool(self._asked("launches", lambda: may_launch(self._text)))

    @property
    def leading(self) -> tuple[bytes, ...]:
        """The functions and classes of the file that mention what starts something, or lead there within it."""
        return tuple(self._asked("leads", lambda: sorted(leading_names(self._text))))

    @property
    def starts_threads(self) -> bool:
        """Whether the file starts threads, or has a class of them."""
        return bool(self._asked("threads", lambda: starts_threads(self._text)))

    @property
    def selects_device(self) -> bool:
        """Whether the file selects the GPU of a thread."""
        return bool(self._asked("selects", lambda: selects_device(self._text)))

    @property
    def selecting(self) -> tuple[bytes, ...]:
        """The functions, methods and classes of the file that select a GPU, or lead there within it."""
        return tuple(self._asked("selecting", lambda: sorted(selecting_names(self._text))))

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
        """Whether what the file does when a web application starts may decide how its first request is answered."""
        return self.may_answer and bool(self._asked("begins", lambda: bool(_STARTS_APPLICATION.search(self.data))))

    @property
    def holds_tasks(self) -> bool:
        """Whether the file may hold tasks of an application that another file makes."""
        return bool(self._asked("tasks", lambda: _TASK.search(self.data) is not None))

    @property
    def programs_with_gpus(self) -> tuple[bytes, ...]:
        """The programs that the file names, where it may start them and tell each which GPUs it sees.

        ``ITSELF`` is among them where it may start itself.
        """
        return tuple(self._asked("programs", lambda: _programs_with_gpus(self.data)))

    @property
    def classes(self) -> tuple[tuple[bytes, bytes], ...]:
        """The names of the file's classes, each with what stands between its parentheses."""
        return tuple(self._asked("classes", lambda: _CLASS.findall(self.data)))

    @property
    def names_modules(self) -> bool:
        """Whether a server's configuration names what it serves without importing it, or names nothing."""
        return bool(self._asked("names", lambda: names_modules(self.data)))

    @property
    def may_route(self) -> bool:
        """Whether the file may gather handlers for an application that another file makes."""
        return bool(self._asked("routes", lambda: may_route(self._text)))

    @property
    def application(self) -> str:
        """What the file calls the web application that it makes when it is imported; empty where it makes none."""
        return str(self._asked("application", self._application))

    def _application(self) -> str:
        found = None
        if self.may_answer:
            made = b"|".join(sorted(self.lexicon.vocabulary.applications))
            found = re.search(rb"^(\w+)%s(?:%s)\(" % (_BINDING, made), self.data, re.MULTILINE)
        if found is None and (self.data.startswith(b"app") or b"\napp" in self.data):
            found = _USUAL_APPLICATION.search(self.data)
        return found[1].decode() if found else ""

    @property
    def states_a_device(self) -> bool:
        """Whether a line may be a device object as a statement."""
        return bool(self._asked("states", lambda: device_statement(self._text)))

    @property
    def places_on_gpu(self) -> bool:
        """Whether the file puts something on a GPU or chooses one."""
        return bool(self._asked("places", lambda: places_on_gpu(self._text)))

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
    def weight(self) -> int:
        """How many bytes the file has, rounded up so that an edit hardly ever changes it."""
        return int(self._asked("weight", lambda: -(-len(self.data) // WEIGHED_BYTES) * WEIGHED_BYTES))

    @property
    def guards_main(self) -> bool:
        """Whether the file says what it does as a program."""
        return b"__main__" in self.data

    @property
    def imports(self) -> tuple[Imported, ...]:
        """The import statements of the file, its ``import_module`` calls, and its texts that may name modules."""
        rows = self._asked("imports", lambda: [found.row for found in imported(self.data)])
        return tuple(Imported(*row) for row in rows)

    @property
    def imports_by_name(self) -> bool:
        """Whether the file may import what something else names."""
        return bool(self._asked("by name", lambda: settings_named.imports_by_name(self.data)))

    @property
    def settings_places(self) -> tuple[str, ...]:
        """Where files of settings may lie that the file reads."""
        return tuple(self._asked("settings", lambda: settings_named.places(self.data)))

    @property
    def may_import_all_beside(self) -> bool:
        """Whether the file, which is that of a package, may import whatever lies in its folder."""
        return bool(self._asked("beside", lambda: may_import_all_beside(self.data)))

    @property
    def imports_what_it_is_told(self) -> bool:
        """Whether the file imports modules whose names it is handed, or finds."""
        return bool(self._asked("told", lambda: imports_what_it_is_told(self.data)))

    @property
    def quoted(self) -> tuple[str, ...]:
        """The texts of the file that are words by themselves."""
        found = self._asked("quoted", lambda: [word.decode("utf-8", "replace") for word in quoted(self.data)])
        return tuple(found)

    @property
    def dotted(self) -> tuple[str, ...]:
        """The texts of the file that are words with dots between."""
        found = self._asked("dotted", lambda: [word.decode("utf-8", "replace") for word in dotted(self.data)])
        return tuple(found)

    @property
    def named_for_stars(self) -> frozenset[bytes]:
        """What ``__all__`` of the file names, as far as its text shows."""
        return frozenset(self._asked("stars", lambda: sorted(named_for_stars(self.data))))

    @property
    def calls_at_top(self) -> TopCalls:
        """What the file calls when it is imported."""
        called, decorating, deriving = self._asked("calls", lambda: _top_calls(self.data))
        return TopCalls(frozenset(called), frozenset(decorating), frozenset(deriving))

    @property
    def shape(self) -> Shape | None:
        """How the file is made of an outline and bodies; None where nobody has lowered it in that way."""
        return Shape.of(self.known)

    def take_shape(self, shape: Shape) -> None:
        """Remember it."""
        self._asked(_SHAPE, lambda: astuple(shape))

    def learn(self, known: Mapping[str, Any]) -> None:
        """Take over what was found out elsewhere about the same content."""
        self.is_fresh = self.is_fresh or not known.keys() <= self.known.keys()
        self.known.update(known)

    def agree_with(self, others: Mapping[str, Any]) -> bool:
        """Whether all that was found out about another content is so of this one."""
        for name, value in others.items():
            if name not in _ASIDE:
                getattr(self, _FACTS[name])
                if self.known.get(name) != value:
                    return False
        return True


# What is kept that no result rests on by itself: the words that other facts are made of, and what is compared apart.
_ASIDE = frozenset({"words", _SHAPE})
_FACTS: Mapping[str, str] = {
    "own": "mentions_own",
    "matters": "may_matter",
    "launches": "may_launch",
    "leads": "leading",
    "threads": "starts_threads",
    "selects": "selects_device",
    "selecting": "selecting",
    "registers": "may_register",
    "serves": "may_serve",
    "answers": "may_answer",
    "begins": "starts_application",
    "tasks": "holds_tasks",
    "names": "names_modules",
    "programs": "programs_with_gpus",
    "classes": "classes",
    "routes": "may_route",
    "application": "application",
    "states": "states_a_device",
    "places": "places_on_gpu",
    "gpu": "mentions_gpu",
    "acts": "acts_at_top",
    "relative": "imports_relatively",
    "weight": "weight",
    "imports": "imports",
    "by name": "imports_by_name",
    "settings": "settings_places",
    "beside": "may_import_all_beside",
    "stars": "named_for_stars",
    "told": "imports_what_it_is_told",
    "quoted": "quoted",
    "dotted": "dotted",
    "calls": "calls_at_top",
}


def _programs_with_gpus(data: bytes) -> list[bytes]:
    if b"CUDA_VISIBLE_DEVICES" not in data or _STARTS_PROGRAMS.search(data) is None:
        return []
    itself = {ITSELF} if _ITSELF.search(data) else set()
    return sorted(itself | set(_PROGRAM.findall(data)))


def _registers(data: bytes) -> bool:
    """Whether a row begins with the decorator of a command."""
    return any(
        not data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()].strip(b" \t")
        for found in _REGISTERS.finditer(data)
    )


def _top_calls(data: bytes) -> tuple[list[bytes], list[bytes], list[bytes]]:
    found = calls_at_top(data)
    return sorted(found.called), sorted(found.decorating), sorted(found.deriving)


class KnownFacts(Mutable):
    """The facts of all files of a run, by content."""

    lexicon: Lexicon
    store: Store | None = None
    folder: str = ""
    # What is kept meanwhile and rests on facts is stamped with this; it counts once these are kept as well.
    _run: str | None = None
    _sealed: dict[str, bool] = field(default_factory=dict)
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

    def before(self, digest: bytes) -> Mapping[str, Any] | None:
        """What was found out in runs before about the content with this digest."""
        return self._before().get(digest)

    def keep(self) -> None:
        """Keep what this run found out, beside what others did."""
        if self.store is None:
            return
        if any(facts.is_fresh for facts in self._files.values()):
            self._write(self.store)
        if self._run is not None:
            self.store.put(_RUNS, self._run, b"")
            self._run = None

    def _write(self, store: Store) -> None:
        # Another run may have kept some meanwhile, and what that one found out its results rest on.
        before = self._read(store)
        own = {key: {**before.get(key, {}), **facts.known} for key, facts in self._files.items() if facts.known}
        kept = {**before, **own}
        if len(kept) > MOST_KEPT:
            kept = own
        store.put(_KIND, self._key(), marshal.dumps(kept))
        for facts in self._files.values():
            facts.is_fresh = False

    def stamp(self) -> str:
        """What results are marked with that rest on what is found out about files until this is kept."""
        self._run = self._run or secrets.token_hex(8)
        return self._run

    def are_whole(self, stamp: str) -> bool:
        """Whether all that was found out about files until a stamp was given is kept."""
        if stamp not in self._sealed:
            self._sealed[stamp] = self.store is not None and self.store.get(_RUNS, stamp) is not None
        return self._sealed[stamp]

    def _before(self) -> Mapping[bytes, dict[str, Any]]:
        if self._kept is None:
            self._kept = {} if self.store is None else self._read(self.store)
        return self._kept

    def _read(self, store: Store) -> dict[bytes, dict[str, Any]]:
        data = store.get(_KIND, self._key())
        found: dict[bytes, dict[str, Any]] = {} if data is None else marshal.loads(data)
        return found

    def _key(self) -> str:
        own = sorted(self.lexicon.vocabulary.own)
        return fingerprint.digest(fingerprint.analysis(), self.folder, *own)
