"""Values of the abstract machine.

A value is a tuple of at most four *atoms*, the alternatives it may be. Atoms are immutable and compare by
what they mean; provenance inside them does not count. Unknown is never CUDA.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from cudalint.machine.short_names import shortened
from cudalint.machine.trace import Chain, Site
from cudalint.structs import Frozen, Partly, Unique, replace

# Parts of the identity of an unknown.
MOST_PARTS = 256
MOST_ALTERNATIVES = 4
# A question is about two values.
MOST_PARTS_OF_A_QUESTION = 2 * MOST_ALTERNATIVES * MOST_PARTS + 8


class Ref(Frozen):
    """An object on the heap."""

    address: Hashable


class Unknown(Partly):
    """Something the code does not show; ``sym`` identifies it: two unknowns with the same one are the same thing."""

    sym: Hashable
    # How many parts the identity is made of, where that was counted, and what in them may be addresses of objects.
    parts: int = 0
    named: frozenset[Hashable] = frozenset()

    def compared(self) -> Hashable:
        """Its identity alone."""
        return self.sym

    # Unknowns and constants are compared more often than all else.
    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Unknown and self.sym == other.sym)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.sym)


def rest_of(sym: Hashable, first: int) -> tuple[Hashable, ...]:
    """The parts of an identity from one on; none of what is no tuple."""
    return sym[first:] if isinstance(sym, tuple) else ()


class Const(Partly):
    """A Python constant; its type keeps True apart from 1.

    ``member`` is the member of an Enum of strings or numbers that it is: equal to its value, with methods of its own.
    """

    value: Hashable
    member: Member | None = None

    @property
    def kind(self) -> type:
        """The type of the value."""
        return type(self.value)

    def compared(self) -> Hashable:
        """Its value, and its type, which keeps True apart from 1."""
        return self.value, type(self.value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Const or type(self.value) is not type(other.value):
            return False
        # What is no number is itself here, though Python says that it equals nothing.
        return self.value is other.value or self.value == other.value

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)


class Other(Frozen):
    """A constant that the code does not show, and that is not this one."""

    than: Hashable


class Member(Partly):
    """A member of an Enum: a constant, the same one in every process; ``cls`` is where its methods stand."""

    module: str
    qualname: str
    name: str
    value: Value
    cls: Ref

    def compared(self) -> Hashable:
        """Where it stands."""
        return self.module, self.qualname, self.name

    def __str__(self) -> str:
        return f"{self.qualname.rpartition('.')[2]}.{self.name}"


class Lib(Frozen):
    """A module, class or function of a library, by canonical dotted name."""

    path: str


class Rank(Partly):
    """A number that differs from process to process or task to task.

    ``kind``: ``global`` and ``local`` ranks, or ``each`` (another one for each task or round); a
    ``system`` number is one by which CUDA_VISIBLE_DEVICES names a GPU. ``process`` is the one
    that has this number, and no other. ``derived``: computed or looked up from that number, so that it may be another.
    ``among``: how many ranks there are, where that is known.
    """

    kind: str
    process: tuple[str, ...] | None = None
    derived: bool = False
    among: int | None = None
    # The only numbers that it is, each in some task, where these are known.
    numbers: frozenset[int] | None = None

    def compared(self) -> Hashable:
        """All but how many there are."""
        return self.kind, self.process, self.derived, self.numbers


Index = int | Rank | None


class Dev(Frozen):
    """A device; an index of None is the current one of its kind. ``text``: it is the text that names one."""

    kind: str
    index: Index = None
    text: bool = False

    @property
    def is_gpu(self) -> bool:
        """Whether using it means using CUDA."""
        return self.kind == "cuda"


class Tensor(Frozen):
    """An array of a framework on a device; ``owner`` is the process that made it.

    ``received``: it lies in memory that another process shared, which this one cannot share again. ``part``: it is a
    parameter or a buffer, and moves with the module that holds it.
    """

    framework: str
    device: Dev
    owner: tuple[str, ...]
    origin: Chain | None = None
    type: str = "torch.Tensor"
    received: bool = False
    part: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether a process that it is sent to sees the same memory: torch sends a handle, other libraries a copy."""
        return self.framework == "torch"

    @property
    def is_picklable(self) -> bool:
        """Whether it can be pickled at all."""
        return self.framework != "numba"

    @property
    def computed(self) -> Tensor:
        """What is computed with it: on its device, in memory of this process."""
        return replace(self, received=False, part=False) if self.received or self.part else self

    @property
    def viewed(self) -> Tensor:
        """What shows the same memory, as a row of it does."""
        return replace(self, part=False) if self.part else self


class Bound(Frozen):
    """A function bound to its first argument.

    ``may_be_data``: an attribute of an object of a library that no model describes; as long as it is not called, it
    need be no function.
    """

    function: Atom
    receiver: Atom
    may_be_data: bool = False


class Partial(Frozen):
    """``functools.partial`` and everything that behaves like it."""

    function: Value
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]


class Super(Frozen):
    """``super(cls, receiver)``: attributes are looked up after ``cls`` among the classes of the receiver."""

    cls: Ref | Lib
    receiver: Atom


class Task(Frozen):
    """``delayed(f)(args)``: a call to be made in a worker."""

    function: Value
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]


class Deferred(Frozen):
    """A module of the project, or a name in it, that runs when it is first used; ``site`` imports it.

    ``covered`` is what the name stands for unless the module, a package that is not seen, defines it as well; or, where
    nothing but the failed import of ``lacked`` binds it, what it stands for where that package is not installed.
    """

    module: str
    name: str | None
    site: Site
    covered: Atom | None = None
    lacked: str = ""


class Snapshot(Unique):
    """The state a worker forked from, kept with the object that started it."""

    # A ``State``, which is made of values.
    state: Any


Atom = Deferred | Snapshot | Unknown | Const | Other | Lib | Rank | Dev | Tensor | Ref | Bound | Partial | Super | Task
Value = tuple[Atom, ...]

NONE: Value = (Const(None),)
TRUE: Value = (Const(True),)
FALSE: Value = (Const(False),)
# What libraries make of texts that stand for a truth (as ``distutils.util.strtobool`` did), in lower case.
TRUTHS = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}
EACH: Value = (Rank("each"),)
CPU = Dev("cpu")
# The identity of a ``torch.device`` of which the code does not show what it is.
DEVICE = "torch.device"


def const(value: Hashable) -> Value:
    """The value of a constant."""
    return (Const(value),)


def unknown(*sym: Hashable) -> Value:
    """An unknown value with this identity; of one that is made of very much, large parts go by a short name.

    Identities hold one another, some twice: to compare those of a long calculation would cost two to its length. A
    question keeps what it is about whole: what is known of that answers it.
    """
    most = MOST_PARTS if sym[:1] not in _QUESTIONS else MOST_PARTS_OF_A_QUESTION
    named: set[Hashable] = set()
    parts = _measure(sym, named)
    if parts >= most:
        sym = tuple(part if _measure(part, set()) < MOST_PARTS // 8 else shortened(part) for part in sym)
        named = set()
        parts = _measure(sym, named)
    if parts > most:
        return (Unknown(sym),)
    return (Unknown(sym, parts, frozenset(named) if named else _NOTHING),)


# What the identity of a question begins with: of two things, and of another question.
_QUESTIONS = (("is",), ("not",))
_NOTHING: frozenset[Hashable] = frozenset()


def _measure(sym: object, named: set[Hashable]) -> int:
    """How many parts an identity is made of, counted as far as it matters; what may be an address in it is noted.

    The parts of an unknown value in it were mostly counted before.
    """
    while isinstance(sym, Unknown):
        if sym.parts:
            named |= sym.named
            return sym.parts
        sym = sym.sym
    match sym:
        case tuple():
            if len(sym) == 3 and isinstance(sym[1], int):
                named.add(sym)
        case Ref(address=address) | Bound(receiver=Ref(address=address)):
            named.add(address)
            return 1
        case Const(value=tuple() as value):
            _measure(value, named)
            return 1
        case _:
            return 1
    count = 1
    for part in sym:
        count += 1 if type(part) in _SINGLE else _measure(part, named)
        if count > MOST_PARTS_OF_A_QUESTION:
            break
    return count


# The type of what an object such as an optimizer keeps: tensors, or mappings and lists of them.
STATE = "torch.state"
# By these modules are moved to a device, and stay the objects that they are.
IN_PLACE = frozenset({"cpu", "cuda", "to"})
# What a library made of a function that runs in a process of its own: a function, which methods are made of, too.
ISOLATED = Lib("cudalint.isolated")
# The version of the Python that runs the program.
PYTHON_VERSION = Lib("sys.version_info")
PYTHON_MINOR = Lib("sys.version_info.minor")
# What a variable is that was deleted: unknown(DELETED, where).
DELETED = "deleted"
# What stands for the alternatives that are left out: not one thing, and no other value is the same.
JOINED = Unknown("joined")
# What an unknown class made of an object on a GPU: unknown(HOLDS, its memory, the class, ...).
HOLDS = "holds"
# What an unknown class keeps that is told of a GPU, for others to read: unknown(TELLS, the class, ...).
TELLS = "tells"
# What an unknown function made of a function that it was given: unknown("call", ..., (WRAPS, the function)).
WRAPS = "wraps"
# The library that the object comes from of which a method gave something: unknown("call", ..., (COMES_FROM, its name)).
COMES_FROM = "comes-from"
# What a method gave that is the object itself if that is a tensor, or a view of it: unknown("call", ..., (VIEWS, it)).
VIEWS = "views"
# What an identity is mostly made of, besides others of its kind.
_SINGLE = frozenset({str, int, bool, type(None)})


def union(values: Iterable[Value]) -> Value:
    """Alternatives joined; more than four become unknown."""
    atoms: dict[Atom, None] = {}
    for value in values:
        for atom in value:
            atoms.setdefault(atom)
    if len(atoms) <= MOST_ALTERNATIVES:
        return tuple(atoms)
    kept = [a for a in atoms if isinstance(a, Ref | Tensor | Bound | Partial | Task | Dev)]
    if 0 < len(kept) < MOST_ALTERNATIVES:
        return (*kept, JOINED)
    return (JOINED,) if not kept else (*kept[: MOST_ALTERNATIVES - 1], JOINED)


def only(value: Value) -> Atom | None:
    """The one atom of a value that has no alternatives."""
    return value[0] if len(value) == 1 else None


def holds_deferred(value: Value) -> bool:
    """Whether an import that is waiting is among the alternatives."""
    # Asked of each name that is read: ``any`` would take three times as long.
    for atom in value:  # noqa: SIM110
        if isinstance(atom, Deferred):
            return True
    return False


def is_deleted(value: Value) -> bool:
    """Whether a variable was deleted, and not bound again."""
    match value:
        case (Unknown(sym=(str(kind), *_)),):
            return kind == DELETED
    return False


def is_device(atom: Atom) -> bool:
    """Whether a value is certainly a device, and no text that names one."""
    match atom:
        case Dev(text=text):
            return not text
        case Unknown(sym=(str(kind), _)):
            return kind == DEVICE
    return False


def wrapped(atom: Atom) -> Atom | None:
    """The function that a call of this one runs, where something that nobody knows was made of it: ``retry(f)``."""
    match atom:
        case Unknown(sym=("call", *_, (str(kind), function))) if kind == WRAPS:
            return function if isinstance(function, Ref | Bound | Partial | Unknown) else None
    return None


def origin(sym: Hashable) -> str | None:
    """The package that an unknown object comes from, or that which it is a part of, or a method of that gave it."""
    while isinstance(sym, tuple) and len(sym) == 3 and sym[1] in _PARTS:
        sym = sym[0].sym if isinstance(sym[0], Unknown) else sym[0]
    match sym:
        case Lib(path=path) | ("call", _, _, _, str(path), *_):
            return path.partition(".")[0]
        case ("call" | "array", *_, (str(kind), str(package))) if kind == COMES_FROM:
            return package
    return None


_PARTS = (".", "[]")


def constant(value: Value) -> Hashable:
    """The Python constant a value certainly is; ``...`` where it is none."""
    atom = only(value)
    return atom.value if isinstance(atom, Const) else ...


# What is known of an object of no class of its own: that it is itself, and nothing else.
SENTINEL = "sentinel"


def is_sentinel(atom: Atom) -> bool:
    """Whether a program made something only to compare others with it: ``object()``."""
    match atom:
        case Unknown(sym=("call", _, _, str(kind))):
            return kind == SENTINEL
        case Lib(path=path):
            return path in _SENTINELS
    return False


# Names of Python's own that stand for nothing but what is not there.
_SENTINELS = frozenset({"dataclasses.MISSING", "inspect.Parameter.empty", "inspect.Signature.empty"})


# What something unknown is known by that was computed with arrays: an array or a number, and certainly no module.
ARRAY = "array"


def is_array(sym: Hashable) -> bool:
    """Whether something unknown was computed with arrays."""
    return isinstance(sym, tuple) and sym[:1] == (ARRAY,)


def member_of(atom: Atom | None) -> Member | None:
    """The member of an Enum that something is."""
    if not isinstance(atom, Const):
        return None
    return atom.value if isinstance(atom.value, Member) else atom.member


def strings(value: Value) -> list[str]:
    """The string alternatives of a value."""
    return [a.value for a in value if isinstance(a, Const) and isinstance(a.value, str)]


def integer(value: Value) -> int | None:
    """The int a value certainly is."""
    found = constant(value)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
