"""The ecosystem check: its list is sound, its comparison notices, and two small packages are checked for real."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

sys.path.insert(0, str(Path(__file__).parent / "ecosystem"))

import check
import packages
import reviewed
import usage
from reviewed import Finding, Verdict

RIGHT = Finding("p", "1", "a.py", "CUD101", "pool.map(f, xs)", "error")
SECOND = Finding("p", "1", "b.py", "CUD501", "init_process_group()", "warning")


def written(path: Path, *findings: Finding, verdict: str = "right", reason: str = "it is so") -> Path:
    stubs = [f.as_stub().replace('verdict = ""', f'verdict = "{verdict}"') for f in findings]
    text = "\n".join(stub.replace('reason = ""', f'reason = "{reason}"') for stub in stubs)
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_not_in_the_list_and_what_is_gone_are_told(tmp_path: Path) -> None:
    known = reviewed.read(written(tmp_path / "list.toml", RIGHT))
    assert reviewed.compare(Counter([RIGHT]), known, ["p-1"]) == reviewed.Difference([], [])
    assert reviewed.compare(Counter([RIGHT, SECOND]), known, ["p-1"]).unreviewed == [SECOND]
    assert reviewed.compare(Counter([RIGHT, RIGHT]), known, ["p-1"]).unreviewed == [RIGHT]
    assert reviewed.compare(Counter(), known, ["p-1"]).vanished == [RIGHT]


def test_a_package_that_was_not_checked_loses_nothing(tmp_path: Path) -> None:
    known = reviewed.read(written(tmp_path / "list.toml", RIGHT))
    assert reviewed.compare(Counter(), known, ["q-1"]).vanished == []


@pytest.mark.parametrize(("verdict", "reason"), [("", "it is so"), ("fine", "it is so"), ("right", " ")])
def test_a_finding_without_verdict_or_reason_is_not_reviewed(tmp_path: Path, verdict: str, reason: str) -> None:
    path = written(tmp_path / "list.toml", RIGHT, verdict=verdict, reason=reason)
    with pytest.raises(reviewed.BadList, match="lacks a verdict or a reason"):
        reviewed.read(path)


def test_of_findings_with_one_text_the_worst_verdict_counts(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    texts = [written(path, RIGHT, verdict=verdict).read_text() for verdict in ("wrong", "right")]
    path.write_text("".join(texts))
    known = reviewed.read(path)
    assert (known.count[RIGHT], known.verdicts[RIGHT]) == (2, Verdict.WRONG)


def test_arguable_findings_count_as_wrong() -> None:
    verdicts = {RIGHT: Verdict.RIGHT, SECOND: Verdict.RIGHT}
    found = Counter([RIGHT, SECOND])
    known = reviewed.Reviewed(found, verdicts)
    assert check.share(found, known, "error", 0.0)[1]
    for i in range(2):
        doubtful = Finding("p", "1", f"{i}.py", "CUD101", "pool.map(f, xs)", "error" if i else "warning")
        verdicts[doubtful] = Verdict.ARGUABLE
        found[doubtful] += 1
    text, enough = check.share(found, known, "error", 0.0)
    assert "wrong or arguable: 1" in text
    assert not enough
    assert not check.share(found, known, "warning", 0.2)[1]
    assert check.share(found, known, "warning", 0.5)[1]


def program_of_one_pool(folder: Path) -> packages.Package:
    package = packages.Package("p", "1", sdist=True, tiny=False, python="3.11")
    (folder / package.folder).mkdir(parents=True)
    text = "import multiprocessing as mp\nimport torch\n\n\ndef work(n):\n    return torch.ones(n).cuda()\n\n\n"
    text += 'if __name__ == "__main__":\n    torch.cuda.init()\n    mp.get_context("fork").Pool(1).map(work, [1])\n'
    (folder / package.folder / "main.py").write_text(text, encoding="utf-8")
    return package


def test_what_was_found_is_kept_until_the_package_changes(tmp_path: Path) -> None:
    package = program_of_one_pool(tmp_path)
    folder, results = tmp_path / package.folder, tmp_path / "results"
    first = check.check(package, folder, results, check.Means(300))
    assert [finding.code for finding in first.findings] == ["CUD101"]
    assert check.check(package, folder, results, check.Means(300)) == first
    (folder / "main.py").write_text("import torch\n", encoding="utf-8")
    assert not check.check(package, folder, results, check.Means(300)).findings


def test_a_package_over_its_limit_is_named_and_nothing_is_concluded(tmp_path: Path) -> None:
    package = program_of_one_pool(tmp_path)
    folder, results = tmp_path / package.folder, tmp_path / "results"
    ended = check.check(package, folder, results, check.Means(0.01))
    assert ended.outcome.over
    assert not ended.findings
    assert "not finished" in ended.row()
    assert check.check(package, folder, results, check.Means(0.01)) == ended
    assert check.check(package, folder, results, check.Means(300)).findings


def three_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[packages.Package]:
    """A package with a broken pool, a much larger one after it and an empty one, as all that is pinned."""
    pool = program_of_one_pool(folder)
    large = packages.Package("a", "1", sdist=True, tiny=False, python="3.11")
    empty = packages.Package("z", "1", sdist=True, tiny=False, python="3.11")
    for package, text in ((large, "x = 1\n" * 100), (empty, "")):
        (folder / package.folder).mkdir()
        (folder / package.folder / "main.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(packages, "pinned", lambda: [pool, large, empty])
    return [pool, large, empty]


def test_several_packages_at_once_give_what_one_after_the_other_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = three_packages(tmp_path / "sources", monkeypatch)
    said = []
    for number in ("1", "3"):
        sources, kept = ["--sources", str(tmp_path / "sources")], ["--keep", str(tmp_path / number)]
        assert check.main([*sources, *kept, "--jobs", number]) == 1
        out = capsys.readouterr().out
        assert [line.split()[0] for line in out.splitlines()[1:4]] == [package.folder for package in listed]
        said.append(out.partition("\n\n")[2])
    assert said[0] == said[1]
    assert 'code = "CUD101"' in said[0]


def test_results_of_another_machine_need_neither_sources_nor_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, large, empty = three_packages(tmp_path / "sources", monkeypatch)
    check.main(["--sources", str(tmp_path / "sources"), "--keep", str(tmp_path / "kept"), "--jobs", "2"])
    there = capsys.readouterr().out
    monkeypatch.setattr(packages, "unpacked", None)
    results = tmp_path / "kept" / "results"
    assert check.main(["--results", str(results)]) == 1
    assert capsys.readouterr().out == there
    (results / f"{empty.folder}.json").unlink()
    other = (results / f"{large.folder}.json").read_text(encoding="utf-8").replace('"cudalint": "', '"cudalint": "0')
    (results / f"{large.folder}.json").write_text(other, encoding="utf-8")
    assert check.main(["--results", str(results)]) == 1
    out = capsys.readouterr().out
    assert f"failed: {empty.folder}: no result" in out
    assert f"failed: {large.folder}: a result of another state of cudalint" in out


def test_packages_that_are_not_among_the_sources_are_named_and_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, large, empty = three_packages(tmp_path / "sources", monkeypatch)
    (tmp_path / "sources" / empty.folder / "main.py").unlink()
    (tmp_path / "sources" / empty.folder).rmdir()
    check.main(["--sources", str(tmp_path / "sources"), "--keep", str(tmp_path / "kept"), "--only", "z", "--only", "a"])
    out = capsys.readouterr().out
    assert f"not in {tmp_path / 'sources'}: {empty.folder}" in out
    assert [path.name for path in (tmp_path / "kept" / "results").iterdir()] == [f"{large.folder}.json"]


def test_checks_wait_for_processes_and_no_two_wait_for_each_other() -> None:
    shared, most, running = check.Shared(4), [], [0]
    lock = threading.Lock()

    def one(wanted: int) -> None:
        with shared.processes(wanted) as number:
            with lock:
                running[0] += number
                most.append(running[0])
            with lock:
                running[0] -= number

    threads = [threading.Thread(target=one, args=(wanted,)) for wanted in [0, 3, 9, 2, 3, 1] * 20]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(most) == 120
    assert max(most) == 4


def test_what_was_started_ends_with_the_run_that_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first package has failed here while the others still run."""
    listed = three_packages(tmp_path, monkeypatch)
    ended: list[str] = []

    def check_one(package: packages.Package, folder: Path, results: Path, means: check.Means) -> check.Run:
        if package == listed[0]:
            raise KeyboardInterrupt
        try:
            with open(os.devnull, "wb") as nothing:
                command = [sys.executable, "-c", "while True: pass"]
                environment, stopped = dict(os.environ), means.stopped
                usage.used(
                    command,
                    cwd=folder,
                    environment=environment,
                    output=nothing,
                    errors=nothing,
                    limit=60,
                    stopped=stopped,
                )
        except usage.Interrupted:
            ended.append(package.name)
            raise
        raise AssertionError("an endless program ended")

    monkeypatch.setattr(check, "check", check_one)
    with pytest.raises(KeyboardInterrupt):
        check.main(["--sources", str(tmp_path), "--keep", str(tmp_path / "kept"), "--jobs", "3"])
    assert set(ended) <= {"a", "z"}
    assert ended


def test_the_interval_is_wide_for_few_and_narrow_for_many() -> None:
    few, many = reviewed.wilson(9, 10), reviewed.wilson(900, 1000)
    assert few[0] < many[0] < 0.9 < many[1] < few[1] < 1
    assert reviewed.wilson(10, 10)[0] < 1


def test_the_list_speaks_of_pinned_packages() -> None:
    pinned = {package.folder for package in packages.pinned()}
    listed = {f"{f.package}-{f.version}" for f in reviewed.read().count}
    assert len(pinned) >= 150
    assert listed <= pinned


def test_a_default_queue_goes_to_a_default_process_whatever_the_default_is() -> None:
    text = (
        "import multiprocessing as mp\nimport torch\n\n\ndef work(q):\n    q.put(1)\n\n\n"
        'if __name__ == "__main__":\n    q = mp.Queue()\n    p = mp.Process(target=work, args=(q,))\n    p.start()\n'
    )
    source = SourceFile("program.py", text, text.encode())
    assert not analyse([source], Options(target_versions=((3, 10), (3, 14)))).findings
    foreign = text.replace("p = mp.Process", 'p = mp.get_context("spawn").Process')
    source = SourceFile("program.py", foreign, foreign.encode())
    found = analyse([source], Options(target_versions=((3, 10), (3, 14)))).findings
    assert [f.code for f in found] == ["CUD108"]


def test_models_count_where_the_library_itself_is_read() -> None:
    """What was measured of a library says more than its source, which ends in native code."""
    test = """
import multiprocessing as mp

from numba import cuda


def child():
    cuda.to_device([1])


def test_fork():
    cuda.current_context()
    p = mp.get_context("fork").Process(target=child)
    p.start()
"""
    files = {
        "numba/__init__.py": "",
        "numba/cuda/__init__.py": "def current_context():\n    _native()\n\n\ndef to_device(x):\n    _send(x)\n",
        "numba/cuda/tests/__init__.py": "",
        "numba/cuda/tests/test_fork.py": test,
    }
    sources = [SourceFile(path, text, text.encode()) for path, text in files.items()]
    assert [f.code for f in analyse(sources, Options()).findings] == ["CUD101"]


def test_a_package_that_extends_its_path_is_imported_by_a_spawned_child() -> None:
    main = """
import multiprocessing as mp

import torch

from pkg.work import work

if __name__ == "__main__":
    mp.get_context("spawn").Process(target=work).start()
"""
    files = {
        "pkg/__init__.py": "from pkgutil import extend_path\n\n__path__ = extend_path(__path__, __name__)\n",
        "pkg/work.py": "def work():\n    print(1)\n",
        "main.py": main,
    }
    sources = [SourceFile(path, text, text.encode()) for path, text in files.items()]
    assert not analyse(sources, Options()).findings


def test_a_launch_has_a_root_cause_for_each_start_method_of_the_range() -> None:
    text = (
        "import argparse\nimport multiprocessing as mp\nimport torch\n\n\n"
        'def work(n):\n    return torch.ones(n, device="cuda").sum().item() * args.scale\n\n\n'
        'if __name__ == "__main__":\n    parser = argparse.ArgumentParser()\n'
        '    parser.add_argument("--scale", type=int, default=2)\n'
        '    parser.add_argument("--warm", action="store_true")\n'
        '    args = parser.parse_args()\n    if args.warm:\n        torch.zeros(1, device="cuda")\n'
        "    with mp.Pool(1) as pool:\n        pool.map(work, range(4))\n"
    )
    source = SourceFile("program.py", text, text.encode())
    found = analyse([source], Options(target_versions=((3, 10), (3, 14)))).findings
    assert [(f.code, f.severity.value, f.condition) for f in found] == [
        ("CUD101", "error", "before Python 3.14, if `--warm` is given"),
        ("CUD108", "error", "from Python 3.14"),
    ]


@pytest.mark.parametrize(
    ("before", "versions", "codes"),
    [
        ("", ((3, 14), (3, 14)), []),
        ("", ((3, 10), (3, 14)), []),
        ("mp.set_forkserver_preload(['json'])", ((3, 14), (3, 14)), ["CUD201"]),
        ("mp.set_forkserver_preload(['__main__'])", ((3, 14), (3, 14)), []),
        ("mp.set_start_method('spawn')", ((3, 14), (3, 14)), ["CUD201"]),
        ("mp.set_start_method('forkserver')", ((3, 12), (3, 12)), ["CUD201"]),
    ],
)
def test_a_fork_server_imports_main_once_from_python_3_14(
    before: str, versions: tuple[tuple[int, int], tuple[int, int]], codes: list[str]
) -> None:
    text = (
        "import torch\nimport torch.multiprocessing as mp\nfrom torch.utils.data import DataLoader\n\n"
        "model = torch.nn.Linear(1, 1).cuda()\n\n\n"
        f'if __name__ == "__main__":\n    {before or "pass"}\n'
        "    for batch in DataLoader(range(9), num_workers=2):\n        print(model(batch.cuda()))\n"
    )
    found = analyse([SourceFile("program.py", text, text.encode())], Options(target_versions=versions)).findings
    assert [f.code for f in found] == codes


ASKS = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
COMPUTES = 'torch.ones(n, device="cuda").sum().item()'
ONLY_SERVED, BOTH = ((3, 14), (3, 14)), ((3, 10), (3, 14))
BROKEN = [("CUD101", "error", None)]


@pytest.mark.parametrize(
    ("top", "before", "body", "versions", "expected"),
    [
        (ASKS, "pass", COMPUTES, ONLY_SERVED, BROKEN),
        (ASKS, "pass", COMPUTES, BOTH, BROKEN),  # by fork before 3.14, by the server from then on
        (ASKS, "mp.set_start_method('forkserver')", COMPUTES, ONLY_SERVED, BROKEN),
        ("table = torch.ones(2).cuda()", "pass", "table[n].item()", ONLY_SERVED, [("CUD103", "error", None)]),
        # What works: main guarded, a server that imports something else, spawn, and an older server.
        ("", "torch.cuda.is_available()", COMPUTES, ONLY_SERVED, []),
        (ASKS, "mp.set_forkserver_preload(['json'])", COMPUTES, ONLY_SERVED, []),
        (ASKS, "mp.set_start_method('spawn')", COMPUTES, ONLY_SERVED, []),
        (ASKS, "mp.set_start_method('forkserver')", COMPUTES, ((3, 12), (3, 12)), []),
        (ASKS, "pass", "torch.ones(n).sum().item()", ONLY_SERVED, []),
    ],
)
def test_what_the_import_of_main_did_in_a_fork_server_its_children_cannot_undo(
    top: str,
    before: str,
    body: str,
    versions: tuple[tuple[int, int], tuple[int, int]],
    expected: list[tuple[str, str, str | None]],
) -> None:
    text = (
        f"import multiprocessing as mp\nimport torch\n\n{top}\n\n\ndef work(n):\n    return {body}\n\n\n"
        f'if __name__ == "__main__":\n    {before}\n    with mp.Pool(1) as pool:\n        pool.map(work, [0, 1])\n'
    )
    found = analyse([SourceFile("program.py", text, text.encode())], Options(target_versions=versions)).findings
    assert [(f.code, f.severity.value, f.condition) for f in found] == expected


@pytest.mark.parametrize(
    ("top", "start", "device", "codes"),
    [
        (ASKS, 'mp.set_start_method("forkserver")', "cuda", ["CUD301"]),
        ("", "mp.set_forkserver_preload(['tables']); mp.set_start_method('forkserver')", "cuda", ["CUD301"]),
        # A server that did nothing to CUDA, workers that import main themselves, and what is on no GPU.
        ("", 'mp.set_start_method("forkserver")', "cuda", ["CUD302"]),
        (ASKS, 'mp.set_start_method("spawn")', "cuda", ["CUD302"]),
        (ASKS, 'mp.set_start_method("forkserver")', "cpu", []),
    ],
)
def test_a_worker_that_a_server_forked_after_cuda_opens_no_value_on_the_gpu(
    top: str, start: str, device: str, codes: list[str]
) -> None:
    text = (
        f"import torch\nimport torch.multiprocessing as mp\n\n{top}\n\n\ndef work(x):\n    return x.shape[0]\n\n\n"
        f'if __name__ == "__main__":\n    {start}\n    with mp.Pool(1) as pool:\n'
        f'        pool.map(work, [torch.ones(2, device="{device}")])\n'
    )
    tables = "import torch\nTABLE = torch.ones(2).cuda()\n"
    files = [SourceFile(name, made, made.encode()) for name, made in (("program.py", text), ("tables.py", tables))]
    assert [f.code for f in analyse(files, Options(target_versions=ONLY_SERVED)).findings] == codes


def test_nicegui_keeps_a_fork_server_from_importing_main() -> None:
    text = (
        "import torch\nfrom nicegui import run, ui\n\nmodel = torch.nn.Linear(2, 2).cuda()\n\n\n"
        "def infer(n):\n    return torch.ones(n).cuda().sum().item()\n\n\n"
        "async def clicked():\n    ui.notify(await run.cpu_bound(infer, 4))\n\n\n"
        "ui.button('go', on_click=clicked)\nui.run()\n"
    )
    source = SourceFile("main.py", text, text.encode())
    assert not analyse([source], Options(target_versions=ONLY_SERVED)).findings
    (found,) = analyse([source], Options(target_versions=((3, 10), (3, 14)))).findings
    assert (found.code, found.condition) == ("CUD104", "before Python 3.14")


def test_contexts_on_one_gpu_are_shown_where_they_are_opened_not_where_the_driver_was_asked() -> None:
    text = (
        "import multiprocessing as mp\nimport torch\n\n\n"
        'def work(n):\n    assert torch.cuda.is_available()\n    return torch.ones(n, device="cuda").sum().item()\n\n\n'
        'if __name__ == "__main__":\n    with mp.get_context("spawn").Pool(2) as pool:\n'
        "        pool.map(work, range(4))\n"
    )
    (found,) = analyse([SourceFile("program.py", text, text.encode())], Options()).findings
    assert (found.code, found.trace[-1].span.start.row) == ("CUD201", 7)
