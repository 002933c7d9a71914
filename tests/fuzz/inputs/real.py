"""Code that people wrote: each file of some folders as it is, and with lines behind it that run all of it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from fuzz.case import Case

# Behind a file: it uses CUDA, starts workers, and calls whatever the file defines.
_TAIL = """
import multiprocessing
import torch
if __name__ == "__main__":
    torch.cuda.init()
    multiprocessing.Pool(2).map(print, [1])
"""


def files(paths: Iterable[Path], first: int, count: int) -> Iterator[Case]:
    """Two cases for each Python file below some paths, from the ``first`` file on (1-based)."""
    found = (file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path]))
    for file in islice((file for file in found if file.is_file()), first - 1, first - 1 + count):
        data = file.read_bytes()
        yield Case(str(file), {file.name: data})
        driven = _driven(data)
        if driven is not None:
            yield Case(f"{file} (driven)", {file.name: driven})


def _driven(data: bytes) -> bytes | None:
    """The file with calls of its functions and classes behind it; None where it is no Python, or no UTF-8."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data.decode())
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls.append(f"{node.name}(*unknown)")
        elif isinstance(node, ast.ClassDef):
            methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            calls += [f"{node.name}(*unknown)", *(f"{node.name}(*unknown).{name}(*unknown)" for name in methods)]
    return data + (_TAIL + "".join(f"    {call}\n" for call in calls)).encode()
