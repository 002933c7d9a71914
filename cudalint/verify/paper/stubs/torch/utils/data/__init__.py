"""torch.utils.data: datasets, samplers and a DataLoader with real worker processes."""

import paper_driver as driver

from torch.utils.data.dataset import (  # noqa: F401
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from torch.utils.data.sampler import (  # noqa: F401
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.dataloader import DataLoader, default_collate, default_convert, get_worker_info  # noqa: F401, I001

__getattr__ = driver.lazy("torch.utils.data", "_utils distributed")
