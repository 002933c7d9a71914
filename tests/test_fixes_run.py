"""Every repaired fixture ends well under paper CUDA, with the trigger of its latent variant too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fixture_markers import ROOT, header
from paper.fixture import judge, run_fixture

FIXED = sorted(ROOT.glob("*/*.fixed"))


@pytest.mark.parametrize("path", FIXED, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_repaired_program_ends_well(path: Path, tmp_path: Path) -> None:
    program = tmp_path / path.with_suffix(".py").name
    shutil.copy(path, program)
    table = header(program.read_text(encoding="utf-8"))
    observed = run_fixture(program)
    assert judge({}, observed) == []
    if table.get("outcome") == "latent":
        assert judge({}, run_fixture(program, trigger=True)) == []
    if table.get("outcome") == "wrong-device" and table.get("gpus") != 1:
        assert any(gpu > 0 for _, gpu in observed.contexts), "all work still runs on the first GPU"
