"""Libraries and servers that fork by themselves: what each of them offers instead."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout, names
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.view import View

_FORKS = ("ddp_fork", "ddp_notebook")
_ADVICE = (
    ("notebook_launcher", "ask the GPU and make tensors on it in the launched function only"),
    ("celery", "load the model in a `worker_process_init` handler, which runs in each worker after its fork"),
    ("gunicorn", "load the model in the `post_fork` hook, or in each worker by leaving `preload_app` out"),
    ("uwsgi", "set `lazy-apps`, so that each worker loads the application after its fork"),
    ("airflow", "ask for the GPU and load the model in the task, or set `execute_tasks_new_python_interpreter`"),
    ("promptflow", "ask for the GPU and load the model in the tool, or set `PF_BATCH_METHOD` to `spawn`"),
    ("datasets", 'leave `num_proc` out, or call `multiprocess.set_start_method("spawn")` under the main guard'),
)
# What keeps a library's work in this process: a keyword, its value, and what is then done.
_WITHOUT_PROCESSES = {
    "spacy": ("n_process", "1", "let this process go through the texts, in batches on the GPU"),
    "keras": ("use_multiprocessing", "False", "let threads of this process read the batches"),
}
_ONE_PROCESS = "what ran in several processes then runs in one"
_LATER = "what asks the GPU then comes after the work of the workers, and what it shows, too"
_OTHERWISE = "keep CUDA out of this process until its workers are forked, and load models in the workers"


def spawning_strategy(case: Case) -> Iterator[Proposal]:
    """Lightning's ``ddp_spawn`` in place of a strategy that forks, wherever the trainer gets it from."""
    for module in _modules(case):
        view = case.view(module)
        if view is None:
            continue
        words = list(_strategies(view))
        if words:
            yield Proposal(
                "use Lightning's strategy `ddp_spawn`",
                in_file(view, (c for c, _ in words)),
                Proof.SPAWN,
                "the ranks are fresh processes: what they are given is pickled, and notebooks cannot run them",
            )


def _modules(case: Case) -> Iterator[str]:
    """The file of the finding, then the others that name such a strategy."""
    own = case.outcome.anchor.module
    yield own
    for name, source in case.basis.files.sources.items():
        if name != own and any(word in source.text for word in _FORKS):
            yield name


def _strategies(view: View) -> Iterator[tuple[Change, str]]:
    for node in view.inside(view.tree):
        match node:
            case cst.SimpleString():
                word = node.evaluated_value
                for fork in _FORKS:
                    if isinstance(word, str) and word.startswith(fork):
                        yield view.replace(node, f"{node.quote}ddp_spawn{word[len(fork) :]}{node.quote}"), word
            case cst.Call(func=cst.Name(value="DDPStrategy") | cst.Attribute(attr=cst.Name(value="DDPStrategy"))):
                method = view.keyword(node, "start_method")
                if method is not None and view.source(method.value)[1:-1] in ("fork", "popen_fork", "notebook"):
                    yield view.replace(method.value, '"spawn"'), "fork"


def spawning_library(case: Case) -> Iterator[Proposal]:
    """The default start method of the library that others launch through: datasets and pathos, tqdm's executor."""
    launch = case.launch
    if launch is None or not (launch.library == "multiprocess" or (launch.family == "executor" and not launch.keyword)):
        return
    view = case.view(_main(case))
    if view is None:
        return
    target = layout.guarded(view)
    if target is None:
        return
    name = imports.member(view, launch.library, "set_start_method", target)
    line = view.lines_before(target, [f'{name.text}("spawn")'])
    yield Proposal(
        f"let {launch.library}, which starts the workers, start them by spawn",
        in_file(view, [line, *name.changes]),
        Proof.SPAWN,
        "each worker imports main again and loads its own copy of what the function uses",
    )


def _main(case: Case) -> str:
    hops = (*case.outcome.launch, *case.outcome.cause)
    return hops[0].site.module if hops else case.outcome.anchor.module


def no_preload(case: Case) -> Iterator[Proposal]:
    """gunicorn without ``preload_app``: each worker loads the application after its fork."""
    view = case.view(case.outcome.anchor.module)
    if view is None or case.outcome.launcher != "gunicorn":
        return
    changes = [view.replace(on, "False") for on in _preloads(view)]
    if changes:
        yield Proposal(
            "do not preload: each worker then loads the application after its fork",
            in_file(view, changes),
            doubt="the workers then start slower, and each holds what it loads by itself",
        )


def _preloads(view: View) -> Iterator[cst.Name]:
    """``True`` for ``preload_app``, as an option, an argument, a key or a variable."""
    for node in view.inside(view.tree):
        match node:
            case cst.Call(args=[cst.Arg(value=cst.SimpleString() as key), cst.Arg(value=cst.Name(value="True") as on)]):
                if key.evaluated_value == "preload_app":
                    yield on
            case cst.DictElement(key=cst.SimpleString() as key, value=cst.Name(value="True") as on):
                if key.evaluated_value == "preload_app":
                    yield on
            case cst.Arg(keyword=cst.Name(value="preload_app"), value=cst.Name(value="True") as on):
                yield on
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value="preload_app"))], value=cst.Name(value="True") as on
            ):
                yield on


def in_each_worker(case: Case) -> Iterator[Proposal]:
    """celery's ``worker_process_init``, which runs in each worker, for ``worker_init``, which runs before the fork."""
    view = case.view(case.outcome.anchor.module)
    if view is None or "celery" not in case.outcome.launcher.lower():
        return
    words = [n for n in view.each(view.tree, cst.Name) if n.value == "worker_init"]
    connected = any(_is_connected(view, n) for n in words)
    if connected and "worker_process_init" not in view.names():
        yield Proposal(
            "load it in a `worker_process_init` handler, which runs in each worker after its fork",
            in_file(view, (view.replace(n, "worker_process_init") for n in words)),
            doubt="each worker then holds a copy of its own",
        )


def _is_connected(view: View, name: cst.Name) -> bool:
    """``worker_init.connect`` and ``signals.worker_init.connect``."""
    around = view.parent(name)
    if isinstance(around, cst.Attribute) and around.attr is name:
        around = view.parent(around)
    return isinstance(around, cst.Attribute) and around.attr.value == "connect"


def in_this_process(case: Case) -> Iterator[Proposal]:
    """spaCy's pipe and Keras' datasets without processes of their own, which compute on no GPU of their parent's."""
    found = next((way for word, way in _WITHOUT_PROCESSES.items() if word in case.outcome.launcher.lower()), None)
    view = case.view(case.outcome.anchor.module)
    if found is None or view is None:
        return
    keyword, value, message = found
    for call in view.calls():
        argument = view.keyword(call, keyword)
        if argument is not None and view.source(argument.value) != value:
            yield Proposal(message, in_file(view, view.with_keyword(call, keyword, value)), doubt=_ONE_PROCESS)


def launch_first(case: Case) -> Iterator[Proposal]:
    """What asks the GPU above a launch that forks, with what depends on it, below the launch."""
    found = case.at(case.outcome.anchor)
    launch = None if found is None else found[0].statement(found[1])
    if found is None or launch is None:
        return
    view = found[0]
    above = [s for s in view.siblings(launch) if view.start(s) < view.start(launch)]
    seen = [at for hop in case.outcome.cause if (at := case.at(hop.site)) is not None]
    asked = {node for where, node in seen if where is view}
    first = next((s for s in above if any(node in asked for node in view.inside(s))), None)
    moved = None if first is None else _depending(view, first, above[above.index(first) + 1 :], launch)
    if moved:
        below = view.lines_after(launch, ())
        rows = list(_rows(view, moved))
        text = "".join(view.text[start:end] for start, end in rows)
        gone = [layout.closed_up(view, Change(start, end, "")) for start, end in rows]
        changes = [Change(below.start, below.end, below.content + text), *gone]
        yield Proposal("launch first, and ask the GPU afterwards", in_file(view, changes), doubt=_LATER)


def _rows(view: View, statements: list[cst.BaseStatement]) -> Iterator[tuple[int, int]]:
    """The rows of statements, those of neighbours together."""
    start = end = -1
    for statement in statements:
        first, after = view.row_start(view.row(statement)), view.row_start(view.last_row(statement) + 1)
        if first != end and end >= 0:
            yield start, end
        start, end = (start if first == end else first), after
    yield start, end


def _depending(
    view: View, first: cst.CSTNode, others: list[cst.CSTNode], launch: cst.CSTNode
) -> list[cst.BaseStatement]:
    """A statement and those after it that use what it binds; none where the launch or a function does so, too."""
    moved: list[cst.BaseStatement] = []
    bound: set[str] = set()
    for statement in (first, *others):
        if statement is not first and not names.read(view, statement) & bound:
            continue
        if not isinstance(statement, cst.SimpleStatementLine) or not layout.has_own_rows(view, statement):
            return []
        moved.append(statement)
        scope = names.scope_of(view, statement)
        bound |= {name for name, node in names.bindings(view, scope) if node in view.inside(statement)}
    around = list(view.around(launch))
    functions = (n for n in view.each(view.tree, cst.FunctionDef, cst.Lambda) if n not in around)
    is_needed = names.read(view, launch) & bound or any(names.read(view, function) & bound for function in functions)
    return [] if is_needed else moved


def after_the_fork(case: Case) -> Iterator[Proposal]:
    """Advice: what each launcher has for work that belongs into its workers."""
    launcher = case.outcome.launcher.lower()
    message = next((advice for word, advice in _ADVICE if word in launcher), _OTHERWISE)
    yield Proposal(
        message, {}, doubt="which part of the program belongs into the workers is a decision about it", shown=True
    )
