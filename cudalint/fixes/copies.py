"""Expressions that copy a value to the host, and back to the GPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum

import libcst as cst

from cudalint.fixes import imports
from cudalint.fixes.edits import Change
from cudalint.fixes.view import View, dotted
from cudalint.machine.shapes import Form, Shape
from cudalint.structs import Mutable, field

_HERE = "\0"
_HOLDERS = frozenset({"zip", "enumerate", "list", "tuple", "set", "reversed", "iter", "dict", "product", "repeat"})
_SEVERAL = frozenset({"topk", "sort", "kthvalue", "mode", "cummax", "cummin", "svd", "qr", "eigh", "eig", "slogdet"})
_PERHAPS_SEVERAL = frozenset({"max", "min", "median", "nanmedian", "unique", "aminmax", "std_mean", "var_mean"})
_BINDERS = frozenset({"partial", "partialmethod", "chain", "cycle", "islice"})
_ATOMS = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BaseString, cst.List, cst.Dict, cst.Set)


class Way(Enum):
    """Where a copy goes."""

    TO_CPU = "to the cpu, as what it is"
    TO_ARRAY = "to the cpu, as a plain array"
    TO_GPU = "to the gpu"
    FROM_ARRAY = "to the gpu, from a plain array"


class NoCopyError(Exception):
    """No expression copies this value: it hides in an object, or is not the same on all paths."""


class Copier(Mutable):
    """Writes copies in one file; gathers the imports that they need."""

    view: View
    way: Way
    # Where what is written stands; at the top of the module unless that is said.
    at: cst.CSTNode | None = None
    imports: dict[Change, None] = field(default_factory=dict)

    def changes(self, node: cst.CSTNode, shapes: Mapping[cst.CSTNode, Shape]) -> list[Change]:
        """What makes an expression give a copy; nothing where nothing of it is on the GPU."""
        parts = _parts(node, shapes.get(node))
        if parts is not None:
            return [c for p in parts for c in self.changes(p, shapes)]
        shape = shapes.get(node)
        if shape is None or not self._concerns(shape):
            return []
        self.at = node
        if shape.form is Form.ARRAY and _gives_several(node):
            raise NoCopyError
        return self._around(node, self.expression(_HERE, shape))

    def expression(self, text: str, shape: Shape) -> str:
        """An expression that gives a copy of what another one gives."""
        return self._expression(text, shape, 0)

    def _concerns(self, shape: Shape) -> bool:
        if shape.form is Form.ARRAY:
            return self.way in (Way.TO_GPU, Way.FROM_ARRAY) or shape.device != "cpu"
        return shape.form is not Form.NOTHING

    def _expression(self, text: str, shape: Shape, depth: int) -> str:
        if not self._concerns(shape):
            return text
        match shape.form:
            case Form.ARRAY:
                return self._array(text, shape)
            case Form.MODEL:
                return self._model(text, shape)
            case Form.ROWS:
                return self._rows(text, shape, depth)
            case Form.TABLE:
                return self._table(text, shape, depth)
            case Form.HIDDEN | Form.NOTHING:
                raise NoCopyError

    def _array(self, text: str, shape: Shape) -> str:
        name = shape.type.rpartition(".")[2]
        if name[:1].isupper() and not name.endswith(("Tensor", "Array", "Parameter", "Buffer")):
            raise NoCopyError  # An object of a library that holds arrays, such as an optimizer.
        framework = shape.type.partition(".")[0]
        way = Way.TO_GPU if self.way is Way.FROM_ARRAY and framework != "torch" else self.way
        match framework, way:
            case "torch", Way.TO_CPU:
                return f"{text}.cpu()"
            case "torch", Way.TO_ARRAY:
                return f"{text}.detach().cpu().numpy()"
            case "torch", Way.TO_GPU if shape.device:
                return f'{text}.to("{shape.device}")'
            case "torch", Way.FROM_ARRAY if shape.device:
                return f'{self._member("torch", "as_tensor")}({text}, device="{shape.device}")'
            case "cupy", Way.TO_GPU:
                return f"{self._member('cupy', 'asarray')}({text})"
            case "cupy", _:
                return f"{text}.get()"
            case "numba", Way.TO_GPU:
                return f"{self._member('numba.cuda', 'to_device')}({text})"
            case "numba", _:
                return f"{text}.copy_to_host()"
            case "jax", Way.TO_CPU | Way.TO_ARRAY:
                return f"{self._member('jax', 'device_get')}({text})"
            case "tensorflow", Way.TO_CPU | Way.TO_ARRAY:
                return f"{text}.numpy()"
        raise NoCopyError

    def _model(self, text: str, shape: Shape) -> str:
        """A module moves in place: what is sent has to be another one."""
        match self.way:
            case Way.TO_CPU:
                return f"{self._member('copy', 'deepcopy')}({text}).cpu()"
            case Way.TO_GPU if shape.device:
                return f'{text}.to("{shape.device}")'
        raise NoCopyError

    def _rows(self, text: str, shape: Shape, depth: int) -> str:
        element = shape.element
        if element is None:
            raise NoCopyError
        if shape.type == "tuple" and shape.parts:
            items = [self._expression(f"{text}[{key}]", part, depth) for key, part in shape.parts]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        name = self._fresh(depth, "part", "item", "one")
        copied = f"{self._expression(name, element, depth + 1)} for {name} in {text}"
        match shape.type:
            case "list":
                return f"[{copied}]"
            case "tuple":
                return f"tuple({copied})"
            case "set":
                return f"{{{copied}}}"
        return f"({copied})"

    def _table(self, text: str, shape: Shape, depth: int) -> str:
        held = [part for _, part in shape.parts]
        element = shape.element
        if shape.parts and not all(self._concerns(p) for p in held):
            entries = [
                f"{_literal(key)}: {self._expression(f'{text}[{_literal(key)}]', part, depth)}"
                for key, part in shape.parts
                if self._concerns(part)
            ]
            return f"{{**{text}, {', '.join(entries)}}}"
        if element is None:
            raise NoCopyError
        key, value = self._fresh(depth, "key", "name", "label"), self._fresh(depth, "value", "part", "item")
        return f"{{{key}: {self._expression(value, element, depth + 1)} for {key}, {value} in {text}.items()}}"

    def _fresh(self, depth: int, *words: str) -> str:
        taken = self.view.names()
        found = next((w for w in words if w not in taken), f"{words[0]}_on_host")
        return found if depth == 0 else f"{found}_{depth}"

    def _member(self, module: str, name: str) -> str:
        spelled = imports.member(self.view, module, name, self.at)
        self.imports.update(dict.fromkeys(spelled.changes))
        return spelled.text

    def _around(self, node: cst.CSTNode, pattern: str) -> list[Change]:
        """The text of a node with something before and after it, or written out again where it is needed often."""
        loose = not isinstance(node, _ATOMS) and not getattr(node, "lpar", ())
        if pattern.count(_HERE) > 1:
            if not isinstance(node, cst.BaseExpression) or not dotted(node):
                raise NoCopyError
            return [self.view.replace(node, pattern.replace(_HERE, self.view.source(node)))]
        lead, _, tail = pattern.partition(_HERE)
        if loose:
            lead, tail = f"{lead}(", f"){tail}"
        return self.view.around_text(node, lead, tail)


def _literal(key: Hashable) -> str:
    """A key as it is written, with double quotes where it is a plain word."""
    return f'"{key}"' if isinstance(key, str) and key.isidentifier() else repr(key)


def _parts(node: cst.CSTNode, shape: Shape | None) -> list[cst.CSTNode] | None:
    """The expressions that an expression merely holds together; None where it is a value of its own."""
    match node:
        case cst.List() | cst.Tuple() | cst.Set():
            return [e.value for e in node.elements]
        case cst.Dict():
            return [e.value for e in node.elements]
        case cst.GeneratorExp() | cst.ListComp() | cst.SetComp():
            return [node.elt]
        case cst.DictComp():
            return [node.value]
        case cst.IfExp():
            return [node.body, node.orelse]
        case cst.Call() if _holds(node) or (shape is not None and shape.form is Form.HIDDEN):
            return [a.value for a in node.args]
        case cst.Lambda():
            return []
    return None


def _holds(call: cst.Call) -> bool:
    """Whether a call keeps its arguments as they are: ``zip(xs, ys)``, ``partial(f, x)``, ``delayed(f)(x)``."""
    if isinstance(call.func, cst.Call):
        return dotted(call.func.func).rpartition(".")[2] in ("delayed", "wrap_non_picklable_objects")
    return dotted(call.func).rpartition(".")[2] in _HOLDERS | _BINDERS


def _gives_several(node: cst.CSTNode) -> bool:
    """Whether a call on an array gives several, under names: ``x.topk(3)``, ``x.max(dim=0)``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name = node.func.attr.value
    return name in _SEVERAL or (name in _PERHAPS_SEVERAL and len(node.args) > 0)


def below(node: cst.CSTNode, view: View) -> list[cst.CSTNode]:
    """The expressions below a node whose shapes decide on its copy."""
    return [n for n in view.inside(node) if isinstance(n, cst.BaseExpression)]
