"""Reads files and sorts them: which may be analysed, which can matter, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cudalint import rules
from cudalint.finding import Finding, Position, Span
from cudalint.project.markers import may_matter
from cudalint.text.decode import Refusal, decode
from cudalint.text.guard import MAX_BYTES, refuse
from cudalint.text.source import SourceFile

INTERNAL_ERROR = "CUD900"
SYNTAX_ERROR = "CUD901"
_NOTEBOOK = ".ipynb"


@dataclass(frozen=True, slots=True)
class Intake:
    """Files as they were read.

    ``sources`` may be analysed. ``mattering`` are the paths of those that speak of CUDA or processes; only
    they went through the guard, which costs more than all the rest of reading. ``findings`` are about
    files that cannot be analysed.
    """

    sources: tuple[SourceFile, ...] = ()
    mattering: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    files: int = 0
    size: int = 0

    def __add__(self, other: Intake) -> Intake:
        return Intake(
            self.sources + other.sources,
            self.mattering | other.mattering,
            self.findings + other.findings,
            self.warnings + other.warnings,
            self.files + other.files,
            self.size + other.size,
        )


@dataclass(slots=True)
class _Collector:
    """An intake under construction."""

    sources: list[SourceFile] = field(default_factory=list)
    mattering: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: int = 0
    size: int = 0
    matters: Callable[[bytes], bool] = may_matter

    def read(self, path: str) -> None:
        """Take in one file from the disk."""
        if path.endswith(_NOTEBOOK):
            self.warnings.append(f"{path}: notebooks are not read in this version")
            return
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except OSError as error:
            self._refuse(path, Refusal(f"it cannot be read: {error.strerror or type(error).__name__}"))
            return
        self.take(path, data)

    def take(self, path: str, data: bytes) -> None:
        """Take in bytes that are already read."""
        self.files += 1
        self.size += len(data)
        source = decode(path, data)
        if isinstance(source, Refusal):
            self._refuse(path, source)
            return
        self.admit(source)

    def admit(self, source: SourceFile) -> None:
        """Sort a decoded file by whether it matters and whether a parser may see it."""
        size = len(source.data)
        if not self.matters(source.data):
            # Unguarded, it may serve as context as long as nobody would choke on its size.
            if size <= MAX_BYTES:
                self.sources.append(source)
            return
        refusal = refuse(source.text, size)
        if refusal is not None:
            self._refuse(source.path, refusal)
            return
        self.sources.append(source)
        self.mattering.add(source.path)

    def _refuse(self, path: str, refusal: Refusal) -> None:
        self.findings.append(about_file(SYNTAX_ERROR, path, f"cannot analyse this file: {refusal.reason}"))

    def intake(self) -> Intake:
        """What has been taken in."""
        return Intake(
            tuple(self.sources),
            frozenset(self.mattering),
            tuple(self.findings),
            tuple(self.warnings),
            self.files,
            self.size,
        )


def read_files(
    paths: Iterable[str],
    instead: Mapping[str, bytes] | None = None,
    matters: Callable[[bytes], bool] = may_matter,
) -> Intake:
    """Read files from the disk, or ``instead`` what stands for them; ``matters`` tells which are worth a look."""
    collector = _Collector(matters=matters)
    for path in paths:
        data = None if instead is None else instead.get(path)
        if data is None:
            collector.read(path)
        else:
            collector.take(path, data)
    return collector.intake()


def take_bytes(path: str, data: bytes, matters: Callable[[bytes], bool] = may_matter) -> Intake:
    """Take in one file whose bytes are at hand."""
    collector = _Collector(matters=matters)
    collector.take(path, data)
    return collector.intake()


def take_text(path: str, text: str, matters: Callable[[bytes], bool] = may_matter) -> Intake:
    """Take in one file that someone else has decoded, whatever encoding it declares."""
    data = text.encode("utf-8", "surrogatepass")
    collector = _Collector(files=1, size=len(data), matters=matters)
    collector.admit(SourceFile(path, text, data))
    return collector.intake()


def about_file(code: str, path: str, message: str) -> Finding:
    """A finding about a file as a whole, at 1:1."""
    rule = rules.rule(code)
    start = Position(1, 1)
    return Finding(rule.code, rule.name, rule.severity, message, Span(path, start, start))
