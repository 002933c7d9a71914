"""The variables of a process's environment: read, set, and set too late."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import operators, paths
from cudalint.machine.effects.gpu.cuda import HIDING, VISIBLE
from cudalint.machine.effects.stdlib import containers, settings
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.heap import Dict, LibraryObject, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import workers
from cudalint.machine.outcome import Doubt, Kind
from cudalint.machine.paths import Located
from cudalint.machine.questions import IN_ENVIRONMENT, NO_GPU, OFTEN_SET, read
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    TRUTHS,
    Const,
    Lib,
    Rank,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace
from cudalint.text import settings as texts

_RANKS = {"LOCAL_RANK": "local", "RANK": "global", "SLURM_LOCALID": "local", "SLURM_PROCID": "global",
          "OMPI_COMM_WORLD_LOCAL_RANK": "local", "OMPI_COMM_WORLD_RANK": "global"}  # fmt: skip
# What whoever starts a program tells it.
_OF_STARTER = frozenset({"MASTER_ADDR", "WORLD_SIZE", VISIBLE})
# What launchers other than torchrun tell a rank.
OF_OTHER_LAUNCHERS = frozenset(_RANKS) - {"LOCAL_RANK", "RANK"}
_OF_SLURM = frozenset({"SLURM_LOCALID", "SLURM_PROCID"})
_OF_TORCHRUN = frozenset({"LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK"})
_BY_ARGUMENT = frozenset({"mp.spawn", "mp.start_processes"})
# What a program reads, or takes as an option, that reckons with several machines: there the two numbers differ.
_OF_MACHINES = frozenset(
    {"GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"}
    | {"SLURM_NODEID", "nnodes", "num_nodes", "num_machines", "node_rank", "machine_rank"}
)
# The frameworks that take memory of all GPUs in sight, by the names under which a process notes them.
_TAKING_ALL = ("tensorflow", "jax")
# What a variable was before a manager set it, in the fields of that.
BEFORE = "<before>"
# How far above a module a file of variables is looked for.
_MOST_FOLDERS = 6
_NOT_SET = Raised(None, ("KeyError", "LookupError"))
RENDEZVOUS = frozenset({"MASTER_ADDR", "MASTER_PORT"})
# What a library reads while it is imported, and never again (jax 0.11: ``config.py`` makes its flags then; numba 0.6x:
# ``numba.cuda`` is the simulator, or not).
_READ_AT_IMPORT = {"JAX_PLATFORMS": "jax", "JAX_PLATFORM_NAME": "jax", "NUMBA_ENABLE_CUDASIM": "numba"}
_BOOL = (Lib("builtins.bool"),)
_OF_MEETING = frozenset({*RENDEZVOUS, "RANK", "WORLD_SIZE"})


def environ_get(machine: Machine, call: Call) -> Results:
    """``os.environ[name]``, ``os.environ.get``, ``os.getenv``."""
    process = call.state.process
    names = strings(call.args[0]) if call.args else []
    if len(names) != 1:
        return [(call.state, unknown("environ", call.site))]
    name = names[0]
    note_machines(call.state, name)
    process = call.state.process
    if _RANKS.get(name) == "local" and not process.local_rank_at_hand:
        call.state.process = process = replace(process, local_rank_at_hand=True)
    if name in _OF_MEETING:
        machine.meeting_seen.add(name)
    known = process.environ(name)
    if known is not None:
        return [(call.state, known)]
    if _lacks(machine, process, name) and call.path.endswith("get"):
        return [(call.state, call.args[1] if len(call.args) > 1 else NONE)]
    if name in process.removed and call.frame.tries:
        return machine.fail(call.state, call.frame, _NOT_SET)
    if name in _RANKS and not (process.is_main and machine.program.is_notebook(machine.main)):
        # No launcher starts a kernel for each rank.
        if process.is_main and process.rank is None:
            call.state.process = replace(process, rank=_RANKS[name], of_slurm=name in _OF_SLURM)
        return [(call.state, (Rank(_RANKS[name]),))]
    if len(call.args) > 1 and name not in OFTEN_SET:
        return [(call.state, (*call.args[1], Unknown(("environ", name)))[:4])]
    if call.frame.tries and not call.path.endswith("get") and (name == VISIBLE or name not in OFTEN_SET):
        return _set_or_not(machine, call, name)
    return [(call.state, unknown("environ", name))]


def environ_read(machine: Machine, call: Call) -> Results:
    """``config("DEVICE", default="cuda", cast=str)``: a variable that a library reads, and makes something of."""
    name, default, cast = call.get("name"), call.get("default"), call.get("cast") or NONE
    args = [value for value in (name, default) if value is not None]
    path = "os.environ.get" if default is not None else "os.environ.__getitem__"
    results = environ_get(machine, replace(call, path=path, args=args, kwargs={}))
    kind = call.path.rpartition(".")[2]
    return [
        result
        for state, value in results
        for result in (
            [(state, _as_kind(value, "bool" if cast == _BOOL else kind))]
            if cast in (NONE, _BOOL)
            else machine.call_value(cast, [value], {}, state, call.frame, call.site)
        )
    ]


def _as_kind(value: Value, kind: str) -> Value:
    """What a library makes of the text of a variable."""
    text = constant(value)
    if isinstance(text, str) and kind == "int" and text.strip().isdecimal():
        return const(int(text))
    if isinstance(text, str) and kind == "bool" and text.lower() in TRUTHS:
        return const(TRUTHS[text.lower()])
    return value


def _set_or_not(machine: Machine, call: Call, name: str) -> Results:
    """What is read where something waits for it not to be set."""
    question = (IN_ENVIRONMENT, name)
    is_set = call.state.fact(question)
    if is_set is False:
        return machine.fail(call.state, call.frame, _NOT_SET)
    if is_set is None:
        machine.fail(call.state.split(question), call.frame, _NOT_SET)
    return [(call.state, unknown("environ", name))]


def _lacks(machine: Machine, process: Process, name: str) -> bool:
    """Whether a variable is known not to be set."""
    if name in process.removed or _is_never_set(machine, name):
        return True
    return _is_told_otherwise(process, name) or _is_of_other_launcher(process, name)


def _is_of_other_launcher(process: Process, name: str) -> bool:
    """Whether a variable numbers the ranks of other launchers than torchrun, by which the program started this one."""
    return "RANK" in name and name not in _OF_TORCHRUN and process.removed >= OF_OTHER_LAUNCHERS


def _is_told_otherwise(process: Process, name: str) -> bool:
    """Whether a rank's launcher tells it its number by an argument, and by no variable."""
    return name == "LOCAL_RANK" and is_started_by_program(process)


def is_started_by_program(process: Process) -> bool:
    """Whether a rank was started by the program itself: with the command line and the variables of all others.

    It is told its number by an argument. Of processes started one by one, those are ranks that write theirs down.
    """
    launch = process.launch
    return launch is not None and (launch.launcher in _BY_ARGUMENT or process.environ("RANK") is not None)


def _is_never_set(machine: Machine, name: str) -> bool:
    """Whether a variable is one that nobody sets on a machine with CUDA, by the models."""
    return machine.library.constants.get(f"os.environ.{name}", "") is None


def note_machines(state: State, name: str) -> None:
    """A variable or an option was named: it may tell that the program reckons with several machines."""
    if name in _OF_MACHINES and not state.process.local_rank_at_hand:
        state.process = replace(state.process, local_rank_at_hand=True)


def environ_set(machine: Machine, call: Call) -> Results:
    """``os.environ[name] = value``: for CUDA_VISIBLE_DEVICES it may be too late."""
    names = strings(call.args[0]) if call.args else []
    value = call.args[1] if len(call.args) > 1 else unknown("environ", call.site)
    if call.path.endswith("setdefault") and len(names) == 1:
        known = call.state.process.environ(names[0])
        if known is not None or _numbers_this(machine, call.state.process, names[0]):
            return environ_get(machine, call) if known is None else [(call.state, known)]
        if names[0] in _OF_STARTER:
            # Whoever starts the program may have said something else.
            value = (*value[:3], Unknown(("environ", names[0])))
    if len(names) == 1:
        # What only its name says to set a variable, as pytest's monkeypatch, may be for what is started meanwhile.
        is_judged = not call.path.startswith("?")
        set_variable(machine, call.state, call.frame, call.site, names[0], value, is_judged)
    return [(call.state, value)]


def _numbers_this(machine: Machine, process: Process, name: str) -> bool:
    """Whether a variable is what a launcher numbers this process by: a default is for who starts it without one."""
    is_of_kernel = machine.program.is_notebook(machine.main)
    return name in _RANKS and process.is_main and not is_of_kernel and not _lacks(machine, process, name)


def environ_delete(machine: Machine, call: Call) -> Results:
    """``del os.environ[name]``, ``os.environ.pop(name)``."""
    names = strings(call.args[0]) if call.args else []
    if len(names) != 1:
        return [(call.state, unknown("environ", call.site))]
    name, process = names[0], call.state.process
    if name == VISIBLE:
        _taken_back(machine, call.state)
    known, default = process.environ(name), call.args[1] if len(call.args) > 1 else None
    if name in process.removed and default is None and call.frame.tries and call.path != "os.unsetenv":
        return machine.fail(call.state, call.frame, _NOT_SET)
    if known is None and _lacks(machine, process, name):
        known = default
    call.state.process = process.with_environ(name, None)
    if known is None:
        known = (*(default or ())[:3], Unknown(("environ", name)))
    return [(call.state, known)]


def environ_contains(machine: Machine, call: Call) -> Results:
    """``name in os.environ``."""
    names = strings(call.args[0]) if call.args else []
    if len(names) != 1:
        return [(call.state, unknown("environ", call.site))]
    if names[0] in _OF_MEETING:
        machine.meeting_seen.add(names[0])
    if call.state.process.environ(names[0]) is not None:
        return [(call.state, const(True))]
    if _lacks(machine, call.state.process, names[0]):
        return [(call.state, FALSE)]
    return [(call.state, unknown(IN_ENVIRONMENT, names[0]))]


def environ_copy(machine: Machine, call: Call) -> Results:
    """``os.environ.copy()``: a dict of the variables that the program set, and of others."""
    items: dict[Hashable, Value] = dict(call.state.process.environment)
    made = Dict(items, element=unknown("environ", call.site), exact=False)
    return [(call.state, (call.state.new(("environ", call.site), made),))]


def environ_joined(machine: Machine, call: Call) -> Results:
    """``os.environ | {...}``, ``{...} | os.environ``: a dict of both, in which the second has the last word."""
    results: Results = []
    for state, value in environ_copy(machine, call):
        given = state.get(atom) if call.args and isinstance(atom := only(call.args[0]), Ref) else None
        own = state.get(made) if isinstance(made := only(value), Ref) else None
        if isinstance(given, Dict) and isinstance(own, Dict) and isinstance(made, Ref):
            is_first = call.path.endswith("__or__")
            state.store(made, operators.merged(own, given) if is_first else operators.merged(given, own))
        results.append((state, value))
    return results


def environ_update(machine: Machine, call: Call) -> Results:
    """``os.environ.update({...}, NAME=value)``, also of pairs."""
    results: Results = []
    for state, value in containers.dict_(machine, call):
        given = state.get(atom) if isinstance(atom := only(value), Ref) else None
        if not isinstance(given, Dict):
            continue
        if not given.exact:
            # Where ranks meet may be among it.
            machine.meeting_seen |= _OF_MEETING
        for name, one in given.items.items():
            if isinstance(name, str):
                set_variable(machine, state, call.frame, call.site, name, one)
        results.append((state, NONE))
    return results


def set_variable(
    machine: Machine, state: State, frame: Frame, site: Site, name: str, value: Value, is_judged: bool = True
) -> None:
    """One variable of the environment is set; ``is_judged``: it is said where nobody reads it any more."""
    process = state.process
    if name in _OF_MEETING:
        machine.meeting_seen.add(name)
    before = process.environ(name)
    if name == VISIBLE and process.hidden_late is not None:
        state.process = process = replace(process, hidden_late=None)
    if name == VISIBLE and value == unknown("environ", VISIBLE):
        _taken_back(machine, state)
    elif is_judged and name == VISIBLE and not process.dead and process.driver and _changes(state, site, before, value):
        _too_late(machine, state, site, value)
    state.process = state.process.with_environ(name, value)
    reader = _READ_AT_IMPORT.get(name)
    if reader is not None and _has_imported(machine, state, frame, reader):
        state.process = replace(state.process, unread=state.process.unread | {name})
    if name == VISIBLE:
        where = machine.chain(state, site, "sets CUDA_VISIBLE_DEVICES")
        state.process = replace(state.process, narrowed=where)


def _has_imported(machine: Machine, state: State, frame: Frame, package: str) -> bool:
    """Whether a library has a name by now where a variable is set, or at the top of the program."""
    scopes = [state.get(ref) for ref in (frame.scope, Ref(("module", frame.module)), Ref(("module", machine.main)))]
    named = (value for scope in scopes if isinstance(scope, Scope) for value in scope.variables.values())
    return any(isinstance(atom, Lib) and atom.path.partition(".")[0] == package for v in named for atom in v)


def _taken_back(machine: Machine, state: State) -> None:
    """The variable is as it was before this process set it: where nothing used a GPU meanwhile, it was for others."""
    if not state.process.initialised:
        workers.forget_late_variable(machine, state)


def _is_set_again(process: Process, site: Site) -> bool:
    """Whether the variable was set by the same line before: a process of its own that serves one after another."""
    launch = process.launch
    return launch is not None and launch.family == "process" and _sets_again(process, site)


def _sets_again(process: Process, site: Site) -> bool:
    return process.narrowed is not None and process.narrowed.step.site == site


def _changes(state: State, site: Site, before: Value | None, value: Value) -> bool:
    """Whether other GPUs are asked for than the process has."""
    if before == value and not state.second_round and not _sets_again(state.process, site):
        # What is unknown is the same thing at another place; at the same one it may have been worked out anew.
        return False
    if isinstance(wanted := only(value), Const) and (before == value or (before is None and _is_told(state, wanted))):
        return False
    return not _keeps_numbers(state.process, before, value)


def _is_told(state: State, wanted: Const) -> bool:
    """Whether a path rests on the variable being this already, where the program was started."""
    return any(
        holds and told == ("==", wanted.value) and _is_variable(subject, wanted)
        for (subject, told), holds in ((read(sym), holds) for sym, holds in state.facts)
    )


def _is_variable(subject: Hashable, wanted: Const) -> bool:
    """Whether something is what the variable says, or another default where it is not set."""
    parts = subject if isinstance(subject, tuple) else (subject,)
    variable = unknown("environ", VISIBLE)[0]
    return variable in parts and wanted not in parts and all(isinstance(p, Const) or p == variable for p in parts)


def _keeps_numbers(process: Process, before: Value | None, value: Value) -> bool:
    """Whether each GPU that is named has its own number already, as "0" has: what is asked for is where it would be.

    TensorFlow and JAX take memory of every GPU that they see, so that there it matters which others there are. Of
    workers each is meant to have another GPU: what is seen is the number of one of them.
    """
    names = strings(value)
    if before is not None or len(names) != 1 or len(value) != 1 or not process.is_main:
        return False
    numbers = [name.strip() for name in names[0].split(",")]
    takes_all = any(process.is_initialised(name) for name in _TAKING_ALL)
    return not takes_all and numbers == [str(number) for number in range(len(numbers))]


def _too_late(machine: Machine, state: State, site: Site, value: Value) -> None:
    process = state.process
    own = process.device()
    if state.fact(NO_GPU) is True:
        return
    if own is not None and not own.maybe:
        # Whoever has named a device does not wait for the variable to choose one: it is meant for other processes.
        return
    driver = process.driver
    launch = process.launch
    serves = launch is not None and launch.stage == "body" and (launch.reused or _is_set_again(process, site))
    per_task = serves and state.second_round
    if per_task and any(o.anchor == site for o in machine.record.outcomes):
        return
    if value in HIDING and not per_task:
        state.process = replace(process, hidden_late=site)
        return
    found = outcome_of(
        machine,
        state,
        Kind.VISIBLE_PER_TASK if per_task else Kind.VISIBLE_TOO_LATE,
        site,
        "wrong-device",
        cause=driver,
        effect=machine.chain(state, site, "sets CUDA_VISIBLE_DEVICES, which nobody reads any more"),
        launch=launch,
    )
    is_dealt_out = launch is not None and not launch.reused and launch.many and machine.open_loops > 0
    if per_task and launch is not None and (launch.each or is_dealt_out):
        found = replace(found, certain=False, doubt=found.doubt or Doubt.TASKS)
    machine.emit(found)
    state.process = replace(state.process, late_visible=(*state.process.late_visible, site))


def ends(machine: Machine, state: State) -> None:
    """A test ends that has only set the variable: nothing in it was to run on the GPUs that it names.

    What it called sets the variable for other callers too.
    """
    process = state.process
    own = all(site.module == machine.main for site in process.late_visible)
    if not (machine.options.in_test and process.late_visible and own):
        return
    wanted = process.environ(VISIBLE)
    if all(context.visible != wanted for context in process.contexts):
        workers.forget_late_variable(machine, state)


def environ_settings(machine: Machine, call: Call) -> Results:
    """``dask.config.set({"a.b-c": v}, a__b=v)``: as if the variable were set that the library reads this from.

    It gives a manager that sets them back.

    Of a function with a parameter, as of ``flair.device = v``, it is the variable ``key`` itself.
    """
    state = call.state
    if call.params:
        state.process = state.process.with_environ(call.text("key"), call.get(call.params[0]))
        return [(state, NONE)]
    given = {**_nested(state, call.args[0] if call.args else (), ""), **call.kwargs}
    fields: dict[str, Value] = {}
    for name, value in given.items():
        key = call.text("key") + name.upper().replace(".", "__").replace("-", "_")
        fields[f"{BEFORE}{key}"] = state.process.environ(key) or ()
        state.process = state.process.with_environ(key, value)
    return [(state, (state.new(("settings", call.site), LibraryObject(call.text("type"), fields, call.site)),))]


def _nested(state: State, given: Value, prefix: str) -> dict[str, Value]:
    """The settings in dicts of dicts, by the path that leads to them."""
    atom = only(given)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Dict):
        return {prefix: given} if prefix else {}
    flat: dict[str, Value] = {}
    for name, value in found.items.items():
        flat.update(_nested(state, value, f"{prefix}.{name}" if prefix else str(name)))
    return flat


def environ_preset(machine: Machine, call: Call) -> Results:
    """Importing a library sets a variable, or a helper of a launcher does, to another value for each rank."""
    process = call.state.process
    value = const(call.text("value")) if call.text("value") else (Rank("local"),)
    if process.environ(call.text("key")) is None and all(call.get(name) != FALSE for name in call.params):
        call.state.process = process.with_environ(call.text("key"), value)
    return [(call.state, NONE if call.receiver is None else (call.receiver,))]


def worker_visible(machine: Machine, call: Call) -> Results:
    """A library names its worker's GPU by the variable when it has imported main: what that made stays where it is."""
    state = call.state
    if state.process.initialised:
        set_variable(machine, state, call.frame, call.site, VISIBLE, (Rank("local"),))
    else:
        state.process = state.process.with_environ(VISIBLE, (Rank("local"),))
    return [(state, NONE)]


def environ_from_file(machine: Machine, call: Call) -> Results:
    """``load_dotenv()``: the variables that a file of the project sets, unless they are set already."""
    state, given = call.state, call.get("path")
    place = _nearest(machine, call) if given in (None, NONE) else paths.located(given or ())
    text = None if place is None else settings.text_at(machine, place)
    overrides = call.get("override") == TRUE
    for name, value in ({} if text is None else texts.read("env", text)).items():
        if overrides or state.process.environ(name) is None:
            set_variable(machine, state, call.frame, call.site, name, const(value))
    return [(state, unknown("is set", call.site))]


def _nearest(machine: Machine, call: Call) -> Located | None:
    """The file of variables in the folder of a module, or in the nearest one above."""
    folder = Located(call.frame.module, ())
    for _ in range(_MOST_FOLDERS):
        place = folder.joined(".env")
        if place is not None and settings.text_at(machine, place) is not None:
            return place
        folder = folder.folder
    return None
