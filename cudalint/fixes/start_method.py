"""Starting workers by spawn: the pool, process, executor or loader that forks gets a context of its own."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout, names
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.view import Binding, View, dotted
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Kind
from cudalint.machine.trace import Site

# Libraries whose launchers have a context to take them from; pathos, built on one of them, offers none.
_WITH_CONTEXTS = ("torch.multiprocessing", "multiprocessing", "multiprocess", "billiard")
_OF_CONTEXTS = frozenset({"Pool", "Process", "Queue", "SimpleQueue", "JoinableQueue", "Lock", "RLock", "Event"})
_FORKING = {"fork": "spawn", "forkserver": "spawn", "ddp_fork": "ddp_spawn", "ddp_notebook": "ddp_spawn"}


_FRESH = "a fresh process imports main again, starts slower, and knows only what is sent to it"
_BY_VALUE = "workers of loky start slower, have copies of what their functions read, and serve later calls too"
_IN_THREADS = "tasks in threads share what they change, and of their Python code only one runs at a time"
_NO_WORKERS = "a loader that is asked for no workers takes no start method"
_TOLD = "another start method may be asked for"
_GUARDED = "code under the main guard does not run where the module is imported"


def spawn(case: Case) -> Iterator[Proposal]:
    """The launch of the finding by spawn; under joblib by its default backend."""
    launch = case.launch
    if launch is None or _lost_global(case, launch):
        return
    if launch.settled is not None:
        yield from _chosen_elsewhere(case, launch.settled)
    made = case.call_at(launch.made)
    if made is None:
        return
    view, call = made
    open_to = _open_to(case, view, call, launch)
    for changes, what in _launches(view, call, launch):
        doubt = open_to or (_BY_VALUE if launch.family == "joblib" else _FRESH)
        yield Proposal(what, in_file(view, changes), Proof.NEVER_BY_SPAWN if open_to else Proof.SPAWN, doubt)
    if launch.family == "process":
        yield from _other_class(case, launch)


def _open_to(case: Case, view: View, call: cst.Call, launch: Launched) -> str | None:
    """What else the launch may be told, beside what it was seen with: a default is no promise."""
    if launch.family == "loader":
        return None if _workers(view, call) is not None else _NO_WORKERS
    chosen = None if launch.settled is None else case.call_at(launch.settled)
    if chosen is None or not chosen[1].args or any(_words(chosen[1])):
        return None
    return (
        None if all(_is_literal(chosen[0], argument.value, cst.SimpleString) for argument in chosen[1].args) else _TOLD
    )


def _other_class(case: Case, launch: Launched) -> Iterator[Proposal]:
    """Another base for the class whose ``run`` the process runs, in whatever file it stands."""
    for site in launch.targets:
        found = case.at(site)
        if found is None or not isinstance(found[1], cst.FunctionDef) or found[1].name.value != "run":
            continue
        view, run = found
        around = next((n for n in view.around(run) if isinstance(n, cst.ClassDef | cst.FunctionDef)), None)
        if isinstance(around, cst.ClassDef):
            changes = _based_on_spawn(view, around)
            if changes:
                yield Proposal("start this process by spawn", in_file(view, changes), Proof.SPAWN, _FRESH)


def _lost_global(case: Case, launch: Launched) -> bool:
    """Whether the worker reads an inherited global that a fresh process would find empty."""
    if case.outcome.kind is not Kind.INHERITED_CUDA or not case.outcome.effect:
        return False
    found = case.at(case.outcome.effect[-1].site)
    if found is None:
        return False
    view, node = found
    name = _root(node)
    function = view.function(node)
    if name is None or function is None or name in view.bindings() or _binds(view, function, name):
        return False
    made = case.call_at(launch.made)
    initializer = None if made is None else made[0].keyword(made[1], "initializer")
    if made is not None and initializer is not None:
        return not any(name in made[0].source(f) for f in _functions(made[0], dotted(initializer.value)))
    return not any(_sets(view, s, name) for s in view.tree.body)


def _root(node: cst.CSTNode) -> str | None:
    """The name that an expression begins with."""
    while isinstance(node, cst.Call | cst.Attribute | cst.Subscript):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None


def _binds(view: View, function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is a variable of a function."""
    bound = (cst.Param, cst.AssignTarget, cst.For, cst.CompFor, cst.AsName, cst.NamedExpr)
    for node in view.inside(function):
        if isinstance(node, bound):
            target = getattr(node, "target", None) or getattr(node, "name", None)
            if isinstance(target, cst.Name | cst.Tuple) and name in {n.value for n in view.each(target, cst.Name)}:
                return True
    return False


def _functions(view: View, name: str) -> Iterator[cst.FunctionDef]:
    return (n for n in view.each(view.tree, cst.FunctionDef) if n.name.value == name)


def _sets(view: View, statement: cst.CSTNode, name: str) -> bool:
    """Whether a statement at the top of a module gives a name something: neither None nor an empty container."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        match small:
            case cst.Assign(targets=targets, value=value) if any(dotted(t.target) == name for t in targets):
                return not _is_empty(value)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value) if dotted(target) == name:
                return not _is_empty(value)
    compound = isinstance(statement, cst.If | cst.Try | cst.With | cst.For) and not layout.is_guard(view, statement)
    return compound and name in view.source(statement)


def _is_empty(value: cst.BaseExpression) -> bool:
    match value:
        case cst.Name(value="None"):
            return True
        case cst.List(elements=[]) | cst.Tuple(elements=[]) | cst.Dict(elements=[]):
            return True
    return False


def _chosen_elsewhere(case: Case, place: Site) -> Iterator[Proposal]:
    """The word that chose fork, in ``get_context("fork")`` or ``set_start_method("fork")``."""
    found = case.call_at(place)
    if found is None:
        return
    view, call = found
    changes = [_with_word(view, s, _FORKING[w]) for s, w in _words(call) if w in _FORKING]
    if not call.args and dotted(call.func).endswith("get_context"):
        at = view.end(call) - 1
        changes = [Change(at, at, '"spawn"')]
    if changes:
        yield Proposal("choose the start method spawn", in_file(view, changes), Proof.SPAWN, _FRESH)


def _launches(view: View, call: cst.Call, launch: Launched) -> Iterator[tuple[list[Change], str]]:
    match launch.family:
        case "loader":
            yield _loader(view, call), "start this loader's workers by spawn"
        case "executor":
            if launch.keyword:
                yield _executor(view, call, launch), "start this executor's workers by spawn"
        case "joblib":
            yield from _joblib(view, call)
        case "pool" | "process":
            what = f"start this {launch.family} by spawn"
            changes = _from_context(view, call) if launch.library in _WITH_CONTEXTS else []
            if changes:
                yield changes, what
        case "spawn" | "fork-launcher":
            words = [(s, w) for s, w in _literals(view, call) if w in _FORKING]
            if words:
                changed = [_with_word(view, s, _FORKING[w]) for s, w in words]
                first = words[0][1]
                yield changed, f"use `{_FORKING[first]}` in place of `{first}`"


def _executor(view: View, call: cst.Call, launch: Launched) -> list[Change]:
    if launch.keyword == "start_method":
        return view.with_keyword(call, launch.keyword, '"spawn"')
    by_position = [a for a in call.args if a.keyword is None and a.star != "**"]
    if any(argument.star for argument in by_position):
        return []  # What of these is the context, if any, only their length tells.
    context = imports.member(view, _home(view, call, launch), "get_context", call)
    spelled = f'{context.text}("spawn")'
    if len(by_position) > launch.place > 0:
        return [view.replace_whole(by_position[launch.place].value, spelled), *context.changes]
    return [*view.with_keyword(call, launch.keyword, spelled), *context.changes]


def _home(view: View, call: cst.Call, launch: Launched) -> str:
    """The multiprocessing module to take a context from: one that the call sees already, if any."""
    if launch.library not in ("multiprocessing", "torch.multiprocessing"):
        return launch.library
    for name in ("multiprocessing", "torch.multiprocessing"):
        if not imports.module(view, name, call).changes:
            return name
    return "multiprocessing"


def _loader(view: View, call: cst.Call) -> list[Change]:
    number = _workers(view, call)
    if number is None or _is_literal(view, number, cst.Integer):
        return view.with_keyword(call, "multiprocessing_context", '"spawn"')
    return view.with_keyword(call, "multiprocessing_context", f'"spawn" if {view.source(number)} else None')


def _workers(view: View, call: cst.Call) -> cst.BaseExpression | None:
    """How many workers a loader is told to start, where that can be said again: a number or what holds one."""
    given = view.keyword(call, "num_workers")
    return given.value if given is not None and (isinstance(given.value, cst.Integer) or dotted(given.value)) else None


def _is_literal(view: View, value: cst.BaseExpression, literal: type[cst.BaseExpression]) -> bool:
    """Whether an expression is a literal, or the name of one that is bound once."""
    if isinstance(value, literal) or not isinstance(value, cst.Name):
        return isinstance(value, literal)
    own = names.scope_of(view, value)
    if isinstance(own, cst.FunctionDef) and value.value in names.parameters(own):
        return False
    is_local = any(name == value.value for name, _ in names.bindings(view, own))
    bound = names.only_binding(view, own if is_local else view.tree, value.value)
    made = None if bound is None else view.parent(bound)
    return isinstance(made, cst.Assign) and isinstance(made.value, literal)


def _joblib(view: View, call: cst.Call, backend: str = "loky") -> Iterator[tuple[list[Change], str]]:
    """Another backend's name, in the call or in the ``with`` around it."""
    what = "use joblib's default backend, loky, whose workers are fresh interpreters"
    for place in (call, *(c for c in view.calls() if dotted(c.func).rpartition(".")[2].startswith("parallel_"))):
        changes = [_with_word(view, s, backend) for s, w in _words(place) if w == "multiprocessing"]
        if changes:
            yield changes, what


def joblib_threads(case: Case) -> Iterator[Proposal]:
    """Threads in place of forked workers of joblib, where no pickler carries to fresh ones what they read."""
    launch = case.launch
    made = None if launch is None or launch.family != "joblib" else case.call_at(launch.made)
    if made is None:
        return
    for (changes, _), (beside, _) in zip(_joblib(*made, "threading"), _joblib(*made), strict=True):
        yield Proposal(
            "use joblib's threads, which share the GPU and all that the program has",
            in_file(made[0], changes),
            doubt=_IN_THREADS,
            last_resort=True,
            beside=in_file(made[0], beside),
        )


def _from_context(view: View, call: cst.Call) -> list[Change]:
    """``mp.Pool(...)`` as ``mp.get_context("spawn").Pool(...)``; a subclass gets another base."""
    binding = imports.visible(view, call).get(dotted(call.func).partition(".")[0])
    library = None if binding is None else _library(binding)
    if binding is not None and library is None:
        return []
    chosen = _context_call(view, call)
    if chosen is not None:
        return [view.replace(chosen, f'{view.source(chosen.func)}("spawn")')]
    if binding is None and isinstance(call.func, cst.Attribute) and call.func.attr.value in _OF_CONTEXTS:
        # A module or a context that the program keeps under a name of its own: each can give another context.
        return [view.after(call.func.value, '.get_context("spawn")')]
    at_hand = None if library is None else _context_at_hand(view, call, library)
    if at_hand is not None and (made := _last_name(view, call)) in _OF_CONTEXTS:
        return [view.replace(call.func, f"{at_hand}.{made}")]
    if isinstance(call.func, cst.Attribute) and library is not None:
        if dotted(call.func.value).rpartition(".")[2] == "pool":
            context = imports.member(view, library, "get_context", call)
            return [view.replace(call.func.value, f'{context.text}("spawn")'), *context.changes]
        return [view.after(call.func.value, '.get_context("spawn")')]
    if isinstance(call.func, cst.Name) and binding is not None and binding.name is not None and library is not None:
        context = imports.member(view, library, "get_context", call)
        changed = view.replace(call.func, f'{context.text}("spawn").{binding.name}')
        return [changed, *context.changes]
    return _other_base(view, call)


def _last_name(view: View, call: cst.Call) -> str:
    """What a library calls the thing that a call makes."""
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    binding = imports.visible(view, call).get(dotted(call.func))
    return (None if binding is None else binding.name) or ""


def _context_at_hand(view: View, call: cst.Call, library: str) -> str | None:
    """The name of a spawn context that was made above a call, in its own block or one around it."""
    around = {id(node) for node in view.around(call)}
    for name, _ in names.bindings(view, names.scope_of(view, call)):
        made = names.definition(view, name, call)
        statement = None if made is None else view.statement(made)
        if made is None or statement is None or id(view.parent(statement)) not in around:
            continue
        if _is_spawn_context(view, made.value, library):
            return name
    return None


def _is_spawn_context(view: View, value: cst.BaseExpression, library: str) -> bool:
    """Whether something is ``get_context("spawn")`` of a library, or of torch's, which makes the same contexts."""
    if not isinstance(value, cst.Call) or dotted(value.func).rpartition(".")[2] != "get_context":
        return False
    binding = imports.visible(view, value).get(dotted(value.func).partition(".")[0])
    own = None if binding is None else _library(binding)
    is_same = own is not None and own.removeprefix("torch.") == library.removeprefix("torch.")
    return is_same and [word for _, word in _words(value)] == ["spawn"]


def _context_call(view: View, call: cst.Call) -> cst.Call | None:
    """``mp.get_context(method)`` in ``mp.get_context(method).Pool(...)``, whatever the method is."""
    made = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(made, cst.Call) or dotted(made.func).rpartition(".")[2] != "get_context":
        return None
    binding = imports.visible(view, made).get(dotted(made.func).partition(".")[0])
    return made if binding is not None and _library(binding) is not None else None


def _library(binding: Binding) -> str | None:
    """The multiprocessing library that an import is of; its contexts are made by the library, not by its modules."""
    path = binding.module if binding.name is None else f"{binding.module}.{binding.name}"
    return next((name for name in _WITH_CONTEXTS if f"{path}.".startswith(f"{name}.")), None)


def moved_to_spawn(view: View, call: cst.Call, message: str, doubt: str) -> Iterator[Proposal]:
    """Make a thing from the spawn context, where there is one to take it from."""
    changes = _from_context(view, call)
    if changes:
        yield Proposal(message, in_file(view, changes), Proof.SPAWN, doubt)


def _other_base(view: View, call: cst.Call) -> list[Change]:
    name = dotted(call.func)
    found = [n for n in view.each(view.tree, cst.ClassDef) if n.name.value == name]
    return _based_on_spawn(view, found[0]) if len(found) == 1 else []


def _based_on_spawn(view: View, cls: cst.ClassDef) -> list[Change]:
    """A class with the ``Process`` of the spawn context as its base."""
    return next((changes for base in cls.bases if (changes := _spawning_base(view, base.value))), [])


def _spawning_base(view: View, base: cst.BaseExpression) -> list[Change]:
    """``mp.Process`` as a base, from the spawn context."""
    binding = imports.visible(view, base).get(dotted(base).partition(".")[0])
    if isinstance(base, cst.Attribute) and base.attr.value == "Process":
        return [view.after(base.value, '.get_context("spawn")')]
    if binding is not None and binding.name == "Process":
        context = imports.member(view, binding.module, "get_context", base)
        return [view.replace(base, f'{context.text}("spawn").Process'), *context.changes]
    return []


def same_context(case: Case) -> Iterator[Proposal]:
    """A queue, lock or event from the context that its worker is started from."""
    found = case.cause_call()
    if found is not None and case.launch is not None:
        yield from moved_to_spawn(
            *found,
            "make what the worker shares from the same context",
            "other processes that share it may belong to the old context",
        )


def before_cuda(case: Case) -> Iterator[Proposal]:
    """Advice for children that no start method reaches, such as those of ``os.fork()``."""
    if case.outcome.launcher.startswith("os.fork"):
        message = 'start the child with `multiprocessing.get_context("spawn").Process` in place of `os.fork()`'
    elif case.is_in_notebook:
        # A fresh process runs no cell, and has none of their functions.
        module = "put what they run in a module and start them by spawn"
        message = f"start these workers before this process uses CUDA, or {module}"
    else:
        message = "start these workers by spawn, or before this process uses CUDA"
    doubt = "what the child takes from its parent has to be sent to it then"
    if case.launch is not None and case.launch.held is not None:
        doubt += f", and {case.launch.held} cannot be: the worker has to make it"
    yield Proposal(message, {}, doubt=doubt, shown=True)


def guard(case: Case) -> Iterator[Proposal]:
    """What a spawn child must not run again, under a main guard."""
    hops = (*case.outcome.effect, *case.outcome.launch)
    found = case.at(hops[0].site) if hops else case.at(case.outcome.anchor)
    if found is None:
        return
    view, node = found
    statement = view.outermost(node)
    if statement is None or isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return
    for changes in layout.under_main_guard(view, statement):
        if changes:
            yield Proposal("start workers under a main guard", in_file(view, changes), Proof.SPAWN, _GUARDED)


def _words(call: cst.Call) -> Iterator[tuple[cst.SimpleString, str]]:
    """The plain string arguments of a call."""
    for argument in call.args:
        if isinstance(argument.value, cst.SimpleString):
            word = argument.value.evaluated_value
            if isinstance(word, str):
                yield argument.value, word


def _literals(view: View, call: cst.Call) -> Iterator[tuple[cst.SimpleString, str]]:
    """The strings that may say how a launcher starts: its own arguments, else all of the file."""
    own = list(_words(call))
    if any(word in _FORKING for _, word in own):
        yield from own
        return
    for other in view.calls():
        yield from _words(other)


def _with_word(view: View, literal: cst.SimpleString, word: str) -> Change:
    quote = literal.quote
    return view.replace(literal, f"{quote}{word}{quote}")
