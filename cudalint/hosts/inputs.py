"""What a run of the command line is about: paths, or standard input under a name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import click

from cudalint.config import Config
from cudalint.discovery import NotFound, exists, leaves_out
from cudalint.found import Report
from cudalint.hosts import streams
from cudalint.hosts.progress import Progress
from cudalint.opening import Opened, Options, opened
from cudalint.session import Session
from cudalint.structs import Frozen, replace

if TYPE_CHECKING:
    from cudalint.fixing.rounds import Fixed
    from cudalint.fixing.silence import Silenced

STDIN = "-"


def require(paths: Iterable[str]) -> None:
    """A path that does not exist is said before anything is read, whatever the configuration says."""
    for path in paths:
        if not exists(path):
            raise NotFound(path)


def as_option(name: str) -> str:
    """A setting as the command line spells it."""
    return f"--{name}"


def open_paths(paths: tuple[str, ...], options: Options, *, quiet: bool = False) -> Opened:
    """A session over paths that exist; who waits for a revision is told, unless ``quiet``."""
    require(paths)
    return opened(paths, options, spelled=as_option, waiting=partial(_waiting, quiet))


def _waiting(quiet: bool, words: str) -> AbstractContextManager[object]:
    return Progress(sys.stderr, words, wanted=not quiet)


class Input(Frozen):
    """What a run is about, opened: paths, or the bytes of standard input under a name."""

    named: tuple[str, ...]
    opened: Opened
    data: bytes | None = None
    is_quiet: bool = False

    @property
    def effective(self) -> Config:
        """The configuration that holds."""
        return self.opened.config

    @property
    def is_stdin(self) -> bool:
        """Whether it is about standard input."""
        return self.data is not None

    @property
    def _session(self) -> Session:
        return self.opened.session

    def check(self, repair: bool) -> Report:
        """What is found in it."""
        if self._is_left_out():
            return Report()
        with self._progress("checking"):
            if self.data is not None:
                return self._session.check_alone(self.named[0], self.data, repair=repair)
            return self._session.check(self.named, repair=repair)

    def files(self) -> tuple[str, ...]:
        """The files on the disk that it is about."""
        return () if self.is_stdin else self._session.selected(self.named)

    def may_write(self) -> frozenset[str]:
        """The files that a repair may change."""
        from cudalint.fixing.reach import reach

        if self.is_stdin:
            return frozenset({os.path.abspath(self.named[0])})
        return reach(self.files(), self.named, self._session.root).files

    def repaired(self, unsafe: bool) -> Fixed:
        """All repairs that the options admit, made in memory."""
        from cudalint.fixing.rounds import Fixed, fix, fix_text

        if self._is_left_out():
            return Fixed((), 0, Report(), stdin=self.data or b"")
        with self._progress("repairing"):
            if self.data is not None:
                return fix_text(self._session, self.named[0], self.data, unsafe=unsafe)
            return fix(self._session, self.named, unsafe=unsafe)

    def silenced(self, reason: str) -> Silenced:
        """Comments for all findings, made in memory."""
        from cudalint.fixing.silence import Silenced, silence, silence_text

        if self._is_left_out():
            return Silenced(())
        with self._progress("checking"):
            if self.data is not None:
                return silence_text(self._session, self.named[0], self.data, reason)
            return silence(self._session, self.named, reason)

    def _progress(self, doing: str) -> Progress:
        return Progress(sys.stderr, doing, wanted=not self.is_quiet)

    def _is_left_out(self) -> bool:
        """Whether standard input stands for a file that is not to be read."""
        return self.is_stdin and leaves_out(self.effective.exclusion, self.named[0], self.effective.root)


def take(paths: tuple[str, ...], options: Options, stdin_filename: str | None, *, quiet: bool) -> Input:
    """What a command line names, opened.

    Raises:
        NotFound: for a path that does not exist.
        ConfigError: for settings that cannot be used.
    """
    if not is_stdin(paths, stdin_filename):
        named = paths or (".",)
        return Input(named, open_paths(named, options, quiet=quiet), is_quiet=quiet)
    if options.since is not None:
        raise click.UsageError("--since compares files of a project: standard input is none of them")
    if len(paths) > 1:
        raise click.UsageError("standard input (-) is checked alone, not together with other paths")
    filename = stdin_filename or STDIN
    # It leaves nothing behind: an editor sends each state of a text once.
    ready = opened((filename,), replace(options, cache=False), spelled=as_option)
    return Input((filename,), ready, streams.read_input(), quiet)


def is_stdin(paths: tuple[str, ...], stdin_filename: str | None) -> bool:
    """Whether standard input is what is named."""
    return STDIN in paths or (stdin_filename is not None and not paths)
