"""How long workers take: what a program does while they begin, of which fresh processes take seconds to do so."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.files import Files
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import FALSE, Atom, Bound, Lib, Ref, Unknown, Value, constant

# What hands work to workers and goes on beside them.
_BEGINS = frozenset({"start", "apply_async", "map_async", "starmap_async", "submit", "run_in_executor", "schedule"})
# What comes back when the workers did what they were given.
_ENDS = frozenset({"join", "recv", "result", "get", "wait", "as_completed", "shutdown", "__exit__"})
# What launchers keep to themselves, and of which class they are, is another thing for fresh processes.
_OF_LAUNCHERS = ("multiprocessing.", "concurrent.futures.ProcessPoolExecutor")
_TAKES_EXTREME = frozenset({"builtins.max", "builtins.min"})
_COMPARES = frozenset({"<", "<=", ">", ">=", "==", "!="})
# What makes few numbers of many: which of them a time becomes depends on how long workers take.
_ROUNDS = frozenset({"int", "round", "//"})
# What shows how far a worker is without a call.
_SHOWS_PROGRESS = frozenset({("multiprocessing.Process", "exitcode"), ("multiprocessing.Value", "value")})
# These are told by a second argument not to wait.
_WAITS_FOR_ONE = frozenset({"os.waitpid", "os.wait4"})
# It waits for one process, or for any.
_ANY_OR_ONE = "os.waitpid"
# It knows of no tracker; but an executor starts as many fresh processes as it needs.
_OF_MULTIPROCESSING = "multiprocessing.active_children"
# What says that a call is not to wait at all, by its name.
_WAITS_IF = ("block", "blocking")
# Whether these succeed at once says what another process has at that moment, whoever asks.
_TRIES = frozenset(
    {"multiprocessing.Lock.acquire", "multiprocessing.RLock.acquire", "multiprocessing.Semaphore.acquire"}
)
# Trees of modules have children, too.
_OF_ANY_TREE = frozenset({"?.children"})


class Progress(Files):
    """A machine that notes where it matters how long workers take to begin."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The processes that go on beside workers which they have not waited for.
        self._beside: set[tuple[str, ...]] = set()
        # The calls that tell the time.
        self._clocks: set[Hashable] = set()

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))):
                if self._is_time(base):
                    self._clocks.add(given.site)
                self._asks(f"?.{name}", given.args, given.kwargs, given.site, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may begin something, wait for it, or ask how far it is."""
        path = self.library.canonical(call.path)
        self._asks(path, call.args, call.kwargs, call.site, call.state)
        results = super().library_call(call)
        self._begins(path, call.state)
        return results

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._asks(path, given.args, given.kwargs, given.site, given.state)
        return super()._foreign(path, atom, given)

    def _begins(self, path: str, state: State) -> None:
        name = path.rpartition(".")[2]
        if name in _BEGINS and not path.startswith("threading."):
            self._beside.add(state.process.identity)
        elif name in _ENDS and not path.startswith(("?.", "builtins.")):
            self._beside.discard(state.process.identity)

    def _asks(self, path: str, args: list[Value], kwargs: dict[str, Value], site: Site, state: State) -> None:
        has = self.library.traits.has
        is_beside = state.process.identity in self._beside
        if has(path, "tells-time") or (self._clocks and any(map(self._is_time, args))):
            self._clocks.add(site)
            if path in _TAKES_EXTREME:
                self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        pauses = has(path, "pauses") and (is_beside or self._late or path.startswith("asyncio."))
        if pauses or "return_when" in kwargs:
            self._asked.setdefault(Doubt(Why.WAITS, "", site))
        polls = self.polls(path, args, kwargs)
        if (is_beside and polls) or (polls and path in _TRIES and self._is_started(state)):
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        gives_up = constant(kwargs.get("cancel_futures", FALSE)) is not False
        asks_for_one = path in _WAITS_FOR_ONE and len(args) > 1 and constant(args[1]) != 0
        if gives_up or (is_beside and asks_for_one):
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        if has(path, "counts-children") and self._counts(path, args):
            self._asked.setdefault(Doubt(Why.CHILDREN, "", site))
        if path.startswith("multiprocessing."):
            self._prepares(shown(path), site, state)

    def polls(self, path: str, args: list[Value], kwargs: dict[str, Value]) -> bool:
        """Whether a call looks at what other processes did, and does not wait for it."""
        traits = self.library.traits
        if traits.has(path, "tells-progress"):
            return True
        is_unshown = path.startswith("?.")
        if not is_unshown and not traits.has(path, "of-workers"):
            return False
        waits = traits.of(path, "waits")
        if waits is not None and constant(_given(args, kwargs, waits.place, "timeout", is_unshown)) == 0:
            return True
        told = traits.of(path, "waits-if-told")
        return told is not None and any(
            constant(_given(args, kwargs, told.place, name, is_unshown)) in (False, 0) for name in _WAITS_IF
        )

    def _counts(self, path: str, args: list[Value]) -> bool:
        if path in _OF_ANY_TREE:
            return "psutil" in self._imported
        if path == _OF_MULTIPROCESSING:
            return any(found.family == "executor" for found in self.record.launches.values())
        return path != _ANY_OR_ONE or not args or _is_any_child(args[0])

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        self._sets_shared(owner, site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        self._sets_shared(owner, site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def _sets_shared(self, owner: Value, site: Site, state: State) -> None:
        """What an initializer of an executor sets in memory that processes share tells how many of them began."""
        for atom in owner:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, LibraryObject) and found.type.startswith("multiprocessing."):
                self._prepares(shown(found.type), site, state)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        found = state.get(ref)
        is_beside = state.process.identity in self._beside
        if isinstance(found, LibraryObject) and (found.type, name) in _SHOWS_PROGRESS and is_beside:
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        is_own = name == "__class__" or (name.startswith("_") and not name.startswith("__"))
        if isinstance(found, LibraryObject) and found.type.startswith(_OF_LAUNCHERS) and is_own:
            self._asked.setdefault(Doubt(Why.NAME, name, site))
        return super()._object_attribute(ref, name, state, frame, site)

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared: what depends on the time depends on how long workers take."""
        super().compares(op, values, site, state)
        if self._clocks and op in _COMPARES and any(map(self._is_time, values)):
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))

    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true; a time is, until it is made a whole number."""
        for atom in value if self._clocks else ():
            match atom:
                case Unknown(sym=(str(rounding), inner)) | Unknown(sym=(_, str(rounding), inner, _)) if (
                    rounding in _ROUNDS
                ):
                    self._depends_on_time(inner)
        return super().truth(value, state)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``, where a time may say which element."""
        if self._clocks and any(map(self._is_time, key)) and not any(map(self._is_time, value)):
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))
        return super().item(value, key, state, frame, site)

    def _depends_on_time(self, part: Hashable) -> None:
        site = self._clock_in(part) if self._clocks else None
        if site is not None:
            self._asked.setdefault(Doubt(Why.HOW_FAR, "", site))

    def _clock_in(self, part: Hashable) -> Site | None:
        """The call that tells the time of which a value is made."""
        match part:
            case Site():
                return part if part in self._clocks else None
            case Unknown(sym=sym):
                return self._clock_in(sym)
            case tuple():
                return next((site for inner in part if (site := self._clock_in(inner)) is not None), None)
        return None

    def _is_time(self, part: Hashable) -> bool:
        """Whether a value comes from a call that tells the time."""
        return self._clock_in(part) is not None


def _given(args: list[Value], kwargs: dict[str, Value], place: int | None, name: str, by_name: bool) -> Value:
    """An argument; ``by_name``: only where it has its name."""
    if name in kwargs or by_name or place is None:
        return kwargs.get(name, ())
    return args[place] if place < len(args) else ()


def _is_any_child(pid: Value) -> bool:
    """Whether a number of a process stands for whichever child."""
    number = constant(pid)
    return isinstance(number, int) and number <= 0
