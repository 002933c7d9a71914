"""Settings that a program reads from files of its project: what those say now is what it runs with.

A file of whoever runs the program, or one that the program itself writes, is not known.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Sequence_
from typing import Any

from cudalint.machine import mappings, operators, paths, questions
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.paths import Located
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Lib,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace
from cudalint.text import settings

# What the code shows is followed letter by letter as far as that; of more, what it says is known and not how.
_MOST_LETTERS = 4_000
_OPEN = "builtins.open"
_OPENS = frozenset({_OPEN, "io.open", "?.open"})
_READS = frozenset({"?.read", "?.read_text", "?.read_bytes"})
_IS_THERE = frozenset({"os.path.exists", "os.path.isfile", "?.exists", "?.is_file"})
_KINDS = ("json", "toml", "yaml")
# What takes a path as well as an open file.
_OF_PATHS = frozenset({"toml.load", "rtoml.load"})
# By these a program says what is made of the data: with the first, of each table of it, the innermost first.
_HOOK = "object_hook"
_HOOKS = frozenset({"object_pairs_hook", "cls", "decoder", "_dict"})
_GOES = "os.chdir"
_MOVES = frozenset({_GOES, "os.fchdir", "contextlib.chdir"})
# What is written once the folder is another one in which the program runs: any file of a relative path.
_ANYWHERE = Located(None, ("..",))
_WRITES = frozenset("wxa+")
# By what a parser makes the names of options what it keeps: here, as they are written.
_KEEPS, _AS_WRITTEN = "optionxform", (Lib("builtins.str"),)
_PARSER, _SECTION = "configparser.ConfigParser", "configparser.SectionProxy"
# What another option of the section says, or one of those for all, is put in its place, and so on for a few times.
_OTHER = re.compile(r"%\((\w+)\)s")
_MOST_PUT_IN = 4
# What a parser or a section says; and that a parser says something that is not known.
_SAID, _UNSEEN = "<said>", "unknown"
# The section that stands for all others.
_FOR_ALL = "DEFAULT"


def function(machine: Machine, call: Call) -> Value | None:
    """What a function of a library gives that opens or reads a file of settings; None for all others."""
    path = call.path
    if path in _OPENS:
        return _opened(machine, call, call.args[0] if call.args else call.kwargs.get("file", ()), call.args[1:])
    if path in _IS_THERE:
        return _is_there(machine, call, call.args[0] if call.args else ())
    if path in _MOVES:
        _move(machine, call.args[0] if call.args and path == _GOES else ())
    kind = next((kind for kind in _KINDS if machine.library.traits.has(path, f"reads-{kind}")), None)
    if kind is None:
        if machine.library.traits.has(path, "changes-file") or machine.library.process_effect(path) is None:
            _may_write(machine, (*call.args, *call.kwargs.values()), call.state)
        return None
    if call.open or not call.args or not _HOOKS.isdisjoint(call.kwargs) or _is_basic(call):
        return None
    text = _at(machine, call.args[0]) if path in _OF_PATHS else None
    text = _text_of(machine, call.args[0]) if text is None else text
    if text is not None:
        return _said(kind, text, call)
    parts = _parts_of(call.args[0])
    return None if parts is None else _said(kind, _with_holes(parts), call, parts)


def _move(machine: Machine, folder: Value) -> None:
    """The program goes to another folder: what a relative path leads to from then on is another file."""
    place = paths.located(folder)
    if place is None or place.module is None or machine.folder not in (None, place):
        machine.written.add(_ANYWHERE)
    machine.folder = place


def may_write_by(machine: Machine, call: Call) -> None:
    """``subprocess.run(["cp", a, b])``: a command may write the files that it names, if it is no program of Python."""
    given = call.args[0] if call.args else call.kwargs.get("args", ())
    items = machine.exact_items(given, call.state) or [given]
    words = [word for item in items for text in strings(item) for word in text.split()]
    if words and not words[0].rpartition("/")[2].startswith("python") and only(items[0]) != Lib("sys.executable"):
        _may_write(machine, [const(word) for word in words], call.state)


def _may_write(machine: Machine, values: Iterable[Value], state: State) -> None:
    """What is given paths, and changes files or is not known, may put another file there."""
    for value in values:
        for part in (value, *(machine.exact_items(value, state) or ())):
            place = paths.located(part)
            if place is not None and (settings.is_settings(place.name) or "." not in place.name):
                machine.written.add(place)


def _is_basic(call: Call) -> bool:
    """Whether YAML is read so that all in it is text."""
    loader = only(call.kwargs.get("Loader", call.args[1] if len(call.args) > 1 else NONE))
    return isinstance(loader, Lib) and loader.path.endswith("BaseLoader")


def loaded(machine: Machine, kind: str, path: Value, call: Call) -> Value | None:
    """What the file of settings of a kind says that a path leads to, or that is open; None where that is not known."""
    text = _at(machine, path)
    text = _text_of(machine, path) if text is None and isinstance(only(path), Unknown) else text
    return None if text is None else _said(kind, text, call)


def told(machine: Machine, kind: str, text: Value, call: Call) -> Value | None:
    """What a text of a kind says, as the program gets it; None where that is not known."""
    known = _text_of(machine, text)
    return None if known is None else _said(kind, known, call)


def method(machine: Machine, call: Call) -> Value | None:
    """What a method of a path, or of an open file of settings, gives; None for all others."""
    owner, name = call.receiver, call.path
    if not isinstance(owner, Unknown):
        return None
    if name in _READS:
        text = _text_of(machine, (owner,)) if _is_open(owner) else _at(machine, (owner,))
        if text is None and _module_of(machine, owner) is not None:
            return _text_read(name, call)
        return None if text is None else _shown(text, name, call)
    if _is_open(owner):
        text = _text_of(machine, (owner,)) if name == "?.readlines" else None
        return None if text is None else as_value(text.splitlines(keepends=True), call.state, call.site)
    if name == "?.open":
        return _opened(machine, call, (owner,), call.args)
    if name in _IS_THERE:
        return _is_there(machine, call, (owner,))
    last = name.removeprefix("?.")
    if last in paths.WRITE:
        machine.makes_file(call.state)
        _may_write(machine, ((owner,), *call.args), call.state)
    if last in paths.RENAMES and not call.kwargs and paths.written(owner.sym) is not None:
        return unknown("follows", (owner.sym, ".", last), *call.args)
    if last in paths.METHODS and not call.kwargs and paths.of_symbol(owner.sym) is not None:
        return unknown("follows", (owner.sym, ".", last), *call.args)
    return None


def _opened(machine: Machine, call: Call, path: Value, rest: list[Value]) -> Value | None:
    place = paths.located(path)
    mode = constant(call.kwargs.get("mode") or (rest[0] if rest else const("r")))
    writes = not isinstance(mode, str) or not _WRITES.isdisjoint(mode)
    if writes:
        machine.makes_file(call.state)
    if place is None:
        return None
    if writes:
        machine.written.add(place)
        return None
    atom = paths.shown(path)
    if atom is None or not (settings.is_settings(place.name) or _module_at(machine, place)):
        return None
    return unknown("call", call.site, call.state.process.identity, len(call.state.facts), _OPEN, atom)


def _is_open(atom: Unknown) -> bool:
    match atom.sym:
        case ("call", _, _, _, str(path), _):
            return path == _OPEN
    return False


def _text_of(machine: Machine, value: Value) -> str | None:
    """The text of an open file of settings, or one that the code shows: or that is a default."""
    match only(questions.if_unset(questions.if_not_given(value))):
        case Const(value=str(text)):
            return text
        case Const(value=bytes(data)):
            return data.decode(errors="replace")
        case Unknown(sym=("call", _, _, _, str(name), Const() | Unknown() as atom)):
            return _at(machine, (atom,)) if name == _OPEN or name in _READS else None
    return None


def module_of_text(machine: Machine, text: Value) -> str | None:
    """The module of the project whose text a program read; None of any other text."""
    match only(text):
        case Unknown(sym=("call", _, _, _, str(name), Const() | Unknown() as atom)) if name in _READS:
            return _module_of(machine, atom)
    return None


def _module_of(machine: Machine, file: Const | Unknown) -> str | None:
    """The module of the project that a path leads to, or that is open."""
    place = paths.located((_path_of(file),))
    return None if place is None else _module_at(machine, place)


def _module_at(machine: Machine, place: Located) -> str | None:
    """The module of a file that lies there, which the program does not write itself."""
    if not place.name.endswith(".py") or place in machine.written or machine.folder is not None:
        return None
    return machine.program.module_at(place.module, machine.main, place.parts)


def _at(machine: Machine, path: Value) -> str | None:
    """The text of the file of settings that a path leads to."""
    place = paths.located(path)
    return None if place is None else text_at(machine, place)


def text_at(machine: Machine, place: Located) -> str | None:
    """The text of a file of settings that the program does not write itself."""
    if place.module is None and machine.folder is not None:
        place = machine.folder.joined("/".join(place.parts)) or place
    if place.module is None and _ANYWHERE in machine.written:
        return None
    if machine.written and any(
        replace(place, parts=place.parts[:n]) in machine.written for n in range(1, len(place.parts) + 1)
    ):
        return None
    if not settings.is_settings(place.name):
        return None
    if place.module is None:
        # Where a program runs is where it was started.
        machine.consultations += 1
    return machine.program.settings(place.module, machine.main, place.parts)


def _is_there(machine: Machine, call: Call, path: Value) -> Value | None:
    return None if call.kwargs or _at(machine, path) is None else TRUE


def _shown(text: str, name: str, call: Call) -> Value:
    """A text: itself where it is short, else what is known by where it comes from."""
    if len(text) <= _MOST_LETTERS:
        return const(text.encode() if name == "?.read_bytes" else text)
    return _text_read(name, call)


def _text_read(name: str, call: Call) -> Value:
    """The text that a method of a path, or of an open file, gives: known by where it comes from."""
    owner = None if call.receiver is None else _path_of(call.receiver)
    return unknown("call", call.site, call.state.process.identity, len(call.state.facts), name, owner)


def _path_of(file: Atom) -> Atom:
    """The path from which a file was opened, or that is asked itself."""
    match file:
        case Unknown(sym=("call", _, _, _, str(name), Const() | Unknown() as atom)) if name == _OPEN:
            return atom
    return file


def _said(kind: str, text: str, call: Call, parts: Sequence_[Value] = ()) -> Value | None:
    try:
        return as_value(settings.read(kind, text), call.state, call.site, parts=parts)
    except settings.NoSettings:
        return None


def _parts_of(value: Value) -> Sequence_[Value] | None:
    """The parts of a text that the code puts together, of which some are not known; None of any other."""
    match only(value):
        case Unknown(sym=(_, tuple(parts))) if len(parts) > 1 and all(isinstance(part, tuple) for part in parts):
            return [part for part in parts if isinstance(part, tuple)]
    return None


# What stands in a text for a part of it that is not known: a number between two letters that nobody uses.
_HOLE = re.compile("\ue000([0-9]+)\ue001")


def _with_holes(parts: Sequence_[Value]) -> str:
    texts = [constant(part) for part in parts]
    return "".join(text if isinstance(text, str) else f"\ue000{i}\ue001" for i, text in enumerate(texts))


def _filled(text: str, parts: Sequence_[Value], site: Site) -> Value:
    """A text of settings with the parts that it was put together of."""
    pieces = _HOLE.split(text)
    found: list[Value] = [const(piece) if i % 2 == 0 else parts[int(piece)] for i, piece in enumerate(pieces)]
    return operators.joined([part for part in found if part != const("")], ("settings", site))


def hooked(machine: Machine, call: Call, read: Value) -> Results:
    """What was read, each table as the function that is given as ``object_hook`` makes it anew."""
    hook = call.kwargs.get(_HOOK, NONE)
    return [(call.state, read)] if hook == NONE else _rebuilt(machine, call, hook, read, call.state)


def _rebuilt(machine: Machine, call: Call, hook: Value, value: Value, state: State) -> Results:
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Sequence) and found.items is not None:
        return [
            (after, _stored(after, atom, replace(found, items=tuple(parts))))
            for after, parts in _each_rebuilt(machine, call, hook, list(found.items), state)
        ]
    if not isinstance(atom, Ref) or not isinstance(found, Dict):
        return [(state, value)]
    return [
        result
        for after, parts in _each_rebuilt(machine, call, hook, list(found.items.values()), state)
        for result in machine.call_value(
            hook,
            [_stored(after, atom, replace(found, items=dict(zip(found.items, parts, strict=True))))],
            {},
            after,
            call.frame,
            call.site,
        )
    ]


def _each_rebuilt(
    machine: Machine, call: Call, hook: Value, values: list[Value], state: State
) -> list[tuple[State, list[Value]]]:
    done: list[tuple[State, list[Value]]] = [(state, [])]
    for value in values:
        done = [
            (later, [*parts, part])
            for after, parts in done
            for later, part in _rebuilt(machine, call, hook, value, after)
        ]
    return done


def _stored(state: State, ref: Ref, found: Dict | Sequence) -> Value:
    state.store(ref, found)
    return (ref,)


def as_value(
    found: Any, state: State, site: Site, made: dict[int, Value] | None = None, parts: Sequence_[Value] = ()
) -> Value:
    """Plain data as the program gets it; what stands in several places, as an alias of YAML does, is one thing.

    ``parts`` are those of the text that it was read from, where some of them are not known.
    """
    made = {} if made is None else made
    if id(found) in made:
        return made[id(found)]
    match found:
        case dict():
            items = {name: as_value(value, state, site, made, parts) for name, value in found.items() if _is_name(name)}
            whole: Value = (state.new(("settings", site), Dict(items, exact=len(items) == len(found))),)
            return made.setdefault(id(found), whole)
        case list():
            inner = tuple(as_value(part, state, site, made, parts) for part in found)
            whole = (state.new(("settings", site), Sequence("list", inner)),)
            return made.setdefault(id(found), whole)
        case str() if parts and _HOLE.search(found):
            return _filled(found, parts, site)
        case None | bool() | int() | float() | str():
            return const(found)
    return unknown("settings", site)


def _is_name(found: object) -> bool:
    return isinstance(found, str | int | float | bool | None) and _HOLE.search(str(found)) is None


# -- files with sections --------------------------------------------------------------------------


def parser(machine: Machine, call: Call) -> Results:
    """``ConfigParser()``: what files say in their sections."""
    fields = {} if not call.args and not call.kwargs else {_UNSEEN: TRUE}
    made = LibraryObject(_PARSER, fields, call.site)
    return [(call.state, (call.state.new(("parser", call.site), made),))]


def read_sections(machine: Machine, call: Call) -> Results:
    """``parser.read(path)``, ``read_file(stream)``, ``read_string(text)``: what one text says is known."""
    state, ref = call.state, call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, LibraryObject):
        return [(state, unknown("sections", call.site))]
    given = call.args[0] if call.args else ()
    said = _sections(machine, given, call, found.fields.get(_KEEPS) == _AS_WRITTEN)
    before = found.fields.get(_SAID)
    way = {k: v for k, v in found.fields.items() if k == _KEEPS}
    if said is not None and before is None and _UNSEEN not in found.fields:
        fields = {**way, _SAID: as_value(said, state, call.site)}
    else:
        # Several files lie over each other; which of them are there, nobody sees.
        fields = {**way, _UNSEEN: TRUE}
    state.store(ref, replace(found, fields=fields))
    return [(state, unknown("sections", call.site))]


def _sections(machine: Machine, given: Value, call: Call, as_written: bool) -> Any:
    name = call.path.rpartition(".")[2]
    items = machine.exact_items(given, call.state) if name == "read" else None
    if items is not None and len(items) == 1:
        given = items[0]
    text = _at(machine, given) if name == "read" else _text_of(machine, given)
    try:
        return None if text is None else settings.read("ini as written" if as_written else "ini", text)
    except settings.NoSettings:
        return None


def section(machine: Machine, call: Call) -> Results:
    """``parser["server"]``."""
    known, name = _known(call), constant(call.args[0]) if call.args else ...
    inner = None if known is None or not isinstance(name, str) else known.items.get(name)
    if inner is None:
        return [(call.state, _unseen(call))]
    parser = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    fields = {k: v for k, v in parser.fields.items() if k == _KEEPS} if isinstance(parser, LibraryObject) else {}
    if (held := _dict_of(inner, call.state)) is not None and not any(map(_puts_in, held.items.values())):
        fields = {**fields, mappings.SELF: inner}
    made = LibraryObject(_SECTION, {**fields, _SAID: inner}, call.site)
    return [(call.state, (call.state.new(("section", call.site), made),))]


def mapping(machine: Machine, call: Call) -> Results:
    """``section.items()``, ``parser.items("env")``, ``parser.options("env")``: what a section says, as a dict does."""
    states: Results = [(call.state, (call.receiver,) if call.receiver is not None else ())]
    if call.path.startswith(_PARSER):
        if len(call.args) != 1:
            return [(call.state, _unseen(call))]
        states = section(machine, call)
    name = {"options": "keys", "__iter__": "keys"}.get(last := call.path.rpartition(".")[2], last)
    results: Results = []
    for state, value in states:
        held = mappings.dict_of(only(value), state)
        if held is None:
            results.append((state, _unseen(call)))
            continue
        method: Value = (Bound(Lib(f"builtins.dict.{name}"), held),)
        results.extend(machine.call_value(method, [], {}, state, call.frame, call.site))
    return results


def names(machine: Machine, call: Call) -> Results:
    """``parser.sections()``: their names."""
    known = _known(call)
    if known is None or not known.exact:
        return [(call.state, _unseen(call))]
    rows = tuple(const(name) for name in known.items if name != _FOR_ALL)
    return [(call.state, (call.state.new(("sections", call.site), Sequence("list", rows)),))]


def option(machine: Machine, call: Call) -> Results:
    """``parser.getint("server", "workers", fallback=1)``, ``section.get("workers", "1")``, ``section["workers"]``."""
    state, known, args = call.state, _known(call), list(call.args)
    if known is not None and call.path.startswith(_PARSER):
        inner = known.items.get(constant(args[0]), ()) if args else ()
        known, args = _dict_of(inner, state), args[1:]
    names = strings(args[0]) if args else []
    if known is None or len(names) != 1 or "vars" in call.kwargs:
        return [(state, _unseen(call))]
    name = _as_kept(names[0], call)
    if name is None:
        return [(state, _unseen(call))]
    value = known.items.get(name)
    if value is None and not known.exact:
        return [(state, _unseen(call))]
    if value is None:
        default = call.kwargs.get("fallback") or (args[1] if len(args) > 1 else NONE)
        return [(state, default)]
    return [(state, _converted(call.path.rpartition(".")[2], _put_together(value, known), call))]


def _put_together(value: Value, known: Dict) -> Value:
    """What an option says, with what others say in the place of their names, where that is known."""
    text = constant(value)
    for _ in range(_MOST_PUT_IN):
        others = _OTHER.findall(text) if isinstance(text, str) else []
        found = {name: constant(known.items.get(name.lower(), ())) for name in others}
        said = {name: one for name, one in found.items() if isinstance(one, str)}
        if not isinstance(text, str) or not said or len(said) < len(found):
            break
        for name, one in said.items():
            text = text.replace(f"%({name})s", one)
    return const(text) if isinstance(text, str) else value


def _as_kept(name: str, call: Call) -> str | None:
    """A name as a parser keeps it: in small letters, unless the program says how; None where that is not known."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    way = found.fields.get(_KEEPS) if isinstance(found, LibraryObject) else None
    if way is None:
        return name.lower()
    return name if way == _AS_WRITTEN else None


def _unseen(call: Call) -> Value:
    """What is asked of a parser or a section of which that is not known: the same wherever it is asked."""
    return unknown("lookup", call.receiver, tuple(call.args))


def _known(call: Call) -> Dict | None:
    """What is known of a parser, or of a section."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return _dict_of(found.fields.get(_SAID, ()), call.state) if isinstance(found, LibraryObject) else None


def _dict_of(value: Value, state: State) -> Dict | None:
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    return found if isinstance(found, Dict) else None


_TRUTHS = {"1": TRUE, "yes": TRUE, "true": TRUE, "on": TRUE, "0": FALSE, "no": FALSE, "false": FALSE, "off": FALSE}


def _puts_in(value: Value) -> bool:
    """Whether what another option says is put into a text."""
    text = constant(value)
    return not isinstance(text, str | None) or (isinstance(text, str) and ("%(" in text or "${" in text))


def _converted(name: str, value: Value, call: Call) -> Value:
    text = constant(value)
    nothing = _unseen(call)
    if not isinstance(text, str) or _puts_in(value):
        return value if text is None else nothing
    try:
        match name:
            case "getint":
                return const(int(text))
            case "getfloat":
                return const(float(text))
            case "getboolean":
                return _TRUTHS.get(text.lower(), nothing)
    except ValueError:
        return nothing
    return value


def changed(machine: Machine, call: Call) -> Results:
    """``parser[section] = {...}``, ``parser.set(section, option, value)``, ``section[option] = value`` and the like.

    Where it is not known what is put there, what it holds is not followed from there on.
    """
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(call.receiver, Ref) or not isinstance(found, LibraryObject) or _is_put(machine, call, found):
        return [(call.state, NONE)]
    held = only(found.fields.get(_SAID, ()))
    if found.type == _SECTION and isinstance(held, Ref):
        # Whoever looks it up again gets another object, of the same section.
        call.state.store(held, Dict({}, exact=False))
    call.state.store(call.receiver, replace(found, fields={_UNSEEN: TRUE}))
    return [(call.state, NONE)]


def _is_put(machine: Machine, call: Call, found: LibraryObject) -> bool:
    """Put what is known into a parser or a section of which all is known; whether that can be done."""
    name, args = call.path.rpartition(".")[2], call.args
    if call.open or call.kwargs or not args:
        return False
    if found.type == _SECTION:
        options = _given_options(machine, call, args, is_item=name == "__setitem__")
        return options is not None and _put_options(call.state, found.fields.get(_SAID, ()), options)
    if _UNSEEN in found.fields or found.fields.get(_KEEPS, _AS_WRITTEN) != _AS_WRITTEN:
        return False
    if name in ("read_dict", "update"):
        given = _dict_of(args[0], call.state)
        rows = given.items.items() if given is not None and given.exact else None
        return rows is not None and all(_put_section(machine, call, key, value, name) for key, value in rows)
    section = constant(args[0])
    if name == "set":
        options = _given_options(machine, call, args[1:], is_item=True)
        inner = known.items.get(section, ()) if (known := _known(call)) is not None else ()
        return options is not None and _put_options(call.state, inner, options)
    value = args[1] if name == "__setitem__" and len(args) > 1 else () if name == "add_section" else None
    return value is not None and _put_section(machine, call, section, value, name)


def _given_options(machine: Machine, call: Call, args: list[Value], *, is_item: bool) -> dict[Hashable, Value] | None:
    """The options that a section is given, one or those of a dict, by the names under which the parser keeps them."""
    given = _dict_of(args[0], call.state) if args and not is_item else None
    rows = given.items if given is not None and given.exact else None
    if is_item and len(args) == 2:
        rows = {constant(args[0]): args[1]}
    if rows is None:
        return None
    kept = {_as_kept(key, call): _as_option(value) for key, value in rows.items() if isinstance(key, str)}
    if len(kept) < len(rows):
        return None
    return {key: value for key, value in kept.items() if key is not None}


def _as_option(value: Value) -> Value:
    """What a parser keeps of a value: its text."""
    text = constant(value)
    return const(str(text)) if isinstance(text, bool | int | float) else value


def _put_options(state: State, section: Value, options: dict[Hashable, Value]) -> bool:
    ref = only(section)
    held = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(held, Dict):
        return False
    state.store(ref, replace(held, items={**held.items, **options}))
    return True


def _put_section(machine: Machine, call: Call, section: object, value: Value, name: str) -> bool:
    """A section that stands beside the others, or in the place of one, over what stands for all of them."""
    state = call.state
    options = {} if not value else _given_options(machine, call, [value], is_item=False)
    known = _known(call) or Dict({})
    found = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if options is None or not isinstance(section, str) or not isinstance(found, LibraryObject):
        return False
    if section == _FOR_ALL and known.items.keys() - {_FOR_ALL}:
        # Which of them have it by themselves is not kept.
        return False
    shared = _dict_of(known.items.get(_FOR_ALL, ()), state)
    before = _dict_of(known.items.get(section, ()), state) if name == "read_dict" else None
    items: dict[Hashable, Value] = {**(shared.items if shared else {}), **(before.items if before else {}), **options}
    made: Value = (state.new(("option section", call.site, section), Dict(items)),)
    said: Value = (state.new(("sections", call.site, "said"), replace(known, items={**known.items, section: made})),)
    if isinstance(call.receiver, Ref):
        state.store(call.receiver, replace(found, fields={**found.fields, _SAID: said}))
    return True


def has(machine: Machine, call: Call) -> Results:
    """``parser.has_option(section, option)``, ``parser.has_section(section)``."""
    known: Dict | None = _known(call)
    for value in call.args:
        name = constant(value)
        if known is None or not isinstance(name, str):
            return [(call.state, _unseen(call))]
        inner = known.items.get(name, known.items.get(_as_kept(name, call) or name))
        if inner is None and not known.exact:
            return [(call.state, _unseen(call))]
        if inner is None:
            return [(call.state, FALSE)]
        known = _dict_of(inner, call.state)
    return [(call.state, TRUE)]
