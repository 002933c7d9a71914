"""Expressions of libcst trees to the program form."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from cudalint.ir import nodes as ir
from cudalint.ir.abridged import LEFT_OUT
from cudalint.ir.annotations import depended_on, type_name, words_of
from cudalint.ir.literals import names_in, number_of, plain_string, text_of, with_equals
from cudalint.ir.units import Units, code_of
from cudalint.limits import MOST_BITS
from cudalint.structs import replace

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

_CONSTANTS: dict[str, bool | None] = {"True": True, "False": False, "None": None}


class Expressions(Units):
    """Lowers expressions."""

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
        given = depended_on(node.annotation) if node.default is None else node.default
        default = None if given is None else self._expr(given)
        words = words_of(node.annotation)
        return ir.Param(self._own(node.name.value), kind, default, type_name(node.annotation), words=words)

    def _expr(self, node: cst.BaseExpression) -> ir.Expr:
        lower = _EXPRESSIONS.get(type(node))
        return self._opaque(node) if lower is None else lower(self, node)

    def _opaque(self, node: cst.CSTNode) -> ir.Expr:
        ordinal = self._mark(node)
        parts = [self._expr(c) for c in node.children if isinstance(c, cst.BaseExpression)]
        return ir.Opaque(ordinal, tuple(parts))

    def _chain(self, node: cst.BaseExpression) -> ir.Expr:
        """``a.b(c)[d].e()``: unwound to its root, then built outwards."""
        links: list[cst.Call | cst.Attribute | cst.Subscript] = []
        while True:
            if type(node) is cst.Call:
                inner = node.func
            elif type(node) is cst.Attribute or type(node) is cst.Subscript:
                inner = node.value
            else:
                break
            links.append(node)
            node = inner
        result = self._expr(node)
        for link in reversed(links):
            ordinal = self._mark(link)
            if type(link) is cst.Call:
                result = ir.Call(ordinal, result, tuple(self._arg(a) for a in link.args))
            elif type(link) is cst.Attribute:
                result = ir.Attr(ordinal, result, self._own(self._word(link.attr.value)))
            elif type(link) is cst.Subscript:
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
            value = number_of(node)
        except (ValueError, SyntaxError):
            return ir.Opaque(ordinal, ())
        is_known = not isinstance(value, int) or value.bit_length() <= MOST_BITS
        return ir.Const(ordinal, value) if is_known else ir.Opaque(ordinal, ())

    def _string(self, node: cst.SimpleString) -> ir.Expr:
        ordinal = self._mark(node)
        if node.value.startswith(LEFT_OUT):
            return ir.Opaque(ordinal, ())
        try:
            value = plain_string(node.value) or node.evaluated_value
        except (ValueError, SyntaxError):
            return ir.Opaque(ordinal, ())
        if isinstance(value, str):
            self._units[-1].words.update(names_in(value))
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
                self._units[-1].words.update(names_in(part.value))
                text = text_of(part.value, is_raw)
                parts.append(ir.Opaque(self._mark(part), ()) if text is None else ir.Const(self._mark(part), text))
            elif isinstance(part, cst.FormattedStringExpression):
                # What stands before an equals sign is shown as it is written.
                parts += [] if part.equal is None else [ir.Const(self._mark(part), with_equals(part))]
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
        return ir.Star(self._mark(node), value) if type(node) is cst.StarredElement else value

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
        code = code_of(unit, (ir.Return(self._mark(node.body), value),), (p.name for p in params))
        self._pop_into_parent()
        return ir.Lambda(ordinal, ir.Function(ordinal, "<lambda>", qualname, params, False, code))

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


_LowerExpr = Callable[[Expressions, cst.CSTNode], ir.Expr]

# By their very class: to ask for one class after the other takes long, since those of libcst are abstract.
_EXPRESSIONS: dict[type[cst.CSTNode], _LowerExpr] = {
    cst.Name: Expressions._name,  # type: ignore[dict-item]
    cst.Call: Expressions._chain,  # type: ignore[dict-item]
    cst.Attribute: Expressions._chain,  # type: ignore[dict-item]
    cst.Subscript: Expressions._chain,  # type: ignore[dict-item]
    cst.BinaryOperation: Expressions._binary,  # type: ignore[dict-item]
    cst.Integer: Expressions._number,  # type: ignore[dict-item]
    cst.Float: Expressions._number,  # type: ignore[dict-item]
    cst.Imaginary: Expressions._number,  # type: ignore[dict-item]
    cst.SimpleString: Expressions._string,  # type: ignore[dict-item]
    cst.ConcatenatedString: Expressions._concatenated,  # type: ignore[dict-item]
    cst.FormattedString: Expressions._formatted,  # type: ignore[dict-item]
    cst.BooleanOperation: Expressions._boolean,  # type: ignore[dict-item]
    cst.UnaryOperation: Expressions._unary,  # type: ignore[dict-item]
    cst.Comparison: Expressions._comparison,  # type: ignore[dict-item]
    cst.IfExp: Expressions._if_exp,  # type: ignore[dict-item]
    cst.Tuple: Expressions._display,  # type: ignore[dict-item]
    cst.List: Expressions._display,  # type: ignore[dict-item]
    cst.Set: Expressions._display,  # type: ignore[dict-item]
    cst.Dict: Expressions._dict,  # type: ignore[dict-item]
    cst.ListComp: Expressions._comprehension,  # type: ignore[dict-item]
    cst.SetComp: Expressions._comprehension,  # type: ignore[dict-item]
    cst.GeneratorExp: Expressions._comprehension,  # type: ignore[dict-item]
    cst.DictComp: Expressions._comprehension,  # type: ignore[dict-item]
    cst.Await: Expressions._await,  # type: ignore[dict-item]
    cst.Yield: Expressions._yield,  # type: ignore[dict-item]
    cst.NamedExpr: Expressions._walrus,  # type: ignore[dict-item]
    cst.Lambda: Expressions._lambda,  # type: ignore[dict-item]
}
