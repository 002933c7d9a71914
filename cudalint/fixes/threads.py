"""Threads that use a device which another thread selected: they select it as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from cudalint.fixes import imports, layout, moves, names
from cudalint.fixes.edits import Change
from cudalint.fixes.loaders import dotted_attribute
from cudalint.fixes.proposal import Case, Proposal, in_file, in_files
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind

_THEN = "the thread then works on that GPU, where it worked on GPU 0"
_ALL = f"{_THEN}, and so does any other that runs this"
_HANDING = frozenset(
    {"Thread", "submit", "map", "imap", "imap_unordered", "apply", "apply_async", "to_thread", "run_in_executor"}
)
_WORDS = ("device", "gpu", "cuda_device")


def select_in_threads(case: Case) -> Iterator[Proposal]:
    """Select the device in the pool's threads as well, or at the beginning of what the thread runs.

    What the program calls the device comes first, then what is the current one where the thread is made; the number
    that it was seen to be is the last resort.
    """
    if case.outcome.kind is Kind.CONTEXT_OF_THREAD:
        yield Proposal(
            "push the context where the thread begins, and pop it at its end, or make one there",
            {},
            doubt="which context the thread is to use is not known",
            shown=True,
        )
        return
    chosen = case.cause_call()
    if chosen is None or not chosen[1].args:
        return
    home, selection = chosen
    yield from _by_initializer(case, home, selection)
    target = _thread_function(case)
    if target is not None:
        yield from _by_its_name(home, selection, *target)
        yield from _handed_over(case, home, selection, *target)
        yield from _kept_in_the_thread(case, *target)
        yield from _by_number(case, home, selection, *target)
    yield Proposal(
        "hand the device to the thread and select it there, or name it in full (`cuda:1`)",
        {},
        doubt="the thread's function does not know the device",
        shown=True,
    )


def _by_initializer(case: Case, home: View, selection: cst.Call) -> Iterator[Proposal]:
    found = case.call_at(case.outcome.anchor)
    if found is None or not isinstance(found[1].func, cst.Attribute) or found[0] is not home:
        return
    view, call = found
    assert isinstance(call.func, cst.Attribute)
    for pool in names.made_for(view, view.source(call.func.value)):
        if view.keyword(pool, "initializer") is not None:
            continue
        value = selection.args[0].value
        if not names.known_at(view, names.read(view, value), pool) or not _same_reach(view, selection, pool):
            continue
        given = {"initializer": view.source(selection.func), "initargs": f"({view.source(value)},)"}
        yield Proposal(
            "select the device in each of the pool's threads",
            in_file(view, _with_keywords(view, pool, given)),
            doubt="the work then runs on that GPU, where it ran on GPU 0",
        )


def _same_reach(view: View, selection: cst.Call, place: cst.Call) -> bool:
    """Whether the argument means the same at both calls: one scope, or names of the module only."""
    used = names.read(view, selection.args[0].value)
    scope = names.scope_of(view, selection)
    return names.scope_of(view, place) is scope or names.global_names(view, used, scope)


def _with_keywords(view: View, call: cst.Call, given: Mapping[str, str]) -> list[Change]:
    if call.args:
        return [change for name, value in given.items() for change in view.with_keyword(call, name, value)]
    at = view.end(call) - 1
    return [Change(at, at, ", ".join(f"{name}={value}" for name, value in given.items()))]


# -- the thread's function -----------------------------------------------------------------------------------


def _by_its_name(home: View, selection: cst.Call, view: View, target: cst.FunctionDef) -> Iterator[Proposal]:
    """The selection itself, where all that it reads means the same in the thread's function."""
    for text in _selections_there(home, selection, view, target) if view is home else ():
        yield _selecting(view, moves.at_top(view, target, [text]), _ALL)


def _selecting(view: View, changes: list[Change], doubt: str) -> Proposal:
    message = "select the device at the beginning of what the thread runs"
    return Proposal(message, in_file(view, changes), doubt=doubt)


def _selections_there(home: View, selection: cst.Call, view: View, target: cst.FunctionDef) -> Iterator[str]:
    used = names.read(home, selection)
    own = names.scope_of(home, selection)
    is_kept = isinstance(own, cst.FunctionDef) and own in list(view.around(target)) and _is_bound_once(home, own, used)
    if is_kept or names.global_names(home, used, own):
        yield home.source(selection)
        return
    if not isinstance(own, cst.FunctionDef) or _class_of(view, own) is None:
        return
    taken = names.parameters(own)[:1]
    if not taken or _class_of(view, own) is not _class_of(view, target) or taken != names.parameters(target)[:1]:
        return
    (this,) = taken
    value = selection.args[0].value
    if used - {this} and not names.global_names(home, used - {this}, own):
        for kept in _kept_as(home, own, this, value):
            yield f"{home.source(selection.func)}({kept})"
    elif dotted(value).startswith(f"{this}."):
        yield home.source(selection)


def _is_bound_once(view: View, scope: cst.FunctionDef, read: Iterable[str]) -> bool:
    """Whether names have one value in a function: they are bound once."""
    bound = [n for n, _ in names.bindings(view, scope)] + names.parameters(scope)
    return all(bound.count(name) <= 1 for name in read)


def _class_of(view: View, function: cst.FunctionDef) -> cst.CSTNode | None:
    """The class that a function is a method of."""
    block = view.parent(function)
    above = None if block is None else view.parent(block)
    return above if isinstance(above, cst.ClassDef) else None


def _kept_as(view: View, function: cst.FunctionDef, this: str, value: cst.BaseExpression) -> Iterator[str]:
    """Attributes of the object in which its method keeps a value."""
    for node in view.inside(function.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value=owner)) as kept)]):
                if owner == this and dotted(value) and view.source(node.value) == view.source(value):
                    yield view.source(kept)


# -- the device as an argument ---------------------------------------------------------------------------------


def _handed_over(
    case: Case, home: View, selection: cst.Call, view: View, target: cst.FunctionDef
) -> Iterator[Proposal]:
    """A parameter more for the thread's function, bound where the function is handed to threads."""
    if target.decorators or target.params.star_kwarg is not None:
        return
    uses = _uses(case, view, target)
    calls = [_given_to(place, use) for place, use in uses]
    if not any(calls) or not all(calls):
        return
    value = selection.args[0].value
    word = dotted(value).rpartition(".")[2]
    for named in (True, False) if _is_plainly_called(case) else (True,):
        ways = [
            _value_at(home, value, place, call) if named else _current(place, use)
            for (place, use), call in zip(uses, calls, strict=True)
            if call is not None
        ]
        name = next((w for w in ((word, *_WORDS) if named else _WORDS) if w and not _has(view, target, w)), None)
        if name is not None and all(ways):
            changes = [c for u, w in zip(uses, ways, strict=True) if w is not None for c in _binding(*u, name, w)]
            select = imports.torch_cuda(view, "set_device", target.body)
            changes += [(view, c) for c in moves.at_top(view, target, [f"{select.text}({name})"])]
            changes += [(view, c) for c in (layout.with_keyword_only(view, target, (name,)), *select.changes)]
            message = "hand the device to the thread, and select it there"
            yield Proposal(message, in_files(dict.fromkeys(changes)), doubt=_THEN if len(uses) == 1 else _ALL)


def _is_plainly_called(case: Case) -> bool:
    """Whether calls alone lead to the selection: then it counts where they come from, and in no other thread."""
    for hop in case.outcome.cause[:-1]:
        found = case.call_at(hop.site)
        name = "" if found is None else dotted(found[1].func).rpartition(".")[2]
        if hop.message not in (f"calls {name}()", "calls __init__()"):
            return False
    return True


def _given_to(view: View, use: cst.CSTNode) -> cst.Call | None:
    """The call that hands a function to a thread."""
    argument = view.parent(use)
    call = view.parent(argument) if isinstance(argument, cst.Arg) else None
    return call if isinstance(call, cst.Call) and dotted_attribute(call) in _HANDING else None


def _value_at(home: View, value: cst.BaseExpression, place: View, call: cst.Call) -> imports.Spelling | None:
    """The selected device as the program writes it, where that means the same at another call."""
    used, own = names.read(home, value), names.scope_of(home, value)
    if place is not home or not (names.scope_of(place, call) is own or names.global_names(home, used, own)):
        return None
    return imports.Spelling(home.source(value)) if names.known_at(place, used, call) else None


def _current(place: View, use: cst.CSTNode) -> imports.Spelling:
    current = imports.torch_cuda(place, "current_device", use)
    return imports.Spelling(f"{current.text}()", current.changes)


def _binding(place: View, use: cst.CSTNode, name: str, value: imports.Spelling) -> Iterator[tuple[View, Change]]:
    """A function with the device bound to it."""
    partial = imports.member(place, "functools", "partial", use)
    bound = place.replace(use, f"{partial.text}({place.source(use)}, {name}={value.text})")
    yield from ((place, change) for change in (bound, *partial.changes, *value.changes))


def _uses(case: Case, view: View, target: cst.FunctionDef) -> list[tuple[View, cst.CSTNode]]:
    """Where the files of the program that name a function do so, but for its definition."""
    found: list[tuple[View, cst.CSTNode]] = []
    name = target.name.value
    for module, source in case.basis.files.sources.items():
        if name not in source.text:
            continue
        other = view if module == view.name else case.view(module)
        for node in () if other is None else other.inside(other.tree):
            if isinstance(node, cst.Name) and node.value == name and node is not target.name:
                above = other.parent(node) if other is not None else None
                whole = above if isinstance(above, cst.Attribute) and above.attr is node else node
                if other is not None and not isinstance(above, cst.ImportAlias):
                    found.append((other, whole))
    return found


def _has(view: View, function: cst.FunctionDef, name: str) -> bool:
    return any(isinstance(n, cst.Name) and n.value == name for n in view.inside(function))


def _kept_in_the_thread(case: Case, view: View, target: cst.FunctionDef) -> Iterator[Proposal]:
    """A subclass of ``Thread`` keeps the device that is the current one where it is made."""
    cls = _class_of(view, target)
    if (
        target.name.value != "run"
        or not _is_plainly_called(case)
        or not isinstance(cls, cst.ClassDef)
        or not isinstance(cls.body, cst.IndentedBlock)
    ):
        return
    made = [s for s in cls.body.body if isinstance(s, cst.FunctionDef) and s.name.value == "__init__"]
    name = next((w for w in _WORDS if w not in view.names()), None)
    if len(made) != 1 or name is None or not (names.parameters(made[0]) and names.parameters(target)):
        return
    current = imports.torch_cuda(view, "current_device", made[0].body)
    select = imports.torch_cuda(view, "set_device", target.body)
    kept = moves.at_top(view, made[0], [f"{names.parameters(made[0])[0]}.{name} = {current.text}()"])
    selected = moves.at_top(view, target, [f"{select.text}({names.parameters(target)[0]}.{name})"])
    changes = dict.fromkeys([*kept, *selected, *current.changes, *select.changes])
    yield _selecting(view, list(changes), _ALL)


def _by_number(case: Case, home: View, selection: cst.Call, view: View, target: cst.FunctionDef) -> Iterator[Proposal]:
    """The number that the device was seen to have."""
    index = case.outcome.detail
    if not index:
        return
    scope = names.scope_of(home, selection)
    select = imports.torch_cuda(view, "set_device", target.body)
    if view is home and names.global_names(home, names.read(home, selection.func), scope):
        select = imports.Spelling(home.source(selection.func))
    changes = [*moves.at_top(view, target, [f"{select.text}({index})"]), *select.changes]
    doubt = _ALL
    if not isinstance(selection.args[0].value, cst.Integer):
        value = home.source(selection.args[0].value)
        doubt += f"; {index} is the number that was seen, and `{value}` may be another"
    yield _selecting(view, changes, doubt)


def _thread_function(case: Case) -> tuple[View, cst.FunctionDef] | None:
    """The function that the thread runs: where the step after its start stands."""
    effect, launch = case.outcome.effect, case.outcome.launch
    if not launch:
        return None
    started = [i for i, hop in enumerate(effect) if hop.site == launch[-1].site]
    if not started or started[-1] + 1 >= len(effect):
        return None
    found = case.at(effect[started[-1] + 1].site)
    function = None if found is None else found[0].function(found[1])
    return None if found is None or function is None else (found[0], function)
