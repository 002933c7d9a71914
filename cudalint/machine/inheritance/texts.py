"""What a program sees of its own text: a repair changes that, whatever its workers do.

Rows of code have other numbers only where a repair adds rows or takes some away; such doubts are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.process_effects import shown
from cudalint.machine.inheritance.producers import Producers
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Unknown, Value, constant

# What is known of files, whatever they are asked for by.
_OF_FILES = ("opens-file", "reads-file", "changes-file")
# What frames, tracebacks and code say of the rows that they come from, and what of their text.
_ROWS = frozenset({"f_lineno", "tb_lineno", "co_firstlineno"})
_CODE = frozenset(
    {
        "co_code", "co_names", "co_consts", "co_lines", "co_lnotab", "co_linetable", "co_positions", "co_stacksize",
        "f_lasti", "tb_lasti",
    }
)  # fmt: skip
# The same of what these give, whose attributes have plain names.
_TELL_PLACES = ("inspect.", "traceback.", "sys._getframe", "logging.")
_PLAIN_ROWS, _PLAIN_CODE = frozenset({"lineno", "positions"}), frozenset({"code_context", "line"})
# How formats of messages ask for the row that one comes from.
_ROW_IN_FORMATS = ("%(lineno)", "{lineno", "${lineno")


class Texts(Producers):
    """A machine that notes where a program looks at its own text, at its rows, or at what these were compiled to."""

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may look at a file of the program."""
        self._looks_at_text(self.library.canonical(call.path), call.receiver, (*call.args, *call.kwargs.values()), call)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        receiver = atom.receiver if isinstance(atom, Bound) else None
        self._looks_at_text(path, receiver, (*given.args, *given.kwargs.values()), given)
        return super()._foreign(path, atom, given)

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(owner, ".", str(name))):
                self._looks_at_text(f"?.{name}", Unknown(owner), given.args, given)
        return super()._call_atom(atom, given)

    def _keeps_file(self, path: str) -> bool:
        return self.library.traits.has(path, "keeps-file")

    def _looks_at_text(self, path: str, receiver: Atom | None, values: Iterable[Value], given: Call | Given) -> None:
        traits = self.library.traits
        values = list(values)
        texts = [text for text in map(constant, values) if isinstance(text, str)]
        if any(mark in text for text in texts for mark in _ROW_IN_FORMATS):
            self._is_seen(Why.ROWS, given.site)
        if traits.has(path, "shows-own-text"):
            self._is_seen(Why.TEXT, given.site)
        if traits.has(path, "shows-rows") or (path.startswith("traceback.print") and "file" in given.kwargs):
            self._is_seen(Why.ROWS, given.site)
        if any(map(self._names_own_text, texts)) and (_seeks(path) or any(traits.has(path, k) for k in _OF_FILES)):
            self._is_seen(Why.TEXT, given.site, f"{shown(path)}()")
        atoms = (*(a for value in values for a in value), *(() if receiver is None else (receiver,)))
        if any(traits.has(path, kind) for kind in _OF_FILES) and any(map(self._is_own_file, atoms)):
            self._is_seen(Why.TEXT, given.site, f"{shown(path)}()")

    def _names_own_text(self, text: str) -> bool:
        """Whether a name, or a pattern of names, is that of the main module's file."""
        name = text.rpartition("/")[2]
        return name.endswith(".py") and ("*" in name or name == f"{self.main.rpartition('.')[2]}.py")

    def _is_own_file(self, atom: Atom) -> bool:
        return isinstance(atom, Unknown) and _is_own_file(atom.sym, self._keeps_file)

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        is_told = name in _PLAIN_ROWS | _PLAIN_CODE and isinstance(atom, Unknown) and _tells_places(atom.sym)
        if name in _ROWS or (is_told and name in _PLAIN_ROWS):
            self._is_seen(Why.ROWS, site)
        if name in _CODE or (is_told and name in _PLAIN_CODE):
            self._is_seen(Why.TEXT, site)
        return super()._attribute_of(atom, name, state, frame, site)

    def _is_seen(self, why: Why, site: Site, name: str = "") -> None:
        self._asked.setdefault(Doubt(why, name, site))


def _seeks(path: str) -> bool:
    """Whether a function looks for files by a pattern of their names."""
    return path.rpartition(".")[2] in ("glob", "iglob", "rglob")


def _is_own_file(sym: Hashable, keeps: Callable[[str], bool]) -> bool:
    """Whether something is the file of a module of the program, by whatever path; not its folder, nor one beside it."""
    match sym:
        case ("__file__", _) | (_, ".", "co_filename") | (Lib(path="sys.argv"), "[]", (Const(value=0),)):
            return True
        case ("follows", str(path), tuple(values)):
            parts = (atom for value in values for atom in (value if isinstance(value, tuple) else (value,)))
            return keeps(path) and any(isinstance(part, Unknown) and _is_own_file(part.sym, keeps) for part in parts)
        case ("follows", (inner, ".", str(name))):
            return keeps(f"?.{name}") and _is_own_file(inner, keeps)
    return False


def _tells_places(part: Hashable) -> bool:
    """Whether something comes of what gives frames, rows of the stack, or messages."""
    match part:
        case Unknown(sym=sym):
            return _tells_places(sym)
        case str(text):
            return text.startswith(_TELL_PLACES)
        case tuple():
            return any(map(_tells_places, part))
    return False
