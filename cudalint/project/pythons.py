"""Which Pythons a program runs on: several projects of a repository may each say so for the files below them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from cudalint.structs import Frozen

if TYPE_CHECKING:  # a run with nothing to analyse asks for versions alone
    from cudalint.machine.interpreter import Host

_Held = TypeVar("_Held")


def held(path: str, nearer: tuple[tuple[str, _Held], ...], otherwise: _Held) -> _Held:
    """What the first of some folders says that a file lies below, the innermost of which come first."""
    return next((said for folder, said in nearer if path.startswith(folder.rstrip(os.sep) + os.sep)), otherwise)


class Hosts(Frozen):
    """The Pythons and the platform that programs are taken to run on, by the file that is started."""

    common: Host
    nearer: tuple[tuple[str, Host], ...] = ()

    def of(self, path: str) -> Host:
        """Those of the program that begins in a file."""
        return held(path, self.nearer, self.common)
