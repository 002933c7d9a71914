"""Which tests of a module are still run when those before them came to no end."""

from __future__ import annotations

from collections.abc import Set
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

    From then on only those are run that say ``words``, by which launchers are known, themselves or in functions of
    their module that they mention.
    """

    words: Set[str]
    in_vain: int = 0

    @staticmethod
    def over(module: ir.Module, words: Set[str]) -> Patience:
        """At the first test of a module."""
        return Patience(words | _leading_to(module, words))

    def lasts_for(self, test: ir.Function) -> bool:
        """Whether a test is run."""
        return self.in_vain < MOST_IN_VAIN or test.mentions(self.words) or self._is_given(test)

    def note(self, record: EntryRecord) -> None:
        """Take in how a test ended."""
        self.in_vain += record.spent and not record.launches and not record.outcomes

    def _is_given(self, test: ir.Function) -> bool:
        return any(param.name in self.words for param in test.params)


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
