"""Axis 7: which value crosses, and what the worker does with it."""

from __future__ import annotations

from dataclasses import dataclass

TORCH = "import torch"

CHANNELS = (
    "none",
    "argument",
    "generator",
    "partial",
    "bound",
    "closure",
    "global",
    "queue",
    "initargs",
    "result",
    "queue_result",
    "pipe",
    "pipe_result",
    "dataset",
)


SHARED = ("queue", "pipe")  # the worker takes the value from there
SHARED_RESULT = ("queue_result", "pipe_result")  # and puts its result there


@dataclass(frozen=True)
class Form:
    """A kind of value: how it is made, and what of it is read. `{v}` is the value."""

    made: str
    tensor: str = "{v}"
    imports: tuple[str, ...] = (TORCH,)
    definition: tuple[str, ...] = ()
    opaque: bool = False
    cuda: bool = True


_HOLDER = ("class Sample:", "    def __init__(self, values):", "        self.values = values")

FORMS: dict[str, Form] = {
    "number": Form("2.0", opaque=True, imports=(), cuda=False),
    "cpu_tensor": Form("torch.ones(2)", cuda=False),
    "cpu_model": Form("torch.nn.Linear(2, 2)", "{v}.weight", cuda=False),
    "copied_back": Form('torch.ones(2, device="cuda").cpu()', cuda=False),
    "tensor": Form('torch.ones(2, device="cuda")'),
    "tensor_cuda": Form("torch.ones(2).cuda()"),
    "derived": Form('torch.ones(2, device="cuda") * 2'),
    "dict": Form('{"x": torch.ones(2).cuda()}', '{v}["x"]'),
    "tuple": Form('(torch.ones(2, device="cuda"), 1)', "{v}[0]"),
    "list": Form('[torch.ones(2, device="cuda")]', "{v}[0]"),
    "object": Form("Sample(torch.ones(2).cuda())", "{v}.values", definition=_HOLDER),
    "model": Form("torch.nn.Linear(2, 2).cuda()", "{v}.weight"),
    "state_dict": Form("torch.nn.Linear(2, 2).cuda().state_dict()", '{v}["weight"]'),
    "item": Form('torch.ones(2, device="cuda").sum().item()', opaque=True, cuda=False),
    "stream": Form("torch.cuda.Stream()", opaque=True),
    "event": Form("torch.cuda.Event()", opaque=True, cuda=False),
    "cupy": Form("cupy.ones(2)", "{v}", ("import cupy",)),
}

# What a worker reads of a tensor. `torch` ones need a torch tensor.
HANDLINGS: dict[str, str] = {
    "ignore": "",
    "shape": "total += {t}.shape[0]",
    "dim": "total += {t}.ndim",
    "sum": "total += float({t}.sum())",
    "index": "total += float({t}.sum() * 2)",
    "cpu": "total += {t}.cpu().sum().item()",
    "cuda": "total += {t}.cuda().sum().item()",
    "device": "total += float({t}.is_cuda)",
}
_TORCH_ONLY = ("cpu", "cuda", "device")


def handlings(form: str) -> tuple[str, ...]:
    """What can be done with a value of this form."""
    if FORMS[form].opaque:
        return ("ignore",)
    return tuple(name for name in HANDLINGS if form != "cupy" or name not in _TORCH_ONLY)


def handle(form: str, handling: str, name: str) -> list[str]:
    """The statements of the worker that read the value."""
    line = HANDLINGS[handling]
    return [line.format(t=FORMS[form].tensor.format(v=name))] if line else []
