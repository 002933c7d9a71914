"""What a worker sets in its process: where a loop takes its place, all that comes after it finds that.

The program has a process of its own, and so has each worker: none of them finds what another has set.
"""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.frame import Given, Results
from cudalint.machine.heap import Closure
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.draws import drawn_from
from cudalint.machine.inheritance.ledger import Handed
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.settings import Settings
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import Anew, State
from cudalint.machine.state import Setting as Kept
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref
from cudalint.models.library import ProcessEffect
from cudalint.structs import replace

# What is set of the libraries whose random numbers begin anew.
_COURSE = "course"
_DRAWING = frozenset({"draws", "weights"})
# What configures how messages are written; a first message does so only where nothing has.
_CONFIGURES = ("logging.basicConfig", "logging.config.", "logging.Logger.addHandler")
_FIRST_MESSAGE = "logging."


class Leavings(Settings):
    """A machine that notes what workers set in their process, and what comes after them that would have found it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What workers have set, by which of them.
        self._behind: dict[Kept, set[int]] = {}
        # Where functions that remember what they gave show something, and which such functions are called: by the first
        # worker that does so.
        self._shown_once: dict[Site, int] = {}
        self._remembering: dict[Site, int] = {}

    def _number(self, state: State) -> int | None:
        """Which of the workers that began a process is, or comes from; None where it is none."""
        watch = self._last_worker(state)
        return None if watch is None else watch.number

    def _note(
        self,
        why: Why,
        name: str,
        site: Site,
        state: State,
        ends: bool = False,
        handed: Handed | None = None,
        felt_by: tuple[str, ...] = (),
    ) -> None:
        if why is Why.SEEDS:
            self._stays_behind(Kept(name, (), False, False, False, site, _COURSE, self._seeded_by(name)), state)
        super()._note(why, name, site, state, ends, handed, felt_by)

    def _sets(self, kept: Kept, state: State) -> None:
        super()._sets(kept, state)
        if not kept.of:
            self._stays_behind(kept, state)

    def _stays_behind(self, kept: Kept, state: State) -> None:
        number = self._number(state)
        if number is not None and self._importing == 0 and not self._prepares_loader(state):
            self._behind.setdefault(kept, set()).add(number)
        if self._behind and not kept.adds:
            anew = Anew(kept.name, kept.of, self._fresh_begun)
            state.process = replace(state.process, anew=state.process.anew | {anew})

    def _prepares_loader(self, state: State) -> bool:
        """Whether a loader's worker is prepared, which nothing does where the program itself loads."""
        launch = state.process.launch
        return launch is not None and launch.family == "loader" and launch.stage == "initializer"

    def _left(self, state: State) -> Iterator[Kept]:
        yield from super()._left(state)
        yield from self._left_by_workers(state)

    def _left_by_workers(self, state: State) -> Iterator[Kept]:
        """What workers have left that began before this process, and this one has not yet set anew."""
        number = self._number(state) if self._behind else None
        for kept, numbers in self._behind.items():
            last = max((one for one in numbers if number is None or one < number), default=0)
            anew = (one for one in state.process.anew if one.begun >= last and one.name == kept.name)
            of_all = (one for one in state.process.anew if one.begun >= last and kept.of and kept.of <= one.of)
            if last and not any(anew) and not any(of_all) and not self._is_late_message(kept):
                yield kept

    def _is_late_message(self, kept: Kept) -> bool:
        """Whether it is a message that comes when it is settled how these are written."""
        if not kept.name.startswith(_FIRST_MESSAGE) or kept.name.startswith(_CONFIGURES):
            return False
        done = (entry.doubt.name for entries in self._ledger.values() for entry in entries)
        return any(name.startswith(_CONFIGURES) for name in done)

    def _finds_kept(self, kept: Kept, state: State) -> None:
        if kept in state.process.left:
            super()._finds_kept(kept, state)
        else:
            self._asked.setdefault(Doubt(Why.LEAVES, kept.name, kept.site))

    # -- what is remembered -------------------------------------------------------------------------------------------

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function, which may remember what it gave."""
        number = self._number(given.state) if closure.cache is not None else None
        if number is not None:
            self._remembering.setdefault(Site(closure.module, closure.function.ordinal), number)
        return super().call_closure(ref, closure, given)

    def _is_remembered_elsewhere(self, found: object, state: State) -> bool:
        """Whether a function was called by a worker before this process, which keeps what that gave."""
        if not isinstance(found, Closure):
            return False
        first = self._remembering.get(Site(found.module, found.function.ordinal))
        number = self._number(state)
        return first is not None and (number is None or first < number)

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        super()._leaves(effect, path, site, state)
        if not self._cached or not effect.shows:
            return
        number = self._number(state)
        if number is not None:
            self._shown_once.setdefault(site, number)
        first = self._shown_once.get(site)
        if first is not None and (number is None or first < number):
            self._asked.setdefault(Doubt(Why.ONCE, shown(path), site))

    # -- random numbers -----------------------------------------------------------------------------------------------

    def _may_draw(self, effect: ProcessEffect | None, path: str, state: State) -> None:
        super()._may_draw(effect, path, state)
        if effect is None or effect.state not in _DRAWING or not self._behind:
            return
        library = drawn_from(path)
        for kept in self._left_by_workers(state):
            if library in kept.of:
                self._finds_kept(kept, state)
