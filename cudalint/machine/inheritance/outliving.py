"""What a task changes in something that outlives it: a module, a variable of a function, the attribute of an object.

A later task of the same worker finds it, unless it sets that anew before it looks. Which worker is given which task
differs between forked and fresh ones, so what is found so is not the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.effects.receivers import library_self
from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import ITER, Class, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.calls import SEEDED
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.leavings import Leavings
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.stores import CHANGES
from cudalint.machine.interpreter import Setting
from cudalint.machine.launch.crossing import Pickler, reachable, visited
from cudalint.machine.rounds import MOST_ITEMS
from cudalint.machine.state import Setting as Kept
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Dev, Lib, Member, Ref, Tensor, Unknown, Value
from cudalint.structs import replace

# What methods set in the object that has them, by the traits that say so.
_PLACE, _TYPE = "sets-place", "sets-type"
_NUMBERS = "sets-numbers"
_ASPECTS = ("sets-mode", "sets-gradients", "sets-weights", "sets-moment", _PLACE, _TYPE)
# What methods leave another thing each time, and by which argument functions draw from what they are given.
_MOVES_ON, _GENERATOR = "moves-on", "generator"
_MODULE = "module"
# What starts workers that functions come to with the variables that they name.
_BY_VALUE = "loky"
# How pickling names what it makes of an object in another process.
SENT = "sent"
# These ask of a thing only what no task changes.
_ASKS_CLASS = frozenset({"isinstance", "isinstance-of-type"})
_HOLDS = "module.hold"
_TAKES = frozenset({"builtins.next", "builtins.anext"})
# So deep lies what is looked at within what holds it.
_DEEPEST = 8
# Attributes of a tensor that are set to what it then is.
_OF_DATA = frozenset({"data", "grad", "requires_grad"})


class Outliving(Leavings):
    """A machine that notes which changes of objects and variables tasks find that earlier tasks have left."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # What the task that runs was given.
        self._own_arguments: frozenset[Atom] = frozenset()
        # What later tasks find of objects that the first one made, and what they set of such.
        self._found_new: dict[tuple[str, Hashable], Kept] = {}
        self._set_by_later: set[tuple[str, Hashable]] = set()
        # What was made of what a task was given, by what it is itself (two tensors of one place are equal), and whether
        # its random numbers began so.
        self._of_given: dict[int, Atom] = {}
        self._seeded_by_given = False
        # The variables that came with functions, and that the task that runs has read.
        self._read_first: set[tuple[Hashable, str]] = set()
        # What the rounds of a loop are given, by what that is a part of.
        self._elements: dict[Atom, Atom] = {}

    def begins_task(self, state: State, is_first: bool, given: Iterable[Value] = ()) -> None:
        """A worker begins a task with what it is given."""
        given = tuple(given)
        super().begins_task(state, is_first, given)
        self._read_first = set()
        self._own_arguments = frozenset(
            atom for value in given for atom in value if len(value) > 1 or not isinstance(atom, Const)
        )

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may find what an earlier task has left, or leave something itself."""
        path, state = self.library.canonical(call.path), call.state
        self._is_given_generators((*call.args, *call.kwargs.values()), call.site, state)
        if self._watches and self._shared_out(state) is not None:
            if call.text("does") not in _ASKS_CLASS:
                self._uses(path, call.receiver, call.args, call.kwargs, call.site, state)
            if call.text("does") == _HOLDS and isinstance(call.receiver, Ref):
                self._is_kept(call.receiver.address, call.site, state)
        results = super().library_call(call)
        for after, value in results if call.text("does") == _MODULE else ():
            _forget({atom.address for atom in value if isinstance(atom, Ref)}, after)
        self._makes_of_given(path, (*call.args, *call.kwargs.values()), call.receiver, results, state)
        return results

    def _makes_of_given(
        self, path: str, given: Iterable[Value], receiver: Atom | None, results: Results, state: State
    ) -> None:
        """What is made of what a task was given, or of random numbers that began with that, is another in each task."""
        if not self._own_arguments or self._shared_out(state) is None:
            return
        tells = any(self._is_of_task(value, state) for value in given)
        effect = self.library.process_effect(path)
        if effect is not None and effect.state == "seed":
            self._seeded_by_given = tells
        is_drawn = self._seeded_by_given and effect is not None and effect.state in ("weights", "draws")
        if tells or is_drawn or id(receiver) in self._of_given:
            made = (atom for _, value in results for atom in value)
            self._of_given.update((id(atom), atom) for atom in made if isinstance(atom, Tensor | Ref))

    def _is_given_generators(self, values: Iterable[Value], site: Site, state: State) -> None:
        """Who is given a generator of the program may draw from it, so that it goes on elsewhere in a fresh process."""
        if not self._has_generators:
            return
        for atom in (self._whole(atom) for value in values for atom in visited(value, state)):
            match atom:
                case Unknown(sym=("follows", str(path), *_)):
                    self._goes_on_drawing(atom, f"{shown(path)}()", site, state)

    def _goes_on_drawing(self, atom: Atom, name: str, site: Site, state: State) -> None:
        """A variable of a module holds what is drawn from; a fresh process begins it anew."""
        if self._is_generator(atom) and any(held == atom for held in _outliving(state)):
            self._note(Why.STORES, name, site, state)

    def _is_generator(self, atom: Atom) -> bool:
        match atom:
            case Unknown(sym=("follows", str(path), *_)):
                return self.library.traits.has(path, SEEDED)
        return False

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._is_given_generators((*given.args, *given.kwargs.values()), given.site, given.state)
        if self._watches and self._shared_out(given.state) is not None:
            receiver = atom.receiver if isinstance(atom, Bound) else None
            self._uses(path, receiver, given.args, given.kwargs, given.site, given.state)
        return super()._foreign(path, atom, given)

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(base, ".", str())) if self._has_generators:
                self._goes_on_drawing(Unknown(base), "", given.site, given.state)
        match atom:
            case Unknown(sym=(base, ".", str(name))) if self.library.traits.has(f"?.{name}", _NUMBERS):
                self._begins_numbers(Unknown(base), given.site, given.state)
            case Unknown(sym=(base, ".", str(name))) if self.library.traits.has(f"?.{name}", _MOVES_ON):
                self._draws_from(Unknown(base), given.site, given.state)
        return super()._call_atom(atom, given)

    def _uses(
        self,
        path: str,
        receiver: Atom | None,
        args: list[Value],
        kwargs: dict[str, Value],
        site: Site,
        state: State,
    ) -> None:
        """A function of a library is given things, or a method is called: it finds them as they are, or sets them."""
        aspects = [aspect for aspect in _ASPECTS if self.library.traits.has(path, aspect)]
        finds = [atom for value in (*args, *kwargs.values()) for atom in value]
        for atom in finds:
            if self._is_iterator(atom) or path in _TAKES:
                self._takes_of(atom, site, state)
        self._finds_objects(finds if aspects or receiver is None else [receiver, *finds], state)
        if self.library.traits.has(path, _NUMBERS) and receiver is not None:
            self._begins_numbers(receiver, site, state)
        elif self.library.traits.has(path, _MOVES_ON) and receiver is not None:
            self._draws_from(receiver, site, state)
        for atom in kwargs.get(_GENERATOR, ()):
            self._draws_from(atom, site, state)
        if isinstance(receiver, Ref) and aspects:
            is_firm = len(aspects) == 1 or not args
            if len(aspects) > 1 and args and (only_one := _aspect_of(args[0])) is not None:
                aspects, is_firm = [only_one], True
            parts = frozenset(part.address for part in reachable((receiver,), state)) | {receiver.address}
            for aspect in aspects:
                self._sets(Kept("", (), False, not is_firm, False, site, aspect, parts), state)
                self._sets_again(aspect, parts, state)

    def _begins_numbers(self, atom: Atom, site: Site, state: State) -> None:
        """A generator of random numbers begins anew, so that no earlier task decides what it gives."""
        if self._shared_out(state) is not None:
            self._sets(Kept("", (), False, False, False, site, _NUMBERS, frozenset({self._known_by(atom)})), state)

    def _draws_from(self, atom: Atom, site: Site, state: State) -> None:
        """A generator gives its next numbers, which an earlier task has decided unless it began anew."""
        key = self._known_by(atom)
        if not any(kept.aspect == _NUMBERS and key in kept.of for kept in state.process.set_now):
            self._changes_anew(atom, site, state)

    def _known_by(self, atom: Atom) -> Hashable:
        """By what a generator is known."""
        whole = self._whole(atom)
        return whole.address if isinstance(whole, Ref) else whole

    # -- what is found ------------------------------------------------------------------------------------------------

    def _finds_objects(self, atoms: Iterable[Atom], state: State) -> None:
        """Something is used as it is, with all that lies in it."""
        # What begins numbers anew is asked for where some are drawn.
        left = [kept for kept in self._left(state) if kept.of and kept.aspect != _NUMBERS]
        if not left:
            return
        parts = {ref.address for ref in reachable(tuple(a for a in atoms if isinstance(a, Ref)), state)}
        for kept in left:
            found = kept.of & parts
            if found:
                self._finds_left(kept, found, state)

    def _finds_left(self, kept: Kept, found: frozenset[Hashable], state: State) -> None:
        """A task finds what an earlier one has set of an object; what made the object may have done so, once."""
        watch = self._shared_out(state)
        if watch is None:
            return
        if any(before.at(one) is not None for before in watch.before_first for one in found):
            self._finds_kept(kept, state)
            return
        for one in found:
            self._found_new[kept.aspect, one] = kept
            if (kept.aspect, one) in self._set_by_later:
                self._finds_kept(kept, state)

    def _sets_again(self, aspect: str, parts: frozenset[Hashable], state: State) -> None:
        """A later task sets something of an object as well."""
        watch = self._shared_out(state)
        for part in parts if watch is not None and watch.before_later else ():
            self._set_by_later.add((aspect, part))
            if (aspect, part) in self._found_new:
                self._finds_kept(self._found_new[aspect, part], state)

    def iterate(
        self, value: Value, state: State, frame: Frame, site: Site, most: int = MOST_ITEMS
    ) -> list[tuple[State, list[Value]]]:
        """The rounds of a loop, each of which is given a part of something."""
        rounds = super().iterate(value, state, frame, site, most)
        if self._watches and len(value) == 1:
            given = (atom for _, each in rounds for one in each for atom in one if isinstance(atom, Unknown))
            self._elements.update(dict.fromkeys(given, value[0]))
        return rounds

    def _iterates(self, atom: Atom, site: Site, state: State) -> None:
        super()._iterates(atom, site, state)
        if self._is_iterator(atom):
            self._takes_of(atom, site, state)

    def compares(self, op: str, values: tuple[Value, Value], site: Site, state: State) -> None:
        """``x in y`` takes of an iterator what comes before."""
        super().compares(op, values, site, state)
        for atom in values[1] if op in ("in", "not in") and self._watches else ():
            if self._is_iterator(atom):
                self._takes_of(atom, site, state)

    def _is_iterator(self, atom: Atom) -> bool:
        match atom:
            case Ref(address=address):
                return sender_of(address) in self._iterators
            case Unknown(sym=(str(made), *_)):
                return made == ITER
        return False

    def _takes_of(self, atom: Atom, site: Site, state: State) -> None:
        """Something is taken of an iterator, which a later task finds further on."""
        whole = self._whole(atom)
        if isinstance(whole, Ref):
            self._is_kept(whole.address, site, state)
        else:
            self._changes_anew(whole, site, state)

    def _object_attribute(self, ref: Ref, name: str, state: State, frame: Frame, site: Site) -> Results:
        results = super()._object_attribute(ref, name, state, frame, site)
        if state.process.left:
            self._finds_name(ref, name, state)
            found = state.get(ref)
            is_own = isinstance(found, Instance) and name in found.attributes
            if any(isinstance(a, Tensor) if is_own else _is_data(a) for _, value in results for a in value):
                self._finds_objects((ref,), state)
        return results

    def _finds_name(self, owner: Ref, name: str, state: State) -> None:
        place = (owner.address, name)
        for kept in self._left(state):
            if place in kept.of:
                self._finds_kept(kept, state)

    def lookup(self, name: str, state: State, scope: Ref | None) -> Value | None:
        """A variable, which an earlier task may have set."""
        if state.process.left and scope is not None:
            self._finds_name(self._place_of(name, state, scope), name, state)
        if scope is not None and self._watches and self._watches[-1].launch.method == _BY_VALUE:
            place = self._place_of(name, state, scope)
            if _came_along(place.address):
                self._read_first.add((place.address, name))
        return super().lookup(name, state, scope)

    def _place_of(self, name: str, state: State, scope: Ref) -> Ref:
        """The scope that has a variable."""
        inner: Ref | None = scope
        while inner is not None and isinstance(found := state.get(inner), Scope):
            if name in found.variables:
                return inner
            inner = found.parent
        return scope

    def construct(self, ref: Ref, cls: Class, given: Given) -> Results:
        """A new instance has nothing of one that an earlier task made at the same place."""
        if given.state.process.left:
            _forget({given.state.next_address(("new", given.site, cls.qualname))}, given.state)
        return super().construct(ref, cls, given)

    # -- what is set --------------------------------------------------------------------------------------------------

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name where ``global`` and ``nonlocal`` say."""
        home = self._home(name, state, frame.scope)
        if home != frame.scope and self._watches:
            site = Site(frame.module, frame.function.ordinal if frame.function is not None else 0)
            self._sets_name(home, name, value, site, state)
        super().bind(name, value, state, frame)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        for atom in owner if self._watches else ():
            if isinstance(atom, Ref):
                self._sets_name(atom, attr, value, site, state)
            elif isinstance(atom, Tensor) and attr in _OF_DATA:
                self._writes_array(state, (atom,))
            else:
                self._changes_anew(atom, site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        for atom in owner if self._watches else ():
            if not isinstance(atom, Tensor):
                self._changes_anew(atom, site, state)
            self._puts_into(atom, (key, value), site, state)
        return super().set_item(owner, key, value, state, frame, site)

    def _changes_container(self, call: Call) -> None:
        receiver = library_self(call)
        if receiver is not None and call.path.rpartition(".")[2] in CHANGES:
            self._puts_into(receiver, call.args, call.site, call.state)
        super()._changes_container(call)

    def _puts_into(self, container: Atom, values: Iterable[Value], site: Site, state: State) -> None:
        """The first task of a worker puts what it alone has into something that was there before, and stays there."""
        if not self._watches or not isinstance(container, Ref):
            return
        watch = self._shared_out(state)
        if watch is None or watch.before_later or not isinstance(state.get(container), Sequence | Dict):
            return
        is_older = any(before.get(container) for before in watch.before_first)
        if is_older and any(self._is_of_task(value, state) for value in values):
            watch.doubts.setdefault(Doubt(Why.KEPT, "", site))

    def _sets_name(self, owner: Ref, name: str, value: Value, site: Site, state: State) -> None:
        """A variable or an attribute is set to what this task alone has, or that of a function by a later task."""
        watch = self._shared_out(state)
        if watch is None:
            return
        for before in watch.before_later:
            scope = before.get(owner)
            is_of_function = isinstance(scope, Scope) and scope.kind != "module"
            is_found = is_of_function or (owner.address, name) in self._read_first
            if isinstance(scope, Scope) and is_found and scope.variables.get(name) != value:
                watch.doubts.setdefault(Doubt(Why.LEFT, name, site))
        aspect = f".{name}"
        tells = self._is_of_task(value, state)
        if tells or any(kept.aspect == aspect for kept in state.process.left):
            told = name if isinstance(state.get(owner), Scope) else ""
            self._sets(Kept(told, (), False, False, False, site, aspect, frozenset({(owner.address, name)})), state)

    def _is_of_task(self, value: Value, state: State) -> bool:
        """Whether a value is, or holds, what the task was given, so that another task has another one."""
        if not self._own_arguments:
            return False
        return any(id(atom) in self._of_given or _tells(atom, self._own_arguments) for atom in visited(value, state))

    def _changes_anew(self, atom: Atom, site: Site, state: State) -> None:
        """Something is changed, which is another thing after each such change; of what a task made nobody finds it."""
        watch = self._shared_out(state) if self._watches else None
        if watch is None or not watch.before_later:
            return
        whole = self._whole(atom)
        if isinstance(whole, Ref):
            if isinstance(state.get(whole), LibraryObject):
                self._is_kept(whole.address, site, state)
        elif isinstance(whole, Tensor):
            self._writes_array(state, (whole,))
        elif isinstance(whole, Const) and isinstance(whole.value, Member):
            watch.doubts.setdefault(Doubt(Why.KEPT, "", site))
        elif isinstance(whole, Unknown):
            held = (self._whole(atom) for before in watch.before_later for atom in _outliving(before))
            if whole in held:
                watch.doubts.setdefault(Doubt(Why.KEPT, "", site))

    def _whole(self, atom: Atom) -> Atom:
        """What something is a part of: an item of an item of an attribute."""
        for _ in range(_DEEPEST):
            outer = self._elements.get(atom) or _outer(atom)
            if outer is None:
                break
            atom = outer
        return atom


def _outliving(state: State) -> Iterator[Atom]:
    """All that the variables of modules lead to, also of what was sent with functions of them."""
    for found in state.objects():
        if isinstance(found, Scope) and found.kind == "module":
            for value in found.variables.values():
                yield from visited(value, state)


def is_sent(address: Hashable) -> bool:
    """Whether an object is what pickling made of another one."""
    match address:
        case (str(kind), _, _):
            return kind == SENT
    return False


def sender_of(address: Hashable) -> Hashable:
    """The object of which pickling made another one."""
    match address:
        case (str(kind), inner, _) if kind == SENT:
            return sender_of(inner)
    return address


def _came_along(address: Hashable) -> bool:
    """Whether a scope has the variables that came with functions that were pickled by value."""
    return isinstance(address, tuple) and address[:1] == (Pickler.GLOBALS.value,)


def _aspect_of(value: Value) -> str | None:
    """What ``.to()`` sets by its argument: the device, or the type of numbers."""
    if all(isinstance(atom, Dev) or (isinstance(atom, Const) and isinstance(atom.value, str)) for atom in value):
        return _PLACE
    return _TYPE if all(isinstance(atom, Lib) for atom in value) else None


def _is_data(atom: Atom) -> bool:
    """Whether an attribute is what its object is, and not a method or another object, which are asked in turn."""
    match atom:
        case Bound(may_be_data=may):
            return may
        case Ref() | Lib():
            return False
    return True


def _forget(made: set[Hashable], state: State) -> None:
    """What a task makes has nothing of an object that an earlier one made at the same place."""
    if made and state.process.left:
        left = (replace(k, of=k.of - made) if k.of else k for k in state.process.left if not k.of or k.of - made)
        state.process = replace(state.process, left=frozenset(left))


def _outer(atom: Atom) -> Atom | None:
    match atom:
        case Bound(receiver=receiver) if not isinstance(receiver, Lib):
            return receiver
        case Unknown(sym=("item", _, Unknown() | Bound() | Ref() | Tensor(), *_)):
            return _part(atom.sym, 2)
        case Unknown(sym=(tuple(inner), "." | "[]", *_)):
            return Unknown(inner)
    return None


def _part(sym: Hashable, place: int) -> Atom | None:
    part = sym[place] if isinstance(sym, tuple) else None
    return part if isinstance(part, Unknown | Bound | Ref | Tensor) else None


def _tells(part: Hashable, given: frozenset[Atom]) -> bool:
    """Whether something is made of what a task was given."""
    if part in given:
        return True
    match part:
        case Unknown(sym=sym):
            return _tells(sym, given)
        case tuple():
            return any(_tells(inner, given) for inner in part)
    return False
