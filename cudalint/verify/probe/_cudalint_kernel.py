"""Runs the cells of a notebook one after another, as a kernel does, for ``cudalint --verify a.ipynb``.

What is as in a kernel: ``__main__`` is a module without a file, so a fresh process finds nothing of it; cells run on
the main thread inside a running event loop, beside another thread; ``sys.argv`` is the kernel's; the first exception
ends the run. Magics and lines for a shell are IPython's own, where it is installed. Code stands in the notebook's file,
in the rows of the program that cudalint reads.
"""

import ast
import asyncio
import builtins
import inspect
import json
import linecache
import os
import sys
import threading
import traceback
import types
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_HEAD = (_HERE, os.path.dirname(asyncio.__file__))


def main() -> None:
    """Run the plan that the command line names."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        plan = json.load(stream)
    sys.argv[:] = ["ipykernel_launcher.py", "-f", "kernel.json"]
    sys.path[0] = ""
    ours = sys.modules["__main__"]  # what is running here must not go with its module
    own = types.ModuleType("__main__")
    own.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = own
    # Tracebacks show rows of the program, not of the JSON; without a time they are never read anew.
    linecache.cache[plan["path"]] = (len(plan["shown"]), None, plan["shown"], plan["path"])
    shell = _shell(own) if plan["ipython"] else None
    if shell is None:
        # Programs ask by these whether they are in a kernel.
        builtins.__dict__.update(__IPYTHON__=True, get_ipython=lambda: None)
    threading.Thread(target=threading.Event().wait, daemon=True, name="kernel").start()
    asyncio.run(_run(plan, own, shell))
    del ours


def _shell(own: types.ModuleType) -> Any:
    """IPython's shell without its history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config, user_module=own, user_ns=own.__dict__)
    sys.modules["__main__"] = own
    return shell


async def _run(plan: "dict[str, Any]", own: types.ModuleType, shell: Any) -> None:
    for cell in plan["cells"]:
        if "writes" in cell:
            _write(cell, plan["replaces_links"])
        elif "magic" not in cell:
            await _run_cell(cell, plan["path"], own, shell)
        elif shell is not None:
            shell.run_cell(cell["magic"]).raise_error()


def _write(cell: "dict[str, Any]", replaces_links: bool) -> None:
    path = cell["writes"]
    if replaces_links and os.path.islink(path):
        os.unlink(path)
    with open(path, "a" if cell["appends"] else "w", encoding="utf-8") as stream:
        stream.write(cell["text"])


async def _run_cell(cell: "dict[str, Any]", path: str, own: types.ModuleType, shell: Any) -> None:
    source = "".join(cell["source"] if shell is None else _with_magics(shell, cell))
    try:
        if shell is not None:
            shell.events.trigger("pre_execute")
            shell.events.trigger("pre_run_cell", None)
        for code in _compiled(source, cell["first"], path):
            value = eval(code, own.__dict__)
            if inspect.iscoroutine(value) and code.co_flags & inspect.CO_COROUTINE:
                await value
        if shell is not None:
            shell.events.trigger("post_execute")
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HEAD):
            trace = trace.tb_next
        # Not by the interpreter's own hook, which would read the rows of the JSON.
        traceback.print_exception(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


def _with_magics(shell: Any, cell: "dict[str, Any]") -> "list[str]":
    """The Python of a cell, where IPython's calls stand in rows that the program leaves out."""
    lowered: list[str] = cell["source"]
    called = shell.transform_cell(cell["text"]).splitlines(keepends=True)
    if len(called) != len(lowered):
        return lowered
    for i in cell["ipython"]:
        lowered[i] = called[i]
    return lowered


def _compiled(source: str, first: int, path: str) -> "list[types.CodeType]":
    """A cell as statements, and its last expression, whose value is shown unless a semicolon follows it."""
    tree = ast.parse("\n" * (first - 1) + source, path)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    shown = tree.body[-1:] if not source.rstrip().endswith(";") else []
    shown = [one for one in shown if isinstance(one, ast.Expr)]
    rest = ast.Module(tree.body[: len(tree.body) - len(shown)], [])
    made = [compile(rest, path, "exec", flags, dont_inherit=True)]
    return [*made, *(compile(ast.Interactive([one]), path, "single", flags, dont_inherit=True) for one in shown)]


if __name__ == "__main__":
    main()
