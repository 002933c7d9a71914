"""Axis 6: what the worker does by itself. Every body binds `total`; a tensor it makes is `x`."""

from __future__ import annotations

from dataclasses import dataclass

TORCH = "import torch"
SAY = 'print("worker device:", x.device.type)'
SUM = "total = x.sum().item()"


@dataclass(frozen=True)
class Work:
    """Statements of a worker.

    `tensor`: x is meant to be a CUDA tensor. Those that may land elsewhere without an error say where.
    """

    lines: tuple[str, ...]
    imports: tuple[str, ...] = (TORCH,)
    tensor: bool = False


WORKS: dict[str, Work] = {
    "nothing": Work(("total = 1.0",), ()),
    "cpu": Work(("x = torch.ones(2)", SUM)),
    "cpu_model": Work(("net = torch.nn.Linear(2, 2)", "total = net(torch.ones(1, 2)).sum().item()")),
    "cuda_method": Work(("x = torch.ones(2).cuda()", SUM), tensor=True),
    "to": Work(('x = torch.ones(2).to("cuda")', SUM), tensor=True),
    "factory": Work(('x = torch.zeros(2, device="cuda")', SUM), tensor=True),
    "device_object": Work(('device = torch.device("cuda", 0)', "x = torch.zeros(2, device=device)", SUM), tensor=True),
    "device_context": Work(('with torch.device("cuda"):', "    x = torch.ones(2)", SUM), tensor=True),
    "available_pick": Work(
        ('device = "cuda" if torch.cuda.is_available() else "cpu"', "x = torch.ones(2, device=device)", SAY, SUM),
        tensor=True,
    ),
    "available_if": Work(
        ("x = torch.ones(2)", "if torch.cuda.is_available():", "    x = x.cuda()", SAY, SUM), tensor=True
    ),
    "initialized_if": Work(("x = torch.ones(2)", "if torch.cuda.is_initialized():", "    x = x.cuda()", SUM)),
    "not_initialized_if": Work(("x = torch.ones(2)", "if not torch.cuda.is_initialized():", "    x = x.cuda()", SUM)),
    "available_only": Work(('print("cuda:", torch.cuda.is_available())', "total = 1.0")),
    "device_count": Work(("total = float(torch.cuda.device_count())",)),
    "model_cuda": Work(("net = torch.nn.Linear(2, 2).cuda()", "total = net.weight.sum().item()")),
    "model_without_parameters": Work(("net = torch.nn.ReLU().cuda()", "total = net(torch.ones(2)).sum().item()")),
    "init": Work(("torch.cuda.init()", "total = 1.0")),
    "set_device": Work(("torch.cuda.set_device(0)", "total = 1.0")),
    "seed": Work(("torch.manual_seed(0)", "total = torch.rand(2).sum().item()")),
    "cuda_seed": Work(("torch.cuda.manual_seed(0)", "total = 1.0")),
    "synchronize": Work(("torch.cuda.synchronize()", "total = 1.0")),
    "pin_memory": Work(('x = torch.ones(2, device="cpu").pin_memory()', SUM)),
    "memory_allocated": Work(("total = float(torch.cuda.memory_allocated())",)),
    "cupy": Work(("total = float(cupy.ones(3).sum())",), ("import cupy",)),
    "numba": Work(
        ("grid = cuda.to_device(np.ones(3))", "total = float(grid.copy_to_host().sum())"),
        ("from numba import cuda", "import numpy as np"),
    ),
    "jax": Work(
        ("total = float(jnp.ones(3).sum())", 'print("worker device:", jax.default_backend())'),
        ("import jax", "import jax.numpy as jnp"),
    ),
    "fallback": Work(
        ("try:", "    x = torch.ones(2).cuda()", "except RuntimeError:", "    x = torch.ones(2)", SAY, SUM), tensor=True
    ),
    "fallback_exception": Work(
        (
            "try:",
            '    x = torch.ones(2, device="cuda")',
            "except Exception as error:",
            "    print(error)",
            "    x = torch.ones(2)",
            SAY,
            SUM,
        ),
        tensor=True,
    ),
    "wrong_handler": Work(
        ("try:", "    x = torch.ones(2).cuda()", "except ValueError:", "    x = torch.ones(2)", SAY, SUM), tensor=True
    ),
    "finally": Work(("try:", "    x = torch.ones(2).cuda()", "    " + SUM, "finally:", '    print("done")')),
    "late_import": Work(("import torch", "", "x = torch.ones(2).cuda()", SUM), (), tensor=True),
}
