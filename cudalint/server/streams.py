"""What an editor writes to its server, as far as that takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import BinaryIO

from cudalint.disk import MOST_BYTES

# Nobody's messages are as long: what says that it is would only fill the memory.
MOST_OF_A_MESSAGE = 16 * MOST_BYTES
# Nor are rows of a header; the rest of such a row is taken for more of them, which say nothing.
MOST_OF_A_ROW = 8192


class FromEditor:
    """What the editor sends; a message that is longer than any is its end, since what follows it cannot be found."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ended: Callable[[], object] = lambda: None

    def when_ended(self, end: Callable[[], None]) -> None:
        """Have the loop that runs now told of the end, before whoever reads hears of it."""
        loop = asyncio.get_running_loop()
        self._ended = lambda: loop.call_soon_threadsafe(end)

    def readline(self) -> bytes:
        """The next row of a header."""
        return self._told(self._stream.readline(MOST_OF_A_ROW))

    def read(self, size: int) -> bytes:
        """So many bytes, or nothing: who was interrupted said nothing."""
        data = self._stream.read(size) if size <= MOST_OF_A_MESSAGE else b""
        return self._told(data if len(data) == size else b"")

    def _told(self, data: bytes) -> bytes:
        if not data:
            self._ended()
        return data
