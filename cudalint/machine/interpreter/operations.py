"""Methods that Python calls by itself where operators and builtins meet instances of the program's classes."""

from __future__ import annotations

from cudalint.machine import exceptions, formats, operators
from cudalint.machine.frame import Frame, Results
from cudalint.machine.heap import Class, Instance
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Bound, Lib, Ref, Value, const, only, unknown

_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "|": "or", "&": "and", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
_COMPARING = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_DERIVED = {">=": "<", "<=": ">"}
_TRUTH = ("__bool__", "__len__")
_REFUSED = Lib("builtins.NotImplemented")


class Operations(Core):
    """Calls what classes say of operators."""

    def special(
        self, value: Value, names: tuple[str, ...], args: list[Value], state: State, frame: Frame, site: Site
    ) -> Results | None:
        """What the first of these methods gives that the class of an object defines; None where it has none."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(found, Instance | Class):
            return None
        for name in names:
            own = self.user_method(found, name, state) if isinstance(found, Instance) else None
            method = self.metaclass_method(atom, name, state) if isinstance(found, Class) else own
            if method is not None:
                return self.call_value((Bound(method, atom),), args, {}, state, frame, site)
        return None

    def operate(self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site) -> Results | None:
        """``left op right`` where one of the two says what that is: the left one first, then the right one."""
        name = _BINARY.get(op)
        if name is None:
            return None
        made = self.special(left, (f"__{name}__",), [right], state, frame, site)
        if made is None:
            made = self.special(right, (f"__r{name}__",), [left], state, frame, site)
        return None if made is None else _answered(made, site)

    def operate_in_place(
        self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """``left op= right``."""
        name = _BINARY.get(op)
        made = None if name is None else self.special(left, (f"__i{name}__",), [right], state, frame, site)
        return self.operate(op, left, right, state, frame, site) if made is None else _answered(made, site)

    def compare_by_class(
        self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """``left < right``, ``x in holder`` where a class of the program says what that is."""
        if op == "in":
            return self.special(right, ("__contains__",), [left], state, frame, site)
        if op not in _COMPARING:
            return None
        made = self.special(left, (f"__{_COMPARING[op]}__",), [right], state, frame, site)
        if made is None:
            made = self.special(right, (f"__{_COMPARING[_TURNED[op]]}__",), [left], state, frame, site)
        if made is None and op == "!=":
            # What says when it is equal says with that when it is not.
            equal = self.compare_by_class("==", left, right, state, frame, site)
            return None if equal is None else [(after, operators.negate(value)) for after, value in equal]
        if made is None and op == "==" and (same := self.are_equal_records(left, right, state)) is not None:
            return [(state, const(same))]
        if made is None and (ordered := self.are_in_order(op, left, right, state)) is not None:
            return [(state, const(ordered))]
        if made is None and op in _DERIVED:
            # What does not say this itself says it by its order (functools.total_ordering).
            strict = self.compare_by_class(_DERIVED[op], left, right, state, frame, site)
            return None if strict is None else [(after, operators.negate(value)) for after, value in strict]
        return None if made is None else _answered(made, site)

    def judged(self, results: Results, frame: Frame, site: Site) -> Results:
        """Values of a test: an instance is what its class says of its truth."""
        done: Results = []
        for state, value in results:
            own = self.special(value, _TRUTH, [], state, frame, site)
            done.extend([(state, value)] if own is None else own)
        return done

    def shown(self, values: list[Value], names: tuple[str, ...], state: State, frame: Frame, site: Site) -> list[State]:
        """The paths on which instances have said what they look like as texts."""
        states = [state]
        for value in values:
            following: list[State] = []
            for current in states:
                said = self.special(value, names, [], current, frame, site)
                following.extend([current] if said is None else [after for after, _ in said])
            states = following
        return states

    def as_text(self, value: Value, conversion: str, spec: Value, state: State, frame: Frame, site: Site) -> Results:
        """What a value looks like in a text, by a conversion (``"r"``, ``"s"``, none) and a format."""
        said = None if conversion else self.special(value, ("__format__",), [spec], state, frame, site)
        if said is not None:
            return said
        names = ("__repr__",) if conversion in ("a", "r") else ("__str__", "__repr__")
        made = self.special(value, names, [], state, frame, site)
        if made is None and conversion in ("", "s") and (own := exceptions.text(value, state)) is not None:
            made = [(state, own)]
        if made is None:
            return [(state, formats.written(value, conversion, spec, site))]
        return [(after, formats.written(text, "", spec, site)) for after, text in made]


def _answered(results: Results, site: Site) -> Results:
    """Without the word by which a method says that it does not know: then another one is asked, nobody knows which."""
    return [(state, tuple(a for a in value if a != _REFUSED) or unknown("operator", site)) for state, value in results]
