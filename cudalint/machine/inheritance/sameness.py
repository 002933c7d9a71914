"""Whether a variable holds the same in two processes: what a fork would have inherited, and what a fresh import makes.

Both sides must show all of what they hold. What a library keeps inside an object, what the code does not show and what
may be one thing or another is not seen to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping

from cudalint.machine.heap import (
    TAKEN_OF,
    Cache,
    Class,
    Closure,
    Dict,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.launch.pickling import is_plain
from cudalint.machine.state import State
from cudalint.machine.values import (
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
    Task,
    Unknown,
    Value,
    rest_of,
)
from cudalint.models.library import Library
from cudalint.structs import Frozen, Mutable, field

# The number of the last address of a place: whatever is made there later takes its room.
_LAST_ADDRESS = 7
# Library classes whose instances hold nothing beside their attributes.
_BARE = frozenset(
    {
        "abc.ABC", "builtins.BaseException", "builtins.Exception", "builtins.RuntimeError", "builtins.ValueError",
        "builtins.object", "cudalint.enum", "cudalint.record", "enum.Enum", "enum.Flag", "enum.IntEnum", "enum.StrEnum",
        "torch.utils.data.Dataset", "torch.utils.data.IterableDataset", "typing.Generic", "typing.NamedTuple",
        "typing.Protocol",
    }
)  # fmt: skip
# Libraries whose names are constants, types and functions, not what a process is about.
_CONSTANT = frozenset({"cmath", "datetime", "enum", "math", "numpy", "operator", "re", "string", "torch", "typing"})
# The name of the main module in a process that was started afresh.
MAIN_OF_CHILDREN = "__mp_main__"
_FROM_CASTS = frozenset({"int", "str", "float", "bool"})


class Difference(Frozen):
    """Where two sides are not seen to be the same; ``hidden`` where that is because the code does not show it.

    ``named`` where only the name of the main module differs, which is another one in a fresh process.
    """

    path: str
    hidden: bool
    named: bool = False


class Comparison(Mutable):
    """Compares variables of a process with those of another; what was compared once is not looked at again.

    ``names_loggers`` says whether messages show the names of their loggers.
    ``unsteady`` says of an address of the left side whether it was changed in a way that its content does not show.
    ``is_value`` says of a library's type whether its objects hold nothing beside the fields that are seen.
    ``sources`` are, by iterator or view, what it goes through.
    ``recomputed`` is where functions of the left side keep what they remember that the right side comes to as well.
    """

    left: State
    right: State
    unsteady: Callable[[Hashable], bool]
    is_value: Callable[[str], bool]
    sources: Mapping[Hashable, tuple[Ref, ...]] = field(default_factory=dict)
    recomputed: Collection[Hashable] = ()
    names_loggers: bool = True
    _seen: set[tuple[Hashable, Hashable]] = field(default_factory=set)

    def variables(self, one: Value, two: Value, path: str) -> Iterator[Difference]:
        """The differences between what a name holds on the two sides."""
        if len(one) != 1 or len(two) != 1:
            # One of several: which of them depends on what the code does not show.
            both = one == two and all(isinstance(a, Const | Lib | Dev) for a in one)
            yield Difference(path, hidden=both or len(one) != len(two) or set(one) == set(two))
            return
        yield from self._atoms(one[0], two[0], path)

    def _atoms(self, one: Atom, two: Atom, path: str) -> Iterator[Difference]:
        match one, two:
            case Const(value=Member() as mine), Const(value=Member() as theirs):
                yield from self._equal(mine == theirs, path)
                yield from self.variables(mine.value, theirs.value, f"{path}.value")
            case Const(value=str(mine)), Const(value=str(theirs)) if mine != theirs:
                yield Difference(path, hidden=False, named=as_main(mine) == as_main(theirs))
            case ((Const() | Lib() | Dev() | Rank() | Deferred()), _):
                yield from self._equal(one == two, path)
            case Unknown(sym=mine), Unknown(sym=theirs):
                if not follows(mine):
                    yield Difference(path, hidden=True)
                elif mine != theirs:
                    named = as_main(mine) == as_main(theirs)
                    if not (named and is_logger(mine) and not self.names_loggers):
                        yield Difference(path, hidden=not named, named=named)
            case Bound(), Bound():
                yield from self._atoms(one.function, two.function, path)
                yield from self._atoms(one.receiver, two.receiver, path)
            case ((Partial() | Task()), (Partial() | Task())) if type(one) is type(two):
                yield from self.variables(one.function, two.function, path)
                yield from self._rows(one.args, two.args, path)
                yield from self._named(dict(one.kwargs), dict(two.kwargs), path)
            case Ref(), Ref():
                yield from self._objects(one, two, path)
            case _:
                yield Difference(path, hidden=isinstance(one, Unknown) or isinstance(two, Unknown))

    def _equal(self, same: bool, path: str) -> Iterator[Difference]:
        if not same:
            yield Difference(path, hidden=False)

    def _objects(self, one: Ref, two: Ref, path: str) -> Iterator[Difference]:
        if (one.address, two.address) in self._seen:
            return
        self._seen.add((one.address, two.address))
        if one.address in self.recomputed:
            return
        if self.unsteady(one.address):
            yield Difference(path, hidden=False)
            return
        mine, theirs = self.left.get(one), self.right.get(two)
        if mine is None or theirs is None or type(mine) is not type(theirs):
            yield Difference(path, hidden=mine is None or theirs is None)
            return
        if _is_shared_address(one) and not isinstance(mine, Scope | Closure | Class):
            yield Difference(path, hidden=True)
            return
        for source, other in zip(self.sources.get(one.address, ()), self.sources.get(two.address, ()), strict=False):
            yield from self._objects(source, other, path)
        yield from self._contents(mine, theirs, path)

    def _contents(self, one: Object, two: Object, path: str) -> Iterator[Difference]:
        match one, two:
            case Scope(kind="module"), Scope():
                yield from self._equal(one.module == two.module and two.kind == "module", path)
            case Scope(), Scope():
                yield from self._named(one.variables, two.variables, path)
            case Closure(), Closure():
                yield from self._functions(one, two, path)
            case Class(), Class():
                yield from self._classes(one, two, path)
            case Instance(), Instance():
                yield from self._instances(one, two, path)
            case Sequence(), Sequence():
                yield from self._sequences(one, two, path)
            case Dict(), Dict():
                yield from self._mappings(one, two, path)
            case LibraryObject(), LibraryObject() if one.type == two.type and self.is_value(one.type):
                yield from self._named(one.fields, two.fields, path)
            case Cache(), Cache():
                yield from self._equal(not one.results and not two.results, path)
            case _:
                yield Difference(path, hidden=True)

    def _functions(self, one: Closure, two: Closure, path: str) -> Iterator[Difference]:
        place = (one.module, one.function.ordinal, one.kind, one.alias, one.compiled)
        if place != (two.module, two.function.ordinal, two.kind, two.alias, two.compiled):
            yield Difference(path, hidden=False)
            return
        yield from self._named(dict(one.defaults), dict(two.defaults), path)
        yield from self._optional(one.cache, two.cache, f"the cache of {path}")
        yield from self._optional(one.setter, two.setter, path)
        yield from self._equal(len(one.managed) == len(two.managed), path)
        for mine, theirs in zip(one.managed, two.managed, strict=False):
            yield from self._optional(mine, theirs, f"the manager around {path}")
        yield from self._around(one, two, path)

    def _around(self, one: Closure, two: Closure, path: str) -> Iterator[Difference]:
        """The variables that a local function sees around itself."""
        words = one.function.words
        mine, theirs = self.left.get(one.scope), self.right.get(two.scope)
        while isinstance(mine, Scope) and isinstance(theirs, Scope) and mine.kind != "module":
            if mine.kind == "function":
                names = {n for n in (*mine.variables, *theirs.variables) if n in words}
                yield from self._named(
                    {n: mine.variables[n] for n in sorted(names) if n in mine.variables},
                    {n: theirs.variables[n] for n in sorted(names) if n in theirs.variables},
                    path,
                )
            mine = None if mine.parent is None else self.left.get(mine.parent)
            theirs = None if theirs.parent is None else self.right.get(theirs.parent)

    def _optional(self, one: Ref | None, two: Ref | None, path: str) -> Iterator[Difference]:
        if one is not None and two is not None:
            yield from self._objects(one, two, path)
        elif one is not two:
            yield Difference(path, hidden=False)

    def _classes(self, one: Class, two: Class, path: str) -> Iterator[Difference]:
        if (one.module, one.qualname, one.site) != (two.module, two.qualname, two.site):
            yield Difference(path, hidden=False)
            return
        yield from self._rows(one.bases, two.bases, path)
        if one.meta or two.meta:
            yield from self.variables(one.meta, two.meta, path)
        yield from self._objects(one.scope, two.scope, path)

    def _instances(self, one: Instance, two: Instance, path: str) -> Iterator[Difference]:
        yield from self._objects(one.cls, two.cls, path)
        if not self._is_bare(one.cls, 0):
            yield Difference(path, hidden=True)
            return
        yield from self._named(one.attributes, two.attributes, path)

    def _is_bare(self, cls: Atom, depth: int) -> bool:
        """Whether the instances of a class hold their attributes and nothing else."""
        if isinstance(cls, Lib):
            return cls.path in _BARE
        if isinstance(cls, Bound) and isinstance(cls.function, Lib):
            return cls.function.path in _BARE or self._is_bare(cls.receiver, depth + 1)
        found = self.left.get(cls) if isinstance(cls, Ref) else None
        if not isinstance(found, Class) or depth > 10:
            return False
        return all(self._is_bare(base, depth + 1) for bases in found.bases for base in bases)

    def _sequences(self, one: Sequence, two: Sequence, path: str) -> Iterator[Difference]:
        if one.items is None or two.items is None or one.open or two.open or one.kind in TAKEN_OF:
            yield Difference(path, hidden=True)
            return
        if one.kind != two.kind:
            yield Difference(path, hidden=False)
            return
        yield from self._rows(one.items, two.items, path)

    def _mappings(self, one: Dict, two: Dict, path: str) -> Iterator[Difference]:
        if not one.exact or not two.exact or one.element or two.element:
            yield Difference(path, hidden=True)
            return
        keys = [self._known_key(k) for k in (*one.items, *two.items)]
        if not all(keys):
            yield Difference(path, hidden=True)
            return
        if list(one.items) != list(two.items):
            yield Difference(path, hidden=False)
            return
        for key, value in one.items.items():
            yield from self.variables(value, two.items[key], f"{path}[{key!r}]")
        if one.factory or two.factory:
            yield from self.variables(one.factory, two.factory, path)

    def _known_key(self, key: Hashable) -> bool:
        return isinstance(key, str | int | float | bytes | None | Member | Lib)

    def _rows(self, one: tuple[Value, ...], two: tuple[Value, ...], path: str) -> Iterator[Difference]:
        if len(one) != len(two):
            yield Difference(path, hidden=False)
            return
        for mine, theirs in zip(one, two, strict=True):
            yield from self.variables(mine, theirs, path)

    def _named(self, one: Mapping[str, Value], two: Mapping[str, Value], path: str) -> Iterator[Difference]:
        for name in {**one, **two}:
            inside = path if name.startswith("<") else f"{path}.{name}"
            if name not in one or name not in two:
                yield Difference(inside, hidden=False)
            else:
                yield from self.variables(one[name], two[name], inside)


def is_logger(sym: Hashable) -> bool:
    """Whether an unknown is a logger, of which a process has one for each name."""
    return isinstance(sym, tuple) and sym[:2] == ("follows", "logging.getLogger")


def as_main(part: Hashable) -> Hashable:
    """What something would be in the process that was started first, whose main module has its own name."""
    match part:
        case str(text):
            return text.replace(MAIN_OF_CHILDREN, "__main__")
        case Const(value=str(text)):
            return Const(text.replace(MAIN_OF_CHILDREN, "__main__"))
        case Unknown(sym=sym):
            return as_main(sym)
        case tuple():
            return tuple(map(as_main, part))
    return part


def is_bare(path: str) -> bool:
    """Whether the instances of a library's class hold nothing beside their attributes."""
    return path in _BARE


def _is_shared_address(ref: Ref) -> bool:
    """Whether several objects may lie at an address, of which only the last is seen."""
    address = ref.address
    return isinstance(address, tuple) and len(address) == 3 and address[1] == _LAST_ADDRESS


def is_counted(atom: Unknown, library: Library) -> bool:
    """Whether an unknown is plain, or a constant that a loop goes through, or computed of such."""
    match atom.sym:
        case ("next", *_):
            return True
        case ("each", _, tuple(items)):
            return all(_is_number(item, library) for item in items)
        case (("bin" | "aug" | "compare", *_), str(), tuple(left), tuple(right)):
            return all(_is_number(part, library) for part in (*left, *right))
    return is_plain(atom, library) or follows(atom.sym)


def _is_number(atom: Hashable, library: Library) -> bool:
    return isinstance(atom, Const) or (isinstance(atom, Unknown) and is_counted(atom, library))


def follows(sym: Hashable) -> bool:
    """Whether an unknown is the same in every process: it follows from constants and from what all of them share."""
    match sym:
        case ("environ", name):
            # One whose name is not shown may be any, also one that was set in between.
            return isinstance(name, str)
        case ("environment" | "__file__" | "__doc__" | "follows", *_):
            return True
        case (str(cast), inner) if cast in _FROM_CASTS or cast == "not":
            return follows(inner)
        case (inner, ".", str()) if isinstance(inner, tuple):
            return follows(inner)
        case (inner, "[]", tuple(key)) if isinstance(inner, tuple):
            return follows(inner) and known(key)
        case ("slice", *_):
            # A bound that is left out is empty.
            return all(isinstance(bound, tuple) and (not bound or known(bound)) for bound in rest_of(sym, 1))
        case ("is", str(), left, Const()):
            return known(left if isinstance(left, tuple) else (left,))
        case (("bin" | "compare" | "aug" | "joined", *_), str(), tuple(left), tuple(right)):
            return known(left) and known(right)
        case (("joined", *_), tuple(parts)):
            return all(isinstance(part, tuple) and known(part) for part in parts)
    return False


def known(value: Value) -> bool:
    """Whether a value is the same in every process in which the same code makes it, and nothing can change it."""
    if len(value) != 1:
        return False
    match value[0]:
        case Const() | Dev():
            return True
        case Lib(path=path):
            return path.partition(".")[0] in _CONSTANT and not path.startswith("torch.backends.")
        case Unknown(sym=sym):
            return follows(sym)
    return False
