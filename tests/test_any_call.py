"""Whatever a program gives to a function that a model knows, the analysis goes on."""

from __future__ import annotations

from itertools import chain, islice

import pytest
from sampling import every

from cudalint.models.library import load
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile


def _names() -> list[str]:
    """The functions and methods of all models, as programs write them."""
    library = load()
    entries = chain(library.functions.values(), (entry for _, entry in library.patterns))
    names = chain.from_iterable(entry["names"] for entry in entries)
    # Those of cudalint stand for what programs do not name.
    written = (name for name in names if "." in name and all(part.isidentifier() for part in name.split(".")))
    return sorted({name for name in written if not name.startswith("cudalint.")})


NAMES = _names()
# So many calls in a file: the analysis of a program knows its file as a whole.
MOST = 60
FILES = [list(islice(NAMES, first, first + MOST)) for first in range(0, len(NAMES), MOST)]
# With nothing, with what is not known at all, and with values of the wrong kinds.
GIVEN = {"nothing": "", "anything": "*given, **more", "odd values": "[3], {'a': given}, device=None"}
ENTRY = """
def test_{n}(given, more):
    import {root}
    {name}({given})
    multiprocessing.Process(target=print).start()
"""
HEAD = "import multiprocessing\n\nimport torch\n\n"


def analysed(names: list[str], entry: str, given: str) -> int:
    """How many entries of a file of calls were run."""
    calls = (entry.format(n=n, root=name.partition(".")[0], name=name, given=given) for n, name in enumerate(names))
    text = HEAD + "".join(calls)
    return analyse([SourceFile("/p/test_calls.py", text, text.encode())], Options()).work.entries


# Each file of calls with one of them, and with all by command.
SAMPLE = [
    pytest.param(names, given, id=f"file {number}, {name}")
    for number, names in enumerate(FILES)
    for kind, (name, given) in enumerate(GIVEN.items())
    if (number + kind) % every(len(GIVEN)) == 0
]


@pytest.mark.parametrize(("names", "given"), SAMPLE)
def test_every_call_is_followed_whatever_it_is_given(names: list[str], given: str) -> None:
    assert analysed(names, ENTRY, given) >= len(names)
