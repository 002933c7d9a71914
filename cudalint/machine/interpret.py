"""The interpreter: statements and expressions on abstract states."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine import collecting, enums, operators
from cudalint.machine.classes import Order, Orders
from cudalint.machine.frame import Around, Call, Frame, Raised, Results
from cudalint.machine.heap import (
    Cache,
    Class,
    Closure,
    Generator,
    Instance,
    Mapping_,
    Object,
    Scope,
    Sequence,
    Thing,
)
from cudalint.machine.joining import merge, merge_imported
from cudalint.machine.keys import as_key, of_key
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.state import Process, State
from cudalint.machine.toplevel import Bindings, top_level
from cudalint.machine.trace import Chain, Hop, Site
from cudalint.machine.values import (
    EACH,
    NONE,
    Atom,
    Bound,
    Const,
    Deferred,
    Dev,
    Lib,
    Member,
    Partial,
    Rank,
    Ref,
    Snapshot,
    Super,
    Task,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    union,
    unknown,
)
from cudalint.models.library import Library

MOST_STEPS = 12_000
MOST_ASSUMED_STEPS = 3_000
# Tests are many, and each one does little by itself.
MOST_TEST_STEPS = 700
MOST_DEPTH = 40
ROUNDS = 2
MOST_TURNS = 6
RECURSION = 3
MOST_RESULTS = 8
REEXPORTS = 10
# The field of a library's object that keeps the state in which its call, or its ``with`` statement, began.
BEGAN = "<snapshot>"
# The field of a manager that names the exceptions it keeps from leaving its ``with`` statement.
SUPPRESSED = "<suppressed>"


class Program(Protocol):
    """What the machine asks of the project."""

    def module(self, name: str) -> ir.Module | None:
        """A lowered module of the project by its dotted name."""

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The name of the project's module that an import means; None for libraries."""

    def child(self, package: str, name: str) -> str | None:
        """The submodule of this name in a package of the project."""

    def parents(self, name: str) -> tuple[str, ...]:
        """The packages that are imported before a module, the outermost first."""

    def package(self, name: str) -> str | None:
        """The package that a module lies in, or is."""

    def acting(self, name: str) -> tuple[str, ...]:
        """The modules whose top level may do something to the process when ``name`` is imported."""

    def set_by_main(self, module: str) -> frozenset[str]:
        """Names that a module has only where it is the main program."""

    @property
    def top_levels(self) -> dict[str, tuple[Bindings | ir.Stmt, ...]]:
        """The top levels of modules as the machine keeps them."""


@dataclass(frozen=True, slots=True)
class Host:
    """What decides the default start method: the Python versions in range and the platform."""

    lowest: tuple[int, int] = (3, 10)
    highest: tuple[int, int] = (3, 13)
    platform: str = "linux"

    def defaults(self) -> list[tuple[str, str | None]]:
        """The default start methods in range, each with the condition under which it is the one."""
        if self.platform != "linux":
            return [("spawn", None)]
        result: list[tuple[str, str | None]] = []
        mixed = self.lowest < (3, 14) <= self.highest
        if self.lowest < (3, 14):
            result.append(("fork", "before Python 3.14" if mixed else None))
        if self.highest >= (3, 14):
            result.append(("forkserver", "from Python 3.14" if mixed else None))
        return result


@dataclass(frozen=True, slots=True)
class Fresh:
    """A process that begins with a fresh import.

    ``parent`` is the state that it would inherit by fork, ``made`` the call that made its launcher. ``given`` are the
    values that it is handed once, when it starts. ``later`` is the state that those after it would inherit, where it is
    replaced after some tasks.
    """

    anchor: Site
    method: str
    made: Site
    identity: tuple[str, ...]
    parent: State
    held: bool
    given: tuple[Value, ...]
    later: State | None = None


class Machine:
    """Runs one entry. ``outcomes`` gathers what goes wrong.

    ``cut`` says which bound was met: from then on it is not known what was not done, and nothing is certain.
    ``spent`` is it when the steps are used up: all paths have ended there.
    """

    def __init__(self, program: Program, library: Library, behaviours: Behaviours, main: str, host: Host) -> None:
        self.program = program
        self.library = library
        self.behaviours = behaviours
        self.main = main
        self.host = host
        self.orders = Orders(library.canonical)
        self.uses_gpu = True
        self.running: list[Site] = []
        self.protected: list[tuple[Site, tuple[tuple[Hashable, bool], ...]]] = []
        self.booting: list[tuple[str, ...]] = []
        self.preloads: list[tuple[str, Site]] = []
        self.puts: dict[Hashable, list[tuple[Site, Chain, Chain | None]]] = {}
        self.rendezvous_seen = False
        # Per collective, the GPUs that ranks started one by one use there, by their start.
        self.rank_gpus: dict[Site, dict[tuple[Site, str], set[int]]] = {}
        # The ways on which a device is selected by a rank within the machine: there a global one is only a fallback.
        self.local_choices: set[tuple[Site, ...]] = set()
        # The process groups that are joined after a device was selected, on some path.
        self.device_first: set[Site] = set()
        self.uncaught: list[tuple[State, Raised]] = []
        self.outcomes: list[Outcome] = []
        self.cut: str | None = None
        self.spent = False
        self.launched: set[Site] = set()
        # The launches whose workers fail and whose parent goes on, because it catches that.
        self.outlived: set[Site] = set()
        self.launches: dict[tuple[Site, str], Launched] = {}
        self.entered: set[Site] = set()
        self.watched: dict[Site, list[Process]] = {}
        self.seen: list[Hop] | None = None
        self._steps = 0
        # How deep in imports it is: what modules do at their import leaves half of the steps to the program itself.
        self._importing = 0
        self._active: list[tuple[str, int]] = []
        # The classes that are being made by their metaclass.
        self._making: list[Ref] = []
        # The calls that are running, with what is known of their arguments.
        self._given: list[tuple[Site, Hashable]] = []
        self.commands: list[Site] = []
        self.serves = False
        self.saved: dict[Atom, bool] = {}
        self.evaluated: Counter[Site] = Counter()
        self.in_test = False
        # Whether it imports what all tests of a module begin with: they miss what is not there.
        self.collects = False
        self.assumed = False
        # Whether workers run although what is sent to them does not pickle: for a look at what they do with it.
        self.lenient = False

    @property
    def steps(self) -> int:
        """The work done so far."""
        return self._steps

    # -- emission ------------------------------------------------------------------------------

    def emit(self, outcome: Outcome) -> None:
        """Report an outcome; in a worker it belongs to the launch of that worker."""
        if outcome.within is None:
            outcome = replace(outcome, within=self.running[-1] if self.running else outcome.anchor)
        self.outcomes.append(outcome)

    def protect(self, anchor: Site, state: State) -> None:
        """On this path a launch does no harm."""
        if state.facts:
            self.protected.append((anchor, state.facts))

    def softened(self) -> list[Outcome]:
        """The outcomes; those whose launch is harmless on a contradicting path are not certain.

        Where a bound cut, such a path may not have been seen.
        """
        given = [o for o in self.outcomes if not o.unsaid and not self._falls_back(o) and not self._has_its_device(o)]
        return [
            replace(o, certain=o.certain and not self._may_be_contradicted(o), outlived=o.within in self.outlived)
            for o in given
        ]

    def _has_its_device(self, outcome: Outcome) -> bool:
        """Whether a device is selected before the group is joined, under a condition that is not seen to fail."""
        match outcome.kind:
            case Kind.INIT_BEFORE_DEVICE:
                return outcome.anchor in self.device_first
            case Kind.BARRIER_BEFORE_DEVICE:
                return any(hop.site in self.device_first for hop in outcome.cause)
        return False

    def _falls_back(self, outcome: Outcome) -> bool:
        """Whether a global rank is used only where the rank within the machine is not known."""
        if outcome.kind is not Kind.GLOBAL_RANK_DEVICE:
            return False
        return tuple(hop.site for hop in outcome.effect) in self.local_choices

    def _may_be_contradicted(self, outcome: Outcome) -> bool:
        if self.cut is not None and (outcome.facts or outcome.kind in _BY_ABSENCE):
            return True
        for anchor, facts in self.protected:
            if anchor == outcome.within and any((sym, not value) in facts for sym, value in outcome.facts):
                return True
        return False

    def is_import_of_main(self, state: State) -> bool:
        """Whether this process is a spawned child that is importing main."""
        return bool(self.booting) and self.booting[-1] == state.process.identity

    def end(self, states: list[State]) -> None:
        """The entry's process ends in these states."""
        for state in states:
            self.behaviours.process_ends(self, state)

    def chain(self, state: State, site: Site, message: str) -> Chain:
        """The calls that led here, and this."""
        if state.second_round:
            message += " (second time round)"
        hop = Hop(site, message, state.process.label)
        if self.seen is not None:
            self.seen.append(hop)
        return Chain(hop, state.stack)

    # -- what a proof of sameness wants to know (machine/inheritance/); other runs pay nothing for it ----------

    def passes_over(self, site: Site, state: State) -> None:
        """A call of a user function is not followed any further: a bound is met."""

    def finds_by_name(self, module: str, name: str, state: State) -> None:
        """Unpickling looks up a name of a module in this process."""

    def begins_fresh(self, launch: Fresh, state: State) -> None:
        """A process that begins with a fresh import is about to start in this state of its parent."""

    def has_booted(self, children: list[State]) -> None:
        """The process that began last has imported what it begins with."""

    def ends_fresh(self, ran: bool, lends: bool) -> None:
        """The process that began last has ended; ``ran`` is false where it never came to its work.

        ``lends``: what it gives back lies in its GPU memory, although it ends before what it gave.
        """

    def fail(self, state: State, frame: Frame, raised: Raised) -> Results:
        """End this path with an exception."""
        frame.raises.append((state, raised))
        return []

    # -- blocks and statements -------------------------------------------------------------------

    def block(self, body: Iterable[ir.Stmt], states: list[State], frame: Frame) -> list[State]:
        """Run statements on every state; what leaves early is gathered in the frame."""
        for statement in body:
            following: list[State] = []
            for state in states:
                following.extend(self.statement(statement, state, frame))
            states = merge(following) if len(following) > 1 else following
            if not states:
                break
        return states

    @property
    def _most_steps(self) -> int:
        if self.in_test and not self.collects:
            return MOST_TEST_STEPS
        return MOST_ASSUMED_STEPS if self.assumed else MOST_STEPS

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement."""
        self._steps += 1
        most = self._most_steps
        if self._steps > (most // 2 if self._importing else most):
            self.cut = self.cut or f"more than {most} steps{', half of them for imports' if self._importing else ''}"
            if self._importing and self._steps <= most:
                # What modules do after that is left out, so that the program itself is still seen.
                return [state]
            self.spent = True
            return []
        if self.watched:
            watched = self.watched.get(Site(frame.module, node.ordinal))
            if watched is not None and state.process not in watched:
                watched.append(state.process)
        return _STATEMENTS[type(node)](self, node, state, frame)

    def _expr_stmt(self, node: ir.ExprStmt, state: State, frame: Frame) -> list[State]:
        if isinstance(node.value, ir.Call):
            return [s for s, _ in self._call(node.value, state, frame, statement=True)]
        return [s for s, _ in self.eval(node.value, state, frame)]

    def _assign(self, node: ir.Assign, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, value in self.eval(node.value, state, frame):
            states = [current]
            for target in node.targets:
                states = [s for c in states for s in self.assign(target, value, c, frame, node.ordinal)]
            result.extend(states)
        return result

    def _declare(self, node: ir.Declare, state: State, frame: Frame) -> list[State]:
        return [state]

    def _aug_assign(self, node: ir.AugAssign, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, left in self.eval(node.target, state, frame):
            for after, right in self.eval(node.value, current, frame):
                value = self._augmented(node, left, right, after)
                result.extend(self.assign(node.target, value, after, frame, node.ordinal))
        return result

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        atom = only(left)
        if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence) and node.op == "+":
            state.put(atom, operators.extend(found, self.elements(right, state)))
            return left
        second = state.get(two) if isinstance(two := only(right), Ref) else None
        if isinstance(atom, Ref) and isinstance(found := state.get(atom), Mapping_) and isinstance(second, Mapping_):
            self.put_mapping(atom, operators.merged(found, second), state)
            return left
        return operators.binary(node.op, left, right, ("aug", node.ordinal))

    def assign(self, target: ir.Expr, value: Value, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Bind a value to a target."""
        match target:
            case ir.Name(id=name):
                self.bind(name, value, state, frame)
                return [state]
            case ir.Star(value=inner):
                ref = state.new(("star", frame.module, ordinal), Sequence("list", None, value))
                return self.assign(inner, (ref,), state, frame, ordinal)
            case ir.Display(items=items):
                return self._unpack(items, value, state, frame, ordinal)
            case ir.Attr(value=base, attr=attr):
                return [
                    after
                    for after, owner in self.eval(base, state, frame)
                    for after in self.set_attribute(owner, attr, value, after, frame, Site(frame.module, ordinal))
                ]
            case ir.Sub(value=base, index=index):
                result: list[State] = []
                for after, owner in self.eval(base, state, frame):
                    for last, key in self.eval(index, after, frame):
                        result.extend(self.set_item(owner, key, value, last, frame, Site(frame.module, ordinal)))
                return result
        return [state]

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name where ``global`` and ``nonlocal`` say."""
        state.set_variable(self._home(name, state, frame.scope), name, value)

    def _home(self, name: str, state: State, scope: Ref) -> Ref:
        found = state.get(scope)
        if not isinstance(found, Scope) or name not in found.outside:
            return scope
        parent = found.parent
        if found.outside[name] == "global":
            while parent is not None and isinstance(up := state.get(parent), Scope) and up.kind != "module":
                parent = up.parent
            return parent or scope
        while parent is not None and isinstance(up := state.get(parent), Scope):
            if name in up.variables:
                return parent
            parent = up.parent
        return scope

    def _unpack(
        self, items: tuple[ir.Expr, ...], value: Value, state: State, frame: Frame, ordinal: int
    ) -> list[State]:
        rows = [self.exact_items((atom,), state) for atom in value]
        if len(rows) == 1 and rows[0] is not None:
            items, rows[0] = self._gather_rest(items, rows[0], state, ("star", frame.module, ordinal))
        states = [state]
        for i, item in enumerate(items):
            if rows and all(row is not None and len(row) == len(items) for row in rows):
                part = union([row[i] for row in rows if row is not None])
            else:
                part = self._part(value, i, state, frame, ordinal)
            states = [s for c in states for s in self.assign(item, part, c, frame, ordinal)]
        return states

    def _gather_rest(
        self, items: tuple[ir.Expr, ...], row: list[Value], state: State, site: Hashable
    ) -> tuple[tuple[ir.Expr, ...], list[Value]]:
        """``first, *rest = row``: what the starred target takes becomes one list."""
        starred = next((i for i, item in enumerate(items) if isinstance(item, ir.Star)), None)
        if starred is None or len(row) < len(items) - 1:
            return items, row
        end = len(row) - len(items) + starred + 1
        rest: Value = (state.new(site, Sequence("list", tuple(row[starred:end]))),)
        plain = tuple(item.value if isinstance(item, ir.Star) else item for item in items)
        return plain, [*row[:starred], rest, *row[end:]]

    def _part(self, value: Value, position: int, state: State, frame: Frame, ordinal: int) -> Value:
        found = union([self.element_of(atom, state, ("part", frame.module, ordinal, position)) for atom in value])
        return found or unknown("part", frame.module, ordinal, position)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        for atom in owner:
            setter = self._setter_of(atom, attr, state)
            if setter is not None and len(owner) == 1:
                return [s for s, _ in self.call_value(setter, [owner, value], {}, state, frame, site)]
            if isinstance(atom, Ref):
                self._set_on_object(atom, attr, value, state, weak=len(owner) > 1)
            elif isinstance(atom, Lib):
                call = self._library_call(f"{atom.path}.{attr}.__set__", state, frame, site, [value])
                if call is not None:
                    return [s for s, _ in self.library_call(call)]
        return [state]

    def _setter_of(self, atom: Atom, attr: str, state: State) -> Value | None:
        found = state.get(atom) if isinstance(atom, Ref) else None
        given = self._class_attribute(found.cls, attr, state) if isinstance(found, Instance) else None
        prop = state.get(ref) if given and isinstance(ref := only(given), Ref) else None
        return (prop.setter,) if isinstance(prop, Closure) and prop.setter is not None else None

    def _set_on_object(self, ref: Ref, attr: str, value: Value, state: State, weak: bool) -> None:
        found = state.get(ref)
        match found:
            case Instance():
                old = found.attributes.get(attr)
                new = union([old, value]) if weak and old is not None else value
                state.put(ref, replace(found, attributes={**found.attributes, attr: new}))
            case Thing():
                state.put(ref, replace(found, fields={**found.fields, attr: value}))
            case Class(scope=scope):
                state.set_variable(scope, attr, value)
            case Scope():
                state.set_variable(ref, attr, value)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        states = [state]
        for atom in owner:
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence):
                state.put(atom, operators.with_item(found, key, value))
                continue
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Mapping_):
                self.put_mapping(atom, operators.with_key(found, as_key(key, state), value), state)
                continue
            path = self._method_path(atom, "__setitem__", state)
            call = None if path is None else self._library_call(path, state, frame, site, [key, value])
            if call is not None:
                call.receiver = atom
                states = [s for s, _ in self.library_call(call)]
        return states

    def _return(self, node: ir.Return, state: State, frame: Frame) -> list[State]:
        if node.value is None:
            frame.returns.append((state, NONE))
            return []
        frame.returns.extend(self.eval(node.value, state, frame))
        return []

    def _if(self, node: ir.If, state: State, frame: Frame) -> list[State]:
        yes, no = self.branch(node.test, state, frame)
        return [*self.block(node.body, merge(yes), frame), *self.block(node.orelse, merge(no), frame)]

    def branch(self, test: ir.Expr, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        """The states in which a test holds, and those in which it does not."""
        match test:
            case ir.Not(value=value):
                yes, no = self.branch(value, state, frame)
                return no, yes
            case ir.Bool(op="and", values=values):
                return self._branch_all(values, state, frame)
            case ir.Bool(values=values):
                return self._branch_any(values, state, frame)
        yes, no = [], []
        for current, outcome in self.eval(test, state, frame):
            truth, sym = self.truth(outcome, current)
            if truth is None:
                other = current.clone()
                if sym is not None:
                    current.assume(sym, True)
                    other.assume(sym, False)
                yes.append(current)
                no.append(other)
            else:
                (yes if truth else no).append(current)
        return yes, no

    def _branch_all(self, values: tuple[ir.Expr, ...], state: State, frame: Frame) -> tuple[list[State], list[State]]:
        yes, no = [state], []
        for value in values:
            following: list[State] = []
            for current in yes:
                good, bad = self.branch(value, current, frame)
                following.extend(good)
                no.extend(bad)
            yes = following
        return yes, no

    def _branch_any(self, values: tuple[ir.Expr, ...], state: State, frame: Frame) -> tuple[list[State], list[State]]:
        yes, no = [], [state]
        for value in values:
            following: list[State] = []
            for current in no:
                good, bad = self.branch(value, current, frame)
                yes.extend(good)
                following.extend(bad)
            no = following
        return yes, no

    def truth(self, value: Value, state: State) -> tuple[bool | None, Hashable | None]:
        """Whether a value is true on this path; else the identity to assume something about."""
        verdicts: set[bool | None] = set()
        sym: Hashable | None = None
        for atom in value:
            if isinstance(atom, Unknown):
                known = state.fact(atom.sym)
                verdicts.add(known)
                sym = atom.sym if len(value) == 1 else None
            else:
                verdicts.add(self._truth_of(atom, state))
        if len(verdicts) == 1:
            return verdicts.pop(), sym
        return None, None

    def _truth_of(self, atom: Atom, state: State) -> bool | None:
        match atom:
            case Const(value=value):
                return bool(value)
            case Ref():
                found = state.get(atom)
                if isinstance(found, Sequence):
                    return None if found.items is None or found.open else bool(found.items)
                if isinstance(found, Mapping_):
                    return bool(found.items) if found.exact else None
                return None if isinstance(found, Instance) and self.user_method(found, "__len__", state) else True
            case Rank() | Tensor():
                return None
        return True

    def _for(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        done: list[State] = []
        for current, iterable in self.eval(node.iter, state, frame):
            for after, rounds in self.iterate(iterable, current, frame, Site(frame.module, node.iter.ordinal)):
                done.extend(self._rounds(node, rounds, after, iterable, frame))
        return merge(done)

    def _rounds(self, node: ir.For, rounds: list[Value], state: State, iterable: Value, frame: Frame) -> list[State]:
        outer_breaks, outer_continues = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        left: list[State] = []
        states = [state]
        was_second = state.second_round
        for i, value in enumerate(rounds):
            ready: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                ready.extend(self.assign(node.target, value, current, frame, node.ordinal))
            states = self.block(node.body, merge(ready), frame)
            states = merge([*states, *frame.continues])
            frame.continues = []
            left.extend(frame.breaks)
            frame.breaks = []
            if not states:
                break
        frame.breaks, frame.continues = outer_breaks, outer_continues
        states = self.block(node.orelse, states, frame)
        for current in (*states, *left):
            current.second_round = was_second
        return merge([*states, *left])

    def _while(self, node: ir.While, state: State, frame: Frame) -> list[State]:
        outer_breaks, outer_continues = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        left: list[State] = []
        finished: list[State] = []
        was_second = state.second_round
        states = [state]
        decided = not isinstance(node.test, ir.Const)
        for i in range(MOST_TURNS):
            if i >= ROUNDS and not decided:
                break
            entering: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                yes, no = self.branch(node.test, current, frame)
                decided = decided and not (yes and no)
                entering.extend(yes)
                if i > 0 or not yes:
                    finished.extend(no)
            states = self.block(node.body, merge(entering), frame)
            states = merge([*states, *frame.continues])
            frame.continues = []
            left.extend(frame.breaks)
            frame.breaks = []
        frame.breaks, frame.continues = outer_breaks, outer_continues
        endless = isinstance(node.test, ir.Const) and bool(node.test.value)
        if endless:
            # A path that goes round once more leaves some day, as others do; where none leaves, nobody does.
            after = [*finished, *states] if left else finished
        else:
            after = self.block(node.orelse, merge([*states, *finished]), frame)
        for current in (*after, *left):
            current.second_round = was_second
        return merge([*after, *left])

    def _break(self, node: ir.Break, state: State, frame: Frame) -> list[State]:
        frame.breaks.append(state)
        return []

    def _continue(self, node: ir.Continue, state: State, frame: Frame) -> list[State]:
        frame.continues.append(state)
        return []

    def _try(self, node: ir.Try, state: State, frame: Frame) -> list[State]:
        outer = frame.raises
        frame.raises = []
        guarded = frame.guards_import
        frame.guards_import = guarded or any(_catches_import(handler.type) for handler in node.handlers)
        frame.tries += 1 if node.handlers else 0
        after = self.block(node.body, [state], frame)
        frame.tries -= 1 if node.handlers else 0
        frame.guards_import = guarded
        raised, frame.raises = frame.raises, outer
        after = self.block(node.orelse, after, frame)
        for current, exception in _joined_raises(raised):
            after.extend(self._handle(node.handlers, current, exception, frame))
        after = merge(after)
        if not node.final:
            return after
        return self._finally(node.final, after, frame)

    def _handle(self, handlers: tuple[ir.Handler, ...], state: State, raised: Raised, frame: Frame) -> list[State]:
        for handler in handlers:
            if not self._catches(handler, raised, state, frame):
                continue
            if handler.name is not None:
                self.bind(handler.name, unknown("exception", frame.module), state, frame)
            frame.handling.append(raised)
            before, left = len(frame.raises), _exits(frame)
            after = self.block(handler.body, [state], frame)
            frame.handling.pop()
            again = any(r.outcome is raised.outcome and r.launch == raised.launch for _, r in frame.raises[before:])
            if not again:
                self._swallow(raised)
            elif after or _exits(frame) > left:
                self._outlives(raised)
            return after
        frame.raises.append((state, raised))
        return []

    def _catches(self, handler: ir.Handler, raised: Raised, state: State, frame: Frame) -> bool:
        if handler.type is None:
            return True
        names = {"Exception", "BaseException", *raised.names}
        kinds = handler.type.items if isinstance(handler.type, ir.Display) else (handler.type,)
        return any(_last_name(kind) in names for kind in kinds)

    def _finally(self, final: tuple[ir.Stmt, ...], states: list[State], frame: Frame) -> list[State]:
        leaving = frame.returns
        frame.returns = []
        for current, value in leaving:
            for after in self.block(final, [current], frame):
                frame.returns.append((after, value))
        return self.block(final, states, frame)

    def _with(self, node: ir.With, state: State, frame: Frame) -> list[State]:
        return self._with_items(node, 0, state, frame)

    def _with_items(self, node: ir.With, position: int, state: State, frame: Frame) -> list[State]:
        """The managers from ``position`` on, with the body inside."""
        if position == len(node.items):
            return self.block(node.body, [state], frame)
        expr = node.items[position][0]
        result: list[State] = []
        for current, manager in self.eval(expr, state, frame):
            site = Site(frame.module, expr.ordinal)
            atom = only(manager)
            found = current.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(found, Generator):

                def body(inside: State, value: Value) -> list[State]:
                    return self._with_body(node, position, inside, value, frame)

                result.extend(s for s, _ in self.consume(atom, found, current, frame, body))
                continue
            if isinstance(found, Thing) and SUPPRESSED in found.fields:
                result.extend(self._suppressing(node, position, found, current, frame))
                continue
            returned, raised = len(frame.returns), len(frame.raises)
            inner = [
                s
                for after, value in self.enter(manager, current, frame, site)
                for s in self._with_body(node, position, after, value, frame)
            ]
            if self._may_swallow(found, current):
                for _, exception in frame.raises[raised:]:
                    self._outlives(exception)
            result.extend(s for c in merge(inner) for s in self.leave(manager, c, frame, site))
            for i in range(returned, len(frame.returns)):
                after, value = frame.returns[i]
                left = self.leave(manager, after, frame, site)
                if left:
                    frame.returns[i] = (left[0], value)
        return merge(result)

    def _suppressing(self, node: ir.With, position: int, manager: Thing, state: State, frame: Frame) -> list[State]:
        """The body of a ``with`` statement from which some exceptions do not come out."""
        kinds = {constant(kind) for kind in self.exact_items(manager.fields[SUPPRESSED], state) or ()}
        outer, guarded = frame.raises, frame.guards_import
        frame.raises = []
        frame.guards_import = guarded or not _IMPORT_ERRORS.isdisjoint(str(kind) for kind in kinds)
        frame.tries += 1
        after = self._with_body(node, position, state, NONE, frame)
        frame.tries -= 1
        frame.guards_import = guarded
        raised, frame.raises = frame.raises, outer
        for current, exception in _joined_raises(raised):
            if kinds.isdisjoint({"Exception", "BaseException", *exception.names}):
                frame.raises.append((current, exception))
                continue
            self._swallow(exception)
            after.append(current)
        return after

    def _swallow(self, raised: Raised) -> None:
        self._outlives(raised)
        if raised.outcome is not None and not raised.harmless:
            self.emit(replace(raised.outcome, caught=True))

    def _may_swallow(self, manager: Object | None, state: State) -> bool:
        """Whether a manager of the program's own may keep exceptions from coming out of its body."""
        leave = self.user_method(manager, "__exit__", state) if isinstance(manager, Instance) else None
        found = state.get(leave) if isinstance(leave, Ref) else None
        return isinstance(found, Closure) and any(map(_gives, found.function.body))

    def _outlives(self, raised: Raised) -> None:
        """A failure of a worker goes no further than here."""
        if raised.launch is not None:
            self.outlived.add(raised.launch)

    def _with_body(self, node: ir.With, position: int, state: State, value: Value, frame: Frame) -> list[State]:
        """What runs between a manager's entry and its exit."""
        target = node.items[position][1]
        ready = [state] if target is None else self.assign(target, value, state, frame, node.ordinal)
        return [s for current in merge(ready) for s in self._with_items(node, position + 1, current, frame)]

    def enter(self, manager: Value, state: State, frame: Frame, site: Site) -> Results:
        """``manager.__enter__()``; a manager nobody knows enters as itself."""
        return self._manage(manager, "__enter__", state, frame, site, manager)

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__(None, None, None)``."""
        return [s for s, _ in self._manage(manager, "__exit__", state, frame, site, NONE)]

    def _manage(self, manager: Value, method: str, state: State, frame: Frame, site: Site, default: Value) -> Results:
        result: Results = []
        for i, atom in enumerate(manager):
            current = state if i == len(manager) - 1 else state.clone()
            if isinstance(atom, Ref) and isinstance(found := current.get(atom), Instance):
                function = self.user_method(found, method, current)
                function = function or self.user_method(found, method.replace("__", "__a", 1), current)
                if function is not None:
                    args = [] if method == "__enter__" else [NONE, NONE, NONE]
                    result.extend(self.call_value((Bound(function, atom),), args, {}, current, frame, site))
                    continue
            path = self._method_path(atom, method, current)
            call = None if path is None else self._library_call(path, current, frame, site, [])
            if call is None:
                result.append((current, default if default is not manager else (atom,)))
                continue
            call.receiver = atom
            result.extend(self.library_call(call))
        return result or [(state, default)]

    def _function_def(self, node: ir.FunctionDef, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, closure in self._closure(node.function, state, frame):
            values: Results = [(current, (closure,))]
            for decorator in reversed(node.decorators):
                values = [r for s, v in values for r in self._decorate(decorator, v, s, frame)]
            for after, value in values:
                self.bind(node.function.name, value, after, frame)
                result.append(after)
        return result

    def _closure(self, function: ir.Function, state: State, frame: Frame) -> list[tuple[State, Ref]]:
        defaults: list[tuple[str, Value]] = []
        current = state
        for param in function.params:
            if param.default is not None:
                found = self.eval(param.default, current, frame)
                if found:
                    current, value = found[0]
                    defaults.append((param.name, value))
        owner = frame.scope if self._is_class_scope(frame.scope, current) else None
        scope = frame.scope
        made = Closure(function, scope, frame.module, tuple(defaults), owner=owner)
        return [(current, current.new(("def", frame.module, function.ordinal), made))]

    def _is_class_scope(self, scope: Ref, state: State) -> bool:
        found = state.get(scope)
        return isinstance(found, Scope) and found.kind == "class"

    def _decorate(self, decorator: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        if isinstance(decorator, ir.Attr) and decorator.attr in _ACCESSORS:
            changed = self._accessor(decorator, value, state, frame)
            if changed is not None:
                return [(state, changed)]
        result: Results = []
        for current, function in self.eval(decorator, state, frame):
            atom = only(function)
            kind = _METHOD_KINDS.get(atom.path) if isinstance(atom, Lib) else None
            closure = only(value)
            if kind is not None and isinstance(closure, Ref) and isinstance(found := current.get(closure), Closure):
                current.put(closure, replace(found, kind=kind))
                result.append((current, value))
            elif isinstance(atom, Ref) and isinstance(current.get(atom), Closure | Class):
                site = Site(frame.module, decorator.ordinal)
                made = self.call_value(function, [value], {}, current, frame, site)
                result.extend((s, v if not all(isinstance(a, Unknown) for a in v) else value) for s, v in made)
            elif isinstance(atom, Partial) or self._decorates(atom):
                site = Site(frame.module, decorator.ordinal)
                result.extend(self.call_value(function, [value], {}, current, frame, site))
            else:
                result.append((current, value))
        return result

    def _accessor(self, decorator: ir.Attr, value: Value, state: State, frame: Frame) -> Value | None:
        """``@name.setter``: the property that also sets; None where the name is no property."""
        found = self.eval(decorator.value, state, frame)
        base, function = only(found[0][1]) if len(found) == 1 else None, only(value)
        prop = state.get(base) if isinstance(base, Ref) else None
        if not isinstance(prop, Closure) or prop.kind != "property" or not isinstance(function, Ref):
            return None
        if decorator.attr != "setter":
            return (base,) if base is not None else None
        site = ("setter", frame.module, decorator.ordinal)
        return (state.new(site, replace(prop, setter=function)),)

    def _decorates(self, atom: Atom | None) -> bool:
        """Whether a library function means something as a decorator."""
        match atom:
            case Lib(path=path) | Bound(function=Lib(path=path)):
                return self.library.decorates(path)
        return False

    def _class_def(self, node: ir.ClassDef, state: State, frame: Frame) -> list[State]:
        site = Site(frame.module, node.ordinal)
        bases: list[Value] = []
        states = [state]
        for arg in node.bases:
            if arg.keyword is not None or arg.star:
                continue
            found = self.eval(arg.value, states[0], frame)
            if found:
                states = [found[0][0]]
                bases.append(found[0][1])
        current = states[0]
        scope = current.new(("class", frame.module, node.ordinal), Scope({}, frame.scope, frame.module, "class"))
        inner = Frame(scope, frame.module, raises=frame.raises, tries=frame.tries)
        after = self.block(node.body, [current], inner)
        result: list[State] = []
        is_dataclass = any(self._makes_fields(d, current, frame) for d in node.decorators)
        is_dataclass = is_dataclass or self._derives_from_record(bases, current)
        for last in after:
            fields = tuple(self._fields(node.body, scope, last)) if is_dataclass else ()
            meta = self._metaclass(node, last, frame)
            made = Class(
                node.name, node.qualname, frame.module, tuple(bases), scope, site, fields, is_dataclass, meta=meta
            )
            ref = last.new(("classobj", frame.module, node.ordinal), made)
            self._own_methods(scope, ref, last)
            told = [s for c in self._announce(node, ref, last, frame, site) for s in self._form(ref, c, frame, site)]
            libraries = [entry for entry in self.mro(ref, last) if isinstance(entry, str)]
            enums.give_members(ref, _assigned(node.body), libraries, self.library, last)
            values: Results = [(s, (ref,)) for s in told]
            for decorator in reversed(node.decorators):
                if _last_name(decorator) not in _DATACLASS:
                    values = [r for s, v in values for r in self._decorate(decorator, v, s, frame)]
            for final, value in values:
                self.bind(node.name, value, final, frame)
                result.append(final)
        return result

    def _makes_fields(self, decorator: ir.Expr, state: State, frame: Frame) -> bool:
        """Whether a decorator is dataclasses.dataclass or a kin; one that nobody knows is told by its spelling."""
        callee = decorator.func if isinstance(decorator, ir.Call) else decorator
        if isinstance(callee, ir.Name | ir.Attr):
            for _, value in self.eval(callee, state, frame):
                atom = only(value)
                if isinstance(atom, Lib):
                    return atom.path.rpartition(".")[2] in _DATACLASS
        return _last_name(callee) in _DATACLASS

    def _derives_from_record(self, bases: Iterable[Value], state: State) -> bool:
        """Whether a class gets its ``__init__`` from its annotations because of a base (NamedTuple, BaseModel)."""
        for atom in (a for base in bases for a in base):
            entries = self.mro(atom, state) if isinstance(atom, Ref) else (atom.path,) if isinstance(atom, Lib) else ()
            if any(isinstance(e, str) and self.library.is_a(e, "cudalint.record") for e in entries):
                return True
        return False

    def _announce(self, node: ir.ClassDef, cls: Ref, state: State, frame: Frame, site: Site) -> list[State]:
        """A base that wants to know of its subclasses is told of a new one."""
        told = self._class_attribute(cls, "__init_subclass__", state, after=cls)
        if told is None:
            return [state]
        named = [a for a in node.bases if a.keyword is not None and a.keyword != _METACLASS]
        result: list[State] = []
        for current, values in self.eval_all([a.value for a in named], state, frame):
            kwargs = {a.keyword: v for a, v in zip(named, values, strict=True) if a.keyword is not None}
            result.extend(s for s, _ in self.call_value(told, [(cls,)], kwargs, current, frame, site))
        return result

    def _metaclass(self, node: ir.ClassDef, state: State, frame: Frame) -> Value:
        given = next((a.value for a in node.bases if a.keyword == _METACLASS), None)
        found = [] if given is None else self.eval(given, state, frame)
        return found[0][1] if found else ()

    def _kind_of(self, cls: Ref, state: State) -> Ref | None:
        """The metaclass of a class, where a user wrote one."""
        metas = [entry.meta for entry in self.mro(cls, state) if isinstance(entry, Class) and entry.meta]
        atom = only(metas[0]) if metas else None
        return atom if isinstance(atom, Ref) and isinstance(state.get(atom), Class) else None

    def _form(self, cls: Ref, state: State, frame: Frame, site: Site) -> list[State]:
        """A new class goes through the ``__new__`` and ``__init__`` of its metaclass."""
        meta, found = self._kind_of(cls, state), state.get(cls)
        if meta is None or not isinstance(found, Class):
            return [state]
        scope = state.get(found.scope)
        names: dict[Hashable, Value] = dict(scope.variables.items()) if isinstance(scope, Scope) else {}
        bases: Value = (state.new(("bases", site), Sequence("tuple", found.bases)),)
        body: Value = (state.new(("namespace", site), Mapping_(names)),)
        states = [state]
        self._making.append(cls)
        for hook, first in (("__new__", meta), ("__init__", cls)):
            function = self._class_attribute(meta, hook, state)
            if function is not None:
                args: list[Value] = [(first,), const(found.name), bases, body]
                states = [s for c in states for s, _ in self.call_value(function, args, {}, c, frame, site)]
        self._making.pop()
        return states

    def _fields(self, body: tuple[ir.Stmt, ...], scope: Ref, state: State) -> Iterable[tuple[str, Value | None]]:
        found = state.get(scope)
        variables = found.variables if isinstance(found, Scope) else {}
        for statement in body:
            match statement:
                case ir.Declare(target=ir.Name(id=name)):
                    yield name, None
                case ir.Assign(targets=(ir.Name(id=name),)):
                    yield name, variables.get(name)

    def _own_methods(self, scope: Ref, owner: Ref, state: State) -> None:
        found = state.get(scope)
        if not isinstance(found, Scope):
            return
        for value in found.variables.values():
            for atom in value:
                if isinstance(atom, Ref) and isinstance(method := state.get(atom), Closure):
                    state.put(atom, replace(method, owner=owner))
                    setter = None if method.setter is None else state.get(method.setter)
                    if method.setter is not None and isinstance(setter, Closure):
                        state.put(method.setter, replace(setter, owner=owner))

    def _import(self, node: ir.Import, state: State, frame: Frame) -> list[State]:
        states = [state]
        for dotted, alias in node.names:
            following: list[State] = []
            for current in states:
                following.extend(self._import_one(dotted, alias, current, frame, node.ordinal))
            states = following
        return states

    def _import_one(self, dotted: str, alias: str | None, state: State, frame: Frame, ordinal: int) -> list[State]:
        home = self.program.resolve(frame.module, dotted, 0)
        if home is None:
            self._may_be_missing(dotted, state, frame)
            states = self._library_import(dotted, state, frame, ordinal)
            value: Value = (Lib(self.library.canonical(dotted)),) if alias else (Lib(dotted.split(".")[0]),)
            for current in states:
                self.bind(alias or dotted.split(".")[0], value, current, frame)
            return states
        if alias is not None or "." not in dotted:
            states = self.act(home, state, frame, ordinal)
            for current in states:
                self.bind(alias or dotted, (Deferred(home, None, Site(frame.module, ordinal)),), current, frame)
            return states
        site = Site(frame.module, ordinal)
        result: list[State] = []
        for current, module in self.load(home, state, frame, site):
            if alias is None and "." in dotted:
                root = self.program.resolve(frame.module, dotted.split(".")[0], 0)
                for after, top in self.load(root, current, frame, site) if root else [(current, module)]:
                    self.bind(dotted.split(".")[0], top, after, frame)
                    result.append(after)
                continue
            self.bind(alias or dotted, module, current, frame)
            result.append(current)
        return result

    def _may_be_missing(self, dotted: str, state: State, frame: Frame) -> None:
        """A path on which an import that the program guards fails: nobody knows whether that package is installed."""
        first = dotted.partition(".")[0]
        if not frame.guards_import or self.library.knows(first) or first in sys.stdlib_module_names:
            return
        sym = ("installed", first or frame.module)
        if state.fact(sym) is not None:
            return
        without = state.clone()
        without.assume(sym, False)
        state.assume(sym, True)
        frame.raises.append((without, Raised(None, ("ImportError", "ModuleNotFoundError"))))

    def imported(self, dotted: str, state: State, frame: Frame, site: Site) -> list[State]:
        """What importing a library does."""
        return self._library_import(dotted, state, frame, site.ordinal)

    def _library_import(self, dotted: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Importing some libraries does something; each prefix of the name is imported."""
        parts = dotted.split(".")
        states = [state]
        for i in range(1, len(parts) + 1):
            path = f"import {'.'.join(parts[:i])}"
            site = Site(frame.module, ordinal)
            following: list[State] = []
            for current in states:
                call = self._library_call(path, current, frame, site, [])
                following.extend([current] if call is None else [s for s, _ in self.library_call(call)])
            states = following
        return states

    def _import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        home = self.program.resolve(frame.module, node.module, node.level)
        if home is None:
            self._may_be_missing(node.module, state, frame)
            return self._library_import_from(node, state, frame)
        if node.names is not None:
            return self._defer(node, node.names, home, state, frame)
        result: list[State] = []
        for current, module in self.load(home, state, frame, Site(frame.module, node.ordinal)):
            self._star(module, current, frame)
            result.append(current)
        return result

    def _defer(
        self,
        node: ir.ImportFrom,
        names: tuple[tuple[str, str | None], ...],
        home: str,
        state: State,
        frame: Frame,
    ) -> list[State]:
        """Names of a module whose import does nothing by itself: it runs when one of them is used."""
        states = self.act(home, state, frame, node.ordinal)
        for name, alias in names:
            child = self.program.child(home, name)
            if child is not None:
                states = [s for c in states for s in self.act(child, c, frame, node.ordinal)]
            for current in states:
                self.bind(alias or name, (Deferred(home, name, Site(frame.module, node.ordinal)),), current, frame)
        return states

    def act(self, home: str, state: State, frame: Frame, ordinal: int) -> list[State]:
        """Run the modules that an import reaches and whose top level matters; the others wait."""
        states, site = [state], Site(frame.module, ordinal)
        for name in self.program.acting(home):
            states = [s for c in states for s, _ in self._load_one(name, c, frame, site, through=home)]
        return states

    def _measured(self, module: str, name: str) -> Lib | None:
        """What a model says of a name counts, also where the library itself is the project that is read."""
        path = self.library.canonical(f"{module}.{name}")
        return Lib(path) if self.library.function(path) is not None else None

    def force(self, value: Value, state: State, frame: Frame, depth: int = 0) -> Results:
        """What a deferred import stands for: its module runs now, in this process."""
        if len(value) > 1 and _deferred(value):
            parts = [(state if i == 0 else state.clone(), (a,)) for i, a in enumerate(value)]
            return [r for current, part in parts for r in self.force(part, current, frame, depth)]
        atom = only(value)
        if not isinstance(atom, Deferred):
            return [(state, value)]
        measured = None if atom.name is None else self._measured(atom.module, atom.name)
        if measured is not None:
            return [(state, (measured,))]
        if depth > REEXPORTS:
            return [(state, unknown("import", atom.module, atom.name))]
        child = None if atom.name is None else self.program.child(atom.module, atom.name)
        if atom.name is not None and child is not None:
            loaded = self._load_one(atom.module, state, frame, atom.site)
            result: Results = []
            for current, module in loaded:
                found = self._member(module, atom.name, current)
                # A package may import its own submodules by its own name: that is what they are.
                if found is not None and atom not in found:
                    result.extend(self.force(found, current, frame, depth + 1))
                else:
                    result.extend(self.load(child, current, frame, atom.site))
            return result
        result = []
        for current, module in self.load(atom.module, state, frame, atom.site):
            if atom.name is None:
                result.append((current, module))
                continue
            found = self._member(module, atom.name, current)
            if found is not None:
                result.extend(self.force(found, current, frame, depth + 1))
                continue
            given = self._from_getattr(module, atom.name, current, atom.site)
            result.extend([(current, unknown("import", atom.module, atom.name))] if given is None else given)
        return result

    def _member(self, module: Value, name: str, state: State) -> Value | None:
        atom = only(module)
        found = state.get(atom) if isinstance(atom, Ref) else None
        return found.variables.get(name) if isinstance(found, Scope) else None

    def _from_getattr(self, module: Value, name: str, state: State, site: Site) -> Results | None:
        """What a module's own ``__getattr__`` gives for a name; None where it has none."""
        atom = only(module)
        found = state.get(atom) if isinstance(atom, Ref) else None
        getter = found.variables.get("__getattr__") if isinstance(found, Scope) else None
        if getter is None or not isinstance(atom, Ref) or not isinstance(found, Scope):
            return None
        frame = Frame(atom, found.module)
        return self.call_value(getter, [const(name)], {}, state, frame, site)

    def _library_import_from(self, node: ir.ImportFrom, state: State, frame: Frame) -> list[State]:
        if node.level:
            for name, alias in node.names or ():
                self.bind(alias or name, unknown("import", node.module, name), state, frame)
            return [state]
        states = self._library_import(node.module, state, frame, node.ordinal)
        for name, alias in node.names or ():
            path = f"{node.module}.{name}"
            if self.library.is_imported_module(path):
                states = [s for c in states for s in self._library_import(path, c, frame, node.ordinal)]
            full = self.library.canonical(path)
            constants = self.library.constants
            for current in states:
                self.bind(alias or name, const(constants[full]) if full in constants else (Lib(full),), current, frame)
        if node.names is None:
            for current in states:
                for name in self.library.exports(node.module):
                    self.bind(name, (Lib(self.library.canonical(f"{node.module}.{name}")),), current, frame)
        return states

    def _star(self, module: Value, state: State, frame: Frame) -> None:
        """``from module import *``: what ``__all__`` names where it is known, else all public names."""
        atom = only(module)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Scope) or not isinstance(atom, Ref):
            return
        forced = self.force(found.variables.get("__all__", ()), state, frame)
        listed = self.exact_items(forced[0][1], state) if len(forced) == 1 else None
        given = None if listed is None else {constant(item) for item in listed}
        for name, value in found.variables.items():
            if name in given if given is not None else not name.startswith("_"):
                self.bind(name, value, state, frame)

    def load(self, name: str, state: State, frame: Frame, site: Site) -> Results:
        """Import a module of the project: its packages first, its top level once per process."""
        states = [state]
        for package in self.program.parents(name):
            if self.program.module(package) is not None:
                states = [s for c in states for s, _ in self._load_one(package, c, frame, site)]
        return [r for c in states for r in self._load_one(name, c, frame, site)]

    def _load_one(self, name: str, state: State, frame: Frame, site: Site, through: str = "") -> Results:
        ref = Ref(("module", name))
        if state.get(ref) is not None:
            return [(state, (ref,))]
        module = self.program.module(name)
        if module is None:
            return [(state, unknown("module", name))]
        before = state.stack
        direct = not through or f"{through}.".startswith(f"{name}.")
        state.stack = self.chain(state, site, f"imports {name}" if direct else f"imports {through}, and that {name}")
        self._importing += 1
        states = self.run_module(module, name, state, frame)
        self._importing -= 1
        for after in states:
            after.stack = before
        return [(after, (ref,)) for after in states]

    def run_module(self, module: ir.Module, dunder_name: str, state: State, frame: Frame | None = None) -> list[State]:
        """Run the top level of a module in this process."""
        ref = Ref(("module", module.name))
        variables: dict[str, Value] = {name: unknown(name, module.name) for name in _OF_EVERY_MODULE}
        variables["__name__"] = const(dunder_name)
        variables["__package__"] = const(self.program.package(module.name) or "")
        state.put(ref, Scope(variables, None, module.name, "module"))
        inner = Frame(ref, module.name)
        if frame is not None:
            inner.raises = frame.raises
            inner.tries = frame.tries
        if len(self._active) > MOST_DEPTH:
            self.cut = self.cut or "imports nested too deeply"
            return [state]
        journal = collecting.begin(state)
        self._active.append(("", -1))
        states = self.block(module.body, [state], inner) if self.watched else self._top_level(module, state, inner)
        self._active.pop()
        collecting.end_import(states, journal, self.puts)
        if len(states) == 1:
            states[0].settle()
        if frame is None:
            self.uncaught = inner.raises
        return states

    def _top_level(self, module: ir.Module, state: State, frame: Frame) -> list[State]:
        """The statements of a module; what only binds names is bound at once."""
        known = self.program.top_levels
        if module.name not in known:
            known[module.name] = top_level(module, self.program, self.library)
        states = [state]
        for part in known[module.name]:
            if isinstance(part, Bindings):
                self._steps += 1 + part.statements // 10
                for current in states:
                    self._bind_all(part, current, frame)
            else:
                states = self.block((part,), states, frame)
                if self._importing and len(states) > 1:
                    states = merge_imported(states)
        return states

    def _bind_all(self, bindings: Bindings, state: State, frame: Frame) -> None:
        found = state.get(frame.scope)
        if not isinstance(found, Scope):
            return
        variables = dict(found.variables)
        for name, given in bindings.names:
            if isinstance(given, Closure):
                variables[name] = (state.new(("def", frame.module, given.function.ordinal), given),)
            else:
                variables[name] = given
        state.put(frame.scope, replace(found, variables=variables))

    def _scoping(self, node: ir.Scoping, state: State, frame: Frame) -> list[State]:
        found = state.get(frame.scope)
        if isinstance(found, Scope) and found.kind != "module":
            outside = {**found.outside, **dict.fromkeys(node.names, node.kind)}
            state.put(frame.scope, replace(found, outside=outside, variables=dict(found.variables)))
        return [state]

    def _delete(self, node: ir.Delete, state: State, frame: Frame) -> list[State]:
        states = [state]
        for target in node.targets:
            match target:
                case ir.Name(id=name):
                    for current in states:
                        self.bind(name, unknown("deleted", frame.module, node.ordinal), current, frame)
                case ir.Sub(value=base, index=index):
                    site = Site(frame.module, node.ordinal)
                    states = [
                        s
                        for c in states
                        for after, owner in self.eval(base, c, frame)
                        for last, key in self.eval(index, after, frame)
                        for s in self._delete_item(owner, key, last, frame, site)
                    ]
        return states

    def _delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        for atom in owner:
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Mapping_):
                self.put_mapping(atom, operators.without_key(found, as_key(key, state)), state)
                continue
            path = self._method_path(atom, "__delitem__", state)
            call = None if path is None else self._library_call(path, state, frame, site, [key])
            if call is not None:
                return [s for s, _ in self.library_call(call)]
        return [state]

    def _raise(self, node: ir.Raise, state: State, frame: Frame) -> list[State]:
        if node.exc is None and frame.handling:
            frame.raises.append((state, frame.handling[-1]))
            return []
        name = "Exception" if node.exc is None else _raised_name(node.exc)
        outcome, launch = None, None
        if frame.handling and node.exc is not None:
            outcome, launch = frame.handling[-1].outcome, frame.handling[-1].launch
        if outcome is not None or launch is not None or frame.tries:
            frame.raises.append((state, Raised(outcome, (name,), launch=launch)))
        return []

    def _assert(self, node: ir.Assert, state: State, frame: Frame) -> list[State]:
        yes, _ = self.branch(node.test, state, frame)
        return yes

    def _match(self, node: ir.Match, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, subject in self.eval(node.subject, state, frame):
            result.extend(self._cases(node.cases, subject, current, frame))
        return result

    def _cases(self, cases: tuple[ir.Case, ...], subject: Value, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        remaining: list[State] = [state]
        for case in cases:
            following: list[State] = []
            for current in remaining:
                verdict: bool | None = None
                if case.irrefutable:
                    verdict = True
                elif case.value is not None and case.guard is None:
                    found = self.eval(case.value, current, frame)
                    if found:
                        equal = constant(operators.compare("==", subject, found[0][1], ("case",)))
                        verdict = equal if isinstance(equal, bool) else None
                if verdict is not False:
                    taken = current if verdict else current.clone()
                    for name in case.binds:
                        self.bind(name, subject, taken, frame)
                    result.extend(self.block(case.body, [taken], frame))
                if verdict is not True:
                    following.append(current)
            remaining = following
        return merge([*result, *remaining])

    # -- expressions -----------------------------------------------------------------------------

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression, with the states in which it has them."""
        if isinstance(node, ir.Call | ir.Attr | ir.Sub):
            return self._spine(node, state, frame)
        return _EXPRESSIONS[type(node)](self, node, state, frame)

    def eval_all(self, nodes: Iterable[ir.Expr], state: State, frame: Frame) -> list[tuple[State, list[Value]]]:
        """Several expressions, left to right."""
        results: list[tuple[State, list[Value]]] = [(state, [])]
        for node in nodes:
            following: list[tuple[State, list[Value]]] = []
            for current, values in results:
                for after, value in self.eval(node, current, frame):
                    following.append((after, [*values, value]))
            results = following if len(following) <= MOST_RESULTS else _merge_rows(following)
        return results

    def _spine(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """``a.b(c)[d]``: from the root outwards, in a loop."""
        links: list[ir.Call | ir.Attr | ir.Sub] = []
        while isinstance(node, ir.Call | ir.Attr | ir.Sub):
            links.append(node)
            node = node.func if isinstance(node, ir.Call) else node.value
        results = self.eval(node, state, frame)
        for link in reversed(links):
            results = [r for s, v in results for r in self._link(link, v, s, frame)]
            if len(results) > 4:
                results = _merge_results(results)
        return results

    def _link(self, link: ir.Expr, value: Value, state: State, frame: Frame) -> Results:
        site = Site(frame.module, link.ordinal)
        match link:
            case ir.Attr(attr=attr):
                return self.attribute(value, attr, state, frame, site)
            case ir.Sub(index=index):
                return [
                    r
                    for after, key in self.eval(index, state, frame)
                    for r in self.item(value, key, after, frame, site)
                ]
            case ir.Call():
                return self._apply(link, value, state, frame, False)
        return [(state, value)]

    def _call(self, node: ir.Call, state: State, frame: Frame, statement: bool) -> Results:
        return [r for s, f in self.eval(node.func, state, frame) for r in self._apply(node, f, s, frame, statement)]

    def _apply(self, node: ir.Call, function: Value, state: State, frame: Frame, statement: bool) -> Results:
        result: Results = []
        site = Site(frame.module, node.ordinal)
        if any(isinstance(a.value, ir.Comprehension) and a.value.kind == "generator" for a in node.args):
            self._begin_lazy(function, state)
        for current, values in self.eval_all([a.value for a in node.args], state, frame):
            args, kwargs, is_open = self._arguments(node, values, current)
            result.extend(self.call_value(function, args, kwargs, current, frame, site, is_open, statement))
        return result

    def _begin_lazy(self, function: Value, state: State) -> None:
        """A call that consumes a generator expression itself began before the elements are made: keep how it was."""
        for atom in function:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if not isinstance(atom, Ref) or not isinstance(found, Thing) or BEGAN in found.fields:
                continue
            spec = self.library.function(f"{found.type}.__call__")
            if spec is not None and spec.get("lazy") is True:
                began: Value = (Snapshot(state.clone()),)
                state.put(atom, replace(found, fields={**found.fields, BEGAN: began}))

    def _arguments(
        self, node: ir.Call, values: list[Value], state: State
    ) -> tuple[list[Value], dict[str, Value], bool]:
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        is_open = False
        for arg, value in zip(node.args, values, strict=True):
            if arg.star == "*":
                exact = self.exact_items(value, state)
                is_open = is_open or exact is None
                args.extend(exact or [])
            elif arg.star == "**":
                found = state.get(atom) if isinstance(atom := only(value), Ref) else None
                if isinstance(found, Mapping_):
                    kwargs.update((k, v) for k, v in found.items.items() if isinstance(k, str))
                    is_open = is_open or not found.exact
                else:
                    is_open = True
            elif arg.keyword is not None:
                kwargs[arg.keyword] = value
            else:
                args.append(value)
        return args, kwargs, is_open

    def call_value(
        self,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
        statement: bool = False,
    ) -> Results:
        """Call each alternative of a value."""
        result: Results = []
        for i, atom in enumerate(function):
            current = state if i == len(function) - 1 else state.clone()
            result.extend(self._call_atom(atom, list(args), dict(kwargs), current, frame, site, is_open, statement))
        return result

    def _call_atom(
        self,
        atom: Atom,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
        statement: bool,
    ) -> Results:
        match atom:
            case Lib(path=path):
                call = self._library_call(path, state, frame, site, args, kwargs, is_open, statement)
                if call is None:
                    return self.behaviours.unmodelled(self, path, args, kwargs, state, frame, site)
                return self.library_call(call)
            case Bound(function=Lib(path=path), receiver=receiver):
                call = self._library_call(path, state, frame, site, args, kwargs, is_open, statement)
                if call is None:
                    return self.behaviours.unmodelled_method(self, path, receiver, args, kwargs, state, frame, site)
                call.receiver = receiver
                return self.library_call(call)
            case Bound(function=function, receiver=receiver):
                return self._call_atom(function, [(receiver,), *args], kwargs, state, frame, site, is_open, statement)
            case Partial(function=function, args=first, kwargs=given):
                merged = {**dict(given), **kwargs}
                return self.call_value(function, [*first, *args], merged, state, frame, site, is_open, statement)
            case Ref():
                return self._call_ref(atom, args, kwargs, state, frame, site, is_open)
        return [(state, unknown("call", site, state.process.identity, len(state.facts)))]

    def _call_ref(
        self,
        ref: Ref,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
    ) -> Results:
        found = state.get(ref)
        match found:
            case Closure():
                return self.call_closure(ref, found, args, kwargs, state, frame, site, is_open)
            case Class():
                return self.instantiate(ref, found, args, kwargs, state, frame, site, is_open)
            case Instance():
                method = self.user_method(found, "__call__", state)
                if method is not None:
                    return self._call_atom(method, [(ref,), *args], kwargs, state, frame, site, is_open, False)
                base = self.library_base(found.cls, state)
                path = None if base is None else f"{base}.__call__"
            case Thing(type=kind):
                path = f"{kind}.__call__"
            case _:
                path = None
        call = None if path is None else self._library_call(path, state, frame, site, args, kwargs, is_open)
        if call is None:
            return [(state, unknown("call", site, state.process.identity))]
        call.receiver = ref
        return self.library_call(call)

    def _library_call(
        self,
        path: str,
        state: State,
        frame: Frame,
        site: Site,
        args: list[Value],
        kwargs: dict[str, Value] | None = None,
        is_open: bool = False,
        statement: bool = False,
    ) -> Call | None:
        spec = self.library.function(path)
        if spec is None:
            return None
        return Call(state, frame, site, path, spec, args, kwargs or {}, None, is_open, statement)

    def library_call(self, call: Call) -> Results:
        """Do what the model of a function says."""
        return self.behaviours.perform(self, call)

    def call_closure(
        self,
        ref: Ref,
        closure: Closure,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
    ) -> Results:
        """Call a user function."""
        if closure.compiled:
            return self._call_compiled(ref, closure, args, kwargs, state, frame, site, is_open)
        if closure.cache is not None:
            return self._call_cached(ref, closure, args, kwargs, state, frame, site, is_open)
        function = closure.function
        self.entered.add(Site(closure.module, function.ordinal))
        if self._active.count((closure.module, function.ordinal)) >= RECURSION:
            self.passes_over(site, state)
            return [(state, unknown("recursion", site))]
        if len(self._active) >= MOST_DEPTH:
            self.cut = self.cut or "calls nested too deeply"
            return [(state, unknown("depth", site))]
        variables = self.bind_arguments(closure, args, kwargs, state, site, is_open)
        again = (Site(closure.module, function.ordinal), _known_of(variables))
        if again[1] is not None and again in self._given:
            # It calls itself with another thing of which as little is known: what that does, this call does too.
            self.passes_over(site, state)
            return [(state, unknown("recursion", site))]
        scope = state.new(
            ("frame", closure.module, function.ordinal), Scope(variables, closure.scope, closure.module, "function")
        )
        if function.is_generator:
            made = Generator(ref, scope, site)
            return [(state, (state.new(("generator", site), made),))]
        label = function.name if not function.is_lambda else "a lambda"
        self._given.append(again)
        results = self._run_body(closure, scope, args, state, frame, site, f"calls {label}()")
        self._given.pop()
        return results

    def _call_cached(
        self,
        ref: Ref,
        closure: Closure,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
    ) -> Results:
        """Call a function that remembers: what it gave for the same arguments in this process, it gives again."""
        memory = closure.cache
        held = state.get(memory) if memory is not None else None
        key = (tuple(args), tuple(sorted(kwargs.items(), key=lambda kv: kv[0])))
        if isinstance(held, Cache) and key in held.results:
            return [(state, held.results[key])]
        plain = replace(closure, cache=None)
        results = self.call_closure(ref, plain, args, kwargs, state, frame, site, is_open)
        for after, value in results:
            now = after.get(memory) if memory is not None else None
            if memory is not None and isinstance(now, Cache):
                after.put(memory, Cache({**now.results, key: value}))
        return results

    def _call_compiled(
        self,
        ref: Ref,
        closure: Closure,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
    ) -> Results:
        """Call what a framework made of a user function: it runs something of its own, and the function to trace it."""
        call = self._library_call(closure.compiled, state, frame, site, [])
        plain = replace(closure, compiled="")
        states = [state] if call is None else [after for after, _ in self.library_call(call)]
        results: Results = []
        for after in states:
            results.extend(self.call_closure(ref, plain, list(args), dict(kwargs), after, frame, site, is_open))
        return results

    def _run_body(
        self,
        closure: Closure,
        scope: Ref,
        args: list[Value],
        state: State,
        frame: Frame,
        site: Site,
        message: str,
        around: Around | None = None,
    ) -> Results:
        function = closure.function
        before = state.stack
        state.stack = self.chain(state, site, message)
        receiver = args[0][0] if args and args[0] and closure.owner is not None else None
        inner = Frame(scope, closure.module, function, closure.owner, receiver, raises=frame.raises, tries=frame.tries)
        inner.around = around
        inner.outside = before
        raised = len(frame.raises)
        journal = collecting.begin(state)
        self._active.append((closure.module, function.ordinal))
        states = self.block(function.body, [state], inner)
        self._active.pop()
        results: Results = [*inner.returns, *((s, NONE) for s in states)]
        for after, _ in results:
            after.stack = before
        if inner.yields or function.is_generator:
            element = union(inner.yields)
            results = [(s, element) for s, _ in results]
        # What runs where a context manager yields belongs to its caller, and so do the values it is about to return.
        collecting.end(results, frame.raises[raised:], journal, self.puts, whole=around is None)
        return results if function.is_generator or inner.yields else _merge_results(results)

    def drained(self, results: Results, frame: Frame) -> Results:
        """Results whose generators have run: somebody will iterate what an entry gives back."""
        done: Results = []
        for state, value in results:
            atom = only(value)
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(found, Generator):
                done.extend(self.consume(atom, found, state, frame))
            else:
                done.append((state, value))
        return done

    def consume(
        self, ref: Ref, generator: Generator, state: State, frame: Frame, around: Around | None = None
    ) -> Results:
        """Run a generator at its first consumer; the value is what it yields.

        A context manager runs ``around`` where it yields: the body of the ``with`` statement.
        """
        closure = state.get(generator.closure)
        if not isinstance(closure, Closure):
            return [(state, unknown("generator", generator.site))]
        state.put(ref, Sequence("list", None, ()))
        found = state.get(generator.scope)
        args: list[Value] = []
        if isinstance(found, Scope) and closure.owner is not None and closure.function.params:
            args = [found.variables.get(closure.function.params[0].name, ())]
        name = closure.function.name
        message = f"runs the generator {name}()" if around is None else f"enters {name}()"
        results = self._run_body(closure, generator.scope, args, state, frame, generator.site, message, around)
        for after, element in results:
            after.put(ref, Sequence("list", None, element))
        return results

    def bind_arguments(
        self,
        closure: Closure,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        site: Site,
        is_open: bool,
    ) -> dict[str, Value]:
        """Parameters to values; what nothing is given for is its default, else unknown."""
        variables: dict[str, Value] = {}
        defaults = dict(closure.defaults)
        rest = list(args)
        named = dict(kwargs)
        for param in closure.function.params:
            if param.kind is ir.ParamKind.VAR_POSITIONAL:
                items = tuple(rest) if not is_open else None
                made = Sequence("tuple", items, union(rest))
                variables[param.name] = (state.new(("args", site, param.name), made),)
                rest = []
            elif param.kind is ir.ParamKind.VAR_KEYWORD:
                given: dict[Hashable, Value] = {}
                given.update(named)
                made_map = Mapping_(given, exact=not is_open)
                variables[param.name] = (state.new(("kwargs", site, param.name), made_map),)
            elif param.kind is ir.ParamKind.POSITIONAL and rest:
                variables[param.name] = rest.pop(0)
                named.pop(param.name, None)
            elif param.name in named:
                variables[param.name] = named.pop(param.name)
            elif param.name in defaults:
                variables[param.name] = defaults[param.name]
            else:
                variables[param.name] = unknown("param", closure.module, closure.function.ordinal, param.name)
        return variables

    def instantiate(
        self,
        ref: Ref,
        cls: Class,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
    ) -> Results:
        """Call a user class, which its metaclass may have a say in."""
        if cls.members:
            return [(state, enums.by_value(cls, args[0] if args else (), state) or unknown("member", site))]
        meta = self._kind_of(ref, state)
        caller = None if meta is None else self._class_attribute(meta, "__call__", state)
        if caller is not None:
            return self.call_value(caller, [(ref,), *args], kwargs, state, frame, site, is_open)
        return self.construct(ref, cls, args, kwargs, state, frame, site, is_open)

    def construct(
        self,
        ref: Ref,
        cls: Class,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool = False,
    ) -> Results:
        """``type.__call__``: a new instance, and its ``__init__``."""
        maker = self._class_attribute(ref, "__new__", state)
        if maker is not None and len(self._active) < MOST_DEPTH:
            return self._make_and_init(ref, maker, args, kwargs, state, frame, site, is_open)
        attributes: dict[str, Value] = {}
        fields = self.record_fields(ref, state)
        if fields:
            attributes = _record_attributes(fields, args, kwargs, site)
        origin = self.chain(state, site, f"makes a {cls.name}")
        instance = state.new(("new", site, cls.qualname), Instance(ref, attributes, site, origin))
        made = state.get(instance)
        assert isinstance(made, Instance)
        state = self._run_factories(instance, state, frame, site)
        init = self.user_method(made, "__init__", state)
        if init is not None:
            results = self._call_atom(init, [(instance,), *args], kwargs, state, frame, site, is_open, False)
            return [(s, (instance,)) for s, _ in results]
        after = self.user_method(made, "__post_init__", state) if fields else None
        if after is not None:
            results = self._call_atom(after, [(instance,)], {}, state, frame, site, False, False)
            return [(s, (instance,)) for s, _ in results]
        base = self.library_base(ref, state)
        call = (
            None if base is None else self._library_call(f"{base}.__init__", state, frame, site, args, kwargs, is_open)
        )
        if call is None:
            return [(state, (instance,))]
        call.receiver = instance
        return [(s, (instance,)) for s, _ in self.library_call(call)]

    def _make_and_init(
        self,
        ref: Ref,
        maker: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
        is_open: bool,
    ) -> Results:
        """A class with a ``__new__`` of its own: what that gives is the instance, a new one or one that was there."""
        results: Results = []
        for after, made in self.call_value(maker, [(ref,), *args], dict(kwargs), state, frame, site, is_open):
            atom = only(made)
            found = after.get(atom) if isinstance(atom, Ref) else None
            init = self.user_method(found, "__init__", after) if isinstance(found, Instance) else None
            if atom is None or init is None or not isinstance(found, Instance) or found.cls != ref:
                results.append((after, made))
                continue
            called = self._call_atom(init, [made, *args], dict(kwargs), after, frame, site, is_open, False)
            results.extend((s, made) for s, _ in called)
        return results

    def blank(self, cls: Ref, state: State, site: Site) -> Value:
        """``object.__new__(cls)``; of a metaclass, the class that is being made."""
        if self._making and cls == self._kind_of(self._making[-1], state):
            return (self._making[-1],)
        found = state.get(cls)
        if not isinstance(found, Class):
            return unknown("new", site)
        origin = self.chain(state, site, f"makes a {found.name}")
        return (state.new(("new", site, found.qualname), Instance(cls, {}, site, origin)),)

    def _run_factories(self, instance: Ref, state: State, frame: Frame, site: Site) -> State:
        """``field(default_factory=f)``: f runs for each instance."""
        found = state.get(instance)
        for name, value in found.attributes.items() if isinstance(found, Instance) else ():
            atom = only(value)
            if not isinstance(atom, Task) or atom.args:
                continue
            for after, made in self.call_value(atom.function, [], {}, state, frame, site)[:1]:
                state = after
                self._set_on_object(instance, name, made, state, weak=False)
        return state

    def record_fields(self, cls: Ref, state: State) -> list[tuple[str, Value | None]]:
        """The fields that the ``__init__`` of a dataclass takes, those of its bases first; empty where it has none."""
        fields: dict[str, Value | None] = {}
        for entry in reversed(self.mro(cls, state)):
            if isinstance(entry, Class) and entry.is_dataclass:
                fields.update(entry.fields)
        return list(fields.items())

    # -- objects ---------------------------------------------------------------------------------

    def mro(self, cls: Ref, state: State) -> Order:
        """A class and its bases, in the order in which Python looks at them; library bases by their dotted name."""
        return self.orders.of(cls, state)

    def library_base(self, cls: Ref, state: State) -> str | None:
        """The first library class that a user class derives from."""
        for entry in self.mro(cls, state):
            if isinstance(entry, str):
                return entry
        return None

    def user_method(self, instance: Instance, name: str, state: State) -> Atom | None:
        """A function that a user class in the order of resolution defines."""
        found = self._class_attribute(instance.cls, name, state)
        atom = None if found is None else only(found)
        return atom if isinstance(atom, Ref | Lib | Partial | Bound) else None

    def _class_attribute(self, cls: Ref, name: str, state: State, after: Ref | None = None) -> Value | None:
        order = self.mro(cls, state)
        for entry in order if after is None else _behind(order, after, state):
            scope = state.get(entry.scope) if isinstance(entry, Class) else None
            if isinstance(scope, Scope) and name in scope.variables:
                return scope.variables[name]
        return None

    def attribute(self, value: Value, name: str, state: State, frame: Frame, site: Site) -> Results:
        """``value.name``."""
        if len(value) == 1:
            return self._attribute_of(value[0], name, state, frame, site)
        results: Results = []
        for i, atom in enumerate(value):
            current = state if i == len(value) - 1 else state.clone()
            results.extend(self._attribute_of(atom, name, current, frame, site))
        return _merge_results(results)

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        match atom:
            case Lib(path=path):
                return self._library_attribute(path, name, state, frame, site)
            case Ref():
                return self._object_attribute(atom, name, state, frame, site)
            case Unknown(sym=sym):
                path = f"?.{name}"
                if self.library.function(path) is not None:
                    return [(state, (Bound(Lib(path), atom),))]
                return [(state, unknown(sym, ".", name))]
            case Dev():
                return [(state, self._device_attribute(atom, name))]
            case Tensor():
                return self.behaviours.tensor_attribute(self, atom, name, state, frame, site)
            case Super():
                return self._super_attribute(atom, name, state, frame, site)
            case Const(value=Member() as member):
                return self._member_attribute(atom, member, name, state, frame, site)
            case Const() if name == "value":  # of an enum's member, which is its constant here
                return [(state, (atom,))]
            case Const(value=str()):
                return [(state, (Bound(Lib(f"builtins.str.{name}"), atom),))]
            case Bound(function=Lib(path=path), receiver=receiver):
                return [(state, (Bound(Lib(f"{path}.{name}"), receiver),))]
        return [(state, unknown("attribute", atom, name))]

    def _device_attribute(self, device: Dev, name: str) -> Value:
        if name in ("startswith", "split"):
            # f"cuda:{rank}" is a device and still a string.
            return (Bound(Lib(f"builtins.str.{name}"), device),)
        if name == "type":
            return const(device.kind)
        if name == "index":
            if isinstance(device.index, Rank):
                return (device.index,)
            return const(device.index)
        return unknown("device", name)

    def _super_attribute(self, atom: Super, name: str, state: State, frame: Frame, site: Site) -> Results:
        """What the classes after one give an object, or a class whose method runs."""
        receiver = atom.receiver
        kind, is_class = self._kind_behind(atom, state)
        libraries: list[str] = []
        for entry in () if kind is None else _behind(self.mro(kind, state), atom.cls, state):
            if isinstance(entry, Class):
                scope = state.get(entry.scope)
                if isinstance(scope, Scope) and name in scope.variables:
                    return self._bind_super(scope.variables[name], name, receiver, kind, is_class, state, frame, site)
                continue
            libraries.append(f"{entry}.{name}")
            call = self._library_call(f"{entry}.{name}.__get__", state, frame, site, [])
            if call is not None:
                call.receiver = receiver
                return self.library_call(call)
            if self.library.function(libraries[-1]) is not None and name != "__new__":
                return [(state, (Bound(Lib(libraries[-1]), receiver),))]
        if name == "__new__":
            return [(state, (Lib("builtins.object.__new__"),))]
        if name == "__call__" and not is_class and isinstance(receiver, Ref) and isinstance(state.get(receiver), Class):
            return [(state, (Bound(Lib("builtins.type.__call__"), receiver),))]
        return [(state, (Bound(Lib(libraries[0]), receiver),) if libraries else unknown("super", name))]

    def _kind_behind(self, atom: Super, state: State) -> tuple[Ref | None, bool]:
        """The class in whose order ``super`` looks, and whether the receiver itself is that class."""
        receiver = atom.receiver
        if isinstance(receiver, Const) and isinstance(receiver.value, Member):
            return receiver.value.cls, False
        found = state.get(receiver) if isinstance(receiver, Ref) else None
        if isinstance(found, Instance):
            return found.cls, False
        if not isinstance(receiver, Ref) or not isinstance(found, Class):
            return None, False
        if any(_is_class(entry, atom.cls, state) for entry in self.mro(receiver, state)):
            return receiver, True
        return self._kind_of(receiver, state), False

    def _bind_super(
        self,
        value: Value,
        name: str,
        receiver: Atom,
        kind: Ref | None,
        is_class: bool,
        state: State,
        frame: Frame,
        site: Site,
    ) -> Results:
        if name == "__new__":
            return [(state, value)]
        if name in _OF_CLASSES and (atom := only(value)) is not None:
            return [(state, (Bound(atom, receiver),))]
        if is_class and isinstance(receiver, Ref):
            return [(state, self._bind_class_method(value, receiver, state))]
        return [(state, value)] if kind is None else self._bind_method(value, name, receiver, kind, state, frame, site)

    def _library_attribute(self, path: str, name: str, state: State, frame: Frame, site: Site) -> Results:
        full = self.library.canonical(f"{path}.{name}")
        call = self._library_call(f"{full}.__get__", state, frame, site, [])
        if call is not None:
            return self.library_call(call)
        if full in self.library.constants:
            return [(state, const(self.library.constants[full]))]
        return [(state, (Lib(full),))]

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        found = state.get(ref)
        match found:
            case Instance():
                return self._instance_attribute(ref, found, name, state, frame, site)
            case Class():
                value = self._class_attribute(ref, name, state)
                if value is not None:
                    return [(state, self._bind_class_method(value, ref, state))]
                meta = self._kind_of(ref, state)
                kept = None if meta is None else self._class_attribute(meta, name, state)
                if kept is not None:
                    return self._bind_method(kept, name, ref, ref, state, frame, site)
                base = self.library_base(ref, state)
                if name == "__name__":
                    return [(state, const(found.name))]
                return [(state, unknown("class", found.qualname, name) if base is None else (Lib(f"{base}.{name}"),))]
            case Thing():
                return self._thing_attribute(ref, found, name, state, frame, site)
            case Scope():
                measured = self._measured(found.module, name) if found.kind == "module" else None
                if measured is not None:
                    return [(state, (measured,))]
                if name in found.variables:
                    return self.force(found.variables[name], state, frame)
                child = self.program.child(found.module, name)
                if child is not None:
                    return self.load(child, state, frame, site)
                given = self._from_getattr((ref,), name, state, site)
                return [(state, unknown("module", found.module, name))] if given is None else given
            case Sequence(kind=kind):
                return [(state, (Bound(Lib(f"builtins.{kind}.{name}"), ref),))]
            case Mapping_():
                return [(state, (Bound(Lib(f"builtins.dict.{name}"), ref),))]
            case Generator():
                return [(state, (Bound(Lib(f"builtins.generator.{name}"), ref),))]
        return [(state, unknown("object", ref.address, name))]

    def _bind_class_method(self, value: Value, cls: Ref, state: State) -> Value:
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Closure) and found.kind == "classmethod":
            return (Bound(atom, cls),)
        return value

    def _instance_attribute(
        self, ref: Ref, instance: Instance, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        if name in instance.attributes:
            return [(state, instance.attributes[name])]
        value = self._class_attribute(instance.cls, name, state)
        if value is not None:
            return self._bind_method(value, name, ref, instance.cls, state, frame, site)
        if name == "__class__":
            return [(state, (instance.cls,))]
        if name == "__dict__":
            return [(state, self.attributes_of(ref, state, site))]
        for entry in self.mro(instance.cls, state):
            if isinstance(entry, str):
                path = f"{entry}.{name}"
                call = self._library_call(f"{path}.__get__", state, frame, site, [])
                if call is not None:
                    call.receiver = ref
                    return self.library_call(call)
                if self.library.function(path) is not None:
                    return [(state, (Bound(Lib(path), ref),))]
        getter = self.user_method(instance, "__getattr__", state)
        if getter is not None:
            return self._call_atom(getter, [(ref,), const(name)], {}, state, frame, site, False, False)
        return [(state, unknown("attribute", ref.address, name))]

    def _bind_method(
        self, value: Value, name: str, receiver: Atom, cls: Ref, state: State, frame: Frame, site: Site
    ) -> Results:
        """What an attribute of a class is for one of its instances."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(found, Closure) or found.kind == "staticmethod":
            return [(state, value)]
        if found.kind == "classmethod":
            return [(state, (Bound(atom, cls),))]
        if found.kind not in ("property", "cached"):
            return [(state, (Bound(atom, receiver),))]
        results = self._call_atom(atom, [(receiver,)], {}, state, frame, site, False, False)
        if found.kind == "cached" and isinstance(receiver, Ref):
            for after, got in results:
                self._set_on_object(receiver, name, got, after, weak=False)
        return results

    def _member_attribute(
        self, atom: Const, member: Member, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """``Enum.MEMBER.name``, and what the class defines for its members."""
        if name in ("name", "_name_"):
            return [(state, const(member.name))]
        if name in ("value", "_value_"):
            return [(state, member.value)]
        value = self._class_attribute(member.cls, name, state)
        if value is None:
            return [(state, unknown("attribute", atom, name))]
        return self._bind_method(value, name, atom, member.cls, state, frame, site)

    def attributes_of(self, ref: Ref, state: State, site: Site) -> Value:
        """``x.__dict__``: what is written there is written to the object."""
        found = state.get(ref)
        given = found.attributes if isinstance(found, Instance) else found.fields if isinstance(found, Thing) else {}
        items: dict[Hashable, Value] = {name: value for name, value in given.items() if not name.startswith("<")}
        return (state.new(("attributes", site), Mapping_(items, view=ref)),)

    def put_mapping(self, ref: Ref, made: Mapping_, state: State) -> None:
        """A dict after a change; that of an object's attributes changes the object."""
        state.put(ref, made)
        owner = state.get(made.view) if made.view is not None else None
        if made.view is None or not isinstance(owner, Instance):
            return
        kept = {k: v for k, v in owner.attributes.items() if k.startswith("<")}
        named = {k: v for k, v in made.items.items() if isinstance(k, str)}
        state.put(made.view, replace(owner, attributes={**kept, **named}))

    def _thing_attribute(self, ref: Ref, thing: Thing, name: str, state: State, frame: Frame, site: Site) -> Results:
        if name in thing.fields:
            return [(state, thing.fields[name])]
        path = f"{thing.type}.{name}"
        call = self._library_call(f"{path}.__get__", state, frame, site, [])
        if call is not None:
            call.receiver = ref
            return self.library_call(call)
        return [(state, (Bound(Lib(path), ref),))]

    def _method_path(self, atom: Atom, method: str, state: State) -> str | None:
        """The model's name of a special method of a library value."""
        match atom:
            case Lib(path=path):
                return f"{path}.{method}"
            case Tensor(type=kind):
                return f"{kind}.{method}"
            case Dev():
                return f"torch.device.{method}"
            case Ref():
                found = state.get(atom)
                if isinstance(found, Thing):
                    return f"{found.type}.{method}"
                if isinstance(found, Instance):
                    base = self.library_base(found.cls, state)
                    return None if base is None else f"{base}.{method}"
        return None

    def item(self, value: Value, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """``value[key]``."""
        results: Results = []
        for i, atom in enumerate(value):
            current = state if i == len(value) - 1 else state.clone()
            results.extend(self._item_of(atom, key, current, frame, site))
        return _merge_results(results) if len(results) > 1 else results

    def _item_of(self, atom: Atom, key: Value, state: State, frame: Frame, site: Site) -> Results:
        if isinstance(atom, Ref):
            found = state.get(atom)
            if isinstance(found, Instance):
                method = self.user_method(found, "__getitem__", state)
                if method is not None:
                    return self._call_atom(method, [(atom,), key], {}, state, frame, site, False, False)
                row = self._row_of(found, state)
                if row is not None:
                    return [(state, operators.item(Sequence("tuple", row), key) or unknown("item", site, atom.address))]
            key = as_key(key, state) if isinstance(found, Mapping_) else key
            if isinstance(found, Mapping_) and found.factory:
                return self._item_or_new(atom, found, key, state, frame, site)
            if isinstance(found, Sequence | Mapping_):
                return [(state, operators.item(found, key) or unknown("item", site, atom.address))]
            if isinstance(found, Class) and found.members:
                return [(state, enums.by_name(found, key, state) or unknown("member", site))]
            if isinstance(found, Class | Closure):
                return [(state, (atom,))]
        path = self._method_path(atom, "__getitem__", state)
        call = None if path is None else self._library_call(path, state, frame, site, [key])
        if call is not None:
            call.receiver = atom
            return self.library_call(call)
        if isinstance(atom, Tensor):
            return self.behaviours.tensor_data(self, atom, "[...]", state, frame, site)
        if isinstance(atom, Unknown):
            return [(state, unknown(atom.sym, "[]", key))]
        return [(state, unknown("item", site, atom))]

    def _item_or_new(self, ref: Ref, found: Mapping_, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """An item of a ``defaultdict``, which is made where it is missing."""
        there = operators.item(found, key)
        if there:
            return [(state, there)]
        results: Results = []
        for after, made in self.call_value(found.factory, [], {}, state, frame, site):
            current = after.get(ref)
            if isinstance(current, Mapping_):
                after.put(ref, operators.with_key(current, key, made))
            results.append((after, made))
        return results

    def _row_of(self, instance: Instance, state: State) -> tuple[Value, ...] | None:
        """The fields of a record that is a tuple as well."""
        bases = [entry for entry in self.mro(instance.cls, state) if isinstance(entry, str)]
        if not any(self.library.is_a(base, "builtins.tuple") for base in bases):
            return None
        names = [name for name, _ in self.record_fields(instance.cls, state)]
        return tuple(instance.attributes.get(name, unknown("field", name)) for name in names)

    def exact_items(self, value: Value, state: State) -> list[Value] | None:
        """The items of a sequence whose content is known exactly."""
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None and not found.open:
            return list(found.items)
        if isinstance(found, Class) and found.members:
            return enums.members(found, state)
        row = self._row_of(found, state) if isinstance(found, Instance) else None
        return None if row is None else list(row)

    def elements(self, value: Value, state: State) -> list[Value]:
        """What iterating a value may give; empty where nothing is known."""
        result: list[Value] = []
        for atom in value:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(found, Sequence):
                result.extend(found.items if found.items is not None else [found.element] if found.element else [])
            elif isinstance(found, Mapping_):
                result.extend(of_key(k) for k in found.items)
        return result

    def element_of(self, atom: Atom, state: State, sym: Hashable) -> Value:
        """One element of a value, for unpacking."""
        match atom:
            case Ref():
                found = state.get(atom)
                if isinstance(found, Sequence):
                    inner = union(found.items or ()) or found.element
                    return inner or unknown(sym)
                if isinstance(found, Thing) and "element" in found.fields:
                    return found.fields["element"]
            case Unknown(sym=base):
                return unknown(base, "[]", sym)
            case Tensor() | Rank():
                return (atom,)
        return unknown(sym)

    def iterate(self, value: Value, state: State, frame: Frame, site: Site) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop over a value: at most two, each with the loop variable's value."""
        atom = only(value)
        if atom is None:
            exact = [self.iterate((a,), state.clone(), frame, site) for a in value]
            rounds = [r for results in exact for _, rs in results for r in rs]
            joined = union(rounds) or unknown("each", site)
            return [(state, [joined, joined])]
        if isinstance(atom, Ref):
            found = state.get(atom)
            if isinstance(found, Sequence):
                if found.items is not None:
                    return [(state, _two_rounds(list(found.items)))]
                element = found.element or unknown("each", site)
                return [(state, [element, element])]
            if isinstance(found, Mapping_):
                keys: list[Value] = [of_key(k) for k in found.items]
                return [(state, _two_rounds(keys) if found.exact else [*keys[:1], unknown("key", site)])]
            if isinstance(found, Generator):
                return [(s, [v or unknown("each", site)] * 2) for s, v in self.consume(atom, found, state, frame)]
            if isinstance(found, Instance):
                return self._iterate_instance(atom, found, state, frame, site)
            if isinstance(found, Class) and found.members:
                return [(state, _two_rounds(enums.members(found, state)))]
        path = self._method_path(atom, "__iter__", state)
        call = None if path is None else self._library_call(path, state, frame, site, [])
        if call is not None:
            call.receiver = atom
            return [(s, self._rounds_of(v, s, site)) for s, v in self.library_call(call)]
        if isinstance(atom, Tensor):
            return [(s, [v, v]) for s, v in self.behaviours.tensor_data(self, atom, "iteration", state, frame, site)]
        if isinstance(atom, Unknown):
            return [(state, [unknown(atom.sym, "each", 0), unknown(atom.sym, "each", 1)])]
        return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]

    def _rounds_of(self, value: Value, state: State, site: Site) -> list[Value]:
        atom = only(value)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None:
            return _two_rounds(list(found.items))
        element = union(self.elements(value, state)) or unknown("each", site)
        return [element, element]

    def _iterate_instance(
        self, ref: Ref, instance: Instance, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        method = self.user_method(instance, "__iter__", state)
        if method is not None:
            result: list[tuple[State, list[Value]]] = []
            for after, value in self._call_atom(method, [(ref,)], {}, state, frame, site, False, False):
                if value == (ref,):
                    result.extend(self._next_rounds(ref, instance, after, frame, site))
                else:
                    result.extend(self.iterate(value, after, frame, site))
            return result
        row = self._row_of(instance, state)
        if row is not None:
            return [(state, _two_rounds(list(row)))]
        getter = self.user_method(instance, "__getitem__", state)
        if getter is not None:
            results = self._call_atom(getter, [(ref,), EACH], {}, state, frame, site, False, False)
            return [(s, [v, v]) for s, v in results]
        return [(state, [unknown("each", site, 0), unknown("each", site, 1)])]

    def _next_rounds(
        self, ref: Ref, instance: Instance, state: State, frame: Frame, site: Site
    ) -> list[tuple[State, list[Value]]]:
        method = self.user_method(instance, "__next__", state)
        if method is None:
            return [(state, [unknown("each", site, 0)] * 2)]
        results = self._call_atom(method, [(ref,)], {}, state, frame, site, False, False)
        return [(s, [v, v]) for s, v in results]

    # -- simple expressions ------------------------------------------------------------------------

    def _const(self, node: ir.Const, state: State, frame: Frame) -> Results:
        value = node.value
        return [(state, const(value) if isinstance(value, Hashable) else unknown("constant", node.ordinal))]

    def _name(self, node: ir.Name, state: State, frame: Frame) -> Results:
        value = self.lookup(node.id, state, frame.scope)
        if value is not None:
            return self.force(value, state, frame) if _deferred(value) else [(state, value)]
        if node.id == "__class__" and frame.owner is not None:
            return [(state, (frame.owner,))]
        if self.library.is_builtin(node.id):
            return [(state, (Lib(f"builtins.{node.id}"),))]
        return self.behaviours.missing_name(self, node.id, state, frame, Site(frame.module, node.ordinal))

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, from the inside out; class bodies are seen only from themselves."""
        first = True
        while scope is not None:
            found = state.get(scope)
            if not isinstance(found, Scope):
                return None
            if name in found.variables and (first or found.kind != "class"):
                return found.variables[name]
            first = False
            scope = found.parent
        return None

    def _bool(self, node: ir.Bool, state: State, frame: Frame) -> Results:
        done: Results = []
        going: Results = [(state, ())]
        for i, part in enumerate(node.values):
            last = i == len(node.values) - 1
            following: Results = []
            for current, _ in going:
                for after, value in self.eval(part, current, frame):
                    if last:
                        done.append((after, value))
                        continue
                    truth, sym = self.truth(value, after)
                    stops = node.op == "or"
                    if truth is None:
                        other = after.clone()
                        if sym is not None:
                            after.assume(sym, not stops)
                            other.assume(sym, stops)
                        done.append((other, const(stops) if sym is not None else value))
                        following.append((after, value))
                    elif truth is stops:
                        done.append((after, value))
                    else:
                        following.append((after, value))
            going = following
        return _merge_results(done)

    def _not(self, node: ir.Not, state: State, frame: Frame) -> Results:
        yes, no = self.branch(node.value, state, frame)
        return [*((s, const(False)) for s in yes), *((s, const(True)) for s in no)]

    def _compare(self, node: ir.Compare, state: State, frame: Frame) -> Results:
        results: Results = []
        for after, (left, right) in self.eval_all((node.left, node.right), state, frame):
            atom = only(right)
            if node.op in ("in", "not in") and atom is not None:
                path = self._method_path(atom, "__contains__", after)
                site = Site(frame.module, node.ordinal)
                call = None if path is None else self._library_call(path, after, frame, site, [left])
                if call is not None:
                    for last, value in self.library_call(call):
                        results.append((last, operators.negate(value) if node.op == "not in" else value))
                    continue
                found = after.get(atom) if isinstance(atom, Ref) else None
                wanted = as_key(left, after) if isinstance(found, Mapping_) else left
                known = operators.contains(found, wanted)
                if known is not None:
                    results.append((after, const(known if node.op == "in" else not known)))
                    continue
            results.append((after, operators.compare(node.op, left, right, ("compare", frame.module, node.ordinal))))
        return results

    def _bin(self, node: ir.Bin, state: State, frame: Frame) -> Results:
        results: Results = []
        parts = (node.first, *(e for _, e in node.rest))
        for after, values in self.eval_all(parts, state, frame):
            result = values[0]
            alive: list[State] = [after]
            for i, (op, _) in enumerate(node.rest):
                right = values[i + 1]
                tensor = _tensor_of(result) or _tensor_of(right)
                if tensor is not None:
                    site = Site(frame.module, node.ordinal)
                    data = self.behaviours.tensor_data(self, tensor, "arithmetic", after, frame, site)
                    if not data:
                        alive = []
                        break
                    result = (tensor,)
                    continue
                result = self._combine(op, result, right, after, frame, node.ordinal)
            results.extend((s, result) for s in alive)
        return results

    def _combine(self, op: str, left: Value, right: Value, state: State, frame: Frame, ordinal: int) -> Value:
        one, two = only(left), only(right)
        first = state.get(one) if isinstance(one, Ref) else None
        second = state.get(two) if isinstance(two, Ref) else None
        if isinstance(first, Sequence) and op == "+" and isinstance(second, Sequence):
            made = operators.concatenate(first, second)
            return (state.new(("concat", frame.module, ordinal), made),)
        if isinstance(first, Sequence) and op == "*":
            made = operators.repeat(first, right)
            return (state.new(("repeat", frame.module, ordinal), made),)
        if isinstance(first, Mapping_) and op == "|" and isinstance(second, Mapping_):
            made_map = replace(operators.merged(first, second), view=None)
            return (state.new(("merged", frame.module, ordinal), made_map),)
        return operators.binary(op, left, right, ("bin", frame.module, ordinal))

    def _unary(self, node: ir.Unary, state: State, frame: Frame) -> Results:
        results: Results = []
        for after, value in self.eval(node.value, state, frame):
            found = constant(value)
            if node.op == "-" and isinstance(found, int | float) and not isinstance(found, bool):
                results.append((after, const(-found)))
            elif (tensor := _tensor_of(value)) is not None:
                site = Site(frame.module, node.ordinal)
                results.extend(self.behaviours.tensor_data(self, tensor, "arithmetic", after, frame, site))
            else:
                results.append((after, unknown("unary", frame.module, node.ordinal)))
        return results

    def _if_exp(self, node: ir.IfExp, state: State, frame: Frame) -> Results:
        yes, no = self.branch(node.test, state, frame)
        results: Results = []
        for current in yes:
            results.extend(self.eval(node.body, current, frame))
        for current in no:
            results.extend(self.eval(node.orelse, current, frame))
        return _merge_results(results)

    def _display(self, node: ir.Display, state: State, frame: Frame) -> Results:
        results: Results = []
        plain = [i.value if isinstance(i, ir.Star) else i for i in node.items]
        for after, values in self.eval_all(plain, state, frame):
            items: list[Value] | None = []
            loose: list[Value] = []
            for item, value in zip(node.items, values, strict=True):
                spread = [value] if not isinstance(item, ir.Star) else self.exact_items(value, after)
                loose.extend(spread if spread is not None else self.elements(value, after))
                items = None if items is None or spread is None else [*items, *spread]
            exact = None if items is None else tuple(items)
            made = Sequence(node.kind, exact, () if exact is not None else union(loose))
            results.append((after, (after.new(("display", frame.module, node.ordinal), made),)))
        return results

    def _dict_display(self, node: ir.DictDisplay, state: State, frame: Frame) -> Results:
        results: Results = []
        parts = [e for key, value in node.items for e in ((key, value) if key is not None else (value,))]
        for after, values in self.eval_all(parts, state, frame):
            queue = list(values)
            made = Mapping_({})
            for key, _ in node.items:
                if key is None:
                    spread = queue.pop(0)
                    atom = only(spread)
                    found = after.get(atom) if isinstance(atom, Ref) else None
                    if isinstance(found, Mapping_):
                        items = {**made.items, **found.items}
                        made = Mapping_(items, union([made.element, found.element]), made.exact and found.exact)
                    else:
                        made = replace(made, exact=False)
                    continue
                made = operators.with_key(made, as_key(queue.pop(0), after), queue.pop(0))
            results.append((after, (after.new(("dict", frame.module, node.ordinal), made),)))
        return results

    def _comprehension(self, node: ir.Comprehension, state: State, frame: Frame) -> Results:
        scope = state.new(
            ("comprehension", frame.module, node.ordinal), Scope({}, frame.scope, frame.module, "function")
        )
        inner = Frame(
            scope, frame.module, frame.function, frame.owner, frame.receiver, raises=frame.raises, tries=frame.tries
        )
        produced: list[Value] = []
        keys: list[Value] = []
        states, exact = self._clauses(node, 0, state, inner, produced, keys)
        results: Results = []
        for after in merge(states):
            if node.kind == "dict":
                items: dict[Hashable, Value] = {}
                known = exact
                for key, value in zip(keys, produced, strict=False):
                    found = constant(as_key(key, after))
                    if found is ...:
                        known = False
                    else:
                        items[found] = value
                made_map = Mapping_(items if known else {}, () if known else union(produced), known)
                results.append((after, (after.new(("comp", frame.module, node.ordinal), made_map),)))
                continue
            kind = "iterator" if node.kind == "generator" else node.kind
            listed = exact or (len(node.generators) == 1 and 0 < len(produced) <= ROUNDS)
            made = Sequence(kind, tuple(produced) if listed else None, union(produced), open=not exact)
            results.append((after, (after.new(("comp", frame.module, node.ordinal), made),)))
        return results

    def _clauses(
        self,
        node: ir.Comprehension,
        depth: int,
        state: State,
        frame: Frame,
        produced: list[Value],
        keys: list[Value],
    ) -> tuple[list[State], bool]:
        if depth == len(node.generators):
            parts = (node.element,) if node.key is None else (node.key, node.element)
            states = []
            for after, values in self.eval_all(parts, state, frame):
                if node.key is not None:
                    keys.append(values[0])
                produced.append(values[-1])
                states.append(after)
            return states, len(states) == 1
        clause = node.generators[depth]
        done: list[State] = []
        exact = True
        for current, iterable in self.eval(clause.iter, state, frame):
            known = self.exact_items(iterable, current)
            site = Site(frame.module, clause.iter.ordinal)
            for after, rounds in self.iterate(iterable, current, frame, site):
                exact = exact and known is not None and len(known) == len(rounds)
                ended, sure = self._clause_rounds(node, depth, rounds, after, frame, produced, keys)
                exact = exact and sure
                done.extend(ended)
        return merge(done), exact and len(node.generators) == 1

    def _clause_rounds(
        self,
        node: ir.Comprehension,
        depth: int,
        rounds: list[Value],
        state: State,
        frame: Frame,
        produced: list[Value],
        keys: list[Value],
    ) -> tuple[list[State], bool]:
        """The rounds of one ``for``, and whether it is known which elements its tests let through."""
        clause = node.generators[depth]
        states, sure = [state], True
        was_second = state.second_round
        for i, value in enumerate(rounds):
            following: list[State] = []
            for current in states:
                current.second_round = was_second or i > 0
                ready = self.assign(clause.target, value, current, frame, node.ordinal)
                kept: list[State] = []
                for test in clause.tests:
                    sides = [self.branch(test, r, frame) for r in ready]
                    sure = sure and not any(yes and no for yes, no in sides)
                    ready = [s for yes, _ in sides for s in yes]
                    kept.extend(s for _, no in sides for s in no)
                following.extend(kept if sure else ())
                for one in ready:
                    following.extend(self._clauses(node, depth + 1, one, frame, produced, keys)[0])
            states = merge(following) or states
        for current in states:
            current.second_round = was_second
        return states, sure

    def _await(self, node: ir.Await, state: State, frame: Frame) -> Results:
        return self.eval(node.value, state, frame)

    def _yield(self, node: ir.Yield, state: State, frame: Frame) -> Results:
        if node.value is None and frame.around is not None:
            return self._around(node, frame.around, NONE, state, frame)
        if node.value is None:
            frame.yields.append(NONE)
            return [(state, unknown("sent", frame.module, node.ordinal))]
        results = self.eval(node.value, state, frame)
        if frame.around is not None:
            return [r for after, value in results for r in self._around(node, frame.around, value, after, frame)]
        for after, value in results:
            if node.each:
                for _, rounds in self.iterate(value, after, frame, Site(frame.module, node.ordinal)):
                    frame.yields.extend(rounds)
            else:
                frame.yields.append(value)
        return [(s, unknown("sent", frame.module, node.ordinal)) for s, _ in results]

    def _around(self, node: ir.Yield, body: Around, value: Value, state: State, frame: Frame) -> Results:
        """The place where a context manager lets the body of its ``with`` statement run; a second round does not."""
        if state.second_round and node.ordinal in frame.entered:
            return [(state, NONE)]
        frame.entered.add(node.ordinal)
        before = state.stack
        state.stack = frame.outside
        after = body(state, value)
        for current in after:
            current.stack = before
        return [(current, NONE) for current in after]

    def _joined(self, node: ir.Joined, state: State, frame: Frame) -> Results:
        results: Results = []
        for after, values in self.eval_all(node.parts, state, frame):
            results.append((after, operators.joined(values, ("joined", frame.module, node.ordinal))))
        return results

    def _walrus(self, node: ir.Walrus, state: State, frame: Frame) -> Results:
        results = self.eval(node.value, state, frame)
        for after, value in results:
            self.bind(node.target, value, after, frame)
        return results

    def _lambda(self, node: ir.Lambda, state: State, frame: Frame) -> Results:
        return [(s, (ref,)) for s, ref in self._closure(node.function, state, frame)]

    def _opaque(self, node: ir.Opaque, state: State, frame: Frame) -> Results:
        results = self.eval_all(node.parts, state, frame)
        return [(s, unknown("opaque", frame.module, node.ordinal)) for s, _ in results]

    def _star_expr(self, node: ir.Star, state: State, frame: Frame) -> Results:
        return self.eval(node.value, state, frame)


class Behaviours(Protocol):
    """What the machine asks of the library behaviours."""

    def perform(self, machine: Machine, call: Call) -> Results:
        """Do what a model says."""

    def unmodelled(
        self,
        machine: Machine,
        path: str,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
    ) -> Results:
        """A library function that no model names."""

    def unmodelled_method(
        self,
        machine: Machine,
        path: str,
        receiver: Atom,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
    ) -> Results:
        """A method of a library value that no model names."""

    def tensor_attribute(
        self, machine: Machine, tensor: Tensor, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """``tensor.name``."""

    def tensor_data(
        self, machine: Machine, tensor: Tensor, what: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """An operation that reads the data of a tensor."""

    def missing_name(self, machine: Machine, name: str, state: State, frame: Frame, site: Site) -> Results:
        """A name that no scope binds."""

    def served(self, machine: Machine, state: State, module: str) -> None:
        """A server that is started from outside has imported a module."""

    def process_ends(self, machine: Machine, state: State) -> None:
        """A process ends in this state."""


_METHOD_KINDS = {
    "builtins.property": "property",
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "functools.cached_property": "cached",
}
_OF_EVERY_MODULE = ("__file__", "__path__", "__package__", "__doc__", "__spec__", "__loader__", "__builtins__")
# Outcomes that another path takes back, by what it does first.
_BY_ABSENCE = frozenset({Kind.INIT_BEFORE_DEVICE, Kind.BARRIER_BEFORE_DEVICE, Kind.GLOBAL_RANK_DEVICE})
_METACLASS = "metaclass"
# Methods that are class methods without saying so.
_OF_CLASSES = frozenset({"__init_subclass__", "__class_getitem__"})
_ACCESSORS = frozenset({"setter", "deleter", "getter"})
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_DATACLASS = frozenset({"dataclass", "define", "frozen", "mutable"})


def _record_attributes(
    fields: list[tuple[str, Value | None]], args: list[Value], kwargs: dict[str, Value], site: Site
) -> dict[str, Value]:
    result: dict[str, Value] = {}
    for i, (name, default) in enumerate(fields):
        given = args[i] if i < len(args) else kwargs.get(name)
        result[name] = given or default or unknown("field", site, name)
    return result


def _assigned(body: tuple[ir.Stmt, ...]) -> list[str]:
    """The names that a class body assigns one by one."""
    targets = [t for s in body if isinstance(s, ir.Assign) for t in s.targets]
    return [t.id for t in targets if isinstance(t, ir.Name)]


def _behind(order: Order, cls: Atom, state: State) -> Order:
    """The part of an order after a class; empty where the class is not in it."""
    return next((order[i + 1 :] for i, entry in enumerate(order) if _is_class(entry, cls, state)), ())


def _is_class(entry: Class | str, cls: Atom, state: State) -> bool:
    """Whether a class in an order is the one meant; a class that was decorated or made again stands for itself."""
    if isinstance(entry, str):
        return isinstance(cls, Lib) and cls.path == entry
    found = state.get(cls) if isinstance(cls, Ref) else None
    return entry is found or (isinstance(found, Class) and entry.site == found.site)


def _deferred(value: Value) -> bool:
    return any(isinstance(atom, Deferred) for atom in value)


def _last_name(node: ir.Expr) -> str:
    match node:
        case ir.Name(id=name):
            return name
        case ir.Attr(attr=attr):
            return attr
        case ir.Call(func=func):
            return _last_name(func)
    return ""


def _catches_import(node: ir.Expr | None) -> bool:
    """Whether a handler is written for imports that fail."""
    kinds = node.items if isinstance(node, ir.Display) else (node,)
    return any(k is not None and _last_name(k) in _IMPORT_ERRORS for k in kinds)


def _raised_name(node: ir.Expr) -> str:
    return _last_name(node) or "Exception"


def _two_rounds(items: list[Value]) -> list[Value]:
    """The first item, then all the others at once; steps of a program come one after the other."""
    if len(items) <= ROUNDS or (len(items) <= MOST_TURNS and all(_is_step(item) for item in items)):
        return items
    return [items[0], union(items[1:])]


def _is_step(value: Value) -> bool:
    """Whether an item of a loop does something of its own: a function, a method, an object."""
    return isinstance(only(value), Ref | Bound | Partial | Task)


def _known_of(arguments: dict[str, Value]) -> Hashable:
    """The arguments of a call without what tells one unknown from another; None where all of them are known."""
    if not any(isinstance(atom, Unknown) for value in arguments.values() for atom in value):
        return None
    return tuple((n, tuple(None if isinstance(a, Unknown) else a for a in v)) for n, v in arguments.items())


def _tensor_of(value: Value) -> Tensor | None:
    for atom in value:
        if isinstance(atom, Tensor) and atom.device.is_gpu:
            return atom
    return None


def _gives(statement: ir.Stmt) -> bool:
    """Whether a statement returns something, or may do so, that could be true."""
    if isinstance(statement, ir.Return):
        given = statement.value
        return given is not None and not (isinstance(given, ir.Const) and not given.value)
    return any(map(_gives, inner_statements(statement)))


def _exits(frame: Frame) -> int:
    """In how many ways a body has left so far without an exception."""
    return len(frame.returns) + len(frame.breaks) + len(frame.continues)


def _joined_raises(raised: list[tuple[State, Raised]]) -> list[tuple[State, Raised]]:
    """Paths that bring the same exception to a handler, joined as paths that bring nothing are."""
    if len(raised) < 2:
        return raised
    alike: dict[tuple[int, tuple[str, ...], Site | None], tuple[Raised, list[State]]] = {}
    for state, exception in raised:
        key = (id(exception.outcome), exception.names, exception.launch)
        alike.setdefault(key, (exception, []))[1].append(state)
    return [(state, exception) for exception, states in alike.values() for state in merge(states)]


def _merge_rows(rows: list[tuple[State, list[Value]]]) -> list[tuple[State, list[Value]]]:
    """Join the states of equal rows of values; of too many that differ, all in one."""
    by_values: dict[tuple[Value, ...], list[State]] = {}
    for state, values in rows:
        by_values.setdefault(tuple(values), []).append(state)
    kept = [(state, list(values)) for values, states in by_values.items() for state in merge(states)]
    if len(kept) <= MOST_RESULTS:
        return kept
    joined = [union(column) for column in zip(*(values for _, values in kept), strict=True)]
    return [(state, list(joined)) for state in merge([state for state, _ in kept])]


def _merge_results(results: Results) -> Results:
    """Join result states with equal values where nothing tells them apart."""
    if len(results) < 2:
        return results
    kept: Results = []
    by_value: dict[Value, list[State]] = {}
    for state, value in results:
        by_value.setdefault(value, []).append(state)
    for value, states in by_value.items():
        kept.extend((s, value) for s in merge(states))
    if len(kept) <= MOST_RESULTS:
        return kept
    states = merge([s for s, _ in kept])
    joined = union([v for _, v in kept])
    return [(s, joined) for s in states]


_Statement = Callable[[Machine, ir.Stmt, State, Frame], list[State]]
_Expression = Callable[[Machine, ir.Expr, State, Frame], Results]

_STATEMENTS: dict[type[ir.Stmt], _Statement] = {
    ir.ExprStmt: Machine._expr_stmt,  # type: ignore[dict-item]
    ir.Assign: Machine._assign,  # type: ignore[dict-item]
    ir.Declare: Machine._declare,  # type: ignore[dict-item]
    ir.AugAssign: Machine._aug_assign,  # type: ignore[dict-item]
    ir.Return: Machine._return,  # type: ignore[dict-item]
    ir.If: Machine._if,  # type: ignore[dict-item]
    ir.For: Machine._for,  # type: ignore[dict-item]
    ir.While: Machine._while,  # type: ignore[dict-item]
    ir.Try: Machine._try,  # type: ignore[dict-item]
    ir.With: Machine._with,  # type: ignore[dict-item]
    ir.FunctionDef: Machine._function_def,  # type: ignore[dict-item]
    ir.ClassDef: Machine._class_def,  # type: ignore[dict-item]
    ir.Import: Machine._import,  # type: ignore[dict-item]
    ir.ImportFrom: Machine._import_from,  # type: ignore[dict-item]
    ir.Scoping: Machine._scoping,  # type: ignore[dict-item]
    ir.Delete: Machine._delete,  # type: ignore[dict-item]
    ir.Raise: Machine._raise,  # type: ignore[dict-item]
    ir.Assert: Machine._assert,  # type: ignore[dict-item]
    ir.Break: Machine._break,  # type: ignore[dict-item]
    ir.Continue: Machine._continue,  # type: ignore[dict-item]
    ir.Match: Machine._match,  # type: ignore[dict-item]
}

_EXPRESSIONS: dict[type[ir.Expr], _Expression] = {
    ir.Const: Machine._const,  # type: ignore[dict-item]
    ir.Name: Machine._name,  # type: ignore[dict-item]
    ir.Bool: Machine._bool,  # type: ignore[dict-item]
    ir.Not: Machine._not,  # type: ignore[dict-item]
    ir.Compare: Machine._compare,  # type: ignore[dict-item]
    ir.Bin: Machine._bin,  # type: ignore[dict-item]
    ir.Unary: Machine._unary,  # type: ignore[dict-item]
    ir.IfExp: Machine._if_exp,  # type: ignore[dict-item]
    ir.Display: Machine._display,  # type: ignore[dict-item]
    ir.DictDisplay: Machine._dict_display,  # type: ignore[dict-item]
    ir.Comprehension: Machine._comprehension,  # type: ignore[dict-item]
    ir.Await: Machine._await,  # type: ignore[dict-item]
    ir.Yield: Machine._yield,  # type: ignore[dict-item]
    ir.Joined: Machine._joined,  # type: ignore[dict-item]
    ir.Walrus: Machine._walrus,  # type: ignore[dict-item]
    ir.Lambda: Machine._lambda,  # type: ignore[dict-item]
    ir.Opaque: Machine._opaque,  # type: ignore[dict-item]
    ir.Star: Machine._star_expr,  # type: ignore[dict-item]
}
