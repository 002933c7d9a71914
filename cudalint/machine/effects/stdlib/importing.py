"""Modules that are imported by a name in a string."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import Lib, constant, unknown


def import_module(machine: Machine, call: Call) -> Results:
    """``importlib.import_module`` and ``__import__`` of a name that the code shows."""
    name = constant(call.get("name") or ())
    if not isinstance(name, str) or not name.strip("."):
        return [(call.state, unknown("import", call.site))]
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


def _named_module(machine: Machine, importer: str, name: str, level: int, package: Hashable) -> str | None:
    program = machine.program
    if level == 0 or package is ... or package == program.package(importer):
        return program.resolve(importer, name, level)
    home = program.resolve(importer, package, 0) if isinstance(package, str) else None
    above = [*program.parents(home), home] if home is not None else []
    return program.child(str(above[-level]), name) if 0 < level <= len(above) else None
