"""Nodes of the program form.

Every node carries an *ordinal*: its number in the order of lowering. Lowering the same text again gives
the same ordinals, so that positions can be computed later, and only for files that need them. Each outermost function
has a range of its own (``STRIDE``), so that its body may be lowered later than its file, or never.
Nodes compare by identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from enum import Enum
from typing import Protocol

from cudalint.structs import Unique

# Ordinals of the body of outermost function number n, from 0, begin at (n + 1) * STRIDE; what follows it in its file
# goes on half a stride later. No text that is parsed has so many nodes.
STRIDE = 1 << 24


class Expr(Unique):
    """Any expression."""

    ordinal: int


class Const(Expr):
    """A literal: str, bytes, int, float, complex, bool, None or Ellipsis."""

    value: Hashable


class Name(Expr):
    """A variable."""

    id: str


class Attr(Expr):
    """``value.attr``."""

    value: Expr
    attr: str


class Arg(Unique):
    """One argument of a call; ``star`` is ``""``, ``"*"`` or ``"**"``."""

    value: Expr
    keyword: str | None
    star: str


class Call(Expr):
    """``func(args)``."""

    func: Expr
    args: tuple[Arg, ...]


class Sub(Expr):
    """``value[index]``."""

    value: Expr
    index: Expr


class Slice(Expr):
    """``start:stop:step`` within the brackets of a subscript; what is left out is None."""

    bounds: tuple[Expr | None, Expr | None, Expr | None]


class Bool(Expr):
    """``a and b and c`` or ``a or b or c``; ``op`` is ``"and"`` or ``"or"``."""

    op: str
    values: tuple[Expr, ...]


class Not(Expr):
    """``not value``."""

    value: Expr


class Compare(Expr):
    """``left op right`` with one operator, spelled as in Python."""

    left: Expr
    op: str
    right: Expr


class Bin(Expr):
    """``first op a op b ...``: a left-leaning run of binary operators, kept flat."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]


class Unary(Expr):
    """``-value``, ``+value`` or ``~value``."""

    op: str
    value: Expr


class IfExp(Expr):
    """``body if test else orelse``."""

    test: Expr
    body: Expr
    orelse: Expr


class Star(Expr):
    """``*value`` inside a display."""

    value: Expr


class Display(Expr):
    """A tuple, list or set display; ``kind`` names which."""

    kind: str
    items: tuple[Expr, ...]


class DictDisplay(Expr):
    """``{k: v, **m}``; a key of None stands for ``**``."""

    items: tuple[tuple[Expr | None, Expr], ...]


class Generator(Unique):
    """One ``for target in iter if tests`` of a comprehension."""

    target: Expr
    iter: Expr
    tests: tuple[Expr, ...]


class Comprehension(Expr):
    """A list, set, dict or generator comprehension; ``key`` only for dicts."""

    kind: str
    key: Expr | None
    element: Expr
    generators: tuple[Generator, ...]


class Await(Expr):
    """``await value``."""

    value: Expr


class Yield(Expr):
    """``yield value``; ``each`` for ``yield from``."""

    value: Expr | None
    each: bool


class Joined(Expr):
    """An f-string: constants and expressions in order."""

    parts: tuple[Expr, ...]


class Formatted(Expr):
    """``{value!r:02d}`` in an f-string: a value that is written as its conversion and its format say."""

    value: Expr
    conversion: str
    format: Expr | None


class Walrus(Expr):
    """``target := value``."""

    target: str
    value: Expr


class Subject(Expr):
    """What the ``match`` statement looks at whose pattern asks this."""


class Lambda(Expr):
    """A lambda expression."""

    function: Function


class Opaque(Expr):
    """Something the machine has no meaning for; its parts are still evaluated."""

    parts: tuple[Expr, ...]


class ParamKind(Enum):
    """How an argument reaches a parameter."""

    POSITIONAL = "positional"
    VAR_POSITIONAL = "*"
    KEYWORD = "keyword"
    VAR_KEYWORD = "**"


class Param(Unique):
    """One parameter; ``type`` is the last name of its annotation, of ``X | None`` that of ``X``; empty for others.

    ``unnamed``: it stands before a ``/``, and no caller gives it by its name. ``words``: those of its ``Literal``.
    """

    name: str
    kind: ParamKind
    default: Expr | None
    type: str = ""
    unnamed: bool = False
    words: tuple[str, ...] = ()


class Source(Protocol):
    """Where the body of a function comes from."""

    def code(self) -> Code:
        """The body."""

    def mentions(self, words: Set[str]) -> bool:
        """Whether one of these words stands in the body; asking costs less than the body."""

    def binds_globals(self) -> bool:
        """Whether the body may have ``global`` statements."""


class Code(Unique):
    """The body of a function, lowered.

    ``words`` are the identifiers and the words of strings in it, nested definitions included;
    ``size`` is its number of nodes; ``local_names`` are the names it binds.
    """

    body: tuple[Stmt, ...]
    is_generator: bool
    words: frozenset[str]
    size: int
    local_names: frozenset[str]

    def code(self) -> Code:
        """Itself."""
        return self

    def mentions(self, words: Set[str]) -> bool:
        """Whether one of these words stands in the body."""
        return not self.words.isdisjoint(words)

    def binds_globals(self) -> bool:
        """Whether the body may have ``global`` statements."""
        return GLOBAL in self.words


GLOBAL = "global"
EMPTY = Code((), False, frozenset(), 0, frozenset())


def number_of(ordinal: int) -> int | None:
    """The number of the outermost function in whose body a node lies; None outside of them."""
    number, rest = divmod(ordinal, STRIDE)
    return number - 1 if number and rest < STRIDE // 2 else None


class Function(Unique):
    """A function, method or lambda."""

    ordinal: int
    name: str
    qualname: str
    params: tuple[Param, ...]
    is_async: bool
    source: Source

    @property
    def body(self) -> tuple[Stmt, ...]:
        """Its statements."""
        return self.source.code().body

    @property
    def is_generator(self) -> bool:
        """Whether a call of it only makes a generator."""
        return self.source.code().is_generator

    @property
    def words(self) -> frozenset[str]:
        """The identifiers and the words of strings in its body, nested definitions included."""
        return self.source.code().words

    @property
    def local_names(self) -> frozenset[str]:
        """The names that it binds."""
        return self.source.code().local_names

    @property
    def is_lambda(self) -> bool:
        """Lambdas have no importable name."""
        return self.name == "<lambda>"

    def mentions(self, words: Set[str]) -> bool:
        """Whether one of these words stands in its body; asking costs less than the body."""
        return self.source.mentions(words)

    @property
    def binds_globals(self) -> bool:
        """Whether its body may have ``global`` statements."""
        return self.source.binds_globals()


class Stmt(Unique):
    """Any statement."""

    ordinal: int


class ExprStmt(Stmt):
    """An expression for its effect."""

    value: Expr


class Assign(Stmt):
    """``targets = value``; annotated assignments too: ``annotated`` where that says of what kind an object has it.

    ``type`` is the annotation of a class's variable, where that is a name or a text; of ``Literal`` its words.
    """

    targets: tuple[Expr, ...]
    value: Expr
    annotated: bool = False
    type: Expr | None = None


class Declare(Stmt):
    """``name: annotation`` without a value (a dataclass field)."""

    target: Expr
    type: Expr | None = None


class Annotation(Stmt):
    """An annotation that calls or binds something, which Python evaluates when it defines what bears it.

    It stands beside the definition or the variable, as a statement of its own; all other annotations are left out.
    """

    value: Expr


class AugAssign(Stmt):
    """``target op= value``; ``op`` without the equals sign."""

    target: Expr
    op: str
    value: Expr


class Return(Stmt):
    """``return value``."""

    value: Expr | None


class If(Stmt):
    """``if test: body else: orelse``."""

    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class For(Stmt):
    """``for target in iter``."""

    target: Expr
    iter: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class While(Stmt):
    """``while test``."""

    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class Handler(Unique):
    """``except type as name``; a type of None catches everything."""

    type: Expr | None
    name: str | None
    body: tuple[Stmt, ...]


class Try(Stmt):
    """``try``; ``star``: with ``except*``."""

    body: tuple[Stmt, ...]
    handlers: tuple[Handler, ...]
    orelse: tuple[Stmt, ...]
    final: tuple[Stmt, ...]
    star: bool = False


class With(Stmt):
    """``with item as target, ...``."""

    items: tuple[tuple[Expr, Expr | None], ...]
    body: tuple[Stmt, ...]


class FunctionDef(Stmt):
    """A function definition with its decorators; ``bound`` is the name that it gets, maybe a private one."""

    function: Function
    decorators: tuple[Expr, ...]
    bound: str


class ClassDef(Stmt):
    """A class definition."""

    name: str
    qualname: str
    bases: tuple[Arg, ...]
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]


class Import(Stmt):
    """``import a.b as c``: pairs of dotted name and alias."""

    names: tuple[tuple[str, str | None], ...]


class ImportFrom(Stmt):
    """``from ..module import name as alias``; names of None stand for a star."""

    module: str
    level: int
    names: tuple[tuple[str, str | None], ...] | None


class Scoping(Stmt):
    """``global`` or ``nonlocal`` names."""

    kind: str
    names: tuple[str, ...]


class Delete(Stmt):
    """``del targets``."""

    targets: tuple[Expr, ...]


class Raise(Stmt):
    """``raise exc from cause``; a cause that is no name stands before it as an expression."""

    exc: Expr | None
    cause: Expr | None = None


class Assert(Stmt):
    """``assert test, message``."""

    test: Expr
    message: Expr | None


class Break(Stmt):
    """``break``."""


class Continue(Stmt):
    """``continue``."""


class Case(Unique):
    """One ``case``: what the subject is compared with, where the pattern is one or several such values, and its guard.

    ``test`` is what any other pattern asks of the subject. ``whole`` is the name that it gives to the subject,
    ``bindings`` are those that it gives to what it finds in it, ``parts`` those to what is not known.
    ``irrefutable``: whatever the subject is fits.
    """

    values: tuple[Expr, ...]
    irrefutable: bool
    test: Expr | None
    whole: str | None
    bindings: tuple[tuple[str, Expr], ...]
    parts: tuple[str, ...]
    guard: Expr | None
    body: tuple[Stmt, ...]


class Match(Stmt):
    """``match subject``."""

    subject: Expr
    cases: tuple[Case, ...]


class Module(Unique):
    """One lowered file. ``words`` and ``size``, its number of nodes, leave out bodies of outermost functions."""

    filename: str
    name: str
    body: tuple[Stmt, ...]
    words: frozenset[str]
    size: int
