"""Options of a program's own command line, as argparse reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cudalint.machine import paths
from cudalint.machine.effects.command_line import declared
from cudalint.machine.effects.receivers import keep_self
from cudalint.machine.effects.stdlib.attributes import has
from cudalint.machine.effects.stdlib.environment import is_started_by_program, note_machines
from cudalint.machine.effects.stdlib.flags import as_option
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import ARGV, MADE_OPTION, NAMESPACE, WHOLE, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.presence import NEEDED, NEEDED_NUMBER
from cudalint.machine.slices import is_rest
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Atom,
    Const,
    Lib,
    Partial,
    Rank,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace

# Before the name of an option: how it is spelled, and what makes it of a word.
_SPELLED, _TYPE = "<spelled> ", "<type> "
# Before the name of an option: the words that it takes.
_WORDS = "<words> "
# Begins what stands for a word that is a path.
_PATH_AT = "\0path "
# What makes the object of the program's own class that is called where an option is given.
_ACTION = "<action> "
_PARSER = "argparse.ArgumentParser"
# What the local rank is if no launcher says it.
_OF_RANK = "<default of the local rank>"
# Of the parser of a command: which parser has it, and its name; of a parser with commands: the option that names one.
_OF, _NAME, _NAMES = "<of>", "<name>", "<names>"
_FILE_TYPE = "argparse.FileType"
# What it means that an option is true which is a list: that it is given.
_LIST = "list"
# As many words as a user writes, or none.
_ANY_NUMBER = (const("*"), (Lib("argparse.REMAINDER"),))
_NUMBERS = frozenset({Lib("builtins.int"), Lib("builtins.float")})
# Of an option with one of these types and no default, to be true is to be given.
_TEXTS = frozenset({Lib("builtins.str"), Lib("pathlib.Path")})
# The object of a process that holds its flags, of which nothing but these is known.
_FLAGS = unknown("absl.flags.FLAGS")


def parser(machine: Machine, call: Call) -> Results:
    """``ArgumentParser()``, or one below it: gathers the defaults of its arguments, those of its parents first."""
    fields = _inherited(machine, call)
    made: Value = (call.state.new(("parser", call.site), LibraryObject(_PARSER, fields, call.site)),)
    if not call.path.endswith(".__init__"):
        return [(call.state, made)]
    keep_self(call, made)
    return [(call.state, NONE)]


def commands(machine: Machine, call: Call) -> Results:
    """``parser.add_subparsers(dest="command")``: the parser has commands, and an option that names the given one."""
    dest = constant(call.kwargs.get("dest", NONE))
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(dest, str) and isinstance(call.receiver, Ref) and isinstance(found, LibraryObject):
        call.state.store(call.receiver, replace(found, fields={**found.fields, _NAMES: const(dest)}))
    return [(call.state, (call.receiver,) if call.receiver is not None else unknown("parser", call.site))]


def command(machine: Machine, call: Call) -> Results:
    """``subparsers.add_parser("name")``: what any command sets is in the one namespace."""
    ref, found, _ = _parser_of(call)
    name = constant(call.args[0]) if call.args else ...
    if ref is None or found is None:
        return [(call.state, unknown("parser", call.site))]
    dest = found.fields.get(_NAMES)
    own = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(own, LibraryObject) and _NAMES in own.fields:
        dest = own.fields[_NAMES]
    given = {} if not isinstance(name, str) else {_of_command(name, ""): dest or NONE}
    call.state.store(ref, replace(found, fields={**found.fields, **_inherited(machine, call), **given}))
    if not isinstance(name, str):
        return [(call.state, (ref,))]
    made = LibraryObject(_PARSER, {_OF: (ref,), _NAME: const(name)}, call.site)
    return [(call.state, (call.state.new(("command", call.site), made),))]


def _parser_of(call: Call) -> tuple[Ref | None, LibraryObject | None, str]:
    """The parser in which a parser of a command keeps what is said of it, and the name of the command."""
    ref = call.receiver if isinstance(call.receiver, Ref) else None
    found = call.state.get(ref) if ref is not None else None
    if not isinstance(found, LibraryObject):
        return None, None, ""
    name = constant(found.fields.get(_NAME, ()))
    above = only(found.fields.get(_OF, ()))
    if not isinstance(above, Ref) or not isinstance(name, str):
        return ref, found, ""
    parser = call.state.get(above)
    return (above, parser, name) if isinstance(parser, LibraryObject) else (None, None, "")


def _of_command(name: str, option: str) -> str:
    """Where a parser keeps what one of its commands says of an option."""
    return f"<of {name}> {option}"


def _inherited(machine: Machine, call: Call) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    for value in machine.exact_items(call.kwargs.get("parents") or (), call.state) or ():
        parent = call.state.get(atom) if isinstance(atom := only(value), Ref) else None
        fields.update(parent.fields if isinstance(parent, LibraryObject) else {})
    return fields


def set_defaults(machine: Machine, call: Call) -> Results:
    """``set_defaults(func=run)``: of several commands, each sets its own."""
    ref, found, command_ = _parser_of(call)
    if ref is None or found is None:
        return [(call.state, NONE)]
    fields = dict(found.fields)
    for name, value in call.kwargs.items():
        before = fields.get(f"--{name}", ())
        several = isinstance(only(value), Ref) and not any(isinstance(a, Unknown) for a in before)
        given = unknown("option", call.site, name) if constant(value) is True else _asked(before, call, name)
        fields[f"--{name}"] = union([before, value]) if several else as_option(value, given)
        if command_:
            fields[_of_command(command_, name)] = value
    call.state.store(ref, replace(found, fields=fields))
    return [(call.state, NONE)]


def _asked(before: Value, call: Call, name: str) -> Value:
    """What a user says by an option whose default is another one now."""
    options = tuple(a for a in before if isinstance(a, Unknown) and isinstance(a.sym, tuple) and a.sym[0] == "option")
    return options or unknown("option", call.site, name)


def add_argument(machine: Machine, call: Call) -> Results:
    """``add_argument("--workers", default=4)``."""
    ref, found, command_ = _parser_of(call)
    if ref is None or found is None:
        return [(call.state, unknown("argument", call.site))]
    names, long = _names(call), _long(call)
    given = call.kwargs.get("dest")
    name = constant(given) if given is not None else (long[0].lstrip("-").replace("-", "_") if long else ...)
    if isinstance(name, str):
        default = call.kwargs.get("default")
        value: Value = unknown("option", call.site, *_spelled(machine, call, long))
        note_machines(call.state, name)
        if name == "local_rank" and not is_started_by_program(call.state.process):
            # The launcher hands it to each rank, whatever its default.
            value = (Rank("local"),)
            found = replace(found, fields={**found.fields, _OF_RANK: default or NONE})
            call.state.process = replace(call.state.process, local_rank_at_hand=True)
        elif _is_file(machine, call.kwargs.get("type", NONE)):
            value = unknown("file", call.site)
        elif default is not None and default != NONE:
            is_settled = f"--{name}" not in found.fields and _is_idle(call, default)
            value = default if is_settled else _listed(machine, call, default, value)
        choices = machine.exact_items(call.kwargs.get("choices", NONE), call.state) or ()
        value = _with_gpu(machine, choices, call, value)
        made = {} if _is_plain(machine, call) else {MADE_OPTION: const(name)}
        spelled = {f"{_SPELLED}{name}": const(_as_spelled(call, names))}
        if command_:
            made[_of_command(command_, name)] = value
        kind = call.kwargs.get("type", NONE)
        if declared.is_converter(kind):
            made[f"{_TYPE}{name}"] = kind
        if isinstance(only(call.kwargs.get("action", NONE)), Ref):
            made[f"{_ACTION}{name}"] = _action(call, name, names)
        made.update(_words_of_choice(choices, name))
        made.update(_declared(call, names, found))
        call.state.store(ref, replace(found, fields={**found.fields, f"--{name}": value, **spelled, **made}))
    else:
        call.state.store(ref, replace(found, fields={**found.fields, declared.UNDECLARED: TRUE}))
    return [(call.state, NONE)]


def _words_of_choice(choices: Collection[Value], name: str) -> dict[str, Value]:
    """The words of which an option is one, as its choices say."""
    words = [constant(one) for one in choices]
    return {f"{_WORDS}{name}": const(tuple(words))} if words and all(isinstance(word, str) for word in words) else {}


def _with_gpu(machine: Machine, choices: Collection[Value], call: Call, value: Value) -> Value:
    """An option that a user may set to a GPU of torch's, as its choices say."""
    gpus = [one for one in choices if any(text.startswith("cuda") for text in strings(one))]
    if not gpus or any(atom in value for one in gpus for atom in one):
        return value
    return union((value, unknown("option", call.site, *_spelled(machine, call, _long(call))), gpus[0]))


def _names(call: Call) -> list[str]:
    return [name for value in call.args for name in strings(value)]


def _long(call: Call) -> list[str]:
    return [name for name in _names(call) if name.startswith("--")] or _names(call)


def _declared(call: Call, names: list[str], parser: LibraryObject) -> dict[str, Value]:
    """What argparse can be told of an option."""
    told = None if call.open or len(names) != len(call.args) else declared.declaration(names, call.kwargs)
    return {declared.UNDECLARED: TRUE} if told is None else {f"{declared.DECLARED}{len(parser.fields)}": told}


def _action(call: Call, name: str, names: list[str]) -> Value:
    """``action=GpuAction``: argparse tells a class of the program's own what the option is."""
    spelled = call.state.new(("names", call.site), Sequence("list", tuple(const(n) for n in names)))
    told = {k: v for k, v in call.kwargs.items() if k != "action"}
    told.update(option_strings=(spelled,), dest=const(name))
    return (Partial(call.kwargs["action"], (), tuple(told.items())),)


def _as_spelled(call: Call, names: list[str]) -> str:
    """How an option is spelled, behind what its words become: text, a number, what its type makes, or nothing known."""
    kinds = {NONE: "text", (Lib("builtins.str"),): "text", (Lib("builtins.int"),): "int"}
    kind = call.kwargs.get("type", NONE)
    known = "made" if declared.is_converter(kind) else kinds.get(kind, "other")
    action = call.kwargs.get("action", NONE)
    plain = (action in (NONE, const("store")) or isinstance(only(action), Ref)) and "nargs" not in call.kwargs
    return " ".join([known if plain else "other", *names])


def _is_file(machine: Machine, kind: Value) -> bool:
    """Whether an option becomes a file that is open: what its default names is opened, too."""
    match only(kind):
        case Lib(path=path):
            return machine.library.traits.has(machine.library.canonical(path), "opens-file")
        case Unknown(sym=tuple(sym)):
            return _FILE_TYPE in sym
    return False


def _is_plain(machine: Machine, call: Call) -> bool:
    """Whether an option is text or a number, or what a library makes of one that holds nothing else."""
    action, kind = call.kwargs.get("action", NONE), call.kwargs.get("type", NONE)
    path = atom.path if isinstance(atom := only(kind), Lib) else ""
    effect = machine.library.process_effect(machine.library.canonical(path)) if path else None
    is_plain = atom in (*NONE, *_NUMBERS, *_TEXTS) or (effect is not None and effect.gives == "value")
    return is_plain and (action == NONE or isinstance(constant(action), str))


def _is_empty_unless_given(machine: Machine, call: Call, names: list[str]) -> bool:
    """Whether an option is a list of nothing where no user gives it: by its default, or as words in any number."""
    default = call.kwargs.get("default", NONE)
    is_named = any(name.startswith("-") for name in names)
    if default == NONE:
        return not is_named and call.kwargs.get("nargs") in _ANY_NUMBER
    return machine.exact_items(default, call.state) == []


def _spelled(machine: Machine, call: Call, names: list[str]) -> tuple[str, str]:
    """How a user writes an option, and what it means that it is true: of flags, that they are given.

    Without what is needed the parser ends the program.
    """
    action = constant(call.kwargs.get("action", NONE))
    default = constant(call.kwargs.get("default", NONE))
    flag = names[0] if names else "an argument"
    if _is_empty_unless_given(machine, call, names):
        return flag, _LIST
    if action == "store_false":
        return flag, "off"
    if action == "store_true" and default is not True:
        return flag, "flag"
    kind = only(call.kwargs.get("type", NONE))
    is_needed = default is None and _is_needed(call, flag)
    if default is None and kind in _NUMBERS:
        return flag, NEEDED_NUMBER if is_needed else "number"
    if is_needed and (kind in NONE or kind in _TEXTS):
        return flag, NEEDED
    return flag, "value" if default in (None, "") and (kind in NONE or kind in _TEXTS) else "choice"


def _is_needed(call: Call, flag: str) -> bool:
    """Whether a user has to give something: one argument at its place, or an option that is required."""
    if call.open or "nargs" in call.kwargs or constant(call.kwargs.get("action", const("store"))) != "store":
        return False
    return call.kwargs.get("required") == TRUE if flag.startswith("-") else "required" not in call.kwargs


def _is_idle(call: Call, default: Value) -> bool:
    """Whether a switch sets what its default is already: ``action="store_true", default=True``."""
    action = constant(call.kwargs.get("action", NONE))
    return (action, default) in (("store_true", TRUE), ("store_false", FALSE))


def _listed(machine: Machine, call: Call, default: Value, given: Value) -> Value:
    """An option with a default: a list of nothing, or of one where it may have several, may become a longer one."""
    items = machine.exact_items(default, call.state)
    if items == []:
        return given
    return (*default, *given) if items and len(items) == 1 and "nargs" in call.kwargs else as_option(default, given)


def flags(machine: Machine, call: Call) -> Results:
    """``absl.flags.FLAGS``: the one object whose attributes all flags are."""
    return [(call.state, _FLAGS)]


def define_flag(machine: Machine, call: Call) -> Results:
    """``flags.DEFINE_string("device", "cuda", "what it is")``: a flag, and its holder, whose ``value`` it is."""
    state, name, default = call.state, constant(call.get("name") or ()), call.get("default") or NONE
    if not isinstance(name, str):
        return [(state, unknown("flag", call.site))]
    given = unknown("option", call.site, f"--{name}", "value" if default == NONE else "choice")
    value = given if default == NONE else as_option(default, given)
    states = machine.set_attribute(_FLAGS, name, value, state, call.frame, call.site)
    holder = LibraryObject(NAMESPACE, {"value": value, "name": const(name)}, call.site)
    return [(after, (after.new(("flag", call.site), holder),)) for after in states]


def parse_args(machine: Machine, call: Call) -> Results:
    """``parse_args()``: a namespace of the defaults; options without one are unknown but stay the same."""
    machine.record.reads_words = True
    _, found, _ = _parser_of(call)
    fields: dict[str, Value] = {}
    kinds: dict[str, Value] = {}
    acts: dict[str, Value] = {}
    given: dict[str, Value] = {}
    told: list[str] | None = None
    if isinstance(found, LibraryObject):
        words = words_of(machine, call)
        said = {**found.fields, **_said_by_command(found, words or ())}
        if call.frame.tries and _are_refused(found.fields, words):
            return machine.fail(call.state, call.frame, Raised(None, ("SystemExit",)))
        known = _written_down(machine, call, found.fields, words)
        # Of the options that are not among the known ones none is given.
        told = words if known is None else []
        fields = {k[2:]: _parsed_as(v, told) for k, v in said.items() if k.startswith("--")}
        if (words is not None or _own_words(call) is not None) and _OF_RANK in found.fields:
            # No launcher hands it over where the program writes down all words.
            fields["local_rank"] = found.fields[_OF_RANK]
        given = _given_among(machine, call, found.fields) if known is None else known
        if words is None and not given and _is_of_user(call):
            _offer(machine, found.fields)
        acts = {name: value for name, value in given.items() if f"{_ACTION}{name}" in found.fields}
        fields |= {name: value for name, value in given.items() if name not in acts}
        fields |= {k: v for k, v in found.fields.items() if k == MADE_OPTION}
        fields |= {} if declared.UNDECLARED in found.fields else {WHOLE: TRUE}
        kinds = {k.removeprefix(_TYPE): v for k, v in found.fields.items() if k.startswith(_TYPE)}
    results: Results = []
    converted = _converted(machine, call, fields, kinds, given)
    for state, options in [way for after, made in converted for way in _left_out(after, made, told, call)]:
        for after, namespace in _namespaces(machine, replace(call, state=state), options):
            acted = _acted(machine, replace(call, state=after), {} if found is None else found.fields, acts, namespace)
            results.extend(_parsed(call, done, namespace) for done in acted)
    return results


def _left_out(
    state: State, options: dict[str, Value], words: list[str] | None, call: Call
) -> list[tuple[State, dict[str, Value]]]:
    """Lists of words are empty where a user writes none: what they are laid over stays then as it is."""
    lists = {name: sym for name, value in options.items() if (sym := _list_of_words(value)) is not None}
    answers = [state.fact(sym) for sym in lists.values()]
    if not lists or True in answers:
        return [(state, options)]
    is_told = words is not None and not any(_is_given(flag, words) for _, _, flag, _ in lists.values())
    given = None if is_told or None not in answers else state.clone()
    for sym in lists.values():
        state.assume(sym, False)
    empty = {name: (state.new(("no words", call.site, name), Sequence("list", ())),) for name in lists}
    left_out = state, {**options, **empty}
    if given is None:
        return [left_out]
    # Of several nobody knows which one is given.
    for sym in lists.values() if len(lists) == 1 else ():
        given.assume(sym, True)
    return [left_out, (given, options)]


def _list_of_words(value: Value) -> tuple[str, Site, str, str] | None:
    """What is asked of an option that is a list of words, or of nothing: whether it is given."""
    match only(value):
        case Unknown(sym=("option", Site() as site, str(flag), str(kind))) if kind == _LIST:
            return "option", site, flag, kind
    return None


def _is_of_user(call: Call) -> bool:
    """Whether the words that are parsed are those of the program's own command line, and a user writes them."""
    given = call.get("args")
    return (given is None or given == NONE or _is_argv(given)) and call.state.get(ARGV) is None


def _offer(machine: Machine, fields: dict[str, Value]) -> None:
    """Note which options have a default that is one of few words."""
    for name in [key.removeprefix(_WORDS) for key in fields if key.startswith(_WORDS)]:
        default, listed = constant(fields.get(f"--{name}", ())), constant(fields[f"{_WORDS}{name}"])
        kind, *names = str(constant(fields[f"{_SPELLED}{name}"])).split()
        if kind == "text" and isinstance(default, str) and isinstance(listed, tuple):
            machine.record.offers.add(max(names, key=len), default, listed)


def _are_refused(fields: dict[str, Value], words: list[str] | None) -> bool:
    """Whether argparse ends a program that is given these words."""
    return words is not None and declared.parsed(fields, words) is declared.REFUSED


def _written_down(
    machine: Machine, call: Call, fields: dict[str, Value], words: list[str] | None
) -> dict[str, Value] | None:
    """The options that are given by words which are all written down, as argparse reads them; None of others."""
    if not words or _NAMES in fields:
        return None
    given = declared.parsed(fields, words)
    return (
        None
        if given is None or given is declared.REFUSED
        else {name: _as_value(value, machine, call) for name, value in given.items()}
    )


def _as_value(value: object, machine: Machine, call: Call) -> Value:
    if isinstance(value, list):
        row = Sequence("list", tuple(_as_value(part, machine, call) for part in value))
        return (call.state.new(("option", call.site), row),)
    if isinstance(value, str):
        return _in_its_place(value, machine, call)
    return const(value if isinstance(value, bool | int | float | str) else None)


def _namespaces(machine: Machine, call: Call, fields: dict[str, Value]) -> Results:
    given = call.get("namespace")
    if given is not None and given != NONE:
        return [(after, given) for after in _filled(machine, call, given, fields)]
    made = LibraryObject(NAMESPACE, fields, call.site)
    return [(call.state, (call.state.new(("namespace", call.site), made),))]


def _acted(
    machine: Machine, call: Call, fields: dict[str, Value], acts: dict[str, Value], namespace: Value
) -> list[State]:
    """What is left where the program's own actions were called for the options that are given."""
    states = [call.state]
    own: Value = () if call.receiver is None else (call.receiver,)
    for name, value in acts.items():
        _, _, spelled = str(constant(fields[f"{_SPELLED}{name}"])).partition(" ")
        given = [own, namespace, value, const(spelled.split()[-1])]
        states = [
            after
            for state in states
            for made, action in machine.call_value(fields[f"{_ACTION}{name}"], [], {}, state, call.frame, call.site)
            for after, _ in machine.call_value(action, given, {}, made, call.frame, call.site)
        ]
    return states


def _converted(
    machine: Machine, call: Call, fields: dict[str, Value], kinds: dict[str, Value], given: Collection[str]
) -> list[tuple[State, dict[str, Value]]]:
    """What types make of words, and of defaults that are texts: a parser calls them with no others."""
    ways = [(call.state, fields)]
    for name, kind in kinds.items():
        value = fields.get(name, ())
        if not (_is_convertible(value) if name in given else isinstance(constant(value), str)):
            continue
        ways = [
            (after, {**options, name: value})
            for state, options in ways
            for after, value in machine.call_value(kind, [options[name]], {}, state, call.frame, call.site)
        ]
    return ways


def _said_by_command(parser: LibraryObject, words: Iterable[str]) -> dict[str, Value]:
    """What the command says that is among known words, and by which option it is named."""
    for word in words:
        dest = parser.fields.get(_of_command(word, ""))
        if dest is None:
            continue
        start = _of_command(word, "")
        own = {f"--{k.removeprefix(start)}": v for k, v in parser.fields.items() if k.startswith(start) and k != start}
        return own if dest == NONE else {**own, f"--{constant(dest)}": const(word)}
    return {}


def words_of(machine: Machine, call: Call) -> list[str] | None:
    """The words of a command line that the program makes up by itself, where all are known."""
    items = machine.exact_items(call.get("args") or (), call.state)
    items = _own_words(call) if items is None else items
    words = None if items is None else [_as_word(place, item) for place, item in enumerate(items)]
    return None if words is None or not all(isinstance(word, str) for word in words) else [str(word) for word in words]


def _as_word(place: int, item: Value) -> object:
    """A word; a path from the program's own file, which is no constant, is known by its place."""
    found = paths.located(item) if constant(item) is ... else None
    return constant(item) if found is None or found.module is None else f"{_PATH_AT}{place}"


def _in_its_place(word: str, machine: Machine, call: Call) -> Value:
    """What stands for a word, which a path is known by."""
    items = machine.exact_items(call.get("args") or (), call.state) or _own_words(call) or []
    place = word.removeprefix(_PATH_AT)
    return items[int(place)] if word.startswith(_PATH_AT) and int(place) < len(items) else const(word)


def _own_words(call: Call) -> list[Value] | None:
    """The words of the program's own command line, where it is known how many there are."""
    given = call.get("args")
    words = call.state.get(ARGV) if given is None or given == NONE or _is_argv(given) else None
    return None if not isinstance(words, Sequence) or words.items is None or words.open else list(words.items)


def argv(machine: Machine, call: Call) -> Results:
    """``sys.argv.append(word)``, ``sys.argv = [...]``, ``sys.argv[1:] = [...]``: words that no user wrote."""
    state, (how, given) = call.state, (call.path.rpartition(".")[2], call.args[-1] if call.args else NONE)
    before = state.get(ARGV)
    known = before if isinstance(before, Sequence) else Sequence("list", (), open=True)
    several = machine.exact_items(given, state)
    match how:
        case "append" | "insert":
            made = replace(known, items=(*(known.items or ()), given))
        case "extend" | "__iadd__" if several is not None:
            made = replace(known, items=(*(known.items or ()), *several))
        case "__set__" if several is not None:
            made = Sequence("list", tuple(several[1:]))
        case "__setitem__" if several is not None and is_rest(call.args[0]):
            made = Sequence("list", tuple(several))
        case _:
            made = Sequence("list", (), unknown("word", call.site), open=True)
    state.store(ARGV, made)
    return [(state, NONE)]


def _given_among(machine: Machine, call: Call, fields: dict[str, Value]) -> dict[str, Value]:
    """The options that are among words which the program itself put there; all, where it is not known which."""
    given = call.get("args")
    own = given is None or given == NONE or _is_argv(given)
    words = call.state.get(ARGV) if own else call.state.get(ref) if isinstance(ref := only(given or ()), Ref) else None
    if not isinstance(words, Sequence) or words.items is None:
        return {}
    found = _by_place(machine, call, fields, [constant(word) for word in words.items])
    for name, spelled in fields.items():
        if not name.startswith(_SPELLED):
            continue
        kind, *names = str(constant(spelled)).split()
        value = _value_among(kind, names, list(words.items), call)
        if value is not None:
            value = _as_flag(fields.get(f"--{name.removeprefix(_SPELLED)}", ())) or value
        if words.element and value is None:
            value = unknown("option", call.site, name)
        if value is not None:
            found[name.removeprefix(_SPELLED)] = value
    return found


def _by_place(machine: Machine, call: Call, fields: dict[str, Value], words: list[object]) -> dict[str, Value]:
    """What words say that stand for themselves, behind no option: ``python train.py configs/large.py``."""
    texts = [word for word in words if isinstance(word, str)]
    said = declared.parsed(fields, texts) if len(texts) == len(words) else None
    if said is None or said is declared.REFUSED:
        return {}
    spelled = {name: str(constant(fields.get(f"{_SPELLED}{name}", ()))).split()[1:] for name in said}
    placed = [name for name, names in spelled.items() if names and not any(n.startswith("-") for n in names)]
    return {name: _as_value(said[name], machine, call) for name in placed}


def _as_flag(option: Value) -> Value:
    """What an option is that takes no word, where it is given."""
    for atom in option:
        match atom:
            case Unknown(sym=("option", _, str(), "flag" | "off" as kind)):
                return const(kind == "flag")
    return ()


def _is_argv(value: Value) -> bool:
    match only(value):
        case Unknown(sym=(Lib(path="sys.argv"), "[]", *_)) | Lib(path="sys.argv"):
            return True
    return False


def _value_among(kind: str, names: list[str], words: list[Value], call: Call) -> Value | None:
    """What an option is by the last of some words that spell it; None where none does."""
    found: Value | None = None
    for i, word in enumerate(words):
        text = constant(word)
        name, is_set, rest = text.partition("=") if isinstance(text, str) else ("", "", "")
        if name in names and name.startswith("-"):
            value = const(rest) if is_set else words[i + 1] if i + 1 < len(words) else ()
            is_kept = kind == "text" or (kind == "made" and _is_convertible(value))
            found = value if is_kept and value else _number(value) if kind == "int" else None
            found = found or unknown("option", call.site, name)
    return found


def _is_convertible(word: Value) -> bool:
    """Whether a word is known well enough for the type of an option to be called with it."""
    return isinstance(constant(word), str) or paths.located(word) is not None


def _number(value: Value) -> Value:
    text = constant(value)
    return const(int(text)) if isinstance(text, str) and text.lstrip("-").isdecimal() else ()


def _parsed_as(value: Value, words: list[str] | None) -> Value:
    """What an option is after a known command line: a flag is given or not, and the default of what is not stays."""
    if words is None:
        return value
    made: list[Atom] = []
    for atom in value:
        match atom:
            case Unknown(sym=("option", _, str(flag), "flag" | "off" as kind)):
                made.append(Const(_is_given(flag, words) == (kind == "flag")))
            case Unknown(sym=("option", _, str(flag), str())) if len(value) > 1 and not _is_given(flag, words):
                continue
            case Unknown(sym=("option", _, str(flag), "value" | "number")) if not _is_given(flag, words):
                # It has no default.
                made.extend(NONE)
            case _:
                made.append(atom)
    return tuple(made)


def _is_given(flag: str, words: list[str]) -> bool:
    """Whether an option may be among some words, also in short."""
    named = [word.partition("=")[0] for word in words if word.startswith("-")]
    return not flag.startswith("-") or any(flag.startswith(name) or not name.startswith("--") for name in named)


def _filled(machine: Machine, call: Call, given: Value, fields: dict[str, Value]) -> list[State]:
    """A namespace of the program's own gets the options; a default only where it has no such attribute yet."""
    states = [call.state]
    for name in (n for n in fields if n not in (MADE_OPTION, WHOLE)):
        states = [
            after
            for state in states
            for before, value in _option_of(machine, call, given, name, fields[name], state)
            for after in machine.set_attribute(given, name, value, before, call.frame, call.site)
        ]
    return states


def _option_of(machine: Machine, call: Call, given: Value, name: str, value: Value, state: State) -> Results:
    """What an option is in a namespace of the program's own: what it holds already goes before the default."""
    atom = only(given)
    option = unknown("option", call.site, name)
    if not isinstance(atom, Ref):
        return [(state, option)]
    if has(machine, atom, name, state) is not True:
        return [(state, value)]
    return [(s, as_option(held, option)) for s, held in machine.attribute(given, name, state, call.frame, call.site)]


def _parsed(call: Call, state: State, namespace: Value) -> tuple[State, Value]:
    if not call.path.endswith("parse_known_args"):
        return state, namespace
    pair = Sequence("tuple", (namespace, unknown("rest", call.site)))
    return state, (state.new(("known", call.site), pair),)
