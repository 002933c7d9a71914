"""The repaired program of a fixture, made at this moment, in a folder of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from cudalint.config import Config
from cudalint.fixing.rounds import fix
from cudalint.session import Session
from cudalint.verify.headers import Fixture


def repaired(fixture: Fixture, folder: Path) -> Path | None:
    """Write the program with every repair that has edits into the folder; ``None`` where there is none."""
    done = fix(Session(Config(exclude=()).as_measured()), [str(fixture.root)], unsafe=True)
    changes = {Path(change.path): change.after for change in done.changes}
    if not changes:
        return None
    if fixture.root.is_dir():
        shutil.copytree(fixture.root, folder / fixture.root.name)
    for path, data in changes.items():
        (folder / path.relative_to(fixture.root.parent)).write_bytes(data)
    return folder / fixture.path.relative_to(fixture.root.parent)
