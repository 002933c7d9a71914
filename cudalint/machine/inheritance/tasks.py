"""What a worker keeps from one task to the next: which of several workers is given which task, differs.

Forked workers begin at once, and the first of them has often done all tasks before the others are given any. Fresh ones
take seconds to begin, and share the tasks out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.gpu_memory import placed_tensor
from cudalint.machine.heap import Closure, LibraryObject, Scope
from cudalint.machine.inheritance.doubts import ARRAYS, NUMBERS, Doubt, Why
from cudalint.machine.inheritance.draws import Draws
from cudalint.machine.inheritance.ledger import Watch
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import reachable, visited
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Tensor, Unknown, Value, constant
from cudalint.models.library import ProcessEffect
from cudalint.structs import replace

# Launchers that give tasks to whichever worker is free.
_SHARE_OUT = frozenset({"pool", "executor", "joblib"})
# By which arguments functions are told where to write.
_STREAMS = ("file", "stream")
# What makes what changes weights, and what says whether a module is evaluated.
_OPTIMISERS = "torch.optim."
_MODES = frozenset({"eval", "train"})
# What changes a module; of one that this task has used, later tasks find it changed.
_REPLACES = frozenset({"load_state_dict", "eval", "train", "apply"})
# What puts something into a list that it is given.
_PUTS_IN = frozenset({"heap.push"})
# What these give, all workers have in common.
_OF_ALL = "multiprocessing."
# How many names a process has that the program itself has started.
_LAST_GENERATION = 2


class Tasks(Draws):
    """A machine that notes what later tasks of a worker find of earlier ones, where there are several workers."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # How deep in functions that run once for each argument, in each worker.
        self._cached = 0
        # Whether what a function writes goes to a file or a text that it is given.
        self._apart = False
        # Whether what learns was made by the task, or round, that runs, and whether some was made elsewhere.
        self._has_learner = False
        self._has_outer_learner = False
        # Whether some module was made elsewhere, whose gradients a task may add to; those that this task has called.
        self._has_outer_module = False
        self._used_modules: set[Hashable] = set()
        # The modules that are evaluated, those that learn when they are called, and how deep in calls of the former.
        self._evaluated: set[Hashable] = set()
        self._learning: set[Hashable] = set()
        self._evaluates = 0

    def begins_task(self, state: State, is_first: bool, given: Iterable[Value] = ()) -> None:
        """A worker begins a task: what an earlier one seeded, another worker may have lacked."""
        watch = self._shared_out(state)
        if watch is None:
            return
        self._has_learner = False
        self._used_modules = set()
        state.process = replace(state.process, seeded=frozenset())
        (watch.before_first if is_first else watch.before_later).append(state.clone())

    def _draws_on_gpu(self, state: State) -> None:
        super()._draws_on_gpu(state)
        watch = self._shared_out(state) if self._watches else None
        if watch is not None and watch.before_later:
            watch.doubts.setdefault(Doubt(Why.KEPT, NUMBERS, watch.launch.anchor))

    def _counted(self, watch: Watch) -> Iterator[Doubt]:
        """What several workers tell, and what only the first task of each showed, where there is more than one task."""
        if not watch.before_later:
            return
        for site in sorted(watch.told):
            yield Doubt(Why.MIXED, "", site)
        for site in sorted(watch.shown_first - watch.shown_later - watch.told):
            yield Doubt(Why.FEWER, "", site)

    def _shared_out(self, state: State) -> Watch | None:
        """The fresh process that a state belongs to, where others beside it do such tasks."""
        watch = self._watch(state)
        launch = state.process.launch
        if watch is None or watch.booting or launch is None or launch.stage != "body":
            return None
        if launch.family not in _SHARE_OUT:
            return None
        is_alone = watch.launch.made in self._alone and watch.launch.later is None
        return None if is_alone else watch

    def _keeps_to_itself(self, state: State) -> bool:
        watch = self._watch(state) if self._watches else None
        # What it starts itself would have what it changed.
        is_last = watch is not None and len(watch.launch.identity) == _LAST_GENERATION
        if watch is None or not is_last or watch.booting or watch.launch.later is not None:
            return False
        return state.process.siblings == 1 and self._shared_out(state) is None

    def library_call(self, call: Call) -> Results:
        """A call of a library; the number of a process tells which of several is given a task."""
        if call.text("does") == "pid" and self._watches and self._shared_out(call.state) is not None:
            self._is_called(f"{shown(self.library.canonical(call.path))}()", call.site, call.state)
        outer, self._apart = self._apart, _goes_elsewhere(call.kwargs, call.state)
        is_evaluated = self._calls_module(call)
        self._optimises(call.path, call.site, call.state)
        for atom in call.args[0] if call.text("does") in _PUTS_IN and call.args else ():
            if isinstance(atom, Ref):
                self._is_kept(atom.address, call.site, call.state)
        self._evaluates += is_evaluated
        results = super().library_call(call)
        self._evaluates -= is_evaluated
        self._apart = outer
        if self.library.traits.has(call.path, "learns-when-called"):
            self._learning.update(atom.address for _, value in results for atom in value if isinstance(atom, Ref))
        return results

    def _calls_module(self, call: Call) -> bool:
        """Note what a module keeps of what it is called with; whether it is one that is evaluated."""
        name, receiver = call.path.rpartition(".")[2], call.receiver
        if name in _MODES and isinstance(receiver, Ref):
            is_training = name == "train" and (not call.args or constant(call.args[0]) is not False)
            (self._evaluated.discard if is_training else self._evaluated.add)(receiver.address)
        is_made_elsewhere = call.text("does") == "module" and not self._is_limited(call.state)
        self._has_outer_module = self._has_outer_module or is_made_elsewhere
        if name in _REPLACES and isinstance(receiver, Ref) and receiver.address in self._used_modules:
            self._is_kept(receiver.address, call.site, call.state)
        if call.text("does") != "module.call" or not isinstance(receiver, Ref):
            return False
        self._used_modules.add(receiver.address)
        if receiver.address in self._evaluated:
            return True
        for inner in (receiver, *reachable((receiver,), call.state)) if self._learning and not self._evaluates else ():
            if inner.address in self._learning:
                self._learns(inner.address, call.site, call.state)
        return False

    def _learns(self, address: Hashable, site: Site, state: State) -> None:
        """A module keeps something of what it was called with."""
        self._is_kept(address, site, state)

    def _optimises(self, path: str, site: Site, state: State) -> None:
        """Weights are changed, by what the task that runs has made for those of its own, or by something else."""
        if path.startswith(_OPTIMISERS) and path.rpartition(".")[2][:1].isupper():
            self._has_learner = self._is_limited(state)
            self._has_outer_learner = self._has_outer_learner or not self._has_learner
            return
        learns = self.library.traits.has(path, "learns") and (self._has_outer_learner or not self._has_learner)
        if learns or (path.endswith(".backward") and self._has_outer_module):
            self._changes_weights(site, state)

    def _is_limited(self, state: State) -> bool:
        """Whether what is made now is made by a task that shares its process with others."""
        return bool(self._watches) and self._shared_out(state) is not None

    def _changes_weights(self, site: Site, state: State) -> None:
        watch = self._shared_out(state) if self._watches else None
        if watch is not None:
            watch.doubts.setdefault(Doubt(Why.KEPT, "", site))

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))):
                self._optimises(f"?.{name}", given.site, given.state)
        return super()._call_atom(atom, given)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._optimises(path, given.site, given.state)
        outer, self._apart = self._apart, _goes_elsewhere(given.kwargs, given.state)
        results = super()._foreign(path, atom, given)
        self._apart = outer
        return results

    def _is_told(self, effect: ProcessEffect, path: str) -> bool:
        """Whether a function shows something where everybody sees it."""
        return effect.shows and not self._apart and self.library.traits.has(path, "on-console")

    def _leaves(self, effect: ProcessEffect, path: str, site: Site, state: State) -> None:
        super()._leaves(effect, path, site, state)
        is_told = self._is_told(effect, path)
        watch = self._shared_out(state) if effect.shows else None
        if watch is None:
            return
        (watch.shown_later if watch.before_later else watch.shown_first).add(site)
        if is_told:
            watch.told.add(site)
        elif self._cached:
            watch.doubts.setdefault(Doubt(Why.FEWER, "", site))

    def call_closure(self, ref: Ref, closure: Closure, given: Given) -> Results:
        """Call a user function; what remembers its results shows in each worker what it shows."""
        is_cached = closure.cache is not None or closure.kind == "cached"
        self._cached += is_cached
        results = super().call_closure(ref, closure, given)
        self._cached -= is_cached
        return results

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``; functions keep their attributes, too."""
        for atom in owner:
            if isinstance(atom, Ref) and isinstance(state.get(atom), Closure):
                self._is_kept(atom.address, site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        if not (isinstance(address, tuple) and len(address) == 2 and isinstance(address[1], str)):
            self._is_kept(address, site, state)
        super()._stores_into(address, site, state, lossy)

    def _writes_array(self, state: State, of: Iterable[Atom] = ()) -> None:
        """A later task changes a tensor or an array in place that was there before it."""
        super()._writes_array(state, of)
        watch = self._shared_out(state) if self._watches else None
        written = [_as_data(atom) for atom in of if isinstance(atom, Tensor | Unknown)]
        if watch is None or not written:
            return
        for before in watch.before_later:
            held = (atom for value in _globals(before) for atom in visited(value, before))
            data = (placed_tensor(atom, before) if isinstance(atom, Ref) else atom for atom in held)
            if any(_as_data(atom) in written for atom in data if atom is not None):
                watch.doubts.setdefault(Doubt(Why.KEPT, ARRAYS, watch.launch.anchor))

    def _is_kept(self, address: Hashable, site: Site, state: State) -> None:
        """A later task changes what was there before it: what it leaves depends on how many there were."""
        watch = self._shared_out(state) if self._watches else None
        owner = address[0] if isinstance(address, tuple) and len(address) == 2 else address
        for before in watch.before_later if watch is not None else ():
            found = before.at(address)
            is_shared = isinstance(found, LibraryObject) and found.type.startswith(_OF_ALL)
            if watch is not None and not is_shared and (found is not None or before.at(owner) is not None):
                watch.doubts.setdefault(Doubt(Why.KEPT, "", site))


def _as_data(atom: Atom) -> Atom:
    """A tensor as its data, whether it is a part of a module or not."""
    return atom.computed if isinstance(atom, Tensor) else atom


def _globals(state: State) -> Iterator[Value]:
    """The variables of all modules, also those that were sent with functions of them."""
    for found in state.objects():
        if isinstance(found, Scope) and found.kind == "module":
            yield from found.variables.values()


def _goes_elsewhere(kwargs: dict[str, Value], state: State) -> bool:
    """Whether a call is given something to write to that is seen to be no stream of its process."""
    for atom in (atom for name in _STREAMS for atom in kwargs.get(name, ())):
        match atom:
            case Unknown(sym=("call", _, _, _, str(path))):
                return not path.startswith("sys.")
            case Ref():
                return isinstance(state.get(atom), LibraryObject)
    return False
