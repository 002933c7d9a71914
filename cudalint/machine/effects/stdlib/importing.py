"""Modules that are imported by a name in a string."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.effects.stdlib import lookups
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import Lib, constant, unknown

# What the module of a program is called in its processes.
_MAIN = frozenset({"__main__", "__mp_main__"})


def import_module(machine: Machine, call: Call) -> Results:
    """``importlib.import_module`` and ``__import__`` of a name that the code shows."""
    name = constant(call.get("name") or ())
    if not isinstance(name, str) or not name.strip("."):
        return _one_of_package(machine, call)
    if name in _MAIN:
        return machine.load(machine.main, call.state, call.frame, call.site)
    bare = name.lstrip(".")
    package = constant(call.get("package") or ())
    importer = call.frame.module
    top_only = call.path.endswith("__import__")
    wanted = bare.partition(".")[0] if top_only else bare
    home = _named_module(machine, importer, wanted, len(name) - len(bare), package)
    if home is not None:
        return machine.load(home, call.state, call.frame, call.site)
    if name != bare:
        return [(call.state, unknown("import", call.site))]
    states = machine.imported(bare, call.state, call.frame, call.site)
    return [(state, (Lib(machine.library.canonical(wanted)),)) for state in states]


def _one_of_package(machine: Machine, call: Call) -> Results:
    """``import_module(f"plugins.{name}")``: one of the modules of that package, where these are few."""
    spelled = lookups.spelled_in_part(call.get("name") or ())
    package, dot, begun = spelled[0].rpartition(".") if spelled is not None else ("", "", "")
    home = machine.program.resolve(call.frame.module, package, 0) if dot and package else None
    ends = spelled[1] if spelled is not None else ""
    found = () if home is None else machine.program.submodules(home)
    named = [one for one in found if (last := one.rpartition(".")[2]).startswith(begun) and last.endswith(ends)]
    if not 0 < len(named) <= lookups.MOST_NAMED:
        return [(call.state, unknown("import", call.site))]
    results: Results = []
    for one in named:
        results.extend(machine.load(one, call.state.clone(), call.frame, call.site))
    return results


def _named_module(machine: Machine, importer: str, name: str, level: int, package: Hashable) -> str | None:
    program = machine.program
    if level == 0 or package is ... or package == program.package(importer):
        return program.resolve(importer, name, level)
    home = program.resolve(importer, package, 0) if isinstance(package, str) else None
    above = [*program.parents(home), home] if home is not None else []
    return program.child(str(above[-level]), name) if 0 < level <= len(above) else None
