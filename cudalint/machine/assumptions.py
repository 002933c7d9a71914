"""What a path assumes about things that the code does not show, in the words of the program.

An option is named as a user spells it, a variable of the environment by its name, everything else as it is written
where the program asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping

from cudalint.ir import nodes as ir
from cudalint.machine import questions
from cudalint.machine.operators import LAID_OVER
from cudalint.machine.questions import MOST_GPUS
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Rank, Unknown
from cudalint.models.releases import written
from cudalint.structs import Frozen, replace

Facts = tuple[questions.Fact, ...]
# More constants are no longer read.
_MOST_CONSTANTS = 4
_MOST_CHARACTERS = 24
_PRESENT = "is installed"
# Of a pattern that asks several things one answer of no is enough.
_FITS, _FITS_NOT, _MAY_FIT = "fits", "does not fit", "may fit"
_NUMBERS = frozenset({"int", "float"})
_CASTS = frozenset({"int", "float", "str", "bool"})


class Assumption(Frozen):
    """What is assumed of something: ``if <subject> <holds>``.

    ``subject`` are words, or the place of an expression that stands for itself. ``instead``: that is so, or this, which
    may have another instead.
    """

    subject: str | Site
    holds: str
    instead: Assumption | None = None

    @property
    def each(self) -> Iterator[Assumption]:
        """This, and what may be so instead of it."""
        found: Assumption | None = self
        while found is not None:
            yield found
            found = found.instead


class Asking(Frozen):
    """Where the program asks a question: ``whole`` is the test, ``subject`` what it compares with a constant.

    ``positive``: the test holds where the question is answered by yes. ``chooses``: it is no test, but something that
    happens on a GPU or not by the answer. ``required``: it is asserted, and the program ends where it does not hold.
    ``fits``: it is part of what a pattern asks, and ``whole`` is that pattern. ``picks``: a dict is asked by a key that
    is not known, and ``whole`` is where that is done. ``gets``: ``whole`` is an item that may not be there.
    ``needs``: the answer without which the program raises an exception at once.
    """

    whole: Site
    subject: Site | None
    positive: bool
    chooses: bool = False
    required: bool = False
    fits: bool = False
    picks: bool = False
    gets: bool = False
    needs: bool | None = None


def asking(test: ir.Expr, module: str, sym: Hashable) -> tuple[Hashable, Asking]:
    """The question behind a test, and where it stands."""
    question, positive = questions.plain(sym, True)
    subject: Site | None = None
    match test:
        case ir.Compare(left=left, right=ir.Const()):
            subject = Site(module, left.ordinal)
        case ir.Compare(left=ir.Const(), right=right):
            subject = Site(module, right.ordinal)
    return question, Asking(Site(module, test.ordinal), subject, positive)


def assumptions(
    needed: Facts, facts: Facts, places: Mapping[Hashable, Asking], modelled: Container[str]
) -> tuple[Assumption, ...]:
    """What the ``needed`` ones of facts assume that can be said, once each: how many there are
    comes first, then what a user decides.

    ``modelled`` libraries are there where a program has to do with a GPU.
    """
    independent = sorted(_independent(needed), key=lambda fact: not _is_of_number(fact, places))
    said = [_said(fact, facts, places, modelled) for fact in independent]
    found = [assumption for assumption in said if assumption is not None]
    named = (assumption for assumption in found if isinstance(assumption.subject, str))
    written = (assumption for assumption in found if not isinstance(assumption.subject, str))
    return tuple(dict.fromkeys((*named, *written)))


def _is_of_number(fact: questions.Fact, places: Mapping[Hashable, Asking]) -> bool:
    """Whether it is about how many there are, and the program asks no such thing: without it nothing would happen.

    What a program asks leads to the place of a finding, which its steps show.
    """
    _, told = questions.read(fact[0])
    return told[0] in _COUNTING and fact[0] not in places


_COUNTING = frozenset({"<", "<=", ">", ">="})


def sayable(facts: Facts, places: Mapping[Hashable, Asking], modelled: Container[str]) -> Facts:
    """Those facts that a reader is told of."""
    # What a pattern comes to with all facts together does not decide whether it is said.
    return tuple(fact for fact in facts if _said(fact, (fact,), places, modelled) is not None)


def _said(
    fact: questions.Fact, facts: Facts, places: Mapping[Hashable, Asking], modelled: Container[str]
) -> Assumption | None:
    """How one of these facts is said; None where it goes without saying, or nothing is known to call it by."""
    question, answer = fact
    subject, told = questions.read(question)
    place = places.get(question) or _compared_at(subject, told, places)
    if _goes_without_saying(subject, told, answer) or (place is not None and place.required):
        return None
    if (found := _named(question, subject, told, answer)) is not None:
        return found if found.subject not in modelled or found.holds != _PRESENT else None
    if place is None:
        return None
    if place.fits:
        return Assumption(place.whole, _fit(place.whole, facts, places))
    return _written(place, told, answer)


def alternatives(
    choices: Iterable[questions.Either], places: Mapping[Hashable, Asking], modelled: Container[str]
) -> Iterator[Assumption]:
    """What is assumed where one of few things is so, and all have a name: ``--dry`` is not given, or ``--jobs`` 1.

    Others cannot be said in a few words.
    """
    for choice in choices:
        said = [assumptions((fact,), (), places, modelled) for fact in questions.told_by(choice)]
        # Rounds of a loop ask the same in the same words.
        each = list(dict.fromkeys(one[0] for one in said if len(one) == 1))
        if all(len(one) == 1 for one in said) and not any(deny(one, other) for one in each for other in each):
            *before, found = each
            for one in reversed(before):
                found = replace(one, instead=found)
            yield found


def _compared_at(subject: Hashable, told: questions.Asked, places: Mapping[Hashable, Asking]) -> Asking | None:
    """Where something is compared with a constant of which several paths, joined, say that it is one of them."""
    if told[0] != "in":
        return None
    asked = (place for question, place in places.items() if place.subject and questions.read(question)[0] == subject)
    return next(asked, None)


def _fit(pattern: Site, facts: tuple[questions.Fact, ...], places: Mapping[Hashable, Asking]) -> str:
    """Whether a pattern fits, of which facts answer some of what it asks: the last only where all before it holds."""
    asked = [(question, place) for question, place in places.items() if place.fits and place.whole == pattern]
    answers = [(questions.answered(facts, question), place.positive) for question, place in asked]
    if any(answer is (not positive) for answer, positive in answers):
        return _FITS_NOT
    return _FITS if answers[-1][0] is not None else _MAY_FIT


def _independent(facts: Iterable[questions.Fact]) -> list[questions.Fact]:
    """Facts without those that follow from the others."""
    left = list(dict.fromkeys(facts))
    for fact in tuple(left):
        others = [other for other in left if other != fact]
        if questions.answered(others, fact[0]) is fact[1]:
            left = others
    return left


def _goes_without_saying(subject: Hashable, told: questions.Asked, answer: bool) -> bool:
    """Whether it holds wherever the program does what it is for: some process has each rank, and there is a GPU."""
    if isinstance(subject, Rank):
        return True
    if subject != questions.DEVICES[0]:
        return False
    return all(questions.answer_of(told, count) is answer for count in (1, 2, MOST_GPUS))


# -- what has a name of its own --------------------------------------------------------------------------


def _named(question: Hashable, subject: Hashable, told: questions.Asked, answer: bool) -> Assumption | None:
    match question:
        case (questions.INSTALLED, str(package)):
            return Assumption(package, _negated(_PRESENT, answer))
        case (questions.DEFINES, str(path), str(name)):
            return Assumption(f"`{path}`", f"{'defines' if answer else 'does not define'} `{name}`")
        case (questions.USES, str(path)):
            does = "uses" if answer else "does not use"
            return Assumption(f"`{path.rpartition('.')[2]}()`", f"{does} the GPU that it is given")
        case (questions.STARTS, str(path)):
            does = "runs" if answer else "does not run"
            return Assumption(f"`{path.rpartition('.')[2]}()`", f"{does} what it is given in forked processes")
        case (questions.BY_FORK, tuple(forking), tuple()):
            return Assumption("the trainer's strategy", _negated(f"is {' or '.join(map(str, forking))}", answer))
        case (questions.TAKES, str(function), str(kind), _):
            return Assumption(f"`{function}()`", _negated(f"is given a {kind}", answer))
        case (questions.BUILT, str(package)):
            return Assumption(f"`{package}`", _negated("was built with CUDA", answer))
        case (questions.BEFORE, str(package), end) if answer and isinstance(end, tuple):
            return Assumption(f"`{package}`", f"is older than {written(end)}")
        case (questions.IN_ENVIRONMENT, str(name)):
            return Assumption(f"`{name}`", _negated("is set", answer))
    if told[0] == "true" and _is_number(subject):
        told, answer = ("==", 0), not answer
    source = _source(subject)
    match None if source is None else source.sym:
        case ("option", _, str(flag), str(style)):
            return Assumption(f"`{flag}`", _option(told, answer, style))
        case ("asks", "importlib.util.find_spec", ((Const(value=str(package)),),)):
            return Assumption(package, _negated(_PRESENT, answer is not (told == ("==", None))))
        case ("environ", str(name)):
            return Assumption(f"`{name}`", _variable(told, answer))
        case ("param", _, _, str(name)):
            return Assumption(f"`{name}`", _relation(told, answer))
    return None


def _source(subject: Hashable) -> Unknown | None:
    """The one unknown that a value comes from: itself, a number read from it, or a constant in its place."""
    if isinstance(subject, tuple):
        unknowns = [atom for atom in subject if isinstance(atom, Unknown)]
        rest = (atom for atom in subject if not isinstance(atom, Unknown))
        if len(unknowns) != 1 or not all(isinstance(atom, Const) for atom in rest):
            return None
        return _source(unknowns[0])
    if not isinstance(subject, Unknown):
        return None
    match subject.sym:
        case (str(kind), inner) if kind in _CASTS:
            return _source(Unknown(inner))
    return subject


def _is_number(subject: Hashable) -> bool:
    """Whether a value was made a number, which is false if it is 0."""
    atoms = subject if isinstance(subject, tuple) else (subject,)
    return any(isinstance(a, Unknown) and isinstance(a.sym, tuple) and a.sym[0] in _NUMBERS for a in atoms)


def _option(told: questions.Asked, answer: bool, style: str) -> str:
    """Of a flag it counts whether it is given, of another option as well where it has no value otherwise."""
    op, operand = told
    if (op, operand) == ("==", None):
        return _negated("is given", not answer)
    if op == "true" and style in ("number", "needed number"):
        return _negated("is 0", not answer)
    if op == "true" and style in ("flag", "value", "list"):
        return _negated("is given", answer)
    if op == "true" and style == "off":
        return _negated("is given", not answer)
    return _relation(told, answer)


def _variable(told: questions.Asked, answer: bool) -> str:
    if told == ("==", None):
        return _negated("is set", not answer)
    return _negated("is set", answer) if told[0] == "true" else _relation(told, answer)


# -- what stands in the program --------------------------------------------------------------------------


def is_stand_in(value: Hashable) -> bool:
    """Whether a value is one that a mapping was laid over of which nothing is known."""
    source = _source(value)
    return source is not None and isinstance(source.sym, tuple) and source.sym[0] == LAID_OVER


def _written(place: Asking, told: questions.Asked, answer: bool) -> Assumption:
    if place.chooses:
        return Assumption(place.whole, _negated("is on a GPU", answer))
    if place.gets:
        return Assumption(place.whole, _negated("is there", answer))
    if place.picks and told[0] == "==":
        return Assumption(place.whole, f"{'picks' if answer else 'does not pick'} {_constant(told[1])}")
    if place.subject is not None and told[0] != "true":
        return Assumption(place.subject, _relation(told, answer))
    return Assumption(place.whole, _truth(answer is place.positive))


def _relation(told: questions.Asked, answer: bool) -> str:
    op, operand = told
    match op, operand:
        case "true", _:
            return _truth(answer)
        case "==", bool():
            return _truth(operand) if answer else f"is not {str(operand).lower()}"
        case "==", _:
            return _negated(f"is {_constant(operand)}", answer)
        case "in", frozenset() if len(operand) <= _MOST_CONSTANTS:
            return _negated(f"is one of {', '.join(sorted(map(_constant, operand)))}", answer)
        case "has", _:
            return f"contains {_constant(operand)}" if answer else f"does not contain {_constant(operand)}"
        case ("<", _) | ("<=", _):
            return _order(op, operand, answer)
    return f"{'passes' if answer else 'does not pass'} the test"


def _order(op: str, operand: Hashable, answer: bool) -> str:
    if answer:
        return f"is less than {_constant(operand)}" if op == "<" else f"is at most {_constant(operand)}"
    return f"is at least {_constant(operand)}" if op == "<" else f"is more than {_constant(operand)}"


def _constant(value: Hashable) -> str:
    """A constant as a reader knows it: words without quotes, where they are words."""
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(" ,'\"`"):
        return value if len(value) <= _MOST_CHARACTERS else f"{value[: _MOST_CHARACTERS - 1]}…"
    return "empty" if value == "" else repr(value)[:_MOST_CHARACTERS]


def of_test(text: str, holds: str) -> str:
    """What is assumed of a test as it is written; of one that denies something, what that is about."""
    if holds not in (_truth(True), _truth(False)):
        return f"`{text}` {holds}"
    affirmed = _affirmed(text)
    return f"`{text}` {holds}" if affirmed is None else f"`{affirmed}` {_truth(holds == _truth(False))}"


def _affirmed(text: str) -> str | None:
    """``a in b`` of ``a not in b``; None of what denies nothing."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.get_source_segment(text, operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _AFFIRMED:
            parts = [_side(text, part) for part in (left, right)]
            return f"{parts[0]} {_AFFIRMED[type(op)]} {parts[1]}" if None not in parts else None
    return None


def _side(text: str, part: ast.expr) -> str | None:
    """One side of a comparison as it is written, within its parentheses where it needs them."""
    written = ast.get_source_segment(text, part)
    needs_them = isinstance(part, ast.NamedExpr | ast.IfExp | ast.BoolOp | ast.Compare | ast.Lambda)
    return f"({written})" if needs_them and written is not None else written


_AFFIRMED: Mapping[type[ast.cmpop], str] = {ast.NotIn: "in", ast.IsNot: "is", ast.NotEq: "=="}


def _truth(answer: bool) -> str:
    return "is true" if answer else "is false"


# What is said of a thing, by its first words, and what is said where that is not so.
_DENIALS = (
    ("is true", "is false"),
    ("is less than ", "is at least "),
    ("is at most ", "is more than "),
    ("contains ", "does not contain "),
    ("picks ", "does not pick "),
    ("passes ", "does not pass "),
    ("defines ", "does not define "),
    ("uses ", "does not use "),
    ("was ", "was not "),
)


def deny(one: Assumption, other: Assumption) -> bool:
    """Whether one of two things is so in any case, each of which may be a choice."""
    return any(_says_the_opposite(mine, theirs) for mine in one.each for theirs in other.each)


def _says_the_opposite(one: Assumption, other: Assumption) -> bool:
    if one.subject != other.subject:
        return False
    said = {one.holds, other.holds}
    if said in ({holds, _negated(holds, False)} for holds in (one.holds, other.holds) if holds.startswith("is ")):
        return True
    return any(
        said == {holds, denied + holds.removeprefix(first)}
        for holds in said
        for first, denied in _DENIALS
        if holds.startswith(first)
    )


def _negated(words: str, answer: bool) -> str:
    if answer:
        return words
    verb, _, rest = words.partition(" ")
    return f"{verb} not {rest}"
