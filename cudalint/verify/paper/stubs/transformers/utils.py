"""transformers.utils."""

import paper_driver as driver


def is_torch_cuda_available() -> bool:
    """Asks torch."""
    import torch

    return torch.cuda.is_available()


def is_torch_bf16_gpu_available() -> bool:
    """Asks torch, and initialises CUDA."""
    import torch

    return torch.cuda.is_available() and torch.cuda.is_bf16_supported()


def is_flash_attn_2_available() -> bool:
    """Not installed."""
    return False


__getattr__ = driver.lazy("transformers.utils")
