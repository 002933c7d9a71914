"""Whether a worker that was forked is proven to live under spawn, and to compute the same there.

What is wrong for certain (a target that cannot be imported, a missing main guard, a lock of another context) the
machine says when it runs the changed program. Here is the rest: what may go wrong, or merely be different. What the
worker would inherit by fork is proven by the machine (``machine/inheritance/``); here its doubts become words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import libcst as cst

from cudalint.finding import Finding
from cudalint.fixes.notice import counts_names
from cudalint.fixes.proposal import Case
from cudalint.fixes.queries import asks_for_gpus
from cudalint.fixes.view import View
from cudalint.machine.inheritance.doubts import ARRAYS, COMPUTING, NUMBERS, Doubt, Inheritance, Why
from cudalint.machine.outcome import Outcome
from cudalint.project.analysis import Basis, inherited

_FRESH = ("spawn", "forkserver", "loky")
# Doubts without a name are called what stands at their place.
_SHOWN_AT_PLACE = frozenset(
    {
        Why.CALLS, Why.SETS, Why.STORES, Why.REPEATS, Why.UNSHOWN, Why.CUT, Why.ORDER, Why.WAITS, Why.NAME,
        Why.HOW_FAR, Why.CHILDREN, Why.IDENTITY, Why.LOOKS, Why.KEPT, Why.LEFT, Why.FEWER, Why.MIXED, Why.ARRIVES,
        Why.FAILS, Why.LATER, Why.DESCRIPTOR, Why.ASKED_FOR,
        Why.TEXT, Why.ROWS, Why.REPLACED, Why.STAYS, Why.LEAVES, Why.GOES_ON,
    }
)  # fmt: skip
# Of these the words say nothing of a call: what is called is shown as one.
_CALLED_AT_PLACE = frozenset(
    {
        Why.NAME, Why.HOW_FAR, Why.ARRIVES, Why.MIXED, Why.FAILS, Why.LATER, Why.DESCRIPTOR, Why.ASKED_FOR,
        Why.TEXT, Why.ROWS, Why.STAYS, Why.GOES_ON,
    }
)  # fmt: skip
# What the parent did that no worker is seen to look at is told after what the worker does otherwise.
_TOLD_LAST = frozenset({Why.CALLS, Why.IMPORTS, Why.SETS, Why.STORES})
# Where there are more reasons than anybody reads, those that only take turns are left out before any other.
_OF_ORDER = frozenset({Why.MIXED, Why.ARRIVES, Why.FAILS, Why.FEWER, Why.HOW_FAR, Why.WAITS})
# Nobody reads more reasons for one repair.
MOST_DOUBTS = 6
# So many steps an entry makes at most to show what else stands against a repair that is not safe anyhow.
MOST_STEPS_OF_REASONS = 1_500


def spawn_doubts(
    before: Basis,
    after: Basis,
    changes: Mapping[str, str],
    finding: Finding,
    charge: Callable[[int], None],
    fails: bool = False,
) -> list[str]:
    """Why a change to spawn is not proven, each in words that complete "because"; empty where it is.

    ``charge`` is told the steps that this took. Where the proof ``fails`` anyhow, they are few.
    """
    outcome = before.outcomes[finding]
    fresh = [found for (_, method), found in after.launches.items() if method in _FRESH]
    if not fresh:
        return ["the launch is not seen any more after the change"]
    doubts: dict[str, None] = {}
    for launch in fresh:
        if launch.unproven is not None:
            doubts.setdefault(f"its arguments may not pickle: {launch.unproven}")
        if not (launch.targets or launch.prepared):
            doubts.setdefault("the code does not show what the worker runs")
    targets = (t.module for launch in fresh for t in (*launch.targets, *launch.prepared))
    asks = False
    for name in sorted({_main_of(outcome), *targets, *before.modules(finding)}):
        module = after.files.module(name)
        if module is None:
            doubts.setdefault(f"{name} is not seen")
        elif asks_for_gpus(module):
            asks = True
    old = {source.path: source.text for source in before.files.sources.values()}
    if counts_names(old, changes):
        doubts.setdefault("the program goes through the names of its module, of which the repair adds one")
    case, adds_rows = Case(finding, outcome, after), _adds_rows(old, changes)

    def prove(without_gpus: bool) -> tuple[Inheritance, ...]:
        at_most = MOST_STEPS_OF_REASONS if fails or doubts else None
        return inherited(before, after, changes, finding, charge, at_most, without_gpus)

    proofs = prove(without_gpus=False)
    doubts.update(dict.fromkeys(_unlike(after, proofs, case, adds_rows)))
    if asks:
        # Where there is no GPU it works as it is, and has to go on as it does.
        without = (word for word in _doubted(prove(without_gpus=True), case, adds_rows) if word not in doubts)
        doubts.update(dict.fromkeys(f"without a GPU, {word}" for word in without))
    return list(doubts)


def thread_doubts(
    before: Basis, fresh: Basis, changes: Mapping[str, str], finding: Finding, charge: Callable[[int], None]
) -> list[str]:
    """What may be otherwise in threads, each in words that complete "because": of what fresh processes would lack."""
    case = Case(finding, before.outcomes[finding], fresh)
    doubts = (doubt for proof in inherited(before, fresh, changes, finding, charge) for doubt in proof.doubts)
    words = (_in_words_of_threads(doubt, case) for doubt in doubts)
    return list(dict.fromkeys(word for word in words if word is not None))


def _in_words_of_threads(doubt: Doubt, case: Case) -> str | None:
    name = doubt.name or _source(doubt, case)
    match doubt.why:
        case Why.SETS:
            return f"a thread may not have what `{name}()` sets up"
        case Why.SEEDS:
            return f"threads share the random numbers that `{name}()` starts"
        case Why.CALLS:
            return f"what `{name}()` changes in the process is not known, and a thread may lack it"
        case Why.STORES | Why.DIFFERS | Why.HIDDEN | Why.SHARES:
            return f"threads share `{name}`, or do not see what another thread set there"
        case Why.CUT:
            return f"`{name}()` is not followed to its end" if name else "the program is not followed to its end"
        case Why.UNSHOWN | Why.STOPPED:
            return "the code does not show all that the worker reads"
    # The others are about what a process does when it starts.
    return None


def joined(doubts: list[str]) -> str | None:
    """Doubts as one sentence, with a semicolon between two; None where there are none."""
    if len(doubts) > MOST_DOUBTS:
        doubts = [*doubts[:MOST_DOUBTS], f"and {len(doubts) - MOST_DOUBTS} more"]
    return "; ".join(doubts) or None


def _main_of(outcome: Outcome) -> str:
    first = next(iter((*outcome.launch, *outcome.cause)), None)
    return outcome.anchor.module if first is None else first.site.module


def _adds_rows(old: Mapping[str, str], changes: Mapping[str, str]) -> bool:
    """Whether some row of a changed file has another number afterwards."""
    return any(len(old[path].splitlines()) != len(text.splitlines()) for path, text in changes.items())


def _unlike(after: Basis, found: tuple[Inheritance, ...], case: Case, adds_rows: bool) -> Iterator[str]:
    """What may make a fresh process unlike a forked one."""
    seen = {(proof.anchor, proof.method) for proof in found}
    if any(place not in seen for place in after.launches if place[1] in _FRESH):
        yield "the code was not followed to the launch"
    yield from _doubted(found, case, adds_rows)


def _doubted(found: tuple[Inheritance, ...], case: Case, adds_rows: bool) -> Iterator[str]:
    """The doubts of proofs in words, those about what the worker does before all others."""
    all_of = dict.fromkeys(d for proof in found for d in proof.doubts if d.why is not Why.ROWS or adds_rows)
    last = _OF_ORDER if len(all_of) > MOST_DOUBTS else _TOLD_LAST
    for doubt in sorted(all_of, key=lambda doubt: doubt.why in last):
        yield _in_words(doubt, case)


def _in_words(doubt: Doubt, case: Case) -> str:
    name = doubt.name or _source(doubt, case)
    match doubt.why:
        case Why.SETS:
            return f"a fresh process does not have what `{name}()` sets up"
        case Why.SEEDS:
            return f"a fresh process does not go on with the random numbers that `{name}()` starts"
        case Why.CALLS:
            return f"what `{name}()` changes in the process is not known, and a fresh one would lack it"
        case Why.STORES if name.startswith("os.environ"):
            return f"the program sets `{name}`, at which what a fresh process imports may look"
        case Why.STORES:
            return f"the program changes `{name}`, which a fresh process would not see"
        case Why.IMPORTS:
            return f"what the import of `{name}` changes in the process is not known, and a fresh one would lack it"
        case Why.REPEATS if name.startswith("import "):
            return f"what `{name}` shows or does is not known to be nothing, and each fresh process would repeat it"
        case Why.REPEATS:
            where = "the module" if not doubt.module else f"`{doubt.module}`"
            return f"the top of {where} does work, which each fresh process would repeat: `{name}()`"
        case Why.DIFFERS:
            return f"the worker reads `{name}`, which the program changes and a fresh process would not see"
        case Why.HIDDEN:
            return f"the worker reads `{name}`, whose content the code does not show"
        case Why.UNSHOWN if doubt.site in {site for site, _ in case.basis.launches}:
            return "the code does not show what the worker runs"
        case Why.UNSHOWN:
            what = name if name.startswith("__") else f"{name}()"
            return f"the code does not show what `{what}` reads in the worker"
        case Why.LOOKS:
            return f"what `{name}()` looks at in the process of the worker is not known"
        case Why.DRAWS if name == COMPUTING:
            return "the worker computes with random weights that it did not seed, of which a fresh process makes others"
        case Why.DRAWS:
            return f"the worker did not seed what `{name}()` draws, and a forked one goes on with its parent's numbers"
        case Why.SHARES:
            return f"the worker reads `{name}` and is given the same object, which is two in a fresh process"
        case Why.ORDER if doubt.site in {site for site, _ in case.basis.launches}:
            return (
                "a worker is given a set from which something was taken, and each fresh process has another order of it"
            )
        case Why.ORDER:
            return f"`{name}` goes through a set, and each fresh process has another order of it"
        case Why.NAME if name.endswith("()"):
            return f"`{name}` tells a name or a class that is another one in a fresh process"
        case Why.NAME:
            return f"the program reads `{name}`, which is another one in a fresh process"
        case Why.NAMELESS:
            return f"`{name}` is not found in a fresh process of a program that is started by `python -m`"
        case Why.AGAIN if name.endswith("()"):
            return f"the top of the module calls `{name}`, which in each fresh process would change things once more"
        case Why.AGAIN:
            return f"the top of the module changes `{name}`, which each fresh process would change once more"
        case Why.FILES:
            return f"the top of a module reads files, and `{name}()` changes what a fresh process finds there"
        case Why.WAITS:
            return f"`{name}()` waits for a limited time, and a fresh process takes seconds to start"
        case Why.HOW_FAR:
            return f"`{name}` depends on how long workers take, and a fresh process takes seconds to start"
        case Why.CHILDREN:
            return f"`{name}()` meets all children, of which there are others where they start afresh"
        case Why.IDENTITY:
            return f"`{name}` asks whether two things are one, of which a fresh process has copies"
        case Why.UNAWAITED:
            return "nothing waits for the worker, which ends with the program: a fresh process may not have begun"
        case Why.DROPPED:
            return "only the arguments hold a lock or a queue, which is gone before a fresh process opens it"
        case Why.UNPROVEN:
            return f"its arguments may not pickle: {doubt.name}"
        case Why.STAYS:
            return f"`{name}` shows nothing of what a worker changes, which has a copy of its own"
        case Why.LEAVES:
            return f"what a worker sets by `{name}` stays in its own process, and something after it would find that"
        case Why.ONCE:
            return f"`{name}()` shows something in each process, of which a function remembers in one only that it did"
        case Why.RETURNED:
            return f"what a worker gives back does not arrive as it is: {doubt.name}"
        case Why.TRAVELS:
            return "its arguments may not pickle: an iterator, a coroutine, or a view of a dict"
        case Why.TAGGED:
            return "a tensor that it is given loses the attributes that the program gave it"
        case Why.GRADIENTS:
            return "its arguments may not pickle: a tensor that was computed and needs gradients"
        case Why.EACH:
            return "each of several workers goes through the whole of the dataset, and a program without them once"
        case Why.NESTED:
            return "its arguments may not pickle: they may be nested too deeply"
        case Why.AT_END:
            return f"a fresh process does at its end what `{name}()` registers, and a forked one does not"
        case Why.LEFT_OPEN:
            return f"a fresh process cleans up at its end what `{name}` gave, and a forked one leaves it"
        case Why.AT_FORK:
            return f"a forked process does at its start what `{name}()` registers, and a fresh one does not"
        case Why.FEWER:
            return f"fresh processes begin as they are needed, and `{name}()` shows how many there are"
        case Why.KEPT if name in (ARRAYS, NUMBERS):
            return f"a worker keeps what its tasks change in {name}, and fresh workers share the tasks out otherwise"
        case Why.KEPT:
            return f"a worker keeps what its tasks change in `{name}`, and fresh workers share the tasks out otherwise"
        case Why.LEFT:
            return f"a task finds what an earlier one set by `{name}`, and fresh workers share the tasks out otherwise"
        case Why.MIXED:
            return f"`{name}` shows in which order several workers come to something, and fresh ones come in another"
        case Why.ARRIVES:
            return f"`{name}` depends on which worker is ready first, and fresh ones come in another order"
        case Why.LATER:
            return f"what `{name}` is given is read some time later, and the program changes or shows it meanwhile"
        case Why.FAILS:
            return f"`{name}` tells which worker failed first, and fresh ones fail in another order"
        case Why.GOES_ON:
            return f"where one task of `{name}` fails, others go on and show or write what a loop would never have"
        case Why.HANDLES:
            return "a worker begins in a handler; it asks for the exception that is handled, or its traceback is shown"
        case Why.DESCRIPTOR:
            return f"`{name}` gives the number of an open file, and fresh processes have others"
        case Why.TEXT:
            return f"`{name}` looks at the program's own text, which the repair changes"
        case Why.ROWS:
            return f"`{name}` tells the number of a row, and the repair adds rows"
        case Why.REPLACED:
            return f"the program puts something of its own in the place of `{name}`, which the repair goes past"
        case Why.REUSED:
            return "the workers of loky serve later calls too, with what they changed in modules"
        case Why.CUT:
            return f"`{name}()` is not followed to its end" if name else "the program is not followed to its end"
        case Why.TESTED:
            return "tests share their process with others, which the code does not show"
        case Why.ASSUMED:
            return "the code does not show what runs before the launch"
        case Why.LENDS:
            return "what the workers give lies in GPU memory of theirs, which it outlives where it is kept"
        case Why.ASKED_FOR:
            return f"`{name}` gives tensors on the CPU, which can be taken only while the worker that gives them lives"
        case Why.IN_SHARED_MEMORY:
            return "tensors on the CPU that a process is given are copied by a fork and shared with a fresh process"
        case Why.STOPPED:
            return "the code does not show that a fresh process comes to its work"


def _source(doubt: Doubt, case: Case) -> str:
    """What stands at the place of a doubt, as the program writes it: what is called, or what is stored into."""
    if doubt.why not in _SHOWN_AT_PLACE:
        return ""
    found = case.at(doubt.site)
    if found is None:
        return ""
    view, node = found
    if doubt.why is Why.ORDER:
        return _on_one_line(view.source(node))
    if isinstance(node, cst.Call) and doubt.why in _CALLED_AT_PLACE:
        return f"{_named(view, node)}()"
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and doubt.why in (Why.STORES, Why.KEPT):
        # A method that changes the object that has it.
        return _on_one_line(view.source(node.func.value))
    if isinstance(node, cst.Call) and node.args and doubt.why in (Why.STORES, Why.KEPT):
        # ``setattr`` and its like change what they are given first.
        return _on_one_line(view.source(node.args[0].value))
    return _named(view, node)


def _named(view: View, node: cst.CSTNode) -> str:
    match node:
        case cst.Call(func=func):
            return _on_one_line(view.source(func))
        case cst.Assign(targets=[cst.AssignTarget(target=target), *_]) | cst.AugAssign(target=target):
            return _on_one_line(view.source(target))
        case cst.AnnAssign(target=target) | cst.For(target=target) | cst.Del(target=target):
            return _on_one_line(view.source(target))
        case cst.FunctionDef(name=name):
            return name.value
    return _on_one_line(view.source(node))


def _on_one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:57] + "..."
