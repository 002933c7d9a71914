"""State that a task leaves in its worker and a later one finds: where several workers share the tasks out, nobody knows
which of them finds it."""

from __future__ import annotations

from oracle.inherited import State

_TORCH = ("import torch",)


def _made_once(name: str, *made: str) -> tuple[str, ...]:
    """A function that makes something in the first task of a worker, of one seed, and keeps it."""
    held = f"{name.upper()}_HELD"
    return (
        *(f"{held} = None", "", ""),
        *(f"def {name}():", f"    global {held}", f"    if {held} is None:", "        torch.manual_seed(0)"),
        *(f"        {held} = {part}" if i == 0 else f"        {part}" for i, part in enumerate(made)),
        *(f"    return {held}", "", ""),
    )


def _carried(read: str, words: tuple[str, ...], *top: str, imports: tuple[str, ...] = ()) -> State:
    return State(read=read, words=words, imports=imports, top=top, loader=False, carried=True)


OF_MODELS = {
    "left_mode": _carried(
        "left_mode()",
        ("eval",),
        *_made_once("layer_of_mode", "torch.nn.Linear(1, 1)"),
        *("def left_mode():", "    was = layer_of_mode().training", "    layer_of_mode().eval()", "    return was"),
        imports=_TORCH,
    ),
    "left_gradients": _carried(
        "left_gradients()",
        ("requires_grad",),
        *_made_once("layer_of_gradients", "torch.nn.Linear(1, 1)"),
        "def left_gradients():",
        "    was = layer_of_gradients().weight.requires_grad",
        "    layer_of_gradients().requires_grad_(False)",
        "    return was",
        imports=_TORCH,
    ),
    "left_rate": _carried(
        "left_rate()",
        ("keeps what its tasks change",),
        *_made_once("optimizer", "torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)"),
        "def left_rate():",
        '    optimizer().param_groups[0]["lr"] *= 0.5',
        '    return optimizer().param_groups[0]["lr"]',
        imports=_TORCH,
    ),
    "left_parts": _carried(
        "left_parts()",
        ("layers_that_grow",),
        *_made_once("layers_that_grow", "torch.nn.Sequential(torch.nn.Linear(1, 1))"),
        *("def left_parts():", "    layers_that_grow().append(torch.nn.ReLU())", "    return len(layers_that_grow())"),
        imports=_TORCH,
    ),
}

OF_PROGRAM = {
    "left_in_closure": _carried(
        "counted_by_closure()",
        ("tally",),
        *("def counting():", "    tally = 0", "", "    def step():", "        nonlocal tally"),
        *("        tally += 1", "        return tally", "", "    return step", "", ""),
        "counted_by_closure = counting()",
    ),
    "left_in_list": _carried(
        "left_in_list()",
        ("LEFT_ROWS",),
        *("LEFT_ROWS = []", "", "", "def left_in_list():", "    LEFT_ROWS.append(1)", "    return len(LEFT_ROWS)"),
    ),
    "left_in_default": _carried(
        "left_in_default()",
        ("rows",),
        *("def left_in_default(rows=[]):", "    rows.append(1)", "    return len(rows)"),
    ),
    "left_in_class": _carried(
        "Counted.one_more()",
        ("Counted", "cls"),
        *(
            "class Counted:",
            "    tasks = 0",
            "",
            "    @classmethod",
            "    def one_more(cls):",
            "        cls.tasks += 1",
        ),
        "        return cls.tasks",
    ),
    "left_in_defaultdict": _carried(
        "left_in_defaultdict()",
        ("LEFT_COUNTS",),
        *("LEFT_COUNTS = defaultdict(int)", "", "", "def left_in_defaultdict():"),
        *("    found = LEFT_COUNTS[len(LEFT_COUNTS)]", "    return found + len(LEFT_COUNTS)"),
        imports=("from collections import defaultdict",),
    ),
    "left_in_generator": _carried(
        "next(LEFT_NUMBERS)",
        ("LEFT_NUMBERS", "next"),
        *(
            "def numbering():",
            "    number = 0",
            "    while True:",
            "        number += 1",
            "        yield number",
            "",
            "",
        ),
        "LEFT_NUMBERS = numbering()",
    ),
    "left_in_iterator": _carried(
        "next(LEFT_COUNTER)",
        ("LEFT_COUNTER", "next"),
        "LEFT_COUNTER = itertools.count()",
        imports=("import itertools",),
    ),
}

OF_PROCESS = {
    "left_in_environment": _carried(
        "left_in_environment()",
        ("LEFT_IN", "environ"),
        "def left_in_environment():",
        '    was = os.environ.get("LEFT_IN", "")',
        '    os.environ["LEFT_IN"] = "x"',
        "    return was",
        imports=("import os",),
    ),
    "left_in_decimal": _carried(
        "left_in_decimal()",
        ("decimal",),
        *("def left_in_decimal():", "    was = decimal.getcontext().prec", "    decimal.getcontext().prec = 5"),
        "    return was",
        imports=("import decimal",),
    ),
    "left_in_folder": _carried(
        "left_in_folder()",
        ("chdir",),
        *("def left_in_folder():", '    was = os.getcwd() == "/"', '    os.chdir("/")', "    return was"),
        imports=("import os",),
    ),
    "left_in_random": _carried(
        "DRAWN_BY_TASKS.random()",
        ("DRAWN_BY_TASKS",),
        "DRAWN_BY_TASKS = random.Random(3)",
        imports=("import random",),
    ),
    "left_in_logger": _carried(
        "left_in_logger()",
        ("setLevel", "logging"),
        *('LEFT_LOGGER = logging.getLogger("left")', "", "", "def left_in_logger():", "    was = LEFT_LOGGER.level"),
        *("    LEFT_LOGGER.setLevel(10)", "    return was"),
        imports=("import logging",),
    ),
}

CARRIED = OF_MODELS | OF_PROGRAM | OF_PROCESS
