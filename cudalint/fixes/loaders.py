"""Loaders that pin, shuffle or carry what is on the GPU already."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, names
from cudalint.fixes.devices import without_element
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.queries import asks_for_gpus
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind
from cudalint.text.itself import reads_itself

# Arguments of a loader that mean something only with workers; torch refuses most of them without.
_FOR_WORKERS = (
    "num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout", "worker_init_fn",
)  # fmt: skip
_MOVES = ("cuda", "to")
_COMPUTES_ATTRIBUTES = (b"property", b"__getattr__", b"__getattribute__", b"__get__")
_ASKS_FOR_PINNING = (
    b"is_pinned", b".pin_memory", b"def pin_memory", b'"pin_memory"', b"'pin_memory'", b"vars(", b"__dict__",
    # With workers, a thread pins.
    b"active_count", b"threading.enumerate",
)  # fmt: skip
_OTHER_PATHS = "the default device may be another one on other paths"
# torch's own generator begins with a random seed in each process, and obeys torch.manual_seed(); each new one begins
# with 67280421310721 (c10::default_rng_seed_val), so the order would be the same one in every run.
_OTHER_NUMBERS = "a generator on the GPU draws other numbers from the same seed"
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
        if _asks_for_pinning(case):
            yield Proposal(message, dropped, doubt="the program asks whether something is pinned")
        elif _is_own(case, call):
            yield Proposal(message, dropped, doubt="a loader of the program's own is told `pin_memory`")
        elif any(reads_itself(source.text) for source in case.basis.files.sources.values()):
            yield Proposal(message, dropped, doubt="the program may read its own text")
        elif not _keeps_its_kind(view, call):
            yield Proposal(message, dropped, doubt="a batch that is a tuple becomes a list where it is pinned")
        elif isinstance(argument.value, cst.Name) or (dotted(argument.value) and not _computes_attributes(case)):
            yield Proposal(message, dropped, Proof.NOTHING)
        else:
            yield Proposal(message, dropped, doubt="what computes `pin_memory` is dropped with it")
        return
    doubt = "other loaders may take their arguments from the same place"
    for change in _pins_elsewhere(view):
        yield Proposal(message, in_file(view, [change]), doubt=doubt)


def _asks_for_pinning(case: Case) -> bool:
    """Whether some file asks a batch or a loader whether it is pinned: another loader may be made by the same call."""
    return _has_words(case, _ASKS_FOR_PINNING)


def _is_own(case: Case, loader: cst.Call) -> bool:
    """Whether some file defines what makes the loader, which may do something else with what it is told."""
    name = dotted(loader.func).rpartition(".")[2]
    return _has_words(case, (f"class {name}(".encode(), f"def {name}(".encode()))


def _keeps_its_kind(view: View, loader: cst.Call) -> bool:
    """Whether batches are of the kind that they have when they are pinned: tuples become lists there."""
    collate = view.keyword(loader, "collate_fn")
    if collate is None:
        return True
    name = dotted(collate.value).rpartition(".")[2]
    made = [n for n in view.each(view.tree, cst.FunctionDef) if n.name.value == name]
    if isinstance(collate.value, cst.Lambda):
        return _stays_as_it_is(view, collate.value.body)
    returned = [n.value for n in view.each(made[0], cst.Return)] if len(made) == 1 else [None]
    return all(value is not None and _stays_as_it_is(view, value) for value in returned)


def _stays_as_it_is(view: View, batch: cst.BaseExpression) -> bool:
    """Whether an expression gives a tensor, or a list or a dict without tuples, by how it is written."""
    if any(isinstance(node, cst.Tuple) for node in view.inside(batch)):
        return False
    match batch:
        case cst.List() | cst.ListComp() | cst.Dict() | cst.DictComp():
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) as call:
            return name in (*_MOVES, "default_collate") or dotted(call.func).startswith("torch.")
    return False


def _computes_attributes(case: Case) -> bool:
    """Whether to read an attribute may run code of the program."""
    return _has_words(case, _COMPUTES_ATTRIBUTES)


def _has_words(case: Case, words: tuple[bytes, ...]) -> bool:
    texts = [source.data for source in case.basis.files.sources.values()]
    return any(word in text for text in texts for word in words)


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
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="setdefault")), args=[key, value]):
                if _is_pin(key.value):
                    yield view.replace(value.value, "False")


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
    """A loader without the arguments that it is given by name for workers."""
    return view.without_arguments(
        call, [a for a in call.args if a.keyword is not None and a.keyword.value in _FOR_WORKERS]
    )


def generator_on_device(case: Case) -> Iterator[Proposal]:
    """A generator on the default device for what draws an order: the sampler of a loader, or a split."""
    found = case.call_at(case.outcome.anchor)
    splits = case.outcome.kind is Kind.DEFAULT_DEVICE_SPLIT
    if found is None or not (splits or case.outcome.detail == "shuffle"):
        return
    view, call = found
    given = view.keyword(call, "generator") or (call.args[2] if splits and len(call.args) > 2 else None)
    made = None if given is None else _made_here(given.value)
    if given is not None and made is None:
        return
    generator = imports.member(view, "torch", "Generator", call)
    device, doubt = _default_device(case, view, call)
    text = f"{generator.text}(device={device})"
    changes = view.with_keyword(call, "generator", text) if made is None else [view.replace(made, text)]
    last = _ONE_SEED if made is None else _OTHER_NUMBERS
    yield Proposal(
        f"{'split' if splits else 'shuffle'} with a generator on the default device",
        in_file(view, [*generator.changes, *changes]),
        doubt=last if doubt is None else f"{doubt}; {last}",
    )


def _made_here(value: cst.BaseExpression) -> cst.Call | None:
    """The call that makes a generator, ``torch.Generator()``, where it stands as the argument, also with a seed."""
    while isinstance(value, cst.Call):
        if dotted(value.func).rpartition(".")[2] == "Generator":
            return value
        value = value.func.value if isinstance(value.func, cst.Attribute) else value.func
    return None


def _default_device(case: Case, view: View, place: cst.CSTNode) -> tuple[str, str | None]:
    """The default device as the program writes it, where that means the same at the loader, and what is uncertain."""
    written = _written_device(case, view, place)
    # On other paths it is another one, where a generator on the GPU would fail.
    is_always = case.finding.condition is None and not case.outcome.on_some_paths
    asked = None if written is not None and is_always else _asked_device(case, view, place)
    if asked is not None:
        return asked, "torch says what that is from version 2.3 on"
    text, doubt = written or ('"cuda"', _OTHER_PATHS)
    module = case.basis.files.module(case.outcome.cause[-1].site.module) if case.outcome.cause else None
    if module is None or asks_for_gpus(module):
        return text, "the program may also run without a GPU"
    return text, doubt


def _written_device(case: Case, view: View, place: cst.CSTNode) -> tuple[str, str | None] | None:
    """The device that the default was set to, as it can be said again; None where it cannot."""
    chosen = case.cause_call()
    if chosen is None or len(chosen[1].args) != 1:
        return None
    value = chosen[1].args[0].value
    if isinstance(value, cst.Call) and dotted(value.func).endswith("device") and len(value.args) == 1:
        value = value.args[0].value
    if isinstance(value, cst.SimpleString):
        text = value.evaluated_value
        return chosen[0].source(value) if isinstance(text, str) and text.startswith("cuda") else '"cuda"', None
    if chosen[0] is not view or not isinstance(value, cst.Name):
        return None
    used = names.read(view, value)
    known = names.global_names(view, used, names.scope_of(view, value)) and names.known_at(view, used, place)
    return (view.source(value), _OTHER_PATHS) if known else None


def _asked_device(case: Case, view: View, place: cst.CSTNode) -> str | None:
    """A question for the default device, which torch answers where nothing but a call chose it."""
    chosen = case.cause_call()
    asked = imports.member(view, "torch", "get_default_device", place)
    by_call = chosen is not None and dotted(chosen[1].func).rpartition(".")[2] == "set_default_device"
    return f"{asked.text}()" if by_call and not asked.changes else None


def without_default(case: Case) -> Iterator[Proposal]:
    """Advice for workers that make tensors on a default device."""
    del case
    yield Proposal(
        "name the GPU where it is wanted (`device=`, `.to(...)`) in place of a default device for all code",
        {},
        doubt="which tensors are wanted on the GPU the code does not say",
        shown=True,
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


def dotted_attribute(call: cst.Call) -> str:
    """The last name of what is called."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)
