"""Start methods that come too late, or that the library which launches does not listen to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.start_method import moved_to_spawn
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind

_CHOICE = "set_start_method"
# Libraries with a default of their own that can be set.
_SETTABLE = frozenset({"billiard", "multiprocess", "multiprocessing", "torch.multiprocessing"})
_EARLIER = "all that is made after it, which was forked so far, then starts by the new method"


def choose_first(case: Case) -> Iterator[Proposal]:
    """The one choice that counts, above everything that would settle the start method."""
    found = case.call_at(case.outcome.anchor)
    if found is None or case.outcome.kind is not Kind.METHOD_ALREADY_SET:
        return
    view, call = found
    yield from _dropped(case, call)
    if not call.args or not all(isinstance(a.value, cst.SimpleString | cst.Name) for a in call.args):
        return
    if not isinstance(call.args[0].value, cst.SimpleString):
        return
    statement = _movable(view, call)
    if statement is None:
        return
    for target in (None if _at_import(case) else layout.guarded(view), _leading_there(case, view, call)):
        if target is None or target is statement or not _known(view, call, target):
            continue
        if view.start(target) < view.start(statement) or view.function(target) is not view.function(statement):
            changes = layout.moved_above(view, statement, target)
            yield Proposal("choose the start method first", in_file(view, changes), Proof.SPAWN, _EARLIER)


def own_context(case: Case) -> Iterator[Proposal]:
    """What settles the default gets a context of its own, the one that is chosen afterwards."""
    found = case.call_at(case.outcome.anchor)
    settled = case.cause_call()
    if found is None or settled is None or case.outcome.kind is not Kind.METHOD_ALREADY_SET:
        return
    word = next((a.value for a in found[1].args if isinstance(a.value, cst.SimpleString)), None)
    if word is None or word.evaluated_value != "spawn" or settled[1] is found[1]:
        return
    yield from moved_to_spawn(
        *settled,
        "make it from the spawn context, which leaves the default open",
        "at the top of a module each fresh process makes one of its own",
    )


def right_library(case: Case) -> Iterator[Proposal]:
    """The start method of the library that starts the workers."""
    found = case.call_at(case.outcome.anchor)
    library = case.outcome.detail
    if found is None or case.outcome.kind is not Kind.METHOD_WITHOUT_EFFECT or library not in _SETTABLE:
        return
    view, call = found
    name = imports.member(view, library, _CHOICE, call)
    doubt = f"all workers of {library} then start by spawn"
    yield Proposal(
        f"set the start method of {library}",
        in_file(view, [view.replace(call.func, name.text), *name.changes]),
        Proof.SPAWN,
        doubt,
    )
    statement = view.statement(call)
    if statement is not None and layout.has_own_rows(view, statement):
        arguments = view.text[view.end(call.func) : view.end(call)]
        line = view.lines_after(statement, [f"{name.text}{arguments}"])
        yield Proposal(
            f"set the start method of {library} too", in_file(view, [line, *name.changes]), Proof.SPAWN, doubt
        )


def over_an_import(case: Case) -> Iterator[Proposal]:
    """``force=True``, where a library chooses a start method as it is imported: no call stands before that."""
    found = case.call_at(case.outcome.anchor)
    settled = case.at(case.outcome.cause[-1].site) if case.outcome.cause else None
    if found is None or settled is None or not isinstance(settled[1], cst.Import | cst.ImportFrom):
        return
    view, call = found
    yield Proposal(
        "set it with `force=True`, over what the import has set",
        in_file(view, view.with_keyword(call, "force", "True")),
        Proof.SPAWN,
        "what the import starts or makes has the other method",
    )


def from_the_start(case: Case) -> Iterator[Proposal]:
    """Advice where no call can be moved."""
    if case.outcome.kind is Kind.METHOD_ALREADY_SET:
        message = "choose the start method once, in the first statement of the main guard"
    else:
        message = f"choose how {case.outcome.detail} starts its workers by its own means"
    yield Proposal(message, {}, doubt="the code does not show where it can move to", shown=True)


def _at_import(case: Case) -> bool:
    """Whether the start method is settled while modules are imported: the main guard comes after that."""
    found = case.at(case.outcome.cause[0].site) if case.outcome.cause else None
    if found is None:
        return False
    return not layout.is_guard(found[0], found[0].outermost(found[1]))


def _dropped(case: Case, call: cst.Call) -> Iterator[Proposal]:
    """Without the earlier of two choices."""
    earlier = case.cause_call()
    if earlier is None or earlier[1] is call or not dotted(earlier[1].func).endswith(_CHOICE):
        return
    view = earlier[0]
    statement = view.statement(earlier[1])
    if statement is not None and layout.has_own_rows(view, statement):
        yield Proposal(
            "drop the earlier choice of a start method",
            in_file(view, layout.dropped(view, statement)),
            Proof.SPAWN,
            "what is started in between then starts by another method",
        )


def _movable(view: View, call: cst.Call) -> cst.BaseStatement | None:
    """The call's statement, with the ``try`` that is around nothing else; None where a condition decides on it."""
    statement = view.statement(call)
    if statement is None or not layout.has_own_rows(view, statement):
        return None
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Expr):
        return None
    block = view.parent(statement)
    around = None if block is None else view.parent(block)
    if isinstance(around, cst.Try) and len(view.siblings(statement)) == 1 and around.body is block:
        if around.orelse is not None or around.finalbody is not None or not layout.has_own_rows(view, around):
            return None
        block, statement = view.parent(around), around
        around = None if block is None else view.parent(block)
    while isinstance(around, cst.With):
        # Whatever is entered there may be what settles the start method, as a manager does.
        block = view.parent(around)
        around = None if block is None else view.parent(block)
    plain = isinstance(block, cst.Module) or isinstance(around, cst.FunctionDef) or layout.is_guard(view, around)
    return statement if plain else None


def _leading_there(case: Case, view: View, call: cst.Call) -> cst.CSTNode | None:
    """The statement, in the function of the call, that leads to what settles the start method."""
    function = view.function(call)
    for hop in case.outcome.cause:
        found = case.at(hop.site)
        if found is None or found[0].path != view.path or view.function(found[1]) is not function:
            continue
        statement = view.statement(found[1])
        while statement is not None and call_block(view, statement) is not call_block(view, _movable(view, call)):
            above = view.parent(statement)
            statement = None if above is None else view.statement(above)
        return statement
    return None


def call_block(view: View, statement: cst.CSTNode | None) -> cst.CSTNode | None:
    """The block a statement stands in."""
    return None if statement is None else view.parent(statement)


def _known(view: View, call: cst.Call, target: cst.CSTNode) -> bool:
    """Whether the call's name means the same at the target: always in the same function, else a module-level import."""
    if view.function(call) is view.function(target):
        return True
    root = dotted(call.func).partition(".")[0]
    statements = view.each(view.tree, cst.Import, cst.ImportFrom)
    return any(view.function(s) is None and root in view.source(s) for s in statements)
