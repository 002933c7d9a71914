"""What a cell holds besides Python: magics, lines for a shell, questions. Each row stays a row, so that places stay.

Such a line becomes a statement that says nothing, but for what sets a variable of the environment, for ``%time`` and
its like, which run a statement as it is, and for ``%run``, which binds what a program binds.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from keyword import iskeyword

from cudalint.structs import Frozen
from cudalint.text.lines import ROW_END
from cudalint.text.scan import Kind, lexemes

# Cells whose first line is about how they run: the rest is Python that runs in the kernel.
_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "lprun", "scalene"})
_WRITING = frozenset({"writefile", "file"})
_CELL_MAGIC = re.compile(r"%%(\w+)[ \t]*(.*)")
_LINE = re.compile(r"([ \t]*)(?:[%!?]|[/,;](?=\w))")
_QUESTION = re.compile(r"([ \t]*)%{0,2}[\w.*]+(?:\[[^\]\r\n]*\])?\?{1,2}[ \t]*(?=[\r\n]|$)")
_ASSIGNMENT = re.compile(r"([ \t]*[\w.,* \t\[\]'\"]+?[ \t]*=)[ \t]*[%!](?!=)[^\r\n]*")
_ENVIRONMENT = re.compile(r"([ \t]*)%(?:set_)?env[ \t]+(\w+)(?:[ \t]*=[ \t]*|[ \t]+)([^\r\n]*?)[ \t]*$")
# Magics that IPython knows without their sign where a cell has one line only, unless that computes or calls something.
_ALONE = re.compile(
    r"[ \t]*(?:pip|conda|mamba|micromamba|uv|cd|ls|ll|la|pwd|mkdir|rmdir|rm|cp|mv|cat|less|more|man|who|whos|load_ext|"
    r"reload_ext|autoreload|matplotlib|lsmagic|history)(?:[ \t]+[^\s=!<>,+*/%^&|()][^\r\n]*|[ \t]*)"
)
# A program that is run by its path, or a module by its name; what it is given comes behind it.
_PROGRAM = re.compile(
    r"%run[ \t]+(?:-[a-zA-Z][ \t]+)*?(?:-m[ \t]+([\w.]+)|(?:\./)?([\w/]+)(?:\.py|\.ipynb)?)(?=[ \t]|$)"
)
# Extensions in packages, which may begin with what the whole notebook does; those of one word are about the notebook.
_EXTENSION = re.compile(r"([ \t]*)%(?:re)?load_ext[ \t]+([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)[ \t]*")
# What runs the rest of its line, with the options that it may have; a magic without a statement is none of these.
_RUNNING = (
    r"%(?:time|prun|timeit(?:[ \t]+-(?:[nrpv][ \t]*\d+|[tcqo]+))*|memit(?:[ \t]+-(?:[rti][ \t]*[\d.]+|[co]+))*)"
    r"[ \t]+(?=[^\s%!-])"
)
_TIMED = re.compile(rf"([ \t]*){_RUNNING}")
# Of these only one gives what its statement gives.
_TIMED_VALUE = re.compile(r"([ \t]*[\w.,* \t\[\]'\"]+?[ \t]*=)[ \t]*%time[ \t]+(?=[^\s%!-])")


class Shape(Frozen):
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
    if _ALONE.fullmatch(text.strip("\r\n")):
        return text.replace(text.strip("\r\n"), "pass")
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
        return _in_place(timed[1], timed.end(), line[timed.end() :])
    if timed := _TIMED_VALUE.match(line):
        return timed[1] + " " * (timed.end() - timed.end(1)) + line[timed.end() :]
    if setting := _ENVIRONMENT.match(line):
        if set(setting[3]) & set("${}"):
            return f"{setting[1]}pass"
        return f"{setting[1]}import os; os.environ[{setting[2]!r}] = {setting[3]!r}"
    if extension := _EXTENSION.fullmatch(line):
        return f"{extension[1]}import {extension[2]}; {extension[2]}.load_ipython_extension(get_ipython())"
    if program := _PROGRAM.match(line):
        return _run(program[1] or program[2].replace("/", "."))
    if found := _LINE.match(line) or _QUESTION.match(line):
        return f"{found[1]}pass"
    if found := _ASSIGNMENT.fullmatch(line):
        return f"{found[1]} get_ipython()"
    return None


def _run(name: str) -> str:
    """What a program binds, which is run in the kernel: what it does under its main guard is left out."""
    is_module = all(part.isidentifier() and not iskeyword(part) for part in name.split("."))
    return f"from {name} import *" if is_module else "pass"


def _in_place(indent: str, column: int, statement: str) -> str:
    """A statement of a line in its column, as one of the block that its magic stood in."""
    before = column - len(indent)
    if _is_compound(statement):
        # After a form feed Python counts anew how far a line is indented.
        return f"{' ' * (before - 1)}\f{indent}{statement}"
    return f"{indent}if 1:{' ' * (before - 5)}{statement}"


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
