"""Which tests of a module are still run when those before them came to no end."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions
from cudalint.machine.interpreter.entry import EntryRecord

# Tests of one module are about one thing: what three of them did not come to, the others hardly ever do.
MOST_IN_VAIN = 3
GIVEN_UP = f"tests that start nothing themselves, after {MOST_IN_VAIN} that came to no end"


@dataclass(slots=True)
class Patience:
    """With the tests of one module, until several used up their steps before anything was started.

    From then on only those are run that say one of the words by which ``launchers`` of their ``module`` are known,
    themselves or in functions of the module that they mention. That is asked for when it is needed: looking for words
    takes bodies that may not be lowered yet.
    """

    module: ir.Module
    launchers: Callable[[], frozenset[str]]
    in_vain: int = 0
    _words: frozenset[str] | None = None

    def lasts_for(self, test: ir.Function) -> bool:
        """Whether a test is run."""
        if self.in_vain < MOST_IN_VAIN:
            return True
        if self._words is None:
            known = self.launchers()
            self._words = known | _leading_to(self.module, known)
        return test.mentions(self._words) or any(param.name in self._words for param in test.params)

    def note(self, record: EntryRecord) -> None:
        """Take in how a test ended."""
        self.in_vain += record.spent and not record.launches and not record.outcomes


def _leading_to(module: ir.Module, words: Set[str]) -> frozenset[str]:
    """The names of functions and classes of a module that mention launchers, or one another so that they lead there."""
    named: dict[str, list[ir.Function]] = {}
    for statement in module.body:
        match statement:
            case ir.FunctionDef(function=function):
                named.setdefault(function.name, []).append(function)
            case ir.ClassDef(name=name, body=body):
                named.setdefault(name, []).extend(functions(body))
    found: frozenset[str] = frozenset()
    while new := {
        name
        for name, own in named.items()
        if name not in found and any(function.mentions(words | found) for function in own)
    }:
        found |= new
    return found
