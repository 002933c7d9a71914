"""The files of a run as one program, with what files of the repository say of how it is started and served."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from cudalint.models.library import Library
from cudalint.project import command_lines, deployments, pytest_files, requirements
from cudalint.project.command_lines import CommandLine
from cudalint.project.file_facts import KnownFacts
from cudalint.project.layout import layout
from cudalint.project.program import FileProgram
from cudalint.project.scripts import console_scripts, distributions
from cudalint.served import CONFIGURES, FORKED_TESTS, WORKS
from cudalint.store import Store
from cudalint.text.source import SourceFile

# So many bytes of a package are more than the few hundred steps of a test lead through.
LARGE_LIBRARY = 1_000_000
# Modules that run a program once they have prepared its process by their own ``install()``.
RUNS_PROGRAMS = "runs-programs"


def program(
    sources: Sequence[SourceFile],
    library: Library,
    root: str | None = None,
    store: Store | None = None,
    known: KnownFacts | None = None,
) -> FileProgram:
    """Name all files of a run; ``store`` is where their lowered forms are kept between runs.

    ``known`` are facts that were found out when the files were sorted.
    """
    by_path = {source.path: source for source in sources}
    placed = layout(by_path, root)
    named = {name: by_path[path] for path, name in placed.names.items()}
    result = FileProgram(library, named, placed.names, placed, store=store)
    result.known = known or KnownFacts(result.known.lexicon, store, root or placed.top)
    if root is not None:
        placed.distributions = distributions(root)
        placed.admitted = requirements.admitted(root)
        placed.large = frozenset(name for name in placed.tops if _is_large_library(result, name))
        result.commands = frozenset(_placed(result, console_scripts(root)))
        servers = deployments.servers(root)
        result.preloaded = frozenset(
            (home, name, server)
            for module, name, server in servers.preloaded
            for home, name in _placed(result, [(module, name)])
        )
        result.preloaded |= frozenset(_configured(result, servers))
        for module, pool in servers.pools:
            result.preloaded |= {(home, "", f"{WORKS}{pool}") for home in _homes_of_celery(result, module)}
        result.told = frozenset(_told(result, root))
        collected = {n: os.path.dirname(s.path) for n, s in named.items() if pytest_files.is_test_module(s.path)}
        forked = pytest_files.forked(root, {*collected.values()})
        result.preloaded |= {(n, "", FORKED_TESTS) for n, folder in collected.items() if folder in forked}
    return result


def _configured(files: FileProgram, servers: deployments.Servers) -> Iterable[tuple[str, str, str]]:
    """The configurations that servers are started with, and the application of each."""
    for path, module, name in servers.configured:
        served = [f"{home}:{name}" for home, _ in _placed(files, [(module, name)])]
        for conf in _files_called(files, path):
            yield from ((conf, application, CONFIGURES) for application in served)


def _homes_of_celery(files: FileProgram, named: str) -> list[str]:
    """Where celery finds its application: in a module, in one below it that is called so, or as a name of a module."""
    for modules in ((named, f"{named}.celery"), (named.rpartition(".")[0],)):
        found = [home for home, _ in _placed(files, [(module, "") for module in modules if module])]
        if found:
            return found
    return []


def _is_large_library(files: FileProgram, package: str) -> bool:
    """Whether the project is a library that models know, and has more code in a package than tests are led through."""
    if not files.library.knows(package) or not files.is_library(package):
        return False
    inside = (name for name in files.sources if name.partition(".")[0] == package)
    return sum(files.facts(name).weight for name in inside) > LARGE_LIBRARY


def _told(files: FileProgram, root: str) -> Iterable[tuple[str, CommandLine]]:
    """Programs and the words that files start them with: of each program a few, those of most words first."""
    lines: dict[str, set[CommandLine]] = {}
    for folder, target, line in command_lines.found(root):
        if line.through and not files.library.traits.has(line.through, RUNS_PROGRAMS):
            continue
        decides = line.sets_something or line.through
        if decides and (home := _program_called(files, folder, target, root)) is not None:
            lines.setdefault(home, set()).add(line)
    for home, told in lines.items():
        known = {(line.words, line.through): line for line in sorted(told, reverse=True)}
        chosen = sorted(known.values(), key=lambda line: (-len(line.words), line))
        yield from ((home, line) for line in chosen[: command_lines.MOST_LINES])


def _program_called(files: FileProgram, folder: str, target: str, root: str) -> str | None:
    """The module that a command names: seen from the file that has the command, from the top, or wherever it is."""
    if target.startswith("-m "):
        named = target.removeprefix("-m ")
        return files.layout.anywhere(f"{named}.__main__") or files.layout.anywhere(named)
    for start in (root, folder):
        home = files.names.get(os.path.normpath(os.path.join(start, target)))
        if home is not None:
            return home
    found = _files_called(files, target)
    return found[0] if len(found) == 1 else None


def _files_called(files: FileProgram, path: str) -> list[str]:
    """The modules that a path names, which is seen from a folder that is not known: by as much of it as is there."""
    parts = path.strip("./").split("/")
    for begin in range(len(parts)):
        end = f"/{'/'.join(parts[begin:])}"
        if found := [name for path, name in files.names.items() if f"/{path}".endswith(end)]:
            return found
    return []


def _placed(files: FileProgram, named: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """The modules of the project, and the names in them, that files speak of."""
    for module, name in named:
        home = files.layout.anywhere(module)
        if home is not None:
            yield home, name
