"""How a repository's own files start its server: the command lines of gunicorn in containers, Procfiles and scripts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cudalint import disk

# Where such files lie: in the top folder, or in one of these.
_FOLDERS = ("", "bin", "deploy", "deployment", "docker", "scripts")
_NAMED = re.compile(
    r"(?:.*[.-])?(?:Dockerfile|Containerfile)(?:[.-].*)?|Procfile(?:\..*)?|.*\.sh|(?:docker-)?compose(?:[.-].*)?\.ya?ml|"
    r".*\.service|supervisord?\.conf"
)
_MOST_FILES, _MOST_BYTES = 40, 200_000
_SERVER = b"gunicorn"

_CONTINUED = re.compile(r"\\\n")
# Of a list of words, as containers have it, what stands between the words.
_BETWEEN = re.compile(r"[\[\]\"',]")
_COMMAND_ENDS = re.compile(r"&&|\|\||[;|&]|\s#")
_TARGET = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*(?:\(\))?)$")
_PRELOADS = "--preload"


def is_deployment(name: str) -> bool:
    """Whether a file, by its name, may hold the command lines of a server."""
    return _NAMED.fullmatch(name) is not None


def paths(root: str) -> list[str]:
    """The files of a project that may hold command lines of a server."""
    found = (path for folder in _FOLDERS for path in _in(os.path.join(root, folder)))
    return sorted(found)[:_MOST_FILES]


def _in(folder: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if is_deployment(name))


def preloaded(root: str) -> list[tuple[str, str]]:
    """Module and name of each application that gunicorn is told to preload, and nowhere told not to."""
    found = [one for path in paths(root) for one in _servers(_read(path))]
    without = {target for target, preloads in found if not preloads}
    return sorted({target for target, preloads in found if preloads and target not in without})


def _read(path: str) -> str:
    try:
        data = disk.read(path, _MOST_BYTES)
    except disk.Unreadable:
        return ""
    return data.decode(errors="replace") if _SERVER in data else ""


def _servers(text: str) -> Iterator[tuple[tuple[str, str], bool]]:
    """The applications that command lines of gunicorn name, and whether each is preloaded."""
    everywhere = _PRELOADS in "".join(re.findall(r"GUNICORN_CMD_ARGS.*", text))
    for row in _CONTINUED.sub(" ", text).splitlines():
        words = _words(row)
        if words is None:
            continue
        target = next((match for word in words if (match := _TARGET.match(word)) is not None), None)
        if target is not None:
            yield (target[1], target[2]), everywhere or _PRELOADS in words


def _words(row: str) -> list[str] | None:
    """The words behind gunicorn's name in a row; None where it is not run there."""
    if row.lstrip().startswith(("#", "RUN ", "pip ")):
        return None
    words = _BETWEEN.sub(" ", row).split()
    starts = [i for i, word in enumerate(words) if word.rpartition("/")[2] == _SERVER.decode()]
    if not starts:
        return None
    command, *_ = _COMMAND_ENDS.split(" ".join(words[starts[0] + 1 :]))
    return command.split()
