"""The DataLoader: worker processes that fork at every iter(), a pin thread, errors that come back."""

from __future__ import annotations

import collections.abc
import multiprocessing
import queue
import sys
import threading
import traceback
from typing import Any, Callable, Iterator

import paper_driver as driver

import torch
from torch import _gpu, _tensor
from torch.utils.data.dataset import IterableDataset
from torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

_worker_info: Any = None


class WorkerInfo:
    """What a worker knows of itself."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def get_worker_info() -> Any:
    """Of the worker that asks, None in the main process."""
    return _worker_info


class _Caught:
    """An exception of a worker on its way to the parent."""

    def __init__(self, where: str) -> None:
        kind, value, _ = sys.exc_info()
        self.kind, self.where, self.text = kind, where, traceback.format_exc()

    def reraise(self) -> None:
        """Raise it again, with the worker's traceback as its message."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"  # type: ignore[union-attr]
        if self.kind is KeyError:
            raise KeyError(message)
        try:
            error = self.kind(message)  # type: ignore[misc]
        except Exception:
            raise RuntimeError(message) from None
        raise error


def default_convert(data: Any) -> Any:
    """Arrays to tensors."""
    if type(data).__module__ == "numpy" and hasattr(data, "dtype"):
        return torch.as_tensor(data)
    return data


def default_collate(batch: Any) -> Any:
    """One batch of many samples, made by torch's factories on the default device."""
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(batch)
    if type(first).__module__ == "numpy" and hasattr(first, "dtype"):
        return torch.stack([torch.as_tensor(item) for item in batch])
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(column) for column in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        return [default_collate(list(column)) for column in zip(*batch)]
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}")


def pin(data: Any) -> Any:
    """Page-lock every tensor of a batch."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return {key: pin(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin(value) for value in data))
    if isinstance(data, (list, tuple)):
        return type(data)(pin(value) for value in data)
    return data.pin_memory() if hasattr(data, "pin_memory") else data


class _Fetcher:
    """Turns indices into a batch, in the main process or in a worker."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], batched: bool, drop_last: bool, size: Any) -> None:
        self.dataset, self.collate, self.batched, self.drop_last, self.size = dataset, collate, batched, drop_last, size
        self.iterator = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def fetch(self, index: Any) -> Any:
        """One batch; StopIteration at the end of an iterable dataset."""
        if self.iterator is not None:
            return self._next(index)
        if not self.batched:
            return self.collate(self.dataset[index])
        if hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__:
            return self.collate(self.dataset.__getitems__(index))
        return self.collate([self.dataset[i] for i in index])

    def _next(self, index: Any) -> Any:
        assert self.iterator is not None
        if not self.batched:
            return self.collate(next(self.iterator))
        found = []
        for _ in index:
            try:
                found.append(next(self.iterator))
            except StopIteration:
                break
        if not found or (self.drop_last and len(found) < len(index)):
            raise StopIteration
        return self.collate(found)


class _End:
    """A worker's iterable dataset is exhausted."""


class _Restart:
    """Persistent workers begin a new epoch."""


def _seed_numpy(seed: int, worker: int) -> None:
    """NumPy's own generator, where there is NumPy: by other numbers than those of the others, so that none are alike."""
    try:
        import numpy
    except ImportError:
        return
    words = [worker, seed & 0xFFFFFFFF, seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))


def _worker_loop(settings: dict[str, Any], tasks: Any, results: Any, worker: int, seed: int) -> None:
    global _worker_info
    where = f"in DataLoader worker process {worker}"
    torch.set_num_threads(1)
    torch.manual_seed(seed + worker)
    import random

    random.seed(seed + worker)
    _seed_numpy(seed, worker)
    _worker_info = WorkerInfo(id=worker, num_workers=settings["workers"], seed=seed + worker, dataset=settings["dataset"])
    failed = None
    fetcher = None

    def make() -> Any:
        return _Fetcher(settings["dataset"], settings["collate"], settings["batched"], settings["drop"], None)

    try:
        if settings["init"] is not None:
            settings["init"](worker)
        fetcher = make()
    except Exception:
        failed = _Caught(where)
    while True:
        task = tasks.get()
        if task is None:
            break
        if isinstance(task, _Restart):
            fetcher = make() if failed is None else None
            continue
        number, index = task
        try:
            data = failed if failed is not None else fetcher.fetch(index)  # type: ignore[union-attr]
        except StopIteration:
            data = _End()
        except Exception:
            data = _Caught(where)
        results.put((number, worker, data))
        del data
    results.cancel_join_thread() if torch.cuda.is_initialized() else None


class _Single:
    """Iteration in the main process."""

    def __init__(self, loader: "DataLoader") -> None:
        _base_seed(loader)
        self.pin = loader._pins()
        self.fetcher = _Fetcher(loader.dataset, loader._collate(), loader._batched, loader.drop_last, None)
        self.indices = iter(loader._indices())

    def __iter__(self) -> "_Single":
        return self

    def __next__(self) -> Any:
        data = self.fetcher.fetch(next(self.indices))
        return pin(data) if self.pin else data


def _base_seed(loader: "DataLoader") -> int:
    """Drawn on the default device: with a CUDA default this initialises CUDA."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())


class _Multi:
    """Iteration through worker processes."""

    def __init__(self, loader: "DataLoader") -> None:
        self.loader = loader
        context = loader.multiprocessing_context or multiprocessing
        seed = _base_seed(loader)
        pins = loader._pins()
        self.results = context.Queue()
        self.tasks, self.workers = [], []
        settings = {
            "dataset": loader.dataset, "collate": loader._collate(), "batched": loader._batched,
            "drop": loader.drop_last, "init": loader.worker_init_fn, "workers": loader.num_workers,
        }  # fmt: skip
        self.closed = False
        for number in range(loader.num_workers):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            worker = context.Process(target=_worker_loop, args=(settings, tasks, self.results, number, seed))
            worker.daemon = True
            worker.start()
            self.tasks.append(tasks)
            self.workers.append(worker)
        self.pinned: queue.Queue[Any] | None = None
        self.pinning: threading.Thread | None = None
        self.pinning_ends = threading.Event()
        if pins:
            self._start_pinning()
        self._reset(first=True)

    def _start_pinning(self) -> None:
        self.pinned = queue.Queue()
        device = torch.cuda.current_device()

        def work(results: Any = self.results, out: Any = self.pinned, ends: Any = self.pinning_ends) -> None:
            torch.cuda.set_device(device)
            while True:
                try:
                    try:
                        item = results.get(timeout=0.2)
                    except queue.Empty:
                        item = None
                    if ends.is_set():
                        return
                    if item is None:
                        continue
                    number, worker, data = item
                    if not isinstance(data, (_Caught, _End)):
                        data = pin(data)
                    out.put((number, worker, data))
                except (EOFError, OSError):
                    return
                except Exception:
                    out.put((-1, -1, _Caught("in pin memory thread for device " + str(device))))

        self.pinning = threading.Thread(target=work, daemon=True)
        self.pinning.start()

    def _reset(self, first: bool = False) -> None:
        self.indices = iter(enumerate(self.loader._indices()))
        self.waiting: dict[int, Any] = {}
        self.sent: dict[int, int] = {}
        self.next = 0
        self.ended: set[int] = set()
        self.turn = 0
        if not first:
            for tasks in self.tasks:
                tasks.put(_Restart())
        for _ in range((self.loader.prefetch_factor or 2) * len(self.workers)):
            self._send()

    def _send(self) -> None:
        if len(self.ended) == len(self.workers):
            return
        try:
            number, index = next(self.indices)
        except StopIteration:
            return
        while self.turn % len(self.workers) in self.ended:
            self.turn += 1
        worker = self.turn % len(self.workers)
        self.turn += 1
        self.sent[number] = worker
        self.tasks[worker].put((number, index))

    def __iter__(self) -> "_Multi":
        return self

    def _receive(self) -> Any:
        source = self.pinned if self.pinned is not None else self.results
        waited = 0.0
        while True:
            try:
                return source.get(timeout=0.2)
            except queue.Empty:
                waited += 0.2
                dead = [w for w in self.workers if not w.is_alive()]
                if dead:
                    pids = ", ".join(str(w.pid) for w in dead)
                    self.close()
                    raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from None
                if self.loader.timeout and waited >= self.loader.timeout:
                    raise RuntimeError(f"DataLoader timed out after {self.loader.timeout} seconds") from None

    def __next__(self) -> Any:
        while True:
            while self.next not in self.waiting:
                if self.next not in self.sent:
                    self._finish()
                number, worker, data = self._receive()
                if number == -1:
                    data.reraise()
                self.waiting[number] = data
                if isinstance(data, _End):
                    self.ended.add(worker)
                self._send()
            data = self.waiting.pop(self.next)
            self.sent.pop(self.next, None)
            self.next += 1
            if isinstance(data, _End):
                continue
            if isinstance(data, _Caught):
                data.reraise()
            return data

    def _finish(self) -> None:
        if not self.loader.persistent_workers:
            self.close()
        raise StopIteration

    def close(self) -> None:
        """End the workers."""
        if self.closed or sys.is_finalizing():  # multiprocessing has ended its daemons by then
            return
        self.closed = True
        try:
            self._end_pinning()
            for tasks in self.tasks:
                tasks.put(None)
            for worker in self.workers:
                worker.join(timeout=2)
                if worker.is_alive():
                    worker.terminate()
        except Exception:  # the interpreter is going down
            pass

    def _end_pinning(self) -> None:
        """Before the workers end, as torch does: one that is killed may take the lock of the results with it."""
        if self.pinning is None:
            return
        self.pinning_ends.set()
        self.results.put(None)
        self.pinning.join()
        self.results.cancel_join_thread()

    def __del__(self) -> None:
        self.close()


class DataLoader:
    """Batches of a dataset."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Any = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None.")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset, self.num_workers, self.pin_memory, self.drop_last = dataset, num_workers, pin_memory, drop_last
        self.timeout, self.worker_init_fn, self.generator = timeout, worker_init_fn, generator
        self.prefetch_factor, self.persistent_workers, self.collate_fn = prefetch_factor, persistent_workers, collate_fn
        self.pin_memory_device, self.batch_size = pin_memory_device, batch_size
        self.multiprocessing_context = self._context(multiprocessing_context)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self._batched = batch_size is not None or batch_sampler is not None
        if isinstance(dataset, IterableDataset):
            if shuffle:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
            sampler = _Infinite()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if batch_sampler is None and batch_size is not None:
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self._iterator: Any = None

    def _context(self, wanted: Any) -> Any:
        if wanted is None:
            return None
        if self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                f"but got num_workers={self.num_workers}"
            )
        if isinstance(wanted, str):
            if wanted not in multiprocessing.get_all_start_methods():
                raise ValueError(f"multiprocessing_context option should specify a valid start method, but got {wanted!r}")
            return multiprocessing.get_context(wanted)
        return wanted

    def _collate(self) -> Callable[[Any], Any]:
        return self.collate_fn or (default_collate if self._batched else default_convert)

    def _indices(self) -> Any:
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _pins(self) -> bool:
        """Pinning asks for a GPU, and is quietly left out without one."""
        if not self.pin_memory or not _gpu.is_available():
            return False
        if _tensor.driver.here.poisoned:
            raise _gpu.initialization_error() if not _gpu.State.bad_fork else RuntimeError(_gpu.FORKED)
        return True

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _Single(self)
        if self.persistent_workers:
            if self._iterator is None:
                self._iterator = _Multi(self)
            else:
                self._iterator._reset()
            return self._iterator
        return _Multi(self)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            length = len(self.dataset)  # type: ignore[arg-type]
            return -(-length // self.batch_size) if self.batch_size else length
        return len(self._indices())


class _Infinite:
    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


__getattr__ = driver.lazy("torch.utils.data.dataloader")
