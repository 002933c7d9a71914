"""State of other modules: a second file of the project, the standard library, builtins."""

from __future__ import annotations

from oracle.inherited import State

SETTINGS = "import settings"

_OWN = {
    "module_attribute": State(
        ("settings.SCALE = 3",), "settings.SCALE", ("settings.SCALE", "SCALE"), (SETTINGS,), settings=("SCALE = 1",)
    ),
    "module_new_attribute": State(
        ("settings.EXTRA = 3",),
        'getattr(settings, "EXTRA", 1)',
        ("EXTRA",),
        (SETTINGS,),
        settings=('__all__ = ["EXTRA"]',),
    ),
    "module_setattr": State(
        ('setattr(settings, "DEPTH", 3)',), "settings.DEPTH", ("DEPTH",), (SETTINGS,), settings=("DEPTH = 1",)
    ),
    "module_by_its_dict": State(
        ('vars(settings)["WIDTH"] = 3',), "settings.WIDTH", ("WIDTH", "vars"), (SETTINGS,), settings=("WIDTH = 1",)
    ),
    "module_by_importlib": State(
        ('importlib.import_module("settings").HEIGHT = 3',),
        "settings.HEIGHT",
        ("HEIGHT",),
        (SETTINGS, "import importlib"),
        settings=("HEIGHT = 1",),
    ),
    "module_by_sys_modules": State(
        ('sys.modules["settings"].LENGTH = 3',),
        "settings.LENGTH",
        ("LENGTH", "sys.modules"),
        (SETTINGS, "import sys"),
        settings=("LENGTH = 1",),
    ),
    "module_configured": State(
        ("settings.configure(3)",),
        "settings.LEVEL",
        ("LEVEL", "configure"),
        (SETTINGS,),
        settings=("LEVEL = 1", "", "", "def configure(level):", "    global LEVEL", "    LEVEL = level"),
    ),
    "module_class": State(
        ("settings.Options.rate = 3",),
        "settings.Options.rate",
        ("Options",),
        (SETTINGS,),
        settings=("class Options:", "    rate = 1"),
    ),
    "module_object": State(
        ("settings.limits.most = 3",),
        "settings.limits.most",
        ("limits", "Limits"),
        (SETTINGS,),
        settings=("class Limits:", "    most = 1", "", "", "limits = Limits()"),
    ),
    "module_table": State(
        ('settings.TABLE["a"] = 3',), 'settings.TABLE.get("a", 1)', ("TABLE",), (SETTINGS,), settings=("TABLE = {}",)
    ),
    "module_table_by_name": State(
        ('SIZES_OF["a"] = 3',),
        'SIZES_OF.get("a", 1)',
        ("SIZES_OF",),
        ("from settings import SIZES_OF",),
        settings=("SIZES_OF = {}",),
    ),
    "module_read_by_function": State(
        ("settings.MARGIN = 3",),
        "settings.margin()",
        ("MARGIN",),
        (SETTINGS,),
        settings=("MARGIN = 1", "", "", "def margin():", "    return MARGIN"),
    ),
    "module_function_replaced": State(
        ("settings.convert = str",),
        "type(settings.convert(2)).__name__",
        ("settings.convert", "convert"),
        (SETTINGS,),
        settings=("def convert(value):", "    return value"),
    ),
    "module_patched": State(
        ('patch.object(settings, "STEPS", 3).start()',),
        "settings.STEPS",
        ("STEPS", "patch"),
        (SETTINGS, "from unittest.mock import patch"),
        settings=("STEPS = 1",),
    ),
    "module_patched_around": State(
        (),
        "settings.ROUNDS",
        ("ROUNDS", "patch"),
        (SETTINGS, "from unittest.mock import patch"),
        settings=("ROUNDS = 1",),
        around='with patch.object(settings, "ROUNDS", 3):',
    ),
    "module_made_at_import": State(
        ('os.environ["ORACLE_STARTED"] = settings.STARTED',),
        'os.environ["ORACLE_STARTED"] == settings.STARTED',
        ("STARTED", "uuid", "top of"),
        (SETTINGS, "import os"),
        settings=("import uuid", "STARTED = uuid.uuid4().hex"),
    ),
    "module_read_at_import": State(
        ('os.environ["ORACLE_DEBUG"] = "yes"',),
        "settings.DEBUG",
        ("DEBUG", "environ", "top of"),
        (SETTINGS, "import os"),
        settings=("import os", 'DEBUG = os.environ.get("ORACLE_DEBUG", "no")'),
    ),
}

_STANDARD = {
    "stdlib_attribute": State(
        ("math.ANSWER = 3",), 'getattr(math, "ANSWER", 1)', ("math.ANSWER", "ANSWER"), ("import math",)
    ),
    "stdlib_attribute_changed": State(("math.tau = 3",), "math.tau", ("math.tau", "tau"), ("import math",)),
    "stdlib_function_replaced": State(
        ("textwrap.dedent = str.upper",), 'textwrap.dedent("a")', ("textwrap.dedent", "dedent"), ("import textwrap",)
    ),
    "stdlib_table": State(
        ('shutil.register_archive_format("oracle", print)',),
        '"oracle" in dict(shutil.get_archive_formats())',
        ("register_archive_format",),
        ("import shutil",),
    ),
    "builtins_attribute": State(
        ("builtins.LIMIT = 3",), 'getattr(builtins, "LIMIT", 1)', ("builtins.LIMIT", "LIMIT"), ("import builtins",)
    ),
    "builtins_function_replaced": State(
        ("builtins.ascii = len",), 'ascii("abcd")', ("builtins.ascii", "ascii"), ("import builtins",)
    ),
    "module_registered": State(
        ('sys.modules["extra_module"] = types.ModuleType("extra_module")',),
        '"extra_module" in sys.modules',
        ("sys.modules", "extra_module"),
        ("import sys", "import types"),
    ),
}

MODULES = _OWN | _STANDARD
