"""Every repaired fixture ends well under paper CUDA, with the trigger of its latent variant too.

That the repaired text is what cudalint makes of the fixture now is for test_fixes.py to show.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fixture_markers import ROOT
from paper.fixture import check_repaired
from paper.ingredients import of_program
from paper.plugin import Unchanged

FIXED = sorted(ROOT.glob("*/*.fixed"))


@pytest.mark.parametrize("path", FIXED, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_repaired_program_ends_well(path: Path, tmp_path: Path, unchanged: Unchanged) -> None:
    program = tmp_path / path.with_suffix(".py").name
    shutil.copy(path, program)
    if not unchanged(of_program(program, program.name), code=("paper.fixture",)):
        assert check_repaired(program) == []
