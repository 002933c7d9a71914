"""Which releases of packages a project is used with, as far as its files name the newest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cudalint.project.scripts import METADATA, read

# The files in its top folder by which a project asks for packages.
FILES = (*METADATA, "environment.yaml", "environment.yml", "requirements.in", "requirements.txt")
# A package, the numbers of the newest release that is asked for, and whether that one is admitted itself.
Newest = tuple[str, tuple[int, ...], bool]

_CLAUSE = r"(?:==|~=|<=|>=|!=|<|>|\^|=)\s*[\"']?\s*(?:\^|~)?\s*\d[\w.*]*"
_ASKED = re.compile(rf"(?<![\w.-])([A-Za-z][\w.-]*)(?:\[[^\]\n]*\])?\s*({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)")
_ONE = re.compile(r"(==|~=|<=|>=|!=|<|>|\^|=)\s*[\"']?\s*(\^|~)?\s*(\d[\w.*]*)")
# No release has longer numbers, and Python makes none of very long ones.
_NUMBER = re.compile(r"\d{1,18}")


def newest(root: str) -> frozenset[Newest]:
    """The newest releases that the files of a project admit: of one file the loosest, of several the strictest."""
    found: dict[str, tuple[tuple[int, ...], bool]] = {}
    for name in FILES:
        for package, bound in _in_file(read(root, name)).items():
            found[package] = min(found.get(package, bound), bound)
    return frozenset((package, *bound) for package, bound in found.items())


def is_older(known: Iterable[Newest], package: str, release: str) -> bool:
    """Whether a package is only used with releases before one."""
    wanted = _numbers(release)
    for name, numbers, admitted in known:
        if name == package:
            return numbers < wanted or (numbers == wanted and not admitted)
    return False


def _in_file(text: str) -> dict[str, tuple[tuple[int, ...], bool]]:
    """The loosest bound of each package; none of one that is also asked for without."""
    found: dict[str, tuple[tuple[int, ...], bool] | None] = {}
    for match in _ASKED.finditer(text):
        package = re.sub(r"[-.]+", "_", match[1]).lower()
        bound = min(_bounds(match[2]), default=None)
        before = found.get(package, bound)
        found[package] = None if bound is None or before is None else max(before, bound)
    return {package: bound for package, bound in found.items() if bound is not None}


def _bounds(clauses: str) -> Iterator[tuple[tuple[int, ...], bool]]:
    for operator, inner, text in _ONE.findall(clauses):
        numbers = _numbers(text)
        match inner or operator:
            case "<":
                yield numbers, False
            case "<=":
                yield numbers, True
            case "==" | "=" if "*" not in text:
                yield numbers, True
            case "==" | "=":
                yield _next(numbers), False
            case "~=" | "~":
                yield _next(numbers[:-1] or numbers), False
            case "^":
                yield _next(numbers[:1]), False


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a release without zeros at the end: 5 and 5.0 are one."""
    numbers = [int(found) for part in text.split(".") if (found := _digits(part))]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _digits(part: str) -> str:
    match = _NUMBER.match(part)
    return match[0] if match is not None else ""


def _next(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The release that comes after all that begin so."""
    return (*numbers[:-1], numbers[-1] + 1)
