"""What goes on at the same time: several workers, or a worker and its parent, in whatever order they come to something.

A loop in one process would come to it in the order of its rounds. Forked workers begin at once, and fresh ones when
they have imported what they need; so where two of them show something at one place, or change the same thing that
others see, no repair that starts them otherwise is proven to change nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine import questions
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.iteration import ITERATING
from cudalint.machine.inheritance.outliving import Outliving
from cudalint.machine.inheritance.sameness import known
from cudalint.machine.interpreter import Beginning, Setting
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import Act, Beside, Process, Public, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Rank, Ref, Unknown, Value, const, constant, unknown
from cudalint.models.library import ProcessEffect
from cudalint.structs import Mutable, field, replace

_CONSOLE = "console"
# Which files there are.
_FILES = "files"
# Whichever item of something.
_ANY = "any"
# Whether there is something in it, or it was told.
_STATE = "state"
# Calls after which what they are told to wait for has ended.
_ENDS = frozenset({"join", "result", "get", "wait", "exception", "shutdown", "terminate", "as_completed"})
# What these start, all workers have in common.
_OF_ALL = "multiprocessing."
_PROXY = "multiprocessing.managers.Proxy"
_PIPE = "multiprocessing.Connection"
_CONTAINERS = frozenset({_PROXY, "multiprocessing.Array"})
# A queue of a manager has it too, and is told whether to wait.
_ASKS_BY_KEY = "multiprocessing.managers.Proxy.get"
_NAMESPACE = "multiprocessing.managers.NamespaceProxy"
# What several do at one place, so that the order in which they come to it shows.
_UNLIKE = (
    {Act.SETS}, {Act.SETS, Act.ADDS}, {Act.SETS, Act.READS}, {Act.ADDS, Act.READS}, {Act.FILLS, Act.READS}, {Act.TAKES},
)  # fmt: skip
# Operators that make one number of several.
_MERGES = frozenset({"%", "//", ">>", "&"})
# Operators that come to the same in whatever order several workers use them.
_WITHOUT_ORDER = frozenset({"+", "-", "|", "&", "^", "*"})
# Numbers of these kinds are rounded, so that the order of a sum shows.
_ROUNDED = frozenset({"f", "d", "ctypes.c_float", "ctypes.c_double", "ctypes.c_longdouble"})


class Deeds(Mutable):
    """What a process does that others see, and what of that after it has sent something to another process."""

    launch: Beginning
    public: dict[Public, Site] = field(default_factory=dict)
    later: dict[Public, Site] = field(default_factory=dict)


class Besides(Outliving):
    """A machine that notes what several processes do at the same time that all can see."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The processes that ended since the call began that started them.
        self._ended: list[Deeds] = []
        # The processes that run, one started by the other.
        self._deeds: list[Deeds] = []
        # What loops and functions have gone through to its end.
        self._exhausted: set[Hashable] = set()
        # The channels and containers that several workers fill at once.
        self._filled: set[Hashable] = set()
        # Where threads take from channels, which are run before those have something to take.
        self._listened: dict[Hashable, Site] = {}
        # What threads do beside the program, which may go on while workers do so too.
        self._by_threads: dict[Public, Site] = {}
        # Whether what runs only adds something to what it changes; shared numbers that are rounded.
        self._adds = False
        self._rounded: set[Site] = set()

    # -- what a process does ------------------------------------------------------------------------------------------

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        super()._leaves(effect, path, site, state)
        if self._is_told(effect, path):
            self._does(Act.SETS, _CONSOLE, site, state)

    def _does(self, act: Act, where: Hashable, site: Site, state: State) -> None:
        """A process does something that others see, perhaps while others do so too."""
        process = state.process
        done = Public(act, where, _is_one_of_several(state))
        for deeds in self._deeds if not self._is_booting(state) else ():
            if process.identity[: len(deeds.launch.identity)] == deeds.launch.identity:
                deeds.public.setdefault(done, site)
                if process.has_sent:
                    deeds.later.setdefault(done, site)
        if process.in_thread and not self._is_worker(state):
            self._by_threads.setdefault(done, site)
        elif self._is_worker(state) and not self._deeds[-1].launch.parent.process.in_thread:
            for other in self._by_threads:
                if other.where == where:
                    self._meets(other.act, act, where, site)
        if process.siblings != 1 and self._is_started(state) and not done.by_one:
            self._meets_siblings(done, site)
        for beside in process.beside:
            for other, _ in beside.later if beside.heard else beside.public:
                if other.where == where:
                    self._meets(other.act, act, where, site)

    def _meets_siblings(self, done: Public, site: Site) -> None:
        """One worker of several does something: the others do the same, and what it did before."""
        earlier = self._deeds[-1].public if self._deeds else ()
        for act in {done.act, *(other.act for other in earlier if other.where == done.where and not other.by_one)}:
            self._meets(act, done.act, done.where, site)

    def _is_booting(self, state: State) -> bool:
        watch = self._watch(state)
        return watch is not None and watch.booting

    def _meets(self, one: Act, other: Act, where: Hashable, site: Site) -> None:
        """Two processes do something at the same place in an order that is not settled."""
        if one is other is Act.FILLS:
            self._filled.add(where)
            if where in self._listened:
                self._asked.setdefault(Doubt(Why.ARRIVES, "", self._listened[where]))
        elif {one, other} in _UNLIKE:
            self._asked.setdefault(Doubt(Why.MIXED, "", site))

    def _changes_file(
        self, path: str, receiver: Atom | None, args: list[Value], kwargs: dict[str, Value], site: Site, state: State
    ) -> None:
        """A worker uses a file whose name all its siblings know, or a parent one that its worker may use meanwhile."""
        if not self._deeds and not state.process.beside:
            return
        if self.starts_program(path):
            self._commands_beside(site, state)
        self._lists_files(path, receiver, args, site, state)
        changes, act = self.library.traits.of(path, "changes-file"), self._act_on_file(path, args, kwargs)
        if act is None:
            return
        place = 0 if changes is None else changes.place or 0
        named = (receiver,) if receiver is not None else args[place] if place < len(args) else ()
        if act is Act.SETS:
            self._does(Act.ADDS, _FILES, site, state)
        if known(named):
            self._does(act, named, site, state)
        elif any(_is_shared_by_some(atom) for atom in named):
            self._does(act, site, site, state)

    def _lists_files(self, path: str, receiver: Atom | None, args: list[Value], site: Site, state: State) -> None:
        """Which files there are in a folder that no task has to itself depends on which tasks have written theirs."""
        if not self.library.traits.has(path, "lists-files"):
            return
        folder = (receiver,) if receiver is not None else args[0] if args else ()
        if known(folder) or any(map(_is_shared_by_some, folder)):
            self._does(Act.READS, _FILES, site, state)

    def _act_on_file(self, path: str, args: list[Value], kwargs: dict[str, Value]) -> Act | None:
        """What a call does with a file that it is told of; None where it is told of none."""
        traits = self.library.traits
        if traits.of(path, "changes-file") is not None:
            return Act.SETS
        if traits.has(path, "reads-file"):
            return Act.READS
        if not traits.has(path, "opens-file"):
            return None
        mode = constant(kwargs.get("mode", args[1] if len(args) > 1 else const("r")))
        return Act.READS if isinstance(mode, str) and not set(mode) & set("wxa+") else Act.SETS

    def _commands_beside(self, site: Site, state: State) -> None:
        """Another program may look at what workers write meanwhile."""
        acts = (public for beside in state.process.beside for public, _ in beside.public)
        if any(public.act is Act.SETS and public.where != _CONSOLE for public in acts):
            self._asked.setdefault(Doubt(Why.MIXED, "", site))

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may start workers, wait for some, or do what others see."""
        path, state = self.library.canonical(call.path), call.state
        self._changes_file(path, call.receiver, call.args, call.kwargs, call.site, state)
        self._uses_shared(path, call)
        self._looks_at_all(path, call.args, call.site, state)
        self._awaits_threads(path, state)
        if path.endswith(".Value") and call.args and _kind(call.args[0]) in _ROUNDED:
            self._rounded.add(call.site)
        outer, self._ended = self._ended, []
        through, self._exhausted = self._exhausted, set()
        results = super().library_call(call)
        begun, self._ended = self._ended, outer
        exhausted, self._exhausted = self._exhausted, through
        if call.text("does") in ITERATING:
            # What it gives has yet to be gone through.
            exhausted = set()
        touched = _addresses((() if call.receiver is None else (call.receiver,), *call.args))
        for after, value in results:
            self._let_go(exhausted, after)
            self._goes_on(path, begun, touched, value, after)
            self._sends(path, after)
        return results

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        receiver = atom.receiver if isinstance(atom, Bound) else None
        self._changes_file(path, receiver, given.args, given.kwargs, given.site, given.state)
        self._looks_at_all(path, given.args, given.site, given.state)
        self._awaits_threads(path, given.state)
        if isinstance(receiver, Ref) and _is_of_all(given.state.get(receiver)):
            self._meets_polls(path, receiver, given.args, given.kwargs, given.site, given.state)
        results = super()._foreign(path, atom, given)
        for after, _ in results:
            self._let_go(_addresses(given.args), after)
            self._sends(path, after)
            if self.library.traits.has(path, "waits-for-child"):
                self._hears(after, ends=True)
        return results

    def _awaits_threads(self, path: str, state: State) -> None:
        if not state.process.in_thread and self.library.traits.has(path, "awaits"):
            self._by_threads.clear()

    def _sends(self, path: str, state: State) -> None:
        if self.library.traits.has(path, "lets-go") and not state.process.has_sent:
            state.process = replace(state.process, has_sent=True)

    def _hears(self, state: State, ends: bool = False) -> None:
        """The only worker that goes on has sent something, or has ended."""
        if len(state.process.beside) == 1:
            (only,) = state.process.beside
            still = () if ends else (replace(only, heard=True),)
            state.process = replace(state.process, beside=frozenset(still))

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str(name))) if isinstance(base, tuple):
                self._changes_file(f"?.{name}", Unknown(base), given.args, given.kwargs, given.site, given.state)
        return super()._call_atom(atom, given)

    # -- what processes share -----------------------------------------------------------------------------------------

    def _uses_shared(self, path: str, call: Call) -> None:
        """A method of a queue or a container that processes share."""
        found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
        if not isinstance(call.receiver, Ref) or not _is_of_all(found):
            return
        has = self.library.traits.has
        self._meets_polls(path, call.receiver, call.args, call.kwargs, call.site, call.state)
        if has(path, "fills-shared"):
            self._does(Act.FILLS, origin(call.receiver), call.site, call.state)
        elif has(path, "takes-shared") and not call.statement and self._is_worker(call.state):
            self._does(Act.TAKES, origin(call.receiver), call.site, call.state)
        elif has(path, "takes-shared") and call.state.process.in_thread:
            self._listened.setdefault(origin(call.receiver), call.site)

    def _meets_polls(
        self, path: str, shared: Ref, args: list[Value], kwargs: dict[str, Value], site: Site, state: State
    ) -> None:
        """One process asks, without waiting, for what another one may have put there or told by then."""
        # Both ends of a pipe are one channel.
        where = _PIPE if path.startswith(_PIPE) else (origin(shared), _STATE)
        has = self.library.traits.has
        by_key = path == _ASKS_BY_KEY and bool(args) and not isinstance(constant(args[0]), bool)
        if has(path, "reads-shared") or by_key:
            self._reads_all((shared,), site, state)
        elif self.polls(path, args, kwargs) and self._is_worker(state):
            self._does(Act.READS, where, site, state)
        elif has(path, "lets-go") or has(path, "fills-shared"):
            self._does(Act.ADDS, where, site, state)

    def _looks_at_all(self, path: str, args: Iterable[Value], site: Site, state: State) -> None:
        """A function of Python's own is given a container."""
        traits = self.library.traits
        if traits.has(path, "reads-content") and not traits.has(path, "leaves-content"):
            for value in args:
                self._reads_all(value, site, state)

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """Two values are compared, or one is looked for in another."""
        super().compares(op, values, site, state)
        for value in values if op not in ("is", "is not") else ():
            self._reads_all(value, site, state)

    def spreads(self, value: Value, site: Site, state: State) -> None:
        """``*value`` or ``**value``."""
        super().spreads(value, site, state)
        self._reads_all(value, site, state)

    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true: a container is when something is in it, which others may put there meanwhile."""
        for beside in state.process.beside:
            self._reads_all(value, beside.made, state)
        return super().truth(value, state)

    def _reads_all(self, value: Value, site: Site, state: State) -> None:
        """A process looks at the whole of a container that others may fill meanwhile."""
        for place, found in self._shared(value, state):
            if found.type in _CONTAINERS:
                self._does(Act.READS, place, site, state)
                self._does(Act.READS, (place, _ANY), site, state)

    def _aug_assign(self, node: ir.AugAssign, state: State, frame: Frame) -> list[State]:
        before, self._adds = self._adds, node.op in _WITHOUT_ORDER
        states = super()._aug_assign(node, state, frame)
        self._adds = before
        return states

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        if op in _MERGES and any(isinstance(atom, Rank) for atom in left):
            # What several workers have in common is not what tells them apart.
            return unknown(("bin", frame.module, ordinal), op, left, right)
        return super()._combine(op, left, right, state, frame, ordinal)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        for place, found in self._shared(owner, state) if _is_shown_by(owner, attr, state) else ():
            adds = self._adds and found.site not in self._rounded
            self._does(Act.ADDS if adds else Act.SETS, (place, attr), site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        of_all = not self._adds and _is_shown_by((ref,), name, state)
        for place, _ in self._shared((ref,), state) if of_all else ():
            self._does(Act.READS, (place, name), site, state)
        return super()._object_attribute(ref, name, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        for place, found in self._shared(owner, state):
            if found.type == _PROXY:
                # A dict keeps its keys in the order in which they came.
                self._does(Act.FILLS, place, site, state)
            if known(key):
                self._does(Act.ADDS if self._adds else Act.SETS, (place, key), site, state)
            # An item of its own, which may be the one that another process reads.
            self._does(Act.ADDS, (place, _ANY), site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""
        if not self._is_worker(state):
            self._reads_all(value, site, state)
        for place, _ in self._shared(value, state) if known(key) and not self._adds else ():
            self._does(Act.READS, (place, key), site, state)
            self._does(Act.READS, (place, _ANY), site, state)
        return super().item(value, key, state, frame, site)

    def _shared(self, owner: Value, state: State) -> Iterator[tuple[Hashable, LibraryObject]]:
        """What processes share of a value, where others run that have it too: what it is known by, and as what."""
        for atom in owner if state.process.beside or self._is_worker(state) else ():
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(found, LibraryObject) and _is_of_all(found):
                yield origin(atom), found

    def _is_worker(self, state: State) -> bool:
        """Whether a process is one that another has started, at its work."""
        own = state.process.identity
        is_inside = any(deeds.launch.identity == own[: len(deeds.launch.identity)] for deeds in self._deeds)
        return is_inside and not self._is_booting(state)

    # -- what goes on, and what has ended -----------------------------------------------------------------------------

    def begins_process(self, launch: Beginning) -> None:
        """A process is about to start, afresh or forked."""
        super().begins_process(launch)
        self._deeds.append(Deeds(launch))

    def ends_process(self) -> None:
        """The process that began last has ended, or goes on beside the one that started it."""
        self._ended.append(self._deeds.pop())

    def _goes_on(self, path: str, begun: list[Deeds], touched: set[Hashable], value: Value, state: State) -> None:
        """What a call started goes on from here; what it waited for has ended."""
        if not begun and not state.process.beside:
            return
        made = _addresses((value,))
        name = path.rpartition(".")[2]
        if begun:
            self._starts(begun, frozenset(touched | made), state)
        elif name in _ENDS:
            self._let_go(touched, state)
        else:
            state.process = replace(state.process, beside=frozenset(_renamed(state.process, touched, made)))
        if self.library.traits.has(path, "awaits"):
            self._hears(state)
        elif self.library.traits.has(path, "waits-for-child"):
            self._hears(state, ends=True)

    def _starts(self, begun: Iterable[Deeds], keys: frozenset[Hashable], state: State) -> None:
        for deeds in begun:
            if deeds.launch.waits:
                self._let_go(keys, state)
            if deeds.launch.waits or not deeds.public:
                continue
            new = Beside(keys, deeds.launch.made, tuple(deeds.public.items()), tuple(deeds.later.items()))
            for old in state.process.beside:
                if old.made != new.made or new.made not in self._alone:
                    self._meet(old, new)
            state.process = replace(state.process, beside=state.process.beside | {new})

    def _meet(self, old: Beside, new: Beside) -> None:
        for one, _ in old.public:
            for other, site in new.public:
                apart = old.made == new.made and one.act is other.act and (one.by_one or other.by_one)
                if one.where == other.where and not apart:
                    self._meets(one.act, other.act, one.where, site)

    def _let_go(self, keys: Iterable[Hashable], state: State) -> None:
        """Whatever one of these stands for has ended, and with it what began before in the same workers."""
        process, ended = state.process, frozenset(keys)
        over = [beside for beside in process.beside if beside.keys & ended]
        if over:
            kept = (b for b in process.beside if b not in over and not any(b.keys < o.keys for o in over))
            state.process = replace(process, beside=frozenset(kept))

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__()``: an executor waits for its workers, and a pool ends them."""
        states = super().leave(manager, state, frame, site)
        if not state.process.in_thread and any(isinstance(atom, Ref) for atom in manager):
            self._by_threads.clear()
        for after in states if state.process.beside else ():
            self._let_go(_addresses((manager,)), after)
        return states

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop, while which the workers go on that give them."""
        self._reads_all(value, site, state)
        outer, self._ended = self._ended, []
        rounds = super().iterate(value, state, frame, site, most)
        begun, self._ended = self._ended, outer
        through = _addresses((value,))
        for after, _ in rounds if begun else ():
            self._starts(begun, frozenset(through), after)
        self._exhausted |= through
        return rounds

    def _for(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        outer, self._exhausted = self._exhausted, set()
        states = super()._for(node, state, frame)
        for after in states:
            self._let_go(self._exhausted, after)
        self._exhausted = outer
        return states

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression; a comprehension goes through what it is made of."""
        if not isinstance(node, ir.Comprehension):
            return super().eval(node, state, frame)
        outer, self._exhausted = self._exhausted, set()
        results = super().eval(node, state, frame)
        for after, _ in results:
            self._let_go(self._exhausted, after)
        self._exhausted = outer
        return results


def _renamed(process: Process, touched: set[Hashable], made: set[Hashable]) -> Iterator[Beside]:
    """What goes on, known also by what a function made of it: an iterator of an iterator."""
    for beside in process.beside:
        yield replace(beside, keys=beside.keys | made) if beside.keys & touched else beside


def _is_shown_by(owner: Value, attr: str, state: State) -> bool:
    """Whether an attribute of what processes share is shared: a number's value, and all that a manager keeps."""
    found = (state.get(atom) for atom in owner if isinstance(atom, Ref))
    return any(isinstance(one, LibraryObject) and (attr == "value" or one.type == _NAMESPACE) for one in found)


def _is_shared_by_some(part: Hashable) -> bool:
    """Whether something is made of a number of which several come to the same: ``n % 2`` is the same for two tasks."""
    match part:
        case Unknown(sym=sym):
            return _is_shared_by_some(sym)
        case (_, str(op), tuple(left), tuple()) if op in _MERGES and not _is_text(left):
            return True
        case tuple():
            return any(map(_is_shared_by_some, part))
    return False


def _is_text(value: Value) -> bool:
    return isinstance(constant(value), str)


def _is_of_all(found: object) -> bool:
    """Whether something is what several processes may hold at the same time."""
    return isinstance(found, LibraryObject) and found.type.startswith(_OF_ALL)


def origin(ref: Ref) -> Hashable:
    """What an object is known by in all processes to which it was sent."""
    address = ref.address
    while isinstance(address, tuple) and len(address) == 3 and address[0] == "sent":
        address = address[1]
    return address


def _addresses(values: Iterable[Value]) -> set[Hashable]:
    return {atom.address for value in values for atom in value if isinstance(atom, Ref)}


def _kind(value: Value) -> str:
    """The kind of a shared number, as its code or as its class."""
    atom = value[0] if value else None
    return atom.path if isinstance(atom, Lib) else str(constant(value))


def _is_one_of_several(state: State) -> bool:
    """Whether a path is that of one worker of several: it has asked which one it is."""
    for sym, holds in state.facts:
        match questions.read(sym):
            case ((Rank() | Unknown(sym=("each" | "next", *_))), ("==", int() | str())) if holds:
                return True
    return False
