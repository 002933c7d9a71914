"""Which words a repository's own scripts, recipes and containers start its programs with.

``torchrun --nproc_per_node=4 train.py --device cuda "$@"`` in ``train.sh``: some options are given, others may be.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from cudalint.project import deployments
from cudalint.structs import Ordered
from cudalint.text.settings import is_settings

# Of each program so many command lines are run, each of so many words at most.
MOST_LINES, _MOST_WORDS = 2, 100
# What stands for a word that the file does not show.
UNKNOWN = "\0"

_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_LAUNCHERS = frozenset({"torchrun", "deepspeed", "accelerate"})
# Modules that run the program which is named behind their own options.
_LAUNCHING = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed", "mpi4py", "pdb"}
)
# Options of Python that take a word.
_WITH_WORD = frozenset({"-W", "-X"})
_VARIABLE = re.compile(
    r"[ \t]*(?:export[ \t]+|ENV[ \t]+)?(\w+)[ \t]*[:?]?=[ \t]*(\"[^\"]*\"|'[^']*'|[^\s;&|#]*)[ \t]*(?:#.*)?"
)
_USED = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|\((\w+)\)|(\w+))")
# The folder of a script, however it is asked for.
_OWN_FOLDER = re.compile(r"\$\(dirname [\"']?\$(?:0|\{0\}|\{?BASH_SOURCE(?:\[0\])?\}?)[\"']?\)|\$\{0%/\*\}")
_REST = re.compile(r"\$(?:@|\*|\{[@*][^}]*\}|\d|\{\d[^}]*\})")
# A list of words, as containers have it.
_LISTED = re.compile(r"(?:CMD|ENTRYPOINT|command:|entrypoint:)[ \t]*\[(.*)\]")
_ENDS = re.compile(r"&&|\|\|?|;|&|\d?>{1,2}.*|<.*")


class CommandLine(Ordered):
    """The words that a program is given, and the file that says so; ``through``: a module that is told to run it."""

    said_in: str
    words: tuple[str, ...]
    through: str = ""

    @property
    def sets_something(self) -> bool:
        """Whether some word is an option, sets what it names, or names a file that does."""
        return any(word.startswith("-") or "=" in word or _is_configuration(word) for word in self.words)


def _is_configuration(word: str) -> bool:
    """Whether a word is the path of a file of settings, or of one in Python."""
    return is_settings(word) or word.endswith(".py")


def found(root: str) -> Iterator[tuple[str, str, CommandLine]]:
    """The folder of each file that starts a program, the program as it is named there, and the words behind it."""
    for path in deployments.paths(root):
        text = deployments.text_of(path, (b"python", b"torchrun", b"accelerate", b"deepspeed"))
        folder, said_in = os.path.dirname(path), os.path.relpath(path, root)
        for target, words, through in _started(text):
            yield folder, target, CommandLine(said_in, words, through)


# A program as it is named, its words, and the module that runs it.
_Started = tuple[str, tuple[str, ...], str]


def _started(text: str) -> Iterator[_Started]:
    variables: dict[str, str] = {}
    for row in deployments.rows(text):
        bound = _VARIABLE.fullmatch(row)
        if bound is not None:
            variables[bound[1]] = _substituted(bound[2].strip("\"'"), variables)
            continue
        for command in _commands(row):
            yield from _program(command, variables)


def _commands(row: str) -> Iterator[list[str]]:
    """The commands of a row, each by its words."""
    bare = row.strip().lstrip("@-+")
    if bare.startswith(("#", "echo ", "RUN ", "pip ")):
        return
    listed = _LISTED.fullmatch(bare)
    bare = bare if listed is None else listed[1].replace(",", " ")
    try:
        words = shlex.split(_OWN_FOLDER.sub(".", bare), comments=True)
    except ValueError:
        return
    command: list[str] = []
    for word in words:
        if _ENDS.fullmatch(word):
            yield command
            command = []
        elif word.endswith(";"):
            yield [*command, word[:-1]]
            command = []
        else:
            command.append(word)
    yield command


def _program(command: list[str], variables: Mapping[str, str]) -> Iterator[_Started]:
    words = [_substituted(word, variables) for word in command]
    starts = [i for i, word in enumerate(words) if _PYTHON.fullmatch(word) or word in _LAUNCHERS]
    if not starts or len(words) > _MOST_WORDS:
        return
    rest = iter(words[starts[0] + 1 :])
    launches = words[starts[0]] in _LAUNCHERS
    for word in rest:
        if word in ("-m", "--module"):
            module = next(rest, "")
            if module not in _LAUNCHING:
                given = tuple(_given(rest))
                yield f"-m {module}", given, ""
                program = next((i for i, word in enumerate(given) if word.endswith(".py")), None)
                if program is not None and all(word.startswith("-") for word in given[:program]):
                    yield given[program], given[program + 1 :], module
                return
            launches = True
        elif word.endswith(".py") and not word.startswith("-"):
            yield word, tuple(_given(rest)), ""
            return
        elif word in _WITH_WORD:
            next(rest, "")
        elif not launches and not word.startswith("-"):
            return


def _given(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if _REST.search(word) is None:
            yield UNKNOWN if "$" in word or "`" in word else word


def _substituted(word: str, variables: Mapping[str, str]) -> str:
    """What a word becomes where the variables in it are set above; it is left alone where they are not."""

    def set_to(used: re.Match[str]) -> str:
        name = used[1] or used[3] or used[4]
        return variables.get(name, used[2] if used[2] is not None else used[0])

    return _USED.sub(set_to, word) if "$" in word else word
