"""Repairs of devices, loaders and ranks, in the shapes that people write: what exactly becomes of a program."""

from __future__ import annotations

import textwrap

import pytest

from cudalint.finding import Applicability, Finding
from cudalint.fixes.edits import apply, as_changes
from cudalint.fixes.engine import repaired
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.text.source import SourceFile

PATH = "program.py"


def analysed(text: str) -> Analysis:
    return analyse([SourceFile(PATH, text, text.encode())], Options())


def repair(text: str, code: str) -> tuple[str, Applicability, str | None]:
    """The text with the first finding of a code repaired, and how far that can be trusted."""
    analysis = analysed(text)
    finding = next(f for f in analysis.findings if f.code == code)
    fix = repaired(analysis, [finding])[finding]
    return apply(text, as_changes(text, fix.edits)), fix.applicability, fix.reason


def left(text: str, code: str) -> list[Finding]:
    return [f for f in analysed(text).findings if f.code == code]


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The rows that went and those that came, in their order; a moved row is both."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return old, new


RANKS = """
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MEET = "tcp://127.0.0.1:29500"
{run}

if __name__ == "__main__":
    {start}
"""
SPAWNED = "mp.spawn(run, args=(2,), nprocs=2)"
LOOP = """
import torch
from torch.utils import data


class Samples(data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        {sample}


def main():
    device = torch.device("cuda")
    model = torch.nn.Linear(8, 1).to(device)
    loader = {loader}
    {loop}


if __name__ == "__main__":
    main()
"""
TASKS = """
import os
from multiprocessing import get_context

{imports}


def work(task):
    {body}


if __name__ == "__main__":
    with get_context("spawn").Pool(2) as pool:
        print(os.getpid(), pool.map(work, {tasks}))
"""


def text_of(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


# -- the visible devices -------------------------------------------------------------------------------------------


def test_a_condition_moves_with_the_assignment_that_it_guards() -> None:
    before = text_of("""
        import argparse
        from os import environ

        import torch


        def main(argv=None):
            parser = argparse.ArgumentParser()
            parser.add_argument("--gpu")
            args = parser.parse_args(argv)
            print(torch.cuda.is_available(),
                  "is the answer")
            if args.gpu is not None:
                environ["CUDA_VISIBLE_DEVICES"] = args.gpu  # as asked
            print(torch.ones(3).cuda())


        if __name__ == "__main__":
            main()
    """)
    after, level, _ = repair(before, "CUD202")
    chosen = '    if args.gpu is not None:\n        environ["CUDA_VISIBLE_DEVICES"] = args.gpu  # as asked\n'
    asked = '    print(torch.cuda.is_available(),\n          "is the answer")\n'
    assert after == before.replace(asked + chosen, chosen + asked)
    assert level is Applicability.UNSAFE
    assert not left(after, "CUD202")


def test_an_assignment_does_not_leave_its_condition_for_another_function() -> None:
    before = text_of("""
        import os
        import sys

        import torch


        def names():
            found = []
            for index in range(torch.cuda.device_count()):
                found.append(torch.cuda.get_device_properties(index).name)
            return found


        def select(device):
            found = names()
            if device == "second":
                os.environ["CUDA_VISIBLE_DEVICES"] = "1"
                return found, torch.device("cuda:0")
            return found, torch.device("cuda")


        if __name__ == "__main__":
            print(torch.ones(3).to(select(sys.argv[1])[1]))
    """)
    analysis = analysed(before)
    finding = next(f for f in analysis.findings if f.code == "CUD202")
    fix = repaired(analysis, [finding]).get(finding)
    assert fix is None or not fix.edits


def test_an_assignment_takes_the_import_that_it_needs_along() -> None:
    before = text_of("""
        import torch

        ready = torch.cuda.is_available()
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        print(ready, torch.ones(3, device="cuda"))
    """)
    after, *_ = repair(before, "CUD202")
    assert changed(before, after) == (
        ["ready = torch.cuda.is_available()", "import os", 'os.environ["CUDA_VISIBLE_DEVICES"] = "1"'],
        ["import os", 'os.environ["CUDA_VISIBLE_DEVICES"] = "1"', "ready = torch.cuda.is_available()"],
    )


def test_what_depends_on_the_question_selects_by_index() -> None:
    before = "import os, torch\n\nif torch.cuda.is_available():\n\tos.environ['CUDA_VISIBLE_DEVICES'] = '1'  # mine\n"
    before += "x = torch.ones(os.cpu_count(), device='cuda')\n"
    after, *_ = repair(before, "CUD202")
    assert changed(before, after) == (
        ["\tos.environ['CUDA_VISIBLE_DEVICES'] = '1'  # mine"],
        ["\ttorch.cuda.set_device(1)  # mine"],
    )


ASKING = "import torch\n\nWIDTH = torch.cuda.get_device_properties(0).multi_processor_count\n"
CHOOSING = """
import os
import torch
from sizes import WIDTH  # of the GPU
{other}

def main(gpu):
    \"\"\"Choose first.\"\"\"
    {chosen}
    print(torch.ones(WIDTH).cuda())


if __name__ == "__main__":
    main(os.getpid())
"""
CHOSEN = 'os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)'


def repair_beside(text: str, asking: str) -> tuple[str, Applicability]:
    """What becomes of a program whose import asks for CUDA."""
    files = {PATH: text, "sizes.py": asking}
    analysis = analyse([SourceFile(name, one, one.encode()) for name, one in files.items()], Options())
    finding = next(f for f in analysis.findings if f.code == "CUD202")
    fix = repaired(analysis, [finding])[finding]
    assert {edit.span.filename for edit in fix.edits} <= {PATH}
    return apply(text, as_changes(text, fix.edits)), fix.applicability


@pytest.mark.parametrize("chosen", [CHOSEN, f"if gpu:\n        {CHOSEN}"], ids=["plain", "under a condition"])
def test_an_import_that_asks_comes_after_the_choice(chosen: str) -> None:
    before = CHOOSING.format(other="", chosen=chosen)
    after, level = repair_beside(before, ASKING)
    moved = "from sizes import WIDTH  # of the GPU\n"
    assert after == before.replace(moved, "").replace(f"{CHOSEN}\n", f"{CHOSEN}\n    {moved}")
    assert level is Applicability.UNSAFE


@pytest.mark.parametrize(
    "other",
    ["HALF = WIDTH // 2\n", "def half():\n    return WIDTH // 2\n", "WIDTH = WIDTH or 1\n", "import sizes as WIDTH\n"],
)
def test_an_import_that_others_use_stays(other: str) -> None:
    before = CHOOSING.format(other=other, chosen=CHOSEN)
    assert repair_beside(before, ASKING) == (before, Applicability.DISPLAY)


def test_data_that_is_on_a_gpu_already_is_not_left_behind() -> None:
    """Another index would leave the model on GPU 0 and put the batch elsewhere."""
    before = text_of("""
        import os
        import torch

        model = torch.nn.Linear(3, 1).cuda(); os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        print(model(torch.ones(3, device="cuda")))
    """)
    after, level, _ = repair(before, "CUD202")
    assert (after, level) == (before, Applicability.DISPLAY)


@pytest.mark.parametrize(
    ("imports", "body", "tasks", "gone", "come"),
    [
        pytest.param(
            "import numpy as np\nfrom numba import cuda",
            'os.environ.update(\n        CUDA_VISIBLE_DEVICES=f"{task % 2}",\n    )\n'
            "    return cuda.to_device(np.ones(3)).copy_to_host().sum()",
            "range(8)",
            ["    os.environ.update(", '        CUDA_VISIBLE_DEVICES=f"{task % 2}",', "    )"],
            ["    cuda.select_device(task % 2)"],
            id="numba, a call over several rows",
        ),
        pytest.param(
            "import cupy",
            'if True: os.environ["CUDA_VISIBLE_DEVICES"] = str(task % 2)  # by turns\n'
            "    return cupy.ones(3).sum().item()",
            "range(8)",
            ['    if True: os.environ["CUDA_VISIBLE_DEVICES"] = str(task % 2)  # by turns'],
            ["    if True: cupy.cuda.Device(task % 2).use()  # by turns"],
            id="cupy, a suite in one row",
        ),
        pytest.param(
            "import torch as t",
            'os.environ.update({"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": task})\n'
            '    return t.ones(3, device="cuda").sum().item()',
            '["0", "1", "0"]',
            ['    os.environ.update({"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": task})'],
            ["    t.cuda.set_device(int(task))", '    os.environ.update({"OMP_NUM_THREADS": "1"})'],
            id="torch by another name, one variable of two",
        ),
    ],
)
def test_a_task_selects_its_gpu_by_index(imports: str, body: str, tasks: str, gone: list[str], come: list[str]) -> None:
    before = TASKS.format(imports=imports, body=body, tasks=tasks)
    after, level, reason = repair(before, "CUD203")
    assert changed(before, after) == (gone, come)
    assert level is Applicability.UNSAFE
    assert reason is not None
    assert not left(after, "CUD203")


def test_several_gpus_are_no_index() -> None:
    body = 'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1" if task else "1,0"\n    return torch.ones(3).cuda().tolist()'
    before = TASKS.format(imports="import torch", body=body, tasks="range(3)")
    after, level, _ = repair(before, "CUD203")
    assert (after, level) == (before, Applicability.DISPLAY)


@pytest.mark.parametrize(
    ("statement", "come"),
    [
        ("import torch.cuda as tc\n\ntc.device(1)", "tc.set_device(1)"),
        ("import torch\n\nif True: torch.cuda.device(1); print(2)", "if True: torch.cuda.set_device(1); print(2)"),
        ("import cupy as cp\n\ncp.cuda.Device(\n    1,  # the second\n)", ").use()"),
    ],
    ids=["alias", "suite in one row", "cupy over several rows"],
)
def test_a_device_statement_selects(statement: str, come: str) -> None:
    after, *_ = repair(f"{statement}\nprint(1)\n", "CUD204")
    assert changed(f"{statement}\nprint(1)\n", after)[1] == [come]
    assert not left(after, "CUD204")


def test_the_pool_of_an_object_selects_the_device_in_its_threads() -> None:
    before = text_of("""
        import concurrent.futures

        import torch


        def work(n):
            return torch.ones(n, device="cuda").sum().item()


        class Server:
            def __init__(self, gpu):
                torch.cuda.set_device(device=gpu)
                self.pool = concurrent.futures.ThreadPoolExecutor(
                    max_workers=4,  # enough
                )

            def run(self):
                return list(self.pool.map(work, range(1, 5)))


        if __name__ == "__main__":
            print(Server(1).run())
    """)
    after, *_ = repair(before, "CUD205")
    rows = ["            initializer=torch.cuda.set_device,", "            initargs=(gpu,),"]
    assert changed(before, after) == ([], rows)


OPTIONS = """
import argparse
import asyncio
import threading

import torch


def work(n{parameter}):
{selected}    return torch.ones(n, device="cuda").sum().item()


def main(options):
    torch.cuda.set_device(options.gpu)
{start}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=1)
    main(parser.parse_args())
"""


def test_a_thread_is_handed_the_device_that_the_options_say() -> None:
    start = "    thread = threading.Thread(target={work}, args=(3,))\n    thread.start()"
    before = OPTIONS.format(parameter="", selected="", start=start.format(work="work"))
    after, level, reason = repair(before, "CUD205")
    selected = "    torch.cuda.set_device(gpu)\n"
    bound = start.format(work="functools.partial(work, gpu=options.gpu)")
    expected = OPTIONS.format(parameter=", *, gpu", selected=selected, start=bound)
    assert after == expected.replace("import asyncio\n", "import asyncio\nimport functools\n")
    assert level is Applicability.UNSAFE
    assert reason
    assert not left(after, "CUD205")


def test_all_threads_that_run_a_function_are_handed_the_device() -> None:
    start = "    threading.Thread(target=work, args=(3,)).start()\n    print(asyncio.run(asyncio.to_thread(work, 4)))"
    after, *_ = repair(OPTIONS.format(parameter="", selected="", start=start), "CUD205")
    assert start.replace("work,", "functools.partial(work, gpu=options.gpu),") in after
    assert not left(after, "CUD205")


@pytest.mark.parametrize("also", ["work(5)", "print(work)", "threading.Thread(target=lambda: work(1))"])
def test_a_function_that_is_used_otherwise_takes_no_device(also: str) -> None:
    """What is left is the number that was seen, and it is said that it may be another."""
    start = f"    threading.Thread(target=work, args=(3,)).start()\n    {also}"
    after, _, reason = repair(OPTIONS.format(parameter="", selected="", start=start), "CUD205")
    assert "    torch.cuda.set_device(1)\n" in after
    assert "`options.gpu` may be another" in (reason or "")


OWNERS = {
    "the same attribute": ("self.gpu = gpu\n        torch.cuda.set_device(self.gpu)", "self.gpu"),
    "an attribute that keeps it": ("torch.cuda.set_device(gpu)\n        self.index = gpu", "self.index"),
}


@pytest.mark.parametrize(("chosen", "known"), OWNERS.values(), ids=OWNERS)
def test_a_thread_of_an_object_knows_its_device(chosen: str, known: str) -> None:
    before = text_of("""
        import threading
        import torch


        class Server:
            def __init__(self, gpu):
                CHOSEN
                threading.Thread(target=self.loop).start()

            def loop(self):
                self.table = torch.ones(3, device="cuda")


        if __name__ == "__main__":
            Server(1)
    """).replace("CHOSEN", chosen)
    after, *_ = repair(before, "CUD205")
    assert changed(before, after) == ([], [f"        torch.cuda.set_device({known})"])


def test_a_selection_by_a_name_that_nothing_binds_is_not_repeated_in_the_thread() -> None:
    before = text_of("""
        import threading
        import torch


        def train(gpu):
            torch.ones(3, device="cuda")


        if __name__ == "__main__":
            torch.cuda.set_device(gpu)
            threading.Thread(target=train, args=(1,)).start()
    """)
    _, level, _ = repair(before, "CUD205")
    assert level is Applicability.UNSAFE


def test_a_thread_that_another_class_starts_takes_the_current_device() -> None:
    before = text_of("""
        import os
        import threading
        import torch


        class Refresher(threading.Thread):
            def __init__(self):
                super().__init__()
                self.table = None

            def run(self):
                self.table = torch.ones(3, device="cuda")


        def main(gpu):
            torch.cuda.set_device(gpu)
            Refresher().start()


        if __name__ == "__main__":
            main(int(os.environ["LOCAL_RANK"]))
    """)
    after, *_ = repair(before, "CUD205")
    assert "        self.cuda_device = torch.cuda.current_device()\n        super()" in after
    assert "        torch.cuda.set_device(self.cuda_device)\n        self.table" in after


# -- memory ------------------------------------------------------------------------------------------------------


def test_growth_is_asked_for_before_the_parent_starts_too() -> None:
    before = text_of("""
        from multiprocessing import get_context

        import tensorflow as tf


        def work(n):
        \treturn float(tf.reduce_sum(tf.ones([n])))


        if __name__ == "__main__":
        \tprint(work(3)); print(get_context("spawn").Pool(1).map(work, range(1, 9)))
    """)
    after, *_ = repair(before, "CUD206")
    assert after == before.replace("from multi", "import os\nfrom multi").replace(
        "as tf\n", 'as tf\n\nos.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"\n'
    )
    assert not left(after, "CUD206")


# -- loaders -----------------------------------------------------------------------------------------------------

SPREAD = """data.DataLoader(
        Samples(),
        batch_size=16,
        num_workers=2,  # two
    )"""


@pytest.mark.parametrize(
    ("sample", "loop", "come"),
    [
        (
            'return (\n            torch.ones(8).to("cuda"),  # the input\n            index % 2,\n        )',
            "for i, (x, label) in enumerate(loader):\n        print(i, model(x), label)",
            ["            torch.ones(8),  # the input", '        x = x.to("cuda", non_blocking=True)'],
        ),
        (
            "x = torch.ones(8)\n        return x.cuda()",
            "for x in loader: # each\n        print(model(x))",
            ["        return x", "        x = x.cuda(non_blocking=True)"],
        ),
        (
            'return torch.ones(\n            8,\n            device="cuda",\n        )',
            "for x in loader:\n        # the model is there\n        print(model(x))",
            ["            8,", '        x = x.to("cuda", non_blocking=True)'],
        ),
    ],
    ids=["parts and enumerate", "a name", "a factory"],
)
def test_batches_are_moved_in_the_loop(sample: str, loop: str, come: list[str]) -> None:
    before = LOOP.format(sample=sample, loader=SPREAD, loop=loop)
    after, level, reason = repair(before, "CUD401")
    for row in (*come, "        num_workers=2,  # two", "        pin_memory=True,"):
        assert row in after.splitlines()
    assert level is Applicability.UNSAFE
    assert reason is not None
    assert not analysed(after).findings


PARTS = """
import torch
from torch.utils.data import DataLoader, TensorDataset, default_collate

DEVICE = torch.device("cuda")


class Rows(torch.utils.data.Dataset):
    def __init__(self, gpu):
        self.gpu = gpu

    def __len__(self):
        return 8

    def __getitem__(self, i):
        {sample}


def collate(samples):
    {collate}


def main():
    model = torch.nn.Linear(2, 1).to(DEVICE)
    loader = DataLoader({data}, batch_size=4, num_workers=1, collate_fn={given})
    for {target} in {iterated}:
        print(model, {used})


if __name__ == "__main__":
    main()
"""
ROW = "torch.full((2,), float(i))"
TENSORS = "TensorDataset(torch.ones(8, 2), torch.ones(8))"
SHAPES = {
    "a dictionary": (
        {"sample": f'return {{"x": {ROW}.cuda(), "i": i}}', "target": "batch", "used": 'batch["x"]'},
        'return {"x": torch.full((2,), float(i)), "i": i}',
        'batch = {**batch, "x": batch["x"].cuda(non_blocking=True)}',
    ),
    "a device of the dataset": (
        {
            "sample": f"return {ROW}.to(self.gpu), i",
            "iterated": "enumerate(loader)",
            "target": "n, (x, i)",
            "used": "x",
        },
        "return torch.full((2,), float(i)), i",
        "x = x.to(loader.dataset.gpu, non_blocking=True)",
    ),
    "names that are set before": (
        {
            "collate": "x, y = default_collate(samples)\n    x = x.cuda()\n    return x, y",
            "target": "x, y",
            "used": "x",
        },
        "x, y = default_collate(samples)\n    return x, y",
        "x = x.cuda(non_blocking=True)",
    ),
    "each part": (
        {"collate": "return [p.to(DEVICE) for p in default_collate(samples)]", "target": "x, y"},
        "return [p for p in default_collate(samples)]",
        "x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)",
    ),
    "each part of one": (
        {"collate": "return tuple(p.cuda() for p in default_collate(samples))", "target": "batch", "used": "batch"},
        "return tuple(p for p in default_collate(samples))",
        "batch = [part.cuda(non_blocking=True) for part in batch]",
    ),
    "some of one": (
        {"collate": "x, y = default_collate(samples)\n    return x.cuda(), y", "target": "batch", "used": "batch"},
        "x, y = default_collate(samples)\n    return x, y",
        "batch = (batch[0].cuda(non_blocking=True), batch[1])",
    ),
    "each sample before they are joined": (
        {"collate": "x = torch.stack([s[0].cuda() for s in samples])\n    return x, 1", "target": "x, n"},
        "x = torch.stack([s[0] for s in samples])\n    return x, 1",
        "x = x.cuda(non_blocking=True)",
    ),
    "each part of a sample": (
        {"given": "lambda samples: [s[0].cuda() for s in samples]", "target": "batch", "used": "batch"},
        "collate_fn=lambda samples: [s[0] for s in samples]",
        "batch = [part.cuda(non_blocking=True) for part in batch]",
    ),
    "a lambda": (
        {"given": "lambda s: default_collate(s)[0].cuda()", "target": "x"},
        "collate_fn=lambda s: default_collate(s)[0]",
        "x = x.cuda(non_blocking=True)",
    ),
}


def of_parts(parts: dict[str, str]) -> str:
    """A program whose loader's workers put something on the GPU."""
    collated = "collate" in parts or "given" in parts
    plain = {
        "sample": "return i",
        "collate": "return samples",
        "data": TENSORS if collated else 'Rows("cuda")',
        "given": "collate" if collated else "None",
        "iterated": "loader",
        "used": "x",
    }
    return PARTS.format(**(plain | parts))


@pytest.mark.parametrize(("parts", "made", "moved"), SHAPES.values(), ids=SHAPES)
def test_what_workers_moved_the_loop_moves(parts: dict[str, str], made: str, moved: str) -> None:
    before = of_parts(parts)
    after, level, reason = repair(before, "CUD401")
    assert f"    {made}\n" in after or f"{made}, pin" in after
    loop = f"    for {parts['target']} in {parts.get('iterated', 'loader')}:\n"
    assert f"{loop}        {moved}\n" in after
    assert (level, "on the CPU" in (reason or "")) == (Applicability.UNSAFE, True)
    assert not left(after, "CUD401")


OF_OBJECTS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

ROWS = TensorDataset(torch.ones(4, 1))


class Batches:
    def __init__(self, gpu):
        self.gpu = torch.device(gpu)
        torch.ones(1).to(self.gpu)

    def {name}(self, rows):
        return torch.stack([row[0] for row in rows]).to(self.gpu)

    def made(self):
        return DataLoader(ROWS, num_workers=1, collate_fn=self.{name})

    def run(self):
        for x in self.made():
            print(x)

    def show(self):
        print([x for x in self.made()])


def main():
    batches = Batches("cuda")
    {run}


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("name", "run", "moved"),
    [
        pytest.param(
            "collated", "batches.run()", "x = x.to(self.gpu, non_blocking=True)", id="in a method of the object"
        ),
        pytest.param(
            "__call__",
            "loader = DataLoader(ROWS, num_workers=1, collate_fn=batches)\n    for x in loader:\n        print(x)",
            "x = x.to(loader.collate_fn.gpu, non_blocking=True)",
            id="from the loader",
        ),
    ],
)
def test_the_device_of_what_collates_is_read_where_the_loop_has_it(name: str, run: str, moved: str) -> None:
    before = OF_OBJECTS.format(name=name, run=run)
    if name == "__call__":
        before = before.replace("DataLoader(ROWS, num_workers=1, collate_fn=self.__call__)", "[]", 1)
    after, *_ = repair(before, "CUD401")
    assert "return torch.stack([row[0] for row in rows])\n" in after
    assert f"        {moved}\n" in after
    assert not left(after, "CUD401")


def test_all_loops_over_the_one_loader_move_its_batches() -> None:
    before = text_of("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset


        def collate(rows):
            return torch.stack([row[0] for row in rows]).cuda()


        def train(loader):
            for x in loader:
                print(x)


        def evaluate(loader):
            for i, x in enumerate(loader):
                print(i, x)


        def main():
            torch.ones(1).cuda()
            loader = DataLoader(TensorDataset(torch.ones(4, 1)), num_workers=1, collate_fn=collate)
            train(loader)
            evaluate(loader)


        if __name__ == "__main__":
            main()
    """)
    after, *_ = repair(before, "CUD401")
    assert after.count("        x = x.cuda(non_blocking=True)\n") == 2
    assert not left(after, "CUD401")


APART = {
    "two loaders": {"used": "x, len(DataLoader(Rows(0)))", "sample": f"return {ROW}.cuda()"},
    "two uses of a function": {"collate": "return default_collate(samples)[0].cuda()", "used": "collate([])"},
    "two ways out": {"sample": f"if i:\n            return {ROW}.cuda()\n        return {ROW}.cuda()"},
    "something moved that stays": {"sample": f"w = {ROW}.cuda()\n        return (w * 2), i"},
}


@pytest.mark.parametrize("parts", APART.values(), ids=APART)
def test_what_another_loop_would_miss_is_moved_by_the_workers(parts: dict[str, str]) -> None:
    after, *_ = repair(of_parts({"target": "x", **parts}), "CUD401")
    assert "non_blocking" not in after


def test_a_loop_that_nobody_sees_keeps_its_batches() -> None:
    before = LOOP.format(sample="return torch.ones(8).cuda()", loader=SPREAD, loop="print(sum(map(model, loader)))")
    after, *_ = repair(before, "CUD401")
    assert ".cuda()" in after
    assert 'multiprocessing_context="spawn"' in after


def test_what_only_workers_need_goes_with_them() -> None:
    before = text_of("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        if __name__ == "__main__":
            loader = DataLoader(
                TensorDataset(torch.rand(64, 8).cuda()),
                num_workers=2,
                batch_size=16,  # rows
                persistent_workers=True, shuffle=True)
            for (batch,) in loader:
                print(batch.mean().item())
    """)
    after, *_ = repair(before, "CUD402")
    call = after[after.index("DataLoader(\n") : after.index("    for")]
    assert "".join(call.split()) == "DataLoader(TensorDataset(torch.rand(64,8).cuda()),batch_size=16,#rowsshuffle=True)"


def test_a_number_of_workers_that_has_no_name_stays() -> None:
    before = text_of("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        if __name__ == "__main__":
            data = TensorDataset(torch.rand(64, 8).cuda())
            for (batch,) in DataLoader(data, 2, False, None, None, 2, persistent_workers=True):
                print(batch.mean().item())
    """)
    after, *_ = repair(before, "CUD402")
    assert 'data, 2, False, None, None, 2, persistent_workers=True, multiprocessing_context="spawn")' in after


def test_pinning_is_taken_out_of_the_arguments_that_are_kept() -> None:
    before = text_of("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        options = dict(batch_size=4, pin_memory=True)
        for (batch,) in DataLoader(TensorDataset(torch.rand(64, 8).cuda()), **options):
            print(batch.mean().item())
    """)
    after, level, _ = repair(before, "CUD403")
    assert changed(before, after)[1] == ["options = dict(batch_size=4)"]
    assert level is Applicability.UNSAFE, "another loader may take them too"


@pytest.mark.parametrize(
    ("default", "device", "doubt"),
    [
        ("torch.set_default_device('cuda:1')", "'cuda:1'", "the same seed in every run"),
        (
            'torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")',
            "torch.get_default_device()",
            "from version 2.3 on",
        ),
        (
            'torch.set_default_tensor_type("torch.cuda.FloatTensor" if torch.cuda.is_available() else torch.Tensor)',
            '"cuda"',
            "without a GPU",
        ),
    ],
)
def test_the_generator_is_on_the_default_device(default: str, device: str, doubt: str) -> None:
    loader = 'DataLoader(TensorDataset(torch.rand(64, 8, device="cpu")), shuffle=True)'
    before = text_of(f"""
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        {default}
        for (batch,) in {loader}:
            print(batch.mean().item())
    """)
    after, trusted, reason = repair(before, "CUD404")
    assert after == before.replace("shuffle=True", f"shuffle=True, generator=torch.Generator(device={device})")
    assert trusted is Applicability.UNSAFE
    assert doubt in (reason or "")


# -- ranks -------------------------------------------------------------------------------------------------------


def ranks(run: str, start: str = SPAWNED) -> str:
    return text_of(RANKS.format(run="\n\n" + textwrap.dedent(run).strip() + "\n", start=start))


USE = 'dist.all_reduce(torch.ones(1, device="cuda"))'
JOIN = 'dist.init_process_group("nccl", rank=rank, world_size=n, init_method=MEET)'


@pytest.mark.parametrize(
    ("code", "before", "gone", "come"),
    [
        pytest.param(
            "CUD501",
            ranks(f"def run(rank, n):\n\t{JOIN}; torch.cuda.set_device(rank)\n\t{USE}"),
            [],
            ["\ttorch.cuda.set_device(rank)"],
            id="semicolon and tabs",
        ),
        pytest.param(
            "CUD501",
            ranks(f"def setup(rank, n):\n    {JOIN}\n\n\ndef run(rank, n):\n    setup(rank, n)\n"
                  f"    gpu = torch.device('cuda', rank)\n    torch.cuda.set_device(gpu)  # mine\n    {USE}"),
            ["    setup(rank, n)", "    gpu = torch.device('cuda', rank)", "    torch.cuda.set_device(gpu)  # mine"],
            ["    gpu = torch.device('cuda', rank)", "    torch.cuda.set_device(gpu)  # mine", "    setup(rank, n)"],
            id="group in a helper, device with what it is made of",
        ),
        pytest.param(
            "CUD501",
            ranks(f"def run(rank, n):\n    {JOIN}\n"
                  f"    if torch.cuda.is_available(): torch.cuda.set_device(rank)\n    {USE}"),
            [f"    {JOIN}", "    if torch.cuda.is_available(): torch.cuda.set_device(rank)"],
            ["    if torch.cuda.is_available(): torch.cuda.set_device(rank)", f"    {JOIN}"],
            id="a condition in one row",
        ),
        pytest.param(
            "CUD502",
            ranks(f"def run(rank, n):\n    {JOIN}\n    dist.all_gather_object([None] * n, rank)\n"
                  f"    with open(os.devnull): torch.cuda.set_device(rank)\n    {USE}"),
            [],
            ["    torch.cuda.set_device(rank)"],
            id="selected in a suite of one row",
        ),
        pytest.param(
            "CUD503",
            ranks(f'class Job:\n    def run(self, rank, n):\n        """A rank."""\n        {JOIN}\n        {USE}',
                  "mp.spawn(Job().run, args=(2,), nprocs=2)"),
            [],
            ["        torch.cuda.set_device(rank)"],
            id="a method with a docstring",
        ),
        pytest.param(
            "CUD503",
            ranks(f"def run(rank, n):\n    {JOIN}\n    {USE}",
                  "for r in range(2):\n        mp.Process(target=run, args=(r, 2)).start()"),
            [],
            ["    torch.cuda.set_device(rank)"],
            id="processes one by one",
        ),
        pytest.param(
            "CUD503",
            ranks("def run(rank, n):\n    torch.cuda.set_device(\n        0,  # the first\n    )\n"
                  f"    {JOIN}\n    {USE}"),
            ["        0,  # the first"],
            ["        rank,  # the first"],
            id="the same GPU for all",
        ),
        pytest.param(
            "CUD503",
            ranks(f"def run(rank, n):\n    {JOIN}\n"
                  '    devices = [torch.device(f"cuda:{i}") for i in range(n)]\n    device = devices[0]\n'
                  "    dist.all_reduce(torch.ones(1, device=device))"),
            ["    device = devices[0]"],
            ["    device = devices[rank]"],
            id="the same item for all",
        ),
        pytest.param(
            "CUD503",
            ranks(f"def run(rank, n, gpus=(0, 1)):\n    {JOIN}\n    model = torch.nn.Linear(2, 2).to(gpus[0])\n"
                  "    torch.nn.parallel.DistributedDataParallel(model)"),
            ["    model = torch.nn.Linear(2, 2).to(gpus[0])"],
            ["    model = torch.nn.Linear(2, 2).to(gpus[rank])"],
            id="the same item of a parameter for all",
        ),
        pytest.param(
            "CUD504",
            ranks(f"def run(rank, n): x = torch.ones(1).cuda(); torch.cuda.set_device(rank); {JOIN}; {USE}"),
            [f"def run(rank, n): x = torch.ones(1).cuda(); torch.cuda.set_device(rank); {JOIN}; {USE}"],
            [f"def run(rank, n): torch.cuda.set_device(rank); x = torch.ones(1).cuda(); torch.cuda.set_device(rank);"
             f" {JOIN}; {USE}"],
            id="a rank in one row",
        ),
        pytest.param(
            "CUD506",
            ranks("def main():\n    local_rank, rank = int(os.environ['LOCAL_RANK']), int(os.environ['RANK'])\n"
                  "    torch.cuda.set_device(device=torch.device('cuda', rank))\n"
                  f"    dist.init_process_group()\n    {USE}",
                  "main()"),
            ["    torch.cuda.set_device(device=torch.device('cuda', rank))"],
            ["    torch.cuda.set_device(device=torch.device('cuda', local_rank))"],
            id="inside torch.device, by keyword",
        ),
    ],
)  # fmt: skip
def test_ranks_select_their_own_gpu(code: str, before: str, gone: list[str], come: list[str]) -> None:
    after, level, reason = repair(before, code)
    assert changed(before, after) == (gone, come)
    assert level is Applicability.UNSAFE
    assert reason is not None
    assert not analysed(after).findings


def test_a_rank_of_the_group_is_not_known_before_it() -> None:
    run = f"def main():\n    dist.init_process_group('nccl')\n    torch.cuda.set_device(dist.get_rank())\n    {USE}"
    before = ranks(run, "main()")
    after, level, reason = repair(before, "CUD501")
    assert level is Applicability.DISPLAY
    assert changed(before, after)[1] == ['    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))']
    assert reason is not None


def test_a_constructor_selects_by_nothing_that_only_another_method_sets() -> None:
    before = text_of("""
        import os

        import torch
        import torch.distributed as dist


        class Loop:
            def __init__(self):
                self.weights = torch.ones(3, device="cuda")

            def run(self):
                self.local_rank = int(os.environ["LOCAL_RANK"])
                torch.cuda.set_device(self.local_rank)
                dist.init_process_group("nccl")
                dist.all_reduce(torch.ones(1, device="cuda"))


        if __name__ == "__main__":
            Loop().run()
    """)
    after, _, _ = repair(before, "CUD504")
    assert changed(before, after)[1] == ['        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))']


def test_ranks_that_are_started_in_one_row_are_told_where_they_meet() -> None:
    before = text_of("""
        import torch.distributed as dist
        import torch.multiprocessing as mp


        def run(rank, n): dist.init_process_group("gloo", rank=rank, world_size=n); print(rank)


        if __name__ == "__main__": mp.spawn(run, args=(2,), nprocs=2)
    """)
    after, *_ = repair(before, "CUD505")
    meet = 'os.environ.setdefault("MASTER_ADDR", "127.0.0.1"); os.environ.setdefault("MASTER_PORT", "29500"); '
    assert after == "import os\n\n" + before.replace("mp.spawn", f"{meet}mp.spawn")
    assert not left(after, "CUD505")


def test_ranks_that_nobody_tells_their_number_get_advice() -> None:
    program = text_of("""
        import os
        import torch.distributed as dist
        import torch.multiprocessing as mp


        def run(rank): dist.init_process_group("nccl"); print(rank)


        if __name__ == "__main__":
            os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
            mp.spawn(run, nprocs=2)
    """)
    after, level, _ = repair(program, "CUD505")
    assert (after, level) == (program, Applicability.DISPLAY)


@pytest.mark.parametrize("gpus", ["range(2)", "[0, 1]", "range(torch.cuda.device_count())"])
@pytest.mark.parametrize(
    ("choice", "tensor"),
    [("torch.cuda.set_device(rank)", "torch.ones(1).cuda()"), ("pass", 'torch.ones(1, device=f"cuda:{rank}")')],
    ids=["selected", "named"],
)
def test_processes_with_a_gpu_of_their_own_need_no_repair(gpus: str, choice: str, tensor: str) -> None:
    run = f"def run(rank, n):\n    {choice}\n    {JOIN}\n    dist.all_reduce({tensor})"
    start = f"ps = [mp.Process(target=run, args=(r, 2)) for r in {gpus}]\n    for p in ps:\n        p.start()"
    assert not left(ranks(run, start), "CUD503")


def test_a_dataset_of_another_file_is_repaired_with_the_loop() -> None:
    head = "import torch\nfrom torch.utils.data import DataLoader, Dataset\n"
    samples = (
        f"{head}\n\nclass Samples(Dataset):\n    def __len__(self):\n        return 8\n\n"
        "    def __getitem__(self, i):\n        return torch.ones(3).cuda(), i\n"
    )
    main = (
        f'{head}from samples import Samples\n\nif __name__ == "__main__":\n    model = torch.nn.Linear(3, 1).cuda()\n'
        "    for x, i in DataLoader(Samples(), num_workers=2):\n        print(model(x), i)\n"
    )
    texts = {"/p/samples.py": samples, "/p/main.py": main}
    analysis = analyse([SourceFile(path, text, text.encode()) for path, text in texts.items()], Options())
    finding = next(f for f in analysis.findings if f.code == "CUD401")
    edits = repaired(analysis, [finding])[finding].edits
    after = {
        path: apply(text, as_changes(text, [e for e in edits if e.span.filename == path]))
        for path, text in texts.items()
    }
    assert changed(samples, after["/p/samples.py"])[1] == ["        return torch.ones(3), i"]
    assert changed(main, after["/p/main.py"])[1] == [
        "    for x, i in DataLoader(Samples(), num_workers=2, pin_memory=True):",
        "        x = x.cuda(non_blocking=True)",
    ]
    again = analyse([SourceFile(path, text, text.encode()) for path, text in after.items()], Options())
    assert not again.findings


POOL = """
import torch
{imports}


def score(x):
    return torch.ones(1).cuda().item() + x


if __name__ == "__main__":
    torch.cuda.init()
    {run}
"""


@pytest.mark.parametrize(
    ("imports", "run", "come"),
    [
        (
            "from multiprocessing.pool import Pool",
            "Pool(2).map(score, [1])",
            'multiprocessing.get_context("spawn").Pool(2)',
        ),
        (
            "import multiprocessing.pool",
            "multiprocessing.pool.Pool(2).map(score, [1])",
            'multiprocessing.get_context("spawn").Pool(2)',
        ),
        (
            "from pebble import ProcessPool",
            "ProcessPool(max_workers=2).schedule(score, args=(1,)).result()",
            'ProcessPool(max_workers=2, context=multiprocessing.get_context("spawn"))',
        ),
        ("from mpire import WorkerPool", "WorkerPool(2).map(score, [1])", 'WorkerPool(2, start_method="spawn").map'),
        (
            "from tqdm.contrib.concurrent import process_map",
            "process_map(score, [1])",
            'multiprocessing.set_start_method("spawn")\n    torch.cuda.init()',
        ),
    ],
)
def test_each_pool_is_told_to_spawn_in_its_own_words(imports: str, run: str, come: str) -> None:
    text, _, _ = repair(POOL.format(imports=imports, run=run), "CUD101")
    assert come in text
    assert left(text, "CUD101") == []


LOADS = """
import os

import torch
import torch.multiprocessing as mp


def run(rank, path):
    {chosen}
    model = torch.nn.Linear(2, 2).to(rank)
    {load}


if __name__ == "__main__":
    torch.save(torch.nn.Linear(2, 2).cuda().state_dict(), "a.pt")
    mp.spawn(run, args=("a.pt",), nprocs=2)
"""
CHOOSES = "torch.cuda.set_device(rank)"


@pytest.mark.parametrize(
    ("chosen", "load", "come"),
    [
        (CHOOSES, "torch.load(path)", 'torch.load(path, map_location="cuda")'),
        (CHOOSES, "torch.load(path, 'cuda:0')", 'torch.load(path, "cuda")'),
        (CHOOSES, "torch.load(path, map_location='cuda:0')", 'torch.load(path, map_location="cuda")'),
        ("pass", "torch.load(path)", 'torch.load(path, map_location="cpu")'),
        ("pass", "torch.load(path, weights_only=True)", 'torch.load(path, weights_only=True, map_location="cpu")'),
    ],
)
def test_a_checkpoint_is_loaded_onto_the_gpu_of_the_rank(chosen: str, load: str, come: str) -> None:
    text = LOADS.format(chosen=chosen, load=load)
    after, applicability, _ = repair(text, "CUD504")
    assert changed(text, after) == ([f"    {load}"], [f"    {come}"])
    assert applicability is Applicability.UNSAFE
    assert not left(after, "CUD504")
