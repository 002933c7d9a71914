"""Values that cross to another process: what is in them, and what arrives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum

from cudalint.machine.classes import defines, lineage
from cudalint.machine.frame import Frame
from cudalint.machine.gpu_memory import placed_tensor
from cudalint.machine.heap import (
    BY_PATH,
    ENTERED,
    REDUCERS,
    Class,
    Closure,
    Dict,
    Generator,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    Atom,
    Bound,
    Const,
    Lib,
    Member,
    Partial,
    Ref,
    Super,
    Task,
    Tensor,
    Unknown,
    Value,
    only,
    unknown,
)
from cudalint.structs import Frozen, Mutable, field, replace

_DEEPEST = 12
# How much a call is by which an object is made, where nothing else is pickled of it: a function, and what it is given.
OF_A_CALL = 2
# By these a class says what is pickled of its instances.
_HOOKS = frozenset({"__getstate__", "__reduce__", "__reduce_ex__"})


class Pickler(Enum):
    """How functions and classes travel.

    By name, as pickle does; with what surrounds them if they have no name there (dill: lambdas and local functions);
    or with the globals they name as well (cloudpickle).
    """

    NAMES = "names"
    LOCALS = "locals"
    GLOBALS = "globals"


class Carried(Frozen):
    """Something noteworthy inside a value that crosses; ``certain`` where no alternative is free of it."""

    atom: Atom
    what: str
    origin: Chain | None
    certain: bool
    device: str = ""

    memory: Tensor | None = None

    @property
    def is_shared(self) -> bool:
        """Whether the receiver sees the memory of the sender, as far as this is memory of a GPU."""
        return not isinstance(self.atom, Tensor) or self.atom.is_shared

    @property
    def is_picklable(self) -> bool:
        """Whether it can cross at all."""
        return self.what != "unpicklable" and (not isinstance(self.atom, Tensor) or self.atom.is_picklable)

    @property
    def is_received(self) -> bool:
        """Whether it lies in memory that another process shared, which cannot be shared again."""
        return self.memory is not None and self.memory.received


# The field of an object whose contents another process holds: what is pickled of it is where that is.
ELSEWHERE = "<elsewhere>"
# The field of what has taken the place of a function, under its name.
DISPATCHES = "<dispatches>"
# The fields of bytes that hold what a program pickled into them, and how: they cross as they are.
PICKLED = "<pickled>"
PICKLER = "<pickler>"
# What is said of GPU memory that was received and is sent on.
SENT_ON = ": it was received from another process, and only a copy of it can be sent on (clone())"


def carried(value: Value, state: State, pickler: Pickler, depth: int = 0) -> Iterator[Carried]:
    """GPU values, unpicklable objects and locks reached from a value; functions' globals if pickled by value.

    ``depth`` is how deep the value itself lies in what crosses.
    """
    seen: set[Hashable] = set()
    stack: list[tuple[Value, bool, int]] = [(value, True, depth)]
    while stack:
        current, certain, depth = stack.pop()
        if depth > _DEEPEST:
            continue
        notes = {found.what for atom in current if (found := _noteworthy(atom, state, certain)) is not None}
        alike = len(notes) == 1 and all(_noteworthy(atom, state, certain) is not None for atom in current)
        sure = certain and (len(current) == 1 or alike or _all_carry(current, state, pickler, depth))
        for atom in current:
            found = _noteworthy(atom, state, sure)
            if found is not None:
                yield found
            key = atom.address if isinstance(atom, Ref) else None
            if key is not None:
                if key in seen:
                    continue
                seen.add(key)
            stack.extend((v, sure, depth + 1) for v in _inside(atom, state, pickler))


def _all_carry(value: Value, state: State, pickler: Pickler, depth: int) -> bool:
    """Whether each alternative holds something noteworthy for certain: then so does the value."""
    if depth > 2:
        return False
    return all(any(c.certain for c in carried((atom,), state, pickler, depth + 1)) for atom in value)


def _noteworthy(atom: Atom, state: State, certain: bool) -> Carried | None:
    match atom:
        case Tensor(device=device, origin=origin, type=kind) if device.is_gpu:
            return Carried(atom, kind, origin, certain, memory=atom)
        case Unknown(sym=sym) if sym in state.placed:
            memory = state.placed[sym]
            return Carried(atom, "model", memory.origin, certain, memory=memory)
        case Ref():
            found = state.get(atom)
            if isinstance(found, LibraryObject) and found.fields.get("<pickle>") == (Const("never"),):
                return Carried(atom, "unpicklable", found.origin, certain)
            if isinstance(found, LibraryObject) and "<lock>" in found.fields:
                return Carried(atom, "lock", found.origin, certain)
            placed = placed_tensor(atom, state)
            if placed is not None:
                return Carried(atom, "model", placed.origin, certain, memory=placed)
    return None


def what_runs(found: Object | None, state: State) -> str | None:
    """Whether an object is a function that goes on where it stands, which no pickler takes; in words."""
    match found:
        case Generator(closure=closure):
            made = state.get(closure)
            waits = isinstance(made, Closure) and made.function.is_async and not made.function.is_generator
            return "a coroutine" if waits else "a generator"
        case Sequence(kind="iterator"):
            return "a generator"
    return None


def _inside(atom: Atom, state: State, pickler: Pickler) -> list[Value]:
    match atom:
        case Bound(may_be_data=True):
            return []
        case Bound(function=function, receiver=receiver):
            return [(receiver,), *([] if pickler is Pickler.NAMES else [(function,)])]
        case Partial(function=function, args=args, kwargs=kwargs):
            return [as_called(function), *args, *(v for _, v in kwargs)]
        case Task(function=function, args=args, kwargs=kwargs):
            return [as_called(function), *args, *(v for _, v in kwargs)]
        case Ref():
            return _inside_object(atom, state, pickler)
    return []


def as_called(function: Value) -> Value:
    """What is called is a function, also where no model says so."""
    return tuple(replace(atom, may_be_data=False) if isinstance(atom, Bound) else atom for atom in function)


def _inside_object(ref: Ref, state: State, pickler: Pickler) -> list[Value]:
    found = state.get(ref)
    match found:
        case Instance() if pickles_itself(found, state):
            return []
        case Instance(attributes=attributes):
            return [v for name, v in attributes.items() if name != "<memory>"]
        case LibraryObject(fields=fields) if ELSEWHERE in fields or PICKLED in fields:
            return []
        case LibraryObject(fields=fields):
            return [v for name, v in fields.items() if not name.startswith("<memory") and name != "<snapshot>"]
        case Sequence(items=items, element=element):
            return [*(items or ()), element]
        case Dict(items=entries, element=element):
            return [*entries.values(), element]
        case Closure() if pickler is Pickler.GLOBALS or (pickler is Pickler.LOCALS and "<" in found.address[1]):
            return captured(found, state, pickler)
    return []


def pickles_itself(instance: Instance, state: State) -> bool:
    """Whether a class says itself what is pickled, or a function that was registered for it."""
    return has_reducer(instance.cls, state) or any(defines(cls, _HOOKS, state) for cls in lineage(instance.cls, state))


def reduces_itself(instance: Instance, state: State) -> bool:
    """Whether a class says of which call its instances are made, or a function that was registered for it."""
    reducers = _HOOKS - {"__getstate__"}
    return has_reducer(instance.cls, state) or any(
        defines(cls, reducers, state) for cls in lineage(instance.cls, state)
    )


def has_reducer(kind: Ref | str, state: State) -> bool:
    """Whether a function was registered (``copyreg.pickle``) by which objects of a class are pickled."""
    return reducer_of(kind, state) is not None


def reducer_of(kind: Ref | str, state: State) -> Value | None:
    """The function that was registered for objects of a class."""
    found = state.get(REDUCERS)
    return found.items.get(kind) if isinstance(found, Dict) else None


def register_reducer(kinds: Value, function: Value, state: State) -> None:
    """From now on, this process pickles the objects of a class by a function."""
    found = state.get(REDUCERS)
    known = found.items if isinstance(found, Dict) else {}
    made: dict[Hashable, Value] = {k: function for atom in kinds if (k := _kind_of(atom)) is not None}
    state.store(REDUCERS, Dict({**known, **made}))


def _kind_of(atom: Atom) -> Ref | str | None:
    """A class of the program, or the name of a library's, also as the type of what that gives."""
    match atom:
        case Ref():
            return atom
        case Lib(path=path):
            return path
        case Unknown(sym=("type", (Unknown(sym=("call", _, _, _, str(path), *_)),))):
            return path
        case Unknown(sym=("type", Unknown(sym=("call", _, _, _, str(path), *_)))):
            return path
    return None


def captured(closure: Closure, state: State, pickler: Pickler = Pickler.GLOBALS) -> list[Value]:
    """The variables a function reads from around itself that its pickler takes along."""
    result: list[Value] = [v for _, v in closure.defaults]
    local = closure.function.local_names
    scope: Ref | None = closure.scope
    wanted = set(closure.function.words) - local
    while scope is not None and isinstance(found := state.get(scope), Scope):
        if found.kind != "class" and not (found.kind == "module" and pickler is Pickler.LOCALS):
            for name in sorted(wanted & found.variables.keys()):
                result.append(found.variables[name])
                wanted.discard(name)
        scope = found.parent
    return result


def reachable(value: Value, state: State) -> Iterator[Ref]:
    """Every object that pickling a value would visit."""
    return (atom for atom in visited(value, state) if isinstance(atom, Ref))


def visited(value: Value, state: State) -> Iterator[Atom]:
    """Everything that pickling a value would visit."""
    return reached(value, lambda atom: inside_of(atom, state))


def inside_of(atom: Atom, state: State) -> list[Value]:
    """The values that pickling an atom would visit next."""
    return _inside(atom, state, Pickler.NAMES)


def reached(atoms: Iterable[Atom], inside: Callable[[Atom], Iterable[Value]]) -> Iterator[Atom]:
    """Some values and all that lies in them, each object once; it is asked what lies in one after that was given."""
    seen: set[Hashable] = set()
    stack = list(atoms)
    while stack:
        atom = stack.pop()
        if isinstance(atom, Ref):
            if atom.address in seen:
                continue
            seen.add(atom.address)
        yield atom
        stack.extend(a for v in inside(atom) for a in v)


# How deep objects that say of which call they are made lie in what those calls are given: one may be given another of
# its own kind each time, which Python follows until it gives up.
MOST_REDUCING = 4


class Transfer(Mutable):
    """Copies values into the state of another process.

    Functions and classes are looked up by name in the modules of the target, unless the pickler takes them along.
    ``lost`` names what could not be found there, ``unfound`` what is of a module that is not found there, ``refused``
    what says itself, by raising, that it is not pickled; where ``copied``, no GPU memory is shared. ``asked``: what
    classes say of their instances was asked before, by another pickler. ``reducing``: how many calls by which objects
    are made are being copied, each within another.
    """

    machine: Machine
    source: State
    target: State
    pickler: Pickler
    owner: tuple[str, ...]
    memo: dict[Hashable, Ref] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    unfound: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    copied: bool = False
    asked: bool = False
    reducing: int = 0

    def value(self, value: Value) -> Value:
        """All alternatives."""
        return tuple(self.atom(atom) for atom in value)

    def atom(self, atom: Atom) -> Atom:
        """One alternative; GPU memory belongs to the receiving process afterwards."""
        match atom:
            case Tensor():
                return self._received(atom)
            case Unknown(sym=sym):
                if sym in self.source.placed:
                    self.target.placed[sym] = self._received(self.source.placed[sym])
                return atom
            case Ref():
                return self._object(atom)
            case Const(value=Member() as member):
                cls = self.atom(member.cls)
                return Const(replace(member, cls=cls)) if isinstance(cls, Ref) else atom
            case Const(member=Member() as member):
                cls = self.atom(member.cls)
                return replace(atom, member=replace(member, cls=cls) if isinstance(cls, Ref) else None)
            case Bound(function=function, receiver=receiver):
                return replace(atom, function=self.atom(function), receiver=self.atom(receiver))
            case Partial(function=function, args=args, kwargs=kwargs):
                return Partial(self.value(function), self._values(args), self._named(kwargs))
            case Task(function=function, args=args, kwargs=kwargs):
                return Task(self.value(function), self._values(args), self._named(kwargs))
            case Super():
                return unknown("super")[0]
        return atom

    def _received(self, tensor: Tensor) -> Tensor:
        return replace(tensor, owner=self.owner, received=tensor.device.is_gpu and tensor.is_shared and not self.copied)

    def _key(self, key: Hashable) -> Hashable:
        return self.atom(key) if isinstance(key, Ref) else key

    def _values(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self.value(v) for v in values)

    def _named(self, values: tuple[tuple[str, Value], ...]) -> tuple[tuple[str, Value], ...]:
        return tuple((k, self.value(v)) for k, v in values)

    def _object(self, ref: Ref) -> Atom:
        if ref.address in self.memo:
            return self.memo[ref.address]
        found = self.source.get(ref)
        match found:
            case Closure():
                return self._function(ref, found)
            case Class():
                return self._class(ref, found)
            case Instance():
                made_there = None if self.asked else self._made_by_call(ref, found)
                return made_there or self._instance(ref, found)
            case LibraryObject(fields=fields) if PICKLED in fields:
                return self._bytes(ref, found)
            case LibraryObject():
                if (named := self._as_function(found)) is not None:
                    return named
                made = self._reserve(ref)
                fields = {k: v if k == "<snapshot>" else self.value(v) for k, v in found.fields.items()}
                self.target.store(made, replace(found, fields=fields))
                return made
            case Sequence():
                made = self._reserve(ref)
                items = None if found.items is None else self._values(found.items)
                self.target.store(made, replace(found, items=items, element=self.value(found.element)))
                return made
            case Dict():
                made = self._reserve(ref)
                entries = {self._key(k): self.value(v) for k, v in found.items.items()}
                element, factory = self.value(found.element), self.value(found.factory)
                self.target.store(made, replace(found, items=entries, element=element, factory=factory, view=None))
                return made
            case Scope(kind="module"):
                return ref
            case Generator() | Scope() | None:
                return unknown("lost", ref.address)[0]
        return ref

    def _bytes(self, ref: Ref, found: LibraryObject) -> Ref:
        """Bytes that a program pickled: another pickler chose what is in them, and they are the receiver's own."""
        made, pickler, copied, asked = self._reserve(ref), self.pickler, self.copied, self.asked
        named = only(found.fields[PICKLER])
        self.pickler = Pickler(named.value) if isinstance(named, Const) else pickler
        self.copied = self.asked = True
        self.target.store(made, replace(found, fields={**found.fields, PICKLED: self.value(found.fields[PICKLED])}))
        self.pickler, self.copied, self.asked = pickler, copied, asked
        return made

    def _instance(self, ref: Ref, found: Instance) -> Ref:
        made = self._reserve(ref)
        cls = self._class(found.cls, self.source.get(found.cls))
        kept = cls if isinstance(cls, Ref) else found.cls
        given = None if self.asked else self._state_of(ref, found)
        attributes = self._attributes(found) if given is None else self._as_attributes(given)
        taken = (
            None
            if self.asked or not isinstance(cls, Ref)
            else self._taken(made, replace(found, cls=cls), given, attributes)
        )
        if taken is None:
            self.target.store(made, replace(found, cls=kept, attributes=attributes))
        return made

    def _made_by_call(self, ref: Ref, instance: Instance) -> Ref | None:
        """What the call makes in the target that an object's class says it is made by, where that is seen."""
        given = self._reduction_of(ref, instance)
        parts = self.target.get(atom) if isinstance(atom := only(given), Ref) else None
        if not isinstance(parts, Sequence) or len(parts.items or ()) != OF_A_CALL:
            return None
        function, told = parts.items or ((), ())
        args = self.target.get(atom) if isinstance(atom := only(told), Ref) else None
        if not isinstance(args, Sequence) or args.items is None:
            return None
        site = self._site(instance.site.module)
        results = self.machine.call_value(function, list(args.items), {}, self.target, self._frame(site), site)
        made = only(results[0][1]) if len(results) == 1 else None
        if not isinstance(made, Ref):
            return None
        self.target.become(results[0][0])
        self.memo[ref.address] = made
        return made

    def _reduction_of(self, ref: Ref, instance: Instance) -> Value:
        """The call that ``__reduce__``, or a function that was registered for the class, gives; in the target."""
        registered = reducer_of(instance.cls, self.source)
        hook = self.machine.user_method(instance, "__reduce__", self.source)
        function = registered or ((Bound(hook, ref),) if isinstance(hook, Ref) else None)
        if function is None or self.reducing >= MOST_REDUCING:
            return ()
        site, source = self._site(instance.site.module), self.source
        given: list[Value] = [] if registered is None else [(ref,)]
        results = self.machine.call_value(function, given, {}, source.clone(), self._frame(site), site)
        if len(results) != 1:
            return ()
        self.source, value = results[0]
        self.reducing += 1
        made = self.value(value)
        self.reducing -= 1
        self.source = source
        return made

    def _state_of(self, ref: Ref, instance: Instance) -> Value | None:
        """What ``__getstate__`` gives, in the target; None where the class has none that is seen to give something."""
        hook = self.machine.user_method(instance, "__getstate__", self.source)
        if not isinstance(hook, Ref):
            return None
        site, source = self._site(instance.site.module), self.source
        frame = self._frame(site)
        results = self.machine.call_value((Bound(hook, ref),), [], {}, source.clone(), frame, site)
        if not results and frame.raises:
            cls = source.get(instance.cls)
            self.refused.append(f"an object of {cls.name}" if isinstance(cls, Class) else "an object")
        if len(results) != 1:
            return None
        self.source, given = results[0]
        made = self.value(given)
        self.source = source
        return made

    def _as_attributes(self, given: Value) -> dict[str, Value]:
        atom = only(given)
        found = self.target.get(atom) if isinstance(atom, Ref) else None
        return {str(k): v for k, v in found.items.items()} if isinstance(found, Dict) else {}

    def _taken(self, made: Ref, instance: Instance, given: Value | None, attributes: dict[str, Value]) -> Ref | None:
        """What ``__setstate__`` makes of it in the target; None where the class has none."""
        hook = self.machine.user_method(instance, "__setstate__", self.target)
        if not isinstance(hook, Ref):
            return None
        self.target.store(made, replace(instance, attributes={}))
        items: dict[Hashable, Value] = dict(attributes.items())
        state = given or (self.target.new(("state", made.address), Dict(items)),)
        site = self._site(instance.site.module)
        results = self.machine.call_value((Bound(hook, made),), [state], {}, self.target, self._frame(site), site)
        if results:
            self.target.become(results[0][0])
        return made

    def _site(self, module: str) -> Site:
        launch = self.target.process.launch
        return Site(module, 0) if launch is None else launch.anchor

    def _frame(self, site: Site) -> Frame:
        return Frame(Ref(("module", site.module)), site.module)

    def _attributes(self, instance: Instance) -> dict[str, Value]:
        """An object's attributes; a class that says itself how it pickles knows how to send a local function."""
        pickler = self.pickler
        if pickler is Pickler.NAMES and pickles_itself(instance, self.source):
            self.pickler = Pickler.LOCALS
        made = {k: self.value(v) for k, v in instance.attributes.items()}
        self.pickler = pickler
        return made

    def _reserve(self, ref: Ref) -> Ref:
        made = Ref(("sent", ref.address, self.owner))
        self.memo[ref.address] = made
        return made

    def _function(self, ref: Ref, closure: Closure) -> Atom:
        if not self._goes_by_value(closure.module):
            if self.pickler is Pickler.NAMES and (module := self._left_behind(closure.address[0])) is not None:
                self.unfound.append(f"{closure.address[1]} of the module {module}")
            found = self._by_name(*closure.address)
            if found is not None:
                return found
            if self.pickler is Pickler.NAMES:
                self.lost.append(closure.address[1])
                return unknown("lost", ref.address)[0]
        made = self._reserve(ref)
        scope = self._scope(closure.scope, closure)
        defaults = tuple((k, self.value(v)) for k, v in closure.defaults)
        owner = closure.owner
        own = None if closure.own is None else self._object(closure.own)
        kept = own if isinstance(own, Ref) else None
        # What a manager around it does is left out: one that is made of a generator does not travel by value.
        self.target.store(made, replace(closure, scope=scope, defaults=defaults, owner=owner, managed=(), own=kept))
        return made

    def _left_behind(self, home: str) -> str | None:
        """The name of a module that was imported by its path, and that only the sending process has under that name.

        What has the name of its file may lie where modules are looked for.
        """
        known, theirs = (state.get(BY_PATH) for state in (self.source, self.target))
        name = only(known.items.get(home, ())) if isinstance(known, Dict) else None
        has = isinstance(theirs, Dict) and (ENTERED, home) in theirs.items
        if has or not isinstance(name, Const) or str(name.value).rpartition(".")[2] == home.rpartition(".")[2]:
            return None
        return str(name.value)

    def _as_function(self, found: LibraryObject) -> Atom | None:
        """What has taken a function's place goes by its name: ``@singledispatch``, with all that is registered."""
        wrapped = only(found.fields.get(DISPATCHES, ()))
        closure = self.source.get(wrapped) if isinstance(wrapped, Ref) else None
        if not isinstance(closure, Closure) or self._goes_by_value(closure.module):
            return None
        return self._by_name(*closure.address)

    def _goes_by_value(self, module: str) -> bool:
        """Whether functions and classes of a module travel as they are: cloudpickle sends those of main so."""
        return self.pickler is Pickler.GLOBALS and module == self.machine.main

    def _scope(self, ref: Ref, closure: Closure) -> Ref:
        """The variables around a function that travels by value: only those it names."""
        found = self.source.get(ref)
        if not isinstance(found, Scope):
            return ref
        if found.kind == "module" and self.pickler is Pickler.LOCALS:
            self._import(found.module)
            return ref
        made = Ref((Pickler.GLOBALS.value, ref.address, self.owner))
        parent = None if found.parent is None else self._scope(found.parent, closure)

        def known() -> dict[str, Value]:
            """What is there by now: functions that a variable leads to add theirs to the same scope."""
            there = self.target.get(made)
            return there.variables if isinstance(there, Scope) else {}

        def put(variables: dict[str, Value]) -> None:
            self.target.store(made, Scope({**known(), **variables}, parent, found.module, found.kind, found.outside))

        put({})
        for name in sorted((closure.function.words & found.variables.keys()) - known().keys()):
            if name not in known():
                put({name: unknown("recursive", name)})
                put({name: self.value(found.variables[name])})
        return made

    def _class(self, ref: Ref, found: object) -> Atom:
        if not isinstance(found, Class):
            return ref
        if ref.address in self.memo:
            return self.memo[ref.address]
        if not self._goes_by_value(found.module):
            by_name = self._by_name(found.module, found.qualname)
            if by_name is not None:
                return by_name
            if self.pickler is Pickler.NAMES:
                self.lost.append(found.qualname)
                return unknown("lost", ref.address)[0]
        made = self._reserve(ref)
        scope = self.source.get(found.scope)
        inner = Ref(("class scope", found.scope.address, self.owner))
        self.target.store(made, replace(found, scope=inner, bases=tuple(self.value(b) for b in found.bases)))
        if isinstance(scope, Scope):
            variables: dict[str, Value] = {}
            self.target.store(inner, Scope(variables, None, scope.module, "class"))
            for name, value in scope.variables.items():
                variables[name] = self.value(value)
            for value in variables.values():
                for atom in value:
                    if isinstance(atom, Ref) and isinstance(method := self.target.get(atom), Closure):
                        self.target.store(atom, replace(method, owner=made))
        return made

    def _by_name(self, module: str, qualname: str) -> Atom | None:
        """What ``module.qualname`` is in the target."""
        if "<" in qualname or self._is_of_kernel(module):
            return None
        self._import(module)
        self.machine.finds_by_name(module, qualname.partition(".")[0], self.target)
        scope = self.target.get(Ref(("module", module)))
        value: Value | None = None
        for part in qualname.split("."):
            if not isinstance(scope, Scope) or part not in scope.variables:
                return None
            value = scope.variables[part]
            atom = only(value)
            inner = self.target.get(atom) if isinstance(atom, Ref) else None
            scope = self.target.get(inner.scope) if isinstance(inner, Class) else None
        return None if value is None else only(value)

    def _is_of_kernel(self, module: str) -> bool:
        """Whether what a module defines is the main module's of a kernel, of which a fresh process knows nothing."""
        return not self.target.process.forked and self.machine.program.is_run_in(self.machine.main, module)

    def _import(self, module: str) -> None:
        """Unpickling something by name imports its module, where the process has not done so before."""
        if self.target.get(Ref(("module", module))) is not None or self.machine.program.module(module) is None:
            return
        site = self._site(module)
        frame = self._frame(site)
        states = self.machine.load(module, self.target, frame, site)
        for _, raised in frame.raises:
            if raised.outcome is not None:
                self.machine.emit(raised.outcome)
        if states:
            self.target.become(states[0][0])
