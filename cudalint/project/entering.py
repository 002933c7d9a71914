"""Which modules of a program are entered: known before anything of the machine or the parser is imported."""

from __future__ import annotations

from collections.abc import Sequence

from cudalint.models.library import load
from cudalint.project.assembling import program
from cudalint.project.at_work import at_work
from cudalint.project.entries import candidates
from cudalint.project.file_facts import KnownFacts
from cudalint.project.near import near
from cudalint.project.program import FileProgram
from cudalint.store import Store
from cudalint.structs import Frozen
from cudalint.text.source import SourceFile


class Entering(Frozen):
    """Files as one program, and the modules whose entries are run."""

    files: FileProgram
    modules: tuple[str, ...]

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to run, and no file was read so closely that it was found to be broken."""
        return not self.modules and not self.files.files_parsed and not self.files.broken


@at_work
def entering(
    sources: Sequence[SourceFile],
    models: Sequence[str],
    root: str | None = None,
    store: Store | None = None,
    known: KnownFacts | None = None,
    about: frozenset[str] | None = None,
) -> Entering:
    """Begin a check of files with these models beside cudalint's own; ``about`` are the paths that it is about."""
    files = program(sources, load(tuple(models)), root, store, known)
    return Entering(files, tuple(entered_modules(files, about)))


def entered_modules(files: FileProgram, about: frozenset[str] | None) -> list[str]:
    """The modules whose entries are run: of context, those that have to do with what the run is about."""
    if about is None or about >= files.names.keys():
        return candidates(files)
    return candidates(files, near(files, about))
