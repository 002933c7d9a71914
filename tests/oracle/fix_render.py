"""A broken program as text, and its reference: the same program with a loop in place of the launch."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, replace

from oracle import homes, inherited, launch, parent
from oracle.fix_grammar import Broken
from oracle.homes import Code
from oracle.launch import Job, Plan
from oracle.methods import LIBRARIES, render_method
from oracle.text import Draft, Lines, block

PROGRAM, JOBS, SETTINGS = "program.py", "jobs.py", "settings.py"
RAISED = "caught"
LABELS = string.ascii_lowercase  # how the output calls the first state, the second ...

Files = Mapping[str, str]


@dataclass(frozen=True)
class Variant:
    """Which text of a choice: its workers in processes or in a loop, its parent with or without CUDA."""

    launched: bool = True
    touched: bool = True


def render_broken(choice: Broken, seed: int, variant: Variant = Variant()) -> Files:
    """The files of the program."""
    draft, jobs = Draft(), Draft()
    ctx = _context(draft, choice) if variant.launched else ""
    _states(draft, jobs, choice)
    function, setup = _worker(draft, jobs, choice)
    if variant.launched:
        plan = _made(draft, choice, _launch(draft, choice, ctx, function))
    else:
        plan = _loop(draft, choice, function)
    before = [*setup, f"items = {_items(draft, jobs, choice)}"] if _has_items(choice) else setup
    touch = parent.render_touch(draft, choice.touch, choice.touched_at) if variant.touched else []
    states = [line for name, kind in _named(choice) for line in inherited.render_set(draft, name, kind, choice.placed)]
    order = [*states, *touch] if choice.state_first else [*touch, *states]
    draft.main += _framed(choice, [*order, *before, *_guarded(choice, _around(choice, plan)), *_shown(choice)])
    title = f"Broken program {seed} of the oracle."
    files = {PROGRAM: draft.text(title, choice.framed)}
    if choice.home == "module":
        files[JOBS] = jobs.module_text(f"What the workers of program {seed} do.")
    if any(kind.settings for kind in choice.kinds):
        files[SETTINGS] = _settings(choice, seed)
    return files


def _named(choice: Broken) -> list[tuple[str, inherited.State]]:
    return list(zip(choice.states, choice.kinds, strict=True))


# -- states --------------------------------------------------------------------------------------------------


def _states(draft: Draft, jobs: Draft, choice: Broken) -> None:
    for kind in choice.kinds:
        draft.imports.update(kind.imports)
        jobs.imports.update(kind.imports)
        if kind.top:
            draft.define(*kind.top)


def _settings(choice: Broken, seed: int) -> str:
    """The second file, its imports first."""
    imports = dict.fromkeys(line for kind in choice.kinds for line in kind.settings if line.startswith("import "))
    text = [f'"""Settings of program {seed}."""', *([""] if imports else []), *imports]
    for kind in choice.kinds:
        lines = [line for line in kind.settings if line not in imports]
        text += ["", *lines] if lines else []
    return "\n".join(text) + "\n"


def _framed(choice: Broken, lines: Lines) -> Lines:
    """A module has no need to declare its globals."""
    return lines if choice.framed else [line for line in lines if not line.startswith("global ")]


def _around(choice: Broken, plan: Plan) -> Lines:
    lines = [*plan.create, *block(f"with {plan.opener}:", plan.use)] if plan.opener else [*plan.create, *plan.use]
    lines += [] if plan.opener else plan.close
    for kind in choice.kinds:
        lines = [*kind.lead, *block(kind.around, lines)] if kind.around else lines
    return lines


# -- the worker ----------------------------------------------------------------------------------------------


def _worker(draft: Draft, jobs: Draft, choice: Broken) -> tuple[str, Lines]:
    """Define it; returns its expression and what main() does before."""
    there = jobs if choice.home == "module" else draft
    there.imports.add("import torch")
    if choice.crossing == "own":
        there.define(*block("class Problem(Exception):", ["pass"]))
    if choice.result == "dataclass":
        there.imports.add("from dataclasses import dataclass")
        there.define("@dataclass", *block("class Result:", ["total: float", "seen: list"]))
    code = Code(_parameters(choice), _body(choice))
    home = "function" if choice.home == "module" else choice.home
    found = homes.render_home(there, home, code)
    if choice.home == "module":
        own = "Problem, " if choice.crossing == "own" else ""
        draft.imports.add(f"from jobs import {own}work")
    return found


def _parameters(choice: Broken) -> list[str]:
    if choice.channel == "queue":
        return ["queue"]
    return ["rank", "items"] if choice.launcher == "start_processes" else ["item"]


_AMOUNTS = {
    "number": "item",
    "list": "sum(item)",
    "dict": 'item["amount"]',
    "dataclass": "item.amount",
    "tensor": "item.sum().item()",
}
_RESULTS = {
    "pairs": "seen",
    "text": '"\\n".join(f"{name} {value}" for name, value in seen)',
    "dict": "dict(seen)",
    "dataclass": "Result(total, seen)",
    "tensor": "(x.cpu(), seen)",
}


def _body(choice: Broken) -> Lines:
    pairs = ['("total", total)', *(f'("{x}", {k.read})' for x, k in zip(LABELS, choice.kinds, strict=False))]
    lines = ["item = items[rank]"] if choice.launcher == "start_processes" else []
    lines += ["item = 2"] if choice.channel == "queue" else []
    lines += [
        f"amount = {_AMOUNTS[choice.argument]}",
        'x = torch.ones(2, device="cuda") * amount',
        "total = float(x.sum().item())",
        f"seen = [{', '.join(pairs)}]",
    ]
    if choice.crossing != "none":
        error = "Problem" if choice.crossing == "own" else "ValueError"
        lines += block("if amount > 1:", [f'raise {error}(" ".join(f"{{name}} {{value}}" for name, value in seen))'])
    return [*lines, *_handed_back(choice)]


def _handed_back(choice: Broken) -> Lines:
    result = _RESULTS[choice.result]
    if choice.channel == "return":
        return [f"return {result}"]
    if choice.channel == "queue":
        # A tensor on the CPU would arrive only while the worker lives, and paper CUDA knows nothing of that.
        return [f"queue.put({result.replace('x.cpu()', 'x.cpu().numpy()')})"]
    each = 'f"{name} {value}"'
    if choice.channel == "print":
        return block("for name, value in seen:", [f"print({each})"])
    write = block("for name, value in seen:", [f'shown.write({each} + "\\n")'])
    return block('with open("shown.txt", "a") as shown:', write)


# -- tasks ---------------------------------------------------------------------------------------------------


def _has_items(choice: Broken) -> bool:
    return choice.channel != "queue"


_MADE = {
    "number": "{n}",
    "list": "[{n}]",
    "dict": '{{"amount": {n}}}',
    "dataclass": "Sample({n})",
    "tensor": 'torch.full((1,), {n}.0, device="cpu")',
}


def _items(draft: Draft, jobs: Draft, choice: Broken) -> str:
    there = jobs if choice.home == "module" else draft
    if choice.argument == "dataclass":
        there.imports.add("from dataclasses import dataclass")
        there.define("@dataclass", *block("class Sample:", ["amount: int"]))
        if there is jobs:
            draft.imports.add("from jobs import Sample")
    if choice.argument == "tensor":
        draft.imports.add("import torch")
    return f"[{', '.join(_MADE[choice.argument].format(n=n) for n in _amounts(choice))}]"


def _amounts(choice: Broken) -> tuple[int, ...]:
    return (2,) if choice.single else (1, 2)


def _context(draft: Draft, choice: Broken) -> str:
    method = "default" if choice.chosen == "default" else "fork"
    needed = choice.launcher in (*launch.POOLS, *launch.PROCESSES)
    return render_method(draft, method, choice.chosen, choice.library, needed)


def _launch(draft: Draft, choice: Broken, ctx: str, function: str) -> Plan:
    chosen = ctx != LIBRARIES[choice.library][1]
    if choice.launcher == "loader":
        return _loader(draft, choice, ctx if chosen else None, function)
    job = Job(
        ctx=ctx,
        ctx_chosen=chosen,
        function=function,
        items="items",
        size=choice.size,
        with_block=choice.with_block,
        method="fork",
        queue=ctx if choice.channel == "queue" else None,
        gets=choice.channel == "queue",
    )
    return launch.render_launch(draft, choice.launcher, job)


def _made(draft: Draft, choice: Broken, plan: Plan) -> Plan:
    """What starts the workers, made in a handler that is over when it is used, or in two branches.

    An exception leaves no pool open: such a one can hang its program as that ends, however its workers were started.
    """
    if plan.close and choice.crossing != "none":
        plan = replace(plan, use=[*block("try:", plan.use), *block("finally:", plan.close)], close=[])
    if choice.made_in == "handler":
        return replace(plan, create=[*block("try:", ["raise LookupError"]), *block("except LookupError:", plan.create)])
    if choice.made_in == "branches":
        draft.imports.add("import sys")
        return replace(plan, create=[*block("if len(sys.argv) > 1:", plan.create), *block("else:", plan.create)])
    return plan


def _loader(draft: Draft, choice: Broken, context: str | None, function: str) -> Plan:
    _dataset(draft, function)
    draft.imports.add("from torch.utils.data import DataLoader")
    draft.define(*block("def keep(samples):", ["return samples"]))
    chosen = f", multiprocessing_context={context}" if context else ""
    create = [f"loader = DataLoader(Samples(items), batch_size=1, num_workers=1, collate_fn=keep{chosen})"]
    take = ["results.extend(batch)"] if choice.channel == "return" else []
    return Plan(create=[*create, "results = []"], use=block("for batch in loader:", take))


def _dataset(draft: Draft, function: str) -> None:
    draft.imports.add("from torch.utils.data import Dataset")
    init = block("def __init__(self, items):", ["self.items = items"])
    length = block("def __len__(self):", ["return len(self.items)"])
    item = block("def __getitem__(self, index):", [f"return {function}(self.items[index])"])
    draft.define(*block("class Samples(Dataset):", [*init, "", *length, "", *item]))


def _loop(draft: Draft, choice: Broken, function: str) -> Plan:
    """What the author meant: every task in this process, one after the other."""
    function = f"({function})" if function.startswith("lambda") else function
    if choice.channel == "queue":
        draft.imports.add("from queue import SimpleQueue")
        loop = block(f"for _ in range({choice.size}):", [f"{function}(queue)"])
        return Plan(["queue = SimpleQueue()"], use=[*loop, f"results = [queue.get() for _ in range({choice.size})]"])
    if choice.launcher == "start_processes":
        return Plan(use=block(f"for rank in range({choice.size}):", [f"{function}(rank, items)"]))
    if choice.launcher in ("loader", "pool_callback"):  # what was done before an exception is kept
        return Plan(["results = []"], use=block("for item in items:", [f"results.append({function}(item))"]))
    return Plan(use=[f"results = [{function}(item) for item in items]"])


# -- what is printed -----------------------------------------------------------------------------------------


def _guarded(choice: Broken, lines: Lines) -> Lines:
    """The launch between two lines of output where order counts, and within a handler where it raises."""
    if choice.crossing != "none":
        error = {"value": "ValueError", "own": "Problem", "any": "Exception"}[choice.crossing]
        told = "type(error).__name__" if choice.crossing == "any" else "error"
        caught = block(f"except {error} as error:", [f'print("{RAISED}", {told})'])
        lines = ["results = []", *block("try:", lines), *caught]
    return ['print("begin")', *lines, 'print("end")'] if choice.channel == "print" else lines


_LINES = {
    "pairs": '[f"{name} {value}" for seen in results for name, value in seen]',
    "text": "[line for text in results for line in text.splitlines()]",
    "dict": '[f"{name} {value}" for seen in results for name, value in seen.items()]',
    "dataclass": '[f"{name} {value}" for result in results for name, value in result.seen]',
    "tensor": '[f"{name} {value}" for _, seen in results for name, value in seen]',
}


def _shown(choice: Broken) -> Lines:
    finish = [line for kind in choice.kinds for line in kind.finish]
    if choice.channel == "print":
        return finish
    if choice.channel == "file":
        if choice.crossing != "none":  # a task that fails has written nothing
            return finish
        read = block('with open("shown.txt") as lines:', ["shown = lines.read().splitlines()"])
        return [*read, 'print("\\n".join(sorted(shown)))', *finish]
    extra = ["print(sorted(x.tolist() for x, _ in results))"] if choice.result == "tensor" else []
    return [f"shown = {_LINES[choice.result]}", 'print("\\n".join(sorted(shown)))', *extra, *finish]
