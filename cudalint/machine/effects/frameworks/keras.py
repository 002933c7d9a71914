"""Keras: training reads batches through worker processes where a dataset asks for them."""

from __future__ import annotations

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Generator, Instance, LibraryObject, Object
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import constant_bool, count_of, number_of, task
from cudalint.machine.launch.launching import Start
from cudalint.machine.state import State
from cudalint.machine.values import EACH, NONE, Atom, Bound, Lib, Ref, Task, Value, const, integer, unknown
from cudalint.structs import replace

_DATASET = "tensorflow.keras.utils.PyDataset"
_ROWS = "tensorflow.data.Dataset"
_IMAGES = "tensorflow.keras.preprocessing.image.ImageDataGenerator"


def dataset(machine: Machine, call: Call) -> Results:
    """``super().__init__(workers=, use_multiprocessing=)`` of a dataset that is indexed for batches."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, Instance):
        given = {f"<{name}>": call.kwargs[name] for name in ("workers", "use_multiprocessing") if name in call.kwargs}
        call.state.store(call.receiver, replace(found, attributes={**found.attributes, **given}))
    return [(call.state, NONE)]


def generated_rows(machine: Machine, call: Call) -> Results:
    """``tf.data.Dataset.from_generator(make)``: a dataset that calls what it is given when it is gone through."""
    after = cuda.touch(machine, call.state, call.frame, call.site, "tensorflow", "use", call.label, context=True)
    if after is None:
        return []
    made = LibraryObject(_ROWS, {"<generator>": call.get("generator") or NONE}, call.site)
    return [(after, (after.new(("rows", call.site), made),))]


def rows(machine: Machine, call: Call) -> Results:
    """``for row in dataset``: TensorFlow has a thread of this process go through what the generator gives."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    generator = found.fields.get("<generator>", NONE) if isinstance(found, LibraryObject) else NONE
    if generator == NONE:
        return [(call.state, unknown("rows", call.site))]
    return [
        (after, unknown("rows", call.site))
        for made, value in machine.call_value(generator, [], {}, call.state, call.frame, call.site)
        for after, _ in machine.iterate(value, made, call.frame, call.site)
    ]


def fit(machine: Machine, call: Call) -> Results:
    """``model.fit(data)``: uses the GPU here, and reads the data in forked workers if it is asked to."""
    after = cuda.touch(machine, call.state, call.frame, call.site, "tensorflow", "use", call.label, context=True)
    if after is None:
        return []
    machine.hands_over(machine.elements(call.kwargs.get("callbacks", NONE), after), after, call.frame, call.site)
    data = call.get("x") or ()
    for atom in data:
        found = after.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, LibraryObject) and found.type == _ROWS:
            gone_through = machine.iterate((atom,), after, call.frame, call.site)
            return [(state, unknown("history", call.site)) for state, _ in gone_through]
        item = None if found is None else _batch(machine, after, atom, found)
        if item is not None and found is not None:
            return _read(machine, call, after, atom, found, item)
    return [(after, unknown("history", call.site))]


def _batch(machine: Machine, state: State, atom: Atom, found: Object) -> Task | None:
    """What makes a batch: a method of a dataset, what images are prepared by, the next round of a generator."""
    match found:
        case Instance() if machine.library_base(found.cls, state) == _DATASET:
            method = machine.user_method(found, "__getitem__", state)
            return None if method is None else task((Bound(method, atom),), [EACH])
        case LibraryObject(type=kind, fields=fields) if kind == _IMAGES:
            prepares = fields.get("preprocessing_function", NONE)
            return None if prepares == NONE else task(prepares, [EACH])
        case Generator():
            return task((Lib("builtins.next"),), [(atom,)])
    return None


def _read(machine: Machine, call: Call, state: State, atom: Atom, found: Object, item: Task) -> Results:
    """The batches: by a pool of the default start method, else here or in threads."""
    history = unknown("history", call.site)
    processes = constant_bool(_option(call, found, "use_multiprocessing"), False)
    count = _option(call, found, "workers") or const(1)
    if processes is not True or integer(count) == 0:
        done = machine.call_value(item.function, [*item.args], {}, state, call.frame, call.site)
        return [(after, history) for after, _ in done]
    start = Start(
        launcher="keras.Model.fit",
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, "fit() reads batches in worker processes"),
        many=count_of(count, default_many=False),
        reused=True,
        daemon=True,
        failures={"body": "hang"},
        tasks=(item,),
        inherited=((atom,),),
        label="keras worker",
        count=number_of(count),
    )
    ways = launching.ways(machine, state, "multiprocessing", None)
    ended = [workers.start(machine, state, call.frame, start, way) for way in ways]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    return [(state, history)]


def _option(call: Call, found: Object, name: str) -> Value | None:
    """An option of the dataset, or, as Keras 2 has it, of the call."""
    own = found.attributes if isinstance(found, Instance) else {}
    return own.get(f"<{name}>") or call.kwargs.get(name)


def model(machine: Machine, call: Call) -> Results:
    """``keras.Sequential([...])``: its weights are made on the GPU."""
    after = cuda.touch(machine, call.state, call.frame, call.site, "tensorflow", "use", call.label, context=True)
    if after is None:
        return []
    return [(after, (after.new(("model", call.site), LibraryObject("tensorflow.keras.Model", {}, call.site)),))]
