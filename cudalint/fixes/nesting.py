"""Workers that may have children of their own (of an executor, or no daemons), or that do without."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import captures, imports, layout, names
from cudalint.fixes.edits import Change
from cudalint.fixes.loaders import dotted_attribute, without_workers
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.view import View, dotted

_LAZY = frozenset({"imap", "imap_unordered"})
_ENDS = frozenset({"close", "join", "terminate"})
# What an object has as a process and as a thread alike.
_OF_BOTH = frozenset({"start", "join", "is_alive", "daemon", "name"})
_FOR_BOTH = frozenset({"target", "args", "kwargs", "name", "daemon"})
_WAITS = frozenset({"get", "recv", "wait", "acquire"})
# Pools of processes, what takes as much as a pool of threads, and what only they take, for which threads need nothing.
_THREADS = {
    "Pool": ("multiprocessing.pool", "ThreadPool", ("processes", "initializer", "initargs"), ()),
    "ProcessPoolExecutor": (
        "concurrent.futures",
        "ThreadPoolExecutor",
        ("max_workers", "initializer", "initargs"),
        ("mp_context",),
    ),
}
_SHARED = (
    "threads share the variables of the worker, and of Python code in them only one runs at a time; "
    "what it does to its process then happens in the worker"
)
_ADVICE = {
    "loader": "do the work in the loader's worker itself: `num_workers` is its way of working in parallel",
    "pool": "use a `ProcessPoolExecutor` for the outer workers, or do the work in the worker itself",
    "process": "start the outer process without `daemon=True`, or do the work in the process itself",
}


def executor_instead(case: Case) -> Iterator[Proposal]:
    """A ``ProcessPoolExecutor`` in place of the outer pool, where all its uses have an equivalent."""
    launch = case.launch
    made = None if launch is None or launch.family != "pool" else case.call_at(launch.made)
    if made is None:
        return
    view, call = made
    changes = _executor(view, call)
    name = _bound_to(view, call)
    if changes is None or name is None:
        return
    for use in _uses(view, name, call):
        changed = _use(view, use)
        if changed is None:
            return
        changes += changed
    yield Proposal(
        "use a `ProcessPoolExecutor`, whose workers may start processes",
        in_file(view, changes),
        doubt="an executor reports a dead worker as `BrokenProcessPool` and waits for its tasks at the end",
    )


def no_daemon(case: Case) -> Iterator[Proposal]:
    """The outer process without ``daemon=True``."""
    launch = case.launch
    made = None if launch is None or launch.family not in ("process", "spawn") else case.call_at(launch.made)
    if made is None:
        return
    view, call = made
    changes = [view.without_argument(call, a) for a in call.args if _is_daemon(a)]
    for statement in _daemon_statements(view, call):
        changes += layout.dropped(view, statement)
    for inner in _base_calls(view, call):
        changes += [view.without_argument(inner, a) for a in inner.args if _is_daemon(a)]
    if changes:
        yield Proposal(
            "start the outer process without `daemon=True`, so that it may have children",
            in_file(view, changes),
            doubt="the process no longer ends with its parent, which waits for it",
        )


def load_in_the_worker(case: Case) -> Iterator[Proposal]:
    """A loader without workers inside of a worker."""
    found = case.call_at(case.outcome.anchor)
    changes = None if found is None else without_workers(*found)
    if found is not None and changes:
        yield Proposal(
            "load in the worker itself, without workers of the loader",
            in_file(found[0], changes),
            doubt="the samples are then made one after the other in this worker",
        )


def threads_inside(case: Case) -> Iterator[Proposal]:
    """Threads of the worker in place of its processes."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    what, changes = "a pool of threads", _thread_pools(view, call)
    if not changes:
        what, changes = "a thread", _thread(view, call)
    if changes:
        yield Proposal(f"use {what} in the worker, which may have no processes", in_file(view, changes), doubt=_SHARED)


def one_level(case: Case) -> Iterator[Proposal]:
    """Advice where the outer workers stay daemons."""
    family = "pool" if case.launch is None else case.launch.family
    yield Proposal(
        _ADVICE.get(family, _ADVICE["pool"]),
        {},
        doubt="which of the two levels is the right one is a decision about the program",
        shown=True,
    )


# -- pools -------------------------------------------------------------------------------------------------


def _executor(view: View, call: cst.Call) -> list[Change] | None:
    """The call that makes the pool, as one that makes an executor."""
    if view.keyword(call, "maxtasksperchild") is not None or len(call.args) > 3 or any(a.star for a in call.args):
        return None
    changes: list[Change] = []
    processes = view.keyword(call, "processes")
    if processes is not None and processes.keyword is not None:
        changes.append(view.replace(processes.keyword, "max_workers"))
    if [a for a in call.args if a.keyword is None][1:]:
        return None  # The second of a pool is its initializer, that of an executor a context.
    context = _context(view, call)
    if context is not None:
        changes += view.with_keyword(call, "mp_context", context)
    name = imports.member(view, "concurrent.futures", "ProcessPoolExecutor", call)
    return [view.replace(call.func, name.text), *changes, *name.changes]


def _context(view: View, call: cst.Call) -> str | None:
    """The context that a pool is made from; None where that is the library itself."""
    if not isinstance(call.func, cst.Attribute):
        return None
    binding = view.bindings().get(dotted(call.func).partition(".")[0]) if dotted(call.func) else None
    return None if binding is not None else view.source(call.func.value)


def _bound_to(view: View, call: cst.Call) -> str | None:
    """The name that a pool is given: by ``with ... as``, or by an assignment."""
    match view.parent(call):
        case cst.WithItem(asname=cst.AsName(name=cst.Name(value=name))):
            return name
    return names.assigned_to(view, call)


def _uses(view: View, name: str, place: cst.CSTNode) -> Iterator[cst.Name]:
    """Where a file reads the variable that a name stands for at a place; the repair must not miss one."""
    home, is_declared = captures.binding_scope(view, place, name), captures.is_declared(view, name)
    for node in view.inside(view.tree):
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        if not is_declared and captures.binding_scope(view, node, name) is not home:
            continue
        around = view.parent(node)
        bound = isinstance(around, cst.AsName | cst.AssignTarget | cst.Param)
        if not bound and not (isinstance(around, cst.Arg) and around.keyword is node):
            yield node


def _use(view: View, use: cst.Name) -> list[Change] | None:
    """One use of the pool as one of an executor; None where there is no equivalent."""
    attribute = view.parent(use)
    if not isinstance(attribute, cst.Attribute) or attribute.value is not use:
        return [] if isinstance(attribute, cst.WithItem) else None
    call = view.parent(attribute)
    if not isinstance(call, cst.Call) or call.func is not attribute:
        return None
    method = attribute.attr.value
    if method in _ENDS and not call.args:
        return [view.replace(attribute.attr, "shutdown")]
    if method == "apply":
        return _submitted(view, attribute, call)
    if method != "map" and method not in _LAZY:
        return None
    changes = [] if method == "map" else [view.replace(attribute.attr, "map")]
    if len(call.args) > 2 and call.args[2].keyword is None:
        changes.append(view.before(call.args[2].value, "chunksize="))
    return changes + (view.around_text(call, "list(", ")") if method == "map" and _is_list(view, call) else [])


def _is_list(view: View, call: cst.Call) -> bool:
    """Whether what ``map`` gives is used in a way that an iterator would not serve; a bare statement has to run too."""
    around = view.parent(call)
    return not isinstance(around, cst.For | cst.CompFor)


def _submitted(view: View, attribute: cst.Attribute, call: cst.Call) -> list[Change] | None:
    """``pool.apply(f, (a, b))`` as ``pool.submit(f, a, b).result()``."""
    given = [a for a in call.args if a.keyword is None]
    if len(given) != len(call.args) or not 1 <= len(given) <= 2:
        return None
    changes = [view.replace(attribute.attr, "submit"), view.after(call, ".result()")]
    if len(given) == 2:
        row = given[1].value
        if "#" in view.source(row):
            return None
        if isinstance(row, cst.Tuple | cst.List):
            changes.append(view.replace_whole(row, ", ".join(view.source(e.value) for e in row.elements)))
        else:
            changes.append(view.before(row, "*"))
    return changes


# -- threads ---------------------------------------------------------------------------------------------


def _thread_pools(view: View, call: cst.Call) -> list[Change]:
    """The pool that a call makes, or hands work to, as one of threads."""
    changes = _thread_pool(view, call)
    if changes or not isinstance(call.func, cst.Attribute):
        return changes
    pools = [_thread_pool(view, made) for made in names.made_for(view, view.source(call.func.value))]
    return list(dict.fromkeys(c for pool in pools for c in pool)) if all(pools) else []


def _thread_pool(view: View, call: cst.Call) -> list[Change]:
    """A pool of processes as one of threads; empty where it is given what that does not take."""
    instead = _THREADS.get(dotted_attribute(call))
    if instead is None:
        return []
    module, name, same, dropped = instead
    if any(a.star or (a.keyword is not None and a.keyword.value not in (*same, *dropped)) for a in call.args):
        return []
    if len([a for a in call.args if a.keyword is None]) > (1 if dropped else len(same)):
        return []  # The second of an executor of processes is its context.
    threads = imports.member(view, module, name, call)
    gone = [a for a in call.args if a.keyword is not None and a.keyword.value in dropped]
    taken = view.without_arguments(call, gone)
    return [view.replace(call.func, threads.text), *taken, *threads.changes]


def _thread(view: View, start: cst.Call) -> list[Change]:
    """The process that a call starts as a thread; empty where it is used as nothing but a process can be."""
    if not isinstance(start.func, cst.Attribute) or start.func.attr.value != "start":
        return []
    made: cst.BaseExpression = start.func.value
    if isinstance(made, cst.Name):
        assigned = names.definition(view, made.value, start)
        if assigned is None or not all(_is_of_both(view, use) for use in _uses(view, made.value, made)):
            return []
        made = assigned.value
    if not isinstance(made, cst.Call) or dotted_attribute(made) != "Process" or _class_of(view, made) is not None:
        return []
    if any(a.star or a.keyword is None or a.keyword.value not in _FOR_BOTH for a in made.args):
        return []
    if not _is_seen_to_end(view, made):
        return []
    thread = imports.member(view, "threading", "Thread", made)
    return [view.replace(made.func, thread.text), *thread.changes]


def _is_of_both(view: View, use: cst.Name) -> bool:
    around = view.parent(use)
    return isinstance(around, cst.Attribute) and around.value is use and around.attr.value in _OF_BOTH


def _is_seen_to_end(view: View, made: cst.Call) -> bool:
    """Whether the function that a process runs stands in this file and waits for nothing that it is sent."""
    target = view.keyword(made, "target")
    name = "" if target is None else dotted(target.value)
    found = [n for n in view.each(view.tree, cst.FunctionDef) if n.name.value == name]
    if len(found) != 1:
        return False
    given = names.parameters(found[0])
    waits = (n for n in view.each(found[0], cst.Attribute) if n.attr.value in _WAITS)
    return not any(dotted(n.value) in given for n in waits)


# -- processes ---------------------------------------------------------------------------------------------


def _is_daemon(argument: cst.Arg) -> bool:
    if argument.keyword is None or argument.keyword.value != "daemon":
        return False
    return isinstance(argument.value, cst.Name) and argument.value.value == "True"


def _class_of(view: View, call: cst.Call) -> cst.ClassDef | None:
    name = dotted(call.func).rpartition(".")[2]
    return next((n for n in view.each(view.tree, cst.ClassDef) if n.name.value == name), None)


def _daemon_statements(view: View, call: cst.Call) -> Iterator[cst.BaseStatement]:
    """``p.daemon = True``, of the process or in its class."""
    holder = _class_of(view, call)
    name = _assigned_to(view, call)
    for node in view.inside(view.tree):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=made, attr=cst.Name(value="daemon")))],
                value=cst.Name(value="True"),
            ):
                owner = dotted(made)
                own = holder is not None and owner == "self" and holder in view.around(node)
                statement = view.statement(node)
                if (own or owner == name) and owner and statement is not None and layout.has_own_rows(view, statement):
                    yield statement


def _assigned_to(view: View, call: cst.Call) -> str:
    """What a process is assigned to: a name, or an attribute."""
    match view.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            return dotted(target)
    return ""


def _base_calls(view: View, call: cst.Call) -> Iterator[cst.Call]:
    """``super().__init__(daemon=True)`` in the class of the process."""
    holder = _class_of(view, call)
    for node in view.inside(holder) if holder is not None else ():
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "__init__":
            yield node
