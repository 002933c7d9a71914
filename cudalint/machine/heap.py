"""Objects with identity. They are immutable: a change puts a new object at the same address."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from cudalint.ir import nodes as ir
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import Const, Lib, Partial, Ref, Value
from cudalint.structs import Frozen, field, force_setattr

# The field of a library's object that keeps the state in which its call, or its ``with`` statement, began.
BEGAN = "<snapshot>"
# The field of a manager that names the exceptions it keeps from leaving its ``with`` statement.
SUPPRESSED = "<suppressed>"
# The attribute of an instance of the program's own class that a library made of what was saved.
WEIGHTS = "<weights>"
# What ``iter`` gives: a sequence that remembers what was taken of it, and is pickled as that.
ITER = "iter"
# All that has less once something was taken of it.
TAKEN_OF = frozenset({"iterator", ITER})
# Part of the address of a list that is empty since a test lets through nothing of what it is made of.
NOTHING_LEFT = "nothing left"
# In place of it, where these are what is to happen.
EXPECTED = "<expected>"
# The variable that stands for all that ``from package import *`` may bind, where the package is not seen.
STAR = "*"
# What a ``Counter`` has under any key that it has not seen.
ZERO: Value = (Partial((Lib("builtins.int"),), (), ()),)
# Where a process keeps what it set in the place of functions of libraries, by their paths.
REPLACED = Ref(("replaced",))


class Scope(Frozen):
    """Variables of a module, function call or class body."""

    variables: dict[str, Value]
    parent: Ref | None
    module: str
    kind: str
    outside: Mapping[str, str] = field(default_factory=dict)


class Closure(Frozen):
    """A user function with what it sees; ``owner`` is the class it is a method of.

    ``alias`` is the module and qualified name that ``functools.wraps`` gave it: pickling goes by these.
    ``compiled`` names what a framework does whenever the function is called that it made of this one; ``cache`` holds
    what it gave before; ``setter`` is what assigning to a property calls; within ``managed`` it runs, of which the last
    is the outermost; ``own`` holds the attributes that it was given, which are all that it has where it is ``bare``: no
    decorator could give it others. ``left_open``: classes below its own have to define it.
    """

    function: ir.Function
    scope: Ref
    module: str
    defaults: tuple[tuple[str, Value], ...]
    kind: str = "function"
    owner: Ref | None = None
    alias: tuple[str, str] | None = None
    compiled: str = ""
    cache: Ref | None = None
    setter: Ref | None = None
    managed: tuple[Ref, ...] = ()
    own: Ref | None = None
    bare: bool = False
    left_open: bool = False

    @property
    def address(self) -> tuple[str, str]:
        """The module and qualified name by which pickle finds the function."""
        return self.alias or (self.module, self.function.qualname)


class Class(Frozen):
    """A user class; ``members`` names those of an Enum, ``meta`` is its metaclass where it names one.

    ``asks_first``: its ``__getattribute__`` is asked for all attributes of its instances. ``told`` has what
    ``dataclasses.dataclass``, if that made it, was told, such as ``frozen``; and that it was, and of a protocol that
    objects can be asked for it. ``types`` are the annotations of its variables that are names. ``given_gpus``: a
    scheduler makes them in processes that see the GPUs alone which it gave each of them. ``generic`` are its bases as
    they are written, where one of them is given types.
    """

    name: str
    qualname: str
    module: str
    bases: tuple[Value, ...]
    scope: Ref
    site: Site
    fields: tuple[tuple[str, Value | None], ...] = ()
    is_dataclass: bool = False
    members: tuple[str, ...] = ()
    meta: Value = ()
    asks_first: bool = False
    told: frozenset[str] = frozenset()
    given_gpus: bool = False
    types: tuple[tuple[str, ir.Expr], ...] = ()
    generic: tuple[ir.Expr, ...] = ()


class Instance(Frozen):
    """An instance of a user class."""

    cls: Ref
    attributes: dict[str, Value]
    site: Site
    origin: Chain | None = None


class Sequence(Frozen):
    """A list, tuple, set or iterator; ``items`` while its content is known exactly, else ``element``.

    ``open`` items stand for more of their kind: the first, and another one. ``last`` is what was put under a key that
    is not known, until something else changes. Of more than ``most`` items only the last ones are kept. ``numbers`` are
    all those of a range.
    """

    kind: str
    items: tuple[Value, ...] | None
    element: Value = ()
    open: bool = False
    most: int | None = None
    numbers: range | None = None
    last: tuple[Value, Value] | None = None

    def __post_init__(self) -> None:
        if self.last is not None:
            force_setattr(self, "last", None)


class Dict(Frozen):
    """A dict: known constant keys, and what may stand under any other; ``factory`` makes what is missing.

    ``among`` has the only keys that it may have besides, where that is known of one that is not exact.
    ``view`` is the object whose attributes these are, or the mapping that items are put into; ``last`` is what was put
    under a key that is not known, until something else changes.
    """

    items: dict[Hashable, Value]
    element: Value = ()
    exact: bool = True
    factory: Value = ()
    view: Ref | None = None
    among: frozenset[Hashable] | None = None
    last: tuple[Value, Value] | None = None

    def __post_init__(self) -> None:
        if self.last is not None:
            force_setattr(self, "last", None)


class LibraryObject(Frozen):
    """An object of a library, of the type that models name; what it keeps is in ``fields``."""

    type: str
    fields: dict[str, Value]
    site: Site
    origin: Chain | None = None

    @property
    def is_of_processes(self) -> bool:
        """Whether several processes use it: a lock, an event, a queue, an end of a pipe."""
        return "<lock>" in self.fields or "<channel>" in self.fields


# An object that only holds what is put there, and options of a command line.
NAMESPACE = "argparse.Namespace"
# The attribute of an object on which something was set whose name is not known.
ANY_NAME = "<any name>"
# The field of a configuration that has another one under whatever name it is asked for, as addict's have.
GROWS = "<grows>"
# The field of a namespace that names an option of which a function of the program, or a file type, makes the value.
MADE_OPTION = "<made>"
# The field of what a scheduler runs elsewhere that holds the function or class itself.
WORK = "<work>"
# The field of a namespace whose options are all known.
WHOLE = "<whole>"
# Where a process keeps which classes it registered to which others, to count as below these: a dict of such pairs.
REGISTERED = Ref(("registered",))
# Where a path keeps how often files may have changed, once it has asked for one.
FILES = Ref("cudalint.files")
# Where a process keeps by which functions it pickles objects of some classes: a dict by class, or by its name.
REDUCERS = Ref(("reducers",))
# Where a process keeps the words that it put into its own command line; open where its user's are among them.
ARGV = Ref("cudalint.argv")
# Where lies what a program put into things that nobody knows: a dict by thing and field.
OF_UNKNOWN = Ref("cudalint.unknown")
# The callbacks that were handed to what nobody knows before CUDA was used: a list.
HANDED = Ref("cudalint.handed")
# The functions that were handed to an application, whose main loop calls them when its user does something: a list.
EVENTS = Ref("cudalint.events")
# The hooks that modules and tensors have: a dict of their handles.
HOOKS = Ref("cudalint.hooks")
# The names of modules that were imported by their paths, by module; and which of them were entered into sys.modules.
BY_PATH = Ref("cudalint.by path")
ENTERED = "entered"


def item_field(key: Value) -> str | None:
    """The field that an item of something unknown is; None where it is not known which."""
    atom = key[0] if len(key) == 1 else None
    return f"[{atom.value!r}]" if isinstance(atom, Const) and isinstance(atom.value, str | int) else None


class Generator(Frozen):
    """A generator that was not consumed yet; ``waits`` is the ``yield`` where it stands, if it was begun."""

    closure: Ref
    scope: Ref
    site: Site
    waits: int | None = None


class Cache(Frozen):
    """What a function gave in this process, by its arguments."""

    results: dict[Hashable, Value]


Object = Scope | Closure | Class | Instance | Sequence | Dict | LibraryObject | Generator | Cache
