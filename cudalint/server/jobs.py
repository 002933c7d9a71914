"""What the two processes of the server say to each other: a job, and the answer to it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import TypeAlias

from cudalint.found import Report
from cudalint.project.seen import Seen
from cudalint.structs import Frozen

# A length before each message.
HEADER_BYTES = 8


class Check(Frozen):
    """Find what is wrong under some paths, where ``texts`` stand for files on the disk.

    ``repair`` says whether findings carry their fixes. Where nothing marks a project above a folder, it is no project,
    and the check is about those of the ``texts`` that lie in it. ``first`` says that it is about these in any case:
    what is open is shown before all else.
    """

    paths: tuple[str, ...]
    texts: Mapping[str, bytes]
    repair: bool
    first: bool = False


class Checked(Frozen):
    """What was found; ``root`` is the folder of the project, where something marks one.

    ``about`` are the files that it is about, if there are others that a check of the same paths is about.
    """

    report: Report
    root: str | None
    about: frozenset[str] | None = None


class Repair(Frozen):
    """Make all safe repairs in one file, as often as there are some."""

    path: str
    texts: Mapping[str, bytes]


class Repaired(Frozen):
    """The texts that are repaired, before and after: that of the file, or those of cells by their index."""

    texts: Mapping[int, tuple[str, str]]


class Look(Frozen):
    """Say what is believed about the processes at the lines of one file."""

    path: str
    texts: Mapping[str, bytes]


class Refused(Frozen):
    """Why there is no answer, in one line for the user."""

    message: str


Job: TypeAlias = Check | Repair | Look
Answer: TypeAlias = Checked | Repaired | Seen | Refused


def packed(message: Job | Answer) -> bytes:
    """A message as bytes, its length first."""
    data = pickle.dumps(message)
    return len(data).to_bytes(HEADER_BYTES, "big") + data
