"""What most functions do: nothing, give an argument back, call one, end the program."""

from __future__ import annotations

import sys
from collections.abc import Hashable

from cudalint.machine import exceptions, file_questions, gpu_memory, listings, paths, questions
from cudalint.machine.effects.concurrency import supposed
from cudalint.machine.effects.gpu import arrays, choices, cuda, guesses
from cudalint.machine.effects.torch import supposed_loaders
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Class, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import (
    FALSE,
    NONE,
    SENTINEL,
    STATE,
    WRAPS,
    Atom,
    Const,
    Lib,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    constant,
    unknown,
)
from cudalint.structs import replace

# The decorator that gives back what it is given.
IDENTITY: Value = (Lib("cudalint.identity"),)


def nothing(machine: Machine, call: Call) -> Results:
    """A function without effect; its model may say what it returns."""
    if call.spec.get("returns") is None or choices.idle(machine, call):
        asked = None if call.kwargs else questions.asks(call.path, call.args)
        if asked is not None:
            return [(call.state, asked)]
        return [(call.state, unknown("call", call.site, call.state.process.identity))]
    return [(call.state, arrays.returned(machine, call, call.state))]


def sentinel(machine: Machine, call: Call) -> Results:
    """``object()``: itself, and nothing else."""
    if call.args or call.kwargs:
        return [(call.state, unknown("call", call.site, call.state.process.identity))]
    return [(call.state, unknown("call", call.site, call.state.process.identity, SENTINEL))]


def stop(machine: Machine, call: Call) -> Results:
    """``sys.exit()`` and its like: this path ends, by an exception whose ``kind`` its model says.

    A handler that ends its process as a failure lets what it handles go on to whoever waits for the process.
    """
    name = call.text("kind", "SystemExit")
    given = None if call.open else list(call.args)
    value = exceptions.made(f"builtins.{name}", given, call.site, call.state) if call.frame.tries else None
    raised = Raised(None, (name,), value=value or ())
    if call.frame.handling and not call.frame.handling[-1].harmless and _is_failure(call.get("status") or ()):
        handled = call.frame.handling[-1]
        raised = replace(raised, outcome=handled.outcome, launch=handled.launch)
    return machine.fail(call.state, call.frame, raised)


def _is_failure(status: Value) -> bool:
    """Whether a process that ends so has failed: by a number that is not 0, or with words."""
    found = constant(status)
    return isinstance(found, int | str) and found not in (0, False)


def _names_itself(machine: Machine, call: Call) -> bool:
    """Whether the arguments of a program that it gives to a runner name its own file."""
    given = machine.exact_items(call.get("args") or (), call.state) or ()
    return any(paths.is_file_of(value, machine.main) for value in given)


def control(machine: Machine, call: Call) -> Results:
    """``st.button()``: what a user chose; nothing in a child that imports the page again, where nobody can."""
    if machine.is_import_of_main(call.state):
        return [(call.state, (FALSE[0],))]
    return [(call.state, unknown("control", call.site))]


def run_tests(machine: Machine, call: Call) -> Results:
    """``unittest.main()``: the tests of the program run from here, and it ends, unless ``exit=False``.

    ``pytest.main([__file__])`` gives back how that went.
    """
    by_pytest = call.text("kind") == "pytest"
    are_own = not by_pytest or _names_itself(machine, call)
    if call.state.process.is_main and machine.record.testing is None and are_own:
        machine.record.testing, machine.record.by_pytest = call.state.clone(), by_pytest
    if by_pytest or call.get("exit") == FALSE:
        return [(call.state, unknown("tests", call.site))]
    return stop(machine, call)


def through(machine: Machine, call: Call) -> Results:
    """A function that gives its first argument back (decorators, identity wrappers)."""
    return [(call.state, call.args[0] if call.args else unknown("through", call.site))]


def decorator_factory(machine: Machine, call: Call) -> Results:
    """``@decorator(option)``: what it returns gives its argument back."""
    if call.args and any(isinstance(a, Ref) for a in call.args[0]):
        return through(machine, call)
    return [(call.state, IDENTITY)]


def call_argument(machine: Machine, call: Call) -> Results:
    """A function that calls the function it is given, in this process."""
    function = call.get(call.text("function", "function")) or (call.args[0] if call.args else None)
    if function is None:
        return [(call.state, unknown("call", call.site))]
    state: State | None = call.state
    if call.text("gpu"):
        framework = call.text("framework", "torch")
        state = cuda.touch(machine, call.state, call.frame, call.site, framework, call.text("gpu"), call.label)
    if state is None:
        return []
    # What its model names are arguments of its own.
    args = machine.exact_items(call.get("args") or (), call.state) or list(call.args[max(1, len(call.params)) :])
    return machine.call_value(function, args, {}, state, call.frame, call.site)


def own_method(machine: Machine, call: Call) -> Results:
    """``dataset[i]``, ``transform(x)`` of a library's class: calls what the program's class has for it.

    That is what it defines, or what the library's class has.
    """
    state, receiver = call.state, call.receiver
    if isinstance(receiver, Ref) and gpu_memory.placed_tensor(receiver, state) is not None:
        # The library's own, on a device.
        return unmodelled_method(machine, call, receiver)
    if not isinstance(receiver, Ref) or not isinstance(state.get(receiver), Instance):
        return [(state, unknown("call", call.site, state.process.identity))]
    return [
        result
        for after, method in machine.attribute((receiver,), call.text("method"), state, call.frame, call.site)
        for result in machine.call_value(method, call.args, call.kwargs, after, call.frame, call.site)
    ]


def class_method(machine: Machine, call: Call) -> Results:
    """``Function.apply(x)`` of a library's class: calls what the program's class defines for it, with a context."""
    cls = call.receiver
    found = call.state.get(cls) if isinstance(cls, Ref) else None
    method = machine.attribute((cls,), call.text("method"), call.state, call.frame, call.site) if cls else []
    if not isinstance(found, Class) or not method:
        return [(call.state, unknown("call", call.site, call.state.process.identity))]
    state, function = method[0]
    args = [unknown("context", call.site), *call.args]
    return machine.call_value(function, args, call.kwargs, state, call.frame, call.site)


def unmodelled(machine: Machine, call: Call) -> Results:
    """A library function that no model names: on arrays it works where they lie, else its result is unknown."""
    state, path = call.state, call.path
    framework = machine.library.framework_of(path)
    is_of_python = path.partition(".")[0] in sys.stdlib_module_names
    function = None if is_of_python else machine.called_one(call.args, state)
    made: tuple[Hashable, ...] = (call.site, state.process.identity, len(state.facts), path)
    made = made if function is None else (*made, (WRAPS, function))
    if framework is not None and function is not None:
        return [(state, unknown("call", *made))]
    if framework is not None:
        results = arrays.like(machine, replace(call, spec={"framework": framework, "does": "like"}))
        return [(s, tuple(_object_of(path, a) for a in value)) for s, value in results]
    machine.evaluated[call.site] += 1
    asked = questions.asks(path, call.args)
    asked = file_questions.asked(path, None, call.args, machine.library, state) if asked is None else asked
    if asked is not None and not call.kwargs:
        return [(state, asked)]
    result = guesses.holder_of(machine, call)
    result = result or unknown("call", *made, *_follows_from(machine, call))
    loaded = supposed_loaders.supposed(machine, call, result)
    loaded = supposed.as_known(machine, call, result) if loaded is None else loaded
    if loaded is not None:
        return loaded
    return [
        (after, result)
        for made_here in guesses.after_making(machine, call)
        for ready in guesses.after_computing(machine, replace(call, state=made_here))
        for after in supposed.after_starting(machine, replace(call, state=ready))
    ]


def _follows_from(machine: Machine, call: Call) -> tuple[Const | Unknown | Rank, ...]:
    """What a value follows from, such as the path ``os.path.join(folder, name)``: part of what it is."""
    library = machine.library
    effect = library.process_effect(call.path)
    follows = (effect is not None and effect.gives == "value") or library.traits.has(call.path, "lists-files")
    if not follows or call.open or call.kwargs:
        return ()
    parts = [_one_of(value) for value in call.args]
    seen = tuple(part for part in parts if isinstance(part, Const | Unknown | Rank))
    return seen if len(seen) == len(parts) else ()


def _one_of(value: Value) -> Atom | None:
    """What a value is; of several items of one thing, or what was made of them alike, any of them."""
    found = {listings.whichever(atom) for atom in value} if len(value) > 1 else set()
    return value[0] if len(value) == 1 or (len(found) == 1 and None not in found) else None


def unmodelled_method(machine: Machine, call: Call, receiver: Atom) -> Results:
    """A method of a library value that no model names: on arrays it reads them."""
    state = call.state
    if isinstance(receiver, Tensor):
        if _may_stay_aside(machine, call.path, receiver):
            return [(state, unknown("method", call.site, state.process.identity))]
        if _is_foreign(machine, call.path, receiver):
            result = unknown("method", call.site, state.process.identity)
            return [(after, result) for after in guesses.after_foreign(machine, call, receiver)]
        if call.path.endswith((".items", ".keys")) and not machine.library.is_a(receiver.type, "torch.Tensor"):
            return [(state, _named(call, _held_by(machine, receiver)))]
        results = arrays.like(machine, replace(call, spec={"framework": receiver.framework}))
        held: dict[Atom, Atom] = {receiver: _held_by(machine, receiver)}
        return [(s, tuple(held.get(atom, atom) for atom in value)) for s, value in results]
    library = machine.library
    if isinstance(receiver, Ref) and (library.is_aside(call.path) or guesses.only_asks(call.path, library)):
        return [(state, unknown("method", call.site, state.process.identity))]
    if isinstance(receiver, Ref) and gpu_memory.placed_tensor(receiver, state) is not None:
        name = call.path.rpartition(".")[2]
        said = "calling the model" if name == "__call__" else f"{name}()"
        after = cuda.read(machine, receiver, state, call.frame, call.site, said)
        memory = gpu_memory.placed_tensor(receiver, state)
        return [] if after is None else [(after, (memory.computed,) if memory is not None else ())]
    return [(state, unknown("method", call.site, state.process.identity))]


def _held_by(machine: Machine, holder: Tensor) -> Tensor:
    """What a method gives of what an object such as an optimizer keeps on the GPU: its state, and not the object."""
    kinds = ("torch.Tensor", "torch.nn.Module")
    if holder.framework != "torch" or any(machine.library.is_a(holder.type, kind) for kind in kinds):
        return holder
    return replace(holder, type=STATE)


def _named(call: Call, held: Tensor) -> Value:
    """What a mapping on the GPU gives: the names in it are texts or numbers, whatever stands under them."""
    name = unknown("key", call.site)
    if call.path.endswith(".keys"):
        return name
    tensor = replace(held, type="torch.Tensor") if held.framework == "torch" else held
    pair = call.state.new(("item", call.site), Sequence("tuple", (name, (tensor,))))
    return (call.state.new(("items", call.site), Sequence("list", None, (pair,))),)


# Parts of a model that are arrays, whose methods read them.
_PARAMETERS = frozenset({"weight", "bias"})


def _is_foreign(machine: Machine, path: str, moved: Tensor) -> bool:
    """Whether only code that nobody knows can have this method of what was moved: neither tensors nor modules do."""
    name = path.removeprefix(f"{moved.type}.")
    library = machine.library
    return all(library.lacks(kind, name) for kind in (moved.type, "torch.nn.Module")) and not library.computes(name)


def _may_stay_aside(machine: Machine, path: str, moved: Tensor) -> bool:
    """Whether a method of some part of what lies on a GPU need not touch it there: a model's part may prepare data."""
    *parts, name = path.removeprefix(f"{moved.type}.").split(".")
    if machine.library.is_aside(path):
        return True
    return bool(parts) and parts[-1] not in _PARAMETERS and not machine.library.computes(name)


def _object_of(path: str, atom: Atom) -> Atom:
    """What a class makes of GPU data is an object of its own that keeps it there, such as an optimizer."""
    name = path.rpartition(".")[2]
    if not isinstance(atom, Tensor) or not name[:1].isupper() or name.endswith(("Tensor", "Variable", "Parameter")):
        return atom
    return replace(atom, type=path)


def identity(machine: Machine, call: Call) -> Results:
    """``f(x)`` that is ``x``."""
    return [(call.state, call.args[0] if call.args else NONE)]
