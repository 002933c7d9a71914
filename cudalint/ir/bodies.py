"""The bodies of a file's outermost functions, each parsed and lowered when something asks for it."""

from __future__ import annotations

from collections.abc import Callable, Set

import libcst as cst

from cudalint.ir import nodes as ir
from cudalint.ir.depth import TREE, room
from cudalint.ir.looks import Looks
from cudalint.ir.lower import body
from cudalint.ir.outline import Outline
from cudalint.ir.pickled import decoded, encoded
from cudalint.ir.units import Outer
from cudalint.structs import MutableUnique, field


class Bodies(MutableUnique):
    """The bodies of one file.

    ``kept`` holds the bytes of those that a run before lowered, ``fresh`` those that this run lowered. ``lowered`` is
    told how many nodes each of them has, ``refused`` the message for one that libcst cannot parse, although the
    running Python can. ``looks`` takes each body that is asked about.
    """

    filename: str
    name: str
    outline: Outline
    kept: dict[int, bytes] = field(default_factory=dict)
    lowered: Callable[[int], None] = lambda nodes: None
    refused: Callable[[str], None] = lambda reason: None
    fresh: dict[int, ir.Code] = field(default_factory=dict)
    looks: Looks = field(default_factory=Looks)
    _waiting: dict[int, Postponed] = field(default_factory=dict)

    def postponed(self, outer: Outer) -> Postponed:
        """What stands for a body until then."""
        found = self._waiting[outer.number] = Postponed(self, outer)
        return found

    def found(self, number: int) -> ir.Code:
        """A body by its number."""
        return self._waiting[number].code()

    def known(self, number: int) -> ir.Code | None:
        """A body that a run before lowered; None where none did."""
        data = self.kept.get(number)
        found = None if data is None else decoded(data)
        return found if isinstance(found, ir.Code) else None

    def code(self, outer: Outer) -> ir.Code:
        """One of them."""
        found = self.known(outer.number)
        if found is not None:
            return found
        code = self.fresh[outer.number] = self._lower(outer)
        self.lowered(code.size)
        return code

    def encoded(self) -> dict[int, bytes]:
        """All that were lowered so far, in this run and before."""
        fresh = {number: encoded(code) for number, code in self.fresh.items()}
        return {**self.kept, **{number: data for number, data in fresh.items() if data is not None}}

    def _lower(self, outer: Outer) -> ir.Code:
        try:
            with room(TREE):
                return body(self.outline.body(outer.number), self.filename, self.name, outer).code
        except cst.ParserSyntaxError as error:
            self.refused(error.message)
        except RecursionError:
            self.refused("the code is nested too deeply")
        return ir.EMPTY


class Postponed:
    """The body of a function that may never be asked for."""

    __slots__ = ("_bodies", "_code", "_place", "outer")

    def __init__(self, bodies: Bodies, outer: Outer) -> None:
        self._bodies = bodies
        self._code: ir.Code | None = None
        self._place = (bodies.name, outer.number)
        self.outer = outer

    def code(self) -> ir.Code:
        """The body."""
        self._bodies.looks.places.add(self._place)
        if self._code is None:
            self._code = self._bodies.code(self.outer)
        return self._code

    def mentions(self, words: Set[str]) -> bool:
        """Whether one of these words stands in the body, which is parsed where its text holds one."""
        self._bodies.looks.places.add(self._place)
        if self._code is None and not self._bodies.outline.holds(self.outer.number, words):
            return False
        return self.code().mentions(words)

    def binds_globals(self) -> bool:
        """Whether the body may have ``global`` statements: no look at it, since any change of such a body counts."""
        return ir.GLOBAL in self._bodies.outline.words(self.outer.number)
