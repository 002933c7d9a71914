"""A choice as a complete program."""

from __future__ import annotations

from oracle import homes, launch, loader, parent, values, work
from oracle.grammar import Choice
from oracle.homes import Code
from oracle.launch import Job, Plan
from oracle.loader import Feed
from oracle.methods import LIBRARIES, render_method
from oracle.text import Draft, Lines, block


def render(choice: Choice, seed: int) -> str:
    """The text of the program."""
    draft = Draft()
    ctx = render_method(draft, choice.method, choice.chosen, choice.library, _needs_library(choice))
    touch = parent.render_touch(draft, choice.touch, choice.place)
    if choice.launcher == "loader":
        before, plan = _loader(draft, choice, ctx)
        between: Lines = []
    else:
        before, between, plan = _tasks(draft, choice, ctx)
    draft.main += _staged(choice, before, between, touch, plan)
    return draft.text(f"Program {seed} of the oracle.", choice.framed)


def _needs_library(choice: Choice) -> bool:
    return choice.launcher in (*launch.POOLS, *launch.PROCESSES)


# -- order of events -----------------------------------------------------------------------------------------


def _staged(choice: Choice, before: Lines, between: Lines, touch: Lines, plan: Plan) -> Lines:
    """Touch, creation and use in their order, in as many rounds as wanted."""
    first = touch if choice.when == "before" else []
    middle = [*(touch if choice.when == "between" else []), *between]
    last = touch if choice.when == "after" else []
    lines = [*first, *before]
    use = [*middle, *plan.use]
    if choice.rounds == 1:
        return [*lines, *_opened(plan, use), *last]
    if choice.remade:
        return [*lines, *block("for epoch in range(2):", [*_opened(plan, use), *last])]
    return [*lines, *_opened(plan, block("for epoch in range(2):", [*use, *last]))]


def _opened(plan: Plan, inside: Lines) -> Lines:
    if plan.opener is not None:
        return [*plan.create, *block(f"with {plan.opener}:", inside)]
    return [*plan.create, *inside, *plan.close]


# -- tasks ---------------------------------------------------------------------------------------------------


def _tasks(draft: Draft, choice: Choice, ctx: str) -> tuple[Lines, Lines, Plan]:
    code = Code(_parameters(choice), _body(draft, choice), _extra(choice))
    function, setup = homes.render_home(draft, choice.home, code)
    made = _made(draft, choice)
    job = Job(
        ctx=ctx,
        ctx_chosen=ctx != LIBRARIES[choice.library][1],
        function=function,
        items=_items(choice),
        size=choice.size,
        with_block=choice.with_block,
        method=choice.method,
        initargs=_extra(choice) if choice.home == "initializer" else None,
        respawn=choice.respawn,
        queue=ctx if choice.channel in (*values.SHARED, *values.SHARED_RESULT) else None,
        puts=[f"{_PUT[choice.channel]}({values.FORMS[choice.form].made})"] if choice.channel in _PUT else [],
        pipe=choice.channel in ("pipe", "pipe_result"),
        puts_before=choice.made == "before",
        gets=choice.channel in values.SHARED_RESULT,
    )
    plan = launch.render_launch(draft, choice.launcher, job)
    plan.use = [*plan.use, *_read_results(choice)]
    if choice.made == "before" or choice.channel in values.SHARED:
        return [*made, *setup], [], plan
    return [], [*made, *setup], plan


_PUT = {"queue": "queue.put", "pipe": "there.send"}


def _parameters(choice: Choice) -> list[str]:
    item = "queue" if choice.channel in (*values.SHARED, *values.SHARED_RESULT) else "item"
    return ["rank", item] if choice.launcher in launch.RANKS else [item]


def _extra(choice: Choice) -> str:
    held = choice.channel in ("partial", "bound", "initargs")
    return values.FORMS[choice.form].made if held else "2.0"


def _made(draft: Draft, choice: Choice) -> Lines:
    """The statements of main() that make the value, or the definition that makes it elsewhere."""
    form = values.FORMS[choice.form]
    draft.imports.update(form.imports)
    if form.definition:
        draft.definitions.insert(0, list(form.definition))
        draft.globals_last = True
    if choice.channel == "global":
        return _global(draft, choice.table_at, form.made)
    if choice.channel == "closure":
        return [f"table = {form.made}"]
    if choice.channel != "argument":
        return []
    if choice.launcher in launch.RANKS:
        return [f"value = {form.made}"]
    return [f"values = [{form.made} for _ in range(2)]"]


def _global(draft: Draft, where: str, made: str) -> Lines:
    if where == "main":
        return ["global table", f"table = {made}"]
    (draft.guard if where == "guard" else draft.globals).append(f"table = {made}")
    return []


def _items(choice: Choice) -> str:
    ranks = choice.launcher in launch.RANKS
    if choice.channel == "argument":
        return "value" if ranks else "values"
    if choice.channel == "generator":
        return f"({values.FORMS[choice.form].made} for _ in range(2))"
    return "1" if ranks else "range(2)"


def _body(draft: Draft, choice: Choice) -> Lines:
    """The statements of the worker."""
    found = work.WORKS[choice.work]
    draft.imports.update(found.imports)
    lines = list(found.lines)
    if choice.channel in values.SHARED_RESULT:
        return [*lines, "queue.send(x)" if choice.channel == "pipe_result" else "queue.put(x)"]
    if choice.channel == "result":
        return [*lines, "return x"]
    if choice.channel in values.SHARED:
        lines = ["item = queue.recv()" if choice.channel == "pipe" else "item = queue.get()", *lines]
    if choice.channel != "none":
        lines += values.handle(choice.form, choice.handling, _name(choice))
    return lines if choice.home == "initializer" else [*lines, "return total"]


def _name(choice: Choice) -> str:
    """How the worker calls the value."""
    if choice.channel in ("closure", "global"):
        return "table"
    if choice.channel in ("partial", "bound"):
        return homes.extra_name(choice.home)
    return "scale" if choice.channel == "initargs" else "item"


def _read_results(choice: Choice) -> Lines:
    if choice.channel in ("result", *values.SHARED_RESULT):
        reads = {"ignore": "len(results)", "shape": "[one.shape for one in results]"}
        return [f"print({reads.get(choice.handling, '[one.sum().item() for one in results]')})"]
    return ["print(len(results))"] if choice.launcher in launch.RETURNS else []


# -- loaders -------------------------------------------------------------------------------------------------


def _loader(draft: Draft, choice: Choice, ctx: str) -> tuple[Lines, Plan]:
    form = values.FORMS[choice.form]
    draft.imports.update(work.WORKS[choice.work].imports)
    draft.imports.add(parent.TORCH)
    before = _made(draft, choice)
    tensors = choice.home == "default_collate" and choice.channel == "dataset"
    feed = Feed(
        body=_loader_body(choice),
        returned="x" if choice.channel == "result" else "total",
        home=choice.home,
        extra=form.made if choice.channel in ("partial", "bound") else "2.0",
        held=form.made if choice.channel == "dataset" and not tensors else None,
        tensors=form.made if tensors else None,
        workers=choice.workers,
        options=_options(choice),
        consume="count" if tensors else choice.consume,
        context=ctx if ctx != LIBRARIES[choice.library][1] else None,
    )
    setup, create, use = loader.render_loader(draft, feed)
    return [*before, *setup], Plan(create=create, use=use)


def _options(choice: Choice) -> list[str]:
    flags = {"pin_memory": choice.pin, "persistent_workers": choice.persistent, "shuffle": choice.shuffle}
    return [f"{name}=True" for name, on in flags.items() if on]


def _loader_body(choice: Choice) -> Lines:
    names = {"closure": "table", "global": "table", "dataset": "self.values"}
    name = names.get(choice.channel, loader.HOLDERS.get(choice.home, ""))
    lines = list(work.WORKS[choice.work].lines)
    if choice.channel in ("none", "result"):
        return lines
    return [*lines, *values.handle(choice.form, choice.handling, name)]
