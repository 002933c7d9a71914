"""Repairs of values that cross, late start methods, nested workers and what spawned workers lack, in many shapes."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from cudalint.finding import Applicability, Finding, Fix
from cudalint.fixes.edits import apply, as_changes
from cudalint.fixes.engine import repaired
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

HEAD = """\
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch
"""
READS = "def work(x, y=None):\n    return x.mean().item()\n"


def program(worker: str, main: str) -> str:
    """A worker at the top, and a main that is guarded."""
    body = indent(dedent(main).strip("\n"), "    ")
    return f'{HEAD}\n\n{dedent(worker).strip()}\n\n\ndef main():\n{body}\n\n\nif __name__ == "__main__":\n    main()\n'


def first(text: str, code: str) -> tuple[Finding, Fix | None]:
    analysis = analyse([SourceFile("/project/m.py", text, text.encode())], Options())
    finding = next(f for f in analysis.findings if f.code == code)
    return finding, repaired(analysis, [finding]).get(finding)


def fixed(text: str, code: str) -> str:
    """The text after the repair of the first finding of a code, which is then gone."""
    _, fix = first(text, code)
    assert fix is not None
    assert fix.applicability is not Applicability.DISPLAY, fix.message
    assert fix.reason or fix.applicability is Applicability.SAFE
    after = apply(text, as_changes(text, fix.edits))
    ast.parse(after)
    left = analyse([SourceFile("/project/m.py", after, after.encode())], Options()).findings
    assert code not in {f.code for f in left}
    return after


def advice(text: str, code: str) -> str:
    _, fix = first(text, code)
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    assert fix.reason
    return fix.message


def rows(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()}


SENT = {
    "keyword": ("executor.submit(work, x=x, y=1)", "executor.submit(work, x=x.cpu(), y=1)"),
    "positional": ("executor.submit(work, x, 1,)", "executor.submit(work, x.cpu(), 1,)"),
    "nested in a list": ("executor.submit(work, [1, (x, 2)])", "executor.submit(work, [1, (x.cpu(), 2)])"),
    "operators": ("executor.submit(work, -x * 2)", "executor.submit(work, (-x * 2).cpu())"),
    "conditional": ("executor.submit(work, x if y else 0)", "executor.submit(work, x.cpu() if y else 0)"),
    "parentheses": ("executor.submit(work, (x))", "executor.submit(work, (x).cpu())"),
    "partial": ("executor.submit(partial(work, x))", "executor.submit(partial(work, x.cpu()))"),
    "comprehension": ("executor.map(work, [r * 2 for r in x])", "executor.map(work, [(r * 2).cpu() for r in x])"),
    "generator": ("executor.map(work, (r for r in x))", "executor.map(work, (r.cpu() for r in x))"),
    "zip": ("executor.map(work, *zip(xs, [1, 2]))", "executor.map(work, *zip([part.cpu() for part in xs], [1, 2]))"),
    "a list in a variable": ("executor.map(work, xs)", "executor.map(work, [part.cpu() for part in xs])"),
    "a tuple of several": (
        "executor.map(work, x.split(2))",
        "executor.map(work, tuple(part.cpu() for part in x.split(2)))",
    ),
    "a dict in a variable": (
        "executor.submit(work, by_name)",
        "executor.submit(work, {key: value.cpu() for key, value in by_name.items()})",
    ),
    "a dict with other values": (
        "executor.submit(work, mixed)",
        'executor.submit(work, {**mixed, "x": mixed["x"].cpu()})',
    ),
    "a tuple with other values": ("executor.submit(work, row)", "executor.submit(work, (row[0].cpu(), row[1]))"),
}


@pytest.mark.parametrize("name", SENT)
def test_a_value_for_a_forked_worker_is_copied_where_it_leaves(name: str) -> None:
    before, after = SENT[name]
    main = f"""
        x, y = torch.ones(4, 4, device="cuda"), 1
        xs, by_name, mixed, row = [x, x], {{"a": x, "b": x}}, {{"x": x, "n": 1}}, (x, 3)
        with ProcessPoolExecutor(1) as executor:
            {before}
    """
    assert after in rows(fixed(program(READS, main), "CUD301"))


def test_a_call_over_several_rows_keeps_its_comments_and_commas() -> None:
    main = """
        x = torch.ones(4).cuda()
        with mp.Pool(2) as pool:
            print(
                pool.apply(
                    work,
                    (
                        x,  # the input
                        2,
                    ),
                )
            )
    """
    assert "x.cpu(),  # the input" in rows(fixed(program(READS, main), "CUD301"))


def test_tasks_that_a_generator_yields_are_copied_one_by_one() -> None:
    worker = READS + "\n\ndef pairs(x):\n    for i in range(3):\n        yield x * i, i\n"
    main = """
        x = torch.ones(4).cuda()
        with mp.Pool(2) as pool:
            print(pool.starmap(work, pairs(x)))
    """
    after = fixed(program(worker, main), "CUD301")
    assert "print(pool.starmap(work, ((part[0].cpu(), part[1]) for part in pairs(x))))" in rows(after)


@pytest.mark.parametrize(
    "worker",
    [
        'def work(x):\n    return (x + torch.ones(4, device="cuda")).sum().item()\n',
        "class Box:\n    def __init__(self, t):\n        self.t = t\n\n\ndef work(box):\n    return 1\n",
    ],
    ids=["uses CUDA itself", "hides in an object"],
)
def test_a_worker_that_a_copy_does_not_help_is_spawned(worker: str) -> None:
    sent = "Box(torch.ones(4).cuda())" if "Box" in worker else "torch.ones(4).cuda()"
    main = f"""
        sent = {sent}
        with mp.Pool(2) as pool:
            print(pool.apply(work, (sent,)))
    """
    after = fixed(program(worker, main), "CUD301")
    assert 'with mp.get_context("spawn").Pool(2) as pool:' in rows(after)
    assert ".cpu()" not in after


def test_a_model_is_copied_because_it_moves_in_place() -> None:
    main = """
        model = torch.nn.Linear(2, 2).cuda()
        with mp.Pool(2) as pool:
            print(pool.apply(work, (model,)))
    """
    after = fixed(program("def work(model):\n    return len(list(model.parameters()))\n", main), "CUD301")
    assert "print(pool.apply(work, (copy.deepcopy(model).cpu(),)))" in rows(after)
    assert "import copy" in rows(after)


def test_results_that_are_named_are_not_taken_for_tensors() -> None:
    main = """
        x = torch.ones(4).cuda()
        with mp.Pool(2) as pool:
            print(pool.apply(work, (x.topk(2),)))
    """
    assert ".cpu()" not in fixed(program("def work(x):\n    return 1\n", main), "CUD301")


@pytest.mark.parametrize(
    ("call", "copied"),
    [
        ('Process(target=work, kwargs={"x": x})', 'Process(target=work, kwargs={"x": x.cpu()})'),
        ("Process(target=work, args=[x, 2])", "Process(target=work, args=[x.cpu(), 2])"),
    ],
)
def test_a_spawned_worker_moves_the_value_to_its_device_again(call: str, copied: str) -> None:
    worker = 'def work(x, y=None):\n    """Doc."""\n    # mean\n    print(x.mean().item())\n'
    main = f"""
        context = mp.get_context("spawn")
        x = torch.ones(4).to("cuda:1")
        process = context.{call}
        process.start()
        process.join()
    """
    after = fixed(program(worker, main), "CUD302")
    assert f"process = context.{copied}" in rows(after)
    body = after[after.index('"""Doc."""') : after.index("print(")]
    assert 'x = x.to("cuda:1")' in body


def test_memory_that_a_worker_writes_into_stays_shared() -> None:
    main = """
        x = torch.ones(4).cuda()
        with mp.get_context("spawn").Pool(1) as pool:
            pool.map(work, [x])
    """
    assert "owns the value" in advice(program("def work(x):\n    x.add_(1)\n", main), "CUD302")


def test_results_come_back_to_the_gpu() -> None:
    worker = 'def work(n):\n    return torch.ones(n, device="cuda") * 2\n'
    main = """
        with mp.get_context("spawn").Pool(1) as pool:
            print(pool.map(work, [1, 2]))
    """
    after = rows(fixed(program(worker, main), "CUD302"))
    assert 'return (torch.ones(n, device="cuda") * 2).cpu()' in after
    assert any(row.startswith("print([part.to(") and "in pool.map(work, [1, 2])])" in row for row in after)


def test_a_producer_sends_arrays_and_its_reader_compares_by_identity() -> None:
    worker = """
        def work(queue):
            for i in range(3):
                queue.put((i, [torch.ones(2, device="cuda")]))
            queue.put(None)
    """
    main = """
        context = mp.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        process.join()
        for item in iter(queue.get, None):
            print(item)
    """
    after = rows(fixed(program(worker, main), "CUD304"))
    assert 'queue.put((i, [torch.ones(2, device="cuda").detach().cpu().numpy()]))' in after
    assert "while (item := queue.get()) is not None:" in after


CHOICE = """
    import torch
    from torch.multiprocessing import Process, Queue, set_start_method as choose


    def work(queue):
        queue.put(torch.ones(2, device="cuda").sum().item())


    def main(method="spawn"):
        queue = Queue()
        {choice}
        process = Process(target=work, args=(queue,))
        process.start()
        print(queue.get())


    if __name__ == "__main__":
        # the program
        main()
"""


def test_a_late_choice_moves_under_the_guard_with_its_comment() -> None:
    text = dedent(CHOICE.format(choice='choose("spawn", force=False)  # for CUDA'))
    after = fixed(text, "CUD105")
    guarded = after[after.index("if __name__") :]
    assert '    choose("spawn", force=False)  # for CUDA\n' in guarded
    assert after.count("choose(") == 1


@pytest.mark.parametrize("choice", ["choose(method)", 'print("go"); choose(method)'])
def test_a_choice_that_depends_on_something_stays(choice: str) -> None:
    assert "first statement of the main guard" in advice(dedent(CHOICE.format(choice=choice)), "CUD105")


def test_a_lock_of_the_module_leaves_the_default_open() -> None:
    text = dedent(CHOICE.format(choice='choose("spawn")')).replace("def work", "LOCK = Queue()\n\n\ndef work")
    after = fixed(text.replace("    queue = Queue()\n", "    queue = LOCK\n"), "CUD105")
    assert 'LOCK = get_context("spawn").Queue()' in rows(after)


def test_a_guard_takes_what_acts_and_leaves_definitions() -> None:
    text = """
        import torch
        import multiprocessing as mp


        def work(n):
            print(torch.ones(n, device="cuda").sum().item())


        process = mp.get_context("spawn").Process(target=work, args=(2,))
        # off it goes
        process.start()


        def after():
            process.join()


        import sys
        text = '''a
        b'''
        after()
    """
    done = fixed(dedent(text), "CUD106")
    top, guarded = done.split('if __name__ == "__main__":\n')
    assert "def after():" in top
    assert "import sys" in top
    assert guarded == "    # off it goes\n    process.start()\n    text = '''a\nb'''\n    after()\n"


NESTED = """
    def inner():
        print(torch.ones(1).sum())


    def work(n, m=0):
        child = mp.Process(target=inner)
        child.start()
        child.join()
        return n
"""


def test_a_pool_becomes_an_executor_with_all_its_uses() -> None:
    main = """
        pool = mp.Pool(processes=2)
        for result in pool.imap_unordered(work, [1, 2], 1):
            print(result)
        print(pool.apply(work, (3, 4)))
        pool.map(work, [1])
        pool.close()
        pool.join()
    """
    after = rows(fixed(program(NESTED, main), "CUD107"))
    assert {
        "pool = ProcessPoolExecutor(max_workers=2)",
        "for result in pool.map(work, [1, 2], chunksize=1):",
        "print(pool.submit(work, 3, 4).result())",
        "list(pool.map(work, [1]))",
        "pool.shutdown()",
    } <= after


@pytest.mark.parametrize(
    "main",
    [
        "with mp.Pool(2) as pool:\n    print(pool.starmap(work, [(1, 2)]))",
        "with mp.Pool(2) as pool:\n    print(pool.map(work, [1]), helper(pool))",
        "with mp.Pool(2, maxtasksperchild=1) as pool:\n    print(pool.map(work, [1]))",
    ],
    ids=["starmap", "handed on", "maxtasksperchild"],
)
def test_a_pool_with_another_use_stays(main: str) -> None:
    """It is the inner process that gives way, where a thread has all that it is used for."""
    worker = dedent(NESTED) + "\n\ndef helper(pool):\n    return pool\n"
    after = fixed(program(worker, main), "CUD107")
    assert main.splitlines()[0] in rows(after)
    assert "child = threading.Thread(target=inner)" in rows(after)
    watched = worker.replace("child.join()", "child.join()\n    print(child.exitcode)")
    assert "ProcessPoolExecutor" in advice(program(watched, main), "CUD107")


INNER = {
    "a pool": ("with mp.Pool(processes=2) as pool:", "with multiprocessing.pool.ThreadPool(processes=2) as pool:"),
    "an executor": (
        'with ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as pool:',
        "with ThreadPoolExecutor(2) as pool:",
    ),
    "a pool that replaces its workers": ("with mp.Pool(2, maxtasksperchild=1) as pool:", None),
}


@pytest.mark.parametrize(("inner", "instead"), INNER.values(), ids=INNER)
def test_a_worker_that_has_to_stay_works_in_threads(inner: str, instead: str | None) -> None:
    worker = f"""
        from torch.utils.data import DataLoader


        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                {inner}
                    return torch.tensor(list(pool.map(float, [index])))
    """
    main = "for batch in DataLoader(Rows(), num_workers=1):\n    print(batch.cuda())"
    if instead is None:
        assert "num_workers" in advice(program(worker, main), "CUD107")
    else:
        assert instead in rows(fixed(program(worker, main), "CUD107"))


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("num_workers=2", ""),
        ("num_workers=2, persistent_workers=True", ""),
        ("num_workers=2, persistent_workers=True,", ","),
        ("num_workers=2, shuffle=True, prefetch_factor=4", ", shuffle=True"),
    ],
)
def test_a_loader_in_a_worker_that_has_to_stay_has_none_of_its_own(given: str, left: str) -> None:
    worker = f"""
        from torch.utils.data import DataLoader, TensorDataset


        def work(n, m):
            loader = DataLoader(TensorDataset(torch.ones(n, m)), batch_size=2, {given})
            return sum(x.sum().item() for (x,) in loader)
    """
    main = "with mp.Pool(2) as pool:\n    print(pool.starmap(work, [(1, 2)]), torch.ones(1).cuda())"
    after = rows(fixed(program(worker, main), "CUD107"))
    assert f"loader = DataLoader(TensorDataset(torch.ones(n, m)), batch_size=2{left})" in after


def test_ranks_that_have_children_are_no_daemons() -> None:
    main = "torch.multiprocessing.spawn(work, nprocs=1, daemon=True)"
    assert "torch.multiprocessing.spawn(work, nprocs=1)" in rows(fixed(program(NESTED, main), "CUD107"))


def test_a_daemon_is_none_any_more_and_its_comment_stays() -> None:
    main = """
        process = mp.Process(target=work, args=(1,))
        process.daemon = True  # ends with us
        process.start()
        process.join()
    """
    after = rows(fixed(program(NESTED, main), "CUD107"))
    assert "process.daemon = True  # ends with us" not in after
    assert "# ends with us" in after


def test_a_daemon_that_an_object_keeps_is_none_any_more() -> None:
    main = """
        class Outer:
            def __init__(self):
                self.process = mp.Process(target=work, args=(1,))
                self.process.daemon = True
                self.process.start()
                self.process.join()
        Outer()
    """
    after = rows(fixed(program(NESTED, main), "CUD107"))
    assert "self.process.start()" in after
    assert "self.process.daemon = True" not in after


@pytest.mark.parametrize(
    "made", ["mp.Event()", "mp.SimpleQueue()", 'mp.Value("i", 0)', "mp.Barrier(2)", "mp.Lock()", "mp.JoinableQueue()"]
)
def test_what_is_shared_comes_from_the_context_of_the_worker(made: str) -> None:
    main = f"""
        shared = {made}
        process = mp.get_context("spawn").Process(target=work, args=(1, [shared]))
        process.start()
        process.join()
    """
    worker = 'def work(n, shared):\n    print(torch.ones(n, device="cuda").sum().item())\n'
    expected = made.replace("mp.", 'mp.get_context("spawn").')
    assert f"shared = {expected}" in rows(fixed(program(worker, main), "CUD108"))


def test_a_local_function_that_captures_nothing_moves_up() -> None:
    main = """
        def square(n):
            # on the GPU
            total = torch.ones(n, device="cuda").sum()
            return total.item()

        with mp.get_context("spawn").Pool(1) as pool:
            print(pool.map(square, [1]))
    """
    after = fixed(program("", main), "CUD108")
    assert "\ndef square(n):\n    # on the GPU\n    total" in after


@pytest.mark.parametrize("empty", ["None", "{}", "[]"])
def test_spawn_is_not_offered_where_the_inherited_global_would_be_empty(empty: str) -> None:
    text = f"""
        import torch
        import multiprocessing as mp

        TABLE = {empty}


        def work(i):
            return TABLE[0].sum().item()


        if __name__ == "__main__":
            TABLE = [torch.ones(3, device="cuda")]
            with mp.Pool(2) as pool:
                print(pool.map(work, [0, 1]))
    """
    assert "before the fork" in advice(dedent(text), "CUD103")


def test_an_error_within_workers_leaves_them_their_own_repair() -> None:
    """Where the outer workers can use CUDA, the fork within them comes after that, however they are started."""
    text = (
        "import os\nfrom multiprocessing import Pool\n\nimport torch\n\n\n"
        "def part(n):\n    if os.fork() == 0:\n        return torch.ones(n).cuda().sum().item()\n"
        "    return torch.ones(n).cuda().sum().item()\n\n\n"
        "def job(n):\n    with Pool(2) as pool:\n        return pool.map(part, [n])\n"
    )
    analysis = analyse([SourceFile("/project/m.py", text, text.encode())], Options())
    assert [(finding.code, finding.span.start.row) for finding in analysis.findings] == [("CUD101", 8), ("CUD102", 15)]
    fixes = repaired(analysis, analysis.findings).values()
    assert [fix.applicability for fix in fixes] == [Applicability.DISPLAY, Applicability.UNSAFE]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("threading.Event()", "share a `multiprocessing.Event()`"),
        ("Job()", "leave `lock` of `Job` out of what is sent (`__getstate__`), or share a `multiprocessing.Lock()`"),
        ("Log()", "make it in the worker, and leave `rows` of `Log` out of what is sent (`__getstate__`)"),
        ("open('rows.txt')", "make it in the worker"),
        ("(n for n in range(3))", "send what it gives"),
        ("threading", "import `threading` in the worker"),
    ],
)
def test_what_belongs_to_its_process_is_told_where_it_is_kept(sent: str, said: str) -> None:
    classes = """\
        import threading


        class Job:
            def __init__(self):
                self.lock = threading.Lock()


        class Log:
            def __init__(self):
                self.rows = open("rows.txt")


        def work(x):
            return torch.zeros(len(vars(x)), device="cuda")

        """
    main = f"""\
        context = mp.get_context("spawn")
        worker = context.Process(target=work, args=({sent},))
        worker.start()
        worker.join()
        """
    assert advice(program(dedent(classes), main), "CUD108").startswith(said)


def test_what_a_name_is_made_of_ends_where_it_is_made_of_itself() -> None:
    text = dedent("""
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp


        def train(rank, size):
            dist.init_process_group("nccl", init_method="tcp://localhost:1", rank=rank, world_size=size)
            rank = rank
            model = torch.nn.Linear(10, 1).cuda()
            torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])


        if __name__ == "__main__":
            mp.spawn(train, args=(2,), nprocs=2)
    """)
    assert "torch.cuda.set_device(rank)" in rows(fixed(text, "CUD503"))


@pytest.mark.parametrize(
    ("top", "is_set"),
    [
        ('MODEL: object = torch.ones(3, device="cuda")', True),
        ('OTHER: object = 3\nMODEL: object = torch.ones(3, device="cuda")', True),
        ("MODEL: object = None", False),
        ("MODEL: object", False),
        ("OTHER: object = 3", False),
        ("OTHER: object = 3\nMODEL: object = None", False),
    ],
)
def test_a_worker_starts_afresh_only_where_its_module_sets_what_it_reads(top: str, is_set: bool) -> None:
    worker = f"{top}\n\n\ndef work(n):\n    return MODEL.sum().item() * n"
    main = """
        global MODEL
        MODEL = torch.ones(2, device="cuda")
        with mp.Pool(1) as pool:
            print(pool.map(work, [1, 2]))
    """
    _, fix = first(program(worker, main), "CUD103")
    assert fix is not None
    assert bool(fix.edits) == is_set


def test_results_that_a_loop_keeps_elsewhere_are_not_moved_where_they_arrive() -> None:
    worker = "def work(n):\n    return torch.ones(n).cuda()"
    main = """
        torch.zeros(1, device="cuda")
        held = {{}}
        with ProcessPoolExecutor(1) as pool:
            futures = [pool.submit(work, n) for n in (1, 2)]
            for {target} in futures:
                print({target}.result().sum())
            print(futures[0].result().mean())
    """
    assert "print(future.result().cuda().sum())" in rows(fixed(program(worker, main.format(target="future")), "CUD101"))
    kept = rows(fixed(program(worker, main.format(target="held[0]")), "CUD101"))
    assert "print(held[0].result().sum())" in kept
    assert "return torch.ones(n)" not in kept


def test_questions_in_two_files_are_changed_together() -> None:
    """What is left when the first is changed has its cause in another file: that is another one."""
    asks = 'if torch.cuda.is_available():\n    print("GPU")\n'
    texts = {
        "/project/lib.py": f"import torch\n\n\ndef check():\n{indent(asks, '    ')}",
        "/project/m.py": program(
            "import lib\n\n\ndef work(n):\n    return torch.ones(n, device='cuda').sum().item()",
            f"{asks}lib.check()\nwith mp.Pool(1) as pool:\n    print(pool.map(work, [1, 2]))",
        ),
    }
    analysis = analyse([SourceFile(path, text, text.encode()) for path, text in texts.items()], Options())
    finding = next(f for f in analysis.findings if f.code == "CUD101")
    fix = repaired(analysis, [finding])[finding]
    assert {edit.span.filename for edit in fix.edits} == set(texts)
