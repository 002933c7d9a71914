"""What an expression is seen to hold on the GPU, for repairs that copy it to the host."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame, Results
from cudalint.machine.gpu_memory import placed_tensor
from cudalint.machine.heap import Dict, Generator, Sequence
from cudalint.machine.interpreter import Machine, Setting
from cudalint.machine.launch.crossing import Pickler, carried
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, Tensor, Unknown, Value
from cudalint.structs import Frozen

_DEEPEST = 6


class Form(Enum):
    """How a value holds what is on the GPU."""

    NOTHING = "nothing of it is on the gpu"
    ARRAY = "an array"
    MODEL = "a module with parameters"
    ROWS = "something to iterate over"
    TABLE = "a mapping"
    HIDDEN = "inside an object, or not the same on all paths"


class Shape(Frozen):
    """One value. ``type`` is that of an array, or the kind of a container; ``device`` is empty where it varies.

    ``parts`` are the known positions or keys; ``element`` stands for all others.
    """

    form: Form
    type: str = ""
    device: str = ""
    parts: tuple[tuple[Hashable, Shape], ...] = ()
    element: Shape | None = None


NOTHING = Shape(Form.NOTHING)
HIDDEN = Shape(Form.HIDDEN)


def joined(shapes: Iterable[Shape]) -> Shape:
    """One shape for several alternatives."""
    distinct = list(dict.fromkeys(shapes))
    if len(distinct) <= 1:
        return distinct[0] if distinct else NOTHING
    first = distinct[0]
    if all(s.form is Form.ARRAY and s.type == first.type for s in distinct):
        return Shape(Form.ARRAY, first.type)
    if all(s.form is first.form and s.type == first.type and s.element for s in distinct):
        return Shape(first.form, first.type, element=joined(s.element for s in distinct if s.element is not None))
    return HIDDEN


class Watcher(Machine):
    """A machine that notes the shapes of some expressions whenever it evaluates them, for no other purpose."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.shapes: dict[Site, dict[Shape, None]] = {}

    def eval(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The values of an expression."""
        results = super().eval(node, state, frame)
        site = Site(frame.module, node.ordinal)
        if site in self.options.shaped:
            noted = self.shapes.setdefault(site, {})
            for after, value in results:
                noted.setdefault(self._shape(value, after, frame, site, 0))
        return results

    def _shape(self, value: Value, state: State, frame: Frame, site: Site, depth: int) -> Shape:
        return joined(self._shape_of(atom, state, frame, site, depth) for atom in value)

    def _shape_of(self, atom: Atom, state: State, frame: Frame, site: Site, depth: int) -> Shape:
        if isinstance(atom, Tensor):
            return _array(atom)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Generator):
            return self._iterated(atom, state, frame, site, depth)
        if not any(c.what != "lock" for c in carried((atom,), state, Pickler.NAMES)):
            return NOTHING
        if depth > _DEEPEST:
            return HIDDEN
        memory = _memory(atom, state)
        if memory is not None:
            return Shape(Form.MODEL, "torch.nn.Module", _device(memory))
        if isinstance(found, Sequence):
            return self._rows(found, state, frame, site, depth + 1)
        if isinstance(found, Dict):
            return self._table(found, state, frame, site, depth + 1)
        return HIDDEN

    def _iterated(self, atom: Atom, state: State, frame: Frame, site: Site, depth: int) -> Shape:
        """What a generator gives; it runs on a copy of the state."""
        rounds = self.iterate((atom,), state.clone(), frame, site) if depth <= _DEEPEST else []
        element = joined(self._shape(v, s, frame, site, depth + 1) for s, values in rounds for v in values)
        return element if element.form is Form.NOTHING else Shape(Form.ROWS, "iterator", element=element)

    def _rows(self, rows: Sequence, state: State, frame: Frame, site: Site, depth: int) -> Shape:
        items = [self._shape(v, state, frame, site, depth) for v in rows.items or (rows.element,)]
        exact = rows.items is not None and not rows.open
        parts = tuple(enumerate(items)) if exact else ()
        return Shape(Form.ROWS, rows.kind, parts=parts, element=joined(items))

    def _table(self, table: Dict, state: State, frame: Frame, site: Site, depth: int) -> Shape:
        known = {k: self._shape(v, state, frame, site, depth) for k, v in table.items.items()}
        others = [self._shape(table.element, state, frame, site, depth)] if table.element else []
        parts = tuple(known.items()) if table.exact and not others else ()
        return Shape(Form.TABLE, "dict", parts=parts, element=joined([*known.values(), *others]))


def _memory(atom: Atom, state: State) -> Tensor | None:
    """What a module has on the GPU."""
    if isinstance(atom, Unknown):
        return state.placed.get(atom.sym)
    return placed_tensor(atom, state) if isinstance(atom, Ref) else None


def _array(tensor: Tensor) -> Shape:
    return Shape(Form.ARRAY, tensor.type, _device(tensor))


def _device(tensor: Tensor) -> str:
    """The device as torch spells it; empty where it differs from process to process."""
    index = tensor.device.index
    if index is None:
        return tensor.device.kind
    return f"{tensor.device.kind}:{index}" if isinstance(index, int) else ""


def noted(watchers: Iterable[Watcher]) -> Mapping[Site, Shape]:
    """The shapes that machines have seen, one for each place."""
    seen: dict[Site, list[Shape]] = {}
    for watcher in watchers:
        for site, shapes in watcher.shapes.items():
            seen.setdefault(site, []).extend(shapes)
    return {site: joined(shapes) for site, shapes in seen.items()}
