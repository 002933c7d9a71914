"""A line on the terminal for who waits longer than a second; it is gone when the run ends."""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import TextIO

# Who waits less has no use for it.
PATIENCE = 1.0
_BEAT = 0.5
_CLEAR = "\r\x1b[K"


class Progress:
    """Says on a terminal what goes on, and for how long; elsewhere nothing.

    Args:
        stream: where to say it.
        doing: what goes on, in words that follow ``cudalint:``.
        wanted: whether the user wants to hear it.
        patience: seconds before the first word.
    """

    def __init__(self, stream: TextIO, doing: str, *, wanted: bool = True, patience: float = PATIENCE) -> None:
        self._stream = stream
        self._doing = doing
        self._patience = patience
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        if wanted and _is_terminal(stream):
            self._thread = threading.Thread(target=self._run, daemon=True, name="cudalint-progress")

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        wait = self._patience
        is_shown = False
        try:
            while not self._ended.wait(wait):
                self._say(f"{_CLEAR}cudalint: {self._doing} ({time.monotonic() - began:.0f} s)")
                is_shown, wait = True, _BEAT
            if is_shown:
                self._say(_CLEAR)
        except (OSError, ValueError):  # the terminal has gone: then nobody waits
            return

    def _say(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:
        return False
