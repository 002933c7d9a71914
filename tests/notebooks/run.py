"""Runs the notebooks of traps.txt under ``cudalint --verify`` and compares what is seen with what they say.

``python tests/notebooks/run.py [--paper] [--out FOLDER] [WORDS...]``: all, or those whose names hold one of the words;
on the GPUs of this machine, or on paper. ``--out docs/evidence/notebooks`` keeps what was seen on hardware. A "broken"
one has to show each marked finding and end badly, but for those about costs and settings without effect; an "ok" one
has to end well. Ends with 1 when one differs.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from notebook_files import cases, marked, notebook, unmarked

from cudalint.structs import replace
from cudalint.verify import Format, evidence, script, verify_program
from cudalint.verify.gpus import discover
from cudalint.verify.verdict import Status

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


def entry(name: str, cells: list[str], told: dict[str, Any]) -> evidence.Document:
    """What is kept of a run."""
    difference = differs(name, cells, told)
    findings: list[evidence.Json] = [
        {
            "finding": f"{one['code']}@cell {one['cell']}:{one['location']['row']}:{one['location']['column']}",
            "severity": one["severity"],
            "status": one["status"],
            "why": one["why"],
        }
        for one in told["findings"]
    ]
    return {
        **_known(name, cells),
        "verdict": (Status.CONFIRMED if difference is None else Status.REFUTED).value,
        **({} if difference is None else {"reasons": [difference]}),
        "findings": findings,
        "run": {"end": told["end"], "seconds": told["seconds"], "said": told["said"]},
    }


def not_run(name: str, cells: list[str], reason: str) -> evidence.Document:
    """What is kept of a notebook that cannot run here."""
    return {**_known(name, cells), "verdict": Status.NOT_RUN.value, "reasons": [reason]}


def _known(name: str, cells: list[str]) -> evidence.Document:
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"sha256": digest(cells), "date": today, "expected": name.partition(":")[0]}


def digest(cells: list[str]) -> str:
    """What a notebook is known by: its text, with what is expected of it."""
    return hashlib.sha256("\0".join(cells).encode()).hexdigest()


def this_place() -> evidence.Place:
    """This machine; whether IPython is there decides how magics run."""
    place = evidence.this_place(discover())
    versions = {name: metadata.version(name) for name in ("ipython",) if importlib.util.find_spec("IPython")}
    return replace(place, versions={**place.versions, **versions})


def save(folder: Path, place: evidence.Place, results: dict[str, evidence.Json]) -> None:
    """Write what was seen beside what is known of the same machine and versions."""
    path = folder / place.file_name
    made: evidence.Document = {**evidence.head(place), "fixtures": results}
    if path.exists():
        made = evidence.merge(json.loads(path.read_text("utf-8")), made)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(evidence.dump(made), encoding="utf-8")


def main(words: list[str]) -> int:
    """Run the named notebooks, or all, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args(words)
    gpus = len(discover().devices)
    if asked.paper and asked.out:
        parser.error("what is seen on paper is no evidence")
    if not asked.paper and not gpus:
        print("no GPU: --paper runs them without one", file=sys.stderr)
        return 2
    results: dict[str, evidence.Json] = {}
    print("| notebook | seen | end |\n| --- | --- | --- |")
    for name, cells in cases().items():
        if asked.words and not any(word in name for word in asked.words):
            continue
        why = None if asked.paper else obstacle(cells, gpus)
        told = {} if why is not None else seen(cells, asked.paper)
        results[name] = entry(name, cells, told) if why is None else not_run(name, cells, why)
        print(_row(name, cells, told, why), flush=True)
        if asked.out is not None:  # each at once: a machine is lent for so long and no longer
            save(asked.out, this_place(), results)
    wrong = sum(result["verdict"] == Status.REFUTED.value for result in results.values())
    print(f"\n{wrong} differ")
    return 1 if wrong else 0


def _row(name: str, cells: list[str], told: dict[str, Any], why: str | None) -> str:
    if why is not None:
        return f"| {name} | not run | {why} |"
    return f"| {name} | {differs(name, cells, told) or 'as expected'} | {told['end']}: {told['said']} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
