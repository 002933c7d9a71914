"""What keeps a program's meaning keeps its findings: other names, aliases, a second file, a helper, unrelated code."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator

import libcst as cst
from metamorphic.judge import Verdict, judged
from metamorphic.program import MAIN, Program
from metamorphic.registry import ALL
from metamorphic.split import SPLIT_WORKER

from fuzz.case import Case

PRESERVING = [transformation for transformation in ALL.values() if transformation.preserving]
CHANGES = 3
# What nothing is seen to call runs after the top level of its own file, which is another one once it has moved; and
# whether a device is chosen too late or never is told by what its file mentions.
_OF_ANOTHER_FILE = {
    "lost CUD101 (error), new CUD102 (warning)",
    "lost CUD502 (error), new CUD503 (error)",
}
# An unknown caller of a function imports its file, and of what that does at its top nobody knows what was before.
_BEFORE_ITS_IMPORT = "lost CUD102 (warning)"
_STAR = re.compile(rb"\bimport[ \t]*\*")


def complaints(case: Case) -> Iterator[str]:
    """The changes that findings do not survive, for a case of one file; a few changes, chosen by its name."""
    if len(case.files) != 1:
        return
    (data,) = case.files.values()
    if data.count(b"__name__") > data.count(b"\nif __name__"):
        return  # the name of a module is another one in a second file
    if _STAR.search(data):
        return  # which names that gives nobody knows, and so not what a second file has to import
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    for transformation in random.Random(case.name).sample(PRESERVING, CHANGES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = judged(Program(case.name, text), transformation)
        except (SyntaxError, cst.ParserSyntaxError):
            continue  # the change has no place in such a program
        if transformation is SPLIT_WORKER and verdict is not None and _is_of_another_file(verdict):
            continue
        if verdict is not None and verdict.complaint is not None:
            yield f"{transformation.name}: {verdict.complaint}"


def _is_of_another_file(verdict: Verdict) -> bool:
    """Whether what was lost when a worker moved is what an unknown caller of it would have met in its first file."""
    if verdict.complaint == _BEFORE_ITS_IMPORT:
        return verdict.lost_in == {MAIN}
    return verdict.complaint in _OF_ANOTHER_FILE
