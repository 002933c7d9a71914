"""What the bytes of a file tell: whether it can matter at all, and whether something may start there."""

from __future__ import annotations

import re

_GPU_WORDS = (
    rb"cuda|gpu|GPU|cupy|numba|jax|tensorflow|keras|torch|pycuda|accelerate|transformers|lightning|pytorch_lightning|"
    rb"sentence_transformers|diffusers|timm"
)
_LAUNCH_WORDS = (
    rb"Pool|Process|ProcessPool|ProcessPoolExecutor|ThreadPool|ThreadPoolExecutor|Thread|Parallel|DataLoader|"
    rb"spawn|start_processes|forkpty|fork|set_start_method|init_process_group|num_proc|notebook_launcher|Trainer|"
    rb"CUDA_VISIBLE_DEVICES|set_default_device|set_default_tensor_type|set_memory_growth|set_visible_devices|"
    rb"init_device_mesh|multiprocessing|multiprocess|billiard|celery|gunicorn|preload_app"
)
_GPU = re.compile(rb"\b(?:" + _GPU_WORDS + rb")\b")
_LAUNCH = re.compile(rb"\b(?:" + _LAUNCH_WORDS + rb")\b|\bdevice\(|Device\(")
_PROCESS = re.compile(rb"\b(?:" + _LAUNCH_WORDS + rb")\b")


def may_matter(data: bytes) -> bool:
    """Whether the file mentions CUDA or processes, so that it is worth a look."""
    return _GPU.search(data) is not None or _PROCESS.search(data) is not None


def may_launch(data: bytes) -> bool:
    """Whether something that a rule speaks about may start in the file."""
    return _LAUNCH.search(data) is not None


def mentions_gpu(data: bytes) -> bool:
    """Whether the file mentions a GPU framework."""
    return _GPU.search(data) is not None
