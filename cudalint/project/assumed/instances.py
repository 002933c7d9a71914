"""Instances that several entries begin with, made once: a method without a visible caller needs one of its class."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from cudalint.ir import nodes as ir
from cudalint.ir.walk import constructor
from cudalint.machine.effects.frameworks.remote_tasks import itself
from cudalint.machine.frame import Frame
from cudalint.machine.heap import Class
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, only
from cudalint.project.program import FileProgram
from cudalint.project.reads import Reads
from cudalint.project.switches import switches
from cudalint.structs import Frozen, Mutable, field

# Each holds all that its process imported; the methods of a class are entries one after the other.
MOST_KEPT = 16


class Made(Frozen):
    """What importing a module and making an instance of one of its classes did, with unknown arguments.

    ``machine`` ran it, and said ``at`` of where the instance is made; ``takes_arguments``: so it is made where its
    caller is, and not in any case. ``instance`` with the path on which it was made is None where no path gives one.
    """

    machine: Machine
    at: Site
    takes_arguments: bool
    instance: tuple[State, Value] | None
    read: Reads

    @property
    def is_cut(self) -> bool:
        """Whether making one takes more steps than there are."""
        return self.instance is None and bool(self.machine.record.spent)

    def begun(self, machine: Machine, site: Site) -> tuple[State, Value] | None:
        """The instance for an entry of its own, whose unknown caller stands at ``site``."""
        machine.follow(self.machine, self.at, site if self.takes_arguments else self.at)
        if self.instance is None:
            return None
        state, value = self.instance
        return state.clone(), value


class Instances(Mutable):
    """Makes instances aside, each on a machine of its own.

    ``machine`` gives one for a module's name, which follows all paths or few; ``imported`` the path after the import
    of a module.
    """

    files: FileProgram
    machine: Callable[[str, bool], Machine]
    imported: Callable[[Machine, ir.Module], State]
    # What making them took.
    steps: int = 0
    _known: OrderedDict[tuple[str, str, bool], tuple[Made | None, Reads]] = field(default_factory=OrderedDict)

    def of(self, module: ir.Module, function: ir.Function, takes_options: bool = False) -> Made | None:
        """What a method's entry begins with; None where it has to begin by itself.

        ``takes_options``: its maker gives the numbers and switches that nobody has to give.
        What that reads counts as read by the entry that has begun.
        """
        cls, _, method = function.qualname.rpartition(".")
        if not cls or "." in cls or method == "__init__":
            return None
        options = switches(module, constructor(module, cls)) if takes_options else {}
        # Where there is nothing to give it is made as without.
        key = (module.name, cls, bool(options))
        if key not in self._known:
            # What takes too many steps takes no fewer with other options.
            self._known[key] = self._cut_of(module.name, cls) or self._tried(module, cls, options)
            self._forget()
        self._known.move_to_end(key)
        made, read = self._known[key]
        self.files.rest_on(read)
        if made is not None:
            self.files.charge(made.read.asked)
        return made

    def _cut_of(self, module: str, cls: str) -> tuple[Made | None, Reads] | None:
        known = (self._known.get((module, cls, with_options)) for with_options in (False, True))
        return next((one for one in known if one is not None and (one[0] is None or one[0].is_cut)), None)

    def _tried(self, module: ir.Module, cls: str, options: Mapping[str, Value]) -> tuple[Made | None, Reads]:
        with self.files.aside() as read:
            return self._made(module, cls, options), read

    def _forget(self) -> None:
        """Keep the instances that were asked for last; that there is none of a class takes no room."""
        kept = [key for key, (made, _) in self._known.items() if made is not None]
        for key in kept[:-MOST_KEPT]:
            del self._known[key]

    def _made(self, module: ir.Module, name: str, options: Mapping[str, Value]) -> Made | None:
        """An instance as all paths make it, else as few do; where it takes more steps even so, how far all came."""
        init = constructor(module, name)
        if init is None:
            return None
        made = self._make(module, name, init, options, few=False)
        if made is None or not made.is_cut:
            return made
        by_few = self._make(module, name, init, options, few=True)
        # No method would come as far by itself.
        return made if by_few is not None and by_few.is_cut else by_few

    def _make(
        self, module: ir.Module, name: str, init: ir.Function, options: Mapping[str, Value], few: bool
    ) -> Made | None:
        machine = self.machine(module.name, few)
        frame = Frame(Ref(("module", module.name)), module.name)
        at = Site(module.name, init.ordinal)
        with self.files.aside() as read:
            state = self.imported(machine, module)
            cls = itself(machine.lookup(name, state, frame.scope) or (), state)
            is_ours = _is_ours(machine, cls, state)
            found = machine.call_value(cls, [], dict(options), state, frame, at) if is_ours else []
        self.files.rest_on(read)
        if not is_ours:
            return None
        self.steps += machine.steps
        return Made(machine, at, len(init.params) > 1, found[0] if found else None, read)


def _is_ours(machine: Machine, cls: Value, state: State) -> bool:
    """Whether a class is one of the program, below none of a library: those remember where an instance was made."""
    ref = only(cls)
    if not isinstance(ref, Ref) or not isinstance(state.get(ref), Class):
        return False
    return machine.library.function(machine.library_base(ref, state) or "") is None
