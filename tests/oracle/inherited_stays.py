"""State that a worker leaves in its own process, and that the program looks at when it has waited: where a loop took
the place of the worker, it would find it."""

from __future__ import annotations

from oracle.inherited import State
from oracle.text import Lines


def _stays(
    name: str,
    does: Lines,
    shown: str,
    words: tuple[str, ...],
    imports: tuple[str, ...] = (),
    top: Lines = (),
) -> State:
    """What a function of this name does in the worker, and an expression that shows it in the program."""
    function = f"stays_{name}"
    body = (f"def {function}():", *(f"    {line}" for line in does), "    return 0", "", "")
    finish = (f'print("{name} {function}:", {shown})',)
    return State(
        read=f"{function}()",
        words=words,
        imports=imports,
        top=(*top, *body),
        finish=finish,
        marks=(f"{name} {function}:",),
        stays=True,
    )


STAYS = {
    "stays_folder": _stays("folder", ('os.chdir("/")',), 'os.getcwd() == "/"', ("os.chdir",), ("import os",)),
    "stays_variable": _stays(
        "variable",
        ('os.environ["STAYS"] = "set"',),
        'os.environ.get("STAYS")',
        ("STAYS", "os.environ"),
        ("import os",),
    ),
    "stays_for_commands": _stays(
        "command",
        ('os.environ["STAYS_FOR"] = "set"',),
        'subprocess.run(["printenv", "STAYS_FOR"], stdout=subprocess.DEVNULL).returncode',
        ("STAYS_FOR",),
        ("import os", "import subprocess"),
    ),
    "stays_type": _stays(
        "type",
        ("torch.set_default_dtype(torch.float64)",),
        "torch.get_default_dtype()",
        ("default_dtype",),
        ("import torch",),
    ),
    "stays_seed": _stays("seed", ("random.seed(5)",), "random.random()", ("random.seed",), ("import random",)),
    "stays_array_seed": _stays(
        "array_seed",
        ("np.random.seed(5)",),
        "float(np.random.rand())",
        ("numpy.random.seed",),
        ("import numpy as np",),
    ),
    "stays_depth": _stays(
        "depth", ("sys.setrecursionlimit(4321)",), "sys.getrecursionlimit()", ("setrecursionlimit",), ("import sys",)
    ),
    "stays_in_list": _stays(
        "list",
        ("STAYS_SEEN.append(1)",),
        "len(STAYS_SEEN) > 0",
        ("len()", "STAYS_SEEN"),
        top=("STAYS_SEEN = []", "", ""),
    ),
    "stays_in_test": _stays(
        "test",
        ("STAYS_DONE.add(1)",),
        '"some" if STAYS_DONE else "none"',
        ("STAYS_DONE",),
        top=("STAYS_DONE = set()", "", ""),
    ),
    "stays_in_class": _stays(
        "class",
        ("StaysLog.rows = 3",),
        "StaysLog().rows",
        ("StaysLog", "rows"),
        top=("class StaysLog:", "    rows = 0", "", ""),
    ),
    "stays_remembered": _stays(
        "remembered",
        ("stays_asked(1)",),
        "stays_asked.cache_info().currsize",
        ("cache_info", "stays_asked"),
        ("import functools",),
        ("@functools.lru_cache(None)", "def stays_asked(n):", "    return n * 2", "", ""),
    ),
    "stays_told": _stays(
        "told",
        ("stays_loaded()",),
        "stays_loaded()",
        ("print", "stays_loaded"),
        ("import functools",),
        (
            "@functools.lru_cache(None)",
            "def stays_loaded():",
            '    print("told stays_told: loads", flush=True)',
            "    return 3",
            "",
            "",
        ),
    ),
}
