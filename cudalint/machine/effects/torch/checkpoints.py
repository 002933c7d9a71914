"""Files of tensors: they are loaded to the device from which they were saved."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import replace

from cudalint.machine import operators, questions
from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.effects.stdlib import buffers, copies
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Pickler, carried
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.paths import JOINS
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Const, Dev, Rank, Ref, Tensor, Unknown, Value, constant, only, unknown


def save(machine: Machine, call: Call) -> Results:
    """``torch.save(obj, file)``: reads the data, and notes whether some of it lies on the GPU."""
    machine.makes_file(call.state)
    place = _file(call.get("f") or ())
    value = call.get("obj") or NONE
    found = list(carried(value, call.state, Pickler.NAMES))
    if place is not None:
        on_gpu = any(one.certain for one in found)
        for known in (place, _series(place)):
            if known is not None:
                machine.saved[known] = machine.saved.get(known, True) and on_gpu
        if not on_gpu:
            machine.loaded.pop(place, None)
        elif machine.saved[place] and has_own_gpu(call.state.process):
            _found_by_the_next_run(machine, place)
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


def _is_buffer(call: Call) -> bool:
    """Whether something is saved into an object of this process, and not to a file."""
    atom = only(call.get("f") or ())
    return isinstance(atom, Ref) and isinstance(call.state.get(atom), LibraryObject)


def load(machine: Machine, call: Call) -> Results:
    """``torch.load(file, map_location)``: where ``map_location`` says; without it where the data was when saved."""
    places = [_file((atom,)) for atom in call.get("f") or ()]
    place = places[0] if len(places) == 1 else None
    told = call.get("map_location") or NONE
    if told != NONE:
        device = next((d for d in operators.device_of(told) if d.is_gpu), None)
    else:
        sources = [_saved_from(machine, call.state, each) for each in places]
        device = (sources[0] if sources and all(sources) else None) or _saved_in(call)
    if device is None:
        if told == NONE and place is not None:
            _may_have_been_saved(machine, call, place)
        return [(call.state, unknown("load", call.site))]
    process = call.state.process
    on_first = cuda.current_index(process, device) == 0
    if on_first and has_own_gpu(process) and questions.only_rank(call.state.facts) is None:
        machine.emit(_on_one_gpu(machine, call, _GOES_BACK if told == NONE else "map_location names it"))
    state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, device, context=True)
    if state is None:
        return []
    return [(state, (arrays.new_tensor(machine, call, state, device, _LOADED),))]


_LOADED = "torch.Checkpoint"
_PART = f"{_LOADED}.Part"
# What stands for a number in the names of a series of files.
_NUMBERS, _ANY = re.compile(r"[0-9#]+"), "#"
_GOES_BACK = "without map_location it goes back to where it was saved"


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
    known = place if place in machine.saved or not isinstance(place, Unknown) else _series(place)
    if place is None or known is None or not machine.saved.get(known, False):
        return None
    if not _is_one_file(machine, known):
        return None
    return Dev("cuda", 0 if has_own_gpu(state.process) and not _is_of_rank(place, state.process) else None)


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


def _may_have_been_saved(machine: Machine, call: Call, place: Const | Unknown) -> None:
    """Keep what goes wrong where each rank loads a file that nobody saved so far: an earlier run may have."""
    process = call.state.process
    joined = process.group is not None and not process.group.alone
    ranks = process.rank is not None or process.local_rank_at_hand or joined or has_own_gpu(process)
    if not ranks or questions.only_rank(call.state.facts) is not None:
        return
    if not _is_of_rank(place, process) and _is_one_file(machine, place):
        machine.loaded.setdefault(place, []).append(_on_one_gpu(machine, call, _GOES_BACK))


def _found_by_the_next_run(machine: Machine, place: Const | Unknown) -> None:
    """Ranks save what lies on the GPU to a file that they loaded before: the next run finds it there."""
    for outcome in machine.loaded.pop(place, ()):
        machine.emit(outcome)


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


def _file(value: Value) -> Const | Unknown | None:
    """A file by its name, however and wherever that is put together."""
    atom = only(value)
    if isinstance(atom, Const):
        return atom
    named = _named(atom) if isinstance(atom, Unknown) else None
    return named if named is None or isinstance(named, Const | Unknown) else Unknown(named)


def _named(part: Hashable) -> Hashable:
    """What a name is put together from, without the places where that was written."""
    match part:
        case Unknown(sym=("str", tuple(inner))):
            return _named(Unknown(inner))
        case Unknown(sym=(("bin", *_), str(operator), (left,), (right,))):
            return Unknown(("path" if operator == "/" else operator, _named(left), _named(right)))
        case Unknown(sym=(("bin" | "joined", *_), tuple(texts))):
            return Unknown(("joined", *(tuple(map(_named, text)) for text in texts)))
        case Unknown(sym=("call", Site(), tuple(), int(), str(function), first, *others)):
            if function not in JOINS:
                return Unknown((function, *map(_named, (first, *others))))
            return Unknown(("path", *map(_named, (first, *others)))) if others else _named(first)
    return part


def _series(place: Const | Unknown) -> Unknown | None:
    """The files of one folder whose names differ in their numbers, or in what the code does not show of them."""
    *folders, last = _parts(place)
    pieces = _pieces(last)
    at = max((i for i, piece in enumerate(pieces) if isinstance(piece, str) and "/" in piece), default=None)
    if at is not None:
        folder, _, rest = str(pieces[at]).rpartition("/")
        folders.extend(piece for piece in (*pieces[:at], folder) if piece)
        pieces = [rest, *pieces[at + 1 :]]
    name = _NUMBERS.sub(_ANY, "".join(piece if isinstance(piece, str) else _ANY for piece in pieces))
    is_number = bool(folders) and all(isinstance(piece, str) for piece in pieces)
    return Unknown(("series", *folders, name)) if (is_number or name[:1].isalpha()) and _ANY in name else None


def _parts(place: Const | Unknown) -> list[Hashable]:
    """The folders of a path, and the name in it."""
    match place:
        case Unknown(sym=("path", *parts)):
            return parts
    return [place]


def _pieces(name: Hashable) -> list[Hashable]:
    """The texts that a name is put together from, and what stands between them."""
    match name:
        case Unknown(sym=("joined", *texts)):
            return [_pieces(text[0])[0] if isinstance(text, tuple) and len(text) == 1 else text for text in texts]
        case Const(value=str(text)):
            return [text]
    return [name]


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
