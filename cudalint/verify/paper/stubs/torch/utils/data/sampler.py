"""Samplers: they draw with torch's factories, so they follow the default device."""

from __future__ import annotations

import math
from typing import Any, Generic, Iterator, TypeVar

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """An order of indices."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """In order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Shuffled, by a CPU generator seeded from the default device."""

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._count = num_samples

    def __len__(self) -> int:
        return self._count or len(self.data_source)

    def __iter__(self) -> Iterator[int]:
        import torch

        generator = self.generator
        if generator is None:
            seed = int(torch.empty((), dtype=torch.int64).random_().item())
            generator = torch.Generator()
            generator.manual_seed(seed)
        n = len(self.data_source)
        if self.replacement:
            yield from torch.randint(0, n, (len(self),), generator=generator).tolist()
        else:
            yield from torch.randperm(n, generator=generator).tolist()[: len(self)]


class SubsetRandomSampler(Sampler[int]):
    """Some indices, shuffled."""

    def __init__(self, indices: Any, generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        import torch

        for i in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Drawn by weight; on paper every weight is alike."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        self.weights, self.num_samples, self.generator = weights, num_samples, generator

    def __iter__(self) -> Iterator[int]:
        import torch

        return iter(torch.randint(0, len(self.weights), (self.num_samples,), generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):  # type: ignore[type-arg]
    """Indices in batches."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)


class DistributedSampler(Sampler[int]):
    """The part of one rank."""

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:
        import torch.distributed as dist

        self.dataset, self.shuffle, self.seed, self.epoch = dataset, shuffle, seed, 0
        self.num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
        self.rank = dist.get_rank() if rank is None else rank
        self.num_samples = math.ceil(len(dataset) / self.num_replicas)

    def set_epoch(self, epoch: int) -> None:
        """Another order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        import random

        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        order += order[: self.num_samples * self.num_replicas - len(order)]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
