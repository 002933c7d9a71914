"""What processes did that the heap does not show: each action by the calls that lead to it, and since when."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum

from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.interpreter import Beginning, Machine, Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref
from cudalint.structs import Mutable, field


class Handed(Enum):
    """What multiprocessing and the system give to a process that is spawned: its parent's, as it is at that time."""

    FOLDER = "the working folder"
    PATH = "where modules are looked for, after all that was there before"
    KEPT = "what the system keeps when another program is run"
    ENVIRONMENT = "variables of the environment that no library reads at its import"


class Entry(Mutable):
    """Something that a process did at a place, reached by some calls, and from when to when that stands.

    ``some_day``: it may be done at another time, or not at all.

    ``handed``: what of it a process that is spawned gets when it starts. ``felt_by``: who finds it, as models say.
    """

    key: Hashable
    doubt: Doubt
    begin: int
    end: int | None = None
    ends: bool = False
    handed: Handed | None = None
    felt_by: tuple[str, ...] = ()
    some_day: bool = False

    def stands(self, at: int) -> bool:
        """Whether it is in force at a moment."""
        return self.begin <= at and (self.end is None or self.end > at)


class Watch(Mutable):
    """A fresh process while it is run: what it repeats of its parent, and what it reads.

    ``moments`` are those at which a fork would have inherited: the first ones, and that of the processes that replace
    it. ``handed_in``: what its parent was when it handed tasks in, where the worker had begun before, and ``handed_at``
    when that was. ``begun``: how many had begun by then, itself among them, and ``number`` the same of the one that was
    handed tasks first, where it is handed some again. ``has_begun``: whether it began a task, ``many``: a second one.
    """

    launch: Beginning
    moments: tuple[int, ...]
    handed_in: State | None = None
    handed_at: int | None = None
    number: int = 0
    begun: int = 0
    has_begun: bool = False
    many: bool = False
    booting: bool = True
    writes: bool = False
    booted: set[Hashable] = field(default_factory=set)
    snapshots: list[State] = field(default_factory=list)
    loaded: dict[str, list[State]] = field(default_factory=dict)
    reads: dict[tuple[str, str], Site] = field(default_factory=dict)
    doubts: dict[Doubt, None] = field(default_factory=dict)
    # What of that which it was handed its imports look at: there its parent found something else.
    notices: set[Handed] = field(default_factory=set)
    # What there was before the first task of a worker, and before later ones; where the former, and the latter, showed
    # something.
    before_first: list[State] = field(default_factory=list)
    before_later: list[State] = field(default_factory=list)
    shown_first: set[Site] = field(default_factory=set)
    shown_later: set[Site] = field(default_factory=set)
    # Where its tasks show something on the console, beside other workers.
    told: set[Site] = field(default_factory=set)
    # The functions of libraries that it called at its work, and the kinds of objects that it has of libraries.
    called: set[str] = field(default_factory=set)
    # The libraries of which it asked an object for an attribute, which may be what was set by a method.
    asked: set[str] = field(default_factory=set)
    # Whether it draws random numbers that it did not begin anew, those of a GPU as well.
    draws: bool = False
    # Where functions of its parent keep what they remember, and whether this process came to the same.
    remembers: dict[Hashable, bool] = field(default_factory=dict)


class Ledger(Machine):
    """A machine that keeps, for each process, what may have changed it, and what each fresh process does again."""

    @property
    def leaves_calls(self) -> bool:
        """None is left: a proof rests on all of what a program does."""
        return False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._moment = 0
        self._ledger: dict[tuple[str, ...], list[Entry]] = {}
        # When pools and executors were made, by process and place: also more than once, where several lead there.
        self._made: dict[tuple[tuple[str, ...], Site], list[int]] = {}
        # How often pools and executors were made, by process and place.
        self._pools: dict[tuple[tuple[str, ...], Site], int] = {}
        # Where executors of one worker were made.
        self._alone: set[Site] = set()
        self._watches: list[Watch] = []
        # The modules and calls that lead to what runs now, from the import of the last module on.
        self._where: list[Hashable] = []
        self._outside: State | None = None

    def _some_day(self, state: State, run: Callable[[State], object]) -> None:
        """Run on a copy what may run at another time, or not at all: for what it reads and does."""
        outside, self._outside = self._outside, self._outside or state
        run(state.clone())
        self._outside = outside

    def _key(self, site: Site, why: Why) -> Hashable:
        """An action, by the calls that lead to it from the top of its module.

        When a library calls a function is unknown, so that the call is never the same thing in another process.
        """
        modules = [i for i, step in enumerate(self._where) if isinstance(step, str)]
        when = None if self._outside is None else "some day"
        return (*self._where[modules[-1] if modules else 0 :], site, why, when)

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
        """Something was done to this process that a fresh one may lack; ``ends``: it is taken back some day."""
        identity = state.process.identity
        key = self._key(site, why)
        if self._outside is None:
            self._boots(key, state)
        entries = self._ledger.setdefault(identity, [])
        if any(e.key == key and e.end is None and e.handed is handed for e in entries):
            return
        self._moment += 1
        some_day, doubt = self._outside is not None, Doubt(why, name, site)
        entries.append(Entry(key, doubt, self._moment, None, ends, handed, felt_by, some_day))

    def _boots(self, key: Hashable, state: State) -> None:
        """What the import of modules does is done again by a fresh process, in which it is the same."""
        watch = self._watch(state)
        if watch is not None and self._at_import(watch):
            watch.booted.add(key)

    def _close(self, site: Site, state: State) -> None:
        """What was in force while a ``with`` statement or a function lasted is over."""
        self._moment += 1
        for entry in self._ledger.get(state.process.identity, ()):
            if entry.ends and entry.doubt.site == site and entry.end is None:
                entry.end = self._moment

    def _is_made(self, site: Site, state: State) -> None:
        """What starts workers is made, or begins to: they inherit what there is now."""
        self._made.setdefault((state.process.identity, site), []).append(self._moment)

    def _moments_of(self, launch: Beginning, state: State) -> tuple[int, ...]:
        """When the workers of a launch would have inherited: now, unless what starts them was made earlier."""
        made = self._made.get((state.process.identity, launch.made), ()) if launch.held else ()
        return tuple(made) or (self._moment,)

    def _watch(self, state: State) -> Watch | None:
        """The fresh process that a state belongs to."""
        identity = state.process.identity
        return next((w for w in reversed(self._watches) if w.launch.identity == identity), None)

    def _at_import(self, watch: Watch) -> bool:
        return watch.booting or self._importing > 0

    def _repeats(self, name: str, site: Site, state: State) -> None:
        """What a fresh process does that its parent did when it began."""
        watch = self._watch(state)
        if watch is None or not self._at_import(watch):
            return
        modules = [step for step in self._where if isinstance(step, str)]
        home = modules[-1] if modules else self.main
        if watch.launch.parent.get(Ref(("module", home))) is not None:
            watch.doubts.setdefault(Doubt(Why.REPEATS, name, site, "" if home == self.main else home))

    def _notices(self, what: Handed, state: State) -> None:
        """The imports of a fresh process look at what it was handed."""
        watch = self._watch(state)
        if watch is not None and self._at_import(watch):
            watch.notices.add(what)
