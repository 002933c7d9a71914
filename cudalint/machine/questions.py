"""What programs ask of values that the code does not show, and what earlier answers say of later questions.

A question is known by what it asks, not by where it stands: ``mode != "gpu"`` asks what ``mode == "gpu"`` asks, and
whoever was told that ``mode`` is ``"gpu"`` need not ask whether it is ``"cpu"``. The identity of an unknown truth is
``("is", op, left, right)`` for comparisons, in one spelling for all that mean the same, and ``("not", identity)``.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Hashable, Iterable, Iterator
from typing import TypeGuard

from cudalint.machine.trace import Site
from cudalint.machine.values import (
    JOINED,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Rank,
    Ref,
    Unknown,
    Value,
    constant,
    only,
    unknown,
)
from cudalint.structs import Frozen

Fact = tuple[Hashable, bool]
# How many GPUs there are: the same number wherever it is asked for.
DEVICES = unknown("devices")
NO_GPU = ("is", "==", DEVICES[0], Const(0))
# The list of all of them, as long as there are many.
EVERY_GPU = ("every device", "GPU")
# How many processes the group has that a process joined, and what a launcher says of that.
RANKS = unknown("ranks")
_TOLD_RANKS = ("environ", "WORLD_SIZE")
# More GPUs no machine has; larger numbers stand for something else.
MOST_GPUS = 64
# So many choices between two facts come of two paths, and so many may a path have: each question is asked of all.
MOST_CHOICES = 4
MOST_KEPT_CHOICES = 8
# So many questions that were asked last are remembered, whatever they are about.
MOST_RECENT = 4
# Of more constants than these it is not remembered that something is one.
MOST_CONSTANTS = 8
# How deep questions are looked into for what they are about.
_DEEPEST = 8
# What is asked of something, by an operator and a constant; ``true`` asks for its truth, ``has`` whether it contains,
# ``gives`` what is asked of the answer of its method.
Asked = tuple[str, Hashable]

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "is": "is"}
# Whether a variable of the environment is set.
IN_ENVIRONMENT = "in environ"
# The variables of the environment that launchers set, and users for them.
VISIBLE = "CUDA_VISIBLE_DEVICES"
OFTEN_SET = frozenset({"WORLD_SIZE", VISIBLE, "MASTER_ADDR", "MASTER_PORT"})
# Whether a package that is not seen defines a name that stands for something else without it.
DEFINES = "defines"
# Whether a class that no model describes uses the GPU that it is given when it is made.
USES = "uses GPU"
# Whether a function that no model describes runs what it is given in forked processes.
STARTS = "starts processes"
# Whether a trainer is one of those that fork: what its strategies are asked for where only some do.
BY_FORK = "trains by fork"
# Whether a loader has workers.
WORKERS = "has workers"
# Whether something unknown is of the type of which a function takes it.
TAKES = "takes"
# Whether a package was built so that it uses GPUs.
BUILT = "built with CUDA"
# Whether a release of a package is installed that is older than another.
BEFORE = "before"
# Whether an import of a package succeeds that the program also does without.
INSTALLED = "installed"
# What another process sent: by the call, the process that takes it, and where the channel was made.
RECEIVED = "received"
# Something of which only the class is known.
OF_CLASS = "of class"
# Of which not even that is known.
NO_CLASS = "?"


class Either(Frozen):
    """One of two facts holds, where the program refused to go on with neither."""

    one: Fact
    other: Fact


def told_by(choice: Either) -> tuple[Fact, ...]:
    """The facts of which one holds, where one of the two of a choice may be a choice itself."""
    return _told_by((choice, True))


def _told_by(fact: Fact) -> tuple[Fact, ...]:
    """The facts of which one holds where this one does."""
    sym, holds = fact
    if not isinstance(sym, Either) or not holds:
        return (fact,)
    one = _told_by(sym.one)
    return (*one, *(other for other in _told_by(sym.other) if other not in one))


# What does not change while a program runs.
_LASTING = frozenset(
    {"getpass.getuser", "importlib.util.find_spec", "multiprocessing.cpu_count", "os.cpu_count", "os.getuid",
     "os.process_cpu_count", "os.sched_getaffinity", "os.uname",
     "platform.architecture", "platform.machine", "platform.node", "platform.platform",
     "platform.processor",
     "platform.python_implementation", "platform.release", "platform.uname", "platform.version", "shutil.which",
     "socket.gethostname", "sys.stderr.isatty", "sys.stdin.isatty", "sys.stdout.isatty"}
)  # fmt: skip
_OF_TEXT = frozenset(
    {"casefold", "endswith", "isalpha", "isdigit", "isidentifier", "isnumeric", "lower", "lstrip", "partition",
     "removeprefix", "removesuffix", "rpartition", "rsplit", "rstrip", "split", "startswith", "strip", "title", "upper"}
)  # fmt: skip
_REPLACE = "replace"
_REFUSED = {">": "<=", ">=": "<"}


def makes_uncertain(fact: Fact) -> bool:
    """Whether a path goes on as if something were so that the code does not show: what follows is uncertain."""
    match fact:
        case ((kind, *_), True) if kind in (USES, BUILT, STARTS, BEFORE):
            return True
        case ((kind, *_), False) if kind == INSTALLED:
            return True
    return False


def comparison(op: str, left: Atom | Value, right: Atom | Value) -> Value:
    """The unknown truth of ``left op right``, of things that keep their identity."""
    package = _package_sought(left)
    if package is not None and op in ("==", "is") and right == Const(None):
        return unknown("not", (INSTALLED, package))
    if isinstance(left, Const) and op in _MIRRORED and not isinstance(right, Const):
        return comparison(_MIRRORED[op], right, left)
    if op in ("==", "is") and isinstance(right, Const) and right.kind is bool and _is_flag(left):
        return (left,) if right.value else unknown("not", left.sym)
    if isinstance(right, Const):
        op = "==" if op == "is" else op
    elif op in (">", ">=") or (op == "<=" and not isinstance(left, Const)):
        # ``a > b`` is ``b < a``, and ``a <= b`` is not ``b < a``.
        if op == ">":
            return unknown("is", "<", right, left)
        pair = (left, right) if op == ">=" else (right, left)
        return unknown("not", ("is", "<", *pair))
    if op in _REFUSED:
        return unknown("not", ("is", _REFUSED[op], left, right))
    return unknown("is", op, left, right)


def _is_flag(value: Atom | Value) -> TypeGuard[Unknown]:
    """Whether something is a flag of the command line, which is true or false and nothing else."""
    match value:
        case Unknown(sym=("option", _, str(), "flag" | "off")):
            return True
    return False


def is_answer(value: Value) -> bool:
    """Whether a value is true or false and nothing else: what a comparison, a denial or a flag gives."""
    atom = only(value)
    match atom:
        case Unknown(sym=("is" | "not", *_)):
            return True
    return atom is not None and _is_flag(atom)


def identity(value: Value) -> Atom | Value | None:
    """What a value can be asked about again: one thing, or alternatives that one unknown tells from all others."""
    atom = only(value)
    if atom is not None:
        return None if isinstance(atom, Ref) else atom
    if any(isinstance(a, Ref) for a in value) or not any(isinstance(a, Unknown) for a in value):
        return None
    return None if JOINED in value else value


def class_of(sym: Hashable, classes: Container[str]) -> str:
    """The class of something of which no more is known than that, or by what it is called; else ``NO_CLASS``.

    ``classes``: those of libraries, an instance of which is known by the call that made it.
    """
    match sym:
        case (str(what), str(kind), *_) if what == OF_CLASS:
            return kind
        case ("call", _, _, _, str(path), *_) | ("follows", str(path), *_) if path in classes:
            return path
    return NO_CLASS


def truth_of_rank(rank: Rank) -> Hashable:
    """The identity of a rank's truth: any but the first is true."""
    return ("not", ("is", "==", rank, Const(0)))


def truth_of(value: Unknown) -> Hashable:
    """The identity of an unknown's truth: the list of all GPUs is false where there is none."""
    package = _package_sought(value)
    if package is not None:
        return (INSTALLED, package)
    return ("not", NO_GPU) if value.sym == EVERY_GPU else value.sym


def _package_sought(value: Hashable) -> str | None:
    """The package that ``find_spec`` looks for: it gives None where that is not installed."""
    match value:
        case Unknown(sym=("asks", "importlib.util.find_spec", ((Const(value=str(package)),), *_))):
            return package.partition(".")[0]
    return None


def asks(path: str, args: list[Value]) -> Value | None:
    """What a library function answers alike wherever it is asked; None of functions that do something."""
    name = path.rpartition(".")[2]
    if not (name.endswith(("_available", "_installed")) or path in _LASTING) or not all(map(_stays, args)):
        return None
    if path == "importlib.util.find_spec" and constant(args[0] if args else ()) in sys.stdlib_module_names:
        return (Lib("importlib.machinery.ModuleSpec"),)
    return unknown("asks", path, tuple(args))


def asks_of_text(method: Atom, args: list[Value]) -> Value | None:
    """What a method answers that only texts have: a text never changes."""
    match method:
        case Unknown(sym=(*_, ".", str(name))) if _is_of_text(name, len(args)) and all(map(_stays, args)):
            return unknown("asks", method, tuple(args))
    return None


def _is_of_text(name: str, arguments: int) -> bool:
    """Whether only texts have a method like this: ``replace`` of a path, which moves a file, takes one argument."""
    return name in _OF_TEXT or (name == _REPLACE and arguments > 1)


def text_method(value: Value, name: str) -> Value | None:
    """A method of one text, of which it is not known which of these it is; None of what may be no text."""
    if (
        not (name in _OF_TEXT or name == _REPLACE)
        or identity(value) is None
        or not any(isinstance(atom, Const) for atom in value)
    ):
        return None
    texts = (isinstance(atom, Unknown) or (isinstance(atom, Const) and atom.kind is str) for atom in value)
    return unknown(value, ".", name) if all(texts) else None


def is_named_in(part: object, variable: str) -> bool:
    """Whether something is a number that a variable of the environment lists: one item of it, as text or as ``int``."""
    match part:
        case Unknown(sym=sym):
            return is_named_in(sym, variable)
        case ("environ", str(name)):
            return name == variable
        case ("int", inner):
            return is_named_in(inner, variable)
        case ("asks", Unknown(sym=(whole, ".", "split" | "rsplit" | "strip")), tuple()):
            return is_named_in(whole, variable)
        case (tuple(rows), "[]", tuple()) | (tuple(rows), "each", int()):
            return is_named_in(rows, variable)
    return False


def _stays(value: Value) -> bool:
    return all(isinstance(atom, Const | Lib | Unknown | Dev) for atom in value)


def asked_rank(sym: Hashable) -> Rank | None:
    """The rank that a question is about."""
    subject, _ = read(sym)
    return subject if isinstance(subject, Rank) else None


def remembered(facts: tuple[Fact, ...], most: int, telling: Collection[Hashable] = ()) -> tuple[Fact, ...]:
    """The facts that a path goes on with: of very many the oldest are forgotten, those last that decide what it is.

    What an option was is asked again in the last function as in the first, and never forgotten for another thing.
    ``telling``: the questions that keep it apart from other paths, which did something else.
    """
    over = len(facts) - most
    if over <= 0:
        return facts
    # What was asked just now is what is asked again next.
    weights = [_weight(sym, telling) for sym, _ in facts[:-MOST_RECENT]]
    forgotten = set(sorted(range(len(weights)), key=lambda i: weights[i])[:over])
    return tuple(fact for i, fact in enumerate(facts) if i not in forgotten)


def _weight(sym: Hashable, telling: Collection[Hashable]) -> int:
    """How long a fact is kept: what users say of the run longest, and long what tells paths apart, or is about ranks
    and GPUs."""
    if is_of_the_run(sym):
        return 2
    return 1 if sym in telling or _is_of_ranks(sym) else 0


def _is_of_ranks(sym: Hashable) -> bool:
    subject = read(sym)[0]
    return isinstance(subject, Rank) or subject in (DEVICES[0], RANKS[0])


def learned(facts: tuple[Fact, ...], sym: Hashable, answer: bool) -> tuple[Fact, ...]:
    """These facts and one more. Which constant something is says all that it is not."""
    fact = plain(sym, answer)
    match fact:
        case (("is", "==", subject, Const()), True):
            facts = tuple(known for known in facts if known[1] or _compared_with(known[0], subject) is None)
    return (*facts, fact)


def mentions(sym: Hashable, about: Value) -> bool:
    """Whether a question is about something unknown, or what is asked of it."""
    return any(isinstance(atom, Unknown) and _mentions(sym, atom, 0) for atom in about)


def _mentions(sym: Hashable, thing: Unknown, depth: int) -> bool:
    match sym:
        case Unknown(sym=inner):
            return sym == thing or inner == thing.sym or (depth < _DEEPEST and _mentions(inner, thing, depth + 1))
        case tuple():
            return sym == thing.sym or (depth < _DEEPEST and any(_mentions(one, thing, depth + 1) for one in sym))
    return False


def rests_on(sym: Hashable, calls: Container[Site], depth: int = 0) -> bool:
    """Whether a question is about what one of these calls gave."""
    match sym:
        case Site():
            return sym in calls
        case Unknown(sym=inner):
            return depth < _DEEPEST and rests_on(inner, calls, depth + 1)
        case tuple():
            return depth < _DEEPEST and any(rests_on(one, calls, depth + 1) for one in sym)
    return False


def is_assumed(fact: Fact, facts: tuple[Fact, ...]) -> bool:
    """Whether a path assumes something: by itself, or as it is another constant than this one."""
    if fact in facts:
        return True
    match fact:
        case (("is", "==", subject, Const() as constant), False):
            others = [_compared_with(sym, subject) for sym, answer in facts if answer]
            return any(other is not None and other != constant for other in others)
    return False


def _compared_with(sym: Hashable, subject: Hashable) -> Const | None:
    """The constant that a question asks something to be."""
    match sym:
        case ("is", "==", about, Const() as constant) if about == subject:
            return constant
    return None


def is_of_the_run(sym: Hashable) -> bool:
    """Whether users answer a question when they start the program: an option, a variable of the environment."""
    return _is_told(read(sym)[0])


def _is_told(subject: Hashable) -> bool:
    """Whether users say what something is; an option with a default is that or what they say."""
    match subject:
        case Unknown(sym=("option" | "environ" | "in environ", *_)):
            return True
        case Unknown(sym=("int" | "float" | "str" | "bool", made)):
            return _is_told(Unknown(made))
        case tuple():
            return all(isinstance(atom, Const) or _is_told(atom) for atom in subject)
    return False


def lays_over(fact: Fact) -> bool:
    """Whether users give an option that is an empty list otherwise: of words that are laid over settings, mostly."""
    match fact:
        case (("option", _, str(), "list"), True):
            return True
    return False


def is_option(value: Value) -> bool:
    """Whether a value is what users give for an option, or its default."""
    return any(map(_is_of_option, value)) and all(isinstance(atom, Const) or _is_of_option(atom) for atom in value)


def _is_of_option(atom: Atom) -> bool:
    match atom:
        case Unknown(sym=("option", *_)):
            return True
        case Unknown(sym=("int", made)):
            return _is_of_option(Unknown(made))
    return False


def if_not_given(value: Value) -> Value:
    """Of an option that has a default, that."""
    constants = tuple(atom for atom in value if isinstance(atom, Const))
    return constants if constants and is_option(value) else value


def if_unset(value: Value) -> Value:
    """Of a variable of the environment that has a default, that: the program says so, as it does of an option."""
    constants = tuple(atom for atom in value if isinstance(atom, Const))
    return constants if constants and all(map(_is_const_or_variable, value)) else value


def _is_const_or_variable(atom: Atom) -> bool:
    match atom:
        case Const() | Unknown(sym=("environ", str())):
            return True
        case Unknown(sym=("int" | "str", made)):
            return _is_const_or_variable(Unknown(made))
    return False


def asks_for_an_option(sym: Hashable) -> bool:
    """Whether users answer a question by an option."""
    match read(sym)[0]:
        case Unknown() as atom:
            return _is_of_option(atom)
        case tuple() as value:
            return is_option(value)
    return False


def asks_for_a_setting(sym: Hashable) -> bool:
    """Whether it is asked for a variable of the environment that few users set: no launcher does."""
    return _is_setting(read(sym)[0])


def _is_setting(subject: Hashable) -> bool:
    match subject:
        case Unknown(sym=("environ" | "in environ", str(name))):
            return name not in OFTEN_SET
        case tuple():
            # One with a default is that, or what they set.
            others = [atom for atom in subject if not isinstance(atom, Const)]
            return len(others) == 1 and _is_setting(others[0])
    return False


def are_of_several_ranks(facts: Iterable[Fact]) -> bool:
    """Whether a rank among others can be where these facts hold: its number is not negative, and they are not alone."""
    facts = tuple(facts)
    for sym, holds in facts:
        subject, asked = read(sym)
        if isinstance(subject, Rank) and all(answer_of(asked, n) is not holds for n in range(MOST_GPUS)):
            return False
        many = range(2, MOST_GPUS)
        if _counts_ranks(subject) and all(answer_of(asked, n) is (not holds) for n in many):
            return False
    return True


def sees_one_gpu(facts: Iterable[Fact]) -> bool:
    """Whether a program has found a single GPU: launchers can show each rank of several another one."""
    told = ((asked, holds) for sym, holds in facts for subject, asked in (read(sym),) if subject == DEVICES[0])
    many = range(2, MOST_GPUS)
    return any(all(answer_of(asked, n) is (not holds) for n in many) for asked, holds in told)


def _counts_ranks(subject: Hashable) -> bool:
    match subject:
        case Unknown(sym=("int", sym)):
            return sym == _TOLD_RANKS
        case tuple():
            return any(isinstance(atom, Unknown) and _counts_ranks(atom) for atom in subject)
    return subject == RANKS[0]


def of_as_many_ranks(facts: Iterable[Fact], number: Value) -> list[Fact]:
    """What is known of the number of ranks, where a process joined a group of so many."""
    subject = identity(number)
    if isinstance(subject, Const):
        is_count = subject.kind is int and isinstance(subject.value, int) and subject.value > 0
        return [(("is", "==", RANKS[0], subject), True)] if is_count else []
    known = [(asked, holds) for sym, holds in facts if (asked := _compared(sym, subject)) is not None]
    return [(("is", op, RANKS[0], operand), holds) for (op, operand), holds in known]


def _compared(sym: Hashable, subject: Hashable) -> tuple[str, Const] | None:
    """What a question compares this with; None where it asks something else, or of another."""
    match sym:
        case ("is", str(op), about, Const() as operand) if about == subject:
            return op, operand
    return None


def without(facts: tuple[Fact, ...], subject: Hashable) -> tuple[Fact, ...]:
    """These facts but for those about an unknown that has become another, or about what was made of it."""
    return tuple(fact for fact in facts if not _is_about(fact, subject))


def _is_about(fact: Fact, subject: Hashable) -> bool:
    match fact[0]:
        case Either(one=one, other=other):
            return _is_about(one, subject) or _is_about(other, subject)
    return _is_made_of(fact[0], subject)


def _is_made_of(found: Hashable, subject: Hashable) -> bool:
    if found == subject:
        return True
    if isinstance(found, Unknown):
        return _is_made_of(found.sym, subject)
    return isinstance(found, tuple) and any(_is_made_of(part, subject) for part in found)


def was_told_no(facts: Iterable[Fact], channel: Hashable) -> bool:
    """Whether what came through a channel was false, where that was asked."""
    for sym, holds in facts:
        match sym:
            case (str(kind), _, _, made) if kind == RECEIVED and made == channel and not holds:
                return True
    return False


def only_rank(facts: Iterable[Fact]) -> int | None:
    """The rank to which these facts belong, where they belong to one only."""
    for sym, holds in facts:
        match read(sym):
            case Rank(), ("==", int(number)) if holds:
                return number
    return None


def is_told(facts: Iterable[Fact], number: int) -> bool:
    """Whether a number is what an option was taken to be, of which whoever starts the program may say another."""
    for sym, holds in facts:
        match read(sym):
            case tuple() as option, ("==", int(taken)) if holds and taken == number and is_option(option):
                return True
    return False


def plain(sym: Hashable, answer: bool) -> Fact:
    """The same fact about what is not negated."""
    while isinstance(sym, tuple) and len(sym) == 2 and sym[0] == "not":
        sym, answer = sym[1], not answer
    return sym, answer


def answered(facts: Iterable[Fact], sym: Hashable) -> bool | None:
    """What facts say about a question; None where they leave it open."""
    wanted, positive = plain(sym, True)
    facts = tuple(facts)
    for known, value in facts:
        if known == wanted:
            return value is positive
    found = _answered(facts, wanted)
    if found is None:
        found = _left_over(facts, wanted)
    return None if found is None else found is positive


def alike(mine: tuple[Fact, ...], theirs: tuple[Fact, ...]) -> int:
    """How many facts two paths assumed before they parted: these are the same objects."""
    number = 0
    for one, other in zip(mine, theirs, strict=False):
        if one is not other:
            break
        number += 1
    return number


def both(mine: tuple[Fact, ...], theirs: tuple[Fact, ...], shared: int) -> list[Fact]:
    """What two paths have in common that do not assume the same: one assumes the first, or the other the second.

    Where ``--gpu`` with more than one job ends the program, what goes on has no ``--gpu``, or it has one job.
    They parted after ``shared`` facts.
    """
    known = choices(mine[:shared])
    if len(known) < MOST_KEPT_CHOICES:
        given = choices(mine[shared:])
        # Paths that parted lately have nearly all in common: compared one by one, these are told sooner than by hash.
        given += [choice for choice in choices(theirs[shared:]) if choice not in given]
        known += [choice for choice in given if choice not in known and _follows_from(choice, mine, theirs)]
    if len(known) >= MOST_KEPT_CHOICES:
        return [(choice, True) for choice in known[:MOST_KEPT_CHOICES]]
    left = [fact for fact in mine[shared:] if fact not in theirs]
    right = [fact for fact in theirs[shared:] if fact not in mine] if left else []
    # A path that came of several says nothing beside most of what others were told: that is its own opposite.
    of_several = any(type(sym) is Either for sym, _ in (*left, *right))
    if len(left) * len(right) <= MOST_CHOICES * (MOST_CHOICES if of_several else 1):
        pairs = ((one, other) for one in left for other in right if one[0] != other[0])
        if of_several:
            others = [(fact, _told_by(fact)) for fact in right]
            pairs = (
                (one, other)
                for one, told in [(fact, _told_by(fact)) for fact in left]
                for other, told_too in others
                if one[0] != other[0] and not _is_always_so(told, told_too)
            )
        telling = [pair for pair in pairs if not _tell_which(*pair)]
        made = (Either(one, other) for one, other in (telling if len(telling) <= MOST_CHOICES else ()))
        known += [choice for choice in made if choice not in known]
    return [(choice, True) for choice in known[:MOST_KEPT_CHOICES]]


def one_of(mine: tuple[Fact, ...], theirs: tuple[Fact, ...], shared: int) -> list[Fact]:
    """That something is one of several constants, where two paths that parted after ``shared`` facts do not agree
    which."""
    mine_told = [(fact, told) for fact in mine[shared:] if (told := _which(fact)) is not None]
    if not mine_told:
        return []
    others = dict(told for fact in theirs if (told := _which(fact)) is not None)
    result: list[Fact] = []
    for fact, (subject, constants) in mine_told:
        if subject not in others or fact in theirs:
            continue
        either = constants | others[subject]
        if len(either) <= MOST_CONSTANTS:
            result.append((("is", "in", subject, Const(either)), True))
    return result


def _tell_which(one: Fact, other: Fact) -> bool:
    """Whether both say which constant the same thing is."""
    mine, theirs = _which(one), _which(other)
    return mine is not None and theirs is not None and mine[0] == theirs[0]


def _is_always_so(one: tuple[Fact, ...], other: tuple[Fact, ...]) -> bool:
    """Whether one says that this is so, or that it is not, or something else: together they say nothing."""
    told = (*one, *other)
    return (len(one) > 1 or len(other) > 1) and any((sym, not holds) in told for sym, holds in told)


def _which(fact: Fact) -> tuple[Hashable, frozenset[Hashable]] | None:
    """What is said to be one of which constants; None where a fact says something else."""
    match fact:
        case (("is", "==", subject, Const(value=value)), True):
            return subject, frozenset({value})
        case (("is", "in", subject, Const(value=frozenset() as values)), True):
            return subject, values
    return None


def _follows_from(choice: Either, *paths: tuple[Fact, ...]) -> bool:
    return all((choice, True) in facts or choice.one in facts or choice.other in facts for facts in paths)


def settled(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """What a path was asked and answered, without what it may choose from."""
    # Hardly any path has a choice, and this is asked whenever two are compared.
    for sym, _ in facts:
        if type(sym) is Either:
            return tuple(fact for fact in facts if type(fact[0]) is not Either)
    return facts


def choices(facts: tuple[Fact, ...]) -> list[Either]:
    """What a path may choose from."""
    return [sym for sym, _ in facts if type(sym) is Either]


def may_hold(fact: Fact, facts: tuple[Fact, ...]) -> bool:
    """Whether a path assumes something, by itself or as one of several things of which one is so."""
    return fact in facts or any(fact in told_by(choice) for choice in choices(facts))


def _left_over(facts: tuple[Fact, ...], wanted: Hashable) -> bool | None:
    """What one of two facts says where the other one does not hold."""
    given = choices(facts)
    if not given:
        return None
    known = settled(facts)
    subject, asked = read(wanted)
    about = (subject, _beneath(subject, asked)[0])
    for choice in given:
        one, other = choice.one, choice.other
        for fact, instead in ((one, other), (other, one)):
            if not _may_tell(fact[0], wanted, *about):
                continue
            told = answered((fact,), wanted)
            if told is not None and answered(known, instead[0]) is (not instead[1]):
                return told
    return None


def _may_tell(known: Hashable, wanted: Hashable, subject: Hashable, text: Hashable) -> bool:
    """Whether a fact is about what is asked for: most are not, and this is told sooner than what they say."""
    return (
        _told(known, subject) is not None
        or _told_of_text(known, text) is not None
        or _mirrored(((known, True),), wanted) is not None
    )


def _of_any_gpus(asked: Asked) -> bool | None:
    """What goes without saying about the number of GPUs: there is one. Where they are hidden, it is no unknown."""
    answers = {answer_of(asked, count) for count in range(1, MOST_GPUS)}
    return answers.pop() if len(answers) == 1 else None


def _answered(facts: tuple[Fact, ...], wanted: Hashable) -> bool | None:
    subject, asked = read(wanted)
    if subject == DEVICES[0] and (found := _of_any_gpus(asked)) is not None:
        return found
    if not facts:
        return None
    known = [(told, value) for sym, value in facts if (told := _told(sym, subject)) is not None]
    found = _follows(asked, known) if known else _mirrored(facts, wanted)
    if found is None:
        found = _of_a_text(facts, subject, asked)
    return _of_a_variable(facts, subject, asked) if found is None else found


def _of_a_variable(facts: tuple[Fact, ...], subject: Hashable, asked: Asked) -> bool | None:
    """What was told of a variable of the environment where another default was given for it, or none."""
    variable = _variable_in(subject)
    if variable is None:
        return None
    known: list[tuple[Asked, bool]] = []
    is_set = False
    for sym, value in facts:
        about, told = read(sym)
        if _variable_in(about) == variable:
            known.append((told, value))
            is_set = is_set or all(answer_of(told, default) is (not value) for default in _defaults_in(about))
    found = _follows(asked, known) if known else None
    if found is None or is_set:
        return found
    return found if all(answer_of(asked, default) is found for default in _defaults_in(subject)) else None


def _variable_in(subject: Hashable) -> Unknown | None:
    """The variable of the environment that something is, unless that is not set and it is a default."""
    if isinstance(subject, Unknown):
        return subject if _is_variable(subject.sym) else None
    if not isinstance(subject, tuple):
        return None
    found = [atom for atom in subject if not isinstance(atom, Const)]
    variable = found[0] if len(found) == 1 else None
    return variable if isinstance(variable, Unknown) and _is_variable(variable.sym) else None


def has_default(value: Value) -> bool:
    """Whether a value is a variable of the environment, or something else than None where that is not set."""
    return len(value) > 1 and _variable_in(value) is not None and None not in _defaults_in(value)


def _is_variable(sym: Hashable) -> bool:
    return isinstance(sym, tuple) and len(sym) == 2 and sym[0] == "environ"


def _defaults_in(subject: Hashable) -> list[Hashable]:
    """What it is where the variable is not set: None, unless something else is given for that."""
    return [atom.value for atom in subject if isinstance(atom, Const)] if isinstance(subject, tuple) else [None]


def _of_a_text(facts: tuple[Fact, ...], subject: Hashable, asked: Asked) -> bool | None:
    """What follows for ``text.upper()`` from what is known of ``text``, and the other way round."""
    text, asked = _beneath(subject, asked)
    known = [(told, value) for sym, value in facts if (told := _told_of_text(sym, text)) is not None]
    return _follows(asked, known) if known else None


def _told_of_text(sym: Hashable, text: Hashable) -> Asked | None:
    """What a fact says about a text, or about what a method gives of it."""
    if not isinstance(sym, tuple) or not sym or sym[0] not in _ABOUT_OTHERS:
        return _TRUE if isinstance(text, Unknown) and text.sym == sym else None
    about, told = _beneath(*read(sym))
    return told if about == text else None


def _beneath(subject: Hashable, asked: Asked) -> tuple[Hashable, Asked]:
    """A question about what a method of a text gives, as one about the text."""
    match subject:
        case Unknown(sym=(tuple(parts), "[]", (Const(value=int(index)),))) if parts[:1] == ("asks",):
            return _beneath(Unknown(parts), (_HOLDS_AT, (index, asked)))
        case Unknown(sym=("asks", Unknown(sym=(text, ".", str(method))), tuple(args))) if _is_of_text(
            method, len(args)
        ):
            given = [only(value) for value in args]
            if all(isinstance(atom, Const) for atom in given):
                values = tuple(atom.value for atom in given if isinstance(atom, Const))
                return _beneath(_one_of(text), (_GIVES, (method, values, asked)))
    return subject, asked


def _one_of(text: Hashable) -> Hashable:
    """What a text is known by: its own identity, or the alternatives that it is one of."""
    is_value = isinstance(text, tuple) and all(isinstance(atom, Const | Unknown) for atom in text)
    return text if is_value else Unknown(text)


def _told(sym: Hashable, subject: Hashable) -> Asked | None:
    """What a fact says about something; None where it is about something else. Most facts are about themselves."""
    if isinstance(sym, tuple) and sym and sym[0] in _COMPARING:
        about, told = read(sym)
        return told if about == subject else None
    return _TRUE if isinstance(subject, Unknown) and subject.sym == sym else None


def _mirrored(facts: tuple[Fact, ...], wanted: Hashable) -> bool | None:
    """``b == a`` where ``a == b`` was answered."""
    match wanted:
        case ("is", "==" | "is" as op, left, right):
            mirrored = ("is", op, right, left)
            # Most facts ask something else, which is told sooner than what all of them are by hash.
            return next((answer for sym, answer in reversed(facts) if sym == mirrored), None)
    return None


def gpu_named(facts: Iterable[Fact], value: Value) -> str | None:
    """The text by which something unknown names a GPU, by what it was compared with: ``device == "cuda"``."""
    devices = [device for atom in value if isinstance(atom, Unknown) for device in _devices(atom)]
    for sym, holds in facts if devices else ():
        # Most facts are about something else, which is told sooner than what they say.
        if not holds or not isinstance(sym, tuple) or not sym or sym[0] not in _ABOUT_OTHERS:
            continue
        about, (op, operand) = _beneath(*read(sym))
        if not any(_named(atom) in devices for atom in (about if isinstance(about, tuple) else (about,))):
            continue
        match op, operand:
            case "==" | "has", str(text) if text.startswith(_GPU):
                return text
            case "gives", ("startswith", (str(text), *_), ("true", None)) if text.startswith(_GPU):
                return text
    return None


def left_of(facts: Iterable[Fact], value: Value) -> Value:
    """What a value may be by these facts: without the constants that it is known not to be."""
    subject = identity(value)
    known = [(told, holds) for sym, holds in facts if (told := _told(sym, subject)) is not None] if subject else []
    return tuple(a for a in value if not (isinstance(a, Const) and _contradicts(a.value, known))) if known else value


def _devices(device: Unknown) -> Iterator[Unknown]:
    """A device, and the text of which it was made: ``torch.device(text)``."""
    yield device
    match device.sym:
        case ("torch.device", Unknown() as text):
            yield text


def _named(thing: Hashable) -> Hashable:
    """The device of which something is said: by itself, or by its ``type``."""
    match thing:
        case Bound(function=Lib(path="?.type"), receiver=receiver):
            return receiver
    return thing


def highest(facts: Iterable[Fact], number: Value) -> int | None:
    """The number that a value is at most, by these facts."""
    subject = identity(number)
    found: list[int] = []
    for sym, holds in facts:
        of, told = read(sym)
        limit = told[1] if told[0] == "==" else _at_most(told)
        if holds and of == subject and isinstance(limit, int):
            found.append(limit)
    return min(found) if found and subject is not None else None


def exceeds(facts: Iterable[Fact], number: Value, most: int) -> bool:
    """Whether a value is more than a number, by these facts."""
    subject = identity(number)
    for sym, holds in facts:
        of, told = read(sym)
        limit = _at_most(told)
        if not holds and subject is not None and of == subject and isinstance(limit, int) and limit >= most:
            return True
    return False


_GPU = "cuda"
_COMPARING = ("is", "any")
# Facts that may be about something else than their own truth.
_ABOUT_OTHERS = (*_COMPARING, "asks")
_TRUE: Asked = ("true", None)
_GIVES = "gives"
_HOLDS_AT = "holds at"


def read(sym: Hashable) -> tuple[Hashable, Asked]:
    """What a question is about, and what it asks."""
    # Asked more often than anything else of a run: patterns would take three times as long.
    if isinstance(sym, tuple) and sym:
        if sym[0] == "is" and len(sym) == 4:
            _, op, subject, operand = sym
            if op == "in" and isinstance(subject, Const) and isinstance(subject.value, str):
                return operand, ("has", subject.value)
            if isinstance(operand, Const):
                return subject, (op, operand.value)
        elif sym[0] == "any" and len(sym) == 2:
            return sym[1], _TRUE
    return Unknown(sym), _TRUE


def _follows(asked: Asked, known: list[tuple[Asked, bool]]) -> bool | None:
    """What follows from what is known of the same thing."""
    possible = _possible(known)
    if possible is not None:
        verdicts = {answer_of(asked, c) for c in possible if not _contradicts(c, known)}
        return verdicts.pop() if len(verdicts) == 1 else None
    op, operand = asked
    if op == "==":
        return False if _contradicts(operand, known) else None
    if op == "in" and isinstance(operand, frozenset):
        return False if all(_contradicts(c, known) for c in operand) else None
    return _by_order(asked, known)


def _possible(known: list[tuple[Asked, bool]]) -> frozenset[Hashable] | None:
    """The constants of which it is one; None where any may be meant."""
    for (op, operand), holds in known:
        if holds and op == "==":
            return frozenset({operand})
    for (op, operand), holds in known:
        if holds and op == "in" and isinstance(operand, frozenset):
            return operand
    return None


def _contradicts(constant: Hashable, known: list[tuple[Asked, bool]]) -> bool:
    return any(answer_of(asked, constant) is (not answer) for asked, answer in known)


def answer_of(asked: Asked, constant: Hashable) -> bool | None:
    """What a constant would answer."""
    op, operand = asked
    match op:
        case "true":
            return bool(constant)
        case "==":
            return constant == operand
        case "in" if isinstance(operand, frozenset):
            return constant in operand
        case "has" if isinstance(operand, str):
            return operand in constant if isinstance(constant, str) else None
        case "gives" if isinstance(constant, str) and isinstance(operand, tuple):
            return _answer_of_text(constant, *operand)
        case "holds at" if isinstance(constant, tuple) and isinstance(operand, tuple):
            index, told = operand
            return answer_of(told, constant[index]) if -len(constant) <= index < len(constant) else None
        case "<" | "<=" if isinstance(constant, int | float) and isinstance(operand, int | float):
            return constant < operand if op == "<" else constant <= operand
    return None


def _answer_of_text(text: str, method: str, args: tuple[Hashable, ...], asked: Asked) -> bool | None:
    try:
        given = getattr(text, method)(*args)
    except (TypeError, ValueError):
        return None
    return answer_of(asked, tuple(given) if isinstance(given, list) else given)


def _by_order(asked: Asked, known: list[tuple[Asked, bool]]) -> bool | None:
    """What follows from whole numbers that it is at most, or more than."""
    highest = _at_most(asked)
    for told, holds in known:
        limit = _at_most(told)
        if limit is None:
            continue
        if highest is None:
            # More than zero, or less, is true.
            if asked[0] == "true" and (limit < 0 if holds else limit >= 0):
                return True
            continue
        if holds and limit <= highest:
            return True
        if not holds and highest <= limit:
            return False
    return None


def _at_most(asked: Asked) -> int | None:
    """The number that ``x <= number`` or ``x < number`` allows at most."""
    op, operand = asked
    if op not in ("<", "<=") or isinstance(operand, bool) or not isinstance(operand, int):
        return None
    return operand if op == "<=" else operand - 1
