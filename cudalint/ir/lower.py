"""libcst trees to the program form.

A tree lives while its text is lowered, and that of a short text a little longer. Long left-leaning runs (operators,
calls, ``elif``) are walked in loops, because generated files hold runs that recursion does not survive.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import libcst as cst

from cudalint.ir import nodes as ir
from cudalint.ir import patterns
from cudalint.ir.abridged import LEFT_OUT, abridged
from cudalint.limits import MOST_BITS
from cudalint.text.indents import evened
from cudalint.text.quiet import quietly

_WORD = re.compile(r"[A-Za-z_]\w*")
# A quote that nothing keeps from ending a text.
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_SPACE = re.compile(r"\s")

_COMPARE = {
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.In: "in",
    cst.NotIn: "not in",
    cst.Is: "is",
    cst.IsNot: "is not",
}

_BINARY = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.BitOr: "|",
    cst.BitAnd: "&",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.MatrixMultiply: "@",
}

_AUGMENTED = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
    cst.PowerAssign: "**",
    cst.BitOrAssign: "|",
    cst.BitAndAssign: "&",
    cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.MatrixMultiplyAssign: "@",
}

_CONSTANTS: dict[str, bool | None] = {"True": True, "False": False, "None": None}


class _Unit:
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


@dataclass(frozen=True, slots=True)
class Outer:
    """What the body of an outermost function has to know of its file: its number there, its name, its parameters.

    ``annotates``: annotations in it are evaluated.
    """

    number: int
    qualname: str
    params: tuple[str, ...]
    annotates: bool = True


class Lowering:
    """Lowers one module; ``record`` keeps, per ordinal, the libcst node it came from.

    Where ``postponed`` is given, it stands for the bodies of outermost functions, which are left out.
    """

    def __init__(
        self, filename: str, name: str, record: bool = False, postponed: Callable[[Outer], ir.Source] | None = None
    ) -> None:
        self._filename = filename
        self._module = name
        self._next = 0
        self._units: list[_Unit] = []
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

    def module(self, tree: cst.Module) -> ir.Module:
        """The whole file."""
        unit = self._push()
        body = self._block(tree.body)
        self._units.pop()
        return ir.Module(self._filename, self._module, body, frozenset(unit.words), unit.size)

    def body(self, outer: Outer, suite: cst.BaseSuite) -> ir.Code:
        """The body of an outermost function, as it is lowered within its file."""
        before, self._qualname = self._qualname, [outer.qualname, "<locals>"]
        around, self._class = self._class, outer.qualname.rpartition(".")[0].rpartition(".")[2]
        self._annotates = outer.annotates
        self._next = (outer.number + 1) * ir.STRIDE
        self._depth += 1
        unit = self._push()
        code = _code(unit, self._suite(suite), outer.params)
        self._units.pop()
        self._depth -= 1
        self._qualname, self._class = before, around
        return code

    # -- bookkeeping ---------------------------------------------------------------------------

    def _push(self) -> _Unit:
        unit = _Unit()
        self._units.append(unit)
        return unit

    def _pop_into_parent(self) -> _Unit:
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

    # -- statements ----------------------------------------------------------------------------

    def _block(self, body: Iterable[cst.CSTNode]) -> tuple[ir.Stmt, ...]:
        result: list[ir.Stmt] = []
        for node in body:
            self._statement(node, result)
        return tuple(result)

    def _suite(self, node: cst.BaseSuite) -> tuple[ir.Stmt, ...]:
        return self._block(node.body)

    def _statement(self, node: cst.CSTNode, out: list[ir.Stmt]) -> None:
        if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            for small in node.body:
                self._statement(small, out)
            return
        lower = _STATEMENTS.get(type(node))
        if lower is None:
            return
        if isinstance(node, cst.FunctionDef):
            out.extend(self._annotations(_annotations_of(node)))
        elif isinstance(node, cst.Raise) and node.cause is not None and _acts(node.cause.item):
            out.append(ir.ExprStmt(self._mark(node.cause), self._expr(node.cause.item)))
        out.append(lower(self, node))
        if isinstance(node, cst.AnnAssign) and self._qualname[-1:] != ["<locals>"]:
            out.extend(self._annotations((node.annotation,)))

    def _annotations(self, nodes: Iterable[cst.Annotation]) -> Iterable[ir.Stmt]:
        """What annotations do; those of the variables of a function are never evaluated."""
        for node in nodes if self._annotates else ():
            if _acts(node.annotation):
                yield ir.Annotation(self._mark(node), self._expr(node.annotation))

    def _expr_stmt(self, node: cst.Expr) -> ir.Stmt:
        return ir.ExprStmt(self._mark(node), self._expr(node.value))

    def _assign(self, node: cst.Assign) -> ir.Stmt:
        ordinal = self._mark(node)
        value = self._expr(node.value)
        return ir.Assign(ordinal, tuple(self._target(t.target) for t in node.targets), value)

    def _ann_assign(self, node: cst.AnnAssign) -> ir.Stmt:
        ordinal = self._mark(node)
        is_in_class = self._qualname and self._qualname[-1] != "<locals>"
        kind = _named_by(node.annotation.annotation, ordinal, self._annotates) if is_in_class else None
        if node.value is None:
            return ir.Declare(ordinal, self._target(node.target), kind)
        value = self._expr(node.value)
        is_of_object = not _is_of_class(node.annotation.annotation)
        return ir.Assign(ordinal, (self._target(node.target),), value, is_of_object, kind)

    def _aug_assign(self, node: cst.AugAssign) -> ir.Stmt:
        ordinal = self._mark(node)
        operator = _AUGMENTED.get(type(node.operator), "?")
        return ir.AugAssign(ordinal, self._target(node.target), operator, self._expr(node.value))

    def _target(self, node: cst.BaseExpression) -> ir.Expr:
        if isinstance(node, cst.Name):
            self._bind(node.value)
        elif isinstance(node, cst.Tuple | cst.List):
            items = tuple(self._target_element(e) for e in node.elements)
            return ir.Display(self._mark(node), "tuple", items)
        return self._expr(node)

    def _target_element(self, element: cst.BaseElement) -> ir.Expr:
        target = self._target(element.value)
        return ir.Star(self._mark(element), target) if isinstance(element, cst.StarredElement) else target

    def _return(self, node: cst.Return) -> ir.Stmt:
        return ir.Return(self._mark(node), None if node.value is None else self._expr(node.value))

    def _if(self, node: cst.If) -> ir.Stmt:
        chain: list[tuple[int, ir.Expr, tuple[ir.Stmt, ...]]] = []
        current: cst.If | cst.Else | None = node
        tail: tuple[ir.Stmt, ...] = ()
        while isinstance(current, cst.If):
            chain.append((self._mark(current), self._expr(current.test), self._suite(current.body)))
            current = current.orelse
        if current is not None:
            tail = self._suite(current.body)
        for ordinal, test, body in reversed(chain):
            tail = (ir.If(ordinal, test, body, tail),)
        return tail[0]

    def _orelse(self, node: cst.Else | None) -> tuple[ir.Stmt, ...]:
        return () if node is None else self._suite(node.body)

    def _for(self, node: cst.For) -> ir.Stmt:
        ordinal = self._mark(node)
        iterable = self._expr(node.iter)
        target = self._target(node.target)
        return ir.For(ordinal, target, iterable, self._suite(node.body), self._orelse(node.orelse))

    def _while(self, node: cst.While) -> ir.Stmt:
        ordinal = self._mark(node)
        return ir.While(ordinal, self._expr(node.test), self._suite(node.body), self._orelse(node.orelse))

    def _try(self, node: cst.Try | cst.TryStar) -> ir.Stmt:
        ordinal = self._mark(node)
        body = self._suite(node.body)
        handlers = tuple(self._handler(h) for h in node.handlers)
        orelse = self._orelse(node.orelse)
        final = () if node.finalbody is None else self._suite(node.finalbody.body)
        return ir.Try(ordinal, body, handlers, orelse, final, isinstance(node, cst.TryStar))

    def _handler(self, node: cst.ExceptHandler | cst.ExceptStarHandler) -> ir.Handler:
        name = None
        if node.name is not None and isinstance(node.name.name, cst.Name):
            name = self._bind(node.name.name.value)
        kind = None if node.type is None else self._expr(node.type)
        return ir.Handler(kind, name, self._suite(node.body))

    def _with(self, node: cst.With) -> ir.Stmt:
        ordinal = self._mark(node)
        items = []
        for item in node.items:
            value = self._expr(item.item)
            items.append((value, None if item.asname is None else self._target(item.asname.name)))
        return ir.With(ordinal, tuple(items), self._suite(node.body))

    def _function_def(self, node: cst.FunctionDef) -> ir.Stmt:
        ordinal = self._mark(node)
        name = self._word(node.name.value)
        bound = self._bind(name)
        decorators = tuple(self._expr(d.decorator) for d in node.decorators)
        params = self._params(node.params)
        path = self._path(name)
        qualname = ".".join(path)
        if self._depth == 0 and isinstance(node.body, cst.IndentedBlock):
            outer = Outer(self.outermost, qualname, tuple(p.name for p in params), self._annotates)
            source = self._outermost(outer, node.body)
        else:
            source = self._inner(path, params, node.body)
        function = ir.Function(ordinal, name, qualname, params, node.asynchronous is not None, source)
        return ir.FunctionDef(ordinal, function, decorators, bound)

    def _outermost(self, outer: Outer, suite: cst.BaseSuite) -> ir.Source:
        source = self.body(outer, suite) if self._postponed is None else self._postponed(outer)
        self.outermost += 1
        self._next = (outer.number + 1) * ir.STRIDE + ir.STRIDE // 2
        return source

    def _path(self, name: str) -> list[str]:
        """The parts of what a definition is called: one that ``global`` declares has the name of one at the top."""
        return [name] if name in self._units[-1].of_module else [*self._qualname, name]

    def _inner(self, path: list[str], params: tuple[ir.Param, ...], suite: cst.BaseSuite) -> ir.Source:
        before, self._qualname = self._qualname, [*path, "<locals>"]
        self._depth += 1
        unit = self._push()
        code = _code(unit, self._suite(suite), (p.name for p in params))
        self._pop_into_parent()
        self._depth -= 1
        self._qualname = before
        return code

    def _params(self, node: cst.Parameters) -> tuple[ir.Param, ...]:
        result: list[ir.Param] = []
        for param in node.posonly_params:
            result.append(replace(self._param(param, ir.ParamKind.POSITIONAL), unnamed=True))
        for param in node.params:
            result.append(self._param(param, ir.ParamKind.POSITIONAL))
        if isinstance(node.star_arg, cst.Param):
            result.append(self._param(node.star_arg, ir.ParamKind.VAR_POSITIONAL))
        for param in node.kwonly_params:
            result.append(self._param(param, ir.ParamKind.KEYWORD))
        if node.star_kwarg is not None:
            result.append(self._param(node.star_kwarg, ir.ParamKind.VAR_KEYWORD))
        return tuple(result)

    def _param(self, node: cst.Param, kind: ir.ParamKind) -> ir.Param:
        given = _depended_on(node.annotation) if node.default is None else node.default
        default = None if given is None else self._expr(given)
        return ir.Param(self._own(node.name.value), kind, default, _type_name(node.annotation))

    def _class_def(self, node: cst.ClassDef) -> ir.Stmt:
        ordinal = self._mark(node)
        name = self._bind(self._word(node.name.value))
        decorators = tuple(self._expr(d.decorator) for d in node.decorators)
        bases = tuple(self._arg(a) for a in (*node.bases, *node.keywords))
        before, self._qualname = self._qualname, self._path(name)
        around, self._class = self._class, node.name.value
        qualname = ".".join(self._qualname)
        self._push()
        body = self._suite(node.body)
        self._pop_into_parent()
        self._qualname, self._class = before, around
        return ir.ClassDef(ordinal, name, qualname, bases, body, decorators)

    def _import(self, node: cst.Import) -> ir.Stmt:
        ordinal = self._mark(node)
        names = tuple((self._dotted(a.name), self._alias(a)) for a in node.names)
        for dotted, alias in names:
            self._bind(alias or dotted.split(".")[0])
        return ir.Import(ordinal, names)

    def _import_from(self, node: cst.ImportFrom) -> ir.Stmt:
        ordinal = self._mark(node)
        module = "" if node.module is None else self._dotted(node.module)
        level = len(node.relative)
        if isinstance(node.names, cst.ImportStar):
            return ir.ImportFrom(ordinal, module, level, None)
        names = tuple((self._dotted(a.name), self._alias(a)) for a in node.names)
        if module == "__future__" and ("annotations", None) in names:
            self._annotates = False
        for dotted, alias in names:
            self._bind(alias or dotted)
        return ir.ImportFrom(ordinal, module, level, names)

    def _dotted(self, node: cst.BaseExpression) -> str:
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.append(self._word(node.attr.value))
            node = node.value
        if isinstance(node, cst.Name):
            parts.append(self._word(node.value))
        return ".".join(reversed(parts))

    def _alias(self, node: cst.ImportAlias) -> str | None:
        if node.asname is None or not isinstance(node.asname.name, cst.Name):
            return None
        return node.asname.name.value

    def _scoping(self, node: cst.Global | cst.Nonlocal) -> ir.Stmt:
        names = tuple(self._own(item.name.value) for item in node.names)
        unit = self._units[-1]
        unit.outside.update(names)
        kind = "global" if isinstance(node, cst.Global) else "nonlocal"
        if kind == "global":
            unit.of_module.update(names)
        return ir.Scoping(self._mark(node), self._word(kind), names)

    def _delete(self, node: cst.Del) -> ir.Stmt:
        target = node.target
        ordinal = self._mark(node)
        if isinstance(target, cst.Tuple):
            return ir.Delete(ordinal, tuple(self._expr(e.value) for e in target.elements))
        return ir.Delete(ordinal, (self._expr(target),))

    def _raise(self, node: cst.Raise) -> ir.Stmt:
        ordinal = self._mark(node)
        exc = None if node.exc is None else self._expr(node.exc)
        cause = None if node.cause is None else node.cause.item
        return ir.Raise(ordinal, exc, self._expr(cause) if isinstance(cause, cst.Name) else None)

    def _assert(self, node: cst.Assert) -> ir.Stmt:
        return ir.Assert(self._mark(node), self._expr(node.test), None if node.msg is None else self._expr(node.msg))

    def _break(self, node: cst.Break) -> ir.Stmt:
        return ir.Break(self._mark(node))

    def _continue(self, node: cst.Continue) -> ir.Stmt:
        return ir.Continue(self._mark(node))

    def _match(self, node: cst.Match) -> ir.Stmt:
        ordinal = self._mark(node)
        subject = self._expr(node.subject)
        return ir.Match(ordinal, subject, tuple(self._case(c) for c in node.cases))

    def _case(self, node: cst.MatchCase) -> ir.Case:
        pattern: cst.MatchPattern | None = node.pattern
        captured = sorted(_captures(node.pattern))
        for name in captured:
            self._bind(name)
        whole = None
        if isinstance(pattern, cst.MatchAs):
            whole = None if pattern.name is None else pattern.name.value
            pattern = pattern.pattern
        values = tuple(self._expr(value) for value in _compared(pattern))
        found = patterns.Asked()
        if pattern is not None and not values:
            found = patterns.asked(pattern, ir.Subject(self._mark(pattern)), self)
        test = patterns.all_of(found.tests, node.pattern, self) if found.tests else None
        guard = None if node.guard is None else self._expr(node.guard)
        known = {whole, *(name for name, _ in found.bindings)}
        parts = tuple(name for name in captured if name not in known)
        body = self._suite(node.body)
        return ir.Case(values, pattern is None, test, whole, tuple(found.bindings), parts, guard, body)

    def expression(self, node: cst.BaseExpression) -> ir.Expr:
        """An expression of a pattern."""
        return self._expr(node)

    def mark(self, node: cst.CSTNode) -> int:
        """The number of a node that is made for a pattern."""
        return self._mark(node)

    # -- expressions ---------------------------------------------------------------------------

    def _expr(self, node: cst.BaseExpression) -> ir.Expr:
        if isinstance(node, cst.Call | cst.Attribute | cst.Subscript):
            return self._chain(node)
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node)
        lower = _EXPRESSIONS.get(type(node))
        return self._opaque(node) if lower is None else lower(self, node)

    def _opaque(self, node: cst.CSTNode) -> ir.Expr:
        ordinal = self._mark(node)
        parts = [self._expr(c) for c in node.children if isinstance(c, cst.BaseExpression)]
        return ir.Opaque(ordinal, tuple(parts))

    def _chain(self, node: cst.BaseExpression) -> ir.Expr:
        """``a.b(c)[d].e()``: unwound to its root, then built outwards."""
        links: list[cst.Call | cst.Attribute | cst.Subscript] = []
        while isinstance(node, cst.Call | cst.Attribute | cst.Subscript):
            links.append(node)
            node = node.func if isinstance(node, cst.Call) else node.value
        result = self._expr(node)
        for link in reversed(links):
            ordinal = self._mark(link)
            if isinstance(link, cst.Call):
                result = ir.Call(ordinal, result, tuple(self._arg(a) for a in link.args))
            elif isinstance(link, cst.Attribute):
                result = ir.Attr(ordinal, result, self._own(self._word(link.attr.value)))
            else:
                result = ir.Sub(ordinal, result, self._index(link))
        return result

    def _arg(self, node: cst.Arg) -> ir.Arg:
        keyword = None if node.keyword is None else self._own(self._word(node.keyword.value))
        return ir.Arg(self._expr(node.value), keyword, node.star)

    def _index(self, node: cst.Subscript) -> ir.Expr:
        elements = [self._slice(e.slice) for e in node.slice]
        if len(elements) == 1:
            return elements[0]
        return ir.Display(self._mark(node), "tuple", tuple(elements))

    def _slice(self, node: cst.BaseSlice) -> ir.Expr:
        if isinstance(node, cst.Index):
            return self._expr(node.value)
        if not isinstance(node, cst.Slice):
            return self._opaque(node)
        ordinal = self._mark(node)
        start, stop, step = (None if b is None else self._expr(b) for b in (node.lower, node.upper, node.step))
        return ir.Slice(ordinal, (start, stop, step))

    def _binary(self, node: cst.BinaryOperation) -> ir.Expr:
        ordinal = self._mark(node)
        rest: list[tuple[str, ir.Expr]] = []
        left: cst.BaseExpression = node
        while isinstance(left, cst.BinaryOperation):
            rest.append((_BINARY.get(type(left.operator), "?"), self._expr(left.right)))
            left = left.left
        return ir.Bin(ordinal, self._expr(left), tuple(reversed(rest)))

    def _name(self, node: cst.Name) -> ir.Expr:
        ordinal = self._mark(node)
        if node.value in _CONSTANTS:
            return ir.Const(ordinal, _CONSTANTS[node.value])
        return ir.Name(ordinal, self._own(self._word(node.value)))

    def _number(self, node: cst.Integer | cst.Float | cst.Imaginary) -> ir.Expr:
        ordinal = self._mark(node)
        try:
            value = _number_of(node)
        except (ValueError, SyntaxError):
            return ir.Opaque(ordinal, ())
        is_known = not isinstance(value, int) or value.bit_length() <= MOST_BITS
        return ir.Const(ordinal, value) if is_known else ir.Opaque(ordinal, ())

    def _string(self, node: cst.SimpleString) -> ir.Expr:
        ordinal = self._mark(node)
        if node.value.startswith(LEFT_OUT):
            return ir.Opaque(ordinal, ())
        try:
            value = _plain_string(node.value) or node.evaluated_value
        except (ValueError, SyntaxError):
            return ir.Opaque(ordinal, ())
        if isinstance(value, str):
            self._units[-1].words.update(_named(value))
        return ir.Const(ordinal, value)

    def _concatenated(self, node: cst.ConcatenatedString) -> ir.Expr:
        ordinal = self._mark(node)
        parts: list[ir.Expr] = []
        current: cst.BaseExpression = node
        while isinstance(current, cst.ConcatenatedString):
            parts.append(self._expr(current.left))
            current = current.right
        parts.append(self._expr(current))
        if all(isinstance(p, ir.Const) and isinstance(p.value, str) for p in parts):
            return ir.Const(ordinal, "".join(str(p.value) for p in parts if isinstance(p, ir.Const)))
        return ir.Joined(ordinal, tuple(parts))

    def _formatted(self, node: cst.FormattedString) -> ir.Expr:
        return self._texts_and_values(node, node.parts, "r" in node.start.lower())

    def _texts_and_values(
        self, node: cst.CSTNode, written: Iterable[cst.BaseFormattedStringContent], is_raw: bool
    ) -> ir.Joined:
        ordinal = self._mark(node)
        parts: list[ir.Expr] = []
        for part in written:
            if isinstance(part, cst.FormattedStringText):
                self._units[-1].words.update(_named(part.value))
                text = _text_of(part.value, is_raw)
                parts.append(ir.Opaque(self._mark(part), ()) if text is None else ir.Const(self._mark(part), text))
            elif isinstance(part, cst.FormattedStringExpression):
                # What stands before an equals sign is shown as it is written.
                parts += [] if part.equal is None else [ir.Const(self._mark(part), _with_equals(part))]
                parts.append(self._formatted_value(part, is_raw))
        return ir.Joined(ordinal, tuple(parts))

    def _formatted_value(self, node: cst.FormattedStringExpression, is_raw: bool) -> ir.Expr:
        """``{value!r:02d}``; what computes the format is evaluated too."""
        value = self._expr(node.expression)
        conversion = node.conversion or ("" if node.equal is None or node.format_spec else "r")
        if not conversion and not node.format_spec:
            return value
        spec = self._texts_and_values(node, node.format_spec, is_raw) if node.format_spec else None
        return ir.Formatted(self._mark(node), value, conversion, spec)

    def _boolean(self, node: cst.BooleanOperation) -> ir.Expr:
        ordinal = self._mark(node)
        kind = type(node.operator)
        values: list[cst.BaseExpression] = []
        left: cst.BaseExpression = node
        while isinstance(left, cst.BooleanOperation) and type(left.operator) is kind:
            values.append(left.right)
            left = left.left
        values.append(left)
        operator = "and" if kind is cst.And else "or"
        return ir.Bool(ordinal, operator, tuple(self._expr(v) for v in reversed(values)))

    def _unary(self, node: cst.UnaryOperation) -> ir.Expr:
        ordinal = self._mark(node)
        value = self._expr(node.expression)
        if isinstance(node.operator, cst.Not):
            return ir.Not(ordinal, value)
        sign = {cst.Minus: "-", cst.Plus: "+"}.get(type(node.operator), "~")
        return ir.Unary(ordinal, sign, value)

    def _comparison(self, node: cst.Comparison) -> ir.Expr:
        ordinal = self._mark(node)
        left = self._expr(node.left)
        rights = [(c.operator, self._expr(c.comparator)) for c in node.comparisons]
        if len(rights) != 1 and all(isinstance(middle, ir.Name | ir.Const) for _, middle in rights[:-1]):
            return self._chained(ordinal, node, left, rights)
        if len(rights) != 1:
            return ir.Opaque(ordinal, (left, *(r for _, r in rights)))
        operator, right = rights[0]
        return ir.Compare(ordinal, left, _COMPARE.get(type(operator), "?"), right)

    def _chained(
        self, ordinal: int, node: cst.Comparison, left: ir.Expr, rights: list[tuple[cst.BaseCompOp, ir.Expr]]
    ) -> ir.Expr:
        """``a <= x < b``, where what stands in the middle may as well be looked at twice."""
        parts: list[ir.Expr] = []
        for target, (operator, right) in zip(node.comparisons, rights, strict=True):
            parts.append(ir.Compare(self._mark(target), left, _COMPARE.get(type(operator), "?"), right))
            left = right
        return ir.Bool(ordinal, "and", tuple(parts))

    def _if_exp(self, node: cst.IfExp) -> ir.Expr:
        ordinal = self._mark(node)
        test = self._expr(node.test)
        return ir.IfExp(ordinal, test, self._expr(node.body), self._expr(node.orelse))

    def _display(self, node: cst.Tuple | cst.List | cst.Set) -> ir.Expr:
        ordinal = self._mark(node)
        kind = type(node).__name__.lower()
        return ir.Display(ordinal, kind, tuple(self._element(e) for e in node.elements))

    def _element(self, node: cst.BaseElement) -> ir.Expr:
        value = self._expr(node.value)
        return ir.Star(self._mark(node), value) if isinstance(node, cst.StarredElement) else value

    def _dict(self, node: cst.Dict) -> ir.Expr:
        ordinal = self._mark(node)
        items: list[tuple[ir.Expr | None, ir.Expr]] = []
        for element in node.elements:
            key = self._expr(element.key) if isinstance(element, cst.DictElement) else None
            items.append((key, self._expr(element.value)))
        return ir.DictDisplay(ordinal, tuple(items))

    def _comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> ir.Expr:
        ordinal = self._mark(node)
        generators: list[ir.Generator] = []
        clause: cst.CompFor | None = node.for_in
        bound_before = set(self._units[-1].bound)
        while clause is not None:
            iterable = self._expr(clause.iter)
            target = self._target(clause.target)
            generators.append(ir.Generator(target, iterable, tuple(self._expr(i.test) for i in clause.ifs)))
            clause = clause.inner_for_in
        self._units[-1].bound = bound_before
        kinds = {cst.ListComp: "list", cst.SetComp: "set", cst.DictComp: "dict"}
        kind = kinds.get(type(node), "generator")
        if isinstance(node, cst.DictComp):
            key = self._expr(node.key)
            return ir.Comprehension(ordinal, kind, key, self._expr(node.value), tuple(generators))
        return ir.Comprehension(ordinal, kind, None, self._expr(node.elt), tuple(generators))

    def _await(self, node: cst.Await) -> ir.Expr:
        return ir.Await(self._mark(node), self._expr(node.expression))

    def _yield(self, node: cst.Yield) -> ir.Expr:
        ordinal = self._mark(node)
        self._units[-1].is_generator = True
        if node.value is None:
            return ir.Yield(ordinal, None, False)
        if isinstance(node.value, cst.From):
            return ir.Yield(ordinal, self._expr(node.value.item), True)
        return ir.Yield(ordinal, self._expr(node.value), False)

    def _walrus(self, node: cst.NamedExpr) -> ir.Expr:
        ordinal = self._mark(node)
        value = self._expr(node.value)
        if not isinstance(node.target, cst.Name):
            return ir.Opaque(ordinal, (value,))
        return ir.Walrus(ordinal, self._bind(node.target.value), value)

    def _lambda(self, node: cst.Lambda) -> ir.Expr:
        ordinal = self._mark(node)
        params = self._params(node.params)
        qualname = ".".join([*self._qualname, "<lambda>"])
        unit = self._push()
        value = self._expr(node.body)
        code = _code(unit, (ir.Return(self._mark(node.body), value),), (p.name for p in params))
        self._pop_into_parent()
        return ir.Lambda(ordinal, ir.Function(ordinal, "<lambda>", qualname, params, False, code))


def _code(unit: _Unit, body: tuple[ir.Stmt, ...], params: Iterable[str]) -> ir.Code:
    names = frozenset(unit.bound - unit.outside).union(params)
    return ir.Code(body, unit.is_generator, frozenset(unit.words), unit.size, names)


def _annotations_of(node: cst.FunctionDef) -> Iterable[cst.Annotation]:
    """The annotations of a function's parameters and of what it returns."""
    params = node.params
    given = [*params.posonly_params, *params.params, params.star_arg, *params.kwonly_params, params.star_kwarg]
    for param in given:
        if isinstance(param, cst.Param) and param.annotation is not None:
            yield param.annotation
    if node.returns is not None:
        yield node.returns


def _is_of_class(node: cst.BaseExpression) -> bool:
    """Whether an annotation says that a variable is one of the class (``ClassVar[int]``), and none of its objects."""
    named = node.value if isinstance(node, cst.Subscript) else node
    last = named.attr if isinstance(named, cst.Attribute) else named
    return isinstance(last, cst.Name) and last.value == "ClassVar"


def _acts(node: cst.CSTNode) -> bool:
    """Whether an expression calls or binds something; asked of every annotation, most of which are names."""
    stack = [node]
    while stack:
        match stack.pop():
            case cst.Call() | cst.NamedExpr():
                return True
            case cst.Name() | cst.SimpleString() | cst.Lambda():
                pass
            case cst.Attribute(value=value):
                stack.append(value)
            case other:
                stack.extend(other.children)
    return False


def _captures(pattern: cst.CSTNode) -> set[str]:
    """Names that a match pattern binds."""
    found: set[str] = set()
    stack: list[cst.CSTNode] = [pattern]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.MatchAs | cst.MatchStar) and node.name is not None:
            found.add(node.name.value)
        if isinstance(node, cst.MatchMapping) and node.rest is not None:
            found.add(node.rest.value)
        stack.extend(node.children)
    return found


def _compared(pattern: cst.MatchPattern | None) -> list[cst.BaseExpression]:
    """What a pattern compares its subject with; empty where it does something else too."""
    match pattern:
        case cst.MatchValue(value=value) | cst.MatchSingleton(value=value):
            return [value]
        case cst.MatchOr(patterns=elements):
            parts = [_compared(element.pattern) for element in elements]
            return [value for part in parts for value in part] if all(parts) else []
    return []


_Lower = Callable[[Lowering, cst.CSTNode], ir.Stmt]
_LowerExpr = Callable[[Lowering, cst.CSTNode], ir.Expr]

_STATEMENTS: dict[type[cst.CSTNode], _Lower] = {
    cst.Expr: Lowering._expr_stmt,  # type: ignore[dict-item]
    cst.Assign: Lowering._assign,  # type: ignore[dict-item]
    cst.AnnAssign: Lowering._ann_assign,  # type: ignore[dict-item]
    cst.AugAssign: Lowering._aug_assign,  # type: ignore[dict-item]
    cst.Return: Lowering._return,  # type: ignore[dict-item]
    cst.If: Lowering._if,  # type: ignore[dict-item]
    cst.For: Lowering._for,  # type: ignore[dict-item]
    cst.While: Lowering._while,  # type: ignore[dict-item]
    cst.Try: Lowering._try,  # type: ignore[dict-item]
    cst.TryStar: Lowering._try,  # type: ignore[dict-item]
    cst.With: Lowering._with,  # type: ignore[dict-item]
    cst.FunctionDef: Lowering._function_def,  # type: ignore[dict-item]
    cst.ClassDef: Lowering._class_def,  # type: ignore[dict-item]
    cst.Import: Lowering._import,  # type: ignore[dict-item]
    cst.ImportFrom: Lowering._import_from,  # type: ignore[dict-item]
    cst.Global: Lowering._scoping,  # type: ignore[dict-item]
    cst.Nonlocal: Lowering._scoping,  # type: ignore[dict-item]
    cst.Del: Lowering._delete,  # type: ignore[dict-item]
    cst.Raise: Lowering._raise,  # type: ignore[dict-item]
    cst.Assert: Lowering._assert,  # type: ignore[dict-item]
    cst.Break: Lowering._break,  # type: ignore[dict-item]
    cst.Continue: Lowering._continue,  # type: ignore[dict-item]
    cst.Match: Lowering._match,  # type: ignore[dict-item]
}

_EXPRESSIONS: dict[type[cst.CSTNode], _LowerExpr] = {
    cst.Name: Lowering._name,  # type: ignore[dict-item]
    cst.Integer: Lowering._number,  # type: ignore[dict-item]
    cst.Float: Lowering._number,  # type: ignore[dict-item]
    cst.Imaginary: Lowering._number,  # type: ignore[dict-item]
    cst.SimpleString: Lowering._string,  # type: ignore[dict-item]
    cst.ConcatenatedString: Lowering._concatenated,  # type: ignore[dict-item]
    cst.FormattedString: Lowering._formatted,  # type: ignore[dict-item]
    cst.BooleanOperation: Lowering._boolean,  # type: ignore[dict-item]
    cst.UnaryOperation: Lowering._unary,  # type: ignore[dict-item]
    cst.Comparison: Lowering._comparison,  # type: ignore[dict-item]
    cst.IfExp: Lowering._if_exp,  # type: ignore[dict-item]
    cst.Tuple: Lowering._display,  # type: ignore[dict-item]
    cst.List: Lowering._display,  # type: ignore[dict-item]
    cst.Set: Lowering._display,  # type: ignore[dict-item]
    cst.Dict: Lowering._dict,  # type: ignore[dict-item]
    cst.ListComp: Lowering._comprehension,  # type: ignore[dict-item]
    cst.SetComp: Lowering._comprehension,  # type: ignore[dict-item]
    cst.GeneratorExp: Lowering._comprehension,  # type: ignore[dict-item]
    cst.DictComp: Lowering._comprehension,  # type: ignore[dict-item]
    cst.Await: Lowering._await,  # type: ignore[dict-item]
    cst.Yield: Lowering._yield,  # type: ignore[dict-item]
    cst.NamedExpr: Lowering._walrus,  # type: ignore[dict-item]
    cst.Lambda: Lowering._lambda,  # type: ignore[dict-item]
}


def _number_of(node: cst.Integer | cst.Float | cst.Imaginary) -> complex:
    """The value of a literal. That of most is told without Python's parser, which tables of numbers would keep busy."""
    match node:
        case cst.Integer():
            return int(node.value, 0)
        case cst.Float():
            return float(node.value)
        case _:
            return node.evaluated_value


def _plain_string(literal: str) -> str:
    """What a literal without a prefix and escapes stands for, which needs no parser; nothing for all others."""
    if literal[0] not in "'\"" or "\\" in literal or "\r" in literal:
        return ""
    quotes = 3 if literal[:3] in ('"""', "'''") else 1
    return literal[quotes:-quotes]


def _text_of(written: str, is_raw: bool) -> str | None:
    """What a part of an f-string that is text stands for; None where that cannot be told."""
    text = written.replace("{{", "{").replace("}}", "}")
    if is_raw or "\\" not in text:
        return text
    if "\r" in text:
        return None
    try:
        with quietly():
            found = ast.literal_eval('"""' + _BARE_QUOTE.sub(r"\"", text) + '"""')
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, str) else None


def _with_equals(node: cst.FormattedStringExpression) -> str:
    """``x =`` of ``f"{x = }"``."""
    parts = (node.whitespace_before_expression, node.expression, node.whitespace_after_expression, node.equal)
    return "".join(cst.Module(()).code_for_node(part) for part in parts if part is not None)


def _named(text: str) -> list[str]:
    """The words of a string that can name a device, a variable or an attribute; strings of prose are left out."""
    return _WORD.findall(text) if _SPACE.search(text) is None else []


def _type_name(annotation: cst.Annotation | None) -> str:
    return "" if annotation is None else _named_type(annotation.annotation)


def _named_type(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
        case cst.Subscript(value=of, slice=[cst.SubscriptElement(slice=cst.Index(value=inner))]):
            return _named_type(inner) if _last_name(of) == "Optional" else ""
        case cst.BinaryOperation(left=inner, operator=cst.BitOr(), right=cst.Name(value="None")):
            return _named_type(inner)
    return ""


def _named_by(node: cst.BaseExpression, ordinal: int, is_evaluated: bool) -> ir.Expr | None:
    """What an annotation is that only names something: the name, or the text of one that is not evaluated."""
    match node:
        case cst.Name(value=name) if is_evaluated:
            return ir.Name(ordinal, name)
        case cst.Attribute(value=of, attr=cst.Name(value=name)) if is_evaluated:
            inner = _named_by(of, ordinal, is_evaluated)
            return None if inner is None else ir.Attr(ordinal, inner, name)
        case cst.Name(value=text):
            return ir.Const(ordinal, text)
        case cst.SimpleString(evaluated_value=str(text)):
            return ir.Const(ordinal, text)
    return None


def _depended_on(annotation: cst.Annotation | None) -> cst.Call | None:
    """What ``x: Annotated[T, Depends(f)]`` gives a parameter where a server calls the function: as a default would."""
    match annotation:
        case cst.Annotation(annotation=cst.Subscript(value=of, slice=parts)) if _last_name(of) == "Annotated":
            inner = (part.slice.value for part in parts if isinstance(part.slice, cst.Index))
            calls = (one for one in inner if isinstance(one, cst.Call))
            return next((one for one in calls if _last_name(one.func) in ("Depends", "Security")), None)
    return None


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""


# A function is parsed when it is entered, where a finding stands in it, and for each repair that is tried out.
_MOST_KEPT = 64
_LONG = 3_000


def parse(text: str) -> cst.Module:
    """The libcst tree of a text; raises ``libcst.ParserSyntaxError``. A short one that was parsed lately is kept."""
    return _parsed(text) if len(text) > _LONG else _kept(text)


def _parsed(text: str) -> cst.Module:
    shorter = abridged(text)
    if shorter != text:
        with contextlib.suppress(cst.ParserSyntaxError):
            return cst.parse_module(shorter)
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError:
        other = evened(text)
        if other is None:
            raise
        return cst.parse_module(other)


_kept = lru_cache(_MOST_KEPT)(_parsed)


def lower(text: str, filename: str, name: str) -> ir.Module:
    """Parse and lower one file; raises ``libcst.ParserSyntaxError``."""
    return Lowering(filename, name).module(parse(text))


def origins(text: str, filename: str, name: str) -> tuple[cst.Module, dict[int, cst.CSTNode]]:
    """The tree of a file, and per ordinal the node it came from."""
    tree = parse(text)
    lowering = Lowering(filename, name, record=True)
    lowering.module(tree)
    return tree, lowering.origin or {}
