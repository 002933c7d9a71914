"""Modules that are imported by a name in a string."""

from __future__ import annotations

import os
from collections.abc import Hashable

from cudalint.machine import listings, paths
from cudalint.machine.effects import plain
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib import lookups
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import BY_PATH, ENTERED, Class, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.picking import is_choice
from cudalint.machine.state import State
from cudalint.machine.values import TRUE, Lib, Ref, Unknown, Value, const, constant, only, union, unknown

_SPEC, _LOADER = "importlib.machinery.ModuleSpec", "importlib.machinery.SourceFileLoader"
# The module of the project that a specification or a loader is of.
_HOME = "<home>"
# How many modules of a package are told apart: loops go through that many objects one by one.
_MOST_LISTED = 12
_INFO = ("ModuleInfo", "ModuleInfo")
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
    """``import_module(f"plugins.{name}")``: one of the modules of that package, where these are few.

    Where the name is that of a file which the program found in a folder, it imports all that it finds there.
    """
    spelled = lookups.spelled_in_part(call.get("name") or ()) or ("", "")
    package, _, begun = spelled[0].rpartition(".")
    is_listed = listings.is_listed(machine.library, call.get("name") or ())
    home = _named_package(machine, call, package, is_listed)
    found = () if home is None else machine.program.submodules(home)
    named = [one for one in found if (last := one.rpartition(".")[2]).startswith(begun) and last.endswith(spelled[1])]
    if is_listed:
        states = [call.state]
        for one in named:
            states = [s for current in states for s in machine.act(one, current, call.frame, call.site.ordinal)]
        value = union([(Ref(("module", one)),) for one in named]) if 0 < len(named) <= lookups.MOST_NAMED else ()
        return [(state, value or unknown("import", call.site)) for state in states]
    if not 0 < len(named) <= lookups.MOST_NAMED:
        return [(call.state, unknown("import", call.site))]
    results: Results = []
    for state, one in _picked(machine, call, named):
        results.extend(machine.load(one, state, call.frame, call.site))
    return results


def _picked(machine: Machine, call: Call, named: list[str]) -> list[tuple[State, str]]:
    """The modules that an unknown name may be, each with the path on which it is."""
    homes = {Ref(("module", one)): one for one in named}
    table = Dict({one: (ref,) for ref, one in homes.items()})
    name = call.get("name") or ()
    if not is_choice(table, name):
        return [(call.state.clone(), one) for one in named]
    found = machine.picked(table, name, call.state, call.site)
    return [(state, homes[ref]) for state, value in found for ref in value if isinstance(ref, Ref)]


def _named_package(machine: Machine, call: Call, package: str, is_listed: bool) -> str | None:
    """The package whose module is imported; where nothing of its name is known, the one that lists its own folder."""
    importer = call.frame.module
    own = machine.program.package(importer)
    if package and package != importer:
        return machine.program.resolve(importer, package, 0)
    return own if is_listed and own == importer else None


def _named_module(machine: Machine, importer: str, name: str, level: int, package: Hashable) -> str | None:
    program = machine.program
    if level == 0 or package is ... or package == program.package(importer):
        return program.resolve(importer, name, level)
    home = program.resolve(importer, package, 0) if isinstance(package, str) else None
    above = [*program.parents(home), home] if home is not None else []
    return program.child(str(above[-level]), name) if 0 < level <= len(above) else None


# -- what a package has ---------------------------------------------------------------------------


def listed(machine: Machine, call: Call) -> Results:
    """``pkgutil.iter_modules(__path__)``: a record for each module of a package of the project, where these are few."""
    home = _listed_package(machine, call)
    prefix = constant(call.get("prefix") or const(""))
    if home is None or not isinstance(prefix, str):
        return plain.unmodelled(machine, call)
    found = [(one, prefix + one.rpartition(".")[2]) for one in machine.program.submodules(home)]
    if call.path.endswith("walk_packages"):
        found = _walked(machine, call, found)
    if not 0 < len(found) <= _MOST_LISTED:
        return plain.unmodelled(machine, call)
    state, site = call.state, call.site
    scope = state.new(("listed", site), Scope({}, None, call.frame.module, "class"))
    base: Value = (Lib("typing.NamedTuple"),)
    fields = tuple((name, None) for name in ("module_finder", "name", "ispkg"))
    cls = state.new(("listed class", site), Class(*_INFO, call.frame.module, (base,), scope, site, fields, True))
    rows: list[Value] = []
    for one, name in found:
        is_package = const(machine.program.package(one) == one)
        attributes = {"module_finder": unknown("finder", site), "name": const(name), "ispkg": is_package}
        rows.append((state.new(("listed row", site, one), Instance(cls, attributes, site)),))
    return [(state, (state.new(("listed rows", site), Sequence("list", tuple(rows))),))]


def _walked(machine: Machine, call: Call, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Modules and, below each package that is imported by its name here, what that has; one that is none is passed."""
    rows = []
    for one, name in found:
        rows.append((one, name))
        if machine.program.package(one) == one and machine.program.resolve(call.frame.module, name, 0) == one:
            below = [(m, f"{name}.{m.rpartition('.')[2]}") for m in machine.program.submodules(one)]
            rows += _walked(machine, call, below)
    return rows


def _listed_package(machine: Machine, call: Call) -> str | None:
    """The package whose folder is looked through: by its ``__path__``, or by a path that leads there."""
    value = call.get("path") or ()
    match only(value):
        case Unknown(sym=("__path__", str(home))):
            # The name of a folder without ``__init__.py`` ends as that of a folder does; it lies in no package.
            return home if machine.program.package(home) == home or home.endswith(os.sep) else None
    items = machine.exact_items(value, call.state) or []
    place = paths.located(items[0]) if len(items) == 1 else None
    if place is None or place.module is None or ".." in place.parts:
        return None
    package = machine.program.package(place.module)
    name = ".".join([*([package] if package else []), *place.parts])
    return machine.program.resolve(place.module, name, 0) if name else None


# -- by their paths -------------------------------------------------------------------------------


def at_path(machine: Machine, call: Call) -> Results:
    """``spec_from_file_location(name, path)``, ``SourceFileLoader(name, path)``: of a file of the project."""
    place = paths.located(call.get("path") or ())
    home = None if place is None else machine.program.module_at(place.module, machine.main, place.parts)
    if home is None:
        return plain.unmodelled(machine, call)
    name = call.get("name") or ()
    loader = LibraryObject(_LOADER, {_HOME: const(home), "name": name}, call.site)
    made: Value = (call.state.new(("loader", call.site), loader),)
    if call.path != _LOADER:
        fields = {_HOME: const(home), "name": name, "loader": made}
        made = (call.state.new(("spec", call.site), LibraryObject(_SPEC, fields, call.site)),)
    return [(call.state, made)]


def of_specification(machine: Machine, call: Call) -> Results:
    """``module_from_spec(spec)``: the module, of which nothing has run yet."""
    found = call.state.get(atom) if call.args and isinstance(atom := only(call.args[0]), Ref) else None
    home = constant(found.fields[_HOME]) if isinstance(found, LibraryObject) and found.type == _SPEC else ...
    return plain.unmodelled(machine, call) if home is ... else [(call.state, (Ref(("module", home)),))]


def run_at_path(machine: Machine, call: Call) -> Results:
    """``spec.loader.exec_module(module)``, ``loader.load_module()``: its top level runs, and no package is imported."""
    found = library_object(call)
    home = ... if found is None else constant(found.fields[_HOME])
    if found is None or not isinstance(home, str):
        return [(call.state, unknown("module", call.site))]
    name = constant(found.fields["name"])
    if isinstance(name, str) and call.state.get(Ref(("module", home))) is None:
        _note(home, const(name), call.state)
    if call.path.endswith("load_module"):
        _note((ENTERED, home), TRUE, call.state)
    return machine.load_one(home, call.state, call.frame, call.site)


def run_program(machine: Machine, call: Call) -> Results:
    """``runpy.run_path(path, run_name=)``, ``runpy.run_module(name)``: a file runs in this process, under that name."""
    if call.path.endswith("run_path"):
        place = paths.located(call.get("path_name") or ())
        home = None if place is None else machine.program.module_at(place.module, machine.main, place.parts)
    else:
        name = constant(call.get("mod_name") or ())
        home = machine.program.resolve(machine.main, name, 0) if isinstance(name, str) else None
    module = None if home is None else machine.program.module(home)
    if home is None or module is None:
        return plain.unmodelled(machine, call)
    told = constant(call.get("run_name") or ())
    states = machine.run_module(module, told if isinstance(told, str) else home, call.state, call.frame)
    return [(after, _names_of(home, after, call)) for after in states]


def _names_of(home: str, state: State, call: Call) -> Value:
    """What a program that ran has defined, by its names."""
    found = state.get(Ref(("module", home)))
    defined: dict[Hashable, Value] = {}
    if isinstance(found, Scope):
        defined.update(found.variables)
    return (state.new(("names", call.site), Dict(defined)),)


def enter(machine: Machine, call: Call) -> Results:
    """``sys.modules[name] = module``: what is pickled of it is found under that name in this process from now on."""
    for value in call.args:
        match only(value):
            case Ref(address=("module", str(home))):
                _note((ENTERED, home), TRUE, call.state)
    return plain.unmodelled(machine, call)


# What is imported already where a kernel runs a notebook, and in no program that is started.
_OF_KERNELS = frozenset({"IPython", "ipykernel", "ipykernel.kernelapp", "ipykernel.zmqshell"})


def is_imported(machine: Machine, call: Call) -> Results:
    """``"ipykernel" in sys.modules``: a program that is started is no notebook, unless it is one."""
    name = constant(call.args[0]) if call.args else ...
    if name in _OF_KERNELS and machine.program.module(str(name).partition(".")[0]) is None:
        return [(call.state, const(machine.program.is_notebook(machine.main)))]
    return plain.unmodelled(machine, call)


def _note(key: Hashable, value: Value, state: State) -> None:
    known = state.get(BY_PATH)
    state.store(BY_PATH, Dict({**(known.items if isinstance(known, Dict) else {}), key: value}))
