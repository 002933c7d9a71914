"""Methods of records that check or change their fields when one is made (pydantic)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import last_name
from cudalint.machine.heap import Class, Closure, Scope, Sequence
from cudalint.machine.state import State
from cudalint.machine.values import Ref, Value, const, constant, only
from cudalint.structs import Frozen

_OF_FIELDS = frozenset({"field_validator", "validator"})
_OF_ALL = frozenset({"model_validator", "root_validator"})
_NOTED = "<validators>"


class Validator(Frozen):
    """A method by what it is given: the record as a ``whole``, or single fields of these names."""

    function: Ref
    mode: str
    whole: bool
    names: frozenset[str]


def note_validators(body: Iterable[ir.Stmt], scope: Ref, state: State) -> None:
    """Remember which methods of a class validate."""
    found = state.get(scope)
    variables = found.variables if isinstance(found, Scope) else {}
    rows: list[Value] = []
    for statement in body:
        for decorator in statement.decorators if isinstance(statement, ir.FunctionDef) else ():
            kind, words, mode = _said_by(decorator)
            bound = variables.get(statement.bound, ()) if isinstance(statement, ir.FunctionDef) else ()
            if kind in _OF_FIELDS | _OF_ALL and isinstance(only(bound), Ref):
                rows.append(
                    (state.new(("validator", scope), Sequence("tuple", (bound, const(f"{kind} {mode} {words}")))),)
                )
    if rows:
        state.set_variable(scope, _NOTED, (state.new(("validators", scope), Sequence("tuple", tuple(rows))),))


def _said_by(decorator: ir.Expr) -> tuple[str, str, str]:
    """The name of a decorator, the fields that it names, and its mode."""
    if not isinstance(decorator, ir.Call):
        return "", "", ""
    words = [a.value.value for a in decorator.args if a.keyword is None and isinstance(a.value, ir.Const)]
    named = {a.keyword: a.value.value for a in decorator.args if a.keyword and isinstance(a.value, ir.Const)}
    mode = "always" if named.get("always") else "before" if named.get("pre") else str(named.get("mode", "after"))
    return last_name(decorator.func), " ".join(str(word) for word in words), mode


def validators_of(cls: Class, state: State) -> Iterator[Validator]:
    """The methods of a class that validate, in their order."""
    scope = state.get(cls.scope)
    noted = only(scope.variables.get(_NOTED, ())) if isinstance(scope, Scope) else None
    rows = state.get(noted) if isinstance(noted, Ref) else None
    for row in rows.items or () if isinstance(rows, Sequence) else ():
        pair = state.get(ref) if isinstance(ref := only(row), Ref) else None
        function = only(pair.items[0]) if isinstance(pair, Sequence) and pair.items else None
        if isinstance(pair, Sequence) and pair.items and isinstance(function, Ref):
            kind, mode, *names = str(constant(pair.items[1])).split()
            if isinstance(state.get(function), Closure):
                yield Validator(function, mode, kind in _OF_ALL, frozenset(names))
