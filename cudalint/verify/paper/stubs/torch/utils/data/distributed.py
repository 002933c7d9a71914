"""torch.utils.data.distributed."""

from torch.utils.data.sampler import DistributedSampler  # noqa: F401
