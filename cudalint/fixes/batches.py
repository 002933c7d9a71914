"""Batches that workers put on the GPU: they stay on the CPU there, and the loop moves them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import names
from cudalint.fixes.edits import Change
from cudalint.fixes.loaders import dotted_attribute
from cudalint.fixes.moved import Form, Function, Moved, moves_of, results_of, without_call
from cudalint.fixes.proposal import Case, Proposal, in_files
from cudalint.fixes.view import View, dotted
from cudalint.structs import Frozen

_ELSEWHERE = "whatever else takes samples from this dataset or collate function then gets them on the CPU"
_COMPUTED = "what the workers computed on the GPU they then compute on the CPU"
# Methods by which a loader takes samples from a dataset and collates them, whatever the object is called.
_OF_OBJECTS = frozenset({"__getitem__", "__iter__", "__call__"})


class _Loop(Frozen):
    """A loop or comprehension that takes batches of a loader, which has these names."""

    view: View
    node: cst.For | cst.CompFor
    loader: frozenset[str]


def move_in_loop(case: Case) -> Iterator[Proposal]:
    """Let the workers make CPU batches, and move each batch in the loop, from pinned memory."""
    last = case.call_at(case.outcome.effect[-1].site) if case.outcome.effect else None
    loader = case.call_at(case.outcome.anchor)
    if last is None or loader is None:
        return
    view, move = last
    function = next((n for n in view.around(move) if isinstance(n, Function)), None)
    if function is None or not _is_workers_own(view, function, *loader):
        return
    pinned = _pinned(*loader)
    if dotted_attribute(move) == "pin_memory":
        yield Proposal(
            "pin the batches in the main process: `pin_memory=True` on the loader",
            in_files([(view, without_call(view, move)), *pinned]),
            doubt="each batch is then pinned after it is collated, not each sample",
        )
        return
    if _serves_others(view, function, loader[0]):
        return
    moves = moves_of(view, function)
    moved = results_of(view, function, [m for m, _ in moves])
    if moved is None or move not in [m for m, _ in moves]:
        return
    for loop in _loops(case, loader):
        loops = [loop, *_others(loop, loader[0])]
        inside = [(one.view, change) for one in loops if (change := _in_loop(one, moved, view, loader)) is not None]
        if len(inside) == len(loops):
            yield Proposal(
                f"let the workers stay on the CPU, and move each batch in the loop{'s' if len(loops) > 1 else ''}",
                in_files([*((view, c) for _, c in moves), *inside, *pinned]),
                doubt=f"{_ELSEWHERE}; {_COMPUTED}" if moved.computed else _ELSEWHERE,
            )


def _pinned(view: View, loader: cst.Call) -> list[tuple[View, Change]]:
    if view.keyword(loader, "pin_memory") is not None:
        return []
    return [(view, change) for change in view.with_keyword(loader, "pin_memory", "True")]


def _serves_others(view: View, function: Function, home: View) -> bool:
    """Whether more than one loader is seen to take what a function makes: another loop would get it on the CPU."""
    if isinstance(function, cst.Lambda):
        return False
    if function.name.value not in _OF_OBJECTS:
        named = [n for v in {id(o): o for o in (view, home)}.values() for n in v.inside(v.tree)]
        uses = [n for n in named if isinstance(n, cst.Name) and n.value == function.name.value]
        return len([n for n in uses if n is not function.name and not _is_imported(home, n)]) > 1
    return sum(dotted_attribute(call) == "DataLoader" for call in home.calls()) > 1


def _is_imported(view: View, name: cst.Name) -> bool:
    return isinstance(view.parent(name), cst.ImportAlias)


def _is_workers_own(home: View, function: Function, view: View, loader: cst.Call) -> bool:
    """``__getitem__`` and ``__iter__`` of the dataset, and the loader's collate function, or object that is called."""
    collate = view.keyword(loader, "collate_fn")
    if isinstance(function, cst.Lambda):
        return collate is not None and collate.value is function
    if function.name.value in ("__getitem__", "__iter__"):
        return True
    if collate is None:
        return False
    if function.name.value == "__call__":
        return _is_made_of(home, function, view, collate.value, loader)
    return dotted(collate.value).rpartition(".")[2] == function.name.value


def _is_made_of(home: View, node: cst.CSTNode, view: View, value: cst.BaseExpression, place: cst.CSTNode) -> bool:
    """Whether a value is an object of the class around a node, made where it stands or where its name is bound."""
    cls = _class_around(home, node)
    if isinstance(value, cst.Name):
        made = names.definition(view, value.value, place)
        value = value if made is None else made.value
    return cls is not None and isinstance(value, cst.Call) and dotted(value.func).rpartition(".")[2] == cls.name.value


def _class_around(view: View, node: cst.CSTNode) -> cst.ClassDef | None:
    return next((n for n in view.around(node) if isinstance(n, cst.ClassDef)), None)


# -- the loop that takes it --------------------------------------------------------------------------------------


def _loops(case: Case, loader: tuple[View, cst.Call]) -> Iterator[_Loop]:
    """The loop that takes the batches."""
    found = case.at(case.outcome.launch[-1].site) if case.outcome.launch else None
    if found is None:
        return
    view, iterated = found
    bound = _bound(*loader)
    for around in (iterated, *view.around(iterated)):
        if isinstance(around, cst.For) and isinstance(around.body, cst.IndentedBlock):
            if iterated in view.inside(around.iter):
                yield _Loop(view, around, bound)
            return
        comprehension = around.for_in if isinstance(around, cst.BaseSimpleComp) else around
        if isinstance(comprehension, cst.CompFor):
            yield _Loop(view, comprehension, bound)
            return


def _bound(view: View, loader: cst.Call) -> frozenset[str]:
    """The names that a loader is given where it is made."""
    assigned = (n for n in view.each(view.tree, cst.Assign) if n.value is loader)
    return frozenset(dotted(t.target) for n in assigned for t in n.targets) - {""}


def _others(loop: _Loop, home: View) -> Iterator[_Loop]:
    """The other loops of a file over what is called the same, where there is only one loader that can be meant."""
    views = {id(view): view for view in (loop.view, home)}.values()
    name = _iterated(loop)
    if not name or sum(dotted_attribute(call) == "DataLoader" for view in views for call in view.calls()) > 1:
        return
    for node in loop.view.inside(loop.view.tree):
        if not isinstance(node, cst.For | cst.CompFor) or node is loop.node:
            continue
        other = _Loop(loop.view, node, loop.loader)
        if _iterated(other) == name and (isinstance(node, cst.CompFor) or isinstance(node.body, cst.IndentedBlock)):
            yield other


def _iterated(loop: _Loop) -> str:
    """What a loop goes through, by its name; ``enumerate(loader)`` goes through ``loader``."""
    return dotted(_taken(loop)[0])


_Target = cst.BaseExpression | None


def _taken(loop: _Loop) -> tuple[cst.BaseExpression, _Target]:
    """What gives the batches, and what a batch is bound to: of ``for i, batch in enumerate(loader)`` the second."""
    return _inside_of(loop.node.iter, loop.node.target, loop)


def _inside_of(source: cst.BaseExpression, target: _Target, loop: _Loop) -> tuple[cst.BaseExpression, _Target]:
    """The same of a part: each batch is bound together with a number, or with what else is gone through."""
    match source:
        case cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=inner), *_]):
            return _inside_of(inner, _element(target, 1, 2), loop)
        case cst.Call(func=cst.Name(value="zip"), args=args):
            found = [i for i, arg in enumerate(args) if _is_of_loader(arg, loop)]
            if len(found) != 1 or any(
                arg.star or (arg.keyword is not None and i == found[0]) for i, arg in enumerate(args)
            ):
                return source, None
            several = sum(arg.keyword is None for arg in args)
            return _inside_of(args[found[0]].value, _element(target, found[0], several), loop)
        case cst.Call(args=[cst.Arg(value=cst.Call(func=cst.Name(value="enumerate" | "zip")) as inner), *_]):
            # A bar that shows how far the loop is.
            return _inside_of(inner, target, loop)
    return source, target


def _element(target: _Target, place: int, several: int) -> _Target:
    """What of a loop's target is bound to one of several values; None where that is not seen."""
    if not isinstance(target, cst.Tuple | cst.List) or len(target.elements) != several:
        return None
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        return None
    return target.elements[place].value


def _is_of_loader(arg: cst.Arg, loop: _Loop) -> bool:
    """Whether an argument is the loader, or is made of it."""
    return any(
        isinstance(node, cst.Name | cst.Attribute) and dotted(node) in loop.loader
        for node in loop.view.inside(arg.value)
    )


def _in_loop(loop: _Loop, moved: Moved, view: View, loader: tuple[View, cst.Call]) -> Change | None:
    """What moves a batch in the loop; None where the shapes differ."""
    target = _batch(loop)
    devices = {place: _device_in_loop(view, move, loop, loader) for place, move in moved.parts}
    if target is None or not all(devices.values()):
        return None
    ways = {place: device for place, device in devices.items() if device is not None}
    if isinstance(loop.node, cst.CompFor):
        return _in_comprehension(loop, target, moved, ways)
    line = _statement(target, moved, ways)
    return None if line is None else loop.view.lines_before(loop.node.body.body[0], [line])


def _in_comprehension(loop: _Loop, target: cst.CSTNode, moved: Moved, ways: dict[str, str]) -> Change | None:
    """The batches of a comprehension, moved one by one before it takes them."""
    source = _taken(loop)[0]
    if not isinstance(source, cst.Name | cst.Attribute | cst.Call) or loop.node.asynchronous is not None:
        return None
    if moved.form is not Form.WHOLE or not isinstance(target, cst.Name):
        return None
    name = target.value
    return loop.view.replace_whole(source, f"({name}{ways['']} for {name} in {loop.view.source(source)})")


def _statement(target: cst.CSTNode, moved: Moved, ways: dict[str, str]) -> str | None:
    """The statement that moves what a loop's target holds."""
    several = _names(target) if isinstance(target, cst.Tuple | cst.List) else []
    whole = target.value if isinstance(target, cst.Name) else None
    match moved.form:
        case Form.WHOLE if whole is not None:
            return f"{whole} = {whole}{ways['']}"
        case Form.KEYS if whole is not None:
            return f"{whole} = {{**{whole}, {', '.join(f'{k}: {whole}[{k}]{way}' for k, way in ways.items())}}}"
        case Form.EACH if whole is not None:
            part = "part" if whole != "part" else "one"
            return f"{whole} = [{part}{ways['']} for {part} in {whole}]"
        case Form.EACH if several:
            return f"{', '.join(several)} = {', '.join(f'{n}{ways[str()]}' for n in several)}"
        case Form.PARTS if len(several) == moved.count:
            pairs = [(several[int(place)], way) for place, way in ways.items()]
            return f"{', '.join(n for n, _ in pairs)} = {', '.join(f'{n}{way}' for n, way in pairs)}"
        case Form.PARTS if whole is not None:
            parts = [f"{whole}[{i}]{ways.get(str(i), '')}" for i in range(moved.count)]
            return f"{whole} = ({', '.join(parts)}{',' if moved.count == 1 else ''})"
    return None


def _names(target: cst.Tuple | cst.List) -> list[str]:
    found = [e.value.value for e in target.elements if isinstance(e, cst.Element) and isinstance(e.value, cst.Name)]
    return found if len(found) == len(target.elements) else []


def _batch(loop: _Loop) -> cst.Name | cst.Tuple | cst.List | None:
    """What a batch is bound to, where that is one name or several."""
    source, target = _taken(loop)
    is_plain = isinstance(source, cst.Name | cst.Attribute | cst.Call)
    return target if is_plain and isinstance(target, cst.Name | cst.Tuple | cst.List) else None


def _device_in_loop(view: View, move: cst.Call, loop: _Loop, loader: tuple[View, cst.Call]) -> str | None:
    """The call that moves a batch in the loop to the device that a worker moved it to."""
    if dotted_attribute(move) == "cuda" and not move.args:
        return ".cuda(non_blocking=True)"
    device = view.keyword(move, "device") or (move.args[0] if move.args else None)
    if device is None or (len(move.args) != 1 and view.keyword(move, "device") is None):
        return None
    value = device.value
    last = dotted(value).rpartition(".")[2]
    if isinstance(value, cst.SimpleString):
        return f".to({view.source(value)}, non_blocking=True)"
    if last and names.known_at(loop.view, frozenset({last}), loop.node):
        return f".to({last}, non_blocking=True)"
    if _is_of_one_object(view, value, loop):
        return f".to({view.source(value)}, non_blocking=True)"
    kept = _of_dataset(view, value, loop, *loader)
    return None if kept is None else f".to({kept}, non_blocking=True)"


def _is_of_one_object(view: View, value: cst.BaseExpression, loop: _Loop) -> bool:
    """Whether ``self.device`` in one method is that of the loop, which stands in another of the same class."""
    cls = _class_around(view, value)
    if view is not loop.view or cls is None or cls is not _class_around(view, loop.node):
        return False
    first = [names.parameters(f)[:1] for f in (view.function(value), view.function(loop.node)) if f is not None]
    return len(first) == 2 and first[0] == first[1] != [] and dotted(value).startswith(f"{first[0][0]}.")


def _of_dataset(view: View, value: cst.BaseExpression, loop: _Loop, home: View, loader: cst.Call) -> str | None:
    """``self.device`` of the dataset, or of what collates, as the loop can write it: ``loader.dataset.device``."""
    iterated = _iterated(loop)
    if not dotted(value).startswith("self.") or not iterated or not loader.args:
        return None
    dataset, collate = loader.args[0], home.keyword(loader, "collate_fn")
    for given, name in ((dataset, "dataset"), (collate, "collate_fn")):
        if given is not None and _is_made_of(view, value, home, given.value, loader):
            return f"{iterated}.{name}.{dotted(value).partition('.')[2]}"
    return None
