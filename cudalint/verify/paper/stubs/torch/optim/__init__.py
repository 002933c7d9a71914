"""torch.optim: steps along the gradients there are."""

from __future__ import annotations

from typing import Any

import paper_driver as driver

from torch._tensor import no_grad


class Optimizer:
    """Any optimizer."""

    def __init__(self, params: Any, lr: Any = 1e-3, *_: Any, **options: Any) -> None:
        found = list(params)
        if not found:
            raise ValueError("optimizer got an empty parameter list")
        groups = found if isinstance(found[0], dict) else [{"params": found}]
        self.param_groups = [{"lr": lr, **options, **g, "params": list(g["params"])} for g in groups]
        self.state: dict[Any, Any] = {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self, closure: Any = None) -> Any:
        """One step."""
        loss = closure() if closure is not None else None
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.detach().sub_(parameter.grad * float(group["lr"]))
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Its groups without parameters."""
        return {"param_groups": [{k: v for k, v in g.items() if k != "params"} for g in self.param_groups], "state": {}}

    def load_state_dict(self, state: Any) -> None:
        """Nothing to take."""


class SGD(Optimizer):
    """Stochastic gradient descent."""


class Adam(Optimizer):
    """Adam, a stand-in."""


class AdamW(Adam):
    """AdamW, a stand-in."""


class RMSprop(Optimizer):
    """RMSprop, a stand-in."""


class Adagrad(Optimizer):
    """Adagrad, a stand-in."""


__getattr__ = driver.lazy("torch.optim", "lr_scheduler")
