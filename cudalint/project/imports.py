"""The imports of a file, found in its bytes: which modules it may run, and which of them when it is imported."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from itertools import chain

from cudalint.project.blocks import runs_at_once, texts
from cudalint.structs import Frozen

_STATEMENT = re.compile(
    rb"^(?P<indent>[ \t]*)(?:from[ \t]+(?P<home>\.*[ \t]*[\w.]*)[ \t]+import\b[ \t]*"
    rb"(?P<names>\([^)]*\)|(?:[^\r\n#;\\]|\\\r?\n)*)"
    rb"|import[ \t]+(?P<modules>[\w., \t]+))",
    re.MULTILINE,
)
_WORD = re.compile(rb"import\b")
_DYNAMIC = (b"import_module", b"__import__")
# Each begins with a word that is looked for as such: an alternative would be tried at every byte.
_CALLS = tuple(re.compile(rb"%s\(\s*[\"'](?P<name>[.\w]+)[\"']" % word) for word in _DYNAMIC)
# Where that is asked for something else than a text, any word may be the name: of a parameter's default, in a dict.
_ASKED_BY_NAME = re.compile(rb"(?:import_module|__import__)\(\s*(?:[A-Za-z_]\w*[^\"'\w]|f[\"'])")
# The same, also of a text that goes on with what is not one.
_TOLD = re.compile(rb"(?:import_module|__import__)\(\s*(?:[A-Za-z_]\w*[^\"'\w]|f[\"']|[\"'][.\w]*[\"']\s*[+%])")
# A dotted text may name a module, or what one defines, where a program imports by such texts or is told what to run.
_TEXT = re.compile(rb"([\"'])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)\1")
# One that ends in something unknown names one of the modules in a package.
_TEXT_IN_PART = re.compile(rb"([\"'])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(?:\1|[{%])")
# A row of a table in a text: ``embed = stages.dense:Embed``.
_IN_ROW = re.compile(rb"(?:^|[\s=,;|])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*(?=[\s,;|\"'\\]|$)", re.MULTILINE)
# A package may import whatever lies in its folder: it lists that, to import it or to name it for a star import, or
# hands its name or its folder to what does.
_LISTING = re.compile(rb"(?:listdir|scandir|iterdir|glob|iter_modules|walk_packages|os\.walk)\(")
_NAMES_ALL = re.compile(rb"^__all__[ \t]*=[^\n]*\bfor\b", re.MULTILINE)
_HANDED = re.compile(
    rb"^[A-Za-z_][\w.]*\([^)\n]*(?:\b__(?:name|package|path|file)__|([\"'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\1)",
    re.MULTILINE,
)
# A package may import one of the modules beside it, when it is asked for that: ``import_module(f".{name}", __name__)``.
_ONE_BESIDE = re.compile(
    rb"import_module\(\s*(?:f[\"'](?:\.\{|\{__(?:name|package)__\}\.\{)|__(?:name|package)__\s*\+|[\"']\.[\"']\s*\+"
    rb"|[^()\n]*,\s*(?:package\s*=\s*)?__(?:name|package)__\s*\))"
)
# What it names one by one for a star import.
_ALL = re.compile(rb"^__all__[ \t]*\+?=[ \t]*[\[(]([^\])]*)", re.MULTILINE)
_QUOTED = re.compile(rb"[\"'](\w+)[\"']")
# What a server is told to serve, or a table of names leads to: a module, and the application in it.
_SERVED = re.compile(rb"([\"'])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*(?:\(\))?\1")
_SERVERS = (b"uvicorn", b"hypercorn", b"granian")
# A program that a program starts: ``[sys.executable, "tools/rank.py"]``, ``[sys.executable, "-m", "trainer"]``.
_STARTS = b"sys.executable"
_STARTED = re.compile(rb"([\"'])(?:\./)?([A-Za-z_][\w/]*)\.py\1|[\"']-m[\"'],\s*([\"'])([A-Za-z_][\w.]*)\3")
ONE_OF_ALL = "*"
_BY_TEXT = (b"__main__", *_DYNAMIC, b"_target_", b"import_string")
_NAME = re.compile(rb"([A-Za-z_]\w*)(?:\s+as\s+\w+)?")
_COMMENT = re.compile(rb"#[^\n]*")


class Imported(Frozen):
    """One import: the module, how many dots stand before it, the names that may be modules in it.

    ``at_once`` where importing the file runs it; what stands in a function waits for its call. ``is_text`` where
    nothing but a text names the module, or something in it; ``ONE_OF_ALL`` is what the text does not show.
    """

    module: str
    level: int
    names: tuple[str, ...]
    at_once: bool
    is_text: bool = False

    @property
    def row(self) -> tuple[str, int, tuple[str, ...], bool, bool]:
        """All that it holds, as plain data; ``dataclasses.astuple`` copies deeply, which costs more than to find it."""
        return self.module, self.level, self.names, self.at_once, self.is_text


def _statements(data: bytes) -> Iterator[tuple[re.Match[bytes], bool]]:
    """The import statements, and whether each is only an example in a text, as docstrings have them.

    They are looked for where the word is: rows are many, and imports few. So are texts in which one stands, so that
    quotes are counted before anything is taken apart.
    """
    end = counted = quotes = apostrophes = 0
    spans: list[tuple[int, int]] | None = None
    for word in _WORD.finditer(data):
        start = data.rfind(b"\n", 0, word.start()) + 1
        found = _STATEMENT.match(data, start) if start >= end else None
        if found is None:
            continue
        end = found.end()
        quotes += data.count(b'"""', counted, start)
        apostrophes += data.count(b"'''", counted, start)
        counted = start
        if quotes % 2 == 0 and apostrophes % 2 == 0:
            yield found, False
            continue
        spans = texts(data) if spans is None else spans
        before = bisect(spans, (start, len(data))) - 1
        yield found, before >= 0 and start < spans[before][1]


def may_import_all_beside(data: bytes) -> bool:
    """Whether a package may import whatever lies in its folder."""
    imports = _NAMES_ALL.search(data) is not None or any(b"%s(" % word in data for word in _DYNAMIC)
    if imports and _LISTING.search(data) is not None:
        return True
    return _HANDED.search(data) is not None


def imports_what_it_is_told(data: bytes) -> bool:
    """Whether a file imports modules whose names it is handed, or finds: ``import_module(f"{package}.{name}")``."""
    return any(b"%s(" % word in data for word in _DYNAMIC) and _TOLD.search(data) is not None


def quoted(data: bytes) -> list[bytes]:
    """The texts of a file that are words by themselves."""
    return sorted(set(_QUOTED.findall(data)))


def dotted(data: bytes) -> list[bytes]:
    """The texts of a file that are words with dots between."""
    return sorted({found[2] for found in _TEXT.finditer(data)})


def named_for_stars(data: bytes) -> set[bytes]:
    """The words that ``__all__`` is made of."""
    return {word for shown in _ALL.findall(data) for word in _QUOTED.findall(shown)}


def imported(data: bytes) -> Iterator[Imported]:
    """The import statements of a file, its ``import_module`` calls, and its texts that may name modules.

    Those only for type checkers are none.
    """
    for found, in_text in _statements(data):
        at_once = not found["indent"] or runs_at_once(data, found.start(), len(found["indent"]))
        if at_once is None:
            continue
        # The text of a program may be run by something else, some day.
        at_once = at_once and not in_text
        if found["modules"] is not None:
            for part in found["modules"].decode("ascii", "replace").split(","):
                yield Imported(part.split(" as ")[0].strip(), 0, (), at_once)
            continue
        home = found["home"].decode("utf-8", "replace").replace(" ", "").replace("\t", "")
        names = tuple(n.decode("utf-8", "replace") for n in _NAME.findall(_COMMENT.sub(b"", found["names"])))
        yield Imported(home.lstrip("."), len(home) - len(home.lstrip(".")), names, at_once)
    for found in chain.from_iterable(call.finditer(data) for call in _CALLS):
        name = found["name"].decode("utf-8", "replace")
        yield Imported(name.lstrip("."), len(name) - len(name.lstrip(".")), (), False)
    if _STARTS in data:
        started = dict.fromkeys((found[2] or found[4]).decode("ascii", "replace") for found in _STARTED.finditer(data))
        programs = [f"{name.replace('/', '.')}{end}" for name in started for end in ("", ".__main__")]
        yield from (Imported(program, 0, (), False, is_text=True) for program in programs)
    by_text = any(word in data for word in _BY_TEXT)
    if by_text or any(word in data for word in _SERVERS):
        served = dict.fromkeys(found[2].decode("utf-8", "replace") for found in _SERVED.finditer(data))
        yield from (Imported(text, 0, (), False, is_text=True) for text in served)
    if _DYNAMIC[0] in data and _ONE_BESIDE.search(data) is not None:
        words = dict.fromkeys(word.decode("utf-8", "replace") for word in _QUOTED.findall(data))
        yield Imported("", 1, (*words, ONE_OF_ALL), False)
    if any(word in data for word in _DYNAMIC) and _ASKED_BY_NAME.search(data) is not None:
        words = dict.fromkeys(word.decode("utf-8", "replace") for word in _QUOTED.findall(data))
        yield from (Imported(word, 0, (), False, is_text=True) for word in words if word.isidentifier())
        rows = dict.fromkeys(found[1].decode("utf-8", "replace") for found in _IN_ROW.finditer(data))
        yield from (Imported(text, 0, (), False, is_text=True) for text in rows)
    if by_text:
        texts = dict.fromkeys(found[2].decode("utf-8", "replace") for found in _TEXT.finditer(data))
        yield from (Imported(text, 0, (), False, is_text=True) for text in texts)
        packages = dict.fromkeys(found[2].decode("utf-8", "replace") for found in _TEXT_IN_PART.finditer(data))
        yield from (Imported(text, 0, (ONE_OF_ALL,), False, is_text=True) for text in packages)
