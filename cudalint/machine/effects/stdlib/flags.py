"""What a user of a command line may say instead of a default: flags are given or not, and either may be meant."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine import enums
from cudalint.machine.heap import ARGV, Class, Closure, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import FALSE, TRUE, Bound, Lib, Ref, Unknown, Value, const, constant, only, unknown
from cudalint.structs import Frozen

# Texts by which an option says no: whoever has a GPU may say something else.
_WITHOUT = frozenset({"no", "n", "false", "f", "off", "none", "cpu"})


def may_be_given(default: Value, names: Iterable[str], site: Site) -> Value:
    """A flag with a default, by how it is spelled and how it is switched off: what it is if a user says so."""
    on, off = names
    if default == TRUE:
        return unknown("option", site, off, "off")
    return unknown("option", site, on, "flag") if default == FALSE else default


def as_option(default: Value, given: Value) -> Value:
    """An option that the user may set: a flag may be true or false, a default of nothing may become something.

    One of something may become several; a weight of 1.0 counts nothing.
    """
    found = constant(default)
    if isinstance(found, bool):
        return given
    if isinstance(found, float) and found == 1:
        return default
    if found in (-1, 0, 1, "", "0", "-1") or (isinstance(found, str) and found.lower() in _WITHOUT):
        return (*default, *given)
    return default


class Line(Frozen):
    """The words of a command line that are known; ``is_open``: a user may add others."""

    words: tuple[str, ...]
    is_open: bool = False

    def said(self, option: str) -> str | None:
        """What an option is set to: the last time that it is named, behind a sign or in the word that follows."""
        for i in range(len(self.words) - 1, -1, -1):
            flag, is_set, after = self.words[i].partition("=")
            if flag == option and is_set:
                return after
            if flag == option and i + 1 < len(self.words):
                return self.words[i + 1]
        return None


def own_line(machine: Machine, state: State) -> Line | None:
    """The words of the program's own command line, where a file or the program itself gives them and all are known."""
    machine.record.reads_words = True
    found = state.get(ARGV)
    return line_of(found) if isinstance(found, Sequence) and found.items and not found.element else None


def line_of(found: Sequence) -> Line | None:
    """The words that a list holds; None where one of them is not known."""
    items = found.items
    words = [text for item in items or () if isinstance(text := constant(item), str)]
    return Line(tuple(words), found.open) if items is not None and len(words) == len(items) else None


def of_function(machine: Machine, function: Value, state: State, line: Line | None = None) -> dict[str, Value]:
    """What a command line sets of a function, or of a record, that it is made of: by its words, where known."""
    atom = only(function)
    atom = atom.function if isinstance(atom, Bound) else atom
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Class) and isinstance(atom, Ref) and not machine.record_fields(atom, state):
        found = _initialiser(machine, Instance(atom, {}, found.site), state)
    kinds: dict[str, str] = {}
    listed: dict[str, tuple[str, ...]] = {}
    match found:
        case Closure(defaults=defaults, module=module, function=code):
            given, site = dict(defaults), Site(module, code.ordinal)
            kinds = {param.name: param.type for param in code.params}
            listed = {param.name: param.words for param in code.params}
        case Class(site=site) if isinstance(atom, Ref):
            given = {name: default for name, default in machine.record_fields(atom, state) if default is not None}
            listed = words_of_fields(machine, atom, state)
        case _:
            return {}
    flags: dict[str, Value] = {}
    for name, default in given.items():
        on, off = _spelled(name)
        text = None if line is None else line.said(on)
        if default not in (TRUE, FALSE):
            option = as_option(default, unknown("option", site, on, "choice"))
            words = _words_of(default, state) or {word: const(word) for word in listed.get(name, ())}
            if line is None:
                machine.record.offers.add(on, _word(default), words)
            if text is not None and text in words:
                flags[name] = words[text]
            elif text is not None:
                flags[name] = _as_typed(text, kinds.get(name, ""), default)
            # How many there are of something is what the function says, as long as nobody says otherwise.
            elif (line is None or line.is_open) and option != default and default not in (const(0), const(1)):
                flags[name] = option
        elif line is None or (line.is_open and on not in line.words and off not in line.words):
            flags[name] = may_be_given(default, (on, off), site)
        elif not line.words:
            flags[name] = default
        elif line.words.count(on) != line.words.count(off):
            flags[name] = const(on in line.words)
        # A command that says nothing of it leaves it as it is.
        flags.setdefault(name, default)
    return flags


def _initialiser(machine: Machine, made: Instance, state: State) -> Closure | None:
    """The ``__init__`` by which an object is made, where the program wrote it."""
    method = machine.user_method(made, "__init__", state)
    found = state.get(method) if isinstance(method, Ref) else None
    return found if isinstance(found, Closure) else None


def _words_of(default: Value, state: State) -> dict[str, Value]:
    """The words that an option takes whose default is a member of an Enum, each with the member that it becomes."""
    member = enums.member_of(default)
    cls = None if member is None else state.get(member.cls)
    return {_word(one): one for one in enums.members(cls, state)} if isinstance(cls, Class) else {}


def words_of_fields(machine: Machine, cls: Ref, state: State) -> dict[str, tuple[str, ...]]:
    """The words that the fields of a record take which are said to be one of few."""
    types = {name: _listed(machine, value, state) for name, value in machine.field_types(cls, state).items()}
    return {name: words for name, words in types.items() if words}


def _listed(machine: Machine, kind: Value, state: State) -> tuple[str, ...]:
    """The words of ``Literal["fork", "spawn"]``, or of a name for it; empty for other types."""
    words = constant(kind)
    match only(kind):
        case Unknown(sym=(Lib(path=path), "[]", tuple(key))) if path.rpartition(".")[2] == "Literal":
            words = tuple(map(constant, machine.exact_items(key, state) or ()))
    return words if isinstance(words, tuple) and all(isinstance(word, str) for word in words) else ()


def _word(value: Value) -> str:
    """How a user writes one of few words, or a member of an Enum."""
    member = enums.member_of(value)
    known = constant(value if member is None else member.value)
    return str(known) if member is not None or isinstance(known, str) else ""


# What a word becomes, by the annotation of its parameter.
_MAKES: dict[str, type[int] | type[float] | type[str]] = {"int": int, "float": float, "str": str, "Path": str}


def _as_typed(text: str, kind: str, default: Value) -> Value:
    """A word as the type of its parameter, or that of its default, has it."""
    known = constant(default)
    made = _MAKES.get(kind) or (type(known) if isinstance(known, int | float | str) else None)
    try:
        return unknown("option", text) if made is None else const(made(text))
    except ValueError:
        return unknown("option", text)


def _spelled(name: str) -> tuple[str, str]:
    """How a flag is given, and how it is switched off."""
    text = name.replace("_", "-")
    return f"--{text}", f"--no-{text}"
