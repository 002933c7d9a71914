"""Axis 5: where the worker's code lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.text import Draft, Lines, block

HOMES = (
    "function",
    "deep",
    "wrapped",
    "method",
    "staticmethod",
    "classmethod",
    "callable",
    "inherited_method",
    "lambda",
    "nested",
    "partial",
    "partial_keyword",
    "initializer",
)
LOCAL = ("lambda", "nested")
BOUND = ("method", "callable", "inherited_method")
PARTIAL = ("partial", "partial_keyword")


@dataclass(frozen=True)
class Code:
    """The worker's code: its parameters, its statements, and an extra value that it holds."""

    parameters: Sequence[str]
    body: Lines
    extra: str = "2.0"


def extra_name(home: str) -> str:
    """How the body calls the value that the callable holds."""
    return "self.scale" if home in BOUND else "scale"


def render_home(draft: Draft, home: str, code: Code) -> tuple[str, Lines]:
    """Define the worker; returns its expression and what main() does before."""
    return _RENDER[home](draft, code)


def _head(name: str, parameters: Sequence[str]) -> str:
    return f"def {name}({', '.join(parameters)}):"


def _function(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.define(*block(_head("work", code.parameters), code.body))
    return "work", []


def _deep(draft: Draft, code: Code) -> tuple[str, Lines]:
    args = ", ".join(code.parameters)
    draft.define(*block(_head("compute", code.parameters), code.body))
    draft.define(*block(_head("step", code.parameters), [f"return compute({args})"]))
    draft.define(*block(_head("work", code.parameters), [f"result = step({args})", "return result"]))
    return "work", []


def _wrapped(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.imports.add("import functools")
    inner = ["@functools.wraps(function)", *block("def run(*args, **kwargs):", ["return function(*args, **kwargs)"])]
    draft.define(*block("def logged(function):", [*inner, "", "return run"]))
    draft.define("@logged", *block(_head("work", code.parameters), code.body))
    return "work", []


def _class(name: str, base: str, code: Code, method: str) -> Lines:
    init = block("def __init__(self, scale):", ["self.scale = scale"])
    return block(f"class {name}{base}:", [*init, "", *block(_head(method, ["self", *code.parameters]), code.body)])


def _method(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.define(*_class("Worker", "", code, "work"))
    return "worker.work", [f"worker = Worker({code.extra})"]


def _inherited_method(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.define(*_class("Base", "", code, "work"))
    init = block("def __init__(self, scale):", ["super().__init__(scale)", "self.calls = 0"])
    draft.define(*block("class Worker(Base):", init))
    return "worker.work", [f"worker = Worker({code.extra})"]


def _callable(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.define(*_class("Worker", "", code, "__call__"))
    return "worker", [f"worker = Worker({code.extra})"]


def _staticmethod(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.define(*block("class Worker:", ["@staticmethod", *block(_head("work", code.parameters), code.body)]))
    return "Worker.work", []


def _classmethod(draft: Draft, code: Code) -> tuple[str, Lines]:
    head = _head("work", ["cls", *code.parameters])
    draft.define(*block("class Worker:", ["@classmethod", *block(head, code.body)]))
    return "Worker.work", []


def _lambda(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.define(*block(_head("compute", code.parameters), code.body))
    args = ", ".join(code.parameters)
    return f"lambda {args}: compute({args})", []


def _nested(draft: Draft, code: Code) -> tuple[str, Lines]:
    return "work", ["", *block(_head("work", code.parameters), code.body), ""]


def _partial(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.imports.add("import functools")
    draft.define(*block(_head("work", ["scale", *code.parameters]), code.body))
    return "job", [f"job = functools.partial(work, {code.extra})"]


def _partial_keyword(draft: Draft, code: Code) -> tuple[str, Lines]:
    draft.imports.add("from functools import partial")
    draft.define(*block(_head("work", [*code.parameters, "scale"]), code.body))
    return "job", [f"job = partial(work, scale={code.extra})"]


def _initializer(draft: Draft, code: Code) -> tuple[str, Lines]:
    """The body runs in the initializer; the task itself does nothing."""
    draft.define(*block(_head("set_up", ["scale"]), code.body))
    draft.define(*block(_head("work", code.parameters), [f"return {code.parameters[-1]}"]))
    return "work", []


_RENDER = {
    "function": _function,
    "deep": _deep,
    "wrapped": _wrapped,
    "method": _method,
    "staticmethod": _staticmethod,
    "classmethod": _classmethod,
    "callable": _callable,
    "inherited_method": _inherited_method,
    "lambda": _lambda,
    "nested": _nested,
    "partial": _partial,
    "partial_keyword": _partial_keyword,
    "initializer": _initializer,
}
