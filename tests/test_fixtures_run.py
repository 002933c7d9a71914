"""Every fixture ends under paper CUDA as its header says, latent ones fail with their trigger."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixture_markers import ROOT, programs
from paper.fixture import check
from paper.ingredients import of_program
from paper.plugin import Unchanged
from since_python import skip_where_otherwise


@pytest.mark.parametrize("path", programs(), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_program_ends_as_its_header_says(path: Path, unchanged: Unchanged) -> None:
    skip_where_otherwise(str(path.relative_to(ROOT)))
    if not unchanged(of_program(path, path.name), code=("paper.fixture",)):
        assert check(path) == []
