"""State that is reached by a detour: through methods that Python calls by itself, functions that are handed over, and
what objects and libraries keep."""

from __future__ import annotations

from oracle.inherited import State

_COUNTED = ("    def __init__(self):", "        type(self).made += 1", "        self.number = self.made")

BY_PYTHON = {
    "counted_instances": State(
        ("Numbered()",),
        "Numbered().number",
        ("Numbered", "made"),
        top=("class Numbered:", "    made = 0", "", *_COUNTED),
        once=True,
    ),
    "asked_whether_inside": State(
        ("1 in Asked()",),
        "len(Asked.questions)",
        ("Asked", "questions"),
        top=(
            "class Asked:",
            "    questions = []",
            "",
            "    def __contains__(self, thing):",
            "        self.questions.append(thing)",
            "        return True",
        ),
    ),
    "set_by_a_property": State(
        ("Tuned().level = 3",),
        "Tuned.kept",
        ("Tuned", "kept"),
        top=(
            "class Tuned:",
            "    kept = 1",
            "",
            "    @property",
            "    def level(self):",
            "        return Tuned.kept",
            "",
            "    @level.setter",
            "    def level(self, value):",
            "        Tuned.kept = value",
        ),
    ),
    "class_of_an_object": State(
        ("SHIFTING.__class__ = After",),
        "SHIFTING.width",
        ("SHIFTING",),
        top=(
            *("class Before:", "    width = 1", "", ""),
            *("class After:", "    width = 3", "", ""),
            "SHIFTING = Before()",
        ),
    ),
    "bases_of_a_class": State(
        ("Moved.__bases__ = (Broad,)",),
        "Moved.width",
        ("Moved",),
        top=(
            *("class Slim:", "    width = 1", "", ""),
            *("class Broad:", "    width = 3", "", ""),
            *("class Moved(Slim):", "    pass"),
        ),
    ),
    "frozen_by_force": State(
        ('object.__setattr__(SEALED, "width", 3)',),
        "SEALED.width",
        ("SEALED",),
        ("import dataclasses",),
        top=("@dataclasses.dataclass(frozen=True)", "class Sealed:", "    width: int = 1", "", "", "SEALED = Sealed()"),
    ),
    "generator_that_sets": State(
        ("for _ in widening():", "    pass"),
        "Widened.width",
        ("Widened",),
        top=(
            *("class Widened:", "    width = 1", "", ""),
            *("def widening():", "    Widened.width = 3", "    yield None"),
        ),
    ),
    "coroutine_that_sets": State(
        ("asyncio.run(awaited())",),
        "Awaited.width",
        ("Awaited", "asyncio"),
        ("import asyncio",),
        top=(
            *("class Awaited:", "    width = 1", "", ""),
            *("async def awaited():", "    Awaited.width = 3"),
        ),
    ),
    "thread_that_sets": State(
        ("setter = threading.Thread(target=in_a_thread)", "setter.start()", "setter.join()"),
        "Threaded.width",
        ("Threaded", "threading", "Thread"),
        ("import threading",),
        top=(
            *("class Threaded:", "    width = 1", "", ""),
            *("def in_a_thread():", "    Threaded.width = 3"),
        ),
    ),
}

HANDED_OVER = {
    "mapped_method": State(
        ('list(map(GATHERED.update, [{"a": 1}]))',), "len(GATHERED)", ("GATHERED",), top=("GATHERED = {}",)
    ),
    "key_that_keeps": State(
        ("sorted([2, 1], key=lambda value: ASKED_KEYS.append(value) or value)",),
        "len(ASKED_KEYS)",
        ("ASKED_KEYS",),
        top=("ASKED_KEYS = []",),
    ),
    "partial_that_sets": State(
        ('functools.partial(setattr, Partly, "width")(3)',),
        "Partly.width",
        ("Partly",),
        ("import functools",),
        top=("class Partly:", "    width = 1"),
    ),
    "memory_of_a_decorator": State(
        ("squared(5)",),
        "len(squared.memory)",
        ("squared", "memory"),
        top=(
            "def remembering(function):",
            "    memory = {}",
            "",
            "    def inner(value):",
            "        if value not in memory:",
            "            memory[value] = function(value)",
            "        return memory[value]",
            "",
            "    inner.memory = memory",
            "    return inner",
            "",
            "",
            "@remembering",
            "def squared(value):",
            "    return value * value",
        ),
    ),
    "count_of_a_cache": State(
        ("cubed(2)",),
        "cubed.cache_info().currsize",
        ("cubed", "cache_info"),
        ("import functools",),
        top=("@functools.lru_cache(maxsize=None)", "def cubed(value):", "    return value**3"),
    ),
    "defaults_of_a_function": State(
        ("defaulted.__defaults__ = (3,)",),
        "defaulted()",
        ("defaulted", "__defaults__"),
        top=("def defaulted(width=1):", "    return width"),
    ),
}

KEPT = {
    "heap_of_the_library": State(
        ("heapq.heappush(PUSHED, 0)",),
        "len(PUSHED)",
        ("PUSHED", "heappush"),
        ("import heapq",),
        top=("PUSHED = [1, 2]",),
    ),
    "defaults_of_a_parser": State(
        ("PARSER.set_defaults(width=3)",),
        "PARSER.parse_args([]).width",
        ("PARSER", "set_defaults"),
        ("import argparse",),
        top=("PARSER = argparse.ArgumentParser()", 'PARSER.add_argument("--width", type=int, default=1)'),
    ),
    "sections_of_a_configuration": State(
        ('SECTIONS["a"]["width"] = "3"',),
        'SECTIONS["a"]["width"]',
        ("SECTIONS",),
        ("import configparser",),
        top=("SECTIONS = configparser.ConfigParser()", 'SECTIONS.read_dict({"a": {"width": "1"}})'),
    ),
    "array_in_place": State(
        ("np.copyto(FILLED_ARRAY, 3.0)",),
        "float(FILLED_ARRAY.sum())",
        ("FILLED_ARRAY", "copyto"),
        ("import numpy as np",),
        top=("FILLED_ARRAY = np.zeros(2)",),
    ),
    "view_of_an_array": State(
        ("view = VIEWED_ARRAY.reshape(2, 2)", "view[0, 0] = 3.0"),
        "float(VIEWED_ARRAY.sum())",
        ("VIEWED_ARRAY",),
        ("import numpy as np",),
        top=("VIEWED_ARRAY = np.zeros(4)",),
    ),
    "tensor_in_place": State(
        ("CHANGED_TENSOR.add_(3.0)",),
        "float(CHANGED_TENSOR.sum().item())",
        ("CHANGED_TENSOR",),
        ("import torch",),
        top=('CHANGED_TENSOR = torch.zeros(2, device="cpu")',),
    ),
    "buffer_of_bytes": State(
        ('struct.pack_into("<i", BUFFER, 0, 3)',),
        "BUFFER[0]",
        ("BUFFER", "pack_into"),
        ("import struct",),
        top=("BUFFER = bytearray(4)",),
    ),
}

REACHED = BY_PYTHON | HANDED_OVER | KEPT
