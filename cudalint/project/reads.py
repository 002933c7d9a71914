"""What entries rest on: what was read for them, what could not be read, and what was found out about files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudalint.structs import Frozen, Mutable, field
from cudalint.text.source import SourceFile


class Broken(Frozen):
    """A file that the parser refuses, and where; row and column are 0 where it is the whole."""

    source: SourceFile
    reason: str
    row: int
    column: int


class Reads(Mutable):
    """What was read for something, which rests on it, and what there is to note.

    ``asked`` are the modules that were asked for, ``looked`` the bodies in them that were looked at. ``imported`` are
    those of which it was asked what importing them does, whatever names them. ``searched`` are files whose bytes say
    something that is no fact of theirs. ``sought`` are the files that hold a word, by the module whose importers were
    searched and the word. ``settings`` are files of settings by path, and what they held.
    """

    asked: set[str] = field(default_factory=set)
    looked: set[tuple[str, int]] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    sought: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)

    def add(self, other: Reads) -> None:
        """Rest on what something else rests on."""
        self.asked |= other.asked
        self.looked |= other.looked
        self.imported |= other.imported
        self.searched |= other.searched
        self.sought.update(other.sought)
        self.settings.update(other.settings)
        self.noted |= other.noted


class News(Frozen):
    """What was found out about files, as plain data: facts by module, and ``FileProgram.judged``."""

    facts: Mapping[str, dict[str, Any]]
    judged: Mapping[str, bool]
