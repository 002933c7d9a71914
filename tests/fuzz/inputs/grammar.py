"""Programs that follow Python's grammar and nothing else, made by hypothesmith (the extra ``fuzz``)."""

from __future__ import annotations

import importlib.util
import random
import warnings
from functools import cache

from fuzz.case import Case

# So that the program counts: it imports a framework and starts processes.
_HEAD = "import multiprocessing\nimport torch\ntorch.cuda.init()\n"
_TAIL = "\ndef work(n):\n    return torch.ones(n).cuda()\nif __name__ == '__main__':\n    multiprocessing.Pool(2).map(work, [1])\n"


class Missing(Exception):
    """The library that makes these programs is not installed."""


def demand() -> None:
    """Raise ``Missing`` where these programs cannot be made."""
    if importlib.util.find_spec("hypothesmith") is None:
        raise Missing("hypothesmith is not installed (pip install 'cudalint[fuzz]'): no programs from the grammar")


def draw(seed: int) -> Case:
    """A program of the grammar, between lines that make it matter; raises ``Missing``."""
    demand()
    known = _batch(seed // BATCH)
    text = known[seed % len(known)]
    tail = _TAIL if random.Random(seed).random() < 0.8 else ""
    return Case(f"grammar {seed}", {"program.py": f"{_HEAD}{text}{tail}".encode("utf-8", "replace")})


BATCH = 40


@cache
def _batch(number: int) -> tuple[str, ...]:
    """Some programs; hypothesis makes many at once cheaply, and the same ones for a number."""
    import hypothesmith
    from hypothesis import HealthCheck, Phase, given, seed, settings

    found: list[str] = []

    @seed(number)
    @settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(hypothesmith.from_node() if number % 2 else hypothesmith.from_grammar())
    def collect(text: str) -> None:
        found.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return tuple(found) or ("pass\n",)
