"""libcst trees to the program form.

A tree lives while its text is lowered, and that of a short text a little longer. Long left-leaning runs (operators,
calls, ``elif``) are walked in loops, because generated files hold runs that recursion does not survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import libcst as cst

from cudalint.ir import nodes as ir
from cudalint.ir import patterns
from cudalint.ir.annotations import acts, annotations_of, is_of_class, named_by, words_of
from cudalint.ir.expressions import Expressions
from cudalint.ir.parsing import MOST_KEPT, is_long, parse
from cudalint.ir.patterns import captures, compared
from cudalint.ir.units import Outer, code_of
from cudalint.structs import Frozen

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


class Lowering(Expressions):
    """Lowers one module, statement by statement."""

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
        code = code_of(unit, self._suite(suite), outer.params)
        self._units.pop()
        self._depth -= 1
        self._qualname, self._class = before, around
        return code

    def _block(self, body: Iterable[cst.CSTNode]) -> tuple[ir.Stmt, ...]:
        result: list[ir.Stmt] = []
        for node in body:
            self._statement(node, result)
        return tuple(result)

    def _suite(self, node: cst.BaseSuite) -> tuple[ir.Stmt, ...]:
        return self._block(node.body)

    def _statement(self, node: cst.CSTNode, out: list[ir.Stmt]) -> None:
        if type(node) is cst.SimpleStatementLine or type(node) is cst.SimpleStatementSuite:
            for small in node.body:
                self._statement(small, out)
            return
        lower = _STATEMENTS.get(type(node))
        if lower is None:
            return
        if type(node) is cst.FunctionDef:
            out.extend(self._annotations(annotations_of(node)))
        elif type(node) is cst.Raise and node.cause is not None and acts(node.cause.item):
            out.append(ir.ExprStmt(self._mark(node.cause), self._expr(node.cause.item)))
        out.append(lower(self, node))
        if type(node) is cst.AnnAssign and self._qualname[-1:] != ["<locals>"]:
            out.extend(self._annotations((node.annotation,)))

    def _annotations(self, nodes: Iterable[cst.Annotation]) -> Iterable[ir.Stmt]:
        """What annotations do; those of the variables of a function are never evaluated."""
        for node in nodes if self._annotates else ():
            if acts(node.annotation):
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
        kind = self._kind(node.annotation, ordinal) if is_in_class else None
        if node.value is None:
            return ir.Declare(ordinal, self._target(node.target), kind)
        value = self._expr(node.value)
        is_of_object = not is_of_class(node.annotation.annotation)
        return ir.Assign(ordinal, (self._target(node.target),), value, is_of_object, kind)

    def _kind(self, node: cst.Annotation, ordinal: int) -> ir.Expr | None:
        words = words_of(node)
        return ir.Const(ordinal, words) if words else named_by(node.annotation, ordinal, self._annotates)

    def _aug_assign(self, node: cst.AugAssign) -> ir.Stmt:
        ordinal = self._mark(node)
        operator = _AUGMENTED.get(type(node.operator), "?")
        return ir.AugAssign(ordinal, self._target(node.target), operator, self._expr(node.value))

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
        code = code_of(unit, self._suite(suite), (p.name for p in params))
        self._pop_into_parent()
        self._depth -= 1
        self._qualname = before
        return code

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
        captured = sorted(captures(node.pattern))
        for name in captured:
            self._bind(name)
        whole = None
        if isinstance(pattern, cst.MatchAs):
            whole = None if pattern.name is None else pattern.name.value
            pattern = pattern.pattern
        values = tuple(self._expr(value) for value in compared(pattern))
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


_Lower = Callable[[Lowering, cst.CSTNode], ir.Stmt]

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


def lower(text: str, filename: str, name: str) -> ir.Module:
    """Parse and lower one file; raises ``libcst.ParserSyntaxError``."""
    return Lowering(filename, name).module(parse(text))


def origins(text: str, filename: str, name: str) -> tuple[cst.Module, dict[int, cst.CSTNode]]:
    """The tree of a file, and per ordinal the node it came from."""
    tree = parse(text)
    lowering = Lowering(filename, name, record=True)
    lowering.module(tree)
    return tree, lowering.origin or {}


class LoweredBody(Frozen):
    """The body of a function, the tree of its definition, and per ordinal the node that it came from."""

    code: ir.Code
    tree: cst.Module
    origins: Mapping[int, cst.CSTNode]


def body(text: str, filename: str, name: str, outer: Outer) -> LoweredBody:
    """Parse and lower the body of an outermost function, of which ``text`` is a definition.

    Raises ``libcst.ParserSyntaxError``. A short one is kept for a while: who runs it may ask next where nodes stand.
    """
    return (_body if is_long(text) else _kept_body)(text, filename, name, outer)


def _body(text: str, filename: str, name: str, outer: Outer) -> LoweredBody:
    tree = parse(text)
    definition = tree.body[0]
    assert isinstance(definition, cst.FunctionDef)
    lowering = Lowering(filename, name, record=True)
    return LoweredBody(lowering.body(outer, definition.body), tree, lowering.origin or {})


_kept_body = lru_cache(MOST_KEPT)(_body)
