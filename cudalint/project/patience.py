"""Which tests of a module are run: not those that start nothing themselves where others came to no end, or would."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions, last_name
from cudalint.machine.interpreter.entry import EntryRecord

# Tests of one module are about one thing: what three of them did not come to, the others hardly ever do.
MOST_IN_VAIN = 3
GIVEN_UP = f"tests that start nothing themselves, after {MOST_IN_VAIN} that came to no end"


@dataclass(slots=True)
class Patience:
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
