"""Classes and makers that nobody models and that are given a GPU: they may use it at once, or later, or never."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import gpu_memory, operators, questions
from cudalint.machine.effects.gpu import choices, cuda
from cudalint.machine.frame import Call
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import HOLDS, Atom, Const, Dev, Tensor, Unknown, Value, unknown

# Classes that keep what they are told, for others to read.
_KEEPERS = (
    "Arguments", "Args", "Box", "Bunch", "Conf", "Config", "Dict", "Field", "Munch", "Namespace", "Options", "Opts",
    "Params", "Schema", "Settings", "Spec",
)  # fmt: skip
# Functions that make something of what they are given.
_MAKERS = ("build_", "create_", "from_", "init_", "load", "make_")


def after_making(machine: Machine, call: Call) -> list[State]:
    """The states after an unknown function was called: two where it may have used the GPU that it is given.

    That is a guess, which its path assumes, so that nothing that rests on it is certain.
    """
    state = call.state
    if not _may_matter(state.process) or not _makes(call.path) or not _is_given_gpu(call):
        return [state]
    question = (questions.USES, call.path)
    known = state.fact(question)
    if known is False:
        return [state]
    other = state.split(question) if known is None else None
    used = cuda.touch(machine, state, call.frame, call.site, "unknown", "init", call.label)
    return [s for s in (used, other) if s is not None]


def as_built(call: Call) -> list[Call]:
    """A call once for each way in which a package may have been built, where its model says that this decides."""
    package = call.text("build")
    if not package or not _may_matter(call.state.process) or (choices.depends(call) and choices.chosen(call) is None):
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


def holder_of(machine: Machine, call: Call) -> Value | None:
    """What an unknown class makes of an object on a GPU, or is given a GPU for: it may compute with that later."""
    memory = _kept(call)
    if memory is None and _makes(call.path) and _is_given_gpu(call):
        origin = machine.chain(call.state, call.site, f"{call.label} puts data on the GPU")
        memory = Tensor("torch", Dev("cuda"), call.state.process.identity, origin, "torch.Tensor")
    return None if memory is None else unknown(HOLDS, memory, call.path, call.site, call.state.process.identity)


def _kept(call: Call) -> Tensor | None:
    """The memory of an object on a GPU that a class is given."""
    name = call.path.rpartition(".")[2]
    if not name[:1].isupper() or name.endswith(_KEEPERS):
        return None
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


def _makes(path: str) -> bool:
    name = path.rpartition(".")[2]
    return name.startswith(_MAKERS) or (name[:1].isupper() and not name.endswith(_KEEPERS))


def _is_given_gpu(call: Call) -> bool:
    """Whether an argument is a GPU by its type or its text; a number alone may be anything."""
    named = call.kwargs.get("device", ())
    return _names_gpu(named) or _says_gpu(named) or any(map(_names_gpu, call.args))


def _says_gpu(value: Value) -> bool:
    """Whether a device is named as many packages do that hide which framework they use: ``"gpu"``, ``"gpu:0"``."""
    return bool(value) and all(isinstance(a, Const) and str(a.value).lower().startswith("gpu") for a in value)


def _names_gpu(value: Value) -> bool:
    devices = operators.device_of(tuple(a for a in value if isinstance(a, Dev) or _is_text(a)))
    return len(devices) == len(value) > 0 and all(device.is_gpu for device in devices)


def _is_text(atom: Atom) -> bool:
    return isinstance(atom, Const) and isinstance(atom.value, str)
