"""Command lines made of functions: click, typer and their like."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import questions
from cudalint.machine.effects.stdlib import flags
from cudalint.machine.effects.stdlib.environment import note_machines
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Closure, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.presence import NEEDED
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Lib,
    Partial,
    Rank,
    Ref,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace

# A function with one of its options, and a command as which a function is run: their first argument is the function.
_GIVEN, _RUN = (Lib("cudalint.option.given"),), (Lib("cudalint.command.run"),)
_HANDED = (Lib("cudalint.command.handed"),)
_FILLED = (Lib("cudalint.command.filled"),)
# What is called in the place of a function, which it is given first.
_AROUND = (_GIVEN, _RUN, _HANDED, _FILLED)
# What is kept of an option besides its value.
_OF_OPTION = frozenset({"name", "names", "callback", "default", "type", "is_flag", "envvar"})
# The type of an option that is one of few words, and where it keeps them.
_ONE_OF, _WORDS_OF = "click.Choice", "<words>"
# The words of the command line that is read, as far as they are not a subcommand's name.
_WORDS = Ref(("words of a command",))
# What a function of a command line is given, of which only the class is known.
_CONTEXT = unknown(questions.OF_CLASS, "click.Context")


def register(machine: Machine, function: Value, state: State) -> None:
    """Record a function that is started as a program of its own."""
    for atom in function:
        found = _within((atom,), state)
        if found is not None:
            machine.record.commands.append(Site(found.module, found.function.ordinal))


def _leave(machine: Machine, function: Value, state: State) -> None:
    """A command that the program does not choose is none that it starts."""
    found = _within(function, state)
    site = None if found is None else Site(found.module, found.function.ordinal)
    machine.record.commands[:] = [one for one in machine.record.commands if one != site]


def _within(function: Value, state: State) -> Closure | None:
    """The function of the program that a command runs in the end."""
    target = only(function)
    while isinstance(target, Partial):
        target = only(target.args[0] if target.function in _AROUND else target.function)
    found = state.get(target) if isinstance(target, Ref) else None
    return found if isinstance(found, Closure) else None


def plain(machine: Machine, call: Call) -> Results:
    """``@click.command()``, ``@hydra.main()``: the function is the program."""
    function = call.args[0] if call.args else ()
    reads_words = call.text("kind") == "reads words"
    if not function or not _callable(function, call.state):
        return [(call.state, (Lib("cudalint.click.command" if reads_words else "cudalint.command"),))]
    register(machine, function, call.state)
    return [(call.state, (Partial(_RUN, (function,), ()),) if reads_words else function)]


def run(machine: Machine, call: Call) -> Results:
    """``main()``, ``main(["--device", "cpu"])``: a command reads the command line; the process ends with it."""
    function, words = call.args[0], call.args[1] if len(call.args) > 1 else call.kwargs.get("args", NONE)
    state = call.state
    if words != NONE or not isinstance(state.get(_WORDS), Sequence):
        _say(machine, state, words)
    results = machine.call_value(function, [], {}, state, call.frame, call.site)
    for after, _ in results:
        after.store(_WORDS, Sequence("list", None))
    return results


def invoke(machine: Machine, call: Call) -> Results:
    """``CliRunner().invoke(main, ["--device", "cpu"])``: a command runs here; the runner tells how it ended."""
    function, words = call.get("cli"), call.get("args")
    if function is None:
        return [(call.state, unknown("invoked", call.site))]
    raised = len(call.frame.raises)
    kwargs = {} if words is None else {"args": words}
    results = machine.call_value(function, [], kwargs, call.state, call.frame, call.site)
    states = [after for after, _ in results]
    for after, ended in call.frame.raises[raised:]:
        if ended.outcome is not None:
            machine.emit(ended.outcome)
        states.append(after)
    del call.frame.raises[raised:]
    return [(after, unknown("invoked", call.site)) for after in merge(states)]


def _say(machine: Machine, state: State, words: Value) -> None:
    """Remember the words of a command line, where it is written down."""
    line = flags.own_line(machine, state) if words == NONE else None
    known = machine.exact_items(words, state)
    if line is not None:
        _say_words(state, line)
    else:
        state.store(_WORDS, Sequence("list", None if known is None else tuple(known)))


def _said(state: State) -> flags.Line | None:
    """The words of the command line; None where they are the user's."""
    found = state.get(_WORDS)
    return flags.line_of(found) if isinstance(found, Sequence) else None


def option(machine: Machine, call: Call) -> Results:
    """``@click.option("--workers", default=4)``: the function is called with the default."""
    # ``--gpu/--no-gpu`` is named after the first of both.
    names = [text.partition("/")[0] for text in _texts(call)]
    name = _parameter(names)
    if name is None:
        return [(call.state, unknown("option", call.site))]
    default = call.kwargs.get("default", NONE)
    value = unknown("option", call.site, *_spelled(call, names)) if default == NONE else _asked(call, names, default)
    note_machines(call.state, name)
    if name == "local_rank":
        value = (Rank("local"),)
        call.state.process = replace(call.state.process, local_rank_at_hand=True)
    told: list[tuple[str, Value]] = [("name", (_text(name),)), ("names", const(tuple(_texts(call))))]
    told += [] if default == NONE else [("default", default)]
    told += [(key, call.kwargs[key]) for key in ("callback", "type", "is_flag", "envvar") if key in call.kwargs]
    return [(call.state, (Partial((Lib("cudalint.option"),), (value,), tuple(told)),))]


def _asked(call: Call, names: list[str], default: Value) -> Value:
    """What a user says by an option that has a default."""
    flag, _ = _spelled(call, names)
    off = next((text.partition("/")[2].strip() for text in _texts(call) if "/" in text), flag)
    if default in (TRUE, FALSE):
        return flags.may_be_given(default, (flag, off), call.site)
    return flags.as_option(default, unknown("option", call.site, flag, "choice"))


def call_function(machine: Machine, call: Call) -> Results:
    """``typer.run(main)``: a function, or a class of records, whose parameters are the options."""
    function = call.args[0] if call.args else call.get(call.text("function") or "function") or ()
    line = flags.own_line(machine, call.state)
    asked = flags.of_function(machine, function, call.state, line)
    if not function:
        return [(call.state, unknown("call", call.site))]
    paths: list[tuple[State, dict[str, Value]]] = [(call.state, asked)]
    for name, cls in _records_asked(machine, function, call.state) if call.text("kind") == "records" else ():
        paths = [
            (after, {**given, name: made})
            for state, given in paths
            for after, made in machine.call_value(
                cls, [], flags.of_function(machine, cls, state, line), state, call.frame, call.site
            )
        ]
    return [
        result
        for state, given in paths
        for result in machine.call_value(function, [], given, state, call.frame, call.site)
    ]


def _records_asked(machine: Machine, function: Value, state: State) -> list[tuple[str, Value]]:
    """The parameters of a function without a default that are objects of a class of the program, and of which."""
    found = _within(function, state)
    if found is None:
        return []
    own = {name for name, _ in found.defaults}
    kinds = [
        (param.name, machine.lookup(param.type, state, Ref(("module", found.module))) or ())
        for param in found.function.params
        if param.type and param.name not in own
    ]
    return [
        (name, kind) for name, kind in kinds if isinstance(at := only(kind), Ref) and isinstance(state.get(at), Class)
    ]


def wrapped(machine: Machine, call: Call) -> Results:
    """``@pyrallis.wrap()``: the function is the program, which its first argument is made for when it is called."""
    function = call.args[0] if call.args else ()
    if not function or not _callable(function, call.state):
        return [(call.state, (Lib("cudalint.command.wrap"),))]
    register(machine, function, call.state)
    return [(call.state, (Partial(_FILLED, (function,), ()),))]


def _texts(call: Call) -> list[str]:
    return [text for value in call.args for text in strings(value)]


def _spelled(call: Call, names: list[str]) -> tuple[str, str]:
    """How a user writes an option, and how it is to be understood that it has a value."""
    flag = max((n for n in names if n.startswith("-")), key=len, default=names[0])
    two = any("/" in text for value in call.args for text in strings(value))
    if two or call.kwargs.get("is_flag") == TRUE:
        return flag, "flag"
    is_text = call.kwargs.get("type", NONE) in (NONE, (Lib("builtins.str"),)) and "multiple" not in call.kwargs
    return flag, NEEDED if call.kwargs.get("required") == TRUE and is_text and "nargs" not in call.kwargs else "value"


def _text(name: str) -> Lib:
    return Lib(f"cudalint.name.{name}")


def _parameter(names: list[str]) -> str | None:
    """The parameter an option becomes: a name without dashes if there is one, else the longest option."""
    plain = [n for n in names if not n.startswith("-")]
    if plain:
        return plain[0]
    return max((n.lstrip("-") for n in names), key=len, default="").replace("-", "_") or None


def with_option(machine: Machine, call: Call) -> Results:
    """The function that an option decorates, with its value."""
    if len(call.args) < 2:
        return [(call.state, unknown("command", call.site))]
    value, function = call.args[0], call.args[1]
    name = only(call.kwargs.get("name", ()))
    if not isinstance(name, Lib):
        return [(call.state, function)]
    return [(call.state, (Partial(_GIVEN, (function, value), tuple(call.kwargs.items())),))]


def given(machine: Machine, call: Call) -> Results:
    """A function is called that has an option: with what the command line says, or the default, and what a callback
    makes of that."""
    (function, value), args = call.args[:2], list(call.args[2:])
    own = {key: found for key, found in call.kwargs.items() if key in _OF_OPTION}
    others = {key: found for key, found in call.kwargs.items() if key not in own}
    named = only(own["name"])
    name = named.path.rpartition(".")[2] if isinstance(named, Lib) else ""
    said = _said(call.state)
    default = _of_variable(own, call.state)
    if said is not None:
        otherwise = value if said.is_open else own.get("default", value)
        value = _as_said(said.words, own, default or otherwise, call.state)
    else:
        value = default or value
        _offer(machine, own, value, call.state)
    results: Results = [(call.state, value)]
    if "callback" in own:
        asked: list[Value] = [_CONTEXT, unknown("parameter", call.site), value]
        results = machine.call_value(own["callback"], asked, {}, call.state, call.frame, call.site)
    return [
        result
        for state, made in results
        for result in machine.call_value(function, args, {name: made, **others}, state, call.frame, call.site)
    ]


def _of_variable(own: dict[str, Value], state: State) -> Value:
    """What the variable of the environment says that an option may be given by; nothing where the program sets none."""
    set_ = [value for name in strings(own.get("envvar", ())) if (value := state.process.environ(name)) is not None]
    text = constant(set_[0]) if set_ else None
    if not isinstance(text, str):
        return set_[0] if set_ else ()
    return _converted(text, own.get("type", ()), own.get("default", NONE), state)


def words(machine: Machine, call: Call) -> Results:
    """``click.Choice(["fork", "spawn"])``: the type of an option that is one of these words."""
    given = machine.exact_items(call.get("choices") or (), call.state) or ()
    made = LibraryObject(_ONE_OF, {_WORDS_OF: const(tuple(map(constant, given)))}, call.site)
    return [(call.state, (call.state.new(("words", call.site), made),))]


def _words_of(type_: Value, state: State) -> tuple[object, ...] | None:
    """The words of which an option of this type is one; None of other types."""
    found = state.get(ref) if isinstance(ref := only(type_), Ref) else None
    listed = constant(found.fields[_WORDS_OF]) if isinstance(found, LibraryObject) and found.type == _ONE_OF else None
    return listed if isinstance(listed, tuple) else None


def _offer(machine: Machine, own: dict[str, Value], value: Value, state: State) -> None:
    """Note an option that a user may set to another of few words."""
    listed, default, spelled = _words_of(own.get("type", ()), state), constant(value), constant(own["names"])
    if listed is not None and isinstance(default, str) and isinstance(spelled, tuple):
        machine.record.offers.add(max(map(str, spelled), key=len), default, listed)


def _as_said(words: tuple[str, ...], own: dict[str, Value], otherwise: Value, state: State) -> Value:
    """What an option is by the words of a command line: the last of those that name it."""
    default = own.get("default", NONE)
    spelled = constant(own["names"])
    for text in spelled if isinstance(spelled, tuple) else ():
        yes, _, no = str(text).partition("/")
        for i in range(len(words) - 1, -1, -1):
            flag, equals, after = words[i].partition("=")
            if no and flag == no.strip():
                return FALSE
            if flag != yes or not yes.startswith("-"):
                continue
            if no or own.get("is_flag") == TRUE:
                return TRUE
            if not equals and i + 1 == len(words):
                break
            return _converted(after if equals else words[i + 1], own.get("type", ()), default, state)
    return otherwise


def _converted(text: str, type_: Value, default: Value, state: State) -> Value:
    """A word as click understands it: by the type of the option, or of its default."""
    if _words_of(type_, state) is not None:
        return const(text)
    if type_ in (NONE, ()) or only(type_) == Lib("builtins.str"):
        kind = type(constant(default)) if constant(default) is not ... else str
    else:
        kind = _TYPES.get(only(type_), object)
    if kind is str or constant(default) is None:
        return const(text)
    try:
        return const(kind(text)) if kind in (int, float) else unknown("option", text)
    except ValueError:
        return unknown("option", text)


_TYPES: dict[Hashable, type] = {
    Lib("builtins.int"): int, Lib("builtins.float"): float, Lib("click.INT"): int, Lib("click.FLOAT"): float,
    Lib("click.STRING"): str,
}  # fmt: skip


def with_context(machine: Machine, call: Call) -> Results:
    """``click.pass_context``, ``click.pass_obj``: all functions of a command line are given the same context."""
    function = call.args[0] if call.args else ()
    if not function or not _callable(function, call.state):
        return [(call.state, function or unknown("command", call.site))]
    if not call.path.endswith("pass_obj"):
        return [(call.state, (Partial(function, (_CONTEXT,), ()),))]
    return [(call.state, (Partial(_HANDED, (function,), ()),))]


def handed(machine: Machine, call: Call) -> Results:
    """A function is called that ``click.pass_obj`` decorates: with the object that the context has by then."""
    function, args = call.args[0], call.args[1:]
    return [
        result
        for state, thing in machine.attribute(_CONTEXT, "obj", call.state, call.frame, call.site)
        for result in machine.call_value(function, [thing, *args], call.kwargs, state, call.frame, call.site)
    ]


def current_context(machine: Machine, call: Call) -> Results:
    """``click.get_current_context()``: what functions of a command line are given."""
    return [(call.state, _CONTEXT)]


def group(machine: Machine, call: Call) -> Results:
    """``click.group()``, ``typer.Typer()``: gathers commands; as a decorator it is handed the function of its own."""
    function = call.args[0] if call.args and call.flag("decorator") else ()
    made = LibraryObject("click.Group", {"<function>": function or NONE, "<commands>": NONE}, call.site)
    ref = call.state.new(("group", call.site), made)
    if call.flag("decorator") and not function:
        return [(call.state, (Bound(Lib("click.Group.callback.apply"), ref),))]
    return [(call.state, (ref,))]


def group_function(machine: Machine, call: Call) -> Results:
    """The group's own function, which runs before each command; the name stands for the group from now on."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, LibraryObject) and call.args:
        call.state.store(call.receiver, replace(found, fields={**found.fields, "<function>": call.args[0]}))
        return [(call.state, (call.receiver,))]
    if not call.args and call.receiver is not None:
        return [(call.state, (Bound(Lib("click.Group.callback.apply"), call.receiver),))]
    return [(call.state, call.args[0] if call.args else unknown("group", call.site))]


def command(machine: Machine, call: Call) -> Results:
    """``@group.command()``: one more command of the group."""
    function = call.args[0] if call.args else ()
    if not function or not _callable(function, call.state):
        return [(call.state, (Bound(Lib("click.Group.command.apply"), call.receiver or Lib("cudalint.identity")),))]
    return add_command(machine, call)


def _callable(function: Value, state: State) -> bool:
    atom = only(function)
    return isinstance(atom, Partial) or (isinstance(atom, Ref) and isinstance(state.get(atom), Closure))


def add_command(machine: Machine, call: Call) -> Results:
    """``group.add_command(function)``."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    function = call.args[0] if call.args else unknown("command", call.site)
    register(machine, function, call.state)
    if isinstance(call.receiver, Ref) and isinstance(found, LibraryObject):
        known = found.fields.get("<commands>", NONE)
        rows = () if known == NONE else tuple(machine.elements(known, call.state))
        listed = call.state.new(("commands", found.site), Sequence("list", (*rows, function)))
        call.state.store(call.receiver, replace(found, fields={**found.fields, "<commands>": (listed,)}))
    return [(call.state, function)]


def run_group(machine: Machine, call: Call) -> Results:
    """``group()``: its function, then one of its commands: each is a program of its own."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(found, LibraryObject):
        return [(call.state, unknown("group", call.site))]
    words = call.args[0] if call.args else call.kwargs.get("args", NONE)
    if words != NONE or not isinstance(call.state.get(_WORDS), Sequence):
        _say(machine, call.state, words)
    said = _said(call.state)
    commands = machine.elements(found.fields.get("<commands>", NONE), call.state)
    words_said = () if said is None else said.words
    named = [function for function in commands if _named_by(function, call.state) in words_said]
    at = 0 if not named else words_said.index(_named_by(named[0], call.state))
    states = [call.state]
    own = found.fields.get("<function>", NONE)
    if constant(own) is ...:
        before = None if said is None else replace(said, words=words_said[:at])
        if before is not None:
            _say_words(call.state, before)
        asked = flags.of_function(machine, own, call.state, before)
        states = [s for s, _ in machine.call_value(own, [], asked, call.state, call.frame, call.site)]
    for other in (f for f in commands if named and f is not named[0]):
        _leave(machine, other, call.state)
    returns = call.kwargs.get("standalone_mode") == FALSE
    returned: Results = []
    for function in named[:1] or commands:
        for state in states:
            alone = state.clone()
            if said is not None:
                _say_words(alone, replace(said, words=words_said[at + 1 :]) if named else said)
            asked = flags.of_function(machine, function, alone, said)
            ended = machine.call_value(function, [], asked, alone, call.frame, call.site)
            if returns:
                returned.extend(ended)
            else:
                machine.end([s for s, _ in ended])
    # click ends the process after the command.
    return returned if commands else [(s, NONE) for s in states]


def _say_words(state: State, line: flags.Line) -> None:
    state.store(_WORDS, Sequence("list", tuple(const(word) for word in line.words), open=line.is_open))


def _named_by(function: Value, state: State) -> str:
    """The name by which a command is called that has the name of its function."""
    found = _within(function, state)
    return "?" if found is None else found.function.qualname.rpartition(".")[2].replace("_", "-")
