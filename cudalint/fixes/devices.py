"""Choosing a device where a program only seems to: by its index, or by the variable before CUDA reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from cudalint.fixes import imports, layout, moves, names
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.queries import count_instead
from cudalint.fixes.statements import is_import
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import NUMBERED, Kind

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NUMBERS = "GPUs keep the numbers of the machine: what names GPU 0 means the first one, and other GPUs stay visible"
# More functions that each import the same are no improvement.
_MOST_IMPORTING = 2
_OTHER_GPU = "what follows then runs on that GPU, where it ran on another"


def select_instead(case: Case) -> Iterator[Proposal]:
    """``torch.cuda.set_device(i)`` for the statement ``torch.cuda.device(i)``, ``Device(i).use()`` for CuPy's."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    if dotted(call.func).rpartition(".")[2] == "Device":
        change = view.after(call, ".use()")
        yield Proposal("select the device with `.use()`", in_file(view, [change]), doubt=_OTHER_GPU)
        return
    if isinstance(call.func, cst.Attribute):
        changes = [view.replace(call.func.attr, "set_device")]
    else:
        name = imports.torch_cuda(view, "set_device", call)
        changes = [view.replace(call.func, name.text), *name.changes]
    if case.outcome.subject == NUMBERED:
        yield Proposal("select the device with `set_device`", in_file(view, changes), doubt=_OTHER_GPU)
        return
    yield Proposal("select the device with `set_device`, which wants its number", in_file(view, changes), shown=True)


# -- CUDA_VISIBLE_DEVICES ------------------------------------------------------------------------------------


def visible_in_time(case: Case) -> Iterator[Proposal]:
    """Choose the visible devices above what touches CUDA first, or do without: by index, or without a question.

    What suits the program shows in the GPUs it names. ``cuda:1`` exists only while others stay visible, and
    ``cuda:0`` is the chosen one only if they do not.
    """
    found = case.at(case.outcome.anchor)
    named = frozenset[int]() if found is None else _named_gpus(found[0])
    ways = {"first": _visible_first, "later": _import_later, "index": by_index, "unasked": count_instead}
    order = ("first", "unasked", "index", "later") if named == {0} else ("first", "index", "unasked", "later")
    if any(index > 0 for index in named):
        order = ("index", "first", "unasked", "later")
    for way in order:
        yield from ways[way](case)


def _visible_first(case: Case) -> Iterator[Proposal]:
    yield from earlier(case, "choose the visible devices before anything touches CUDA", _OTHER_GPU)


def _import_later(case: Case) -> Iterator[Proposal]:
    """Import what asks for CUDA below the choice, where that alone uses it, or in the functions that use it."""
    pairs = [(effect, cause) for effect in reversed(case.outcome.effect) for cause in case.outcome.cause]
    for moved in (_below_the_choice, _where_it_is_used):
        for effect, cause in pairs:
            late, early = case.at(effect.site), case.at(cause.site)
            if late is None or early is None or late[0] is not early[0]:
                continue
            statement = _top_import(late[0], early[1])
            changes = [] if statement is None else moved(late[0], statement, late[1])
            if changes:
                yield Proposal(
                    "choose the visible devices, then import what asks for CUDA",
                    in_file(late[0], changes),
                    doubt=f"the module is then imported later, and not by all who import this one; {_OTHER_GPU}",
                )


def _top_import(view: View, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """The import at the top of the module that a node is part of, where it can move."""
    statement = view.statement(node)
    if not isinstance(statement, cst.SimpleStatementLine) or not is_import(statement):
        return None
    is_free = isinstance(view.parent(statement), cst.Module) and layout.has_own_rows(view, statement)
    return statement if is_free else None


def _below_the_choice(view: View, statement: cst.SimpleStatementLine, late: cst.CSTNode) -> list[Change]:
    """An import right below a statement of the only function that uses what it binds, or of the main guard."""
    around = view.function(late) or next((n for n in view.around(late) if layout.is_guard(view, n)), None)
    if not isinstance(around, cst.FunctionDef | cst.If):
        return []
    target = next((s for s in around.body.body if s is late or late in view.inside(s)), None)
    uses = _uses(view, statement, around)
    if not isinstance(target, cst.BaseStatement) or uses is None:
        return []
    return layout.moved_below(view, statement, target) if all(_follows(view, n, around, target) for n in uses) else []


def _where_it_is_used(view: View, statement: cst.SimpleStatementLine, late: cst.CSTNode) -> list[Change]:
    """An import at the top of each of the few functions that use what it binds, none of which makes the choice."""
    functions: dict[int, cst.FunctionDef] = {}
    for use in _uses(view, statement, view.tree) or ():
        function = view.function(use)
        if function is None or use not in view.inside(function.body) or function in view.around(late):
            return []
        functions[id(function)] = function
    if not functions or len(functions) > _MOST_IMPORTING:
        return []
    if any(_uses(view, statement, function) is None for function in functions.values()):
        return []
    line = view.source(statement).strip()
    added = [change for function in functions.values() for change in moves.at_top(view, function, [line])]
    return [*added, *layout.taken_out(view, statement)]


def _uses(view: View, statement: cst.SimpleStatementLine, around: cst.CSTNode) -> list[cst.Name] | None:
    """Where a file uses what an import binds; None where something else binds that as well, also in what is around."""
    names_bound = _bound_by(statement)
    if names_bound is None:
        return None
    own: list[cst.FunctionDef | cst.Module] = [around] if isinstance(around, cst.FunctionDef) else []
    scopes = [view.tree, *own]
    if any(sum(n == name for scope in scopes for n, _ in names.bindings(view, scope)) != 1 for name in names_bound):
        return None
    found = (n for n in view.each(view.tree, cst.Name) if n.value in names_bound)
    return [n for n in found if names.is_variable(view, n)]


def _bound_by(statement: cst.SimpleStatementLine) -> list[str] | None:
    """The names that an import binds; None where it imports all, or more than one module."""
    match statement.body[0]:
        case cst.ImportFrom(names=[*aliases]) | cst.Import(names=[*aliases]):
            if isinstance(statement.body[0], cst.Import) and len(aliases) > 1:
                return None
            given = [a.asname.name if a.asname is not None else a.name for a in aliases]
            return [dotted(n).partition(".")[0] for n in given if isinstance(n, cst.Name | cst.Attribute)]
    return None


def _follows(view: View, node: cst.CSTNode, around: cst.CSTNode, target: cst.CSTNode) -> bool:
    return around in view.around(node) and view.start(node) > view.end(target)


def earlier(case: Case, message: str, doubt: str) -> Iterator[Proposal]:
    """Move what comes too late, the last step of the effect, above the first step of the cause that it can reach."""
    pairs = [(effect, cause) for effect in reversed(case.outcome.effect) for cause in case.outcome.cause]
    for move in (moves.above_here, moves.above_there):
        for effect, cause in pairs:
            late, early = case.at(effect.site), case.at(cause.site)
            if late is None or early is None or late[0] is not early[0]:
                continue
            if move is moves.above_there and effect is not case.outcome.effect[-1]:
                continue
            for changes in move(late[0], early[1], late[1]):
                yield Proposal(message, in_file(late[0], changes), doubt=doubt)


def by_index(case: Case) -> Iterator[Proposal]:
    """Select the GPU by its index where the program sets ``CUDA_VISIBLE_DEVICES`` to one GPU."""
    found = case.at(case.outcome.anchor)
    if found is None:
        return
    view, node = found
    index = _wanted_index(view, node)
    if index is None or not _nothing_placed(case):
        return
    against = _against_index(case, view, node)
    if against is not None:
        yield Proposal(
            "choose the GPU in the library that uses it, or set the variable before anything touches CUDA",
            {},
            doubt=against,
            shown=True,
        )
        return
    for changes in _selecting(case, view, node, index):
        yield Proposal("select the GPU by its index", in_file(view, changes), doubt=_NUMBERS)


def _selecting(case: Case, view: View, node: cst.CSTNode, index: str) -> Iterator[list[Change]]:
    """The call that selects a GPU in the place of what sets the variable, or below an import that the function has."""
    selection = _selection(case, view, node, index)
    if selection is None:
        return
    text, needed = selection
    below = _below_own_import(case, view, node, index) if needed else []
    if below:
        yield below
        return
    for changes in _in_place(view, node, text):
        yield [*changes, *needed]


def _below_own_import(case: Case, view: View, node: cst.CSTNode, index: str) -> list[Change]:
    """Where nothing but imports stands between what sets the variable and a place that knows the library's name."""
    statement = view.statement(node)
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) > 1:
        return []
    block = view.siblings(statement)
    following = next((s for s in block[block.index(statement) + 1 :] if not is_import(s)), None) if block else None
    selection = None if following is None else _selection(case, view, following, index)
    if following is None or selection is None or selection[1] or not isinstance(following, cst.BaseStatement):
        return []
    is_alone = isinstance(node, cst.Assign) or isinstance(view.parent(node), cst.Expr)
    if not is_alone or (isinstance(node, cst.Call) and _sets_others(node)):
        return []
    return [*layout.dropped(view, statement), view.lines_before(following, [selection[0]])]


def _sets_others(call: cst.Call) -> bool:
    """Whether a call sets more variables than the one for the visible GPUs."""
    match call:
        case cst.Call(args=[cst.Arg(value=cst.Dict(elements=elements))]):
            return len(elements) > 1
    return len(call.args) > 1 and not dotted(call.func).endswith("putenv")


def _against_index(case: Case, view: View, node: cst.CSTNode) -> str | None:
    """Why choosing a GPU by its index may leave the work on another one, or fail; None where nothing speaks for it."""
    deaf = next((m[0] for v in _views(case, view) if (m := _DEAF.search(v.text)) is not None), None)
    if deaf is not None:
        return f"{deaf} does not look at what another framework selected"
    if any(0 in _named_gpus(v) for v in _views(case, view)):
        return "the program names GPU 0, which would then be the first one of the machine"
    as_it_is = isinstance(_visible_value(node), cst.Name | cst.Attribute | cst.Subscript)
    if _names_several(view) or (as_it_is and not _is_one_gpu(view, node)):
        return "the variable may name several GPUs, and an index is one"
    return None


def _views(case: Case, view: View) -> list[View]:
    """The files that a finding goes through."""
    outcome = case.outcome
    modules = dict.fromkeys(hop.site.module for leg in (outcome.cause, outcome.launch, outcome.effect) for hop in leg)
    found = [case.view(module) for module in modules]
    return [view, *(one for one in found if one is not None and one is not view)]


# Frameworks that use the GPU that the variable shows them, whatever is selected elsewhere.
_DEAF = re.compile(
    r"\b(?:\w*onnxruntime|tensorflow|keras|jax|paddle|paddleocr|mxnet|tensorrt|pycuda|cudf|cuml|xgboost|lightgbm|catboost"
    r"|faiss|insightface|llama_cpp|ctranslate2|faster_whisper|vllm|warp|taichi|decord)\b"
)


def _is_one_gpu(view: View, node: cst.CSTNode) -> bool:
    """Whether what the variable is set to is seen to be one GPU: the file has numbers as texts, and no list of them.

    What an attribute holds, as the options of a command line do, comes from elsewhere.
    """
    return bool(_numbers(view)) and not isinstance(_visible_value(node), cst.Attribute)


def _names_several(view: View) -> bool:
    """Whether a text of the file names several GPUs."""
    return any(not text.isdecimal() for text in _numbers(view))


def _numbers(view: View) -> list[str]:
    """The texts of a file that are a number, or several."""
    texts = (n.evaluated_value for n in view.each(view.tree, cst.SimpleString))
    return [text for text in texts if isinstance(text, str) and _SEVERAL.fullmatch(text)]


_SEVERAL = re.compile(r"\d+(?:\s*,\s*\d+)*")


def _nothing_placed(case: Case) -> bool:
    """Whether no data of this round is on another GPU by now: CUDA was asked only, or used for an earlier task."""
    cause, effect = case.outcome.cause, case.outcome.effect
    asked = bool(cause) and cause[-1].message.endswith("asks the driver")
    again = bool(effect) and effect[-1].message.endswith("(second time round)")
    return asked or again or case.outcome.kind is Kind.VISIBLE_PER_TASK


def _wanted_index(view: View, node: cst.CSTNode) -> str | None:
    """The index of the GPU that is made visible, as an expression; None where it is not one GPU."""
    value = _visible_value(node)
    match value:
        case None:
            return None
        case cst.Call(func=cst.Name(value="str"), args=[cst.Arg(keyword=None, star="", value=number)]):
            return view.source(number)
        case cst.FormattedString(parts=[cst.FormattedStringExpression(format_spec=None, conversion=None) as part]):
            return view.source(part.expression)
        case cst.SimpleString(evaluated_value=str() as digits):
            return digits if digits.isdecimal() else None
        case cst.Name() | cst.Attribute() | cst.Subscript():
            return f"int({view.source(value)})"
    return None


def _visible_value(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What the variable is set to by an assignment, or by a call that sets nothing else."""
    match node:
        case cst.Assign(targets=[_], value=value):
            return value
        case cst.Call(args=[cst.Arg(value=cst.Dict(elements=elements))]):
            return next((e.value for e in elements if isinstance(e, cst.DictElement) and _is_visible(e.key)), None)
        case cst.Call(args=[cst.Arg(keyword=cst.Name(value=name), value=value)]) if name == _VISIBLE:
            return value
        case cst.Call(args=[cst.Arg(value=key), cst.Arg(value=value)]) if _is_visible(key):
            return value if dotted(node.func).endswith("putenv") else None
    return None


def _is_visible(key: cst.BaseExpression) -> bool:
    return isinstance(key, cst.SimpleString) and key.evaluated_value == _VISIBLE


def _in_place(view: View, node: cst.CSTNode, text: str) -> Iterator[list[Change]]:
    """Put a call in the place of what sets the variable; what sets others as well keeps them."""
    if isinstance(node, cst.Call) and isinstance(node.args[0].value, cst.Dict):
        elements = node.args[0].value.elements
        entry = next(i for i, e in enumerate(elements) if isinstance(e, cst.DictElement) and _is_visible(e.key))
        if len(elements) > 1:
            yield [*moves.inserted_before(view, node, [text]), without_element(view, elements, entry)]
            return
    if isinstance(node, cst.Assign) or isinstance(view.parent(node), cst.Expr):
        yield [view.replace(node, text)]


def without_element(view: View, elements: object, position: int) -> Change:
    """Take an entry out of a dictionary display, with the comma that separates it."""
    assert isinstance(elements, list | tuple)
    entry = elements[position]
    if position + 1 < len(elements):
        return Change(view.start(entry), view.start(elements[position + 1]), "")
    start = view.start(entry) if position == 0 else view.end(elements[position - 1].value)
    return Change(start, view.end(entry.value), "")


def _selection(case: Case, view: View, node: cst.CSTNode, index: str) -> tuple[str, tuple[Change, ...]] | None:
    """The call that selects a GPU for the framework that used CUDA, and the imports it needs."""
    message = case.outcome.cause[-1].message if case.outcome.cause else ""
    match message.partition(".")[0]:
        case "cupy":
            module = imports.module(view, "cupy", node)
            return f"{module.text}.cuda.Device({index}).use()", module.changes
        case "numba":
            name = imports.member(view, "numba.cuda", "select_device", node)
            return f"{name.text}({index})", name.changes
        case "jax" | "tensorflow":
            return None
    name = imports.torch_cuda(view, "set_device", node)
    return f"{name.text}({index})", name.changes


def _named_gpus(view: View) -> frozenset[int]:
    """The GPUs that a file names by number."""
    found: set[int] = set()
    for node in view.inside(view.tree):
        match node:
            case cst.SimpleString(evaluated_value=str() as text) if text.startswith("cuda:") and text[5:].isdecimal():
                found.add(int(text[5:]))
            case cst.Call(func=func, args=args):
                name = func.attr.value if isinstance(func, cst.Attribute) else dotted(func)
                takes = name in _TAKES_GPU or ".cuda." in dotted(func)
                found.update(_numbers_given(args, takes))
    return frozenset(found)


def _numbers_given(args: Sequence[cst.Arg], takes: bool) -> Iterator[int]:
    """The numbers among arguments that say which GPU is meant."""
    for argument in args:
        named = argument.keyword is not None and argument.keyword.value in _GPU_NUMBERS
        number = argument.value
        if isinstance(number, cst.Integer) and (named or (takes and argument.keyword is None)):
            yield number.evaluated_value


_TAKES_GPU = frozenset({"cuda", "device", "to"})
_GPU_NUMBERS = frozenset({"device", "device_id", "device_index", "gpu", "gpu_id"})


def process_per_gpu(case: Case) -> Iterator[Proposal]:
    """Advice for a worker that cannot change its GPU."""
    del case
    yield Proposal(
        "start one worker process per GPU, each with CUDA_VISIBLE_DEVICES set before it uses CUDA",
        {},
        doubt="a worker keeps the first GPU it used, and the work has to be divided differently",
        shown=True,
    )


def set_in_the_environment(case: Case) -> Iterator[Proposal]:
    """Advice where the variable cannot be set in time."""
    first = case.outcome.cause[-1].message if case.outcome.cause else "something"
    yield Proposal(
        f"set the visible devices before this: {first}; on the command line, for example",
        {},
        doubt="the code does not show a place that is early enough and knows the value",
        shown=True,
    )
