"""Repairing files: what --fix, --diff and their like do, and that nothing is ever lost."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Span
from cudalint.fixing.rounds import Changed, fix_text
from cudalint.fixing.write import Refused, clear_leftovers, write, write_together
from cudalint.found import Effort, Report
from cudalint.structs import replace

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Safe to repair (CUD403), and one that is not (CUD204).
PINNED = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.ones(8, 2, device="cuda"))
    for (batch,) in DataLoader(data, batch_size=4, pin_memory=True):  # Größe
        print(batch.sum())


if __name__ == "__main__":
    main()
"""
SELECTED = """\
import torch

torch.cuda.device(1)
print(torch.ones(1, device="cuda"))
"""


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    path = tmp_path / "pinned.py"
    path.write_text(PINNED, encoding="utf-8")
    return path


def repaired(text: str) -> str:
    return text.replace(", pin_memory=True", "")


def test_fix_makes_safe_repairs_and_reports_the_rest(run: Run, pinned: Path, tmp_path: Path) -> None:
    other = tmp_path / "selected.py"
    other.write_text(SELECTED)
    done = run("check", "--fix", "--output-format=concise")
    assert done.returncode == 1
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)
    assert other.read_text() == SELECTED
    assert done.stdout.splitlines()[0].startswith("selected.py:3:1: CUD204 ")
    assert "1 repair made. Found 1 error in 1 file." in done.stdout


def test_unsafe_repairs_are_made_when_asked_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "selected.py"
    path.write_text(SELECTED)
    done = run("check", "--fix", "--unsafe-fixes")
    assert (done.returncode, done.stdout) == (0, "1 repair made. All checks passed!\n")
    assert path.read_text() == SELECTED.replace("cuda.device(1)", "cuda.set_device(1)")
    assert run("check", "--fix", "--unsafe-fixes").stdout == "All checks passed!\n"


def test_a_patch_says_what_more_there_would_be(run: Run, pinned: Path, tmp_path: Path) -> None:
    (tmp_path / "selected.py").write_text(SELECTED)
    done = run("check", "--diff")
    assert (done.returncode, done.stderr) == (1, "Would make 1 repair; 1 more with --unsafe-fixes.\n")
    assert "set_device" not in done.stdout
    done = run("check", "--diff", "--unsafe-fixes")
    assert (done.returncode, done.stderr) == (1, "Would make 2 repairs.\n")
    done = run("check", "--diff", "selected.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Would make 0 repairs; 1 more with --unsafe-fixes.\n"


def test_the_configuration_grades_again(run: Run, pinned: Path, tmp_path: Path) -> None:
    (tmp_path / "selected.py").write_text(SELECTED)
    settings = '[tool.cudalint]\nextend-safe-fixes = ["CUD2"]\nextend-unsafe-fixes = ["CUD403"]\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    done = run("check", "--fix", "--output-format=concise")
    assert "set_device" in (tmp_path / "selected.py").read_text()
    assert pinned.read_text(encoding="utf-8") == PINNED
    assert "CUD403" in done.stdout


def test_diff_writes_nothing_and_its_patch_does_what_fix_does(run: Run, pinned: Path, tmp_path: Path) -> None:
    done = run("check", "--diff")
    assert done.returncode == 1
    assert done.stderr == "Would make 1 repair.\n"
    assert pinned.read_text(encoding="utf-8") == PINNED
    git = ["git", "apply", "-"]
    patched = subprocess.run(git, cwd=tmp_path, input=done.stdout, encoding="utf-8", capture_output=True, check=False)
    assert patched.returncode == 0, patched.stderr
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)
    again = run("check", "--diff")
    assert (again.returncode, again.stdout) == (0, "")


def test_fix_only_reports_nothing_of_the_rest(run: Run, pinned: Path, tmp_path: Path) -> None:
    (tmp_path / "selected.py").write_text(SELECTED)
    done = run("check", "--fix-only")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Made 1 repair.\n")
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)


def test_standard_input_is_repaired_to_standard_output(run: Run) -> None:
    done = run("check", "--fix", "-", stdin=PINNED)
    assert (done.returncode, done.stdout) == (0, repaired(PINNED))
    kept = run("check", "--fix", "-", stdin="x = 1\n")
    assert (kept.returncode, kept.stdout) == (0, "x = 1\n")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("crlf", PINNED.replace("\n", "\r\n").encode()),
        ("carriage returns", PINNED.replace("\n", "\r").encode()),
        ("byte order mark", b"\xef\xbb\xbf" + PINNED.encode()),
        ("latin-1", ("# -*- coding: latin-1 -*-\n" + PINNED).encode("latin-1")),
        ("no end of line", PINNED.rstrip("\n").encode()),
        ("form feed", PINNED.replace("\n\n\ndef", "\n\f\n\ndef").encode()),
        ("tabs", PINNED.replace("    ", "\t").encode()),
    ],
)
def test_all_other_bytes_stay(run: Run, tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "odd.py"
    path.write_bytes(data)
    assert run("check", "--fix").returncode == 0, name
    assert path.read_bytes() == data.replace(b", pin_memory=True", b"")


def test_unused_noqa_codes_go_and_other_words_stay(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "import torch  # noqa: CUD101\n"
        "x = 1  # noqa: E501, CUD101\n"
        "y = 2  # noqa: CUD101, CUD102 for later\n"
        "# noqa: CUD403\n"
        "z = 3\n"
    )
    assert run("check", "--fix").stdout == "4 repairs made. All checks passed!\n"
    assert path.read_text() == "import torch\nx = 1  # noqa: E501\ny = 2  # for later\nz = 3\n"


def test_many_unused_comments_go_in_one_round(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import torch\n" + "x = 1  # noqa: CUD101\n# noqa: CUD2, CUD3\n" * 300)
    done = run("check", "--fix")
    assert (done.stdout, done.stderr) == ("600 repairs made. All checks passed!\n", "")
    assert path.read_text() == "import torch\n" + "x = 1\n" * 300


@pytest.mark.parametrize(
    ("imports", "reads"),
    [
        ("import inspect", "print(inspect.getsource(f))"),
        ("import traceback", "traceback.print_stack()"),
        ("import sys", "print(open(sys.argv[0]).read())"),
        ("import pathlib", "print(list(pathlib.Path().glob('*.py')))"),
        ("", "print(__loader__.get_source(__name__))"),
        ("", "print(len(__loader__.get_data(__file__)))"),
        ("import subprocess", "subprocess.run(['wc', '-c', __file__])"),
        ("import subprocess", "print(subprocess.run(['git', 'status', '-s'], capture_output=True).stdout)"),
        ("import os", "print(os.path.getsize(__file__))"),
        ("import pathlib", "print(len(pathlib.Path(__file__).read_bytes()))"),
    ],
)
def test_an_unused_noqa_stays_where_the_program_reads_its_own_text(
    run: Run, tmp_path: Path, imports: str, reads: str
) -> None:
    program = tmp_path / "train.py"
    text = f"{imports}\n\n\ndef f():\n    return 1  # noqa: CUD101\n\n\n{reads}\n"
    program.write_text(text)
    run("check", "--fix", str(program))
    assert program.read_text() == text
    run("check", "--fix", "--unsafe-fixes", str(program))
    assert program.read_text() == text.replace("  # noqa: CUD101", "")


@pytest.mark.parametrize(
    "line",
    [
        "import os\nHERE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'data')",
        "from pathlib import Path\nHERE = Path(__file__).resolve().parent / 'data'",
        "import subprocess, sys\nif len(sys.argv) > 1:\n    subprocess.run([sys.executable, __file__])",
        "import os\nprint(os.path.basename(__file__))",
    ],
)
def test_an_unused_noqa_goes_where_the_program_only_asks_where_it_lies(run: Run, tmp_path: Path, line: str) -> None:
    program = tmp_path / "train.py"
    program.write_text(f"{line}\nx = 1  # noqa: CUD101\n")
    run("check", "--fix", str(program))
    assert program.read_text() == f"{line}\nx = 1\n"


def test_an_unused_noqa_stays_where_another_file_names_its_own(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import torch\nx = 1  # noqa: CUD101\n")
    (tmp_path / "show.py").write_text("import torch\nprint(open('train.py').read())\n")
    run("check", "--fix", str(tmp_path))
    assert "noqa" in program.read_text()
    (tmp_path / "show.py").write_text("import torch\nimport train  # train.py\n")
    run("check", "--fix", str(tmp_path))
    assert "noqa" not in program.read_text()


def test_the_mode_of_a_file_and_a_link_to_it_stay(run: Run, pinned: Path, tmp_path: Path) -> None:
    pinned.chmod(0o751)
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "linked.py"
    link.symlink_to(pinned)
    assert run("check", "--fix", "linked.py", cwd=folder).returncode == 0
    assert link.is_symlink()
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)
    assert stat.S_IMODE(pinned.stat().st_mode) == 0o751


def test_a_read_only_file_is_left_and_named(run: Run, pinned: Path) -> None:
    pinned.chmod(0o444)
    done = run("check", "--fix")
    assert done.returncode == 2
    assert done.stderr == f"cudalint: error: {pinned} is not repaired: it is read-only\n"
    assert "CUD403" in done.stdout
    assert pinned.read_text(encoding="utf-8") == PINNED


def test_only_repairs_that_were_written_are_counted(run: Run, pinned: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(PINNED, encoding="utf-8")
    pinned.chmod(0o444)
    done = run("check", "--add-noqa")
    refused = f"cudalint: error: {pinned} is not changed: it is read-only\n"
    assert (done.returncode, done.stderr) == (2, f"{refused}Silenced 1 finding.\n")
    (tmp_path / "other.py").write_text(PINNED, encoding="utf-8")
    done = run("check", "--fix-only")
    refused = refused.replace("changed", "repaired")
    assert (done.returncode, done.stderr) == (2, f"{refused}Made 1 repair.\n")
    (tmp_path / "other.py").write_text(PINNED, encoding="utf-8")
    done = run("check", "--fix", "--output-format=concise")
    assert (done.returncode, done.stderr) == (2, refused)
    assert "1 repair made. Found 1 error in 1 file." in done.stdout


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"edited\n")
    with pytest.raises(Refused, match="changed while it was checked"):
        write(Changed(str(path), b"read\n", b"repaired\n"))
    assert path.read_bytes() == b"edited\n"


WORKER = """\
import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()
"""
LAUNCHER = """\
import multiprocessing


def start(work, items):
    with multiprocessing.Pool(1) as pool:
        return pool.map(work, items)
"""
MAIN = """\
import torch

from launcher import start
from worker import work

if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print(start(work, [1, 2]))
"""


def test_a_repair_goes_to_the_file_that_needs_it_if_that_is_selected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cudalint]\n")
    for name, text in (("worker", WORKER), ("launcher", LAUNCHER), ("main", MAIN)):
        (tmp_path / f"{name}.py").write_text(text)
    done = run("check", "--fix", "--unsafe-fixes", "main.py")
    assert done.returncode == 1
    assert (tmp_path / "launcher.py").read_text() == LAUNCHER
    done = run("check", "--fix", "--unsafe-fixes")
    assert done.stdout == "1 repair made. All checks passed!\n"
    assert 'multiprocessing.get_context("spawn").Pool(1)' in (tmp_path / "launcher.py").read_text()
    assert (tmp_path / "worker.py").read_text() == WORKER


TWO_CAUSES = """\
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    if torch.cuda.is_available():
        print("training on", torch.cuda.get_device_name())
    with multiprocessing.Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))
"""


def test_a_repair_does_no_more_than_is_needed(run: Run, tmp_path: Path) -> None:
    # Asking otherwise is a repair where the question alone is to blame; here the next line is as well.
    (tmp_path / "a.py").write_text(TWO_CAUSES)
    done = run("check", "--diff", "--unsafe-fixes")
    changed = [line for line in done.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [
        "-    with multiprocessing.Pool(1) as pool:",
        '+    with multiprocessing.get_context("spawn").Pool(1) as pool:',
    ]


SENDS = """\
import multiprocessing as mp
import torch
from jobs import QUEUE, work
def main():
    torch.zeros(1, device="cuda")
    p = mp.Process(target=work, args=(QUEUE,))
    p.start()
    print(QUEUE.get())
    p.join()
if __name__ == "__main__":
    main()
"""
JOBS = """\
import multiprocessing as mp
import torch
QUEUE = mp.Queue()
def work(queue):
    queue.put(torch.ones(2, device="cuda").sum().item())
"""


@pytest.mark.parametrize("kept", ["jobs.py", "main.py"])
def test_files_of_one_repair_are_written_together_or_not_at_all(run: Run, tmp_path: Path, kept: str) -> None:
    texts = {"jobs.py": JOBS, "main.py": SENDS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "other.py").write_text(PINNED, encoding="utf-8")
    (tmp_path / kept).chmod(0o444)
    done = run("check", "--fix-only", "--unsafe-fixes")
    (other,) = texts.keys() - {kept}
    assert done.returncode == 2
    assert f"{kept} is not repaired: it is read-only" in done.stderr
    assert f"{other} is not repaired: {kept} is not, and a repair needs both" in done.stderr
    assert {name: (tmp_path / name).read_text() for name in texts} == texts
    assert (tmp_path / "other.py").read_text(encoding="utf-8") == repaired(PINNED)
    (tmp_path / kept).chmod(0o644)
    assert run("check", "--fix-only", "--unsafe-fixes").returncode == 0
    assert all((tmp_path / name).read_text() != text for name, text in texts.items())


def test_what_was_written_is_taken_back_where_another_file_fails(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    second.symlink_to(first)
    first.write_bytes(b"old")
    # Each may be written until the other one was: they are one file.
    changes = [Changed(str(path), b"old", b"new") for path in (first, second)]
    refused = write_together(changes, [frozenset(change.path for change in changes)])
    assert {path: str(reason) for path, reason in refused.items()} == {
        str(first): "b.py is not, and a repair needs both",
        str(second): "it changed while it was checked; run again",
    }
    assert first.read_bytes() == b"old"


KILLS = 300
# Each writer is a fork of a process that has only this to do, and is killed wherever it is.
WRITER = """\
import os, random, signal, stat, sys, time
from cudalint.fixing.rounds import Changed
from cudalint.fixing.write import write

path, kills = sys.argv[1], int(sys.argv[2])
old, new = b"old " * 100_000, b"new " * 100_000
chance, found = random.Random(4), set()
for _ in range(kills):
    open(path, "wb").write(old)
    started, told = os.pipe()
    writer = os.fork()
    if writer == 0:
        os.write(told, b".")
        while True:
            write(Changed(path, old, new))
            write(Changed(path, new, old))
    os.read(started, 1)
    time.sleep(chance.uniform(0, 0.004))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    os.close(started), os.close(told)
    found.add((open(path, "rb").read() == old, stat.S_IMODE(os.stat(path).st_mode)))
    assert open(path, "rb").read() in (old, new)
print(sorted(found), len(os.listdir(os.path.dirname(path))) - 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked")
def test_killing_the_writer_leaves_the_old_file_or_the_new_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.touch(0o640)
    path.chmod(0o640)
    command = [sys.executable, "-c", WRITER, str(path), str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Who is killed between two names leaves a temporary file, which the next run removes; hardly any is.
    found, _, left = done.stdout.rpartition(" ")
    assert found == f"{[(False, 0o640), (True, 0o640)]}", done.stderr
    assert int(left) < (KILLS // 20 if hasattr(os, "O_TMPFILE") else KILLS)
    path.write_text("x = 1\n")
    run("check", "--fix")
    assert os.listdir(tmp_path) == ["a.py"]


KILLED = """\
import os, signal, sys
from cudalint.hosts.cli import main

os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(["check", "--fix", "."])
"""


def test_what_a_killed_run_leaves_is_cleared_by_the_next(run: Run, pinned: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    assert pinned.read_text(encoding="utf-8") == PINNED
    assert len(os.listdir(tmp_path)) == 2
    assert run("check", "--fix").returncode == 0
    assert os.listdir(tmp_path) == ["pinned.py"]
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are of Linux")
def test_a_run_that_is_killed_while_it_writes_leaves_nothing(pinned: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED.replace("os.replace", "os.fsync")], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["pinned.py"]
    assert pinned.read_text(encoding="utf-8") == PINNED


def test_what_a_living_writer_holds_is_left_alone(tmp_path: Path) -> None:
    other, dead = tmp_path / ".cudalint-abcdefgh.tmp", tmp_path / ".cudalint-12345678.tmp"
    mine = [tmp_path / name for name in (".cudalint-notes.tmp", "cudalint-abcdefgh.tmp", ".cudalint-abcdefgh.tmp.py")]
    for path in (other, dead, *mine):
        path.touch()
    (tmp_path / ".cudalint-aaaaaaaa.tmp").symlink_to(mine[0])
    with other.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        clear_leftovers([str(tmp_path), str(tmp_path / "nothing")])
    assert not dead.exists()
    assert all(path.exists() for path in (other, *mine))
    clear_leftovers([str(tmp_path)])
    assert not other.exists()


def test_a_link_out_of_the_project_is_not_written_through(run: Run, tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
    (project / "pyproject.toml").write_text("[tool.cudalint]\n")
    (outside / "pinned.py").write_text(PINNED, encoding="utf-8")
    (project / "link.py").symlink_to("../outside/pinned.py")
    for named in ((), ("link.py",)):
        done = run("check", "--fix", *named, cwd=project)
        assert done.returncode == 1
        told = (
            f"cudalint: warning: {project / 'link.py'} is not repaired: it is a link to a file outside of the project\n"
        )
        assert done.stderr == told
        assert "CUD403" in done.stdout
        assert (outside / "pinned.py").read_text(encoding="utf-8") == PINNED
        patch = run("check", "--diff", *named, cwd=project)
        assert (patch.returncode, patch.stdout) == (0, "")
    done = run("check", "--fix", ".", "../outside/pinned.py", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (outside / "pinned.py").read_text(encoding="utf-8") == repaired(PINNED)
    assert (project / "link.py").is_symlink()


def test_a_file_and_a_link_to_it_are_repaired_once(run: Run, pinned: Path, tmp_path: Path) -> None:
    (tmp_path / "a_link.py").symlink_to("pinned.py")
    done = run("check", "--fix")
    assert (done.returncode, done.stdout) == (0, "1 repair made. All checks passed!\n")
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)
    assert (tmp_path / "a_link.py").is_symlink()


def test_hard_links_are_neither_parted_nor_written_into(run: Run, pinned: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    os.link(pinned, other)
    done = run("check", "--fix")
    assert done.returncode == 2
    told = f"{pinned} is not repaired: it has 2 names (hard links), which may lie anywhere\n"
    assert done.stderr == f"cudalint: error: {told}"
    assert "CUD403" in done.stdout
    assert os.path.samefile(pinned, other)
    assert other.read_text(encoding="utf-8") == PINNED


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6711, 0o1700, 0o600, 0o666])
def test_no_bit_of_the_mode_changes(run: Run, pinned: Path, mode: int) -> None:
    pinned.chmod(mode)
    before = pinned.stat()
    assert stat.S_IMODE(before.st_mode) == mode
    assert run("check", "--fix").returncode == 0
    after = pinned.stat()
    assert pinned.read_text(encoding="utf-8") == repaired(PINNED)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_attributes_of_a_file_stay(run: Run, pinned: Path) -> None:
    try:
        os.setxattr(pinned, "user.origin", b"here")
    except OSError:
        pytest.skip("the file system keeps no attributes")
    assert run("check", "--fix").returncode == 0
    assert os.getxattr(pinned, "user.origin") == b"here"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_and_the_group_stay(run: Run, pinned: Path) -> None:
    os.chown(pinned, 12345, 54321)
    pinned.chmod(0o6755)
    assert run("check", "--fix").returncode == 0
    after = pinned.stat()
    assert (after.st_uid, after.st_gid, stat.S_IMODE(after.st_mode)) == (12345, 54321, 0o6755)


class _Growing:
    """A check that always has one more repair, and takes more steps each time."""

    def __init__(self, finding: Finding, more: int) -> None:
        self._finding, self._more, self._checks = finding, more, 0

    def check_alone(self, filename: str, data: bytes, admits: object) -> Report:
        self._checks += 1
        place = Span(os.path.abspath(filename), Position(1, 1), Position(1, 1))
        repair = Fix(Applicability.SAFE, "one more row", (Edit(place, "# one more\n"),))
        effort = Effort(nodes_lowered=100, steps=self._checks * self._more)
        return Report(findings=(replace(self._finding, span=place, fix=repair),), effort=effort)


@pytest.mark.parametrize(("more", "rounds"), [(0, 100), (1_000, 6)])
def test_rounds_that_give_the_machine_more_to_do_are_fewer(finding: Finding, more: int, rounds: int) -> None:
    fixed = fix_text(_Growing(finding, more), "train.py", b"x = 1\n")  # type: ignore[arg-type]
    assert fixed.stdin == b"# one more\n" * rounds + b"x = 1\n"
    assert fixed.notes == (f"stopped after {rounds} rounds of repairs; run again for the rest",)
