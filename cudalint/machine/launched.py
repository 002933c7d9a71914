"""What the machine saw of a launch beyond what goes wrong in it: where its parts come from, and what it sends."""

from __future__ import annotations

from cudalint.machine.trace import Site
from cudalint.structs import Frozen, replace


class Launched(Frozen):
    """One launch under one start method.

    ``made`` is the call that made the pool, process, executor or loader. ``settled`` is where the program chose the
    start method (``get_context``, ``set_start_method``), None for a default. ``library`` owns the launcher.
    ``keyword`` is the parameter in which an executor takes a context or the name of a start method, if it has one, and
    ``place`` where that stands among those that are given by position.
    ``unproven`` says, in words, what may not survive pickling to a fresh process; None where everything is proven
    to. ``refused`` names what is sure not to arrive with functions that travel by value, ``held`` what would not arrive
    in any fresh process. ``targets`` are the functions that the worker runs; ``prepared`` are those of its initializer,
    and of a loader its dataset and the functions that it is given. ``ends``: a worker ends after some tasks, perhaps
    before its parent has what it gave.
    """

    family: str
    library: str
    method: str
    made: Site
    settled: Site | None
    unproven: str | None
    targets: tuple[Site, ...]
    keyword: str = ""
    place: int = 0
    prepared: tuple[Site, ...] = ()
    refused: str | None = None
    held: str | None = None
    ends: bool = False

    def with_doubts_of(self, earlier: Launched | None) -> Launched:
        """The same launch, seen again: what spoke against it on another path still does."""
        if earlier is None:
            return self
        return replace(
            self,
            unproven=self.unproven or earlier.unproven,
            refused=self.refused or earlier.refused,
            held=self.held or earlier.held,
        )
