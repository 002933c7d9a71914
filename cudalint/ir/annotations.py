"""What annotations say: types, by their last names, and what they have Python do."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from cudalint.ir import nodes as ir


def annotations_of(node: cst.FunctionDef) -> Iterable[cst.Annotation]:
    """The annotations of a function's parameters and of what it returns."""
    params = node.params
    given = [*params.posonly_params, *params.params, params.star_arg, *params.kwonly_params, params.star_kwarg]
    for param in given:
        if isinstance(param, cst.Param) and param.annotation is not None:
            yield param.annotation
    if node.returns is not None:
        yield node.returns


def is_of_class(node: cst.BaseExpression) -> bool:
    """Whether an annotation says that a variable is one of the class (``ClassVar[int]``), and none of its objects."""
    named = node.value if isinstance(node, cst.Subscript) else node
    last = named.attr if isinstance(named, cst.Attribute) else named
    return isinstance(last, cst.Name) and last.value == "ClassVar"


def acts(node: cst.CSTNode) -> bool:
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


def type_name(annotation: cst.Annotation | None) -> str:
    """The last name of the type that an annotation names, or of the one that may be None."""
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


def words_of(annotation: cst.Annotation | None) -> tuple[str, ...]:
    """The words of which something is one (``Literal["fork", "spawn"]``, or None); empty for other annotations."""
    return () if annotation is None else _words(annotation.annotation)


def _words(node: cst.BaseExpression) -> tuple[str, ...]:
    match node:
        case cst.Subscript(value=of, slice=parts):
            inner = [part.slice.value for part in parts if isinstance(part.slice, cst.Index)]
            if _last_name(of) in ("Optional", "Annotated"):
                return _words(inner[0]) if inner else ()
            texts = [one.evaluated_value for one in inner if isinstance(one, cst.SimpleString)]
            words = tuple(text for text in texts if isinstance(text, str))
            return words if _last_name(of) == "Literal" and len(words) == len(parts) else ()
        case cst.BinaryOperation(left=inner, operator=cst.BitOr(), right=cst.Name(value="None")):
            return _words(inner)
    return ()


def named_by(node: cst.BaseExpression, ordinal: int, is_evaluated: bool) -> ir.Expr | None:
    """What an annotation is that only names something: the name, or the text of one that is not evaluated."""
    match node:
        case cst.Name(value=name) if is_evaluated:
            return ir.Name(ordinal, name)
        case cst.Attribute(value=of, attr=cst.Name(value=name)) if is_evaluated:
            inner = named_by(of, ordinal, is_evaluated)
            return None if inner is None else ir.Attr(ordinal, inner, name)
        case cst.Name(value=text):
            return ir.Const(ordinal, text)
        case cst.SimpleString(evaluated_value=str(text)):
            return ir.Const(ordinal, text)
    return None


def depended_on(annotation: cst.Annotation | None) -> cst.Call | None:
    """What ``x: Annotated[T, Depends(f)]`` gives a parameter where a server calls the function: as a default would."""
    if annotation is None:
        return None
    match annotation.annotation:
        case cst.Subscript(value=of, slice=parts) if _last_name(of) == "Annotated":
            inner = (part.slice.value for part in parts if isinstance(part.slice, cst.Index))
            calls = (one for one in inner if isinstance(one, cst.Call))
            return next((one for one in calls if _last_name(one.func) in ("Depends", "Security")), None)
    return None


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""
