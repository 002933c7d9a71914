"""What belongs to one process and cannot be sent: it is made where it is used, or left out of what is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import moves, names
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.view import View

# What says of a class how its objects are sent.
_SENDS = ("__getstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__slots__", "slots=True")

# What may look at all attributes of an object.
_LOOKS_AT_ALL = frozenset({"__dict__", "vars", "getattr", "copy", "deepcopy", "dumps", "dump", "attrgetter", "asdict"})
# An attribute and the class of its object, as the machine names what keeps something.
_KEEPS = re.compile(r"`(\w+)` of `(\w+)`")


def made_by_the_worker(case: Case) -> Iterator[Proposal]:
    """``stream = torch.cuda.Stream()`` in the worker's function, which was given one before."""
    made = case.cause_call()
    launch = case.call_at(case.outcome.anchor)
    target = _target(case)
    if made is None or launch is None or target is None or not made[0] is launch[0] is target[0]:
        return
    view, call = made
    name = names.assigned_to(view, call)
    needs = names.read(view, call)
    if name is None or not needs - names.BUILTINS <= view.module_bindings().keys():
        return
    if _uses(view, target[1].name.value) != 1:
        return
    given = _without(view, launch[1], target[1].name.value, name)
    parameter = None if given is None else _parameter(target[1], given[1])
    if given is None or parameter is None or parameter.name.value in needs:
        return
    line = f"{parameter.name.value} = {view.source(call)}"
    changes = [given[0], _without_parameter(view, target[1], parameter), *moves.at_top(view, target[1], [line])]
    yield Proposal(
        f"make `{parameter.name.value}` in the worker that uses it",
        in_file(view, changes),
        doubt="each call of the worker's function then has one of its own",
    )


def left_out(case: Case) -> Iterator[Proposal]:
    """``__getstate__`` without an attribute that the worker does not use."""
    target = _target(case)
    kept = None if target is None else _kept_by_cause(case) or _kept_as_said(case, target[0])
    if target is None or kept is None:
        return
    view, method, attribute = kept
    if any(word in view.text for word in _SENDS) or target[0] is not view or _may_use(view, target[1], attribute):
        return
    indent = view.tree.default_indent
    body = ["state = self.__dict__.copy()", f'del state["{attribute}"]', "return state"]
    added = view.lines_after(method, ["def __getstate__(self):", *(f"{indent}{line}" for line in body)])
    yield Proposal(
        f"leave `{attribute}` out of what is sent, by `__getstate__`",
        in_file(view, [Change(added.start, added.end, view.newline + added.content)]),
        doubt=f"no copy of the object has `{attribute}` then, wherever it is pickled",
    )


def _kept_by_cause(case: Case) -> tuple[View, cst.FunctionDef, str] | None:
    """The attribute that a method sets to what cannot be sent, where it makes that."""
    made = case.cause_call()
    attribute = None if made is None else _attribute_of(*made)
    method = None if made is None else made[0].function(made[1])
    return None if made is None or attribute is None or method is None else (made[0], method, attribute)


def _kept_as_said(case: Case, view: View) -> tuple[View, cst.FunctionDef, str] | None:
    """The attribute of an object that is named as what keeps it, where one method of its class sets that."""
    found = _KEEPS.search(case.outcome.detail)
    if found is None:
        return None
    classes = [n for n in view.each(view.tree, cst.ClassDef) if n.name.value == found[2]]
    calls = (n for cls in classes for n in view.each(cls, cst.Call))
    methods = [view.function(call) for call in calls if _attribute_of(view, call) == found[1]]
    method = methods[0] if len(methods) == 1 else None
    return None if method is None else (view, method, found[1])


def _target(case: Case) -> tuple[View, cst.FunctionDef] | None:
    """The only function that the worker runs."""
    launch = case.launch
    if launch is None or len(launch.targets) != 1:
        return None
    found = case.at(next(iter(launch.targets)))
    return (found[0], found[1]) if found is not None and isinstance(found[1], cst.FunctionDef) else None


def _attribute_of(view: View, call: cst.Call) -> str | None:
    match view.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self"), attr=attr))]):
            return attr.value
    return None


def _uses(view: View, name: str) -> int:
    found = (n for n in view.each(view.tree, cst.Name) if n.value == name)
    return sum(1 for n in found if names.is_variable(view, n) and not isinstance(view.parent(n), cst.FunctionDef))


def _without(view: View, launch: cst.Call, target: str, name: str) -> tuple[Change, int] | None:
    """What a launch gives its function without one thing, and which one that was."""
    argument = view.keyword(launch, "args") or _second(launch)
    if argument is not None and isinstance(argument.value, cst.Tuple):
        return _without_element(view, argument.value, name)
    for call in view.each(launch, cst.Call):
        first = call.args[0].value if call.args else None
        if isinstance(call.func, cst.Call) and [view.source(a.value) for a in call.func.args] == [target]:
            # ``delayed(work)(number, stream)``
            return _without_argument(view, call, 0, name)
        if _is_submit(call) and first is not None and view.source(first) == target:
            return _without_argument(view, call, 1, name)
    return None


def _second(launch: cst.Call) -> cst.Arg | None:
    """``pool.apply(work, (number, stream))``"""
    return launch.args[1] if len(launch.args) > 1 and launch.args[1].keyword is None else None


def _is_submit(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "submit"


def _without_element(view: View, row: cst.Tuple, name: str) -> tuple[Change, int] | None:
    given = [element.value for element in row.elements]
    places = [i for i, value in enumerate(given) if isinstance(value, cst.Name) and value.value == name]
    starred = any(isinstance(element, cst.StarredElement) for element in row.elements)
    if len(places) != 1 or starred:
        return None
    rest = [view.source(value) for i, value in enumerate(given) if i != places[0]]
    text = f"({rest[0]},)" if len(rest) == 1 else f"({', '.join(rest)})"
    return view.replace_whole(row, text), places[0]


def _without_argument(view: View, call: cst.Call, first: int, name: str) -> tuple[Change, int] | None:
    """A call without one argument; its place is told from the ``first`` one that the function is given."""
    places = [i for i, a in enumerate(call.args) if isinstance(a.value, cst.Name) and a.value.value == name]
    if len(places) != 1 or any(a.keyword is not None or a.star for a in call.args):
        return None
    place = places[0]
    gone = call.args[place].value
    if place > 0:
        return Change(view.end(call.args[place - 1].value), view.end(gone), ""), place - first
    end = view.start(call.args[1].value) if len(call.args) > 1 else view.end(gone)
    return Change(view.start(gone), end, ""), place - first


def _parameter(function: cst.FunctionDef, place: int) -> cst.Param | None:
    """A parameter without a default, of a function that has no others but such."""
    parameters = function.params
    plain = not (parameters.kwonly_params or parameters.posonly_params or parameters.star_kwarg)
    if not plain or isinstance(parameters.star_arg, cst.Param) or place >= len(parameters.params):
        return None
    found = parameters.params[place]
    return found if found.default is None else None


def _without_parameter(view: View, function: cst.FunctionDef, gone: cst.Param) -> Change:
    parameters = list(function.params.params)
    place = parameters.index(gone)
    if place + 1 < len(parameters):
        return Change(view.start(gone), view.start(parameters[place + 1]), "")
    if place > 0:
        return Change(view.end(parameters[place - 1]), view.end(gone), "")
    return Change(view.start(gone), view.end(gone), "")


def _may_use(view: View, target: cst.FunctionDef, attribute: str) -> bool:
    """Whether a function, or one of the file that it may call by its name, asks for an attribute of that name."""
    functions: dict[str, list[cst.FunctionDef]] = {}
    for node in view.inside(view.tree):
        if isinstance(node, cst.FunctionDef):
            functions.setdefault(node.name.value, []).append(node)
    seen: list[cst.FunctionDef] = []
    left = [target]
    while left:
        function = left.pop()
        if function in seen:
            continue
        seen.append(function)
        named = {n.value for n in view.each(function.body, cst.Name)}
        if attribute in named or named & _LOOKS_AT_ALL:
            return True
        left.extend(other for name in named for other in functions.get(name, ()))
    return False
