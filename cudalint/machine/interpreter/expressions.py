"""Expressions that call nothing: names, operators, displays, and the chains that lead to calls."""

from __future__ import annotations

import builtins
from collections.abc import Hashable, Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine import counting, enums, formats, mappings, operators, questions, sets, unknowns, versions
from cudalint.machine.frame import NO_HASH, Frame, Raised, Results
from cudalint.machine.heap import (
    ANY_NAME,
    NAMESPACE,
    Class,
    Closure,
    Dict,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
    item_field,
)
from cudalint.machine.interpreter.core import Core
from cudalint.machine.interpreter.results import MOST_RESULTS, merge_rows
from cudalint.machine.keys import as_key
from cudalint.machine.presence import is_present
from cudalint.machine.slices import as_slice
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    IN_PLACE,
    NONE,
    PYTHON_MINOR,
    PYTHON_VERSION,
    Atom,
    Bound,
    Const,
    Lib,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    holds_deferred,
    is_deleted,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

_NO_FORMAT = const("")
_OF_TORCH = Lib("torch.__version__")
# What ``int | str`` is.
_UNION = "union"
_OF_NUMBERS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# Operators of what libraries hold, by the methods of the left and of the right one.
_METHODS = {"|": ("__or__", "__ror__"), "+": ("__add__", "__radd__"), "&": ("__and__", "__rand__")}
# A variable that was deleted is asked for.
_UNBOUND = Raised(None, ("UnboundLocalError", "NameError"))
# By these it has attributes that nobody set.
_MAKE_NAMES = ("__getattr__", "__getattribute__")


class Expressions(Core):
    """Evaluates expressions."""

    def eval_all(self, nodes: Iterable[ir.Expr], state: State, frame: Frame) -> list[tuple[State, list[Value]]]:
        """Several expressions, left to right."""
        results: list[tuple[State, list[Value]]] = [(state, [])]
        for node in nodes:
            following: list[tuple[State, list[Value]]] = []
            for current, values in results:
                evaluated = self.eval(node, current, frame)
                if len(evaluated) == 1:
                    # A table has very many items, and its list is not to be copied for each.
                    after, value = evaluated[0]
                    values.append(value)
                    following.append((after, values))
                    continue
                following.extend((after, [*values, value]) for after, value in evaluated)
            results = following if len(following) <= MOST_RESULTS else merge_rows(following)
        return results

    def _spine(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """``a.b(c)[d]``: from the root outwards, in a loop."""
        links: list[ir.Call | ir.Attr | ir.Sub] = []
        while isinstance(node, ir.Call | ir.Attr | ir.Sub):
            links.append(node)
            node = node.func if isinstance(node, ir.Call) else node.value
        results = self.eval(node, state, frame)
        if isinstance(node, ir.Name):
            results = [r for s, v in results for r in self._of_main(node, v, s, frame)]
        for link in reversed(links):
            if self.parents and isinstance(node, ir.Attr):
                results = [r for s, v in results for r in self._of_parent(node, v, s, frame)]
            elif self.parents and isinstance(node, ir.Call) and not isinstance(link, ir.Call):
                results = [r for s, v in results for r in self._of_getter(v, s, frame)]
            results = [r for s, v in results for r in self._told_apart(link, node, v, s, frame)]
            node = link
            if len(results) > 4:
                results = self.joined_results(results)
        return results

    def _of_main(self, node: ir.Name, value: Value, state: State, frame: Frame) -> Results:
        """What a name stands for that None is not enough for: a fresh process lacks what main made of it."""
        if value != NONE or not self.parents:
            return [(state, value)]
        scope: Ref | None = frame.scope
        while scope is not None and isinstance(found := state.get(scope), Scope) and found.kind != "module":
            if node.id in found.variables:
                return [(state, value)]
            scope = found.parent
        return self._missing_name(node.id, state, frame, Site(frame.module, node.ordinal))

    def _of_parent(self, node: ir.Attr, value: Value, state: State, frame: Frame) -> Results:
        """The same for an attribute of what a name stands for."""
        match node.value:
            case ir.Name(id=name) if value == NONE:
                owner = only(self.lookup(name, state, frame.scope) or ())
                site = Site(frame.module, node.ordinal)
                failed = self._missing_part(owner, node.attr, state, frame, site) if isinstance(owner, Ref) else None
                return [(state, value)] if failed is None else failed
        return [(state, value)]

    def _of_getter(self, value: Value, state: State, frame: Frame) -> Results:
        """The same for what a function gives back: ``settings().device``."""
        if value != NONE or self._gave_none is None:
            return [(state, value)]
        node, module = self._gave_none
        return self._of_main(node, value, state, replace(frame, scope=Ref(("module", module)), module=module))

    def _of_object(self, value: Value, name: str, state: State, frame: Frame, site: Site) -> Results | None:
        """What a class or an object of the program lacks that a fresh process found it without; None if it has that."""
        atom = only(value)
        if not isinstance(atom, Ref) or state.fact(("hasattr", value, name)):
            return None
        match state.get(atom):
            case Class(members=()):
                lacks = self._kind_of(atom, state) is None and self._is_without(atom, name, state)
            case Instance(cls=cls, attributes=attributes) if name not in attributes:
                # Where any name may have been set, or is made when it is asked for, nothing is missing.
                names = () if ANY_NAME in attributes else (name, *_MAKE_NAMES)
                lacks = bool(names) and all(self._is_without(cls, each, state) for each in names)
            case LibraryObject(type=kind, fields=fields):
                lacks = kind == NAMESPACE and not fields.keys() & {name, ANY_NAME}
            case _:
                lacks = False
        return self._missing_part(atom, name, state, frame, site) if lacks else None

    def _is_without(self, cls: Ref, name: str, state: State) -> bool:
        """Whether a class of the program, which has no base of a library, has nothing under a name."""
        is_own = all(isinstance(each, Class) for each in self.mro(cls, state))
        return is_own and self._class_attribute(cls, name, state) is None

    def _told_apart(self, link: ir.Expr, base: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        """A link of something that may be one of several objects: where it tells which, that is known from then on.

        Of ``job["parallel"]`` and ``job["run"]``, one after the other, both are of one job.
        """
        if _is_beyond_none(link) and value == NONE and isinstance(base, ir.Name):
            self.asks_none(state)
        elif _is_beyond_none(link) and not frame.tries and _may_be_none(value):
            value = tuple(atom for atom in value if (atom,) != NONE)
            if (held := self._place(base, state, frame)) is not None:
                self.keep_at(held, value, state)
        place = self._place(base, state, frame) if _asks_which(link, value) else None
        if place is None:
            return self._link(link, value, state, frame)
        results = [(s, v, atom) for atom in value for s, v in self._link(link, (atom,), state.clone(), frame)]
        if len({found for _, found, _ in results if not any(isinstance(a, Unknown | Bound) for a in found)}) > 1:
            for after, _, atom in results:
                self.keep_at(place, (atom,), after)
        return self.joined_results([(after, found) for after, found, _ in results])

    def _place(self, node: ir.Expr, state: State, frame: Frame) -> tuple[Ref, str] | None:
        """Where a variable of this function or module, or an attribute of an object that one stands for, is kept."""
        match node:
            case ir.Name(id=name):
                found = state.get(frame.scope)
                is_local = isinstance(found, Scope) and found.kind != "class" and name in found.variables
                return (frame.scope, name) if is_local else None
            case ir.Attr(value=ir.Name(id=name), attr=attr):
                owner = only(self.lookup(name, state, frame.scope) or ())
                held = state.get(owner) if isinstance(owner, Ref) else None
                if isinstance(owner, Ref) and isinstance(held, Instance) and attr in held.attributes:
                    return owner, attr
        return None

    def kept_at(self, place: tuple[Ref, str], state: State) -> Value:
        """What is kept at a place."""
        owner, name = place
        match state.get(owner):
            case Instance(attributes=kept) | Scope(variables=kept):
                return kept.get(name, ())
        return ()

    def keep_at(self, place: tuple[Ref, str], value: Value, state: State) -> None:
        """Narrow down what is kept at a place."""
        owner, name = place
        found = state.get(owner)
        if isinstance(found, Instance):
            state.store(owner, replace(found, attributes={**found.attributes, name: value}))
            return
        state.set_variable(owner, name, value)

    def _link(self, link: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        site = Site(frame.module, link.ordinal)
        match link:
            case ir.Attr(attr=attr):
                failed = self._of_object(value, attr, state, frame, site) if self.parents else None
                return self.attribute(value, attr, state, frame, site) if failed is None else failed
            case ir.Sub(index=index):
                return [
                    r
                    for after, key in self.eval(index, state, frame)
                    for r in self.item(value, key, after, frame, site)
                ]
            case ir.Call():
                return self._apply(link, value, state, frame, False)
        return [(state, value)]

    def _const(self, node: ir.Const, state: State, frame: Frame) -> Results:
        return [(state, const(node.value))]

    def _name(self, node: ir.Name, state: State, frame: Frame) -> Results:
        value = self.lookup(node.id, state, frame.scope)
        if value is not None and frame.tries and is_deleted(value):
            return self.fail(state, frame, _UNBOUND)
        if value is not None:
            return self.resolve_deferred(value, state, frame) if holds_deferred(value) else [(state, value)]
        if node.id == "__class__" and frame.owner is not None:
            return [(state, (frame.owner,))]
        if self.library.is_builtin(node.id):
            return [(state, (Lib(f"builtins.{node.id}"),))]
        return self._missing_name(node.id, state, frame, Site(frame.module, node.ordinal))

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, from the inside out; class bodies are seen only from themselves."""
        first = True
        while scope is not None:
            found = state.get(scope)
            if not isinstance(found, Scope):
                return None
            if name in found.variables and (first or found.kind != "class"):
                return found.variables[name]
            first = False
            scope = found.parent
        return None

    def _compare(self, node: ir.Compare, state: State, frame: Frame) -> Results:
        results: Results = []
        for after, (left, right) in self._sides(node, state, frame):
            self.compares(node.op, (left, right), Site(frame.module, node.ordinal), after)
            if self.record.offers.made:
                self.record.offers.compare(left, right, after)
            results.extend(self._comparison_of(node, left, right, after, frame))
        return results

    def _comparison_of(self, node: ir.Compare, left: Value, right: Value, state: State, frame: Frame) -> Results:
        """What a comparison gives: what a class or an array makes of it, what is known, or what is then asked."""
        own = self._compared_by_class(node, left, right, state, frame)
        if own is not None:
            return own
        if frame.tries and operators.refuses(node.op, left, right):
            return self.fail(state, frame, Raised(None, ("TypeError",)))
        made = self._compared_as_arrays(node, left, right, state, frame)
        if made is None and node.op in ("in", "not in"):
            made = self._looked_for(node, left, right, state, frame)
        if made is not None:
            return made
        known = self._known_comparison(node.op, left, right, state)
        if known is not None:
            return [(state, const(known))]
        return [(state, operators.compare(node.op, left, right, ("compare", frame.module, node.ordinal)))]

    def _looked_for(self, node: ir.Compare, left: Value, right: Value, state: State, frame: Frame) -> Results | None:
        """``left in right``, where a library, or what is held, answers it; None where nothing does."""
        is_in = node.op == "in"
        atom = only(right)
        if atom is not None:
            path = self._method_path(atom, "__contains__", state)
            site = Site(frame.module, node.ordinal)
            call = None if path is None else self._library_call(path, state, frame, site, [left])
            if call is not None:
                call.receiver = atom if isinstance(atom, Ref) else call.receiver
                found = self.library_call(call)
                return found if is_in else [(after, operators.negate(value)) for after, value in found]
            held = state.get(mappings.content_of(atom, state) or atom) if isinstance(atom, Ref) else None
            wanted = as_key(left, state) if isinstance(held, Dict) else left
            known = operators.contains(held, wanted)
            known = sets.contains(held, left, state) if known is None else known
            known = True if known is None and _was_put(atom, left, state) else known
            if known is not None:
                return [(state, const(known is is_in))]
            asked = operators.membership(held, wanted)
            if asked is not None:
                return [(state, asked if is_in else operators.negate(asked))]
        elif all(_has_for_certain(each, left, state) for each in right):
            return [(state, const(is_in))]
        one, two = (enums.flag_of(left), enums.flag_of(right)) if self._is_flag(right, state) else (None, None)
        if one is not None and two is not None:
            return [(state, const((one[1] & two[1] == one[1]) is is_in))]
        return None

    def _known_comparison(self, op: str, left: Value, right: Value, state: State) -> bool | None:
        """What a comparison gives in any case."""
        known = _are_one(op, left, right, state)
        if known is None:
            known = self._compared_by_version(op, left, right)
        if known is None:
            known = _compare_containers(op, left, right, state)
        if known is None and op in ("==", "!="):
            same = _hold_the_same(left, right, state)
            known = None if same is None else same is (op == "==")
        if known is None:
            known = self._compared_with_none(op, left, right, state)
        if known is None:
            known = counting.compared(op, only(left), only(right))
        return self._compare_version(op, left, right, state) if known is None else known

    def _compared_as_arrays(
        self, node: ir.Compare, left: Value, right: Value, state: State, frame: Frame
    ) -> Results | None:
        """``scores > 0.5``: of an array on a GPU that is another one there.

        What lies on the CPU may as well be a number, of which it is remembered how it compares.
        """
        if node.op not in _OF_NUMBERS or any(isinstance(constant(side), str | None) for side in (left, right)):
            return None
        array = next((atom for atom in (only(left), only(right)) if isinstance(atom, Tensor)), None)
        if array is None or not array.device.is_gpu:
            return None
        site = Site(frame.module, node.ordinal)
        data = self._tensor_data(array, "a comparison", state, frame, site)
        return [(state, (array.computed,))] if data else []

    def _compared_with_none(self, op: str, left: Value, right: Value, state: State) -> bool | None:
        """What a comparison with None gives of something that the code does not show, and that is certainly there."""
        if NONE not in (left, right) or op not in ("is", "is not", "==", "!="):
            return None
        other = left if right == NONE else right
        is_there = any(isinstance(atom, Unknown) for atom in other) and all(self._is_there(a, state) for a in other)
        if not other or not (is_there or questions.has_default(other)):
            return None
        return op in ("is not", "!=")

    def _is_there(self, atom: Atom, state: State) -> bool:
        """Whether something is certainly not None; nothing is put into that."""
        if isinstance(atom, Unknown):
            return is_present(atom.sym, self.library) or unknowns.is_filled(atom, state)
        return isinstance(atom, Ref)

    def _sides(self, node: ir.Compare, state: State, frame: Frame) -> list[tuple[State, list[Value]]]:
        """What is compared; a generator is gone through by what looks for something in it."""
        results = self.eval_all((node.left, node.right), state, frame)
        if node.op not in ("in", "not in"):
            return results
        return [(after, values) for s, values in results for after in self.exhausted(values[1:], s, frame)]

    def _compared_by_class(
        self, node: ir.Compare, left: Value, right: Value, state: State, frame: Frame
    ) -> Results | None:
        """What classes of the program say of a comparison; of what is not known it is asked as of anything else."""
        op = "in" if node.op == "not in" else node.op
        made = self.compare_by_class(op, left, right, state, frame, Site(frame.module, node.ordinal))
        if made is None or op == node.op:
            return made
        return [(after, operators.negate(value)) for after, value in made]

    def _compare_version(self, op: str, left: Value, right: Value, state: State) -> bool | None:
        """``sys.version_info < (3, 8)``, where the versions of Python in range agree."""
        if left == (PYTHON_MINOR,):
            number = constant(right)
            return self.host.compares_minor(op, number) if isinstance(number, int) else None
        if left != (PYTHON_VERSION,):
            return None
        numbers = [constant(part) for part in self.exact_items(right, state) or ()]
        wanted = tuple(number for number in numbers if isinstance(number, int))
        return self.host.compares(op, wanted) if wanted and len(wanted) == len(numbers) else None

    def _bin(self, node: ir.Bin, state: State, frame: Frame) -> Results:
        results: Results = []
        parts = (node.first, *(e for _, e in node.rest))
        for after, values in self.eval_all(parts, state, frame):
            made: Results = [(after, values[0])]
            for (op, _), right in zip(node.rest, values[1:], strict=True):
                made = [r for s, left in made for r in self._binary(op, left, right, s, frame, node.ordinal)]
            results.extend(made)
        return results

    def _compared_by_version(self, op: str, left: Value, right: Value) -> bool | None:
        """``torch.__version__ >= "2.0"``: torch compares its version as one, where others have a plain text."""
        one, two = only(left), only(right)
        if one != _OF_TORCH or not isinstance(two, Const) or not isinstance(two.value, str):
            return None
        if (least := self.least_version(_OF_TORCH)) is None:
            return None
        return versions.compared(op, *versions.installed(least), *versions.version(two.value))

    def _binary(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Results:
        site = Site(frame.module, ordinal)
        own = self.operate(op, left, right, state, frame, site)
        own = self._with_library(op, left, right, state, frame, site) if own is None else own
        if own is not None:
            return own
        if self._is_flag(left, state) and (flags := enums.put_together(op, left, right, state)) is not None:
            return [(state, flags)]
        text = constant(left) if op == "%" else None
        if isinstance(text, str) and "%r" not in text and self._says_itself(right, state):
            said = self.as_text(right, "s", _NO_FORMAT, state, frame, site)
            return [(after, self._combine(op, left, shown, after, frame, ordinal)) for after, shown in said]
        if frame.tries and operators.refuses(op, left, right):
            return self.fail(state, frame, Raised(None, ("TypeError",)))
        if frame.tries and op in ("/", "//", "%") and _is_zero(right) and isinstance(constant(left), int | float):
            return self.fail(state, frame, Raised(None, ("ZeroDivisionError", "ArithmeticError")))
        tensor = _tensor_of(left) or _tensor_of(right)
        if tensor is None:
            return [(state, self._combine(op, left, right, state, frame, ordinal))]
        data = self._tensor_data(tensor, "arithmetic", state, frame, site)
        return [(state, (tensor.computed,))] if data else []

    def _says_itself(self, value: Value, state: State) -> bool:
        """Whether something is an object, no tuple or dict, whose class says what it looks like as a text."""
        found = state.get(atom) if isinstance(atom := only(value), Ref) else None
        if not isinstance(found, Instance) or mappings.content_of(atom, state) is not None:
            return False
        if self._row_of(found, state) is not None:
            return False
        return any(self.user_method(found, name, state) is not None for name in ("__str__", "__repr__"))

    def _with_library(
        self, op: str, left: Value, right: Value, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """``os.environ | {...}``, ``train + extra``: what an operator makes of what a library holds, by its model."""
        if op not in _METHODS:
            return None
        for value, other, method in zip((left, right), (right, left), _METHODS[op], strict=True):
            atom = only(value)
            path = self._method_path(atom, method, state) if isinstance(atom, Lib | Ref) else None
            call = None if path is None else self._library_call(path, state, frame, site, [other])
            if call is not None:
                call.receiver = atom if isinstance(atom, Ref) else call.receiver
                return self.library_call(call)
        return None

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        one, two = only(left), only(right)
        if op == "|":
            one, two = mappings.dict_of(one, state) or one, mappings.dict_of(two, state) or two
        first = state.get(one) if isinstance(one, Ref) else None
        second = state.get(two) if isinstance(two, Ref) else None
        if isinstance(first, Sequence) and op == "+" and isinstance(second, Sequence):
            made = operators.concatenate(first, second)
            return (state.new(("concat", frame.module, ordinal), made),)
        if op == "%" and isinstance(text := constant(left), str):
            return formats.by_percent(text, _for_places(right, second), ("bin", frame.module, ordinal))
        if op in sets.OPERATORS and isinstance(first, Sequence) and isinstance(second, Sequence):
            made = sets.combined(op, first, [sets.values_of(second)], state)
            return (state.new(("set", frame.module, ordinal), made),)
        if isinstance(first, Sequence) and op == "*":
            made = operators.repeat(first, right)
            return (state.new(("repeat", frame.module, ordinal), made),)
        if op == "|" and (types := self._types_of_both(left, right, state)):
            return (state.new((_UNION, frame.module, ordinal), Sequence(_UNION, types)),)
        if isinstance(first, Dict) and op == "|" and isinstance(second, Dict):
            made_map = replace(operators.merged(first, second), view=None)
            return (state.new(("merged", frame.module, ordinal), made_map),)
        if isinstance(first, Dict) and op == "|" and isinstance(base := only(right), Unknown):
            made_map = replace(operators.overlaid(first, right, base.sym), view=None)
            return (state.new(("merged", frame.module, ordinal), made_map),)
        return operators.binary(op, left, right, ("bin", frame.module, ordinal))

    def _types_of_both(self, left: Value, right: Value, state: State) -> tuple[Value, ...]:
        """The types of ``int | str``; none where an operator joins other things."""
        some, others = self._types_in(left, state), self._types_in(right, state)
        return (*some, *others) if some and others and any(map(_is_a_type, (*some, *others))) else ()

    def _types_in(self, value: Value, state: State) -> tuple[Value, ...]:
        """The types that a side of ``int | str | None`` is; none where it is something else."""
        match only(value):
            case Const(value=None):
                return ((Lib("builtins.NoneType"),),)
            case Lib():
                return (value,)
            case Ref() as ref:
                found = state.get(ref)
                if isinstance(found, Sequence) and found.kind == _UNION:
                    return found.items or ()
                return (value,) if isinstance(found, Class) else ()
        return ()

    def _is_flag(self, value: Value, state: State) -> bool:
        found = enums.flag_of(value)
        return found is not None and enums.is_flag(self.mro(found[0].cls, state), self.library)

    def _unary(self, node: ir.Unary, state: State, frame: Frame) -> Results:
        results: Results = []
        for after, value in self.eval(node.value, state, frame):
            found = constant(value)
            own = self.special(value, (operators.UNARY[node.op],), [], after, frame, Site(frame.module, node.ordinal))
            if own is not None:
                results.extend(own)
            elif isinstance(found, int) or (isinstance(found, float) and node.op != "~"):
                results.append((after, const(-found if node.op == "-" else +found if node.op == "+" else ~int(found))))
            elif node.op == "~" and self._is_flag(value, after) and (flags := enums.without(value, after)):
                results.append((after, flags))
            elif (tensor := _tensor_of(value)) is not None:
                site = Site(frame.module, node.ordinal)
                results.extend(self._tensor_data(tensor, "arithmetic", after, frame, site))
            else:
                results.append((after, unknown("unary", frame.module, node.ordinal)))
        return results

    def _display(self, node: ir.Display, state: State, frame: Frame) -> Results:
        results: Results = []
        plain = [i.value if isinstance(i, ir.Star) else i for i in node.items]
        for after, values in self._all_of(node, plain, state, frame):
            items: list[Value] | None = []
            loose: list[Value] = []
            for item, value in zip(node.items, values, strict=True):
                if isinstance(item, ir.Star) and node.kind != "set":
                    self.spreads(value, Site(frame.module, item.ordinal), after)
                spread = [value] if not isinstance(item, ir.Star) else self.exact_items(value, after)
                loose.extend(spread if spread is not None else self.elements(value, after))
                if items is not None and spread is not None:
                    items.extend(spread)
                else:
                    items = None
            exact = None if items is None else tuple(items)
            if node.kind == "set" and frame.tries and any(self.refuses_hash(value, after) for value in exact or loose):
                results.extend(self.fail(after, frame, NO_HASH))
                continue
            if exact is not None and node.kind == "set":
                exact = sets.distinct(exact, after)
            made = Sequence(node.kind, exact, () if exact is not None else union(loose))
            results.append((after, (after.new(("display", frame.module, node.ordinal), made),)))
        return results

    def _all_of(
        self, node: ir.Display, plain: list[ir.Expr], state: State, frame: Frame
    ) -> list[tuple[State, list[Value]]]:
        """The values in a display; what generators give that stand there with a star is made at once."""
        results = self.eval_all(plain, state, frame)
        if not any(isinstance(item, ir.Star) for item in node.items):
            return results
        return [
            (after, values)
            for current, values in results
            for after in self.exhausted(
                (v for i, v in zip(node.items, values, strict=True) if isinstance(i, ir.Star)), current, frame
            )
        ]

    def _dict_display(self, node: ir.DictDisplay, state: State, frame: Frame) -> Results:
        results: Results = []
        parts = [e for key, value in node.items for e in ((key, value) if key is not None else (value,))]
        for after, values in self.eval_all(parts, state, frame):
            if frame.tries and any(self.refuses_hash(key, after) for key in _keys_of(node, values)):
                results.extend(self.fail(after, frame, NO_HASH))
                continue
            queue = iter(values)
            made = Dict({})
            for key, _ in node.items:
                if key is None:
                    spread = next(queue)
                    self.spreads(spread, Site(frame.module, node.ordinal), after)
                    held = mappings.dict_of(only(spread), after)
                    found = None if held is None else after.get(held)
                    if isinstance(found, Dict):
                        made = operators.merged(made, found)
                    else:
                        made = operators.overlaid(made, spread, ("spread", frame.module, node.ordinal))
                    continue
                name, value = as_key(next(queue), after), next(queue)
                if made.last is None and (wanted := constant(name)) is not ...:
                    # No other has seen this dict, and a table is not to be copied for each of its keys.
                    made.items[wanted] = value
                else:
                    made = operators.with_key(made, name, value)
            results.append((after, (after.new(("dict", frame.module, node.ordinal), made),)))
        return results

    def _joined(self, node: ir.Joined, state: State, frame: Frame) -> Results:
        results: Results = []
        places = [part if isinstance(part, ir.Formatted) else ir.Formatted(0, part, "", None) for part in node.parts]
        parts = [e for place in places for e in (place.value, place.format) if e is not None]
        for after, values in self.eval_all(parts, state, frame):
            site = Site(frame.module, node.ordinal)
            rest = iter(values)
            rows = [(place.conversion, next(rest), next(rest) if place.format else _NO_FORMAT) for place in places]
            self.shows([value for _, value, _ in rows], site, after)
            results.extend(self._in_text(rows, after, frame, site))
        return results

    def _in_text(self, rows: list[tuple[str, Value, Value]], state: State, frame: Frame, site: Site) -> Results:
        """The text that values make, each with its conversion and its format."""
        paths: list[tuple[State, list[Value]]] = [(state, [])]
        for conversion, value, spec in rows:
            paths = [
                (after, [*said, text])
                for current, said in paths
                for after, text in self.as_text(value, conversion, spec, current, frame, site)
            ]
        return [(after, operators.joined(said, ("joined", site.module, site.ordinal))) for after, said in paths]

    def _walrus(self, node: ir.Walrus, state: State, frame: Frame) -> Results:
        results = self.eval(node.value, state, frame)
        scope = self._around_comprehensions(frame.scope, state)
        around = frame if scope == frame.scope else replace(frame, scope=scope)
        for after, value in results:
            self.bind(node.target, value, after, around)
        return results

    def _around_comprehensions(self, scope: Ref, state: State) -> Ref:
        """Where ``:=`` binds: in what comprehensions stand in, never in them."""
        while isinstance(scope.address, tuple) and isinstance(scope.address[0], tuple):
            found = state.get(scope)
            if scope.address[0][0] != "comprehension" or not isinstance(found, Scope) or found.parent is None:
                break
            scope = found.parent
        return scope

    def _lambda(self, node: ir.Lambda, state: State, frame: Frame) -> Results:
        return [(s, (ref,)) for s, ref in self._closure(node.function, state, frame)]

    def _opaque(self, node: ir.Opaque, state: State, frame: Frame) -> Results:
        results = self.eval_all(node.parts, state, frame)
        return [(s, unknown("opaque", frame.module, node.ordinal)) for s, _ in results]

    def _slice(self, node: ir.Slice, state: State, frame: Frame) -> Results:
        given = [bound for bound in node.bounds if bound is not None]
        results: Results = []
        for after, values in self.eval_all(given, state, frame):
            rest = iter(values)
            bounds = tuple(() if bound is None else next(rest) for bound in node.bounds)
            results.append((after, as_slice(bounds, unknown("opaque", frame.module, node.ordinal))))
        return results


def _keys_of(node: ir.DictDisplay, values: list[Value]) -> Iterator[Value]:
    """The keys among the values of the parts of a dict that is written out."""
    rest = iter(values)
    for key, _ in node.items:
        first = next(rest)
        if key is not None:
            next(rest)
            yield first


def _is_a_type(value: Value) -> bool:
    """Whether something is certainly a type, which names of libraries need not be."""
    match only(value):
        case Lib(path=path):
            home, _, name = path.rpartition(".")
            return home == "builtins" and (name == "NoneType" or isinstance(getattr(builtins, name, None), type))
        case Ref():
            return True
    return False


def _for_places(right: Value, held: Object | None) -> tuple[Value, ...] | dict[Hashable, Value]:
    """What stands right of the operator % for the places of a text: several values, those under names, or one."""
    if isinstance(held, Dict) and held.exact:
        return held.items
    is_row = isinstance(held, Sequence) and held.kind == "tuple" and held.items is not None and not held.open
    return held.items if is_row and isinstance(held, Sequence) and held.items is not None else (right,)


def _is_zero(value: Value) -> bool:
    number = constant(value)
    return isinstance(number, int | float) and number == 0


def _tensor_of(value: Value) -> Tensor | None:
    for atom in value:
        if isinstance(atom, Tensor) and atom.device.is_gpu:
            return atom
    return None


def _hold_the_same(left: Value, right: Value, state: State) -> bool | None:
    """Whether two containers are equal, as far as that is known."""
    one, two = only(left), only(right)
    if not isinstance(one, Ref) or not isinstance(two, Ref):
        return None
    return operators.hold_the_same(state.get(one), state.get(two))


def _has_for_certain(atom: Atom, key: Value, state: State) -> bool:
    """Whether one of several things that a container may be has a key."""
    held = state.get(mappings.content_of(atom, state) or atom) if isinstance(atom, Ref) else None
    return operators.contains(held, key) is True or _was_put(atom, key, state)


def _was_put(atom: Atom, key: Value, state: State) -> bool:
    """Whether the program put something under a key into something unknown."""
    return bool(unknowns.put_there(atom, item_field(key), state))


def _are_one(op: str, left: Value, right: Value, state: State) -> bool | None:
    """Whether two functions or classes of the program are one, or are not; two of one definition may be either."""
    one, two = only(left), only(right)
    if op not in ("is", "is not", "==", "!=") or not isinstance(one, Ref) or not isinstance(two, Ref):
        return None
    is_positive = op in ("is", "==")
    match state.get(one), state.get(two):
        case ((Closure() | Class()), (Closure() | Class())) if one == two:
            return is_positive
        case Closure(function=first), Closure(function=second) if first is not second:
            return not is_positive
        case Class(module=home, qualname=name), Class(module=other, qualname=its) if (home, name) != (other, its):
            return not is_positive
        case (Closure(), Class()) | (Class(), Closure()):
            return not is_positive
    return None


def _compare_containers(op: str, left: Value, right: Value, state: State) -> bool | None:
    """What is known of a comparison of two sets or views, or of the order of two lists or tuples."""
    one, two = only(left), only(right)
    if not isinstance(one, Ref) or not isinstance(two, Ref):
        return None
    first, second = state.get(one), state.get(two)
    if not isinstance(first, Sequence) or not isinstance(second, Sequence):
        return None
    held = sets.values_of(first), sets.values_of(second)
    if held[0] and held[1] and (newer := versions.row_compared(op, held[0], held[1])) is not None:
        return newer
    if sets.is_like_set(one, first) and sets.is_like_set(two, second):
        return sets.compared(op, *held, state)
    if first.kind != second.kind or first.kind not in ("list", "tuple") or op not in ("<", "<=", ">", ">="):
        return None
    return None if held[0] is None or held[1] is None else sets.in_order(op, held[0], held[1], state)


def _is_beyond_none(link: ir.Expr) -> bool:
    """Whether something is asked for that None has not."""
    return isinstance(link, ir.Attr) and not hasattr(None, link.attr)


def _may_be_none(value: Value) -> bool:
    """Whether something may be None, or one of several known things."""
    return len(value) > 1 and NONE[0] in value and not any(isinstance(atom, Unknown) for atom in value)


def _asks_which(link: ir.Expr, value: Value) -> bool:
    """Whether something that may be one of several objects is asked for what they have without doing anything."""
    if len(value) < 2 or sum(isinstance(atom, Ref) for atom in value) < 2:
        return False
    match link:
        case ir.Attr(attr=attr):
            return attr not in IN_PLACE
        case ir.Sub(index=ir.Const() | ir.Name()):
            return True
    return False
