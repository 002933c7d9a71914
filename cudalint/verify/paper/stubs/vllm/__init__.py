"""vLLM on paper: the engine runs in a process of its own, spawned where CUDA is initialised here."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any

import paper_driver as driver

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def _engine(prompts: Any, results: Any) -> None:
    import torch

    results.put("ready")
    while (found := prompts.get()) is not None:
        results.put([f"{text} ({torch.ones(2, device='cuda').sum().item()})" for text in found])


class SamplingParams:
    """How tokens are chosen."""

    def __init__(self, **_: Any) -> None:
        """Nothing on paper."""


class LLM:
    """An engine."""

    def __init__(self, model: str, tensor_parallel_size: int = 1, **_: Any) -> None:
        import torch

        method = os.environ.get("VLLM_WORKER_MULTIPROC_METHOD", "fork")
        if torch.cuda.is_initialized() and method != "spawn":
            print("WARNING We must use the `spawn` multiprocessing start method. Reasons: CUDA is initialized")
            method = "spawn"
        context = multiprocessing.get_context(method)
        self._prompts, self._results = context.SimpleQueue(), context.SimpleQueue()
        self._process = context.Process(target=_engine, args=(self._prompts, self._results), daemon=True)
        self._process.start()
        while self._results.empty():
            if self._process.exitcode is not None:
                raise RuntimeError("Engine core initialization failed. See root cause above.")
            time.sleep(0.01)
        self._results.get()

    def generate(self, prompts: list[str], *_: Any, **__: Any) -> list[str]:
        """Texts."""
        self._prompts.put(prompts)
        return self._results.get()  # type: ignore[no-any-return]

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None and self._process.is_alive():
            self._prompts.put(None)
            self._process.join()


__getattr__ = driver.lazy("vllm")
