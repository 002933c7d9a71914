"""Axis 1: what the parent does with CUDA, and where in the program it does it."""

from __future__ import annotations

from dataclasses import dataclass

from oracle.text import Draft, Lines, block

TORCH = "import torch"


@dataclass(frozen=True)
class Touch:
    """Statements of the parent."""

    lines: tuple[str, ...]
    imports: tuple[str, ...] = (TORCH,)


TOUCHES: dict[str, Touch] = {
    "nothing": Touch((), ()),
    "is_available": Touch(('print("cuda:", torch.cuda.is_available())',)),
    "if_available": Touch(("if torch.cuda.is_available():", '    print("on a GPU")')),
    "pick_device": Touch(('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")', "print(device)")),
    "nvml_check": Touch(
        ('os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"', 'print("cuda:", torch.cuda.is_available())'),
        (TORCH, "import os"),
    ),
    "nvml_check_too_late": Touch(
        ('print("cuda:", torch.cuda.is_available())', 'os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"'),
        (TORCH, "import os"),
    ),
    "is_initialized": Touch(('print("initialized:", torch.cuda.is_initialized())',)),
    "device_count": Touch(('print("GPUs:", torch.cuda.device_count())',)),
    "init": Touch(("torch.cuda.init()",)),
    "tensor": Touch(('warm = torch.ones(2, device="cuda")', "print(warm.shape)")),
    "tensor_cuda": Touch(("warm = torch.ones(2).cuda()", "print(warm.sum().item())")),
    "tensor_to": Touch(('device = torch.device("cuda")', "warm = torch.ones(2).to(device)", "print(warm.shape)")),
    "matmul": Touch(('a = torch.ones(2, 2, device="cuda")', "print((a @ a).sum().item())")),
    "model_cuda": Touch(("net = torch.nn.Linear(2, 2).cuda()", "print(net.weight.shape)")),
    "model_to": Touch(("net = torch.nn.Sequential(torch.nn.Linear(2, 2))", 'net.to("cuda")')),
    "model_without_parameters": Touch(("net = torch.nn.ReLU().cuda()", "print(net(torch.ones(2)).sum().item())")),
    "model_on_cpu": Touch(("net = torch.nn.Linear(2, 2)", "print(net(torch.ones(1, 2)).sum().item())")),
    "grad_scaler": Touch(('scaler = torch.amp.GradScaler("cuda")',)),
    "torch_device": Touch(('device = torch.device("cuda")', "print(device)")),
    "manual_seed": Touch(("torch.manual_seed(0)",)),
    "cuda_manual_seed_all": Touch(("torch.cuda.manual_seed_all(0)",)),
    "memory_allocated": Touch(('print("bytes:", torch.cuda.memory_allocated())',)),
    "empty_cache": Touch(("torch.cuda.empty_cache()",)),
    "set_default_device": Touch(('torch.set_default_device("cuda")',)),
    "device_name": Touch(("print(torch.cuda.get_device_name(0))",)),
    "device_properties": Touch(("print(torch.cuda.get_device_properties(0).total_memory)",)),
    "synchronize": Touch(("torch.cuda.synchronize()",)),
    "set_device": Touch(("torch.cuda.set_device(0)",)),
    "current_device": Touch(("print(torch.cuda.current_device())",)),
    "stream": Touch(("stream = torch.cuda.Stream()",)),
    "pin_memory": Touch(('page = torch.ones(2, device="cpu").pin_memory()', "print(page.shape)")),
    "cupy_available": Touch(('print("cuda:", cupy.cuda.is_available())',), ("import cupy",)),
    "cupy_array": Touch(("grid = cupy.ones(3)", "print(float(grid.sum()))"), ("import cupy",)),
    "numba_available": Touch(('print("cuda:", cuda.is_available())',), ("from numba import cuda",)),
    "numba_array": Touch(
        ("grid = cuda.to_device(np.ones(3))", "print(grid.copy_to_host().sum())"),
        ("from numba import cuda", "import numpy as np"),
    ),
    "jax_operation": Touch(("print(float(jnp.ones(3).sum()))",), ("import jax", "import jax.numpy as jnp")),
    "jax_import": Touch((), ("import jax", "import jax.numpy as jnp")),
    "pinned_loader": Touch(
        ("for page in DataLoader(torch.arange(4.0), batch_size=2, pin_memory=True):", "    print(page.shape)"),
        (TORCH, "from torch.utils.data import DataLoader"),
    ),
    "plain_loader": Touch(
        ("for page in DataLoader(torch.arange(4.0), batch_size=2):", "    print(page.shape)"),
        (TORCH, "from torch.utils.data import DataLoader"),
    ),
}

PLACES = ("inline", "helper", "deep", "method", "init", "guard", "module")


def render_touch(draft: Draft, touch: str, place: str) -> Lines:
    """Put the touch where it belongs; returns what stands at the moment of the touch."""
    found = TOUCHES[touch]
    draft.imports.update(found.imports)
    lines = list(found.lines)
    if not lines or place == "inline":
        return lines
    return _PLACED[place](draft, lines)


def _helper(draft: Draft, lines: Lines) -> Lines:
    draft.define(*block("def prepare():", lines))
    return ["prepare()"]


def _deep(draft: Draft, lines: Lines) -> Lines:
    draft.define(*block("def prepare():", lines))
    draft.define(*block("def get_ready():", ["prepare()"]))
    return ["get_ready()"]


def _method(draft: Draft, lines: Lines) -> Lines:
    draft.define(*block("class Session:", block("def prepare(self):", lines)))
    return ["session = Session()", "session.prepare()"]


def _init(draft: Draft, lines: Lines) -> Lines:
    draft.define(*block("class Session:", block("def __init__(self):", lines)))
    return ["session = Session()"]


def _guard(draft: Draft, lines: Lines) -> Lines:
    draft.guard.extend(lines)
    return []


def _module(draft: Draft, lines: Lines) -> Lines:
    draft.globals.extend(lines)
    return []


_PLACED = {
    "helper": _helper,
    "deep": _deep,
    "method": _method,
    "init": _init,
    "guard": _guard,
    "module": _module,
}
