"""What a fresh process has as well, and what it does once more when it imports the program."""

from __future__ import annotations

from oracle.inherited import State
from oracle.inherited_module import SETTINGS

_OS = "import os"

NOTHING = {
    "nothing": State(provable=True),
    "constant": State(read="SIZE", top=("SIZE = 3",), provable=True),
    "constant_table": State(read='GRID["a"][0]', top=('GRID = {"a": [3]}',), provable=True),
    "constant_class": State(read="Fixed.scale", top=("class Fixed:", "    scale = 3"), provable=True),
    "constant_object": State(
        read="Frozen().depth",
        top=("class Frozen:", "    def __init__(self):", "        self.depth = 3"),
        provable=True,
    ),
    "constant_default": State(read="scaled()", top=("def scaled(by=3):", "    return by"), provable=True),
    "module_constant": State(read="settings.CONSTANT", imports=(SETTINGS,), settings=("CONSTANT = 3",), provable=True),
    "module_constant_class": State(
        read="settings.Shape.width", imports=(SETTINGS,), settings=("class Shape:", "    width = 3"), provable=True
    ),
    "environment": State(
        ('os.environ["ORACLE_SCALE"] = "3"',), 'os.environ["ORACLE_SCALE"]', imports=(_OS,), handed=True
    ),
    "enumeration": State(
        read="Colour.RED.value",
        imports=("import enum",),
        top=("class Colour(enum.Enum):", "    RED = 3"),
        provable=True,
    ),
    # What the parent sets and no worker feels.
    "seeds_of_the_parent": State(
        ("random.seed(3)", "torch.manual_seed(3)", "torch.cuda.manual_seed_all(3)", "random.random()"),
        "3",
        imports=("import random", "import torch"),
    ),
    "seed_of_its_own": State(
        ("random.seed(5)", "random.random()"),
        "drawn_anew()",
        imports=("import random",),
        top=("def drawn_anew():", "    random.seed(3)", "    return random.random()"),
    ),
    "messages_of_the_parent": State(
        ("PARENT.setLevel(logging.INFO)", "PARENT.addHandler(logging.StreamHandler())", 'PARENT.info("begins")'),
        "3",
        imports=("import logging",),
        top=('PARENT = logging.getLogger("parent")',),
    ),
    "cudnn_of_the_parent": State(
        ("torch.backends.cudnn.benchmark = False", "torch.backends.cudnn.deterministic = True"),
        "3",
        imports=("import torch",),
    ),
    "device_at_hand": State(
        ('print("on the GPU" if torch.cuda.device_count() > 0 else "on the CPU")',),
        "DEVICE.type",
        imports=("import torch",),
        top=('DEVICE = torch.device("cuda" if torch.cuda.device_count() else "cpu")',),
        marks=("on the",),
    ),
    "pure_cache": State(
        ("doubled(3)",),
        "doubled(3)",
        imports=("import functools",),
        top=("@functools.lru_cache", "def doubled(value):", "    return value * 2"),
    ),
    "read_by_main_only": State(
        ("Shown.width = 3", "print(Shown.width)"), "1", top=("class Shown:", "    width = 1"), provable=True
    ),
    "changed_after": State(
        read="Later.scale", top=("class Later:", "    scale = 1"), finish=("Later.scale = 3",), provable=True
    ),
    "set_to_what_it_was": State(("Same.scale = 1",), "Same.scale", top=("class Same:", "    scale = 1"), provable=True),
    "local_of_the_same_name": State(
        ("show()",),
        "LOCAL_SIZE",
        top=("LOCAL_SIZE = 1", "", "", "def show():", "    LOCAL_SIZE = 3", "    print(LOCAL_SIZE)"),
        provable=True,
    ),
    # It is read by being set, which a later task finds.
    "file_mask": State(("os.umask(0o077)",), "os.umask(0o077)", imports=(_OS,), once=True, handed=True),
    "module_path": State(
        ('sys.path.append("/oracle")',), '"/oracle" in sys.path', imports=("import sys",), handed=True
    ),
    "working_folder": State(
        ('os.mkdir("below")', 'os.chdir("below")'),
        "os.path.basename(os.getcwd())",
        imports=(_OS,),
        finish=('os.chdir("..")',),
        handed=True,
    ),
    "arguments": State(('sys.argv.append("extra")',), "sys.argv[1:]", imports=("import sys",)),
}

_AGAIN = ("top of", "repeat")

REPEATED = {
    "environment_grows": State(
        read='os.environ["ORACLE_TRACE"]',
        words=("ORACLE_TRACE", "os.environ"),
        imports=(_OS,),
        top=('os.environ["ORACLE_TRACE"] = os.environ.get("ORACLE_TRACE", "") + "x"',),
    ),
    "arguments_grow": State(
        read="len(sys.argv)", words=("sys.argv",), imports=("import sys",), top=('sys.argv.append("extra")',)
    ),
    "path_grows": State(
        read="len(sys.path)",
        words=("sys.path",),
        imports=("import sys",),
        top=('sys.path.append("oracle")', 'sys.path.append("next")', 'sys.path.remove("next")'),
    ),
    "program_prints": State(words=_AGAIN, top=('print("loading the program")',), marks=("loading the program",)),
    "program_writes": State(
        words=_AGAIN,
        imports=(_OS,),
        top=(
            'LOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loads.txt")',
            'with open(LOADS, "a") as loads:',
            '    loads.write("x")',
        ),
        finish=("with open(LOADS) as loads:", '    print("loads", len(loads.read()))'),
        marks=("loads",),
    ),
    "program_makes_folder": State(
        words=_AGAIN,
        imports=("import tempfile", _OS),
        top=('SCRATCH = tempfile.mkdtemp(prefix="scratch", dir=os.getcwd())',),
        finish=('print("folders", sum(name.startswith("scratch") for name in os.listdir()))',),
        marks=("folders",),
    ),
    "settings_print": State(
        words=_AGAIN,
        imports=(SETTINGS,),
        read="settings.QUIET",
        settings=("QUIET = False", 'print("loading settings")'),
        marks=("loading settings",),
    ),
    "settings_write": State(
        words=_AGAIN,
        imports=(SETTINGS,),
        read="len(settings.PATH) > 0",
        settings=(
            "import os",
            "",
            'PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "starts.txt")',
            "with open(PATH, 'a') as starts:",
            '    starts.write("x")',
        ),
        finish=("with open(settings.PATH) as starts:", '    print("starts", len(starts.read()))'),
        marks=("starts",),
    ),
    "settings_print_by_function": State(
        words=_AGAIN,
        imports=(SETTINGS,),
        read="settings.READY",
        settings=("def get_ready():", '    print("getting ready")', "    return True", "", "", "READY = get_ready()"),
        marks=("getting ready",),
    ),
}
