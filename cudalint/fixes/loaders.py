"""Loaders that pin, shuffle or carry what is on the GPU already."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, names
from cudalint.fixes.devices import without_element
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file, in_files
from cudalint.fixes.queries import asks_for_gpus
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind

# Arguments of a loader that mean something only with workers; torch refuses most of them without.
_FOR_WORKERS = (
    "num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout", "worker_init_fn",
)  # fmt: skip
_MOVES = ("cuda", "to")
# torch's own generator begins with a random seed in each process, and obeys torch.manual_seed(); each new one begins
# with 67280421310721 (c10::default_rng_seed_val), so the order would be the same one in every run.
_ONE_SEED = "a new generator begins with the same seed in every run, whatever `torch.manual_seed()` says"


def no_pinning(case: Case) -> Iterator[Proposal]:
    """No ``pin_memory=True`` for batches that are on the GPU: there is nothing to pin."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    message = "drop `pin_memory`: the batches are on the GPU already"
    argument = view.keyword(call, "pin_memory")
    if argument is not None:
        dropped = in_file(view, [view.without_argument(call, argument)])
        if isinstance(argument.value, cst.Name | cst.Attribute):
            yield Proposal(message, dropped, Proof.NOTHING)
        else:
            yield Proposal(message, dropped, doubt="what computes `pin_memory` is dropped with it")
        return
    doubt = "other loaders may take their arguments from the same place"
    for change in _pins_elsewhere(view):
        yield Proposal(message, in_file(view, [change]), doubt=doubt)


def _pins_elsewhere(view: View) -> Iterator[Change]:
    """``pin_memory`` among the keyword arguments that are kept in a dictionary."""
    for node in view.inside(view.tree):
        match node:
            case cst.Dict(elements=elements):
                for i, element in enumerate(elements):
                    if isinstance(element, cst.DictElement) and _is_pin(element.key):
                        yield without_element(view, elements, i)
            case cst.Call(func=cst.Name(value="dict")) if (argument := view.keyword(node, "pin_memory")) is not None:
                yield view.without_argument(node, argument)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(slice=[element]))], value=value):
                if isinstance(element.slice, cst.Index) and _is_pin(element.slice.value):
                    yield view.replace(value, "False")


def _is_pin(key: cst.BaseExpression) -> bool:
    return isinstance(key, cst.SimpleString) and key.evaluated_value == "pin_memory"


def no_workers(case: Case) -> Iterator[Proposal]:
    """No workers: the main process reads what is on the GPU itself."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    changes = without_workers(view, call)
    if changes:
        why = "what it loads" if case.outcome.kind is Kind.DEFAULT_DEVICE_LOADER else "the data"
        yield Proposal(
            f"load without workers: {why} is on the GPU",
            in_file(view, changes),
            doubt="what else the dataset does for a sample then runs in the main process, one sample after the other",
        )


def without_workers(view: View, call: cst.Call) -> list[Change]:
    """A loader without the arguments that it has for workers; empty where it is not given their number by name."""
    given = [a for a in call.args if a.keyword is not None and a.keyword.value in _FOR_WORKERS]
    if not any(a.keyword is not None and a.keyword.value == "num_workers" for a in given):
        return []
    return view.without_arguments(call, given)


def generator_on_device(case: Case) -> Iterator[Proposal]:
    """A generator on the default device for the sampler that shuffles."""
    found = case.call_at(case.outcome.anchor)
    if found is None or case.outcome.detail != "shuffle":
        return
    view, call = found
    generator = imports.member(view, "torch", "Generator")
    device, doubt = _default_device(case, view, call)
    changes = view.with_keyword(call, "generator", f"{generator.text}(device={device})")
    doubts = [_ONE_SEED] if doubt is None else [doubt, _ONE_SEED]
    yield Proposal(
        "shuffle with a generator on the default device",
        in_file(view, [*generator.changes, *changes]),
        doubt="; ".join(doubts),
    )


def _default_device(case: Case, view: View, place: cst.CSTNode) -> tuple[str, str | None]:
    """The default device as the program writes it, where that means the same at the loader, and what is uncertain."""
    module = case.basis.files.module(case.outcome.cause[-1].site.module) if case.outcome.cause else None
    if module is None or asks_for_gpus(module):
        return _written_device(case, view, place)[0], "the program may also run without a GPU"
    return _written_device(case, view, place)


def _written_device(case: Case, view: View, place: cst.CSTNode) -> tuple[str, str | None]:
    unsure = "the default device may be another one on other paths"
    chosen = case.cause_call()
    if chosen is None or len(chosen[1].args) != 1:
        return '"cuda"', unsure
    value = chosen[1].args[0].value
    if isinstance(value, cst.Call) and dotted(value.func).endswith("device") and len(value.args) == 1:
        value = value.args[0].value
    if isinstance(value, cst.SimpleString):
        text = value.evaluated_value
        return chosen[0].source(value) if isinstance(text, str) and text.startswith("cuda") else '"cuda"', None
    if chosen[0] is not view or not isinstance(value, cst.Name):
        return '"cuda"', unsure
    used = names.read(view, value)
    known = names.global_names(view, used, names.scope_of(view, value)) and names.known_at(view, used, place)
    return view.source(value) if known else '"cuda"', unsure


def without_default(case: Case) -> Iterator[Proposal]:
    """Advice for workers that make tensors on a default device."""
    del case
    yield Proposal(
        "name the GPU where it is wanted (`device=`, `.to(...)`) in place of a default device for all code",
        {},
        doubt="which tensors are wanted on the GPU the code does not say",
        shown=True,
    )


# -- the batch stays on the CPU until the loop -----------------------------------------------------------------


def move_in_loop(case: Case) -> Iterator[Proposal]:
    """Let the workers make CPU batches, and move each batch in the loop, from pinned memory."""
    last = case.call_at(case.outcome.effect[-1].site) if case.outcome.effect else None
    loader = case.call_at(case.outcome.anchor)
    if last is None or loader is None:
        return
    view, move = last
    function = view.function(move)
    if function is None or not _is_workers_own(function, *loader):
        return
    pinned = _pinned(*loader)
    if dotted_attribute(move) == "pin_memory":
        yield Proposal(
            "pin the batches in the main process: `pin_memory=True` on the loader",
            in_files([(view, _without_call(view, move)), *pinned]),
            doubt="each batch is then pinned after it is collated, not each sample",
        )
        return
    moves = _moves(view, function)
    if not moves or move not in [m for m, _ in moves]:
        return
    for home, loop in _loops(case):
        inside = _in_loop(home, loop, view, function, moves)
        if inside is None:
            continue
        yield Proposal(
            "let the workers stay on the CPU, and move each batch in the loop",
            in_files([*((view, c) for _, c in moves), (home, inside), *pinned]),
            doubt="whatever else takes samples from this dataset or collate function then gets them on the CPU",
        )


def stay_on_cpu(case: Case) -> Iterator[Proposal]:
    """Advice where the code does not show how the batches are made or taken."""
    del case
    yield Proposal(
        "make the batches on the CPU in the workers, and move them to the GPU where they are used",
        {},
        doubt="the code does not show where the batches are used, or what else relies on their device",
        shown=True,
    )


def _pinned(view: View, loader: cst.Call) -> list[tuple[View, Change]]:
    if view.keyword(loader, "pin_memory") is not None:
        return []
    return [(view, change) for change in view.with_keyword(loader, "pin_memory", "True")]


def dotted_attribute(call: cst.Call) -> str:
    """The last name of what is called."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)


def _is_workers_own(function: cst.FunctionDef, view: View, loader: cst.Call) -> bool:
    """``__getitem__`` and ``__iter__`` of the dataset, and the loader's collate function."""
    if function.name.value in ("__getitem__", "__iter__"):
        return True
    collate = view.keyword(loader, "collate_fn")
    return collate is not None and dotted(collate.value).rpartition(".")[2] == function.name.value


def _moves(view: View, function: cst.FunctionDef) -> list[tuple[cst.Call, Change]]:
    """All calls of a function that put something on a GPU, with the change that leaves it where it is."""
    found: list[tuple[cst.Call, Change]] = []
    for node in view.inside(function.body):
        if not isinstance(node, cst.Call):
            continue
        device = view.keyword(node, "device")
        if dotted_attribute(node) in _MOVES and isinstance(node.func, cst.Attribute):
            found.append((node, _without_call(view, node)))
        elif device is not None:
            found.append((node, view.without_argument(node, device)))
    return found


def _without_call(view: View, call: cst.Call) -> Change:
    """``x.cuda()`` as ``x``."""
    assert isinstance(call.func, cst.Attribute)
    start = view.after(call.func.value, "").start
    return Change(start, view.end(call), "")


def _loops(case: Case) -> Iterator[tuple[View, cst.For]]:
    """The loop that takes the batches."""
    found = case.at(case.outcome.launch[-1].site) if case.outcome.launch else None
    if found is None:
        return
    view, iterated = found
    for around in view.around(iterated):
        if isinstance(around, cst.For) and isinstance(around.body, cst.IndentedBlock):
            if iterated in view.inside(around.iter):
                yield view, around
            return


def _in_loop(
    home: View, loop: cst.For, view: View, function: cst.FunctionDef, moves: list[tuple[cst.Call, Change]]
) -> Change | None:
    """A statement at the beginning of the loop that moves what the workers moved; None where the shapes differ."""
    targets = _target_names(loop)
    moved = _moved_results(view, function, [m for m, _ in moves], len(targets))
    if moved is None or _batch(loop) is None:
        return None
    wanted: list[tuple[str, str]] = []
    for i, call in moved:
        device = _device_in_loop(view, call, home, loop)
        if device is None:
            return None
        wanted.append((targets[i], device))
    left = ", ".join(name for name, _ in wanted)
    right = ", ".join(f"{name}{device}" for name, device in wanted)
    return home.lines_before(loop.body.body[0], [f"{left} = {right}"])


def _batch(loop: cst.For) -> cst.BaseAssignTargetExpression | None:
    """What a batch is bound to; of ``for i, batch in enumerate(loader)`` the second."""
    target = loop.target
    match loop.iter:
        case cst.Call(func=cst.Name(value="enumerate")):
            if isinstance(target, cst.Tuple) and len(target.elements) == 2:
                inner = target.elements[1].value
                return inner if isinstance(inner, cst.Name | cst.Tuple | cst.List) else None
            return None
        case cst.Name() | cst.Attribute() | cst.Call():
            return target
    return None


def _target_names(loop: cst.For) -> list[str]:
    batch = _batch(loop)
    if isinstance(batch, cst.Name):
        return [batch.value]
    if isinstance(batch, cst.Tuple | cst.List):
        return [e.value.value for e in batch.elements if isinstance(e, cst.Element) and isinstance(e.value, cst.Name)]
    return []


def _moved_results(
    view: View, function: cst.FunctionDef, moves: list[cst.Call], count: int
) -> list[tuple[int, cst.Call]] | None:
    """Which parts of what a function returns were moved; None where that cannot be read off its one ``return``."""
    results = [n for n in view.inside(function.body) if isinstance(n, cst.Return | cst.Yield)]
    if len(results) != 1:
        return None
    value = results[0].value
    parts: list[cst.BaseExpression] = []
    if isinstance(value, cst.Tuple | cst.List):
        parts = [e.value for e in value.elements]
    elif isinstance(value, cst.BaseExpression):
        parts = [value]
    if len(parts) != count:
        return None
    found = [(i, move) for i, part in enumerate(parts) for move in moves if part is move]
    return found if len(found) == len(moves) and len({i for i, _ in found}) == len(found) else None


def _device_in_loop(view: View, move: cst.Call, home: View, loop: cst.For) -> str | None:
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
    if last and names.known_at(home, frozenset({last}), loop):
        return f".to({last}, non_blocking=True)"
    return None
