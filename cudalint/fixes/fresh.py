"""What a spawned worker lacks: functions and globals that it finds by importing a module."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import layout, names
from cudalint.fixes.edits import Change
from cudalint.fixes.lifting import read_early
from cudalint.fixes.notice import is_named, misses_nothing
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.machine.outcome import Kind

_PLAIN = (
    cst.SimpleString, cst.Integer, cst.Float, cst.UnaryOperation, cst.Minus, cst.List, cst.Tuple, cst.Dict, cst.Set,
    cst.Element, cst.DictElement, cst.Comma, cst.BaseParenthesizableWhitespace, cst.LeftParen, cst.RightParen,
    cst.LeftSquareBracket, cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace, cst.BinaryOperation,
    cst.BaseBinaryOp, cst.Colon,
)  # fmt: skip
_CONSTANTS = frozenset({"True", "False", "None"})
# What runs code where it is computed.
_WORKING = (cst.Call, cst.Await, cst.BaseComp, cst.NamedExpr)


def constant_above_guard(case: Case) -> Iterator[Proposal]:
    """A constant of the main guard, set above it, so that each import of the module sets it."""
    if case.outcome.kind is not Kind.MISSING_GLOBAL or not case.outcome.effect:
        return
    found = case.at(case.outcome.effect[-1].site)
    if found is None:
        return
    view = found[0]
    for guard in view.tree.body:
        if not layout.is_guard(view, guard) or not isinstance(guard, cst.If):
            continue
        for statement in guard.body.body:
            if isinstance(statement, cst.SimpleStatementLine) and _sets(statement, case.outcome.subject):
                moved = layout.moved_above(view, statement, guard)
                changes = [Change(moved[0].start, moved[0].end, moved[0].content + view.newline * 2), *moved[1:]]
                yield Proposal(
                    f"set `{case.outcome.subject}` above the main guard",
                    in_file(view, changes),
                    Proof.NEVER_BY_SPAWN if is_named(case, view) or not misses_nothing(view) else Proof.SPAWN,
                    "other modules that import this one then see it too",
                )


def _sets(statement: cst.SimpleStatementLine, name: str) -> bool:
    match statement.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))], value=value)]:
            return target == name and _is_plain(value)
    return False


def _is_plain(value: cst.CSTNode) -> bool:
    if isinstance(value, cst.Name):
        return value.value in _CONSTANTS
    return isinstance(value, _PLAIN) and all(_is_plain(c) for c in value.children)


def call_itself(case: Case) -> Iterator[Proposal]:
    """``target=lambda: f(x)`` as ``target=f, args=(x,)``."""
    found = case.call_at(case.outcome.anchor)
    if found is None or case.outcome.kind is not Kind.UNPICKLABLE_TARGET:
        return
    view, call = found
    target = view.keyword(call, "target")
    if target is None or view.keyword(call, "args") is not None or view.keyword(call, "kwargs") is not None:
        return
    match target.value:
        case cst.Lambda(params=cst.Parameters(params=[], kwonly_params=[]), body=cst.Call() as inner):
            pass
        case _:
            return
    if any(a.star or a.keyword is not None for a in inner.args):
        return
    if any(isinstance(node, _WORKING) for part in (inner.func, *inner.args) for node in view.inside(part)):
        # The new process was to do this.
        return
    arguments = ", ".join(view.source(a.value) for a in inner.args)
    comma = "," if len(inner.args) == 1 else ""
    yield Proposal(
        f"start `{view.source(inner.func)}` itself",
        in_file(view, [view.replace(target.value, f"{view.source(inner.func)}, args=({arguments}{comma})")]),
        read_early(view, target.value),
        "the arguments are computed when the process is made, not in it",
    )


def named_function(case: Case) -> Iterator[Proposal]:
    """``lambda x: f(x)`` as ``f``, where that is a function of the module."""
    if case.outcome.kind is not Kind.UNPICKLABLE_TARGET:
        return
    places = [case.outcome.anchor, *((case.launch.made,) if case.launch is not None else ())]
    for view, call in [found for p in dict.fromkeys(places) if (found := case.call_at(p)) is not None]:
        for node in view.inside(call):
            name = _handed_on(node)
            if isinstance(node, cst.Lambda) and name is not None and name in names.top(view):
                yield Proposal(
                    f"send `{name}` itself",
                    in_file(view, [view.replace(node, name)]),
                    read_early(view, node),
                    "a lambda reads the name when it is called, here it is read when it is sent",
                )


def _handed_on(node: cst.CSTNode) -> str | None:
    """The function to which a lambda hands its arguments as they are."""
    match node:
        case cst.Lambda(params=parameters, body=cst.Call(func=cst.Name(value=name), args=arguments)):
            given = [*parameters.posonly_params, *parameters.params]
            own = [p.name.value for p in given if p.default is None]
            starred = isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or parameters.kwonly_params
            sent = [a.value.value for a in arguments if isinstance(a.value, cst.Name) and not a.star and not a.keyword]
            if not starred and own == sent and len(own) == len(given) == len(arguments) and own:
                return name
    return None


def sent_along(case: Case) -> Iterator[Proposal]:
    """Advice: where functions and values of a spawned worker belong."""
    subject = case.outcome.subject
    match case.outcome.kind:
        case Kind.UNPICKLABLE_TARGET if _is_value(subject):
            message = _value_of_its_process(subject, case.outcome.detail.strip(" ()"))
            doubt = "the code does not show where else it is used"
        case Kind.UNPICKLABLE_TARGET:
            message = _where_it_belongs(subject)
            doubt = "what the function captures has to become arguments, which changes its signature"
        case Kind.MISSING_GLOBAL:
            message = f"send `{subject}` to the worker as an argument, or through the initializer of the pool"
            doubt = "the functions between the worker and the place that reads it need a parameter more"
        case _:
            message = "make queues, locks and events from the context that starts the worker"
            doubt = "the code does not show where it is made"
    yield Proposal(message, {}, doubt=doubt, shown=True)


def _where_it_belongs(subject: str) -> str:
    """Where a function stands that a fresh process finds."""
    if subject.endswith("notebook defines,"):
        what = subject.partition(",")[0]
        return f"write `{what}` to a module beside the notebook (%%writefile workers.py) and import it"
    if ", which" in subject:
        return f"define `{subject.partition(',')[0]}` at the top of the module"
    if subject.endswith(")"):
        name = subject.partition(" ")[0]
        return f"leave the name `{name}` to its function, or send one whose name in its module is its own"
    what = "it" if subject == "a lambda" else f"`{subject.rpartition(' ')[2]}`"
    return f"define {what} as a function at the top of the module, and send what it captures as arguments"


_OBJECT = "an object of "
_MODULE = "the module "
# What runs, or belongs to its process, by the words that the machine has for it.
_VALUES = (_OBJECT, _MODULE, "a generator", "a coroutine", "a process that was started")
# The makers of threads that multiprocessing has under the same name.
_SHARED = frozenset({"Lock", "RLock", "Event", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"})
_QUEUES = frozenset({"Queue", "SimpleQueue"})


def _is_value(subject: str) -> bool:
    return subject.startswith(_VALUES)


def _value_of_its_process(subject: str, kept: str) -> str:
    """What to do about a value that stays in its process; ``kept`` is the attribute that keeps it, if one does."""
    module, _, name = subject.removeprefix(_OBJECT).rpartition(".")
    if (module == "threading" and name in _SHARED) or (module == "queue" and name in _QUEUES):
        without = f"{_left_out(kept)}, or " if kept else ""
        return f"{without}share a `multiprocessing.{name}()`: that of `{module}` belongs to the threads of one process"
    if subject == "a generator":
        return "send what it gives, such as `list(...)`, or make it in the worker"
    if subject.startswith(_MODULE):
        return f"import `{subject.removeprefix(_MODULE)}` in the worker"
    return f"make it in the worker, and {_left_out(kept)}" if kept else "make it in the worker"


def _left_out(kept: str) -> str:
    by = " (`__getstate__`)" if " of " in kept else ""
    return f"leave {kept} out of what is sent{by}"
