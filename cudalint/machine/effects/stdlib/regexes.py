"""Regular expressions that are written down, and what they find in texts that are known."""

from __future__ import annotations

import re
from collections.abc import Hashable

from cudalint.machine import operators
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, TRUE, Bound, Lib, Partial, Ref, Value, const, constant, only, unknown

_PATTERN, _MATCH = "re.Pattern", "re.Match"
_FINDING = frozenset({"match", "search", "fullmatch"})
_ASKING = frozenset({*_FINDING, "findall", "split", "sub"})
_OF_MATCHES = frozenset({"group", "groups", "groupdict", "start", "end", "span", "__getitem__"})
# How long expressions and texts are, and how many ways Python may have to try.
_LONGEST, _MOST_WAYS = 200, 10**6
# Texts in which also parts of parts may be repeated.
_SHORT = 12
# Of a match: it is of a part of the text, of which its place in the whole is not kept.
_WITHIN, _OF_PLACES = "<within>", frozenset({"start", "end", "span"})
_MOST_PLACES = 16
_SPECIAL = "\\.^$*+?{}[]()|"
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)[*+{]")


def asked(machine: Machine, call: Call) -> Results | None:
    """What an expression finds; None of all else, and where Python might look for long."""
    kind, _, name = call.path.rpartition(".")
    if call.open:
        return None
    if kind == _MATCH:
        return _of_match(call, name)
    if kind not in ("re", _PATTERN) or name not in (*_ASKING, "compile"):
        return None
    found = _fields(call) if kind == _PATTERN else None
    args = [constant(value) for value in call.args]
    if found is None and (not args or not isinstance(args[0], str)):
        return None
    expression = str(args.pop(0)) if found is None else str(constant(found["pattern"]))
    if name == "compile":
        return _compiled(call, expression)
    texts = 2 if name == "sub" else 1
    flags = _flags(call, args[texts:] if found is None else None, found)
    if (
        name == "sub"
        and flags is not None
        and len(args) == 2
        and isinstance(args[1], str)
        and _is_function(call.args[-2])
    ):
        return _replaced(machine, call, expression, flags, args[1])
    if flags is None or len(args) < texts or not all(isinstance(text, str) for text in args[:texts]):
        return None
    return _sought(call, name, expression, flags, [str(text) for text in args[:texts]])


def _is_function(value: Value) -> bool:
    return isinstance(only(value), Ref | Bound | Partial)


def _compiled(call: Call, expression: str) -> Results | None:
    flags = _flags(call, [constant(value) for value in call.args[1:]], None)
    if flags is None or len(expression) > _LONGEST:
        return None
    fields = {"pattern": const(expression), "flags": const(flags)}
    return [(call.state, (call.state.new(("pattern", call.site), LibraryObject(_PATTERN, fields, call.site)),))]


def _flags(call: Call, rest: list[Hashable] | None, found: dict[str, Value] | None) -> int | None:
    """The flags that are given by name, or those of a compiled expression; None where they are not known."""
    if found is not None:
        held = constant(found["flags"])
        return held if isinstance(held, int) and not call.kwargs else None
    given = call.kwargs.get("flags") or (call.args[-1] if rest else None)
    if given is None or call.kwargs.keys() - {"flags"} or len(rest or ()) > 1:
        return 0 if given is None and not call.kwargs else None
    atom = only(given)
    flag = getattr(re, atom.path.removeprefix("re."), None) if isinstance(atom, Lib) else constant(given)
    return int(flag) if isinstance(flag, int) else None


def _fields(call: Call) -> dict[str, Value] | None:
    held = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return held.fields if isinstance(held, LibraryObject) else None


def _sought(call: Call, name: str, expression: str, flags: int, texts: list[str]) -> Results | None:
    if not _is_quick(expression, texts[-1]):
        return None
    try:
        found = getattr(re.compile(expression, flags), name)(*texts)
    except (re.error, ValueError, IndexError):
        return None
    state, site = call.state, call.site
    if name not in _FINDING:
        return [(state, _as_value(found, state, site))]
    if found is None:
        return [(state, NONE)]
    fields = {"pattern": const(expression), "flags": const(flags), "text": const(texts[0]), "<how>": const(name)}
    return [(state, (state.new(("match", site), LibraryObject(_MATCH, fields, site)),))]


def _replaced(machine: Machine, call: Call, expression: str, flags: int, text: str) -> Results | None:
    """``re.sub(pattern, function, text)``: the function is called with each place that fits, one after the other."""
    places = _places(expression, flags, text)
    if places is None:
        return None
    function, site = call.args[-2], call.site
    paths: list[tuple[State, list[Value]]] = [(call.state, [])]
    end = 0
    for start, stop in places:
        fields = {"pattern": const(expression), "flags": const(flags), "text": const(text[start:stop])}
        fields |= {"<how>": const("match"), _WITHIN: TRUE}
        paths = [
            (after, [*parts, const(text[end:start]), made])
            for state, parts in paths
            for after, made in machine.call_value(
                function,
                [(state.new(("match", site), LibraryObject(_MATCH, fields, site)),)],
                {},
                state,
                call.frame,
                site,
            )
        ]
        end = stop
    sym = ("sub", call.receiver, site)
    return [
        (
            after,
            operators.joined([part for part in (*parts, const(text[end:])) if part != const("")], sym)
            if places
            else const(text),
        )
        for after, parts in paths
    ]


def _places(expression: str, flags: int, text: str) -> list[tuple[int, int]] | None:
    """Where an expression fits into a text; None where Python might look for that for long.

    Of one that begins with letters as they stand, such as ``${``, it can be looked for at these alone.
    """
    begin = _literal_start(expression)
    try:
        found = re.compile(expression, flags)
    except re.error:
        return None
    if _is_quick(expression, text):
        places = [place.span() for place in found.finditer(text)]
    elif not begin or flags or text.count(begin) > _MOST_PLACES or not _is_quick(expression, " " * _LONGEST):
        return None
    else:
        starts = [place.start() for place in re.finditer(re.escape(begin), text)]
        fitting = (found.match(text, start, start + _LONGEST) for start in starts)
        places = [place.span() for place in fitting if place is not None]
    # What fits only beside something else is not found again in what fits.
    alone = (found.fullmatch(text[start:stop]) for start, stop in places)
    return places if len(places) <= _MOST_PLACES and all(place is not None for place in alone) else None


def _literal_start(expression: str) -> str:
    """The letters that an expression begins with, as they stand in a text."""
    letters, i = "", 0
    while i < len(expression):
        is_escaped = expression[i] == "\\" and i + 1 < len(expression) and not expression[i + 1].isalnum()
        if not is_escaped and expression[i] in _SPECIAL:
            break
        letters += expression[i + 1] if is_escaped else expression[i]
        i += 1 + is_escaped
    if "|" in expression:
        return ""
    return letters[:-1] if expression[i : i + 1] in ("*", "+", "?", "{") else letters


def _is_quick(expression: str, text: str) -> bool:
    """Whether there are few ways to fit an expression into a text: each repeated part may end at any place of it."""
    if len(expression) > _LONGEST or len(text) > _LONGEST:
        return False
    if _REPEATED_GROUP.search(expression) is not None and len(text) > _SHORT:
        return False
    # ``\{`` repeats nothing.
    plain = _ESCAPED.sub("", expression)
    repeated, chosen = sum(map(plain.count, "*+{")), sum(map(plain.count, "?|"))
    return repeated < _MOST_WAYS.bit_length() and (len(text) + 1) ** repeated * 2**chosen <= _MOST_WAYS


def _of_match(call: Call, name: str) -> Results | None:
    """``m.group(1)``, ``m["name"]``: the expression finds again what it found."""
    fields = _fields(call)
    args = [constant(value) for value in call.args]
    if fields is None or name not in _OF_MATCHES or ... in args or call.kwargs:
        return None
    if _WITHIN in fields and name in _OF_PLACES:
        return None
    pattern, flags, text, how = (constant(fields[part]) for part in ("pattern", "flags", "text", "<how>"))
    match = getattr(re.compile(str(pattern), flags if isinstance(flags, int) else 0), str(how))(str(text))
    try:
        found = getattr(match, name)(*args)
    except (IndexError, TypeError):
        return None
    return [(call.state, _as_value(found, call.state, call.site))]


def _as_value(found: object, state: State, site: Site) -> Value:
    match found:
        case list() | tuple():
            parts = tuple(_as_value(part, state, site) for part in found)
            kind = "list" if isinstance(found, list) else "tuple"
            return (state.new(("found", site), Sequence(kind, parts)),)
        case dict():
            items = {key: _as_value(part, state, site) for key, part in found.items()}
            return (state.new(("found", site), Dict(items)),)
    return const(found if isinstance(found, str | int) else None)


def item(machine: Machine, call: Call) -> Results:
    """``m[1]``."""
    known = asked(machine, call)
    return [(call.state, unknown("match", call.site, *call.args))] if known is None else known
