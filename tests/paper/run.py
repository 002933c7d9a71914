"""Runs a program under paper CUDA and says what happened."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudalint.verify.paper import STUBS

__all__ = ["STUBS", "Observed", "run"]

HERE = Path(__file__).resolve().parent
_SCRUBBED = frozenset(
    [
        "CUDA_VISIBLE_DEVICES",
        "PYTORCH_NVML_BASED_CUDA_CHECK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "PYTHONPATH",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "JAX_PLATFORMS",
        "TF_FORCE_GPU_ALLOW_GROWTH",
    ]
)
_MEASURED = re.compile(r"^measured:\s*(\w+)\s*=\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Observed:
    """What a run did. `outcome` is ok, crash, hang or child-death."""

    outcome: str
    code: int | None
    stdout: str
    stderr: str
    seconds: float
    dead: dict[int, int] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
    contexts: tuple[tuple[int, int], ...] = ()

    @property
    def text(self) -> str:
        """Both outputs, as patterns are searched in them."""
        return self.stdout + self.stderr


def _environment(state: Path, gpus: int, env: Mapping[str, str]) -> dict[str, str]:
    made = {key: value for key, value in os.environ.items() if key not in _SCRUBBED}
    path = str(STUBS) + (os.pathsep + env["PYTHONPATH"] if "PYTHONPATH" in env else "")
    made.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1")
    made.update(env)
    made.update(PYTHONPATH=path, PAPER_STATE=str(state), PAPER_GPUS=str(gpus), JOBLIB_TEMP_FOLDER=str(state))
    # What programs are said to do is said of Linux before Python 3.14.
    made.setdefault("PAPER_START_METHOD", "fork")
    return made


def _journal(state: Path) -> list[list[str]]:
    path = state / "journal"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def _dead_children(journal: Sequence[Sequence[str]], report: Mapping[str, Any]) -> dict[int, int]:
    """Every Python child that ended badly by itself: not the main process, not one that was told to end."""
    codes = {int(words[1]): int(words[2]) for words in journal if words[0] == "reaped"}
    codes.update({int(pid): code for pid, code in report["deaths"].items() if code})
    started = {int(words[1]) for words in journal if words[0] == "forked"}
    wanted = {(int(words[1]), -int(words[2])) for words in journal if words[0] == "killed"}
    codes.pop(report["main"], None)
    return {pid: code for pid, code in codes.items() if pid in started and (pid, code) not in wanted}


def _outcome(code: int | None, dead: Mapping[int, int]) -> str:
    if code is None:
        return "hang"
    if code:
        return "crash"
    return "child-death" if dead else "ok"


def run(
    program: Path,
    *,
    gpus: int = 1,
    limit: float = 6.0,
    env: Mapping[str, str] | None = None,
    args: Sequence[str] = (),
    python: str = sys.executable,
) -> Observed:
    """Run one program on a paper machine with `gpus` GPUs; whatever it starts is gone afterwards."""
    base = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None
    work = Path(tempfile.mkdtemp(prefix="paper-run-", dir=base))
    try:
        state, cwd = work / "state", work / "cwd"
        state.mkdir()
        cwd.mkdir()
        files = [str(work / name) for name in ("result", "stdout", "stderr")]
        command = [python, "-I", "-S", str(HERE / "supervise.py"), str(limit), *files]
        command += [python, str(Path(program).resolve()), *args]
        environment = _environment(state, gpus, env or {})
        subprocess.run(command, cwd=cwd, env=environment, check=True, timeout=limit + 60)
        report = json.loads((work / "result").read_text())
        journal = _journal(state)
        stdout, stderr = (Path(name).read_text(errors="replace") for name in files[1:])
        dead = _dead_children(journal, report)
        return Observed(
            outcome=_outcome(report["code"], dead),
            code=report["code"],
            stdout=stdout,
            stderr=stderr,
            seconds=report["seconds"],
            dead=dead,
            measured=dict(_MEASURED.findall(stdout)),
            gaps=tuple(sorted({words[1] for words in journal if words[0] == "gap"})),
            contexts=tuple((int(words[1]), int(words[2])) for words in journal if words[0] == "context"),
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
