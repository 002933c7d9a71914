"""python -m release.promises.

From `tests/`, when a version is released: adds to `promises.json` what programs may rely on from then on, as the code
has it now. `test_promises.py` compares; what was promised leaves the file only by hand, for a major version.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path

import click

from cudalint import api, config_schema, rules
from cudalint.hosts import commands
from cudalint.hosts.checks import Exit
from cudalint.hosts.commands.verify import verify

FILE = Path(__file__).with_name("promises.json")
# It shows a cause, a launch, an effect and a repair, and holds a comment that silences nothing.
PROGRAM = """\
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2]))  # noqa: CUD404
"""

Promises = dict[str, object]


def current() -> Promises:
    """What holds now."""
    report = _report()
    found = [json.loads(row) for row in api.render(report, "json-lines").splitlines()]
    finding = next(one for one in found if one["fix"])
    shown = {
        "finding": finding,
        "location": finding["location"],
        "fix": finding["fix"],
        "edit": finding["fix"]["edits"][0],
        "step": finding["trace"][0],
    }
    return {
        "rules": {rule.code: rule.name for rule in rules.registry().values()},
        "exit codes": {one.name: one.value for one in Exit},
        "severities": _values(api.Severity),
        "applicability": _values(api.Applicability),
        "kinds of steps": _values(api.StepKind),
        "formats": sorted(api.formats()),
        "keys of JSON": {name: sorted(found) for name, found in shown.items()},
        "types of JSON": {name: _types(found) for name, found in shown.items()},
        "fingerprints": {one["code"]: one["fingerprint"] for one in found},
        "settings": sorted(_settings()),
        "api": sorted(api.__all__),
        "options": {name: sorted(_options(found)) for name, found in _commands().items()},
    }


def broken(promised: Mapping[str, object], held: Mapping[str, object], within: str = "") -> list[str]:
    """What was promised and does not hold; what is new is none of it."""
    missing = [f"{within}{key} is gone" for key in promised if key not in held]
    for key in promised.keys() & held.keys():
        old, new = promised[key], held[key]
        if isinstance(old, dict) and isinstance(new, dict):
            missing += broken(old, new, f"{within}{key}: ")
        elif isinstance(old, list) and isinstance(new, list):
            missing += [f"{within}{key}: {one} is gone" for one in old if one not in new]
        elif old != new:
            missing.append(f"{within}{key}: {old} became {new}")
    return sorted(missing)


def _report() -> api.Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.py")
        path.write_text(PROGRAM, encoding="utf-8")
        return api.check([str(path)], api.Options(isolated=True))


def _values(of: type[Enum]) -> list[str]:
    return [str(one.value) for one in of]


def _types(found: Mapping[str, object]) -> dict[str, str]:
    """The types of the fields that are not null."""
    return {key: type(value).__name__ for key, value in found.items() if value is not None}


def _settings() -> Iterable[str]:
    found = config_schema.schema()["properties"]
    assert isinstance(found, dict)
    return found


def _commands() -> dict[str, click.Command]:
    found = {name: commands.command(name) for name in commands.COMMANDS}
    return {"--verify": verify, **{name: one for name, one in found.items() if one is not None}}


def _options(of: click.Command) -> Iterable[str]:
    for one in of.params:
        if isinstance(one, click.Option) and not one.hidden:
            yield from (*one.opts, *one.secondary_opts)


def _joined(old: object, new: object) -> object:
    """Both; where they contradict, what was promised."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            key: _joined(old[key], new[key]) if key in old and key in new else {**new, **old}[key]
            for key in {**old, **new}
        }
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *(one for one in new if one not in old)]
    return old


def main() -> int:
    """Write what is promised."""
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps(_joined(known, current()), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
