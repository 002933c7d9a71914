"""Programs of the project that a program starts: ``subprocess.Popen([sys.executable, "rank.py", "--rank", "0"])``.

A file that is a program is run by itself in any case. Here it runs once more where it is told something: words of its
command line, and variables of its environment.
"""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine import paths
from cudalint.machine.effects.stdlib.environment import OF_OTHER_LAUNCHERS
from cudalint.machine.frame import Call
from cudalint.machine.heap import ARGV, Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import NONE, Lib, Ref, Value, constant, only
from cudalint.structs import Frozen, replace

_PYTHON = "sys.executable"
_NAMES = ("python", "python3")
_MODULE = "-m"


class _Program(Frozen):
    """A module that is run as a program, and the words of its command line behind its name."""

    home: str
    words: tuple[Value, ...]
    is_rank: bool = False


def run(machine: Machine, call: Call) -> None:
    """Run the program that a call starts, in a process that has nothing but what it is told."""
    state = call.state
    told = _environment(call)
    found = _program(machine, call)
    if found is None or told is None or state.process.program is not None:
        return
    others = OF_OTHER_LAUNCHERS - {name for name, _ in state.process.environment} if found.is_rank else frozenset()
    bare = Process(environment=state.process.environment, removed=state.process.removed | others)
    process = _told(bare, told)
    module = machine.program.module(found.home)
    if module is None or not (found.words or process.environment or found.is_rank):
        return
    name = found.home.rpartition(".")[2]
    started = machine.chain(state, call.site, f"starts the program {name}.py")
    identity = (*state.process.identity, f"exec@{call.site.module}:{call.site.ordinal}")
    child = State(replace(process, identity=identity, program=started), {}, facts=state.facts)
    child.stack = started
    child.store(ARGV, Sequence("list", found.words))
    saved, main = machine.uncaught, machine.main
    machine.main = found.home
    machine.end(machine.run_module(module, "__main__", child))
    for _, raised in machine.uncaught:
        if raised.outcome is not None:
            machine.emit(raised.outcome)
    machine.uncaught, machine.main = saved, main


def _program(machine: Machine, call: Call) -> _Program | None:
    """The module of the project that a list of words starts with Python; None where they start something else."""
    words = machine.exact_items(call.args[0] if call.args else call.kwargs.get("args", ()), call.state)
    if not words:
        return None
    are_ranks = _launches_ranks(machine, words[0])
    if not are_ranks and not _is_python(words[0]):
        return None
    rest = iter(words[1:])
    for word in rest:
        text = constant(word)
        if text == _MODULE:
            module = next(rest, ())
            if _launches_ranks(machine, module):
                are_ranks = True
                continue
            home = _home_of(machine, call, module)
        elif isinstance(text, str) and text.startswith("-"):
            continue
        else:
            place = paths.located(word)
            home = None if place is None else machine.program.module_at(place.module, machine.main, place.parts)
        if home is not None:
            return _Program(home, tuple(rest), are_ranks)
        if not are_ranks:
            return None
        # A word of the launcher's own, such as the number of ranks.
    return None


def _home_of(machine: Machine, call: Call, named: Value) -> str | None:
    """The module of the project that ``-m`` runs."""
    name = constant(named)
    home = machine.program.resolve(call.frame.module, name, 0) if isinstance(name, str) else None
    return home if home is None or machine.program.package(home) != home else f"{home}.__main__"


def _launches_ranks(machine: Machine, word: Value) -> bool:
    """Whether a program starts another one as ranks, with the words behind its name and nothing besides."""
    name = constant(word)
    return isinstance(name, str) and machine.library.traits.has(name, "launches-ranks")


def _is_python(word: Value) -> bool:
    text = constant(word)
    return only(word) == Lib(_PYTHON) or (isinstance(text, str) and text.rpartition("/")[2] in _NAMES)


def _environment(call: Call) -> list[tuple[str, Value]] | None:
    """The variables that a call gives a program besides its parent's; None where that is not known."""
    given = call.kwargs.get("env", NONE)
    if given == NONE:
        return []
    atom = only(given)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    return list(_variables(found)) if isinstance(found, Dict) else None


def _variables(found: Dict) -> Iterator[tuple[str, Value]]:
    for name, value in found.items.items():
        if isinstance(name, str):
            yield name, value


def _told(process: Process, variables: list[tuple[str, Value]]) -> Process:
    for name, value in variables:
        process = process.with_environ(name, value)
    return process
