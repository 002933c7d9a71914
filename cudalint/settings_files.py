"""The files of settings of a project, read once in a run: those that lie in it, and that git does not ignore."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cudalint import disk, fingerprint
from cudalint.ignore_files import is_ignored
from cudalint.structs import Mutable, Partly, field
from cudalint.text import settings


class SettingsRead(Partly):
    """What a run rests on: below ``top``, files by path, and what tells whether they hold what they held.

    What a run says is the same whatever it rests on.
    """

    top: str = ""
    files: tuple[tuple[str, str], ...] = ()

    def compared(self) -> None:
        """Nothing of it."""

    def holds(self) -> bool:
        """Whether they hold it still."""
        return SettingsFiles(self.top).hold(self.files)


NONE_READ = SettingsRead()


class SettingsFiles(Mutable):
    """What was read of them, by path. ``top`` is the folder outside of which nothing is read."""

    top: str
    _texts: dict[str, str | None] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """The text of a file; None where there is none that may be read."""
        if path not in self._texts:
            self._texts[path] = _read(path) if self._may_read(path) else None
        return self._texts[path]

    def digest(self, path: str) -> str:
        """What tells whether a file holds what it held; of one that is not there, nothing."""
        text = self.text(path)
        return "" if text is None else fingerprint.digest(text)

    def ask(self, paths: Iterable[str]) -> None:
        """Read these too: another process did, for what is taken from there."""
        for path in paths:
            self.text(path)

    def read(self) -> SettingsRead:
        """All that were asked for, and what they held."""
        return SettingsRead(self.top, tuple((path, self.digest(path)) for path in sorted(self._texts)))

    def hold(self, states: Iterable[tuple[str, str]]) -> bool:
        """Whether files hold what they held."""
        return all(self.digest(path) == digest for path, digest in states)

    def _may_read(self, path: str) -> bool:
        if not self.top or not settings.is_settings(os.path.basename(path)) or not os.path.lexists(path):
            return False
        top, real = os.path.realpath(self.top), os.path.realpath(path)
        return real.startswith(top.rstrip(os.sep) + os.sep) and not is_ignored(real, top)


def _read(path: str) -> str | None:
    try:
        return disk.read(path, settings.MOST_BYTES).decode("utf-8-sig")
    except (disk.Unreadable, UnicodeDecodeError):
        return None
