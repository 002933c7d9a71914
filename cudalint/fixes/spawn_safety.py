"""Whether a worker that was forked is proven to live under spawn.

What is wrong for certain (a target that cannot be imported, a missing main guard, a lock of another context) the
machine says when it runs the changed program. Here is the rest: what may go wrong, or merely be different.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.fixes.queries import asks_for_gpus
from cudalint.ir import nodes as ir
from cudalint.ir.walk import bound_names
from cudalint.machine.outcome import Outcome
from cudalint.machine.trace import Site
from cudalint.project.analysis import Basis
from cudalint.project.program import functions

_FRESH = ("spawn", "loky")
# Settings of a process that a fresh one does not have.
_SETTINGS = frozenset(
    {
        "basicConfig", "dictConfig", "fileConfig", "filterwarnings", "manual_seed", "seed", "seed_everything",
        "set_seed", "set_default_dtype", "set_default_device", "set_default_tensor_type", "set_num_threads",
        "set_num_interop_threads", "set_float32_matmul_precision", "setrecursionlimit", "setrlimit", "setlocale",
        "use_deterministic_algorithms", "set_sharing_strategy", "signal", "register", "mock", "patch",
    }
)  # fmt: skip
_MUTATORS = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear"}
)


def spawn_doubt(outcome: Outcome, after: Basis) -> str | None:
    """Why a change to spawn is not proven, in words that complete "because"; None where it is."""
    fresh = [found for (_, method), found in after.launches.items() if method in _FRESH]
    if not fresh:
        return "the launch is not seen any more after the change"
    for launch in fresh:
        if launch.unproven is not None:
            return f"its arguments may not pickle: {launch.unproven}"
        if not launch.targets:
            return "the code does not show what the worker runs"
    targets = tuple(t for launch in fresh for t in launch.targets)
    main = _main_of(outcome)
    for name in sorted({main, *(t.module for t in targets)}):
        doubt = _module_doubt(after, name, targets)
        if doubt is not None:
            return doubt
    return None


def _main_of(outcome: Outcome) -> str:
    first = next(iter((*outcome.launch, *outcome.cause)), None)
    return outcome.anchor.module if first is None else first.site.module


def _module_doubt(basis: Basis, name: str, targets: tuple[Site, ...]) -> str | None:
    module = basis.files.module(name)
    if module is None:
        return f"{name} is not seen"
    if module.words & _SETTINGS:
        setting = sorted(module.words & _SETTINGS)[0]
        return f"a fresh process does not have what `{setting}` sets up"
    if asks_for_gpus(module):
        return "the program may also run without a GPU"
    acting = next((s for s in module.body if not _is_declaration(s)), None)
    if acting is not None:
        return "the top of the module does work, which each fresh process would repeat"
    read = _words_of_worker(module, targets)
    changed = sorted(_changed_globals(module) & read)
    if changed:
        return f"the worker reads `{changed[0]}`, which the program changes; a fresh process would not see it"
    return None


def _is_declaration(statement: ir.Stmt) -> bool:
    """Imports, definitions, constants, and the main guard."""
    match statement:
        case ir.Import() | ir.ImportFrom() | ir.FunctionDef() | ir.ClassDef() | ir.Declare():
            return True
        case ir.ExprStmt(value=ir.Const()):
            return True
        case ir.Assign(value=value):
            return _is_plain(value)
        case ir.If(test=test):
            return is_main_test(test)
    return False


def _is_plain(value: ir.Expr) -> bool:
    match value:
        case ir.Const() | ir.Name() | ir.Attr():
            return True
        case ir.Display(items=items):
            return all(_is_plain(i) for i in items)
        case ir.DictDisplay(items=items):
            return all(_is_plain(v) and (k is None or _is_plain(k)) for k, v in items)
        case ir.Bin(first=first, rest=rest):
            return _is_plain(first) and all(_is_plain(v) for _, v in rest)
        case ir.Unary(value=inner):
            return _is_plain(inner)
    return False


def is_main_test(test: ir.Expr) -> bool:
    """``__name__ == "__main__"``, either way round."""
    match test:
        case ir.Compare(left=ir.Name(id="__name__"), op="==", right=ir.Const(value="__main__")):
            return True
        case ir.Compare(left=ir.Const(value="__main__"), op="==", right=ir.Name(id="__name__")):
            return True
    return False


def _words_of_worker(module: ir.Module, targets: tuple[Site, ...]) -> set[str]:
    """The words of all code of a module that a worker may run: its targets, and whatever they name."""
    definitions = dict(_definitions(module.body))
    ordinals = {t.ordinal for t in targets if t.module == module.name}
    words: set[str] = set()
    waiting = [f.words for f in functions(module.body) if f.ordinal in ordinals]
    waiting += [s.words for s in module.body if isinstance(s, ir.ClassDef)]
    while waiting:
        fresh = waiting.pop() - words
        words |= fresh
        waiting.extend(definitions[n] for n in fresh if n in definitions)
    return words


def _definitions(body: Iterable[ir.Stmt]) -> Iterator[tuple[str, frozenset[str]]]:
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function.name, function.words
            case ir.ClassDef(name=name, words=words):
                yield name, words


def _changed_globals(module: ir.Module) -> set[str]:
    """Names of the module that are bound under the main guard, bound again, or changed in place by some code."""
    top: set[str] = set()
    changed: set[str] = set()
    for statement in module.body:
        match statement:
            case ir.Assign(targets=targets):
                for target in targets:
                    names = set(bound_names(target))
                    changed |= names & top
                    top |= names
            case ir.FunctionDef(function=function):
                changed |= _changes_in(function.body)
            case ir.ClassDef(body=body):
                changed |= _changes_in(body)
            case ir.If(body=body, orelse=orelse):
                changed |= _changes_in((*body, *orelse)) | set(_bound_in((*body, *orelse)))
    return changed & (top | _guard_names(module))


def _guard_names(module: ir.Module) -> set[str]:
    blocks = [s for s in module.body if isinstance(s, ir.If)]
    named = {n for s in module.body if isinstance(s, ir.FunctionDef) for n in _declared_global(s.function)}
    return named | {n for s in blocks for n in _bound_in((*s.body, *s.orelse))}


def _declared_global(function: ir.Function) -> Iterator[str]:
    for node in _walk(list(function.body)):
        if isinstance(node, ir.Scoping) and node.kind == "global":
            yield from node.names


def _changes_in(body: Iterable[ir.Stmt]) -> set[str]:
    """Globals that code rebinds, stores into or calls a mutating method of."""
    found: set[str] = set()
    for node in _walk(list(body)):
        match node:
            case ir.Scoping(kind="global", names=names):
                found.update(names)
            case ir.Assign(targets=targets):
                for target in targets:
                    found.update(_stored_into(target))
            case ir.AugAssign(target=target):
                found.update(_stored_into(target))
            case ir.Delete(targets=targets):
                for target in targets:
                    found.update(_stored_into(target))
            case ir.Call(func=ir.Attr(value=ir.Name(id=name), attr=attr)) if attr in _MUTATORS:
                found.add(name)
    return found


def _stored_into(target: ir.Expr) -> Iterator[str]:
    match target:
        case ir.Attr(value=value) | ir.Sub(value=value):
            while isinstance(value, ir.Attr | ir.Sub):
                value = value.value
            if isinstance(value, ir.Name):
                yield value.id
        case ir.Display(items=items):
            for item in items:
                yield from _stored_into(item)


def _bound_in(body: Iterable[ir.Stmt]) -> Iterator[str]:
    for node in _walk(list(body), into_functions=False):
        match node:
            case ir.Assign(targets=targets):
                for target in targets:
                    yield from bound_names(target)
            case ir.AugAssign(target=target) | ir.For(target=target):
                yield from bound_names(target)
            case ir.With(items=items):
                for _, bound in items:
                    if bound is not None:
                        yield from bound_names(bound)


_Node = ir.Stmt | ir.Expr


def _walk(nodes: list[_Node] | list[ir.Stmt], *, into_functions: bool = True) -> Iterator[_Node]:
    """Statements and expressions below nodes."""
    stack: list[_Node] = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        match node:
            case ir.FunctionDef(function=function):
                if into_functions:
                    stack.extend(function.body)
            case ir.ClassDef(body=body):
                stack.extend(body)
            case _:
                stack.extend(_below(node))


def _below(node: object) -> Iterator[_Node]:
    for slot in _slots(type(node)):
        yield from _nodes_in(getattr(node, slot))


def _slots(kind: type) -> Iterator[str]:
    for cls in kind.__mro__:
        yield from getattr(cls, "__slots__", ())


def _nodes_in(value: object) -> Iterator[_Node]:
    if isinstance(value, ir.Stmt | ir.Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)
    elif isinstance(value, ir.Arg | ir.Handler | ir.Case | ir.Generator):
        yield from _below(value)
