"""torch.utils."""

import paper_driver as driver

__getattr__ = driver.lazy("torch.utils", "data checkpoint")
