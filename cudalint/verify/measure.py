"""What a program measured against the comparison in its header."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Mapping

_COMPARISON = re.compile(r"\s*(\w+)\s*(==|!=|>=|<=|>|<)\s*(.+?)\s*")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def unmet(measure: str, measured: Mapping[str, str]) -> str | None:
    """Why what a program measured does not meet a comparison; ``None`` if it does."""
    parts = _COMPARISON.fullmatch(measure)
    if parts is None:
        return f"measure {measure!r} is not a comparison"
    name, sign, right = parts.groups()
    if name not in measured:
        return f"the program printed no 'measured: {name} = ...'"
    if _compares(measured[name], sign, right.strip("\"'")):
        return None
    return f"measured {name} = {measured[name]}, which is not {sign} {right}"


def _compares(left: str, sign: str, right: str) -> bool:
    with contextlib.suppress(ValueError):
        return _COMPARE[sign](float(left), float(right))
    return (left == right) is (sign == "==") if sign in ("==", "!=") else False
