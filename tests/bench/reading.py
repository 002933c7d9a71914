"""Reads the bytes of all .py files below a folder, and does nothing else: what every linter pays at least."""

from __future__ import annotations

import os
import sys


def read(folder: str) -> int:
    """How many bytes there were."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(directory, name), "rb") as stream:
                    total += len(stream.read())
    return total


if __name__ == "__main__":
    print(read(sys.argv[1]))
