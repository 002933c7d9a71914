"""Makes a case small: files and statements are dropped as long as the complaint stays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from fuzz.case import Case

MOST_TRIALS = 400
StillFails = Callable[[Case], bool]


def shrunk(case: Case, still_fails: StillFails) -> Case:
    """The smallest case found with the same complaint, after so many trials at most."""
    trials = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(case):
            trials += 1
            if trials > MOST_TRIALS:
                return case
            if still_fails(smaller):
                case, progress = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with less in them, those that lack most first."""
    if len(case.files) > 1:
        for name in case.files:
            yield case.with_files({other: data for other, data in case.files.items() if other != name})
    for name, data in case.files.items():
        for text in _without_statements(data):
            yield case.with_files({**case.files, name: text})


def _without_statements(data: bytes) -> Iterator[bytes]:
    """A program without some of its statements: by the tree where there is one, by rows where there is none."""
    try:
        count = sum(1 for _ in _blocks(ast.parse(data)))
    except (SyntaxError, ValueError, RecursionError):
        yield from _without_rows(data)
        return
    for size in (16, 4, 1):
        for number in range(count):
            yield from _without(data, number, size)
    for number in range(count):
        yield from _unwrapped(data, number)
    yield from _without_rows(data)


def _without(data: bytes, number: int, size: int) -> Iterator[bytes]:
    length = len(list(_blocks(ast.parse(data)))[number])
    for at in range(0, length, size):
        tree = ast.parse(data)
        block = list(_blocks(tree))[number]
        if size > 1 and length < size:
            return
        del block[at : at + size]
        if not block and number:
            if length == 1:
                if isinstance(list(_blocks(ast.parse(data)))[number][0], ast.Pass):
                    return
                block.append(ast.Pass())
            else:
                continue
        yield ast.unparse(tree).encode("utf-8", "replace") + b"\n"


def _unwrapped(data: bytes, number: int) -> Iterator[bytes]:
    """A compound statement becomes what is in it."""
    for at in range(len(list(_blocks(ast.parse(data)))[number])):
        tree = ast.parse(data)
        block = list(_blocks(tree))[number]
        inner = getattr(block[at], "body", None)
        if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
            block[at : at + 1] = inner
            yield ast.unparse(ast.fix_missing_locations(tree)).encode("utf-8", "replace") + b"\n"


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _without_rows(data: bytes) -> Iterator[bytes]:
    rows = data.splitlines(keepends=True)
    for size in (32, 8, 2, 1):
        if size < len(rows) or size == 1:
            for at in range(0, len(rows), size):
                yield b"".join((*rows[:at], *rows[at + size :]))
