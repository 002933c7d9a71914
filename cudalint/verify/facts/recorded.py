"""The expressions that the models rest on, with what was measured of each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression. ``in_child`` is ok, fails or hang; ``None`` where it was not asked."""

    text: str
    poisons: bool
    initialises: bool | None = None
    in_child: str | None = None
    symptom: str | None = None
    raises: str | None = None


@dataclass(frozen=True, slots=True)
class Framework:
    """How expressions of a framework are measured, and what came of it."""

    name: str
    setup: str
    use: str
    expressions: tuple[Expression, ...]
    prepare: str | None = None
    inherit: str | None = None
    hangs: bool = False


def frameworks(names: Iterable[str] = ()) -> tuple[Framework, ...]:
    """All frameworks, or the named ones."""
    text = files("cudalint.verify.facts").joinpath("facts.toml").read_text("utf-8")
    wanted = frozenset(names)
    return tuple(_framework(name, table) for name, table in tomllib.loads(text).items() if not wanted or name in wanted)


def _framework(name: str, table: Mapping[str, Any]) -> Framework:
    expressions = tuple(
        Expression(text=row["expression"], **{key: value for key, value in row.items() if key != "expression"})
        for row in table["expressions"]
    )
    return Framework(name=name, expressions=expressions, **{k: v for k, v in table.items() if k != "expressions"})
