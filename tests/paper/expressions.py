"""Evaluates the expressions of facts.toml under the stubs by double fork, and prints where they differ.

`python expressions.py FRAMEWORK` with the stubs on PYTHONPATH; one fork per expression, so hundreds take seconds.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

HANG = 1.5
# Only JAX and TensorFlow hang when they fail; elsewhere a slow machine must not look like a hang.
HANGING = frozenset({"jax", "tensorflow"})
PATIENT = 40.0
SETUP = {
    "torch": "import torch, torch.utils.data\nfrom torch import nn\n"
    "from torch.utils.data import DataLoader, TensorDataset",
    "cupy": "import cupy as cp",
    "numba": "from numba import cuda\nimport numpy as np",
    "jax": "import jax\nimport jax.numpy as jnp",
    "tensorflow": "import tensorflow as tf",
    "libraries": "import torch",
}
USE = {
    "torch": "torch.ones(1).cuda()",
    "cupy": "cp.ones(1)",
    "numba": "cuda.to_device(np.ones(1))",
    "jax": "jnp.ones(1)",
    "tensorflow": "tf.constant([1.0]) + 1",
    "libraries": "torch.ones(1).cuda()",
}
# what D inherits from C, beside the driver's state
INHERIT = "G = torch.ones(3, device='cuda'); M = nn.Linear(2, 2).cuda()"


def forked(job: Callable[[], Any], limit: float = 60.0) -> tuple[str, Any]:
    """Run a job in a fork: ('ok', value), ('raised', text), ('aborted', None) or ('hang', None)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit)
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        try:
            answer = ("ok", job())
        except BaseException as error:
            answer = ("raised", "".join(traceback.format_exception_only(error)))
        with os.fdopen(write, "wb") as handle:
            pickle.dump(answer, handle)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as handle:
        data = handle.read()
    _, status = os.waitpid(pid, 0)
    if data:
        return pickle.loads(data)  # type: ignore[no-any-return]
    return ("hang", None) if os.WTERMSIG(status) == signal.SIGALRM else ("aborted", None)


def evaluate(expression: str, names: dict[str, Any]) -> None:
    """Evaluate, and show the value as a caller would."""
    if expression.startswith("import "):
        exec(expression, names)
        return
    module = expression.partition(".")[0]
    if module in ("accelerate", "transformers", "lightning", "cupy", "numba", "jax"):
        exec(f"import {module}", names)
        for part in ("utils", "fabric", "cuda", "numpy"):
            if expression.startswith(f"{module}.{part}"):
                exec(f"import {module}.{part}", names)
    repr(eval(expression, names))


def judge(fact: dict[str, Any], use: str, names: dict[str, Any], framework: str) -> list[str]:
    """Where the stubs and one measured fact differ."""
    expression, torch = fact["expression"], framework == "torch"
    limit = HANG if framework in HANGING else PATIENT

    def child_a() -> tuple[str, bool, tuple[str, Any]]:
        raised = ""
        try:
            evaluate(expression, names)
        except Exception as error:
            raised = type(error).__name__
        ready = "torch" in names and names["torch"].cuda.is_initialized()
        return raised, ready, forked(lambda: exec(use, names), limit)

    def child_c() -> tuple[str, Any]:
        exec(INHERIT if torch else use, names)
        return forked(lambda: evaluate(expression, names), limit)

    wrong = []
    if not (torch and expression.split(".")[0].strip("(").startswith(("G", "M", "list(M", "str(G", "del_G"))):
        how, found = forked(child_a)
        if how != "ok":
            return [f"{expression}: {how} {found}"]
        raised, ready, (b, text) = found
        if raised and not (fact.get("raises")):
            wrong.append(f"{expression}: raised {raised}")
        if (b != "ok") != fact["poisons"]:
            wrong.append(f"{expression}: poisons is {b != 'ok'} ({text})")
        elif fact.get("symptom") and fact["symptom"] not in (text or b):
            wrong.append(f"{expression}: symptom is {text or b}, not {fact['symptom']}")
        if "initialises" in fact and ready != fact["initialises"]:
            wrong.append(f"{expression}: initialises is {ready}")
    if "in_child" in fact:
        _, (d, text) = forked(child_c)
        seen = {"ok": "ok", "raised": "fails", "aborted": "fails", "hang": "hang"}[d]
        if seen != fact["in_child"]:
            wrong.append(f"{expression}: in a child of a CUDA parent {seen} ({text}), not {fact['in_child']}")
    return wrong


def main() -> int:
    """Check all expressions of one framework."""
    if sys.version_info >= (3, 11):
        from tomllib import loads
    else:
        from tomli import loads

    framework = sys.argv[1]
    facts = loads((Path(__file__).parent / "facts.toml").read_text())[framework]
    names: dict[str, Any] = {"__name__": "expressions", "del_G": lambda: 1}
    exec(SETUP[framework], names)
    import numpy  # noqa: F401  once, not in every fork

    if framework == "torch":  # made by a process that may use CUDA
        script = "import torch; torch.save(torch.ones(2), 'checkpoint_of_a_cpu_tensor.pt'); "
        script += "torch.save(torch.ones(2).cuda(), 'checkpoint_of_a_cuda_tensor.pt')"
        forked(lambda: exec(script, names))
    wrong = [line for fact in facts for line in judge(fact, USE[framework], names, framework)]
    print(f"{len(facts)} expressions")
    for line in wrong:
        print(f"differs: {line.strip()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
