"""Which findings are notes: what the code shows to be meant, or to come to nothing as it stands."""

from __future__ import annotations

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile


def found(text: str) -> list[tuple[str, str]]:
    """The findings of a program, each with its severity."""
    source = SourceFile("/p/main.py", text, text.encode())
    return [(f.code, f.severity.value) for f in analyse([source], Options(), root="/p").findings]


POOL = """\
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import torch


def load():
    global MODEL
    MODEL = torch.ones(1, device="cuda")


def nothing():
    pass


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with POOL as pool:
        print(list(pool.map(work, range(8))))
"""


@pytest.mark.parametrize(
    ("pool", "severity"),
    [
        ("context.Pool(4, initializer=load)", "note"),
        ("ProcessPoolExecutor(4, mp_context=context, initializer=load)", "note"),
        # Each task opens its context, and as many as the machine has cores may be more than its GPU holds.
        ("context.Pool(4, initializer=nothing)", "warning"),
        ("context.Pool(4)", "warning"),
        ("context.Pool(initializer=load)", "warning"),
        ("context.Pool(os.cpu_count(), initializer=load)", "warning"),
        ("ProcessPoolExecutor(4, mp_context=context)", "warning"),
    ],
)
def test_a_context_that_an_initializer_opens_for_each_of_a_named_number_of_workers(pool: str, severity: str) -> None:
    assert found(POOL.replace("POOL", pool)) == [("CUD201", severity)]


RANKS = """\
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

GPUS = (1, 0)


def run(rank, size):
BODY


if __name__ == "__main__":
    LAUNCH
"""
JOIN = "dist.init_process_group('nccl', 'tcp://127.0.0.1:29500', rank=rank, world_size=size)"
TORCHRUN = "dist.init_process_group('nccl')"
SPAWN, TOLD = "mp.spawn(run, args=(2,), nprocs=2)", "run(None, None)"
LOOP = "for rank in range(2):\n        mp.get_context('spawn').Process(target=run, args=(rank, 2)).start()"
CHOOSE = "torch.cuda.set_device(rank)"
CHOOSE_TOLD = "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))"
OTHERS = ["1 - rank", "(rank + 1) % size", "size - 1 - rank", "GPUS[rank]", "rank // 2", "0"]


def ranks(launch: str, *body: str) -> list[tuple[str, str]]:
    return found(RANKS.replace("LAUNCH", launch).replace("BODY", "\n".join(f"    {line}" for line in body)))


@pytest.mark.parametrize("launch", [SPAWN, LOOP])
def test_a_barrier_of_ranks_that_the_launcher_numbers_as_their_gpus_is_no_finding(launch: str) -> None:
    assert ranks(launch, CHOOSE, JOIN, "dist.barrier()") == []
    assert ranks(launch, JOIN, "dist.barrier()", CHOOSE) == [("CUD501", "warning")]


@pytest.mark.parametrize("gpu", OTHERS)
def test_a_barrier_guesses_also_after_another_gpu_was_chosen(gpu: str) -> None:
    choose = f"torch.cuda.set_device({gpu})"
    assert ranks(SPAWN, choose, JOIN, "dist.barrier()") == [("CUD502", "warning")]
    assert ranks(SPAWN, JOIN, "dist.barrier()", choose) == [("CUD501", "warning"), ("CUD502", "warning")]


@pytest.mark.parametrize(
    "settled",
    [
        ["torch.cuda.set_device(1 - rank)", JOIN.replace(")", ", device_id=torch.device('cuda', 1 - rank))")],
        ["torch.cuda.set_device(1 - rank)", JOIN, "dist.barrier(device_ids=[1 - rank])"],
        ["torch.cuda.set_device(1 - rank)", JOIN, "dist.all_reduce(torch.ones(1, device='cuda'))"],
        ["torch.cuda.set_device(1 - rank)", JOIN, "DistributedDataParallel(torch.nn.Linear(1, 1).cuda())"],
        ["torch.cuda.set_device(1 - rank)", JOIN, "dist.all_gather_object([None] * size, rank)"],
        ["torch.cuda.set_device(1 - rank)", JOIN.replace("nccl", "gloo")],
        [JOIN, "dist.all_reduce(torch.ones(1, device=f'cuda:{1 - rank}'))"],
    ],
)
def test_what_settles_the_gpu_of_a_barrier(settled: list[str]) -> None:
    assert ranks(SPAWN, *settled, "dist.barrier()") == []


def test_of_several_barriers_of_a_group_only_the_first_guesses() -> None:
    choose = "torch.cuda.set_device(1 - rank)"
    assert ranks(SPAWN, choose, JOIN, "dist.barrier()", "dist.barrier()") == [("CUD502", "warning")]
    either = ["if rank == 0:", "    dist.barrier()", "else:", "    dist.barrier()"]
    assert ranks(SPAWN, choose, JOIN, *either) == [("CUD502", "warning")]
    again = ["dist.destroy_process_group()", JOIN, "dist.barrier()"]
    assert ranks(SPAWN, choose, JOIN, "dist.barrier()", *again) == [("CUD502", "warning")] * 2


def test_where_no_launcher_is_seen_a_barrier_guesses_before_the_local_rank_is_chosen() -> None:
    assert ranks(TOLD, CHOOSE_TOLD, TORCHRUN, "dist.barrier()") == []
    assert ranks(TOLD, TORCHRUN, "dist.barrier()", CHOOSE_TOLD) == [("CUD502", "warning")]


SHARED = """\
import torch
import torch.multiprocessing as mp


def run(rank, weights):
    print(rank, weights.sum().item())


if __name__ == "__main__":
    LAUNCH
"""


@pytest.mark.parametrize(
    ("launch", "severity"),
    [
        ("mp.spawn(run, args=(torch.ones(3, device='cuda'),), nprocs=2)", "note"),
        ("mp.spawn(run, args=(torch.ones(3, device='cuda'),), nprocs=2, join=False)", "warning"),
    ],
)
def test_an_owner_that_waits_for_all_receivers(launch: str, severity: str) -> None:
    assert ("CUD302", severity) in found(SHARED.replace("LAUNCH", launch))


SERVE = """\
import torch
import torch.multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor, wait


def work(x, *more):
    print(x.sum().item())


def serve(tasks, answers):
    answers.put(tasks.get().sum().item())


"""
WAITS = {
    "joins a list of processes": ("note", """\
    ps = [ctx.Process(target=work, args=(x, i)) for i in range(4)]
    for p in ps:
        p.start()
    for p in ps:
        p.join()
"""),
    "joins processes that it gathered": ("note", """\
    ps = []
    for i in range(4):
        p = ctx.Process(target=work, args=(x, i))
        p.start()
        ps.append(p)
    for p in ps:
        p.join()
"""),
    "joins its process": ("note", """\
    p = ctx.Process(target=work, args=(x,))
    p.start()
    p.join()
"""),
    "waits for nobody": ("warning", """\
    p = ctx.Process(target=work, args=(x,))
    p.start()
"""),
    "waits for some seconds": ("warning", """\
    p = ctx.Process(target=work, args=(x,))
    p.start()
    p.join(5)
"""),
    "leaves the process to its caller": ("warning", """\
    p = ctx.Process(target=work, args=(x,))
    p.start()
    return p
"""),
    "joins on one path": ("warning", """\
    import sys
    p = ctx.Process(target=work, args=(x,))
    p.start()
    if len(sys.argv) > 1:
        p.join()
"""),
    "joins another process": ("warning", """\
    p = ctx.Process(target=work, args=(x,))
    q = ctx.Process(target=print, args=(1,))
    p.start()
    q.start()
    q.join()
"""),
    "gets an answer": ("note", """\
    tasks, answers = ctx.Queue(), ctx.Queue()
    p = ctx.Process(target=serve, args=(tasks, answers))
    p.start()
    tasks.put(x)
    print(answers.get())
"""),
    "puts and ends": ("warning", """\
    tasks, answers = ctx.Queue(), ctx.Queue()
    p = ctx.Process(target=serve, args=(tasks, answers))
    p.start()
    tasks.put(x)
"""),
    "waits for an event": ("note", """\
    done = ctx.Event()
    p = ctx.Process(target=work, args=(x, done))
    p.start()
    done.wait()
"""),
    "waits at a barrier": ("note", """\
    barrier = ctx.Barrier(3)
    for i in range(2):
        ctx.Process(target=work, args=(x, barrier)).start()
    barrier.wait()
"""),
    "maps": ("note", """\
    with ctx.Pool(2) as pool:
        print(pool.map(work, [x, x]))
"""),
    "maps and does not wait": ("warning", """\
    pool = ctx.Pool(2)
    pool.map_async(work, [x, x])
    return pool
"""),
    "joins its pool": ("note", """\
    pool = ctx.Pool(2)
    pool.map_async(work, [x, x])
    pool.close()
    pool.join()
"""),
    "gets a result of its pool": ("note", """\
    with ctx.Pool(2) as pool:
        r = pool.apply_async(work, (x,))
        r.get()
"""),
    "asks for a result": ("note", """\
    with ProcessPoolExecutor(1, mp_context=ctx) as ex:
        f = ex.submit(work, x)
        print(f.result())
"""),
    "leaves its executor": ("note", """\
    with ProcessPoolExecutor(1, mp_context=ctx) as ex:
        ex.submit(work, x)
"""),
    "shuts down without waiting": ("warning", """\
    ex = ProcessPoolExecutor(1, mp_context=ctx)
    ex.submit(work, x)
    ex.shutdown(wait=False)
"""),
    "waits for futures": ("note", """\
    ex = ProcessPoolExecutor(1, mp_context=ctx)
    fs = [ex.submit(work, x) for _ in range(3)]
    wait(fs)
"""),
    "joins the context of its ranks": ("note", """\
    c = mp.spawn(work, args=(x,), nprocs=2, join=False)
    while not c.join():
        pass
"""),
    "does not join the ranks": ("warning", """\
    c = mp.spawn(work, args=(x,), nprocs=2, join=False)
"""),
    "joins in a helper": ("note", """\
    ps = start_all(ctx, x)
    finish(ps)

def start_all(ctx, x):
    ps = []
    for i in range(2):
        p = ctx.Process(target=work, args=(x, i))
        ps.append(p)
    [p.start() for p in ps]
    return ps

def finish(ps):
    while ps:
        ps.pop().join()
"""),
    "joins processes in a dict": ("note", """\
    ps = {}
    for name in ("a", "b"):
        ps[name] = ctx.Process(target=work, args=(x, name))
        ps[name].start()
    for name, p in ps.items():
        p.join()
"""),
    "joins in a method": ("note", """\
    Boss(ctx, x).run()

class Boss:
    def __init__(self, ctx, x):
        self.workers = [ctx.Process(target=work, args=(x,)) for _ in range(2)]
    def run(self):
        for w in self.workers:
            w.start()
        try:
            pass
        finally:
            for w in self.workers:
                w.join()
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITS)
def test_an_owner_that_waits_until_its_memory_is_no_longer_looked_at(name: str) -> None:
    severity, body = WAITS[name]
    start = "def main():\n    ctx = mp.get_context('spawn')\n    x = torch.ones(8, device='cuda')\n"
    text = f"{SERVE}{start}{body}\n\nif __name__ == '__main__':\n    main()\n"
    assert set(found(text)) == {("CUD302", severity)}


BY_HAND = """\
import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--rank", default=0, type=int)
parser.add_argument("--world-size", default=1, type=int)
args = parser.parse_args()
dist.init_process_group("nccl", init_method="tcp://10.0.0.1:23456", world_size=args.world_size, rank=RANK)
model = torch.nn.Linear(4, 4).cuda()
if args.world_size > 1:
    model = torch.nn.parallel.DistributedDataParallel(model)
"""


@pytest.mark.parametrize(
    ("rank", "severity"),
    [
        # Whoever starts each rank may start it on a machine of its own.
        ("args.rank", "warning"),
        ("int(args.rank)", "warning"),
        ("int(os.environ['RANK'])", "error"),
    ],
)
def test_ranks_that_users_number_may_each_have_a_machine(rank: str, severity: str) -> None:
    source = SourceFile("/p/main.py", text := BY_HAND.replace("RANK", rank, 1), text.encode())
    (finding,) = (f for f in analyse([source], Options(), root="/p").findings if f.code in ("CUD502", "CUD503"))
    assert finding.severity.value == severity
    assert ("whether ranks share a machine cannot be seen here" in finding.message) is (severity == "warning")


OF_SLURM = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group("nccl", init_method="file:///tmp/x", rank=int(os.environ["RANK"]), world_size=8)
torch.cuda.set_device(0)
dist.all_reduce(torch.ones(1, device="cuda"))
"""


@pytest.mark.parametrize(("variable", "severity"), [("SLURM_PROCID", "warning"), ("RANK", "error")])
def test_tasks_of_slurm_may_each_see_a_gpu(variable: str, severity: str) -> None:
    """As of fme, whose ranks take GPU 0 where srun starts them, for one GPU is bound to each."""
    source = SourceFile("/p/main.py", text := OF_SLURM.replace("RANK", variable), text.encode())
    (finding,) = (f for f in analyse([source], Options(), root="/p").findings if f.code == "CUD503")
    assert finding.severity.value == severity
    assert ("whether each task of Slurm sees a GPU of its own" in finding.message) is (severity == "warning")
