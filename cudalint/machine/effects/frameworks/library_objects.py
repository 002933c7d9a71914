"""Objects of libraries that land on a device when they are made: pipelines, pretrained models, trainers."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.machine import gpu_memory, operators
from cudalint.machine.effects import plain
from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.effects.gpu.choices import chosen, depends, idle
from cudalint.machine.effects.gpu.queries import takes_cpu
from cudalint.machine.effects.receivers import initialised
from cudalint.machine.effects.torch import ranks
from cudalint.machine.effects.torch.loaders import loader_iter
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import WEIGHTS, Class, Closure, Dict, Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Atom,
    Bound,
    Dev,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    only,
    union,
    unknown,
)
from cudalint.structs import replace


def placed(machine: Machine, call: Call) -> Results:
    """``pipeline(task, device=)``, ``Model.from_pretrained(name, device_map=)``: a module on the device it chose."""
    state = call.state
    kind = call.text("type") or call.path
    origin = machine.chain(state, call.site, f"{call.label} makes it")
    fields: dict[str, Value] = {"<parameters>": TRUE}
    if call.text("pickle") == "never":
        fields["<pickle>"] = const("never")
    ref = state.new(("placed", call.site), LibraryObject(kind, fields, call.site, origin))
    stays = idle(machine, call) or _goes_by_default(call)
    return _put(machine, call, state, (ref,), None if stays else chosen(call))


def _goes_by_default(call: Call) -> bool:
    """Whether a framework that asks which device it has puts what is made on the CPU."""
    framework, process = call.text("framework", "torch"), call.state.process
    return call.text("kind") == "asks-first" and (
        takes_cpu(process, framework) or cuda.computes_on_cpu(process, framework)
    )


def part_of_placed(machine: Machine, call: Call) -> Results:
    """``model.policy``: a module that an object of a library has, which lies where that does."""
    state, whole = call.state, call.receiver
    found = state.get(whole) if isinstance(whole, Ref) else None
    if not isinstance(whole, Ref) or not isinstance(found, LibraryObject):
        return [(state, unknown("part", call.site))]
    memory = gpu_memory.placed_tensor(whole, state)
    made = LibraryObject(call.text("type"), {"<parameters>": TRUE}, found.site)
    ref = state.new(("part", whole.address, call.path), made)
    if memory is not None:
        gpu_memory.place(ref, memory, state)
    name = call.path.removesuffix(".__get__").rpartition(".")[2]
    state.store(whole, replace(found, fields={**found.fields, name: (ref,)}))
    return [(state, (ref,))]


def _put(machine: Machine, call: Call, state: State, made: Value, device: Dev | None) -> Results:
    """What a call made, on the device that it chose."""
    if device is None or not device.is_gpu or cuda.sees_none(machine, state.process) or _makes_shapes(state):
        return [(state, made)]
    framework, wanted = call.text("framework", "torch"), call.text("gpu", "init")
    after = cuda.touch(machine, state, call.frame, call.site, framework, wanted, call.label, device, context=True)
    if after is None:
        return []
    for ref in (atom for atom in made if isinstance(atom, Ref)):
        gpu_memory.place(ref, arrays.new_tensor(machine, call, after, device, "torch.Tensor"), after)
    return [(after, made)]


def own_instance(machine: Machine, call: Call) -> Results:
    """``Model.from_pretrained(name)`` of a class of the program that is below the library's: an instance of it.

    What its ``__init__`` is given comes from what was saved. With ``parameters`` it is a module whose weights were
    saved, and lies on the device that it chose.
    """
    cls, is_module = call.receiver, call.flag("parameters")
    if not isinstance(cls, Ref) or not isinstance(call.state.get(cls), Class):
        return plain.nothing(machine, call)
    device = chosen(call) if is_module else None
    results: Results = []
    for state, made in machine.call_value((cls,), [], {}, call.state, call.frame, call.site, is_open=True):
        if is_module:
            _give_weights(made, call.site, state)
        results.extend(_put(machine, call, state, made, device))
    return results


def _give_weights(made: Value, site: Site, state: State) -> None:
    """Modules have the weights that were saved, whether their ``__init__`` shows any or not."""
    for atom in made:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Instance):
            attributes = {**found.attributes, WEIGHTS: unknown("weights", site)}
            state.store(atom, replace(found, attributes=attributes))


def _makes_shapes(state: State) -> bool:
    """Whether what is made has shapes and no data: below ``torch.device("meta")``."""
    default = state.process.default_device
    return default is not None and default.kind == "meta"


def _first(devices: list[Dev]) -> Dev | None:
    return next((d for d in devices if d.is_gpu), devices[0] if devices else None)


def lent(machine: Machine, call: Call) -> Results:
    """``atoms.get_forces()``: computes with what the attribute ``key`` of its object was set to, else with its own."""
    state = call.state
    given = _attribute(call.receiver, call.text("key"), state)
    if call.text("gpu") and (given == NONE or isinstance(constant(given), str) or not given):
        made = None if idle(machine, call) else Dev("cuda")
        return _put(machine, call, state, unknown("computed", call.site, state.process.identity), made)
    result = unknown("computed", call.site, state.process.identity)
    name = call.path.rpartition(".")[2]
    states = [cuda.read(machine, atom, state, call.frame, call.site, f"{name}()") for atom in given[:1]]
    return [(after, result) for after in states if after is not None] if given else [(state, result)]


def reports(machine: Machine, call: Call) -> Results:
    """``model.learn(n, callback=c)``: calls what it is given now and then, which has it as the attribute ``key``."""
    state, given = call.state, call.get(call.text("function")) or NONE
    for atom in union(machine.elements(given, state)) or given:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Instance) and call.receiver is not None:
            attributes = {**found.attributes, call.text("key"): (call.receiver,)}
            state.store(atom, replace(found, attributes=attributes))
    machine.hands_over([given], state, call.frame, call.site, call.path, is_called=True)
    return [(state, unknown("reported", call.site) if call.receiver is None else (call.receiver,))]


def _attribute(owner: Atom | None, name: str, state: State) -> Value:
    """What an attribute of a library's object was set to, or of an instance of a class below its class."""
    match state.get(owner) if isinstance(owner, Ref) else None:
        case LibraryObject(fields=fields):
            return fields.get(name, ())
        case Instance(attributes=attributes):
            return attributes.get(name, ())
    return ()


# -- the trainer of transformers ---------------------------------------------------------------------------------


# The arguments that say when a trainer evaluates while it trains, and what they are where it does.
_STRATEGIES = ("eval_strategy", "evaluation_strategy")
_WHILE_TRAINING = ("steps", "epoch")
# What a trainer is made with and its attributes give.
_KEPT_BY_TRAINERS = ("train_dataset", "eval_dataset", "data_collator")
# What evaluate() and predict() call the data that they are given.
_JUDGED = ("eval_dataset", "test_dataset")


def training_arguments(machine: Machine, call: Call) -> Results:
    """``TrainingArguments(...)``: initialises CUDA and selects the rank's device, unless its arguments forbid that."""
    state: State | None = call.state
    spared = any(call.kwargs.get(name) == TRUE for name in ("use_cpu", "no_cuda"))
    fields = {f"<{name}>": value for name, value in call.kwargs.items() if _matters(name)}
    fields["<spared>"] = const(spared)
    if not spared:
        state = ranks.selected_by_library(machine, call)
    if state is None:
        return []
    made = LibraryObject("transformers.TrainingArguments", fields, call.site)
    return [(state, (state.new(("arguments", call.site), made),))]


# What a trainer is given to call now and then, and what is not seen to be called.
_METRICS = "compute_metrics"
_CALLBACKS = (_METRICS, "callbacks", "preprocess_logits_for_metrics", "model_init", "formatting_func")


def trainer(machine: Machine, call: Call) -> Results:
    """``Trainer(model, args, ...)``, or ``super().__init__()`` of a class below it: moves the model to the device of
    its arguments."""
    state = call.state
    given = call.get("args")
    arguments = _library_object(given, state)
    fields = {name: call.get(name) or NONE for name in (*_KEPT_BY_TRAINERS, "args", "model")}
    fields.update({f"<{name}>": call.get(name) or NONE for name in ("reward_funcs", _METRICS)})
    told = _told(arguments)
    called = [name for name in _CALLBACKS if name in call.kwargs]
    if any(told.get(f"<{name}>") == const("no") for name in _STRATEGIES):
        called = [name for name in called if name != _METRICS]
    fields["<callbacks>"] = union([call.kwargs[name] for name in called]) or NONE
    fields.update({k: v for k, v in told.items() if k.startswith("<") and k != "<spared>"})
    made: Value = NONE
    if not initialised(call, fields):
        made = (state.new(("trainer", call.site), LibraryObject("transformers.Trainer", fields, call.site)),)
    spared = arguments is not None and arguments.fields.get("<spared>") == TRUE
    if spared or (arguments is None and given not in (None, NONE)) or state.process.withheld is not None:
        return [(state, made)]
    after = cuda.touch(machine, state, call.frame, call.site, "torch", "init", call.label, Dev("cuda"), context=True)
    if after is None:
        return []
    model = only(call.get("model") or ())
    if isinstance(model, Ref):
        gpu_memory.place(model, arrays.new_tensor(machine, call, after, Dev("cuda"), "torch.Tensor"), after)
    return [(after, made)]


def _told(arguments: LibraryObject | None) -> dict[str, Value]:
    """What a trainer's arguments say: as they were made, or as they were set since."""
    if arguments is None:
        return {}
    since = {f"<{name}>": value for name, value in arguments.fields.items() if _matters(name)}
    return {**arguments.fields, **since}


def _matters(name: str) -> bool:
    return name in _STRATEGIES or name.startswith("dataloader_")


def trainer_train(machine: Machine, call: Call) -> Results:
    """``trainer.train()``: iterates a loader of its own over the data, and calls what judges the answers."""
    found = _trainer(call)
    trained = _read_data(machine, call, found, call.state, "train_dataset")
    kept = found.get("<callbacks>", NONE)
    for state in trained:
        machine.hands_over((kept, *machine.elements(kept, state)), state, call.frame, call.site)
    after = [done for state in trained for done in _rewarded(machine, call, found, state)]
    if any(constant(found.get(f"<{n}>", NONE)) in _WHILE_TRAINING for n in _STRATEGIES):
        after = [done for state in after for done in _evaluated(machine, call, found, state)]
    return [(state, unknown("train", call.site)) for state in after]


def trainer_evaluate(machine: Machine, call: Call) -> Results:
    """``trainer.evaluate()``, ``trainer.predict(dataset)``: goes through other data, and calls what measures."""
    found = _trainer(call)
    other = call.get("dataset") or union([call.kwargs.get(name, ()) for name in _JUDGED]) or NONE
    judged = found if other == NONE else {**found, "eval_dataset": other}
    return [(after, unknown("evaluated", call.site)) for after in _evaluated(machine, call, judged, call.state)]


def _trainer(call: Call) -> Mapping[str, Value]:
    """What a trainer was made with, or one of a class of the program below it; nothing where that is not known."""
    match call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None:
        case LibraryObject(fields=fields):
            return fields
        case Instance(attributes=attributes) if "<callbacks>" in attributes:
            return attributes
    return {}


def _evaluated(machine: Machine, call: Call, found: Mapping[str, Value], state: State) -> list[State]:
    """The states after an evaluation, which happens in this process but for the workers of its loader."""
    function = found.get(f"<{_METRICS}>", NONE)
    read = _read_data(machine, call, found, state, "eval_dataset")
    if function == NONE:
        return read
    results = (
        machine.call_value(function, [unknown("prediction", call.site)], {}, s, call.frame, call.site) for s in read
    )
    return merge([after for each in results for after, _ in each])


def _read_data(machine: Machine, call: Call, found: Mapping[str, Value], state: State, name: str) -> list[State]:
    """The states after a loader was gone through: one that the program's class makes, else the trainer's own."""
    dataset = found.get(name, NONE)
    results: list[State] = []
    for after, loader in _own_loader(machine, call, state, name):
        made = loader
        if made is None and dataset != NONE:
            made = (after.new(("trainer loader", name, call.site), _loader(found, dataset, call.site)),)
        atom = only(made or ())
        if not isinstance(atom, Ref) or not isinstance(after.get(atom), LibraryObject):
            results.append(after)
            continue
        rounds = machine.library.function("torch.utils.data.DataLoader.__iter__") or {}
        iterating = Call(after, call.frame, call.site, "torch.utils.data.DataLoader.__iter__", rounds, [], {}, atom)
        results.extend(done for done, _ in loader_iter(machine, iterating))
    return results


def _own_loader(machine: Machine, call: Call, state: State, name: str) -> list[tuple[State, Value | None]]:
    """The loader that a method of the program's class makes, such as ``get_train_dataloader``; None without one."""
    receiver = call.receiver
    found = state.get(receiver) if isinstance(receiver, Ref) else None
    if isinstance(receiver, Ref) and isinstance(found, Instance):
        method = machine.user_method(found, f"get_{name.partition('_')[0]}_dataloader", state)
        if method is not None:
            return list(machine.call_value((Bound(method, receiver),), [], {}, state, call.frame, call.site))
    return [(state, None)]


def _rewarded(machine: Machine, call: Call, found: Mapping[str, Value], state: State) -> list[State]:
    """The states after the functions that judge answers were called, in this process."""
    given = found.get("<reward_funcs>", NONE)
    states = [state]
    for function in machine.elements(given, state) or [given]:
        if not any(isinstance(atom, Ref) and isinstance(state.get(atom), Closure | Instance) for atom in function):
            continue
        answers = {name: unknown(name, call.site) for name in ("prompts", "completions")}
        done = (machine.call_value(function, [], answers, s, call.frame, call.site) for s in states)
        states = merge([after for each in done for after, _ in each])
    return states


def _loader(trainer: Mapping[str, Value], dataset: Value, site: Site) -> LibraryObject:
    fields: dict[str, Value] = {
        "dataset": dataset,
        "<num_workers>": trainer.get("<dataloader_num_workers>", const(0)),
        "<pin_memory>": trainer.get("<dataloader_pin_memory>", TRUE),
        "<persistent_workers>": trainer.get("<dataloader_persistent_workers>", FALSE),
    }
    if trainer.get("data_collator", NONE) != NONE:
        fields["<collate_fn>"] = trainer["data_collator"]
    return LibraryObject("torch.utils.data.DataLoader", fields, site)


def _library_object(value: Value | None, state: State) -> LibraryObject | None:
    atom = only(value or ())
    found = state.get(atom) if isinstance(atom, Ref) else None
    return found if isinstance(found, LibraryObject) else None


# -- estimators -----------------------------------------------------------------------------------------------------


def estimator(machine: Machine, call: Call) -> Results:
    """``NeuralNetClassifier(module, device=)``: its module is made, on that device, when it is fitted."""
    device: Value = call.kwargs.get("device", NONE)
    if depends(call) or call.text("device"):
        found = chosen(call)
        if found is None and _is_told_otherwise(call):
            return plain.unmodelled(machine, call)
        device = NONE if found is None else (found,)
    fields: dict[str, Value] = {"<device>": device}
    if call.text("key"):
        fields[call.text("key")] = _settings(call, call.get(call.text("key")) or NONE)
    made = LibraryObject(call.text("type"), fields, call.site)
    after: State | None = call.state
    if call.text("gpu") and any(isinstance(atom, Dev) and atom.is_gpu for atom in device):
        framework = call.text("framework", "torch")
        after = cuda.touch(machine, call.state, call.frame, call.site, framework, call.text("gpu"), call.label)
    return [] if after is None else [(after, (after.new(("estimator", call.site), made),))]


def _is_told_otherwise(call: Call) -> bool:
    """Whether an object stands where a device may be named: what it was made of may tell of a GPU."""
    given = call.get(call.text("device")) or ()
    return any(isinstance(atom, Ref | Unknown) for atom in given)


def _settings(call: Call, given: Value) -> Value:
    """What an object keeps of the settings that it is given, as a dict or an object: they can be set anew on it."""
    atom = only(given)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if given != NONE and not isinstance(found, Dict):
        return given
    fields = {str(key): value for key, value in found.items.items()} if isinstance(found, Dict) else {}
    made = LibraryObject("cudalint.Settings", fields, call.site)
    return (call.state.new(("settings", call.site), made),)


def estimator_fit(machine: Machine, call: Call) -> Results:
    """``net.fit(X, y)``."""
    receiver = call.receiver
    found = _library_object(None if receiver is None else (receiver,), call.state)
    device = _first(operators.device_of(() if found is None else found.fields.get("<device>", ())))
    gives = bool(call.text("returns"))
    if receiver is None or device is None or not device.is_gpu:
        same: Value = call.args[0] if gives and call.args else () if receiver is None else (receiver,)
        return [(call.state, same)]
    framework = call.text("framework", "torch")
    after = cuda.touch(machine, call.state, call.frame, call.site, framework, "init", call.label, device, context=True)
    if after is None:
        return []
    return [(after, arrays.returned(machine, call, after, device) if gives else (receiver,))]
