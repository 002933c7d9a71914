"""What an expression gives is followed: ``values.txt`` has expressions that give a device, in one way each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

LINES = (Path(__file__).parent / "values.txt").read_text(encoding="utf-8").splitlines()
VALUES = dict(line.split(" = ", 1) for line in LINES)
HEAD = """\
import abc, asyncio, collections, contextlib, copy, dataclasses, enum, functools, itertools, json
import multiprocessing, operator, os, types, typing

import torch


class Options:
    def __init__(self, device):
        self.device = device


class Special(Options):
    pass


class Shown:
    def __init__(self, device):
        self._device = device

    @property
    def device(self):
        return self._device

    @classmethod
    def make(cls):
        return cls("cuda")

    @staticmethod
    def plain():
        return "cuda"

    def __getitem__(self, name):
        return self._device

    def __call__(self):
        return self._device

    def __getattr__(self, name):
        return self._device

    def __iter__(self):
        yield self._device


class Row(typing.NamedTuple):
    name: str
    device: str


Named = collections.namedtuple("Named", "name, device")


@dataclasses.dataclass
class Record:
    device: str


@dataclasses.dataclass
class Kept:
    device: str = dataclasses.field(default="cuda")


def changed(options, device):
    setattr(options, "device", device)
    return options


def yields(device):
    yield device


def passes(device):
    yield from yields(device)


def outer(device):
    def inner():
        return device

    return inner


def through(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@through
def decorated(device):
    return device


wrapped = through(through(decorated))


@contextlib.contextmanager
def manager(device):
    yield device


class Entered:
    def __init__(self, device):
        self.device = device

    def __enter__(self):
        return self.device

    def __exit__(self, *error):
        return False


def managed(device):
    with manager(device) as given:
        return given


def entered(device):
    with Entered(device) as given:
        return given


def stacked(device):
    with contextlib.ExitStack() as stack:
        return stack.enter_context(Entered(device))


def recovers(device):
    try:
        raise ValueError
    except ValueError:
        return device


def lastly(device):
    found = "meta"
    try:
        pass
    finally:
        found = device
    return found


@functools.singledispatch
def dispatched(device):
    return "meta"


@dispatched.register(str)
def _(device):
    return device


def grown(devices, device):
    devices += [device]
    return devices[1]


def emptied(device):
    found = ["meta"]
    found.clear()
    found.append(device)
    return found[0]


def variable(device):
    os.environ["WHERE"] = device
    return os.environ["WHERE"]


def put(device):
    os.environ.update(WHERE=device)
    return os.environ.get("WHERE")


def overlaid(entries, device):
    entries |= {"device": device}
    return entries["device"]


def without(entries):
    del entries["more"]
    return entries["device"]


def counted(device):
    found = "meta"

    def change():
        nonlocal found
        found = device

    change()
    return found


FOUND = "meta"


def globally(device):
    global FOUND
    FOUND = device
    return FOUND


def nested(device):
    def one():
        def two():
            return device

        return two()

    return one()


class Places:
    first = "cuda"


class Below(Places):
    pass


class Where(enum.Enum):
    GPU = "cuda"
    CPU = "meta"


class Worded(str, enum.Enum):
    GPU = "cuda"


class Sized:
    def __len__(self):
        return 3


class Counting:
    def __init__(self, device):
        self.device = device

    def __iter__(self):
        return self

    def __next__(self):
        return self.device


class Indexed:
    def __init__(self, device):
        self.device = device

    def __getitem__(self, index):
        return self.device


class Keyed:
    def __getitem__(self, name):
        return name

    def __getattr__(self, name):
        return name


class Proxy:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Failed(Exception):
    def __init__(self, device):
        self.device = device


def bound(device):
    read = Options(device).__init__
    method = Indexed(device).__getitem__
    return method(0)


class Made:
    def __new__(cls, device):
        made = super().__new__(cls)
        made.device = device
        return made


class New:
    def __new__(cls, device):
        return Options(device)


class Meta(type):
    def __call__(cls, device):
        made = super().__call__()
        made.device = device
        return made


class Meta_(metaclass=Meta):
    pass


class Descriptor:
    def __get__(self, owner, kind=None):
        return owner._device

    def __set__(self, owner, value):
        owner._device = value


class Described:
    device = Descriptor()

    def __init__(self, device):
        self.device = device


class Cached:
    def __init__(self, device):
        self._device = device

    @functools.cached_property
    def device(self):
        return self._device


def cached(device):
    one = Cached(device)
    one.device
    return one.device


class Slots:
    __slots__ = ("device",)

    def __init__(self, device):
        self.device = device


class Abstract(abc.ABC):
    @abc.abstractmethod
    def __init__(self, device): ...


class Concrete(Abstract):
    def __init__(self, device):
        self.device = device


class Upper(Options):
    def __init__(self, device):
        super().__init__(device)


class Left(Options):
    pass


class Right(Options):
    pass


class Both(Left, Right):
    pass


async def awaited(device):
    return device


def unpacked(both):
    _, device = both
    return device


def starred(all):
    _, *_, device = all
    return device


def looped(all):
    for device in all:
        if device == "meta":
            continue
        break
    else:
        return "meta"
    return device


def while_it_lasts(device):
    n = 0
    while n < 3:
        n += 1
    return device if n == 3 else "meta"


"""
ENTRY = """
def test_{n}():
    torch.cuda.init()
    where = {value}
    multiprocessing.get_context("fork").Process(target=work, args=(where,)).start()  # {n}

"""
WORK = """
def work(where):
    return torch.ones(1, device=where).sum().item()

"""


@cache
def found(device: str) -> dict[str, list[tuple[str, str]]]:
    """What is found of each value in one program, with another device in the place of ``cuda``."""
    given = {name: value.replace('"cuda"', f'"{device}"') for name, value in VALUES.items()}
    entries = (ENTRY.format(n=n, value=value) for n, value in enumerate(given.values()))
    text = HEAD + WORK + "".join(entries)
    rows = text.splitlines()
    told: dict[str, list[tuple[str, str]]] = {name: [] for name in VALUES}
    for one in analyse([SourceFile("/p/test_values.py", text, text.encode())], Options()).findings:
        name = list(VALUES)[int(rows[one.span.start.row - 1].rpartition("# ")[2])]
        told[name].append((one.code, one.severity.value))
    return told


@pytest.mark.parametrize("name", VALUES)
def test_a_device_is_followed(name: str) -> None:
    assert found("cuda")[name] == [("CUD101", "error")]


@pytest.mark.parametrize("name", [name for name in VALUES if '"cuda"' in VALUES[name]])
def test_another_device_is_followed_as_well(name: str) -> None:
    assert found("cpu")[name] == []
