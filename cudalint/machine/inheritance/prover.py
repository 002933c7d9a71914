"""The proof itself: what the parent did, and what the worker reads, against what a fresh process has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import partial

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Dict, Instance, LibraryObject, Object, Scope, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Inheritance, Why
from cudalint.machine.inheritance.ledger import Entry, Handed, Watch
from cudalint.machine.inheritance.names import OF_MAIN
from cudalint.machine.inheritance.recomputing import recomputed
from cudalint.machine.inheritance.sameness import Comparison, is_counted
from cudalint.machine.inheritance.streams import Streams, held
from cudalint.machine.interpreter import Beginning, Machine, Setting
from cudalint.machine.launch.crossing import inside_of, reachable, reached, visited
from cudalint.machine.launch.pickling import unproven
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Tensor, Value, const
from cudalint.structs import replace

# Attributes that tensors have by themselves, and that can be set.
_OF_TENSORS = frozenset({"data", "grad", "requires_grad", "names", "real", "imag"})
# What is a parameter by itself, and what gives parameters or computes with them.
_PARAMETER = ("torch.nn.Parameter", "torch.nn.parameter.", "torch.nn.UninitializedParameter")
_OF_WEIGHTS = frozenset({"module.call", "module.tensor", "module.data"})
# What may draw random numbers.
_MAY_DRAW = ("~indifferent",)
# Whose random numbers torch begins anew in each worker of a loader.
_SEEDED_BY_LOADERS = frozenset({"numpy", "random", "torch"})
# A dataset that each worker of a loader goes through by itself.
_IN_A_ROW = "torch.utils.data.IterableDataset"
# What a program does before it hands tasks to workers, and a loop would find.
_SET_UP = frozenset({Why.SETS, Why.SEEDS, Why.STORES, Why.CALLS, Why.IMPORTS})
# What tells where the data of a tensor lies.
_TELLS_WHERE = frozenset({"is_shared", "data_ptr", "untyped_storage", "storage"})


class Prover(Streams):
    """A machine that proves, for each launch of fresh processes, that these are what forked ones would have been.

    It follows what other runs leave out because no rule depends on it: idle functions, handlers of exceptions that
    nothing is seen to raise, callbacks of libraries, and the imports of all modules when they are imported. Whatever
    it cannot decide is a doubt.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.inherited: list[Inheritance] = []
        # By launch that handed tensors to its workers, the process that did so, and when.
        self._lent: dict[Site, tuple[tuple[str, ...], int]] = {}
        # Whether something computes with gradients, of which no tensor that is computed travels.
        self._has_gradients = False
        # The same, as long as all of it lies on the GPU, and what is made on the CPU is none of it.
        self._has_gradients_on_gpu = False
        # Whether the program gives a tensor attributes of its own, which do not travel.
        self._has_tags = False
        # The workers of pools and executors, by whoever made these, where and how often.
        self._numbers: dict[Hashable, int] = {}

    def begins_fresh(self, launch: Beginning, state: State) -> None:
        """A process that begins with a fresh import is about to start in this state of its parent."""
        moments = self._moments_of(launch, state)
        if not launch.held:
            self._is_made(launch.made, state)
        later = () if launch.later is None else (self._moment,)
        self._fresh_begun += 1
        # A loop would find what the program has changed since its workers began.
        handed_in = state.clone() if launch.held else None
        handed_at = self._moment if launch.held else None
        number = self._number_of(launch, state)
        self._watches.append(Watch(launch, (*moments, *later), handed_in, handed_at, number, self._fresh_begun))

    def _number_of(self, launch: Beginning, state: State) -> int:
        """Which worker it is; a pool's or an executor's are the same each time that it is given work."""
        place = (state.process.identity, launch.made)
        times = self._pools.get(place)
        return self._fresh_begun if times is None else self._numbers.setdefault((place, times), self._fresh_begun)

    def has_booted(self, children: list[State]) -> None:
        """The process that began last has imported what it begins with."""
        watch = self._watches[-1]
        watch.snapshots = [child.clone() for child in children]
        watch.booting = False
        super().has_booted(children)
        for child in children:
            # Each of them takes the memory that its parent took, of one GPU.
            for context in child.process.contexts:
                watch.doubts.setdefault(Doubt(Why.REPEATS, "", context.where.step.site))

    def ends_fresh(self, ran: bool, lends: bool) -> None:
        """The process that began last has ended; ``ran`` is false where it never came to its work."""
        watch = self._watches.pop()
        launch = watch.launch
        self._streams_from(watch)
        doubts = dict.fromkeys(self._lacks(watch))
        doubts.update(watch.doubts)
        doubts.update(dict.fromkeys(self._rereads(watch)))
        doubts.update(dict.fromkeys(self._finalises(watch)))
        doubts.update(dict.fromkeys(self._counted(watch)))
        if launch.parent.process.in_thread:
            doubts.update(self._threads_shown)
        doubts.update(dict.fromkeys(self._read(watch)))
        for why, holds in (
            (Why.STOPPED, not ran),
            (Why.LENDS, lends),
            (Why.IN_SHARED_MEMORY, self._shares_memory(watch)),
            (Why.DROPPED, self._drops(watch)),
            (Why.GRADIENTS, self._has_gradients and self._hands_tensors(watch)),
            (Why.TAGGED, self._has_tags and self._hands_tensors(watch)),
            (Why.TRAVELS, self._hands_views(watch)),
            (Why.ORDER, self._hands_shrunken(watch)),
            (Why.NESTED, self._hands_nested(watch)),
            (Why.EACH, self._goes_through_whole(watch)),
            (Why.CUT, self.record.cut is not None),
            (Why.TESTED, self.options.in_test),
            (Why.ASSUMED, self.options.assumed),
        ):
            if holds:
                doubts.setdefault(Doubt(why, "", launch.anchor))
        if self._hands_tensors(watch):
            self._lent[launch.anchor] = (launch.parent.process.identity, self._moment)
        for value in launch.given:
            # Handlers of exceptions, which only this machine runs, may have made it.
            reason = unproven(value, launch.parent, partial(is_counted, library=self.library))
            if reason is not None:
                doubts.setdefault(Doubt(Why.UNPROVEN, reason, launch.anchor))
        self.inherited.append(Inheritance(launch.anchor, launch.method, tuple(doubts)))

    def proofs(self) -> Iterator[Inheritance]:
        """What was seen of each launch, with what the program asks of its workers later."""
        told = (*self._told_by_threads(), *self._told_beside())
        for found in self.inherited:
            unawaited = (Doubt(Why.UNAWAITED, "", found.anchor),) if self._unawaited(found.anchor) else ()
            by_value = self._functions_compared if found.method == "loky" else ()
            written = (Doubt(Why.IN_SHARED_MEMORY, "", found.anchor),) if self._is_written_later(found.anchor) else ()
            yield replace(found, doubts=(*found.doubts, *unawaited, *written, *by_value, *self._asked, *told))

    def _shares_memory(self, watch: Watch) -> bool:
        """Whether the worker may write where its parent reads: torch pickles what is on the CPU into shared memory."""
        parent = watch.launch.parent
        for atom in (a for value in watch.launch.given for a in visited(value, parent)):
            found = parent.get(atom) if isinstance(atom, Ref) else None
            match atom, found:
                case Tensor(framework="torch"), _ if watch.writes:
                    return True
                case Ref(), LibraryObject(type=kind) if self.library.is_a(kind, "torch.nn.Module"):
                    return True
                case Ref(), Instance(cls=cls):
                    base = self.library_base(cls, parent)
                    if base is not None and self.library.is_a(base, "torch.nn.Module"):
                        return True
        return False

    def _is_written_later(self, anchor: Site) -> bool:
        """Whether the parent changes an array when it has handed tensors to a worker, which would see that."""
        lent = self._lent.get(anchor)
        return lent is not None and self._wrote.get(lent[0], 0) > lent[1]

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may make what needs gradients."""
        path = self.library.canonical(call.path)
        needs = call.kwargs.get("requires_grad", const(False)) != const(False)
        if needs or path.startswith(_PARAMETER) or path.endswith(".requires_grad_"):
            self._has_gradients = True
        self._asks_where(path, call.state)
        results = super().library_call(call)
        self._computes(call.text("does"), call, results)
        return results

    def _computes(self, does: str, call: Call, results: Results) -> None:
        """What is computed with a module's weights needs gradients, on the GPU or on the CPU."""
        made = [atom for after, value in results for atom in _tensors(value, after)]
        if does in _OF_WEIGHTS and made and all(map(_is_on_gpu, made)):
            self._has_gradients_on_gpu = True
        elif does in _OF_WEIGHTS:
            self._has_gradients = True
        else:
            receiver = () if call.receiver is None else (call.receiver,)
            self._may_come_to_host([receiver, *call.args, *call.kwargs.values()], made, call.state)

    def _may_come_to_host(self, given: Iterable[Value], made: Iterable[Tensor], state: State) -> None:
        """What needs gradients on the GPU may become, or be copied into, a tensor on the CPU."""
        if not self._has_gradients_on_gpu or self._has_gradients:
            return
        found = [atom for value in given for atom in _tensors(value, state)]
        self._has_gradients = any(map(_is_on_gpu, found)) and not all(map(_is_on_gpu, (*found, *made)))

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``: what is stored in a tensor on the CPU may come from the GPU."""
        if self._has_gradients_on_gpu and any(map(_is_on_gpu, value)) and not all(map(_is_on_gpu, owner)):
            self._has_gradients = True
        return super().set_item(owner, key, value, state, frame, site)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._asks_where(path, given.state)
        receiver = (atom.receiver,) if isinstance(atom, Bound) else ()
        self._may_come_to_host([receiver, *given.args, *given.kwargs.values()], (), given.state)
        return super()._foreign(path, atom, given)

    def _asks_where(self, path: str, state: State) -> None:
        """The parent asks where the data of a tensor lies, which lies elsewhere when it was handed over."""
        if self._lent and path.rpartition(".")[2] in _TELLS_WHERE and not self._is_started(state):
            self._writes_array(state)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        self._has_gradients = self._has_gradients or attr == "requires_grad"
        is_own = any(isinstance(atom, Tensor) for atom in owner) and attr not in _OF_TENSORS
        self._has_tags = self._has_tags or is_own
        return super().set_attribute(owner, attr, value, state, frame, site)

    def _hands_tensors(self, watch: Watch) -> bool:
        parent = watch.launch.parent
        return any(True for value in watch.launch.given for _ in _tensors(value, parent))

    def _hands_views(self, watch: Watch) -> bool:
        """Whether the worker is given an iterator or a view, which is seen as a list here and may not pickle."""
        return any(self._passes(value, watch.launch.parent) for value in watch.launch.given)

    def _goes_through_whole(self, watch: Watch) -> bool:
        """Whether the worker is one of several of a loader that each go through what gives its items in a row."""
        if all(child.process.siblings == 1 for child in watch.snapshots):
            return False
        parent = watch.launch.parent
        given = (parent.get(atom) for value in watch.launch.given for atom in value if isinstance(atom, Ref))
        bases = (self.library_base(found.cls, parent) for found in given if isinstance(found, Instance))
        return any(base is not None and self.library.is_a(base, _IN_A_ROW) for base in bases)

    def _hands_shrunken(self, watch: Watch) -> bool:
        """Whether the worker is given a set from which something was taken: its order tells, until it is copied."""
        parent = watch.launch.parent
        given = (r for value in watch.launch.given for r in reachable(value, parent))
        return any(
            isinstance(found := parent.get(r), Sequence) and found.kind == "set" and self._unsteady.get(r.address)
            for r in given
        )

    def _hands_nested(self, watch: Watch) -> bool:
        """Whether the worker is given what a loop or a function puts into what it made before: how often is unknown."""
        parent = watch.launch.parent
        for value in watch.launch.given:
            for outer in reachable(value, parent):
                inside = (r for part in inside_of(outer, parent) for r in reachable(part, parent))
                if any(r != outer and _place_of(r) == _place_of(outer) for r in inside):
                    return True
        return False

    def _drops(self, watch: Watch) -> bool:
        """Whether only the arguments of a process hold a lock or a queue: they are let go when it has started."""
        launch, parent = watch.launch, watch.launch.parent
        found = self.record.launches.get((launch.anchor, launch.method))
        if found is None or found.family != "process":
            return False

        def inside(atom: Atom) -> Iterable[Value]:
            obj = parent.get(atom) if isinstance(atom, Ref) else None
            if isinstance(obj, Instance):
                # Whatever it says of how it is pickled.
                return obj.attributes.values()
            return () if isinstance(obj, LibraryObject) and not _is_primitive(obj) else inside_of(atom, parent)

        handed = (atom for value in launch.given for atom in reached(value, inside) if isinstance(atom, Ref))
        given = {ref.address for ref in handed if _is_primitive(parent.get(ref))}
        if not given:
            return False
        scopes = [obj for obj in parent.objects() if isinstance(obj, Scope)]
        kept = reached((a for scope in scopes for value in scope.variables.values() for a in value), inside)
        return not given <= {atom.address for atom in kept if isinstance(atom, Ref)}

    def _lacks(self, watch: Watch) -> Iterator[Doubt]:
        """What the parent, and those before it, did and the fresh process did not do again."""
        before = watch.launch.identity[:-1]
        done = [e for identity, all_of in self._ledger.items() if before[: len(identity)] == identity for e in all_of]
        handed = {e.handed for e in done if e.handed is not None} if watch.launch.method == "spawn" else set()
        if Handed.PATH in handed:
            # A folder of modules may be relative to the working folder.
            handed.discard(Handed.FOLDER)
        handed -= watch.notices
        draws = watch.draws or any(self.library.feels(path, _MAY_DRAW) for path in watch.called)
        for entry in done:
            is_asked_for = entry.doubt.name.partition(".")[0] in watch.asked
            is_felt = is_asked_for or any(self.library.feels(path, entry.felt_by) for path in watch.called)
            if entry.felt_by and not is_felt:
                continue
            if entry.doubt.why is Why.SEEDS and (not draws or self._begins_anew(watch, entry.doubt.name)):
                continue
            if entry.handed in handed:
                # An executor may start more of its workers when more work comes, and then hands them this.
                if entry.begin > watch.moments[0] and watch.launch.held:
                    yield entry.doubt
                continue
            repeated = entry.key in watch.booted and entry.doubt.why is not Why.SEEDS
            # A loop would find what was set until then.
            if (self._stands_by_then(entry, watch) or any(map(entry.stands, watch.moments))) and not repeated:
                yield entry.doubt

    def _stands_by_then(self, entry: Entry, watch: Watch) -> bool:
        """Whether something was in force when tasks were handed to workers that had begun before."""
        if watch.handed_at is None or entry.some_day or entry.doubt.why not in _SET_UP:
            return False
        is_felt = entry.felt_by or not self.library.traits.has(entry.doubt.name, "only-how-fast")
        return bool(is_felt) and entry.stands(watch.handed_at)

    def _begins_anew(self, watch: Watch, name: str) -> bool:
        """Whether torch seeds a worker of its loaders, by a number that its parent draws, where the program seeded."""
        found = self.record.launches.get((watch.launch.anchor, watch.launch.method))
        return found is not None and found.family == "loader" and name.partition(".")[0] in _SEEDED_BY_LOADERS

    def _read(self, watch: Watch) -> Iterator[Doubt]:
        """The variables that the worker reads and that are not seen to be what a fork would have inherited."""
        yield from self._read_of(watch, watch.launch.parent)
        for other in (watch.launch.later, watch.handed_in):
            if other is not None:
                yield from self._read_of(watch, other)

    def _read_of(self, watch: Watch, parent: State) -> Iterator[Doubt]:
        """The same of one state of the parent."""
        given = {r.address for value in watch.launch.given for r in reachable(value, parent) if _is_mutable(r, parent)}
        given |= {key for address in tuple(given) for key in self._keyed.get(address, ())}
        compared: dict[int, Comparison] = {}
        for (module, name), site in watch.reads.items():
            scope = parent.get(Ref(("module", module)))
            if not isinstance(scope, Scope):
                continue
            if name in OF_MAIN and module == self.main:
                yield Doubt(Why.NAME, name, site)
                continue
            shown = name if module == self.main else f"{module}.{name}"
            for state in watch.loaded.get(module) or watch.snapshots:
                comparison = compared.setdefault(id(state), self.comparison(watch, parent, state))
                yield from self._compared(watch, comparison, scope, module, name, Doubt(Why.DIFFERS, shown, site))
            value = scope.variables.get(name, ())
            if any(isinstance(a, Ref) and a.address in given for a in held(value, parent)):
                yield Doubt(Why.SHARES, shown, site)

    def comparison(self, watch: Watch, parent: State, state: State) -> Comparison:
        """A comparison of a parent with the fresh process that is watched."""

        def unsteady(address: Hashable) -> bool:
            changed = not self._unsteady.get(address, set()) <= watch.booted
            return changed or address in self._iterators or self.remembers(address)

        def is_value(kind: str) -> bool:
            effect = self.library.process_effect(kind)
            return kind == "argparse.Namespace" or (effect is not None and effect.gives == "value")

        return Comparison(parent, state, unsteady, is_value, self._sources, recomputed(watch), self._names_loggers)

    def _compared(
        self, watch: Watch, comparison: Comparison, scope: Scope, module: str, name: str, doubt: Doubt
    ) -> Iterator[Doubt]:
        there = comparison.right.get(Ref(("module", module)))
        if not isinstance(there, Scope):
            if name in scope.variables:
                yield replace(doubt, why=Why.HIDDEN)
            return
        if name not in scope.variables and name not in there.variables:
            return
        address = (("module", module), name)
        # Another worker would go on with that where a loop took the place of both.
        by_others = any(begun < self._fresh_begun for begun in self._unsteady_in_workers.get(address, ()))
        changed = by_others or not self._unsteady.get(address, set()) <= watch.booted
        if changed or name not in scope.variables or name not in there.variables:
            yield doubt
            return
        for found in comparison.variables(scope.variables[name], there.variables[name], doubt.name):
            why = Why.NAME if found.named else Why.HIDDEN if found.hidden else Why.DIFFERS
            yield replace(doubt, why=why, name=found.path)


def _place_of(ref: Ref) -> Hashable:
    """Where an object was made: its address without how many were made there before."""
    address = ref.address
    return address[0] if isinstance(address, tuple) and len(address) == 3 else address


def _is_primitive(found: Object | None) -> bool:
    """Whether an object is known to the system by a name, which goes when nothing holds it any more.

    The end of a pipe has none: a fresh process has it from the moment at which it is started.
    """
    return isinstance(found, LibraryObject) and "<lock>" in found.fields


def _is_mutable(ref: Ref, state: State) -> bool:
    """Whether a change of an object is seen by all who hold it; of contexts each process has its own."""
    found = state.get(ref)
    if isinstance(found, LibraryObject) and found.type.endswith(".context"):
        return False
    return isinstance(found, Instance | Dict | LibraryObject) or (isinstance(found, Sequence) and found.kind != "tuple")


def combined(machines: Iterable[Machine]) -> tuple[Inheritance, ...]:
    """What provers have seen of all launches."""
    return tuple(found for machine in machines if isinstance(machine, Prover) for found in machine.proofs())


def _tensors(value: Value, state: State) -> Iterator[Tensor]:
    return (atom for atom in visited(value, state) if isinstance(atom, Tensor) and atom.framework == "torch")


def _is_on_gpu(atom: Atom) -> bool:
    return isinstance(atom, Tensor) and atom.device.is_gpu
