"""Where findings stand in a program, and which stacks pass there."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from cudalint.finding import Finding, Span, StepKind
from cudalint.verify.extent import is_library
from cudalint.verify.journal import Journal, Stack
from cudalint.verify.notebooks import python_of


def places(finding: Finding) -> list[Span]:
    """Where a finding is anchored, and the launches that lead to it."""
    return [finding.span, *(step.span for step in finding.trace if step.kind is StepKind.LAUNCH)]


def effects(finding: Finding) -> list[Span]:
    """Where what it predicts happens."""
    return [step.span for step in finding.trace if step.kind is StepKind.EFFECT]


def lines(span: Span) -> Iterator[tuple[str, int]]:
    """The rows of a span, each with the real path of its file."""
    name = os.path.realpath(span.filename)
    return ((name, row) for row in range(span.start.row, span.end.row + 1))


def rows(span: Span) -> tuple[str, int, int]:
    """The real path of a span's file, its first row and its last."""
    return os.path.realpath(span.filename), span.start.row, span.end.row


def stands(spans: Iterable[Span], stack: Stack) -> bool:
    """Whether a frame of the stack is in one of the spans."""
    rows = {place for span in spans for place in lines(span)}
    return any((os.path.realpath(name), row) in rows for name, row, _ in stack)


def surrounds(spans: Sequence[Span], stack: Stack) -> bool:
    """Whether a frame of the stack is in the function of one of the spans."""
    functions = {(os.path.realpath(span.filename), _function(span)) for span in spans}
    return any((os.path.realpath(name), function) in functions for name, _, function in stack)


def own(stack: Stack) -> Stack:
    """The frames of the program itself, without those of Python and of what is installed."""
    return tuple(frame for frame in stack if not is_library(frame[0]))


def noted(journal: Journal, what: str, spans: Iterable[Span]) -> frozenset[int]:
    """The processes that ``reached`` or ``passed`` one of the spans, on a Python that can tell."""
    rows = {place for span in spans for place in lines(span)}
    found = (event for event in journal.events if event.kind.startswith(f"{what} "))
    return frozenset(event.pid for event in found if (event.values[0], int(event.kind.split()[1])) in rows)


def _function(span: Span) -> str:
    """The name of the innermost function around a span, as frames spell it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(_tree(os.path.realpath(span.filename))) if isinstance(node, kinds)]
    around = [node.name for node in functions if node.lineno <= span.start.row <= (node.end_lineno or 0)]
    return around[-1] if around else "<module>"  # outer functions come before inner ones


@cache
def _tree(name: str) -> ast.Module:
    try:
        return ast.parse(python_of(Path(name)))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])
