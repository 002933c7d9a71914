"""transformers on paper: what takes a GPU by default."""

from __future__ import annotations

from typing import Any

import paper_driver as driver


def set_seed(seed: int, *_: Any) -> None:
    """Seed; touches nothing."""
    import torch

    torch.manual_seed(seed)


class TrainingArguments:
    """Making one initialises CUDA."""

    def __init__(self, output_dir: str = "out", use_cpu: bool = False, no_cuda: bool = False, **options: Any) -> None:
        import torch

        self.output_dir = output_dir
        self.__dict__.update(options)
        if use_cpu or no_cuda or not torch.cuda.is_available():
            self.device = torch.device("cpu")
        else:
            torch.cuda.init()
            self.device = torch.device("cuda", 0)


class Trainer:
    """Moves the model to the device of its arguments, and reads batches through a loader of its own."""

    def __init__(self, model: Any = None, args: Any = None, data_collator: Any = None, train_dataset: Any = None, **_: Any) -> None:
        self.args = args or TrainingArguments()
        self.model = model.to(self.args.device)
        self.data_collator, self.train_dataset = data_collator, train_dataset

    def train(self) -> None:
        """One epoch; the loss is that of nobody."""
        from torch.utils.data import DataLoader

        workers = getattr(self.args, "dataloader_num_workers", 0)
        pin = getattr(self.args, "dataloader_pin_memory", True)
        for batch in DataLoader(self.train_dataset, collate_fn=self.data_collator, num_workers=workers, pin_memory=pin):
            self.model(*(value.to(self.args.device) for value in batch.values()))


class _Pipeline:
    def __init__(self, task: str, device: Any) -> None:
        import torch

        self.task, self.device = task, device
        self.model = torch.nn.Linear(4, 2).to(device)

    def __call__(self, inputs: Any, **_: Any) -> Any:
        import torch

        many = inputs if isinstance(inputs, list) else [inputs]
        self.model(torch.ones(len(many), 4, device=self.device)).sum().item()
        return [{"label": "POSITIVE", "score": 0.9} for _ in many]


def pipeline(task: str = "text-classification", model: Any = None, device: Any = None, **_: Any) -> _Pipeline:
    """A model on cuda:0, unless a device is named."""
    import torch

    if device is None:
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    where = torch.device(device) if not (isinstance(device, int) and device < 0) else torch.device("cpu")
    return _Pipeline(task, where)


__getattr__ = driver.lazy("transformers", "utils")
