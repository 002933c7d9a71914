"""What an editor writes to its server, as far as that takes it."""

from __future__ import annotations

from typing import BinaryIO

from cudalint.disk import MOST_BYTES

# Nobody's messages are as long: what says that it is would only fill the memory.
MOST_OF_A_MESSAGE = 16 * MOST_BYTES


class FromEditor:
    """What the editor sends; a message that is longer than any is its end, since what follows it cannot be found."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """The next row of a header."""
        return self._stream.readline()

    def read(self, size: int) -> bytes:
        """So many bytes, or nothing."""
        return self._stream.read(size) if size <= MOST_OF_A_MESSAGE else b""
