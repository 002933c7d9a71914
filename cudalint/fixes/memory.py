"""Sharing a GPU's memory: frameworks that take most of it are told to take what they need."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.fixes import imports, moves
from cudalint.fixes.devices import earlier
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.machine.outcome import Kind

_SETTINGS = {
    "tensorflow": ("TF_FORCE_GPU_ALLOW_GROWTH", "true", "memory then grows as it is needed, which may fragment it"),
    "jax": ("XLA_PYTHON_CLIENT_PREALLOCATE", "false", "memory is then allocated as it is needed, which is slower"),
}


def growth_first(case: Case) -> Iterator[Proposal]:
    """Ask for memory growth above TensorFlow's first operation."""
    if case.outcome.kind is Kind.GROWTH_TOO_LATE:
        message = "ask for memory growth before TensorFlow's first operation"
        yield from earlier(case, message, "memory then grows as it is needed, which may fragment it")


def share_memory(case: Case) -> Iterator[Proposal]:
    """Let the environment, which all workers inherit, say that memory is taken as needed."""
    setting = _SETTINGS.get(case.outcome.subject)
    launch = case.launch
    found = None if launch is None else case.call_at(launch.made)
    if case.outcome.kind is not Kind.MEMORY_NOT_SHARED or setting is None or found is None:
        return
    view, made = found
    name, value, doubt = setting
    environ = imports.member(view, "os", "environ", made)
    line = f'{environ.text}["{name}"] = "{value}"'
    places = [moves.inserted_before(view, made, [line]), moves.below_imports(view, [line])]
    for place in places:
        if place:
            changes = [*environ.changes, *place]
            yield Proposal(f"set {name} for all processes", in_file(view, changes), doubt=doubt)


def growth_in_each_process(case: Case) -> Iterator[Proposal]:
    """Advice where no place is early enough."""
    setting = _SETTINGS.get(case.outcome.subject, _SETTINGS["tensorflow"])
    yield Proposal(
        f"start the program with {setting[0]}={setting[1]}",
        {},
        doubt="the code does not show a place that is early enough",
        shown=True,
    )


def fewer_contexts(case: Case) -> Iterator[Proposal]:
    """Advice for workers that each open a context on the same GPU."""
    yield Proposal(
        "start one worker per GPU, send it batches, or use threads: each worker's context takes GPU memory of its own",
        {},
        doubt="how many workers a GPU is worth depends on the work",
        shown=True,
    )
