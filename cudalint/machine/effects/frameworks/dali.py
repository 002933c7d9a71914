"""DALI: pipelines whose Python sources run in processes that are started when the pipeline is built."""

from __future__ import annotations

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.values import FALSE, NONE, TRUE, Lib, Partial, Ref, const, strings, unknown
from cudalint.structs import replace

# Whether a source was defined that wants processes, since the last pipeline was made.
_SOURCES = Ref(("dali sources",))
_OPTIONS = ("py_num_workers", "py_start_method")
# What a pipeline takes of the arguments with which the function of its graph is called.
_OF_PIPELINES = frozenset(
    {*_OPTIONS, "batch_size", "num_threads", "device_id", "seed", "prefetch_queue_depth", "enable_conditionals"}
)


def pipeline_def(machine: Machine, call: Call) -> Results:
    """``@pipeline_def``, ``@pipeline_def(py_num_workers=4)``: a function that makes pipelines of this graph."""
    options = tuple(sorted(call.kwargs.items()))
    if not call.args:
        return [(call.state, (Partial((Lib(call.path),), (), options),))]
    return [(call.state, (Partial((Lib("cudalint.dali.make"),), (call.args[0],), options),))]


def make(machine: Machine, call: Call) -> Results:
    """A call of such a function: the graph is defined."""
    state = call.state
    state.store(_SOURCES, LibraryObject("cudalint.dali", {}, call.site))
    graph, *args = call.args
    given = {name: value for name, value in call.kwargs.items() if name not in _OF_PIPELINES}
    results: Results = []
    for after, _ in machine.call_value(graph, args, given, state, call.frame, call.site):
        results.extend(pipeline(machine, replace(call, state=after)))
    return results


def pipeline(machine: Machine, call: Call) -> Results:
    """``Pipeline(batch_size, ...)``: starts nothing yet."""
    state = call.state
    fields = {f"<{name}>": call.kwargs[name] for name in _OPTIONS if name in call.kwargs}
    fields["<parallel>"] = const(_has_sources(state))
    made = LibraryObject("nvidia.dali.Pipeline", fields, call.site)
    return [(state, (state.new(("pipeline", call.site), made),))]


def source(machine: Machine, call: Call) -> Results:
    """``fn.external_source(source, parallel=True)``."""
    if call.kwargs.get("parallel") == TRUE:
        call.state.store(_SOURCES, LibraryObject("cudalint.dali", {"<parallel>": TRUE}, call.site))
    return [(call.state, unknown("source", call.site))]


def _has_sources(state: State) -> bool:
    found = state.get(_SOURCES)
    return isinstance(found, LibraryObject) and found.fields.get("<parallel>") == TRUE


def start(machine: Machine, call: Call) -> Results:
    """``pipe.start_py_workers()``: DALI refuses to fork them where CUDA is in use."""
    state, found = call.state, library_object(call)
    if found is None or not isinstance(call.receiver, Ref) or "<started>" in found.fields:
        return [(state, NONE)]
    parallel = found.fields.get("<parallel>", FALSE) == TRUE or _has_sources(state)
    if not parallel or found.fields.get("<py_num_workers>") == const(0):
        return [(state, NONE)]
    driver = state.process.driver
    if driver is not None and strings(found.fields.get("<py_start_method>", const("fork"))) == ["fork"]:
        started = machine.chain(state, call.site, "forks the processes of parallel sources")
        machine.emit(
            outcome_of(
                machine,
                state,
                Kind.FORK_LAUNCHER,
                call.site,
                "crash",
                cause=driver,
                launcher=call.label,
                subject="parallel external sources",
                started=started,
            )
        )
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    state.store(call.receiver, replace(found, fields={**found.fields, "<started>": TRUE}))
    return [(state, NONE)]


def build(machine: Machine, call: Call) -> Results:
    """``pipe.build()``, ``pipe.run()``: its processes start, then it uses the GPU."""
    results: Results = []
    for state, _ in start(machine, call):
        after = cuda.touch(machine, state, call.frame, call.site, "dali", "use", call.label, context=True)
        if after is not None:
            results.append((after, unknown("built", call.site, after.process.identity)))
    return results
