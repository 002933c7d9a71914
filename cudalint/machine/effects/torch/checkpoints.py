"""Files of tensors: they are loaded to the device from which they were saved."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import file_names, operators, questions
from cudalint.machine.effects.gpu import arrays, choices, cuda
from cudalint.machine.effects.stdlib import buffers, copies
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Pickler, carried
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Const, Dev, Rank, Ref, Tensor, Unknown, Value, const, constant, only, unknown
from cudalint.structs import replace


def save(machine: Machine, call: Call) -> Results:
    """``torch.save(obj, file)``: reads the data, and notes whether some of it lies on the GPU."""
    machine.makes_file(call.state)
    place = file_names.named(call.get("f") or ())
    value = call.get("obj") or NONE
    found = list(carried(value, call.state, Pickler.NAMES))
    if place is not None:
        on_gpu = any(one.certain for one in found)
        own = on_gpu and has_own_gpu(call.state.process)
        for known in _names_of(place):
            machine.saved[known] = machine.saved.get(known, True) and on_gpu
            if not on_gpu:
                machine.loaded.pop(known, None)
            elif machine.saved[known] and own:
                _found_by_the_next_run(machine, known)
        if own:
            _resumed(machine, value, call.state)
    state: State | None = call.state
    for one in found:
        if state is not None and one.what not in ("lock", "unpicklable"):
            state = cuda.read(machine, one.atom, state, call.frame, call.site, call.label)
    if state is None:
        return []
    copied = copies.copied_deep(machine, replace(call, state=state, args=[value]), call.label)
    for after, copy in copied if _is_buffer(call) else ():
        buffers.fill(call.get("f") or (), copy, after)
    return [(after, NONE) for after, _ in copied] if _is_buffer(call) else [(state, NONE)]


def _names_of(place: Const | Unknown) -> list[Const | Unknown]:
    """A file by its name, and as one of a series."""
    of_series = file_names.series(place)
    return [place] if of_series is None else [place, of_series]


def _is_buffer(call: Call) -> bool:
    """Whether something is saved into an object of this process, and not to a file."""
    atom = only(call.get("f") or ())
    return isinstance(atom, Ref) and isinstance(call.state.get(atom), LibraryObject)


def load(machine: Machine, call: Call) -> Results:
    """``torch.load(file, map_location)``: where ``map_location`` says; without it where the data was when saved."""
    places = [file_names.named((atom,)) for atom in call.get("f") or ()]
    place = places[0] if len(places) == 1 else None
    told = _told(call)
    if told != NONE:
        device = next((d for d in operators.device_of(told) if d.is_gpu), None)
    else:
        sources = [_saved_from(machine, call.state, each) for each in places]
        device = (sources[0] if sources and all(sources) else None) or _saved_in(call)
        device = device or _saved_where_listed(machine, call)
    if device is None:
        found = unknown("load", call.site)
        if told == NONE:
            _may_have_been_saved(machine, call, place, found)
        return [(call.state, found)]
    process = call.state.process
    on_first = cuda.current_index(process, device) == 0
    if on_first and has_own_gpu(process) and questions.only_rank(call.state.facts) is None:
        detail = _GOES_BACK if told == NONE else f"{call.text('device', _MAPPED)} names it"
        machine.emit(_on_one_gpu(machine, call, detail))
    state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, device, context=True)
    if state is None:
        return []
    return [(state, (arrays.new_tensor(machine, call, state, device, _LOADED),))]


def _told(call: Call) -> Value:
    """The device that a call, or its object, was told; a format that keeps none is loaded to the host without that."""
    name = call.text("device", _MAPPED)
    return choices.argument(call, name) or (NONE if name == _MAPPED else const("cpu"))


_MAPPED = "map_location"
_LOADED = "torch.Checkpoint"
_PART = f"{_LOADED}.Part"
_GOES_BACK = "without map_location it goes back to where it was saved"
_OWN = f"what is asked of it is what this program saves, and {_GOES_BACK}"
# Of so many keys that a program saves values under, and asks a file for, the file is taken to be one that it saved.
_SAME_KEYS = 2


def item(machine: Machine, call: Call) -> Results:
    """What was loaded, by a key: the names that the model calls plain hold no data, and below others nobody knows."""
    whole, key = call.receiver, constant(call.get("key") or ())
    if not isinstance(whole, Tensor):
        return [(call.state, unknown("loaded", call.site))]
    if not isinstance(key, str):
        return arrays.tensor_data(machine, whole, "[...]", call.state, call.frame, call.site)
    if whole.type == _PART or key in call.texts("plain"):
        return [(call.state, unknown("loaded", call.site, key))]
    return [(call.state, (replace(whole, type=_PART),))]


def _saved_from(machine: Machine, state: State, place: Const | Unknown | None) -> Dev | None:
    """The GPU from which the program itself saved a file: of ranks that share the file, the first one's."""
    known = place if place in machine.saved or not isinstance(place, Unknown) else file_names.series(place)
    if place is None or known is None or not machine.saved.get(known, False):
        return None
    if not _is_one_file(machine, known):
        return None
    return Dev("cuda", 0 if has_own_gpu(state.process) and not _is_of_rank(place, state.process) else None)


def _saved_where_listed(machine: Machine, call: Call) -> Dev | None:
    """The GPU from which the program saved all files that a folder gave when it was asked for some."""
    listing = file_names.listing_of(call.get("f") or ())
    if listing is None or not _is_one_file(machine, listing.folder):
        return None
    places = ((place, on_gpu) for place, on_gpu in machine.saved.items() if isinstance(place, Const | Unknown))
    found = [on_gpu for place, on_gpu in places if listing.has(place)]
    return Dev("cuda", 0 if has_own_gpu(call.state.process) else None) if found and all(found) else None


def _saved_in(call: Call) -> Dev | None:
    """The GPU on which all lay that the program saved into a buffer."""
    saved = buffers.saved_in(call.get("f") or (), call.state)
    found = () if saved is None else list(carried(saved, call.state, Pickler.NAMES))
    return next((one.memory.device for one in found if one.certain and one.memory is not None), None)


def has_own_gpu(process: Process) -> bool:
    """Whether a rank uses the GPU of its number."""
    chosen = process.device()
    indices = [chosen.index] if chosen is not None else [context.index for context in process.contexts]
    return any(isinstance(index, Rank) and index.kind in ("local", "global") for index in indices)


def _may_have_been_saved(machine: Machine, call: Call, place: Const | Unknown | None, found: Value) -> None:
    """Keep what goes wrong where each rank loads a file that nobody saved so far: an earlier run may have."""
    process = call.state.process
    joined = process.group is not None and not process.group.alone
    ranks = process.rank is not None or process.local_rank_at_hand or joined or has_own_gpu(process)
    if not ranks or questions.only_rank(call.state.facts) is not None:
        return
    if place is not None and not _is_of_rank(place, process) and _is_one_file(machine, place):
        for known in _names_of(place) if isinstance(place, Unknown) else [place]:
            machine.loaded.setdefault(known, []).append(_on_one_gpu(machine, call, _GOES_BACK))
    if not any(map(_names_rank, call.get("f") or ())):
        sym = next(atom.sym for atom in found if isinstance(atom, Unknown))
        machine.loads.setdefault(sym, (_on_one_gpu(machine, call, _OWN), set()))


def _found_by_the_next_run(machine: Machine, place: Const | Unknown) -> None:
    """Ranks save what lies on the GPU to a file that they loaded before: the next run finds it there."""
    for outcome in machine.loaded.pop(place, ()):
        machine.emit(outcome)


def _resumed(machine: Machine, value: Value, state: State) -> None:
    """Ranks save what lies on the GPU under the keys that they asked a file for, whose name an option gave, say."""
    atom = only(value)
    saved = state.get(atom) if isinstance(atom, Ref) else None
    keys = set(saved.items) if isinstance(saved, Dict) else set()
    for sym, (outcome, asked) in list(machine.loads.items()):
        if len(asked) >= _SAME_KEYS and asked <= keys:
            machine.emit(outcome)
            del machine.loads[sym]


def _on_one_gpu(machine: Machine, call: Call, detail: str) -> Outcome:
    state = call.state
    return outcome_of(
        machine,
        state,
        Kind.LOADED_ONTO_ONE,
        call.site,
        "cost",
        effect=machine.chain(state, call.site, f"{call.label} goes to GPU 0, beside the rank's own"),
        subject=call.label,
        detail=detail,
        launch=state.process.launch,
    )


def _names_rank(part: Hashable) -> bool:
    """Whether the number of a rank is in a name."""
    match part:
        case Rank():
            return True
        case Unknown(sym=inner):
            return _names_rank(inner)
        case tuple():
            return any(map(_names_rank, part))
    return False


def _is_of_rank(part: Hashable, process: Process) -> bool:
    """Whether each rank may have a file of its own.

    Its number is in the name, or what a call gave to this process, or a method of texts that hides what it was given.
    """
    match part:
        case Rank():
            return True
        case Unknown(sym=sym):
            return _is_of_rank(sym, process)
        case ("call", Site(), tuple(identity), int(), str(), *parts) if parts:
            return any(_is_of_rank(inner, process) for inner in parts)
        case ("call", Site(), tuple(identity), *_) if identity == process.identity:
            return True
        case ("str", str(), *_):
            return True
        case tuple():
            return any(_is_of_rank(inner, process) for inner in part)
    return False


def _is_one_file(machine: Machine, part: object) -> bool:
    """Whether a name that the code does not show was made once, so that it is the same file wherever it is met."""
    match part:
        case Unknown(sym=sym):
            return sym != "joined" and _is_one_file(machine, sym)
        case Site():
            return machine.evaluated[part] <= 1
        case tuple():
            return all(_is_one_file(machine, inner) for inner in part)
    return True
