"""Which of the files that a run reads it may write: never one outside of the project that a link leads to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from cudalint.finding import Edit, Fix
from cudalint.structs import Frozen
from cudalint.text.source import Cells


class Reach(Frozen):
    """Files that may be written, by the paths under which they are checked.

    ``aliases`` are links to them, each with its file: what is repaired there shows in both. ``beyond`` are links that
    lead to what was not named and lies outside of the project.
    """

    files: frozenset[str]
    aliases: tuple[tuple[str, str], ...] = ()
    beyond: tuple[str, ...] = ()


def reach(selected: Iterable[str], named: Iterable[str], root: str | None) -> Reach:
    """What a run over ``named`` paths, which is about the ``selected`` files, may write.

    Where nothing marks a project, a link that is named itself may lead anywhere.
    """
    files = frozenset(selected)
    links = {path: os.path.realpath(path) for path in files if os.path.islink(path)}
    real = {os.path.realpath(path): path for path in files - links.keys()}
    given = [os.path.abspath(path) for path in named]
    tops = [os.path.realpath(path) for path in given if path not in links] + ([os.path.realpath(root)] if root else [])
    aliases = []
    beyond = []
    for link, target in sorted(links.items()):
        own = real.get(target)
        if own is not None:
            aliases.append((link, own))
        elif (root is None and link in given) or any(_lies_in(target, top) for top in tops):
            real[target] = link
        else:
            beyond.append(link)
    return Reach(frozenset(real.values()), tuple(aliases), tuple(beyond))


def files_of(repair: Fix, cells: Mapping[str, Cells]) -> frozenset[str]:
    """The files that a repair changes."""
    return frozenset(home(edit, cells) for edit in repair.edits)


def home(edit: Edit, cells: Mapping[str, Cells]) -> str:
    """The file of an edit: of one in a module that a cell writes it is the notebook."""
    found = cells.get(edit.span.filename)
    return edit.span.filename if found is None else found.notebook


def _lies_in(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)
