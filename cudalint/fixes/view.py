"""A file as repairs look at it: its tree, where nodes stand, and what is around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeVar, cast, overload

import libcst as cst

from cudalint.fixes.edits import Change
from cudalint.ir.depth import TREE, room
from cudalint.ir.lower import origins
from cudalint.ir.places import Family, Place
from cudalint.structs import Frozen
from cudalint.text.lines import Rows
from cudalint.text.source import SourceFile

_Suite = cst.Module | cst.IndentedBlock
_IMPORTS = (cst.Import, cst.ImportFrom)
_T = TypeVar("_T")
_N = TypeVar("_N", bound=cst.CSTNode)
_M = TypeVar("_M", bound=cst.CSTNode)


class Binding(Frozen):
    """What an import binds a name to: a module, or a name in one."""

    module: str
    name: str | None


class View:
    """One file with its libcst tree; offsets count characters of its text."""

    def __init__(self, source: SourceFile, name: str) -> None:
        self.path = source.path
        self.name = name
        self.text = source.text
        with room(TREE):
            self.tree, self._origins = origins(source.text, source.path, name)
            self._ordinals = {node: ordinal for ordinal, node in reversed(self._origins.items())}
            self._places = Family(self.tree)
        self._rows = Rows(source.text)
        self._answers: dict[object, object] = {}
        self.newline = self.tree.default_newline

    def once(self, ask: Callable[[View], _T]) -> _T:
        """What is asked of the whole file by a function of a module, worked out the first time."""
        if ask not in self._answers:
            self._answers[ask] = ask(self)
        return cast(_T, self._answers[ask])

    # -- nodes ---------------------------------------------------------------------------------------------

    def node(self, ordinal: int) -> cst.CSTNode | None:
        """The node that a node of the program form came from."""
        return self._origins.get(ordinal)

    def ordinal(self, node: cst.CSTNode) -> int | None:
        """The number of a node in the program form; None where it has none there."""
        return self._ordinals.get(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around a node."""
        return self._places.parent(node)

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """All nodes around a node, the nearest first."""
        current = self._places.parent(node)
        while current is not None:
            yield current
            current = self._places.parent(current)

    def inside(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """A node and all below it, in the order of the text."""
        return iter(self._places.inside(node))

    @overload
    def each(self, node: cst.CSTNode, kind: type[_N], /) -> Iterator[_N]: ...
    @overload
    def each(self, node: cst.CSTNode, kind: type[_N], other: type[_M], /) -> Iterator[_N | _M]: ...
    def each(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """Those of them that are of these very classes: to ask by ``isinstance`` takes long, since all are abstract."""
        return (found for found in self._places.inside(node) if type(found) in kinds)

    def calls(self) -> Iterator[cst.Call]:
        """All calls of the file."""
        return self.each(self.tree, cst.Call)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function in whose body a node stands."""
        return next((n for n in self.around(node) if isinstance(n, cst.FunctionDef)), None)

    def statement(self, node: cst.CSTNode) -> cst.BaseStatement | None:
        """The whole statement that a node is part of: a line of simple ones, or a compound one."""
        found: cst.CSTNode | None = node
        while found is not None and not isinstance(found, cst.BaseStatement):
            found = self._places.parent(found)
        return found

    def outermost(self, node: cst.CSTNode) -> cst.BaseStatement | None:
        """The statement at the top of the module that a node is part of."""
        found = self.statement(node)
        while found is not None and not isinstance(self._places.parent(found), cst.Module):
            above = self._places.parent(found)
            found = None if above is None else self.statement(above)
        return found

    def siblings(self, statement: cst.CSTNode) -> list[cst.CSTNode]:
        """The statements of the block that a statement stands in; empty in a one-line suite."""
        above = self._places.parent(statement)
        return list(above.body) if isinstance(above, _Suite) else []

    # -- places --------------------------------------------------------------------------------------------

    def start(self, node: cst.CSTNode) -> int:
        """The first character of a node, without its own parentheses."""
        row, column, _, _ = self._place(node)
        return self._rows.offset(row, column + 1)

    def end(self, node: cst.CSTNode) -> int:
        """The character after a node, without its own parentheses."""
        _, _, row, column = self._place(node)
        return self._rows.offset(row, column + 1)

    def source(self, node: cst.CSTNode) -> str:
        """The text of a node, without its own parentheses."""
        return self.text[self.start(node) : self.end(node)]

    def row(self, node: cst.CSTNode) -> int:
        """The first row of a node."""
        return self._place(node)[0]

    def last_row(self, node: cst.CSTNode) -> int:
        """The last row of a node."""
        return self._place(node)[2]

    def row_start(self, row: int) -> int:
        """The first character of a row; one past the last row is the end of the text."""
        return self._rows.offset(row, 1) if row <= self._rows.count else len(self.text)

    def indentation(self, node: cst.CSTNode) -> str:
        """The white space before a statement; ``\\f`` included, because tabs and form feeds count."""
        start = self.row_start(self.row(node))
        line = self.text[start : self.start(node)]
        return line if not line.strip() else line[: len(line) - len(line.lstrip())]

    def _place(self, node: cst.CSTNode) -> Place:
        found = self._places.place(node)
        assert found is not None, "a node of another tree"
        return found

    # -- changes -------------------------------------------------------------------------------------------

    def replace(self, node: cst.CSTNode, content: str) -> Change:
        """Put a text in the place of a node."""
        return Change(self.start(node), self.end(node), content)

    def replace_whole(self, node: cst.CSTNode, content: str) -> Change:
        """Put a text in the place of a node and its own parentheses."""
        lead, tail = self.around_text(node, "", "")
        return Change(lead.start, tail.end, content)

    def before(self, node: cst.CSTNode, content: str) -> Change:
        """Insert a text before a node."""
        return Change(self.start(node), self.start(node), content)

    def around_text(self, node: cst.CSTNode, lead: str, tail: str) -> list[Change]:
        """Insert texts before a node and after it, outside its own parentheses."""
        start = min([self.start(node), *(self.start(p) for p in getattr(node, "lpar", ()))])
        return [Change(start, start, lead), self.after(node, tail)]

    def after(self, node: cst.CSTNode, content: str) -> Change:
        """Insert a text after a node and its own parentheses."""
        end = self.end(node)
        for parenthesis in getattr(node, "rpar", ()):
            end = max(end, self.end(parenthesis))
        return Change(end, end, content)

    def lines_before(self, statement: cst.CSTNode, lines: Iterable[str]) -> Change:
        """Insert statements as rows of their own before a statement that begins its row."""
        indent = self.indentation(statement)
        at = self.row_start(self.row(statement))
        return Change(at, at, "".join(f"{indent}{line}{self.newline}" for line in lines))

    def lines_after(self, statement: cst.CSTNode, lines: Iterable[str]) -> Change:
        """Insert statements as rows of their own after a statement, at its depth."""
        indent = self.indentation(statement)
        at = self.row_start(self.last_row(statement) + 1)
        lead = "" if at == 0 or self.text[at - 1] in "\r\n" else self.newline
        return Change(at, at, lead + "".join(f"{indent}{line}{self.newline}" for line in lines))

    def keyword(self, call: cst.Call, name: str) -> cst.Arg | None:
        """The argument of a call that is given under a name."""
        return next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)

    def with_keyword(self, call: cst.Call, name: str, value: str) -> list[Change]:
        """Give a keyword argument: in the place of the one that is there, or as the last."""
        known = self.keyword(call, name)
        if known is not None:
            return [self.replace(known.value, value)]
        if not call.args:
            at = self.end(call) - 1
            return [Change(at, at, f"{name}={value}")]
        last = call.args[-1]
        starred = [a for a in call.args if a.star == "**"]
        if starred:
            first = starred[0]
            at = self.start(first)
            return [Change(at, at, f"{name}={value}, ")]
        end = self._argument_end(last)
        if not isinstance(last.comma, cst.Comma):
            return [Change(end, end, f", {name}={value}")]
        return [self._after_comma(call, last, f"{name}={value}")]

    def _argument_end(self, argument: cst.Arg) -> int:
        return self.after(argument.value, "").start

    def _after_comma(self, call: cst.Call, last: cst.Arg, text: str) -> Change:
        """After a trailing comma the new argument gets a row of its own, as the others have."""
        comma = self.text.index(",", self._argument_end(last)) + 1
        if self.row(last) == self.last_row(call):
            return Change(comma, comma, f" {text},")
        at = self.row_start(self._rows.place(comma)[0] + 1)
        first = self.row_start(self.row(last))
        line = self.text[first:]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        return Change(at, at, f"{indent}{text},{self.newline}")

    def without_argument(self, call: cst.Call, argument: cst.Arg) -> Change:
        """Take an argument out with its comma and blanks, or its rows where it has them; comments stay."""
        position = call.args.index(argument)
        start, end = self.start(argument), self._argument_end(argument)
        if isinstance(argument.comma, cst.Comma):
            end = self.text.index(",", end) + 1
        after = self.row_start(self._rows.place(end)[0] + 1)
        before, tail = self.text[self.row_start(self._rows.place(start)[0]) : start], self.text[end:after]
        if not before.strip() and not tail.strip():
            return Change(start - len(before), after, "")
        if position + 1 == len(call.args) and position > 0:
            separator = self._argument_end(call.args[position - 1])
            if not self.text[separator:start].replace(",", "", 1).strip(" \t"):
                return Change(separator, end, "")
        if tail.lstrip(" \t").startswith("#") and before.strip():
            return Change(start, end, "")
        return Change(start, end + len(tail) - len(tail.lstrip(" \t")), "")

    def without_arguments(self, call: cst.Call, arguments: Sequence[cst.Arg]) -> list[Change]:
        """Take several arguments out; the last ones of a call go together, with the comma before them."""
        gone = {id(argument) for argument in arguments}
        last = next((i for i in range(len(call.args), 0, -1) if id(call.args[i - 1]) not in gone), 0)
        changes = [self.without_argument(call, a) for a in arguments]
        ordered = sorted(changes)
        if last == 0 or all(a.end <= b.start for a, b in pairwise(ordered)):
            return changes
        start, end = self._argument_end(call.args[last - 1]), self._argument_end(call.args[-1])
        others = [self.without_argument(call, a) for a in call.args[:last] if id(a) in gone]
        return [*others, Change(start, end, "")]

    # -- names ---------------------------------------------------------------------------------------------

    @cached_property
    def _bindings(self) -> dict[str, Binding]:
        return {name: binding for node in self.each(self.tree, *_IMPORTS) for name, binding in imported(node)}

    def bindings(self) -> Mapping[str, Binding]:
        """What the imports of the file, also those in functions, bind names to."""
        return self._bindings

    @cached_property
    def _module_bindings(self) -> dict[str, Binding]:
        imports = self.each(self.tree, *_IMPORTS)
        return {name: binding for node in imports if self._is_of_module(node) for name, binding in imported(node)}

    def module_bindings(self) -> Mapping[str, Binding]:
        """What the imports of the module itself, also under ``if`` and ``try``, bind names to when it runs."""
        return self._module_bindings

    def _is_of_module(self, node: cst.CSTNode) -> bool:
        return not any(
            isinstance(around, cst.FunctionDef | cst.ClassDef)
            or (isinstance(around, cst.If) and dotted(around.test).rpartition(".")[2] == "TYPE_CHECKING")
            for around in self.around(node)
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(n.value for n in self.each(self.tree, cst.Name))

    def names(self) -> frozenset[str]:
        """All names in the file, so that a new one can be chosen."""
        return self._names


# Trees are large: so many of them are kept, those that were looked at last.
MOST_VIEWS = 8


class Views:
    """The views of texts, each made once however many findings are looked at in it; ``made`` counts them."""

    def __init__(self) -> None:
        self.made = 0
        self._known: dict[tuple[str, str, str], View] = {}

    def of(self, source: SourceFile, name: str) -> View:
        """The view of a file as it is."""
        key = (source.path, name, source.text)
        view = self._known.pop(key, None)
        if view is None:
            self.made += 1
            view = View(source, name)
        self._known[key] = view
        if len(self._known) > MOST_VIEWS:
            del self._known[next(iter(self._known))]
        return view


def dotted(node: cst.BaseExpression) -> str:
    """The dotted name that an expression is; empty where it is something else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    return ".".join([node.value, *reversed(parts)])


def _alias(alias: cst.ImportAlias) -> str | None:
    return alias.asname.name.value if alias.asname is not None and isinstance(alias.asname.name, cst.Name) else None


def imported(node: cst.CSTNode) -> Iterator[tuple[str, Binding]]:
    """What a statement binds names to by importing; nothing where it is no import, or takes whatever there is."""
    match node:
        case cst.Import(names=names):
            for alias in names:
                name, given = dotted(alias.name), _alias(alias)
                yield given or name.partition(".")[0], Binding(name, None)
        case cst.ImportFrom(names=names) if not isinstance(names, cst.ImportStar):
            module = "." * len(node.relative) + (dotted(node.module) if node.module is not None else "")
            for alias in names:
                yield _alias(alias) or dotted(alias.name), Binding(module, dotted(alias.name))
