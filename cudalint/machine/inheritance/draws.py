"""Random numbers: a fork goes on with those of its parent, and a fresh process begins with others.

The generator of a GPU is made by the process that first uses that GPU: what it draws there no process inherits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.machine.frame import Call, Given, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.inheritance.calls import is_in_force
from cudalint.machine.inheritance.doubts import COMPUTING, Doubt, Why
from cudalint.machine.inheritance.endings import Endings
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.sameness import is_counted
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import visited
from cudalint.machine.questions import RECEIVED
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Ref, Tensor, Unknown, Value, constant
from cudalint.models.library import ProcessEffect
from cudalint.structs import replace

# What a module does with its weights at once, and what gives them to look at.
_COMPUTES = frozenset({"module.call", "module.tensor"})
_GIVES_WEIGHTS = "module.data"
# What a process holds that was filled with numbers of its parent: modules, and what was taken out of them.
_MODULES, _WEIGHTS = "modules", "weights"
# What is asked of a tensor, or done to it, that shows nothing of its numbers.
_OF_NO_NUMBERS = frozenset(
    {"numel", "size", "dim", "nelement", "element_size", "to", "cuda", "requires_grad_", "items", "keys", "values"}
)
# Where tensors are asked for something, as far as they are seen to be tensors.
_OF_TENSORS = ("torch.Tensor.", "torch.nn.functional.", "?.")
# What the code does not show.
_ANYTHING = "?"
# What is left behind by functions that draw numbers.
_DRAWING = frozenset({"draws", "weights"})
# What "seeds-all" begins anew.
_ALL = frozenset({"random", "numpy", "torch"})


class Draws(Endings):
    """A machine that notes which random numbers a worker takes that it did not begin anew by itself."""

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))):
                effect = self._in_force(f"?.{name}", given)
                self._may_draw(effect, f"?.{name}", given.state)
                self._takes(effect, f"?.{name}", given)
        return super()._call_atom(atom, given)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        effect = self._in_force(path, given)
        self._may_draw(effect, path, given.state)
        if not _lies_on_gpu((atom.receiver,) if isinstance(atom, Bound) else ()):
            self._takes(effect, path, given)
        return super()._foreign(path, atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may draw numbers, or compute with what was made of some."""
        path, site, state = self.library.canonical(call.path), call.site, call.state
        self._uses_weights(call.text("does"), site, state)
        given = Given(call.args, call.kwargs, state, call.frame, site, call.open)
        effect = self._in_force(path, given)
        self._may_draw(effect, path, state)
        draws = effect is not None and effect.state == "draws" and self._is_unseeded(path, state)
        if effect is not None and not draws:
            self._settles_numbers(effect, path, given)
        results = super().library_call(call)
        for watch in self._reading(state) if self.library.traits.has(path, "takes-shared") else ():
            watch.called.add(_ANYTHING)
        if draws and any(_lies_on_gpu(value) for _, value in results):
            self._draws_on_gpu(state)
        elif draws:
            self._is_drawn(path, site, state)
        return results

    def _draws_on_gpu(self, state: State) -> None:
        """Numbers are drawn that no process inherits; later tasks of it go on with them."""

    def _in_force(self, path: str, given: Given) -> ProcessEffect | None:
        effect = self.library.process_effect(path) if self._fresh_begun else None
        return effect if effect is not None and is_in_force(effect, given.kwargs, given.is_open) else None

    def finds(self, value: Value, state: State, site: Site) -> None:
        """A worker finds objects: those of libraries may draw where Python goes through them."""
        super().finds(value, state, site)
        for watch in self._reading(state):
            watch.called.update(_kinds(value, state, self))

    def _may_draw(self, effect: ProcessEffect | None, path: str, state: State) -> None:
        """A function may draw numbers whose course the parent began: those of a GPU follow from its seed, too."""
        if effect is None or effect.state not in _DRAWING or not self._is_unseeded(path, state):
            return
        for watch in self._reading(state):
            watch.draws = True

    def _takes(self, effect: ProcessEffect | None, path: str, given: Given) -> None:
        """A function draws numbers, or changes what they are; one that looks at weights shows which were drawn."""
        state = given.state
        shows = path.startswith(_OF_TENSORS) and path.rpartition(".")[2] not in _OF_NO_NUMBERS
        if shows and _WEIGHTS in state.process.unseeded:
            self._is_drawn(COMPUTING, given.site, state)
        if effect is not None and effect.state == "draws" and self._is_unseeded(path, state):
            self._is_drawn(path, given.site, state)
        elif effect is not None:
            self._settles_numbers(effect, path, given)

    def _uses_weights(self, does: str, site: Site, state: State) -> None:
        if _MODULES not in state.process.unseeded:
            return
        if does in _COMPUTES:
            self._is_drawn(COMPUTING, site, state)
        elif does == _GIVES_WEIGHTS:
            self._is_filled(_WEIGHTS, state)

    def _settles_numbers(self, effect: ProcessEffect, path: str, given: Given) -> None:
        """What of random numbers begins with a call: others, for its library, or an object that is filled with them."""
        state = given.state
        match effect.state:
            case "seed" if any(constant(value) is not None for value in (*given.args, *given.kwargs.values())):
                self._seeds(path, state)
            case "weights" if self._is_unseeded(path, state):
                self._is_filled(_MODULES, state)
            case "loaded":
                state.process = replace(state.process, unseeded=frozenset())

    def _seeds(self, path: str, state: State) -> None:
        library, _, name = path.partition(".")
        if library == "torch" and "." in name:
            # Those of one kind of device.
            return
        if not self._is_started(state):
            # What an import begins, a parent has gone on with when it forks.
            return
        state.process = replace(state.process, seeded=state.process.seeded | self._seeded_by(path))

    def _seeded_by(self, path: str) -> frozenset[str]:
        """The libraries whose random numbers a function begins anew."""
        return _ALL if self.library.traits.has(path, "seeds-all") else frozenset({path.partition(".")[0]})

    def _is_unseeded(self, path: str, state: State) -> bool:
        """Whether a process draws what its parent would have drawn next; torch seeds the workers of its loaders."""
        launch = state.process.launch
        is_loader = launch is not None and launch.family == "loader"
        return drawn_from(path) not in state.process.seeded and not is_loader

    def _is_filled(self, what: str, state: State) -> None:
        if self._is_started(state):
            state.process = replace(state.process, unseeded=state.process.unseeded | {what})

    def _is_drawn(self, path: str, site: Site, state: State) -> None:
        for watch in self._reading(state):
            watch.doubts.setdefault(Doubt(Why.DRAWS, path if path == COMPUTING else shown(path), site))


def _kinds(value: Value, state: State, machine: Machine) -> Iterator[str]:
    """The kinds of the objects of libraries that a value leads to; a question mark for what the code does not show."""
    for atom in visited(value, state):
        match atom, state.get(atom) if isinstance(atom, Ref) else None:
            case _, LibraryObject(type=kind):
                yield kind
            case Lib(path=path), _ if "." in path and machine.library.process_effect(f"{path}.__get__") is not None:
                yield path
            case _, Instance(cls=cls) if (base := machine.library_base(cls, state)) is not None:
                yield base
            case Unknown(sym=("call", _, _, _, str(path)) | ("follows", str(path), *_)), _:
                yield path
            case Unknown(sym=(str(kind), *_)), _ if kind == RECEIVED:
                # What lies in a queue nobody has who does not take it.
                continue
            case Unknown(), _ if not is_counted(atom, machine.library):
                yield _ANYTHING


def drawn_from(path: str) -> str:
    """The library whose random numbers a function draws."""
    root = path.partition(".")[0]
    return root if root in _ALL else "torch"


def _lies_on_gpu(atoms: Iterable[Atom]) -> bool:
    return any(isinstance(atom, Tensor) and atom.device.is_gpu for atom in atoms)
