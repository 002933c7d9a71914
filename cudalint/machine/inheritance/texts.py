"""What a program sees of its own text: a repair changes that, whatever its workers do.

Rows of code have other numbers only where a repair adds rows or takes some away; such doubts are told apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

from cudalint.machine.frame import Call, Frame, Given, Results
from cudalint.machine.heap import Sequence
from cudalint.machine.inheritance.aliasing import Aliases
from cudalint.machine.inheritance.doubts import Doubt, Why
from cudalint.machine.inheritance.own_paths import leads_to, said
from cudalint.machine.inheritance.process_effects import shown, takes_from_folder
from cudalint.machine.interpreter import Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Ref, Unknown, Value, constant

# What is known of files, whatever they are asked for by.
_OF_FILES = ("opens-file", "reads-file", "changes-file")
# By these words git tells of changed files.
_OF_CHANGES = frozenset({"diff", "status", "--dirty", "stash", "describe"})
# The folder of the program, and all files of it, as patterns have them.
_OWN_FOLDERS = frozenset({"", ".", "./", "\x00", "\x00/"})
_ALL_FILES = frozenset({"*", "**", "**/*", "*.*", "./*", "\x00/*", "\x00/**", "\x00/**/*"})
# What shows the processes that there are.
_OF_PROCESSES = frozenset({"ps", "pgrep", "pidof", "pstree", "top", "lsof"})
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
_ROW = "lineno"
# What tells rows of a text that it is given.
_READ_TEXTS = ("ast.", "libcst.", "parso.", "tokenize.", "json.", "re.", "csv.", "shlex.", "xml.", "yaml.")
# How formats of messages ask for the row that one comes from.
_ROW_IN_FORMATS = ("%(lineno)", "{lineno", "${lineno")


class Texts(Aliases):
    """A machine that notes where a program looks at its own text, at its rows, or at what these were compiled to."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The calls that listed the folder of the program.
        self._listing: set[Site] = set()

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
                self._looks_at_text(self._method(owner, name), Unknown(owner), given.args, given)
        return super()._call_atom(atom, given)

    def _method(self, owner: Hashable, name: str) -> str:
        """A method by its class, where models say that one of it does something to files."""
        match owner:
            case ("call", *_, str(made)) if any(self.library.traits.has(f"{made}.{name}", kind) for kind in _OF_FILES):
                return f"{made}.{name}"
        return f"?.{name}"

    def _looks_at_text(self, path: str, receiver: Atom | None, values: Iterable[Value], given: Call | Given) -> None:
        traits = self.library.traits
        values = list(values)
        texts = [text for text in map(constant, values) if isinstance(text, str)]
        if any(mark in text for text in texts for mark in _ROW_IN_FORMATS):
            self._is_seen(Why.ROWS, given.site)
        if traits.has(path, "shows-own-text") or any(map(_is_code, (atom for value in values for atom in value))):
            self._is_seen(Why.TEXT, given.site)
        if traits.has(path, "shows-rows") or (path.startswith("traceback.print") and "file" in given.kwargs):
            self._is_seen(Why.ROWS, given.site)
        if _seeks(path) and any(text.endswith(".py") and "*" in text.rpartition("/")[2] for text in texts):
            self._is_seen(Why.TEXT, given.site, f"{shown(path)}()")
        atoms = (*(a for value in values for a in value), *(() if receiver is None else (receiver,)))
        if self.starts_program(path):
            commands = list(_commands(values, given.state))
            if any(part in _OF_PROCESSES for words in commands for part in self._parts(words)):
                self._is_seen(Why.CHILDREN, given.site, shown(path))
            is_seen = any(map(self._asks_for_own, commands))
        else:
            is_seen = any(map(self._is_own_file, atoms)) and self._may_look_into(path)
            is_seen = is_seen or self._reads_listed(path, atoms, given.state)
            if traits.has(path, "lists-files") and self._lists_own(path, receiver, values):
                self._listing.add(given.site)
        if is_seen:
            self._is_seen(Why.TEXT, given.site, f"{shown(path)}()")

    @property
    def _file(self) -> str:
        """The name of the main module's file."""
        return f"{self.main.rpartition('.')[2]}.py"

    def _is_own_file(self, atom: Atom) -> bool:
        """Whether something is the path of the main module's file; not of its folder, nor of a file beside it."""
        text = said(atom, self._file)
        return text is not None and leads_to(text, self._file)

    def _may_look_into(self, path: str) -> bool:
        """Whether a function may read a file that it is given; who only computes paths, or shows them, does not."""
        if any(self.library.traits.has(path, kind) for kind in _OF_FILES):
            return True
        effect = self.library.process_effect(path)
        if effect is None:
            return not path.startswith("builtins.")
        return effect.gives != "value" and not path.startswith("?.") and takes_from_folder(path)

    def _lists_own(self, path: str, receiver: Atom | None, values: list[Value]) -> bool:
        """Whether a function finds all files of the program's own folder, or of the one that it was started in."""
        given = [said(value[0], self._file) if len(value) == 1 else None for value in values]
        first = given[0] if given else "."
        if path.startswith("?."):
            folder = None if receiver is None else said(receiver, self._file)
            return folder in _OWN_FOLDERS and (not given or first in _ALL_FILES)
        if path.startswith("glob."):
            return first in _ALL_FILES
        return first in _OWN_FOLDERS

    def _reads_listed(self, path: str, atoms: Iterable[Atom], state: State) -> bool:
        """Whether a function reads a file that was found so, which may be the program: none of which that is denied."""
        if not self._listing or not any(self.library.traits.has(path, kind) for kind in _OF_FILES):
            return False
        found = {site for atom in atoms for site in _parts_of(atom, Site) if site in self._listing}
        return any(not any(_asks_for_others(sym, site) for sym, yes in state.facts if yes) for site in found)

    def _asks_for_own(self, words: list[Atom]) -> bool:
        """Whether a command looks at the text of this program, or at what was changed; not one that only runs it."""
        if len(words) > 1 and words[0] == Lib("sys.executable") and self._is_own_file(words[1]):
            words = words[2:]
        parts = self._parts(words)
        if "git" in parts and parts & _OF_CHANGES:
            return True
        return any(leads_to(part, self._file) or part.endswith("*.py") or part in (".", "./") for part in parts)

    def _parts(self, words: Iterable[Atom]) -> set[str]:
        """The single words of a command."""
        texts = [text for word in words if (text := said(word, self._file)) is not None]
        return {part.strip("'\"();&|<>") for text in texts for part in text.split()}

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        is_told = name in _PLAIN_ROWS | _PLAIN_CODE and isinstance(atom, Unknown) and _tells_places(atom.sym)
        # What a library gives a function of the program has no name here: a warning, a message, a statistic.
        is_row = name == _ROW and isinstance(atom, Unknown) and not _comes_from(atom.sym, _READ_TEXTS)
        if name in _ROWS or is_row or (is_told and name in _PLAIN_ROWS):
            self._is_seen(Why.ROWS, site)
        if name in _CODE or (is_told and name in _PLAIN_CODE):
            self._is_seen(Why.TEXT, site)
        return super()._attribute_of(atom, name, state, frame, site)

    def set_attribute(
        self, owner: Value, attr: str, value: Value, state: State, frame: Frame, site: Site
    ) -> list[State]:
        """``owner.attr = value``; a library may give rows to a function that is put there."""
        if any(
            isinstance(atom, Lib) and self.library.traits.has(f"{atom.path}.{attr}", "shows-rows") for atom in owner
        ):
            self._is_seen(Why.ROWS, site)
        return super().set_attribute(owner, attr, value, state, frame, site)

    def _is_seen(self, why: Why, site: Site, name: str = "") -> None:
        self._asked.setdefault(Doubt(why, name, site))


def _seeks(path: str) -> bool:
    """Whether a function looks for files by a pattern of their names."""
    return path.rpartition(".")[2] in ("glob", "iglob", "rglob")


def _is_code(atom: Atom) -> bool:
    """Whether something is what a function was compiled to."""
    match atom:
        case Unknown(sym=("object", _, "__code__") | (_, ".", "__code__")):
            return True
    return False


def _asks_for_others(sym: Hashable, site: Site) -> bool:
    """Whether a question is about what a call found, and whether it ends as other files than programs do."""
    ends = [const.value for const in _parts_of(sym, Const) if isinstance(const.value, str) and const.value[:1] == "."]
    return bool(ends) and ".py" not in ends and any(found == site for found in _parts_of(sym, Site))


_Part = TypeVar("_Part")


def _parts_of(part: Hashable, kind: type[_Part]) -> Iterator[_Part]:
    """All of a kind that something is made of."""
    if isinstance(part, kind):
        yield part
    elif isinstance(part, Unknown):
        yield from _parts_of(part.sym, kind)
    elif isinstance(part, tuple):
        for inner in part:
            yield from _parts_of(inner, kind)


def _commands(values: Iterable[Value], state: State) -> Iterator[list[Atom]]:
    """The words of commands, where they are lists; a text is one word."""
    for atom in (atom for value in values for atom in value):
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, Sequence) and found.items is not None:
            yield [word for item in found.items for word in item]
        else:
            yield [atom]


def _tells_places(part: Hashable) -> bool:
    """Whether something comes of what gives frames, rows of the stack, or messages."""
    return _comes_from(part, _TELL_PLACES)


def _comes_from(part: Hashable, libraries: tuple[str, ...]) -> bool:
    match part:
        case Unknown(sym=sym):
            return _comes_from(sym, libraries)
        case str(text):
            return text.startswith(libraries)
        case tuple():
            return any(_comes_from(one, libraries) for one in part)
    return False
