"""python -m release.words.

From `tests/`, after a change of the models: writes the words by which a file shows that it can matter.
"""

from __future__ import annotations

from pathlib import Path

from cudalint.models import shipped_words
from cudalint.models.library import load

if __name__ == "__main__":
    Path(shipped_words.FILE).write_text(shipped_words.written(load().vocabulary), encoding="utf-8")
