"""Runs the notebooks of traps.txt under ``cudalint --verify`` and compares what is seen with what they say.

``python tests/notebooks/run.py [--paper] [WORDS...]``: all, or those whose names hold one of the words; on the GPUs of
this machine, or on paper. A "broken" one has to show each marked finding and end badly, but for those about costs and
settings without effect; an "ok" one has to end well. Ends with 1 when one differs.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from notebook_files import cases, marked, notebook, unmarked

from cudalint.verify import Format, script, verify_program
from cudalint.verify.gpus import discover

# A pool that is spawned starts its workers again for ever.
_SECONDS = 40.0


def seen(cells: list[str], on_paper: bool) -> dict[str, Any]:
    """What a run of a notebook shows."""
    out, before = io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.ipynb").write_text(notebook(*map(unmarked, cells)), encoding="utf-8")
        (Path(folder) / "pyproject.toml").touch()
        os.chdir(folder)
        try:
            verify_program(
                script("a.ipynb", []),
                output_format=Format.JSON,
                seconds=_SECONDS,
                gpu_count=2 if on_paper else None,
                on_paper=on_paper,
                out=out,
                err=io.StringIO(),
            )
        finally:
            os.chdir(before)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def obstacle(cells: list[str], gpus: int) -> str | None:
    """Why a notebook cannot run on this machine."""
    text = "\n".join(cells)
    if "num_processes=2" in text and gpus < 2:
        return "needs 2 GPUs"
    named = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) - {"workers"}
    missing = sorted(name for name in named if importlib.util.find_spec(name) is None)
    return f"{' and '.join(missing)} not installed" if missing else None


def differs(name: str, cells: list[str], told: dict[str, Any]) -> str | None:
    """What came otherwise than a case says."""
    findings = told["findings"]
    shown = [(one["cell"], one["location"]["row"], one["code"], one["status"]) for one in findings]
    wanted = [(*one, "confirmed") for one in marked(cells)]
    if shown != wanted:
        return f"expected {wanted}, not {shown}"
    if told["unpredicted"]:
        return f"not predicted: {told['unpredicted']}"
    if name.startswith("ok") and told["end"] != "ok":
        return f"it ended as {told['end']}: {told['said']}"
    return None


def main(words: list[str]) -> int:
    """Run the named notebooks, or all, and print a table."""
    on_paper, named = "--paper" in words, [word for word in words if word != "--paper"]
    wrong, gpus = 0, len(discover().devices)
    if not on_paper and not gpus:
        print("no GPU: --paper runs them without one", file=sys.stderr)
        return 2
    print("| notebook | seen | end |\n| --- | --- | --- |")
    for name, cells in cases().items():
        if named and not any(word in name for word in named):
            continue
        why = None if on_paper else obstacle(cells, gpus)
        if why is not None:
            print(f"| {name} | not run | {why} |", flush=True)
            continue
        told = seen(cells, on_paper)
        difference = differs(name, cells, told)
        wrong += difference is not None
        print(f"| {name} | {difference or 'as expected'} | {told['end']}: {told['said']} |", flush=True)
    print(f"\n{wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
