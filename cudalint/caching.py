"""Where a run keeps what it learns, and whether it may."""

from __future__ import annotations

import os

from cudalint.config import Config, ConfigError
from cudalint.secret import Malformed, Unsafe, secret
from cudalint.store import DEFAULT_FOLDER, Store
from cudalint.structs import Frozen

FOLDER_VARIABLE = "CUDALINT_CACHE_DIR"
OFF_VARIABLE = "CUDALINT_NO_CACHE"
_NO = frozenset({"", "0", "false"})


class Cache(Frozen):
    """The store of a run, or why it has none."""

    store: Store | None = None
    refusal: str | None = None

    @property
    def problem(self) -> str | None:
        """What a user who asks should know of it."""
        return self.refusal if self.store is None else self.store.problem

    def close(self) -> None:
        """End the run's use of it."""
        if self.store is not None:
            self.store.tidy()


def folder(found: Config, given: str | None = None) -> str:
    """The folder of the cache: the option, the variable, the configuration, or one in the project."""
    named = given or os.environ.get(FOLDER_VARIABLE) or found.cache_dir
    return os.path.realpath(named) if named else os.path.join(found.root or os.getcwd(), DEFAULT_FOLDER)


def opened(found: Config, given: str | None = None, *, wanted: bool = True) -> Cache:
    """The cache of a run with a configuration; raises ``ConfigError`` for a key that is none."""
    if not wanted or os.environ.get(OFF_VARIABLE, "").lower() not in _NO:
        return Cache()
    try:
        return Cache(Store(folder(found, given), secret()))
    except Malformed as error:
        raise ConfigError(str(error)) from None
    except Unsafe as error:
        return Cache(refusal=f"there is no cache: {error}")
