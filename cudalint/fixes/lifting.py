"""Local functions and lambdas that a fresh process cannot find: lifted to the top of the module, or not needed."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout, names
from cudalint.fixes.captures import Capture, Function, capture, is_constant, own_uses, references
from cudalint.fixes.defaults import NONE_TAKEN, Taken, is_readable_at, taken_defaults
from cudalint.fixes.edits import Change, inside
from cudalint.fixes.notice import goes_unnoticed
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind

_EARLY = "what it closes over is read when it is sent, and each worker has a copy of its own"
_VISIBLE = "the function is then visible in the whole module, under a name that it may not have had"
_READ_NOW = "a lambda reads what it names when it is called, here that is read when it is sent"
_WORK = ("work", "task", "work_on", "run_task", "in_worker")


def partial_in_place(case: Case) -> Iterator[Proposal]:
    """``lambda x: f(x, y=z)`` as ``partial(f, y=z)``, where ``f`` is a function of the module."""
    for view, function in _sent(case):
        if not isinstance(function, cst.Lambda):
            continue
        given = _bound(view, function)
        if given is None:
            continue
        partial = imports.member(view, "functools", "partial", function)
        content = f"{partial.text}({', '.join(given)})"
        yield Proposal(
            f"send `{content}` in place of the lambda",
            in_file(view, [view.replace_whole(function, content), *partial.changes]),
            read_early(view, function),
            _READ_NOW,
        )


def def_in_place(case: Case) -> Iterator[Proposal]:
    """``f = lambda x: ...`` at the top of the module as a function of that name, which can be found by it."""
    for view, function in _sent(case):
        match function, view.parent(function):
            case cst.Lambda(), cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assign:
                statement = view.statement(assign)
            case _:
                continue
        if statement is None or not isinstance(view.parent(statement), cst.Module):
            continue
        if not layout.has_own_rows(view, statement):
            continue
        rows = _as_def(view, function, name, Capture(()))
        if rows is None:
            continue
        yield Proposal(
            f"define `{name}` as a function",
            in_file(view, [view.replace(statement, view.newline.join(rows))]),
            Proof.SPAWN if goes_unnoticed(case, view, name, None) else Proof.NEVER_BY_SPAWN,
            "a function has its name also in tracebacks, where a lambda has none",
        )


def to_the_top(case: Case) -> Iterator[Proposal]:
    """A local function or lambda at the top of the module; what it closes over comes by ``functools.partial``."""
    for view, function in _sent(case):
        found = capture(view, function)
        taken = taken_defaults(view, function)
        if found is None or taken is None or not _stands_alone(view, function, taken):
            continue
        if isinstance(function, cst.FunctionDef):
            yield from _function(case, view, function, found, taken)
        elif (assigned := _assigned(view, function)) is not None:
            yield from _named_lambda(view, function, found, taken, *assigned)
        else:
            yield from _lambda(view, function, found, taken)


# -- what is sent --------------------------------------------------------------------------------------------


def _sent(case: Case) -> Iterator[tuple[View, Function]]:
    """The functions without a name in their module that the launch sends: those it runs, then those it is given."""
    if case.outcome.kind is not Kind.UNPICKLABLE_TARGET:
        return
    seen: set[int] = set()
    for view, node in (*_run(case), *_given(case)):
        if isinstance(node, cst.FunctionDef | cst.Lambda) and id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, cst.Lambda) or view.function(node) is not None or _in_guard(view, node):
                yield view, node


def _run(case: Case) -> Iterator[tuple[View, cst.CSTNode]]:
    launch = case.launch
    for site in () if launch is None else (*launch.targets, *launch.prepared):
        found = case.at(site)
        if found is not None:
            yield found


def _given(case: Case) -> Iterator[tuple[View, cst.CSTNode]]:
    """Functions of the name that the outcome tells, and lambdas in the call."""
    view = case.view(case.outcome.anchor.module)
    name = case.outcome.subject.rpartition(" ")[2]
    places = [case.outcome.anchor, *((case.launch.made,) if case.launch is not None else ())]
    if view is not None:
        named = (n for n in view.each(view.tree, cst.FunctionDef) if n.name.value == name)
        yield from ((view, node) for node in named)
    for place, call in [found for p in dict.fromkeys(places) if (found := case.call_at(p)) is not None]:
        for inner in place.inside(call):
            made = _named_in(place, inner, call) if isinstance(inner, cst.Name) else inner
            if isinstance(made, cst.Lambda):
                yield place, made


def _named_in(view: View, name: cst.Name, call: cst.Call) -> cst.BaseExpression | None:
    """What a name in a call was given, by an assignment of its own function or at the top of the module."""
    made = names.definition(view, name.value, call)
    if made is not None:
        return made.value
    top = [b for n, b in names.bindings(view, view.tree) if n == name.value]
    above = view.parent(top[0]) if len(top) == 1 else None
    return above.value if isinstance(above, cst.Assign) else None


def _in_guard(view: View, function: cst.FunctionDef) -> bool:
    return layout.is_guard(view, view.outermost(function))


def read_early(view: View, function: cst.Lambda) -> Proof:
    """What can be proven where all that a lambda calls and gives is read when it is sent, as an argument of its own."""
    body = function.body
    assert isinstance(body, cst.Call)
    own = {p.name.value for p in layout.all_parameters(function.params)}
    values = [body.func, *(a.value for a in body.args)]
    others = [v for v in values if not (isinstance(v, cst.Name) and v.value in own)]
    alike = isinstance(view.parent(function), cst.Arg) and all(is_constant(view, v, function) for v in others)
    return Proof.SPAWN if alike else Proof.NEVER_BY_SPAWN


# -- a lambda that only calls a function -----------------------------------------------------------------------


def _bound(view: View, function: cst.Lambda) -> list[str] | None:
    """The arguments of a ``partial`` that does what a lambda does; None where there is none."""
    given = _plain_parameters(function.params)
    match function.body:
        case cst.Call(func=cst.Name(value=name), args=arguments) if name in names.top(view):
            called = _defined(view, name)
        case _:
            return None
    if given is None or any(a.star for a in arguments):
        return None
    values = [a.value.value if isinstance(a.value, cst.Name) else None for a in arguments]
    handed = [i for i, value in enumerate(values) if value in given]
    if [values[i] for i in handed] != given or any(arguments[i].keyword for i in handed):
        return None
    if handed != list(range(handed[0], handed[0] + len(handed))) if handed else not arguments:
        return None
    last = handed[-1] if handed else len(arguments) - 1
    kept: list[str] = [name]
    for i, argument in enumerate(arguments):
        if i in handed:
            continue
        if not _is_settled_value(argument.value):
            return None
        word = "" if argument.keyword is None else argument.keyword.value
        if i > last and not word:
            if called is None or i >= len(called):
                return None
            word = called[i]
        kept.append(f"{word}={view.source(argument.value)}" if word else view.source(argument.value))
    return kept if len(kept) > 1 else None


def _plain_parameters(params: cst.Parameters) -> list[str] | None:
    """The names of positional parameters; None where there are others, or defaults."""
    if isinstance(params.star_arg, cst.Param | cst.ParamStar) or params.star_kwarg or params.kwonly_params:
        return None
    given = [*params.posonly_params, *params.params]
    return None if any(p.default is not None for p in given) else [p.name.value for p in given]


def _defined(view: View, name: str) -> list[str] | None:
    """The positional parameters of the function of this name at the top of the module."""
    found = [s for s in view.tree.body if isinstance(s, cst.FunctionDef) and s.name.value == name]
    if len(found) != 1 or found[0].decorators or found[0].params.posonly_params:
        return None
    return [p.name.value for p in found[0].params.params]


def _is_settled_value(value: cst.BaseExpression) -> bool:
    """A name, an attribute or a constant: to read it earlier runs nothing."""
    return bool(dotted(value)) or isinstance(value, cst.SimpleString | cst.Integer | cst.Float)


# -- at the top of the module ------------------------------------------------------------------------------------


def _stands_alone(view: View, function: Function, taken: Taken) -> bool:
    """Whether a function is defined once, under no condition, and its header needs nothing else from around."""
    params = function.params
    header: list[cst.CSTNode | None] = [
        node
        for param in layout.all_parameters(params)
        for node in (None if param in taken.parameters else param.default, param.annotation)
    ]
    if isinstance(function, cst.FunctionDef):
        if function.decorators or function.type_parameters is not None:
            return False
        header.append(function.returns)
    outer = view.outermost(function)
    if params.star_kwarg is not None or outer is None:
        return False
    return is_readable_at(view, [n for n in header if n is not None], outer) and (
        isinstance(function, cst.Lambda) or _is_unconditional(view, function)
    )


def _is_unconditional(view: View, function: cst.FunctionDef) -> bool:
    """Whether a function stands right in another one, in its loops and ``with`` blocks, or right in the main guard."""
    if not layout.has_own_rows(view, function):
        return False
    for around in view.around(function):
        match around:
            case cst.IndentedBlock() | cst.With() | cst.For():
                continue
            case cst.FunctionDef():
                return sum(n == function.name.value for n, _ in names.bindings(view, around)) == 1
            case cst.If():
                return layout.is_guard(view, around) and around is view.outermost(function)
        return False
    return False


def _function(case: Case, view: View, function: cst.FunctionDef, found: Capture, taken: Taken) -> Iterator[Proposal]:
    name = function.name.value
    scope = view.function(function)
    known = [n for n, _ in names.bindings(view, view.tree) if n == name]
    if len(known) > (0 if scope is not None else 1):
        return
    changes: list[Change] = []
    if found.names or taken.parameters:
        changes = [] if scope is None else _handed_along(view, scope, function, name, found, taken) or []
        if not changes:
            return
        changes += taken.by_name(view)
    if found.names:
        changes.append(layout.with_keyword_only(view, function, found.names, is_marked=taken.is_positional))
    outer = view.outermost(function)
    if outer is not None:
        uses = references(view, scope, name, function) if scope is not None and found.names else []
        alike = not found.names or (uses is not None and len(uses) == 1 and isinstance(view.parent(uses[0]), cst.Arg))
        alike = alike and goes_unnoticed(case, view, name, scope) and _has_constant_defaults(view, function)
        yield _lifted(name, found, taken, in_file(view, layout.lifted(view, function, outer, changes)), alike)


def _has_constant_defaults(view: View, function: cst.FunctionDef) -> bool:
    """Whether the defaults of a function are the same at the top of the module, where they are computed earlier."""
    defaults = (p.default for p in layout.all_parameters(function.params) if p.default is not None)
    return all(_is_literal(default) or is_constant(view, default, function) for default in defaults)


def _is_literal(value: cst.BaseExpression) -> bool:
    match value:
        case cst.Name(value="None" | "True" | "False"):
            return True
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() | cst.Float()):
            return True
    return False


def _handed_along(
    view: View, scope: cst.FunctionDef, function: cst.CSTNode, name: str, found: Capture, taken: Taken
) -> list[Change] | None:
    """Each use of a lifted function with what it closed over, and took its defaults from."""
    uses = references(view, scope, name, function)
    read = (*found.names, *(value.value for value in taken.values))
    if not uses or any(references(view, scope, n, function) is None for n in read):
        return None
    own = own_uses(view, function) if isinstance(function, cst.FunctionDef) else []
    if not all(taken.leaves_to(view, use) for use in uses) or (own and taken.parameters):
        return None
    handed = _handed(found, taken)
    along = ", ".join(f"{n}={value}" for n, value in handed.items())
    partial = imports.member(view, "functools", "partial", scope.body)
    changes: list[Change] = []
    for use in (*uses, *own):
        call = view.parent(use)
        if isinstance(call, cst.Call) and call.func is use:
            for given, value in handed.items():
                if given in found.names or view.keyword(call, given) is None:
                    changes += view.with_keyword(call, given, value)
        else:
            changes += [view.replace(use, f"{partial.text}({name}, {along})"), *partial.changes]
    return list(dict.fromkeys(changes))


def _handed(found: Capture, taken: Taken) -> dict[str, str]:
    """What a function is given by name, and as which value."""
    defaults = {param.name.value: value.value for param, value in zip(taken.parameters, taken.values, strict=True)}
    return {**{name: name for name in found.names}, **defaults}


def _lifted(
    name: str, found: Capture, taken: Taken, changes: dict[str, tuple[Change, ...]], alike: bool = False
) -> Proposal:
    """``alike``: nothing can tell the function from what it was, but for its place."""
    message = f"define `{name}` at the top of the module, where a fresh process finds it"
    handed = _handed(found, taken)
    if handed:
        closed = ", ".join(f"`{n}`" for n in handed)
        message += f", and send {closed} along"
    proof = Proof.SPAWN if alike and not found.varies and not taken.parameters else Proof.NEVER_BY_SPAWN
    return Proposal(message, changes, proof, _EARLY if handed else _VISIBLE)


# -- lambdas -------------------------------------------------------------------------------------------------------


def _assigned(view: View, function: cst.Lambda) -> tuple[str, cst.BaseStatement] | None:
    """The name that a lambda is given in a function, and the statement that does."""
    match view.parent(function):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assign:
            statement = view.statement(assign)
            return None if statement is None else (name, statement)
    return None


def _named_lambda(
    view: View, function: cst.Lambda, found: Capture, taken: Taken, name: str, statement: cst.BaseStatement
) -> Iterator[Proposal]:
    """``f = lambda x: ...`` in a function: the name goes on as that of a function of the module."""
    scope = view.function(function)
    if scope is None or not layout.has_own_rows(view, statement) or any(n == name for n in names.top(view)):
        return
    if sum(n == name for n, _ in names.bindings(view, scope)) != 1 or name in names.read(view, function.body):
        return
    handed = bool(found.names or taken.parameters)
    changes = _handed_along(view, scope, statement, name, found, taken) if handed else []
    placed = _defined_above(view, function, name, found, taken)
    if placed is not None and changes is not None:
        dropped = layout.dropped(view, statement)
        yield _lifted(name, found, taken, in_file(view, [*placed, *changes, *dropped]))


def _lambda(view: View, function: cst.Lambda, found: Capture, taken: Taken) -> Iterator[Proposal]:
    """A lambda that stands where it is sent."""
    name = next((n for n in _WORK if n not in view.names()), None)
    placed = None if name is None else _defined_above(view, function, name, found, taken)
    if name is None or placed is None or not taken.leaves_to(view, function):
        return
    sent = imports.Spelling(name)
    handed = _handed(found, taken)
    if handed:
        partial = imports.member(view, "functools", "partial", function)
        along = ", ".join(f"{n}={value}" for n, value in handed.items())
        sent = imports.Spelling(f"{partial.text}({name}, {along})", partial.changes)
    yield _lifted(name, found, taken, in_file(view, [*placed, view.replace_whole(function, sent.text), *sent.changes]))


def _defined_above(view: View, function: cst.Lambda, name: str, found: Capture, taken: Taken) -> list[Change] | None:
    outer = view.outermost(function)
    rows = _as_def(view, function, name, found, taken)
    if outer is None or rows is None:
        return None
    at = view.row_start(layout.first_row(view, outer))
    return [Change(at, at, "".join(f"{row}{view.newline}" for row in (*rows, "", "")))]


def _as_def(view: View, function: cst.Lambda, name: str, found: Capture, taken: Taken = NONE_TAKEN) -> list[str] | None:
    """A lambda as a function; None where it spans rows that a comment stands in."""
    text = view.source(function)
    if "#" in text or any(isinstance(n, cst.Yield | cst.Await) for n in view.inside(function.body)):
        return None
    start, end = view.start(function) + len("lambda"), view.start(function.colon)
    params = inside(view.text, start, end, taken.by_name(view)).strip()
    if found.names:
        params = f"{params.rstrip(', ')}, " if params else ""
        params += layout.keyword_only(function.params, found.names, taken.is_positional)
    lead, tail = view.around_text(function.body, "", "")
    body = view.text[lead.start : tail.start]
    if ("\n" in body or "\r" in body) and not getattr(function.body, "lpar", ()):
        body = f"({body})"
    return [f"def {name}({params}):", f"{view.tree.default_indent}return {body}"]
