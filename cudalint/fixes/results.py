"""Results that tasks put on the GPU last: workers leave them on the CPU, and the process that takes them moves them.

So no worker needs CUDA, which spawned ones would open a context each for, and no result lies in memory of a worker that
ends before it. joblib's workers send results through the memory of the host in any case.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import names
from cudalint.fixes.arriving import arrivals_of
from cudalint.fixes.edits import Change
from cudalint.fixes.loaders import dotted_attribute
from cudalint.fixes.moved import Form, Moved, given_back, moves_of, results_of
from cudalint.fixes.proposal import Case, Proposal, in_files
from cudalint.fixes.view import View, dotted

# Methods that give a list of results, those that give them one by one, and those that give one.
_LISTS = frozenset({"map", "starmap"})
_ITERATORS = frozenset({"imap", "imap_unordered"})
_ONE = frozenset({"apply"})
# Those that give a list of results, or one, to whoever asks for it later.
_LISTS_LATER = frozenset({"map_async", "starmap_async"})
_ONE_LATER = frozenset({"apply_async", "submit"})
# How a result is called where it is moved, unless the device is called so.
_NAMES = ("result", "moved")


def move_in_parent(case: Case) -> Iterator[Proposal]:
    """Let the workers give CPU results, and move them where they arrive."""
    launch, place = case.launch, case.place_of_launch
    found = None if place is None else case.call_at(place)
    if launch is None or found is None or len(launch.targets) != 1 or launch.ends:
        # A worker hands over the memory in which tensors on the CPU lie, and may have ended by then.
        return
    target = case.at(launch.targets[0])
    if target is None or not isinstance(function := target[1], cst.FunctionDef):
        return
    (view, call), home = found, target[0]
    moves = moves_of(home, function)
    moved = results_of(home, function, [move for move, _ in moves])
    if moved is None or moved.computed or not _keeps_kind(home, function) or _serves_others(home, function, view):
        return
    ways = {part: way for part, move in moved.parts if (way := _way(home, move, view, call)) is not None}
    arrived = _arrived(view, call, launch.family, moved, ways) if len(ways) == len(moved.parts) else []
    if arrived:
        name = function.name.value
        yield Proposal(
            "let the workers stay on the CPU, and move what they give where it arrives",
            in_files([*((home, change) for _, change in moves), *((view, change) for change in arrived)]),
            doubt=f"whatever else calls `{name}()` then gets it on the CPU, and one process moves all results",
        )


def _keeps_kind(home: View, function: cst.FunctionDef) -> bool:
    """Whether what is made of the moved parts is of the kind that the function gives: several are a tuple."""
    value = given_back(home, function)
    is_made = isinstance(value, cst.Call) and dotted(value.func) in ("tuple", "list")
    return not isinstance(value, cst.List) and not is_made


def _serves_others(home: View, function: cst.FunctionDef, view: View) -> bool:
    """Whether more than the launch is seen to use a function: who calls it elsewhere would get it on the CPU."""
    name = function.name.value
    views = {id(one): one for one in (home, view)}.values()
    uses = [
        node
        for one in views
        for node in one.inside(one.tree)
        if isinstance(node, cst.Name) and node.value == name and not isinstance(one.parent(node), cst.ImportAlias)
    ]
    return len([node for node in uses if node is not function.name]) > 1


def _way(home: View, move: cst.Call, view: View, call: cst.Call) -> str | None:
    """The call that moves a result where it arrives, to the device that the worker moved it to."""
    if dotted_attribute(move) == "cuda":
        return ".cuda()" if not move.args else None
    device = home.keyword(move, "device") or (move.args[0] if len(move.args) == 1 else None)
    if device is None:
        return None
    text = home.source(device.value)
    if isinstance(device.value, cst.SimpleString):
        return f".to({text})"
    is_known = isinstance(device.value, cst.Name) and home is view and names.known_at(view, frozenset({text}), call)
    return f".to({text})" if is_known and _is_of_module(home, text, move) else None


def _is_of_module(view: View, name: str, node: cst.CSTNode) -> bool:
    """Whether a name means the same in a function and where the launch stands: a variable of the module."""
    bound = (each for each, _ in names.bindings(view, view.function(node) or view.tree))
    function = view.function(node)
    parameters = set() if function is None else set(names.parameters(function))
    return name not in parameters and name not in set(bound)


def _arrived(view: View, call: cst.Call, family: str, moved: Moved, ways: dict[str, str]) -> list[Change]:
    """What moves the results of a launch, as the value that stands there now."""
    method = dotted_attribute(call)
    name = next(one for one in _NAMES if not any(f"({one})" in way for way in ways.values()))
    each = _of_one(name, moved, ways)
    if each is None:
        return []
    target, value = each
    if family == "pool" and method in _LISTS:
        return view.around_text(call, f"[{value} for {target} in ", "]")
    if (family == "pool" and method in _ITERATORS) or (family == "executor" and method == "map"):
        lead, tail = ("", "") if _is_only_argument(view, call) else ("(", ")")
        return view.around_text(call, f"{lead}{value} for {target} in ", tail)
    if family == "pool" and method in _ONE:
        return _in_place(view, call, moved, ways)
    if view.keyword(call, "callback") is not None:
        # It is given what the workers gave.
        return []
    if method in _LISTS_LATER:
        asked = arrivals_of(view, call)
        return [change for each in asked for change in view.around_text(each, f"[{value} for {target} in ", "]")]
    if method in _ONE_LATER:
        changes = [_in_place(view, each, moved, ways) for each in arrivals_of(view, call)]
        return [change for each in changes for change in each] if all(changes) else []
    return []


def _in_place(view: View, call: cst.Call, moved: Moved, ways: dict[str, str]) -> list[Change]:
    """What moves the one result that a call gives, as the value that stands there now."""
    if moved.form is Form.WHOLE:
        return [view.after(call, ways[""])]
    if moved.form is Form.EACH:
        return view.around_text(call, f"[part{ways['']} for part in ", "]")
    used = {node.value for node in view.each(view.tree, cst.Name)}
    name = next((one for one in _NAMES if one not in used), None)
    each = None if name is None else _of_one(name, moved, ways)
    # A name is bound where such an expression may stand.
    is_barred = any(isinstance(node, cst.ClassDef | cst.CompFor | cst.Lambda) for node in view.around(call))
    if name is None or each is None or is_barred:
        return []
    # The first time that it is named, it is what the call gives.
    lead, tail = each[1].split(name, 1)
    return view.around_text(call, f"{lead}({name} := ", f"){tail}")


def _is_only_argument(view: View, call: cst.Call) -> bool:
    """Whether a call is all that another one is given, whose parentheses are those of a generator then."""
    argument = view.parent(call)
    outer = None if argument is None else view.parent(argument)
    return isinstance(argument, cst.Arg) and isinstance(outer, cst.Call) and len(outer.args) == 1


def _of_one(name: str, moved: Moved, ways: dict[str, str]) -> tuple[str, str] | None:
    """What one result is bound to, and what it is when its parts have been moved."""
    match moved.form:
        case Form.WHOLE:
            return name, f"{name}{ways['']}"
        case Form.EACH:
            return name, f"[part{ways['']} for part in {name}]"
        case Form.KEYS:
            entries = ", ".join(f"{key}: {name}[{key}]{way}" for key, way in ways.items())
            return name, f"{{**{name}, {entries}}}"
        case Form.PARTS if moved.count > 1:
            parts = [f"{name}[{i}]{ways.get(str(i), '')}" for i in range(moved.count)]
            return name, f"({', '.join(parts)})"
    return None
