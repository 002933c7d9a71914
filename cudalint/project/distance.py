"""How far tests lie from what starts something: one that starts nothing itself is run where little code lies between.

A test is followed for a few hundred steps. One that names no launcher, neither itself nor by a function that it
names, comes to one within these only in a program that is small enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from cudalint.project.program import FileProgram
from cudalint.text.words import has_word

# The code that a test may reach by imports and is still followed through: one that reaches more, and names nothing,
# spends its steps on imports and on what comes first.
MOST_BETWEEN = 1_000_000


def lies_far(program: FileProgram, name: str) -> bool:
    """Whether a module reaches more code than a test is followed through."""
    left = MOST_BETWEEN
    for home in program.graph.reach(name):
        left -= program.facts(home).weight
        if left < 0:
            return True
    return False


def names_gpu(program: FileProgram, name: str) -> bool:
    """Whether a module mentions a GPU framework, or imports from one that does."""
    return any(program.facts(home).mentions_gpu for home in (name, *program.graph.imports(name)))


def starting(program: FileProgram, name: str, launching: Set[str]) -> frozenset[str]:
    """The names in a module of functions and classes elsewhere that mention a launcher, themselves or by others there.

    ``launching`` are the modules that mention launchers.
    """
    data = program.sources[name].data
    homes = launching & set(_homes(program, name))
    return frozenset(one.decode() for home in homes for one in program.facts(home).leading if has_word(data, one))


def _homes(program: FileProgram, name: str) -> Iterator[str]:
    """The modules that a module imports from: where it names a package, also those that the package gives names of."""
    for home in program.graph.imports(name):
        yield home
        if program.package(home) == home:
            yield from program.graph.imports(home)
