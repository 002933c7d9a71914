"""Methods without a visible caller begin with one instance of their class, and each finds what it would find alone."""

from __future__ import annotations

from cudalint.finding import Finding, Severity
from cudalint.ir.nodes import Module
from cudalint.ir.walk import functions
from cudalint.machine.effects.registry import LibraryEffects
from cudalint.machine.interpreter import EntryOptions, Host, Machine, Purpose, Setting
from cudalint.machine.state import Process, State
from cudalint.models.library import load
from cudalint.project.analysis import Options, analyse
from cudalint.project.assembling import program
from cudalint.project.assumed.instances import Instances
from cudalint.project.entries import candidates
from cudalint.project.pythons import Hosts
from cudalint.project.running import Runner
from cudalint.text.source import SourceFile

HEAD = (
    "import multiprocessing as mp\n\nimport torch\n\n\ndef work(n):\n    return torch.ones(n).cuda().sum().item()\n\n\n"
)
LAUNCH = "        with mp.get_context('fork').Pool(2) as pool:\n            return pool.map(work, items)\n"


def job(constructor: str, *methods: str) -> str:
    """A class whose methods launch workers that use CUDA."""
    bodies = "".join(f"\n    def {name}(self, items):\n{LAUNCH}" for name in methods)
    return f"{HEAD}class Job:\n{constructor}{bodies}"


def found(text: str) -> list[Finding]:
    return list(analyse([SourceFile("a.py", text, text.encode())], Options()).findings)


def steps(text: str) -> dict[str, int]:
    """How many statements each entry ran that is charged to it."""
    files = program([SourceFile("/p/a.py", text, text.encode())], load(), "/p")
    return {ran.label: ran.machine.steps for ran in Runner(files, Hosts(Host())).run(candidates(files))}


TOUCHES = "    def __init__(self, size):\n        self.model = torch.nn.Linear(size, size).cuda()\n"
IN_ANY_CASE = TOUCHES.replace(", size)", ")", 1).replace("size", "8")
CLEAN = "    def __init__(self, size):\n        self.model = torch.nn.Linear(size, size)\n"
# As many statements as no entry of an unknown caller may run.
LONG = "    def __init__(self, size):\n" + "        self.size = size\n" * 4_000 + "        torch.cuda.init()\n"


def test_each_method_says_where_its_own_caller_stands() -> None:
    text = job(TOUCHES, "first", "second")
    findings = found(text)
    assert [one.code for one in findings] == ["CUD101", "CUD101"]
    rows = [text.splitlines().index(f"    def {name}(self, items):") + 1 for name in ("first", "second")]
    assert [one.trace[0].span.start.row for one in findings] == rows
    assert [one.trace[0].message for one in findings] == ["calls __init__()"] * 2


def test_a_constructor_without_arguments_runs_whoever_calls() -> None:
    findings = found(job(IN_ANY_CASE, "first", "second"))
    assert [(one.code, one.severity) for one in findings] == [("CUD101", Severity.ERROR)] * 2


def test_what_is_made_of_the_class_elsewhere_makes_no_difference() -> None:
    assert [one.code for one in found(job(CLEAN, "first", "second"))] == ["CUD102", "CUD102"]
    alone, both = found(job(TOUCHES, "first")), found(job(TOUCHES, "first", "second"))
    assert both[0] == alone[0]


def test_an_instance_is_made_once_with_steps_of_its_own() -> None:
    text = job(LONG, "first", "second")
    assert max(steps(text).values()) < 20
    assert [one.trace[1].message for one in found(text)] == ["torch.cuda.init() initialises CUDA"] * 2


def test_with_its_options_given_an_instance_is_made_once_as_well() -> None:
    """What takes long to make, and starts workers only where it is asked for some, is so found at all."""
    slow = LONG.replace("size):", "size, workers=0):").replace("torch.cuda.init()", "self.workers = workers")
    start = "        if self.workers:\n            torch.cuda.init()\n"
    methods = "".join(
        f"\n    def {name}(self, items):\n{start}    {LAUNCH.replace(chr(10), chr(10) + '    ')}"
        for name in ("first", "second")
    )
    text = f"{HEAD}class Job:\n{slow}{methods}"
    assert max(steps(text).values()) < 20
    assert [(one.code, one.severity) for one in found(text)] == [("CUD102", Severity.WARNING)] * 2


def test_a_constructor_of_too_many_paths_is_followed_on_few() -> None:
    devices = "".join(f"        self.device{n} = 'cuda' if self.options.part{n} else 'cpu'\n" for n in range(3))
    many = (
        f"    def __init__(self, options):\n        self.options = options\n{devices}"
        + "        self.size = 1\n" * 1_500
    )
    text = job(many + "        torch.cuda.init()\n", "first", "second")
    assert max(steps(text).values()) < 50
    assert [one.trace[1].message for one in found(text)] == ["torch.cuda.init() initialises CUDA"] * 2


def test_a_class_whose_instance_takes_too_many_steps_is_not_made_again_with_its_options() -> None:
    endless = LONG.replace("torch.cuda.init()", "\n        ".join(["self.size = size"] * 6_000))
    text = job(endless.replace("size):", "size, workers=0):"), "first")
    files = program([SourceFile("/p/a.py", text, text.encode())], load(), "/p")
    files.begin(1_000_000)
    module = files.module("a")
    assert module is not None
    options = EntryOptions(purpose=Purpose.MAKING)
    machines: list[Machine] = []

    def machine(name: str, few: bool) -> Machine:
        machines.append(Machine(Setting(files, files.library, LibraryEffects(), name, Host(), options)))
        return machines[-1]

    def imported(machine: Machine, module: Module) -> State:
        return machine.run_module(module, module.name, State(Process(), {}))[0]

    instances = Instances(files, machine, imported)
    method = next(one for one in functions(module.body) if one.name == "first")
    made = [instances.of(module, method, takes_options) for takes_options in (False, True)]
    assert [one is not None and one.is_cut for one in made] == [True, True]
    assert len(machines) == 2  # which follow all paths, and few


def test_a_class_that_never_gives_an_instance_has_no_methods_to_call() -> None:
    never = "    def __init__(self, size):\n        raise TypeError('make a part of it')\n"
    assert found(job(never, "first")) == []
