"""datasets on paper: map and filter with num_proc start a pool of `multiprocess`, which pickles by value."""

from __future__ import annotations

from typing import Any

import paper_driver as driver

DIED = (
    "One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing."
)


def _rows(call: Any, rows: list[Any], first: int, batched: bool, indices: bool, rank: Any, fn_kwargs: dict[str, Any]) -> list[Any]:
    """One shard through the function."""
    extra = (rank,) if rank is not None else ()
    if batched:
        columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}
        out = call(columns, *([list(range(first, first + len(rows)))] if indices else []), *extra, **fn_kwargs)
        columns = {**columns, **(out or {})}
        return [dict(zip(columns, values)) for values in zip(*columns.values())]
    found = []
    for number, row in enumerate(rows):
        out = call(dict(row), *([first + number] if indices else []), *extra, **fn_kwargs)
        found.append({**row, **{k: _host(v) for k, v in (out or {}).items()}})
    return found


def _kept(call: Any, rows: list[Any], fn_kwargs: dict[str, Any]) -> list[Any]:
    return [row for row in rows if call(dict(row), **fn_kwargs)]


def _host(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _run(job: Any, num_proc: int, shards: list[tuple[Any, ...]]) -> list[Any]:
    """All shards in a pool; a worker that dies is an error here, not a hang."""
    import time

    import multiprocess

    with multiprocess.Pool(num_proc) as pool:
        first = sorted(worker.pid for worker in pool._pool)
        results = [pool.apply_async(job, shard) for shard in shards]
        while not all(result.ready() for result in results):
            time.sleep(0.005)
            if sorted(worker.pid for worker in pool._pool) != first:
                raise RuntimeError(DIED)
            for result in results:
                if result.ready():
                    result.get()
        return [result.get() for result in results]


class Dataset:
    """Rows of named columns."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._data = rows
        self._format: str | None = None

    @classmethod
    def from_dict(cls, columns: dict[str, list[Any]], **_: Any) -> "Dataset":
        """From columns."""
        return cls([dict(zip(columns, values)) for values in zip(*columns.values())])

    @classmethod
    def from_list(cls, rows: list[dict[str, Any]], **_: Any) -> "Dataset":
        """From rows."""
        return cls([dict(row) for row in rows])

    @property
    def column_names(self) -> list[str]:
        """The columns."""
        return list(self._data[0]) if self._data else []

    num_rows = property(lambda self: len(self._data))

    def __len__(self) -> int:
        return len(self._data)

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        if self._format == "torch":
            import torch

            return {k: torch.tensor(v) if not isinstance(v, str) else v for k, v in row.items()}
        return row

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return [row[key] for row in self._data]
        if isinstance(key, slice):
            rows = self._data[key]
            return {name: [row[name] for row in rows] for name in self.column_names}
        return self._shown(self._data[int(key)])

    def __iter__(self) -> Any:
        return iter([self._shown(row) for row in self._data])

    def with_format(self, kind: str | None = None, **_: Any) -> "Dataset":
        """Another view."""
        made = Dataset(self._data)
        made._format = kind
        return made

    def set_format(self, kind: str | None = None, **_: Any) -> None:
        """Another view, in place."""
        self._format = kind

    def select(self, indices: Any) -> "Dataset":
        """Some rows."""
        return Dataset([self._data[i] for i in indices])

    def _shards(self, count: int) -> list[tuple[int, list[Any]]]:
        step, rest = divmod(len(self._data), count)
        found, at = [], 0
        for number in range(count):
            size = step + (number < rest)
            found.append((at, self._data[at : at + size]))
            at += size
        return found

    def map(self, function: Any = None, with_indices: bool = False, with_rank: bool = False, batched: bool = False,
            num_proc: int | None = None, fn_kwargs: Any = None, remove_columns: Any = None, **_: Any) -> "Dataset":  # fmt: skip
        """Every row, or batch, through a function."""
        options = fn_kwargs or {}
        if num_proc is None:
            rows = _rows(function, self._data, 0, batched, with_indices, 0 if with_rank else None, options)
        else:
            shards = [(function, part, at, batched, with_indices, n if with_rank else None, options)
                      for n, (at, part) in enumerate(self._shards(num_proc))]  # fmt: skip
            rows = [row for part in _run(_rows, num_proc, shards) for row in part]
        gone = set([remove_columns] if isinstance(remove_columns, str) else remove_columns or [])
        return Dataset([{k: v for k, v in row.items() if k not in gone} for row in rows])

    def filter(self, function: Any = None, num_proc: int | None = None, fn_kwargs: Any = None, **_: Any) -> "Dataset":
        """The rows that a function wants."""
        if num_proc is None:
            return Dataset(_kept(function, self._data, fn_kwargs or {}))
        shards = [(function, part, fn_kwargs or {}) for _, part in self._shards(num_proc)]
        return Dataset([row for part in _run(_kept, num_proc, shards) for row in part])


__getattr__ = driver.lazy("datasets")
