"""Several judges at once; what they say of a case does not depend on how many there are."""

from __future__ import annotations

import select
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack

from fuzz.case import Case
from fuzz.inputs import Drawn
from fuzz.judge import Complaints, Judge

Asked = Case | Drawn


def judged(
    batches: Iterator[Sequence[Asked]], properties: Sequence[str], jobs: int, seconds: float
) -> Generator[tuple[Asked, Complaints], None, None]:
    """The complaints about each case, in whatever order they come. A batch stays with one judge.

    All processes have ended when this does, also when it is closed before.
    """
    with ExitStack() as stack:
        idle = [stack.enter_context(Judge(seconds)) for _ in range(jobs)]
        asked: dict[Judge, Asked] = {}
        rest: dict[Judge, Iterator[Asked]] = {judge: iter(()) for judge in idle}
        while True:
            for judge in idle:
                case = _next(judge, rest, batches)
                if case is not None:
                    judge.ask(case, properties)
                    asked[judge] = case
            if not asked:
                return
            idle = _ready(list(asked))
            for judge in idle:
                yield asked.pop(judge), judge.answer()


def _next(judge: Judge, rest: dict[Judge, Iterator[Asked]], batches: Iterator[Sequence[Asked]]) -> Asked | None:
    """What a judge is asked next: of its batch as long as there is more of it."""
    while True:
        case = next(rest[judge], None)
        if case is not None:
            return case
        batch = next(batches, None)
        if batch is None:
            return None
        rest[judge] = iter(batch)


def _ready(judges: Sequence[Judge]) -> list[Judge]:
    """Those that have an answer, or none for too long; waits for the first."""
    ready, _, _ = select.select(judges, [], [], min(judge.patience() for judge in judges))
    return ready or [judge for judge in judges if not judge.patience()]
