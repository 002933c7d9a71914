"""Classes and makers that nobody models and that are given a GPU: they may use it at once, or later, or never."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from cudalint.machine import gpu_memory, operators, questions, unknowns
from cudalint.machine.effects.gpu import choices, cuda
from cudalint.machine.effects.gpu.queries import was_started
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import (
    HOLDS,
    TELLS,
    Atom,
    Const,
    Dev,
    Lib,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    only,
    unknown,
)
from cudalint.models.library import Library
from cudalint.structs import replace

_DEEPEST = 2


def after_making(machine: Machine, call: Call) -> list[State]:
    """The states after an unknown function was called: two where it may have used the GPU that it is given."""
    if not _may_matter(call.state.process) or not _is_made_on_gpu(call, machine.library):
        return [call.state]
    return _guessed(
        call, lambda state: cuda.touch(machine, state, call.frame, call.site, "unknown", "init", call.label)
    )


def after_computing(machine: Machine, call: Call) -> list[State]:
    """The states after an unknown function was given GPU memory of a parent: it may compute with that, which fails."""
    memory = _lent(call, machine.library)
    if memory is None:
        return [call.state]
    name = call.path.rpartition(".")[2]
    return _guessed(call, lambda state: cuda.read(machine, memory, state, call.frame, call.site, name + "()"))


def after_foreign(machine: Machine, call: Call, memory: Tensor) -> list[State]:
    """The states after a method of unknown code, of what lies on a GPU: its name may say that it computes."""
    name = call.path.rpartition(".")[2]
    process = call.state.process
    if not process.forked or process.dead or not machine.library.may_compute(name):
        return [call.state]
    return _guessed(call, lambda state: cuda.read(machine, memory, state, call.frame, call.site, name + "()"))


def _guessed(call: Call, use: Callable[[State], State | None]) -> list[State]:
    """The states where a call may use a GPU, and where it does not.

    That is a guess, which its path assumes, so that nothing that rests on it is certain.
    """
    state = call.state
    question = (questions.USES, call.path)
    known = state.fact(question)
    if known is False:
        return [state]
    other = state.split(question) if known is None else None
    used = use(state)
    return [s for s in (used, other) if s is not None]


def _lent(call: Call, library: Library) -> Tensor | None:
    """The memory of another process that a function is given which does more than note what it is given."""
    process = call.state.process
    name = call.path.rpartition(".")[2]
    if not process.forked or process.dead or name[:1].isupper():
        return None
    if library.unfamiliar.only_notes(name) or only_asks(call.path, library):
        return None
    return _on_gpu(call)


def only_asks(path: str, library: Library) -> bool:
    """Whether a function looks at an object without reading the content of its memory."""
    if path.partition(".")[0] in sys.stdlib_module_names:
        return not library.traits.has(path, "reads-content") or library.traits.has(path, "leaves-content")
    return library.unfamiliar.only_asks(path)


def as_built(call: Call) -> list[Call]:
    """A call once for each way in which a package may have been built, where its model says that this decides."""
    package = call.text("build") or call.text("default-build")
    if not package or not _may_matter(call.state.process) or (choices.depends(call) and choices.chosen(call) is None):
        return [call]
    if not call.text("build") and (choices.told(call) or was_started(call.state.process, call.text("framework"))):
        return [call]
    question = (questions.BUILT, package)
    known = call.state.fact(question)
    if known is True:
        return [call]
    state = call.state if known is False else call.state.clone()
    state.assume(question, False)
    other = replace(call, state=state, spec={**call.spec, "does": "nothing"})
    if known is False:
        return [other]
    call.state.assume(question, True)
    return [call, other]


def built_with(machine: Machine, call: Call) -> Results:
    """``get_available_providers()``: the names in ``methods`` where the package ``key`` was built for a GPU.

    Without, it has the last of them.
    """
    question = (questions.BUILT, call.text("key"))
    known = call.state.fact(question)
    names = [const(name) for name in call.texts("methods")]
    results: Results = []
    for answer in (True, False) if known is None else (known is True,):
        state = call.state.clone() if answer and known is None else call.state
        state.assume(question, answer)
        made = Sequence("list", tuple(names if answer else names[-1:]))
        results.append((state, (state.new(("built", call.site, answer), made),)))
    return results


def holder_of(machine: Machine, call: Call) -> Value | None:
    """What an unknown class makes of an object on a GPU, or is given a GPU for: it may compute with that later.

    One that keeps what it is told may tell that to the next.
    """
    if machine.library.unfamiliar.keeps(call.path) and (
        _is_told_gpu(call, machine.library) or _is_told_by_keeper(call)
    ):
        return unknown(TELLS, call.path, call.site)
    memory = _kept(call, machine.library)
    if memory is None and _is_made_on_gpu(call, machine.library):
        origin = machine.chain(call.state, call.site, f"{call.label} puts data on the GPU")
        memory = Tensor("torch", Dev("cuda"), call.state.process.identity, origin, "torch.Tensor")
    return None if memory is None else unknown(HOLDS, memory, call.path, call.site, call.state.process.identity)


def _kept(call: Call, library: Library) -> Tensor | None:
    """The memory of an object on a GPU that a class is given."""
    name = call.path.rpartition(".")[2]
    if not name[:1].isupper() or library.unfamiliar.keeps(name):
        return None
    return _on_gpu(call)


def _on_gpu(call: Call) -> Tensor | None:
    """The memory of the first argument that lies on a GPU, or holds what does."""
    atoms = (atom for value in (*call.args, *call.kwargs.values()) for atom in value)
    return next((found for atom in atoms if (found := _memory(atom, call.state)) is not None), None)


def _memory(atom: Atom, state: State) -> Tensor | None:
    match atom:
        case Unknown(sym=("holds", Tensor() as memory, *_)):
            return memory
    return gpu_memory.memory_of(atom, state)


def _may_matter(process: Process) -> bool:
    """Whether one more use of CUDA changes anything for this process."""
    return not process.dead and (process.driver is None or process.forked)


def _is_made_on_gpu(call: Call, library: Library) -> bool:
    """Whether an unknown class or function may make something on a GPU that it is given.

    Any function may that is given one by name, unless it only notes that; one that is given some text must be a maker.
    """
    name, say = call.path.rpartition(".")[2], library.unfamiliar
    if say.keeps(name) or say.notes(name) or (not name[:1].isupper() and say.only_notes(name)):
        return False
    if name[:1].isupper() or say.makes(name):
        named = _is_told_gpu(call, library) or any(map(_names_gpu, call.args))
        return named or (not say.works_with_texts(name) and _is_told_by_keeper(call))
    return _is_told_gpu(call, library)


def _is_told_by_keeper(call: Call) -> bool:
    """Whether an argument, or what it holds, was told of a GPU."""
    return any(_tells(value, call.state) for value in (*call.args, *call.kwargs.values()))


def _tells(value: Value, state: State, depth: int = 0) -> bool:
    for atom in value:
        match state.get(atom) if isinstance(atom, Ref) else atom:
            case Unknown(sym=("tells", *_)):
                return True
            case Unknown() as thing if depth < _DEEPEST and _holds_a_teller(thing, state, depth):
                return True
            case Dict(items=items, element=element) if depth < _DEEPEST:
                if any(_tells(v, state, depth + 1) for v in (*items.values(), element)):
                    return True
            case Sequence(items=items, element=element) if depth < _DEEPEST:
                if any(_tells(v, state, depth + 1) for v in (*(items or ()), element)):
                    return True
    return False


def _holds_a_teller(thing: Unknown, state: State, depth: int) -> bool:
    """Whether a program gave something that nobody knows what was told of a GPU, as an attribute."""
    return any(_tells(value, state, depth + 1) for value in unknowns.given_to(thing, state))


def _is_told_gpu(call: Call, library: Library) -> bool:
    """Whether a GPU is named, by its type or its text, or asked for; a number is one under a name that says so."""
    say = library.unfamiliar
    if any(_names_gpu(named) or _says_gpu(named) for named in _given(call, say.devices)):
        return True
    is_asked = any(_all_are(given, lambda value: value is True) for given in _given(call, say.switches))
    return is_asked or any(_all_are(given, _is_number) for given in _given(call, say.numbers))


def _given(call: Call, names: Iterable[str]) -> Iterator[Value]:
    """What a call is given by some names: of a list its first element, for which the others only stand in."""
    for value in (call.kwargs[name] for name in names if name in call.kwargs):
        found = call.state.get(atom) if isinstance(atom := only(value), Ref) else None
        yield found.items[0] if isinstance(found, Sequence) and found.items else value


def _all_are(value: Value, test: Callable[[object], bool]) -> bool:
    return bool(value) and all(isinstance(atom, Const) and test(atom.value) for atom in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _says_gpu(value: Value) -> bool:
    """Whether a device is named as packages do that hide which framework they use: ``"gpu:0"``, ``Device.CUDA``.

    So is one that is named by the provider that computes on it, ``"CUDAExecutionProvider"``.
    """
    return bool(value) and all(map(_says_so, value))


def _says_so(atom: Atom) -> bool:
    match atom:
        case Const(value=str(text)):
            return text.lower().startswith(("gpu", "cudaexec"))
        case Lib(path=path):
            return path.rpartition(".")[2].upper() in ("CUDA", "GPU")
    return False


def _names_gpu(value: Value) -> bool:
    devices = operators.device_of(tuple(a for a in value if isinstance(a, Dev) or _is_text(a)))
    return len(devices) == len(value) > 0 and all(device.is_gpu for device in devices)


def _is_text(atom: Atom) -> bool:
    return isinstance(atom, Const) and isinstance(atom.value, str)
