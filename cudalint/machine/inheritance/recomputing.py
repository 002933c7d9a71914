"""Functions that remember what they gave: a fresh process works it out once more, and comes to the same or not."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Cache, Closure, Object
from cudalint.machine.inheritance.doubts import Why
from cudalint.machine.inheritance.ledger import Handed, Watch
from cudalint.machine.inheritance.reads import variable
from cudalint.machine.inheritance.sameness import Comparison, known
from cudalint.machine.inheritance.texts import Texts
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Dev, Lib, Ref, Value, unknown
from cudalint.models.library import ProcessEffect
from cudalint.structs import Frozen, replace

# More than these that a function remembers are not worked out again.
_MOST_REMEMBERED = 8
# What these do is seen in the heap, or asks only; and so do calls that ask a driver.
_SEEN = frozenset({"list.method", "dict.method", "environ.get", "environ.contains"})
_ASKS = frozenset({"query", "driver"})
_ANSWERS = frozenset({"value", "new"})


class Kept(Frozen):
    """What a function gave for some arguments, and remembers."""

    key: Hashable
    value: Value
    state: State


class Recomputing(Texts):
    """A machine that works out in a fresh process what functions of its parent remember, when that calls them."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What functions came to remember on any path, also where a library may have called them, by where they keep it.
        self._remembered: dict[Hashable, list[Kept]] = {}
        # Whether something is worked out again, and whether that did more than give a value.
        self._recomputes = False
        self._has_done_more = False
        # The variables of modules that it may set, which nothing else counts as, and those that it has set.
        self._may_set = False
        self._was_set: set[tuple[Hashable, str]] = set()
        # The variables that what runs sets to what they hold in its parent, where they are not set yet.
        self._made_up: frozenset[tuple[str, str]] = frozenset()

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function: what its parent remembers of it, a fresh process has to come to where it calls it."""
        if self._recomputes or not self._is_started(given.state):
            return super().call_closure(ref, closure, given)
        if closure.cache is not None:
            for watch in self._reading(given.state):
                self._asks_again(watch, ref, closure, given.state)
        outer, self._made_up = self._made_up, self._made_up | self._makes_up(ref, closure, given)
        results = super().call_closure(ref, closure, given)
        self._made_up = outer
        return results

    def _makes_up(self, ref: Ref, closure: Closure, given: Given) -> frozenset[tuple[str, str]]:
        """The variables that a function sets if they are not set: to what they hold where its parent has called it."""
        asks = closure.cache is None and not closure.managed and not given.args and not given.kwargs
        if not asks or not closure.function.binds_globals or closure.function.is_generator or closure.function.is_async:
            return frozenset()
        found: set[tuple[str, str]] = set()
        for watch in self._reading(given.state):
            for parent in _parents(watch):
                names = self._sets_alike(watch, parent, ref, closure, given.state)
                if not names:
                    return frozenset()
                found |= names
        return frozenset(found)

    def _sets_alike(
        self, watch: Watch, parent: State, ref: Ref, closure: Closure, fresh: State
    ) -> frozenset[tuple[str, str]]:
        """The variables that a function sets here, and leaves in its parent; none where it comes to something else."""
        nothing: tuple[list[Value], dict[str, Value]] = ([], {})
        there = [Ref(at) for at, found in parent.objects_at().items() if _is_same(found, closure)]
        function = parent.get(there[0]) if len(there) == 1 else None
        theirs = self._runs_again(there[0], function, nothing, parent) if isinstance(function, Closure) else []
        mine = self._runs_again(ref, closure, nothing, fresh, may_set=True) if theirs else []
        names = frozenset((str(home[1]), name) for home, name in self._was_set if isinstance(home, tuple))
        alike = bool(mine) and all(self._are_alike(watch, one, two, names) for one in theirs for two in mine)
        return names if alike else frozenset()

    def _are_alike(
        self, watch: Watch, one: tuple[State, Value], two: tuple[State, Value], names: Iterable[tuple[str, str]]
    ) -> bool:
        (before, given), (after, made) = one, two
        rows = [(given, made), *((variable(before, *name), variable(after, *name)) for name in names)]
        comparison = self.comparison(watch, before, after)
        return not any(any(comparison.variables(left, right, "")) for left, right in rows)

    def _reads(self, module: str, name: str, state: State, site: Site | None = None) -> None:
        # What is run for what it sets is run once more, for what it reads.
        if not self._may_set and (module, name) not in self._made_up:
            super()._reads(module, name, state, site)

    def _sets_as_parent(self, module: str, name: str) -> bool:
        return (module, name) in self._made_up

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        if not self._recomputes:
            super()._stores_into(address, site, state, lossy)
            return
        match address:
            case (("module", str(module)), str(name)) if self._may_set and not lossy:
                self._was_set.add((("module", module), name))
            case _:
                super()._stores_into(address, site, state, lossy)

    def _call_cached(self, ref: Ref, closure: Closure, given: Given) -> Results:
        memory = closure.cache
        before = given.state.get(memory) if memory is not None else None
        results = super()._call_cached(ref, closure, given)
        if memory is not None and not self._recomputes:
            for after, _ in results:
                self._comes_to_remember(memory, before, after)
        return results

    def _comes_to_remember(self, memory: Ref, before: Object | None, state: State) -> None:
        now = state.get(memory)
        if not isinstance(before, Cache) or not isinstance(now, Cache):
            return
        kept = self._remembered.setdefault(memory.address, [])
        kept.extend(Kept(key, now.results[key], state.clone()) for key in now.results.keys() - before.results.keys())

    def remembers(self, memory: Hashable) -> bool:
        """Whether a function keeps something there on some path."""
        return bool(self._remembered.get(memory))

    def _asks_again(self, watch: Watch, ref: Ref, closure: Closure, fresh: State) -> None:
        for parent in _parents(watch):
            for memory in _memories_of(closure, parent):
                same = watch.remembers.get(memory.address, True)
                watch.remembers[memory.address] = same and self._comes_to(watch, memory, parent, ref, closure, fresh)

    def _comes_to(self, watch: Watch, memory: Ref, parent: State, ref: Ref, closure: Closure, fresh: State) -> bool:
        """Whether a function gives in a fresh process what its parent remembers of it."""
        held, kept = parent.get(memory), self._remembered.get(memory.address, [])
        if not isinstance(held, Cache) or len(kept) > _MOST_REMEMBERED:
            return False
        # What only some path came to remember is not seen any more where these were joined.
        if not all(one.key in held.results or all(isinstance(a, Const | Dev) for a in one.value) for one in kept):
            return False
        whole = [*(Kept(key, value, parent) for key, value in held.results.items()), *kept]
        return all(self._gives(watch, one, ref, closure, fresh) for one in whole)

    def _gives(self, watch: Watch, kept: Kept, ref: Ref, closure: Closure, fresh: State) -> bool:
        given = _arguments(kept.key)
        if given is None:
            return False
        results = self._runs_again(ref, replace(closure, cache=None), given, fresh)
        return bool(results) and all(
            not any(self.comparison(watch, kept.state, after).variables(kept.value, made, ""))
            for after, made in results
        )

    def _runs_again(
        self,
        ref: Ref,
        function: Closure,
        given: tuple[list[Value], dict[str, Value]],
        fresh: State,
        may_set: bool = False,
    ) -> Results:
        """What a function gives, if it does nothing else, but set variables of modules where it may."""
        frame = Frame(Ref(("module", function.module)), function.module, tries=1)
        results: Results = []

        def run(state: State) -> None:
            site = Site(function.module, function.function.ordinal)
            results.extend(self.call_closure(ref, function, Given(*given, state, frame, site)))

        self._recomputes, self._has_done_more = True, False
        self._may_set, self._was_set = may_set, set()
        asked, doubts = dict(self._asked), [dict(watch.doubts) for watch in self._watches]
        self._some_day(fresh, run)
        if may_set or self._has_done_more:
            # It is run where the program calls it as well, or does not count.
            self._asked = asked
            for watch, before in zip(self._watches, doubts, strict=True):
                watch.doubts = before
        self._recomputes = self._may_set = False
        return [] if self._has_done_more or frame.raises else results

    def comparison(self, watch: Watch, parent: State, state: State) -> Comparison:
        """A comparison of a parent with the fresh process that is watched."""
        raise NotImplementedError

    # -- what does more than give a value -----------------------------------------------------------------------------

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
        if self._recomputes:
            self._has_done_more = True
            return
        super()._note(why, name, site, state, ends, handed, felt_by)

    def passes_over(self, site: Site, state: State) -> None:
        """A call of a user function is not followed any further."""
        self._has_done_more = True
        super().passes_over(site, state)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may do more than give a value."""
        if self._recomputes and not self._only_gives(call.text("does"), call.path, call.text("gpu")):
            self._has_done_more = True
            return [(call.state, unknown("call", call.site))]
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        if self._recomputes and not self._only_gives("", path):
            self._has_done_more = True
            return [(given.state, unknown("call", given.site))]
        return super()._foreign(path, atom, given)

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        if self._recomputes and not isinstance(atom, Ref | Lib | Bound):
            self._has_done_more = True
        return super()._call_atom(atom, given)

    def _only_gives(self, does: str, path: str, asks: str = "") -> bool:
        effect = self.library.process_effect(path)
        if effect is None or not _is_silent(effect):
            return False
        return does in _SEEN or asks in _ASKS or effect.gives in _ANSWERS


def recomputed(watch: Watch) -> set[Hashable]:
    """Where functions of the parent keep what they remember, to which a fresh process came as well."""
    return {address for address, same in watch.remembers.items() if same}


def _parents(watch: Watch) -> tuple[State, ...]:
    """The parent as its workers were started, and as it hands them tasks where that is later."""
    launch = watch.launch
    return (launch.parent,) if launch.later is None else (launch.parent, launch.later)


def _memories_of(closure: Closure, state: State) -> Iterator[Ref]:
    """Where another process keeps what a function remembers."""
    for found in state.objects():
        if isinstance(found, Closure) and found.cache is not None and _is_same(found, closure):
            yield found.cache


def _is_same(found: Object, closure: Closure) -> bool:
    """Whether something is this function in another process."""
    place = (closure.module, closure.function.ordinal)
    return isinstance(found, Closure) and (found.module, found.function.ordinal) == place


def _arguments(key: Hashable) -> tuple[list[Value], dict[str, Value]] | None:
    """What a function was called with, where a fresh process may call it with the same."""
    match key:
        case (tuple(args), tuple(named)) if all(map(known, (*args, *(value for _, value in named)))):
            return list(args), dict(named)
    return None


def _is_silent(effect: ProcessEffect) -> bool:
    return effect.state == "none" and not effect.shows and not effect.ends
