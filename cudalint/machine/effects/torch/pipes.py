"""Pipelines that run a program's functions, some of them in workers: torchdata's nodes, GraphBolt's datapipes."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.torch.datasets import FETCHED, in_turn, moving
from cudalint.machine.effects.torch.loaders import loader
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import NONE, TRUE, Ref, Value, const, strings, unknown
from cudalint.structs import replace


def mapping_node(machine: Machine, call: Call) -> Results:
    """``ParallelMapper(source, f, num_workers=2, method="process")``: what goes through it has workers run f."""
    state = call.state
    function = call.get(call.text("function")) or NONE
    in_processes = "process" in strings(call.get("method") or ())
    fields: dict[str, Value] = {"<transform>": in_turn([function], state, call.site)}
    given = {
        "dataset": (state.new(("mapped", call.site), LibraryObject(call.path, fields, call.site)),),
        "num_workers": call.get("num_workers") or NONE if in_processes else const(0),
        "multiprocessing_context": call.get("multiprocessing_context") or NONE,
    }
    return loader(machine, replace(call, args=[], kwargs=given))


def moved(machine: Machine, call: Call) -> Results:
    """``datapipe.copy_to(device=)``: each item is moved there, by whatever process runs this stage."""
    found = library_object(call)
    if found is None:
        return [(call.state, unknown("datapipe", call.site))]
    before = found.fields.get("<transform>", NONE)
    move = moving(call.get("device") or NONE, call.text("runs"))
    steps = in_turn([*([] if before == NONE else [before]), move], call.state, call.site)
    return _changed(call, found, {} if FETCHED in found.fields else {"<transform>": steps})


def fetched(machine: Machine, call: Call) -> Results:
    """``datapipe.fetch_feature(...)``: stages from here on run in the main process, those before it in workers."""
    found = library_object(call)
    return [(call.state, unknown("datapipe", call.site))] if found is None else _changed(call, found, {FETCHED: TRUE})


def cut_loader(machine: Machine, call: Call) -> Results:
    """``graphbolt.DataLoader(datapipe, num_workers=2)``: nothing runs in workers where nothing is fetched."""
    given = call.get(call.text("iterable")) or NONE
    found = call.state.get(given[0]) if isinstance(given[0], Ref) else None
    if isinstance(found, LibraryObject) and FETCHED in found.fields:
        return loader(machine, call)
    return loader(machine, replace(call, args=call.args[:1], kwargs={**call.kwargs, "num_workers": const(0)}))


def _changed(call: Call, found: LibraryObject, fields: dict[str, Value]) -> Results:
    made = replace(found, fields={**found.fields, **fields})
    return [(call.state, (call.state.new(("datapipe", call.site), made),))]
