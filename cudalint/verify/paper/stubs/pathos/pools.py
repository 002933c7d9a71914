"""pathos.pools: a pool of processes with map over several iterables."""

from __future__ import annotations

from typing import Any

import multiprocess
import paper_driver as driver


class ProcessPool:
    """A pool that pickles with dill."""

    def __init__(self, nodes: Any = None, **options: Any) -> None:
        self.nodes = nodes
        self._pool = multiprocess.Pool(nodes, **options)

    def map(self, f: Any, *args: Any, **_: Any) -> list[Any]:
        """All results."""
        return list(self._pool.starmap(f, zip(*args)))

    def imap(self, f: Any, *args: Any, **_: Any) -> Any:
        """One result after the other."""
        return self._pool.imap(lambda row: f(*row), zip(*args))

    def amap(self, f: Any, *args: Any, **_: Any) -> Any:
        """Results later."""
        return self._pool.starmap_async(f, zip(*args))

    def pipe(self, f: Any, *args: Any, **kwds: Any) -> Any:
        """One call."""
        return self._pool.apply(f, args, kwds)

    def apipe(self, f: Any, *args: Any, **kwds: Any) -> Any:
        """One call, later."""
        return self._pool.apply_async(f, args, kwds)

    def close(self) -> None:
        """No more work."""
        self._pool.close()

    def join(self) -> None:
        """Wait."""
        self._pool.join()

    def clear(self) -> None:
        """Forget it."""
        self._pool.terminate()

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: Any) -> None:
        self._pool.terminate()


__getattr__ = driver.lazy("pathos.pools")
