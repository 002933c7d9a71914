"""Releases of packages: their numbers, the range of them that an entry is about, and those that a project admits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from cudalint.structs import Frozen

Numbers = tuple[int, ...]

# No release has longer numbers, and Python makes none of very long ones.
_NUMBER = re.compile(r"\d{1,18}")
_RANGE = re.compile(r"([A-Za-z][\w.-]*)\s+(?:>=\s*(\d[\w.]*))?\s*,?\s*(?:<\s*(\d[\w.]*))?")


class Releases(Frozen):
    """The releases of a package from one on, and before another; either end may be open. ``package``: its name."""

    package: str
    first: Numbers = ()
    end: Numbers | None = None


class Admitted(Frozen):
    """The releases of a package that the files of a project admit.

    ``lowest`` is empty and ``highest`` None where they do not say; ``includes``: the highest is admitted itself.
    """

    package: str
    lowest: Numbers = ()
    highest: Numbers | None = None
    includes: bool = False

    def are_before(self, end: Numbers) -> bool:
        """Whether all of them are older than a release."""
        return self.highest is not None and (self.highest < end or (self.highest == end and not self.includes))

    def may_be_before(self, end: Numbers) -> bool:
        """Whether some of them are older than a release: those that are not told of are the newest."""
        return self.are_before(end) or () < self.lowest < end


@cache
def parsed(text: str) -> Releases | None:
    """What ``surya-ocr >=0.17,<0.22`` means: the distribution as it is installed, and its releases; None for others."""
    found = _RANGE.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        return None
    return Releases(normal(found[1]), numbers(found[2] or ""), numbers(found[3]) if found[3] else None)


def normal(package: str) -> str:
    """The name of a package as all spellings of it are compared."""
    return re.sub(r"[-.]+", "_", package).lower()


def numbers(text: str) -> Numbers:
    """The numbers of a release without zeros at the end: 5 and 5.0 are one."""
    found = [int(digits[0]) for part in text.split(".") if (digits := _NUMBER.match(part))]
    while len(found) > 1 and found[-1] == 0:
        found.pop()
    return tuple(found)


def written(given: Numbers) -> str:
    """How a release is written."""
    return ".".join(map(str, given))


def of(known: Iterable[Admitted], package: str) -> Admitted:
    """What a project admits of a package."""
    return next((one for one in known if one.package == package), Admitted(package))
