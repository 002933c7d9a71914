"""What the analysis saw functions do: whom they call, what they do to CUDA and processes, in which process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cudalint.ir import nodes as ir
from cudalint.machine.trace import TraceStep
from cudalint.project.program import FileProgram
from cudalint.structs import Struct

_TOP = "<module>"


def summaries(files: FileProgram, seen: Iterable[TraceStep]) -> list[str]:
    """One line per function that did something, and below it what it did and in which process, in order."""
    homes: dict[str, Mapping[int, str]] = {}
    told: dict[tuple[str, int, str], dict[tuple[int, str, str], None]] = {}
    for step in seen:
        name = step.site.module
        if name not in homes:
            module = files.module(name)
            homes[name] = {} if module is None else dict(_owners(module))
        owner = homes[name].get(step.site.ordinal, _TOP)
        first = min((o for o, q in homes[name].items() if q == owner), default=-1)
        told.setdefault((name, first, owner), {})[step.site.ordinal, step.process, step.message] = None
    lines: list[str] = []
    for name, _, owner in sorted(told):
        first = next(key[1] for key in told if key[0] == name and key[2] == owner)
        lines.append(f"{name}: {owner}")
        lines.extend(f"  {process}: {message}" for _, process, message in sorted(told[name, first, owner]))
    return lines


def _owners(module: ir.Module) -> Iterator[tuple[int, str]]:
    """The innermost function of each node."""
    stack: list[tuple[object, str | None]] = [(module.body, None)]
    while stack:
        node, owner = stack.pop()
        match node:
            case tuple():
                stack.extend((item, owner) for item in node)
            case ir.Function(qualname=qualname, params=params, body=body):
                stack.extend([(params, owner), (body, qualname)])
            case Struct():
                ordinal = getattr(node, "ordinal", None)
                if isinstance(ordinal, int) and owner is not None:
                    yield ordinal, owner
                stack.extend((getattr(node, name), owner) for name in node.__struct_fields__)
