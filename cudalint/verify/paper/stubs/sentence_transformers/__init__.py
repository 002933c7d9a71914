"""sentence-transformers on paper: a model on the GPU unless a device is named."""

from __future__ import annotations

from typing import Any

import paper_driver as driver


def _model() -> Any:
    import torch

    class SentenceTransformer(torch.nn.Module):
        """An encoder."""

        def __init__(self, model_name_or_path: str = "", device: Any = None, **_: Any) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)
            self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
            self.to(self.device)

        def encode(self, sentences: Any, **_: Any) -> list[float]:
            """Vectors on the CPU."""
            many = sentences if isinstance(sentences, list) else [sentences]
            found = self.layer(torch.ones(len(many), 4, device=self.device)).cpu()
            return [float(row.sum().item()) for row in found]

    SentenceTransformer.__module__ = "sentence_transformers"
    SentenceTransformer.__qualname__ = "SentenceTransformer"
    return SentenceTransformer


def __getattr__(name: str) -> Any:
    if name == "SentenceTransformer":
        globals()[name] = _model()
        return globals()[name]
    driver.unknown(f"sentence_transformers.{name}")
