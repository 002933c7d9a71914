"""Where programs start: main modules, tests, and launchers without a known caller."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Set

from cudalint.ir import nodes as ir
from cudalint.ir.walk import bound_names, functions, inner_statements, last_name
from cudalint.project.applications import made_above
from cudalint.project.derived import derived_in
from cudalint.project.distance import lies_far, names_gpu, starting
from cudalint.project.file_facts import FileFacts
from cudalint.project.program import FileProgram
from cudalint.project.pytest_files import is_test_module

# What hands work to a pool that another module may hold, where functions answer requests.
_HAND_OVER = frozenset({"submit", "run_in_executor", "apply", "apply_async", "map", "map_async", "starmap", "imap"})
_DEVICES = frozenset({"device", "Device"})
FAR_TESTS = "that start nothing themselves lead through more code than tests are followed through: not run"


def candidates(program: FileProgram, among: frozenset[str] | None = None) -> list[str]:
    """The modules, all or ``among`` some, in which something that a rule judges may start, or that lead to one."""
    launching = launching_modules(program)
    threads = {n for n in program.sources if program.facts(n).starts_threads}
    selects = {n for n in program.sources if program.facts(n).selects_device}
    result: list[str] = []
    left_out = 0
    for name in sorted(program.sources if among is None else among & program.sources.keys()):
        leads = name in launching or (
            _may_start(program, name) and _leads_to(_reach(program, name), launching, threads, selects)
        )
        matters = leads and (_uses_gpu(program, name) or program.facts(name).names_modules)
        is_far = matters and _is_only_a_far_test(program, name, launching)
        asked = (home in launching and program.effects.reaches_gpu(home) for home in _asked(program, name))
        if (matters and not is_far) or any(asked):
            result.append(name)
        elif is_far:
            left_out += 1
    if left_out:
        program.note(f"{left_out} test files {FAR_TESTS}")
    return result


def _reach(program: FileProgram, name: str) -> Set[str]:
    """The modules that running one may import, and those that make the application which its handlers are of."""
    return program.graph.reach(name).union(*(program.graph.reach(above) for above in _served_by(program, name)))


def _uses_gpu(program: FileProgram, name: str) -> bool:
    """Whether what running a module may import uses a GPU, or what makes the application which its handlers are of."""
    return program.effects.reaches_gpu(name) or any(map(program.effects.reaches_gpu, _served_by(program, name)))


def _served_by(program: FileProgram, name: str) -> tuple[str, ...]:
    above = made_above(program, name)
    return () if above is None else (above,)


def _leads_to(reach: Set[str], launching: Set[str], threads: Set[str], selects: Set[str]) -> bool:
    """Whether some modules start something, or threads and what selects a device for one, be it in several files."""
    return not launching.isdisjoint(reach) or not (threads.isdisjoint(reach) or selects.isdisjoint(reach))


def _is_only_a_far_test(program: FileProgram, name: str, launching: Set[str]) -> bool:
    """Whether a module has nothing but tests, far from a GPU or from all that starts something.

    A test that is near names both, itself or by what it imports and by its fixtures.
    """
    if not is_test_module(program.sources[name].path) or program.guards_main(name) or not lies_far(program, name):
        return False
    facts = program.facts(name)
    if facts.starts_threads or facts.selects_device or facts.may_answer or may_serve(program, name):
        return False
    homes = (name, *_asked(program, name))
    starts = name in launching or any(starting(program, home, launching) for home in homes)
    return not starts or not any(names_gpu(program, home) for home in homes)


def launching_modules(program: FileProgram) -> frozenset[str]:
    """The modules in which something that a rule judges may start."""
    return frozenset(name for name in program.sources if _may_launch(program, name))


def _may_launch(program: FileProgram, name: str) -> bool:
    facts = program.facts(name)
    return facts.may_launch or facts.mentions_own or bool(derived_in(program, name)) or bool(program.preloads(name))


def may_serve(program: FileProgram, name: str) -> bool:
    """Whether a server that is started from outside may import a module: celery's also where it only has tasks."""
    if program.facts(name).may_serve or program.preloads(name):
        return True
    if not program.facts(name).holds_tasks:
        return False
    return any(program.facts(above).may_serve for above in program.graph.reach(name))


_FIXTURE = re.compile(rb"@(?:\w+\.)?fixture\b[^@]*?^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


def _asked(program: FileProgram, name: str) -> Iterable[str]:
    """The conftests above a test module that define a fixture which it mentions."""
    if not is_test_module(program.sources[name].path):
        return
    data = program.sources[name].data
    for home in conftests(program, name):
        if any(fixture in data for fixture in _FIXTURE.findall(program.sources[home].data)):
            yield home


def _may_start(program: FileProgram, name: str) -> bool:
    """Whether a module may be started, or holds something that may."""
    if program.guards_main(name) or program.scripts(name) or program.lies_outside_packages(name):
        return True
    facts = program.facts(name)
    return (
        facts.may_register or may_serve(program, name) or facts.may_answer or is_test_module(program.sources[name].path)
    )


def is_program(program: FileProgram, name: str) -> bool:
    """Whether a module may be started as a program; one that pytest collects only where it says so itself.

    What only defines something, in a folder without ``__init__.py`` of a package, is a part of that package.
    """
    if program.guards_main(name):
        return True
    if is_test_module(program.sources[name].path):
        return False
    if not program.lies_outside_packages(name) or name in program.graph.importers:
        return False
    return not program.lies_below_package(name) or program.effects.acts(name)


def tests(module: ir.Module) -> Iterable[ir.Function]:
    """The test functions of a module."""
    for function in functions(module.body):
        if function.name.startswith("test"):
            yield function


def launching(module: ir.Module, facts: FileFacts, launchers: frozenset[str]) -> frozenset[str]:
    """The words by which functions of a module name a launcher: one of these, or what the module makes of them."""
    launchers |= _aliases(module, launchers)
    launchers |= _process_classes(module, launchers) | _held(module, launchers)
    launchers |= _held_by_instances(module, launchers)
    return launchers | _HAND_OVER if facts.may_answer else launchers


def unreached(module: ir.Module, facts: FileFacts, launchers: frozenset[str]) -> Iterable[ir.Function]:
    """The functions that hold a launcher, of their own or of their module, or a device object as a statement."""
    statement = facts.states_a_device
    words = launching(module, facts, launchers)
    devices = _DEVICES | _aliases(module, _DEVICES)
    for function in functions(module.body):
        if function.name.startswith("test"):
            continue
        if function.mentions(words) or (statement and function.mentions(devices) and _states(function, devices)):
            yield function


def _states(function: ir.Function, devices: frozenset[str]) -> bool:
    """Whether a function makes a device object as a statement of its own, by one of these names or one of its own."""
    named: set[str] = set()
    made: set[str] = set()
    pending = list(function.body)
    while pending:
        statement = pending.pop()
        match statement:
            case ir.ExprStmt(value=ir.Call(func=callee)):
                made.add(last_name(callee))
            case ir.Assign(targets=targets, value=value) if last_name(value) in devices:
                named.update(target.id for target in targets if isinstance(target, ir.Name))
            case ir.FunctionDef(function=inner):
                pending.extend(inner.body)
            case ir.ClassDef(body=body):
                pending.extend(body)
            case _:
                pending.extend(inner_statements(statement))
    return not made.isdisjoint(devices | named)


def _process_classes(module: ir.Module, launchers: frozenset[str]) -> frozenset[str]:
    """The classes of a module that derive from a process: making one is how they are launched."""
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ir.ClassDef) and any(last_name(a.value) in launchers | names for a in statement.bases):
            names.add(statement.name)
    return frozenset(names)


def _held(module: ir.Module, launchers: frozenset[str]) -> frozenset[str]:
    """The names under which the top of a module keeps a pool or an executor for its functions."""
    return frozenset(
        target.id
        for statement in module.body
        if isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Call)
        and last_name(statement.value.func) in launchers
        for target in statement.targets
        if isinstance(target, ir.Name)
    )


def _held_by_instances(module: ir.Module, launchers: frozenset[str]) -> frozenset[str]:
    """The attributes in which methods keep a pool or an executor for other methods."""
    found: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ir.ClassDef):
            makers = (f for f in functions(statement.body) if f.mentions(launchers))
            found.update(name for maker in makers for name in _attributes(maker.body, launchers))
    return frozenset(found)


def _attributes(body: Iterable[ir.Stmt], launchers: frozenset[str], held: frozenset[str] = frozenset()) -> set[str]:
    """The attributes that get what a launcher makes, or what is made of that: ``loader = cycle(prepare(loader))``.

    ``held``: the variables of the function that have it.
    """
    found: set[str] = set()
    for statement in body:
        match statement:
            case ir.Assign(targets=targets, value=value) if _has_made(value, launchers, held):
                for target in targets:
                    found.update(_attributes_in(target))
                    held |= frozenset(bound_names(target))
            case _:
                found |= _attributes(inner_statements(statement), launchers, held)
    return found


def _has_made(value: ir.Expr, launchers: frozenset[str], held: frozenset[str]) -> bool:
    """Whether a value is what a launcher makes, is kept in one of these variables, or is made of either by calls."""
    match value:
        case ir.Name(id=name):
            return name in held
        case ir.Call(func=callee, args=args):
            return last_name(callee) in launchers or any(_has_made(arg.value, launchers, held) for arg in args)
        case ir.IfExp(body=body, orelse=orelse):
            return _has_made(body, launchers, held) or _has_made(orelse, launchers, held)
        case ir.Display(items=items):
            return any(_has_made(item, launchers, held) for item in items)
    return False


def _attributes_in(target: ir.Expr) -> Iterable[str]:
    match target:
        case ir.Attr(attr=name):
            yield name
        case ir.Display(items=items):
            for item in items:
                yield from _attributes_in(item)


def _aliases(module: ir.Module, names: frozenset[str]) -> frozenset[str]:
    """The other names under which a module knows something: of its imports, and of assignments at its top."""
    found: set[str] = set()
    for statement in module.body:
        match statement:
            case ir.ImportFrom(names=tuple(given)):
                found.update(alias for name, alias in given if alias is not None and name in names)
            case ir.Assign(targets=targets, value=value) if last_name(value) in names:
                found.update(target.id for target in targets if isinstance(target, ir.Name))
    return frozenset(found)


def conftests(files: FileProgram, module: str) -> list[str]:
    """The conftest modules above a test, which pytest imports before it; the nearest first."""
    folder = os.path.dirname(files.sources[module].path)
    found: list[str] = []
    while True:
        name = files.names.get(os.path.join(folder, "conftest.py"))
        if name is not None and name != module:
            found.append(name)
        above = os.path.dirname(folder)
        if above == folder:
            return found
        folder = above
