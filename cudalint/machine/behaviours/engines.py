"""Inference engines and pipelines of libraries that start processes of their own."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.behaviours import gpu, launching, workers
from cudalint.machine.behaviours.launch_arguments import task
from cudalint.machine.behaviours.launching import Start, Way
from cudalint.machine.behaviours.refused import bootstrapping
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Thing
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import NONE, TRUE, Lib, Ref, Value, const, integer, strings, unknown

# Components of spaCy that compute with weights; the others go by rules.
_TRAINED = frozenset(
    {"entity_linker", "morphologizer", "ner", "parser", "senter", "spancat", "tagger"}
    | {"textcat", "textcat_multilabel", "tok2vec", "transformer"}
)


def engine(machine: Machine, call: Call) -> Results:
    """``vllm.LLM(...)``: a process of its own, spawned where CUDA is initialised here or the environment says so."""
    state = call.state
    what = f"{gpu.label(call)}"
    if bootstrapping(machine, call, what):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    made = Thing(call.text("type") or call.path, {}, call.site)
    if _spawns(state.process):
        start = Start(
            launcher=what,
            family="process",
            anchor=call.site,
            chain=machine.chain(state, call.site, f"{what} starts its engine"),
            many=False,
            reused=False,
            daemon=False,
            failures={"body": "crash"},
            label="engine",
            shares=False,
        )
        workers.start(machine, state, call.frame, start, Way("spawn", True, explicit=True))
    return [(state, (state.new(("engine", call.site), made),))]


def _spawns(process: Process) -> bool:
    chosen = process.environ("VLLM_WORKER_MULTIPROC_METHOD") or ()
    return strings(chosen) == ["spawn"] or process.is_initialised("torch")


def add_to_text_pipe(machine: Machine, call: Call) -> Results:
    """``nlp.add_pipe("ner")``: with a trained component the pipeline runs on the GPU that was required."""
    state, ref = call.state, call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    is_trained = bool(_TRAINED.intersection(strings(call.get("factory_name") or ())))
    if isinstance(ref, Ref) and isinstance(found, Thing) and is_trained:
        state.put(ref, replace(found, fields={**found.fields, "<trained>": TRUE}))
    return [(state, unknown("component", call.site))]


def _is_blank(call: Call) -> bool:
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return isinstance(found, Thing) and found.type == "spacy.Blank" and "<trained>" not in found.fields


def text_pipe(machine: Machine, call: Call) -> Results:
    """``nlp.pipe(texts, n_process=2)`` of a spaCy pipeline on the GPU: forks workers that need the GPU."""
    state = call.state
    wanted = call.kwargs.get("n_process")
    count = None if wanted is None else integer(wanted)
    docs = unknown("docs", call.site)
    if wanted is None or count in (0, 1) or not state.process.is_initialised("cupy") or _is_blank(call):
        return [(state, docs)]
    made = const("cupy")
    ended = [
        workers.start(machine, state, call.frame, _piping(machine, call, state, made, count), way)
        for way in launching.ways(machine, state, "multiprocessing", None)
        if way.method == "fork"
    ]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    return [(state, docs)]


def _piping(machine: Machine, call: Call, state: State, framework: Value, count: int | None) -> Start:
    return Start(
        launcher="spacy.Language.pipe",
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, "nlp.pipe() forks workers"),
        many=count is None or count != 1,
        reused=False,
        daemon=True,
        failures={"body": "crash"},
        tasks=(task((Lib("cudalint.text_pipe"),), [framework]),),
        label="pipe worker",
        count=count,
    )


def text_pipe_worker(machine: Machine, call: Call) -> Results:
    """A worker of ``nlp.pipe``: it runs the pipeline on the GPU."""
    framework = strings(call.args[0])[0]
    after = gpu.touch(machine, call.state, call.frame, call.site, framework, "use", "the pipeline", context=True)
    return [] if after is None else [(after, NONE)]
