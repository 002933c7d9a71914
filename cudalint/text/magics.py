"""What a cell holds besides Python: magics, lines for a shell, questions. Each row stays a row, so that places stay.

Such a line becomes a statement that says nothing, but for what sets a variable of the environment, and for ``%time``,
which runs a statement as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from cudalint.text.lines import ROW_END
from cudalint.text.scan import Kind, lexemes

# Cells whose first line is about how they run: the rest is Python that runs in the kernel.
_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "lprun", "scalene"})
_WRITING = frozenset({"writefile", "file"})
_CELL_MAGIC = re.compile(r"%%(\w+)[ \t]*(.*)")
_LINE = re.compile(r"([ \t]*)(?:[%!]|\?{1,2}[ \t]*[\w.*]|[/,;](?=\w))")
_QUESTION = re.compile(r"([ \t]*)%{0,2}[\w.*]+(?:\[[^\]\r\n]*\])?\?{1,2}[ \t]*(?=[\r\n]|$)")
_ASSIGNMENT = re.compile(r"([ \t]*[\w.,* \t\[\]'\"]+?[ \t]*=)[ \t]*[%!](?!=)[^\r\n]*")
_ENVIRONMENT = re.compile(r"([ \t]*)%(?:set_)?env[ \t]+(\w+)(?:[ \t]*=[ \t]*|[ \t]+)([^\r\n]*?)[ \t]*$")
_TIMED = re.compile(r"([ \t]*)%time[ \t]+(?=[^\s%!-])")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a cell is: Python, text that is written to the file ``writes`` from row ``first`` on, or neither."""

    first: int = 0
    writes: str | None = None
    appends: bool = False
    is_skipped: bool = False


def shape(text: str) -> Shape:
    """What the first line of a cell makes of it."""
    rows = ROW_END.split(text)
    first = next((i for i, row in enumerate(rows) if row.strip()), 0)
    magic = _CELL_MAGIC.match(rows[first])
    if magic is None or magic[1] in _TRANSPARENT:
        return Shape()
    if magic[1] not in _WRITING:
        return Shape(is_skipped=True)
    try:
        words = shlex.split(magic[2])
    except ValueError:
        words = []
    names = [word for word in words if not word.startswith("-")]
    is_module = len(names) == 1 and names[0].endswith(".py") and not set(names[0]) & set("~${}*")
    if not is_module:
        return Shape(is_skipped=True)
    return Shape(first + 1, names[0], appends="-a" in words or "--append" in words)


def program_of(text: str) -> str:
    """The Python of a cell, which ends with a row's end, in as many rows."""
    return "".join(_program(text))


def _program(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = _row_end(text, at)
        line = text[at:end]
        replaced = _replaced(line)
        if replaced is None:
            stop = _statement_end(text, at)
            yield text[at:stop]
            at = stop
            continue
        while line.endswith("\\"):  # a magic that goes on
            yield replaced + _end_of(text, end)
            at, replaced = end + len(_end_of(text, end)), ""
            end = _row_end(text, at)
            line = text[at:end]
        yield replaced + _end_of(text, end)
        at = end + len(_end_of(text, end))


def _replaced(line: str) -> str | None:
    """The statement that stands for a line which is no Python; None for Python."""
    if timed := _TIMED.match(line):
        # As long as what it stands for, so that columns stay.
        rest = line[timed.end() :]
        return None if _is_compound(rest) else f"{timed[1]}if 1:{' ' * (timed.end() - len(timed[1]) - 5)}{rest}"
    if setting := _ENVIRONMENT.match(line):
        if set(setting[3]) & set("${}"):
            return f"{setting[1]}pass"
        return f"{setting[1]}import os; os.environ[{setting[2]!r}] = {setting[3]!r}"
    if found := _LINE.match(line) or _QUESTION.match(line):
        return f"{found[1]}pass"
    if found := _ASSIGNMENT.fullmatch(line):
        return f"{found[1]} get_ipython()"
    return None


def _is_compound(statement: str) -> bool:
    return statement.lstrip().startswith(("if ", "for ", "while ", "with ", "def ", "class ", "try:"))


def _row_end(text: str, at: int) -> int:
    end = ROW_END.search(text, at)
    return len(text) if end is None else end.start()


def _end_of(text: str, at: int) -> str:
    end = ROW_END.match(text, at)
    return "" if end is None else end.group()


def _statement_end(text: str, at: int) -> int:
    """Where a logical line of Python ends: what is in brackets or in a string is no line for a shell."""
    depth = 0
    for lexeme in lexemes(text[at:]):
        match lexeme.kind:
            case Kind.OPENER:
                depth += 1
            case Kind.CLOSER:
                depth = max(0, depth - 1)
            case Kind.NEWLINE if depth == 0:
                return at + lexeme.end
            case _:
                pass
    return len(text)
