"""Inference engines and pipelines of libraries that start processes of their own."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import workers
from cudalint.machine.launch.arguments import task
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Start, Way
from cudalint.machine.state import Method, Process, State
from cudalint.machine.values import Const, Lib, Unknown, Value, const, only, strings
from cudalint.structs import replace

_CHOSEN = "VLLM_WORKER_MULTIPROC_METHOD"
# What tells an engine that it is one of several, each with GPUs of its own.
_ONE_OF_SEVERAL = ("VLLM_DP_RANK", "VLLM_DP_RANK_LOCAL")
_CHOOSES = ("device", "base_gpu_id", "data_parallel_rank")


def engine(machine: Machine, call: Call) -> Results:
    """``vllm.LLM(...)``: a process of its own, spawned where CUDA is initialised here or the environment says so.

    It asks torch alone: where another library opened the driver it forks, and its process cannot use CUDA. With a
    ``method`` in its model, as ``sglang.Engine(...)``, it sets that and starts its processes so. A daemon may not
    start any.
    """
    results: list[tuple[State, Value]] = []
    for way, stays in _ways(call):
        results.extend(_inside(machine, way) if stays else _apart(machine, way))
    return results


def _inside(machine: Machine, call: Call) -> Results:
    after = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, context=True)
    made = LibraryObject(_type(call), {}, call.site)
    return [] if after is None else [(after, (after.new(("engine", call.site), made),))]


def _apart(machine: Machine, call: Call) -> Results:
    state = call.state
    what = f"{call.label}"
    if bootstrapping(machine, call, what):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    if daemon_child(machine, call, what):
        return machine.fail(state, call.frame, Raised(None, ("AssertionError",)))
    made = LibraryObject(_type(call), {}, call.site)
    if call.text("method"):
        names = (call.text("method"),)
        where = machine.chain(state, call.site, f"{what} sets the start method")
        state.process = state.process.with_method("multiprocessing", Method(names, where, where))
    if call.text("method") == "spawn" or _spawns(state.process):
        spawn_unseen(machine, call, what, family="process", says=f"{what} starts its engine", label="engine")
    elif not call.text("method") and _forks(state.process) and _fork_unseen(machine, call, what):
        return []
    told = any(state.process.environ(name) is not None for name in _ONE_OF_SEVERAL)
    if not told and all(call.get(name) is None for name in _CHOOSES):
        cuda.open_beside(machine, state, call.site, what)
    return [(state, (state.new(("engine", call.site), made),))]


def _forks(process: Process) -> bool:
    """Whether its process is forked from one that has opened the driver: what nobody saw, torch mostly did.

    So it is in a process that was forked itself after its parent did.
    """
    opened = process.driver is not None or (process.forked and process.poison is not None)
    return opened and strings(process.environ(_CHOSEN) or const("fork")) == ["fork"]


def _fork_unseen(machine: Machine, call: Call, launcher: str) -> bool:
    """Fork a process that uses CUDA where nobody sees it; whether that fails."""
    start = Start(
        launcher=launcher,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(call.state, call.site, f"{launcher} forks its engine"),
        many=False,
        reused=False,
        daemon=False,
        failures={"body": "crash"},
        tasks=(task((Lib("torch.cuda.init"),), []),),
        label="engine",
        shares=False,
    )
    # A caller that nobody sees may have initialised CUDA by torch, and then it is spawned.
    way = Way("fork", not call.state.process.unseen, explicit=True)
    ended = workers.start(machine, call.state, call.frame, start, way)
    return workers.raise_in_parent(machine, call.state, call.frame, [ended])


def _type(call: Call) -> str:
    return call.text("type") or call.path


def _ways(call: Call) -> list[tuple[Call, bool]]:
    """Whether a variable keeps the engine in this process, which it does as long as one GPU is asked for.

    Where users say how many by an option, either is so. What nobody shows is taken for one.
    """
    chosen = call.state.process.environ(call.text("key")) or () if call.text("key") else ()
    if strings(chosen) != ["0"]:
        return [(call, False)]
    counts = [count for name in _PARALLEL if (count := call.get(name)) is not None]
    if any(count and all(isinstance(atom, Const) and atom.value != 1 for atom in count) for count in counts):
        return [(call, False)]
    for count in counts:
        asked = only(questions.comparison("<=", count, Const(1)))
        if not isinstance(asked, Unknown) or not questions.is_of_the_run(asked.sym):
            continue
        answer = questions.answered(call.state.facts, asked.sym)
        if answer is None:
            other = replace(call, state=call.state.split(asked.sym))
            return [(call, True), (other, False)]
        if answer is False:
            return [(call, False)]
    return [(call, True)]


_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size")


def spawn_unseen(
    machine: Machine, call: Call, launcher: str, *, family: str, says: str, label: str, many: bool = False
) -> None:
    """Spawn processes that run what is not seen here: they import main again."""
    start = Start(
        launcher=launcher,
        family=family,
        anchor=call.site,
        chain=machine.chain(call.state, call.site, says),
        many=many,
        reused=False,
        daemon=False,
        failures={"body": "crash"},
        label=label,
        shares=False,
    )
    workers.start(machine, call.state, call.frame, start, Way("spawn", True, explicit=True))


def _spawns(process: Process) -> bool:
    chosen = process.environ(_CHOSEN) or ()
    return strings(chosen) == ["spawn"] or process.is_initialised("torch")
