"""Programs of the corpus, changed at random: what no person writes, and every parser accepts."""

from __future__ import annotations

import ast
import random
import warnings

from fuzz.case import Case
from fuzz.inputs import layout, mutations
from fuzz.inputs.corpus import corpus

MOST_MUTATIONS = 6
ATTEMPTS = 4


def draw(seed: int) -> Case:
    """A mutant: of one to three files of a program, or the whole program in another layout."""
    chance = random.Random(seed)
    base = corpus()[chance.randrange(len(corpus()))]
    files = dict(base.files)
    names = sorted(name for name in files if name.endswith(".py") and files[name].strip() and _is_python(files[name]))
    for name in chance.sample(names, min(len(names), chance.choice((1, 1, 1, 2, 3)))):
        files[name] = _mutated(files[name].decode(), chance)
    return Case(f"mutants {seed} ({base.name})", files)


def _is_python(data: bytes) -> bool:
    """Whether a file can be changed by its tree: some of the corpus are broken on purpose."""
    try:
        ast.parse(data.decode())
    except (SyntaxError, ValueError):
        return False
    return True


def _mutated(text: str, chance: random.Random) -> bytes:
    """The text after some mutations; one that Python refuses is kept only now and then."""
    for attempt in range(ATTEMPTS):
        tree = ast.parse(text)
        for _ in range(chance.randint(1, MOST_MUTATIONS)):
            chance.choice(mutations.ALL)(tree, chance)
        try:
            made = ast.unparse(ast.fix_missing_locations(tree))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(made, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            if attempt < ATTEMPTS - 1 or chance.random() < 0.9:
                continue
            made = text[: chance.randrange(len(text) + 1)]
        return layout.laid(made, chance)
    return layout.laid(text, chance)
