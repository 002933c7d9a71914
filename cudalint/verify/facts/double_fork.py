"""Measures what expressions do to CUDA across a fork. Run as ``python double_fork.py JOB``; prints a line for each.

JOB is a JSON file: ``setup`` (imports), ``prepare`` (files that expressions read), ``use`` (how CUDA is used),
``inherit`` (what a parent makes before it forks), ``hang`` (seconds) and ``expressions``. This process imports the
framework and touches nothing. For each expression it forks A, which evaluates the expression and forks B, and B uses
CUDA; and it forks C, which uses CUDA and forks D, and D evaluates the expression. Standard library only.
"""

import json
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

# Times the limit of one evaluation: a process that waits for another that hangs.
_OUTER = 3
# Names that only C makes: in A these expressions mean nothing.
_INHERITED = ("G", "M", "list(M", "str(G", "del_G")
_ROOTS = ("accelerate", "transformers", "lightning", "cupy", "numba", "jax")
_PARTS = ("utils", "fabric", "cuda", "numpy")

Names = dict[str, Any]


def forked(job: "Callable[[], Any]", limit: float) -> "tuple[str, Any]":
    """Run a job in a fork: ('ok', value), ('raised', text), ('aborted', None) or ('hang', None)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _answer(job, limit, write)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(pid, 0)
    if data:
        kind, value = pickle.loads(data)
        return kind, value
    return ("hang", None) if os.WTERMSIG(status) == signal.SIGALRM else ("aborted", None)


def _answer(job: "Callable[[], Any]", limit: float, write: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limit)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    answer: tuple[str, Any]
    try:
        answer = ("ok", job())
    except BaseException as error:
        answer = ("raised", "".join(traceback.format_exception_only(error)).strip()[:300])
    with os.fdopen(write, "wb") as stream:
        pickle.dump(answer, stream)
    os._exit(0)


def evaluate(expression: str, names: Names) -> None:
    """Evaluate, and show the value as a caller would."""
    if expression.startswith("import "):
        exec(expression, names)
        return
    root = expression.partition(".")[0]
    if root in _ROOTS:
        exec(f"import {root}", names)
        for part in _PARTS:
            if expression.startswith(f"{root}.{part}"):
                exec(f"import {root}.{part}", names)
    repr(eval(expression, names))


class Bench:
    """One framework, imported and untouched."""

    def __init__(self, job: "dict[str, Any]") -> None:
        self.names: Names = {"__name__": "double_fork", "del_G": lambda: 1}
        self.use, self.inherit, self.hang = job["use"], job.get("inherit"), float(job["hang"])
        exec(job["setup"], self.names)
        if job.get("prepare"):
            self.fork(lambda: exec(job["prepare"], self.names))

    def fork(self, job: "Callable[[], Any]", times: int = 1) -> "tuple[str, Any]":
        """Run a job in a fork, within the limit."""
        return forked(job, self.hang * times)

    def measure(self, expression: str) -> "dict[str, Any]":
        """What is seen of one expression."""
        seen: dict[str, Any] = {"expression": expression}
        if self.inherit is None or not expression.split(".")[0].strip("(").startswith(_INHERITED):
            how, found = self.fork(lambda: self._first(expression), _OUTER)
            seen |= found if how == "ok" else {"lost": f"{how} {found or ''}".strip()}
        if "missing" not in seen:
            how, found = self.fork(lambda: self._second(expression), _OUTER)
            seen |= found if how == "ok" else {"lost": f"{how} {found or ''}".strip()}
        return seen

    def _first(self, expression: str) -> "dict[str, Any]":
        """In A: evaluate; then B uses CUDA."""
        seen: dict[str, Any] = {}
        try:
            evaluate(expression, self.names)
        except ModuleNotFoundError as error:
            return {"missing": error.name or str(error)}
        except Exception as error:
            seen["raised"] = f"{type(error).__name__}: {error}"[:300]
        torch = self.names.get("torch")
        if torch is not None:
            seen["initialises"] = bool(torch.cuda.is_initialized())
        how, text = self.fork(lambda: exec(self.use, self.names))
        return {**seen, "poisons": how != "ok", "symptom": text or how}

    def _second(self, expression: str) -> "dict[str, Any]":
        """In C: use CUDA; then D evaluates."""
        exec(self.inherit or self.use, self.names)
        how, text = self.fork(lambda: evaluate(expression, self.names))
        kind = {"ok": "ok", "raised": "fails", "aborted": "fails", "hang": "hang"}[how]
        return {"in_child": kind, "in_child_symptom": text or how}


def main() -> None:
    """Measure all expressions of a job."""
    with open(sys.argv[1]) as stream:
        job = json.load(stream)
    try:
        bench = Bench(job)
    except ModuleNotFoundError as error:
        print("missing:", error.name or error, flush=True)
        return
    if "numpy" not in sys.modules:
        exec("try:\n    import numpy\nexcept ImportError:\n    pass", {})  # once, not in every fork
    for expression in job["expressions"]:
        print("fact:", json.dumps(bench.measure(expression)), flush=True)


if __name__ == "__main__":
    main()
