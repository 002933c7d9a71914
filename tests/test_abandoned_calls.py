"""A call that takes long and does nothing is left, and the program that follows it is still seen."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cudalint.finding import Severity
from cudalint.machine.interpreter import entry
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.text.source import SourceFile

MOST_STEPS = 2_000
# Each call calls the next three times, with other arguments each time: 3 ** 9 calls of one statement. What is left is a
# call of step5, after which it would do what stands at its end.
IDLE = "".join(
    f"def step{i}(x):\n    step{i + 1}(3 * x)\n    step{i + 1}(3 * x + 1)\n    found = step{i + 1}(3 * x + 2)\n"
    + ("{last}" if i == 5 else "")
    + "    return found\n\n\n"
    for i in range(9)
)
IDLE += "def step9(x):\n    return x\n\n\ndef idle():\n    return step0(0)\n\n\n"
HEAD = "import torch\nimport multiprocessing as mp\n\n\ndef work(n):\n    print(torch.ones(n, device='cuda'))\n\n\n"
SPAWN = "mp.set_start_method('spawn', force=True)"
LAUNCH = "mp.Pool(2).map(work, [1])"


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "MOST_STEPS", MOST_STEPS)


def idle(last: str = "") -> str:
    return IDLE.replace("{last}", f"    {last}\n" if last else "")


def main(*body: str) -> str:
    return "def main():\n" + "".join(f"    {line}\n" for line in body) + "\n\nif __name__ == '__main__':\n    main()\n"


def checked(texts: Mapping[str, str]) -> Analysis:
    return analyse([SourceFile(path, text, text.encode()) for path, text in texts.items()], Options())


def said(found: Analysis) -> list[tuple[str, Severity]]:
    return [(finding.code, finding.severity) for finding in found.findings]


def test_what_follows_a_call_that_could_not_have_averted_it_is_certain() -> None:
    program = f"from numbers_only import idle\n{HEAD}" + main("torch.cuda.init()", "idle()", LAUNCH)
    found = checked({"numbers_only.py": idle(), "program.py": program})
    assert said(found) == [("CUD101", Severity.ERROR)]
    assert found.work.cut == 0
    assert [note for note in found.notes if "did nothing in" in note and "numbers_only" in note]


def test_a_call_that_may_have_averted_it_is_followed() -> None:
    averted = idle("mp.set_start_method('spawn', force=True)")
    found = checked({"program.py": HEAD + averted + main("torch.cuda.init()", "idle()", LAUNCH)})
    assert said(found) == []
    assert [note for note in found.notes if f"cut off: more than {MOST_STEPS} steps" in note]


@pytest.mark.parametrize("word", ["num_chains", "parallelize"])
def test_a_word_that_starts_something_only_beside_its_library_holds_no_call(word: str) -> None:
    program = f"from numbers_only import idle\n{HEAD}" + main("torch.cuda.init()", "idle()", LAUNCH)
    found = checked({"numbers_only.py": idle(f"{word} = found"), "program.py": program})
    assert said(found) == [("CUD101", Severity.ERROR)]


@pytest.mark.parametrize(
    ("settle", "expected"),
    [
        ("mp.set_start_method('spawn', force=True)", []),
        ("torch.cuda.set_device(0)", [("CUD101", Severity.ERROR)]),
    ],
)
def test_so_is_one_that_names_what_another_file_has_for_it(settle: str, expected: list[tuple[str, Severity]]) -> None:
    texts = {
        "settling.py": f"import os\nimport torch\nimport multiprocessing as mp\n\n\ndef settle():\n    {settle}\n",
        "numbers_first.py": "from settling import settle\n\n\n" + idle("settle()"),
        "program.py": f"from numbers_first import idle\n{HEAD}" + main("torch.cuda.init()", "idle()", LAUNCH),
    }
    found = checked(texts)
    assert said(found) == expected
    assert not [note for note in found.notes if "step5()" in note]


@pytest.mark.parametrize(("calls", "codes"), [("settle()", []), ("print()", []), (None, ["CUD505"])])
def test_where_ranks_meet_may_be_said_in_what_was_left(calls: str | None, codes: list[str]) -> None:
    environment = "    os.environ['MASTER_ADDR'] = 'here'\n    os.environ['MASTER_PORT'] = '29500'\n"
    joins = "import torch.distributed as dist\n\n\ndef joins(rank):\n"
    joins += "    dist.init_process_group('gloo', rank=rank, world_size=2)\n\n\n"
    texts = {
        "meeting.py": f"import os\n\n\ndef settle():\n{environment}",
        "numbers_first.py": "from meeting import settle\n\n\n" + idle(calls or ""),
        "program.py": f"from numbers_first import idle\nimport torch.multiprocessing as mp\n{joins}"
        + main("idle()" if calls else "pass", "mp.spawn(joins, nprocs=2)"),
    }
    assert [finding.code for finding in checked(texts).findings] == codes


def test_what_it_would_give_is_unknown_and_not_none() -> None:
    program = f"from numbers_only import idle\n{HEAD}" + main(
        "torch.cuda.init()", "if idle() is None:", "    mp.set_start_method('spawn')", LAUNCH
    )
    found = checked({"numbers_only.py": idle(), "program.py": program})
    assert [(finding.code, finding.condition) for finding in found.findings] == [("CUD102", "if `idle()` is not None")]


def test_a_function_that_was_left_once_is_left_at_once() -> None:
    once = f"from numbers_only import idle\n{HEAD}" + main("torch.cuda.init()", "idle()", LAUNCH)
    often = f"from numbers_only import idle\n{HEAD}" + main("torch.cuda.init()", *["idle()"] * 4, LAUNCH)
    first, all_ = (checked({"numbers_only.py": idle(), "program.py": text}) for text in (once, often))
    assert said(first) == said(all_) == [("CUD101", Severity.ERROR)]
    assert all_.work.steps < 2 * first.work.steps


def test_code_of_a_caller_that_runs_where_a_generator_yields_is_not_left_with_it() -> None:
    program = (
        "import contextlib\nfrom numbers_only import idle\n"
        + HEAD
        + "@contextlib.contextmanager\ndef around():\n    yield\n\n\n"
        + main("torch.cuda.init()", "with around():", "    idle()", f"    {LAUNCH}")
    )
    found = checked({"numbers_only.py": idle(), "program.py": program})
    assert said(found) == [("CUD101", Severity.ERROR)]


def test_a_repair_is_not_called_safe_on_the_ground_of_what_was_left() -> None:
    from cudalint.finding import Applicability
    from cudalint.fixes.engine import repaired

    program = f"from numbers_only import idle\n{HEAD}" + main("torch.cuda.init()", "idle()", LAUNCH)
    found = checked({"numbers_only.py": idle(), "program.py": program})
    (fix,) = repaired(found, found.findings).values()
    assert fix.applicability is Applicability.UNSAFE


# Each takes a fortieth of the steps by itself, and stands in a function that does something.
SHORT = "".join(
    f"def part{i}(x):\n    part{i + 1}(3 * x)\n    part{i + 1}(3 * x + 1)\n    return part{i + 1}(3 * x + 2)\n\n\n"
    for i in range(3)
)


def short(last: str = "pass") -> str:
    return f"{SHORT}def part3(x):\n    return x\n\n\ndef short(x):\n    part0(x)\n    {last}\n    return x\n\n\n"


def calling_often(imports: str) -> str:
    calls = (f"short({number})" for number in range(80))
    return f"{imports}\n{HEAD}" + main("torch.cuda.init()", *calls, LAUNCH)


def test_a_function_whose_short_calls_do_nothing_is_left_after_many_of_them() -> None:
    found = checked({"parts.py": short(), "program.py": calling_often("from parts import short")})
    assert said(found) == [("CUD101", Severity.ERROR)]
    assert found.work.cut == 0
    assert [note for note in found.notes if "calls: not followed to its end" in note and "parts" in note]


@pytest.mark.parametrize("last", [SPAWN, "settle()"])
def test_one_that_may_have_averted_it_in_any_of_its_calls_is_followed(last: str) -> None:
    texts = {
        "settling.py": f"import multiprocessing as mp\n\n\ndef settle():\n    {SPAWN}\n",
        "parts.py": "import multiprocessing as mp\nfrom settling import settle\n\n\n" + short(last),
        "program.py": calling_often("from parts import short"),
    }
    found = checked(texts)
    assert said(found) == []
    assert not [note for note in found.notes if "short() of parts" in note]


def test_one_that_only_looks_something_up_is_followed_however_often_it_is_called() -> None:
    pick = "def pick():\n    return 'cuda'\n\n\ndef many():\n    mp.set_start_method\n" + "    pick()\n" * 40 + "\n\n"
    text = HEAD + pick + main(*["many()"] * 18, "torch.ones(1, device=pick())", LAUNCH)
    assert said(checked({"program.py": text})) == [("CUD101", Severity.ERROR)]


def test_one_that_uses_cuda_as_was_done_before_is_followed_in_workers() -> None:
    uses = "def uses(n):\n    part0(n)\n    return torch.ones(n, device='cuda')\n\n\n"
    part = f"{SHORT}def part3(x):\n    return x\n\n\n{uses}"
    text = HEAD + part + main("torch.ones(1, device='cuda')", *["uses(1)"] * 40, "mp.Pool(2).map(uses, [1])")
    assert said(checked({"program.py": text})) == [("CUD101", Severity.ERROR)]
