"""The GPUs of this machine, found without touching CUDA, and who may use which of them."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from cudalint.structs import Frozen

# What a program takes of a GPU, with room: fixtures took 1,070 MiB on average and 8,060 at most on 2 x H100 (those that
# ask for more run alone). Decides how many may share one.
_SHARE_MIB = 4000
_UNKNOWN_MEMORY_MIB = 4 * _SHARE_MIB


class Gpu(Frozen):
    """One physical GPU; ``index`` is its place in PCI bus order."""

    index: int
    name: str
    memory_mib: int
    uuid: str = ""

    def answers_to(self, word: str) -> bool:
        """Whether a word of CUDA_VISIBLE_DEVICES names it: its index, or the beginning of its UUID."""
        return word == str(self.index) or (word.startswith("GPU-") and self.uuid.startswith(word))


class Gpus(Frozen):
    """The GPUs to use, the version of their driver, and how many more the machine has."""

    devices: tuple[Gpu, ...] = ()
    driver: str = ""
    hidden: int = 0

    def first(self, count: int | None) -> Gpus:
        """At most ``count`` of them; the others are to be hidden from programs."""
        if count is None or count >= len(self.devices):
            return self
        return self._only(self.devices[:count])

    def visible(self, wanted: str | None) -> Gpus:
        """Those that CUDA_VISIBLE_DEVICES leaves, read as CUDA reads it: up to the first word that names none.

        Parts of a GPU (MIG) are not told apart.
        """
        if wanted is None or "MIG" in wanted:
            return self
        chosen: dict[int, Gpu] = {}
        for word in map(str.strip, wanted.split(",")):
            gpu = next((gpu for gpu in self.devices if gpu.answers_to(word)), None)
            if gpu is None:
                break
            chosen[gpu.index] = gpu
        return self._only(tuple(chosen[index] for index in sorted(chosen)))

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that show a program these and no others."""
        return _showing([gpu.index for gpu in self.devices]) if self.hidden else {}

    def _only(self, devices: tuple[Gpu, ...]) -> Gpus:
        return Gpus(devices, self.driver, self.hidden + len(self.devices) - len(devices))


def discover() -> Gpus:
    """The GPUs that the user leaves to us, by nvidia-ml-py where it is installed, else by nvidia-smi.

    None where neither answers.
    """
    return (_by_nvml() or _by_smi() or Gpus()).visible(os.environ.get("CUDA_VISIBLE_DEVICES"))


def used_mib(gpus: Sequence[Gpu]) -> dict[int, int]:
    """Memory in use on each GPU; empty where it cannot be read."""
    rows = _query("index", "memory.used")
    wanted = {gpu.index for gpu in gpus}
    return {int(row[0]): int(row[1]) for row in rows if row[0].isdecimal() and int(row[0]) in wanted}


def _by_nvml() -> Gpus | None:
    try:
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        devices = tuple(_device(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
        return Gpus(devices, _text(pynvml.nvmlSystemGetDriverVersion()))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _device(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    name, uuid = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
    return Gpu(index, name, int(memory.total) >> 20, uuid)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _by_smi() -> Gpus | None:
    rows = _query("index", "name", "memory.total", "uuid", "driver_version")
    devices = tuple(
        Gpu(int(row[0]), row[1], int(row[2]) if row[2].isdecimal() else _UNKNOWN_MEMORY_MIB, row[3]) for row in rows
    )
    return Gpus(devices, rows[0][4]) if devices else None


def _query(*fields: str) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
    return [row for row in rows if len(row) == len(fields)]


def _showing(gpus: Sequence[int]) -> Mapping[str, str]:
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}


class Need(Frozen):
    """What a program needs: so many GPUs, and whether nobody else may be on them."""

    gpus: int
    alone: bool = False


class Lease(Frozen):
    """GPUs given to one program until it ends."""

    gpus: tuple[int, ...]
    alone: bool


class Pool:
    """Hands out GPUs and places to run in. Not thread-safe: one thread asks."""

    def __init__(self, gpus: Sequence[Gpu], places: int, hidden: int = 0) -> None:
        self._free = places
        self._visible = len(gpus) + hidden
        self._capacity = {gpu.index: max(1, gpu.memory_mib // _SHARE_MIB) for gpu in gpus}
        self._users = dict.fromkeys(self._capacity, 0)
        self._alone: set[int] = set()

    def lease(self, need: Need) -> Lease | None:
        """GPUs for a program, the least used first; ``None`` while there are not enough."""
        if self._free == 0:
            return None
        if need.alone and self._alone:
            return None  # one at a time, so that the others keep what they can share
        able = [index for index in sorted(self._users, key=self._rank) if self._has_room(index, need.alone)]
        if len(able) < need.gpus:
            return None
        lease = Lease(tuple(sorted(able[: need.gpus])), need.alone and need.gpus > 0)
        self._free -= 1
        for index in lease.gpus:
            self._users[index] += 1
        self._alone.update(lease.gpus if lease.alone else ())
        return lease

    def give_back(self, lease: Lease) -> None:
        """Take the GPUs of a program that has ended."""
        self._free += 1
        for index in lease.gpus:
            self._users[index] -= 1
        self._alone.difference_update(lease.gpus if lease.alone else ())

    def environment(self, lease: Lease) -> Mapping[str, str]:
        """Variables that show a program its GPUs alone; none where it has all of them."""
        if not lease.gpus or len(lease.gpus) == self._visible:
            return {}
        return _showing(lease.gpus)

    def _rank(self, index: int) -> tuple[int, int]:
        return self._users[index], index

    def _has_room(self, index: int, alone: bool) -> bool:
        if index in self._alone:
            return False
        return self._users[index] == 0 if alone else self._users[index] < self._capacity[index]
