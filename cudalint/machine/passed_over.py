"""Functions that the program calls only in a branch that it never takes, as what it says itself decides.

They have callers in sight, so nobody need be thought of who calls them otherwise: what runs where there is no GPU does
not run after one was used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine.trace import Site
from cudalint.structs import Mutable, field


class Branches(Mutable):
    """Which branches of a program were taken, and what those would have called that were not.

    ``_taken`` has both answers of a test once either was seen; ``_beside`` the functions called where it is not taken.
    """

    _taken: set[tuple[Site, bool]] = field(default_factory=set)
    _beside: dict[Site, frozenset[Site]] = field(default_factory=dict)

    def take(self, test: Site, *, holds: bool, fails: bool) -> bool:
        """Note how a test went; whether one branch is left that nobody has looked at."""
        if holds:
            self._taken.add((test, True))
        if fails:
            self._taken.add((test, False))
        return holds is not fails and test not in self._beside

    def leave(self, test: Site, called: Iterable[Site]) -> None:
        """Note what the branch would have called that was not taken."""
        self._beside[test] = frozenset(called)

    def copy(self) -> Branches:
        """The same, for an entry that goes on from there."""
        return Branches({*self._taken}, {**self._beside})

    @property
    def passed_over(self) -> frozenset[Site]:
        """The functions called in branches that no path took."""
        left = (
            called
            for test, called in self._beside.items()
            if not ((test, True) in self._taken and (test, False) in self._taken)
        )
        return frozenset[Site]().union(*left)


def callees(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    """What the statements of a block call, as far as they do nothing else with what it gives."""
    for statement in body:
        match statement:
            case ir.ExprStmt(value=ir.Call(func=callee)) | ir.Assign(value=ir.Call(func=callee)):
                yield callee
            case ir.Return(value=ir.Call(func=callee)):
                yield callee
            case _:
                yield from callees(inner_statements(statement))


def asks_caller(test: ir.Expr, function: ir.Function | None) -> bool:
    """Whether the callers of a function decide how a test in it goes, or it may be so: by what they give it."""
    given = frozenset() if function is None else frozenset(param.name for param in function.params)
    return _mentions(test, given)


def _mentions(node: ir.Expr, names: frozenset[str]) -> bool:
    match node:
        case ir.Const():
            return False
        case ir.Name(id=name):
            return name in names
        case ir.Attr(value=value) | ir.Not(value=value):
            return _mentions(value, names)
        case ir.Call(func=callee, args=args):
            return _mentions(callee, names) or any(_mentions(arg.value, names) for arg in args)
        case ir.Compare(left=left, right=right):
            return _mentions(left, names) or _mentions(right, names)
        case ir.Bool(values=values):
            return any(_mentions(value, names) for value in values)
    # Of anything else nothing is claimed.
    return True
