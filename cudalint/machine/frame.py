"""One activation of a function or module, and one call in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cudalint.ir import nodes as ir
from cudalint.machine.outcome import Outcome
from cudalint.machine.state import State
from cudalint.machine.trace import Chain, Site, TraceStep
from cudalint.machine.values import STATE, Atom, Ref, Value
from cudalint.structs import Frozen, Mutable, field

Results = list[tuple[State, Value]]
# What a call gives its parameters, by their names.
Arguments = dict[str, Value]
# Methods of what is a tensor, or an unknown object that was moved to a GPU, or what one of these keeps.
_SAID_AS_WRITTEN = frozenset({"torch.Tensor", STATE})
Around = Callable[[State, Value], list[State]]


class Raised(Frozen):
    """An exception on its way: the outcome behind it, and the names handlers may know it by.

    ``harmless``: where it is caught, all is as it was meant to be. ``launch``: where the worker was started whose
    failure it is, which was reported when the worker failed. ``missing``: the import that fails where its package is
    not installed. ``hidden``: nothing is known of it but that it comes, so that any handler may be the one. ``value``:
    the exception itself, where that is known.
    """

    outcome: Outcome | None
    names: tuple[str, ...]
    harmless: bool = False
    launch: Site | None = None
    missing: TraceStep | None = None
    hidden: bool = False
    value: Value = ()


# What a set is refused, or a dict as a key.
NO_HASH = Raised(None, ("TypeError",))
NO_KEY = Raised(None, ("KeyError", "LookupError"))


class Steps(Mutable):
    """How a generator goes on: from the ``yield`` where it stands (``at``), to the next one where it ``stops``.

    ``left`` has what it gives at the next ones, and ``closes`` says that it is to end where it stands, ``thrown`` what
    it is to raise there.
    """

    at: int | None
    stops: bool = True
    closes: bool = False
    thrown: Raised | None = None
    left: list[tuple[State, Value, int]] = field(default_factory=list)


class Frame(Mutable):
    """Where the exits of a body are gathered while it runs.

    ``around`` is what a context manager runs at its ``yield``, which happens outside of it: in ``outside``; ``sent`` is
    what a generator is sent there; ``steps`` how one goes on that is not run as a whole. ``waits_for_key``: a handler
    is written for keys that are not there.
    """

    scope: Ref
    module: str
    function: ir.Function | None = None
    owner: Ref | None = None
    receiver: Atom | None = None
    raises: list[tuple[State, Raised]] = field(default_factory=list)
    returns: list[tuple[State, Value]] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    handling: list[Raised] = field(default_factory=list)
    tries: int = 0
    guards_import: bool = False
    waits_for_key: bool = False
    around: Around | None = None
    sent: Value | None = None
    steps: Steps | None = None
    outside: Chain | None = None
    entered: set[int] = field(default_factory=set)
    # The tests of a generator, by their statements, that went either way.
    undecided: set[int] = field(default_factory=set)

    def ends_program(self, state: State) -> bool:
        """Whether what exits here ends the program by its last word: ``sys.exit(main())`` at the top of a module.

        In a function, programs end that do something else instead, such as start themselves as ranks.
        """
        return self.function is None and not self.tries and state.process.launch is None


class Given(Frozen):
    """What a function or class of the program is called with, and where.

    ``is_open``: more arguments may be given than are known. ``statement``: nothing takes the result.
    """

    args: list[Value]
    kwargs: dict[str, Value]
    state: State
    frame: Frame
    site: Site
    is_open: bool = False
    statement: bool = False

    def led_by(self, *first: Value) -> Given:
        """The same with other arguments before these."""
        args = [*first, *self.args]
        return Given(args, self.kwargs, self.state, self.frame, self.site, self.is_open, self.statement)

    def on(self, state: State) -> Given:
        """The same on another path."""
        args, kwargs = list(self.args), dict(self.kwargs)
        return Given(args, kwargs, state, self.frame, self.site, self.is_open, self.statement)

    def taken(self) -> Given:
        """The same where something takes the result."""
        return Given(self.args, self.kwargs, self.state, self.frame, self.site, self.is_open)


class Call(Mutable):
    """A call of a library function: what an effect gets to see.

    ``path`` is the canonical name that was called, ``spec`` its model, ``open`` whether ``*args`` or
    ``**kwargs`` of unknown content were passed.
    """

    state: State
    frame: Frame
    site: Site
    path: str
    spec: Mapping[str, object]
    args: list[Value]
    kwargs: dict[str, Value]
    receiver: Atom | None = None
    open: bool = False
    statement: bool = False

    def get(self, name: str) -> Value | None:
        """The argument for a parameter, by keyword or by the position that the model gives."""
        if name in self.kwargs:
            return self.kwargs[name]
        if name in self.params:
            position = self.params.index(name)
            if position < len(self.args):
                return self.args[position]
        return None

    @property
    def label(self) -> str:
        """How the call is named in messages."""
        path = self.path.removeprefix("?")
        named = path.removesuffix(".__get__").removesuffix(".__enter__")
        owner, _, last = named.rpartition(".")
        if owner in _SAID_AS_WRITTEN or (path.startswith("cudalint.") and owner.rpartition(".")[2][:1].isupper()):
            # A method of a type that only models know, or of what is no tensor for certain.
            named = f".{last}"
        return named + ("" if path.endswith("__get__") else "()")

    @property
    def params(self) -> list[str]:
        """The parameters that the model names."""
        return self.texts("params")

    def text(self, key: str, default: str = "") -> str:
        """A string of the model."""
        value = self.spec.get(key, default)
        return value if isinstance(value, str) else default

    def texts(self, key: str) -> list[str]:
        """A list of strings of the model."""
        found = self.spec.get(key)
        return [str(text) for text in found] if isinstance(found, list) else []

    def flag(self, key: str, default: bool = False) -> bool:
        """A truth value of the model."""
        value = self.spec.get(key, default)
        return value if isinstance(value, bool) else default
