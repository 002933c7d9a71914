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
