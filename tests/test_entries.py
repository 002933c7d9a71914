"""What is found in a file does not depend on what else is checked with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cudalint import config
from cudalint.finding import Finding
from cudalint.session import Session

PROGRAMS = 6
TESTS = 3


def _function(name: str, chance: random.Random, helpers: int) -> str:
    lines = [f"def {name}(items):"]
    if chance.random() < 0.5:
        lines.append("    torch.zeros(1, device='cuda')")
    lines.append(f"    items = helper{chance.randrange(helpers)}.prepare(items)")
    work = chance.choice(["helpers.on_gpu", "helpers.on_cpu"])
    lines.append(f"    with multiprocessing.Pool(2) as pool:\n        return pool.map({work}, items)")
    return "\n".join(lines)


def _heavy(number: int) -> str:
    """A helper that costs many steps: more than any entry may take where it is called in turn."""
    chain = "\n\n\n".join(
        f"def step{i}(items, n={i}):\n    items = step{i + 1}(items, 3 * n)\n"
        f"    items = step{i + 1}(items, 3 * n + 1)\n    return step{i + 1}(items, 3 * n + 2)"
        for i in range(number % 4 + 3)
    )
    return (
        "import os\n\nimport torch\n\n\n"
        f"def step{number % 4 + 3}(items, n=0):\n    os.environ['N'] = str(n)\n    return items\n\n\n{chain}\n\n\n"
        f"def prepare(items):\n    return step0(items)\n"
    )


def write(top: Path) -> list[Path]:
    """Programs and tests that share helpers, some of which cost more than a test may."""
    chance = random.Random(3)
    imports = "import multiprocessing\n\nimport torch\n\nimport helpers\n" + "".join(
        f"import helper{i}\n" for i in range(6)
    )
    texts = {
        "helpers.py": (
            "import torch\n\n\ndef on_gpu(n):\n    return torch.ones(n, device='cuda')\n\n\n"
            "def on_cpu(n):\n    return n\n"
        ),
        **{f"helper{i}.py": _heavy(i) for i in range(6)},
        **{
            f"program{i}.py": f"{imports}\n\n{_function('main', chance, 6)}\n\n\n"
            "if __name__ == '__main__':\n    main([1, 2])\n"
            for i in range(PROGRAMS)
        },
        **{
            f"test_{i}.py": imports + "".join(f"\n\n{_function(f'test_{j}', chance, 6)}\n" for j in range(4))
            for i in range(TESTS)
        },
    }
    for name, text in texts.items():
        (top / name).write_text(text.replace("(items):\n", "(items=(1, 2)):\n") if "test_" in name else text)
    (top / "pyproject.toml").write_text("")
    return sorted(top.glob("*.py"))


def told(findings: tuple[Finding, ...], path: Path) -> set[tuple[str, int, str, str | None]]:
    return {(f.code, f.span.start.row, f.severity.value, f.outcome) for f in findings if f.span.filename == str(path)}


@pytest.mark.long
def test_a_folder_and_its_files_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    session = Session(config.load([str(tmp_path)]))
    whole = session.check([str(tmp_path)], repair=False)
    found = 0
    for path in files:
        alone = session.check([str(path)], repair=False)
        assert told(alone.findings, path) == told(whole.findings, path), path.name
        found += len(told(alone.findings, path))
    assert found >= 5
    assert any("cut off" in note for note in whole.notes)
