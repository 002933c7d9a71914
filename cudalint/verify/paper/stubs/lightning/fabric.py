"""lightning.fabric."""

from typing import Any

import paper_driver as driver


class Fabric:
    """Making one touches nothing."""

    def __init__(self, accelerator: str = "auto", devices: Any = "auto", **_: Any) -> None:
        self.accelerator = accelerator


__getattr__ = driver.lazy("lightning.fabric")
