"""Values as texts in the ways that Python has for that: ``f"{x:02d}"``, ``"%02d" % x``, ``"{:>3}".format(x)``.

What is known is written by Python itself; a rank stays what it is where nothing is added to its number.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from cudalint.machine import operators
from cudalint.machine.values import Const, Dev, Member, Rank, Value, const, constant, only, unknown

# As a width it would make a text that fills the memory.
_WIDE = re.compile(r"\d{5}")
# A place of the operator %: a name in brackets, flags, width and precision, and the kind.
_PLACE = re.compile(r"%(?:\((\w*)\))?([#0\- +]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?)[hlL]?([a-zA-Z%])")
# Formats that write a number, or a text, as it is.
_AS_IT_IS = frozenset({"", "d", "n", "s"})
_MOST_NESTED = 2
# Parts of what stands at a place: an attribute or an item.
_PARTS = re.compile(r"\.(\w+)|\[([^\]]*)\]")

# What ``string.Template`` fills in: a name, or one in braces; two signs are one.
_NAMED = re.compile(r"\$(?:(\$)|([_a-zA-Z][_a-zA-Z0-9]*)|\{([_a-zA-Z][_a-zA-Z0-9]*)\})")

Named = Callable[[str], Value | None]
# What a part of a value is: by its name, or by its key.
Part = Callable[[Value, str, bool], Value | None]


def is_wide(text: str) -> bool:
    """Whether a format, of whatever kind, may make much more than it is given."""
    return _WIDE.search(text) is not None


def by_template(text: str, named: Named, sym: Hashable, *, keeps: bool) -> Value:
    """``Template(text).substitute(name=value)``; ``keeps``: what has no value stays as it is."""
    parts: list[Value] = []
    end = 0
    for place in _NAMED.finditer(text):
        parts.append(const(text[end : place.start()]))
        end = place.end()
        found = const("$") if place[1] else named(place[2] or place[3])
        if found is None and not keeps:
            return unknown("template", sym)
        parts.append(const(place[0]) if found is None else written(found, "s", const(""), sym))
    return operators.joined([part for part in (*parts, const(text[end:])) if part != const("")], sym)


def written(value: Value, conversion: str, spec: Value, sym: Hashable) -> Value:
    """``{value!conversion:spec}``; no instance of a class of the program, which says so itself."""
    asked = constant(spec)
    if not isinstance(asked, str) or is_wide(asked):
        return unknown("format", sym, value, spec)
    atom = only(value)
    match atom:
        case Const(value=Member()):
            found = None
        case Const(value=held):
            found = _of_constant(held, conversion, asked)
        case Dev() if conversion != "r" and asked in ("", "s"):
            return value
        case Dev(index=None | int(), text=True):
            found = _of_constant(operators.device_text(atom), conversion, asked)
        case _:
            found = None
    if found is not None:
        return const(found) if len(found) < operators.LONGEST else unknown("format", sym, value)
    is_plain = isinstance(atom, Rank) and asked in _AS_IT_IS
    return value if is_plain or not (asked or conversion) else unknown("format", sym, conversion, asked, value)


def _of_constant(held: Hashable, conversion: str, spec: str) -> str | None:
    shown = repr(held) if conversion == "r" else ascii(held) if conversion == "a" else held
    try:
        return format(str(shown) if conversion == "s" else shown, spec)
    except (TypeError, ValueError, OverflowError):
        return None


def by_percent(text: Hashable, values: Sequence[Value] | Mapping[Hashable, Value], sym: Hashable) -> Value:
    """``"%s:%d" % (kind, number)``, ``"%(kind)s" % mapping``: the parts of the text and what stands between them."""
    if not isinstance(text, str) or is_wide(text):
        return unknown(sym)
    rest = list(values) if not isinstance(values, Mapping) else []
    parts: list[Value] = []
    end = 0
    for place in _PLACE.finditer(text):
        between, end = text[end : place.start()], place.end()
        if "%" in between:
            return unknown(sym)
        parts.append(const(between))
        name, how, kind = place.groups()
        if kind == "%":
            parts.append(const("%"))
            continue
        given = values.get(name) if isinstance(values, Mapping) else rest.pop(0) if rest and name is None else None
        if given is None or "*" in how:
            return unknown(sym)
        parts.append(_at_place(given, f"%{how}{kind}", sym))
    if rest or "%" in text[end:]:
        return unknown(sym)
    parts.append(const(text[end:]))
    return operators.joined([part for part in parts if part != const("")], sym)


def _at_place(value: Value, place: str, sym: Hashable) -> Value:
    if place == "%s":
        return value
    atom = only(value)
    if isinstance(atom, Const) and not isinstance(atom.value, Member | tuple):
        try:
            return const(place % atom.value)
        except (TypeError, ValueError, OverflowError):
            return unknown("format", sym, place, value)
    return value if place in ("%d", "%i") else unknown("format", sym, place, value)


def by_format(text: str, args: Sequence[Value], named: Named, part: Part, sym: Hashable) -> Value:
    """``"{}:{name:>3}".format(kind, name=number)``; ``named`` gives what has a name, ``part`` parts of it."""
    return _filled(text, args, named, part, sym, iter(range(len(args))), 0)


def _filled(
    text: str, args: Sequence[Value], named: Named, part: Part, sym: Hashable, turns: Iterator[int], depth: int
) -> Value:
    if depth > _MOST_NESTED or is_wide(text):
        return unknown(sym)
    parts: list[Value] = []
    try:
        for literal, name, spec, conversion in string.Formatter().parse(text):
            parts += [const(literal)] if literal else []
            if name is None:
                continue
            value = _asked_for(name, args, named, part, turns)
            if value is None:
                return unknown(sym)
            asked = _filled(spec or "", args, named, part, sym, turns, depth + 1)
            parts.append(written(value, conversion or "", asked, sym))
    except ValueError:
        return unknown(sym)
    return operators.joined(parts, sym)


def _asked_for(name: str, args: Sequence[Value], named: Named, part: Part, turns: Iterator[int]) -> Value | None:
    """What stands at a place; None for what is not given."""
    first = re.match(r"[^.\[]*", name)
    if first is not None and first.end() < len(name):
        value = _asked_for(first.group(), args, named, part, turns)
        for attribute, key in _PARTS.findall(name[first.end() :]):
            value = None if value is None else part(value, attribute or key, bool(attribute))
        return value
    if not name:
        at = next(turns, len(args))
        return args[at] if at < len(args) else None
    if name.isdigit():
        return args[int(name)] if int(name) < len(args) else None
    return named(name) if name.isidentifier() else None
