"""State of the program itself: its classes, globals, containers, functions."""

from __future__ import annotations

from oracle.inherited import State

_FUNCTOOLS, _OS = "import functools", "import os"

CLASSES = {
    "class_attribute": State(("Cfg.scale = 3",), "Cfg.scale", ("Cfg",), top=("class Cfg:", "    scale = 1")),
    "class_setattr": State(
        ('setattr(Limits, "depth", 3)',), "Limits.depth", ("Limits",), top=("class Limits:", "    depth = 1")
    ),
    "class_method_sets": State(
        ('Mode.use("fast")',),
        "Mode.name",
        ("Mode",),
        top=(
            "class Mode:",
            '    name = "plain"',
            "",
            "    @classmethod",
            "    def use(cls, name):",
            "        cls.name = name",
        ),
    ),
    "class_table": State(
        ('Tables.sizes["a"] = 3',),
        'Tables.sizes.get("a", 1)',
        ("Tables", "sizes"),
        top=("class Tables:", "    sizes = {}"),
    ),
    "class_read_by_instance": State(
        ("Item.weight = 3",), "Item().weight", ("Item",), top=("class Item:", "    weight = 1")
    ),
    "class_derived": State(
        ("Ancestor.rank = 3",),
        "Heir.rank",
        ("Ancestor", "Heir"),
        top=("class Ancestor:", "    rank = 1", "", "", "class Heir(Ancestor):", "    pass"),
    ),
    "singleton": State(
        ("Store.get().size = 3",),
        "Store.get().size",
        ("Store", "instance"),
        top=(
            "class Store:",
            "    instance = None",
            "    size = 1",
            "",
            "    @classmethod",
            "    def get(cls):",
            "        if cls.instance is None:",
            "            cls.instance = cls()",
            "        return cls.instance",
        ),
    ),
    "subclass_registry": State(
        ("class Extra(Plugin):", "    pass", ""),
        '",".join(Plugin.known)',
        ("Plugin", "known"),
        top=(
            "class Plugin:",
            "    known = []",
            "",
            "    def __init_subclass__(cls):",
            "        Plugin.known.append(cls.__name__)",
        ),
    ),
    "method_replaced": State(
        ("Net.forward = forward_fast",),
        "Net().forward()",
        ("Net", "forward"),
        top=(
            "class Net:",
            "    def forward(self):",
            "        return 1",
            "",
            "",
            "def forward_fast(self):",
            "    return 3",
        ),
    ),
}

OBJECTS = {
    "name_deleted": State(
        ("global GONE", "del GONE"),
        "is_gone()",
        ("GONE",),
        top=(
            "GONE = 3",
            "",
            "",
            "def is_gone():",
            "    try:",
            "        return GONE",
            "    except NameError:",
            "        return None",
        ),
    ),
    "instances_alive": State(
        ("kept = Living()",),
        "len(ALIVE)",
        ("ALIVE",),
        ("import weakref",),
        top=(
            "ALIVE = weakref.WeakSet()",
            "",
            "",
            "class Living:",
            "    def __init__(self):",
            "        ALIVE.add(self)",
        ),
    ),
    "options_object": State(
        ("OPTIONS.depth = 3",),
        "OPTIONS.depth",
        ("OPTIONS", "Options"),
        top=("class Options:", "    def __init__(self):", "        self.depth = 1", "", "", "OPTIONS = Options()"),
    ),
    "options_with_class_defaults": State(
        ("FLAGS.level = 3",),
        "FLAGS.level",
        ("FLAGS",),
        top=("class Flags:", "    level = 1", "", "", "FLAGS = Flags()"),
    ),
    "namespace": State(
        (
            "parser = argparse.ArgumentParser()",
            'parser.add_argument("--size", type=int)',
            'parser.parse_args(["--size", "3"], namespace=ARGS)',
        ),
        "ARGS.size",
        ("ARGS",),
        ("import argparse",),
        top=("ARGS = argparse.Namespace(size=1)",),
    ),
    "dict_filled": State(('SIZES["a"] = 3',), 'SIZES.get("a", 1)', ("SIZES",), top=("SIZES = {}",)),
    "dict_updated_by_function": State(
        ("fill(TABLE)",),
        'TABLE.get("a", 1)',
        ("TABLE",),
        top=("TABLE = {}", "", "", "def fill(table):", "    table.update(a=3)"),
    ),
    "dict_nested": State(('TREE["a"]["b"] = 3',), 'TREE["a"]["b"]', ("TREE",), top=('TREE = {"a": {"b": 1}}',)),
    "dict_cleared": State(("DEFAULTS.clear()",), "len(DEFAULTS)", ("DEFAULTS",), top=('DEFAULTS = {"a": 3}',)),
    "list_filled": State(('NAMES.append("a")',), "len(NAMES)", ("NAMES",), top=("NAMES = []",)),
    "list_by_slice": State(("WEIGHTS[:] = [3, 3]",), "sum(WEIGHTS)", ("WEIGHTS",), top=("WEIGHTS = [1]",)),
    "list_by_alias": State(
        ("ALIAS.append(3)",), "len(VALUES)", ("VALUES", "ALIAS"), top=("VALUES = [1]", "ALIAS = VALUES")
    ),
    "list_by_local_name": State(
        ("stages = STAGES", "stages.append(3)"), "len(STAGES)", ("STAGES",), top=("STAGES = [1]",)
    ),
    "counter": State(
        ('COUNTS["a"] += 3',),
        'COUNTS["a"]',
        ("COUNTS",),
        ("import collections",),
        top=("COUNTS = collections.Counter()",),
    ),
    "registered_function": State(
        ("register(forward)",),
        "len(REGISTRY)",
        ("REGISTRY", "register"),
        top=(
            "REGISTRY = {}",
            "",
            "",
            "def register(function):",
            "    REGISTRY[function.__name__] = function",
            "    return function",
            "",
            "",
            "def forward():",
            "    return 3",
        ),
    ),
}

GLOBALS = {
    "global_rebound": State(("global SCALE", "SCALE = 3"), "SCALE", ("SCALE",), top=("SCALE = 1",)),
    "global_augmented": State(("global STEPS", "STEPS += 2"), "STEPS", ("STEPS",), top=("STEPS = 1",)),
    "global_unpacked": State(
        ("global LOW, HIGH", "LOW, HIGH = 2, 3"), "(LOW, HIGH)", ("LOW", "HIGH"), top=("LOW = 0", "HIGH = 1")
    ),
    "global_in_a_loop": State(
        ("global PASSES", "for PASSES in (2, 3):", "    pass"), "PASSES", ("PASSES",), top=("PASSES = 1",)
    ),
    "global_by_globals": State(('globals()["FACTOR"] = 3',), "FACTOR", ("FACTOR", "globals"), top=("FACTOR = 1",)),
    "global_read_deep": State(
        ("global DEPTH", "DEPTH = 3"),
        "look()",
        ("DEPTH",),
        top=("DEPTH = 1", "", "", "def depth():", "    return DEPTH", "", "", "def look():", "    return depth()"),
    ),
    "global_only_in_main": State(("global LATE", "LATE = 3"), "LATE", ("LATE",), top=("LATE: int",)),
}

FUNCTIONS = {
    "function_attribute": State(
        ("convert.factor = 3",),
        'getattr(convert, "factor", 1)',
        ("convert",),
        top=("def convert():", "    return convert.factor"),
    ),
    "function_replaced": State(
        ("global measure", "measure = measure_twice"),
        "measure()",
        ("measure",),
        top=("def measure():", "    return 1", "", "", "def measure_twice():", "    return 2"),
    ),
    "mutable_default": State(
        ('remember("a")',),
        'remember("b")',
        ("remember", "known"),
        top=("def remember(name, known={}):", "    known[name] = True", "    return sorted(known)"),
    ),
    "cache_of_environment": State(
        ("level()", 'os.environ["ORACLE_LEVEL"] = "high"'),
        "level()",
        ("level", "cache"),
        (_FUNCTOOLS, _OS),
        top=("@functools.lru_cache", "def level():", '    return os.environ.get("ORACLE_LEVEL", "low")'),
    ),
    "cache_of_file": State(
        (
            'with open("words.txt", "w") as words:',
            '    words.write("one two three")',
            "count_words()",
            'os.remove("words.txt")',
        ),
        "count_words()",
        ("count_words", "cache"),
        (_FUNCTOOLS, _OS),
        top=(
            "@functools.cache",
            "def count_words():",
            '    if not os.path.exists("words.txt"):',
            "        return 0",
            '    with open("words.txt") as words:',
            "        return len(words.read().split())",
        ),
    ),
    "closure": State(
        ("raise_to(3)",),
        "raise_to(0)",
        ("raise_to", "top of the module", "highest", "lifter"),
        top=(
            "def lifter():",
            "    highest = 1",
            "",
            "    def lift(value):",
            "        nonlocal highest",
            "        highest = max(highest, value)",
            "        return highest",
            "",
            "    return lift",
            "",
            "",
            "raise_to = lifter()",
        ),
    ),
    "iterator": State(
        ("next(TICKETS)",),
        "next(TICKETS)",
        ("TICKETS",),
        ("import itertools",),
        ("TICKETS = itertools.count(1)",),
        once=True,
    ),
    "random_object": State(
        ("RNG.seed(7)",), "RNG.random()", ("RNG",), ("import random",), ("RNG = random.Random(1)",), once=True
    ),
}

HOOKS = {
    "metaclass_asked": State(
        ("len(Sized)",),
        "Measure.asked",
        ("Measure", "asked"),
        top=(
            "class Measure(type):",
            "    asked = 1",
            "",
            "    def __len__(cls):",
            "        Measure.asked = 3",
            "        return 1",
            "",
            "",
            "class Sized(metaclass=Measure):",
            "    pass",
        ),
    ),
    "class_subscripted": State(
        ("Of[3]",),
        "Of.size",
        ("Of", "size"),
        top=(
            "class Of:",
            "    size = 1",
            "",
            "    def __class_getitem__(cls, size):",
            "        Of.size = size",
            "        return cls",
        ),
    ),
    "member_of_enum": State(
        ("Grade.BEST.value.append(3)",),
        "len(Grade.BEST.value)",
        ("Grade", "BEST"),
        ("import enum",),
        top=("class Grade(enum.Enum):", "    BEST = [1]"),
    ),
    "bound_in_comprehension": State(
        ("global LAST", "[LAST := value for value in (1, 3)]"), "LAST", ("LAST",), top=("LAST = 1",)
    ),
    "order_of_a_set": State(
        ('os.environ["ORACLE_ORDER"] = "".join(LETTERS)',),
        'os.environ["ORACLE_ORDER"] == "".join(LETTERS)',
        ("LETTERS", "set"),
        (_OS,),
        top=('LETTERS = {"alpha", "bravo", "delta", "gamma", "omega", "kappa"}',),
    ),
}

HELD = {
    "context_variable": State(
        ("LEVEL.set(3)",),
        "LEVEL.get()",
        ("LEVEL",),
        ("import contextvars",),
        top=('LEVEL = contextvars.ContextVar("level", default=1)',),
    ),
    "thread_local": State(
        ("LOCAL.scale = 3",),
        'getattr(LOCAL, "scale", 1)',
        ("LOCAL",),
        ("import threading",),
        top=("LOCAL = threading.local()",),
    ),
    "open_file": State(
        ("global LOG", 'LOG = open("log.txt", "w")'),
        'LOG is not None and LOG.write("entry")',
        ("LOG",),
        top=("LOG = None",),
    ),
    "temporary_folder": State(
        ('open(os.path.join(FOLDER, "ready"), "w").close()',),
        'os.path.exists(os.path.join(FOLDER, "ready"))',
        ("FOLDER", "mkdtemp", "top of the module"),
        (_OS, "import tempfile"),
        top=("FOLDER = tempfile.mkdtemp(dir=os.getcwd())",),
    ),
    "made_at_import": State(
        ('os.environ["ORACLE_RUN"] = RUN',),
        'os.environ["ORACLE_RUN"] == RUN',
        ("RUN", "uuid", "top of the module"),
        (_OS, "import uuid"),
        top=("RUN = uuid.uuid4().hex",),
    ),
    "environment_read_at_import": State(
        ('os.environ["ORACLE_WIDTH"] = "3"',),
        "WIDTH",
        ("WIDTH", "environ", "ORACLE_WIDTH", "top of the module"),
        (_OS,),
        top=('WIDTH = os.environ.get("ORACLE_WIDTH", "1")',),
    ),
    "hash_of_text": State(
        ('os.environ["ORACLE_HASH"] = str(hash("a"))',),
        'os.environ["ORACLE_HASH"] == str(hash("a"))',
        ("hash",),
        (_OS,),
    ),
}

PROGRAM = CLASSES | OBJECTS | GLOBALS | FUNCTIONS | HOOKS | HELD
