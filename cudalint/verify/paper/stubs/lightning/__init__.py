"""lightning on paper: making a Trainer touches nothing, fitting launches what its strategy says."""

from __future__ import annotations

import os
from typing import Any

import paper_driver as driver

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

BAD_FORK = (
    "Lightning can't create new processes if CUDA is already initialized. Did you manually call `torch.cuda.*` "
    "functions, have moved the model to the device, or allocated memory on the GPU any other way? Please remove any "
    "such calls, or change the selected strategy. You will have to restart the Python kernel."
)


def _module() -> Any:
    import torch

    class LightningModule(torch.nn.Module):
        """A module that knows how to train itself."""

        device = property(lambda self: next(self.parameters()).device)

        def log(self, *_: Any, **__: Any) -> None:
            """Nothing on paper."""

        def configure_optimizers(self) -> Any:
            """SGD."""
            return torch.optim.SGD(self.parameters(), lr=0.1)

    LightningModule.__module__ = "lightning"
    LightningModule.__qualname__ = "LightningModule"
    return LightningModule


class LightningDataModule:
    """A source of loaders."""

    def setup(self, stage: Any = None) -> None:
        """Nothing by default."""


def seed_everything(seed: int = 0, workers: bool = False, **_: Any) -> int:
    """Seed; touches nothing."""
    import torch

    torch.manual_seed(seed)
    return seed


def _rank(index: int, trainer: "Trainer", model: Any, loader: Any, count: int) -> None:
    os.environ.update(LOCAL_RANK=str(index), RANK=str(index), WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    import torch.distributed as dist

    trainer._fit(model, loader, index, count)
    if dist.is_initialized():
        dist.destroy_process_group()


class Trainer:
    """Runs a module."""

    def __init__(self, accelerator: str = "auto", devices: Any = "auto", strategy: str = "auto", max_epochs: int = 1,
                 logger: Any = True, num_nodes: int = 1, **_: Any) -> None:  # fmt: skip
        from torch import _gpu

        available = _gpu.device_count()
        self.gpu = accelerator in ("gpu", "cuda") or (accelerator == "auto" and available > 0)
        if self.gpu and not available:
            raise RuntimeError("No supported gpu backend found!")
        wanted = (available if self.gpu else 1) if devices in ("auto", -1, "-1") else devices
        self.count = len(wanted) if isinstance(wanted, (list, tuple)) else int(wanted)
        strategy = getattr(strategy, "name", strategy)
        self.strategy, self.max_epochs = strategy, max_epochs
        if strategy not in ("auto", "ddp", "ddp_spawn", "ddp_fork", "ddp_notebook"):
            driver.unknown(f"lightning strategy {strategy}")

    def fit(self, model: Any, train_dataloaders: Any = None, datamodule: Any = None, **_: Any) -> None:
        """Train, in the processes that the strategy starts."""
        import torch
        import torch.multiprocessing as mp

        if datamodule is not None:
            datamodule.setup("fit")
            train_dataloaders = datamodule.train_dataloader()
        loader = train_dataloaders
        if loader is None and hasattr(model, "train_dataloader"):
            loader = model.train_dataloader()
        if self.strategy in ("ddp_fork", "ddp_notebook", "ddp_spawn"):
            method = "spawn" if self.strategy == "ddp_spawn" else "fork"
            if method == "fork" and torch.cuda.is_initialized():
                raise RuntimeError(BAD_FORK)
            mp.start_processes(_rank, (self, model, loader, self.count), self.count, start_method=method)
        elif self.count > 1:
            driver.unknown("lightning strategy ddp over several devices (it runs the script again)")
        else:
            self._fit(model, loader, 0, 1)

    def _fit(self, model: Any, loader: Any, index: int, count: int) -> None:
        import torch
        import torch.distributed as dist

        device = torch.device("cuda", index) if self.gpu else torch.device("cpu")
        if self.gpu:
            torch.cuda.set_device(device)
        if count > 1 and not dist.is_initialized():
            dist.init_process_group("nccl" if self.gpu else "gloo")
        model.to(device)
        if count > 1:
            torch.nn.parallel.DistributedDataParallel(model)
        optimizer = model.configure_optimizers()
        for _ in range(self.max_epochs):
            for number, batch in enumerate(loader or ()):
                loss = model.training_step(_moved(batch, device), number)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def _moved(batch: Any, device: Any) -> Any:
    if isinstance(batch, (list, tuple)):
        return type(batch)(_moved(b, device) for b in batch)
    return batch.to(device) if hasattr(batch, "to") else batch


def __getattr__(name: str) -> Any:
    if name == "LightningModule":
        globals()[name] = _module()
        return globals()[name]
    if name in ("fabric", "pytorch", "strategies"):
        import importlib

        return importlib.import_module(f"lightning.{name}")
    driver.unknown(f"lightning.{name}")
