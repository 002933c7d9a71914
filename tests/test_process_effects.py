"""What stays of a call in its process, seen by what a repair to spawn may promise (`process_effects.txt`)."""

from __future__ import annotations

import builtins
import io
import pickle
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from since_python import is_as_measured

from cudalint.config import Config
from cudalint.finding import Applicability, Fix
from cudalint.models.library import load
from cudalint.models.traits import Trait
from cudalint.session import Session

_SECTION = re.compile(r"^##### (.*)\n", re.MULTILINE)
_, *_PARTS = _SECTION.split((Path(__file__).parent / "process_effects.txt").read_text(encoding="utf-8"))
NAMES = {name: text.split("\n") for name, text in zip(_PARTS[::2], _PARTS[1::2], strict=True)}

PROGRAM = """\
{imports}
import multiprocessing
import torch

{top}

def work(n):
    {read}
    return torch.ones(n, device="cuda").sum().item()


def main(vendor):
    torch.zeros(1, device="cuda")
    {before}
    with multiprocessing.Pool({workers}) as pool:
        print(pool.map(work, [{sent}]))


if __name__ == "__main__":
    main(input())
"""
BUILTINS = frozenset(dir(builtins))
# What has to be imported by more than its first name.
SUBMODULES = {"PIL": "PIL.Image"}
# These have many rows, and programs of their own; others share one with those of the same initial. So new rows rename
# no test: mutation/noticed.txt names tests.
LARGE = frozenset({"cupy", "cv2", "numpy", "operator", "os", "sys", "tensorflow", "torch", "vendor"})
_LIBRARY = re.compile(r"\w+(?=\.)")


def repair(folder: Path, calls: list[str], **parts: str) -> Fix:
    """The repair of a program around some calls."""
    roots = {match for call in calls for match in re.findall(r"^(?:\w+ = )?(?:with )?([A-Za-z_]\w*)\.", call)}
    made = {call.partition(" = ")[0] for call in calls}
    modules = sorted({SUBMODULES.get(root, root) for root in roots - BUILTINS - made - {"vendor", "torch"}})
    given = {"imports": f"import {', '.join(modules)}" if modules else "", "top": "", "read": "pass", "before": "pass"}
    path = folder / "program.py"
    path.write_text(PROGRAM.format(**{"sent": "1, 2", "workers": "1", **given, **parts}))
    (fix,) = [f.fix for f in Session(Config()).check([str(path)]).findings if f.code == "CUD101"]
    assert fix is not None
    return fix


def together(name: str) -> str:
    """What a row shares its program with: rows of the same library, or the same initial."""
    match = _LIBRARY.match(name)
    library = match[0] if match is not None else "builtins"
    return library if library in LARGE else library[0].upper()


def batches(*sections: str) -> Iterator[object]:
    """The rows of sections, in programs of several: a doubt names which of them it is."""
    for section in sections:
        batched: defaultdict[str, list[str]] = defaultdict(list)
        for name in filter(None, NAMES[section]):
            batched[together(name)].append(name)
        for shared, names in batched.items():
            yield pytest.param(names, id=f"{section}: {shared}")


def lines(calls: list[str]) -> str:
    return "\n    ".join(calls)


LEAVES_NOTHING = ("nothing stays", "seen outside of the process")


@pytest.mark.parametrize("names", list(batches(*LEAVES_NOTHING, "nothing stays; what it looks at is not known")))
def test_what_leaves_nothing_is_no_doubt(tmp_path: Path, names: list[str]) -> None:
    calls = [f"{name}()" for name in names]
    fix = repair(tmp_path, calls, before=lines(calls))
    assert fix.reason is None
    assert fix.applicability is Applicability.SAFE


@pytest.mark.parametrize("names", list(batches("an immutable value that follows from its arguments")))
def test_a_value_is_the_same_in_a_fresh_process(tmp_path: Path, names: list[str]) -> None:
    calls = [f"V{n} = {name}()" for n, name in enumerate(names) if not name.startswith("vendor")]
    read = ", ".join(call.partition(" ")[0] for call in calls)
    fix = repair(tmp_path, calls, top="\n".join(calls), read=read)
    assert fix.reason is None
    assert fix.applicability is Applicability.SAFE


@pytest.mark.parametrize("names", list(batches("an object that nothing else holds", "an object that no pickler takes")))
def test_what_is_done_to_an_object_of_ones_own_stays_in_it(tmp_path: Path, names: list[str]) -> None:
    calls = [line for n, name in enumerate(names) for line in (f"v{n} = {name}()", f"v{n}.mark = {n}")]
    fix = repair(tmp_path, calls, before=lines(calls))
    assert fix.reason is None
    assert fix.applicability is Applicability.SAFE


@pytest.mark.parametrize("names", list(batches(*LEAVES_NOTHING)))
def test_what_leaves_nothing_tells_a_worker_nothing(tmp_path: Path, names: list[str]) -> None:
    calls = [f"{name.replace('vendor.', OBJECT)}()" for name in names if not LOOKS & {t.kind for t in traits(name)}]
    fix = repair(tmp_path, calls, read=lines(calls))
    assert fix.reason is None
    assert fix.applicability is Applicability.SAFE


@pytest.mark.parametrize("name", [name for name in NAMES["its import shows nothing"] if name])
def test_an_import_that_shows_nothing_is_no_doubt(tmp_path: Path, name: str) -> None:
    assert repair(tmp_path, [], top=f"import {name}").reason is None


@pytest.mark.parametrize("name", [name for name in NAMES["its import shows something"] if name])
def test_each_worker_repeats_what_an_import_shows(tmp_path: Path, name: str) -> None:
    assert f"what `import {name}` shows or does" in (repair(tmp_path, [], top=f"import {name}").reason or "")


@pytest.mark.parametrize("name", [name for name in NAMES["it shows a line where all do"] if name])
def test_several_workers_show_lines_in_another_order(tmp_path: Path, name: str) -> None:
    call = f"{name.replace('vendor.', OBJECT)}()"
    one, several = (repair(tmp_path, [call], read=call, workers=str(n)) for n in (1, 2))
    assert "shows in which order several workers" in (several.reason or "")
    assert "shows in which order several workers" not in (one.reason or "")


@pytest.mark.parametrize(
    "name", [name for name in NAMES["a part of multiprocessing that is about how it starts processes"] if name]
)
def test_what_is_about_how_processes_start_is_another_thing(tmp_path: Path, name: str) -> None:
    module = name.rpartition(".")[0]
    fix = repair(tmp_path, [], top=f"import {module}", before=f"print({name})")
    assert f"the program reads `{name}`, which is another one" in (fix.reason or "")


@pytest.mark.parametrize("name", [name for name in NAMES["it draws random numbers"] if name])
def test_a_worker_seeds_what_it_draws(tmp_path: Path, name: str) -> None:
    name = name.replace("vendor.", OBJECT)
    fix = repair(tmp_path, [f"{name}()"], read=f"{name}()")
    assert fix.applicability is Applicability.UNSAFE
    assert re.search(rf"did not seed what `\S*{name.rpartition('.')[2]}\(\)` draws", fix.reason or "")
    seeds = {"random": "random.seed(n)", "numpy": "numpy.random.seed(n)"}
    seed = seeds.get(name.partition(".")[0], "torch.manual_seed(n)")
    assert repair(tmp_path, [f"{name}()"], read=f"{seed}\n    {name}()").applicability is Applicability.SAFE


@pytest.mark.parametrize("name", [name for name in NAMES["it is filled with random numbers"] if name])
def test_a_worker_seeds_the_weights_that_it_computes_with(tmp_path: Path, name: str) -> None:
    made = [f"made = {name}()", "made(torch.ones(1, device='cuda'))"]
    fix = repair(tmp_path, made, read=lines(made))
    assert fix.applicability is Applicability.UNSAFE
    assert "random weights that it did not seed" in (fix.reason or "")
    for other in ("torch.manual_seed(n)", None):
        seeded = [other, *made] if other is not None else [made[0], "made.load_state_dict(torch.load('w'))", made[1]]
        assert repair(tmp_path, made, read=lines(seeded)).reason is None


@pytest.mark.parametrize("name", [name for name in NAMES["an object that no pickler takes"] if name])
def test_what_no_pickler_takes_is_not_sent(tmp_path: Path, name: str) -> None:
    call = f"made = {name}()"
    fix = repair(tmp_path, [call], before=call, sent="made")
    assert fix.applicability is Applicability.DISPLAY


# What has one of these traits tells something of its process, or of how long workers take: other tests are about it.
LOOKS = frozenset({"reflects", "tells-thread", "tells-progress", "counts-children"})
LIBRARY = load()
# A worker has it from nobody, and nothing is known of it.
OBJECT = "hashlib.md5()."


def traits(name: str) -> Iterator[Trait]:
    path = LIBRARY.canonical(f"builtins.{name}" if name in BUILTINS else name)
    return (found for kind in LOOKS if (found := LIBRARY.traits.of(path, kind)) is not None)


def real(name: str) -> Any:
    return pkgutil.resolve_name(f"builtins.{name}" if name.partition(".")[0] in BUILTINS else name)


# What some of them need to be made.
NEEDS: dict[str, tuple[Any, ...]] = {
    "open": (__file__,),
    "io.open": (__file__,),
    "threading.Barrier": (1,),
    "contextvars.ContextVar": ("name",),
    "sqlite3.connect": (":memory:",),
    "weakref.ref": (Path,),
    "memoryview": (b"",),
    "csv.reader": ([],),
    "csv.DictReader": ([],),
    "csv.writer": (io.StringIO(),),
    "csv.DictWriter": (io.StringIO(), ["name"]),
}


@pytest.mark.parametrize("name", [name for name in NAMES["an object that no pickler takes"] if name])
def test_no_pickler_really_takes_them(name: str) -> None:
    made = real(name)(*NEEDS.get(name, ()))
    try:
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            pickle.dumps(made)
    finally:
        getattr(made, "close", list)()


OF_PYTHON = sorted(
    {
        name
        for names in NAMES.values()
        for name in names
        if "(" not in name and name.partition(".")[0] in {*sys.stdlib_module_names, *BUILTINS}
    }
)


def test_the_functions_of_python_exist() -> None:
    assert len(OF_PYTHON) > 300
    missing = []
    for name in filter(is_as_measured, OF_PYTHON):
        try:
            real(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


def test_what_a_pickler_takes_is_sent(tmp_path: Path) -> None:
    call = "made = collections.Counter()"
    assert repair(tmp_path, [call], before=call, sent="made").applicability is not Applicability.DISPLAY


@pytest.mark.parametrize("names", list(batches("it lasts as long as its block")))
def test_what_a_block_changes_ends_with_it(tmp_path: Path, names: list[str]) -> None:
    calls = [f"with {name}(): pass" for name in names]
    fix = repair(tmp_path, calls, before=lines(calls))
    assert fix.reason is None
    assert fix.applicability is Applicability.SAFE


# Nothing of the wider name says so: what a fork inherits and a fresh process lacks.
STAYS = {
    "logging.basicConfig()": "logging.basicConfig()",
    "random.seed(1)": "random.seed()",
    "time.tzset()": "time.tzset()",
    "multiprocessing.set_executable('python3')": "multiprocessing.set_executable()",
    "multiprocessing.log_to_stderr()": "multiprocessing.log_to_stderr()",
    "multiprocessing.get_logger()": "multiprocessing.get_logger()",
    "threading.setprofile(None)": "threading.setprofile()",
    "threading.settrace(None)": "threading.settrace()",
    "threading.stack_size(1 << 20)": "threading.stack_size()",
    "asyncio.set_event_loop(None)": "asyncio.set_event_loop()",
    "asyncio.set_event_loop_policy(None)": "asyncio.set_event_loop_policy()",
    "contextlib.chdir('/').__enter__()": "contextlib.chdir()",
    "contextlib.redirect_stdout(None).__enter__()": "contextlib.redirect_stdout()",
    "contextlib.redirect_stderr(None).__enter__()": "contextlib.redirect_stderr()",
    "sys.stdout.reconfigure(encoding='utf-8')": "sys.stdout.reconfigure()",
    "sys.stderr.reconfigure(encoding='utf-8')": "sys.stderr.reconfigure()",
    "threading.setprofile_all_threads(None)": "threading.setprofile_all_threads()",
    "threading.settrace_all_threads(None)": "threading.settrace_all_threads()",
    "numpy.set_string_function(str)": "numpy.set_string_function()",
    "numpy.random.set_bit_generator(None)": "numpy.random.set_bit_generator()",
    "scipy.special.seterr(all='raise')": "scipy.special.seterr()",
    "scipy.special.errstate(all='raise').__enter__()": "scipy.special.errstate()",
    "scipy.fft.set_global_backend('scipy')": "scipy.fft.set_global_backend()",
    "scipy.fft.register_backend('scipy')": "scipy.fft.register_backend()",
    "scipy.fft.set_backend('scipy').__enter__()": "scipy.fft.set_backend()",
    "scipy.fft.skip_backend('scipy').__enter__()": "scipy.fft.skip_backend()",
    "scipy.fft.set_workers(2).__enter__()": "scipy.fft.set_workers()",
}


# What a worker has to do to feel it.
FELT = {"logging.basicConfig()": "logging.info(n)", "random.seed(1)": "random.random()"}


@pytest.mark.parametrize("call", STAYS)
def test_what_stays_in_a_process_is_a_doubt(tmp_path: Path, call: str) -> None:
    fix = repair(tmp_path, [call], before=call, read=FELT.get(call, "pass"))
    assert fix.applicability is Applicability.UNSAFE
    assert STAYS[call] in (fix.reason or "")


# A process that is spawned gets it when it starts.
HANDED = ("os.chdir('data')", "os.fchdir(3)", "sys.path.append('lib')", "sys.path.extend(['lib'])", "os.umask(7)")


@pytest.mark.parametrize("call", HANDED)
def test_what_a_spawned_process_is_given_is_no_doubt(tmp_path: Path, call: str) -> None:
    fix = repair(tmp_path, [call], before=call)
    assert fix.reason is None
    assert fix.applicability is Applicability.SAFE


def test_what_is_shown_again_by_each_process_is_a_doubt(tmp_path: Path) -> None:
    fix = repair(tmp_path, ["print('loading')"], top="print('loading')")
    assert fix.applicability is Applicability.UNSAFE
    assert "print()" in (fix.reason or "")
