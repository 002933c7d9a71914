"""Values that cross to another process: copied to the host where they leave, and back where the GPU needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from cudalint.fixes.copies import Copier, NoCopyError, Way, below
from cudalint.fixes.edits import Change
from cudalint.fixes.moves import at_top
from cudalint.fixes.proposal import Case, Proposal
from cudalint.fixes.receiving import put_back
from cudalint.fixes.view import View
from cudalint.machine.outcome import Kind
from cudalint.machine.shapes import Form, Shape

_IN_PLACE = re.compile(r"(?!_)\w*[a-z0-9]_|step|backward")
_GONE = (Form.NOTHING, Form.HIDDEN)

_Changes = dict[str, tuple[Change, ...]]


def on_the_cpu(case: Case) -> Iterator[Proposal]:
    """A copy on the CPU for a worker that cannot use the GPU."""
    if any(_writes(function) for _, function in _targets(case)) and case.finding.code == "CUD103":
        return
    sent = _sent(case, Way.TO_CPU)
    if sent is not None:
        yield Proposal(
            "send a copy on the CPU",
            sent,
            doubt="the worker then computes on the CPU, with values of its own",
            final=True,
        )


def through_the_cpu(case: Case) -> Iterator[Proposal]:
    """A copy on the CPU where a value leaves, and on the GPU again in the worker or where it comes back."""
    if case.outcome.subject == "result":
        yield from _result(case)
        return
    sent = _sent(case, Way.TO_CPU)
    if sent is None or any(_writes(function) for _, function in _targets(case)):
        return
    back = _restored(case)
    if back is None:
        yield Proposal(
            "send a copy on the CPU, and move it to the GPU where it arrives",
            sent,
            doubt="the code does not show where it arrives",
            shown=True,
        )
        return
    yield Proposal(
        "send a copy on the CPU, and move it to the GPU in the worker",
        _together(sent, back),
        doubt="the worker then has memory of its own: what one process writes, the other does not see",
        final=True,
    )


def on_the_host(case: Case) -> Iterator[Proposal]:
    """A host array in place of one on the GPU that cannot be pickled, uploaded again in the worker."""
    sent = _sent(case, Way.TO_CPU)
    back = _restored(case)
    if sent is not None and back is not None:
        yield Proposal(
            "send a host array, and upload it in the worker",
            _together(sent, back),
            doubt="each worker then has an array of its own on the GPU",
            final=True,
        )


def as_array(case: Case) -> Iterator[Proposal]:
    """A plain array, which needs nothing of the process that sent it, and a tensor again where it arrives."""
    given = _arguments(case)
    if given is None:
        return
    view, arguments, shapes = given
    sent, loops = _copied(view, arguments, shapes, Way.TO_ARRAY), _sentinel_loops(view)
    if sent is None or loops is None:
        return
    sent = _together(sent, {view.path: loops})
    back = {} if loops else put_back(case, shapes.get(arguments[0]))
    kept = (
        "each value is copied to the host and back" if back else "the receiver gets a NumPy array where it got a tensor"
    )
    yield Proposal(
        "send a NumPy array, which outlives this process"
        + (", and move it to the GPU where it arrives" if back else ""),
        _together(sent, back),
        doubt=f"{kept}, and NumPy has no bfloat16",
        final=True,
    )


def _sentinel_loops(view: View) -> tuple[Change, ...] | None:
    """``for x in iter(q.get, None)`` as ``while (x := q.get()) is not None``.

    ``iter`` compares with ``==``, and an array that is compared has no truth. None where such a call is no loop.
    """
    changes: list[Change] = []
    for call in view.calls():
        match call:
            case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=getter), cst.Arg(value=end)]):
                if not (isinstance(getter, cst.Attribute) and getter.attr.value in ("get", "recv")):
                    continue
            case _:
                continue
        loop = view.parent(call)
        if not (isinstance(loop, cst.For) and isinstance(loop.target, cst.Name) and view.source(end) == "None"):
            return None
        if "#" in view.text[view.start(loop) : view.end(call)]:
            return None
        line = f"while ({loop.target.value} := {view.source(getter)}()) is not None"
        changes.append(Change(view.start(loop), view.end(call), line))
    return tuple(changes)


def wait_for_receiver(case: Case) -> Iterator[Proposal]:
    """Advice for a producer whose value no expression copies."""
    yield Proposal(
        "send `.cpu().numpy()`, or let this process wait for an `Event` that the receiver sets when it is done",
        {},
        doubt="the code does not show what is sent",
        shown=True,
    )


def threads_instead(case: Case) -> Iterator[Proposal]:
    """Advice for joblib: threads share the GPU memory as it is."""
    yield Proposal(
        'use threads, `Parallel(n_jobs=..., prefer="threads")`, which share the value without a copy',
        {},
        doubt="threads suit work on the GPU, not Python code that holds the interpreter lock",
        shown=True,
    )


def keep_shared(case: Case) -> Iterator[Proposal]:
    """Advice for memory that is meant to be shared, or whose other side is not seen."""
    yield Proposal(
        "send a CPU copy, or keep the process that owns the value alive, and the value in it, until all receivers end",
        {},
        doubt="whether the processes are meant to share this memory is a decision about the program",
        shown=True,
    )


def made_in_worker(case: Case) -> Iterator[Proposal]:
    """Advice for what has no meaning in another process."""
    if case.outcome.kind is Kind.OWN_MEMORY:
        return
    yield Proposal(
        "make streams, events and graphs in the worker that uses them, or leave them out in `__getstate__`",
        {},
        doubt="the object cannot be sent in any form",
        shown=True,
    )


def not_through_a_channel(case: Case) -> Iterator[Proposal]:
    """Advice for what a process sends to itself."""
    if case.outcome.kind is Kind.OWN_MEMORY:
        yield Proposal(
            "hand the tensor over in a `queue.Queue`, which threads of one process share, or send a copy on the host",
            {},
            doubt="whether another process shall read the channel is a decision about the program",
            shown=True,
        )


def copy_before_fork(case: Case) -> Iterator[Proposal]:
    """Advice for a child that reads what it inherited."""
    yield Proposal(
        "copy what the child reads with `.cpu()` before the fork, or start the child by spawn and let it load its own",
        {},
        doubt="what the child needs is a decision about the program",
        shown=True,
    )


# -- the side that sends -------------------------------------------------------------------------------------


def _sent(case: Case, way: Way) -> _Changes | None:
    """The arguments of the crossing call, copied; None where something of them cannot be."""
    given = _arguments(case)
    return None if given is None else _copied(*given, way)


def _arguments(case: Case) -> tuple[View, list[cst.BaseExpression], Mapping[cst.CSTNode, Shape]] | None:
    """What the crossing call is given, and what that and its parts hold on the GPU."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return None
    view, call = found
    arguments = [a.value for a in call.args]
    return view, arguments, case.shapes(view, (n for a in arguments for n in below(a, view)))


def _copied(
    view: View, nodes: list[cst.BaseExpression], shapes: Mapping[cst.CSTNode, Shape], way: Way
) -> _Changes | None:
    copier = Copier(view, way)
    try:
        changes = [c for n in nodes for c in copier.changes(n, shapes)]
    except NoCopyError:
        return None
    return {view.path: (*changes, *copier.imports)} if changes else None


# -- the side that receives ------------------------------------------------------------------------------------


def _targets(case: Case) -> Iterator[tuple[View, cst.FunctionDef]]:
    """The functions that the worker runs."""
    for site in () if case.launch is None else case.launch.targets:
        found = case.at(site)
        if found is not None and isinstance(found[1], cst.FunctionDef):
            yield found[0], found[1]


def _writes(function: cst.FunctionDef) -> bool:
    """Whether a function changes what it is given in place: then its caller may wait for the change."""
    parameters = set(_parameters(function))
    stack: list[cst.CSTNode] = [function.body]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if _IN_PLACE.fullmatch(name):
                return True
            case cst.AugAssign(target=cst.Name(value=name)) if name in parameters:
                return True
            case cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name))) if name in parameters:
                return True
            case cst.AugAssign(target=cst.Subscript(value=cst.Name(value=name))) if name in parameters:
                return True
    return False


def _parameters(function: cst.FunctionDef) -> list[str]:
    given = function.params
    return [p.name.value for p in (*given.posonly_params, *given.params, *given.kwonly_params)]


def _restored(case: Case) -> _Changes | None:
    """Each parameter of the workers that is seen to hold something on the GPU, moved there first."""
    result: _Changes = {}
    for view, function in dict.fromkeys(_targets(case)):
        copier = Copier(view, Way.TO_GPU, function.body)
        if not isinstance(function.body, cst.IndentedBlock):
            return None
        try:
            lines = [f"{n} = {copier.expression(n, s)}" for n, s in _held(case, view, function).items()]
        except NoCopyError:
            return None
        if lines:
            changes = (*at_top(view, function, lines), *copier.imports)
            result = _together(result, {view.path: changes})
    return result or None


def _held(case: Case, view: View, function: cst.FunctionDef) -> dict[str, Shape]:
    """The parameters of a function that hold something on the GPU where they are first used."""
    names = _parameters(function)
    uses = [n for n in view.each(function.body, cst.Name) if n.value in names]
    shapes = case.shapes(view, uses)
    held: dict[str, Shape] = {}
    for use in uses:
        assert isinstance(use, cst.Name)
        shape = shapes.get(use)
        if shape is not None and shape.form not in _GONE and use.value not in held:
            held[use.value] = shape
    return held


def _result(case: Case) -> Iterator[Proposal]:
    """What the worker returns, copied to the host there and back to the GPU where it arrives.

    Tensors on the CPU are no copies that travel: a worker hands over the memory that they lie in, and one that ends
    after its tasks may be gone by then.
    """
    ends = case.launch is not None and case.launch.ends
    way, back_way = (Way.TO_ARRAY, Way.FROM_ARRAY) if ends else (Way.TO_CPU, Way.TO_GPU)
    sent: _Changes = {}
    for view, function in dict.fromkeys(_targets(case)):
        values = [n.value for n in view.each(function.body, cst.Return) if n.value is not None]
        shapes = case.shapes(view, (n for v in values for n in below(v, view)))
        copied = _copied(view, values, shapes, way)
        if copied is not None:
            sent = _together(sent, copied)
    if not sent:
        return
    back = _arrived(case, back_way)
    kind = "a NumPy array, which outlives its worker" if ends else "a copy on the CPU"
    where = "as an array on the CPU" if ends else "on the CPU"
    arrives = f"it arrives {where}, and where it is used on the GPU it has to be moved there"
    doubt = "each result is copied to the host and back" if back else arrives
    yield Proposal(
        f"return {kind}" + (", and move it to the GPU where it arrives" if back else ""),
        _together(sent, back),
        doubt=f"{doubt}, and NumPy has no bfloat16" if ends else doubt,
        final=True,
    )


def _arrived(case: Case, way: Way) -> _Changes:
    """The call that gives the results, with what it gives moved to the GPU."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return {}
    view, call = found
    shape = case.shapes(view, [call]).get(call)
    return _copied(view, [call], {call: shape}, way) or {} if shape is not None else {}


def _together(first: _Changes, second: _Changes) -> _Changes:
    return {
        path: tuple(dict.fromkeys((*first.get(path, ()), *second.get(path, ()))))
        for path in (*first, *(p for p in second if p not in first))
    }
