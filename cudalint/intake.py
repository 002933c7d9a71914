"""Reads files and sorts them: which may be analysed, which can matter, and what is wrong with the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from cudalint import disk, rules
from cudalint.finding import Finding, at
from cudalint.limits import DEFAULT
from cudalint.structs import Frozen, Mutable, field
from cudalint.text.decode import Refusal, decode, searched
from cudalint.text.guard import too_large
from cudalint.text.source import SourceFile

INTERNAL_ERROR = "CUD900"
SYNTAX_ERROR = "CUD901"
_NOTEBOOK = ".ipynb"
# Kernels say it in several ways.
_SPOKEN = frozenset({"python", "ipython", "python3", "ipython3"})


class Intake(Frozen):
    """Files as they were read.

    ``sources`` may be analysed. ``mattering`` are the paths of those that speak of CUDA or processes; only
    they went through the guard, which costs more than all the rest of reading. ``findings`` are about
    files that cannot be analysed; ``notes`` say what was not read.
    """

    sources: tuple[SourceFile, ...] = ()
    mattering: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: int = 0
    size: int = 0

    def __add__(self, other: Intake) -> Intake:
        return Intake(
            self.sources + other.sources,
            self.mattering | other.mattering,
            self.findings + other.findings,
            self.warnings + other.warnings,
            self.notes + other.notes,
            self.files + other.files,
            self.size + other.size,
        )


class Read(Frozen):
    """A file as the disk gave it: its bytes, or why there are none.

    ``is_nothing`` says that no program is there at all, so that nothing is left unchecked. ``source`` is there where
    the bytes are a program that was taken from a notebook.
    """

    path: str
    data: bytes
    refusal: Refusal | None = None
    is_nothing: bool = False
    source: SourceFile | None = None

    def decoded(self) -> SourceFile | Refusal:
        """The text of a file that was read."""
        return self.source or decode(self.path, self.data)


def states(files: Iterable[Read]) -> Iterator[str | bytes]:
    """What tells these files, in this state, from all others: three parts for each."""
    for file in files:
        yield from (file.path, "" if file.refusal is None else file.refusal.reason, file.data)


class _Collector(Mutable):
    """An intake under construction."""

    matters: Callable[[bytes], bool]
    sources: list[SourceFile] = field(default_factory=list)
    mattering: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: int = 0
    size: int = 0
    is_context: bool = False
    most: int = DEFAULT.file_size

    def add(self, read: Read) -> None:
        """Take in one file that was read."""
        if read.is_nothing and read.refusal is not None:
            self.warnings.append(f"{read.path}: not checked: {read.refusal.reason}")
        elif read.refusal is not None:
            self._refuse(read.path, read.refusal)
        else:
            self._take(read)

    def _take(self, read: Read) -> None:
        self.files += 1
        self.size += len(read.data)
        source = read.decoded()
        if isinstance(source, Refusal):
            self._refuse(read.path, source)
            return
        self.admit(source)

    def admit(self, source: SourceFile) -> None:
        """Sort a decoded file by whether it matters and whether it is small enough."""
        matters = self.matters(source.data)
        refusal = too_large(len(source.data), self.most)
        if refusal is None:
            # How deep it nests is measured when the parser is to see it, if ever: most files are not parsed.
            self.sources.append(source)
            self.mattering.update([source.path] if matters else [])
        elif matters and not self.is_context:
            self._refuse(source.path, refusal)

    def _refuse(self, path: str, refusal: Refusal) -> None:
        self.findings.append(about_file(SYNTAX_ERROR, path, f"cannot analyse this file: {refusal.reason}"))

    def intake(self) -> Intake:
        """What has been taken in."""
        return Intake(
            tuple(self.sources),
            frozenset(self.mattering),
            tuple(self.findings),
            tuple(self.warnings),
            files=self.files,
            size=self.size,
        )


def read(paths: Iterable[str], instead: Mapping[str, bytes] | None = None) -> tuple[Read, ...]:
    """The bytes of files from the disk, or ``instead`` what stands for them.

    Of a notebook these are the bytes of its program, and modules that it writes beside itself are read with it, where
    they are not on the disk.
    """
    given = instead or {}
    found = (Read(path, given[path]) if path in given else _from_disk(path) for path in paths)
    return tuple(part for file in found for part in (programs(file) if file.path.endswith(_NOTEBOOK) else (file,)))


def programs(file: Read) -> tuple[Read, ...]:
    """The programs of a notebook, or why there are none."""
    if file.refusal is not None:
        return (file,)
    from cudalint.text import notebook  # most projects have none

    found = notebook.read(file.path, file.data)
    if isinstance(found, Refusal):
        return (Read(file.path, b"", found),)
    if found.language not in _SPOKEN:
        return (Read(file.path, b"", Refusal(f"its cells are {found.language}, not Python"), is_nothing=True),)
    own, *written = found.sources()
    return tuple(
        Read(source.path, source.data, source=source)
        for source in (own, *written)
        if source is own or not os.path.lexists(source.path)
    )


def _from_disk(path: str) -> Read:
    try:
        return Read(path, disk.read(path))
    except disk.Nothing as reason:
        return Read(path, b"", Refusal(str(reason)), is_nothing=True)
    except disk.Unreadable as reason:
        return Read(path, b"", Refusal(_unlisted(path) or str(reason)))


def _unlisted(path: str) -> str | None:
    """Why a folder stands among the files: nobody may say what lies in it."""
    if not os.path.isdir(path):
        return None
    try:
        os.scandir(path).close()
    except OSError as error:
        return f"it is a folder that cannot be listed: {disk.words(error)}"
    return None


def sort(
    files: Iterable[Read],
    matters: Callable[[bytes], bool],
    *,
    is_context: bool = False,
    most: int = DEFAULT.file_size,
) -> Intake:
    """Sort what was read; ``matters`` tells which files are worth a look, ``most`` how many bytes these may have.

    Context is what a run is not about: nothing is reported of it, so it is measured only where it is parsed.
    """
    collector = _Collector(matters=matters, is_context=is_context, most=most)
    for file in files:
        collector.add(file)
    return collector.intake()


def take_bytes(path: str, data: bytes, matters: Callable[[bytes], bool], most: int = DEFAULT.file_size) -> Intake:
    """Take in one file whose bytes are at hand."""
    return sort(programs(Read(path, data)) if path.endswith(_NOTEBOOK) else (Read(path, data),), matters, most=most)


def take_text(path: str, text: str, matters: Callable[[bytes], bool], most: int = DEFAULT.file_size) -> Intake:
    """Take in one file that someone else has decoded, whatever encoding it declares."""
    data = text.encode("utf-8", "surrogatepass")
    collector = _Collector(files=1, size=len(data), matters=matters, most=most)
    collector.admit(SourceFile(path, text, searched(data)))
    return collector.intake()


def about_file(code: str, path: str, message: str, row: int = 0, column: int = 0) -> Finding:
    """A finding about a file as a whole, at 1:1, or about one character of it."""
    rule = rules.rule(code)
    return Finding(rule.code, rule.name, rule.severity, message, at(path, row, column))
