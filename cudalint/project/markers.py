"""What searching the bytes of a file shows: whether it can matter at all, and whether something may start there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from cudalint.models.vocabulary import Marks, Vocabulary
from cudalint.project.blocks import end_of_body, run_at_import, runs_at_once
from cudalint.structs import Frozen, field
from cudalint.text.words import is_used, words

_STRATEGY = re.compile(rb"ddp_(?:fork|notebook)")
# A device object at the beginning of a line, or under another name. ``torch.device`` is none. What is looked for in
# whole files begins with letters that are found quickly.
_CALL = re.compile(rb"evice\(")
_BEFORE_CALL = re.compile(rb"[ \t]*(?:(?:\w+\.)*cuda\.)?[dD]")
_BEFORE_RENAMED_CALL = re.compile(rb"[ \t]*[\w.]+\.[dD]")
_NAMED = re.compile(rb"cuda\.[dD]evice[ \t]*(?:$|[,;)\]}#])", re.MULTILINE)
_IMPORTED = re.compile(rb"evice[ \t]+as\b")
_BEFORE_IMPORTED = re.compile(rb".*\bimport\b.*\b[dD]")
_RENAMED = re.compile(
    rb"\bcuda[ \t]+as[ \t]+\w+|\bimport[ \t]+cupy[ \t]+as\b|\bfrom[ \t]+torch[ \t]+import\b.*\bcuda\b|"
    rb"=[ \t]*(?:\w+\.)*cuda[ \t]*$",
    re.MULTILINE,
)
_KEPT_RENAMED = re.compile(rb"evice[ \t]*$", re.MULTILINE)
_BEFORE_KEPT_RENAMED = re.compile(rb".*=[ \t]*\w+\.[dD]")
_CUDA = frozenset({b"cuda", b"cupy"})
_DEVICES = frozenset({b"device", b"Device"})


class Text(Frozen):
    """The bytes of a file, or of a part of it; ``words`` are at least those that something is asked about."""

    data: bytes
    words: frozenset[bytes]
    vocabulary: Vocabulary

    @staticmethod
    def of(data: bytes, vocabulary: Vocabulary) -> Text:
        """The words of some bytes."""
        return Text(data, words(data), vocabulary)

    def shows(self, marks: Marks) -> bool:
        """Whether one of some marks is there."""
        found = self.words
        if not marks.anywhere.isdisjoint(found) or any(group <= found for group in marks.together):
            return True
        return any(is_used(self.data, word) for word in marks.used & found)


class Lexicon(Frozen):
    """The vocabulary of a run's models, and the ``words`` of a file that something is asked about."""

    vocabulary: Vocabulary
    words: frozenset[bytes]

    @staticmethod
    def of(vocabulary: Vocabulary) -> Lexicon:
        """The words of the models, and those of this module."""
        known = vocabulary.words().union(_CUDA, _DEVICES, _SERVES, {_MARK}, _FORKED, _ANSWERS, _ROUTES, _ACTS, _SETTLES)
        return Lexicon(vocabulary, known)


def may_matter(text: Text) -> bool:
    """Whether the file mentions CUDA or processes, so that it is worth a look."""
    known = text.vocabulary
    if not (known.own.isdisjoint(text.words) and known.processes.isdisjoint(text.words)):
        return True
    return mentions_gpu(text) or any(map(text.shows, (known.starts, known.threads, known.asks)))


def worth_a_look(data: bytes, vocabulary: Vocabulary) -> bool:
    """Whether a file mentions CUDA, processes, or what the user's own models name."""
    return may_matter(Text.of(data, vocabulary))


def may_launch(text: Text) -> bool:
    """Whether something that a rule judges may start in the file."""
    known = text.vocabulary
    if text.shows(known.starts) or device_statement(text):
        return True
    if b"ddp_" in text.data and _STRATEGY.search(text.data) is not None:
        return True
    return starts_threads(text) and selects_device(text)


def starts_threads(text: Text) -> bool:
    """Whether the file starts threads, or has a class of them."""
    return text.shows(text.vocabulary.threads)


# ``with torch.cuda.device(1):`` and ``cupy.cuda.Device(1)``.
_FOR_A_BLOCK = re.compile(rb"\bcuda\s*\.\s*[dD]evice\s*\(")


def selects_device(text: Text) -> bool:
    """Whether the file selects the GPU of a thread, by a call or for a block."""
    if text.shows(text.vocabulary.selects):
        return True
    return not _CUDA.isdisjoint(text.words) and _FOR_A_BLOCK.search(text.data) is not None


def device_statement(text: Text) -> bool:
    """Whether a line may be a device object as a statement."""
    if _CUDA.isdisjoint(text.words) or _DEVICES.isdisjoint(text.words):
        return False
    data = text.data
    called = tuple(_before(data, found.start()) for found in _CALL.finditer(data))
    if any(_BEFORE_CALL.fullmatch(one) for one in called) or _NAMED.search(data) is not None:
        return True
    if _any_before(data, _IMPORTED, _BEFORE_IMPORTED):
        return True
    renamed = any(_BEFORE_RENAMED_CALL.fullmatch(one) for one in called)
    renamed = renamed or _any_before(data, _KEPT_RENAMED, _BEFORE_KEPT_RENAMED)
    return renamed and _RENAMED.search(data) is not None


def _any_before(data: bytes, pattern: re.Pattern[bytes], before: re.Pattern[bytes]) -> bool:
    """Whether what stands in the row before a place where the one is found matches the other."""
    starts = (found.start() for found in pattern.finditer(data))
    return any(before.fullmatch(data, data.rfind(b"\n", 0, start) + 1, start) for start in starts)


def _before(data: bytes, end: int) -> bytes:
    """What stands before something in its statement."""
    start = max(data.rfind(b"\n", 0, end), data.rfind(b";", 0, end), data.rfind(b":", 0, end)) + 1
    return data[start:end]


# What only a configuration of gunicorn says.
_CONFIGURES = frozenset({b"wsgi_app", b"preload_app", b"on_starting", b"when_ready", b"pre_fork"})
# What a server that is started from outside may import before it forks, what answers requests, and what gathers
# handlers for an application that another file makes.
_SERVES = _CONFIGURES | {
    b"celery",
    b"uwsgidecorators",
    b"airflow",
    b"arq",
    b"WorkerSettings",
    b"promptflow",
    b"dramatiq",
}
# Marks of tests that a process is forked for.
_MARK = b"mark"
_FORKED = frozenset({b"forked", b"isolate"})
_ANSWERS = frozenset(
    {
        b"FastAPI", b"APIRouter", b"Flask", b"Blueprint", b"Starlette", b"Quart", b"Sanic", b"aiohttp", b"django",
        b"Litestar", b"litestar", b"grpc", b"gradio", b"dash", b"nicegui", b"streamlit", b"bentoml", b"MethodView",
        b"kserve", b"litserve", b"triton_python_backend_utils", b"torch_handler",
    }
)  # fmt: skip
_ROUTES = frozenset({b"APIRouter", b"Blueprint", b"RouteTableDef", b"Router"})


def names_modules(data: bytes) -> bool:
    """Whether a server's configuration names its application, or its tasks, without importing them, or names none."""
    if any(word in data for word in _CONFIGURES) or b"execute_from_command_line" in data:
        return True
    return b"celery" in data and (b"include" in data or b"autodiscover_tasks" in data)


def may_serve(text: Text) -> bool:
    """Whether a server that is started from outside may import the file before it forks."""
    return not _SERVES.isdisjoint(text.words) or (_MARK in text.words and not _FORKED.isdisjoint(text.words))


def may_answer(text: Text) -> bool:
    """Whether functions of the file may answer requests of a server."""
    return not _ANSWERS.isdisjoint(text.words)


def may_route(text: Text) -> bool:
    """Whether the file may gather handlers for an application that another file makes."""
    return not _ROUTES.isdisjoint(text.words)


# What may do something to the process where it stands, by the word that it is found by.
_ACTS = {
    b"cuda": rb"\bcuda\.\w+\(|(?<=\.)cuda\(|(?<=[\"'])cuda\b|\bcuda\.gpus\b",
    b"cupy": rb"\bcupy\.\w+\(",
    b"cp": rb"\bcp\.\w+\(",
    b"jax": rb"\bjax\.(?:devices|(?:numpy|nn|lax)\.\w+\()",
    b"is_available": rb"(?<=\.)is_available\(",
    b"jnp": rb"\bjnp\.\w+\(",
    b"tf": rb"\btf\.(?:config|constant|Variable|random|keras\.(?:Sequential|Model))\b",
    b"set_start_method": rb"\bset_start_method\(",
    b"environ": rb"\benviron.*(?:CUDA|NVML|XLA|MASTER)",
    b"Accelerator": rb"\bAccelerator\(",
    b"torch_geometric": rb"(?<=\bimport )torch_geometric\b",
    b"cpp_extension": rb"\bcpp_extension\b",
    b"autoinit": rb"\bautoinit\b",
    b"set_default_device": rb"\bset_default_device\(",
    b"set_default_tensor_type": rb"\bset_default_tensor_type\(",
    # How this process pickles what it sends, and what its children begin with.
    b"copyreg": rb"\bcopyreg\.pickle\(",
    b"ForkingPickler": rb"\bForkingPickler\.register\(",
    b"register_at_fork": rb"\bregister_at_fork\(",
}
# Variables are set, which other modules read when they are imported: those that decide what a GPU does, or its own.
_SETS_VARIABLES = re.compile(rb"\benviron(?:\.(?:update|setdefault)\(|\[[^\]\n]+\][ \t]*=(?!=)|[ \t]*\|=)")
# A lock, a queue or a pool of the default context settles the start method.
_SETTLES = {
    name: rb"\b%s\(" % name
    for name in (
        b"Lock", b"RLock", b"Queue", b"JoinableQueue", b"SimpleQueue", b"Event", b"Semaphore", b"BoundedSemaphore",
        b"Condition", b"Barrier", b"Value", b"Array", b"Manager", b"Pool",
    )
}  # fmt: skip
_PATTERNS = {word: re.compile(pattern) for word, pattern in (_ACTS | _SETTLES).items()}
_INDENT = re.compile(rb"[ \t]*")
_NO_STATEMENT = b"#'\")]}"
# Found from its middle, which is rare: a pattern that begins with a name is tried at each word.
_ALIAS = re.compile(rb" as[ \t]+(\w+)")
_LAST_WORD = re.compile(rb"\w+$")


def acts_at_top(text: Text) -> bool:
    """Whether a line that runs at the import of a file may do something to the process, or start another one."""
    looked_for = _ACTS.keys() | _SETTLES.keys() if b"multiprocess" in text.data else _ACTS.keys()
    named, starting = looked_for & text.words, _starting(text)
    patterns = [_PATTERNS[word] for word in sorted(named)]
    called = starting.union(alias for name, alias in _aliases(text.data) if name in named or name in starting)
    patterns.extend(re.compile(rb"\b%s\(" % word) for word in sorted(called))
    if b"environ" in named:
        patterns.append(_SETS_VARIABLES)
    places = (found.start() for pattern in patterns for found in pattern.finditer(text.data))
    return any(_stands_at_top(text.data, place) for place in places)


def _aliases(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names that something is imported as, after its own."""
    for found in _ALIAS.finditer(data):
        before = data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()].split()
        name = _LAST_WORD.search(before[-1]) if before else None
        if name is not None:
            yield name.group(), found[1]


def _starting(text: Text) -> set[bytes]:
    """The words of a file by which it shows that it may start something."""
    known = text.vocabulary.starts
    alone = (known.anywhere | known.used) & text.words
    return alone.union(*(group for group in known.together if group <= text.words))


def _stands_at_top(data: bytes, place: int) -> bool:
    """Whether a line runs when the file is imported, and is no comment, string or end of a bracket."""
    start = data.rfind(b"\n", 0, place) + 1
    indent = _INDENT.match(data, start)
    width = len(indent.group()) if indent is not None else 0
    if data[start + width : start + width + 1] in _NO_STATEMENT:
        return False
    return not width or runs_at_once(data, start, width) is True


def mentions_gpu(text: Text) -> bool:
    """Whether the file mentions a GPU framework, or imports a package that may use a GPU."""
    known = text.vocabulary
    if not known.gpu.isdisjoint(text.words):
        return True
    return any(_is_imported(text.data, name) for name in known.packages & text.words)


def _is_imported(data: bytes, name: bytes) -> bool:
    """Whether a package is imported: its name may be a word that prose and code use as well."""
    pattern = rb"(?:import[ \t]+(?:[\w., \t]*,[ \t]*)?|from[ \t]+)%s\b" % name
    return re.search(pattern, data) is not None


_DEVICE_NAME = re.compile(rb"[\"']cuda")
# A GPU by the name of a constant, or by a parameter that asks for one.
_ASKED = re.compile(
    rb"\bdevice\s*=\s*[\w.]+\.(?:CUDA|GPU)\b|\buse_(?:gpu|cuda)\s*=\s*True\b|\b(?:cuda_device|gpu_id)\s*=\s*\d"
)
_GIVEN = re.compile(rb"(?:\bto\(|\b[dD]evice\w*\s*[=:(,])[\s(]*f?$")
_NEAR = 80


def places_on_gpu(text: Text) -> bool:
    """Whether the file puts something on a GPU or chooses one, be it of a framework that another file imports."""
    data = text.data
    if text.shows(text.vocabulary.asks):
        return True
    if b".cuda(" in data or b"CUDA_VISIBLE_DEVICES" in data:
        return True
    if _ASKED.search(data) is not None:
        return True
    starts = (found.start() for found in _DEVICE_NAME.finditer(data))
    return any(_GIVEN.search(data[max(start - _NEAR, 0) : start]) is not None for start in starts)


_TOP_CALL = re.compile(rb"^(?![ \t]*(?:(?:class|from|import)\b|[#)\]}])|[ \t]+@)[^#\n]*", re.MULTILINE)
# What is defined, in a class or a function, is not called there.
_CALLED = re.compile(
    rb"(?<![\w.])(?<!def )([A-Za-z_]\w*)(?=\(|\s*$)|\.([A-Za-z_]\w*)(?=\(|\s*$)|\b([A-Z]\w*)(?=\.\w+\()"
)
_DEFINED = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_BOUND_AT_TOP = re.compile(rb"^(\w+)[ \t]*(?::[^=\n]+)?=[^=][^\n]*", re.MULTILINE)
_DERIVING = re.compile(rb"^class[ \t]+\w+[ \t]*\(([^)]*)\)", re.MULTILINE)
_BASE = re.compile(rb"(?:^|,)[ \t\n]*(?:\w+\.)*(\w+)[ \t\n]*(?=,|$)")
# A class with a method, or with a class of its own, that Python tells of each class that derives from it.
_HEARS = re.compile(rb"\b__init_subclass__\b|\bmetaclass[ \t]*=[ \t]*(?!(?:\w+\.)*ABCMeta\b)\w")
_KEEPS = re.compile(rb"\]\s*=[^=]|\.(?:append|add|update|setdefault|insert)\(")
_SPAN = 4_000
# How many functions of a registry hand on what is registered before one of them keeps it.
_MOST_HANDED_ON = 3
# A call at the top level may use a GPU, or start something, itself or by what it calls next.
_MOST_CALLED = 2


class TopCalls(Frozen):
    """The names that lines of the top level call, those that they decorate with, and those that classes derive from."""

    called: frozenset[bytes]
    decorating: frozenset[bytes]
    deriving: frozenset[bytes]


def calls_at_top(data: bytes) -> TopCalls:
    """What a file calls when it is imported."""
    called: set[bytes] = set()
    decorating: set[bytes] = set()
    for found in _TOP_CALL.finditer(b"\n".join(run_at_import(data))):
        line = found.group()
        if line.startswith(b"@"):
            decorating.update(_called_in(line))
        elif b"(" in line:
            called.update(_called_in(line))
    aliases = tuple(_aliases(data))
    called.update([name for name, alias in aliases if alias in called])
    decorating.update([name for name, alias in aliases if alias in decorating])
    deriving = {base for bases in _DERIVING.findall(data) for base in _BASE.findall(bases)}
    deriving.update([name for name, alias in aliases if alias in deriving])
    return TopCalls(frozenset(called), frozenset(decorating), frozenset(deriving))


def _called_in(data: bytes) -> Iterator[bytes]:
    return (name for names in _CALLED.findall(data) for name in names if name)


class Definition(Frozen):
    """A function or class of a file by its bytes; ``uses`` is whether calling it may use a GPU or start something.

    ``called`` are the names that it calls, ``keeps`` is whether it keeps something, as a registry does, and ``hears``
    whether code of its own runs for each class that derives from it.
    """

    uses: bool
    keeps: bool
    hears: bool
    called: frozenset[bytes]


class Definitions(Frozen):
    """The functions and classes of a file by name, each looked at once it is asked for.

    ``places`` are the ends of their names, and how far they are indented.
    """

    data: bytes
    vocabulary: Vocabulary
    places: Mapping[bytes, list[tuple[int, int]]]
    _known: dict[bytes, tuple[Definition, ...]] = field(default_factory=dict)

    @staticmethod
    def of(data: bytes, vocabulary: Vocabulary) -> Definitions:
        """Where a file defines what."""
        found: dict[bytes, list[tuple[int, int]]] = {}
        for place in _DEFINED.finditer(data):
            found.setdefault(place[2], []).append((place.end(), len(place[1])))
        return Definitions(data, vocabulary, found)

    def named(self, name: bytes) -> tuple[Definition, ...]:
        """What has this name."""
        if name not in self._known:
            self._known[name] = tuple(self._definition(end, indent) for end, indent in self.places[name])
        return self._known[name]

    def _definition(self, end: int, indent: int) -> Definition:
        body = _body(self.data, end, indent)[:_SPAN]
        text = Text.of(body, self.vocabulary)
        uses = mentions_gpu(text) or text.shows(self.vocabulary.starts)
        keeps, hears = _KEEPS.search(body) is not None, _HEARS.search(body) is not None
        return Definition(uses, keeps, hears, frozenset(_called_in(body)))


def leading_names(text: Text) -> frozenset[bytes]:
    """What a file defines that mentions a launcher, itself or by something else that it defines and calls."""
    # Methods are of objects whose classes are named, by names that others have as well.
    outer = (found for found in _DEFINED.finditer(text.data) if not found[1])
    named = [(found[2], _body(text.data, found.end(), 0)) for found in outer]
    named.extend((found[1], found.group()) for found in _BOUND_AT_TOP.finditer(text.data))
    return _leading(text, named, _mentions_launcher)


def selecting_names(text: Text) -> frozenset[bytes]:
    """What a file defines, methods as well, that selects a GPU, itself or by something else of it that it calls."""
    if not selects_device(text):
        return frozenset()
    named = [(found[2], _body(text.data, found.end(), len(found[1]))) for found in _DEFINED.finditer(text.data)]
    return _leading(text, named, _selects_by_call)


def _leading(text: Text, named: Sequence[tuple[bytes, bytes]], is_meant: Callable[[Text], bool]) -> frozenset[bytes]:
    """The names of bodies that are meant, and of those that call something by such a name."""
    leading = {name for name, body in named if is_meant(Text.of(body, text.vocabulary))}
    called = {name: frozenset(_called_in(body)) for name, body in named if name not in leading} if leading else {}
    while new := {name for name, others in called.items() if name not in leading and not leading.isdisjoint(others)}:
        leading |= new
    return frozenset(leading)


def _selects_by_call(text: Text) -> bool:
    """Whether the text of a function selects a GPU; a common word counts where it is a method that is called."""
    marks = text.vocabulary.selects
    if not marks.anywhere.isdisjoint(text.words) or _FOR_A_BLOCK.search(text.data) is not None:
        return True
    return any(b"." + word + b"(" in text.data for word in marks.used & text.words)


def _mentions_launcher(text: Text) -> bool:
    return text.shows(text.vocabulary.starts) or not text.vocabulary.own.isdisjoint(text.words)


def does_something(defined: Definitions, calls: TopCalls, on_gpu: frozenset[bytes], *, registers: bool) -> bool:
    """Whether a file defines one of these so that calling it may use a GPU or start something.

    ``on_gpu`` are the functions of libraries that use one. A decorator that keeps what it gets, itself or by what it
    calls, counts as well where the file that decorates ``registers`` GPU code, and so does a class that hears of those
    that derive from it.
    """
    for name in defined.places.keys() & (calls.called | calls.decorating):
        if _leads_to_use(defined, name, on_gpu):
            return True
        if registers and name in calls.decorating and _keeps(defined, name):
            return True
    heard_of = defined.places.keys() & calls.deriving if registers else ()
    return any(found.hears for name in heard_of for found in defined.named(name))


def _leads_to_use(defined: Definitions, name: bytes, on_gpu: frozenset[bytes]) -> bool:
    """Whether calling something of a file may use a GPU or start something, itself or by what it calls of the file."""
    return any(
        found.uses or not on_gpu.isdisjoint(found.called) for found in _called_within(defined, name, _MOST_CALLED)
    )


def keeps_what_it_decorates(defined: Definitions, calls: TopCalls) -> bool:
    """Whether a file defines a decorator among these that keeps what it gets."""
    return any(_keeps(defined, name) for name in defined.places.keys() & calls.decorating)


def _keeps(defined: Definitions, name: bytes) -> bool:
    """Whether a function keeps something, or calls one of its file that does: ``register`` that calls ``_register``."""
    return any(found.keeps for found in _called_within(defined, name, _MOST_HANDED_ON))


def _called_within(defined: Definitions, name: bytes, most: int) -> Iterator[Definition]:
    """What has a name in a file, and what that calls of the file: so many calls, one within the other."""
    names = seen = frozenset({name})
    for _ in range(most):
        found = [definition for each in names for definition in defined.named(each)]
        yield from found
        called = frozenset[bytes]().union(*(definition.called for definition in found))
        names = (called & defined.places.keys()) - seen
        seen |= names


def _body(data: bytes, start: int, indent: int) -> bytes:
    """The lines of a definition: those that stand deeper than its first one."""
    return data[start : end_of_body(data, start, indent)]
