"""Functions that no model describes and that are given a dataset of the program, or what is done with its items.

That they give a loader like torch's, whose workers fork, and datasets like its own, is a guess: what follows from it is
never certain.
"""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.servers.handlers import is_function
from cudalint.machine.effects.torch import loaders
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Const, Ref, Value, only
from cudalint.structs import replace

# What is handed on to the loader; whether it pins is not guessed.
_HANDED = ("collate_fn", "worker_init_fn", "persistent_workers", "multiprocessing_context", "batch_size")
_GIVES_ITEMS = ("__getitem__", "__getitems__", "__iter__")
_MADE_OF = frozenset({"<transform>", "<tensors>", "<wrapped>", "<stacked>"})


def supposed(machine: Machine, call: Call, result: Value) -> Results | None:
    """What an unknown function gives that may be a loader or a dataset; None where nothing says so."""
    workers = _number_of_workers(machine, call)
    dataset = None if workers is None else _dataset(machine, call)
    transform = None if dataset else _transform(machine, call)
    wrapped = None if dataset or transform else _wrapped(machine, call)
    if dataset is None and transform is None and wrapped is None:
        return None
    state, question = call.state, (questions.STARTS, call.path)
    known = state.fact(question)
    if known is False:
        return None
    other = [] if known else [(state.split(question), result)]
    fields = {name: value for name, value in (("<transform>", transform), ("<wrapped>", wrapped)) if value is not None}
    if fields:
        made = LibraryObject(call.path, fields, call.site)
        return [(state, (state.new(("dataset", call.site), made),)), *other]
    handed = {name: value for name in _HANDED if (value := call.kwargs.get(name)) is not None}
    given = {"dataset": dataset or NONE, "num_workers": workers or NONE, **handed}
    made_loaders = loaders.loader(machine, replace(call, args=[], kwargs=given, spec={"does": "loader"}))
    if machine.library.unfamiliar.loads(call.path):
        return [*made_loaders, *other]
    return [*((after, result) for after in _read(machine, call, made_loaders)), *other]


def _read(machine: Machine, call: Call, made: Results) -> list[State]:
    """The states after something goes through a loader that it makes for itself, if that fails in forked workers."""
    states: list[State] = []
    for state, loader in made:
        ref = only(loader)
        if isinstance(ref, Ref) and state.process.driver is not None and not state.process.forked:
            loaders.loader_iter(machine, replace(call, state=state.clone(), receiver=ref, args=[], kwargs={}))
        states.append(state)
    return states


def _number_of_workers(machine: Machine, call: Call) -> Value | None:
    """How many workers are asked for by name, if there may be any."""
    for name in machine.library.unfamiliar.readers:
        value = call.kwargs.get(name)
        if value is not None and not all(isinstance(a, Const) and a.value in (0, None, False) for a in value):
            return value
    return None


def _dataset(machine: Machine, call: Call) -> Value | None:
    """The first argument that is a dataset of the program, or one that is seen to do something with its items."""
    values = (*call.args, *call.kwargs.values())
    return next((value for value in values if _is_dataset(machine, value, call.state)), None)


def _is_dataset(machine: Machine, value: Value, state: State) -> bool:
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    match found:
        case Instance():
            return any(machine.user_method(found, name, state) is not None for name in _GIVES_ITEMS)
        case LibraryObject(fields=fields):
            return not _MADE_OF.isdisjoint(fields)
    return False


def _transform(machine: Machine, call: Call) -> Value | None:
    """What a class whose name is that of datasets is given to do with each item."""
    say = machine.library.unfamiliar
    if not say.is_dataset(call.path):
        return None
    given = (call.kwargs[name] for name in say.transforms if name in call.kwargs)
    return next((value for value in given if _is_done(machine, value, call.state)), None)


def _wrapped(machine: Machine, call: Call) -> Value | None:
    """The dataset of the program that a class is given whose name is that of datasets: its items come from there."""
    return _dataset(machine, call) if machine.library.unfamiliar.is_dataset(call.path) else None


def _is_done(machine: Machine, value: Value, state: State) -> bool:
    """Whether something is done with each item: by a function, by what is called like one, or by several in turn."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    match found:
        case Instance():
            return machine.user_method(found, "__call__", state) is not None
        case LibraryObject(fields=fields):
            return "<steps>" in fields
    return is_function(value, state)
