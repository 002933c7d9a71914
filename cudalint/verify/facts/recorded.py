"""The expressions that the models rest on, with what was measured of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import tomli

from cudalint.structs import Frozen, replace


class Expression(Frozen):
    """One expression. ``in_child`` is ok, fails or hang; ``None`` where it was not asked, as is ``poisons``.

    With neither it has never been measured, and waits for a machine that does.
    """

    text: str
    poisons: bool | None = None
    initialises: bool | None = None
    in_child: str | None = None
    symptom: str | None = None
    raises: str | None = None
    gpus: int = 1

    @property
    def is_new(self) -> bool:
        """Whether nothing is recorded of it."""
        return self.poisons is None and self.in_child is None


class Framework(Frozen):
    """How expressions of a framework are measured, and what came of it."""

    name: str
    setup: str
    use: str
    expressions: tuple[Expression, ...]
    prepare: str | None = None
    check: str | None = None
    inherit: str | None = None
    hangs: bool = False


def frameworks() -> tuple[Framework, ...]:
    """All frameworks."""
    text = files("cudalint.verify.facts").joinpath("facts.toml").read_text("utf-8")
    return tuple(_framework(name, table) for name, table in tomli.loads(text).items())


def chosen(words: Iterable[str]) -> tuple[Framework, ...]:
    """The frameworks that a word names, and of the others the expressions in which a word stands; all without words."""
    every, wanted = frameworks(), tuple(words)
    if not wanted:
        return every
    names = {framework.name for framework in every}
    parts = [word for word in wanted if word not in names]
    found = (framework if framework.name in wanted else _part(framework, parts) for framework in every)
    return tuple(framework for framework in found if framework.expressions)


def unknown(words: Iterable[str]) -> str | None:
    """The first word that names nothing."""
    return next((word for word in words if not chosen([word])), None)


def _part(framework: Framework, words: Sequence[str]) -> Framework:
    patterns = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in words]
    named = (one for one in framework.expressions if any(pattern.search(one.text) for pattern in patterns))
    return replace(framework, expressions=tuple(named))


def _framework(name: str, table: Mapping[str, Any]) -> Framework:
    expressions = tuple(
        Expression(text=row["expression"], **{key: value for key, value in row.items() if key != "expression"})
        for row in table["expressions"]
    )
    return Framework(name=name, expressions=expressions, **{k: v for k, v in table.items() if k != "expressions"})
