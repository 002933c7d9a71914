"""Small projects of several files have exactly the findings that their markers name."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixture_markers import known_misses
from small_projects import FOLDER, Place, cases, files, findings, marked, places

from cudalint.project import assembling
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

PROJECTS = [
    pytest.param(text, id=f"{path.stem}: {name}")
    for path in sorted(FOLDER.glob("*.txt"))
    for name, text in cases(path.name).items()
]


@pytest.mark.parametrize("text", PROJECTS)
def test_findings_match_the_markers(text: str) -> None:
    given = files(text)
    assert places(findings(given)) == marked(given)


@pytest.mark.parametrize("name", cases("misses.txt"))
def test_known_misses_are_still_missed_and_say_why(name: str) -> None:
    given = files(cases("misses.txt")[name])
    missed = [(path, *miss) for path, text in given.items() for miss in known_misses(text)]
    assert missed
    for path, row, code, reason in missed:
        assert reason, f"{path}:{row}: expect-missing needs a reason in parentheses"
        assert Place(path, row, code) not in places(findings(given)), "it is found now: make it an expect marker"


LIBRARY = """\
=== pkg/__init__.py
=== pkg/cli.py
from .runner import run
def main():
    run([1])
=== pkg/runner.py
from multiprocessing import Pool
import torch
def compute(n):
    return torch.ones(n, device="cuda").sum().item()
def run(items):
    with Pool(1) as pool:
        return pool.map(compute, items)
"""
METADATA = {
    "pyproject.toml": '[project.scripts]\npkg = "pkg.cli:main"\n',
    "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    pkg = pkg.cli:main\n",
    "setup.py": 'from setuptools import setup\nsetup(entry_points={"console_scripts": ["pkg = pkg.cli:main"]})\n',
}


@pytest.mark.parametrize("name", METADATA)
def test_a_console_script_is_an_entry(tmp_path: Path, name: str) -> None:
    texts = {f"{tmp_path}/{path}": text for path, text in files(LIBRARY).items()}
    given = [SourceFile(path, text, text.encode()) for path, text in texts.items()]
    assert [f.code for f in analyse(given, Options(), root=str(tmp_path)).findings] == ["CUD102"]
    (tmp_path / name).write_text(METADATA[name], encoding="utf-8")
    assert analyse(given, Options(), root=str(tmp_path)).findings == ()


SCRIPT = """\
=== pkg/__init__.py
=== pkg/cli.py
import argparse
import multiprocessing as mp
import torch
def work(n):
    return torch.ones(n, device="cuda").sum().item()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--start", choices=["{other}", "spawn"], default="spawn")
    args = parser.parse_args()
    torch.zeros(1, device="cuda")
    mp.get_context(args.start).Process(target=work, args=(1,)).start()
"""


@pytest.mark.parametrize(("other", "codes"), [("fork", ["CUD102"]), ("forkserver", [])])
def test_users_of_a_console_script_choose_among_the_words_of_an_option(
    tmp_path: Path, other: str, codes: list[str]
) -> None:
    texts = files(SCRIPT.format(other=other)).items()
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in texts]
    (tmp_path / "pyproject.toml").write_text(METADATA["pyproject.toml"], encoding="utf-8")
    found = analyse(given, Options(), root=str(tmp_path)).findings
    assert [f.code for f in found] == codes
    assert {f.condition for f in found} == ({f"if `--start {other}` is given"} if codes else set())


def test_bad_metadata_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n", encoding="utf-8")
    (tmp_path / "setup.cfg").write_bytes(b"\xff\xfe\x00")
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in files(LIBRARY).items()]
    assert [f.code for f in analyse(given, Options(), root=str(tmp_path)).findings] == ["CUD102"]


OF_NAMESPACE = """\
=== src/f5_tts/eval/run.py
import multiprocessing as mp
import torch
from f5_tts.eval.parts import score
def main():
    assert torch.cuda.is_available()
    with mp.Pool(processes=8) as pool:
        print(pool.map(score, range(8)))
if __name__ == "__main__":
    main()
=== src/f5_tts/eval/parts.py
import torch
def score(rank):
    torch.cuda.set_device(rank)
    return torch.ones(2).cuda().sum().item()
"""


@pytest.mark.parametrize(("name", "codes"), [("f5-tts", ["CUD101"]), ("voices", [])])
def test_a_folder_without_init_is_the_package_that_the_project_is_installed_as(
    tmp_path: Path, name: str, codes: list[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n', encoding="utf-8")
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in files(OF_NAMESPACE).items()]
    assert [f.code for f in analyse(given, Options(), root=str(tmp_path)).findings] == codes


OF_LIBRARY = """\
=== hyperopt/__init__.py
=== hyperopt/fmin.py
def fmin(fn, space):
    return space
=== tools/search.py
import multiprocessing as mp
import torch
from hyperopt.fmin import fmin
def job(space=None):
    torch.cuda.init()
def use():
    torch.zeros(1).cuda()
if __name__ == "__main__":
    fmin(job, {})
    mp.get_context("fork").Process(target=use).start()
"""
NAMES = {
    "pyproject.toml": [
        '[project]\nname = "Hyperopt"\n',
        '[tool.poetry]\nname = "hyperopt"\n',
        '[project]\nname = "my-hyperopt"\n',
    ],
    "setup.cfg": ["[metadata]\nname = hyperopt\n"],
    "setup.py": [
        'from setuptools import setup\nsetup(name="hyperopt")\n',
        'from setuptools import setup\nNAME = "".join(["hyper", "opt"])\nsetup(name=NAME)\n',
    ],
}


@pytest.mark.parametrize(("name", "said"), [(name, said) for name, texts in NAMES.items() for said in texts])
def test_a_project_that_is_only_called_as_a_library_is_read_itself(tmp_path: Path, name: str, said: str) -> None:
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in files(OF_LIBRARY).items()]
    assert analyse(given, Options(), root=str(tmp_path)).findings == ()
    (tmp_path / name).write_text(said.replace("yperopt", "yperion"), encoding="utf-8")
    assert "yperopt" not in said or analyse(given, Options(), root=str(tmp_path)).findings == ()
    (tmp_path / name).write_text(said, encoding="utf-8")
    assert [f.code for f in analyse(given, Options(), root=str(tmp_path)).findings] == ["CUD101"]


BESIDE_LIBRARY = """\
=== src/anomalib/__init__.py
=== src/anomalib/warm.py
import torch
def warm_up():
    torch.cuda.init()
=== tools/run.py
import multiprocessing as mp
import torch
from anomalib.warm import warm_up
def use():
    torch.zeros(1).cuda()
if __name__ == "__main__":
    warm_up()
    mp.get_context("fork").Process(target=use).start()
"""
TESTS_BESIDE_LIBRARY = """\
=== tests/helpers.py
from anomalib.warm import warm_up
def prepared():
    warm_up()
=== tests/test_run.py
import multiprocessing as mp
import torch
from tests.helpers import prepared
def use():
    torch.zeros(1).cuda()
def test_run():
    prepared()
    mp.get_context("fork").Process(target=use).start()
"""


def test_scripts_beside_a_library_see_its_source_and_tests_do_where_that_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "anomalib"\n', encoding="utf-8")
    texts = files(BESIDE_LIBRARY + TESTS_BESIDE_LIBRARY)
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in texts.items()]

    def found() -> list[str]:
        findings = analyse(given, Options(), root=str(tmp_path)).findings
        return [f"{Path(f.span.filename).name} {f.code}" for f in findings]

    assert found() == ["test_run.py CUD101", "run.py CUD101"]
    monkeypatch.setattr(assembling, "LARGE_LIBRARY", 0)
    assert found() == ["run.py CUD101"]


ON_THE_CPU = """\
=== embed.py
import multiprocessing as mp
import torch
from transformers import AutoModel
def use(n):
    return torch.ones(n, device="cuda").sum().item()
if __name__ == "__main__":
    AutoModel.from_pretrained("bert-base-uncased")(torch.ones(1))
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(use, [1]))
"""
OLDER = [
    ("requirements.txt", "torch==2.4\ntransformers==4.44.2\n"),
    ("requirements.txt", "transformers[torch]>=4.40,<5\n"),
    ("requirements.txt", "transformers~=4.44\n"),
    ("requirements.in", "transformers==4.*\n"),
    ("environment.yml", "dependencies:\n  - transformers=4.44\n"),
    ("pyproject.toml", '[project]\ndependencies = ["transformers >= 4.40, < 5.0"]\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "^4.44"\n'),
    ("setup.py", 'setup(install_requires=["transformers<=4.57"])\n'),
    ("requirements.txt", f"transformers==4.{'4' * 5000}\n"),
    ("uv.lock", '[[package]]\nname = "transformers"\nversion = "4.57.1"\n'),
]
NEWER = [
    ("requirements.txt", "transformers>=4.40\n"),
    ("requirements.txt", "transformers==5.1\n"),
    ("requirements.txt", "transformers<=5\n"),
    ("requirements.txt", "sentence-transformers<5\n"),
    ("poetry.lock", '[[package]]\nname = "transformers"\nversion = "5.2.0"\n'),
    (
        "pyproject.toml",
        '[project]\ndependencies = ["transformers"]\noptional-dependencies.a = ["transformers>=4,!=4.44"]\n',
    ),
]


@pytest.mark.parametrize(("name", "text", "codes"), [*((*o, []) for o in OLDER), *((*n, ["CUD101"]) for n in NEWER)])
def test_what_newer_releases_do_is_left_out_where_a_project_has_older_ones(
    tmp_path: Path, name: str, text: str, codes: list[str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in files(ON_THE_CPU).items()]
    assert [f.code for f in analyse(given, Options(), root=str(tmp_path)).findings] == codes


# What is said of the same functions in two releases, and what no entry says anything of in others.
OF_RELEASES = """\
=== tracked.py
import multiprocessing as mp
import torch
from boxmot import BotSort
def use(n):
    return torch.ones(n, device="cuda").sum().item()
if __name__ == "__main__":
    tracker = BotSort(reid_weights="a.pt", device="cuda", half=False)
    with mp.get_context("fork").Pool(1) as pool:
        print(tracker, pool.map(use, [1]))  # boxmot
=== read.py
import multiprocessing as mp
import torch
from surya.foundation import FoundationPredictor
def use(n):
    return torch.ones(n, device="cuda").sum().item()
if __name__ == "__main__":
    FoundationPredictor()
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(use, [1]))  # surya
=== scheduled.py
import torch
from apscheduler.executors.pool import ProcessPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler
def use():
    return torch.ones(1, device="cuda").sum().item()
if __name__ == "__main__":
    torch.cuda.init()
    scheduler = BlockingScheduler(executors={"default": ProcessPoolExecutor(1)})
    scheduler.add_job(use)  # apscheduler
    scheduler.start()
=== used.py
import torch
def use():
    return torch.ones(1, device="cuda").sum().item()
=== served.py
import multiprocessing as mp
import torch
from prefect import flow
from used import use
@flow
def embed():
    torch.cuda.init()
    worker = mp.Process(target=use)  # prefect
    worker.start()
    worker.join()
if __name__ == "__main__":
    embed.serve(name="x")
=== served_alone.py
import multiprocessing as mp
from prefect import flow
from used import use
@flow
def embed():
    worker = mp.get_context("fork").Process(target=use)
    worker.start()
    worker.join()
if __name__ == "__main__":
    embed.serve(name="x")
"""


# KoljaB/RealtimeSTT#89: it spawned its processes by itself, and later settles the start method when it is imported.
OF_A_RECORDER = """\
=== heard.py
from RealtimeSTT import AudioToTextRecorder
recorder = AudioToTextRecorder(model="large-v2", use_microphone=False)  # spawned
while True:
    recorder.text(print)
=== heard_ok.py
from RealtimeSTT import AudioToTextRecorder
if __name__ == "__main__":
    recorder = AudioToTextRecorder(model="large-v2", use_microphone=False)
    while True:
        recorder.text(print)
=== settled.py
import multiprocessing as mp
import torch
from RealtimeSTT import AudioToTextRecorder
if __name__ == "__main__":
    mp.set_start_method("spawn")  # settled
    torch.ones(3).cuda()
"""


@pytest.mark.parametrize(
    ("program", "text", "expected"),
    [
        (OF_RELEASES, "", []),
        (OF_RELEASES, "boxmot==18.0\nsurya-ocr~=0.16.7\napscheduler<3.11\n", ["boxmot", "surya", "apscheduler"]),
        (OF_RELEASES, "boxmot==19.0\nsurya_ocr>=0.20\nAPScheduler>=3.11,<4\n", []),
        (OF_RELEASES, "boxmot\nsurya-ocr[all]<1\napscheduler!=3.10.3\n", []),
        (OF_RELEASES, "boxmot>=13\nsurya-ocr>=0.16\napscheduler>=3.6\n", ["boxmot if", "surya if", "apscheduler if"]),
        (OF_RELEASES, "prefect==3.4.20\n", ["prefect"]),
        (OF_RELEASES, "prefect==3.4.21\n", []),
        (
            OF_RELEASES,
            "boxmot>=13,<25\nsurya-ocr>=0.16,<0.20\napscheduler>=3.6,<=3.11\n",
            ["boxmot if", "surya", "apscheduler if"],
        ),
        (OF_A_RECORDER, "realtimestt==0.2.0\n", ["spawned"]),
        (OF_A_RECORDER, "realtimestt==0.3.0\n", []),
        (OF_A_RECORDER, "realtimestt>=1\n", ["settled"]),
    ],
)
def test_the_releases_that_a_project_admits_decide_what_functions_do(
    tmp_path: Path, program: str, text: str, expected: list[str]
) -> None:
    (tmp_path / "requirements.txt").write_text(text, encoding="utf-8")
    given = [SourceFile(f"{tmp_path}/{path}", text, text.encode()) for path, text in files(program).items()]
    rows = {source.path: source.text.splitlines() for source in given}
    said = [
        rows[f.span.filename][f.span.start.row - 1].partition("# ")[2]
        + (" if" if "older than" in (f.condition or "") else "")
        for f in analyse(given, Options(), root=str(tmp_path)).findings
    ]
    assert sorted(said) == sorted(expected)


def test_recursion_over_what_nobody_knows_costs_little() -> None:
    text = (
        "import multiprocessing as mp\nimport torch\n\n\ndef to_device(data, device):\n"
        "    if isinstance(data, dict):\n        return {k: to_device(v, device) for k, v in data.items()}\n"
        "    if isinstance(data, list):\n        return [to_device(v, device) for v in data]\n"
        "    if isinstance(data, tuple):\n        return tuple(to_device(v, device) for v in data)\n"
        "    return data.to(device)\n\n\n"
        'if __name__ == "__main__":\n    import json\n    to_device(json.load(open("batch")), torch.device("cuda"))\n'
        '    mp.set_start_method("fork")\n'
    )
    assert analyse([SourceFile("program.py", text, text.encode())], Options()).work.steps < 40


@pytest.mark.parametrize(
    ("signature", "call"),
    [
        ("event, handler, *args, **kwargs", "each, handler, *args, **kwargs"),
        ("event, handler, level=None", "each, handler, level=event.level"),
        ("event, handler, others=(0, 1)", "each, handler, others=event.others"),
    ],
)
def test_recursion_that_gathers_its_arguments_costs_as_little(signature: str, call: str) -> None:
    text = (
        "import multiprocessing as mp\nimport torch\n\n\n"
        f"def attach({signature}):\n"
        f"    if event.many:\n        for i, each in enumerate(event):\n            attach({call})\n"
        f"    for i, each in enumerate(event.more):\n        attach({call})\n"
        "    handler(event)\n\n\n"
        'if __name__ == "__main__":\n    import json\n    attach(json.load(open("event")), print)\n'
        '    torch.cuda.init()\n    mp.get_context("fork").Pool(2)\n'
    )
    assert analyse([SourceFile("program.py", text, text.encode())], Options()).work.steps < 150


@pytest.mark.parametrize(
    ("path", "guard", "entries"),
    [("test_job.py", "", 2), ("test_job.py", 'if __name__ == "__main__":\n    test_job()\n', 3), ("job.py", "", 1)],
)
def test_a_test_module_is_a_program_only_by_its_own_word(path: str, guard: str, entries: int) -> None:
    body = "torch.cuda.init()\n    multiprocessing.Process(target=print).start()"
    text = f"import multiprocessing\nimport torch\n\n\ndef test_job():\n    {body}\n\n\n{guard}"
    for alone in (False, True):
        assert analyse([SourceFile(path, text, text.encode())], Options(), alone=alone).work.entries == entries
