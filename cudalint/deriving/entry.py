"""One entry of a model file, as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from cudalint.structs import Frozen

Setting: TypeAlias = "str | bool | list[str] | list[bool] | list[int] | Mapping[str, Setting]"


class ModelEntry(Frozen):
    """What a function is said to do: its names, and the keys and values in the order in which they are written."""

    names: tuple[str, ...]
    settings: tuple[tuple[str, Setting], ...]
    remarks: tuple[str, ...] = ()

    def lines(self) -> Iterable[str]:
        """The entry as it stands in a file."""
        yield from (f"# {remark}" for remark in self.remarks)
        yield "[[function]]"
        yield f"names = {written(list(self.names))}"
        yield from (f"{key} = {written(value)}" for key, value in self.settings)


class TypeEntry(Frozen):
    """A class, and the library types that it derives from."""

    name: str
    bases: tuple[str, ...]

    def lines(self) -> Iterable[str]:
        """The entry as it stands in a file."""
        yield "[[type]]"
        yield f"name = {written(self.name)}"
        yield f"bases = {written(list(self.bases))}"


class Derived(Frozen):
    """A whole model: what goes into the file, and what of the package it does not cover, in words."""

    title: str
    name: str
    version: str
    aliases: Mapping[str, str]
    types: tuple[TypeEntry, ...]
    entries: tuple[ModelEntry, ...]
    unknown: tuple[str, ...] = ()

    def text(self) -> str:
        """The file."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterable[str]:
        yield f"# What {self.title} does to CUDA and processes, from its source; `cudalint model` wrote it."
        yield "# Functions that are not here do nothing of the kind on any way that was seen, or stand below."
        yield "[library]"
        yield f"name = {written(self.name)}"
        if self.version:
            yield f"versions = {written(self.version)}"
        yield f"evidence = {written(f'derived from {self.title}')}"
        if self.aliases:
            yield from ("", "[alias]")
            yield from (f"{written(name)} = {written(target)}" for name, target in sorted(self.aliases.items()))
        for lines in (*(one.lines() for one in self.types), *(one.lines() for one in self.entries)):
            yield ""
            yield from lines
        if self.unknown:
            yield from ("", "# Unknown:")
            yield from (f"# - {line}" for line in self.unknown)


def written(value: Setting) -> str:
    """A value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # A basic string of TOML escapes as JSON does, but for this one character.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(written(item) if not isinstance(item, int) else _number(item) for item in value)}]"
    return f"{{ {', '.join(f'{key} = {written(inner)}' for key, inner in value.items())} }}"


def _number(item: int) -> str:
    return written(item) if isinstance(item, bool) else str(item)
