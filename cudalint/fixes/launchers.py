"""Libraries and servers that fork by themselves: what each of them offers instead."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.view import View

_FORKS = ("ddp_fork", "ddp_notebook")
_ADVICE = (
    ("notebook_launcher", "ask the GPU and make tensors on it in the launched function only"),
    ("celery", "load the model in a `worker_process_init` handler, which runs in each worker after its fork"),
    ("gunicorn", "load the model in the `post_fork` hook, or in each worker by leaving `preload_app` out"),
    ("uwsgi", "set `lazy-apps`, so that each worker loads the application after its fork"),
    ("datasets", 'leave `num_proc` out, or call `multiprocess.set_start_method("spawn")` under the main guard'),
)
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
    """The default start method of ``multiprocess``, which datasets and pathos launch through."""
    launch = case.launch
    if launch is None or launch.library != "multiprocess":
        return
    view = case.view(_main(case))
    if view is None:
        return
    target = layout.guarded(view)
    if target is None:
        return
    name = imports.member(view, "multiprocess", "set_start_method")
    line = view.lines_before(target, [f'{name.text}("spawn")'])
    yield Proposal(
        "let multiprocess, which starts the workers, start them by spawn",
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
    changes = [c for s in _preloads(view) for c in layout.taken_out(view, s)]
    if changes:
        yield Proposal(
            "leave `preload_app` out, so that each worker loads the application after its fork",
            in_file(view, changes),
            doubt="the workers then start slower, and each holds what it loads by itself",
        )


def _preloads(view: View) -> Iterator[cst.BaseStatement]:
    """``self.cfg.set("preload_app", True)``, as a statement."""
    for call in view.calls():
        match call:
            case cst.Call(args=[cst.Arg(value=cst.SimpleString() as key), cst.Arg(value=cst.Name(value="True"))]):
                statement = view.statement(call) if key.evaluated_value == "preload_app" else None
                if statement is not None and layout.has_own_rows(view, statement):
                    yield statement


def after_the_fork(case: Case) -> Iterator[Proposal]:
    """Advice: what each launcher has for work that belongs into its workers."""
    launcher = case.outcome.launcher.lower()
    message = next((advice for word, advice in _ADVICE if word in launcher), _OTHERWISE)
    yield Proposal(
        message, {}, doubt="which part of the program belongs into the workers is a decision about it", shown=True
    )
