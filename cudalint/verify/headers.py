"""Fixtures: programs with a PEP 723 header that says how they end, and markers that say what cudalint finds."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path

import tomli

from cudalint import disk
from cudalint.config import nearest
from cudalint.structs import Frozen

_HEADER = re.compile(r"^# /// script\r?\n(?P<body>(?:#.*\n)*?)# ///\r?$", re.MULTILINE)
_EXPECT = re.compile(r"#\s*expect:\s*(?P<list>CUD\d{3}@\d+(?:\s*,\s*CUD\d{3}@\d+)*)")
_MISSING = re.compile(r"#\s*expect-missing:\s*(?P<code>CUD\d{3})")
_RULE_FOLDER = re.compile(r"CUD\d{3}")
_SHAPE = re.compile(r"(?:broken|ok)_\w+$")


_KEYS = ("outcome", "message", "measure", "trigger", "gpus", "limit", "start-method", "also", "network")


class HeaderError(ValueError):
    """A header says something that cannot be followed; the text is one clear line."""


class Outcome(Enum):
    """How a program ends on hardware."""

    CRASH = "crash"
    HANG = "hang"
    CHILD_DEATH = "child-death"
    WRONG_DEVICE = "wrong-device"
    COST = "cost"
    LATENT = "latent"
    OK = "ok"

    @property
    def fails(self) -> bool:
        """Whether the program does not do its work, or loses part of it."""
        return self in (Outcome.CRASH, Outcome.HANG, Outcome.CHILD_DEATH)


class Header(Frozen):
    """What a fixture says about itself."""

    outcome: Outcome
    message: str | None = None
    measure: str | None = None
    trigger: tuple[tuple[str, str], ...] = ()
    gpus: int = 1
    limit: float = 60.0
    start_method: str | None = None
    dependencies: tuple[str, ...] = ()
    network: bool = False
    also: Outcome | None = None


class Fixture(Frozen):
    """A program with a header. ``digest`` is the sha256 of its bytes.

    ``path`` is the main program. ``folder`` is what it lies in where it is a fixture of several files; then the
    digest covers all of them.
    """

    path: Path
    name: str
    digest: str
    header: Header
    codes: frozenset[str]
    known_misses: frozenset[str]
    folder: Path | None = None

    @property
    def root(self) -> Path:
        """All of it: the file, or the folder of its files."""
        return self.folder or self.path

    @property
    def group(self) -> str:
        """The folder that it lies in: that of a rule, as a rule."""
        return self.root.parent.name


def parse(text: str) -> Header | None:
    """The header of a program, ``None`` where it has none."""
    match = _HEADER.search(text)
    if match is None:
        return None
    lines = [line[2:] if line.startswith("# ") else line[1:] for line in match["body"].splitlines()]
    try:
        document = tomli.loads("\n".join(lines))
    except tomli.TOMLDecodeError as error:
        raise HeaderError(f"the header is not valid TOML: {error}") from None
    tools = document.get("tool")
    table = tools.get("cudalint") if isinstance(tools, dict) else None
    if not isinstance(table, dict):
        return None
    dependencies = document.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise HeaderError(f"dependencies must be a list of strings, not {dependencies!r}")
    return _header(table, tuple(dependencies))


def load(path: Path) -> Fixture | None:
    """The fixture in a file, ``None`` where the file is none."""
    try:
        data = disk.read(str(path))
    except disk.Unreadable as reason:
        raise HeaderError(f"{path}: {reason}") from None
    text = data.decode("utf-8", "replace")
    try:
        header = parse(text)
    except HeaderError as error:
        raise HeaderError(f"{path}: {error}") from None
    if header is None:
        return None
    folder = folder_of(path)
    top = path if folder is None else folder
    texts = [text] if folder is None else [p.read_text("utf-8", "replace") for p in files_of(folder)]
    marked = {i.strip().partition("@")[0] for t in texts for m in _EXPECT.finditer(t) for i in m["list"].split(",")}
    missed = {match["code"] for t in texts for match in _MISSING.finditer(t)}
    rule = {top.parent.name} if _RULE_FOLDER.fullmatch(top.parent.name) else set()
    return Fixture(
        path=path,
        name=f"{top.parent.name}/{top.name}",
        digest=hashlib.sha256(data if folder is None else _joined(folder)).hexdigest(),
        header=header,
        codes=frozenset(marked | missed | rule),
        known_misses=frozenset(missed),
        folder=folder,
    )


def folder_of(program: Path) -> Path | None:
    """The folder of a fixture of several files, where a main program belongs to one."""
    for folder in program.absolute().parents:
        if _SHAPE.match(folder.name) and _RULE_FOLDER.fullmatch(folder.parent.name):
            return folder
    return None


def files_of(folder: Path) -> list[Path]:
    """The files of a fixture of several files."""
    return sorted(folder.rglob("*.py"))


def _joined(folder: Path) -> bytes:
    """Names and bytes of all files of a folder."""
    parts = ((path.relative_to(folder).as_posix().encode(), path.read_bytes()) for path in files_of(folder))
    return b"".join(b"%s %d\n%s" % (name, len(data), data) for name, data in parts)


def find(paths: Iterable[Path]) -> list[Fixture]:
    """The fixtures at the paths, each once. A named file must be one; in folders other files are passed over."""
    found: dict[Path, Fixture] = {}
    for path in paths:
        for candidate in _files(path):
            fixture = load(candidate)
            if fixture is not None:
                found[candidate] = fixture
            elif candidate == path.absolute():
                raise HeaderError(f"{path}: no [tool.cudalint] header says how this program ends")
    return [found[path] for path in sorted(found)]


def default_folder() -> Path:
    """The fixtures that come with cudalint: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_fixtures"
    return shipped if shipped.is_dir() else package.parent / "fixtures"


def _files(path: Path) -> Iterator[Path]:
    absolute = path.absolute()
    if absolute.is_dir():
        yield from sorted(path for path in absolute.rglob("*.py") if path.is_file())
    else:
        yield absolute


def _header(table: Mapping[str, object], dependencies: tuple[str, ...]) -> Header:
    for key in table:
        if key not in _KEYS:
            raise HeaderError(f"unknown key {key!r}{nearest(key, _KEYS)}")
    known = [outcome.value for outcome in Outcome]
    if table.get("outcome") not in known:
        raise HeaderError(f"outcome must be one of {', '.join(known)}, not {table.get('outcome')!r}")
    outcome = Outcome(table["outcome"])
    for key, shown_by in (("measure", (Outcome.WRONG_DEVICE, Outcome.COST)), ("trigger", (Outcome.LATENT,))):
        if outcome in shown_by and not table.get(key):
            raise HeaderError(f"outcome {outcome.value!r} is shown by {key!r}, which is missing")
    trigger = table.get("trigger", {})
    if not isinstance(trigger, dict):
        raise HeaderError("trigger must be a table of environment variables")
    return Header(
        outcome=outcome,
        message=_pattern(table),
        measure=_text(table, "measure"),
        trigger=tuple(sorted((str(key), str(value)) for key, value in trigger.items())),
        gpus=_count(table, "gpus", 1),
        limit=_seconds(table, "limit", 60),
        start_method=_text(table, "start-method"),
        dependencies=dependencies,
        network=_flag(table, "network"),
        also=_also(table),
    )


def _also(table: Mapping[str, object]) -> Outcome | None:
    text = _text(table, "also")
    known = [outcome.value for outcome in Outcome if outcome.fails]
    if text is not None and text not in known:
        raise HeaderError(f"also must be one of {', '.join(known)}, not {text!r}")
    return None if text is None else Outcome(text)


def _text(table: Mapping[str, object], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise HeaderError(f"{key} must be a string, not {value!r}")
    return value


def _pattern(table: Mapping[str, object]) -> str | None:
    text = _text(table, "message")
    try:
        re.compile(text or "")
    except re.error as error:
        raise HeaderError(f"message is not a regular expression: {error}") from None
    return text


def _flag(table: Mapping[str, object], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise HeaderError(f"{key} must be true or false, not {value!r}")
    return value


def _count(table: Mapping[str, object], key: str, default: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise HeaderError(f"{key} must be a whole number, not {value!r}")
    return value


def _seconds(table: Mapping[str, object], key: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise HeaderError(f"{key} must be a number of seconds, not {value!r}")
    return value
