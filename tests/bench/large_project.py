"""A generated project with cycles and deep call chains, and what checking it costs.

`python -m bench.large_project [--modules N]`, from `tests/`: every module imports others, back and forth; every
function calls functions of others; some launch workers, some use CUDA. The bound is 60 seconds and 1 GB for 2,000
modules with 20,000 functions.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import time
from collections.abc import Iterator

from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.text.source import SourceFile

FUNCTIONS = 10
ROOT = "/generated"
_CALLED = re.compile(r"\bm(\d+)\.")


def _function(number: int, position: int, modules: int, chance: random.Random) -> str:
    """One function: calls into other modules, sometimes a launch or a use of CUDA."""
    name = f"step_{number}_{position}"
    others = [chance.randrange(modules) for _ in range(2)]
    lines = [f"def {name}(n, device=None):", f"    value = n * {position} + 1"]
    for other in others:
        called = f"step_{other}_{(position + 1) % FUNCTIONS}"
        home = f"m{other}." if other != number else ""
        lines.append(f"    value += {home}{called}(value, device)")
    kind = chance.randrange(40)
    if kind == 0:
        lines.append("    value += torch.ones(3, device='cuda').sum().item()")
    if kind == 1:
        lines.append(f"    with multiprocessing.Pool(2) as pool:\n        pool.map(step_{number}_0, range(3))")
    if kind == 2:
        lines.append("    if torch.cuda.is_available():\n        device = torch.device('cuda')")
    return "\n".join([*lines, "    return value"])


def texts(modules: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Path and text of each file: packages of fifty modules, and a main program for each tenth package."""
    chance = random.Random(seed)
    packages = (modules + 49) // 50
    for package in range(packages):
        yield f"{ROOT}/p{package}/__init__.py", ""
    for number in range(modules):
        body = "\n\n\n".join(_function(number, i, modules, chance) for i in range(FUNCTIONS))
        others = {int(found) for found in _CALLED.findall(body)}
        imports = "\n".join(f"from p{other // 50} import m{other}" for other in sorted(others) if other != number)
        yield f"{ROOT}/p{number // 50}/m{number}.py", f"import multiprocessing\n\nimport torch\n{imports}\n\n\n{body}\n"
    for package in range(0, packages, 10):
        first = package * 50
        text = f"from p{package} import m{first}\n\nif __name__ == '__main__':\n    m{first}.step_{first}_0(1)\n"
        yield f"{ROOT}/main{package}.py", text


def measure(modules: int) -> tuple[Analysis, float]:
    """The analysis of a generated project, and its seconds of processor time."""
    sources = [SourceFile(path, text, text.encode()) for path, text in texts(modules)]
    began = time.process_time()
    result = analyse(sources, Options(), root=ROOT)
    return result, time.process_time() - began


def main() -> int:
    """Print what a run cost; 1 if it costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--megabytes", type=float, default=1_000.0)
    asked = parser.parse_args()
    result, seconds = measure(asked.modules)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    work = result.work
    print(f"{asked.modules} modules, {asked.modules * FUNCTIONS} functions: {seconds:.1f} s, {memory:.0f} MB")
    print(f"{work.files_parsed} of {work.files_read} files parsed, {len(result.findings)} findings")
    for note in result.notes:
        print(f"  {note}")
    return 1 if seconds > asked.seconds or memory > asked.megabytes else 0


if __name__ == "__main__":
    raise SystemExit(main())
