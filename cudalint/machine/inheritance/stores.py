"""Changes of objects and variables: of most the heap shows the result, of the others only that they happened."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.effects.receivers import library_self
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.process_effects import ProcessEffects
from cudalint.machine.interpreter import Setting
from cudalint.machine.interpreter.assignment import named_anew
from cudalint.machine.launch.crossing import Pickler, captured, inside_of, reached
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Const, Lib, Ref, Tensor, Unknown, Value, constant, only
from cudalint.structs import replace

# Changes of containers that the heap does not follow.
_LOSSY = frozenset(
    {
        "pop", "popleft", "insert", "remove", "discard", "sort", "reverse", "rotate", "extendleft", "popitem",
        "difference_update", "intersection_update", "symmetric_difference_update", "move_to_end", "__setitem__",
        "__delitem__", "__iadd__", "subtract",
    }
)  # fmt: skip
CHANGES = frozenset({"append", "appendleft", "add", "extend", "update", "clear", "setdefault"})


class Stores(ProcessEffects):
    """A machine that notes which objects and variables are changed in a way that their content does not show."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # By what objects and variables were changed in a way that their content does not show.
        self._unsteady: dict[Hashable, set[Hashable]] = {}
        # The variables that were changed so by workers alone, by how many had begun by then, and how many have.
        self._unsteady_in_workers: dict[Hashable, set[int]] = {}
        self._fresh_begun = 0
        # Calls that gave a new object in a function, which nothing else holds.
        self._own: set[tuple[Site, tuple[str, ...]]] = set()
        # What the workers opened that is written out or removed when a process ends, and the functions that gave it.
        self._ending: dict[Atom, str] = {}
        # By dict, the objects that it has as keys: they are found by what they are, or by what they hold.
        self._keyed: dict[Hashable, set[Hashable]] = {}
        # When each process last changed an array in place.
        self._wrote: dict[tuple[str, ...], int] = {}
        # How deep in code that runs at another time than where it is evaluated here, or only in part.
        self._late = 0

    def _stores_into(self, address: Hashable, site: Site, state: State, lossy: bool = False) -> None:
        """An object or a variable of the heap is changed: in a later round of a loop, its content is one of many."""
        unsteady = lossy or state.second_round or self._late > 0
        if unsteady and _is_variable(address) and self._keeps_to_itself(state):
            self._unsteady_in_workers.setdefault(address, set()).add(self._fresh_begun)
        elif unsteady:
            key = self._key(site, Why.STORES)
            self._unsteady.setdefault(address, set()).add(key)
            if self._outside is None:
                self._boots(key, state)
        if self._outside is not None:
            owner = address[0] if isinstance(address, tuple) and len(address) == 2 else address
            if self._outside.at(address) is not None or self._outside.at(owner) is not None:
                self._note(Why.STORES, "", site, state)

    def _keeps_to_itself(self, state: State) -> bool:
        """Whether a process is a worker that shares no tasks with others: its parent sees nothing of its variables."""
        return False

    def _is_changed(self, address: Hashable) -> bool:
        """Whether something was changed at a time that the code does not show, by whatever process."""
        return bool(self._unsteady.get(address)) or address in self._unsteady_in_workers

    def _keeps(self, value: Value, site: Site, state: State) -> None:
        """Something holds a value on, beside the function that has it: perhaps until its process ends."""
        for atom in self._holds(value, state) if self._ending else ():
            name = self._ends_as(atom)
            for watch in self._reading(state) if name is not None else ():
                watch.doubts.setdefault(Doubt(Why.LEFT_OPEN, name or "", site))

    def _holds(self, value: Value, state: State) -> Iterator[Atom]:
        """All that something keeps from ending; a function keeps its defaults, and what it closes over."""

        def inside(atom: Atom) -> Iterable[Value]:
            found = state.get(atom) if isinstance(atom, Ref) else None
            return captured(found, state, Pickler.LOCALS) if isinstance(found, Closure) else inside_of(atom, state)

        return reached(value, inside)

    def _ends_as(self, atom: Atom) -> str | None:
        """What ends at the end of its process is an object, or the one whose method it is."""
        while atom not in self._ending:
            match atom:
                case Unknown(sym=(tuple(owner), ".", str())):
                    atom = Unknown(owner)
                case _:
                    return None
        return self._ending[atom]

    def _is_own(self, atom: Atom, state: State) -> bool:
        """Whether an unknown is, or is part of, an object that a function of this process made for itself."""
        sym = atom.sym if isinstance(atom, Unknown) else None
        while isinstance(sym, tuple) and sym and isinstance(sym[0], tuple):
            sym = sym[0]
        return (
            isinstance(sym, tuple)
            and len(sym) > 2
            and sym[0] == "call"
            and isinstance(sym[1], Site)
            and (sym[1], state.process.identity) in self._own
        )

    def bind(self, name: str, value: Value, state: State, frame: Frame) -> None:
        """Bind a name where ``global`` and ``nonlocal`` say."""
        home = self._home(name, state, frame.scope)
        found = state.get(home)
        if home != frame.scope or (isinstance(found, Scope) and found.kind == "module"):
            site = Site(frame.module, frame.function.ordinal if frame.function is not None else 0)
            self._stores_into((home.address, name), site, state)
            self._keeps(value, site, state)
        super().bind(name, value, state, frame)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``."""
        self._keeps(value, site, state)
        if attr == "__class__":
            self._note(Why.STORES, "", site, state)
        for atom in owner:
            found = state.get(atom) if isinstance(atom, Ref) else None
            match atom, found:
                case Ref(), Instance(cls=cls) if self._class_attribute(cls, "__setattr__", state) is not None:
                    self._note(Why.STORES, "", site, state)
                case Ref() as cls, Class(scope=scope):
                    self._stores_into(scope.address, site, state)
                    meta = self._kind_of(cls, state)
                    if meta is not None and self._class_attribute(meta, "__setattr__", state) is not None:
                        self._note(Why.STORES, "", site, state)
                case Ref(address=address), Scope():
                    self._stores_into((address, attr), site, state)
                case Ref(address=address), Instance() | LibraryObject() | Dict() | Sequence():
                    self._stores_into(address, site, state)
                case Ref(), Closure(function=function):
                    self._note(Why.STORES, f"{function.name}.{attr}", site, state)
                case Lib(path=path), _:
                    setter = f"{path}.{attr}.__set__"
                    effect = self.library.process_effect(setter)
                    if self.library.function(setter) is None:
                        felt_by = () if effect is None else effect.felt_by
                        self._note(Why.STORES, f"{path}.{attr}", site, state, felt_by=felt_by)
                case Tensor(), _:
                    pass
                case _ if not self._is_own(atom, state):
                    self._note(Why.STORES, "", site, state)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def set_item(self, owner: Value, key: Value, value: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``owner[key] = value``."""
        self._keeps(value, site, state)
        atom = only(owner)
        found = state.get(atom) if isinstance(atom, Ref) else None
        setter = self.user_method(found, "__setitem__", state) if isinstance(found, Instance) else None
        if setter is not None:
            return [s for s, _ in self.call_value((setter,), [owner, key, value], {}, state, frame, site)]
        self._is_keyed_by(owner, key, state)
        for each in owner:
            self._changes_item(each, "__setitem__", site, state)
        states = super().set_item(owner, key, value, state, frame, site)
        if isinstance(atom, Ref) and isinstance(found, Dict) and self.grows_on(atom):
            # Later rounds add keys that are not seen.
            for after in states:
                made = after.get(atom)
                if isinstance(made, Dict):
                    after.store(atom, replace(made, exact=False))
        return states

    def _item_or_new(self, ref: Ref, found: Dict, key: Value, state: State, frame: Frame, site: Site) -> Results:
        """An item of a ``defaultdict``, which has one more afterwards."""
        if constant(key) not in found.items:
            self._stores_into(ref.address, site, state)
        return super()._item_or_new(ref, found, key, state, frame, site)

    def _dict_display(self, node: ir.DictDisplay, state: State, frame: Frame) -> Results:
        """``{key: value}``, whose keys may be objects."""
        keys = [key for key, _ in node.items if isinstance(key, ir.Name)]
        found = [self.lookup(key.id, state, frame.scope) or () for key in keys]
        results = super()._dict_display(node, state, frame)
        for after, made in results:
            for key in found:
                self._is_keyed_by(made, key, after)
        return results

    def _is_keyed_by(self, owner: Value, key: Value, state: State) -> None:
        for atom in key:
            if isinstance(atom, Ref) and isinstance(state.get(atom), Instance):
                for made in owner:
                    if isinstance(made, Ref):
                        self._keyed.setdefault(made.address, set()).add(atom.address)

    def _writes_array(self, state: State, of: Iterable[Atom] = ()) -> None:
        """A process changes an array in place: one of these, where it is shown which."""
        self._moment += 1
        self._wrote[state.process.identity] = self._moment
        for watch in self._reading(state):
            watch.writes = True

    def _changes_item(self, atom: Atom, method: str, site: Site, state: State) -> None:
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Tensor | Unknown):
            # What a library gave may be a view of an array.
            self._writes_array(state, (atom,))
        match atom, found:
            case Ref(address=address), Sequence() | Dict():
                lossy = isinstance(found, Sequence) and method == "__delitem__"
                self._stores_into(address, site, state, lossy=lossy)
            case (Tensor(), _) | (Ref(), LibraryObject()):
                pass
            case Lib(path=path), _:
                if self.library.function(f"{path}.{method}") is None:
                    self._note(Why.STORES, path, site, state)
            case _ if not self._is_own(atom, state):
                self._note(Why.STORES, "", site, state)

    def store_dict(self, ref: Ref, made: Dict, state: State) -> None:
        """A dict after a change; that of the names of an object, a class or a module changes these."""
        if made.view is not None and not isinstance(state.get(made.view), Instance):
            address = made.view.address
            before = state.get(ref)
            gone = before.items.keys() - made.items.keys() if isinstance(before, Dict) else ()
            changed = named_anew(before, made) if state.second_round or self._late else ()
            for key in (address, *((address, name) for name in (*gone, *changed))):
                self._unsteady.setdefault(key, set()).add(("view", address))
        super().store_dict(ref, made, state)

    def _augmented(self, node: ir.AugAssign, left: Value, right: Value, state: State) -> Value:
        """``x op= y``, which changes lists, sets and objects in place."""
        made = super()._augmented(node, left, right, state)
        if any(isinstance(atom, Tensor) or _is_given(atom) for atom in left):
            self._writes_array(state, left)
        site = Site("", node.ordinal)
        filled = any(isinstance(a, Ref) and isinstance(state.get(a), Sequence | Dict) for a in right)
        for atom in left:
            if filled and isinstance(atom, Unknown) and not self._is_own(atom, state):
                # What grows by a container is one.
                self._note(Why.STORES, _target(node), site, state)
            if isinstance(atom, Ref) and isinstance(found := state.get(atom), Sequence | Dict | Instance):
                constant_kind = isinstance(found, Sequence) and found.kind == "tuple"
                if isinstance(found, Dict) and found.view is not None:
                    # What holds the attributes of a module or an object under their names.
                    self._note(Why.STORES, _target(node), site, state)
                elif not constant_kind:
                    self._stores_into(atom.address, site, state, lossy=made != left)
        return made

    def _changes_container(self, call: Call) -> None:
        """A method of a list, set or dict: those that change it in a way the heap does not follow."""
        name = call.path.rpartition(".")[2]
        receiver = library_self(call)
        found = call.state.get(receiver) if isinstance(receiver, Ref) else None
        if name not in _LOSSY and name not in CHANGES:
            return
        for value in call.args:
            self._keeps(value, call.site, call.state)
        if not isinstance(receiver, Ref) or not isinstance(found, Sequence | Dict):
            self._calls_unknown("", call.site, call.state)
            return
        self._stores_into(receiver.address, call.site, call.state, lossy=name in _LOSSY)

    def _names(self, call: Call, does: str) -> None:
        """Attributes by name: of a module they are read, and one whose name is not shown may be any."""
        if does not in ("delattr", "getattr", "hasattr", "setattr", "vars") or not call.args:
            return
        name = constant(call.args[1]) if len(call.args) > 1 else ...
        if isinstance(name, str):
            self._reads_of(call.args[0], name, call.state)
            if does == "hasattr":
                self._some_day(call.state, lambda state: self._looks_for(call, name, state))
            if does == "delattr":
                self._deletes(call.args[0], name, call.site, call.state)
        elif does in ("delattr", "setattr"):
            self._note(Why.STORES, "", call.site, call.state)
        elif any(not isinstance(a, Const | Tensor) for a in call.args[0]):
            self._is_unshown(does, call.site, call.state)

    def _looks_for(self, call: Call, name: str, state: State) -> None:
        """An attribute is asked for, which a method or a property of the program may give."""
        for atom in call.args[0]:
            if isinstance(atom, Ref) and isinstance(state.get(atom), Instance | Class):
                self.attribute((atom,), name, state, Frame(call.frame.scope, call.frame.module, tries=1), call.site)

    def _deletes_attributes(self, node: ir.Delete, state: State, frame: Frame) -> None:
        site = Site(frame.module, node.ordinal)
        for target in node.targets:
            if isinstance(target, ir.Attr):
                for current, owner in self.eval(target.value, state.clone(), frame):
                    self._deletes(owner, target.attr, site, current)

    def _deletes(self, owner: Value, attr: str, site: Site, state: State) -> None:
        for atom in owner:
            found = state.get(atom) if isinstance(atom, Ref) else None
            match atom, found:
                case Ref(), Class(scope=scope):
                    self._stores_into(scope.address, site, state, lossy=True)
                case Ref(address=address), Scope():
                    self._stores_into((address, attr), site, state, lossy=True)
                case Ref(address=address), Instance() | LibraryObject():
                    self._stores_into(address, site, state, lossy=True)
                case _:
                    self._note(Why.STORES, "", site, state)

    def delete_item(self, owner: Value, key: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``del owner[key]``, which changes the owner."""
        for atom in owner:
            self._changes_item(atom, "__delitem__", site, state)
        return super().delete_item(owner, key, state, frame, site)


def _is_given(atom: Atom) -> bool:
    """Whether a value is what a call gave, of which nothing more is known: it may be a view of an array."""
    return isinstance(atom, Unknown) and isinstance(atom.sym, tuple) and atom.sym[:1] == ("call",)


def _is_variable(address: Hashable) -> bool:
    """Whether something is a variable of a module, which each process has under the same address."""
    match address:
        case (("module", str()), str()):
            return True
    return False


def _target(node: ir.AugAssign) -> str:
    """What an operator changes, as far as one word says it."""
    match node.target:
        case ir.Name(id=name) | ir.Attr(attr=name):
            return name
    return "an item"
