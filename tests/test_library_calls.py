"""What library functions do, one row each (`library_calls.txt`), seen by what happens around them."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalint.finding import Finding, Severity
from cudalint.machine.outcome import Doubt
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

_SECTION = re.compile(r"^##### (.*)\n", re.MULTILINE)
_, *_PARTS = _SECTION.split((Path(__file__).parent / "library_calls.txt").read_text(encoding="utf-8"))
ROWS = {
    name: [row for row in text.splitlines() if row and not row.startswith("#")]
    for name, text in zip(_PARTS[::2], _PARTS[1::2], strict=True)
}

HEAD = """\
import multiprocessing as mp
import torch

fork, spawn = mp.get_context("fork"), mp.get_context("spawn")


def use(*given):
    torch.zeros(1).cuda()


def job(*given):
    torch.cuda.init()


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, number):
        return torch.zeros(1).cuda()

"""
# Around each row: a program of its own, as a test is, and whether it has a finding where it says so.
PROGRAMS = {
    "torch is initialised": """
def test_{n}():
    {imports}
    {row}
    if torch.cuda.is_initialized():
        fork.Process(target=use).start()  # expect
""",
    "the driver is asked, torch is not initialised": """
def test_{n}():
    {imports}
    {row}
    if not torch.cuda.is_initialized():
        fork.Process(target=use).start()  # expect
""",
    "the driver is left alone": """
def test_{n}():
    {imports}
    {row}
    fork.Process(target=use).start()
""",
    "a forked worker cannot": """
def work_{n}():
    {imports}
    {row}


def test_{n}():
    torch.cuda.init()
    fork.Process(target=work_{n}).start()  # expect
""",
    "a forked worker can": """
def work_{n}():
    {imports}
    {row}


def test_{n}():
    torch.cuda.init()
    fork.Process(target=work_{n}).start()
""",
    "a forked worker cannot use it": """
def test_{n}():
    {imports}
    x = {made}
    def work():
        {row}
    fork.Process(target=work).start()  # expect
""",
    "a forked worker cannot use it, for certain": """
def test_{n}():
    {imports}
    x = {made}
    def work():
        {row}
    fork.Process(target=work).start()  # expect
""",
    "a forked worker can ask it": """
def test_{n}():
    {imports}
    x = {made}
    def work():
        {row}
    fork.Process(target=work).start()
""",
    "it cannot be sent to a spawned process": """
def test_{n}():
    {imports}
    x = {row}
    spawn.Process(target=print, args=(x,)).start()  # expect
""",
    "the program ends": """
def test_{n}():
    {imports}
    torch.cuda.init()
    {row}
    fork.Process(target=use).start()
""",
    "no rank has a device of its own": """
def test_{n}():
    {imports}
    torch.distributed.init_process_group("nccl")
    {row}  # expect
""",
    "it calls the function": """
def test_{n}():
    {imports}
    def begin(*given):
        torch.cuda.init()
        fork.Process(target=use).start()  # expect
    {row}
""",
    "its workers cannot": """
def test_{n}():
    {imports}
    torch.cuda.init()
    {row}  # expect
""",
    "its workers can": """
def test_{n}():
    {imports}
    torch.cuda.init()
    {row}
""",
    "each worker opens a context": """
def work_{n}(number):
    {imports}
    {row}


def test_{n}():
    with spawn.Pool(2) as pool:
        pool.map(work_{n}, [1, 2])  # expect
""",
    "no worker opens a context": """
def work_{n}(number):
    {imports}
    {row}


def test_{n}():
    with spawn.Pool(2) as pool:
        pool.map(work_{n}, [1, 2])
""",
    "it lies on the GPU": """
def test_{n}():
    {imports}
    x = {row}
    process = spawn.Process(target=print, args=(x,))  # expect
    process.start()
    process.join()
""",
    "a thread cannot without a context of its own": """
def work_{n}():
    {imports}
    {row}


def test_{n}():
    import pycuda.tools
    import threading
    pycuda.tools.make_default_context()
    threading.Thread(target=work_{n}).start()  # expect
""",
    "a thread can without a context of its own": """
def work_{n}(stream, context, held):
    {imports}
    {row}


def test_{n}(held):
    import pycuda.driver
    import threading
    pycuda.driver.init()
    context = pycuda.driver.Device(0).make_context()
    stream = pycuda.driver.Stream()
    threading.Thread(target=work_{n}, args=(stream, context, held)).start()
""",
    "it does not lie on the GPU": """
def test_{n}():
    {imports}
    x = {row}
    process = spawn.Process(target=print, args=(x,))
    process.start()
    process.join()
""",
}
# What is held against each section.
AROUND = {
    "torch is initialised": ("torch is initialised", "a forked worker cannot"),
    "CUDA is used, not by torch": ("the driver is asked, torch is not initialised", "a forked worker cannot"),
    "the driver is asked": ("the driver is asked, torch is not initialised", "a forked worker can"),
    "it matters only where CUDA is in use": ("the driver is left alone", "a forked worker cannot"),
    "the driver is left alone": ("the driver is left alone", "a forked worker can"),
    **{name: (name,) for name in list(PROGRAMS)[3:]},
}
_NUMBER = re.compile(r"def (?:test|work)_(\d+)\(")
# What is guessed of launchers that nobody knows, as conditions say it: that is no knowledge of a model.
_GUESSED = "runs what it is given in forked processes"
# What the programs around a row name.
OURS = frozenset({"torch", "mp", "use", "job", "begin", "Rows", "fork", "spawn", "x", "stream", "context", "held"})
# What a project asks for that has a row.
ASKED = "  # with "
# A row is tested with those of the same library, whatever rows there are besides: mutation/noticed.txt names tests.
_LIBRARY = re.compile(r"[a-z_A-Z]\w*(?=\.)")


def imports(row: str) -> str:
    """The imports that a row needs."""
    nodes = list(ast.walk(ast.parse(row)))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {a.arg for n in nodes if isinstance(n, ast.arguments) for a in n.args} | set(dir(builtins))
    names = {n.id for n in nodes if isinstance(n, ast.Name)} - bound - OURS
    return "import " + ", ".join(sorted(names)) if names else "pass"


def parts(row: str) -> dict[str, str]:
    """What a program is filled with: `made => row` for what is made before."""
    made, _, used = row.rpartition(" => ")
    return {"made": made, "row": used, "imports": imports(f"{made}\n{used}")}


def library(row: str) -> str:
    """The library that a row is about: the first that it names."""
    named = (name for name in _LIBRARY.findall(row.rpartition(" if ")[2] or row) if name not in OURS - {"torch"})
    return next(named, "builtins")


def batches() -> Iterator[object]:
    for section, rows in ROWS.items():
        together: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for line in rows:
            row, _, asked = line.partition(ASKED)
            together[library(row), asked].append(row)
        for program in AROUND[section]:
            about = program if program == section else f"{section}, {program}"
            for (name, asked), of_library in together.items():
                yield pytest.param(program, of_library, asked, id=f"{about}: {asked or name}")


def _is_guessed(finding: Finding) -> bool:
    """Whether a finding rests on what a package that nobody knows may do."""
    said = f"{finding.message} {finding.condition}"
    return any(words in said for words in (Doubt.USES.value, Doubt.STARTS.value, _GUESSED))


@pytest.mark.parametrize(("program", "rows", "asked"), list(batches()))
def test_what_library_functions_do(program: str, rows: list[str], asked: str, tmp_path: Path) -> None:
    text = HEAD + "".join(PROGRAMS[program].format(n=n, **parts(row)) for n, row in enumerate(rows))
    lines = text.splitlines()
    (tmp_path / "requirements.txt").write_text(asked, encoding="utf-8")
    source = SourceFile(str(tmp_path / "test_calls.py"), text, text.encode())
    findings = analyse([source], Options(), root=str(tmp_path)).findings
    certain = program.endswith("for certain")
    # What is guessed of packages that nobody knows is no knowledge of a model; of what is harmless nothing is guessed.
    known = [f for f in findings if "# expect" not in PROGRAMS[program] or not _is_guessed(f)]
    found = {f.span.start.row for f in known if f.severity is Severity.ERROR or not certain}
    wanted = {number for number, line in enumerate(lines, 1) if line.endswith("# expect")}
    of_row = {number: int(match[1]) for number, line in enumerate(lines, 1) if (match := _NUMBER.match(line))}
    wrong = {of_row[max(number for number in of_row if number <= row)] for row in wanted ^ found}
    assert "\n".join(rows[n] for n in sorted(wrong)) == ""


def test_every_section_has_a_program_around_it() -> None:
    assert ROWS.keys() == AROUND.keys()
    assert {name for names in AROUND.values() for name in names} == PROGRAMS.keys()
