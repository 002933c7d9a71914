"""spaCy: pipelines on the GPU, whose workers are forked."""

from __future__ import annotations

from cudalint.machine import gpu_memory
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.gpu.queries import was_started
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import task
from cudalint.machine.launch.launching import Start
from cudalint.machine.state import State
from cudalint.machine.values import NONE, TRUE, Lib, Ref, Value, const, integer, strings, unknown
from cudalint.structs import replace

# Components of spaCy that compute with weights; the others go by rules.
_TRAINED = frozenset(
    {"entity_linker", "morphologizer", "ner", "parser", "senter", "spancat", "tagger"}
    | {"textcat", "textcat_multilabel", "tok2vec", "transformer"}
)


def add_to_text_pipe(machine: Machine, call: Call) -> Results:
    """``nlp.add_pipe("ner")``: with a trained component the pipeline runs on the GPU that was required."""
    state, ref = call.state, call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    is_trained = bool(_TRAINED.intersection(strings(call.get("factory_name") or ())))
    if isinstance(ref, Ref) and isinstance(found, LibraryObject) and is_trained:
        state.store(ref, replace(found, fields={**found.fields, "<trained>": TRUE}))
    return [(state, unknown("component", call.site))]


def _is_blank(call: Call) -> bool:
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return isinstance(found, LibraryObject) and found.type == "spacy.Blank" and "<trained>" not in found.fields


def _framework(call: Call) -> str:
    """What the pipeline computes with: that of a part which was put on the GPU by itself, else spaCy's own."""
    inside = gpu_memory.placed_tensor(call.receiver, call.state) if isinstance(call.receiver, Ref) else None
    return "cupy" if inside is None else inside.framework


def text_pipe(machine: Machine, call: Call) -> Results:
    """``nlp(text)``, ``nlp.pipe(texts)`` of a spaCy pipeline on the GPU; ``n_process=2`` forks workers that need it."""
    state = call.state
    wanted = call.kwargs.get("n_process")
    count = None if wanted is None else integer(wanted)
    docs = unknown("docs", call.site)
    framework = _framework(call)
    if not was_started(state.process, framework) or _is_blank(call):
        return [(state, docs)]
    if wanted is None or count in (0, 1):
        after = cuda.touch(machine, state, call.frame, call.site, framework, "touch", call.label)
        return [] if after is None else [(after, docs)]
    if not state.process.is_initialised(framework):
        return [(state, docs)]
    made = const(framework)
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
    after = cuda.touch(machine, call.state, call.frame, call.site, framework, "use", "the pipeline", context=True)
    return [] if after is None else [(after, NONE)]
