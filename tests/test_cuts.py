"""Where a bound ends a path, nothing is said of what comes after it, and nothing for certain by its absence."""

from __future__ import annotations

import sys
from textwrap import indent
from typing import Any

import pytest

from cudalint.finding import Finding, Severity
from cudalint.machine.interpreter import Machine, entry
from cudalint.machine.interpreter.callbacks import MOST_CALLBACK_STEPS, MOST_CALLBACKS
from cudalint.machine.launch import workers
from cudalint.machine.outcome import Doubt
from cudalint.machine.state import State
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.project.assumed import calls
from cudalint.text.source import SourceFile

# What a bound does where it is met does not depend on how far off it is; test_large_project.py meets the real one.
MOST_STEPS = 2_000
HEAD = (
    "import os\n\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"
    "from torch.utils.data import DataLoader, Dataset\n\n\n"
)
# Each call calls the next three times, with other arguments each time: 3 ** 9 calls, of which each changes the process.
LONG = "".join(
    f"def step{i}(x):\n    step{i + 1}(3 * x)\n    step{i + 1}(3 * x + 1)\n    step{i + 1}(3 * x + 2)\n\n\n"
    for i in range(9)
)
LONG += "def step9(x):\n    os.environ['STEP'] = str(x)\n\n\ndef long():\n    step0(0)\n\n\n"
# Sixty calls, each inside the one before; what the innermost does is not seen.
DEEP = "".join(f"def deep{i}(action):\n    deep{i + 1}(action)\n\n\n" for i in range(60))
DEEP += "def deep60(action):\n    action()\n\n\n"
WORK = "def work(n):\n    return torch.ones(n, device='cuda')\n\n\n"

# What averts a failure, and the program around it: CUDA before the launch, the launch, work on the GPU.
SPAWN = (
    "def averting():\n    mp.set_start_method('spawn')\n\n\n",
    "torch.zeros(1, device='cuda')",
    "mp.Pool(2).map(work, [1])",
)
JOIN = "dist.init_process_group('nccl')"
DEVICE = "def averting():\n    torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n\n\n"
REDUCE = "dist.all_reduce(torch.ones(1, device='cuda'))"
CASES = {
    "start method": SPAWN,
    "device before a collective": (DEVICE, JOIN, REDUCE),
    "device before a barrier": (DEVICE, JOIN, "dist.barrier()"),
    "device at the end": (DEVICE, JOIN, "pass"),
    "rendezvous": (
        "def averting():\n    os.environ['MASTER_ADDR'] = 'localhost'\n    os.environ['MASTER_PORT'] = '29500'\n\n\n",
        "pass",
        "mp.spawn(joins, nprocs=2)",
    ),
    "visible devices": (
        "def averting():\n    global visible\n    visible = None\n\n\n",
        "visible = '1'; torch.cuda.is_available()",
        "visible and os.environ.__setitem__('CUDA_VISIBLE_DEVICES', visible)",
    ),
}
JOINS = "def joins(rank):\n    dist.init_process_group('nccl', rank=rank, world_size=2)\n\n\n"


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "MOST_STEPS", MOST_STEPS)
    monkeypatch.setattr(entry, "MOST_PREPARED_STEPS", 3 * MOST_STEPS)


def program(first: str, last: str, between: str) -> str:
    body = "\n    ".join([first, between, last])
    main = f"def main():\n    {body}\n\n\nif __name__ == '__main__':\n    main()\n"
    return f"{HEAD}{LONG}{DEEP}{WORK}{JOINS}{{averting}}{main}"


def checked(text: str) -> Analysis:
    return analyse([SourceFile("program.py", text, text.encode())], Options())


def errors(found: Analysis) -> list[Finding]:
    return [f for f in found.findings if f.severity is Severity.ERROR]


@pytest.mark.parametrize("case", CASES)
def test_after_the_steps_are_used_up_nothing_is_reported(case: str) -> None:
    averting, first, last = CASES[case]
    text = program(first, last, "long()\n    averting()").replace("{averting}", averting)
    found = checked(text)
    assert found.findings == ()
    assert [note for note in found.notes if f"more than {MOST_STEPS} steps" in note]


@pytest.mark.parametrize("case", CASES)
def test_what_a_call_too_deep_may_have_averted_is_no_error(case: str) -> None:
    averting, first, last = CASES[case]
    text = program(first, last, "deep0(averting)").replace("{averting}", averting)
    found = checked(text)
    assert errors(found) == []
    assert [note for note in found.notes if "calls nested too deeply" in note]


# How a function calls the next one: within much else, each in its own way. Of some a few are enough.
FEW = {"signs": 6, "arguments": 12, "alternatives": 6, "tests": 6}
NESTED = {
    "signs": f"    return {'-' * 1_900}nested{{next}}(x)\n",
    "arguments": f"    return {'id(' * 150}nested{{next}}(x){')' * 150}\n",
    "alternatives": f"    return {'1 if x == 0 else ' * 200}nested{{next}}(x)\n",
    "blocks": "".join(f"{' ' * (4 + i)}if x:\n" for i in range(80)) + f"{' ' * 84}nested{{next}}(x)\n",
    "tests": f"    if {'x and (y or ' * 90}nested{{next}}(x){')' * 90}:\n        pass\n",
}


@pytest.mark.parametrize("way", NESTED)
def test_calls_within_much_else_are_cut_before_there_is_no_room(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "MOST_STEPS", 6 * MOST_STEPS)
    form, count = NESTED[way], FEW.get(way, 35)
    calls = "".join(f"def nested{i}(x, y=None):\n{form.replace('{next}', str(i + 1))}\n\n" for i in range(count))
    _, first, last = SPAWN
    calls += f"def nested{count}(x, y=None):\n    {last}\n\n\n"
    found = checked(f"{HEAD}{WORK}{calls}def main(x):\n    {first}\n    nested0(x)\n\n\nmain(input())\n")
    # Python 3.12 bounds calls from C as well: there the file may be said to be nested too deeply.
    said = {"CUD901"} if sys.version_info[:2] == (3, 12) else set()
    assert {finding.code for finding in errors(found)} <= said
    assert [note for note in found.notes if "calls nested too deeply" in note]


@pytest.mark.parametrize(("case", "code"), [("start method", "CUD101"), ("device before a collective", "CUD502")])
def test_without_a_cut_it_is_an_error(case: str, code: str) -> None:
    averting, first, last = CASES[case]
    text = program(first, last, "pass").replace("{averting}", averting)
    assert [f.code for f in errors(checked(text))] == [code]
    averted = program("averting()", "; ".join([first, last]), "pass").replace("{averting}", averting)
    assert errors(checked(averted)) == []


def test_ranks_may_choose_their_device_in_what_was_left_out() -> None:
    rank = (
        "def selecting(rank):\n    def averting():\n        torch.cuda.set_device(rank)\n\n"
        "    {way}(averting)\n    print(torch.zeros(1).cuda())\n\n\n"
        "def same(averting):\n    pass\n\n\n"
        "if __name__ == '__main__':\n    mp.spawn(selecting, nprocs=4)\n"
    )
    deep, without = (checked(HEAD + DEEP + rank.replace("{way}", way)) for way in ("deep0", "same"))
    assert [note for note in deep.notes if "calls nested too deeply" in note]
    assert deep.findings == ()
    assert [f.code for f in without.findings] == ["CUD201"]


def test_ranks_that_choose_on_some_paths_may_choose_on_others_in_what_was_left_out() -> None:
    ranks = (
        "def selecting(rank):\n    def averting():\n        torch.cuda.set_device(rank)\n\n"
        "    if torch.rand(1):\n        averting()\n    else:\n        {way}(averting)\n"
        "        print(torch.zeros(1).cuda())\n\n\n"
        "def same(averting):\n    pass\n\n\n"
        "if __name__ == '__main__':\n    mp.spawn(selecting, nprocs=4)\n"
    )
    deep, without = (checked(HEAD + DEEP + ranks.replace("{way}", way)) for way in ("deep0", "same"))
    assert [note for note in deep.notes if "calls nested too deeply" in note]
    assert deep.findings == ()
    assert [f.code for f in without.findings] == ["CUD201"]


def test_what_was_found_before_the_cut_stays() -> None:
    _, first, _ = SPAWN
    text = program(first, "mp.Process(target=work, args=(1,)).start()", "pass").replace("{averting}", "")
    found = checked(text.replace("    main()", "    main()\n    long()"))
    assert [(f.code, f.severity) for f in found.findings] == [("CUD101", Severity.ERROR)]
    assert [note for note in found.notes if f"more than {MOST_STEPS} steps" in note]


def test_another_path_that_a_cut_hides_may_take_it_back() -> None:
    # On the path that is seen the device is chosen late; on the other, which the cut hides, it was chosen first.
    text = (
        HEAD
        + LONG
        + (
            "def main(early):\n    if not early:\n        dist.init_process_group('nccl')\n        dist.barrier()\n"
            "    else:\n        long()\n        torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n\n\n"
            "if __name__ == '__main__':\n    import options\n\n    main(options.early)\n"
        )
    )
    assert errors(checked(text)) == []


def test_a_worker_that_is_cut_ends_nothing_for_its_parent() -> None:
    text = (
        HEAD
        + LONG
        + (
            "def produce(queue):\n    long()\n    queue.put(torch.ones(1, device='cuda'))\n\n\n"
            "if __name__ == '__main__':\n    queue = mp.get_context('spawn').Queue()\n"
            "    process = mp.get_context('spawn').Process(target=produce, args=(queue,))\n    process.start()\n"
            "    process.join()\n    torch.zeros(1, device='cuda')\n"
            "    mp.get_context('fork').Pool(1).map(torch.cuda.init, [1])\n"
        )
    )
    found = checked(text)
    assert found.findings == ()
    assert [note for note in found.notes if "cut off" in note]


def test_imports_that_are_cut_leave_the_program_and_its_doubts() -> None:
    texts = {
        "heavy.py": HEAD + LONG + "long()\n" * 4 + "mp.set_start_method('spawn')\n",
        "main.py": "import heavy\n\n"
        + HEAD
        + WORK
        + "if __name__ == '__main__':\n    torch.zeros(1, device='cuda')\n    mp.Pool(2).map(work, [1])\n",
    }
    given = [SourceFile(path, text, text.encode()) for path, text in texts.items()]
    found = analyse(given, Options())
    assert [(f.code, f.severity) for f in found.findings] == [("CUD102", Severity.WARNING)]
    assert found.findings[0].message.endswith(f" may fork after CUDA was used: {Doubt.CUT.value}")
    assert any("steps in an import" in note for note in found.notes)


TELLS = "os.environ['LOCAL_RANK'] = str(rank)"


@pytest.mark.parametrize(
    ("long", "tell", "codes"),
    [("long()\n" * 4, TELLS, []), ("", TELLS, []), ("", "pass", ["CUD201"])],
    ids=["cut", "whole", "not averted"],
)
def test_ranks_may_be_told_their_device_in_what_was_left_out(long: str, tell: str, codes: list[str]) -> None:
    texts = {
        "heavy.py": f"import contextlib\n{HEAD}{LONG}{long}"
        + f"@contextlib.contextmanager\ndef told(rank):\n    {tell}\n    yield\n",
        "main.py": "from heavy import told\n\n"
        + HEAD
        + "def work(rank):\n    with told(rank):\n"
        + "        torch.cuda.set_device(int(os.environ.get('LOCAL_RANK', '0')))\n"
        + "        torch.ones(1, device='cuda')\n\n\n"
        + "if __name__ == '__main__':\n    mp.spawn(work, nprocs=2)\n",
    }
    found = analyse([SourceFile(path, text, text.encode()) for path, text in texts.items()], Options())
    assert [f.code for f in found.findings] == codes


@pytest.mark.parametrize(("hip", "codes"), [("is not None", []), ("is None", ["CUD202"])])
def test_what_an_import_that_was_cut_names_is_looked_at_where_it_is_used(hip: str, codes: list[str]) -> None:
    texts = {
        "heavy.py": HEAD + LONG + "long()\n" * 4 + "mp.set_start_method('spawn')\n",
        "machines.py": f"import torch\n\ntorch.set_num_threads(1)\nfrom heavy import mp\n\n\n"
        f"def is_rocm():\n    return torch.version.hip {hip}\n",
        "tool.py": "import heavy\nfrom machines import is_rocm\n\n\ndef chosen():\n    return is_rocm()\n",
        "main.py": "import os\n\nimport torch\nfrom tool import chosen\n\n\nif __name__ == '__main__':\n"
        "    print(torch.cuda.is_available())\n    if chosen():\n"
        "        os.environ['CUDA_VISIBLE_DEVICES'] = '1'\n    print(torch.ones(1).cuda())\n",
    }
    found = analyse([SourceFile(path, text, text.encode()) for path, text in texts.items()], Options())
    assert any("steps in an import" in note for note in found.notes)
    assert [f.code for f in found.findings] == codes


def test_a_test_whose_module_was_cut_is_in_doubt() -> None:
    texts = {
        "heavy.py": HEAD + LONG + "long()\nmp.set_start_method('spawn')\n",
        "test_main.py": "import heavy\n\n"
        + HEAD
        + WORK
        + "def test_main():\n    torch.zeros(1, device='cuda')\n    mp.Pool(2).map(work, [1])\n",
    }
    given = [SourceFile(path, text, text.encode()) for path, text in texts.items()]
    assert errors(analyse(given, Options())) == []


def test_what_modules_import_leaves_code_to_what_a_function_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_BYTES", 100_000)
    rows = "# row" * 5000
    tables = range(6)
    texts = {f"tables{n}.py": f"import torch\n\ndevice = torch.device('cuda')\n{rows}\n" for n in tables}
    texts["tables.py"] = "".join(f"import tables{n}\n" for n in tables)
    texts["devices.py"] = f"import torch\n\n\ndef is_there():\n    return torch.cuda.is_available()\n{rows}\n"
    texts["jobs.py"] = (
        "import os\n\nimport tables\nimport devices\n\n\ndef choose(rank):\n"
        "    try:\n        there = devices.is_there()\n    except RuntimeError:\n        return\n"
        "    if there:\n        os.environ['CUDA_VISIBLE_DEVICES'] = str(rank)\n"
    )
    found = analyse([SourceFile(path, text, text.encode()) for path, text in texts.items()], Options())
    assert [finding.code for finding in found.findings] == ["CUD202"]
    assert found.notes == ("an entry reaches more code than is read for it; the rest is taken as unknown",)


def test_callbacks_cost_a_bounded_part_and_cut_nothing() -> None:
    """What an unknown function is given is looked at with steps of its own, however much it does."""
    given = "".join(f"def callback{i}():\n    long()\n    mp.Pool(2).map(work, [1])\n\n\n" for i in range(30))
    calls = "".join(f"    unknown.on_event(callback{i})\n" for i in range(30))
    text = f"{HEAD}import unknown\n\n\n{LONG}{WORK}{given}def main():\n    torch.zeros(1, device='cuda')\n{calls}"
    launch = "    mp.Process(target=work, args=(1,)).start()\n\n\nif __name__ == '__main__':\n    main()\n"
    analysis = analyse([SourceFile("program.py", text + launch, (text + launch).encode())], Options(), alone=True)
    assert analysis.work.steps < 100 + MOST_CALLBACKS * (MOST_CALLBACK_STEPS + 1)
    # What a callback does after its steps are used up is not known; the program itself is followed to its end.
    assert [(f.code, f.severity) for f in analysis.findings] == [("CUD101", Severity.ERROR)]
    assert not [note for note in analysis.notes if "cut off" in note]


@pytest.mark.parametrize(
    ("between", "severity"),
    [("long()", Severity.NOTE), ("pass", Severity.WARNING)],
)
def test_an_owner_may_wait_in_what_was_left_out(between: str, severity: Severity) -> None:
    """What GPU memory was lent is in danger where a path is seen to end, and not where it is cut before."""
    reads = "def reads(memory):\n    print(memory.sum().item())\n\n\n"
    start = "process = mp.get_context('spawn').Process(target=reads, args=(torch.ones(1).cuda(),)); process.start()"
    last = "process.join()" if between == "long()" else "pass"
    found = checked(program(start, last, between).format(averting=reads))
    assert [(f.code, f.severity) for f in found.findings] == [("CUD302", severity)]


def test_processes_that_start_others_again_and_again_end_at_some_generation() -> None:
    # Each of them imports main, which may start others: three ways of one generation, each with three more.
    start = (
        "if __name__.attribute == '__main__':\n    mp.get_context('spawn').Process(target=work, args=(1,)).start()\n"
    )
    nested = indent(start, "    ")
    found = checked(f"{HEAD}{WORK}if os.fork() == 0:\n{nested}else:\n{nested}{start}")
    assert [note.partition("cut off: ")[2] for note in found.notes] == ["processes nested too deeply"]
    assert found.work.steps < 1_000


def test_workers_that_start_workers_like_themselves_are_followed_for_two_generations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generations = []
    started = workers._started

    def counting(machine: Machine, state: State, *rest: Any) -> Any:
        generations.append(len(state.process.identity))
        return started(machine, state, *rest)

    monkeypatch.setattr(workers, "_started", counting)
    checked(
        "import multiprocessing as mp\n\nimport torch\n\n\ndef work(n):\n    print(torch.zeros(n).cuda())\n"
        "    process = mp.Process(target=work, args=(n,))\n    process.start()\n    process.join()\n\n\n"
        "if __name__ == '__main__':\n    work(1)\n"
    )
    assert max(generations) == 2


# Which way it goes is kept, and what follows is run once for each.
SETTING = """def work(n):
    return torch.ones(n, device='cuda')


def main(mode):
    if mode == 'other':
        {other}
    torch.zeros(1, device='cuda')
    mp.Pool(2).map(work, [1])


if __name__ == '__main__':
    mode = 'other'
    if os.environ.get('CRC_MODE') is None:
        mode = 'auto'
    main(mode)
"""


@pytest.mark.parametrize(
    ("other", "said"),
    [
        # A bound ends the other path: whether the variable makes a difference nobody saw.
        ("long()", False),
        ("return", True),
    ],
)
def test_a_setting_is_a_condition_where_its_other_path_was_seen_to_its_end(other: str, said: bool) -> None:
    (found,) = checked(HEAD + LONG + SETTING.format(other=other)).findings
    assert ("`CRC_MODE` is not set" in (found.condition or "")) is said
