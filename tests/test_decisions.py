"""What Python makes of a program decides whether it fails: twins that differ in one word, of which one does.

``decisions.txt`` has functions that decide; ``<<a || b>>`` is where the twins differ. The first one decides for CUDA
before the fork, the second one against it: Python itself says so here. Of whole programs, which were run on paper, the
first one fails.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_projects import findings

_TWINS = re.compile(r"<<(.*?) ?\|\| ?(.*?)>>", re.DOTALL)
# What Python has from 3.11 on: on an older one neither it nor what runs there knows these exceptions.
_OF_GROUPS = re.compile(r"except\*|ExceptionGroup")
_, *_PARTS = re.split(r"^##### (.*)\n", (Path(__file__).parent / "decisions.txt").read_text("utf-8"), flags=re.M)
DECISIONS = {
    name: text
    for name, text in zip(_PARTS[::2], _PARTS[1::2], strict=True)
    if sys.version_info >= (3, 11) or not _OF_GROUPS.search(text)
}
HEAD = "import multiprocessing\nimport torch\n"
PROGRAM = """

def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    if decide():
        torch.cuda.init()
    with multiprocessing.Pool(1) as pool:
        print(pool.map(work, [1, 2]))
"""
ASKED = """
import json, os, sys
for name, text in json.load(sys.stdin).items():
    sys.stdout.flush()
    if not os.fork():
        scope = sys.modules["__main__"].__dict__
        exec(text, scope)
        decided = bool(scope["decide"]())
        sys.stdout = sys.__stdout__
        print(f"{name}: {decided}", flush=True)
        os._exit(0)
    os.wait()
"""


def twin(text: str, which: int) -> str:
    """One of the twins."""
    return _TWINS.sub(lambda found: found.group(which), text)


def decides(text: str) -> bool:
    """Whether a text is one of a function, and none of a program."""
    return "def decide():" in text


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("which", [1, 2])
def test_decision(name: str, which: int) -> None:
    text = twin(DECISIONS[name], which)
    found = findings({"main.py": HEAD + text + PROGRAM if decides(text) else text})
    said = {(f.severity.value, f.condition) for f in found if f.code != "CUD201"}
    assert said == ({("error", None)} if which == 1 else set())


def test_python_decides_so() -> None:
    functions = {name: text for name, text in DECISIONS.items() if decides(text)}
    texts = {f"{name}, {which}": twin(text, which) for name, text in functions.items() for which in (1, 2)}
    ran = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", ASKED],
        input=json.dumps(texts),
        text=True,
        capture_output=True,
        timeout=120,
    )
    expected = [f"{name}, {which}: {which == 1}" for name in functions for which in (1, 2)]
    assert ran.stdout.splitlines() == expected, ran.stderr
