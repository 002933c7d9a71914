"""distributed on paper: a client that runs its tasks on a cluster, one at a time."""

from __future__ import annotations

from typing import Any

import paper_driver as driver


class Future:
    """A result."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        """What the task returned."""
        return self._value


class Client:
    """Hands tasks to a cluster."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def submit(self, function: Any, *args: Any, **_: Any) -> Future:
        """One task."""
        return Future(self.cluster.run(0, function, args))

    def map(self, function: Any, *rows: Any, **_: Any) -> list[Future]:
        """One task for each row."""
        return [Future(self.cluster.run(number, function, row)) for number, row in enumerate(zip(*rows))]

    def gather(self, futures: list[Future]) -> list[Any]:
        """All results."""
        return [future.result() for future in futures]

    def close(self) -> None:
        """Nothing to stop."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


__getattr__ = driver.lazy("distributed")
