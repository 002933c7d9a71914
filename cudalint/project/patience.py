"""Which entries are run where others came to nothing: tests of a module, and what lies far from what a run is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions, last_name
from cudalint.machine.interpreter.entry import EntryRecord
from cudalint.project.callers import Place
from cudalint.structs import Mutable

# Tests of one module are about one thing: what three of them did not come to, the others hardly ever do.
MOST_IN_VAIN = 3
GIVEN_UP = f"tests that start nothing themselves, after {MOST_IN_VAIN} that came to no end"
# What entries of other modules may take that come to nothing of the files that a run is about: a few seconds.
MOST_DETOURS = 20_000
LEFT_OUT = (
    "not run for these files, which it reaches through others if at all: those that were run came to none of them"
)


class Patience(Mutable):
    """With the tests of one module, until several used up their steps before anything was started.

    From then on, and where a module ``is_far`` from what starts something, only those are run that say one of the words
    by which ``launchers`` of their ``module`` are known, themselves or in functions of the module that they mention.
    That is asked for when it is needed: looking for words takes bodies that may not be lowered yet.
    """

    module: ir.Module
    launchers: Callable[[], frozenset[str]]
    is_far: bool = False
    in_vain: int = 0
    _leading: tuple[frozenset[str], frozenset[str]] | None = None

    def lasts_for(self, test: ir.Function) -> bool:
        """Whether a test is run."""
        if self.in_vain < MOST_IN_VAIN and not self.is_far:
            return True
        if self._leading is None:
            self._leading = _leading_to(self.module, self.launchers())
        words, classes = self._leading
        if test.qualname.rpartition(".")[0] in classes:
            return True
        return test.mentions(words) or any(param.name in words for param in test.params)

    def note(self, record: EntryRecord) -> None:
        """Take in how a test ended."""
        self.in_vain += record.spent and not record.launches and not record.outcomes


def _leading_to(module: ir.Module, launchers: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words that mention a launcher, and the classes whose tests all do.

    The words are those of launchers, and functions and classes of the module that mention them, or one another so that
    they lead there. A class has all of its tests begin with what its bases and its other methods do.
    """
    named: dict[str, list[ir.Function]] = {}
    classes: dict[str, tuple[Set[str], list[ir.Function]]] = {}
    for statement in module.body:
        match statement:
            case ir.FunctionDef(function=function):
                named.setdefault(function.name, []).append(function)
            case ir.ClassDef(name=name, body=body, bases=bases):
                own = [f for f in functions(body) if not f.name.startswith("test")]
                classes[name] = {last_name(base.value) for base in bases}, own
                for function in functions(body):
                    named.setdefault(name, []).append(function)
                    named.setdefault(function.name, []).append(function)
    words = launchers

    def leads(name: str) -> bool:
        bases, _ = classes.get(name, ((), ()))
        return not words.isdisjoint(bases) or any(function.mentions(words) for function in named[name])

    while new := {name for name in named.keys() - words if leads(name)}:
        words |= new
    starting = {
        name
        for name, (bases, own) in classes.items()
        if not words.isdisjoint(bases) or any(f.mentions(words) for f in own)
    }
    return words, frozenset(starting)


class Detours(Mutable):
    """With entries that may lead through other modules to those that a run is ``about``.

    They have ``most`` steps together, not counted those of entries that come to a function of these. ``naming`` are the
    modules that name something of these, ``distances`` how many imports lead from a module to one of these.
    """

    about: Set[str]
    naming: Set[str]
    distances: Mapping[str, int]
    most: int
    steps: int = 0

    def is_direct(self, name: str) -> bool:
        """Whether the entries of a module are run in any case: it imports what it names."""
        return name in self.naming and self.distances.get(name, 0) <= 1

    def nearest_first(self, names: Iterable[str]) -> list[str]:
        """The modules that may lead there through others, in the order in which their entries are run."""
        far = [name for name in names if not self.is_direct(name)]
        return sorted(far, key=lambda name: (name not in self.naming, self.distances.get(name, len(self.distances))))

    @property
    def are_used_up(self) -> bool:
        """Whether no further one is run."""
        return self.steps >= self.most

    def note(self, entered: Set[Place], steps: int) -> None:
        """Take in what an entry came to."""
        if not any(module in self.about for module, _ in entered):
            self.steps += steps
