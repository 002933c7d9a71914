"""Which releases of packages a project is used with, as far as its files name them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudalint.models.releases import Admitted, Numbers, normal, numbers
from cudalint.project.scripts import METADATA, read
from cudalint.structs import Frozen

# The files in its top folder by which a project asks for packages, and those that hold what was chosen for it.
LOCKS = ("pdm.lock", "poetry.lock", "pylock.toml", "uv.lock")
FILES = (*METADATA, "environment.yaml", "environment.yml", "requirements.in", "requirements.txt", *LOCKS)

_CLAUSE = r"(?:==|~=|<=|>=|!=|<|>|\^|=)\s*[\"']?\s*(?:\^|~)?\s*\d[\w.*]*"
_ASKED = re.compile(rf"(?<![\w.-])([A-Za-z][\w.-]*)(?:\[[^\]\n]*\])?\s*({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)")
_ONE = re.compile(r"(==|~=|<=|>=|!=|<|>|\^|=)\s*[\"']?\s*(\^|~)?\s*(\d[\w.*]*)")
_LOCKED = re.compile(r"^name = \"([\w.-]+)\"\nversion = \"(\d[\w.]*)", re.MULTILINE)

# The newest release of several clauses, and whether that one is admitted itself.
_Highest = tuple[Numbers, bool]


class _Bounds(Frozen):
    """Between which releases one is asked for; None where an end is open."""

    lowest: Numbers | None
    highest: _Highest | None


def admitted(root: str) -> frozenset[Admitted]:
    """The releases that the files of a project admit: of one file the loosest, of several the strictest."""
    found: dict[str, _Bounds] = {}
    for name in FILES:
        text = read(root, name)
        for package, bounds in (_in_lock(text) if name in LOCKS else _in_file(text)).items():
            found[package] = _strictest(found[package], bounds) if package in found else bounds
    return frozenset(
        Admitted(package, bounds.lowest or (), *(bounds.highest or (None, False)))
        for package, bounds in found.items()
        if bounds.lowest or bounds.highest
    )


def _in_file(text: str) -> dict[str, _Bounds]:
    """The loosest bounds of each package; an end is open of one that is also asked for without it."""
    found: dict[str, _Bounds] = {}
    for match in _ASKED.finditer(text):
        package = normal(match[1])
        bounds = _Bounds(max(_lowest(match[2]), default=None), min(_highest(match[2]), default=None))
        found[package] = _loosest(found[package], bounds) if package in found else bounds
    return found


def _in_lock(text: str) -> dict[str, _Bounds]:
    """The releases that were chosen: of several, for several Pythons, the oldest and the newest."""
    found: dict[str, _Bounds] = {}
    for name, release in _LOCKED.findall(text):
        package, chosen = normal(name), numbers(release)
        bounds = _Bounds(chosen, (chosen, True))
        found[package] = _loosest(found[package], bounds) if package in found else bounds
    return found


def _loosest(one: _Bounds, other: _Bounds) -> _Bounds:
    lowest = None if one.lowest is None or other.lowest is None else min(one.lowest, other.lowest)
    return _Bounds(lowest, None if one.highest is None or other.highest is None else max(one.highest, other.highest))


def _strictest(one: _Bounds, other: _Bounds) -> _Bounds:
    lowest = max((b.lowest for b in (one, other) if b.lowest is not None), default=None)
    return _Bounds(lowest, min((b.highest for b in (one, other) if b.highest is not None), default=None))


def _highest(clauses: str) -> Iterator[_Highest]:
    for operator, inner, text in _ONE.findall(clauses):
        given = numbers(text)
        match inner or operator:
            case "<":
                yield given, False
            case "<=":
                yield given, True
            case "==" | "=" if "*" not in text:
                yield given, True
            case "==" | "=":
                yield _next(given), False
            case "~=" | "~":
                yield _next(given[:-1] or given), False
            case "^":
                yield _next(given[:1]), False


def _lowest(clauses: str) -> Iterator[Numbers]:
    for operator, inner, text in _ONE.findall(clauses):
        if (inner or operator) not in ("<", "<=", "!="):
            yield numbers(text)


def _next(given: Numbers) -> Numbers:
    """The release that comes after all that begin so."""
    return (*given[:-1], given[-1] + 1)
