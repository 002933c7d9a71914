"""State of the process that the standard library keeps: settings that a fresh interpreter does not have.

``random.seed()`` is none of them: Python seeds again in every child that it forks.
"""

from __future__ import annotations

from oracle.inherited import State

_LOGGING, _SYS = "import logging", "import sys"

_LOUD = (
    "def is_loud():",
    "    try:",
    '        warnings.warn("old", UserWarning)',
    "    except UserWarning:",
    "        return True",
    "    return False",
)

_ITSELF = "is another one in a fresh process"

PROCESS = {
    "logger_level_by_its_attribute": State(
        ("SPEAKER.setLevel(logging.DEBUG)",),
        "SPEAKER.level",
        ("setLevel", "SPEAKER"),
        ("import logging",),
        top=('SPEAKER = logging.getLogger("speaker")',),
    ),
    "root_handlers": State(
        ("logging.basicConfig()",), "len(logging.root.handlers)", ("basicConfig",), ("import logging",)
    ),
    "cudnn_by_its_name": State(
        ("torch.backends.cudnn.deterministic = True",),
        'getattr(torch.backends.cudnn, "deterministic")',
        ("cudnn.deterministic",),
        ("import torch",),
    ),
    "modules_loaded": State(
        ("import colorsys",), '"colorsys" in sys.modules', ("sys.modules", "import of `colorsys`"), ("import sys",)
    ),
    "name_of_a_class": State(read="str(Named)", words=(_ITSELF,), top=("class Named:", "    pass")),
    "module_of_a_class": State(read="Homely.__module__", words=(_ITSELF,), top=("class Homely:", "    pass")),
    "handled_error": State(
        (),
        "sys.exc_info()[0] is None",
        ("exception that is handled",),
        (_SYS,),
        lead=("try:", "    raise LookupError"),
        around="except LookupError:",
    ),
    "handled_error_as_context": State(
        (),
        "repr(failed().__context__)",
        ("exception that is handled",),
        lead=("try:", "    raise LookupError"),
        around="except LookupError:",
        top=(
            "def failed():",
            "    try:",
            '        raise KeyError("here")',
            "    except KeyError as error:",
            "        return error",
        ),
    ),
    "time_zone": State(
        ('os.environ["TZ"] = "Asia/Tokyo"',),
        'time.strftime("%H", time.localtime(0))',
        ("TZ",),
        ("import os", "import time"),
    ),
    "checks_left_out": State(
        ('os.environ["PYTHONOPTIMIZE"] = "1"',),
        "checks()",
        ("PYTHONOPTIMIZE",),
        ("import os",),
        top=(
            "def checks():",
            "    try:",
            "        assert not True",
            "    except AssertionError:",
            "        return True",
            "    return False",
        ),
    ),
    "mapped_memory": State(
        ("MAPPED[0] = 7",), "MAPPED[0]", ("MAPPED",), ("import mmap",), top=("MAPPED = mmap.mmap(-1, 16)",)
    ),
    "decimal_precision": State(
        ("decimal.getcontext().prec = 5",),
        "decimal.Decimal(1) / 3",
        ("decimal", "getcontext", "prec"),
        ("import decimal",),
    ),
    "decimal_context_around": State(
        (),
        "decimal.Decimal(1) / 3",
        ("decimal", "localcontext"),
        ("import decimal",),
        around="with decimal.localcontext(decimal.Context(prec=5)):",
    ),
    "warnings_error": State(
        ('warnings.simplefilter("error")',), "is_loud()", ("warnings", "simplefilter"), ("import warnings",), top=_LOUD
    ),
    "warnings_filter": State(
        ('warnings.filterwarnings("error", category=FutureWarning)',),
        'any(found[::2][:2] == ("error", FutureWarning) for found in warnings.filters)',
        ("warnings", "filterwarnings"),
        ("import warnings",),
    ),
    "locale": State(
        ('locale.setlocale(locale.LC_ALL, "C.UTF-8")',),
        "locale.setlocale(locale.LC_NUMERIC)",
        ("locale",),
        ("import locale",),
    ),
    "logging_level": State(
        ("logging.getLogger().setLevel(logging.DEBUG)",),
        'logging.getLogger("job").isEnabledFor(logging.DEBUG)',
        ("logging", "setLevel"),
        (_LOGGING,),
    ),
    "logging_basic": State(
        ("logging.basicConfig(level=logging.INFO)",),
        "logging.getLogger().level",
        ("logging", "basicConfig"),
        (_LOGGING,),
    ),
    "logging_handler": State(
        ('logging.getLogger("job").addHandler(logging.NullHandler())',),
        'len(logging.getLogger("job").handlers)',
        ("logging", "addHandler"),
        (_LOGGING,),
    ),
    "logging_of_the_module": State(
        ("LOGGER.setLevel(logging.DEBUG)",),
        "LOGGER.level",
        ("LOGGER", "logging", "setLevel"),
        (_LOGGING,),
        top=('LOGGER = logging.getLogger("worker")',),
    ),
    "logging_disabled": State(
        ("logging.disable(logging.ERROR)",), "logging.root.manager.disable", ("logging", "disable"), (_LOGGING,)
    ),
    "stdout_replaced": State(
        ("sys.stdout = Marked(sys.stdout)",),
        "type(sys.stdout).__name__",
        ("sys.stdout", "stdout"),
        (_SYS,),
        top=(
            "class Marked:",
            "    def __init__(self, stream):",
            "        self.stream = stream",
            "",
            "    def write(self, text):",
            '        return self.stream.write(text.replace("total", "sum"))',
            "",
            "    def flush(self):",
            "        self.stream.flush()",
        ),
    ),
    "stderr_redirected_around": State(
        (),
        "type(sys.stderr).__name__",
        ("redirect_stderr", "stderr"),
        ("import contextlib", "import io", _SYS),
        around="with contextlib.redirect_stderr(io.StringIO()):",
    ),
    "recursion_limit": State(
        ("sys.setrecursionlimit(5000)",), "sys.getrecursionlimit()", ("setrecursionlimit", "recursion"), (_SYS,)
    ),
    "switch_interval": State(
        ("sys.setswitchinterval(0.5)",), "sys.getswitchinterval()", ("setswitchinterval",), (_SYS,)
    ),
    "excepthook": State(("sys.excepthook = print",), "sys.excepthook is print", ("excepthook",), (_SYS,)),
    "signal_handler": State(
        ("signal.signal(signal.SIGUSR1, on_signal)",),
        "signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL",
        ("signal",),
        ("import signal",),
        top=("def on_signal(number, frame):", "    return None"),
    ),
    "garbage_collector": State(("gc.disable()",), "gc.isenabled()", ("gc.disable", "gc"), ("import gc",)),
    "socket_timeout": State(
        ("socket.setdefaulttimeout(5)",),
        "socket.getdefaulttimeout()",
        ("setdefaulttimeout", "socket"),
        ("import socket",),
    ),
    "temporary_folder_chosen": State(
        ('tempfile.tempdir = "here"',), "tempfile.tempdir", ("tempfile", "tempdir"), ("import tempfile",)
    ),
    "csv_limit": State(
        ("csv.field_size_limit(99)",), "csv.field_size_limit()", ("field_size_limit", "csv"), ("import csv",)
    ),
    "csv_dialect": State(
        ('csv.register_dialect("wide", delimiter="|")',),
        '"wide" in csv.list_dialects()',
        ("register_dialect", "csv"),
        ("import csv",),
    ),
    "copyreg": State(
        ("copyreg.pickle(Point, reduce_point)",),
        "Point in copyreg.dispatch_table",
        ("copyreg",),
        ("import copyreg",),
        top=(
            "class Point:",
            "    def __init__(self, x):",
            "        self.x = x",
            "",
            "",
            "def reduce_point(point):",
            "    return Point, (point.x,)",
        ),
    ),
    "mime_types": State(
        ('mimetypes.add_type("model/oracle", ".oracle")',),
        'mimetypes.guess_type("a.oracle")[0]',
        ("mimetypes", "add_type"),
        ("import mimetypes",),
    ),
    "fault_handler": State(
        ('faulthandler.enable(open("faults.txt", "w"))',),
        "faulthandler.is_enabled()",
        ("faulthandler",),
        ("import faulthandler",),
    ),
}
