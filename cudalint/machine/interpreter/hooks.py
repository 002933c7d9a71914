"""Hooks for the proof of sameness (``machine/inheritance/``)."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.frame import Frame, Raised
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, Value
from cudalint.structs import Frozen


class Beginning(Frozen):
    """A process that is about to begin, with a fresh import or as a fork.

    ``parent`` is the state that it would inherit by fork, ``made`` the call that made its launcher. ``given`` are the
    values that it is handed once, when it starts. ``later`` is the state that those after it would inherit, where it is
    replaced after some tasks; ``waits``: the call that starts it returns when it has done its work.
    """

    anchor: Site
    method: str
    made: Site
    identity: tuple[str, ...]
    parent: State
    held: bool
    given: tuple[Value, ...]
    later: State | None = None
    waits: bool = False


class Hooks:
    """What the machine calls when something happens that the proof rests on; other runs do nothing there."""

    @property
    def leaves_calls(self) -> bool:
        """Whether calls that take long and do nothing are left; not where what they give is asked for."""
        return True

    def passes_over(self, site: Site, state: State) -> None:
        """A call of a user function is not followed any further: a bound is met."""

    def finds_by_name(self, module: str, name: str, state: State) -> None:
        """Unpickling looks up a name of a module in this process."""

    def shows(self, values: Iterable[Value], site: Site, state: State) -> None:
        """Values are made into text."""

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared."""

    def spreads(self, value: Value, site: Site, state: State) -> None:
        """``*value`` or ``**value``: the elements of a value, in its order."""

    def decorates(self, decorator: Value, state: State, frame: Frame, site: Site) -> None:
        """A decorator that is not run: what it does when the decorated function is called is not followed."""

    def begins_round(self, state: State) -> None:
        """A round of a loop begins."""

    def stands_for(self, one: Ref, all_of: Iterable[Atom | None]) -> None:
        """One object stands for what the tasks of a launch are given, which differ."""

    def is_given_again(self, value: Value, state: State) -> None:
        """Several tasks of a launch are given the same."""

    def gives_back(self, children: Iterable[tuple[State, Value]], raised: Iterable[tuple[State, Raised]]) -> None:
        """Workers have ended: what they return goes to their parent, or what their tasks ``raised``."""

    def leaves_unsent(self, site: Site, state: State) -> None:
        """A process ends that has put something on a channel which lies in its memory, and on no GPU."""

    def begins_process(self, launch: Beginning) -> None:
        """A process is about to start, afresh or forked."""

    def ends_process(self) -> None:
        """The process that began last has ended, or goes on beside the one that started it."""

    def begins_fresh(self, launch: Beginning, state: State) -> None:
        """A process that begins with a fresh import is about to start in this state of its parent."""

    def has_booted(self, children: list[State]) -> None:
        """The process that began last has imported what it begins with."""

    def begins_task(self, state: State, is_first: bool, given: Iterable[Value] = ()) -> None:
        """A worker begins a task with what it is ``given``: the first one, or a later one."""

    def ends_task(self, raised: bool) -> None:
        """A worker has ended a task; ``raised``: with something that nothing in it caught."""

    def ends_fresh(self, ran: bool, lends: bool) -> None:
        """The process that began last has ended; ``ran`` is false where it never came to its work.

        ``lends``: what it gives back lies in its GPU memory, although it ends before what it gave.
        """
