"""lightning.pytorch.strategies: a strategy as an object, known by the name that stands for it."""

import paper_driver as driver


class DDPStrategy:
    """Ranks, started as start_method says."""

    def __init__(self, start_method: str = "popen") -> None:
        self.name = {"popen": "ddp", "fork": "ddp_fork"}.get(start_method, "ddp_spawn")


__getattr__ = driver.lazy("lightning.strategies")
