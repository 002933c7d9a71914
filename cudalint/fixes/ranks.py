"""Ranks: a device of their own, first; and a place to meet."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout, moves, names
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proposal, Repair, in_file
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind

_MEETING = (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500"))
_EARLY = "selecting the device initialises CUDA earlier than before"
_OWN_GPU = "where each rank is given one visible GPU by its launcher, there is no GPU of that number"
_TORCHRUN = "torchrun sets LOCAL_RANK; a launcher that does not would make this fail"
_LOCAL_RANK = "LOCAL_RANK"
# What launchers call it; mpirun's names end alike.
_LOCAL_RANKS = (_LOCAL_RANK, "SLURM_LOCALID", "MPI_LOCALRANKID")


def select_first(case: Case) -> Iterator[Proposal]:
    """Move ``set_device`` above the call that needs it, where its argument is known there."""
    for view, node in _needing(case):
        for call in _selections(view):
            if not _is_after(view, call, node):
                continue
            for changes in _moved(view, call, node):
                yield Proposal("select the device first", in_file(view, changes), doubt=_EARLY)


def _needing(case: Case) -> Iterator[tuple[View, cst.CSTNode]]:
    """What must come after the choice: the call that needs it, and the calls that lead there, inner ones first."""
    outcome = case.outcome
    legs = (outcome.cause, outcome.effect) if outcome.cause else (outcome.effect,)
    sites = [] if outcome.cause else [outcome.anchor]
    sites += [hop.site for leg in legs for hop in reversed(leg)]
    seen: set[object] = set()
    for site in sites:
        found = case.at(site)
        if found is None or site in seen:
            continue
        seen.add(site)
        yield found
        if site == outcome.anchor:
            yield from ((found[0], call) for call in _callers(*found))


def _callers(view: View, node: cst.CSTNode) -> Iterator[cst.Call]:
    """Calls of the file that, by their name, run the function around a node."""
    function = view.function(node)
    if function is None:
        return
    for call in view.calls():
        if dotted(call.func).rpartition(".")[2] == function.name.value:
            yield call


def _selections(view: View) -> Iterator[cst.Call]:
    return (c for c in view.calls() if dotted(c.func).rpartition(".")[2] == "set_device" and c.args)


def _is_after(view: View, call: cst.Call, node: cst.CSTNode) -> bool:
    return view.function(call) is view.function(node) and view.start(call) > view.start(node)


def _moved(view: View, call: cst.Call, node: cst.CSTNode) -> Iterator[list[Change]]:
    statement = _with_its_condition(view, call, node)
    if statement is None or not names.is_plain(view, call.args[0].value):
        return
    if layout.has_own_rows(view, statement):
        changes = moves.moved_up(view, statement, node) if _may_come_first(view, statement) else []
        if changes:
            yield changes
    elif isinstance(statement, cst.SimpleStatementLine) and names.known_at(view, names.read(view, call), node):
        yield moves.inserted_before(view, node, [view.source(call)])


def _with_its_condition(view: View, call: cst.Call, node: cst.CSTNode) -> cst.BaseStatement | None:
    """The statement of a choice, or the condition around it that holds nothing else; None where one would be lost.

    A condition may be what keeps a run without a GPU from choosing one.
    """
    statement = view.statement(call)
    while statement is not None:
        block = view.parent(statement)
        around = None if block is None else view.parent(block)
        if not isinstance(block, cst.IndentedBlock) or isinstance(around, cst.FunctionDef | cst.ClassDef):
            return statement
        if around is None or node in view.inside(around):
            return statement
        if not isinstance(around, cst.If) or len(block.body) > 1 or _is_other_branch(view, around):
            return None
        statement = around
    return None


def _is_other_branch(view: View, condition: cst.If) -> bool:
    """Whether a condition has an ``else`` or is an ``elif``."""
    above = view.parent(condition)
    return condition.orelse is not None or (isinstance(above, cst.If) and above.orelse is condition)


def _may_come_first(view: View, statement: cst.BaseStatement) -> bool:
    """Whether nothing but the choice moves: the row of the call, or a condition that only asks."""
    if isinstance(statement, cst.SimpleStatementLine):
        return True
    return isinstance(statement, cst.If) and statement.orelse is None and names.is_plain(view, statement.test)


# -- a device for ranks that have none -------------------------------------------------------------------------


def select_own(case: Case) -> Iterator[Proposal]:
    """``set_device`` with the rank that is at hand, in place of a constant or before the process group is joined."""
    yield from _other_choice(case)
    yield from _other_item(case)
    yield from select_early(case)


def _other_choice(case: Case) -> Iterator[Proposal]:
    """Where each rank selects the same GPU: its own in that call."""
    view = case.view(case.outcome.anchor.module)
    joined = _joined(case)
    for place in {v.path: v for v in (view, joined[0] if joined else None) if v is not None}.values():
        for call in _selections(place):
            if names.read(place, call.args[0].value) & {"rank", "local_rank"}:
                continue
            for rank, doubt in _ranks_at(case, place, call):
                change = place.replace(call.args[0].value, rank)
                yield Proposal("select a GPU of its own in each rank", in_file(place, [change]), doubt=doubt)


def _other_item(case: Case) -> Iterator[Proposal]:
    """Where each rank takes the same item of a row of devices: the item of its number."""
    for view, node in _joining(case):
        function = view.function(node)
        for call in view.calls():
            if view.function(call) is not function:
                continue
            for index in _constant_items(view, call):
                for rank, doubt in _ranks_at(case, view, index):
                    change = view.replace(index, rank)
                    yield Proposal("take the device of its own in each rank", in_file(view, [change]), doubt=doubt)


def _constant_items(view: View, call: cst.Call) -> Iterator[cst.Integer]:
    """The numbers by which items are taken of rows, to be the device of a call."""
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)
    for position, argument in enumerate(call.args):
        keyword = None if argument.keyword is None else argument.keyword.value
        if keyword in _DEVICES or (keyword is None and position == 0 and name in _TAKES_DEVICE):
            yield from _item_numbers(view, argument.value)


def _item_numbers(view: View, value: cst.BaseExpression) -> Iterator[cst.Integer]:
    match value:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer() as number))]):
            yield number
        case cst.List(elements=elements):
            for element in elements:
                yield from _item_numbers(view, element.value)
        case cst.Name(value=name):
            made = names.definition(view, name, value)
            if made is not None:
                yield from _item_numbers(view, made.value)


_DEVICES = frozenset({"device", "device_id", "device_ids"})
_TAKES_DEVICE = frozenset({"cuda", "device", "set_device", "to"})
_OF_DEVICES = _DEVICES | {"output_device", "index"}


def select_early(case: Case) -> Iterator[Proposal]:
    """``set_device`` with the rank that is at hand: first in the rank's function, or before the group is joined."""
    message = "select the rank's GPU first"
    target = _target(case)
    if target is not None:
        view, function, rank = target
        changes = moves.at_top(view, function, _selection(case, view, function.body, rank))
        yield _selecting(view, function.body, changes, message, _OWN_GPU)
    for view, node in _joining(case):
        for rank, doubt in _ranks_at(case, view, node):
            changes = moves.inserted_before(view, node, _selection(case, view, node, rank))
            yield _selecting(view, node, changes, message, doubt)


def _selecting(view: View, at: cst.CSTNode, changes: list[Change], message: str, doubt: str) -> Proposal:
    needed = imports.torch_cuda(view, "set_device", at).changes
    return Proposal(message, in_file(view, [*needed, *changes]), doubt=doubt)


def _selection(case: Case, view: View, at: cst.CSTNode, rank: str) -> list[str]:
    """The rows that select a GPU; without one they do nothing, unless the program cannot run so anyway."""
    line = _select(view, at, rank)
    joined = _joined(case)
    if is_of_nccl(view) or (joined is not None and is_of_nccl(joined[0])):
        return [line]
    return [f"if {imports.torch_cuda(view, 'is_available', at).text}():", f"    {line}"]


def is_of_nccl(view: View) -> bool:
    """Whether all groups that a file joins are of NCCL, whatever runs: without a GPU none could be joined."""
    joined = [call for call in view.calls() if dotted(call.func).rpartition(".")[2] == "init_process_group"]
    return bool(joined) and all(_names_nccl(view, call) for call in joined)


def _names_nccl(view: View, call: cst.Call) -> bool:
    argument = view.keyword(call, "backend") or next((a for a in call.args[:1] if a.keyword is None), None)
    value = None if argument is None else argument.value
    return isinstance(value, cst.SimpleString) and value.evaluated_value == "nccl"


def _select(view: View, at: cst.CSTNode, rank: str) -> str:
    return f"{imports.torch_cuda(view, 'set_device', at).text}({rank})"


def _joined(case: Case) -> tuple[View, cst.CSTNode] | None:
    """Where the process group is joined, as far as the outcome says it."""
    if case.outcome.kind is Kind.INIT_BEFORE_DEVICE:
        return case.at(case.outcome.anchor)
    return case.at(case.outcome.cause[-1].site) if case.outcome.cause else None


def _joining(case: Case) -> Iterator[tuple[View, cst.CSTNode]]:
    """Places for the choice: where the group is joined, else the first step inside a function that leads to CUDA."""
    joined = _joined(case)
    if joined is not None:
        yield joined
        return
    for hop in case.outcome.effect:
        found = case.at(hop.site)
        if found is not None and found[0].function(found[1]) is not None:
            yield found


def _target(case: Case) -> tuple[View, cst.FunctionDef, str] | None:
    """The function that ``mp.spawn`` runs and its first parameter, which is the number of the process."""
    launch = case.launch
    made = None if launch is None or launch.family != "spawn" else case.call_at(launch.made)
    if launch is None or made is None or len(launch.targets) != 1:
        return None
    view, call = made
    first = view.keyword(call, "fn") or (call.args[0] if call.args else None)
    found = case.at(launch.targets[0])
    if first is None or not dotted(first.value) or found is None or not isinstance(found[1], cst.FunctionDef):
        return None
    given = names.parameters(found[1])
    if given and given[0] in ("self", "cls"):
        given = given[1:]
    return (found[0], found[1], given[0]) if given else None


def _ranks_at(case: Case, view: View, node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """Expressions for the rank's number at a place, the local ones first, each with what is uncertain about it."""
    for name in _local_ranks(case, view, node):
        yield name, _OWN_GPU
    if isinstance(node, cst.Call):
        for call in (node, *_groups(view, node)):
            argument = view.keyword(call, "rank")
            if argument is not None and names.known_at(view, names.read(view, argument.value), node):
                yield view.source(argument.value), "this rank counts over all machines where there are several"
    target = _target(case)
    if target is None and _LOCAL_RANK in view.text:
        environ = imports.member(view, "os", "environ", node)
        if not environ.changes:
            yield f'int({environ.text}["{_LOCAL_RANK}"])', _TORCHRUN


def local_numbers(case: Case, view: View, node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """What holds the rank's number on its machine at a place, each with what is uncertain about it."""
    yield from ((name, _OWN_GPU) for name in _local_ranks(case, view, node))


def _groups(view: View, node: cst.CSTNode) -> Iterator[cst.Call]:
    """Where the function of a node joins the process group."""
    function = view.function(node)
    for call in view.calls():
        if view.function(call) is function and dotted(call.func).rpartition(".")[2] == "init_process_group":
            yield call


def local_rank_advice(case: Case) -> Iterator[Proposal]:
    """Advice where no number of the rank on its machine is at hand."""
    joined = _joined(case)
    changes: dict[str, tuple[Change, ...]] = {}
    if joined is not None and _target(case) is None:
        view, node = joined
        environ = imports.member(view, "os", "environ", node)
        line = _select(view, node, f'int({environ.text}["{_LOCAL_RANK}"])')
        changes = in_file(view, [*environ.changes, *moves.inserted_before(view, node, [line])])
    yield Proposal(
        "select the rank's GPU before anything else: `torch.cuda.set_device` with its number on this machine",
        changes,
        doubt="the code does not show where that number comes from, and torchrun says it in LOCAL_RANK",
        shown=True,
    )


def by_an_earlier_choice(repair: Repair) -> Repair:
    """A repair that chooses the rank's GPU earlier, where the program chooses it, and too late.

    A file goes back to its own GPU all the same, and a launcher that places its ranks does so itself.
    """

    def chosen(case: Case) -> Iterator[Proposal]:
        if case.outcome.kind is Kind.ALLOCATION_BEFORE_DEVICE:
            yield from repair(case)

    return chosen


def leave_to_launcher(case: Case) -> Iterator[Proposal]:
    """Advice where a launcher of ranks chooses the GPU of each: what lies there is made once that is done."""
    if case.outcome.kind is not Kind.ALLOCATION_BEFORE_RANKS:
        return
    if ".Fabric." in case.outcome.detail:
        yield Proposal("make it after `fabric.launch()`, on `fabric.device`", {}, shown=True)
        return
    yield Proposal(
        "leave it on the CPU, and let the Trainer place it: as a buffer of the module, or with "
        "`.to(self.device)` in one of its hooks",
        {},
        shown=True,
    )


# -- the local rank in place of the global one -------------------------------------------------------------------


def local_instead(case: Case) -> Iterator[Proposal]:
    """The local rank as the device, where the program knows it."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    doubt = "other places that use the global rank as a device, such as `device_ids`, have to agree"
    for place in (number for value in _devices(call) for number in _numbers(view, value)):
        named = [*_local_ranks(case, view, call), *_siblings(view, place)]
        there = [r for r in named if r != view.source(place) and _is_there(view, r, place)]
        places = [place, *_alike(view, call, place)]
        for rank in (*there, *_computed(view, place)):
            changes = in_file(view, [view.replace(each, rank) for each in places])
            yield Proposal("use the local rank as the device", changes, doubt=doubt)


def _numbers(
    view: View, value: cst.BaseExpression, followed: frozenset[str] = frozenset()
) -> Iterator[cst.BaseExpression]:
    """What says the number of a device: the expression itself, or what ``torch.device`` and f-strings are given.

    ``followed``: the attributes that were looked up for it; ``self.device = torch.device(config.device)`` has its own.
    """
    match value:
        case cst.FormattedString(parts=parts):
            for part in parts:
                if isinstance(part, cst.FormattedStringExpression):
                    yield part.expression
        case cst.Call(func=func, args=args) if dotted(func).rpartition(".")[2] == "device":
            for argument in args:
                if not isinstance(argument.value, cst.SimpleString):
                    yield from _numbers(view, argument.value, followed)
        case cst.Name(value=name):
            made = names.definition(view, name, value)
            if made is not None and _makes_device(made.value):
                yield from _numbers(view, made.value, followed)
            else:
                yield value
        case cst.Attribute(attr=cst.Name(value=attribute)) if attribute not in followed and (
            devices := [made for made in _assigned(view, value) if _makes_device(made)]
        ):
            for made_device in devices:
                yield from _numbers(view, made_device, followed | {attribute})
        case _:
            yield value


def _alike(view: View, call: cst.Call, place: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The other places of a function that say the number of a device by the same expression: all have to agree."""
    function, number = view.function(call), view.source(place)
    calls = [other for other in view.calls() if view.function(other) is function]
    found = {id(n): n for other in calls for value in _devices(other) for n in _numbers(view, value)}
    return [n for n in found.values() if n is not place and view.source(n) == number]


def _devices(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What a call is given as a device, or as a list of them."""
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)
    for position, argument in enumerate(call.args):
        keyword = None if argument.keyword is None else argument.keyword.value
        is_first = keyword is None and (position == 0 or name == "device") and name in _TAKES_DEVICE
        if not is_first and keyword not in _OF_DEVICES:
            continue
        if isinstance(argument.value, cst.List):
            yield from (element.value for element in argument.value.elements)
        else:
            yield argument.value


def _assigned(view: View, place: cst.Attribute) -> Iterator[cst.BaseExpression]:
    """What a file gives an attribute; its object may have other names elsewhere."""
    for node in view.inside(view.tree):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=attr))], value=value):
                if attr.value == place.attr.value:
                    yield value


def _makes_device(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.FormattedString):
        return True
    return isinstance(value, cst.Call) and dotted(value.func).rpartition(".")[2] == "device"


def _local_ranks(case: Case, view: View, node: cst.CSTNode) -> Iterator[str]:
    """What holds the local rank at a node: read from LOCAL_RANK, or a parameter that is one."""
    scope = names.scope_of(view, node)
    target = _target(case)
    if target is not None and target[1] is scope:
        yield target[2]
    if isinstance(scope, cst.FunctionDef) and "local_rank" in names.parameters(scope):
        yield "local_rank"
    for name, bound_at in names.bindings(view, scope):
        if name == "local_rank" and view.start(bound_at) < view.start(node):
            yield name
    for made in view.inside(view.tree):
        match made:
            case cst.Assign(targets=[cst.AssignTarget(target=bound)], value=value):
                if not any(name in view.source(value) for name in _LOCAL_RANKS):
                    continue
                own = names.scope_of(view, made)
                early = own is scope and view.start(made) < view.start(node)
                if dotted(bound) and (early or isinstance(own, cst.Module) or _is_set_before(bound, scope)):
                    yield view.source(bound)


def _is_set_before(bound: cst.BaseExpression, scope: cst.CSTNode) -> bool:
    """Whether another function may have set an attribute before this one runs: none runs before ``__init__``."""
    return isinstance(bound, cst.Attribute) and not (
        isinstance(scope, cst.FunctionDef) and scope.name.value == "__init__" and dotted(bound).startswith("self.")
    )


def _siblings(view: View, place: cst.BaseExpression) -> Iterator[str]:
    """``x.local_rank`` beside ``x.rank``; what has a ``process_index`` (accelerate) always has the local one, too."""
    if not isinstance(place, cst.Attribute):
        return
    if place.attr.value == "process_index":
        yield f"{view.source(place.value)}.local_process_index"
    elif "local_rank" in view.names():
        yield f"{view.source(place.value)}.local_rank"


def _is_there(view: View, rank: str, place: cst.CSTNode) -> bool:
    """Whether a name has a value at a place; of an attribute, its object."""
    return names.known_at(view, frozenset({rank.partition(".")[0]}), place)


def _computed(view: View, place: cst.BaseExpression) -> Iterator[str]:
    if _LOCAL_RANK in view.text:
        environ = imports.member(view, "os", "environ", place)
        if not environ.changes:
            yield f'int({environ.text}["{_LOCAL_RANK}"])'
    torch = imports.torch_cuda(view, "device_count", place)
    is_number = isinstance(place, cst.Name | cst.Attribute | cst.Call) and not dotted(place).endswith("device")
    if not torch.changes and is_number:
        yield f"{view.source(place)} % {torch.text}()"


# -- the meeting place -------------------------------------------------------------------------------------------


def rendezvous(case: Case) -> Iterator[Proposal]:
    """Set ``MASTER_ADDR`` and ``MASTER_PORT`` where they are not set yet, before the ranks start or meet."""
    if case.outcome.kind is Kind.RANK_NOT_SAID:
        doubt = "the code does not show how many ranks there are"
        message = "give `rank=`, with which the started function is called first, and `world_size=`"
        yield Proposal(message, {}, doubt=doubt, shown=True)
        return
    started = case.outcome.launch[-1].site if case.outcome.launch else case.outcome.anchor
    for site in (started, case.outcome.anchor):
        found = case.at(site)
        if found is None:
            continue
        view, node = found
        environ = imports.member(view, "os", "environ", node)
        lines = [f'{environ.text}.setdefault("{name}", "{value}")' for name, value in _MEETING]
        changes = moves.inserted_before(view, node, lines)
        if changes:
            yield Proposal(
                "say where the ranks meet, unless the environment does",
                in_file(view, [*environ.changes, *changes]),
                doubt="the address and the port are a guess that holds for one machine",
            )
