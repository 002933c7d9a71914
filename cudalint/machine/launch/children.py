"""Child processes at their beginning: what a fork copies, and what a fresh interpreter has."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.frame import Frame
from cudalint.machine.heap import ARGV, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import fork_hooks
from cudalint.machine.launch.launching import Start, Way
from cudalint.machine.state import Launch, Method, Process, State
from cudalint.machine.trace import Chain
from cudalint.machine.values import Const, Ref, const
from cudalint.structs import replace

_SERVER = "fork server"


def child_identity(parent: State, start: Start) -> tuple[str, ...]:
    """What distinguishes a child from other processes."""
    return (*parent.process.identity, f"{start.family}@{start.anchor.module}:{start.anchor.ordinal}")


def fork(machine: Machine, parent: State, start: Start, launch: Launch) -> State:
    """A forked child: everything the parent has, and a driver it must not use if the parent did."""
    fork_hooks.run(machine, parent, fork_hooks.BEFORE, start.anchor)
    child = parent.clone()
    child.facts = _answers(parent, start)
    before = parent.process
    poisoned_by = before.asked_by
    poison = before.driver if before.driver is not None else before.poison
    if before.dead:
        poison = before.poison
    child.process = replace(
        before,
        identity=child_identity(parent, start),
        label=start.label,
        is_main=False,
        launch=launch,
        forked=True,
        forked_unseen=poison is None and (before.unseen or before.forked_unseen) and not start.looks,
        daemon=start.daemon,
        driver=None,
        poison=poison,
        asked_by=frozenset(),
        poisoned_by=poisoned_by | (before.poisoned_by if before.driver is None else frozenset()),
        initialised=(),
        contexts=frozenset(),
        current=(),
        gpu_sharers=(),
        group=None,
        allocated=None,
        siblings=_siblings(before, start),
        answering=False,
        dead=False,
        misread=False,
        in_thread=False,
        held_up=False,
        rank=start.rank,
        local_rank_at_hand=before.local_rank_at_hand or start.rank == "local",
        selected=before.selected,
        beside=frozenset(),
        has_sent=False,
        handed=frozenset(),
    )
    child.process = _with_environment(child.process, start)
    child.stack = None
    child.second_round = False
    fork_hooks.run(machine, parent, fork_hooks.AFTER, start.anchor)
    return fork_hooks.run_in(machine, child, start.anchor)


def _with_environment(process: Process, start: Start) -> Process:
    for name, value in start.environment:
        process = process.with_environ(name, value)
    return process


def _siblings(parent: Process, start: Start) -> int | None:
    """How many processes do at the same time what the child does; None where that is not known."""
    if not start.many:
        return parent.siblings
    return None if parent.siblings is None or start.count is None else parent.siblings * start.count


def _answers(parent: State, start: Start) -> tuple[questions.Fact, ...]:
    """What a child knows that its parent was told: of the parent's rank nothing, where the launcher gives out ranks."""
    if start.rank is None:
        return parent.facts
    return tuple(fact for fact in parent.facts if questions.asked_rank(fact[0]) is None)


def tell(child: State, parent: State, start: Start) -> None:
    """What the parent was told since the state in which it forked: a task comes from the path that gives it."""
    for sym, answer in _answers(parent, start):
        child.assume(sym, answer)


def _give_words(child: State, parent: State) -> None:
    """A fresh process is told the command line of its parent (multiprocessing/spawn.py, get_preparation_data)."""
    words = parent.get(ARGV)
    if isinstance(words, Sequence) and all(isinstance(atom, Const) for word in words.items or () for atom in word):
        child.store(ARGV, words)


def boot(machine: Machine, parent: State, start: Start, way: Way, launch: Launch) -> list[State]:
    """A fresh interpreter: nothing of the parent but its environment; spawn imports main again."""
    before = parent.process
    poison = server_poison(machine, parent) if way.method == "forkserver" else None
    of_server = not start.fresh_main and _server_imports_main(machine, way)
    process = Process(
        identity=(*before.identity, _SERVER) if of_server else child_identity(parent, start),
        label=_SERVER if of_server else start.label,
        is_main=False,
        launch=launch,
        daemon=start.daemon,
        environment=before.environment,
        removed=before.removed,
        narrowed=before.narrowed,
        methods=_child_methods(before, start, way),
        forked=poison is not None,
        poison=poison,
        rank=start.rank,
        siblings=_siblings(before, start),
        local_rank_at_hand=start.rank == "local",
    )
    process = _with_environment(process, start)
    state = State(process, {}, facts=_answers(parent, start), telling=parent.telling)
    _give_words(state, parent)
    if way.method == "loky":
        return [state]
    _remember_parent(machine, process, parent)
    module = machine.program.module(machine.main)
    if module is None:
        return [state]
    inner = Frame(Ref(("module", machine.main)), machine.main)
    state.store(inner.scope, Scope({}, None, machine.main, "module"))
    if machine.program.is_notebook(machine.main) or _runs_package(machine, parent):
        # The main module of a kernel has no file, and that of a package is not imported by children: a fresh process
        # has another one, in which nothing is defined.
        return [state]
    saved = machine.uncaught
    machine.booting.append(state.process.identity)
    machine.running.append(start.anchor)
    states = machine.run_module(module, "__mp_main__", state)
    machine.running.pop()
    machine.booting.pop()
    for _, raised in machine.uncaught:
        if raised.outcome is not None:
            machine.emit(raised.outcome)
    machine.uncaught = saved
    if of_server:
        for current in states:
            current.process = _of_server(current.process, child_identity(current, start), start.label)
            _remember_parent(machine, current.process, parent)
    return states[:2]


def _runs_package(machine: Machine, parent: State) -> bool:
    """Whether the program is a package that was run by its name (CPython: ``multiprocessing.spawn``)."""
    if not machine.program.is_package_main(machine.main):
        return False
    main = parent.get(Ref(("module", machine.main)))
    return isinstance(main, Scope) and main.variables.get("__name__") == const("__main__")


def _remember_parent(machine: Machine, process: Process, parent: State) -> None:
    """What the parent had is what a fresh process may lack; without its main nothing says what it would find."""
    if not (machine.options.assumed or machine.options.in_test):
        machine.parents[process.identity] = parent


def _of_server(server: Process, identity: tuple[str, ...], label: str) -> Process:
    """What a fork server that imported main gives a child: what is in memory, and a driver that it must not use."""
    driver = server.driver
    return replace(
        server,
        identity=identity,
        label=label,
        forked=server.forked or driver is not None,
        driver=None,
        poison=server.poison if driver is None else driver,
        asked_by=frozenset(),
        poisoned_by=server.poisoned_by if driver is None else server.poisoned_by | server.asked_by,
        initialised=(),
        contexts=frozenset(),
        current=(),
    )


def _server_imports_main(machine: Machine, way: Way) -> bool:
    """Whether a fork server imports main once for all its children, and what that opens is the server's.

    It does from Python 3.14 unless it is told to import something else (CPython gh-126631: before, it never did).
    """
    since = way.condition is not None or machine.host.lowest >= (3, 14)
    told = [name for name, _ in machine.preloads]
    return way.method == "forkserver" and since and (not told or "__main__" in told)


def server_poison(machine: Machine, parent: State) -> Chain | None:
    """The witness of a query in what the fork server imports for its children."""
    for name, site in machine.preloads:
        state = State(Process(identity=("forkserver",), label=_SERVER, is_main=False), {})
        state.stack = machine.chain(parent, site, f"the fork server imports {name}")
        frame = Frame(Ref(("module", site.module)), site.module)
        module = machine.program.module(name)
        after = (
            machine.run_module(module, name, state, frame)
            if module is not None
            else machine.imported(name, state, frame, site)
        )
        for current in after:
            if current.process.driver is not None:
                return current.process.driver
    return None


def _child_methods(before: Process, start: Start, way: Way) -> tuple[tuple[str, Method], ...]:
    """A child that multiprocessing starts afresh has as its own default, already set, what it was started by."""
    method = before.method(start.library)
    names = method.names if way.method == "loky" else (way.method,)
    return ((start.library, Method(names, None, None)),) if names is not None else ()
