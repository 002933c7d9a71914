"""How a repository's own files start its server: gunicorn, uvicorn, celery ...; in containers, scripts, recipes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

from cudalint import disk
from cudalint.served import SELDON, WORKS
from cudalint.structs import Frozen
from cudalint.text import settings

_NAMED = re.compile(
    r"(?:.*[.-])?(?:Dockerfile|Containerfile)(?:[.-].*)?|Procfile(?:\..*)?|.*\.sh|(?:docker-)?compose(?:[.-].*)?\.ya?ml|"
    r"(?:.*[._-])?(?:deploy|deployment|k8s|kubernetes|statefulset)(?:[._-].*)?\.ya?ml|"
    r".*\.service|supervisord?\.conf|(?:.*[._-])?uwsgi(?:[._-].*)?\.ini|environment|"
    r"(?:GNU)?[Mm]akefile|.*\.mk|[Jj]ustfile"
)
# Where such files lie: in the top folder, one right below it, or one below that; in none that is hidden but these.
_SHOWN, _DEEPEST = frozenset({".s2i"}), 2
_MOST_FOLDERS, _MOST_FILES, _MOST_BYTES = 200, 200, 200_000
_MOST_WORKERS = 1000
_SERVERS = (
    b"gunicorn", b"uwsgi", b"seldon-core-microservice", b"SERVICE_TYPE",
    b"uvicorn", b"hypercorn", b"granian", b"fastapi", b"celery",
)  # fmt: skip
# Servers whose workers import the application themselves, and by which options they are told how many there are.
_APART = {
    "gunicorn": ("-w", "--workers"),
    "hypercorn": ("-w", "--workers"),
    "uvicorn": ("--workers",),
    "granian": ("--workers",),
    "fastapi": ("--workers",),
}

# Those that ask this variable where no option says it: in a script or container, a unit, a compose file, a manifest.
_ASKING = frozenset({"gunicorn", "uvicorn", "fastapi"})
_CONCURRENCY = re.compile(
    r"^[^#\n]*?\bWEB_CONCURRENCY(?:[\"']?[ \t]*[:= \t][ \t]*|[\"']?\s+value:[ \t]*)[\"']?(\d+)\b", re.MULTILINE
)
_CONTINUED = re.compile(r"\\\n")
# Of a list of words, as containers have it, what stands between the words.
_BETWEEN = re.compile(r"[\[\]\"',]")
_COMMAND_ENDS = re.compile(r"&&|\|\||[;|&]|\s#")
_TARGET = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*(?:\(\))?)$")
_PRELOADS, _FACTORY = "--preload", "--factory"
_CONFIGURED = frozenset({"-c", "--config"})
# Rows of YAML: words on rows of their own, and text whose rows are one.
_ITEM = re.compile(r"([ \t]*)-[ \t]+(\S.*)")
_FOLDED = re.compile(r"([ \t]*)[\w-]+:[ \t]*>[-+]?[ \t]*")
# Keys under which YAML has a command, in the order in which it is put together.
_COMMANDS = ("entrypoint", "command", "args")
_DOCUMENTS = re.compile(r"^---.*$", re.MULTILINE)
# Seldon's command is told a class by its name, which an image made from source has in a variable.
_SELDON, _SELDON_NAME = "seldon-core-microservice", "MODEL_NAME"
_CLASS = re.compile(r"[A-Za-z_][\w.]*$")
# By which options celery's worker is told its application, its pool and how many processes that has.
_APPLICATION, _POOL, _AT_ONCE = ("-A", "--app"), ("-P", "--pool"), ("-c", "--concurrency")
_POOLS = frozenset({"", "prefork", "processes", "solo", "threads", "eventlet", "gevent"})
_VARIABLE = re.compile(r"^[ \t]*(?:ENV[ \t]+|export[ \t]+)?(\w+)(?:=|[ \t]+)[\"']?([\w.]+)", re.MULTILINE)

# Options of uwsgi by their short forms, and those that mean the same.
_SAME = {"w": "module", "wsgi": "module", "p": "processes", "workers": "processes", "M": "master", "lazy": "lazy-apps"}
_SETTING = re.compile(r"[ \t]*([\w-]+)[ \t]*=[ \t]*([^\s;#]+)")
_NO = frozenset({"false", "0", "no", "off"})


class _Started(Frozen):
    """A server that some file starts, its application, whether it is made before the fork, and in how many workers."""

    server: str
    module: str
    name: str
    preloads: bool
    configuration: str = ""
    workers: int = 1


def is_deployment(name: str) -> bool:
    """Whether a file, by its name, may hold the command lines of a server."""
    return _NAMED.fullmatch(name) is not None


def paths(root: str) -> list[str]:
    """The files of a project that may hold command lines of a server."""
    found: list[str] = []
    folders = [(root, 0)]
    for folder, depth in folders:
        below, named = _in(folder)
        found.extend(named)
        if depth < _DEEPEST:
            folders.extend((path, depth + 1) for path in below[: _MOST_FOLDERS - len(folders)])
    return found[:_MOST_FILES]


def _in(folder: str) -> tuple[list[str], list[str]]:
    """The folders in a folder, and its files that may hold command lines of a server."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((e.name, e.is_dir(follow_symlinks=False)) for e in entries)
    except OSError:
        return [], []
    below = [os.path.join(folder, name) for name, is_folder in found if is_folder and _may_hold(name)]
    return below, [os.path.join(folder, name) for name, is_folder in found if not is_folder and is_deployment(name)]


def _may_hold(folder: str) -> bool:
    return folder in _SHOWN or not folder.startswith((".", "__", "node_modules"))


class Servers(Frozen):
    """The servers that files of a project start in a way that matters.

    ``preloaded``: module and name of each application that a server makes before it forks, and nowhere after; and the
    server, which is ``uvicorn:4`` where several workers make it for themselves. ``configured``: the configuration of
    each server that is told one: its file, and the module and name of its application. ``pools``: the module of each
    application of celery whose worker is started, and the kind of pool it is told: none is the application's own; and
    how many processes: ``prefork:8``.
    """

    preloaded: list[tuple[str, str, str]]
    configured: list[tuple[str, str, str]]
    pools: list[tuple[str, str]]

    def __bool__(self) -> bool:
        return bool(self.preloaded or self.configured or self.pools)


def servers(root: str) -> Servers:
    """The servers that files of a project start; each file is read once."""
    every = [one for path in paths(root) for one in _started(path)]
    pools = sorted({(one.module, one.name) for one in every if one.server == WORKS})
    found = [one for one in every if one.server != WORKS]
    without = {(one.module, one.name) for one in found if not one.preloads}
    made = {(one.module, one.name, one.server) for one in found if one.preloads}
    apart = {(one.module, one.name, f"{one.server}:{one.workers}") for one in found if one.workers > 1}
    told = {(one.configuration, one.module, one.name) for one in found if one.configuration}
    return Servers(sorted((*(one for one in made if one[:2] not in without), *apart)), sorted(told), pools)


def _started(path: str) -> Iterator[_Started]:
    written = _written(path, _SERVERS)
    text = _commands_of(path, written)
    if path.endswith(".ini"):
        settings = (_SETTING.match(row) for row in text.splitlines())
        yield from _of_uwsgi({found[1]: found[2] for found in settings if found is not None})
        return
    everywhere = _PRELOADS in "".join(re.findall(r"GUNICORN_CMD_ARGS.*", text))
    told = min(map(int, _CONCURRENCY.findall(written)), default=1)
    for server in _APART:
        by_default = told if server in _ASKING else 1
        yield from _of_command(server, rows(text), everywhere=everywhere, by_default=by_default)
    yield from _of_seldon(text, built=path.endswith("environment"))
    for row in rows(text):
        words = _words(row, "uwsgi")
        if words is not None:
            yield from _of_uwsgi(_options(words))
        words = _words(row, "celery")
        if words is not None and "worker" in words:
            yield from _of_celery(words)


def text_of(path: str, words: tuple[bytes, ...]) -> str:
    """The commands of a file that has one of some words; none of any other."""
    return _commands_of(path, _written(path, words))


def _written(path: str, words: tuple[bytes, ...]) -> str:
    try:
        data = disk.read(path, _MOST_BYTES)
    except disk.Unreadable:
        return ""
    if not any(word in data for word in words):
        return ""
    return data.decode(errors="replace")


def _commands_of(path: str, text: str) -> str:
    if not path.endswith((".yml", ".yaml")):
        return text
    return "\n".join(_of_yaml(text)) or _as_commands(text)


def rows(text: str) -> list[str]:
    """The rows of a text, those that are continued as one."""
    return _CONTINUED.sub(" ", text).splitlines()


def _as_commands(text: str) -> str:
    """What looks like YAML with each command in a row: folded text, and the words of a list."""
    rows: list[str] = []
    folded = item = None
    for row in text.splitlines():
        words = _ITEM.fullmatch(row)
        depth = len(row) - len(row.lstrip())
        if folded is not None and (depth > folded or not row.strip()):
            rows[-1] += f" {row.strip()}"
        elif words is not None and item == words[1]:
            rows[-1] += f" {words[2]}"
        else:
            rows.append(words[2] if words is not None else row)
            begun = _FOLDED.fullmatch(row)
            folded = None if begun is None else len(begun[1])
        item = None if words is None else words[1]
    return "\n".join(rows)


def _configuration(words: list[str]) -> str:
    """The file that gunicorn is told to take its settings from."""
    return next(_set_to(words, _CONFIGURED), "").removeprefix("file:")


def _of_celery(words: list[str]) -> Iterator[_Started]:
    """The application of celery's worker, by its module, and the pool that it is told; none that is not shown.

    Behind the pool stands how many processes it has, where that is told: ``prefork:8``.
    """
    application = next(_set_to(words, _APPLICATION), "").partition(":")[0]
    pool = next(iter((*_set_to(words, _POOL), *_joined(words, _POOL[0]))), "")
    if pool in _POOLS and _CLASS.match(application) is not None:
        joined = [word for told in _joined(words, _AT_ONCE[0]) for word in (_AT_ONCE[0], told)]
        number = _number([*words, *joined], _AT_ONCE, 0)
        named = "prefork" if pool == "processes" else pool
        yield _Started(WORKS, application, f"{named}:{number}" if number else named, preloads=False)


def _set_to(words: list[str], options: Collection[str]) -> Iterator[str]:
    """What some options are set to, wherever they stand: behind a sign, or in the word that follows."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        option, is_set, value = word.partition("=")
        if option in options:
            yield value if is_set else after


def _of_yaml(text: str) -> Iterator[str]:
    """The commands of containers, each in one row; nothing where the text is no plain YAML, such as a template."""
    for document in _DOCUMENTS.split(text):
        try:
            yield from _commands_in(settings.read("yaml", document))
        except settings.NoSettings:
            continue


def _commands_in(found: object) -> Iterator[str]:
    if isinstance(found, dict):
        row = " ".join(_said(found[key]) for key in _COMMANDS if key in found)
        if row:
            yield row
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    for part in inner:
        yield from _commands_in(part)


def _said(found: object) -> str:
    parts = found if isinstance(found, list) else [found]
    return " ".join(map(str, parts)).replace("\n", " ")


def _of_command(server: str, rows: list[str], *, everywhere: bool, by_default: int) -> Iterator[_Started]:
    """The applications that command lines of a server name: whether each is preloaded, and in how many workers.

    ``by_default``: so many where no option says it; a configuration may say otherwise.
    """
    for row in rows:
        words = _words(row, server)
        if words is None:
            continue
        target = _file_served(words) if server == "fastapi" else _target(words)
        if target is None:
            continue
        module, name = target
        preloads = server == "gunicorn" and (everywhere or _PRELOADS in words)
        configuration = _configuration(words) if server == "gunicorn" else ""
        workers = 1 if preloads else _number(words, _APART[server], 1 if configuration else by_default)
        yield _Started(server, module, name, preloads, configuration, workers)


def _target(words: list[str]) -> tuple[str, str] | None:
    """The module and the name of ``module:name``; with brackets what a function of that name makes."""
    found = next((match for word in words if (match := _TARGET.match(word)) is not None), None)
    if found is None:
        return None
    return found[1], f"{found[2]}()" if _FACTORY in words else found[2]


def _file_served(words: list[str]) -> tuple[str, str] | None:
    """The same of ``fastapi run app/main.py``: of a file, and what it calls its application."""
    path = next((word for word in words if word.endswith(".py")), "")
    if words[:1] != ["run"] or not path or path.startswith(("/", "..")):
        return None
    named = next((after for word, after in pairwise(words) if word == "--app"), "app")
    return path.removeprefix("./").removesuffix(".py").replace("/", "."), named


def _joined(words: list[str], option: str) -> Iterator[str]:
    """What stands in one word with a short option: ``-c4``."""
    return (word.removeprefix(option) for word in words if word.startswith(option) and word != option)


def _number(words: list[str], options: tuple[str, ...], by_default: int) -> int:
    """How many workers the options ask for; one where they do and no number is written down."""
    said = next(_set_to(words, options), None)
    number = by_default if said is None else int(said) if said.isdecimal() else 1
    return min(number, _MOST_WORKERS)


def _of_seldon(text: str, *, built: bool) -> Iterator[_Started]:
    """The class that Seldon's command serves, whose object is made before workers are forked.

    An image that s2i built runs the command with what a file of variables says.
    """
    variables = dict(_VARIABLE.findall(text))
    commands = [words for row in rows(text) if (words := _words(row, _SELDON)) is not None]
    names = [variables.get(word.strip("${}"), word) for words in commands for word in words[:1]]
    if built and _SELDON_NAME in variables:
        names.append(variables[_SELDON_NAME])
    for name in names:
        module, _, last = name.rpartition(".")
        if _CLASS.match(name) is not None:
            yield _Started(SELDON, module or last, last, preloads=True)


def _options(words: list[str]) -> dict[str, str]:
    """``--module app:app --master -p 4`` as options and what they are set to."""
    found: dict[str, str] = {}
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith("-"):
            name, is_set, value = word.lstrip("-").partition("=")
            found[name] = value if is_set else "true" if after.startswith("-") else after
    return found


def _of_uwsgi(given: Mapping[str, str]) -> Iterator[_Started]:
    """uwsgi makes it before it forks, unless ``lazy-apps`` is set; one process without a master does not fork."""
    options = {_SAME.get(name, name): value for name, value in given.items()}
    module, _, name = options.get("module", "").partition(":")
    if not module:
        module = options.get("wsgi-file", "").removesuffix(".py").strip("/").replace("/", ".")
    target = _TARGET.match(f"{module}:{name or options.get('callable', 'application')}")
    processes = options.get("processes", "1")
    forks = _is_on(options, "master") or processes not in ("0", "1")
    if target is not None and forks:
        yield _Started("uwsgi", target[1], target[2], preloads=not _is_on(options, "lazy-apps"))


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() not in _NO


def _words(row: str, server: str) -> list[str] | None:
    """The words behind a server's name in a row; None where it is not run there."""
    if row.lstrip().startswith(("#", "RUN ", "pip ", "echo ", "@echo ")):
        return None
    words = _BETWEEN.sub(" ", row).split()
    starts = [i for i, word in enumerate(words) if word.rpartition("/")[2] == server]
    if not starts:
        return None
    command, *_ = _COMMAND_ENDS.split(" ".join(words[starts[0] + 1 :]))
    return command.split()
