"""Numbers of nodes, and what is gathered about each function, class and module while its body is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from cudalint.ir import nodes as ir
from cudalint.structs import Frozen


class Unit:
    """What is gathered about one function, class or module while its body is lowered."""

    __slots__ = ("bound", "is_generator", "of_module", "outside", "size", "words")

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.size = 0
        self.is_generator = False
        self.bound: set[str] = set()
        self.outside: set[str] = set()
        # Those of them that ``global`` declares.
        self.of_module: set[str] = set()


class Outer(Frozen):
    """What the body of an outermost function has to know of its file: its number there, its name, its parameters.

    ``annotates``: annotations in it are evaluated.
    """

    number: int
    qualname: str
    params: tuple[str, ...]
    annotates: bool = True


def code_of(unit: Unit, body: tuple[ir.Stmt, ...], params: Iterable[str]) -> ir.Code:
    """What was lowered of a function."""
    names = frozenset(unit.bound - unit.outside).union(params)
    return ir.Code(body, unit.is_generator, frozenset(unit.words), unit.size, names)


class Units:
    """Numbers the nodes of one module; ``record`` keeps, per ordinal, the libcst node it came from.

    Where ``postponed`` is given, it stands for the bodies of outermost functions, which are left out.
    """

    def __init__(
        self, filename: str, name: str, record: bool = False, postponed: Callable[[Outer], ir.Source] | None = None
    ) -> None:
        self._filename = filename
        self._module = name
        self._next = 0
        self._units: list[Unit] = []
        self._qualname: list[str] = []
        self._postponed = postponed
        # How many functions are around what is lowered, and how many outermost ones came before.
        self._depth = 0
        self.outermost = 0
        # Whether annotations are evaluated, which a file can say that they are not.
        self._annotates = True
        # The class whose body is lowered, or a method of it: its private names are its own.
        self._class = ""
        self.origin: dict[int, cst.CSTNode] | None = {} if record else None

    def _push(self) -> Unit:
        unit = Unit()
        self._units.append(unit)
        return unit

    def _pop_into_parent(self) -> Unit:
        unit = self._units.pop()
        parent = self._units[-1]
        parent.words |= unit.words
        parent.size += unit.size
        return unit

    def _mark(self, node: cst.CSTNode) -> int:
        ordinal = self._next
        self._next += 1
        self._units[-1].size += 1
        if self.origin is not None:
            self.origin[ordinal] = node
        return ordinal

    def _word(self, text: str) -> str:
        self._units[-1].words.add(text)
        return text

    def _bind(self, name: str) -> str:
        name = self._own(name)
        self._units[-1].bound.add(name)
        return name

    def _own(self, name: str) -> str:
        """A name as Python spells it: ``__x`` is another one in each class."""
        if not self._class or not name.startswith("__") or name.endswith("__"):
            return name
        owner = self._class.lstrip("_")
        return f"_{owner}{name}" if owner else name
